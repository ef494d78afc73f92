//! What is told, read with an eye on how far the guest is: people wait, also while there is nothing to tell.

use std::io::{self, Read};
use std::time::Duration;

use verdict_stream::RingReader;

/// Who waits is told this often where nothing comes.
const PAUSE: Duration = Duration::from_millis(200);

/// And not more often than after so many instructions where something does: about a millisecond.
const WORTH_TELLING: u64 = 1 << 22;

/// What an executor tells, and how many instructions of its guest have been looked at by then: `watcher` hears of it. A count of the
/// moment, behind which what is read is by no more than the ring holds: nothing but what people are shown may depend on it.
pub struct Followed<'a> {
    from: RingReader,
    watcher: &'a mut (dyn FnMut(u64) + Send),
    told: u64,
}

impl<'a> Followed<'a> {
    /// Reads from this ring.
    pub fn new(from: RingReader, watcher: &'a mut (dyn FnMut(u64) + Send)) -> Self {
        Self {
            from,
            watcher,
            told: 0,
        }
    }

    /// Goes on telling until the executor is gone, though nobody reads any more what it tells.
    ///
    /// # Errors
    /// When the kernel does not say whether it is gone.
    pub fn to_end(mut self) -> io::Result<()> {
        while !self.from.is_over_within(PAUSE)? {
            self.tell();
        }
        Ok(())
    }

    fn tell(&mut self) {
        self.told = self.from.retired();
        (self.watcher)(self.told);
    }
}

impl Read for Followed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.from.is_ready_within(PAUSE)? {
            self.tell();
        }
        if self.from.retired().wrapping_sub(self.told) >= WORTH_TELLING {
            self.tell();
        }
        self.from.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use verdict_stream::{RingWriter, ring};

    fn pair() -> (RingReader, RingWriter) {
        let (reader, ends) = ring().expect("a ring");
        (reader, RingWriter::new(ends).expect("its writer"))
    }

    #[test]
    fn who_waits_is_told_when_it_is_worth_it() {
        let (reader, mut writer) = pair();
        let mut heard = Vec::new();
        let mut watcher = |retired| heard.push(retired);
        let mut followed = Followed::new(reader, &mut watcher);
        for retired in [1, WORTH_TELLING, WORTH_TELLING + 1, 5 * WORTH_TELLING] {
            writer.write_all(b"told").expect("room");
            writer.retired(retired);
            followed.read_exact(&mut [0; 4]).expect("it");
        }
        assert_eq!(heard, [WORTH_TELLING, 5 * WORTH_TELLING]);
    }

    #[test]
    fn who_waits_is_told_though_nothing_comes() {
        let (reader, writer) = pair();
        writer.retired(9);
        let mut writer = Some(writer);
        // The guest ends when somebody has heard how far it is.
        let mut watcher = |retired| assert_eq!((retired, writer.take().is_some()), (9, true));
        let mut all = Vec::new();
        let mut followed = Followed::new(reader, &mut watcher);
        followed.read_to_end(&mut all).expect("the end");
        assert!(all.is_empty());
    }

    #[test]
    fn who_has_read_enough_is_told_until_the_end() {
        let (reader, mut writer) = pair();
        writer.write_all(b"not read").expect("room");
        writer.retired(9);
        let mut writer = Some(writer);
        let mut watcher = |retired| assert_eq!((retired, writer.take().is_some()), (9, true));
        let followed = Followed::new(reader, &mut watcher);
        followed.to_end().expect("the end");
        assert!(writer.is_none());
    }
}
