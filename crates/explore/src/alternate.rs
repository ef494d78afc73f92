//! The other order of two racing accesses (Kasikci et al. 2015, section 4.2, algorithm 1).
//!
//! The execution stands before the first of the two. Its thread is held; the others run until the second access has been
//! made; then the first thread goes on. Where the others come to a halt before that, the order cannot be
//! turned round by scheduling alone.

use crate::segments::Situation;
use serde::{Deserialize, Serialize};
use verdict_events::ThreadId;
use verdict_schedule::{
    Decision, DecisionPoint, Next, NextAccess, RandomScheduler, Reason, RoundRobin, Scheduler,
};

/// One of two racing accesses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Access {
    /// Who makes it.
    pub thread: u32,
    /// The instruction.
    pub pc: u64,
    /// First byte.
    pub address: u64,
    /// How many.
    pub len: u64,
    /// It writes.
    pub write: bool,
}

/// How far an alternate has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlternateState {
    /// The first thread is held.
    Holding,
    /// The second access is being made.
    Passing,
    /// The order is turned round.
    Enforced,
    /// Nobody but the first thread could run: the order cannot be turned round.
    Blocked,
}

/// What is done once the second access is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessOrder {
    /// It is made before the first.
    Turned,
    /// The first is made before it, as it was, but as late as that.
    Kept,
    /// The first is made at once, and its thread steps aside. Whenever the second comes, it comes after that.
    Aside,
}

/// Makes the second access happen before the first, or right after it.
#[derive(Clone, Debug)]
pub struct Alternate {
    held: ThreadId,
    second: Access,
    /// The first access, as the second must conflict with it.
    first: NextAccess,
    quantum: u64,
    order: AccessOrder,
    state: AlternateState,
    situation: Situation,
    /// Who has made the second access goes on.
    stays: bool,
    /// The first access has been made, where that is done at once.
    made: bool,
    /// Who decides about everything else.
    rest: Rest,
}

#[derive(Clone, Debug)]
enum Rest {
    Turns(RoundRobin),
    Random(RandomScheduler),
}

impl Alternate {
    /// Brings `first` and `second` together in this order. A seed randomises everything else.
    #[must_use]
    pub fn new(
        first: &Access,
        second: Access,
        order: AccessOrder,
        quantum: u64,
        seed: Option<u64>,
    ) -> Self {
        Alternate {
            held: ThreadId(first.thread),
            first: NextAccess {
                address: first.address,
                len: first.len,
                write: first.write,
            },
            second,
            quantum,
            order,
            situation: Situation::default(),
            stays: false,
            made: false,
            state: AlternateState::Holding,
            rest: match seed {
                None => Rest::Turns(RoundRobin::new(quantum)),
                Some(seed) => Rest::Random(RandomScheduler::new(seed, quantum)),
            },
        }
    }

    /// Whether the thread that has made the second access goes on with its turn, where the first would get it back.
    #[must_use]
    pub fn staying(self, stays: bool) -> Self {
        Alternate { stays, ..self }
    }

    /// How far it has come.
    #[must_use]
    pub fn state(&self) -> AlternateState {
        self.state
    }

    /// The thread that is kept from running.
    #[must_use]
    pub fn held(&self) -> Option<u32> {
        (self.state == AlternateState::Holding && !self.made).then_some(self.held.0)
    }

    /// Says how things stand, before each decision.
    pub fn tell(&mut self, situation: Situation) {
        self.situation = situation;
    }

    fn is_second(&self, thread: ThreadId, next: &Next<'_>) -> bool {
        thread.0 == self.second.thread
            && next.pc == self.second.pc
            && next
                .accesses
                .iter()
                .any(|access| access.conflicts(&self.first))
    }

