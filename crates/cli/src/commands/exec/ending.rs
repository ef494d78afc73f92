//! How a run ended, in words.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use verdict_launch::{Ending, LaunchOptions};
use verdict_protocol::{
    CallStack, Divergence, EngineFault, GuestFault, Outcome, REGISTER_NAMES, Refusal, WaitingThread,
};
use verdict_symbolize::{MappedModule, StoppedThread, Symbolizer};

use crate::{CliError, Exit};

/// Signals by which a user or a shell ends a program: nothing to explain.
const WISHES: [i32; 5] = [1, 2, 3, 13, 15];

pub(crate) fn to_exit(ending: &Ending, options: &LaunchOptions) -> Result<Exit, CliError> {
    let engine_failed = |what: &str| {
        let version = env!("CARGO_PKG_VERSION");
        CliError::cannot_run(format_args!("the engine failed: {what}")).with_help(format_args!(
            "this is a bug in verdict {version}; please report it with the command you ran"
        ))
    };
    match ending {
        Ending::Reported(report) => match &report.outcome {
            Outcome::Exited { code } => Ok(Exit::Guest(*code)),
            Outcome::Signalled { signal, fault } => signalled(*signal, fault.as_deref()),
            Outcome::Refused(refusal) => Err(CliError::cannot_run(refused(refusal))),
            Outcome::EngineFault(fault) => Err(engine_failed(&engine_fault(fault))),
            Outcome::ReplayStopped { .. } => Ok(Exit::Clean),
            Outcome::Diverged(divergence) => Err(engine_failed(&diverged(divergence))),
            Outcome::Deadlock(deadlock) => Err(standstill(
                "the program's threads all wait and nothing can wake them",
                &deadlock.threads,
            )),
            Outcome::LimitReached { threads } => Err(standstill(
                "the program was stopped after as many instructions as it was to have",
                threads,
            )),
            Outcome::NotEnforced { .. } | Outcome::Stopped => Ok(Exit::Clean),
        },
        Ending::Killed => Err(CliError::cannot_run(
            "the executor was killed (SIGKILL), by a user or by a kernel short of memory",
        )
        .with_help("if memory ran out, the kernel's log says so (`dmesg`)")),
        Ending::Crashed { how } => Err(engine_failed(&format!("its executor {how}"))),
        Ending::Hung => {
            let seconds = options.tick.as_secs() * u64::from(options.silent_ticks_max);
            Err(engine_failed(&format!(
                "its executor showed no sign of life for {seconds} seconds and was killed"
            )))
        }
    }
}

/// True if the run did not come to an end of the program's own: what it has shown is not all there is.
pub(crate) fn is_failure(ending: &Ending) -> bool {
    match ending {
        Ending::Reported(report) => matches!(
            report.outcome,
            Outcome::Refused(_) | Outcome::EngineFault(_)
        ),
        Ending::Killed | Ending::Crashed { .. } | Ending::Hung => true,
    }
}

/// True if the program was never run: there is nothing to tell of it.
pub(crate) fn never_began(ending: &Ending) -> bool {
    let instructions = match ending {
        Ending::Reported(report) => report.stats.instructions,
        Ending::Killed | Ending::Crashed { .. } | Ending::Hung => 0,
    };
    is_failure(ending) && instructions == 0
}

/// Everybody waits, or the time is over: where everybody is.
fn standstill(what: &str, threads: &[WaitingThread]) -> CliError {
    let mut text = what.to_string();
    for thread in threads {
        text.push_str(&format!("\n  thread {}", thread.thread));
        if !thread.waits_for.is_empty() {
            text.push_str(&format!(" waits for {}", thread.waits_for));
        }
        if let Some(owner) = thread.owner {
            text.push_str(&format!(", a lock of thread {owner}"));
        }
        places(&thread.place, &mut text);
    }
    CliError::cannot_run(text)
}

fn signalled(signal: i32, fault: Option<&GuestFault>) -> Result<Exit, CliError> {
    let exit = Exit::guest_signalled(signal);
    let what = match fault {
        Some(fault) => format!("the program {}{}", crash(fault), details(fault)),
        None if WISHES.contains(&signal) => return Ok(exit),
        None => format!("the program was ended by {}", signal_name(signal)),
    };
    Err(CliError::Problem {
        exit,
        what,
        help: None,
    })
}

fn refused(refusal: &Refusal) -> String {
    let mut text = match &refusal.call {
        Some(call) => format!("the program calls {call}: {}", refusal.message),
        None => refusal.message.clone(),
    };
    if let Some(place) = &refusal.place {
        places(place, &mut text);
    }
    text
}

fn engine_fault(fault: &EngineFault) -> String {
    let mut text = fault.message.clone();
    if let Some(guest) = &fault.guest {
        text.push_str(&details(guest));
    }
    text
}

