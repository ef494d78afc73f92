//! What is known of a place, and how it is shown.

use std::fmt;
use std::path::PathBuf;

/// A place in a binary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The binary.
    pub module: PathBuf,
    /// Where in its file, if it is in the file at all.
    pub file_offset: Option<u64>,
    /// The innermost inlined function first, the function that is really there last. Empty where nothing is known.
    pub frames: Vec<Frame>,
}

/// A function at a place; more than one where functions were inlined.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frame {
    /// The function.
    pub function: Option<Function>,
    /// The source line.
    pub source: Option<Source>,
}

/// A function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name, demangled.
    pub name: String,
    /// How far into the function the place is, where the symbol table is all that is known.
    pub offset: Option<u64>,
}

/// A source line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// The file as the compiler called it.
    pub file: String,
    /// From 1, where known.
    pub line: Option<u32>,
    /// From 1, where known.
    pub column: Option<u32>,
}

impl Location {
    /// The function that the code is in, without what was inlined into it.
    #[must_use]
    pub fn function(&self) -> Option<&Function> {
        self.frames.last().and_then(|frame| frame.function.as_ref())
    }

    /// The source line of the instruction itself.
    #[must_use]
    pub fn source(&self) -> Option<&Source> {
        self.frames.first().and_then(|frame| frame.source.as_ref())
    }
}

/// `function at file:line:column`, `function+0x12 in module`, or `module+0x1234`. Inlined callers are left out.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frame = self.frames.first();
        let function = frame.and_then(|frame| frame.function.as_ref());
        match (function, self.source()) {
            (Some(function), Some(source)) => write!(f, "{function} at {source}"),
            (None, Some(source)) => write!(f, "{source}"),
            (Some(function), None) => write!(f, "{function} in {}", self.module.display()),
            (None, None) => match self.file_offset {
                Some(offset) => write!(f, "{}+{offset:#x}", self.module.display()),
                None => write!(f, "{}", self.module.display()),
            },
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            None | Some(0) => f.write_str(&self.name),
            Some(offset) => write!(f, "{}+{offset:#x}", self.name),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column]
            .into_iter()
            .map_while(|number| number)
        {
            write!(f, ":{number}")?;
        }
        Ok(())
    }
}
