//! What is said of a race in every report, in plain words.
//!
//! Names of the program are made fit for one line here, so that no report can forget to.

use verdict_findings::{
    Access, AccessKind, Consequence, ConsequenceKind, Frame, Label, Lock, LockMode,
    OutputDifference, OutputPiece, ProgramFindings, Race, Variable, VariableKind, Verdict,
    WhichOrder, bytes_of_text,
};

use crate::plain::{name, one_line, shortened};
use crate::ranking::Rank;
use crate::text::{count, number};

/// What happens to the program, in a sentence without a full stop.
#[must_use]
pub fn headline(race: &Race) -> String {
    match (Rank::of(race), &race.verdict) {
        (Rank::SpecViolated, Some(verdict)) => violation(race, verdict),
        (Rank::OutputDiffers, Some(verdict)) => match &verdict.output_difference {
            Some(difference) => output_differs(difference),
            None => format!(
                "the output depends on who is first at {}",
                variable_name(race)
            ),
        },
        (Rank::SingleOrdering, Some(verdict)) => match &verdict.ordered_by {
            Some(by) => format!("only one order: {}", sentence(by)),
            None => format!(
                "only one order of the accesses to {} is possible",
                variable_name(race)
            ),
        },
        (Rank::KWitnessHarmless, Some(verdict)) => harmless(verdict),
        (Rank::NotReproduced, Some(verdict)) => not_reproduced(race, verdict),
        _ => meeting(race),
    }
}

fn violation(race: &Race, verdict: &Verdict) -> String {
    let Some(consequence) = &verdict.consequence else {
        return "an order violates the specification".to_owned();
    };
    let mut text = consequence_words(consequence.kind).to_owned();
    if !consequence.detail.is_empty() {
        text.push_str(&format!(": {}", sentence(&consequence.detail)));
    }
    // What went wrong in a library went wrong because of its caller.
    let module = &race.accesses[0].module;
    let stack = &consequence.stack;
    let own = stack.iter().find(|frame| frame.module == *module);
    if let Some(place) = own.or(stack.first()) {
        text.push_str(&format!(", in {}", frame(place)));
    }
    text
}

fn output_differs(difference: &OutputDifference) -> String {
    const PIECE_CHARS_MAX: usize = 40;
    let first_line = |text: &str| {
        let line = text.lines().next().unwrap_or("");
        match line {
            "" => "nothing".to_owned(),
            line => format!("`{}`", shortened(&one_line(line), PIECE_CHARS_MAX)),
        }
    };
    let what = if difference.only_interleaving {
        "writes in another order"
    } else {
        "writes"
    };
    let (primary, alternate) = (&difference.primary.text, &difference.alternate.text);
    format!(
        "{what} {} or {}",
        first_line(primary),
        first_line(alternate)
    )
}

/// Where the program itself wrote something; `None` where that was left to a library, which does it when the program ends.
pub(crate) fn writer(race: &Race, piece: &OutputPiece) -> Option<String> {
    let module = &race.accesses[0].module;
    let own: Vec<Frame> = piece
        .stack
        .iter()
        .filter(|frame| frame.module == *module && frame.file.is_some())
        .cloned()
        .collect();
    telling(&own).map(frame)
}

fn harmless(verdict: &Verdict) -> String {
    let tried = match verdict.k {
        Some(k) => format!("no difference seen in {}", count(k.into(), "run")),
        None => "no difference seen".to_owned(),
    };
    match verdict.label {
        Some(label) => format!("{tried}: {}", label_words(label)),
        None => tried,
    }
}

fn not_reproduced(race: &Race, verdict: &Verdict) -> String {
    let confirmation = verdict.confirmation.as_ref();
    match confirmation.and_then(|confirmation| confirmation.refuted.as_ref()) {
        Some(why) => format!("cannot happen: {}", sentence(why)),
        None => {
            let runs = confirmation.map_or(0, |confirmation| confirmation.runs);
            format!(
                "predicted on {}, not seen in {}",
                variable_name(race),
                count(runs, "run")
            )
        }
    }
}

/// Of a race of which nobody knows what it does.
fn meeting(race: &Race) -> String {
    let [first, second] = &race.accesses;
    format!(
        "{} {} {} and {} {} it, in any order",
        thread_number(first.thread),
        verb(first.access),
        variable_name(race),
        thread_number(second.thread),
        verb(second.access),
    )
}

