//! The plain text that RV-Predict/C's `rvpdump` prints of its binary traces:
//! `tid 1.0 pc 0x0000000000400b2a load 4 0x00000001 <- [0x0000000000602084]`.
//!
//! Documented by `rvpdump(1)` ("human-readable format ..., one event per line") and the printing code beside it
//! (github.com/runtimeverification/rv-predict, `llvm/rvpdump`). A line is `tid THREAD.DEPTH pc ADDRESS` and
//!
//! | text | event |
//! | --- | --- |
//! | `load N V <- [A]`, `store N V -> [A]` | read, write of N = 1, 2, 4, 8 bytes |
//! | `atomic load N V <- [A]`, `atomic store N V -> [A]` | atomic load, store |
//! | `atomic RMW N OLD <- [A] <- NEW` | atomic read-modify-write; its value is the new one |
//! | `acquire mutex [A]`, `release mutex [A]` | of a lock |
//! | `fork thread tid T`, `join thread tid T` | fork, join |
//! | `begin thread generation G`, `end thread` | begin, end |
//! | `jump`, `change of generation -> G`, `switch thread tid T`, `enter function ...`, `exit function` | none: bookkeeping of the trace itself |
//!
//! The memory order of atomics is not recorded; they are taken as `seq-cst`. Signal handlers (their operations, and a
//! depth other than 0) have no counterpart here and are refused. The binary traces of RV-Predict for Java have no public
//! description and are not read.

use super::{LineError, LineFormat, TextNames, TextReader};
use crate::{Access, Addr, Event, EventKind, LockMode, MemoryOrder, SyncId};

const OPERATIONS: &str = "an operation of rvpdump other than of signals";

/// Reads the text of `rvpdump`.
pub type RvPredictReader = TextReader<RvPredict>;

/// How a line of `rvpdump` reads.
#[derive(Default)]
pub struct RvPredict;

impl LineFormat for RvPredict {
    fn parse(
        &mut self,
        line: &[u8],
        names: &mut TextNames,
        batch: &mut Vec<Event>,
    ) -> Result<(), LineError> {
        let words: Vec<&[u8]> = line
            .split(|&byte| byte == b' ')
            .filter(|word| !word.is_empty())
            .collect();
        let [b"tid", thread, b"pc", pc, operation @ ..] = words.as_slice() else {
            return Err(LineError::new(
                "`tid THREAD.DEPTH pc ADDRESS operation`",
                line,
            ));
        };
        let thread = thread_number(thread)?;
        hex(pc, "the address of an instruction")?;
        if let Some(kind) = kind(operation, line, names)? {
            let thread = names.thread(thread)?;
            let site = names.site(pc)?;
            batch.push(Event { thread, site, kind });
        }
        Ok(())
    }
}

/// The event of an operation, or `None` for bookkeeping.
fn kind(
    operation: &[&[u8]],
    line: &[u8],
    names: &mut TextNames,
) -> Result<Option<EventKind>, LineError> {
    let order = MemoryOrder::SeqCst;
    Ok(Some(match operation {
        [b"load", size, value, b"<-", addr] => EventKind::Read(access(size, value, addr)?),
        [b"store", size, value, b"->", addr] => EventKind::Write(access(size, value, addr)?),
        [b"atomic", b"load", size, value, b"<-", addr] => {
            EventKind::AtomicLoad(access(size, value, addr)?, order)
        }
        [b"atomic", b"store", size, value, b"->", addr] => {
            EventKind::AtomicStore(access(size, value, addr)?, order)
        }
        [b"atomic", b"RMW", size, old, b"<-", addr, b"<-", new] => {
            hex(old, "the old value")?;
            EventKind::AtomicRmw(access(size, new, addr)?, order)
        }
        [b"acquire", b"mutex", addr] => EventKind::Acquire(lock(addr)?, LockMode::Exclusive),
        [b"release", b"mutex", addr] => EventKind::Release(lock(addr)?, LockMode::Exclusive),
        [b"fork", b"thread", b"tid", thread] => EventKind::Fork(names.thread(digits(thread)?)?),
        [b"join", b"thread", b"tid", thread] => EventKind::Join(names.thread(digits(thread)?)?),
        [b"begin", b"thread", b"generation", generation] => {
            digits(generation)?;
            EventKind::Begin
        }
        [b"end", b"thread"] => EventKind::End,
        [b"jump"] | [b"exit", b"function"] => return Ok(None),
        [b"change", b"of", b"generation", b"->", number] => return digits(number).map(|_| None),
        [b"switch", b"thread", b"tid", number] => return digits(number).map(|_| None),
        [b"enter", b"function", ..] => return Ok(None),
        _ => return Err(LineError::new(OPERATIONS, line)),
    }))
}

fn access(size: &[u8], value: &[u8], addr: &[u8]) -> Result<Access, LineError> {
    let size = match size {
        b"1" => 1,
        b"2" => 2,
        b"4" => 4,
        b"8" => 8,
        _ => return Err(LineError::new("a size of 1, 2, 4 or 8 bytes", size)),
    };
    Ok(Access {
        addr: Addr(bracketed(addr)?),
        size,
        value: Some(hex(value, "a value")?),
    })
}

fn lock(addr: &[u8]) -> Result<SyncId, LineError> {
    bracketed(addr).map(SyncId)
}

/// `[0x602084]`.
fn bracketed(text: &[u8]) -> Result<u64, LineError> {
    let inside = text
        .strip_prefix(b"[")
        .and_then(|text| text.strip_suffix(b"]"));
    let inside = inside.ok_or_else(|| LineError::new("an address in brackets", text))?;
    hex(inside, "an address")
}

/// `0x602084`, or `0`: C prints no prefix before zero.
fn hex(text: &[u8], what: &str) -> Result<u64, LineError> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    let number = std::str::from_utf8(digits)
        .ok()
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| LineError::new(what, text))
}

/// `1.0` is thread 1 outside of any signal handler.
fn thread_number(text: &[u8]) -> Result<&[u8], LineError> {
    match text.split(|&byte| byte == b'.').collect::<Vec<_>>()[..] {
        [thread, b"0"] => digits(thread),
        [_, _] => Err(LineError::new(
            "a thread outside of signal handlers (depth 0)",
            text,
        )),
        _ => Err(LineError::new(
            "the number and depth of a thread, as in `1.0`",
            text,
        )),
    }
}

fn digits(text: &[u8]) -> Result<&[u8], LineError> {
    match !text.is_empty() && text.iter().all(u8::is_ascii_digit) {
        true => Ok(text),
        false => Err(LineError::new("a number", text)),
    }
}
