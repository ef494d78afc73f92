//! The state that translated code shares with the engine.

use crate::enter::entry_points;
use crate::epochs::next_epoch_routine;
use crate::layout;

/// Index of a general register in [`Context::gpr`], in x86 encoding order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Gpr {
    Rax,
    Rcx,
    Rdx,
    Rbx,
    Rsp,
    Rbp,
    Rsi,
    Rdi,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

/// Names of the general registers in encoding order.
pub const GPR_NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Why translated code came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum ExitReason {
    /// A direct branch that is not linked yet; [`Context::exit_arg`] is its link.
    Link = 1,
    /// An indirect branch to an address that no table knows; [`Context::target`] holds it.
    Indirect = 2,
    /// A `syscall` instruction; rip is the next instruction.
    Syscall = 3,
    /// An instruction that the engine performs itself; rip is that instruction.
    Emulate = 4,
    /// The budget may not suffice for the block at rip; nothing of it has run.
    Budget = 5,
    /// A one-off block has run to its end at rip.
    OneOff = 6,
    /// A synchronous fault; set by the signal handler.
    Fault = 7,
    /// The instruction at rip is watched and has not run.
    Watch = 8,
    /// A branch did not go where it was guessed to; [`Context::target`] holds where it goes, [`Context::exit_arg`] names the
    /// guess.
    Missed = 9,
}

impl ExitReason {
    /// The reason behind a number found in the context; `None` if the context was overwritten.
    pub fn from_raw(raw: u64) -> Option<Self> {
        use ExitReason::*;
        [
            Link, Indirect, Syscall, Emulate, Budget, OneOff, Fault, Watch, Missed,
        ]
        .into_iter()
        .find(|r| *r as u64 == raw)
    }
}

/// Everything that translated code and the engine share, at [`layout::CONTEXT`].
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Context {
    // What running code uses all the time, in one cache line.
    /// Instructions that may still retire, less the translator's reserve: while it is not negative, any block may run
    /// as a whole. While translated code runs it is in the low half of vector register 15, but for blocks that need that
    /// register.
    pub budget: i64,
    /// Where the next word of the access log goes. While translated code runs it is in the other half.
    pub log_next: u64,
    /// Registers that translated code has borrowed.
    pub borrowed: [u64; 6],
    /// General registers while the guest does not run.
    pub gpr: [u64; 16],
    /// Guest instruction pointer, valid as the exit reason says.
    pub rip: u64,
    /// Guest flags while the guest does not run.
    pub rflags: u64,
    /// An [`ExitReason`].
    pub exit_reason: u64,
    /// Detail of the exit reason.
    pub exit_arg: u64,
    /// Target of an indirect branch under way.
    pub target: u64,
    /// Guest fs base.
    pub guest_fs: u64,
    /// Host fs base, constant.
    pub host_fs: u64,
    /// Host stack pointer while the guest runs.
    pub host_rsp: u64,
    /// Where the current thread's vector state is kept: standard XSAVE format, 64-byte aligned.
    pub xsave_area: u64,
    /// State components that are saved: all that the host has enabled.
    pub xsave_mask: u64,
    /// Address to jump to on entry.
    pub entry: u64,
    /// Address of the exit routine.
    pub exit_routine: u64,
    /// Address of the second-level lookup.
    pub lookup_routine: u64,
    /// 1 if the host has AVX, whose upper halves must be cleared for Rust code.
    pub has_avx: u64,
    /// Constant; a different value means that the guest wrote over the engine.
    pub canary: u64,
    /// Translated code to go on at.
    pub resume: u64,
    /// The guest's vector register 15 while the budget is in its place, as wide as the host has it.
    pub guest_vector: VectorSlot,
    // What sifting accesses takes.
    /// The current thread in its present epoch, as eight stamps (see the translator's `sieve`).
    pub epoch: u64,
    /// What of an address counts for where its shadow is to be stamped: all, or nothing if there are no shadows.
    pub shadow_mask: u64,
    /// What is added to that.
    pub shadow_base: u64,
    /// What to keep of eight stamps when they are compared; the first is not used.
    pub stamp_masks: [u64; STAMP_KINDS],
    /// What eight stamps have more than an epoch. The first has nothing.
    pub stamp_kinds: [u64; STAMP_KINDS],
    /// Where the next record of what passed the sieve goes.
    pub passed_next: u64,
    /// How far a record of a plain access of the program moves it: 0 if nobody needs to hear of them.
    pub passed_step: u64,
    /// The last epoch of any thread.
    pub epochs: u64,
    /// What the next one has more; 0 as long as there is only one thread.
    pub epoch_step: u64,
    /// How often all stamps were taken back, so that epochs begin anew.
    pub generation: u64,
    /// Where the list of stamped shadows begins.
    pub stamped: u64,
    /// Where the next one goes.
    pub stamped_next: u64,
    /// Not 0 if more are stamped than are listed.
    pub unlisted: u64,
    /// Address of the routine that begins an epoch, and where it returns to.
    pub epoch_routine: u64,
    /// See there.
    pub epoch_return: u64,
    /// Registers that it borrows.
    pub epoch_borrowed: [u64; 6],
    /// The same for code of the language's runtime: of what that does in noted functions, nobody needs to hear.
    pub runtime_step: u64,
    /// The current thread's innermost noted function, in a list of those that have not returned.
    pub noted_top: u64,
    /// The end of the room for that list.
    pub noted_end: u64,
    /// Registers as they were when a run was begun.
    pub run: [u64; RUN_VALUES],
    /// The guest's arithmetic flags while the sieve uses them.
    pub kept_flags: u64,
}

