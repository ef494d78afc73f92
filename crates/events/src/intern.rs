//! Gives each distinct name a number, in order of first appearance.
//!
//! Names in text traces are nearly always a letter and a number (`V123`, `T0`, `L5`) or a bare number.
//! For those the number itself leads to the id, without hashing the text: [`Interner::find_numbered`]
//! is the path taken for almost every field of a large trace.

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use std::hash::BuildHasher;

use crate::names::NameList;

/// A name of the shape letter + number, or a bare number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbered {
    /// The byte before the digits, or 0 where there is none.
    pub(crate) prefix: u8,
    /// The digits as a number.
    pub(crate) number: u32,
}

/// Stands in the direct tables for names not seen yet.
const ABSENT: u32 = u32::MAX;

/// Numbers below this are always found by direct index; larger ones only while the table stays filled
/// in good part, so that one `V4000000000` does not cost gigabytes.
const DIRECT_ALWAYS: usize = 1 << 14;

/// How many times more slots than names a direct table may have.
const DIRECT_SPARSITY_MAX: usize = 16;

/// Names and their numbers.
pub(crate) struct Interner {
    names: NameList,
    by_text: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// For each prefix byte: number in the name -> id.
    direct: Vec<Vec<u32>>,
    /// Ids of numbered names that the direct tables do not hold.
    numbered: HashMap<u64, u32>,
}

impl Interner {
    pub(crate) fn new() -> Self {
        Self {
            names: NameList::default(),
            by_text: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            direct: vec![Vec::new(); 256],
            numbered: HashMap::new(),
        }
    }

    pub(crate) fn name(&self, id: usize) -> Option<&str> {
        self.names.get(id)
    }

    /// The id of a numbered name, if it has one already.
    #[inline(always)]
    pub(crate) fn find_numbered(&self, name: Numbered) -> Option<u32> {
        match self.direct[name.prefix as usize].get(name.number as usize) {
            Some(&id) if id != ABSENT => Some(id),
            _ => self.find_sparse(name),
        }
    }

    #[inline(never)]
    fn find_sparse(&self, name: Numbered) -> Option<u32> {
        self.numbered.get(&sparse_key(name)).copied()
    }

    /// The id of a name, which is given one if it has none yet.
    pub(crate) fn intern(&mut self, name: &str) -> u32 {
        let hash = self.hasher.hash_one(name.as_bytes());
        let names = &self.names;
        let known = self
            .by_text
            .find(hash, |&id| names.get(id as usize) == Some(name));
        if let Some(&id) = known {
            return id;
        }
        let id = u32::try_from(self.names.push(name)).expect("fewer than 2^32 names");
        assert!(id != ABSENT, "fewer than 2^32 - 1 names");
        let (names, hasher) = (&self.names, &self.hasher);
        self.by_text.insert_unique(hash, id, |&id| {
            hasher.hash_one(names.get(id as usize).expect("id was given").as_bytes())
        });
        if let Some(numbered) = split_numbered(name.as_bytes()) {
            self.remember_numbered(numbered, id);
        }
        id
    }

    fn remember_numbered(&mut self, name: Numbered, id: u32) {
        let slots = name.number as usize + 1;
        let slots_max = DIRECT_ALWAYS.max(self.names.len() * DIRECT_SPARSITY_MAX);
        if slots > slots_max {
            self.numbered.insert(sparse_key(name), id);
            return;
        }
        let table = &mut self.direct[name.prefix as usize];
        if table.len() < slots {
            table.resize(slots.max(table.len() * 2).min(slots_max), ABSENT);
        }
        table[name.number as usize] = id;
    }
}

fn sparse_key(name: Numbered) -> u64 {
    u64::from(name.prefix) << 32 | u64::from(name.number)
}

/// Splits a name into letter and number where writing them one after the other gives the same name
/// again: `V1` but not `V01`, which is another name. At most 7 digits, as in the reader of STD text.
pub(crate) fn split_numbered(name: &[u8]) -> Option<Numbered> {
    let (prefix, digits) = match name {
        [b'0'..=b'9', ..] => (0, name),
        [prefix, digits @ ..] if *prefix != 0 => (*prefix, digits),
        _ => return None,
    };
    let canonical = match digits {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < 7 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return None;
    }
    let number = digits
        .iter()
        .fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    Some(Numbered { prefix, number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_follow_first_appearance() {
        let mut interner = Interner::new();
        let ids: Vec<u32> = ["V1", "V01", "V1", "", "V4000000", "V1.x", "7", "V4000000"]
            .iter()
            .map(|name| interner.intern(name))
            .collect();
        assert_eq!(ids, [0, 1, 0, 2, 3, 4, 5, 3]);
        assert_eq!(interner.name(1), Some("V01"));
        assert_eq!(interner.name(6), None);
    }

    #[test]
    fn leading_zeros_and_long_numbers_are_not_numbered() {
        for name in ["V01", "00", "V", "", "V12345678", "VV1", "V1x", "\u{0}1"] {
            assert_eq!(split_numbered(name.as_bytes()), None, "{name:?}");
        }
        let v = Numbered {
            prefix: b'V',
            number: 1_234_567,
        };
        assert_eq!(split_numbered(b"V1234567"), Some(v));
    }

    proptest! {
        #[test]
        fn numbered_lookup_agrees_with_text(names in prop::collection::vec("[VT]?[0-9]{0,8}", 1..200)) {
            let mut interner = Interner::new();
            for name in &names {
                let id = interner.intern(name);
                prop_assert_eq!(interner.name(id as usize), Some(name.as_str()));
            }
            for name in &names {
                if let Some(numbered) = split_numbered(name.as_bytes()) {
                    prop_assert_eq!(interner.find_numbered(numbered), Some(interner.intern(name)));
                }
            }
        }
    }
}
