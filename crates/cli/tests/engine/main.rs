//! Runs programs natively and under `verdict exec` and compares all that can be seen of them: the engine's promise is
//! that nobody can tell the difference, and that two runs under it are the same to the last instruction.
#![forbid(unsafe_code)]

mod at_once;
mod confirm;
mod corpus;
mod determinism;
mod explored;
mod first_looks;
mod guests;
mod hard_guests;
mod heap;
mod input;
mod orders;
mod parts;
mod predicted;
mod private;
mod programs;
mod quiet;
mod race_report;
mod races;
mod record_faults;
mod recorded;
mod replay;
mod run;
mod scale;
mod servers;
mod steered;
mod tools;
mod verdicts;
mod watched;
mod whole_run;
