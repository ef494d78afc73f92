//! The instructions of the sieve, and what is made of several of them. Those that change the flags say so.

use crate::budget::CONDITION_ZERO;
use crate::emit::{Emitter, Forward};
use crate::sieve::EPOCH;
use verdict_cpu::layout::ATOMIC_MARKS;
use verdict_cpu::{Gpr, offset};

/// Bytes of an entry in the list of noted functions: the negative stack pointer, and the epoch to go on in. Its first entry stands
/// for the end of memory.
const NOTED_ENTRY: i32 = 16;
pub(crate) const CONDITION_BELOW: u8 = 2;

impl Emitter {
    /// REX.W with the upper bits of a ModRM's registers.
    pub(crate) fn wide(&mut self, reg: Gpr, rm: Gpr, opcode: u8) {
        let (reg, rm) = (reg as u8, rm as u8);
        self.raw(&[0x48 | (reg >> 3) << 2 | rm >> 3, opcode]);
        self.raw(&[0xc0 | (reg & 7) << 3 | (rm & 7)]);
    }

    /// `mov to, from`
    pub(crate) fn copy(&mut self, to: Gpr, from: Gpr) {
        self.wide(from, to, 0x89);
    }

    /// `add to, from`; changes the flags.
    pub(crate) fn add(&mut self, to: Gpr, from: Gpr) {
        self.wide(from, to, 0x01);
    }

    /// `neg reg`; changes the flags.
    pub(crate) fn negate(&mut self, reg: Gpr) {
        self.raw(&[0x48 | (reg as u8) >> 3, 0xf7, 0xd8 | (reg as u8 & 7)]);
    }

    /// `cmp rsp, reg`; changes the flags.
    pub(crate) fn compare_stack_pointer(&mut self, reg: Gpr) {
        self.wide(reg, Gpr::Rsp, 0x39);
    }

    /// `shr reg, by`; changes the flags.
    pub(crate) fn shift_right(&mut self, reg: Gpr, by: u32) {
        self.raw(&[
            0x48 | (reg as u8) >> 3,
            0xc1,
            0xe8 | (reg as u8 & 7),
            by as u8,
        ]);
    }

