//! What the journal is made of.

use crate::codec::{Codec, Element, Expected, Input, codec_enum, codec_struct};
use crate::{End, FileIdentity, Header};

/// An entry and when it happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stamped {
    /// Instructions that all threads together had retired.
    pub at: u64,
    /// What happened.
    pub entry: Entry,
}

/// Something that the execution does not repeat by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// From here on this thread runs.
    Switch {
        /// Numbered from 0 in the order of creation.
        thread: u32,
        /// The one before was stopped in the middle; otherwise it waited, ended or offered the processor.
        preempted: bool,
    },
    /// A system call that was answered from outside.
    Call {
        /// Its number.
        number: u32,
        /// [`crate::digest_words`] of its arguments: another call, or other arguments, is a divergence.
        args_digest: u32,
        /// What it returned: negative is an error number.
        result: i64,
        /// The memory it wrote.
        writes: Vec<MemoryWrite>,
        /// What it put out.
        output: Option<Output>,
    },
    /// A system call that could not be answered at once: the thread waits.
    Block {
        /// Its number.
        number: u32,
        /// As in [`Entry::Call`].
        args_digest: u32,
        /// What for.
        wait: WaitKind,
        /// When it gives up, on the guest's monotonic clock.
        deadline: Option<u64>,
        /// Bytes that it had already transferred.
        progress: u64,
    },
    /// A waiting thread could go on because of the outside.
    Wake {
        /// Which one.
        thread: u32,
    },
    /// A signal arrived from outside.
    Signal {
        /// Which one.
        number: i32,
        /// Its `si_code`.
        code: i32,
        /// Who sent it.
        pid: i32,
        /// Their user.
        uid: u32,
        /// Its `si_value`.
        value: u64,
        /// The thread it was meant for; `None` for the process.
        thread: Option<u32>,
    },
    /// The guest's clock was set because of the outside.
    Clock {
        /// What it shows from here on.
        monotonic_ns: u64,
    },
    /// A file was mapped.
    Map {
        /// Which one.
        file: FileId,
        /// Where to.
        address: u64,
        /// What is at the first address, as an offset in the file.
        offset: u64,
        /// How much.
        len: u64,
    },
    /// A file that is mapped after this, or was before the first instruction.
    File {
        /// How later entries name it.
        id: FileId,
        /// What it must be for a replay.
        identity: FileIdentity,
    },
    /// A part of an attached file. Parts follow each other from offset 0; all of them come before what uses them.
    Contents {
        /// Whose.
        file: FileId,
        /// Where in the file.
        offset: u64,
        /// What is there.
        bytes: Vec<u8>,
    },
    /// The running thread's next instruction finds this in memory, whatever others have written there since: it had
    /// loaded it before them, and stores after them.
    Memory {
        /// What it finds.
        write: MemoryWrite,
    },
    /// The running thread is about to free a block, and frees another one, or none, in its place: the block is withheld from
    /// the allocator.
    Withheld {
        /// The block that it was to free.
        block: u64,
        /// What it frees instead; 0 is nothing.
        instead: u64,
    },
    /// The program was replaced by another. Always the last entry of its frame.
    Exec {
        /// The new one.
        header: Box<Header>,
    },
    /// The execution ended, or the recording of it. Always the last entry; a recording without it is cut.
    End {
        /// How.
        end: Box<End>,
    },
}

/// What a system call waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WaitKind {
    /// A descriptor becoming ready.
    #[default]
    Descriptors,
    /// A child process changing state.
    Child,
    /// A while, before it tries again.
    Retry,
}

/// A file of a program of this recording, numbered from 0. Numbers begin anew with [`Entry::Exec`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FileId(pub u32);

/// Memory that a system call wrote.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemoryWrite {
    /// Where.
    pub address: u64,
    /// What.
    pub bytes: Vec<u8>,
}

/// What a system call put out. The bytes themselves are not kept: a replay makes them again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Output {
    /// 1 is standard output, 2 is standard error, 0 is anything else.
    pub stream: u8,
    /// How many bytes.
    pub len: u64,
    /// [`crate::digest()`] of them.
    pub digest: u64,
}

impl Entry {
    /// Its kind, for people.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Switch { .. } => "switch",
            Self::Call { .. } => "call",
            Self::Block { .. } => "block",
            Self::Wake { .. } => "wake",
            Self::Signal { .. } => "signal",
            Self::Clock { .. } => "clock",
            Self::Map { .. } => "map",
            Self::File { .. } => "file",
            Self::Contents { .. } => "contents",
            Self::Memory { .. } => "memory",
            Self::Withheld { .. } => "withheld",
            Self::Exec { .. } => "exec",
            Self::End { .. } => "end",
        }
    }
}

codec_enum!(Entry, "an entry" {
    1 => Switch { thread, preempted },
    2 => Call { number, args_digest, result, writes, output },
    3 => Block { number, args_digest, wait, deadline, progress },
    4 => Wake { thread },
    5 => Signal { number, code, pid, uid, value, thread },
    6 => Clock { monotonic_ns },
    7 => Map { file, address, offset, len },
    8 => File { id, identity },
    9 => Contents { file, offset, bytes },
    10 => Exec { header },
    11 => End { end },
    12 => Memory { write },
    13 => Withheld { block, instead },
});
codec_enum!(WaitKind, "a wait" { 0 => Descriptors {}, 1 => Child {}, 2 => Retry {} });
codec_struct!(Output {
    stream,
    len,
    digest
});

codec_struct!(MemoryWrite { address, bytes });

impl Element for MemoryWrite {}

impl Codec for FileId {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        u32::decode(input).map(Self)
    }
}
