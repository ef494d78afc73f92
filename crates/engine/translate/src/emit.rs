//! Encodes the few instruction shapes that translation synthesises. All operate on absolute addresses below
//! 2 GB (the context, the tables) or on registers, and none but those named so touch the flags.

use iced_x86::{Encoder, Instruction};
use verdict_cpu::{ExitReason, Gpr, offset};

/// Host code under construction, to be placed at a known address.
pub(crate) struct Emitter {
    pub(crate) bytes: Vec<u8>,
    base: u64,
    encoder: Encoder,
}

/// A rel32 whose target is not emitted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forward(usize);

impl Emitter {
    pub(crate) fn new(base: u64) -> Self {
        Emitter {
            bytes: Vec::with_capacity(512),
            base,
            encoder: Encoder::new(64),
        }
    }

    /// Address of the next byte.
    pub(crate) fn here(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn imm32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// Encodes any instruction at the current address; `None` if an operand cannot reach.
    pub(crate) fn instruction(&mut self, instruction: &Instruction) -> Option<()> {
        let encoded = self.encoder.encode(instruction, self.here());
        // An encoder that fails leaves what it had written so far.
        let bytes = self.encoder.take_buffer();
        if encoded.is_ok() {
            self.raw(&bytes);
        }
        self.encoder.set_buffer(bytes_cleared(bytes));
        encoded.ok().map(|_| ())
    }

    /// ModRM + SIB + disp32 for `[absolute]`, with `reg` in ModRM.reg.
    fn absolute(&mut self, reg: u8, address: u32) {
        self.raw(&[(reg & 7) << 3 | 0b100, 0x25]);
        self.imm32(address);
    }

    /// `mov [absolute], reg`
    pub(crate) fn store(&mut self, address: u32, reg: Gpr) {
        let reg = reg as u8;
        self.raw(&[0x48 | (reg >> 3) << 2, 0x89]);
        self.absolute(reg, address);
    }

    /// `mov reg, [absolute]`
    pub(crate) fn load(&mut self, reg: Gpr, address: u32) {
        let reg = reg as u8;
        self.raw(&[0x48 | (reg >> 3) << 2, 0x8b]);
        self.absolute(reg, address);
    }

    /// `mov qword [absolute], imm`: one store where the value allows it.
    pub(crate) fn store_value(&mut self, address: u32, value: u64) {
        if i32::try_from(value as i64).is_ok() {
            self.raw(&[0x48, 0xc7]);
            self.absolute(0, address);
            self.imm32(value as u32);
        } else {
            for (at, half) in [(address, value as u32), (address + 4, (value >> 32) as u32)] {
                self.raw(&[0xc7]);
                self.absolute(0, at);
                self.imm32(half);
            }
        }
    }

    /// `mov reg, imm64`
    pub(crate) fn load_value(&mut self, reg: Gpr, value: u64) {
        let reg = reg as u8;
        self.raw(&[0x48 | reg >> 3, 0xb8 | (reg & 7)]);
        self.raw(&value.to_le_bytes());
    }

    /// `lea reg, [reg + disp32]` for registers that need no SIB.
    pub(crate) fn lea_self(&mut self, reg: Gpr, displacement: i32) {
        debug_assert!(!matches!(reg, Gpr::Rsp | Gpr::R12));
        let reg = reg as u8;
        self.raw(&[
            0x48 | (reg >> 3) << 2 | reg >> 3,
            0x8d,
            0x80 | (reg & 7) << 3 | (reg & 7),
        ]);
        self.imm32(displacement as u32);
    }

    /// `lea rsp, [rsp + disp32]`
    pub(crate) fn lea_rsp(&mut self, displacement: i32) {
        self.raw(&[0x48, 0x8d, 0xa4, 0x24]);
        self.imm32(displacement as u32);
    }

    /// `mov [base + disp32], reg`; base any register but rsp and r12.
    pub(crate) fn store_at(&mut self, base: Gpr, displacement: i32, reg: Gpr) {
        debug_assert!(!matches!(base, Gpr::Rsp | Gpr::R12));
        let (base, reg) = (base as u8, reg as u8);
        self.raw(&[
            0x48 | (reg >> 3) << 2 | base >> 3,
            0x89,
            0x80 | (reg & 7) << 3 | (base & 7),
        ]);
        self.imm32(displacement as u32);
    }

    /// `mov qword [base + disp32], imm32` (zero- and sign-extended alike: the value is below 2^31).
    pub(crate) fn store_small_at(&mut self, base: Gpr, displacement: i32, value: u32) {
        debug_assert!(value < 1 << 31 && !matches!(base, Gpr::Rsp | Gpr::R12));
        let base = base as u8;
        self.raw(&[0x48 | base >> 3, 0xc7, 0x80 | (base & 7)]);
        self.imm32(displacement as u32);
        self.imm32(value);
    }

    /// `mov dword [base + disp32], imm32`
    pub(crate) fn store_half_at(&mut self, base: Gpr, displacement: i32, value: u32) {
        debug_assert!(!matches!(base, Gpr::Rsp | Gpr::R12));
        let base = base as u8;
        if base >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0xc7, 0x80 | (base & 7)]);
        self.imm32(displacement as u32);
        self.imm32(value);
    }

    /// `sub qword [absolute], imm`: changes the flags.
    pub(crate) fn subtract(&mut self, address: u32, value: u32) {
        self.arithmetic(5, address, value);
    }

    /// `add qword [absolute], imm`: changes the flags.
    pub(crate) fn add(&mut self, address: u32, value: u32) {
        self.arithmetic(0, address, value);
    }

    fn arithmetic(&mut self, operation: u8, address: u32, value: u32) {
        if value < 0x80 {
            self.raw(&[0x48, 0x83]);
            self.absolute(operation, address);
            self.raw(&[value as u8]);
        } else {
            self.raw(&[0x48, 0x81]);
            self.absolute(operation, address);
            self.imm32(value);
        }
    }

    /// `movzx ecx, byte [absolute]`
    pub(crate) fn load_byte_rcx(&mut self, address: u32) {
        self.raw(&[0x0f, 0xb6]);
        self.absolute(1, address);
    }

    /// Pushes a guest return address without touching flags or registers.
    pub(crate) fn push_value(&mut self, value: u64) {
        if value < 1 << 31 {
            self.raw(&[0x68]);
            self.imm32(value as u32);
        } else {
            self.raw(&[0xc7, 0x44, 0x24, 0xf8]); // mov dword [rsp-8], low
            self.imm32(value as u32);
            self.raw(&[0xc7, 0x44, 0x24, 0xfc]); // mov dword [rsp-4], high
            self.imm32((value >> 32) as u32);
            self.raw(&[0x48, 0x8d, 0x64, 0x24, 0xf8]); // lea rsp, [rsp-8]
        }
    }

    /// `jmp rel32` to a place not emitted yet.
    pub(crate) fn jump(&mut self) -> Forward {
        self.raw(&[0xe9]);
        self.forward()
    }

    /// `jcc rel32`, the condition as the low nibble of its opcode.
    pub(crate) fn jump_if(&mut self, condition: u8) -> Forward {
        self.raw(&[0x0f, 0x80 | condition]);
        self.forward()
    }

    fn forward(&mut self) -> Forward {
        self.imm32(0);
        Forward(self.offset() - 4)
    }

    /// Lets a forward jump end here.
    pub(crate) fn bind(&mut self, forward: Forward) {
        let distance = (self.offset() - forward.0 - 4) as u32;
        self.bytes[forward.0..forward.0 + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// Offset of the rel32 of a forward jump.
    pub(crate) fn patch_offset(forward: Forward) -> u32 {
        forward.0 as u32
    }

    /// `jmp [absolute]`
    pub(crate) fn jump_through(&mut self, address: u32) {
        self.raw(&[0xff]);
        self.absolute(4, address);
    }

    /// Leaves for the engine; rip and detail are set by the caller.
    pub(crate) fn exit(&mut self, reason: ExitReason) {
        self.store_value(offset::EXIT_REASON, reason as u64);
        self.jump_through(offset::EXIT_ROUTINE);
    }

    /// Leaves for the engine at a given guest address.
    pub(crate) fn exit_at(&mut self, reason: ExitReason, rip: u64) {
        self.store_value(offset::RIP, rip);
        self.exit(reason);
    }
}

fn bytes_cleared(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.clear();
    bytes
}
