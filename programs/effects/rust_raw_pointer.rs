// A buffer that an unsafe impl declares shareable is written by one thread and read by another.
//
//~ verdict: racy
//~ topic: Rust, output
//~ twin: racefree/rust_rwlock.rs
//~ race a: the buffer
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: the reader gets the old or the new element
use std::cell::UnsafeCell;
use std::sync::{Arc, Barrier};
use std::thread;

struct Shared {
    buffer: UnsafeCell<[u32; 4]>,
    // As in rust_static_mut.rs, both threads are there before they race.
    start: Barrier,
}

// Unsound on purpose: the cell has no lock.
unsafe impl Sync for Shared {}

#[inline(never)]
fn write(buffer: *mut [u32; 4]) {
    unsafe {
        (*buffer)[2] = 7;                           //~ RACE(a) write
    }
}

#[inline(never)]
fn read(buffer: *const [u32; 4]) -> u32 {
    unsafe {
        (*buffer)[2]                                //~ RACE(a) read
    }
}

fn main() {
    let shared = Arc::new(Shared { buffer: UnsafeCell::new([1; 4]), start: Barrier::new(2) });
    let theirs = Arc::clone(&shared);
    let writer = thread::spawn(move || {
        theirs.start.wait();
        write(theirs.buffer.get())
    });
    let reader = thread::spawn(move || {
        shared.start.wait();
        read(shared.buffer.get())
    });
    writer.join().unwrap();
    println!("{}", reader.join().unwrap());
}
