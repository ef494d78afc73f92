//! The access log: which memory a block touches, written inline while it runs.
//!
//! Per run of a block the log gets one header word (the block's id) and then one word per distinct address
//! base. What is constant (displacements, sizes, kinds) stays with the block: see [`LoggedAccess`]. So does what is added to a
//! base between two accesses, and from which register it was copied: rounds of a loop that a block holds share
//! their words (see [`crate::bases`]). The log's position and a scratch value live in registers that the block does not use,
//! from where they are needed first: a path that has not come by an access has no header either.
//!
//! Not logged: pushes and pops (a thread's own), and gathers and scatters, whose addresses no single word describes; and
//! with [`Instrumentation::Accesses`], accesses through fs and gs and through rsp without an index.
//!
//! A repeated string instruction is logged by where it begins and its count: the direction flag is not in the log.

use crate::address::Address;
use crate::bases::{Bases, Known, Sum};
use crate::block::{Borrowed, Instrumentation};
use crate::carry::Carried;
use crate::control::ControlMark;
use crate::emit::Emitter;
use crate::operands::{GprSet, free_register, gpr_of, register_of, register_of_32};
use crate::sites::Site;
use crate::used::Used;
use iced_x86::{
    Code, CodeSize, Instruction, MemoryOperand, OpAccess, OpKind, Register, UsedMemory,
};
use verdict_cpu::{Gpr, InPlace, offset};

/// Whether bytes are read, written, or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum AccessKind {
    Read,
    Write,
    ReadWrite,
}

/// Where an access's address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressWord {
    /// Known at translation.
    Constant,
    /// The log's word of this number after the block's header.
    Logged(u16),
}

/// One memory operand of one instruction of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoggedAccess {
    /// Which instruction of the block, from 0.
    pub instruction: u16,
    /// Base of the address.
    pub base: AddressWord,
    /// Added to the base; the whole address if it is constant.
    pub displacement: u64,
    /// Bytes; 0 where only the CPU's state decides (XSAVE).
    pub size: u32,
    /// Direction.
    pub kind: AccessKind,
    /// LOCK prefix, or XCHG with memory.
    pub locked: bool,
    /// What the address counts from.
    pub segment: Segment,
    /// For bit tests with the bit's number in a register: what the address is moved by.
    pub bit: Option<BitOffset>,
    /// For repeated string instructions, the word that holds how often `size` bytes are accessed.
    pub repeat: Option<u16>,
}

/// What an address counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// Address 0.
    Flat,
    /// The thread's fs base.
    Fs,
    /// The thread's gs base.
    Gs,
}

/// The number of a bit counts from the operand's address on, in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BitOffset {
    /// The log's word that holds the register.
    pub word: u16,
}

impl LoggedAccess {
    /// The first byte accessed, given the block's words in the log after its header.
    pub fn address(&self, words: &[u64]) -> u64 {
        self.address_by(|word| words[usize::from(word)])
    }

    /// The same, given how to read a word.
    pub fn address_by(&self, word_at: impl Fn(u16) -> u64) -> u64 {
        let base = match self.base {
            AddressWord::Constant => 0,
            AddressWord::Logged(word) => word_at(word),
        };
        let moved = self.bit.map_or(0, |bit| {
            // The register is as wide as the operand; its value is signed and counts bits, the CPU moves by operands.
            let bits = 8 * self.size;
            let number = (word_at(bit.word) as i64) << (64 - bits) >> (64 - bits);
            (number >> bits.ilog2()).wrapping_mul(i64::from(self.size)) as u64
        });
        base.wrapping_add(self.displacement).wrapping_add(moved)
    }
}

pub(crate) const SLOT_POINTER: usize = 4;
pub(crate) const SLOT_SCRATCH: usize = 5;

/// Emits the log of one block.
pub(crate) struct AccessLog {
    pub(crate) pointer: Gpr,
    pub(crate) scratch: Gpr,
    block_id: u32,
    in_place: InPlace,
    /// Words that were logged before, and that the log's place does not count yet.
    carried: u16,
    pub(crate) state: LogState,
    /// What of the registers' values has been logged.
    bases: Bases,
    pub(crate) accesses: Vec<LoggedAccess>,
    pub(crate) control: Vec<ControlMark>,
    /// What is told of where the sieve is used.
    pub(crate) sites: Vec<Site>,
}

