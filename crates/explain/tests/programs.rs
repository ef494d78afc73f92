//! Races of programs built here, from addresses to findings.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use verdict_explain::{
    Code, CodePlace, HeapBlock, RawAccess, RawLock, RawMemory, RawRace, RawRun, RawThread, explain,
};
use verdict_findings::{AccessKind, Frame, LockMode, ProgramFindings, VariableKind};
use verdict_symbolize::LoadedModule;

const PROGRAM: &str = "\
#include <pthread.h>
struct { long sold; int hits[4]; } stats;
pthread_mutex_t lock;
int get(void) {
    return stats.hits[2];
}
void put(int value) {
    stats.hits[2] = value;
}
int main(int argc, char **argv) { (void)argv; put(argc); return get() + (int)sizeof lock; }
";

const BIAS: u64 = 0x1000_0000;

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
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn build(text: &str, flags: &[&str]) -> Built {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("shop.c"), text).unwrap();
    run(
        folder.path(),
        "gcc",
        &[&["shop.c", "-o", "shop"], flags].concat(),
    );
    let program = folder.path().join("shop");
    Built { folder, program }
}

impl Built {
    fn symbol(&self, name: &str) -> u64 {
        let symbols = run(self.folder.path(), "nm", &["shop"]);
        let mut lines = symbols.lines();
        let line = lines
            .find(|line| line.split(' ').next_back() == Some(name))
            .unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    }

    /// The instruction of a function that accesses the variable. Code is linked at its offset in the file.
    fn site(&self, function: &str) -> CodePlace {
        let disassemble = format!("--disassemble={function}");
        let arguments = ["-d", "--no-show-raw-insn", &disassemble, "shop"];
        let text = run(self.folder.path(), "objdump", &arguments);
        let mut lines = text.lines();
        let line = lines
            .find(|line| line.contains("mov") && line.contains("<stats"))
            .unwrap();
        let address = line.trim_start().split(':').next().unwrap();
        CodePlace {
            module: self.program.clone(),
            offset: u64::from_str_radix(address, 16).unwrap(),
        }
    }

    fn access(&self, thread: u32, access: AccessKind, site: CodePlace) -> RawAccess {
        RawAccess {
            thread,
            access,
            size: 4,
            atomic: false,
            site,
            retired: None,
            stack: Vec::new(),
            locks: Vec::new(),
        }
    }

    /// `get` and `put` race on `stats.hits[2]`.
    fn race(&self) -> RawRace {
        RawRace {
            accesses: [
                self.access(2, AccessKind::Write, self.site("put")),
                self.access(3, AccessKind::Read, self.site("get")),
            ],
            address: BIAS + self.symbol("stats") + 16,
            memory: RawMemory::Static,
            instances: 7,
            found_by: vec!["hb".to_owned()],
            why_not_ordered: None,
        }
    }

    fn explained(&self, races: Vec<RawRace>) -> ProgramFindings {
        let run = RawRun {
            executable: self.program.clone(),
            modules: vec![LoadedModule {
                path: self.program.clone(),
                bias: BIAS,
            }],
            threads: vec![RawThread {
                id: 2,
                name: Some("seller".to_owned()),
                parent: Some(1),
                created_at: races
                    .iter()
                    .map(|race| race.accesses[0].site.clone())
                    .take(1)
                    .collect(),
            }],
            races,
            ..RawRun::default()
        };
        explain(&run, &mut Code::default())
    }

    fn id(&self) -> String {
        self.explained(vec![self.race()]).races[0].id.clone()
    }
}

#[test]
fn ids_survive_a_rebuild() {
    let id = build(PROGRAM, &["-g"]).id();
    for flags in [
        &["-g", "-O2"][..],
        &["-g", "-O1", "-fno-omit-frame-pointer"],
        &["-g", "-O3", "-fno-plt", "-gdwarf-4", "-gz"],
    ] {
        assert_eq!(build(PROGRAM, flags).id(), id, "{flags:?}");
    }
    let lines_above = PROGRAM.replace(
        "int get(void)",
        "static int unrelated;\n\nint other(void) { return unrelated; }\nint get(void)",
    );
    assert_eq!(build(&lines_above, &["-g"]).id(), id);
    let other_indentation = PROGRAM.replace("    return stats", "\t  return  stats");
    assert_eq!(build(&other_indentation, &["-g"]).id(), id);
    let longer_array = PROGRAM.replace("hits[4]", "hits[9]");
    assert_eq!(build(&longer_array, &["-g"]).id(), id);
}

#[test]
fn ids_change_with_what_the_race_is_about() {
    let id = build(PROGRAM, &["-g"]).id();
    for (from, to) in [
        ("return stats.hits[2];", "return 1 + stats.hits[2];"),
        ("get(", "fetch("),
        ("stats.", "counts."),
    ] {
        let changed = PROGRAM
            .replace(from, to)
            .replace("} stats;", "} stats;\n#define counts stats");
        let built = build(&changed, &["-g"]);
        let mut race = built.race_of(if to == "fetch(" { "fetch" } else { "get" });
        race.address = BIAS + built.symbol("stats") + 16;
        assert_ne!(built.explained(vec![race]).races[0].id, id, "{to}");
    }
}

