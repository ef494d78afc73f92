//! What a thread waits for, for people.

use crate::thread::{State, Wait};
use crate::{Kernel, syscall_name};

/// A wait in words, and who could end it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WaitDescription {
    /// As the end of "it waits for"; empty if it does not.
    pub text: String,
    /// The word in memory it waits for.
    pub futex: Option<u64>,
    /// The thread that has the lock there, as its owner field says.
    pub owner: Option<u32>,
}

/// Where glibc's mutexes keep the tid of their owner, from the futex word on.
const MUTEX_OWNER_OFFSET: u64 = 8;

impl Kernel {
    /// What a thread waits for.
    pub fn describe_wait(&self, index: usize) -> WaitDescription {
        let State::Waiting(wait) = &self.threads[index].state else {
            return WaitDescription::default();
        };
        let call = self.threads[index]
            .call
            .as_ref()
            .map(|call| syscall_name(call.number))
            .unwrap_or_default();
        match wait {
            Wait::Futex { address, .. } => WaitDescription {
                text: format!("a wake-up at {address:#x}"),
                futex: Some(*address),
                owner: self.mutex_owner(*address, index),
            },
            Wait::Sleep { .. } => in_words("a moment to pass"),
            Wait::Descriptors { .. } => in_words(&format!("data or room, in {call}")),
            Wait::Child => in_words("a child process"),
            Wait::Signal { .. } => in_words("a signal"),
        }
    }

    /// The thread that a mutex at this word says it belongs to, if it is one that lives and is another one.
    fn mutex_owner(&self, futex: u64, waiter: usize) -> Option<u32> {
        let tid = self.memory.read_u32(futex + MUTEX_OWNER_OFFSET).ok()? as i32;
        let index = self.thread_by_tid(tid)?;
        (index != waiter).then_some(index as u32)
    }
}

fn in_words(text: &str) -> WaitDescription {
    WaitDescription {
        text: text.to_string(),
        ..WaitDescription::default()
    }
}
