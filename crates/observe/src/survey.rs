//! A first, quick look at a run.

use crate::looks::Looks;
use crate::observer::Observer;
use crate::orders::Orders;
use crate::sifted::Unfit;
use crate::trace::Seen;
use std::io::Read;
use verdict_detect::{SuspectBytes, Suspects};
use verdict_stream::{StreamError, StreamReader};

/// What a first look has shown.
#[derive(Debug)]
pub struct Surveyed {
    /// Bytes that may race.
    pub suspects: SuspectBytes,
    /// What else is known. There are no sites.
    pub seen: Seen,
    /// If only what is new was told: why that says too little.
    pub unfit: Option<Unfit>,
}

/// How much an executor tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// Everything.
    All,
    /// What is new: reading ends where that says too little.
    New,
}

/// Reads what an executor tells through `from`, to the end or until it is known that it says too little.
/// `suspects` says what may race.
///
/// # Errors
/// When it makes no sense.
pub fn survey(
    from: impl Read,
    told: Told,
    suspects: Suspects,
    orders: Orders,
) -> Result<Surveyed, StreamError> {
    let mut reader = StreamReader::new(from);
    let mut observer = Observer::surveying(suspects);
    observer.orders = orders;
    while let Some(record) = reader.next_record()? {
        observer.record(record);
        if told == Told::New && observer.unfit.is_some() {
            // The run goes on without anybody who listens.
            break;
        }
    }
    let suspects = match std::mem::take(&mut observer.looks) {
        Looks::Survey(suspects) => suspects.finish(),
        _ => SuspectBytes::default(),
    };
    Ok(Surveyed {
        suspects,
        unfit: observer.unfit.filter(|_| told == Told::New),
        seen: Seen::of(observer),
    })
}
