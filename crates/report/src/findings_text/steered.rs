//! What went wrong in runs that were steered to a race, and the seeds that repeat it.

use verdict_findings::{ObservedError, Verdict};

use crate::plain::one_line;
use crate::text::{COLUMNS, count, number};
use crate::words;
use crate::wrap::hanging;

/// A line for each kind of error; nothing where none was seen.
pub(super) fn errors(verdict: &Verdict, folder: &str) -> String {
    let Some(tried) = verdict.confirmation.as_ref() else {
        return String::new();
    };
    if tried.errors.is_empty() {
        return String::new();
    }
    let mut text = "\n  went wrong after it\n".to_owned();
    for error in &tried.errors {
        text.push_str(&hanging(
            "    ",
            "      ",
            &told(error, tried.runs),
            COLUMNS,
        ));
        // A command is not wrapped: it is there to be copied.
        if let Some(file) = &error.evidence {
            text.push_str(&format!(
                "      {}\n",
                words::replay_command("", file, folder)
            ));
        }
    }
    text
}

fn told(error: &ObservedError, runs: u64) -> String {
    let what = words::consequence_words(error.kind);
    let times = format!("in {} of {}", number(error.runs), count(runs, "run"));
    let detail = match &error.detail[..] {
        "" => String::new(),
        detail => format!(": {}", one_line(detail)),
    };
    format!("{what} {times}, seed {}{detail}", error.seed)
}
