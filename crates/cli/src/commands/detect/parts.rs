//! `--budget`: of a very long run, only parts are looked at.

use verdict_findings::CoverageNote;
use verdict_protocol::Sample;
use verdict_races::Detected;

use super::Args;
use crate::progress::readable;

/// Which parts, if not all.
pub(super) fn sample(args: &Args) -> Option<Sample> {
    args.budget.map(|budget| Sample { budget })
}

/// What was not looked at for that.
pub(super) fn note(args: &Args, detected: &Detected) -> Option<CoverageNote> {
    let sample = sample(args)?;
    let how_much = match detected.instructions() {
        None => "parts of the run".to_owned(),
        Some(total) => {
            let looked_at = sample.looked_at(total);
            if looked_at == total {
                return None;
            }
            let percent = u128::from(looked_at) * 100 / u128::from(total.max(1));
            let (looked_at, total) = (readable(looked_at), readable(total));
            format!("{looked_at} of {total} instructions ({percent} %)")
        }
    };
    Some(CoverageNote {
        stage: "detect".to_owned(),
        what: format!(
            "only {how_much} were looked at, in parts: races of accesses in different parts are not known either"
        ),
        help: Some("raise --budget to see more of it, or leave it out to see all".to_owned()),
    })
}
