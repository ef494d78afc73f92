//! What is told about the run while it runs, see `verdict_stream`: the access log as it is, and beside it what threads,
//! memory and system calls do. Somebody else makes events of it.

use crate::{Executor, hooks};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use verdict_cache::{BlockId, CodeCache, LoggedBlock, ONE_OFF_BLOCK_ID};
use verdict_cpu::{Gpr, layout::PAGE};
use verdict_kernel::{Direction, Mapping, Memory, Role, syscall_buffers};
use verdict_protocol::Telling;
use verdict_stream::{
    Mapped, MemoryUse, RingEnds, RingWriter, Runtime, StreamWriter, SystemCall, runtime_of,
};
use verdict_translate::Whose;

/// The executor's end of the stream.
#[derive(Debug)]
pub(crate) struct Events {
    writer: StreamWriter,
    /// Calls that have begun and not been told yet, by thread.
    calls: BTreeMap<usize, PendingCall>,
    /// Where each thread stood when it was last told of.
    places: Vec<Option<u64>>,
}

#[derive(Clone, Copy, Debug)]
struct PendingCall {
    pc: u64,
    number: u64,
    args: [u64; 6],
}

impl Events {
    /// Tells through these descriptors.
    pub(crate) fn new(through: Telling) -> io::Result<Self> {
        // SAFETY: the controller's descriptors for this purpose, which nobody else uses.
        let (memory, bell) = unsafe {
            (
                File::from_raw_fd(through.memory),
                File::from_raw_fd(through.bell),
            )
        };
        let ring = RingWriter::new(RingEnds { memory, bell })?;
        Ok(Events {
            writer: StreamWriter::new(ring),
            calls: BTreeMap::new(),
            places: Vec::new(),
        })
    }

    /// What there is before the first instruction.
    pub(crate) fn begin(&mut self, memory: &Memory, cache: &mut CodeCache) {
        let all: Vec<(u64, Mapping)> = memory
            .mappings()
            .map(|(start, mapping)| (start, mapping.clone()))
            .collect();
        for (start, mapping) in all {
            self.mapped(start, &mapping, cache);
        }
    }

    /// What there is before the first instruction of a program that has replaced another.
    pub(crate) fn begin_again(&mut self, memory: &Memory, cache: &mut CodeCache) {
        self.calls.clear();
        self.places.clear();
        self.begin(memory, cache);
    }

    fn mapped(&mut self, start: u64, mapping: &Mapping, cache: &mut CodeCache) {
        let executable = mapping.prot & libc::PROT_EXEC != 0;
        self.writer.mapped(&Mapped {
            start,
            end: mapping.end,
            executable,
            file: mapping.file.clone(),
        });
        let file = mapping.file.as_ref().filter(|_| executable);
        let runtime = file.and_then(|(path, _)| runtime_of(path));
        let whose = match runtime {
            None => Whose::Program,
            Some(Runtime::Loader) => Whose::Loader,
            Some(Runtime::Library | Runtime::Parallel) => Whose::Runtime,
        };
        cache.belongs(start, mapping.end, whose);
        let Some((path, offset)) = file else { return };
        let found = hooks::code_file(path, *offset, start, mapping.end);
        if whose == Whose::Program {
            // What a stub reads is for the loader to keep right.
            for (start, end) in found.stubs {
                cache.belongs(start, end, Whose::Loader);
            }
        }
        for (address, (name, noted)) in found.noted {
            cache.note(address, noted);
            self.writer.function(address, name);
        }
    }

    /// A block may be logged from now on.
    pub(crate) fn block(&mut self, cache: &CodeCache, block: BlockId) {
        self.describe(block.0, cache.logged(block));
    }

    /// The same for the block that runs once.
    pub(crate) fn one_off(&mut self, cache: &CodeCache) {
        self.describe(ONE_OFF_BLOCK_ID, cache.logged_one_off());
    }