/// Both sides of it.
fn diverged(divergence: &Divergence) -> String {
    let mut text = format!(
        "the replay differs from the recording in thread {} after {} instructions\n  recorded: {}\n  replayed: {}",
        divergence.thread, divergence.instructions, divergence.recorded, divergence.replayed
    );
    if let Some(place) = &divergence.place {
        places(place, &mut text);
    }
    text
}

/// What happened, as the end of a sentence about the program.
fn crash(fault: &GuestFault) -> String {
    let name = signal_name(fault.signal);
    let at = fault.address.map_or_else(
        || "an address".to_owned(),
        |address| format!("address {address:#x}"),
    );
    // Numbers as in `sigaction(2)`.
    let why = match (fault.signal, fault.code) {
        (6, _) => return format!("ended itself with {name}"),
        (11, 1) => format!("{at} is not mapped"),
        (11, 2) => format!("{at} may not be accessed this way"),
        (11, 128) => "an address that no mapping can have".to_owned(),
        (8, 1) => "integer division by zero".to_owned(),
        (8, 2) => "integer overflow in a division".to_owned(),
        (8, _) => "floating-point exception".to_owned(),
        (4, _) => "an instruction that the processor does not know".to_owned(),
        (7, 1) => format!("{at} is not aligned"),
        (7, 2) => format!("{at} is beyond the end of a mapped file"),
        (5, _) => "a breakpoint".to_owned(),
        (_, code) => format!("code {code}"),
    };
    format!("crashed with {name}: {why}")
}

/// Where, who, and the registers.
fn details(fault: &GuestFault) -> String {
    let mut text = String::new();
    places(&fault.place, &mut text);
    let (thread, instructions) = (fault.thread, fault.instructions);
    let _ = write!(
        text,
        "\n  thread {thread}, after {instructions} instructions"
    );
    let registers = &fault.place.registers;
    let named = REGISTER_NAMES.iter().copied().zip(registers.general);
    let named = named.chain([("rip", registers.rip), ("rflags", registers.rflags)]);
    for (index, (name, value)) in named.enumerate() {
        text.push_str(if index % 4 == 0 { "\n  " } else { "  " });
        let _ = write!(text, "{name:>3} {value:016x}");
    }
    text
}

/// The place itself, then its callers; each inlined function on a line of its own.
fn places(place: &CallStack, text: &mut String) {
    let thread = StoppedThread {
        general: place.registers.general,
        rip: place.registers.rip,
        stack: &place.stack,
        modules: place.modules.iter().map(mapped).collect(),
    };
    for location in Symbolizer::default().call_chain(&thread) {
        let _ = write!(text, "\n  at {location}");
        for caller in location.frames.iter().skip(1) {
            let function = caller
                .function
                .as_ref()
                .map_or_else(|| "?".to_owned(), ToString::to_string);
            let source = caller
                .source
                .as_ref()
                .map_or_else(|| "?".to_owned(), ToString::to_string);
            let _ = write!(text, "\n  inlined into {function} at {source}");
        }
    }
}

fn mapped(module: &verdict_protocol::MappedModule) -> MappedModule<'_> {
    MappedModule {
        start: module.start,
        end: module.end,
        file_offset: module.file_offset,
        path: Path::new(OsStr::from_bytes(&module.path)),
    }
}

fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    let name = usize::try_from(signal)
        .ok()
        .and_then(|n| NAMES.get(n.wrapping_sub(1)));
    name.map_or_else(|| format!("signal {signal}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use verdict_protocol::{Registers, Report, Stats};

    fn fault(signal: i32, code: i32, address: Option<u64>) -> GuestFault {
        GuestFault {
            signal,
            code,
            address,
            thread: 2,
            instructions: 12_345,
            place: CallStack {
                registers: Registers {
                    general: std::array::from_fn(|i| i as u64),
                    rip: 0x1000_1139,
                    rflags: 0x246,
                },
                stack: Vec::new(),
                modules: vec![verdict_protocol::MappedModule {
                    start: 0x1000_1000,
                    end: 0x1000_2000,
                    file_offset: 0x1000,
                    path: b"/no/such/program".to_vec(),
                }],
            },
        }
    }

    fn check(ending: &Ending, expected: &Expect) {
        let text = match to_exit(ending, &LaunchOptions::default()) {
            Ok(exit) => format!("exit {}", exit.code()),
            Err(CliError::Problem { exit, what, help }) => {
                format!(
                    "{what}\nhelp: {}\nexit {}",
                    help.unwrap_or_default(),
                    exit.code()
                )
            }
            Err(CliError::OutputClosed) => unreachable!("nothing was written"),
        };
        expected.assert_eq(&text);
    }

    fn check_outcome(outcome: Outcome, expected: &Expect) {
        check(
            &Ending::Reported(Box::new(Report {
                outcome,
                stats: Stats::default(),
            })),
            expected,
        );
    }

    #[test]
    fn a_crash_is_told_with_place_thread_and_registers() {
        check_outcome(
            Outcome::Signalled {
                signal: 11,
                fault: Some(Box::new(fault(11, 1, Some(0)))),
            },
            &expect![[r#"
                the program crashed with SIGSEGV: address 0x0 is not mapped
                  at /no/such/program+0x1139
                  thread 2, after 12345 instructions
                  rax 0000000000000000  rcx 0000000000000001  rdx 0000000000000002  rbx 0000000000000003
                  rsp 0000000000000004  rbp 0000000000000005  rsi 0000000000000006  rdi 0000000000000007
                   r8 0000000000000008   r9 0000000000000009  r10 000000000000000a  r11 000000000000000b
                  r12 000000000000000c  r13 000000000000000d  r14 000000000000000e  r15 000000000000000f
                  rip 0000000010001139  rflags 0000000000000246
                help: 
                exit 139"#]],
        );
    }

    #[test]
    fn kinds_of_crashes() {
        let kinds = [
            (11, 2),
            (11, 128),
            (8, 1),
            (8, 3),
            (4, 2),
            (7, 2),
            (6, -6),
            (5, 128),
            (31, 1),
        ];
        let lines: Vec<String> = kinds
            .iter()
            .map(|&(signal, code)| crash(&fault(signal, code, Some(16))))
            .collect();
        expect![[r#"
            crashed with SIGSEGV: address 0x10 may not be accessed this way
            crashed with SIGSEGV: an address that no mapping can have
            crashed with SIGFPE: integer division by zero
            crashed with SIGFPE: floating-point exception
            crashed with SIGILL: an instruction that the processor does not know
            crashed with SIGBUS: address 0x10 is beyond the end of a mapped file
            ended itself with SIGABRT
            crashed with SIGTRAP: a breakpoint
            crashed with SIGSYS: code 1"#]]
        .assert_eq(&lines.join("\n"));
    }

    #[test]
    fn ends_without_a_fault() {
        check_outcome(Outcome::Exited { code: 42 }, &expect!["exit 42"]);
        check_outcome(
            Outcome::Signalled {
                signal: 2,
                fault: None,
            },
            &expect!["exit 130"],
        );
        check_outcome(
            Outcome::Signalled {
                signal: 9,
                fault: None,
            },
            &expect![[r#"
                the program was ended by SIGKILL
                help: 
                exit 137"#]],
        );
        check_outcome(
            Outcome::Signalled {
                signal: 34,
                fault: None,
            },
            &expect![[r#"
                the program was ended by signal 34
                help: 
                exit 162"#]],
        );
    }

    #[test]
    fn failures_that_are_not_the_programs() {
        check(
            &Ending::Killed,
            &expect![[r#"
            the executor was killed (SIGKILL), by a user or by a kernel short of memory
            help: if memory ran out, the kernel's log says so (`dmesg`)
            exit 3"#]],
        );
        check(
            &Ending::Crashed {
                how: "crashed with signal 11".into(),
            },
            &expect![[r#"
                the engine failed: its executor crashed with signal 11
                help: this is a bug in verdict 0.1.0; please report it with the command you ran
                exit 3"#]],
        );
        check(
            &Ending::Hung,
            &expect![[r#"
            the engine failed: its executor showed no sign of life for 30 seconds and was killed
            help: this is a bug in verdict 0.1.0; please report it with the command you ran
            exit 3"#]],
        );
        check_outcome(
            Outcome::EngineFault(EngineFault {
                message: "the code cache is full".into(),
                guest: None,
            }),
            &expect![[r#"
                the engine failed: the code cache is full
                help: this is a bug in verdict 0.1.0; please report it with the command you ran
                exit 3"#]],
        );
        check_outcome(
            Outcome::Diverged(Box::new(Divergence {
                instructions: 700,
                thread: 1,
                recorded: "read(2) at instruction 700".into(),
                replayed: "write(1) at instruction 700".into(),
                place: None,
            })),
            &expect![[r#"
                the engine failed: the replay differs from the recording in thread 1 after 700 instructions
                  recorded: read(2) at instruction 700
                  replayed: write(1) at instruction 700
                help: this is a bug in verdict 0.1.0; please report it with the command you ran
                exit 3"#]],
        );
        let refusal = Refusal {
            message: "shared rings bypass system calls; use ordinary calls".into(),
            call: Some("io_uring_setup".into()),
            place: Some(Box::new(fault(0, 0, None).place)),
        };
        check_outcome(
            Outcome::Refused(refusal),
            &expect![[r#"
                the program calls io_uring_setup: shared rings bypass system calls; use ordinary calls
                  at /no/such/program+0x1139
                help: 
                exit 3"#]],
        );
    }
}
