//! The sieve: of all accesses of a thread, only those are told that say something new of its epoch.
//!
//! An epoch is what a thread does between two of its operations that others can wait for. Whoever asks which bytes may race needs
//! to know of each byte once an epoch: an access that repeats another one of its thread in its epoch races with nothing that the other
//! one does not race with. So each byte of the guest has a shadow with the stamp of the last access that was told: which epoch,
//! whether it was a write, and whose code made it. An access whose bytes all have the stamp of the thread's present epoch
//! costs three or four instructions and is not told. The stamps of all bytes of an access are compared at once, since shadows lie as close
//! together as what they are of, and all as far from it: they are looked at by the access's own operand, through gs, which guests
//! hardly ever use (where one does, shadows are given up).
//!
//! A thread is in a new epoch where it gives others something to wait for: when a noted function that does so has returned, at a LOCK
//! instruction, at a write to memory that any such instruction has touched, and at whatever the engine does for it. Within noted
//! functions that hide what they do, a thread is in an epoch that all share, and that nothing is told of.
//!
//! A stamp is a byte, so there are few epochs ([`verdict_cpu::STAMP_EPOCH`]). When all are used up, all stamps are taken back, by a list of
//! where they are, and epochs begin anew: see `verdict_forget`.
//!
//! Loops that go through memory would pass all the time: see [`crate::runs`].
//!
//! What is told, and in which words: see [`crate::sites`].

use crate::accesses::{
    AccessKind, AccessLog, SLOT_POINTER, Segment, bit_register, compute_address, is_locked,
    is_repeated, kind_of, segment_of, size_of,
};
use crate::address::Address;
use crate::block::{Borrowed, Request, Scope};
use crate::budget::{CONDITION_NOT_ZERO, CONDITION_ZERO, JRCXZ, JUMP_LEN, SHORT_JUMP};
use crate::builder::Builder;
use crate::control::ARGUMENT_REGISTERS;
use crate::emit::Emitter;
use crate::flags;
use crate::operands::gpr_of;
use crate::sieve_code::{CONDITION_BELOW, SHADOW_PREFIX};
use crate::sites::{Noted, Site, SiteKind, Whose};
use crate::trace::{Step, Terminator};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register, UsedMemory,
};
use smallvec::SmallVec;
use verdict_cpu::layout::ATOMIC_MARKS_LEN;
use verdict_cpu::{Gpr, STAMP_HIDDEN, offset};

/// Most bytes whose stamps are compared; a power of two.
const SIZE_MAX: u32 = 64;
/// As many stamps are compared at once.
const WORD: u32 = 8;
/// So many stamps are taken back for one place in the list.
const LISTED: u32 = 16;

/// Which stamps say that an access of a kind need not be told.
#[derive(Clone, Copy)]
struct Stamp {
    /// What it has more than the epoch. Bits that the stamp of another access may have less: a write will do for a read, and what
    /// the program has accessed need not be told of its runtime.
    kind: usize,
    is_write: bool,
    whose: Whose,
}

impl Stamp {
    fn of(is_write: bool, whose: Whose) -> Stamp {
        Stamp {
            kind: usize::from(!is_write) + 2 * usize::from(whose != Whose::Program),
            is_write,
            whose,
        }
    }

    /// Where it says whether accesses of this code are told.
    fn step(&self) -> u32 {
        match self.whose {
            Whose::Program => offset::PASSED_STEP,
            _ => offset::RUNTIME_STEP,
        }
    }
}

/// A look at stamps that the CPU has refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StampLook {
    /// Bytes of the instruction.
    pub len: usize,
    /// The register that the stamps were to go to; `None` if they were to be compared.
    pub into: Option<Gpr>,
}

/// The look at stamps that an instruction in the cache is; `None` if it is something else.
pub fn stamp_look(code: &[u8]) -> Option<StampLook> {
    if !code.starts_with(&SHADOW_PREFIX) {
        return None;
    }
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    let loads = instruction.op0_kind() == OpKind::Register;
    Some(StampLook {
        len: instruction.len(),
        into: match loads {
            true => Some(gpr_of(instruction.op0_register().full_register())?),
            false => None,
        },
    })
}