/// How far a path has come with its log.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct LogState {
    /// Words used so far, the header included; 0 if there is none yet.
    pub(crate) words: u16,
    /// Whether the register for the log's place is borrowed.
    pointer: bool,
    /// Whether the register for scratch values is.
    scratch: bool,
}

/// How many of the instructions leave two registers free for the log.
pub(crate) fn prefix_with_free_registers(path: &[Used]) -> usize {
    let mut used = GprSet::default();
    for (count, instruction) in path.iter().enumerate() {
        used = used.union(instruction.registers);
        if two_free(used).is_none() {
            return count;
        }
    }
    path.len()
}

/// Two registers outside `used`; never rcx, which expected branches need while the log is open.
fn two_free(mut used: GprSet) -> Option<(Gpr, Gpr)> {
    used.add(Register::RCX);
    let first = free_register(used)?;
    let mut rest = used;
    rest.add(register_of(first));
    Some((first, free_register(rest)?))
}

impl AccessLog {
    /// A log in registers outside `used`.
    pub(crate) fn new(
        used: GprSet,
        block_id: u32,
        in_place: InPlace,
        carried: Carried,
    ) -> Option<AccessLog> {
        let (pointer, scratch) = two_free(used)?;
        Some(AccessLog {
            pointer,
            scratch,
            block_id,
            in_place,
            carried: carried.words,
            state: LogState::default(),
            bases: Bases::default(),
            accesses: Vec::new(),
            control: Vec::new(),
            sites: Vec::new(),
        })
    }

    /// Borrows the first register and writes the header, if that has not been done yet.
    pub(crate) fn open(&mut self, emit: &mut Emitter, borrowed: &mut Borrowed) {
        if self.state.words > 0 {
            return;
        }
        self.borrow_pointer(emit, borrowed);
        emit.load_log_next(self.pointer, self.in_place);
        emit.store_small_at(self.pointer, self.place(0), self.block_id);
        self.state.words = 1;
    }

    /// Borrows the first register.
    pub(crate) fn borrow_pointer(&mut self, emit: &mut Emitter, borrowed: &mut Borrowed) {
        if !std::mem::replace(&mut self.state.pointer, true) {
            emit.store(offset::borrowed(SLOT_POINTER), self.pointer);
            borrowed.lend(SLOT_POINTER, self.pointer);
        }
    }

    /// Whether the first register is borrowed.
    pub(crate) fn has_pointer(&self) -> bool {
        self.state.pointer
    }

    /// Borrows the other register.
    pub(crate) fn borrow_scratch(&mut self, emit: &mut Emitter, borrowed: &mut Borrowed) {
        if !std::mem::replace(&mut self.state.scratch, true) {
            emit.store(offset::borrowed(SLOT_SCRATCH), self.scratch);
            borrowed.lend(SLOT_SCRATCH, self.scratch);
        }
    }

    /// Logs what the instruction is about to access.
    pub(crate) fn before(
        &mut self,
        emit: &mut Emitter,
        used: &Used,
        borrowed: &mut Borrowed,
        number: u16,
        instruction: &Instruction,
    ) {
        if used.memory.is_empty() {
            return;
        }
        self.open(emit, borrowed);
        let repeat = is_repeated(instruction).then(|| self.register_word(emit, Gpr::Rcx));
        for operand in &used.memory {
            let (base, displacement) = self.address(emit, borrowed, operand);
            let bit = bit_register(instruction).map(|register| BitOffset {
                word: self.register_word(emit, register),
            });
            self.accesses.push(LoggedAccess {
                instruction: number,
                base,
                displacement,
                size: size_of(operand, instruction),
                kind: kind_of(operand.access()),
                locked: is_locked(instruction),
                segment: segment_of(operand),
                bit,
                repeat,
            });
        }
    }

    /// Takes note of the registers that the instruction has changed.
    pub(crate) fn after(&mut self, used: &Used, instruction: &Instruction) {
        self.bases.changed(used.written, instruction);
    }

