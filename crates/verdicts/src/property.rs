//! What shall hold, as the user writes it: C-like expressions over global variables, and functions of the program with the
//! right name.
//!
//! Operators and their precedence are C's; values are exact, so that nothing wraps. There are no calls, no assignments, no
//! pointers.

use crate::Modules;
use crate::modules::Symbol;
use crate::names::Names;
use object::{Object, ObjectSymbol, SymbolKind};
use verdict_protocol::{Binary, Check, Property, PropertyStep, Unary};

/// Functions whose names begin so are asked whether all is well.
const INVARIANT: &str = "verdict_invariant_";
/// Deepest nesting of an expression.
const DEPTH_MAX: usize = 100;

/// Why an expression is no property.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum PropertyError {
    /// It is not written as it should be.
    #[error("`{text}` is no property: {expected} is missing at column {column}")]
    Syntax {
        /// What was written.
        text: String,
        /// What should come.
        expected: &'static str,
        /// From 1.
        column: usize,
    },
    /// There is no such variable.
    #[error(
        "`{text}` is no property: the program has no global variable `{name}` that a symbol tells of"
    )]
    Unknown {
        /// What was written.
        text: String,
        /// The variable.
        name: String,
    },
    /// The variable is no integer.
    #[error(
        "`{text}` is no property: `{name}` has {size} bytes, and only integers of 1, 2, 4 or 8 can be compared"
    )]
    Size {
        /// What was written.
        text: String,
        /// The variable.
        name: String,
        /// Its size.
        size: u64,
    },
}

/// Where a variable is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Variable {
    address: u64,
    size: u64,
    signed: bool,
}

/// The expressions, and the functions of the program that are properties.
pub(crate) fn properties(
    modules: &Modules,
    expressions: &[String],
) -> Result<Vec<Property>, PropertyError> {
    let mut names = Names::default();
    let find = &mut |name: &str| variable(modules, &mut names, name);
    let mut all = Vec::new();
    for text in expressions {
        all.push(Property {
            text: text.clone(),
            check: Check::Expression(parse(text, find)?),
        });
    }
    all.extend(invariants(modules));
    Ok(all)
}

/// Functions of the program's own file that say whether all is well.
fn invariants(modules: &Modules) -> Vec<Property> {
    let symbols = |binary: &object::File<'_>| -> Vec<Symbol> {
        let is_one = |name: &str| name.starts_with(INVARIANT);
        symbols(binary, SymbolKind::Text, &is_one)
    };
    let mut found: Vec<Property> = modules
        .symbols(&symbols)
        .into_iter()
        .map(|(text, address, _)| Property {
            text,
            check: Check::Function(address),
        })
        .collect();
    found.sort_by(|one, other| one.text.cmp(&other.text));
    found.dedup();
    found
}

/// The global variable of this name in the program's own file.
fn variable(modules: &Modules, names: &mut Names, name: &str) -> Option<Variable> {
    let symbols = |binary: &object::File<'_>| symbols(binary, SymbolKind::Data, &|n| n == name);
    let (_, address, size) = modules.symbols(&symbols).into_iter().next()?;
    let type_name = names.type_name(modules.mapped(), address);
    Some(Variable {
        address,
        size,
        signed: type_name.is_none_or(|name| is_signed(&name)),
    })
}

fn is_signed(type_name: &str) -> bool {
    let unsigned = ["unsigned", "uint", "size_t", "bool", "_Bool", "*", "&"];
    let rust = ["u8", "u16", "u32", "u64", "usize"];
    !unsigned.iter().any(|word| type_name.contains(word)) && !rust.contains(&type_name)
}

/// Names, addresses as linked and sizes of the symbols that are wanted.
fn symbols(
    binary: &object::File<'_>,
    kind: SymbolKind,
    wanted: &dyn Fn(&str) -> bool,
) -> Vec<Symbol> {
    binary
        .symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() == kind)
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| wanted(name))?;
            Some((name.to_owned(), symbol.address(), symbol.size()))
        })
        .collect()
}

fn parse(
    text: &str,
    find: &mut dyn FnMut(&str) -> Option<Variable>,
) -> Result<Vec<PropertyStep>, PropertyError> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
        steps: Vec::new(),
        find,
    };
    parser.binary(0)?;
    if parser.rest().is_empty() {
        Ok(parser.steps)
    } else {
        Err(parser.missing("an operator"))
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    steps: Vec<PropertyStep>,
    find: &'a mut dyn FnMut(&str) -> Option<Variable>,
}

/// Operators of two operands by precedence, the weakest first; longer ones come before those they begin with.
const LEVELS: [&[(&str, Binary)]; 9] = [
    &[("||", Binary::Or)],
    &[("&&", Binary::And)],
    &[("|", Binary::BitOr)],
    &[("^", Binary::BitXor)],
    &[("&", Binary::BitAnd)],
    &[("==", Binary::Equal), ("!=", Binary::NotEqual)],
    &[
        ("<=", Binary::LessOrEqual),
        (">=", Binary::GreaterOrEqual),
        ("<", Binary::Less),
        (">", Binary::Greater),
    ],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[
        ("*", Binary::Multiply),
        ("/", Binary::Divide),
        ("%", Binary::Remainder),
    ],
];

