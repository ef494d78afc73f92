//! Direct branches from block to block: each leads to its own stub until it is followed, and from then on straight to its
//! target's block, where it can without charging anything (see [`Carried`]).

use crate::blocks::{BlockId, CodeCache, HostOffset};
use verdict_translate::{Block, Carried, Chaining, Shortcut, Way};

pub(crate) struct LinkEntry {
    pub(crate) target: u64,
    /// Of the rel32.
    patch: HostOffset,
    stub: HostOffset,
    /// The block it leaves.
    from: BlockId,
    /// Instructions of the path before it.
    retired: u16,
    /// What its target would have to carry.
    carries: Carried,
    /// Where the code is that changes if it does not charge, and that code while it charges.
    shortcut: (HostOffset, [u8; SHORTCUT_LEN]),
    /// For a way off the block's path: the branch, and the way that the path follows.
    leaves: Option<(u64, Way)>,
    state: State,
    /// How often the budget was used up just there: a sample of how often it is followed.
    seen: u32,
}

/// The opcode of a jump, and a rel32; or a rel32 with the byte before it.
const SHORTCUT_LEN: usize = 5;
const JUMP: u8 = 0xe9;
/// How often a link has to be seen before its target is made for it.
const SEEN_MIN: u32 = 2;
/// How often a link has to be seen before the path that it leaves is led that way.
const TURN_MIN: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Leads to its stub.
    Unlinked,
    /// Charges, and leads to its target's entry unless the budget is used up: then it comes back all the same.
    Charges,
    /// Leads to its target's body.
    Carries,
}

impl CodeCache {
    /// A block was placed at `host`.
    pub(crate) fn add_links(&mut self, from: BlockId, host: u64, block: &Block) {
        self.links.extend(block.links.iter().map(|link| {
            let at = match link.shortcut {
                Shortcut::Branch(rel32) => rel32 - 1,
                Shortcut::Charge(charge) => charge,
            };
            let code = block.code[at as usize..][..SHORTCUT_LEN].try_into();
            LinkEntry {
                target: link.target,
                patch: HostOffset::new(host + u64::from(link.patch)),
                stub: HostOffset::new(link.stub),
                from,
                retired: link.retired,
                carries: link.carries,
                shortcut: (
                    HostOffset::new(host + u64::from(at)),
                    code.expect("so many bytes"),
                ),
                leaves: link.leaves,
                state: State::Unlinked,
                seen: 0,
            }
        }));
    }

    /// Where a link goes.
    pub fn link_target(&self, link: u32) -> Option<u64> {
        self.links.get(link as usize).map(|link| link.target)
    }

    /// What a new block would have to carry so that a link need not charge; nothing if that is too much.
    pub(crate) fn carried_over(&self, link: u32) -> Carried {
        let carries = self.links[link as usize].carries.if_possible();
        carries.unwrap_or(Carried::NOTHING)
    }

    /// A link is used for the first time. If it leaves its block's path before the path has ever been followed further,
    /// the path was a bad guess: the block is forgotten, to be made again along the way that was really taken. Returns
    /// whether the link still exists.
    pub fn first_use(&mut self, link: u32) -> bool {
        let LinkEntry {
            from,
            leaves,
            retired,
            ..
        } = self.links[link as usize];
        let entry = &mut self.entries[from.0 as usize];
        let further = entry.furthest > retired;
        entry.furthest = entry.furthest.max(retired);
        match leaves {
            Some((branch, followed))
                if !further && entry.live && !self.ways.contains_key(&branch) =>
            {
                self.ways.insert(branch, followed.flipped());
                self.drop_block(from);
                false
            }
            _ => true,
        }
    }

    /// Makes a link jump straight to its block. A block to which a link leads back is rather made again: whoever goes round
    /// would have to be credited each time what it carries.
    pub fn link(&mut self, link: u32, block: BlockId) {
        let LinkEntry {
            from,
            carries,
            state,
            shortcut: (at, code),
            patch,
            ..
        } = self.links[link as usize];
        match state {
            State::Unlinked => {}
            State::Charges => return self.seen(link, block),
            State::Carries => return,
        }
        let target = &self.entries[block.0 as usize];
        let state = if self.chaining == Chaining::Carried && target.carried == carries {
            State::Carries
        } else {
            State::Charges
        };
        let back = target.pc <= self.entries[from.0 as usize].pc;
        if state == State::Charges && back && target.carried != Carried::NOTHING {
            let pc = target.pc;
            self.drop_with_followers(block);
            self.carried.insert(pc, Carried::NOTHING);
            self.loops.insert(pc);
            return;
        }
        let (entry, body) = (target.entry, target.body);
        self.entries[block.0 as usize].incoming.push(link);
        self.links[link as usize].state = state;
        match state {
            State::Carries => self.write_shortcut(at.address(), code[0], body.address()),
            _ => self.patch_jump(patch.address(), entry.address()),
        }
    }

