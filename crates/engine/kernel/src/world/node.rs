//! What the file system is made of: files, directories, links and the rest, each a node with a number.

use super::content::Content;
use super::device::Device;
use std::collections::BTreeMap;

/// Number of a node. Nodes are never renumbered; one that nobody can reach any more is left empty.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct NodeId(pub(super) u32);

/// A moment, since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Time {
    pub(super) seconds: i64,
    pub(super) nanos: u32,
}

impl Time {
    pub(super) fn from_ns(ns: u64) -> Self {
        Time {
            seconds: (ns / crate::SECOND_NS) as i64,
            nanos: (ns % crate::SECOND_NS) as u32,
        }
    }
}

/// What `stat` tells.
#[derive(Clone, Debug, Default)]
pub(super) struct Meta {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Kind and permissions.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Device number of a device.
    pub(super) special: u64,
    /// Bytes, as long as the content was not looked at.
    pub(super) size: u64,
    pub(super) block_size: u64,
    pub(super) blocks: u64,
    pub(super) accessed: Time,
    pub(super) modified: Time,
    pub(super) changed: Time,
    pub(super) links: u64,
}

/// One thing of the file system.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) meta: Meta,
    /// Open file descriptions that lead here.
    pub(super) opens: u32,
    /// The real path that it stands for, unless the guest made it.
    pub(super) real: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A regular file; `None` as long as nobody has looked inside.
    File(Option<Content>),
    Directory(Directory),
    /// A symbolic link and its text.
    Link(Vec<u8>),
    /// A named pipe; the pipe is there while it is open.
    Fifo(Option<u32>),
    /// A name that sockets can be reached by.
    Socket,
    Device(Device),
}

/// Names over a real directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    /// What is known by name; `None`: it is known that there is nothing.
    pub(super) names: BTreeMap<Vec<u8>, Option<NodeId>>,
    /// The real directory that other names are looked for in.
    pub(super) below: Option<Vec<u8>>,
    /// The directory that holds it; itself for the root.
    pub(super) parent: Option<NodeId>,
}

impl Node {
    pub(super) fn directory(&self) -> Option<&Directory> {
        match &self.kind {
            Kind::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// Bytes of a file, or the length of a link's text.
    pub(super) fn size(&self) -> u64 {
        match &self.kind {
            Kind::File(Some(content)) => content.len(),
            Kind::Link(text) => text.len() as u64,
            _ => self.meta.size,
        }
    }

    /// The kind as directory entries have it.
    pub(super) fn entry_type(&self) -> u8 {
        ((self.meta.mode & libc::S_IFMT) >> 12) as u8
    }
}
