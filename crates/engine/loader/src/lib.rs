//! What `execve` would do with a program, as plain data.
//!
//! [`plan`] finds the program the way a shell does, follows `#!` lines, reads the ELF headers of the program and of its
//! interpreter, and answers with a [`LoadPlan`]: which pages to map where, and where to start. [`build_stack`] then lays
//! out the first stack. Nothing is mapped here; the executor carries the plan out.
//!
//! Departs from Linux where a run must be repeatable or safe: addresses come from a [`Layout`] instead of chance, there
//! is no vdso, and privileged, deleted or truncated programs are refused instead of run as far as they go.
#![forbid(unsafe_code)]

mod arguments;
mod elf;
mod error;
mod file;
mod image;
mod lookup;
mod script;
mod stack;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

pub use arguments::check_arguments;
pub use elf::ElfProblem;
pub use error::{LoadError, Privilege};
pub use file::ProgramFile;
pub use image::{ExecutableStack, Image, MappingSource, PAGE, PlannedMapping, Protection};
pub use lookup::Lookup;
pub use stack::{StackImage, StackInput, build_stack};

/// The kernel follows this many `#!` lines, one script interpreting the next, before it answers ELOOP.
const SCRIPTS_MAX: usize = 5;

/// What is to be run, in the user's words.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The program as typed.
    pub program: &'a [u8],
    /// How `program` names a file.
    pub lookup: Lookup<'a>,
    /// The argument vector, the program's own name first.
    pub argv: &'a [Vec<u8>],
    /// The environment, `NAME=value` each.
    pub env: &'a [Vec<u8>],
}

/// Where things may go in the guest's address space.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Where a position-independent program starts (rounded up to the alignment it asks for).
    pub pie_base: u64,
    /// Where the ELF interpreter starts (rounded up likewise).
    pub interp_base: u64,
    /// The first address an image may use.
    pub lowest: u64,
    /// The first address above everything an image may use.
    pub highest: u64,
    /// Ranges that belong to the engine: no image may touch them.
    pub reserved: Vec<std::ops::Range<u64>>,
    /// The size the stack may grow to. Arguments and environment may take a quarter of it.
    pub stack_limit: u64,
}

/// Everything needed to put a program into memory and start it.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// To be made in this order: where two overlap (segments that share a page), the later one wins.
    pub mappings: Vec<PlannedMapping>,
    /// Where the first instruction is: the interpreter's entry, or the program's where it has no interpreter.
    pub entry: u64,
    /// The program itself.
    pub program: Image,
    /// Its dynamic linker.
    pub interpreter: Option<Image>,
    /// The argument vector after `#!` lines have been followed.
    pub argv: Vec<Vec<u8>>,
    /// The path the kernel would call the program by (AT_EXECFN): the script, not its interpreter.
    pub execfn: Vec<u8>,
    /// What the program asks for its stack.
    pub stack: ExecutableStack,
}

/// Plans the loading of a program.
pub fn plan(request: &Request<'_>, layout: &Layout) -> Result<LoadPlan, LoadError> {
    let path = lookup::find(request.program, request.lookup)?;
    let execfn = path.as_os_str().as_encoded_bytes().to_vec();
    let resolved = follow_scripts(path, request.argv.to_vec())?;
    lookup::refuse_privileged(&resolved.file)?;
    check_arguments(&resolved.argv, request.env, &execfn, layout.stack_limit)?;
    place(resolved, execfn, layout, None)
}

/// A program whose files are open, wherever their names lead by now.
#[derive(Debug)]
pub struct AtHand {
    /// Where the program was.
    pub path: PathBuf,
    /// The program.
    pub program: File,
    /// Its dynamic linker and where that was.
    pub interpreter: Option<(PathBuf, File)>,
    /// The argument vector after `#!` lines have been followed.
    pub argv: Vec<Vec<u8>>,
    /// The path the kernel called the program by.
    pub execfn: Vec<u8>,
}

/// Plans the loading of a program that was loaded before.
pub fn plan_at_hand(at_hand: AtHand, layout: &Layout) -> Result<LoadPlan, LoadError> {
    let open = |path: PathBuf, file| {
        ProgramFile::at_hand(path.clone(), file)
            .map(Arc::new)
            .map_err(|error| LoadError::unreadable(&path, &error))
    };
    let resolved = Resolved {
        file: open(at_hand.path, at_hand.program)?,
        argv: at_hand.argv,
    };
    let interpreter = at_hand
        .interpreter
        .map(|(path, file)| open(path, file))
        .transpose()?;
    place(resolved, at_hand.execfn, layout, interpreter)
}

/// Where everything goes. An interpreter that is not at hand is the one that the program names.
fn place(
    resolved: Resolved,
    execfn: Vec<u8>,
    layout: &Layout,
    interpreter: Option<Arc<ProgramFile>>,
) -> Result<LoadPlan, LoadError> {
    let mut mappings = Vec::new();
    let parsed = elf::parse(&*resolved.file).map_err(|p| p.in_program(resolved.file.path()))?;
    let program = image::place(
        &resolved.file,
        &parsed,
        layout.pie_base,
        layout,
        &mut mappings,
    )?;
    let interpreter = match &parsed.interpreter {
        Some(path) => {
            let file = match interpreter {
                Some(file) => file,
                None => Arc::new(lookup::elf_interpreter(path, &program.path)?),
            };
            Some(load_interpreter(&program, &file, layout, &mut mappings)?)
        }
        None if parsed.entry == 0 => {
            return Err(LoadError::NoEntry {
                path: program.path.clone(),
            });
        }
        None => None,
    };
    let entry = interpreter.as_ref().unwrap_or(&program).entry;
    Ok(LoadPlan {
        mappings,
        entry,
        program,
        interpreter,
        argv: resolved.argv,
        execfn,
        stack: parsed.stack,
    })
}

struct Resolved {
    file: Arc<ProgramFile>,
    argv: Vec<Vec<u8>>,
}

/// Replaces a script by its interpreter, as often as the kernel would.
fn follow_scripts(path: PathBuf, mut argv: Vec<Vec<u8>>) -> Result<Resolved, LoadError> {
    if argv.is_empty() {
        // The kernel does the same since CVE-2021-4034: no program ever sees argc 0.
        argv.push(Vec::new());
    }
    let mut path = path;
    for depth in 0..=SCRIPTS_MAX {
        let file = lookup::open(&path)?;
        let head = file.head().map_err(|e| LoadError::unreadable(&path, &e))?;
        if !script::is_script(&head) {
            return Ok(Resolved {
                file: Arc::new(file),
                argv,
            });
        }
        if depth == SCRIPTS_MAX {
            break;
        }
        let line = script::parse(&head).ok_or_else(|| LoadError::BadScriptLine {
            script: path.clone(),
        })?;
        let interpreter = lookup::script_interpreter(&line.interpreter, &path)?;
        argv = script::rewrite_argv(line, &path, argv);
        path = interpreter;
    }
    Err(LoadError::TooManyScripts { path })
}

fn load_interpreter(
    program: &Image,
    file: &Arc<ProgramFile>,
    layout: &Layout,
    mappings: &mut Vec<PlannedMapping>,
) -> Result<Image, LoadError> {
    let parsed = elf::parse(&**file).map_err(|p| p.in_interpreter(file.path(), &program.path))?;
    if parsed.entry == 0 {
        return Err(LoadError::NoEntry {
            path: file.path().to_owned(),
        });
    }
    image::place(file, &parsed, layout.interp_base, layout, mappings)
}
