//! Blocks of the guest's code as whoever reads the log needs them: what happens in which order, and nothing else.

use crate::code::Code;
use crate::modules::Owner;
use crate::plain::{PlainAccess, PlainBlocks};
use crate::shapes::Shapes;
use rustc_hash::FxHashMap;
use verdict_stream::BlockInfo;
use verdict_translate::ControlStep;

/// A block and what is known of its instructions.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) info: BlockInfo,
    /// One per instruction.
    pub(crate) code: Box<[Code]>,
    /// What happens, in order.
    pub(crate) steps: Box<[Step]>,
    /// One per access: how to be quickly done with it.
    pub(crate) quick: Box<[Option<Quick>]>,
}

/// An access that is nothing but plain, unless its memory is atomic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quick {
    pub(crate) access: PlainAccess,
    /// Whose instruction it is.
    pub(crate) owner: Owner,
}

/// Something that happens at an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) instruction: u16,
    pub(crate) what: What,
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// Instructions of the program have run, this one last.
    Own(u64),
    /// Code of a library runs, this instruction first.
    Enters(u64),
    /// The block's access of this number.
    Access(u16),
    /// The block's mark of this number.
    Control(u16),
}

impl Known {
    pub(crate) fn new(info: BlockInfo, code: Vec<Code>) -> Self {
        let steps = steps(&info, &code);
        let quick = info.accesses.iter().map(|access| {
            let code = code[usize::from(access.instruction)];
            let access = PlainAccess::of(access).filter(|_| code.may_repeat())?;
            Some(Quick {
                access,
                owner: code.owner,
            })
        });
        Known {
            quick: quick.collect(),
            steps: steps.into(),
            info,
            code: code.into(),
        }
    }

    /// Words in the log, the header included, once so many instructions have run.
    pub(crate) fn words(&self, executed: usize) -> usize {
        let words = self.info.words.get(executed).copied();
        words.map_or(1, |words| usize::from(words).max(1))
    }

    /// How many instructions it has.
    pub(crate) fn len(&self) -> usize {
        self.info.words.len().saturating_sub(1)
    }
}

fn steps(info: &BlockInfo, code: &[Code]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut own = None;
    let mut in_library = false;
    let mut accesses = (0..).zip(&info.accesses).peekable();
    let mut marks = (0..).zip(&info.control).peekable();
    for ((instruction, code), pc) in (0..).zip(code).zip(&info.pcs) {
        let step = |what| Step { instruction, what };
        if code.owner == Owner::Program {
            in_library = false;
            if !code.stub {
                own = Some(step(What::Own(*pc)));
            }
        } else if code.owner != Owner::Loader && !in_library {
            in_library = true;
            steps.extend(own.take());
            steps.push(step(What::Enters(*pc)));
        }
        let mut here = Vec::new();
        let is_entry = |step: &ControlStep| matches!(step, ControlStep::Entry { .. });
        while let Some((number, _)) =
            marks.next_if(|(_, mark)| mark.instruction == instruction && is_entry(&mark.step))
        {
            here.push(step(What::Control(number)));
        }
        while let Some((number, _)) =
            accesses.next_if(|(_, access)| access.instruction == instruction)
        {
            here.push(step(What::Access(number)));
        }
        while let Some((number, _)) = marks.next_if(|(_, mark)| mark.instruction == instruction) {
            here.push(step(What::Control(number)));
        }
        if !here.is_empty() {
            steps.extend(own.take());
            steps.append(&mut here);
        }
    }
    steps.extend(own);
    steps
}

/// All blocks that the log may name.
#[derive(Default, Debug)]
pub(crate) struct Blocks {
    /// By id; ids are given one after the other.
    usual: Vec<Option<Known>>,
    others: FxHashMap<u32, Known>,
    plain: PlainBlocks,
    shapes: Shapes,
}

/// Ids from here on are not counted up from 0.
const USUAL_MAX: u32 = 1 << 22;

impl Blocks {
    pub(crate) fn insert(&mut self, id: u32, block: Known) {
        if id >= USUAL_MAX {
            self.others.insert(id, block);
            return;
        }
        self.plain.insert(id, &block);
        self.shapes.insert(id, &block);
        let index = id as usize;
        if index >= self.usual.len() {
            self.usual.resize_with(index + 1, || None);
        }
        self.usual[index] = Some(block);
    }

    /// Those of them that need no closer look.
    pub(crate) fn plain(&self) -> &PlainBlocks {
        &self.plain
    }

    /// What was found out about blocks as the survey sees them.
    #[inline(always)]
    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Makes the shape of a block with this in the upper half of its header. False if it has none.
    #[inline(never)]
    pub(crate) fn make_shape(&mut self, id: u32, left: u32) -> bool {
        let block = self.usual.get(id as usize).and_then(Option::as_ref);
        let is_plain = self.plain.get(id).is_some();
        block.is_some_and(|block| self.shapes.make(id, left, block, is_plain))
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&Known> {
        match self.usual.get(id as usize) {
            Some(block) => block.as_ref(),
            None => self.others.get(&id),
        }
    }
}
