//! Documents are written and read: whole, old, new and malformed ones.
#![forbid(unsafe_code)]

mod any;
mod json;
