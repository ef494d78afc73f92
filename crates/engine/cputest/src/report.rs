//! What is printed.

use crate::check::Checked;
use crate::program::Encoded;
use crate::state::State;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::fmt;
use verdict_cpu::GPR_NAMES;

/// Counts of a run.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Totals {
    cases: u64,
    instructions: u64,
    faults: u64,
    pub(crate) mismatches: u32,
}

impl Totals {
    pub(crate) fn add(&mut self, checked: &Checked) {
        self.cases += 1;
        self.instructions += checked.executed.len() as u64;
        self.faults += u64::from(checked.faulted);
        self.mismatches += u32::from(checked.mismatch.is_some());
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cases, {} instructions, {} faults, {} mismatches",
            self.cases, self.instructions, self.faults, self.mismatches
        )
    }
}

/// A program as text.
pub(crate) fn listing(program: &Encoded) -> String {
    let mut text = String::new();
    let mut formatter = IntelFormatter::new();
    let mut decoder = Decoder::with_ip(64, &program.code, program.start, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let at = (instruction.ip() - program.start) as usize;
        let bytes: String = program.code[at..at + instruction.len()]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut line = String::new();
        formatter.format(&instruction, &mut line);
        text.push_str(&format!(
            "    {:#x}  {bytes:<30}  {line}\n",
            instruction.ip()
        ));
    }
    text
}

/// The registers that a case began with.
pub(crate) fn print_state(state: &State) {
    let registers: Vec<String> = GPR_NAMES
        .iter()
        .zip(state.gpr)
        .map(|(name, value)| format!("{name}={value:#x}"))
        .collect();
    println!("  from: {} rflags={:#x}", registers.join(" "), state.rflags);
}
