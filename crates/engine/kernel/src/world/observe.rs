//! Following a recording: calls are answered by it, and the world keeps step, so that the execution can leave the
//! recording at any moment and go on here.
//!
//! What happened inside the process (pipes, its own sockets, eventfds, changed files) is repeated. What came from
//! outside is taken in where it may be asked for again: bytes read from a file are then in the file, whatever has become
//! of the real one since. Descriptors whose other end is unknown (a terminal, a connection to somewhere) become
//! `Outside`: they take everything, and what they give is up to the policy for input.
//!
//! Limits: a mapping that shared a file with others is private after leaving; a directory whose listing was under
//! way goes on in sorted order.

use super::guest::{Buffer, GuestMemory};
use super::table::Object;
use super::tree::{Found, LastLink};
use super::{Answer, Arrived, Env, Reply, World};
use crate::thread::Call;

/// Where `siginfo_t` has the child.
const SIGINFO_PID: u64 = 16;
/// Longest `sockaddr`.
const ADDRESS_MAX: u32 = 128;

/// The guest's memory as the recording has left it: what the world would write is already there.
pub(super) struct Recorded<'a>(pub(super) &'a crate::Memory);

impl GuestMemory for Recorded<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), i32> {
        self.0.read(address, buffer)
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), i32> {
        Ok(())
    }

    fn write_through(&mut self, _: u64, _: &[u8]) -> Result<(), i32> {
        Ok(())
    }

    fn read_string(&self, address: u64) -> Result<Vec<u8>, i32> {
        self.0.read_string(address)
    }
}

impl World {
    /// Keeps step with a call that a recording has answered. `env.memory` must hold what the call wrote, and must not let
    /// the world write.
    pub fn observe(&mut self, call: &Call, result: i64, env: &mut Env) {
        let started =
            call.number as i64 == libc::SYS_connect && result == -i64::from(libc::EINPROGRESS);
        if result == -i64::from(libc::ENOENT) {
            let _ = self.follow_nothing(call, env);
        }
        if (-4095..0).contains(&result) && !started {
            return;
        }
        self.meet(call);
        // Whatever cannot be followed has no consequence inside, or was turned into `Outside`.
        let _ = self.follow(call, result, env);
        self.forced.clear();
    }

    /// A descriptor that the program was started with is met when it is first used.
    fn meet(&mut self, call: &Call) {
        let fd = call.args[0] as i32;
        let transfers = matches!(
            call.number as i64,
            libc::SYS_read
                | libc::SYS_readv
                | libc::SYS_recvfrom
                | libc::SYS_recvmsg
                | libc::SYS_write
                | libc::SYS_writev
                | libc::SYS_sendto
                | libc::SYS_sendmsg
        );
        if transfers && fd >= 0 && self.table.id(fd).is_err() {
            self.open_outside(fd);
        }
    }

    /// Nothing was there: so it is here, whatever has been made since.
    fn follow_nothing(&mut self, call: &Call, env: &mut Env) -> Result<(), i32> {
        let a = call.args;
        let here = libc::AT_FDCWD;
        let (at, path, last) = match call.number as i64 {
            libc::SYS_open | libc::SYS_stat | libc::SYS_access => (here, a[0], LastLink::Follow),
            libc::SYS_lstat | libc::SYS_readlink | libc::SYS_unlink => (here, a[0], LastLink::Keep),
            libc::SYS_openat
            | libc::SYS_statx
            | libc::SYS_newfstatat
            | libc::SYS_faccessat
            | libc::SYS_faccessat2 => (a[0] as i32, a[1], LastLink::Follow),
            libc::SYS_readlinkat | libc::SYS_unlinkat => (a[0] as i32, a[1], LastLink::Keep),
            _ => return Ok(()),
        };
        let path = env.memory.read_string(path)?;
        if path.is_empty() {
            return Ok(());
        }
        if let Found::Place(place) = self.find(at, &path, last)?
            && place.node.is_some()
            && place.name != b"."
        {
            let path = self.tree.path_of_place(&place);
            self.hear(|| Arrived::Absent(path));
            self.tree.unname(&place, env.time())?;
        }
        Ok(())
    }

