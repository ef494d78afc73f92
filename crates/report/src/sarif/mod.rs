//! The report on a program as SARIF 2.1.0, for tools that collect results of analyses.
//!
//! A race is one result. Its class is its rule and gives its level; its stable id is its fingerprint; its two accesses are its
//! location and the related one; each order is a code flow in which every thread has a thread flow.

mod flows;
mod location;

use serde_json::{Map, Value, json};
use verdict_findings::{ProgramFindings, Race};
use verdict_history::{Change, Comparison};

use crate::findings_text::ReportOptions;
use crate::ranking::Rank;
use crate::words;
use location::{access_location, message};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The fingerprint under which a race is known from run to run.
const FINGERPRINT: &str = "verdictRaceId/v1";

/// One line of JSON. Suppressed races are in it, marked as such, as the format wants it.
pub fn findings_sarif(findings: &ProgramFindings, options: ReportOptions) -> String {
    let mut races: Vec<&Race> = findings.races.iter().collect();
    races.sort_by_key(|race| Rank::of(race));
    let results: Vec<Value> = races
        .into_iter()
        .map(|race| result(race, findings, options))
        .collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "verdict",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": Rank::ALL.map(rule),
            }},
            "invocations": [invocation(findings)],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    log.to_string() + "\n"
}

fn rule_id(rank: Rank) -> String {
    format!("data-race/{}", rank.word())
}

fn rule(rank: Rank) -> Value {
    json!({
        "id": rule_id(rank),
        "name": rank.word(),
        "shortDescription": {"text": format!("Data race: {}", rank.meaning())},
        "defaultConfiguration": {"level": level(rank)},
        "properties": {"tags": ["concurrency", "data-race"]},
    })
}

pub(crate) fn level(rank: Rank) -> &'static str {
    match rank {
        Rank::SpecViolated => "error",
        Rank::OutputDiffers | Rank::Unclassified => "warning",
        Rank::SingleOrdering | Rank::KWitnessHarmless | Rank::NotReproduced => "note",
    }
}

/// What was not covered belongs to the run, not to a race.
fn invocation(findings: &ProgramFindings) -> Value {
    let notes: Vec<Value> = findings
        .coverage
        .iter()
        .map(|note| {
            let stage = words::sentence(&note.stage);
            json!({"level": "note", "message": message(&format!("not covered: {stage}: {}", words::sentence(&note.what)))})
        })
        .collect();
    json!({
        "executionSuccessful": true,
        "commandLine": words::program(findings),
        "toolExecutionNotifications": notes,
    })
}

fn result(race: &Race, findings: &ProgramFindings, options: ReportOptions) -> Value {
    let rank = Rank::of(race);
    let [first, second] = &race.accesses;
    let mut result = json!({
        "ruleId": rule_id(rank),
        "ruleIndex": Rank::ALL.iter().position(|other| *other == rank),
        "level": level(rank),
        "message": message(&text(race, findings)),
        "locations": [access_location(first, findings)],
        "relatedLocations": [with_id(access_location(second, findings), 1)],
        "codeFlows": flows::code_flows(race, findings),
        "stacks": flows::stacks(race, findings),
        "partialFingerprints": {FINGERPRINT: race.id},
        "occurrenceCount": race.instances.max(1),
        "properties": properties(race, options),
    });
    let fields = result.as_object_mut().expect("it was made as one");
    // The format wants no empty lists here.
    for name in ["codeFlows", "stacks"] {
        if fields[name].as_array().is_some_and(Vec::is_empty) {
            fields.remove(name);
        }
    }
    if let Some(state) = options.since.and_then(|since| baseline(race, since)) {
        fields.insert("baselineState".to_owned(), state.into());
    }
    if let Some(suppression) = race
        .suppressed
        .as_ref()
        .filter(|suppression| !suppression.expired)
    {
        let justification = words::sentence(&suppression.reason);
        let suppression =
            json!([{"kind": "external", "status": "accepted", "justification": justification}]);
        fields.insert("suppressions".to_owned(), suppression);
    }
    result
}

/// The headline, then both sides; the second leads to its place.
fn text(race: &Race, findings: &ProgramFindings) -> String {
    let [first, second] = race.accesses.each_ref().map(|access| {
        let thread = words::thread(findings, access.thread);
        format!(
            "{} by {thread} at {}",
            words::access(access),
            words::place(access)
        )
    });
    let headline = words::headline(race);
    format!(
        "{headline}. Race on {}: {first}; {second}.",
        words::variable_name(race)
    )
}

fn with_id(mut location: Value, id: u32) -> Value {
    location["id"] = id.into();
    location
}

/// What the rest of the format has no place for.
fn properties(race: &Race, options: ReportOptions) -> Value {
    let mut bag = Map::new();
    bag.insert("conflict".to_owned(), race.conflict.word().into());
    bag.insert("instances".to_owned(), race.instances.into());
    bag.insert("foundBy".to_owned(), json!(race.found_by));
    bag.insert("variable".to_owned(), json!(race.variable));
    if let Some(verdict) = &race.verdict {
        bag.insert("confirmed".to_owned(), json!(verdict.confirmed));
        bag.insert(
            "consequence".to_owned(),
            json!(verdict.consequence.as_ref().map(|is| is.kind.word())),
        );
        bag.insert("k".to_owned(), json!(verdict.k));
        bag.insert("label".to_owned(), json!(verdict.label));
        let commands = words::replay_commands(race, options.folder);
        let commands: Vec<String> = commands.into_iter().map(|(command, _)| command).collect();
        bag.insert("replay".to_owned(), json!(commands));
    }
    Value::Object(bag)
}

fn baseline(race: &Race, since: &Comparison) -> Option<&'static str> {
    Some(match since.changes.get(&race.id)? {
        Change::New => "new",
        Change::StillThere => "unchanged",
        Change::Worse { .. } | Change::Better { .. } => "updated",
    })
}
