//! Pipes: bytes between two ends, inside the process.

use super::node::{Kind, NodeId};
use super::table::{Description, Object};
use super::{Answer, Env, Reply, WaitSet, World, done};
use crate::thread::Call;
use std::collections::VecDeque;

const CAPACITY: usize = 64 << 10;
const CAPACITY_MAX: u64 = 1 << 20;
/// Writes up to this size are never torn.
const ATOMIC: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Pipe {
    bytes: VecDeque<u8>,
    capacity: usize,
    readers: u32,
    writers: u32,
    /// A named pipe that nobody has opened from the other side yet: its end is not the end of the data. Linux would
    /// wait in `open`; here the first read or write waits instead.
    awaits_reader: bool,
    awaits_writer: bool,
}

impl Pipe {
    fn new() -> Self {
        Pipe {
            bytes: VecDeque::new(),
            capacity: CAPACITY,
            readers: 0,
            writers: 0,
            awaits_reader: false,
            awaits_writer: false,
        }
    }

    /// What `poll` says, for one or both ends.
    pub(super) fn events(&self, reads: bool, writes: bool) -> i16 {
        let mut events = 0;
        if reads {
            if !self.bytes.is_empty() {
                events |= libc::POLLIN | libc::POLLRDNORM;
            }
            if self.writers == 0 && !self.awaits_writer {
                events |= libc::POLLHUP;
            }
        }
        if writes {
            if self.readers == 0 && !self.awaits_reader {
                events |= libc::POLLERR | libc::POLLOUT;
            } else if self.capacity - self.bytes.len().min(self.capacity) >= ATOMIC {
                events |= libc::POLLOUT | libc::POLLWRNORM;
            }
        }
        events
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

impl World {
    fn add_pipe(&mut self) -> u32 {
        let id = self.next_id();
        self.pipes.insert(id, Pipe::new());
        id
    }

    /// `pipe` and `pipe2`.
    pub(super) fn sys_pipe(&mut self, env: &mut Env, to: u64, flags: i32) -> Reply {
        if flags & !(libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_DIRECT) != 0 {
            return Err(libc::EINVAL);
        }
        if flags & libc::O_DIRECT != 0 {
            return Ok(Answer::Refuse(
                "pipes in packet mode (O_DIRECT) are not part of the private world".into(),
            ));
        }
        let pipe = self.add_pipe();
        let ends = self.pipes.get_mut(&pipe).expect("just made");
        (ends.readers, ends.writers) = (1, 1);
        let close = flags & libc::O_CLOEXEC != 0;
        let status = flags & libc::O_NONBLOCK;
        let name = format!("pipe:[{pipe}]").into_bytes();
        let reader = Description::new(Object::PipeReader(pipe), libc::O_RDONLY | status, &name);
        let writer = Description::new(Object::PipeWriter(pipe), libc::O_WRONLY | status, &name);
        let reader = match self.install(reader, close) {
            Ok(reader) => reader,
            Err(error) => {
                self.close_pipe(pipe, false, true);
                return Err(error);
            }
        };
        let writer = match self.install(writer, close) {
            Ok(writer) => writer,
            Err(error) => {
                self.close(reader)?;
                return Err(error);
            }
        };
        env.memory.write_u32(to, reader as u32)?;
        env.memory.write_u32(to + 4, writer as u32)?;
        done(0)
    }

    /// Opens a named pipe.
    pub(super) fn open_fifo(&mut self, node: NodeId, flags: i32) -> Result<Object, i32> {
        let existing = match self.tree.node(node).kind {
            Kind::Fifo(pipe) => pipe.filter(|pipe| self.pipes.contains_key(pipe)),
            _ => return Err(libc::EINVAL),
        };
        let pipe = existing.unwrap_or_else(|| self.add_pipe());
        self.tree.node_mut(node).kind = Kind::Fifo(Some(pipe));
        let waits = flags & libc::O_NONBLOCK == 0;
        let ends = self.pipes.get_mut(&pipe).expect("just made");
        match flags & libc::O_ACCMODE {
            libc::O_RDONLY => {
                ends.readers += 1;
                ends.awaits_reader = false;
                ends.awaits_writer |= waits && ends.writers == 0;
                Ok(Object::PipeReader(pipe))
            }
            libc::O_WRONLY if !waits && ends.readers == 0 => Err(libc::ENXIO),
            libc::O_WRONLY => {
                ends.writers += 1;
                ends.awaits_writer = false;
                ends.awaits_reader |= ends.readers == 0;
                Ok(Object::PipeWriter(pipe))
            }
            _ => {
                ends.readers += 1;
                ends.writers += 1;
                (ends.awaits_reader, ends.awaits_writer) = (false, false);
                Ok(Object::PipeBoth(pipe))
            }
        }
    }

    pub(super) fn close_pipe(&mut self, id: u32, reader: bool, writer: bool) {
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return;
        };
        pipe.readers -= u32::from(reader);
        pipe.writers -= u32::from(writer);
        if pipe.readers == 0 && pipe.writers == 0 {
            self.pipes.remove(&id);
        }
        self.pipe_edge(id, true, true);
    }

    fn pipe_edge(&mut self, id: u32, read: bool, write: bool) {
        self.edge(
            |object| {
                matches!(object, Object::PipeReader(pipe) | Object::PipeWriter(pipe) | Object::PipeBoth(pipe) if *pipe == id)
            },
            read,
            write,
        );
    }

    /// Bytes from a pipe; `None` if the thread has to wait.
    pub(super) fn read_pipe(&mut self, fd: i32, id: u32, len: u64) -> Result<Option<Vec<u8>>, i32> {
        let waits = self.table.get(fd)?.waits();
        let pipe = self.pipes.get_mut(&id).ok_or(libc::EBADF)?;
        if pipe.bytes.is_empty() {
            if pipe.writers == 0 && !(pipe.awaits_writer && waits) {
                return Ok(Some(Vec::new()));
            }
            return if waits { Ok(None) } else { Err(libc::EAGAIN) };
        }
        let count = (len as usize).min(pipe.bytes.len());
        let bytes = pipe.bytes.drain(..count).collect();
        self.pipe_edge(id, false, true);
        Ok(Some(bytes))
    }

    pub(super) fn write_pipe(&mut self, call: &Call, fd: i32, id: u32, bytes: &[u8]) -> Reply {
        let waits = self.table.get(fd)?.waits();
        let pipe = self.pipes.get_mut(&id).ok_or(libc::EBADF)?;
        let mut progress = call.progress as usize;
        if pipe.readers == 0 && !pipe.awaits_reader {
            return Ok(if progress > 0 {
                Answer::Return(progress as i64)
            } else {
                Answer::BrokenPipe
            });
        }
        let room = pipe.capacity.saturating_sub(pipe.bytes.len());
        let rest = &bytes[progress.min(bytes.len())..];
        let fits = rest.len() <= room || bytes.len() > ATOMIC;
        let now = if fits { rest.len().min(room) } else { 0 };
        pipe.bytes.extend(&rest[..now]);
        progress += now;
        if now > 0 {
            self.pipe_edge(id, true, false);
        }
        if progress == bytes.len() {
            return done(progress as i64);
        }
        if !waits {
            return if progress > 0 {
                done(progress as i64)
            } else {
                Err(libc::EAGAIN)
            };
        }
        Ok(Answer::Block(WaitSet {
            polls: vec![(fd, libc::POLLOUT)],
            deadline: None,
            progress: progress as u64,
        }))
    }

    /// Bytes that a recording saw written, however many the pipe held then.
    pub(super) fn fill_pipe(&mut self, id: u32, bytes: &[u8]) {
        if let Some(pipe) = self.pipes.get_mut(&id) {
            pipe.bytes.extend(bytes);
            self.pipe_edge(id, true, false);
        }
    }

    fn pipe_of(&mut self, fd: i32) -> Result<&mut Pipe, i32> {
        match self.table.get(fd)?.object {
            Object::PipeReader(pipe) | Object::PipeWriter(pipe) | Object::PipeBoth(pipe) => {
                self.pipes.get_mut(&pipe).ok_or(libc::EBADF)
            }
            _ => Err(libc::EBADF),
        }
    }

    pub(super) fn pipe_capacity(&mut self, fd: i32) -> Reply {
        done(self.pipe_of(fd)?.capacity as i64)
    }

    pub(super) fn set_pipe_capacity(&mut self, fd: i32, wanted: u64) -> Reply {
        if wanted > CAPACITY_MAX {
            return Err(libc::EPERM);
        }
        let pipe = self.pipe_of(fd)?;
        let capacity = (wanted as usize).max(ATOMIC).next_power_of_two();
        if capacity < pipe.bytes.len() {
            return Err(libc::EBUSY);
        }
        pipe.capacity = capacity;
        done(capacity as i64)
    }
}
