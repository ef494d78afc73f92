//! Blocks as the survey goes through them: what they access in as few accesses as possible, and what they do to the stack of
//! calls, for every number of instructions after which they have been left.
//!
//! [`crate::observer::Observer`]'s `run` takes everything that happens in a block one after the other, and explains this. The
//! survey asks for no sites; plain accesses, calls and returns of a thread that is in no noted function leave each other alone,
//! so that all accesses can be taken first. From the first step on that may be more than that, the steps are taken one by one.

use crate::blocks::{Known, Step, What};
use crate::modules::Owner;
use crate::plain::PlainAccess;
use crate::reduced::reduced;
use std::ops::Range;
use verdict_translate::{ControlStep, LoggedAccess, Segment};

/// A block that has been left after some number of instructions, or at its end; or the rest of one from some step on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The block's first instruction.
    pub(crate) pc: u64,
    /// Words in the log, the header included.
    pub(crate) words: u16,
    /// How many of its instructions have run.
    pub(crate) executed: u16,
    /// The step from which on each is to be taken as it comes; [`NEVER`] if there is none.
    pub(crate) slow_from: u16,
    /// The step with which it begins.
    pub(crate) first: u16,
    /// The rest after the step `slow_from`, if that is a call of a noted function.
    pub(crate) rest: Rest,
    /// How many accesses of the program, to its thread-local variables, and of libraries.
    accesses: [u16; 3],
    first_access: u32,
    first_jump: u32,
    first_control: u32,
    jumps: u16,
    controls: u16,
    /// The last instruction of the program before `slow_from`; 0 if there is none.
    pub(crate) own: u64,
    /// The last instruction before `slow_from` is one of the program, for sure.
    pub(crate) in_program: bool,
    /// It consists of plain accesses of the program: to run again changes nothing else.
    pub(crate) is_plain: bool,
}

/// Something that happens to the stack of calls of a thread that is in no noted function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Jump {
    Call {
        return_address: u64,
        call: u64,
    },
    Return,
    /// Code of a library runs, this instruction first, after one of the program; 0 if that is not in the block.
    Enters {
        pc: u64,
        own: u64,
    },
}

/// A shape that begins within a block.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Rest {
    /// The number of the shape, plus one; 0 if there is none.
    number: u32,
}

/// Where more steps than this may be followed by a rest, rests are taken step by step.
const RESTS_MAX: usize = 16;

/// No step has this number.
pub(crate) const NEVER: u16 = u16::MAX;

/// Something that happens to the stack of calls of any thread, and what it takes to go on step by step after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Control {
    /// Which step of the block; their count, if it is after all of them.
    pub(crate) step: u16,
    pub(crate) what: ControlWhat,
    /// What is left after a return that may be that of a noted function.
    pub(crate) rest: Rest,
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ControlWhat {
    Call {
        return_address: u64,
        call: u64,
    },
    /// With the word of the result.
    Return(u16),
    /// Of a noted function; with the word of the return address.
    Entry(u16),
    /// See [`What`].
    Own(u64),
    Enters(u64),
    /// The block was left within code of the program, after this instruction.
    LeftAt(u64),
}

/// What an access is to the survey.
enum Kind {
    Nothing,
    Program(PlainAccess),
    ThreadLocal(PlainAccess),
    Library(PlainAccess),
    /// It may order threads, or its address takes more than adding.
    Slow,
}

/// Where the numbers of a block begin that was never left before its end: past all others.
const NO_NUMBERS: u32 = u32::MAX;

/// All shapes that were asked for.
#[derive(Default, Debug)]
pub(crate) struct Shapes {
    /// By id: the number of the shape of the whole block, plus one; 0 if it is not known.
    whole: Vec<u32>,
    /// By id: where its numbers begin, or [`NO_NUMBERS`], and how many there are.
    blocks: Vec<(u32, u32)>,
    /// By the upper half of the header: the number of a shape, plus one. Only of blocks that were left before their end.
    numbers: Vec<u32>,
    shapes: Vec<Shape>,
    accesses: Vec<PlainAccess>,
    jumps: Vec<Jump>,
    controls: Vec<Control>,
}

impl Shapes {
    /// A block may be asked for from now on.
    pub(crate) fn insert(&mut self, id: u32, block: &Known) {
        let index = id as usize;
        if index >= self.blocks.len() {
            self.blocks.resize(index + 1, (0, 0));
            self.whole.resize(index + 1, 0);
        }
        self.whole[index] = 0;
        let count = block.info.pcs.len() + 2;
        self.blocks[index] = (NO_NUMBERS, count as u32);
    }

