//! Random instruction sequences, executed natively and under the engine's translation, must leave the same registers,
//! flags, x87 and vector state and memory; where the CPU refuses an instruction, it must refuse the same one with the
//! same state; and stopped at any instruction count, the state must be that of the CPU after as many instructions.
//!
//! The same CPU runs both sides, so undefined results are compared like all others. Not compared, because they are
//! the host's: the address and opcode of the last x87 instruction. Not tested: what the engine performs itself
//! (system calls, CPUID, time, randomness), segment loads, and what waits or is privileged beyond a plain refusal.
//!
//! Known differences, left out where they would show: a branch to a non-canonical address is refused at its target, not
//! at the branch; code longer than 15 bytes per instruction is SIGILL instead of SIGSEGV; an operand-size prefix before
//! a near branch means what it means to Intel's CPUs; and the arithmetic flags are not kept where no instruction will
//! read them, which a stop or a fault there can show.
//!
//! A process is one machine (everything lies at fixed addresses) and runs a range of cases; a case is found again by
//! seed and number. Failing cases are shortened before they are told.

mod arena;
mod check;
mod engine;
mod features;
mod forms;
mod machine;
mod operands;
mod program;
mod random;
mod report;
mod state;
mod step;
mod told;
mod vectors;

use arena::{HIGH_CODE, LOW_CODE};
use check::{Checked, check};
use clap::Parser;
use forms::Forms;
use iced_x86::Code;
use machine::Machine;
use program::{Encoded, Program};
use random::Random;
use state::State;
use std::collections::BTreeSet;
use std::process::ExitCode;
use verdict_translate::Instrumentation;

/// How often a form that was not executed is tried again.
const RETRIES_MAX: u64 = 40;
/// Longest code that can be given: what fits before the end of the first page.
const CODE_MAX: usize = 4000;

/// Compare random instruction sequences under the engine with the CPU.
#[derive(Parser, Debug)]
struct Arguments {
    /// Seed of all cases
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first case
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Let every link charge, as where there are several threads
    #[arg(long)]
    charged: bool,
    /// Short paths only, as when a program starts
    #[arg(long)]
    short: bool,
    /// How many cases
    #[arg(long, default_value_t = 1000)]
    cases: u64,
    /// Log accesses and compare the log
    #[arg(long)]
    accesses: bool,
    /// Sift accesses
    #[arg(long, conflicts_with = "accesses")]
    sifted: bool,
    /// Show the program of each case before it runs
    #[arg(long)]
    verbose: bool,
    /// Stop after so many mismatches
    #[arg(long, default_value_t = 5)]
    mismatches_max: u32,
    /// Run this code (hexadecimal) instead, at a low and at a high address in turn
    #[arg(long)]
    code: Option<String>,
    /// Fail if a form of this CPU was never executed
    #[arg(long)]
    all_forms: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(3)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let instrumentation = match (arguments.accesses, arguments.sifted) {
        (true, _) => Instrumentation::Accesses,
        (_, true) => Instrumentation::Sifted,
        _ => Instrumentation::None,
    };
    let forms = Forms::of_host();
    let machine = Machine::new(instrumentation)?;
    if arguments.charged {
        machine.cache.charge_every_link();
    }
    if !arguments.short {
        machine.cache.follow_long_paths();
    }
    let mut totals = report::Totals::default();
    if let Some(code) = &arguments.code {
        return given_code(arguments, machine, &bytes_of(code)?);
    }
    let mut executed = BTreeSet::new();
    let count = forms.all.len() as u64;
    let given = arguments.first..arguments.first + arguments.cases;
    // A form that faulted programs never reached gets more chances.
    let more = (0..RETRIES_MAX * count).map(|extra| given.end.next_multiple_of(count) + extra);
    for number in given.clone().chain(more) {
        let missing = !executed.contains(&(form_of(&forms, number) as usize));
        if totals.mismatches >= arguments.mismatches_max
            || (number >= given.end && !(arguments.all_forms && missing))
        {
            continue;
        }
        let program = case(arguments.seed, number, &forms);
        let encoded = program.encode();
        let initial = initial_state(arguments.seed, number, machine, &encoded);
        if arguments.verbose {
            println!("case {number}\n{}", report::listing(&encoded));
        }
        let checked = check(machine, &encoded, &initial, number);
        totals.add(&checked);
        executed.extend(checked.executed.iter().map(|code| *code as usize));
        if let Some(mismatch) = &checked.mismatch {
            println!(
                "MISMATCH in case {number} of seed {}: {mismatch}",
                arguments.seed
            );
            let (small, found) = shortened(machine, program, &initial, number);
            println!("  shortened: {found}\n{}", report::listing(&small.encode()));
            report::print_state(&initial);
        }
    }
    let missing: Vec<_> = forms
        .all
        .iter()
        .filter(|code| !executed.contains(&(**code as usize)))
        .collect();
    println!(
        "{totals}, {} of {} forms",
        forms.all.len() - missing.len(),
        forms.all.len()
    );
    if arguments.all_forms && !missing.is_empty() {
        println!("never executed: {missing:?}");
        return Ok(false);
    }
    Ok(totals.mismatches == 0)
}

