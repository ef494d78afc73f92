//! What the world asks the host: how real files are called, what they are, and what they hold. Nothing here changes
//! anything outside.

use super::content::Base;
use super::node::{Meta, Time};
use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Files up to this size are copied at once: they then need no descriptor of ours.
const COPY_MAX: u64 = 256 << 10;
/// More than this is not read of a file that does not know its size (`/proc`, `/sys`).
const UNSIZED_MAX: u64 = 16 << 20;

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

fn errno(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// What a name of the real file system stands for, links not followed. `None` if there is nothing.
pub(super) fn look_at(name: &[u8]) -> Option<Meta> {
    let found = std::fs::symlink_metadata(path(name)).ok()?;
    let time = |seconds: i64, nanos: i64| Time {
        seconds,
        nanos: nanos as u32,
    };
    Some(Meta {
        device: found.dev(),
        inode: found.ino(),
        mode: found.mode(),
        uid: found.uid(),
        gid: found.gid(),
        special: found.rdev(),
        size: found.size(),
        block_size: found.blksize(),
        blocks: found.blocks(),
        modified: time(found.mtime(), found.mtime_nsec()),
        changed: time(found.ctime(), found.ctime_nsec()),
        // When a file was last read depends on who else reads it; see `syscalls::file_times`.
        accessed: time(found.mtime(), found.mtime_nsec()),
        links: found.nlink(),
    })
}

/// Names in a real directory, in no particular order.
pub(super) fn names_in(directory: &[u8]) -> Result<Vec<Vec<u8>>, i32> {
    let entries = std::fs::read_dir(path(directory)).map_err(|error| errno(&error))?;
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.file_name().into_vec()))
        .collect())
}

/// The text of a real symbolic link.
pub(super) fn link_text(link: &[u8]) -> Result<Vec<u8>, i32> {
    let target = std::fs::read_link(path(link)).map_err(|error| errno(&error))?;
    Ok(target.into_os_string().into_vec())
}

/// Opens a real regular file for reading.
pub(super) fn open(name: &[u8]) -> Result<File, i32> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(path(name))
        .map_err(|error| errno(&error))
}

/// The content of a real regular file, and its length.
pub(super) fn content(name: &[u8], size: u64) -> Result<(Base, u64), i32> {
    let mut file = open(name)?;
    if size > COPY_MAX {
        return Ok((Base::File(Arc::new(file)), size));
    }
    // Files made by the kernel as they are read tell no size, or a wrong one.
    let is_made_up = name.starts_with(b"/proc/") || name.starts_with(b"/sys/");
    let limit = if is_made_up { UNSIZED_MAX } else { size };
    let mut bytes = Vec::with_capacity(size as usize);
    (&mut file)
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| errno(&error))?;
    if let Some(steady) = super::machine::at_rest(name, &bytes) {
        bytes = steady;
    }
    let len = bytes.len() as u64;
    Ok((Base::Bytes(bytes.into()), len))
}

/// Where the process stands.
pub(super) fn working_directory() -> Vec<u8> {
    std::env::current_dir().map_or_else(
        |_| b"/".to_vec(),
        |directory| directory.into_os_string().into_vec(),
    )
}

/// The limits of the process, soft and hard, by resource.
pub(super) fn limits() -> Vec<(u64, u64)> {
    (0..super::identity::LIMITS)
        .map(|resource| {
            let mut limit = libc::rlimit {
                rlim_cur: u64::MAX,
                rlim_max: u64::MAX,
            };
            // SAFETY: a valid buffer.
            unsafe { libc::getrlimit(resource as u32, &mut limit) };
            (limit.rlim_cur, limit.rlim_max)
        })
        .collect()
}

/// Who the process is: real, effective and saved user, then group; then the supplementary groups.
pub(super) fn identity() -> ([u32; 3], [u32; 3], Vec<u32>) {
    let (mut users, mut groups) = ([0u32; 3], [0u32; 3]);
    let mut more = vec![0u32; 1 << 16];
    // SAFETY: valid buffers of the sizes named.
    unsafe {
        libc::getresuid(&mut users[0], &mut users[1], &mut users[2]);
        libc::getresgid(&mut groups[0], &mut groups[1], &mut groups[2]);
        let count = libc::getgroups(more.len() as i32, more.as_mut_ptr());
        more.truncate(usize::try_from(count).unwrap_or(0));
    }
    (users, groups, more)
}

/// Size and use of a real file system, as `statfs` gives them, without what changes from moment to moment.
pub(super) fn file_system(name: &[u8]) -> Option<libc::statfs> {
    let name = CString::new(name).ok()?;
    // SAFETY: all-zero is valid for this plain struct, which the call fills.
    let mut info: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a valid string and buffer.
    if unsafe { libc::statfs(name.as_ptr(), &mut info) } != 0 {
        return None;
    }
    info.f_bfree = info.f_blocks / 2;
    info.f_bavail = info.f_blocks / 2;
    info.f_ffree = info.f_files / 2;
    Some(info)
}
