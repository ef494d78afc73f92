//! The budget and the place of the log's next word in vector register 15: adding to both takes one instruction that touches
//! neither flags nor memory that the next block waits for. Compiled code seldom uses that register; a block that does puts the guest's own in its place
//! for as long as it runs.

use crate::budget::{JRCXZ, JUMP_LEN};
use crate::carry::Carried;
use crate::emit::Emitter;
use iced_x86::{EncodingKind, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use verdict_cpu::{Gpr, InPlace, layout, offset};

/// The widest vector registers of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VectorWidth {
    /// SSE: 16 bytes.
    Xmm,
    /// AVX: 32 bytes.
    Ymm,
    /// AVX-512: 64 bytes.
    Zmm,
}

impl VectorWidth {
    /// What this host has, and its kernel keeps.
    pub(crate) fn of_host() -> Self {
        if std::is_x86_feature_detected!("avx512f") {
            VectorWidth::Zmm
        } else if std::is_x86_feature_detected!("avx") {
            VectorWidth::Ymm
        } else {
            VectorWidth::Xmm
        }
    }

    fn bytes(self) -> u32 {
        match self {
            VectorWidth::Xmm => 16,
            VectorWidth::Ymm => 32,
            VectorWidth::Zmm => 64,
        }
    }
}

/// What an instruction does to the guest's vector register 15; what asks for more is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Counter {
    /// Nothing.
    Untouched,
    /// Clears all but its low 16 bytes, as of every other one.
    UpperCleared,
    /// Uses its low 16 bytes, and leaves the others as they are.
    Low,
    /// Writes its low 16 bytes, and clears the others.
    LowAlone,
    /// Uses all of it without naming it.
    Unnamed,
    /// Uses all of it.
    Whole,
}

/// What has to be in place while the instruction runs.
pub(crate) fn counter_at(info: &mut InstructionInfoFactory, instruction: &Instruction) -> Counter {
    use Mnemonic::*;
    match instruction.mnemonic() {
        Vzeroupper => return Counter::UpperCleared,
        Vzeroall | Fxsave | Fxsave64 | Fxrstor | Fxrstor64 | Xsave | Xsave64 | Xsavec
        | Xsavec64 | Xsaveopt | Xsaveopt64 | Xsaves | Xsaves64 | Xrstor | Xrstor64 | Xrstors
        | Xrstors64 => {
            return Counter::Unnamed;
        }
        _ => {}
    }
    let operands = 0..instruction.op_count();
    let named = operands.map(|operand| instruction.op_register(operand));
    let named = named.filter(|register| is_ours(*register)).max();
    // Instructions from before AVX name what they use, but for those above; to look it up takes longer than to decode one.
    if instruction.encoding() == EncodingKind::Legacy {
        return named.map_or(Counter::Untouched, |_| Counter::Low);
    }
    let used = info.info(instruction).used_registers().iter();
    let mut ours = used.filter(|used| is_ours(used.register())).peekable();
    if ours.peek().is_none() {
        return Counter::Untouched;
    }
    // A gather that faults half-way has done things to the upper part of its mask, too.
    if instruction.memory_index().is_vector_register() {
        return Counter::Whole;
    }
    match named {
        None => Counter::Unnamed,
        Some(register) if !register.is_xmm() => Counter::Whole,
        Some(_) => {
            if ours.any(|used| used.access() != OpAccess::Read) {
                Counter::LowAlone
            } else {
                Counter::Low
            }
        }
    }
}

fn is_ours(register: Register) -> bool {
    register.is_vector_register() && register.number() == 15
}

impl Emitter {
    /// `budget += amount`, and so many words more are in the log; changes no flags.
    pub(crate) fn charge(&mut self, amount: i32, mut words: u16) {
        let possible = -layout::CHARGE_MAX..=layout::GIVEN_BACK_MAX;
        assert!(possible.contains(&amount), "no constant for it");
        let mut amount = amount;
        while words > 0 {
            let now = words.min(layout::LOGGED_MAX as u16);
            let at_once = amount.min(0);
            let row = u32::from(now) * (layout::CHARGE_MAX as u32 + 1);
            let index = row + at_once.unsigned_abs();
            self.add_counters(layout::CACHE_LOGGED_CHARGES as u32 + 16 * index);
            (amount, words) = (amount - at_once, words - now);
        }
        if amount != 0 {
            let index = (amount + layout::CHARGE_MAX) as u32;
            self.add_counters(layout::CACHE_CHARGES as u32 + 16 * index);
        }
    }

