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
use std::thread;

static mut COUNTER: u64 = 0;

fn add(amount: u64) {
    // Unsound on purpose: nothing keeps the threads apart.
    unsafe {
        COUNTER = COUNTER.wrapping_add(amount);     //~ RACE(a) update
    }
}

fn main() {
    let threads: Vec<_> = (1..=2).map(|n| thread::spawn(move || add(n))).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let counter = unsafe { COUNTER };
    println!("{counter}");
}
