//! Files mapped into memory so that both see each other's changes (`MAP_SHARED`).
//!
//! Each such mapping is private memory of the executor, so that a forked checkpoint has its own. What the guest stores
//! there reaches the file when somebody looks: at `read`, `msync`, `munmap`. What is written to the file reaches the
//! mapping at once. The limit: two mappings of the same bytes, one of them writable, would not see each other; the
//! second one is refused.

use super::guest::GuestMemory;
use super::node::NodeId;
use super::{Reply, World, done};
use std::ops::Range;

const PAGE: u64 = 4096;

#[derive(Clone, Debug)]
pub(super) struct SharedMapping {
    pub(super) range: Range<u64>,
    pub(super) node: NodeId,
    /// Where in the file the range begins.
    pub(super) offset: u64,
    pub(super) writable: bool,
}

impl SharedMapping {
    /// The part of the file that it shows.
    fn shown(&self) -> Range<u64> {
        self.offset..self.offset + (self.range.end - self.range.start)
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

impl World {
    /// True if a new mapping of these bytes could not be kept in step with one that exists.
    pub(crate) fn would_alias(&self, node_of: i32, shown: Range<u64>, writable: bool) -> bool {
        let Ok(Some(node)) = self.file_of(node_of) else {
            return false;
        };
        self.mapped.iter().any(|mapping| {
            mapping.node == node
                && (mapping.writable || writable)
                && !overlap(&mapping.shown(), &shown).is_empty()
        })
    }

    /// Brings what the guest stored in mappings into the file.
    pub(super) fn store_mapped(
        &mut self,
        memory: &dyn GuestMemory,
        node: NodeId,
        wanted: Range<u64>,
    ) -> Result<(), i32> {
        if self.mapped.is_empty() {
            return Ok(());
        }
        let len = self.tree.content(node)?.len();
        let parts: Vec<(u64, Range<u64>)> = self
            .mapped
            .iter()
            .filter(|mapping| mapping.node == node && mapping.writable)
            .map(|mapping| {
                let shown = overlap(&overlap(&mapping.shown(), &wanted), &(0..len));
                (
                    mapping.range.start + (shown.start.saturating_sub(mapping.offset)),
                    shown,
                )
            })
            .collect();
        for (address, shown) in parts {
            self.store_range(memory, node, address, shown)?;
        }
        Ok(())
    }

    fn store_range(
        &mut self,
        memory: &dyn GuestMemory,
        node: NodeId,
        mut address: u64,
        shown: Range<u64>,
    ) -> Result<(), i32> {
        let mut at = shown.start;
        while at < shown.end {
            let part = (PAGE - at % PAGE).min(shown.end - at);
            let mut stored = vec![0; part as usize];
            // A page that the guest may not even read has nothing new.
            if memory.read(address, &mut stored).is_ok()
                && self.tree.content(node)?.bytes(at, part)? != stored
            {
                self.tree.write(node, at, &stored)?;
            }
            at += part;
            address += part;
        }
        Ok(())
    }

    /// Brings bytes that were written to the file into its mappings.
    pub(super) fn load_mapped(
        &mut self,
        memory: &mut dyn GuestMemory,
        node: NodeId,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), i32> {
        for mapping in self.mapped.iter().filter(|mapping| mapping.node == node) {
            let written = offset..offset + bytes.len() as u64;
            let part = overlap(&mapping.shown(), &written);
            if part.is_empty() {
                continue;
            }
            let address = mapping.range.start + (part.start - mapping.offset);
            let from = (part.start - offset) as usize;
            memory.write_through(
                address,
                &bytes[from..from + (part.end - part.start) as usize],
            )?;
        }
        Ok(())
    }

    /// The file is cut at `len`: what mappings show beyond becomes zero.
    pub(super) fn clear_mapped(
        &mut self,
        memory: &mut dyn GuestMemory,
        node: NodeId,
        len: u64,
    ) -> Result<(), i32> {
        if !self.mapped.iter().any(|mapping| mapping.node == node) {
            return Ok(());
        }
        let old = self.tree.content(node)?.len();
        if len < old {
            let zeros = vec![0; self.mapped_len(node, len..old)];
            self.load_mapped(memory, node, len, &zeros)?;
        }
        Ok(())
    }

    /// How far from the start of a part of the file mappings reach.
    pub(super) fn mapped_len(&self, node: NodeId, part: Range<u64>) -> usize {
        self.mapped
            .iter()
            .filter(|mapping| mapping.node == node)
            .map(|mapping| overlap(&mapping.shown(), &part))
            .filter(|shown| !shown.is_empty())
            .map(|shown| (shown.end - part.start) as usize)
            .max()
            .unwrap_or(0)
    }

    /// Stores what was changed in a range of memory: `msync`, and before it is unmapped.
    pub(crate) fn sync_range(&mut self, memory: &dyn GuestMemory, range: Range<u64>) -> Reply {
        let parts: Vec<(NodeId, Range<u64>)> = self
            .mapped
            .iter()
            .filter(|mapping| mapping.writable)
            .map(|mapping| {
                let part = overlap(&mapping.range, &range);
                let start = mapping.offset + (part.start - mapping.range.start.min(part.start));
                (mapping.node, start..start + (part.end - part.start))
            })
            .filter(|(_, shown)| !shown.is_empty())
            .collect();
        for (node, shown) in parts {
            self.store_mapped(memory, node, shown)?;
        }
        done(0)
    }

    /// The range is no longer mapped.
    pub(crate) fn forget_range(&mut self, range: &Range<u64>) {
        let mut kept = Vec::with_capacity(self.mapped.len());
        for mapping in self.mapped.drain(..) {
            let whole = mapping.range.clone();
            if overlap(&whole, range).is_empty() {
                kept.push(mapping);
                continue;
            }
            for part in [whole.start..range.start, range.end..whole.end] {
                if !part.is_empty() {
                    self.tree.node_mut(mapping.node).opens += 1;
                    kept.push(SharedMapping {
                        offset: mapping.offset + (part.start - whole.start),
                        range: part,
                        ..mapping.clone()
                    });
                }
            }
            self.tree.closed(mapping.node);
        }
        self.mapped = kept;
    }
}
