//! Whatever bytes a guest executes, translation gives a block or says that there is no code.

use crate::{COLD_ADDRESS, translate_at};
use iced_x86::{Decoder, DecoderOptions};
use proptest::prelude::*;
use verdict_translate::{Block, Instrumentation, Scope, log_words_per_instruction_max};

/// Near the cache, far from it, and around the edges of what 32 bits hold.
fn addresses() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0x1000_0000),
        Just(0x7fff_fff0),
        Just(0xffff_fff8),
        Just(0x3000_0000_0000),
        0x1000u64..0x7fff_ffff_0000,
    ]
}

fn instrumentations() -> impl Strategy<Value = Instrumentation> {
    prop_oneof![
        Just(Instrumentation::None),
        Just(Instrumentation::Accesses),
        Just(Instrumentation::Sifted),
    ]
}

fn scopes() -> impl Strategy<Value = Scope> {
    prop_oneof![
        (any::<bool>()).prop_map(|pad| Scope::Cached {
            first_link: 3,
            cold_address: COLD_ADDRESS,
            pad,
        }),
        (1u32..80).prop_map(|instructions| Scope::OneOff { instructions }),
    ]
}

/// Bytes that decode to something more often than chance: prefixes, escapes and ModRM bytes of interest.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => any::<u8>(),
        1 => prop::sample::select(vec![
            0x0f, 0x38, 0x3a, 0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x48, 0x4c, 0x64, 0x05, 0x0d, 0x25, 0x35,
            0xc4, 0xc5, 0x62, 0xff, 0xe8, 0xe9, 0xeb, 0xe3, 0xc3, 0xd7, 0xa4, 0x8b, 0x84, 0x44,
        ]),
    ];
    prop::collection::vec(byte, 1..600)
}

/// What every block keeps, however odd its code.
fn check(block: &Block, pc: u64, code: &[u8]) {
    assert_eq!(block.pc, pc);
    assert!(block.instructions >= 1);
    let end = pc + code.len() as u64;
    for (start, len) in &block.ranges {
        assert!((pc..end).contains(start) && start + u64::from(*len) <= end);
    }
    let hosts: Vec<u32> = block.faults.iter().map(|fault| fault.host).collect();
    assert!(hosts.is_sorted(), "fault map out of order: {hosts:?}");
    for fault in &block.faults {
        assert!(u32::from(fault.retired) <= block.instructions);
        assert!((pc..end).contains(&fault.pc));
    }
    for link in &block.links {
        assert!(link.patch as usize + 4 <= block.code.len());
        let cold = COLD_ADDRESS..COLD_ADDRESS + block.cold.len() as u64;
        assert!(cold.contains(&link.stub));
    }
    let decoded: usize = block
        .ranges
        .iter()
        .map(|(start, len)| {
            let at = (start - pc) as usize;
            let bytes = &code[at..at + *len as usize];
            Decoder::with_ip(64, bytes, *start, DecoderOptions::NONE)
                .iter()
                .count()
        })
        .sum();
    assert_eq!(decoded as u32, block.instructions);
}

/// The buffer of the log has room for so much.
fn check_log(block: &Block, instrumentation: Instrumentation) {
    let per_instruction = log_words_per_instruction_max(instrumentation);
    for (retired, words) in block.log_words.iter().enumerate() {
        assert!(u64::from(*words) <= per_instruction * (retired as u64).max(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_bytes_translate(
        pc in addresses(),
        code in code(),
        scope in scopes(),
        instrumentation in instrumentations(),
    ) {
        if let Ok(block) = translate_at(pc, &code, scope, instrumentation) {
            check(&block, pc, &code);
            check_log(&block, instrumentation);
        }
    }
}
