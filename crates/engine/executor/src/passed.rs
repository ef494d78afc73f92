//! The executor's end of the sieve: where records of what has passed it go, and in which epoch each thread is.

use crate::Executor;
use verdict_cache::clear_sieve;
use verdict_cpu::Context;
use verdict_kernel::Role;
use verdict_translate::{EPOCH, Instrumentation, log_words_per_instruction_max};

/// Words of the buffer.
const WORDS: usize = 512 << 10;
/// So many epochs may begin before all begin anew. What a buffer has room for begins fewer than what is left of them then.
const EPOCHS_MAX: u64 = 65_000;
const _: () = assert!(EPOCHS_MAX + 2 * (WORDS as u64) / 16 < u64::MAX / EPOCH);
/// Noted functions within each other that a thread has room for.
const NOTED_MAX: usize = 256;
/// Words of what is known of one.
const NOTED_WORDS: usize = 2;
const RECORD_BYTES: u64 = 16;

/// What has passed.
#[derive(Debug)]
pub(crate) struct Passed {
    words: Box<[u64]>,
    threads: Vec<Epochs>,
}

/// Where a thread stands.
#[derive(Debug)]
struct Epochs {
    /// 0 for a new one.
    now: u64,
    /// Noted functions that have not returned: for each the negative stack pointer and the epoch after it.
    noted: Box<[u64]>,
    /// The innermost of them.
    top: usize,
}

impl Default for Epochs {
    fn default() -> Self {
        let mut noted = vec![0; NOTED_WORDS * NOTED_MAX];
        // The end of memory, negative.
        noted[0] = 1;
        Epochs {
            now: 0,
            noted: noted.into(),
            top: 0,
        }
    }
}

/// The epoch of a thread in a noted function has this number; no other has.
fn is_hidden(epoch: u64) -> bool {
    epoch / EPOCH == 1
}

impl Epochs {
    /// Where the list of noted functions is.
    fn noted(&self) -> u64 {
        self.noted.as_ptr() as u64
    }

    /// Numbers from before mean nothing any more.
    fn begin_anew(&mut self, epochs: &mut u64) {
        let after = self.noted.iter_mut().skip(1).step_by(NOTED_WORDS);
        let listed = self.top / NOTED_WORDS + 1;
        for epoch in after.take(listed).chain([&mut self.now]) {
            if !is_hidden(*epoch) {
                *epochs += EPOCH;
                *epoch = *epochs;
            }
        }
    }
}

impl Passed {
    pub(crate) fn new() -> Self {
        Passed {
            words: vec![0; WORDS].into(),
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
        context.passed_step = if threads > 1 { RECORD_BYTES } else { 0 };
        let begun = context.epochs / EPOCH;
        if begun == 0 || begun > EPOCHS_MAX {
            clear_sieve();
            context.epochs = EPOCH;
            for thread in &mut self.threads {
                thread.begin_anew(&mut context.epochs);
            }
        }
        let state = &mut self.threads[thread];
        if state.now == 0 {
            context.epochs += EPOCH;
            state.now = context.epochs;
        }
        context.epoch = state.now;
        context.runtime_step = match is_hidden(state.now) {
            true => 0,
            false => context.passed_step,
        };
        context.noted_top = state.noted() + 8 * state.top as u64;
        context.noted_end = state.noted() + 8 * state.noted.len() as u64;
    }

    /// A thread has run.
    fn pauses(&mut self, thread: usize, context: &Context) {
        let state = &mut self.threads[thread];
        state.now = context.epoch;
        state.top = ((context.noted_top - state.noted()) / 8) as usize;
    }

    /// The engine does something for a thread: others may be given something to wait for.
    pub(crate) fn served(&mut self, thread: usize) {
        if let Some(state) = self.threads.get_mut(thread)
            && !is_hidden(state.now)
        {
            state.now = 0;
        }
    }

    /// Another program runs.
    pub(crate) fn start_over(&mut self) {
        self.threads.clear();
    }
}

impl Executor {
    /// The thread that is loaded is about to run.
    pub(crate) fn sieve_resumes(&mut self) {
        let (thread, threads) = (self.loaded, self.kernel.threads.len());
        if let Some(mut passed) = self.passed.take() {
            passed.resumes(thread, threads, self.context());
            self.passed = Some(passed);
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
        let next = self.context().passed_next;
        if let (Some(events), true) = (&mut self.events, tells) {
            events.passed(id, fs_base, passed.bytes(next));
        }
        self.passed = Some(passed);
        self.sieve_resumes();
    }
}
