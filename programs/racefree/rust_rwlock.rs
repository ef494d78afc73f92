// Rust RwLock: one writer, several readers.
//
//~ verdict: race-free
//~ topic: Rust, Rust rwlock
//~ source: safe Rust without unsafe code has no data race
use std::sync::{Arc, RwLock};
use std::thread;

fn main() {
    let shared = Arc::new(RwLock::new([1u32; 4]));
    let mut threads = Vec::new();
    for n in 0..3 {
        let shared = Arc::clone(&shared);
        threads.push(thread::spawn(move || {
            for _ in 0..20 {
                let sum: u32 = shared.read().unwrap().iter().sum();
                assert!(sum % 4 == 0, "a writer changes all four");
            }
            n
        }));
    }
    let writer = Arc::clone(&shared);
    threads.push(thread::spawn(move || {
        for _ in 0..10 {
            writer.write().unwrap().iter_mut().for_each(|item| *item += 1);
        }
        3
    }));
    let sum: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    println!("{sum} {:?}", shared.read().unwrap());
}
