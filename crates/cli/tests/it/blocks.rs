//! Block traces: what is printed of them, and what happens when files are not what they were.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use expect_test::expect;

use crate::transcript::{check_in, transcript, verdict};

const QUEUE: &str = "\
T0|fork(T1)|1
T1|begin|2
T1|acq(L1)|3
T1|w(V1)|4
T1|rel(L1)|5
T0|r(V1)|6
T0|w(V2)|6
T1|end|7
T0|join(T1)|8
";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("queue.std"), QUEUE).unwrap();
    run(folder.path(), "-q blocks build queue.std queue.blocks");
    folder
}

/// Two files of threads, several frames, some races.
fn larger() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let options = "--events 40000 --locations 200 --locks 4 --seed 3";
    run(folder.path(), &format!("trace generate t.vtrace {options}"));
    run(folder.path(), "-q blocks build t.vtrace t.blocks");
    folder
}

fn run(folder: &Path, words: &str) -> String {
    let arguments: Vec<&str> = words.split(' ').collect();
    let output = verdict(folder, &arguments).output().unwrap();
    transcript(&output)
}

#[test]
fn what_is_in_a_block_trace() {
    check_in(
        folder().path(),
        &["blocks", "info", "queue.blocks"],
        &expect![[r#"
            --- stdout
            events                            9
            threads                           2
            segments                          6
            locations                         2
            blocks                            2
            entries                           3
            places                            2
            units that can race               1
            entries that can race             2

            thread                       blocks      entries        bytes
            T0                                1            2           32
            T1                                1            1           30
            --- exit 0
        "#]],
    );
    check_in(
        folder().path(),
        &["blocks", "info", "queue.blocks", "--format", "json"],
        &expect![[r#"
            --- stdout
            {"blocks":2,"entries":3,"places":2,"racing_entries":2,"racing_units":1,"schema":"verdict.blocks/1","threads":[{"blocks":1,"bytes":32,"entries":2,"thread":"T0"},{"blocks":1,"bytes":30,"entries":1,"thread":"T1"}],"trace":{"events":9,"locations":2,"segments":6,"threads":2}}
            --- exit 0
        "#]],
    );
}

#[test]
fn races_are_told_as_hb_tells_them() {
    let folder = folder();
    check_in(
        folder.path(),
        &["detect", "queue.blocks", "--algorithm", "blocks"],
        &expect![[r#"
            --- stdout
            1 race in 1 of 2 locations

            V1: 1 race, 1 instance
              flow    write 4  read 6  once  events 3, 5

            blocks: 9 events, 2 threads, 2 locations, 6 segments
            --- exit 1
        "#]],
    );
    let json = |algorithm: &str, trace: &str| {
        let words = format!("detect {trace} --algorithm {algorithm} --per-thread --format json");
        run(folder.path(), &words).replace(algorithm, "NAME")
    };
    let wanted = json("hb", "queue.std");
    assert_eq!(json("blocks", "queue.std"), wanted, "from the trace");
    assert_eq!(json("blocks", "queue.blocks"), wanted, "from its blocks");
}

#[test]
fn wrong_use_is_one_sentence() {
    let folder = folder();
    for (words, wanted) in [
        (
            "blocks build queue.std queue.blocks",
            expect![[r#"
            --- stderr
            error: queue.blocks: cannot be written: entity already exists
            help: remove it, or choose another name
            --- exit 2
        "#]],
        ),
        (
            "detect queue.blocks",
            expect![[r#"
            --- stderr
            error: queue.blocks: is a block trace
            help: use `--algorithm blocks`
            --- exit 2
        "#]],
        ),
        (
            "detect queue.std --workers 2",
            expect![[r#"
            --- stderr
            error: --workers is for `--algorithm blocks` only
            --- exit 2
        "#]],
        ),
        (
            "detect queue.blocks --algorithm blocks --threads T0,T7",
            expect![[r#"
                --- stderr
                error: the trace has no thread `T7`
                --- exit 2
            "#]],
        ),
        (
            "detect queue.blocks --algorithm blocks --max-memory 1M",
            expect![[r#"
                --- stderr
                error: at least 17 MB of memory are needed, 1 MB are allowed
                help: `--max-memory` allows more
                --- exit 2
            "#]],
        ),
        (
            "detect queue.blocks --algorithm blocks --max-memory much",
            expect![[r#"
                --- stderr
                error: invalid value 'much' for '--max-memory <SIZE>': expected a number of bytes, or one with K, M or G

                For more information, try '--help'.
                --- exit 2
            "#]],
        ),
        (
            "detect . --algorithm blocks",
            expect![[r#"
            --- stderr
            error: .: is a folder without a block trace
            help: `verdict blocks build` makes one
            --- exit 2
        "#]],
        ),
        (
            "cluster run queue.blocks --master local --spark-submit ./missing",
            expect![[r#"
                --- stderr
                error: ./missing: cannot be run: No such file or directory (os error 2)
                help: `cluster/spark/prepare FOLDER` installs Spark; `--spark-submit` says where it is
                --- exit 3
            "#]],
        ),
    ] {
        let arguments: Vec<&str> = words.split(' ').collect();
        check_in(folder.path(), &arguments, &wanted);
    }
}

#[test]
fn a_missing_cut_or_changed_file_is_told_and_nothing_is_reported() {
    let folder = larger();
    let blocks = folder.path().join("t.blocks");
    let detect = || run(folder.path(), "detect t.blocks --algorithm blocks");
    for name in ["thread-1.vblocks", "index.vblocks"] {
        let path = blocks.join(name);
        let whole = fs::read(&path).unwrap();
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 1;
        for (bytes, wanted) in [
            (&whole[..whole.len() - 1], "expected"),
            (&whole[..5], "expected"),
            (&[][..], "expected"),
            (&changed[..], "checksum does not match"),
        ] {
            fs::write(&path, bytes).unwrap();
            let told = detect();
            assert!(told.contains(wanted) && told.contains(name), "{told}");
            assert!(
                told.ends_with("--- exit 2\n") && told.lines().count() <= 4,
                "{told}"
            );
        }
        fs::write(&path, &whole).unwrap();
    }
    fs::copy(
        blocks.join("thread-2.vblocks"),
        blocks.join("thread-1.vblocks"),
    )
    .unwrap();
    assert!(detect().contains("thread-1.vblocks"));
    fs::remove_file(blocks.join("thread-1.vblocks")).unwrap();
    let told = detect();
    assert!(told.contains("thread-1.vblocks: cannot be read"), "{told}");
    assert!(told.ends_with("--- exit 2\n"), "{told}");
}

#[test]
fn results_of_all_tasks_make_the_report_and_fewer_make_none() {
    let folder = larger();
    let path = |name: &str| folder.path().join(name);
    run(
        folder.path(),
        "-q cluster plan t.blocks -o tasks --workers 2",
    );
    let tasks = fs::read_to_string(path("tasks")).unwrap();
    let lines: Vec<&str> = tasks.split_inclusive('\n').collect();
    let (first, second) = lines.split_at(lines.len() / 3);
    for (name, part) in [("first", first), ("second", second)] {
        fs::write(path("part"), part.concat()).unwrap();
        let worked = verdict(folder.path(), &["cluster", "worker"])
            .stdin(fs::File::open(path("part")).unwrap())
            .stdout(fs::File::create(path(name)).unwrap())
            .status();
        assert!(worked.unwrap().success());
    }
    // A worker that died: what it had finished counts, and what is missing is told.
    let told = run(folder.path(), "cluster merge t.blocks second");
    let missing = format!(
        "error: {} of {} tasks have no result, the first is task 0\n",
        first.len(),
        lines.len()
    );
    assert!(told.contains(&missing), "{told}");
    let merged = run(
        folder.path(),
        "cluster merge t.blocks second first second --format json",
    );
    let hb = run(
        folder.path(),
        "detect t.vtrace --algorithm hb --format json",
    );
    assert_eq!(merged, hb.replacen("\"hb\"", "\"blocks\"", 1));
    assert!(merged.contains("\"conflict\""), "there are races");

    let mut cut = fs::read(path("first")).unwrap();
    cut.truncate(cut.len() - 9);
    fs::write(path("first"), &cut).unwrap();
    let told = run(folder.path(), "cluster merge t.blocks first second");
    assert!(told.contains("expected a result, found none"), "{told}");
    assert!(told.ends_with("--- exit 2\n"), "{told}");
}

#[test]
fn tasks_of_other_blocks_are_refused() {
    let folder = larger();
    run(folder.path(), "-q cluster plan t.blocks -o tasks");
    run(
        folder.path(),
        "trace generate t.vtrace --events 5000 --seed 9",
    );
    fs::remove_dir_all(folder.path().join("t.blocks")).unwrap();
    run(folder.path(), "-q blocks build t.vtrace t.blocks");
    let output = verdict(folder.path(), &["cluster", "worker"])
        .stdin(fs::File::open(folder.path().join("tasks")).unwrap())
        .output();
    let told = transcript(&output.unwrap());
    let wanted = "is not the block trace that the tasks were planned for";
    assert!(
        told.contains(wanted) && told.ends_with("--- exit 2\n"),
        "{told}"
    );
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing_half_done() {
    let folder = larger();
    run(folder.path(), "-q cluster plan t.blocks -o tasks");
    let output = verdict(folder.path(), &["cluster", "worker"])
        .stdin(fs::File::open(folder.path().join("tasks")).unwrap())
        .stdout(
            fs::OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        )
        .stderr(Stdio::piped())
        .output();
    let told = transcript(&output.unwrap());
    assert!(
        told.contains("cannot be written: No space left on device"),
        "{told}"
    );
    assert!(told.ends_with("--- exit 2\n"), "{told}");

    // A limit on the size of files is as good as a disk that is full after so much.
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
    let output = Command::new("bash")
        .args(["-c", script, "bash", env!("CARGO_BIN_EXE_verdict")])
        .args(["blocks", "build", "t.vtrace", "other.blocks"])
        .current_dir(folder.path())
        .output();
    let told = transcript(&output.unwrap());
    assert!(told.contains("cannot be written: File too large"), "{told}");
    assert!(told.ends_with("--- exit 2\n"), "{told}");
    let left = fs::read_dir(folder.path()).unwrap();
    let left: Vec<String> = left
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("other"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}
