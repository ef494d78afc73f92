//! A `vfork` child of a guest that is recorded.
//!
//! Natively such a child shares its parent's memory until it executes something. What it does there could not be repeated by a replay,
//! which makes no children; so it gets a copy, and while its parent waits, as it would, a child that ends without having executed
//! anything tells what it has changed: that is how `posix_spawn` says that a program could not be started. The changes become
//! the parent's, and part of the recording.

use crate::Executor;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use verdict_cpu::Gpr;
use verdict_kernel::{ENGINE_FD_START, ForkRequest, ForkSide};
use verdict_recording::MemoryWrite;

/// A changed word on its way: its address and what is there now.
const WORD_LEN: usize = 16;

impl Executor {
    /// Makes the child, and waits until it has executed something or ended.
    pub(crate) fn recorded_vfork(&mut self, request: &ForkRequest) {
        let call = self.kernel.thread().call.clone();
        let refused = -i64::from(libc::EAGAIN);
        let (Ok(code), Some((from_child, to_parent))) = (self.cache.copy_for_child(), pipe())
        else {
            return self.kernel.thread().complete(refused);
        };
        // SAFETY: lets the child compare its memory with this one's; changes nothing else.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
        match self.kernel.fork(request) {
            ForkSide::Child => {
                drop(from_child);
                self.events = None;
                self.vfork_parent = Some(to_parent);
                if let Err(error) = self.cache.adopt(&code) {
                    self.refused(error.to_string());
                }
            }
            ForkSide::Parent => {
                drop(to_parent);
                let writes = self.take_changes(from_child);
                let result = self.kernel.thread().registers.get(Gpr::Rax) as i64;
                if let Some(call) = call {
                    self.kernel.note_result_and_writes(&call, result, writes);
                }
            }
        }
    }

    /// Takes over what the child has changed; nothing if it has executed something.
    fn take_changes(&mut self, mut from_child: File) -> Vec<MemoryWrite> {
        let mut told = Vec::new();
        // A child that was killed has told what it could.
        let _ = from_child.read_to_end(&mut told);
        let mut writes: Vec<MemoryWrite> = Vec::new();
        for word in told.chunks_exact(WORD_LEN) {
            let (address, bytes) = word.split_at(8);
            let address = u64::from_le_bytes(address.try_into().expect("eight bytes"));
            match writes.last_mut() {
                Some(last) if last.address + last.bytes.len() as u64 == address => {
                    last.bytes.extend_from_slice(bytes);
                }
                _ => writes.push(MemoryWrite {
                    address,
                    bytes: bytes.to_vec(),
                }),
            }
        }
        writes.retain(|write| {
            self.kernel
                .memory
                .write(write.address, &write.bytes)
                .is_ok()
        });
        writes
    }

    /// A child ends without having executed anything: its parent gets what it has changed.
    pub(crate) fn tell_vfork_parent(&mut self) {
        let Some(mut parent) = self.vfork_parent.take() else {
            return;
        };
        let mut bytes = Vec::new();
        for (address, value) in self.changed_words() {
            bytes.extend_from_slice(&address.to_le_bytes());
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        // A parent that is gone misses nothing.
        let _ = parent.write_all(&bytes);
    }
}

/// A pipe at numbers that the guest does not use, closed by whoever executes something.
fn pipe() -> Option<(File, File)> {
    let mut ends = [-1; 2];
    // SAFETY: two fresh descriptors, which are ours.
    let made = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    if made != 0 {
        return None;
    }
    let moved = ends.map(|end| {
        // SAFETY: as above; the copy is owned by the file, and the low number is free again at once.
        unsafe {
            let low = OwnedFd::from_raw_fd(end);
            let high = libc::fcntl(end, libc::F_DUPFD_CLOEXEC, ENGINE_FD_START);
            drop(low);
            (high >= 0).then(|| File::from_raw_fd(high))
        }
    });
    let [from_child, to_parent] = moved;
    Some((from_child?, to_parent?))
}
