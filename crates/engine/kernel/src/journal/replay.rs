//! Replaying: the recording stands in for the outside.

use super::Recorder;
use super::files::ReplayFiles;
use crate::syscall_name;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use verdict_recording::{
    End, EndOutcome, Ending, Entry, Header, OutputDigest, Reader, Stamped, Writer, WriterOptions,
};

/// A replay that does something else than was recorded: a bug of the engine, or of who changed the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// Instructions retired when it was noticed.
    pub retired: u64,
    /// What was recorded.
    pub recorded: String,
    /// What the replay did.
    pub replayed: String,
}

/// Where a recording ends before its execution does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayEnd {
    /// Instructions retired there.
    pub retired: u64,
    /// Why the replay goes no further.
    pub why: String,
    /// It is the recording that goes no further; otherwise something that it needs is not there.
    pub cut: bool,
}

/// Why the file has no more entries.
#[derive(Debug)]
enum Exhausted {
    Complete,
    Cut(String),
}

/// True if the execution went on after the recording had ended.
fn is_cut(end: &End) -> bool {
    matches!(end.outcome, EndOutcome::SizeLimit { .. })
}

/// Follows a recording.
#[derive(Debug)]
pub struct Replayer {
    reader: Reader<File>,
    /// Entries read ahead.
    ahead: VecDeque<Stamped>,
    /// Set when the file has no more.
    exhausted: Option<Exhausted>,
    pub(crate) outputs: [OutputDigest; 3],
    pub(crate) files: ReplayFiles,
    show_output: bool,
    /// A recording that was cut says here how far it goes.
    ahead_until: u64,
    divergence: Option<Divergence>,
    end: Option<ReplayEnd>,
    /// Set where the guest replaces its program.
    next_program: Option<Header>,
}

impl Replayer {
    /// Begins after the header.
    pub fn new(reader: Reader<File>, show_output: bool) -> Self {
        Replayer {
            reader,
            ahead: VecDeque::new(),
            exhausted: None,
            outputs: std::array::from_fn(|_| OutputDigest::new()),
            files: ReplayFiles::default(),
            show_output,
            ahead_until: 0,
            divergence: None,
            end: None,
            next_program: None,
        }
    }

    /// A recording of its own for an execution that leaves this one here: it begins with everything up to this moment.
    pub fn recorder_from_here(&self, path: &Path) -> std::io::Result<Recorder> {
        let other = std::io::Error::other::<String>;
        // Opened anew: the descriptor's offset is shared with whoever follows the recording.
        let source = File::open(format!(
            "/proc/self/fd/{}",
            self.reader.source().as_raw_fd()
        ))?;
        let mut reader = Reader::open(source).map_err(|error| other(error.to_string()))?;
        let copy = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        let options = WriterOptions { max_size: None };
        let mut writer = Writer::new(copy, reader.header(), options)
            .map_err(|error| other(error.to_string()))?;
        let taken = self.reader.entries_read() - self.ahead.len() as u64;
        for _ in 0..taken {
            let next = reader.next().map_err(|error| other(error.to_string()))?;
            let Some(Stamped { at, entry }) = next else {
                return Err(other("the recording is shorter than it was".into()));
            };
            let _room = writer
                .append(at, &entry)
                .map_err(|error| other(error.to_string()))?;
        }
        let next_file = self.files.last().map_or(0, |last| last.0 + 1);
        Ok(Recorder::going_on(writer, self.outputs.clone(), next_file))
    }

    /// The first difference between what was recorded and what is replayed.
    pub fn divergence(&self) -> Option<&Divergence> {
        self.divergence.as_ref()
    }

    /// Set when there is nothing left to follow.
    pub fn end(&self) -> Option<&ReplayEnd> {
        self.end.as_ref()
    }

    /// Takes note of a difference; only the first one counts.
    pub fn diverge(&mut self, retired: u64, recorded: String, replayed: String) {
        self.divergence.get_or_insert(Divergence {
            retired,
            recorded,
            replayed,
        });
    }

    /// True if the program is replaced by another one here.
    pub(crate) fn is_replaced(&mut self, retired: u64) -> bool {
        match self.take_if(retired, |entry| matches!(entry, Entry::Exec { .. })) {
            Some(Entry::Exec { header }) => {
                self.next_program = Some(*header);
                true
            }
            _ => false,
        }
    }

