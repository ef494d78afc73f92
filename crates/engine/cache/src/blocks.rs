//! The blocks of the cache, their links, and the guest pages they were made from.

use crate::described::Description;
use crate::fault_entries::{FaultEntries, FaultState};
use crate::guesses::Guesses;
use crate::links::LinkEntry;
use crate::memory::{CacheMemoryError, CodeCopy, CodeMemory};
use crate::one_offs::{ONE_OFF_LEN, ONE_OFF_SITES, ONE_OFF_START, OneOffs};
use crate::sieve;
use crate::tables::Tables;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use verdict_cpu::layout::{CACHE_LEN, CACHE_START, PAGE};
use verdict_translate::{
    Carried, Chaining, Instrumentation, KnownFlags, Noted, Paths, Request, Scope, TranslateError,
    Way, Whose, budget_reserve, indirect_pad, prelude, translate,
};

/// Names a block of the current generation of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockId(pub u32);

/// Where the blocks that stay begin.
const BLOCKS_START: u64 = ONE_OFF_START + ONE_OFF_LEN;
/// Room that a block and its pad need at most: 64 instructions, each with log code and a far operand.
const BLOCK_LEN_MAX: usize = 32 << 10;

/// A block. There are as many as the guest has code that ever ran, so it is small.
pub(crate) struct Entry {
    pub(crate) pc: u64,
    host: HostOffset,
    /// Where the engine enters, and links that charge.
    pub(crate) entry: HostOffset,
    /// Where links enter that do not.
    pub(crate) body: HostOffset,
    /// What they leave to be charged.
    pub(crate) carried: Carried,
    host_len: u32,
    instructions: u32,
    ranges: Box<[(u64, u32)]>,
    faults: FaultEntries,
    /// What it logs.
    pub(crate) description: Option<Box<Description>>,
    /// Links of other blocks that lead here.
    pub(crate) incoming: Vec<u32>,
    /// Its own links.
    pub(crate) links: std::ops::Range<u32>,
    pad: Option<HostOffset>,
    /// Whether the flags are dead where it begins.
    flags_dead: bool,
    pub(crate) live: bool,
    is_run: bool,
    /// How far along the path the furthest link is that was ever used.
    pub(crate) furthest: u16,
}

/// A host address in the cache, counted from its start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct HostOffset(u32);

impl HostOffset {
    pub(crate) fn new(address: u64) -> Self {
        let offset = address.wrapping_sub(CACHE_START);
        assert!(offset < CACHE_LEN, "code outside the cache");
        HostOffset(offset as u32)
    }

    pub(crate) fn address(self) -> u64 {
        CACHE_START + u64::from(self.0)
    }
}

const _: () = assert!(CACHE_LEN <= 1 << 32);

/// What a host address inside the cache stands for.
#[derive(Clone, Copy, Debug)]
pub struct FaultSite {
    /// Guest address of the instruction.
    pub pc: u64,
    /// Host address from which on the entry holds.
    pub host: u64,
    /// How things stand there.
    pub entry: FaultState,
    /// What to add to the budget so that exactly the retired instructions are charged.
    pub due: i64,
    /// Words of the access log that were written before the block's own and do not count yet.
    pub carried_words: u16,
    /// The block is a run, of which nothing has been told.
    pub is_run: bool,
}