/// `reads`, `writes`
pub(crate) fn verb(access: AccessKind) -> &'static str {
    match access {
        AccessKind::Read => "reads",
        AccessKind::Write => "writes",
    }
}

pub(crate) fn consequence_words(kind: ConsequenceKind) -> &'static str {
    match kind {
        ConsequenceKind::Crash => "crash",
        ConsequenceKind::Abort => "abort",
        ConsequenceKind::Assertion => "failed assertion",
        ConsequenceKind::Exception => "uncaught exception",
        ConsequenceKind::Deadlock => "deadlock",
        ConsequenceKind::Hang => "hang",
        ConsequenceKind::InfiniteLoop => "infinite loop",
        ConsequenceKind::MemoryError => "memory error",
        ConsequenceKind::Property => "property violated",
        ConsequenceKind::ExitCode => "other exit code",
    }
}

/// Where the block of a memory error was freed and allocated, with a heading each.
pub(crate) fn block_stacks(consequence: &Consequence) -> Vec<(&'static str, &[Frame])> {
    let Some(block) = &consequence.block else {
        return Vec::new();
    };
    let both = [
        ("the block was freed", &block.freed_at[..]),
        ("the block was allocated", &block.allocated_at[..]),
    ];
    let known = both.into_iter().filter(|(_, frames)| !frames.is_empty());
    known.collect()
}

pub(crate) fn label_words(label: Label) -> &'static str {
    match label {
        Label::UserConstructedSynchronisation => "hand-made synchronisation",
        Label::DoubleCheck => "double check, repeated under the lock",
        Label::BothValuesValid => "both values are valid",
        Label::RedundantWrite => "writes what is already there",
        Label::DisjointBits => "different bits of one word",
        Label::Approximate => "only approximate data depends on it",
    }
}

/// A sentence that a stage made: longer than a name may be, but not endless.
pub(crate) fn sentence(text: &str) -> String {
    shortened(&one_line(text), 400)
}

/// `queue->mutex`, or what is known of the memory.
pub(crate) fn variable_name(race: &Race) -> String {
    match &race.variable.name {
        Some(variable) => format!("`{}`", name(variable)),
        None => memory(&race.variable, race.address),
    }
}

/// `16 bytes into a heap block of 96 bytes`, `a variable in the stack frame of consume`
pub(crate) fn memory(variable: &Variable, address: u64) -> String {
    let inside = match variable.offset {
        Some(offset) if offset > 0 => format!("{} into ", count(offset, "byte")),
        _ => String::new(),
    };
    let of_size = variable
        .size
        .map_or(String::new(), |size| format!(" of {}", count(size, "byte")));
    match variable.kind {
        VariableKind::Global => format!("{inside}a global variable{of_size}"),
        VariableKind::Heap => format!("{inside}a heap block{of_size}"),
        VariableKind::ThreadLocal => format!("{inside}a thread-local variable{of_size}"),
        VariableKind::Stack => match &variable.function {
            Some(function) => format!("{inside}the stack frame of {}", name(function)),
            None => match variable.thread {
                Some(thread) => format!("{inside}the stack of {}", thread_number(thread)),
                None => format!("{inside}a stack frame"),
            },
        },
        VariableKind::Unknown => format!("memory at {address:#x}"),
    }
}

/// Everything known of what was hit, on one line.
pub(crate) fn variable(race: &Race) -> String {
    let variable = &race.variable;
    let Some(own_name) = &variable.name else {
        return memory(variable, race.address);
    };
    let mut text = name(own_name);
    if let Some(type_name) = &variable.type_name {
        text.push_str(&format!(", {}", name(type_name)));
    }
    text.push_str(&format!(", {}", memory(variable, race.address)));
    if let Some(file) = &variable.file {
        let line = variable
            .line
            .map_or(String::new(), |line| format!(":{line}"));
        text.push_str(&format!(", declared at {}{line}", name(file)));
    }
    text
}

/// `thread 2`
pub(crate) fn thread_number(id: u32) -> String {
    format!("thread {id}")
}

/// `thread 2 (consumer)`
pub(crate) fn thread(findings: &ProgramFindings, id: u32) -> String {
    let own_name = findings.thread(id).and_then(|thread| thread.name.as_ref());
    match own_name {
        Some(own_name) => format!("{} ({})", thread_number(id), name(own_name)),
        None => thread_number(id),
    }
}