    /// Undoes the charge of what a block carries; changes no flags.
    pub(crate) fn credit(&mut self, carried: Carried) {
        if carried == Carried::NOTHING {
            return;
        }
        let row = u32::from(carried.words) * (layout::CARRIED_MAX as u32 + 1);
        let index = row + u32::from(carried.instructions);
        self.add_counters(layout::CACHE_CREDITS as u32 + 16 * index);
    }

    /// Adds a pair of words to budget and log.
    fn add_counters(&mut self, pair: u32) {
        match self.width {
            VectorWidth::Xmm => self.raw(&[0x66, 0x44, 0x0f, 0xd4]), // paddq xmm15, [absolute]
            _ => self.raw(&[0xc5, 0x01, 0xd4]), // vpaddq xmm15, xmm15, [absolute]
        }
        self.absolute(REGISTER, pair, 0);
    }

    /// `register = where the log's next word goes`; changes no flags.
    pub(crate) fn load_log_next(&mut self, register: Gpr, in_place: InPlace) {
        if in_place != InPlace::Nothing {
            return self.load(register, offset::LOG_NEXT);
        }
        let (low, high) = (register as u8 & 7, register as u8 >> 3);
        match self.width {
            VectorWidth::Xmm => self.raw(&[0x66, 0x4c | high, 0x0f, 0x3a, 0x16]), // pextrq register, xmm15, 1
            _ => self.raw(&[0xc4, 0x63 ^ high << 5, 0xf9, 0x16]),
        }
        self.raw(&[0xc0 | (REGISTER & 7) << 3 | low, 1]);
    }

    /// Sets the zero flag unless the budget is negative; changes the other flags, too. The log's place never is.
    pub(crate) fn test_budget(&mut self) {
        match self.width {
            VectorWidth::Xmm => {
                self.raw(&[0x66, 0x44, 0x0f, 0x38, 0x17]); // ptest xmm15, [absolute]
                self.absolute(REGISTER, layout::CACHE_SIGN as u32, 0);
            }
            _ => self.raw(&[0xc4, 0x42, 0x79, 0x0f, 0xff]), // vtestpd xmm15, xmm15
        }
    }

    /// `rcx = budget < 0`; changes no flags.
    pub(crate) fn budget_is_negative(&mut self) {
        match self.width {
            VectorWidth::Xmm => self.raw(&[0x66, 0x41, 0x0f, 0x50, 0xcf]), // movmskpd ecx, xmm15
            _ => self.raw(&[0xc4, 0xc1, 0x79, 0x50, 0xcf]),                // vmovmskpd ecx, xmm15
        }
    }

    /// Puts budget and log into the context, and the guest's own register, or the low part of it, in its place.
    ///
    /// To load the upper part marks the upper parts of all registers as used, until VZEROUPPER. Intel's processors take more than
    /// a hundred cycles each time they come from instructions that know these parts to others that do not, while they
    /// are used; so a guest that does not use them must not be given any.
    pub(crate) fn put_aside(&mut self, in_place: InPlace) {
        self.store_counters();
        self.load_vector(in_place);
    }

    /// The same for the whole register, but without the upper part where that is 0. Changes slot 0.
    pub(crate) fn put_aside_for_whatever_is_used(&mut self) {
        self.put_aside(InPlace::Low);
        if self.width == VectorWidth::Xmm {
            return;
        }
        self.store(offset::borrowed(0), Gpr::Rcx);
        let mut to_whole = Vec::new();
        for at in (16..self.width.bytes()).step_by(8) {
            self.load(Gpr::Rcx, offset::GUEST_VECTOR + at);
            self.raw(&[JRCXZ, JUMP_LEN]);
            to_whole.push(self.jump());
        }
        let done = self.jump();
        for jump in to_whole {
            self.bind(jump);
        }
        self.load_vector(InPlace::Whole);
        self.bind(done);
        self.load(Gpr::Rcx, offset::borrowed(0));
    }

    /// Undoes [`Self::put_aside`].
    pub(crate) fn take_back(&mut self, in_place: InPlace) {
        self.store_vector(in_place);
        match self.width {
            VectorWidth::Xmm => self.raw(&[0x66, 0x44, 0x0f, 0x6f]), // movdqa xmm15, [absolute]
            _ => self.raw(&[0xc5, 0x7a, 0x6f]),                      // vmovdqu xmm15, [absolute]
        }
        self.absolute(REGISTER, offset::BUDGET, 0);
    }

    /// An instruction has cleared the upper part of the guest's register, of which the low part is in place: so it is in the
    /// context, too.
    pub(crate) fn keep_whole(&mut self) {
        self.store_vector(InPlace::Whole);
    }

