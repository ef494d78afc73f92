//! What was found out about the flags at guest addresses, kept from block to block: several blocks leave for the same address,
//! and the block that begins there asks once more.

use std::cell::RefCell;

/// How many addresses are remembered; one takes the place of another with the same low bits.
const ENTRIES: usize = 2048;
/// Most ranges of code that an answer may depend on to be remembered.
const RANGES_MAX: usize = 2;

/// Whether the flags are dead at some addresses, as long as no code changes.
#[derive(Debug)]
pub struct KnownFlags(RefCell<Box<[Option<Answer>]>>);

/// Whether the flags are dead at an address, and why.
#[derive(Clone, Copy, Debug)]
struct Answer {
    pc: u64,
    dead: bool,
    /// Code that was read, at least one range of each page; those without a length are none.
    read: [(u64, u32); RANGES_MAX],
}

impl Default for KnownFlags {
    fn default() -> Self {
        KnownFlags(RefCell::new(vec![None; ENTRIES].into()))
    }
}

impl KnownFlags {
    /// Some code has changed.
    pub fn forget(&self) {
        self.0.borrow_mut().fill(None);
    }

    /// Whether the flags are dead at `pc`, if that is known; which code the answer depends on is added to `read`.
    pub(crate) fn get(&self, pc: u64, read: &mut Vec<(u64, u32)>) -> Option<bool> {
        let answer = self.0.borrow()[slot(pc)].filter(|answer| answer.pc == pc)?;
        read.extend(answer.read.iter().filter(|(_, len)| *len > 0));
        Some(answer.dead)
    }

    /// Takes note of an answer and of the code that it depends on.
    pub(crate) fn set(&self, pc: u64, dead: bool, read: &[(u64, u32)]) {
        if read.len() > RANGES_MAX {
            return;
        }
        let mut ranges = [(0, 0); RANGES_MAX];
        ranges[..read.len()].copy_from_slice(read);
        self.0.borrow_mut()[slot(pc)] = Some(Answer {
            pc,
            dead,
            read: ranges,
        });
    }
}

fn slot(pc: u64) -> usize {
    (pc as usize) % ENTRIES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_with_what_it_depends_on() {
        let known = KnownFlags::default();
        let mut read = vec![(1, 1)];
        assert_eq!(known.get(0x1000, &mut read), None);
        known.set(0x1000, true, &[(0x1000, 3), (0x5000, 2)]);
        assert_eq!(known.get(0x1000, &mut read), Some(true));
        assert_eq!(read, [(1, 1), (0x1000, 3), (0x5000, 2)]);
        known.forget();
        assert_eq!(known.get(0x1000, &mut read), None);
    }

    #[test]
    fn nothing_is_told_of_another_address_or_from_too_much_code() {
        let known = KnownFlags::default();
        known.set(0x1000, true, &[(0x1000, 3)]);
        let mut read = Vec::new();
        assert_eq!(known.get(0x1000 + ENTRIES as u64, &mut read), None);
        known.set(0x2001, true, &[(0x2000, 1), (0x3000, 1), (0x4000, 1)]);
        assert_eq!(known.get(0x2001, &mut read), None);
    }
}
