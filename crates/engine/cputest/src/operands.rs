//! Random operands for an instruction form, and the instructions that prepare them.
//!
//! Most memory operands are preceded by moves of good addresses into their registers: wild addresses would end nearly
//! every program at its first access.

use crate::arena::{HIGH_DATA, INDICES, LOW_DATA, STACK};
use crate::random::Random;
use iced_x86::{Code, Instruction, Mnemonic, OpCodeOperandKind, OpKind, Register};
use verdict_cpu::layout::PAGE;

/// An instruction with what must come right before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) before: Vec<Instruction>,
    pub(crate) instruction: Instruction,
}

const GPR64: [Register; 16] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSP,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// Fills in the operands of a form; `None` if it has one that is not for user code.
pub(crate) fn random_instruction(
    random: &mut Random,
    code: Code,
    near_data: u64,
) -> Option<Prepared> {
    let form = code.op_code();
    let mut made = Prepared::default();
    made.instruction.set_code(code);
    for (operand, kind) in form.op_kinds().iter().enumerate() {
        set_operand(random, &mut made, operand as u32, *kind, near_data)?;
    }
    prefixes(random, &mut made, code);
    if code.mnemonic() == Mnemonic::Leave {
        made.before
            .push(move_to(Register::RBP, STACK + 8 * random.below(400)));
    }
    Some(made)
}

/// `mov register, value`
pub(crate) fn move_to(register: Register, value: u64) -> Instruction {
    Instruction::with2(Code::Mov_r64_imm64, register.full_register(), value)
        .expect("a move of a constant into a 64-bit register")
}

fn prefixes(random: &mut Random, made: &mut Prepared, code: Code) {
    let form = code.op_code();
    let to_memory = made.instruction.op0_kind() == OpKind::Memory;
    if form.can_use_lock_prefix() && to_memory && random.percent(50) {
        made.instruction.set_has_lock_prefix(true);
        if form.can_use_xacquire_prefix() && random.percent(20) {
            made.instruction.set_has_xacquire_prefix(true);
        }
    }
    let repeatable = form.can_use_rep_prefix() || form.can_use_repne_prefix();
    if repeatable && code.mnemonic() != Mnemonic::Pause && random.percent(50) {
        if form.can_use_repne_prefix() && random.percent(50) {
            made.instruction.set_has_repne_prefix(true);
        } else {
            made.instruction.set_has_rep_prefix(true);
        }
        if made.instruction.is_string_instruction() {
            made.before.push(move_to(Register::RCX, random.below(40)));
        }
    }
    if form.can_use_op_mask_register() && (form.require_op_mask_register() || random.percent(50)) {
        made.instruction
            .set_op_mask(numbered(Register::K0, 1 + random.below(7)));
        if form.can_use_zeroing_masking() && !to_memory {
            made.instruction.set_zeroing_masking(random.percent(50));
        }
    }
}

fn numbered(first: Register, number: u64) -> Register {
    first + number as u32
}

fn gpr(random: &mut Random) -> Register {
    loop {
        let register = random.pick(&GPR64);
        if register != Register::RSP || random.percent(3) {
            return register;
        }
    }
}

/// A general register of so many bytes.
fn sized_gpr(random: &mut Random, size: u32) -> Register {
    let number = gpr(random).number() as u64;
    match size {
        1 if random.percent(25) => numbered(Register::AH, random.below(4)),
        1 => {
            Register::AL
                + [0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19][number as usize] as u32
        }
        2 => numbered(Register::AX, number),
        4 => numbered(Register::EAX, number),
        _ => numbered(Register::RAX, number),
    }
}

fn vector(random: &mut Random, first: Register) -> Register {
    // Registers from 16 on exist under EVEX only, which chooses among the same sixteen: enough to mix them up.
    let count = if first == Register::MM0 || first == Register::K0 {
        8
    } else {
        16
    };
    numbered(first, random.below(count))
}

