//! A random program: a list of items that can be encoded at an address, and shortened when it fails.

use crate::arena::{HIGH_CODE, HIGH_DATA, LOW_CODE, LOW_DATA, STACK};
use crate::forms::{Forms, Use, loads_segment, use_of};
use crate::operands::{move_to, random_instruction};
use crate::random::Random;
use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, Instruction, MemoryOperand, OpKind, Register,
};
use verdict_cpu::{ExitReason, layout::PAGE, offset};

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    /// As it is.
    Plain(Instruction),
    /// Bytes that no assembler would write.
    Bytes { bytes: [u8; 15], len: usize },
    /// A direct branch to the item of this number, or to the end.
    Branch { code: Code, to: usize },
    /// `lea register, [rip + ...]`: the address of an item.
    Address { register: Register, to: usize },
}

/// What is run both ways.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) items: Vec<Item>,
    pub(crate) start: u64,
}

/// A program in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    pub(crate) start: u64,
    pub(crate) code: Vec<u8>,
    /// The address after the last item: the program is over when it gets there.
    pub(crate) end: u64,
    /// Whether an instruction writes the x87 or vector state to memory.
    pub(crate) saves_environment: bool,
    /// Whether it was made here. Code that somebody gives is run as it is.
    pub(crate) is_made: bool,
}

/// Most items of a program.
const ITEMS_MAX: u64 = 64;

impl Program {
    /// A program in which the form `must` occurs early.
    pub(crate) fn random(random: &mut Random, forms: &Forms, must: Code) -> Self {
        let high = random.percent(50);
        let region = if high { HIGH_CODE } else { LOW_CODE };
        let near_data = if high { HIGH_DATA } else { LOW_DATA };
        let mut maker = Maker {
            random,
            forms,
            near_data,
            items: Vec::new(),
            environment: false,
        };
        maker.environment = match use_of(must) {
            Use::SavesEnvironment => true,
            Use::X87 => false,
            Use::Plain => maker.random.percent(30),
        };
        let wanted = 1 + maker.random.below(ITEMS_MAX);
        if maker.random.percent(50) {
            maker.any_form();
        }
        maker.form(must);
        while (maker.items.len() as u64) < wanted {
            maker.next();
        }
        // Programs begin anywhere in a page, so that some cross into the next.
        let start = region + maker.random.below(PAGE);
        Program {
            items: maker.items,
            start,
        }
    }

    /// The bytes; branches that do not reach become `nop`.
    pub(crate) fn encode(&self) -> Encoded {
        let mut items = self.items.clone();
        loop {
            let places = places(&items, self.start);
            let mut code = Vec::new();
            let mut failed = None;
            for (number, item) in items.iter().enumerate() {
                let bytes = match *item {
                    Item::Bytes { bytes, len } => Some(bytes[..len].to_vec()),
                    _ => encode_at(&resolved(item, &places), places[number]),
                };
                match bytes {
                    Some(bytes) if bytes.len() as u64 == places[number + 1] - places[number] => {
                        code.extend(bytes);
                    }
                    _ => {
                        failed = Some(number);
                        break;
                    }
                }
            }
            match failed {
                Some(number) => items[number] = Item::Plain(Instruction::with(Code::Nopd)),
                None => {
                    return Encoded {
                        is_made: true,
                        ..Encoded::new(self.start, code)
                    };
                }
            }
        }
    }

    /// Without some items; branches to them go to what follows.
    pub(crate) fn without(&self, from: usize, count: usize) -> Program {
        let moved = |to: usize| {
            if to >= from + count {
                to - count
            } else {
                to.min(from)
            }
        };
        let items = self
            .items
            .iter()
            .enumerate()
            .filter(|(number, _)| !(from..from + count).contains(number))
            .map(|(_, item)| match *item {
                Item::Branch { code, to } => Item::Branch {
                    code,
                    to: moved(to),
                },
                Item::Address { register, to } => Item::Address {
                    register,
                    to: moved(to),
                },
                plain => plain,
            })
            .collect();
        Program {
            items,
            start: self.start,
        }
    }
}

impl Encoded {
    /// Given code at an address of the arena.
    pub(crate) fn new(start: u64, code: Vec<u8>) -> Self {
        let decoder = Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
        let saves_environment = decoder
            .into_iter()
            .any(|instruction| use_of(instruction.code()) == Use::SavesEnvironment);
        Encoded {
            is_made: false,
            start,
            end: start + code.len() as u64,
            saves_environment,
            code,
        }
    }

