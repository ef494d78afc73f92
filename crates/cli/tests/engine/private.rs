//! Programs in a world of their own: they see what they would see outside, and outside nothing is seen of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use expect_test::expect;

use crate::run::{Ending, Program, Seen, files_below, observe};
use crate::tools::{build_c, text, tool};

fn private(program: Program) -> Program {
    program.options(&["--private"])
}

fn run(program: &Program, folder: &Path) -> Seen {
    observe(program.under_engine(folder), b"", folder)
}

/// The same output as natively, and the folder as it was.
#[track_caller]
fn same_but_unseen(program: Program) -> Seen {
    let program = private(program);
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("folder");
    program.prepare(&folder);
    let before = files_below(&folder);
    let seen = run(&program, &folder);
    assert_eq!(seen.files, before, "{:?}: files", program.argv);
    let native = observe(program.native(&folder), b"", &folder);
    assert_eq!(
        String::from_utf8_lossy(&seen.stderr),
        String::from_utf8_lossy(&native.stderr),
        "{:?}: standard error",
        program.argv
    );
    assert!(
        seen.stdout == native.stdout,
        "{:?}: {} bytes of output privately, {} natively: {}",
        program.argv,
        seen.stdout.len(),
        native.stdout.len(),
        String::from_utf8_lossy(&seen.stdout[..seen.stdout.len().min(2000)])
    );
    assert_eq!(seen.ending, native.ending, "{:?}", program.argv);
    seen
}

#[test]
fn guests_of_every_kind() {
    for source in [
        "pipes.c",
        "sockets.c",
        "timers.c",
        "thread_sync.c",
        "loopback.c",
    ] {
        same_but_unseen(Program::new(&[text(&build_c(source))]));
    }
}

#[test]
fn memory_that_would_have_to_be_kept_in_step_is_refused() {
    let program = private(Program::new(&[text(&build_c("memory_maps.c"))]));
    let folder = tempfile::tempdir().unwrap();
    let seen = run(&program, folder.path());
    assert_eq!(seen.ending, Ending::Exit(3));
    let said = String::from_utf8_lossy(&seen.stderr);
    assert!(
        said.contains("is mapped twice as shared memory (MAP_SHARED)"),
        "{said}"
    );
}

#[test]
fn a_database() {
    let script = "pragma journal_mode=wal; create table t(a, b); insert into t values (1, 'x'), (2, 'y'); \
                  create index i on t(b); update t set b = b || a; select * from t order by b desc; \
                  pragma integrity_check; vacuum; select count(*) from t;";
    let sqlite = tool("sqlite3", "sqlite3");
    same_but_unseen(Program::new(&[sqlite.as_str(), "new.db", script]));
}

#[test]
fn compression_by_threads() {
    let data: Vec<u8> = (0..400_000u32)
        .flat_map(|at| (at / 7).to_le_bytes())
        .collect();
    let pbzip2 = tool("pbzip2", "pbzip2");
    let arguments = [pbzip2.as_str(), "-p3", "-b1", "-k", "-c", "data"];
    same_but_unseen(Program::new(&arguments).file("data", data));
}

#[test]
fn a_script_that_works_with_files_and_threads() {
    let script = r#"
import os, tempfile, threading, mmap, select, shutil
os.makedirs("a/b/c"); open("a/b/c/f", "w").write("hello")
os.rename("a/b", "a/d"); print(sorted(os.walk("a")))
shutil.copy("given", "a/copy"); os.remove("given"); print(os.path.exists("given"), open("a/copy").read())
os.symlink("copy", "a/link"); os.link("a/copy", "a/hard"); print(open("a/link").read(), os.stat("a/hard").st_nlink)
open("a/copy", "a").write("more"); print(open("a/hard").read())
shutil.rmtree("a"); print(sorted(os.listdir(".")))
r, w = os.pipe(); t = threading.Thread(target=lambda: os.write(w, b"from a thread")); t.start(); print(os.read(r, 100)); t.join()
with tempfile.TemporaryFile() as f:
    f.truncate(10000); m = mmap.mmap(f.fileno(), 10000); m[5000:5005] = b"12345"; f.seek(5000); print(f.read(5))
print(open("/dev/null").read(), open("/proc/self/comm").read().strip() != "", os.getcwd().endswith("folder"))
"#;
    let python = tool("python3", "python3");
    let python = if Path::new("/usr/bin/python3").exists() {
        "/usr/bin/python3".to_owned()
    } else {
        python
    };
    same_but_unseen(Program::new(&[python.as_str(), "-c", script]).file("given", "given text\n"));
}

/// The program changes, the world stays: what the one before has made is there, outside nothing is.
#[test]
fn programs_that_replace_themselves() {
    let env = tool("env", "coreutils");
    same_but_unseen(Program::new(&[&env, "A=1", "printenv", "A"]));
    let shell = "echo made > new; exec 3< given; exec cat new /proc/self/fd/3";
    let seen = same_but_unseen(Program::new(&["/bin/sh", "-c", shell]).file("given", "given\n"));
    assert_eq!(seen.stdout, b"made\ngiven\n");
    let missing = Program::new(&[&env, "/no/such/program"]);
    assert_eq!(same_but_unseen(missing).ending, Ending::Exit(127));
    let program = private(Program::new(&["/usr/bin/python3", "-c", COPY_AND_EXECUTE]));
    let folder = tempfile::tempdir().unwrap();
    let seen = run(&program, folder.path());
    let said = String::from_utf8_lossy(&seen.stderr);
    assert_eq!(seen.ending, Ending::Exit(3), "{said}");
    assert!(
        said.contains("by a file that was made or changed in the private world"),
        "{said}"
    );
}

