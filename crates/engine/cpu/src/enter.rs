//! Entering guest code, leaving it, and the second level of the indirect-branch lookup.

use crate::context::{ExitReason, offset};
use crate::layout;
use std::arch::{asm, global_asm};

global_asm!(
    // fn verdict_enter(code): saves the host's callee-saved state, loads the guest's and jumps to `code`.
    ".balign 16",
    ".global verdict_enter",
    "verdict_enter:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "stmxcsr [rsp]",
    "fnstcw [rsp + 4]",
    "mov qword ptr [{HOST_RSP}], rsp",
    "mov qword ptr [{ENTRY}], rdi",
    "mov rax, qword ptr [{GUEST_FS}]",
    "wrfsbase rax",
    "mov rcx, qword ptr [{XSAVE_AREA}]",
    "mov eax, dword ptr [{XSAVE_MASK}]",
    "mov edx, dword ptr [{XSAVE_MASK} + 4]",
    "xrstor64 [rcx]",
    "push qword ptr [{RFLAGS}]",
    "popfq",
    "mov rax, qword ptr [{GPR} + 0x00]",
    "mov rcx, qword ptr [{GPR} + 0x08]",
    "mov rdx, qword ptr [{GPR} + 0x10]",
    "mov rbx, qword ptr [{GPR} + 0x18]",
    "mov rsp, qword ptr [{GPR} + 0x20]",
    "mov rbp, qword ptr [{GPR} + 0x28]",
    "mov rsi, qword ptr [{GPR} + 0x30]",
    "mov rdi, qword ptr [{GPR} + 0x38]",
    "mov r8,  qword ptr [{GPR} + 0x40]",
    "mov r9,  qword ptr [{GPR} + 0x48]",
    "mov r10, qword ptr [{GPR} + 0x50]",
    "mov r11, qword ptr [{GPR} + 0x58]",
    "mov r12, qword ptr [{GPR} + 0x60]",
    "mov r13, qword ptr [{GPR} + 0x68]",
    "mov r14, qword ptr [{GPR} + 0x70]",
    "mov r15, qword ptr [{GPR} + 0x78]",
    "jmp qword ptr [{ENTRY}]",
    // Guest code jumps here with its registers and flags live.
    ".balign 16",
    ".global verdict_exit",
    "verdict_exit:",
    "mov qword ptr [{GPR} + 0x00], rax",
    "mov qword ptr [{GPR} + 0x08], rcx",
    "mov qword ptr [{GPR} + 0x10], rdx",
    "mov qword ptr [{GPR} + 0x18], rbx",
    "mov qword ptr [{GPR} + 0x20], rsp",
    "mov qword ptr [{GPR} + 0x28], rbp",
    "mov qword ptr [{GPR} + 0x30], rsi",
    "mov qword ptr [{GPR} + 0x38], rdi",
    "mov qword ptr [{GPR} + 0x40], r8",
    "mov qword ptr [{GPR} + 0x48], r9",
    "mov qword ptr [{GPR} + 0x50], r10",
    "mov qword ptr [{GPR} + 0x58], r11",
    "mov qword ptr [{GPR} + 0x60], r12",
    "mov qword ptr [{GPR} + 0x68], r13",
    "mov qword ptr [{GPR} + 0x70], r14",
    "mov qword ptr [{GPR} + 0x78], r15",
    "mov rsp, qword ptr [{HOST_RSP}]",
    "pushfq",
    "pop qword ptr [{RFLAGS}]",
    "push 2",
    "popfq",
    "rdfsbase rax",
    "mov qword ptr [{GUEST_FS}], rax",
    "mov rcx, qword ptr [{XSAVE_AREA}]",
    "mov eax, dword ptr [{XSAVE_MASK}]",
    "mov edx, dword ptr [{XSAVE_MASK} + 4]",
    "xsave64 [rcx]",
    // The signal handler resumes here after a fault: guest state is already in the context.
    ".global verdict_landing",
    "verdict_landing:",
    "cmp qword ptr [{HAS_AVX}], 0",
    "je 2f",
    "vzeroupper",
    "2:",
    "fninit",
    "ldmxcsr [rsp]",
    "fldcw [rsp + 4]",
    "mov rax, qword ptr [{HOST_FS}]",
    "wrfsbase rax",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    // Second-level lookup. In: the guest's rcx in borrowed[0], the target in borrowed[1]; everything else live.
    ".balign 16",
    ".global verdict_lookup",
    "verdict_lookup:",
    "mov qword ptr [{BORROWED} + 0x10], rax",
    "lahf",
    "seto al",
    "mov qword ptr [{BORROWED} + 0x18], rdx",
    "mov rcx, qword ptr [{BORROWED} + 0x08]",
    "mov qword ptr [{TARGET}], rcx",
    "mov rdx, rcx",
    "shr rdx, 16",
    "xor rdx, rcx",
    "and edx, {TABLE2_MASK}",
    "shl edx, 4",
    "cmp qword ptr [rdx + {TABLE2}], rcx",
    "jne 3f",
    "mov rdx, qword ptr [rdx + {TABLE2} + 8]",
    "movzx ecx, cx",
    "mov qword ptr [rcx*8 + {TABLE1}], rdx",
    "mov qword ptr [{ENTRY}], rdx",
    "add al, 0x7f",
    "sahf",
    "mov rax, qword ptr [{BORROWED} + 0x10]",
    "mov rdx, qword ptr [{BORROWED} + 0x18]",
    "jmp qword ptr [{ENTRY}]",
    "3:",
    "add al, 0x7f",
    "sahf",
    "mov rax, qword ptr [{BORROWED} + 0x10]",
    "mov rcx, qword ptr [{BORROWED} + 0x00]",
    "mov rdx, qword ptr [{BORROWED} + 0x18]",
    "mov qword ptr [{EXIT_REASON}], {INDIRECT}",
    "mov qword ptr [{ENTRY}], {LEAVE}",
    "jmp qword ptr [{ENTRY}]",
    HOST_RSP = const offset::HOST_RSP,
    ENTRY = const offset::ENTRY,
    GUEST_FS = const offset::GUEST_FS,
    HOST_FS = const offset::HOST_FS,
    XSAVE_AREA = const offset::XSAVE_AREA,
    XSAVE_MASK = const offset::XSAVE_MASK,
    RFLAGS = const offset::RFLAGS,
    GPR = const offset::gpr(0),
    HAS_AVX = const offset::HAS_AVX,
    BORROWED = const offset::borrowed(0),
    TARGET = const offset::TARGET,
    EXIT_REASON = const offset::EXIT_REASON,
    INDIRECT = const ExitReason::Indirect as u32,
    LEAVE = const layout::CACHE_LEAVE as u32,
    TABLE1 = const layout::TABLE1 as u32,
    TABLE2 = const layout::TABLE2 as u32,
    TABLE2_MASK = const (layout::TABLE2_ENTRIES - 1) as u32,
);

