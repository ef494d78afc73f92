//! One basic block, from guest bytes to host code.

use crate::accesses::{AccessLog, LoggedAccess, prefix_with_free_registers};
use crate::emit::{Emitter, Forward};
use crate::flags;
use crate::operands::{
    free_legacy_register, free_register, load_branch_target, load_branch_target_at_rcx,
    names_high_byte, register_of, register_of_32, registers_used,
};
use iced_x86::{
    Code, Decoder, DecoderError, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, Register,
};
use verdict_cpu::{ExitReason, Gpr, layout, offset};

/// Longest block, in guest instructions.
pub const BLOCK_INSTRUCTIONS_MAX: usize = 64;

/// What translated code does besides running the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Instrumentation {
    /// Nothing.
    #[default]
    None,
    /// Every access goes to the log.
    Accesses,
}

/// How much is translated, and how the code may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A block that stays in the cache, checks the budget and can be linked.
    Cached {
        /// Number of the block's first link.
        first_link: u32,
    },
    /// Exactly so many instructions (or fewer, up to a branch), run once; the engine does the counting.
    OneOff {
        /// At least 1.
        instructions: u32,
    },
}

/// What to translate.
pub struct Request<'a> {
    /// Guest address.
    pub pc: u64,
    /// Where the host code will run.
    pub code_address: u64,
    /// Identifies the block in the access log; below 2^31.
    pub block_id: u32,
    /// How much.
    pub scope: Scope,
    /// With what extras.
    pub instrumentation: Instrumentation,
    /// Reads guest code: fills the buffer from an address, returns how many bytes are executable there.
    pub fetch: &'a dyn Fn(u64, &mut [u8]) -> usize,
}

/// A direct branch out of a block. Until it is linked it leads to its own stub.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Guest address it goes to.
    pub target: u64,
    /// Offset in the block of the rel32 to patch.
    pub patch: u32,
    /// Offset in the block of the stub, to unlink again.
    pub stub: u32,
}

/// Which registers are kept in which slot of [`verdict_cpu::Context::borrowed`] at some point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Borrowed([Option<u8>; 6]);

impl Borrowed {
    pub(crate) fn lend(&mut self, slot: usize, register: Gpr) {
        self.0[slot] = Some(register as u8);
    }

    pub(crate) fn give_back(&mut self, slot: usize) {
        self.0[slot] = None;
    }

    /// Pairs of (slot, register number) that are borrowed.
    pub fn slots(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.0
            .iter()
            .enumerate()
            .filter_map(|(slot, register)| register.map(|r| (slot, usize::from(r))))
    }
}

/// From this host offset on, host code belongs to this guest instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultEntry {
    /// Offset in the block's host code.
    pub host: u32,
    /// Offset of the guest instruction from the block's pc.
    pub guest: u16,
    /// Guest instructions of the block retired before it.
    pub retired: u16,
    /// Registers to be restored if the CPU faults here.
    pub borrowed: Borrowed,
}

/// A translated block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Guest address of the first instruction.
    pub pc: u64,
    /// Bytes of guest code.
    pub guest_len: u32,
    /// Guest instructions.
    pub instructions: u32,
    /// Host code for [`Request::code_address`].
    pub code: Vec<u8>,
    /// Direct branches, numbered from [`Scope::Cached::first_link`].
    pub links: Vec<Link>,
    /// By host offset, ascending.
    pub faults: Vec<FaultEntry>,
    /// What the block logs, in order.
    pub accesses: Vec<LoggedAccess>,
    /// Words that one run adds to the access log; 0 without logging.
    pub log_words: u32,
}

/// Why a block cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TranslateError {
    /// There is no executable guest memory at the address: the guest gets SIGSEGV.
    #[error("no executable memory at {address:#x}")]
    Fetch {
        /// The first byte that is missing.
        address: u64,
    },
}

/// What ends a block.
enum Terminator {
    /// Falls through to the next address (length limit).
    Next,
    /// A branch, call or return: the last decoded instruction.
    Branch(Instruction),
    /// `syscall`.
    Syscall(Instruction),
    /// The engine performs the instruction.
    Emulate(Instruction),
}

