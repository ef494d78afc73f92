//! `verdict mark`: what the user thinks of a race, remembered.

use clap::ValueEnum;
use verdict_history::{Day, Entry, History, Mark, Opinion, Severity};

use super::database::{DatabaseArgs, history, today};
use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict mark 3f9a2c benign --reason statistics
  verdict mark 3f9a2c benign --reason legacy --until 2027-01-31
  verdict mark 3f9a2c open

A race that later turns out to be worse than it is now is reported all the same.";

/// Which race, and what to think of it.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The race's id, or its beginning
    #[arg(value_name = "ID")]
    id: String,

    /// What to do with it from now on
    #[arg(value_enum, value_name = "OPINION")]
    opinion: OpinionChoice,

    /// Why, for whoever reads it next year
    #[arg(long, value_name = "TEXT", required_if_eq("opinion", "benign"))]
    reason: Option<String>,

    /// The last day it holds, as 2027-01-31
    #[arg(long, value_name = "DATE")]
    until: Option<Day>,

    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum OpinionChoice {
    /// Do not report it
    Benign,
    /// Report it: takes an earlier mark back
    Open,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    if args
        .reason
        .as_deref()
        .is_some_and(|reason| reason.trim().is_empty())
    {
        return Err(CliError::bad_input("the reason is empty"));
    }
    let today = today();
    if args.until.is_some_and(|until| until < today) {
        return Err(CliError::bad_input("the day of --until has passed already"));
    }
    let log = args.database.log();
    let answer = log.update(|reading| {
        let history = history(reading, &log, context);
        match find(&history, &args.id) {
            Ok((id, severity)) => (Some(Entry::Mark(mark(args, &id, severity, today))), Ok(id)),
            Err(problem) => (None, Err(problem)),
        }
    });
    let id = answer.map_err(CliError::bad_input)??;
    context.note(format_args!(
        "race {id}: remembered in {}",
        log.path().display()
    ));
    Ok(Exit::Clean)
}

fn mark(args: &Args, id: &str, severity: Severity, today: Day) -> Mark {
    Mark {
        day: today,
        id: id.to_owned(),
        opinion: match args.opinion {
            OpinionChoice::Benign => Opinion::Benign,
            OpinionChoice::Open => Opinion::Open,
        },
        reason: args.reason.clone().unwrap_or_default(),
        until: args.until,
        severity,
    }
}

/// The race that is meant, and what it is known to be.
fn find(history: &History, beginning: &str) -> Result<(String, Severity), CliError> {
    let listed = "`verdict list` lists the known races";
    let ids = history.ids_from(beginning);
    let id = match ids.as_slice() {
        _ if beginning.is_empty() => None,
        [id] => Some(*id),
        several => several.iter().copied().find(|id| *id == beginning),
    };
    match id {
        Some(id) => {
            let severity = history
                .race(id)
                .map_or(Severity::Unknown, |known| known.worst());
            Ok((id.to_owned(), severity))
        }
        None if ids.len() > 1 => {
            let problem = format!("`{beginning}` is the beginning of {} races", ids.len());
            Err(CliError::bad_input(problem).with_help(listed))
        }
        None => {
            let problem = format!("no known race has the id `{beginning}`");
            Err(CliError::bad_input(problem).with_help(listed))
        }
    }
}