    /// A link that charges is followed once more. If that happens more often than to the one for which its target carries something,
    /// the target is made again so that this one need not charge.
    fn seen(&mut self, link: u32, block: BlockId) {
        let entry = &mut self.links[link as usize];
        entry.seen = entry.seen.saturating_add(1);
        if self.turns(link) {
            return;
        }
        let entry = &self.links[link as usize];
        let (seen, from, carries) = (entry.seen, entry.from, entry.carries.if_possible());
        let pc = self.entries[block.0 as usize].pc;
        let back = pc <= self.entries[from.0 as usize].pc;
        let Some(carries) = carries.filter(|_| self.chaining == Chaining::Carried && !back) else {
            return;
        };
        let before = self.preferred.get(&pc).copied().unwrap_or(0);
        if self.loops.contains(&pc) || seen < 2 * before + SEEN_MIN {
            return;
        }
        self.preferred.insert(pc, seen);
        self.busy.insert(pc);
        self.drop_with_followers(block);
        self.carried.insert(pc, carries);
    }

    /// Whether a link that leaves its block's path is followed more often than the path goes on: then the block is forgotten, to be made
    /// again along that way.
    fn turns(&mut self, link: u32) -> bool {
        let LinkEntry {
            from,
            target,
            retired,
            seen,
            leaves: Some((branch, followed)),
            ..
        } = self.links[link as usize]
        else {
            return false;
        };
        let entry = &self.entries[from.0 as usize];
        let mut further = 0;
        for other in entry.links.clone().filter(|other| *other != link) {
            let other = &self.links[other as usize];
            if other.retired < retired {
                continue;
            }
            // How often those are followed that do not charge is not known; but a loop that is seen to go on does so.
            if other.state == State::Carries && target != entry.pc {
                return false;
            }
            further += other.seen;
        }
        let before = self.turned.get(&branch).copied().unwrap_or(0);
        if !entry.live || seen < 2 * (before + further) + TURN_MIN {
            return false;
        }
        self.busy.insert(entry.pc);
        self.turned.insert(branch, seen);
        self.ways.insert(branch, followed.flipped());
        self.drop_with_followers(from);
        true
    }

    /// Forgets a block, and those that carry what it carries: it is to carry something else.
    fn drop_with_followers(&mut self, block: BlockId) {
        let mut left = vec![block];
        while let Some(block) = left.pop() {
            if !self.is_live(block) {
                continue;
            }
            for link in self.entries[block.0 as usize].links.clone() {
                let link = &self.links[link as usize];
                if link.state == State::Carries {
                    left.extend(self.lookup(link.target));
                }
            }
            self.drop_block(block);
            self.carried.remove(&self.entries[block.0 as usize].pc);
        }
    }

    /// A jump in place of a charge, or the branch that leads to the charge led elsewhere.
    fn write_shortcut(&mut self, at: u64, first: u8, to: u64) {
        let distance = to.wrapping_sub(at + SHORTCUT_LEN as u64) as i32;
        self.memory.write(at + 1, &distance.to_le_bytes());
        if !is_branch(first) {
            self.memory.write(at, &[JUMP]);
        }
    }

    /// A link leads to its stub again.
    pub(crate) fn unlink(&mut self, link: u32) {
        let entry = &mut self.links[link as usize];
        let LinkEntry {
            patch,
            stub,
            shortcut: (at, code),
            state,
            ..
        } = *entry;
        entry.state = State::Unlinked;
        match state {
            State::Unlinked => {}
            State::Charges => self.patch_jump(patch.address(), stub.address()),
            State::Carries => self.memory.write(at.address(), &code),
        }
    }

    pub(crate) fn patch_jump(&mut self, patch: u64, to: u64) {
        let distance = to.wrapping_sub(patch + 4) as i64 as i32;
        self.memory.write(patch, &distance.to_le_bytes());
    }
}