    fn follow(&mut self, call: &Call, result: i64, env: &mut Env) -> Result<(), i32> {
        let a = call.args;
        let fd = a[0] as i32;
        let fresh = Call {
            progress: 0,
            timed_out: true,
            ..call.clone()
        };
        match call.number as i64 {
            libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_creat => {
                self.follow_open(&fresh, result as i32, env)
            }
            libc::SYS_accept | libc::SYS_accept4 => self.follow_accept(&fresh, result as i32, env),
            libc::SYS_dup
            | libc::SYS_socket
            | libc::SYS_eventfd
            | libc::SYS_eventfd2
            | libc::SYS_epoll_create
            | libc::SYS_epoll_create1
            | libc::SYS_timerfd_create
            | libc::SYS_memfd_create => {
                self.follow_new(&fresh, &[result as i32], env);
                Ok(())
            }
            libc::SYS_fcntl => {
                if matches!(a[1] as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
                    self.follow_new(&fresh, &[result as i32], env);
                } else {
                    self.call(&fresh, env)?;
                }
                Ok(())
            }
            libc::SYS_pipe | libc::SYS_pipe2 | libc::SYS_socketpair => {
                let at = if call.number as i64 == libc::SYS_socketpair {
                    a[3]
                } else {
                    a[0]
                };
                let both = [
                    env.memory.read_u32(at)? as i32,
                    env.memory.read_u32(at + 4)? as i32,
                ];
                self.follow_new(&fresh, &both, env);
                Ok(())
            }
            libc::SYS_connect => {
                if !matches!(self.call(&fresh, env), Ok(Answer::Return(0))) {
                    self.open_outside(fd);
                }
                Ok(())
            }
            libc::SYS_getsockname => self.observe_name(env, fd, a[1], a[2]),
            libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => {
                self.follow_read(call, Buffer::one(a[1], a[2]), result as u64, env)
            }
            libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => {
                let buffers = env.memory.read_vectors(a[1], a[2])?;
                self.follow_read(call, buffers, result as u64, env)
            }
            libc::SYS_recvmsg => self.follow_message(&fresh, result as u64, env),
            libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => {
                self.follow_write(call, &Buffer::one(a[1], a[2]), result as u64, env)
            }
            libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
                let buffers = env.memory.read_vectors(a[1], a[2])?;
                self.follow_write(call, &buffers, result as u64, env)
            }
            libc::SYS_sendfile | libc::SYS_copy_file_range => {
                let mut part = fresh;
                let len = if part.number as i64 == libc::SYS_sendfile {
                    3
                } else {
                    4
                };
                part.args[len] = result as u64;
                self.call(&part, env).map(|_| ())
            }
            libc::SYS_lseek => {
                self.table.get_mut(fd)?.offset = result as u64;
                Ok(())
            }
            libc::SYS_fstat => {
                let size = env.memory.read_u64(a[1] + 48)?;
                self.follow_size(fd, size)
            }
            libc::SYS_getdents | libc::SYS_getdents64 => self.follow_listing(env, a, result as u64),
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
                self.fire_timers(env.now);
                let id = self.table.id(fd)?;
                self.told_of(id, result as usize);
                Ok(())
            }
            libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3 => {
                self.children.push(result as i32);
                Ok(())
            }
            libc::SYS_wait4 => {
                self.children.retain(|child| i64::from(*child) != result);
                Ok(())
            }
            libc::SYS_waitid if a[2] != 0 && a[3] & libc::WNOWAIT as u64 == 0 => {
                let pid = env.memory.read_u32(a[2] + SIGINFO_PID)? as i32;
                self.children.retain(|child| *child != pid);
                Ok(())
            }
            libc::SYS_mkdir | libc::SYS_mkdirat => {
                let made = self.call(&fresh, env);
                if made == Err(libc::EEXIST) {
                    // It was made then and is still there now.
                    let (at, path) = match call.number as i64 {
                        libc::SYS_mkdir => (libc::AT_FDCWD, a[0]),
                        _ => (fd, a[1]),
                    };
                    let path = env.memory.read_string(path)?;
                    self.follow_free_name(at, &path, env)?;
                    self.call(&fresh, env)?;
                }
                Ok(())
            }
            libc::SYS_poll | libc::SYS_ppoll | libc::SYS_select | libc::SYS_pselect6 => Ok(()),
            _ if super::private_policy(call.number) == Some(super::PrivatePolicy::World) => {
                self.call(&fresh, env).map(|_| ())
            }
            libc::SYS_flock | libc::SYS_prlimit64 => self.call(&fresh, env).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// A call that gave the guest new descriptors with these numbers.
    fn follow_new(&mut self, call: &Call, numbers: &[i32], env: &mut Env) {
        self.forced.extend(numbers);
        let made: Reply = self.call(call, env);
        self.forced.clear();
        let is_made = |world: &World| numbers.iter().all(|fd| world.table.id(*fd).is_ok());
        if !matches!(made, Ok(Answer::Return(_))) || !is_made(self) {
            for fd in numbers {
                self.open_outside(*fd);
            }
        }
    }

