//! Addresses of data are given the names that the source has for them.
#![forbid(unsafe_code)]

mod support;

use support::{Built, build, run, symbol};
use verdict_symbolize::{LoadedModule, MappedModule, StoppedThread, Symbolizer, Variable};

fn at(built: &Built, symbol_name: &str, offset: u64, size: u64) -> Option<Variable> {
    let loaded = [LoadedModule {
        path: built.program.clone(),
        bias: 0x1000_0000,
    }];
    let address = 0x1000_0000 + symbol(built, symbol_name) + offset;
    let mut symbolizer = Symbolizer::default();
    let (module, variable) = symbolizer.variable(&loaded, address, size)?;
    assert_eq!(module, built.program);
    Some(variable)
}

/// Name, and what is known beside it.
fn shown(built: &Built, symbol: &str, offset: u64, size: u64) -> String {
    let Some(variable) = at(built, symbol, offset, size) else {
        return "?".to_owned();
    };
    let mut text = variable.name;
    if let Some(type_name) = variable.type_name {
        text.push_str(&format!(": {type_name}"));
    }
    if let Some(function) = variable.function {
        text.push_str(&format!(" in {function}"));
    }
    if variable.atomic {
        text.push_str(", atomic");
    }
    text
}

const C: &str = "\
struct node { long key; struct node *next; };
struct queue {
    int count;
    struct node head[4];
    union { int number; struct { char low, high; } half; };
    unsigned flag : 3, mode : 5;
} queue;
static long matrix[3][5];
typedef volatile int word;
word plain;
_Atomic int atom;
const char *names[2];
__thread int own[4];
int counter(void) { static int calls; return ++calls; }
int main(void) { return counter() + queue.count + plain + atom + own[0] + (int)matrix[0][0] + !names[0]; }
";

#[test]
fn fields_and_elements_of_globals_are_named() {
    let built = build("data.c", C, &[]);
    // count 0-4, head 8-72 (16 each), union 72-76, bits 76.
    for (offset, size, name) in [
        (0, 4, "queue.count: int"),
        (8, 8, "queue.head[0].key: long int"),
        (64, 8, "queue.head[3].next: struct node *"),
        (40, 16, "queue.head[2]: struct node"),
        (8, 64, "queue.head: struct node[4]"),
        (72, 4, "queue.number: int"),
        (76, 1, "queue.flag: unsigned int"),
        (0, 80, "queue: struct queue"),
    ] {
        assert_eq!(shown(&built, "queue", offset, size), name);
    }
    assert_eq!(shown(&built, "matrix", 8 * 8, 8), "matrix[1][3]: long int");
    assert_eq!(shown(&built, "names", 8, 8), "names[1]: const char *");
    assert_eq!(shown(&built, "plain", 0, 4), "plain: word");
    assert_eq!(shown(&built, "atom", 0, 4), "atom: _Atomic int, atomic");
}

#[test]
fn a_static_of_a_function_says_whose() {
    let built = build("data.c", C, &[]);
    let symbols = run(built.folder.path(), "nm", &["program"]);
    let calls = symbols
        .split_whitespace()
        .find(|word| word.starts_with("calls."))
        .unwrap();
    assert_eq!(shown(&built, calls, 0, 4), "calls: int in counter");
}

#[test]
fn declarations_have_a_line() {
    let built = build("data.c", C, &[]);
    let declared = at(&built, "queue", 0, 4).unwrap().declared.unwrap();
    assert_eq!(declared.line, Some(7));
    assert_eq!(
        std::path::Path::new(&declared.file),
        built.folder.path().canonicalize().unwrap().join("data.c")
    );
}

#[test]
fn thread_locals_are_named() {
    let built = build("data.c", C, &[]);
    let mut symbolizer = Symbolizer::default();
    let thread_pointer = 0x7000_0000;
    let offset = symbol(&built, "own");
    let at = |symbolizer: &mut Symbolizer, address| {
        symbolizer
            .thread_local(&built.program, thread_pointer, address, 4)
            .map(|variable| variable.name)
    };
    assert_eq!(offset, 0, "the only one");
    let found = at(&mut symbolizer, thread_pointer - 16 + 8);
    assert_eq!(found.as_deref(), Some("own[2]"));
    assert_eq!(at(&mut symbolizer, thread_pointer), None);
    assert_eq!(at(&mut symbolizer, thread_pointer - 17), None);
}