fn set_operand(
    random: &mut Random,
    made: &mut Prepared,
    operand: u32,
    kind: OpCodeOperandKind,
    near_data: u64,
) -> Option<()> {
    use OpCodeOperandKind as K;
    let memory_too = random.percent(55);
    let register = match kind {
        K::r8_or_mem
        | K::r16_or_mem
        | K::r32_or_mem
        | K::r64_or_mem
        | K::mm_or_mem
        | K::xmm_or_mem
        | K::ymm_or_mem
        | K::zmm_or_mem
        | K::k_or_mem
            if memory_too =>
        {
            return memory(random, made, operand, near_data);
        }
        K::mem => return memory(random, made, operand, near_data),
        K::mem_offs => return offset_operand(random, made, operand),
        K::mem_vsib32x | K::mem_vsib64x => return vsib(random, made, operand, Register::XMM0),
        K::mem_vsib32y | K::mem_vsib64y => return vsib(random, made, operand, Register::YMM0),
        K::mem_vsib32z | K::mem_vsib64z => return vsib(random, made, operand, Register::ZMM0),
        K::seg_rSI | K::es_rDI | K::seg_rDI | K::seg_rBX_al => {
            return implicit_memory(random, made, operand, kind);
        }
        K::imm4_m2z
        | K::imm8
        | K::imm8_const_1
        | K::imm8sex16
        | K::imm8sex32
        | K::imm8sex64
        | K::imm16
        | K::imm32
        | K::imm32sex64
        | K::imm64 => {
            return immediate(random, made, operand, kind);
        }
        K::r8_or_mem | K::r8_reg | K::r8_opcode => sized_gpr(random, 1),
        K::r16_or_mem | K::r16_reg | K::r16_rm | K::r16_opcode => sized_gpr(random, 2),
        K::r32_or_mem | K::r32_reg | K::r32_rm | K::r32_opcode | K::r32_vvvv => {
            sized_gpr(random, 4)
        }
        K::r64_or_mem | K::r64_reg | K::r64_rm | K::r64_opcode | K::r64_vvvv => {
            sized_gpr(random, 8)
        }
        K::r32_reg_mem | K::r64_reg_mem => {
            let register = loop {
                let register = gpr(random);
                if register != Register::RSP {
                    break register;
                }
            };
            let address = pointer(random, LOW_DATA) & !63;
            made.before.push(move_to(register, address));
            let wide = kind == K::r64_reg_mem;
            if wide {
                register
            } else {
                numbered(Register::EAX, register.number() as u64)
            }
        }
        K::seg_reg => random.pick(&[Register::ES, Register::DS, Register::FS, Register::GS]),
        K::k_or_mem | K::k_reg | K::k_rm | K::k_vvvv => vector(random, Register::K0),
        K::mm_or_mem | K::mm_reg | K::mm_rm => vector(random, Register::MM0),
        K::xmm_or_mem | K::xmm_reg | K::xmm_rm | K::xmm_vvvv | K::xmm_is4 | K::xmm_is5 => {
            vector(random, Register::XMM0)
        }
        K::ymm_or_mem | K::ymm_reg | K::ymm_rm | K::ymm_vvvv | K::ymm_is4 | K::ymm_is5 => {
            vector(random, Register::YMM0)
        }
        K::zmm_or_mem | K::zmm_reg | K::zmm_rm | K::zmm_vvvv => vector(random, Register::ZMM0),
        K::es => Register::ES,
        K::cs => Register::CS,
        K::ss => Register::SS,
        K::ds => Register::DS,
        K::fs => Register::FS,
        K::gs => Register::GS,
        K::al => Register::AL,
        K::cl => Register::CL,
        K::ax => Register::AX,
        K::dx => Register::DX,
        K::eax => Register::EAX,
        K::rax => Register::RAX,
        K::st0 => Register::ST0,
        K::sti_opcode => numbered(Register::ST0, random.below(8)),
        _ => return None,
    };
    made.instruction
        .try_set_op_kind(operand, OpKind::Register)
        .ok()?;
    made.instruction.try_set_op_register(operand, register).ok()
}

/// A place in a data page, mostly aligned, sometimes across its end.
fn pointer(random: &mut Random, page: u64) -> u64 {
    let alignment = random.pick(&[1, 4, 8, 16, 32, 64, 64, 64]);
    let end = if random.percent(3) {
        PAGE + 64
    } else {
        PAGE - 576
    };
    page + random.below(end) / alignment * alignment
}

fn data_page(random: &mut Random) -> u64 {
    random.pick(&[LOW_DATA, HIGH_DATA])
}

