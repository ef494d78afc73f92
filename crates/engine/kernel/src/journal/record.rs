//! Recording: what came from outside is written down as it comes.

use super::Journal;
use crate::syscalls::{Buffer, Direction, buffers, identity};
use crate::thread::{Call, Wait};
use crate::{Flow, Kernel, SignalInfo};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use verdict_recording::{
    End, EndOutcome, Entry, FileId, FileIdentity, MemoryWrite, Output, OutputDigest, Position,
    Room, WaitKind, WriteError, Writer, WriterOptions, digest, digest_words,
};

/// A file of data up to this size travels inside the recording without being asked for.
const ATTACHED_DATA_MAX: u64 = 8 << 20;
/// Attached files are cut into entries of this size.
const ATTACHED_PIECE: usize = 1 << 20;
/// How much of an execution a crash of the machine may lose.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);

/// Writes a recording. When its size limit is reached the execution goes on without it.
#[derive(Debug)]
pub struct Recorder {
    /// `None` when the recording is finished.
    writer: Option<Writer<File>>,
    max_size: u64,
    attach_files: bool,
    /// What the guest's standard output and error led to at the start.
    streams: [Option<(u64, u64)>; 2],
    outputs: [OutputDigest; 3],
    files: BTreeMap<PathBuf, FileId>,
    /// What the next file is called.
    next_file: u32,
    flushed: Instant,
    failure: Option<String>,
}

impl Recorder {
    /// Goes on with a recording whose header is written.
    pub fn new(writer: Writer<File>, attach_files: bool, max_size: Option<u64>) -> Self {
        Recorder {
            writer: Some(writer),
            max_size: max_size.unwrap_or(u64::MAX),
            attach_files,
            streams: [identity(1), identity(2)],
            outputs: std::array::from_fn(|_| OutputDigest::new()),
            files: BTreeMap::new(),
            next_file: FIRST_MAPPED_FILE,
            flushed: Instant::now(),
            failure: None,
        }
    }

    /// Goes on with what another recording has told until here: these outputs, and files below this number.
    pub(super) fn going_on(
        writer: Writer<File>,
        outputs: [OutputDigest; 3],
        next_file: u32,
    ) -> Self {
        Recorder {
            outputs,
            next_file: next_file.max(FIRST_MAPPED_FILE),
            ..Recorder::new(writer, false, None)
        }
    }

    fn new_file(&mut self) -> FileId {
        self.next_file += 1;
        FileId(self.next_file - 1)
    }

    /// The program is replaced: `exec` says by which, and what follows is about that one.
    pub fn begin_program(&mut self, retired: u64, exec: &Entry) {
        self.files.clear();
        self.next_file = FIRST_MAPPED_FILE;
        self.outputs = std::array::from_fn(|_| OutputDigest::new());
        self.push(retired, exec);
    }

