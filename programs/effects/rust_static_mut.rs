// Two threads add to a `static mut` without synchronisation.
//
//~ verdict: racy
//~ topic: Rust, lost update
//~ twin: racefree/rust_atomics.rs
//~ race a: the counter
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: an addition is lost if both threads load before either stores
use std::sync::{Arc, Barrier};
use std::thread;

static mut COUNTER: u64 = 0;

fn add(amount: u64, start: &Barrier) {
    start.wait();
    // Unsound on purpose: nothing keeps the threads apart.
    unsafe {
        COUNTER = COUNTER.wrapping_add(amount);     //~ RACE(a) update
    }
}

fn main() {
    // Both threads are there before they race: what the runtime locks when a thread starts or ends
    // must not order the accesses by accident.
    let start = Arc::new(Barrier::new(2));
    let spawn = |n| {
        let start = Arc::clone(&start);
        thread::spawn(move || add(n, &start))
    };
    let threads = [spawn(1), spawn(2)];
    for thread in threads {
        thread.join().unwrap();
    }
    let counter = unsafe { COUNTER };
    println!("{counter}");
}