impl FaultSite {
    /// `charged`: what the budget was charged for the code at `code` before it ran; `carried`: what it was not for other code.
    pub(crate) fn new(code: u64, entry: FaultState, charged: u32, carried: Carried) -> Self {
        FaultSite {
            pc: entry.pc,
            host: code + u64::from(entry.host),
            entry,
            due: i64::from(charged) - i64::from(carried.instructions) - i64::from(entry.retired),
            carried_words: carried.words,
            is_run: false,
        }
    }
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
    pub(crate) instrumentation: Instrumentation,
    /// Whether plain accesses are told, where any are.
    pub(crate) tells_plain: bool,
    /// A block has been made since this was asked for that has to do with gs.
    pub(crate) uses_gs: bool,
    pub(crate) chaining: Chaining,
    pub(crate) paths: Paths,
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
    pub(crate) one_offs: OneOffs,
    /// Conditional branches that usually go the other way than by default.
    pub(crate) ways: FxHashMap<u64, Way>,
    pub(crate) guesses: Guesses,
    pub(crate) known_flags: KnownFlags,
    /// Guest instructions before which blocks stop.
    pub(crate) watched: FxHashSet<u64>,
    /// Where functions begin whose arguments are logged.
    pub(crate) noted: FxHashMap<u64, Noted>,
    /// Code that is not the program's: by its start, its end and whose it is.
    pub(crate) whose: BTreeMap<u64, (u64, Whose)>,
    /// The number of the next site.
    next_site: u32,
    pub(crate) stats: CacheStats,
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
        if instrumentation == Instrumentation::Sifted {
            sieve::map().map_err(CacheMemoryError::from)?;
        }
        memory.write(CACHE_START, &prelude());
        memory.truncate(BLOCKS_START);
        Ok(CodeCache {
            memory,
            tables: Tables::new(lookup_routine).map_err(CacheMemoryError::from)?,
            instrumentation,
            tells_plain: true,
            uses_gs: false,
            chaining: match instrumentation {
                // Of interest where there are several threads.
                Instrumentation::Everything | Instrumentation::Sifted => Chaining::Charged,
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
            one_offs: OneOffs::default(),
            ways: FxHashMap::default(),
            guesses: Guesses::default(),
            known_flags: KnownFlags::default(),
            watched: FxHashSet::default(),
            noted: FxHashMap::default(),
            whose: BTreeMap::new(),
            next_site: ONE_OFF_SITES,
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
        self.entries[block.0 as usize].entry.address()
    }

    /// Whether a block has not been forgotten.
    pub(crate) fn is_live(&self, block: BlockId) -> bool {
        self.entries[block.0 as usize].live
    }

    /// Number of guest instructions of a block.
    pub fn instructions(&self, block: BlockId) -> u32 {
        self.entries[block.0 as usize].instructions
    }

    /// Says whether plain accesses are told from now on. Where that changes, all code is forgotten, and the answer is true.
    pub fn tell_plain(&mut self, tells: bool) -> bool {
        if std::mem::replace(&mut self.tells_plain, tells) == tells {
            return false;
        }
        self.flush();
        self.one_offs.clear();
        true
    }

    /// True if a block has been made since this was last asked for that has to do with gs: there can be no shadows when it runs.
    pub fn takes_gs(&mut self) -> bool {
        std::mem::take(&mut self.uses_gs)
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
        let mut block = translate(&Request {
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
            noted: &|pc| self.noted.get(&pc).copied(),
            whose: &|pc| self.whose(pc),
            tells_plain: self.tells_plain,
            first_site: self.next_site,
        })?;
        let first_site = self.next_site;
        self.next_site += block.sites.len() as u32;
        self.memory.append(&block.code);
        self.memory.append_cold(&block.cold);
        self.uses_gs |= block.uses_gs;
        self.stats.blocks += 1;
        self.stats.instructions += u64::from(block.instructions);
        self.stats.code_bytes += (block.code.len() + block.cold.len()) as u64;
        self.add_links(id, host, &block);
        self.guesses.add(id, host, &block.misses);
        let ranges: Box<[_]> = [&*block.ranges, &*block.ahead].concat().into();
        for page in pages(&ranges) {
            self.by_page.entry(page).or_default().push(id);
        }
        self.by_pc.insert(pc, id);
        self.entries.push(Entry {
            pc,
            host: HostOffset::new(host),
            entry: HostOffset::new(host + u64::from(block.entry)),
            body: HostOffset::new(host + u64::from(block.body)),
            carried: block.carried,
            host_len: block.code.len() as u32,
            instructions: block.instructions,
            ranges,
            faults: FaultEntries::new(pc, block.faults.iter().map(Into::into)),
            is_run: block.run.is_some(),
            description: Description::take(&mut block, first_site),
            incoming: Vec::new(),
            links: first_link..self.links.len() as u32,
            pad: indirect.then(|| HostOffset::new(host)),
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
        let (pc, to, flags_dead) = (entry.pc, entry.entry.address(), entry.flags_dead);
        let pad = match entry.pad {
            Some(pad) => pad.address(),
            None => {
                if self.is_full() {
                    return;
                }
                let at = self.memory.next();
                let made = indirect_pad(pc, to, at, self.memory.next_cold(), flags_dead);
                self.memory.append(&made.code);
                self.memory.append_cold(&made.cold);
                self.entries[block.0 as usize].pad = Some(HostOffset::new(at));
                at
            }
        };
        self.tables.insert(pc, pad);
    }

    /// True if the address lies in the cache.
    pub fn contains(host: u64) -> bool {
        (CACHE_START..CACHE_START + CACHE_LEN).contains(&host)
    }

    /// Leads a host address back to the guest instruction it belongs to.
    pub fn fault_site(&self, host: u64) -> Option<FaultSite> {
        if host < BLOCKS_START {
            return self.one_offs.fault_site(host);
        }
        let after = self
            .entries
            .partition_point(|entry| entry.host.address() <= host);
        let block = self.entries.get(after.checked_sub(1)?)?;
        let start = block.host.address();
        if host >= start + u64::from(block.host_len) {
            return None;
        }
        let entry = block.faults.at(block.pc, host - start)?;
        let site = FaultSite::new(start, entry, 0, block.carried);
        let is_run = block.is_run;
        Some(FaultSite { is_run, ..site })
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
    pub fn note(&mut self, pc: u64, noted: Noted) {
        if self.noted.insert(pc, noted).is_none() {
            self.remake_around(pc);
        }
    }

    /// What is mapped there from now on is somebody's code.
    pub fn belongs(&mut self, start: u64, end: u64, whose: Whose) {
        let before = self.whose.range(..end).rev();
        let covered = before.take_while(|(_, (covered_end, _))| *covered_end > start);
        let covered: Vec<u64> = covered.map(|(start, _)| *start).collect();
        for start in covered {
            self.whose.remove(&start);
        }
        if whose != Whose::Program {
            self.whose.insert(start, (end, whose));
        }
    }

    pub(crate) fn whose(&self, pc: u64) -> Whose {
        match self.whose.range(..=pc).next_back() {
            Some((_, (end, whose))) if pc < *end => *whose,
            _ => Whose::Program,
        }
    }

    /// Forgets the blocks that hold the instruction at `pc`; they are made again when they are needed.
    fn remake_around(&mut self, pc: u64) {
        self.one_offs.clear();
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
            self.tables.remove(pc, pad.address());
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
