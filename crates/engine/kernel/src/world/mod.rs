//! The private world: files, descriptors, pipes and sockets as plain data, for executions that must not be seen outside.
//!
//! An execution that explores (another schedule than the recorded one, another input) runs the real program, which
//! deletes files, sends messages and signals its parent. In the private world all of that happens to data of the
//! executor alone: real files are read on demand and never written, sockets lead from one end of the process to the
//! other, outputs are kept. No object of the host's kernel carries state, so a forked executor has a world of its own.
//!
//! | the guest asks for | it gets |
//! | --- | --- |
//! | a file | the real content, copied page by page as it is changed ([`content`]) |
//! | names | a tree over the real one, in which names come and go ([`tree`]) |
//! | standard input | what the policy says ([`Input`]) |
//! | standard output and error | a transcript with a hash ([`Transcript`]) |
//! | a connection elsewhere | `ENETUNREACH` or `ECONNREFUSED`; the attempt is remembered ([`Effect`]) |
//! | a child process | a pid whose child has ended with status 127, as if it could not be executed |
//! | to be replaced (`execve`) | the new program, in the same world; one that was made or changed here is refused |
//! | to signal somebody else | success for its parent, `ESRCH` for others; nobody is signalled |
//!
//! What it does not have (System V objects, message queues, inotify) is absent, as in a kernel built without it.
//! Every system call has a row in [`policy`].

mod attributes;
mod content;
mod device;
mod directory;
mod epoll;
mod event;
mod exec;
mod guest;
mod host;
mod identity;
mod ioctl;
mod later;
mod leave;
mod locks;
mod machine;
mod mapped;
mod names;
mod node;
mod observe;
mod open;
mod output;
mod pipe;
mod policy;
mod poll;
mod seam;
mod socket;
mod table;
#[cfg(test)]
mod tests;
mod transfer;
mod tree;

pub use guest::{Buffer as GuestBuffer, GuestMemory};
pub use later::Arrived;
pub use output::{AfterInput, Input, OutputMode, Said, Stream, Transcript};
pub use policy::{PrivatePolicy, private_policy};

use crate::thread::Call;
use directory::EntryFormat;
use identity::Identity;
use node::{NodeId, Time};
use std::collections::{BTreeMap, VecDeque};
use table::{Description, DescriptionId, Object, Table};
use tree::{LastLink, Tree};
use verdict_schedule::SplitMix;

/// So many attempts to reach the outside are described; the others are counted.
const EFFECTS_MAX: usize = 1000;

/// Where the guest's files and connections are.
#[derive(Clone, Debug, Default)]
pub enum WorldMode {
    /// On the host.
    #[default]
    Host,
    /// In a world of its own.
    Private(WorldSetup),
    /// In the recording that is followed, while a world of its own keeps step, so that the guest can go on there.
    Followed(WorldSetup),
}

/// What a private world begins with.
#[derive(Clone, Debug)]
pub struct WorldSetup {
    /// Standard input.
    pub input: Input,
    /// Standard output and error.
    pub output: OutputMode,
    /// Bytes of output that are kept.
    pub output_max: u64,
}

impl Default for WorldSetup {
    fn default() -> Self {
        WorldSetup {
            input: Input::EndOfFile,
            output: OutputMode::Capture,
            output_max: 16 << 20,
        }
    }
}

/// Something that would have reached the outside, and did not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A child process was to be started.
    Child {
        /// The pid that the guest was told.
        pid: i32,
    },
    /// A signal to another process.
    Signal {
        /// To whom.
        pid: i32,
        /// Which.
        signal: i32,
    },
    /// A connection or message to somebody else.
    Connect {
        /// To whom.
        to: String,
    },
}

impl std::fmt::Display for Effect {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Effect::Child { pid } => write!(out, "child process {pid} was not started"),
            Effect::Signal { pid, signal } => {
                write!(out, "signal {signal} was not sent to process {pid}")
            }
            Effect::Connect { to } => write!(out, "no connection was made to {to}"),
        }
    }
}

/// How a call goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It returns this value.
    Return(i64),
    /// It waits and is tried again.
    Block(WaitSet),
    /// It fails with `EPIPE`, and the thread gets SIGPIPE.
    BrokenPipe,
    /// The world cannot do this.
    Refuse(String),
}

/// What a call waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitSet {
    /// Descriptors and the events that end the wait.
    pub polls: Vec<(i32, i16)>,
    /// When to try a last time.
    pub deadline: Option<u64>,
    /// Bytes already transferred.
    pub progress: u64,
}

