//! The source of all choices: a seed gives the same program and state for ever.

/// SplitMix64 (Steele, Lea & Flood 2014): small, and good enough to choose test inputs.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Independent streams for the cases of a run.
    pub(crate) fn new(seed: u64, case: u64) -> Self {
        let mut random = Random(seed ^ case.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True so many times in a hundred.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let value = self.value().to_le_bytes();
            chunk.copy_from_slice(&value[..chunk.len()]);
        }
    }

    /// A number of the kind that finds mistakes: small, near a power of two, all ones, or anything.
    pub(crate) fn value(&mut self) -> u64 {
        match self.below(8) {
            0 => self.below(16),
            1 => self.below(16).wrapping_neg(),
            2 => (1u64 << self.below(64)).wrapping_sub(self.below(3)),
            3 => self.next() & 0xffff_ffff,
            _ => self.next(),
        }
    }
}
