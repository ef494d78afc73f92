//! Memory errors of a run: accesses to freed blocks and behind the end of blocks, and calls of `free` with what is no block.
//!
//! Nothing is changed about how the program allocates: a freed block is forbidden only until the allocator hands its memory out
//! again, and what is behind a block only as far as the allocator has set it aside for the block. In a run whose freed
//! blocks are withheld from the allocator, they are freed as far as the program knows.
//!
//! False alarms: none are known. Code of the C library legally reads past the end of blocks, by vectors, and walks lists of
//! freed blocks when a thread ends; so of libraries only small reads and writes count that the program called for.
//! Misses: freed memory that is in use again, overflows that reach into another block, what the C library reads
//! by vectors, freed blocks of more than 128 KiB, memory that is not from `malloc`.

use crate::code::Code;
use crate::heap::{Forbidden, FreedBlock, Heap, HeapBlock, ToBeFreed};
use crate::looks::Looks;
use crate::masked::may_be_masked;
use crate::meaning::Meaning;
use crate::modules::Owner;
use crate::observer::Observer;
use crate::sites::Place;
use std::collections::BTreeSet;
use std::io::Read;
use verdict_events::{SiteId, ThreadId};
use verdict_stream::{StreamError, StreamReader};
use verdict_translate::AccessKind;

/// Frames that are kept of where a block was allocated or freed.
const FRAMES_KEPT: usize = 16;
/// Frames of where an error is.
const FRAMES_MAX: usize = 64;
/// Different errors that are told.
const ERRORS_MAX: usize = 64;
/// Vectors are at least so long.
const VECTOR: u64 = 16;

/// What was wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HeapErrorKind {
    /// An access to a block that was freed.
    UseAfterFree,
    /// An access behind the end of a block.
    Overflow,
    /// A block is freed that was freed.
    DoubleFree,
    /// Something is freed that is no block.
    InvalidFree,
}

/// A memory error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeapError {
    /// What.
    pub kind: HeapErrorKind,
    /// The same in words, and who did it.
    pub detail: String,
    /// Who did it.
    pub thread: ThreadId,
    /// The instruction of the program that is to blame: the same in every run.
    pub pc: u64,
    /// Where, the innermost frame first.
    pub stack: Vec<Place>,
    /// The bytes of the block.
    pub block_len: u64,
    /// Where the block was allocated, the innermost frame first.
    pub allocated_at: Vec<Place>,
    /// Where it was freed, if it was.
    pub freed_at: Vec<Place>,
}

/// What a run did with its heap.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HeapUse {
    /// Blocks that the program asked for.
    pub blocks: u64,
    /// Blocks that it freed and whose memory was handed out again: what still uses them is not seen.
    pub reused: u64,
    /// What was wrong, in order, each kind once for each place.
    pub errors: Vec<HeapError>,
}

/// Looks for memory errors while a run goes on.
#[derive(Default, Debug)]
pub(crate) struct HeapLook {
    pub(crate) heap: Heap,
    known: BTreeSet<(HeapErrorKind, u64)>,
    errors: Vec<HeapError>,
}

/// Reads what an executor tells through `from`, to the end, and says what was wrong with the use of the heap.
///
/// # Errors
/// When it makes no sense.
pub fn heap_use(from: impl Read) -> Result<HeapUse, StreamError> {
    let mut reader = StreamReader::new(from);
    let mut observer = Observer::new();
    observer.looks = Looks::Heap(Box::default());
    while let Some(record) = reader.next_record()? {
        observer.record(record);
    }
    Ok(match observer.looks {
        Looks::Heap(look) => HeapUse {
            blocks: look.heap.of_program,
            reused: look.heap.reused,
            errors: look.errors,
        },
        _ => HeapUse::default(),
    })
}

/// An access, as far as it matters here.
pub(crate) struct HeapAccess {
    pub(crate) pc: u64,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) kind: AccessKind,
}

impl Observer {
    fn heap(&mut self) -> Option<&mut Heap> {
        match &mut self.looks {
            Looks::Heap(look) => Some(&mut look.heap),
            _ => None,
        }
    }

