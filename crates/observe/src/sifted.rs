//! The survey of a run of which only what is new is told: accesses that have passed the executor's sieve, and calls of noted
//! functions. Nothing is known of other calls.
//!
//! Some programs do what cannot be surveyed so, see [`Unfit`]: they have to be looked at again, with everything told.

use crate::code::Code;
use crate::log::{Word, number};
use crate::looks::Looks;
use crate::meaning::Meaning;
use crate::modules::Owner;
use crate::observer::Observer;
use crate::runs::KnownRun;
use rustc_hash::FxHashMap;
use verdict_detect::Looked;
use verdict_events::ThreadId;
use verdict_stream::Site;
use verdict_translate::{
    AccessKind, AddressWord, LoggedAccess, RUN_VALUES_MAX, Run, Segment, SiteKind,
};

/// Why a survey of what is new does not say which bytes may race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// A plain instruction stores something atomic: only debug information or a symbol says so, which the executor does not look at.
    AtomicStore,
    /// A loop comes by something atomic before it is told what else it has accessed, and when.
    AtomicInLoop,
    /// A runtime for parallel programs: all that it does orders threads.
    ParallelRuntime,
    /// Libraries are linked into the program, so that whose an instruction is does not go by its file.
    StaticLibrary,
    /// A signal handler ran in between.
    Signal,
    /// Where an access goes is not told.
    Addressing,
    /// What a function returned that nobody noted matters.
    InnerResult,
    /// A fault has interrupted what is told only when it is over.
    Lost,
    /// A noted function was left without a return.
    Unwound,
    /// More noted functions are within each other than are kept track of.
    Depth,
}

/// All sites that were told of.
#[derive(Default, Debug)]
pub(crate) struct ToldSites {
    known: Vec<Option<KnownSite>>,
    /// Of plain accesses of the program, what most of the time is all that matters.
    plain: Vec<PlainSite>,
    runs: FxHashMap<u32, KnownRun>,
}

/// A plain access of the program.
#[derive(Clone, Copy, Default, Debug)]
struct PlainSite {
    /// Bytes; 0 if it is something else.
    size: u16,
    is_write: bool,
}

impl ToldSites {
    fn set(&mut self, number: u32, site: KnownSite) {
        let at = number as usize;
        if at >= self.known.len() {
            self.known.resize(at + 1, None);
            self.plain.resize(at + 1, PlainSite::default());
        }
        self.plain[at] = match site.what {
            Told::Plain { size, is_write } => PlainSite {
                size: u16::try_from(size).unwrap_or(0),
                is_write,
            },
            _ => PlainSite::default(),
        };
        self.known[at] = Some(site);
    }

    pub(crate) fn set_run(&mut self, number: u32, run: &Run) {
        self.runs.insert(number, KnownRun::new(run));
    }

    fn get(&self, number: u32) -> Option<&KnownSite> {
        self.known.get(number as usize)?.as_ref()
    }
}

/// A site, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownSite {
    pc: u64,
    code: Code,
    what: Told,
    /// It is made by a loop whose other accesses are told when it is over.
    in_run: bool,
}

/// What is told at a site.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// A plain access of the program.
    Plain {
        size: u32,
        is_write: bool,
    },
    /// Another one.
    Access(LoggedAccess),
    /// One that nobody wants to hear of.
    Nothing {
        words: usize,
    },
    /// A function begins, a noted one if it is known.
    Entry {
        words: usize,
        function: Option<(&'static str, Meaning)>,
    },
    Return,
    /// A loop.
    Run,
}

/// So many words of plain accesses between two other things that happen are few: while one of these is looked at, what is known of the
/// next accesses can be fetched. Of more, the processor sees far enough ahead by itself.
const FEW: usize = 24;
/// How far ahead they are, and up to where it is worth to look.
const SOON: std::ops::Range<usize> = 16..36;

/// Parts of what a loop accesses that are taken one by one.
const SMALL: u64 = 64;

/// Noted functions within each other; the executor keeps track of more.
const DEPTH_MAX: usize = 30;