    /// The shape of a block with this in the upper half of its header, if it is known.
    #[inline(always)]
    pub(crate) fn get(&self, id: u32, left: u32) -> Option<&Shape> {
        let number = match left {
            0 => *self.whole.get(id as usize)?,
            _ => *self.numbers.get(self.place(id, left)?)?,
        };
        self.shapes.get((number as usize).wrapping_sub(1))
    }

    /// Where the number of a shape is; past all of them if it has no place yet.
    #[inline(always)]
    fn place(&self, id: u32, left: u32) -> Option<usize> {
        let (first, count) = *self.blocks.get(id as usize)?;
        (left < count).then_some(first as usize + left as usize)
    }

    /// The place of the number of a shape, which has one from now on.
    fn place_mut(&mut self, id: u32, left: u32) -> Option<&mut u32> {
        self.place(id, left)?;
        if left == 0 {
            return self.whole.get_mut(id as usize);
        }
        let (first, count) = &mut self.blocks[id as usize];
        if *first == NO_NUMBERS {
            *first = self.numbers.len() as u32;
            self.numbers.resize(self.numbers.len() + *count as usize, 0);
        }
        let place = *first as usize + left as usize;
        self.numbers.get_mut(place)
    }

    /// Makes the shape of a block. False if there is none, since the block has no such instruction.
    pub(crate) fn make(&mut self, id: u32, left: u32, block: &Known, is_plain: bool) -> bool {
        if self.place(id, left).is_none() || self.get(id, left).is_some() {
            return false;
        }
        let executed = match left {
            0 => block.len(),
            left => left as usize - 1,
        };
        let executed = executed.min(block.info.pcs.len());
        let header = u64::from(left) << 32 | u64::from(id);
        let mut rests = Rests::default();
        // A rest may be followed by others: the last one comes first.
        for first in rests_begin(block, executed).into_iter().rev() {
            if let Some(shape) = self.shape(block, executed, header, (first, &rests)) {
                self.shapes.push(shape);
                let number = self.shapes.len() as u32;
                rests.0.push((first, Rest { number }));
            }
        }
        let Some(shape) = self.shape(block, executed, header, (0, &rests)) else {
            return false;
        };
        self.shapes.push(shape.with_loops(is_plain));
        let number = self.shapes.len() as u32;
        *self.place_mut(id, left).expect("there is such a block") = number;
        true
    }

    /// What a block does from the step `first` on.
    fn shape(
        &mut self,
        block: &Known,
        executed: usize,
        header: u64,
        (first, rests): (u16, &Rests),
    ) -> Option<Shape> {
        if block.steps.len() >= usize::from(NEVER) {
            return None;
        }
        let slow_from = slow_from(block, executed, first);
        let first_access = self.accesses.len();
        let accesses = self.add_accesses(block, executed, first..slow_from, header)?;
        let mut controls = controls(block, executed, first, slow_from);
        for control in &mut controls {
            if let ControlWhat::Return(_) = control.what {
                control.rest = rests.after(control.step);
            }
        }
        let before = controls.partition_point(|control| control.step < slow_from);
        let followed = Followed::of(&controls[..before]);
        let (first_jump, first_control) = (self.jumps.len(), self.controls.len());
        let (jumps, count) = (followed.jumps.len(), controls.len());
        self.jumps.extend(followed.jumps);
        self.controls.extend(controls);
        Some(Shape {
            pc: block.info.pcs.first().copied().unwrap_or(0),
            words: u16::try_from(block.words(executed)).ok()?,
            executed: u16::try_from(executed).ok()?,
            slow_from,
            first,
            rest: rests.after(slow_from),
            accesses,
            first_access: u32::try_from(first_access).ok()?,
            first_jump: u32::try_from(first_jump).ok()?,
            first_control: u32::try_from(first_control).ok()?,
            jumps: u16::try_from(jumps).ok()?,
            controls: u16::try_from(count).ok()?,
            own: followed.own,
            in_program: followed.in_program,
            is_plain: false,
        })
    }

