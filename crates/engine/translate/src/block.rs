//! One block, from guest bytes to host code.

use crate::accesses::{AccessLog, LoggedAccess, prefix_with_free_registers};
use crate::budget::{JRCXZ, SHORT_JUMP, better_cut, charge_point};
use crate::control::{ControlMark, registers_noted};
use crate::emit::{Emitter, Forward};
use crate::flags::Ahead;
use crate::operands::{
    GprSet, free_legacy_register, free_register, load_branch_target, load_branch_target_at_rcx,
    names_high_byte, register_of, register_of_32, registers_used,
};
use crate::trace::{Bytes, Step, Terminator, Way, Window, decode};
use iced_x86::{
    Code, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    Register,
};
use verdict_cpu::{ExitReason, Gpr, layout, offset};

/// Longest block, in guest instructions.
pub const BLOCK_INSTRUCTIONS_MAX: usize = 24;

/// What translated code does besides running the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Instrumentation {
    /// Nothing.
    #[default]
    None,
    /// Every access but those that are a thread's own by their form goes to the log.
    Accesses,
    /// Every access goes to the log, and what it takes to follow the stack of calls (see [`crate::ControlMark`]).
    Everything,
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
    /// Reads a word of guest data, to guess where a jump through it goes.
    pub read_word: &'a dyn Fn(u64) -> Option<u64>,
    /// Which way the conditional branch at an address usually goes, where that is known.
    pub usual_way: &'a dyn Fn(u64) -> Option<Way>,
    /// Whether the engine wants to look before the instruction at an address runs. A one-off block passes its first
    /// instruction, watched or not.
    pub watched: &'a dyn Fn(u64) -> bool,
    /// Whether a function begins at an address whose arguments are to be logged.
    pub noted: &'a dyn Fn(u64) -> bool,
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
    /// Guest instructions of the path that have run when it is taken.
    pub retired: u16,
    /// For a way off the path: the conditional branch, and the way that the path follows.
    pub leaves: Option<(u64, Way)>,
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
    /// Address of the guest instruction.
    pub pc: u64,
    /// Offset in the block's host code.
    pub host: u32,
    /// Guest instructions of the block retired before it.
    pub retired: u16,
    /// Whether the budget has been charged for the whole path by then; if not, for none of it.
    pub charged: bool,
    /// Words of the access log written before it, or 0 if the log is not open here.
    pub log_words: u16,
    /// Registers to be restored if the CPU faults here.
    pub borrowed: Borrowed,
}

/// A translated block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Guest address of the first instruction.
    pub pc: u64,
    /// Guest addresses and lengths of the instructions, neighbours joined.
    pub ranges: Vec<(u64, u32)>,
    /// Code on other pages that the translator looked at: if it changes, the translation is void as well.
    pub ahead: Vec<(u64, u32)>,
    /// Guest instructions on the whole path.
    pub instructions: u32,
    /// Host code for [`Request::code_address`].
    pub code: Vec<u8>,
    /// Direct branches, numbered from [`Scope::Cached::first_link`].
    pub links: Vec<Link>,
    /// By host offset, ascending.
    pub faults: Vec<FaultEntry>,
    /// What the block logs, in order.
    pub accesses: Vec<LoggedAccess>,
    /// Words in the access log after so many instructions (index: instructions retired); empty without logging.
    pub log_words: Vec<u16>,
    /// With [`Instrumentation::Everything`]: calls, returns and noted functions on the path, in order.
    pub control: Vec<ControlMark>,
    /// With [`Instrumentation::Everything`]: the addresses of the instructions on the path.
    pub pcs: Vec<u64>,
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

