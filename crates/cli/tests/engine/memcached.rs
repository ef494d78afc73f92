//! A server under the engine, its clients outside.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::{Ending, Program, ending, wait};
use crate::tools::tool;

const CLIENTS: usize = 8;
const REQUESTS: usize = 60;

/// What all clients were told, by client.
fn serve(mut command: Command, folder: &Path) -> (Vec<String>, Ending) {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let port = port(&folder.join("port"));
    let answers = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|id| scope.spawn(move || client(id, port)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = wait(&mut server, &command);
    (answers, ending(status))
}

/// The server says where it listens once it does.
fn port(file: &Path) -> u16 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        let listening = text
            .lines()
            .find_map(|line| line.strip_prefix("TCP INET: "));
        if let Some(port) = listening {
            return port.trim().parse().unwrap();
        }
        assert!(
            Instant::now() < deadline,
            "the server does not listen: {text}"
        );
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Stores, reads, counts and deletes keys of its own; returns all that the server answered.
fn client(id: usize, port: u16) -> String {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    let mut answers = String::new();
    let mut ask = |request: String, lines: usize| {
        writer.write_all(request.as_bytes()).unwrap();
        for _ in 0..lines {
            reader.read_line(&mut answers).unwrap();
        }
    };
    for n in 0..REQUESTS {
        let value = format!("value-{id}-{n}-").repeat(1 + n * 7);
        ask(
            format!("set k{id}-{n} {n} 0 {}\r\n{value}\r\n", value.len()),
            1,
        );
        ask(format!("get k{id}-{n}\r\n"), 3);
        ask(format!("set c{id} 0 0 2\r\n10\r\nincr c{id} {n}\r\n"), 2);
        ask(format!("delete k{id}-{}\r\n", n / 2), 1);
        ask(format!("get k{id}-missing\r\n"), 1);
    }
    ask("no such command\r\n".into(), 1);
    ask("quit\r\n".into(), 0);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    write!(answers, "{} bytes after quit", rest.len()).unwrap();
    answers
}

#[test]
fn serves_eight_native_clients() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("folder");
    let memcached = tool("memcached", "memcached");
    let mut argv = vec![
        memcached.as_str(),
        "-t",
        "4",
        "-l",
        "127.0.0.1",
        "-p",
        "-1",
        "-U",
        "0",
    ];
    if rustix::process::getuid().is_root() {
        argv.extend(["-u", "root"]);
    }
    let program = Program::new(&argv).env("MEMCACHED_PORT_FILENAME", "port");
    program.prepare(&folder);
    let native = serve(program.native(&folder), &folder);
    program.prepare(&folder);
    let engine = serve(program.under_engine(&folder), &folder);
    assert_eq!(native, engine);
}
