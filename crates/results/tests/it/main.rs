//! A result folder as a run uses it: begun, interrupted, resumed, reported from.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use verdict_files::PendingFiles;
use verdict_findings::{Access, Program, ProgramFindings, Race, Schema};
use verdict_results::{FolderError, Plan, ResultFolder, Stage};

fn plan() -> Plan {
    Plan {
        verdict: "0.1.0".into(),
        program: "./queue".into(),
        args: vec!["4".into()],
        identity: "12345".into(),
        options: [("runs".to_owned(), "100".to_owned())].into(),
    }
}

fn begin(path: &Path) -> Result<ResultFolder, FolderError> {
    ResultFolder::begin(path, &plan(), PendingFiles::new())
}

fn findings(races: usize) -> ProgramFindings {
    let mut findings = ProgramFindings::new(Schema::Races1, Program::default());
    let race = |index| Race::new(format!("r{index}"), [Access::default(), Access::default()]);
    findings.races = (0..races).map(race).collect();
    findings
}

/// What a stage of this test does: one file a race, then the stage. `steps_max` is where it is interrupted.
fn work(path: &Path, steps_max: usize) -> Option<ProgramFindings> {
    let folder = begin(path).unwrap();
    let mut steps = 0;
    let mut step = || {
        steps += 1;
        steps <= steps_max
    };
    while let Some(stage) = folder.next() {
        match stage {
            Stage::Record => {
                fs::write(folder.recording_in_the_making(), "recording").unwrap();
                if !step() {
                    return None;
                }
                folder.finish_recording().unwrap();
            }
            Stage::Detect => folder.finish(stage, &findings(3)).unwrap(),
            Stage::Confirm | Stage::Classify => {
                let mut findings = folder.results().unwrap();
                for race in &mut findings.races {
                    if folder.piece::<u64>(stage, &race.id).unwrap().is_none() {
                        folder.keep_piece(stage, &race.id, &7u64).unwrap();
                        if !step() {
                            return None;
                        }
                    }
                    race.instances += folder.piece::<u64>(stage, &race.id).unwrap().unwrap();
                }
                folder.finish(stage, &findings).unwrap();
            }
        }
        if !step() {
            return None;
        }
    }
    Some(folder.results().unwrap())
}

#[test]
fn interrupted_anywhere_and_resumed_gives_the_same() {
    let whole = tempfile::tempdir().unwrap();
    let expected = work(whole.path(), usize::MAX).unwrap();
    assert_eq!(expected.races[2].instances, 14);
    for interrupted_after in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            work(folder.path(), interrupted_after).is_some(),
            interrupted_after >= 11
        );
        assert_eq!(
            work(folder.path(), usize::MAX),
            Some(expected.clone()),
            "after {interrupted_after}"
        );
    }
}

#[test]
fn interrupted_again_and_again_comes_to_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let end = (0..20).find_map(|_| work(folder.path(), 1));
    assert_eq!(end.unwrap().races.len(), 3);
}

#[test]
fn finished_run_can_be_reported_from() {
    let folder = tempfile::tempdir().unwrap();
    work(folder.path(), usize::MAX).unwrap();
    let opened = ResultFolder::open(folder.path()).unwrap();
    assert_eq!(opened.results().unwrap().races.len(), 3);
    assert_eq!(opened.next(), None);
    assert_eq!(opened.stage(Stage::Detect).unwrap().unwrap(), findings(3));
    assert_eq!(opened.data::<u64>("since.json").unwrap(), None);
}

#[test]
fn two_runs_do_not_work_in_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = begin(folder.path()).unwrap();
    assert!(matches!(
        begin(folder.path()),
        Err(FolderError::InUse { .. })
    ));
    drop(first);
    begin(folder.path()).unwrap();
}

#[test]
fn another_run_does_not_resume_this_one() {
    let folder = tempfile::tempdir().unwrap();
    work(folder.path(), 3);
    let mut other = plan();
    other.identity = "rebuilt".into();
    let refused = ResultFolder::begin(folder.path(), &other, PendingFiles::new()).unwrap_err();
    assert!(
        refused
            .to_string()
            .ends_with("of another build of the program"),
        "{refused}"
    );
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    ResultFolder::clear(folder.path()).unwrap();
    let begun = ResultFolder::begin(folder.path(), &other, PendingFiles::new()).unwrap();
    assert_eq!(begun.next(), Some(Stage::Record));
    assert!(
        folder.path().join("notes.txt").exists(),
        "what is not ours stays"
    );
}

#[test]
fn folders_of_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        ResultFolder::open(folder.path()),
        Err(FolderError::NotOurs { .. })
    ));
    assert!(matches!(
        ResultFolder::open(&folder.path().join("no")),
        Err(FolderError::Missing { .. })
    ));
    fs::write(folder.path().join("thesis.tex"), "mine").unwrap();
    assert!(matches!(
        begin(folder.path()),
        Err(FolderError::NotOurs { .. })
    ));
}

#[test]
fn damaged_files_are_errors_that_name_them() {
    let folder = tempfile::tempdir().unwrap();
    work(folder.path(), usize::MAX).unwrap();
    fs::write(folder.path().join("results.json"), "{").unwrap();
    let error = ResultFolder::open(folder.path())
        .unwrap()
        .results()
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("results.json: not a list of races"),
        "{error}"
    );
    fs::write(folder.path().join("plan.json"), [0xff]).unwrap();
    assert!(
        begin(folder.path())
            .unwrap_err()
            .to_string()
            .contains("plan.json: cannot be read")
    );
}

#[test]
fn pieces_may_have_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let begun = begin(folder.path()).unwrap();
    for name in ["", "../../etc/passwd", "a\nb", "ä", &"x".repeat(10_000)] {
        begun.keep_piece(Stage::Confirm, name, &name.len()).unwrap();
        assert_eq!(
            begun.piece::<usize>(Stage::Confirm, name).unwrap(),
            Some(name.len())
        );
    }
    assert_eq!(begun.piece::<usize>(Stage::Confirm, "other").unwrap(), None);
}
