//! The guest's kernel while it follows a recording: where the host would be asked, the next entry answers.

use super::record::arguments_digest;
use crate::thread::{Call, State, Wait};
use crate::{Flow, Kernel, SignalInfo, syscall_name};
use verdict_cpu::Gpr;
use verdict_recording::{EndOutcome, Entry, MemoryWrite, Output, WaitKind, digest};

impl Kernel {
    /// Answers a call of the outside from the recording.
    pub(crate) fn replay_call(&mut self, call: &Call) -> Flow {
        let retired = self.retired;
        let replaced = self
            .journal
            .replayer()
            .is_some_and(|mut replayer| replayer.is_replaced(retired));
        if replaced && matches!(call.number as i64, libc::SYS_execve | libc::SYS_execveat) {
            return self.dispatch_live(call);
        }
        if let Err(error) = self.prepare_mask(call) {
            return Flow::error(error);
        }
        self.replay_signals();
        let Some(entry) = self.take_answer(call) else {
            return Flow::ReplayOver;
        };
        match entry {
            Entry::Call {
                result,
                writes,
                output,
                ..
            } => self.replay_result(call, result, &writes, output.as_ref()),
            Entry::Block {
                wait,
                deadline,
                progress,
                ..
            } => {
                if let Some(call) = &mut self.thread().call {
                    call.progress = progress;
                }
                Flow::Block(match wait {
                    WaitKind::Child => Wait::Child,
                    WaitKind::Retry => Wait::Sleep {
                        deadline: deadline.unwrap_or(0),
                    },
                    WaitKind::Descriptors => Wait::Descriptors {
                        polls: Vec::new(),
                        deadline,
                    },
                })
            }
            _ => unreachable!("only answers are taken"),
        }
    }

    /// What a recorded fork returned; `None` where the recording says something else.
    pub fn replay_fork(&mut self, call: &Call) -> Option<i64> {
        // A child that only seemed to be started has ended at once, and said so before the call returned.
        self.replay_signals();
        match self.take_answer(call)? {
            Entry::Call { result, writes, .. } => {
                for write in &writes {
                    // The memory was there then, and so it is now.
                    let _ = self.memory.write(write.address, &write.bytes);
                }
                self.observe_in_world(call, result);
                Some(result)
            }
            _ => None,
        }
    }

    /// The entry that answers this call; a divergence if there is another one.
    fn take_answer(&mut self, call: &Call) -> Option<Entry> {
        let retired = self.retired;
        let expected = arguments_digest(call);
        let mut replayer = self.journal.replayer()?;
        let fits = |entry: &Entry| {
            matches!(entry, Entry::Call { number, args_digest, .. } | Entry::Block { number, args_digest, .. }
                if u64::from(*number) == call.number && *args_digest == expected)
        };
        let answer = replayer.take_if(retired, fits);
        if answer.is_none() {
            replayer.stuck(retired, &self.doing(call));
        }
        answer
    }

    fn doing(&self, call: &Call) -> String {
        let arguments: Vec<String> = call.args.iter().map(|a| format!("{a:#x}")).collect();
        format!(
            "thread {} called {}({})",
            self.threads[self.current].id.0,
            syscall_name(call.number),
            arguments.join(", ")
        )
    }

    fn replay_result(
        &mut self,
        call: &Call,
        result: i64,
        writes: &[MemoryWrite],
        output: Option<&Output>,
    ) -> Flow {
        if let Some(recorded) = output {
            let touched = self.touched(call, result);
            let bytes = self.output_bytes(call.number, result, &touched);
            if digest(&bytes) != recorded.digest {
                let (retired, doing) = (self.retired, self.doing(call));
                if let Some(mut replayer) = self.journal.replayer() {
                    replayer.diverge(
                        retired,
                        format!(
                            "{} bytes of output with digest {:x}",
                            recorded.len, recorded.digest
                        ),
                        format!("{doing} with {} other bytes", bytes.len()),
                    );
                }
                return Flow::ReplayOver;
            }
            let shown = self.journal.replayer().is_some_and(|mut replayer| {
                replayer.outputs[usize::from(recorded.stream.min(2))].update(&bytes);
                replayer.shows_output()
            });
            if shown && matches!(recorded.stream, 1 | 2) {
                show(i32::from(recorded.stream), &bytes);
            }
        }
        for write in writes {
            if self.memory.write(write.address, &write.bytes).is_err() {
                let (retired, doing) = (self.retired, self.doing(call));
                if let Some(mut replayer) = self.journal.replayer() {
                    let recorded = format!(
                        "{} bytes written to {:#x}",
                        write.bytes.len(),
                        write.address
                    );
                    replayer.diverge(retired, recorded, format!("{doing}, where no memory is"));
                }
                return Flow::ReplayOver;
            }
        }
        self.observe_in_world(call, result);
        Flow::Return(result)
    }

