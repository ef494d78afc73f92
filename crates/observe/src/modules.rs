//! Which files are mapped where, and whose code is in them.

use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use verdict_stream::{Mapped, Runtime, runtime_of};

/// Whose code it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// The program's, and that of libraries that are not listed here: it may race.
    Program,
    /// The language's runtime: its own data does not race, what it does to others' data is its caller's doing.
    Library,
    /// The dynamic loader: nothing that it does is anybody else's doing.
    Loader,
    /// A runtime for parallel programs: everything in its own data orders threads.
    Parallel,
}

/// A mapped file with code.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) path: PathBuf,
    pub(crate) owner: Owner,
    /// The C library is linked into it: code without source lines is a library's.
    pub(crate) holds_library: bool,
    /// Its file says where the source of its code is; what it does not say that of was made by the compiler.
    pub(crate) has_sources: bool,
    /// All its memory, data included.
    pub(crate) extent: Range<u64>,
    /// Stubs that jump through a table.
    stubs: Vec<Range<u64>>,
    /// Objects of other libraries that were copied into its data.
    copied: Vec<Range<u64>>,
    /// Variables that guard the initialisation of others.
    pub(crate) guards: Vec<u64>,
    /// Of libraries: where functions begin, and their symbols.
    functions: BTreeMap<u64, String>,
}

/// Parts of files that can be executed, and the modules they belong to.
#[derive(Default, Debug)]
pub(crate) struct Modules {
    modules: Vec<Module>,
    /// By first address.
    code: BTreeMap<u64, Code>,
}

#[derive(Debug)]
struct Code {
    end: u64,
    file_offset: u64,
    module: usize,
}

impl Modules {
    /// Something was mapped; answers with the module if there is code in it.
    pub(crate) fn mapped(&mut self, mapped: &Mapped) -> Option<&Module> {
        let covered: Vec<u64> = self
            .code
            .range(..mapped.end)
            .filter(|(_, code)| code.end > mapped.start)
            .map(|(start, _)| *start)
            .collect();
        for start in covered {
            self.code.remove(&start);
        }
        let (path, file_offset) = mapped.file.as_ref()?;
        if !mapped.executable {
            return None;
        }
        let module = match self.modules.iter().position(|known| known.path == *path) {
            Some(known) => known,
            None => {
                self.modules.push(read(path, *file_offset, mapped.start));
                self.modules.len() - 1
            }
        };
        let code = Code {
            end: mapped.end,
            file_offset: *file_offset,
            module,
        };
        self.code.insert(mapped.start, code);
        Some(&self.modules[module])
    }

    /// The module whose code is at an address, and where in its file.
    pub(crate) fn find(&self, pc: u64) -> Option<(&Module, u64)> {
        let (start, code) = self.code.range(..=pc).next_back()?;
        let offset = code.file_offset + (pc - start);
        (pc < code.end).then(|| (&self.modules[code.module], offset))
    }

    /// Addresses around one that is in no module's memory, for all of which this is so.
    pub(crate) fn gap(&self, address: u64) -> Option<Range<u64>> {
        let mut gap = 0..u64::MAX;
        for Module { extent, .. } in &self.modules {
            if extent.contains(&address) {
                return None;
            }
            if extent.end <= address {
                gap.start = gap.start.max(extent.end);
            } else {
                gap.end = gap.end.min(extent.start);
            }
        }
        Some(gap)
    }

    /// The module whose memory an address is in.
    pub(crate) fn holding(&self, address: u64) -> Option<&Module> {
        self.modules
            .iter()
            .find(|module| module.extent.contains(&address))
    }
}

impl Module {
    pub(crate) fn is_stub(&self, pc: u64) -> bool {
        self.stubs.iter().any(|stub| stub.contains(&pc))
    }

    /// The symbol of the library's function that an address is in.
    pub(crate) fn function(&self, pc: u64) -> Option<&str> {
        let (_, name) = self.functions.range(..=pc).next_back()?;
        Some(name)
    }