/// An answer, or an `errno`.
pub type Reply = Result<Answer, i32>;

fn done(value: i64) -> Reply {
    Ok(Answer::Return(value))
}

fn wait_for(fd: i32, events: i16) -> Reply {
    Ok(Answer::Block(WaitSet {
        polls: vec![(fd, events)],
        deadline: None,
        progress: 0,
    }))
}

/// What a call may use besides the world.
pub struct Env<'a> {
    /// The guest's memory.
    pub memory: &'a mut dyn GuestMemory,
    /// CLOCK_MONOTONIC.
    pub now: u64,
    /// CLOCK_REALTIME.
    pub realtime: u64,
    /// The guest's randomness.
    pub random: &'a mut SplitMix,
}

impl Env<'_> {
    fn time(&self) -> Time {
        Time::from_ns(self.realtime)
    }

    fn random_bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.random.next_u64().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}

/// The private world of one guest.
#[derive(Clone, Debug)]
pub struct World {
    pid: i32,
    program: Vec<u8>,
    tree: Tree,
    identity: Identity,
    table: Table,
    pipes: BTreeMap<u32, pipe::Pipe>,
    sockets: BTreeMap<u32, socket::Socket>,
    epolls: BTreeMap<DescriptionId, epoll::Epoll>,
    timers: BTreeMap<DescriptionId, event::TimerState>,
    locks: locks::Locks,
    mapped: Vec<mapped::SharedMapping>,
    last_id: u32,
    next_port: u16,
    input: Input,
    input_used: usize,
    output_mode: OutputMode,
    transcript: Transcript,
    /// Children that the guest believes to have and has not waited for.
    children: Vec<i32>,
    effects: Vec<Effect>,
    effects_count: u64,
    /// Numbers that the next descriptors get, when a recording says which.
    forced: VecDeque<i32>,
    /// What is still to come from outside.
    later: later::Later,
    /// What comes from outside, while that is written down.
    heard: Option<Vec<Arrived>>,
}

impl World {
    /// A world over the real file system, with standard input, output and error open.
    pub fn new(setup: WorldSetup, pid: i32, program: Vec<u8>) -> Self {
        let identity = Identity::of_host();
        let mut world = World {
            pid,
            program,
            tree: Tree::new(&host::working_directory(), pid, &identity),
            identity,
            table: Table::default(),
            pipes: BTreeMap::new(),
            sockets: BTreeMap::new(),
            epolls: BTreeMap::new(),
            timers: BTreeMap::new(),
            locks: locks::Locks::default(),
            mapped: Vec::new(),
            last_id: 0,
            next_port: 0,
            input: setup.input,
            input_used: 0,
            output_mode: setup.output,
            transcript: Transcript::new(setup.output_max),
            children: Vec::new(),
            effects: Vec::new(),
            effects_count: 0,
            forced: VecDeque::new(),
            later: later::Later::default(),
            heard: None,
        };
        let standard = [
            (Object::Input, libc::O_RDONLY),
            (Object::Output(Stream::Output), libc::O_WRONLY),
            (Object::Output(Stream::Error), libc::O_WRONLY),
        ];
        for (index, (object, flags)) in standard.into_iter().enumerate() {
            let name = format!("pipe:[{index}]").into_bytes();
            world
                .install(Description::new(object, flags, &name), false)
                .expect("three descriptors are always free at the start");
        }
        world
    }

    /// What the guest has written to standard output and error.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// What would have reached the outside: the first ones, and how many there were.
    pub fn effects(&self) -> (&[Effect], u64) {
        (&self.effects, self.effects_count)
    }

    /// Opens a descriptor that leads to something the world does not have: a terminal, a connection elsewhere. It takes
    /// everything, and what it gives is up to the policy for input.
    pub fn open_outside(&mut self, fd: i32) {
        self.forced.push_back(fd);
        let outside = Description::new(Object::Outside, libc::O_RDWR, b"outside");
        // A forced number is always free: whatever had it is closed.
        let _ = self.install(outside, false);
    }

    fn remember(&mut self, effect: Effect) {
        self.effects_count += 1;
        if self.effects.len() < EFFECTS_MAX {
            self.effects.push(effect);
        }
    }

    fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    /// The regular file behind a descriptor.
    fn file_of(&self, fd: i32) -> Result<Option<NodeId>, i32> {
        Ok(match self.table.get(fd)?.object {
            Object::File(node) => Some(node),
            _ => None,
        })
    }

