//! The memory of the sieve, at the addresses that translated code has built in.

use verdict_cpu::layout::{ATOMIC_MARKS, ATOMIC_MARKS_LEN, SIEVE};

/// Maps it, empty.
pub(crate) fn map() -> std::io::Result<()> {
    // SAFETY: the layout reserves these addresses for the sieve.
    let mapped = unsafe {
        libc::mmap(
            SIEVE as *mut libc::c_void,
            (ATOMIC_MARKS + ATOMIC_MARKS_LEN - SIEVE) as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    match mapped {
        libc::MAP_FAILED => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Forgets all that was told; what is atomic stays so.
pub fn clear_sieve() {
    // SAFETY: the memory that `map` has mapped for this; if it has not, nothing happens.
    unsafe {
        libc::madvise(
            SIEVE as *mut libc::c_void,
            (ATOMIC_MARKS - SIEVE) as usize,
            libc::MADV_DONTNEED,
        )
    };
}
