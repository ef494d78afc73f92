//! Who stands where in a cycle of locks: each thread is about to take a lock that the next one is thought to hold.

use std::collections::BTreeSet;
use verdict_events::ThreadId;

/// A thread at one of the sites, and the lock it is about to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taker {
    pub(crate) thread: ThreadId,
    pub(crate) pc: u64,
    pub(crate) lock: u64,
}

/// Threads that together with the one that arrived stand at all sites, one each, before different locks.
pub(crate) fn complete(
    sites: &[BTreeSet<u64>],
    arrived: Taker,
    waiting: &[Taker],
) -> Option<Vec<ThreadId>> {
    let own = sites.iter().enumerate();
    own.filter(|(_, site)| site.contains(&arrived.pc))
        .find_map(|(own, _)| {
            let others = sites.iter().enumerate();
            let others: Vec<&BTreeSet<u64>> = others
                .filter(|(index, _)| *index != own)
                .map(|(_, site)| site)
                .collect();
            let mut chosen = vec![arrived];
            fill(&others, waiting, &mut chosen)
                .then(|| chosen[1..].iter().map(|taker| taker.thread).collect())
        })
}

/// Finds somebody for each site that is left; cycles are short.
fn fill(sites: &[&BTreeSet<u64>], waiting: &[Taker], chosen: &mut Vec<Taker>) -> bool {
    let Some((site, rest)) = sites.split_first() else {
        return true;
    };
    for taker in waiting.iter().filter(|taker| site.contains(&taker.pc)) {
        let taken = |other: &Taker| other.thread == taker.thread || other.lock == taker.lock;
        if chosen.iter().any(taken) {
            continue;
        }
        chosen.push(*taker);
        if fill(rest, waiting, chosen) {
            return true;
        }
        chosen.pop();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taker(thread: u32, pc: u64, lock: u64) -> Taker {
        Taker {
            thread: ThreadId(thread),
            pc,
            lock,
        }
    }

    #[test]
    fn everybody_is_needed() {
        let sites = [1, 2, 3].map(|pc| BTreeSet::from([pc]));
        let waiting = [taker(0, 1, 100), taker(1, 3, 300)];
        assert_eq!(
            complete(&sites, taker(2, 2, 200), &waiting),
            Some(vec![ThreadId(0), ThreadId(1)])
        );
        assert_eq!(complete(&sites, taker(2, 2, 200), &waiting[..1]), None);
    }

    #[test]
    fn one_site_may_be_two_steps_of_different_locks() {
        let sites = [BTreeSet::from([7]), BTreeSet::from([7])];
        assert_eq!(
            complete(&sites, taker(1, 7, 100), &[taker(0, 7, 100)]),
            None
        );
        assert_eq!(
            complete(&sites, taker(1, 7, 100), &[taker(0, 7, 200)]),
            Some(vec![ThreadId(0)])
        );
    }
}
