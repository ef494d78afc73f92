//! A look at threads that do not seem to come to an end: are they in loops that nobody can end?
//!
//! From time to time a copy executes some thousand instructions of each thread one by one and notes what each reads and
//! writes. That changes nothing for the guest. If every thread that can run is in a loop that nothing live can
//! change, the copy need not go on until its instructions are used up.

use crate::Executor;
use crate::next_access::register_value;
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register, RflagsBits,
    UsedRegister,
};
use std::collections::{BTreeMap, BTreeSet};
use verdict_cpu::Gpr;
use verdict_explore::{Holder, Look, Step};
use verdict_kernel::{State, Wait};
use verdict_protocol::{Looping, RunSchedule};

/// Instructions of a copy before the first look.
const FIRST_LOOK: u64 = 200_000;
/// Each further look comes after so many times the instructions.
const LATER: u64 = 4;
/// The same where the first look is late already.
const LATER_IF_STEERED: u64 = 2;
/// Instructions of all threads within which every thread must have had its turn.
const LOOK_MAX: u64 = 4_000_000;
/// Longest access that is noted byte by byte.
const BYTES_MAX: u64 = 256;
/// The flags that instructions compute with.
const ARITHMETIC: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::PF
    | RflagsBits::CF;

/// When a copy looks, and what it has seen.
#[derive(Debug)]
pub(crate) struct Looks {
    /// Instructions of all threads at which the next look begins.
    next: u64,
    interval: u64,
    later: u64,
    look: Option<Looking>,
    /// The loops that were found at the end.
    pub(crate) found: Vec<Looping>,
}

#[derive(Debug, Default)]
struct Looking {
    until: u64,
    seen: Look,
    /// What threads are about to do, and how many instructions they had retired.
    pending: BTreeMap<usize, (u64, Step)>,
}

impl Looking {
    /// Notes the steps that were made since the last time, given what every thread has retired by now: a thread need not
    /// be the one that runs now.
    fn note_made(&mut self, retired: &[u64]) {
        let is_made = |(thread, (before, _)): (&usize, &(u64, Step))| {
            let now = retired.get(*thread).copied();
            now.is_some_and(|now| now > *before).then_some(*thread)
        };
        let made: Vec<usize> = self.pending.iter().filter_map(is_made).collect();
        for thread in made {
            if let Some((_, step)) = self.pending.remove(&thread) {
                self.seen.note(thread, step);
            }
        }
    }
}

/// What a look has come to.
enum Seen {
    Nothing,
    GoOn,
    AllLoop,
}

impl Looks {
    /// A look costs as much as a million instructions. Runs that are steered are many and usually come to their end, so
    /// they are looked at only when they have become longer than the program usually is, which their patience tells.
    pub(crate) fn new(retired: u64, schedule: &RunSchedule) -> Self {
        let (first, later) = match schedule {
            RunSchedule::Directed(target) => {
                (FIRST_LOOK.max(target.patience / 2), LATER_IF_STEERED)
            }
            _ => (FIRST_LOOK, LATER),
        };
        Looks {
            next: retired + first,
            interval: first,
            later,
            look: None,
            found: Vec::new(),
        }
    }
}

impl Executor {
    /// True if the current thread's instructions are to be executed one by one.
    pub(crate) fn steps_singly(&self) -> bool {
        let look = self.looks().and_then(|looks| looks.look.as_ref());
        look.is_some_and(|look| !look.seen.stuck().contains_key(&self.kernel.current))
    }

    /// Begins, continues or ends a look. True if every thread that can run is in a loop that nobody ends.
    pub(crate) fn look_at_loops(&mut self) -> bool {
        let retired = self.kernel.retired;
        let Some(looks) = self.looks_mut() else {
            return false;
        };
        if looks.look.is_none() {
            if retired < looks.next {
                return false;
            }
            looks.look = Some(Looking {
                until: retired + LOOK_MAX,
                ..Looking::default()
            });
        }
        match self.continue_look() {
            Seen::GoOn => false,
            Seen::Nothing => {
                if let Some(looks) = self.looks_mut() {
                    looks.look = None;
                    looks.interval *= looks.later;
                    looks.next = retired + looks.interval;
                }
                false
            }
            Seen::AllLoop => true,
        }
    }

    fn continue_look(&mut self) -> Seen {
        let current = self.kernel.current;
        let retired = self.kernel.retired;
        let each: Vec<u64> = self.kernel.threads.iter().map(|t| t.retired).collect();
        let Some(look) = self.looking_mut() else {
            return Seen::Nothing;
        };
        look.note_made(&each);
        if retired > look.until {
            return Seen::Nothing;
        }
        if look.seen.stuck().contains_key(&current) {
            return self.conclude();
        }
        if look.seen.has_seen_enough_of(current) {
            return match look.seen.judge(current) {
                true => self.conclude(),
                false => Seen::Nothing,
            };
        }
        if self.kernel.threads[current].call.is_none()
            && let Some(step) = self.next_step()
            && let Some(look) = self.looking_mut()
        {
            look.pending.insert(current, (each[current], step));
        }
        Seen::GoOn
    }

