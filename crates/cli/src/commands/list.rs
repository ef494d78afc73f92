//! `verdict list`: the races that the project knows.

use std::io::Write;

use serde_json::json;
use verdict_history::{History, Known};
use verdict_report::one_line;

use super::database::{DatabaseArgs, today};
use crate::{CliError, Context, Exit, Format, FormatArgs, Paint};

const EXAMPLES: &str = "\
Examples:
  verdict list
  verdict list --race 3f9a2c
  verdict list --format json";

/// Which races, and how to report.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Every verdict that this race ever had (its id, or the beginning of it)
    #[arg(long, value_name = "ID")]
    race: Option<String>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    database: DatabaseArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    let history = args.database.read(context)?;
    let wanted = args.race.as_deref().unwrap_or("");
    if !wanted.is_empty() && history.ids_from(wanted).is_empty() {
        let problem = format!("no known race has the id `{wanted}`");
        return Err(CliError::bad_input(problem).with_help("`verdict list` lists the known races"));
    }
    context.report(|out, paint| match args.format.format {
        Format::Json => writeln!(out, "{}", to_json(&history, wanted)),
        Format::Text if wanted.is_empty() => table(out, paint, &history),
        Format::Text => every_verdict(out, paint, &history, wanted),
    })?;
    Ok(Exit::Clean)
}

fn chosen<'a>(history: &'a History, wanted: &'a str) -> impl Iterator<Item = (&'a str, &'a Known)> {
    history
        .races()
        .filter(move |(id, _)| id.starts_with(wanted))
}

/// One line a race, and one more for its mark.
fn table(out: &mut dyn Write, paint: Paint, history: &History) -> std::io::Result<()> {
    if history.races().next().is_none() {
        return writeln!(out, "no races are known");
    }
    let width = history
        .races()
        .map(|(id, _)| one_line(id).chars().count())
        .max()
        .unwrap_or(0);
    for (id, known) in history.races() {
        let worst = known.worst().word();
        let headline = one_line(known.headline());
        writeln!(out, "{:width$}  {worst:18}  {headline}", one_line(id))?;
        if let Some(mark) = mark_words(known) {
            writeln!(out, "{:width$}  {}", "", paint.dim(mark))?;
        }
    }
    Ok(())
}

fn every_verdict(
    out: &mut dyn Write,
    paint: Paint,
    history: &History,
    wanted: &str,
) -> std::io::Result<()> {
    for (id, known) in chosen(history, wanted) {
        writeln!(out, "{}", paint.bold(one_line(id)))?;
        for (day, program, seen) in &known.verdicts {
            let (severity, program) = (seen.severity.word(), one_line(program));
            writeln!(
                out,
                "  {day}  {severity:18}  {program}: {}",
                one_line(&seen.headline)
            )?;
        }
        if let Some(mark) = mark_words(known) {
            writeln!(out, "  {}", paint.dim(mark))?;
        }
    }
    Ok(())
}

fn mark_words(known: &Known) -> Option<String> {
    let mark = known.mark.as_ref()?;
    let until = match mark.until {
        Some(until) if until < today() => format!(" until {until}, which has passed"),
        Some(until) => format!(" until {until}"),
        None => String::new(),
    };
    Some(format!(
        "marked benign on {}{until}: {}",
        mark.day,
        one_line(&mark.reason)
    ))
}

fn to_json(history: &History, wanted: &str) -> serde_json::Value {
    let races = chosen(history, wanted).map(|(id, known)| {
        let verdicts = known.verdicts.iter().map(|(day, program, seen)| {
            json!({"day": day, "program": program, "severity": seen.severity, "headline": seen.headline})
        });
        json!({
            "id": id,
            "worst": known.worst(),
            "verdicts": verdicts.collect::<Vec<_>>(),
            "mark": known.mark,
        })
    });
    json!({"schema": "verdict.known-races/1", "races": races.collect::<Vec<_>>()})
}