fn memory(random: &mut Random, made: &mut Prepared, operand: u32, near_data: u64) -> Option<()> {
    let page = data_page(random);
    let target = pointer(random, page);
    let shape = random.below(20);
    let narrow = shape < 3;
    let target = if narrow || (6..9).contains(&shape) {
        pointer(random, LOW_DATA)
    } else {
        target
    };
    let (base, index) = two_registers(random);
    let scale = 1u64 << random.below(4);
    let at = random.below(32);
    let displacement = if random.percent(50) {
        random.below(256) as i64 - 128
    } else {
        random.below(1 << 20) as i64
    };
    let size = |register: Register| {
        if narrow {
            numbered(Register::EAX, register.number() as u64)
        } else {
            register
        }
    };
    let instruction = &mut made.instruction;
    instruction.try_set_op_kind(operand, OpKind::Memory).ok()?;
    match shape {
        // base + displacement, 32 and 64 bits
        0 | 3 | 4 | 5 => {
            made.before
                .push(move_to(base, target.wrapping_sub(displacement as u64)));
            set_memory(instruction, size(base), Register::None, 1, displacement);
        }
        // base + index * scale + displacement
        1 | 9 | 10 | 11 => {
            let from = target
                .wrapping_sub(displacement as u64)
                .wrapping_sub(at * scale);
            made.before.push(move_to(base, from));
            made.before.push(move_to(index, at));
            set_memory(
                instruction,
                size(base),
                size(index),
                scale as u32,
                displacement,
            );
        }
        // index * scale + constant, and a constant alone
        2 | 6 => {
            made.before.push(move_to(index, at));
            set_memory(
                instruction,
                Register::None,
                size(index),
                scale as u32,
                (target - at * scale) as i64,
            );
            instruction.set_memory_displ_size(if narrow { 4 } else { 8 });
        }
        7 | 8 => {
            set_memory(
                instruction,
                Register::None,
                Register::None,
                1,
                target as i64,
            );
            instruction.set_memory_displ_size(8);
        }
        // rip
        12..16 => {
            set_memory(
                instruction,
                Register::RIP,
                Register::None,
                1,
                pointer(random, near_data) as i64,
            );
            instruction.set_memory_displ_size(8);
            if random.percent(8) {
                instruction.set_memory_base(Register::EIP);
                instruction
                    .set_memory_displacement64(instruction.memory_displacement64() & 0xffff_ffff);
                instruction.set_memory_displ_size(4);
            }
        }
        // fs and gs, whose bases the initial state puts into the data
        16 => {
            instruction.set_segment_prefix(random.pick(&[Register::FS, Register::GS]));
            if random.percent(50) {
                made.before.push(move_to(base, random.below(32) * 8));
                set_memory(instruction, base, Register::None, 1, displacement);
            } else {
                set_memory(
                    instruction,
                    Register::None,
                    Register::None,
                    1,
                    random.below(64) as i64,
                );
                instruction.set_memory_displ_size(8);
            }
        }
        // the stack, red zone included
        17 | 18 => set_memory(
            instruction,
            Register::RSP,
            Register::None,
            1,
            8 * random.below(64) as i64 - 128,
        ),
        // whatever the registers hold
        _ => {
            set_memory(instruction, base, index, scale as u32, displacement);
            if random.percent(50) {
                instruction.set_memory_index(Register::None);
            }
        }
    }
    Some(())
}

fn two_registers(random: &mut Random) -> (Register, Register) {
    loop {
        let (base, index) = (random.pick(&GPR64), random.pick(&GPR64));
        if base != index && base != Register::RSP && index != Register::RSP {
            return (base, index);
        }
    }
}

fn set_memory(
    instruction: &mut Instruction,
    base: Register,
    index: Register,
    scale: u32,
    displacement: i64,
) {
    instruction.set_memory_base(base);
    instruction.set_memory_index(index);
    instruction.set_memory_index_scale(if index == Register::None { 1 } else { scale });
    instruction.set_memory_displacement64(displacement as u64);
    instruction.set_memory_displ_size(match displacement {
        0 => 0,
        -128..128 => 1,
        _ if base.size() == 4 => 4,
        _ => 8,
    });
}

fn offset_operand(random: &mut Random, made: &mut Prepared, operand: u32) -> Option<()> {
    made.instruction
        .try_set_op_kind(operand, OpKind::Memory)
        .ok()?;
    let page = data_page(random);
    made.instruction
        .set_memory_displacement64(pointer(random, page));
    made.instruction.set_memory_displ_size(8);
    Some(())
}

