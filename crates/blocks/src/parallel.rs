//! Some threads that take numbered jobs from one list until it is empty or one fails.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::BlocksError;

/// Whoever works, from one list of jobs to the next.
///
/// The threads are kept, each on a processor of its own if it can be had: the system lets one that is new, or was last where the
/// caller is, wait beside the caller for milliseconds while another processor is idle. A detection may be over in a few dozen.
#[derive(Debug)]
pub struct Workers {
    /// All but the calling thread. None if there are no others.
    others: Option<rayon::ThreadPool>,
}

impl Workers {
    /// So many, the calling thread included; fewer where the system has no threads to give.
    #[must_use]
    pub fn new(count: usize) -> Workers {
        let processors = Processors::of_this_thread();
        let others = rayon::ThreadPoolBuilder::new()
            .num_threads(count.saturating_sub(1).max(1))
            .thread_name(|nth| format!("worker {}", nth + 1))
            .start_handler(move |nth| processors.go_to(nth + 1));
        Workers {
            others: (count > 1).then(|| others.build().ok()).flatten(),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        let others = self.others.as_ref();
        1 + others.map_or(0, rayon::ThreadPool::current_num_threads)
    }

    /// Runs so many jobs, each worker with a state of its own that `start` makes, and answers with the states.
    /// After an error no more jobs are begun; of several errors, that of the first job in the list is told.
    pub(crate) fn run<S: Send>(
        &self,
        jobs: usize,
        start: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, usize) -> Result<(), BlocksError> + Sync,
    ) -> Result<Vec<S>, BlocksError> {
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let error: Mutex<Option<(usize, BlocksError)>> = Mutex::new(None);
        let states = Mutex::new(Vec::new());
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
            states.lock().expect("nobody panics with it").push(state);
        };
        match &self.others {
            Some(others) if jobs > 1 => others.in_place_scope(|scope| {
                for _ in 1..self.count().min(jobs) {
                    scope.spawn(|_| one());
                }
                one();
            }),
            _ => one(),
        }
        match error.into_inner().expect("nobody panics with it") {
            Some((_, problem)) => Err(problem),
            None => Ok(states.into_inner().expect("nobody panics with it")),
        }
    }
}

/// The processors that a thread may use, and the one it was on.
struct Processors {
    allowed: Option<CpuSet>,
    own: usize,
}

impl Processors {
    fn of_this_thread() -> Processors {
        Processors {
            allowed: sched_getaffinity(None).ok(),
            own: sched_getcpu(),
        }
    }

    /// Brings the calling thread to the processor that is so many after the own one. It is free to leave it afterwards.
    fn go_to(&self, nth: usize) {
        let Some(allowed) = &self.allowed else {
            return;
        };
        let all = || (0..CpuSet::MAX_CPU).filter(|&one| allowed.is_set(one));
        let before = all().take_while(|&one| one != self.own).count();
        let Some(there) = all().cycle().nth(before + nth) else {
            return;
        };
        let mut only = CpuSet::new();
        only.set(there);
        // Where it is not allowed to, it stays where it is, and nothing but time is lost.
        let _ = sched_setaffinity(None, &only);
        let _ = sched_setaffinity(None, allowed);
    }
}