    /// Makes the first access, and lets others run until the second one comes.
    fn step_aside(&mut self, point: &DecisionPoint<'_>) -> Decision {
        if !self.made {
            self.made = true;
            return Decision::Run {
                thread: self.held,
                instructions_max: 1,
            };
        }
        if let (Reason::Watched, Some(next), Some(thread)) =
            (point.reason, point.next, point.current)
            && self.is_second(thread, &next)
        {
            self.state = AlternateState::Enforced;
        }
        // Who has just made its access has used up its turn: another one follows it.
        self.ask(point)
    }

    /// Anybody but the held thread; the second one first.
    fn hold(&mut self, point: &DecisionPoint<'_>) -> Decision {
        if let (Reason::Watched, Some(next), Some(thread)) =
            (point.reason, point.next, point.current)
            && thread != self.held
        {
            if !self.is_second(thread, &next) {
                return Decision::Continue;
            }
            if self.order == AccessOrder::Kept {
                self.state = AlternateState::Enforced;
                return self.run(self.held);
            }
            self.state = AlternateState::Passing;
            return Decision::Run {
                thread,
                instructions_max: 1,
            };
        }
        let free: Vec<ThreadId> = point
            .runnable
            .iter()
            .copied()
            .filter(|thread| *thread != self.held)
            .collect();
        if free.is_empty() && self.situation.sleepers {
            return Decision::Wait;
        }
        if free.is_empty() {
            self.state = AlternateState::Blocked;
            return self.run(self.held);
        }
        let others = DecisionPoint {
            runnable: &free,
            reason: match point.reason {
                Reason::SystemCall if point.current.is_some_and(|t| t == self.held) => {
                    Reason::Yielded
                }
                Reason::Watched => Reason::Yielded,
                reason => reason,
            },
            next: None,
            ..*point
        };
        self.ask(&others)
    }

    fn ask(&mut self, point: &DecisionPoint<'_>) -> Decision {
        match &mut self.rest {
            Rest::Turns(turns) => turns.decide(point),
            Rest::Random(random) => random.decide(point),
        }
    }

    fn run(&self, thread: ThreadId) -> Decision {
        Decision::Run {
            thread,
            instructions_max: self.quantum,
        }
    }
}

impl Scheduler for Alternate {
    fn decide(&mut self, point: &DecisionPoint<'_>) -> Decision {
        match self.state {
            AlternateState::Holding if self.order == AccessOrder::Aside => self.step_aside(point),
            AlternateState::Holding => self.hold(point),
            AlternateState::Passing if point.reason == Reason::Watched => Decision::Continue,
            AlternateState::Passing => {
                self.state = AlternateState::Enforced;
                let next = match self.stays {
                    true => point.current,
                    false => Some(self.held),
                };
                match next.filter(|next| point.runnable.contains(next)) {
                    Some(next) => self.run(next),
                    None => self.ask(point),
                }
            }
            AlternateState::Enforced | AlternateState::Blocked => self.ask(point),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(thread: u32, pc: u64, write: bool) -> Access {
        Access {
            thread,
            pc,
            address: 0x100,
            len: 4,
            write,
        }
    }

    fn point<'a>(reason: Reason, current: u32, runnable: &'a [ThreadId]) -> DecisionPoint<'a> {
        DecisionPoint {
            reason,
            current: Some(ThreadId(current)),
            runnable,
            retired: 0,
            next: None,
        }
    }