    fn follow_open(&mut self, call: &Call, fd: i32, env: &mut Env) -> Result<(), i32> {
        let (at, path, flags, mode) =
            super::open::arguments(call.number as i64, call.args, env.memory)?;
        let path = env.memory.read_string(path)?;
        self.forced.push_back(fd);
        let mut made = self.open(env, at, &path, flags, mode);
        if made == Err(libc::EEXIST) {
            // It was made then and is still there now.
            self.follow_free_name(at, &path, env)?;
            made = self.open(env, at, &path, flags, mode);
        } else if made == Err(libc::ENOENT)
            && let Ok(Found::Place(place)) = self.find(at, &path, LastLink::Follow)
        {
            // It was there then and is gone.
            let gone = self.tree.path_of_place(&place);
            self.bring_back(&gone, env);
            self.hear(|| Arrived::Present(gone));
            made = self.open(env, at, &path, flags, mode);
        }
        self.forced.clear();
        if made != Ok(Answer::Return(i64::from(fd))) {
            self.open_outside(fd);
        }
        Ok(())
    }

    /// A name that the guest could give to something new.
    fn follow_free_name(&mut self, at: i32, path: &[u8], env: &Env) -> Result<(), i32> {
        if let Found::Place(place) = self.find(at, path, LastLink::Keep)? {
            let path = self.tree.path_of_place(&place);
            self.hear(|| Arrived::Absent(path));
            self.tree.unname(&place, env.time())?;
        }
        Ok(())
    }

    /// A connection was accepted: one of the guest's own, or one from outside.
    fn follow_accept(&mut self, call: &Call, fd: i32, env: &mut Env) -> Result<(), i32> {
        self.follow_new(call, &[fd], env);
        if !matches!(self.table.get(fd)?.object, Object::Outside) {
            return Ok(());
        }
        let (listener, description) = (self.table.id(call.args[0] as i32)?, self.table.id(fd)?);
        let listener = self.listens_at(listener).ok_or(libc::EINVAL)?;
        let [_, at, len_at, ..] = call.args;
        let address = if at == 0 || len_at == 0 {
            Vec::new()
        } else {
            let len = env.memory.read_u32(len_at)?.min(ADDRESS_MAX);
            env.memory.read_bytes(at, u64::from(len))?
        };
        self.hear(|| Arrived::Connection {
            listener,
            description: description.0,
            address,
        });
        Ok(())
    }

