//! What the words of a block in the log mean.

use crate::StreamError;
use crate::bytes::{Reader, Writer};
use verdict_translate::{
    ARGUMENT_REGISTERS, AccessKind, AddressWord, BitOffset, ControlMark, ControlStep, LoggedAccess,
    Segment,
};

/// The constant part of a block's log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockInfo {
    /// The addresses of its instructions.
    pub pcs: Vec<u64>,
    /// Words logged (header included) once so many instructions have retired.
    pub words: Vec<u16>,
    /// The accesses in order.
    pub accesses: Vec<LoggedAccess>,
    /// Calls and returns in order.
    pub control: Vec<ControlMark>,
}

pub(crate) struct BlockParts<'a> {
    pub(crate) pcs: &'a [u64],
    pub(crate) words: &'a [u16],
    pub(crate) accesses: &'a [LoggedAccess],
    pub(crate) control: &'a [ControlMark],
}

pub(crate) fn write(out: &mut Writer, block: &BlockParts<'_>) {
    out.count(block.pcs.len());
    block.pcs.iter().for_each(|pc| out.u64(*pc));
    out.count(block.words.len());
    block.words.iter().for_each(|words| out.u16(*words));
    out.count(block.accesses.len());
    block
        .accesses
        .iter()
        .for_each(|access| write_access(out, access));
    out.count(block.control.len());
    block
        .control
        .iter()
        .for_each(|mark| write_control(out, mark));
}

pub(crate) fn read(from: &mut Reader<'_>) -> Result<BlockInfo, StreamError> {
    Ok(BlockInfo {
        pcs: from.list(8, Reader::u64)?,
        words: from.list(2, Reader::u16)?,
        accesses: from.list(ACCESS_BYTES, read_access)?,
        control: from.list(CONTROL_BYTES_MIN, read_control)?,
    })
}

/// What [`write_access`] writes.
const ACCESS_BYTES: usize = 2 + 2 + 8 + 4 + 1 + 1 + 1 + 2 + 2;
/// The least that [`write_control`] writes: a return.
const CONTROL_BYTES_MIN: usize = 2 + 1 + 2;
/// Stands for no word.
const NO_WORD: u16 = u16::MAX;

fn write_access(out: &mut Writer, access: &LoggedAccess) {
    out.u16(access.instruction);
    out.u16(match access.base {
        AddressWord::Constant => NO_WORD,
        AddressWord::Logged(word) => word,
    });
    out.u64(access.displacement);
    out.u32(access.size);
    write_kind(out, access.kind);
    out.u8(u8::from(access.locked));
    write_segment(out, access.segment);
    out.u16(access.bit.map_or(NO_WORD, |bit| bit.word));
    out.u16(access.repeat.unwrap_or(NO_WORD));
}

fn read_access(from: &mut Reader<'_>) -> Result<LoggedAccess, StreamError> {
    let word = |value: u16| (value != NO_WORD).then_some(value);
    Ok(LoggedAccess {
        instruction: from.u16()?,
        base: word(from.u16()?).map_or(AddressWord::Constant, AddressWord::Logged),
        displacement: from.u64()?,
        size: from.u32()?,
        kind: read_kind(from)?,
        locked: from.u8()? != 0,
        segment: read_segment(from)?,
        bit: word(from.u16()?).map(|word| BitOffset { word }),
        repeat: word(from.u16()?),
    })
}

pub(crate) fn write_kind(out: &mut Writer, kind: AccessKind) {
    out.u8(match kind {
        AccessKind::Read => 0,
        AccessKind::Write => 1,
        AccessKind::ReadWrite => 2,
    });
}

pub(crate) fn read_kind(from: &mut Reader<'_>) -> Result<AccessKind, StreamError> {
    Ok(match from.u8()? {
        0 => AccessKind::Read,
        1 => AccessKind::Write,
        2 => AccessKind::ReadWrite,
        _ => return Err(StreamError::Damaged),
    })
}

pub(crate) fn write_segment(out: &mut Writer, segment: Segment) {
    out.u8(match segment {
        Segment::Flat => 0,
        Segment::Fs => 1,
        Segment::Gs => 2,
    });
}

pub(crate) fn read_segment(from: &mut Reader<'_>) -> Result<Segment, StreamError> {
    Ok(match from.u8()? {
        0 => Segment::Flat,
        1 => Segment::Fs,
        2 => Segment::Gs,
        _ => return Err(StreamError::Damaged),
    })
}

fn write_control(out: &mut Writer, mark: &ControlMark) {
    out.u16(mark.instruction);
    match mark.step {
        ControlStep::Call { return_address } => {
            out.u8(0);
            out.u64(return_address);
        }
        ControlStep::Return { result } => {
            out.u8(1);
            out.u16(result);
        }
        ControlStep::Entry {
            arguments,
            stack_pointer,
            return_address,
        } => {
            out.u8(2);
            arguments.iter().for_each(|word| out.u16(*word));
            out.u16(stack_pointer);
            out.u16(return_address);
        }
    }
}

fn read_control(from: &mut Reader<'_>) -> Result<ControlMark, StreamError> {
    let instruction = from.u16()?;
    let step = match from.u8()? {
        0 => ControlStep::Call {
            return_address: from.u64()?,
        },
        1 => ControlStep::Return {
            result: from.u16()?,
        },
        2 => {
            let mut arguments = [0; ARGUMENT_REGISTERS.len()];
            for word in &mut arguments {
                *word = from.u16()?;
            }
            ControlStep::Entry {
                arguments,
                stack_pointer: from.u16()?,
                return_address: from.u16()?,
            }
        }
        _ => return Err(StreamError::Damaged),
    };
    Ok(ControlMark { instruction, step })
}