    fn store_counters(&mut self) {
        match self.width {
            VectorWidth::Xmm => self.raw(&[0x66, 0x44, 0x0f, 0x7f]), // movdqa [absolute], xmm15
            _ => self.raw(&[0xc5, 0x7a, 0x7f]),                      // vmovdqu [absolute], xmm15
        }
        self.absolute(REGISTER, offset::BUDGET, 0);
    }

    /// From the context into the register.
    fn load_vector(&mut self, in_place: InPlace) {
        match (self.width, in_place) {
            (_, InPlace::Nothing) => return,
            (VectorWidth::Xmm, _) => self.raw(&[0x66, 0x44, 0x0f, 0x6f]), // movdqa xmm15, [absolute]
            (_, InPlace::Low) => self.raw(&[0xc5, 0x7a, 0x6f]), // vmovdqu xmm15, [absolute]
            (VectorWidth::Ymm, _) => self.raw(&[0xc5, 0x7e, 0x6f]), // vmovdqu ymm15, [absolute]
            (VectorWidth::Zmm, _) => self.raw(&[0x62, 0x71, 0xfe, 0x48, 0x6f]), // vmovdqu64 zmm15, [absolute]
        }
        self.absolute(REGISTER, offset::GUEST_VECTOR, 0);
    }

    /// From the register into the context.
    fn store_vector(&mut self, in_place: InPlace) {
        match (self.width, in_place) {
            (_, InPlace::Nothing) => return,
            (VectorWidth::Xmm, _) => self.raw(&[0x66, 0x44, 0x0f, 0x7f]), // movdqa [absolute], xmm15
            (_, InPlace::Low) => self.raw(&[0xc5, 0x7a, 0x7f]), // vmovdqu [absolute], xmm15
            (VectorWidth::Ymm, _) => self.raw(&[0xc5, 0x7e, 0x7f]), // vmovdqu [absolute], ymm15
            (VectorWidth::Zmm, _) => self.raw(&[0x62, 0x71, 0xfe, 0x48, 0x7f]), // vmovdqu64 [absolute], zmm15
        }
        self.absolute(REGISTER, offset::GUEST_VECTOR, 0);
    }

    /// Does to the guest's register in the context what VZEROUPPER does to those that are in place.
    pub(crate) fn clear_upper(&mut self) {
        for at in (16..self.width.bytes()).step_by(8) {
            self.store_value(offset::GUEST_VECTOR + at, 0);
        }
    }
}

