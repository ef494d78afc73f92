//! How verdict says what it found: text for people, JSON for programs.
//!
//! Reports are pure functions of findings and names. Same input, same bytes out.
#![forbid(unsafe_code)]

mod compare;
mod detect_json;
mod detect_text;
mod findings_text;
mod plain;
mod ranking;
mod text;
mod words;
mod wrap;

pub use compare::{compare_json, compare_text};
pub use detect_json::detect_json;
pub use detect_text::detect_text;
pub use findings_text::{ReportOptions, findings_text};
pub use ranking::{Rank, worst_first};
pub use text::Tone;
