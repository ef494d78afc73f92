// An index changes under a thread that uses it: the bounds check panics.
//
//~ verdict: racy
//~ topic: Rust, exception
//~ twin: racefree/rust_mutex.rs
//~ race a: the index
//~   real: yes
//~   observed: always
//~   class: spec-violated exception
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: read after the write, the index is out of bounds; the panic reaches main through
//~   | join
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::thread;

static mut CURRENT: usize = 1;

#[inline(never)]
fn look_up(items: &[u32]) -> u32 {
    // Unsound on purpose: the other thread writes the index.
    let index = unsafe { CURRENT };                 //~ RACE(a) read
    items[index]
}

/// What usually makes the invalidation come after the look-up.
fn other_work() {
    for i in 0..2_000_000 {
        black_box(i);
    }
}

#[inline(never)]
fn invalidate() {
    unsafe {
        CURRENT = usize::MAX;                       //~ RACE(a) write
    }
}

fn main() {
    // As in rust_static_mut.rs, both threads are there before they race.
    let start = Arc::new(Barrier::new(2));
    let theirs = Arc::clone(&start);
    let user = thread::spawn(move || {
        start.wait();
        look_up(black_box(&[10, 20, 30]))
    });
    let invalidator = thread::spawn(move || {
        theirs.wait();
        other_work();
        invalidate();
    });
    let found = user.join().expect("the index is valid");
    invalidator.join().unwrap();
    println!("{found}");
}
