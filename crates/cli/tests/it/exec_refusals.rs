//! Programs that `verdict exec` cannot run: one clear sentence each, exit code 3.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::transcript::{check_in, transcript, verdict};

const LINKER: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";

fn executable(folder: &TempDir, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[track_caller]
fn check_program(bytes: &[u8], mode: u32, expected: &Expect) {
    let folder = TempDir::new().unwrap();
    executable(&folder, "program", bytes, mode);
    check_in(folder.path(), &["exec", "--", "./program"], expected);
}

/// An ELF header as a compiler for that machine would begin a program with.
fn elf_header(class: u8, order: u8, machine: u16) -> Vec<u8> {
    let mut header = vec![0; if class == 1 { 52 } else { 64 }];
    header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, order, 1]);
    let halves = [2, machine].map(|half: u16| {
        if order == 2 {
            half.to_be_bytes()
        } else {
            half.to_le_bytes()
        }
    });
    header[16..20].copy_from_slice(&halves.concat());
    header
}

#[test]
fn programs_of_other_machines() {
    check_program(
        &elf_header(1, 1, 3),
        0o755,
        &expect![[r#"
        --- stderr
        error: ./program: is a 32-bit program (x86); build it for x86-64
        --- exit 3
    "#]],
    );
    check_program(
        &elf_header(1, 1, 40),
        0o755,
        &expect![[r#"
        --- stderr
        error: ./program: is a 32-bit program (ARM); build it for x86-64
        --- exit 3
    "#]],
    );
    check_program(
        &elf_header(2, 1, 183),
        0o755,
        &expect![[r#"
        --- stderr
        error: ./program: is a program for AArch64; build it for x86-64
        --- exit 3
    "#]],
    );
    check_program(
        &elf_header(2, 2, 22),
        0o755,
        &expect![[r#"
        --- stderr
        error: ./program: is a big-endian program (IBM Z); build it for x86-64
        --- exit 3
    "#]],
    );
}

#[test]
fn truncated_program() {
    let mut cut = elf_header(2, 1, 62);
    cut[32] = 64; // where the program headers are
    cut[54..57].copy_from_slice(&[56, 0, 9]); // their size and number
    check_program(
        &cut,
        0o755,
        &expect![[r#"
            --- stderr
            error: ./program: is truncated: its table of program headers ends at byte 568 of a file of 64 bytes; build or copy it again
            --- exit 3
        "#]],
    );
}

#[test]
fn scripts() {
    check_program(
        b"echo hello\n",
        0o755,
        &expect![[r#"
        --- stderr
        error: ./program: is neither an ELF program nor a script with a `#!` line; a script needs one, such as `#!/bin/sh`
        --- exit 3
    "#]],
    );
    check_program(
        b"#!/no/such/interpreter\n",
        0o755,
        &expect![[r#"
        --- stderr
        error: ./program: its `#!` line names /no/such/interpreter, which does not exist; install it, or correct the path
        --- exit 3
    "#]],
    );
    check_program(
        b"#!/bin/sh\r\necho hello\r\n",
        0o755,
        &expect![[r#"
        --- stderr
        error: ./program: its `#!` line names /bin/sh\r, which ends in a carriage return; save the script with Unix line ends
        --- exit 3
    "#]],
    );
}

#[test]
fn missing_dynamic_linker() {
    let mut program = fs::read("/bin/true").unwrap();
    let at = program
        .windows(LINKER.len())
        .position(|window| window == LINKER)
        .unwrap();
    program[at + 1..at + 4].copy_from_slice(b"odd");
    check_program(
        &program,
        0o755,
        &expect![[r#"
        --- stderr
        error: ./program: asks for the dynamic linker /odd64/ld-linux-x86-64.so.2, which does not exist; install it, or correct the path
        --- exit 3
    "#]],
    );
}

#[test]
fn privileged_program() {
    check_program(
        &fs::read("/bin/true").unwrap(),
        0o4755,
        &expect![[r#"
        --- stderr
        error: ./program: is set-user-id, and the engine runs nothing with changed rights; run a copy of it without them
        --- exit 3
    "#]],
    );
}

#[test]
fn files_that_cannot_be_executed() {
    check_program(
        &fs::read("/bin/true").unwrap(),
        0o644,
        &expect![[r#"
        --- stderr
        error: ./program: permission to execute is missing; `chmod +x` it, or check the folders above it and `noexec` mounts
        --- exit 3
    "#]],
    );
    let folder = TempDir::new().unwrap();
    check_in(
        folder.path(),
        &["exec", "--", "./none"],
        &expect![[r#"
        --- stderr
        error: ./none: no such file; check the path
        --- exit 3
    "#]],
    );
    check_in(
        folder.path(),
        &["exec", "--", "no-such-program"],
        &expect![[r#"
            --- stderr
            error: no-such-program: not found in PATH; check the spelling, or give a path with a slash
            --- exit 3
        "#]],
    );
    check_in(
        folder.path(),
        &["exec", "--", "/"],
        &expect![[r#"
        --- stderr
        error: /: is a directory; name the program in it
        --- exit 3
    "#]],
    );
    check_in(
        folder.path(),
        &["exec", "--", ""],
        &expect![[r#"
        --- stderr
        error: the empty name: no such file; check the path
        --- exit 3
    "#]],
    );
}

/// The file is still open somewhere, as under a linker that rewrites it; its name is gone.
#[test]
fn program_that_was_deleted() {
    let folder = TempDir::new().unwrap();
    let path = executable(&folder, "program", &fs::read("/bin/true").unwrap(), 0o755);
    let open = fs::File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let name = format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd());
    let output = verdict(Path::new("/"), &["exec", "--", &name])
        .output()
        .unwrap();
    expect![[r#"
        --- stderr
        error: PROGRAM: was deleted before it could be loaded; build or install it again
        --- exit 3
    "#]]
    .assert_eq(&transcript(&output).replace(&name, "PROGRAM"));
}

/// A larger stack lets us be given more arguments than the guest, whose stack is of the usual size, may get. (One
/// argument of more than 128 KiB reaches nobody: the kernel refuses it before we are started.)
#[test]
fn more_arguments_than_fit() {
    let script = r#"ulimit -s 65536; exec env -i "$0" exec -- /bin/true $(seq 200000)"#;
    let output = Command::new("/bin/sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_verdict")])
        .output()
        .unwrap();
    expect![[r#"
        --- stderr
        error: arguments and environment take 2888923 bytes and the program's stack has room for 2097152; pass them in a file or on standard input
        --- exit 3
    "#]].assert_eq(&transcript(&output));
}

#[test]
fn no_program_is_bad_usage() {
    let folder = TempDir::new().unwrap();
    check_in(
        folder.path(),
        &["exec"],
        &expect![[r#"
        --- stderr
        error: the following required arguments were not provided:
          <PROGRAM>...

        Usage: verdict exec <PROGRAM>...

        For more information, try '--help'.
        --- exit 2
    "#]],
    );
    check_in(
        folder.path(),
        &["exec", "--quantum", "0", "--", "true"],
        &expect![[r#"
            --- stderr
            error: invalid value '0' for '--quantum <INSTRUCTIONS>': 0 is not in 1..18446744073709551615

            For more information, try '--help'.
            --- exit 2
        "#]],
    );
}

#[test]
fn the_executor_is_not_for_users() {
    let folder = TempDir::new().unwrap();
    check_in(
        folder.path(),
        &["__executor"],
        &expect![[r#"
        --- stderr
        error: `verdict __executor` is for verdict itself
        help: use `verdict exec`
        --- exit 2
    "#]],
    );
    check_in(
        folder.path(),
        &["__executor", "1", "2", "x"],
        &expect![[r#"
            --- stderr
            error: `verdict __executor` is for verdict itself
            help: use `verdict exec`
            --- exit 2
        "#]],
    );
}

/// A program that was not run has no verdict: nothing on standard output that could be taken for one.
#[test]
fn every_command_that_runs_programs_refuses_alike() {
    for command in ["exec", "detect", "confirm", "classify", "run"] {
        for program in ["./none", "./program"] {
            let folder = TempDir::new().unwrap();
            executable(&folder, "program", b"int main(void) { return 0; }\n", 0o644);
            let run = Command::new(env!("CARGO_BIN_EXE_verdict"))
                .args([command, "--", program])
                .current_dir(folder.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&run.stdout).into_owned();
            let error = String::from_utf8_lossy(&run.stderr).into_owned();
            let told = (run.status.code(), said.as_str(), error.contains(program));
            assert_eq!(told, (Some(3), "", true), "{command} {program}: {error}");
        }
    }
}
