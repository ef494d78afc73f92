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
use std::sync::Arc;
use std::thread;

struct Shared(UnsafeCell<[u32; 4]>);

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
    let shared = Arc::new(Shared(UnsafeCell::new([1; 4])));
    let theirs = Arc::clone(&shared);
    let writer = thread::spawn(move || write(theirs.0.get()));
    let reader = thread::spawn(move || read(shared.0.get()));
    writer.join().unwrap();
    println!("{}", reader.join().unwrap());
}
