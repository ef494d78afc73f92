//! Call stacks, from the tables that compilers leave for exceptions (`.eh_frame`): right for optimised code, for
//! libraries without frame pointers, and in the middle of any instruction sequence.
//!
//! Misses: frames described by expressions (signal trampolines, PLT stubs) end the walk, and so do signal handlers.

use std::path::Path;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, Register, RegisterRule, UnwindContext, UnwindSection, X86_64,
};

use crate::module::{Reader, Segment};

/// More than any stack that a person would read.
const FRAMES_MAX: usize = 64;
const RSP: usize = 4;
/// From the order of DWARF to the order of encoding: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15.
const FROM_DWARF: [usize; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// A thread that stands still.
#[derive(Clone, Debug)]
pub struct StoppedThread<'a> {
    /// General registers in the order of their encoding: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    pub general: [u64; 16],
    /// The instruction.
    pub rip: u64,
    /// What is on the stack, from the stack pointer up.
    pub stack: &'a [u8],
    /// What is mapped to be executed.
    pub modules: Vec<MappedModule<'a>>,
}

/// A part of a file in memory.
#[derive(Clone, Debug)]
pub struct MappedModule<'a> {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// What is at the first address, as an offset in the file.
    pub file_offset: u64,
    /// The file.
    pub path: &'a Path,
}

impl<'a> StoppedThread<'a> {
    /// The file that is mapped at an address, and the offset in it.
    pub(crate) fn find(&self, address: u64) -> Option<(&'a Path, u64)> {
        let module = self
            .modules
            .iter()
            .find(|m| (m.start..m.end).contains(&address))?;
        Some((
            module.path,
            module.file_offset.checked_add(address - module.start)?,
        ))
    }

    fn stack_word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.general[RSP])?).ok()?;
        let bytes = self.stack.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// The table of one module.
pub(crate) struct UnwindTable {
    frames: EhFrame<Reader>,
    bases: BaseAddresses,
    segments: Vec<Segment>,
}

impl UnwindTable {
    pub(crate) fn new(section: Reader, address: u64, segments: Vec<Segment>) -> Self {
        Self {
            frames: EhFrame::from(section),
            bases: BaseAddresses::default().set_eh_frame(address),
            segments,
        }
    }

    /// The state of the caller, from the state of the function that contains `file_offset`.
    fn caller(&self, thread: &StoppedThread<'_>, state: &State, file_offset: u64) -> Option<State> {
        let address = self
            .segments
            .iter()
            .find_map(|s| s.address_of(file_offset))?;
        let mut context = UnwindContext::new();
        let row = self
            .frames
            .unwind_info_for_address(&self.bases, &mut context, address, EhFrame::cie_from_offset)
            .ok()?;
        let cfa = match *row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                state.register(register)?.checked_add_signed(offset)?
            }
            CfaRule::Expression(_) => return None,
        };
        let saved = |rule: Option<RegisterRule<usize>>, now: Option<u64>| match rule
            .unwrap_or(RegisterRule::SameValue)
        {
            RegisterRule::Offset(offset) => thread.stack_word(cfa.checked_add_signed(offset)?),
            RegisterRule::ValOffset(offset) => cfa.checked_add_signed(offset),
            RegisterRule::Register(other) => state.register(other),
            // Nothing is said of registers that the function has not touched.
            RegisterRule::SameValue | RegisterRule::Undefined => now,
            _ => None,
        };
        // Where even the return address is undefined, the outermost function has been reached.
        let rip = saved(row.register(X86_64::RA), None)?;
        let mut caller = State {
            general: state.general,
            rip,
        };
        for (dwarf, &slot) in FROM_DWARF.iter().enumerate() {
            let number = u16::try_from(dwarf).expect("sixteen registers");
            caller.general[slot] =
                saved(row.register(Register(number)), Some(state.general[slot]))?;
        }
        caller.general[RSP] = cfa;
        Some(caller)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct State {
    general: [u64; 16],
    rip: u64,
}

impl State {
    pub(crate) fn register(&self, register: Register) -> Option<u64> {
        FROM_DWARF
            .get(usize::from(register.0))
            .map(|&slot| self.general[slot])
    }
}

/// A function that has been called and has not returned.
pub(crate) struct CalledFrame {
    /// The instruction, or of a caller, a byte of its call.
    pub(crate) place: u64,
    pub(crate) state: State,
    /// Where its frame ends: the caller's stack pointer. None for the outermost one.
    pub(crate) end: Option<u64>,
}

impl CalledFrame {
    /// Whether an address is in its part of the stack.
    pub(crate) fn holds(&self, address: u64) -> bool {
        let begins = self.state.general[RSP];
        address >= begins && self.end.is_none_or(|end| address < end)
    }
}

/// The frames of a thread, the innermost first.
pub(crate) fn walk(
    thread: &StoppedThread<'_>,
    table_of: &mut dyn FnMut(&Path) -> Option<Arc<UnwindTable>>,
) -> Vec<CalledFrame> {
    let mut frames = vec![CalledFrame {
        place: thread.rip,
        state: State {
            general: thread.general,
            rip: thread.rip,
        },
        end: None,
    }];
    while frames.len() < FRAMES_MAX {
        let first = frames.len() == 1;
        let frame = frames.last_mut().expect("one is always there");
        let state = frame.state;
        let caller = match thread.find(frame.place) {
            Some((path, file_offset)) => {
                table_of(path).and_then(|table| table.caller(thread, &state, file_offset))
            }
            // A call to where there is no code has pushed its return address and done nothing else.
            None if first => after_wild_call(thread, &state),
            None => None,
        };
        // A stack that does not get shorter is not one.
        let shorter = |caller: &State| caller.general[RSP] > state.general[RSP] && caller.rip > 0;
        let Some(caller) = caller.filter(shorter) else {
            break;
        };
        frame.end = Some(caller.general[RSP]);
        if thread.find(caller.rip - 1).is_none() {
            break;
        }
        frames.push(CalledFrame {
            place: caller.rip - 1,
            state: caller,
            end: None,
        });
    }
    frames
}

fn after_wild_call(thread: &StoppedThread<'_>, state: &State) -> Option<State> {
    let mut caller = *state;
    caller.rip = thread.stack_word(state.general[RSP])?;
    caller.general[RSP] = state.general[RSP].checked_add(8)?;
    Some(caller)
}
