//! What the accesses of a block come to where nobody asks for their order: the bytes that are read and written from each base.
//!
//! Between two plain accesses of a block nothing orders its thread with others, so bytes that lie side by side are one access,
//! and a read of what is also written says nothing more.

use crate::plain::PlainAccess;

/// Longer ones would seldom lie within what can be compared at once.
const SIZE_MAX: i64 = 32;

/// The same bytes, read and written, in fewer accesses.
pub(crate) fn reduced(accesses: &[PlainAccess]) -> Vec<PlainAccess> {
    let mut sorted = accesses.to_vec();
    sorted.sort_by_key(|access| (access.word, !access.is_write, span(access)));
    let mut all: Vec<PlainAccess> = Vec::new();
    for access in sorted {
        let last = all.last_mut();
        let joined = last.is_some_and(|last| {
            last.word == access.word && last.is_write == access.is_write && extend(last, &access)
        });
        if !joined && !is_written(&all, &access) {
            all.push(access);
        }
    }
    all
}

/// Lets an access come by the bytes of one that begins no earlier, if there is no gap.
fn extend(first: &mut PlainAccess, next: &PlainAccess) -> bool {
    let (start, end) = span(first);
    let (next_start, next_end) = span(next);
    let longer = end.max(next_end).saturating_sub(start);
    if next_start > end || next_end > end && longer > SIZE_MAX {
        return false;
    }
    first.size = longer as u16;
    true
}

/// True if the bytes of an access are among those that another one writes.
fn is_written(all: &[PlainAccess], access: &PlainAccess) -> bool {
    let (start, end) = span(access);
    all.iter().any(|other| {
        let written = span(other);
        other.is_write && other.word == access.word && written.0 <= start && end <= written.1
    })
}

/// Where an access begins and ends, as seen from its base.
fn span(access: &PlainAccess) -> (i64, i64) {
    let start = access.displacement as i64;
    (start, start.saturating_add(i64::from(access.size)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn access(word: u16, displacement: i64, size: u16, is_write: bool) -> PlainAccess {
        PlainAccess {
            displacement: displacement as u64,
            word,
            size,
            instruction: 0,
            is_write,
        }
    }

    #[test]
    fn what_lies_side_by_side_is_one_access() {
        let spilled = [
            access(1, -8, 8, false),
            access(1, 8, 8, false),
            access(1, 0, 8, false),
            access(2, 0, 8, false),
        ];
        let expected = [access(1, -8, 24, false), access(2, 0, 8, false)];
        assert_eq!(reduced(&spilled), expected);
    }

    #[test]
    fn what_is_written_is_not_read() {
        let counted = [
            access(1, 4, 4, false),
            access(1, 4, 4, true),
            access(1, 0, 8, false),
        ];
        let expected = [access(1, 4, 4, true), access(1, 0, 8, false)];
        assert_eq!(reduced(&counted), expected);
    }

    /// Bytes as seen from bases.
    type Touched = BTreeSet<(u16, i64)>;

    /// Those that are written, and those of the others that are read.
    fn touched(accesses: &[PlainAccess]) -> (Touched, Touched) {
        let bytes = |is_write: bool| {
            accesses
                .iter()
                .filter(move |access| access.is_write == is_write)
                .flat_map(|access| {
                    let (start, end) = span(access);
                    (start..end).map(|at| (access.word, at))
                })
        };
        let written: Touched = bytes(true).collect();
        let read = bytes(false).filter(|byte| !written.contains(byte));
        (written.clone(), read.collect())
    }

    #[test]
    fn no_byte_is_lost_and_none_is_added() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..5000 {
            let accesses: Vec<PlainAccess> = (0..random(12))
                .map(|_| {
                    let size = 1 << random(7);
                    let at = random(40) as i64 * 4 - 80;
                    access(random(3) as u16, at, size, random(3) == 0)
                })
                .collect();
            let fewer = reduced(&accesses);
            assert!(fewer.len() <= accesses.len());
            assert_eq!(touched(&fewer), touched(&accesses), "{accesses:?}");
        }
    }
}
