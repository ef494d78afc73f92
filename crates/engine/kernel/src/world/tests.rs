//! The world as a guest would use it, without a guest: calls on a few pages of memory.

use super::guest::GuestMemory;
use super::{AfterInput, Answer, Env, Input, Reply, Stream, WaitSet, World, WorldSetup};
use crate::thread::Call;
use std::path::{Path, PathBuf};
use verdict_schedule::SplitMix;

const BASE: u64 = 0x1000;
const BUFFER: u64 = BASE + 0x4000;
const HERE: u64 = libc::AT_FDCWD as u64;

/// A few pages.
#[derive(Clone)]
struct Pages(Vec<u8>);

impl Pages {
    fn range(&self, address: u64, len: usize) -> Result<std::ops::Range<usize>, i32> {
        let start = address.checked_sub(BASE).ok_or(libc::EFAULT)? as usize;
        if start + len > self.0.len() {
            return Err(libc::EFAULT);
        }
        Ok(start..start + len)
    }
}

impl GuestMemory for Pages {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), i32> {
        buffer.copy_from_slice(&self.0[self.range(address, buffer.len())?]);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), i32> {
        let range = self.range(address, bytes.len())?;
        self.0[range].copy_from_slice(bytes);
        Ok(())
    }

    fn write_through(&mut self, address: u64, bytes: &[u8]) -> Result<(), i32> {
        self.write(address, bytes)
    }

    fn read_string(&self, address: u64) -> Result<Vec<u8>, i32> {
        let from = self.range(address, 1)?.start;
        let end = self.0[from..].iter().position(|byte| *byte == 0);
        Ok(self.0[from..from + end.ok_or(libc::EFAULT)?].to_vec())
    }
}

/// Memory that keeps what it has, as that of a replay.
struct Kept(Pages);

impl GuestMemory for Kept {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), i32> {
        self.0.read(address, buffer)
    }
    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), i32> {
        Ok(())
    }
    fn write_through(&mut self, _: u64, _: &[u8]) -> Result<(), i32> {
        Ok(())
    }
    fn read_string(&self, address: u64) -> Result<Vec<u8>, i32> {
        self.0.read_string(address)
    }
}

#[derive(Clone)]
struct Guest {
    world: World,
    memory: Pages,
    now: u64,
}

impl Guest {
    fn new(input: Input) -> Guest {
        let setup = WorldSetup {
            input,
            ..WorldSetup::default()
        };
        Guest {
            world: World::new(setup, 5_000_000, b"/bin/true".to_vec()),
            memory: Pages(vec![0; 0x40000]),
            now: 0,
        }
    }

    fn reply(&mut self, call: &Call) -> Reply {
        let mut env = Env {
            memory: &mut self.memory,
            now: self.now,
            realtime: 2_000_000_000 * crate::SECOND_NS + self.now,
            random: &mut SplitMix::new(1),
        };
        self.world.call(call, &mut env)
    }

    fn raw(&mut self, number: i64, args: &[u64]) -> Reply {
        self.reply(&call(number, args))
    }

