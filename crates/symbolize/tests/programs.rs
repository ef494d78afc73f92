//! Programs built here, with and without debug information, asked about themselves.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;
use verdict_symbolize::{MappedModule, StoppedThread, Symbolizer};

const PROGRAM: &str = "\
namespace shop {
volatile int sold;
__attribute__((always_inline)) inline void sell(int count) {
    sold = sold + count;
}
__attribute__((noinline)) int open_all_day(int customers) {
    for (int i = 0; i < customers; i++)
        sell(i);
    return sold;
}
}
int main(int argc, char **) { return shop::open_all_day(argc); }
";

struct Built {
    folder: TempDir,
    program: PathBuf,
}

fn run(folder: &Path, command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn build(flags: &[&str]) -> Built {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("shop.cc"), PROGRAM).unwrap();
    let arguments = [&["-O2", "shop.cc", "-o", "shop"], flags].concat();
    run(folder.path(), "g++", &arguments);
    let program = folder.path().join("shop");
    Built { folder, program }
}

/// The address of the function, by another tool.
fn function_address(built: &Built) -> u64 {
    let symbols = run(built.folder.path(), "nm", &["shop"]);
    let line = symbols
        .lines()
        .find(|line| line.ends_with("_ZN4shop12open_all_dayEi"))
        .unwrap();
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}

/// The instructions of the function, by another tool: addresses and their text.
fn instructions(built: &Built) -> Vec<(u64, String)> {
    let text = run(
        built.folder.path(),
        "objdump",
        &[
            "-d",
            "--no-show-raw-insn",
            "--disassemble=_ZN4shop12open_all_dayEi",
            "shop",
        ],
    );
    text.lines()
        .filter_map(|line| {
            let (address, text) = line.trim_start().split_once(":\t")?;
            Some((
                u64::from_str_radix(address, 16).ok()?,
                text.trim().to_owned(),
            ))
        })
        .collect()
}

/// An instruction of the function that was inlined: the store to the variable.
fn store(built: &Built) -> u64 {
    let instructions = instructions(built);
    let store = instructions.iter().find(|(_, text)| {
        text.starts_with("mov") && text.split(',').next_back().unwrap().contains("sold")
    });
    store.unwrap_or_else(|| panic!("{instructions:?}")).0
}

fn show(symbolizer: &mut Symbolizer, built: &Built, address: u64) -> Vec<String> {
    let location = symbolizer.at_address(&built.program, address);
    let by_offset = symbolizer.at_file_offset(&built.program, location.file_offset.unwrap());
    assert_eq!(location, by_offset);
    let folder = format!("{}/", built.folder.path().canonicalize().unwrap().display());
    let frame = |frame: &verdict_symbolize::Frame| {
        let function = frame
            .function
            .as_ref()
            .map_or_else(String::new, ToString::to_string);
        let source = frame
            .source
            .as_ref()
            .map_or_else(String::new, ToString::to_string);
        format!("{function} @ {source}").replace(&folder, "")
    };
    location.frames.iter().map(frame).collect()
}

#[test]
fn debug_information_gives_lines_and_inlined_callers() {
    let built = build(&["-g"]);
    let mut symbolizer = Symbolizer::default();
    let frames = show(&mut symbolizer, &built, store(&built));
    // Compilers do not agree on columns.
    let without_columns: Vec<_> = frames
        .iter()
        .map(|frame| frame.rsplit_once(':').unwrap().0)
        .collect();
    assert_eq!(
        without_columns,
        [
            "shop::sell(int) @ shop.cc:4",
            "shop::open_all_day(int) @ shop.cc:8"
        ]
    );
}

#[test]
fn compressed_debug_information_is_read() {
    let built = build(&["-g", "-gz=zlib"]);
    let frames = show(&mut Symbolizer::default(), &built, store(&built));
    assert_eq!(frames.len(), 2);
}

#[test]
fn a_symbol_table_gives_the_function() {
    let built = build(&[]);
    let address = function_address(&built);
    let frames = show(&mut Symbolizer::default(), &built, address + 4);
    assert_eq!(frames, ["shop::open_all_day(int)+0x4 @ "]);
}

#[test]
fn a_stripped_binary_gives_the_offset() {
    let built = build(&[]);
    let address = function_address(&built);
    run(built.folder.path(), "strip", &["shop"]);
    let location = Symbolizer::default().at_address(&built.program, address);
    let offset = location.file_offset.unwrap();
    assert!(location.frames.is_empty());
    assert_eq!(
        location.to_string(),
        format!("{}+{offset:#x}", built.program.display())
    );
}

#[test]
fn a_debug_file_is_found_by_build_id() {
    let built = build(&["-g", "-Wl,--build-id=0xabcdef0123456789"]);
    let store = store(&built);
    let root = built.folder.path().join("root");
    fs::create_dir_all(root.join(".build-id/ab")).unwrap();
    run(
        built.folder.path(),
        "objcopy",
        &[
            "--only-keep-debug",
            "shop",
            "root/.build-id/ab/cdef0123456789.debug",
        ],
    );
    run(built.folder.path(), "strip", &["shop"]);
    let mut symbolizer = Symbolizer::with_debug_root(root.clone());
    assert_eq!(show(&mut symbolizer, &built, store).len(), 2);
    // The file of another binary under this one's name is not believed.
    fs::copy("/bin/true", root.join(".build-id/ab/cdef0123456789.debug")).unwrap();
    let mut symbolizer = Symbolizer::with_debug_root(root);
    assert!(show(&mut symbolizer, &built, store).is_empty());
}