    fn describe(&mut self, id: u32, logged: LoggedBlock<'_>) {
        let (first, sites) = logged.sites;
        if !sites.is_empty() {
            self.writer.sites(first, sites);
        }
        if let Some(run) = logged.run {
            self.writer.run(first, run);
        }
        if !logged.pcs.is_empty() {
            self.writer.block(
                id,
                logged.pcs,
                logged.words,
                logged.accesses,
                logged.control,
            );
        }
    }

    /// What has passed of what a thread did.
    pub(crate) fn passed(&mut self, thread: u32, fs_base: u64, words: &[u8]) {
        if !words.is_empty() {
            self.writer.passed(thread, fs_base, words);
        }
    }

    /// What a thread has logged.
    pub(crate) fn log(&mut self, thread: u32, bases: (u64, u64), words: &[u8]) {
        if !words.is_empty() {
            self.writer.log(thread, bases.0, bases.1, words);
        }
    }

    /// Nothing more will be told.
    pub(crate) fn finish(&mut self) {
        // Nobody who reads: nobody who misses anything.
        let _ = self.writer.finish();
    }
}

impl Executor {
    /// True if this process tells: children of the guest do not.
    fn tells(&self) -> bool {
        self.events.is_some() && self.kernel.role == Role::Main
    }

    /// The current thread is about to make a system call.
    pub(crate) fn call_begins(&mut self) {
        if !self.tells() {
            return;
        }
        let current = self.kernel.current;
        let registers = &self.kernel.threads[current].registers;
        let call = PendingCall {
            pc: registers.rip,
            number: registers.get(Gpr::Rax),
            args: [Gpr::Rdi, Gpr::Rsi, Gpr::Rdx, Gpr::R10, Gpr::R8, Gpr::R9]
                .map(|register| registers.get(register)),
        };
        let threads = self.kernel.threads.len();
        if let Some(events) = &mut self.events {
            events.calls.insert(current, call);
            events.places.resize(threads.max(events.places.len()), None);
        }
    }

    /// The kernel has had the current thread's call: tells it if it is over, and the thread it may have made.
    pub(crate) fn call_returned(&mut self, caller: usize, threads_before: usize) {
        if !self.tells() {
            return;
        }
        for child in threads_before..self.kernel.threads.len() {
            self.thread_created(caller, child);
        }
        self.tell_call(caller);
    }

    fn thread_created(&mut self, parent: usize, child: usize) {
        let thread = &self.kernel.threads[child];
        let (sp, fs_base) = (thread.registers.get(Gpr::Rsp), thread.registers.fs_base);
        let stack = self.stack_given(parent).unwrap_or((sp, sp));
        let tid_word = thread.clear_child_tid;
        if let Some(events) = &mut self.events {
            let writer = &mut events.writer;
            writer.thread_created(parent as u32, child as u32, fs_base, stack, tid_word);
        }
    }

    /// The memory that `clone3` was told to use as a stack; `clone` is not told where it begins.
    fn stack_given(&self, parent: usize) -> Option<(u64, u64)> {
        let call = self.events.as_ref()?.calls.get(&parent)?;
        let word = |at: u64| self.kernel.memory.read_u64(call.args[0] + at).ok();
        if call.number as i64 != libc::SYS_clone3 {
            return None;
        }
        let (start, len) = (word(40)?, word(48)?);
        Some((start, start.checked_add(len)?))
    }