/// `atomic write of 4 bytes`
pub(crate) fn access(access: &Access) -> String {
    let atomic = if access.atomic { "atomic " } else { "" };
    let size = match access.size {
        0 => String::new(),
        size => format!(" of {}", count(size, "byte")),
    };
    format!("{atomic}{}{size}", access.access.word())
}

/// `pipeline.c:52:5`, or `plugin.so+0x1234`
pub(crate) fn place(access: &Access) -> String {
    source_place(access.file.as_deref(), access.line, access.column)
        .unwrap_or_else(|| format!("{}+{:#x}", name(&access.module), access.offset))
}

/// `consume at pipeline.c:52:5`
pub(crate) fn frame(frame: &Frame) -> String {
    let place = source_place(frame.file.as_deref(), frame.line, frame.column)
        .unwrap_or_else(|| format!("{}+{:#x}", name(&frame.module), frame.offset));
    let inlined = if frame.inlined { " (inlined)" } else { "" };
    match &frame.function {
        Some(function) => format!("{} at {place}{inlined}", name(function)),
        None => format!("{place}{inlined}"),
    }
}

/// `pipeline.c:52:5`
pub(crate) fn source_place(
    file: Option<&str>,
    line: Option<u32>,
    column: Option<u32>,
) -> Option<String> {
    let mut text = name(short_file(file?));
    for place in [line, column].into_iter().map_while(|place| place) {
        text.push_str(&format!(":{place}"));
    }
    Some(text)
}

/// A file of Rust's standard library without the name of the compiler's version, which nobody can read.
fn short_file(file: &str) -> &str {
    let version = file.strip_prefix(RUST_SOURCES);
    let inside = version.and_then(|version| version.split_once('/'));
    inside.map_or(file, |(_, inside)| inside)
}

/// Where the sources of Rust's standard library are said to be.
const RUST_SOURCES: &str = "/rustc/";

/// The frame to name where there is room for one: the innermost that is not Rust's own.
pub(crate) fn telling(stack: &[Frame]) -> Option<&Frame> {
    let own = |frame: &&Frame| {
        let file = frame.file.as_deref();
        file.is_none_or(|file| !file.starts_with(RUST_SOURCES))
    };
    stack.iter().find(own).or(stack.first())
}

/// `holding queue.mutex, rwlock (shared)`, or nothing.
pub(crate) fn locks(locks: &[Lock]) -> Option<String> {
    let one = |lock: &Lock| match lock.mode {
        LockMode::Exclusive => name(&lock.name),
        LockMode::Shared => format!("{} (shared)", name(&lock.name)),
    };
    let names: Vec<String> = locks.iter().map(one).collect();
    (!names.is_empty()).then(|| format!("holding {}", names.join(", ")))
}

/// `once`, `1,204 times`, `never in this run`
pub(crate) fn times(instances: u64) -> String {
    match instances {
        0 => "not in this run".to_owned(),
        1 => "once".to_owned(),
        more => format!("{} times", number(more)),
    }
}

/// `confirmed in 97 of 100 runs`
pub(crate) fn confirmation(verdict: &Verdict) -> Option<String> {
    let confirmed = if verdict.confirmed? {
        "confirmed"
    } else {
        "not confirmed"
    };
    Some(match &verdict.confirmation {
        Some(tried) => format!(
            "{confirmed}: together in {} of {}",
            number(tried.hits),
            count(tried.runs, "run")
        ),
        None => confirmed.to_owned(),
    })
}

/// `state-change in 1,200 of 1,204 instances`
pub(crate) fn replay(verdict: &Verdict) -> Option<String> {
    let replay = verdict.replay.as_ref()?;
    let counts = replay.instances;
    let tried = counts.no_state_change + counts.state_change + counts.replay_failure;
    let own = match replay.outcome {
        verdict_findings::ReplayOutcome::NoStateChange => counts.no_state_change,
        verdict_findings::ReplayOutcome::StateChange => counts.state_change,
        verdict_findings::ReplayOutcome::ReplayFailure => counts.replay_failure,
    };
    Some(match tried {
        0 => replay.outcome.word().to_owned(),
        tried => format!(
            "{} in {} of {}",
            replay.outcome.word(),
            number(own),
            count(tried, "instance")
        ),
    })
}

/// What an order is called.
pub(crate) fn order(which: WhichOrder) -> &'static str {
    match which {
        WhichOrder::Primary => "as recorded",
        WhichOrder::Alternate => "the other order",
    }
}

