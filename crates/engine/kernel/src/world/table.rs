//! Descriptors and the open file descriptions they lead to.

use super::device::Device;
use super::node::NodeId;
use super::output::Stream;
use super::{Reply, World, done};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of an open file description. Never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct DescriptionId(pub(super) u32);

/// Flags that `fcntl(F_SETFL)` can change.
const CHANGEABLE: i32 = libc::O_APPEND | libc::O_NONBLOCK | libc::O_DIRECT | libc::O_NOATIME;

/// What a description leads to.
#[derive(Clone, Debug)]
pub(super) enum Object {
    File(NodeId),
    Directory {
        node: NodeId,
        listing: Option<Arc<Vec<ListedName>>>,
    },
    /// Opened with `O_PATH`: good for names only.
    Path(NodeId),
    /// `/proc/self/fd`.
    OwnDescriptors,
    PipeReader(u32),
    PipeWriter(u32),
    /// A named pipe opened for both.
    PipeBoth(u32),
    Event {
        count: u64,
        semaphore: bool,
    },
    Timer,
    Epoll,
    Socket(u32),
    Device(Device),
    Input,
    Output(Stream),
    /// Something that a recording knows and the world does not: a terminal, a connection to somewhere.
    Outside,
}

/// A name of a directory, as it was when the listing began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ListedName {
    pub(super) name: Vec<u8>,
    pub(super) inode: u64,
    pub(super) entry_type: u8,
}

/// An open file description: shared by the descriptors that were duplicated from one another.
#[derive(Clone, Debug)]
pub(super) struct Description {
    pub(super) object: Object,
    /// Access mode and status flags.
    pub(super) flags: i32,
    pub(super) offset: u64,
    /// The path it was opened by, or a name for what has none.
    pub(super) path: Vec<u8>,
    /// Descriptors and messages under way that hold it.
    pub(super) holders: u32,
    /// Grows with everything that may make it readable, then writable: edges for epoll.
    pub(super) edges: (u64, u64),
}

impl Description {
    pub(super) fn new(object: Object, flags: i32, path: &[u8]) -> Self {
        Description {
            object,
            flags,
            offset: 0,
            path: path.to_vec(),
            holders: 0,
            edges: (0, 0),
        }
    }

    pub(super) fn is_readable(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_WRONLY && self.flags & libc::O_PATH == 0
    }

    pub(super) fn is_writable(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_RDONLY && self.flags & libc::O_PATH == 0
    }

    pub(super) fn waits(&self) -> bool {
        self.flags & libc::O_NONBLOCK == 0
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    description: DescriptionId,
    close_on_exec: bool,
}

/// The guest's descriptors.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    entries: BTreeMap<i32, Entry>,
    pub(super) descriptions: BTreeMap<DescriptionId, Description>,
    next: u32,
}

impl Table {
    /// The description behind a descriptor.
    pub(super) fn id(&self, fd: i32) -> Result<DescriptionId, i32> {
        self.entries
            .get(&fd)
            .map(|entry| entry.description)
            .ok_or(libc::EBADF)
    }

    pub(super) fn get(&self, fd: i32) -> Result<&Description, i32> {
        let id = self.id(fd)?;
        self.descriptions.get(&id).ok_or(libc::EBADF)
    }

    pub(super) fn get_mut(&mut self, fd: i32) -> Result<&mut Description, i32> {
        let id = self.id(fd)?;
        self.descriptions.get_mut(&id).ok_or(libc::EBADF)
    }

