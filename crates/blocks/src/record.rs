//! One row of a block's read or write set, on its way to the detection.

use verdict_detect::AccessKind;
use verdict_events::SiteId;

/// No unit.
pub(crate) const NONE: u32 = u32::MAX;

/// A site and what it does there, in one number that a column holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct What(pub u32);

const KIND_BITS: u32 = 3;
/// Sites are numbered below this.
pub(crate) const SITES_MAX: u32 = 1 << (32 - KIND_BITS);

const KINDS: [AccessKind; 5] = [
    AccessKind::Read,
    AccessKind::Write,
    AccessKind::AtomicRead,
    AccessKind::AtomicWrite,
    AccessKind::Free,
];

impl What {
    #[inline]
    pub fn new(site: SiteId, kind: AccessKind) -> What {
        What(site.0 << KIND_BITS | kind as u32)
    }

    #[inline]
    pub fn site(self) -> SiteId {
        SiteId(self.0 >> KIND_BITS)
    }

    /// Numbers above those of the kinds are refused where bytes are decoded.
    #[inline]
    pub fn kind(self) -> AccessKind {
        KINDS[self.kind_number() as usize]
    }

    #[inline]
    pub fn kind_number(self) -> u32 {
        self.0 & ((1 << KIND_BITS) - 1)
    }

    #[inline]
    pub fn is_valid(self) -> bool {
        (self.kind_number() as usize) < KINDS.len()
    }
}

/// All accesses of one block to one unit that differ in time only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub unit: u32,
    /// Number of the block; blocks are numbered as they begin.
    pub block: u32,
    pub what: What,
    pub count: u32,
    /// From the start of the block to the first of the accesses, in events.
    pub offset: u32,
    /// The unit just before this one, if the accesses touch that as well: then a partner that also does was counted there.
    pub previous: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_site_and_kind() {
        for kind in KINDS {
            let what = What::new(SiteId(SITES_MAX - 1), kind);
            assert_eq!((what.site(), what.kind()), (SiteId(SITES_MAX - 1), kind));
            assert!(what.is_valid());
        }
        assert!(!What(5).is_valid());
    }
}
