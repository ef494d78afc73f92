//! The code of the cache that belongs to no path: where indirect branches arrive, and where unlinked branches leave.

use crate::budget::{JRCXZ, SHORT_JUMP};
use crate::emit::Emitter;
use verdict_cpu::{ExitReason, Gpr, layout, offset};

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Where indirect branches to a block arrive.
#[derive(Clone, Debug)]
pub struct Pad {
    /// To be placed at the address that was asked for.
    pub code: Vec<u8>,
    /// Offset of the place to jump to.
    pub entry: u32,
}

/// Code to be placed at `address` for the block of guest address `pc` whose code is at `body`. The table led here by the
/// low bits of the target only, so the pad checks the whole address; and it checks the budget, which whoever comes this
/// way has charged but not checked. With flags that are dead at `pc` both are shorter.
///
/// In: rcx = the branch's guest target; the guest's rcx and rdx are borrowed (slots 0 and 1).
pub fn indirect_pad(pc: u64, body: u64, address: u64, flags_dead: bool) -> Pad {
    let near = pc < 1 << 31;
    let compares = near && flags_dead;
    let mut emit = Emitter::new(address);
    // What mostly runs lies in one cache line, the rest right before it.
    let rare_len = rare_ways(&mut Emitter::new(address), pc, near, compares).len;
    while !(emit.here() + rare_len).is_multiple_of(LINE) {
        emit.raw(&[TRAP]);
    }
    let RareWays { used_up, miss, .. } = rare_ways(&mut emit, pc, near, compares);
    let entry = emit.offset();
    if compares {
        emit.compare_rcx(pc as u32);
        emit.short_back(JUMP_NOT_ZERO, miss);
        emit.test_budget();
        emit.short_back(JUMP_NOT_ZERO, used_up);
    } else {
        move_target(&mut emit, near, pc.wrapping_neg());
        emit.raw(&[JRCXZ, 2]);
        emit.short_back(SHORT_JUMP, miss);
        emit.budget_is_negative();
        emit.raw(&[JRCXZ, 2]);
        emit.short_back(SHORT_JUMP, used_up);
    }
    restore(&mut emit);
    emit.jump_to(body);
    Pad {
        code: emit.bytes,
        entry: entry as u32,
    }
}

/// Offsets of the ways that a pad seldom takes.
struct RareWays {
    /// The budget is used up: comes back to the engine before the block.
    used_up: usize,
    /// Another target with the same low bits: the second level is asked.
    miss: usize,
    /// Bytes of both.
    len: u64,
}

fn rare_ways(emit: &mut Emitter, pc: u64, near: bool, compares: bool) -> RareWays {
    let used_up = emit.offset();
    restore(emit);
    emit.exit_at(ExitReason::Budget, pc);
    let miss = emit.offset();
    if !compares {
        move_target(emit, near, pc);
    }
    emit.jump_through(offset::LOOKUP_ROUTINE);
    RareWays {
        used_up,
        miss,
        len: (emit.offset() - used_up) as u64,
    }
}

fn restore(emit: &mut Emitter) {
    emit.load(Gpr::Rcx, offset::borrowed(0));
    emit.load(Gpr::Rdx, offset::borrowed(1));
}

/// `rcx += distance`; rdx may be used if it is far.
fn move_target(emit: &mut Emitter, near: bool, distance: u64) {
    if near {
        emit.lea_self(Gpr::Rcx, distance as i32);
    } else {
        emit.load_value(Gpr::Rdx, distance);
        emit.raw(&[0x48, 0x8d, 0x0c, 0x11]); // lea rcx, [rcx + rdx]
    }
}

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
    emit.put_aside();
    emit.jump_through(offset::EXIT_ROUTINE);
    place(layout::CACHE_LEAVE, &emit.bytes);
    let mut emit = Emitter::new(layout::CACHE_ENTER);
    emit.take_back();
    emit.jump_through(offset::RESUME);
    place(layout::CACHE_ENTER, &emit.bytes);
    let pair = |low: u64| [low.to_le_bytes(), [0; 8]].concat();
    place(layout::CACHE_SIGN, &pair(1 << 63));
    for (index, amount) in (-layout::CHARGE_MAX..=layout::CHARGE_MAX).enumerate() {
        let at = layout::CACHE_CHARGES + 16 * index as u64;
        place(at, &pair(i64::from(amount) as u64));
    }
    page
}

const JUMP_NOT_ZERO: u8 = 0x75;
/// int3, which never runs.
const TRAP: u8 = 0xcc;
