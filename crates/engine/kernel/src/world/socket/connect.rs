//! Making connections.

use super::address::{Address, write_address};
use super::{Socket, World};
use crate::thread::Call;
use crate::world::node::Kind;
use crate::world::tree::{Found, LastLink};
use crate::world::{Effect, Env, Reply, done, wait_for};
use std::collections::VecDeque;

const FIRST_FREE_PORT: u16 = 32768;

impl World {
    pub(super) fn sys_socketpair(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let kind = a[1] as i32 & !super::TYPE_FLAGS;
        if a[0] as i32 != libc::AF_UNIX {
            return Err(libc::EOPNOTSUPP);
        }
        if !matches!(
            kind,
            libc::SOCK_STREAM | libc::SOCK_DGRAM | libc::SOCK_SEQPACKET
        ) {
            return Err(libc::EPROTONOSUPPORT);
        }
        let one = self.add_socket(Socket::new(libc::AF_UNIX, kind, 0));
        let other = self.add_socket(Socket::new(libc::AF_UNIX, kind, 0));
        self.join(one, other)?;
        let first = self.install_socket(one, a[1] as i32);
        let Ok(first) = first else {
            self.close_socket(other);
            return Err(libc::EMFILE);
        };
        let Ok(second) = self.install_socket(other, a[1] as i32) else {
            self.close(first)?;
            return Err(libc::EMFILE);
        };
        env.memory.write_u32(a[3], first as u32)?;
        env.memory.write_u32(a[3] + 4, second as u32)?;
        done(0)
    }

    /// Makes two sockets the ends of one connection.
    fn join(&mut self, one: u32, other: u32) -> Result<(), i32> {
        for (id, peer) in [(one, other), (other, one)] {
            let remote = self.socket(peer)?.local.clone();
            let socket = self.socket_mut(id)?;
            socket.peer = Some(peer);
            socket.connected = true;
            socket.remote = Some(remote);
        }
        Ok(())
    }

    fn free_port(&mut self) -> u16 {
        loop {
            let port = self.next_port.max(FIRST_FREE_PORT);
            self.next_port = port.checked_add(1).unwrap_or(FIRST_FREE_PORT);
            let is_used = |socket: &Socket| socket.local.port() == port;
            if !self.sockets.values().any(is_used) {
                return port;
            }
        }
    }

    pub(super) fn sys_bind(&mut self, env: &mut Env, fd: i32, at: u64, len: u64) -> Reply {
        let id = self.socket_id(fd)?;
        let mut address = Address::read(env.memory, at, len)?;
        if address.family() != self.socket(id)?.domain {
            return Err(libc::EINVAL);
        }
        if self.socket(id)?.node.is_some() || self.socket(id)?.local.port() != 0 {
            return Err(libc::EINVAL);
        }
        match &address {
            Address::Path(path) => {
                let path = path.clone();
                self.bind_path(env, id, &path)?;
            }
            Address::Abstract(_) => {
                if self.sockets.values().any(|socket| socket.local == address) {
                    return Err(libc::EADDRINUSE);
                }
            }
            Address::Unnamed => {
                address = Address::Abstract(format!("{id:05x}").into_bytes());
            }
            _ if address.port() == 0 => {
                let port = self.free_port();
                address = address.with_port(port);
            }
            _ => self.check_port(id, &address)?,
        }
        self.socket_mut(id)?.local = address;
        done(0)
    }

    fn bind_path(&mut self, env: &Env, id: u32, path: &[u8]) -> Result<(), i32> {
        let Found::Place(place) = self.find(libc::AT_FDCWD, path, LastLink::Keep)? else {
            return Err(libc::EPERM);
        };
        if place.node.is_some() {
            return Err(libc::EADDRINUSE);
        }
        self.tree.check_changeable(place.parent, &self.identity)?;
        let mode = libc::S_IFSOCK | 0o777 & !self.tree.mask;
        let node = self
            .tree
            .make(Kind::Socket, mode, &self.identity, env.time());
        self.tree.name(&place, node, env.time())?;
        self.socket_mut(id)?.node = Some(node);
        Ok(())
    }

