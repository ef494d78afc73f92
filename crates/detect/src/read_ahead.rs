//! Reads a trace on a thread of its own, a few batches ahead of whoever uses them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use verdict_events::{Event, TraceError, TraceSource};

use crate::repeats::Repeats;

/// Batches that may wait. All of them together still fit a third-level cache.
const BATCHES_AHEAD: usize = 8;

/// Events, and the indices of those that matter if that was asked for.
#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    fresh: Vec<u32>,
}

/// Gives each batch of `source` to `take`, in trace order, until the trace ends or one of them fails.
pub fn read_ahead<E: From<TraceError>>(
    source: &mut (dyn TraceSource + Send),
    mut take: impl FnMut(&[Event]) -> Result<(), E>,
) -> Result<(), E> {
    read_ahead_finding(Find::Nothing, source, |batch, _| take(batch))
}

/// What is found out about a batch where it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Find {
    Nothing,
    /// The indices of the events that matter to those who skip repeated accesses.
    Fresh,
}

/// As [`read_ahead()`], with what is to be found out about each batch.
pub(crate) fn read_ahead_finding<E: From<TraceError>>(
    find: Find,
    source: &mut (dyn TraceSource + Send),
    mut take: impl FnMut(&[Event], Option<&[u32]>) -> Result<(), E>,
) -> Result<(), E> {
    let (filled, batches) = sync_channel(BATCHES_AHEAD);
    let (used, empty) = sync_channel(BATCHES_AHEAD);
    let find_fresh = find == Find::Fresh;
    let mut repeats = find_fresh.then(Repeats::new);
    thread::scope(|scope| {
        scope.spawn(move || read(source, repeats.as_mut(), &filled, &empty));
        // An early return drops both ends here, at which the reader stops.
        for batch in batches {
            let batch: Batch = batch?;
            take(&batch.events, find_fresh.then_some(&batch.fresh))?;
            // With more batches back than fit, or no reader any more, this one is dropped.
            let _ = used.try_send(batch);
        }
        Ok(())
    })
}

fn read(
    source: &mut (dyn TraceSource + Send),
    mut repeats: Option<&mut Repeats>,
    filled: &SyncSender<Result<Batch, TraceError>>,
    empty: &Receiver<Batch>,
) {
    loop {
        let mut batch = empty.try_recv().unwrap_or_default();
        let read = source.next_batch(&mut batch.events);
        if read.is_ok() && batch.events.is_empty() {
            return;
        }
        if let Some(repeats) = &mut repeats {
            repeats.find_fresh(&batch.events, &mut batch.fresh);
        }
        let failed = read.is_err();
        if filled.send(read.map(|()| batch)).is_err() || failed {
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
        let told = read_ahead_finding(Find::Fresh, &mut source, |batch, fresh| {
            let fresh = fresh.expect("asked for");
            assert!(fresh.is_sorted() && fresh.len() < batch.len());
            batches += 1;
            Ok::<(), TraceError>(())
        });
        assert_eq!(batches, 20);
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