    /// Tells the reader that only so many instructions ran: the upper half of the header, plus one.
    pub(crate) fn note_early_end(&self, emit: &mut Emitter, retired: u16) {
        emit.store_half_at(self.pointer, self.place(0) + 4, u32::from(retired) + 1);
    }

    /// Restores the registers that were borrowed then.
    pub(crate) fn close(&self, emit: &mut Emitter, then: LogState) {
        if then.pointer {
            emit.load(self.pointer, offset::borrowed(SLOT_POINTER));
        }
        if then.scratch {
            emit.load(self.scratch, offset::borrowed(SLOT_SCRATCH));
        }
    }

    /// From here on the registers are the guest's again.
    pub(crate) fn give_back(&self, borrowed: &mut Borrowed) {
        borrowed.give_back(SLOT_POINTER);
        borrowed.give_back(SLOT_SCRATCH);
    }

    fn address(
        &mut self,
        emit: &mut Emitter,
        borrowed: &mut Borrowed,
        operand: &UsedMemory,
    ) -> (AddressWord, u64) {
        let wide = operand.address_size() == CodeSize::Code64;
        match (gpr_of(operand.base()), operand.index()) {
            (None, Register::None) => (AddressWord::Constant, operand.displacement()),
            (Some(base), Register::None) if wide => {
                let known = self.bases.register(base);
                let known = known.unwrap_or_else(|| {
                    let word = self.append(emit, base);
                    self.bases.logged(base, word)
                });
                let displacement = operand.displacement().wrapping_add(known.moved as u64);
                (AddressWord::Logged(known.word), displacement)
            }
            _ => {
                let sum = Sum::of(operand);
                if let Some(known) = sum.and_then(|sum| self.bases.sum(sum)) {
                    let displacement = operand.displacement().wrapping_add(known.moved as u64);
                    return (AddressWord::Logged(known.word), displacement);
                }
                self.borrow_scratch(emit, borrowed);
                let word = self.computed_word(emit, operand);
                if let Some(sum) = sum {
                    self.bases.logged_sum(sum, word, operand.displacement());
                }
                (AddressWord::Logged(word), 0)
            }
        }
    }

    /// A word with the stack pointer as it is.
    pub(crate) fn stack_pointer_word(&mut self, emit: &mut Emitter) -> u16 {
        self.register_word(emit, Gpr::Rsp)
    }

    /// A word with what lies at the stack pointer.
    pub(crate) fn stack_top_word(&mut self, emit: &mut Emitter, borrowed: &mut Borrowed) -> u16 {
        self.borrow_scratch(emit, borrowed);
        let top = MemoryOperand::with_base(Register::RSP);
        let load = Instruction::with2(Code::Mov_r64_rm64, register_of(self.scratch), top)
            .expect("mov takes any memory operand");
        emit.instruction(&load)
            .expect("an operand without rip can be encoded anywhere");
        self.append(emit, self.scratch)
    }

    /// A word with a register as it is.
    pub(crate) fn register_word(&mut self, emit: &mut Emitter, register: Gpr) -> u16 {
        if let Some(Known { word, moved: 0 }) = self.bases.register(register) {
            return word;
        }
        let word = self.append(emit, register);
        self.bases.logged(register, word).word
    }

    fn computed_word(&mut self, emit: &mut Emitter, operand: &UsedMemory) -> u16 {
        compute_address(emit, operand, self.scratch);
        self.append(emit, self.scratch)
    }

    /// Where the block's word of this number goes, header included, from the log's place on.
    fn place(&self, word: u16) -> i32 {
        8 * i32::from(self.carried + word)
    }

    fn append(&mut self, emit: &mut Emitter, register: Gpr) -> u16 {
        let word = self.state.words;
        emit.store_at(self.pointer, self.place(word), register);
        self.state.words += 1;
        word - 1
    }
}