/// Translates the block at `request.pc`.
pub fn translate(request: &Request<'_>) -> Result<Block, TranslateError> {
    let mut info = InstructionInfoFactory::new();
    let mut code = Window::new(request);
    let (mut steps, mut terminator) = decode(request, &mut code)?;
    if request.instrumentation != Instrumentation::None {
        let instructions: Vec<Instruction> = steps
            .iter()
            .map(|step| *step.instruction())
            .chain(logged_branch(&terminator))
            .collect();
        let fitting = prefix_with_free_registers(&instructions, |instruction| {
            registers_logged(request, &mut info, instruction)
        });
        if fitting < instructions.len() {
            // Too many registers in use from there on: the next block starts afresh.
            steps.truncate(fitting.max(1));
            terminator =
                Terminator::Next(steps.last().expect("at least one instruction fits").next());
        }
    }
    let mut builder = Builder::new(request, info, code);
    if let Terminator::Next(pc) = terminator
        && matches!(request.scope, Scope::Cached { .. })
        && !builder.flags_dead_at(pc)
        && let Some(cut) = better_cut(&steps)
    {
        terminator = Terminator::Next(steps[cut].instruction().ip());
        steps.truncate(cut);
    }
    Ok(builder.build(&steps, &terminator))
}

/// Registers that the log must not borrow while the instruction is logged and runs.
fn registers_logged(
    request: &Request<'_>,
    info: &mut InstructionInfoFactory,
    instruction: &Instruction,
) -> GprSet {
    let used = registers_used(info, instruction);
    if request.instrumentation == Instrumentation::Everything {
        let noted = (request.noted)(instruction.ip());
        return used.union(registers_noted(instruction, noted));
    }
    used
}

/// The last instruction, if it runs while the log is open: a system call or emulated instruction comes after.
fn logged_branch(terminator: &Terminator) -> Option<Instruction> {
    match terminator {
        Terminator::Branch(branch) => Some(*branch),
        _ => None,
    }
}

/// A way out of the middle of a block.
struct SideExit {
    from: Forward,
    /// Guest instructions retired when it is taken.
    retired: u16,
    words: u16,
    /// Whether the whole path has been charged by then.
    charged: bool,
    /// Whether the log is open.
    logging: bool,
    to: SideTarget,
}

enum SideTarget {
    /// A known guest address, off the way that the path follows past the branch.
    Direct {
        target: u64,
        leaves: Option<(u64, Way)>,
    },
    /// rcx holds the guest target less this; the guest's rcx is in slot 0.
    Missed(u64),
}

pub(crate) struct Builder<'a> {
    pub(crate) request: &'a Request<'a>,
    info: InstructionInfoFactory,
    code: Window<'a>,
    /// Code beyond the path on which the translation depends.
    ahead: Vec<(u64, u32)>,
    pub(crate) emit: Emitter,
    /// Guest instructions of the whole path.
    pub(crate) count: u32,
    /// Whether the budget has been charged for all of them.
    pub(crate) charged: bool,
    faults: Vec<FaultEntry>,
    pub(crate) links: Vec<Link>,
    sides: Vec<SideExit>,
    borrowed: Borrowed,
    log: Option<AccessLog>,
    log_closed: bool,
    log_words: Vec<u16>,
    pcs: Vec<u64>,
}

impl<'a> Builder<'a> {
    fn new(request: &'a Request<'a>, info: InstructionInfoFactory, code: Window<'a>) -> Self {
        Builder {
            request,
            info,
            code,
            ahead: Vec::new(),
            emit: Emitter::new(request.code_address),
            count: 0,
            // The engine charges for a one-off block before it runs.
            charged: matches!(request.scope, Scope::OneOff { .. }),
            faults: Vec::with_capacity(BLOCK_INSTRUCTIONS_MAX + 2),
            links: Vec::new(),
            sides: Vec::new(),
            borrowed: Borrowed::default(),
            log: None,
            log_closed: false,
            log_words: Vec::new(),
            pcs: Vec::new(),
        }
    }

    fn build(mut self, steps: &[Step], terminator: &Terminator) -> Block {
        self.count = steps.len() as u32 + u32::from(terminator.instruction().is_some());
        self.mark(self.request.pc, 0);
        if let Terminator::Watch(pc) = *terminator {
            self.emit.exit_at(ExitReason::Watch, pc);
            return self.finish(vec![(pc, 1)]);
        }
        let charge_point = match self.charged {
            true => None,
            false => charge_point(steps, terminator),
        };
        if self.request.instrumentation != Instrumentation::None {
            self.open_log(steps, terminator);
        }
        for (number, step) in steps.iter().enumerate() {
            if charge_point == Some(number) {
                self.charge_path();
            }
            self.step(number as u16, step);
        }
        self.terminate(steps.len() as u16, terminator);
        self.stubs();
        if self.request.instrumentation == Instrumentation::Everything {
            let path = steps.iter().map(Step::instruction);
            let all = path.chain(terminator.instruction());
            self.pcs = all.map(Instruction::ip).collect();
        }
        let ranges = ranges(steps, terminator);
        self.ahead = on_other_pages(&ranges, &self.ahead);
        self.finish(ranges)
    }

