//! The units of a module's debug information, each read when it is first asked for.
//!
//! Misses: type units (`-fdebug-types-section`), and entries that `dwz` moved to a file of their own.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, Unit, UnitHeader, UnitOffset, UnitRef,
    UnitSectionOffset,
};

use crate::functions::FunctionIndex;
use crate::module::Reader;
use crate::split::{SplitFiles, Wanted};

pub(crate) type Entry = DebuggingInformationEntry<Reader>;

/// More references than this from one entry to the next are a circle.
const REFERENCES_MAX: usize = 16;

/// An entry, wherever it is in the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct EntryId {
    pub(crate) unit: usize,
    pub(crate) offset: UnitOffset,
}

/// All units of a module.
pub(crate) struct Units {
    dwarf: Arc<Dwarf<Reader>>,
    split: Rc<SplitFiles>,
    headers: Vec<UnitHeader<Reader>>,
    units: Vec<OnceCell<Option<LoadedUnit>>>,
    code: OnceCell<Vec<CodeRange>>,
}

/// A unit that has been read, with the sections that it refers to: the module's, or those of a split unit's own file.
pub(crate) struct LoadedUnit {
    dwarf: Arc<Dwarf<Reader>>,
    unit: Unit<Reader>,
    functions: OnceCell<FunctionIndex>,
}

impl LoadedUnit {
    pub(crate) fn new(dwarf: Arc<Dwarf<Reader>>, unit: Unit<Reader>) -> Self {
        Self {
            dwarf,
            unit,
            functions: OnceCell::new(),
        }
    }

    pub(crate) fn get(&self) -> UnitRef<'_, Reader> {
        UnitRef::new(&self.dwarf, &self.unit)
    }

    pub(crate) fn functions(&self) -> &FunctionIndex {
        self.functions
            .get_or_init(|| FunctionIndex::read(self.get()))
    }
}

/// Code of a unit. Sorted by first address.
struct CodeRange {
    begin: u64,
    end: u64,
    /// The greatest end of this and all before it: where looking back can stop.
    end_max: u64,
    unit: usize,
}

impl Units {
    pub(crate) fn new(dwarf: Arc<Dwarf<Reader>>, split: Rc<SplitFiles>) -> Self {
        let mut headers = Vec::new();
        let mut iter = dwarf.units();
        while let Ok(Some(header)) = iter.next() {
            headers.push(header);
        }
        let units = headers.iter().map(|_| OnceCell::new()).collect();
        Self {
            dwarf,
            split,
            headers,
            units,
            code: OnceCell::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.headers.len()
    }

    /// A unit, with what its skeleton refers to in place of the skeleton. None where it makes no sense.
    pub(crate) fn loaded(&self, index: usize) -> Option<&LoadedUnit> {
        let load = || {
            let unit = self.dwarf.unit(self.headers[index].clone()).ok()?;
            match self.split_unit(&unit) {
                Some(split) => Some(split),
                None => Some(LoadedUnit::new(self.dwarf.clone(), unit)),
            }
        };
        self.units.get(index)?.get_or_init(load).as_ref()
    }

    /// A unit as it is in the binary itself, which is where the lines of split units are, too.
    pub(crate) fn skeleton(&self, index: usize) -> Option<Unit<Reader>> {
        self.dwarf.unit(self.headers.get(index)?.clone()).ok()
    }

    fn split_unit(&self, skeleton: &Unit<Reader>) -> Option<LoadedUnit> {
        let name = skeleton.dwo_name().ok()?;
        let wanted = Wanted {
            id: skeleton.dwo_id?,
            folder: skeleton.comp_dir.clone(),
            name: name.and_then(|name| self.dwarf.attr_string(skeleton, name).ok()),
        };
        let dwarf = self.split.find(&self.dwarf, &wanted)?;
        let mut unit = dwarf.unit(dwarf.units().next().ok()??).ok()?;
        unit.copy_relocated_attributes(skeleton);
        Some(LoadedUnit::new(dwarf, unit))
    }

    pub(crate) fn unit(&self, index: usize) -> Option<UnitRef<'_, Reader>> {
        self.loaded(index).map(LoadedUnit::get)
    }

