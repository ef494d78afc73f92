//! `verdict record`, `verdict replay` and `verdict record info` as one sees them.

use std::fs;
use std::path::PathBuf;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::guest::Guest;
use crate::transcript::{check_in, verdict};

/// Says what it is given on standard input, then something of its own, and ends with code 5.
const ECHO: &str = r#"
#include <stdio.h>
int main(void) {
    char line[64];
    if (fgets(line, sizeof line, stdin)) fputs(line, stdout);
    puts("said");
    return 5;
}
"#;

struct Recorded {
    guest: Guest,
}

impl Recorded {
    fn new(options: &[&str]) -> Self {
        let guest = Guest::c(ECHO);
        fs::write(guest.folder().join("input"), "what was given\n").unwrap();
        let arguments = [&["-q", "record"], options, &["--", "./guest"]].concat();
        let output = verdict(guest.folder(), &arguments)
            .stdin(fs::File::open(guest.folder().join("input")).unwrap())
            .output()
            .unwrap();
        assert_eq!(
            guest.show(&output),
            "--- stdout\nwhat was given\nsaid\n--- exit 5\n"
        );
        fs::remove_file(guest.folder().join("input")).unwrap();
        Self { guest }
    }

    fn file(&self) -> PathBuf {
        self.guest.folder().join("guest.vrec")
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(self.file()).unwrap();
        change(&mut bytes);
        fs::write(self.file(), bytes).unwrap();
    }

    /// What a command says about it, without numbers that depend on the machine.
    fn said(&self, arguments: &[&str]) -> String {
        let arguments = [arguments, &["guest.vrec"]].concat();
        let output = verdict(self.guest.folder(), &arguments).output().unwrap();
        self.guest.show(&output)
    }

    #[track_caller]
    fn check(&self, arguments: &[&str], expected: &Expect) {
        expected.assert_eq(&self.said(arguments));
    }
}

