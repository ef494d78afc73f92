use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;

/// A program of 64-bit x86-64 that loads: one segment that holds the headers, and one of data with a tail of zeros.
fn sample() -> Vec<u8> {
    let mut bytes = vec![0; 0x2100];
    bytes[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
    put(&mut bytes, 24, &0x1234_u64.to_le_bytes()); // e_entry
    put(&mut bytes, 32, &64_u64.to_le_bytes()); // e_phoff
    put(&mut bytes, 52, &[64, 0, 56, 0, 4, 0]); // e_ehsize, e_phentsize, e_phnum
    program_header(
        &mut bytes,
        0,
        elf::PT_LOAD,
        5,
        [0, 0, 0x1800, 0x1800, 0x1000],
    );
    program_header(
        &mut bytes,
        1,
        elf::PT_LOAD,
        6,
        [0x2000, 0x4000, 0x100, 0x3000, 0x20_0000],
    );
    program_header(&mut bytes, 2, elf::PT_INTERP, 4, [0x400, 0x400, 11, 11, 1]);
    program_header(&mut bytes, 3, elf::PT_GNU_STACK, 6, [0, 0, 0, 0, 16]);
    put(&mut bytes, 0x400, b"/lib/ld.so\0");
    bytes
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn program_header(
    bytes: &mut [u8],
    index: usize,
    kind: u32,
    flags: u32,
    [offset, address, file, memory, align]: [u64; 5],
) {
    let at = 64 + index * 56;
    put(bytes, at, &kind.to_le_bytes());
    put(bytes, at + 4, &flags.to_le_bytes());
    for (slot, value) in [offset, address, address, file, memory, align]
        .iter()
        .enumerate()
    {
        put(bytes, at + 8 + slot * 8, &value.to_le_bytes());
    }
}

fn check_refused(change: impl FnOnce(&mut Vec<u8>), expected: Expect) {
    let mut bytes = sample();
    change(&mut bytes);
    expected.assert_eq(&parse(bytes.as_slice()).unwrap_err().to_string());
}

#[test]
fn a_program_is_read() {
    let parsed = parse(sample().as_slice()).unwrap();
    assert_eq!(parsed.entry, 0x1234);
    assert!(parsed.position_independent);
    assert_eq!(
        parsed.interpreter.as_deref(),
        Some(b"/lib/ld.so".as_slice())
    );
    assert_eq!(parsed.headers_address, Some(64));
    assert_eq!(parsed.headers_count, 4);
    assert_eq!(parsed.alignment, 0x20_0000);
    assert_eq!(parsed.stack, ExecutableStack::No);
    assert_eq!(parsed.segments.len(), 2);
}

#[test]
fn other_machines_are_named() {
    check_refused(
        |b| put(b, 18, &[183, 0]),
        expect!["is a program for AArch64; build it for x86-64"],
    );
    check_refused(
        |b| put(b, 18, &[99, 0]),
        expect!["is a program for ELF machine 99; build it for x86-64"],
    );
    check_refused(
        |b| put(b, 4, &[1, 1]),
        expect!["is a 32-bit program (x86-64 with 32-bit pointers); build it for x86-64"],
    );
    check_refused(
        |b| {
            put(b, 4, &[1, 1]);
            put(b, 18, &[3, 0]);
            b.truncate(52);
        },
        expect!["is a 32-bit program (x86); build it for x86-64"],
    );
    check_refused(
        |b| {
            put(b, 5, &[2]);
            put(b, 16, &[0, 2, 0, 21]);
        },
        expect!["is a big-endian program (64-bit PowerPC); build it for x86-64"],
    );
}

#[test]
fn files_that_are_no_programs_are_named() {
    check_refused(
        |b| put(b, 16, &[1, 0]),
        expect!["is an object file; link it into a program first"],
    );
    check_refused(
        |b| put(b, 16, &[4, 0]),
        expect!["is a core dump; run the program that left it"],
    );
    check_refused(
        |b| put(b, 16, &[9, 0]),
        expect!["has the unknown ELF type 9; build it again"],
    );
    check_refused(|b| put(b, 0, b"MZ"), expect!["is not an ELF file"]);
}

#[test]
fn truncated_files_are_refused() {
    check_refused(
        |b| b.truncate(60),
        expect![
            "is truncated: its ELF header ends at byte 64 of a file of 60 bytes; build or copy it again"
        ],
    );
    check_refused(
        |b| b.truncate(100),
        expect![
            "is truncated: its table of program headers ends at byte 288 of a file of 100 bytes; build or copy it again"
        ],
    );
    check_refused(
        |b| b.truncate(0x2001),
        expect![
            "is truncated: its code or data ends at byte 8448 of a file of 8193 bytes; build or copy it again"
        ],
    );
    check_refused(|b| b.truncate(3), expect!["is not an ELF file"]);
}

#[test]
fn contradictions_are_refused() {
    let with = |index, kind, flags, fields| {
        move |b: &mut Vec<u8>| program_header(b, index, kind, flags, fields)
    };
    check_refused(
        with(1, elf::PT_LOAD, 6, [0x2000, 0x4000, 0x100, 0xff, 0x1000]),
        expect![
            "is a damaged ELF file (a segment is larger in the file than in memory); build or copy it again"
        ],
    );
    check_refused(
        with(1, elf::PT_LOAD, 6, [0x2000, 0x4010, 0x100, 0x100, 0x1000]),
        expect![
            "is a damaged ELF file (a segment's offset and address disagree); build or copy it again"
        ],
    );
    check_refused(
        with(1, elf::PT_LOAD, 6, [0, u64::MAX - 0xfff, 0, 0x100, 0x1000]),
        expect![
            "is a damaged ELF file (a segment lies outside the address space); build or copy it again"
        ],
    );
    check_refused(
        with(2, elf::PT_INTERP, 4, [0x400, 0x400, 10, 10, 1]),
        expect![
            "is a damaged ELF file (the dynamic linker's name does not end); build or copy it again"
        ],
    );
    check_refused(
        |b| put(b, 56, &[0, 0]),
        expect!["is a damaged ELF file (no program headers); build or copy it again"],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Random bytes in the headers reach deeper than a random file would.
    #[test]
    fn damaged_headers_never_panic(
        changes in proptest::collection::vec((0_usize..288, any::<u8>()), 1..12),
        length in 0_usize..0x2100,
    ) {
        let mut bytes = sample();
        for (at, value) in changes {
            bytes[at] = value;
        }
        if let Ok(parsed) = parse(bytes.as_slice()) {
            prop_assert!(parsed.segments.iter().all(|s| s.offset + s.file_size <= bytes.len() as u64 || s.file_size == 0));
        }
        bytes.truncate(length);
        let _ = parse(bytes.as_slice());
    }

    #[test]
    fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(bytes.as_slice());
    }
}
