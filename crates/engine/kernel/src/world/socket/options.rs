//! Options of sockets. Most change nothing here and are only remembered.

use super::{CAPACITY, World};
use crate::time::SECOND_NS;
use crate::world::{Env, Reply, done};

const VALUE_MAX: u64 = 256;

impl World {
    pub(super) fn set_option(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let id = self.socket_id(a[0] as i32)?;
        let (level, name) = (a[1] as i32, a[2] as i32);
        let value = env.memory.read_bytes(a[3], a[4].min(VALUE_MAX))?;
        let socket = self.socket_mut(id)?;
        if level == libc::SOL_SOCKET {
            match name {
                libc::SO_RCVTIMEO => socket.receive_timeout = timeout(&value)?,
                libc::SO_SNDTIMEO => socket.send_timeout = timeout(&value)?,
                _ => {}
            }
        }
        socket.options.insert((level, name), value);
        done(0)
    }

    pub(super) fn get_option(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let id = self.socket_id(a[0] as i32)?;
        let (level, name) = (a[1] as i32, a[2] as i32);
        let (pid, user, group) = (
            self.pid as u32,
            self.identity.effective_user(),
            self.identity.effective_group(),
        );
        let socket = self.socket_mut(id)?;
        let number = |value: i32| value.to_le_bytes().to_vec();
        let value = match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => number(std::mem::take(&mut socket.error)),
            (libc::SOL_SOCKET, libc::SO_TYPE) => number(socket.kind),
            (libc::SOL_SOCKET, libc::SO_DOMAIN) => number(socket.domain),
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) => number(match (socket.domain, socket.kind) {
                (libc::AF_UNIX, _) => 0,
                (_, libc::SOCK_STREAM) => libc::IPPROTO_TCP,
                _ => libc::IPPROTO_UDP,
            }),
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => number(i32::from(socket.queue.is_some())),
            (libc::SOL_SOCKET, libc::SO_SNDBUF | libc::SO_RCVBUF) => number(CAPACITY as i32),
            (libc::SOL_SOCKET, libc::SO_PEERCRED) => [pid, user, group]
                .into_iter()
                .flat_map(u32::to_le_bytes)
                .collect(),
            _ => match socket.options.get(&(level, name)) {
                Some(value) => value.clone(),
                None => number(0),
            },
        };
        let room = env.memory.read_u32(a[4])? as usize;
        let cut = &value[..value.len().min(room)];
        env.memory.write(a[3], cut)?;
        env.memory.write_u32(a[4], cut.len() as u32)?;
        done(0)
    }
}

/// A `timeval`; zero means for ever.
fn timeout(value: &[u8]) -> Result<Option<u64>, i32> {
    let seconds = value.first_chunk::<8>().ok_or(libc::EINVAL)?;
    let micros = value
        .get(8..)
        .and_then(|rest| rest.first_chunk::<8>())
        .ok_or(libc::EINVAL)?;
    let ns = u64::from_le_bytes(*seconds)
        .saturating_mul(SECOND_NS)
        .saturating_add(u64::from_le_bytes(*micros).saturating_mul(1000));
    Ok((ns != 0).then_some(ns))
}
