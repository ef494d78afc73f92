//! The first stack of a program, laid out byte for byte as the kernel does (`create_elf_tables`), without a vdso.
//!
//! From high to low: a zero word, the program's path, environment strings, argument strings, the platform's name, 16
//! random bytes; then, from the stack pointer up: argc, argv, envp, and the auxiliary vector.

use std::ops::Range;

use crate::LoadPlan;

const WORD: u64 = 8;
/// Size of an Elf64_Phdr.
const PROGRAM_HEADER_BYTES: u64 = 56;

/// What the first stack tells a program beside its arguments.
#[derive(Clone, Copy, Debug)]
pub struct StackInput<'a> {
    /// Argument vector.
    pub argv: &'a [Vec<u8>],
    /// Environment, `NAME=value` each.
    pub env: &'a [Vec<u8>],
    /// AT_EXECFN.
    pub execfn: &'a [u8],
    /// AT_RANDOM: what the C library makes its canaries from.
    pub random: [u8; 16],
    /// AT_PLATFORM, `x86_64`.
    pub platform: &'a [u8],
    /// AT_HWCAP: cpuid(1).edx as the guest may see it.
    pub hwcap: u64,
    /// AT_HWCAP2.
    pub hwcap2: u64,
    /// AT_MINSIGSTKSZ, where a signal frame's size is known.
    pub min_signal_stack: Option<u64>,
    /// AT_PAGESZ.
    pub page_size: u64,
    /// AT_CLKTCK.
    pub clock_ticks: u64,
    /// AT_UID.
    pub uid: u32,
    /// AT_EUID.
    pub euid: u32,
    /// AT_GID.
    pub gid: u32,
    /// AT_EGID.
    pub egid: u32,
    /// First address above the stack; a multiple of 16.
    pub stack_top: u64,
}

/// The first stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackImage {
    /// What memory must hold from `sp` to the stack's top.
    pub bytes: Vec<u8>,
    /// The stack pointer at the first instruction; a multiple of 16.
    pub sp: u64,
    /// Addresses of the argument strings.
    pub arguments: Range<u64>,
    /// Addresses of the environment strings.
    pub environment: Range<u64>,
    /// Addresses of the auxiliary vector, its final null entry included.
    pub auxiliary: Range<u64>,
}

/// Lays out the first stack of a planned program.
///
/// # Panics
/// If the stack's top is not a multiple of 16, or too low for what must be below it (arguments are limited by
/// [`crate::check_arguments`], so the caller's choice of the top alone decides).
#[must_use]
pub fn build_stack(plan: &LoadPlan, input: &StackInput<'_>) -> StackImage {
    assert!(
        input.stack_top.is_multiple_of(16),
        "a stack's top is aligned"
    );
    let mut strings = Strings::below(input.stack_top);
    strings.skip(WORD);
    let execfn = strings.push(input.execfn);
    let (environment, env) = strings.push_all(input.env);
    let (arguments, argv) = strings.push_all(input.argv);
    strings.align();
    let platform = strings.push(input.platform);
    let random = strings.push_bytes(&input.random);

    let auxiliary = auxiliary_vector(plan, input, execfn, platform, random);
    let mut words = vec![argv.len() as u64];
    words.extend(argv);
    words.push(0);
    words.extend(env);
    words.push(0);
    let auxiliary_start = words.len() as u64 * WORD;
    words.extend(auxiliary.iter().flat_map(|&(key, value)| [key, value]));

    let table_bytes = words.len() as u64 * WORD;
    let sp = (strings.address - table_bytes) & !0xf;
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize((strings.address - sp) as usize, 0);
    bytes.extend(strings.into_bytes());
    debug_assert_eq!(sp + bytes.len() as u64, input.stack_top);
    StackImage {
        bytes,
        sp,
        arguments,
        environment,
        auxiliary: sp + auxiliary_start..sp + table_bytes,
    }
}