    /// Performs a call whose policy is [`PrivatePolicy::World`], or the world's part of one at the seam.
    pub fn call(&mut self, call: &Call, env: &mut Env) -> Reply {
        let a = call.args;
        let number = call.number as i64;
        let here = libc::AT_FDCWD;
        match number {
            libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_pread64
            | libc::SYS_preadv
            | libc::SYS_preadv2 => self.sys_read(env, call),
            libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_pwrite64
            | libc::SYS_pwritev
            | libc::SYS_pwritev2 => self.sys_write(env, call),
            libc::SYS_sendfile | libc::SYS_copy_file_range => self.sys_copy(env, call),
            libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_creat => {
                let (at, path, flags, mode) = open::arguments(number, a, env.memory)?;
                let path = env.memory.read_string(path)?;
                self.open(env, at, &path, flags, mode)
            }
            libc::SYS_close => self.close(a[0] as i32).and_then(|()| done(0)),
            libc::SYS_lseek => self.seek(a[0] as i32, a[1] as i64, a[2] as i32),
            libc::SYS_truncate => {
                let place = self.place_of_file(env, a[0])?;
                self.truncate_node(env, place, a[1])?;
                done(0)
            }
            libc::SYS_ftruncate => self.file_truncate(env, a[0] as i32, a[1]),
            libc::SYS_fallocate => self.allocate(env, a),
            libc::SYS_memfd_create => self.memory_file(env, a[0], a[1] as u32),
            // names
            libc::SYS_getdents => self.sys_getdents(env, a, EntryFormat::Old),
            libc::SYS_getdents64 => self.sys_getdents(env, a, EntryFormat::New),
            libc::SYS_getcwd => self.working_directory(env, a[0], a[1]),
            libc::SYS_chdir => self.change_directory(env, a[0]),
            libc::SYS_fchdir => self.change_directory_to(a[0] as i32),
            libc::SYS_rename => self.rename(env, [here as u64, a[0], here as u64, a[1], 0, 0]),
            libc::SYS_renameat => self.rename(env, [a[0], a[1], a[2], a[3], 0, 0]),
            libc::SYS_renameat2 => self.rename(env, a),
            libc::SYS_mkdir => self.make_directory(env, here, a[0], a[1] as u32),
            libc::SYS_mkdirat => self.make_directory(env, a[0] as i32, a[1], a[2] as u32),
            libc::SYS_mknod => self.make_node(env, here, a[0], a[1] as u32),
            libc::SYS_mknodat => self.make_node(env, a[0] as i32, a[1], a[2] as u32),
            libc::SYS_rmdir => self.remove(env, here, a[0], true),
            libc::SYS_unlink => self.remove(env, here, a[0], false),
            libc::SYS_unlinkat => {
                let directory = a[2] as i32 & libc::AT_REMOVEDIR != 0;
                self.remove(env, a[0] as i32, a[1], directory)
            }
            libc::SYS_link => self.hard_link(env, [here as u64, a[0], here as u64, a[1], 0, 0]),
            libc::SYS_linkat => self.hard_link(env, a),
            libc::SYS_symlink => self.make_link(env, a[0], here, a[1]),
            libc::SYS_symlinkat => self.make_link(env, a[0], a[1] as i32, a[2]),
            libc::SYS_readlink => self.read_link(env, here, a[0], a[1], a[2]),
            libc::SYS_readlinkat => self.read_link(env, a[0] as i32, a[1], a[2], a[3]),
            // attributes
            libc::SYS_stat | libc::SYS_lstat | libc::SYS_fstat | libc::SYS_newfstatat => {
                self.sys_stat(env, number, a)
            }
            libc::SYS_statx => self.sys_statx(env, a),
            libc::SYS_access => self.sys_access(env, here, a[0], a[1] as i32, 0),
            libc::SYS_faccessat => self.sys_access(env, a[0] as i32, a[1], a[2] as i32, 0),
            libc::SYS_faccessat2 => {
                self.sys_access(env, a[0] as i32, a[1], a[2] as i32, a[3] as i32)
            }
            libc::SYS_chmod => self.change_mode(env, here, Some(a[0]), a[1] as u32),
            libc::SYS_fchmod => self.change_mode(env, a[0] as i32, None, a[1] as u32),
            libc::SYS_fchmodat | policy::SYS_FCHMODAT2 => {
                self.change_mode(env, a[0] as i32, Some(a[1]), a[2] as u32)
            }
            libc::SYS_chown => {
                self.change_owner(env, here, Some(a[0]), (a[1] as u32, a[2] as u32), 0)
            }
            libc::SYS_lchown => {
                let owner = (a[1] as u32, a[2] as u32);
                self.change_owner(env, here, Some(a[0]), owner, libc::AT_SYMLINK_NOFOLLOW)
            }
            libc::SYS_fchown => {
                self.change_owner(env, a[0] as i32, None, (a[1] as u32, a[2] as u32), 0)
            }
            libc::SYS_fchownat => {
                let owner = (a[2] as u32, a[3] as u32);
                self.change_owner(env, a[0] as i32, Some(a[1]), owner, a[4] as i32)
            }
            libc::SYS_utime | libc::SYS_utimes | libc::SYS_utimensat | libc::SYS_futimesat => {
                self.sys_utimes(env, number, a)
            }
            libc::SYS_umask => {
                let old = std::mem::replace(&mut self.tree.mask, a[0] as u32 & 0o777);
                done(i64::from(old))
            }
            libc::SYS_statfs | libc::SYS_fstatfs => self.sys_statfs(env, number, a),
            // descriptors
            libc::SYS_dup => self.duplicate(a[0] as i32, 0, false),
            libc::SYS_dup2 => self.duplicate_to(a[0] as i32, a[1] as i32, None),
            libc::SYS_dup3 => self.duplicate_to(a[0] as i32, a[1] as i32, Some(a[2] as i32)),
            libc::SYS_close_range => self.close_range(a),
            libc::SYS_fcntl => self.sys_fcntl(env, a),
            libc::SYS_flock => locks::reply(self.flock(a[0] as i32, a[1] as i32)?),
            libc::SYS_ioctl => self.sys_ioctl(env, a),
            libc::SYS_pipe => self.sys_pipe(env, a[0], 0),
            libc::SYS_pipe2 => self.sys_pipe(env, a[0], a[1] as i32),
            libc::SYS_eventfd => self.sys_eventfd(a[0], 0),
            libc::SYS_eventfd2 => self.sys_eventfd(a[0], a[1] as i32),
            libc::SYS_timerfd_create => self.timerfd_create(a[0] as i32, a[1] as i32),
            libc::SYS_timerfd_settime => self.timerfd_settime(env, a),
            libc::SYS_timerfd_gettime => self.timerfd_gettime(env, a),
            libc::SYS_poll | libc::SYS_ppoll => self.sys_poll(env, call),
            libc::SYS_select | libc::SYS_pselect6 => self.sys_select(env, call),
            libc::SYS_epoll_create => self.sys_epoll_create(0),
            libc::SYS_epoll_create1 => self.sys_epoll_create(a[0] as i32),
            libc::SYS_epoll_ctl => self.sys_epoll_ctl(env, a),
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
                self.sys_epoll_wait(env, call)
            }
            libc::SYS_getuid
            | libc::SYS_geteuid
            | libc::SYS_getgid
            | libc::SYS_getegid
            | libc::SYS_getresuid
            | libc::SYS_getresgid
            | libc::SYS_setuid
            | libc::SYS_setgid
            | libc::SYS_setreuid
            | libc::SYS_setregid
            | libc::SYS_setresuid
            | libc::SYS_setresgid
            | libc::SYS_setfsuid
            | libc::SYS_setfsgid
            | libc::SYS_getgroups
            | libc::SYS_setgroups
            | libc::SYS_getrlimit
            | libc::SYS_setrlimit => self.identity.call(number, a, env.memory),
            libc::SYS_prlimit64 => self.identity.limit(a[1], a[2], a[3], env.memory),
            _ => self.socket_call(env, call),
        }
    }

    /// The regular file at a path, which must be writable.
    fn place_of_file(&mut self, env: &Env, path: u64) -> Result<NodeId, i32> {
        let place = self.place_at(env, libc::AT_FDCWD, path, LastLink::Follow)?;
        let node = place.node.ok_or(libc::ENOENT)?;
        self.identity
            .check(&self.tree.node(node).meta, libc::W_OK)?;
        Ok(node)
    }

    fn sys_fcntl(&mut self, env: &mut Env, a: [u64; 6]) -> Reply {
        let (fd, command) = (a[0] as i32, a[1] as i32);
        match command {
            libc::F_GETLK
            | libc::F_SETLK
            | libc::F_SETLKW
            | libc::F_OFD_GETLK
            | libc::F_OFD_SETLK
            | libc::F_OFD_SETLKW => locks::reply(self.record_lock(env, fd, command, a[2])?),
            _ => self.control(fd, command, a[2]),
        }
    }
}
