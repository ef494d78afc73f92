//! Which guest instructions make up a block: a path through the guest's code, followed as it will most likely run.
//!
//! A block has one entry and goes on past branches: forward conditional branches are taken to fall through,
//! backward ones (loops) to jump, calls are entered, their returns expected to come back, and other returns and
//! indirect branches to go where they would go now (see [`crate::guess`]). Where the guest goes another
//! way, the block is left through a side exit. So the budget is charged once per path, not once per branch.

use crate::block::{BLOCK_INSTRUCTIONS_MAX, Instrumentation, Request, Scope, TranslateError};
use crate::guess::target_of;
use crate::returns::Returns;
use iced_x86::{
    Code, Decoder, DecoderError, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind,
    Register,
};

/// How far paths are followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paths {
    /// Made quickly: for code that may never run again.
    Short,
    /// Left less often.
    Long,
}

impl Paths {
    /// Most instructions of a block.
    fn instructions_max(self) -> usize {
        match self {
            Paths::Short => 32,
            Paths::Long => BLOCK_INSTRUCTIONS_MAX,
        }
    }

    /// Most conditional branches that a block goes past.
    fn branches_max(self) -> usize {
        match self {
            Paths::Short => 5,
            Paths::Long => 8,
        }
    }
}

/// The bytes from an instruction's first on.
pub(crate) type Bytes = [u8; 15];

/// One guest instruction on the path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Copied as it is.
    Plain(Instruction, Bytes),
    /// A direct jump that the path follows: nothing to do at run time.
    Jump(Instruction),
    /// A direct call that the path follows.
    Call(Instruction),
    /// A conditional branch; the path goes one way, the side exit the other.
    Conditional { branch: Instruction, follows: Way },
    /// A return, or an indirect jump or call, that is expected to go to `target`.
    Expected {
        branch: Instruction,
        target: u64,
        known: Known,
    },
}

/// How it is known where a branch goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    /// The word at this address, which holds the target, does not change.
    Constant { word: u64 },
    /// The path came by the call that it returns from, and nothing has written over the return address.
    Certain,
    /// The path came by the call that it returns from.
    Called,
    /// A guess.
    Guessed,
}

/// A way out of a conditional branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Way {
    Taken,
    FallsThrough,
}

impl Way {
    /// The way that a path takes past a branch of which nothing else is known: loops are expected to go on.
    pub fn by_default(branch: u64, target: u64) -> Way {
        if target <= branch {
            Way::Taken
        } else {
            Way::FallsThrough
        }
    }

    /// The other one.
    pub fn flipped(self) -> Way {
        match self {
            Way::Taken => Way::FallsThrough,
            Way::FallsThrough => Way::Taken,
        }
    }
}

impl Step {
    pub(crate) fn instruction(&self) -> &Instruction {
        match self {
            Step::Plain(instruction, _) | Step::Jump(instruction) | Step::Call(instruction) => {
                instruction
            }
            Step::Conditional { branch, .. } | Step::Expected { branch, .. } => branch,
        }
    }

    /// Where the path goes on.
    pub(crate) fn next(&self) -> u64 {
        match self {
            Step::Plain(instruction, _) => instruction.next_ip(),
            Step::Jump(instruction) | Step::Call(instruction) => instruction.near_branch_target(),
            Step::Conditional {
                branch,
                follows: Way::Taken,
            } => branch.near_branch_target(),
            Step::Conditional {
                branch,
                follows: Way::FallsThrough,
            } => branch.next_ip(),
            Step::Expected { target, .. } => *target,
        }
    }
}

/// What ends a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Terminator {
    /// The path goes on in another block at this address.
    Next(u64),
    /// A branch, call or return that is not followed.
    Branch(Instruction),
    /// `syscall`.
    Syscall(Instruction),
    /// The engine performs the instruction.
    Emulate(Instruction),
    /// The block is nothing but a stop before the watched instruction at this address.
    Watch(u64),
}

impl Terminator {
    pub(crate) fn instruction(&self) -> Option<&Instruction> {
        match self {
            Terminator::Next(_) | Terminator::Watch(_) => None,
            Terminator::Branch(i) | Terminator::Syscall(i) | Terminator::Emulate(i) => Some(i),
        }
    }
}

