//! A program under the engine: the executor's loop, without a guest's kernel around it.

use crate::machine::{Faulted, Machine, Running};
use crate::program::Encoded;
use crate::random::Random;
use crate::state::State;
use crate::told::{self, Told};
use verdict_cache::{BlockId, Entrance, GuestCode, ONE_OFF_BLOCK_ID};
use verdict_cpu::ExitReason;
use verdict_translate::{AccessKind, TranslateError};

/// How blocks are cut.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// As the engine does it: cached, linked, with one-off blocks at the end of a budget only.
    Linked,
    /// One-off blocks of random lengths.
    Pieces(Random),
}

/// Why the engine came back.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// The budget is used up.
    Budget,
    /// At the `syscall` after the program's end.
    Over,
    /// The CPU refused an instruction.
    Fault(Box<Faulted>),
    /// No code there.
    Fetch(u64),
    /// An exit that no program of the test should cause.
    Unexpected(String),
}

/// An access from the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Logged {
    pub(crate) address: u64,
    pub(crate) size: u32,
    pub(crate) kind: AccessKind,
    pub(crate) locked: bool,
    pub(crate) repeat: Option<u64>,
}

/// One stretch of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) stop: Stop,
    pub(crate) state: State,
    pub(crate) retired: u64,
    pub(crate) logged: Vec<Logged>,
    /// Where accesses are sifted.
    pub(crate) told: Told,
}

/// Runs on from the state that is loaded, for so many instructions.
pub(crate) fn run(machine: &mut Machine, program: &Encoded, budget: u64, shape: &mut Shape) -> Ran {
    machine.context().budget = budget as i64 - machine.cache.budget_reserve();
    let mut logged = Vec::new();
    let mut told = Told::default();
    let stop = run_blocks(machine, program, shape, (&mut logged, &mut told));
    told.merge(told::drain(machine));
    if let Stop::Fault(faulted) = &stop {
        interrupt_log(machine, faulted);
    }
    drain(machine, &mut logged);
    let rip = machine.context().rip;
    let mut state = match &stop {
        Stop::Fault(faulted) => faulted.state.clone(),
        _ => machine.store(rip),
    };
    let mut retired = budget as i64 - left(machine);
    match &stop {
        Stop::Fault(faulted) => retired -= faulted.due,
        Stop::Over => {
            // The `syscall` is the test's, not the program's.
            retired -= 1;
            state.rip = program.end;
        }
        _ => {}
    }
    Ran {
        stop,
        state,
        retired: retired as u64,
        logged,
        told,
    }
}

fn run_blocks(
    machine: &mut Machine,
    program: &Encoded,
    shape: &mut Shape,
    (logged, told): (&mut Vec<Logged>, &mut Told),
) -> Stop {
    loop {
        let left = left(machine);
        if left <= 0 {
            return Stop::Budget;
        }
        let entry = match shape {
            Shape::Pieces(random) => {
                let instructions = (1 + random.below(7)).min(left as u64) as u32;
                one_off(machine, program, instructions, (logged, told))
            }
            Shape::Linked if left < machine.cache.budget_reserve() => {
                one_off(machine, program, left as u32, (logged, told))
            }
            Shape::Linked => {
                machine.context().budget = left - machine.cache.budget_reserve();
                block(machine, program, Entrance::Direct)
            }
        };
        let host = match entry {
            Ok(host) => host,
            Err(TranslateError::Fetch { address }) => return Stop::Fetch(address),
        };
        machine.enter(host, Running::Engine);
        if let Some(faulted) = machine.faulted.take() {
            return Stop::Fault(Box::new(faulted));
        }
        match ExitReason::from_raw(machine.context().exit_reason) {
            Some(ExitReason::Link) => {
                if let Err(stop) = follow_link(machine, program) {
                    return stop;
                }
            }
            Some(ExitReason::Indirect) => {
                let context = machine.context();
                context.rip = context.target;
                let indirect = Entrance::Indirect;
                if matches!(shape, Shape::Linked) && block(machine, program, indirect).is_ok() {
                    let rip = machine.context().rip;
                    let block = machine.cache.lookup(rip).expect("just made");
                    machine.cache.make_indirect(block);
                }
            }
            Some(ExitReason::Missed) => {
                let context = machine.context();
                context.rip = context.target;
                let name = context.exit_arg;
                machine.cache.missed(name);
            }
            Some(ExitReason::OneOff | ExitReason::Budget) => {}
            Some(ExitReason::Syscall) if machine.context().rip == program.end + 2 => {
                return Stop::Over;
            }
            other => {
                return Stop::Unexpected(format!("exit {other:?} at {:#x}", machine.context().rip));
            }
        }
    }
}

