//! How a path leaves a block and comes into it: branches, calls, returns, and the cold code behind them.

use crate::accesses::LogState;
use crate::block::{Instrumentation, Link, Miss, Scope};
use crate::budget::{Exit, JRCXZ, JUMP_LEN, SHORT_JUMP};
use crate::builder::Builder;
use crate::carry::{Carried, Shortcut};
use crate::emit::Forward;
use crate::operands::{load_branch_target, load_branch_target_at_rcx};
use crate::trace::{Known, Terminator, Way};
use iced_x86::{Code, ConditionCode, FlowControl, Instruction};
use verdict_cpu::{ExitReason, Gpr, layout, offset};

/// A way out of the middle of a block.
pub(crate) struct SideExit {
    from: Forward,
    /// Guest instructions retired when it is taken.
    retired: u16,
    /// Words of the log that it publishes.
    words: u16,
    /// The log, if it is not closed.
    log: Option<LogState>,
    to: SideTarget,
}

pub(crate) enum SideTarget {
    /// A known guest address, off the way that the path follows past the branch.
    Direct {
        target: u64,
        leaves: Option<(u64, Way)>,
    },
    /// A branch goes elsewhere than expected: rcx holds the guest target less the expected one, slot 0 the guest's rcx.
    Missed(Expected),
}

/// A branch and where it is expected to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) branch: Instruction,
    pub(crate) target: u64,
    pub(crate) known: Known,
}

