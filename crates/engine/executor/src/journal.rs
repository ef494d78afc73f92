//! The executor's side of recording and replaying: who runs, where to stop, how it ended.

use crate::Executor;
use verdict_protocol::{Divergence, Mode, Outcome, Refusal, ReplayStop};
use verdict_recording::{EndOutcome, Entry};
use verdict_schedule::Reason;

impl Executor {
    /// Another thread runs from here on.
    pub(crate) fn note_switch(&mut self, thread: u32, reason: Reason) {
        self.kernel.note(&Entry::Switch {
            thread,
            // A copy begins with a choice of its own, wherever it was made.
            preempted: matches!(reason, Reason::QuantumEnd | Reason::Watched | Reason::Start),
        });
    }

    /// The current thread loses its turn; perhaps it could have gone on.
    pub(crate) fn note_preemption(&mut self, reason: Reason) {
        let could_go_on = self.kernel.thread().is_runnable();
        self.preemptions += u64::from(could_go_on && reason != Reason::Yielded);
    }

    /// Follows the recorded schedule: switches if it says so here.
    pub(crate) fn follow_schedule(&mut self) {
        while self.kernel.replay_skip() {
            self.wake_up();
        }
        let retired = self.kernel.retired;
        let current = self.kernel.current;
        let next = {
            let Some(mut replayer) = self.kernel.journal.replayer() else {
                return;
            };
            let next = replayer.switch(retired);
            if next.is_none() && !self.kernel.threads[current].is_runnable() {
                replayer.stuck(retired, &format!("thread {current} cannot go on"));
            }
            next
        };
        match next.map(|thread| thread as usize) {
            Some(thread)
                if self
                    .kernel
                    .threads
                    .get(thread)
                    .is_some_and(|t| t.is_runnable()) =>
            {
                self.switch_to(thread);
            }
            Some(thread) => {
                if let Some(mut replayer) = self.kernel.journal.replayer() {
                    let recorded = format!("a switch to thread {thread}");
                    replayer.diverge(retired, recorded, format!("thread {thread} cannot run"));
                }
                self.replay_over();
            }
            None if self.kernel.threads[current].is_runnable() => {}
            None => self.replay_over(),
        }
    }

    /// True if the recording takes the processor away from the running thread here, or has nothing more to follow.
    pub(crate) fn is_preempted(&mut self) -> bool {
        let retired = self.kernel.retired;
        let Some(mut replayer) = self.kernel.journal.replayer() else {
            return false;
        };
        if replayer.ends_at(retired, &EndOutcome::Limit) {
            drop(replayer);
            let threads = self.standing_threads();
            self.finish(Outcome::LimitReached { threads });
        }
        // What was passed by will not come again: waiting for it would last for ever.
        if replayer.is_over(retired) || replayer.is_behind(retired) {
            replayer.stuck(retired, "the thread goes on");
            drop(replayer);
            self.replay_over();
        }
        replayer.switches_at(retired)
    }

    /// True if the recording ends here because everybody waited.
    pub(crate) fn ends_in_deadlock(&mut self) -> bool {
        let retired = self.kernel.retired;
        self.kernel
            .journal
            .replayer()
            .is_some_and(|mut replayer| replayer.ends_at(retired, &EndOutcome::Deadlock))
    }

    /// What a crash may lose is what happened since the last call of this.
    pub(crate) fn keep_recording(&mut self) {
        let failure = self.kernel.journal.recorder().and_then(|mut recorder| {
            recorder.flush_sometimes();
            recorder.failure().map(str::to_string)
        });
        if let Some(failure) = failure {
            self.refused(failure);
        }
    }

    /// Instructions until the recording wants the running thread stopped, if that is at most `horizon` away.
    pub(crate) fn recorded_stop(&mut self, horizon: u64) -> Option<u64> {
        let retired = self.kernel.retired;
        let stop = self
            .kernel
            .journal
            .replayer()?
            .next_stop(retired, horizon)?;
        Some(stop.saturating_sub(retired))
    }

    /// Instructions until the moment at which the user wants the replay to stop, if the running thread has to reach it.
    pub(crate) fn until_stop(&self) -> Option<u64> {
        let Mode::Replay { until, .. } = self.config.mode else {
            return None;
        };
        let until = until.filter(|until| until.thread as usize == self.kernel.current)?;
        let retired = self.kernel.threads[self.kernel.current].retired;
        Some(until.instructions.saturating_sub(retired))
    }

