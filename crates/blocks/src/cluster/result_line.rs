//! What a task found, as it travels.

use serde::{Deserialize, Serialize};
use verdict_detect::{AccessKind, PairBy, Race, RaceSet, Side};
use verdict_events::{Addr, Position, SiteId, ThreadId};

use super::TaskLine;
use crate::record::What;
use crate::run::TaskResult;

const SCHEMA: &str = "verdict.result/1";

/// The result of one task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResultLine {
    schema: String,
    /// Of which plan.
    pub plan: u32,
    /// How many tasks the plan has.
    pub tasks: u64,
    /// Of which task.
    pub task: u64,
    /// Where the block trace is.
    pub blocks: String,
    /// The checksum of its index.
    pub index: u32,
    per_thread: bool,
    races: Vec<RaceLine>,
    racy: Vec<u32>,
    /// Of all the above.
    checksum: u32,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct RaceLine {
    first: [SideLine; 2],
    locations: Vec<u64>,
    instances: u64,
}

/// Thread, what is done where, position.
type SideLine = (u32, u32, u64);

impl ResultLine {
    pub(crate) fn new(task: &TaskLine, result: TaskResult) -> ResultLine {
        let races = result.races.into_races();
        let mut line = ResultLine {
            schema: SCHEMA.to_owned(),
            plan: task.plan,
            tasks: task.tasks,
            task: task.task.number,
            blocks: task.blocks.clone(),
            index: task.index,
            per_thread: task.per_thread,
            races: races.iter().map(race_line).collect(),
            racy: result.racy,
            checksum: 0,
        };
        line.checksum = line.sum();
        line
    }

    pub(crate) fn to_json(&self) -> String {
        let mut json = serde_json::to_string(self).expect("numbers can always be written");
        json.push('\n');
        json
    }

    /// Reads a line; the error says what is wrong with it.
    pub fn from_json(line: &str) -> Result<ResultLine, String> {
        let result: ResultLine = serde_json::from_str(line)
            .map_err(|error| format!("expected a result, found none: {error}"))?;
        if result.schema != SCHEMA {
            return Err(format!("expected schema {SCHEMA}, found {}", result.schema));
        }
        if result.checksum != result.sum() {
            return Err("the checksum does not match: the result is damaged".to_owned());
        }
        let sides = result.races.iter().flat_map(|race| race.first);
        if sides.into_iter().any(|(_, what, _)| !What(what).is_valid())
            || result.races.iter().any(|race| race.locations.is_empty())
        {
            return Err("expected races that can be".to_owned());
        }
        Ok(result)
    }

    fn sum(&self) -> u32 {
        let whole = ResultLine {
            checksum: 0,
            ..self.clone()
        };
        crc32fast::hash(whole.to_json().as_bytes())
    }

    pub(crate) fn by(&self) -> PairBy {
        match self.per_thread {
            true => PairBy::ThreadAndSite,
            false => PairBy::Site,
        }
    }

    pub(crate) fn into_result(self) -> TaskResult {
        let mut result = TaskResult::new(self.by());
        for race in &self.races {
            add_race(&mut result.races, race);
        }
        result.racy = self.racy;
        result
    }

    /// The last unit that it speaks of.
    pub(crate) fn last_unit(&self) -> Option<u32> {
        self.racy.iter().max().copied()
    }
}

fn race_line(race: &Race) -> RaceLine {
    let side = |side: Side| {
        let what = What::new(side.site, side.kind);
        (side.thread.0, what.0, side.position.0)
    };
    RaceLine {
        first: race.accesses.map(side),
        locations: race.locations.iter().map(|addr| addr.0).collect(),
        instances: race.instances,
    }
}

fn add_race(races: &mut RaceSet, race: &RaceLine) {
    let side = |(thread, what, position): SideLine| {
        let (site, kind): (SiteId, AccessKind) = (What(what).site(), What(what).kind());
        Side {
            thread: ThreadId(thread),
            site,
            kind,
            position: Position(position),
        }
    };
    let [earlier, later] = race.first.map(side);
    for (nth, &location) in race.locations.iter().enumerate() {
        let instances = if nth == 0 { race.instances } else { 0 };
        races.add(earlier, later, Addr(location), instances);
    }
}