impl Observer {
    /// Sites may be told of.
    pub(crate) fn sites(&mut self, first: u32, sites: &[Site]) {
        for (number, site) in (first..).zip(sites) {
            let known = self.known_site(site);
            self.told_sites.set(number, known);
        }
    }

    fn known_site(&mut self, site: &Site) -> KnownSite {
        let code = self.code.at(site.pc, &self.modules);
        if code.owner == Owner::Parallel {
            self.unfit(Unfit::ParallelRuntime);
        }
        let mut in_loop = false;
        let what = match site.what {
            SiteKind::Entry { .. } => Told::Entry {
                words: site.what.words(),
                function: self.function_at(site.pc),
            },
            SiteKind::Return => Told::Return,
            SiteKind::Run => Told::Run,
            SiteKind::Access {
                size,
                kind,
                locked,
                segment,
                repeated,
                far_bit,
                in_run,
            } => {
                in_loop = in_run;
                if in_run && code.atomic {
                    self.unfit(Unfit::AtomicInLoop);
                }
                if far_bit || segment == Segment::Gs {
                    self.unfit(Unfit::Addressing);
                }
                if code.atomic && !locked && kind != AccessKind::Read {
                    self.unfit(Unfit::AtomicStore);
                }
                let ignored = code.stub
                    || code.owner == Owner::Loader
                    || code.owner == Owner::Library && segment != Segment::Flat;
                let plain = code.owner == Owner::Program
                    && code.may_repeat()
                    && !(locked || repeated)
                    && segment == Segment::Flat;
                let access = LoggedAccess {
                    instruction: 0,
                    base: AddressWord::Logged(0),
                    displacement: 0,
                    size,
                    kind,
                    locked,
                    segment,
                    bit: None,
                    repeat: repeated.then_some(1),
                };
                match (ignored, plain) {
                    (true, _) => Told::Nothing {
                        words: site.what.words(),
                    },
                    (_, true) if size > 0 => Told::Plain {
                        size,
                        is_write: kind != AccessKind::Read,
                    },
                    _ => Told::Access(access),
                }
            }
        };
        KnownSite {
            pc: site.pc,
            code,
            what,
            in_run: in_loop,
        }
    }

    /// The first reason counts.
    pub(crate) fn unfit(&mut self, why: Unfit) {
        self.unfit.get_or_insert(why);
    }

    /// A thread has run: goes through what is told of it.
    pub(crate) fn passed(&mut self, index: usize, words: &[Word]) {
        let sites = std::mem::take(&mut self.told_sites);
        let mut rest = self.plain_records(index, words, &sites.plain);
        // The last accesses that there were.
        let mut between = words.len() - rest.len();
        while let Some(header) = rest.first() {
            let Some(site) = sites.get(number(*header) as u32) else {
                self.unfit(Unfit::Lost);
                break;
            };
            let after = match site.what {
                Told::Run => self.run_record(index, rest, &sites),
                _ => rest.split_at_checked(site.words()).map(|(record, after)| {
                    self.told(index, site, &record[1..]);
                    after
                }),
            };
            let Some(after) = after else {
                self.unfit(Unfit::Lost);
                break;
            };
            if site.may_order() && between < FEW {
                self.expect_soon(after);
            }
            rest = self.plain_records(index, after, &sites.plain);
            if rest.len() < after.len() {
                between = after.len() - rest.len();
            }
        }
        self.told_sites = sites;
    }

    /// Among these words are addresses of plain accesses, most of them in every other one.
    fn expect_soon(&self, words: &[Word]) {
        if let Looks::Survey(suspects) = &self.looks {
            let soon = words.iter().take(SOON.end).skip(SOON.start + 1).step_by(2);
            soon.for_each(|word| suspects.expect(number(*word)));
        }
    }

