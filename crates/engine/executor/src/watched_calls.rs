//! Watched calls: what a library's function does to the program's memory counts as done by the call of the program.
//!
//! From the call to its return the thread goes from one memory access to the next, each looked at before it runs. The
//! scheduler is asked before those that touch bytes that matter: of the race, or of somebody who waits. It hears of the
//! call's instruction as the place, and of the memory that the instruction at hand, wherever it is, will access; system
//! calls access what they are given, and `free` the whole block.

use crate::Executor;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    Register,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use verdict_cpu::Gpr;
use verdict_explore::AlternateState;
use verdict_protocol::{Bytes, RunOrder};
use verdict_schedule::{NextAccess, Reason};

/// Steps inside of watched calls in one run: a call that never returns must not take forever.
const STEPS_MAX: u64 = 1 << 20;
/// Recursion through watched calls.
const DEPTH_MAX: usize = 64;
/// Instructions that are looked at together.
const LOOK_AHEAD: usize = 16;
/// Instructions of a call that passes as a whole.
const CALL_MAX: u64 = 10_000_000;
/// Blocks that `free` is thought to have, at most.
const BLOCK_MAX: u64 = 1 << 32;

/// Calls whose accesses are looked at, and who is inside of one.
#[derive(Default, Debug)]
pub(crate) struct WatchedCalls {
    /// By address: the bytes that matter; without any, whatever is not known to be the library's.
    calls: BTreeMap<u64, Vec<Bytes>>,
    /// Functions that free their first argument.
    freeing: BTreeSet<u64>,
    inside: BTreeMap<usize, Vec<InCall>>,
    steps: u64,
    /// The program's file.
    own: PathBuf,
    /// A call that the scheduler lets pass is let pass as a whole.
    whole: bool,
    /// Atomic accesses do not matter.
    plain: bool,
    /// The call that is being let pass, and by whom.
    passing: Option<(usize, InCall)>,
    /// Functions after which the block they are given is gone.
    releasing: BTreeSet<u64>,
    /// The block that the call which is being let pass frees.
    freed: Option<NextAccess>,
    /// The block that a call has freed which was let pass, and who did, until the access comes that races with it.
    gone: Option<(usize, NextAccess)>,
}

/// A call that has not returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct InCall {
    pc: u64,
    /// The stack pointer before it.
    rsp: u64,
    /// A jump: the function returns to the caller of the caller.
    tail: bool,
    /// Instructions that its thread and all threads had retired before it.
    begun: (u64, u64),
}

impl InCall {
    fn is_over(&self, pc: u64, rsp: u64) -> bool {
        if pc == self.pc && rsp == self.rsp {
            return false;
        }
        rsp > self.rsp || rsp == self.rsp && !self.tail
    }
}

impl WatchedCalls {
    /// What an order says of calls; `program` as it was started.
    pub(crate) fn new(order: &RunOrder, program: &std::path::Path) -> Self {
        WatchedCalls {
            calls: order
                .calls
                .iter()
                .map(|call| (call.pc, call.bytes.clone()))
                .collect(),
            freeing: order.freeing.iter().copied().collect(),
            releasing: order.releasing.iter().copied().collect(),
            own: std::fs::canonicalize(program).unwrap_or_else(|_| program.to_owned()),
            whole: order.whole_calls,
            plain: order.plain_calls,
            ..WatchedCalls::default()
        }
    }

    /// True while the thread is inside of a watched call.
    pub(crate) fn is_inside(&self, thread: usize) -> bool {
        self.inside.contains_key(&thread)
    }

    /// True while a call of the thread is let pass as a whole.
    pub(crate) fn is_passing(&self, thread: usize) -> bool {
        self.passing.is_some_and(|(passing, _)| passing == thread)
    }

    /// One step more; the last one ends all watching of calls.
    fn count_step(&mut self) {
        self.steps += 1;
        if self.steps == STEPS_MAX {
            self.calls.clear();
            self.inside.clear();
        }
    }
}