    fn finish(self, ranges: Vec<(u64, u32)>) -> Block {
        let (accesses, control) = self
            .log
            .map(|log| (log.accesses, log.control))
            .unwrap_or_default();
        Block {
            pc: self.request.pc,
            ranges,
            ahead: self.ahead,
            instructions: self.count,
            code: self.emit.bytes,
            links: self.links,
            faults: self.faults,
            accesses,
            log_words: self.log_words,
            control,
            pcs: self.pcs,
        }
    }

    /// From here on, host code belongs to the guest instruction at `pc`.
    fn mark(&mut self, pc: u64, retired: u16) {
        let log_words = match &self.log {
            Some(_) => self.log_words[usize::from(retired)],
            None => 0,
        };
        self.faults.push(FaultEntry {
            pc,
            host: self.emit.offset() as u32,
            retired,
            charged: self.charged,
            log_words,
            borrowed: self.borrowed,
        });
    }

    pub(crate) fn flags_dead_at(&mut self, pc: u64) -> bool {
        Ahead {
            code: &mut self.code,
            read: &mut self.ahead,
        }
        .flags_dead_at(pc)
    }

    fn open_log(&mut self, steps: &[Step], terminator: &Terminator) {
        let mut used = GprSet::default();
        for instruction in steps
            .iter()
            .map(|step| *step.instruction())
            .chain(logged_branch(terminator))
        {
            used = used.union(registers_logged(self.request, &mut self.info, &instruction));
        }
        self.log = AccessLog::open(
            &mut self.emit,
            used,
            self.request.block_id,
            self.request.instrumentation,
            &mut self.borrowed,
        );
        self.log_words.push(1);
    }

    fn step(&mut self, number: u16, step: &Step) {
        let instruction = step.instruction();
        self.note_control(number, instruction);
        if let Some(log) = &mut self.log {
            log.before(&mut self.emit, &mut self.info, number, instruction);
        }
        self.mark(instruction.ip(), number);
        if let Some(log) = &self.log {
            self.log_words.push(log.words);
        }
        match step {
            Step::Plain(_, bytes) => self.plain(number, instruction, bytes),
            Step::Jump(_) => {}
            Step::Call(_) => self.emit.push_value(instruction.next_ip()),
            Step::Conditional { follows, .. } => {
                let condition = condition_of(instruction);
                let (condition, other) = match follows {
                    Way::FallsThrough => (condition, instruction.near_branch_target()),
                    Way::Taken => (condition ^ 1, instruction.next_ip()),
                };
                let from = self.emit.jump_if(condition);
                let to = SideTarget::Direct {
                    target: other,
                    leaves: Some((instruction.ip(), *follows)),
                };
                self.side_exit(from, number, to);
            }
            Step::Expected { target, .. } => self.expected(number, instruction, *target),
        }
        if let Some(log) = &mut self.log {
            log.after(&mut self.info, instruction);
        }
    }

    fn note_control(&mut self, number: u16, instruction: &Instruction) {
        if let (Some(log), Instrumentation::Everything) =
            (&mut self.log, self.request.instrumentation)
        {
            let noted = (self.request.noted)(instruction.ip());
            log.note_control(&mut self.emit, number, instruction, noted);
        }
    }

    fn side_exit(&mut self, from: Forward, number: u16, to: SideTarget) {
        let words = self.log.as_ref().map_or(0, |log| log.words);
        self.sides.push(SideExit {
            from,
            retired: number + 1,
            words,
            charged: self.charged,
            logging: self.log.is_some() && !self.log_closed,
            to,
        });
    }

