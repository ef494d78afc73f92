//! The instructions of a binary by source line, as `objdump` (part of every compiler's binutils)
//! lists them. Good enough to see whether a line still accesses memory; not a disassembler.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// One instruction in AT&T syntax: `mov %rax,0x2e56(%rip)`.
#[derive(Clone, Debug)]
pub struct Instruction(String);

impl Instruction {
    fn mnemonic(&self) -> &str {
        self.0.split_whitespace().next().unwrap_or_default()
    }

    /// A library function reads and writes on its caller's behalf.
    fn calls(&self) -> bool {
        self.mnemonic().starts_with("call") || self.mnemonic() == "syscall"
    }

    fn is_memory(operand: &str) -> bool {
        operand.contains('(') || operand.contains("%fs:") || operand.contains("%ds:")
    }

    fn operands(&self) -> Vec<&str> {
        let text = self
            .0
            .split_once(char::is_whitespace)
            .map_or("", |(_, rest)| rest.trim());
        let text = text.split(['#', '<']).next().unwrap_or_default();
        // A comma inside parentheses belongs to an address.
        let mut depth = 0;
        let outside = |c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        };
        text.split(outside).map(str::trim).collect()
    }

    fn is_string(&self) -> bool {
        ["rep", "movs", "stos"]
            .iter()
            .any(|name| self.mnemonic().starts_with(name))
    }

    pub fn may_read(&self) -> bool {
        let plain_store = self.mnemonic().starts_with("mov") && !self.is_string();
        let operands = self.operands();
        let sources = if plain_store && operands.len() > 1 {
            &operands[..operands.len() - 1]
        } else {
            &operands[..]
        };
        let touches = sources.iter().any(|operand| Self::is_memory(operand));
        self.calls() || (touches && !self.mnemonic().starts_with("lea"))
    }

    pub fn may_write(&self) -> bool {
        let only_reads = ["lea", "cmp", "test", "push", "jmp", "nop", "bt"];
        if self.calls() || self.is_string() {
            return true;
        }
        let last_is_memory = self
            .operands()
            .last()
            .is_some_and(|last| Self::is_memory(last));
        last_is_memory
            && !only_reads
                .iter()
                .any(|name| self.mnemonic().starts_with(name))
    }
}

/// The instructions that the debug information gives to each line of `source`; an inlined
/// instruction belongs to every line of its inline chain.
pub fn instructions_by_line(binary: &Path, source: &Path) -> BTreeMap<u32, Vec<Instruction>> {
    let output = Command::new("objdump")
        .args([
            "-d",
            "-l",
            "--inlines",
            "--no-show-raw-insn",
            "--section=.text",
        ])
        .arg(binary)
        .output()
        .unwrap_or_else(|error| panic!("objdump, part of binutils, cannot be started: {error}"));
    assert!(
        output.status.success(),
        "objdump {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let listing = String::from_utf8_lossy(&output.stdout);
    let source = source.to_str().expect("paths of programs are text");
    let mut by_line: BTreeMap<u32, Vec<Instruction>> = BTreeMap::new();
    let mut chain: Vec<u32> = Vec::new();
    let mut chain_used = false;
    for text in listing.lines() {
        if let Some((_, instruction)) = text.split_once(":\t") {
            chain_used = true;
            for &line in &chain {
                by_line
                    .entry(line)
                    .or_default()
                    .push(Instruction(instruction.trim().to_owned()));
            }
        } else if let Some(place) = text.strip_prefix("inlined by ") {
            chain.extend(line_of(place, source));
        } else if text.starts_with('/') || chain_used {
            chain = line_of(text, source).into_iter().collect();
            chain_used = false;
        }
    }
    by_line
}

/// The line of `/path/program.c:28 (discriminator 3)`, if the path is `source`.
fn line_of(text: &str, source: &str) -> Option<u32> {
    let rest = text.strip_prefix(source)?.strip_prefix(':')?;
    rest.split_whitespace().next()?.parse().ok()
}
