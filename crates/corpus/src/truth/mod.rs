//! The truth of a guest program: what its comments promise about its races.
//!
//! Pure data and a pure parser without dependencies, because the build script compiles these
//! files too: a malformed truth comment must stop the build of every test that uses the corpus.
//! The syntax is described in `programs/README.md`.

mod parse;

use std::fmt;

pub use parse::parse;

/// What a program's comments say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// The program's groups in `programs/README.md`, never empty.
    pub topics: Vec<String>,
    /// The figure or example of a paper that the program restates, such as `portend-plus fig. 14a`.
    pub figure: Option<String>,
    /// The arguments that every run uses unless a race's [`Race::reveal`] says otherwise.
    pub args: Vec<String>,
    /// The exit code of the usual native run.
    pub exit: i32,
    /// More compiler flags, after the optimisation level's own.
    pub flags: Vec<String>,
    /// For a racy program: the race-free program that does the same, as a path below `programs/`.
    pub twin: Option<String>,
    /// For a race-free program: why it is race-free.
    pub source: Option<String>,
    /// The races in order of their ids; empty exactly for a race-free program.
    pub races: Vec<Race>,
}

impl Truth {
    /// Whether the program has no data race in any execution.
    pub fn race_free(&self) -> bool {
        self.races.is_empty()
    }
}

/// One race of a program: a pair of source lines.
///
/// A line pair may be several pairs of instructions (an increment is a load and a store at -O0).
/// The class then is the worst that any of them has, in the order spec-violated, output-differs,
/// single-ordering, k-witness-harmless; the replay outcome likewise, in the order state-change,
/// replay-failure, no-state-change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The name that the marks use: `a` in `RACE(a)`.
    pub id: String,
    /// What races, in a few words.
    pub title: String,
    /// Whether an execution can bring the two accesses next to each other (racefuzzer 2.2), so
    /// that both orders are possible. Where it is false, happens-before may still report the pair
    /// (order made by ad hoc synchronisation) or only an imprecise detector does.
    pub real: bool,
    /// Whether happens-before shows it in a run with [`Truth::args`].
    pub observed: Observed,
    /// What the race can do at worst.
    pub class: Class,
    /// What comparing both orders at the end of their segments shows.
    pub replay: ReplayOutcome,
    /// Another outcome that is right too: which one it is depends on the recorded order.
    pub or_replay: Option<ReplayOutcome>,
    /// The outcome in the paper's own replayer, which cannot leave the recorded path; equal to
    /// `replay` unless stated.
    pub paper_replay: ReplayOutcome,
    /// What the classifier needs, beyond other schedules, to find `class`.
    pub needs: Needs,
    /// The class that a classifier without what is needed gives; `class` if nothing is needed,
    /// none if the race is then not there at all.
    pub otherwise: Option<Class>,
    /// Another class that is right too: the effect of this race cannot be told from that of the
    /// program's other races, or depends on what the schedule does after it.
    pub or: Option<Class>,
    /// The kind of benign race, for the races that are meant to be harmless.
    pub label: Option<Label>,
    /// Set if only the build of this optimisation level has the race.
    pub only: Option<Opt>,
    /// Arguments under which happens-before always shows the race, where `Truth::args` does not.
    pub reveal: Option<Vec<String>>,
    /// Where the truth comes from: a place in a paper or an argument.
    pub source: String,
    /// The marked lines in file order: two, or one if a line races with itself.
    pub accesses: Vec<Access>,
}

impl Race {
    /// The two lines, smaller first; equal for a line that races with itself.
    pub fn lines(&self) -> (u32, u32) {
        let first = self.accesses[0].line;
        (first, self.accesses.last().map_or(first, |last| last.line))
    }

    /// Whether the build of `opt` has the race at all.
    pub fn exists_at(&self, opt: Opt) -> bool {
        self.only.is_none_or(|only| only == opt)
    }

    /// Whether `class` is a right verdict on this race; any of several consequences is.
    pub fn accepts(&self, class: Class) -> bool {
        let fits = |truth: Class| match (truth, class) {
            (Class::SpecViolated(expected), Class::SpecViolated(found)) => found
                .iter()
                .any(|consequence| expected.contains(consequence)),
            _ => truth == class,
        };
        fits(self.class) || self.or.is_some_and(fits)
    }

    /// Whether `outcome` is a right outcome of replaying both orders.
    pub fn accepts_replay(&self, outcome: ReplayOutcome) -> bool {
        self.replay == outcome || self.or_replay == Some(outcome)
    }

    /// Whether every run with [`Truth::args`] of the build of `opt` shows the race.
    pub fn expected_at(&self, opt: Opt) -> bool {
        self.observed == Observed::Always && self.exists_at(opt)
    }
}

/// One marked line of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The line, from 1.
    pub line: u32,
    /// What the line does to the raced memory.
    pub kind: AccessKind,
    /// The race's id, as in the mark.
    pub tag: String,
}

/// Declares an enum whose values have one spelling, in the comments and in the output.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$value_doc])* $value,)* }

        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: &'static [$name] = &[$($name::$value,)*];

            /// The value's spelling.
            pub fn word(self) -> &'static str {
                match self { $($name::$value => $word,)* }
            }

            /// The value that is spelled `word`.
            pub fn from_word(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|value| value.word() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    /// What a line does to the raced memory.
    AccessKind {
        /// It reads.
        Read = "read",
        /// It writes.
        Write = "write",
        /// It reads and writes, in one instruction or in several.
        Update = "update",
    }
}