    /// The program that replaces the current one, in this very executor: what follows is about it.
    pub fn take_next_program(&mut self) -> Option<Header> {
        self.outputs = std::array::from_fn(|_| OutputDigest::new());
        self.files = ReplayFiles::default();
        self.next_program.take()
    }

    /// The contents of the first `count` files of a program that has just begun.
    pub fn take_attached(&mut self, count: usize) -> std::io::Result<Vec<File>> {
        use std::os::unix::fs::FileExt;
        let mut files = Vec::new();
        for _ in 0..count {
            files.push(super::attached_file()?);
        }
        let ours = |entry: &Entry| matches!(entry, Entry::Contents { file, .. } if (file.0 as usize) < count);
        while let Some(at) = self.peek().map(|next| next.at)
            && let Some(Entry::Contents {
                file,
                offset,
                bytes,
            }) = self.take_if(at, ours)
        {
            files[file.0 as usize].write_all_at(&bytes, offset)?;
        }
        Ok(files)
    }

    /// Reads one more entry; false if there is none.
    fn read_ahead(&mut self) -> bool {
        // What follows a replaced program is for the executor of the next one.
        let replaced = |last: &Stamped| matches!(last.entry, Entry::Exec { .. });
        if self.exhausted.is_some() || self.ahead.back().is_some_and(replaced) {
            return false;
        }
        match self.reader.next() {
            Ok(Some(Stamped {
                at,
                entry: Entry::End { end },
            })) if is_cut(&end) => {
                self.exhausted = Some(Exhausted::Cut(format!("it was {end}")));
                self.ahead_until = at;
                false
            }
            Ok(Some(entry)) => {
                self.ahead.push_back(entry);
                true
            }
            Ok(None) => {
                self.exhausted = Some(match self.reader.ending() {
                    Some(Ending::Complete(_)) => Exhausted::Complete,
                    _ => Exhausted::Cut("its writer was stopped".into()),
                });
                false
            }
            Err(error) => {
                self.exhausted = Some(Exhausted::Cut(format!("the recording {error}")));
                false
            }
        }
    }

    pub(crate) fn peek(&mut self) -> Option<&Stamped> {
        if self.ahead.is_empty() {
            self.read_ahead();
        }
        self.ahead.front()
    }

    /// Takes the next entry if it belongs to this moment and `wanted` accepts it.
    pub(crate) fn take_if(
        &mut self,
        retired: u64,
        wanted: impl Fn(&Entry) -> bool,
    ) -> Option<Entry> {
        let next = self.peek()?;
        if next.at != retired || !wanted(&next.entry) {
            return None;
        }
        self.ahead.pop_front().map(|stamped| stamped.entry)
    }

    /// The next moment, at most `horizon` instructions away, at which the running thread must be stopped: a switch that
    /// it did not ask for, another thread that can go on (its turn was over, and it got another one), a signal from
    /// outside, a block that is not freed, or the end of a recording that was cut.
    pub fn next_stop(&mut self, retired: u64, horizon: u64) -> Option<u64> {
        let limit = retired.saturating_add(horizon);
        let mut index = 0;
        loop {
            if index == self.ahead.len() && !self.read_ahead() {
                let complete = !matches!(self.exhausted, Some(Exhausted::Cut(_)));
                let last = self.ahead.back().map_or(self.ahead_until, |last| last.at);
                let last = last.max(self.ahead_until).max(retired);
                return (!complete).then_some(last);
            }
            let next = &self.ahead[index];
            if next.at > limit {
                return None;
            }
            let stops = match &next.entry {
                Entry::Switch { preempted, .. } => *preempted,
                Entry::Wake { .. } | Entry::Signal { .. } | Entry::Withheld { .. } => true,
                Entry::End { end } => end.outcome == EndOutcome::Limit,
                _ => false,
            };
            if stops {
                return Some(next.at);
            }
            index += 1;
        }
    }

    /// True if another thread runs from here on, or could.
    pub fn switches_at(&mut self, retired: u64) -> bool {
        let mut index = 0;
        // Time may have passed before the switch, while nobody who could run was let.
        while index < self.ahead.len() || self.read_ahead() {
            let next = &self.ahead[index];
            match next.entry {
                Entry::Clock { .. } if next.at == retired => index += 1,
                Entry::Switch { preempted, .. } => {
                    return next.at == retired && (index == 0 || preempted);
                }
                Entry::Wake { .. } => return next.at == retired && index == 0,
                _ => return false,
            }
        }
        false
    }

