//! The truth parser: what it accepts, and that each mistake is found with its line.

use proptest::prelude::*;
use verdict_corpus::{
    AccessKind, Class, Consequence, Needs, Observed, Opt, Race, ReplayOutcome, Truth, parse,
};

const RACY: &str = "\
// A program.
//~ verdict: racy
//~ topic: one, two
//~ args: 10 --fast
//~ twin: racefree/x.c
//~ race a: the counter
//~   real: yes
//~   observed: always
//~   class: spec-violated crash|memory-error
//~   replay: state-change
//~   needs: none
//~   source: an argument
//~   | in two lines
int x;
void f(void) {
    x++;    //~ RACE(a) update
    g(x);   //~ RACE(a) read
}
";

const RACE_FREE: &str = "\
//~ verdict: race-free
//~ topic: mutex
//~ source: one lock
int x;
";

fn racy() -> Truth {
    parse(RACY).expect("the example is well-formed")
}

fn only_race() -> Race {
    racy().races.remove(0)
}

/// The mistakes of `text`, one `line: message` each.
fn mistakes(text: &str) -> Vec<String> {
    match parse(text) {
        Ok(truth) => panic!("accepted as {truth:?}"),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// The one mistake that replacing `from` by `to` in the racy example makes.
fn mistake(from: &str, to: &str) -> String {
    assert!(RACY.contains(from), "the example has no {from:?}");
    let found = mistakes(&RACY.replacen(from, to, 1));
    assert_eq!(found.len(), 1, "{found:#?}");
    found[0].clone()
}

#[test]
fn a_racy_program() {
    let truth = racy();
    assert!(!truth.race_free());
    assert_eq!(truth.topics, ["one", "two"]);
    assert_eq!(truth.args, ["10", "--fast"]);
    assert_eq!(truth.exit, 0);
    assert_eq!(truth.twin.as_deref(), Some("racefree/x.c"));
    let race = only_race();
    assert_eq!(
        (race.id.as_str(), race.title.as_str()),
        ("a", "the counter")
    );
    assert!(race.real);
    assert_eq!(race.observed, Observed::Always);
    assert_eq!(race.replay, ReplayOutcome::StateChange);
    assert_eq!(race.paper_replay, ReplayOutcome::StateChange);
    assert_eq!(race.needs, Needs::None);
    assert_eq!(race.otherwise, Some(race.class));
    assert_eq!(race.source, "an argument in two lines");
    assert_eq!(race.lines(), (16, 17));
    let kinds: Vec<_> = race.accesses.iter().map(|access| access.kind).collect();
    assert_eq!(kinds, [AccessKind::Update, AccessKind::Read]);
    assert!(race.expected_at(Opt::O0) && race.expected_at(Opt::O2));
}

#[test]
fn a_class_with_several_consequences_accepts_each() {
    let race = only_race();
    let class = |text| Class::from_words(text).expect("a class");
    assert!(
        race.class
            .consequences()
            .is_some_and(|all| all.contains(Consequence::MemoryError))
    );
    assert!(race.accepts(class("spec-violated crash")));
    assert!(race.accepts(class("spec-violated memory-error")));
    assert!(!race.accepts(class("spec-violated deadlock")));
    assert!(!race.accepts(class("output-differs")));
    assert_eq!(race.class.to_string(), "spec-violated crash|memory-error");
}

#[test]
fn a_race_free_program() {
    let truth = parse(RACE_FREE).expect("well-formed");
    assert!(truth.race_free());
    assert_eq!(truth.source.as_deref(), Some("one lock"));
}

#[test]
fn a_line_may_race_with_itself_and_with_others() {
    let second = "//~ race b: again\n//~   real: no\n//~   observed: maybe\n//~   \
                  class: single-ordering\n//~   replay: replay-failure\n//~   needs: none\n//~   \
                  source: s\n//~   only: O2\nint x;";
    let text = RACY
        .replacen("int x;", second, 1)
        .replace("update", "update, RACE(b) write");
    let truth = parse(&text).expect("well-formed");
    assert_eq!(truth.races[0].lines(), (24, 25));
    assert_eq!(truth.races[1].lines(), (24, 24));
    assert!(truth.races[1].exists_at(Opt::O2) && !truth.races[1].exists_at(Opt::O0));
}

#[test]
fn each_mistake_is_found_on_its_line() {
    let cases = [
        (
            "verdict: racy",
            "verdict: racey",
            "2: expected racy or race-free, found `racey`",
        ),
        ("//~ topic: one, two\n", "//\n", "1: `topic` is missing"),
        ("//~ twin: racefree/x.c\n", "//\n", "1: `twin` is missing"),
        (
            "args: 10",
            "arg: 10",
            "4: `arg` is not a key of a program; its keys are verdict,",
        ),
        (
            "real: yes",
            "real: maybe",
            "7: expected yes or no, found `maybe`",
        ),
        (
            "real: yes",
            "reel: yes",
            "7: `reel` is not a key of a race; its keys are real,",
        ),
        (
            "observed: always",
            "observed:",
            "8: `observed` has no value",
        ),
        (
            "crash|memory",
            "boom|memory",
            "9: expected output-differs, k-witness-harmless, ",
        ),
        (
            "replay: state-change",
            "replay: changed",
            "10: expected no-state-change, ",
        ),
        (
            "needs: none",
            "needs: none\n//~ needs: none",
            "12: `needs` is given twice",
        ),
        (
            "source: an",
            "source an",
            "12: expected `key: value`, `race id: title` or ",
        ),
        (
            "needs: none",
            "only: O3",
            "11: expected O0 or O2, found `O3`",
        ),
        (
            "race a: the",
            "race A: the",
            "6: a race's id is a lower-case letter, ",
        ),
        (
            "RACE(a) update",
            "RACE(a) bump",
            "16: expected `RACE(id) read|write|update`, found",
        ),
        (
            "RACE(a) update",
            "RACE(b) write",
            "16: race `b` is marked but not described",
        ),
        (
            "RACE(a) update",
            "RACE(a) read",
            "6: race `a` has two lines that only read",
        ),
        (
            "RACE(a) update",
            "RACE(a) read, RACE(a) write",
            "6: race `a` is a pair of lines, but 3",
        ),
        (
            "real: yes",
            "real: no",
            "6: a race is real (its accesses can meet) exactly if",
        ),
        (
            "int x;",
            "//~ | more\nint x;\n//~ | late",
            "16: a truth directive must stand before",
        ),
        (
            "// A program.",
            "//~ | more",
            "1: `|` continues a value, but there is none",
        ),
    ];
    for (from, to, expected) in cases {
        let found = mistakes(&RACY.replacen(from, to, 1));
        let hit = found.iter().any(|mistake| mistake.starts_with(expected));
        assert!(hit, "{to:?} should give {expected:?} but gives {found:#?}");
    }
}

#[test]
fn races_and_marks_must_belong_together() {
    assert_eq!(
        mistake(
            "    x++;    //~ RACE(a) update\n    g(x);   //~ RACE(a) read\n",
            ""
        ),
        "6: race `a` is described but no line is marked with it"
    );
    assert_eq!(
        mistake("    x++;    //~ RACE(a) update\n", ""),
        "6: race `a` has one marked line, which only reads"
    );
    assert_eq!(
        mistake(
            "//~ RACE(a) read\n",
            "//~ RACE(a) read\n}\n    x = 1; //~ RACE(a) write\n"
        ),
        "6: race `a` is a pair of lines, but 3 are marked"
    );
}

#[test]
fn a_race_free_program_has_no_race_and_says_why() {
    assert_eq!(
        mistakes("//~ verdict: race-free\n//~ topic: t\nint x;"),
        ["1: `source` is missing"]
    );
    let racy = RACY.replacen("racy", "race-free", 1);
    assert!(mistakes(&racy).contains(&"6: a race-free program describes no race".to_owned()));
    assert_eq!(
        mistakes(&RACE_FREE.replace("int x;", "x++; //~ RACE(a) write")),
        ["4: race `a` is marked but not described"]
    );
}

#[test]
fn what_needs_more_than_schedules_says_what_else_is_seen() {
    let symbolic = RACY.replace("needs: none", "needs: symbolic-input");
    assert_eq!(
        parse(&symbolic).expect("well-formed").races[0].otherwise,
        None
    );
    let found = mistake("needs: none", "needs: none\n//~ otherwise: output-differs");
    assert_eq!(
        found,
        "12: `otherwise` is for races that need more than schedules"
    );
    let found = mistake("needs: none", "needs: none\n//~ reveal: --stats");
    assert_eq!(
        found,
        "12: `reveal` is for races that the program's own arguments do not show"
    );
}

proptest! {
    /// Whatever the text, the parser answers: a truth, or mistakes on lines that exist.
    #[test]
    fn any_text_is_answered(text in "(//~ ?)?[a-z:|()~/, \n]{0,200}") {
        if let Err(errors) = parse(&text) {
            let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX).max(1);
            prop_assert!(!errors.is_empty());
            prop_assert!(errors.iter().all(|error| (1..=lines).contains(&error.line)));
        }
    }

    /// Deleting any one truth line of a good program is noticed or leaves a smaller truth, never
    /// the same one.
    #[test]
    fn every_truth_line_counts(delete in 0usize..18) {
        let lines: Vec<&str> = RACY.lines().collect();
        prop_assume!(delete < lines.len() && lines[delete].contains("//~"));
        let kept: Vec<&str> =
            lines.iter().enumerate().filter(|&(n, _)| n != delete).map(|(_, &line)| line).collect();
        prop_assert_ne!(parse(&kept.join("\n")), Ok(racy()));
    }
}
