//! What files are: `stat`, permissions, owners, times.

use super::host;
use super::node::{Meta, NodeId, Time};
use super::table::Object;
use super::tree::{Found, LastLink};
use super::{Env, Reply, World, done};

const UTIME_NOW: u64 = 0x3fff_ffff;
const UTIME_OMIT: u64 = 0x3fff_fffe;
/// `statfs` of what has no real directory: a file system in memory.
const TMPFS_MAGIC: i64 = 0x0102_1994;

impl World {
    /// The node that a descriptor leads to.
    fn node_behind(&self, fd: i32) -> Result<Option<NodeId>, i32> {
        Ok(match self.table.get(fd)?.object {
            Object::File(node) | Object::Directory { node, .. } | Object::Path(node) => Some(node),
            _ => None,
        })
    }

    /// The node that a path in `/proc/self` leads to.
    pub(super) fn own_node(&mut self, rest: &[u8]) -> Result<NodeId, i32> {
        if let Some(fd) = rest
            .strip_prefix(b"fd/")
            .and_then(|fd| std::str::from_utf8(fd).ok()?.parse().ok())
        {
            return self.node_behind(fd)?.ok_or(libc::ENOENT);
        }
        let path = match rest {
            b"cwd" => return Ok(self.tree.current),
            b"exe" => self.program.clone(),
            b"root" => b"/".to_vec(),
            _ => return Err(libc::ENOENT),
        };
        match self.find(libc::AT_FDCWD, &path, LastLink::Follow)? {
            Found::Place(place) => place.node.ok_or(libc::ENOENT),
            Found::Own(_) => Err(libc::ENOENT),
        }
    }

    /// The attributes behind a path or, for an empty one, a descriptor.
    fn attributes(&mut self, env: &mut Env, at: i32, path: &[u8], flags: i32) -> Result<Meta, i32> {
        if path.is_empty() {
            if flags & libc::AT_EMPTY_PATH == 0 {
                return Err(libc::ENOENT);
            }
            if at == libc::AT_FDCWD {
                return Ok(self.meta(self.tree.current));
            }
            return self.attributes_behind(env, at);
        }
        let last = if flags & libc::AT_SYMLINK_NOFOLLOW != 0 {
            LastLink::Keep
        } else {
            LastLink::Follow
        };
        match self.find(at, path, last)? {
            Found::Place(place) => Ok(self.meta(place.node.ok_or(libc::ENOENT)?)),
            Found::Own(rest) => self.own_attributes(env, &rest, last),
        }
    }

    fn own_attributes(&mut self, env: &mut Env, rest: &[u8], last: LastLink) -> Result<Meta, i32> {
        let (uid, gid) = (
            self.identity.effective_user(),
            self.identity.effective_group(),
        );
        let made_up = |mode: u32| Meta {
            mode,
            inode: 2,
            links: 1,
            block_size: 1024,
            uid,
            gid,
            ..Meta::default()
        };
        if rest.is_empty() || rest == b"fd" || rest == b"task" {
            return Ok(made_up(libc::S_IFDIR | 0o555));
        }
        if last == LastLink::Keep && self.own_link(rest).is_ok() {
            return Ok(made_up(libc::S_IFLNK | 0o777));
        }
        if let Some(fd) = rest
            .strip_prefix(b"fd/")
            .and_then(|fd| std::str::from_utf8(fd).ok()?.parse().ok())
        {
            return self.attributes_behind(env, fd).map_err(|_| libc::ENOENT);
        }
        match self.own_node(rest) {
            Ok(node) => Ok(self.meta(node)),
            Err(_) if host::look_at(&[b"/proc/self/".as_slice(), rest].concat()).is_some() => {
                Ok(made_up(libc::S_IFREG | 0o444))
            }
            Err(error) => Err(error),
        }
    }

    fn meta(&self, node: NodeId) -> Meta {
        let node = self.tree.node(node);
        Meta {
            size: node.size(),
            ..node.meta.clone()
        }
    }

