//! The entry of every host signal: makes the thread fit for Rust, asks the engine, and resumes.
//!
//! A host signal may arrive while the guest's fs base and flags are loaded, so the kernel calls an assembly
//! entry first. The engine's answer says how to go on: as if nothing happened, at the landing (leaving guest
//! code), or at the failure path of a guest copy.

use crate::context::offset;
use crate::{copy, enter};
use std::arch::global_asm;
use std::sync::OnceLock;

global_asm!(
    ".balign 16",
    ".global verdict_signal_entry",
    "verdict_signal_entry:",
    "push 2",
    "popfq",
    "push rbx",
    "rdfsbase rbx",
    "mov rax, qword ptr [{HOST_FS}]",
    "wrfsbase rax",
    "mov rcx, rbx",
    "call {handler}",
    "wrfsbase rbx",
    "pop rbx",
    "ret",
    HOST_FS = const offset::HOST_FS,
    handler = sym on_signal,
);

unsafe extern "C" {
    fn verdict_signal_entry();
}

/// What the engine wants after a host signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignalVerdict {
    /// Continue where the signal arrived.
    Resume,
    /// Leave guest code: the handler has put the guest's state into the context.
    LeaveGuest,
}

/// A host signal as the engine's handler sees it.
#[derive(Debug)]
pub struct HostSignalFrame<'a> {
    /// Signal number.
    pub signal: i32,
    /// The kernel's `siginfo_t`.
    pub info: &'a libc::siginfo_t,
    /// Interrupted registers; changes take effect on return.
    pub context: &'a mut libc::ucontext_t,
    /// fs base at arrival.
    pub fs_base: u64,
}

/// Where the kernel keeps the general registers, in x86 encoding order.
const GPRS: [i32; 16] = {
    use libc::*;
    [
        REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9,
        REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
    ]
};

impl HostSignalFrame<'_> {
    /// Interrupted instruction pointer.
    pub fn rip(&self) -> u64 {
        self.context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64
    }

    /// The general registers in x86 encoding order.
    pub fn gprs(&self) -> [u64; 16] {
        GPRS.map(|r| self.context.uc_mcontext.gregs[r as usize] as u64)
    }

    /// Changes one of them.
    pub fn set_gpr(&mut self, index: usize, value: u64) {
        self.context.uc_mcontext.gregs[GPRS[index] as usize] = value as i64;
    }

    /// Goes on elsewhere.
    pub fn set_rip(&mut self, rip: u64) {
        self.context.uc_mcontext.gregs[libc::REG_RIP as usize] = rip as i64;
    }

    /// Goes on with other flags.
    pub fn set_rflags(&mut self, rflags: u64) {
        self.context.uc_mcontext.gregs[libc::REG_EFL as usize] = rflags as i64;
    }

    /// Interrupted flags.
    pub fn rflags(&self) -> u64 {
        self.context.uc_mcontext.gregs[libc::REG_EFL as usize] as u64
    }

    /// Address of the interrupted vector state in standard XSAVE format; 0 if the kernel gave none.
    pub fn xsave_area(&self) -> u64 {
        self.context.uc_mcontext.fpregs as u64
    }

    /// CPU's error code and trap number of a synchronous fault.
    pub fn trap(&self) -> (u64, u64) {
        let gregs = &self.context.uc_mcontext.gregs;
        (
            gregs[libc::REG_TRAPNO as usize] as u64,
            gregs[libc::REG_ERR as usize] as u64,
        )
    }
}

type Handler = fn(&mut HostSignalFrame<'_>) -> SignalVerdict;
static HANDLER: OnceLock<Handler> = OnceLock::new();

extern "C" fn on_signal(
    signal: i32,
    info: *const libc::siginfo_t,
    context: *mut libc::ucontext_t,
    fs_base: u64,
) {
    // SAFETY: the kernel passes valid pointers to a SA_SIGINFO handler; nobody else refers to them.
    let (info, context) = unsafe { (&*info, &mut *context) };
    let mut frame = HostSignalFrame {
        signal,
        info,
        context,
        fs_base,
    };
    if let Some(failed) = copy::recovery(frame.rip())
        && matches!(signal, libc::SIGSEGV | libc::SIGBUS)
    {
        frame.context.uc_mcontext.gregs[libc::REG_RIP as usize] = failed as i64;
        return;
    }
    let Some(handler) = HANDLER.get() else { return };
    if handler(&mut frame) == SignalVerdict::LeaveGuest {
        leave_guest(frame.context);
    }
}

/// Makes the return from the signal continue at the landing, on the host stack, with clean flags.
fn leave_guest(context: &mut libc::ucontext_t) {
    // SAFETY: the context is mapped before the first signal entry is installed.
    let host_rsp = unsafe { *(offset::HOST_RSP as usize as *const u64) };
    let gregs = &mut context.uc_mcontext.gregs;
    gregs[libc::REG_RIP as usize] = enter::entry_points().landing as i64;
    gregs[libc::REG_RSP as usize] = host_rsp as i64;
    gregs[libc::REG_EFL as usize] = 0x202;
}

/// Gives this thread the stack on which host signals are handled.
pub fn set_signal_stack(stack: &'static mut [u8]) -> std::io::Result<()> {
    let description = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: stack.len(),
    };
    // SAFETY: the memory is 'static and handed over exclusively.
    match unsafe { libc::sigaltstack(&description, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Routes a host signal through the assembly entry to `handler` (the same for all signals).
pub fn install_signal_entry(signal: i32, handler: Handler) -> std::io::Result<()> {
    HANDLER.get_or_init(|| handler);
    // SAFETY: all-zero is a valid sigaction; the entry follows the kernel's calling convention for SA_SIGINFO.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = verdict_signal_entry as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigfillset(&mut action.sa_mask);
        // A fault inside the handler must not be masked: it would kill the process without a report.
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE] {
            libc::sigdelset(&mut action.sa_mask, fault);
        }
        match libc::sigaction(signal, &action, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}
