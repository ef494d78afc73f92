//! Waiting for descriptors: what is ready, `poll` and `select`.

use super::output::AfterInput;
use super::table::{DescriptionId, Object};
use super::{Answer, Env, Reply, WaitSet, World, done};
use crate::thread::Call;
use crate::time::SECOND_NS;

const DESCRIPTORS_MAX: u64 = 1 << 16;
const FD_SET_MAX: u64 = 1024;
const ALWAYS: i16 = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
const READ_SET: i16 = libc::POLLIN | libc::POLLHUP | libc::POLLERR | libc::POLLRDNORM;
const WRITE_SET: i16 = libc::POLLOUT | libc::POLLERR | libc::POLLWRNORM;
/// Epoll descriptors may wait for one another so deep.
const NESTING_MAX: u32 = 5;

impl World {
    /// True if one of the waits is over.
    pub fn ready(&self, polls: &[(i32, i16)]) -> bool {
        polls
            .iter()
            .any(|(fd, events)| self.events(*fd) & (*events | ALWAYS) != 0)
    }

    /// All that a descriptor is ready for; `POLLNVAL` if it is not open.
    pub(super) fn events(&self, fd: i32) -> i16 {
        match self.table.id(fd) {
            Ok(id) => self.description_events(id, 0),
            Err(_) => libc::POLLNVAL,
        }
    }

    pub(super) fn description_events(&self, id: DescriptionId, nesting: u32) -> i16 {
        let both = libc::POLLIN | libc::POLLOUT | libc::POLLRDNORM | libc::POLLWRNORM;
        let Some(description) = self.table.descriptions.get(&id) else {
            return libc::POLLNVAL;
        };
        let pipe = |pipe: &u32, reads, writes| {
            self.pipes
                .get(pipe)
                .map_or(libc::POLLHUP, |pipe| pipe.events(reads, writes))
        };
        let flag = |ready: bool, events: i16| if ready { events } else { 0 };
        match &description.object {
            Object::File(_) | Object::Directory { .. } | Object::OwnDescriptors => both,
            Object::Device(_) => both,
            Object::Path(_) => libc::POLLNVAL,
            Object::PipeReader(id) => pipe(id, true, false),
            Object::PipeWriter(id) => pipe(id, false, true),
            Object::PipeBoth(id) => pipe(id, true, true),
            Object::Event { count, .. } => {
                flag(*count > 0, libc::POLLIN) | flag(*count < u64::MAX - 1, libc::POLLOUT)
            }
            Object::Timer => {
                let count = self.timers.get(&id).map_or(0, |timer| timer.count);
                flag(count > 0, libc::POLLIN)
            }
            Object::Epoll if nesting >= NESTING_MAX => 0,
            Object::Epoll => flag(self.epoll_has_events(id, nesting + 1), libc::POLLIN),
            Object::Socket(socket) => {
                let arrived = flag(self.has_connection(id), libc::POLLIN | libc::POLLRDNORM);
                self.socket_events(*socket) | arrived
            }
            // At its end it is readable: reading says so.
            Object::Input => libc::POLLIN | libc::POLLRDNORM,
            Object::Output(_) => libc::POLLOUT | libc::POLLWRNORM,
            Object::Outside if self.after_input() == AfterInput::Stop && !self.has_outside(id) => {
                libc::POLLOUT
            }
            Object::Outside => both,
        }
    }

    /// The deadline of a call that has waited before, or the one its timeout gives.
    pub(super) fn deadline(env: &Env, call: &Call, timeout_ns: Option<u64>) -> Option<u64> {
        call.deadline
            .or_else(|| timeout_ns.map(|ns| env.now.saturating_add(ns)))
    }

    /// `poll` and `ppoll`; the mask is already in force.
    pub(super) fn sys_poll(&mut self, env: &mut Env, call: &Call) -> Reply {
        let a = call.args;
        let timeout = if call.number as i64 == libc::SYS_poll {
            u64::try_from(a[2] as i32).ok().map(|ms| ms * 1_000_000)
        } else if a[2] == 0 {
            None
        } else {
            Some(env.memory.read_timespec(a[2])?)
        };
        if a[1] > DESCRIPTORS_MAX {
            return Err(libc::EINVAL);
        }
        self.fire_timers(env.now);
        let mut polls = Vec::with_capacity(a[1] as usize);
        let mut hits = 0;
        for index in 0..a[1] {
            let at = a[0] + 8 * index;
            let word = env.memory.read_u64(at)?;
            let (fd, events) = (word as i32, (word >> 32) as i16);
            let found = if fd < 0 {
                0
            } else {
                polls.push((fd, events));
                self.events(fd) & (events | ALWAYS)
            };
            hits += i64::from(found != 0);
            env.memory.write(at + 6, &found.to_le_bytes())?;
        }
        if hits != 0 || call.timed_out || timeout == Some(0) {
            return done(hits);
        }
        Ok(Answer::Block(WaitSet {
            polls,
            deadline: Self::deadline(env, call, timeout),
            progress: 0,
        }))
    }

    /// `select` and `pselect6`; the mask is already in force.
    pub(super) fn sys_select(&mut self, env: &mut Env, call: &Call) -> Reply {
        let a = call.args;
        let with_nanos = call.number as i64 == libc::SYS_pselect6;
        let timeout = match a[4] {
            0 => None,
            at if with_nanos => Some(env.memory.read_timespec(at)?),
            at => {
                let (seconds, micros) = (env.memory.read_u64(at)?, env.memory.read_u64(at + 8)?);
                if seconds as i64 | micros as i64 >= 0 {
                    let micros = micros.saturating_mul(1000);
                    Some(seconds.saturating_mul(SECOND_NS).saturating_add(micros))
                } else {
                    return Err(libc::EINVAL);
                }
            }
        };
        self.fire_timers(env.now);
        let count = a[0].min(FD_SET_MAX);
        let len = (count as usize).div_ceil(64) * 8;
        let mut polls = Vec::new();
        let mut sets = [const { Vec::new() }; 3];
        let mut hits = 0;
        for (index, wanted) in [READ_SET, WRITE_SET, libc::POLLPRI].into_iter().enumerate() {
            if a[1 + index] == 0 {
                continue;
            }
            let mut set = env.memory.read_bytes(a[1 + index], len as u64)?;
            for fd in 0..count as usize {
                if set[fd / 8] & 1 << (fd % 8) == 0 {
                    continue;
                }
                self.table.get(fd as i32)?;
                polls.push((fd as i32, wanted));
                if self.events(fd as i32) & wanted != 0 {
                    hits += 1;
                } else {
                    set[fd / 8] &= !(1 << (fd % 8));
                }
            }
            sets[index] = set;
        }
        if hits == 0 && !call.timed_out && timeout != Some(0) {
            return Ok(Answer::Block(WaitSet {
                polls,
                deadline: Self::deadline(env, call, timeout),
                progress: 0,
            }));
        }
        for (set, to) in sets.iter().zip(&a[1..4]) {
            if *to != 0 {
                env.memory.write(*to, set)?;
            }
        }
        if let Some(timeout) = timeout {
            let left = call
                .deadline
                .map_or(timeout, |deadline| deadline.saturating_sub(env.now));
            let fraction = left % SECOND_NS / if with_nanos { 1 } else { 1000 };
            // Linux alone tells; a timeout in read-only memory is no error.
            let _ = env.memory.write_u64(a[4], left / SECOND_NS);
            let _ = env.memory.write_u64(a[4] + 8, fraction);
        }
        done(hits)
    }
}
