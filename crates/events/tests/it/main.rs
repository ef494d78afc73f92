//! Trace files from the outside: what is written is read again, and what is broken is told.

mod documented;
mod errors;
mod native;
mod round_trip;
mod traces;
