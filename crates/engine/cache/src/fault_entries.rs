//! Which guest instruction each place in a block's host code belongs to, in a few bytes an entry: there is one at least for
//! every instruction that was ever translated, and hardly any is ever asked for.
//!
//! Each entry is what differs from the one before it: a byte that says what follows, how many bytes of host code lie between
//! the two, and then what is new, as numbers of seven bits a byte.

use verdict_cpu::InPlace;
use verdict_translate::FaultEntry;

/// How things stand where a block's code is interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FaultState {
    /// Guest address of the instruction.
    pub pc: u64,
    /// Offset in the block's host code.
    pub host: u32,
    /// Guest instructions of the block retired before it.
    pub retired: u16,
    /// Where the guest's vector register 15 is, and where the budget.
    pub in_place: InPlace,
    /// Words of the access log written before it, or 0 if the log is not open here.
    pub log_words: u16,
    /// Registers to be restored.
    pub borrowed: BorrowedSlots,
}

/// Most registers that are borrowed at once.
const SLOTS_MAX: usize = 6;

/// Which registers are kept in which slot of [`verdict_cpu::Context::borrowed`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BorrowedSlots {
    count: u8,
    /// The slot in the upper four bits, the register's number in the lower.
    pairs: [u8; SLOTS_MAX],
}

impl BorrowedSlots {
    fn new(pairs: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut all = BorrowedSlots::default();
        for (slot, register) in pairs {
            assert!(slot < 16 && register < 16, "slot {slot} of {register}");
            all.pairs[usize::from(all.count)] = (slot << 4 | register) as u8;
            all.count += 1;
        }
        all
    }

    fn bytes(&self) -> &[u8] {
        &self.pairs[..usize::from(self.count)]
    }

    /// Pairs of (slot, register number).
    pub fn slots(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let all = self.bytes().iter().map(|pair| usize::from(*pair));
        all.map(|pair| (pair >> 4, pair & 0xf))
    }
}

impl From<&FaultEntry> for FaultState {
    fn from(entry: &FaultEntry) -> Self {
        FaultState {
            pc: entry.pc,
            host: entry.host,
            retired: entry.retired,
            in_place: entry.in_place,
            log_words: entry.log_words,
            borrowed: BorrowedSlots::new(entry.borrowed.slots()),
        }
    }
}

/// What an entry's first byte says.
mod flag {
    /// The number of [`super::IN_PLACE`].
    pub(super) const IN_PLACE: u8 = 0b11;
    /// One more instruction has retired.
    pub(super) const NEXT: u8 = 1 << 2;
    /// So many instructions have retired.
    pub(super) const RETIRED: u8 = 1 << 3;
    /// How far the guest's address is from the one before.
    pub(super) const PC: u8 = 1 << 4;
    pub(super) const LOG_WORDS: u8 = 1 << 5;
    /// Their count, and a byte for each.
    pub(super) const BORROWED: u8 = 1 << 6;
}

const IN_PLACE: [InPlace; 3] = [InPlace::Nothing, InPlace::Low, InPlace::Whole];

/// The entries of a block, by host offset, ascending.
#[derive(Default, Debug)]
pub(crate) struct FaultEntries(Box<[u8]>);

impl FaultEntries {
    /// `pc`: the guest's address of the block, for this and for [`FaultEntries::at`].
    pub(crate) fn new(pc: u64, entries: impl Iterator<Item = FaultState>) -> Self {
        let mut bytes = Vec::new();
        let mut before = first(pc);
        for entry in entries {
            write(&mut bytes, &before, &entry);
            before = entry;
        }
        FaultEntries(bytes.into())
    }

    /// The last entry that begins at an offset or before it.
    pub(crate) fn at(&self, pc: u64, offset: u64) -> Option<FaultState> {
        let mut left = &*self.0;
        let mut now = first(pc);
        let mut found = None;
        while let Some((flags, rest)) = left.split_first() {
            left = rest;
            read(&mut left, *flags, &mut now);
            if u64::from(now.host) > offset {
                break;
            }
            found = Some(now);
        }
        found
    }
}

/// What the first entry is compared with.
fn first(pc: u64) -> FaultState {
    FaultState {
        pc,
        ..FaultState::default()
    }
}