/// Translates the block at `request.pc`.
pub fn translate(request: &Request<'_>) -> Result<Block, TranslateError> {
    let mut info = InstructionInfoFactory::new();
    let (mut body, mut terminator) = decode(request)?;
    if request.instrumentation == Instrumentation::Accesses {
        let mut all = body.clone();
        if let Terminator::Branch(branch) = &terminator {
            all.push(*branch);
        }
        let fitting = prefix_with_free_registers(&mut info, &all);
        if fitting < all.len() {
            body.truncate(fitting.max(1));
            terminator = Terminator::Next;
        }
    }
    Ok(Builder::new(request, info).build(&body, &terminator))
}

fn decode(request: &Request<'_>) -> Result<(Vec<Instruction>, Terminator), TranslateError> {
    let limit = match request.scope {
        Scope::Cached { .. } => BLOCK_INSTRUCTIONS_MAX,
        Scope::OneOff { instructions } => BLOCK_INSTRUCTIONS_MAX.min(instructions as usize),
    };
    let mut body = Vec::with_capacity(limit);
    let mut pc = request.pc;
    let mut window = [0u8; 512];
    let mut window_pc = pc;
    let mut available = (request.fetch)(pc, &mut window);
    while body.len() < limit {
        if (pc - window_pc) as usize + 15 > available && available == window.len() {
            window_pc = pc;
            available = (request.fetch)(pc, &mut window);
        }
        let bytes = &window[(pc - window_pc) as usize..available];
        let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
        let instruction = decoder.decode();
        // Too few bytes left: the next page is not executable. An invalid encoding becomes one that faults as it should.
        if decoder.last_error() == DecoderError::NoMoreBytes {
            if body.is_empty() {
                return Err(TranslateError::Fetch {
                    address: window_pc + available as u64,
                });
            }
            return Ok((body, Terminator::Next));
        }
        match classify(&instruction) {
            Class::Plain => body.push(instruction),
            Class::Branch => return Ok((body, Terminator::Branch(instruction))),
            Class::Syscall => return Ok((body, Terminator::Syscall(instruction))),
            Class::Emulate => return Ok((body, Terminator::Emulate(instruction))),
        }
        pc = instruction.next_ip();
        if instruction.is_invalid() {
            break;
        }
    }
    Ok((body, Terminator::Next))
}

enum Class {
    Plain,
    Branch,
    Syscall,
    Emulate,
}

fn classify(instruction: &Instruction) -> Class {
    use Mnemonic::*;
    match instruction.mnemonic() {
        Syscall => return Class::Syscall,
        Cpuid | Rdtsc | Rdtscp | Rdrand | Rdseed | Rdpid | Xgetbv | Sysenter | Sysexit | Sysret
        | Xbegin | Xend | Xabort | Xtest | Retf | Iret | Iretd | Iretq => return Class::Emulate,
        _ => {}
    }
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Exception => Class::Plain,
        FlowControl::Interrupt => match instruction.code() {
            Code::Int3 => Class::Plain,
            _ => Class::Emulate,
        },
        FlowControl::Return => match instruction.code() {
            Code::Retnq | Code::Retnq_imm16 => Class::Branch,
            _ => Class::Emulate,
        },
        FlowControl::IndirectBranch | FlowControl::IndirectCall => match instruction.code() {
            Code::Jmp_rm64 | Code::Call_rm64 => Class::Branch,
            _ => Class::Emulate,
        },
        FlowControl::UnconditionalBranch | FlowControl::Call => match instruction.code() {
            Code::Jmp_rel8_64 | Code::Jmp_rel32_64 | Code::Call_rel32_64 => Class::Branch,
            _ => Class::Emulate,
        },
        FlowControl::ConditionalBranch => {
            if instruction.is_jcc_short_or_near()
                || instruction.is_jcx_short()
                || instruction.is_loop()
                || instruction.is_loopcc()
            {
                Class::Branch
            } else {
                Class::Emulate
            }
        }
        FlowControl::XbeginXabortXend => Class::Emulate,
    }
}

