//! What a watched instruction is about to do to memory.

use crate::Executor;
use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, Register,
    UsedMemory,
};
use verdict_cpu::Gpr;
use verdict_kernel::{Direction, Registers, syscall_buffers};
use verdict_schedule::NextAccess;

const DIRECTION_FLAG: u64 = 1 << 10;

impl Executor {
    /// The instruction that the current thread stands before, if it can be read.
    pub(crate) fn next_instruction(&mut self) -> Option<Instruction> {
        let pc = self.kernel.thread().registers.rip;
        let mut bytes = [0; 15];
        let len = self.kernel.memory.executable_len(pc, 15) as usize;
        self.kernel.memory.read(pc, &mut bytes[..len]).ok()?;
        let instruction = Decoder::with_ip(64, &bytes[..len], pc, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    /// The memory that the instruction will access.
    pub(crate) fn next_accesses(&mut self, instruction: &Instruction) -> Vec<NextAccess> {
        if instruction.code() == Code::Syscall {
            return self.accesses_of_call();
        }
        let registers = self.kernel.thread().registers.clone();
        let mut factory = InstructionInfoFactory::new();
        factory
            .info(instruction)
            .used_memory()
            .iter()
            .filter_map(|used| access(instruction, used, &registers))
            .collect()
    }
}

impl Executor {
    /// The object that a call is given first: a lock, where it takes one.
    pub(crate) fn first_argument(&mut self) -> NextAccess {
        NextAccess {
            address: self.kernel.thread().registers.get(Gpr::Rdi),
            len: 1,
            write: true,
        }
    }

    /// What a system call is given to read from and to write to. How much it will transfer is not known yet: all that it
    /// is asked for.
    fn accesses_of_call(&mut self) -> Vec<NextAccess> {
        let registers = &self.kernel.threads[self.kernel.current].registers;
        let args = [Gpr::Rdi, Gpr::Rsi, Gpr::Rdx, Gpr::R10, Gpr::R8, Gpr::R9]
            .map(|register| registers.get(register));
        let asked = i64::try_from(args[2]).unwrap_or(i64::MAX);
        let memory = &self.kernel.memory;
        let read_word = |address: u64| memory.read_u64(address).ok();
        syscall_buffers(registers.get(Gpr::Rax), &args, asked, &read_word)
            .iter()
            .map(|buffer| NextAccess {
                address: buffer.address,
                len: buffer.len,
                write: buffer.direction == Direction::Write,
            })
            .collect()
    }
}

fn access(
    instruction: &Instruction,
    used: &UsedMemory,
    registers: &Registers,
) -> Option<NextAccess> {
    let write = match used.access() {
        OpAccess::Read | OpAccess::CondRead => false,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
            true
        }
        _ => return None,
    };
    let value = |register: Register, _, _| Some(register_value(registers, register));
    let address = used.virtual_address(0, value)?;
    let len = used.memory_size().size() as u64;
    if !(instruction.has_rep_prefix() || instruction.has_repne_prefix())
        || !instruction.is_string_instruction()
    {
        return Some(NextAccess {
            address,
            len,
            write,
        });
    }
    let count = register_value(registers, Register::RCX);
    let total = len.saturating_mul(count);
    let start = if registers.rflags & DIRECTION_FLAG == 0 {
        address
    } else {
        address.wrapping_sub(total.saturating_sub(len))
    };
    (count > 0).then_some(NextAccess {
        address: start,
        len: total,
        write,
    })
}

/// A register's value as an address part; segment registers stand for their bases.
pub(crate) fn register_value(registers: &Registers, register: Register) -> u64 {
    match register {
        Register::FS => registers.fs_base,
        Register::GS => registers.gs_base,
        Register::CS | Register::DS | Register::ES | Register::SS => 0,
        Register::RIP => registers.rip,
        _ if register.is_gpr() => {
            let full = registers.gpr[register.full_register().number()];
            match register.size() {
                4 => full & 0xffff_ffff,
                _ => full,
            }
        }
        _ => 0,
    }
}
