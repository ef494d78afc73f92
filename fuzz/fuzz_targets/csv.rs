//! Any bytes, read as csv text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use verdict_events::Format;

fuzz_target!(|bytes: &[u8]| {
    // The header is not worth finding by chance.
    let header = b"thread,event,object,name,size,value,order,site\n";
    verdict_fuzz::check(Format::Csv, &[header, bytes].concat());
    verdict_fuzz::check(Format::Csv, bytes);
});
