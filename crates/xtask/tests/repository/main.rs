//! What the repository says of itself is true: its map, its crates, its instructions.
#![forbid(unsafe_code)]

mod architecture;
mod commands;
mod crates;
mod markdown;
mod workspace;
