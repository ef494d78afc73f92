//! The report of one detector, for programs: schema `verdict.detect/1`.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use verdict_detect::{Findings, PairBy, Race, Side};
use verdict_events::Names;

/// One line of JSON.
pub fn detect_json(findings: &Findings, by: PairBy, names: &dyn Names) -> String {
    let report = Report {
        schema: "verdict.detect/1",
        algorithm: findings.algorithm.name(),
        trace: TraceSize::of(findings),
        races: findings
            .races
            .iter()
            .map(|race| RaceReport::of(race, by, names))
            .collect(),
        locations: Locations { findings, names },
        history: History::of(findings),
    };
    let mut json = serde_json::to_string(&report).expect("a report is always valid JSON");
    json.push('\n');
    json
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    algorithm: &'static str,
    trace: TraceSize,
    races: Vec<RaceReport>,
    locations: Locations<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<History>,
}

#[derive(Serialize)]
pub(crate) struct TraceSize {
    events: u64,
    threads: u64,
    locations: u64,
    segments: u64,
}

impl TraceSize {
    pub(crate) fn of(findings: &Findings) -> TraceSize {
        let verdict_detect::TraceSize {
            events,
            threads,
            locations,
            segments,
        } = findings.trace;
        TraceSize {
            events,
            threads,
            locations,
            segments,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct History {
    segments_max: u64,
    segments_total: u64,
}

impl History {
    pub(crate) fn of(findings: &Findings) -> Option<History> {
        let verdict_detect::HistorySize {
            segments_max,
            segments_total,
        } = findings.history?;
        Some(History {
            segments_max,
            segments_total,
        })
    }
}

#[derive(Serialize)]
struct RaceReport {
    accesses: [AccessReport; 2],
    conflict: String,
    locations: Vec<String>,
    location_count: u64,
    instances: u64,
    first: [u64; 2],
}

#[derive(Serialize)]
struct AccessReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    site: String,
    access: String,
}

impl RaceReport {
    fn of(race: &Race, by: PairBy, names: &dyn Names) -> RaceReport {
        let access = |side: Side| AccessReport {
            thread: (by == PairBy::ThreadAndSite).then(|| names.thread(side.thread)),
            site: names.site(side.site),
            access: side.kind.to_string(),
        };
        RaceReport {
            accesses: race.accesses.map(access),
            conflict: race.conflict.to_string(),
            locations: race
                .locations
                .iter()
                .map(|&addr| names.location(addr))
                .collect(),
            location_count: race.locations.len() as u64,
            instances: race.instances,
            first: race.accesses.map(|side| side.position.0),
        }
    }
}

/// Name and answer of each location, in the order of their addresses.
struct Locations<'a> {
    findings: &'a Findings,
    names: &'a dyn Names,
}

impl Serialize for Locations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.findings.locations.len()))?;
        for &(addr, answer) in &self.findings.locations {
            map.serialize_entry(&self.names.location(addr), &answer.to_string())?;
        }
        map.end()
    }
}
