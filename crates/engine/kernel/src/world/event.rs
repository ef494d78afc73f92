//! Counters behind descriptors: eventfd and timerfd.

use super::guest::Buffer;
use super::table::{Description, DescriptionId, Object};
use super::{Env, Reply, World, done, wait_for};
use crate::timers::Timer;

/// The largest count of an eventfd.
const COUNT_MAX: u64 = u64::MAX - 1;

/// A timer behind a descriptor.
#[derive(Clone, Debug)]
pub(super) struct TimerState {
    timer: Timer,
    clock: i32,
    /// Expirations that were not read.
    pub(super) count: u64,
}

impl World {
    pub(super) fn sys_eventfd(&mut self, initial: u64, flags: i32) -> Reply {
        if flags & !(libc::EFD_CLOEXEC | libc::EFD_NONBLOCK | libc::EFD_SEMAPHORE) != 0 {
            return Err(libc::EINVAL);
        }
        let object = Object::Event {
            count: u64::from(initial as u32),
            semaphore: flags & libc::EFD_SEMAPHORE != 0,
        };
        let status = libc::O_RDWR | flags & libc::EFD_NONBLOCK;
        let description = Description::new(object, status, b"anon_inode:[eventfd]");
        let fd = self.install(description, flags & libc::EFD_CLOEXEC != 0)?;
        done(i64::from(fd))
    }

    pub(super) fn read_event(&mut self, env: &mut Env, fd: i32, buffers: &[Buffer]) -> Reply {
        if Buffer::total(buffers) < 8 {
            return Err(libc::EINVAL);
        }
        let description = self.table.get_mut(fd)?;
        let waits = description.waits();
        let Object::Event { count, semaphore } = &mut description.object else {
            return Err(libc::EINVAL);
        };
        if *count == 0 {
            return if waits {
                wait_for(fd, libc::POLLIN)
            } else {
                Err(libc::EAGAIN)
            };
        }
        let taken = if *semaphore { 1 } else { *count };
        *count -= taken;
        description.edges.1 += 1;
        env.memory.scatter(buffers, &taken.to_le_bytes())?;
        done(8)
    }

    pub(super) fn write_event(&mut self, fd: i32, bytes: &[u8]) -> Reply {
        let added = bytes.first_chunk::<8>().ok_or(libc::EINVAL)?;
        let added = u64::from_le_bytes(*added);
        if added == u64::MAX {
            return Err(libc::EINVAL);
        }
        let description = self.table.get_mut(fd)?;
        let waits = description.waits();
        let Object::Event { count, .. } = &mut description.object else {
            return Err(libc::EINVAL);
        };
        if added > COUNT_MAX - *count {
            return if waits {
                wait_for(fd, libc::POLLOUT)
            } else {
                Err(libc::EAGAIN)
            };
        }
        *count += added;
        description.edges.0 += 1;
        done(8)
    }

    pub(super) fn timerfd_create(&mut self, clock: i32, flags: i32) -> Reply {
        if flags & !(libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) != 0 {
            return Err(libc::EINVAL);
        }
        let status = libc::O_RDWR | flags & libc::TFD_NONBLOCK;
        let description = Description::new(Object::Timer, status, b"anon_inode:[timerfd]");
        let fd = self.install(description, flags & libc::TFD_CLOEXEC != 0)?;
        let id = self.table.id(fd)?;
        self.timers.insert(
            id,
            TimerState {
                timer: Timer::default(),
                clock,
                count: 0,
            },
        );
        done(i64::from(fd))
    }

    fn timer(&mut self, fd: i32) -> Result<&mut TimerState, i32> {
        let id = self.table.id(fd)?;
        self.timers.get_mut(&id).ok_or(libc::EINVAL)
    }

    pub(super) fn timerfd_settime(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let (interval, value) = (
            env.memory.read_timespec(a[2])?,
            env.memory.read_timespec(a[2] + 16)?,
        );
        let state = self.timer(a[0] as i32)?;
        let next = match (value, a[1] & 1 != 0) {
            (0, _) => None,
            (value, false) => Some(env.now.saturating_add(value)),
            (value, true) if state.clock == libc::CLOCK_REALTIME => {
                Some(env.now + value.saturating_sub(env.realtime))
            }
            (value, true) => Some(value),
        };
        let old = std::mem::replace(&mut state.timer, Timer { next, interval });
        state.count = 0;
        if a[3] != 0 {
            write_timer(env, a[3], old)?;
        }
        done(0)
    }

    pub(super) fn timerfd_gettime(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let timer = self.timer(a[0] as i32)?.timer;
        write_timer(env, a[1], timer)?;
        done(0)
    }

    pub(super) fn read_timer(&mut self, env: &mut Env, fd: i32, buffers: &[Buffer]) -> Reply {
        if Buffer::total(buffers) < 8 {
            return Err(libc::EINVAL);
        }
        self.fire_timers(env.now);
        let waits = self.table.get(fd)?.waits();
        let state = self.timer(fd)?;
        if state.count == 0 {
            return if waits {
                wait_for(fd, libc::POLLIN)
            } else {
                Err(libc::EAGAIN)
            };
        }
        let count = std::mem::take(&mut state.count);
        env.memory.scatter(buffers, &count.to_le_bytes())?;
        done(8)
    }

    /// Counts the expirations of timers that are due.
    pub(crate) fn fire_timers(&mut self, now: u64) {
        let mut fired: Vec<DescriptionId> = Vec::new();
        for (id, state) in &mut self.timers {
            let count = state.timer.expire(now);
            if count > 0 {
                state.count += count;
                fired.push(*id);
            }
        }
        for id in fired {
            if let Some(description) = self.table.descriptions.get_mut(&id) {
                description.edges.0 += 1;
            }
        }
    }

    /// When the next timer fires.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.timers
            .values()
            .filter_map(|state| state.timer.next)
            .min()
    }
}

fn write_timer(env: &mut Env, at: u64, timer: Timer) -> Result<(), i32> {
    env.memory.write_timespec(at, timer.interval)?;
    env.memory.write_timespec(at + 16, timer.remaining(env.now))
}
