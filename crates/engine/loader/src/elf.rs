//! ELF headers, as far as loading needs them. Any bytes are read or refused; nothing here panics.

use std::path::Path;

use object::elf::{self, FileHeader64, ProgramHeader64};
use object::{LittleEndian, pod};

use crate::LoadError;
use crate::file::ReadAt;
use crate::image::{ExecutableStack, PAGE, Protection};

/// The kernel refuses a larger table of program headers.
const PROGRAM_HEADERS_MAX: usize = 65_536 / size_of::<ProgramHeader64<LittleEndian>>();
const PATH_MAX: u64 = 4096;

/// What loading needs to know of an ELF file. Addresses are as linked.
#[derive(Debug)]
pub(crate) struct Elf {
    pub entry: u64,
    pub position_independent: bool,
    /// In the order of the file; at least one. Sorted by address, as ELF demands.
    pub segments: Vec<Segment>,
    /// Address of the program headers in memory, where a segment contains them.
    pub headers_address: Option<u64>,
    pub headers_count: u64,
    /// What PT_INTERP names.
    pub interpreter: Option<Vec<u8>>,
    pub stack: ExecutableStack,
    /// The largest alignment a segment asks for; at least a page.
    pub alignment: u64,
}

/// One PT_LOAD. Checked: `file_size <= memory_size`, no sum overflows, the file range lies within the file, and offset
/// and address agree within a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub address: u64,
    pub memory_size: u64,
    pub offset: u64,
    pub file_size: u64,
    pub protection: Protection,
}

/// Why an ELF file cannot be loaded.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum ElfProblem {
    /// No ELF magic.
    #[error("is not an ELF file")]
    NotElf,
    /// ELFCLASS32.
    #[error("is a 32-bit program ({machine}); build it for x86-64")]
    Bits32 {
        /// For which machine.
        machine: String,
    },
    /// ELFDATA2MSB.
    #[error("is a big-endian program ({machine}); build it for x86-64")]
    BigEndian {
        /// For which machine.
        machine: String,
    },
    /// Not EM_X86_64.
    #[error("is a program for {machine}; build it for x86-64")]
    Machine {
        /// For which machine.
        machine: String,
    },
    /// ET_REL.
    #[error("is an object file; link it into a program first")]
    Relocatable,
    /// ET_CORE.
    #[error("is a core dump; run the program that left it")]
    Core,
    /// Neither program nor library.
    #[error("has the unknown ELF type {kind}; build it again")]
    Kind {
        /// e_type.
        kind: u16,
    },
    /// Cut short.
    #[error(
        "is truncated: its {what} ends at byte {needed} of a file of {found} bytes; build or copy it again"
    )]
    Truncated {
        /// What lies beyond the end.
        what: &'static str,
        /// Where it ends.
        needed: u64,
        /// How long the file is.
        found: u64,
    },
    /// Self-contradictory.
    #[error("is a damaged ELF file ({what}); build or copy it again")]
    Damaged {
        /// What contradicts what.
        what: &'static str,
    },
}

impl ElfProblem {
    pub(crate) fn in_program(self, path: &Path) -> LoadError {
        let path = path.to_owned();
        match self {
            Self::NotElf => LoadError::NotAProgram { path },
            problem => LoadError::Elf { path, problem },
        }
    }

    pub(crate) fn in_interpreter(self, interpreter: &Path, program: &Path) -> LoadError {
        LoadError::InterpreterElf {
            program: program.to_owned(),
            interpreter: interpreter.to_owned(),
            problem: self,
        }
    }
}

type Header = FileHeader64<LittleEndian>;
type ProgramHeader = ProgramHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;

