//! Calls that make, move, remove and read names.

use super::node::{Directory, Kind};
use super::table::Object;
use super::tree::{Found, LastLink, Place};
use super::{Env, Reply, World, done};

const RENAME_NOREPLACE: u32 = 1;
const RENAME_EXCHANGE: u32 = 2;

impl World {
    /// The name that a path in guest memory leads to.
    pub(super) fn place_at(
        &mut self,
        env: &Env,
        at: i32,
        path: u64,
        last: LastLink,
    ) -> Result<Place, i32> {
        let path = env.memory.read_string(path)?;
        match self.find(at, &path, last)? {
            Found::Place(place) => Ok(place),
            // Nothing in the guest's own /proc can be changed.
            Found::Own(_) => Err(libc::EPERM),
        }
    }

    /// A name that must be free, in a directory that may be changed.
    fn free_place(&mut self, env: &Env, at: i32, path: u64) -> Result<Place, i32> {
        let place = self.place_at(env, at, path, LastLink::Keep)?;
        if place.node.is_some() {
            return Err(libc::EEXIST);
        }
        self.tree.check_changeable(place.parent, &self.identity)?;
        Ok(place)
    }

    /// A name that must be taken, in a directory that may be changed.
    fn taken_place(&mut self, env: &Env, at: i32, path: u64) -> Result<Place, i32> {
        let place = self.place_at(env, at, path, LastLink::Keep)?;
        if place.node.is_none() {
            return Err(libc::ENOENT);
        }
        self.tree.check_changeable(place.parent, &self.identity)?;
        Ok(place)
    }

    pub(super) fn make_directory(&mut self, env: &mut Env, at: i32, path: u64, mode: u32) -> Reply {
        let place = self.free_place(env, at, path)?;
        let kind = Kind::Directory(Directory {
            parent: Some(place.parent),
            ..Directory::default()
        });
        let mode = libc::S_IFDIR | mode & 0o1777 & !self.tree.mask;
        let node = self.tree.make(kind, mode, &self.identity, env.time());
        self.tree.name(&place, node, env.time())?;
        done(0)
    }

    pub(super) fn make_node(&mut self, env: &mut Env, at: i32, path: u64, mode: u32) -> Reply {
        let place = self.free_place(env, at, path)?;
        let permissions = mode & 0o7777 & !self.tree.mask;
        let (kind, type_bits) = match mode & libc::S_IFMT {
            0 | libc::S_IFREG => (Kind::File(Some(Default::default())), libc::S_IFREG),
            libc::S_IFIFO => (Kind::Fifo(None), libc::S_IFIFO),
            libc::S_IFSOCK => (Kind::Socket, libc::S_IFSOCK),
            _ => return Err(libc::EPERM),
        };
        let mode = type_bits | permissions;
        let node = self.tree.make(kind, mode, &self.identity, env.time());
        self.tree.name(&place, node, env.time())?;
        done(0)
    }

    pub(super) fn make_link(&mut self, env: &mut Env, text: u64, at: i32, path: u64) -> Reply {
        let text = env.memory.read_string(text)?;
        if text.is_empty() {
            return Err(libc::ENOENT);
        }
        let place = self.free_place(env, at, path)?;
        let mode = libc::S_IFLNK | 0o777;
        let node = self
            .tree
            .make(Kind::Link(text), mode, &self.identity, env.time());
        self.tree.name(&place, node, env.time())?;
        done(0)
    }

