//! The `verdict` binary. Everything is in the library, where tests can reach it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    verdict_cli::main(std::env::args_os())
}
