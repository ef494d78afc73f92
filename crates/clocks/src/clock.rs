//! Vector clocks: per thread, how many of its posting segments precede a segment.
//!
//! The first [`HEAD`] threads sit in a plain vector: with few threads a clock is one small copy. Further
//! threads sit in chunks shared by all clocks that hold the same values, so that ten thousand
//! clocks of ten thousand threads cost what differs between them, and joining skips what is shared.

use std::sync::Arc;

use verdict_events::ThreadId;

/// Threads below this index are held in a plain vector: 64 x 4 bytes are four cache lines.
const HEAD: usize = 64;
/// Threads per shared chunk.
const CHUNK: usize = 64;

type Chunk = [u32; CHUNK];

/// For each thread, the number of its posting segments that are known. Unknown threads count 0.
#[derive(Debug, Default)]
pub struct VectorClock {
    head: Vec<u32>,
    tail: Vec<Option<Arc<Chunk>>>,
}

impl VectorClock {
    /// How many posting segments of `thread` are known.
    #[inline]
    pub fn get(&self, thread: ThreadId) -> u32 {
        let index = thread.0 as usize;
        match self.head.get(index) {
            Some(&count) => count,
            None if index < HEAD => 0,
            None => self.get_tail(index - HEAD),
        }
    }

    fn get_tail(&self, index: usize) -> u32 {
        match self.tail.get(index / CHUNK) {
            Some(Some(chunk)) => chunk[index % CHUNK],
            _ => 0,
        }
    }

    /// Sets the count of one thread.
    pub fn set(&mut self, thread: ThreadId, count: u32) {
        let index = thread.0 as usize;
        if index < HEAD {
            if index >= self.head.len() {
                self.head.resize(index + 1, 0);
            }
            self.head[index] = count;
            return;
        }
        let index = index - HEAD;
        if index / CHUNK >= self.tail.len() {
            self.tail.resize(index / CHUNK + 1, None);
        }
        let chunk = self.tail[index / CHUNK].get_or_insert_with(|| Arc::new([0; CHUNK]));
        Arc::make_mut(chunk)[index % CHUNK] = count;
    }

    /// Takes the larger count of each thread: afterwards all that `other` knows is known here.
    pub fn join(&mut self, other: &VectorClock) {
        if self.head.len() < other.head.len() {
            self.head.resize(other.head.len(), 0);
        }
        for (mine, &theirs) in self.head.iter_mut().zip(&other.head) {
            *mine = (*mine).max(theirs);
        }
        if self.tail.len() < other.tail.len() {
            self.tail.resize(other.tail.len(), None);
        }
        for (mine, theirs) in self.tail.iter_mut().zip(&other.tail) {
            join_chunk(mine, theirs);
        }
    }

    /// Whether everything known here is known to `other`.
    pub fn le(&self, other: &VectorClock) -> bool {
        let head = self.head.iter().enumerate();
        let mut tail = self.tail.iter().enumerate();
        head.into_iter()
            .all(|(i, &count)| count <= other.head.get(i).copied().unwrap_or(0))
            && tail.all(|(i, chunk)| chunk_le(chunk, other.tail.get(i).unwrap_or(&None)))
    }

    /// Forgets everything, keeping the memory for the next use.
    pub fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
    }
}

impl Clone for VectorClock {
    fn clone(&self) -> VectorClock {
        VectorClock {
            head: self.head.clone(),
            tail: self.tail.clone(),
        }
    }

    /// Reuses the vectors: a lock released a million times allocates once.
    fn clone_from(&mut self, source: &VectorClock) {
        self.head.clone_from(&source.head);
        self.tail.clone_from(&source.tail);
    }
}

fn join_chunk(mine: &mut Option<Arc<Chunk>>, theirs: &Option<Arc<Chunk>>) {
    let Some(theirs) = theirs else { return };
    let Some(own) = mine else {
        *mine = Some(Arc::clone(theirs));
        return;
    };
    if Arc::ptr_eq(own, theirs) || own.iter().zip(theirs.iter()).all(|(a, b)| a >= b) {
        return;
    }
    // Where theirs knows all of ours, share it instead of making a third copy.
    if own.iter().zip(theirs.iter()).all(|(a, b)| a <= b) {
        *own = Arc::clone(theirs);
        return;
    }
    for (a, &b) in Arc::make_mut(own).iter_mut().zip(theirs.iter()) {
        *a = (*a).max(b);
    }
}

fn chunk_le(a: &Option<Arc<Chunk>>, b: &Option<Arc<Chunk>>) -> bool {
    match (a, b) {
        (None, _) => true,
        (Some(a), None) => a.iter().all(|&count| count == 0),
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a.iter().zip(b.iter()).all(|(a, b)| a <= b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(counts: &[(u32, u32)]) -> VectorClock {
        let mut clock = VectorClock::default();
        for &(thread, count) in counts {
            clock.set(ThreadId(thread), count);
        }
        clock
    }

    #[test]
    fn join_takes_the_larger_count_in_head_and_tail() {
        let mut a = clock(&[(0, 3), (5, 1), (70, 4), (9_999, 2)]);
        a.join(&clock(&[(0, 1), (6, 2), (70, 5), (200, 7)]));
        let seen: Vec<u32> = [0, 5, 6, 70, 200, 9_999, 4_000_000]
            .iter()
            .map(|&t| a.get(ThreadId(t)))
            .collect();
        assert_eq!(seen, [3, 1, 2, 5, 7, 2, 0]);
    }

    #[test]
    fn le_compares_every_thread() {
        let small = clock(&[(1, 1), (100, 1)]);
        let large = clock(&[(1, 2), (100, 1), (300, 1)]);
        assert!(small.le(&large));
        assert!(!large.le(&small));
        assert!(VectorClock::default().le(&small));
        assert!(!clock(&[(64, 1)]).le(&clock(&[(63, 9)])));
    }

    #[test]
    fn a_joined_chunk_is_shared_not_copied() {
        let source = clock(&[(70, 4)]);
        let mut other = VectorClock::default();
        other.join(&source);
        let (Some(a), Some(b)) = (&source.tail[0], &other.tail[0]) else {
            panic!("no chunk")
        };
        assert!(Arc::ptr_eq(a, b));
    }
}
