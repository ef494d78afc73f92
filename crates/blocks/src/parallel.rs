//! Some threads that take numbered jobs from one list until it is empty or one fails.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::BlocksError;

/// Runs `jobs` jobs on `workers` threads, each with a state of its own that `start` makes, and answers with the states.
/// After an error no more jobs are begun; of several errors, that of the first job in the list is told.
pub(crate) fn in_parallel<S: Send>(
    workers: usize,
    jobs: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<(), BlocksError> + Sync,
) -> Result<Vec<S>, BlocksError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let error: Mutex<Option<(usize, BlocksError)>> = Mutex::new(None);
    let one = || {
        let mut state = start();
        while !failed.load(Ordering::Relaxed) {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                break;
            }
            if let Err(problem) = work(&mut state, job) {
                failed.store(true, Ordering::Relaxed);
                let mut error = error.lock().expect("nobody panics with it");
                if error.as_ref().is_none_or(|(earlier, _)| job < *earlier) {
                    *error = Some((job, problem));
                }
            }
        }
        state
    };
    let workers = workers.clamp(1, jobs.max(1));
    let states = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(one)).collect();
        let mut states = vec![one()];
        for other in others {
            match other.join() {
                Ok(state) => states.push(state),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        states
    });
    match error.into_inner().expect("nobody panics with it") {
        Some((_, problem)) => Err(problem),
        None => Ok(states),
    }
}
