//! Reads the words of the access log: which blocks a thread has run, and at which addresses.
//!
//! Most of what programs do are plain accesses that say nothing new, in blocks that have nothing else. These are gone through as
//! fast as it goes: loops as a whole, the others access by access, and only what is left is looked at.

use crate::blocks::{Blocks, Known, Quick, What};
use crate::heap::Heap;
use crate::looks::Looks;
use crate::modules::Owner;
use crate::observer::Observer;
use crate::plain::PlainAccess;
use crate::strides::Strides;
use verdict_detect::Looked;
use verdict_events::ThreadId;

/// A word of the log, as it came.
pub(crate) type Word = [u8; 8];

/// Fewer repetitions than this are taken one by one.
pub(crate) const LOOP_MIN: usize = 4;

#[inline(always)]
pub(crate) fn number(word: Word) -> u64 {
    u64::from_le_bytes(word)
}

/// An execution of a block, as the log has it.
#[derive(Clone, Copy, Debug)]
struct Execution {
    id: u32,
    /// How many instructions have run; `None` if all.
    executed: Option<usize>,
}

impl Execution {
    #[inline(always)]
    fn of(header: Word) -> Self {
        let header = number(header);
        Execution {
            id: header as u32,
            executed: (header >> 32 != 0).then(|| (header >> 32) as usize - 1),
        }
    }
}

impl Observer {
    pub(crate) fn log(&mut self, index: usize, words: &[Word]) {
        let mut rest = words;
        while let (false, Some(after)) = (rest.is_empty(), self.log_some(index, rest)) {
            rest = after;
        }
    }

