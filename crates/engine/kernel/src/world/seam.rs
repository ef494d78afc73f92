//! Where the kernel hands calls to the private world, and what it does itself in its place: mapping, processes, signals.

use super::mapped::SharedMapping;
use super::node::Kind;
use super::table::Object;
use super::{Answer, Effect, Env, GuestMemory, PrivatePolicy, Reply, World, WorldMode};
use crate::memory::{MapRequest, SysResult};
use crate::procfs::Special;
use crate::signals::SignalInfo;
use crate::thread::{Call, State, Wait};
use crate::{Flow, Kernel};
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use verdict_cpu::layout::PAGE;
use verdict_recording::Entry;

/// How long a thread sleeps before it tries a lock again.
const RETRY_NS: u64 = 1_000_000;
/// The status of a child that could not be executed, as shells have it.
const NOT_EXECUTED: i32 = 127;
const CLD_EXITED: i32 = 1;

impl Kernel {
    /// Enters the world that the options name.
    pub(crate) fn make_world(&mut self) {
        let make = |setup: &super::WorldSetup| {
            let setup = setup.clone();
            Some(Box::new(World::new(setup, self.pid, self.program_path())))
        };
        match &self.options.world {
            WorldMode::Host => {}
            WorldMode::Private(setup) => self.world = make(setup),
            WorldMode::Followed(setup) => self.following = make(setup),
        }
    }

    /// Performs a call in the private world; `None` if there is none, or if the kernel's usual way has no effect outside.
    pub(crate) fn private_call(&mut self, call: &Call) -> Option<Flow> {
        if self.world.is_none() || self.journal.is_replay() {
            return None;
        }
        match super::private_policy(call.number) {
            Some(PrivatePolicy::Kernel) => None,
            Some(PrivatePolicy::World) => Some(self.world_call(call)),
            Some(PrivatePolicy::Seam) => Some(self.seam_call(call)),
            Some(PrivatePolicy::Nothing) => Some(Flow::Return(0)),
            Some(PrivatePolicy::Fails(errno)) => Some(Flow::error(errno)),
            Some(PrivatePolicy::Refuse(why)) => Some(Flow::Refuse(why.to_string())),
            None => Some(Flow::error(libc::ENOSYS)),
        }
    }

    /// Asks the world, with the rest of the kernel at its side.
    fn in_world(&mut self, ask: impl FnOnce(&mut World, &mut Env) -> Reply) -> Reply {
        let (now, realtime) = (self.now(), self.clock.realtime(self.retired));
        let world = self.world.as_mut().ok_or(libc::ENOSYS)?;
        let mut env = Env {
            memory: &mut self.memory,
            now,
            realtime,
            random: &mut self.device_random,
        };
        ask(world, &mut env)
    }

    /// Lets the world keep step with a call that a recording has answered.
    pub(crate) fn observe_in_world(&mut self, call: &Call, result: i64) {
        let (now, realtime) = (self.now(), self.clock.realtime(self.retired));
        let Some(world) = self.following.as_mut() else {
            return;
        };
        let mut env = Env {
            memory: &mut super::observe::Recorded(&self.memory),
            now,
            realtime,
            // The guest's own randomness must not be used up by following.
            random: &mut self.random.clone(),
        };
        world.observe(call, result, &mut env);
    }

    fn world_call(&mut self, call: &Call) -> Flow {
        let reply = self.in_world(|world, env| world.call(call, env));
        self.flow(reply)
    }

    fn flow(&mut self, reply: Reply) -> Flow {
        match reply {
            Ok(Answer::Return(value)) => Flow::Return(value),
            Ok(Answer::Refuse(why)) => Flow::Refuse(why),
            Ok(Answer::BrokenPipe) => {
                self.broken_pipe();
                Flow::error(libc::EPIPE)
            }
            Ok(Answer::Block(wait)) => {
                if let Some(call) = &mut self.thread().call {
                    call.progress = wait.progress;
                }
                Flow::Block(Wait::Descriptors {
                    polls: wait.polls,
                    deadline: wait.deadline,
                })
            }
            Err(errno) => Flow::error(errno),
        }
    }

