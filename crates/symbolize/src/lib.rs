//! From places in binaries to functions, source lines and variables.
//!
//! A place is a module and an offset in its file, which mean the same in every run. Answers get poorer with what is
//! known, and never fail: source lines with inlined callers where there is debug information (in the file itself, or in
//! a separate one found by build id or debug link); a function and an offset where there is a symbol table; else
//! the module and the offset.
//!
//! Misses: symbols packed into `.gnu_debugdata`.
#![forbid(unsafe_code)]

mod atomic;
mod braces;
mod debug;
mod debug_file;
mod functions;
mod lines;
mod locals;
mod location;
mod module;
mod process;
mod source_atomic;
mod source_text;
mod split;
mod symbols;
mod types;
mod units;
mod unwind;
mod variables;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use atomic::AtomicAccess;
pub use lines::LineCode;
pub use location::{Frame, Function, Location, Source};
pub use process::{FrameVariable, LoadedModule};
pub use source_text::SourceTexts;
pub use unwind::{MappedModule, StoppedThread};
pub use variables::Variable;

use module::Module;
use unwind::CalledFrame;

/// Where distributions put separate debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// Answers questions, and remembers the modules it has been asked about.
pub struct Symbolizer {
    debug_root: PathBuf,
    modules: HashMap<PathBuf, Module>,
    texts: SourceTexts,
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
            texts: SourceTexts::default(),
        }
    }

    /// The place at an offset in a module's file.
    pub fn at_file_offset(&mut self, module: &Path, file_offset: u64) -> Location {
        let frames = match self.module(module).address(file_offset) {
            Some(address) => self.frames_at(module, address),
            None => Vec::new(),
        };
        Location {
            module: module.to_owned(),
            file_offset: Some(file_offset),
            frames,
        }
    }

    /// The place at an address as the module was linked.
    pub fn at_address(&mut self, module: &Path, address: u64) -> Location {
        Location {
            file_offset: self.module(module).file_offset(address),
            frames: self.frames_at(module, address),
            module: module.to_owned(),
        }
    }

    fn frames_at(&mut self, path: &Path, address: u64) -> Vec<Frame> {
        load(&mut self.modules, path, &self.debug_root);
        let module = &self.modules[path];
        let mut frames = module.frames_at(address);
        if let Some(source) = frames.first_mut().and_then(|frame| frame.source.as_mut())
            && let Some(debug) = module.debug()
        {
            braces::correct(debug, &mut self.texts, address, source);
        }
        frames
    }

    /// The code of a source line in a module; `file` may leave out folders in front.
    pub fn code_of_line(&mut self, module: &Path, file: &Path, line: u32) -> LineCode {
        load(&mut self.modules, module, &self.debug_root);
        let module = &self.modules[module];
        let Some(debug) = module.debug() else {
            return LineCode::default();
        };
        let (file_known, addresses) = debug.code_of_line(file, line);
        let part = |range: std::ops::Range<u64>| {
            let start = module.file_offset(range.start)?;
            Some(start..start + (range.end - range.start))
        };
        LineCode {
            file_known,
            parts: addresses.into_iter().filter_map(part).collect(),
        }
    }

    /// Whether the plain instruction at an offset in a module's file is an access of an atomic operation.
    pub fn atomic_at(&mut self, module: &Path, file_offset: u64) -> Option<AtomicAccess> {
        load(&mut self.modules, module, &self.debug_root);
        let module = &self.modules[module];
        atomic::at(
            module.debug()?,
            &mut self.texts,
            module.address(file_offset)?,
        )
    }

    /// Where a thread stands and how it came there, innermost first, as far as its stack can be followed.
    pub fn call_chain(&mut self, thread: &StoppedThread<'_>) -> Vec<Location> {
        self.frames(thread)
            .iter()
            .map(|frame| self.place(thread, frame.place))
            .collect()
    }

    fn frames(&mut self, thread: &StoppedThread<'_>) -> Vec<CalledFrame> {
        unwind::walk(thread, &mut |path| self.module(path).unwind_table())
    }

    /// Where the modules of a process are, from what is mapped of them. Files that are no binaries are left out.
    pub fn loaded(&mut self, mapped: &[MappedModule<'_>]) -> Vec<LoadedModule> {
        let parts = process::first_parts(mapped).into_iter();
        let loaded = parts.filter_map(|(path, start, file_offset)| {
            let linked = self.module(path).address(file_offset)?;
            Some(LoadedModule {
                path: path.to_owned(),
                bias: start.wrapping_sub(linked),
            })
        });
        loaded.collect()
    }

    /// The global or static variable at an address of a process, and the module it is in.
    pub fn variable(
        &mut self,
        loaded: &[LoadedModule],
        address: u64,
        size: u64,
    ) -> Option<(PathBuf, Variable)> {
        loaded.iter().find_map(|loaded| {
            let linked = address.wrapping_sub(loaded.bias);
            let module = self.module(&loaded.path);
            let variable = module
                .holds(linked)
                .then(|| module.variable(linked, size))??;
            Some((loaded.path.clone(), variable))
        })
    }

    /// The module whose memory an address of a process is in.
    pub fn module_of(&mut self, loaded: &[LoadedModule], address: u64) -> Option<PathBuf> {
        let found = loaded.iter().find(|loaded| {
            let linked = address.wrapping_sub(loaded.bias);
            self.module(&loaded.path).holds(linked)
        });
        found.map(|loaded| loaded.path.clone())
    }

    /// The thread-local variable of the program itself at an address, if it belongs to the thread whose thread pointer
    /// (`fs` base) this is. Those of libraries are elsewhere.
    pub fn thread_local(
        &mut self,
        program: &Path,
        thread_pointer: u64,
        address: u64,
        size: u64,
    ) -> Option<Variable> {
        let module = self.module(program);
        // The program's block ends where the thread pointer points to (variant II of the ABI).
        let begins = thread_pointer.checked_sub(module.thread_local_bytes())?;
        (begins..thread_pointer)
            .contains(&address)
            .then(|| module.thread_local(address - begins, size))?
    }

    /// The variable of a thread's stack at an address, with the function whose frame it is in.
    pub fn stack_variable(
        &mut self,
        thread: &StoppedThread<'_>,
        address: u64,
        size: u64,
    ) -> Option<FrameVariable> {
        let frames = self.frames(thread);
        let frame = frames.iter().find(|frame| frame.holds(address))?;
        let (path, file_offset) = thread.find(frame.place)?;
        let module = self.module(path);
        let code = module.address(file_offset)?;
        let frames = module.frames_at(code);
        let function = frames.last().and_then(|frame| frame.function.as_ref());
        Some(FrameVariable {
            function: function.map(|function| function.name.clone()),
            variable: module
                .debug()
                .and_then(|debug| locals::find(debug.units(), frame, code, address, size)),
        })
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
        load(&mut self.modules, path, &self.debug_root);
        &self.modules[path]
    }
}

fn load(modules: &mut HashMap<PathBuf, Module>, path: &Path, debug_root: &Path) {
    if !modules.contains_key(path) {
        modules.insert(path.to_owned(), Module::open(path, debug_root));
    }
}