struct Builder<'a> {
    request: &'a Request<'a>,
    info: InstructionInfoFactory,
    emit: Emitter,
    faults: Vec<FaultEntry>,
    links: Vec<Link>,
    pending_links: Vec<(Forward, u64)>,
    borrowed: Borrowed,
    log: Option<AccessLog>,
}

impl<'a> Builder<'a> {
    fn new(request: &'a Request<'a>, info: InstructionInfoFactory) -> Self {
        Builder {
            request,
            info,
            emit: Emitter::new(request.code_address),
            faults: Vec::new(),
            links: Vec::new(),
            pending_links: Vec::new(),
            borrowed: Borrowed::default(),
            log: None,
        }
    }

    fn build(mut self, body: &[Instruction], terminator: &Terminator) -> Block {
        let last = match terminator {
            Terminator::Next => None,
            Terminator::Branch(i) | Terminator::Syscall(i) | Terminator::Emulate(i) => Some(*i),
        };
        let all: Vec<Instruction> = body.iter().copied().chain(last).collect();
        let count = all.len() as u32;
        let end = all.last().map_or(self.request.pc, Instruction::next_ip);
        self.mark(self.request.pc, 0);
        let budget = self.check_budget(&all, count);
        if self.request.instrumentation == Instrumentation::Accesses {
            // A system call or emulated instruction comes after the log is closed.
            let logged = match terminator {
                Terminator::Branch(_) => &all,
                _ => body,
            };
            self.log = AccessLog::open(
                &mut self.emit,
                &mut self.info,
                logged,
                self.request.block_id,
                &mut self.borrowed,
            );
        }
        for (number, instruction) in body.iter().enumerate() {
            self.body_instruction(number as u16, instruction);
        }
        self.terminate(body.len() as u16, terminator, end);
        self.stubs(budget, count);
        let log_words = self.log.as_ref().map_or(0, |log| u32::from(log.words));
        Block {
            pc: self.request.pc,
            guest_len: (end - self.request.pc) as u32,
            instructions: count,
            code: self.emit.bytes,
            links: self.links,
            faults: self.faults,
            accesses: self.log.map(|log| log.accesses).unwrap_or_default(),
            log_words,
        }
    }

    /// From here on, host code belongs to the guest instruction at `pc`.
    fn mark(&mut self, pc: u64, retired: u16) {
        self.faults.push(FaultEntry {
            host: self.emit.offset() as u32,
            guest: (pc - self.request.pc) as u16,
            retired,
            borrowed: self.borrowed,
        });
    }

    /// Takes the block's length off the budget; returns the way out for when it does not suffice.
    fn check_budget(&mut self, all: &[Instruction], count: u32) -> Option<BudgetExit> {
        if matches!(self.request.scope, Scope::OneOff { .. }) {
            return None;
        }
        let emit = &mut self.emit;
        if flags::dead_at_start(all, self.request.fetch) {
            emit.subtract(offset::BUDGET, count);
            return Some(BudgetExit::FlagsDead(emit.jump_if(CONDITION_SIGN)));
        }
        emit.store(offset::borrowed(0), Gpr::Rcx);
        emit.load(Gpr::Rcx, offset::BUDGET);
        emit.lea_self(Gpr::Rcx, -(count as i32));
        emit.store(offset::BUDGET, Gpr::Rcx);
        // The top byte is 0 unless the budget went below zero: budgets stay under 2^56.
        emit.load_byte_rcx(offset::BUDGET + 7);
        emit.raw(&[0xe3, 5]); // jrcxz over the jump
        let out = emit.jump();
        emit.load(Gpr::Rcx, offset::borrowed(0));
        Some(BudgetExit::FlagsLive(out))
    }

    fn body_instruction(&mut self, number: u16, instruction: &Instruction) {
        if let Some(log) = &mut self.log {
            log.before(&mut self.emit, &mut self.info, number, instruction);
        }
        self.mark(instruction.ip(), number);
        if instruction.is_invalid() {
            self.emit.raw(&[0x0f, 0x0b]); // ud2: the CPU would refuse the original too
        } else if instruction.is_ip_rel_memory_operand() {
            self.rip_relative(number, instruction);
        } else {
            let bytes = self.guest_bytes(instruction);
            self.emit.raw(&bytes[..instruction.len()]);
        }
        if let Some(log) = &mut self.log {
            log.after(&mut self.info, instruction);
        }
    }

