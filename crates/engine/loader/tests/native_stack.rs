//! The first stack, compared with the one that the kernel makes for the same program.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use tempfile::TempDir;
use verdict_loader::{Layout, Lookup, Request, StackInput, build_stack, plan};

/// Writes its stack pointer and everything from there to the end of the stack.
const DUMP: &str = r#"
static long call(long number, long a, const void *b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
__attribute__((used)) void dump(long *sp) {
    long *word = sp + 1 + sp[0] + 1;      // behind argv
    while (*word++) {}                    // behind the environment
    while (word[0] != 31) word += 2;      // AT_EXECFN, the last string
    const char *end = (const char *)word[1];
    while (*end++) {}
    call(1, 1, &sp, 8);
    call(1, 1, sp, end + 8 - (const char *)sp);
    call(231, 0, 0, 0);
}
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call dump\n");
"#;

const AT_RANDOM: u64 = 25;
/// The vdso and restartable sequences: what a guest does not get.
const ABSENT: [u64; 3] = [33, 27, 28];

struct Stack {
    sp: u64,
    bytes: Vec<u8>,
}

impl Stack {
    fn word(&self, address: u64) -> u64 {
        u64::from_le_bytes(self.from(address)[..8].try_into().unwrap())
    }

    fn from(&self, address: u64) -> &[u8] {
        &self.bytes[(address - self.sp) as usize..]
    }

    fn top(&self) -> u64 {
        self.sp + self.bytes.len() as u64
    }

    /// argc, argv and the environment's pointers with their null words, and the auxiliary vector in order.
    fn tables(&self) -> (Vec<u64>, Vec<(u64, u64)>) {
        let mut at = self.sp;
        let mut next = || {
            at += 8;
            self.word(at - 8)
        };
        let mut pointers = vec![next()];
        for _vector in ["argv", "environment"] {
            loop {
                pointers.push(next());
                if pointers.last() == Some(&0) {
                    break;
                }
            }
        }
        let mut auxiliary = Vec::new();
        loop {
            let (key, value) = (next(), next());
            auxiliary.push((key, value));
            if key == 0 {
                return (pointers, auxiliary);
            }
        }
    }
}

#[test]
fn the_stack_is_the_kernels_but_for_what_a_guest_does_not_get() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("dump.c"), DUMP).unwrap();
    let build = Command::new("gcc")
        .args([
            "-O1",
            "-static",
            "-nostdlib",
            "-fno-stack-protector",
            "dump.c",
            "-o",
            "dump",
        ])
        .current_dir(folder.path())
        .status();
    assert!(build.unwrap().success());
    let path = folder.path().join("dump");
    let argv = ["setarch is not seen here", "", "three"].map(|a| a.as_bytes().to_vec());

    // The shell gives the program its odd name, setarch fixes the address of the stack.
    let output = Command::new("setarch")
        .args(["-R", "bash", "-c", r#"exec -a "$1" "$0" "$2" "$3""#])
        .arg(&path)
        .args(argv.iter().map(|a| std::str::from_utf8(a).unwrap()))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (sp, bytes) = output.stdout.split_at(8);
    let native = Stack {
        sp: u64::from_le_bytes(sp.try_into().unwrap()),
        bytes: bytes.to_vec(),
    };
    let (native_pointers, mut native_auxiliary) = native.tables();
    let values: BTreeMap<u64, u64> = native_auxiliary.iter().copied().collect();
    native_auxiliary.retain(|(key, _)| !ABSENT.contains(key));

    // Its environment is what the shell made of ours.
    let env: Vec<Vec<u8>> = native_pointers[1 + argv.len() + 1..native_pointers.len() - 1]
        .iter()
        .map(|&pointer| {
            native
                .from(pointer)
                .iter()
                .copied()
                .take_while(|&b| b != 0)
                .collect()
        })
        .collect();

    let request = Request {
        program: path.to_str().unwrap().as_bytes(),
        lookup: Lookup::Exact,
        argv: &argv,
        env: &env,
    };
    let layout = Layout {
        pie_base: 0x1000_0000,
        interp_base: 0x2000_0000,
        lowest: 0x1_0000,
        highest: 0x7fff_0000,
        reserved: Vec::new(),
        stack_limit: 8 << 20,
    };
    let plan = plan(&request, &layout).unwrap();
    let input = StackInput {
        argv: &plan.argv,
        env: &env,
        execfn: &plan.execfn,
        random: native.from(values[&AT_RANDOM])[..16].try_into().unwrap(),
        platform: b"x86_64",
        hwcap: values[&16],
        hwcap2: values[&26],
        min_signal_stack: values.get(&51).copied(),
        page_size: 4096,
        clock_ticks: values[&17],
        uid: values[&11] as u32,
        euid: values[&12] as u32,
        gid: values[&13] as u32,
        egid: values[&14] as u32,
        stack_top: native.top(),
    };
    let image = build_stack(&plan, &input);
    let ours = Stack {
        sp: image.sp,
        bytes: image.bytes,
    };
    let (pointers, auxiliary) = ours.tables();
    assert_eq!(pointers, native_pointers);
    assert_eq!(auxiliary, native_auxiliary);
    // From the random bytes up, everything must be the same, to the last byte.
    assert_eq!(
        ours.from(values[&AT_RANDOM]),
        native.from(values[&AT_RANDOM])
    );
}
