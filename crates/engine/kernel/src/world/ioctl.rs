//! The `ioctl`s that programs use on what is not a terminal.

use super::table::Object;
use super::{Env, Reply, World, done};

impl World {
    pub(super) fn sys_ioctl(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let fd = a[0] as i32;
        let description = self.table.get_mut(fd)?;
        match a[1] {
            libc::FIONBIO => {
                let on = env.memory.read_u32(a[2])? != 0;
                if on {
                    description.flags |= libc::O_NONBLOCK;
                } else {
                    description.flags &= !libc::O_NONBLOCK;
                }
                done(0)
            }
            libc::FIOCLEX => self.control(fd, libc::F_SETFD, libc::FD_CLOEXEC as u64),
            libc::FIONCLEX => self.control(fd, libc::F_SETFD, 0),
            libc::FIONREAD => {
                let count = self.readable_bytes(fd)?;
                env.memory.write_u32(a[2], count as u32)?;
                done(0)
            }
            _ => Err(libc::ENOTTY),
        }
    }

    fn readable_bytes(&mut self, fd: i32) -> Result<u64, i32> {
        let description = self.table.get(fd)?;
        let offset = description.offset;
        match description.object {
            Object::File(node) => Ok(self.tree.content(node)?.len().saturating_sub(offset)),
            Object::PipeReader(pipe) | Object::PipeBoth(pipe) => {
                Ok(self.pipes.get(&pipe).map_or(0, |pipe| pipe.len() as u64))
            }
            Object::Socket(socket) => Ok(self.socket_bytes(socket)),
            Object::Input => Ok(self.input_left() as u64),
            _ => Err(libc::ENOTTY),
        }
    }
}
