//! The instruction forms that are tested.

use crate::features::host_has;
use iced_x86::{Code, EncodingKind, FlowControl, Instruction, Mnemonic, OpCodeOperandKind};

/// What a form is good for in a random program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// Anywhere.
    Plain,
    /// Saves the x87 environment, which holds the host's address of the last x87 instruction.
    SavesEnvironment,
    /// Changes the x87 state, and with it that address.
    X87,
}

/// The forms of this host.
#[derive(Debug)]
pub(crate) struct Forms {
    /// Everything that user code may use here.
    pub(crate) all: Vec<Code>,
    /// Those on general registers.
    pub(crate) general: Vec<Code>,
    /// What this CPU or this privilege level refuses: the refusal must be the same.
    pub(crate) refused: Vec<Code>,
}

impl Forms {
    pub(crate) fn of_host() -> Self {
        let mut forms = Forms {
            all: Vec::new(),
            general: Vec::new(),
            refused: Vec::new(),
        };
        for code in Code::values().filter(|code| is_candidate(*code)) {
            let present = code.cpuid_features().iter().all(|f| host_has(*f));
            if !present || code.op_code().must_be_cpl0() {
                forms.refused.push(code);
                continue;
            }
            forms.all.push(code);
            if code.encoding() == EncodingKind::Legacy && !has_vector_operand(code) {
                forms.general.push(code);
            }
        }
        forms
    }
}

fn is_candidate(code: Code) -> bool {
    let form = code.op_code();
    form.is_instruction()
        && form.mode64()
        && code.encoding() != EncodingKind::MVEX
        && code.flow_control() == FlowControl::Next
        && may_run(code.mnemonic())
        // FWAIT and what follows it are two instructions to everyone but assemblers.
        && !form.fwait()
        && !(loads_segment_by(form.op0_kind()) && code.mnemonic() != Mnemonic::Push)
        && form.op_kinds().iter().all(|kind| !is_system_operand(*kind))
        // Without AVX-512 its registers cannot be set, and a refusal needs no operands.
        && (code.encoding() != EncodingKind::EVEX || host_has(iced_x86::CpuidFeature::AVX512F))
}

/// What neither side of the comparison may run: the engine emulates it, it answers differently every time, it waits,
/// or it changes what the kernel and the test itself rely on.
fn may_run(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    !matches!(
        mnemonic,
        Cpuid | Rdtsc | Rdtscp | Rdrand | Rdseed | Rdpid | Xgetbv | Rdpmc | Rdpru | Xtest | Xabort | Xend
            | Sgdt | Sidt | Sldt | Str | Smsw // the kernel emulates these where it forbids them
            | Vmcall | Vmmcall | Vmfunc | Vmgexit | Mcommit
            | Monitor | Mwait | Monitorx | Mwaitx | Umonitor | Umwait | Tpause
            | Wrpkru | Ptwrite | Lss | Lfs | Lgs | Getsec | Encls | Enclu | Enclv
    )
}

fn is_system_operand(kind: OpCodeOperandKind) -> bool {
    use OpCodeOperandKind::*;
    matches!(
        kind,
        cr_reg
            | dr_reg
            | tr_reg
            | tmm_reg
            | tmm_rm
            | tmm_vvvv
            | sibmem
            | bnd_reg
            | bnd_or_mem_mpx
            | mem_mib
            | farbr2_2
            | farbr4_2
    )
}

fn has_vector_operand(code: Code) -> bool {
    use OpCodeOperandKind::*;
    code.op_code().op_kinds().iter().any(|kind| {
        matches!(
            kind,
            mm_or_mem | xmm_or_mem | mm_reg | mm_rm | xmm_reg | xmm_rm | st0 | sti_opcode
        )
    })
}

/// True if random programs may contain the instruction, or run into it by a stray jump.
pub(crate) fn is_allowed(instruction: &Instruction) -> bool {
    use FlowControl::*;
    let code = instruction.code();
    match instruction.flow_control() {
        Next => {
            may_run(instruction.mnemonic())
                && code
                    .op_code()
                    .op_kinds()
                    .iter()
                    .all(|kind| !is_system_operand(*kind))
                && !loads_segment(instruction)
        }
        Exception => true,
        UnconditionalBranch => matches!(code, Code::Jmp_rel8_64 | Code::Jmp_rel32_64),
        Call => code == Code::Call_rel32_64,
        IndirectBranch => code == Code::Jmp_rm64,
        IndirectCall => code == Code::Call_rm64,
        Return => matches!(code, Code::Retnq | Code::Retnq_imm16),
        ConditionalBranch => true,
        Interrupt => code == Code::Int3,
        XbeginXabortXend => false,
    }
}

fn loads_segment_by(kind: OpCodeOperandKind) -> bool {
    use OpCodeOperandKind::*;
    matches!(kind, seg_reg | es | ss | ds | fs | gs)
}

/// A new segment selector would change what the kernel restores after a signal.
pub(crate) fn loads_segment(instruction: &Instruction) -> bool {
    instruction.op0_register().is_segment_register()
        && !matches!(instruction.mnemonic(), Mnemonic::Push)
}

/// How the form may be mixed with others.
pub(crate) fn use_of(code: Code) -> Use {
    use Mnemonic::*;
    match code.mnemonic() {
        Fnstenv | Fstenv | Fnsave | Fsave | Fxsave | Fxsave64 | Xsave | Xsave64 | Xsavec
        | Xsavec64 | Xsaveopt | Xsaveopt64 => Use::SavesEnvironment,
        // Some CPUs lose a loaded address when the kernel switches to another process.
        Fldenv | Frstor | Fxrstor | Fxrstor64 | Xrstor | Xrstor64 => Use::X87,
        _ if code.op_code().fpu_or_x87() => Use::X87,
        _ => Use::Plain,
    }
}

trait X87 {
    fn fpu_or_x87(&self) -> bool;
}

impl X87 for iced_x86::OpCodeInfo {
    fn fpu_or_x87(&self) -> bool {
        use iced_x86::CpuidFeature::*;
        self.code()
            .cpuid_features()
            .iter()
            .any(|f| matches!(f, FPU | FPU287 | FPU387))
    }
}
