//! Variables with a fixed place: globals, statics of functions and classes, thread-locals.
//!
//! Compilers index code by address, not data, so all units are read through once when a variable is first asked for.

use std::collections::BTreeMap;

use gimli::{AttributeValue, EntriesRaw, Operation, UnitOffset, UnitRef};

use crate::location::Source;
use crate::module::Reader;
use crate::types;
use crate::units::{EntryId, Units};

/// A variable, and which part of it was asked about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// With namespaces, field and element: `shop::queue.head[3].next`.
    pub name: String,
    /// The function that a static of a function belongs to.
    pub function: Option<String>,
    /// The type of the part, as the source has it.
    pub type_name: Option<String>,
    /// Where it is declared.
    pub declared: Option<Source>,
    /// The bytes of the whole variable, where known.
    pub size: Option<u64>,
    /// How far into the whole variable the bytes are.
    pub offset: u64,
    /// Whether the part is of a type that is only accessed atomically: `_Atomic int`, `std::atomic<int>`, `AtomicU64`.
    pub atomic: bool,
}

/// Where variables are.
#[derive(Default, Debug)]
pub(crate) struct VariableIndex {
    /// By linked address.
    globals: BTreeMap<u64, Placed>,
    /// By offset in the module's block of thread-local storage.
    thread_locals: BTreeMap<u64, Placed>,
}

/// A variable and the entries around it, the outermost first, without the unit itself.
#[derive(Debug)]
struct Placed {
    id: EntryId,
    around: Box<[UnitOffset]>,
}

enum Place {
    Global(u64),
    ThreadLocal(u64),
}

impl VariableIndex {
    pub(crate) fn read(units: &Units) -> Self {
        let mut index = Self::default();
        for number in 0..units.len() {
            if let Some(unit) = units.unit(number) {
                // What is in the units read so far stays where one makes no sense.
                let _ = index.read_unit(unit, number);
            }
        }
        index
    }

    fn read_unit(&mut self, unit: UnitRef<'_, Reader>, number: usize) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        let mut around = Around::default();
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            around.enter(depth, offset, abbreviation.has_children());
            let attributes = abbreviation.attributes();
            let placed = abbreviation.tag() == gimli::DW_TAG_variable
                && attributes
                    .iter()
                    .any(|attribute| attribute.name() == gimli::DW_AT_location);
            if !placed {
                entries.skip_attributes(attributes)?;
                continue;
            }
            if let Some(place) = place(&unit, &mut entries, attributes)? {
                let id = EntryId {
                    unit: number,
                    offset,
                };
                let placed = || Placed {
                    id,
                    around: around.outside(depth).collect(),
                };
                // Units that share a variable tell the same of it; the first is as good as any, and the same every time.
                match place {
                    Place::Global(address) => self.globals.entry(address).or_insert_with(placed),
                    Place::ThreadLocal(offset) => {
                        self.thread_locals.entry(offset).or_insert_with(placed)
                    }
                };
            }
        }
        Ok(())
    }

    pub(crate) fn global(&self, units: &Units, address: u64, size: u64) -> Option<Variable> {
        find(&self.globals, units, address, size)
    }

    pub(crate) fn thread_local(&self, units: &Units, offset: u64, size: u64) -> Option<Variable> {
        find(&self.thread_locals, units, offset, size)
    }
}

fn place(
    unit: &UnitRef<'_, Reader>,
    entries: &mut EntriesRaw<'_, Reader>,
    attributes: &[gimli::AttributeSpecification],
) -> gimli::Result<Option<Place>> {
    let mut place = None;
    for specification in attributes {
        let attribute = entries.read_attribute(*specification)?;
        if attribute.name() == gimli::DW_AT_location
            && let AttributeValue::Exprloc(expression) = attribute.value()
        {
            place = fixed_place(unit, expression);
        }
    }
    Ok(place)
}

fn fixed_place(unit: &UnitRef<'_, Reader>, expression: gimli::Expression<Reader>) -> Option<Place> {
    let mut operations = expression.operations(unit.encoding());
    let first = operations.next().ok()??;
    let second = operations.next().ok()?;
    let thread_local = matches!(second, Some(Operation::TLS));
    let value = match first {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } | Operation::ConstantIndex { index } => {
            unit.address(index).ok()?
        }
        Operation::UnsignedConstant { value } if thread_local => value,
        _ => return None,
    };
    match second {
        Some(Operation::TLS) => Some(Place::ThreadLocal(value)),
        // Variables that the linker removed are at 0.
        None => (value > 0).then_some(Place::Global(value)),
        // Rust and Fortran may add to an address.
        Some(Operation::PlusConstant { value: more }) => {
            Some(Place::Global(value.checked_add(more)?))
        }
        Some(_) => None,
    }
}

/// The last variable that starts at or before the place, if it reaches so far.
fn find(index: &BTreeMap<u64, Placed>, units: &Units, place: u64, size: u64) -> Option<Variable> {
    let (&start, placed) = index.range(..=place).next_back()?;
    let id = placed.id;
    let offset = place - start;
    let type_id = type_of(units, id)?;
    let whole = types::byte_size(units, type_id);
    // A flexible array at the end of the memory, or a type that only another unit knows: the first byte is its own.
    if offset > 0 && whole.is_none_or(|whole| offset >= whole) {
        return None;
    }
    let parents = Parents::of(units, placed);
    Some(describe(units, id, type_id, offset, size, Some(parents)))
}

