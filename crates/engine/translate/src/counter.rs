//! The budget in vector register 15: adding to it takes one instruction that touches neither flags nor memory that the
//! next block waits for. Compiled code seldom uses that register; a block that does puts the guest's own in its place
//! for as long as it runs.

use crate::emit::Emitter;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register};
use verdict_cpu::{layout, offset};

/// The widest vector registers of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VectorWidth {
    /// SSE: 16 bytes.
    Xmm,
    /// AVX: 32 bytes.
    Ymm,
    /// AVX-512: 64 bytes.
    Zmm,
}

impl VectorWidth {
    /// What this host has, and its kernel keeps.
    pub(crate) fn of_host() -> Self {
        if std::is_x86_feature_detected!("avx512f") {
            VectorWidth::Zmm
        } else if std::is_x86_feature_detected!("avx") {
            VectorWidth::Ymm
        } else {
            VectorWidth::Xmm
        }
    }

    fn bytes(self) -> u32 {
        match self {
            VectorWidth::Xmm => 16,
            VectorWidth::Ymm => 32,
            VectorWidth::Zmm => 64,
        }
    }
}

/// What an instruction does to the guest's vector register 15.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counter {
    /// Nothing.
    Untouched,
    /// Clears all but its low 16 bytes, as of every other one.
    UpperCleared,
    /// Reads or writes it.
    InTheWay,
}

/// Whether the budget can stay in its register while the instruction runs.
pub(crate) fn counter_at(info: &mut InstructionInfoFactory, instruction: &Instruction) -> Counter {
    use Mnemonic::*;
    match instruction.mnemonic() {
        Vzeroupper => return Counter::UpperCleared,
        Vzeroall | Fxsave | Fxsave64 | Fxrstor | Fxrstor64 | Xsave | Xsave64 | Xsavec
        | Xsavec64 | Xsaveopt | Xsaveopt64 | Xsaves | Xsaves64 | Xrstor | Xrstor64 | Xrstors
        | Xrstors64 => {
            return Counter::InTheWay;
        }
        _ => {}
    }
    let used = info.info(instruction).used_registers().iter();
    let in_the_way = used.map(|used| used.register()).any(|register| {
        matches!(
            register,
            Register::XMM15 | Register::YMM15 | Register::ZMM15
        )
    });
    if in_the_way {
        Counter::InTheWay
    } else {
        Counter::Untouched
    }
}

impl Emitter {
    /// `budget += amount`; changes no flags.
    pub(crate) fn charge(&mut self, amount: i32) {
        assert!(amount.abs() <= layout::CHARGE_MAX, "no constant for it");
        match self.width {
            VectorWidth::Xmm => self.raw(&[0x66, 0x44, 0x0f, 0xd4]), // paddq xmm15, [absolute]
            _ => self.raw(&[0xc5, 0x01, 0xd4]), // vpaddq xmm15, xmm15, [absolute]
        }
        let index = (amount + layout::CHARGE_MAX) as u32;
        self.absolute(REGISTER, layout::CACHE_CHARGES as u32 + 16 * index, 0);
    }

    /// Sets the zero flag unless the budget is negative; changes the other flags, too.
    pub(crate) fn test_budget(&mut self) {
        match self.width {
            VectorWidth::Xmm => {
                self.raw(&[0x66, 0x44, 0x0f, 0x38, 0x17]); // ptest xmm15, [absolute]
                self.absolute(REGISTER, layout::CACHE_SIGN as u32, 0);
            }
            _ => self.raw(&[0xc4, 0x42, 0x79, 0x0f, 0xff]), // vtestpd xmm15, xmm15
        }
    }

    /// `rcx = budget < 0`; changes no flags.
    pub(crate) fn budget_is_negative(&mut self) {
        match self.width {
            VectorWidth::Xmm => self.raw(&[0x66, 0x41, 0x0f, 0x50, 0xcf]), // movmskpd ecx, xmm15
            _ => self.raw(&[0xc4, 0xc1, 0x79, 0x50, 0xcf]),                // vmovmskpd ecx, xmm15
        }
    }