/// Reads the headers of a program or of an ELF interpreter.
pub(crate) fn parse<R: ReadAt + ?Sized>(file: &R) -> Result<Elf, ElfProblem> {
    let bytes = read_file_header(file)?;
    let header = pod::from_bytes::<Header>(&bytes)
        .map_err(|()| damaged("unreadable file header"))?
        .0;
    let table = read_program_headers(file, header)?;
    let (headers, _) =
        pod::slice_from_bytes::<ProgramHeader>(&table, usize::from(header.e_phnum.get(LE)))
            .map_err(|()| damaged("unreadable program headers"))?;

    let mut segments = Vec::new();
    let mut interpreter = None;
    let mut stack = ExecutableStack::Unspecified;
    let mut alignment = PAGE;
    for program_header in headers {
        match program_header.p_type.get(LE) {
            elf::PT_LOAD if program_header.p_memsz.get(LE) > 0 => {
                let align = program_header.p_align.get(LE);
                if align.is_power_of_two() {
                    alignment = alignment.max(align);
                }
                segments.push(read_segment(file, program_header)?);
            }
            elf::PT_INTERP if interpreter.is_none() => {
                interpreter = Some(read_interpreter(file, program_header)?)
            }
            elf::PT_GNU_STACK => {
                stack = ExecutableStack::from_flags(program_header.p_flags.get(LE))
            }
            _ => {}
        }
    }
    check_order(&segments)?;
    Ok(Elf {
        entry: header.e_entry.get(LE),
        position_independent: header.e_type.get(LE) == elf::ET_DYN,
        headers_address: headers_address(&segments, header.e_phoff.get(LE)),
        headers_count: headers.len() as u64,
        segments,
        interpreter,
        stack,
        alignment,
    })
}

/// Reads the file header and refuses what is not a program of this machine.
fn read_file_header<R: ReadAt + ?Sized>(file: &R) -> Result<[u8; size_of::<Header>()], ElfProblem> {
    let mut bytes = [0; size_of::<Header>()];
    // A 32-bit header is shorter than ours; read what there is, so that the right thing is said of it.
    let there = bytes
        .len()
        .min(usize::try_from(file.len()).unwrap_or(usize::MAX));
    read(file, 0, &mut bytes[..there], "ELF header")?;
    if !bytes.starts_with(&elf::ELFMAG) {
        return Err(ElfProblem::NotElf);
    }
    let big = bytes[5] == elf::ELFDATA2MSB;
    let short = |at: usize| {
        let pair = [bytes[at], bytes[at + 1]];
        if big {
            u16::from_be_bytes(pair)
        } else {
            u16::from_le_bytes(pair)
        }
    };
    let (kind, machine) = (short(16), short(18));
    if there < 20 {
        return Err(truncated("ELF header", bytes.len() as u64, there as u64));
    }
    if bytes[4] == elf::ELFCLASS32 {
        return Err(ElfProblem::Bits32 {
            machine: machine_name(machine),
        });
    }
    if big {
        return Err(ElfProblem::BigEndian {
            machine: machine_name(machine),
        });
    }
    if machine != elf::EM_X86_64 {
        return Err(ElfProblem::Machine {
            machine: machine_name(machine),
        });
    }
    if bytes[4] != elf::ELFCLASS64 || bytes[5] != elf::ELFDATA2LSB {
        return Err(damaged("unknown class or byte order"));
    }
    if there < bytes.len() {
        return Err(truncated("ELF header", bytes.len() as u64, there as u64));
    }
    match kind {
        elf::ET_EXEC | elf::ET_DYN => Ok(bytes),
        elf::ET_REL => Err(ElfProblem::Relocatable),
        elf::ET_CORE => Err(ElfProblem::Core),
        kind => Err(ElfProblem::Kind { kind }),
    }
}

fn read_program_headers<R: ReadAt + ?Sized>(
    file: &R,
    header: &Header,
) -> Result<Vec<u8>, ElfProblem> {
    let count = usize::from(header.e_phnum.get(LE));
    if usize::from(header.e_phentsize.get(LE)) != size_of::<ProgramHeader>() {
        return Err(damaged("program headers of an unknown size"));
    }
    if count == 0 {
        return Err(damaged("no program headers"));
    }
    if count > PROGRAM_HEADERS_MAX {
        return Err(damaged("too many program headers"));
    }
    let mut table = vec![0; count * size_of::<ProgramHeader>()];
    read(
        file,
        header.e_phoff.get(LE),
        &mut table,
        "table of program headers",
    )?;
    Ok(table)
}

