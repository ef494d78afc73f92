//! Runs the real binary and compares everything it prints with what is written here.
//!
//! `UPDATE_EXPECT=1 cargo test -p verdict-cli` accepts what is printed now; look at the difference before you commit it.
#![forbid(unsafe_code)]

mod blocks;
mod detect;
mod exec_faults;
mod exec_refusals;
mod exec_signals;
mod files;
mod generated;
mod guest;
mod help;
mod interrupt;
mod output;
mod readme;
mod recordings;
mod report;
mod trace;
mod transcript;
mod usage;
