//! Updates in place (`add [x], 1` without LOCK) are two accesses on a real machine: another core may come between the
//! load and the store, and what it writes is lost. A scheduler that asks for it decides before each half.
//!
//! The load is a look at memory when the scheduler lets it happen. At the store the instruction runs as a whole on what
//! was loaded, which is put back for it; a recording has a note of that, since nothing else tells a replay.

use crate::Executor;
use iced_x86::{InstructionInfoFactory, Mnemonic, OpAccess};
use verdict_recording::{Entry, MemoryWrite};
use verdict_schedule::NextAccess;

/// The first half of an update.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Half {
    pc: u64,
    /// Of the thread, when it loaded: a signal handler in between makes the load void.
    retired: u64,
    loaded: MemoryWrite,
}

/// Longest operand of an update: a cache line is never exceeded.
const OPERAND_MAX: u64 = 64;

impl Executor {
    /// What the watched instruction updates in place, if that is to be split.
    pub(crate) fn update_to_split(&mut self) -> Option<NextAccess> {
        if !self.scheduler.splits_updates() || self.kernel.journal.is_replay() {
            return None;
        }
        self.update_in_place()
    }

    /// The current thread loads what the update that it stands before will store.
    pub(crate) fn load_ahead(&mut self) {
        let pc = self.kernel.thread().registers.rip;
        if let Some(update) = self.update_in_place() {
            self.load_half(pc, &update);
        }
    }

    fn update_in_place(&mut self) -> Option<NextAccess> {
        let instruction = self.next_instruction()?;
        if instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg {
            return None;
        }
        let mut factory = InstructionInfoFactory::new();
        let updates = factory
            .info(&instruction)
            .used_memory()
            .iter()
            .any(|used| matches!(used.access(), OpAccess::ReadWrite | OpAccess::ReadCondWrite));
        let accesses = self.next_accesses(&instruction);
        match accesses[..] {
            [update] if updates && update.len <= OPERAND_MAX => Some(update),
            _ => None,
        }
    }

    /// The current thread stands before one of the two halves of an update.
    pub(crate) fn at_update(&mut self, pc: u64, update: &NextAccess) {
        let current = self.kernel.current;
        let begun = self.counts();
        self.note_stop(pc, begun, std::slice::from_ref(update));
        if !self.has_loaded(pc, update) {
            let load = NextAccess {
                write: false,
                ..*update
            };
            self.decide_before(pc, &[load]);
            if self.kernel.current != current {
                return;
            }
            self.load_half(pc, update);
        }
        self.decide_before(pc, std::slice::from_ref(update));
        if self.kernel.current == current {
            self.pass(pc, 1);
        }
    }

    fn has_loaded(&mut self, pc: u64, update: &NextAccess) -> bool {
        let retired = self.kernel.thread().retired;
        let half = self.watch.halves.get(&self.kernel.current);
        half.is_some_and(|half| {
            (half.pc, half.retired, half.loaded.address) == (pc, retired, update.address)
        })
    }

    fn load_half(&mut self, pc: u64, update: &NextAccess) {
        let mut bytes = vec![0; update.len as usize];
        let current = self.kernel.current;
        // What cannot be read will fault when it runs.
        if self.kernel.memory.read(update.address, &mut bytes).is_err() {
            self.watch.halves.remove(&current);
            return;
        }
        let half = Half {
            pc,
            retired: self.kernel.thread().retired,
            loaded: MemoryWrite {
                address: update.address,
                bytes,
            },
        };
        self.watch.halves.insert(current, half);
    }

    /// The instruction at `pc` is about to run: it finds what its thread has loaded.
    pub(crate) fn join_halves(&mut self, pc: u64) {
        let thread = self.loaded;
        let retired = self.kernel.threads[thread].retired;
        let Some(half) = self.watch.halves.remove(&thread) else {
            return;
        };
        if (half.pc, half.retired) != (pc, retired) {
            return;
        }
        let mut now = vec![0; half.loaded.bytes.len()];
        let read = self.kernel.memory.read(half.loaded.address, &mut now);
        if read.is_err() || now == half.loaded.bytes {
            return;
        }
        let loaded = &half.loaded;
        if self
            .kernel
            .memory
            .write(loaded.address, &loaded.bytes)
            .is_ok()
        {
            self.kernel.note(&Entry::Memory { write: half.loaded });
        }
    }
}
