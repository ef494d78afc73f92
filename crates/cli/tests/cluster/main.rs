//! Real runs on Apache Spark, in `local-cluster` mode: a driver and two executors, each a process of its own.
#![forbid(unsafe_code)]

mod spark;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use spark::{Setup, killing_once, refusing_first_task};

#[test]
fn spark_reports_what_one_machine_reports_also_after_the_disk_was_full() {
    let setup = Setup::new();
    let results = setup.work().join("results");
    fs::create_dir_all(&results).unwrap();
    let partial = results.join("task-0.json.partial");
    symlink("/dev/full", &partial).unwrap();
    let full = setup.cluster_run(&[]);
    assert_eq!((full.code, &full.stdout[..]), (Some(3), ""));
    let problem = "error: t.blocks.work/results/task-0.json: cannot be written: No space left on device\nhelp: ";
    assert!(full.stderr.starts_with(problem), "{}", full.stderr);

    fs::remove_file(&partial).unwrap();
    let run = setup.cluster_run(&[]);
    assert_eq!(run.stderr, "");
    assert_eq!(run.stdout, setup.local_report());
    assert_eq!(run.code, Some(1), "there are races");
    assert!(!setup.work().exists(), "nothing is left behind");
}

#[test]
fn what_was_done_before_a_failure_is_not_done_again_and_a_killed_executor_changes_nothing() {
    let setup = Setup::new();
    let refusing = refusing_first_task(&setup);
    let failed = setup.cluster_run(&["--worker", &refusing]);
    assert_eq!((failed.code, &failed.stdout[..]), (Some(3), ""));
    let problem = "error: the worker ended with 2: error: not today\nhelp: ";
    assert!(failed.stderr.starts_with(problem), "{}", failed.stderr);

    let (done, all) = (results(&setup.work()), setup.tasks());
    assert!(1 < done && done < all, "{done} of {all}");
    damage_one(&setup.work());
    let killing = killing_once(&setup);
    let run = setup.cluster_run(&["--worker", &killing.command]);
    assert_eq!(run.stderr, "");
    assert_eq!(run.stdout, setup.local_report());
    assert!(killing.has_killed(), "an executor was killed");
    let again = killing.tasks_finished();
    assert_eq!(
        again,
        all - done + 1,
        "only what had no whole result was run"
    );
}

fn results(work: &Path) -> usize {
    fs::read_dir(work.join("results")).unwrap().count()
}

/// Changes a digit, so that the result can still be read.
fn damage_one(work: &Path) {
    let mut results = fs::read_dir(work.join("results")).unwrap();
    let path = results.next().unwrap().unwrap().path();
    let text = fs::read_to_string(&path).unwrap();
    let damaged = text.replacen(r#""task":"#, r#""task":1"#, 1);
    assert_ne!(text, damaged);
    fs::write(&path, damaged).unwrap();
}