    #[track_caller]
    fn ok(&mut self, number: i64, args: &[u64]) -> i64 {
        match self.raw(number, args) {
            Ok(Answer::Return(value)) => value,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn fails(&mut self, number: i64, args: &[u64]) -> i32 {
        self.raw(number, args).expect_err("it must fail")
    }

    #[track_caller]
    fn waits(&mut self, number: i64, args: &[u64]) -> WaitSet {
        match self.raw(number, args) {
            Ok(Answer::Block(wait)) => wait,
            other => panic!("{other:?}"),
        }
    }

    fn text(&mut self, text: &str) -> u64 {
        self.text_at(BASE, text)
    }

    fn text_at(&mut self, at: u64, text: &str) -> u64 {
        let bytes = [text.as_bytes(), &[0]].concat();
        self.memory.write(at, &bytes).unwrap();
        at
    }

    #[track_caller]
    fn open(&mut self, path: &Path, flags: i32) -> i64 {
        let path = self.text(path.to_str().unwrap());
        self.ok(libc::SYS_openat, &[HERE, path, flags as u64, 0o644])
    }

    #[track_caller]
    fn write(&mut self, fd: i64, bytes: &[u8]) -> i64 {
        self.memory.write(BUFFER, bytes).unwrap();
        self.ok(libc::SYS_write, &[fd as u64, BUFFER, bytes.len() as u64])
    }

    #[track_caller]
    fn read(&mut self, fd: i64, len: u64) -> Vec<u8> {
        let count = self.ok(libc::SYS_read, &[fd as u64, BUFFER, len]);
        self.memory.read_bytes(BUFFER, count as u64).unwrap()
    }

    fn words(&mut self, at: u64, words: &[u32]) {
        for (index, word) in words.iter().enumerate() {
            self.memory.write_u32(at + 4 * index as u64, *word).unwrap();
        }
    }

    /// `(fd, fd)` of a call that makes two.
    fn pair(&self, at: u64) -> (i64, i64) {
        let one = |at| i64::from(self.memory.read_u32(at).unwrap());
        (one(at), one(at + 4))
    }

    fn observe(&mut self, number: i64, args: &[u64], result: i64) {
        let mut memory = Kept(self.memory.clone());
        let mut env = Env {
            memory: &mut memory,
            now: self.now,
            realtime: 0,
            random: &mut SplitMix::new(1),
        };
        self.world.observe(&call(number, args), result, &mut env);
    }
}

fn call(number: i64, args: &[u64]) -> Call {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    Call {
        number: number as u64,
        args: all,
        deadline: None,
        progress: 0,
        timed_out: false,
    }
}

/// A real folder with one file, `data`, that must never change.
struct Decoy(PathBuf);

const DATA: &[u8] = b"the real content";

impl Decoy {
    fn new(name: &str) -> Decoy {
        let path =
            std::env::temp_dir().join(format!("verdict-world-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("data"), DATA).unwrap();
        Decoy(path)
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    #[track_caller]
    fn expect_untouched(&self) {
        let names: Vec<_> = std::fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["data"]);
        assert_eq!(std::fs::read(self.data()).unwrap(), DATA);
    }
}

impl Drop for Decoy {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn changes_are_seen_inside_and_not_outside() {
    let decoy = Decoy::new("changes");
    let mut guest = Guest::new(Input::EndOfFile);
    let fd = guest.open(&decoy.data(), libc::O_RDWR);
    assert_eq!(guest.read(fd, 8), &DATA[..8]);
    guest.write(fd, b"changed");
    let other = guest.open(&decoy.data(), libc::O_RDONLY);
    assert_eq!(guest.read(other, 100), b"the realchangedt");
    let new = guest.open(
        &decoy.0.join("new"),
        libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY,
    );
    guest.write(new, b"x");
    let path = guest.text(decoy.data().to_str().unwrap());
    assert_eq!(guest.ok(libc::SYS_unlink, &[path]), 0);
    assert_eq!(
        guest.fails(libc::SYS_openat, &[HERE, path, 0, 0]),
        libc::ENOENT
    );
    // What was open stays.
    assert_eq!(guest.ok(libc::SYS_lseek, &[fd as u64, 0, 0]), 0);
    assert_eq!(guest.read(fd, 3), b"the");
    decoy.expect_untouched();
}

#[test]
fn a_copy_of_the_world_goes_its_own_way() {
    let decoy = Decoy::new("copy");
    let mut one = Guest::new(Input::EndOfFile);
    let fd = one.open(&decoy.data(), libc::O_RDWR);
    let mut other = one.clone();
    one.write(fd, b"ONE");
    other.write(fd, b"OTHER");
    for (guest, start) in [(&mut one, "ONE real"), (&mut other, "OTHEReal")] {
        guest.ok(libc::SYS_lseek, &[fd as u64, 0, 0]);
        assert_eq!(guest.read(fd, 8), start.as_bytes());
    }
}

#[test]
fn names_move_and_lists_are_sorted() {
    let decoy = Decoy::new("names");
    let mut guest = Guest::new(Input::EndOfFile);
    for name in ["zeta", "alpha"] {
        let path = guest.text(decoy.0.join(name).to_str().unwrap());
        assert_eq!(guest.ok(libc::SYS_mkdir, &[path, 0o755]), 0);
    }
    let from = guest.text(decoy.data().to_str().unwrap());
    let to = guest.text_at(BASE + 0x800, decoy.0.join("alpha/moved").to_str().unwrap());
    assert_eq!(guest.ok(libc::SYS_rename, &[from, to]), 0);
    let alpha = guest.text(decoy.0.join("alpha").to_str().unwrap());
    assert_eq!(guest.fails(libc::SYS_rmdir, &[alpha]), libc::ENOTEMPTY);
    let moved = guest.open(&decoy.0.join("alpha/moved"), libc::O_RDONLY);
    assert_eq!(guest.read(moved, 100), DATA);
    let folder = guest.open(&decoy.0, libc::O_RDONLY | libc::O_DIRECTORY);
    let len = guest.ok(libc::SYS_getdents64, &[folder as u64, BUFFER, 4096]) as u64;
    let bytes = guest.memory.read_bytes(BUFFER, len).unwrap();
    let mut names = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let entry = usize::from(u16::from_le_bytes([bytes[at + 16], bytes[at + 17]]));
        let name = bytes[at + 19..at + entry].split(|byte| *byte == 0).next();
        names.push(String::from_utf8(name.unwrap().to_vec()).unwrap());
        at += entry;
    }
    assert_eq!(names, [".", "..", "alpha", "zeta"]);
    decoy.expect_untouched();
}

#[test]
fn descriptors_are_the_lowest_free_and_share_their_offset() {
    let decoy = Decoy::new("numbers");
    let mut guest = Guest::new(Input::EndOfFile);
    let fd = guest.open(&decoy.data(), libc::O_RDONLY);
    assert_eq!(fd, 3);
    assert_eq!(guest.ok(libc::SYS_dup, &[3]), 4);
    assert_eq!(guest.read(3, 4), b"the ");
    assert_eq!(guest.read(4, 4), b"real");
    assert_eq!(guest.ok(libc::SYS_dup2, &[4, 10]), 10);
    guest.ok(libc::SYS_close, &[3]);
    assert_eq!(guest.open(&decoy.data(), libc::O_RDONLY), 3);
    assert_eq!(
        guest.ok(libc::SYS_close_range, &[4, u64::from(u32::MAX), 0]),
        0
    );
    assert_eq!(guest.fails(libc::SYS_read, &[10, BUFFER, 1]), libc::EBADF);
}

#[test]
fn a_full_pipe_makes_the_writer_wait_and_closing_it_ends_the_reader() {
    let mut guest = Guest::new(Input::EndOfFile);
    guest.ok(libc::SYS_pipe2, &[BASE, 0]);
    let (reader, writer) = guest.pair(BASE);
    let wait = guest.waits(libc::SYS_read, &[reader as u64, BUFFER, 10]);
    assert!(!guest.world.ready(&wait.polls));
    let full = guest.waits(libc::SYS_write, &[writer as u64, BUFFER, 70_000]);
    assert_eq!(full.progress, 65_536);
    assert!(guest.world.ready(&wait.polls));
    assert!(!guest.world.ready(&full.polls));
    guest.ok(libc::SYS_read, &[reader as u64, BUFFER, 65_536]);
    assert!(guest.world.ready(&full.polls));
    let rest = Call {
        progress: full.progress,
        ..call(libc::SYS_write, &[writer as u64, BUFFER, 70_000])
    };
    assert_eq!(guest.reply(&rest), Ok(Answer::Return(70_000)));
    assert_eq!(guest.read(reader, 10_000).len(), 70_000 - 65_536);
    guest.ok(libc::SYS_close, &[writer as u64]);
    assert_eq!(guest.read(reader, 10), b"");
    guest.ok(libc::SYS_pipe2, &[BASE, 0]);
    let (reader, writer) = guest.pair(BASE);
    guest.ok(libc::SYS_close, &[reader as u64]);
    let broken = guest.raw(libc::SYS_write, &[writer as u64, BUFFER, 1]);
    assert_eq!(broken, Ok(Answer::BrokenPipe));
}

fn loopback(guest: &mut Guest, at: u64, port: u16) {
    let mut address = [0; 16];
    address[0] = libc::AF_INET as u8;
    address[2..4].copy_from_slice(&port.to_be_bytes());
    address[4..8].copy_from_slice(&[127, 0, 0, 1]);
    guest.memory.write(at, &address).unwrap();
}

#[test]
fn a_connection_over_loopback_carries_bytes_both_ways_and_ends() {
    let mut guest = Guest::new(Input::EndOfFile);
    let stream = [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0];
    let server = guest.ok(libc::SYS_socket, &stream) as u64;
    loopback(&mut guest, BASE, 8080);
    guest.ok(libc::SYS_bind, &[server, BASE, 16]);
    guest.ok(libc::SYS_listen, &[server, 5]);
    let wait = guest.waits(libc::SYS_accept, &[server, 0, 0]);
    let client = guest.ok(libc::SYS_socket, &stream) as u64;
    guest.ok(libc::SYS_connect, &[client, BASE, 16]);
    assert!(guest.world.ready(&wait.polls));
    let accepted = guest.ok(libc::SYS_accept, &[server, 0, 0]);
    guest.write(client as i64, b"question");
    assert_eq!(guest.read(accepted, 100), b"question");
    guest.write(accepted, b"answer");
    guest.ok(libc::SYS_shutdown, &[accepted as u64, libc::SHUT_WR as u64]);
    assert_eq!(guest.read(client as i64, 3), b"ans");
    assert_eq!(guest.read(client as i64, 100), b"wer");
    assert_eq!(guest.read(client as i64, 100), b"");
    loopback(&mut guest, BASE, 8081);
    let other = guest.ok(libc::SYS_socket, &stream) as u64;
    assert_eq!(
        guest.fails(libc::SYS_connect, &[other, BASE, 16]),
        libc::ECONNREFUSED
    );
    guest.memory.write(BASE + 4, &[93, 184, 216, 34]).unwrap();
    assert_eq!(
        guest.fails(libc::SYS_connect, &[other, BASE, 16]),
        libc::ENETUNREACH
    );
    assert_eq!(guest.world.effects().1, 1);
}

#[test]
fn descriptors_travel_through_a_unix_socket() {
    let decoy = Decoy::new("rights");
    let mut guest = Guest::new(Input::EndOfFile);
    guest.ok(
        libc::SYS_socketpair,
        &[libc::AF_UNIX as u64, libc::SOCK_STREAM as u64, 0, BASE],
    );
    let (one, other) = guest.pair(BASE);
    let file = guest.open(&decoy.data(), libc::O_RDONLY);
    let (header, vector, control) = (BASE + 0x1000, BASE + 0x1100, BASE + 0x1200);
    guest.memory.write_u64(header + 16, vector).unwrap();
    guest.memory.write_u64(header + 24, 1).unwrap();
    guest.memory.write_u64(vector, BUFFER).unwrap();
    guest.memory.write_u64(vector + 8, 1).unwrap();
    guest.memory.write_u64(header + 32, control).unwrap();
    guest.memory.write_u64(header + 40, 24).unwrap();
    guest.memory.write_u64(control, 20).unwrap();
    guest.words(
        control + 8,
        &[
            libc::SOL_SOCKET as u32,
            libc::SCM_RIGHTS as u32,
            file as u32,
        ],
    );
    assert_eq!(guest.ok(libc::SYS_sendmsg, &[one as u64, header, 0]), 1);
    guest.ok(libc::SYS_close, &[file as u64]);
    guest.words(control, &[0; 6]);
    assert_eq!(guest.ok(libc::SYS_recvmsg, &[other as u64, header, 0]), 1);
    let arrived = i64::from(guest.memory.read_u32(control + 16).unwrap());
    assert_eq!(guest.read(arrived, 100), DATA);
}

#[test]
fn an_edge_is_told_once_and_a_level_as_long_as_it_lasts() {
    let mut guest = Guest::new(Input::EndOfFile);
    for (mode, again) in [(0, 1), (libc::EPOLLET as u32, 0)] {
        let set = guest.ok(libc::SYS_epoll_create1, &[0]) as u64;
        let event = guest.ok(libc::SYS_eventfd2, &[0, 0]);
        guest.words(BASE, &[libc::EPOLLIN as u32 | mode, 77, 0]);
        guest.ok(
            libc::SYS_epoll_ctl,
            &[set, libc::EPOLL_CTL_ADD as u64, event as u64, BASE],
        );
        let look = [set, BUFFER, 8, 0];
        assert_eq!(guest.ok(libc::SYS_epoll_wait, &look), 0);
        guest.write(event, &3u64.to_le_bytes());
        assert_eq!(guest.ok(libc::SYS_epoll_wait, &look), 1);
        assert_eq!(guest.memory.read_u64(BUFFER + 4), Ok(77));
        assert_eq!(guest.ok(libc::SYS_epoll_wait, &look), again);
        guest.write(event, &1u64.to_le_bytes());
        assert_eq!(guest.ok(libc::SYS_epoll_wait, &look), 1);
        assert_eq!(guest.read(event, 8), 4u64.to_le_bytes());
        assert_eq!(guest.ok(libc::SYS_epoll_wait, &look), 0);
    }
}

#[test]
fn a_timer_counts_what_was_missed() {
    let mut guest = Guest::new(Input::EndOfFile);
    let timer = guest.ok(libc::SYS_timerfd_create, &[libc::CLOCK_MONOTONIC as u64, 0]);
    for (at, value) in [(0, 0), (8, 10), (16, 0), (24, 100)] {
        guest.memory.write_u64(BASE + at, value).unwrap();
    }
    guest.ok(libc::SYS_timerfd_settime, &[timer as u64, 0, BASE, 0]);
    let wait = guest.waits(libc::SYS_read, &[timer as u64, BUFFER, 8]);
    assert_eq!(guest.world.next_timer(), Some(100));
    guest.now = 125;
    guest.world.fire_timers(125);
    assert!(guest.world.ready(&wait.polls));
    assert_eq!(guest.read(timer, 8), 3u64.to_le_bytes());
}

#[test]
fn input_ends_or_stops_as_told() {
    for (after, end) in [
        (AfterInput::EndOfFile, Ok(Answer::Return(0))),
        (AfterInput::Stop, Ok(super::transfer::no_more_input())),
    ] {
        let mut guest = Guest::new(Input::Data {
            bytes: b"one two".to_vec(),
            after,
        });
        assert_eq!(guest.read(0, 4), b"one ");
        assert_eq!(guest.read(0, 100), b"two");
        assert_eq!(guest.raw(libc::SYS_read, &[0, BUFFER, 1]), end);
    }
}

#[test]
fn output_is_kept_in_order() {
    let mut guest = Guest::new(Input::EndOfFile);
    guest.write(1, b"out");
    guest.write(2, b"err");
    guest.write(1, b"more");
    let said: Vec<_> = guest
        .world
        .transcript()
        .said()
        .iter()
        .map(|said| (said.stream, said.bytes.as_slice()))
        .collect();
    assert_eq!(
        said,
        [
            (Stream::Output, b"out".as_slice()),
            (Stream::Error, b"err"),
            (Stream::Output, b"more")
        ]
    );
}

#[test]
fn locks_of_two_descriptions_exclude_each_other() {
    let decoy = Decoy::new("locks");
    let mut guest = Guest::new(Input::EndOfFile);
    let one = guest.open(&decoy.data(), libc::O_RDWR) as u64;
    let other = guest.open(&decoy.data(), libc::O_RDWR) as u64;
    let exclusive = (libc::LOCK_EX | libc::LOCK_NB) as u64;
    guest.ok(libc::SYS_flock, &[one, exclusive]);
    assert_eq!(
        guest.fails(libc::SYS_flock, &[other, exclusive]),
        libc::EAGAIN
    );
    guest.ok(libc::SYS_close, &[one]);
    guest.ok(libc::SYS_flock, &[other, exclusive]);
}

/// One step of a guest that uses descriptors and names without a plan.
fn random_call(random: &mut SplitMix, folder: &Path, guest: &mut Guest) -> Call {
    let names = ["data", "new", "sub", "sub/inner", "other"];
    let mut path = |at: u64, random: &mut SplitMix| {
        let name = names[random.below(names.len() as u64) as usize];
        guest.text_at(at, folder.join(name).to_str().unwrap())
    };
    let (first, second) = (path(BASE, random), path(BASE + 0x800, random));
    let fd = 3 + random.below(12);
    let len = random.below(300);
    let bytes: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
    guest.memory.write(BUFFER, &bytes).unwrap();
    let both = (libc::O_RDWR | libc::O_NONBLOCK) as u64;
    let create = both | libc::O_CREAT as u64;
    match random.below(22) {
        0..=2 => call(libc::SYS_openat, &[HERE, first, create, 0o644]),
        3 => call(
            libc::SYS_openat,
            &[HERE, first, create | libc::O_TRUNC as u64, 0o644],
        ),
        4 => call(
            libc::SYS_openat,
            &[HERE, first, both | libc::O_APPEND as u64, 0],
        ),
        5..=7 => call(libc::SYS_write, &[fd, BUFFER, len]),
        8..=10 => call(libc::SYS_read, &[fd, BUFFER, len]),
        11 => call(libc::SYS_pwrite64, &[fd, BUFFER, len, random.below(9000)]),
        12 => call(libc::SYS_lseek, &[fd, random.below(9000), 0]),
        13 => call(libc::SYS_ftruncate, &[fd, random.below(9000)]),
        14 => call(libc::SYS_close, &[fd]),
        15 => call(libc::SYS_dup2, &[fd, 3 + random.below(12)]),
        16 => call(libc::SYS_fcntl, &[fd, libc::F_DUPFD as u64, 5]),
        17 => call(libc::SYS_pipe2, &[BASE + 0x1000, libc::O_NONBLOCK as u64]),
        18 => {
            let kind = (libc::SOCK_STREAM | libc::SOCK_NONBLOCK) as u64;
            call(
                libc::SYS_socketpair,
                &[libc::AF_UNIX as u64, kind, 0, BASE + 0x1000],
            )
        }
        19 => call(libc::SYS_rename, &[first, second]),
        20 => call(libc::SYS_unlink, &[first]),
        _ => call(libc::SYS_mkdir, &[first, 0o755]),
    }
}

/// Everything that can be seen through descriptors and names.
fn look_around(guest: &mut Guest, folder: &Path) -> Vec<Reply> {
    let mut seen = Vec::new();
    for fd in 3..16 {
        seen.push(guest.raw(libc::SYS_fcntl, &[fd, libc::F_GETFL as u64]));
        seen.push(guest.raw(libc::SYS_lseek, &[fd, 0, libc::SEEK_CUR as u64]));
        let count = guest.raw(libc::SYS_pread64, &[fd, BUFFER, 10_000, 0]);
        let readable = match count {
            Err(libc::ESPIPE) => guest.raw(libc::SYS_read, &[fd, BUFFER, 100_000]),
            count => count,
        };
        if let Ok(Answer::Return(count)) = readable {
            let bytes = guest.memory.read_bytes(BUFFER, count as u64).unwrap();
            seen.extend(
                bytes
                    .iter()
                    .map(|byte| Ok(Answer::Return(i64::from(*byte)))),
            );
        }
        seen.push(readable);
    }
    for name in ["data", "new", "sub", "sub/inner", "other"] {
        let path = guest.text(folder.join(name).to_str().unwrap());
        seen.push(guest.raw(libc::SYS_stat, &[path, BUFFER]));
        seen.push(Ok(Answer::Return(
            guest.memory.read_u64(BUFFER + 48).unwrap() as i64,
        )));
    }
    seen
}

/// A world that only watches another one ends where that one does.
#[test]
fn a_world_that_observes_keeps_step_with_one_that_acts() {
    let decoy = Decoy::new("step");
    let (mut effective, mut total) = (0, 0);
    for seed in 0..80 {
        let random = &mut SplitMix::new(seed);
        let mut acts = Guest::new(Input::EndOfFile);
        let mut watches = Guest::new(Input::EndOfFile);
        for _ in 0..120 {
            let call = random_call(random, &decoy.0, &mut acts);
            total += 1;
            if let Ok(Answer::Return(result)) = acts.reply(&call) {
                effective += 1;
                watches.memory = acts.memory.clone();
                watches.observe(call.number as i64, &call.args, result);
            }
        }
        let seen = look_around(&mut acts, &decoy.0);
        assert_eq!(look_around(&mut watches, &decoy.0), seen, "seed {seed}");
    }
    assert!(
        effective * 3 > total,
        "{effective} of {total} calls did something"
    );
    decoy.expect_untouched();
}

/// Answers come from a recording made when the file said something else and a terminal was there; then the execution
/// goes on by itself.
#[test]
fn an_execution_that_leaves_its_recording_finds_what_the_recording_told() {
    let decoy = Decoy::new("observe");
    let mut guest = Guest::new(Input::EndOfFile);
    let path = guest.text(decoy.data().to_str().unwrap());
    guest.observe(libc::SYS_openat, &[HERE, path, libc::O_RDWR as u64, 0], 7);
    guest.memory.write(BUFFER, b"THE PAST").unwrap();
    guest.observe(libc::SYS_read, &[7, BUFFER, 8], 8);
    guest.memory.write(BUFFER, b"+new").unwrap();
    guest.observe(libc::SYS_write, &[7, BUFFER, 4], 4);
    guest.words(BASE, &[8, 9]);
    guest.observe(libc::SYS_pipe2, &[BASE, 0], 0);
    guest.memory.write(BUFFER, b"abcdef").unwrap();
    guest.observe(libc::SYS_write, &[9, BUFFER, 6], 6);
    guest.observe(libc::SYS_read, &[8, BUFFER, 100], 2);
    let terminal = guest.text("/no/such/terminal");
    guest.observe(
        libc::SYS_openat,
        &[HERE, terminal, libc::O_RDWR as u64, 0],
        12,
    );
    guest.observe(libc::SYS_dup2, &[12, 0], 0);

    assert_eq!(
        guest.ok(libc::SYS_lseek, &[7, 0, libc::SEEK_CUR as u64]),
        12
    );
    assert_eq!(guest.ok(libc::SYS_lseek, &[7, 0, 0]), 0);
    assert_eq!(guest.read(7, 100), b"THE PAST+newtent");
    assert_eq!(guest.read(8, 100), b"cdef");
    assert_eq!(guest.read(12, 100), b"");
    assert_eq!(guest.read(0, 100), b"");
    assert_eq!(guest.write(12, b"shown to nobody"), 15);
    assert_eq!(guest.open(&decoy.data(), libc::O_RDONLY), 3);
    decoy.expect_untouched();
}
