//! Symbol tables: the nearest function below an address.

use object::{Object, ObjectSymbol, SymbolKind};

use crate::location::Function;

/// Functions in the order of their addresses.
#[derive(Default, Debug)]
pub(crate) struct Symbols {
    functions: Vec<Symbol>,
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
    /// The functions of the symbol table, or of the dynamic one where that is all there is.
    pub(crate) fn read<'data>(file: &impl Object<'data>) -> Self {
        let mut functions: Vec<Symbol> = file
            .symbols()
            .filter_map(|symbol| function(&symbol))
            .collect();
        if functions.is_empty() {
            functions = file
                .dynamic_symbols()
                .filter_map(|symbol| function(&symbol))
                .collect();
        }
        functions.sort();
        functions.dedup_by_key(|symbol| symbol.address);
        Self { functions }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function that contains an address.
    pub(crate) fn find(&self, address: u64) -> Option<Function> {
        let after = self
            .functions
            .partition_point(|symbol| symbol.address <= address);
        let symbol = self.functions.get(after.checked_sub(1)?)?;
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
}

fn function<'data>(symbol: &impl ObjectSymbol<'data>) -> Option<Symbol> {
    if symbol.kind() != SymbolKind::Text || symbol.is_undefined() {
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
