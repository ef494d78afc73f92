//! Pads, at which indirect branches arrive: the flags are whose the branch really goes to.

use crate::{CODE_ADDRESS, COLD_ADDRESS};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use verdict_translate::indirect_pad;

fn decoded(code: &[u8]) -> Vec<Instruction> {
    Decoder::with_ip(64, code, CODE_ADDRESS, DecoderOptions::NONE)
        .iter()
        .collect()
}

/// The tables lead by the low bits of an address, so a branch to elsewhere may come by with flags that are live there.
#[test]
fn no_flag_changes_before_the_address_is_known() {
    for pc in [0x1000_0000, 0x3000_0000_0000] {
        for flags_dead in [false, true] {
            let pad = indirect_pad(
                pc,
                CODE_ADDRESS + 0x100,
                CODE_ADDRESS,
                COLD_ADDRESS,
                flags_dead,
            );
            let code = decoded(&pad.code);
            let known = code
                .iter()
                .position(|instruction| instruction.mnemonic() == Mnemonic::Jrcxz)
                .expect("the address is compared");
            for (number, instruction) in code.iter().enumerate() {
                let may_change = flags_dead && number > known;
                assert!(
                    may_change || instruction.rflags_modified() == 0,
                    "pad of {pc:#x}: {instruction} changes flags"
                );
            }
        }
    }
}