    /// Writes one entry.
    pub fn push(&mut self, retired: u64, entry: &Entry) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        match writer.append(retired, entry) {
            Ok(Room::Left) => {}
            Ok(Room::None) => {
                let max_size = self.max_size;
                let outcome = EndOutcome::SizeLimit { max_size };
                self.finish(outcome, retired, Vec::new());
            }
            Err(error) => self.fail(&error),
        }
    }

    fn fail(&mut self, error: &WriteError) {
        self.failure = Some(error.to_string());
        self.writer = None;
    }

    /// Ends the recording.
    pub fn finish(&mut self, outcome: EndOutcome, instructions: u64, threads: Vec<u64>) {
        let Some(writer) = self.writer.take() else {
            return;
        };
        let end = End {
            outcome,
            instructions,
            threads,
            outputs: [0, 1, 2].map(|stream: usize| self.outputs[stream].sum()),
        };
        if let Err(error) = writer.finish(end) {
            self.fail(&error);
        }
    }

    /// Where the program that replaces this one goes on.
    pub fn position(&mut self) -> Option<Position> {
        match self.writer.as_mut()?.position() {
            Ok(position) => Some(position),
            Err(error) => {
                self.fail(&error);
                None
            }
        }
    }

    /// Everything so far in another file, with a recorder that goes on there.
    fn copy_to(&mut self, path: &Path) -> std::io::Result<Recorder> {
        let writer = self
            .writer
            .as_mut()
            .ok_or_else(|| std::io::Error::other("the recording has ended"))?;
        let position = writer.position().map_err(std::io::Error::other)?;
        let mut copy = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        copy_bytes(writer.sink(), &mut copy, position.byte)?;
        let options = WriterOptions { max_size: None };
        let writer = Writer::resume(copy, position, options).map_err(std::io::Error::other)?;
        Ok(Recorder {
            writer: Some(writer),
            max_size: u64::MAX,
            attach_files: self.attach_files,
            streams: self.streams,
            outputs: self.outputs.clone(),
            files: self.files.clone(),
            next_file: self.next_file,
            flushed: Instant::now(),
            failure: None,
        })
    }

    /// Makes what was written so far survive a crash.
    pub fn flush(&mut self) {
        self.flushed = Instant::now();
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.flush()
        {
            self.fail(&error);
        }
    }

    /// Flushes if the last time was a while ago. The host's clock decides nothing that the guest could see.
    pub fn flush_sometimes(&mut self) {
        if self.flushed.elapsed() > FLUSH_INTERVAL {
            self.flush();
        }
    }

    /// Why nothing more is written.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Which of the user's streams a descriptor leads to: 1, 2, or 0 for none.
    fn stream(&self, fd: i32) -> u8 {
        let Some(now) = identity(fd) else { return 0 };
        let leads = |stream: i32| self.streams[stream as usize - 1] == Some(now);
        match fd {
            1 | 2 if leads(fd) => fd as u8,
            _ if leads(1) => 1,
            _ if leads(2) => 2,
            _ => 0,
        }
    }

    /// Writes down which file is mapped, and what is in it where that may be needed.
    pub(crate) fn file(&mut self, retired: u64, path: &Path, file: &File) -> FileId {
        if let Some(id) = self.files.get(path) {
            return *id;
        }
        let id = self.new_file();
        self.files.insert(path.to_path_buf(), id);
        if let Err(error) = self.describe_file(retired, id, path, file) {
            self.failure = Some(format!("{} cannot be recorded: {error}", path.display()));
            self.writer = None;
        }
        id
    }

    /// Writes down bytes that are mapped and that no file of the host holds: they stand at `offset` of a file of their own.
    pub(crate) fn bytes(&mut self, retired: u64, path: &Path, offset: u64, bytes: &[u8]) -> FileId {
        let id = self.new_file();
        let identity = FileIdentity {
            path: path.as_os_str().as_bytes().to_vec(),
            size: offset + bytes.len() as u64,
            ..FileIdentity::default()
        };
        self.push(retired, &Entry::File { id, identity });
        let mut at = offset;
        for piece in bytes.chunks(ATTACHED_PIECE) {
            self.push(
                retired,
                &Entry::Contents {
                    file: id,
                    offset: at,
                    bytes: piece.to_vec(),
                },
            );
            at += piece.len() as u64;
        }
        id
    }

    fn describe_file(
        &mut self,
        retired: u64,
        id: FileId,
        path: &Path,
        file: &File,
    ) -> std::io::Result<()> {
        let identity = FileIdentity::of(path.as_os_str().as_bytes(), file)?;
        let data = identity.build_id.is_empty() && identity.size <= ATTACHED_DATA_MAX;
        let attach = self.attach_files || data;
        self.push(retired, &Entry::File { id, identity });
        if attach {
            self.attach(retired, id, file)?;
        }
        Ok(())
    }

    /// Puts a file's contents into the recording.
    pub fn attach(&mut self, retired: u64, id: FileId, file: &File) -> std::io::Result<()> {
        use std::os::unix::fs::FileExt;
        let mut offset = 0;
        loop {
            let mut bytes = vec![0; ATTACHED_PIECE];
            let count = file.read_at(&mut bytes, offset)?;
            bytes.truncate(count);
            if count == 0 && offset > 0 {
                return Ok(());
            }
            let piece = Entry::Contents {
                file: id,
                offset,
                bytes,
            };
            self.push(retired, &piece);
            if count == 0 {
                return Ok(());
            }
            offset += count as u64;
        }
    }
}

/// Copies the beginning of a file, wherever its offset is.
fn copy_bytes(from: &File, to: &mut File, len: u64) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    let mut at = 0;
    let mut piece = vec![0; ATTACHED_PIECE];
    while at < len {
        let want = (len - at).min(ATTACHED_PIECE as u64) as usize;
        from.read_exact_at(&mut piece[..want], at)?;
        to.write_all(&piece[..want])?;
        at += want as u64;
    }
    Ok(())
}

/// Files 0 and 1 are the program and its interpreter.
pub(crate) const FIRST_MAPPED_FILE: u32 = 2;

impl Kernel {
    /// In a copy of an execution that is recorded: the recording so far goes on in a file of its own, or not at all.
    pub fn continue_recording(&mut self, path: Option<&[u8]>) -> Result<(), String> {
        let continued = match (&self.journal, path) {
            (Journal::Record(recorder), Some(path)) => {
                let path = Path::new(std::ffi::OsStr::from_bytes(path));
                let copied = recorder.borrow_mut().copy_to(path);
                let recorder = copied
                    .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
                Journal::recording(recorder)
            }
            // It goes on as recorded.
            (Journal::Replay(_), None) => return Ok(()),
            _ => Journal::Live,
        };
        self.journal = continued;
        Ok(())
    }

