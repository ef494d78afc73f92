//! Symbol tables: the nearest function or variable below an address.

use object::{Object, ObjectSymbol, SymbolKind};

use crate::location::Function;

/// Functions and variables in the order of their addresses.
#[derive(Default, Debug)]
pub(crate) struct Symbols {
    functions: Vec<Symbol>,
    data: Vec<Symbol>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Symbol {
    address: u64,
    /// Smaller is better among symbols of one address: sized before unsized, global before local.
    rank: (bool, bool),
    size: u64,
    name: String,
}

impl Symbols {
    /// The symbols of the symbol table, or of the dynamic one where that is all there is.
    pub(crate) fn read<'data>(file: &impl Object<'data>) -> Self {
        Self {
            functions: of_kind(file, SymbolKind::Text),
            data: of_kind(file, SymbolKind::Data),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function that contains an address.
    pub(crate) fn find(&self, address: u64) -> Option<Function> {
        let symbol = below(&self.functions, address)?;
        let offset = address - symbol.address;
        // Assembly often states no size; then a function reaches to the next one.
        if symbol.size > 0 && offset >= symbol.size {
            return None;
        }
        Some(Function {
            name: addr2line::demangle_auto(symbol.name.as_str().into(), None).into_owned(),
            offset: Some(offset),
        })
    }

    /// The variable that contains an address, how far into it that is, and its size.
    pub(crate) fn find_data(&self, address: u64) -> Option<(String, u64, u64)> {
        let symbol = below(&self.data, address)?;
        let offset = address - symbol.address;
        let name = addr2line::demangle_auto(symbol.name.as_str().into(), None).into_owned();
        (offset < symbol.size).then_some((name, offset, symbol.size))
    }
}

fn below(symbols: &[Symbol], address: u64) -> Option<&Symbol> {
    let after = symbols.partition_point(|symbol| symbol.address <= address);
    symbols.get(after.checked_sub(1)?)
}

fn of_kind<'data>(file: &impl Object<'data>, kind: SymbolKind) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = file
        .symbols()
        .filter_map(|symbol| defined(&symbol, kind))
        .collect();
    if symbols.is_empty() {
        symbols = file
            .dynamic_symbols()
            .filter_map(|symbol| defined(&symbol, kind))
            .collect();
    }
    symbols.sort();
    symbols.dedup_by_key(|symbol| symbol.address);
    symbols
}

fn defined<'data>(symbol: &impl ObjectSymbol<'data>, kind: SymbolKind) -> Option<Symbol> {
    if symbol.kind() != kind || symbol.is_undefined() {
        return None;
    }
    let name = symbol.name().ok().filter(|name| !name.is_empty())?;
    Some(Symbol {
        address: symbol.address(),
        rank: (symbol.size() == 0, symbol.is_local()),
        size: symbol.size(),
        name: name.to_owned(),
    })
}