#[test]
fn a_debug_file_is_found_by_debug_link() {
    let built = build(&["-g", "-Wl,--build-id=none"]);
    let store = store(&built);
    run(
        built.folder.path(),
        "objcopy",
        &["--only-keep-debug", "shop", "shop.debug"],
    );
    run(built.folder.path(), "strip", &["shop"]);
    run(
        built.folder.path(),
        "objcopy",
        &["--add-gnu-debuglink=shop.debug", "shop"],
    );
    assert_eq!(show(&mut Symbolizer::default(), &built, store).len(), 2);
    fs::create_dir(built.folder.path().join(".debug")).unwrap();
    fs::rename(
        built.folder.path().join("shop.debug"),
        built.folder.path().join(".debug/shop.debug"),
    )
    .unwrap();
    assert_eq!(show(&mut Symbolizer::default(), &built, store).len(), 2);
    // A file with another checksum is of another build.
    fs::write(
        built.folder.path().join(".debug/shop.debug"),
        fs::read("/bin/true").unwrap(),
    )
    .unwrap();
    assert!(show(&mut Symbolizer::default(), &built, store).is_empty());
}

#[inline(never)]
fn landmark(number: u64) -> u64 {
    std::hint::black_box(number) + 1
}

#[test]
fn rust_names_are_demangled() {
    assert_eq!(landmark(std::hint::black_box(1)), 2);
    let own = std::env::current_exe().unwrap();
    let symbols = run(Path::new("/"), "nm", &[own.to_str().unwrap()]);
    let line = symbols
        .lines()
        .find(|line| line.contains("8programs8landmark") && line.contains(" t "))
        .unwrap();
    let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    let location = Symbolizer::default().at_address(&own, address);
    let name = &location.function().unwrap().name;
    assert_eq!(name, "programs::landmark");
}

#[test]
fn what_is_not_there_is_no_failure() {
    let mut symbolizer = Symbolizer::default();
    for path in ["/no/such/file", "/", "/dev/zero", "/etc/passwd"] {
        let location = symbolizer.at_file_offset(Path::new(path), 0x1234);
        assert_eq!(location.to_string(), format!("{path}+0x1234"));
    }
}

/// A thread of the program, which is mapped from address 0.
fn stopped<'a>(program: &'a Path, rip: u64, stack: &'a [u8]) -> StoppedThread<'a> {
    let modules = vec![MappedModule {
        start: 0,
        end: 0x10_0000,
        file_offset: 0,
        path: program,
    }];
    StoppedThread {
        general: [0x7000_0000; 16],
        rip,
        stack,
        modules,
    }
}

#[test]
fn callers_are_found_without_frame_pointers() {
    let built = build(&["-g", "-fomit-frame-pointer"]);
    let symbols = run(built.folder.path(), "nm", &["shop"]);
    let line = symbols
        .lines()
        .find(|line| line.ends_with(" T main"))
        .unwrap();
    let main = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    // At a function's first instruction, the return address is all there is on the stack.
    let stack = (main + 4).to_le_bytes();
    let first = function_address(&built);
    let chain = Symbolizer::default().call_chain(&stopped(&built.program, first, &stack));
    let names: Vec<_> = chain
        .iter()
        .map(|place| place.function().unwrap().name.as_str())
        .collect();
    assert_eq!(names, ["shop::open_all_day(int)", "main"]);
}

#[test]
fn a_call_to_nowhere_has_a_caller() {
    let built = build(&["-g"]);
    let first = function_address(&built);
    let stack = (first + 4).to_le_bytes();
    let chain = Symbolizer::default().call_chain(&stopped(&built.program, u64::MAX, &stack));
    assert_eq!(chain[0].to_string(), "0xffffffffffffffff, in no file");
    assert_eq!(chain[1].function().unwrap().name, "shop::open_all_day(int)");
    assert_eq!(chain.len(), 2);
}

fn data_address(built: &Built) -> u64 {
    let symbols = run(built.folder.path(), "nm", &["shop"]);
    let mut lines = symbols.lines();
    let line = lines.find(|line| line.ends_with("_ZN4shop4soldE")).unwrap();
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}

/// Bytes of a real binary are overwritten at random; every place must still have an answer.
#[test]
fn garbage_is_no_failure() {
    let built = build(&["-g"]);
    let sound = fs::read(&built.program).unwrap();
    let places = instructions(&built);
    let data = data_address(&built);
    let changes = proptest::collection::vec((0..sound.len(), any::<u8>()), 1..200);
    let mut runner = TestRunner::new_with_rng(
        ProptestConfig::with_cases(300),
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    runner
        .run(&(changes, 0..sound.len()), |(changes, length)| {
            let mut bytes = sound.clone();
            for (at, value) in changes {
                bytes[at] = value;
            }
            for length in [bytes.len(), length] {
                bytes.truncate(length);
                fs::write(&built.program, &bytes).unwrap();
                let mut symbolizer = Symbolizer::default();
                for (address, _) in &places {
                    let _ = symbolizer.at_address(&built.program, *address).to_string();
                    let _ = symbolizer
                        .at_file_offset(&built.program, *address)
                        .to_string();
                    let _ = symbolizer.atomic_at(&built.program, *address);
                    let thread = stopped(&built.program, *address, &sound[..64]);
                    let _ = symbolizer.call_chain(&thread);
                    let _ = symbolizer.stack_variable(&thread, 0x7000_0010, 4);
                }
                let loaded = symbolizer.loaded(&stopped(&built.program, 0, &[]).modules);
                for address in [data, data + 1, 0x1000] {
                    let _ = symbolizer.variable(&loaded, address, 4);
                }
            }
            Ok(())
        })
        .unwrap();
}