    /// Tells the call of a thread, if it has one that is over.
    fn tell_call(&mut self, index: usize) {
        let thread = &self.kernel.threads[index];
        let Some(events) = &mut self.events else {
            return;
        };
        if thread.call.is_some() || thread.is_exited() {
            return;
        }
        let Some(call) = events.calls.remove(&index) else {
            return;
        };
        // A signal handler that is entered instead of returning hides the result.
        let returned = thread.registers.rip == call.pc;
        let result = if returned {
            thread.registers.get(Gpr::Rax) as i64
        } else {
            0
        };
        let memory = &self.kernel.memory;
        let read_word = |address: u64| memory.read_u64(address).ok();
        let used = if returned {
            syscall_buffers(call.number, &call.args, result, &read_word)
        } else {
            Vec::new()
        };
        let mut args = call.args;
        let pair = match call.number as i64 {
            libc::SYS_pipe | libc::SYS_pipe2 => Some(args[0]),
            libc::SYS_socketpair => Some(args[3]),
            _ => None,
        };
        // Arguments that these calls do not have say which descriptors they made.
        if let Some(both) = pair.filter(|_| returned && result == 0).and_then(read_word) {
            args[4] = both & 0xffff_ffff;
            args[5] = both >> 32;
        }
        events.writer.system_call(&SystemCall {
            thread: index as u32,
            pc: call.pc,
            number: call.number,
            args,
            result,
            memory: used
                .iter()
                .map(|buffer| MemoryUse {
                    address: buffer.address,
                    len: buffer.len,
                    written: buffer.direction == Direction::Write,
                })
                .collect(),
        });
        let maps = matches!(
            call.number as i64,
            libc::SYS_mmap | libc::SYS_mremap | libc::SYS_shmat
        );
        if maps
            && result > 0
            && let Some((start, mapping)) = memory.find(result as u64)
        {
            // Neighbours may have become one mapping: what is told is what was asked for.
            let at = result as u64;
            let len = match call.number as i64 {
                libc::SYS_mmap => call.args[1].next_multiple_of(PAGE),
                libc::SYS_mremap => call.args[2].next_multiple_of(PAGE),
                _ => mapping.end - at,
            };
            let asked = Mapping {
                end: at.saturating_add(len).min(mapping.end),
                file: mapping
                    .file
                    .clone()
                    .map(|(path, offset)| (path, offset + (at - start))),
                ..mapping.clone()
            };
            events.mapped(at, &asked, &mut self.cache);
        }
        events.places[index] = Some(call.pc);
    }

    /// A thread is about to run.
    pub(crate) fn thread_resumes(&mut self) {
        if !self.tells() {
            return;
        }
        let current = self.kernel.current;
        self.tell_call(current);
        let pc = self.kernel.threads[current].registers.rip;
        if let Some(events) = &mut self.events
            && let Some(Some(place)) = events.places.get(current)
            && *place != pc
        {
            events.writer.jumped(current as u32, pc);
        }
    }

    /// A thread has run.
    pub(crate) fn thread_paused(&mut self, index: usize) {
        if !self.tells() {
            return;
        }
        let pc = self.kernel.threads[index].registers.rip;
        let threads = self.kernel.threads.len();
        let retired = self.kernel.retired;
        if let Some(events) = &mut self.events {
            events.writer.retired(retired);
            events.places.resize(threads.max(events.places.len()), None);
            events.places[index] = Some(pc);
        }
    }

    /// The engine has performed an instruction of the current thread: it goes on after it, as if it had run it itself.
    pub(crate) fn thread_moved_on(&mut self) {
        self.thread_paused(self.kernel.current);
    }

    /// Plain accesses are told from here on, or are not.
    pub(crate) fn tell_part(&mut self, told: bool) {
        if !self.tells() {
            return;
        }
        if let Some(events) = &mut self.events {
            events.writer.part(told);
        }
    }

    /// A thread that is about to free a block frees something else.
    pub(crate) fn tell_withheld(&mut self, thread: u32, block: u64, instead: u64) {
        if !self.tells() {
            return;
        }
        if let Some(events) = &mut self.events {
            events.writer.withheld(thread, block, instead);
        }
    }

    /// The current thread has ended.
    pub(crate) fn thread_ended(&mut self) {
        if !self.tells() {
            return;
        }
        let current = self.kernel.current;
        if let Some(events) = &mut self.events {
            events.calls.remove(&current);
            events.writer.thread_ended(current as u32);
        }
    }
}