    fn guest_bytes(&self, instruction: &Instruction) -> [u8; 15] {
        let mut bytes = [0u8; 15];
        (self.request.fetch)(instruction.ip(), &mut bytes[..instruction.len()]);
        bytes
    }

    /// The same operand from another rip: a patched displacement if it reaches, else through a borrowed register.
    fn rip_relative(&mut self, number: u16, instruction: &Instruction) {
        let mut bytes = self.guest_bytes(instruction);
        let target = instruction.ip_rel_memory_address();
        let distance = target.wrapping_sub(self.emit.here() + instruction.len() as u64) as i64;
        if instruction.memory_base() == Register::RIP
            && let Ok(near) = i32::try_from(distance)
        {
            let mut decoder = Decoder::with_ip(64, &bytes, instruction.ip(), DecoderOptions::NONE);
            let decoded = decoder.decode();
            let at = decoder.get_constant_offsets(&decoded).displacement_offset();
            bytes[at..at + 4].copy_from_slice(&near.to_le_bytes());
            self.emit.raw(&bytes[..instruction.len()]);
            return;
        }
        let used = registers_used(&mut self.info, instruction);
        let mut taken = used;
        for (_, register) in self.borrowed.slots() {
            taken.0 |= 1 << register;
        }
        let free = if names_high_byte(instruction) {
            free_legacy_register(taken)
        } else {
            free_register(taken)
        };
        let register = free.expect("no instruction uses all registers");
        self.emit.store(offset::borrowed(SLOT_FAR), register);
        self.emit.load_value(register, target);
        self.borrowed.lend(SLOT_FAR, register);
        self.mark(instruction.ip(), number);
        let mut moved = *instruction;
        // The address size stays: some instructions take it for other operands too (ENQCMD).
        moved.set_memory_base(match instruction.memory_base() {
            Register::EIP => register_of_32(register),
            _ => register_of(register),
        });
        moved.set_memory_displacement64(0);
        moved.set_memory_displ_size(0);
        self.emit
            .instruction(&moved)
            .expect("a base register reaches everything");
        self.borrowed.give_back(SLOT_FAR);
        self.emit.load(register, offset::borrowed(SLOT_FAR));
    }

    fn terminate(&mut self, number: u16, terminator: &Terminator, end: u64) {
        if let (Some(log), Terminator::Branch(branch)) = (&mut self.log, terminator) {
            log.before(&mut self.emit, &mut self.info, number, branch);
        }
        if let Some(log) = &self.log {
            log.close(&mut self.emit, &mut self.borrowed);
        }
        match terminator {
            Terminator::Next => self.go_to(end),
            Terminator::Syscall(instruction) => self
                .emit
                .exit_at(ExitReason::Syscall, instruction.next_ip()),
            Terminator::Emulate(instruction) => {
                self.emit.exit_at(ExitReason::Emulate, instruction.ip())
            }
            Terminator::Branch(branch) => {
                self.mark(branch.ip(), number);
                self.branch(number, branch);
            }
        }
    }

    fn branch(&mut self, number: u16, branch: &Instruction) {
        match branch.flow_control() {
            FlowControl::UnconditionalBranch => self.go_to(branch.near_branch_target()),
            FlowControl::Call => {
                self.emit.push_value(branch.next_ip());
                self.go_to(branch.near_branch_target());
            }
            FlowControl::ConditionalBranch => self.conditional(branch),
            FlowControl::Return => {
                self.emit.store(offset::borrowed(0), Gpr::Rcx);
                self.emit.raw(&[0x59]); // pop rcx
                if branch.code() == Code::Retnq_imm16 {
                    self.emit.lea_rsp(i32::from(branch.immediate16()));
                }
                self.go_to_rcx();
            }
            FlowControl::IndirectCall | FlowControl::IndirectBranch => {
                self.emit.store(offset::borrowed(0), Gpr::Rcx);
                self.load_target(number, branch);
                if branch.flow_control() == FlowControl::IndirectCall {
                    self.borrowed.lend(0, Gpr::Rcx);
                    self.mark(branch.ip(), number);
                    self.emit.push_value(branch.next_ip());
                    self.borrowed.give_back(0);
                }
                self.go_to_rcx();
            }
            other => unreachable!("{other:?} does not end a block as a branch"),
        }
    }

