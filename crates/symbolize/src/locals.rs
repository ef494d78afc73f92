//! Variables in stack frames.
//!
//! Misses: variables whose place the compiler computes by more than the frame's address and a constant, and those
//! that live in registers, which nobody else can access.

use gimli::{AttributeValue, Operation, Reader as _};

use crate::functions::scopes;
use crate::module::Reader;
use crate::types;
use crate::units::{EntryId, Units};
use crate::unwind::CalledFrame;
use crate::variables::{self, Variable};

/// The variable of a frame that holds an address. `code` is the frame's place as the module was linked.
pub(crate) fn find(
    units: &Units,
    frame: &CalledFrame,
    code: u64,
    address: u64,
    size: u64,
) -> Option<Variable> {
    let scopes = scopes(units, code);
    let function = scopes.first()?.id;
    let base = frame_base(units, function, frame)?;
    // Inner blocks first: the compiler may give several blocks the same place, and the thread is in these.
    scopes
        .iter()
        .rev()
        .flat_map(|scope| variables_of(units, scope.id))
        .find_map(|id| {
            let starts = base.checked_add_signed(offset_in_frame(units, id, code)?)?;
            let type_id = variables::type_of(units, id)?;
            let offset = address.checked_sub(starts)?;
            (offset < types::byte_size(units, type_id)?)
                .then(|| variables::describe(units, id, type_id, offset, size, None))
        })
}

fn variables_of(units: &Units, scope: EntryId) -> Vec<EntryId> {
    let mut ids = Vec::new();
    let Some(unit) = units.unit(scope.unit) else {
        return ids;
    };
    let Ok(mut tree) = unit.entries_tree(Some(scope.offset)) else {
        return ids;
    };
    let Ok(root) = tree.root() else { return ids };
    let mut children = root.children();
    while let Ok(Some(child)) = children.next() {
        let tag = child.entry().tag();
        if matches!(tag, gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter) {
            ids.push(EntryId {
                unit: scope.unit,
                offset: child.entry().offset(),
            });
        }
    }
    ids
}

/// What offsets in the frame count from.
fn frame_base(units: &Units, function: EntryId, frame: &CalledFrame) -> Option<u64> {
    let entry = units.entry(function)?;
    let AttributeValue::Exprloc(expression) = entry.attr_value(gimli::DW_AT_frame_base)? else {
        return None;
    };
    let unit = units.unit(function.unit)?;
    match expression.operations(unit.encoding()).next().ok()?? {
        Operation::CallFrameCFA => frame.end,
        Operation::Register { register } => frame.state.register(register),
        Operation::RegisterOffset {
            register, offset, ..
        } => frame.state.register(register)?.checked_add_signed(offset),
        _ => None,
    }
}

/// Where a variable is from the frame's base, while the thread is at `code`.
fn offset_in_frame(units: &Units, id: EntryId, code: u64) -> Option<i64> {
    let location = units.entry(id)?.attr_value(gimli::DW_AT_location)?;
    let unit = units.unit(id.unit)?;
    if let AttributeValue::Exprloc(expression) = location {
        return frame_offset(expression, unit.encoding());
    }
    let mut list = unit.attr_locations(location).ok()??;
    while let Ok(Some(entry)) = list.next() {
        if (entry.range.begin..entry.range.end).contains(&code) {
            return frame_offset(entry.data, unit.encoding());
        }
    }
    None
}

fn frame_offset(expression: gimli::Expression<Reader>, encoding: gimli::Encoding) -> Option<i64> {
    // The whole expression must be the one operation: what follows would read memory or compute a value.
    if expression.0.is_empty() {
        return None;
    }
    let mut operations = expression.operations(encoding);
    match (operations.next().ok()??, operations.next().ok()?) {
        (Operation::FrameOffset { offset }, None) => Some(offset),
        _ => None,
    }
}
