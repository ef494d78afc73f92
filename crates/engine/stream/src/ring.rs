//! The way from an executor to whoever reads: a ring of bytes in memory that both processes have mapped.
//!
//! A pipe would do the same, but copies everything twice and asks the kernel for every page: of a run that is looked at, that
//! was up to half of the time. Here the kernel is needed only where one side has to wait for the other:
//! a reader with nothing to read waits for a byte in a pipe, the bell, which also tells when the executor is gone, whatever it
//! died of; a writer without room waits for a futex.
//!
//! The guest may have been at the memory, so the reader believes nothing that it finds there but lengths that are possible.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes on their way: few enough to stay in the caches of both sides, enough to let them run without waiting for each other.
const RING: usize = 1 << 20;
/// To wake a reader costs the writer as much as to write thousands of records, so it is not done for few. Less than the whole, so that
/// the reader wakes before there is no room.
const WORTH_WAKING: usize = RING / 2;
const PAGE: usize = 4096;

/// What both sides know of each other, in a page before the bytes. Each has a cache line that only it writes to.
#[repr(C)]
struct Shared {
    /// Bytes written since the beginning.
    written: AtomicU64,
    /// Instructions of the guest that have been executed: for people who wait, and nothing depends on it.
    retired: AtomicU64,
    /// The writer waits: it is woken when half of the ring is free.
    no_room: AtomicU32,
    _line: [u32; 11],
    /// Bytes read since the beginning.
    read: AtomicU64,
    /// The reader waits for the bell.
    nothing: AtomicU32,
    /// Nobody will read any more.
    closed: AtomicU32,
}

/// The mapped memory.
#[derive(Debug)]
struct Memory {
    start: *mut u8,
}

// SAFETY: the mapping is there until `Memory` is dropped, and nothing in it belongs to a thread.
unsafe impl Send for Memory {}

impl Memory {
    fn map(file: &File) -> io::Result<Memory> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            let (any, len, fd) = (std::ptr::null_mut(), PAGE + RING, file.as_raw_fd());
            libc::mmap(any, len, protection, libc::MAP_SHARED, fd, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Memory {
            start: start.cast(),
        })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the first page of the mapping, which lives as long as `self`; all of its fields are atomics, so that others may
        // change them at any time.
        unsafe { &*self.start.cast::<Shared>() }
    }

    /// The bytes from a position on, up to the end of the ring or to `len`: where, and how many.
    fn part(&self, position: u64, len: usize) -> (*mut u8, usize) {
        let at = position as usize % RING;
        // SAFETY: within the mapping, since `at` is less than the bytes after the first page.
        let from = unsafe { self.start.add(PAGE + at) };
        (from, len.min(RING - at))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length; nobody else has its address.
        unsafe { libc::munmap(self.start.cast(), PAGE + RING) };
    }
}

/// What an executor needs in order to write: descriptors that it inherits.
#[derive(Debug)]
pub struct RingEnds {
    /// The memory.
    pub memory: File,
    /// The end of the pipe that is written to.
    pub bell: File,
}

