//! Ids are types, not integers: a thread cannot be passed where a site is meant.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A thread of the traced program. Dense: a reader numbers threads from 0 in order of first
    /// appearance and keeps their original names in [`crate::Names`].
    ThreadId(u32)
}
id! {
    /// A site: one static instruction, or the location field of an imported text trace. Dense from 0.
    SiteId(u32)
}
id! {
    /// A byte address. Readers of text traces give each named variable an address of its own.
    Addr(u64)
}
id! {
    /// A synchronisation object: lock, condition, barrier or semaphore. Dense from 0 in imported
    /// traces, the object's address in traces of real programs.
    SyncId(u64)
}
id! {
    /// The index of an event in its trace, from 0.
    Position(u64)
}
