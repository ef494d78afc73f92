//! The executor's end of the access log: a buffer that translated code fills and that is emptied between slices.

use verdict_cache::{BlockId, CodeCache, ONE_OFF_BLOCK_ID};
use verdict_translate::{AccessKind, Instrumentation, LoggedAccess, log_words_per_instruction_max};

/// Words of the buffer where accesses are all there is to log: few enough to stay in the processor's second-level
/// cache, beside what the guest has there.
const WORDS: usize = 32 << 10;
/// Words of the buffer where everything is told: each time that it is emptied is a message.
const WORDS_TOLD: usize = 512 << 10;

/// Where accesses go, and what became of them.
#[derive(Debug)]
pub(crate) struct AccessLog {
    words: Box<[u64]>,
    hashing: bool,
    /// Most words that one instruction can add.
    per_instruction: u64,
    /// Accesses seen.
    pub(crate) count: u64,
    /// Hash of all accesses in order, thread by thread as they ran.
    pub(crate) hash: u64,
}

impl AccessLog {
    pub(crate) fn new(instrumentation: Instrumentation, hashing: bool) -> Self {
        let words = match instrumentation {
            Instrumentation::Everything => WORDS_TOLD,
            _ => WORDS,
        };
        AccessLog {
            words: vec![0; words].into(),
            hashing,
            per_instruction: log_words_per_instruction_max(instrumentation),
            count: 0,
            hash: 0,
        }
    }

    /// How many instructions may run, once what was left before is used up, without overrunning an empty buffer; `reserve`: how many
    /// more may run than the budget says.
    pub(crate) fn stretch_max(&self, reserve: i64) -> u64 {
        self.words.len() as u64 / self.per_instruction - reserve as u64
    }

    /// Address of the first word.
    pub(crate) fn start(&self) -> u64 {
        self.words.as_ptr() as u64
    }

    /// True if hashes are wanted.
    pub(crate) fn hashes(&self) -> bool {
        self.hashing
    }

    /// The words that were logged up to `next`, as bytes.
    pub(crate) fn bytes(&self, next: u64) -> &[u8] {
        let len = (next - self.start()) as usize;
        assert!(len <= 8 * self.words.len(), "the log outgrew its buffer");
        // SAFETY: within the buffer, as just checked; the borrow of `self` keeps it, and the guest does not run meanwhile.
        unsafe { std::slice::from_raw_parts(self.start() as *const u8, len) }
    }

    /// Consumes what was logged up to `next`.
    pub(crate) fn drain(&mut self, next: u64, thread: u32, cache: &CodeCache) {
        if !self.hashing {
            return;
        }
        let filled = ((next - self.start()) / 8) as usize;
        let mut at = 0;
        while at < filled {
            // SAFETY: in bounds; volatile because translated code, not Rust, wrote the words.
            let header = unsafe { std::ptr::read_volatile(&self.words[at]) };
            let id = header as u32;
            let block = if id == ONE_OFF_BLOCK_ID {
                cache.logged_one_off()
            } else {
                cache.logged(BlockId(id))
            };
            let whole = block.words.len().saturating_sub(1);
            let executed = match header >> 32 {
                0 => whole,
                early => early as usize - 1,
            };
            let words = usize::from(block.words[executed]);
            let logged = &self.words[at + 1..at + words];
            for access in block
                .accesses
                .iter()
                .take_while(|access| usize::from(access.instruction) < executed)
            {
                self.hash = fold(self.hash, thread, access, logged);
                self.count += 1;
            }
            at += words;
        }
    }
}

fn fold(hash: u64, thread: u32, access: &LoggedAccess, logged: &[u64]) -> u64 {
    let address = access.address(logged);
    let repeat = access.repeat.map_or(1, |word| logged[usize::from(word)]);
    let kind = match access.kind {
        AccessKind::Read => 1,
        AccessKind::Write => 2,
        AccessKind::ReadWrite => 3,
    };
    let detail = u64::from(thread) << 32 ^ u64::from(access.size) << 8 ^ kind ^ repeat << 40;
    let mixed = (hash ^ address)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
        ^ detail;
    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
