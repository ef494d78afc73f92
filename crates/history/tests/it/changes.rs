use verdict_findings::{Access, Class, Program, ProgramFindings, Race, Schema, Verdict};
use verdict_history::*;

fn day(text: &str) -> Day {
    text.parse().unwrap()
}

fn findings(races: &[(&str, Option<Class>)]) -> ProgramFindings {
    let program = Program {
        path: "./queue".into(),
        ..Program::default()
    };
    let mut findings = ProgramFindings::new(Schema::Verdicts1, program);
    for (id, class) in races {
        let mut race = Race::new(*id, [Access::default(), Access::default()]);
        race.verdict = Some(Verdict {
            class: *class,
            ..Verdict::default()
        });
        findings.races.push(race);
    }
    findings
}

fn run(findings: &ProgramFindings) -> Entry {
    let seen = |race: &Race| Seen {
        id: race.id.clone(),
        severity: Severity::of(race),
        headline: format!("about {}", race.id),
    };
    Entry::Run(Run {
        day: day("2026-11-15"),
        program: findings.program.path.clone(),
        args: findings.program.args.clone(),
        races: findings.races.iter().map(seen).collect(),
        token: String::new(),
    })
}

fn mark(id: &str, opinion: Opinion, severity: Severity) -> Entry {
    Entry::Mark(Mark {
        day: day("2026-11-15"),
        id: id.into(),
        opinion,
        reason: "statistics".into(),
        until: Some(day("2026-12-31")),
        severity,
    })
}

#[test]
fn runs_are_compared_with_all_that_was_before() {
    let harmless = Some(Class::KWitnessHarmless);
    let first = findings(&[
        ("stays", harmless),
        ("worsens", harmless),
        ("calms", Some(Class::SpecViolated)),
        ("goes", None),
    ]);
    // The worst counts, though the last run was calm.
    let second = findings(&[
        ("stays", Some(Class::SingleOrdering)),
        ("worsens", harmless),
        ("calms", harmless),
        ("goes", None),
    ]);
    let history = History::of(&[run(&first), run(&second)]);
    let now = findings(&[
        ("stays", harmless),
        ("worsens", Some(Class::OutputDiffers)),
        ("calms", harmless),
        ("appears", None),
    ]);
    let comparison = history.compare(&now);
    let change = |id: &str| comparison.changes[id].clone();
    assert_eq!(change("stays"), Change::StillThere);
    assert_eq!(change("appears"), Change::New);
    assert_eq!(
        change("worsens"),
        Change::Worse {
            before: "k-witness-harmless".into()
        }
    );
    assert_eq!(
        change("calms"),
        Change::Better {
            before: "spec-violated".into()
        }
    );
    let gone: Vec<&str> = comparison
        .gone
        .iter()
        .map(|race| race.id.as_str())
        .collect();
    assert_eq!(gone, ["goes"]);
    assert_eq!(comparison.gone[0].headline, "about goes");
}

#[test]
fn other_arguments_make_nothing_go_away() {
    let history = History::of(&[run(&findings(&[("a", None)]))]);
    let mut now = findings(&[]);
    now.program.args = vec!["--other".into()];
    assert_eq!(history.compare(&now).gone, []);
    now.program.args.clear();
    assert_eq!(history.compare(&now).gone.len(), 1);
}

#[test]
fn first_run_has_only_news() {
    let comparison = History::default().compare(&findings(&[("a", None)]));
    assert_eq!(comparison.changes["a"], Change::New);
    assert_eq!(comparison.gone, []);
}

#[test]
fn marks_hold_until_their_day_and_no_longer() {
    let history = History::of(&[mark("a", Opinion::Benign, Severity::KWitnessHarmless)]);
    let suppressed_on = |today: &str| {
        let mut findings = findings(&[("a", Some(Class::KWitnessHarmless)), ("b", None)]);
        history.apply_marks(&mut findings, day(today));
        assert_eq!(findings.races[1].suppressed, None);
        findings.races[0].is_suppressed()
    };
    assert!(suppressed_on("2026-12-31"));
    assert!(!suppressed_on("2027-01-01"));
}

#[test]
fn marks_can_be_taken_back() {
    let benign = mark("a", Opinion::Benign, Severity::Unknown);
    let history = History::of(&[benign, mark("a", Opinion::Open, Severity::Unknown)]);
    let mut findings = findings(&[("a", None)]);
    history.apply_marks(&mut findings, day("2026-11-15"));
    assert_eq!(findings.races[0].suppressed, None);
}

#[test]
fn mark_does_not_hide_that_a_race_has_become_worse() {
    let before = findings(&[("a", Some(Class::KWitnessHarmless))]);
    let history = History::of(&[
        run(&before),
        mark("a", Opinion::Benign, Severity::KWitnessHarmless),
    ]);
    let mut now = findings(&[("a", Some(Class::SpecViolated))]);
    history.apply_marks(&mut now, day("2026-11-15"));
    assert!(!now.races[0].is_suppressed());
    // Marked as it is, harmful or not, it is the user's decision.
    let history = History::of(&[
        run(&now),
        mark("a", Opinion::Benign, Severity::SpecViolated),
    ]);
    history.apply_marks(&mut now, day("2026-11-15"));
    assert!(now.races[0].is_suppressed());
}
