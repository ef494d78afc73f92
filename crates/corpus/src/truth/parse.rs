//! Source text -> [`Truth`], or every mistake with its line.
//!
//! Two kinds of truth comment, both starting with `//~`: *directives* stand alone on a line before
//! the first code, *marks* stand behind the code that they mark. Strict on purpose: an
//! unknown key, a repeated key or a mark without its race is an error, because a truth that is
//! silently ignored lets a test pass for nothing.

use std::collections::BTreeMap;

use super::{
    Access, AccessKind, Class, Label, Needs, Observed, Opt, Race, ReplayOutcome, Truth, TruthError,
};

const PREFIX: &str = "//~";
const PROGRAM_KEYS: &[&str] = &[
    "verdict", "topic", "figure", "args", "exit", "flags", "twin", "source",
];
const RACE_KEYS: &[&str] = &[
    "real",
    "observed",
    "class",
    "replay",
    "or-replay",
    "paper-replay",
    "needs",
    "otherwise",
    "or",
    "label",
    "only",
    "reveal",
    "source",
];

/// Parses the truth comments of one program.
///
/// # Errors
/// Every mistake found, in line order; never an empty list.
pub fn parse(text: &str) -> Result<Truth, Vec<TruthError>> {
    let mut errors = Errors::default();
    let comments = scan(text, &mut errors);
    let truth = build(comments, &mut errors);
    let mut found = errors.0;
    found.sort_by_key(|error| error.line);
    match truth {
        Some(truth) if found.is_empty() => Ok(truth),
        _ => Err(found),
    }
}

#[derive(Default)]
struct Errors(Vec<TruthError>);

impl Errors {
    fn push(&mut self, line: u32, message: impl Into<String>) {
        self.0.push(TruthError {
            line,
            message: message.into(),
        });
    }
}

/// The keys and values of the program or of one race.
#[derive(Default)]
struct Fields {
    line: u32,
    values: BTreeMap<&'static str, (u32, String)>,
    last: Option<&'static str>,
}

struct RaceFields {
    id: String,
    title: String,
    fields: Fields,
}

#[derive(Default)]
struct Comments {
    program: Fields,
    races: Vec<RaceFields>,
    marks: Vec<Access>,
}

// --- Lines -> comments -------------------------------------------------------------------------

fn scan(text: &str, errors: &mut Errors) -> Comments {
    let mut comments = Comments::default();
    comments.program.line = 1;
    let mut code_seen = false;
    for (line, content) in (1u32..).zip(text.lines()) {
        let Some((code, comment)) = content.split_once(PREFIX) else {
            let trimmed = content.trim();
            code_seen |= !trimmed.is_empty() && !trimmed.starts_with("//");
            continue;
        };
        if !code.trim().is_empty() {
            code_seen = true;
            scan_marks(line, comment, &mut comments.marks, errors);
        } else if code_seen {
            errors.push(line, "a truth directive must stand before the first line of code; a mark must stand behind the code it marks");
        } else {
            scan_directive(line, comment.trim(), &mut comments, errors);
        }
    }
    comments
}

fn scan_marks(line: u32, comment: &str, marks: &mut Vec<Access>, errors: &mut Errors) {
    for mark in comment.split(',') {
        match parse_mark(mark.trim()) {
            Ok((tag, kind)) => marks.push(Access { line, kind, tag }),
            Err(message) => errors.push(line, message),
        }
    }
}

fn parse_mark(mark: &str) -> Result<(String, AccessKind), String> {
    let expected = || format!("expected `RACE(id) read|write|update`, found `{mark}`");
    let rest = mark.strip_prefix("RACE(").ok_or_else(expected)?;
    let (id, kind) = rest.split_once(')').ok_or_else(expected)?;
    let kind = AccessKind::from_word(kind.trim()).ok_or_else(expected)?;
    check_id(id)?;
    Ok((id.to_owned(), kind))
}

fn check_id(id: &str) -> Result<(), String> {
    let mut chars = id.chars();
    let starts_well = chars.next().is_some_and(|first| first.is_ascii_lowercase());
    if starts_well && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()) {
        Ok(())
    } else {
        Err(format!(
            "a race's id is a lower-case letter, then letters and digits; found `{id}`"
        ))
    }
}

