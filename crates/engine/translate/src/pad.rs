//! The code of the cache that belongs to no path: where indirect branches arrive, and where unlinked branches leave.

use crate::budget::{CONDITION_NOT_ZERO, JRCXZ, JUMP_LEN};
use crate::emit::Emitter;
use verdict_cpu::{ExitReason, Gpr, InPlace, layout, offset};

/// Where indirect branches to a block arrive that was made without a pad.
#[derive(Clone, Debug)]
pub struct Pad {
    /// To be placed at the address that was asked for.
    pub code: Vec<u8>,
    /// What seldom runs, to be placed at the other address.
    pub cold: Vec<u8>,
}

/// Code to be placed at `address`, and at `cold_address`, for the block of guest address `pc` whose entry is at `entry`.
pub fn indirect_pad(pc: u64, entry: u64, address: u64, cold_address: u64, flags_dead: bool) -> Pad {
    let mut emit = Emitter::new(address);
    let mut cold = Emitter::new(cold_address);
    emit_pad(&mut emit, &mut cold, pc, flags_dead);
    emit.jump_to(entry);
    Pad {
        code: emit.bytes,
        cold: cold.bytes,
    }
}

/// The table led here by the low bits of the target only, so the pad checks the whole address; and it checks the budget,
/// which whoever comes this way has charged but not checked. Only once the address is known to be `pc` may the flags
/// change, if they are dead there: at the address that was really meant they may be live.
///
/// In: the branch's guest target in slot 1, the guest's rcx in slot 0.
pub(crate) fn emit_pad(emit: &mut Emitter, cold: &mut Emitter, pc: u64, flags_dead: bool) {
    let miss = cold.here();
    cold.jump_through(offset::LOOKUP_ROUTINE);
    let used_up = cold.here();
    cold.load(Gpr::Rcx, offset::borrowed(0));
    cold.exit_at(ExitReason::Budget, pc);
    distance_to_rcx(emit, pc);
    emit.raw(&[JRCXZ, JUMP_LEN]);
    emit.jump_to(miss);
    if flags_dead {
        emit.test_budget();
        emit.jump_if_to(CONDITION_NOT_ZERO, used_up);
    } else {
        emit.budget_is_negative();
        emit.raw(&[JRCXZ, JUMP_LEN]);
        emit.jump_to(used_up);
    }
    emit.load(Gpr::Rcx, offset::borrowed(0));
}

/// `rcx = target - pc`, the flags untouched.
fn distance_to_rcx(emit: &mut Emitter, pc: u64) {
    if pc < 1 << 31 {
        emit.load(Gpr::Rcx, offset::borrowed(1));
        emit.lea_self(Gpr::Rcx, -(pc as i64) as i32);
    } else {
        emit.store(offset::borrowed(SLOT_DISTANCE), Gpr::Rdx);
        emit.load_value(Gpr::Rdx, pc.wrapping_neg());
        emit.load(Gpr::Rcx, offset::borrowed(1));
        emit.raw(&[0x48, 0x8d, 0x0c, 0x11]); // lea rcx, [rcx + rdx]
        emit.load(Gpr::Rdx, offset::borrowed(SLOT_DISTANCE));
    }
}

const SLOT_DISTANCE: usize = 2;

/// What the cache begins with, up to [`layout::CACHE_FREE`]: the ways in and out, and the constants of counting.
pub fn prelude() -> Vec<u8> {
    let mut page = vec![TRAP; (layout::CACHE_FREE - layout::CACHE_START) as usize];
    let mut place = |address: u64, bytes: &[u8]| {
        let at = (address - layout::CACHE_START) as usize;
        page[at..at + bytes.len()].copy_from_slice(bytes);
    };
    let mut emit = Emitter::new(layout::CACHE_LINK_EXIT);
    emit.exit(ExitReason::Link);
    place(layout::CACHE_LINK_EXIT, &emit.bytes);
    let mut emit = Emitter::new(layout::CACHE_LEAVE);
    emit.put_aside_for_whatever_is_used();
    emit.jump_through(offset::EXIT_ROUTINE);
    place(layout::CACHE_LEAVE, &emit.bytes);
    let mut emit = Emitter::new(layout::CACHE_ENTER);
    emit.take_back(InPlace::Whole);
    emit.jump_through(offset::RESUME);
    place(layout::CACHE_ENTER, &emit.bytes);
    let pair = |low: u64| [low.to_le_bytes(), [0; 8]].concat();
    place(layout::CACHE_SIGN, &pair(1 << 63));
    for (index, amount) in (-layout::CHARGE_MAX..=layout::GIVEN_BACK_MAX).enumerate() {
        let at = layout::CACHE_CHARGES + 16 * index as u64;
        place(at, &pair(i64::from(amount) as u64));
    }
    for words in 0..=layout::LOGGED_MAX {
        for amount in 0..=layout::CHARGE_MAX as u64 {
            let row = words * (layout::CHARGE_MAX as u64 + 1);
            let at = layout::CACHE_LOGGED_CHARGES + 16 * (row + amount);
            let pair = [
                amount.wrapping_neg().to_le_bytes(),
                (8 * words).to_le_bytes(),
            ];
            place(at, pair.as_flattened());
        }
    }
    for words in 0..=layout::CARRIED_WORDS_MAX {
        for amount in 0..=layout::CARRIED_MAX {
            let row = words * (layout::CARRIED_MAX + 1);
            let at = layout::CACHE_CREDITS + 16 * (row + amount);
            let pair = [
                amount.to_le_bytes(),
                (8 * words).wrapping_neg().to_le_bytes(),
            ];
            place(at, pair.as_flattened());
        }
    }
    page
}

/// int3, which never runs.
const TRAP: u8 = 0xcc;
