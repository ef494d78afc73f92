//! The functions whose calls are told with their arguments: those that order threads, and those that make and destroy
//! memory. Found by symbol; aliases are at the same addresses.

use verdict_translate::{ARGUMENT_REGISTERS, Noted};

/// Symbols of noted functions.
pub const NOTED_FUNCTIONS: &[&str] = &[
    // mutexes
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_timedlock",
    "pthread_mutex_clocklock",
    "pthread_mutex_unlock",
    "mtx_lock",
    "mtx_trylock",
    "mtx_timedlock",
    "mtx_unlock",
    // read-write locks
    "pthread_rwlock_rdlock",
    "pthread_rwlock_tryrdlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_clockrdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_trywrlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_clockwrlock",
    "pthread_rwlock_unlock",
    // spin locks
    "pthread_spin_lock",
    "pthread_spin_trylock",
    "pthread_spin_unlock",
    // conditions
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "cnd_wait",
    "cnd_timedwait",
    "cnd_signal",
    "cnd_broadcast",
    // barriers
    "pthread_barrier_wait",
    // semaphores
    "sem_wait",
    "sem_trywait",
    "sem_timedwait",
    "sem_clockwait",
    "sem_post",
    // once
    "pthread_once",
    "call_once",
    "__cxa_guard_acquire",
    "__cxa_guard_release",
    "__cxa_guard_abort",
    // threads
    "pthread_create",
    "pthread_join",
    "pthread_tryjoin_np",
    "pthread_timedjoin_np",
    "pthread_clockjoin_np",
    "thrd_create",
    "thrd_join",
    // streams
    "flockfile",
    "ftrylockfile",
    "funlockfile",
    "setvbuf",
    "setbuf",
    "setbuffer",
    // memory
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "cfree",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "mmap",
    "mmap64",
    "munmap",
    "mremap",
];

/// Those that wait for others and give nobody anything to wait for.
const WAITING: &[&str] = &[
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_timedlock",
    "pthread_mutex_clocklock",
    "mtx_lock",
    "mtx_trylock",
    "mtx_timedlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_tryrdlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_clockrdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_trywrlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_clockwrlock",
    "pthread_spin_lock",
    "pthread_spin_trylock",
    "sem_wait",
    "sem_trywait",
    "sem_timedwait",
    "sem_clockwait",
    "flockfile",
    "ftrylockfile",
];
/// Those that call a function of the program.
const CALLING_BACK: &[&str] = &["pthread_once", "call_once"];
/// Those whose first argument remembers that something was done once.
const GUARDING: &[&str] = &["pthread_once", "call_once", "__cxa_guard_acquire"];

/// Those of which only the first argument matters.
const OF_ONE: &[&str] = &[
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_unlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_unlock",
    "pthread_spin_lock",
    "pthread_spin_unlock",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "sem_wait",
    "sem_post",
    "malloc",
    "free",
];

/// What the noted function of this name means for whoever calls it.
#[must_use]
pub fn noted(name: &str) -> Noted {
    Noted {
        hides: !CALLING_BACK.contains(&name),
        ends_epoch: !WAITING.contains(&name),
        atomic: GUARDING.contains(&name),
        arguments: match OF_ONE.contains(&name) {
            true => 1,
            false => ARGUMENT_REGISTERS.len() as u8,
        },
    }
}
