// Rust atomics: counters (relaxed), publication (release, acquire), flags (sequentially consistent),
// fences.
//
//~ verdict: race-free
//~ topic: Rust, Rust atomics
//~ source: all shared variables are atomics, or published by a release that an acquire read
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, fence};
use std::{hint, ptr, thread};

static COUNTER: AtomicU64 = AtomicU64::new(0);
static TURN: AtomicUsize = AtomicUsize::new(0);
static FENCED: AtomicBool = AtomicBool::new(false);
static BOXED: AtomicPtr<u64> = AtomicPtr::new(ptr::null_mut());

fn count() {
    for _ in 0..100 {
        COUNTER.fetch_add(1, Relaxed);
    }
    while TURN.compare_exchange_weak(0, 1, AcqRel, Relaxed).is_err() {
        hint::spin_loop();
    }
    TURN.store(0, Release);
}

fn publish() {
    BOXED.store(Box::into_raw(Box::new(42)), Release);
    fence(Release);
    FENCED.store(true, Relaxed);
}

fn receive() -> u64 {
    while !FENCED.load(Relaxed) {
        thread::yield_now();
    }
    fence(Acquire);
    let found = BOXED.swap(ptr::null_mut(), SeqCst);
    // The fences order the store of the pointer before the swap, and the pointer owns its box.
    *unsafe { Box::from_raw(found) }
}

fn main() {
    let counters: Vec<_> = (0..3).map(|_| thread::spawn(count)).collect();
    let receiver = thread::spawn(receive);
    let publisher = thread::spawn(publish);
    counters.into_iter().for_each(|thread| thread.join().unwrap());
    publisher.join().unwrap();
    println!("{} {}", COUNTER.load(SeqCst), receiver.join().unwrap());
}