    /// Goes through some blocks, and answers with the words after them; `None` if they make no sense.
    pub(crate) fn log_some<'w>(&mut self, index: usize, words: &'w [Word]) -> Option<&'w [Word]> {
        let mut blocks = std::mem::take(&mut self.blocks);
        let passed = match self.looks {
            Looks::Survey(_) | Looks::Only(_) => self.shaped_blocks(index, words, &mut blocks),
            _ => self.plain_blocks(index, words, &blocks),
        };
        let after = passed.or_else(|| self.log_one(index, words, &blocks));
        self.blocks = blocks;
        after
    }

    /// The same of one.
    fn log_one<'w>(
        &mut self,
        index: usize,
        words: &'w [Word],
        blocks: &Blocks,
    ) -> Option<&'w [Word]> {
        let execution = Execution::of(*words.first()?);
        let block = blocks.get(execution.id)?;
        let executed = execution.executed.unwrap_or(block.len());
        let (logged, after) = words.split_at_checked(block.words(executed))?;
        self.run(index, block, executed, logged);
        Some(after)
    }

    /// The slow twin of [`Observer::log`]: block by block, step by step.
    #[cfg(test)]
    pub(crate) fn log_step_by_step(&mut self, index: usize, words: &[Word]) {
        let blocks = std::mem::take(&mut self.blocks);
        let mut rest = words;
        while let Some(header) = rest.first() {
            let execution = Execution::of(*header);
            let block = blocks.get(execution.id).expect("a block that was told");
            let executed = execution.executed.unwrap_or(block.len());
            let (logged, after) = rest.split_at(block.words(executed));
            self.run(index, block, executed, logged);
            rest = after;
        }
        self.blocks = blocks;
    }

    /// Goes through blocks of plain accesses, and answers with the words after them; `None` if the first is none.
    fn plain_blocks<'w>(
        &mut self,
        index: usize,
        words: &'w [Word],
        blocks: &Blocks,
    ) -> Option<&'w [Word]> {
        if !matches!(self.looks, Looks::Heap(_)) {
            return None;
        }
        let first = Execution::of(*words.first()?);
        blocks.plain().get(first.id)?;
        let thread = &mut self.threads[index];
        if thread.expects_something() {
            thread.goes_on_at(blocks.get(first.id)?.info.pcs.first().copied().unwrap_or(0));
        }
        thread.in_program = true;
        let mut passed = Passed {
            rest: words,
            last: first,
        };
        while let Some(len) = self.pass(index, blocks, &mut passed) {
            let (logged, after) = passed.rest.split_at(len);
            passed.last = Execution::of(logged[0]);
            passed.rest = after;
            let block = blocks.get(passed.last.id)?;
            let executed = passed.last.executed.unwrap_or(block.len());
            for logged in logged.chunks_exact(block.words(executed)) {
                self.run(index, block, executed, logged);
            }
        }
        let block = blocks.get(passed.last.id)?;
        let executed = passed.last.executed.unwrap_or(block.len());
        if let Some(last) = executed
            .checked_sub(1)
            .and_then(|at| block.info.pcs.get(at))
        {
            self.threads[index].last_own = *last;
        }
        Some(passed.rest)
    }

    /// Goes on through blocks of plain accesses until there is none, or one that has to be looked at access by access: answers
    /// with how many words it has.
    fn pass(&mut self, index: usize, blocks: &Blocks, passed: &mut Passed<'_>) -> Option<usize> {
        let is_hidden = self.threads[index].is_hidden();
        match &mut self.looks {
            Looks::Heap(look) if !is_hidden => {
                let (heap, strides) = (&look.heap, &mut self.strides);
                passed.go_on(blocks, |run| is_allowed(heap, strides, run))
            }
            _ => passed.go_on(blocks, |_| true),
        }
    }

    /// A block has run for so many instructions.
    pub(crate) fn run(&mut self, index: usize, block: &Known, executed: usize, words: &[Word]) {
        let executed = executed.min(block.info.pcs.len());
        if executed == 0 {
            return;
        }
        self.threads[index].goes_on_at(block.info.pcs[0]);
        self.run_steps(index, block, 0, executed, words);
    }

    /// The steps of a block from the first that is given on.
    pub(crate) fn run_steps(
        &mut self,
        index: usize,
        block: &Known,
        first: usize,
        executed: usize,
        words: &[Word],
    ) {
        let logged = &words[1..];
        let mut hidden = self.threads[index].is_hidden();
        for step in &block.steps[first..] {
            if usize::from(step.instruction) >= executed {
                break;
            }
            match step.what {
                What::Own(pc) => {
                    let thread = &mut self.threads[index];
                    thread.in_program = true;
                    thread.last_own = pc;
                }
                What::Enters(pc) => self.threads[index].enters_library(pc),
                What::Access(_) if hidden => {}
                What::Access(number) => {
                    if let Some(quick) = &block.quick[usize::from(number)]
                        && self.is_done_with(index, quick, words)
                    {
                        continue;
                    }
                    let access = &block.info.accesses[usize::from(number)];
                    let at = usize::from(step.instruction);
                    self.access(index, block.info.pcs[at], block.code[at], access, logged);
                }
                What::Control(number) => {
                    let mark = &block.info.control[usize::from(number)];
                    let pc = block.info.pcs[usize::from(step.instruction)];
                    self.control(index, pc, &mark.step, logged);
                    hidden = self.threads[index].is_hidden();
                }
            }
        }
        if executed < block.info.pcs.len() {
            let ran = block.code[..executed].iter().zip(&block.info.pcs);
            let mut own = ran.filter(|(code, _)| code.owner == Owner::Program && !code.stub);
            if let Some((_, pc)) = own.next_back() {
                self.threads[index].last_own = *pc;
            }
        }
    }
}

impl Observer {
    /// One step of a block, if it is a mark.
    pub(crate) fn run_control(&mut self, index: usize, block: &Known, step: u16, words: &[Word]) {
        let step = &block.steps[usize::from(step)];
        if let What::Control(number) = step.what {
            let mark = &block.info.control[usize::from(number)];
            let pc = block.info.pcs[usize::from(step.instruction)];
            self.control(index, pc, &mark.step, &words[1..]);
        }
    }