const CPP: &str = "\
#include <atomic>
namespace shop {
struct Base { long id; };
struct Till : Base { int sold[2]; static int tills; };
int Till::tills;
Till till;
std::atomic<int> open;
namespace { int hidden; }
int work() { static long calls; return till.sold[1] + open + hidden + Till::tills + ++calls; }
}
int main() { return shop::work(); }
";

#[test]
fn names_of_cpp_have_their_namespaces() {
    let built = build("shop.cc", CPP, &[]);
    for (symbol, offset, name) in [
        ("_ZN4shop4tillE", 0, "shop::till.id: long int"),
        ("_ZN4shop4tillE", 12, "shop::till.sold[1]: int"),
        ("_ZN4shop4Till5tillsE", 0, "shop::Till::tills: int"),
        ("_ZN4shop4openE", 0, "shop::open: atomic<int>, atomic"),
        (
            "_ZN4shop12_GLOBAL__N_16hiddenE",
            0,
            "shop::(anonymous namespace)::hidden: int",
        ),
        (
            "_ZZN4shop4workEvE5calls",
            0,
            "calls: long int in shop::work()",
        ),
    ] {
        assert_eq!(shown(&built, symbol, offset, 4), name);
    }
}

const RUST: &str = "
use std::sync::atomic::AtomicU64;
mod inner { pub struct Pair { pub left: u32, pub right: (u64, u64) }
            pub static mut PAIR: Pair = Pair { left: 0, right: (0, 0) }; }
static HITS: AtomicU64 = AtomicU64::new(0);
fn main() {
    static mut CALLS: u32 = 0;
    unsafe { CALLS += 1; inner::PAIR.right.1 += CALLS as u64; inner::PAIR.left += 1; }
    HITS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    std::process::exit(unsafe { inner::PAIR.right.1 } as i32);
}
";

#[test]
fn names_of_rust_have_their_modules() {
    let built = build("data.rs", RUST, &[]);
    let symbols = run(built.folder.path(), "nm", &["program"]);
    let mangled = |part: &str| {
        let mut words = symbols.split_whitespace();
        words.find(|word| word.contains(part)).unwrap().to_owned()
    };
    let names = [
        shown(&built, &mangled("4PAIR"), 0, 8),
        shown(&built, &mangled("4PAIR"), 8, 8),
        shown(&built, &mangled("4PAIR"), 16, 4),
        shown(&built, &mangled("4HITS"), 0, 8),
        shown(&built, &mangled("5CALLS"), 0, 4),
    ];
    let crate_name = "data";
    assert_eq!(names[2], format!("{crate_name}::inner::PAIR.left: u32"));
    assert_eq!(names[1], format!("{crate_name}::inner::PAIR.right.1: u64"));
    assert_eq!(names[0], format!("{crate_name}::inner::PAIR.right.0: u64"));
    assert_eq!(names[3], format!("{crate_name}::HITS: AtomicU64, atomic"));
    assert_eq!(names[4], format!("{crate_name}::main::CALLS: u32"));
}

#[test]
fn without_debug_information_there_is_the_symbol() {
    let built = build("data.c", C, &["-g0"]);
    assert_eq!(shown(&built, "queue", 0, 4), "queue");
    assert_eq!(shown(&built, "queue", 8, 4), "queue+0x8");
    let address = symbol(&built, "queue");
    run(built.folder.path(), "strip", &["program"]);
    let loaded = [LoadedModule {
        path: built.program.clone(),
        bias: 0,
    }];
    assert_eq!(Symbolizer::default().variable(&loaded, address, 4), None);
}

#[test]
fn split_debug_information_is_found() {
    let name = "queue.head[3].next: struct node *";
    // The package tool of some systems knows the older format only.
    for format in ["-gdwarf-5", "-gdwarf-4"] {
        let built = build("data.c", C, &["-gsplit-dwarf", format]);
        assert_eq!(shown(&built, "queue", 64, 8), name, "{format}");
        let main = symbol(&built, "main");
        let location = Symbolizer::default().at_address(&built.program, main);
        assert_eq!(location.source().unwrap().line, Some(15));
        let names: Vec<_> = location
            .frames
            .iter()
            .map(|frame| &frame.function)
            .collect();
        assert_eq!(names.len(), 1);
        if format == "-gdwarf-4" {
            let arguments = ["-e", "program", "-o", "program.dwp"];
            run(built.folder.path(), "dwp", &arguments);
        }
        run(built.folder.path(), "sh", &["-c", "rm *.dwo"]);
        if format == "-gdwarf-4" {
            assert_eq!(shown(&built, "queue", 64, 8), name, "in a package");
            run(built.folder.path(), "rm", &["program.dwp"]);
        }
        assert_eq!(shown(&built, "queue", 64, 8), "queue+0x40");
    }
}

