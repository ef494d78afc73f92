//! Sockets inside the process: unix ones, and TCP and UDP over a loopback interface that nobody else can see.
//!
//! A connection is two sockets that put bytes into each other's inbox. Nothing is ever lost, reordered or late.
//! Connections to anywhere else are refused; the attempt is remembered.

mod address;
mod connect;
mod message;
mod options;

use super::guest::Buffer;
use super::node::NodeId;
use super::table::{Description, DescriptionId, Object};
use super::{Env, Reply, World, done};
use address::Address;
use std::collections::{BTreeMap, VecDeque};

/// Bytes that wait in one inbox at most.
const CAPACITY: usize = 208 << 10;
/// Flags of `socket` beside the type.
const TYPE_FLAGS: i32 = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

#[derive(Clone, Debug)]
struct Message {
    bytes: Vec<u8>,
    from: Address,
    /// Descriptions that travel with it.
    carried: Vec<DescriptionId>,
}

#[derive(Clone, Debug)]
pub(super) struct Socket {
    domain: i32,
    kind: i32,
    protocol: i32,
    local: Address,
    remote: Option<Address>,
    /// The other end of a connection, while it is there.
    peer: Option<u32>,
    connected: bool,
    /// Connections that wait to be accepted.
    queue: Option<VecDeque<u32>>,
    inbox: VecDeque<Message>,
    inbox_bytes: usize,
    /// The other end will not send any more.
    ended: bool,
    /// The other end will not receive any more.
    broken: bool,
    shut_read: bool,
    shut_write: bool,
    error: i32,
    receive_timeout: Option<u64>,
    send_timeout: Option<u64>,
    options: BTreeMap<(i32, i32), Vec<u8>>,
    /// The name in the file system that it is reached by.
    node: Option<NodeId>,
}

impl Socket {
    fn new(domain: i32, kind: i32, protocol: i32) -> Self {
        Socket {
            domain,
            kind,
            protocol,
            local: Address::unnamed(domain),
            remote: None,
            peer: None,
            connected: false,
            queue: None,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            ended: false,
            broken: false,
            shut_read: false,
            shut_write: false,
            error: 0,
            receive_timeout: None,
            send_timeout: None,
            options: BTreeMap::new(),
            node: None,
        }
    }

    /// Bytes in order without boundaries.
    fn is_stream(&self) -> bool {
        self.kind == libc::SOCK_STREAM
    }

    /// Has connections, with boundaries or without.
    fn has_connections(&self) -> bool {
        self.kind != libc::SOCK_DGRAM
    }

    fn room(&self) -> usize {
        CAPACITY.saturating_sub(self.inbox_bytes)
    }
}

impl World {
    fn socket(&self, id: u32) -> Result<&Socket, i32> {
        self.sockets.get(&id).ok_or(libc::EBADF)
    }

    fn socket_mut(&mut self, id: u32) -> Result<&mut Socket, i32> {
        self.sockets.get_mut(&id).ok_or(libc::EBADF)
    }

    /// The socket behind a descriptor.
    fn socket_id(&self, fd: i32) -> Result<u32, i32> {
        match self.table.get(fd)?.object {
            Object::Socket(id) => Ok(id),
            _ => Err(libc::ENOTSOCK),
        }
    }

    /// The address of a socket that listens.
    pub(super) fn listens_at(&self, id: DescriptionId) -> Option<Vec<u8>> {
        let Object::Socket(socket) = self.table.descriptions.get(&id)?.object else {
            return None;
        };
        let socket = self.sockets.get(&socket)?;
        socket.queue.as_ref().map(|_| socket.local.bytes())
    }

    fn add_socket(&mut self, socket: Socket) -> u32 {
        let id = self.next_id();
        self.sockets.insert(id, socket);
        id
    }

    /// A descriptor for a socket that exists.
    fn install_socket(&mut self, id: u32, type_flags: i32) -> Result<i32, i32> {
        let status = libc::O_RDWR | type_flags & libc::SOCK_NONBLOCK;
        let name = format!("socket:[{id}]").into_bytes();
        let description = Description::new(Object::Socket(id), status, &name);
        self.install(description, type_flags & libc::SOCK_CLOEXEC != 0)
    }