    /// True only if the access is done with: all that is asked for is which bytes may race, or what happens to others.
    #[inline(always)]
    fn is_done_with(&mut self, index: usize, quick: &Quick, words: &[Word]) -> bool {
        let (thread, access) = (ThreadId(index as u32), &quick.access);
        let suspects = match &mut self.looks {
            Looks::Survey(suspects) => suspects,
            Looks::Only(watched) => return !watched.tells_of(access.address(words), access.size),
            Looks::All | Looks::Heap(_) => return false,
        };
        let (address, size) = (access.address(words), u32::from(access.size));
        match quick.owner {
            Owner::Program => {
                suspects.access(thread, address, size, access.is_write) == Looked::Done
            }
            // Whose memory it is does not matter where the access is like one before.
            _ => suspects
                .present(thread, 0)
                .is_some_and(|present| suspects.repeats(present, address, size, access.is_write)),
        }
    }
}

/// Blocks of plain accesses, gone through one after the other.
struct Passed<'w> {
    rest: &'w [Word],
    last: Execution,
}

impl Passed<'_> {
    /// Goes on for as long as `is_done` with what runs; answers with how many words that has which it is not done with.
    #[inline(always)]
    fn go_on(
        &mut self,
        blocks: &Blocks,
        mut is_done: impl FnMut(&PlainRun<'_>) -> bool,
    ) -> Option<usize> {
        let plain = blocks.plain();
        while let Some(header) = self.rest.first() {
            let execution = Execution::of(*header);
            let block = plain.get(execution.id)?;
            let all = plain.accesses(block);
            // Loops that leave their block early do so each time.
            let (accesses, len) = match execution.executed {
                None => (all, usize::from(block.len)),
                Some(executed) => {
                    let ran =
                        all.partition_point(|access| usize::from(access.instruction) < executed);
                    (&all[..ran], plain.words(block, executed))
                }
            };
            let times = times(self.rest, *header, len);
            let Some(words) = self.rest.get(..len * times) else {
                self.rest = &[];
                return None;
            };
            let run = PlainRun {
                accesses,
                words,
                len,
            };
            if !accesses.is_empty() && !is_done(&run) {
                return Some(words.len());
            }
            self.last = execution;
            self.rest = &self.rest[len * times..];
        }
        None
    }
}

/// A block of plain accesses that has run, once or several times in a row.
#[derive(Clone, Copy)]
struct PlainRun<'a> {
    accesses: &'a [PlainAccess],
    /// As often as it ran.
    words: &'a [Word],
    /// Words of each time.
    len: usize,
}

impl<'a> PlainRun<'a> {
    /// Every access, and where.
    #[inline(always)]
    fn addresses(&self) -> impl Iterator<Item = (u64, &'a PlainAccess)> {
        let each = self.words.chunks_exact(self.len);
        let accesses = self.accesses;
        each.flat_map(move |logged| {
            let one = move |access: &'a PlainAccess| (access.address(logged), access);
            accesses.iter().map(one)
        })
    }
}

/// True if nobody is forbidden to touch what a block accesses.
#[inline(always)]
fn is_allowed(heap: &Heap, strides: &mut Strides, run: &PlainRun<'_>) -> bool {
    let mut run = *run;
    if run.words.len() >= LOOP_MIN * run.len {
        let (ranges, others) = strides.split(run.accesses, run.words, run.len, 0);
        let mut ranges = ranges.iter();
        if ranges.any(|range| heap.may_forbid(range.start, range.size)) {
            return false;
        }
        run.accesses = others;
    }
    let mut addresses = run.addresses();
    addresses.all(|(address, access)| !heap.may_forbid(address, u64::from(access.size)))
}

/// How often the log has the same block in a row.
#[inline(always)]
pub(crate) fn times(words: &[Word], header: Word, len: usize) -> usize {
    let repeated = words.chunks_exact(len);
    repeated
        .take_while(|logged| logged[0] == header)
        .count()
        .max(1)
}