    /// Goes through plain accesses of the program, up to something else, or one that may be atomic.
    fn plain_records<'w>(
        &mut self,
        index: usize,
        words: &'w [Word],
        plain: &[PlainSite],
    ) -> &'w [Word] {
        let Looks::Survey(suspects) = &mut self.looks else {
            return words;
        };
        if self.threads[index].is_hidden() {
            return words;
        }
        let thread = ThreadId(index as u32);
        let (mut records, _) = words.as_chunks::<2>();
        if suspects.is_alone(thread) {
            while let [[header, _], after @ ..] = records
                && plain
                    .get(number(*header) as usize)
                    .is_some_and(|site| site.size > 0)
            {
                records = after;
            }
            return &words[words.len() - words.len() % 2 - 2 * records.len()..];
        }
        let mut done = 0;
        for [header, address] in records {
            let Some(site) = plain.get(number(*header) as usize) else {
                break;
            };
            let (size, is_write) = (u32::from(site.size), site.is_write);
            if size == 0
                || suspects.access_new(thread, number(*address), size, is_write) != Looked::Done
            {
                break;
            }
            done += 2;
        }
        &words[done..]
    }

    /// A loop has run: answers with the words after its record; `None` if it makes no sense.
    fn run_record<'w>(
        &mut self,
        index: usize,
        words: &'w [Word],
        sites: &ToldSites,
    ) -> Option<&'w [Word]> {
        let header = number(*words.first()?);
        let site = sites.get(header as u32)?;
        let run = sites.runs.get(&(header as u32))?;
        let (record, after) = words.split_at_checked(run.words())?;
        let thread = ThreadId(index as u32);
        if self.threads[index].is_hidden() {
            if site.code.owner == Owner::Program {
                self.unfit(Unfit::Unwound);
            }
            return Some(after);
        }
        let Looks::Survey(suspects) = &mut self.looks else {
            return Some(after);
        };
        if suspects.is_alone(thread) {
            return Some(after);
        }
        let mut values = [0; RUN_VALUES_MAX + 1];
        let values = values.get_mut(..record.len() - 1)?;
        for (value, word) in values.iter_mut().zip(&record[1..]) {
            *value = number(*word);
        }
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        run.ran(values, (header >> 32) as usize, &mut parts)?;
        let is_programs = site.code.owner == Owner::Program;
        if is_programs && !site.code.may_repeat() || site.code.owner == Owner::Loader {
            self.unfit(Unfit::AtomicInLoop);
        }
        for part in &parts {
            let mut ends = [part.start, part.start + (part.size - 1)].into_iter();
            if !is_programs && !ends.any(|at| self.ownership.is_programs(at, &self.modules)) {
                continue;
            }
            let Looks::Survey(suspects) = &mut self.looks else {
                break;
            };
            let looked = match part.size {
                size @ ..=SMALL => suspects.access(thread, part.start, size as u32, part.is_write),
                size => suspects.access_range(thread, part.start, size, part.is_write),
            };
            if looked != Looked::Done {
                // Whatever is done to it has to be told one by one.
                self.unfit(Unfit::AtomicInLoop);
            }
        }
        self.parts = parts;
        Some(after)
    }

    fn told(&mut self, index: usize, site: &KnownSite, words: &[Word]) {
        let accesses = matches!(site.what, Told::Plain { .. } | Told::Access(_));
        if accesses && site.code.owner == Owner::Program && self.threads[index].is_hidden() {
            // No function that hides what it does calls the program: it was left some other way.
            self.unfit(Unfit::Unwound);
        }
        match site.what {
            Told::Plain { size, is_write } => {
                self.look_for_order_in_loop(index, site, words);
                self.plain_slowly(index, site, words, size, is_write);
            }
            Told::Access(access) => {
                if !self.is_librarys(index, site, &access, words) {
                    self.look_for_order_in_loop(index, site, words);
                    self.access(index, site.pc, site.code, &access, words);
                }
            }
            Told::Nothing { .. } | Told::Run => {}
            Told::Entry { function, .. } => self.noted_begins(index, function, words),
            Told::Return => self.noted_returns(index, number(words[0])),
        }
    }

    /// What a loop has accessed before it came by something atomic would be told as if it came after that.
    fn look_for_order_in_loop(&mut self, index: usize, site: &KnownSite, words: &[Word]) {
        if !site.in_run {
            return;
        }
        let base = match site.what {
            Told::Access(access) if access.segment == Segment::Fs => self.threads[index].fs_base,
            _ => 0,
        };
        if self.atomics.contains(base.wrapping_add(number(words[0]))) {
            self.unfit(Unfit::AtomicInLoop);
        }
    }

    /// True if a plain access of a library is done with: it is to its own memory, or to memory that is not atomic.
    fn is_librarys(
        &mut self,
        index: usize,
        site: &KnownSite,
        access: &LoggedAccess,
        words: &[Word],
    ) -> bool {
        let Looks::Survey(suspects) = &mut self.looks else {
            return false;
        };
        let plain = site.code.owner == Owner::Library && !access.locked && access.repeat.is_none();
        if !plain || access.size == 0 || self.threads[index].is_hidden() {
            return false;
        }
        let (address, is_write) = (number(words[0]), access.kind != AccessKind::Read);
        if !self.ownership.is_programs(address, &self.modules) {
            return true;
        }
        let thread = ThreadId(index as u32);
        suspects.access_new(thread, address, access.size, is_write) == Looked::Done
    }

    /// A plain access of the program that may be atomic.
    #[inline(never)]
    fn plain_slowly(
        &mut self,
        index: usize,
        site: &KnownSite,
        words: &[Word],
        size: u32,
        is_write: bool,
    ) {
        let access = LoggedAccess {
            instruction: 0,
            base: AddressWord::Logged(0),
            displacement: 0,
            size,
            kind: if is_write {
                AccessKind::Write
            } else {
                AccessKind::Read
            },
            locked: false,
            segment: Segment::Flat,
            bit: None,
            repeat: None,
        };
        self.access(index, site.pc, site.code, &access, words);
    }

    fn noted_begins(
        &mut self,
        index: usize,
        function: Option<(&'static str, Meaning)>,
        words: &[Word],
    ) {
        let word = |at: usize| words.get(at).map_or(0, |word| number(*word));
        let return_address = word(0);
        let arguments = [1, 2, 3, 4, 5].map(word);
        if let Some((name, Meaning::Once)) = function {
            // Whether it returns is not told: nothing that it does is hidden.
            self.summary.count_call(name);
            self.add_atomic(arguments[0]);
            return;
        }
        let calls = &mut self.threads[index].calls;
        calls.enters(return_address);
        if let Some(frame) = calls.top()
            && frame.call == 0
        {
            // As good as the call itself for whose code it is in.
            frame.call = return_address;
        }
        if calls.depth() > DEPTH_MAX {
            self.unfit(Unfit::Depth);
        }
        if let Some(function) = function {
            if function.1 == Meaning::AllocateIndirectly && !self.threads[index].is_hidden() {
                self.unfit(Unfit::InnerResult);
            }
            self.hook_enters(index, function, arguments);
        }
    }

    fn noted_returns(&mut self, index: usize, result: u64) {
        let thread = &mut self.threads[index];
        thread.calls.returns();
        thread.calls.forget_return();
        if !thread.hooks.is_empty() {
            self.hook_returns(index, result);
        }
    }
}

impl KnownSite {
    /// True for what takes its time, since threads may be ordered by it.
    fn may_order(&self) -> bool {
        match self.what {
            Told::Return => true,
            Told::Access(access) => access.locked,
            _ => false,
        }
    }

    /// Words of a record, the header included.
    #[inline(always)]
    fn words(&self) -> usize {
        match self.what {
            Told::Plain { .. } | Told::Return => 2,
            Told::Access(LoggedAccess {
                repeat: Some(_), ..
            }) => 3,
            Told::Access(_) => 2,
            Told::Nothing { words } => words,
            Told::Entry { words, .. } => words,
            Told::Run => SiteKind::Run.words(),
        }
    }
}
