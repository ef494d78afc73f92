//! Recordings that were not finished: the controller or the executor was killed, or the disk was full. Whatever is left
//! behind opens, says that it is cut, and replays up to its last whole frame.
//!
//! `VERDICT_FAULTS` says at how many moments; `cargo xtask soak faults` raises it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::input::words;
use crate::run::Program;
use crate::tools::{build_c, text, tool};

const MOMENTS_DEFAULT: u64 = 6;
const PAGE: u64 = 4096;

fn moments() -> u64 {
    let wanted = std::env::var("VERDICT_FAULTS");
    wanted.map_or(MOMENTS_DEFAULT, |count| count.parse().expect("a number"))
}

/// Numbers that look random and are the same in every run.
fn scattered(index: u64) -> u64 {
    let mixed = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
}

/// A program whose recording grows all the time, in a folder of its own.
struct Scene {
    folder: TempDir,
    program: Program,
    /// What it prints when nobody stops it.
    stdout: Vec<u8>,
    /// How long that takes.
    duration: Duration,
    /// The size of the whole recording.
    size: u64,
}

impl Scene {
    fn new() -> Self {
        let program = Program::new(&[&text(&build_c("chatter.c")), "text", "4000"]);
        let program = program.file("text", words(2000));
        let folder = tempfile::tempdir().unwrap();
        program.prepare(&folder.path().join("folder"));
        let mut scene = Self {
            folder,
            program,
            stdout: Vec::new(),
            duration: Duration::ZERO,
            size: 0,
        };
        let started = Instant::now();
        let output = scene.command().output().unwrap();
        scene.duration = started.elapsed();
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        scene.stdout = output.stdout;
        scene.size = fs::metadata(scene.recording()).unwrap().len();
        scene
    }

    fn recording(&self) -> PathBuf {
        self.folder.path().join("cut.vrec")
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("folder")
    }

    /// `verdict record` of the program, with nothing recorded yet.
    fn command(&self) -> Command {
        self.command_into(&self.recording())
    }

    fn command_into(&self, recording: &Path) -> Command {
        fs::remove_file(self.recording()).ok();
        let options = ["-q", "-o", &text(recording)];
        let program = self.program.clone().options(&options);
        program.recorded(&self.place())
    }

    fn verdict(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_verdict"))
            .args(arguments)
            .arg(self.recording())
            .env_clear()
            .current_dir(self.place())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// What is left behind must be good as far as it goes. True if anything was recorded at all.
    #[track_caller]
    fn check(&self, what: &str) -> bool {
        if !self.recording().exists() {
            return false;
        }
        let info = self.verdict(&["record", "info", "--format", "json"]);
        let said = String::from_utf8_lossy(&info.stderr).into_owned();
        if said.contains("holds no execution") {
            return false;
        }
        assert!(info.status.success(), "{what}: {said}");
        let info: Value = serde_json::from_slice(&info.stdout).unwrap();
        let replay = self.verdict(&["replay"]);
        let said = String::from_utf8_lossy(&replay.stderr).into_owned();
        assert!(
            self.stdout.starts_with(&replay.stdout),
            "{what}: another output\n{said}"
        );
        if info["complete"] == true {
            assert_eq!(replay.status.code(), Some(7), "{what}: {said}");
            assert_eq!(replay.stdout.len(), self.stdout.len(), "{what}");
            return true;
        }
        assert_eq!(replay.status.code(), Some(0), "{what}: {said}");
        let instructions = info["instructions"].as_u64().unwrap();
        let expected = format!(
            "the recording ends after {} instructions: its writer was killed or the disk was full\n",
            grouped(instructions)
        );
        assert_eq!(said, expected, "{what}");
        true
    }
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap())
        .collect();
    groups.join(",")
}

/// The executor that a controller has started; `None` before there is one.
pub fn executor_of(controller: &Child) -> Option<Pid> {
    let pid = controller.id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
}

