//! Whether a plain instruction is one half of an atomic operation. On x86-64 an atomic load, and a store that is not
//! sequentially consistent, are ordinary `mov`s; only debug information can tell them from racing accesses.
//!
//! Three rules, in this order:
//! 1. A function of a library's atomics is in the inline chain: `std::atomic<T>::load`, `core::sync::atomic::atomic_load`.
//!    The order is the constant that its parameter has there; of Rust's also the line, since each order has its own.
//! 2. The source text at the line and column is an atomic builtin or C11 macro: `__atomic_load_n(&x, __ATOMIC_ACQUIRE)`.
//! 3. The variable is of an atomic type (C11 `_Atomic`): a question of the datum, not of the
//!    instruction, and answered by [`crate::Variable::atomic`].
//!
//! Misses: builtins on a line whose source is not at hand; orders that are passed at run time, as every order of C++ is
//! without optimisation (None then). May be wrong: a pointer read to find what the builtin acts on, on the same column.

use std::path::Path;

use gimli::{AttributeValue, Operation, Reader as _};
use verdict_events::MemoryOrder;

use crate::debug::Debug;
use crate::functions::{Scope, scopes};
use crate::module::Reader;
use crate::source_atomic;
use crate::source_text::SourceTexts;
use crate::units::{EntryId, Units};

/// An access that is atomic although its instruction does not show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AtomicAccess {
    /// Its memory order, where known.
    pub order: Option<MemoryOrder>,
    /// How that was found out, as the end of a sentence: `it is in std::atomic<int>::load`.
    pub how: String,
}

pub(crate) fn at(debug: &Debug, texts: &mut SourceTexts, address: u64) -> Option<AtomicAccess> {
    by_functions(debug, address).or_else(|| by_source(debug, texts, address))
}

fn by_functions(debug: &Debug, address: u64) -> Option<AtomicAccess> {
    let units = debug.units();
    let scopes = scopes(units, address);
    let atomic: Vec<(Operator, &Scope)> = scopes
        .iter()
        .rev()
        .filter(|scope| scope.tag != gimli::DW_TAG_lexical_block)
        .filter_map(|scope| Some((Operator::of(&full_name(units, scope.id)?)?, scope)))
        .collect();
    let (innermost, _) = atomic.first()?;
    let order = atomic
        .iter()
        .find_map(|(operator, scope)| parameter_order(units, operator, scope.id, address))
        .or_else(|| rust_arm(debug, units, &atomic, address))
        .or_else(|| implied_order(&atomic));
    Some(AtomicAccess {
        order,
        how: format!("it is in {}", innermost.shown),
    })
}

/// With namespaces and classes, or as good as it gets. None where it cannot be an operation on an atomic: most are none,
/// and demangling is most of the work.
fn full_name(units: &Units, id: EntryId) -> Option<String> {
    let name = units.linkage_name(id).or_else(|| units.name(id))?;
    name.contains("atomic")
        .then(|| addr2line::demangle_auto(name.into(), None).into_owned())
}

/// A function of a library's atomics.
struct Operator {
    library: Library,
    /// `load`, `operator=`, `atomic_store`
    name: String,
    /// For people.
    shown: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Library {
    Cpp,
    Rust,
}

/// Class templates and namespaces of C++ libraries whose members are atomic, without their arguments.
const CPP_CLASSES: [&str; 7] = [
    "std::atomic::",
    "std::__atomic_base::",
    "std::__atomic_impl::",
    "std::__atomic_ref::",
    "std::atomic_ref::",
    "std::atomic_flag::",
    "std::__atomic_flag_base::",
];
/// C++ functions outside of classes start like this.
const CPP_FUNCTIONS: [&str; 3] = ["std::atomic_", "std::__cxx_atomic_", "std::__atomic_"];
/// Members that load or store. The others either change a value in one go, which the instruction shows, and then what
/// they do in plain instructions is not atomic; or they construct, initialise and ask.
const CPP_MEMBERS: [&str; 5] = ["load", "store", "clear", "test", "operator="];

impl Operator {
    fn of(name: &str) -> Option<Self> {
        Self::of_rust(name).or_else(|| Self::of_cpp(name))
    }

    fn of_rust(full: &str) -> Option<Self> {
        // `<core::sync::atomic::AtomicU64>::load` in the newer mangling.
        let path = full.trim_start_matches('<');
        let rest = path.strip_prefix("core::sync::atomic::")?;
        let name = without_arguments(rest);
        let name = name.rsplit("::").find(|part| !part.is_empty())?;
        ["load", "store", "atomic_load", "atomic_store"]
            .contains(&name)
            .then(|| Self {
                library: Library::Rust,
                name: name.to_owned(),
                shown: full.to_owned(),
            })
    }