/// Makes a ring: the end to read from, and what to give to the writer. When all copies of the writer's bell are closed, the stream
/// is over.
///
/// # Errors
/// When the kernel has no memory or no descriptors left.
pub fn ring() -> io::Result<(RingReader, RingEnds)> {
    // SAFETY: plain system calls; what they return is checked before it is used, and owned by nobody else.
    let (memory, bell_read, bell) = unsafe {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        let memory = libc::memfd_create(c"verdict-told".as_ptr(), flags);
        if memory < 0 {
            return Err(io::Error::last_os_error());
        }
        let memory = File::from_raw_fd(memory);
        let mut ends = [0; 2];
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        let [read, write] = ends.map(|end| File::from_raw_fd(end));
        (memory, read, write)
    };
    memory.set_len((PAGE + RING) as u64)?;
    // Without this, whoever has the descriptor could take pages away from under the reader.
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: a plain system call on a descriptor of ours.
    if unsafe { libc::fcntl(memory.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let reader = RingReader {
        memory: Memory::map(&memory)?,
        bell: bell_read,
        read: 0,
    };
    Ok((reader, RingEnds { memory, bell }))
}

/// What a reader hears who waits.
enum Heard {
    Nothing,
    Bell,
    /// Nobody is there who could ring it.
    Gone,
}

/// The end to read from.
#[derive(Debug)]
pub struct RingReader {
    memory: Memory,
    bell: File,
    /// Bytes read since the beginning.
    read: u64,
}

impl RingReader {
    /// How many bytes are there now.
    fn available(&self) -> io::Result<usize> {
        let written = self.memory.shared().written.load(Ordering::SeqCst);
        match usize::try_from(written.wrapping_sub(self.read)) {
            Ok(available) if available <= RING => Ok(available),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Waits until there are bytes; 0 if there will be none, and `None` if patience has ended before.
    fn wait(&mut self, patience: Option<Duration>) -> io::Result<Option<usize>> {
        loop {
            let available = self.available()?;
            if available > 0 {
                return Ok(Some(available));
            }
            self.memory.shared().nothing.store(1, Ordering::SeqCst);
            // What was written before the writer could see that somebody waits rings no bell.
            let available = self.available()?;
            if available > 0 {
                return Ok(Some(available));
            }
            match self.listen(patience)? {
                Heard::Nothing => return Ok(None),
                Heard::Bell => {}
                // The last words of an executor that is gone.
                Heard::Gone => return self.available().map(Some),
            }
        }
    }

    /// Waits for the bell.
    fn listen(&self, patience: Option<Duration>) -> io::Result<Heard> {
        if patience.is_some_and(|patience| !is_readable(&self.bell, patience)) {
            return Ok(Heard::Nothing);
        }
        match (&self.bell).read(&mut [0; 64]) {
            Ok(0) => Ok(Heard::Gone),
            Ok(_) => Ok(Heard::Bell),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Heard::Bell),
            Err(error) => Err(error),
        }
    }

    /// True if there is something to read, or nothing will come any more; false if neither is so within `patience`.
    ///
    /// # Errors
    /// When what is found makes no sense.
    pub fn is_ready_within(&mut self, patience: Duration) -> io::Result<bool> {
        Ok(self.wait(Some(patience))?.is_some())
    }

    /// Reads no more: the writer need not write. True if it is gone within `patience`.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn is_over_within(&mut self, patience: Duration) -> io::Result<bool> {
        self.close();
        Ok(matches!(self.listen(Some(patience))?, Heard::Gone))
    }

    /// How many instructions of the guest have been executed by now. What there is to read is behind by no more than a ring of
    /// bytes, since the writer waits.
    #[must_use]
    pub fn retired(&self) -> u64 {
        self.memory.shared().retired.load(Ordering::Relaxed)
    }

    /// Lets a writer go that waits.
    fn close(&self) {
        let shared = self.memory.shared();
        shared.closed.store(1, Ordering::SeqCst);
        shared.no_room.store(0, Ordering::SeqCst);
        wake(&shared.no_room);
    }

    /// So many bytes more have been read.
    fn consume(&mut self, len: usize, available: usize) {
        self.read = self.read.wrapping_add(len as u64);
        let shared = self.memory.shared();
        shared.read.store(self.read, Ordering::SeqCst);
        let waits = shared.no_room.load(Ordering::SeqCst) != 0;
        if waits && available - len <= RING / 2 && shared.no_room.swap(0, Ordering::SeqCst) != 0 {
            wake(&shared.no_room);
        }
    }
}

impl Read for RingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let available = self.wait(None)?.unwrap_or(0);
        let (from, len) = self.memory.part(self.read, available.min(buffer.len()));
        // SAFETY: `part` gives memory of the mapping, `buffer` has as many bytes, and the two do not overlap. The writer does not
        // touch what was not read yet; a guest that does so nevertheless changes which bytes are copied, no more.
        unsafe { std::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), len) };
        self.consume(len, available);
        Ok(len)
    }
}