    /// Memory is an access's, a mapping's or a stack's anew.
    pub(crate) fn heap_renewed(&mut self, start: u64, end: u64) {
        if let Some(heap) = self.heap() {
            heap.renewed(start, end);
        }
    }

    /// An allocator has handed out a block.
    pub(crate) fn heap_allocated(&mut self, index: usize, site: SiteId, start: u64, len: u64) {
        if self.heap().is_none() {
            return;
        }
        let of_program = self
            .ownership
            .block_at(start)
            .is_some_and(|(_, block)| block.of_program);
        let allocated_at = match of_program {
            true => self.stack_above(index, site, FRAMES_KEPT),
            false => Vec::new(),
        };
        if let Some(heap) = self.heap() {
            let block = HeapBlock {
                len,
                of_program,
                allocated_at,
            };
            heap.allocated(start, block);
        }
    }

    /// An allocator was asked to free what is at an address.
    pub(crate) fn heap_freed(&mut self, index: usize, site: SiteId, address: u64) {
        let Some(heap) = self.heap() else { return };
        let thread = index as u32;
        match heap.to_be_freed(address) {
            _ if address == 0 => {}
            ToBeFreed::Fine => {
                let at = self.stack_above(index, site, FRAMES_KEPT);
                if let Some(heap) = self.heap() {
                    heap.freed(address, ThreadId(thread), at);
                }
            }
            // When a thread ends, the C library frees once more what it has kept for it.
            _ if !self.is_freed_for_caller(index) => {}
            ToBeFreed::Twice(freed) => {
                let by = freed.by.0;
                let detail = format!(
                    "double free: thread {thread} frees a block that thread {by} has freed"
                );
                self.heap_error(index, site, HeapErrorKind::DoubleFree, detail, |_| *freed);
            }
            ToBeFreed::Inside(block, into) => {
                let detail = format!(
                    "invalid free: thread {thread} frees what is {into} bytes into a block of {} bytes",
                    block.len
                );
                let kind = HeapErrorKind::InvalidFree;
                self.heap_error(index, site, kind, detail, |by| not_freed(*block, by));
            }
        }
    }

    /// The program knows that a block has more bytes than it has asked for.
    pub(crate) fn heap_grown(&mut self, start: u64, len: u64) {
        if let Some(heap) = self.heap() {
            heap.grown(start, len);
        }
    }

    /// `realloc` has failed, and left the block as it was.
    pub(crate) fn heap_not_freed(&mut self, address: u64) {
        if let Some(heap) = self.heap() {
            heap.not_freed(address);
        }
    }

    /// A function is called that will access an object of the program's.
    pub(crate) fn heap_hook(&mut self, index: usize, meaning: Meaning, address: u64) {
        /// Locks and the like begin with a word that is always looked at.
        const WORD: u64 = 4;
        if self.heap().is_none() || !meaning.synchronises() || !self.called_by_program(index) {
            return;
        }
        let pc = self.threads[index].last_own;
        self.heap_touched(
            index,
            HeapAccess {
                pc,
                address,
                size: WORD,
                kind: AccessKind::Read,
            },
        );
    }

    /// True if accesses are looked at for memory errors, and for nothing else: this one is done with.
    #[inline]
    pub(crate) fn heap_access(&mut self, index: usize, code: Code, access: HeapAccess) -> bool {
        let Looks::Heap(look) = &self.looks else {
            return false;
        };
        if !look.heap.may_forbid(access.address, access.size) {
            return true;
        }
        let small_or_written = access.size < VECTOR || access.kind != AccessKind::Read;
        let counts = match code.owner {
            Owner::Program => true,
            Owner::Library => small_or_written && self.is_done_for_caller(index),
            Owner::Loader | Owner::Parallel => false,
        };
        if counts {
            self.heap_touched(index, access);
        }
        true
    }

    /// A system call has read or written memory.
    pub(crate) fn heap_system_call(&mut self, index: usize, access: HeapAccess) {
        let forbids = match &self.looks {
            Looks::Heap(look) => look.heap.may_forbid(access.address, access.size),
            _ => false,
        };
        if forbids && self.is_done_for_caller(index) {
            self.heap_touched(index, access);
        }
    }

