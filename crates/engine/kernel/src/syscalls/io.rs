//! Input and output that may have to wait. The host is only asked for what it can do at once; otherwise the
//! thread waits and the call is tried again.

use super::files::is_engine_fd;
use super::host;
use crate::thread::{Call, Wait};
use crate::time::SECOND_NS;
use crate::{Flow, Kernel};

/// A pipe that polls as writable takes this much at once.
const PIPE_CHUNK: u64 = 4096;
const FD_SET_MAX: u64 = 1024;

impl Kernel {
    /// Calls that take data (or a connection) from descriptor `args[0]`.
    pub(super) fn sys_receive(&mut self, call: &Call) -> Flow {
        let fd = call.args[0] as i32;
        if is_engine_fd(fd) {
            return Flow::error(libc::EBADF);
        }
        if let Some(result) = self.read_random(call) {
            return result.into();
        }
        if let Some(flow) = self.receive_at_once(call, fd) {
            return flow;
        }
        let never_waits = match call.number as i64 {
            libc::SYS_pread64 | libc::SYS_preadv => true,
            libc::SYS_read => call.args[2] == 0,
            _ => asks_not_to_wait(call),
        };
        if !never_waits && !is_ready(fd, libc::POLLIN) && blocks(fd) {
            return wait_for(fd, libc::POLLIN);
        }
        self.prepare_buffers(call);
        let result = self.pass(call.number, call.args);
        if let (Ok(new), libc::SYS_accept | libc::SYS_accept4) = (result, call.number as i64) {
            self.sockets.insert(new as i32);
        }
        result.into()
    }

    /// A socket gives what it has without being asked first whether it has something; `None` if this is no such call.
    fn receive_at_once(&mut self, call: &Call, fd: i32) -> Option<Flow> {
        let mut a = call.args;
        let (number, flags) = match call.number as i64 {
            libc::SYS_recvfrom => (libc::SYS_recvfrom, 3),
            libc::SYS_recvmsg => (libc::SYS_recvmsg, 2),
            libc::SYS_read if a[2] > 0 && self.sockets.contains(&fd) => {
                a[3..].fill(0);
                (libc::SYS_recvfrom, 3)
            }
            _ => return None,
        };
        if a[flags] & libc::MSG_WAITALL as u64 != 0 {
            return self.receive_all(call, fd);
        }
        let may_wait = a[flags] & libc::MSG_DONTWAIT as u64 == 0;
        a[flags] |= libc::MSG_DONTWAIT as u64;
        self.prepare_buffers(call);
        match self.pass(number as u64, a) {
            // It was one once.
            Err(libc::ENOTSOCK) if call.number as i64 == libc::SYS_read => {
                self.sockets.remove(&fd);
                None
            }
            Err(libc::EAGAIN) if may_wait && blocks(fd) => Some(wait_for(fd, libc::POLLIN)),
            result => Some(result.into()),
        }
    }

    /// A call that does not return before its buffer is full, as long as there is no end and no error. `None` if this is no such
    /// call.
    fn receive_all(&mut self, call: &Call, fd: i32) -> Option<Flow> {
        let mut a = call.args;
        let other = (libc::MSG_PEEK | libc::MSG_DONTWAIT) as u64;
        if call.number as i64 != libc::SYS_recvfrom || a[3] & other != 0 {
            return None;
        }
        self.prepare_buffers(call);
        let (address, len, mut done) = (a[1], a[2], call.progress);
        a[3] = a[3] & !(libc::MSG_WAITALL as u64) | libc::MSG_DONTWAIT as u64;
        loop {
            (a[1], a[2]) = (address + done, len - done);
            match self.pass(call.number, a) {
                Ok(count) if count > 0 && done + (count as u64) < len => done += count as u64,
                Ok(count) => return Some(Flow::Return(done as i64 + count)),
                Err(libc::EAGAIN) if blocks(fd) => {
                    self.note_progress(done);
                    return Some(wait_for(fd, libc::POLLIN));
                }
                Err(_) if done > 0 => return Some(Flow::Return(done as i64)),
                Err(error) => return Some(Flow::error(error)),
            }
        }
    }

