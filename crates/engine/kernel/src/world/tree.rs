//! The file system: names and nodes over the real one.
//!
//! A real name is looked at once, when it is first needed, and becomes a node; from then on the node is the truth.
//! What the guest does (create, rename, remove) changes nodes and names here and nothing outside.

use super::content::Content;
use super::device::Device;
use super::host;
use super::identity::Identity;
use super::node::{Directory, Kind, Meta, Node, NodeId, Time};

const NAME_MAX: usize = 255;
const LINKS_MAX: u32 = 40;
/// Inode numbers of what the guest makes start here, above those of usual file systems.
const FIRST_INODE: u64 = 1 << 40;
/// Changes of files may take this much memory; beyond, the disk is full.
const STORED_MAX: u64 = 2 << 30;

const ROOT: NodeId = NodeId(0);

/// The file system.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// The working directory.
    pub(super) current: NodeId,
    next_inode: u64,
    /// Permissions that new files do not get.
    pub(super) mask: u32,
    /// The guest's pid, for `/proc/PID`.
    own_pid: Vec<u8>,
    /// Bytes that changes of files take.
    stored: u64,
}

/// A name, whether there is something or not.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) parent: NodeId,
    pub(super) name: Vec<u8>,
    pub(super) node: Option<NodeId>,
    /// The path ended with a slash.
    pub(super) as_directory: bool,
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub(super) enum Found {
    Place(Place),
    /// Into `/proc/self`; the rest of the path.
    Own(Vec<u8>),
}

/// What becomes of a link at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LastLink {
    Follow,
    Keep,
}

impl Tree {
    pub(super) fn new(working_directory: &[u8], pid: i32, identity: &Identity) -> Self {
        let root = Node {
            kind: Kind::Directory(Directory {
                below: Some(b"/".to_vec()),
                parent: Some(ROOT),
                ..Directory::default()
            }),
            meta: host::look_at(b"/").unwrap_or_default(),
            opens: 0,
            real: Some(b"/".to_vec()),
        };
        let mut tree = Tree {
            nodes: vec![root],
            current: ROOT,
            next_inode: FIRST_INODE,
            mask: host_mask(),
            own_pid: pid.to_string().into_bytes(),
            stored: 0,
        };
        if let Ok(Found::Place(Place {
            node: Some(node), ..
        })) = tree.walk(ROOT, working_directory, LastLink::Follow, identity)
        {
            tree.current = node;
        }
        tree
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    fn directory_mut(&mut self, id: NodeId) -> Result<&mut Directory, i32> {
        match &mut self.node_mut(id).kind {
            Kind::Directory(directory) => Ok(directory),
            _ => Err(libc::ENOTDIR),
        }
    }

    // ---- finding ----

    /// What a directory has under a name.
    pub(super) fn child(&mut self, parent: NodeId, name: &[u8]) -> Result<Option<NodeId>, i32> {
        let directory = self.node(parent).directory().ok_or(libc::ENOTDIR)?;
        if let Some(known) = directory.names.get(name) {
            return Ok(*known);
        }
        let real = directory.below.as_ref().map(|below| join(below, name));
        let found = real.and_then(|real| self.take_in(real, parent));
        self.directory_mut(parent)?
            .names
            .insert(name.to_vec(), found);
        Ok(found)
    }

    /// Makes a node for what the host has under a path.
    fn take_in(&mut self, real: Vec<u8>, parent: NodeId) -> Option<NodeId> {
        let meta = host::look_at(&real)?;
        let kind = match meta.mode & libc::S_IFMT {
            libc::S_IFREG => Kind::File(None),
            libc::S_IFDIR => Kind::Directory(Directory {
                below: Some(real.clone()),
                parent: Some(parent),
                ..Directory::default()
            }),
            libc::S_IFLNK => Kind::Link(host::link_text(&real).ok()?),
            libc::S_IFIFO => Kind::Fifo(None),
            libc::S_IFSOCK => Kind::Socket,
            _ => Kind::Device(Device::at(&real)),
        };
        Some(self.add(Node {
            kind,
            meta,
            opens: 0,
            real: Some(real),
        }))
    }

    /// Follows a path from a directory.
    pub(super) fn walk(
        &mut self,
        start: NodeId,
        path: &[u8],
        last: LastLink,
        identity: &Identity,
    ) -> Result<Found, i32> {
        if path.is_empty() {
            return Err(libc::ENOENT);
        }
        let mut at = if path[0] == b'/' { ROOT } else { start };
        let mut rest = path.to_vec();
        let mut links = 0;
        loop {
            let skip = rest.iter().take_while(|byte| **byte == b'/').count();
            rest.drain(..skip);
            let len = rest
                .iter()
                .position(|byte| *byte == b'/')
                .unwrap_or(rest.len());
            let name: Vec<u8> = rest.drain(..len).collect();
            let as_directory = !rest.is_empty();
            let is_last = rest.iter().all(|byte| *byte == b'/');
            if name.is_empty() {
                return Ok(Found::Place(self.here(at)));
            }
            self.enter(at, &name, identity)?;
            if name == b"." || name == b".." {
                if name == b".." {
                    at = self.parent_of(at)?;
                }
                if is_last {
                    return Ok(Found::Place(self.here(at)));
                }
                continue;
            }
            if self.is_own_process(at, &name) {
                return Ok(Found::Own(rest.split_off(usize::from(as_directory))));
            }
            let node = self.child(at, &name)?;
            let place = |node| Place {
                parent: at,
                name: name.clone(),
                node,
                as_directory,
            };
            let Some(id) = node else {
                return if is_last {
                    Ok(Found::Place(place(None)))
                } else {
                    Err(libc::ENOENT)
                };
            };
            if let Kind::Link(text) = &self.node(id).kind
                && (!is_last || as_directory || last == LastLink::Follow)
            {
                links += 1;
                if links > LINKS_MAX {
                    return Err(libc::ELOOP);
                }
                if text.first() == Some(&b'/') {
                    at = ROOT;
                }
                rest = [text.as_slice(), &rest].concat();
                continue;
            }
            if is_last {
                let is_directory = self.node(id).directory().is_some();
                if as_directory && !is_directory {
                    return Err(libc::ENOTDIR);
                }
                return Ok(Found::Place(place(Some(id))));
            }
            at = id;
        }
    }

    /// Checks that a name may be looked up in a directory.
    fn enter(&self, at: NodeId, name: &[u8], identity: &Identity) -> Result<(), i32> {
        let node = self.node(at);
        if node.directory().is_none() {
            return Err(libc::ENOTDIR);
        }
        if name.len() > NAME_MAX {
            return Err(libc::ENAMETOOLONG);
        }
        identity.check(&node.meta, libc::X_OK)
    }

    fn here(&self, at: NodeId) -> Place {
        Place {
            parent: self.parent_of(at).unwrap_or(ROOT),
            name: b".".to_vec(),
            node: Some(at),
            as_directory: true,
        }
    }

    fn parent_of(&self, at: NodeId) -> Result<NodeId, i32> {
        let directory = self.node(at).directory().ok_or(libc::ENOTDIR)?;
        Ok(directory.parent.unwrap_or(at))
    }

    fn is_own_process(&self, at: NodeId, name: &[u8]) -> bool {
        self.node(at).real.as_deref() == Some(b"/proc")
            && (name == b"self" || name == b"thread-self" || name == self.own_pid)
    }

    /// The path of a directory; `ENOENT` if it was removed.
    pub(super) fn path_of(&self, id: NodeId) -> Result<Vec<u8>, i32> {
        let mut parts = Vec::new();
        let mut at = id;
        while at != ROOT {
            let parent = self.parent_of(at)?;
            let directory = self.node(parent).directory().ok_or(libc::ENOENT)?;
            let name = directory
                .names
                .iter()
                .find(|(_, node)| **node == Some(at))
                .ok_or(libc::ENOENT)?
                .0;
            parts.push(name.clone());
            at = parent;
        }
        if parts.is_empty() {
            return Ok(b"/".to_vec());
        }
        let mut path = Vec::new();
        for part in parts.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(part);
        }
        Ok(path)
    }

