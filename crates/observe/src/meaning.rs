//! What the noted functions mean.

use verdict_events::LockMode;

/// What a call of a function does, as far as other threads are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// Takes the lock at the first argument.
    Lock(LockMode),
    /// The same; has no result that could say that it failed.
    LockAlways,
    /// Gives up the lock at the first argument.
    Unlock,
    /// Waits for the condition at the first argument and gives up the lock at the second meanwhile.
    ConditionWait,
    /// Wakes waiters of the condition at the first argument.
    ConditionNotify,
    /// Waits at the barrier at the first argument.
    BarrierWait,
    SemaphoreWait,
    SemaphorePost,
    /// Calls a function once; the first argument remembers whether.
    Once,
    /// Begins, ends or gives up the initialisation that the first argument guards.
    GuardAcquire,
    GuardRelease,
    GuardAbort,
    /// Creates a thread and stores its name at the first argument.
    ThreadCreate,
    /// Waits for the thread that the first argument names and stores its result at the second.
    ThreadJoin,
    /// Gives the buffer at the second argument to a stream; its length is this argument, or the default.
    StreamBuffer(Option<usize>),
    /// Memory of so many bytes: the argument, or the product of two, or of one argument and a second one.
    Allocate(Size),
    /// The same; stores the address at the first argument.
    AllocateIndirectly,
    /// Frees the first argument and allocates as many bytes as these arguments say.
    Reallocate(Size),
    Free,
    /// Says how many bytes the block at the first argument has: all of them may be used.
    UsableSize,
    Map,
    Unmap,
    Remap,
}

/// Number of bytes, from arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    Argument(usize),
    Product(usize, usize),
}

impl Size {
    pub(crate) fn of(self, arguments: &[u64]) -> u64 {
        match self {
            Size::Argument(at) => arguments[at],
            Size::Product(first, second) => arguments[first].saturating_mul(arguments[second]),
        }
    }
}

impl Meaning {
    /// True if the function may hand out memory.
    pub(crate) fn allocates(self) -> bool {
        use Meaning::{Allocate, AllocateIndirectly, Map, Reallocate, Remap};
        matches!(
            self,
            Allocate(_) | AllocateIndirectly | Reallocate(_) | Map | Remap
        )
    }

    /// True if the function works on an object for synchronisation that the first argument points to.
    pub(crate) fn synchronises(self) -> bool {
        use Meaning::{BarrierWait, ConditionNotify, ConditionWait, SemaphorePost, SemaphoreWait};
        matches!(
            self,
            Meaning::Lock(_)
                | Meaning::Unlock
                | ConditionWait
                | ConditionNotify
                | BarrierWait
                | SemaphoreWait
                | SemaphorePost
        )
    }

    /// True if the function maps memory, or takes it away.
    pub(crate) fn maps(self) -> bool {
        matches!(self, Meaning::Map | Meaning::Unmap | Meaning::Remap)
    }

    /// True if the function calls code of the program, whose accesses count.
    pub(crate) fn calls_back(self) -> bool {
        self == Meaning::Once
    }
}

