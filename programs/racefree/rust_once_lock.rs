// Rust Once, OnceLock and LazyLock: many threads ask, one initialises.
//
//~ verdict: race-free
//~ topic: Rust, Rust once
//~ source: safe Rust without unsafe code has no data race
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Once, OnceLock};
use std::thread;

static INITIALISED: AtomicU32 = AtomicU32::new(0);
static ONCE: Once = Once::new();
static TABLE: OnceLock<Vec<u32>> = OnceLock::new();
static LAZY: LazyLock<String> = LazyLock::new(|| {
    INITIALISED.fetch_add(1, Ordering::Relaxed);
    "lazy".repeat(2)
});

fn ask() -> usize {
    ONCE.call_once(|| {
        INITIALISED.fetch_add(1, Ordering::Relaxed);
    });
    let table = TABLE.get_or_init(|| {
        INITIALISED.fetch_add(1, Ordering::Relaxed);
        (0..100).collect()
    });
    table[42] as usize + LAZY.len()
}

fn main() {
    let threads: Vec<_> = (0..4).map(|_| thread::spawn(ask)).collect();
    let sum: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    println!("{sum}, initialised {}", INITIALISED.load(Ordering::Relaxed));
}
