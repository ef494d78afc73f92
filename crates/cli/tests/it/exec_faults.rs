//! Programs that crash, that the engine cannot go on with, and that try to take the engine with them.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use expect_test::expect;

use crate::guest::Guest;
use crate::transcript::{transcript, verdict};

/// Every register has a known value, and so has the number of instructions.
#[test]
fn a_crash_shows_exact_registers_and_the_line() {
    let guest = Guest::assembly(
        "
        .globl _start
_start: mov $1, %rax
        mov $2, %rcx
        mov $3, %rdx
        mov $4, %rbx
        mov $5, %rsp
        mov $6, %rbp
        mov $7, %rsi
        mov $8, %rdi
        mov $9, %r8
        mov $10, %r9
        mov $11, %r10
        mov $12, %r11
        mov $13, %r12
        mov $14, %r13
        mov $15, %r14
        mov $16, %r15
        cmp %rax, %rax
        movb $0, 0x10
        hlt
",
    );
    expect![[r#"
        --- stderr
        error: the program crashed with SIGSEGV: address 0x10 is not mapped
          at guest.s:20
          thread 0, after 17 instructions
          rax 0000000000000001  rcx 0000000000000002  rdx 0000000000000003  rbx 0000000000000004
          rsp 0000000000000005  rbp 0000000000000006  rsi 0000000000000007  rdi 0000000000000008
           r8 0000000000000009   r9 000000000000000a  r10 000000000000000b  r11 000000000000000c
          r12 000000000000000d  r13 000000000000000e  r14 000000000000000f  r15 0000000000000010
          rip 0000000000401073  rflags 0000000000000246
        --- exit 139
    "#]]
    .assert_eq(&guest.show(&guest.run(&[])));
}

const CRASHES: &str = r#"
#include <pthread.h>
#include <stdlib.h>
volatile int zero;
volatile char *nowhere;
void *second_thread(void *unused) {
    *nowhere = 1; // in a thread
    return unused;
}
int main(int argc, char **argv) {
    pthread_t thread;
    switch (atoi(argv[1])) {
    case 0: *nowhere = 1; // write
    case 1: return 7 / zero; // division
    case 2: __builtin_trap(); // trap
    case 3: abort(); // abort
    case 4: ((void (*)(void))16)(); // jump
    case 5: pthread_create(&thread, 0, second_thread, 0); pthread_join(thread, 0);
    case 6: *(volatile char *)main = 1; // code
    case 7: *(volatile char *)0x8000000000000000 = 1; // non-canonical
    }
    return argc;
}
"#;

#[test]
fn crashes_of_every_kind_name_their_line() {
    let guest = Guest::c(CRASHES);
    let kinds = [
        ("0", 139, "SIGSEGV: address 0x0 is not mapped", "// write"),
        ("1", 136, "SIGFPE: integer division by zero", "// division"),
        (
            "2",
            132,
            "SIGILL: an instruction that the processor does not know",
            "// trap",
        ),
        (
            "5",
            139,
            "SIGSEGV: address 0x0 is not mapped",
            "// in a thread",
        ),
        ("6", 139, "may not be accessed this way", "// code"),
        (
            "7",
            139,
            "SIGSEGV: an address that no mapping can have",
            "// non-canonical",
        ),
    ];
    for (argument, code, what, marker) in kinds {
        let output = guest.run(&[argument]);
        let text = guest.show(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(
            text.contains("error: the program crashed with ") && text.contains(what),
            "{text}"
        );
        let line = guest.line_of(marker);
        assert!(text.contains(&format!(" at {line}")), "{line} of {text}");
    }
}

#[test]
fn the_thread_of_a_crash_is_named() {
    let guest = Guest::c(CRASHES);
    assert!(
        guest
            .show(&guest.run(&["0"]))
            .contains("\n  thread 0, after ")
    );
    assert!(
        guest
            .show(&guest.run(&["5"]))
            .contains("\n  thread 1, after ")
    );
}

#[test]
fn abort_and_wild_jumps_are_told() {
    let guest = Guest::c(CRASHES);
    let cases = [
        (
            "3",
            134,
            "error: the program ended itself with SIGABRT\n",
            "// abort",
        ),
        (
            "4",
            139,
            "error: the program crashed with SIGSEGV: address 0x10 is not mapped\n",
            "// jump",
        ),
    ];
    for (argument, code, what, marker) in cases {
        let output = guest.run(&[argument]);
        let text = guest.show(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(what), "{text}");
        // Neither is a place in the program itself; the caller is.
        assert!(
            text.contains(&format!("main at {}", guest.line_of(marker))),
            "{text}"
        );
    }
}

#[test]
fn crashes_are_the_same_in_every_run() {
    let guest = Guest::c(CRASHES);
    for argument in ["0", "1", "3", "5"] {
        let first = guest.show(&guest.run(&[argument]));
        assert_eq!(first, guest.show(&guest.run(&[argument])));
    }
}

/// Addresses of the engine: code cache, first table of branches, context, and what lies far above the guest. (Garbage
/// in the second table is no attack: it is never found there.)
#[test]
fn a_guest_that_attacks_the_engine_ends_in_a_report() {
    let guest = Guest::c(
        r#"
        #include <stdlib.h>
        #include <string.h>
        int main(int argc, char **argv) {
            char *target = (char *)strtoul(argv[2], 0, 16);
            if (argv[1][0] == 'w') memset(target, 0x41, strtoul(argv[3], 0, 16));
            else if (argv[1][0] == 'r') return *(volatile char *)target == 0;
            else ((void (*)(void))target)();
            return 0;
        }"#,
    );
    let targets = [
        ("40000000", "1000"),
        ("60000000", "80000"),
        ("70000000", "1000"),
        ("555555554000", "1000"),
        ("7ffff7fff000", "1000"),
    ];
    for (target, length) in targets {
        for deed in ["write", "jump"] {
            let output = guest.run(&[deed, target, length]);
            let text = guest.show(&output);
            let code = output.status.code();
            assert!(matches!(code, Some(139 | 3)), "{deed} {target}: {text}");
            assert!(
                text.starts_with("--- stderr\nerror: "),
                "{deed} {target}: {text}"
            );
        }
    }
}

#[test]
fn refused_calls_name_the_call_and_the_line() {
    let guest = Guest::c(
        r#"
        #include <sys/ptrace.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            char parameters[120] = {0};
            if (argc > 1) ptrace(PTRACE_TRACEME, 0, 0, 0); // tracing
            return syscall(SYS_io_uring_setup, 8, parameters); // ring
        }"#,
    );
    for (arguments, call, marker) in [
        (&[][..], "io_uring_setup", "// ring"),
        (&["x"], "ptrace", "// tracing"),
    ] {
        let output = guest.run(arguments);
        let text = guest.show(&output);
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(
            text.starts_with("--- stderr\nerror: ") && text.contains(call),
            "{text}"
        );
        assert!(text.contains(&guest.line_of(marker)), "{text}");
    }
}

/// The guest says that it runs and waits for its input; then the executor is killed from outside.
#[test]
fn a_killed_executor_is_told_from_a_crash() {
    let mut controller = verdict(Path::new("/"), &["exec", "--", "cat"])
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    controller.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    let mut echo = [0];
    controller
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut echo)
        .unwrap();
    let children =
        fs::read_to_string(format!("/proc/{0}/task/{0}/children", controller.id())).unwrap();
    let executor = children.split_whitespace().next().unwrap();
    assert!(
        Command::new("kill")
            .args(["-KILL", executor])
            .status()
            .unwrap()
            .success()
    );
    // Without the copy of the input's end that we hold, a wrong wait would end at once and prove nothing.
    let input = controller.stdin.take();
    let output = controller.wait_with_output().unwrap();
    drop(input);
    expect![[r#"
        --- stderr
        error: the executor was killed (SIGKILL), by a user or by a kernel short of memory
        help: if memory ran out, the kernel's log says so (`dmesg`)
        --- exit 3
    "#]]
    .assert_eq(&transcript(&output));
}

#[test]
fn no_memory_for_the_engine() {
    let output = Command::new("/bin/sh")
        .args([
            "-c",
            r#"ulimit -v 150000; exec "$0" exec -- /bin/true"#,
            env!("CARGO_BIN_EXE_verdict"),
        ])
        .env_clear()
        .output()
        .unwrap();
    expect![[r#"
        --- stderr
        error: no memory for the code cache (256 MB at 0x40000000): Cannot allocate memory (os error 12); free memory or raise the limit on address space (ulimit -v)
        --- exit 3
    "#]].assert_eq(&transcript(&output));
}

#[test]
fn the_program_ends_as_it_would_alone() {
    let run = |script: &str| {
        let output = verdict(Path::new("/"), &["exec", "--", "/bin/sh", "-c", script])
            .output()
            .unwrap();
        (output.status.code(), transcript(&output))
    };
    assert_eq!(run("exit 42").0, Some(42));
    assert_eq!(run("exit 0").0, Some(0));
    // A wish, not a crash: not a word.
    assert_eq!(
        run("kill -TERM $$"),
        (Some(143), "--- exit 143\n".to_owned())
    );
}

#[test]
fn a_megabyte_of_arguments_is_passed_on() {
    let argument = "x".repeat(1023);
    let mut arguments = vec!["exec", "--", "/bin/sh", "-c", "echo $#"];
    arguments.extend(vec![argument.as_str(); 1025]);
    let output = verdict(Path::new("/"), &arguments).output().unwrap();
    assert_eq!(transcript(&output), "--- stdout\n1024\n--- exit 0\n");
}

#[test]
fn the_guest_finds_its_first_descriptor_free() {
    let guest = Guest::c(
        r#"
        #include <fcntl.h>
        int main(void) { return open("/dev/null", O_RDONLY) == 3 ? 40 : 41; }"#,
    );
    assert_eq!(guest.run(&[]).status.code(), Some(40));
}
