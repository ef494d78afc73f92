//! Decodes the parts of a trace on several threads, and uses them in order on one.
//!
//! A thread reads and decodes ahead of the one that uses digests. If that has to wait for the next digest, it does not sleep but
//! decodes a part itself: both threads are busy until the trace ends, however the work is divided between decoding and using.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;

use verdict_events::native::{Part, PartDecoder};
use verdict_events::{Digest, Repeats, TraceError, TraceSource};

/// Digests that are made or wait at any time. Enough for nobody to wait, and few enough to fit a third-level cache.
const DIGESTS_AHEAD: usize = 4;

/// Gives digests of all parts of `source` to `take`, in trace order and, if so wanted, without repeated accesses, until the trace
/// ends or one of them fails.
pub(crate) fn digest_parts<E: From<TraceError>>(
    leave_out_repeats: bool,
    source: &mut (dyn TraceSource + Send),
    mut take: impl FnMut(&Digest) -> Result<(), E>,
) -> Result<(), E> {
    let desk = Desk {
        unread: Mutex::new(Unread {
            source,
            next: 0,
            used: Vec::new(),
            ended: false,
        }),
        made: Mutex::new(Made::default()),
        changed: Condvar::new(),
        leave_out_repeats,
    };
    thread::scope(|scope| {
        scope.spawn(|| desk.make_all());
        // However this ends, the other thread must not wait for more to be used.
        let _closing = Closing(&desk);
        let mut worker = Worker::default();
        let mut used = None;
        while let Some(digest) = desk.next(used.take(), &mut worker)? {
            take(&digest)?;
            used = Some(digest);
        }
        Ok(())
    })
}

/// What the threads share.
struct Desk<'a> {
    unread: Mutex<Unread<'a>>,
    made: Mutex<Made>,
    /// Something was made or used.
    changed: Condvar,
    leave_out_repeats: bool,
}

struct Unread<'a> {
    source: &'a mut (dyn TraceSource + Send),
    /// The number of the next part.
    next: u64,
    /// Parts that are not needed any more.
    used: Vec<Part>,
    ended: bool,
}

#[derive(Default)]
struct Made {
    /// By number. `None` comes after the last.
    digests: BTreeMap<u64, Result<Option<Digest>, TraceError>>,
    /// The number of the next that is wanted.
    wanted: u64,
    /// Digests that are not needed any more.
    used: Vec<Digest>,
    /// One of the threads has ended: nobody wants any more, or nobody makes any more.
    closed: bool,
}

/// What each thread keeps from one part to the next.
#[derive(Default)]
struct Worker {
    decoder: Option<PartDecoder>,
}

/// Lets the other thread end, too.
struct Closing<'a, 'b>(&'a Desk<'b>);

impl Drop for Closing<'_, '_> {
    fn drop(&mut self) {
        self.0.made().closed = true;
        self.0.changed.notify_all();
    }
}

impl Desk<'_> {
    /// Makes digests ahead, until there is nothing more to be made.
    fn make_all(&self) {
        let closing = Closing(self);
        let mut worker = Worker::default();
        while self.may_make_more() && self.make_one(&mut worker) {}
        // What was made is still to be used. Only after a panic, something is missing.
        std::mem::forget(closing);
    }

    /// Waits until more may be made. False if nobody wants any more.
    fn may_make_more(&self) -> bool {
        let mut made = self.made();
        while !made.closed && made.digests.len() >= DIGESTS_AHEAD {
            made = self.changed.wait(made).expect(WHOLE);
        }
        !made.closed
    }

    /// The digest that comes next, made here if it is not there yet. `None` at the end.
    fn next(
        &self,
        used: Option<Digest>,
        worker: &mut Worker,
    ) -> Result<Option<Digest>, TraceError> {
        let mut made = self.made();
        made.used.extend(used);
        loop {
            let wanted = made.wanted;
            if let Some(digest) = made.digests.remove(&wanted) {
                made.wanted += 1;
                self.changed.notify_all();
                return digest;
            }
            assert!(!made.closed, "the thread that makes it did not panic");
            let is_room = made.digests.len() < DIGESTS_AHEAD;
            drop(made);
            let helped = is_room && self.make_one(worker);
            made = self.made();
            // The other thread may have put it down meanwhile.
            if !helped && !made.closed && !made.digests.contains_key(&wanted) {
                made = self.changed.wait(made).expect(WHOLE);
            }
        }
    }

    /// Makes the digest of the next part. False if there are no more.
    fn make_one(&self, worker: &mut Worker) -> bool {
        let (number, part) = {
            let mut unread = self.unread.lock().expect(WHOLE);
            if unread.ended {
                return false;
            }
            let used = unread.used.pop();
            let part = unread.source.next_part(used);
            unread.ended = !matches!(part, Ok(Some(_)));
            let number = unread.next;
            unread.next += 1;
            (number, part)
        };
        let made = part.and_then(|part| part.map(|part| self.digest(part, worker)).transpose());
        self.made().digests.insert(number, made);
        self.changed.notify_all();
        true
    }

    fn digest(&self, part: Part, worker: &mut Worker) -> Result<Digest, TraceError> {
        let mut digest = self.made().used.pop().unwrap_or_default();
        digest.clear();
        // Accesses that repeat one of another part are not found, which are few.
        digest.leave_out(self.leave_out_repeats.then(Repeats::new));
        worker.decoder()?.digest(&part, &mut digest)?;
        digest.leave_out(None);
        self.unread.lock().expect(WHOLE).used.push(part);
        Ok(digest)
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().expect(WHOLE)
    }
}