    /// Lets threads try again whose descriptors are ready. False if there is no private world.
    pub(crate) fn poll_world(&mut self) -> bool {
        let Some(world) = &self.world else {
            return false;
        };
        let mut woken = Vec::new();
        for (index, thread) in self.threads.iter_mut().enumerate() {
            if let State::Waiting(Wait::Descriptors { polls, .. }) = &thread.state
                && world.ready(polls)
            {
                thread.state = State::Runnable;
                woken.push(index as u32);
            }
        }
        for thread in woken {
            self.note(&Entry::Wake { thread });
        }
        true
    }

    fn seam_call(&mut self, call: &Call) -> Flow {
        let a = call.args;
        let number = call.number as i64;
        match number {
            libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_creat => {
                self.private_open(call)
            }
            libc::SYS_ppoll => self.with_mask(a[3], call),
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => self.with_mask(a[4], call),
            libc::SYS_pselect6 if a[5] != 0 => match self.memory.read_u64(a[5]) {
                Ok(mask) => self.with_mask(mask, call),
                Err(error) => Flow::error(error),
            },
            libc::SYS_poll | libc::SYS_select | libc::SYS_pselect6 | libc::SYS_epoll_wait => {
                self.world_call(call)
            }
            libc::SYS_fcntl | libc::SYS_flock => self.private_lock(call),
            libc::SYS_mmap => self.private_mmap(a),
            libc::SYS_munmap => self.private_unmap(a[0], a[1]).into(),
            libc::SYS_mremap => self.private_remap(a).into(),
            libc::SYS_msync => self.sync_mapped(a[0], a[1]).into(),
            libc::SYS_madvise => self.private_advice(a).into(),
            libc::SYS_mincore => {
                let pages = vec![1; a[1].div_ceil(PAGE) as usize];
                self.memory.write(a[2], &pages).map(|()| 0).into()
            }
            libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => {
                if a[0] as i32 == self.pid {
                    self.sys_process_vm(call.number, a).into()
                } else {
                    Flow::error(libc::ESRCH)
                }
            }
            libc::SYS_clone if a[0] & libc::CLONE_THREAD as u64 != 0 => self.sys_clone(a),
            libc::SYS_clone3 => match self.memory.read_u64(a[0]) {
                Ok(flags) if flags & libc::CLONE_THREAD as u64 != 0 => self.sys_clone3(a[0], a[1]),
                Ok(_) => self.child_that_ends(),
                Err(error) => Flow::error(error),
            },
            libc::SYS_clone | libc::SYS_fork | libc::SYS_vfork => self.child_that_ends(),
            libc::SYS_execve => self.private_exec(libc::AT_FDCWD, [a[0], a[1], a[2]], 0),
            libc::SYS_execveat => self.private_exec(a[0] as i32, [a[1], a[2], a[3]], a[4] as i32),
            libc::SYS_wait4 => self.private_wait(a[0] as i32, a[1], true).into(),
            libc::SYS_waitid => self.private_waitid(a).into(),
            libc::SYS_kill => self.private_kill(a[0] as i32, a[1] as i32).into(),
            libc::SYS_prlimit64 if a[0] as i32 == 0 || a[0] as i32 == self.pid => {
                self.world_call(call)
            }
            libc::SYS_prlimit64 => Flow::error(libc::ESRCH),
            libc::SYS_getpgrp | libc::SYS_setsid => Flow::Return(i64::from(self.pid)),
            libc::SYS_getpgid | libc::SYS_getsid => self.only_own(a[0], i64::from(self.pid)),
            libc::SYS_setpgid => self.only_own(a[0], 0),
            // The raw call answers 20 minus the nice value.
            libc::SYS_getpriority => self.only_own(a[1], 20),
            libc::SYS_setpriority => self.only_own(a[1], 0),
            libc::SYS_prctl => self.private_prctl(a).into(),
            libc::SYS_sched_get_priority_max | libc::SYS_sched_get_priority_min => {
                let is_real_time = matches!(a[0] as i32, libc::SCHED_FIFO | libc::SCHED_RR);
                let highest = number == libc::SYS_sched_get_priority_max;
                Flow::Return(match (is_real_time, highest) {
                    (true, true) => 99,
                    (true, false) => 1,
                    (false, _) => 0,
                })
            }
            _ => Flow::Refuse("this call has no meaning in the private world".into()),
        }
    }

    fn only_own(&self, pid: u64, answer: i64) -> Flow {
        if pid as i32 == 0 || pid as i32 == self.pid {
            Flow::Return(answer)
        } else {
            Flow::error(libc::ESRCH)
        }
    }