impl Executor {
    /// Follows the current thread into and out of watched calls: true if it is inside of one, or about to be. Where a call
    /// ends that was let pass, another thread may be the current one afterwards.
    pub(crate) fn is_in_watched_call(&mut self, pc: u64) -> bool {
        let current = self.kernel.current;
        let rsp = self.kernel.thread().registers.get(Gpr::Rsp);
        let begun = self.counts();
        let begins = self.watch.calls.calls.contains_key(&pc);
        let tail = if begins { self.leaves_by() } else { None };
        let inside = self.watch.calls.inside.entry(current).or_default();
        let mut passed = false;
        while inside.last().is_some_and(|call| call.is_over(pc, rsp)) {
            let over = inside.pop().map(|call| (current, call));
            passed |= over == self.watch.calls.passing;
        }
        if let Some(tail) = tail {
            let call = InCall {
                pc,
                rsp,
                tail,
                begun,
            };
            let entered = |last: &InCall| (last.pc, last.rsp) == (pc, rsp);
            if !inside.last().is_some_and(entered) && inside.len() < DEPTH_MAX {
                inside.push(call);
            }
        }
        let is_inside = !inside.is_empty();
        if !is_inside {
            self.watch.calls.inside.remove(&current);
        }
        if passed {
            // The call that was let pass is over.
            self.watch.calls.passing = None;
            let freed = self.watch.calls.freed.take();
            self.watch.calls.gone = freed.map(|block| (current, block));
            self.decide(Reason::QuantumEnd);
        }
        is_inside
    }

