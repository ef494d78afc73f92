//! Listing directories, in sorted order: the host's order depends on its file system's history.

use super::table::{ListedName, Object};
use super::{Env, Reply, World, done};
use std::sync::Arc;

const LINK: u8 = 10;
const DIRECTORY: u8 = 4;

/// The two formats of directory entries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryFormat {
    Old,
    New,
}

impl World {
    pub(super) fn sys_getdents(
        &mut self,
        env: &mut Env,
        a: [u64; 6],
        format: EntryFormat,
    ) -> Reply {
        let fd = a[0] as i32;
        let listing = self.listing(fd)?;
        let mut bytes = Vec::new();
        let mut at = self.table.get(fd)?.offset as usize;
        while let Some(entry) = listing.get(at) {
            let encoded = encode(entry, at as u64 + 1, format);
            if (bytes.len() + encoded.len()) as u64 > a[2] {
                break;
            }
            bytes.extend_from_slice(&encoded);
            at += 1;
        }
        if bytes.is_empty() && at < listing.len() {
            return Err(libc::EINVAL);
        }
        env.memory.write(a[1], &bytes)?;
        self.table.get_mut(fd)?.offset = at as u64;
        done(bytes.len() as i64)
    }

    /// The names behind a descriptor: as they were when the listing began.
    fn listing(&mut self, fd: i32) -> Result<Arc<Vec<ListedName>>, i32> {
        let node = match &self.table.get(fd)?.object {
            Object::Directory {
                listing: Some(listing),
                ..
            } => return Ok(listing.clone()),
            Object::Directory { node, .. } => *node,
            Object::OwnDescriptors => return Ok(Arc::new(self.own_descriptors())),
            _ => return Err(libc::ENOTDIR),
        };
        let own = self.tree.node(node);
        let parent = own.directory().and_then(|directory| directory.parent);
        let dots = [(b".".as_slice(), node), (b"..", parent.unwrap_or(node))];
        let mut names: Vec<ListedName> = dots
            .into_iter()
            .map(|(name, node)| ListedName {
                name: name.to_vec(),
                inode: self.tree.node(node).meta.inode,
                entry_type: DIRECTORY,
            })
            .collect();
        for (name, node) in self.tree.list(node)? {
            let node = self.tree.node(node);
            names.push(ListedName {
                name,
                inode: node.meta.inode,
                entry_type: node.entry_type(),
            });
        }
        let names = Arc::new(names);
        if let Object::Directory { listing, .. } = &mut self.table.get_mut(fd)?.object {
            *listing = Some(names.clone());
        }
        Ok(names)
    }

    fn own_descriptors(&self) -> Vec<ListedName> {
        let dots = [".", ".."].map(|name| (name.to_string(), DIRECTORY));
        let open = self.table.open().map(|fd| (fd.to_string(), LINK));
        dots.into_iter()
            .chain(open)
            .enumerate()
            .map(|(index, (name, entry_type))| ListedName {
                name: name.into_bytes(),
                inode: index as u64 + 1,
                entry_type,
            })
            .collect()
    }
}

fn encode(entry: &ListedName, next: u64, format: EntryFormat) -> Vec<u8> {
    let header = match format {
        EntryFormat::Old => 18,
        EntryFormat::New => 19,
    };
    // The old format keeps the type in the last byte.
    let tail = match format {
        EntryFormat::Old => 2,
        EntryFormat::New => 1,
    };
    let len = (header + entry.name.len() + tail).next_multiple_of(8);
    let mut bytes = vec![0; len];
    bytes[..8].copy_from_slice(&entry.inode.to_le_bytes());
    bytes[8..16].copy_from_slice(&next.to_le_bytes());
    bytes[16..18].copy_from_slice(&(len as u16).to_le_bytes());
    bytes[header..header + entry.name.len()].copy_from_slice(&entry.name);
    match format {
        EntryFormat::Old => bytes[len - 1] = entry.entry_type,
        EntryFormat::New => bytes[18] = entry.entry_type,
    }
    bytes
}
