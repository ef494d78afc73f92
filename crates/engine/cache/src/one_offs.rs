//! Blocks of exactly so many instructions. All of them are made for the same place, one after the other; those of before are
//! kept, since turns tend to end at the same few places.

use crate::blocks::{CodeCache, FaultSite, GuestCode};
use crate::described::{Description, LoggedBlock};
use crate::fault_entries::FaultEntries;
use rustc_hash::FxHashMap;
use verdict_cpu::layout::CACHE_FREE;
use verdict_translate::{Carried, Guess, Request, Scope, TranslateError, translate};

/// Where they are made, and how many bytes they have there.
pub(crate) const ONE_OFF_START: u64 = CACHE_FREE;
pub(crate) const ONE_OFF_LEN: u64 = 64 << 10;
/// How many are kept at most.
const ONE_OFFS_MAX: usize = 4096;

/// Block id in the access log of every one-off block.
pub const ONE_OFF_BLOCK_ID: u32 = (1 << 31) - 1;

/// The numbers of sites below this are those of the one-off block in place.
pub(crate) const ONE_OFF_SITES: u32 = 1024;

/// A block that runs once.
#[derive(Clone, Copy, Debug)]
pub struct OneOff {
    /// Host address to enter.
    pub host: u64,
    /// Instructions it will retire.
    pub instructions: u32,
}

/// The address and the number of instructions that were asked for.
type Asked = (u64, u32);

/// A one-off block, and what it was made from.
#[derive(Debug)]
struct Made {
    code: Box<[u8]>,
    instructions: u32,
    faults: FaultEntries,
    description: Option<Box<Description>>,
    ranges: Box<[(u64, u32)]>,
    guest_bytes: Box<[u8]>,
}

/// All of them.
#[derive(Default, Debug)]
pub(crate) struct OneOffs {
    in_place: Option<(Asked, Box<Made>)>,
    before: FxHashMap<Asked, Box<Made>>,
}

impl OneOffs {
    /// The translator would make them otherwise now.
    pub(crate) fn clear(&mut self) {
        *self = OneOffs::default();
    }

    /// Leads a host address before the blocks that stay back to the guest.
    pub(crate) fn fault_site(&self, host: u64) -> Option<FaultSite> {
        let ((pc, _), made) = self.in_place.as_ref()?;
        let entry = made.faults.at(*pc, host.checked_sub(ONE_OFF_START)?)?;
        let (charged, carried) = (made.instructions, Carried::NOTHING);
        Some(FaultSite::new(ONE_OFF_START, entry, charged, carried))
    }
}

impl CodeCache {
    /// Makes a block of exactly so many instructions, which is forgotten after it ran.
    pub fn one_off(
        &mut self,
        pc: u64,
        instructions: u32,
        guest: &GuestCode<'_>,
    ) -> Result<OneOff, TranslateError> {
        let asked = (pc, instructions);
        if let Some((asked, last)) = self.one_offs.in_place.take() {
            self.one_offs.before.insert(asked, last);
        }
        let known = self.one_offs.before.remove(&asked);
        let known = known.filter(|made| guest_bytes(&made.ranges, guest) == *made.guest_bytes);
        let made = match known {
            Some(made) => made,
            None => self.new_one_off(asked, guest)?,
        };
        if self.one_offs.before.len() > ONE_OFFS_MAX {
            self.one_offs.before.clear();
        }
        self.memory.write(ONE_OFF_START, &made.code);
        let one_off = OneOff {
            host: ONE_OFF_START,
            instructions: made.instructions,
        };
        self.one_offs.in_place = Some((asked, made));
        Ok(one_off)
    }

    fn new_one_off(
        &mut self,
        asked: Asked,
        guest: &GuestCode<'_>,
    ) -> Result<Box<Made>, TranslateError> {
        let (pc, instructions) = asked;
        let mut block = translate(&Request {
            pc,
            code_address: ONE_OFF_START,
            block_id: ONE_OFF_BLOCK_ID,
            carried: Carried::NOTHING,
            paths: self.paths,
            scope: Scope::OneOff { instructions },
            instrumentation: self.instrumentation,
            fetch: guest.fetch,
            read_word: guest.read_word,
            constant_word: &|_| None,
            registers: None,
            guess: &|_| Guess::Never,
            known_flags: &self.known_flags,
            usual_way: &|branch| self.ways.get(&branch).copied(),
            watched: &|pc| self.watched.contains(&pc),
            noted: &|pc| self.noted.get(&pc).copied(),
            whose: &|pc| self.whose(pc),
            tells_plain: self.tells_plain,
            first_site: 0,
        })?;
        assert!(
            block.sites.len() <= ONE_OFF_SITES as usize,
            "a one-off block has more sites than numbers"
        );
        assert!(
            block.code.len() as u64 <= ONE_OFF_LEN,
            "a one-off block outgrew its place"
        );
        self.uses_gs |= block.uses_gs;
        self.stats.one_offs += 1;
        Ok(Box::new(Made {
            instructions: block.instructions,
            faults: FaultEntries::new(pc, block.faults.iter().map(Into::into)),
            description: Description::take(&mut block, 0),
            guest_bytes: guest_bytes(&block.ranges, guest).into(),
            ranges: block.ranges.into(),
            code: block.code.into(),
        }))
    }

    /// What the one-off block in place writes to the access log.
    pub fn logged_one_off(&self) -> LoggedBlock<'_> {
        let in_place = self.one_offs.in_place.as_ref();
        let description = in_place.and_then(|(_, made)| made.description.as_ref());
        description.map_or_else(LoggedBlock::default, |known| known.logged())
    }
}

/// The guest's code of some ranges as it is now; shorter where it cannot be executed.
fn guest_bytes(ranges: &[(u64, u32)], guest: &GuestCode<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (start, len) in ranges {
        let before = bytes.len();
        bytes.resize(before + *len as usize, 0);
        let there = (guest.fetch)(*start, &mut bytes[before..]);
        bytes.truncate(before + there);
    }
    bytes
}
