//! Blocks stop before watched instructions, and only there.

use crate::{COLD_ADDRESS, translate_watched};
use verdict_translate::{Block, Instrumentation, Scope};

const PC: u64 = 0x1000_0000;
/// inc eax; dec ecx; inc edx; jmp to itself.
const CODE: &[u8] = &[0xff, 0xc0, 0xff, 0xc9, 0xff, 0xc2, 0xeb, 0xfe];
const CACHED: Scope = Scope::Cached {
    first_link: 0,
    cold_address: COLD_ADDRESS,
    pad: true,
};

fn block(pc: u64, scope: Scope, watched: u64) -> Block {
    let code = &CODE[(pc - PC) as usize..];
    let is_watched = |at: u64| at == watched;
    translate_watched(pc, code, scope, Instrumentation::Accesses, &is_watched).unwrap()
}

#[test]
fn a_block_ends_before_the_watched_instruction() {
    let stopped = block(PC, CACHED, PC + 4);
    assert_eq!(stopped.instructions, 2);
    assert_eq!(stopped.ranges, [(PC, 4)]);
    assert_eq!(stopped.links[0].target, PC + 4);
}

#[test]
fn a_block_that_starts_there_runs_nothing() {
    let stop = block(PC + 4, CACHED, PC + 4);
    assert_eq!(stop.instructions, 0);
    assert!(stop.links.is_empty() && stop.accesses.is_empty());
    assert_eq!(stop.ranges, [(PC + 4, 1)]);
}

#[test]
fn a_one_off_block_passes_its_first_instruction_and_stops_before_the_next_watched_one() {
    let passes = block(PC + 4, Scope::OneOff { instructions: 1 }, PC + 4);
    assert_eq!(passes.instructions, 1);
    let stops = block(PC, Scope::OneOff { instructions: 3 }, PC + 4);
    assert_eq!(stops.instructions, 2);
}