    /// The path of a name.
    pub(super) fn path_of_place(&self, place: &Place) -> Vec<u8> {
        if place.name == b"." {
            return place
                .node
                .and_then(|node| self.path_of(node).ok())
                .unwrap_or_default();
        }
        join(&self.path_of(place.parent).unwrap_or_default(), &place.name)
    }

    /// All names of a directory, sorted, with their nodes.
    pub(super) fn list(&mut self, id: NodeId) -> Result<Vec<(Vec<u8>, NodeId)>, i32> {
        let directory = self.node(id).directory().ok_or(libc::ENOTDIR)?;
        if let Some(below) = directory.below.clone() {
            for name in host::names_in(&below)? {
                self.child(id, &name)?;
            }
        }
        let directory = self.node(id).directory().ok_or(libc::ENOTDIR)?;
        Ok(directory
            .names
            .iter()
            .filter_map(|(name, node)| Some((name.clone(), (*node)?)))
            .collect())
    }

    // ---- content ----

    /// The bytes of a regular file, taken from the real one if nobody has looked before.
    pub(super) fn content(&mut self, id: NodeId) -> Result<&mut Content, i32> {
        let node = self.node(id);
        if let (Kind::File(None), Some(real)) = (&node.kind, &node.real) {
            let (base, len) = host::content(real, node.meta.size)?;
            self.node_mut(id).kind = Kind::File(Some(Content::of(base, len)));
        }
        match &mut self.node_mut(id).kind {
            Kind::File(content) => Ok(content.get_or_insert_default()),
            Kind::Directory(_) => Err(libc::EISDIR),
            _ => Err(libc::EINVAL),
        }
    }

    /// Replaces the content without looking at the old one.
    pub(super) fn set_content(&mut self, id: NodeId, content: Content) {
        self.node_mut(id).kind = Kind::File(Some(content));
    }

