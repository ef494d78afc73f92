//! The functions whose calls are told with their arguments: those that order threads, and those that make and destroy
//! memory. Found by symbol; aliases are at the same addresses.

use verdict_translate::{ARGUMENT_REGISTERS, Noted};

/// One that hides what it does, and gives others something to wait for, or changes what memory means.
const NOTED: Noted = Noted {
    hides: true,
    ends_epoch: true,
    atomic: false,
    arguments: ARGUMENT_REGISTERS.len() as u8,
};
/// One that waits for others, and gives nobody anything to wait for.
const WAITS: Noted = Noted {
    ends_epoch: false,
    ..NOTED
};
/// One whose first argument remembers that something was done once.
const GUARD: Noted = Noted {
    atomic: true,
    ..NOTED
};
/// The same, and it calls a function of the program.
const ONCE: Noted = Noted {
    hides: false,
    ..GUARD
};

/// Symbols of noted functions, and what each means for whoever calls it.
pub const NOTED_FUNCTIONS: &[(&str, Noted)] = &[
    // mutexes
    ("pthread_mutex_lock", WAITS.of_one()),
    ("pthread_mutex_trylock", WAITS.of_one()),
    ("pthread_mutex_timedlock", WAITS),
    ("pthread_mutex_clocklock", WAITS),
    ("pthread_mutex_unlock", NOTED.of_one()),
    ("mtx_lock", WAITS),
    ("mtx_trylock", WAITS),
    ("mtx_timedlock", WAITS),
    ("mtx_unlock", NOTED),
    // read-write locks
    ("pthread_rwlock_rdlock", WAITS.of_one()),
    ("pthread_rwlock_tryrdlock", WAITS),
    ("pthread_rwlock_timedrdlock", WAITS),
    ("pthread_rwlock_clockrdlock", WAITS),
    ("pthread_rwlock_wrlock", WAITS.of_one()),
    ("pthread_rwlock_trywrlock", WAITS),
    ("pthread_rwlock_timedwrlock", WAITS),
    ("pthread_rwlock_clockwrlock", WAITS),
    ("pthread_rwlock_unlock", NOTED.of_one()),
    // spin locks
    ("pthread_spin_lock", WAITS.of_one()),
    ("pthread_spin_trylock", WAITS),
    ("pthread_spin_unlock", NOTED.of_one()),
    // conditions
    ("pthread_cond_wait", NOTED),
    ("pthread_cond_timedwait", NOTED),
    ("pthread_cond_clockwait", NOTED),
    ("pthread_cond_signal", NOTED.of_one()),
    ("pthread_cond_broadcast", NOTED.of_one()),
    ("cnd_wait", NOTED),
    ("cnd_timedwait", NOTED),
    ("cnd_signal", NOTED),
    ("cnd_broadcast", NOTED),
    // barriers
    ("pthread_barrier_wait", NOTED),
    // semaphores
    ("sem_wait", WAITS.of_one()),
    ("sem_trywait", WAITS),
    ("sem_timedwait", WAITS),
    ("sem_clockwait", WAITS),
    ("sem_post", NOTED.of_one()),
    // once
    ("pthread_once", ONCE),
    ("call_once", ONCE),
    ("__cxa_guard_acquire", GUARD),
    ("__cxa_guard_release", NOTED),
    ("__cxa_guard_abort", NOTED),
    // threads
    ("pthread_create", NOTED),
    ("pthread_join", NOTED),
    ("pthread_tryjoin_np", NOTED),
    ("pthread_timedjoin_np", NOTED),
    ("pthread_clockjoin_np", NOTED),
    ("thrd_create", NOTED),
    ("thrd_join", NOTED),
    // streams
    ("flockfile", WAITS),
    ("ftrylockfile", WAITS),
    ("funlockfile", NOTED),
    ("setvbuf", NOTED),
    ("setbuf", NOTED),
    ("setbuffer", NOTED),
    // memory
    ("malloc", NOTED.of_one()),
    ("calloc", NOTED),
    ("realloc", NOTED),
    ("reallocarray", NOTED),
    ("free", NOTED.of_one()),
    ("cfree", NOTED),
    ("memalign", NOTED),
    ("posix_memalign", NOTED),
    ("aligned_alloc", NOTED),
    ("valloc", NOTED),
    ("pvalloc", NOTED),
    ("malloc_usable_size", NOTED),
    ("mmap", NOTED),
    ("mmap64", NOTED),
    ("munmap", NOTED),
    ("mremap", NOTED),
];
