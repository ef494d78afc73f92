//! From places in binaries to functions and source lines.
//!
//! A place is a module and an offset in its file, which mean the same in every run. Answers get poorer with what is
//! known, and never fail: source lines with inlined callers where there is debug information (in the file itself, or in
//! a separate one found by build id or debug link); a function and an offset where there is a symbol table; else
//! the module and the offset.
//!
//! Misses: split DWARF (`.dwo` files), and symbols packed into `.gnu_debugdata`.
#![forbid(unsafe_code)]

mod debug_file;
mod location;
mod module;
mod symbols;
mod unwind;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use location::{Frame, Function, Location, Source};
pub use unwind::{MappedModule, StoppedThread};

use module::Module;

/// Where distributions put separate debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// Answers questions, and remembers the modules it has been asked about.
pub struct Symbolizer {
    debug_root: PathBuf,
    modules: HashMap<PathBuf, Module>,
}

impl std::fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbolizer")
            .field("debug_root", &self.debug_root)
            .field("modules", &self.modules.len())
            .finish()
    }
}

impl Default for Symbolizer {
    fn default() -> Self {
        Self::with_debug_root(DEBUG_ROOT.into())
    }
}

impl Symbolizer {
    /// Looks for separate debug files in this folder instead of the system's.
    #[must_use]
    pub fn with_debug_root(debug_root: PathBuf) -> Self {
        Self {
            debug_root,
            modules: HashMap::new(),
        }
    }

    /// The place at an offset in a module's file.
    pub fn at_file_offset(&mut self, module: &Path, file_offset: u64) -> Location {
        let frames = self.module(module).frames_at_file_offset(file_offset);
        Location {
            module: module.to_owned(),
            file_offset: Some(file_offset),
            frames,
        }
    }

    /// The place at an address as the module was linked.
    pub fn at_address(&mut self, module: &Path, address: u64) -> Location {
        let module_info = self.module(module);
        Location {
            file_offset: module_info.file_offset(address),
            frames: module_info.frames_at(address),
            module: module.to_owned(),
        }
    }

    /// Where a thread stands and how it came there, innermost first, as far as its stack can be followed.
    pub fn call_chain(&mut self, thread: &StoppedThread<'_>) -> Vec<Location> {
        let places = unwind::walk(thread, &mut |path| self.module(path).unwind_table());
        places
            .iter()
            .map(|place| self.place(thread, *place))
            .collect()
    }

    /// A place in memory.
    fn place(&mut self, thread: &StoppedThread<'_>, address: u64) -> Location {
        match thread.find(address) {
            Some((module, file_offset)) => self.at_file_offset(module, file_offset),
            None => Location {
                module: format!("{address:#x}, in no file").into(),
                file_offset: None,
                frames: Vec::new(),
            },
        }
    }

    fn module(&mut self, path: &Path) -> &Module {
        if !self.modules.contains_key(path) {
            self.modules
                .insert(path.to_owned(), Module::open(path, &self.debug_root));
        }
        &self.modules[path]
    }
}