    #[test]
    fn the_first_thread_is_held_until_the_second_access_is_made() {
        let all = [ThreadId(0), ThreadId(1), ThreadId(2)];
        let mut alternate = Alternate::new(
            &access(1, 0x10, true),
            access(2, 0x20, false),
            AccessOrder::Turned,
            50,
            None,
        );
        for _ in 0..5 {
            let Decision::Run { thread, .. } =
                alternate.decide(&point(Reason::QuantumEnd, 0, &all))
            else {
                panic!("turns end")
            };
            assert_ne!(thread, ThreadId(1));
        }
        let accesses = [NextAccess {
            address: 0x102,
            len: 2,
            write: false,
        }];
        let next = Next {
            pc: 0x20,
            accesses: &accesses,
        };
        let watched = DecisionPoint {
            next: Some(next),
            ..point(Reason::Watched, 2, &all)
        };
        let step = Decision::Run {
            thread: ThreadId(2),
            instructions_max: 1,
        };
        assert_eq!(alternate.decide(&watched), step);
        assert_eq!(alternate.state(), AlternateState::Passing);
        let back = Decision::Run {
            thread: ThreadId(1),
            instructions_max: 50,
        };
        assert_eq!(alternate.decide(&point(Reason::QuantumEnd, 2, &all)), back);
        assert_eq!(alternate.state(), AlternateState::Enforced);
    }

    #[test]
    fn who_has_made_the_second_access_may_stay() {
        let all = [ThreadId(1), ThreadId(2)];
        let first = access(1, 0x10, true);
        let second = access(2, 0x20, false);
        let mut alternate =
            Alternate::new(&first, second, AccessOrder::Turned, 50, None).staying(true);
        let accesses = [alternate.first];
        let watched = DecisionPoint {
            next: Some(Next {
                pc: 0x20,
                accesses: &accesses,
            }),
            ..point(Reason::Watched, 2, &all)
        };
        alternate.decide(&watched);
        let on = Decision::Run {
            thread: ThreadId(2),
            instructions_max: 50,
        };
        assert_eq!(alternate.decide(&point(Reason::QuantumEnd, 2, &all)), on);
        assert_eq!(alternate.state(), AlternateState::Enforced);
    }

    #[test]
    fn who_makes_the_first_access_may_step_aside() {
        let all = [ThreadId(1), ThreadId(2)];
        let first = access(1, 0x10, true);
        let second = access(2, 0x20, false);
        let mut alternate = Alternate::new(&first, second, AccessOrder::Aside, 50, None);
        let run = |thread, instructions_max| Decision::Run {
            thread: ThreadId(thread),
            instructions_max,
        };
        assert_eq!(alternate.decide(&point(Reason::Start, 1, &all)), run(1, 1));
        assert_eq!(
            alternate.held(),
            None,
            "it may go on whenever it is its turn"
        );
        let aside = alternate.decide(&point(Reason::QuantumEnd, 1, &all));
        assert_eq!(aside, run(2, 50));
        assert_eq!(alternate.state(), AlternateState::Holding);
        let accesses = [alternate.first];
        let watched = DecisionPoint {
            next: Some(Next {
                pc: 0x20,
                accesses: &accesses,
            }),
            ..point(Reason::Watched, 2, &all)
        };
        assert_eq!(alternate.decide(&watched), Decision::Continue);
        assert_eq!(alternate.state(), AlternateState::Enforced);
    }

    #[test]
    fn other_memory_does_not_count() {
        let all = [ThreadId(1), ThreadId(2)];
        let mut alternate = Alternate::new(
            &access(1, 0x10, true),
            access(2, 0x20, false),
            AccessOrder::Turned,
            50,
            None,
        );
        let accesses = [NextAccess {
            address: 0x200,
            len: 4,
            write: true,
        }];
        let watched = DecisionPoint {
            next: Some(Next {
                pc: 0x20,
                accesses: &accesses,
            }),
            ..point(Reason::Watched, 2, &all)
        };
        assert_eq!(alternate.decide(&watched), Decision::Continue);
        assert_eq!(alternate.state(), AlternateState::Holding);
    }

    #[test]
    fn a_standstill_of_all_others_is_noticed() {
        let held = [ThreadId(1)];
        let mut alternate = Alternate::new(
            &access(1, 0x10, true),
            access(2, 0x20, false),
            AccessOrder::Turned,
            50,
            None,
        );
        alternate.decide(&point(Reason::Blocked, 2, &held));
        assert_eq!(alternate.state(), AlternateState::Blocked);
    }
}