    /// Whether the next instruction calls (false) or jumps (true), if it does either.
    fn leaves_by(&mut self) -> Option<bool> {
        match self.next_instruction()?.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => Some(false),
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => Some(true),
            _ => None,
        }
    }

    /// The current thread is inside of a watched call: asks the scheduler if the next instruction matters, and lets it
    /// go on to the next one that may.
    pub(crate) fn step_in_call(&mut self, pc: u64) {
        let current = self.kernel.current;
        let Some(call) = self.watch.calls.inside[&current].last().copied() else {
            return;
        };
        let Some(instruction) = self.next_instruction() else {
            // It will fault.
            self.watch.calls.inside.remove(&current);
            return;
        };
        let accesses = self.accesses_in_call(&call, &instruction);
        let mut instructions = 1;
        if accesses.is_empty() {
            instructions = self.quiet_instructions(&instruction);
        } else {
            self.watch.stops += 1;
            self.note_stop(call.pc, call.begun, &accesses);
            self.check_freed(&accesses);
            self.decide_before(call.pc, &accesses);
            if self.kernel.current != current {
                return;
            }
            self.pass_whole(call);
            let calls = &self.watch.calls;
            if calls.passing.is_some() && calls.freed.is_none() && calls.releasing.contains(&pc) {
                self.watch.calls.freed = self.freed_block();
            }
        }
        self.pass(pc, instructions);
        self.watch.calls.count_step();
    }

    /// The current thread is about to make a racing access: if the block has just been freed by the other one, before anybody
    /// else could run, that is a use after free, whatever it leads to.
    pub(crate) fn check_freed(&mut self, accesses: &[NextAccess]) {
        let current = self.kernel.current;
        let Some((by, block)) = self.watch.calls.gone.take_if(|(by, _)| *by != current) else {
            return;
        };
        let bytes = Bytes {
            address: block.address,
            len: block.len,
        };
        let Some(access) = accesses.iter().find(|access| overlaps(&bytes, access)) else {
            return;
        };
        let does = if access.write {
            "writes to"
        } else {
            "reads from"
        };
        self.misused(format!(
            "use after free: thread {current} {does} a block that thread {by} has freed"
        ));
    }

    /// Where the scheduler has just let the access at hand pass, the rest of the call passes, too.
    fn pass_whole(&mut self, call: InCall) {
        let lets_pass = self.scheduler.alternate() == Some(AlternateState::Passing);
        if self.watch.calls.whole && lets_pass && self.watch.calls.passing.is_none() {
            self.watch.calls.passing = Some((self.kernel.current, call));
            self.turn = CALL_MAX;
        }
    }

    /// What the instruction will access of the bytes that matter.
    fn accesses_in_call(&mut self, call: &InCall, instruction: &Instruction) -> Vec<NextAccess> {
        if self.is_linkage(instruction) || self.watch.calls.plain && is_atomic(instruction) {
            return Vec::new();
        }
        let mut accesses = self.next_accesses(instruction);
        if self.watch.calls.freeing.contains(&instruction.ip()) {
            accesses.extend(self.freed_block());
        }
        let matters = |access: &NextAccess| {
            if self.scheduler.awaits(access) {
                return true;
            }
            match &self.watch.calls.calls[&call.pc][..] {
                [] => self.may_be_programs(access),
                bytes => bytes.iter().any(|bytes| overlaps(bytes, access)),
            }
        };
        accesses.retain(matters);
        accesses
    }

    /// The block that the first argument begins, by the size that the C library keeps before it.
    fn freed_block(&mut self) -> Option<NextAccess> {
        let address = self.kernel.thread().registers.get(Gpr::Rdi);
        let len = self.size_of_block(address)?;
        (len > 0 && len < BLOCK_MAX).then_some(NextAccess {
            address,
            len,
            write: true,
        })
    }

    /// The bytes that a block may use.
    pub(crate) fn size_of_block(&self, address: u64) -> Option<u64> {
        const FLAGS: u64 = 7;
        let size = self.kernel.memory.read_u64(address.checked_sub(8)?).ok()?;
        (size & !FLAGS).checked_sub(8)
    }

    /// True for what brings a call to its function: jumps through tables of addresses, and the loader that fills them.
    fn is_linkage(&self, instruction: &Instruction) -> bool {
        let jumps = instruction.flow_control() == FlowControl::IndirectBranch;
        let (_, mapping) = match self.kernel.memory.find(instruction.ip()) {
            Some(found) => found,
            None => return jumps,
        };
        let file = mapping.file.as_ref().and_then(|(path, _)| path.file_name());
        jumps || file.is_some_and(|name| name.as_encoded_bytes().starts_with(b"ld-linux"))
    }

    /// False for the thread's own stack and for the memory of libraries.
    fn may_be_programs(&self, access: &NextAccess) -> bool {
        let memory = &self.kernel.memory;
        let rsp = self.kernel.threads[self.kernel.current]
            .registers
            .get(Gpr::Rsp);
        let Some((start, mapping)) = memory.find(access.address) else {
            return true;
        };
        if (start..mapping.end).contains(&rsp) {
            return false;
        }
        // What is not in a file follows the file's part: zeroed data.
        let file = mapping.file.as_ref().or_else(|| {
            let (_, before) = memory.find(start.checked_sub(1)?)?;
            before.file.as_ref()
        });
        file.is_none_or(|(path, _)| *path == self.watch.calls.own)
    }

    /// Instructions from this one on, up to the next that may access memory that matters.
    fn quiet_instructions(&mut self, first: &Instruction) -> u32 {
        const LONGEST: usize = 15;
        let mut bytes = [0; LONGEST * LOOK_AHEAD];
        let pc = first.ip();
        let len = self.kernel.memory.executable_len(pc, bytes.len() as u64) as usize;
        if self.kernel.memory.read(pc, &mut bytes[..len]).is_err() {
            return 1;
        }
        let mut factory = InstructionInfoFactory::new();
        let mut count = 0;
        for instruction in Decoder::with_ip(64, &bytes[..len], pc, DecoderOptions::NONE) {
            let loud = instruction.is_invalid()
                || instruction.code() == Code::Syscall
                || self.watch.calls.calls.contains_key(&instruction.ip())
                || self.watch.calls.freeing.contains(&instruction.ip())
                || factory
                    .info(&instruction)
                    .used_memory()
                    .iter()
                    .any(|used| used.base() != Register::RSP);
            if count > 0 && loud {
                break;
            }
            count += 1;
            let ends = instruction.flow_control() != FlowControl::Next;
            if ends || count == LOOK_AHEAD as u32 {
                break;
            }
        }
        count.max(1)
    }
}

fn is_atomic(instruction: &Instruction) -> bool {
    instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg
}

fn overlaps(bytes: &Bytes, access: &NextAccess) -> bool {
    bytes.address < access.address.saturating_add(access.len)
        && access.address < bytes.address.saturating_add(bytes.len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_over_when_the_stack_is_as_before() {
        let call = InCall {
            pc: 10,
            rsp: 100,
            tail: false,
            begun: (0, 0),
        };
        assert!(!call.is_over(10, 100), "it has not begun");
        assert!(!call.is_over(50, 92));
        assert!(call.is_over(15, 100));
        let jump = InCall { tail: true, ..call };
        assert!(!jump.is_over(50, 100), "nothing was pushed");
        assert!(jump.is_over(70, 108));
    }
}
