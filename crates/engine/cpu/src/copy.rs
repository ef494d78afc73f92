//! Copies between host and guest memory that survive a bad guest address.

use std::arch::global_asm;

global_asm!(
    // fn verdict_copy(dst, src, len) -> 0, or 1 if an address was bad (the signal handler moves rip).
    ".balign 16",
    ".global verdict_copy",
    "verdict_copy:",
    "mov rcx, rdx",
    "rep movsb",
    "xor eax, eax",
    "ret",
    ".global verdict_copy_failed",
    "verdict_copy_failed:",
    "mov eax, 1",
    "ret",
);

unsafe extern "C" {
    fn verdict_copy(dst: *mut u8, src: *const u8, len: usize) -> u32;
    fn verdict_copy_failed();
}

/// If `rip` lies in the copy routine, the address at which it reports failure.
pub(crate) fn recovery(rip: u64) -> Option<u64> {
    let start = verdict_copy as *const () as u64;
    let failed = verdict_copy_failed as *const () as u64;
    (start..failed).contains(&rip).then_some(failed)
}

/// Fills `buffer` from guest memory; false if any byte cannot be read.
pub fn copy_from_guest(guest: u64, buffer: &mut [u8]) -> bool {
    // SAFETY: the destination is valid for its length; a fault on the source is caught by the signal handler,
    // which continues at `verdict_copy_failed`.
    unsafe { verdict_copy(buffer.as_mut_ptr(), guest as *const u8, buffer.len()) == 0 }
}

/// Writes `bytes` to guest memory; false if any byte cannot be written.
///
/// # Safety
/// The range must not overlap host memory: callers check it against the guest's memory map.
pub unsafe fn copy_to_guest(guest: u64, bytes: &[u8]) -> bool {
    // SAFETY: the source is valid for its length; a fault on the destination is caught by the signal handler.
    unsafe { verdict_copy(guest as *mut u8, bytes.as_ptr(), bytes.len()) == 0 }
}
