//! Races that somebody suspects: two source lines, as typed.

use crate::Modules;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess,
    Register,
};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use verdict_symbolize::Symbolizer;

/// A line of a source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceLine {
    /// The file; folders in front may be left out.
    pub file: PathBuf,
    /// From 1.
    pub line: u32,
}

/// Two lines that may race.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinePair(pub [SourceLine; 2]);

/// Two lines that belong together, and one that may come between.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineTriple(pub [SourceLine; 3]);

/// Why lines are no candidate.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum LineError {
    /// It is not written as it should be.
    #[error("`{text}` is not a pair of lines; write it as `file.c:12,file.c:40`")]
    Syntax {
        /// What was written.
        text: String,
    },
    /// Three lines are not written as they should be.
    #[error("`{text}` is not three lines; write them as `file.c:12,file.c:14,file.c:40`")]
    TripleSyntax {
        /// What was written.
        text: String,
    },
    /// No code comes from the file.
    #[error(
        "no code of the program comes from {file}, as far as its debug information says; name the file as the compiler was given it, and build with -g"
    )]
    UnknownFile {
        /// The file.
        file: String,
    },
    /// The file has code, the line has none.
    #[error(
        "there is no code of line {line}; the line may be a declaration, a comment, or optimised away"
    )]
    NoCode {
        /// The line.
        line: String,
    },
    /// The line has code that accesses no memory and calls nothing.
    #[error("the code of line {line} accesses no memory")]
    NoAccess {
        /// The line.
        line: String,
    },
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

impl fmt::Display for LinePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LinePair([first, second]) = self;
        write!(f, "{first},{second}")
    }
}