/// True if an instruction has to do with gs, of which shadows have need.
pub(crate) fn uses_gs(instruction: &Instruction) -> bool {
    let is_gs = |operand| instruction.op_register(operand) == Register::GS;
    instruction.segment_prefix() == Register::GS
        || (0..instruction.op_count().min(2)).any(is_gs)
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Rdgsbase | Mnemonic::Wrgsbase | Mnemonic::Lgs
        )
}

impl Builder<'_> {
    /// Finds out where the sieve may use the flags.
    pub(crate) fn look_at_flags(&mut self, steps: &[Step], terminator: &Terminator) {
        // One-off blocks are kept for as long as their own code is the same: what comes after them does not count.
        let looks_ahead = matches!(self.request.scope, Scope::Cached { .. });
        let next = match terminator {
            Terminator::Next(pc) => Some(*pc),
            Terminator::Branch(branch) => match branch.flow_control() {
                FlowControl::UnconditionalBranch | FlowControl::Call => {
                    Some(branch.near_branch_target())
                }
                _ => None,
            },
            _ => None,
        };
        let mut dead_at = |pc: u64| looks_ahead && self.flags_dead_at(pc);
        let after = !next.is_some_and(&mut dead_at);
        let end = match terminator {
            Terminator::Branch(branch) => Some(branch),
            _ => None,
        };
        self.flags_live = flags::live_before(steps, end, after, dead_at);
    }

    /// Tells what is to be told before an instruction runs.
    pub(crate) fn sift(&mut self, number: u16, instruction: &Instruction) {
        let Some(log) = &mut self.log else { return };
        let live = self.flags_live[usize::from(number)];
        let pc = instruction.ip();
        let cold = match self.request.scope {
            Scope::Cached { .. } => Some(&mut self.cold),
            Scope::OneOff { .. } => None,
        };
        let mut sieve = Sieve {
            first_site: self.request.first_site,
            in_run: self.run.is_some(),
            log,
            emit: &mut self.emit,
            cold,
            borrowed: &mut self.borrowed,
        };
        let noted = (self.request.noted)(pc);
        let whose = (self.request.whose)(pc);
        let run = self.run.as_ref();
        let operands = self.used[usize::from(number)].memory.iter().enumerate();
        let operands = operands.filter(|(at, _)| !run.is_some_and(|run| run.has(number, *at)));
        let operands: SmallVec<[&UsedMemory; 2]> = operands.map(|(_, operand)| operand).collect();
        let tells = whose != Whose::Loader
            && !operands.is_empty()
            && !is_constant_jump(self.request, instruction);
        if noted.is_some() || tells {
            if live {
                sieve.borrow_registers();
                sieve.keep_flags();
            }
            if let Some(noted) = noted {
                sieve.borrow_registers();
                sieve.enters(pc, noted);
            }
            if tells {
                for operand in operands {
                    sieve.access(instruction, operand, whose);
                }
            }
            if live {
                sieve.restore_flags();
            }
        }
        if instruction.flow_control() == FlowControl::Return {
            sieve.borrow_registers();
            sieve.returns(pc);
        }
    }
}

/// True if the instruction jumps through a word that does not change: nobody can race with that.
fn is_constant_jump(request: &Request<'_>, instruction: &Instruction) -> bool {
    let jumps = matches!(
        instruction.flow_control(),
        FlowControl::IndirectBranch | FlowControl::IndirectCall
    );
    jumps
        && instruction.memory_base() == Register::RIP
        && (request.constant_word)(instruction.ip_rel_memory_address()).is_some()
}

/// Puts the address of an operand into a register that it does not use.
fn load_address(emit: &mut Emitter, operand: &UsedMemory, register: Gpr) {
    if is_constant(operand) {
        emit.load_value(register, operand.displacement());
    } else {
        compute_address(emit, operand, register);
    }
}

/// The same of an address whose shadow is meant.
fn load_place(emit: &mut Emitter, operand: &UsedMemory, register: Gpr) {
    load_address(emit, operand, register);
    if is_local(operand) {
        // Offsets that are less than 0 have shadows, too.
        emit.keep_lower_half(register);
    }
}

fn is_constant(operand: &UsedMemory) -> bool {
    gpr_of(operand.base()).is_none() && operand.index() == Register::None
}

/// True if an address counts from the base of a segment.
fn is_local(operand: &UsedMemory) -> bool {
    segment_of(operand) != Segment::Flat
}

