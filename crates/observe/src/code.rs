//! What is known of an instruction of the guest before it runs: whose it is, and whether it is atomic by its source.

use crate::modules::{Modules, Owner};
use rustc_hash::FxHashMap;
use verdict_events::MemoryOrder;
use verdict_symbolize::{Location, Symbolizer};

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code {
    /// Whose.
    pub(crate) owner: Owner,
    /// Of the program's code: some function in the inline chain has its source outside of the language's own files.
    pub(crate) own_source: bool,
    /// Debug information says that its access is atomic.
    pub(crate) atomic: bool,
    /// In which order, where it says that, too.
    pub(crate) order: Option<MemoryOrder>,
    /// It is in a stub of the procedure linkage table.
    pub(crate) stub: bool,
}

impl Code {
    /// True unless its accesses may mean more than that some bytes are read or written.
    pub(crate) fn may_repeat(&self) -> bool {
        let of_interest = matches!(self.owner, Owner::Program | Owner::Library);
        of_interest && !self.atomic && !self.stub
    }
}

/// Remembers what was asked.
#[derive(Default, Debug)]
pub(crate) struct CodeTable {
    known: FxHashMap<u64, Code>,
    pub(crate) symbolizer: Symbolizer,
    /// Instructions found atomic, and how: for explanations.
    pub(crate) atomic_by: std::collections::BTreeMap<String, u64>,
}

impl CodeTable {
    /// The instruction at an address.
    pub(crate) fn at(&mut self, pc: u64, modules: &Modules) -> Code {
        if let Some(code) = self.known.get(&pc) {
            return *code;
        }
        let code = self.look(pc, modules);
        self.known.insert(pc, code);
        code
    }

    /// Code has changed there.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    fn look(&mut self, pc: u64, modules: &Modules) -> Code {
        let plain = |owner| Code {
            owner,
            own_source: false,
            atomic: false,
            order: None,
            stub: false,
        };
        let Some((module, offset)) = modules.find(pc) else {
            // Code that was made at run time.
            return Code {
                own_source: true,
                ..plain(Owner::Program)
            };
        };
        if module.owner != Owner::Program {
            return plain(module.owner);
        }
        if module.is_stub(pc) {
            return Code {
                stub: true,
                ..plain(Owner::Program)
            };
        }
        let location = self.symbolizer.at_file_offset(&module.path, offset);
        let has_source = location.frames.iter().any(|frame| frame.source.is_some());
        if module.holds_library && !has_source {
            return plain(Owner::Library);
        }
        let atomic = self.symbolizer.atomic_at(&module.path, offset);
        if let Some(atomic) = &atomic {
            *self.atomic_by.entry(atomic.how.clone()).or_default() += 1;
        }
        Code {
            owner: Owner::Program,
            own_source: match has_source {
                true => own_frame(&location).is_some(),
                false => !module.has_sources,
            },
            atomic: atomic.is_some(),
            order: atomic.and_then(|atomic| atomic.order),
            stub: false,
        }
    }
}

/// The innermost frame whose source is not the language's own.
pub(crate) fn own_frame(location: &Location) -> Option<usize> {
    location.frames.iter().position(|frame| {
        frame
            .source
            .as_ref()
            .is_some_and(|source| !is_system_source(&source.file))
    })
}

/// True if a source file is part of the language: a header of the compiler or of the C or C++ library, Rust's standard
/// library.
pub fn is_system_source(file: &str) -> bool {
    let folders = [
        "/usr/include/",
        "/usr/lib/gcc/",
        "/usr/lib/llvm",
        "/rustc/",
        "library/std/",
        "library/core/",
        "library/alloc/",
    ];
    folders.iter().any(|folder| file.starts_with(folder))
        || file.contains("/rustlib/src/rust/library/")
        || file.contains("/include/c++/")
}
