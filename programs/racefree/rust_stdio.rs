// Rust threads that print whole lines, format, allocate and read the environment.
//
//~ verdict: race-free
//~ topic: Rust, library calls
//~ source: safe Rust without unsafe code has no data race; all lines are equal, so their order
//~ | does not show
use std::{env, thread};

fn main() {
    let threads: Vec<_> = (0..3)
        .map(|_| {
            thread::spawn(|| {
                for _ in 0..10 {
                    let missing = env::var("NO_SUCH_VARIABLE").is_err();
                    println!("missing {missing}");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