fn scan_directive(line: u32, directive: &str, comments: &mut Comments, errors: &mut Errors) {
    if let Some(more) = directive.strip_prefix('|') {
        return continue_value(line, more.trim(), comments, errors);
    }
    let Some((key, value)) = directive.split_once(':') else {
        errors.push(
            line,
            format!(
                "expected `key: value`, `race id: title` or `| more text`, found `{directive}`"
            ),
        );
        return;
    };
    let (key, value) = (key.trim(), value.trim());
    if value.is_empty() {
        errors.push(line, format!("`{key}` has no value"));
    }
    if let Some(id) = key.strip_prefix("race ") {
        let id = id.trim();
        if let Err(message) = check_id(id) {
            errors.push(line, message);
        }
        if comments.races.iter().any(|race| race.id == id) {
            errors.push(line, format!("race `{id}` is described twice"));
        }
        let fields = Fields {
            line,
            ..Fields::default()
        };
        comments.races.push(RaceFields {
            id: id.to_owned(),
            title: value.to_owned(),
            fields,
        });
        return;
    }
    let (fields, known, owner) = match comments.races.last_mut() {
        Some(race) => (&mut race.fields, RACE_KEYS, "a race"),
        None => (&mut comments.program, PROGRAM_KEYS, "a program"),
    };
    let Some(key) = known.iter().copied().find(|&name| name == key) else {
        errors.push(
            line,
            format!(
                "`{key}` is not a key of {owner}; its keys are {}",
                known.join(", ")
            ),
        );
        return;
    };
    if fields
        .values
        .insert(key, (line, value.to_owned()))
        .is_some()
    {
        errors.push(line, format!("`{key}` is given twice"));
    }
    fields.last = Some(key);
}

fn continue_value(line: u32, more: &str, comments: &mut Comments, errors: &mut Errors) {
    let fields = match comments.races.last_mut() {
        Some(race) => &mut race.fields,
        None => &mut comments.program,
    };
    match fields.last.and_then(|key| fields.values.get_mut(key)) {
        Some((_, value)) => {
            value.push(' ');
            value.push_str(more);
        }
        None => errors.push(line, "`|` continues a value, but there is none before it"),
    }
}

// --- Comments -> truth -------------------------------------------------------------------------

impl Fields {
    fn optional(&self, key: &str) -> Option<&(u32, String)> {
        self.values.get(key)
    }

    fn required(&self, key: &str, errors: &mut Errors) -> Option<&(u32, String)> {
        let value = self.values.get(key);
        if value.is_none() {
            errors.push(self.line, format!("`{key}` is missing"));
        }
        value
    }