impl FromStr for LinePair {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Self, LineError> {
        lines(text).map(LinePair).ok_or_else(|| LineError::Syntax {
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for LineTriple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LineTriple([first, second, third]) = self;
        write!(f, "{first},{second},{third}")
    }
}

impl FromStr for LineTriple {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Self, LineError> {
        let triple = lines(text).map(LineTriple);
        triple.ok_or_else(|| LineError::TripleSyntax {
            text: text.to_owned(),
        })
    }
}

/// So many lines, separated by commas.
fn lines<const COUNT: usize>(text: &str) -> Option<[SourceLine; COUNT]> {
    let line = |text: &str| {
        let (file, line) = text.rsplit_once(':')?;
        let line: u32 = line.parse().ok().filter(|line| *line > 0)?;
        (!file.is_empty()).then(|| SourceLine {
            file: PathBuf::from(file),
            line,
        })
    };
    let lines: Option<Vec<SourceLine>> = text.split(',').map(line).collect();
    lines?.try_into().ok()
}

/// The code of a line that may access shared memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct LineSite {
    /// Instructions, where they are in memory.
    pub(crate) pcs: BTreeSet<u64>,
    /// The module and the offset in its file of the first of them.
    pub(crate) place: (PathBuf, u64),
    /// One of them may write, or calls something that may.
    pub(crate) writes: bool,
    /// No instruction of the line writes anything at all, not even to the thread's own stack.
    pub(crate) only_reads: bool,
}

/// The site that a line is.
pub(crate) fn site(
    modules: &Modules,
    symbolizer: &mut Symbolizer,
    line: &SourceLine,
) -> Result<LineSite, LineError> {
    let mut file_known = false;
    let mut has_code = false;
    let mut site = LineSite::default();
    for module in modules.own_first() {
        let code = symbolizer.code_of_line(&module, &line.file, line.line);
        file_known |= code.file_known;
        has_code |= !code.parts.is_empty();
        if code.parts.is_empty() {
            continue;
        }
        let instructions = decode(&module, &code.parts);
        site.only_reads = !instructions.iter().any(may_write);
        for instruction in worth_watching(&instructions) {
            let Some(pc) = modules.loaded(&module, instruction.ip()) else {
                continue;
            };
            if site.pcs.is_empty() {
                site.place = (module.clone(), instruction.ip());
            }
            site.pcs.insert(pc);
            site.writes |= may_write(instruction);
        }
        break;
    }
    let error = match (file_known, has_code) {
        (false, _) => LineError::UnknownFile {
            file: line.file.display().to_string(),
        },
        (true, false) => LineError::NoCode {
            line: line.to_string(),
        },
        (true, true) => LineError::NoAccess {
            line: line.to_string(),
        },
    };
    if site.pcs.is_empty() {
        Err(error)
    } else {
        Ok(site)
    }
}

/// The instructions in parts of a file, with their offsets in it as addresses.
fn decode(module: &Path, parts: &[std::ops::Range<u64>]) -> Vec<Instruction> {
    let bytes = fs::read(module).unwrap_or_default();
    let mut found = Vec::new();
    for part in parts {
        let Some(code) = bytes.get(part.start as usize..part.end as usize) else {
            continue;
        };
        let decoder = Decoder::with_ip(64, code, part.start, DecoderOptions::NONE);
        found.extend(decoder.into_iter().filter(|next| !next.is_invalid()));
    }
    found
}

/// What may access memory that others see: calls, and operands that are not on the thread's own stack; if there are none
/// of these, all that accesses memory, since a stack can be shared, too.
fn worth_watching(instructions: &[Instruction]) -> Vec<&Instruction> {
    let shared: Vec<&Instruction> = instructions
        .iter()
        .filter(|next| is_call(next) || !accesses(next, Accesses::OffStack).is_empty())
        .collect();
    if !shared.is_empty() {
        return shared;
    }
    instructions
        .iter()
        .filter(|next| !accesses(next, Accesses::Any).is_empty())
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Accesses {
    Any,
    OffStack,
    Written,
}

fn accesses(instruction: &Instruction, which: Accesses) -> Vec<iced_x86::UsedMemory> {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_memory().to_vec();
    let wanted = |used: &iced_x86::UsedMemory| match which {
        Accesses::Any => !matches!(used.access(), OpAccess::None | OpAccess::NoMemAccess),
        Accesses::OffStack => !matches!(used.base(), Register::RSP | Register::RBP),
        Accesses::Written => matches!(
            used.access(),
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        ),
    };
    let real = |used: &iced_x86::UsedMemory| {
        !matches!(used.access(), OpAccess::None | OpAccess::NoMemAccess)
    };
    used.into_iter().filter(real).filter(wanted).collect()
}

fn may_write(instruction: &Instruction) -> bool {
    is_call(instruction)
        || instruction.code() == Code::Syscall
        || !accesses(instruction, Accesses::Written).is_empty()
}

fn is_call(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_read_as_it_is_written() {
        let pair: LinePair = "src/queue.c:12,queue.c:40".parse().unwrap();
        assert_eq!(pair.to_string(), "src/queue.c:12,queue.c:40");
        assert_eq!(pair.0[1].line, 40);
        for bad in [
            "",
            "queue.c:12",
            "queue.c:12,queue.c",
            "a.c:0,a.c:1",
            ":1,:2",
            "a:1,b:x",
        ] {
            let error = bad.parse::<LinePair>().unwrap_err();
            assert!(error.to_string().contains("file.c:12,file.c:40"), "{bad}");
        }
    }

    #[test]
    fn three_lines_are_three() {
        let triple: LineTriple = "a.c:1,src/a.c:2,b.c:3".parse().unwrap();
        assert_eq!(triple.to_string(), "a.c:1,src/a.c:2,b.c:3");
        for bad in ["a.c:1,a.c:2", "a.c:1,a.c:2,a.c:3,a.c:4", "a.c:1,a.c:2,"] {
            let error = bad.parse::<LineTriple>().unwrap_err();
            assert!(error.to_string().contains("is not three lines"), "{bad}");
        }
    }
}
