//! Types of variables: how large, what they are called, and which field or element is at an offset.
//!
//! Misses: the variants of Rust's enums, of which only the program knows which one is there; a type of which a unit has
//! the declaration only.

use gimli::{AttributeValue, DwTag};

use crate::module::Reader;
use crate::units::{Entry, EntryId, Units};

/// Deeper types than people write; a circle otherwise.
const DEPTH_MAX: usize = 64;

/// A part of a variable.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Part {
    /// `.head[3].next`, empty for the whole.
    pub(crate) path: String,
    /// The type of that part.
    pub(crate) type_name: Option<String>,
    /// How far into the part.
    pub(crate) offset: u64,
    /// Whether the part is of a type that is only accessed atomically.
    pub(crate) atomic: bool,
}

/// The smallest named part that holds `size` bytes at `offset` of a type.
pub(crate) fn part(units: &Units, id: EntryId, offset: u64, size: u64) -> Part {
    let mut part = Part {
        offset,
        ..Part::default()
    };
    let mut id = id;
    for _ in 0..DEPTH_MAX {
        let Some(stripped) = strip(units, id) else {
            break;
        };
        part.atomic |= stripped.atomic;
        part.type_name = name(units, id);
        let Some(entry) = units.entry(stripped.id) else {
            break;
        };
        let inner = match entry.tag() {
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                if is_atomic_class(units, stripped.id) {
                    part.atomic = true;
                    break;
                }
                member(units, stripped.id, part.offset, size)
            }
            gimli::DW_TAG_array_type => element(units, stripped.id, &entry, part.offset, size),
            _ => None,
        };
        let Some(inner) = inner else { break };
        part.path.push_str(&inner.path);
        part.offset -= inner.starts;
        id = inner.type_id;
    }
    part
}

struct Inner {
    path: String,
    starts: u64,
    type_id: EntryId,
}

struct Stripped {
    id: EntryId,
    atomic: bool,
}

/// Without typedefs and qualifiers.
fn strip(units: &Units, id: EntryId) -> Option<Stripped> {
    let mut stripped = Stripped { id, atomic: false };
    for _ in 0..DEPTH_MAX {
        let entry = units.entry(stripped.id)?;
        stripped.atomic |= entry.tag() == gimli::DW_TAG_atomic_type;
        if !is_transparent(entry.tag()) {
            return Some(stripped);
        }
        stripped.id = units.follow(stripped.id, &entry, gimli::DW_AT_type)?;
    }
    None
}

fn is_transparent(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type
    )
}

/// `std::atomic<T>`, Rust's `AtomicU64` and their like: what is inside is the library's business.
fn is_atomic_class(units: &Units, id: EntryId) -> bool {
    const RUST: [&str; 11] = [
        "Bool", "I8", "I16", "I32", "I64", "Isize", "U8", "U16", "U32", "U64", "Usize",
    ];
    units.name(id).is_some_and(|name| {
        [
            "atomic<",
            "__atomic_base<",
            "atomic_flag",
            "__atomic_flag_base",
        ]
        .iter()
        .any(|start| name.starts_with(start))
            || name.strip_prefix("Atomic").is_some_and(|rest| {
                RUST.contains(&rest) || rest.starts_with("Ptr<") || rest.starts_with('<')
            })
    })
}

