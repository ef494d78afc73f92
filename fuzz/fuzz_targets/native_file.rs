//! Any bytes with right checksums, entered as a native file through its index, at positions and by thread.
//! What is found that way must be what reading from the start finds.
#![no_main]

use std::fs::File;
use std::io::{Seek, Write};

use libfuzzer_sys::fuzz_target;
use verdict_events::native::NativeFile;
use verdict_events::{Position, ThreadId};

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    verdict_fuzz::resum(&mut bytes);
    let mut file: File = tempfile::tempfile().expect("a temporary file");
    file.write_all(&bytes).expect("written");
    file.rewind().expect("rewound");
    let Ok(mut native) = NativeFile::new("fuzz".to_owned(), file) else {
        return;
    };
    let Ok((events, _)) = verdict_fuzz::tell(&mut native) else {
        return;
    };
    let middle = events.len() / 2;
    if native.seek(Position(middle as u64)).is_ok()
        && let Ok((rest, _)) = verdict_fuzz::tell(&mut native)
    {
        assert_eq!(rest, events[middle..]);
    }
    let mut batch = Vec::new();
    let mut of_thread = native.events_of(ThreadId(0));
    while of_thread.next_batch(&mut batch).is_ok() && !batch.is_empty() {
        for (position, event) in &batch {
            assert_eq!(events[position.0 as usize], *event);
        }
    }
});