fn vsib(random: &mut Random, made: &mut Prepared, operand: u32, first: Register) -> Option<()> {
    let (base, _) = two_registers(random);
    let index = vector(random, first);
    let page = data_page(random);
    made.before.push(move_to(base, pointer(random, page)));
    // Small indices, for most: from the page that holds nothing else.
    if random.percent(85) {
        let mut load = Instruction::default();
        load.set_code(Code::VEX_Vmovdqu_ymm_ymmm256);
        load.set_op0_kind(OpKind::Register);
        load.set_op0_register(numbered(Register::YMM0, index.number() as u64));
        load.set_op1_kind(OpKind::Memory);
        load.set_memory_displacement64(INDICES + 8 * random.below(64));
        load.set_memory_displ_size(8);
        made.before.push(load);
    }
    made.instruction
        .try_set_op_kind(operand, OpKind::Memory)
        .ok()?;
    set_memory(&mut made.instruction, base, index, 1 << random.below(4), 0);
    Some(())
}

fn implicit_memory(
    random: &mut Random,
    made: &mut Prepared,
    operand: u32,
    kind: OpCodeOperandKind,
) -> Option<()> {
    use OpCodeOperandKind as K;
    let narrow = random.percent(12);
    let page = if narrow { LOW_DATA } else { data_page(random) };
    let address = pointer(random, page);
    let (register, op_kind) = match (kind, narrow) {
        (K::seg_rSI, false) => (Register::RSI, OpKind::MemorySegRSI),
        (K::seg_rSI, true) => (Register::RSI, OpKind::MemorySegESI),
        (K::es_rDI, false) => (Register::RDI, OpKind::MemoryESRDI),
        (K::es_rDI, true) => (Register::RDI, OpKind::MemoryESEDI),
        (K::seg_rDI, false) => (Register::RDI, OpKind::MemorySegRDI),
        (K::seg_rDI, true) => (Register::RDI, OpKind::MemorySegEDI),
        _ => {
            made.before.push(move_to(Register::RBX, address));
            made.instruction
                .try_set_op_kind(operand, OpKind::Memory)
                .ok()?;
            let base = if narrow { Register::EBX } else { Register::RBX };
            set_memory(&mut made.instruction, base, Register::AL, 1, 0);
            return Some(());
        }
    };
    // Both operands of a string instruction have the same address size.
    let op_kind = match (operand, made.instruction.op0_kind()) {
        (1, OpKind::MemoryESRDI) => OpKind::MemorySegRSI,
        (1, OpKind::MemoryESEDI) => OpKind::MemorySegESI,
        (1, OpKind::MemorySegRSI) => OpKind::MemoryESRDI,
        (1, OpKind::MemorySegESI) => OpKind::MemoryESEDI,
        _ => op_kind,
    };
    let low = matches!(
        op_kind,
        OpKind::MemorySegESI | OpKind::MemoryESEDI | OpKind::MemorySegEDI
    );
    let address = if low {
        pointer(random, LOW_DATA)
    } else {
        address
    };
    made.before.push(move_to(register, address));
    made.instruction.try_set_op_kind(operand, op_kind).ok()
}

fn immediate(
    random: &mut Random,
    made: &mut Prepared,
    operand: u32,
    kind: OpCodeOperandKind,
) -> Option<()> {
    use OpCodeOperandKind as K;
    let value = random.value();
    let enter = made.instruction.mnemonic() == Mnemonic::Enter;
    let (op_kind, value) = match kind {
        K::imm4_m2z => (OpKind::Immediate8, value & 3),
        K::imm8_const_1 => (OpKind::Immediate8, 1),
        K::imm8 if enter => (OpKind::Immediate8_2nd, random.below(4)),
        K::imm8 if operand > 0 && made.instruction.op_kind(operand - 1) == OpKind::Immediate8 => {
            (OpKind::Immediate8_2nd, value & 0xff)
        }
        K::imm8 => (OpKind::Immediate8, value & 0xff),
        K::imm8sex16 => (OpKind::Immediate8to16, value as i8 as i64 as u64),
        K::imm8sex32 => (OpKind::Immediate8to32, value as i8 as i64 as u64),
        K::imm8sex64 => (OpKind::Immediate8to64, value as i8 as i64 as u64),
        K::imm16 if enter => (OpKind::Immediate16, random.below(128)),
        K::imm16 => (OpKind::Immediate16, value & 0xffff),
        K::imm32 => (OpKind::Immediate32, value & 0xffff_ffff),
        K::imm32sex64 => (OpKind::Immediate32to64, value as i32 as i64 as u64),
        _ => (OpKind::Immediate64, value),
    };
    made.instruction.try_set_op_kind(operand, op_kind).ok()?;
    made.instruction.try_set_immediate_u64(operand, value).ok()
}