    /// `link` and `linkat`.
    pub(super) fn hard_link(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let (from_at, from, to_at, to, flags) = (a[0] as i32, a[1], a[2] as i32, a[3], a[4] as i32);
        let path = env.memory.read_string(from)?;
        let node = if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            match self.table.get(from_at)?.object {
                Object::File(node) | Object::Path(node) => node,
                _ => return Err(libc::EPERM),
            }
        } else {
            let last = if flags & libc::AT_SYMLINK_FOLLOW != 0 {
                LastLink::Follow
            } else {
                LastLink::Keep
            };
            match self.find(from_at, &path, last)? {
                Found::Place(place) => place.node.ok_or(libc::ENOENT)?,
                // The usual way to name an unnamed file: /proc/self/fd/N.
                Found::Own(rest) => self.own_node(&rest)?,
            }
        };
        if self.tree.node(node).directory().is_some() {
            return Err(libc::EPERM);
        }
        let place = self.free_place(env, to_at, to)?;
        self.tree.name(&place, node, env.time())?;
        done(0)
    }

    /// `unlink`, `rmdir`, `unlinkat`.
    pub(super) fn remove(&mut self, env: &mut Env, at: i32, path: u64, directory: bool) -> Reply {
        let place = self.taken_place(env, at, path)?;
        let node = place.node.ok_or(libc::ENOENT)?;
        let is_directory = self.tree.node(node).directory().is_some();
        match (directory, is_directory) {
            (true, false) => return Err(libc::ENOTDIR),
            (false, true) => return Err(libc::EISDIR),
            (true, true) if place.name == b"." => return Err(libc::EINVAL),
            (true, true) if !self.tree.list(node)?.is_empty() => return Err(libc::ENOTEMPTY),
            _ => {}
        }
        self.check_sticky(&place)?;
        self.tree.unname(&place, env.time())?;
        done(0)
    }

    /// In a sticky directory names belong to the owners of what they name.
    fn check_sticky(&self, place: &Place) -> Result<(), i32> {
        let Some(node) = place.node else {
            return Ok(());
        };
        let parent = &self.tree.node(place.parent).meta;
        let sticky = parent.mode & libc::S_ISVTX != 0;
        if sticky && !self.identity.owns(parent) && !self.identity.owns(&self.tree.node(node).meta)
        {
            return Err(libc::EPERM);
        }
        Ok(())
    }

    /// `rename`, `renameat`, `renameat2`.
    pub(super) fn rename(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let from = self.taken_place(env, a[0] as i32, a[1])?;
        let to = self.place_at(env, a[2] as i32, a[3], LastLink::Keep)?;
        let flags = a[4] as u32;
        self.tree.check_changeable(to.parent, &self.identity)?;
        self.check_sticky(&from)?;
        self.check_sticky(&to)?;
        let node = from.node.ok_or(libc::ENOENT)?;
        if from.name == b"." || to.name == b"." {
            return Err(libc::EBUSY);
        }
        if flags & !RENAME_NOREPLACE != 0 {
            // Exchange is rare enough for programs to do without it.
            return Err(if flags & RENAME_EXCHANGE != 0 {
                libc::ENOSYS
            } else {
                libc::EINVAL
            });
        }
        if self.tree.is_within(to.parent, node) {
            return Err(libc::EINVAL);
        }
        let is_directory = self.tree.node(node).directory().is_some();
        if let Some(target) = to.node {
            if flags & RENAME_NOREPLACE != 0 {
                return Err(libc::EEXIST);
            }
            if target == node {
                return done(0);
            }
            let onto_directory = self.tree.node(target).directory().is_some();
            match (is_directory, onto_directory) {
                (true, false) => return Err(libc::ENOTDIR),
                (false, true) => return Err(libc::EISDIR),
                (true, true) if !self.tree.list(target)?.is_empty() => {
                    return Err(libc::ENOTEMPTY);
                }
                _ => self.tree.unname(&to, env.time())?,
            }
        } else if to.as_directory && !is_directory {
            return Err(libc::ENOTDIR);
        }
        // Named first, so that it is never without a name.
        self.tree.name(&to, node, env.time())?;
        self.tree.unname(&from, env.time())?;
        if is_directory {
            self.tree.node_mut(node).meta.links = 2;
        }
        done(0)
    }

    pub(super) fn read_link(
        &mut self,
        env: &mut Env,
        at: i32,
        path: u64,
        to: u64,
        len: u64,
    ) -> Reply {
        let path = env.memory.read_string(path)?;
        if len as i64 <= 0 {
            return Err(libc::EINVAL);
        }
        let node = if path.is_empty() {
            match self.table.get(at)?.object {
                Object::Path(node) => node,
                _ => return Err(libc::ENOENT),
            }
        } else {
            match self.find(at, &path, LastLink::Keep)? {
                Found::Place(place) => place.node.ok_or(libc::ENOENT)?,
                Found::Own(rest) => {
                    let text = self.own_link(&rest)?;
                    return write_cut(env, to, len, &text);
                }
            }
        };
        match &self.tree.node(node).kind {
            Kind::Link(text) => write_cut(env, to, len, text),
            _ => Err(libc::EINVAL),
        }
    }

    pub(super) fn change_directory(&mut self, env: &mut Env, path: u64) -> Reply {
        let place = self.place_at(env, libc::AT_FDCWD, path, LastLink::Follow)?;
        let node = place.node.ok_or(libc::ENOENT)?;
        if self.tree.node(node).directory().is_none() {
            return Err(libc::ENOTDIR);
        }
        self.identity
            .check(&self.tree.node(node).meta, libc::X_OK)?;
        self.tree.current = node;
        done(0)
    }

    pub(super) fn change_directory_to(&mut self, fd: i32) -> Reply {
        match self.table.get(fd)?.object {
            Object::Directory { node, .. } | Object::Path(node)
                if self.tree.node(node).directory().is_some() =>
            {
                self.tree.current = node;
                done(0)
            }
            _ => Err(libc::ENOTDIR),
        }
    }

    pub(super) fn working_directory(&mut self, env: &mut Env, to: u64, len: u64) -> Reply {
        let mut path = self.tree.path_of(self.tree.current)?;
        path.push(0);
        if path.len() as u64 > len {
            return Err(libc::ERANGE);
        }
        env.memory.write(to, &path)?;
        done(path.len() as i64)
    }
}

fn write_cut(env: &mut Env, to: u64, len: u64, text: &[u8]) -> Reply {
    let cut = &text[..text.len().min(len as usize)];
    env.memory.write(to, cut)?;
    done(cut.len() as i64)
}