    /// An address becomes the number of its entry; changes the flags.
    pub(crate) fn slot(&mut self, reg: Gpr, shift: u32, entries: u64) {
        if shift > 0 {
            self.shift_right(reg, shift);
        }
        if reg as u8 >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0x81, 0xe0 | (reg as u8 & 7)]); // and reg32, imm32
        self.imm32(entries as u32 - 1);
    }

    /// ModRM, SIB and displacement of `[table + 8 * index]`.
    pub(crate) fn entry(&mut self, reg: Gpr, index: Gpr, table: u32, opcode: u8) {
        let (reg, index) = (reg as u8, index as u8);
        self.raw(&[0x48 | (reg >> 3) << 2 | (index >> 3) << 1, opcode]);
        self.raw(&[(reg & 7) << 3 | 0b100, 0b11 << 6 | (index & 7) << 3 | 0b101]);
        self.imm32(table);
    }

    /// `cmp reg, [table + 8 * index]`; changes the flags.
    pub(crate) fn compare_entry(&mut self, reg: Gpr, index: Gpr, table: u32) {
        self.entry(reg, index, table, 0x3b);
    }

    /// `mov [table + 8 * index], reg`
    pub(crate) fn store_entry(&mut self, index: Gpr, table: u32, reg: Gpr) {
        self.entry(reg, index, table, 0x89);
    }

    /// ModRM and displacement of `[marks + reg]`, with an opcode of bytes.
    pub(crate) fn at_mark(&mut self, reg: Gpr, opcode: u8, extension: u8) {
        let reg = reg as u8;
        if reg >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[opcode, 0x80 | extension << 3 | (reg & 7)]);
        self.imm32(ATOMIC_MARKS as u32);
    }

    /// `cmp byte [marks + reg], 0`; changes the flags.
    pub(crate) fn is_marked(&mut self, reg: Gpr) {
        self.at_mark(reg, 0x80, 7);
        self.raw(&[0]);
    }

    /// `mov byte [marks + reg], 1`
    pub(crate) fn mark_atomic(&mut self, reg: Gpr) {
        self.at_mark(reg, 0xc6, 0);
        self.raw(&[1]);
    }

    /// `add reg, [absolute]`; changes the flags.
    pub(crate) fn add_from(&mut self, reg: Gpr, address: u32) {
        self.raw(&[0x48 | (reg as u8 >> 3) << 2, 0x03]);
        self.absolute(reg as u8, address, 0);
    }

    /// `cmp reg, [absolute]`; changes the flags.
    pub(crate) fn compare_from(&mut self, reg: Gpr, address: u32) {
        self.raw(&[0x48 | (reg as u8 >> 3) << 2, 0x3b]);
        self.absolute(reg as u8, address, 0);
    }

    /// `sub reg, [absolute]`; changes the flags.
    pub(crate) fn subtract_from(&mut self, reg: Gpr, address: u32) {
        self.raw(&[0x48 | (reg as u8 >> 3) << 2, 0x2b]);
        self.absolute(reg as u8, address, 0);
    }

    /// `mov reg, [base + displacement]`; base any register but rsp and r12.
    pub(crate) fn load_at(&mut self, reg: Gpr, base: Gpr, displacement: i32) {
        let (reg, base) = (reg as u8, base as u8);
        self.raw(&[0x48 | (reg >> 3) << 2 | base >> 3, 0x8b]);
        self.based(reg, base, displacement);
    }

    /// `mov reg, [rsp]`
    pub(crate) fn load_stack_top(&mut self, reg: Gpr) {
        let reg = reg as u8;
        self.raw(&[0x48 | (reg >> 3) << 2, 0x8b, (reg & 7) << 3 | 0b100, 0x24]);
    }

    /// `jmp rel32` to what was made before.
    pub(crate) fn jump_back(&mut self, offset: usize) {
        let target = self.here() - (self.offset() - offset) as u64;
        self.jump_to(target);
    }

    /// Adds a noted function to the list, of which the first register has the last one; changes the flags.
    pub(crate) fn enter_noted(&mut self, first: Gpr, second: Gpr) {
        self.lea_self(first, NOTED_ENTRY);
        // So many calls within each other that the innermost takes the place of another: whoever is told sees that.
        self.compare_from(first, offset::NOTED_END);
        let fits = self.jump_if(CONDITION_BELOW);
        self.lea_self(first, -NOTED_ENTRY);
        self.bind(fits);
        self.copy(second, Gpr::Rsp);
        self.negate(second);
        self.store_at(first, 0, second);
        self.store(offset::NOTED_TOP, first);
    }

    /// Takes the last noted function off the list, which the first register has.
    pub(crate) fn leave_noted(&mut self, first: Gpr, second: Gpr) {
        self.load_at(second, first, 8);
        self.store(offset::EPOCH, second);
        self.lea_self(first, -NOTED_ENTRY);
        self.store(offset::NOTED_TOP, first);
        self.load(second, offset::PASSED_STEP);
        self.store(offset::RUNTIME_STEP, second);
    }

    /// Jumps if the thread is in a noted function that hides what it does; changes the flags.
    pub(crate) fn jump_if_hidden(&mut self, scratch: Gpr) -> Forward {
        self.load(scratch, offset::EPOCH);
        self.shift_right(scratch, EPOCH.ilog2() + 1);
        self.jump_if(CONDITION_ZERO)
    }

    /// The thread is in a new epoch, which is in the first register then; changes the flags.
    pub(crate) fn next_epoch(&mut self, first: Gpr, second: Gpr) {
        self.load(first, offset::EPOCHS);
        self.load_value(second, EPOCH);
        self.add(first, second);
        self.store(offset::EPOCHS, first);
        self.store(offset::EPOCH, first);
    }
}
