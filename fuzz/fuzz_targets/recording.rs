//! Any bytes as a recording: as they are, with all checksums made right, and as what is in its frames.
#![no_main]

use libfuzzer_sys::fuzz_target;
use verdict_fuzz::recording;

fuzz_target!(|bytes: &[u8]| {
    recording::check(bytes);
    recording::check(&recording::resummed(bytes));
    recording::check(&recording::framed(bytes));
});