    /// Signals that arrived from outside at this moment.
    pub(crate) fn replay_signals(&mut self) {
        loop {
            let retired = self.retired;
            let taken = self.journal.replayer().and_then(|mut replayer| {
                replayer.take_if(retired, |entry| matches!(entry, Entry::Signal { .. }))
            });
            let Some(Entry::Signal {
                number,
                code,
                pid,
                uid,
                value,
                thread,
            }) = taken
            else {
                return;
            };
            let mut info = SignalInfo::from_process(number, code, pid, uid);
            info.bytes[24..32].copy_from_slice(&value.to_le_bytes());
            // Children are not made again, and those that seem to be say so themselves.
            if let (Some(world), None) = (&mut self.following, thread)
                && number != libc::SIGCHLD
            {
                world.hear_signal(&info.bytes);
            }
            match thread {
                Some(thread) if (thread as usize) < self.threads.len() => {
                    self.send_to_thread(thread as usize, info);
                }
                Some(_) => {}
                None => self.signal_from_outside(info),
            }
        }
    }

    /// What the next instruction of the running thread found in memory.
    pub fn replay_memory(&mut self) {
        let retired = self.retired;
        let taken = self.journal.replayer().and_then(|mut replayer| {
            replayer.take_if(retired, |entry| matches!(entry, Entry::Memory { .. }))
        });
        if let Some(Entry::Memory { write }) = taken
            && self.memory.write(write.address, &write.bytes).is_err()
            && let Some(mut replayer) = self.journal.replayer()
        {
            let recorded = format!("an update of {:#x} in two halves", write.address);
            replayer.diverge(retired, recorded, "there is no memory".into());
        }
    }

    /// The block that the running thread was to free at this moment, and what it frees instead, which is its argument then.
    pub fn replay_withheld(&mut self) -> Option<(u64, u64)> {
        let retired = self.retired;
        let taken = self.journal.replayer().and_then(|mut replayer| {
            replayer.take_if(retired, |entry| matches!(entry, Entry::Withheld { .. }))
        });
        let Some(Entry::Withheld { block, instead }) = taken else {
            return None;
        };
        let registers = &mut self.thread().registers;
        let argument = registers.get(Gpr::Rdi);
        registers.set(Gpr::Rdi, instead);
        if argument != block
            && let Some(mut replayer) = self.journal.replayer()
        {
            let recorded = format!("{block:#x} to be freed");
            replayer.diverge(retired, recorded, format!("{argument:#x}"));
        }
        Some((block, instead))
    }

    /// Threads whose descriptors became ready at this moment.
    pub(crate) fn replay_wakes(&mut self) {
        loop {
            let retired = self.retired;
            let taken = self.journal.replayer().and_then(|mut replayer| {
                replayer.take_if(retired, |entry| matches!(entry, Entry::Wake { .. }))
            });
            let Some(Entry::Wake { thread }) = taken else {
                return;
            };
            if let Some(thread) = self.threads.get_mut(thread as usize) {
                thread.state = State::Runnable;
            }
        }
    }

    /// A time that passed at this moment although somebody could run; false if none did.
    pub fn replay_skip(&mut self) -> bool {
        let retired = self.retired;
        let taken = self.journal.replayer().and_then(|mut replayer| {
            replayer.take_if(retired, |entry| matches!(entry, Entry::Clock { .. }))
        });
        let Some(Entry::Clock { monotonic_ns }) = taken else {
            return false;
        };
        self.clock.skip_to(monotonic_ns, retired);
        true
    }

    /// True if the recording has something from outside at this moment that may let a thread go on.
    pub fn replay_wakes_more(&mut self) -> bool {
        let retired = self.retired;
        self.journal.replayer().is_some_and(|mut replayer| {
            replayer.peek().is_some_and(|next| {
                next.at == retired
                    && matches!(next.entry, Entry::Wake { .. } | Entry::Signal { .. })
            })
        })
    }

    /// Nobody can run: what the outside did then. False if the recording does not say.
    pub(crate) fn replay_idle(&mut self) -> bool {
        let retired = self.retired;
        if self.replay_skip() {
            return true;
        }
        if self.replay_wakes_more() {
            return true;
        }
        if let Some(mut replayer) = self.journal.replayer()
            && !replayer.ends_at(retired, &EndOutcome::Deadlock)
        {
            replayer.stuck(retired, "all threads wait");
        }
        false
    }
}

/// Shows what the guest wrote where its user would have seen it.
fn show(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: a valid buffer; the descriptor is the engine's own standard output or error.
        let count = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        if count <= 0 {
            return;
        }
        bytes = &bytes[count as usize..];
    }
}
