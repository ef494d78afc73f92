//! A virtual thread: its registers while it does not run, and what it waits for.

use crate::signals::{AltStack, SignalInfo};
use std::collections::VecDeque;
use verdict_cpu::Gpr;
use verdict_events::ThreadId;

/// The guest-visible registers of a thread, vector state apart.
#[derive(Clone, Debug, Default)]
pub struct Registers {
    /// General registers in x86 encoding order.
    pub gpr: [u64; 16],
    /// Instruction pointer.
    pub rip: u64,
    /// Flags.
    pub rflags: u64,
    /// fs base.
    pub fs_base: u64,
    /// gs base.
    pub gs_base: u64,
}

impl Registers {
    /// One general register.
    pub fn get(&self, register: Gpr) -> u64 {
        self.gpr[register as usize]
    }

    /// Sets one general register.
    pub fn set(&mut self, register: Gpr, value: u64) {
        self.gpr[register as usize] = value;
    }
}

/// Vector and floating-point state in the CPU's standard XSAVE format.
#[derive(Clone, Debug)]
pub struct VectorState {
    lines: Box<[Line]>,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl VectorState {
    /// The state of a fresh thread; `len` is the area's size on this host.
    pub fn initial(len: usize) -> Self {
        let mut state = VectorState {
            lines: vec![Line([0; 64]); len.div_ceil(64)].into(),
        };
        state.reset();
        state
    }

    /// Back to the state of a fresh thread.
    pub fn reset(&mut self) {
        self.bytes_mut().fill(0);
        // XRSTOR takes MXCSR from the area even where the SSE component is in its initial state.
        self.bytes_mut()[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
    }

    /// The area's bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `Line` is plain bytes without padding.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * 64) }
    }

    /// The area's bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `Line` is plain bytes without padding.
        unsafe {
            std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * 64)
        }
    }

    /// Where the area lies; 64-byte aligned, stable for the thread's life.
    pub fn address(&self) -> u64 {
        self.lines.as_ptr() as u64
    }
}

/// What a thread waits for. Deadlines are virtual nanoseconds of the monotonic clock.
#[derive(Clone, Debug)]
pub enum Wait {
    /// A wake of this futex word.
    Futex {
        /// Address of the word.
        address: u64,
        /// Which wakes count.
        bitset: u32,
        /// When to give up.
        deadline: Option<u64>,
        /// Other processes may wake it: the word is in memory that they share.
        shared: bool,
    },
    /// The clock.
    Sleep {
        /// Until when.
        deadline: u64,
    },
    /// Descriptors of the host becoming ready; the system call is tried again then.
    Descriptors {
        /// What for.
        polls: Vec<(i32, i16)>,
        /// When to try a last time.
        deadline: Option<u64>,
    },
    /// A child process changing state; the system call is tried again then.
    Child,
    /// A signal of the set (`sigtimedwait`), or any that is delivered (`pause`, `sigsuspend`: empty set).
    Signal {
        /// Signals that end the wait without being delivered.
        set: u64,
        /// When to give up.
        deadline: Option<u64>,
    },
}

impl Wait {
    /// When the wait ends by itself.
    pub fn deadline(&self) -> Option<u64> {
        match self {
            Wait::Sleep { deadline } => Some(*deadline),
            Wait::Futex { deadline, .. }
            | Wait::Descriptors { deadline, .. }
            | Wait::Signal { deadline, .. } => *deadline,
            Wait::Child => None,
        }
    }
}

/// Whether a thread can run.
#[derive(Clone, Debug)]
pub enum State {
    /// It can.
    Runnable,
    /// It waits, inside a system call.
    Waiting(Wait),
    /// It is gone.
    Exited,
}

/// A system call that has begun and not returned.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its number.
    pub number: u64,
    /// Its arguments.
    pub args: [u64; 6],
    /// When it times out, once it has waited.
    pub deadline: Option<u64>,
    /// Bytes already transferred by a blocking write.
    pub progress: u64,
    /// The deadline has passed.
    pub timed_out: bool,
}

/// One virtual thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Dense number, in order of creation.
    pub id: ThreadId,
    /// The tid the guest sees.
    pub tid: i32,
    /// Registers while it does not run.
    pub registers: Registers,
    /// Vector state while it does not run.
    pub vectors: VectorState,
    /// Whether it can run.
    pub state: State,
    /// Guest instructions retired.
    pub retired: u64,
    /// Blocked signals.
    pub signal_mask: u64,
    /// Mask to return to after `sigsuspend` and the like.
    pub saved_mask: Option<u64>,
    /// Signals sent to this thread.
    pub pending: VecDeque<SignalInfo>,
    /// Alternate signal stack.
    pub alt_stack: AltStack,
    /// Head of the robust list, and its size.
    pub robust_list: (u64, u64),
    /// Cleared and woken when the thread ends.
    pub clear_child_tid: u64,
    /// Name as set by prctl.
    pub name: [u8; 16],
    /// System call under way.
    pub call: Option<Call>,
}

impl Thread {
    /// The first thread of a program.
    pub fn first(tid: i32, registers: Registers, vector_len: usize) -> Self {
        Thread {
            id: ThreadId(0),
            tid,
            registers,
            vectors: VectorState::initial(vector_len),
            state: State::Runnable,
            retired: 0,
            signal_mask: 0,
            saved_mask: None,
            pending: VecDeque::new(),
            alt_stack: AltStack::default(),
            robust_list: (0, 0),
            clear_child_tid: 0,
            name: [0; 16],
            call: None,
        }
    }

    /// True if it can run.
    pub fn is_runnable(&self) -> bool {
        matches!(self.state, State::Runnable)
    }

    /// True if it is gone.
    pub fn is_exited(&self) -> bool {
        matches!(self.state, State::Exited)
    }

    /// Ends a wait with the call's result.
    pub fn complete(&mut self, result: i64) {
        self.registers.set(Gpr::Rax, result as u64);
        self.call = None;
        self.state = State::Runnable;
    }
}