const STACK: &str = "\
struct pair { long left, right[2]; };
void stop(struct pair *shared, int *number);
int work(int count) {
    struct pair shared = { count, { 1, 2 } };
    int number = count;
    stop(&shared, &number);
    return (int)shared.left + number;
}
int main(void) { return work(3); }
void stop(struct pair *shared, int *number) { shared->left = *number; }
";

/// A stack as it is in `stop`, called by `work`: what is below the return address to `main` is all zeroes.
#[test]
fn variables_of_frames_are_named() {
    for flags in [&["-O0"][..], &["-O1", "-fno-inline", "-fno-ipa-sra"]] {
        let built = build("stack.c", STACK, flags);
        let work = symbol(&built, "work");
        let inside = support::instructions(&built, "work");
        let call = inside
            .iter()
            .position(|(_, text)| text.contains("<stop>"))
            .unwrap();
        let (after_call, _) = inside[call + 1];
        // Whatever the frame of `work` looks like, the word that returns to `main` is at its end.
        let end = frame_end(&built, after_call);
        let mut stack = after_call.to_le_bytes().to_vec();
        stack.resize(8 + usize::try_from(end).unwrap() - 8, 0);
        stack.extend((symbol(&built, "main") + 8).to_le_bytes());
        let rsp = 0x7000_0000;
        let mut general = [0; 16];
        general[4] = rsp;
        // A frame pointer points to where the last one was saved, below the return address.
        general[5] = rsp + 8 + end - 16;
        let thread = StoppedThread {
            general,
            rip: symbol(&built, "stop"),
            stack: &stack,
            modules: vec![MappedModule {
                start: 0,
                end: 0x10_0000,
                file_offset: 0,
                path: &built.program,
            }],
        };
        let mut symbolizer = Symbolizer::default();
        let mut names = Vec::new();
        for address in (rsp..rsp + stack.len() as u64).step_by(4) {
            let found = symbolizer.stack_variable(&thread, address, 4);
            let Some(found) = found.filter(|found| found.function.as_deref() == Some("work"))
            else {
                continue;
            };
            names.extend(found.variable.map(|variable| variable.name));
        }
        names.sort();
        names.dedup();
        let shared = [
            "number",
            "shared.left",
            "shared.right[0]",
            "shared.right[1]",
        ];
        for name in shared {
            assert!(
                names.iter().any(|found| found == name),
                "{name} of {flags:?}: {names:?}, work at {work:#x}"
            );
        }
    }
}

/// The bytes from the stack pointer of `work` in the middle of its call to the end of its frame, by another tool.
fn frame_end(built: &Built, address: u64) -> u64 {
    let table = run(
        built.folder.path(),
        "readelf",
        &["--debug-dump=frames-interp", "program"],
    );
    let mut cfa = None;
    for line in table.lines() {
        let mut words = line.split_whitespace();
        let Some(location) = words
            .next()
            .and_then(|word| u64::from_str_radix(word, 16).ok())
        else {
            continue;
        };
        let Some(rule) = words.next() else { continue };
        if location < address && rule.starts_with('r') && line.len() > 16 {
            cfa = Some(rule.to_owned());
        } else if location >= address && cfa.is_some() {
            break;
        }
    }
    let rule = cfa.unwrap();
    let offset: u64 = rule.split('+').next_back().unwrap().parse().unwrap();
    if rule.starts_with("rsp") {
        return offset;
    }
    // From the frame pointer; the frame is as large as the function makes it.
    let inside = support::instructions(built, "work");
    let grown = inside
        .iter()
        .find_map(|(_, text)| {
            text.strip_prefix("sub")?
                .trim()
                .strip_prefix("$0x")?
                .split(',')
                .next()
                .map(str::to_owned)
        })
        .unwrap();
    offset + u64::from_str_radix(&grown, 16).unwrap()
}
