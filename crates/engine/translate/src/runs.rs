//! Runs: loops that go through memory in steps of constant size are told of as a whole.
//!
//! If addresses that a loop accesses are registers plus constants, and each round adds the same to these registers, then where
//! they stood when the loop was entered and where one of them stands when it is left say all that was accessed. So the block notes the registers
//! on entry, leads back to itself without doing so again, and tells both where it is left: a round costs what it costs
//! where nothing is told. Other accesses of the loop are sifted.

use crate::accesses::{
    AccessKind, SLOT_POINTER, SLOT_SCRATCH, bit_register, is_locked, is_repeated, kind_of, size_of,
};
use crate::bases::change_by;
use crate::block::{Instrumentation, Scope};
use crate::budget::{CONDITION_ZERO, Exit, JRCXZ, JUMP_LEN};
use crate::builder::Builder;
use crate::operands::{ALL, GprSet, free_register, gpr_of};
use crate::sites::{Site, SiteKind, Whose};
use crate::trace::{Step, Terminator};
use crate::used::Used;
use iced_x86::{CodeSize, FlowControl, Instruction, Register, UsedMemory};
use verdict_cpu::{ExitReason, Gpr, offset};

/// Registers that are noted at most.
pub const RUN_VALUES_MAX: usize = verdict_cpu::RUN_VALUES;

/// What a run does. Its record: the number of its site with, in the upper half, how many instructions of the last round have run;
/// the values on entry; and where the first of them stands.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Run {
    /// What one execution of the block adds to each value. The first is not 0.
    pub steps: Vec<i64>,
    /// What is added to the first value once so many instructions have run.
    pub first: Vec<i64>,
    /// The accesses in order.
    pub accesses: Vec<RunAccess>,
}

/// An access of a run: the sum of a value, another one several times, and a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunAccess {
    /// Which instruction of the block, from 0.
    pub instruction: u16,
    /// Which value.
    pub base: Option<u8>,
    /// Which other one, and how many times.
    pub index: Option<(u8, u8)>,
    /// The constant.
    pub displacement: u64,
    /// Bytes.
    pub size: u32,
    /// Direction.
    pub kind: AccessKind,
}

impl Run {
    /// Words of a record.
    pub fn words(&self) -> usize {
        2 + self.steps.len()
    }
}

/// A run, and which registers its values are.
pub(crate) struct RunPlan {
    pub(crate) run: Run,
    values: Vec<Gpr>,
    /// Accesses that are not part of it, by instruction and operand.
    sifted: Vec<(u16, u8)>,
    site: u32,
    /// Where the block goes on that has come back to its beginning.
    again: u64,
}

impl RunPlan {
    /// Whether an access is told with the run.
    pub(crate) fn has(&self, instruction: u16, operand: usize) -> bool {
        !self.sifted.contains(&(instruction, operand as u8))
    }
}

/// A register, as what another one was when the block was entered, and more.
type Since = Option<(Gpr, i64)>;

/// The registers along a path.
type Registers = [Since; 16];

fn after(before: &Registers, used: &Used, instruction: &Instruction) -> Registers {
    let mut now = *before;
    let change = change_by(instruction);
    for written in used.written.iter() {
        now[written as usize] = None;
    }
    if let Some(change) = change {
        now[change.to as usize] = before[change.from as usize]
            .map(|(origin, more)| (origin, more.wrapping_add(change.by)));
    }
    now
}

struct Planner {
    /// What one execution of the block adds to a register, if that is constant.
    steps: [Option<i64>; 16],
    values: Vec<Gpr>,
    accesses: Vec<RunAccess>,
    sifted: Vec<(u16, u8)>,
}

impl Planner {
    /// The number of a value, and what is added to it.
    fn value(&mut self, now: &Registers, register: Register) -> Option<(u8, i64)> {
        let (origin, more) = now[gpr_of(register)? as usize]?;
        self.steps[origin as usize]?;
        let known = self.values.iter().position(|value| *value == origin);
        let at = match known {
            Some(at) => at,
            None if self.values.len() == RUN_VALUES_MAX => return None,
            None => {
                self.values.push(origin);
                self.values.len() - 1
            }
        };
        Some((at as u8, more))
    }