impl AccessKind {
    /// Whether the line writes the raced memory.
    pub fn writes(self) -> bool {
        self != AccessKind::Read
    }

    /// Whether a detector may report a read (or a write) of this line.
    pub fn allows(self, is_write: bool) -> bool {
        match self {
            AccessKind::Read => !is_write,
            AccessKind::Write => is_write,
            AccessKind::Update => true,
        }
    }
}

words! {
    /// Whether happens-before shows a race in a run with the program's own arguments.
    Observed {
        /// In every run, whatever the schedule.
        Always = "always",
        /// Only under some schedules: a detector may report it and may be silent.
        Maybe = "maybe",
        /// In no run with these arguments.
        Never = "never",
    }
}

words! {
    /// The replay outcome (replay-classification 5.2.1).
    ReplayOutcome {
        /// Both orders leave the same registers and memory.
        NoStateChange = "no-state-change",
        /// They leave different ones.
        StateChange = "state-change",
        /// The other order cannot be replayed.
        ReplayFailure = "replay-failure",
    }
}

words! {
    /// What a classifier needs to find the class.
    Needs {
        /// Other schedules are enough.
        None = "none",
        /// Inputs that the run was not given.
        SymbolicInput = "symbolic-input",
        /// Values that only a weaker memory model lets a read return.
        WeakMemory = "weak-memory",
    }
}

words! {
    /// How a specification is violated.
    Consequence {
        /// A fatal signal other than abort.
        Crash = "crash",
        /// abort(), also a panic that aborts.
        Abort = "abort",
        /// A failed assert().
        Assertion = "assertion",
        /// An uncaught C++ exception or a Rust panic.
        Exception = "exception",
        /// Threads wait for each other for ever.
        Deadlock = "deadlock",
        /// A loop whose exit condition nothing can change any more.
        InfiniteLoop = "infinite-loop",
        /// Heap overflow, use after free, double free, invalid free.
        MemoryError = "memory-error",
        /// A user's predicate is false.
        Property = "property",
    }
}

/// The ways, one or more, in which a race may violate the specification: a race on a freed block
/// may end in a crash or in a report of the guarded allocator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Consequences(u8);

impl Consequences {
    /// Just this one.
    pub fn one(consequence: Consequence) -> Consequences {
        Consequences(1 << consequence as u8)
    }

    /// These and that one.
    #[must_use]
    pub fn with(self, consequence: Consequence) -> Consequences {
        Consequences(self.0 | 1 << consequence as u8)
    }

    /// Whether that one is among them.
    pub fn contains(self, consequence: Consequence) -> bool {
        self.0 & 1 << consequence as u8 != 0
    }

    /// All of them, in the order of [`Consequence::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Consequence> {
        Consequence::ALL
            .iter()
            .copied()
            .filter(move |&consequence| self.contains(consequence))
    }
}

impl fmt::Display for Consequences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.iter().map(Consequence::word).collect();
        f.write_str(&words.join("|"))
    }
}

impl fmt::Debug for Consequences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a race can do (portend-plus section 3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// An order violates the specification, in one of these ways.
    SpecViolated(Consequences),
    /// The output depends on the order.
    OutputDiffers,
    /// Only one order is possible.
    SingleOrdering,
    /// No order makes a difference to the outside.
    KWitnessHarmless,
}

impl Class {
    /// The class without its consequences, as reports spell it.
    pub fn word(self) -> &'static str {
        match self {
            Class::SpecViolated(_) => "spec-violated",
            Class::OutputDiffers => "output-differs",
            Class::SingleOrdering => "single-ordering",
            Class::KWitnessHarmless => "k-witness-harmless",
        }
    }

    /// Reads `output-differs`, `spec-violated crash`, `spec-violated crash|abort`, ...
    pub fn from_words(text: &str) -> Option<Class> {
        if let Some(consequences) = text.strip_prefix("spec-violated ") {
            let mut all = consequences
                .split('|')
                .map(|word| Consequence::from_word(word.trim()));
            let first = Consequences::one(all.next()??);
            let every = all.try_fold(first, |set, next| Some(set.with(next?)));
            return every.map(Class::SpecViolated);
        }
        let plain = [
            Class::OutputDiffers,
            Class::SingleOrdering,
            Class::KWitnessHarmless,
        ];
        plain.into_iter().find(|class| class.word() == text)
    }

    /// How a spec-violated race violates the specification.
    pub fn consequences(self) -> Option<Consequences> {
        match self {
            Class::SpecViolated(consequences) => Some(consequences),
            _ => None,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.consequences() {
            Some(consequences) => write!(f, "{} {consequences}", self.word()),
            None => f.write_str(self.word()),
        }
    }
}

words! {
    /// The kinds of benign race (replay-classification 5.2.4, 5.4).
    Label {
        /// Ad hoc synchronisation without lock instructions.
        UserConstructedSynchronisation = "user-constructed-synchronisation",
        /// An unlocked check that is repeated under the lock.
        DoubleCheck = "double-check",
        /// The read may return the old or the new value.
        BothValuesValid = "both-values-valid",
        /// The write stores what is already there.
        RedundantWrite = "redundant-write",
        /// The accesses use different bits of a word.
        DisjointBits = "disjoint-bits",
        /// Only statistics depend on it.
        Approximate = "approximate",
    }
}

words! {
    /// An optimisation level that the programs are built with.
    Opt {
        /// `-O0 -g`
        O0 = "O0",
        /// `-O2 -g`
        O2 = "O2",
    }
}

/// One mistake in a program's truth comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthError {
    /// The line it was found on, from 1.
    pub line: u32,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for TruthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}
