//! What a run starts from and what it leaves behind.

use crate::arena::{CONTENTS_LEN, Contents, HIGH_DATA, LOW_DATA, STACK, WRITABLE};
use crate::program::Encoded;
use crate::random::Random;
use crate::vectors::VectorLayout;
use verdict_cpu::{GPR_NAMES, Gpr, layout::PAGE};

/// The six flags that arithmetic sets.
pub(crate) const ARITHMETIC: u64 = 0x8d5;
/// Trap and resume: the test's own, never the guest's.
pub(crate) const STEPPING: u64 = 1 << 8 | 1 << 16;
const ALWAYS: u64 = 0x202;
const DIRECTION: u64 = 1 << 10;
const ALIGNMENT_CHECK: u64 = 1 << 18;

/// Everything an instruction can change.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) gpr: [u64; 16],
    pub(crate) rip: u64,
    pub(crate) rflags: u64,
    pub(crate) fs_base: u64,
    pub(crate) gs_base: u64,
    /// An XSAVE area.
    pub(crate) vectors: Vec<u8>,
    pub(crate) memory: Contents,
}

/// How a program was stopped by the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) signal: i32,
    pub(crate) code: i32,
    /// The address that was accessed, for SIGSEGV and SIGBUS.
    pub(crate) address: u64,
    pub(crate) trap: u64,
    pub(crate) error: u64,
}

impl State {
    /// A state to begin the program with.
    pub(crate) fn random(random: &mut Random, layout: &VectorLayout, program: &Encoded) -> Self {
        let mut gpr = [0u64; 16];
        for value in &mut gpr {
            *value = match random.below(4) {
                0 => random.pick(&WRITABLE) + random.below(PAGE - 64),
                _ => random.value(),
            };
        }
        gpr[Gpr::Rsp as usize] = STACK + PAGE / 2 + 8 * random.below(64);
        let mut rflags = ALWAYS | random.next() & ARITHMETIC;
        if random.percent(10) {
            rflags |= DIRECTION;
        }
        if random.percent(2) {
            rflags |= ALIGNMENT_CHECK;
        }
        let mut memory = vec![0u8; CONTENTS_LEN].into_boxed_slice();
        random.fill(&mut memory);
        State {
            gpr,
            rip: program.start,
            rflags,
            fs_base: LOW_DATA + 512,
            gs_base: HIGH_DATA + 512,
            vectors: layout.random(random, program.saves_environment),
            memory,
        }
    }

    /// The first differences from what is expected, in words.
    pub(crate) fn differences(
        &self,
        expected: &State,
        flags: u64,
        layout: &VectorLayout,
    ) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |name: &str, is: u64, should: u64| {
            if is != should {
                found.push(format!("{name} is {is:#x}, natively {should:#x}"));
            }
        };
        compare("rip", self.rip, expected.rip);
        for (number, name) in GPR_NAMES.iter().enumerate() {
            compare(name, self.gpr[number], expected.gpr[number]);
        }
        compare("rflags", self.rflags & flags, expected.rflags & flags);
        compare("fs base", self.fs_base, expected.fs_base);
        compare("gs base", self.gs_base, expected.gs_base);
        let (is, should) = (
            layout.normal(&self.vectors),
            layout.normal(&expected.vectors),
        );
        if is != should {
            let at = first_difference(&is, &should);
            found.push(format!(
                "{} is {:#04x}, natively {:#04x}",
                layout.place(at),
                is[at],
                should[at]
            ));
        }
        if self.memory != expected.memory {
            let at = first_difference(&self.memory, &expected.memory);
            let address = WRITABLE[at / PAGE as usize] + at as u64 % PAGE;
            found.push(format!(
                "memory at {address:#x} is {:#04x}, natively {:#04x}",
                self.memory[at], expected.memory[at]
            ));
        }
        found
    }
}

fn first_difference(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(0)
}
