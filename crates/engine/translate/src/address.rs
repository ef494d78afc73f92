//! Addresses of operands as nearly all are, and instructions that reach them. They are written for each access that is logged or
//! sifted, several times as quickly as the encoder would.

use crate::emit::Emitter;
use crate::operands::gpr_of;
use iced_x86::{CodeSize, Register, UsedMemory};
use verdict_cpu::Gpr;

/// An address in registers of full width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) base: Option<Gpr>,
    /// A register other than rsp, and its scale: 1, 2, 4 or 8.
    pub(crate) index: Option<(Gpr, u32)>,
    pub(crate) displacement: i32,
}

impl Address {
    /// What a register holds.
    pub(crate) fn held_by(register: Gpr) -> Address {
        Address {
            base: Some(register),
            index: None,
            displacement: 0,
        }
    }

    /// So many bytes on; `None` if that is too far for one instruction.
    pub(crate) fn moved(self, by: u32) -> Option<Address> {
        let displacement = self.displacement.checked_add_unsigned(by)?;
        Some(Address {
            displacement,
            ..self
        })
    }

    /// The address of an operand, from wherever its segment begins; `None` if it is not made of registers of full width.
    pub(crate) fn of(operand: &UsedMemory) -> Option<Address> {
        let (base, index) = (operand.base(), operand.index());
        let is_wide = |register: Register| register == Register::None || register.is_gpr64();
        if operand.address_size() != CodeSize::Code64 || !is_wide(base) || !is_wide(index) {
            return None;
        }
        Some(Address {
            base: gpr_of(base),
            index: gpr_of(index).map(|index| (index, operand.scale())),
            displacement: i32::try_from(operand.displacement() as i64).ok()?,
        })
    }
}

/// In place of a register: what follows is a SIB byte; in its place of an index: none.
const SIB: u8 = 0b100;
/// In place of a base without a displacement: none, but a displacement of 32 bits.
const NO_BASE: u8 = 0b101;

impl Emitter {
    /// `lea reg, [address]`
    pub(crate) fn lea(&mut self, reg: Gpr, address: Address) {
        self.addressed(true, &[0x8d], reg, address);
    }

    /// An instruction on a register and memory, from its REX prefix on.
    pub(crate) fn addressed(&mut self, wide: bool, opcode: &[u8], reg: Gpr, address: Address) {
        let Address {
            base,
            index,
            displacement,
        } = address;
        let near = i8::try_from(displacement);
        // Without a displacement, rbp and r13 as bases mean something else.
        let mode = match (base, displacement, near) {
            (None, ..) => 0,
            (Some(base), 0, _) if base as u8 & 7 != NO_BASE => 0,
            (.., Ok(_)) => 0x40,
            _ => 0x80,
        };
        let (reg, extended) = (reg as u8, |gpr: Option<Gpr>| {
            gpr.map_or(0, |gpr| gpr as u8 >> 3)
        });
        let indexed = index.map(|(index, _)| index);
        let wide = u8::from(wide) << 3;
        let rex = 0x40 | wide | (reg >> 3) << 2 | extended(indexed) << 1 | extended(base);
        let base_bits = base.map_or(NO_BASE, |base| base as u8 & 7);
        let needs_sib = index.is_some() || base.is_none() || base_bits == SIB;
        let rm = if needs_sib { SIB } else { base_bits };
        self.raw(&[rex]);
        self.raw(opcode);
        self.raw(&[mode | (reg & 7) << 3 | rm]);
        if needs_sib {
            let (number, scale) = index.map_or((SIB, 0), |(index, scale)| {
                (index as u8 & 7, scale.trailing_zeros() as u8)
            });
            self.raw(&[scale << 6 | number << 3 | base_bits]);
        }
        match (mode, near) {
            (0x40, Ok(near)) => self.raw(&[near as u8]),
            (0, _) if base.is_some() => {}
            _ => self.imm32(displacement as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operands::{ALL, register_of};
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn each_address_is_encoded_as_the_decoder_reads_it() {
        let some = ALL.map(Some);
        let bases = some.iter().chain([&None]);
        let scales = [1, 2, 4, 8];
        let displacements = [0, 1, -1, 127, -128, 128, -129, i32::MAX, i32::MIN];
        let mut checked = 0;
        for base in bases {
            for index in some
                .iter()
                .chain([&None])
                .filter(|gpr| **gpr != Some(Gpr::Rsp))
            {
                for (scale, displacement) in scales
                    .iter()
                    .flat_map(|scale| displacements.map(|displacement| (*scale, displacement)))
                {
                    let into = ALL[checked % 16];
                    let address = Address {
                        base: *base,
                        index: index.map(|index| (index, scale)),
                        displacement,
                    };
                    let mut emit = Emitter::new(0x4001_0000);
                    emit.lea(into, address);
                    let read = Decoder::new(64, &emit.bytes, DecoderOptions::NONE).decode();
                    let name = |gpr: Option<Gpr>| gpr.map_or(Register::None, register_of);
                    assert_eq!(read.mnemonic(), Mnemonic::Lea, "{address:?}");
                    assert_eq!(read.len(), emit.bytes.len(), "{address:?}");
                    assert_eq!(read.op0_register(), register_of(into), "{address:?}");
                    assert_eq!(read.memory_base(), name(*base), "{address:?}");
                    assert_eq!(read.memory_index(), name(*index), "{address:?}");
                    let wanted = i64::from(displacement);
                    assert_eq!(read.memory_displacement64() as i64, wanted, "{address:?}");
                    if index.is_some() {
                        assert_eq!(read.memory_index_scale(), scale, "{address:?}");
                    }
                    checked += 1;
                }
            }
        }
        assert_eq!(checked, 17 * 16 * scales.len() * displacements.len());
    }
}
