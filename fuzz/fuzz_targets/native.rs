//! Any bytes, read as a native trace: as they are, and with all checksums made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use verdict_events::Format;

fuzz_target!(|bytes: &[u8]| {
    verdict_fuzz::check(Format::Native, bytes);
    let mut bytes = bytes.to_vec();
    verdict_fuzz::resum(&mut bytes);
    verdict_fuzz::check(Format::Native, &bytes);
});