    /// Open descriptors, ascending.
    pub(super) fn open(&self) -> impl Iterator<Item = i32> + '_ {
        self.entries.keys().copied()
    }

    /// Descriptors that a new program does not get.
    pub(super) fn closed_by_exec(&self) -> impl Iterator<Item = i32> + '_ {
        let closed = |(_, entry): &(&i32, &Entry)| entry.close_on_exec;
        self.entries.iter().filter(closed).map(|(fd, _)| *fd)
    }

    /// A description that nothing leads to yet.
    pub(super) fn add(&mut self, description: Description) -> DescriptionId {
        let id = DescriptionId(self.next);
        self.next += 1;
        self.descriptions.insert(id, description);
        id
    }

    fn lowest_free(&self, from: i32, end: u64) -> Result<i32, i32> {
        let mut at = from;
        for (fd, _) in self.entries.range(from..) {
            if *fd != at {
                break;
            }
            at += 1;
        }
        if (at as u64) < end {
            Ok(at)
        } else {
            Err(libc::EMFILE)
        }
    }
}

impl World {
    /// Gives a description the lowest free number; it is dropped if there is none.
    pub(super) fn install(&mut self, description: Description, close_on_exec: bool) -> SysNumber {
        let id = self.table.add(description);
        let placed = self.place(id, 0, close_on_exec);
        if placed.is_err() {
            self.discard(id);
        }
        placed
    }

    /// Gives a description one more number, the lowest free one from `from` on.
    pub(super) fn place(&mut self, id: DescriptionId, from: i32, close_on_exec: bool) -> SysNumber {
        let end = self.identity.descriptors_max();
        let fd = match self.forced.pop_front() {
            Some(fd) => {
                if self.table.id(fd).is_ok() {
                    self.close(fd)?;
                }
                fd
            }
            None => self.table.lowest_free(from, end)?,
        };
        self.bind(fd, id, close_on_exec);
        Ok(fd)
    }

    fn bind(&mut self, fd: i32, description: DescriptionId, close_on_exec: bool) {
        self.hold(description);
        self.table.entries.insert(
            fd,
            Entry {
                description,
                close_on_exec,
            },
        );
    }

    /// One more holder.
    pub(super) fn hold(&mut self, id: DescriptionId) {
        if let Some(description) = self.table.descriptions.get_mut(&id) {
            description.holders += 1;
        }
    }

    /// One holder less; the last one takes the description with it.
    pub(super) fn release(&mut self, id: DescriptionId) {
        let Some(description) = self.table.descriptions.get_mut(&id) else {
            return;
        };
        description.holders = description.holders.saturating_sub(1);
        if description.holders == 0 {
            self.discard(id);
        }
    }

    fn discard(&mut self, id: DescriptionId) {
        let Some(description) = self.table.descriptions.remove(&id) else {
            return;
        };
        self.locks.forget_description(id);
        match description.object {
            Object::File(node) | Object::Directory { node, .. } | Object::Path(node) => {
                self.tree.closed(node);
            }
            Object::PipeReader(pipe) => self.close_pipe(pipe, true, false),
            Object::PipeWriter(pipe) => self.close_pipe(pipe, false, true),
            Object::PipeBoth(pipe) => self.close_pipe(pipe, true, true),
            Object::Timer => {
                self.timers.remove(&id);
            }
            Object::Epoll => {
                self.epolls.remove(&id);
            }
            Object::Socket(socket) => self.close_socket(socket),
            _ => {}
        }
        for epoll in self.epolls.values_mut() {
            epoll.forget(id);
        }
    }

    /// `close`.
    pub(super) fn close(&mut self, fd: i32) -> Result<(), i32> {
        let id = self.table.id(fd)?;
        self.table.entries.remove(&fd);
        if let Ok(description) = self.table.descriptions.get(&id).ok_or(())
            && let Object::File(node) = description.object
        {
            self.locks.forget_process(node);
        }
        self.release(id);
        Ok(())
    }

    /// `close_range`.
    pub(super) fn close_range(&mut self, a: [u64; 6]) -> Reply {
        let (first, last, flags) = (a[0] as u32, a[1] as u32, a[2] as u32);
        if first > last {
            return Err(libc::EINVAL);
        }
        let hit: Vec<i32> = self
            .table
            .open()
            .filter(|fd| (first..=last).contains(&(*fd as u32)))
            .collect();
        for fd in hit {
            if flags & libc::CLOSE_RANGE_CLOEXEC != 0 {
                self.set_close_on_exec(fd, true)?;
            } else {
                self.close(fd)?;
            }
        }
        done(0)
    }

