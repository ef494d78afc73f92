//! Where returns and indirect branches go: each block guesses it from the guest's state when it is made, and what came of
//! that decides how the next one guesses.

use crate::blocks::{BlockId, CodeCache};
use rustc_hash::FxHashMap;
use verdict_translate::{Guess, Miss};

/// So many guesses may fail before it is decided what the branch is.
const GUESSES_MAX: usize = 3;

/// What was learnt of a branch.
#[derive(Clone, Debug)]
enum Learnt {
    /// The guesses that failed, each the target of the moment when its block was made.
    Failed(Vec<u64>),
    Settled(Guess),
}

/// A guess that a block has made.
#[derive(Clone, Copy, Debug)]
struct Made {
    from: BlockId,
    branch: u64,
    expected: u64,
    /// How many had failed before. What was guessed before the last one failed may have been right until then: that it
    /// fails, too, says nothing new. So it is with jumps to functions that are bound when they are called first.
    after: usize,
}

/// All guesses of the current generation of the cache, and what was learnt from them.
#[derive(Default, Debug)]
pub(crate) struct Guesses {
    /// By the host address of the jump that is taken where they fail.
    made: FxHashMap<u64, Made>,
    learnt: FxHashMap<u64, Learnt>,
}

/// What to do where a guess has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// The block is to be made again.
    Remake,
    /// The block is as good as it gets: the engine need not hear of it again.
    Keep,
}

impl Guesses {
    /// How to guess where the branch at an address goes.
    pub(crate) fn guess(&self, branch: u64) -> Guess {
        match self.learnt.get(&branch) {
            Some(Learnt::Settled(guess)) => *guess,
            _ => Guess::Now,
        }
    }

    /// A block with guesses was placed at `host`.
    pub(crate) fn add(&mut self, from: BlockId, host: u64, misses: &[Miss]) {
        for miss in misses {
            let after = match self.learnt.get(&miss.branch) {
                Some(Learnt::Failed(guesses)) => guesses.len(),
                _ => 0,
            };
            let made = Made {
                from,
                branch: miss.branch,
                expected: miss.expected,
                after,
            };
            self.made.insert(host + u64::from(miss.patch), made);
        }
    }

    /// The cache is empty.
    pub(crate) fn flush(&mut self) {
        self.made.clear();
    }

    fn failed(&mut self, made: Made) -> Verdict {
        let empty = Learnt::Failed(Vec::new());
        let learnt = self.learnt.entry(made.branch).or_insert(empty);
        if let Learnt::Failed(guesses) = learnt {
            if made.after == guesses.len() {
                guesses.push(made.expected);
            }
            if guesses.len() < GUESSES_MAX {
                return Verdict::Remake;
            }
            *learnt = Learnt::Settled(usual(guesses));
        }
        match learnt {
            Learnt::Settled(Guess::Usually(target)) if *target == made.expected => Verdict::Keep,
            _ => Verdict::Remake,
        }
    }
}

/// What most of the guesses say.
fn usual(guesses: &[u64]) -> Guess {
    let times = |target: u64| guesses.iter().filter(|guess| **guess == target).count();
    let most = guesses
        .iter()
        .copied()
        .find(|target| 2 * times(*target) > guesses.len());
    most.map_or(Guess::Never, Guess::Usually)
}

impl CodeCache {
    /// A guess has failed; the name is what the block left in the context. The block is made again when it is needed, if it can
    /// be made better.
    pub fn missed(&mut self, name: u64) {
        let Some(made) = self.guesses.made.get(&name).copied() else {
            return;
        };
        match self.guesses.failed(made) {
            Verdict::Remake if self.is_live(made.from) => self.drop_block(made.from),
            Verdict::Remake => {}
            Verdict::Keep => self.patch_jump(name, name + 4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRANCH: u64 = 0x10;

    /// A block guesses, and its guess fails.
    fn fails(guesses: &mut Guesses, expected: u64) -> Verdict {
        let patch = made(guesses, expected);
        guesses.failed(guesses.made[&patch])
    }

    /// A block guesses; the name of its guess.
    fn made(guesses: &mut Guesses, expected: u64) -> u64 {
        let host = 0x100 * guesses.made.len() as u64;
        let miss = Miss {
            branch: BRANCH,
            expected,
            patch: 0,
        };
        guesses.add(BlockId(0), host, &[miss]);
        host
    }

    /// What comes of guesses that fail one after the other.
    fn after(expected: &[u64]) -> (Verdict, Guess) {
        let mut guesses = Guesses::default();
        let verdicts = expected.iter().map(|target| fails(&mut guesses, *target));
        let last = verdicts.last().expect("one at least");
        (last, guesses.guess(BRANCH))
    }

    #[test]
    fn a_branch_of_many_targets_is_not_guessed_any_more() {
        assert_eq!(Guesses::default().guess(BRANCH), Guess::Now);
        assert_eq!(after(&[1]), (Verdict::Remake, Guess::Now));
        assert_eq!(after(&[1, 2, 3]), (Verdict::Remake, Guess::Never));
    }

    #[test]
    fn a_branch_with_one_usual_target_is_guessed_to_go_there() {
        assert_eq!(after(&[1, 2, 1]), (Verdict::Keep, Guess::Usually(1)));
        assert_eq!(after(&[1, 1, 2]), (Verdict::Remake, Guess::Usually(1)));
        assert_eq!(after(&[1, 1, 2, 2]), (Verdict::Remake, Guess::Usually(1)));
        assert_eq!(after(&[1, 1, 2, 1]), (Verdict::Keep, Guess::Usually(1)));
    }

    #[test]
    fn what_was_guessed_before_the_last_failure_does_not_count() {
        let mut guesses = Guesses::default();
        let before: Vec<u64> = (0..5).map(|_| made(&mut guesses, 1)).collect();
        for name in before {
            let made = guesses.made[&name];
            assert_eq!(guesses.failed(made), Verdict::Remake);
        }
        assert_eq!(guesses.guess(BRANCH), Guess::Now);
    }
}
