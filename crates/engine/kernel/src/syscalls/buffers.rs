//! Which of the guest's memory a finished system call read and wrote. A recorder keeps what was written; a race
//! detector takes both for accesses of the calling thread.

/// Which way the data went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The call read the guest's memory.
    Read,
    /// The call wrote the guest's memory.
    Write,
}

/// A part of the guest's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// First byte.
    pub address: u64,
    /// How many.
    pub len: u64,
    /// Which way.
    pub direction: Direction,
}

/// Longest path or other string that is looked at.
const STRING_MAX: u64 = 4096;
/// More vectors than this are an error for Linux, too.
const VECTORS_MAX: u64 = 1024;
const SOCKET_ADDRESS_MAX: u64 = 128;
const IOVEC: u64 = 16;
const MSGHDR: u64 = 56;
const MMSGHDR: u64 = 64;
const STAT: u64 = 144;
const RUSAGE: u64 = 144;
const TIMESPEC: u64 = 16;
const ITIMERSPEC: u64 = 32;
const SIGINFO: u64 = 128;

/// The memory that a call with this result has touched. `read_word` reads eight bytes of the guest's memory as they
/// are after the call.
pub fn buffers(
    number: u64,
    args: &[u64; 6],
    result: i64,
    read_word: &dyn Fn(u64) -> Option<u64>,
) -> Vec<Buffer> {
    let mut list = List {
        buffers: Vec::new(),
        read_word,
    };
    list.inputs(number, args);
    if result >= 0 {
        list.data(number, args, result as u64);
        list.outputs(number, args, result as u64);
    }
    list.buffers
}

struct List<'a> {
    buffers: Vec<Buffer>,
    read_word: &'a dyn Fn(u64) -> Option<u64>,
}

