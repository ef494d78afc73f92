//! Are the arithmetic flags dead at a guest address? If so, the block may count itself with a plain `sub`.
//!
//! Scans a bounded number of instructions along fall-through and direct jumps. The answer "dead" is exact:
//! every path that was followed overwrites all six flags before it reads any. Everything else counts as live.

use crate::trace::{Step, Terminator, Way};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, RflagsBits};

const ARITHMETIC: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;
/// How far a scan goes before it gives up.
const SCAN_MAX: u32 = 12;

/// Fetches guest code: fills the buffer from an address, returns how many bytes are there.
pub(crate) type Fetch<'a> = &'a dyn Fn(u64, &mut [u8]) -> usize;

/// The flags still undecided after some instructions.
#[derive(Clone, Copy)]
struct Pending(u32);

impl Pending {
    /// `Some(true)`: all decided dead; `Some(false)`: one is read.
    fn step(&mut self, instruction: &Instruction) -> Option<bool> {
        if instruction.rflags_read() & self.0 != 0 {
            return Some(false);
        }
        self.0 &= !surely_overwritten(instruction);
        (self.0 == 0).then_some(true)
    }
}

/// The flags whose old value cannot survive the instruction.
///
/// A shift by cl or a repeated string instruction with count 0 leaves all as they were; many instructions leave
/// alone what the manual calls undefined (TZCNT on AMD: all but CF and ZF), and the next PUSHF shows it.
fn surely_overwritten(instruction: &Instruction) -> u32 {
    use iced_x86::Mnemonic::*;
    match instruction.mnemonic() {
        Rol | Ror | Rcl | Rcr | Shl | Sal | Shr | Sar | Shld | Shrd => 0,
        _ if instruction.has_rep_prefix() || instruction.has_repne_prefix() => 0,
        // Their one undefined flag, AF, comes out the same whatever it was before.
        And | Or | Xor | Test => instruction.rflags_modified(),
        _ => instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set(),
    }
}

/// True if, from the start of a path on, every way overwrites the flags before it reads them.
pub(crate) fn dead_at_start(steps: &[Step], terminator: &Terminator, fetch: Fetch<'_>) -> bool {
    let mut pending = Pending(ARITHMETIC);
    for step in steps {
        if let Some(answer) = pending.step(step.instruction()) {
            return answer;
        }
        let side = match step {
            Step::Plain(..) | Step::Jump(_) | Step::Call(_) => continue,
            Step::Expected { .. } => return false,
            Step::Conditional {
                branch,
                follows: Way::FallsThrough,
            } => branch.near_branch_target(),
            Step::Conditional {
                branch,
                follows: Way::Taken,
            } => branch.next_ip(),
        };
        if !scan(side, pending, fetch, SCAN_MAX / 2) {
            return false;
        }
    }
    match terminator {
        Terminator::Next(target) => scan(*target, pending, fetch, SCAN_MAX),
        Terminator::Branch(branch) => pending
            .step(branch)
            .unwrap_or_else(|| follow(branch, pending, fetch, SCAN_MAX)),
        // `syscall` copies the flags to r11; the engine may look at them in what it performs itself.
        Terminator::Syscall(_) | Terminator::Emulate(_) | Terminator::Watch(_) => false,
    }
}

/// True if from `pc` on every way overwrites the flags before it reads them.
pub(crate) fn dead_at(pc: u64, fetch: Fetch<'_>) -> bool {
    scan(pc, Pending(ARITHMETIC), fetch, SCAN_MAX / 2)
}

fn falls_through(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::Next)
}

fn follow(branch: &Instruction, pending: Pending, fetch: Fetch<'_>, left: u32) -> bool {
    match branch.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::Call
            if branch.near_branch_target() != 0 =>
        {
            scan(branch.near_branch_target(), pending, fetch, left)
        }
        FlowControl::ConditionalBranch => {
            scan(branch.near_branch_target(), pending, fetch, left / 2)
                && scan(branch.next_ip(), pending, fetch, left / 2)
        }
        _ => false,
    }
}

fn scan(pc: u64, mut pending: Pending, fetch: Fetch<'_>, mut left: u32) -> bool {
    let mut bytes = [0u8; 15];
    while left > 0 {
        left -= 1;
        let available = fetch(pc, &mut bytes);
        let instruction =
            Decoder::with_ip(64, &bytes[..available], pc, DecoderOptions::NONE).decode();
        if instruction.is_invalid() || instruction.mnemonic() == iced_x86::Mnemonic::Syscall {
            return false;
        }
        if let Some(answer) = pending.step(&instruction) {
            return answer;
        }
        if !falls_through(&instruction) {
            return follow(&instruction, pending, fetch, left);
        }
    }
    false
}
