//! Whose code is in which files.

use std::path::Path;

/// Code that is not the program's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runtime {
    /// The language's own library.
    Library,
    /// The dynamic loader.
    Loader,
    /// A runtime for parallel programs.
    Parallel,
}

/// Beginnings of file names, and whose code is in such files.
const RUNTIMES: [(&str, Runtime); 18] = [
    ("ld-linux", Runtime::Loader),
    ("ld-2", Runtime::Loader),
    ("ld.so", Runtime::Loader),
    ("libc.so", Runtime::Library),
    ("libc-2", Runtime::Library),
    ("libpthread", Runtime::Library),
    ("libm.so", Runtime::Library),
    ("libm-2", Runtime::Library),
    ("libmvec", Runtime::Library),
    ("libdl.so", Runtime::Library),
    ("librt.so", Runtime::Library),
    ("libresolv", Runtime::Library),
    ("libnss_", Runtime::Library),
    ("libgcc_s", Runtime::Library),
    ("libstdc++", Runtime::Library),
    ("libgomp", Runtime::Parallel),
    ("libomp", Runtime::Parallel),
    ("libiomp", Runtime::Parallel),
];

/// Whose code is in a file; `None` for the program's, and that of libraries that are not listed.
#[must_use]
pub fn runtime_of(path: &Path) -> Option<Runtime> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut all = RUNTIMES.iter();
    let found = all.find(|(start, _)| name.starts_with(start));
    found.map(|(_, runtime)| *runtime)
}