fn read_segment<R: ReadAt + ?Sized>(
    file: &R,
    header: &ProgramHeader,
) -> Result<Segment, ElfProblem> {
    let segment = Segment {
        address: header.p_vaddr.get(LE),
        memory_size: header.p_memsz.get(LE),
        offset: header.p_offset.get(LE),
        file_size: header.p_filesz.get(LE),
        protection: Protection::from_flags(header.p_flags.get(LE)),
    };
    if segment.file_size > segment.memory_size {
        return Err(damaged("a segment is larger in the file than in memory"));
    }
    // Half of the address space is the kernel's; below that, no sum of two addresses overflows.
    if segment
        .address
        .checked_add(segment.memory_size)
        .is_none_or(|end| end >= 1 << 63)
    {
        return Err(damaged("a segment lies outside the address space"));
    }
    if segment.file_size > 0 {
        if segment.address % PAGE != segment.offset % PAGE {
            return Err(damaged("a segment's offset and address disagree"));
        }
        check_within(file, segment.offset, segment.file_size, "code or data")?;
    }
    Ok(segment)
}

fn read_interpreter<R: ReadAt + ?Sized>(
    file: &R,
    header: &ProgramHeader,
) -> Result<Vec<u8>, ElfProblem> {
    let size = header.p_filesz.get(LE);
    if !(2..=PATH_MAX).contains(&size) {
        return Err(damaged(
            "the dynamic linker's name has an impossible length",
        ));
    }
    let mut name = vec![0; usize::try_from(size).expect("at most PATH_MAX")];
    read(
        file,
        header.p_offset.get(LE),
        &mut name,
        "name of the dynamic linker",
    )?;
    if name.pop() != Some(0) {
        return Err(damaged("the dynamic linker's name does not end"));
    }
    // The kernel takes it as a C string.
    name.truncate(name.iter().position(|&b| b == 0).unwrap_or(name.len()));
    if name.is_empty() {
        return Err(damaged("the dynamic linker has no name"));
    }
    Ok(name)
}

fn check_order(segments: &[Segment]) -> Result<(), ElfProblem> {
    if segments.is_empty() {
        return Err(damaged("nothing to load"));
    }
    if !segments.is_sorted_by_key(|s| s.address) {
        return Err(damaged("its segments are out of order"));
    }
    Ok(())
}

/// AT_PHDR: where the segment that contains the table puts it.
fn headers_address(segments: &[Segment], offset: u64) -> Option<u64> {
    segments
        .iter()
        .find(|s| offset >= s.offset && offset - s.offset < s.file_size)
        .map(|s| s.address + (offset - s.offset))
}

fn read<R: ReadAt + ?Sized>(
    file: &R,
    offset: u64,
    buffer: &mut [u8],
    what: &'static str,
) -> Result<(), ElfProblem> {
    check_within(file, offset, buffer.len() as u64, what)?;
    file.read_at(offset, buffer)
        .map_err(|_| truncated(what, offset + buffer.len() as u64, file.len()))
}

fn check_within<R: ReadAt + ?Sized>(
    file: &R,
    offset: u64,
    size: u64,
    what: &'static str,
) -> Result<(), ElfProblem> {
    let end = offset
        .checked_add(size)
        .ok_or_else(|| damaged("an offset beyond every file"))?;
    if end > file.len() {
        return Err(truncated(what, end, file.len()));
    }
    Ok(())
}

fn damaged(what: &'static str) -> ElfProblem {
    ElfProblem::Damaged { what }
}

fn truncated(what: &'static str, needed: u64, found: u64) -> ElfProblem {
    ElfProblem::Truncated {
        what,
        needed,
        found,
    }
}

fn machine_name(machine: u16) -> String {
    let name = match machine {
        elf::EM_386 => "x86",
        elf::EM_X86_64 => "x86-64 with 32-bit pointers",
        elf::EM_ARM => "ARM",
        elf::EM_AARCH64 => "AArch64",
        elf::EM_RISCV => "RISC-V",
        elf::EM_PPC => "PowerPC",
        elf::EM_PPC64 => "64-bit PowerPC",
        elf::EM_S390 => "IBM Z",
        elf::EM_MIPS => "MIPS",
        elf::EM_SPARC | elf::EM_SPARCV9 => "SPARC",
        elf::EM_LOONGARCH => "LoongArch",
        elf::EM_68K => "68000",
        elf::EM_BPF => "BPF",
        other => return format!("ELF machine {other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests;