/// Everything about a variable and a part of it. Variables of frames have no parents worth naming.
pub(crate) fn describe(
    units: &Units,
    id: EntryId,
    type_id: EntryId,
    offset: u64,
    size: u64,
    parents: Option<Parents>,
) -> Variable {
    let part = types::part(units, type_id, offset, size);
    let own = units.name(id).unwrap_or_else(|| "?".to_owned());
    let name = match &parents {
        // The linker's name of a static of a function has the whole signature of the function in it.
        Some(parents) if parents.function.is_none() => parents.qualify(units, id, own),
        _ => own,
    };
    Variable {
        name: name + &part.path,
        function: parents.and_then(|parents| parents.function),
        type_name: part.type_name,
        declared: declared(units, id),
        size: types::byte_size(units, type_id),
        offset,
        atomic: part.atomic,
    }
}

pub(crate) fn type_of(units: &Units, id: EntryId) -> Option<EntryId> {
    let (id, value) = units.inherited(id, gimli::DW_AT_type)?;
    units.referred(id.unit, &value)
}

/// What a variable is declared in.
#[derive(Default)]
pub(crate) struct Parents {
    /// Namespaces and classes, the outermost first.
    names: Vec<String>,
    function: Option<String>,
}

impl Parents {
    fn of(units: &Units, placed: &Placed) -> Self {
        // A member of a class that is defined outside of it is declared inside.
        let declaration = units
            .entry(placed.id)
            .and_then(|entry| units.follow(placed.id, &entry, gimli::DW_AT_specification));
        let around = match declaration {
            Some(declaration) => ancestors(units, declaration).unwrap_or_default(),
            None => in_unit(placed.id.unit, placed.around.iter().copied()),
        };
        let mut parents = Self::default();
        for parent in around {
            let Some(entry) = units.entry(parent) else {
                continue;
            };
            match entry.tag() {
                gimli::DW_TAG_namespace
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type => {
                    let name = units.name(parent);
                    parents
                        .names
                        .push(name.unwrap_or_else(|| "(anonymous namespace)".to_owned()));
                }
                gimli::DW_TAG_subprogram => parents.function = function_name(units, parent),
                _ => {}
            }
        }
        parents
    }

    fn qualify(&self, units: &Units, id: EntryId, own: String) -> String {
        match units.linkage_name(id) {
            Some(linked) => addr2line::demangle_auto(linked.into(), None).into_owned(),
            None if self.names.is_empty() => own,
            None => format!("{}::{own}", self.names.join("::")),
        }
    }
}

/// Demangled, and without parameters.
pub(crate) fn function_name(units: &Units, id: EntryId) -> Option<String> {
    let name = match units.linkage_name(id) {
        Some(name) => addr2line::demangle_auto(name.into(), None).into_owned(),
        None => units.name(id)?,
    };
    Some(name)
}

/// The entries around the one that is being read.
#[derive(Default)]
struct Around(Vec<(isize, UnitOffset)>);

impl Around {
    fn enter(&mut self, depth: isize, offset: UnitOffset, has_children: bool) {
        while self.0.last().is_some_and(|(above, _)| *above >= depth) {
            self.0.pop();
        }
        if has_children {
            self.0.push((depth, offset));
        }
    }

    /// Those around an entry of this depth, without the unit itself.
    fn outside(&self, depth: isize) -> impl Iterator<Item = UnitOffset> {
        let outside = self.0.iter().skip(1);
        outside
            .take_while(move |(above, _)| *above < depth)
            .map(|&(_, offset)| offset)
    }
}

fn in_unit(unit: usize, offsets: impl Iterator<Item = UnitOffset>) -> Vec<EntryId> {
    offsets.map(|offset| EntryId { unit, offset }).collect()
}

/// The entries around an entry, the outermost first, without the unit itself: the unit is read up to there.
fn ancestors(units: &Units, id: EntryId) -> Option<Vec<EntryId>> {
    let unit = units.unit(id.unit)?;
    let mut entries = unit.entries_raw(None).ok()?;
    let mut around = Around::default();
    while !entries.is_empty() {
        let (offset, depth) = (entries.next_offset(), entries.next_depth());
        let Some(abbreviation) = entries.read_abbreviation().ok()? else {
            continue;
        };
        around.enter(depth, offset, abbreviation.has_children());
        if offset == id.offset {
            return Some(in_unit(id.unit, around.outside(depth)));
        }
        entries.skip_attributes(abbreviation.attributes()).ok()?;
    }
    None
}

fn declared(units: &Units, id: EntryId) -> Option<Source> {
    let (file_id, file) = units.inherited(id, gimli::DW_AT_decl_file)?;
    let (_, line) = units.inherited(id, gimli::DW_AT_decl_line)?;
    let number = match file {
        AttributeValue::FileIndex(number) => number,
        other => other.udata_value()?,
    };
    let unit = units.unit(file_id.unit)?;
    let program = unit.line_program.as_ref()?;
    let header = program.header();
    let file = header.file(number)?;
    let text = |value| {
        let text = unit.attr_string(value).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    };
    let mut path = std::path::PathBuf::new();
    if let Some(folder) = &unit.comp_dir {
        path.push(&*String::from_utf8_lossy(folder));
    }
    if let Some(folder) = file.directory(header).and_then(text) {
        path.push(folder);
    }
    path.push(text(file.path_name())?);
    Some(Source {
        file: path.to_string_lossy().into_owned(),
        line: line.udata_value().and_then(|line| u32::try_from(line).ok()),
        column: None,
    })
}
