//! What was run, and where.

use crate::FileIdentity;
use crate::codec::{Codec, Element, Expected, Input, codec_enum, codec_struct};

/// What was run, and where: everything that the execution depends on from its first instruction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Who wrote the recording: the version of `verdict`.
    pub writer: String,
    /// The program as the user typed it.
    pub program: Vec<u8>,
    /// What that led to.
    pub started: Started,
    /// Argument vector, the program's own name first.
    pub argv: Vec<Vec<u8>>,
    /// The environment, `NAME=value` each.
    pub env: Vec<Vec<u8>>,
    /// The working directory.
    pub cwd: Vec<u8>,
    /// User and group, real and effective: uid, euid, gid, egid. The program finds them in its auxiliary vector.
    pub ids: [u32; 4],
    /// Where the guest's time came from.
    pub clock: Clock,
    /// Where random choices came from.
    pub seed: u64,
    /// After how many instructions a thread had to let others run.
    pub quantum: u64,
    /// Who ran next.
    pub schedule: SchedulePolicy,
    /// Whether the guest's children ran under the engine, too.
    pub follow_children: bool,
    /// The CPU that the guest saw.
    pub cpu: CpuIdentity,
    /// Whether the files' contents are in the recording.
    pub files_attached: bool,
    /// What was mapped before the first instruction: the program, then its interpreter. They are the files 0 and 1 of
    /// their program; with attached files their [`crate::Entry::Contents`] follow.
    pub files: Vec<FileIdentity>,
    /// What was packed with the recording to be read by people and programs; none of it matters for a replay.
    pub documents: Vec<Document>,
}

/// Something to be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Document {
    /// What it is called, as a file would be.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// The program that a name led to, as the kernel starts it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Started {
    /// Where the program was, after `#!` lines were followed.
    pub path: Vec<u8>,
    /// Its arguments then.
    pub argv: Vec<Vec<u8>>,
    /// The path the kernel calls it by (AT_EXECFN).
    pub execfn: Vec<u8>,
}

/// Where the guest's time came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clock {
    /// From the instructions executed.
    #[default]
    Virtual,
    /// From the machine.
    Real,
}

/// Who ran next, where more than one thread could.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SchedulePolicy {
    /// Threads took turns.
    #[default]
    RoundRobin,
    /// The seed decided.
    Random,
}

/// The CPU that the guest saw. A replay needs one that answers the same: programs choose their code by it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuIdentity {
    /// `GenuineIntel`, `AuthenticAMD`...
    pub vendor: String,
    /// Family, model and stepping: eax of leaf 1.
    pub signature: u32,
    /// The words that say what the CPU can do, as the guest sees them.
    pub features: Vec<CpuidWord>,
    /// The vector state that is saved (XCR0 as the guest sees it).
    pub xsave_mask: u64,
}

/// One answer to `cpuid`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuidWord {
    /// eax of the question.
    pub leaf: u32,
    /// ecx of the question.
    pub subleaf: u32,
    /// eax, ebx, ecx, edx of the answer.
    pub answer: [u32; 4],
}

impl CpuIdentity {
    /// What a replay here would see differently, as the end of a sentence; `None` if nothing.
    #[must_use]
    pub fn difference(&self, here: &Self) -> Option<String> {
        if self.vendor != here.vendor || self.signature != here.signature {
            return Some(format!("a {self} and this is a {here}"));
        }
        if self.xsave_mask != here.xsave_mask {
            return Some(format!(
                "a CPU that saves the vector state {:#x} and this one saves {:#x}",
                self.xsave_mask, here.xsave_mask
            ));
        }
        if self.features.len() != here.features.len() {
            return Some("a CPU that was asked other questions".into());
        }
        let differs = |(then, now): &(&CpuidWord, &CpuidWord)| then != now;
        let mut pairs = self.features.iter().zip(&here.features);
        let (then, now) = pairs.find(differs)?;
        Some(format!(
            "a CPU whose cpuid leaf {:#x}/{} is {:08x?} and this one's is {:08x?}",
            then.leaf, then.subleaf, then.answer, now.answer
        ))
    }
}

impl std::fmt::Display for CpuIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let base_family = self.signature >> 8 & 0xf;
        let base_model = self.signature >> 4 & 0xf;
        // The extended fields count where Intel and AMD say they do.
        let family = match base_family {
            0xf => 0xf + (self.signature >> 20 & 0xff),
            family => family,
        };
        let model = match base_family {
            0xf | 6 => base_model | (self.signature >> 16 & 0xf) << 4,
            _ => base_model,
        };
        let stepping = self.signature & 0xf;
        write!(
            f,
            "{} family {family} model {model} stepping {stepping}",
            self.vendor
        )
    }
}

codec_enum!(Clock, "a clock" { 0 => Virtual {}, 1 => Real {} });
codec_enum!(SchedulePolicy, "a schedule" { 0 => RoundRobin {}, 1 => Random {} });
codec_struct!(CpuIdentity {
    vendor,
    signature,
    features,
    xsave_mask
});

impl Codec for [u32; 4] {
    fn encode(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|word| word.encode(out));
    }

    fn decode(input: &mut Input) -> Result<Self, Expected> {
        let mut words = [0; 4];
        for word in &mut words {
            *word = u32::decode(input)?;
        }
        Ok(words)
    }
}

codec_struct!(CpuidWord {
    leaf,
    subleaf,
    answer
});

impl Element for CpuidWord {}

codec_struct!(Started { path, argv, execfn });

codec_struct!(Header {
    writer,
    program,
    started,
    argv,
    env,
    cwd,
    ids,
    clock,
    seed,
    quantum,
    schedule,
    follow_children,
    cpu,
    files_attached,
    files,
    documents,
});

codec_struct!(Document { name, bytes });

impl Element for Document {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_both_sides() {
        let word = |bit| CpuidWord {
            leaf: 7,
            subleaf: 0,
            answer: [0, bit, 0, 0],
        };
        let then = CpuIdentity {
            vendor: "GenuineIntel".into(),
            signature: 0x000c_06f2,
            features: vec![word(1)],
            xsave_mask: 7,
        };
        assert_eq!(then.difference(&then), None);
        let said = |here: CpuIdentity| then.difference(&here).unwrap();
        let other = CpuIdentity {
            vendor: "AuthenticAMD".into(),
            signature: 0x00a2_0f12,
            ..then.clone()
        };
        assert_eq!(
            said(other),
            "a GenuineIntel family 6 model 207 stepping 2 and this is a AuthenticAMD family 25 model 33 stepping 2"
        );
        let narrow = CpuIdentity {
            xsave_mask: 3,
            ..then.clone()
        };
        assert!(said(narrow).contains("0x7 and this one saves 0x3"));
        let weaker = CpuIdentity {
            features: vec![word(0)],
            ..then.clone()
        };
        assert!(said(weaker).contains("leaf 0x7/0"));
    }
}
