//! Sending and receiving.

use super::address::Address;
use super::{CAPACITY, Message, World};
use crate::thread::Call;
use crate::world::guest::{Buffer, GuestMemory};
use crate::world::table::DescriptionId;
use crate::world::{Answer, Env, Reply, WaitSet, done};

const HEADER_LEN: u64 = 64;
const MESSAGES_MAX: u64 = 1024;
const CONTROL_MAX: u64 = 64 << 10;
const DATAGRAM_MAX: usize = 65_507;

/// `struct msghdr`.
struct Header {
    name: u64,
    name_len: u32,
    buffers: Vec<Buffer>,
    control: u64,
    control_len: u64,
}

impl Header {
    fn read(memory: &dyn GuestMemory, at: u64) -> Result<Header, i32> {
        Ok(Header {
            name: memory.read_u64(at)?,
            name_len: memory.read_u32(at + 8)?,
            buffers: memory.read_vectors(memory.read_u64(at + 16)?, memory.read_u64(at + 24)?)?,
            control: memory.read_u64(at + 32)?,
            control_len: memory.read_u64(at + 40)?,
        })
    }
}

/// What came out of an inbox.
struct Received {
    bytes: Vec<u8>,
    /// Bytes of the message, also those that did not fit.
    full_len: usize,
    from: Option<Address>,
    carried: Vec<DescriptionId>,
}

impl World {
    // ---- sending ----

    pub(super) fn sys_sendto(&mut self, env: &mut Env, call: &Call) -> Reply {
        let a = call.args;
        let to = match a[4] {
            0 => None,
            at => Some(Address::read(env.memory, at, a[5])?),
        };
        let bytes = env.memory.gather(&Buffer::one(a[1], a[2]))?;
        self.send_message(
            env.now,
            call,
            a[0] as i32,
            &bytes,
            a[3] as i32,
            to,
            Vec::new(),
        )
    }

    /// `write` to a socket.
    pub(in crate::world) fn send(&mut self, now: u64, call: &Call, fd: i32, bytes: &[u8]) -> Reply {
        self.send_message(now, call, fd, bytes, 0, None, Vec::new())
    }

    pub(super) fn sys_sendmsg(&mut self, env: &mut Env, call: &Call, at: u64, flags: i32) -> Reply {
        let header = Header::read(env.memory, at)?;
        let to = match header.name {
            0 => None,
            name => Some(Address::read(env.memory, name, u64::from(header.name_len))?),
        };
        let bytes = env.memory.gather(&header.buffers)?;
        let carried = self.read_carried(env, &header)?;
        let fd = call.args[0] as i32;
        self.send_message(env.now, call, fd, &bytes, flags, to, carried)
    }

    pub(super) fn sys_sendmmsg(&mut self, env: &mut Env, call: &Call) -> Reply {
        let a = call.args;
        let count = a[2].min(MESSAGES_MAX);
        for index in 0..count {
            let at = a[1] + HEADER_LEN * index;
            match self.sys_sendmsg(env, call, at, a[3] as i32) {
                Ok(Answer::Return(sent)) => env.memory.write_u32(at + 56, sent as u32)?,
                _ if index > 0 => return done(index as i64),
                other => return other,
            }
        }
        done(count as i64)
    }

