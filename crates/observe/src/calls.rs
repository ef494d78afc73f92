//! Each thread's stack of calls, followed by its calls and returns.
//!
//! Returns need not match calls: exceptions and `longjmp` leave frames behind. A return that goes elsewhere than the last
//! call expects throws away the frames above the one it goes to.

/// A call that has not returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    /// Where it returns to; 0 for the bottom of a signal handler.
    pub(crate) return_address: u64,
    /// The call instruction; 0 where it is not known.
    pub(crate) call: u64,
    /// The instruction of the program that left for a library within this frame: the call itself, or a jump.
    pub(crate) left: u64,
    /// The library's function that it went to.
    pub(crate) entered: u64,
}

impl Frame {
    pub(crate) fn new(return_address: u64, call: u64) -> Self {
        Frame {
            return_address,
            call,
            left: 0,
            entered: 0,
        }
    }

    /// The instruction that is to blame for what happens in the frame.
    pub(crate) fn blamed(&self) -> u64 {
        if self.left != 0 { self.left } else { self.call }
    }
}

/// Deeper calls are recursion without end; the oldest are forgotten.
const DEPTH_MAX: usize = 1 << 16;

/// A thread's stack of calls, innermost last.
#[derive(Default, Debug)]
pub(crate) struct Calls {
    frames: Vec<Frame>,
    /// Where the last return was expected to go, until it is known where it went.
    returning: Option<u64>,
}

impl Calls {
    /// True if the last thing that happened was a return.
    #[inline(always)]
    pub(crate) fn is_returning(&self) -> bool {
        self.returning.is_some()
    }

    pub(crate) fn depth(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn innermost_first(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().rev()
    }

    pub(crate) fn top(&mut self) -> Option<&mut Frame> {
        self.frames.last_mut()
    }

    pub(crate) fn call(&mut self, return_address: u64, call: u64) {
        if self.frames.len() == DEPTH_MAX {
            self.frames.drain(..DEPTH_MAX / 2);
        }
        self.frames.push(Frame::new(return_address, call));
        self.returning = None;
    }

    pub(crate) fn returns(&mut self) {
        self.returning = self.frames.pop().map(|frame| frame.return_address);
    }

    /// Nobody will say where the last return went.
    pub(crate) fn forget_return(&mut self) {
        self.returning = None;
    }

    /// The thread goes on at `pc`, right after a return if there was one.
    pub(crate) fn goes_on_at(&mut self, pc: u64) {
        if let Some(expected) = self.returning.take()
            && expected != pc
        {
            self.unwind_to(pc);
        }
    }

    /// A function that will return to `return_address` begins.
    pub(crate) fn enters(&mut self, return_address: u64) {
        self.returning = None;
        let expected = self.frames.last().map(|frame| frame.return_address);
        if expected != Some(return_address) && !self.unwind_above(return_address) {
            self.frames.push(Frame::new(return_address, 0));
        }
    }

    /// Throws away the frame that returns to `pc` and all above it, if there is one.
    fn unwind_to(&mut self, pc: u64) {
        if self.unwind_above(pc) {
            self.frames.pop();
        }
    }

    fn unwind_above(&mut self, return_address: u64) -> bool {
        let found = self
            .frames
            .iter()
            .rposition(|frame| frame.return_address == return_address);
        if let Some(found) = found {
            self.frames.truncate(found + 1);
        }
        found.is_some()
    }

    /// A signal handler begins.
    pub(crate) fn interrupted(&mut self) {
        self.frames.push(Frame::new(0, 0));
        self.returning = None;
    }

    /// A signal handler is over.
    pub(crate) fn resumed(&mut self) {
        self.unwind_to(0);
        self.returning = None;
    }
}