/// The meaning of a function, and its name for good.
pub(crate) fn of(name: &str) -> Option<(&'static str, Meaning)> {
    use LockMode::{Exclusive, Shared};
    use Meaning::*;
    const TABLE: &[(&str, Meaning)] = &[
        ("pthread_mutex_lock", Lock(Exclusive)),
        ("pthread_mutex_trylock", Lock(Exclusive)),
        ("pthread_mutex_timedlock", Lock(Exclusive)),
        ("pthread_mutex_clocklock", Lock(Exclusive)),
        ("pthread_mutex_unlock", Unlock),
        ("mtx_lock", Lock(Exclusive)),
        ("mtx_trylock", Lock(Exclusive)),
        ("mtx_timedlock", Lock(Exclusive)),
        ("mtx_unlock", Unlock),
        ("pthread_rwlock_rdlock", Lock(Shared)),
        ("pthread_rwlock_tryrdlock", Lock(Shared)),
        ("pthread_rwlock_timedrdlock", Lock(Shared)),
        ("pthread_rwlock_clockrdlock", Lock(Shared)),
        ("pthread_rwlock_wrlock", Lock(Exclusive)),
        ("pthread_rwlock_trywrlock", Lock(Exclusive)),
        ("pthread_rwlock_timedwrlock", Lock(Exclusive)),
        ("pthread_rwlock_clockwrlock", Lock(Exclusive)),
        ("pthread_rwlock_unlock", Unlock),
        ("pthread_spin_lock", Lock(Exclusive)),
        ("pthread_spin_trylock", Lock(Exclusive)),
        ("pthread_spin_unlock", Unlock),
        ("pthread_cond_wait", ConditionWait),
        ("pthread_cond_timedwait", ConditionWait),
        ("pthread_cond_clockwait", ConditionWait),
        ("pthread_cond_signal", ConditionNotify),
        ("pthread_cond_broadcast", ConditionNotify),
        ("cnd_wait", ConditionWait),
        ("cnd_timedwait", ConditionWait),
        ("cnd_signal", ConditionNotify),
        ("cnd_broadcast", ConditionNotify),
        ("pthread_barrier_wait", BarrierWait),
        ("sem_wait", SemaphoreWait),
        ("sem_trywait", SemaphoreWait),
        ("sem_timedwait", SemaphoreWait),
        ("sem_clockwait", SemaphoreWait),
        ("sem_post", SemaphorePost),
        ("pthread_once", Once),
        ("call_once", Once),
        ("__cxa_guard_acquire", GuardAcquire),
        ("__cxa_guard_release", GuardRelease),
        ("__cxa_guard_abort", GuardAbort),
        ("pthread_create", ThreadCreate),
        ("thrd_create", ThreadCreate),
        ("pthread_join", ThreadJoin),
        ("pthread_tryjoin_np", ThreadJoin),
        ("pthread_timedjoin_np", ThreadJoin),
        ("pthread_clockjoin_np", ThreadJoin),
        ("thrd_join", ThreadJoin),
        ("flockfile", LockAlways),
        ("ftrylockfile", Lock(Exclusive)),
        ("funlockfile", Unlock),
        ("setvbuf", StreamBuffer(Some(3))),
        ("setbuf", StreamBuffer(None)),
        ("setbuffer", StreamBuffer(Some(2))),
        ("malloc", Allocate(Size::Argument(0))),
        ("calloc", Allocate(Size::Product(0, 1))),
        ("memalign", Allocate(Size::Argument(1))),
        ("aligned_alloc", Allocate(Size::Argument(1))),
        ("valloc", Allocate(Size::Argument(0))),
        ("pvalloc", Allocate(Size::Argument(0))),
        ("posix_memalign", AllocateIndirectly),
        ("realloc", Reallocate(Size::Argument(1))),
        ("reallocarray", Reallocate(Size::Product(1, 2))),
        ("malloc_usable_size", UsableSize),
        ("free", Free),
        ("cfree", Free),
        ("mmap", Map),
        ("mmap64", Map),
        ("munmap", Unmap),
        ("mremap", Remap),
    ];
    TABLE
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(name, meaning)| (*name, *meaning))
}

#[cfg(test)]
mod tests {
    /// What the executor makes of a function has to fit what is made of it here.
    #[test]
    fn functions_end_epochs_and_hide_what_they_do_where_they_mean_that() {
        use super::Meaning::{Lock, LockAlways, SemaphoreWait};
        for (name, noted) in verdict_stream::NOTED_FUNCTIONS {
            let (_, meaning) = super::of(name).expect("noted functions mean something");
            assert_eq!(noted.hides, !meaning.calls_back(), "{name}");
            let only_waits = matches!(meaning, Lock(_) | LockAlways | SemaphoreWait);
            assert_eq!(noted.ends_epoch, !only_waits, "{name}");
            let guards = matches!(meaning, super::Meaning::Once | super::Meaning::GuardAcquire);
            assert_eq!(noted.atomic, guards, "{name}");
        }
    }

    #[test]
    fn every_noted_function_means_something() {
        for (name, _) in verdict_stream::NOTED_FUNCTIONS {
            assert!(super::of(name).is_some(), "{name}");
        }
    }
}
