//! Votes are counted by two threads through a raw pointer, which promises to the compiler what nobody keeps.
//!
//!     rustc -g examples/tally.rs
use std::sync::Barrier;
use std::thread;

struct Tally {
    votes: u32,
}

struct Shared(*mut Tally);
unsafe impl Send for Shared {}

/// Nobody counts before both are there.
static OPEN: Barrier = Barrier::new(2);

fn count(tally: Shared, voters: u32) {
    OPEN.wait();
    for _ in 0..voters {
        // SAFETY: there is none. Two threads write here.
        unsafe { (*tally.0).votes += 1 };
    }
}

fn main() {
    let tally = Box::into_raw(Box::new(Tally { votes: 0 }));
    let (left, right) = (Shared(tally), Shared(tally));
    let workers = [
        thread::spawn(move || count(left, 3)),
        thread::spawn(move || count(right, 4)),
    ];
    for worker in workers {
        worker.join().unwrap();
    }
    // SAFETY: the threads have ended.
    println!("{} votes", unsafe { (*tally).votes });
}
