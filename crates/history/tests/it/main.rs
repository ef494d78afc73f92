//! The history of a project: what changes are, and what survives crashes, damage and crowds.
#![forbid(unsafe_code)]

mod changes;
mod log;
