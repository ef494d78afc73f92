//! Any bytes, read as std text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use verdict_events::Format;

fuzz_target!(|bytes: &[u8]| verdict_fuzz::check(Format::Std, bytes));
