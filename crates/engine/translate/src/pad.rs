//! Where indirect branches arrive: the table led here by the low bits only, so the pad checks the whole address.

use crate::emit::Emitter;
use verdict_cpu::{Gpr, offset};

/// Code to be placed at `pad_address` for the block of guest address `pc` whose code is at `body`.
///
/// In: rcx = the branch's guest target; the guest's rcx and rdx are borrowed (slots 0 and 1).
pub fn indirect_pad(pc: u64, body: u64, pad_address: u64) -> Vec<u8> {
    let mut emit = Emitter::new(pad_address);
    let near = pc < 1 << 31;
    if near {
        emit.lea_self(Gpr::Rcx, -(pc as i64) as i32);
    } else {
        emit.load_value(Gpr::Rdx, pc.wrapping_neg());
        emit.raw(&[0x48, 0x8d, 0x0c, 0x11]); // lea rcx, [rcx + rdx]
    }
    let miss = miss_path(pc, near);
    emit.raw(&[0xe3, miss.len() as u8]); // jrcxz over the miss path
    emit.raw(&miss);
    emit.load(Gpr::Rcx, offset::borrowed(0));
    emit.load(Gpr::Rdx, offset::borrowed(1));
    let distance = body.wrapping_sub(emit.here() + 5) as i64 as i32;
    emit.raw(&[0xe9]);
    emit.raw(&distance.to_le_bytes());
    emit.bytes
}

/// Restores the target and asks the second level.
fn miss_path(pc: u64, near: bool) -> Vec<u8> {
    let mut emit = Emitter::new(0);
    if near {
        emit.lea_self(Gpr::Rcx, pc as i32);
    } else {
        emit.load_value(Gpr::Rdx, pc);
        emit.raw(&[0x48, 0x8d, 0x0c, 0x11]);
    }
    emit.jump_through(offset::LOOKUP_ROUTINE);
    emit.bytes
}