    fn access(
        &mut self,
        number: u16,
        now: &Registers,
        instruction: &Instruction,
        operand: &UsedMemory,
    ) -> Option<()> {
        let is_flat = !matches!(operand.segment(), Register::FS | Register::GS);
        let size = size_of(operand, instruction);
        if !is_flat || size == 0 {
            return None;
        }
        let mut displacement = operand.displacement();
        let mut base = None;
        let mut index = None;
        if gpr_of(operand.base()).is_some() || operand.index() != Register::None {
            if operand.address_size() != CodeSize::Code64 {
                return None;
            }
            if operand.base() != Register::None {
                let (at, more) = self.value(now, operand.base())?;
                displacement = displacement.wrapping_add(more as u64);
                base = Some(at);
            }
            if operand.index() != Register::None {
                if !operand.index().is_gpr64() {
                    return None;
                }
                let (at, more) = self.value(now, operand.index())?;
                let scale = operand.scale();
                displacement = displacement.wrapping_add((more as u64).wrapping_mul(scale as u64));
                index = Some((at, scale as u8));
            }
        }
        self.accesses.push(RunAccess {
            instruction: number,
            base,
            index,
            displacement,
            size,
            kind: kind_of(operand.access()),
        });
        Some(())
    }
}

/// True if an instruction does more to memory than can be told when a loop is over.
fn is_odd(instruction: &Instruction, used: &Used) -> bool {
    let is_odd =
        is_repeated(instruction) || is_locked(instruction) || bit_register(instruction).is_some();
    is_odd && !used.memory.is_empty()
}

/// The instructions of a path in order.
fn path<'a>(
    steps: &'a [Step],
    terminator: &'a Terminator,
) -> impl Iterator<Item = &'a Instruction> {
    let end = match terminator {
        Terminator::Branch(branch) => Some(branch),
        _ => None,
    };
    steps.iter().map(Step::instruction).chain(end)
}

/// The run that a path is, whose site has this number; `None` if it is none.
fn plan(steps: &[Step], terminator: &Terminator, used: &[Used], site: u32) -> Option<RunPlan> {
    let path: Vec<(&Instruction, &Used)> = path(steps, terminator).zip(used).collect();
    if path
        .iter()
        .any(|(instruction, used)| is_odd(instruction, used))
    {
        return None;
    }
    let mut registers: Vec<Registers> = vec![ALL.map(|gpr| Some((gpr, 0)))];
    for (number, (instruction, used)) in path.iter().enumerate() {
        registers.push(after(&registers[number], used, instruction));
    }
    let last = registers.last()?;
    let mut planner = Planner {
        steps: ALL.map(|gpr| match last[gpr as usize] {
            Some((origin, more)) if origin == gpr => Some(more),
            _ => None,
        }),
        values: Vec::new(),
        accesses: Vec::new(),
        sifted: Vec::new(),
    };
    for ((number, (instruction, used)), now) in (0..).zip(&path).zip(&registers) {
        for (at, operand) in (0..).zip(&used.memory) {
            if planner.access(number, now, instruction, operand).is_none() {
                planner.sifted.push((number, at));
            }
        }
    }
    let mut steps: Vec<i64> = planner
        .values
        .iter()
        .map(|gpr| planner.steps[*gpr as usize])
        .collect::<Option<_>>()?;
    // The one that tells how often comes first.
    let counts = |at: &usize| {
        let counter = planner.values[*at];
        let mut all = registers.iter();
        steps[*at] != 0
            && all
                .all(|now| matches!(now[counter as usize], Some((origin, _)) if origin == counter))
    };
    let first = (0..steps.len()).find(counts)?;
    let (mut values, mut accesses) = (planner.values, planner.accesses);
    steps.swap(0, first);
    values.swap(0, first);
    let swapped = |at: u8| match usize::from(at) {
        0 => first as u8,
        other if other == first => 0,
        _ => at,
    };
    for access in &mut accesses {
        access.base = access.base.map(swapped);
        access.index = access.index.map(|(at, scale)| (swapped(at), scale));
    }
    let counter = values[0] as usize;
    let first = registers.iter();
    let first = first.map(|now| now[counter].map_or(0, |(_, more)| more));
    let run = Run {
        steps,
        first: first.collect(),
        accesses,
    };
    Some(RunPlan {
        run,
        values,
        sifted: planner.sifted,
        site,
        again: 0,
    })
}

