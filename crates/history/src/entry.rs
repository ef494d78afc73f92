//! What is written into the history.

use serde::{Deserialize, Serialize};

use crate::{Day, Severity};

/// One thing that was said.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(tag = "entry", rename_all = "kebab-case")]
pub enum Entry {
    /// A run found these races.
    Run(Run),
    /// The user said something about a race.
    Mark(Mark),
}

/// A run and what it found.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// When.
    pub day: Day,
    /// The program.
    pub program: String,
    /// Its arguments: other arguments run other code, so that a race that is missing then is not gone.
    #[serde(default)]
    pub args: Vec<String>,
    /// What was found.
    #[serde(default)]
    pub races: Vec<Seen>,
    /// Tells this run from every other. One that is interrupted while it is written down finds itself by it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token: String,
}

/// A race as one run saw it.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Its stable id.
    pub id: String,
    /// What it was thought to be.
    pub severity: Severity,
    /// What was said of it, in a sentence.
    #[serde(default)]
    pub headline: String,
}

/// What the user said about a race.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// When.
    pub day: Day,
    /// Which race.
    pub id: String,
    /// What.
    pub opinion: Opinion,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// The last day it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Day>,
    /// What the race was known to be at that time. When it turns out to be worse, the mark holds no more.
    pub severity: Severity,
}

/// What a user can say about a race.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Opinion {
    /// Leave me alone with it.
    Benign,
    /// Report it: takes an earlier mark back.
    Open,
}