    /// A port belongs to one socket, unless all of them agreed to share.
    fn check_port(&self, id: u32, address: &Address) -> Result<(), i32> {
        let own = self.socket(id)?;
        let reuses = |socket: &Socket| {
            let set = |name| {
                socket
                    .options
                    .get(&(libc::SOL_SOCKET, name))
                    .is_some_and(|value| value.iter().any(|byte| *byte != 0))
            };
            (set(libc::SO_REUSEADDR) && socket.queue.is_none()) || set(libc::SO_REUSEPORT)
        };
        let taken = self.sockets.iter().any(|(other_id, other)| {
            *other_id != id
                && other.kind == own.kind
                && other.local.port() == address.port()
                && (other.local.is_unspecified()
                    || address.is_unspecified()
                    || other.local.plain() == address.plain())
                && !other.connected
                && !(reuses(other) && reuses(own))
        });
        if taken { Err(libc::EADDRINUSE) } else { Ok(()) }
    }

    /// A recording told the address that the host gave a socket.
    pub(in crate::world) fn observe_name(
        &mut self,
        env: &Env,
        fd: i32,
        at: u64,
        len_at: u64,
    ) -> Result<(), i32> {
        let id = self.socket_id(fd)?;
        let len = u64::from(env.memory.read_u32(len_at)?);
        let address = Address::read(env.memory, at, len)?;
        self.socket_mut(id)?.local = address;
        Ok(())
    }

    pub(super) fn sys_listen(&mut self, fd: i32) -> Reply {
        let id = self.socket_id(fd)?;
        let socket = self.socket(id)?;
        if !socket.has_connections() {
            return Err(libc::EOPNOTSUPP);
        }
        if socket.connected {
            return Err(libc::EINVAL);
        }
        if socket.domain != libc::AF_UNIX && socket.local.port() == 0 {
            let port = self.free_port();
            let socket = self.socket_mut(id)?;
            socket.local = socket.local.with_port(port);
        }
        self.socket_mut(id)?.queue.get_or_insert_with(VecDeque::new);
        done(0)
    }

    /// The socket that an address leads to.
    pub(super) fn reach(&mut self, from: u32, address: &Address) -> Result<u32, i32> {
        let own = self.socket(from)?;
        let (kind, domain) = (own.kind, own.domain);
        match address {
            Address::Path(path) => {
                let found = match self.find(libc::AT_FDCWD, path, LastLink::Follow)? {
                    Found::Place(place) => place.node.ok_or(libc::ENOENT)?,
                    Found::Own(_) => return Err(libc::ENOENT),
                };
                let reached = self
                    .sockets
                    .iter()
                    .find(|(_, socket)| socket.node == Some(found) && !socket.connected);
                match reached {
                    Some((_, socket)) if socket.kind != kind => Err(libc::EPROTOTYPE),
                    Some((id, _)) => Ok(*id),
                    None => {
                        self.remember(Effect::Connect {
                            to: String::from_utf8_lossy(path).into_owned(),
                        });
                        Err(libc::ECONNREFUSED)
                    }
                }
            }
            Address::Abstract(_) => self
                .sockets
                .iter()
                .find(|(_, socket)| socket.local == *address && socket.kind == kind)
                .map(|(id, _)| *id)
                .ok_or(libc::ECONNREFUSED),
            Address::Unnamed => Err(libc::EINVAL),
            _ => self.reach_port(kind, domain, address),
        }
    }

    fn reach_port(&mut self, kind: i32, domain: i32, address: &Address) -> Result<u32, i32> {
        if address.family() != domain {
            return Err(libc::EAFNOSUPPORT);
        }
        let here = address.is_loopback() || address.is_unspecified();
        let reached = self.sockets.iter().find(|(_, socket)| {
            let open = if kind == libc::SOCK_STREAM {
                socket.queue.is_some()
            } else {
                socket.remote.is_none()
            };
            let same_host = socket.local.plain().with_port(0) == address.plain().with_port(0)
                || here && (socket.local.is_unspecified() || address.is_unspecified());
            let same_family = socket.domain == domain
                || socket.domain == libc::AF_INET6 && address.plain().family() == libc::AF_INET;
            let sees_v4 = socket.local.is_unspecified() || socket.domain == domain;
            socket.kind == kind
                && socket.domain != libc::AF_UNIX
                && open
                && socket.local.port() == address.port()
                && same_host
                && same_family
                && sees_v4
        });
        match reached {
            Some((id, _)) => Ok(*id),
            None if here => Err(libc::ECONNREFUSED),
            None => {
                self.remember(Effect::Connect {
                    to: format!("{address:?}"),
                });
                Err(libc::ENETUNREACH)
            }
        }
    }

