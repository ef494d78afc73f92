// Rust Mutex and Condvar, also poisoned by a panic that is caught.
//
//~ verdict: race-free
//~ topic: Rust, Rust mutex and condvar, exception
//~ source: safe Rust without unsafe code has no data race
use std::panic;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let shared = Arc::new((Mutex::new(vec![10, 20, 30]), Condvar::new()));
    let theirs = Arc::clone(&shared);
    let waiter = thread::spawn(move || {
        let (items, changed) = &*theirs;
        let mut items = items.lock().unwrap();
        while items.len() < 4 {
            items = changed.wait(items).unwrap();
        }
        items.iter().sum::<i32>()
    });
    shared.0.lock().unwrap().push(40);
    shared.1.notify_all();
    let sum = waiter.join().unwrap();

    let theirs = Arc::clone(&shared);
    let index = shared.0.lock().unwrap().len();
    let panicked = thread::spawn(move || theirs.0.lock().unwrap()[index]).join().is_err();
    println!("sum {sum}, panicked {panicked}, poisoned {}", shared.0.is_poisoned());
}
