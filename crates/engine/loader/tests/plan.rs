//! Plans of real files: what is found, what is refused and in which words, and where pages go.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use tempfile::TempDir;
use verdict_loader::{Layout, LoadError, LoadPlan, Lookup, MappingSource, PAGE, Request, plan};

const PIE_BASE: u64 = 0x1000_0000;
const INTERP_BASE: u64 = 0x2000_0000;

fn layout() -> Layout {
    Layout {
        pie_base: PIE_BASE,
        interp_base: INTERP_BASE,
        lowest: 0x1_0000,
        highest: 0x7fff_f000,
        reserved: vec![0x3000_0000..0x5000_0000, 0x6000_0000..0x7000_0000],
        stack_limit: 8 << 20,
    }
}

fn plan_path(path: &Path, argv: &[&str]) -> Result<LoadPlan, LoadError> {
    let argv: Vec<Vec<u8>> = argv.iter().map(|a| a.as_bytes().to_vec()).collect();
    let request = Request {
        program: path.as_os_str().as_bytes(),
        lookup: Lookup::Search(Some(b"/usr/bin:/bin")),
        argv: &argv,
        env: &[],
    };
    plan(&request, &layout())
}

fn write(folder: &TempDir, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// Compares a refusal with the folder's random name taken out.
fn check_refused(folder: &TempDir, path: &Path, errno: i32, expected: Expect) {
    let refusal = plan_path(path, &["p"]).unwrap_err();
    expected.assert_eq(
        &refusal
            .to_string()
            .replace(folder.path().to_str().unwrap(), "DIR"),
    );
    assert_eq!(refusal.errno(), errno);
}

#[test]
fn a_dynamic_program_is_planned_with_its_linker() {
    let plan = plan_path(Path::new("true"), &["true"]).unwrap();
    assert_eq!(plan.execfn, b"/usr/bin/true");
    assert_eq!(plan.argv, [b"true".to_vec()]);
    let linker = plan.interpreter.as_ref().unwrap();
    assert_eq!((plan.program.base, linker.base), (PIE_BASE, INTERP_BASE));
    assert_eq!(plan.entry, linker.entry);
    for mapping in &plan.mappings {
        assert!(mapping.len > 0);
        assert_eq!((mapping.guest_addr % PAGE, mapping.len % PAGE), (0, 0));
        let inside = |i: &verdict_loader::Image| {
            mapping.guest_addr >= i.base && mapping.guest_addr + mapping.len <= i.end_page()
        };
        assert!(inside(&plan.program) || inside(linker));
        if let MappingSource::File { offset, .. } = mapping.source {
            assert_eq!(offset % PAGE, 0);
        }
    }
    let entry_is_code = plan.mappings.iter().any(|m| {
        m.protection.execute && (m.guest_addr..m.guest_addr + m.len).contains(&plan.entry)
    });
    assert!(entry_is_code);
}

#[test]
fn a_script_leads_to_its_interpreter() {
    let folder = TempDir::new().unwrap();
    let script = write(&folder, "s", b"#!/bin/true -a b\n", 0o755);
    let plan = plan_path(&script, &["typed", "one"]).unwrap();
    let script = script.to_str().unwrap();
    assert_eq!(
        plan.argv,
        ["/bin/true", "-a b", script, "one"].map(|a| a.as_bytes().to_vec())
    );
    assert_eq!(plan.execfn, script.as_bytes());
    assert_eq!(plan.program.path, Path::new("/bin/true"));
}

#[test]
fn five_scripts_deep_is_as_deep_as_it_goes() {
    let folder = TempDir::new().unwrap();
    let mut path = PathBuf::from("/bin/true");
    for depth in 1..=5 {
        path = write(
            &folder,
            &depth.to_string(),
            format!("#!{}\n", path.display()).as_bytes(),
            0o755,
        );
    }
    assert_eq!(plan_path(&path, &["p"]).unwrap().argv.len(), 6);
    let sixth = write(
        &folder,
        "6",
        format!("#!{}\n", path.display()).as_bytes(),
        0o755,
    );
    check_refused(
        &folder,
        &sixth,
        40,
        expect!["DIR/1: is more than five scripts deep; let the `#!` line name a binary"],
    );
}

#[test]
fn what_is_no_program_is_refused() {
    let folder = TempDir::new().unwrap();
    let refused = |path: &Path, errno, expected| check_refused(&folder, path, errno, expected);
    refused(
        &folder.path().join("none"),
        2,
        expect!["DIR/none: no such file; check the path"],
    );
    refused(
        Path::new("no-such-program-anywhere"),
        2,
        expect![
            "no-such-program-anywhere: not found in PATH; check the spelling, or give a path with a slash"
        ],
    );
    refused(
        Path::new(""),
        2,
        expect!["the empty name: no such file; check the path"],
    );
    refused(
        folder.path(),
        13,
        expect!["DIR: is a directory; name the program in it"],
    );
    refused(
        Path::new("/dev/null"),
        13,
        expect!["/dev/null: is not a regular file; only regular files can be run"],
    );
    refused(
        &write(&folder, "plain", b"#!/bin/sh\n", 0o644),
        13,
        expect![
            "DIR/plain: permission to execute is missing; `chmod +x` it, or check the folders above it and `noexec` mounts"
        ],
    );
    refused(
        &write(&folder, "text", b"echo hello\n", 0o755),
        8,
        expect![
            "DIR/text: is neither an ELF program nor a script with a `#!` line; a script needs one, such as `#!/bin/sh`"
        ],
    );
    refused(
        &write(&folder, "empty", b"", 0o755),
        8,
        expect![
            "DIR/empty: is neither an ELF program nor a script with a `#!` line; a script needs one, such as `#!/bin/sh`"
        ],
    );
    refused(
        &write(&folder, "bad\x1b[31m", b"#!\n", 0o755),
        8,
        expect![
            "DIR/bad\\u{1b}[31m: its `#!` line names no interpreter within its first 256 bytes; write one, such as `#!/bin/sh`"
        ],
    );
}

#[test]
fn a_missing_script_interpreter_is_named() {
    let folder = TempDir::new().unwrap();
    check_refused(
        &folder,
        &write(&folder, "s", b"#!/no/such/shell\n", 0o755),
        2,
        expect![
            "DIR/s: its `#!` line names /no/such/shell, which does not exist; install it, or correct the path"
        ],
    );
    check_refused(
        &folder,
        &write(&folder, "crlf", b"#!/bin/sh\r\n", 0o755),
        2,
        expect![
            "DIR/crlf: its `#!` line names /bin/sh\\r, which ends in a carriage return; save the script with Unix line ends"
        ],
    );
    check_refused(
        &folder,
        &write(&folder, "folder", b"#!/bin\n", 0o755),
        13,
        expect![
            "DIR/folder: its `#!` line names /bin, which is not an executable file; make it one, or correct the path"
        ],
    );
}

#[test]
fn privileged_programs_are_refused() {
    let folder = TempDir::new().unwrap();
    let program = fs::read("/bin/true").unwrap();
    check_refused(
        &folder,
        &write(&folder, "suid", &program, 0o4755),
        1,
        expect![
            "DIR/suid: is set-user-id, and the engine runs nothing with changed rights; run a copy of it without them"
        ],
    );
    check_refused(
        &folder,
        &write(&folder, "sgid", &program, 0o2755),
        1,
        expect![
            "DIR/sgid: is set-group-id, and the engine runs nothing with changed rights; run a copy of it without them"
        ],
    );
    // On a script these bits mean nothing, to the kernel and to us.
    assert!(plan_path(&write(&folder, "script", b"#!/bin/true\n", 0o4755), &["p"]).is_ok());
}

#[test]
fn a_missing_dynamic_linker_is_named() {
    let folder = TempDir::new().unwrap();
    let mut program = fs::read("/bin/true").unwrap();
    let linker = b"/lib64/ld-linux-x86-64.so.2\0";
    let at = program
        .windows(linker.len())
        .position(|w| w == linker)
        .unwrap();
    program[at + 1..at + 4].copy_from_slice(b"odd");
    check_refused(
        &folder,
        &write(&folder, "p", &program, 0o755),
        2,
        expect![
            "DIR/p: asks for the dynamic linker /odd64/ld-linux-x86-64.so.2, which does not exist; install it, or correct the path"
        ],
    );
}

#[test]
fn a_deleted_program_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = write(&folder, "p", &fs::read("/bin/true").unwrap(), 0o755);
    let open = fs::File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let by_descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
    let refusal = plan_path(Path::new(&by_descriptor), &["p"]).unwrap_err();
    assert!(matches!(refusal, LoadError::Deleted { .. }), "{refusal}");
    assert_eq!(
        refusal.to_string(),
        format!(
            "{by_descriptor}: was deleted before it could be loaded; build or install it again"
        )
    );
}