    /// The code, and after it what leaves native execution with everything as it is.
    pub(crate) fn with_native_exit(&self) -> Vec<u8> {
        let mut code = self.code.clone();
        code.extend([0x48, 0xc7, 0x04, 0x25]); // mov qword [exit_reason], OneOff
        code.extend(offset::EXIT_REASON.to_le_bytes());
        code.extend((ExitReason::OneOff as u32).to_le_bytes());
        code.extend([0xff, 0x24, 0x25]); // jmp [exit_routine]
        code.extend(offset::EXIT_ROUTINE.to_le_bytes());
        code
    }

    /// Guest code as the engine sees it: after the end comes a `syscall`.
    pub(crate) fn fetch(&self, address: u64, buffer: &mut [u8]) -> usize {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        let Some(at) = address.checked_sub(self.start).map(|at| at as usize) else {
            return 0;
        };
        let bytes = self.code.iter().chain(&SYSCALL).skip(at);
        let mut count = 0;
        for (to, from) in buffer.iter_mut().zip(bytes) {
            *to = *from;
            count += 1;
        }
        count
    }
}

/// Where each item goes, and the end.
fn places(items: &[Item], start: u64) -> Vec<u64> {
    let mut places = vec![start];
    let mut at = start;
    for item in items {
        // A branch to itself has the length of all branches of its form.
        let alone = match *item {
            Item::Bytes { len, .. } => {
                at += len as u64;
                places.push(at);
                continue;
            }
            Item::Branch { code, .. } => branch(code, at),
            Item::Address { register, .. } => address_of(register, at),
            Item::Plain(instruction) => instruction,
        };
        at += encode_at(&alone, at).map_or(1, |bytes| bytes.len() as u64);
        places.push(at);
    }
    places
}

fn resolved(item: &Item, places: &[u64]) -> Instruction {
    match *item {
        Item::Plain(instruction) => instruction,
        Item::Bytes { .. } => Instruction::default(),
        Item::Branch { code, to } => branch(code, places[to.min(places.len() - 1)]),
        Item::Address { register, to } => address_of(register, places[to.min(places.len() - 1)]),
    }
}

fn branch(code: Code, target: u64) -> Instruction {
    let mut instruction = Instruction::default();
    instruction.set_code(code);
    instruction.set_op0_kind(OpKind::NearBranch64);
    instruction.set_near_branch64(target);
    instruction
}

fn address_of(register: Register, target: u64) -> Instruction {
    let operand = MemoryOperand::with_base_displ_size(Register::RIP, target as i64, 8);
    Instruction::with2(Code::Lea_r64_m, register, operand).expect("lea of a rip-relative operand")
}

pub(crate) fn encode_at(instruction: &Instruction, address: u64) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(64);
    encoder.encode(instruction, address).ok()?;
    Some(encoder.take_buffer())
}

struct Maker<'a> {
    random: &'a mut Random,
    forms: &'a Forms,
    near_data: u64,
    items: Vec<Item>,
    /// Whether the x87 environment may be saved; if so, nothing may change it.
    environment: bool,
}