    /// The guest was given `len` bytes, which are in its buffers.
    fn follow_read(
        &mut self,
        call: &Call,
        buffers: Vec<Buffer>,
        len: u64,
        env: &mut Env,
    ) -> Result<(), i32> {
        let fd = call.args[0] as i32;
        let at = position(call);
        let description = self.table.get(fd)?;
        let (object, offset) = (description.object.clone(), description.offset);
        let path = description.path.clone();
        match object {
            Object::File(node) => {
                let bytes = env.memory.gather(&cut(&buffers, len))?;
                let offset = at.unwrap_or(offset);
                if self.tree.content(node)?.bytes(offset, len)? != bytes {
                    self.tree.write(node, offset, &bytes)?;
                    self.hear(|| Arrived::File {
                        path,
                        offset,
                        bytes,
                    });
                }
                if at.is_none() {
                    self.table.get_mut(fd)?.offset = offset + len;
                }
            }
            Object::PipeReader(pipe) | Object::PipeBoth(pipe) => {
                self.read_pipe(fd, pipe, len)?;
            }
            Object::Event { .. } | Object::Timer => {
                self.fire_timers(env.now);
                self.call(call, env)?;
            }
            Object::Socket(socket) => self.take_observed(socket, len as usize)?,
            Object::Input => {
                self.input_used += (len as usize).min(self.input_left());
                if len == 0 && Buffer::total(&buffers) > 0 {
                    self.saw_end(None);
                }
                let bytes = env.memory.gather(&cut(&buffers, len))?;
                self.hear(|| Arrived::Input(bytes));
            }
            Object::Outside => {
                let id = self.table.id(fd)?;
                if len == 0 && Buffer::total(&buffers) > 0 {
                    self.saw_end(Some(id));
                }
                let bytes = env.memory.gather(&cut(&buffers, len))?;
                self.hear(|| Arrived::Data {
                    description: id.0,
                    bytes,
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn follow_message(&mut self, call: &Call, len: u64, env: &mut Env) -> Result<(), i32> {
        let fd = call.args[0] as i32;
        let given = self.observed_descriptors(env, call.args[1])?;
        if given.is_empty() {
            let at = call.args[1];
            let (vectors, count) = (env.memory.read_u64(at + 16)?, env.memory.read_u64(at + 24)?);
            let buffers = env.memory.read_vectors(vectors, count)?;
            return self.follow_read(call, buffers, len, env);
        }
        match self.table.get(fd)?.object {
            Object::Socket(_) => self.follow_new(call, &given, env),
            _ => given.iter().for_each(|fd| self.open_outside(*fd)),
        }
        Ok(())
    }

    /// The first `len` bytes of the buffers went where the descriptor leads.
    fn follow_write(
        &mut self,
        call: &Call,
        buffers: &[Buffer],
        len: u64,
        env: &mut Env,
    ) -> Result<(), i32> {
        let fd = call.args[0] as i32;
        let bytes = env.memory.gather(&cut(buffers, len))?;
        match self.table.get(fd)?.object {
            Object::Output(stream) => self.transcript.say(stream, &bytes),
            Object::PipeWriter(pipe) | Object::PipeBoth(pipe) => self.fill_pipe(pipe, &bytes),
            Object::Socket(socket) if call.number as i64 != libc::SYS_sendto => {
                self.deliver_observed(socket, &bytes)?;
            }
            Object::Socket(_) | Object::Outside => {
                self.call(call, env)?;
            }
            _ => {
                self.write(env, call, fd, &bytes, position(call))?;
            }
        }
        Ok(())
    }

    /// A file had this size.
    fn follow_size(&mut self, fd: i32, size: u64) -> Result<(), i32> {
        if let Object::File(node) = self.table.get(fd)?.object
            && self.tree.content(node)?.len() != size
        {
            self.tree.change(node, |content| content.set_len(size))?;
        }
        Ok(())
    }

    /// So many names of a listing were given out.
    fn follow_listing(&mut self, env: &Env, a: [u64; 6], len: u64) -> Result<(), i32> {
        let mut at = a[1];
        let mut names = 0;
        while at < a[1] + len {
            let entry = u64::from(env.memory.read_u32(at + 16)? as u16);
            if entry == 0 {
                break;
            }
            at += entry;
            names += 1;
        }
        self.table.get_mut(a[0] as i32)?.offset += names;
        Ok(())
    }
}

/// The offset that a call names itself.
fn position(call: &Call) -> Option<u64> {
    match call.number as i64 {
        libc::SYS_pread64 | libc::SYS_pwrite64 | libc::SYS_preadv | libc::SYS_pwritev => {
            Some(call.args[3])
        }
        libc::SYS_preadv2 | libc::SYS_pwritev2 if call.args[3] as i64 != -1 => Some(call.args[3]),
        _ => None,
    }
}

/// The first `len` bytes of some buffers.
fn cut(buffers: &[Buffer], len: u64) -> Vec<Buffer> {
    let mut left = len;
    buffers
        .iter()
        .map(|buffer| {
            let len = buffer.len.min(left);
            left -= len;
            Buffer {
                address: buffer.address,
                len,
            }
        })
        .collect()
}