fn write(bytes: &mut Vec<u8>, before: &FaultState, entry: &FaultState) {
    let at = bytes.len();
    let in_place = IN_PLACE.iter().position(|known| *known == entry.in_place);
    bytes.push(in_place.expect("all are listed") as u8);
    let ahead = entry.host.checked_sub(before.host);
    put(bytes, u64::from(ahead.expect("ascending")));
    let mut flags = 0;
    if entry.retired == before.retired.wrapping_add(1) {
        flags |= flag::NEXT;
    } else if entry.retired != before.retired {
        flags |= flag::RETIRED;
        put(bytes, u64::from(entry.retired));
    }
    if entry.pc != before.pc {
        flags |= flag::PC;
        let distance = entry.pc.wrapping_sub(before.pc);
        // Backwards is an odd number, so that short distances either way are short.
        put(bytes, distance << 1 ^ (0u64.wrapping_sub(distance >> 63)));
    }
    if entry.log_words != before.log_words {
        flags |= flag::LOG_WORDS;
        put(bytes, u64::from(entry.log_words));
    }
    if entry.borrowed != before.borrowed {
        flags |= flag::BORROWED;
        bytes.push(entry.borrowed.count);
        bytes.extend(entry.borrowed.bytes());
    }
    bytes[at] |= flags;
}

fn read(bytes: &mut &[u8], flags: u8, now: &mut FaultState) {
    now.in_place = IN_PLACE[usize::from(flags & flag::IN_PLACE)];
    now.host += take(bytes) as u32;
    if flags & flag::NEXT != 0 {
        now.retired = now.retired.wrapping_add(1);
    }
    if flags & flag::RETIRED != 0 {
        now.retired = take(bytes) as u16;
    }
    if flags & flag::PC != 0 {
        let distance = take(bytes);
        let distance = distance >> 1 ^ 0u64.wrapping_sub(distance & 1);
        now.pc = now.pc.wrapping_add(distance);
    }
    if flags & flag::LOG_WORDS != 0 {
        now.log_words = take(bytes) as u16;
    }
    if flags & flag::BORROWED != 0 {
        let (count, rest) = bytes.split_first().expect("was written");
        let (pairs, rest) = rest.split_at(usize::from(*count));
        now.borrowed = BorrowedSlots::default();
        now.borrowed.count = *count;
        now.borrowed.pairs[..pairs.len()].copy_from_slice(pairs);
        *bytes = rest;
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("was written");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PC: u64 = 0x7fff_f7c0_1234;

    fn state() -> impl Strategy<Value = FaultState> {
        let pc = prop_oneof![
            Just(PC),
            (0..64u64).prop_map(|ahead| PC - 32 + ahead),
            any::<u64>()
        ];
        let borrowed = prop::collection::vec((0..6usize, 0..16usize), 0..=SLOTS_MAX);
        let place = 0..IN_PLACE.len();
        let counts = (any::<u16>(), any::<u16>());
        (pc, 0..300u32, counts, place, borrowed).prop_map(|(pc, host, counts, place, borrowed)| {
            FaultState {
                pc,
                host,
                retired: counts.0,
                in_place: IN_PLACE[place],
                log_words: counts.1,
                borrowed: BorrowedSlots::new(borrowed.into_iter()),
            }
        })
    }

    proptest! {
        #[test]
        fn every_place_finds_its_entry(mut states in prop::collection::vec(state(), 0..20), same in any::<u32>()) {
            // As neighbours are: much of what one says, the next one says as well.
            for at in 1..states.len() {
                if same >> at & 1 != 0 {
                    states[at] = FaultState {
                        host: states[at].host,
                        retired: states[at - 1].retired.wrapping_add(1),
                        ..states[at - 1]
                    };
                }
            }
            states.sort_by_key(|state| state.host);
            let entries = FaultEntries::new(PC, states.iter().copied());
            for offset in 0..310 {
                let expected = states.iter().rfind(|state| u64::from(state.host) <= offset);
                prop_assert_eq!(entries.at(PC, offset), expected.copied());
            }
        }
    }

    #[test]
    fn the_usual_entry_takes_a_few_bytes() {
        let states = (0..64).map(|number| FaultState {
            pc: PC + 4 * number,
            host: 12 * number as u32,
            retired: number as u16,
            log_words: number as u16 / 2,
            ..FaultState::default()
        });
        let bytes = FaultEntries::new(PC, states).0.len();
        assert!(bytes <= 64 * 4, "{bytes} bytes");
    }
}
