//! `verdict confirm -- PROGRAM` on the whole corpus: every real race is created, no false one ever is, what a program's
//! truth says can go wrong does, and every seed repeats what it stands for. The tests print a table of how often.
//!
//! `cargo xtask soak confirm` does the same with many more runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;
use verdict_corpus::{Case, Class, Needs, Opt, Race, build_all, case, cases};

/// Runs per race: enough for CI, which has the same seeds every time.
fn runs() -> u32 {
    number("VERDICT_CONFIRM_RUNS", 10)
}

/// Times that every error is repeated.
fn repeats() -> u32 {
    number("VERDICT_CONFIRM_REPEATS", 2)
}

fn number(variable: &str, usual: u32) -> u32 {
    let set = std::env::var(variable).ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A program that is asked about.
struct Asked<'a> {
    case: &'a Case,
    binary: PathBuf,
    folder: tempfile::TempDir,
}

impl<'a> Asked<'a> {
    fn new(case: &'a Case, binary: &Path) -> Self {
        Asked {
            case,
            binary: binary.to_owned(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// What `verdict confirm` says with these options; the program gets `args`.
    fn confirm(&self, options: &[String], args: &[String]) -> Value {
        let output = self.folder.path().join("confirmed.json");
        let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
            .args(["confirm", "--format", "json", "--jobs", "1", "--output"])
            .arg(&output)
            .args(options)
            .arg("--")
            .arg(&self.binary)
            .args(args)
            // A program that reads its own debug information to tell where it panicked takes a hundred times as long.
            .env_remove("RUST_BACKTRACE")
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let written = fs::read(&output).unwrap_or_else(|error| {
            let stderr = String::from_utf8_lossy(&run.stderr);
            panic!(
                "{} {options:?}: nothing ({error}): {stderr}",
                self.case.name
            )
        });
        fs::remove_file(&output).unwrap();
        serde_json::from_slice(&written).unwrap()
    }

    /// The races that are detected.
    fn detected(&self) -> Vec<Confirmed> {
        // Predictions of race-free programs are many, and one run of each that goes wrong is enough.
        let runs = match self.case.truth.races.is_empty() {
            true => runs().div_ceil(4),
            false => runs(),
        };
        let options = [format!("--runs={runs}")];
        let document = self.confirm(&options, &self.case.truth.args);
        let mut found = confirmed(self.case, &document);
        for race in &mut found {
            race.options = vec![format!("--race={}", race.id)];
        }
        found
    }

    /// The races of the truth, as pairs of lines: those that the same arguments show are asked about together, since each
    /// may be what it takes to come to another.
    fn suspected(&self, races: &[&'a Race]) -> Vec<(&'a Race, Vec<Confirmed>)> {
        let args = |race: &Race| race.reveal.clone().unwrap_or(self.case.truth.args.clone());
        let groups: BTreeSet<Vec<String>> = races.iter().map(|race| args(race)).collect();
        let mut told = Vec::new();
        for group in groups {
            let own = races.iter().filter(|race| args(race) == group);
            let own: Vec<&Race> = own.copied().collect();
            let pairs = own.iter().map(|race| format!("--pair={}", self.pair(race)));
            let pairs: Vec<String> = pairs.collect();
            let options = [&[format!("--runs={}", runs())], &pairs[..]].concat();
            let mut found = confirmed(self.case, &self.confirm(&options, &group));
            for race in &mut found {
                race.options.clone_from(&pairs);
                race.args.clone_from(&group);
            }
            for race in own {
                let name = self.pair(race);
                let at = found.iter().position(|found| found.id == name);
                told.push((race, vec![found.swap_remove(at.unwrap())]));
            }
        }
        told
    }

    fn pair(&self, race: &Race) -> String {
        let (first, second) = race.lines();
        let file = self.case.path.display();
        format!("{file}:{first},{file}:{second}")
    }

    /// Repeats the run that an error was first seen in: it always comes to that error, and so does its recording. What is
    /// wrong otherwise.
    fn repeat(&self, of: &Confirmed, error: &Value) -> Vec<String> {
        let (kind, seed) = (&error["kind"], &error["seed"]);
        let repeats = u64::from(repeats());
        let mut options = vec![format!("--runs={repeats}"), format!("--run-seed={seed}")];
        options.extend(of.options.clone());
        let document = self.confirm(&options, &of.args);
        let again = confirmed(self.case, &document);
        let again = again.iter().find(|race| race.id == of.id).unwrap();
        let repeated = again.errors.iter().find(|other| other["kind"] == *kind);
        let times = repeated.and_then(|error| error["runs"].as_u64());
        let told = |wrong: &str| format!("{} {}: {kind} {wrong}", self.case.name, of.id);
        let mut wrong = Vec::new();
        if (u64::from(again.hits), times) != (repeats, Some(repeats)) {
            let (hits, times) = (again.hits, times.unwrap_or(0));
            let found = format!("of seed {seed}: {hits} hits and {times} errors in {repeats} runs");
            wrong.push(told(&found));
        }
        wrong.extend(self.replay(error).map(|why| told(&why)));
        wrong
    }

    /// Why the recording of an error cannot be replayed.
    fn replay(&self, error: &Value) -> Option<String> {
        let recording = error["evidence"]
            .as_str()
            .expect("every error has a recording");
        let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
            .args(["replay", recording])
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&run.stderr);
        let failed = stderr.contains("the engine failed") || stderr.contains("recording");
        failed.then(|| format!("in {recording}: {stderr}"))
    }
}

/// What was said of a race.
struct Confirmed {
    id: String,
    lines: (u32, u32),
    hits: u32,
    errors: Vec<Value>,
    stacks: usize,
    /// What asks about it again, and what the program gets.
    options: Vec<String>,
    args: Vec<String>,
}

fn confirmed(case: &Case, document: &Value) -> Vec<Confirmed> {
    let line = |access: &Value| {
        let own = access["file"].as_str().map(Path::new) == Some(&case.path);
        access["line"].as_u64().filter(|_| own).unwrap_or(0) as u32
    };
    let races = document["races"].as_array().expect("a list of races");
    let told = races.iter().filter(|race| !race["confirmation"].is_null());
    told.map(|race| {
        let pair = (line(&race["accesses"][0]), line(&race["accesses"][1]));
        let tried = &race["confirmation"];
        let list = |field: &str| tried[field].as_array().cloned().unwrap_or_default();
        Confirmed {
            id: race["id"].as_str().unwrap().to_owned(),
            lines: (pair.0.min(pair.1), pair.0.max(pair.1)),
            hits: tried["hits"].as_u64().unwrap() as u32,
            errors: list("errors"),
            stacks: list("stacks").len(),
            options: Vec::new(),
            args: case.truth.args.clone(),
        }
    })
    .collect()
}

/// The document's word for what a truth says can go wrong.
fn kinds(race: &Race) -> BTreeSet<String> {
    let Class::SpecViolated(consequences) = race.class else {
        return BTreeSet::new();
    };
    let all = consequences
        .iter()
        .map(|consequence| consequence.to_string());
    all.filter(|kind| kind != "property").collect()
}

/// True if nothing worse than another output or exit code can become of the program.
fn is_harmless(case: &Case) -> bool {
    let violates = |race: &Race| matches!(race.class, Class::SpecViolated(_));
    !case.truth.races.iter().any(violates)
}

/// What is to be printed of a program, its probabilities, and what is wrong.
#[derive(Clone, Default)]
struct Told {
    text: String,
    probabilities: Vec<f64>,
    wrong: Vec<String>,
}

fn examine(case: &Case, opt: Opt, binary: &Path) -> Told {
    let asked = Asked::new(case, binary);
    let mut told = Told::default();
    let detected = asked.detected();
    let mut seen: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    let races = case.truth.races.iter().filter(|race| race.exists_at(opt));
    let races: Vec<&Race> = races.collect();
    let suspected = asked.suspected(&races);
    let mut explained = BTreeSet::new();
    for (race, pair) in &suspected {
        explained.insert(race.lines());
        let own = detected.iter().filter(|found| found.lines == race.lines());
        let all: Vec<&Confirmed> = own.chain(pair).collect();
        let hits = all.iter().map(|found| found.hits).max().unwrap_or(0);
        let errors: Vec<String> = all
            .iter()
            .flat_map(|found| &found.errors)
            .map(|error| format!("{} {}", error["kind"].as_str().unwrap(), error["runs"]))
            .collect();
        let _ = writeln!(
            told.text,
            "{:42} {} {:>5} {:>4} of {:<4} {}",
            case.name,
            race.id,
            if race.real { "real" } else { "false" },
            hits,
            runs(),
            errors.join(", ")
        );
        if race.real {
            told.probabilities.push(f64::from(hits) / f64::from(runs()));
        }
        if race.real != (hits > 0) {
            told.wrong
                .push(format!("{} {}: {hits} hits", case.name, race.id));
        }
    }
    for found in &detected {
        if found.hits > 0 && !explained.contains(&found.lines) {
            told.wrong.push(format!(
                "{} {:?}: confirmed, and not in the truth",
                case.name, found.lines
            ));
        }
    }
    for found in detected
        .iter()
        .chain(suspected.iter().flat_map(|(_, pair)| pair))
    {
        if found.hits > 0 && found.stacks != 2 {
            told.wrong
                .push(format!("{} {}: not two stacks", case.name, found.id));
        }
        for error in &found.errors {
            let kind = error["kind"].as_str().unwrap();
            if is_harmless(case) && kind != "exit-code" {
                told.wrong
                    .push(format!("{} {}: {error}", case.name, found.id));
            }
            let kinds = seen.entry(kind).or_default();
            // Repeating the first of its kind shows that seeds repeat; a soak repeats all.
            if kinds.is_empty() || repeats() > 2 {
                told.wrong.extend(asked.repeat(found, error));
            }
            kinds.push(error);
        }
    }
    for (race, _) in &suspected {
        let wanted = kinds(race);
        let reached =
            wanted.is_empty() || wanted.iter().any(|kind| seen.contains_key(kind.as_str()));
        if race.needs == Needs::None && !reached {
            told.wrong
                .push(format!("{} {}: none of {wanted:?}", case.name, race.id));
        }
    }
    told
}

/// Programs that CI looks at: each kind of site, and each kind of end. A soak looks at all.
const SOME: [&str; 14] = [
    "effects/conditional_unlock.c",
    "effects/double_free.cpp",
    "effects/infinite_loop.c",
    "effects/lost_update.c",
    "effects/memcpy.c",
    "effects/null_dereference.c",
    "effects/read_system_call.c",
    "effects/torn_16_byte.c",
    "effects/use_after_free.c",
    "effects/write_system_call.c",
    "papers/racefuzzer_fig1.c",
    "papers/racefuzzer_contains_all.cpp",
    "racefree/library_calls_locked.c",
    "racefree/racefuzzer_fig1_locked.c",
];

fn whole_corpus(opt: Opt, part: &str) {
    let all = std::env::var_os("VERDICT_CONFIRM_RUNS").is_some();
    let wanted = std::env::var("VERDICT_CORPUS_CASE").unwrap_or_default();
    let cases: Vec<Case> = cases()
        .iter()
        .filter(|case| case.name.starts_with(part) && case.name.contains(&wanted))
        .filter(|case| all || SOME.contains(&case.name.as_str()))
        .cloned()
        .collect();
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let binaries = build_all(&cases, &[opt], jobs).unwrap_or_else(|error| panic!("{error}"));
    let told = Mutex::new(vec![Told::default(); cases.len()]);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(index) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < cases.len())
        {
            let answer = examine(&cases[index], opt, &binaries[index]);
            told.lock().unwrap()[index] = answer;
        }
    };
    thread::scope(|scope| {
        (0..jobs).for_each(|_| drop(scope.spawn(work)));
    });
    let told = told.into_inner().unwrap();
    let table: String = told.iter().map(|told| told.text.as_str()).collect();
    let all: Vec<f64> = told
        .iter()
        .flat_map(|told| told.probabilities.clone())
        .collect();
    print!("{table}");
    if !all.is_empty() {
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        println!(
            "{} real races at {opt}, mean probability {mean:.2}",
            all.len()
        );
    }
    let wrong: Vec<String> = told.into_iter().flat_map(|told| told.wrong).collect();
    assert!(wrong.is_empty(), "at {opt}:\n{}", wrong.join("\n"));
}

/// The build that is asked about: optimised code has updates in place, which are the harder sites.
fn opt() -> Opt {
    match std::env::var("VERDICT_CONFIRM_OPT").as_deref() {
        Ok("O0") => Opt::O0,
        _ => Opt::O2,
    }
}

#[test]
fn effects() {
    whole_corpus(opt(), "effects/");
}

#[test]
fn papers() {
    whole_corpus(opt(), "papers/");
}

#[test]
fn nothing_of_race_free_programs_is_confirmed() {
    whole_corpus(opt(), "racefree/");
}

/// Calls of the program in which a library's code makes atomic and plain accesses to the same memory: owners of a
/// `shared_ptr` count atomically, and the last one writes plainly; both ends of a channel give it up atomically, and the last
/// one frees it.
#[test]
fn calls_with_atomic_and_plain_accesses() {
    for (name, opt) in [
        ("racefree/shared_ptr.cpp", Opt::O0),
        ("racefree/rust_channels.rs", Opt::O2),
    ] {
        let case = case(name);
        let binary = case.build(opt).unwrap_or_else(|error| panic!("{error}"));
        let wrong = examine(case, opt, &binary).wrong;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// RaceFuzzer, section 3.2: the race is created whatever the number of statements before it, and half of the runs fail.
#[test]
fn far_apart() {
    let case = case("papers/racefuzzer_fig2.c");
    let binary = case
        .build(Opt::O0)
        .unwrap_or_else(|error| panic!("{error}"));
    let asked = Asked::new(case, &binary);
    let runs = number("VERDICT_CONFIRM_RUNS", 40);
    let (first, second) = case.truth.races[0].lines();
    let file = case.path.display();
    println!("statements  race created  error   error by plain random scheduling");
    for statements in ["10", "1000", "1000000"] {
        let options = [
            format!("--runs={runs}"),
            format!("--pair={file}:{first},{file}:{second}"),
        ];
        let found = confirmed(case, &asked.confirm(&options, &[statements.to_owned()]));
        let errors: u64 = found[0]
            .errors
            .iter()
            .filter_map(|error| error["runs"].as_u64())
            .sum();
        let by_chance = by_chance(&binary, statements, runs);
        println!(
            "{statements:>10}  {:>5} of {runs:<4} {errors:>4}    {by_chance:>4}",
            found[0].hits
        );
        assert_eq!(found[0].hits, runs);
        let part = errors as f64 / f64::from(runs);
        assert!((0.35..=0.65).contains(&part), "{errors} of {runs}");
        if statements == "1000000" {
            assert!(f64::from(by_chance) < 0.05 * f64::from(runs), "{by_chance}");
        }
    }
}

/// Runs that fail when only dice decide who runs.
fn by_chance(binary: &Path, statements: &str, runs: u32) -> u32 {
    (0..runs)
        .map(|seed| {
            let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
                .args(["exec", "--schedule", "random", "--seed", &seed.to_string()])
                .arg("--")
                .arg(binary)
                .arg(statements)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            u32::from(!run.status.success())
        })
        .sum()
}
