//! The executor's end of the sieve: where records of what has passed it go, and in which epoch each thread is.

use crate::Executor;
use verdict_cache::{clear_sieve, give_way, gs_base, has_given_way};
use verdict_cpu::layout::has_shadow;
use verdict_cpu::{Context, STAMP_EPOCH, STAMP_HIDDEN};
use verdict_kernel::{Memory, Role};
use verdict_stream::LOST;
use verdict_translate::{Instrumentation, log_words_per_instruction_max};

/// Words of the buffer.
const WORDS: usize = 2 << 20;
/// So many stamps are taken back one by one; of more, it is quicker to give their memory back.
const LISTED_MAX: u64 = 64 << 10;
/// Room for those, and for what is stamped before it is seen that they are more: of each record of two words, at most four.
const STAMPED: usize = LISTED_MAX as usize + 4 * WORDS / 2;
/// Noted functions within each other that a thread has room for.
const NOTED_MAX: usize = 32;
const _: () = assert!(
    (NOTED_MAX as u64) < STAMP_HIDDEN / STAMP_EPOCH - 1,
    "a thread's epochs fit into one generation"
);
/// Words of what is known of one.
const NOTED_WORDS: usize = 2;
const RECORD_BYTES: u64 = 16;
/// Stands for an epoch that is not there yet.
const SERVED: u64 = u64::MAX;

/// What has passed.
#[derive(Debug)]
pub(crate) struct Passed {
    words: Box<[u64]>,
    /// Where stamps are.
    stamped: Box<[u64]>,
    threads: Vec<Epochs>,
}

/// Where a thread stands.
#[derive(Debug)]
struct Epochs {
    /// Or [`SERVED`].
    now: u64,
    /// Noted functions that have not returned: for each the negative stack pointer and the epoch after it.
    noted: Box<[u64]>,
    /// The innermost of them.
    top: usize,
    /// Epochs of other generations mean nothing any more.
    generation: u64,
}

impl Default for Epochs {
    fn default() -> Self {
        let mut noted = vec![0; NOTED_WORDS * NOTED_MAX];
        // The end of memory, negative.
        noted[0] = 1;
        Epochs {
            now: SERVED,
            noted: noted.into(),
            top: 0,
            generation: 0,
        }
    }
}

/// An epoch that no thread has been in. Those that were may mean nothing any more.
fn next_epoch(context: &mut Context) -> u64 {
    context.epochs += context.epoch_step;
    if context.epochs == STAMP_HIDDEN {
        clear_sieve(context);
    }
    context.epochs
}

impl Epochs {
    /// Where the list of noted functions is.
    fn noted(&self) -> u64 {
        self.noted.as_ptr() as u64
    }

    /// Makes all its epochs ones of the present generation.
    fn keep_up(&mut self, context: &mut Context) {
        while self.generation != context.generation {
            self.generation = context.generation;
            // The first entry is none.
            let after = self.noted.iter_mut().skip(1).step_by(NOTED_WORDS);
            let listed = self.top / NOTED_WORDS;
            for epoch in after.skip(1).take(listed).chain([&mut self.now]) {
                if *epoch != STAMP_HIDDEN {
                    *epoch = next_epoch(context);
                }
            }
        }
    }
}

impl Passed {
    /// From here on, what the guest does in its memory is sifted.
    pub(crate) fn new(memory: &mut Memory) -> Self {
        if memory
            .mappings()
            .any(|(start, mapping)| !has_shadow(start, mapping.end))
        {
            give_way();
        }
        memory.without_shadow = Some(give_way);
        Passed {
            words: vec![0; WORDS].into(),
            stamped: vec![0; STAMPED].into(),
            threads: Vec::new(),
        }
    }

    /// How many instructions may run without overrunning an empty buffer; `reserve`: how many more may run than the budget says.
    pub(crate) fn stretch_max(&self, reserve: i64) -> u64 {
        let each = log_words_per_instruction_max(Instrumentation::Sifted);
        self.words.len() as u64 / each - reserve as u64
    }

    fn start(&self) -> u64 {
        self.words.as_ptr() as u64
    }

    /// What was told up to `next`, as bytes.
    fn bytes(&self, next: u64) -> &[u8] {
        let len = (next - self.start()) as usize;
        assert!(
            len <= 8 * self.words.len(),
            "the records outgrew their buffer"
        );
        // SAFETY: within the buffer, as just checked; the borrow of `self` keeps it, and the guest does not run meanwhile.
        unsafe { std::slice::from_raw_parts(self.start() as *const u8, len) }
    }