    fn set_close_on_exec(&mut self, fd: i32, on: bool) -> Result<(), i32> {
        let entry = self.table.entries.get_mut(&fd).ok_or(libc::EBADF)?;
        entry.close_on_exec = on;
        Ok(())
    }

    /// `dup`, and `fcntl(F_DUPFD)`.
    pub(super) fn duplicate(&mut self, fd: i32, from: i32, close_on_exec: bool) -> Reply {
        let id = self.table.id(fd)?;
        if from < 0 || from as u64 >= self.identity.descriptors_max() {
            return Err(libc::EINVAL);
        }
        done(i64::from(self.place(id, from, close_on_exec)?))
    }

    /// `dup2` and `dup3`.
    pub(super) fn duplicate_to(&mut self, fd: i32, to: i32, flags: Option<i32>) -> Reply {
        let id = self.table.id(fd)?;
        if to < 0 || to as u64 >= self.identity.descriptors_max() {
            return Err(libc::EBADF);
        }
        if fd == to {
            return match flags {
                None => done(i64::from(fd)),
                Some(_) => Err(libc::EINVAL),
            };
        }
        let flags = flags.unwrap_or(0);
        if flags & !libc::O_CLOEXEC != 0 {
            return Err(libc::EINVAL);
        }
        // The new holder first: closing may drop the last one.
        self.hold(id);
        if self.table.id(to).is_ok() {
            self.close(to)?;
        }
        self.bind(to, id, flags & libc::O_CLOEXEC != 0);
        self.release(id);
        done(i64::from(to))
    }

    /// `fcntl`, locks apart.
    pub(super) fn control(&mut self, fd: i32, command: i32, argument: u64) -> Reply {
        match command {
            libc::F_DUPFD => self.duplicate(fd, argument as i32, false),
            libc::F_DUPFD_CLOEXEC => self.duplicate(fd, argument as i32, true),
            libc::F_GETFD => {
                let entry = self.table.entries.get(&fd).ok_or(libc::EBADF)?;
                done(i64::from(entry.close_on_exec))
            }
            libc::F_SETFD => {
                let on = argument as i32 & libc::FD_CLOEXEC != 0;
                self.set_close_on_exec(fd, on)?;
                done(0)
            }
            libc::F_GETFL => done(i64::from(self.table.get(fd)?.flags)),
            libc::F_SETFL => {
                let description = self.table.get_mut(fd)?;
                description.flags = description.flags & !CHANGEABLE | argument as i32 & CHANGEABLE;
                done(0)
            }
            libc::F_SETPIPE_SZ => self.set_pipe_capacity(fd, argument),
            libc::F_GETPIPE_SZ => self.pipe_capacity(fd),
            libc::F_GETOWN | libc::F_SETOWN => {
                self.table.get(fd)?;
                done(0)
            }
            // Seals of memory files: none can be set, so none ever are.
            libc::F_GET_SEALS | libc::F_ADD_SEALS => match self.table.get(fd)?.object {
                Object::File(_) => done(0),
                _ => Err(libc::EINVAL),
            },
            _ => {
                self.table.get(fd)?;
                Err(libc::EINVAL)
            }
        }
    }

    /// An edge for epoll: something may have become readable or writable.
    pub(super) fn edge(&mut self, wanted: impl Fn(&Object) -> bool, read: bool, write: bool) {
        for description in self.table.descriptions.values_mut() {
            if wanted(&description.object) {
                description.edges.0 += u64::from(read);
                description.edges.1 += u64::from(write);
            }
        }
    }
}

/// A descriptor's number, or an error.
pub(super) type SysNumber = Result<i32, i32>;