/// The member or base class that holds the bytes.
fn member(units: &Units, id: EntryId, offset: u64, size: u64) -> Option<Inner> {
    let unit = units.unit(id.unit)?;
    let mut tree = unit.entries_tree(Some(id.offset)).ok()?;
    let mut children = tree.root().ok()?.children();
    while let Ok(Some(child)) = children.next() {
        let entry = child.entry();
        let base = entry.tag() == gimli::DW_TAG_inheritance;
        if entry.tag() != gimli::DW_TAG_member && !base {
            continue;
        }
        // Static members are declared here and live elsewhere.
        if entry.has_attr(gimli::DW_AT_external) || entry.has_attr(gimli::DW_AT_declaration) {
            continue;
        }
        let Some(type_id) = units.follow(id, entry, gimli::DW_AT_type) else {
            continue;
        };
        let bits = bits(entry);
        let starts = match (number(entry, gimli::DW_AT_data_member_location), &bits) {
            (Some(starts), _) => starts,
            (None, Some(bits)) => bits.start / 8,
            // Members of a union, and the first of a struct, need not say so.
            (None, None) => 0,
        };
        let bytes = match &bits {
            Some(bits) => (bits.end.div_ceil(8)).saturating_sub(starts),
            None => byte_size(units, type_id)?,
        };
        let holds = starts <= offset && offset.checked_add(size)? <= starts.checked_add(bytes)?;
        if !holds {
            continue;
        }
        let name = entry
            .attr_value(gimli::DW_AT_name)
            .and_then(|value| units.text(id.unit, value));
        let path = match name {
            Some(name) if !base => member_path(units, id, &name),
            // A base class, or a struct without a name whose members are used as if they were the outer one's.
            _ => String::new(),
        };
        return Some(Inner {
            path,
            starts,
            type_id,
        });
    }
    None
}

/// Rust numbers the fields of tuples, and wraps what can change in a cell.
fn member_path(units: &Units, id: EntryId, name: &str) -> String {
    let number = name.strip_prefix("__");
    if let Some(number) = number.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
    {
        return format!(".{number}");
    }
    let is_cell = || {
        units.name(id).is_some_and(|class| {
            class.starts_with("UnsafeCell<") || class.starts_with("SyncUnsafeCell<")
        })
    };
    if name == "value" && is_cell() {
        return String::new();
    }
    format!(".{name}")
}

/// The bits of a bit field, from the start of the struct.
fn bits(entry: &Entry) -> Option<std::ops::Range<u64>> {
    let size = number(entry, gimli::DW_AT_bit_size)?;
    let start = number(entry, gimli::DW_AT_data_bit_offset)?;
    Some(start..start.checked_add(size)?)
}

/// The element that holds the bytes; of an array of arrays, the element of the innermost one.
fn element(units: &Units, id: EntryId, entry: &Entry, offset: u64, size: u64) -> Option<Inner> {
    let type_id = units.follow(id, entry, gimli::DW_AT_type)?;
    let bytes = byte_size(units, type_id).filter(|&bytes| bytes > 0)?;
    let index = offset / bytes;
    if offset.checked_add(size)? > index.checked_add(1)?.checked_mul(bytes)? {
        return None;
    }
    let counts = counts(units, id);
    let mut path = String::new();
    let mut rest = index;
    for position in 0..counts.len() {
        let inner: u64 = counts[position + 1..]
            .iter()
            .try_fold(1_u64, |product, count| product.checked_mul(*count))?;
        if inner == 0 {
            return None;
        }
        path.push_str(&format!("[{}]", rest / inner));
        rest %= inner;
    }
    Some(Inner {
        path,
        starts: index * bytes,
        type_id,
    })
}

/// How many elements each dimension of an array has; 0 where it is not known.
fn counts(units: &Units, id: EntryId) -> Vec<u64> {
    let mut counts = Vec::new();
    let Some(unit) = units.unit(id.unit) else {
        return counts;
    };
    let Ok(mut tree) = unit.entries_tree(Some(id.offset)) else {
        return counts;
    };
    let Ok(root) = tree.root() else { return counts };
    let mut children = root.children();
    while let Ok(Some(child)) = children.next() {
        let entry = child.entry();
        if entry.tag() != gimli::DW_TAG_subrange_type {
            continue;
        }
        let count = number(entry, gimli::DW_AT_count)
            .or_else(|| number(entry, gimli::DW_AT_upper_bound)?.checked_add(1));
        counts.push(count.unwrap_or(0));
    }
    counts
}

