//! Encodes the few instruction shapes that translation synthesises. All operate on absolute addresses below
//! 2 GB (the context, the tables; the code itself lies there too) or on registers, and none but those named so touch the flags.

use crate::counter::VectorWidth;
use iced_x86::{Encoder, Instruction};
use verdict_cpu::{ExitReason, Gpr, layout, offset};

/// Host code under construction, to be placed at a known address.
pub(crate) struct Emitter {
    pub(crate) bytes: Vec<u8>,
    base: u64,
    /// Made where it is needed first: most code is written without it.
    encoder: Option<Encoder>,
    pub(crate) width: VectorWidth,
}

/// How much code there is room for at first: that of most blocks.
const ROOM: usize = 2048;

/// A rel32 whose target is not emitted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forward(usize);

impl Forward {
    /// Offset of the rel32.
    pub(crate) fn at(self) -> u32 {
        self.0 as u32
    }
}

impl Emitter {
    pub(crate) fn new(base: u64) -> Self {
        Emitter {
            bytes: Vec::with_capacity(ROOM),
            base,
            encoder: None,
            width: VectorWidth::of_host(),
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

    pub(crate) fn imm32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// Encodes any instruction at the current address; `None` if an operand cannot reach.
    pub(crate) fn instruction(&mut self, instruction: &Instruction) -> Option<()> {
        let here = self.here();
        let encoder = self.encoder.get_or_insert_with(|| Encoder::new(64));
        let encoded = encoder.encode(instruction, here);
        // An encoder that fails leaves what it had written so far.
        let bytes = encoder.take_buffer();
        if encoded.is_ok() {
            self.bytes.extend_from_slice(&bytes);
        }
        encoder.set_buffer(bytes_cleared(bytes));
        encoded.ok().map(|_| ())
    }

    /// ModRM + disp32 for `[absolute]` by way of rip, with `reg` in ModRM.reg; so many bytes of the instruction follow.
    pub(crate) fn absolute(&mut self, reg: u8, address: u32, following: u64) {
        self.raw(&[(reg & 7) << 3 | 0b101]);
        let next = self.here() + 4 + following;
        self.imm32((u64::from(address)).wrapping_sub(next) as u32);
    }

    /// ModRM and displacement for `[base + displacement]`, as short as it goes; base any register but rsp and r12.
    pub(crate) fn based(&mut self, reg: u8, base: u8, displacement: i32) {
        debug_assert!(base & 7 != 4, "rsp and r12 need a SIB");
        let modrm = (reg & 7) << 3 | (base & 7);
        match i8::try_from(displacement) {
            Ok(near) => self.raw(&[0x40 | modrm, near as u8]),
            Err(_) => {
                self.raw(&[0x80 | modrm]);
                self.imm32(displacement as u32);
            }
        }
    }

    /// `mov [absolute], reg`
    pub(crate) fn store(&mut self, address: u32, reg: Gpr) {
        let reg = reg as u8;
        self.raw(&[0x48 | (reg >> 3) << 2, 0x89]);
        self.absolute(reg, address, 0);
    }

    /// `mov reg, [absolute]`
    pub(crate) fn load(&mut self, reg: Gpr, address: u32) {
        let reg = reg as u8;
        self.raw(&[0x48 | (reg >> 3) << 2, 0x8b]);
        self.absolute(reg, address, 0);
    }

    /// `mov qword [absolute], imm`: one store where the value allows it.
    pub(crate) fn store_value(&mut self, address: u32, value: u64) {
        if i32::try_from(value as i64).is_ok() {
            self.raw(&[0x48, 0xc7]);
            self.absolute(0, address, 4);
            self.imm32(value as u32);
        } else {
            for (at, half) in [(address, value as u32), (address + 4, (value >> 32) as u32)] {
                self.store_half(at, half);
            }
        }
    }

    /// `mov dword [absolute], imm32`
    pub(crate) fn store_half(&mut self, address: u32, value: u32) {
        self.raw(&[0xc7]);
        self.absolute(0, address, 4);
        self.imm32(value);
    }

    /// `mov reg, imm64`
    pub(crate) fn load_value(&mut self, reg: Gpr, value: u64) {
        let reg = reg as u8;
        self.raw(&[0x48 | reg >> 3, 0xb8 | (reg & 7)]);
        self.raw(&value.to_le_bytes());
    }

    /// `lea reg, [reg + displacement]` for registers that need no SIB.
    pub(crate) fn lea_self(&mut self, reg: Gpr, displacement: i32) {
        let reg = reg as u8;
        self.raw(&[0x48 | (reg >> 3) << 2 | reg >> 3, 0x8d]);
        self.based(reg, reg, displacement);
    }

    /// `lea rsp, [rsp + displacement]`
    pub(crate) fn lea_rsp(&mut self, displacement: i32) {
        match i8::try_from(displacement) {
            Ok(near) => self.raw(&[0x48, 0x8d, 0x64, 0x24, near as u8]),
            Err(_) => {
                self.raw(&[0x48, 0x8d, 0xa4, 0x24]);
                self.imm32(displacement as u32);
            }
        }
    }

    /// `mov [base + displacement], reg`; base any register but rsp and r12.
    pub(crate) fn store_at(&mut self, base: Gpr, displacement: i32, reg: Gpr) {
        let (base, reg) = (base as u8, reg as u8);
        self.raw(&[0x48 | (reg >> 3) << 2 | base >> 3, 0x89]);
        self.based(reg, base, displacement);
    }

    /// `mov qword [base + displacement], imm32` (zero- and sign-extended alike: the value is below 2^31).
    pub(crate) fn store_small_at(&mut self, base: Gpr, displacement: i32, value: u32) {
        debug_assert!(value < 1 << 31);
        let base = base as u8;
        self.raw(&[0x48 | base >> 3, 0xc7]);
        self.based(0, base, displacement);
        self.imm32(value);
    }

    /// `mov dword [base + displacement], imm32`
    pub(crate) fn store_half_at(&mut self, base: Gpr, displacement: i32, value: u32) {
        let base = base as u8;
        if base >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0xc7]);
        self.based(0, base, displacement);
        self.imm32(value);
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

    /// `jmp rel32` to code elsewhere in the cache.
    pub(crate) fn jump_to(&mut self, address: u64) {
        self.raw(&[0xe9]);
        let distance = address.wrapping_sub(self.here() + 4);
        self.imm32(distance as u32);
    }

    /// `jcc rel32` to code elsewhere in the cache.
    pub(crate) fn jump_if_to(&mut self, condition: u8, address: u64) {
        self.raw(&[0x0f, 0x80 | condition]);
        let distance = address.wrapping_sub(self.here() + 4);
        self.imm32(distance as u32);
    }

    /// `jmp [absolute]`
    pub(crate) fn jump_through(&mut self, address: u32) {
        self.raw(&[0xff]);
        self.absolute(4, address, 0);
    }

    /// Leaves for the engine; rip and detail are set by the caller.
    pub(crate) fn exit(&mut self, reason: ExitReason) {
        self.store_value(offset::EXIT_REASON, reason as u64);
        self.jump_to(layout::CACHE_LEAVE);
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