    /// A call about sockets.
    pub(super) fn socket_call(&mut self, env: &mut Env, call: &crate::thread::Call) -> Reply {
        let a = call.args;
        let fd = a[0] as i32;
        let number = call.number as i64;
        if let Ok(description) = self.table.get(fd)
            && matches!(description.object, Object::Outside)
            && !matches!(number, libc::SYS_socket | libc::SYS_socketpair)
        {
            return self.outside_socket_call(env, call);
        }
        match number {
            libc::SYS_socket => self.sys_socket(a[0] as i32, a[1] as i32, a[2] as i32),
            libc::SYS_socketpair => self.sys_socketpair(env, a),
            libc::SYS_bind => self.sys_bind(env, fd, a[1], a[2]),
            libc::SYS_listen => self.sys_listen(fd),
            libc::SYS_connect => self.sys_connect(env, fd, a[1], a[2]),
            libc::SYS_accept => self.sys_accept(env, call, 0),
            libc::SYS_accept4 => self.sys_accept(env, call, a[3] as i32),
            libc::SYS_shutdown => self.sys_shutdown(fd, a[1] as i32),
            libc::SYS_getsockname => {
                let address = self.socket(self.socket_id(fd)?)?.local.clone();
                address.write(env.memory, a[1], a[2])?;
                done(0)
            }
            libc::SYS_getpeername => {
                let socket = self.socket(self.socket_id(fd)?)?;
                let address = socket.remote.clone().ok_or(libc::ENOTCONN)?;
                address.write(env.memory, a[1], a[2])?;
                done(0)
            }
            libc::SYS_setsockopt => self.set_option(env, a),
            libc::SYS_getsockopt => self.get_option(env, a),
            libc::SYS_sendto => self.sys_sendto(env, call),
            libc::SYS_sendmsg => self.sys_sendmsg(env, call, a[1], a[2] as i32),
            libc::SYS_sendmmsg => self.sys_sendmmsg(env, call),
            libc::SYS_recvfrom => self.sys_recvfrom(env, call),
            libc::SYS_recvmsg => self.sys_recvmsg(env, call, a[1], a[2] as i32),
            libc::SYS_recvmmsg => self.sys_recvmmsg(env, call),
            _ => Err(libc::ENOSYS),
        }
    }

    /// A connection that only the recording knew: it takes everything, and gives what came then.
    fn outside_socket_call(&mut self, env: &mut Env, call: &crate::thread::Call) -> Reply {
        let a = call.args;
        match call.number as i64 {
            libc::SYS_recvfrom => {
                if a[5] != 0 {
                    env.memory.write_u32(a[5], 0)?;
                }
                self.receive_outside(env, a[0] as i32, &Buffer::one(a[1], a[2]))
            }
            libc::SYS_recvmsg => {
                let buffers = message_buffers(env, a[1])?;
                // No name, nothing beside the data, no flags.
                env.memory.write_u32(a[1] + 8, 0)?;
                env.memory.write_u64(a[1] + 40, 0)?;
                env.memory.write_u32(a[1] + 48, 0)?;
                self.receive_outside(env, a[0] as i32, &buffers)
            }
            libc::SYS_recvmmsg => Err(libc::EAGAIN),
            libc::SYS_accept | libc::SYS_accept4 => Err(libc::EINVAL),
            libc::SYS_sendto => done(a[2] as i64),
            libc::SYS_sendmsg => done(Buffer::total(&message_buffers(env, a[1])?) as i64),
            libc::SYS_sendmmsg => {
                for index in 0..a[2] {
                    let at = a[1] + 64 * index;
                    let len = Buffer::total(&message_buffers(env, at)?);
                    env.memory.write_u32(at + 56, len as u32)?;
                }
                done(a[2] as i64)
            }
            _ => done(0),
        }
    }

    fn receive_outside(&mut self, env: &mut Env, fd: i32, buffers: &[Buffer]) -> Reply {
        let id = self.table.id(fd)?;
        match self.read_outside(id, Buffer::total(buffers)) {
            Some(bytes) => {
                env.memory.scatter(buffers, &bytes)?;
                done(bytes.len() as i64)
            }
            None => Ok(super::transfer::no_more_input()),
        }
    }

