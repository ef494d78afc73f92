//! Which instructions access only some of the bytes of a vector: a mask in a register says which.

use crate::sites::Place;
use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Longest instruction.
const LONGEST: usize = 15;

/// True unless it is certain that the instruction accesses all the bytes of its operand.
pub(crate) fn may_be_masked(place: &Place) -> bool {
    let Some(module) = &place.module else {
        return true;
    };
    let mut bytes = [0; LONGEST];
    let read = File::open(module).and_then(|file| file.read_at(&mut bytes, place.offset));
    read.map_or(true, |len| is_masked(&bytes[..len]))
}

fn is_masked(bytes: &[u8]) -> bool {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    instruction.is_invalid()
        || instruction.op_mask() != Register::None
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Maskmovdqu
                | Mnemonic::Vmaskmovdqu
                | Mnemonic::Vmaskmovps
                | Mnemonic::Vmaskmovpd
                | Mnemonic::Vpmaskmovd
                | Mnemonic::Vpmaskmovq
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_seen_in_the_instruction() {
        // movups [rdi], xmm0
        assert!(!is_masked(&[0x0f, 0x11, 0x07]));
        // vmovdqu8 [rdi]{k1}, zmm16
        assert!(is_masked(&[0x62, 0xe1, 0x7f, 0x49, 0x7f, 0x07]));
        // vpmaskmovd [rdi], ymm1, ymm0
        assert!(is_masked(&[0xc4, 0xe2, 0x75, 0x8e, 0x07]));
        assert!(is_masked(&[]), "nobody knows");
    }
}
