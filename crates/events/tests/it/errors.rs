//! What is said about input that is not a trace. Each message names file, line or byte, what was expected, and what
//! is there.

use std::path::Path;

use expect_test::{Expect, expect};
use verdict_events::{
    Access, Addr, Event, EventKind, Format, LockMode, MemoryOrder, NameTable, SiteId, SyncId,
    ThreadId, open,
};

use crate::traces::{drain, read, write};

fn check(format: Format, text: impl AsRef<[u8]>, expected: Expect) {
    let error = read(format, text.as_ref()).expect_err("is no trace");
    expected.assert_eq(&error.to_string());
}

#[test]
fn std() {
    let check = |text: &[u8], expected| check(Format::Std, text, expected);
    check(
        b"T0|w(V1)|1\nT0\n",
        expect!["trace:2: expected `thread|operation(operand)|location`, found `T0`"],
    );
    check(
        b"T0|w(V1)|1|2",
        expect!["trace:1: expected at most three fields separated by `|`, found `T0|w(V1)|1|2`"],
    );
    check(
        b"T0|foo(V1)|1",
        expect![
            "trace:1: expected an operation r(..), w(..), acq(..), rel(..), fork(..), join(..), begin or end, found `foo(V1)`"
        ],
    );
    check(
        b"T0|w|1",
        expect!["trace:1: expected the name of a memory location in parentheses, found `w`"],
    );
    check(
        b"T0|w()|1",
        expect!["trace:1: expected the name of a memory location in parentheses, found `w()`"],
    );
    check(
        b"T0|acq(L1|1",
        expect!["trace:1: expected `)` at the end of the operation, found `acq(L1`"],
    );
    check(
        b"|w(V1)|1",
        expect!["trace:1: expected a thread name, found nothing"],
    );
    check(
        b"T 0|w(V1)|1",
        expect!["trace:1: expected a name without white space, found `T 0`"],
    );
    check(
        b"T0|w(V 1)|1",
        expect!["trace:1: expected a name without white space, found `w(V 1)`"],
    );
    check(
        b"T0|fork()|1",
        expect!["trace:1: expected the name of a thread in parentheses, found `fork()`"],
    );
    check(
        b"T0|w(V\xff)|1",
        expect!["trace:1: expected UTF-8 text, found `V�`"],
    );
    check(
        b"T0|w(V1)|\xff",
        expect!["trace:1: expected UTF-8 text, found `�`"],
    );
    check(
        b"\x00\x01\x02",
        expect![[
            r#"trace:1: expected `thread|operation(operand)|location`, found `\u{0}\u{1}\u{2}`"#
        ]],
    );
    check(
        "é".repeat(100).as_bytes(),
        expect![
            "trace:1: expected `thread|operation(operand)|location`, found `éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…`"
        ],
    );
    check(
        &[b'x'; 2 << 20],
        expect![
            "trace:1: expected a line of at most 1048576 bytes, found `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`"
        ],
    );
}