    fn forbid(&self, key: &str, why: &str, errors: &mut Errors) {
        if let Some((line, _)) = self.values.get(key) {
            errors.push(*line, format!("`{key}` {why}"));
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        self.optional(key).map(|(_, value)| value.clone())
    }

    fn words(&self, key: &str) -> Option<Vec<String>> {
        self.text(key)
            .map(|value| value.split_whitespace().map(str::to_owned).collect())
    }
}

/// Reads a value that must be one of a few words.
fn word<T>(
    found: Option<&(u32, String)>,
    from_word: fn(&str) -> Option<T>,
    expected: &str,
    errors: &mut Errors,
) -> Option<T> {
    let (line, value) = found?;
    let parsed = from_word(value);
    if parsed.is_none() {
        errors.push(*line, format!("expected {expected}, found `{value}`"));
    }
    parsed
}

const REPLAYS: &str = "no-state-change, state-change or replay-failure";
const CLASSES: &str = "output-differs, k-witness-harmless, single-ordering or spec-violated with \
                       crash, abort, assertion, exception, deadlock, infinite-loop, memory-error \
                       or property";

fn yes_or_no(value: &str) -> Option<bool> {
    match value {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

fn verdict_from(value: &str) -> Option<bool> {
    match value {
        "racy" => Some(true),
        "race-free" => Some(false),
        _ => None,
    }
}

fn build(comments: Comments, errors: &mut Errors) -> Option<Truth> {
    let Comments {
        program,
        races,
        marks,
    } = comments;
    check_marks(&races, &marks, errors);
    let racy = word(
        program.required("verdict", errors),
        verdict_from,
        "racy or race-free",
        errors,
    );
    let topics = program
        .required("topic", errors)
        .map(|(_, topics)| list(topics));
    let exit = word(
        program.optional("exit"),
        |text| text.parse().ok(),
        "an exit code",
        errors,
    );
    match racy {
        Some(true) => {
            program.required("twin", errors);
            program.forbid("source", "belongs to the races of a racy program", errors);
            if races.is_empty() {
                errors.push(program.line, "a racy program must describe its races");
            }
        }
        Some(false) => {
            program.required("source", errors);
            program.forbid("twin", "makes no sense for a race-free program", errors);
            if let Some(race) = races.first() {
                errors.push(race.fields.line, "a race-free program describes no race");
            }
        }
        None => {}
    }
    let mut built: Vec<Race> = races
        .into_iter()
        .filter_map(|race| build_race(race, &marks, errors))
        .collect();
    built.sort_by(|a, b| a.id.cmp(&b.id));
    check_pairs(&built, &program, errors);
    Some(Truth {
        topics: topics?,
        figure: program.text("figure"),
        args: program.words("args").unwrap_or_default(),
        exit: exit.unwrap_or(0),
        flags: program.words("flags").unwrap_or_default(),
        twin: program.text("twin"),
        source: program.text("source"),
        races: built,
    })
}

fn list(value: &str) -> Vec<String> {
    value
        .split(',')
        .map(|item| item.trim().to_owned())
        .collect()
}

fn check_marks(races: &[RaceFields], marks: &[Access], errors: &mut Errors) {
    for mark in marks {
        if !races.iter().any(|race| race.id == mark.tag) {
            errors.push(
                mark.line,
                format!("race `{}` is marked but not described", mark.tag),
            );
        }
    }
}

/// Two races of the same lines could not be told apart in a report.
fn check_pairs(races: &[Race], program: &Fields, errors: &mut Errors) {
    for (n, race) in races.iter().enumerate() {
        if let Some(twin) = races[..n]
            .iter()
            .find(|other| other.lines() == race.lines())
        {
            let message = format!(
                "races `{}` and `{}` are the same pair of lines",
                twin.id, race.id
            );
            errors.push(program.line, message);
        }
    }
}

fn build_race(race: RaceFields, marks: &[Access], errors: &mut Errors) -> Option<Race> {
    let RaceFields { id, title, fields } = race;
    let accesses: Vec<Access> = marks
        .iter()
        .filter(|mark| mark.tag == id)
        .cloned()
        .collect();
    let marked = check_accesses(&id, fields.line, &accesses, errors);

    let real = word(
        fields.required("real", errors),
        yes_or_no,
        "yes or no",
        errors,
    );
    let observed = word(
        fields.required("observed", errors),
        Observed::from_word,
        "always, maybe or never",
        errors,
    );
    let class = word(
        fields.required("class", errors),
        Class::from_words,
        CLASSES,
        errors,
    );
    let replay = word(
        fields.required("replay", errors),
        ReplayOutcome::from_word,
        REPLAYS,
        errors,
    );
    let or_replay = word(
        fields.optional("or-replay"),
        ReplayOutcome::from_word,
        REPLAYS,
        errors,
    );
    let paper_replay = word(
        fields.optional("paper-replay"),
        ReplayOutcome::from_word,
        REPLAYS,
        errors,
    )
    .or(replay);
    let needs = word(
        fields.required("needs", errors),
        Needs::from_word,
        "none, symbolic-input or weak-memory",
        errors,
    );
    let otherwise = word(
        fields.optional("otherwise"),
        Class::from_words,
        CLASSES,
        errors,
    );
    let or = word(fields.optional("or"), Class::from_words, CLASSES, errors);
    let label = word(
        fields.optional("label"),
        Label::from_word,
        "a kind of benign race",
        errors,
    );
    let only = word(fields.optional("only"), Opt::from_word, "O0 or O2", errors);
    let source = fields
        .required("source", errors)
        .map(|(_, text)| text.clone());

    if needs == Some(Needs::None) {
        fields.forbid(
            "otherwise",
            "is for races that need more than schedules",
            errors,
        );
    }
    if observed == Some(Observed::Always) {
        fields.forbid(
            "reveal",
            "is for races that the program's own arguments do not show",
            errors,
        );
    }
    check_real(real, class, fields.line, errors);
    if !marked {
        return None;
    }
    Some(Race {
        id,
        title,
        real: real?,
        observed: observed?,
        class: class?,
        replay: replay?,
        or_replay,
        paper_replay: paper_replay?,
        needs: needs?,
        otherwise: if needs == Some(Needs::None) {
            class
        } else {
            otherwise
        },
        or,
        label,
        only,
        reveal: fields.words("reveal"),
        source: source?,
        accesses,
    })
}

/// Two accesses that can meet can be swapped, and the other way round.
fn check_real(real: Option<bool>, class: Option<Class>, line: u32, errors: &mut Errors) {
    let (Some(real), Some(class)) = (real, class) else {
        return;
    };
    if real == (class == Class::SingleOrdering) {
        let message = "a race is real (its accesses can meet) exactly if it is not single-ordering";
        errors.push(line, message);
    }
}

fn check_accesses(id: &str, line: u32, accesses: &[Access], errors: &mut Errors) -> bool {
    let problem = match accesses {
        [] => Some(format!(
            "race `{id}` is described but no line is marked with it"
        )),
        [only] if !only.kind.writes() => {
            Some(format!("race `{id}` has one marked line, which only reads"))
        }
        [_] => None,
        [first, second] if first.line == second.line => Some(format!(
            "race `{id}` is marked twice on line {}; one mark says that it races with itself",
            first.line
        )),
        [first, second] if !first.kind.writes() && !second.kind.writes() => {
            Some(format!("race `{id}` has two lines that only read"))
        }
        [_, _] => None,
        more => Some(format!(
            "race `{id}` is a pair of lines, but {} are marked",
            more.len()
        )),
    };
    let good = problem.is_none();
    if let Some(message) = problem {
        errors.push(line, message);
    }
    good
}
