//! Random blocks, gone through by their shapes and step by step: threads must end up the same. The survey must miss no suspect; of
//! a look at some bytes, all events must be the same.

use crate::blocks::Known;
use crate::calls::Frame;
use crate::code::Code;
use crate::log::{Word, number};
use crate::looks::Looks;
use crate::modules::Owner;
use crate::observer::Observer;
use verdict_detect::{SuspectBytes, Suspects};
use verdict_stream::{BlockInfo, Record};
use verdict_translate::{AccessKind, AddressWord, ControlMark, ControlStep, LoggedAccess, Segment};

const THREADS: u64 = 3;
const BLOCKS: u64 = 12;
/// Addresses of data, of which there are few so that threads meet.
const DATA: u64 = 0x7000_0000_0000;
const FS_BASE: u64 = 0x6000_0000_0000;
/// Functions that mean something: where they begin.
const FUNCTIONS: [(u64, &str); 3] = [
    (0x40_0000, "pthread_mutex_lock"),
    (0x41_0000, "pthread_mutex_unlock"),
    (0x42_0000, "malloc"),
];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// What blocks may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum With {
    PlainAccesses,
    /// Also those of loops that go on by constant steps.
    Loops,
    /// Also atomic ones.
    Atomics,
}

fn block(random: &mut Random, id: u64, with: With) -> (BlockInfo, Vec<Code>) {
    let noted = FUNCTIONS.get(id as usize);
    let start = noted.map_or(0x1000 * (id + 1), |(address, _)| *address);
    let mut info = BlockInfo {
        words: vec![1],
        ..BlockInfo::default()
    };
    let mut codes = Vec::new();
    let mut words = 1;
    let only_owner = (random.below(2) == 0).then_some(Owner::Program);
    for instruction in 0..1 + random.below(6) as u16 {
        // Blocks go on beyond calls.
        let entered = match instruction {
            0 => noted,
            _ if random.below(10) == 0 => Some(&FUNCTIONS[random.below(3) as usize]),
            _ => None,
        };
        let next = start + 4 * u64::from(instruction);
        info.pcs.push(entered.map_or(next, |(address, _)| *address));
        let owners = [
            Owner::Program,
            Owner::Program,
            Owner::Library,
            Owner::Loader,
        ];
        codes.push(Code {
            owner: only_owner.unwrap_or_else(|| random.pick(&owners)),
            own_source: true,
            atomic: with == With::Atomics && random.below(20) == 0,
            order: None,
            stub: random.below(10) == 0,
        });
        if entered.is_some() {
            let step = ControlStep::Entry {
                arguments: [words - 1, words, words, words, words],
                stack_pointer: words + 1,
                return_address: words + 2,
            };
            words += 4;
            info.control.push(ControlMark { instruction, step });
        }
        for _ in 0..random.below(3) {
            info.accesses
                .push(access(random, instruction, &mut words, with));
        }
        if random.below(4) == 0 {
            let return_address = 0x1000 * (1 + random.below(BLOCKS));
            let step = match random.below(2) {
                0 => ControlStep::Call { return_address },
                _ => {
                    words += 1;
                    ControlStep::Return { result: words - 2 }
                }
            };
            info.control.push(ControlMark { instruction, step });
        }
        info.words.push(words);
    }
    (info, codes)
}

fn access(random: &mut Random, instruction: u16, words: &mut u16, with: With) -> LoggedAccess {
    let base = match random.below(5) {
        0 => AddressWord::Constant,
        1 if *words > 1 => AddressWord::Logged(random.below(u64::from(*words) - 1) as u16),
        _ => {
            *words += 1;
            AddressWord::Logged(*words - 2)
        }
    };
    let near = random.below(6) * 4;
    LoggedAccess {
        instruction,
        base,
        displacement: match base {
            AddressWord::Constant => DATA + near,
            AddressWord::Logged(_) => near,
        },
        size: random.pick(&[1, 4, 8, 8, 16]),
        kind: random.pick(&[AccessKind::Read, AccessKind::Read, AccessKind::Write]),
        locked: with == With::Atomics && random.below(10) == 0,
        segment: random.pick(&[Segment::Flat, Segment::Flat, Segment::Flat, Segment::Fs]),
        bit: None,
        repeat: None,
    }
}

fn with_threads(mut observer: Observer) -> Observer {
    for (address, name) in FUNCTIONS {
        let name = name.to_owned();
        observer.record(Record::Function { address, name });
    }
    for child in 1..THREADS {
        observer.record(Record::ThreadCreated {
            parent: 0,
            child: child as u32,
            fs_base: FS_BASE + child,
            stack: (0, 0),
            tid_word: 0,
        });
    }
    observer
}

/// All that later steps of a thread depend on.
type Followed = Vec<(Vec<Frame>, bool, Vec<(usize, bool)>, u64, bool)>;

fn followed(observer: &Observer) -> Followed {
    let threads = observer.threads.iter();
    threads
        .map(|thread| {
            let hooks = thread.hooks.iter().map(|hook| (hook.depth, hook.hides));
            (
                thread.calls.innermost_first().copied().collect(),
                thread.calls.is_returning(),
                hooks.collect(),
                thread.last_own,
                thread.in_program,
            )
        })
        .collect()
}

fn suspects(observer: &mut Observer) -> SuspectBytes {
    match std::mem::take(&mut observer.looks) {
        Looks::Survey(suspects) => suspects.finish(),
        _ => SuspectBytes::default(),
    }
}

