//! Which system calls change files, so that their time stamps change.

use crate::Kernel;
use crate::thread::Call;

impl Kernel {
    /// The host is about to perform a call: if it may change a file, the file's stamp shall be of this run.
    pub(super) fn before_change(&mut self, call: &Call) {
        if self.clock.awaits_first_stamp() && changes_files(call.number, call.args) {
            self.clock.await_first_stamp();
        }
    }
}

/// True if a file may have another time stamp after the call. A program that is executed may change whatever it likes.
fn changes_files(number: u64, a: [u64; 6]) -> bool {
    let makes = |flags: u64| {
        flags as i32 & (libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE & !libc::O_DIRECTORY) != 0
    };
    match number as i64 {
        libc::SYS_open => makes(a[1]),
        libc::SYS_openat => makes(a[2]),
        libc::SYS_write | libc::SYS_writev | libc::SYS_ftruncate | libc::SYS_fallocate => {
            is_file(a[0])
        }
        libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => is_file(a[0]),
        libc::SYS_mmap => a[3] as i32 & libc::MAP_TYPE != libc::MAP_PRIVATE && is_file(a[4]),
        libc::SYS_openat2
        | libc::SYS_creat
        | libc::SYS_truncate
        | libc::SYS_sendfile
        | libc::SYS_splice
        | libc::SYS_copy_file_range
        | libc::SYS_ioctl
        | libc::SYS_mkdir
        | libc::SYS_mkdirat
        | libc::SYS_mknod
        | libc::SYS_mknodat
        | libc::SYS_rmdir
        | libc::SYS_unlink
        | libc::SYS_unlinkat
        | libc::SYS_rename
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_link
        | libc::SYS_linkat
        | libc::SYS_symlink
        | libc::SYS_symlinkat
        | libc::SYS_bind
        | libc::SYS_chmod
        | libc::SYS_fchmod
        | libc::SYS_fchmodat
        | libc::SYS_chown
        | libc::SYS_fchown
        | libc::SYS_lchown
        | libc::SYS_fchownat
        | libc::SYS_setxattr
        | libc::SYS_lsetxattr
        | libc::SYS_fsetxattr
        | libc::SYS_removexattr
        | libc::SYS_lremovexattr
        | libc::SYS_fremovexattr
        | libc::SYS_utime
        | libc::SYS_utimes
        | libc::SYS_futimesat
        | libc::SYS_utimensat
        | libc::SYS_execve
        | libc::SYS_execveat => true,
        _ => false,
    }
}

/// True if a descriptor leads to a file or a directory.
fn is_file(descriptor: u64) -> bool {
    // SAFETY: all zeroes is a valid `stat`, and it is a valid buffer.
    let found = unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor as i32, &mut found) == 0).then_some(found)
    };
    found.is_some_and(|found| matches!(found.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn changes(number: i64, args: [u64; 6]) -> bool {
        changes_files(number as u64, args)
    }

    #[test]
    fn only_what_makes_or_writes_a_file_changes_one() {
        let file = std::fs::File::open("/").unwrap();
        let (_reader, writer) = std::io::pipe().unwrap();
        let to = |descriptor: i32| [descriptor as u64, 0, 1, 0, 0, 0];
        assert!(changes(libc::SYS_write, to(file.as_raw_fd())));
        assert!(!changes(libc::SYS_write, to(writer.as_raw_fd())));
        assert!(!changes(libc::SYS_read, to(file.as_raw_fd())));
        let opens = |flags: i32| changes(libc::SYS_openat, [0, 0, flags as u64, 0, 0, 0]);
        assert!(opens(libc::O_WRONLY | libc::O_CREAT));
        assert!(opens(libc::O_RDWR | libc::O_TMPFILE));
        assert!(!opens(libc::O_RDONLY | libc::O_DIRECTORY));
        assert!(changes(libc::SYS_unlink, [0; 6]));
    }
}
