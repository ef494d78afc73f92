//! Memory that will be needed soon, asked for now.
//!
//! Who goes through a list of places that are all far away waits for each of them in turn. The processor can fetch several at once if
//! it is told of them early enough.

/// Has the processor fetch what lies here, without waiting for it.
#[inline(always)]
pub fn fetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which changes nothing and faults nowhere; every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