#[test]
fn csv() {
    let check = |text: &str, expected| check(Format::Csv, text, expected);
    let with_header =
        |rows: &str| format!("thread,event,object,name,size,value,order,site\n{rows}");
    check(
        "T0,read,0x1,,,,,",
        expect![
            "trace:1: expected the header `thread,event,object,name,size,value,order,site`, found `T0,read,0x1,,,,,`"
        ],
    );
    for (row, expected) in [
        (
            "T0,read,0x1",
            expect!["trace:2: expected 8 cells separated by commas, not 3, found `T0,read,0x1`"],
        ),
        (
            "T0,look,0x1,,,,,",
            expect![
                "trace:2: expected an event (read, write, atomic-load, atomic-store, atomic-rmw, fence, acquire, release, fork, begin, end, join, wait, notify, barrier-enter, barrier-leave, semaphore-post, semaphore-wait, allocate, free, output), found `look`"
            ],
        ),
        (
            ",read,0x1,,,,,",
            expect!["trace:2: expected a thread name, found nothing"],
        ),
        (
            "T0,read,,,,,,",
            expect!["trace:2: expected an address or a name, found nothing"],
        ),
        (
            "T0,read,x,,,,,",
            expect!["trace:2: expected an address, found `x`"],
        ),
        (
            "T0,read,0x,,,,,",
            expect!["trace:2: expected an address, found `0x`"],
        ),
        (
            "T0,read,+1,,,,,",
            expect!["trace:2: expected an address, found `+1`"],
        ),
        (
            "T0,read,1,,0,,,",
            expect!["trace:2: expected a size of at least 1, found `0`"],
        ),
        (
            "T0,read,1,,5000000000,,,",
            expect!["trace:2: expected a size of at least 1, below 2^32, found `5000000000`"],
        ),
        (
            "T0,read,1,,,99999999999999999999,,",
            expect!["trace:2: expected a value of at most 64 bits, found `99999999999999999999`"],
        ),
        (
            "T0,read,1,,,,relaxed,",
            expect!["trace:2: expected nothing in the column `order` of `read`, found `relaxed`"],
        ),
        (
            "T0,atomic-load,1,,,,,",
            expect![
                "trace:2: expected a memory order (relaxed, acquire, release, acq-rel, seq-cst), found nothing"
            ],
        ),
        (
            "T0,acquire,1,,,,relaxed,",
            expect![
                "trace:2: expected nothing or `shared` as the order of a lock, found `relaxed`"
            ],
        ),
        (
            "T0,begin,1,,,,,",
            expect!["trace:2: expected nothing in the column `object` of `begin`, found `1`"],
        ),
        (
            "T0,fork,,,,,,",
            expect!["trace:2: expected a thread name, found nothing"],
        ),
        (
            "T0,allocate,1,,,,,",
            expect!["trace:2: expected a size, found nothing"],
        ),
        (
            "T0,output,99999999999,,1,,,",
            expect!["trace:2: expected the number of a stream, below 2^32, found `99999999999`"],
        ),
        (
            "T0,read,1,\"V,,,,",
            expect![[r#"trace:2: expected a closing quote, found `"V,,,,`"#]],
        ),
        (
            "T0,read,1,\"V\"1,,,,",
            expect!["trace:2: expected a comma after the closing quote, found `1,,,,`"],
        ),
        (
            "T0,read,1,V1,,,,\nT0,read,,V2,,,,",
            expect!["trace:3: expected an address, as in the rows before, found `V2`"],
        ),
        (
            "T0,read,,V1,,,,\nT0,read,2,V2,,,,",
            expect!["trace:3: expected a name without number, as in the rows before, found `2`"],
        ),
        (
            "T0,read,1,V1,,,,\nT0,read,1,V2,,,,",
            expect!["trace:3: expected the name `V1`, which 1 already has, found `V2`"],
        ),
    ] {
        check(&with_header(row), expected);
    }
}

#[test]
fn roadrunner() {
    let check = |text: &str, expected| check(Format::RoadRunner, text, expected);
    check(
        "hello",
        expect!["trace:1: expected `@` and an event, or a message in brackets, found `hello`"],
    );
    check(
        "@  Rd",
        expect![
            "trace:1: expected Rd, Wr, ARd, AWr, VRd, VWr, Acquire, Release, Start, Join, Enter or Exit with `(thread,operand)`, found `Rd`"
        ],
    );
    check(
        "@  Rd(0)",
        expect![
            "trace:1: expected Rd, Wr, ARd, AWr, VRd, VWr, Acquire, Release, Start, Join, Enter or Exit with `(thread,operand)`, found `Rd(0)`"
        ],
    );
    check(
        "@  Look(0,x)",
        expect![
            "trace:1: expected Rd, Wr, ARd, AWr, VRd, VWr, Acquire, Release, Start, Join, Enter or Exit with `(thread,operand)`, found `Look`"
        ],
    );
    check(
        "@  Rd(0,x)",
        expect![
            "trace:1: expected two words, the second being the site, after the event, found `Rd(0,x)`"
        ],
    );
    check(
        "@  Rd(0,x",
        expect!["trace:1: expected an operand followed by `)`, found `x`"],
    );
    check(
        "@  Rd(0,)  null  a:1",
        expect!["trace:1: expected an operand followed by `)`, found `)  null  a:1`"],
    );
    check(
        "@  Rd(,x)  null  a:1",
        expect!["trace:1: expected a thread name, found nothing"],
    );
    check(
        "@  Acquire(0,@01) x",
        expect![
            "trace:1: expected two words, the second being the site, after the event, found `Acquire(0,@01) x`"
        ],
    );
    check(
        "@  Rd(0,x)[5]  null  a:1",
        expect!["trace:1: expected an operand followed by `)`, found `x)[5]  null  a:1`"],
    );
}

#[test]
fn rv_predict() {
    let check = |text: &str, expected| check(Format::RvPredict, text, expected);
    check(
        "hello",
        expect!["trace:1: expected `tid THREAD.DEPTH pc ADDRESS operation`, found `hello`"],
    );
    check(
        "tid 1 pc 0x1 jump",
        expect!["trace:1: expected the number and depth of a thread, as in `1.0`, found `1`"],
    );
    check(
        "tid 1.1 pc 0x1 jump",
        expect!["trace:1: expected a thread outside of signal handlers (depth 0), found `1.1`"],
    );
    check(
        "tid x.0 pc 0x1 jump",
        expect!["trace:1: expected a number, found `x`"],
    );
    check(
        "tid 1.0 pc x jump",
        expect!["trace:1: expected the address of an instruction, found `x`"],
    );
    check(
        "tid 1.0 pc 0x1 load 3 0x0 <- [0x2]",
        expect!["trace:1: expected a size of 1, 2, 4 or 8 bytes, found `3`"],
    );
    check(
        "tid 1.0 pc 0x1 load 4 y <- [0x2]",
        expect!["trace:1: expected a value, found `y`"],
    );
    check(
        "tid 1.0 pc 0x1 load 4 0x0 <- 0x2",
        expect!["trace:1: expected an address in brackets, found `0x2`"],
    );
    check(
        "tid 1.0 pc 0x1 load 4 0x0 -> [0x2]",
        expect![
            "trace:1: expected an operation of rvpdump other than of signals, found `tid 1.0 pc 0x1 load 4 0x0 -> [0x2]`"
        ],
    );
    check(
        "tid 1.0 pc 0x1 fork thread tid main",
        expect!["trace:1: expected a number, found `main`"],
    );
    check(
        "tid 1.0 pc 0x1 enter signal handler signal 2",
        expect![
            "trace:1: expected an operation of rvpdump other than of signals, found `tid 1.0 pc 0x1 enter signal handler signal 2`"
        ],
    );
}

#[test]
fn native() {
    let event = Event {
        thread: ThreadId(0),
        site: SiteId(0),
        kind: EventKind::Begin,
    };
    let names = NameTable::new();
    let sound = write(Format::Native, &[event], &names).unwrap();
    let check = |bytes: &[u8], expected| check(Format::Native, bytes, expected);
    let changed = |at: usize| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        bytes
    };
    check(
        b"",
        expect![
            "trace: ends at byte 0 without an end mark, after 0 whole events: it is still being written or was cut"
        ],
    );
    check(
        b"T0|w(V1)|13 and so on",
        expect!["trace: at byte 0: expected the signature of a native trace"],
    );
    check(
        &changed(0),
        expect!["trace: at byte 0: expected the signature of a native trace"],
    );
    check(
        &changed(8),
        expect!["trace: at byte 0: the file header is damaged: its checksum does not match"],
    );
    check(
        &changed(16),
        expect!["trace: at byte 16: the frame header is damaged: its checksum does not match"],
    );
    check(
        &changed(52),
        expect!["trace: at byte 16: the frame is damaged: its checksum does not match"],
    );
    check(
        &sound[..40],
        expect![
            "trace: ends at byte 16 without an end mark, after 0 whole events: it is still being written or was cut"
        ],
    );
    check(
        &sound[..sound.len() - 1],
        expect![
            "trace: ends at byte 155 without an end mark, after 1 whole events: it is still being written or was cut"
        ],
    );
    check(
        &[&sound[..], b"more"].concat(),
        expect!["trace: at byte 207: expected the end of the file after the end mark"],
    );
    let mut newer = sound.clone();
    newer[8] = 2;
    let sum = crc32fast::hash(&newer[..12]);
    newer[12..16].copy_from_slice(&sum.to_le_bytes());
    check(
        &newer,
        expect!["trace: at byte 0: the trace is of version 2, this program reads version 1"],
    );
}

#[test]
fn opening() {
    let folder = tempfile::tempdir().unwrap();
    let check = |bytes: &[u8], expected: Expect| {
        let path = folder.path().join("t");
        std::fs::write(&path, bytes).unwrap();
        let error = match open(&path, None) {
            Err(error) => error,
            Ok(mut source) => drain(&mut source).expect_err("is no trace"),
        };
        let text = error
            .to_string()
            .replace(&folder.path().display().to_string(), "DIR");
        expected.assert_eq(&text);
    };
    check(b"", expect!["DIR/t: expected a trace, found nothing"]);
    check(b"\n\n", expect!["DIR/t: expected a trace, found nothing"]);
    check(
        b"hello world\n",
        expect![
            "DIR/t: expected a trace in one of the formats native, std, csv, roadrunner, rv-predict, found `hello world`"
        ],
    );
    check(
        b"\x89VT",
        expect![
            "DIR/t: ends at byte 0 without an end mark, after 0 whole events: it is still being written or was cut"
        ],
    );
    check(
        b"\x1f\x8b\x08",
        expect!["DIR/t: cannot be read: unexpected end of file"],
    );
    check(
        b"\x28\xb5\x2f\xfdxxxxxxxxxxxxx",
        expect!["DIR/t: cannot be read: Unsupported frame parameter"],
    );
    let missing = open(Path::new("no/such/trace"), None).err().unwrap();
    expect!["no/such/trace: cannot be read: No such file or directory (os error 2)"]
        .assert_eq(&missing.to_string());
    let unknown = "elf".parse::<Format>().unwrap_err();
    expect!["`elf` is no trace format; known are native, std, csv, roadrunner, rv-predict"]
        .assert_eq(&unknown);
}

#[test]
fn writing() {
    let check = |format, kind, expected: Expect| {
        let event = Event {
            thread: ThreadId(0),
            site: SiteId(0),
            kind,
        };
        let error = write(format, &[event], &NameTable::new()).unwrap_err();
        expected.assert_eq(&error.to_string());
    };
    let access = Access {
        addr: Addr(0x1000),
        size: 1,
        value: None,
    };
    let wide = Access { size: 8, ..access };
    let known = Access {
        value: Some(7),
        ..access
    };
    let lock = SyncId(1);
    check(
        Format::Std,
        EventKind::AtomicLoad(access, MemoryOrder::SeqCst),
        expect![
            "std cannot express event 0 (T0 atomic-load 0x1000 (seq-cst) at 0): it has only r, w, acq, rel, fork, join, begin and end"
        ],
    );
    check(
        Format::Std,
        EventKind::Acquire(lock, LockMode::Shared),
        expect![
            "std cannot express event 0 (T0 acquire 0x1 (shared) at 0): it has only r, w, acq, rel, fork, join, begin and end"
        ],
    );
    check(
        Format::Std,
        EventKind::Read(wide),
        expect![
            "std cannot express event 0 (T0 read 0x1000 size 8 at 0): its accesses have no sizes"
        ],
    );
    check(
        Format::Std,
        EventKind::Write(known),
        expect![
            "std cannot express event 0 (T0 write 0x1000 value 0x7 at 0): its accesses have no values"
        ],
    );
    check(
        Format::Std,
        EventKind::Output {
            stream: 1,
            bytes: 5,
        },
        expect![
            "std cannot express event 0 (T0 output 5 bytes to 1 at 0): it has only r, w, acq, rel, fork, join, begin and end"
        ],
    );
    check(
        Format::RoadRunner,
        EventKind::Begin,
        expect![
            "roadrunner cannot express event 0 (T0 begin at 0): it has only reads, writes, volatile accesses, locks, Start and Join"
        ],
    );
    check(
        Format::RoadRunner,
        EventKind::AtomicLoad(access, MemoryOrder::Relaxed),
        expect![
            "roadrunner cannot express event 0 (T0 atomic-load 0x1000 (relaxed) at 0): it has only reads, writes, volatile accesses, locks, Start and Join"
        ],
    );
    check(
        Format::RvPredict,
        EventKind::Begin,
        expect!["rv-predict traces can be read but not written"],
    );
}

#[test]
fn names_that_a_format_cannot_hold() {
    let check = |format, thread: &str, other: &str, site: &str, expected: Expect| {
        let mut names = NameTable::new();
        names.push_thread(thread);
        names.push_thread(other);
        names.push_site(site);
        let event = Event {
            thread: ThreadId(0),
            site: SiteId(0),
            kind: EventKind::Fork(ThreadId(1)),
        };
        let error = write(format, &[event], &names).unwrap_err();
        expected.assert_eq(&error.to_string());
    };
    check(
        Format::Std,
        "main thread",
        "T1",
        "1",
        expect![
            "std cannot express event 0 (main thread fork T1 at 1): its names cannot have white space or `|`, as in `main thread`"
        ],
    );
    check(
        Format::Std,
        "T0",
        "",
        "1",
        expect!["std cannot express event 0 (T0 fork  at 1): its names cannot be empty, as in ``"],
    );
    check(
        Format::Std,
        "T0",
        "T0",
        "1",
        expect![
            "std cannot express event 0 (T0 fork T0 at 1): another of its kind is named `T0` too"
        ],
    );
    check(
        Format::Std,
        "T0",
        "T1",
        "a|b",
        expect![
            "std cannot express event 0 (T0 fork T1 at a|b): its locations cannot have `|`, as in `a|b`"
        ],
    );
    check(
        Format::Csv,
        "T0",
        "T1",
        "a\nb",
        expect![[r#"
        csv cannot express event 0 (T0 fork T1 at a
        b): its names cannot have control characters, as in `a\nb`"#]],
    );
    check(
        Format::RoadRunner,
        "a,b",
        "T1",
        "1",
        expect![
            "roadrunner cannot express event 0 (a,b fork T1 at 1): its names cannot have white space or commas, as in `a,b`"
        ],
    );
}
