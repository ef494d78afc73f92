//! The truths of the corpus beside what was found.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use verdict_corpus::{Case, Class, Needs, Observed, Opt, Race, ReplayOutcome, cases};

/// The truth about one race, and what was found.
pub(super) struct Row {
    name: String,
    expected: String,
    found: String,
    verdict: Comparison,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Right,
    Wrong,
    /// Not compared, and why.
    Excepted(&'static str),
}

/// What was said of all pairs of instructions at a pair of lines: the worst of it.
struct Found {
    class: Option<String>,
    consequences: Vec<String>,
    replay: Option<String>,
    /// What kinds of harmless race they are said to be.
    labels: Vec<String>,
}

/// Races whose label the instances do not show: they leave another state behind, as of work that is done while waiting; at -O2 a
/// loop that waits begins with a read of its own.
const UNLABELLED: [(&str, &[Opt]); 4] = [
    ("effects/conditional_unlock.c a", &[Opt::O0, Opt::O2]),
    ("effects/flag_outside_lock.c a", &[Opt::O0, Opt::O2]),
    ("effects/stop_flag.c a", &[Opt::O0, Opt::O2]),
    ("papers/replay_user_sync.c a", &[Opt::O2]),
];

/// One row for each race that the build has.
pub(super) fn rows(case: &Case, opt: Opt, document: &str) -> Vec<Row> {
    let document: Value = serde_json::from_str(document).unwrap();
    case.truth
        .races
        .iter()
        .filter(|race| race.exists_at(opt))
        .map(|race| row(case, race, opt, &document))
        .collect()
}

fn row(case: &Case, race: &Race, opt: Opt, document: &Value) -> Row {
    let name = format!("{} {}", case.name, race.id);
    let found = found(case, document, race.lines());
    let word = found.class.as_deref().unwrap_or("none");
    let text = match found.consequences.as_slice() {
        [] => word.to_owned(),
        all => format!("{word} {}", all.join("|")),
    };
    let replay = found.replay.as_deref().unwrap_or("none");
    let right = Class::from_words(&text).is_some_and(|class| race.accepts(class))
        && ReplayOutcome::from_word(replay).is_some_and(|outcome| race.accepts_replay(outcome));
    let unlabelled = UNLABELLED
        .iter()
        .any(|(known, opts)| *known == name && opts.contains(&opt));
    let expected_labels: Vec<String> = race
        .label
        .iter()
        .map(|label| label.word().to_owned())
        .collect();
    // Where the truth accepts another class besides its own, the label belongs to its own.
    let own_class = race.class.to_string().starts_with(word);
    let labels_right = match unlabelled {
        true => found.labels.is_empty(),
        false => !own_class || found.labels == expected_labels,
    };
    let verdict = match (race.needs, right && labels_right) {
        (Needs::SymbolicInput, _) => Comparison::Excepted("needs symbolic input"),
        (Needs::WeakMemory, _) => Comparison::Excepted("needs weak memory"),
        (_, true) => Comparison::Right,
        _ if race.observed != Observed::Always && found.class.is_none() => {
            Comparison::Excepted("not in every run")
        }
        _ => Comparison::Wrong,
    };
    Row {
        name,
        expected: shown(
            &race.class.to_string(),
            race.replay.word(),
            &expected_labels,
        ),
        found: shown(&text, replay, &found.labels),
        verdict,
    }
}

fn shown(class: &str, replay: &str, labels: &[String]) -> String {
    let parts = [class, replay].into_iter();
    let parts = parts.chain(labels.iter().map(String::as_str));
    parts.collect::<Vec<_>>().join(", ")
}

fn found(case: &Case, document: &Value, lines: (u32, u32)) -> Found {
    const CLASSES: [&str; 4] = [
        "spec-violated",
        "output-differs",
        "single-ordering",
        "k-witness-harmless",
    ];
    const REPLAYS: [&str; 3] = ["state-change", "replay-failure", "no-state-change"];
    let line = |access: &Value| {
        let own = access["file"].as_str().map(Path::new) == Some(&case.path);
        access["line"].as_u64().filter(|_| own).unwrap_or(0) as u32
    };
    let races: Vec<&Value> = document["races"]
        .as_array()
        .expect("a list of races")
        .iter()
        .filter(|race| {
            let pair = (line(&race["accesses"][0]), line(&race["accesses"][1]));
            pair == lines || pair == (lines.1, lines.0)
        })
        .collect();
    let worst = |words: &[&str], of: &dyn Fn(&Value) -> Value| {
        let word = words
            .iter()
            .find(|word| races.iter().any(|race| of(race) == **word));
        word.map(|word| (*word).to_owned())
    };
    let class = worst(&CLASSES, &|race| race["class"].clone());
    let mut consequences: Vec<String> = races
        .iter()
        .filter(|race| {
            race["class"] == "spec-violated" && class.as_deref() == Some("spec-violated")
        })
        .filter_map(|race| race["consequence"]["kind"].as_str().map(str::to_owned))
        .collect();
    consequences.sort_unstable();
    consequences.dedup();
    let labels = races.iter().filter_map(|race| race["label"].as_str());
    let mut labels: Vec<String> = labels.map(str::to_owned).collect();
    labels.sort_unstable();
    labels.dedup();
    Found {
        class,
        consequences,
        replay: worst(&REPLAYS, &|race| race["replay"]["outcome"].clone()),
        labels,
    }
}

/// Classifies racy programs of a folder, two at a time, and compares: the usual ones, or those that the soak asks for.
pub(super) fn check(
    opt: Opt,
    folder: &str,
    usual: &dyn Fn(&str) -> bool,
    verdicts_of: &(dyn Fn(&Case, Opt) -> Vec<Row> + Sync),
) {
    let only = std::env::var("VERDICT_CLASSIFY_ONLY");
    let wanted = |name: &str| match &only {
        Ok(part) => name.contains(part.as_str()),
        Err(_) => usual(name),
    };
    let racy: Vec<&Case> = cases()
        .iter()
        .filter(|case| !case.truth.race_free() && case.name.starts_with(folder))
        .filter(|case| wanted(&case.name))
        .collect();
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = racy.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let rows = verdicts_of(case, opt);
                    all.lock().unwrap().extend(rows);
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let table: String = all.iter().map(line).collect();
    println!("{opt}\n{table}");
    let wrong: Vec<String> = all
        .iter()
        .filter(|row| row.verdict == Comparison::Wrong)
        .map(line)
        .collect();
    assert!(
        wrong.is_empty(),
        "{opt}: wrong verdicts:\n{}",
        wrong.concat()
    );
    let right = all.iter().filter(|row| row.verdict == Comparison::Right);
    let asked_for = only.is_ok_and(|part| !part.is_empty());
    assert!(
        asked_for || right.count() > 0,
        "{opt}: nothing was compared"
    );
}

fn line(row: &Row) -> String {
    let verdict = match row.verdict {
        Comparison::Right => "right".to_owned(),
        Comparison::Wrong => "WRONG".to_owned(),
        Comparison::Excepted(why) => format!("({why})"),
    };
    format!(
        "{:<40}{:<72} {:<72} {verdict}\n",
        row.name, row.expected, row.found
    )
}