/// The words of a block that was left after `executed` instructions.
fn logged(random: &mut Random, id: u32, info: &BlockInfo, executed: usize) -> Vec<Word> {
    let left = match executed < info.pcs.len() {
        true => executed as u64 + 1,
        false => 0,
    };
    let mut words = vec![(left << 32 | u64::from(id)).to_le_bytes()];
    while words.len() < usize::from(info.words[executed]) {
        words.push((DATA + 8 * random.below(12)).to_le_bytes());
    }
    words
}

/// The words of a later round of a loop.
fn stepped(first: &[Word], by: u64) -> Vec<Word> {
    let header = first.iter().take(1).copied();
    let bases = first.iter().skip(1);
    let later = bases.map(|word| number(*word).wrapping_add(by).to_le_bytes());
    header.chain(later).collect()
}

/// Lets both observers see the same random run, the second one step by step.
fn run_both(random: &mut Random, with: With, quick: &mut Observer, slow: &mut Observer) {
    let mut infos = Vec::new();
    for id in 0..BLOCKS as u32 {
        let (info, code) = block(random, u64::from(id), with);
        for observer in [&mut *quick, &mut *slow] {
            let known = Known::new(info.clone(), code.clone());
            observer.blocks.insert(id, known);
        }
        infos.push(info);
    }
    for _ in 0..200 {
        let index = random.below(THREADS) as usize;
        for observer in [&mut *quick, &mut *slow] {
            observer.threads[index].fs_base = FS_BASE + index as u64;
        }
        let mut words = Vec::new();
        for _ in 0..random.below(6) {
            let id = random.below(BLOCKS) as u32;
            let info = &infos[id as usize];
            let executed = match random.below(3) {
                0 => random.below(info.pcs.len() as u64 + 1) as usize,
                _ => info.pcs.len(),
            };
            let first = logged(random, id, info, executed);
            let step = match with {
                With::PlainAccesses => 0,
                With::Loops | With::Atomics => 8 * random.below(3),
            };
            for round in 0..random.pick(&[1, 1, 1, 2, 6, 20]) {
                match round {
                    0 => words.extend(&first),
                    1.. if step > 0 => words.extend(stepped(&first, round * step)),
                    _ => words.extend(logged(random, id, info, executed)),
                }
            }
            if executed < info.pcs.len() && quick.blocks.plain().get(id).is_some() {
                break;
            }
        }
        quick.log(index, &words);
        slow.log_step_by_step(index, &words);
        // Of blocks that are nothing but the program's, the last one is known to be, however early it was left. Nothing came
        // after it that this would matter to.
        let mut now = (followed(quick), followed(slow));
        for (quick, slow) in now.0.iter_mut().zip(&mut now.1) {
            slow.4 |= quick.4;
        }
        assert_eq!(now.0, now.1);
        for (quick, slow) in quick.threads.iter_mut().zip(&mut slow.threads) {
            slow.in_program = quick.in_program;
        }
    }
}

fn compare_surveys(seed: u64, with: With) {
    println!("seed {seed}");
    let mut both = [(), ()].map(|()| with_threads(Observer::surveying(Suspects::new())));
    let [quick, slow] = &mut both;
    run_both(&mut Random(seed), with, quick, slow);
    let (quick, slow) = (suspects(quick), suspects(slow));
    if with == With::PlainAccesses {
        assert_eq!(quick, slow, "seed {seed}");
    }
    for address in (DATA..DATA + 256).chain(FS_BASE + DATA..FS_BASE + DATA + 256) {
        assert!(
            quick.touches(address, 1) || !slow.touches(address, 1),
            "seed {seed}: {address:#x}"
        );
    }
}

#[test]
fn shapes_do_what_steps_do() {
    (0..400).for_each(|seed| compare_surveys(seed, With::PlainAccesses));
}

#[test]
fn shapes_miss_nothing_where_threads_are_ordered_within_blocks_or_loops_are_seen_as_a_whole() {
    (0..400).for_each(|seed| compare_surveys(seed, With::Loops));
    (0..400).for_each(|seed| compare_surveys(seed, With::Atomics));
}

/// Some of the bytes that are accessed; in one run of eight, none of them.
fn some_bytes(random: &mut Random) -> SuspectBytes {
    let mut bytes = SuspectBytes::default();
    for _ in 0..random.below(8) {
        let base = random.pick(&[DATA, DATA, FS_BASE + DATA, 2 * DATA]);
        bytes.add(base + 8 * random.below(16));
    }
    bytes
}

fn compare_looks(seed: u64, with: With) -> usize {
    println!("seed {seed}");
    let random = &mut Random(seed);
    let bytes = some_bytes(random);
    let mut both = [(), ()].map(|()| with_threads(Observer::only(bytes.clone())));
    let [quick, slow] = &mut both;
    if let Looks::Only(watched) = &mut slow.looks {
        watched.look_at_everything();
    }
    run_both(random, with, quick, slow);
    assert_eq!(quick.events, slow.events);
    assert_eq!(quick.sites.infos, slow.sites.infos);
    quick.events.len()
}

#[test]
fn a_look_at_some_bytes_tells_the_same_by_shapes_as_by_steps() {
    for with in [With::Loops, With::Atomics] {
        let events: usize = (0..400).map(|seed| compare_looks(seed, with)).sum();
        assert!(events > 10_000, "{events}");
    }
}