/// Waits until nobody can write any more: both processes hold the other end of this pipe.
fn wait_for_all(mut controller: Child) {
    let mut output = controller.stdout.take().unwrap();
    let (ended, wait) = mpsc::channel();
    thread::spawn(move || {
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).ok();
        ended.send(()).ok();
    });
    let limit = Duration::from_secs(60);
    wait.recv_timeout(limit).expect("the executor ends, too");
    controller.wait().unwrap();
}

fn kill_at(scene: &Scene, index: u64) -> bool {
    // A little beyond the end as well, and before the beginning.
    let longest = scene.duration.as_micros() as u64 * 11 / 10;
    let moment = Duration::from_micros(scattered(index) % longest.max(1));
    let mut command = scene.command();
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let controller = command.spawn().unwrap();
    let deadline = Instant::now() + moment;
    while let Some(left) = deadline.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
    let victim = match index % 2 {
        0 => Some(Pid::from_child(&controller)),
        _ => executor_of(&controller),
    };
    if let Some(victim) = victim {
        kill_process(victim, Signal::KILL).ok();
    }
    wait_for_all(controller);
    scene.check(&format!("killed after {moment:?} (moment {index})"))
}

#[test]
fn killed_at_any_moment() {
    let scene = Scene::new();
    let recorded = (0..moments())
        .filter(|&index| kill_at(&scene, index))
        .count();
    println!(
        "{} moments in {:?}: {recorded} left a recording, each of which replays",
        moments(),
        scene.duration
    );
    assert!(recorded > 0, "every recording was killed before it began");
}

/// Records onto a disk of its own that has so much room, and takes what is on it when the recording has ended.
const ON_A_SMALL_DISK: &str = "mount -t tmpfs -o size=$1 none \"$2\" || exit 99
    from=$2/cut.vrec to=$3; shift 3
    \"$@\"; code=$?
    test ! -e \"$from\" || cp \"$from\" \"$to\"
    exit $code";

fn fill_disk_at(scene: &Scene, size: u64) -> bool {
    let unshare = tool("unshare", "util-linux");
    let disk = scene.folder.path().join("disk");
    fs::create_dir_all(&disk).unwrap();
    let command = scene.command_into(&disk.join("cut.vrec"));
    let mut limited = Command::new(unshare);
    limited
        .args(["--map-root-user", "--mount", "/bin/sh", "-c"])
        .args([ON_A_SMALL_DISK, "sh", &size.to_string()])
        .args([&disk, &scene.recording()])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(scene.place())
        .stdin(Stdio::null());
    let output = limited.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{size} bytes: {said}");
    assert!(said.contains("the disk is full"), "{size} bytes: {said}");
    scene.check(&format!("a disk of {size} bytes"))
}

#[test]
fn disk_full_at_any_size() {
    let scene = Scene::new();
    let sizes = moments().div_ceil(4).max(3);
    // Disks have whole pages; the largest has room for all but the last.
    let pages = scene.size / PAGE;
    let recorded = (0..sizes)
        .filter(|&index| fill_disk_at(&scene, PAGE * (1 + scattered(index) % pages)))
        .count();
    println!(
        "{sizes} sizes up to {} bytes: {recorded} left a recording, each of which replays",
        scene.size
    );
    assert!(recorded > 0, "no recording had room to begin");
}

#[test]
fn limited_in_size() {
    let scene = Scene::new();
    let max_size = scene.size / 2;
    let mut scene = scene;
    let limit = ["--max-size", &max_size.to_string()];
    scene.program = scene.program.options(&limit);
    let mut command = scene.command();
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(7), "the program goes on");
    assert_eq!(output.stdout, scene.stdout);
    let size = fs::metadata(scene.recording()).unwrap().len();
    assert!(size <= max_size, "{size} of {max_size}");
    assert!(size > max_size * 9 / 10, "{size} of {max_size}");
    let replay = scene.verdict(&["replay"]);
    let said = String::from_utf8_lossy(&replay.stderr).into_owned();
    assert_eq!(replay.status.code(), Some(0), "{said}");
    assert!(scene.stdout.starts_with(&replay.stdout), "{said}");
    assert!(!replay.stdout.is_empty());
    assert!(
        said.ends_with(&format!("--max-size {max_size} was reached\n")),
        "{said}"
    );
}
