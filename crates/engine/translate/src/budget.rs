//! Counting: the instructions of a path are taken off the budget where the path is left.
//!
//! The budget in the context is what may still retire less [`BUDGET_RESERVE`], the longest path. While it is not
//! negative, any block may run as a whole; so a block checks nothing when it is entered, and every way out of one takes
//! off what has run and goes on only if the budget is still not negative. A way out through a link checks with the
//! jump itself; a way out through the tables leaves the check to the pad of the block it arrives at.
//!
//! So each path changes the budget once.

use crate::block::{BLOCK_INSTRUCTIONS_MAX, Scope};
use crate::builder::Builder;
use crate::emit::{Emitter, Forward};
use crate::flags;
use crate::trace::{Step, Terminator, Way};
use iced_x86::FlowControl;
use verdict_cpu::{ExitReason, Gpr, layout, offset};

/// How many more instructions may retire than the budget says.
pub const BUDGET_RESERVE: i64 = BLOCK_INSTRUCTIONS_MAX as i64;

const CONDITION_NO_SIGN: u8 = 9;
pub(crate) const JRCXZ: u8 = 0xe3;
pub(crate) const SHORT_JUMP: u8 = 0xeb;
/// How many instructions a path may lose so that it ends where the flags are dead.
const SHORTENED_MAX: usize = 6;

/// Before which step the whole path is best charged: the last point at which the flags are dead, if the path ends where
/// they count as live and nothing leads out in between.
pub(crate) fn charge_point(steps: &[Step], terminator: &Terminator) -> Option<usize> {
    let ends_live = match terminator {
        Terminator::Syscall(_) | Terminator::Emulate(_) => true,
        Terminator::Branch(branch) => matches!(
            branch.flow_control(),
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::IndirectCall
        ),
        Terminator::Next(_) | Terminator::Watch(_) => false,
    };
    if ends_live {
        flags::last_dead_point(steps)
    } else {
        None
    }
}

/// Where a path that is cut between two blocks is better cut: where the flags are dead.
pub(crate) fn better_cut(steps: &[Step]) -> Option<usize> {
    flags::last_dead_point(steps).filter(|cut| *cut > 0 && *cut + SHORTENED_MAX >= steps.len())
}

impl Builder<'_> {
    /// Charges the whole path; the flags are dead here.
    pub(crate) fn charge_path(&mut self) {
        self.emit.subtract(offset::BUDGET, self.count);
        self.charged = true;
    }

    /// What must be added to the budget if the path is left after so many instructions.
    fn due(&self, retired: u16) -> i32 {
        let charged = if self.charged { self.count as i32 } else { 0 };
        charged - i32::from(retired)
    }

    /// Charges what has run, whatever the flags and registers hold.
    pub(crate) fn settle(&mut self, retired: u16) {
        let due = self.due(retired);
        if due != 0 {
            self.emit.store(offset::borrowed(0), Gpr::Rcx);
            add_to_budget(&mut self.emit, Gpr::Rcx, due);
            self.emit.load(Gpr::Rcx, offset::borrowed(0));
        }
    }

    /// Leaves for a known guest address after so many instructions of the path.
    pub(crate) fn leave_to(&mut self, target: u64, retired: u16, leaves: Option<(u64, Way)>) {
        if matches!(self.request.scope, Scope::OneOff { .. }) {
            self.settle(retired);
            self.emit.exit_at(ExitReason::OneOff, target);
            return;
        }
        let jump = if self.flags_dead_at(target) {
            self.emit.subtract(offset::BUDGET, u32::from(retired));
            self.emit.jump_if(CONDITION_NO_SIGN)
        } else {
            self.check_with_rcx(retired)
        };
        self.link_stub(jump, target, retired, leaves);
    }

    /// Charges and checks without touching the flags. The link's stub follows: that is where it goes if the budget is
    /// used up.
    fn check_with_rcx(&mut self, retired: u16) -> Forward {
        let due = self.due(retired);
        let emit = &mut self.emit;
        emit.store(offset::borrowed(0), Gpr::Rcx);
        add_to_budget(emit, Gpr::Rcx, due);
        // The top byte is 0 unless the budget went below zero: budgets stay under 2^56. It is taken from the register,
        // since loading a part of what was just stored takes longer.
        emit.top_byte_of_rcx();
        emit.raw(&[JRCXZ, LOAD_LEN + JUMP_LEN]);
        emit.load(Gpr::Rcx, offset::borrowed(0));
        let used_up = emit.jump();
        emit.load(Gpr::Rcx, offset::borrowed(0));
        let on = emit.jump();
        emit.bind(used_up);
        on
    }

    /// Jumps to the guest address in rcx after so many instructions; the guest's rcx is in slot 0.
    pub(crate) fn leave_to_rcx(&mut self, retired: u16) {
        let due = self.due(retired);
        self.emit.store(offset::borrowed(1), Gpr::Rdx);
        if due != 0 {
            add_to_budget(&mut self.emit, Gpr::Rdx, due);
        }
        if matches!(self.request.scope, Scope::OneOff { .. }) {
            self.emit.store(offset::TARGET, Gpr::Rcx);
            self.emit.load(Gpr::Rcx, offset::borrowed(0));
            self.emit.load(Gpr::Rdx, offset::borrowed(1));
            self.emit.exit(ExitReason::Indirect);
            return;
        }
        self.emit.raw(&[0x0f, 0xb7, 0xd1]); // movzx edx, cx
        self.emit.raw(&[0xff, 0x24, 0xd5]); // jmp [table + rdx*8]
        self.emit.raw(&(layout::TABLE1 as u32).to_le_bytes());
    }
}

/// Bytes of [`Emitter::jump`] and [`Emitter::load`].
const JUMP_LEN: u8 = 5;
const LOAD_LEN: u8 = 7;

/// `budget += amount` in a register whose value is not needed.
fn add_to_budget(emit: &mut Emitter, scratch: Gpr, amount: i32) {
    emit.load(scratch, offset::BUDGET);
    emit.lea_self(scratch, amount);
    emit.store(offset::BUDGET, scratch);
}