    /// Descriptions that a message is to carry (`SCM_RIGHTS`).
    fn read_carried(&self, env: &Env, header: &Header) -> Result<Vec<DescriptionId>, i32> {
        let mut carried = Vec::new();
        if header.control == 0 || header.control_len == 0 {
            return Ok(carried);
        }
        let control = env
            .memory
            .read_bytes(header.control, header.control_len.min(CONTROL_MAX))?;
        let mut at = 0;
        while at + 16 <= control.len() {
            let word = |from: usize| -> [u8; 4] {
                control[from..from + 4].try_into().expect("four bytes")
            };
            let len = u32::from_le_bytes(word(at)) as usize;
            let (level, kind) = (
                i32::from_le_bytes(word(at + 8)),
                i32::from_le_bytes(word(at + 12)),
            );
            if len < 16 || at + len > control.len() {
                return Err(libc::EINVAL);
            }
            if (level, kind) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                for from in (at + 16..at + len - 3).step_by(4) {
                    carried.push(self.table.id(i32::from_le_bytes(word(from)))?);
                }
            }
            at += len.next_multiple_of(8);
        }
        Ok(carried)
    }

    #[allow(clippy::too_many_arguments)]
    fn send_message(
        &mut self,
        now: u64,
        call: &Call,
        fd: i32,
        bytes: &[u8],
        flags: i32,
        to: Option<Address>,
        carried: Vec<DescriptionId>,
    ) -> Reply {
        let id = self.socket_id(fd)?;
        let socket = self.socket(id)?;
        let waits = self.table.get(fd)?.waits() && flags & libc::MSG_DONTWAIT == 0;
        let timeout = socket.send_timeout;
        let is_stream = socket.is_stream();
        let broken = |flags: i32| {
            if flags & libc::MSG_NOSIGNAL != 0 {
                Err(libc::EPIPE)
            } else {
                Ok(Answer::BrokenPipe)
            }
        };
        let target = if socket.has_connections() {
            if !socket.connected {
                return if is_stream && socket.domain != libc::AF_UNIX {
                    broken(flags)
                } else {
                    Err(libc::ENOTCONN)
                };
            }
            if socket.shut_write || socket.broken {
                return broken(flags);
            }
            socket.peer.ok_or(libc::EPIPE)?
        } else {
            match self.datagram_target(id, to) {
                Ok(target) => target,
                // Over UDP a message to nobody is lost, and the sender may learn of it later.
                Err(libc::ECONNREFUSED) if self.socket(id)?.domain != libc::AF_UNIX => {
                    return done(bytes.len() as i64);
                }
                Err(error) => return Err(error),
            }
        };
        let progress = if is_stream { call.progress as usize } else { 0 };
        let rest = &bytes[progress.min(bytes.len())..];
        let room = self.socket(target)?.room();
        let now_sent = if is_stream {
            rest.len().min(room)
        } else {
            if rest.len() > CAPACITY.min(DATAGRAM_MAX) && self.socket(id)?.domain != libc::AF_UNIX {
                return Err(libc::EMSGSIZE);
            }
            if rest.len() > CAPACITY {
                return Err(libc::EMSGSIZE);
            }
            if rest.len() <= room { rest.len() } else { 0 }
        };
        let whole = now_sent == rest.len();
        if now_sent > 0 || whole {
            self.deliver(id, target, &rest[..now_sent], carried)?;
        }
        let sent = progress + now_sent;
        if whole {
            return done(sent as i64);
        }
        if !is_stream && self.socket(id)?.domain != libc::AF_UNIX {
            // UDP drops what does not fit.
            return done(bytes.len() as i64);
        }
        if !waits || call.timed_out {
            return if sent > 0 {
                done(sent as i64)
            } else {
                Err(libc::EAGAIN)
            };
        }
        Ok(Answer::Block(WaitSet {
            polls: vec![(fd, libc::POLLOUT)],
            deadline: call.deadline.or(timeout.map(|timeout| now + timeout)),
            progress: sent as u64,
        }))
    }

    fn datagram_target(&mut self, id: u32, to: Option<Address>) -> Result<u32, i32> {
        if let (None, Some(peer)) = (&to, self.socket(id)?.peer) {
            return Ok(peer);
        }
        let address = match to {
            Some(address) => address,
            None => self
                .socket(id)?
                .remote
                .clone()
                .ok_or(if self.socket(id)?.connected {
                    libc::ECONNREFUSED
                } else {
                    libc::EDESTADDRREQ
                })?,
        };
        self.give_address(id)?;
        self.reach(id, &address)
    }

    fn deliver(
        &mut self,
        from: u32,
        target: u32,
        bytes: &[u8],
        carried: Vec<DescriptionId>,
    ) -> Result<(), i32> {
        for id in &carried {
            self.hold(*id);
        }
        let address = self.socket(from)?.local.clone();
        let socket = self.socket_mut(target)?;
        if socket.shut_read {
            for id in carried {
                self.release(id);
            }
            return Ok(());
        }
        socket.inbox_bytes += bytes.len();
        let is_stream = socket.is_stream();
        match socket.inbox.back_mut() {
            Some(last) if is_stream && carried.is_empty() && last.carried.is_empty() => {
                last.bytes.extend_from_slice(bytes);
            }
            _ if is_stream && bytes.is_empty() => {}
            _ => socket.inbox.push_back(Message {
                bytes: bytes.to_vec(),
                from: address,
                carried,
            }),
        }
        self.socket_edge(target, true, false);
        Ok(())
    }

    // ---- receiving ----

    pub(super) fn sys_recvfrom(&mut self, env: &mut Env, call: &Call) -> Reply {
        let a = call.args;
        let buffers = Buffer::one(a[1], a[2]);
        let (answer, received) =
            self.receive_into(env, call, a[0] as i32, &buffers, a[3] as i32)?;
        if let Some(received) = received {
            for id in received.carried {
                self.release(id);
            }
            if let Some(from) = received.from {
                from.write(env.memory, a[4], a[5])?;
            }
        }
        Ok(answer)
    }

    /// `read` from a socket.
    pub(in crate::world) fn receive(
        &mut self,
        env: &mut Env,
        call: &Call,
        fd: i32,
        buffers: &[Buffer],
        flags: i32,
    ) -> Reply {
        let (answer, received) = self.receive_into(env, call, fd, buffers, flags)?;
        for id in received.into_iter().flat_map(|received| received.carried) {
            self.release(id);
        }
        Ok(answer)
    }

    pub(super) fn sys_recvmsg(&mut self, env: &mut Env, call: &Call, at: u64, flags: i32) -> Reply {
        let header = Header::read(env.memory, at)?;
        let fd = call.args[0] as i32;
        let (answer, received) = self.receive_into(env, call, fd, &header.buffers, flags)?;
        let Some(received) = received else {
            return Ok(answer);
        };
        let mut told = 0;
        if received.full_len > received.bytes.len()
            && !self.socket(self.socket_id(fd)?)?.is_stream()
        {
            told |= libc::MSG_TRUNC;
        }
        let name_len = match (&received.from, header.name) {
            (Some(from), name) if name != 0 => {
                let bytes = from.bytes();
                let cut = bytes.len().min(header.name_len as usize);
                env.memory.write(name, &bytes[..cut])?;
                bytes.len() as u32
            }
            _ => 0,
        };
        env.memory.write_u32(at + 8, name_len)?;
        let (control_len, cut) = self.write_carried(env, &header, received.carried, flags)?;
        if cut {
            told |= libc::MSG_CTRUNC;
        }
        env.memory.write_u64(at + 40, control_len)?;
        env.memory.write_u32(at + 48, told as u32)?;
        Ok(answer)
    }

    pub(super) fn sys_recvmmsg(&mut self, env: &mut Env, call: &Call) -> Reply {
        let a = call.args;
        let count = a[2].min(MESSAGES_MAX);
        let mut flags = a[3] as i32;
        for index in 0..count {
            let at = a[1] + HEADER_LEN * index;
            match self.sys_recvmsg(env, call, at, flags & !libc::MSG_WAITFORONE) {
                Ok(Answer::Return(len)) => env.memory.write_u32(at + 56, len as u32)?,
                _ if index > 0 => return done(index as i64),
                other => return other,
            }
            // Only the first may wait: the rest is what is there.
            flags |= libc::MSG_DONTWAIT;
        }
        done(count as i64)
    }

    /// Gives the guest descriptors for what a message carried; returns the length used and whether some were lost.
    fn write_carried(
        &mut self,
        env: &mut Env,
        header: &Header,
        carried: Vec<DescriptionId>,
        flags: i32,
    ) -> Result<(u64, bool), i32> {
        if carried.is_empty() {
            return Ok((0, false));
        }
        let room = header.control_len.saturating_sub(16) / 4;
        let close = flags & libc::MSG_CMSG_CLOEXEC != 0;
        let mut numbers = Vec::new();
        let mut lost = false;
        for id in carried {
            if (numbers.len() as u64) < room
                && header.control != 0
                && let Ok(fd) = self.place(id, 0, close)
            {
                numbers.push(fd);
            } else {
                lost = true;
            }
            self.release(id);
        }
        if numbers.is_empty() {
            return Ok((0, lost));
        }
        let len = 16 + 4 * numbers.len() as u64;
        env.memory.write_u64(header.control, len)?;
        env.memory
            .write_u32(header.control + 8, libc::SOL_SOCKET as u32)?;
        env.memory
            .write_u32(header.control + 12, libc::SCM_RIGHTS as u32)?;
        for (index, fd) in numbers.iter().enumerate() {
            env.memory
                .write_u32(header.control + 16 + 4 * index as u64, *fd as u32)?;
        }
        Ok((len.next_multiple_of(8).min(header.control_len), lost))
    }

    /// Takes from the inbox into the buffers, or says how to wait.
    fn receive_into(
        &mut self,
        env: &mut Env,
        call: &Call,
        fd: i32,
        buffers: &[Buffer],
        flags: i32,
    ) -> Result<(Answer, Option<Received>), i32> {
        let id = self.socket_id(fd)?;
        let waits = self.table.get(fd)?.waits() && flags & libc::MSG_DONTWAIT == 0;
        let wanted = Buffer::total(buffers) as usize;
        let socket = self.socket_mut(id)?;
        if socket.has_connections() && !socket.connected {
            return Err(if socket.queue.is_some() {
                libc::EINVAL
            } else {
                libc::ENOTCONN
            });
        }
        let progress = call.progress as usize;
        if socket.inbox.is_empty() {
            if socket.error != 0 {
                return Err(std::mem::take(&mut socket.error));
            }
            if socket.ended || socket.shut_read {
                return Ok((Answer::Return(progress as i64), None));
            }
            if !waits || call.timed_out {
                return if progress > 0 {
                    Ok((Answer::Return(progress as i64), None))
                } else {
                    Err(libc::EAGAIN)
                };
            }
            let timeout = socket.receive_timeout;
            let answer = self.wait_on_socket(env, call, fd, libc::POLLIN, timeout)?;
            return Ok((answer, None));
        }
        let is_stream = socket.is_stream();
        let peeks = flags & libc::MSG_PEEK != 0;
        let received = if is_stream {
            self.take_stream(id, wanted - progress.min(wanted), peeks)?
        } else {
            self.take_datagram(id, wanted, peeks)?
        };
        scatter_from(env, buffers, progress, &received.bytes)?;
        let got = progress + received.bytes.len();
        let wants_all = flags & libc::MSG_WAITALL != 0 && is_stream && waits && !peeks;
        let over = self.socket(id)?.ended || received.bytes.is_empty();
        if wants_all && got < wanted && !over && received.carried.is_empty() {
            let wait = WaitSet {
                polls: vec![(fd, libc::POLLIN)],
                deadline: call.deadline,
                progress: got as u64,
            };
            return Ok((Answer::Block(wait), None));
        }
        let value = if flags & libc::MSG_TRUNC != 0 && !is_stream {
            received.full_len
        } else {
            got
        };
        Ok((Answer::Return(value as i64), Some(received)))
    }

    fn take_stream(&mut self, id: u32, wanted: usize, peeks: bool) -> Result<Received, i32> {
        let socket = self.socket_mut(id)?;
        let mut received = Received {
            bytes: Vec::new(),
            full_len: 0,
            from: None,
            carried: Vec::new(),
        };
        if peeks {
            let all = socket.inbox.iter().flat_map(|message| &message.bytes);
            received.bytes = all.take(wanted).copied().collect();
            return Ok(received);
        }
        while received.bytes.len() < wanted {
            let Some(message) = socket.inbox.front_mut() else {
                break;
            };
            // What is carried belongs to the first byte of its message, and a read never spans two such.
            if !message.carried.is_empty() {
                if !received.bytes.is_empty() {
                    break;
                }
                received.carried = std::mem::take(&mut message.carried);
            }
            let count = (wanted - received.bytes.len()).min(message.bytes.len());
            received.bytes.extend(message.bytes.drain(..count));
            if message.bytes.is_empty() {
                socket.inbox.pop_front();
            }
            if !received.carried.is_empty() {
                break;
            }
        }
        socket.inbox_bytes -= received.bytes.len();
        let peer = socket.peer;
        if let Some(peer) = peer {
            self.socket_edge(peer, false, true);
        }
        Ok(received)
    }

    fn take_datagram(&mut self, id: u32, wanted: usize, peeks: bool) -> Result<Received, i32> {
        let socket = self.socket_mut(id)?;
        let message = socket.inbox.front().ok_or(libc::EAGAIN)?;
        let count = wanted.min(message.bytes.len());
        let mut received = Received {
            bytes: message.bytes[..count].to_vec(),
            full_len: message.bytes.len(),
            from: (!matches!(message.from, Address::Unnamed)).then(|| message.from.clone()),
            carried: Vec::new(),
        };
        if !peeks && let Some(message) = socket.inbox.pop_front() {
            socket.inbox_bytes -= message.bytes.len();
            received.carried = message.carried;
        }
        let peer = socket.peer;
        if let Some(peer) = peer {
            self.socket_edge(peer, false, true);
        }
        Ok(received)
    }
}

