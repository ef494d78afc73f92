//! What a user of the crate sees: the answers of `hb`, however the work is cut, and clear errors.

mod equality;
#[path = "../../../detect/tests/it/random.rs"]
mod random;
mod traces;
