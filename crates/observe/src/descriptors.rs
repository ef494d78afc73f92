//! What threads tell each other through the kernel.
//!
//! Who reads from a pipe, a socket or an event descriptor comes after whoever wrote to it, and a descriptor's number is given
//! away again only after it was closed: servers keep what belongs to a connection under its number.

use rustc_hash::FxHashMap;
use verdict_events::{EventKind, SyncId};
use verdict_stream::SystemCall;

const READ: u64 = 0;
const WRITE: u64 = 1;
const OPEN: u64 = 2;
const CLOSE: u64 = 3;
const READV: u64 = 19;
const WRITEV: u64 = 20;
const PIPE: u64 = 22;
const DUP: u64 = 32;
const DUP2: u64 = 33;
const SENDFILE: u64 = 40;
const SOCKET: u64 = 41;
const ACCEPT: u64 = 43;
const SENDTO: u64 = 44;
const RECVFROM: u64 = 45;
const SENDMSG: u64 = 46;
const RECVMSG: u64 = 47;
const SHUTDOWN: u64 = 48;
const SOCKETPAIR: u64 = 53;
const FCNTL: u64 = 72;
const CREAT: u64 = 85;
const EPOLL_CREATE: u64 = 213;
const OPENAT: u64 = 257;
const TIMERFD_CREATE: u64 = 283;
const EVENTFD: u64 = 284;
const ACCEPT4: u64 = 288;
const SIGNALFD4: u64 = 289;
const EVENTFD2: u64 = 290;
const EPOLL_CREATE1: u64 = 291;
const DUP3: u64 = 292;
const PIPE2: u64 = 293;
const RECVMMSG: u64 = 299;
const SENDMMSG: u64 = 307;
const MEMFD_CREATE: u64 = 319;
const OPENAT2: u64 = 437;
const F_DUPFD: u64 = 0;
const F_DUPFD_CLOEXEC: u64 = 1030;

/// No guest has addresses like these.
const NUMBERS: u64 = 0xfd00_0000_0000_0000;
const OBJECTS: u64 = 0xfe00_0000_0000_0000;

/// Which descriptors lead to the same.
#[derive(Default, Debug)]
pub(crate) struct Descriptors {
    objects: FxHashMap<u64, u64>,
    made: u64,
}

impl Descriptors {
    /// How a call that is over orders threads.
    pub(crate) fn orders(&mut self, call: &SystemCall) -> Vec<EventKind> {
        let Ok(result) = u64::try_from(call.result) else {
            return Vec::new();
        };
        let fd = call.args[0] & 0xffff_ffff;
        match call.number {
            READ | READV | RECVFROM | RECVMSG | RECVMMSG => vec![EventKind::Wait(self.object(fd))],
            WRITE | WRITEV | SENDTO | SENDMSG | SENDMMSG | SENDFILE | SHUTDOWN => {
                vec![EventKind::Notify(self.object(fd))]
            }
            CLOSE => self.close(fd),
            DUP => self.copied(fd, result),
            // What was there under the number is closed at once.
            DUP2 | DUP3 if result != fd => {
                let mut orders = self.close(result);
                orders.extend(self.copied(fd, result));
                orders
            }
            FCNTL if matches!(call.args[1], F_DUPFD | F_DUPFD_CLOEXEC) => self.copied(fd, result),
            PIPE | PIPE2 | SOCKETPAIR => {
                let [.., first, second] = call.args;
                let mut orders = self.opened(first);
                orders.extend(self.copied(first, second));
                orders
            }
            OPEN | OPENAT | OPENAT2 | CREAT | SOCKET | ACCEPT | ACCEPT4 | EVENTFD | EVENTFD2
            | EPOLL_CREATE | EPOLL_CREATE1 | TIMERFD_CREATE | SIGNALFD4 | MEMFD_CREATE => {
                self.opened(result)
            }
            _ => Vec::new(),
        }
    }

    fn object(&self, fd: u64) -> SyncId {
        // One that came with the program has its number.
        SyncId(OBJECTS + self.objects.get(&fd).copied().unwrap_or(fd))
    }

    fn close(&mut self, fd: u64) -> Vec<EventKind> {
        // Whoever reads at the other end may see the end.
        let told = EventKind::Notify(self.object(fd));
        self.objects.remove(&fd);
        vec![told, EventKind::Notify(SyncId(NUMBERS + fd))]
    }

    fn opened(&mut self, fd: u64) -> Vec<EventKind> {
        self.made += 1;
        self.objects.insert(fd, (1 << 32) + self.made);
        vec![EventKind::Wait(SyncId(NUMBERS + fd))]
    }

    fn copied(&mut self, from: u64, to: u64) -> Vec<EventKind> {
        let object = self.objects.get(&from).copied().unwrap_or(from);
        self.objects.insert(to, object);
        vec![EventKind::Wait(SyncId(NUMBERS + to))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u64, args: &[u64], result: i64) -> SystemCall {
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        SystemCall {
            thread: 0,
            pc: 0,
            number,
            args: all,
            result,
            memory: Vec::new(),
        }
    }

    #[test]
    fn both_ends_of_a_pipe_are_one() {
        let mut descriptors = Descriptors::default();
        descriptors.orders(&call(PIPE2, &[0x1000, 0, 0, 0, 5, 6], 0));
        let written = descriptors.orders(&call(WRITE, &[6, 0, 1], 1));
        let read = descriptors.orders(&call(READ, &[5, 0, 1], 1));
        let [EventKind::Notify(one)] = written[..] else {
            panic!("{written:?}")
        };
        assert_eq!(read, [EventKind::Wait(one)]);
        descriptors.orders(&call(DUP2, &[5, 9], 9));
        assert_eq!(
            descriptors.orders(&call(READ, &[9, 0, 1], 1)),
            [EventKind::Wait(one)]
        );
    }

    #[test]
    fn a_number_is_given_away_after_it_was_closed() {
        let mut descriptors = Descriptors::default();
        descriptors.orders(&call(ACCEPT4, &[3], 7));
        let before = descriptors.orders(&call(WRITE, &[7], 1));
        let closed = descriptors.orders(&call(CLOSE, &[7], 0));
        let accepted = descriptors.orders(&call(ACCEPT4, &[3], 7));
        let Some(EventKind::Notify(number)) = closed.last() else {
            panic!("{closed:?}")
        };
        assert_eq!(accepted, [EventKind::Wait(*number)]);
        let after = descriptors.orders(&call(WRITE, &[7], 1));
        assert_ne!(before, after, "another connection");
    }

    #[test]
    fn what_failed_orders_nothing() {
        let mut descriptors = Descriptors::default();
        assert_eq!(descriptors.orders(&call(READ, &[5, 0, 1], -11)), []);
        assert_eq!(descriptors.orders(&call(ACCEPT4, &[5], -11)), []);
    }
}