/// In the kernel's order. AT_SYSINFO_EHDR is absent (no vdso), and so are the rseq entries.
fn auxiliary_vector(
    plan: &LoadPlan,
    input: &StackInput<'_>,
    execfn: u64,
    platform: u64,
    random: u64,
) -> Vec<(u64, u64)> {
    let mut vector = Vec::new();
    vector.extend(input.min_signal_stack.map(|bytes| (AT_MINSIGSTKSZ, bytes)));
    vector.extend([
        (AT_HWCAP, input.hwcap),
        (AT_PAGESZ, input.page_size),
        (AT_CLKTCK, input.clock_ticks),
        (AT_PHDR, plan.program.phdr),
        (AT_PHENT, PROGRAM_HEADER_BYTES),
        (AT_PHNUM, plan.program.phnum),
        (
            AT_BASE,
            plan.interpreter.as_ref().map_or(0, |image| image.bias),
        ),
        (AT_FLAGS, 0),
        (AT_ENTRY, plan.program.entry),
        (AT_UID, input.uid.into()),
        (AT_EUID, input.euid.into()),
        (AT_GID, input.gid.into()),
        (AT_EGID, input.egid.into()),
        (AT_SECURE, 0),
        (AT_RANDOM, random),
        (AT_HWCAP2, input.hwcap2),
        (AT_EXECFN, execfn),
        (AT_PLATFORM, platform),
        (AT_NULL, 0),
    ]);
    vector
}

const AT_NULL: u64 = 0;
const AT_PHDR: u64 = 3;
const AT_PHENT: u64 = 4;
const AT_PHNUM: u64 = 5;
const AT_PAGESZ: u64 = 6;
const AT_BASE: u64 = 7;
const AT_FLAGS: u64 = 8;
const AT_ENTRY: u64 = 9;
const AT_UID: u64 = 11;
const AT_EUID: u64 = 12;
const AT_GID: u64 = 13;
const AT_EGID: u64 = 14;
const AT_PLATFORM: u64 = 15;
const AT_HWCAP: u64 = 16;
const AT_CLKTCK: u64 = 17;
const AT_SECURE: u64 = 23;
const AT_RANDOM: u64 = 25;
const AT_HWCAP2: u64 = 26;
const AT_EXECFN: u64 = 31;
const AT_MINSIGSTKSZ: u64 = 51;

/// Bytes put down from an address downwards; collected back to front, so that nothing moves.
struct Strings {
    /// Lowest address used so far.
    address: u64,
    reversed: Vec<u8>,
}

impl Strings {
    fn below(top: u64) -> Self {
        Self {
            address: top,
            reversed: Vec::new(),
        }
    }

    fn skip(&mut self, bytes: u64) {
        self.reversed
            .resize(self.reversed.len() + bytes as usize, 0);
        self.address -= bytes;
    }

