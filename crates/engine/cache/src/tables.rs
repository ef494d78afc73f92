//! The two lookup tables of indirect branches, at the addresses that translated code has built in.

use verdict_cpu::layout::{TABLE1, TABLE1_ENTRIES, TABLE2, TABLE2_ENTRIES};

#[derive(Debug)]
pub(crate) struct Tables {
    /// Where an empty slot of the first level leads: the second-level routine.
    lookup_routine: u64,
}

impl Tables {
    pub(crate) fn new(lookup_routine: u64) -> std::io::Result<Self> {
        for (address, len) in [(TABLE1, TABLE1_ENTRIES * 8), (TABLE2, TABLE2_ENTRIES * 16)] {
            // SAFETY: the layout reserves these addresses for the tables.
            let mapped = unsafe {
                libc::mmap(
                    address as *mut libc::c_void,
                    len as usize,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if mapped == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
        }
        let mut tables = Tables { lookup_routine };
        tables.level1().fill(lookup_routine);
        tables.level2()[0] = empty_slot(0);
        Ok(tables)
    }

    fn level1(&mut self) -> &mut [u64] {
        // SAFETY: mapped in `new` for good; the guest runs only while no reference is held.
        unsafe { std::slice::from_raw_parts_mut(TABLE1 as *mut u64, TABLE1_ENTRIES as usize) }
    }

    fn level2(&mut self) -> &mut [[u64; 2]] {
        // SAFETY: as for `level1`.
        unsafe { std::slice::from_raw_parts_mut(TABLE2 as *mut [u64; 2], TABLE2_ENTRIES as usize) }
    }

    /// Lets indirect branches to `pc` arrive at `pad`.
    pub(crate) fn insert(&mut self, pc: u64, pad: u64) {
        self.level1()[level1_index(pc)] = pad;
        self.level2()[level2_index(pc)] = [pc, pad];
    }

    /// Forgets `pc` and its pad.
    pub(crate) fn remove(&mut self, pc: u64, pad: u64) {
        let lookup = self.lookup_routine;
        let slot = &mut self.level1()[level1_index(pc)];
        if *slot == pad {
            *slot = lookup;
        }
        let index = level2_index(pc);
        let slot = &mut self.level2()[index];
        if slot[0] == pc {
            *slot = empty_slot(index);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        let lookup = self.lookup_routine;
        self.level1().fill(lookup);
        self.level2().fill([0, 0]);
        self.level2()[0] = empty_slot(0);
    }
}

/// A slot that no address finds: its key is one that belongs elsewhere. Key 0 will not do where address 0 itself is
/// looked up, as every call of a null pointer does.
fn empty_slot(index: usize) -> [u64; 2] {
    [u64::from(index == level2_index(0)), 0]
}

fn level1_index(pc: u64) -> usize {
    (pc & (TABLE1_ENTRIES - 1)) as usize
}

/// Must be what `verdict_lookup` in verdict-cpu computes.
fn level2_index(pc: u64) -> usize {
    ((pc ^ pc >> 16) & (TABLE2_ENTRIES - 1)) as usize
}