    fn heap_touched(&mut self, index: usize, access: HeapAccess) {
        let site = self.blamed_site(index, access.pc);
        let Looks::Heap(look) = &self.looks else {
            return;
        };
        let Some((at, forbidden)) = look.heap.forbidden(access.address, access.size) else {
            return;
        };
        let is_write = access.kind != AccessKind::Read;
        if access.size >= VECTOR {
            // Loops over vectors may look at more than there is, as long as it is on the same page.
            let overreads = at != access.address && !is_write;
            if overreads || may_be_masked(&self.place(access.pc)) {
                return;
            }
        }
        let (kind, detail, block) = match forbidden {
            Forbidden::Freed(freed) => {
                let does = if is_write { "writes to" } else { "reads from" };
                let by = freed.by.0;
                let detail = format!(
                    "use after free: thread {index} {does} a block that thread {by} has freed"
                );
                (HeapErrorKind::UseAfterFree, detail, freed.clone())
            }
            Forbidden::Behind(block, behind) => {
                let does = if is_write { "writes" } else { "reads" };
                let far = match behind {
                    0 => "right".to_owned(),
                    bytes => format!("{bytes} bytes"),
                };
                let detail = format!(
                    "heap overflow: thread {index} {does} {far} behind the end of a block of {} bytes",
                    block.len
                );
                let block = not_freed(block.clone(), ThreadId(index as u32));
                (HeapErrorKind::Overflow, detail, block)
            }
        };
        self.heap_error(index, site, kind, detail, |_| block);
    }

    fn heap_error(
        &mut self,
        index: usize,
        site: SiteId,
        kind: HeapErrorKind,
        detail: String,
        block: impl FnOnce(ThreadId) -> FreedBlock,
    ) {
        let pc = self.sites.infos.get(site.0 as usize);
        let pc = pc.map_or(0, |info| info.pc);
        let Looks::Heap(look) = &mut self.looks else {
            return;
        };
        if look.errors.len() == ERRORS_MAX || !look.known.insert((kind, pc)) {
            return;
        }
        let thread = ThreadId(index as u32);
        let freed = block(thread);
        let stack = self.stack_above(index, site, FRAMES_MAX);
        let error = HeapError {
            kind,
            detail,
            thread,
            pc,
            stack: self.places(&stack),
            block_len: freed.block.len,
            allocated_at: self.places(&freed.block.allocated_at),
            freed_at: self.places(&freed.freed_at),
        };
        if let Looks::Heap(look) = &mut self.looks {
            look.errors.push(error);
        }
    }

    /// True if a library does what it does because the program has called it, and it is not about the allocator's own lists. What
    /// begins and ends threads is not called by the program, though a function of it may just have returned there.
    fn is_done_for_caller(&mut self, index: usize) -> bool {
        const OTHERS: [&str; 3] = ["mall", "pthread_exit", "__libc_start"];
        let Some(entered) = self.entered(index) else {
            return false;
        };
        // A function that the loader has just made way for was not seen to begin.
        let Some((module, _)) = self.modules.find(entered) else {
            return entered == 0;
        };
        let name = module.function(entered);
        name.is_some_and(|name| !OTHERS.iter().any(|other| name.starts_with(other)))
    }

    /// True if the program itself frees something, or C++ does for it.
    fn is_freed_for_caller(&mut self, index: usize) -> bool {
        let deletes = |name: &str| name.starts_with("_Zdl") || name.starts_with("_Zda");
        let name = self.entered(index).and_then(|entered| {
            let (module, _) = self.modules.find(entered)?;
            module.function(entered)
        });
        name.is_some_and(deletes) || self.called_by_program(index)
    }

    /// The library's function that the innermost call of the program has led to; 0 if that is not known.
    fn entered(&mut self, index: usize) -> Option<u64> {
        let (code, modules) = (&mut self.code, &self.modules);
        let mut own = |pc: u64| pc != 0 && code.at(pc, modules).owner == Owner::Program;
        let mut calls = self.threads[index].calls.innermost_first();
        let called = calls.find(|frame| own(frame.call))?;
        Some(called.entered)
    }
}

fn not_freed(block: HeapBlock, by: ThreadId) -> FreedBlock {
    FreedBlock {
        block,
        by,
        freed_at: Vec::new(),
    }
}
