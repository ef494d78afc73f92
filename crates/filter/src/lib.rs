//! Which races the user wants to hear of: [`RaceFilter`] for what is asked of one run, [`Suppressions`] for what has been
//! decided once and is kept in a file beside the program.
//!
//! A filter takes races away; a suppression keeps them in the findings and says why they are not told.
#![forbid(unsafe_code)]

mod date;
mod pattern;
mod race_filter;
mod subject;
mod suppression;
mod suppression_file;

pub use date::Date;
pub use pattern::Pattern;
pub use race_filter::{RaceFilter, TakenAway, ThreadPattern};
pub use suppression::{Rule, Suppressions};
pub use suppression_file::{SuppressionError, SuppressionProblem};
