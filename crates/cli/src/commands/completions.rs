//! `verdict completions`: completion scripts, made from the table of flags.

use clap_complete::Shell;

use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict completions bash > ~/.local/share/bash-completion/completions/verdict
  verdict completions zsh > ~/.zfunc/_verdict
  verdict completions fish > ~/.config/fish/completions/verdict.fish";

/// Which script to print.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell to print the script for
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "verdict", &mut script);
    context.report(|out, _| out.write_all(&script))?;
    Ok(Exit::Clean)
}
