//! Separate debug files: where `strip` and distributions put what they take out of a binary.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Object;

/// Reads the debug file that belongs to a binary, if there is one: by build id first, then by debug link.
pub(crate) fn find<'data>(
    binary: &impl Object<'data>,
    path: &Path,
    debug_root: &Path,
) -> Option<Vec<u8>> {
    by_build_id(binary, debug_root).or_else(|| by_debug_link(binary, path, debug_root))
}

fn by_build_id<'data>(binary: &impl Object<'data>, debug_root: &Path) -> Option<Vec<u8>> {
    let id = binary.build_id().ok()??;
    let bytes = fs::read(build_id_path(id, debug_root)?).ok()?;
    let same = object::File::parse(&*bytes).ok()?.build_id().ok()? == Some(id);
    same.then_some(bytes)
}

pub(crate) fn build_id_path(id: &[u8], debug_root: &Path) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(debug_root.join(format!(".build-id/{first:02x}/{rest}.debug")))
}

fn by_debug_link<'data>(
    binary: &impl Object<'data>,
    path: &Path,
    debug_root: &Path,
) -> Option<Vec<u8>> {
    let (name, checksum) = binary.gnu_debuglink().ok()??;
    // A name, not a path: nothing outside the three folders is read for a binary that asks for it.
    let name = Path::new(OsStr::from_bytes(name)).file_name()?;
    let path = path.canonicalize().ok()?;
    let folder = path.parent()?;
    let below_root = folder.strip_prefix("/").unwrap_or(folder);
    [
        folder.to_owned(),
        folder.join(".debug"),
        debug_root.join(below_root),
    ]
    .into_iter()
    .filter_map(|folder| fs::read(folder.join(name)).ok())
    .find(|bytes| crc32fast::hash(bytes) == checksum)
}

/// The file that `dwz` moved common parts to, where a debug file says so.
pub(crate) fn find_supplementary<'data>(
    debug: &impl Object<'data>,
    debug_root: &Path,
) -> Option<Vec<u8>> {
    let (_, id) = debug.gnu_debugaltlink().ok()??;
    fs::read(build_id_path(id, debug_root)?).ok()
}