/// The address of so many bytes as instructions can have it, if no register is needed to compute it.
fn own_address(operand: &UsedMemory, size: u32) -> Option<Address> {
    let address = if is_local(operand) {
        None
    } else if is_constant(operand) {
        let displacement = i32::try_from(operand.displacement() as i64).ok()?;
        Some(Address {
            base: None,
            index: None,
            displacement,
        })
    } else {
        Address::of(operand)
    };
    address.filter(|address| address.moved(size).is_some())
}

/// Emits what tells of one instruction.
struct Sieve<'a> {
    first_site: u32,
    in_run: bool,
    log: &'a mut AccessLog,
    emit: &'a mut Emitter,
    /// Where code goes that seldom runs; `None` if it has to stay.
    cold: Option<&'a mut Emitter>,
    borrowed: &'a mut Borrowed,
}

impl Sieve<'_> {
    /// The two registers that the block does not use.
    fn registers(&self) -> (Gpr, Gpr) {
        (self.log.pointer, self.log.scratch)
    }

    fn borrow_registers(&mut self) {
        self.log.borrow_pointer(self.emit, self.borrowed);
        self.log.borrow_scratch(self.emit, self.borrowed);
    }

    fn site(&mut self, pc: u64, what: SiteKind) -> u32 {
        let number = self.first_site + self.log.sites.len() as u32;
        self.log.sites.push(Site { pc, what });
        number
    }

    /// Puts the arithmetic flags aside.
    fn keep_flags(&mut self) {
        let (first, _) = self.registers();
        self.emit.copy(first, Gpr::Rax);
        self.emit.raw(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
        self.emit.store(offset::KEPT_FLAGS, Gpr::Rax);
        self.emit.copy(Gpr::Rax, first);
    }

    fn restore_flags(&mut self) {
        let (first, _) = self.registers();
        self.emit.copy(first, Gpr::Rax);
        self.emit.load(Gpr::Rax, offset::KEPT_FLAGS);
        self.emit.raw(&[0x04, 0x7f, 0x9e]); // add al, 0x7f, which overflows if al is 1; sahf
        self.emit.copy(Gpr::Rax, first);
    }

    /// Changes the flags.
    fn access(&mut self, instruction: &Instruction, operand: &UsedMemory, whose: Whose) {
        let repeated = is_repeated(instruction);
        let locked = is_locked(instruction);
        let far_bit = bit_register(instruction).is_some();
        let (size, kind) = (size_of(operand, instruction), kind_of(operand.access()));
        let what = SiteKind::Access {
            size,
            kind,
            locked,
            segment: segment_of(operand),
            repeated,
            far_bit,
            in_run: self.in_run,
        };
        let site = self.site(instruction.ip(), what);
        if size.is_power_of_two() && size <= SIZE_MAX && !(repeated || locked || far_bit) {
            let is_write = kind != AccessKind::Read;
            self.look_up(site, operand, size, Stamp::of(is_write, whose));
        } else {
            self.borrow_registers();
            let (first, _) = self.registers();
            load_address(self.emit, operand, first);
            self.tell(site, locked, repeated, whose);
        }
    }

    /// Tells an access, unless all its bytes have such a stamp.
    fn look_up(&mut self, site: u32, operand: &UsedMemory, size: u32, stamp: Stamp) {
        self.log.borrow_scratch(self.emit, self.borrowed);
        let (first, second) = self.registers();
        let address = own_address(operand, size).unwrap_or_else(|| {
            self.log.borrow_pointer(self.emit, self.borrowed);
            load_place(self.emit, operand, first);
            Address::held_by(first)
        });
        // Where it is seldom needed, it is borrowed only then.
        let is_first_lent = self.log.has_pointer();
        let emit = &mut *self.emit;
        if stamp.kind == 0 {
            emit.load(second, offset::EPOCH);
        }
        let mut missed = Vec::new();
        for at in (0..size).step_by(WORD as usize) {
            let part = size.min(WORD);
            let address = address.moved(at).expect("as far as its last byte");
            if stamp.kind == 0 {
                emit.compare_stamps(address, second, part);
            } else {
                emit.load_stamps(second, address, part);
                emit.test_stamps(second, stamp.kind, part);
            }
            match &self.cold {
                Some(cold) => emit.jump_if_to(CONDITION_NOT_ZERO, cold.here()),
                None => missed.push(emit.jump_if(CONDITION_NOT_ZERO)),
            }
        }
        let make = |emit: &mut Emitter| {
            if !is_first_lent {
                emit.store(offset::borrowed(SLOT_POINTER), first);
            }
            load_place(emit, operand, first);
            emit.find_shadow(first);
            emit.load(second, offset::EPOCH);
            emit.store_stamps(first, second, stamp.kind, size);
            emit.load(second, offset::STAMPED_NEXT);
            for _ in (0..size).step_by(LISTED as usize) {
                emit.store_at(second, 0, first);
                emit.lea_self(second, 8);
                emit.lea_self(first, LISTED as i32);
            }
            emit.store(offset::STAMPED_NEXT, second);
            load_address(emit, operand, first);
            emit.load(second, offset::PASSED_NEXT);
            emit.store_small_at(second, 0, site);
            emit.store_at(second, 8, first);
            emit.slot(first, 3, ATOMIC_MARKS_LEN);
            emit.is_marked(first);
            let plain = emit.jump_if(CONDITION_ZERO);
            // What is atomic is told each time.
            load_place(emit, operand, first);
            emit.find_shadow(first);
            emit.clear(second);
            emit.store_stamps(first, second, 0, size);
            if stamp.is_write {
                let hidden = emit.jump_if_hidden();
                emit.next_epoch();
                emit.bind(hidden);
            }
            emit.load(second, offset::PASSED_NEXT);
            emit.bind(plain);
            emit.add_from(second, stamp.step());
            emit.store(offset::PASSED_NEXT, second);
            if !is_first_lent {
                emit.load(first, offset::borrowed(SLOT_POINTER));
            }
        };
        match &mut self.cold {
            Some(cold) => {
                make(cold);
                cold.jump_to(self.emit.here());
            }
            None => {
                let over = self.emit.jump();
                for missed in missed {
                    self.emit.bind(missed);
                }
                make(self.emit);
                self.emit.bind(over);
            }
        }
    }

    /// The address is in the first register: tells it.
    fn tell(&mut self, site: u32, locked: bool, repeated: bool, whose: Whose) {
        let (first, second) = self.registers();
        let emit = &mut *self.emit;
        let hidden = (whose != Whose::Program).then(|| emit.jump_if_hidden());
        // Only what the program itself does makes memory atomic.
        if locked && whose == Whose::Program {
            emit.copy(second, first);
            emit.slot(second, 3, ATOMIC_MARKS_LEN);
            emit.mark_atomic(second);
        }
        emit.load(second, offset::PASSED_NEXT);
        emit.store_small_at(second, 0, site);
        emit.store_at(second, 8, first);
        if repeated {
            emit.store_at(second, 16, Gpr::Rcx);
        }
        emit.lea_self(second, if repeated { 24 } else { 16 });
        emit.store(offset::PASSED_NEXT, second);
        if locked {
            emit.next_epoch();
        }
        if let Some(hidden) = hidden {
            emit.bind(hidden);
        }
    }

    /// A noted function begins. Changes the flags.
    fn enters(&mut self, pc: u64, noted: Noted) {
        let Noted { arguments, .. } = noted;
        let site = self.site(pc, SiteKind::Entry { arguments });
        let (first, second) = self.registers();
        let emit = &mut *self.emit;
        // Functions that were left without a return are below the stack pointer, or where this one is.
        emit.load(first, offset::NOTED_TOP);
        let again = emit.offset();
        emit.load_at(second, first, 0);
        emit.negate(second);
        emit.compare_stack_pointer(second);
        let found = emit.jump_if(CONDITION_BELOW);
        emit.leave_noted(first, second);
        emit.load(first, offset::NOTED_TOP);
        emit.jump_back(again);
        emit.bind(found);
        // What a function that hides does is hidden.
        let hidden = emit.jump_if_hidden();
        if noted.hides {
            emit.enter_noted(first, second);
        }
        emit.load(first, offset::PASSED_NEXT);
        emit.store_small_at(first, 0, site);
        emit.load_stack_top(second);
        emit.store_at(first, 8, second);
        let mut at = 16;
        for argument in ARGUMENT_REGISTERS.iter().take(usize::from(arguments)) {
            emit.store_at(first, at, *argument);
            at += 8;
        }
        emit.lea_self(first, at);
        emit.store(offset::PASSED_NEXT, first);
        if noted.atomic {
            emit.copy(first, ARGUMENT_REGISTERS[0]);
            emit.slot(first, 3, ATOMIC_MARKS_LEN);
            emit.mark_atomic(first);
        }
        if noted.ends_epoch {
            emit.next_epoch();
        }
        if noted.hides {
            // The epoch to go on in; meanwhile it is another one.
            emit.load(first, offset::EPOCH);
            emit.load(second, offset::NOTED_TOP);
            emit.store_at(second, 8, first);
            emit.load_value(first, STAMP_HIDDEN);
            emit.store(offset::EPOCH, first);
            emit.store_value(offset::RUNTIME_STEP, 0);
        }
        emit.bind(hidden);
    }

    /// A function returns: perhaps the innermost noted one. Leaves the flags alone.
    fn returns(&mut self, pc: u64) {
        let site = self.site(pc, SiteKind::Return);
        let (first, second) = self.registers();
        let emit = &mut *self.emit;
        emit.copy(first, Gpr::Rcx);
        emit.load(Gpr::Rcx, offset::NOTED_TOP);
        emit.load_at(Gpr::Rcx, Gpr::Rcx, 0);
        emit.raw(&[0x48, 0x8d, 0x0c, 0x0c]); // lea rcx, [rsp + rcx]
        let make = |emit: &mut Emitter| {
            emit.load(second, offset::PASSED_NEXT);
            emit.store_small_at(second, 0, site);
            emit.store_at(second, 8, Gpr::Rax);
            emit.lea_self(second, 16);
            emit.store(offset::PASSED_NEXT, second);
            emit.load(second, offset::NOTED_TOP);
            emit.leave_noted(second, Gpr::Rcx);
        };
        match &mut self.cold {
            Some(cold) => {
                emit.raw(&[JRCXZ, 2, SHORT_JUMP, JUMP_LEN]);
                emit.jump_to(cold.here());
                make(cold);
                cold.jump_to(emit.here());
            }
            None => {
                emit.raw(&[JRCXZ, JUMP_LEN]);
                let over = emit.jump();
                make(emit);
                emit.bind(over);
            }
        }
        emit.copy(Gpr::Rcx, first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_stamps_are_told_from_the_guests_instructions() {
        let address = Address {
            base: Some(Gpr::R12),
            index: Some((Gpr::Rax, 4)),
            displacement: -4,
        };
        for size in [1, 2, 4, 8] {
            let mut emit = Emitter::new(0x4001_0000);
            emit.compare_stamps(address, Gpr::Rsi, size);
            let len = emit.offset();
            emit.load_stamps(Gpr::R13, address, size);
            let (compared, loaded) = emit.bytes.split_at(len);
            let look = |code| stamp_look(code).map(|look| (look.len, look.into));
            assert_eq!(look(compared), Some((compared.len(), None)));
            assert_eq!(look(loaded), Some((loaded.len(), Some(Gpr::R13))));
            for code in [compared, loaded] {
                let read = Decoder::new(64, code, DecoderOptions::NONE).decode();
                assert_eq!(read.segment_prefix(), Register::GS);
                assert_eq!(read.memory_size().size(), size as usize);
                // As the guest would write it.
                assert_eq!(stamp_look(&code[1..]), None);
            }
        }
    }

    #[test]
    fn what_has_to_do_with_gs_is_seen() {
        let uses = |code: &[u8]| {
            let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
            assert!(!instruction.is_invalid(), "{code:x?}");
            uses_gs(&instruction)
        };
        for code in [
            &[0x65, 0x48, 0x8b, 0x00][..],   // mov rax, gs:[rax]
            &[0x65, 0xa4],                   // movs byte [rdi], gs:[rsi]
            &[0x8e, 0xe8],                   // mov gs, eax
            &[0x8c, 0xe8],                   // mov eax, gs
            &[0x0f, 0xa9],                   // pop gs
            &[0xf3, 0x48, 0x0f, 0xae, 0xd8], // wrgsbase rax
            &[0xf3, 0x48, 0x0f, 0xae, 0xc8], // rdgsbase rax
        ] {
            assert!(uses(code), "{code:x?}");
        }
        for code in [
            &[0x64, 0x48, 0x8b, 0x00][..],   // mov rax, fs:[rax]
            &[0xa4],                         // movs byte [rdi], [rsi]
            &[0xf3, 0x48, 0x0f, 0xae, 0xd0], // wrfsbase rax
        ] {
            assert!(!uses(code), "{code:x?}");
        }
    }
}
