//! Native execution one instruction at a time, by the CPU's trap flag: the state after every instruction, and for
//! each one before it runs whether it may.

use crate::arena::is_off_limits;
use crate::forms::{Use, is_allowed, use_of};
use crate::program::Encoded;
use crate::state::{Fault, State};
use iced_x86::{
    Decoder, DecoderError, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register, UsedMemory,
};
use verdict_cpu::{Gpr, HostSignalFrame, SignalVerdict};

const TRAP_FLAG: u64 = 1 << 8;
/// Flags that a program must not set: the trap flag, and those that the kernel does not restore after a signal
/// (nested task, identification), so that stepping would lose them.
const UNRESTORED: u64 = TRAP_FLAG | 1 << 14 | 1 << 21;
const GENERAL_PROTECTION: u64 = 13;
const TRAP_TRACE: i32 = 2;
/// Longest repetition of a string instruction.
const REPEAT_MAX: u64 = 256;

/// How a stepped run ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// At the end of the program.
    Over,
    /// At the limit of steps, or before an instruction that must not run.
    Cut,
    /// The CPU refused the next instruction.
    Fault(Fault, Box<State>),
}

/// One memory access of one step, as the instruction's description and the registers before it say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    /// Number of the step, from 0.
    pub(crate) step: usize,
    pub(crate) address: u64,
    pub(crate) size: u32,
    pub(crate) access: OpAccess,
    pub(crate) locked: bool,
    /// Of a string instruction with a prefix.
    pub(crate) repeat: Option<u64>,
}

/// Follows a run.
#[derive(Debug)]
pub(crate) struct Stepper {
    program: Encoded,
    steps_max: usize,
    /// `states[k]` is the state after k instructions.
    pub(crate) states: Vec<State>,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) end: Option<End>,
}

impl Stepper {
    pub(crate) fn new(program: Encoded, steps_max: usize) -> Self {
        Stepper {
            program,
            steps_max,
            states: Vec::new(),
            instructions: Vec::new(),
            accesses: Vec::new(),
            end: None,
        }
    }

