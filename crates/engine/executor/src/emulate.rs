//! Instructions that the engine performs itself.

use crate::{Executor, cpuid};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use verdict_cpu::Gpr;
use verdict_kernel::{Outcome, SignalInfo};

const CARRY: u64 = 1;
const ZERO: u64 = 1 << 6;
const ARITHMETIC: u64 = 0x8d5;
const ILL_ILLOPN: i32 = 2;
const TRAP_INVALID_OPCODE: u64 = 6;

impl Executor {
    /// Performs the instruction at the running thread's rip.
    pub(crate) fn emulate(&mut self) -> Outcome {
        let pc = self.kernel.thread().registers.rip;
        let mut bytes = [0; 15];
        let len = self.kernel.memory.executable_len(pc, 15) as usize;
        if self.kernel.memory.read(pc, &mut bytes[..len]).is_err() {
            return self.illegal(pc);
        }
        let instruction = Decoder::with_ip(64, &bytes[..len], pc, DecoderOptions::NONE).decode();
        let now = self.kernel.now();
        let random = match instruction.mnemonic() {
            Mnemonic::Rdrand | Mnemonic::Rdseed => self.kernel.random_u64(),
            _ => 0,
        };
        let registers = &mut self.kernel.thread().registers;
        registers.rip = instruction.next_ip();
        match instruction.mnemonic() {
            Mnemonic::Cpuid => {
                let answer = cpuid::guest_cpuid(
                    registers.get(Gpr::Rax) as u32,
                    registers.get(Gpr::Rcx) as u32,
                );
                for (register, value) in [Gpr::Rax, Gpr::Rbx, Gpr::Rcx, Gpr::Rdx]
                    .into_iter()
                    .zip(answer)
                {
                    registers.set(register, u64::from(value));
                }
            }
            Mnemonic::Rdtsc | Mnemonic::Rdtscp => {
                registers.set(Gpr::Rax, now & 0xffff_ffff);
                registers.set(Gpr::Rdx, now >> 32);
                if instruction.mnemonic() == Mnemonic::Rdtscp {
                    registers.set(Gpr::Rcx, 0);
                }
            }
            Mnemonic::Xgetbv => {
                let value = cpuid::guest_xcr0();
                registers.set(Gpr::Rax, value & 0xffff_ffff);
                registers.set(Gpr::Rdx, value >> 32);
            }
            Mnemonic::Rdrand | Mnemonic::Rdseed => {
                registers.rflags = registers.rflags & !ARITHMETIC | CARRY;
                set_register(registers, instruction.op0_register(), random);
            }
            Mnemonic::Rdpid => set_register(registers, instruction.op0_register(), 0),
            // A transaction aborts at once, as on a CPU that never lets one commit.
            Mnemonic::Xbegin => {
                registers.set(Gpr::Rax, 0);
                registers.rip = instruction.near_branch_target();
            }
            Mnemonic::Xtest => registers.rflags = registers.rflags & !ARITHMETIC | ZERO,
            Mnemonic::Xabort => {}
            Mnemonic::Int
            | Mnemonic::Sysenter
            | Mnemonic::Retf
            | Mnemonic::Iret
            | Mnemonic::Iretd
            | Mnemonic::Iretq => {
                return Outcome::Refused(format!(
                    "the guest uses the instruction `{}`, a 32-bit or privileged way in and out of code that the engine does not support",
                    name(&instruction)
                ));
            }
            _ => return self.illegal(pc),
        }
        self.thread_moved_on();
        Outcome::Continue
    }

    /// What the CPU does with an instruction it does not have.
    fn illegal(&mut self, pc: u64) -> Outcome {
        self.kernel.thread().registers.rip = pc;
        self.signals += 1;
        self.kernel.deliver(SignalInfo::from_fault(
            libc::SIGILL,
            ILL_ILLOPN,
            pc,
            TRAP_INVALID_OPCODE,
            0,
        ))
    }
}

fn name(instruction: &Instruction) -> String {
    match instruction.mnemonic() {
        Mnemonic::Int => format!("int {:#x}", instruction.immediate8()),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// Writes a general register of any width as the CPU does.
fn set_register(registers: &mut verdict_kernel::Registers, register: Register, value: u64) {
    let index = register.full_register().number();
    let old = registers.gpr[index];
    registers.gpr[index] = match register.size() {
        2 => old & !0xffff | value & 0xffff,
        4 => value & 0xffff_ffff,
        _ => value,
    };
}