    /// The attributes of whatever a descriptor leads to.
    fn attributes_behind(&mut self, env: &mut Env, fd: i32) -> Result<Meta, i32> {
        if let Some(node) = self.node_behind(fd)? {
            return Ok(self.meta(node));
        }
        let id = self.table.id(fd)?;
        let (mode, special) = match &self.table.get(fd)?.object {
            Object::PipeReader(_) | Object::PipeWriter(_) | Object::PipeBoth(_) => {
                (libc::S_IFIFO | 0o600, 0)
            }
            Object::Input | Object::Output(_) => (libc::S_IFIFO | 0o600, 0),
            Object::Socket(_) => (libc::S_IFSOCK | 0o777, 0),
            Object::Device(_) => (libc::S_IFCHR | 0o666, 0x103),
            Object::OwnDescriptors => (libc::S_IFDIR | 0o500, 0),
            _ => (0o600, 0),
        };
        let started = Time::from_ns(env.realtime - env.realtime % crate::SECOND_NS);
        Ok(Meta {
            device: 13,
            inode: u64::from(id.0) + 1,
            mode,
            uid: self.identity.effective_user(),
            gid: self.identity.effective_group(),
            special,
            block_size: 4096,
            accessed: started,
            modified: started,
            changed: started,
            links: 1,
            ..Meta::default()
        })
    }

    /// `stat`, `lstat`, `fstat`, `newfstatat`.
    pub(super) fn sys_stat(&mut self, env: &mut Env, number: i64, a: [u64; 6]) -> Reply {
        let (at, path, to, flags) = match number {
            libc::SYS_stat => (libc::AT_FDCWD, Some(a[0]), a[1], 0),
            libc::SYS_lstat => (libc::AT_FDCWD, Some(a[0]), a[1], libc::AT_SYMLINK_NOFOLLOW),
            libc::SYS_fstat => (a[0] as i32, None, a[1], 0),
            _ => (a[0] as i32, Some(a[1]), a[2], a[3] as i32),
        };
        let meta = match path {
            None => self.attributes_behind(env, at)?,
            // Linux takes no path for an empty one here.
            Some(0) if flags & libc::AT_EMPTY_PATH != 0 => self.attributes_behind(env, at)?,
            Some(path) => {
                let path = env.memory.read_string(path)?;
                self.attributes(env, at, &path, flags)?
            }
        };
        env.memory.write(to, &stat_bytes(&meta))?;
        done(0)
    }

    pub(super) fn sys_statx(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let path = match a[1] {
            0 => Vec::new(),
            path => env.memory.read_string(path)?,
        };
        let meta = self.attributes(env, a[0] as i32, &path, a[2] as i32)?;
        env.memory.write(a[4], &statx_bytes(&meta))?;
        done(0)
    }

    /// `access` and its kin.
    pub(super) fn sys_access(
        &mut self,
        env: &mut Env,
        at: i32,
        path: u64,
        want: i32,
        flags: i32,
    ) -> Reply {
        let path = env.memory.read_string(path)?;
        let meta = self.attributes(env, at, &path, flags)?;
        self.identity.check(&meta, want)?;
        done(0)
    }

    /// The node of a path or descriptor whose attributes are to be changed.
    fn changed_node(
        &mut self,
        env: &Env,
        at: i32,
        path: Option<u64>,
        flags: i32,
    ) -> Result<NodeId, i32> {
        let path = match path {
            Some(path) => env.memory.read_string(path)?,
            None => Vec::new(),
        };
        if path.is_empty() {
            return self.node_behind(at)?.ok_or(libc::EINVAL);
        }
        let last = if flags & libc::AT_SYMLINK_NOFOLLOW != 0 {
            LastLink::Keep
        } else {
            LastLink::Follow
        };
        match self.find(at, &path, last)? {
            Found::Place(place) => place.node.ok_or(libc::ENOENT),
            Found::Own(rest) => self.own_node(&rest),
        }
    }