impl List<'_> {
    fn add(&mut self, address: u64, len: u64, direction: Direction) {
        if address != 0 && len != 0 {
            self.buffers.push(Buffer {
                address,
                len,
                direction,
            });
        }
    }

    fn reads(&mut self, address: u64, len: u64) {
        self.add(address, len, Direction::Read);
    }

    fn writes(&mut self, address: u64, len: u64) {
        self.add(address, len, Direction::Write);
    }

    fn word(&self, address: u64) -> u64 {
        (self.read_word)(address).unwrap_or(0)
    }

    fn word32(&self, address: u64) -> u64 {
        self.word(address) & 0xffff_ffff
    }

    /// A string that the call was given, with its NUL.
    fn string(&mut self, address: u64) {
        let mut len = 0;
        while address != 0 && len < STRING_MAX {
            let Some(word) = (self.read_word)(address + len) else {
                break;
            };
            let bytes = word.to_le_bytes();
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                len += end as u64 + 1;
                break;
            }
            len += 8;
        }
        self.reads(address, len);
    }

    /// Data scattered over vectors, `left` bytes of it.
    fn vectors(&mut self, address: u64, count: u64, mut left: u64, direction: Direction) {
        let count = count.min(VECTORS_MAX);
        self.reads(address, count * IOVEC);
        for index in 0..count {
            let at = address + index * IOVEC;
            let (base, len) = (self.word(at), self.word(at + 8).min(left));
            self.add(base, len, direction);
            left -= len;
        }
    }

    fn message(&mut self, header: u64, transferred: u64, direction: Direction) {
        let (name, name_len) = (self.word(header), self.word32(header + 8));
        let (control, control_len) = (self.word(header + 32), self.word(header + 40));
        let (vectors, count) = (self.word(header + 16), self.word(header + 24));
        self.add(name, name_len.min(SOCKET_ADDRESS_MAX), direction);
        self.vectors(vectors, count, transferred, direction);
        self.add(control, control_len.min(1 << 16), direction);
        self.reads(header, MSGHDR);
        if direction == Direction::Write {
            // What the kernel fills in: lengths of name and control data, and flags.
            self.writes(header + 8, 4);
            self.writes(header + 40, 12);
        }
    }

    /// A socket address with its length before and after in memory.
    fn socket_address(&mut self, address: u64, len: u64) {
        if address != 0 && len != 0 {
            let filled = self.word32(len).min(SOCKET_ADDRESS_MAX);
            self.writes(address, filled);
            self.writes(len, 4);
        }
    }

    /// What calls are given beside the data: names, addresses, options.
    fn inputs(&mut self, number: u64, a: &[u64; 6]) {
        match number as i64 {
            libc::SYS_open
            | libc::SYS_stat
            | libc::SYS_lstat
            | libc::SYS_access
            | libc::SYS_chdir
            | libc::SYS_mkdir
            | libc::SYS_rmdir
            | libc::SYS_creat
            | libc::SYS_unlink
            | libc::SYS_readlink
            | libc::SYS_chmod
            | libc::SYS_chown
            | libc::SYS_lchown
            | libc::SYS_truncate
            | libc::SYS_statfs
            | libc::SYS_execve
            | libc::SYS_mknod
            | libc::SYS_utime
            | libc::SYS_utimes
            | libc::SYS_memfd_create => self.string(a[0]),
            libc::SYS_openat
            | libc::SYS_openat2
            | libc::SYS_newfstatat
            | libc::SYS_statx
            | libc::SYS_faccessat
            | libc::SYS_faccessat2
            | libc::SYS_mkdirat
            | libc::SYS_mknodat
            | libc::SYS_unlinkat
            | libc::SYS_readlinkat
            | libc::SYS_fchmodat
            | libc::SYS_fchownat
            | libc::SYS_utimensat
            | libc::SYS_execveat => self.string(a[1]),
            libc::SYS_rename | libc::SYS_link | libc::SYS_symlink => {
                self.string(a[0]);
                self.string(a[1]);
            }
            libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_linkat => {
                self.string(a[1]);
                self.string(a[3]);
            }
            libc::SYS_symlinkat => {
                self.string(a[0]);
                self.string(a[2]);
            }
            libc::SYS_bind | libc::SYS_connect => self.reads(a[1], a[2].min(SOCKET_ADDRESS_MAX)),
            libc::SYS_sendto => self.reads(a[4], a[5].min(SOCKET_ADDRESS_MAX)),
            libc::SYS_setsockopt => self.reads(a[3], a[4].min(4096)),
            libc::SYS_epoll_ctl => self.reads(a[3], 12),
            libc::SYS_nanosleep => self.reads(a[0], TIMESPEC),
            libc::SYS_clock_nanosleep => self.reads(a[2], TIMESPEC),
            libc::SYS_timerfd_settime | libc::SYS_timer_settime => self.reads(a[2], ITIMERSPEC),
            libc::SYS_setitimer => self.reads(a[1], 32),
            libc::SYS_setrlimit => self.reads(a[1], 16),
            libc::SYS_prlimit64 => self.reads(a[2], 16),
            libc::SYS_rt_sigaction => self.reads(a[1], 32),
            libc::SYS_rt_sigprocmask => self.reads(a[1], 8),
            libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => self.reads(a[0], 8),
            libc::SYS_sigaltstack => self.reads(a[0], 24),
            libc::SYS_fcntl if is_lock_command(a[1]) => self.reads(a[2], 32),
            _ => {}
        }
    }

    /// What calls transfer.
    fn data(&mut self, number: u64, a: &[u64; 6], result: u64) {
        use Direction::{Read, Write};
        match number as i64 {
            libc::SYS_read | libc::SYS_pread64 | libc::SYS_getdents | libc::SYS_getdents64 => {
                self.writes(a[1], result);
            }
            libc::SYS_recvfrom => {
                self.writes(a[1], result.min(a[2]));
                self.socket_address(a[4], a[5]);
            }
            libc::SYS_mq_timedreceive => {
                self.writes(a[1], result);
                self.writes(a[3], 4);
            }
            libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => self.reads(a[1], result),
            libc::SYS_mq_timedsend => self.reads(a[1], a[2]),
            libc::SYS_msgsnd => self.reads(a[1], a[2] + 8),
            libc::SYS_msgrcv => self.writes(a[1], result + 8),
            libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => {
                self.vectors(a[1], a[2], result, Write);
            }
            libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
                self.vectors(a[1], a[2], result, Read);
            }
            libc::SYS_process_vm_readv => self.vectors(a[1], a[2], result, Write),
            libc::SYS_process_vm_writev => {
                self.vectors(a[1], a[2], result, Read);
                // Only the guest itself can be the target.
                self.vectors(a[3], a[4], result, Write);
            }
            libc::SYS_recvmsg => self.message(a[1], result, Write),
            libc::SYS_sendmsg => self.message(a[1], result, Read),
            libc::SYS_recvmmsg | libc::SYS_sendmmsg => {
                let direction = if number as i64 == libc::SYS_recvmmsg {
                    Write
                } else {
                    Read
                };
                for index in 0..result.min(VECTORS_MAX) {
                    let header = a[1] + index * MMSGHDR;
                    let transferred = self.word32(header + MSGHDR);
                    self.message(header, transferred, direction);
                    self.writes(header + MSGHDR, 4);
                }
            }
            libc::SYS_getrandom => self.writes(a[0], result),
            libc::SYS_getcwd => self.writes(a[0], result),
            libc::SYS_readlink => self.writes(a[1], result),
            libc::SYS_readlinkat => self.writes(a[2], result),
            libc::SYS_getxattr | libc::SYS_lgetxattr | libc::SYS_fgetxattr if a[3] != 0 => {
                self.writes(a[2], result);
            }
            libc::SYS_listxattr | libc::SYS_llistxattr | libc::SYS_flistxattr if a[2] != 0 => {
                self.writes(a[1], result);
            }
            libc::SYS_syslog if matches!(a[0], 2..=4) => self.writes(a[1], result),
            _ => {}
        }
    }

    /// What calls answer beside their result.
    fn outputs(&mut self, number: u64, a: &[u64; 6], result: u64) {
        match number as i64 {
            libc::SYS_stat | libc::SYS_fstat | libc::SYS_lstat => self.writes(a[1], STAT),
            libc::SYS_newfstatat => self.writes(a[2], STAT),
            libc::SYS_statx => self.writes(a[4], 256),
            libc::SYS_statfs | libc::SYS_fstatfs => self.writes(a[1], 120),
            libc::SYS_ustat => self.writes(a[1], 32),
            libc::SYS_poll | libc::SYS_ppoll => self.polls(a[0], a[1]),
            libc::SYS_select | libc::SYS_pselect6 => {
                let len = a[0].min(1024).div_ceil(64) * 8;
                a[1..4].iter().for_each(|set| self.writes(*set, len));
                self.writes(a[4], TIMESPEC);
            }
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
                self.writes(a[1], 12 * result);
            }
            libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_getsockname
            | libc::SYS_getpeername => self.socket_address(a[1], a[2]),
            libc::SYS_getsockopt => {
                let len = self.word32(a[4]).min(4096);
                self.writes(a[3], len);
                self.writes(a[4], 4);
            }
            libc::SYS_pipe | libc::SYS_pipe2 => self.writes(a[0], 8),
            libc::SYS_socketpair => self.writes(a[3], 8),
            libc::SYS_uname => self.writes(a[0], 390),
            libc::SYS_sysinfo => self.writes(a[0], 112),
            libc::SYS_getrlimit => self.writes(a[1], 16),
            libc::SYS_prlimit64 => self.writes(a[3], 16),
            libc::SYS_getrusage => self.writes(a[1], RUSAGE),
            libc::SYS_times => self.writes(a[0], 32),
            libc::SYS_wait4 if result != 0 => {
                self.writes(a[1], 4);
                self.writes(a[3], RUSAGE);
            }
            libc::SYS_waitid => {
                self.writes(a[2], SIGINFO);
                self.writes(a[4], RUSAGE);
            }
            libc::SYS_getgroups if a[0] != 0 => self.writes(a[1], 4 * result),
            libc::SYS_getresuid | libc::SYS_getresgid => {
                a[..3].iter().for_each(|id| self.writes(*id, 4));
            }
            libc::SYS_ioctl => self.ioctl(a[1], a[2]),
            libc::SYS_fcntl if is_lock_query(a[1]) => self.writes(a[2], 32),
            libc::SYS_fcntl if a[1] == F_GETOWN_EX => self.writes(a[2], 8),
            libc::SYS_sendfile => self.writes(a[2], 8),
            libc::SYS_copy_file_range | libc::SYS_splice => {
                self.writes(a[1], 8);
                self.writes(a[3], 8);
            }
            libc::SYS_sched_getaffinity => self.writes(a[2], result),
            libc::SYS_capget => {
                self.writes(a[0], 8);
                self.writes(a[1], 24);
            }
            libc::SYS_clock_gettime | libc::SYS_clock_getres => self.writes(a[1], TIMESPEC),
            libc::SYS_gettimeofday => self.writes(a[0], TIMESPEC),
            libc::SYS_time => self.writes(a[0], 8),
            libc::SYS_timerfd_settime | libc::SYS_timer_settime => self.writes(a[3], ITIMERSPEC),
            libc::SYS_timerfd_gettime | libc::SYS_timer_gettime | libc::SYS_getitimer => {
                self.writes(a[1], ITIMERSPEC);
            }
            libc::SYS_setitimer => self.writes(a[2], 32),
            libc::SYS_timer_create => self.writes(a[2], 4),
            libc::SYS_rt_sigaction => self.writes(a[2], 32),
            libc::SYS_rt_sigprocmask => self.writes(a[2], 8),
            libc::SYS_rt_sigpending => self.writes(a[0], 8),
            libc::SYS_rt_sigtimedwait => self.writes(a[1], SIGINFO),
            libc::SYS_sigaltstack => self.writes(a[1], 24),
            libc::SYS_mincore => self.writes(a[2], a[1].div_ceil(4096)),
            libc::SYS_name_to_handle_at => {
                let len = self.word32(a[2]).min(128);
                self.writes(a[2], 8 + len);
                self.writes(a[3], 4);
            }
            libc::SYS_shmctl if a[1] as i32 == libc::IPC_STAT => self.writes(a[2], 112),
            libc::SYS_msgctl if a[1] as i32 == libc::IPC_STAT => self.writes(a[2], 120),
            libc::SYS_semctl if a[2] as i32 == libc::IPC_STAT => self.writes(a[3], 104),
            libc::SYS_mq_getsetattr => self.writes(a[2], 64),
            SYS_CACHESTAT => self.writes(a[2], 40),
            libc::SYS_get_robust_list => {
                self.writes(a[1], 8);
                self.writes(a[2], 8);
            }
            libc::SYS_getcpu => {
                self.writes(a[0], 4);
                self.writes(a[1], 4);
            }
            libc::SYS_sched_getparam => self.writes(a[1], 4),
            libc::SYS_sched_rr_get_interval => self.writes(a[1], TIMESPEC),
            libc::SYS_prctl => match a[0] as i32 {
                libc::PR_GET_NAME => self.writes(a[1], 16),
                libc::PR_GET_PDEATHSIG => self.writes(a[1], 4),
                libc::PR_GET_TID_ADDRESS => self.writes(a[1], 8),
                _ => {}
            },
            _ => {}
        }
    }

    fn polls(&mut self, polls: u64, count: u64) {
        const REVENTS: u64 = 6;
        for index in 0..count.min(1 << 16) {
            self.reads(polls + 8 * index, REVENTS);
            self.writes(polls + 8 * index + REVENTS, 2);
        }
    }

    /// The request's number says how much it moves, but for the oldest ones.
    fn ioctl(&mut self, request: u64, argument: u64) {
        const KERNEL_TERMIOS: u64 = 36;
        match request {
            libc::TCGETS => return self.writes(argument, KERNEL_TERMIOS),
            libc::TIOCGWINSZ => return self.writes(argument, 8),
            libc::FIONREAD | libc::TIOCGPGRP | libc::TIOCGSID | libc::TIOCOUTQ | libc::TIOCMGET => {
                return self.writes(argument, 4);
            }
            libc::FIONBIO | libc::FIOASYNC => return self.reads(argument, 4),
            _ => {}
        }
        let (direction, len) = (request >> 30 & 3, request >> 16 & 0x3fff);
        if direction & 2 != 0 {
            self.writes(argument, len);
        }
        if direction & 1 != 0 {
            self.reads(argument, len);
        }
    }
}

