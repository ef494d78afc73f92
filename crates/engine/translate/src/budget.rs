//! Counting: the instructions of a path are taken off the budget where the path is left.
//!
//! The budget is what may still retire less [`budget_reserve`], the most that can run between two checks. While it is not negative,
//! any block may run as a whole; so a block checks nothing when it is entered, and every way out of one takes off what has run and goes on only if the
//! budget is still not negative. A way out through a link checks with the jump itself; a way out through the tables
//! leaves the check to the pad of the block it arrives at; and some links leave both to the next block, see [`crate::carry`].
//!
//! So each path changes the budget at most once, see [`crate::counter`] for how.

use crate::block::{BLOCK_INSTRUCTIONS_MAX, Scope};
use crate::builder::Builder;
use crate::carry::{CARRIED_MAX, Carried, Shortcut};
use crate::emit::Forward;
use crate::flags;
use crate::trace::{Step, Way};
use verdict_cpu::{ExitReason, Gpr, InPlace, layout, offset};

/// Whether links may leave it to the next block to charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chaining {
    /// Every link charges: a turn can end soon after any block.
    Charged,
    /// Blocks carry what has run before.
    Carried,
}

/// How many more instructions may retire than the budget says.
pub const fn budget_reserve(chaining: Chaining) -> i64 {
    match chaining {
        Chaining::Charged => BLOCK_INSTRUCTIONS_MAX as i64,
        Chaining::Carried => BLOCK_INSTRUCTIONS_MAX as i64 + CARRIED_MAX as i64,
    }
}

const _: () = assert!(budget_reserve(Chaining::Carried) <= layout::CHARGE_MAX as i64);
const _: () = assert!(BLOCK_INSTRUCTIONS_MAX as i32 <= layout::GIVEN_BACK_MAX);

/// A way out of a block to a known guest address.
pub(crate) struct Exit {
    pub(crate) target: u64,
    /// Guest instructions of the path that have run then.
    pub(crate) retired: u16,
    /// For a way off the path: the conditional branch, and the way that the path follows.
    pub(crate) leaves: Option<(u64, Way)>,
    /// The jump that leads here from the path, if any.
    pub(crate) branch: Option<Forward>,
}

impl Exit {
    /// The path goes on elsewhere.
    pub(crate) fn at_end(target: u64, retired: u16) -> Exit {
        Exit {
            target,
            retired,
            leaves: None,
            branch: None,
        }
    }
}

/// A charge, and what it would leave to the next block if it were not made.
pub(crate) struct Settled {
    at: usize,
    carries: Carried,
}

pub(crate) const CONDITION_ZERO: u8 = 4;
pub(crate) const CONDITION_NOT_ZERO: u8 = 5;
pub(crate) const JRCXZ: u8 = 0xe3;
pub(crate) const SHORT_JUMP: u8 = 0xeb;
/// How many instructions a path may lose so that it ends where the flags are dead.
const SHORTENED_MAX: usize = 6;

/// Where a path that is cut between two blocks is better cut: where the flags are dead.
pub(crate) fn better_cut(steps: &[Step]) -> Option<usize> {
    flags::last_dead_point(steps).filter(|cut| *cut > 0 && *cut + SHORTENED_MAX >= steps.len())
}

impl Builder<'_> {
    /// Charges what has run and publishes what was logged, whatever the flags and registers hold. The engine charges for
    /// the whole of a one-off block before it runs.
    pub(crate) fn settle(&mut self, retired: u16) -> Settled {
        if self.in_place != InPlace::Nothing {
            self.emit.take_back(self.in_place);
        }
        let carries = Carried {
            instructions: self.carried.instructions + retired,
            words: self.carried.words + std::mem::take(&mut self.unpublished),
        };
        let due = match self.request.scope {
            Scope::Cached { .. } => -i32::from(carries.instructions),
            Scope::OneOff { .. } => self.count as i32 - i32::from(retired),
        };
        let at = self.emit.offset();
        self.emit.charge(due, carries.words);
        Settled { at, carries }
    }

    /// Leaves for a known guest address after so many instructions of the path.
    pub(crate) fn leave_to(&mut self, exit: Exit) {
        if self.leave_run(&exit) {
            return;
        }
        let Settled { at, carries } = self.settle(exit.retired);
        if matches!(self.request.scope, Scope::OneOff { .. }) {
            self.emit.exit_at(ExitReason::OneOff, exit.target);
            return;
        }
        let shortcut = match exit.branch {
            Some(branch) if at == self.stub => Shortcut::Branch(branch.at()),
            _ => Shortcut::Charge(at as u32),
        };
        if self.flags_dead_at(exit.target) {
            let stub = self.cold.here();
            self.emit.test_budget();
            self.emit.jump_if_to(CONDITION_ZERO, stub);
            self.link(stub, &exit, carries, shortcut);
            self.emit.jump_to(stub);
        } else {
            self.check_with_rcx(&exit, carries, shortcut);
        }
    }

    /// Checks without touching the flags.
    fn check_with_rcx(&mut self, exit: &Exit, carries: Carried, shortcut: Shortcut) {
        let used_up = self.cold.here();
        self.cold.load(Gpr::Rcx, offset::borrowed(0));
        let stub = self.cold.here();
        self.emit.store(offset::borrowed(0), Gpr::Rcx);
        self.emit.budget_is_negative();
        self.emit.raw(&[JRCXZ, JUMP_LEN]);
        self.emit.jump_to(used_up);
        self.emit.load(Gpr::Rcx, offset::borrowed(0));
        self.emit.jump_to(stub);
        self.link(stub, exit, carries, shortcut);
    }

    /// Jumps to the guest address in rcx once what has run is charged; the guest's rcx is in slot 0.
    pub(crate) fn go_to_rcx(&mut self) {
        if matches!(self.request.scope, Scope::OneOff { .. }) {
            self.emit.store(offset::TARGET, Gpr::Rcx);
            self.emit.load(Gpr::Rcx, offset::borrowed(0));
            self.emit.exit(ExitReason::Indirect);
            return;
        }
        self.emit.store(offset::borrowed(1), Gpr::Rcx);
        self.emit.raw(&[0x0f, 0xb7, 0xc9]); // movzx ecx, cx
        self.emit.raw(&[0xff, 0x24, 0xcd]); // jmp [table + rcx*8]
        self.emit.raw(&(layout::TABLE1 as u32).to_le_bytes());
    }
}

/// Bytes of [`crate::emit::Emitter::jump_to`].
pub(crate) const JUMP_LEN: u8 = 5;
