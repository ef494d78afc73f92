//! `open` and its kin.

use super::content::Content;
use super::device::Device;
use super::guest::GuestMemory;
use super::node::{Kind, NodeId};
use super::table::{Description, Object};
use super::tree::{Found, LastLink, Place};
use super::{Env, Reply, World, done};

/// Flags that only matter while opening.
const OPENING: i32 =
    libc::O_CREAT | libc::O_EXCL | libc::O_NOCTTY | libc::O_TRUNC | libc::O_CLOEXEC;
const O_TMPFILE_BIT: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;

impl World {
    /// The directory that a relative path starts from.
    pub(super) fn start(&self, at: i32, path: &[u8]) -> Result<NodeId, i32> {
        if at == libc::AT_FDCWD || path.first() == Some(&b'/') {
            return Ok(self.tree.current);
        }
        match self.table.get(at)?.object {
            Object::Directory { node, .. } | Object::Path(node) => Ok(node),
            _ => Err(libc::ENOTDIR),
        }
    }

    /// Follows a path.
    pub(super) fn find(&mut self, at: i32, path: &[u8], last: LastLink) -> Result<Found, i32> {
        let start = self.start(at, path)?;
        self.tree.walk(start, path, last, &self.identity)
    }

    /// `open` at a path; returns the descriptor.
    pub(super) fn open(
        &mut self,
        env: &mut Env,
        at: i32,
        path: &[u8],
        flags: i32,
        mode: u32,
    ) -> Reply {
        let exclusive = flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0;
        let last = if flags & libc::O_NOFOLLOW != 0 || exclusive {
            LastLink::Keep
        } else {
            LastLink::Follow
        };
        let place = match self.find(at, path, last)? {
            Found::Own(rest) => return self.open_own(env, &rest, flags),
            Found::Place(place) => place,
        };
        if flags & O_TMPFILE_BIT != 0 {
            return self.open_unnamed(env, &place, flags, mode);
        }
        let path = self.tree.path_of_place(&place);
        match place.node {
            Some(_) if exclusive => Err(libc::EEXIST),
            Some(node) => self.open_node(env, node, flags, &path),
            None if flags & libc::O_CREAT == 0 => Err(libc::ENOENT),
            None if place.as_directory || flags & libc::O_DIRECTORY != 0 => Err(libc::EISDIR),
            None => {
                self.tree.check_changeable(place.parent, &self.identity)?;
                let node = self.new_file(env, mode);
                self.tree.name(&place, node, env.time())?;
                // The new file may be used as asked whatever its permissions.
                self.describe(env, node, flags, &path)
            }
        }
    }

    /// A regular file of the guest's own, without a name.
    pub(super) fn new_file(&mut self, env: &Env, mode: u32) -> NodeId {
        let mode = libc::S_IFREG | mode & 0o7777 & !self.tree.mask;
        let kind = Kind::File(Some(Content::default()));
        self.tree.make(kind, mode, &self.identity, env.time())
    }

    fn open_unnamed(&mut self, env: &mut Env, place: &Place, flags: i32, mode: u32) -> Reply {
        let directory = place.node.ok_or(libc::ENOENT)?;
        if self.tree.node(directory).directory().is_none() {
            return Err(libc::ENOTDIR);
        }
        self.tree.check_changeable(directory, &self.identity)?;
        let node = self.new_file(env, mode);
        self.describe(
            env,
            node,
            flags & !libc::O_TMPFILE,
            b"/tmp/#unnamed (deleted)",
        )
    }

    /// Opens what is there.
    pub(super) fn open_node(
        &mut self,
        env: &mut Env,
        node: NodeId,
        flags: i32,
        path: &[u8],
    ) -> Reply {
        let meta = &self.tree.node(node).meta;
        if flags & libc::O_PATH == 0 {
            let want = match flags & libc::O_ACCMODE {
                libc::O_RDONLY => libc::R_OK,
                libc::O_WRONLY => libc::W_OK,
                _ => libc::R_OK | libc::W_OK,
            };
            self.identity.check(meta, want)?;
        }
        self.describe(env, node, flags, path)
    }

    fn describe(&mut self, env: &mut Env, node: NodeId, flags: i32, path: &[u8]) -> Reply {
        let found = self.tree.node(node);
        let is_directory = found.directory().is_some();
        if flags & libc::O_DIRECTORY != 0 && !is_directory {
            return Err(libc::ENOTDIR);
        }
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let object = if flags & libc::O_PATH != 0 {
            Object::Path(node)
        } else {
            match &found.kind {
                Kind::Directory(_) if writes || flags & libc::O_CREAT != 0 => {
                    return Err(libc::EISDIR);
                }
                Kind::Directory(_) => Object::Directory {
                    node,
                    listing: None,
                },
                Kind::File(_) => Object::File(node),
                Kind::Link(_) => return Err(libc::ELOOP),
                Kind::Socket => return Err(libc::ENXIO),
                Kind::Device(Device::Other) => return Err(libc::ENXIO),
                Kind::Device(device) => Object::Device(*device),
                Kind::Fifo(_) => self.open_fifo(node, flags)?,
            }
        };
        let holds_node = matches!(
            object,
            Object::File(_) | Object::Directory { .. } | Object::Path(_)
        );
        let cuts = flags & libc::O_TRUNC != 0 && writes;
        if cuts && matches!(object, Object::File(_)) {
            self.truncate_node(env, node, 0)?;
        }
        if holds_node {
            self.tree.node_mut(node).opens += 1;
        }
        let description = Description::new(object, flags & !OPENING, path);
        let fd = self.install(description, flags & libc::O_CLOEXEC != 0)?;
        done(i64::from(fd))
    }

