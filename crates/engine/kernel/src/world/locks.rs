//! Locks on files: `flock` and `fcntl`. There is one process, so its own `fcntl` locks never stand in its way; those of
//! open file descriptions, and `flock`, do.

use super::node::NodeId;
use super::table::{DescriptionId, Object};
use super::{Env, Reply, World, done};

/// Who holds a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Process,
    Description(DescriptionId),
}

#[derive(Clone, Debug)]
struct Lock {
    node: NodeId,
    owner: Owner,
    start: u64,
    end: u64,
    exclusive: bool,
    /// `flock` and `fcntl` do not see each other.
    whole_file: bool,
}

/// All locks.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    held: Vec<Lock>,
}

impl Locks {
    pub(super) fn forget_description(&mut self, id: DescriptionId) {
        self.held
            .retain(|lock| lock.owner != Owner::Description(id));
    }

    /// Closing any descriptor of a file drops the process's locks on it, as POSIX has it.
    pub(super) fn forget_process(&mut self, node: NodeId) {
        self.held
            .retain(|lock| lock.owner != Owner::Process || lock.node != node);
    }

    fn conflict(&self, wanted: &Lock) -> Option<&Lock> {
        self.held.iter().find(|lock| {
            lock.node == wanted.node
                && lock.whole_file == wanted.whole_file
                && lock.owner != wanted.owner
                && (lock.exclusive || wanted.exclusive)
                && lock.start < wanted.end
                && wanted.start < lock.end
        })
    }

    /// Takes the range away from what the owner holds.
    fn clear(&mut self, wanted: &Lock) {
        let mut kept = Vec::with_capacity(self.held.len() + 1);
        for lock in self.held.drain(..) {
            let same = lock.node == wanted.node
                && lock.owner == wanted.owner
                && lock.whole_file == wanted.whole_file
                && lock.start < wanted.end
                && wanted.start < lock.end;
            if !same {
                kept.push(lock);
                continue;
            }
            let (start, end) = (lock.start, lock.end);
            for (from, to) in [(start, wanted.start), (wanted.end, end)] {
                if from < to {
                    kept.push(Lock {
                        start: from,
                        end: to,
                        ..lock.clone()
                    });
                }
            }
        }
        self.held = kept;
    }

    fn set(&mut self, wanted: Lock) {
        self.clear(&wanted);
        self.held.push(wanted);
    }
}

/// What came of asking for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Locked {
    Yes,
    /// Somebody else holds it; the caller may wait.
    InTheWay,
}

impl World {
    fn file_behind(&self, fd: i32) -> Result<NodeId, i32> {
        match self.table.get(fd)?.object {
            Object::File(node) | Object::Directory { node, .. } => Ok(node),
            _ => Err(libc::EBADF),
        }
    }

    pub(super) fn flock(&mut self, fd: i32, operation: i32) -> Result<Locked, i32> {
        let wanted = Lock {
            node: match self.file_behind(fd) {
                Ok(node) => node,
                // Locks on pipes and the like are of no consequence.
                Err(_) => return self.table.get(fd).map(|_| Locked::Yes),
            },
            owner: Owner::Description(self.table.id(fd)?),
            start: 0,
            end: u64::MAX,
            exclusive: operation & libc::LOCK_EX != 0,
            whole_file: true,
        };
        if operation & libc::LOCK_UN != 0 {
            self.locks.clear(&wanted);
            return Ok(Locked::Yes);
        }
        if self.locks.conflict(&wanted).is_some() {
            return Ok(Locked::InTheWay);
        }
        self.locks.set(wanted);
        Ok(Locked::Yes)
    }

    /// `fcntl` with one of the commands about locks.
    pub(super) fn record_lock(
        &mut self,
        env: &mut Env,
        fd: i32,
        command: i32,
        at: u64,
    ) -> Result<Locked, i32> {
        let node = self.file_behind(fd)?;
        let kind = env.memory.read_u32(at)? as i16;
        let whence = (env.memory.read_u32(at)? >> 16) as i16;
        let (start, len) = (
            env.memory.read_u64(at + 8)? as i64,
            env.memory.read_u64(at + 16)? as i64,
        );
        let base = match i32::from(whence) {
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => self.table.get(fd)?.offset as i64,
            libc::SEEK_END => self.tree.content(node)?.len() as i64,
            _ => return Err(libc::EINVAL),
        };
        let mut start = base.checked_add(start).ok_or(libc::EOVERFLOW)?;
        let mut end = match len {
            0 => i64::MAX,
            len => start.checked_add(len).ok_or(libc::EOVERFLOW)?,
        };
        if end < start {
            std::mem::swap(&mut start, &mut end);
        }
        if start < 0 {
            return Err(libc::EINVAL);
        }
        let of_description = matches!(
            command,
            libc::F_OFD_GETLK | libc::F_OFD_SETLK | libc::F_OFD_SETLKW
        );
        let wanted = Lock {
            node,
            owner: if of_description {
                Owner::Description(self.table.id(fd)?)
            } else {
                Owner::Process
            },
            start: start as u64,
            end: end as u64,
            exclusive: i32::from(kind) == libc::F_WRLCK,
            whole_file: false,
        };
        if matches!(command, libc::F_GETLK | libc::F_OFD_GETLK) {
            return self.tell_conflict(env, at, &wanted);
        }
        if i32::from(kind) == libc::F_UNLCK {
            self.locks.clear(&wanted);
        } else if self.locks.conflict(&wanted).is_some() {
            return Ok(Locked::InTheWay);
        } else {
            self.locks.set(wanted);
        }
        Ok(Locked::Yes)
    }

    fn tell_conflict(&mut self, env: &mut Env, at: u64, wanted: &Lock) -> Result<Locked, i32> {
        match self.locks.conflict(wanted) {
            None => {
                let whence = env.memory.read_u32(at)? & 0xffff_0000;
                env.memory.write_u32(at, whence | libc::F_UNLCK as u32)?;
            }
            Some(lock) => {
                let kind = if lock.exclusive {
                    libc::F_WRLCK
                } else {
                    libc::F_RDLCK
                };
                let len = match lock.end {
                    end if end >= i64::MAX as u64 => 0,
                    end => end - lock.start,
                };
                let pid = match lock.owner {
                    Owner::Process => self.pid as u32,
                    Owner::Description(_) => u32::MAX,
                };
                let start = lock.start;
                env.memory.write_u32(at, kind as u32)?;
                env.memory.write_u64(at + 8, start)?;
                env.memory.write_u64(at + 16, len)?;
                env.memory.write_u32(at + 24, pid)?;
            }
        }
        Ok(Locked::Yes)
    }
}

/// The reply to a lock that was asked for.
pub(super) fn reply(locked: Locked) -> Reply {
    match locked {
        Locked::Yes => done(0),
        Locked::InTheWay => Err(libc::EAGAIN),
    }
}