impl Builder<'_> {
    /// Begins a run, if the path is one: notes where the registers stand.
    pub(crate) fn begin_run(&mut self, steps: &[Step], terminator: &Terminator) {
        if self.request.instrumentation != Instrumentation::Sifted
            || !self.is_rounds(steps, terminator)
        {
            return;
        }
        let site = self.request.first_site;
        let Some(mut plan) = plan(steps, terminator, &self.used, site) else {
            return;
        };
        for (slot, value) in plan.values.iter().enumerate() {
            self.emit.store(offset::run(slot), *value);
        }
        plan.again = self.emit.here();
        self.run = Some(plan);
    }

    /// Whether the path is whole rounds of a loop that do nothing but compute and access memory.
    fn is_rounds(&self, steps: &[Step], terminator: &Terminator) -> bool {
        let start = self.request.pc;
        let leads_back = match terminator {
            Terminator::Next(pc) => *pc == start,
            Terminator::Branch(branch) => {
                branch.flow_control() == FlowControl::ConditionalBranch
                    && branch.is_jcc_short_or_near()
                    && (branch.near_branch_target() == start || branch.next_ip() == start)
            }
            _ => false,
        };
        let is_simple = |step: &Step| {
            let simple = matches!(
                step,
                Step::Plain(..) | Step::Jump(_) | Step::Conditional { .. }
            );
            simple && (self.request.noted)(step.instruction().ip()).is_none()
        };
        // A loop that may take several ways does not stay on one for long.
        let ends = usize::from(matches!(terminator, Terminator::Branch(_)));
        let is_branch = |step: &&Step| matches!(step, Step::Conditional { .. });
        let branches = steps.iter().filter(is_branch).count() + ends;
        let begins = |step: &&Step| step.instruction().ip() == start;
        let rounds = steps.iter().filter(begins).count();
        self.request.tells_plain
            && leads_back
            && branches <= rounds
            && matches!(self.request.scope, Scope::Cached { .. })
            && (self.request.whose)(start) != Whose::Loader
            && steps.iter().all(is_simple)
    }

    /// The site of the run, told with it.
    pub(crate) fn run_site(&self) -> Option<Site> {
        self.run.as_ref().map(|_| Site {
            pc: self.request.pc,
            what: SiteKind::Run,
        })
    }

    /// A way out of a run: goes on with it if the block begins again, and tells of it if not. True if nothing is left to do.
    pub(crate) fn leave_run(&mut self, exit: &Exit) -> bool {
        let Some(plan) = &self.run else { return false };
        let again = plan.again;
        if exit.target != self.request.pc || u32::from(exit.retired) != self.count {
            self.tell_run(exit.retired);
            return false;
        }
        self.settle(exit.retired);
        if self.flags_dead_at(exit.target) {
            self.emit.test_budget();
            self.emit.jump_if_to(CONDITION_ZERO, again);
        } else {
            self.emit.store(offset::borrowed(0), Gpr::Rcx);
            self.emit.budget_is_negative();
            self.emit.raw(&[JRCXZ, JUMP_LEN]);
            let used_up = self.emit.jump();
            self.emit.load(Gpr::Rcx, offset::borrowed(0));
            self.emit.jump_to(again);
            self.emit.bind(used_up);
            self.emit.load(Gpr::Rcx, offset::borrowed(0));
        }
        self.tell_run(exit.retired);
        self.emit.exit_at(ExitReason::Budget, exit.target);
        true
    }

    /// Tells what the run has come to, after so many instructions of the path. Touches neither flags nor registers.
    fn tell_run(&mut self, retired: u16) {
        let Some(RunPlan { values, site, .. }) = &self.run else {
            return;
        };
        let mut used = GprSet(values.iter().fold(0, |all, value| all | 1 << *value as u8));
        let first = free_register(used).expect("there are more registers than values");
        used.0 |= 1 << first as u8;
        let second = free_register(used).expect("there are more registers than values");
        let emit = &mut self.emit;
        emit.store(offset::borrowed(SLOT_POINTER), first);
        emit.store(offset::borrowed(SLOT_SCRATCH), second);
        emit.load(first, offset::PASSED_NEXT);
        emit.store_small_at(first, 0, *site);
        emit.store_half_at(first, 4, u32::from(retired));
        for slot in 0..values.len() {
            emit.load(second, offset::run(slot));
            emit.store_at(first, 8 * (slot as i32 + 1), second);
        }
        let end = 8 * (values.len() as i32 + 1);
        emit.store_at(first, end, values[0]);
        emit.lea_self(first, end + 8);
        emit.store(offset::PASSED_NEXT, first);
        emit.load(first, offset::borrowed(SLOT_POINTER));
        emit.load(second, offset::borrowed(SLOT_SCRATCH));
    }
}
