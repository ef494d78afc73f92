//! Atomic operations that compilers turn into plain instructions are told from plain accesses.
#![forbid(unsafe_code)]

mod support;

use std::fmt::Write;

use support::{Built, build, instructions};
use verdict_symbolize::Symbolizer;

/// What is said of the instructions of a function that access memory outside of its own frame.
fn accesses(built: &Built, function: &str) -> Vec<String> {
    let mut symbolizer = Symbolizer::default();
    let listed = instructions(built, function);
    assert!(!listed.is_empty(), "{function} is not there");
    let outside = listed.iter().filter(|(_, text)| {
        let accesses = text.contains('(') && !text.starts_with("lea") && !text.starts_with("nop");
        let elsewhere = ["call", "jmp", "(%rsp)", "(%rbp)"];
        accesses && !elsewhere.iter().any(|part| text.contains(part))
    });
    let said = outside.map(|(address, _)| {
        let offset = symbolizer
            .at_address(&built.program, *address)
            .file_offset
            .unwrap();
        match symbolizer.atomic_at(&built.program, offset) {
            Some(found) => {
                let order = found
                    .order
                    .map_or("?".to_owned(), |order| format!("{order:?}"));
                format!("{order} {}", found.how)
            }
            None => "plain".to_owned(),
        }
    });
    said.collect()
}

fn table(built: &Built, functions: &[&str]) -> String {
    let mut table = String::new();
    for function in functions {
        for line in accesses(built, function) {
            writeln!(table, "{function}: {line}").unwrap();
        }
    }
    table
}

const C: &str = "\
#include <stdatomic.h>
int plain, other;
_Atomic int atom;
int load_builtin(void) { return __atomic_load_n(&plain, __ATOMIC_ACQUIRE); }
void store_builtin(int x) { __atomic_store_n(&plain, x, __ATOMIC_RELEASE); }
int load_macro(void) { return atomic_load_explicit(&atom, memory_order_relaxed); }
void store_macro(int x) { atomic_store_explicit(&atom, x,
                                 memory_order_release); }
int load_plain(void) { return plain; }
int load_both(void) { return other + __atomic_load_n(&plain, __ATOMIC_RELAXED); }
int main(void) { return 0; }
";

#[test]
fn builtins_and_macros_of_c_are_known_by_their_source() {
    let functions = [
        "load_builtin",
        "store_builtin",
        "load_macro",
        "store_macro",
        "load_plain",
        "load_both",
    ];
    for optimisation in ["-O0", "-O2"] {
        let built = build("atom.c", C, &[optimisation]);
        let mut lines: Vec<String> = table(&built, &functions)
            .lines()
            .map(str::to_owned)
            .collect();
        lines.dedup();
        lines.sort();
        assert_eq!(
            lines,
            [
                "load_both: Relaxed the source calls __atomic_load_n",
                "load_both: plain",
                "load_builtin: Acquire the source calls __atomic_load_n",
                "load_macro: Relaxed the source calls atomic_load_explicit",
                "load_plain: plain",
                "store_builtin: Release the source calls __atomic_store_n",
                "store_macro: Release the source calls atomic_store_explicit",
            ],
            "{optimisation}"
        );
    }
}

const CPP: &str = r#"
#include <atomic>
struct Node { Node *next; };
std::atomic<int> number;
std::atomic<Node *> head;
std::atomic_flag taken;
std::atomic<bool> done;
int plain;
extern "C" {
int load_acquire() { return number.load(std::memory_order_acquire); }
int load_default() { return number.load(); }
int convert() { return number; }
Node *load_pointer() { return head.load(std::memory_order_relaxed); }
void store_bool() { done.store(true, std::memory_order_release); }
void clear_flag() { taken.clear(std::memory_order_release); }
int load_plain() { return plain; }
int load_free() { return std::atomic_load_explicit(&number, std::memory_order_acquire); }
}
int main() { return 0; }
"#;

