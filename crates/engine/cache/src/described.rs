//! What the words that a block writes to the access log stand for.

use crate::blocks::{BlockId, CodeCache};
use verdict_translate::{Block, ControlMark, LoggedAccess, Run, Site};

/// The constant part of a block's access log.
#[derive(Clone, Copy, Default, Debug)]
pub struct LoggedBlock<'a> {
    /// The accesses in order.
    pub accesses: &'a [LoggedAccess],
    /// Words logged (header included) once so many instructions have retired.
    pub words: &'a [u16],
    /// Calls and returns, with [`verdict_translate::Instrumentation::Everything`].
    pub control: &'a [ControlMark],
    /// The addresses of its instructions, with [`verdict_translate::Instrumentation::Everything`].
    pub pcs: &'a [u64],
    /// The first number, and the sites from there on, with [`verdict_translate::Instrumentation::Sifted`].
    pub sites: (u32, &'a [Site]),
    /// What it does if it is a run.
    pub run: Option<&'a Run>,
}

/// The same, owned.
#[derive(Debug)]
pub(crate) struct Description {
    accesses: Box<[LoggedAccess]>,
    words: Box<[u16]>,
    control: Box<[ControlMark]>,
    pcs: Box<[u64]>,
    first_site: u32,
    sites: Box<[Site]>,
    run: Option<Run>,
}

impl Description {
    /// Takes it from a block; `None` if the block does not log.
    pub(crate) fn take(block: &mut Block, first_site: u32) -> Option<Box<Description>> {
        if block.log_words.is_empty() {
            return None;
        }
        Some(Box::new(Description {
            accesses: std::mem::take(&mut block.accesses).into(),
            words: std::mem::take(&mut block.log_words).into(),
            control: std::mem::take(&mut block.control).into(),
            pcs: std::mem::take(&mut block.pcs).into(),
            first_site,
            sites: std::mem::take(&mut block.sites).into(),
            run: block.run.take(),
        }))
    }

    pub(crate) fn logged(&self) -> LoggedBlock<'_> {
        LoggedBlock {
            accesses: &self.accesses,
            words: &self.words,
            control: &self.control,
            pcs: &self.pcs,
            sites: (self.first_site, &self.sites),
            run: self.run.as_ref(),
        }
    }
}

impl CodeCache {
    /// What a block writes to the access log; empty if it does not, or if that is forgotten.
    pub fn logged(&self, block: BlockId) -> LoggedBlock<'_> {
        let description = self.entries[block.0 as usize].description.as_ref();
        description.map_or_else(LoggedBlock::default, |known| known.logged())
    }

    /// Forgets what a block writes to the access log: whoever reads the log knows it by now. It is much more than what it
    /// takes to run the block.
    pub fn forget_logged(&mut self, block: BlockId) {
        self.entries[block.0 as usize].description = None;
    }
}