impl Builder<'_> {
    /// A conditional branch that the path follows one way.
    pub(crate) fn conditional_on_path(&mut self, number: u16, branch: &Instruction, follows: Way) {
        let condition = condition_of(branch);
        let (condition, other) = match follows {
            Way::FallsThrough => (condition, branch.near_branch_target()),
            Way::Taken => (condition ^ 1, branch.next_ip()),
        };
        let from = self.emit.jump_if(condition);
        let to = SideTarget::Direct {
            target: other,
            leaves: Some((branch.ip(), follows)),
        };
        self.side_exit(from, number, to);
    }

    fn side_exit(&mut self, from: Forward, number: u16, to: SideTarget) {
        let log = self.log.as_ref().filter(|_| !self.log_closed);
        let log = log.map(|log| log.state);
        self.sides.push(SideExit {
            from,
            retired: number + 1,
            words: log.map_or(self.unpublished, |log| log.words),
            log,
            to,
        });
    }

    /// A branch whose target is computed: goes on if that is what it is expected to be.
    pub(crate) fn expected(&mut self, number: u16, expected: Expected) {
        let Expected { branch, target, .. } = expected;
        match expected.known {
            Known::Constant { word } => {
                self.depends_on(word);
                return self.finish_certain(&branch);
            }
            Known::Certain => return self.finish_certain(&branch),
            Known::Called | Known::Guessed => {}
        }
        self.load_target(number, &branch);
        self.emit.lea_self(Gpr::Rcx, -(target as i64) as i32);
        self.emit.raw(&[JRCXZ, JUMP_LEN]);
        let from = self.emit.jump();
        self.emit.load(Gpr::Rcx, offset::borrowed(0));
        self.side_exit(from, number, SideTarget::Missed(expected));
    }

    /// What a branch does besides going where it certainly goes.
    fn finish_certain(&mut self, branch: &Instruction) {
        match branch.flow_control() {
            FlowControl::Return => self.emit.lea_rsp(branch.stack_pointer_increment()),
            FlowControl::IndirectCall => self.emit.push_value(branch.next_ip()),
            _ => {}
        }
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

    pub(crate) fn terminate(&mut self, number: u16, terminator: &Terminator) {
        if let Terminator::Branch(branch) = terminator
            && self.request.instrumentation != Instrumentation::None
        {
            self.before(number, branch);
        }
        if let Some(log) = &self.log {
            self.log_words.push(log.state.words);
            log.close(&mut self.emit, log.state);
            log.give_back(&mut self.borrowed);
            self.unpublished = log.state.words;
            self.log_closed = true;
        }
        match terminator {
            Terminator::Next(target) => self.leave_to(Exit::at_end(*target, number)),
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
                self.mark(branch.ip(), number);
                self.branch(number, branch);
            }
        }
    }

    fn branch(&mut self, number: u16, branch: &Instruction) {
        match branch.flow_control() {
            FlowControl::UnconditionalBranch => {
                self.leave_to(Exit::at_end(branch.near_branch_target(), number + 1));
            }
            FlowControl::Call => {
                self.emit.push_value(branch.next_ip());
                self.leave_to(Exit::at_end(branch.near_branch_target(), number + 1));
            }
            FlowControl::ConditionalBranch => self.conditional(number, branch),
            FlowControl::Return | FlowControl::IndirectCall | FlowControl::IndirectBranch => {
                self.load_target(number, branch);
                self.settle(number + 1);
                self.go_to_rcx();
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
        self.leave_to(Exit::at_end(branch.next_ip(), number + 1));
    }

    // ---- the cold end of the block ----

    pub(crate) fn stubs(&mut self) {
        for side in std::mem::take(&mut self.sides) {
            self.side_stub(&side);
        }
    }

    /// Leaves the path early: closes the log, charges what has run, and goes on.
    fn side_stub(&mut self, side: &SideExit) {
        self.emit.bind(side.from);
        self.stub = self.emit.offset();
        if let SideTarget::Missed(expected) = &side.to {
            self.emit.lea_self(Gpr::Rcx, expected.target as i32);
        }
        if let (Some(log), Some(state)) = (&self.log, side.log) {
            if state.words > 0 {
                log.note_early_end(&mut self.emit, side.retired);
            }
            log.close(&mut self.emit, state);
        }
        self.unpublished = side.words;
        match side.to {
            SideTarget::Direct { target, leaves } => self.leave_to(Exit {
                target,
                retired: side.retired,
                leaves,
                branch: Some(side.from),
            }),
            SideTarget::Missed(expected) => {
                self.settle(side.retired);
                if expected.known == Known::Guessed {
                    self.miss(&expected);
                }
                self.go_to_rcx();
            }
        }
    }

    /// A guess has failed: the engine hears of it, until it knows enough. The guest's target is in rcx, its rcx in slot 0.
    fn miss(&mut self, expected: &Expected) {
        if matches!(self.request.scope, Scope::OneOff { .. }) {
            return;
        }
        self.emit.jump_to(self.cold.here());
        let patch = self.emit.offset() as u32 - 4;
        self.misses.push(Miss {
            branch: expected.branch.ip(),
            expected: expected.target,
            patch,
        });
        let name = self.emit.here() as u32 - 4;
        self.cold.store(offset::TARGET, Gpr::Rcx);
        self.cold.load(Gpr::Rcx, offset::borrowed(0));
        self.cold.store_half(offset::EXIT_ARG, name);
        self.cold.exit(ExitReason::Missed);
    }

    /// The link whose rel32 was emitted last: it leads to the stub that was begun at `stub`, until it is linked.
    pub(crate) fn link(&mut self, stub: u64, exit: &Exit, carries: Carried, shortcut: Shortcut) {
        let Scope::Cached { first_link, .. } = self.request.scope else {
            unreachable!("one-off blocks have no links");
        };
        let link = first_link + self.links.len() as u32;
        self.links.push(Link {
            target: exit.target,
            patch: self.emit.offset() as u32 - 4,
            stub,
            retired: exit.retired,
            carries,
            shortcut,
            leaves: exit.leaves,
        });
        self.cold.store_half(offset::EXIT_ARG, link);
        self.cold.jump_to(layout::CACHE_LINK_EXIT);
    }
}

/// The low nibble of a conditional branch's opcode.
fn condition_of(branch: &Instruction) -> u8 {
    branch.condition_code() as u8 - ConditionCode::o as u8
}
