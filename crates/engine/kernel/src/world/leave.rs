//! Leaving a recording: what was followed until now goes on by itself, in the private world that kept step.

use super::mapped::SharedMapping;
use super::table::Object;
use super::{AfterInput, Arrived, Env};
use crate::thread::{Call, State, Wait};
use crate::{Journal, Kernel, Recorder, SignalInfo};
use verdict_cpu::layout::PAGE;
use verdict_recording::Entry;

impl Kernel {
    /// True if there is a world to go on in.
    pub fn can_leave_recording(&self) -> bool {
        self.journal.is_replay() && self.following.is_some()
    }

    /// From now on the world that keeps step writes down what comes from outside.
    pub fn listen_to_recording(&mut self) {
        if let Some(world) = &mut self.following {
            world.listen();
        }
    }

    /// What has come from outside since [`Kernel::listen_to_recording`].
    pub fn heard_in_recording(&mut self) -> Vec<Arrived> {
        let world = self.following.as_mut();
        world.map(|world| world.heard()).unwrap_or_default()
    }

    /// The execution leaves its recording here and goes on in the private world, where it finds what `arrived` says. A
    /// `recorder` goes on with the notes.
    pub fn leave_recording(
        &mut self,
        arrived: Vec<Arrived>,
        after: AfterInput,
        recorder: Option<Recorder>,
    ) {
        let (now, realtime) = (self.now(), self.clock.realtime(self.retired));
        let Some(mut world) = self.following.take() else {
            return;
        };
        let mut env = Env {
            memory: &mut self.memory,
            now,
            realtime,
            random: &mut self.device_random,
        };
        world.set_after_input(after);
        world.give(arrived, &mut env);
        self.world = Some(world);
        self.journal = recorder.map_or(Journal::Live, Journal::recording);
        for index in 0..self.threads.len() {
            let thread = &mut self.threads[index];
            // Calls that the recording made wait are tried again, now here.
            if matches!(&thread.state, State::Waiting(Wait::Descriptors { polls, .. }) if polls.is_empty())
                || matches!(&thread.state, State::Waiting(Wait::Child))
            {
                thread.state = State::Runnable;
                self.note(&Entry::Wake {
                    thread: index as u32,
                });
            }
        }
    }

    /// A signal that came after the moment at which the recording was left comes now, if there is one.
    pub(crate) fn next_recorded_signal(&mut self) -> bool {
        let deadline = self.next_deadline().is_some();
        let world = self.world.as_mut();
        let Some(bytes) = world.and_then(|world| world.next_signal(deadline)) else {
            return false;
        };
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
            i32::from_le_bytes(bytes.unwrap_or_default())
        };
        let mut info = SignalInfo::from_process(word(0), word(8), word(16), word(20) as u32);
        for (to, from) in info.bytes.iter_mut().zip(&bytes) {
            *to = *from;
        }
        self.note_signal(&info, None);
        self.signal_from_outside(info);
        true
    }

    /// The world that keeps step learns of a file that was mapped as shared memory.
    pub(crate) fn observe_shared_map(&mut self, call: &Call, address: u64) {
        let Some(world) = &mut self.following else {
            return;
        };
        let a = call.args;
        if let Ok(description) = world.table.get(a[4] as i32)
            && let Object::File(node) = description.object
        {
            let writable = description.is_writable();
            world.tree.node_mut(node).opens += 1;
            world.mapped.push(SharedMapping {
                range: address..address + a[1].next_multiple_of(PAGE),
                node,
                offset: a[5],
                writable,
            });
        }
    }

    /// Memory is about to be unmapped or mapped over: what was stored there belongs to its file.
    pub(crate) fn observe_unmap(&mut self, call: &Call) {
        let a = call.args;
        let leaves = match call.number as i64 {
            libc::SYS_munmap | libc::SYS_mremap => true,
            libc::SYS_mmap => a[3] as i32 & libc::MAP_FIXED != 0,
            _ => false,
        };
        if !leaves || a[1] == 0 || a[1] >= 1 << 47 {
            return;
        }
        if let Some(world) = &mut self.following {
            let range = a[0]..a[0].saturating_add(a[1].next_multiple_of(PAGE));
            let _ = world.sync_range(&self.memory, range.clone());
            world.forget_range(&range);
        }
    }
}
