//! The blocks of the cache, their links, and the guest pages they were made from.

use crate::guesses::Guesses;
use crate::links::LinkEntry;
use crate::memory::{CacheMemoryError, CodeCopy, CodeMemory};
use crate::tables::Tables;
use rustc_hash::{FxHashMap, FxHashSet};
use verdict_cpu::layout::{CACHE_FREE, CACHE_LEN, CACHE_START, PAGE};
use verdict_translate::{
    Block, Carried, Chaining, ControlMark, FaultEntry, Guess, Instrumentation, KnownFlags,
    LoggedAccess, Paths, Request, Scope, TranslateError, Way, budget_reserve, indirect_pad,
    prelude, translate,
};

/// Names a block of the current generation of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockId(pub u32);

/// Where one-off blocks are made, over and over, and how many bytes they have there.
const ONE_OFF_START: u64 = CACHE_FREE;
const ONE_OFF_LEN: u64 = 64 << 10;
/// How many are kept at most.
const ONE_OFFS_MAX: usize = 4096;
/// Where the blocks that stay begin.
const BLOCKS_START: u64 = ONE_OFF_START + ONE_OFF_LEN;
/// Room that a block and its pad need at most: 64 instructions, each with log code and a far operand.
const BLOCK_LEN_MAX: usize = 32 << 10;

pub(crate) struct Entry {
    pub(crate) pc: u64,
    host: u64,
    /// Where the engine enters, and links that charge.
    pub(crate) entry: u64,
    /// Where links enter that do not.
    pub(crate) body: u64,
    /// What they leave to be charged.
    pub(crate) carried: Carried,
    host_len: u32,
    ranges: Box<[(u64, u32)]>,
    instructions: u32,
    log_words: Box<[u16]>,
    faults: Box<[FaultEntry]>,
    accesses: Box<[LoggedAccess]>,
    control: Box<[ControlMark]>,
    pcs: Box<[u64]>,
    /// Links of other blocks that lead here.
    pub(crate) incoming: Vec<u32>,
    /// Its own links.
    pub(crate) links: std::ops::Range<u32>,
    pad: Option<u64>,
    /// Whether the flags are dead where it begins.
    flags_dead: bool,
    pub(crate) live: bool,
    /// How far along the path the furthest link is that was ever used.
    pub(crate) furthest: u16,
}

/// What a host address inside the cache stands for.
#[derive(Clone, Copy, Debug)]
pub struct FaultSite {
    /// Guest address of the instruction.
    pub pc: u64,
    /// Host address from which on the entry holds.
    pub host: u64,
    /// The block's fault entry.
    pub entry: FaultEntry,
    /// What to add to the budget so that exactly the retired instructions are charged.
    pub due: i64,
    /// Words of the access log that were written before the block's own and do not count yet.
    pub carried_words: u16,
}

impl FaultSite {
    /// `charged`: what the budget was charged for the code at `code` before it ran; `carried`: what it was not for other code.
    fn new(code: u64, entry: FaultEntry, charged: u32, carried: Carried) -> Self {
        FaultSite {
            pc: entry.pc,
            host: code + u64::from(entry.host),
            entry,
            due: i64::from(charged) - i64::from(carried.instructions) - i64::from(entry.retired),
            carried_words: carried.words,
        }
    }
}

/// The constant part of a block's access log.
#[derive(Clone, Copy, Debug)]
pub struct LoggedBlock<'a> {
    /// The accesses in order.
    pub accesses: &'a [LoggedAccess],
    /// Words logged (header included) once so many instructions have retired.
    pub words: &'a [u16],
    /// Calls and returns, with [`Instrumentation::Everything`].
    pub control: &'a [ControlMark],
    /// The addresses of its instructions, with [`Instrumentation::Everything`].
    pub pcs: &'a [u64],
}

/// A block that runs once.
#[derive(Clone, Copy, Debug)]
pub struct OneOff {
    /// Host address to enter.
    pub host: u64,
    /// Instructions it will retire.
    pub instructions: u32,
}

