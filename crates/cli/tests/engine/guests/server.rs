//! A server with a thread for each client: counts words in a table that all of them share. Writes its port into the
//! file `port`, and ends when a client says so.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

fn serve(stream: TcpStream, counts: &Mutex<HashMap<String, u64>>, stop: &AtomicBool) {
    let mut writer = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if line == "stop" {
            stop.store(true, Ordering::SeqCst);
        }
        let count = {
            let mut counts = counts.lock().unwrap();
            let count = counts.entry(line.clone()).or_default();
            *count += 1;
            *count
        };
        writeln!(writer, "{line} {count}").unwrap();
    }
}

fn main() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::fs::write("port.new", format!("TCP INET: {port}\n")).unwrap();
    std::fs::rename("port.new", "port").unwrap();
    let counts = Arc::new(Mutex::new(HashMap::new()));
    let stop = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let (stream, _) = listener.accept().unwrap();
        let (counts, stop) = (Arc::clone(&counts), Arc::clone(&stop));
        threads.push(thread::spawn(move || serve(stream, &counts, &stop)));
    }
    for thread in threads {
        thread.join().unwrap();
    }
    let counts = counts.lock().unwrap();
    println!("{} words, {} lines", counts.len(), counts.values().sum::<u64>());
}
