//! Reads the words of the access log: which blocks a thread has run, and at which addresses.
//!
//! Loops are most of what programs do. Where one block runs again and again with addresses a constant step apart, each of its
//! accesses is looked at once, for all the bytes that it came by.

use crate::blocks::{Blocks, Known, PlainAccess, What};
use crate::looks::Looks;
use crate::modules::Owner;
use crate::observer::Observer;
use verdict_detect::Looked;
use verdict_events::ThreadId;

/// A word of the log, as it came.
pub(crate) type Word = [u8; 8];

/// Fewer repetitions than this are taken one by one.
const LOOP_MIN: usize = 4;

#[inline(always)]
fn number(word: Word) -> u64 {
    u64::from_le_bytes(word)
}

impl Observer {
    pub(crate) fn log(&mut self, index: usize, words: &[Word]) {
        let blocks = std::mem::take(&mut self.blocks);
        self.log_of(index, words, &blocks);
        self.blocks = blocks;
    }

    fn log_of(&mut self, index: usize, words: &[Word], blocks: &Blocks) {
        let mut at = 0;
        while let Some(header) = words.get(at).copied().map(number) {
            let Some(block) = blocks.get(header as u32) else {
                return;
            };
            let executed = match header >> 32 {
                0 => block.len(),
                early => early as usize - 1,
            };
            let len = block.words(executed);
            let times = match &block.plain {
                Some(_) if header >> 32 == 0 => times(&words[at..], header, len),
                _ => 1,
            };
            let Some(logged) = words.get(at..at + len * times) else {
                return;
            };
            match &block.plain {
                Some(plain) if header >> 32 == 0 => {
                    self.run_plain(index, block, plain, logged, len);
                }
                _ => self.run(index, block, executed, &logged[1..]),
            }
            at += len * times;
        }
    }

    /// A block has run for so many instructions.
    fn run(&mut self, index: usize, block: &Known, executed: usize, logged: &[Word]) {
        let executed = executed.min(block.info.pcs.len());
        if executed == 0 {
            return;
        }
        self.threads[index].goes_on_at(block.info.pcs[0]);
        for step in &block.steps {
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
                What::Access(number) => {
                    let access = &block.info.accesses[usize::from(number)];
                    let at = usize::from(step.instruction);
                    self.access(index, block.info.pcs[at], block.code[at], access, logged);
                }
                What::Control(number) => {
                    let mark = &block.info.control[usize::from(number)];
                    let pc = block.info.pcs[usize::from(step.instruction)];
                    self.control(index, pc, &mark.step, logged);
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

    /// A block of plain accesses has run to its end, as often as there are words for.
    #[inline]
    fn run_plain(
        &mut self,
        index: usize,
        block: &Known,
        plain: &[PlainAccess],
        words: &[Word],
        len: usize,
    ) {
        let thread = &mut self.threads[index];
        if thread.expects_something() {
            thread.goes_on_at(block.info.pcs.first().copied().unwrap_or(0));
        }
        thread.in_program = true;
        thread.last_own = block.last_own;
        if thread.is_hidden() {
            return;
        }
        let Looks::Survey(suspects) = &mut self.looks else {
            return self.run_each(index, block, words, len);
        };
        let id = ThreadId(index as u32);
        if suspects.is_alone(id) {
            return;
        }
        let is_loop = words.len() >= LOOP_MIN * len;
        let mut uncertain = false;
        for access in plain {
            let (is_write, size) = (access.is_write, access.size);
            let Some(word) = access.word.map(|word| usize::from(word) + 1) else {
                let looked = suspects.access(id, access.displacement, size, is_write);
                uncertain |= looked == Looked::PerhapsAtomic;
                continue;
            };
            let address = |base: Word| number(base).wrapping_add(access.displacement);
            if is_loop && let Some((start, bytes)) = range(words, len, word, u64::from(size)) {
                let start = start.wrapping_add(access.displacement);
                let looked = suspects.access_range(id, start, bytes, is_write);
                uncertain |= looked == Looked::PerhapsAtomic;
                continue;
            }
            for logged in words.chunks_exact(len) {
                let Some(base) = logged.get(word) else { break };
                let looked = suspects.access(id, address(*base), size, is_write);
                uncertain |= looked == Looked::PerhapsAtomic;
            }
        }
        if uncertain {
            self.run_each(index, block, words, len);
        }
    }

    /// The same, access by access.
    fn run_each(&mut self, index: usize, block: &Known, words: &[Word], len: usize) {
        for logged in words.chunks_exact(len) {
            for access in &block.info.accesses {
                let at = usize::from(access.instruction);
                let (pc, code) = (block.info.pcs[at], block.code[at]);
                self.threads[index].last_own = pc;
                self.access(index, pc, code, access, &logged[1..]);
            }
        }
        self.threads[index].last_own = block.last_own;
    }
}

/// How often the log has the same block in a row.
#[inline]
fn times(words: &[Word], header: u64, len: usize) -> usize {
    let repeated = words.chunks_exact(len);
    repeated
        .take_while(|logged| number(logged[0]) == header)
        .count()
        .max(1)
}

/// The first byte before displacement and the number of bytes that an access came by, if its bases are a constant step apart
/// that leaves no gaps.
#[inline]
fn range(words: &[Word], len: usize, word: usize, size: u64) -> Option<(u64, u64)> {
    let mut bases = words.chunks_exact(len).map(|logged| number(logged[word]));
    let first = bases.next()?;
    let second = bases.next()?;
    let step = second.wrapping_sub(first) as i64;
    if step.unsigned_abs() > size {
        return None;
    }
    let mut last = second;
    let mut steady = true;
    for base in bases {
        steady &= base.wrapping_sub(last) as i64 == step;
        last = base;
    }
    if !steady {
        return None;
    }
    let lowest = if step < 0 { last } else { first };
    let distance = last.wrapping_sub(first) as i64;
    Some((lowest, distance.unsigned_abs() + size))
}
