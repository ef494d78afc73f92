//! `--fail-on`: which races make a command end with exit code 1.

use clap::ValueEnum;
use verdict_findings::ProgramFindings;
use verdict_report::{Rank, worst_first};

use crate::Exit;

/// Flatten it into the arguments of commands that report on a program.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct FailOn {
    /// Which races make the command end with exit code 1; suppressed ones never do
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    fail_on: What,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
enum What {
    /// Those that break the program
    SpecViolated,
    /// Those, and those that change its output
    OutputDiffers,
    /// All but those that were never brought about
    #[default]
    Any,
    /// None
    Never,
}

impl FailOn {
    /// How a command ends that reports these findings.
    pub(crate) fn exit(self, findings: &ProgramFindings) -> Exit {
        let limit = match self.fail_on {
            What::SpecViolated => Rank::SpecViolated,
            What::OutputDiffers => Rank::OutputDiffers,
            What::Any => Rank::KWitnessHarmless,
            What::Never => return Exit::Clean,
        };
        let worst = worst_first(findings).first().map(|race| Rank::of(race));
        match worst {
            Some(worst) if worst <= limit => Exit::Races,
            _ => Exit::Clean,
        }
    }
}