/// Why no lock is poisoned.
const WHOLE: &str = "whoever holds the lock does not panic";

impl Worker {
    fn decoder(&mut self) -> Result<&mut PartDecoder, TraceError> {
        if self.decoder.is_none() {
            let decoder = PartDecoder::new().map_err(|source| TraceError::Io {
                file: "a decompressor".to_owned(),
                source,
            })?;
            self.decoder = Some(decoder);
        }
        Ok(self.decoder.as_mut().expect("it was made"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use verdict_events::Event;
    use verdict_events::generate::{GenerateOptions, Generator};
    use verdict_events::native::{NativeReader, NativeWriter};

    /// As many as four frames and a bit.
    const EVENTS: usize = (4 << 16) + 1000;

    fn events() -> (Vec<Event>, Generator) {
        let mut source = Generator::new(GenerateOptions {
            events: EVENTS as u64,
            ..GenerateOptions::default()
        });
        let (mut events, mut batch) = (Vec::new(), Vec::new());
        while events.len() < EVENTS {
            source.next_batch(&mut batch).unwrap();
            events.append(&mut batch);
        }
        (events, source)
    }

    fn trace(events: &[Event], source: &Generator) -> Vec<u8> {
        let mut writer = NativeWriter::new(Vec::new()).unwrap();
        writer.write(events, source.names()).unwrap();
        writer.finish(source.names()).unwrap()
    }

    fn reader(bytes: Vec<u8>) -> NativeReader<Cursor<Vec<u8>>> {
        NativeReader::new("trace".to_owned(), Cursor::new(bytes)).unwrap()
    }

    #[test]
    fn digests_come_in_order_and_whole() {
        let (events, source) = events();
        let mut told = Vec::new();
        digest_parts(false, &mut reader(trace(&events, &source)), |digest| {
            told.extend(digest.told().map(|(_, event)| event));
            Ok::<(), TraceError>(())
        })
        .unwrap();
        assert_eq!(told, events);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let (events, source) = events();
        let (mut told, mut counted) = (0, 0);
        digest_parts(true, &mut reader(trace(&events, &source)), |digest| {
            told += digest.told().count();
            counted += digest.events() as usize;
            Ok::<(), TraceError>(())
        })
        .unwrap();
        assert_eq!(counted, EVENTS);
        assert!(told < EVENTS / 3 * 2, "{told} of {EVENTS}");
    }

    #[test]
    fn an_error_comes_after_all_whole_frames() {
        let (events, source) = events();
        let mut bytes = trace(&events, &source);
        // The end frame and the index.
        bytes.truncate(bytes.len() - 100);
        let mut counted = 0;
        let ended = digest_parts(true, &mut reader(bytes), |digest| {
            counted += digest.events() as usize;
            Ok::<(), TraceError>(())
        });
        assert!(matches!(ended, Err(TraceError::Incomplete { .. })));
        assert_eq!(counted, EVENTS);
    }

    #[test]
    fn whoever_takes_digests_can_stop() {
        let (events, source) = events();
        let mut digests = 0;
        let told = digest_parts(true, &mut reader(trace(&events, &source)), |_| {
            digests += 1;
            Err(TraceError::Format {
                file: "taker".to_owned(),
                problem: "enough".to_owned(),
            })
        });
        assert!(told.unwrap_err().to_string().contains("enough"));
        assert_eq!(digests, 1);
    }
}
