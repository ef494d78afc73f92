//! Times of files, as a guest on the virtual clock sees them.
//!
//! When a file was last read depends on who else reads it, and when this very run changed a file depends on the
//! speed of the machine. A guest computes with both (an interpreter makes numbers of them), so either would make two
//! runs differ. Hence: a file was last read when it was last changed, and what changes during the run changes at its
//! start. Times that the guest itself sets, and everything older than the run, are as they are.
//!
//! The host gives files the time of its last tick. So the first change of a run waits until there was one since the start
//! (`changes`): otherwise files that somebody made right before the start would look like the run's own.

use crate::memory::SysResult;
use crate::time::SECOND_NS;
use crate::{ClockMode, Kernel};

/// Where a result of `stat` keeps its times: each is seconds, then nanoseconds.
struct Layout {
    accessed: u64,
    modified: u64,
    others: &'static [u64],
    nanoseconds_len: usize,
}

const STAT: Layout = Layout {
    accessed: 72,
    modified: 88,
    others: &[104],
    nanoseconds_len: 8,
};
const STATX: Layout = Layout {
    accessed: 64,
    modified: 112,
    others: &[80, 96],
    nanoseconds_len: 4,
};

impl Kernel {
    /// A call of the `stat` family; its path, if it has one, is argument `path`.
    pub(super) fn sys_stat(&mut self, number: u64, a: [u64; 6], path: Option<usize>) -> SysResult {
        let result = match path {
            Some(which) => self.sys_with_path(number, a, which),
            None => self.pass(number, a),
        }?;
        if self.clock.mode() == ClockMode::Virtual {
            let (buffer, layout) = match number as i64 {
                libc::SYS_statx => (a[4], STATX),
                libc::SYS_newfstatat => (a[2], STAT),
                _ => (a[1], STAT),
            };
            self.settle_times(buffer, &layout)?;
        }
        Ok(result)
    }

    fn settle_times(&mut self, buffer: u64, layout: &Layout) -> Result<(), i32> {
        for at in [&[layout.modified], layout.others].concat() {
            let mut nanoseconds = [0; 8];
            let part = &mut nanoseconds[..layout.nanoseconds_len];
            self.memory.read(buffer + at + 8, part)?;
            let seconds = self.memory.read_u64(buffer + at)?;
            let time = seconds
                .saturating_mul(SECOND_NS)
                .saturating_add(u64::from_le_bytes(nanoseconds));
            if self.clock.is_during_run(time) {
                self.write_time(buffer + at, self.clock.epoch(), layout)?;
            }
        }
        let mut modified = [0; 16];
        let len = 8 + layout.nanoseconds_len;
        self.memory
            .read(buffer + layout.modified, &mut modified[..len])?;
        self.memory
            .write(buffer + layout.accessed, &modified[..len])
    }

    fn write_time(&mut self, at: u64, time: u64, layout: &Layout) -> Result<(), i32> {
        let nanoseconds = (time % SECOND_NS).to_le_bytes();
        self.memory.write_u64(at, time / SECOND_NS)?;
        self.memory
            .write(at + 8, &nanoseconds[..layout.nanoseconds_len])
    }
}
