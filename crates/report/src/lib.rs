//! How verdict says what it found: text for people, JSON for programs.
//!
//! Reports are pure functions of findings and names. Same input, same bytes out.
#![forbid(unsafe_code)]

mod compare;
mod detect_json;
mod detect_text;
mod findings_text;
mod github;
mod html;
mod lanes;
mod plain;
mod ranking;
mod sarif;
mod text;
mod words;
mod wrap;

pub use compare::{compare_json, compare_text};
pub use detect_json::detect_json;
pub use detect_text::detect_text;
pub use findings_text::{ReportOptions, findings_text, memory_error_text};
pub use github::findings_github;
pub use html::findings_html;
pub use plain::one_line;
pub use ranking::{Rank, worst_first};
pub use sarif::findings_sarif;
pub use text::Tone;
pub use words::headline;
