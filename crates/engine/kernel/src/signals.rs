//! Signals: dispositions, pending signals, and the frames that handlers run on.
//!
//! The layout of a frame is the kernel's, byte for byte, vector state included: handlers and unwinders look
//! into it.

use crate::memory::Memory;
use crate::thread::{Thread, VectorState};
use verdict_cpu::Gpr;

/// Number of signals.
pub const SIGNALS: usize = 64;
const SA_RESTORER: u64 = 0x0400_0000;
const RED_ZONE: u64 = 128;
const UCONTEXT_LEN: u64 = 304;
const SIGINFO_LEN: u64 = 128;
/// Return address, ucontext, siginfo.
const FRAME_LEN: u64 = 8 + UCONTEXT_LEN + SIGINFO_LEN;
const MASK_OFFSET: usize = 8 + 296;
const MCONTEXT_OFFSET: usize = 8 + 40;
const FP_XSTATE_MAGIC1: u32 = 0x4650_5853;
const FP_XSTATE_MAGIC2: u32 = 0x4650_5845;
const SW_RESERVED: usize = 464;
const XSTATE_BV: usize = 512;
const XSTATE_HEADER_END: usize = 576;
/// Flags that a handler may change: arithmetic, DF, TF, AC, RF as the kernel's FIX_EFLAGS.
const USER_FLAGS: u64 = 0x0005_0dd5;

/// Bit of a signal in a mask.
pub fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// What the guest wants done with a signal (`struct kernel_sigaction`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Action {
    pub handler: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: u64,
}

impl Action {
    /// True for SIG_IGN.
    pub fn ignores(&self) -> bool {
        self.handler == libc::SIG_IGN as u64
    }

    /// True for SIG_DFL.
    pub fn is_default(&self) -> bool {
        self.handler == libc::SIG_DFL as u64
    }
}

/// Alternate signal stack.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct AltStack {
    pub address: u64,
    pub len: u64,
    pub flags: i32,
}

impl AltStack {
    /// True if the stack pointer is on it.
    pub fn contains(&self, rsp: u64) -> bool {
        self.len != 0 && rsp > self.address && rsp <= self.address + self.len
    }
}

/// A signal on its way, with what `siginfo_t` says of it.
#[derive(Clone, Debug)]
pub struct SignalInfo {
    /// Its number.
    pub signal: i32,
    /// The kernel's layout.
    pub bytes: [u8; SIGINFO_LEN as usize],
    /// Trap number, error code and address for synchronous faults.
    pub fault: Option<(u64, u64, u64)>,
}

impl SignalInfo {
    /// A signal with nothing but a code.
    pub fn new(signal: i32, code: i32) -> Self {
        let mut bytes = [0; SIGINFO_LEN as usize];
        bytes[0..4].copy_from_slice(&signal.to_le_bytes());
        bytes[8..12].copy_from_slice(&code.to_le_bytes());
        SignalInfo {
            signal,
            bytes,
            fault: None,
        }
    }

    /// A signal sent by a process.
    pub fn from_process(signal: i32, code: i32, pid: i32, uid: u32) -> Self {
        let mut info = SignalInfo::new(signal, code);
        info.bytes[16..20].copy_from_slice(&pid.to_le_bytes());
        info.bytes[20..24].copy_from_slice(&uid.to_le_bytes());
        info
    }

    /// A fault at an address.
    pub fn from_fault(signal: i32, code: i32, address: u64, trap: u64, error: u64) -> Self {
        let mut info = SignalInfo::new(signal, code);
        info.bytes[16..24].copy_from_slice(&address.to_le_bytes());
        info.fault = Some((trap, error, address));
        info
    }

    /// `si_code`.
    pub fn code(&self) -> i32 {
        i32::from_le_bytes(self.bytes[8..12].try_into().expect("four bytes"))
    }
}

/// What happens by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultAction {
    /// The process ends.
    Terminate,
    /// Nothing.
    Ignore,
    /// The process stops.
    Stop,
}

/// The default action of a signal.
pub fn default_action(signal: i32) -> DefaultAction {
    match signal {
        libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH | libc::SIGCONT => DefaultAction::Ignore,
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => DefaultAction::Stop,
        _ => DefaultAction::Terminate,
    }
}

/// Pushes the frame of a handler and points the thread at it. `Err` if the stack cannot take it.
pub fn push_frame(
    memory: &mut Memory,
    thread: &mut Thread,
    info: &SignalInfo,
    action: &Action,
    xfeatures: u64,
) -> Result<(), i32> {
    let regs = &thread.registers;
    let mut sp = regs.get(Gpr::Rsp).wrapping_sub(RED_ZONE);
    let on_alt = thread.alt_stack.contains(regs.get(Gpr::Rsp));
    if action.flags & libc::SA_ONSTACK as u64 != 0 && thread.alt_stack.len != 0 && !on_alt {
        sp = thread.alt_stack.address + thread.alt_stack.len;
    }
    let vectors = thread.vectors.bytes();
    let fp = sp.wrapping_sub(vectors.len() as u64 + 4) & !63;
    let frame = (fp.wrapping_sub(FRAME_LEN) & !15).wrapping_sub(8);
    memory.write(fp, &fp_image(vectors, xfeatures))?;
    let mut bytes = vec![0; FRAME_LEN as usize];
    let mut put = |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(
        0,
        if action.flags & SA_RESTORER != 0 {
            action.restorer
        } else {
            0
        },
    );
    put(8, 7); // uc_flags: xstate present, ss valid and to be restored
    put(24, thread.alt_stack.address);
    put(32, thread.alt_stack.flags as u32 as u64);
    put(40, thread.alt_stack.len);
    for (slot, value) in machine_context(thread, info, fp).into_iter().enumerate() {
        put(MCONTEXT_OFFSET + 8 * slot, value);
    }
    put(MASK_OFFSET, thread.saved_mask.unwrap_or(thread.signal_mask));
    bytes[(8 + UCONTEXT_LEN) as usize..].copy_from_slice(&info.bytes);
    memory.write(frame, &bytes)?;

    thread.signal_mask = next_mask(thread.signal_mask, info.signal, action);
    thread.saved_mask = None;
    thread.vectors.reset();
    let regs = &mut thread.registers;
    regs.set(Gpr::Rsp, frame);
    regs.set(Gpr::Rdi, info.signal as u64);
    regs.set(Gpr::Rsi, frame + 8 + UCONTEXT_LEN);
    regs.set(Gpr::Rdx, frame + 8);
    regs.set(Gpr::Rax, 0);
    regs.rip = action.handler;
    regs.rflags &= !0x0001_0500; // DF, TF, RF
    Ok(())
}