const COPY_AND_EXECUTE: &str =
    "import os, shutil; shutil.copy('/bin/true', 'mine'); os.execv('mine', ['mine'])";

#[test]
fn input_is_what_it_is_told_to_be() {
    let sort = tool("sort", "coreutils");
    let program = private(Program::new(&[sort])).file("lines", "pear\napple\n");
    let folder = tempfile::tempdir().unwrap();
    program.prepare(folder.path());
    assert_eq!(run(&program, folder.path()).stdout, b"");
    let told = program.options(&["--input", "lines"]);
    assert_eq!(run(&told, folder.path()).stdout, b"apple\npear\n");
}

/// A folder with what `escape.c` wants to destroy.
fn escape() -> Program {
    private(Program::new(&[text(&build_c("escape.c"))]))
        .file("victim", "precious")
        .file("folder/inner", "inner")
        .file("grow", "0123456789")
        .file("mapped", vec![b'm'; 4096])
}

#[test]
fn nothing_escapes() {
    let program = escape();
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("folder");
    program.prepare(&folder);
    let before = files_below(&folder);
    let seen = run(&program, &folder);
    expect![[r#"
        unlink: done
        unlink again: ENOENT
        rename: done
        truncate: done
        chmod: done
        symlink: done
        create in /tmp: done
        write: done
        ftruncate: done
        msync: done
        read back: mapped
        munmap: done
        changed through a mapping: Xmmmmm
        connect: ENETUNREACH
        sendto: ENETUNREACH
        bind: done
        kill parent: done
        kill init: ESRCH
        wait: done
        child: 127
        system: 127
        grow is still there: done
        of size 3
    "#]]
    .assert_eq(&String::from_utf8_lossy(&seen.stdout));
    assert_eq!(seen.ending, Ending::Exit(0));
    assert_eq!(seen.files, before);
    assert!(!Path::new("/tmp/verdict-escape-test").exists());
}

/// What the host's kernel is asked for: nothing that changes anything, and nothing about other processes.
#[test]
fn the_host_is_only_asked_to_read() {
    let program = escape();
    let root = tempfile::tempdir().unwrap();
    let (folder, log) = (root.path().join("folder"), root.path().join("log"));
    program.prepare(&folder);
    let strace = tool("strace", "strace");
    let traced = program.under_engine(&folder);
    let mut command = Command::new(strace);
    command
        .args(["-f", "-o"])
        .arg(&log)
        .args([
            "-e",
            "trace=%file,%desc,%network,%process,kill,tkill,tgkill",
        ])
        .arg(traced.get_program())
        .args(traced.get_args())
        .current_dir(&folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let calls = fs::read_to_string(&log).unwrap();
    let executor = calls
        .lines()
        .find(|line| line.contains("__executor"))
        .and_then(|line| line.split_whitespace().next())
        .expect("the executor is started");
    // The engine's last own preparation is the place for translated code; what follows is the guest's doing.
    let begun = calls
        .find("PROT_READ|PROT_EXEC, MAP_SHARED")
        .expect("the engine maps its code");
    let mut asked = 0;
    for line in calls[begun..].lines().skip(1) {
        let (pid, call) = line.split_once(' ').unwrap();
        let call = call.trim();
        if pid != executor || call.starts_with(['+', '-', '<']) {
            continue;
        }
        asked += 1;
        let name = call.split('(').next().unwrap();
        let reads = match name {
            "openat" => !["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"]
                .iter()
                .any(|flag| call.contains(flag)),
            // Its own output, and the report in a file that only it and its controller have.
            "write" => call.starts_with("write(1,") || call.starts_with("write(2,"),
            "pwrite64" | "ftruncate" | "lseek" => is_channel(call),
            "mmap" => {
                !(call.contains("MAP_SHARED") && call.contains("PROT_WRITE")) || is_channel(call)
            }
            "execve" => call.contains("__executor"),
            _ => [
                "read",
                "pread64",
                "readlink",
                "statx",
                "newfstatat",
                "fstat",
                "lstat",
                "access",
                "faccessat2",
                "getdents64",
                "close",
                "getcwd",
                "poll",
                "ppoll",
                "fcntl",
                "exit_group",
                "signalfd4",
                "memfd_create",
                "statfs",
                "ioctl",
                "fgetxattr",
                "exit",
                "dup3",
                "dup2",
            ]
            .contains(&name),
        };
        assert!(reads, "the executor asked the host: {call}");
    }
    assert!(asked > 50, "only {asked} calls were seen");
}

/// True for calls on the descriptors that controller and executor share, which are all above 1000, and on the code cache.
fn is_channel(call: &str) -> bool {
    call.split(['(', ',', ' '])
        .filter_map(|word| word.parse::<u32>().ok())
        .any(|fd| (1000..1024).contains(&fd))
}

#[test]
fn two_runs_are_the_same() {
    let program = private(Program::new(&[text(&build_c("loopback.c"))]));
    let folder = tempfile::tempdir().unwrap();
    let stats = |seed: &str| {
        let file = folder.path().join("stats.json");
        let path = text(&file);
        let options = [
            "--schedule",
            "random",
            "--seed",
            seed,
            "--format",
            "json",
            "--stats-file",
        ];
        let program = program.clone().options(&options).options(&[&path]);
        let seen = run(&program, folder.path());
        assert_eq!(seen.ending, Ending::Exit(0));
        let mut json: serde_json::Value =
            serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        json.as_object_mut().unwrap().remove("times_ns");
        json
    };
    for seed in ["1", "2", "3"] {
        assert_eq!(stats(seed), stats(seed), "seed {seed}");
    }
}