/// ModRM.reg of the register, but for the bit that is in the prefixes.
const REGISTER: u8 = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Code, Decoder, DecoderOptions, Formatter, IntelFormatter};

    /// Every sequence in every width, read back.
    fn text(width: VectorWidth) -> Vec<String> {
        let mut emit = Emitter::new(layout::CACHE_FREE);
        emit.width = width;
        emit.charge(-3, 0);
        emit.charge(-3, 2);
        emit.credit(Carried {
            instructions: 3,
            words: 2,
        });
        emit.load_log_next(Gpr::Rsi, InPlace::Nothing);
        emit.load_log_next(Gpr::R14, InPlace::Nothing);
        emit.test_budget();
        emit.budget_is_negative();
        emit.put_aside(InPlace::Low);
        emit.keep_whole();
        emit.take_back(InPlace::Low);
        emit.put_aside(InPlace::Whole);
        emit.take_back(InPlace::Whole);
        emit.clear_upper();
        let mut formatter = IntelFormatter::new();
        Decoder::with_ip(64, &emit.bytes, layout::CACHE_FREE, DecoderOptions::NONE)
            .iter()
            .map(|instruction| {
                let mut line = String::new();
                formatter.format(&instruction, &mut line);
                line
            })
            .collect()
    }

    #[test]
    fn every_width_does_the_same() {
        assert_eq!(
            text(VectorWidth::Xmm),
            [
                "paddq xmm15,[400008D0h]",
                "paddq xmm15,[40002050h]",
                "paddq xmm15,[40021E50h]",
                "pextrq rsi,xmm15,1",
                "pextrq r14,xmm15,1",
                "ptest xmm15,[400000C0h]",
                "movmskpd ecx,xmm15",
                "movdqa [7FF00000h],xmm15",
                "movdqa xmm15,[7FF00140h]",
                "movdqa [7FF00140h],xmm15",
                "movdqa [7FF00140h],xmm15",
                "movdqa xmm15,[7FF00000h]",
                "movdqa [7FF00000h],xmm15",
                "movdqa xmm15,[7FF00140h]",
                "movdqa [7FF00140h],xmm15",
                "movdqa xmm15,[7FF00000h]",
            ]
        );
        assert_eq!(
            text(VectorWidth::Ymm),
            [
                "vpaddq xmm15,xmm15,[400008D0h]",
                "vpaddq xmm15,xmm15,[40002050h]",
                "vpaddq xmm15,xmm15,[40021E50h]",
                "vpextrq rsi,xmm15,1",
                "vpextrq r14,xmm15,1",
                "vtestpd xmm15,xmm15",
                "vmovmskpd ecx,xmm15",
                "vmovdqu [7FF00000h],xmm15",
                "vmovdqu xmm15,[7FF00140h]",
                "vmovdqu [7FF00140h],ymm15",
                "vmovdqu [7FF00140h],xmm15",
                "vmovdqu xmm15,[7FF00000h]",
                "vmovdqu [7FF00000h],xmm15",
                "vmovdqu ymm15,[7FF00140h]",
                "vmovdqu [7FF00140h],ymm15",
                "vmovdqu xmm15,[7FF00000h]",
                "mov qword ptr [7FF00150h],0",
                "mov qword ptr [7FF00158h],0",
            ]
        );
        let wide = text(VectorWidth::Zmm);
        assert_eq!(wide[8], "vmovdqu xmm15,[7FF00140h]");
        assert_eq!(wide[9], "vmovdqu64 [7FF00140h],zmm15");
        assert_eq!(wide[10], "vmovdqu [7FF00140h],xmm15");
        assert_eq!(wide[13], "vmovdqu64 zmm15,[7FF00140h]");
        assert_eq!(wide[14], "vmovdqu64 [7FF00140h],zmm15");
        assert_eq!(wide.len(), 22);
    }

    #[test]
    fn what_no_constant_says_is_added_in_parts() {
        let added = |amount: i32, words: u16| {
            let mut emit = Emitter::new(layout::CACHE_FREE);
            emit.width = VectorWidth::Ymm;
            emit.charge(amount, words);
            let mut decoder =
                Decoder::with_ip(64, &emit.bytes, layout::CACHE_FREE, DecoderOptions::NONE);
            let pairs = decoder.iter().map(|add| {
                let at = (add.ip_rel_memory_address() - layout::CACHE_START) as usize;
                let page = crate::prelude();
                let word = |at: usize| {
                    i64::from_le_bytes(page[at..at + 8].try_into().expect("eight bytes"))
                };
                (word(at), word(at + 8))
            });
            pairs.collect::<Vec<_>>()
        };
        assert_eq!(added(0, 0), []);
        assert_eq!(added(5, 0), [(5, 0)]);
        assert_eq!(added(-32, 63), [(-32, 8 * 63)]);
        assert_eq!(added(-7, 64), [(-7, 8 * 63), (0, 8)]);
        assert_eq!(added(3, 2), [(0, 16), (3, 0)]);
    }

    /// What an instruction asks for.
    fn asked_by(instruction: Instruction) -> Counter {
        counter_at(&mut InstructionInfoFactory::new(), &instruction)
    }

    #[test]
    fn an_instruction_asks_for_no_more_than_it_uses() {
        use Register::*;
        let three = |code, registers: [Register; 3]| {
            let [a, b, c] = registers;
            asked_by(Instruction::with3(code, a, b, c).expect("three registers"))
        };
        let legacy = Instruction::with2(Code::Addps_xmm_xmmm128, XMM15, XMM1);
        assert_eq!(asked_by(legacy.expect("two registers")), Counter::Low);
        let low = Code::VEX_Vaddps_xmm_xmm_xmmm128;
        assert_eq!(three(low, [XMM1, XMM2, XMM3]), Counter::Untouched);
        assert_eq!(three(low, [XMM15, XMM2, XMM3]), Counter::LowAlone);
        assert_eq!(three(low, [XMM1, XMM2, XMM15]), Counter::Low);
        let gather = [0xc4, 0x22, 0x81, 0x93, 0x0c, 0x90]; // vgatherqpd xmm9, [rax + xmm10*4], xmm15
        let mut decoder = Decoder::with_ip(64, &gather, 0, DecoderOptions::NONE);
        assert_eq!(asked_by(decoder.decode()), Counter::Whole);
        let high = Code::VEX_Vaddps_ymm_ymm_ymmm256;
        assert_eq!(three(high, [YMM1, YMM15, YMM3]), Counter::Whole);
        let zeroing = |code| asked_by(Instruction::with(code));
        assert_eq!(zeroing(Code::VEX_Vzeroupper), Counter::UpperCleared);
        assert_eq!(zeroing(Code::VEX_Vzeroall), Counter::Unnamed);
    }
}
