//! A race: all instances of one unordered pair of sites.

use serde::{Deserialize, Serialize};

use crate::{Excerpt, Frame, Lock, Variable, Verdict, is_default, verdict};

/// A race. The accesses, the address and the stacks are those of its first instance.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Race {
    /// Stays the same when the program is rebuilt and code around the race changes.
    pub id: String,
    /// In the order in which they were executed.
    pub accesses: [Access; 2],
    /// What the second access does to the first.
    pub conflict: Conflict,
    /// What was hit.
    #[serde(default)]
    pub variable: Variable,
    /// Where it was hit, in the recorded run.
    #[serde(default)]
    pub address: u64,
    /// How often, in the recorded run; 0 for a race that was only predicted.
    #[serde(default)]
    pub instances: u64,
    /// The detectors that reported it: `hb`, `hybrid`, `regions`, ...; `exploration` where classification found it.
    #[serde(default)]
    pub found_by: Vec<String>,
    /// Why nothing orders the accesses, in a sentence or two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not_ordered: Option<String>,
    /// Races of the same location and stacks share this: the id of the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Set if the user does not want to hear of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<Suppression>,
    /// What the race is worth, once a stage has asked. In JSON its fields are those of the race itself.
    #[serde(
        flatten,
        deserialize_with = "verdict::if_present",
        skip_serializing_if = "Option::is_none"
    )]
    pub verdict: Option<Verdict>,
}

/// One of the two accesses of a race.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Access {
    /// Which thread; [`ProgramFindings::threads`](crate::ProgramFindings::threads) has its name.
    #[serde(default)]
    pub thread: u32,
    /// What it does.
    pub access: AccessKind,
    /// How many bytes.
    #[serde(default)]
    pub size: u64,
    /// Whether it is an atomic operation.
    #[serde(default)]
    pub atomic: bool,
    /// The function, demangled; of what is inlined, the innermost.
    #[serde(default)]
    pub function: Option<String>,
    /// The source file, as the compiler called it.
    #[serde(default)]
    pub file: Option<String>,
    /// From 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// From 1.
    #[serde(default)]
    pub column: Option<u32>,
    /// The binary.
    #[serde(default)]
    pub module: String,
    /// Where in the binary's file. With the module it is the site.
    #[serde(default)]
    pub offset: u64,
    /// The instructions that the thread had executed before, which is where to stop a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired: Option<u64>,
    /// How the thread came there: the first frame is the access itself.
    #[serde(default)]
    pub stack: Vec<Frame>,
    /// What the thread held.
    #[serde(default)]
    pub locks: Vec<Lock>,
    /// The source around the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Excerpt>,
}

/// What an access does. One that reads and writes counts as a write.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum AccessKind {
    /// It reads.
    #[default]
    Read,
    /// It writes.
    Write,
}

/// What the second access does to the first.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Conflict {
    /// Reads what was written.
    Flow,
    /// Writes over what was read.
    Anti,
    /// Writes over what was written.
    Output,
}

/// Why a race is not reported.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Suppression {
    /// What says so: a file and line, or `marked benign`.
    #[serde(default)]
    pub by: String,
    /// The user's reason.
    #[serde(default)]
    pub reason: String,
    /// The last day it holds, as `2027-01-31`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whether that day has passed: the race is reported again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expired: bool,
}

impl AccessKind {
    /// `read`, `write`
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl Conflict {
    /// The conflict of two accesses, of which one is a write.
    #[must_use]
    pub fn of(first: AccessKind, second: AccessKind) -> Self {
        match (first, second) {
            (AccessKind::Read, _) => Self::Anti,
            (AccessKind::Write, AccessKind::Read) => Self::Flow,
            (AccessKind::Write, AccessKind::Write) => Self::Output,
        }
    }

    /// `flow`, `anti`, `output`
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Anti => "anti",
            Self::Output => "output",
        }
    }
}

impl Race {
    /// A race of which no more is known than this.
    #[must_use]
    pub fn new(id: impl Into<String>, accesses: [Access; 2]) -> Self {
        let conflict = Conflict::of(accesses[0].access, accesses[1].access);
        Self {
            id: id.into(),
            accesses,
            conflict,
            variable: Variable::default(),
            address: 0,
            instances: 0,
            found_by: Vec::new(),
            why_not_ordered: None,
            cluster: None,
            suppressed: None,
            verdict: None,
        }
    }

    /// Whether the user does not want to hear of it.
    #[must_use]
    pub fn is_suppressed(&self) -> bool {
        self.suppressed
            .as_ref()
            .is_some_and(|suppression| !suppression.expired)
    }

    /// The class, if it has been asked for and found.
    #[must_use]
    pub fn class(&self) -> Option<crate::Class> {
        self.verdict.as_ref().and_then(|verdict| verdict.class)
    }
}
