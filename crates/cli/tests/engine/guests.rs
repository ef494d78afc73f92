//! Small programs that exercise one corner of the system each: signals, threads, processes, memory, time, made code.
//! Each says at its top what it shows; native output is what the engine's is compared with.

use std::fs;
use std::path::Path;

use crate::run::{Ending, Program, observe};
use crate::tools::{build_c, text};

#[track_caller]
fn same(source: &str) -> crate::run::Seen {
    Program::new(&[text(&build_c(source))]).compare()
}

/// What the engine says to a guest that it cannot run.
fn refusal(source: &str) -> String {
    let program = Program::new(&[text(&build_c(source))]);
    let folder = tempfile::tempdir().unwrap();
    let seen = observe(program.under_engine(folder.path()), b"", folder.path());
    assert_eq!(seen.ending, Ending::Exit(3));
    String::from_utf8(seen.stderr).unwrap()
}

#[test]
fn synchronous_faults() {
    let seen = same("sync_faults.c");
    assert_eq!(seen.ending, Ending::Exit(7));
}

#[test]
fn stack_overflow() {
    same("stack_overflow.c");
}

#[test]
fn signal_masks() {
    let seen = same("signal_masks.c");
    assert_eq!(seen.ending, Ending::Signal(10), "ends by SIGUSR1");
}

#[test]
fn timers() {
    same("timers.c");
}

#[test]
fn timers_on_the_real_clock() {
    Program::new(&[text(&build_c("timers.c"))])
        .options(&["--clock", "real"])
        .compare();
}

#[test]
fn thread_synchronisation() {
    same("thread_sync.c");
}

#[test]
fn synchronisation_between_processes() {
    same("process_shared.c");
}

#[test]
fn thread_ends() {
    same("thread_ends.c");
}

#[test]
fn exit_from_the_last_thread() {
    let seen = Program::new(&[&text(&build_c("thread_ends.c")), "exit"]).compare();
    assert_eq!(seen.ending, Ending::Exit(23));
}

#[test]
fn thousand_threads() {
    same("thousand_threads.c");
}

#[test]
fn child_processes() {
    let seen = same("children.c");
    assert_eq!(seen.ending, Ending::Exit(17));
}

#[test]
fn signals_of_children_that_have_ended() {
    same("child_signal.c");
}

#[test]
fn child_processes_that_are_followed() {
    Program::new(&[text(&build_c("children.c"))])
        .options(&["--follow-children"])
        .compare();
}

#[test]
fn pipes_and_polls() {
    same("pipes.c");
}

#[test]
fn sockets() {
    same("sockets.c");
}

#[test]
fn memory_maps() {
    same("memory_maps.c");
}

#[test]
fn file_times() {
    Program::new(&[text(&build_c("file_times.c"))])
        .file("old", "content")
        .compare();
}

#[test]
fn code_made_at_run_time() {
    same("made_code.c");
}

#[test]
fn words_that_do_not_change_until_they_do() {
    same("constant_words.c");
}

#[test]
fn vector_state() {
    same("vector_state.c");
}

#[test]
fn view_of_itself() {
    let program = Program::new(&[
        &text(&build_c("self_view.c")),
        "one",
        "",
        "three words here",
    ]);
    program.clone().compare();
    // As long as one variable may be.
    program.env("BIG", "x".repeat(128 * 1024 - 5)).compare();
}

/// Natively this takes five hours; on the virtual clock nobody waits.
#[test]
fn hours_of_sleep() {
    let program = Program::new(&[text(&build_c("long_sleep.c"))]);
    let folder = tempfile::tempdir().unwrap();
    let seen = observe(program.under_engine(folder.path()), b"", folder.path());
    assert_eq!(
        String::from_utf8_lossy(&seen.stdout),
        "1 h\n2 h\n3 h\ncondvar 110 after 5 h\n"
    );
}

#[test]
fn what_is_refused_is_named() {
    let said = refusal("pi_mutex.c");
    assert!(said.contains("priority inheritance"), "{said}");
    let said = refusal("signal_descriptor.c");
    assert!(said.contains("signalfd"), "{said}");
}

/// Every guest is run by a test.
#[test]
fn no_guest_is_forgotten() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engine");
    let tests = sources_in(Path::new(folder));
    for entry in fs::read_dir(format!("{folder}/guests")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(tests.contains(&format!("\"{name}\"")), "{name} is not run");
    }
}

/// All tests, also those in folders of their own.
fn sources_in(folder: &Path) -> String {
    let paths = fs::read_dir(folder).unwrap();
    let paths = paths.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| !path.ends_with("guests"))
        .map(|path| match path.is_dir() {
            true => sources_in(&path),
            false => fs::read_to_string(path).unwrap_or_default(),
        })
        .collect()
}