    /// Ends a replay that has come as far as the user wants.
    pub(crate) fn stop_if_asked(&mut self) {
        if self.until_stop() == Some(0) {
            let outcome = Outcome::ReplayStopped {
                why: ReplayStop::Until,
                instructions: self.kernel.retired,
            };
            self.report_and_exit(outcome);
        }
    }

    /// A fork that was recorded: the child is not made again.
    pub(crate) fn replay_fork(&mut self) {
        let Some(call) = self.kernel.thread().call.clone() else {
            return;
        };
        match self.kernel.replay_fork(&call) {
            Some(result) => self.kernel.thread().complete(result),
            None => self.replay_over(),
        }
    }

    /// How the program that replaces this one goes on with the recording.
    pub(crate) fn mode_of_next_program(&mut self) -> Mode {
        let mut mode = self.config.mode;
        match &mut mode {
            Mode::Live => {}
            Mode::Record { resume, .. } => {
                let mut recorder = self.kernel.journal.recorder();
                *resume = recorder.as_mut().and_then(|recorder| recorder.position());
                // A child's exec, or a recording that has ended: nobody takes notes any more.
                if resume.is_none() {
                    mode = Mode::Live;
                }
            }
            Mode::Replay { replaced, .. } => *replaced += 1,
        }
        mode
    }

    /// The recording has no more to say, or says something else.
    pub(crate) fn replay_over(&mut self) -> ! {
        let (divergence, end) = match self.kernel.journal.replayer() {
            Some(replayer) => (replayer.divergence().cloned(), replayer.end().cloned()),
            None => (None, None),
        };
        if let Some(divergence) = divergence {
            let outcome = self.diverged(divergence);
            self.report_and_exit(outcome);
        }
        let outcome = match end {
            Some(end) if !end.cut => Outcome::Refused(Refusal {
                message: end.why,
                call: None,
                place: None,
            }),
            _ => Outcome::ReplayStopped {
                why: ReplayStop::RecordingEnds,
                instructions: self.kernel.retired,
            },
        };
        self.report_and_exit(outcome)
    }

    fn diverged(&mut self, divergence: verdict_kernel::Divergence) -> Outcome {
        Outcome::Diverged(Box::new(Divergence {
            instructions: divergence.retired,
            thread: self.kernel.thread().id.0,
            recorded: divergence.recorded,
            replayed: divergence.replayed,
            place: Some(Box::new(self.call_stack())),
        }))
    }

    /// Ends the recording with how the guest ended, or compares that with how it did then.
    pub(crate) fn close_journal(&mut self, outcome: Outcome) -> Outcome {
        let retired = self.kernel.retired;
        let threads: Vec<u64> = self
            .kernel
            .threads
            .iter()
            .map(|thread| thread.retired)
            .collect();
        if let Some(mut recorder) = self.kernel.journal.recorder() {
            recorder.finish(end_outcome(&outcome), retired, threads);
            return match recorder.failure() {
                Some(failure) => Outcome::Refused(Refusal {
                    message: failure.to_string(),
                    call: None,
                    place: None,
                }),
                None => outcome,
            };
        }
        let difference = self.kernel.journal.replayer().and_then(|mut replayer| {
            replayer.compare_end(&end_outcome(&outcome), retired, &threads);
            replayer.divergence().cloned()
        });
        match difference {
            Some(divergence) => self.diverged(divergence),
            None => outcome,
        }
    }
}

fn end_outcome(outcome: &Outcome) -> EndOutcome {
    match outcome {
        Outcome::Exited { code } => EndOutcome::Exited { code: *code },
        Outcome::Signalled { signal, .. } => EndOutcome::Killed { signal: *signal },
        Outcome::Refused(refusal) => EndOutcome::Refused {
            message: refusal.message.clone(),
        },
        Outcome::EngineFault(fault) => EndOutcome::Refused {
            message: fault.message.clone(),
        },
        Outcome::Deadlock(_) => EndOutcome::Deadlock,
        Outcome::LimitReached { .. } | Outcome::NotEnforced { .. } | Outcome::Stopped => {
            EndOutcome::Limit
        }
        Outcome::ReplayStopped { .. } | Outcome::Diverged(_) => EndOutcome::Refused {
            message: "the replay stopped".into(),
        },
    }
}
