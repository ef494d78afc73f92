//! Moving bytes between the guest and whatever a descriptor leads to.

use super::device::Device;
use super::guest::Buffer;
use super::node::NodeId;
use super::output::{self, AfterInput, Input, OutputMode, Stream};
use super::table::Object;
use super::{Answer, Env, Reply, World, done, wait_for};
use crate::thread::Call;

/// Endless devices give at most this much at once.
const ENDLESS_MAX: u64 = 1 << 20;
/// `sendfile` and the like move at most this much at once.
const COPY_MAX: u64 = 1 << 20;

impl World {
    /// `read` and its kin.
    pub(super) fn sys_read(&mut self, env: &mut Env, call: &Call) -> Reply {
        let a = call.args;
        let (buffers, at) = match call.number as i64 {
            libc::SYS_read => (Buffer::one(a[1], a[2]), None),
            libc::SYS_pread64 => (Buffer::one(a[1], a[2]), Some(a[3])),
            libc::SYS_readv => (env.memory.read_vectors(a[1], a[2])?, None),
            libc::SYS_preadv => (env.memory.read_vectors(a[1], a[2])?, Some(a[3])),
            _ => {
                let at = (a[3] as i64 != -1).then_some(a[3]);
                (env.memory.read_vectors(a[1], a[2])?, at)
            }
        };
        self.read(env, call, a[0] as i32, &buffers, at)
    }

    /// `write` and its kin.
    pub(super) fn sys_write(&mut self, env: &mut Env, call: &Call) -> Reply {
        let a = call.args;
        let (buffers, at) = match call.number as i64 {
            libc::SYS_write => (Buffer::one(a[1], a[2]), None),
            libc::SYS_pwrite64 => (Buffer::one(a[1], a[2]), Some(a[3])),
            libc::SYS_writev => (env.memory.read_vectors(a[1], a[2])?, None),
            libc::SYS_pwritev => (env.memory.read_vectors(a[1], a[2])?, Some(a[3])),
            _ => {
                let at = (a[3] as i64 != -1).then_some(a[3]);
                (env.memory.read_vectors(a[1], a[2])?, at)
            }
        };
        let fd = a[0] as i32;
        if !self.table.get(fd)?.is_writable() {
            return Err(libc::EBADF);
        }
        let bytes = env.memory.gather(&buffers)?;
        self.write(env, call, fd, &bytes, at)
    }

    fn read(
        &mut self,
        env: &mut Env,
        call: &Call,
        fd: i32,
        buffers: &[Buffer],
        at: Option<u64>,
    ) -> Reply {
        let description = self.table.get(fd)?;
        if !description.is_readable() {
            return Err(libc::EBADF);
        }
        let total = Buffer::total(buffers);
        let object = description.object.clone();
        if at.is_some() && !is_seekable(&object) {
            return Err(libc::ESPIPE);
        }
        let bytes = match object {
            Object::File(node) => return self.read_file(env, fd, node, buffers, at),
            Object::Directory { .. } | Object::OwnDescriptors => return Err(libc::EISDIR),
            _ if total == 0 => Vec::new(),
            Object::Device(device) => read_device(env, device, total),
            Object::PipeReader(pipe) | Object::PipeBoth(pipe) => {
                match self.read_pipe(fd, pipe, total)? {
                    Some(bytes) => bytes,
                    None => return wait_for(fd, libc::POLLIN),
                }
            }
            Object::Event { .. } => return self.read_event(env, fd, buffers),
            Object::Timer => return self.read_timer(env, fd, buffers),
            Object::Socket(_) => return self.receive(env, call, fd, buffers, 0),
            Object::Input => match self.read_input(total) {
                Some(bytes) => bytes,
                None => return Ok(no_more_input()),
            },
            Object::Outside => match self.read_outside(self.table.id(fd)?, total) {
                Some(bytes) => bytes,
                None => return Ok(no_more_input()),
            },
            _ => return Err(libc::EINVAL),
        };
        env.memory.scatter(buffers, &bytes)?;
        done(bytes.len() as i64)
    }

    fn read_file(
        &mut self,
        env: &mut Env,
        fd: i32,
        node: NodeId,
        buffers: &[Buffer],
        at: Option<u64>,
    ) -> Reply {
        let offset = at.unwrap_or(self.table.get(fd)?.offset);
        if offset > i64::MAX as u64 {
            return Err(libc::EINVAL);
        }
        let end = offset.saturating_add(Buffer::total(buffers));
        self.store_mapped(env.memory, node, offset..end)?;
        let bytes = self
            .tree
            .content(node)?
            .bytes(offset, Buffer::total(buffers))?;
        env.memory.scatter(buffers, &bytes)?;
        if at.is_none() {
            self.table.get_mut(fd)?.offset = offset + bytes.len() as u64;
        }
        done(bytes.len() as i64)
    }

