//! What a copy has changed in the guest's memory, compared with the executor it was copied from, which stands still.

use crate::Executor;
use crate::explore::Role;
use verdict_cpu::{Gpr, layout::PAGE};
use verdict_protocol::{MemoryChanges, ThreadState};

/// Changed words kept.
const WORDS_MAX: usize = 1 << 16;
/// Pages compared at a time.
const CHUNK_PAGES: u64 = 256;
/// The part of a stack below its pointer that belongs to the running function all the same.
const RED_ZONE: u64 = 128;

impl Executor {
    /// Every word of writable memory that differs from the original's, dead parts of stacks left out.
    pub(crate) fn memory_changes(&self) -> MemoryChanges {
        // SAFETY: cannot fail. A copy's parent is the executor it was copied from.
        let original = unsafe { libc::getppid() };
        let mut changes = MemoryChanges::default();
        let dead = self.dead_ranges();
        let runtime = self.runtime_data();
        let ranges: Vec<(u64, u64)> = self
            .kernel
            .memory
            .mappings()
            .filter(|(_, mapping)| mapping.prot & libc::PROT_WRITE != 0)
            .map(|(start, mapping)| (start, mapping.end))
            .filter(|(start, _)| !runtime.contains(start))
            .collect();
        for (start, end) in ranges {
            let mut at = start;
            while at < end && !changes.cut {
                let len = (end - at).min(CHUNK_PAGES * PAGE);
                self.compare_chunk(original, at, len, &dead, &mut changes);
                at += len;
            }
        }
        changes.threads = self.thread_states();
        changes.newer = self.newer_frames();
        changes
    }

    /// Every word of writable memory that differs from the parent's, in order of address.
    pub(crate) fn changed_words(&self) -> Vec<(u64, u64)> {
        // SAFETY: cannot fail.
        let original = unsafe { libc::getppid() };
        let mut changes = MemoryChanges::default();
        let writable =
            |(_, mapping): &(u64, &verdict_kernel::Mapping)| mapping.prot & libc::PROT_WRITE != 0;
        for (start, mapping) in self.kernel.memory.mappings().filter(writable) {
            let mut at = start;
            while at < mapping.end && !changes.cut {
                let len = (mapping.end - at).min(CHUNK_PAGES * PAGE);
                self.compare_chunk(original, at, len, &[], &mut changes);
                at += len;
            }
        }
        changes.words
    }

