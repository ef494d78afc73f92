//! The instructions of the sieve, and what is made of several of them. Those that change the flags say so.

use crate::address::Address;
use crate::budget::CONDITION_ZERO;
use crate::emit::{Emitter, Forward};
use verdict_cpu::layout::ATOMIC_MARKS;
use verdict_cpu::{Gpr, STAMP_HIDDEN, offset};

/// Bytes of an entry in the list of noted functions: the negative stack pointer, and the epoch to go on in. Its first entry stands
/// for the end of memory.
const NOTED_ENTRY: i32 = 16;
pub(crate) const CONDITION_BELOW: u8 = 2;
/// Shadows are looked at through gs, whose base is as far from 0 as shadows are from what they are of. The prefix is there twice, as
/// in no instruction of the guest's that has come here: it says that the instruction is the engine's.
pub(crate) const SHADOW_PREFIX: [u8; 2] = [0x65, 0x65];
/// Bytes of a store of a small value, and of a jump through memory.
const STORE_VALUE_LEN: u64 = 11;
const JUMP_THROUGH_LEN: u64 = 6;

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

    /// `xor reg32, reg32`; changes the flags.
    pub(crate) fn clear(&mut self, reg: Gpr) {
        let reg = reg as u8;
        self.raw(&[0x40 | (reg >> 3) << 2 | reg >> 3, 0x31]);
        self.raw(&[0xc0 | (reg & 7) << 3 | (reg & 7)]);
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

    /// Prefixes and opcode of an instruction on so many bytes, at most eight, whose opcode for one byte is one less.
    fn sized(&mut self, opcode: u8, size: u32, reg: Gpr, base: Gpr) {
        if size == 2 {
            self.raw(&[0x66]);
        }
        let wide = u8::from(size == 8) << 3;
        let rex = 0x40 | wide | (reg as u8 >> 3) << 2 | base as u8 >> 3;
        self.raw(&[rex, opcode - u8::from(size == 1)]);
    }

    /// An address becomes that of its shadow, or of what stands for it where there are none; changes the flags.
    pub(crate) fn find_shadow(&mut self, reg: Gpr) {
        self.raw(&[0x48 | (reg as u8 >> 3) << 2, 0x23]); // and reg, [absolute]
        self.absolute(reg as u8, offset::SHADOW_MASK, 0);
        self.add_from(reg, offset::SHADOW_BASE);
    }

    /// `cmp [shadow of address], stamps`; changes the flags.
    pub(crate) fn compare_stamps(&mut self, address: Address, stamps: Gpr, size: u32) {
        self.raw(&SHADOW_PREFIX);
        if size == 2 {
            self.raw(&[0x66]);
        }
        let opcode = 0x39 - u8::from(size == 1);
        self.addressed(size == 8, &[opcode], stamps, address);
    }

    /// `mov stamps, [shadow of address]`
    pub(crate) fn load_stamps(&mut self, stamps: Gpr, address: Address, size: u32) {
        self.raw(&SHADOW_PREFIX);
        let opcode: &[u8] = match size {
            1 => &[0x0f, 0xb6], // movzx
            2 => &[0x0f, 0xb7],
            _ => &[0x8b],
        };
        self.addressed(size == 8, opcode, stamps, address);
    }

    /// `mov reg32, reg32`: the upper half becomes 0.
    pub(crate) fn keep_lower_half(&mut self, reg: Gpr) {
        let reg = reg as u8;
        self.raw(&[0x40 | (reg >> 3) << 2 | reg >> 3, 0x89]);
        self.raw(&[0xc0 | (reg & 7) << 3 | (reg & 7)]);
    }

    /// Whether stamps are such that an access of a kind in the present epoch need not be told; changes them, and the flags.
    pub(crate) fn test_stamps(&mut self, stamps: Gpr, kind: usize, size: u32) {
        self.sized(0x33, size, stamps, Gpr::Rax); // xor stamps, [absolute]
        self.absolute(stamps as u8, offset::EPOCH, 0);
        self.sized(0x85, size, stamps, Gpr::Rax); // test [absolute], stamps
        self.absolute(stamps as u8, offset::stamp_mask(kind), 0);
    }

    /// Stamps the shadows of so many bytes; the second register, which has the epoch, changes, and so do the flags.
    pub(crate) fn store_stamps(&mut self, shadow: Gpr, stamps: Gpr, kind: usize, size: u32) {
        if kind > 0 {
            self.raw(&[0x48 | (stamps as u8 >> 3) << 2, 0x0b]); // or stamps, [absolute]
            self.absolute(stamps as u8, offset::stamp_kind(kind), 0);
        }
        for at in (0..size).step_by(8) {
            self.sized(0x89, size.min(8), stamps, shadow);
            self.based(stamps as u8, shadow as u8, at as i32);
        }
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
    pub(crate) fn jump_if_hidden(&mut self) -> Forward {
        self.raw(&[0x80]); // cmp byte [absolute], imm8
        self.absolute(7, offset::EPOCH, 1);
        self.raw(&[STAMP_HIDDEN as u8]);
        self.jump_if(CONDITION_ZERO)
    }

    /// The thread is in a new epoch; changes the flags.
    pub(crate) fn next_epoch(&mut self) {
        let back = self.here() + STORE_VALUE_LEN + JUMP_THROUGH_LEN;
        self.store_value(offset::EPOCH_RETURN, back);
        self.jump_through(offset::EPOCH_ROUTINE);
        debug_assert_eq!(self.here(), back, "where the routine returns to");
    }
}
