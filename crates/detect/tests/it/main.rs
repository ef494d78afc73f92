//! Detectors against the papers' examples, against a naive twin, and under many threads and events.

mod large;
mod naive;
mod paper;
mod random;
mod regions;
mod rules;
mod suspects;
mod text;
mod twin;
