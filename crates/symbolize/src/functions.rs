//! Which functions, inlined functions and blocks an instruction is in, as entries of the debug information.

use gimli::{DwTag, EntriesTreeNode, UnitOffset, UnitRef};

use crate::module::Reader;
use crate::units::{EntryId, Units};

/// Deeper nesting than compilers make.
const DEPTH_MAX: usize = 256;

/// The functions of a unit by address.
#[derive(Debug)]
pub(crate) struct FunctionIndex {
    /// Begin, end, entry; sorted.
    ranges: Vec<(u64, u64, UnitOffset)>,
}

impl FunctionIndex {
    pub(crate) fn read(unit: UnitRef<'_, Reader>) -> Self {
        let mut ranges = Vec::new();
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.tag() != gimli::DW_TAG_subprogram {
                continue;
            }
            let Ok(mut code) = unit.die_ranges(entry) else {
                continue;
            };
            while let Ok(Some(range)) = code.next() {
                if range.begin > 0 && range.begin < range.end {
                    ranges.push((range.begin, range.end, entry.offset()));
                }
            }
        }
        ranges.sort_unstable_by_key(|&(begin, end, offset)| (begin, end, offset.0));
        Self { ranges }
    }

    fn find(&self, address: u64) -> Option<UnitOffset> {
        let after = self.ranges.partition_point(|range| range.0 <= address);
        let &(_, end, offset) = self.ranges.get(after.checked_sub(1)?)?;
        (address < end).then_some(offset)
    }
}

/// A function, an inlined function or a block around an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) id: EntryId,
    pub(crate) tag: DwTag,
}

/// The scopes around an instruction, the function itself first. Empty where nothing is known.
pub(crate) fn scopes(units: &Units, address: u64) -> Vec<Scope> {
    let mut scopes = Vec::new();
    let Some(index) = units.of_code(address) else {
        return scopes;
    };
    let Some(loaded) = units.loaded(index) else {
        return scopes;
    };
    let Some(function) = loaded.functions().find(address) else {
        return scopes;
    };
    let unit = loaded.get();
    let Ok(mut tree) = unit.entries_tree(Some(function)) else {
        return scopes;
    };
    if let Ok(root) = tree.root() {
        scopes.push(Scope {
            id: EntryId {
                unit: index,
                offset: function,
            },
            tag: gimli::DW_TAG_subprogram,
        });
        descend(unit, index, root, address, &mut scopes);
    }
    scopes
}

fn descend(
    unit: UnitRef<'_, Reader>,
    index: usize,
    node: EntriesTreeNode<'_, '_, Reader>,
    address: u64,
    scopes: &mut Vec<Scope>,
) {
    if scopes.len() >= DEPTH_MAX {
        return;
    }
    let mut children = node.children();
    while let Ok(Some(child)) = children.next() {
        let entry = child.entry();
        let nests = matches!(
            entry.tag(),
            gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_lexical_block
        );
        if nests && covers(unit, entry, address) {
            scopes.push(Scope {
                id: EntryId {
                    unit: index,
                    offset: entry.offset(),
                },
                tag: entry.tag(),
            });
            return descend(unit, index, child, address, scopes);
        }
    }
}

fn covers(unit: UnitRef<'_, Reader>, entry: &crate::units::Entry, address: u64) -> bool {
    let Ok(mut ranges) = unit.die_ranges(entry) else {
        return false;
    };
    while let Ok(Some(range)) = ranges.next() {
        if (range.begin..range.end).contains(&address) {
            return true;
        }
    }
    false
}