/// The form that a case is about.
fn form_of(forms: &Forms, number: u64) -> Code {
    forms.all[(number % forms.all.len() as u64) as usize]
}

/// The program of a case: every form gets its turn.
fn case(seed: u64, number: u64, forms: &Forms) -> Program {
    let mut random = Random::new(seed, number);
    Program::random(&mut random, forms, form_of(forms, number))
}

fn initial_state(seed: u64, number: u64, machine: &Machine, program: &Encoded) -> State {
    State::random(&mut Random::new(!seed, number), &machine.layout, program)
}

/// The same code in many states.
fn given_code(arguments: &Arguments, machine: &mut Machine, code: &[u8]) -> Result<bool, String> {
    if code.len() > CODE_MAX {
        return Err(format!(
            "at most {CODE_MAX} bytes of code can be run, not {}",
            code.len()
        ));
    }
    let mut totals = report::Totals::default();
    for number in 0..arguments.cases {
        let start = if number % 2 == 0 { LOW_CODE } else { HIGH_CODE };
        let program = Encoded::new(start, code.to_vec());
        let initial = initial_state(arguments.seed, number, machine, &program);
        let checked = check(machine, &program, &initial, number);
        totals.add(&checked);
        if let Some(mismatch) = &checked.mismatch {
            println!(
                "MISMATCH in state {number}: {mismatch}\n{}",
                report::listing(&program)
            );
            report::print_state(&initial);
            break;
        }
    }
    println!("{totals}");
    Ok(totals.mismatches == 0)
}

fn bytes_of(hexadecimal: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<char> = hexadecimal.chars().filter(|c| !c.is_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16))
        .collect::<Result<_, _>>()
        .map_err(|error| format!("`{hexadecimal}` is not hexadecimal code: {error}"))
}

/// Takes out instructions for as long as some mismatch remains.
fn shortened(
    machine: &mut Machine,
    program: Program,
    initial: &State,
    number: u64,
) -> (Program, String) {
    let mut program = program;
    let mut found = String::new();
    let mut size = program.items.len() / 2 + 1;
    loop {
        let mut at = 0;
        let mut changed = false;
        while at < program.items.len() {
            let shorter = program.without(at, size.min(program.items.len() - at));
            match check(machine, &shorter.encode(), initial, number) {
                Checked {
                    mismatch: Some(mismatch),
                    ..
                } => {
                    (program, found, changed) = (shorter, mismatch, true);
                }
                _ => at += size,
            }
        }
        if size == 1 && !changed {
            return (program, found);
        }
        size = (size / 2).max(1);
    }
}
