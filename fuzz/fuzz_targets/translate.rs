//! Any bytes, as guest code at addresses near to and far from the code cache.
#![no_main]

use libfuzzer_sys::fuzz_target;
use verdict_translate::{
    Carried, Guess, Instrumentation, KnownFlags, Noted, Paths, Request, Scope, Whose, translate,
};

fuzz_target!(|code: &[u8]| {
    for pc in [0x1000_0000, 0x7fff_fff0, 0x3000_0000_0000] {
        let fetch = |address: u64, buffer: &mut [u8]| {
            let at = address.wrapping_sub(pc).min(code.len() as u64) as usize;
            let len = (code.len() - at).min(buffer.len());
            buffer[..len].copy_from_slice(&code[at..at + len]);
            len
        };
        let registers = [pc; 16];
        for instrumentation in [
            Instrumentation::None,
            Instrumentation::Accesses,
            Instrumentation::Everything,
            Instrumentation::Sifted,
        ] {
            for scope in [
                Scope::Cached {
                    first_link: 0,
                    cold_address: 0x4800_0000,
                    pad: true,
                },
                Scope::OneOff { instructions: 3 },
            ] {
                let request = Request {
                    pc,
                    code_address: 0x4001_0000,
                    block_id: 7,
                    carried: Carried::NOTHING,
                    paths: Paths::Short,
                    scope,
                    instrumentation,
                    fetch: &fetch,
                    read_word: &Some,
                    constant_word: &|_| None,
                    registers: Some(&registers),
                    guess: &|_| Guess::Now,
                    known_flags: &KnownFlags::default(),
                    usual_way: &|_| None,
                    // Some of each, and some of neither.
                    watched: &|pc| pc % 5 == 0,
                    noted: &|pc| {
                        (pc % 7 == 0).then_some(Noted {
                            hides: pc % 2 == 0,
                            ends_epoch: pc % 3 == 0,
                            atomic: pc % 5 == 1,
                            arguments: (pc % 6) as u8,
                        })
                    },
                    whose: &|pc| match pc % 3 {
                        0 => Whose::Program,
                        1 => Whose::Runtime,
                        _ => Whose::Loader,
                    },
                    tells_plain: code.len().is_multiple_of(2),
                    first_site: 1024,
                };
                let Ok(block) = translate(&request) else {
                    continue;
                };
                assert!(block.instructions >= 1);
            }
        }
    }
});
