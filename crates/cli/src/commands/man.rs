//! `verdict man`: manual pages, made from the table of flags.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use crate::{CliError, Context, Exit};

const EXAMPLES: &str = "\
Examples:
  verdict man | man -l -
  verdict man completions | man -l -
  verdict man --dir ~/.local/share/man/man1";

/// Which page to print, or where to write all of them.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print the page of this command (`verdict man trace info`) instead of the main page
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,

    /// Write the pages of all commands into this folder, as `verdict.1`, `verdict-man.1`, ...
    #[arg(long, value_name = "FOLDER", conflicts_with = "path")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, CliError> {
    // `verdict help` is for those who type it; a page about it helps nobody.
    let mut root = crate::command().disable_help_subcommand(true);
    root.build();
    match &args.dir {
        Some(dir) => write_pages(&root, dir, context)?,
        None => {
            let page = render(find(&root, &args.path)?);
            context.report(|out, _| out.write_all(&page))?;
        }
    }
    Ok(Exit::Clean)
}

fn find<'a>(root: &'a clap::Command, path: &[String]) -> Result<&'a clap::Command, CliError> {
    path.iter().try_fold(root, |parent, name| {
        parent.find_subcommand(name).ok_or_else(|| {
            CliError::bad_input(format_args!(
                "`{}` has no command `{name}`",
                display_name(parent).replace('-', " ")
            ))
            .with_help("`verdict --help` lists the commands")
        })
    })
}

fn write_pages(command: &clap::Command, dir: &Path, context: &Context) -> Result<(), CliError> {
    let path = dir.join(format!("{}.1", display_name(command)));
    let mut file = context.create_file(&path)?;
    let written: io::Result<()> = file
        .write_all(&render(command))
        .and_then(|()| file.finish());
    written.map_err(|error| CliError::writing(path.display(), &error))?;
    context.detail(format_args!("wrote {}", path.display()));
    command
        .get_subcommands()
        .try_for_each(|child| write_pages(child, dir, context))
}

fn render(command: &clap::Command) -> Vec<u8> {
    let mut page = Vec::new();
    // The date is left out: the same version must give the same page on every day.
    let man = Man::new(command.clone())
        .title(display_name(command))
        .date("")
        .manual("verdict manual");
    man.render(&mut page)
        .expect("writing to memory cannot fail");
    let page = String::from_utf8(page).expect("help is text");
    // What follows the options in the help is a section with a name, not "extra".
    let page = page.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n");
    page.replace(".SH EXTRA\nExit codes:\n", ".SH EXIT STATUS\n")
        .into_bytes()
}

/// `verdict-trace-info`.
fn display_name(command: &clap::Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}
