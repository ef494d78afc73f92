//! What of the registers' values is in the log already, while a block is made.
//!
//! A value that was logged and then moved by a constant, or copied, need not be logged again: whoever reads the log adds the
//! constant. That is what the counters and pointers of loops do, and stack and frame pointers.

use crate::operands::{GprSet, gpr_of};
use iced_x86::{CodeSize, Instruction, Mnemonic, OpKind, Register, UsedMemory};
use verdict_cpu::Gpr;

/// A value as the log has it: the word of this number, and so much more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    pub(crate) word: u16,
    pub(crate) moved: i64,
}

impl Known {
    fn moved_by(self, by: i64) -> Known {
        Known {
            moved: self.moved.wrapping_add(by),
            ..self
        }
    }
}

/// A base and a scaled index, in registers of full width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sum {
    base: Option<Gpr>,
    index: Gpr,
    scale: i64,
}

impl Sum {
    /// `None` if the operand's address is anything else.
    pub(crate) fn of(operand: &UsedMemory) -> Option<Sum> {
        let wide = |register: Register| register.is_gpr64();
        let (base, index) = (operand.base(), operand.index());
        let is_sum = operand.address_size() == CodeSize::Code64
            && wide(index)
            && (base == Register::None || wide(base));
        Some(Sum {
            base: gpr_of(base),
            index: gpr_of(index).filter(|_| is_sum)?,
            scale: i64::from(operand.scale()),
        })
    }

    fn uses(&self, register: Gpr) -> bool {
        self.base == Some(register) || self.index == register
    }

    /// How much it grows if a register does so by one.
    fn times(&self, register: Gpr) -> i64 {
        let by_base = i64::from(self.base == Some(register));
        by_base
            + if self.index == register {
                self.scale
            } else {
                0
            }
    }
}

/// Registers and sums of them that are known.
#[derive(Default, Debug)]
pub(crate) struct Bases {
    registers: [Option<Known>; 16],
    sums: Vec<(Sum, Known)>,
}

impl Bases {
    pub(crate) fn register(&self, register: Gpr) -> Option<Known> {
        self.registers[register as usize]
    }

    /// The sum, without a displacement.
    pub(crate) fn sum(&self, sum: Sum) -> Option<Known> {
        let known = self.sums.iter().find(|(known, _)| *known == sum);
        known.map(|(_, known)| *known)
    }

    /// A word has the register as it is.
    pub(crate) fn logged(&mut self, register: Gpr, word: u16) -> Known {
        let known = Known { word, moved: 0 };
        self.registers[register as usize] = Some(known);
        known
    }

    /// A word has the sum and a displacement.
    pub(crate) fn logged_sum(&mut self, sum: Sum, word: u16, displacement: u64) {
        let moved = (displacement as i64).wrapping_neg();
        self.sums.push((sum, Known { word, moved }));
    }

    /// An instruction has run.
    pub(crate) fn changed(&mut self, written: GprSet, instruction: &Instruction) {
        let change = change_by(instruction);
        for gpr in written.iter() {
            match change {
                Some(Change { to, from, by }) if to == gpr && from == gpr => self.moved(gpr, by),
                Some(Change { to, from, by }) if to == gpr => {
                    let known = self.register(from).map(|known| known.moved_by(by));
                    self.forget(gpr);
                    self.registers[gpr as usize] = known;
                }
                _ => self.forget(gpr),
            }
        }
    }

    fn moved(&mut self, register: Gpr, by: i64) {
        let known = &mut self.registers[register as usize];
        *known = known.map(|known| known.moved_by(by));
        for (sum, known) in &mut self.sums {
            *known = known.moved_by(by.wrapping_mul(sum.times(register)));
        }
    }

    fn forget(&mut self, register: Gpr) {
        self.registers[register as usize] = None;
        self.sums.retain(|(sum, _)| !sum.uses(register));
    }
}

/// A register gets what one has, and so much more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) to: Gpr,
    pub(crate) from: Gpr,
    pub(crate) by: i64,
}

/// What an instruction does to one register of full width, if that is known beforehand.
pub(crate) fn change_by(instruction: &Instruction) -> Option<Change> {
    use Mnemonic::*;
    let first = instruction.op0_register();
    let stack = Some(Change {
        to: Gpr::Rsp,
        from: Gpr::Rsp,
        by: i64::from(instruction.stack_pointer_increment()),
    });
    match instruction.mnemonic() {
        // `pop rsp` loads what is there; its other forms move it.
        Pop if first == Register::RSP => None,
        Push | Pop | Pushfq | Popfq | Call | Ret => stack,
        _ if instruction.op0_kind() != OpKind::Register || !first.is_gpr64() => None,
        Add | Sub | Inc | Dec | Mov | Lea => {
            let (from, by) = moved_by(instruction)?;
            Some(Change {
                to: gpr_of(first)?,
                from,
                by,
            })
        }
        _ => None,
    }
}