    fn add_accesses(
        &mut self,
        block: &Known,
        executed: usize,
        steps: Range<u16>,
        header: u64,
    ) -> Option<[u16; 3]> {
        let (mut program, mut local, mut library) = (Vec::new(), Vec::new(), Vec::new());
        let (first, end) = (usize::from(steps.start), usize::from(steps.end));
        for step in ran(block, executed).take(end).skip(first) {
            if let What::Access(number) = step.what {
                match kind(block, number) {
                    Kind::Program(access) => program.push(access),
                    Kind::ThreadLocal(access) => local.push(access),
                    Kind::Library(access) => library.push(access),
                    Kind::Nothing | Kind::Slow => {}
                }
            }
        }
        let mut counts = [0; 3];
        // Whose memory it is, is asked for the first byte of each access of a library: these stay as they are.
        let all = [reduced(&program), reduced(&local), library];
        for (count, accesses) in counts.iter_mut().zip(all) {
            *count = u16::try_from(accesses.len()).ok()?;
            let based = accesses.into_iter().map(|access| based(access, header));
            self.accesses.extend(based);
        }
        Some(counts)
    }

    /// The rest of a block, if it has a shape.
    #[inline(always)]
    pub(crate) fn rest(&self, rest: Rest) -> Option<&Shape> {
        self.shapes.get((rest.number as usize).wrapping_sub(1))
    }

    /// Accesses of the program.
    #[inline(always)]
    pub(crate) fn program(&self, shape: &Shape) -> &[PlainAccess] {
        &self.accesses[shape.part(0)]
    }

    /// Accesses to thread-local variables: their addresses count from the thread's fs base.
    #[inline(always)]
    pub(crate) fn thread_local(&self, shape: &Shape) -> &[PlainAccess] {
        &self.accesses[shape.part(1)]
    }

    /// Accesses of libraries.
    #[inline(always)]
    pub(crate) fn library(&self, shape: &Shape) -> &[PlainAccess] {
        &self.accesses[shape.part(2)]
    }

    /// What happens to the stack of calls.
    #[inline(always)]
    pub(crate) fn controls(&self, shape: &Shape) -> &[Control] {
        let first = shape.first_control as usize;
        &self.controls[first..first + usize::from(shape.controls)]
    }

    /// The same for a thread that is in no noted function, up to the first step that is to be taken as it comes.
    #[inline(always)]
    pub(crate) fn jumps(&self, shape: &Shape) -> &[Jump] {
        let first = shape.first_jump as usize;
        &self.jumps[first..first + usize::from(shape.jumps)]
    }
}

impl Shape {
    /// The shape of a block that has nothing but plain accesses of the program.
    fn with_loops(self, is_plain: bool) -> Shape {
        Shape {
            in_program: self.in_program || is_plain,
            is_plain,
            ..self
        }
    }

    /// True if its accesses are the program's, and not to thread-local variables.
    #[inline(always)]
    pub(crate) fn is_only_programs(&self) -> bool {
        self.accesses[1] | self.accesses[2] == 0
    }

    #[inline(always)]
    fn part(&self, number: usize) -> Range<usize> {
        let before: usize = self.accesses[..number]
            .iter()
            .map(|n| usize::from(*n))
            .sum();
        let first = self.first_access as usize + before;
        first..first + usize::from(self.accesses[number])
    }
}

/// An access whose address is what the log has at its word plus its displacement, also where the address is constant: the
/// header of a shape is always the same.
fn based(access: PlainAccess, header: u64) -> PlainAccess {
    match access.word {
        0 => PlainAccess {
            displacement: access.displacement.wrapping_sub(header),
            ..access
        },
        _ => access,
    }
}

/// What controls come to where calls and returns do nothing else.
#[derive(Default)]
struct Followed {
    jumps: Vec<Jump>,
    own: u64,
    in_program: bool,
}

impl Followed {
    fn of(controls: &[Control]) -> Followed {
        let mut all = Followed::default();
        for control in controls {
            let jump = match control.what {
                ControlWhat::Call {
                    return_address,
                    call,
                } => Jump::Call {
                    return_address,
                    call,
                },
                ControlWhat::Return(_) => Jump::Return,
                ControlWhat::Enters(pc) => {
                    let own = if all.in_program { all.own } else { 0 };
                    all.in_program = false;
                    Jump::Enters { pc, own }
                }
                ControlWhat::Own(pc) => {
                    (all.own, all.in_program) = (pc, true);
                    continue;
                }
                ControlWhat::LeftAt(pc) => {
                    all.own = pc;
                    continue;
                }
                // Never before the first slow step: it is one.
                ControlWhat::Entry(_) => continue,
            };
            all.jumps.push(jump);
        }
        all
    }
}

/// The steps of the first `executed` instructions.
fn ran(block: &Known, executed: usize) -> impl Iterator<Item = &Step> {
    let steps = block.steps.iter();
    steps.take_while(move |step| usize::from(step.instruction) < executed)
}

