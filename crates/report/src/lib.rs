//! How verdict says what it found: text for people, JSON for programs.
//!
//! Reports are pure functions of findings and names. Same input, same bytes out.
#![forbid(unsafe_code)]

mod compare;
mod detect_json;
mod detect_text;
mod text;

pub use compare::{compare_json, compare_text};
pub use detect_json::detect_json;
pub use detect_text::detect_text;
pub use text::Tone;