/// Whether the byte before a rel32 is the end of a branch's opcode, and not a charge's first.
fn is_branch(byte: u8) -> bool {
    byte == JUMP || byte & 0xf0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{Entrance, GuestCode};
    use std::sync::Mutex;
    use verdict_translate::Instrumentation;

    /// A cache lies at fixed addresses: there is one at a time.
    static ONE: Mutex<()> = Mutex::new(());

    const PC: u64 = 0x1000_0000;
    /// test eax, eax; je to the jump at the end; inc eax; syscall; and there: inc ecx; test ecx, ecx; jne to `inc eax`; syscall
    const CODE: [u8; 18] = [
        0x85, 0xc0, 0x74, 4, 0xff, 0xc0, 0x0f, 0x05, 0xff, 0xc1, 0x85, 0xc9, 0x75, 0xf6, 0x0f,
        0x05, 0x0f, 0x05,
    ];
    const SECOND: u64 = PC + 8;

    fn fetch(address: u64, buffer: &mut [u8]) -> usize {
        let at = address.checked_sub(PC).map(|at| at as usize);
        let rest = at.and_then(|at| CODE.get(at..)).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        len
    }

    fn insert(cache: &mut CodeCache, pc: u64, entrance: Entrance) -> BlockId {
        let guest = GuestCode {
            fetch: &fetch,
            read_word: &|_| None,
            constant_word: &|_| None,
            registers: &[0; 16],
        };
        cache
            .insert(pc, entrance, &guest)
            .expect("there is code there")
    }

    /// A cache with the first block, and the number of its link to the second.
    fn cache() -> (CodeCache, BlockId, u32) {
        let mut cache = CodeCache::new(Instrumentation::None, 0).expect("the addresses are free");
        let first = insert(&mut cache, PC, Entrance::Direct);
        let links = cache.entries[first.0 as usize].links.clone();
        let to_second = |link: &u32| cache.link_target(*link) == Some(SECOND);
        let link = links.clone().find(to_second).expect("it leads there");
        (cache, first, link)
    }

    fn state(cache: &CodeCache, link: u32) -> State {
        cache.links[link as usize].state
    }

    #[test]
    fn a_block_that_is_made_for_a_link_carries_what_the_link_does_not_charge() {
        let _one = ONE.lock();
        let (mut cache, _, link) = cache();
        let second = insert(&mut cache, SECOND, Entrance::Link(link));
        let carried = cache.entries[second.0 as usize].carried;
        assert_eq!(carried.instructions, 2);
        cache.link(link, second);
        assert_eq!(state(&cache, link), State::Carries);
        cache.drop_block(second);
        assert_eq!(state(&cache, link), State::Unlinked);
        // It is made again as it was.
        let again = insert(&mut cache, SECOND, Entrance::Direct);
        assert_eq!(cache.entries[again.0 as usize].carried, carried);
    }

    #[test]
    fn where_every_link_charges_nothing_is_carried() {
        let _one = ONE.lock();
        let (mut cache, ..) = cache();
        cache.charge_every_link();
        let first = insert(&mut cache, PC, Entrance::Direct);
        let link = cache.entries[first.0 as usize].links.start;
        let target = cache.link_target(link).expect("it has a link");
        let second = insert(&mut cache, target, Entrance::Link(link));
        assert_eq!(cache.entries[second.0 as usize].carried, Carried::NOTHING);
        cache.link(link, second);
        assert_eq!(state(&cache, link), State::Charges);
    }

    #[test]
    fn a_block_is_made_again_for_a_link_that_is_seen_often() {
        let _one = ONE.lock();
        let (mut cache, _, link) = cache();
        let second = insert(&mut cache, SECOND, Entrance::Direct);
        cache.link(link, second);
        assert_eq!(state(&cache, link), State::Charges);
        for _ in 0..SEEN_MIN {
            assert!(cache.is_live(second));
            cache.link(link, second);
        }
        assert!(!cache.is_live(second));
        let again = insert(&mut cache, SECOND, Entrance::Direct);
        cache.link(link, again);
        assert_eq!(state(&cache, link), State::Carries);
    }

    #[test]
    fn a_path_is_led_along_the_way_that_is_seen_most() {
        let _one = ONE.lock();
        let (mut cache, first, link) = cache();
        // Nothing else that it could be made for.
        cache.loops.insert(SECOND);
        let second = insert(&mut cache, SECOND, Entrance::Direct);
        cache.link(link, second);
        for _ in 0..TURN_MIN {
            assert!(cache.is_live(first));
            cache.link(link, second);
        }
        assert!(!cache.is_live(first));
        assert_eq!(cache.ways.get(&(PC + 2)), Some(&Way::Taken));
    }
}
