// Rust channels: many producers and one consumer, bounded and unbounded.
//
//~ verdict: race-free
//~ topic: Rust, Rust channels
//~ source: safe Rust without unsafe code has no data race
use std::sync::mpsc;
use std::thread;

fn main() {
    let (send, receive) = mpsc::channel::<Box<u64>>();
    let (bounded, answers) = mpsc::sync_channel(1);
    let producers: Vec<_> = (1..=3)
        .map(|n| {
            let send = send.clone();
            thread::spawn(move || (0..10).for_each(|i| send.send(Box::new(n * 100 + i)).unwrap()))
        })
        .collect();
    drop(send);
    let consumer = thread::spawn(move || {
        let mut sum = 0;
        for item in receive {
            sum += *item;
            if sum % 2 == 0 {
                bounded.try_send(sum).ok();
            }
        }
        drop(bounded);
        sum
    });
    producers.into_iter().for_each(|thread| thread.join().unwrap());
    let sum = consumer.join().unwrap();
    println!("sum {sum}, answers even {}", answers.iter().all(|answer| answer % 2 == 0));
}