/// Kinds of stamps: the program's writes, its reads, writes of the language's runtime, its reads.
pub const STAMP_KINDS: usize = 4;
/// Eight stamps that say 1.
const STAMP_ONES: u64 = 0x0101_0101_0101_0101;
/// What the stamps of one epoch have more than those of the one before.
pub const STAMP_EPOCH: u64 = STAMP_KINDS as u64 * STAMP_ONES;
/// The stamps of what nobody needs to hear of: no thread's epoch gets there.
pub const STAMP_HIDDEN: u64 = 63 * STAMP_EPOCH;

/// How many registers of a run are kept.
pub const RUN_VALUES: usize = 6;

/// Room for the widest vector register.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct VectorSlot(pub [u8; 64]);

impl Context {
    /// The value of [`Context::canary`].
    pub const CANARY: u64 = 0x7645_5244_4943_5421;

    /// Fills in what stays the same for the whole run.
    pub fn prepare(&mut self, xsave_mask: u64, host_fs: u64) {
        let points = entry_points();
        self.canary = Context::CANARY;
        self.exit_routine = points.exit;
        self.lookup_routine = points.lookup;
        self.xsave_mask = xsave_mask;
        self.has_avx = u64::from(xsave_mask & XSAVE_AVX != 0);
        self.host_fs = host_fs;
        self.epoch_routine = next_epoch_routine();
        self.shadow_mask = u64::MAX;
        self.shadow_base = layout::SHADOW_BASE;
        for (kind, (stamps, mask)) in
            (0..).zip(self.stamp_kinds.iter_mut().zip(&mut self.stamp_masks))
        {
            *stamps = kind * STAMP_ONES;
            *mask = !*stamps;
        }
    }
}

/// The upper halves of the 256-bit registers in a mask of XSAVE components.
const XSAVE_AVX: u64 = 4;

const _: () = assert!(size_of::<Context>() as u64 <= layout::CONTEXT_LEN);

/// Absolute addresses of the context's fields, as translated code uses them.
pub mod offset {
    use super::Context;
    use crate::layout::CONTEXT;
    use std::mem::offset_of;

    /// Address of a general register's slot.
    pub const fn gpr(index: usize) -> u32 {
        (CONTEXT as usize + offset_of!(Context, gpr) + 8 * index) as u32
    }
    /// Address of a borrowed register's slot.
    pub const fn borrowed(index: usize) -> u32 {
        (CONTEXT as usize + offset_of!(Context, borrowed) + 8 * index) as u32
    }
    /// Address of a register's slot as it was when a run was begun.
    pub const fn run(index: usize) -> u32 {
        (CONTEXT as usize + offset_of!(Context, run) + 8 * index) as u32
    }
    /// Address of what is kept of eight stamps.
    pub const fn stamp_mask(kind: usize) -> u32 {
        (CONTEXT as usize + offset_of!(Context, stamp_masks) + 8 * kind) as u32
    }
    /// Address of what eight stamps have more than an epoch.
    pub const fn stamp_kind(kind: usize) -> u32 {
        (CONTEXT as usize + offset_of!(Context, stamp_kinds) + 8 * kind) as u32
    }
    macro_rules! field {
        ($($name:ident = $field:ident),*) => {
            $(
                #[doc = concat!("Address of `", stringify!($field), "`.")]
                pub const $name: u32 = (CONTEXT as usize + offset_of!(Context, $field)) as u32;
            )*
        };
    }
    field!(
        BUDGET = budget,
        RIP = rip,
        RFLAGS = rflags,
        EXIT_REASON = exit_reason,
        EXIT_ARG = exit_arg,
        TARGET = target,
        GUEST_FS = guest_fs,
        HOST_FS = host_fs,
        HOST_RSP = host_rsp,
        XSAVE_AREA = xsave_area,
        XSAVE_MASK = xsave_mask,
        ENTRY = entry,
        EXIT_ROUTINE = exit_routine,
        LOOKUP_ROUTINE = lookup_routine,
        LOG_NEXT = log_next,
        RESUME = resume,
        GUEST_VECTOR = guest_vector,
        HAS_AVX = has_avx,
        EPOCH = epoch,
        EPOCHS = epochs,
        EPOCH_STEP = epoch_step,
        GENERATION = generation,
        SHADOW_MASK = shadow_mask,
        SHADOW_BASE = shadow_base,
        STAMPED = stamped,
        STAMPED_NEXT = stamped_next,
        UNLISTED = unlisted,
        EPOCH_ROUTINE = epoch_routine,
        EPOCH_RETURN = epoch_return,
        EPOCH_BORROWED = epoch_borrowed,
        PASSED_NEXT = passed_next,
        PASSED_STEP = passed_step,
        RUNTIME_STEP = runtime_step,
        NOTED_TOP = noted_top,
        NOTED_END = noted_end,
        KEPT_FLAGS = kept_flags
    );
}
