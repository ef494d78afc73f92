//! How far a look at a run is, for people who wait: no result depends on it.

/// What a run is looked at for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// Which bytes may race.
    First,
    /// The same, once more, from everything that happens: what is new alone says too little of this program.
    Whole,
    /// What races of the accesses to these bytes, or to all.
    Races,
    /// Where and why: a closer look at the races that were found.
    Closer,
    /// What could race in another run.
    Predictions,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HowFar {
    /// Which look.
    pub look: Look,
    /// Guest instructions of all threads that were looked at so far.
    pub instructions: u64,
    /// Of how many, where that is known.
    pub total: Option<u64>,
}

/// Who is told of it.
pub type Watcher<'a> = dyn FnMut(HowFar) + Send + 'a;

/// What a look counts, with what is known about it.
pub(crate) fn counted<'a>(
    look: Look,
    total: Option<u64>,
    watcher: &'a mut Watcher<'_>,
) -> impl FnMut(u64) + Send + 'a {
    move |instructions| {
        watcher(HowFar {
            look,
            instructions,
            total,
        });
    }
}
