//! Accesses to one unit that do not follow all earlier ones of other threads with which they could race.
//!
//! In the order in which blocks begin, an access follows all earlier ones of a thread if it follows the last of them. So of each
//! thread it is enough to remember how many posts that one had behind it, and one access is compared with all threads
//! by going along two lists of numbers, which a processor does several at a time.

use crate::kernel::Class;
use crate::order::Order;
use crate::record::Record;

/// An access, and a thread with earlier ones that do not all precede it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Late {
    /// Its thread.
    pub thread: u32,
    /// The thread of the earlier ones.
    pub rival: u32,
    /// Which of the accesses of its thread it is.
    pub nth: u32,
    /// How many accesses of the rival begin before it.
    pub rivals_before: u32,
}

/// As many fit into 16 MB: more are not kept, unless the accesses themselves take as much memory.
const KEPT: usize = 1 << 20;
const KEPT_PER_ACCESS: usize = 2;
/// Lists are as long as a multiple of this, as those of [`Order::known_of_all`] are.
const THREADS_STEP: usize = 16;

/// Finds them, unit by unit. Keeps its memory from one to the next.
#[derive(Default)]
pub(crate) struct LateFinder {
    /// By class and thread: one more than the posts behind the last access that races with the class, or 0.
    last: [Vec<u32>; 4],
    /// By thread: how many accesses there were.
    seen: Vec<u32>,
    found: Vec<Late>,
}

impl LateFinder {
    pub fn new(threads: u32) -> LateFinder {
        let length = (threads as usize).next_multiple_of(THREADS_STEP);
        LateFinder {
            last: [(); 4].map(|()| vec![0; length]),
            seen: vec![0; length],
            found: Vec::new(),
        }
    }

    /// All among `records`, which are of one unit and of so many threads, and in the order of their blocks; by threads, then in that
    /// order. Nothing if there are too many.
    pub fn find(&mut self, records: &[Record], threads: usize, order: &Order) -> Option<&[Late]> {
        // To go through all pairs of threads looks at each access once for each other thread, and takes half as long for it.
        let worthwhile = records.len() * threads.saturating_sub(1) / 2;
        let kept = KEPT.max(KEPT_PER_ACCESS * records.len());
        let most = worthwhile.min(kept);
        self.last.iter_mut().for_each(|last| last.fill(0));
        self.seen.fill(0);
        self.found.clear();
        for record in records {
            self.compare(record, order);
            if self.found.len() > most {
                return None;
            }
            self.remember(record, order);
        }
        self.found.sort_unstable();
        Some(&self.found)
    }

    fn compare(&mut self, record: &Record, order: &Order) {
        let thread = order.thread(record.block);
        let last = &mut self.last[Class::of(record.what.kind()) as usize];
        // The own thread is in no clock, and follows itself.
        let own = std::mem::take(&mut last[thread as usize]);
        let mut first = 0;
        for known in order.known_of_all(record.block) {
            let last = &last[first..first + known.len()];
            let late = |(last, known): (&u32, &u32)| last > known;
            if last.iter().zip(known).map(late).fold(false, |a, b| a | b) {
                for (slot, _) in
                    (last.iter().zip(known).enumerate()).filter(|&(_, pair)| late(pair))
                {
                    let rival = (first + slot) as u32;
                    self.found.push(Late {
                        thread,
                        rival,
                        nth: self.seen[thread as usize],
                        rivals_before: self.seen[rival as usize],
                    });
                }
            }
            first += known.len();
        }
        last[thread as usize] = own;
    }

    fn remember(&mut self, record: &Record, order: &Order) {
        let thread = order.thread(record.block) as usize;
        let posts = order.posts(record.block).saturating_add(1);
        for &rival in Class::of(record.what.kind()).rivals() {
            self.last[rival as usize][thread] = posts;
        }
        self.seen[thread] += 1;
    }
}