    /// A descriptor that reads the given bytes.
    pub(super) fn open_content(
        &mut self,
        env: &mut Env,
        content: Vec<u8>,
        flags: i32,
        path: &[u8],
    ) -> Reply {
        if flags & libc::O_ACCMODE != libc::O_RDONLY {
            return Err(libc::EACCES);
        }
        let node = self.new_file(env, 0o444);
        self.tree.set_content(node, Content::from_bytes(content));
        self.describe(env, node, flags & !(libc::O_CREAT | libc::O_TRUNC), path)
    }

    /// `memfd_create`.
    pub(super) fn memory_file(&mut self, env: &mut Env, name: u64, flags: u32) -> Reply {
        let name = env.memory.read_string(name)?;
        let node = self.new_file(env, 0o777);
        let close = if flags & libc::MFD_CLOEXEC != 0 {
            libc::O_CLOEXEC
        } else {
            0
        };
        let path = [b"/memfd:".as_slice(), &name, b" (deleted)"].concat();
        self.describe(env, node, libc::O_RDWR | close, &path)
    }

    /// Opens something in `/proc/self`.
    fn open_own(&mut self, env: &mut Env, rest: &[u8], flags: i32) -> Reply {
        if rest == b"fd" || rest == b"fd/" {
            let description =
                Description::new(Object::OwnDescriptors, flags & !OPENING, b"/proc/self/fd");
            let fd = self.install(description, flags & libc::O_CLOEXEC != 0)?;
            return done(i64::from(fd));
        }
        if let Some(fd) = descriptor_name(rest) {
            return self.reopen(env, fd, flags);
        }
        match rest {
            b"exe" => {
                let program = self.program.clone();
                self.open(env, libc::AT_FDCWD, &program, flags, 0)
            }
            b"cwd" | b"cwd/" => {
                let (node, path) = (self.tree.current, self.tree.path_of(self.tree.current)?);
                self.open_node(env, node, flags, &path)
            }
            b"status" => {
                let content = self.status_text();
                self.open_content(env, content, flags, b"/proc/self/status")
            }
            b"mounts" | b"mountinfo" | b"cgroup" | b"limits" | b"auxv" => {
                let real = [b"/proc/self/".as_slice(), rest].concat();
                let (base, len) = super::host::content(&real, 0)?;
                let bytes = Content::of(base, len).bytes(0, len)?;
                self.open_content(env, bytes, flags, &real)
            }
            _ => Err(libc::ENOENT),
        }
    }

    /// Opening `/proc/self/fd/N`: files anew, all else is shared.
    fn reopen(&mut self, env: &mut Env, fd: i32, flags: i32) -> Reply {
        let description = self.table.get(fd)?;
        let path = description.path.clone();
        match description.object {
            Object::File(node) | Object::Directory { node, .. } | Object::Path(node) => {
                self.open_node(env, node, flags, &path)
            }
            _ => self.duplicate(fd, 0, flags & libc::O_CLOEXEC != 0),
        }
    }

    /// What a link in `/proc/self` says.
    pub(super) fn own_link(&self, rest: &[u8]) -> Result<Vec<u8>, i32> {
        if let Some(fd) = descriptor_name(rest) {
            return Ok(self.table.get(fd).map_err(|_| libc::ENOENT)?.path.clone());
        }
        match rest {
            b"exe" => Ok(self.program.clone()),
            b"cwd" => self.tree.path_of(self.tree.current),
            b"root" => Ok(b"/".to_vec()),
            b"" => Ok(self.pid.to_string().into_bytes()),
            _ => Err(libc::EINVAL),
        }
    }

    fn status_text(&self) -> Vec<u8> {
        let name = self
            .program
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or_default();
        let (user, group) = (
            self.identity.effective_user(),
            self.identity.effective_group(),
        );
        let pid = self.pid;
        format!(
            "Name:\t{}\nUmask:\t{:04o}\nState:\tR (running)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{}\nTracerPid:\t0\n\
             Uid:\t{user}\t{user}\t{user}\t{user}\nGid:\t{group}\t{group}\t{group}\t{group}\nThreads:\t1\n",
            String::from_utf8_lossy(name),
            self.tree.mask,
            crate::PARENT_PID,
        )
        .into_bytes()
    }
}

/// The number in `fd/N`.
fn descriptor_name(rest: &[u8]) -> Option<i32> {
    let number = rest.strip_prefix(b"fd/")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Arguments of the `open` family, made alike: directory, path, flags, mode.
pub(super) fn arguments(
    number: i64,
    a: [u64; 6],
    memory: &dyn GuestMemory,
) -> Result<(i32, u64, i32, u32), i32> {
    const CREATE: i32 = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    Ok(match number {
        libc::SYS_open => (libc::AT_FDCWD, a[0], a[1] as i32, a[2] as u32),
        libc::SYS_creat => (libc::AT_FDCWD, a[0], CREATE, a[1] as u32),
        libc::SYS_openat2 => {
            let (flags, mode) = (memory.read_u64(a[2])?, memory.read_u64(a[2] + 8)?);
            if memory.read_u64(a[2] + 16)? != 0 {
                return Err(libc::ENOSYS);
            }
            (a[0] as i32, a[1], flags as i32, mode as u32)
        }
        _ => (a[0] as i32, a[1], a[2] as i32, a[3] as u32),
    })
}