/// A one-off block, and what it was made from.
struct OneOffBlock {
    asked: (u64, u32),
    block: Block,
    guest_bytes: Vec<u8>,
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

/// Counts for `--stats`.
#[derive(Clone, Copy, Default, Debug)]
pub struct CacheStats {
    /// Blocks translated.
    pub blocks: u64,
    /// Guest instructions translated.
    pub instructions: u64,
    /// One-off blocks made.
    pub one_offs: u64,
    /// Blocks thrown away because their guest code changed.
    pub invalidated: u64,
    /// Times the whole cache was emptied because it was full.
    pub flushes: u64,
    /// Bytes of host code made.
    pub code_bytes: u64,
}

/// All translated code of an executor.
pub struct CodeCache {
    pub(crate) memory: CodeMemory,
    tables: Tables,
    instrumentation: Instrumentation,
    pub(crate) chaining: Chaining,
    paths: Paths,
    pub(crate) entries: Vec<Entry>,
    by_pc: FxHashMap<u64, BlockId>,
    by_page: FxHashMap<u64, Vec<BlockId>>,
    pub(crate) links: Vec<LinkEntry>,
    /// What blocks carried that are to be made again.
    pub(crate) carried: FxHashMap<u64, Carried>,
    /// How often the link was seen for which the block at an address was made to carry something.
    pub(crate) preferred: FxHashMap<u64, u32>,
    /// How often the link was seen for which a conditional branch was taken to go the other way.
    pub(crate) turned: FxHashMap<u64, u32>,
    /// Where blocks begin that were made again because they run often.
    pub(crate) busy: FxHashSet<u64>,
    /// Where loops begin: blocks there carry nothing.
    pub(crate) loops: FxHashSet<u64>,
    /// The one-off block in place.
    one_off: Option<OneOffBlock>,
    /// One-off blocks of before, by what was asked for: turns tend to end at the same few places.
    one_offs: FxHashMap<(u64, u32), OneOffBlock>,
    /// Conditional branches that usually go the other way than by default.
    pub(crate) ways: FxHashMap<u64, Way>,
    pub(crate) guesses: Guesses,
    known_flags: KnownFlags,
    /// Guest instructions before which blocks stop.
    watched: FxHashSet<u64>,
    /// Where functions begin whose arguments are logged.
    noted: FxHashSet<u64>,
    stats: CacheStats,
}

impl std::fmt::Debug for CodeCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeCache")
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// By what a block is entered first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entrance {
    /// The engine.
    Direct,
    /// The direct branch of this number.
    Link(u32),
    /// A branch whose target is looked up.
    Indirect,
}

/// How the translator reads the guest.
pub struct GuestCode<'a> {
    /// Code: fills the buffer from an address, returns how many bytes are executable there.
    pub fetch: &'a dyn Fn(u64, &mut [u8]) -> usize,
    /// A word of data.
    pub read_word: &'a dyn Fn(u64) -> Option<u64>,
    /// A word of data, if it does not change as long as its page is among those watched.
    pub constant_word: &'a dyn Fn(u64) -> Option<u64>,
    /// The general registers of the thread that is about to run the code.
    pub registers: &'a [u64; 16],
}

impl CodeCache {
    /// Maps the cache and its tables.
    pub fn new(
        instrumentation: Instrumentation,
        lookup_routine: u64,
    ) -> Result<Self, CacheMemoryError> {
        let mut memory = CodeMemory::new()?;
        memory.write(CACHE_START, &prelude());
        memory.truncate(BLOCKS_START);
        Ok(CodeCache {
            memory,
            tables: Tables::new(lookup_routine).map_err(CacheMemoryError::from)?,
            instrumentation,
            chaining: match instrumentation {
                // Of interest where there are several threads.
                Instrumentation::Everything => Chaining::Charged,
                _ => Chaining::Carried,
            },
            paths: Paths::Short,
            entries: Vec::new(),
            by_pc: FxHashMap::default(),
            by_page: FxHashMap::default(),
            links: Vec::new(),
            carried: FxHashMap::default(),
            preferred: FxHashMap::default(),
            turned: FxHashMap::default(),
            busy: FxHashSet::default(),
            loops: FxHashSet::default(),
            one_off: None,
            one_offs: FxHashMap::default(),
            ways: FxHashMap::default(),
            guesses: Guesses::default(),
            known_flags: KnownFlags::default(),
            watched: FxHashSet::default(),
            noted: FxHashSet::default(),
            stats: CacheStats::default(),
        })
    }

    /// Counts so far.
    pub fn stats(&self) -> CacheStats {
        self.stats
    }

    /// The block at a guest address, if it is there.
    pub fn lookup(&self, pc: u64) -> Option<BlockId> {
        self.by_pc.get(&pc).copied()
    }

