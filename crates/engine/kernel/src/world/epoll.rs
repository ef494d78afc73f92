//! `epoll`: sets of descriptors, by level or by edge.

use super::table::{Description, DescriptionId, Object};
use super::{Answer, Env, Reply, WaitSet, World, done};
use crate::thread::Call;
use std::collections::BTreeMap;

const EDGE: u32 = libc::EPOLLET as u32;
const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;
const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
const OUT: u32 = (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32;
const EVENT_LEN: u64 = 12;

/// What one member of a set is watched for.
#[derive(Clone, Debug)]
struct Interest {
    description: DescriptionId,
    events: u32,
    data: u64,
    /// Edges that were told already; `None` before the first time.
    told: Option<(u64, u64)>,
    /// A one-shot member that has fired.
    spent: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Epoll {
    members: BTreeMap<i32, Interest>,
    /// Where the next look begins, so that a busy member does not starve the others.
    next: i32,
}

impl Epoll {
    /// A description is gone.
    pub(super) fn forget(&mut self, id: DescriptionId) {
        self.members
            .retain(|_, interest| interest.description != id);
    }
}

impl World {
    pub(super) fn sys_epoll_create(&mut self, flags: i32) -> Reply {
        if flags & !libc::EPOLL_CLOEXEC != 0 {
            return Err(libc::EINVAL);
        }
        let description = Description::new(Object::Epoll, libc::O_RDWR, b"anon_inode:[eventpoll]");
        let fd = self.install(description, flags & libc::EPOLL_CLOEXEC != 0)?;
        let id = self.table.id(fd)?;
        self.epolls.insert(id, Epoll::default());
        done(i64::from(fd))
    }

    pub(super) fn sys_epoll_ctl(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let (fd, target) = (a[0] as i32, a[2] as i32);
        let id = self.table.id(fd)?;
        let description = self.table.id(target)?;
        if matches!(
            self.table.get(target)?.object,
            Object::File(_) | Object::Directory { .. }
        ) {
            return Err(libc::EPERM);
        }
        if id == description {
            return Err(libc::EINVAL);
        }
        let interest = if a[1] as i32 == libc::EPOLL_CTL_DEL {
            None
        } else {
            Some(Interest {
                description,
                events: env.memory.read_u32(a[3])?,
                data: env.memory.read_u64(a[3] + 4)?,
                told: None,
                spent: false,
            })
        };
        let epoll = self.epolls.get_mut(&id).ok_or(libc::EINVAL)?;
        let known = epoll
            .members
            .get(&target)
            .is_some_and(|member| member.description == description);
        match (a[1] as i32, interest) {
            (libc::EPOLL_CTL_ADD, _) if known => return Err(libc::EEXIST),
            (libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL, _) if !known => return Err(libc::ENOENT),
            (libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD, Some(interest)) => {
                epoll.members.insert(target, interest);
            }
            (libc::EPOLL_CTL_DEL, _) => {
                epoll.members.remove(&target);
            }
            _ => return Err(libc::EINVAL),
        }
        done(0)
    }

    /// What a member has to tell now.
    fn interest_events(&self, interest: &Interest, nesting: u32) -> u32 {
        if interest.spent {
            return 0;
        }
        let ready = self.description_events(interest.description, nesting) as u16;
        let mut events = u32::from(ready) & (interest.events | ALWAYS);
        if interest.events & EDGE != 0
            && let Some(told) = interest.told
            && let Some(description) = self.table.descriptions.get(&interest.description)
        {
            let (reads, writes) = description.edges;
            if reads == told.0 {
                events &= OUT;
            }
            if writes == told.1 {
                events &= !OUT;
            }
        }
        events
    }

    pub(super) fn epoll_has_events(&self, id: DescriptionId, nesting: u32) -> bool {
        self.epolls.get(&id).is_some_and(|epoll| {
            epoll
                .members
                .values()
                .any(|interest| self.interest_events(interest, nesting) != 0)
        })
    }

    /// `epoll_wait` and its kin; the mask is already in force.
    pub(super) fn sys_epoll_wait(&mut self, env: &mut Env, call: &Call) -> Reply {
        let a = call.args;
        let timeout = match call.number as i64 {
            libc::SYS_epoll_pwait2 if a[3] == 0 => None,
            libc::SYS_epoll_pwait2 => Some(env.memory.read_timespec(a[3])?),
            _ => u64::try_from(a[3] as i32).ok().map(|ms| ms * 1_000_000),
        };
        let id = self.table.id(a[0] as i32)?;
        let limit = a[2] as i32;
        if limit <= 0 || !self.epolls.contains_key(&id) {
            return Err(libc::EINVAL);
        }
        self.fire_timers(env.now);
        let hits = self.collect(id, limit as usize);
        for (index, (events, data)) in hits.iter().enumerate() {
            let at = a[1] + EVENT_LEN * index as u64;
            env.memory.write_u32(at, *events)?;
            env.memory.write_u64(at + 4, *data)?;
        }
        if !hits.is_empty() || call.timed_out || timeout == Some(0) {
            return done(hits.len() as i64);
        }
        Ok(Answer::Block(WaitSet {
            polls: vec![(a[0] as i32, libc::POLLIN)],
            deadline: Self::deadline(env, call, timeout),
            progress: 0,
        }))
    }

    /// A recording told so many events.
    pub(super) fn told_of(&mut self, id: DescriptionId, events: usize) {
        self.collect(id, events);
    }

    /// Events and data of at most `limit` members that have something to tell, which they then have told.
    fn collect(&mut self, id: DescriptionId, limit: usize) -> Vec<(u32, u64)> {
        let Some(epoll) = self.epolls.get(&id) else {
            return Vec::new();
        };
        let order: Vec<i32> = epoll
            .members
            .range(epoll.next..)
            .chain(epoll.members.range(..epoll.next))
            .map(|(fd, _)| *fd)
            .collect();
        let mut hits = Vec::new();
        for fd in order {
            if hits.len() == limit {
                break;
            }
            let Some(interest) = self
                .epolls
                .get(&id)
                .and_then(|epoll| epoll.members.get(&fd))
            else {
                continue;
            };
            let events = self.interest_events(interest, 1);
            if events == 0 {
                continue;
            }
            hits.push((events, interest.data));
            let edges = self
                .table
                .descriptions
                .get(&interest.description)
                .map(|description| description.edges);
            if let Some(epoll) = self.epolls.get_mut(&id)
                && let Some(interest) = epoll.members.get_mut(&fd)
            {
                interest.told = edges;
                interest.spent = interest.events & ONE_SHOT != 0;
                epoll.next = fd + 1;
            }
        }
        hits
    }
}
