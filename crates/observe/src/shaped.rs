//! Blocks by their shapes, for the survey and for a look at some bytes: the same as [`Observer::run`], only quicker.

use crate::blocks::Blocks;
use crate::log::{LOOP_MIN, Word, number, times};
use crate::looks::Looks;
use crate::observer::Observer;
use crate::plain::PlainAccess;
use crate::shapes::{ControlWhat, Jump, NEVER, Shape, Shapes};
use crate::strides::Strides;
use crate::threads::ThreadState;
use verdict_detect::{Looked, Present, Suspects};
use verdict_events::ThreadId;

impl Observer {
    /// Goes through blocks that have shapes, and answers with the words after them; `None` if the first has none.
    pub(crate) fn shaped_blocks<'w>(
        &mut self,
        index: usize,
        words: &'w [Word],
        blocks: &mut Blocks,
    ) -> Option<&'w [Word]> {
        let mut rest = words;
        while let Some(header) = rest.first() {
            let header = number(*header);
            let (id, left) = (header as u32, (header >> 32) as u32);
            let Some(shape) = blocks.shapes().get(id, left) else {
                if blocks.make_shape(id, left) {
                    continue;
                }
                break;
            };
            let len = usize::from(shape.words);
            let is_repeated = shape.is_plain && rest.get(len) == rest.first();
            let times = match is_repeated {
                true => times(rest, rest[0], len),
                false => 1,
            };
            let Some((logged, after)) = rest.split_at_checked(len * times) else {
                return Some(&[]);
            };
            self.run_shape(index, blocks, shape, logged);
            rest = after;
        }
        (rest.len() < words.len()).then_some(rest)
    }

    /// A block has run, once or, if it is plain, several times in a row.
    #[inline(always)]
    fn run_shape(&mut self, index: usize, blocks: &Blocks, shape: &Shape, words: &[Word]) {
        if shape.executed == 0 {
            return;
        }
        let thread = &mut self.threads[index];
        if thread.expects_something() {
            thread.goes_on_at(shape.pc);
            if thread.is_hidden() {
                self.run_hidden(index, blocks, shape, words);
                return;
            }
            if !thread.hooks.is_empty() {
                self.run_slowly(index, blocks, shape, 0, words);
                return;
            }
        }
        self.run_openly(index, blocks, shape, words);
    }

    /// A block, or the rest of one, has run in no noted function.
    #[inline(always)]
    fn run_openly(&mut self, index: usize, blocks: &Blocks, shape: &Shape, words: &[Word]) {
        let shapes = blocks.shapes();
        if !self.is_done_with_shape(index, shapes, shape, words) {
            self.run_slowly(index, blocks, shape, shape.first, words);
            return;
        }
        let thread = &mut self.threads[index];
        for jump in shapes.jumps(shape) {
            thread.jumps(*jump);
        }
        if shape.own != 0 {
            thread.last_own = shape.own;
            thread.in_program |= shape.in_program;
        }
        if shape.slow_from != NEVER {
            self.run_from_slow(index, blocks, shape, words);
        }
    }

    /// Goes on with the first step that is to be taken as it comes.
    #[inline(never)]
    fn run_from_slow(&mut self, index: usize, blocks: &Blocks, shape: &Shape, words: &[Word]) {
        let block = blocks.get(number(words[0]) as u32);
        match (block, blocks.shapes().rest(shape.rest)) {
            (Some(block), Some(rest)) => {
                self.run_control(index, block, shape.slow_from, words);
                self.run_rest(index, blocks, rest, words);
            }
            _ => self.run_slowly(index, blocks, shape, shape.slow_from, words),
        }
    }

    /// The rest of a block has run, after a noted function has begun or ended.
    fn run_rest(&mut self, index: usize, blocks: &Blocks, rest: &Shape, words: &[Word]) {
        let thread = &self.threads[index];
        if thread.is_hidden() {
            self.run_hidden(index, blocks, rest, words);
        } else if !thread.hooks.is_empty() {
            self.run_slowly(index, blocks, rest, rest.first, words);
        } else {
            self.run_openly(index, blocks, rest, words);
        }
    }

    /// A block has run within a noted function: where it calls and returns is all that matters, until the function is over.
    fn run_hidden(&mut self, index: usize, blocks: &Blocks, shape: &Shape, words: &[Word]) {
        let logged = &words[1..];
        let shapes = blocks.shapes();
        for control in shapes.controls(shape) {
            self.threads[index].follow(control.what, logged);
            if let ControlWhat::Return(result) = control.what {
                self.hook_returns(index, word(logged, result));
                if !self.threads[index].is_hidden() {
                    match shapes.rest(control.rest) {
                        Some(rest) => self.run_rest(index, blocks, rest, words),
                        None => self.run_slowly(index, blocks, shape, control.step + 1, words),
                    }
                    return;
                }
            }
        }
    }

    /// Takes the steps of a block as they come, from the first that is given on.
    #[inline(never)]
    fn run_slowly(
        &mut self,
        index: usize,
        blocks: &Blocks,
        shape: &Shape,
        first: u16,
        words: &[Word],
    ) {
        let Some(block) = blocks.get(number(words[0]) as u32) else {
            return;
        };
        let (first, executed) = (usize::from(first), usize::from(shape.executed));
        for logged in words.chunks_exact(usize::from(shape.words)) {
            self.run_steps(index, block, first, executed, logged);
        }
    }

    /// True if the accesses of a block are done with, as far as they need not be taken as they come.
    #[inline(always)]
    fn is_done_with_shape(
        &mut self,
        index: usize,
        shapes: &Shapes,
        shape: &Shape,
        words: &[Word],
    ) -> bool {
        if let Looks::Only(watched) = &self.looks {
            let fs_base = self.threads[index].fs_base;
            return !watched.tells_of_shape(shapes, shape, words, fs_base, &mut self.strides);
        }
        self.survey_shape(index, shapes, shape, words)
    }

    /// The same of the survey.
    #[inline(always)]
    fn survey_shape(
        &mut self,
        index: usize,
        shapes: &Shapes,
        shape: &Shape,
        words: &[Word],
    ) -> bool {
        let Looks::Survey(suspects) = &mut self.looks else {
            return false;
        };
        let thread = ThreadId(index as u32);
        let program = shapes.program(shape);
        let len = usize::from(shape.words);
        let Some(present) = suspects.present(thread, program.len()) else {
            return suspects.is_alone(thread) && !self.orders_threads(index, shapes, shape, words);
        };
        let mut done = if words.len() == len {
            survey_once(suspects, present, program, words)
        } else if words.len() >= LOOP_MIN * len {
            survey_loop(suspects, &mut self.strides, thread, program, words, len)
        } else {
            survey_each(suspects, present, program, words, len)
        };
        if !shape.is_only_programs() {
            done &= self.survey_others(index, shapes, shape, words, present);
        }
        done
    }

    /// The same of accesses to thread-local variables, and of those of libraries.
    #[inline(never)]
    fn survey_others(
        &mut self,
        index: usize,
        shapes: &Shapes,
        shape: &Shape,
        words: &[Word],
        present: Present,
    ) -> bool {
        let Looks::Survey(suspects) = &mut self.looks else {
            return false;
        };
        let fs_base = self.threads[index].fs_base;
        let mut done = true;
        for access in shapes.thread_local(shape) {
            let address = fs_base.wrapping_add(access.address_in_shape(words));
            let size = u32::from(access.size);
            let looked = suspects.access_in(present, address, size, access.is_write);
            done &= looked == Looked::Done;
        }
        for access in shapes.library(shape) {
            let (address, size) = (access.address_in_shape(words), u32::from(access.size));
            // Whose memory it is does not matter where the access is like one before.
            if !suspects.repeats(present, address, size, access.is_write)
                && self.ownership.is_programs(address, &self.modules)
            {
                let looked = suspects.access_in(present, address, size, access.is_write);
                done &= looked == Looked::Done;
            }
        }
        done
    }

    /// True if accesses of a block may be atomic, those of a thread that need not be looked at otherwise: what orders threads is
    /// told all the same.
    fn orders_threads(&self, index: usize, shapes: &Shapes, shape: &Shape, words: &[Word]) -> bool {
        let fs_base = self.threads[index].fs_base;
        let local = shapes.thread_local(shape).iter();
        let local = local.map(|access| fs_base.wrapping_add(access.address_in_shape(words)));
        let library = shapes.library(shape).iter();
        let library = library.map(|access| access.address_in_shape(words));
        local
            .chain(library)
            .any(|address| self.atomics.contains(address))
    }
}