    /// Loads the target of an indirect branch into rcx, which is stored in slot 0.
    fn load_target(&mut self, number: u16, branch: &Instruction) {
        if load_branch_target(&mut self.emit, branch).is_some() {
            return;
        }
        // Only a rip-relative operand can be out of reach, and then rcx itself can carry its address.
        self.emit
            .load_value(Gpr::Rcx, branch.ip_rel_memory_address());
        self.borrowed.lend(0, Gpr::Rcx);
        self.mark(branch.ip(), number);
        self.borrowed.give_back(0);
        load_branch_target_at_rcx(&mut self.emit, branch);
    }

    fn conditional(&mut self, branch: &Instruction) {
        if branch.is_jcc_short_or_near() {
            let condition = branch.condition_code() as u8 - iced_x86::ConditionCode::o as u8;
            let taken = self.emit.jump_if(condition);
            self.pending_links
                .push((taken, branch.near_branch_target()));
            self.go_to(branch.next_ip());
            return;
        }
        // jrcxz and loop only come short: the original opcode with a distance of one jump.
        let bytes = self.guest_bytes(branch);
        self.emit.raw(&bytes[..branch.len() - 1]);
        self.emit.raw(&[5]);
        self.go_to(branch.next_ip());
        self.go_to(branch.near_branch_target());
    }

    /// A direct jump: linkable, or in a one-off block straight out (but always five bytes, for `conditional`).
    fn go_to(&mut self, target: u64) {
        let jump = self.emit.jump();
        self.pending_links.push((jump, target));
    }

    /// Jumps to the guest address in rcx; the guest's rcx is in slot 0.
    fn go_to_rcx(&mut self) {
        if matches!(self.request.scope, Scope::OneOff { .. }) {
            self.emit.store(offset::TARGET, Gpr::Rcx);
            self.emit.load(Gpr::Rcx, offset::borrowed(0));
            self.emit.exit(ExitReason::Indirect);
            return;
        }
        self.emit.store(offset::borrowed(1), Gpr::Rdx);
        self.emit.raw(&[0x0f, 0xb7, 0xd1]); // movzx edx, cx
        self.emit.raw(&[0xff, 0x24, 0xd5]); // jmp [table + rdx*8]
        self.emit.raw(&(layout::TABLE1 as u32).to_le_bytes());
    }

    /// The cold ends of the block: links that are not made yet, and the budget's way out.
    fn stubs(&mut self, budget: Option<BudgetExit>, count: u32) {
        for (forward, target) in std::mem::take(&mut self.pending_links) {
            self.emit.bind(forward);
            let stub = self.emit.offset() as u32;
            match self.request.scope {
                Scope::OneOff { .. } => self.emit.exit_at(ExitReason::OneOff, target),
                Scope::Cached { first_link } => {
                    let link = first_link + self.links.len() as u32;
                    self.links.push(Link {
                        target,
                        patch: Emitter::patch_offset(forward),
                        stub,
                    });
                    self.emit.store_value(offset::EXIT_ARG, u64::from(link));
                    self.emit.exit(ExitReason::Link);
                }
            }
        }
        match budget {
            None => return,
            Some(BudgetExit::FlagsDead(out)) => {
                self.emit.bind(out);
                self.emit.add(offset::BUDGET, count);
            }
            Some(BudgetExit::FlagsLive(out)) => {
                self.emit.bind(out);
                self.emit.load(Gpr::Rcx, offset::BUDGET);
                self.emit.lea_self(Gpr::Rcx, count as i32);
                self.emit.store(offset::BUDGET, Gpr::Rcx);
                self.emit.load(Gpr::Rcx, offset::borrowed(0));
            }
        }
        self.emit.exit_at(ExitReason::Budget, self.request.pc);
    }
}

enum BudgetExit {
    FlagsDead(Forward),
    FlagsLive(Forward),
}

const CONDITION_SIGN: u8 = 8;
const SLOT_FAR: usize = 3;