    /// Performs a call of the outside and writes down what came of it.
    pub(crate) fn record_call(&mut self, call: &Call) -> Flow {
        let flow = self.dispatch_live(call);
        let mapped = call.number as i64 == libc::SYS_mmap;
        let entry = match &flow {
            // The mapping itself is noted where it is made.
            Flow::Return(result) if mapped && *result >= 0 => return flow,
            Flow::Return(result) => self.call_entry(call, *result),
            Flow::Block(wait) => self.block_entry(call, wait),
            _ => return flow,
        };
        self.note(&entry);
        flow
    }

    /// Writes down what a call returned whose effects are elsewhere.
    pub fn note_result(&self, call: &Call, result: i64) {
        self.note_result_and_writes(call, result, Vec::new());
    }

    /// Writes down what a call returned, and what it changed, whose other effects are elsewhere.
    pub fn note_result_and_writes(&self, call: &Call, result: i64, writes: Vec<MemoryWrite>) {
        if self.journal.recorder().is_some() {
            self.note(&Entry::Call {
                number: call.number as u32,
                args_digest: arguments_digest(call),
                result,
                writes,
                output: None,
            });
        }
    }

    /// Writes an entry at this moment, if anything is recorded.
    pub fn note(&self, entry: &Entry) {
        if let Some(mut recorder) = self.journal.recorder() {
            recorder.push(self.retired, entry);
        }
    }

    pub(crate) fn note_signal(&self, info: &SignalInfo, thread: Option<usize>) {
        let word =
            |at: usize| i32::from_le_bytes(info.bytes[at..at + 4].try_into().expect("four bytes"));
        self.note(&Entry::Signal {
            number: info.signal,
            code: info.code(),
            pid: word(16),
            uid: word(20) as u32,
            value: u64::from_le_bytes(info.bytes[24..32].try_into().expect("eight bytes")),
            thread: thread.map(|thread| thread as u32),
        });
    }

    fn call_entry(&self, call: &Call, result: i64) -> Entry {
        let touched = self.touched(call, result);
        let writes = touched
            .iter()
            .filter(|buffer| buffer.direction == Direction::Write)
            .filter_map(|buffer| {
                Some(MemoryWrite {
                    address: buffer.address,
                    bytes: self.bytes_of(buffer)?,
                })
            })
            .collect();
        Entry::Call {
            number: call.number as u32,
            args_digest: arguments_digest(call),
            result,
            writes,
            output: self.output(call, result, &touched),
        }
    }

    /// The guest's memory that a finished call read and wrote.
    pub(crate) fn touched(&self, call: &Call, result: i64) -> Vec<Buffer> {
        buffers(call.number, &call.args, result, &|address| {
            self.memory.read_u64(address).ok()
        })
    }

    fn bytes_of(&self, buffer: &Buffer) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(buffer.len).ok()?];
        self.memory.read(buffer.address, &mut bytes).ok()?;
        Some(bytes)
    }

    /// What an output call handed out, as far as it was taken.
    fn output(&self, call: &Call, result: i64, touched: &[Buffer]) -> Option<Output> {
        if !is_output(call.number) || result <= 0 {
            return None;
        }
        let bytes = self.output_bytes(call.number, result, touched);
        let mut recorder = self.journal.recorder()?;
        let stream = recorder.stream(call.args[0] as i32);
        recorder.outputs[usize::from(stream)].update(&bytes);
        Some(Output {
            stream,
            len: bytes.len() as u64,
            digest: digest(&bytes),
        })
    }

    pub(crate) fn output_bytes(&self, number: u64, result: i64, touched: &[Buffer]) -> Vec<u8> {
        let mut bytes = Vec::new();
        // What says where the parts of the output are is read first, and no part of it.
        for buffer in touched.iter().skip(usize::from(is_in_parts(number))) {
            if buffer.direction == Direction::Read
                && let Some(part) = self.bytes_of(buffer)
            {
                bytes.extend_from_slice(&part);
            }
        }
        bytes.truncate(result as usize);
        bytes
    }

    fn block_entry(&self, call: &Call, wait: &Wait) -> Entry {
        let progress = self.threads[self.current]
            .call
            .as_ref()
            .map_or(0, |call| call.progress);
        Entry::Block {
            number: call.number as u32,
            args_digest: arguments_digest(call),
            wait: match wait {
                Wait::Child => WaitKind::Child,
                Wait::Sleep { .. } => WaitKind::Retry,
                _ => WaitKind::Descriptors,
            },
            deadline: wait.deadline(),
            progress,
        }
    }
}

fn is_in_parts(number: u64) -> bool {
    matches!(
        number as i64,
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2
    )
}

/// Calls whose data leaves the guest.
pub(crate) fn is_output(number: u64) -> bool {
    matches!(
        number as i64,
        libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_pwrite64
            | libc::SYS_pwritev
            | libc::SYS_pwritev2
            | libc::SYS_sendto
    )
}

/// Digest of a call's arguments.
pub(crate) fn arguments_digest(call: &Call) -> u32 {
    digest_words(&call.args)
}