/// The command line of the program, as one would type it.
pub(crate) fn program(findings: &ProgramFindings) -> String {
    let program = &findings.program;
    let words = std::iter::once(&program.path).chain(&program.args);
    words
        .map(|word| name(&shell_word(word)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word that a shell takes as it is meant. It is given as [`text_of_bytes`](verdict_findings::text_of_bytes) makes it.
pub(crate) fn shell_word(word: &str) -> String {
    let bytes = bytes_of_text(word);
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(byte);
    match String::from_utf8(bytes) {
        Ok(text) if !text.is_empty() && text.bytes().all(|byte| plain(&byte)) => text,
        Ok(text) if one_line(&text) == text => format!("'{}'", text.replace('\'', r"'\''")),
        Ok(text) => ansi_quoted(text.as_bytes()),
        Err(error) => ansi_quoted(error.as_bytes()),
    }
}

/// `$'caf\xe9'`: for what cannot be typed.
fn ansi_quoted(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'\'' | b'\\' => format!("\\{}", *byte as char),
        b' '..=b'~' => (*byte as char).to_string(),
        other => format!("\\x{other:02x}"),
    };
    let quoted: String = bytes.iter().map(one).collect();
    format!("$'{quoted}'")
}

/// The commands that show the race again, each with what it shows.
pub(crate) fn replay_commands(race: &Race, folder: &str) -> Vec<(String, String)> {
    let Some(verdict) = &race.verdict else {
        return Vec::new();
    };
    // What shows neither order shows that the accesses met.
    let known = verdict.orders.iter().any(|order| order.evidence.is_some());
    let unnamed = if known { "as confirmed" } else { "" };
    // Nothing comes of what was seen only because somebody looked: the replay has to look, too.
    let consequence = verdict.consequence.as_ref();
    let was_looked_for = consequence.is_some_and(|consequence| consequence.block.is_some());
    verdict
        .evidence
        .iter()
        .enumerate()
        .map(|(nth, file)| {
            let shown = verdict
                .orders
                .iter()
                .find(|order| order.evidence.as_ref() == Some(file));
            let what = shown.map_or(unnamed.to_owned(), |shown| {
                let name = order(shown.order);
                match shown.preemptions {
                    Some(count) => format!("{name}, {}", preemptions(count)),
                    None => name.to_owned(),
                }
            });
            let looks = match nth == 0 && was_looked_for {
                true => "--memory-errors ",
                false => "",
            };
            (replay_command(looks, file, folder), what)
        })
        .collect()
}

/// How many switches have to be understood.
fn preemptions(count: u64) -> String {
    match count {
        0 => "no preemption".to_owned(),
        1 => "1 preemption".to_owned(),
        _ => format!("{count} preemptions"),
    }
}

/// The command that repeats a recording of the result folder, with these options.
pub(crate) fn replay_command(options: &str, file: &str, folder: &str) -> String {
    let path = if folder.is_empty() || folder == "." {
        file.to_owned()
    } else {
        format!("{}/{file}", folder.trim_end_matches('/'))
    };
    format!("verdict replay {options}{}", shell_word(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_rusts_own_sources_the_version_is_left_out_and_frames_are_not_the_ones_to_name() {
        let frame = |file: &str| Frame {
            file: Some(file.to_owned()),
            line: Some(7),
            ..Frame::default()
        };
        let stack = [
            frame("/rustc/59807616e1fa/library/std/src/thread/mod.rs"),
            frame("src/main.rs"),
        ];
        assert_eq!(super::frame(&stack[0]), "library/std/src/thread/mod.rs:7");
        assert_eq!(telling(&stack), Some(&stack[1]));
        assert_eq!(telling(&stack[..1]), Some(&stack[0]));
        assert_eq!(short_file("/rustc/x"), "/rustc/x");
    }

    #[test]
    fn shells_take_words_as_they_are_meant() {
        let words = [
            "a-b.c", "", "in put", "it's", "a\nb'\\", "caf\\xe9", "a\\\\b",
        ];
        let shown = words.map(shell_word);
        let expected = [
            "a-b.c",
            "''",
            "'in put'",
            r"'it'\''s'",
            r"$'a\x0ab\'\\'",
            r"$'caf\xe9'",
            r"'a\b'",
        ];
        assert_eq!(shown, expected);
    }
}