    /// Puts the budget into the context, and the guest's own register in its place.
    pub(crate) fn put_aside(&mut self) {
        match self.width {
            VectorWidth::Xmm => self.raw(&[0x66, 0x44, 0x0f, 0xd6]), // movq [absolute], xmm15
            _ => self.raw(&[0xc5, 0x79, 0xd6]),
        }
        self.absolute(REGISTER, offset::BUDGET, 0);
        match self.width {
            VectorWidth::Xmm => self.raw(&[0x66, 0x44, 0x0f, 0x6f]), // movdqa xmm15, [absolute]
            VectorWidth::Ymm => self.raw(&[0xc5, 0x7e, 0x6f]),       // vmovdqu ymm15, [absolute]
            VectorWidth::Zmm => self.raw(&[0x62, 0x71, 0xfe, 0x48, 0x6f]), // vmovdqu64 zmm15, [absolute]
        }
        self.absolute(REGISTER, offset::GUEST_VECTOR, 0);
    }

    /// Undoes [`Self::put_aside`].
    pub(crate) fn take_back(&mut self) {
        match self.width {
            VectorWidth::Xmm => self.raw(&[0x66, 0x44, 0x0f, 0x7f]), // movdqa [absolute], xmm15
            VectorWidth::Ymm => self.raw(&[0xc5, 0x7e, 0x7f]),       // vmovdqu [absolute], ymm15
            VectorWidth::Zmm => self.raw(&[0x62, 0x71, 0xfe, 0x48, 0x7f]), // vmovdqu64 [absolute], zmm15
        }
        self.absolute(REGISTER, offset::GUEST_VECTOR, 0);
        match self.width {
            VectorWidth::Xmm => self.raw(&[0xf3, 0x44, 0x0f, 0x7e]), // movq xmm15, [absolute]
            _ => self.raw(&[0xc5, 0x7a, 0x7e]),
        }
        self.absolute(REGISTER, offset::BUDGET, 0);
    }

    /// Does to the guest's register in the context what VZEROUPPER does to those that are in place.
    pub(crate) fn clear_upper(&mut self) {
        for at in (16..self.width.bytes()).step_by(8) {
            self.store_value(offset::GUEST_VECTOR + at, 0);
        }
    }
}

/// ModRM.reg of the register, but for the bit that is in the prefixes.
const REGISTER: u8 = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

    /// Every sequence in every width, read back.
    fn text(width: VectorWidth) -> Vec<String> {
        let mut emit = Emitter::new(layout::CACHE_FREE);
        emit.width = width;
        emit.charge(-3);
        emit.test_budget();
        emit.budget_is_negative();
        emit.put_aside();
        emit.take_back();
        emit.clear_upper();
        let mut formatter = IntelFormatter::new();
        Decoder::with_ip(64, &emit.bytes, layout::CACHE_FREE, DecoderOptions::NONE)
            .iter()
            .map(|instruction| {
                let mut line = String::new();
                formatter.format(&instruction, &mut line);
                line
            })
            .collect()
    }

    #[test]
    fn every_width_does_the_same() {
        assert_eq!(
            text(VectorWidth::Xmm),
            [
                "paddq xmm15,[400002D0h]",
                "ptest xmm15,[400000C0h]",
                "movmskpd ecx,xmm15",
                "movq [7FF00000h],xmm15",
                "movdqa xmm15,[7FF00140h]",
                "movdqa [7FF00140h],xmm15",
                "movq xmm15,[7FF00000h]",
            ]
        );
        assert_eq!(
            text(VectorWidth::Ymm),
            [
                "vpaddq xmm15,xmm15,[400002D0h]",
                "vtestpd xmm15,xmm15",
                "vmovmskpd ecx,xmm15",
                "vmovq [7FF00000h],xmm15",
                "vmovdqu ymm15,[7FF00140h]",
                "vmovdqu [7FF00140h],ymm15",
                "vmovq xmm15,[7FF00000h]",
                "mov qword ptr [7FF00150h],0",
                "mov qword ptr [7FF00158h],0",
            ]
        );
        let wide = text(VectorWidth::Zmm);
        assert_eq!(wide[4], "vmovdqu64 zmm15,[7FF00140h]");
        assert_eq!(wide[5], "vmovdqu64 [7FF00140h],zmm15");
        assert_eq!(wide.len(), 13);
    }
}