    /// True if the recording says that the execution ends here, in this way.
    pub fn ends_at(&mut self, retired: u64, outcome: &EndOutcome) -> bool {
        self.peek().is_some_and(|next| {
            next.at == retired
                && matches!(&next.entry, Entry::End { end } if end.outcome == *outcome)
        })
    }

    /// True if the recording has something that should have happened before.
    pub fn is_behind(&mut self, retired: u64) -> bool {
        self.peek().is_some_and(|next| next.at < retired)
    }

    /// True if the recording was cut here.
    pub fn is_over(&mut self, retired: u64) -> bool {
        let last = self.peek().is_none();
        last && retired >= self.ahead_until && !matches!(self.exhausted, Some(Exhausted::Complete))
    }

    /// The guest has ended: so it must have then, at the same instruction, with the same output.
    pub fn compare_end(&mut self, outcome: &EndOutcome, retired: u64, threads: &[u64]) {
        let Some(entry) = self.take_if(retired, |entry| matches!(entry, Entry::End { .. })) else {
            return self.stuck(retired, &format!("the guest ended: {outcome:?}"));
        };
        let Entry::End { end } = entry else {
            unreachable!("just matched")
        };
        let outputs = [0, 1, 2].map(|stream: usize| self.outputs[stream].sum());
        if end.outcome != *outcome || end.threads != threads || end.outputs != outputs {
            let recorded = format!(
                "{end}, threads {:?}, outputs {:?}",
                end.threads, end.outputs
            );
            let replayed = format!("{outcome:?}, threads {threads:?}, outputs {outputs:?}");
            self.diverge(retired, recorded, replayed);
        }
    }

    /// The thread that runs from here on, if another one does.
    pub fn switch(&mut self, retired: u64) -> Option<u32> {
        let entry = self.take_if(retired, |entry| matches!(entry, Entry::Switch { .. }))?;
        let Entry::Switch { thread, .. } = entry else {
            unreachable!("just matched")
        };
        Some(thread)
    }

    /// Called where the replay cannot go on without an entry: says why there is none.
    pub fn stuck(&mut self, retired: u64, replayed: &str) {
        let described = self.peek().map(describe);
        match described {
            Some(recorded) => self.diverge(retired, recorded, replayed.to_string()),
            None => {
                let why = match &self.exhausted {
                    Some(Exhausted::Cut(why)) => why.clone(),
                    _ => {
                        let recorded = "the end of the execution".to_string();
                        return self.diverge(retired, recorded, replayed.to_string());
                    }
                };
                self.end.get_or_insert(ReplayEnd {
                    retired,
                    why,
                    cut: true,
                });
            }
        }
    }

    /// Takes note of the files that the recording tells of at this moment.
    pub(crate) fn learn_files(&mut self, retired: u64) -> std::io::Result<()> {
        let about = |entry: &Entry| matches!(entry, Entry::File { .. } | Entry::Contents { .. });
        while let Some(entry) = self.take_if(retired, about) {
            self.files.learn(entry)?;
        }
        Ok(())
    }

    /// The replay cannot go on from here.
    pub(crate) fn end_here(&mut self, retired: u64, why: String) {
        self.end.get_or_insert(ReplayEnd {
            retired,
            why,
            cut: false,
        });
    }

    /// True if the user wants to see the guest's output.
    pub(crate) fn shows_output(&self) -> bool {
        self.show_output
    }
}

/// An entry in words, for who has to understand a divergence.
pub(crate) fn describe(next: &Stamped) -> String {
    let what = match &next.entry {
        Entry::Switch { thread, .. } => format!("a switch to thread {thread}"),
        Entry::Call { number, result, .. } => {
            format!(
                "{} that returned {result}",
                syscall_name(u64::from(*number))
            )
        }
        Entry::Block { number, .. } => {
            format!("{} that had to wait", syscall_name(u64::from(*number)))
        }
        Entry::Wake { thread } => format!("thread {thread} waking up"),
        Entry::Signal { .. } => "a signal from outside".to_string(),
        Entry::Clock { .. } => "a jump of the clock".to_string(),
        Entry::Memory { .. } => "an update in two halves".to_string(),
        Entry::Withheld { .. } => "a freed block that was withheld".to_string(),
        Entry::Map { .. } => "a file mapped into memory".to_string(),
        Entry::End { .. } => "the end of the execution".to_string(),
        _ => "something else".to_string(),
    };
    format!("{what} at instruction {}", next.at)
}