#[test]
fn atomics_of_cpp_are_known_by_the_inlined_functions() {
    let built = build("atom.cc", CPP, &["-O2", "-fno-ipa-icf"]);
    let functions = [
        "load_acquire",
        "load_default",
        "convert",
        "load_pointer",
        "store_bool",
        "clear_flag",
        "load_plain",
        "load_free",
    ];
    assert_eq!(
        table(&built, &functions),
        "\
load_acquire: Acquire it is in std::__atomic_base<int>::load
load_default: SeqCst it is in std::__atomic_base<int>::load
convert: SeqCst it is in std::__atomic_base<int>::load
load_pointer: Relaxed it is in std::__atomic_base<Node*>::load
store_bool: Release it is in std::__atomic_base<bool>::store
clear_flag: Release it is in std::atomic_flag::clear
load_plain: plain
load_free: Acquire it is in std::__atomic_base<int>::load
"
    );
}

#[test]
fn without_optimisation_the_order_of_cpp_is_passed_at_run_time() {
    let built = build("atom.cc", CPP, &["-O0"]);
    let said = accesses(&built, "load_acquire");
    assert_eq!(said, ["? it is in std::__atomic_base<int>::load"]);
    assert_eq!(accesses(&built, "load_plain"), ["plain"]);
}

const RUST: &str = "
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
static NUMBER: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicBool = AtomicBool::new(false);
static HEAD: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static mut PLAIN: u64 = 0;
#[no_mangle] #[inline(never)]
pub fn load_acquire() -> u64 { NUMBER.load(Ordering::Acquire) }
#[no_mangle] #[inline(never)]
pub fn load_relaxed() -> u64 { NUMBER.load(Ordering::Relaxed) }
#[no_mangle] #[inline(never)]
pub fn store_release(value: u64) { NUMBER.store(value, Ordering::Release) }
#[no_mangle] #[inline(never)]
pub fn load_bool() -> bool { DONE.load(Ordering::SeqCst) }
#[no_mangle] #[inline(never)]
pub fn store_pointer(value: *mut u8) { HEAD.store(value, Ordering::Relaxed) }
#[no_mangle] #[inline(never)]
pub fn load_plain() -> u64 { unsafe { PLAIN } }
fn main() {
    store_release(load_acquire() + load_relaxed() + load_plain());
    store_pointer(if load_bool() { std::ptr::null_mut() } else { 1 as *mut u8 });
    unsafe { PLAIN = 1 };
    DONE.store(load_plain() == 1, Ordering::Relaxed);
    std::process::exit(load_bool() as i32 + HEAD.load(Ordering::Acquire) as i32);
}
";

#[test]
fn atomics_of_rust_are_known_by_the_inlined_functions() {
    let built = build("atom.rs", RUST, &["-Copt-level=2"]);
    let functions = [
        "load_acquire",
        "load_relaxed",
        "store_release",
        "load_bool",
        "store_pointer",
        "load_plain",
    ];
    assert_eq!(
        table(&built, &functions),
        "\
load_acquire: Acquire it is in core::sync::atomic::atomic_load
load_relaxed: Relaxed it is in core::sync::atomic::atomic_load
store_release: Release it is in core::sync::atomic::atomic_store
load_bool: SeqCst it is in core::sync::atomic::atomic_load
store_pointer: Relaxed it is in core::sync::atomic::atomic_store
load_plain: plain
"
    );
}

#[test]
fn without_optimisation_the_order_of_rust_is_in_the_line() {
    let built = build("atom.rs", RUST, &["-Copt-level=0"]);
    let symbols = support::run(built.folder.path(), "nm", &["program"]);
    let load = symbols
        .split_whitespace()
        .find(|word| word.contains("11atomic_load"))
        .unwrap();
    let orders: Vec<String> = accesses(&built, load)
        .iter()
        .map(|said| said.split(' ').next().unwrap().to_owned())
        .filter(|order| order != "?")
        .collect();
    assert_eq!(orders, ["Relaxed", "Acquire", "SeqCst"]);
}