/// What a recording tells about sockets.
impl World {
    /// So many bytes (or one message) were received.
    pub(in crate::world) fn take_observed(&mut self, id: u32, len: usize) -> Result<(), i32> {
        let received = if self.socket(id)?.is_stream() {
            self.take_stream(id, len, false)?
        } else {
            self.take_datagram(id, len, false)?
        };
        for carried in received.carried {
            self.release(carried);
        }
        Ok(())
    }

    /// Bytes were sent over a connection.
    pub(in crate::world) fn deliver_observed(&mut self, id: u32, bytes: &[u8]) -> Result<(), i32> {
        match self.socket(id)?.peer {
            Some(peer) => self.deliver(id, peer, bytes, Vec::new()),
            None => Ok(()),
        }
    }

    /// The numbers that descriptors got which came with a message.
    pub(in crate::world) fn observed_descriptors(
        &self,
        env: &Env,
        at: u64,
    ) -> Result<Vec<i32>, i32> {
        let header = Header::read(env.memory, at)?;
        let mut numbers = Vec::new();
        if header.control == 0 || header.control_len < 16 {
            return Ok(numbers);
        }
        let len = env.memory.read_u64(header.control)?.min(header.control_len);
        let kind = env.memory.read_u32(header.control + 12)? as i32;
        if kind == libc::SCM_RIGHTS {
            for index in 0..len.saturating_sub(16) / 4 {
                let fd = env.memory.read_u32(header.control + 16 + 4 * index)?;
                numbers.push(fd as i32);
            }
        }
        Ok(numbers)
    }
}

/// Spreads bytes over the buffers, past those that were filled before.
fn scatter_from(env: &mut Env, buffers: &[Buffer], skip: usize, bytes: &[u8]) -> Result<(), i32> {
    let mut skip = skip as u64;
    let rest: Vec<Buffer> = buffers
        .iter()
        .map(|buffer| {
            let cut = skip.min(buffer.len);
            skip -= cut;
            Buffer {
                address: buffer.address + cut,
                len: buffer.len - cut,
            }
        })
        .collect();
    env.memory.scatter(&rest, bytes)
}