    pub(crate) fn is_copied(&self, address: u64) -> bool {
        self.copied.iter().any(|object| object.contains(&address))
    }
}

fn owner_of(path: &Path) -> Owner {
    match runtime_of(path) {
        None => Owner::Program,
        Some(Runtime::Library) => Owner::Library,
        Some(Runtime::Loader) => Owner::Loader,
        Some(Runtime::Parallel) => Owner::Parallel,
    }
}

fn read(path: &Path, file_offset: u64, start: u64) -> Module {
    let mut module = Module {
        path: path.to_owned(),
        owner: owner_of(path),
        holds_library: false,
        has_sources: false,
        extent: start..start,
        stubs: Vec::new(),
        copied: Vec::new(),
        guards: Vec::new(),
        functions: BTreeMap::new(),
    };
    let Ok(bytes) = fs::read(path) else {
        return module;
    };
    let Ok(binary) = ElfFile64::<object::Endianness>::parse(&*bytes) else {
        return module;
    };
    let endian = binary.endian();
    let loaded = |header: &&object::elf::ProgramHeader64<object::Endianness>| {
        header.p_type(endian) == object::elf::PT_LOAD
    };
    let headers = binary.elf_program_headers();
    let holder = headers.iter().filter(loaded).find(|header| {
        let (offset, size) = (header.p_offset(endian), header.p_filesz(endian));
        (offset & !0xfff..offset + size).contains(&file_offset)
    });
    let Some(holder) = holder else {
        return module;
    };
    // The mapping begins at a page, the segment within it.
    let ahead = holder.p_offset(endian).wrapping_sub(file_offset);
    let bias = start
        .wrapping_add(ahead)
        .wrapping_sub(holder.p_vaddr(endian));
    let ends = headers.iter().filter(loaded).map(|header| {
        let from = header.p_vaddr(endian);
        (from, from + header.p_memsz(endian))
    });
    let (low, high) = ends.fold((u64::MAX, 0), |all, one| {
        (all.0.min(one.0), all.1.max(one.1))
    });
    module.extent = low.wrapping_add(bias) & !0xfff..high.wrapping_add(bias);
    let moved = |address: u64, size: u64| {
        let start = address.wrapping_add(bias);
        start..start.saturating_add(size)
    };
    module.has_sources = binary.section_by_name(".debug_info").is_some();
    module.stubs = binary
        .sections()
        .filter(|section| section.name().is_ok_and(|name| name.starts_with(".plt")))
        .map(|section| moved(section.address(), section.size()))
        .collect();
    let symbols = || binary.symbols().chain(binary.dynamic_symbols());
    module.holds_library = module.owner == Owner::Program
        && symbols().any(|symbol| {
            let named = symbol.name().is_ok_and(|name| name == "__libc_start_main");
            named && symbol.is_definition()
        });
    module.guards = symbols()
        .filter(|symbol| symbol.is_definition())
        .filter(|symbol| symbol.name().is_ok_and(|name| name.starts_with("_ZGV")))
        .map(|symbol| symbol.address().wrapping_add(bias))
        .collect();
    if module.owner != Owner::Program {
        module.functions = symbols()
            .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
            .filter_map(|symbol| {
                let name = symbol.name().ok()?.to_owned();
                Some((symbol.address().wrapping_add(bias), name))
            })
            .collect();
    }
    for (at, relocation) in binary.dynamic_relocations().into_iter().flatten() {
        let copies = relocation.flags()
            == object::RelocationFlags::Elf {
                r_type: object::elf::R_X86_64_COPY,
            };
        if let (true, RelocationTarget::Symbol(index)) = (copies, relocation.target())
            && let Some(table) = binary.dynamic_symbol_table()
            && let Ok(symbol) = object::ObjectSymbolTable::symbol_by_index(&table, index)
        {
            module.copied.push(moved(at, symbol.size()));
        }
    }
    module
}
