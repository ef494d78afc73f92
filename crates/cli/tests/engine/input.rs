//! Input for the programs: the same in every run, compressible as real text is.

/// About `len` bytes of lines of words.
pub fn words(len: usize) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "race", "thread", "lock", "memory", "order", "clock", "the", "a", "of", "segment", "write",
        "read", "happens", "before", "after", "unlock",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut text = Vec::with_capacity(len + 32);
    while text.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.extend_from_slice(WORDS[(state >> 20) as usize % 16].as_bytes());
        if state.is_multiple_of(16) {
            text.extend_from_slice((state >> 40).to_string().as_bytes());
        }
        text.push(if state.is_multiple_of(11) {
            b'\n'
        } else {
            b' '
        });
    }
    text.truncate(len);
    text
}

/// `count` short lines in no order.
pub fn lines(count: u64) -> Vec<u8> {
    let line = |n: u64| format!("{:x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44);
    (1..=count).map(line).collect::<String>().into_bytes()
}

/// A C file of about `lines` lines that gives an optimiser something to do.
pub fn c_source(lines: usize) -> Vec<u8> {
    let mut text = String::from("#include <stdio.h>\n#include <string.h>\n");
    let functions = lines / 10;
    for n in 0..functions {
        text += &format!(
            "static int f{n}(int x, const char *s) {{\n    int sum = {n};\n    for (int i = 0; i < x; i++) {{\n        \
             switch ((i + {n}) % 5) {{\n        case 0: sum += i * {k}; break;\n        case 1: sum ^= s[i % 7]; break;\n        \
             default: sum -= (int)strlen(s) + i / 3;\n        }}\n    }}\n    return sum;\n}}\n",
            k = n * 7 + 3
        );
    }
    text += "int main(int argc, char **argv) {\n    long total = 0;\n";
    for n in 0..functions {
        text += &format!("    total += f{n}(argc + {n}, argv[0]);\n");
    }
    text += "    printf(\"%ld\\n\", total & 1);\n    return 0;\n}\n";
    text.into_bytes()
}