/// None where it is not known.
pub(crate) fn byte_size(units: &Units, id: EntryId) -> Option<u64> {
    let id = strip(units, id)?.id;
    let entry = units.entry(id)?;
    if let Some(size) = number(&entry, gimli::DW_AT_byte_size) {
        return Some(size);
    }
    match entry.tag() {
        gimli::DW_TAG_pointer_type
        | gimli::DW_TAG_reference_type
        | gimli::DW_TAG_rvalue_reference_type => Some(8),
        gimli::DW_TAG_array_type => {
            let element = units.follow(id, &entry, gimli::DW_AT_type)?;
            // Arrays of themselves would not end.
            let element_entry = strip(units, element)?;
            if element_entry.id == id {
                return None;
            }
            let bytes = number(&units.entry(element_entry.id)?, gimli::DW_AT_byte_size)
                .or_else(|| pointer_size(units, element_entry.id))?;
            counts(units, id)
                .iter()
                .try_fold(bytes, |size, count| size.checked_mul(*count))
        }
        _ => None,
    }
}

fn pointer_size(units: &Units, id: EntryId) -> Option<u64> {
    let tag = units.entry(id)?.tag();
    (tag == gimli::DW_TAG_pointer_type).then_some(8)
}

/// As the source has it, more or less: `const char *`, `struct node *[4]`.
pub(crate) fn name(units: &Units, id: EntryId) -> Option<String> {
    named(units, id, 0)
}

fn named(units: &Units, id: EntryId, depth: usize) -> Option<String> {
    if depth > DEPTH_MAX {
        return None;
    }
    let entry = units.entry(id)?;
    let inner = |depth| match units.follow(id, &entry, gimli::DW_AT_type) {
        Some(inner) => named(units, inner, depth),
        // Nothing is what `void` is.
        None => Some("void".to_owned()),
    };
    let own = || {
        let value = entry.attr_value(gimli::DW_AT_name)?;
        units.text(id.unit, value)
    };
    match entry.tag() {
        gimli::DW_TAG_const_type => Some(qualified("const", inner(depth + 1)?)),
        gimli::DW_TAG_volatile_type => Some(qualified("volatile", inner(depth + 1)?)),
        gimli::DW_TAG_atomic_type => Some(qualified("_Atomic", inner(depth + 1)?)),
        gimli::DW_TAG_restrict_type => inner(depth + 1),
        gimli::DW_TAG_pointer_type => own().or_else(|| {
            let target = inner(depth + 1)?;
            let space = if target.ends_with('*') { "" } else { " " };
            Some(format!("{target}{space}*"))
        }),
        gimli::DW_TAG_reference_type => Some(format!("{} &", inner(depth + 1)?)),
        gimli::DW_TAG_rvalue_reference_type => Some(format!("{} &&", inner(depth + 1)?)),
        gimli::DW_TAG_array_type => {
            let mut name = inner(depth + 1)?;
            for count in counts(units, id) {
                name.push_str(&format!("[{count}]"));
            }
            Some(name)
        }
        gimli::DW_TAG_subroutine_type => Some("function".to_owned()),
        gimli::DW_TAG_structure_type if is_c(units, id.unit) => {
            Some(own().map_or_else(|| "struct".to_owned(), |name| format!("struct {name}")))
        }
        gimli::DW_TAG_union_type if is_c(units, id.unit) => {
            Some(own().map_or_else(|| "union".to_owned(), |name| format!("union {name}")))
        }
        _ => own(),
    }
}

/// Qualifiers of a pointer come after the star.
fn qualified(word: &str, name: String) -> String {
    if name.ends_with('*') {
        format!("{name} {word}")
    } else {
        format!("{word} {name}")
    }
}

fn is_c(units: &Units, unit: usize) -> bool {
    let Some(unit) = units.unit(unit) else {
        return false;
    };
    let Ok(root) = unit.entry(unit.header.root_offset()) else {
        return false;
    };
    let language = match root.attr_value(gimli::DW_AT_language) {
        Some(AttributeValue::Language(language)) => language,
        _ => return false,
    };
    matches!(
        language,
        gimli::DW_LANG_C
            | gimli::DW_LANG_C89
            | gimli::DW_LANG_C99
            | gimli::DW_LANG_C11
            | gimli::DW_LANG_C17
    )
}

fn number(entry: &Entry, name: gimli::DwAt) -> Option<u64> {
    entry
        .attr_value(name)
        .as_ref()
        .and_then(AttributeValue::<Reader>::udata_value)
}
