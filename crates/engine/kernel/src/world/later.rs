//! What a recording still knows when the execution leaves it: the input that came after that moment.
//!
//! A copy of the executor follows the recording to its end while its world keeps step, and writes down whatever comes
//! from outside ([`Arrived`]). The execution that leaves gets all of it ([`World::give`]): bytes in the order in which
//! they were read, connections in the order in which they were accepted, files as they were found. Everything is there
//! at once: nobody outside waits for an answer before the next request. Signals come when the guest waits and has had
//! all of that.
//!
//! What even the recording does not have is counted ([`World::beyond`]) and answered by the policy ([`AfterInput`]).
//! Datagrams from outside do not come again.

use super::output::{AfterInput, Input};
use super::table::{Description, DescriptionId, Object};
use super::tree::{Found, LastLink};
use super::{Env, World};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Something that came from outside after the moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Arrived {
    /// Standard input; no bytes are its end.
    Input(Vec<u8>),
    /// What a description gave whose other end is outside; no bytes are its end.
    Data {
        /// Its number.
        description: u32,
        /// What.
        bytes: Vec<u8>,
    },
    /// A connection that was accepted.
    Connection {
        /// The address that was listened at: descriptions made by another schedule have other numbers.
        listener: Vec<u8>,
        /// The number of the one that was made.
        description: u32,
        /// Who it is from, as the kernel writes it.
        address: Vec<u8>,
    },
    /// A file had these bytes, which the real one does not have any more.
    File {
        /// Where.
        path: Vec<u8>,
        /// Where in it.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// There was a file that is gone.
    Present(Vec<u8>),
    /// There was nothing, and now there is.
    Absent(Vec<u8>),
    /// A signal for the process, as the guest sees it.
    Signal(Vec<u8>),
}

/// What is still to come from outside, and what was asked for beyond that.
#[derive(Clone, Debug, Default)]
pub(super) struct Later {
    data: BTreeMap<DescriptionId, VecDeque<Vec<u8>>>,
    /// By the address that they come to.
    connections: BTreeMap<Vec<u8>, VecDeque<Connection>>,
    /// Descriptions whose end was seen.
    ended: BTreeSet<DescriptionId>,
    /// The end of standard input was seen.
    input_ended: bool,
    /// Signals that came then.
    signals: VecDeque<Vec<u8>>,
    /// How often they could have come but for input that the guest has not had.
    held_back: u32,
    beyond: u64,
}

/// A guest that has waited so often and still not had its input does not want it.
const HELD_BACK_MAX: u32 = 100;

#[derive(Clone, Debug, Default)]
struct Connection {
    address: Vec<u8>,
    data: VecDeque<Vec<u8>>,
}

impl World {
    /// Writes down from now on what comes from outside.
    pub fn listen(&mut self) {
        self.heard = Some(Vec::new());
    }

    /// What has come since [`World::listen`].
    pub fn heard(&mut self) -> Vec<Arrived> {
        self.heard.take().unwrap_or_default()
    }

    pub(super) fn hear(&mut self, arrived: impl FnOnce() -> Arrived) {
        if let Some(heard) = &mut self.heard {
            heard.push(arrived());
        }
    }

    /// How often the guest asked for input that is not there.
    pub fn beyond(&self) -> u64 {
        self.later.beyond
    }

    /// The end of standard input, or of a description, was seen.
    pub(super) fn saw_end(&mut self, description: Option<DescriptionId>) {
        match description {
            Some(id) => drop(self.later.ended.insert(id)),
            None => self.later.input_ended = true,
        }
    }

    /// What follows what there is.
    pub fn set_after_input(&mut self, after: AfterInput) {
        let bytes = match &mut self.input {
            Input::Data { bytes, .. } => bytes.split_off(self.input_used),
            Input::EndOfFile => Vec::new(),
        };
        self.input_used = 0;
        self.input = Input::Data { bytes, after };
    }

    /// Lets everything come that came then.
    pub fn give(&mut self, arrived: Vec<Arrived>, env: &mut Env) {
        // Connections that are not accepted yet, by the number they had then.
        let mut made: BTreeMap<u32, (Vec<u8>, usize)> = BTreeMap::new();
        let mut input = Vec::new();
        for event in arrived {
            match event {
                Arrived::Input(bytes) if bytes.is_empty() => self.later.input_ended = true,
                Arrived::Input(bytes) => input.extend(bytes),
                Arrived::Data { description, bytes } => match made.get(&description) {
                    Some((listener, index)) => {
                        if let Some(waiting) = self.later.connections.get_mut(listener) {
                            waiting[*index].data.push_back(bytes);
                        }
                    }
                    None => {
                        let data = self.later.data.entry(DescriptionId(description));
                        data.or_default().push_back(bytes);
                    }
                },
                Arrived::Connection {
                    listener,
                    description,
                    address,
                } => {
                    let waiting = self.later.connections.entry(listener.clone());
                    let waiting = waiting.or_default();
                    made.insert(description, (listener, waiting.len()));
                    waiting.push_back(Connection {
                        address,
                        ..Connection::default()
                    });
                }
                Arrived::File {
                    path,
                    offset,
                    bytes,
                } => self.restore_bytes(&path, offset, &bytes),
                Arrived::Present(path) => self.bring_back(&path, env),
                Arrived::Absent(path) => self.take_away(&path, env),
                Arrived::Signal(info) => self.later.signals.push_back(info),
            }
        }
        self.input = Input::Data {
            bytes: input,
            after: self.after_input(),
        };
        self.input_used = 0;
        let listening = self.table.descriptions.keys();
        let listening = listening.filter(|id| self.has_connection(**id));
        let readable: Vec<DescriptionId> =
            self.later.data.keys().chain(listening).copied().collect();
        for id in readable {
            if let Some(description) = self.table.descriptions.get_mut(&id) {
                description.edges.0 += 1;
            }
        }
    }

    /// A signal from outside has come.
    pub(crate) fn hear_signal(&mut self, info: &[u8]) {
        self.hear(|| Arrived::Signal(info.to_vec()));
    }

    /// The next signal that came then, once the guest waits and has had all that came before. A guest that waits for a
    /// `deadline` may still come to it.
    pub(crate) fn next_signal(&mut self, deadline: bool) -> Option<Vec<u8>> {
        if deadline && self.has_more_to_come() && self.later.held_back < HELD_BACK_MAX {
            self.later.held_back += u32::from(!self.later.signals.is_empty());
            return None;
        }
        self.later.signals.pop_front()
    }

    fn has_more_to_come(&self) -> bool {
        let open = |id: &DescriptionId| self.table.descriptions.contains_key(id);
        let data = |(id, data): (&DescriptionId, &VecDeque<Vec<u8>>)| !data.is_empty() && open(id);
        // Perhaps nobody listens for them yet.
        let waits = |waiting: &VecDeque<Connection>| !waiting.is_empty();
        self.later.data.iter().any(data) || self.later.connections.values().any(waits)
    }

    fn restore_bytes(&mut self, path: &[u8], offset: u64, bytes: &[u8]) {
        if let Ok(Found::Place(place)) = self.find(libc::AT_FDCWD, path, LastLink::Follow)
            && let Some(node) = place.node
        {
            // Only a regular file can be written; anything else was no file then either.
            let _ = self.tree.write(node, offset, bytes);
        }
    }

    /// A file that was there then and is not now; what is in it is learned from what was read.
    pub(super) fn bring_back(&mut self, path: &[u8], env: &Env) {
        if let Ok(Found::Place(place)) = self.find(libc::AT_FDCWD, path, LastLink::Follow)
            && place.node.is_none()
        {
            let node = self.new_file(env, 0o644);
            let _ = self.tree.name(&place, node, env.time());
        }
    }

    /// A name that was free then and is not now.
    pub(super) fn take_away(&mut self, path: &[u8], env: &Env) {
        if let Ok(Found::Place(place)) = self.find(libc::AT_FDCWD, path, LastLink::Keep)
            && place.node.is_some()
        {
            let _ = self.tree.unname(&place, env.time());
        }
    }

    /// Bytes of a description whose other end is outside; `None` where the execution is to stop.
    pub(super) fn read_outside(&mut self, id: DescriptionId, len: u64) -> Option<Vec<u8>> {
        if let Some(data) = self.later.data.get_mut(&id)
            && let Some(front) = data.front_mut()
        {
            let rest = front.split_off(front.len().min(len as usize));
            let taken = std::mem::replace(front, rest);
            if front.is_empty() {
                data.pop_front();
            }
            if taken.is_empty() && len > 0 {
                self.later.ended.insert(id);
            }
            return Some(taken);
        }
        if self.later.ended.contains(&id) {
            return Some(Vec::new());
        }
        self.later.beyond += 1;
        match self.after_input() {
            AfterInput::EndOfFile => Some(Vec::new()),
            AfterInput::Stop => None,
        }
    }

    /// Standard input is used up: what the guest gets is not known.
    pub(super) fn asked_beyond(&mut self) {
        if !self.later.input_ended {
            self.later.beyond += 1;
        }
    }

    /// True if reading the description gives something that came then.
    pub(super) fn has_outside(&self, id: DescriptionId) -> bool {
        self.later.ended.contains(&id)
            || self
                .later
                .data
                .get(&id)
                .is_some_and(|data| !data.is_empty())
    }

    /// True if a connection that came then waits to be accepted.
    pub(super) fn has_connection(&self, listener: DescriptionId) -> bool {
        if self.later.connections.is_empty() {
            return false;
        }
        let address = self.listens_at(listener);
        let waiting = address.and_then(|address| self.later.connections.get(&address));
        waiting.is_some_and(|waiting| !waiting.is_empty())
    }

    /// Accepts the next connection that came then: its descriptor and who it is from.
    pub(super) fn accept_outside(
        &mut self,
        listener: DescriptionId,
        flags: i32,
    ) -> Option<Result<(i32, Vec<u8>), i32>> {
        let address = self.listens_at(listener)?;
        let connection = self.later.connections.get_mut(&address)?.pop_front()?;
        let status = libc::O_RDWR | flags & libc::SOCK_NONBLOCK;
        let description = Description::new(Object::Outside, status, b"outside");
        let made = self.install(description, flags & libc::SOCK_CLOEXEC != 0);
        Some(made.and_then(|fd| {
            let id = self.table.id(fd)?;
            self.later.data.insert(id, connection.data);
            Ok((fd, connection.address))
        }))
    }
}

impl Arrived {
    /// All of them as bytes, for another process.
    pub fn to_bytes(all: &[Arrived]) -> Vec<u8> {
        let mut out = Vec::new();
        for arrived in all {
            let (tag, number, bytes): (u8, u64, [&[u8]; 2]) = match arrived {
                Arrived::Input(bytes) => (0, 0, [bytes, &[]]),
                Arrived::Data { description, bytes } => (1, u64::from(*description), [bytes, &[]]),
                Arrived::Connection {
                    listener,
                    description,
                    address,
                } => (2, u64::from(*description), [listener, address]),
                Arrived::File {
                    path,
                    offset,
                    bytes,
                } => (3, *offset, [path, bytes]),
                Arrived::Present(path) => (4, 0, [path, &[]]),
                Arrived::Absent(path) => (5, 0, [path, &[]]),
                Arrived::Signal(info) => (6, 0, [info, &[]]),
            };
            out.push(tag);
            out.extend_from_slice(&number.to_le_bytes());
            for part in bytes {
                out.extend_from_slice(&(part.len() as u64).to_le_bytes());
                out.extend_from_slice(part);
            }
        }
        out
    }

    /// What [`Arrived::to_bytes`] made; `None` if it did not.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Vec<Arrived>> {
        fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
            let (taken, rest) = bytes.split_at_checked(len)?;
            *bytes = rest;
            Some(taken)
        }
        fn number(bytes: &mut &[u8]) -> Option<u64> {
            Some(u64::from_le_bytes(take(bytes, 8)?.try_into().ok()?))
        }
        fn part(bytes: &mut &[u8]) -> Option<Vec<u8>> {
            let len = usize::try_from(number(bytes)?).ok()?;
            Some(take(bytes, len)?.to_vec())
        }
        let mut all = Vec::new();
        while let Some((tag, rest)) = bytes.split_first() {
            bytes = rest;
            let number = number(&mut bytes)?;
            let (first, second) = (part(&mut bytes)?, part(&mut bytes)?);
            all.push(match tag {
                0 => Arrived::Input(first),
                1 => Arrived::Data {
                    description: u32::try_from(number).ok()?,
                    bytes: first,
                },
                2 => Arrived::Connection {
                    listener: first,
                    description: u32::try_from(number).ok()?,
                    address: second,
                },
                3 => Arrived::File {
                    path: first,
                    offset: number,
                    bytes: second,
                },
                4 => Arrived::Present(first),
                5 => Arrived::Absent(first),
                6 => Arrived::Signal(first),
                _ => return None,
            });
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_travels_whole() {
        let all = vec![
            Arrived::Input(b"one".to_vec()),
            Arrived::Input(Vec::new()),
            Arrived::Data {
                description: 7,
                bytes: vec![0; 300],
            },
            Arrived::Connection {
                listener: b"here".to_vec(),
                description: 9,
                address: b"somebody".to_vec(),
            },
            Arrived::File {
                path: b"/a".to_vec(),
                offset: u64::MAX,
                bytes: b"x".to_vec(),
            },
            Arrived::Present(b"/b".to_vec()),
            Arrived::Absent(b"/c".to_vec()),
            Arrived::Signal(vec![15; 128]),
        ];
        let bytes = Arrived::to_bytes(&all);
        assert_eq!(Arrived::from_bytes(&bytes).unwrap(), all);
        for cut in 1..bytes.len() {
            let read = Arrived::from_bytes(&bytes[..cut]);
            assert!(read.is_none_or(|read| read.len() < all.len()), "{cut}");
        }
    }
}
