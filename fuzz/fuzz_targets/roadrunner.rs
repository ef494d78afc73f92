//! Any bytes, read as roadrunner text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use verdict_events::Format;

fuzz_target!(|bytes: &[u8]| verdict_fuzz::check(Format::RoadRunner, bytes));
