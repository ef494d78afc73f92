//! Output files that appear whole or not at all.
//!
//! A [`WholeFile`] is written under a temporary name beside its destination (`.trace.bin.4711.partial`)
//! and takes its real name in one step, by [`WholeFile::finish`]. Dropped without that - after an error, on
//! the way out of a panic - it is removed. A process that ends on Ctrl-C unwinds nothing, so every unfinished
//! file is also listed in its [`PendingFiles`], whose [`remove_all`](PendingFiles::remove_all) is what a
//! signal handler thread calls. Even `kill -9` leaves at worst a file whose name says that it is partial.
//!
//! A [`WholeFolder`] is the same for several files that belong together.
#![forbid(unsafe_code)]

mod folder;
mod pending;
mod whole;

pub use folder::WholeFolder;
pub use pending::PendingFiles;
pub use whole::WholeFile;