    /// The host is about to write into the guest's buffers: pages with translated code must let it.
    fn prepare_buffers(&mut self, call: &Call) {
        let a = call.args;
        match call.number as i64 {
            libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => {
                self.memory.unwatch(a[1]..a[1].saturating_add(a[2]));
            }
            // Scattered buffers are rare in pages with code; EFAULT makes `pass` try again.
            _ => {}
        }
    }

    pub(super) fn sys_write(&mut self, call: &Call) -> Flow {
        let a = call.args;
        let fd = a[0] as i32;
        if is_engine_fd(fd) {
            return Flow::error(libc::EBADF);
        }
        if !can_block(fd) {
            return self.pass(call.number, a).into();
        }
        if call.number as i64 == libc::SYS_write {
            return self.write_in_chunks(call, fd, a[1], a[2]);
        }
        match self.gather(a[1], a[2]) {
            Ok(bytes) => self.write_in_chunks(call, fd, bytes.as_ptr() as u64, bytes.len() as u64),
            Err(error) => Flow::error(error),
        }
    }

    fn gather(&self, vectors: u64, count: u64) -> Result<Vec<u8>, i32> {
        if count > 1024 {
            return Err(libc::EINVAL);
        }
        let mut bytes = Vec::new();
        for index in 0..count {
            let (base, len) = (
                self.memory.read_u64(vectors + 16 * index)?,
                self.memory.read_u64(vectors + 16 * index + 8)?,
            );
            if len > 1 << 31 {
                return Err(libc::EINVAL);
            }
            let start = bytes.len();
            bytes.resize(start + len as usize, 0);
            self.memory.read(base, &mut bytes[start..])?;
        }
        Ok(bytes)
    }

    /// Writes to a pipe, socket or terminal without ever blocking the executor.
    fn write_in_chunks(&mut self, call: &Call, fd: i32, address: u64, len: u64) -> Flow {
        let mut done = call.progress;
        loop {
            let ready =
                is_ready(fd, libc::POLLOUT) || self.is_inherited(fd) && self.wait_for_reader(fd);
            if !ready {
                self.note_progress(done);
                return wait_for(fd, libc::POLLOUT);
            }
            let chunk = (len - done).min(PIPE_CHUNK);
            match self.pass(
                libc::SYS_write as u64,
                [fd as u64, address + done, chunk, 0, 0, 0],
            ) {
                Ok(count) => done += count as u64,
                Err(_) if done > 0 => return Flow::Return(done as i64),
                Err(error) => return Flow::error(error),
            }
            if done >= len {
                return Flow::Return(done as i64);
            }
        }
    }

    /// When the call is tried again, it goes on from there.
    fn note_progress(&mut self, done: u64) {
        let call = self.thread().call.as_mut();
        call.expect("a call is under way").progress = done;
    }

    /// True if the descriptor leads to what the guest was started with: a reader outside of the guest.
    fn is_inherited(&self, fd: i32) -> bool {
        identity(fd).is_some_and(|file| self.inherited.contains(&file))
    }

    /// Waits, as the whole guest, until a reader outside has taken something. How fast it reads must not decide which
    /// thread runs next. False if a signal comes first.
    fn wait_for_reader(&self, fd: i32) -> bool {
        let wait = |fd, events| libc::pollfd {
            fd,
            events,
            revents: 0,
        };
        let mut polls = [wait(fd, libc::POLLOUT), wait(self.signal_fd, libc::POLLIN)];
        // SAFETY: two valid elements.
        unsafe { libc::poll(polls.as_mut_ptr(), 2, -1) };
        polls[0].revents != 0
    }