    pub(super) fn change_mode(
        &mut self,
        env: &mut Env,
        at: i32,
        path: Option<u64>,
        mode: u32,
    ) -> Reply {
        let node = self.changed_node(env, at, path, 0)?;
        let time = env.time();
        let meta = &mut self.tree.node_mut(node).meta;
        if !self.identity.owns(meta) {
            return Err(libc::EPERM);
        }
        meta.mode = meta.mode & libc::S_IFMT | mode & 0o7777;
        meta.changed = time;
        done(0)
    }

    pub(super) fn change_owner(
        &mut self,
        env: &mut Env,
        at: i32,
        path: Option<u64>,
        owner: (u32, u32),
        flags: i32,
    ) -> Reply {
        let node = self.changed_node(env, at, path, flags)?;
        let time = env.time();
        let superuser = self.identity.is_superuser();
        let meta = &mut self.tree.node_mut(node).meta;
        let new = (
            if owner.0 == u32::MAX {
                meta.uid
            } else {
                owner.0
            },
            if owner.1 == u32::MAX {
                meta.gid
            } else {
                owner.1
            },
        );
        if new != (meta.uid, meta.gid) && !superuser {
            return Err(libc::EPERM);
        }
        (meta.uid, meta.gid) = new;
        meta.changed = time;
        done(0)
    }

    /// `utimensat` and its kin; `times` are accessed and modified, `None` for "leave it".
    pub(super) fn change_times(
        &mut self,
        env: &mut Env,
        at: i32,
        path: Option<u64>,
        times: [Option<Time>; 2],
        flags: i32,
    ) -> Reply {
        let node = self.changed_node(env, at, path, flags)?;
        let time = env.time();
        let writable = self
            .identity
            .check(&self.tree.node(node).meta, libc::W_OK)
            .is_ok();
        let meta = &mut self.tree.node_mut(node).meta;
        if !self.identity.owns(meta) && !writable {
            return Err(libc::EACCES);
        }
        meta.accessed = times[0].unwrap_or(meta.accessed);
        meta.modified = times[1].unwrap_or(meta.modified);
        meta.changed = time;
        done(0)
    }

    /// The calls that set times, each with its own format.
    pub(super) fn sys_utimes(&mut self, env: &mut Env, number: i64, a: [u64; 6]) -> Reply {
        let now = Some(env.time());
        let seconds_and = |env: &Env, at: u64, scale: u64| -> Result<Option<Time>, i32> {
            Ok(Some(Time {
                seconds: env.memory.read_u64(at)? as i64,
                nanos: (env.memory.read_u64(at + 8)? * scale) as u32,
            }))
        };
        let (at, path, times, flags) = match number {
            libc::SYS_utimensat => {
                let path = (a[1] != 0).then_some(a[1]);
                let mut times = [now; 2];
                if a[2] != 0 {
                    for (index, time) in times.iter_mut().enumerate() {
                        let from = a[2] + 16 * index as u64;
                        *time = match env.memory.read_u64(from + 8)? {
                            UTIME_NOW => now,
                            UTIME_OMIT => None,
                            nanos if nanos >= crate::SECOND_NS => return Err(libc::EINVAL),
                            _ => seconds_and(env, from, 1)?,
                        };
                    }
                }
                (a[0] as i32, path, times, a[3] as i32)
            }
            libc::SYS_utime => {
                let mut times = [now; 2];
                if a[1] != 0 {
                    for (index, time) in times.iter_mut().enumerate() {
                        let seconds = env.memory.read_u64(a[1] + 8 * index as u64)? as i64;
                        *time = Some(Time { seconds, nanos: 0 });
                    }
                }
                (libc::AT_FDCWD, Some(a[0]), times, 0)
            }
            _ => {
                let (at, path, from) = if number == libc::SYS_utimes {
                    (libc::AT_FDCWD, a[0], a[1])
                } else {
                    (a[0] as i32, a[1], a[2])
                };
                let mut times = [now; 2];
                if from != 0 {
                    for (index, time) in times.iter_mut().enumerate() {
                        *time = seconds_and(env, from + 16 * index as u64, 1000)?;
                    }
                }
                (at, Some(path), times, 0)
            }
        };
        self.change_times(env, at, path, times, flags)
    }