const F_GETOWN_EX: u64 = 16;
const SYS_CACHESTAT: i64 = 451;

fn is_lock_query(command: u64) -> bool {
    matches!(command as i32, libc::F_GETLK | libc::F_OFD_GETLK)
}

fn is_lock_command(command: u64) -> bool {
    matches!(
        command as i32,
        libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW
    ) || is_lock_query(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn touched(number: i64, args: [u64; 6], result: i64, words: &[(u64, u64)]) -> Vec<Buffer> {
        let words: BTreeMap<u64, u64> = words.iter().copied().collect();
        buffers(number as u64, &args, result, &|at| words.get(&at).copied())
    }

    fn written(list: &[Buffer]) -> Vec<(u64, u64)> {
        list.iter()
            .filter(|buffer| buffer.direction == Direction::Write)
            .map(|buffer| (buffer.address, buffer.len))
            .collect()
    }

    #[test]
    fn a_read_writes_what_it_returned() {
        let args = [3, 0x1000, 100, 0, 0, 0];
        assert_eq!(
            written(&touched(libc::SYS_read, args, 7, &[])),
            [(0x1000, 7)]
        );
        assert!(touched(libc::SYS_read, args, -11, &[]).is_empty());
        assert!(touched(libc::SYS_read, args, 0, &[]).is_empty());
    }

    #[test]
    fn vectors_are_filled_in_order() {
        let words = [(0x100, 0x1000), (0x108, 10), (0x110, 0x2000), (0x118, 10)];
        let list = touched(libc::SYS_readv, [3, 0x100, 2, 0, 0, 0], 13, &words);
        assert_eq!(written(&list), [(0x1000, 10), (0x2000, 3)]);
    }

    #[test]
    fn a_path_is_read_with_its_end() {
        let words = [
            (0x100, u64::from_le_bytes(*b"/tmp/abc")),
            (0x108, u64::from_le_bytes(*b"d\0xxxxxx")),
        ];
        let list = touched(libc::SYS_unlink, [0x100, 0, 0, 0, 0, 0], 0, &words);
        let path = Buffer {
            address: 0x100,
            len: 10,
            direction: Direction::Read,
        };
        assert_eq!(list, [path]);
    }

    #[test]
    fn requests_say_their_size() {
        let request = 2 << 30 | 16 << 16 | 0x1234;
        let list = touched(libc::SYS_ioctl, [3, request, 0x1000, 0, 0, 0], 0, &[]);
        assert_eq!(written(&list), [(0x1000, 16)]);
    }
}