#[test]
fn libraries_and_taken_addresses_are_refused() {
    let folder = TempDir::new().unwrap();
    let mut library = fs::read("/bin/true").unwrap();
    library[24..32].fill(0); // e_entry
    let interp = program_header_of_kind(&library, 3);
    library[interp..interp + 4].fill(0); // PT_INTERP becomes PT_NULL
    check_refused(
        &folder,
        &write(&folder, "lib.so", &library, 0o755),
        8,
        expect![
            "DIR/lib.so: is a shared library without an entry point; run a program that uses it"
        ],
    );
    let mut fixed = fs::read("/bin/true").unwrap();
    fixed[16] = 2; // ET_EXEC, linked at 0
    let refusal = plan_path(&write(&folder, "fixed", &fixed, 0o755), &["p"]).unwrap_err();
    assert!(
        matches!(refusal, LoadError::AddressTaken { start: 0, .. }),
        "{refusal}"
    );
}

fn program_header_of_kind(elf: &[u8], kind: u8) -> usize {
    let count = usize::from(elf[56]);
    (0..count)
        .map(|i| 64 + i * 56)
        .find(|&at| elf[at] == kind)
        .unwrap()
}

#[test]
fn bss_is_zeroed_from_its_first_byte() {
    let plan = plan_path(Path::new("/bin/bash"), &["bash"]).unwrap();
    let data = plan
        .mappings
        .iter()
        .position(|m| m.zero_from.is_some() && m.guest_addr < INTERP_BASE)
        .unwrap();
    let (data, zeros) = (&plan.mappings[data], &plan.mappings[data + 1]);
    let zero_from = data.zero_from.unwrap();
    assert!(data.protection.write);
    assert!(zero_from > data.guest_addr && zero_from < data.guest_addr + data.len);
    assert!(matches!(zeros.source, MappingSource::Zero));
    assert_eq!(zeros.guest_addr, data.guest_addr + data.len);
    assert_eq!(zeros.guest_addr + zeros.len, plan.program.end_page());
}