impl Drop for RingReader {
    fn drop(&mut self) {
        self.close();
    }
}

/// The end to write to.
#[derive(Debug)]
pub struct RingWriter {
    memory: Memory,
    /// Kept open under their numbers: an executor that replaces itself hands them on.
    ends: RingEnds,
    /// Bytes written since the beginning.
    written: u64,
}

impl RingWriter {
    /// Goes on writing where the last writer has stopped: an executor that replaces itself maps the ring anew.
    ///
    /// # Errors
    /// When the memory cannot be mapped.
    pub fn new(ends: RingEnds) -> io::Result<RingWriter> {
        let memory = Memory::map(&ends.memory)?;
        let written = memory.shared().written.load(Ordering::SeqCst);
        Ok(RingWriter {
            memory,
            ends,
            written,
        })
    }

    /// So many instructions of the guest have been executed by now.
    pub fn retired(&self, instructions: u64) {
        let shared = self.memory.shared();
        shared.retired.store(instructions, Ordering::Relaxed);
    }

    fn room(&self) -> usize {
        let read = self.memory.shared().read.load(Ordering::SeqCst);
        let unread = self.written.wrapping_sub(read);
        RING.saturating_sub(usize::try_from(unread).unwrap_or(RING))
    }

    /// Waits until there is room.
    fn wait(&self) -> io::Result<usize> {
        let shared = self.memory.shared();
        loop {
            if shared.closed.load(Ordering::SeqCst) != 0 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let room = self.room();
            if room > 0 {
                return Ok(room);
            }
            shared.no_room.store(1, Ordering::SeqCst);
            if self.room() == 0 && shared.closed.load(Ordering::SeqCst) == 0 {
                sleep(&shared.no_room, 1);
            }
        }
    }
}

impl Write for RingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let room = self.wait()?;
        let (to, len) = self.memory.part(self.written, room.min(bytes.len()));
        // SAFETY: `part` gives memory of the mapping that the reader is done with; `bytes` has as many, and is not in it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len) };
        self.written = self.written.wrapping_add(len as u64);
        let shared = self.memory.shared();
        shared.written.store(self.written, Ordering::SeqCst);
        if RING - room + len >= WORTH_WAKING {
            self.flush()?;
        }
        Ok(len)
    }

    /// Has the reader see to it now.
    fn flush(&mut self) -> io::Result<()> {
        let shared = self.memory.shared();
        if shared.nothing.load(Ordering::SeqCst) != 0
            && shared.nothing.swap(0, Ordering::SeqCst) != 0
        {
            self.ends.bell.write_all(&[1])?;
        }
        Ok(())
    }
}

/// Sleeps until somebody wakes, or for no reason, if the word has this value.
fn sleep(word: &AtomicU32, value: u32) {
    let none: *const libc::timespec = std::ptr::null();
    // SAFETY: a futex in memory that is mapped; the kernel only reads it.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, none) };
}

