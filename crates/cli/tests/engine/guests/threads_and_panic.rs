//! Eight threads, a channel, scoped borrows, and panics that are caught: with `catch_unwind` and at `join`.
use std::panic;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, RwLock};
use std::thread;

fn main() {
    // The default message names the thread's number, which is the system's.
    panic::set_hook(Box::new(|_| {}));
    let total = Arc::new(Mutex::new(0u64));
    let table = Arc::new(RwLock::new(Vec::new()));
    let (send, receive) = mpsc::channel();
    let threads: Vec<_> = (0..8u64)
        .map(|id| {
            let (total, table, send) = (Arc::clone(&total), Arc::clone(&table), send.clone());
            thread::spawn(move || {
                for i in 0..500 {
                    *total.lock().unwrap() += i * id;
                }
                table.write().unwrap().push(id);
                send.send(id * id).unwrap();
                let caught = panic::catch_unwind(|| {
                    let numbers = vec![1, 2, 3];
                    numbers[id as usize + 3]
                });
                assert!(caught.is_err());
                if id == 5 {
                    panic!("thread five gives up");
                }
                id
            })
        })
        .collect();
    drop(send);
    let mut squares: Vec<u64> = receive.iter().collect();
    squares.sort();
    println!("squares {squares:?}");
    for (id, thread) in threads.into_iter().enumerate() {
        match thread.join() {
            Ok(value) => println!("thread {id}: {value}"),
            Err(reason) => println!("thread {id}: panicked: {}", reason.downcast_ref::<&str>().unwrap()),
        }
    }
    println!("total {}, table of {}", total.lock().unwrap(), table.read().unwrap().len());
    std::process::exit(panic::catch_unwind(|| panic!("last")).map_or(42, |()| 0));
}