fn next_mask(mask: u64, signal: i32, action: &Action) -> u64 {
    let own = if action.flags & libc::SA_NODEFER as u64 == 0 {
        bit(signal)
    } else {
        0
    };
    (mask | action.mask | own) & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP))
}

/// `struct sigcontext` as 64-bit words.
fn machine_context(thread: &Thread, info: &SignalInfo, fp: u64) -> [u64; 24] {
    use Gpr::*;
    let regs = &thread.registers;
    let (trap, error, address) = info.fault.unwrap_or((0, 0, 0));
    let mut words = [0; 24];
    for (slot, register) in [
        R8, R9, R10, R11, R12, R13, R14, R15, Rdi, Rsi, Rbp, Rbx, Rdx, Rax, Rcx, Rsp,
    ]
    .into_iter()
    .enumerate()
    {
        words[slot] = regs.get(register);
    }
    words[16] = regs.rip;
    words[17] = regs.rflags;
    words[18] = 0x002b_0000_0000_0033; // ss, fs, gs, cs
    words[19] = error;
    words[20] = trap;
    words[21] = thread.signal_mask;
    words[22] = address;
    words[23] = fp;
    words
}

fn fp_image(vectors: &[u8], xfeatures: u64) -> Vec<u8> {
    let mut image = vectors.to_vec();
    let len = vectors.len() as u32;
    image[SW_RESERVED..SW_RESERVED + 4].copy_from_slice(&FP_XSTATE_MAGIC1.to_le_bytes());
    image[SW_RESERVED + 4..SW_RESERVED + 8].copy_from_slice(&(len + 4).to_le_bytes());
    image[SW_RESERVED + 8..SW_RESERVED + 16].copy_from_slice(&xfeatures.to_le_bytes());
    image[SW_RESERVED + 16..SW_RESERVED + 20].copy_from_slice(&len.to_le_bytes());
    image.extend_from_slice(&FP_XSTATE_MAGIC2.to_le_bytes());
    image
}

/// `rt_sigreturn`: restores what the frame at the stack pointer says.
pub fn pop_frame(memory: &Memory, thread: &mut Thread, xfeatures: u64) -> Result<(), i32> {
    use Gpr::*;
    let frame = thread.registers.get(Rsp).wrapping_sub(8);
    let mut bytes = vec![0; FRAME_LEN as usize];
    memory.read(frame, &mut bytes)?;
    let get = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let word = |slot: usize| get(MCONTEXT_OFFSET + 8 * slot);
    let regs = &mut thread.registers;
    for (slot, register) in [
        R8, R9, R10, R11, R12, R13, R14, R15, Rdi, Rsi, Rbp, Rbx, Rdx, Rax, Rcx, Rsp,
    ]
    .into_iter()
    .enumerate()
    {
        regs.set(register, word(slot));
    }
    regs.rip = word(16);
    regs.rflags = regs.rflags & !USER_FLAGS | word(17) & USER_FLAGS & !0x100;
    thread.signal_mask = get(MASK_OFFSET) & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
    thread.alt_stack = AltStack {
        address: get(24),
        len: get(40),
        flags: get(32) as i32,
    };
    restore_vectors(memory, &mut thread.vectors, word(23), xfeatures)
}

fn restore_vectors(
    memory: &Memory,
    vectors: &mut VectorState,
    fp: u64,
    xfeatures: u64,
) -> Result<(), i32> {
    vectors.reset();
    if fp == 0 {
        return Ok(());
    }
    let mut image = vec![0; vectors.bytes().len()];
    memory.read(fp, &mut image)?;
    // A corrupted header would make XRSTOR fault in the engine; the kernel falls back to the legacy part too.
    let mxcsr = u32::from_le_bytes(image[24..28].try_into().expect("four bytes")) & 0xffff;
    image[24..28].copy_from_slice(&mxcsr.to_le_bytes());
    let present = u64::from_le_bytes(
        image[XSTATE_BV..XSTATE_BV + 8]
            .try_into()
            .expect("eight bytes"),
    ) & xfeatures;
    image[XSTATE_BV..XSTATE_BV + 8].copy_from_slice(&present.to_le_bytes());
    image[XSTATE_BV + 8..XSTATE_HEADER_END].fill(0);
    vectors.bytes_mut().copy_from_slice(&image);
    Ok(())
}