    fn of_cpp(full: &str) -> Option<Self> {
        let plain = without_arguments(full).replace("std::__1::", "std::");
        let name = CPP_CLASSES.iter().find_map(|class| {
            let at = plain.find(class)?;
            let name = plain[at + class.len()..].trim_end_matches(" const").trim();
            // A conversion to the type of the value is a load.
            let accesses = CPP_MEMBERS.contains(&name) || name.starts_with("operator ");
            accesses.then_some(name)
        });
        let name = name.or_else(|| {
            let starts = CPP_FUNCTIONS.iter().find_map(|start| plain.find(start))?;
            let name = &plain[starts + "std::".len()..];
            (name.contains("_load") || name.contains("_store") || name.contains("_clear"))
                .then_some(name)
        })?;
        Some(Self {
            library: Library::Cpp,
            name: name.to_owned(),
            shown: without_parameters(full).to_owned(),
        })
    }
}

/// Without template arguments and parameters: `std::atomic<int>::load(std::memory_order) const` is
/// `std::atomic::load const`.
fn without_arguments(name: &str) -> String {
    let mut depth = 0_u32;
    let mut plain = String::new();
    for letter in name.chars() {
        match letter {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    plain
}

fn without_parameters(name: &str) -> &str {
    match name.rfind('(') {
        Some(at) => &name[..at],
        None => name,
    }
}

/// The constant that the parameter for the order has in this instance of the function.
fn parameter_order(
    units: &Units,
    operator: &Operator,
    id: EntryId,
    address: u64,
) -> Option<MemoryOrder> {
    let unit = units.unit(id.unit)?;
    let mut tree = unit.entries_tree(Some(id.offset)).ok()?;
    let mut children = tree.root().ok()?.children();
    while let Ok(Some(child)) = children.next() {
        let entry = child.entry();
        if entry.tag() != gimli::DW_TAG_formal_parameter {
            continue;
        }
        let parameter = EntryId {
            unit: id.unit,
            offset: entry.offset(),
        };
        let name = units.name(parameter)?;
        if !["__m", "order", "__order", "__memory_order"].contains(&name.as_str()) {
            continue;
        }
        let value = match entry.attr_value(gimli::DW_AT_const_value) {
            Some(value) => value.udata_value(),
            None => {
                let location = entry.attr_value(gimli::DW_AT_location)?;
                constant_at(units, id.unit, location, address)
            }
        };
        return order_of(operator.library, value?);
    }
    None
}

/// What a location says, if it says that the value is a constant at this address.
fn constant_at(
    units: &Units,
    unit: usize,
    location: AttributeValue<Reader>,
    address: u64,
) -> Option<u64> {
    let unit = units.unit(unit)?;
    if let Some(expression) = location.exprloc_value() {
        return constant(expression, unit.encoding());
    }
    let mut list = unit.attr_locations(location).ok()??;
    while let Ok(Some(entry)) = list.next() {
        if (entry.range.begin..entry.range.end).contains(&address) {
            return constant(entry.data, unit.encoding());
        }
    }
    None
}

fn constant(expression: gimli::Expression<Reader>, encoding: gimli::Encoding) -> Option<u64> {
    let mut operations = expression.operations(encoding);
    match operations.next().ok()?? {
        Operation::UnsignedConstant { value } => Some(value),
        Operation::SignedConstant { value } => u64::try_from(value).ok(),
        Operation::ImplicitValue { data } => Some(u64::from(*data.to_slice().ok()?.first()?)),
        _ => None,
    }
}

/// As the libraries number them.
fn order_of(library: Library, value: u64) -> Option<MemoryOrder> {
    use MemoryOrder::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    let orders: &[MemoryOrder] = match library {
        // The second is `consume`, which every compiler treats as `acquire`.
        Library::Cpp => &[Relaxed, Acquire, Acquire, Release, AcqRel, SeqCst],
        Library::Rust => &[Relaxed, Release, Acquire, AcqRel, SeqCst],
    };
    orders.get(usize::try_from(value).ok()?).copied()
}

/// Rust's `atomic_load` and `atomic_store` match on the order, an arm a line from the fourth line on, in an order that
/// has never changed. So the line tells the order where nothing else does: in unoptimised code, and in the standard
/// library, whose debug information has no parameters.
fn rust_arm(
    debug: &Debug,
    units: &Units,
    atomic: &[(Operator, &Scope)],
    address: u64,
) -> Option<MemoryOrder> {
    const FIRST_ARM: u64 = 4;
    let (operator, scope) = atomic.first()?;
    let ordered = match operator.name.as_str() {
        "atomic_load" => MemoryOrder::Acquire,
        "atomic_store" => MemoryOrder::Release,
        _ => return None,
    };
    let (_, declared) = units.inherited(scope.id, gimli::DW_AT_decl_line)?;
    let line = debug.source(address)?.line?;
    match u64::from(line).checked_sub(declared.udata_value()? + FIRST_ARM)? {
        0 => Some(MemoryOrder::Relaxed),
        1 => Some(ordered),
        2 => Some(MemoryOrder::SeqCst),
        _ => None,
    }
}

/// Conversions and assignments have no parameter for the order.
fn implied_order(atomic: &[(Operator, &Scope)]) -> Option<MemoryOrder> {
    let implied = |operator: &Operator| {
        operator.library == Library::Cpp && operator.name.starts_with("operator")
    };
    atomic
        .iter()
        .any(|(operator, _)| implied(operator))
        .then_some(MemoryOrder::SeqCst)
}

fn by_source(debug: &Debug, texts: &mut SourceTexts, address: u64) -> Option<AtomicAccess> {
    let source = debug.source(address)?;
    let text = texts.from(Path::new(&source.file), source.line?)?;
    let found = source_atomic::find(text, source.column)?;
    Some(AtomicAccess {
        order: found.order,
        how: format!("the source calls {}", found.name),
    })
}
