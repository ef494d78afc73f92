//! Futexes: words in guest memory that threads sleep on. The queue is the set of threads whose wait names the
//! word, in the order in which they began to wait.

use crate::memory::SysResult;
use crate::thread::{State, Wait};
use crate::{Flow, Kernel};

const FUTEX_WAITV_MAX: u32 = 128;
const BITSET_ANY: u32 = u32::MAX;
const TID_MASK: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;
/// The kernel's limit on the length of a robust list.
const ROBUST_LIST_MAX: u32 = 2048;

impl Kernel {
    /// `futex`.
    pub(crate) fn futex(&mut self, args: [u64; 6]) -> Flow {
        let [address, op, value, timeout, address2, value3] = args;
        let realtime = op as i32 & libc::FUTEX_CLOCK_REALTIME != 0;
        let value = value as u32;
        let result = match op as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
            libc::FUTEX_WAIT => {
                return self.futex_wait(address, value, BITSET_ANY, timeout, TimeoutKind::Relative);
            }
            libc::FUTEX_WAIT_BITSET => {
                let clock = if realtime {
                    libc::CLOCK_REALTIME
                } else {
                    libc::CLOCK_MONOTONIC
                };
                return self.futex_wait(
                    address,
                    value,
                    value3 as u32,
                    timeout,
                    TimeoutKind::Absolute(clock),
                );
            }
            libc::FUTEX_WAKE => self
                .check_futex(address)
                .map(|()| self.wake(address, value, BITSET_ANY)),
            libc::FUTEX_WAKE_BITSET => self
                .check_futex(address)
                .map(|()| self.wake(address, value, value3 as u32)),
            libc::FUTEX_REQUEUE => Ok(self.requeue(address, value, timeout as u32, address2)),
            libc::FUTEX_CMP_REQUEUE => match self.memory.read_u32(address) {
                Ok(now) if now != value3 as u32 => Err(libc::EAGAIN),
                Ok(_) => Ok(self.requeue(address, value, timeout as u32, address2)),
                Err(error) => Err(error),
            },
            libc::FUTEX_WAKE_OP => {
                self.wake_op(address, value, timeout as u32, address2, value3 as u32)
            }
            libc::FUTEX_LOCK_PI
            | libc::FUTEX_LOCK_PI2
            | libc::FUTEX_TRYLOCK_PI
            | libc::FUTEX_UNLOCK_PI
            | libc::FUTEX_WAIT_REQUEUE_PI
            | libc::FUTEX_CMP_REQUEUE_PI => {
                return Flow::Refuse("futex with priority inheritance (PTHREAD_PRIO_INHERIT) is not supported; use an ordinary mutex".into());
            }
            _ => Err(libc::ENOSYS),
        };
        Flow::from(result)
    }

    fn check_futex(&self, address: u64) -> Result<(), i32> {
        if address.is_multiple_of(4) {
            Ok(())
        } else {
            Err(libc::EINVAL)
        }
    }

    fn futex_wait(
        &mut self,
        address: u64,
        expected: u32,
        bitset: u32,
        timeout: u64,
        kind: TimeoutKind,
    ) -> Flow {
        if !address.is_multiple_of(4) || bitset == 0 {
            return Flow::error(libc::EINVAL);
        }
        let deadline = match self.deadline(timeout, kind) {
            Ok(deadline) => deadline,
            Err(error) => return Flow::error(error),
        };
        match self.memory.read_u32(address) {
            Err(error) => Flow::error(error),
            Ok(now) if now != expected => Flow::error(libc::EAGAIN),
            Ok(_) => Flow::Block(Wait::Futex {
                address,
                bitset,
                deadline,
                shared: self.is_shared(address),
            }),
        }
    }

    fn is_shared(&self, address: u64) -> bool {
        let found = self.memory.find(address);
        found.is_some_and(|(_, mapping)| mapping.shared)
    }

    /// Wakes up to `count` waiters; returns how many.
    ///
    /// Where other processes share the word, those that run natively wait in the host's kernel; those under an
    /// engine of their own notice by themselves (see [`Kernel::wake_shared_waiters`]).
    pub(crate) fn wake(&mut self, address: u64, count: u32, bitset: u32) -> i64 {
        let woken = self.wake_own(address, count, bitset);
        let left = i64::from(count) - woken;
        if left > 0 && self.is_shared(address) {
            let op = libc::FUTEX_WAKE_BITSET as u64;
            let host = crate::syscalls::host(
                libc::SYS_futex as u64,
                [address, op, left as u64, 0, 0, u64::from(bitset)],
            );
            return woken + host.unwrap_or(0);
        }
        woken
    }

    /// Ends the waits on words that other processes may have changed. A futex may wake without a reason, and
    /// whoever waits on one looks at the word again.
    pub(crate) fn wake_shared_waiters(&mut self) {
        for thread in &mut self.threads {
            if matches!(
                thread.state,
                State::Waiting(Wait::Futex { shared: true, .. })
            ) {
                thread.complete(0);
            }
        }
    }

    pub(crate) fn has_shared_waiters(&self) -> bool {
        self.threads.iter().any(|thread| {
            matches!(
                thread.state,
                State::Waiting(Wait::Futex { shared: true, .. })
            )
        })
    }

    fn wake_own(&mut self, address: u64, count: u32, bitset: u32) -> i64 {
        let mut woken = 0;
        for index in self.waiters(address) {
            if woken >= i64::from(count) {
                break;
            }
            if let State::Waiting(Wait::Futex { bitset: wanted, .. }) = &self.threads[index].state
                && wanted & bitset != 0
            {
                self.threads[index].complete(0);
                woken += 1;
            }
        }
        woken
    }

    /// Indices of the threads waiting on a word, longest wait first. Whoever has waited for long enough is not among them,
    /// whether that was noticed or not: when it is, is not the same in a replay.
    fn waiters(&self, address: u64) -> Vec<usize> {
        let mut waiters: Vec<(u64, usize)> = Vec::new();
        let now = self.now();
        for (index, thread) in self.threads.iter().enumerate() {
            if let State::Waiting(Wait::Futex {
                address: waiting,
                deadline,
                ..
            }) = &thread.state
                && *waiting == address
                && deadline.is_none_or(|deadline| deadline > now)
            {
                waiters.push((self.wait_started[index], index));
            }
        }
        waiters.sort_unstable();
        waiters.into_iter().map(|(_, index)| index).collect()
    }

    fn requeue(&mut self, address: u64, wake: u32, requeue: u32, to: u64) -> i64 {
        let woken = self.wake(address, wake, BITSET_ANY);
        let mut moved = 0;
        for index in self.waiters(address).into_iter().take(requeue as usize) {
            let now_shared = self.is_shared(to);
            if let State::Waiting(Wait::Futex {
                address, shared, ..
            }) = &mut self.threads[index].state
            {
                *address = to;
                *shared = now_shared;
                moved += 1;
            }
        }
        woken + moved
    }

    fn wake_op(
        &mut self,
        address: u64,
        wake: u32,
        wake2: u32,
        address2: u64,
        encoded: u32,
    ) -> SysResult {
        let old = self.memory.read_u32(address2)?;
        let (op, compare) = (encoded >> 28, encoded >> 24 & 0xf);
        let sign = |field: u32| (field << 20) as i32 >> 20;
        let mut operand = sign(encoded >> 12 & 0xfff) as u32;
        if op & 8 != 0 {
            operand = 1 << (operand & 31);
        }
        let new = match op & 7 {
            0 => operand,
            1 => old.wrapping_add(operand),
            2 => old | operand,
            3 => old & !operand,
            4 => old ^ operand,
            _ => return Err(libc::ENOSYS),
        };
        self.memory.write_u32(address2, new)?;
        let (old, argument) = (old as i32, sign(encoded & 0xfff));
        let holds = match compare {
            0 => old == argument,
            1 => old != argument,
            2 => old < argument,
            3 => old <= argument,
            4 => old > argument,
            5 => old >= argument,
            _ => return Err(libc::ENOSYS),
        };
        let mut woken = self.wake(address, wake, BITSET_ANY);
        if holds {
            woken += self.wake(address2, wake2, BITSET_ANY);
        }
        Ok(woken)
    }

    /// What the kernel does for a thread that ends: robust mutexes it held, and its clear_child_tid word.
    pub(crate) fn release_thread(&mut self, index: usize) {
        let (head, _) = self.threads[index].robust_list;
        let tid = self.threads[index].tid as u32;
        if head != 0 {
            self.walk_robust_list(head, tid);
        }
        let word = std::mem::take(&mut self.threads[index].clear_child_tid);
        if word != 0 && self.memory.write_u32(word, 0).is_ok() {
            self.wake(word, 1, BITSET_ANY);
        }
    }

    fn walk_robust_list(&mut self, head: u64, tid: u32) -> Option<()> {
        let offset = self.memory.read_u64(head + 8).ok()?;
        let pending = self.memory.read_u64(head + 16).ok()? & !1;
        let mut entry = self.memory.read_u64(head).ok()? & !1;
        let mut left = ROBUST_LIST_MAX;
        while entry != head && left > 0 {
            left -= 1;
            let next = self.memory.read_u64(entry).ok()? & !1;
            if entry != pending {
                self.owner_died(entry.wrapping_add(offset), tid);
            }
            entry = next;
        }
        if pending != 0 {
            self.owner_died(pending.wrapping_add(offset), tid);
        }
        Some(())
    }

    fn owner_died(&mut self, word: u64, tid: u32) -> Option<()> {
        let value = self.memory.read_u32(word).ok()?;
        if value & TID_MASK == tid {
            self.memory
                .write_u32(word, value & WAITERS | OWNER_DIED)
                .ok()?;
            if value & WAITERS != 0 {
                self.wake(word, 1, BITSET_ANY);
            }
        }
        Some(())
    }

    /// `futex_waitv` is refused like any call that the kernel does not have: glibc never needs it.
    pub(crate) fn futex_waitv(&self, count: u32) -> Flow {
        Flow::error(if count > FUTEX_WAITV_MAX {
            libc::EINVAL
        } else {
            libc::ENOSYS
        })
    }
}

/// How a timeout is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimeoutKind {
    Relative,
    Absolute(i32),
}