#[test]
fn input_and_output_are_repeated() {
    Recorded::new(&[]).check(
        &["replay"],
        &expect![[r#"
            --- stdout
            what was given
            said
            --- exit 5
        "#]],
    );
}

#[test]
fn what_is_inside() {
    let recorded = Recorded::new(&["--seed", "3", "--quantum", "77"]);
    let output = verdict(
        recorded.guest.folder(),
        &["record", "info", "--format", "json", "guest.vrec"],
    )
    .output()
    .unwrap();
    let info: Value = serde_json::from_slice(&output.stdout).unwrap();
    let replay = recorded.said(&["replay", "--stats"]);
    let instructions: String = replay
        .lines()
        .find_map(|line| line.strip_prefix("instructions"))
        .unwrap()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    assert_eq!(info["instructions"].to_string(), instructions);
    assert_eq!(info["seed"], 3);
    assert_eq!(info["quantum"], 77);
    assert_eq!(info["threads"], 1);
    assert_eq!(info["complete"], true);
    assert_eq!(info["ended"], "the program ended with code 5");
    assert_eq!(info["argv"][0], "./guest");
    assert_eq!(
        info["bytes"].as_u64().unwrap(),
        fs::metadata(recorded.file()).unwrap().len()
    );
    assert!(info["calls"]["read"].as_u64().unwrap() >= 1, "{info}");
    let text = recorded.said(&["record", "info"]);
    assert!(
        text.contains("ended          the program ended with code 5\n"),
        "{text}"
    );
}

#[test]
fn a_changed_program_is_refused_and_named() {
    let recorded = Recorded::new(&[]);
    let program = recorded.guest.folder().join("guest");
    let mut bytes = fs::read(&program).unwrap();
    bytes.push(0);
    fs::write(&program, bytes).unwrap();
    let said = recorded.said(&["replay"]);
    assert!(
        said.starts_with(
            "--- stderr\nerror: the recording cannot be replayed: guest has changed: it was "
        ),
        "{said}"
    );
    assert!(said.ends_with("--- exit 3\n"), "{said}");
    fs::remove_file(&program).unwrap();
    recorded.check(
        &["replay"],
        &expect![[r#"
            --- stderr
            error: the recording cannot be replayed: guest cannot be read: No such file or directory (os error 2)
            help: record again; with --attach-files a recording brings its files along
            --- exit 3
        "#]],
    );
}

#[test]
fn a_missing_or_changed_library_is_refused_and_named() {
    let guest = Guest::c_with_library(
        "void word(void);\nint main(void) { word(); return 5; }\n",
        "#include <stdio.h>\nvoid word(void) { puts(\"word\"); }\n",
    );
    let output = verdict(guest.folder(), &["-q", "record", "--", "./guest"]).output();
    assert_eq!(
        guest.show(&output.unwrap()),
        "--- stdout\nword\n--- exit 5\n"
    );
    let recorded = Recorded { guest };
    let library = recorded.guest.folder().join("libguest.so");
    let mut bytes = fs::read(&library).unwrap();
    bytes.push(0);
    fs::write(&library, bytes).unwrap();
    let said = recorded.said(&["replay"]);
    assert!(
        said.starts_with(
            "--- stderr\nerror: the recording cannot be replayed: libguest.so has changed: it was "
        ),
        "{said}"
    );
    assert!(said.ends_with("--- exit 3\n"), "{said}");
    fs::remove_file(&library).unwrap();
    recorded.check(
        &["replay"],
        &expect![[r#"
            --- stderr
            error: the recording cannot be replayed: libguest.so cannot be read: No such file or directory (os error 2)
            help: record again; with --attach-files a recording brings its files along
            --- exit 3
        "#]],
    );
}

/// The program is gone, and so is the folder it ran in.
#[test]
fn a_recording_with_its_files_needs_no_others() {
    let recorded = Recorded::new(&["--attach-files"]);
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(recorded.file(), elsewhere.path().join("guest.vrec")).unwrap();
    fs::remove_dir_all(recorded.guest.folder()).unwrap();
    check_in(
        elsewhere.path(),
        &["replay", "guest.vrec"],
        &expect![[r#"
            --- stdout
            what was given
            said
            --- exit 5
        "#]],
    );
}

/// Both programs, and what they have mapped, are in the recording under numbers of their own.
#[test]
fn a_program_that_replaced_another_is_attached_too() {
    let guest = Guest::c(ECHO);
    let arguments = ["record", "-q", "--attach-files", "-o", "guest.vrec", "--"];
    let arguments = [&arguments[..], &["/usr/bin/env", "A=1", "./guest"]].concat();
    let output = verdict(guest.folder(), &arguments).output().unwrap();
    assert_eq!(guest.show(&output), "--- stdout\nsaid\n--- exit 5\n");
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(
        guest.folder().join("guest.vrec"),
        elsewhere.path().join("guest.vrec"),
    )
    .unwrap();
    fs::remove_dir_all(guest.folder()).unwrap();
    let info = verdict(
        elsewhere.path(),
        &["record", "info", "--format", "json", "guest.vrec"],
    );
    let info: Value = serde_json::from_slice(&{ info }.output().unwrap().stdout).unwrap();
    let files = info["files"].as_array().unwrap();
    assert!(files.iter().all(|file| file["attached"] == true), "{info}");
    let named = |end: &str| {
        let path = |file: &&Value| file["path"].as_str().unwrap().ends_with(end);
        files.iter().filter(path).count()
    };
    assert_eq!((named("/env"), named("/guest")), (1, 1), "{info}");
    check_in(
        elsewhere.path(),
        &["replay", "guest.vrec"],
        &expect![[r#"
            --- stdout
            said
            --- exit 5
        "#]],
    );
}

#[test]
fn a_damaged_recording_is_refused() {
    let recorded = Recorded::new(&[]);
    recorded.change(|bytes| *bytes.last_mut().unwrap() ^= 1);
    let said = recorded.said(&["replay"]);
    assert!(
        said.starts_with("--- stderr\nerror: guest.vrec is damaged in frame "),
        "{said}"
    );
    assert!(
        said.ends_with("its content has another checksum\n--- exit 2\n"),
        "{said}"
    );
}

#[test]
fn a_cut_recording_replays_as_far_as_it_goes() {
    let recorded = Recorded::new(&[]);
    recorded.change(|bytes| {
        bytes.pop();
    });
    let said = recorded.said(&["replay"]);
    assert!(
        said.contains("--- stderr\nthe recording ends after "),
        "{said}"
    );
    assert!(
        said.ends_with("instructions: its writer was killed or the disk was full\n--- exit 0\n"),
        "{said}"
    );
    let info = recorded.said(&["record", "info"]);
    assert!(
        info.contains("ended          cut at instruction "),
        "{info}"
    );
    let races = recorded.said(&["detect"]);
    assert!(
        races.contains("not covered\n  detect: the recording ends after "),
        "{races}"
    );
}

#[test]
fn files_without_a_recording() {
    let recorded = Recorded::new(&[]);
    recorded.change(Vec::clear);
    recorded.check(
        &["replay"],
        &expect![[r#"
            --- stderr
            error: guest.vrec holds no execution: recording was stopped before the program began
            --- exit 2
        "#]],
    );
    recorded.change(|bytes| bytes.extend_from_slice(b"something else entirely"));
    recorded.check(
        &["record", "info"],
        &expect![[r#"
            --- stderr
            error: guest.vrec is not a recording
            --- exit 2
        "#]],
    );
    fs::remove_file(recorded.file()).unwrap();
    recorded.check(
        &["replay"],
        &expect![[r#"
            --- stderr
            error: guest.vrec: cannot be read: No such file or directory (os error 2)
            --- exit 2
        "#]],
    );
}

#[test]
fn a_replay_stops_where_it_is_told_to() {
    let recorded = Recorded::new(&[]);
    recorded.check(
        &["replay", "--until", "0:12,345", "--show-schedule"],
        &expect![[r#"
            --- stderr
                   instruction  thread             its own
                             0       0                   0
            stopped after 12,345 instructions
            --- exit 0
        "#]],
    );
}

#[test]
fn there_is_nothing_to_explore_without_a_choice() {
    let recorded = Recorded::new(&[]);
    recorded.check(
        &["explore"],
        &expect![[r#"
            --- stderr
            error: guest.vrec: the recorded program never has a second thread, so there is only one schedule
            help: `verdict replay --show-schedule` says which thread ran when
            --- exit 2
        "#]],
    );
    let all_alike = recorded.said(&["-q", "explore", "--from", "0:1000", "--runs", "2"]);
    expect![[r#"
        --- stdout
        guest.vrec: 2 executions from instruction 1,000 on, each with a random schedule of its own
                2  ended with code 5, output "said", for example with seed 0
        Input after that moment: what the recording has, in order, then the end of file; 0 of the executions asked for input that is not there.
        --- exit 0
    "#]]
    .assert_eq(&all_alike);
    recorded.change(|bytes| *bytes.last_mut().unwrap() ^= 1);
    let said = recorded.said(&["explore"]);
    assert!(
        said.ends_with("its content has another checksum\n--- exit 2\n"),
        "{said}"
    );
}

#[test]
fn a_program_that_cannot_be_run_leaves_older_recordings_alone() {
    let recorded = Recorded::new(&[]);
    let before = fs::read(recorded.file()).unwrap();
    for name in ["guest.vrec", "new.vrec"] {
        let output = verdict(
            recorded.guest.folder(),
            &["record", "-o", name, "--", "./nobody"],
        )
        .output()
        .unwrap();
        assert_eq!(output.status.code(), Some(3));
    }
    assert_eq!(fs::read(recorded.file()).unwrap(), before);
    assert!(!recorded.guest.folder().join("new.vrec").exists());
}

#[test]
fn where_no_recording_can_be_is_told() {
    let recorded = Recorded::new(&[]);
    let said = ["missing/folder.vrec", "/dev/full"].map(|name| {
        let arguments = ["record", "-o", name, "--", "./guest"];
        let output = verdict(recorded.guest.folder(), &arguments).output();
        recorded.guest.show(&output.unwrap())
    });
    expect![[r#"
        --- stderr
        error: missing/folder.vrec: cannot be written: No such file or directory (os error 2)
        --- exit 2
        --- stderr
        error: /dev/full: cannot hold a recording: not a file
        help: name a file with -o
        --- exit 2
    "#]]
    .assert_eq(&said.concat());
}