unsafe extern "C" {
    fn verdict_enter(code: u64);
    fn verdict_exit();
    fn verdict_landing();
    fn verdict_lookup();
}

/// Addresses that translated code and the signal handler jump to.
#[derive(Clone, Copy, Debug)]
pub struct EntryPoints {
    /// Leaves guest code; goes to [`crate::Context::exit_routine`].
    pub exit: u64,
    /// Where the signal handler resumes after a fault in guest code.
    pub landing: u64,
    /// Second-level lookup; goes to [`crate::Context::lookup_routine`].
    pub lookup: u64,
}

/// The addresses of this binary's routines.
pub fn entry_points() -> EntryPoints {
    EntryPoints {
        exit: verdict_exit as *const () as u64,
        landing: verdict_landing as *const () as u64,
        lookup: verdict_lookup as *const () as u64,
    }
}

/// Runs code with the guest's state until it jumps to the exit routine.
///
/// # Safety
/// The context is mapped at [`layout::CONTEXT`] and complete (registers, vector area, masks, routines, tables),
/// there is code at `code`, and the caller's thread is the only one that
/// uses the context. The guest may do anything to memory: callers keep nothing they rely on in guest memory.
pub unsafe fn enter(code: u64) {
    // SAFETY: as above; `verdict_enter` follows the C calling convention.
    unsafe { verdict_enter(code) }
}

/// Runs translated code, with the context's budget, until it leaves through one of its exits.
///
/// # Safety
/// As for [`enter`]; and `code` is the address of a published fragment of the code cache.
pub unsafe fn enter_translated(code: u64) {
    // SAFETY: the context is mapped, as the caller says; the cache has its way in at a fixed address.
    unsafe {
        *(offset::RESUME as usize as *mut u64) = code;
        verdict_enter(layout::CACHE_ENTER);
    }
}

/// The gs base, which stays the guest's all the time.
pub fn read_gs_base() -> u64 {
    let base: u64;
    // SAFETY: reads a register; the executor refuses to start where FSGSBASE is off.
    unsafe { asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}

/// Sets the gs base for the guest thread that runs next.
pub fn write_gs_base(base: u64) {
    // SAFETY: host code never uses gs.
    unsafe { asm!("wrgsbase {}", in(reg) base, options(nomem, nostack, preserves_flags)) };
}

global_asm!(
    // fn verdict_vfork(child, argument) -> pid: the child calls `child(argument)`, which never returns, on the part of
    // this stack that the suspended parent does not use.
    ".balign 16",
    ".global verdict_vfork",
    "verdict_vfork:",
    "push rbx",
    "mov eax, 58",
    "syscall",
    "test rax, rax",
    "jnz 4f",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "ud2",
    "4:",
    "pop rbx",
    "ret",
);

unsafe extern "C" {
    fn verdict_vfork(child: extern "C" fn(u64) -> !, argument: u64) -> i64;
}

/// Creates a process that shares this one's memory and runs `child(argument)` while this one is suspended.
/// Returns the child's pid, or a negative errno, once the child has executed something or ended.
///
/// # Safety
/// `child` must not return or unwind, and whatever it changes in memory stays changed for the caller.
pub unsafe fn vfork(child: extern "C" fn(u64) -> !, argument: u64) -> i64 {
    // SAFETY: the assembly keeps the parent's frames intact: the child only uses the stack below them.
    unsafe { verdict_vfork(child, argument) }
}
