//! Why nothing orders two accesses, as far as the locks that were held tell.

use verdict_findings::{Access, Lock, LockMode};

/// A sentence without a full stop.
pub(crate) fn why_not(accesses: &[Access; 2]) -> Option<String> {
    let [first, second] = accesses;
    let (one, other) = (thread(first), thread(second));
    if let Some(lock) = shared_lock(first, second) {
        return Some(format!(
            "both hold {}, but one of them only for reading, which keeps no other reader out",
            lock.name
        ));
    }
    if first.atomic != second.atomic {
        let (atomic, plain) = if first.atomic {
            (&one, &other)
        } else {
            (&other, &one)
        };
        return Some(format!(
            "the access of {atomic} is atomic, that of {plain} is not, and an atomic access orders nothing for a plain one"
        ));
    }
    Some(match (names(&first.locks), names(&second.locks)) {
        (None, None) => format!(
            "neither {one} nor {other} holds a lock, and nothing that {one} does after its access is waited for by {other} before its own"
        ),
        (Some(held), None) => format!("{one} holds {held}, but {other} holds nothing"),
        (None, Some(held)) => format!("{other} holds {held}, but {one} holds nothing"),
        (Some(first), Some(second)) => {
            format!("{one} holds {first} and {other} holds {second}: no lock in common")
        }
    })
}

fn thread(access: &Access) -> String {
    format!("thread {}", access.thread)
}

/// A lock that both hold and that still does not keep them apart.
fn shared_lock<'a>(first: &'a Access, second: &Access) -> Option<&'a Lock> {
    first.locks.iter().find(|lock| {
        let same = second
            .locks
            .iter()
            .find(|other| other.address == lock.address);
        same.is_some_and(|other| lock.mode == LockMode::Shared || other.mode == LockMode::Shared)
    })
}

fn names(locks: &[Lock]) -> Option<String> {
    let names: Vec<&str> = locks.iter().map(|lock| lock.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(thread: u32, locks: &[(&str, LockMode)]) -> Access {
        let locks = locks.iter().map(|&(name, mode)| Lock {
            name: name.to_owned(),
            address: Some(name.len() as u64),
            mode,
            ..Lock::default()
        });
        Access {
            thread,
            locks: locks.collect(),
            ..Access::default()
        }
    }

    #[test]
    fn the_locks_tell() {
        let exclusive = LockMode::Exclusive;
        let why = |first: Access, second: Access| why_not(&[first, second]).unwrap();
        assert_eq!(
            why(holding(1, &[("a", exclusive)]), holding(2, &[])),
            "thread 1 holds a, but thread 2 holds nothing"
        );
        assert_eq!(
            why(
                holding(1, &[("a", exclusive)]),
                holding(2, &[("bb", exclusive)])
            ),
            "thread 1 holds a and thread 2 holds bb: no lock in common"
        );
        assert!(
            why(
                holding(1, &[("a", LockMode::Shared)]),
                holding(2, &[("a", LockMode::Shared)])
            )
            .starts_with("both hold a, but")
        );
        let atomic = Access {
            atomic: true,
            ..holding(2, &[])
        };
        assert!(why(holding(1, &[]), atomic).starts_with("the access of thread 2 is atomic"));
    }
}
