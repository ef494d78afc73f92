//! Recordings as files: what is written is read, and nothing else is believed.

mod damage;
mod entries;
mod limits;
mod round_trip;