/// The path from `request.pc`.
pub(crate) fn decode(
    request: &Request<'_>,
    code: &mut Window<'_>,
) -> Result<(Vec<Step>, Terminator), TranslateError> {
    let limit = match request.scope {
        Scope::Cached { .. } => request.paths.instructions_max(),
        Scope::OneOff { instructions } => BLOCK_INSTRUCTIONS_MAX.min(instructions as usize),
    };
    let mut steps: Vec<Step> = Vec::with_capacity(limit);
    let mut returns = Returns::default();
    let mut branches = 0;
    let mut rounds = Rounds::default();
    let mut pc = request.pc;
    if matches!(request.scope, Scope::Cached { .. }) && (request.watched)(pc) {
        return Ok((steps, Terminator::Watch(pc)));
    }
    while steps.len() < limit {
        // The stop must be at the start of a block: before it, all counts are those of whole instructions.
        if !steps.is_empty() && (request.watched)(pc) {
            break;
        }
        if pc == request.pc && rounds.is_last(request, steps.len(), branches) {
            break;
        }
        let (instruction, bytes) = match code.decode(pc) {
            Ok(decoded) => decoded,
            Err(address) if steps.is_empty() => return Err(TranslateError::Fetch { address }),
            Err(_) => break,
        };
        let step = match classify(&instruction) {
            Class::Plain => Step::Plain(instruction, bytes),
            Class::Syscall => return Ok((steps, Terminator::Syscall(instruction))),
            Class::Emulate => return Ok((steps, Terminator::Emulate(instruction))),
            Class::Branch => {
                match expected_way(request, &steps, &instruction, &mut returns, &mut branches) {
                    Some(step) => step,
                    None => return Ok((steps, Terminator::Branch(instruction))),
                }
            }
        };
        steps.push(step);
        returns.ran(&instruction);
        pc = step.next();
        if instruction.is_invalid() {
            break;
        }
    }
    Ok((steps, Terminator::Next(pc)))
}

/// How often a path has come back to where it began. A block of a loop has whole rounds of it: it is then followed by itself, and
/// what it logs looks the same each time.
#[derive(Default)]
struct Rounds {
    /// Steps and branches when it came by last.
    steps: usize,
    branches: usize,
    /// How often that was.
    count: usize,
}

/// So much of a loop is enough where nothing is logged: what more would save is little, and a processor that foresees by their addresses
/// what instructions load next does so worse the more copies of them there are. (A matrix product with six copies
/// fell, in one run of five, to a third of its speed at some moment; with three of them never.)
const ROUNDS: usize = 3;
const ROUNDS_LEN: usize = 24;

impl Rounds {
    /// The path is where it began: true if there is no room for one more round.
    fn is_last(&mut self, request: &Request<'_>, steps: usize, branches: usize) -> bool {
        if steps == 0 {
            return false;
        }
        let round = (steps - self.steps, branches - self.branches);
        *self = Rounds {
            steps,
            branches,
            count: self.count + 1,
        };
        let fits = steps + round.0 <= request.paths.instructions_max()
            && branches + round.1 <= request.paths.branches_max();
        let unlogged = matches!(
            request.instrumentation,
            Instrumentation::None | Instrumentation::Sifted
        );
        let enough = unlogged && self.count >= ROUNDS && steps >= ROUNDS_LEN;
        enough || !fits
    }
}

/// How the path goes past a branch; `None` if it ends there.
fn expected_way(
    request: &Request<'_>,
    steps: &[Step],
    branch: &Instruction,
    returns: &mut Returns,
    branches: &mut usize,
) -> Option<Step> {
    match branch.flow_control() {
        FlowControl::UnconditionalBranch => Some(Step::Jump(*branch)),
        FlowControl::Call => Some(Step::Call(*branch)),
        FlowControl::ConditionalBranch
            if branch.is_jcc_short_or_near() && *branches < request.paths.branches_max() =>
        {
            *branches += 1;
            let default = Way::by_default(branch.ip(), branch.near_branch_target());
            Some(Step::Conditional {
                branch: *branch,
                follows: (request.usual_way)(branch.ip()).unwrap_or(default),
            })
        }
        FlowControl::Return | FlowControl::IndirectBranch | FlowControl::IndirectCall => {
            let known = match branch.flow_control() {
                FlowControl::Return => returns.returns().map(|to| match to.certain {
                    true => (to.target, Known::Certain),
                    false => (to.target, Known::Called),
                }),
                _ => constant_target(request, branch),
            };
            let (target, known) = match known {
                Some(known) => known,
                None => (target_of(request, steps, branch)?, Known::Guessed),
            };
            if !is_near(target) {
                return None;
            }
            Some(Step::Expected {
                branch: *branch,
                target,
                known,
            })
        }
        _ => None,
    }
}