    /// Gives an unbound socket a local address, as sending does.
    pub(super) fn give_address(&mut self, id: u32) -> Result<(), i32> {
        let socket = self.socket(id)?;
        if socket.domain != libc::AF_UNIX && socket.local.port() == 0 {
            let domain = socket.domain;
            let port = self.free_port();
            self.socket_mut(id)?.local = Address::loopback(domain, port);
        }
        Ok(())
    }

    pub(super) fn sys_connect(&mut self, env: &mut Env, fd: i32, at: u64, len: u64) -> Reply {
        let id = self.socket_id(fd)?;
        // AF_UNSPEC dissolves the association of a datagram socket.
        if len >= 2 && env.memory.read_bytes(at, 2)? == [0, 0] {
            let socket = self.socket_mut(id)?;
            (socket.remote, socket.peer) = (None, None);
            return done(0);
        }
        let address = Address::read(env.memory, at, len)?;
        let socket = self.socket(id)?;
        if socket.queue.is_some() {
            return Err(libc::EINVAL);
        }
        if !socket.has_connections() {
            return self.connect_datagrams(id, &address);
        }
        if socket.connected {
            return Err(libc::EISCONN);
        }
        let listener = self.reach(id, &address)?;
        let server = self.socket(listener)?;
        if server.queue.is_none() {
            return Err(libc::ECONNREFUSED);
        }
        let mut accepted = Socket::new(server.domain, server.kind, server.protocol);
        accepted.local = if server.local.is_unspecified() {
            Address::loopback(server.domain, server.local.port())
        } else {
            server.local.clone()
        };
        accepted.options = server.options.clone();
        self.give_address(id)?;
        let accepted = self.add_socket(accepted);
        self.join(id, accepted)?;
        if let Some(queue) = &mut self.socket_mut(listener)?.queue {
            queue.push_back(accepted);
        }
        self.socket_edge(listener, true, false);
        self.socket_edge(id, false, true);
        done(0)
    }

    fn connect_datagrams(&mut self, id: u32, address: &Address) -> Reply {
        match self.reach(id, address) {
            Ok(_) => {}
            // Over UDP nobody notices before something is sent.
            Err(libc::ECONNREFUSED) if self.socket(id)?.domain != libc::AF_UNIX => {}
            Err(error) => return Err(error),
        }
        self.give_address(id)?;
        self.socket_mut(id)?.remote = Some(address.clone());
        done(0)
    }

    pub(super) fn sys_accept(&mut self, env: &mut Env, call: &Call, flags: i32) -> Reply {
        let fd = call.args[0] as i32;
        let id = self.socket_id(fd)?;
        if flags & !super::TYPE_FLAGS != 0 {
            return Err(libc::EINVAL);
        }
        let waits = self.table.get(fd)?.waits();
        let socket = self.socket_mut(id)?;
        let queue = socket.queue.as_mut().ok_or(libc::EINVAL)?;
        let Some(accepted) = queue.pop_front() else {
            if let Some(accepted) = self.accept_outside(self.table.id(fd)?, flags) {
                let (new, address) = accepted?;
                write_address(&address, env.memory, call.args[1], call.args[2])?;
                return done(i64::from(new));
            }
            let socket = self.socket(id)?;
            if socket.error != 0 {
                return Err(socket.error);
            }
            return match (waits, socket.receive_timeout) {
                (false, _) => Err(libc::EAGAIN),
                (true, Some(_)) if call.timed_out => Err(libc::EAGAIN),
                (true, timeout) => self.wait_on_socket(env, call, fd, libc::POLLIN, timeout),
            };
        };
        let remote = self.socket(accepted)?.remote.clone();
        let new = self.install_socket(accepted, flags)?;
        if let Some(remote) = remote {
            remote.write(env.memory, call.args[1], call.args[2])?;
        }
        done(i64::from(new))
    }

    /// Waits for a socket, as long as its option says.
    pub(super) fn wait_on_socket(
        &self,
        env: &Env,
        call: &Call,
        fd: i32,
        events: i16,
        timeout: Option<u64>,
    ) -> Reply {
        use crate::world::Answer;
        let mut answer = wait_for(fd, events)?;
        if let Answer::Block(wait) = &mut answer {
            wait.deadline = Self::deadline(env, call, timeout);
            wait.progress = call.progress;
        }
        Ok(answer)
    }
}