    /// Writes into a regular file; `ENOSPC` if changes have used up what they may.
    pub(super) fn write(&mut self, id: NodeId, offset: u64, bytes: &[u8]) -> Result<(), i32> {
        if self.stored + bytes.len() as u64 > STORED_MAX {
            return Err(libc::ENOSPC);
        }
        self.change(id, |content| content.write(offset, bytes))
    }

    /// Changes the content of a regular file and counts what that costs.
    pub(super) fn change(
        &mut self,
        id: NodeId,
        change: impl FnOnce(&mut Content) -> Result<(), i32>,
    ) -> Result<(), i32> {
        let content = self.content(id)?;
        let before = content.stored();
        let result = change(content);
        let after = content.stored();
        self.stored = self.stored + after - before;
        result
    }

    // ---- changing ----

    /// A node that the guest makes, without a name yet.
    pub(super) fn make(&mut self, kind: Kind, mode: u32, identity: &Identity, now: Time) -> NodeId {
        let device = self.node(ROOT).meta.device;
        let inode = self.next_inode;
        self.next_inode += 1;
        let is_directory = matches!(kind, Kind::Directory(_));
        self.add(Node {
            kind,
            meta: Meta {
                device,
                inode,
                mode,
                uid: identity.effective_user(),
                gid: identity.effective_group(),
                block_size: 4096,
                size: if is_directory { 4096 } else { 0 },
                accessed: now,
                modified: now,
                changed: now,
                links: 0,
                ..Meta::default()
            },
            opens: 0,
            real: None,
        })
    }

    /// Checks that names in a directory may be changed.
    pub(super) fn check_changeable(&self, parent: NodeId, identity: &Identity) -> Result<(), i32> {
        identity.check(&self.node(parent).meta, libc::W_OK | libc::X_OK)
    }

    /// Gives a node a name.
    pub(super) fn name(&mut self, place: &Place, node: NodeId, now: Time) -> Result<(), i32> {
        let is_directory = self.node(node).directory().is_some();
        self.directory_mut(place.parent)?
            .names
            .insert(place.name.clone(), Some(node));
        if is_directory {
            self.directory_mut(node)?.parent = Some(place.parent);
        }
        let meta = &mut self.node_mut(node).meta;
        meta.links += 1 + u64::from(is_directory && meta.links == 0);
        meta.changed = now;
        self.touch(place.parent, now);
        Ok(())
    }

    /// Takes a name away; the node goes when nothing leads to it any more.
    pub(super) fn unname(&mut self, place: &Place, now: Time) -> Result<(), i32> {
        let node = place.node.ok_or(libc::ENOENT)?;
        self.directory_mut(place.parent)?
            .names
            .insert(place.name.clone(), None);
        let is_directory = self.node(node).directory().is_some();
        let meta = &mut self.node_mut(node).meta;
        meta.links = if is_directory {
            0
        } else {
            meta.links.saturating_sub(1)
        };
        meta.changed = now;
        self.touch(place.parent, now);
        self.drop_if_unreachable(node);
        Ok(())
    }

    /// A description that led here is gone.
    pub(super) fn closed(&mut self, id: NodeId) {
        let node = self.node_mut(id);
        node.opens = node.opens.saturating_sub(1);
        // A large unchanged file gives its descriptor back; it is opened again when needed.
        if node.opens == 0
            && node.real.is_some()
            && matches!(&node.kind, Kind::File(Some(content)) if content.is_untouched())
            && node.meta.links > 0
        {
            let size = node.size();
            node.meta.size = size;
            node.kind = Kind::File(None);
        }
        self.drop_if_unreachable(id);
    }

    fn drop_if_unreachable(&mut self, id: NodeId) {
        let node = self.node_mut(id);
        if node.meta.links == 0
            && node.opens == 0
            && let Kind::File(content) = &mut node.kind
        {
            node.real = None;
            let freed = content.take().map_or(0, |content| content.stored());
            self.stored -= freed;
        }
    }

    fn touch(&mut self, id: NodeId, now: Time) {
        let meta = &mut self.node_mut(id).meta;
        (meta.modified, meta.changed) = (now, now);
    }

    /// True if `inner` is `outer` or lies below it.
    pub(super) fn is_within(&self, inner: NodeId, outer: NodeId) -> bool {
        let mut at = inner;
        loop {
            if at == outer {
                return true;
            }
            if at == ROOT {
                return false;
            }
            match self.parent_of(at) {
                Ok(parent) if parent != at => at = parent,
                _ => return false,
            }
        }
    }
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.ends_with(b"/") {
        [directory, name].concat()
    } else {
        [directory, b"/", name].concat()
    }
}

/// The mask that the program was started with; the host only tells by setting one.
fn host_mask() -> u32 {
    // SAFETY: plain system calls; the executor is single-threaded.
    unsafe {
        let mask = libc::umask(0o22);
        libc::umask(mask);
        mask
    }
}