    /// A thread is about to run.
    fn resumes(&mut self, thread: usize, threads: usize, context: &mut Context) {
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, Epochs::default);
        }
        context.passed_next = self.start();
        // What the first thread does before there is another one comes before all that others do.
        let is_alone = threads <= 1;
        context.passed_step = if is_alone { 0 } else { RECORD_BYTES };
        self.list_stamps(is_alone, context);
        let state = &mut self.threads[thread];
        state.keep_up(context);
        if state.now == SERVED {
            state.now = next_epoch(context);
            state.keep_up(context);
        }
        context.epoch = state.now;
        context.runtime_step = match state.now {
            STAMP_HIDDEN => 0,
            _ => context.passed_step,
        };
        context.noted_top = state.noted() + 8 * state.top as u64;
        context.noted_end = state.noted() + 8 * state.noted.len() as u64;
    }

    /// Sees that stamps are listed, and that there are none while there is one thread only.
    fn list_stamps(&mut self, is_alone: bool, context: &mut Context) {
        let listed = context.stamped_next.wrapping_sub(context.stamped) / 8;
        if context.stamped != self.stamped.as_ptr() as u64 {
            context.stamped = self.stamped.as_ptr() as u64;
            context.stamped_next = context.stamped;
        } else if listed > LISTED_MAX {
            context.unlisted = 1;
            context.stamped_next = context.stamped;
        }
        let step = if is_alone { 0 } else { STAMP_EPOCH };
        if step != context.epoch_step || context.generation == 0 {
            context.epoch_step = step;
            clear_sieve(context);
        }
    }

    /// A thread has run.
    fn pauses(&mut self, thread: usize, context: &Context) {
        let state = &mut self.threads[thread];
        state.now = context.epoch;
        state.generation = context.generation;
        state.top = ((context.noted_top - state.noted()) / 8) as usize;
    }

    /// The engine does something for a thread: others may be given something to wait for.
    pub(crate) fn served(&mut self, thread: usize) {
        if let Some(state) = self.threads.get_mut(thread)
            && state.now != STAMP_HIDDEN
        {
            state.now = SERVED;
        }
    }

    /// Not all that a thread did is told.
    fn lose(&mut self, context: &mut Context) {
        let next = context.passed_next as *mut u64;
        // SAFETY: within the buffer, which has room for more than the instructions that have run could tell.
        unsafe { *next = LOST };
        context.passed_next += 8;
    }

    /// Another program runs.
    pub(crate) fn start_over(&mut self) {
        self.threads.clear();
    }
}

impl Executor {
    /// The base of gs with which a thread is to run whose own is given.
    pub(crate) fn gs_base_for(&self, own: u64) -> u64 {
        if self.passed.is_none() {
            return own;
        }
        if own != 0 {
            give_way();
        }
        gs_base(own)
    }

    /// Whether the base of gs is what the guest has made it.
    pub(crate) fn has_own_gs_base(&self) -> bool {
        self.passed.is_none() || has_given_way()
    }

    /// A block has been made: what has to do with gs leaves no place for shadows.
    pub(crate) fn see_to_gs(&mut self) {
        if self.passed.is_some() && self.cache.takes_gs() {
            give_way();
        }
    }

    /// The thread that is loaded is about to run.
    pub(crate) fn sieve_resumes(&mut self) {
        let (thread, threads) = (self.loaded, self.kernel.threads.len());
        if let Some(mut passed) = self.passed.take() {
            passed.resumes(thread, threads, self.context());
            self.passed = Some(passed);
        }
    }

    /// What was told so far counts no more: it is new wherever it happens again.
    pub(crate) fn forget_passed(&mut self) {
        if self.passed.is_some() {
            clear_sieve(self.context());
        }
    }

    /// Tells what has passed since the thread that is loaded was resumed.
    pub(crate) fn tell_passed(&mut self) {
        let Some(mut passed) = self.passed.take() else {
            return;
        };
        let thread = &self.kernel.threads[self.loaded];
        let (id, fs_base) = (thread.id.0, thread.registers.fs_base);
        let tells = self.kernel.role == Role::Main;
        passed.pauses(self.loaded, self.context());
        if has_given_way() {
            passed.lose(self.context());
        }
        let next = self.context().passed_next;
        if let (Some(events), true) = (&mut self.events, tells) {
            events.passed(id, fs_base, passed.bytes(next));
        }
        self.passed = Some(passed);
        self.sieve_resumes();
    }
}