    fn with_mask(&mut self, mask: u64, call: &Call) -> Flow {
        match self.swap_mask(mask) {
            Ok(()) => self.world_call(call),
            Err(error) => Flow::error(error),
        }
    }

    /// `open`, where the kernel knows what some files of `/proc` say.
    fn private_open(&mut self, call: &Call) -> Flow {
        let arguments = super::open::arguments(call.number as i64, call.args, &self.memory);
        let special = arguments.and_then(|(_, path, flags, _)| {
            let path = self.memory.read_string(path)?;
            Ok((self.special_path(&path), path, flags))
        });
        match special {
            Ok((Some(Special::Content(content)), path, flags)) => {
                let reply =
                    self.in_world(|world, env| world.open_content(env, content, flags, &path));
                self.flow(reply)
            }
            Ok(_) => self.world_call(call),
            Err(error) => Flow::error(error),
        }
    }

    /// Locks that are held are tried again after a while, if the guest wants to wait.
    fn private_lock(&mut self, call: &Call) -> Flow {
        let a = call.args;
        let waits = match call.number as i64 {
            libc::SYS_flock => a[1] as i32 & libc::LOCK_NB == 0,
            _ => matches!(a[1] as i32, libc::F_SETLKW | libc::F_OFD_SETLKW),
        };
        match self.world_call(call) {
            Flow::Return(value) if waits && value == -i64::from(libc::EAGAIN) => {
                Flow::Block(Wait::Sleep {
                    deadline: self.now() + RETRY_NS,
                })
            }
            flow => flow,
        }
    }

    // ---- mapping ----

    fn private_mmap(&mut self, a: [u64; 6]) -> Flow {
        let mut flags = a[3] as i32;
        if !a[5].is_multiple_of(PAGE) {
            return Flow::error(libc::EINVAL);
        }
        let kind = flags & libc::MAP_TYPE;
        let shared = matches!(kind, libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE);
        // Nobody outside shares it, and a forked checkpoint must not.
        flags = flags & !libc::MAP_TYPE
            | match kind {
                libc::MAP_SHARED | libc::MAP_PRIVATE | libc::MAP_SHARED_VALIDATE => {
                    libc::MAP_PRIVATE
                }
                other => other,
            };
        let request = MapRequest {
            address: a[0],
            len: a[1],
            prot: a[2] as i32,
            flags,
            fd: -1,
            offset: a[5],
            path: None,
        };
        if flags & libc::MAP_FIXED != 0
            && let Err(error) = self.leave_range(a[0], a[1])
        {
            return Flow::error(error);
        }
        if flags & libc::MAP_ANONYMOUS != 0 {
            return self.memory.map(&request).into();
        }
        let fd = a[4] as i32;
        let len = a[1].next_multiple_of(PAGE);
        let writable = self.can_store(fd);
        let alias = |world: &World| world.would_alias(fd, a[5]..a[5].saturating_add(len), writable);
        if shared && self.world.as_deref().is_some_and(alias) {
            return Flow::Refuse("the same part of a file is mapped twice as shared memory (MAP_SHARED), and the private world cannot keep both in step".into());
        }
        self.map_world_file(request, fd, shared).into()
    }

    /// True if a shared mapping of the descriptor could change the file.
    fn can_store(&self, fd: i32) -> bool {
        self.world
            .as_ref()
            .and_then(|world| world.table.get(fd).ok())
            .is_some_and(|description| description.is_writable())
    }