    fn read_input(&mut self, len: u64) -> Option<Vec<u8>> {
        let Input::Data { bytes, after } = &self.input else {
            return Some(Vec::new());
        };
        let rest = &bytes[self.input_used..];
        let taken = rest[..rest.len().min(len as usize)].to_vec();
        let stops = *after == AfterInput::Stop;
        if taken.is_empty() {
            self.asked_beyond();
            return if stops { None } else { Some(taken) };
        }
        self.input_used += taken.len();
        Some(taken)
    }

    /// What comes after all input that is known.
    pub(super) fn after_input(&self) -> AfterInput {
        match &self.input {
            Input::Data { after, .. } => *after,
            Input::EndOfFile => AfterInput::EndOfFile,
        }
    }

    /// Bytes of standard input that are left.
    pub(super) fn input_left(&self) -> usize {
        match &self.input {
            Input::Data { bytes, .. } => bytes.len() - self.input_used,
            Input::EndOfFile => 0,
        }
    }

    /// Writes bytes that are already out of the guest's memory.
    pub(super) fn write(
        &mut self,
        env: &mut Env,
        call: &Call,
        fd: i32,
        bytes: &[u8],
        at: Option<u64>,
    ) -> Reply {
        let object = self.table.get(fd)?.object.clone();
        if at.is_some() && !is_seekable(&object) {
            return Err(libc::ESPIPE);
        }
        match object {
            Object::File(node) => self.write_file(env, fd, node, bytes, at),
            Object::Device(Device::Full) => Err(libc::ENOSPC),
            Object::Device(_) | Object::Outside => done(bytes.len() as i64),
            Object::PipeWriter(pipe) | Object::PipeBoth(pipe) => {
                self.write_pipe(call, fd, pipe, bytes)
            }
            Object::Event { .. } => self.write_event(fd, bytes),
            Object::Socket(_) => self.send(env.now, call, fd, bytes),
            Object::Output(stream) => Ok(self.say(stream, bytes)),
            Object::Directory { .. } | Object::OwnDescriptors => Err(libc::EISDIR),
            _ => Err(libc::EINVAL),
        }
    }

    /// The guest says something on standard output or error.
    fn say(&mut self, stream: Stream, bytes: &[u8]) -> Answer {
        if self.output_mode == OutputMode::Show && !output::show(stream, bytes) {
            return Answer::BrokenPipe;
        }
        self.transcript.say(stream, bytes);
        Answer::Return(bytes.len() as i64)
    }

    fn write_file(
        &mut self,
        env: &mut Env,
        fd: i32,
        node: NodeId,
        bytes: &[u8],
        at: Option<u64>,
    ) -> Reply {
        let description = self.table.get(fd)?;
        let (flags, mut offset) = (description.flags, description.offset);
        // As Linux has it, O_APPEND wins even over the offset of pwrite.
        if flags & libc::O_APPEND != 0 {
            offset = self.tree.content(node)?.len();
        } else if let Some(at) = at {
            offset = at;
        }
        if offset > i64::MAX as u64 || offset.checked_add(bytes.len() as u64).is_none() {
            return Err(libc::EINVAL);
        }
        if !bytes.is_empty() {
            self.tree.write(node, offset, bytes)?;
            self.load_mapped(env.memory, node, offset, bytes)?;
            self.modified(env, node);
        }
        if at.is_none() {
            self.table.get_mut(fd)?.offset = offset + bytes.len() as u64;
        }
        done(bytes.len() as i64)
    }

    /// The content of a file has changed.
    pub(super) fn modified(&mut self, env: &Env, node: NodeId) {
        let time = env.time();
        let node = self.tree.node_mut(node);
        let blocks = node.size().div_ceil(4096) * 8;
        (node.meta.modified, node.meta.changed) = (time, time);
        node.meta.blocks = blocks;
    }

    /// `ftruncate`, `truncate`, `O_TRUNC`.
    pub(super) fn truncate_node(
        &mut self,
        env: &mut Env,
        node: NodeId,
        len: u64,
    ) -> Result<(), i32> {
        if len > i64::MAX as u64 {
            return Err(libc::EINVAL);
        }
        self.clear_mapped(env.memory, node, len)?;
        if len == 0 {
            // Nothing of the old content is needed: do not even look at it.
            self.tree.change(node, |content| {
                *content = Default::default();
                Ok(())
            })?;
        } else {
            self.tree.change(node, |content| content.set_len(len))?;
        }
        self.modified(env, node);
        Ok(())
    }

    pub(super) fn file_truncate(&mut self, env: &mut Env, fd: i32, len: u64) -> Reply {
        let description = self.table.get(fd)?;
        match description.object {
            Object::File(node) if description.is_writable() => {
                self.truncate_node(env, node, len)?;
                done(0)
            }
            _ => Err(libc::EINVAL),
        }
    }