/// Where a branch through a word goes that does not change, as the linkage tables of most programs do not once they are bound.
fn constant_target(request: &Request<'_>, branch: &Instruction) -> Option<(u64, Known)> {
    let constant = branch.op0_kind() == OpKind::Memory
        && branch.memory_base() == Register::RIP
        && branch.memory_index() == Register::None
        && branch.segment_prefix() == Register::None
        && matches!(request.scope, Scope::Cached { .. });
    let word = branch.ip_rel_memory_address();
    let target = constant.then(|| (request.constant_word)(word)).flatten()?;
    Some((target, Known::Constant { word }))
}

/// True if an address fits a positive 32-bit displacement, by which expectations are checked.
fn is_near(address: u64) -> bool {
    address != 0 && address < 1 << 31
}

/// A part of the guest's code that has been read already.
pub(crate) struct Window<'a> {
    request: &'a Request<'a>,
    bytes: [u8; WINDOW],
    start: u64,
    len: usize,
    /// Instructions that were decoded together, and how many of them have been asked for: to set up a decoder takes longer than to
    /// decode.
    ahead: [Instruction; AHEAD],
    known: usize,
    asked: usize,
}

const WINDOW: usize = 256;
const LONGEST: usize = 15;
const AHEAD: usize = 6;

impl<'a> Window<'a> {
    pub(crate) fn new(request: &'a Request<'a>) -> Self {
        Window {
            request,
            bytes: [0; WINDOW],
            start: 1,
            len: 0,
            ahead: [Instruction::default(); AHEAD],
            known: 0,
            asked: 0,
        }
    }

    /// The instruction at `pc`, or the first address that cannot be executed.
    pub(crate) fn instruction_at(&mut self, pc: u64) -> Result<&Instruction, u64> {
        let inside =
            pc >= self.start && (pc - self.start).saturating_add(LONGEST as u64) <= self.len as u64;
        if !inside {
            self.start = pc;
            self.len = (self.request.fetch)(pc, &mut self.bytes);
            self.known = 0;
        }
        let next = self.ahead[..self.known].get(self.asked);
        if next.is_none_or(|next| next.ip() != pc) {
            self.decode_from(pc);
        }
        // Too few bytes: what follows is not executable.
        let Some(instruction) = self.ahead[..self.known].get(self.asked) else {
            return Err(self.start.wrapping_add(self.len as u64));
        };
        self.asked += 1;
        Ok(instruction)
    }

    /// The instruction at `pc` and its bytes, or the first address that cannot be executed.
    pub(crate) fn decode(&mut self, pc: u64) -> Result<(Instruction, Bytes), u64> {
        let instruction = *self.instruction_at(pc)?;
        let bytes = &self.bytes[(pc - self.start) as usize..self.len];
        let copy = match bytes.first_chunk() {
            Some(bytes) => *bytes,
            None => {
                let mut copy = [0; LONGEST];
                copy[..bytes.len()].copy_from_slice(bytes);
                copy
            }
        };
        Ok((instruction, copy))
    }

    /// Decodes what follows each other at `pc`: nothing if there are too few bytes. An invalid encoding becomes an instruction that
    /// faults as it should.
    fn decode_from(&mut self, pc: u64) {
        (self.known, self.asked) = (0, 0);
        let bytes = &self.bytes[(pc - self.start) as usize..self.len];
        let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
        for next in &mut self.ahead {
            decoder.decode_out(next);
            if decoder.last_error() == DecoderError::NoMoreBytes {
                break;
            }
            self.known += 1;
            if next.flow_control() != FlowControl::Next {
                break;
            }
        }
    }
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
            let known = instruction.is_jcc_short_or_near()
                || instruction.is_jcx_short()
                || instruction.is_loop()
                || instruction.is_loopcc();
            if known { Class::Branch } else { Class::Emulate }
        }
        FlowControl::XbeginXabortXend => Class::Emulate,
    }
}