    pub(crate) fn on_signal(
        &mut self,
        frame: &mut HostSignalFrame<'_>,
        fault: Fault,
        state: State,
    ) -> SignalVerdict {
        let stepped = fault.signal == libc::SIGTRAP && fault.code == TRAP_TRACE;
        if self.states.is_empty() && state.rip != self.program.start {
            // Still on the way in.
            if stepped {
                return SignalVerdict::Resume;
            }
            eprintln!("error: {fault:?} before the guest's first instruction");
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(3) }
        }
        if !stepped && fault.trap == GENERAL_PROTECTION && self.is_told_apart() {
            self.end = Some(End::Cut);
            return SignalVerdict::LeaveGuest;
        }
        if !stepped {
            self.end = Some(End::Fault(fault, Box::new(state)));
            return SignalVerdict::LeaveGuest;
        }
        let verdict = self.stepped(state);
        let flags = &mut frame.context.uc_mcontext.gregs[libc::REG_EFL as usize];
        *flags |= TRAP_FLAG as i64;
        verdict
    }

    /// Where the engine knowingly refuses otherwise than the CPU: the CPU refuses the branch to a non-canonical address,
    /// the engine the fetch from there; and what is longer than 15 bytes is SIGSEGV to the CPU, SIGILL to the engine.
    fn is_told_apart(&self) -> bool {
        use iced_x86::FlowControl::*;
        self.instructions.last().is_some_and(|last| {
            last.is_invalid()
                || matches!(last.flow_control(), Return | IndirectBranch | IndirectCall)
        })
    }

    fn stepped(&mut self, mut state: State) -> SignalVerdict {
        if let (Some(last), Some(before)) = (self.instructions.last(), self.states.last()) {
            let resumes = is_repeated(last) || last.memory_index().is_vector_register();
            if resumes && state.rip == before.rip {
                // Between two repetitions, or two elements of a gather, the instruction has not retired.
                return SignalVerdict::Resume;
            }
            if matches!(
                last.mnemonic(),
                Mnemonic::Pushf | Mnemonic::Pushfd | Mnemonic::Pushfq
            ) {
                hide_trap_flag(&mut state);
            }
        }
        let instruction = self.decode(state.rip);
        let over = state.rip == self.program.end;
        let stop = over
            || self.states.len() >= self.steps_max
            || instruction.is_none_or(|instruction| !self.may_run(&instruction, &state));
        self.states.push(state);
        if stop {
            self.end = Some(if over { End::Over } else { End::Cut });
            return SignalVerdict::LeaveGuest;
        }
        self.instructions.extend(instruction);
        SignalVerdict::Resume
    }

    /// The instruction at an address; `None` where there is no code of ours that decodes, so that nothing runs that
    /// was not looked at.
    fn decode(&self, pc: u64) -> Option<Instruction> {
        let mut bytes = [0u8; 15];
        let at = pc.checked_sub(self.program.start)?;
        let left = (self.program.end - self.program.start).checked_sub(at)?;
        let len = self.program.fetch(pc, &mut bytes).min(left as usize);
        let mut decoder = Decoder::with_ip(64, &bytes[..len], pc, DecoderOptions::NONE);
        let instruction = decoder.decode();
        // A branch with an operand-size prefix goes to another place on AMD's CPUs, as only AMD's decoders know.
        let amd = Decoder::with_ip(64, &bytes[..len], pc, DecoderOptions::AMD).decode();
        // What is no instruction may be tried: the CPU must refuse it.
        let whole = decoder.last_error() != DecoderError::NoMoreBytes;
        (whole && amd.code() == instruction.code()).then_some(instruction)
    }

    fn may_run(&mut self, instruction: &Instruction, state: &State) -> bool {
        if !is_allowed(instruction)
            || (is_repeated(instruction) && state.gpr[Gpr::Rcx as usize] > REPEAT_MAX)
        {
            return false;
        }
        if matches!(
            instruction.mnemonic(),
            Mnemonic::Popf | Mnemonic::Popfd | Mnemonic::Popfq
        ) && read_u64(state, state.gpr[Gpr::Rsp as usize])
            .is_none_or(|flags| flags & UNRESTORED != 0)
        {
            return false;
        }
        if saves_state(instruction) && !all_components_present(state) {
            return false;
        }
        if self.program.is_made
            && use_of(instruction.code()) == Use::SavesEnvironment
            && self.has_used_x87()
        {
            return false;
        }
        self.accesses_allowed(instruction, state)
    }

    /// Whether the address of the last x87 instruction is the host's by now. Programs are made so that it is not where it
    /// is saved, but a branch into the middle of an instruction may find others there.
    fn has_used_x87(&self) -> bool {
        let mut instructions = self.instructions.iter();
        instructions.any(|instruction| use_of(instruction.code()) == Use::X87)
    }

    /// Notes what the instruction is about to access; false if the test itself could be hit.
    fn accesses_allowed(&mut self, instruction: &Instruction, state: &State) -> bool {
        let mut info = InstructionInfoFactory::new();
        let repeat = is_repeated(instruction).then(|| state.gpr[Gpr::Rcx as usize]);
        for memory in info.info(instruction).used_memory() {
            let elements = if memory.index().is_vector_register() {
                16
            } else {
                1
            };
            for element in 0..elements {
                let address = virtual_address(memory, element, state)
                    .wrapping_add(bit_offset(instruction, state));
                let size = access_size(memory, instruction);
                // State-saving areas have no size of their own; strings go both ways.
                let reach = (size.max(4096)) * repeat.unwrap_or(0).max(1);
                if is_off_limits(address, reach)
                    || is_off_limits(address.saturating_sub(reach), reach)
                {
                    return false;
                }
                if elements == 1 && is_logged(memory, instruction) {
                    self.accesses.push(Access {
                        step: self.states.len(),
                        address,
                        size: size as u32,
                        access: memory.access(),
                        locked: instruction.has_lock_prefix()
                            || instruction.mnemonic() == Mnemonic::Xchg,
                        repeat,
                    });
                }
            }
        }
        true
    }
}

/// What the access log promises to hold: everything but a thread's own stack and segments, and gathers.
fn is_logged(memory: &UsedMemory, instruction: &Instruction) -> bool {
    let own = matches!(memory.segment(), Register::FS | Register::GS)
        || (memory.base().full_register() == Register::RSP && memory.index() == Register::None);
    let accessed = !matches!(memory.access(), OpAccess::None | OpAccess::NoMemAccess);
    !own && accessed && instruction.mnemonic() != Mnemonic::Nop
}