/// True if the accesses of a block are done with.
#[inline(always)]
fn survey_once(
    suspects: &mut Suspects,
    present: Present,
    accesses: &[PlainAccess],
    words: &[Word],
) -> bool {
    let mut done = true;
    for access in accesses {
        let (address, size) = (access.address_in_shape(words), u32::from(access.size));
        let looked = suspects.access_in(present, address, size, access.is_write);
        done &= looked == Looked::Done;
    }
    done
}

/// The same of one that has run some times in a row.
fn survey_each(
    suspects: &mut Suspects,
    present: Present,
    accesses: &[PlainAccess],
    words: &[Word],
    len: usize,
) -> bool {
    let mut done = true;
    for logged in words.chunks_exact(len) {
        done &= survey_once(suspects, present, accesses, logged);
    }
    done
}

/// The same for a loop, which is taken as a whole as far as possible.
#[inline(never)]
fn survey_loop(
    suspects: &mut Suspects,
    strides: &mut Strides,
    thread: ThreadId,
    accesses: &[PlainAccess],
    words: &[Word],
    len: usize,
) -> bool {
    let mut done = true;
    let (ranges, others) = strides.split(accesses, words, len, number(words[0]));
    for range in ranges {
        let looked = suspects.access_range(thread, range.start, range.size, range.is_write);
        done &= looked == Looked::Done;
    }
    if others.is_empty() {
        return done;
    }
    match suspects.present(thread, others.len() * (words.len() / len)) {
        Some(present) => done & survey_each(suspects, present, others, words, len),
        None => false,
    }
}

#[inline(always)]
fn word(logged: &[Word], at: u16) -> u64 {
    logged.get(usize::from(at)).map_or(0, |word| number(*word))
}

impl ThreadState {
    /// It calls or returns, and is in no noted function.
    #[inline(always)]
    fn jumps(&mut self, jump: Jump) {
        match jump {
            Jump::Call {
                return_address,
                call,
            } => self.calls.call(return_address, call),
            Jump::Return => self.calls.returns(),
            Jump::Enters { pc, own } => {
                if own != 0 {
                    self.last_own = own;
                    self.in_program = true;
                }
                self.enters_library(pc);
            }
        }
    }

    /// The same wherever it is.
    #[inline(always)]
    fn follow(&mut self, what: ControlWhat, logged: &[Word]) {
        match what {
            ControlWhat::Call {
                return_address,
                call,
            } => self.calls.call(return_address, call),
            ControlWhat::Return(_) => self.calls.returns(),
            ControlWhat::Entry(return_address) => self.calls.enters(word(logged, return_address)),
            ControlWhat::Own(pc) => {
                self.in_program = true;
                self.last_own = pc;
            }
            ControlWhat::Enters(pc) => self.enters_library(pc),
            ControlWhat::LeftAt(pc) => self.last_own = pc,
        }
    }
}