    /// `statfs` and `fstatfs`.
    pub(super) fn sys_statfs(&mut self, env: &mut Env, number: i64, a: [u64; 6]) -> Reply {
        let node = if number == libc::SYS_fstatfs {
            self.node_behind(a[0] as i32)?
        } else {
            let path = env.memory.read_string(a[0])?;
            match self.find(libc::AT_FDCWD, &path, LastLink::Follow)? {
                Found::Place(place) => Some(place.node.ok_or(libc::ENOENT)?),
                Found::Own(_) => None,
            }
        };
        let real = node.and_then(|node| self.tree.node(node).real.clone());
        let info = real.and_then(|real| host::file_system(&real));
        let mut bytes = [0u8; size_of::<libc::statfs>()];
        match info {
            Some(info) => {
                // SAFETY: a plain struct seen as bytes, of this very size.
                let info = unsafe {
                    std::slice::from_raw_parts((&raw const info).cast::<u8>(), bytes.len())
                };
                bytes.copy_from_slice(info);
            }
            None => {
                let words = [
                    TMPFS_MAGIC as u64,
                    4096,
                    1 << 20,
                    1 << 19,
                    1 << 19,
                    1 << 20,
                    1 << 19,
                    0,
                    255,
                    4096,
                ];
                for (index, word) in words.into_iter().enumerate() {
                    bytes[8 * index..8 * index + 8].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
        env.memory.write(a[1], &bytes)?;
        done(0)
    }
}

fn put(bytes: &mut [u8], at: usize, value: u64, len: usize) {
    bytes[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
}

/// `struct stat` of x86-64.
fn stat_bytes(meta: &Meta) -> [u8; 144] {
    let mut bytes = [0; 144];
    let words = [
        (0, meta.device),
        (8, meta.inode),
        (16, meta.links),
        (40, meta.special),
        (48, meta.size),
        (56, meta.block_size),
        (64, meta.blocks),
    ];
    for (at, value) in words {
        put(&mut bytes, at, value, 8);
    }
    put(&mut bytes, 24, u64::from(meta.mode), 4);
    put(&mut bytes, 28, u64::from(meta.uid), 4);
    put(&mut bytes, 32, u64::from(meta.gid), 4);
    for (at, time) in [
        (72, meta.accessed),
        (88, meta.modified),
        (104, meta.changed),
    ] {
        put(&mut bytes, at, time.seconds as u64, 8);
        put(&mut bytes, at + 8, u64::from(time.nanos), 8);
    }
    bytes
}

/// `struct statx`, with the basic fields.
fn statx_bytes(meta: &Meta) -> [u8; 256] {
    const BASIC: u64 = 0x7ff;
    let mut bytes = [0; 256];
    let fields = [
        (0, BASIC, 4),
        (4, meta.block_size, 4),
        (16, meta.links, 4),
        (20, u64::from(meta.uid), 4),
        (24, u64::from(meta.gid), 4),
        (28, u64::from(meta.mode), 2),
        (32, meta.inode, 8),
        (40, meta.size, 8),
        (48, meta.blocks, 8),
        (128, u64::from(libc::major(meta.special)), 4),
        (132, u64::from(libc::minor(meta.special)), 4),
        (136, u64::from(libc::major(meta.device)), 4),
        (140, u64::from(libc::minor(meta.device)), 4),
    ];
    for (at, value, len) in fields {
        put(&mut bytes, at, value, len);
    }
    for (at, time) in [
        (64, meta.accessed),
        (96, meta.changed),
        (112, meta.modified),
    ] {
        put(&mut bytes, at, time.seconds as u64, 8);
        put(&mut bytes, at + 8, u64::from(time.nanos), 4);
    }
    bytes
}
