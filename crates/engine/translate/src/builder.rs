//! Puts a block together: the path's instructions one after the other, with what has to be known of each host address.

use crate::accesses::AccessLog;
use crate::block::{
    BLOCK_INSTRUCTIONS_MAX, Block, Borrowed, FaultEntry, Instrumentation, Link, Miss, Request,
    Scope, logged_branch, on_other_pages, ranges,
};
use crate::branches::{Expected, SideExit};
use crate::carry::Carried;
use crate::counter::{Counter, counter_at};
use crate::emit::Emitter;
use crate::flags::Ahead;
use crate::operands::{
    GprSet, free_legacy_register, free_register, names_high_byte, register_of, register_of_32,
    registers_used,
};
use crate::pad::emit_pad;
use crate::runs::RunPlan;
use crate::sieve::uses_gs;
use crate::sieve_code::SHADOW_PREFIX;
use crate::trace::{Bytes, Step, Terminator, Window};
use crate::used::Used;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Register};
use verdict_cpu::{ExitReason, InPlace, offset};

pub(crate) struct Builder<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) info: InstructionInfoFactory,
    /// By number, what the instructions of a logged path use.
    pub(crate) used: Vec<Used>,
    code: Window<'a>,
    /// Code beyond the path on which the translation depends.
    ahead: Vec<(u64, u32)>,
    pub(crate) emit: Emitter,
    /// What seldom runs, elsewhere.
    pub(crate) cold: Emitter,
    /// What every way out charges besides what has run of the path.
    pub(crate) carried: Carried,
    entry: u32,
    body: u32,
    /// Guest instructions of the whole path.
    pub(crate) count: u32,
    /// What of the guest's vector register 15 is in place while the path runs; if anything, the budget is in the context.
    pub(crate) in_place: InPlace,
    /// Whether any instruction of the path does something to that register.
    touches_vector: bool,
    pub(crate) faults: Vec<FaultEntry>,
    pub(crate) links: Vec<Link>,
    pub(crate) misses: Vec<Miss>,
    pub(crate) sides: Vec<SideExit>,
    /// Where the stub of the side exit begins that is being made.
    pub(crate) stub: usize,
    pub(crate) borrowed: Borrowed,
    pub(crate) log: Option<AccessLog>,
    pub(crate) log_closed: bool,
    /// Words of the log that the next charge publishes.
    pub(crate) unpublished: u16,
    pub(crate) log_words: Vec<u16>,
    /// By number, whether flags are live before an instruction of a path whose accesses are sifted.
    pub(crate) flags_live: Vec<bool>,
    /// The path is a run.
    pub(crate) run: Option<RunPlan>,
    /// An instruction of a path whose accesses are sifted has to do with gs.
    pub(crate) uses_gs: bool,
    pcs: Vec<u64>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        request: &'a Request<'a>,
        info: InstructionInfoFactory,
        code: Window<'a>,
    ) -> Self {
        Builder {
            request,
            info,
            used: Vec::new(),
            code,
            ahead: Vec::new(),
            emit: Emitter::new(request.code_address),
            cold: Emitter::new(match request.scope {
                Scope::Cached { cold_address, .. } => cold_address,
                Scope::OneOff { .. } => 0,
            }),
            carried: Carried::NOTHING,
            entry: 0,
            body: 0,
            count: 0,
            in_place: InPlace::Nothing,
            touches_vector: false,
            faults: Vec::with_capacity(BLOCK_INSTRUCTIONS_MAX + 2),
            links: Vec::new(),
            misses: Vec::new(),
            sides: Vec::new(),
            stub: 0,
            borrowed: Borrowed::default(),
            log: None,
            log_closed: false,
            unpublished: 0,
            log_words: Vec::new(),
            flags_live: Vec::new(),
            run: None,
            uses_gs: false,
            pcs: Vec::new(),
        }
    }

    pub(crate) fn build(mut self, steps: &[Step], terminator: &Terminator) -> Block {
        self.count = steps.len() as u32 + u32::from(terminator.instruction().is_some());
        let flags_dead = self.open();
        self.mark(self.request.pc, 0);
        if let Terminator::Watch(pc) = *terminator {
            self.settle(0);
            self.emit.exit_at(ExitReason::Watch, pc);
            return self.finish(vec![(pc, 1)], flags_dead);
        }
        self.begin_run(steps, terminator);
        self.make_way(steps);
        if self.request.instrumentation != Instrumentation::None {
            self.log_words.reserve(steps.len() + 2);
            self.open_log(steps, terminator);
        }
        for (number, step) in steps.iter().enumerate() {
            self.step(number as u16, step);
        }
        self.terminate(steps.len() as u16, terminator);
        self.stubs();
        if self.request.instrumentation == Instrumentation::Everything {
            let path = steps.iter().map(Step::instruction);
            let all = path.chain(terminator.instruction());
            self.pcs = all.map(Instruction::ip).collect();
        }
        self.finish(ranges(steps, terminator), flags_dead)
    }

    /// Puts the budget aside if an instruction of the path needs the register that it is in.
    fn make_way(&mut self, steps: &[Step]) {
        let uses = steps
            .iter()
            .map(|step| counter_at(&mut self.info, step.instruction()));
        let most = uses.max().unwrap_or(Counter::Untouched);
        self.touches_vector = most != Counter::Untouched;
        self.in_place = match most {
            Counter::Untouched | Counter::UpperCleared => return,
            Counter::Low | Counter::LowAlone => InPlace::Low,
            Counter::Unnamed | Counter::Whole => InPlace::Whole,
        };
        match most {
            Counter::Unnamed => self.emit.put_aside_for_whatever_is_used(),
            _ => self.emit.put_aside(self.in_place),
        }
    }

    /// The pad, if there is to be one, and what those arrive at who have charged. Returns whether the flags are dead at the block's first instruction.
    fn open(&mut self) -> bool {
        let Scope::Cached { pad, .. } = self.request.scope else {
            return false;
        };
        let flags_dead = self.flags_dead_at(self.request.pc);
        if pad {
            emit_pad(&mut self.emit, &mut self.cold, self.request.pc, flags_dead);
        }
        self.entry = self.emit.offset() as u32;
        self.emit.credit(self.carried);
        self.body = self.emit.offset() as u32;
        flags_dead
    }

    fn finish(mut self, ranges: Vec<(u64, u32)>, flags_dead: bool) -> Block {
        self.ahead = on_other_pages(&ranges, &self.ahead);
        let (accesses, control, sites) = self
            .log
            .map(|log| (log.accesses, log.control, log.sites))
            .unwrap_or_default();
        Block {
            pc: self.request.pc,
            ranges,
            ahead: self.ahead,
            instructions: self.count,
            flags_dead,
            code: self.emit.bytes,
            carried: self.carried,
            entry: self.entry,
            body: self.body,
            cold: self.cold.bytes,
            links: self.links,
            misses: self.misses,
            faults: self.faults,
            accesses,
            log_words: self.log_words,
            control,
            pcs: self.pcs,
            sites,
            run: self.run.map(|plan| plan.run),
            uses_gs: self.uses_gs,
        }
    }

    /// From here on, host code belongs to the guest instruction at `pc`.
    pub(crate) fn mark(&mut self, pc: u64, retired: u16) {
        let log_words = match &self.log {
            Some(_) => self.log_words[usize::from(retired)],
            None => 0,
        };
        self.faults.push(FaultEntry {
            pc,
            host: self.emit.offset() as u32,
            retired,
            in_place: self.in_place,
            log_words,
            borrowed: self.borrowed,
        });
    }

    /// If the word of guest data changes, the translation is void.
    pub(crate) fn depends_on(&mut self, word: u64) {
        self.ahead.push((word, 8));
    }

    pub(crate) fn flags_dead_at(&mut self, pc: u64) -> bool {
        if let Some(dead) = self.request.known_flags.get(pc, &mut self.ahead) {
            return dead;
        }
        let mut ahead = Ahead {
            code: &mut self.code,
            read: Vec::new(),
        };
        let dead = ahead.flags_dead_at(pc);
        self.request.known_flags.set(pc, dead, &ahead.read);
        self.ahead.append(&mut ahead.read);
        dead
    }

    fn open_log(&mut self, steps: &[Step], terminator: &Terminator) {
        let logged = steps.len() + usize::from(logged_branch(terminator).is_some());
        let used = self.used[..logged]
            .iter()
            .fold(GprSet::default(), |all, used| all.union(used.registers));
        let log = AccessLog::new(used, self.request.block_id, self.in_place, self.carried);
        let mut log = log.expect("the path was cut so that two registers are free");
        if self.request.instrumentation == Instrumentation::Sifted {
            log.sites.extend(self.run_site());
            self.look_at_flags(steps, terminator);
        }
        if self.request.instrumentation == Instrumentation::Everything {
            // Where the path goes is told, too.
            log.open(&mut self.emit, &mut self.borrowed);
        }
        self.log_words.push(log.state.words);
        self.log = Some(log);
    }

    fn step(&mut self, number: u16, step: &Step) {
        let instruction = step.instruction();
        self.before(number, instruction);
        self.mark(instruction.ip(), number);
        if let Some(log) = &self.log {
            self.log_words.push(log.state.words);
        }
        match step {
            Step::Plain(_, bytes) => self.plain(number, instruction, bytes),
            Step::Jump(_) => {}
            Step::Call(_) => self.emit.push_value(instruction.next_ip()),
            Step::Conditional { follows, .. } => {
                self.conditional_on_path(number, instruction, *follows)
            }
            Step::Expected { target, known, .. } => {
                let expected = Expected {
                    branch: *instruction,
                    target: *target,
                    known: *known,
                };
                self.expected(number, expected);
            }
        }
        if let Some(log) = &mut self.log {
            log.after(&self.used[usize::from(number)], instruction);
        }
    }

    /// Logs or tells what the instruction is about to do.
    pub(crate) fn before(&mut self, number: u16, instruction: &Instruction) {
        if self.request.instrumentation == Instrumentation::Sifted {
            self.uses_gs |= uses_gs(instruction);
            self.sift(number, instruction);
            return;
        }
        self.note_control(number, instruction);
        if let Some(log) = &mut self.log {
            log.before(
                &mut self.emit,
                &self.used[usize::from(number)],
                &mut self.borrowed,
                number,
                instruction,
            );
        }
    }

    fn note_control(&mut self, number: u16, instruction: &Instruction) {
        if let (Some(log), Instrumentation::Everything) =
            (&mut self.log, self.request.instrumentation)
        {
            let noted = (self.request.noted)(instruction.ip()).is_some();
            let (emit, borrowed) = (&mut self.emit, &mut self.borrowed);
            log.note_control(emit, borrowed, number, instruction, noted);
        }
    }

    fn plain(&mut self, number: u16, instruction: &Instruction, bytes: &Bytes) {
        let bytes = unlike_looks(bytes);
        if instruction.is_invalid() {
            self.emit.raw(&[0x0f, 0x0b]); // ud2: the CPU would refuse the original too
        } else if instruction.is_ip_rel_memory_operand() {
            self.rip_relative(number, instruction, bytes);
        } else {
            self.emit.raw(&bytes[..instruction.len()]);
        }
        if self.touches_vector && self.in_place != InPlace::Whole {
            match counter_at(&mut self.info, instruction) {
                Counter::UpperCleared => self.emit.clear_upper(),
                Counter::LowAlone => self.emit.keep_whole(),
                _ => {}
            }
        }
    }

    pub(crate) fn guest_bytes(&self, instruction: &Instruction) -> [u8; 15] {
        let mut bytes = [0u8; 15];
        (self.request.fetch)(instruction.ip(), &mut bytes[..instruction.len()]);
        bytes
    }

    /// The same operand from another rip: a patched displacement if it reaches, else through a borrowed register.
    fn rip_relative(&mut self, number: u16, instruction: &Instruction, mut bytes: Bytes) {
        let target = instruction.ip_rel_memory_address();
        let distance = target.wrapping_sub(self.emit.here() + instruction.len() as u64) as i64;
        if instruction.memory_base() == Register::RIP
            && let Ok(near) = i32::try_from(distance)
        {
            let mut decoder = Decoder::with_ip(64, &bytes, instruction.ip(), DecoderOptions::NONE);
            let decoded = decoder.decode();
            let at = decoder.get_constant_offsets(&decoded).displacement_offset();
            bytes[at..at + 4].copy_from_slice(&near.to_le_bytes());
            self.emit.raw(&bytes[..instruction.len()]);
            return;
        }
        let mut taken = registers_used(&mut self.info, instruction);
        for (_, register) in self.borrowed.slots() {
            taken.0 |= 1 << register;
        }
        let free = if names_high_byte(instruction) {
            free_legacy_register(taken)
        } else {
            free_register(taken)
        };
        let register = free.expect("no instruction uses all registers");
        self.emit.store(offset::borrowed(SLOT_FAR), register);
        self.emit.load_value(register, target);
        self.borrowed.lend(SLOT_FAR, register);
        self.mark(instruction.ip(), number);
        let mut moved = *instruction;
        // The address size stays: some instructions take it for other operands too (ENQCMD).
        moved.set_memory_base(match instruction.memory_base() {
            Register::EIP => register_of_32(register),
            _ => register_of(register),
        });
        moved.set_memory_displacement64(0);
        moved.set_memory_displ_size(0);
        self.emit
            .instruction(&moved)
            .expect("a base register reaches everything");
        self.borrowed.give_back(SLOT_FAR);
        self.emit.load(register, offset::borrowed(SLOT_FAR));
    }
}

const SLOT_FAR: usize = 3;
/// The prefix for es, which means nothing to 64-bit code.
const PREFIX_ES: u8 = 0x26;

/// The guest's instruction as it goes to the cache, where those that begin like this are the engine's.
fn unlike_looks(bytes: &Bytes) -> Bytes {
    let mut bytes = *bytes;
    if bytes.starts_with(&SHADOW_PREFIX) {
        bytes[0] = PREFIX_ES;
    }
    bytes
}
