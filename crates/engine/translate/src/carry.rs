//! What a block takes over uncharged from the blocks before it.
//!
//! To charge the budget and to check it costs more than most other things that a way out of a block does. So the block that a link
//! is first followed to is made to *carry* what has run by then: the link leads to its body without charging
//! anything, and each way out of that block charges for both. Other ways into it charge, check, and arrive at its entry, where
//! they are credited what the block is going to charge for them.
//!
//! What a block carries grows along every link that charges nothing, so no loop consists of such links alone, and the
//! budget is checked at the latest when [`CARRIED_MAX`] and a path have run.

use crate::block::Request;
use crate::trace::{Step, Terminator, Way};
use iced_x86::FlowControl;
use verdict_cpu::layout;

/// Most instructions that a block may carry.
pub(crate) const CARRIED_MAX: u16 = layout::CARRIED_MAX as u16;

/// What has run and was logged, but is not charged yet.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Carried {
    /// Guest instructions.
    pub instructions: u16,
    /// Words of the access log.
    pub words: u16,
}

impl Carried {
    /// Nothing.
    pub const NOTHING: Carried = Carried {
        instructions: 0,
        words: 0,
    };

    /// The same if a block can carry so much.
    pub fn if_possible(self) -> Option<Carried> {
        let fits =
            self.instructions <= CARRIED_MAX && self.words <= layout::CARRIED_WORDS_MAX as u16;
        fits.then_some(self)
    }
}

/// How a link is made to lead to its target without charging.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shortcut {
    /// The guest's branch does nothing but leave: its rel32 is at this offset.
    Branch(u32),
    /// A jump takes the place of the charge, which is at this offset.
    Charge(u32),
}

/// What the block carries: nothing if it leads back to itself, since each round would then have to be credited.
pub(crate) fn carried_by(
    request: &Request<'_>,
    steps: &[Step],
    terminator: &Terminator,
) -> Carried {
    let start = request.pc;
    let leads_back = steps.iter().any(|step| match step {
        Step::Conditional {
            branch,
            follows: Way::FallsThrough,
        } => branch.near_branch_target() == start,
        Step::Conditional { branch, .. } => branch.next_ip() == start,
        _ => false,
    });
    let ends_there = match terminator {
        Terminator::Next(pc) => *pc == start,
        Terminator::Branch(branch) => match branch.flow_control() {
            FlowControl::ConditionalBranch => {
                branch.near_branch_target() == start || branch.next_ip() == start
            }
            FlowControl::UnconditionalBranch | FlowControl::Call => {
                branch.near_branch_target() == start
            }
            _ => false,
        },
        _ => false,
    };
    if leads_back || ends_there {
        Carried::NOTHING
    } else {
        request.carried
    }
}
