//! Where a thread's epochs begin, and where all stamps are taken back (see the translator's `sieve`).

use crate::context::{Context, STAMP_HIDDEN, offset};
use crate::layout;
use std::arch::{asm, global_asm};

global_asm!(
    // The current thread is in a new epoch. Changes nothing but the flags, returns to where the context says.
    ".balign 16",
    ".global verdict_next_epoch",
    "verdict_next_epoch:",
    "mov qword ptr [{KEPT}], rax",
    "mov rax, qword ptr [{EPOCHS}]",
    "add rax, qword ptr [{EPOCH_STEP}]",
    "mov qword ptr [{EPOCHS}], rax",
    "mov qword ptr [{EPOCH}], rax",
    "cmp al, {HIDDEN}",
    "mov rax, qword ptr [{KEPT}]",
    "je verdict_forget",
    "jmp qword ptr [{EPOCH_RETURN}]",
    // The same when all epochs are used up: takes all stamps back and begins the first one of a new generation.
    ".balign 16",
    ".global verdict_forget",
    "verdict_forget:",
    "mov qword ptr [{KEPT} + 0x00], rax",
    "mov qword ptr [{KEPT} + 0x08], rcx",
    "mov rcx, qword ptr [{STAMPED}]",
    "4:",
    "cmp rcx, qword ptr [{STAMPED_NEXT}]",
    "jae 5f",
    // Sixteen stamps anywhere in three words: the guest may have accesses checked for their alignment.
    "mov rax, qword ptr [rcx]",
    "and rax, -8",
    "mov qword ptr [rax], 0",
    "mov qword ptr [rax + 8], 0",
    "mov qword ptr [rax + 16], 0",
    "add rcx, 8",
    "jmp 4b",
    "5:",
    "mov rcx, qword ptr [{STAMPED}]",
    "mov qword ptr [{STAMPED_NEXT}], rcx",
    "cmp qword ptr [{UNLISTED}], 0",
    "je 7f",
    "mov qword ptr [{UNLISTED}], 0",
    // Where the guest has mapped memory of its own there are no shadows to give back.
    "cmp qword ptr [{SHADOW_MASK}], 0",
    "je 7f",
    "mov qword ptr [{KEPT} + 0x10], rdi",
    "mov qword ptr [{KEPT} + 0x18], rsi",
    "mov qword ptr [{KEPT} + 0x20], rdx",
    "mov qword ptr [{KEPT} + 0x28], r11",
    "mov rdi, qword ptr [{SHADOW_BASE}]",
    "6:",
    "movabs rsi, {SHADOW_LEN}",
    "mov edx, {MADV_DONTNEED}",
    "mov eax, {SYS_MADVISE}",
    "syscall",
    "movabs rsi, {SHADOW_STEP}",
    "add rdi, rsi",
    "movabs rsi, {SHADOW_END}",
    "cmp rdi, rsi",
    "jb 6b",
    "movabs rdi, {STACK_SHADOW}",
    "mov esi, {STACK_SHADOW_LEN}",
    "mov edx, {MADV_DONTNEED}",
    "mov eax, {SYS_MADVISE}",
    "syscall",
    "mov rdi, qword ptr [{KEPT} + 0x10]",
    "mov rsi, qword ptr [{KEPT} + 0x18]",
    "mov rdx, qword ptr [{KEPT} + 0x20]",
    "mov r11, qword ptr [{KEPT} + 0x28]",
    "7:",
    "inc qword ptr [{GENERATION}]",
    "mov rax, qword ptr [{EPOCH_STEP}]",
    "mov qword ptr [{EPOCHS}], rax",
    "mov qword ptr [{EPOCH}], rax",
    "mov rax, qword ptr [{KEPT} + 0x00]",
    "mov rcx, qword ptr [{KEPT} + 0x08]",
    "jmp qword ptr [{EPOCH_RETURN}]",
    HIDDEN = const STAMP_HIDDEN as u8,
    KEPT = const offset::EPOCH_BORROWED,
    STAMPED = const offset::STAMPED,
    STAMPED_NEXT = const offset::STAMPED_NEXT,
    UNLISTED = const offset::UNLISTED,
    SHADOW_MASK = const offset::SHADOW_MASK,
    SHADOW_BASE = const offset::SHADOW_BASE,
    GENERATION = const offset::GENERATION,
    EPOCH = const offset::EPOCH,
    EPOCHS = const offset::EPOCHS,
    EPOCH_STEP = const offset::EPOCH_STEP,
    EPOCH_RETURN = const offset::EPOCH_RETURN,
    SHADOW_LEN = const layout::SHADOW_LEN,
    STACK_SHADOW = const layout::STACK_SHADOW,
    STACK_SHADOW_LEN = const layout::STACK_SHADOW_LEN,
    SHADOW_STEP = const layout::SHADOW_STEP,
    SHADOW_END = const layout::SHADOW_PARTS * layout::SHADOW_STEP,
    MADV_DONTNEED = const libc::MADV_DONTNEED,
    SYS_MADVISE = const libc::SYS_madvise,
);

unsafe extern "C" {
    fn verdict_next_epoch();
    fn verdict_forget();
}

/// The routine that begins an epoch; goes to [`Context::epoch_routine`].
pub(crate) fn next_epoch_routine() -> u64 {
    verdict_next_epoch as *const () as u64
}

/// Takes all stamps of the sieve back and begins the first epoch of a new generation.
///
/// # Safety
/// `context` is the one at [`layout::CONTEXT`], and prepared; what lies between [`Context::stamped`] and [`Context::stamped_next`] are
/// addresses of shadows that are mapped, and all shadows are mapped if not all that are stamped are listed, unless its mask is 0.
pub unsafe fn forget_stamps(context: &mut Context) {
    // SAFETY: the routine writes the context and shadows only, and comes back with all registers as they were.
    unsafe {
        asm!(
            "lea {back}, [rip + 2f]",
            "mov qword ptr [{EPOCH_RETURN}], {back}",
            "jmp {forget}",
            "2:",
            back = inout(reg) std::ptr::from_mut(context) => _,
            forget = sym verdict_forget,
            EPOCH_RETURN = const offset::EPOCH_RETURN,
        );
    }
}
