//! One case: a program and a state, run natively and under the engine in every way that must not matter.

use crate::arena;
use crate::engine::{self, Logged, Ran, Shape, Stop};
use crate::machine::{Machine, Running};
use crate::program::Encoded;
use crate::random::Random;
use crate::state::{ARITHMETIC, State};
use crate::step::{Access, End, Stepper};
use crate::told::Told;
use iced_x86::{Code, OpAccess};
use std::panic::{AssertUnwindSafe, catch_unwind};
use verdict_translate::{AccessKind, Instrumentation};

/// Most instructions that a case executes: enough for loops to use up a budget while they run from the cache.
const STEPS_MAX: usize = 300;
/// A case of at most this many is stopped after each of them.
const SHORT: u64 = 96;
/// A longer one after every so manieth.
const STRIDE: u64 = 7;

/// What a case showed.
#[derive(Debug)]
pub(crate) struct Checked {
    /// Forms that the CPU executed or refused.
    pub(crate) executed: Vec<Code>,
    /// Whether it ended in a fault.
    pub(crate) faulted: bool,
    /// The first thing that differs, if any.
    pub(crate) mismatch: Option<String>,
}

/// Runs a case.
pub(crate) fn check(
    machine: &mut Machine,
    encoded: &Encoded,
    initial: &State,
    seed: u64,
) -> Checked {
    arena::write_code(encoded.start, &encoded.with_native_exit()).expect("the arena is ours");
    arena::set_executable(encoded.start, true).expect("the arena is ours");
    let stepper = stepped(machine, encoded, initial);
    let end = stepper.end.clone().unwrap_or(End::Cut);
    let native = match end {
        End::Over => free_run(machine, encoded, initial, &stepper),
        _ => None,
    };
    arena::set_executable(encoded.start, false).expect("the arena is ours");
    let mismatch = native.or_else(|| {
        let ran = catch_unwind(AssertUnwindSafe(|| {
            under_engine(machine, encoded, initial, &stepper, &end, seed)
        }));
        ran.unwrap_or_else(|panic| Some(format!("the engine panics: {}", message(&*panic))))
    });
    machine.cache.invalidate(encoded.start, encoded.end + 2);
    machine.takes_gs = false;
    Checked {
        executed: stepper.instructions.iter().map(|i| i.code()).collect(),
        faulted: matches!(end, End::Fault(..)),
        mismatch,
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

fn stepped(machine: &mut Machine, program: &Encoded, initial: &State) -> Stepper {
    const TRAP_FLAG: u64 = 1 << 8;
    machine.load(initial);
    machine.context().rflags |= TRAP_FLAG;
    let stepper = Stepper::new(program.clone(), STEPS_MAX);
    machine.enter(program.start, Running::Stepped(stepper));
    match std::mem::replace(&mut machine.running, Running::Nothing) {
        Running::Stepped(stepper) => stepper,
        _ => unreachable!("a stepped run stays one"),
    }
}

/// At full speed the CPU must do what it did in steps; else the test is wrong, not the engine.
fn free_run(
    machine: &mut Machine,
    program: &Encoded,
    initial: &State,
    stepper: &Stepper,
) -> Option<String> {
    machine.load(initial);
    machine.enter(program.start, Running::Native);
    if let Some(faulted) = machine.faulted.take() {
        return Some(format!("natively at full speed: {:?}", faulted.fault));
    }
    let state = machine.store(program.end);
    let last = stepper.states.last()?;
    let differences = state.differences(last, u64::MAX, &machine.layout);
    (!differences.is_empty()).then(|| format!("natively at full speed: {}", differences.join("; ")))
}

fn under_engine(
    machine: &mut Machine,
    program: &Encoded,
    initial: &State,
    stepper: &Stepper,
    end: &End,
    seed: u64,
) -> Option<String> {
    let steps = stepper.states.len() as u64 - 1;
    let expected = Expected {
        stepper,
        end,
        steps,
    };
    // To the end, twice: blocks are made and linked in the first run and only run in the second.
    for round in 0..2 {
        let budget = if matches!(end, End::Cut) {
            steps
        } else {
            steps + 1000
        };
        if budget == 0 {
            return None;
        }
        machine.load(initial);
        let ran = engine::run(machine, program, budget, &mut Shape::Linked);
        if let Some(found) = expected.at_end(machine, &ran) {
            return Some(format!("run {round} to the end: {found}"));
        }
    }
    machine.load(initial);
    let pieces = Shape::Pieces(Random::new(seed, 1));
    let budget = if matches!(end, End::Cut) {
        steps
    } else {
        steps + 1000
    };
    let ran = engine::run(machine, program, budget, &mut pieces.clone());
    if let Some(found) = expected.at_end(machine, &ran) {
        return Some(format!("in pieces: {found}"));
    }
    let stride = if steps <= SHORT { 1 } else { STRIDE };
    let mut stops = (1..steps).filter(|stop| stop % stride == seed % stride);
    stops.find_map(|stop| {
        machine.load(initial);
        let first = engine::run(machine, program, stop, &mut Shape::Linked);
        if let Some(found) = expected.at_stop(machine, &first, stop) {
            return Some(format!("stopped after {stop}: {found}"));
        }
        let budget = if matches!(end, End::Cut) {
            steps - stop
        } else {
            steps + 1000
        };
        let mut rest = engine::run(machine, program, budget, &mut Shape::Linked);
        rest.retired += first.retired;
        rest.logged = first.logged.into_iter().chain(rest.logged).collect();
        rest.told.merge(first.told);
        let found = expected.at_end(machine, &rest)?;
        Some(format!("stopped after {stop} and continued: {found}"))
    })
}

struct Expected<'a> {
    stepper: &'a Stepper,
    end: &'a End,
    steps: u64,
}

impl Expected<'_> {
    fn at_stop(&self, machine: &Machine, ran: &Ran, stop: u64) -> Option<String> {
        if !matches!(ran.stop, Stop::Budget) || ran.retired != stop {
            return Some(format!(
                "{} after {} instructions",
                told(&ran.stop),
                ran.retired
            ));
        }
        // Where the arithmetic flags are dead the engine need not keep them: running on shows that they were.
        self.differences(
            machine,
            ran,
            &self.stepper.states[stop as usize],
            !ARITHMETIC,
            stop,
        )
    }

    fn at_end(&self, machine: &Machine, ran: &Ran) -> Option<String> {
        let last = self.stepper.states.last()?;
        let as_expected = match (self.end, &ran.stop) {
            (End::Over, Stop::Over) | (End::Cut, Stop::Budget) => ran.retired == self.steps,
            (End::Fault(fault, state), Stop::Fault(faulted)) => {
                let after_trap = u64::from(fault.signal == libc::SIGTRAP);
                if ran.retired != self.steps + after_trap || *fault != faulted.fault {
                    return Some(format!(
                        "{:?} after {} instructions, natively {fault:?} after {}",
                        faulted.fault,
                        ran.retired,
                        self.steps + after_trap
                    ));
                }
                return self.differences(machine, ran, state, !ARITHMETIC, self.steps + after_trap);
            }
            _ => false,
        };
        if !as_expected {
            return Some(format!(
                "{} after {} instructions, natively {} after {}",
                told(&ran.stop),
                ran.retired,
                told_end(self.end),
                self.steps
            ));
        }
        let flags = if matches!(self.end, End::Over) {
            u64::MAX
        } else {
            !ARITHMETIC
        };
        self.differences(machine, ran, last, flags, self.steps)
    }

    fn differences(
        &self,
        machine: &Machine,
        ran: &Ran,
        state: &State,
        flags: u64,
        steps: u64,
    ) -> Option<String> {
        let found = ran.state.differences(state, flags, &machine.layout);
        if !found.is_empty() {
            return Some(found.join("; "));
        }
        match machine.instrumentation {
            Instrumentation::Accesses => self.log_differences(&ran.logged, steps),
            Instrumentation::Sifted => self.untold(&ran.told, steps),
            _ => None,
        }
    }

    /// A byte that was accessed, of which nothing is told.
    fn untold(&self, told: &Told, steps: u64) -> Option<String> {
        let accesses = self.stepper.accesses.iter();
        let mut accesses = accesses.filter(|access| (access.step as u64) < steps);
        let is_told = |access: &Access| {
            let is_write = as_logged(access).kind != AccessKind::Read;
            let mut bytes = (0..u64::from(access.size)).map(|at| access.address.wrapping_add(at));
            bytes.all(|byte| told.has(byte, is_write))
        };
        let untold = accesses.find(|access| !told.is_partial && !is_told(access))?;
        Some(format!("nothing is told of {untold:x?}"))
    }

    fn log_differences(&self, logged: &[Logged], steps: u64) -> Option<String> {
        let accesses = self.stepper.accesses.iter();
        let until = |steps: u64| {
            accesses
                .clone()
                .filter(move |access| (access.step as u64) < steps)
        };
        let expected: Vec<Logged> = until(steps).map(as_logged).collect();
        let at = (0..expected.len().max(logged.len()))
            .find(|at| expected.get(*at) != logged.get(*at))?;
        Some(format!(
            "access {at} of {} is logged as {:x?}, computed as {:x?}",
            expected.len(),
            logged.get(at),
            expected.get(at)
        ))
    }
}

fn as_logged(access: &Access) -> Logged {
    Logged {
        address: access.address,
        size: access.size,
        kind: match access.access {
            OpAccess::Write | OpAccess::CondWrite => AccessKind::Write,
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => AccessKind::ReadWrite,
            _ => AccessKind::Read,
        },
        locked: access.locked,
        repeat: access.repeat,
    }
}

fn told(stop: &Stop) -> String {
    match stop {
        Stop::Budget => "the end of the budget".into(),
        Stop::Over => "the end of the program".into(),
        Stop::Fault(faulted) => format!("{:?} at {:#x}", faulted.fault, faulted.state.rip),
        Stop::Fetch(address) => format!("no code at {address:#x}"),
        Stop::Unexpected(what) => what.clone(),
    }
}

fn told_end(end: &End) -> String {
    match end {
        End::Over => "the end of the program".into(),
        End::Cut => "the end of the budget".into(),
        End::Fault(fault, state) => format!("{fault:?} at {:#x}", state.rip),
    }
}
