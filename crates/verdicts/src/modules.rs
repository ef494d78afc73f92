//! Where the places of a document are in the guest's memory.

use object::{Object, ObjectSegment, ObjectSymbol};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use verdict_findings::{Access, text_of_bytes};
use verdict_protocol::MappedModule;

/// Functions at whose beginning threads synchronise: occasions to switch, and ends of segments.
const SYNCHRONISING: [&str; 20] = [
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_unlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_unlock",
    "pthread_spin_lock",
    "pthread_spin_unlock",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "pthread_barrier_wait",
    "pthread_create",
    "pthread_join",
    "sem_wait",
    "sem_post",
    "mtx_lock",
    "mtx_unlock",
    "sched_yield",
];

/// Those of them that take a lock.
const LOCKING: [&str; 6] = [
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_spin_lock",
    "mtx_lock",
];

/// Functions that free their first argument.
const FREEING: [&str; 2] = ["free", "realloc"];

/// Functions after which the block that they are given is gone.
const RELEASING: [&str; 1] = ["free"];

/// Name, address and size.
pub(crate) type Symbol = (String, u64, u64);

/// The files that are mapped to be executed. Every execution maps them alike.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    mapped: Vec<MappedModule>,
}

impl Modules {
    /// Of an execution.
    #[must_use]
    pub fn new(mapped: Vec<MappedModule>) -> Self {
        Modules { mapped }
    }

    /// All of them.
    #[must_use]
    pub fn mapped(&self) -> &[MappedModule] {
        &self.mapped
    }

    /// Where an access's instruction is in memory.
    #[must_use]
    pub fn pc(&self, access: &Access) -> Option<u64> {
        let part = self.mapped.iter().find(|part| {
            let len = part.end - part.start;
            text_of_bytes(&part.path) == access.module
                && (part.file_offset..part.file_offset + len).contains(&access.offset)
        })?;
        Some(part.start + (access.offset - part.file_offset))
    }

    /// Functions that synchronise, wherever they are.
    #[must_use]
    pub fn synchronising(&self) -> Vec<u64> {
        self.functions(&SYNCHRONISING)
    }

    /// Functions that take a lock, wherever they are.
    #[must_use]
    pub fn locking(&self) -> Vec<u64> {
        self.functions(&LOCKING)
    }

    /// Functions that free their first argument, wherever they are.
    #[must_use]
    pub fn freeing(&self) -> Vec<u64> {
        self.functions(&FREEING)
    }

    /// Functions after which the block that they are given is gone, wherever they are.
    #[must_use]
    pub fn releasing(&self) -> Vec<u64> {
        self.functions(&RELEASING)
    }

    fn functions(&self, names: &[&str]) -> Vec<u64> {
        let paths: BTreeSet<PathBuf> = self.mapped.iter().map(path).collect();
        paths
            .iter()
            .flat_map(|path| self.functions_in(path, names))
            .collect()
    }

    fn functions_in(&self, file: &Path, names: &[&str]) -> Vec<u64> {
        let Ok(bytes) = std::fs::read(file) else {
            return Vec::new();
        };
        let Ok(binary) = object::File::parse(&*bytes) else {
            return Vec::new();
        };
        let wanted = binary
            .dynamic_symbols()
            .chain(binary.symbols())
            .filter(|symbol| symbol.is_definition())
            .filter(|symbol| symbol.name().is_ok_and(|name| names.contains(&name)));
        let mut found: Vec<u64> = wanted
            .filter_map(|symbol| self.loaded(file, offset_of(&binary, symbol.address())?))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Symbols of the program's own file, as `pick` chooses them by name, address as linked and size: with their addresses in
    /// memory.
    pub(crate) fn symbols(&self, pick: &dyn Fn(&object::File<'_>) -> Vec<Symbol>) -> Vec<Symbol> {
        let Some(file) = self.mapped.first().map(path) else {
            return Vec::new();
        };
        let Ok(bytes) = std::fs::read(&file) else {
            return Vec::new();
        };
        let Ok(binary) = object::File::parse(&*bytes) else {
            return Vec::new();
        };
        // Data is not among what is mapped to be executed: all parts of the file are moved by the same distance.
        let Some(bias) = self.bias(&file, &binary) else {
            return Vec::new();
        };
        let moved = |(name, address, size): Symbol| (name, address.wrapping_add(bias), size);
        pick(&binary).into_iter().map(moved).collect()
    }

    /// How far a file's addresses as linked are from where they are in memory.
    fn bias(&self, file: &Path, binary: &object::File<'_>) -> Option<u64> {
        binary.segments().find_map(|segment| {
            let (offset, _) = segment.file_range();
            let loaded = self.loaded(file, offset)?;
            Some(loaded.wrapping_sub(segment.address()))
        })
    }

    /// The program's file, then the other files, those of the system last.
    pub(crate) fn own_first(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for part in self.mapped.iter().map(path) {
            if !paths.contains(&part) {
                paths.push(part);
            }
        }
        let of_system = |path: &PathBuf| path.starts_with("/usr/lib") || path.starts_with("/lib");
        paths.sort_by_key(of_system);
        paths
    }

    /// Where an offset in a file is in memory.
    pub(crate) fn loaded(&self, file: &Path, offset: u64) -> Option<u64> {
        let part = self.mapped.iter().find(|part| {
            path(part) == file
                && (part.file_offset..part.file_offset + (part.end - part.start)).contains(&offset)
        })?;
        Some(part.start + (offset - part.file_offset))
    }
}

fn path(module: &MappedModule) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&module.path))
}

/// The place in the file of an address as linked.
fn offset_of<'data>(binary: &impl Object<'data>, address: u64) -> Option<u64> {
    binary.segments().find_map(|segment| {
        let (offset, size) = segment.file_range();
        let inside = address.checked_sub(segment.address())?;
        (inside < size).then_some(offset + inside)
    })
}