    /// Where a block's code starts for those who have charged what ran before.
    pub fn host_address(&self, block: BlockId) -> u64 {
        self.entries[block.0 as usize].entry
    }

    /// What a block writes to the access log.
    pub fn logged(&self, block: BlockId) -> LoggedBlock<'_> {
        let entry = &self.entries[block.0 as usize];
        LoggedBlock {
            accesses: &entry.accesses,
            words: &entry.log_words,
            control: &entry.control,
            pcs: &entry.pcs,
        }
    }

    /// Whether a block has not been forgotten.
    pub(crate) fn is_live(&self, block: BlockId) -> bool {
        self.entries[block.0 as usize].live
    }

    /// Number of guest instructions of a block.
    pub fn instructions(&self, block: BlockId) -> u32 {
        self.entries[block.0 as usize].instructions
    }

    /// True if the next block empties the cache first.
    pub fn is_full(&self) -> bool {
        self.memory.left() < BLOCK_LEN_MAX
    }

    /// Makes the block at `pc`. A full cache is emptied first: ids and links from before are void then.
    pub fn insert(
        &mut self,
        pc: u64,
        entrance: Entrance,
        guest: &GuestCode<'_>,
    ) -> Result<BlockId, TranslateError> {
        if self.is_full() {
            self.flush();
        }
        let id = BlockId(self.entries.len() as u32);
        let first_link = self.links.len() as u32;
        let carried = self.carried_into(pc, entrance);
        let host = self.memory.next();
        let indirect = entrance == Entrance::Indirect;
        let block = translate(&Request {
            pc,
            code_address: host,
            block_id: id.0,
            carried,
            paths: if self.busy.contains(&pc) {
                Paths::Long
            } else {
                self.paths
            },
            scope: Scope::Cached {
                first_link,
                cold_address: self.memory.next_cold(),
                pad: indirect,
            },
            instrumentation: self.instrumentation,
            fetch: guest.fetch,
            read_word: guest.read_word,
            constant_word: guest.constant_word,
            registers: Some(guest.registers),
            guess: &|branch| self.guesses.guess(branch),
            known_flags: &self.known_flags,
            usual_way: &|branch| self.ways.get(&branch).copied(),
            watched: &|pc| self.watched.contains(&pc),
            noted: &|pc| self.noted.contains(&pc),
        })?;
        self.memory.append(&block.code);
        self.memory.append_cold(&block.cold);
        self.stats.blocks += 1;
        self.stats.instructions += u64::from(block.instructions);
        self.stats.code_bytes += (block.code.len() + block.cold.len()) as u64;
        self.add_links(id, host, &block);
        self.guesses.add(id, host, &block.misses);
        let ranges: Box<[_]> = [block.ranges, block.ahead].concat().into();
        for page in pages(&ranges) {
            self.by_page.entry(page).or_default().push(id);
        }
        self.by_pc.insert(pc, id);
        self.entries.push(Entry {
            pc,
            host,
            entry: host + u64::from(block.entry),
            body: host + u64::from(block.body),
            carried: block.carried,
            host_len: block.code.len() as u32,
            ranges,
            instructions: block.instructions,
            log_words: block.log_words.into(),
            faults: block.faults.into(),
            accesses: block.accesses.into(),
            control: block.control.into(),
            pcs: block.pcs.into(),
            incoming: Vec::new(),
            links: first_link..self.links.len() as u32,
            pad: indirect.then_some(host),
            flags_dead: block.flags_dead,
            live: true,
            furthest: 0,
        });
        Ok(id)
    }

    /// What the new block at `pc` is to carry.
    fn carried_into(&self, pc: u64, entrance: Entrance) -> Carried {
        match (self.carried.get(&pc), entrance) {
            _ if self.chaining == Chaining::Charged => Carried::NOTHING,
            (Some(carried), _) => *carried,
            (None, Entrance::Link(link)) => self.carried_over(link),
            (None, Entrance::Direct | Entrance::Indirect) => Carried::NOTHING,
        }
    }

    /// How many more instructions may retire than the budget says.
    pub fn budget_reserve(&self) -> i64 {
        budget_reserve(self.chaining)
    }

    /// Whether blocks may run on into others without a check.
    pub fn chaining(&self) -> Chaining {
        self.chaining
    }

    /// From now on, all blocks are worth more time to make, not only those that are seen to run often.
    pub fn follow_long_paths(&mut self) {
        self.paths = Paths::Long;
    }

    /// From now on every link charges. Empties the cache, unless that is so already.
    pub fn charge_every_link(&mut self) {
        if std::mem::replace(&mut self.chaining, Chaining::Charged) == Chaining::Carried {
            self.flush();
        }
    }

    /// The guest pages a block was made from.
    pub fn guest_pages(&self, block: BlockId) -> Vec<u64> {
        pages(&self.entries[block.0 as usize].ranges)
    }

    /// Forgets one block, though its code is as it was. Its pages keep its id, which costs less than to look for it.
    pub(crate) fn drop_block(&mut self, block: BlockId) {
        let Entry { pc, carried, .. } = self.entries[block.0 as usize];
        self.carried.insert(pc, carried);
        self.forget(block);
        self.stats.invalidated -= 1;
    }

    /// Lets indirect branches find a block without the engine's help.
    pub fn make_indirect(&mut self, block: BlockId) {
        let entry = &self.entries[block.0 as usize];
        let (pc, to, flags_dead) = (entry.pc, entry.entry, entry.flags_dead);
        let pad = match entry.pad {
            Some(pad) => pad,
            None => {
                if self.is_full() {
                    return;
                }
                let at = self.memory.next();
                let made = indirect_pad(pc, to, at, self.memory.next_cold(), flags_dead);
                self.memory.append(&made.code);
                self.memory.append_cold(&made.cold);
                self.entries[block.0 as usize].pad = Some(at);
                at
            }
        };
        self.tables.insert(pc, pad);
    }

    /// Makes a block of exactly so many instructions, which is forgotten after it ran.
    pub fn one_off(
        &mut self,
        pc: u64,
        instructions: u32,
        guest: &GuestCode<'_>,
    ) -> Result<OneOff, TranslateError> {
        let asked = (pc, instructions);
        if let Some(last) = self.one_off.take() {
            self.one_offs.insert(last.asked, last);
        }
        let known = self
            .one_offs
            .remove(&asked)
            .filter(|made| guest_bytes(&made.block.ranges, guest) == made.guest_bytes);
        let made = match known {
            Some(made) => made,
            None => self.new_one_off(asked, guest)?,
        };
        if self.one_offs.len() > ONE_OFFS_MAX {
            self.one_offs.clear();
        }
        self.memory.write(ONE_OFF_START, &made.block.code);
        let one_off = OneOff {
            host: ONE_OFF_START,
            instructions: made.block.instructions,
        };
        self.one_off = Some(made);
        Ok(one_off)
    }

    fn new_one_off(
        &mut self,
        asked: (u64, u32),
        guest: &GuestCode<'_>,
    ) -> Result<OneOffBlock, TranslateError> {
        let (pc, instructions) = asked;
        let block = translate(&Request {
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
            noted: &|pc| self.noted.contains(&pc),
        })?;
        assert!(
            block.code.len() as u64 <= ONE_OFF_LEN,
            "a one-off block outgrew its place"
        );
        self.stats.one_offs += 1;
        Ok(OneOffBlock {
            asked,
            guest_bytes: guest_bytes(&block.ranges, guest),
            block,
        })
    }

    /// What the one-off block in place writes to the access log.
    pub fn logged_one_off(&self) -> LoggedBlock<'_> {
        match &self.one_off {
            Some(OneOffBlock { block, .. }) => LoggedBlock {
                accesses: &block.accesses,
                words: &block.log_words,
                control: &block.control,
                pcs: &block.pcs,
            },
            None => LoggedBlock {
                accesses: &[],
                words: &[],
                control: &[],
                pcs: &[],
            },
        }
    }

    /// True if the address lies in the cache.
    pub fn contains(host: u64) -> bool {
        (CACHE_START..CACHE_START + CACHE_LEN).contains(&host)
    }

    /// Leads a host address back to the guest instruction it belongs to.
    pub fn fault_site(&self, host: u64) -> Option<FaultSite> {
        if host < BLOCKS_START {
            let block = &self.one_off.as_ref()?.block;
            return fault_entry(&block.faults, host.checked_sub(ONE_OFF_START)?).map(|entry| {
                FaultSite::new(ONE_OFF_START, entry, block.instructions, block.carried)
            });
        }
        let after = self.entries.partition_point(|entry| entry.host <= host);
        let block = self.entries.get(after.checked_sub(1)?)?;
        if host >= block.host + u64::from(block.host_len) {
            return None;
        }
        fault_entry(&block.faults, host - block.host)
            .map(|entry| FaultSite::new(block.host, entry, 0, block.carried))
    }

    /// From now on the engine gets control ([`verdict_cpu::ExitReason::Watch`]) before the instruction at `pc` runs.
    pub fn watch(&mut self, pc: u64) {
        if self.watched.insert(pc) {
            self.remake_around(pc);
        }
    }

    /// The instruction at `pc` is like any other again.
    pub fn unwatch(&mut self, pc: u64) {
        if self.watched.remove(&pc) {
            self.remake_around(pc);
        }
    }

    /// True if the engine wants to look before the instruction at `pc` runs.
    pub fn is_watched(&self, pc: u64) -> bool {
        self.watched.contains(&pc)
    }

    /// A function begins at `pc` whose arguments are to be logged.
    pub fn note(&mut self, pc: u64) {
        if self.noted.insert(pc) {
            self.remake_around(pc);
        }
    }

    /// Forgets the blocks that hold the instruction at `pc`; they are made again when they are needed.
    fn remake_around(&mut self, pc: u64) {
        self.one_offs.clear();
        self.one_off = None;
        let on_page = self.by_page.get(&(pc / PAGE)).cloned().unwrap_or_default();
        for block in on_page {
            let entry = &self.entries[block.0 as usize];
            let mut ranges = entry.ranges.iter();
            if entry.live
                && ranges.any(|(start, len)| (*start..start + u64::from(*len)).contains(&pc))
            {
                self.drop_block(block);
            }
        }
    }

    /// True if a block was made from this guest page.
    pub fn has_blocks_on(&self, page: u64) -> bool {
        self.by_page.contains_key(&page)
    }

    /// Forgets every block made from the guest range: its code has changed or gone.
    pub fn invalidate(&mut self, start: u64, end: u64) {
        let few = (end - start) / PAGE <= self.by_page.len() as u64;
        let pages: Vec<u64> = if few {
            (start / PAGE..end.div_ceil(PAGE))
                .filter(|page| self.by_page.contains_key(page))
                .collect()
        } else {
            self.by_page
                .keys()
                .copied()
                .filter(|page| (start / PAGE..end.div_ceil(PAGE)).contains(page))
                .collect()
        };
        if !pages.is_empty() {
            self.known_flags.forget();
        }
        for page in pages {
            for block in self.by_page.remove(&page).unwrap_or_default() {
                self.forget(block);
            }
        }
    }

    fn forget(&mut self, block: BlockId) {
        let entry = &mut self.entries[block.0 as usize];
        if !std::mem::take(&mut entry.live) {
            return;
        }
        let (pc, pad) = (entry.pc, entry.pad);
        let incoming = std::mem::take(&mut entry.incoming);
        for link in incoming {
            self.unlink(link);
        }
        if self.by_pc.get(&pc) == Some(&block) {
            self.by_pc.remove(&pc);
        }
        if let Some(pad) = pad {
            self.tables.remove(pc, pad);
        }
        self.stats.invalidated += 1;
    }

    /// Forgets everything.
    pub fn flush(&mut self) {
        self.entries.clear();
        self.by_pc.clear();
        self.by_page.clear();
        self.links.clear();
        self.guesses.flush();
        self.known_flags.forget();
        self.tables.clear();
        self.memory.truncate(BLOCKS_START);
        self.stats.flushes += 1;
    }

    /// Before a fork: the code for the child.
    pub fn copy_for_child(&self) -> Result<CodeCopy, CacheMemoryError> {
        self.memory.copy_for_child()
    }

    /// In the child of a fork, first of all: parent and child must not write into the same cache.
    pub fn adopt(&mut self, copy: &CodeCopy) -> Result<(), CacheMemoryError> {
        self.memory.adopt(copy)
    }
}

/// Block id in the access log of every one-off block.
pub const ONE_OFF_BLOCK_ID: u32 = (1 << 31) - 1;

fn fault_entry(faults: &[FaultEntry], offset: u64) -> Option<FaultEntry> {
    let after = faults.partition_point(|entry| u64::from(entry.host) <= offset);
    faults.get(after.checked_sub(1)?).copied()
}

/// The pages of some ranges, each once.
fn pages(ranges: &[(u64, u32)]) -> Vec<u64> {
    let mut pages: Vec<u64> = ranges
        .iter()
        .flat_map(|(start, len)| start / PAGE..=(start + u64::from(*len) - 1) / PAGE)
        .collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}