/// The rests of a block, by their first steps.
#[derive(Default)]
struct Rests(Vec<(u16, Rest)>);

impl Rests {
    /// The one after a step.
    fn after(&self, step: u16) -> Rest {
        let mut all = self.0.iter();
        let found = all.find(|(first, _)| step != NEVER && *first == step + 1);
        found.map_or(Rest::default(), |(_, rest)| *rest)
    }
}

/// The steps after those with which a noted function may begin or end.
fn rests_begin(block: &Known, executed: usize) -> Vec<u16> {
    let steps = (0..).zip(ran(block, executed));
    let begin = steps.filter(|(_, step)| match step.what {
        What::Control(mark) => match block.info.control[usize::from(mark)].step {
            ControlStep::Entry { .. } => true,
            ControlStep::Return { .. } => {
                block.code[usize::from(step.instruction)].owner != Owner::Program
            }
            ControlStep::Call { .. } => false,
        },
        _ => false,
    });
    let begin: Vec<u16> = begin.map(|(number, _): (u16, _)| number + 1).collect();
    match begin.len() > RESTS_MAX {
        true => Vec::new(),
        false => begin,
    }
}

/// The first step that is to be taken as it comes, from `first` on.
fn slow_from(block: &Known, executed: usize, first: u16) -> u16 {
    let is_slow = |what: &What| match what {
        What::Own(_) | What::Enters(_) => false,
        What::Access(number) => matches!(kind(block, *number), Kind::Slow),
        What::Control(number) => {
            let mark = &block.info.control[usize::from(*number)];
            matches!(mark.step, ControlStep::Entry { .. })
        }
    };
    let mut all = ran(block, executed).skip(usize::from(first));
    let found = all.position(|step| is_slow(&step.what));
    found.map_or(NEVER, |at| first + at as u16)
}

fn kind(block: &Known, number: u16) -> Kind {
    let access = &block.info.accesses[usize::from(number)];
    let code = block.code[usize::from(access.instruction)];
    if code.stub || code.owner == Owner::Loader || access.size == 0 {
        return Kind::Nothing;
    }
    if code.owner == Owner::Library && access.segment != Segment::Flat {
        return Kind::Nothing;
    }
    if let Some(quick) = &block.quick[usize::from(number)] {
        return match quick.owner {
            Owner::Program => Kind::Program(quick.access),
            _ => Kind::Library(quick.access),
        };
    }
    let from_fs = PlainAccess::of(&LoggedAccess {
        segment: Segment::Flat,
        ..*access
    });
    match from_fs {
        Some(local) if access.segment == Segment::Fs && code.may_repeat() => {
            Kind::ThreadLocal(local)
        }
        _ => Kind::Slow,
    }
}

/// What the first `executed` instructions of a block do to the stack of calls, from the step `first` on.
fn controls(block: &Known, executed: usize, first: u16, slow_from: u16) -> Vec<Control> {
    let control = |step, what| Control {
        step,
        what,
        rest: Rest::default(),
    };
    let mut all: Vec<Control> = Vec::new();
    let mut steps = first;
    for (number, step) in (0..).zip(ran(block, executed)).skip(usize::from(first)) {
        steps = number + 1;
        let what = match step.what {
            What::Own(pc) => ControlWhat::Own(pc),
            What::Enters(pc) => ControlWhat::Enters(pc),
            What::Access(_) => continue,
            What::Control(mark) => {
                let pc = block.info.pcs[usize::from(step.instruction)];
                match block.info.control[usize::from(mark)].step {
                    ControlStep::Call { return_address } => ControlWhat::Call {
                        return_address,
                        call: pc,
                    },
                    ControlStep::Return { result } => ControlWhat::Return(result),
                    ControlStep::Entry { return_address, .. } => ControlWhat::Entry(return_address),
                }
            }
        };
        // Nobody asks for the last instruction before there is another one, unless the steps in between are slow.
        if let (ControlWhat::Own(_), Some(last)) = (what, all.last())
            && matches!(last.what, ControlWhat::Own(_))
            && !(last.step..number).contains(&slow_from)
        {
            all.pop();
        }
        all.push(control(number, what));
    }
    if executed < block.info.pcs.len() {
        let ran = block.code[..executed].iter().zip(&block.info.pcs);
        let mut own = ran.filter(|(code, _)| code.owner == Owner::Program && !code.stub);
        if let Some((_, pc)) = own.next_back() {
            let what = ControlWhat::LeftAt(*pc);
            all.push(control(steps, what));
        }
    }
    all
}
