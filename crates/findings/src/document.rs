//! The document that goes from stage to stage.

use serde::{Deserialize, Serialize};

use crate::{CoverageNote, Program, Race, StageStatistics, Thread};

/// Everything known about the races of one program.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct ProgramFindings {
    /// What kind of document this is.
    pub schema: Schema,
    /// Whose races.
    pub program: Program,
    /// The races, in the order in which they were found.
    pub races: Vec<Race>,
    /// Pairs of accesses that did not race in this run and may in another: no lock keeps them apart. They are no races until a
    /// steered run has brought them together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Race>,
    /// The threads that races and predictions name, by id.
    #[serde(default)]
    pub threads: Vec<Thread>,
    /// What was not covered.
    #[serde(default)]
    pub coverage: Vec<CoverageNote>,
    /// What the stages did, in their order.
    #[serde(default)]
    pub stages: Vec<StageStatistics>,
}

/// What kind of document it is. A change that old readers would misunderstand gets a new number.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schema {
    /// The races of a program.
    #[serde(rename = "verdict.races/1")]
    Races1,
    /// The races of a program with verdicts.
    #[serde(rename = "verdict.verdicts/1")]
    Verdicts1,
}

/// Why a document could not be read.
#[derive(thiserror::Error, Debug)]
pub enum ReadError {
    /// It is not JSON, or fields are missing or of another kind.
    #[error("not a list of races or verdicts: {0}")]
    Malformed(#[from] serde_json::Error),
    /// It is of another schema.
    #[error("schema `{found}` is not known; known are `verdict.races/1` and `verdict.verdicts/1`")]
    Schema {
        /// What it says it is.
        found: String,
    },
}

impl ProgramFindings {
    /// No races yet.
    #[must_use]
    pub fn new(schema: Schema, program: Program) -> Self {
        Self {
            schema,
            program,
            races: Vec::new(),
            predictions: Vec::new(),
            threads: Vec::new(),
            coverage: Vec::new(),
            stages: Vec::new(),
        }
    }

    /// One line of JSON, with its line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string(self).expect("these types are always valid JSON");
        json.push('\n');
        json
    }

    /// Reads what [`to_json`](Self::to_json) of this or another version wrote.
    pub fn from_json(json: &[u8]) -> Result<Self, ReadError> {
        /// The schema first, so that a newer document gets the message it deserves.
        #[derive(Deserialize)]
        #[serde(rename = "findings")]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_slice(json)?;
        if serde_json::from_value::<Schema>(head.schema.clone().into()).is_err() {
            let found = head.schema;
            return Err(ReadError::Schema { found });
        }
        Ok(serde_json::from_slice(json)?)
    }

    /// The thread with this id.
    #[must_use]
    pub fn thread(&self, id: u32) -> Option<&Thread> {
        self.threads.iter().find(|thread| thread.id == id)
    }
}
