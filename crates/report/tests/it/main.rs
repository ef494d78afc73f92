//! Reports on a program: one race of each class, nothing at all, and names that break what is not careful.
#![forbid(unsafe_code)]

mod browser;
mod fixtures;
mod github;
mod page;
mod sarif;
mod terminal;