/// True if something can be read, be it the end, within so much time.
fn is_readable(pipe: &File, patience: Duration) -> bool {
    let mut source = libc::pollfd {
        fd: pipe.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let milliseconds = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one structure, of ours, for the length of the call.
    unsafe { libc::poll(&mut source, 1, milliseconds) > 0 }
}

fn wake(word: &AtomicU32) {
    // SAFETY: the same; waking does not even read.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (RingReader, RingWriter) {
        let (reader, ends) = ring().expect("a ring");
        (reader, RingWriter::new(ends).expect("its writer"))
    }

    /// Bytes that tell their positions, in pieces of all sizes.
    fn pieces() -> impl Iterator<Item = Vec<u8>> {
        let mut at = 0u64;
        let sizes = [1, 8, 3, 4096, RING - 1, 100_000, RING, 7, 2 * RING + 5, 64];
        sizes.into_iter().cycle().take(60).map(move |size| {
            let piece = (at..at + size as u64).map(|at| ((at * 167) >> 3) as u8);
            at += size as u64;
            piece.collect()
        })
    }

    #[test]
    fn what_is_written_is_read_however_the_sides_wait_for_each_other() {
        let (mut reader, mut writer) = pair();
        let all: Vec<u8> = pieces().flatten().collect();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for piece in pieces() {
                    writer.write_all(&piece).expect("somebody reads");
                }
            });
            let mut read: Vec<u8> = Vec::new();
            for size in [5, 1 << 16, 1, RING + 1, 333].into_iter().cycle() {
                let mut part = vec![0; size];
                let len = reader.read(&mut part).expect("the writer is there");
                if len == 0 {
                    break;
                }
                read.extend(&part[..len]);
            }
            assert!(read == all, "{} of {} bytes", read.len(), all.len());
        });
    }

    #[test]
    fn last_words_are_heard() {
        let (mut reader, mut writer) = pair();
        writer.write_all(b"good").expect("room");
        writer.write_all(b"bye").expect("room");
        drop(writer);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).expect("there");
        assert_eq!(read, b"goodbye");
    }

    #[test]
    fn a_writer_that_nobody_reads_does_not_wait() {
        let (mut reader, mut writer) = pair();
        std::thread::scope(|scope| {
            let writing = scope.spawn(move || writer.write_all(&vec![1; 3 * RING]));
            reader.read_exact(&mut [0; 100]).expect("something");
            drop(reader);
            let error = writing.join().expect("no panic").expect_err("nobody");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        });
    }

    #[test]
    fn a_second_writer_goes_on_where_the_first_stopped() {
        let (mut reader, ends) = ring().expect("a ring");
        let copy = RingEnds {
            memory: ends.memory.try_clone().expect("a copy"),
            bell: ends.bell.try_clone().expect("a copy"),
        };
        for (ends, text) in [(ends, b"one "), (copy, b"two ")] {
            let mut writer = RingWriter::new(ends).expect("a writer");
            writer.write_all(text).expect("room");
        }
        let mut read = String::new();
        reader.read_to_string(&mut read).expect("there");
        assert_eq!(read, "one two ");
    }

    #[test]
    fn who_waits_sees_how_far_the_guest_is() {
        let patience = Duration::from_millis(1);
        let (mut reader, mut writer) = pair();
        assert!(!reader.is_ready_within(patience).expect("still there"));
        writer.retired(1 << 40);
        assert!(!reader.is_ready_within(patience).expect("still there"));
        assert_eq!(reader.retired(), 1 << 40, "though nothing was told");
        writer.write_all(b"told").expect("room");
        assert!(reader.is_ready_within(patience).expect("something to read"));
        reader.read_exact(&mut [0; 4]).expect("it");
        drop(writer);
        assert!(reader.is_ready_within(patience).expect("the end"));
        assert_eq!(reader.read(&mut [0; 4]).expect("the end"), 0);
    }

    #[test]
    fn who_reads_no_more_still_sees_how_far_the_guest_is() {
        let patience = Duration::from_millis(1);
        let (mut reader, mut writer) = pair();
        writer.write_all(b"not read").expect("room");
        assert!(!reader.is_over_within(patience).expect("still there"));
        writer.write_all(&vec![1; RING]).expect_err("nobody reads");
        writer.retired(7);
        assert_eq!(reader.retired(), 7);
        drop(writer);
        assert!(reader.is_over_within(patience).expect("gone"));
    }

    #[test]
    fn nonsense_in_the_memory_is_an_error() {
        let (mut reader, writer) = pair();
        let nonsense = RING as u64 + 1;
        writer
            .memory
            .shared()
            .written
            .store(nonsense, Ordering::SeqCst);
        let error = reader.read(&mut [0; 8]).expect_err("nonsense");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
