//! `cargo xtask bench record`: what recording and replaying cost, as ratios of processor time to native, and how large
//! recordings are. Native, `exec`, record and replay take turns, and each ratio is of medians. What record and replay take
//! above `exec` is theirs; the rest is the engine's.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::engine::{self, Subject};
use crate::process::{cargo, run as run_shown, workspace_root};

const CLIENTS: usize = 8;
/// Of each client; each round is a `set` and a `get`. So many that starting up, a thirtieth of a second, does not count.
const ROUNDS: usize = 20_000;

/// How to measure.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Runs of each program in each way; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only programs whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

/// The tools and places of a measurement.
struct Bench {
    verdict: PathBuf,
    folder: PathBuf,
    runs: u32,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    run_shown(cargo().args(["build", "--release", "-p", "verdict-cli"]))?;
    let root = workspace_root();
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let bench = Bench {
        verdict: target.join("release/verdict"),
        folder: target.join("bench-record"),
        runs: args.runs,
    };
    fs::create_dir_all(&bench.folder)
        .map_err(|error| format!("{}: {error}", bench.folder.display()))?;
    println!(
        "\nprocessor time as a ratio to native, median of {} runs each",
        args.runs
    );
    println!(
        "{:<12}{:>10}{:>10}{:>10}{:>10}{:>14}{:>18}",
        "program", "native s", "exec", "record", "replay", "bytes", "bits/instruction"
    );
    let wanted = |name: &str| name.contains(&args.only);
    for subject in engine::subjects(&root, &bench.folder)? {
        if wanted(&subject.name) {
            bench.measure(&subject)?;
        }
    }
    if wanted("memcached") {
        bench.measure_memcached()?;
    }
    Ok(())
}

impl Bench {
    fn recording(&self) -> PathBuf {
        self.folder.join("bench.vrec")
    }

    fn exec(&self) -> Command {
        let mut command = Command::new(&self.verdict);
        command.arg("exec").arg("--");
        command
    }

    fn record(&self) -> Command {
        let mut command = Command::new(&self.verdict);
        command.arg("record").arg("-o").arg(self.recording());
        command.arg("--");
        command
    }

    fn replay(&self) -> Command {
        let mut command = Command::new(&self.verdict);
        command.arg("replay").arg(self.recording());
        command
    }

    fn measure(&self, subject: &Subject) -> Result<(), String> {
        let mut times = [const { Vec::new() }; 4];
        for _ in 0..self.runs {
            let mut native = Command::new(&subject.argv[0]);
            native.args(&subject.argv[1..]);
            let (mut exec, mut record) = (self.exec(), self.record());
            exec.args(&subject.argv);
            record.args(&subject.argv);
            let ways = [native, exec, record, self.replay()];
            for (times, mut way) in times.iter_mut().zip(ways) {
                times.push(engine::cpu_seconds(&mut way)?);
            }
        }
        self.print(&subject.name, times)
    }

    fn measure_memcached(&self) -> Result<(), String> {
        let mut times = [const { Vec::new() }; 4];
        for _ in 0..self.runs {
            let native = Command::new("memcached");
            let (mut exec, mut record) = (self.exec(), self.record());
            exec.arg("memcached");
            record.arg("memcached");
            times[0].push(self.serve(native)?);
            times[1].push(self.serve(exec)?);
            times[2].push(self.serve(record)?);
            times[3].push(engine::cpu_seconds(&mut self.replay())?);
        }
        self.print("memcached", times)
    }

    /// Processor time of a server that eight clients ask.
    fn serve(&self, mut command: Command) -> Result<f64, String> {
        let file = self.folder.join("port");
        fs::remove_file(&file).ok();
        let before = engine::children_seconds()?;
        command
            .args(["-t", "4", "-l", "127.0.0.1", "-p", "-1", "-U", "0"])
            .args(["-u", "root"])
            .env("MEMCACHED_PORT_FILENAME", &file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let failed = |error: std::io::Error| format!("memcached: {error}");
        let mut server = command.spawn().map_err(failed)?;
        let port = port(&file)?;
        let asked: Result<Vec<()>, String> = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|id| scope.spawn(move || ask(id, port).map_err(failed)))
                .collect();
            let joined = clients
                .into_iter()
                .map(|client| client.join().expect("a client does not panic"));
            joined.collect()
        });
        engine::finish(Command::new("kill").args(["-TERM", &server.id().to_string()]))?;
        server.wait().map_err(failed)?;
        asked?;
        Ok(engine::children_seconds()? - before)
    }

    fn print(&self, name: &str, times: [Vec<f64>; 4]) -> Result<(), String> {
        let [native, exec, record, replay] = times.map(engine::median);
        let info = self.info()?;
        println!(
            "{name:<12}{native:>10.2}{:>10.2}{:>10.2}{:>10.2}{:>14}{:>18.5}",
            exec / native,
            record / native,
            replay / native,
            info["bytes"].to_string(),
            info["bits_per_instruction"].as_f64().unwrap_or(f64::NAN)
        );
        Ok(())
    }

    fn info(&self) -> Result<serde_json::Value, String> {
        let output = Command::new(&self.verdict)
            .args(["record", "info", "--format", "json"])
            .arg(self.recording())
            .output()
            .map_err(|error| format!("verdict record info: {error}"))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("verdict record info: {error}"))
    }
}

/// Where the server listens, once it says so.
fn port(file: &Path) -> Result<u16, String> {
    const LOOKS_MAX: u32 = 10_000;
    for _ in 0..LOOKS_MAX {
        let text = fs::read_to_string(file).unwrap_or_default();
        let mut lines = text.lines();
        let port = lines.find_map(|line| line.strip_prefix("TCP INET: "));
        if let Some(port) = port.and_then(|port| port.trim().parse().ok()) {
            return Ok(port);
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err("memcached does not listen".to_owned())
}

/// One client: a `set` and a `get`, again and again.
fn ask(id: usize, port: u16) -> std::io::Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut answer = String::new();
    for round in 0..ROUNDS {
        let value = format!("{id}-{round}-").repeat(20);
        let request = format!(
            "set k{id}-{} 0 0 {}\r\n{value}\r\nget k{id}-{}\r\n",
            round % 100,
            value.len(),
            round % 100
        );
        stream.write_all(request.as_bytes())?;
        // STORED, VALUE, the value, END.
        for _ in 0..4 {
            answer.clear();
            reader.read_line(&mut answer)?;
        }
    }
    Ok(())
}