    fn sys_socket(&mut self, domain: i32, kind_and_flags: i32, protocol: i32) -> Reply {
        let kind = kind_and_flags & !TYPE_FLAGS;
        match (domain, kind) {
            (libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_DGRAM | libc::SOCK_SEQPACKET) => {}
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) if matches!(protocol, 0 | 6) => {}
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) if matches!(protocol, 0 | 17) => {}
            (libc::AF_INET | libc::AF_INET6 | libc::AF_PACKET, libc::SOCK_RAW) => {
                return Err(libc::EPERM);
            }
            (libc::AF_UNIX | libc::AF_INET | libc::AF_INET6, _) => {
                return Err(libc::EPROTONOSUPPORT);
            }
            _ => return Err(libc::EAFNOSUPPORT),
        }
        let id = self.add_socket(Socket::new(domain, kind, protocol));
        done(i64::from(self.install_socket(id, kind_and_flags)?))
    }

    fn socket_edge(&mut self, id: u32, read: bool, write: bool) {
        self.edge(
            |object| matches!(object, Object::Socket(socket) if *socket == id),
            read,
            write,
        );
    }

    /// What `poll` says.
    pub(super) fn socket_events(&self, id: u32) -> i16 {
        const READABLE: i16 = libc::POLLIN | libc::POLLRDNORM;
        const WRITABLE: i16 = libc::POLLOUT | libc::POLLWRNORM;
        let Some(socket) = self.sockets.get(&id) else {
            return libc::POLLNVAL;
        };
        let flag = |on: bool, events: i16| if on { events } else { 0 };
        let error = flag(socket.error != 0, libc::POLLERR);
        if let Some(queue) = &socket.queue {
            return flag(!queue.is_empty(), READABLE) | error;
        }
        let readable = !socket.inbox.is_empty() || socket.ended || socket.shut_read;
        if !socket.has_connections() {
            return flag(readable, READABLE) | WRITABLE | error;
        }
        if !socket.connected {
            return WRITABLE | libc::POLLHUP | error;
        }
        let room = socket
            .peer
            .and_then(|peer| self.sockets.get(&peer))
            .map_or(1, Socket::room);
        let writable = room > 0 || socket.broken || socket.shut_write;
        flag(readable, READABLE)
            | flag(writable, WRITABLE)
            | flag(socket.ended || socket.shut_read, libc::POLLRDHUP)
            | flag(
                socket.ended && (socket.broken || socket.shut_write),
                libc::POLLHUP,
            )
            | error
    }

    pub(super) fn socket_bytes(&self, id: u32) -> u64 {
        self.sockets.get(&id).map_or(0, |socket| {
            if socket.is_stream() {
                socket.inbox_bytes as u64
            } else {
                socket
                    .inbox
                    .front()
                    .map_or(0, |message| message.bytes.len() as u64)
            }
        })
    }

    /// The last description of a socket is gone.
    pub(super) fn close_socket(&mut self, id: u32) {
        let Some(socket) = self.sockets.remove(&id) else {
            return;
        };
        for waiting in socket.queue.into_iter().flatten() {
            self.close_socket(waiting);
        }
        for message in socket.inbox {
            for carried in message.carried {
                self.release(carried);
            }
        }
        if let Some(peer) = socket.peer
            && let Some(other) = self.sockets.get_mut(&peer)
        {
            other.peer = None;
            if other.has_connections() {
                (other.ended, other.broken) = (true, true);
            }
            self.socket_edge(peer, true, true);
        }
    }

    fn sys_shutdown(&mut self, fd: i32, how: i32) -> Reply {
        let id = self.socket_id(fd)?;
        let socket = self.socket_mut(id)?;
        if !matches!(how, libc::SHUT_RD | libc::SHUT_WR | libc::SHUT_RDWR) {
            return Err(libc::EINVAL);
        }
        let (read, write) = (how != libc::SHUT_WR, how != libc::SHUT_RD);
        if socket.queue.is_some() {
            // Threads in `accept` are told.
            socket.error = libc::EINVAL;
            self.socket_edge(id, true, true);
            return done(0);
        }
        if !socket.connected {
            return Err(libc::ENOTCONN);
        }
        socket.shut_read |= read;
        socket.shut_write |= write;
        let (peer, is_unix) = (socket.peer, socket.domain == libc::AF_UNIX);
        if let Some(peer) = peer
            && let Some(other) = self.sockets.get_mut(&peer)
        {
            other.ended |= write;
            // TCP does not tell the other side that nobody reads any more.
            other.broken |= read && is_unix;
            self.socket_edge(peer, true, true);
        }
        self.socket_edge(id, true, true);
        done(0)
    }
}

/// Where a `msghdr` says that data is.
fn message_buffers(env: &Env, at: u64) -> Result<Vec<Buffer>, i32> {
    let (vectors, count) = (env.memory.read_u64(at + 16)?, env.memory.read_u64(at + 24)?);
    env.memory.read_vectors(vectors, count)
}