    pub(super) fn sys_send(&mut self, call: &Call) -> Flow {
        let fd = call.args[0] as i32;
        if is_engine_fd(fd) {
            return Flow::error(libc::EBADF);
        }
        let mut a = call.args;
        // The host must not wait; where the guest would, its thread does.
        let flags = if call.number as i64 == libc::SYS_sendmsg {
            2
        } else {
            3
        };
        let may_wait = a[flags] & libc::MSG_DONTWAIT as u64 == 0;
        a[flags] |= libc::MSG_DONTWAIT as u64;
        match self.pass(call.number, a) {
            Err(libc::EAGAIN) if may_wait && blocks(fd) => wait_for(fd, libc::POLLOUT),
            result => {
                if result.is_ok() {
                    self.sockets.insert(fd);
                }
                result.into()
            }
        }
    }

    /// The deadline of a call that has waited before, or the one its timeout gives.
    fn call_deadline(&self, call: &Call, timeout_ns: Option<u64>) -> Option<u64> {
        call.deadline
            .or_else(|| timeout_ns.map(|ns| self.now().saturating_add(ns)))
    }

    /// Takes on the signal mask that a waiting call brings with it.
    pub(crate) fn prepare_mask(&mut self, call: &Call) -> Result<(), i32> {
        let a = call.args;
        match call.number as i64 {
            libc::SYS_ppoll => self.swap_mask(a[3]),
            libc::SYS_pselect6 if a[5] != 0 => {
                let mask = self.memory.read_u64(a[5])?;
                self.swap_mask(mask)
            }
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => self.swap_mask(a[4]),
            _ => Ok(()),
        }
    }

    pub(super) fn sys_poll(&mut self, call: &Call) -> Result<Flow, i32> {
        let a = call.args;
        self.prepare_mask(call)?;
        let timeout = if call.number as i64 == libc::SYS_ppoll {
            if a[2] == 0 {
                None
            } else {
                Some(self.read_timespec(a[2])?)
            }
        } else {
            u64::try_from(a[2] as i32).ok().map(|ms| ms * 1_000_000)
        };
        if a[1] > 1 << 20 {
            return Err(libc::EINVAL);
        }
        let ready = self.pass(libc::SYS_poll as u64, [a[0], a[1], 0, 0, 0, 0])?;
        if ready != 0 || call.timed_out || timeout == Some(0) {
            return Ok(Flow::Return(ready));
        }
        let mut polls = Vec::with_capacity(a[1] as usize);
        for index in 0..a[1] {
            let word = self.memory.read_u64(a[0] + 8 * index)?;
            if word as i32 >= 0 {
                polls.push((word as i32, (word >> 32) as i16));
            }
        }
        let deadline = self.call_deadline(call, timeout);
        Ok(wait_for_any(polls, deadline))
    }

    pub(super) fn sys_select(&mut self, call: &Call) -> Result<Flow, i32> {
        let a = call.args;
        self.prepare_mask(call)?;
        let timeout = if call.number as i64 == libc::SYS_pselect6 {
            if a[4] == 0 {
                None
            } else {
                Some(self.read_timespec(a[4])?)
            }
        } else if a[4] == 0 {
            None
        } else {
            let (seconds, micros) = (self.memory.read_u64(a[4])?, self.memory.read_u64(a[4] + 8)?);
            Some(
                seconds
                    .saturating_mul(SECOND_NS)
                    .saturating_add(micros.saturating_mul(1000)),
            )
        };
        let count = a[0].min(FD_SET_MAX);
        let bytes = (count as usize).div_ceil(64) * 8;
        let mut wanted = [[0u8; FD_SET_MAX as usize / 8]; 3];
        for (set, address) in wanted.iter_mut().zip(&a[1..4]) {
            if *address != 0 {
                self.memory.read(*address, &mut set[..bytes])?;
            }
        }
        let mut ready = wanted;
        let [r, w, x] = &mut ready;
        let zero = [0u64; 2];
        let sets = [
            r.as_mut_ptr() as u64,
            w.as_mut_ptr() as u64,
            x.as_mut_ptr() as u64,
        ];
        let hits = host(
            libc::SYS_pselect6 as u64,
            [count, sets[0], sets[1], sets[2], zero.as_ptr() as u64, 0],
        )?;
        if hits == 0 && !call.timed_out && timeout != Some(0) {
            let deadline = self.call_deadline(call, timeout);
            return Ok(wait_for_any(select_polls(&wanted, count), deadline));
        }
        for (set, address) in ready.iter().zip(&a[1..4]) {
            if *address != 0 {
                self.memory.write(*address, &set[..bytes])?;
            }
        }
        if let Some(timeout) = timeout {
            let left = call
                .deadline
                .map_or(timeout, |deadline| deadline.saturating_sub(self.now()));
            // Linux alone tells; a timeout in read-only memory is no error.
            let _ = match call.number as i64 {
                libc::SYS_select => self.write_timeval(a[4], left),
                _ => self.write_timespec(a[4], left),
            };
        }
        Ok(Flow::Return(hits))
    }