/// Instructions that may still retire.
fn left(machine: &mut Machine) -> i64 {
    machine.context().budget + machine.cache.budget_reserve()
}

/// A word of the program's data, by which the translator guesses where a jump through memory goes.
fn read_word(address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    verdict_cpu::copy_from_guest(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
}

fn block(
    machine: &mut Machine,
    program: &Encoded,
    entrance: Entrance,
) -> Result<u64, TranslateError> {
    let pc = machine.context().rip;
    if let Some(block) = machine.cache.lookup(pc) {
        return Ok(machine.cache.host_address(block));
    }
    let registers = machine.context().gpr;
    let guest = GuestCode {
        fetch: &|address, buffer| program.fetch(address, buffer),
        read_word: &read_word,
        constant_word: &|_| None,
        registers: &registers,
    };
    let block = machine.cache.insert(pc, entrance, &guest)?;
    machine.see_to_gs();
    machine.sites.add(machine.cache.logged(block));
    Ok(machine.cache.host_address(block))
}

fn one_off(
    machine: &mut Machine,
    program: &Encoded,
    instructions: u32,
    (logged, told): (&mut Vec<Logged>, &mut Told),
) -> Result<u64, TranslateError> {
    // The log of an earlier one-off block refers to code that is about to be replaced.
    drain(machine, logged);
    told.merge(told::drain(machine));
    let pc = machine.context().rip;
    let registers = machine.context().gpr;
    let guest = GuestCode {
        fetch: &|address, buffer| program.fetch(address, buffer),
        read_word: &read_word,
        constant_word: &|_| None,
        registers: &registers,
    };
    let made = machine.cache.one_off(pc, instructions, &guest)?;
    machine.see_to_gs();
    machine.sites.add(machine.cache.logged_one_off());
    machine.context().budget += -i64::from(made.instructions);
    Ok(made.host)
}

fn follow_link(machine: &mut Machine, program: &Encoded) -> Result<(), Stop> {
    let link = machine.context().exit_arg as u32;
    let Some(target) = machine.cache.link_target(link) else {
        return Err(Stop::Unexpected(format!(
            "link {link}, which is not the cache's"
        )));
    };
    machine.context().rip = target;
    if machine.cache.first_use(link) && block(machine, program, Entrance::Link(link)).is_ok() {
        let block = machine.cache.lookup(target).expect("just made");
        machine.cache.link(link, block);
    }
    Ok(())
}

/// Notes in the header of a block how far it came.
fn interrupt_log(machine: &mut Machine, faulted: &Faulted) {
    machine.context().log_next += 8 * u64::from(faulted.carried_words);
    let Some((executed, words)) = faulted.interrupted_log else {
        return;
    };
    let at = log_used(machine);
    machine.log[at] |= (u64::from(executed) + 1) << 32;
    machine.context().log_next += 8 * u64::from(words);
}

fn log_used(machine: &mut Machine) -> usize {
    ((machine.context().log_next - machine.log.as_ptr() as u64) / 8) as usize
}

/// Reads the log and empties it.
fn drain(machine: &mut Machine, into: &mut Vec<Logged>) {
    let used = log_used(machine);
    let mut at = 0;
    while at < used {
        // SAFETY: in bounds; volatile because translated code, not Rust, wrote the words.
        let read = |at: usize| unsafe { std::ptr::read_volatile(&machine.log[at]) };
        let header = read(at);
        let id = header as u32;
        let block = if id == ONE_OFF_BLOCK_ID {
            machine.cache.logged_one_off()
        } else {
            machine.cache.logged(BlockId(id))
        };
        let executed = match header >> 32 {
            0 => block.words.len() - 1,
            early => early as usize - 1,
        };
        let words = usize::from(block.words[executed]);
        let logged: Vec<u64> = (1..words).map(|word| read(at + word)).collect();
        for access in block
            .accesses
            .iter()
            .take_while(|a| usize::from(a.instruction) < executed)
        {
            into.push(Logged {
                address: access.address(&logged),
                size: access.size,
                kind: access.kind,
                locked: access.locked,
                repeat: access.repeat.map(|word| logged[usize::from(word)]),
            });
        }
        at += words;
    }
    let start = machine.log.as_ptr() as u64;
    machine.context().log_next = start;
}
