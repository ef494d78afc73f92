//! A trace with races, its blocks, Spark, and workers that misbehave.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const VERDICT: &str = env!("CARGO_BIN_EXE_verdict");

/// Everything a run needs.
pub struct Setup {
    folder: tempfile::TempDir,
    spark_submit: String,
}

/// How a command ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Setup {
    pub fn new() -> Setup {
        let setup = Setup {
            folder: tempfile::tempdir().unwrap(),
            spark_submit: spark_submit(),
        };
        let options = "--events 60000 --locations 200 --locks 4 --addresses --seed 3";
        let generate = format!("trace generate t.vtrace {options}");
        assert_eq!(setup.verdict(&generate).code, Some(0));
        assert_eq!(
            setup.verdict("-q blocks build t.vtrace t.blocks").code,
            Some(0)
        );
        setup
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn work(&self) -> PathBuf {
        self.path().join("t.blocks.work")
    }

    fn verdict(&self, words: &str) -> Ended {
        let mut command = Command::new(VERDICT);
        command.current_dir(self.path()).args(words.split(' '));
        ended(command.output().unwrap())
    }

    /// What `hb` reports, under the name of `blocks`.
    pub fn local_report(&self) -> String {
        let hb = self.verdict("detect t.vtrace --algorithm hb --format json");
        assert!(hb.stdout.contains(r#""conflict""#), "there are races");
        hb.stdout
            .replacen(r#""algorithm":"hb""#, r#""algorithm":"blocks""#, 1)
    }

    pub fn cluster_run(&self, more: &[&str]) -> Ended {
        let mut command = Command::new(VERDICT);
        command
            .current_dir(self.path())
            .args(["cluster", "run", "t.blocks", "--format", "json"])
            .args(["--workers", "2", "--master", "local-cluster[2,1,1024]"])
            .args(["--spark-submit", &self.spark_submit])
            .args(more);
        ended(command.output().unwrap())
    }

    /// How many tasks there are.
    pub fn tasks(&self) -> usize {
        let tasks = fs::read_to_string(self.work().join("tasks")).unwrap();
        tasks.lines().count()
    }

    /// A program that stands between Spark and `verdict`.
    fn script(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Installs Spark beside the test's binaries, unless that is done: `cargo xtask ci` does it first.
fn spark_submit() -> String {
    let target = Path::new(VERDICT)
        .ancestors()
        .nth(2)
        .expect("target/debug/verdict");
    let prepare = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cluster/spark/prepare");
    let output = Command::new(prepare)
        .arg(target.join("spark"))
        .output()
        .unwrap();
    let Ended {
        code,
        stdout,
        stderr,
    } = ended(output);
    assert_eq!(code, Some(0), "{stderr}");
    stdout.trim().to_owned()
}

/// A worker that fails where the first task is among its tasks.
pub fn refusing_first_task(setup: &Setup) -> String {
    let text = format!(
        r#"#!/bin/sh
tasks=$(cat)
case "$tasks" in *'"number":0,'*) echo 'error: not today' >&2; exit 2;; esac
printf '%s\n' "$tasks" | exec {VERDICT} "$@"
"#
    );
    setup.script("refusing", &text)
}

/// A worker that, the first time, kills the executor it was started by in the middle of its task.
pub struct Killing {
    pub command: String,
    killed: PathBuf,
    finished: PathBuf,
}

pub fn killing_once(setup: &Setup) -> Killing {
    let (killed, finished) = (setup.path().join("killed"), setup.path().join("finished"));
    let text = format!(
        r#"#!/bin/sh
if mkdir {killed} 2>/dev/null; then
    pid=$$
    until [ "$(cat /proc/$pid/comm)" = java ]; do
        pid=$(sed 's/.*) [A-Z] \([0-9]*\) .*/\1/' /proc/$pid/stat)
    done
    echo $pid > {killed}/executor
    kill -KILL $pid
    exit 1
fi
{VERDICT} "$@" > {killed}/output.$$ || exit
wc -l < {killed}/output.$$ >> {finished}
cat {killed}/output.$$
"#,
        killed = killed.display(),
        finished = finished.display()
    );
    Killing {
        command: setup.script("killing", &text),
        killed,
        finished,
    }
}

impl Killing {
    pub fn has_killed(&self) -> bool {
        self.killed.join("executor").exists()
    }

    /// Tasks whose results a worker got ready.
    pub fn tasks_finished(&self) -> usize {
        let counts = fs::read_to_string(&self.finished).unwrap();
        counts
            .lines()
            .map(|count| count.trim().parse::<usize>().unwrap())
            .sum()
    }
}