/// For instructions whose first operand is a register of full width: which register it becomes, and how much more.
fn moved_by(instruction: &Instruction) -> Option<(Gpr, i64)> {
    use Mnemonic::*;
    let first = gpr_of(instruction.op0_register())?;
    let immediate = || instruction.try_immediate(1).ok().map(|by| by as i64);
    match instruction.mnemonic() {
        Add => Some((first, immediate()?)),
        Sub => Some((first, immediate()?.wrapping_neg())),
        Inc => Some((first, 1)),
        Dec => Some((first, -1)),
        Mov if instruction.op1_kind() == OpKind::Register => {
            let second = instruction.op1_register();
            Some((gpr_of(second).filter(|_| second.is_gpr64())?, 0))
        }
        Lea => {
            let base = instruction.memory_base();
            let is_sum = base.is_gpr64() && instruction.memory_index() == Register::None;
            let by = instruction.memory_displacement64() as i64;
            Some((gpr_of(base).filter(|_| is_sum)?, by))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::used::written;
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

    /// What is known of `register` after code that runs with every register logged, as words of their numbers.
    fn after(code: &[u8], register: Gpr) -> Option<(u16, i64)> {
        let mut bases = Bases::default();
        let all = [Gpr::Rax, Gpr::Rcx, Gpr::Rdx, Gpr::Rbx, Gpr::Rsp, Gpr::Rbp];
        for (word, gpr) in (0..).zip(all) {
            bases.logged(gpr, word);
        }
        let mut info = InstructionInfoFactory::new();
        for instruction in Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).iter() {
            bases.changed(written(info.info(&instruction)), &instruction);
        }
        let known = bases.register(register)?;
        Some((known.word, known.moved))
    }

    #[test]
    fn constants_and_copies_are_followed() {
        let (rax, rcx, rsp, rbp) = (Gpr::Rax, Gpr::Rcx, Gpr::Rsp, Gpr::Rbp);
        for (code, register, expected) in [
            // add rax, 8
            (&[0x48, 0x83, 0xc0, 8][..], rax, Some((0, 8))),
            // sub rax, 8; dec rax
            (&[0x48, 0x83, 0xe8, 8, 0x48, 0xff, 0xc8], rax, Some((0, -9))),
            // inc eax, which clears the upper half
            (&[0xff, 0xc0], rax, None),
            // add rax, rcx
            (&[0x48, 0x01, 0xc8], rax, None),
            (&[0x48, 0x01, 0xc8], rcx, Some((1, 0))),
            // mov rbp, rsp; push rax
            (&[0x48, 0x89, 0xe5, 0x50], rbp, Some((4, 0))),
            (&[0x48, 0x89, 0xe5, 0x50], rsp, Some((4, -8))),
            // pop rax
            (&[0x58], rax, None),
            (&[0x58], rsp, Some((4, 8))),
            // pop rsp
            (&[0x5c], rsp, None),
            // push rsp
            (&[0x54], rsp, Some((4, -8))),
            // lea rax, [rcx-16]
            (&[0x48, 0x8d, 0x41, 0xf0], rax, Some((1, -16))),
            // lea rax, [rcx+rax]
            (&[0x48, 0x8d, 0x04, 0x01], rax, None),
            // lea rax, [rip]
            (&[0x48, 0x8d, 0x05, 0, 0, 0, 0], rax, None),
            // lea rax, [ecx]
            (&[0x67, 0x48, 0x8d, 0x01], rax, None),
            // mov eax, ecx
            (&[0x89, 0xc8], rax, None),
            // cmove rax, rcx
            (&[0x48, 0x0f, 0x44, 0xc1], rax, None),
            // xadd rax, rcx
            (&[0x48, 0x0f, 0xc1, 0xc8], rcx, None),
            // add [rax], rcx
            (&[0x48, 0x01, 0x08], rax, Some((0, 0))),
        ] {
            assert_eq!(after(code, register), expected, "{code:x?} {register:?}");
        }
    }

    #[test]
    fn sums_move_with_their_registers() {
        let sum = Sum {
            base: Some(Gpr::Rdi),
            index: Gpr::Rcx,
            scale: 8,
        };
        let mut bases = Bases::default();
        bases.logged_sum(sum, 3, 0x10);
        let mut info = InstructionInfoFactory::new();
        let mut run = |bases: &mut Bases, code: &[u8]| {
            for instruction in Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).iter() {
                bases.changed(written(info.info(&instruction)), &instruction);
            }
        };
        let moved = |bases: &Bases| bases.sum(sum).map(|known| known.moved);
        assert_eq!(moved(&bases), Some(-0x10));
        run(&mut bases, &[0x48, 0xff, 0xc1]); // inc rcx
        assert_eq!(moved(&bases), Some(-8));
        run(&mut bases, &[0x48, 0x83, 0xef, 2]); // sub rdi, 2
        assert_eq!(moved(&bases), Some(-10));
        run(&mut bases, &[0x48, 0x89, 0xc8]); // mov rax, rcx
        assert_eq!(moved(&bases), Some(-10));
        run(&mut bases, &[0x48, 0x89, 0xc1]); // mov rcx, rax
        assert_eq!(moved(&bases), None);
    }
}
