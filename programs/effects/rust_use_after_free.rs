// A raw pointer to a large boxed slice is read after another thread dropped the box.
//
//~ verdict: racy
//~ topic: Rust, use after free, memory error
//~ twin: racefree/rust_arc.rs
//~ race a: the buffer: its read and its drop
//~   real: yes
//~   observed: always
//~   class: spec-violated crash|memory-error
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: dropped before the read, the pages are gone
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::thread;

const BYTES: usize = 1 << 20;

#[derive(Clone, Copy)]
struct Raw(*mut [u8]);

// Unsound on purpose: nothing says how long the pointer is good.
unsafe impl Send for Raw {}

#[inline(never)]
fn read(buffer: Raw) -> u8 {
    unsafe {
        (*buffer.0)[BYTES / 2]                      //~ RACE(a) read
    }
}

/// What usually makes the drop come after the read.
fn other_work() {
    for i in 0..2_000_000 {
        black_box(i);
    }
}

#[inline(never)]
fn release(buffer: Raw) -> usize {
    let owned = unsafe { Box::from_raw(buffer.0) };
    let bytes = owned.len();
    drop(owned);                                    //~ RACE(a) write
    bytes
}

fn main() {
    let raw = Raw(Box::into_raw(vec![3u8; BYTES].into_boxed_slice()));
    // As in rust_static_mut.rs, both threads are there before they race.
    let start = Arc::new(Barrier::new(2));
    let theirs = Arc::clone(&start);
    let reader = thread::spawn(move || {
        start.wait();
        read(raw)
    });
    let owner = thread::spawn(move || {
        theirs.wait();
        other_work();
        release(raw)
    });
    println!("{}", reader.join().unwrap());
    println!("{} bytes", owner.join().unwrap());
}
