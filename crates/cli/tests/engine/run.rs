//! One run of a program, natively or under the engine, and what can be seen of it from outside.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Far above what any program needs, even on a loaded machine.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Name and arguments.
    pub argv: Vec<String>,
    /// What it reads from standard input.
    pub stdin: Vec<u8>,
    /// Files in its folder before it starts.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// Variables, besides `PATH` and `HOME`.
    pub env: Vec<(&'static str, String)>,
    /// Options of `verdict exec` or `verdict record`.
    pub options: Vec<String>,
}

impl Program {
    pub fn new<S: AsRef<str>>(argv: &[S]) -> Program {
        Program {
            argv: argv.iter().map(|word| word.as_ref().to_owned()).collect(),
            ..Program::default()
        }
    }

    pub fn file(mut self, name: &'static str, bytes: impl Into<Vec<u8>>) -> Program {
        self.files.push((name, bytes.into()));
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Program {
        self.stdin = bytes.into();
        self
    }

    pub fn env(mut self, name: &'static str, value: impl Into<String>) -> Program {
        self.env.push((name, value.into()));
        self
    }

    /// Adds options of `verdict exec`.
    pub fn options(mut self, options: &[&str]) -> Program {
        self.options
            .extend(options.iter().map(|&option| option.to_owned()));
        self
    }

    /// As a command in `folder`, natively.
    pub fn native(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]);
        self.surroundings(&mut command, folder);
        command
    }

    /// As a command in `folder`, under the engine.
    pub fn under_engine(&self, folder: &Path) -> Command {
        self.by_verdict("exec", folder)
    }

    /// As a command in `folder`, recorded.
    pub fn recorded(&self, folder: &Path) -> Command {
        self.by_verdict("record", folder)
    }

    fn by_verdict(&self, subcommand: &str, folder: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verdict"));
        command
            .arg(subcommand)
            .args(&self.options)
            .arg("--")
            .args(&self.argv);
        self.surroundings(&mut command, folder);
        command
    }

    fn surroundings(&self, command: &mut Command, folder: &Path) {
        command.current_dir(folder).env_clear().env("LC_ALL", "C");
        for name in ["PATH", "HOME"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    /// Empties the folder and writes the files.
    pub fn prepare(&self, folder: &Path) {
        fs::remove_dir_all(folder).ok();
        fs::create_dir_all(folder).unwrap();
        for (name, bytes) in &self.files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut file = fs::File::create(&path).unwrap();
            file.write_all(bytes).unwrap();
            // Old, so that `ls` shows the year whatever the clock says.
            let year_2001 = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            file.set_modified(year_2001).unwrap();
        }
    }

    /// Runs it both ways in a folder of the same name and demands that nothing differs.
    #[track_caller]
    pub fn compare(&self) -> Seen {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("folder");
        self.prepare(&folder);
        let native = observe(self.native(&folder), &self.stdin, &folder);
        self.prepare(&folder);
        let engine = observe(self.under_engine(&folder), &self.stdin, &folder);
        native
            .as_engine_shows_it(&engine)
            .expect_same(&engine, &self.argv);
        native
    }
}

/// All that can be seen of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub ending: Ending,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Files with their permissions.
    pub files: BTreeMap<PathBuf, (u32, Vec<u8>)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    Exit(i32),
    Signal(i32),
}

impl Seen {
    /// `verdict exec` ends with 128+N where signal N ended the program, and says so.
    fn as_engine_shows_it(&self, engine: &Seen) -> Seen {
        let Ending::Signal(number) = self.ending else {
            return self.clone();
        };
        let said = engine
            .stderr
            .strip_prefix(self.stderr.as_slice())
            .unwrap_or_default();
        assert!(
            said.starts_with(b"error: the program "),
            "the engine said: {}",
            String::from_utf8_lossy(&engine.stderr)
        );
        Seen {
            ending: Ending::Exit(128 + number),
            stderr: engine.stderr.clone(),
            ..self.clone()
        }
    }

    #[track_caller]
    fn expect_same(&self, engine: &Seen, argv: &[String]) {
        let argv = argv.join(" ");
        for (name, native, engine) in [
            ("standard error", &self.stderr, &engine.stderr),
            ("standard output", &self.stdout, &engine.stdout),
        ] {
            assert!(
                native == engine,
                "{argv}: {name} differs\n--- native\n{}\n--- engine\n{}",
                clipped(native),
                clipped(engine)
            );
        }
        assert_eq!(self.ending, engine.ending, "{argv}: native, then engine");
        let names = |seen: &Seen| seen.files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(self), names(engine), "{argv}: files");
        for (name, content) in &self.files {
            assert!(
                content == &engine.files[name],
                "{argv}: {} differs: {} bytes natively, {} under the engine",
                name.display(),
                content.1.len(),
                engine.files[name].1.len()
            );
        }
    }
}

/// Enough to see what is wrong.
fn clipped(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 4000;
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_MAX)]).into_owned()
}

/// Runs a command to its end.
pub fn observe(mut command: Command, stdin: &[u8], folder: &Path) -> Seen {
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let mut pipe = child.stdin.take().expect("stdin is piped");
    let input = stdin.to_vec();
    // A program that ends before it has read everything is no error.
    let feeder = thread::spawn(move || pipe.write_all(&input).ok());
    let status = wait(&mut child, &command);
    feeder.join().expect("the feeder does not panic");
    Seen {
        ending: ending(status),
        stdout: stdout.join().expect("the reader does not panic"),
        stderr: stderr.join().expect("the reader does not panic"),
        files: files_below(folder),
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("output is piped");
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}

/// Waits for a child; ends it, and the test, when that takes too long.
pub fn wait(child: &mut Child, command: &Command) -> ExitStatus {
    let pid = rustix::process::Pid::from_child(child);
    let (done, watched) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let late = watched.recv_timeout(TIME_LIMIT) == Err(RecvTimeoutError::Timeout);
        if late {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
        late
    });
    let status = child.wait().expect("a child can be waited for");
    drop(done);
    let late = watchdog.join().expect("the watchdog does not panic");
    assert!(!late, "{command:?} did not end in time");
    status
}

pub fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exit(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => unreachable!("a process ends by exit or by signal"),
    }
}

pub fn files_below(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                let content = fs::read(&path).unwrap();
                files.insert(name, (metadata.permissions().mode(), content));
            }
        }
    }
    files
}
