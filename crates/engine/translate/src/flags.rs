//! Are the arithmetic flags dead at a guest address? If so, the budget may be charged with a plain `sub` there.
//!
//! Scans a bounded number of instructions along fall-through and direct jumps. The answer "dead" is exact:
//! every path that was followed overwrites all six flags before it reads any. Everything else counts as live.

use crate::trace::{Known, Step, Way, Window};
use iced_x86::{FlowControl, Instruction, Mnemonic, RflagsBits};
use verdict_cpu::layout::PAGE;

const ARITHMETIC: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;
/// How far a scan goes before it gives up.
const SCAN_MAX: u32 = 12;

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

/// Before which step of a path, the later the better, the flags are dead although they count as live at its end; no way
/// leads out of the path from there on.
pub(crate) fn last_dead_point(steps: &[Step]) -> Option<usize> {
    let mut live = ARITHMETIC;
    for (number, step) in steps.iter().enumerate().rev() {
        if matches!(step, Step::Conditional { .. } | Step::Expected { .. }) {
            return None;
        }
        let instruction = step.instruction();
        live = live & !surely_overwritten(instruction) | instruction.rflags_read() & ARITHMETIC;
        if live == 0 {
            return Some(number);
        }
    }
    None
}

/// Before which steps of a path, and before what ends it, flags are live; `after`: whether they are where the path ends. Ways off the path
/// are asked about.
pub(crate) fn live_before(
    steps: &[Step],
    end: Option<&Instruction>,
    after: bool,
    mut dead_at: impl FnMut(u64) -> bool,
) -> Vec<bool> {
    let read = |instruction: &Instruction| instruction.rflags_read() & ARITHMETIC;
    let mut live = if after { ARITHMETIC } else { 0 } | end.map_or(0, read);
    let mut all = Vec::with_capacity(steps.len() + 1);
    all.push(live != 0);
    for step in steps.iter().rev() {
        match step {
            Step::Conditional { branch, follows } => {
                let other = match follows {
                    Way::Taken => branch.next_ip(),
                    Way::FallsThrough => branch.near_branch_target(),
                };
                if live != ARITHMETIC && !dead_at(other) {
                    live = ARITHMETIC;
                }
            }
            Step::Expected {
                known: Known::Called | Known::Guessed,
                ..
            } => live = ARITHMETIC,
            _ => {}
        }
        let instruction = step.instruction();
        live = live & !surely_overwritten(instruction) | read(instruction);
        all.push(live != 0);
    }
    all.reverse();
    all
}

/// Looks ahead from the end of a path, and keeps in mind which code it has read.
pub(crate) struct Ahead<'a, 'b> {
    pub(crate) code: &'b mut Window<'a>,
    /// Addresses and lengths of instructions read, at least one of each page.
    pub(crate) read: Vec<(u64, u32)>,
}

impl Ahead<'_, '_> {
    /// True if from `pc` on every way overwrites the flags before it reads them.
    pub(crate) fn flags_dead_at(&mut self, pc: u64) -> bool {
        self.scan(pc, ARITHMETIC, SCAN_MAX)
    }

    fn note_read(&mut self, pc: u64, len: u32) {
        let pages = |(start, len): (u64, u32)| {
            (
                start / PAGE,
                start.saturating_add(u64::from(len) - 1) / PAGE,
            )
        };
        let (first, last) = pages((pc, len));
        let known = |page| self.read.iter().any(|range| pages(*range).0 == page);
        if first != last || !known(first) {
            self.read.push((pc, len));
        }
    }

    /// The same for those flags that are still undecided.
    fn scan(&mut self, mut pc: u64, mut pending: u32, mut left: u32) -> bool {
        while left > 0 {
            left -= 1;
            let Ok(instruction) = self.code.instruction_at(pc).copied() else {
                return false;
            };
            self.note_read(pc, instruction.len() as u32);
            // `syscall` copies the flags to r11.
            if instruction.is_invalid() || instruction.mnemonic() == Mnemonic::Syscall {
                return false;
            }
            if instruction.rflags_read() & pending != 0 {
                return false;
            }
            pending &= !surely_overwritten(&instruction);
            if pending == 0 {
                return true;
            }
            if instruction.flow_control() != FlowControl::Next {
                return self.follow(&instruction, pending, left);
            }
            pc = instruction.next_ip();
        }
        false
    }

    fn follow(&mut self, branch: &Instruction, pending: u32, left: u32) -> bool {
        match branch.flow_control() {
            FlowControl::UnconditionalBranch | FlowControl::Call
                if branch.near_branch_target() != 0 =>
            {
                self.scan(branch.near_branch_target(), pending, left)
            }
            FlowControl::ConditionalBranch => {
                self.scan(branch.near_branch_target(), pending, left / 2)
                    && self.scan(branch.next_ip(), pending, left / 2)
            }
            _ => false,
        }
    }
}