    fn map_world_file(&mut self, mut request: MapRequest, fd: i32, shared: bool) -> SysResult {
        let world = self.world.as_mut().ok_or(libc::ENOSYS)?;
        let description = world.table.get(fd)?;
        let writable = description.is_writable();
        if !description.is_readable() {
            return Err(libc::EACCES);
        }
        if shared && request.prot & libc::PROT_WRITE != 0 && !writable {
            return Err(libc::EACCES);
        }
        let path = PathBuf::from(OsString::from_vec(description.path.clone()));
        let node = match description.object {
            Object::File(node) => node,
            Object::Device(super::device::Device::Zero) => {
                request.flags |= libc::MAP_ANONYMOUS;
                return self.memory.map(&request);
            }
            _ => return Err(libc::ENODEV),
        };
        request.path = Some(path);
        let untouched = match &world.tree.node(node).kind {
            Kind::File(Some(content)) => content.is_untouched(),
            _ => true,
        };
        let real = world.tree.node(node).real.clone();
        let plain = real.filter(|real| {
            untouched && !real.starts_with(b"/proc/") && !real.starts_with(b"/sys/")
        });
        let address = match plain {
            // The host's own copy-on-write is as private as ours.
            Some(real) if !(shared && writable) => {
                let file = super::host::open(&real)?;
                request.fd = file.as_raw_fd();
                let address = self.memory.map(&request)?;
                self.note_map(&request, &file, address as u64);
                address
            }
            _ => self.map_copy(request.clone(), node)?,
        };
        if shared {
            let start = address as u64;
            let range = start..start + request.len.next_multiple_of(PAGE);
            let world = self.world.as_mut().ok_or(libc::ENOSYS)?;
            world.tree.node_mut(node).opens += 1;
            world.mapped.push(SharedMapping {
                range,
                node,
                offset: request.offset,
                writable,
            });
        }
        Ok(address)
    }

    /// Anonymous memory filled with what the file holds.
    fn map_copy(&mut self, mut request: MapRequest, node: super::NodeId) -> SysResult {
        let world = self.world.as_mut().ok_or(libc::ENOSYS)?;
        debug_assert!(matches!(world.tree.node(node).kind, Kind::File(_)));
        let bytes = world
            .tree
            .content(node)?
            .bytes(request.offset, request.len)?;
        let prot = request.prot;
        request.flags |= libc::MAP_ANONYMOUS;
        request.prot = libc::PROT_READ | libc::PROT_WRITE;
        let address = self.memory.map(&request)?;
        self.memory.write(address as u64, &bytes)?;
        self.note_mapped_bytes(&request, &bytes, address as u64);
        if prot != request.prot {
            let len = request.len;
            self.memory.protect(address as u64, len, prot)?;
        }
        Ok(address)
    }

    /// Stores what the guest changed in shared mappings of the range.
    fn sync_mapped(&mut self, address: u64, len: u64) -> SysResult {
        let end = address.saturating_add(len).next_multiple_of(PAGE);
        let reply = self.in_world(|world, env| world.sync_range(env.memory, address..end));
        reply.map(|_| 0)
    }

    /// The range is about to be unmapped or mapped over.
    fn leave_range(&mut self, address: u64, len: u64) -> Result<(), i32> {
        let end = address.saturating_add(len.next_multiple_of(PAGE));
        self.sync_mapped(address, len)?;
        if let Some(world) = &mut self.world {
            world.forget_range(&(address..end));
        }
        Ok(())
    }

    fn private_unmap(&mut self, address: u64, len: u64) -> SysResult {
        if len > 0 && len < 1 << 47 {
            self.leave_range(address, len)?;
        }
        self.memory.unmap(address, len)
    }

    fn private_remap(&mut self, a: [u64; 6]) -> SysResult {
        let (old, old_len, new_len) = (a[0], a[1], a[2]);
        let shared = self.world.as_ref().and_then(|world| {
            let found = |mapping: &&SharedMapping| mapping.range.contains(&old);
            world.mapped.iter().find(found).cloned()
        });
        let Some(shared) = shared else {
            return self.memory.remap(old, old_len, new_len, a[3] as i32, a[4]);
        };
        self.sync_mapped(old, old_len)?;
        let moved = self
            .memory
            .remap(old, old_len, new_len, a[3] as i32, a[4])?;
        let start = moved as u64;
        let (old_len, new_len) = (
            old_len.next_multiple_of(PAGE),
            new_len.next_multiple_of(PAGE),
        );
        let world = self.world.as_mut().ok_or(libc::ENOSYS)?;
        let offset = shared.offset + (old - shared.range.start);
        world.tree.node_mut(shared.node).opens += 1;
        world.forget_range(&(old..old + old_len));
        world.mapped.push(SharedMapping {
            range: start..start + new_len,
            offset,
            ..shared
        });
        if new_len > old_len {
            let content = world.tree.content(shared.node)?;
            let grown = content.bytes(offset + old_len, new_len - old_len)?;
            self.memory.write_through(start + old_len, &grown)?;
        }
        Ok(moved)
    }