    fn align(&mut self) {
        self.skip(self.address % 16);
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> u64 {
        self.reversed.extend(bytes.iter().rev());
        self.address -= bytes.len() as u64;
        self.address
    }

    fn push(&mut self, string: &[u8]) -> u64 {
        self.skip(1);
        self.push_bytes(string)
    }

    /// The first string gets the lowest address. Answers the range of all, and where each is.
    fn push_all(&mut self, strings: &[Vec<u8>]) -> (Range<u64>, Vec<u64>) {
        let end = self.address;
        let mut addresses: Vec<u64> = strings
            .iter()
            .rev()
            .map(|string| self.push(string))
            .collect();
        addresses.reverse();
        (self.address..end, addresses)
    }

    fn into_bytes(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{ExecutableStack, Image};
    use proptest::prelude::*;

    const TOP: u64 = 0x7fff_0000;

    fn plan() -> LoadPlan {
        let image = |bias: u64| Image {
            path: "/p".into(),
            bias,
            base: bias,
            end: bias + 0x2000,
            phdr: bias + 64,
            phnum: 13,
            entry: bias + 0x1000,
        };
        LoadPlan {
            mappings: Vec::new(),
            entry: 0x7001_1000,
            program: image(0x1000_0000),
            interpreter: Some(image(0x7001_0000)),
            argv: Vec::new(),
            execfn: Vec::new(),
            stack: ExecutableStack::No,
        }
    }

    fn input<'a>(argv: &'a [Vec<u8>], env: &'a [Vec<u8>]) -> StackInput<'a> {
        StackInput {
            argv,
            env,
            execfn: b"/p",
            random: *b"0123456789abcdef",
            platform: b"x86_64",
            hwcap: 0x178b_fbff,
            hwcap2: 2,
            min_signal_stack: None,
            page_size: 4096,
            clock_ticks: 100,
            uid: 1,
            euid: 2,
            gid: 3,
            egid: 4,
            stack_top: TOP,
        }
    }

    /// Reads a stack as a C library would.
    struct Reader<'a>(&'a StackImage);

    impl Reader<'_> {
        fn word(&self, address: u64) -> u64 {
            let at = (address - self.0.sp) as usize;
            u64::from_le_bytes(self.0.bytes[at..at + 8].try_into().unwrap())
        }

        fn string(&self, address: u64) -> Vec<u8> {
            let rest = &self.0.bytes[(address - self.0.sp) as usize..];
            rest.iter().copied().take_while(|&b| b != 0).collect()
        }

        /// The strings of a null-terminated vector, and the address behind it.
        fn vector(&self, mut address: u64) -> (Vec<Vec<u8>>, u64) {
            let mut strings = Vec::new();
            while self.word(address) != 0 {
                strings.push(self.string(self.word(address)));
                address += 8;
            }
            (strings, address + 8)
        }
    }

    fn check(argv: &[Vec<u8>], env: &[Vec<u8>]) {
        let stack = build_stack(&plan(), &input(argv, env));
        assert_eq!(stack.sp % 16, 0);
        assert_eq!(stack.sp + stack.bytes.len() as u64, TOP);
        let reader = Reader(&stack);
        assert_eq!(reader.word(stack.sp), argv.len() as u64);
        let (read_argv, env_address) = reader.vector(stack.sp + 8);
        let (read_env, auxiliary) = reader.vector(env_address);
        assert_eq!((read_argv.as_slice(), read_env.as_slice()), (argv, env));
        assert_eq!(auxiliary, stack.auxiliary.start);

        let pairs: Vec<(u64, u64)> = stack
            .auxiliary
            .clone()
            .step_by(16)
            .map(|at| (reader.word(at), reader.word(at + 8)))
            .collect();
        let value = |key| pairs.iter().find(|&&(k, _)| k == key).unwrap().1;
        assert_eq!(pairs.last(), Some(&(AT_NULL, 0)));
        assert_eq!(value(AT_PHDR), 0x1000_0040);
        assert_eq!(value(AT_BASE), 0x7001_0000);
        assert_eq!(value(AT_ENTRY), 0x1000_1000);
        assert_eq!(reader.string(value(AT_EXECFN)), b"/p");
        assert_eq!(reader.string(value(AT_PLATFORM)), b"x86_64");
        assert!(
            reader
                .string(value(AT_RANDOM))
                .starts_with(b"0123456789abcdef")
        );
        // As in the kernel: the path is the last string, with a zero word above it.
        assert_eq!(value(AT_EXECFN), TOP - 8 - 3);
        assert_eq!(stack.arguments.end, stack.environment.start);
        assert_eq!(stack.environment.end, value(AT_EXECFN));
    }

    #[test]
    fn the_stack_reads_back_as_it_was_written() {
        check(&[b"p".to_vec(), b"-x".to_vec()], &[b"A=1".to_vec()]);
        check(&[Vec::new()], &[]);
    }

    proptest! {
        #[test]
        fn any_strings_read_back(
            argv in proptest::collection::vec(proptest::collection::vec(1_u8.., 0..40), 1..20),
            env in proptest::collection::vec(proptest::collection::vec(1_u8.., 0..40), 0..20),
        ) {
            check(&argv, &env);
        }
    }
}
