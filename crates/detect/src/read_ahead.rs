//! Reads a trace on a thread of its own, ahead of whoever uses it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use verdict_events::{Digest, Event, Repeats, TraceError, TraceSource};

/// Batches that may wait. All of them together still fit a third-level cache.
const BATCHES_AHEAD: usize = 8;

/// Digests that may wait, and the number of events with which one is handed over. Whoever waits for the other side sleeps, and
/// to be woken takes as long as reading hundreds of events: it should be rare.
const DIGESTS_AHEAD: usize = 3;
const DIGEST_EVENTS: u32 = 1 << 16;

/// Gives each batch of `source` to `take`, in trace order, until the trace ends or one of them fails.
pub fn read_ahead<E: From<TraceError>>(
    source: &mut (dyn TraceSource + Send),
    mut take: impl FnMut(&[Event]) -> Result<(), E>,
) -> Result<(), E> {
    let fill = |batch: &mut Vec<Event>| {
        source.next_batch(batch)?;
        Ok(!batch.is_empty())
    };
    fill_ahead(BATCHES_AHEAD, fill, |batch| take(batch))
}

/// Gives digests of `source` to `take`, in trace order and without the repeated accesses if there is something to find them, until
/// the trace ends or one of them fails.
pub(crate) fn digest_ahead<E: From<TraceError>>(
    mut repeats: Option<Repeats>,
    source: &mut (dyn TraceSource + Send),
    take: impl FnMut(&Digest) -> Result<(), E>,
) -> Result<(), E> {
    let mut end = None;
    let fill = move |digest: &mut Digest| {
        digest.clear();
        digest.reserve(2 * DIGEST_EVENTS as usize);
        digest.leave_out(repeats.take());
        while end.is_none() && digest.events() < DIGEST_EVENTS {
            let events = digest.events();
            match source.next_digest(digest) {
                Ok(()) if digest.events() == events => end = Some(Ok(false)),
                Ok(()) => {}
                Err(error) => end = Some(Err(error)),
            }
        }
        repeats = digest.take_repeats();
        // What was read before an error comes before it.
        match digest.events() {
            0 => end.take().unwrap_or(Ok(false)),
            _ => Ok(true),
        }
    };
    fill_ahead(DIGESTS_AHEAD, fill, take)
}

/// Gives what `fill` fills to `take`, until `fill` says that there was nothing more, or one of them fails.
fn fill_ahead<T: Default + Send, E: From<TraceError>>(
    ahead: usize,
    fill: impl FnMut(&mut T) -> Result<bool, TraceError> + Send,
    mut take: impl FnMut(&T) -> Result<(), E>,
) -> Result<(), E> {
    let (filled, full) = sync_channel(ahead);
    let (used, empty) = sync_channel(ahead);
    thread::scope(|scope| {
        scope.spawn(move || keep_filling(fill, &filled, &empty));
        // An early return drops both ends here, at which the reader stops.
        for one in full {
            let one: T = one?;
            take(&one)?;
            // With more back than fit, or no reader any more, this one is dropped.
            let _ = used.try_send(one);
        }
        Ok(())
    })
}

fn keep_filling<T: Default>(
    mut fill: impl FnMut(&mut T) -> Result<bool, TraceError>,
    filled: &SyncSender<Result<T, TraceError>>,
    empty: &Receiver<T>,
) {
    loop {
        let mut one = empty.try_recv().unwrap_or_default();
        let sent = match fill(&mut one) {
            Ok(true) => filled.send(Ok(one)),
            Ok(false) => return,
            Err(error) => {
                // Nobody to be told is as good as having told.
                let _ = filled.send(Err(error));
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_events::Names;
    use verdict_events::generate::{GenerateOptions, Generator};

    /// Fails after some batches.
    struct Cut {
        whole: Generator,
        batches_left: u32,
    }

    impl TraceSource for Cut {
        fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
            if self.batches_left == 0 {
                return Err(TraceError::Format {
                    file: "cut".to_owned(),
                    problem: "ends here".to_owned(),
                });
            }
            self.batches_left -= 1;
            self.whole.next_batch(batch)
        }

        fn names(&self) -> &dyn Names {
            self.whole.names()
        }
    }

    fn options() -> GenerateOptions {
        GenerateOptions {
            events: 100_000,
            ..GenerateOptions::default()
        }
    }

    #[test]
    fn batches_come_in_order_and_whole() {
        let mut ahead = Vec::new();
        let take = |batch: &[Event]| {
            ahead.extend_from_slice(batch);
            Ok::<(), TraceError>(())
        };
        read_ahead(&mut Generator::new(options()), take).unwrap();
        let (mut plain, mut batch) = (Vec::new(), Vec::new());
        let mut source = Generator::new(options());
        while plain.len() < 100_000 {
            source.next_batch(&mut batch).unwrap();
            plain.append(&mut batch);
        }
        assert_eq!(ahead, plain);
    }

    #[test]
    fn an_error_comes_after_what_was_read_before_it() {
        let mut source = Cut {
            whole: Generator::new(options()),
            batches_left: 20,
        };
        let mut batches = 0;
        let told = read_ahead(&mut source, |_| {
            batches += 1;
            Ok::<(), TraceError>(())
        });
        assert_eq!(batches, 20);
        assert!(told.unwrap_err().to_string().contains("ends here"));
    }

    #[test]
    fn an_error_comes_after_the_digest_of_what_was_read_before_it() {
        let mut source = Cut {
            whole: Generator::new(options()),
            batches_left: 40,
        };
        let (mut digests, mut events) = (0, 0);
        let told = digest_ahead(None, &mut source, |digest| {
            digests += 1;
            events += digest.events();
            Ok::<(), TraceError>(())
        });
        assert_eq!((digests, events), (2, 40 * 2048));
        assert!(told.unwrap_err().to_string().contains("ends here"));
    }

    #[test]
    fn whoever_takes_batches_can_stop() {
        let mut batches = 0;
        let told = read_ahead(&mut Generator::new(options()), |_| {
            batches += 1;
            match batches {
                3 => Err(TraceError::Format {
                    file: "taker".to_owned(),
                    problem: "enough".to_owned(),
                }),
                _ => Ok(()),
            }
        });
        assert!(told.unwrap_err().to_string().contains("enough"));
        assert_eq!(batches, 3);
    }
}
