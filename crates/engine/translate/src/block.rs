//! One block, from guest bytes to host code.

use crate::accesses::{LoggedAccess, prefix_with_free_registers};
use crate::budget::better_cut;
use crate::builder::Builder;
use crate::carry::{Carried, Shortcut, carried_by};
use crate::control::ControlMark;
use crate::guess::Guess;
use crate::known_flags::KnownFlags;
use crate::runs::Run;
use crate::sites::{Noted, Site, Whose};
use crate::trace::{Paths, Step, Terminator, Way, Window, decode};
use crate::used::Used;
use iced_x86::{Instruction, InstructionInfoFactory};
use verdict_cpu::{Gpr, InPlace, layout};

/// Longest block, in guest instructions.
pub const BLOCK_INSTRUCTIONS_MAX: usize = 48;

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
    /// Only those accesses are told that say something new of a thread's epoch, and calls of noted functions (see
    /// [`crate::Site`]).
    Sifted,
}

impl Instrumentation {
    /// Whether calls of noted functions are told, and with them whatever a thread may share.
    pub(crate) fn follows_calls(self) -> bool {
        matches!(self, Instrumentation::Everything | Instrumentation::Sifted)
    }
}

/// How much is translated, and how the code may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A block that stays in the cache, checks the budget and can be linked.
    Cached {
        /// Number of the block's first link.
        first_link: u32,
        /// Where the code will run that seldom does.
        cold_address: u64,
        /// Whether the code begins with a pad, at which indirect branches arrive.
        pad: bool,
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
    /// What has run before and is left for the block to charge.
    pub carried: Carried,
    /// How far to follow the path.
    pub paths: Paths,
    /// With what extras.
    pub instrumentation: Instrumentation,
    /// Reads guest code: fills the buffer from an address, returns how many bytes are executable there.
    pub fetch: &'a dyn Fn(u64, &mut [u8]) -> usize,
    /// Reads a word of guest data, to guess where a jump through it goes.
    pub read_word: &'a dyn Fn(u64) -> Option<u64>,
    /// Reads a word of guest data that cannot change without the block being forgotten, if its page is among those that the
    /// block depends on.
    pub constant_word: &'a dyn Fn(u64) -> Option<u64>,
    /// The general registers, if the guest is about to run the block for the first time.
    pub registers: Option<&'a [u64; 16]>,
    /// What is known of where the return or indirect branch at an address goes.
    pub guess: &'a dyn Fn(u64) -> Guess,
    /// What earlier blocks found out about the flags; to be forgotten when code changes.
    pub known_flags: &'a KnownFlags,
    /// Which way the conditional branch at an address usually goes, where that is known.
    pub usual_way: &'a dyn Fn(u64) -> Option<Way>,
    /// Whether the engine wants to look before the instruction at an address runs. A one-off block passes its first
    /// instruction, watched or not.
    pub watched: &'a dyn Fn(u64) -> bool,
    /// Whether a function begins at an address whose arguments are to be logged.
    pub noted: &'a dyn Fn(u64) -> Option<Noted>,
    /// Whose code is at an address.
    pub whose: &'a dyn Fn(u64) -> Whose,
    /// Whether plain accesses are told; those that lock are told in any case.
    pub tells_plain: bool,
    /// The number of the block's first [`Site`]; below 2^30.
    pub first_site: u32,
}

/// A direct branch out of a block. Until it is linked it leads to its own stub.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Guest address it goes to.
    pub target: u64,
    /// Offset in the block of the rel32 to patch.
    pub patch: u32,
    /// Where it leads until it is linked, and again afterwards.
    pub stub: u64,
    /// Guest instructions of the path that have run when it is taken.
    pub retired: u16,
    /// What its target would have to carry if it did not charge.
    pub carries: Carried,
    /// How to keep it from charging.
    pub shortcut: Shortcut,
    /// For a way off the path: the conditional branch, and the way that the path follows.
    pub leaves: Option<(u64, Way)>,
}

/// A way out of a block where a branch does not go where it was guessed to. Until it is settled it leads to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Miss {
    /// Guest address of the branch.
    pub branch: u64,
    /// The guess.
    pub expected: u64,
    /// Offset in the block of a jump's rel32: 0 there lets the target be looked up. Its address is the engine's name for it.
    pub patch: u32,
}

/// Which registers are kept in which slot of [`verdict_cpu::Context::borrowed`] at some point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Borrowed([u8; 6]);

/// No register's number: there is one of these for every instruction that was ever translated, so they are small.
const NOT_BORROWED: u8 = u8::MAX;

impl Default for Borrowed {
    fn default() -> Self {
        Borrowed([NOT_BORROWED; 6])
    }
}

impl Borrowed {
    pub(crate) fn lend(&mut self, slot: usize, register: Gpr) {
        self.0[slot] = register as u8;
    }

    pub(crate) fn give_back(&mut self, slot: usize) {
        self.0[slot] = NOT_BORROWED;
    }

    /// Pairs of (slot, register number) that are borrowed.
    pub fn slots(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let all = self.0.iter().copied().enumerate();
        all.filter(|(_, register)| *register != NOT_BORROWED)
            .map(|(slot, register)| (slot, usize::from(register)))
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
    /// Where the guest's vector register 15 is, and where the budget.
    pub in_place: InPlace,
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
    /// Code and data on other pages that the translator looked at: if it changes, the translation is void as well.
    pub ahead: Vec<(u64, u32)>,
    /// Guest instructions on the whole path.
    pub instructions: u32,
    /// Whether every way from here overwrites the flags before it reads them.
    pub flags_dead: bool,
    /// Host code for [`Request::code_address`].
    pub code: Vec<u8>,
    /// What it charges besides its own instructions.
    pub carried: Carried,
    /// Offset in the code of the place where links arrive that charge: after the pad.
    pub entry: u32,
    /// Offset in the code of the place where links arrive that leave [`Self::carried`] to be charged.
    pub body: u32,
    /// Host code for [`Scope::Cached::cold_address`].
    pub cold: Vec<u8>,
    /// Direct branches, numbered from [`Scope::Cached::first_link`].
    pub links: Vec<Link>,
    /// Where guesses fail.
    pub misses: Vec<Miss>,
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
    /// With [`Instrumentation::Sifted`]: what is told, by its number.
    pub sites: Vec<Site>,
    /// If the block is a run, what it does: its site is the first.
    pub run: Option<Run>,
    /// With [`Instrumentation::Sifted`]: whether it has to do with gs, so that there can be no shadows any more.
    pub uses_gs: bool,
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
    let mut used = Vec::new();
    if request.instrumentation != Instrumentation::None {
        let path = steps.iter().map(Step::instruction);
        let logged = path.chain(logged_branch(&terminator));
        used.extend(logged.map(|instruction| Used::new(request, &mut info, instruction)));
        let fitting = prefix_with_free_registers(&used);
        if fitting < used.len() {
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
    builder.carried = carried_by(request, &steps, &terminator);
    builder.used = used;
    Ok(builder.build(&steps, &terminator))
}

/// The last instruction, if it runs while the log is open: a system call or emulated instruction comes after.
pub(crate) fn logged_branch(terminator: &Terminator) -> Option<&Instruction> {
    match terminator {
        Terminator::Branch(branch) => Some(branch),
        _ => None,
    }
}

/// The guest memory that a path was read from.
pub(crate) fn ranges(steps: &[Step], terminator: &Terminator) -> Vec<(u64, u32)> {
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
pub(crate) fn on_other_pages(ranges: &[(u64, u32)], read: &[(u64, u32)]) -> Vec<(u64, u32)> {
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
