// Rust Arc: the last owner, whichever thread it is, drops the buffer.
//
//~ verdict: race-free
//~ topic: Rust, Rust Arc, use after free
//~ source: safe Rust without unsafe code has no data race; Arc counts its owners atomically
use std::sync::{Arc, Weak};
use std::thread;

fn main() {
    let buffer: Arc<[u8]> = vec![3u8; 1 << 20].into();
    let weak: Weak<[u8]> = Arc::downgrade(&buffer);
    let threads: Vec<_> = (0..3)
        .map(|n| {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || u32::from(buffer[n * 1000]))
        })
        .collect();
    drop(buffer);
    let sum: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    println!("{sum}, dropped {}", weak.upgrade().is_none());
}
