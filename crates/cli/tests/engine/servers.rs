//! A server under the engine, its clients outside: live, and recorded and replayed without them.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::recorded::record_with;
use crate::run::{Ending, Program, ending, wait};
use crate::tools::{build, text, tool};

const CLIENTS: usize = 8;
const REQUESTS: usize = 60;

/// How many rounds of requests each client makes of a server that is recorded; `cargo xtask soak replay` raises it.
fn recorded_requests() -> usize {
    let wanted = std::env::var("VERDICT_REPLAY_REQUESTS");
    wanted.map_or(REQUESTS, |count| count.parse().expect("a number"))
}

/// What all clients were told, by client.
fn serve(mut command: Command, folder: &Path, requests: usize) -> (Vec<String>, Ending) {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let port = port(&folder.join("port"));
    let answers = clients(|id| client(id, port, requests));
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = wait(&mut server, &command);
    (answers, ending(status))
}

/// What each of the clients was told.
fn clients(client: impl Fn(usize) -> String + Sync) -> Vec<String> {
    let client = &client;
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|id| scope.spawn(move || client(id)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    })
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
fn client(id: usize, port: u16, requests: usize) -> String {
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
    for n in 0..requests {
        let value = format!("value-{id}-{n}-").repeat(1 + n % REQUESTS * 7);
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

fn memcached() -> Program {
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
    Program::new(&argv).env("MEMCACHED_PORT_FILENAME", "port")
}

#[test]
fn serves_eight_native_clients() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("folder");
    let program = memcached();
    program.prepare(&folder);
    let native = serve(program.native(&folder), &folder, REQUESTS);
    program.prepare(&folder);
    let engine = serve(program.under_engine(&folder), &folder, REQUESTS);
    assert_eq!(native, engine);
}

#[test]
fn replay_of_memcached() {
    let recorded = record_with(&memcached(), |command, folder| {
        let (_, ending) = serve(command, folder, recorded_requests());
        (ending, Vec::new(), Vec::new())
    });
    recorded.replays_the_same("memcached");
}

/// The words that each client sends are all that its answers depend on, but for those that all of them send.
#[test]
fn replay_of_a_rust_server() {
    let program = build("server.rs", &["rustc", "-O", "--edition=2024"]);
    let recorded = record_with(&Program::new(&[text(&program)]), |mut command, folder| {
        command.stdin(Stdio::null());
        let mut server = command.spawn().unwrap();
        let port = port(&folder.join("port"));
        let told = clients(|id| count_words(id, port, recorded_requests()));
        assert_eq!(told.len(), CLIENTS);
        ask_all(port, &["stop"]);
        // It notices with the next client.
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let mut stdout = Vec::new();
        let mut output = server.stdout.take().unwrap();
        output.read_to_end(&mut stdout).unwrap();
        let status = wait(&mut server, &command);
        (ending(status), stdout, Vec::new())
    });
    let said = String::from_utf8_lossy(&recorded.execution.stdout).into_owned();
    assert!(said.contains(" lines"), "{said}");
    recorded.replays_the_same("a Rust server");
}

fn count_words(id: usize, port: u16, requests: usize) -> String {
    let own: Vec<String> = (0..requests).map(|n| format!("word-{id}-{n}")).collect();
    let mut words: Vec<&str> = own.iter().map(String::as_str).collect();
    words.push("everybody's");
    let answers = ask_all(port, &words);
    for word in own {
        assert!(answers.contains(&format!("{word} 1\n")), "{word}");
    }
    answers
}

/// A line for a line.
fn ask_all(port: u16, lines: &[&str]) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut answers = String::new();
    for line in lines {
        writeln!(stream, "{line}").unwrap();
        reader.read_line(&mut answers).unwrap();
    }
    answers
}

/// From a recording of a server, its clients come again, and so does the signal that ended it.
#[test]
fn exploring_memcached() {
    let recorded = record_with(&memcached(), |command, folder| {
        let (_, ending) = serve(command, folder, 3);
        (ending, Vec::new(), Vec::new())
    });
    let output = Command::new(env!("CARGO_BIN_EXE_verdict"))
        .args(["explore", "--runs", "3", "--format", "json"])
        .arg(recorded.file())
        .output()
        .unwrap();
    let explored: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    for execution in explored["executions"].as_array().unwrap() {
        assert_eq!(execution["ending"]["kind"], "exited", "{explored:#}");
        // All requests of all clients were answered, which takes instructions.
        let (made, least) = (
            execution["instructions"].as_u64().unwrap(),
            recorded.execution.stats["instructions"].as_u64().unwrap() / 2,
        );
        assert!(made > least, "{made} instructions, recorded {least} twice");
    }
}