impl Parser<'_> {
    fn rest(&mut self) -> &str {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        &self.text[self.at..]
    }

    fn missing(&mut self, expected: &'static str) -> PropertyError {
        let before = self.text.len() - self.rest().len();
        PropertyError::Syntax {
            text: self.text.to_owned(),
            expected,
            column: self.text[..before].chars().count() + 1,
        }
    }

    fn binary(&mut self, level: usize) -> Result<(), PropertyError> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        self.binary(level + 1)?;
        while let Some(operator) = self.operator(operators) {
            self.binary(level + 1)?;
            self.steps.push(PropertyStep::Binary(operator));
        }
        Ok(())
    }

    fn operator(&mut self, operators: &[(&str, Binary)]) -> Option<Binary> {
        let rest = self.rest();
        // `&` and `|` alone are not the first halves of `&&` and `||`.
        let doubled = rest.starts_with("&&") || rest.starts_with("||");
        let (sign, operator) = operators
            .iter()
            .find(|(sign, _)| rest.starts_with(sign) && (sign.len() == 2 || !doubled))?;
        self.at += sign.len();
        Some(*operator)
    }

    fn unary(&mut self) -> Result<(), PropertyError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.missing("a simpler expression"));
        }
        let operator = match self.rest().chars().next() {
            Some('!') => Some(Unary::Not),
            Some('-') => Some(Unary::Negate),
            Some('~') => Some(Unary::Complement),
            _ => None,
        };
        let done = match operator {
            Some(operator) => {
                self.at += 1;
                self.unary()?;
                self.steps.push(PropertyStep::Unary(operator));
                Ok(())
            }
            None => self.operand(),
        };
        self.depth -= 1;
        done
    }

    fn operand(&mut self) -> Result<(), PropertyError> {
        if self.rest().starts_with('(') {
            self.at += 1;
            self.binary(0)?;
            if !self.rest().starts_with(')') {
                return Err(self.missing("`)`"));
            }
            self.at += 1;
            return Ok(());
        }
        let rest = self.rest();
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == '$';
        let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = rest[..len].to_owned();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = number(&word).ok_or_else(|| self.missing("a number"))?;
            self.at += len;
            self.steps.push(PropertyStep::Constant(number));
            return Ok(());
        }
        if word.is_empty() {
            return Err(self.missing("a variable or a number"));
        }
        self.at += len;
        self.load(word)
    }

    fn load(&mut self, name: String) -> Result<(), PropertyError> {
        let text = self.text.to_owned();
        let Some(variable) = (self.find)(&name) else {
            return Err(PropertyError::Unknown { text, name });
        };
        let size = variable.size;
        if !matches!(size, 1 | 2 | 4 | 8) {
            return Err(PropertyError::Size { text, name, size });
        }
        self.steps.push(PropertyStep::Load {
            address: variable.address,
            len: size as u8,
            signed: variable.signed,
        });
        Ok(())
    }
}

fn number(word: &str) -> Option<i64> {
    match word.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_protocol::is_true;

    /// `a` is 5, `b` is -1; `wide` has 16 bytes.
    fn find(name: &str) -> Option<Variable> {
        let (address, size) = match name {
            "a" => (5, 4),
            "b" => (0xff, 1),
            "wide" => (0, 16),
            _ => return None,
        };
        Some(Variable {
            address,
            size,
            signed: true,
        })
    }

    fn value(text: &str) -> Result<Option<bool>, PropertyError> {
        let read = |address: u64, bytes: &mut [u8]| {
            bytes[0] = address as u8;
            true
        };
        parse(text, &mut find).map(|steps| is_true(&steps, &read))
    }

    #[test]
    fn expressions_mean_what_they_mean_in_c() {
        for (text, expected) in [
            ("a == 5", true),
            ("a - 2 * 2 == 1", true),
            ("(a - 2) * 2 == 6", true),
            ("b < 0 && !(a < 0)", true),
            ("a & 4", true),
            ("a & 2 || b == -1", true),
            ("a & 1 == 1", true),
            ("a >= 6", false),
            ("10 - 3 - 2 == 5", true),
            ("-a + ~0 == -6", true),
            ("a == 0x5 && a != 6", true),
            ("a % 3 == 2 && a / 2 == 2", true),
        ] {
            assert_eq!(value(text), Ok(Some(expected)), "{text}");
        }
        assert_eq!(value("a / 0"), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let said = |text: &str| value(text).unwrap_err().to_string();
        assert_eq!(
            said("a +"),
            "`a +` is no property: a variable or a number is missing at column 4"
        );
        assert_eq!(
            said("(a == 5"),
            "`(a == 5` is no property: `)` is missing at column 8"
        );
        assert_eq!(
            said("a = 5"),
            "`a = 5` is no property: an operator is missing at column 3"
        );
        assert!(said("c > 0").contains("no global variable `c`"));
        assert!(said("wide > 0").contains("16 bytes"));
        assert!(said(&"(".repeat(500)).contains("a simpler expression"));
        assert!(said("").contains("column 1"));
        assert!(said("9999999999999999999999").contains("a number"));
    }
}