    /// Whether what is known of the threads so far is enough.
    fn conclude(&mut self) -> Seen {
        // Its signal may be what they wait for.
        if self.kernel.next_timer().is_some() {
            return Seen::Nothing;
        }
        let held = self.scheduler.held();
        let Some(look) = self.looks().and_then(|looks| looks.look.as_ref()) else {
            return Seen::Nothing;
        };
        let stuck = look.seen.stuck();
        for (index, thread) in self.kernel.threads.iter().enumerate() {
            let known = stuck.contains_key(&index) || held == Some(index as u32);
            let asleep = matches!(
                thread.state,
                State::Waiting(Wait::Futex { deadline: None, .. })
            );
            if !(known || asleep || thread.is_exited()) {
                return Seen::GoOn;
            }
        }
        if !look.seen.nobody_helped() {
            return Seen::Nothing;
        }
        let found = stuck
            .iter()
            .map(|(thread, stuck)| Looping {
                thread: *thread as u32,
                depends_on: ranges(&stuck.depends_on),
            })
            .collect();
        if let Some(looks) = self.looks_mut() {
            looks.found = found;
        }
        Seen::AllLoop
    }

    fn looking_mut(&mut self) -> Option<&mut Looking> {
        self.looks_mut().and_then(|looks| looks.look.as_mut())
    }

    /// What the current thread's next instruction reads and writes.
    fn next_step(&mut self) -> Option<Step> {
        let instruction = self.next_instruction()?;
        let registers = self.kernel.thread().registers.clone();
        let mut step = Step {
            pc: registers.rip,
            decides: decides(&instruction),
            opaque: is_opaque(&instruction, registers.get(Gpr::Rax)),
            registers: registers.gpr,
            flags: registers.rflags & u64::from(processor_flags()),
            ..Step::default()
        };
        note_flags(&instruction, &mut step);
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&instruction);
        for used in info.used_registers() {
            note_register(used, &mut step);
        }
        for used in info.used_memory() {
            let value = |register: Register, _, _| Some(register_value(&registers, register));
            let Some(address) = used.virtual_address(0, value) else {
                step.opaque = true;
                continue;
            };
            let len = used.memory_size().size() as u64;
            let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
            if len > BYTES_MAX || (repeated && instruction.is_string_instruction()) {
                step.opaque = true;
                continue;
            }
            let bytes = (address..address.saturating_add(len)).map(Holder::Byte);
            if reads(used.access()) {
                let mut buffer = vec![0; len as usize];
                let read = self.kernel.memory.read(address, &mut buffer);
                step.opaque |= read.is_err();
                step.reads.extend(bytes.clone());
                step.bytes.extend(buffer);
            }
            match used.access() {
                OpAccess::Write | OpAccess::ReadWrite => step.writes.extend(bytes),
                OpAccess::CondWrite | OpAccess::ReadCondWrite => step.may_write.extend(bytes),
                _ => {}
            }
        }
        Some(step)
    }
}

/// Runs of neighbouring bytes.
fn ranges(bytes: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for byte in bytes {
        match ranges.last_mut() {
            Some((start, len)) if *start + *len == *byte => *len += 1,
            _ => ranges.push((*byte, 1)),
        }
    }
    ranges
}

fn reads(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// CF, PF, AF, ZF, SF, DF and OF, where the processor keeps them.
fn processor_flags() -> u32 {
    0x1 | 0x4 | 0x10 | 0x40 | 0x80 | 0x400 | 0x800
}

fn decides(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::ConditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::IndirectCall
            | FlowControl::Return
    )
}

/// What an instruction does that depends on more than registers and memory.
fn is_opaque(instruction: &Instruction, number: u64) -> bool {
    const HARMLESS: [i64; 5] = [
        libc::SYS_sched_yield,
        libc::SYS_nanosleep,
        libc::SYS_clock_nanosleep,
        libc::SYS_getpid,
        libc::SYS_gettid,
    ];
    match instruction.mnemonic() {
        Mnemonic::Syscall => !HARMLESS.contains(&(number as i64)),
        Mnemonic::Rdtsc | Mnemonic::Rdtscp | Mnemonic::Rdrand | Mnemonic::Rdseed => true,
        Mnemonic::Cpuid | Mnemonic::Xgetbv | Mnemonic::Xbegin => true,
        _ => matches!(
            instruction.flow_control(),
            FlowControl::Interrupt | FlowControl::Exception | FlowControl::XbeginXabortXend
        ),
    }
}

fn note_flags(instruction: &Instruction, step: &mut Step) {
    if instruction.rflags_read() != 0 {
        step.reads.push(Holder::Flags);
    }
    let modified = instruction.rflags_modified();
    if modified & ARITHMETIC == ARITHMETIC {
        step.writes.push(Holder::Flags);
    } else if modified != 0 {
        step.may_write.push(Holder::Flags);
        step.reads.push(Holder::Flags);
    }
}

fn note_register(used: &UsedRegister, step: &mut Step) {
    let register = used.register();
    let full = register.full_register();
    let holder = match full {
        Register::RIP | Register::FS | Register::GS => return,
        Register::CS | Register::DS | Register::ES | Register::SS => return,
        _ if full.is_gpr() => Holder::Register(full.number() as u8),
        _ => Holder::Other(full as u16),
    };
    if reads(used.access()) {
        step.reads.push(holder);
    }
    let whole = !full.is_gpr() || register.size() >= 4;
    match used.access() {
        OpAccess::Write | OpAccess::ReadWrite if whole => step.writes.push(holder),
        OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite => {
            step.may_write.push(holder);
            step.reads.push(holder);
        }
        _ => {}
    }
}