impl Built {
    fn race_of(&self, reader: &str) -> RawRace {
        let writer = self.access(2, AccessKind::Write, self.site("put"));
        RawRace {
            accesses: [writer, self.access(3, AccessKind::Read, self.site(reader))],
            address: 0,
            memory: RawMemory::Static,
            instances: 1,
            found_by: Vec::new(),
            why_not_ordered: None,
        }
    }
}

#[test]
fn a_race_has_sources_names_and_reasons() {
    let built = build(PROGRAM, &["-g"]);
    let mut race = built.race();
    race.accesses[0].locks.push(RawLock {
        address: BIAS + built.symbol("lock"),
        memory: RawMemory::Static,
        mode: LockMode::Exclusive,
        taken_at: Vec::new(),
    });
    let caller = CodePlace {
        module: built.program.clone(),
        offset: built.symbol("main") + 4,
    };
    race.accesses[1].stack = vec![race.accesses[1].site.clone(), caller];
    let findings = built.explained(vec![race]);
    let race = &findings.races[0];
    let [put, get] = &race.accesses;
    assert_eq!(put.function.as_deref(), Some("put"));
    assert_eq!((put.line, get.line), (Some(8), Some(5)));
    assert_eq!(
        put.source.as_ref().unwrap().line(8),
        Some("    stats.hits[2] = value;")
    );
    assert_eq!(put.locks[0].name, "lock");
    let stack: Vec<_> = get
        .stack
        .iter()
        .map(|frame| frame.function.as_deref())
        .collect();
    assert_eq!(stack, [Some("get"), Some("main")]);
    assert_eq!(race.variable.name.as_deref(), Some("stats.hits[2]"));
    assert_eq!(race.variable.kind, VariableKind::Global);
    assert_eq!(race.variable.line, Some(2));
    assert_eq!(
        race.why_not_ordered.as_deref(),
        Some("thread 2 holds lock, but thread 3 holds nothing")
    );
    assert_eq!(
        findings.threads[0].created_at[0].function.as_deref(),
        Some("put")
    );
    assert_eq!(
        (race.instances, race.found_by.as_slice()),
        (7, &["hb".to_owned()][..])
    );
}

#[test]
fn a_heap_block_says_where_it_comes_from() {
    let built = build(PROGRAM, &["-g"]);
    let mut race = built.race();
    race.address = 0x5000_0010;
    race.memory = RawMemory::Heap(HeapBlock {
        start: 0x5000_0000,
        size: 64,
        thread: Some(1),
        allocated_at: vec![built.site("put")],
    });
    let findings = built.explained(vec![race]);
    let variable = &findings.races[0].variable;
    assert_eq!(
        (variable.kind, variable.offset, variable.size),
        (VariableKind::Heap, Some(16), Some(64))
    );
    let allocated: Vec<_> = variable
        .allocated_at
        .iter()
        .map(|frame| frame.line)
        .collect();
    assert_eq!(allocated, [Some(8)]);
}

#[test]
fn races_of_one_mistake_are_a_cluster() {
    let built = build(PROGRAM, &["-g"]);
    let mut write_write = built.race();
    write_write.accesses[1] = built.access(3, AccessKind::Write, built.site("get"));
    let mut elsewhere = built.race();
    elsewhere.address = BIAS + built.symbol("stats");
    let findings = built.explained(vec![built.race(), write_write, elsewhere, built.race()]);
    let ids: Vec<&str> = findings.races.iter().map(|race| race.id.as_str()).collect();
    assert_eq!(ids[3], format!("{}-2", ids[0]), "ids are unique");
    let clusters: Vec<Option<&str>> = findings
        .races
        .iter()
        .map(|race| race.cluster.as_deref())
        .collect();
    assert_eq!(clusters, [Some(ids[0]), Some(ids[0]), None, Some(ids[0])]);
}

#[test]
fn a_stripped_program_has_offsets() {
    let built = build(PROGRAM, &[]);
    let race = built.race();
    run(built.folder.path(), "strip", &["shop"]);
    let offset = race.accesses[0].site.offset;
    let findings = built.explained(vec![race]);
    let race = &findings.races[0];
    let put = &race.accesses[0];
    assert_eq!((&put.function, put.offset), (&None, offset));
    let alone = Frame {
        module: built.program.display().to_string(),
        offset,
        ..Frame::default()
    };
    assert_eq!(put.stack, [alone]);
    assert_eq!(
        (race.variable.kind, &race.variable.name),
        (VariableKind::Global, &None)
    );
    assert_eq!(race.id.len(), 12);
}