fn saves_state(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Xsave | Xsave64 | Xsavec | Xsavec64 | Xsaveopt | Xsaveopt64
    )
}

/// XSAVE says which components are in use; the kernel's own saving and restoring between two steps may change the
/// answer for components in their initial state.
fn all_components_present(state: &State) -> bool {
    const LEGACY_AND_AVX: u8 = 0b111;
    state.vectors[512] & LEGACY_AND_AVX == LEGACY_AND_AVX
}

/// Bytes of an access; a string instruction is named for them.
fn access_size(memory: &UsedMemory, instruction: &Instruction) -> u64 {
    use Mnemonic::*;
    match instruction.mnemonic() {
        _ if !instruction.is_string_instruction() => memory.memory_size().size() as u64,
        Movsb | Cmpsb | Stosb | Lodsb | Scasb | Insb | Outsb => 1,
        Movsw | Cmpsw | Stosw | Lodsw | Scasw | Insw | Outsw => 2,
        Movsd | Cmpsd | Stosd | Lodsd | Scasd | Insd | Outsd => 4,
        _ => 8,
    }
}

/// True for string instructions under a REP prefix.
pub(crate) fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction()
        && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

/// Bit tests of memory reach beyond their operand.
fn bit_offset(instruction: &Instruction, state: &State) -> u64 {
    let tests = matches!(
        instruction.mnemonic(),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
    );
    if !tests
        || instruction.op0_kind() != OpKind::Memory
        || instruction.op1_kind() != OpKind::Register
    {
        return 0;
    }
    let register = instruction.op1_register();
    let value = register_value(state, register, 0, 0).unwrap_or(0);
    let signed = match register.size() {
        2 => value as i16 as i64,
        4 => value as i32 as i64,
        _ => value as i64,
    };
    let size = register.size() as i64;
    (signed.div_euclid(8 * size) * size) as u64
}

fn virtual_address(memory: &UsedMemory, element: usize, state: &State) -> u64 {
    memory
        .virtual_address(element, |register, index, size| {
            register_value(state, register, index, size)
        })
        .unwrap_or(0)
}

fn register_value(state: &State, register: Register, element: usize, size: usize) -> Option<u64> {
    match register {
        Register::ES | Register::CS | Register::SS | Register::DS => return Some(0),
        Register::FS => return Some(state.fs_base),
        Register::GS => return Some(state.gs_base),
        _ => {}
    }
    if register.is_vector_register() {
        return vector_element(state, register.number(), element, size);
    }
    let full = state.gpr[register.full_register().number()];
    Some(match register.size() {
        1 if matches!(
            register,
            Register::AH | Register::CH | Register::DH | Register::BH
        ) =>
        {
            full >> 8 & 0xff
        }
        1 => full & 0xff,
        2 => full & 0xffff,
        4 => full & 0xffff_ffff,
        _ => full,
    })
}

/// An index of a gather, from the XSAVE area (bytes from 32 on of a register are AVX-512's and count as 0).
fn vector_element(state: &State, register: usize, element: usize, size: usize) -> Option<u64> {
    const XMM: usize = 160;
    const YMM_HIGH: usize = 576;
    let at = element * size;
    let place = match at {
        0..16 => XMM + 16 * register + at,
        16..32 => YMM_HIGH + 16 * register + at - 16,
        _ => return Some(0),
    };
    let mut bytes = [0u8; 8];
    bytes[..size].copy_from_slice(&state.vectors[place..place + size]);
    Some(match size {
        4 => i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as i64 as u64,
        _ => u64::from_le_bytes(bytes),
    })
}

/// Eight bytes of the arena as they were.
fn read_u64(state: &State, address: u64) -> Option<u64> {
    let at = crate::arena::place(address, 8)?;
    Some(u64::from_le_bytes(
        state.memory[at..at + 8].try_into().expect("8 bytes"),
    ))
}

/// `pushf` under the trap flag pushes it; the guest never set it.
fn hide_trap_flag(state: &mut State) {
    let rsp = state.gpr[Gpr::Rsp as usize];
    if let Some(at) = crate::arena::place(rsp, 2) {
        state.memory[at + 1] &= !1;
        crate::arena::restore(&state.memory);
    }
}