    pub(super) fn sys_epoll(&mut self, call: &Call) -> Result<Flow, i32> {
        let a = call.args;
        let timeout = match call.number as i64 {
            libc::SYS_epoll_pwait2 if a[3] == 0 => None,
            libc::SYS_epoll_pwait2 => Some(self.read_timespec(a[3])?),
            _ => u64::try_from(a[3] as i32).ok().map(|ms| ms * 1_000_000),
        };
        self.prepare_mask(call)?;
        let ready = self.pass(libc::SYS_epoll_wait as u64, [a[0], a[1], a[2], 0, 0, 0])?;
        if ready != 0 || call.timed_out || timeout == Some(0) {
            return Ok(Flow::Return(ready));
        }
        let deadline = self.call_deadline(call, timeout);
        Ok(wait_for_any(vec![(a[0] as i32, libc::POLLIN)], deadline))
    }
}

fn select_polls(wanted: &[[u8; FD_SET_MAX as usize / 8]; 3], count: u64) -> Vec<(i32, i16)> {
    let mut polls = Vec::new();
    for fd in 0..count as usize {
        let mut events = 0;
        for (set, event) in wanted
            .iter()
            .zip([libc::POLLIN, libc::POLLOUT, libc::POLLPRI])
        {
            if set[fd / 8] & 1 << (fd % 8) != 0 {
                events |= event;
            }
        }
        if events != 0 {
            polls.push((fd as i32, events));
        }
    }
    polls
}

fn wait_for(fd: i32, events: i16) -> Flow {
    wait_for_any(vec![(fd, events)], None)
}

fn wait_for_any(polls: Vec<(i32, i16)>, deadline: Option<u64>) -> Flow {
    Flow::Block(Wait::Descriptors { polls, deadline })
}

/// True if the host would not wait (errors count: the call itself will report them).
fn is_ready(fd: i32, events: i16) -> bool {
    let mut poll = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: one valid element.
    unsafe { libc::poll(&mut poll, 1, 0) != 0 }
}

/// True if the descriptor is in blocking mode.
fn blocks(fd: i32) -> bool {
    // SAFETY: plain system call.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_NONBLOCK == 0
}

/// True if a write to the descriptor could make the host wait.
fn can_block(fd: i32) -> bool {
    // SAFETY: all-zero is valid for this plain struct, which the call fills.
    let mut info: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a valid buffer.
    let known = unsafe { libc::fstat(fd, &mut info) } == 0;
    known
        && matches!(
            info.st_mode & libc::S_IFMT,
            libc::S_IFIFO | libc::S_IFSOCK | libc::S_IFCHR
        )
        && blocks(fd)
}

fn asks_not_to_wait(call: &Call) -> bool {
    let flags = match call.number as i64 {
        libc::SYS_recvfrom => call.args[3],
        libc::SYS_recvmsg => call.args[2],
        libc::SYS_recvmmsg => call.args[3],
        _ => 0,
    };
    flags & libc::MSG_DONTWAIT as u64 != 0
}

/// What an open descriptor leads to, as (device, inode).
pub(crate) fn identity(fd: i32) -> Option<(u64, u64)> {
    // SAFETY: all-zero is valid for this plain struct, which the call fills.
    let mut info: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a valid buffer.
    (unsafe { libc::fstat(fd, &mut info) } == 0).then_some((info.st_dev, info.st_ino))
}