    fn compare_chunk(
        &self,
        original: i32,
        start: u64,
        len: u64,
        dead: &[(u64, u64)],
        changes: &mut MemoryChanges,
    ) {
        if !any_present(start, len) {
            return;
        }
        let mut then = vec![0u8; len as usize];
        let mut now = vec![0u8; len as usize];
        let known = read_other(original, start, &mut then);
        if self.kernel.memory.read(start, &mut now).is_err() {
            return;
        }
        // What the original does not have is all new.
        then[known..].fill(0);
        if then == now {
            return;
        }
        for (index, (old, new)) in then.chunks(8).zip(now.chunks(8)).enumerate() {
            let address = start + 8 * index as u64;
            let is_dead = |(from, to): &(u64, u64)| (*from..*to).contains(&address);
            if old == new || dead.iter().any(is_dead) || self.is_binding(old, new) {
                continue;
            }
            if changes.words.len() == WORDS_MAX {
                changes.cut = true;
                return;
            }
            let word = |bytes: &[u8]| {
                let mut whole = [0; 8];
                whole[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(whole)
            };
            changes.words.push((address, word(new)));
        }
    }

    /// True if the loader has replaced the address of a stub by that of a function in another file, as it does when a
    /// function is called for the first time: who does that is not the program's.
    fn is_binding(&self, old: &[u8], new: &[u8]) -> bool {
        let code = |bytes: &[u8]| {
            let address = u64::from_le_bytes(bytes.try_into().ok()?);
            let (_, mapping) = self.kernel.memory.find(address)?;
            let executable = mapping.prot & libc::PROT_EXEC != 0;
            mapping.file.as_ref().filter(|_| executable)
        };
        match (code(old), code(new)) {
            (Some((stub, _)), Some((function, _))) => stub != function,
            _ => false,
        }
    }

    /// Mappings with the C library's and the loader's own data: its state is not the program's.
    fn runtime_data(&self) -> Vec<u64> {
        let mut found = Vec::new();
        let mut end_before = 0;
        for (start, mapping) in self.kernel.memory.mappings() {
            let runtime = match &mapping.file {
                Some((path, _)) => {
                    let name = path.file_name().map(|name| name.to_string_lossy());
                    name.is_some_and(|name| {
                        name.starts_with("libc.so") || name.starts_with("ld-linux")
                    })
                }
                // What follows without a gap is the zeroed rest of the same data.
                None => end_before == start,
            };
            if runtime {
                found.push(start);
                end_before = mapping.end;
            }
        }
        found
    }

    /// The unused part of each thread's stack, and what the C library keeps of each thread.
    fn dead_ranges(&self) -> Vec<(u64, u64)> {
        /// Length of `struct pthread`, to which the thread's base points; nothing of the program's is behind it.
        const DESCRIPTOR: u64 = 0x900;
        let descriptors = self.kernel.threads.iter().map(|thread| {
            let base = thread.registers.fs_base;
            (base, base.saturating_add(DESCRIPTOR))
        });
        self.kernel
            .threads
            .iter()
            .filter_map(|thread| {
                let sp = thread.registers.get(Gpr::Rsp);
                let (start, _) = self.kernel.memory.find(sp)?;
                let used = if self.is_at_call(thread.registers.rip) {
                    0
                } else {
                    RED_ZONE
                };
                Some((start, sp.saturating_sub(used)))
            })
            .chain(descriptors)
            .collect()
    }

    /// The parts of the racing threads' stacks that hold frames newer than their accesses.
    fn newer_frames(&self) -> Vec<(u64, u64)> {
        let racing = match &self.explore {
            Some(Role::Copy(copy)) => copy.stacks.as_slice(),
            _ => &[],
        };
        racing
            .iter()
            .filter_map(|(thread, sp, stack)| {
                let now = self.kernel.threads[*thread].registers.get(Gpr::Rsp);
                let (start, _) = self.kernel.memory.find(now)?;
                Some((start, self.old_frames(*sp, stack)))
            })
            .collect()
    }

    /// Where the frames begin that a thread had when it came to its access, and still has. Those that are newer hold what
    /// their functions are at, and what functions before them have left behind, which depends on the path.
    ///
    /// Frames are told by their return addresses: one that is not the same any more was left.
    fn old_frames(&self, sp: u64, stack: &[u8]) -> u64 {
        let mut begin = sp;
        for (index, then) in stack.chunks_exact(8).enumerate() {
            let then = u64::from_le_bytes(then.try_into().expect("eight bytes"));
            let at = sp + 8 * index as u64;
            let is_code = self
                .kernel
                .memory
                .find(then)
                .is_some_and(|(_, mapping)| mapping.prot & libc::PROT_EXEC != 0);
            if is_code && self.kernel.memory.read_u64(at).ok() != Some(then) {
                begin = at + 8;
            }
        }
        begin
    }

    /// True at the beginning of a function that is watched, and after a system call: nobody keeps anything below the stack
    /// pointer there.
    fn is_at_call(&self, pc: u64) -> bool {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        let mut before = [0; 2];
        let read = self.kernel.memory.read(pc.wrapping_sub(2), &mut before);
        self.cache.is_watched(pc) || (read.is_ok() && before == SYSCALL)
    }

    fn thread_states(&self) -> Vec<ThreadState> {
        self.kernel
            .threads
            .iter()
            .map(|thread| ThreadState {
                thread: thread.id.0,
                rip: thread.registers.rip,
                instructions: thread.retired,
                signals: thread
                    .pending
                    .iter()
                    .fold(0, |set, info| set | 1 << (info.signal & 63)),
                kept: [Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15]
                    .map(|register| thread.registers.get(register)),
            })
            .collect()
    }
}

/// True if any page of the range was ever touched.
fn any_present(start: u64, len: u64) -> bool {
    use std::os::unix::fs::FileExt;
    let Ok(map) = std::fs::File::open("/proc/self/pagemap") else {
        return true;
    };
    let pages = len.div_ceil(PAGE) as usize;
    let mut entries = vec![0u8; pages * 8];
    if map.read_exact_at(&mut entries, start / PAGE * 8).is_err() {
        return true;
    }
    // Bit 63: present; bit 62: swapped.
    entries.chunks(8).any(|entry| entry[7] & 0xc0 != 0)
}

/// Reads another process's memory; how many bytes there were.
fn read_other(pid: i32, start: u64, buffer: &mut [u8]) -> usize {
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let remote = libc::iovec {
        iov_base: start as *mut libc::c_void,
        iov_len: buffer.len(),
    };
    // SAFETY: one valid local buffer; the remote range may be anything.
    let count = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    usize::try_from(count).unwrap_or(0)
}
