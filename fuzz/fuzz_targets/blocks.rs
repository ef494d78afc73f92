//! Any bytes as parts of a frame of a block file, as the index of one, and as the result of a task.
#![no_main]

use libfuzzer_sys::fuzz_target;
use verdict_blocks::cluster::ResultLine;
use verdict_blocks::{Index, frame};

// The first byte says how many threads there are, the second how long the first part is.
fuzz_target!(|bytes: &[u8]| {
    let _ = Index::decode(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = ResultLine::from_json(text);
    }
    if let [threads, length, rest @ ..] = bytes {
        let (blocks, entries) = rest.split_at(rest.len().min(usize::from(*length)));
        let _ = frame::check(blocks, entries, u32::from(*threads));
    }
});