/// Computes the address of an operand, from wherever its segment begins, without touching the flags.
pub(crate) fn compute_address(emit: &mut Emitter, operand: &UsedMemory, into: Gpr) {
    if let Some(address) = Address::of(operand) {
        emit.lea(into, address);
        return;
    }
    let memory = MemoryOperand {
        segment_prefix: Register::None,
        base: operand.base(),
        index: wide_index(emit, operand, into),
        scale: operand.scale(),
        displacement: operand.displacement() as i64,
        // The encoder wants the size of an address; it shortens to what is needed.
        displ_size: match (operand.displacement(), operand.address_size()) {
            (0, _) => 0,
            (_, CodeSize::Code32) => 4,
            _ => 8,
        },
        is_broadcast: false,
    };
    let lea = Instruction::with2(Code::Lea_r64_m, register_of(into), memory)
        .expect("lea takes any memory operand without a vector index");
    emit.instruction(&lea)
        .expect("an operand without rip can be encoded anywhere");
}

/// The operand's index as a register that LEA takes: XLAT alone has one of eight bits.
fn wide_index(emit: &mut Emitter, operand: &UsedMemory, into: Gpr) -> Register {
    if operand.index() != Register::AL {
        return operand.index();
    }
    let narrow = register_of_32(into);
    let extend = Instruction::with2(Code::Movzx_r32_rm8, narrow, Register::AL)
        .expect("movzx takes any byte register");
    emit.instruction(&extend)
        .expect("registers can be encoded anywhere");
    if operand.base().size() == 4 {
        narrow
    } else {
        register_of(into)
    }
}

/// Whether the log is to have an access.
pub(crate) fn is_logged(
    memory: &UsedMemory,
    instruction: &Instruction,
    level: Instrumentation,
) -> bool {
    let everything = level.follows_calls();
    let segment = matches!(memory.segment(), Register::FS | Register::GS);
    let own_segment = segment && !everything;
    let through_rsp =
        memory.base().full_register() == Register::RSP && memory.index() == Register::None;
    let own_stack = through_rsp && (!everything || instruction.is_stack_instruction());
    let vector_index = memory.index().is_vector_register();
    let no_access = matches!(memory.access(), OpAccess::None | OpAccess::NoMemAccess);
    let hint = instruction.mnemonic() == iced_x86::Mnemonic::Nop || is_fence(instruction);
    !(own_segment || own_stack || vector_index || no_access || hint)
}

/// True if the instruction is a fence as compilers write it: it locks its own stack, and changes nothing there. What lies there
/// is not atomic for that.
fn is_fence(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{Add, Or};
    instruction.has_lock_prefix()
        && matches!(instruction.mnemonic(), Or | Add)
        && instruction.memory_base() == Register::RSP
        && instruction.memory_index() == Register::None
        && instruction.op1_kind() != OpKind::Register
        && instruction.immediate(1) == 0
}

/// The register with the bit's number, if the instruction tests a bit of memory so.
pub(crate) fn bit_register(instruction: &Instruction) -> Option<Gpr> {
    use iced_x86::Mnemonic::*;
    let tests = matches!(instruction.mnemonic(), Bt | Bts | Btr | Btc);
    let by_register = instruction.op1_kind() == OpKind::Register;
    (tests && by_register)
        .then(|| gpr_of(instruction.op1_register()))
        .flatten()
}

/// True for string instructions under a REP prefix. The same prefixes mean other things elsewhere (XACQUIRE, XRELEASE, BND).
pub(crate) fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction()
        && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

/// True if memory that the instruction accesses is locked meanwhile.
pub(crate) fn is_locked(instruction: &Instruction) -> bool {
    instruction.has_lock_prefix() || instruction.mnemonic() == iced_x86::Mnemonic::Xchg
}

pub(crate) fn segment_of(operand: &UsedMemory) -> Segment {
    match operand.segment() {
        Register::FS => Segment::Fs,
        Register::GS => Segment::Gs,
        _ => Segment::Flat,
    }
}

/// Bytes of one access; the description of a repeated operand has no size of its own.
pub(crate) fn size_of(memory: &UsedMemory, instruction: &Instruction) -> u32 {
    let size = if instruction.is_string_instruction() {
        instruction.memory_size()
    } else {
        memory.memory_size()
    };
    size.size() as u32
}

pub(crate) fn kind_of(access: OpAccess) -> AccessKind {
    match access {
        OpAccess::Write | OpAccess::CondWrite => AccessKind::Write,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => AccessKind::ReadWrite,
        _ => AccessKind::Read,
    }
}