    fn private_advice(&mut self, a: [u64; 6]) -> SysResult {
        match a[2] as i32 {
            libc::MADV_DONTNEED | libc::MADV_FREE => {
                let end = a[0].saturating_add(a[1]);
                let is_file = self.world.as_ref().is_some_and(|world| {
                    let hit = |mapping: &SharedMapping| {
                        mapping.range.start < end && a[0] < mapping.range.end
                    };
                    world.mapped.iter().any(hit)
                });
                // Pages of a shared file would come back with its content: keep them.
                if is_file { Ok(0) } else { self.sys_madvise(a) }
            }
            libc::MADV_REMOVE => Err(libc::EINVAL),
            // Some of the others decide what a forked process gets: a checkpoint must get everything.
            _ => Ok(0),
        }
    }

    // ---- processes ----

    /// A child process would act outside: it is taken to have ended at once.
    fn child_that_ends(&mut self) -> Flow {
        let pid = self.next_tid;
        self.next_tid += 1;
        if let Some(world) = &mut self.world {
            world.children.push(pid);
            world.remember(Effect::Child { pid });
        }
        let mut info = SignalInfo::from_process(libc::SIGCHLD, CLD_EXITED, pid, self.uid());
        info.bytes[24..28].copy_from_slice(&NOT_EXECUTED.to_le_bytes());
        self.note_signal(&info, None);
        self.send_to_process(info);
        Flow::Return(i64::from(pid))
    }

    fn find_child(&mut self, wanted: i32, reap: bool) -> SysResult {
        let children = &mut self.world.as_mut().ok_or(libc::ECHILD)?.children;
        let at = children
            .iter()
            .position(|child| wanted <= 0 || *child == wanted)
            .ok_or(libc::ECHILD)?;
        Ok(i64::from(if reap {
            children.remove(at)
        } else {
            children[at]
        }))
    }

    fn private_wait(&mut self, wanted: i32, status: u64, reap: bool) -> SysResult {
        let pid = self.find_child(wanted, reap)?;
        if status != 0 {
            self.memory.write_u32(status, (NOT_EXECUTED as u32) << 8)?;
        }
        Ok(pid)
    }

    fn private_waitid(&mut self, a: [u64; 6]) -> SysResult {
        let wanted = if a[0] as u32 == libc::P_PID {
            a[1] as i32
        } else {
            -1
        };
        let reap = a[3] & libc::WNOWAIT as u64 == 0;
        let pid = self.find_child(wanted, reap)? as i32;
        if a[2] != 0 {
            let mut info = SignalInfo::from_process(libc::SIGCHLD, CLD_EXITED, pid, self.uid());
            info.bytes[24..28].copy_from_slice(&NOT_EXECUTED.to_le_bytes());
            self.memory.write(a[2], &info.bytes)?;
        }
        Ok(0)
    }

    fn private_kill(&mut self, pid: i32, signal: i32) -> SysResult {
        let own = pid == self.pid || pid == 0 || pid == -self.pid;
        if own {
            return self.sys_kill(self.pid, signal);
        }
        if let Some(world) = &mut self.world {
            world.remember(Effect::Signal { pid, signal });
        }
        if pid == crate::PARENT_PID {
            Ok(0)
        } else {
            Err(libc::ESRCH)
        }
    }

    fn private_prctl(&mut self, a: [u64; 6]) -> SysResult {
        match a[0] as i32 {
            libc::PR_SET_NAME
            | libc::PR_GET_NAME
            | libc::PR_SET_SECCOMP
            | libc::PR_SET_MM
            | libc::PR_GET_SECCOMP
            | libc::PR_SET_PDEATHSIG
            | libc::PR_SET_TIMERSLACK => self.sys_prctl(a),
            libc::PR_GET_DUMPABLE => Ok(1),
            libc::PR_SET_DUMPABLE
            | libc::PR_SET_KEEPCAPS
            | libc::PR_SET_NO_NEW_PRIVS
            | libc::PR_SET_CHILD_SUBREAPER
            | libc::PR_SET_PTRACER
            | libc::PR_SET_THP_DISABLE
            | libc::PR_GET_THP_DISABLE
            | libc::PR_GET_NO_NEW_PRIVS
            | libc::PR_GET_KEEPCAPS => Ok(0),
            _ => Err(libc::EINVAL),
        }
    }
}