    fn plain(&mut self, number: u16, instruction: &Instruction, bytes: &Bytes) {
        if instruction.is_invalid() {
            self.emit.raw(&[0x0f, 0x0b]); // ud2: the CPU would refuse the original too
        } else if instruction.is_ip_rel_memory_operand() {
            self.rip_relative(number, instruction, *bytes);
        } else {
            self.emit.raw(&bytes[..instruction.len()]);
        }
    }

    fn guest_bytes(&self, instruction: &Instruction) -> [u8; 15] {
        let mut bytes = [0u8; 15];
        (self.request.fetch)(instruction.ip(), &mut bytes[..instruction.len()]);
        bytes
    }

    /// The same operand from another rip: a patched displacement if it reaches, else through a borrowed register.
    fn rip_relative(&mut self, number: u16, instruction: &Instruction, mut bytes: Bytes) {
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
        let mut taken = registers_used(&mut self.info, instruction);
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

    /// A branch through memory or the stack: goes on if it goes where it is expected to.
    fn expected(&mut self, number: u16, branch: &Instruction, target: u64) {
        self.load_target(number, branch);
        self.emit.lea_self(Gpr::Rcx, -(target as i64) as i32);
        self.emit.raw(&[JRCXZ, 5]);
        let from = self.emit.jump();
        self.emit.load(Gpr::Rcx, offset::borrowed(0));
        self.side_exit(from, number, SideTarget::Missed(target));
    }

    /// Puts the guest target of a return or indirect branch into rcx (the guest's own goes to slot 0) and does
    /// what the branch does to the stack.
    fn load_target(&mut self, number: u16, branch: &Instruction) {
        self.emit.store(offset::borrowed(0), Gpr::Rcx);
        if branch.flow_control() == FlowControl::Return {
            self.emit.raw(&[0x59]); // pop rcx
            if branch.code() == Code::Retnq_imm16 {
                self.emit.lea_rsp(i32::from(branch.immediate16()));
            }
            return;
        }
        self.load_operand(number, branch);
        if branch.flow_control() == FlowControl::IndirectCall {
            self.borrowed.lend(0, Gpr::Rcx);
            self.mark(branch.ip(), number);
            self.emit.push_value(branch.next_ip());
            self.borrowed.give_back(0);
        }
    }

    /// Loads the operand of an indirect branch into rcx, which is stored in slot 0.
    fn load_operand(&mut self, number: u16, branch: &Instruction) {
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

    fn terminate(&mut self, number: u16, terminator: &Terminator) {
        if let Terminator::Branch(branch) = terminator {
            self.note_control(number, branch);
        }
        if let (Some(log), Terminator::Branch(branch)) = (&mut self.log, terminator) {
            log.before(&mut self.emit, &mut self.info, number, branch);
        }
        if let Some(log) = &self.log {
            self.log_words.push(log.words);
            log.close(&mut self.emit, log.words);
            log.give_back(&mut self.borrowed);
            self.log_closed = true;
        }
        match terminator {
            Terminator::Next(target) => self.leave_to(*target, number, None),
            Terminator::Watch(pc) => self.emit.exit_at(ExitReason::Watch, *pc),
            Terminator::Syscall(instruction) => {
                self.settle(number + 1);
                self.emit
                    .exit_at(ExitReason::Syscall, instruction.next_ip());
            }
            Terminator::Emulate(instruction) => {
                self.settle(number + 1);
                self.emit.exit_at(ExitReason::Emulate, instruction.ip());
            }
            Terminator::Branch(branch) => {
                self.mark_closed(branch.ip(), number);
                self.branch(number, branch);
            }
        }
    }

    /// Like [`Self::mark`] after the log has been closed: the words are published already.
    fn mark_closed(&mut self, pc: u64, retired: u16) {
        self.mark(pc, retired);
        self.faults.last_mut().expect("just pushed").log_words = 0;
    }

    fn branch(&mut self, number: u16, branch: &Instruction) {
        match branch.flow_control() {
            FlowControl::UnconditionalBranch => {
                self.leave_to(branch.near_branch_target(), number + 1, None);
            }
            FlowControl::Call => {
                self.emit.push_value(branch.next_ip());
                self.leave_to(branch.near_branch_target(), number + 1, None);
            }
            FlowControl::ConditionalBranch => self.conditional(number, branch),
            FlowControl::Return | FlowControl::IndirectCall | FlowControl::IndirectBranch => {
                self.load_target(number, branch);
                if let Some(entry) = self.faults.last_mut() {
                    entry.log_words = 0;
                }
                self.leave_to_rcx(number + 1);
            }
            other => unreachable!("{other:?} does not end a block as a branch"),
        }
    }

    fn conditional(&mut self, number: u16, branch: &Instruction) {
        let taken = if branch.is_jcc_short_or_near() {
            self.emit.jump_if(condition_of(branch))
        } else {
            // jrcxz and loop only come short: the original opcode, over a jump of two bytes to a jump of five.
            let bytes = self.guest_bytes(branch);
            self.emit.raw(&bytes[..branch.len() - 1]);
            self.emit.raw(&[2, SHORT_JUMP, 5]);
            self.emit.jump()
        };
        self.side_exit(
            taken,
            number,
            SideTarget::Direct {
                target: branch.near_branch_target(),
                leaves: None,
            },
        );
        self.leave_to(branch.next_ip(), number + 1, None);
    }

    // ---- the cold end of the block ----

    fn stubs(&mut self) {
        for side in std::mem::take(&mut self.sides) {
            self.side_stub(&side);
        }
    }

    /// Leaves the path early: closes the log, charges what has run, and goes on.
    fn side_stub(&mut self, side: &SideExit) {
        self.emit.bind(side.from);
        self.charged = side.charged;
        if let SideTarget::Missed(expected) = side.to {
            self.emit.lea_self(Gpr::Rcx, expected as i32);
        }
        if let (Some(log), true) = (&self.log, side.logging) {
            log.note_early_end(&mut self.emit, side.retired);
            log.close(&mut self.emit, side.words);
        }
        match side.to {
            SideTarget::Direct { target, leaves } => self.leave_to(target, side.retired, leaves),
            SideTarget::Missed(_) => self.leave_to_rcx(side.retired),
        }
    }

    /// Where a direct branch leads until it is linked.
    pub(crate) fn link_stub(
        &mut self,
        forward: Forward,
        target: u64,
        retired: u16,
        leaves: Option<(u64, Way)>,
    ) {
        self.emit.bind(forward);
        let Scope::Cached { first_link } = self.request.scope else {
            unreachable!("one-off blocks have no links");
        };
        let link = first_link + self.links.len() as u32;
        self.links.push(Link {
            target,
            patch: Emitter::patch_offset(forward),
            stub: self.emit.offset() as u32,
            retired,
            leaves,
        });
        self.emit.store_half(offset::EXIT_ARG, link);
        self.emit.jump_to(layout::CACHE_LINK_EXIT);
    }
}

const SLOT_FAR: usize = 3;

/// The low nibble of a conditional branch's opcode.
fn condition_of(branch: &Instruction) -> u8 {
    branch.condition_code() as u8 - ConditionCode::o as u8
}

/// The guest memory that a path was read from.
fn ranges(steps: &[Step], terminator: &Terminator) -> Vec<(u64, u32)> {
    let mut ranges: Vec<(u64, u32)> = Vec::new();
    for instruction in steps
        .iter()
        .map(Step::instruction)
        .chain(terminator.instruction())
    {
        let len = instruction.len() as u32;
        match ranges.last_mut() {
            Some((start, so_far)) if *start + u64::from(*so_far) == instruction.ip() => {
                *so_far += len
            }
            _ => ranges.push((instruction.ip(), len)),
        }
    }
    ranges
}

/// What was read on pages that the ranges do not touch, at most one range a page.
fn on_other_pages(ranges: &[(u64, u32)], read: &[(u64, u32)]) -> Vec<(u64, u32)> {
    let pages = |(start, len): (u64, u32)| {
        start / layout::PAGE..=start.saturating_add(u64::from(len) - 1) / layout::PAGE
    };
    let mut others: Vec<(u64, u32)> = Vec::new();
    for range in read {
        let known = |page: u64| {
            ranges
                .iter()
                .chain(&others)
                .any(|range| pages(*range).contains(&page))
        };
        if !pages(*range).all(known) {
            others.push(*range);
        }
    }
    others
}
