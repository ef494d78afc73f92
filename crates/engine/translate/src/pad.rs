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
/// way has charged but not checked.
///
/// In: rcx = the branch's guest target; the guest's rcx and rdx are borrowed (slots 0 and 1).
pub fn indirect_pad(pc: u64, body: u64, address: u64) -> Pad {
    let near = pc < 1 << 31;
    let mut emit = Emitter::new(address);
    // What mostly runs lies in one cache line, the rest right before it.
    let rare_len = rare_ways(&mut Emitter::new(address), pc, near).len;
    while !(emit.here() + rare_len).is_multiple_of(LINE) {
        emit.raw(&[TRAP]);
    }
    let RareWays { used_up, miss, .. } = rare_ways(&mut emit, pc, near);
    let entry = emit.offset();
    move_target(&mut emit, near, pc.wrapping_neg());
    emit.raw(&[JRCXZ, 2]);
    emit.short_back(SHORT_JUMP, miss);
    // The top byte is 0 unless the budget is used up. To load it alone takes longer, since all of it was just stored.
    emit.load(Gpr::Rcx, offset::BUDGET);
    emit.top_byte_of_rcx();
    emit.raw(&[JRCXZ, 2]);
    emit.short_back(SHORT_JUMP, used_up);
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

fn rare_ways(emit: &mut Emitter, pc: u64, near: bool) -> RareWays {
    let used_up = emit.offset();
    restore(emit);
    emit.exit_at(ExitReason::Budget, pc);
    let miss = emit.offset();
    move_target(emit, near, pc);
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

/// Code to be placed at [`layout::CACHE_LINK_EXIT`]: leaves through the link that is named in the context.
pub fn link_exit() -> Vec<u8> {
    let mut emit = Emitter::new(layout::CACHE_LINK_EXIT);
    emit.exit(ExitReason::Link);
    emit.bytes
}

/// int3, which never runs.
const TRAP: u8 = 0xcc;