impl Maker<'_> {
    fn next(&mut self) {
        match self.random.below(100) {
            0..14 => self.direct_branch(),
            14..19 => self.indirect_branch(),
            19..22 => self.call(),
            22..24 => self.return_to(),
            24..27 => self.flags_to_stack(),
            27 => self.trap(),
            _ => self.any_form(),
        }
    }

    fn any_form(&mut self) {
        let code = match self.random.below(200) {
            0..90 => self.random.pick(&self.forms.general),
            90..92 if !self.forms.refused.is_empty() => self.random.pick(&self.forms.refused),
            _ => self.random.pick(&self.forms.all),
        };
        self.form(code);
    }

    fn form(&mut self, code: Code) {
        let fits = match use_of(code) {
            Use::Plain => true,
            Use::SavesEnvironment => self.environment,
            Use::X87 => !self.environment,
        };
        if !fits {
            return;
        }
        // Not every choice of operands can be encoded (ah with r8).
        for _ in 0..8 {
            let Some(made) = random_instruction(self.random, code, self.near_data) else {
                return;
            };
            if encode_at(&made.instruction, self.near_data).is_some()
                && !loads_segment(&made.instruction)
            {
                self.items.extend(made.before.into_iter().map(Item::Plain));
                let item = if self.random.percent(6) {
                    self.odd_encoding(&made.instruction)
                } else {
                    Item::Plain(made.instruction)
                };
                self.items.push(item);
                return;
            }
        }
    }

    /// The instruction with a prefix that does not belong there, or with a bit changed: another instruction, the same
    /// one, or none.
    fn odd_encoding(&mut self, instruction: &Instruction) -> Item {
        const PREFIXES: [u8; 13] = [
            0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0x40, 0x48,
        ];
        let mut code = encode_at(instruction, self.near_data).expect("encoded before");
        if self.random.percent(70) {
            code.insert(0, self.random.pick(&PREFIXES));
        } else {
            let at = self.random.below(code.len() as u64) as usize;
            code[at] ^= 1 << self.random.below(8);
        }
        let len = code.len().min(15);
        let mut bytes = [0u8; 15];
        bytes[..len].copy_from_slice(&code[..len]);
        Item::Bytes { bytes, len }
    }

    /// Mostly a little ahead, sometimes back: how often it may run is bounded elsewhere.
    fn target(&mut self) -> usize {
        let here = self.items.len();
        if self.random.percent(25) {
            here.saturating_sub(self.random.below(12) as usize)
        } else {
            here + 1 + self.random.below(6) as usize
        }
    }

    fn direct_branch(&mut self) {
        const OTHERS: [Code; 9] = [
            Code::Jmp_rel8_64,
            Code::Jmp_rel32_64,
            Code::Loop_rel8_64_RCX,
            Code::Loop_rel8_64_ECX,
            Code::Loope_rel8_64_RCX,
            Code::Loopne_rel8_64_RCX,
            Code::Loopne_rel8_64_ECX,
            Code::Jrcxz_rel8_64,
            Code::Jecxz_rel8_64,
        ];
        let code = if self.random.percent(65) {
            let short = Code::values().filter(|c| {
                c.is_jcc_short() && c.op_code().op0_kind() == iced_x86::OpCodeOperandKind::br64_1
            });
            let near = Code::values().filter(|c| {
                c.is_jcc_near() && c.op_code().op0_kind() == iced_x86::OpCodeOperandKind::br64_4
            });
            let conditions: Vec<Code> = short.chain(near).collect();
            self.random.pick(&conditions)
        } else {
            self.random.pick(&OTHERS)
        };
        let to = self.target();
        self.items.push(Item::Branch { code, to });
    }

    fn call(&mut self) {
        let to = self.target();
        self.items.push(Item::Branch {
            code: Code::Call_rel32_64,
            to,
        });
    }

    fn register(&mut self) -> Register {
        self.random.pick(&[
            Register::RAX,
            Register::RCX,
            Register::RDX,
            Register::RBX,
            Register::RSI,
            Register::R8,
            Register::R12,
            Register::R13,
            Register::R15,
        ])
    }

    /// Through a register, or through memory of some kind.
    fn indirect_branch(&mut self) {
        let register = self.register();
        let to = self.target() + 3;
        self.items.push(Item::Address { register, to });
        let call = self.random.percent(40);
        let code = if call {
            Code::Call_rm64
        } else {
            Code::Jmp_rm64
        };
        let slot = 8 * self.random.below(100);
        let operand = match self.random.below(5) {
            0 => MemoryOperand::with_base_displ_size(
                Register::RIP,
                (self.near_data + slot) as i64,
                8,
            ),
            1 => MemoryOperand::with_displ(LOW_DATA + slot, 8),
            2 => MemoryOperand::with_base_displ_size(
                Register::RSP,
                -8 * (1 + self.random.below(12) as i64),
                1,
            ),
            _ => {
                self.push(Instruction::with1(code, register));
                return;
            }
        };
        self.push(Instruction::with2(Code::Mov_rm64_r64, operand, register));
        self.push(Instruction::with1(code, operand));
    }

    fn return_to(&mut self) {
        let register = self.register();
        let to = self.target() + 2;
        if self.random.percent(60) {
            self.items.push(Item::Address { register, to });
            self.push(Instruction::with1(Code::Push_r64, register));
        }
        if self.random.percent(70) {
            self.items.push(Item::Plain(Instruction::with(Code::Retnq)));
        } else {
            let popped = 8 * self.random.below(8) as u32;
            self.push(Instruction::with1(Code::Retnq_imm16, popped));
        }
    }

    fn push(&mut self, instruction: Result<Instruction, iced_x86::IcedError>) {
        self.items.push(Item::Plain(
            instruction.expect("a form with operands that it takes"),
        ));
    }

    /// Flags out to memory, and back from memory with the trap flag clear.
    fn flags_to_stack(&mut self) {
        if self.random.percent(50) {
            self.items
                .push(Item::Plain(Instruction::with(Code::Pushfq)));
            return;
        }
        let flags = self.random.below(1 << 12) as i32 & 0xcd5 | 2;
        self.push(Instruction::with1(Code::Pushq_imm32, flags));
        self.items.push(Item::Plain(Instruction::with(Code::Popfq)));
    }

    fn trap(&mut self) {
        let code = self.random.pick(&[Code::Int3, Code::Ud2]);
        if self.random.percent(25) {
            self.items.push(Item::Plain(Instruction::with(code)));
        } else {
            let top = STACK + PAGE - 256 - 8 * self.random.below(64);
            self.items.push(Item::Plain(move_to(Register::RSP, top)));
        }
    }
}
