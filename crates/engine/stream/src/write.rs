//! The executor's end.

use crate::block::{self, BlockParts};
use crate::bytes::Writer;
use crate::record::kind;
use crate::{Mapped, RingWriter, SystemCall, sites};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use verdict_translate::{ControlMark, LoggedAccess, Run, Site};

/// Small records are gathered until so many bytes are there.
const GATHERED_MAX: usize = 64 << 10;

/// Writes records.
#[derive(Debug)]
pub struct StreamWriter {
    to: RingWriter,
    gathered: Vec<u8>,
    /// The reader is gone: it has seen enough.
    closed: bool,
}

impl StreamWriter {
    /// Writes to a ring.
    pub fn new(to: RingWriter) -> Self {
        StreamWriter {
            to,
            gathered: Vec::new(),
            closed: false,
        }
    }

    /// So many instructions have been executed by now: not told, but there to be seen.
    pub fn retired(&self, instructions: u64) {
        self.to.retired(instructions);
    }

    /// True if nobody reads any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    fn record(&mut self, kind: u32, payload: &[u8]) {
        self.gathered.extend(kind.to_le_bytes());
        self.gathered.extend((payload.len() as u32).to_le_bytes());
        if self.gathered.len() + payload.len() > GATHERED_MAX {
            self.flush();
            self.write(payload);
        } else {
            self.gathered.extend(payload);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if !self.closed {
            self.closed = self.to.write_all(bytes).is_err();
        }
    }

    /// Hands on what has been gathered.
    pub fn flush(&mut self) {
        let gathered = std::mem::take(&mut self.gathered);
        self.write(&gathered);
        self.gathered = gathered;
        self.gathered.clear();
    }

    /// Hands on everything; an error if nobody reads.
    pub fn finish(&mut self) -> io::Result<()> {
        self.flush();
        if self.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.to.flush()
    }

    /// [`crate::Record::Block`].
    pub fn block(
        &mut self,
        id: u32,
        pcs: &[u64],
        words: &[u16],
        accesses: &[LoggedAccess],
        control: &[ControlMark],
    ) {
        let mut out = Writer::default();
        out.u32(id);
        let parts = BlockParts {
            pcs,
            words,
            accesses,
            control,
        };
        block::write(&mut out, &parts);
        self.record(kind::BLOCK, &out.0);
    }

    /// [`crate::Record::Log`], its words as bytes.
    pub fn log(&mut self, thread: u32, fs_base: u64, gs_base: u64, words: &[u8]) {
        let mut head = Writer::default();
        head.u32(thread);
        head.u64(fs_base);
        head.u64(gs_base);
        self.long_record(kind::LOG, &head.0, words);
    }

    /// [`crate::Record::Sites`].
    pub fn sites(&mut self, first: u32, sites: &[Site]) {
        let mut out = Writer::default();
        out.u32(first);
        out.count(sites.len());
        sites.iter().for_each(|site| sites::write(&mut out, site));
        self.record(kind::SITES, &out.0);
    }

    /// [`crate::Record::Run`].
    pub fn run(&mut self, site: u32, run: &Run) {
        let mut out = Writer::default();
        out.u32(site);
        sites::write_run(&mut out, run);
        self.record(kind::RUN, &out.0);
    }

    /// [`crate::Record::Passed`], its words as bytes.
    pub fn passed(&mut self, thread: u32, fs_base: u64, words: &[u8]) {
        let mut head = Writer::default();
        head.u32(thread);
        head.u64(fs_base);
        self.long_record(kind::PASSED, &head.0, words);
    }

    /// A record whose last part may be long.
    fn long_record(&mut self, kind: u32, head: &[u8], rest: &[u8]) {
        self.gathered.extend(kind.to_le_bytes());
        let len = head.len() + rest.len();
        self.gathered.extend((len as u32).to_le_bytes());
        self.gathered.extend(head);
        if self.gathered.len() + rest.len() > GATHERED_MAX {
            self.flush();
            self.write(rest);
        } else {
            self.gathered.extend(rest);
        }
    }

    /// [`crate::Record::Mapped`].
    pub fn mapped(&mut self, mapped: &Mapped) {
        let mut out = Writer::default();
        out.u64(mapped.start);
        out.u64(mapped.end);
        out.u8(u8::from(mapped.executable));
        match &mapped.file {
            None => out.u8(0),
            Some((path, offset)) => {
                out.u8(1);
                out.text(path.as_os_str().as_bytes());
                out.u64(*offset);
            }
        }
        self.record(kind::MAPPED, &out.0);
        if mapped.file.is_some() && mapped.executable {
            // Whoever reads has to look into the file, and may do so while the program runs on. An error comes again.
            let _ = self.finish();
        }
    }

    /// [`crate::Record::Function`].
    pub fn function(&mut self, address: u64, name: &str) {
        let mut out = Writer::default();
        out.u64(address);
        out.text(name.as_bytes());
        self.record(kind::FUNCTION, &out.0);
    }

    /// [`crate::Record::ThreadCreated`].
    pub fn thread_created(
        &mut self,
        parent: u32,
        child: u32,
        fs_base: u64,
        stack: (u64, u64),
        tid_word: u64,
    ) {
        let mut out = Writer::default();
        out.u32(parent);
        out.u32(child);
        for value in [fs_base, stack.0, stack.1, tid_word] {
            out.u64(value);
        }
        self.record(kind::THREAD_CREATED, &out.0);
    }

    /// [`crate::Record::ThreadEnded`].
    pub fn thread_ended(&mut self, thread: u32) {
        self.record(kind::THREAD_ENDED, &thread.to_le_bytes());
    }

    /// [`crate::Record::SystemCall`].
    pub fn system_call(&mut self, call: &SystemCall) {
        let mut out = Writer::default();
        out.u32(call.thread);
        out.u64(call.pc);
        out.u64(call.number);
        call.args.iter().for_each(|argument| out.u64(*argument));
        out.u64(call.result as u64);
        out.count(call.memory.len());
        for part in &call.memory {
            out.u64(part.address);
            out.u64(part.len);
            out.u8(u8::from(part.written));
        }
        self.record(kind::SYSTEM_CALL, &out.0);
    }

    /// [`crate::Record::Part`].
    pub fn part(&mut self, told: bool) {
        self.record(kind::PART, &[u8::from(told)]);
    }

    /// [`crate::Record::Jumped`].
    pub fn jumped(&mut self, thread: u32, pc: u64) {
        let mut out = Writer::default();
        out.u32(thread);
        out.u64(pc);
        self.record(kind::JUMPED, &out.0);
    }

    /// [`crate::Record::Withheld`].
    pub fn withheld(&mut self, thread: u32, block: u64, instead: u64) {
        let mut out = Writer::default();
        out.u32(thread);
        out.u64(block);
        out.u64(instead);
        self.record(kind::WITHHELD, &out.0);
    }
}
