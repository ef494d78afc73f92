//! What is told at a site, and what runs do.

use crate::StreamError;
use crate::block::{read_kind, read_segment, write_kind, write_segment};
use crate::bytes::{Reader, Writer};
use verdict_translate::{RUN_VALUES_MAX, Run, RunAccess, Site, SiteKind};

/// The least that [`write()`] writes.
pub(crate) const BYTES_MIN: usize = 8 + 1;

const ENTRY: u8 = 0;
const RETURN: u8 = 1;
const ACCESS: u8 = 2;
const RUN: u8 = 3;

pub(crate) fn write(out: &mut Writer, site: &Site) {
    out.u64(site.pc);
    match site.what {
        SiteKind::Entry { arguments } => {
            out.u8(ENTRY);
            out.u8(arguments);
        }
        SiteKind::Return => out.u8(RETURN),
        SiteKind::Run => out.u8(RUN),
        SiteKind::Access {
            size,
            kind,
            locked,
            segment,
            repeated,
            far_bit,
            in_run,
        } => {
            out.u8(ACCESS);
            out.u32(size);
            write_kind(out, kind);
            write_segment(out, segment);
            let all = [locked, repeated, far_bit, in_run];
            all.iter().for_each(|is_so| out.u8(u8::from(*is_so)));
        }
    }
}

pub(crate) fn read(from: &mut Reader<'_>) -> Result<Site, StreamError> {
    let pc = from.u64()?;
    let what = match from.u8()? {
        ENTRY => SiteKind::Entry {
            arguments: from.u8()?,
        },
        RETURN => SiteKind::Return,
        RUN => SiteKind::Run,
        ACCESS => SiteKind::Access {
            size: from.u32()?,
            kind: read_kind(from)?,
            segment: read_segment(from)?,
            locked: from.u8()? != 0,
            repeated: from.u8()? != 0,
            far_bit: from.u8()? != 0,
            in_run: from.u8()? != 0,
        },
        _ => return Err(StreamError::Damaged),
    };
    Ok(Site { pc, what })
}

/// Stands for no value.
const NO_VALUE: u8 = u8::MAX;

pub(crate) fn write_run(out: &mut Writer, run: &Run) {
    for numbers in [&run.steps, &run.first] {
        out.count(numbers.len());
        numbers.iter().for_each(|number| out.u64(*number as u64));
    }
    out.count(run.accesses.len());
    for access in &run.accesses {
        out.u16(access.instruction);
        out.u8(access.base.unwrap_or(NO_VALUE));
        let (index, scale) = access.index.unwrap_or((NO_VALUE, 0));
        out.u8(index);
        out.u8(scale);
        out.u64(access.displacement);
        out.u32(access.size);
        write_kind(out, access.kind);
    }
}

/// Values that accesses name are there, and the first one moves.
pub(crate) fn read_run(from: &mut Reader<'_>) -> Result<Run, StreamError> {
    let number = |from: &mut Reader<'_>| from.u64().map(|number| number as i64);
    let steps = from.list(8, number)?;
    let first = from.list(8, number)?;
    let values = steps.len();
    let known = |value: u8| match value {
        NO_VALUE => Ok(None),
        value if usize::from(value) < values => Ok(Some(value)),
        _ => Err(StreamError::Damaged),
    };
    let accesses = from.list(2 + 3 + 8 + 4 + 1, |from| {
        let instruction = from.u16()?;
        let base = known(from.u8()?)?;
        let (index, scale) = (known(from.u8()?)?, from.u8()?);
        Ok(RunAccess {
            instruction,
            base,
            index: index.map(|index| (index, scale)),
            displacement: from.u64()?,
            size: from.u32()?,
            kind: read_kind(from)?,
        })
    })?;
    if values > RUN_VALUES_MAX || steps.first().is_none_or(|step| *step == 0) {
        return Err(StreamError::Damaged);
    }
    Ok(Run {
        steps,
        first,
        accesses,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdict_translate::{AccessKind, Segment};

    fn sites() -> Vec<Site> {
        let access = |locked, repeated| SiteKind::Access {
            size: 16,
            kind: AccessKind::ReadWrite,
            locked,
            segment: Segment::Fs,
            repeated,
            far_bit: !locked,
            in_run: locked,
        };
        let all = [
            access(true, false),
            access(false, true),
            SiteKind::Entry { arguments: 3 },
            SiteKind::Return,
            SiteKind::Run,
        ];
        (0x1000..)
            .zip(all)
            .map(|(pc, what)| Site { pc, what })
            .collect()
    }

    fn run() -> Run {
        let access = |base, index| RunAccess {
            instruction: 2,
            base,
            index,
            displacement: u64::MAX - 7,
            size: 8,
            kind: AccessKind::Write,
        };
        Run {
            steps: vec![-8, 0],
            first: vec![0, 0, -8],
            accesses: vec![access(Some(1), None), access(None, Some((0, 4)))],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut out = Writer::default();
        sites().iter().for_each(|site| write(&mut out, site));
        write_run(&mut out, &run());
        let mut from = Reader(&out.0);
        for site in sites() {
            assert_eq!(read(&mut from).expect("a site"), site);
        }
        assert_eq!(read_run(&mut from).expect("a run"), run());
        assert!(from.0.is_empty());
    }

    #[test]
    fn what_is_cut_off_or_names_what_is_not_there_is_refused() {
        let mut out = Writer::default();
        write_run(&mut out, &run());
        for len in 0..out.0.len() {
            assert!(read_run(&mut Reader(&out.0[..len])).is_err(), "{len}");
        }
        for odd in [
            Run {
                steps: vec![0, 8],
                ..run()
            },
            Run {
                steps: vec![8],
                ..run()
            },
            Run {
                steps: vec![8; RUN_VALUES_MAX + 1],
                ..run()
            },
        ] {
            let mut out = Writer::default();
            write_run(&mut out, &odd);
            assert!(read_run(&mut Reader(&out.0)).is_err(), "{odd:?}");
        }
    }
}
