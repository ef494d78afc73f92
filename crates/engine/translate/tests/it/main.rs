//! What users of the translator see.

mod any_bytes;
mod guesses;
mod listings;
mod pads;
mod watched;

use verdict_translate::{
    Block, Carried, Guess, Instrumentation, KnownFlags, Paths, Request, Scope, TranslateError,
    translate,
};

/// Where the host code of these tests would run.
const CODE_ADDRESS: u64 = 0x4001_0000;
/// And that part of it which seldom does.
const COLD_ADDRESS: u64 = 0x4800_0000;
/// A block that stays.
const CACHED: Scope = Scope::Cached {
    first_link: 0,
    cold_address: COLD_ADDRESS,
    pad: false,
};

/// Translates code that lies alone at an address.
fn translate_at(
    pc: u64,
    code: &[u8],
    scope: Scope,
    instrumentation: Instrumentation,
) -> Result<Block, TranslateError> {
    translate_watched(pc, code, scope, instrumentation, &|_| false)
}

/// The same with watched instructions.
fn translate_watched(
    pc: u64,
    code: &[u8],
    scope: Scope,
    instrumentation: Instrumentation,
    watched: &dyn Fn(u64) -> bool,
) -> Result<Block, TranslateError> {
    let fetch = |address: u64, buffer: &mut [u8]| {
        let Some(rest) = address
            .checked_sub(pc)
            .and_then(|at| code.get(usize::try_from(at).ok()?..))
        else {
            return 0;
        };
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        len
    };
    translate(&Request {
        pc,
        code_address: CODE_ADDRESS,
        block_id: 7,
        carried: Carried::NOTHING,
        paths: Paths::Short,
        scope,
        instrumentation,
        fetch: &fetch,
        read_word: &|_| None,
        constant_word: &|_| None,
        registers: None,
        guess: &|_| Guess::Now,
        known_flags: &KnownFlags::default(),
        usual_way: &|_| None,
        watched,
        noted: &|_| None,
        whose: &|_| verdict_translate::Whose::Program,
        tells_plain: true,
        first_site: 1024,
    })
}