    pub(crate) fn entry(&self, id: EntryId) -> Option<Entry> {
        self.unit(id.unit)?.entry(id.offset).ok()
    }

    /// The unit whose code contains an address.
    pub(crate) fn of_code(&self, address: u64) -> Option<usize> {
        let code = self.code.get_or_init(|| self.code_ranges());
        let after = code.partition_point(|range| range.begin <= address);
        code[..after]
            .iter()
            .rev()
            .take_while(|range| range.end_max > address)
            .find(|range| address < range.end)
            .map(|range| range.unit)
    }

    fn code_ranges(&self) -> Vec<CodeRange> {
        let mut code = Vec::new();
        for unit in 0..self.len() {
            // The skeleton has the ranges; the split unit need not be read for them.
            let Ok(skeleton) = self.dwarf.unit(self.headers[unit].clone()) else {
                continue;
            };
            let Ok(mut ranges) = self.dwarf.unit_ranges(&skeleton) else {
                continue;
            };
            while let Ok(Some(range)) = ranges.next() {
                // Code that the linker removed keeps its size and begins at 0.
                if range.begin > 0 && range.begin < range.end {
                    code.push(CodeRange {
                        begin: range.begin,
                        end: range.end,
                        end_max: 0,
                        unit,
                    });
                }
            }
        }
        code.sort_by_key(|range| (range.begin, range.end, range.unit));
        let mut end_max = 0;
        for range in &mut code {
            end_max = end_max.max(range.end);
            range.end_max = end_max;
        }
        code
    }

    /// The entry that an attribute of an entry of `unit` refers to.
    pub(crate) fn referred(&self, unit: usize, value: &AttributeValue<Reader>) -> Option<EntryId> {
        match *value {
            AttributeValue::UnitRef(offset) => Some(EntryId { unit, offset }),
            AttributeValue::DebugInfoRef(offset) => {
                let section_offset = UnitSectionOffset(offset.0);
                let after = self
                    .headers
                    .partition_point(|header| header.offset() <= section_offset);
                let unit = after.checked_sub(1)?;
                let offset = section_offset.to_unit_offset(&self.headers[unit])?;
                Some(EntryId { unit, offset })
            }
            _ => None,
        }
    }

    /// The entry that an attribute refers to.
    pub(crate) fn follow(&self, id: EntryId, entry: &Entry, name: gimli::DwAt) -> Option<EntryId> {
        self.referred(id.unit, &entry.attr_value(name)?)
    }

    /// An attribute of an entry, or of what it is an instance of (inlined, cloned) or completes (a declaration), and
    /// the entry that has it.
    pub(crate) fn inherited(
        &self,
        id: EntryId,
        name: gimli::DwAt,
    ) -> Option<(EntryId, AttributeValue<Reader>)> {
        let mut id = id;
        for _ in 0..REFERENCES_MAX {
            let entry = self.entry(id)?;
            if let Some(value) = entry.attr_value(name) {
                return Some((id, value));
            }
            id = self
                .follow(id, &entry, gimli::DW_AT_abstract_origin)
                .or_else(|| self.follow(id, &entry, gimli::DW_AT_specification))?;
        }
        None
    }

    pub(crate) fn text(&self, unit: usize, value: AttributeValue<Reader>) -> Option<String> {
        let unit = self.unit(unit)?;
        let text = unit.attr_string(value).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// The name that the source gives it, without where it is declared.
    pub(crate) fn name(&self, id: EntryId) -> Option<String> {
        let (id, value) = self.inherited(id, gimli::DW_AT_name)?;
        self.text(id.unit, value)
    }

    /// The name for the linker.
    pub(crate) fn linkage_name(&self, id: EntryId) -> Option<String> {
        let (id, value) = self
            .inherited(id, gimli::DW_AT_linkage_name)
            .or_else(|| self.inherited(id, gimli::DW_AT_MIPS_linkage_name))?;
        self.text(id.unit, value)
    }
}
