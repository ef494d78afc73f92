// Rust scoped threads write to disjoint parts of a slice on the stack of main.
//
//~ verdict: race-free
//~ topic: Rust, Rust scoped threads, stack memory
//~ source: safe Rust without unsafe code has no data race; the parts are disjoint and the scope
//~ | joins
use std::sync::Barrier;
use std::thread;

fn main() {
    let mut squares = [0u64; 8];
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for (n, part) in squares.chunks_mut(2).enumerate() {
            let barrier = &barrier;
            scope.spawn(move || {
                for (i, square) in part.iter_mut().enumerate() {
                    *square = ((2 * n + i) as u64).pow(2);
                }
                barrier.wait();
                part[0] += 1;
            });
        }
    });
    println!("{squares:?}");
}
