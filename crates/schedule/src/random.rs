//! Random choices from a seed.

use crate::{Decision, DecisionPoint, Reason, Scheduler};

/// SplitMix64 (Steele, Lea & Flood 2014): small, fast, and the same on every machine.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A generator that is determined by its seed.
    pub fn new(seed: u64) -> Self {
        SplitMix(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `bound` (at least 1), by multiplication: the bias is below 2^-32 for small bounds.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// Any runnable thread may run next, for a random number of instructions; system calls are taken as an
/// occasion to switch every fourth time.
#[derive(Clone, Debug)]
pub struct RandomScheduler {
    random: SplitMix,
    quantum: u64,
}

impl RandomScheduler {
    /// Quanta are uniform between 1 and twice `quantum`.
    pub fn new(seed: u64, quantum: u64) -> Self {
        RandomScheduler {
            random: SplitMix::new(seed),
            quantum: quantum.max(1),
        }
    }
}

impl Scheduler for RandomScheduler {
    fn decide(&mut self, point: &DecisionPoint<'_>) -> Decision {
        // Being watched must not change the schedule.
        if point.reason == Reason::Watched {
            return Decision::Continue;
        }
        if point.reason == Reason::SystemCall && self.random.below(4) != 0 {
            return Decision::Continue;
        }
        let thread = point.runnable[self.random.below(point.runnable.len() as u64) as usize];
        Decision::Run {
            thread,
            instructions_max: 1 + self.random.below(2 * self.quantum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_events::ThreadId;

    fn choices(seed: u64) -> Vec<Decision> {
        let mut scheduler = RandomScheduler::new(seed, 100);
        let runnable = [ThreadId(0), ThreadId(3), ThreadId(7)];
        let point = DecisionPoint {
            reason: Reason::QuantumEnd,
            current: Some(ThreadId(3)),
            runnable: &runnable,
            retired: 0,
            next: None,
        };
        (0..1000).map(|_| scheduler.decide(&point)).collect()
    }

    #[test]
    fn a_seed_determines_everything() {
        assert_eq!(choices(1), choices(1));
        assert_ne!(choices(1), choices(2));
    }

    #[test]
    fn everybody_gets_a_turn_within_bounds() {
        let mut seen = std::collections::BTreeSet::new();
        for choice in choices(5) {
            let Decision::Run {
                thread,
                instructions_max,
            } = choice
            else {
                panic!("quantum ends switch")
            };
            assert!((1..=200).contains(&instructions_max));
            seen.insert(thread.0);
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 3, 7]);
    }
}
