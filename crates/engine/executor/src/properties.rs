//! Does what the user wants to hold still hold? Looked at by copies at every scheduling decision and at their end.
//!
//! A function of the program that says so is called in a copy of the copy, which is thrown away: the execution itself goes on as
//! if nobody had asked.

use crate::Executor;
use crate::explore::Role;
use verdict_cpu::Gpr;
use verdict_explore::AlternateState;
use verdict_kernel::{Journal, State};
use verdict_protocol::{Check, Outcome, Property, is_true};
use verdict_schedule::Reason;

/// Times that functions are asked in one copy, before its end: each takes a process.
const CALLS_MAX: u32 = 20;
/// Instructions that such a function may take.
const INSTRUCTIONS_MAX: u64 = 10_000_000;
/// Where it returns to: nothing is ever mapped there.
const RETURN: u64 = 0x1000;
/// Room below the stack pointer that the interrupted function may use.
const RED_ZONE: u64 = 128;

/// Exit statuses of the process that asks.
const HOLDS: i32 = 10;
const VIOLATED: i32 = 11;
const NO_ANSWER: i32 = 12;

/// Whether functions of the program are asked, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ask {
    Functions,
    Nobody,
}

/// What a copy has to look at.
#[derive(Default, Debug)]
pub(crate) struct Properties {
    all: Vec<Property>,
    calls: u32,
    /// The first that was seen not to hold.
    pub(crate) violated: Option<String>,
}

impl Properties {
    pub(crate) fn new(all: &[Property]) -> Self {
        Properties {
            all: all.to_vec(),
            ..Properties::default()
        }
    }
}

impl Executor {
    /// Ends the copy if a property does not hold. Functions are asked where segments end, once both accesses are made.
    pub(crate) fn check_properties(&mut self, reason: Reason) {
        let ends = matches!(reason, Reason::Watched | Reason::Exited | Reason::Blocked);
        let made = matches!(
            self.scheduler.alternate(),
            None | Some(AlternateState::Enforced)
        );
        let functions = if ends && made {
            Ask::Functions
        } else {
            Ask::Nobody
        };
        if self.notice_violation(functions) {
            self.finish(Outcome::Stopped);
        }
    }

    /// A last look, when the execution ends by itself.
    pub(crate) fn check_properties_at_end(&mut self, outcome: &Outcome) {
        if matches!(outcome, Outcome::Exited { .. }) {
            if let Some(properties) = self.properties() {
                properties.calls = 0;
            }
            self.notice_violation(Ask::Functions);
        }
    }

    fn properties(&mut self) -> Option<&mut Properties> {
        match &mut self.explore {
            Some(Role::Copy(copy)) if !copy.properties.all.is_empty() => Some(&mut copy.properties),
            _ => None,
        }
    }

    /// True if a property does not hold, which is kept.
    fn notice_violation(&mut self, ask: Ask) -> bool {
        let Some(properties) = self.properties() else {
            return false;
        };
        if properties.violated.is_some() {
            return false;
        }
        let all = std::mem::take(&mut properties.all);
        let violated = all
            .iter()
            .find(|property| self.holds(property, ask) == Some(false));
        let violated = violated.map(|property| property.text.clone());
        let found = violated.is_some();
        if let Some(Role::Copy(copy)) = &mut self.explore {
            copy.properties.violated = violated;
            copy.properties.all = all;
        }
        found
    }

    fn holds(&mut self, property: &Property, ask: Ask) -> Option<bool> {
        match &property.check {
            Check::Expression(steps) => {
                let memory = &self.kernel.memory;
                is_true(steps, &|address, bytes| memory.read(address, bytes).is_ok())
            }
            Check::Function(_) if ask == Ask::Nobody => None,
            Check::Function(pc) => self.ask_function(*pc),
        }
    }

    /// What the function says; `None` if it says nothing in time, or has been asked often enough.
    fn ask_function(&mut self, pc: u64) -> Option<bool> {
        if let Some(Role::Copy(copy)) = &mut self.explore {
            copy.properties.calls += 1;
            if copy.properties.calls > CALLS_MAX {
                return None;
            }
        }
        let code = self.cache.copy_for_child().ok()?;
        // SAFETY: the executor has one thread, so the copy is whole.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => {
                // SAFETY: it must not outlive the copy that asks.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                if self.cache.adopt(&code).is_err() {
                    exit(NO_ANSWER);
                }
                self.call(pc)
            }
            pid => {
                let mut status = 0;
                // SAFETY: waits for a child of our own.
                unsafe { libc::waitpid(pid, &mut status, 0) };
                match libc::WEXITSTATUS(status) {
                    HOLDS if libc::WIFEXITED(status) => Some(true),
                    VIOLATED if libc::WIFEXITED(status) => Some(false),
                    _ => None,
                }
            }
        }
    }

    /// In the process that asks: the current thread calls the function, wherever it is.
    fn call(&mut self, pc: u64) -> ! {
        self.explore = Some(Role::Asking {
            limit: self.kernel.retired.saturating_add(INSTRUCTIONS_MAX),
        });
        // What is recorded is the copy's, with all that is not written yet.
        std::mem::forget(std::mem::replace(&mut self.kernel.journal, Journal::Live));
        let thread = self.kernel.thread();
        thread.call = None;
        thread.pending.clear();
        thread.state = State::Runnable;
        let sp = (thread.registers.get(Gpr::Rsp).wrapping_sub(RED_ZONE) & !15).wrapping_sub(8);
        thread.registers.set(Gpr::Rsp, sp);
        thread.registers.rip = pc;
        if self.kernel.memory.write_u64(sp, RETURN).is_err() {
            exit(NO_ANSWER);
        }
        self.turn = INSTRUCTIONS_MAX;
        self.run()
    }

    /// The current thread has jumped to where nothing is: if a function that was asked returns, that is its answer.
    pub(crate) fn take_answer(&mut self, address: u64) {
        if address == RETURN && matches!(self.explore, Some(Role::Asking { .. })) {
            let said = self.kernel.thread().registers.get(Gpr::Rax) as u32;
            exit(if said == 0 { VIOLATED } else { HOLDS });
        }
    }

    /// The process that asks has come to an end without an answer.
    pub(crate) fn give_no_answer(&self) {
        if matches!(self.explore, Some(Role::Asking { .. })) {
            exit(NO_ANSWER);
        }
    }
}

fn exit(status: i32) -> ! {
    // SAFETY: ends the process without running anything else.
    unsafe { libc::_exit(status) }
}
