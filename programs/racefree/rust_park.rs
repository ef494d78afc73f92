// Rust thread::park and unpark around an atomic flag, and thread-local storage.
//
//~ verdict: race-free
//~ topic: Rust, Rust park, thread-local memory
//~ source: the flag is atomic and unpark happens before the park that it ends
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

fn main() {
    let flag = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&flag);
    let sleeper = thread::Builder::new()
        .name("sleeper".into())
        .spawn(move || {
            while !theirs.load(Ordering::Acquire) {
                thread::park();
            }
            CALLS.with(|calls| calls.set(calls.get() + 1));
            CALLS.get()
        })
        .unwrap();
    CALLS.with(|calls| calls.set(10));
    flag.store(true, Ordering::Release);
    sleeper.thread().unpark();
    println!("{} {}", sleeper.join().unwrap(), CALLS.get());
}