    pub(super) fn allocate(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let (mode, offset, len) = (a[1] as i32, a[2], a[3]);
        let description = self.table.get(a[0] as i32)?;
        let Object::File(node) = description.object else {
            return Err(libc::ENODEV);
        };
        if !description.is_writable() {
            return Err(libc::EBADF);
        }
        if len == 0 || len > i64::MAX as u64 || offset > i64::MAX as u64 {
            return Err(libc::EINVAL);
        }
        let end = offset.checked_add(len).ok_or(libc::EFBIG)?;
        let keeps_size = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        match mode & !libc::FALLOC_FL_KEEP_SIZE {
            0 => {}
            libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE => {
                self.tree
                    .change(node, |content| content.punch(offset, len))?;
                let zeros = vec![0; self.mapped_len(node, offset..end)];
                self.load_mapped(env.memory, node, offset, &zeros)?;
            }
            _ => return Err(libc::EOPNOTSUPP),
        }
        if !keeps_size && end > self.tree.content(node)?.len() {
            self.truncate_node(env, node, end)?;
        }
        done(0)
    }

    pub(super) fn seek(&mut self, fd: i32, offset: i64, whence: i32) -> Reply {
        let description = self.table.get(fd)?;
        let len = match &description.object {
            Object::File(node) => {
                let node = *node;
                self.tree.content(node)?.len() as i64
            }
            Object::Directory { .. } | Object::OwnDescriptors => i64::MAX,
            Object::Device(_) => return done(0),
            Object::Path(_) => return Err(libc::EBADF),
            _ => return Err(libc::ESPIPE),
        };
        let description = self.table.get_mut(fd)?;
        let to = match whence {
            libc::SEEK_SET => Some(offset),
            libc::SEEK_CUR => (description.offset as i64).checked_add(offset),
            libc::SEEK_END => len.checked_add(offset),
            libc::SEEK_DATA | libc::SEEK_HOLE if offset < 0 || offset >= len => {
                return Err(libc::ENXIO);
            }
            libc::SEEK_DATA => Some(offset),
            libc::SEEK_HOLE => Some(len),
            _ => None,
        };
        let to = to.filter(|to| *to >= 0).ok_or(libc::EINVAL)?;
        description.offset = to as u64;
        if to == 0
            && let Object::Directory { listing, .. } = &mut description.object
        {
            *listing = None;
        }
        done(to)
    }

    /// `sendfile` and `copy_file_range`: from a file to whatever takes bytes.
    pub(super) fn sys_copy(&mut self, env: &mut Env, call: &Call) -> Reply {
        let a = call.args;
        let (from, from_at, to, to_at, len) = match call.number as i64 {
            libc::SYS_sendfile => (a[1] as i32, a[2], a[0] as i32, 0, a[3]),
            _ => (a[0] as i32, a[1], a[2] as i32, a[3], a[4]),
        };
        let source = self.table.get(from)?;
        let Object::File(node) = source.object else {
            return Err(libc::EINVAL);
        };
        if !source.is_readable() || !self.table.get(to)?.is_writable() {
            return Err(libc::EBADF);
        }
        let offset = match from_at {
            0 => self.table.get(from)?.offset,
            at => env.memory.read_u64(at)?,
        };
        let target = match to_at {
            0 => None,
            at => Some(env.memory.read_u64(at)?),
        };
        let len = len.min(COPY_MAX);
        self.store_mapped(env.memory, node, offset..offset.saturating_add(len))?;
        let bytes = self.tree.content(node)?.bytes(offset, len)?;
        // A wait inside must not hand over half of a chunk twice: the call starts over with what is left.
        let fresh = Call {
            progress: 0,
            ..call.clone()
        };
        let answer = if bytes.is_empty() {
            Answer::Return(0)
        } else {
            self.write(env, &fresh, to, &bytes, target)?
        };
        let count = match &answer {
            Answer::Return(count) => *count as u64,
            Answer::Block(wait) => wait.progress,
            _ => 0,
        };
        match from_at {
            0 => self.table.get_mut(from)?.offset = offset + count,
            at => env.memory.write_u64(at, offset + count)?,
        }
        if let Some(target) = target {
            env.memory.write_u64(to_at, target + count)?;
        }
        match answer {
            Answer::Block(_) if count > 0 => done(count as i64),
            answer => Ok(answer),
        }
    }
}

/// Nothing is known about what the guest would have read.
pub(super) fn no_more_input() -> Answer {
    Answer::Refuse(
        "the program asks for more input than there is, and the policy is to stop there".into(),
    )
}

fn is_seekable(object: &Object) -> bool {
    matches!(
        object,
        Object::File(_) | Object::Directory { .. } | Object::OwnDescriptors | Object::Device(_)
    )
}

fn read_device(env: &mut Env, device: Device, len: u64) -> Vec<u8> {
    let len = len.min(ENDLESS_MAX) as usize;
    match device {
        Device::Zero | Device::Full => vec![0; len],
        Device::Random => env.random_bytes(len),
        Device::Null | Device::Other => Vec::new(),
    }
}
