//! Real programs, as a distribution ships them, behave as natively.

use std::fs;
use std::process::Command;

use crate::input::{c_source, words};
use crate::run::{Ending, Program};
use crate::tools::{build, text, tool};

const MEGABYTE: usize = 1 << 20;

#[test]
fn ls() {
    let ls = tool("ls", "coreutils");
    let program = Program::new(&[&ls, "-lR", "--time-style=long-iso"])
        .file("one", words(1000))
        .file("folder/two", "2")
        .file("folder/deeper/three", "");
    program.clone().compare();
    let seen = Program {
        argv: vec![ls, "-l".into(), "one".into(), "missing".into()],
        ..program
    }
    .compare();
    assert_eq!(seen.ending, Ending::Exit(2));
}

#[test]
fn gzip() {
    let gzip = tool("gzip", "gzip");
    Program::new(&[&gzip, "-9k", "text"])
        .file("text", words(4 * MEGABYTE))
        .compare();
    let packed = Program::new(&[&gzip, "-c"])
        .stdin(words(MEGABYTE))
        .compare()
        .stdout;
    let back = Program::new(&[&gzip, "-dc"]).stdin(packed).compare();
    assert_eq!(back.stdout, words(MEGABYTE));
    Program::new(&[&gzip, "-d", "damaged.gz"])
        .file("damaged.gz", "not packed")
        .compare();
}

#[test]
fn bzip2() {
    let bzip2 = tool("bzip2", "bzip2");
    let seen = Program::new(&[&bzip2, "-k", "text"])
        .file("text", words(2 * MEGABYTE))
        .compare();
    let packed = seen.files[std::path::Path::new("text.bz2")].1.clone();
    Program::new(&[&bzip2, "-t", "-v", "text.bz2"])
        .file("text.bz2", packed)
        .compare();
}

#[test]
fn xz_with_two_threads() {
    let xz = tool("xz", "xz-utils");
    Program::new(&[&xz, "-T2", "-1", "-k", "--block-size=1MiB", "text"])
        .file("text", words(6 * MEGABYTE))
        .compare();
}

#[test]
fn pbzip2_with_four_threads() {
    let pbzip2 = tool("pbzip2", "pbzip2");
    Program::new(&[&pbzip2, "-p4", "-k", "text"])
        .file("text", words(20 * MEGABYTE))
        .compare();
}

#[test]
fn pigz_with_four_threads() {
    let pigz = tool("pigz", "pigz");
    Program::new(&[&pigz, "-p4", "-k", "text"])
        .file("text", words(4 * MEGABYTE))
        .compare();
}

#[test]
fn sqlite3_on_a_file() {
    let mut script = String::from(
        "create table a(id integer primary key, name text, n int);\ncreate table b(a int, v real);\nbegin;\n",
    );
    for i in 0..10_000 {
        script += &format!(
            "insert into a values({i}, 'name{}', {});\n",
            i % 97,
            i * 7 % 1000
        );
        if i % 3 == 0 {
            script += &format!("insert into b values({}, {i}.25);\n", i / 2);
        }
    }
    script += "commit;\ncreate index by_name on a(name);\n\
               select a.name, count(*), sum(b.v) from a join b on b.a = a.id where a.n > 100 group by a.name order by 1;\n\
               pragma integrity_check;\nselect no_such_function();\n";
    let sqlite3 = tool("sqlite3", "sqlite3");
    Program::new(&[&sqlite3, "data.db"]).stdin(script).compare();
}

#[test]
fn perl() {
    let script = r#"
        use strict; use warnings;
        my %count; $count{$_}++ for map { lc } <STDIN> =~ /\w+/g;
        while (my $line = <STDIN>) { $count{$_}++ for $line =~ /(\w+)/g }
        printf "%-8s %d\n", $_, $count{$_} for sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
        my $pid = open(my $child, '-|', 'echo from a child') or die; print <$child>; close $child;
        eval { die "caught\n" }; print "error: $@"; print sqrt(2) ** 2, "\n";
        local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; select(undef, undef, undef, 5) ; }; print $@;
        open(my $out, '>', 'written') or die; print $out join(',', map { $_ * $_ } 1..1000); close $out; exit 3;
    "#;
    let perl = tool("perl", "perl");
    let seen = Program::new(&[&perl, "-e", script])
        .stdin(words(100_000))
        .compare();
    assert_eq!(seen.ending, Ending::Exit(3));
}

#[test]
fn bash_with_pipes_and_traps() {
    let script = r#"
        trap 'echo "on exit: $?"' EXIT
        trap 'echo got USR1' USR1
        kill -USR1 $$
        seq 1 2000 | grep 7 | sort -rn | head -5
        (trap 'echo term in subshell; exit 9' TERM; kill -TERM $BASHPID; echo not reached); echo "subshell: $?"
        cat <(echo process) <(echo substitution)
        while read -r a b; do echo "$b-$a"; done <<< $'1 2\n3 4' > written
        coproc cat; echo through coproc >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"
        exec {COPROC[1]}>&-
        x=0; for i in {1..300}; do x=$((x + i * i)); done; echo "$x"
        sleep 0.01 & wait $!; echo "waited: $?"
        echo "${BASH_VERSION%%.*}" >&2; false | true; echo "${PIPESTATUS[@]}"; exit 5
    "#;
    let bash = tool("bash", "bash");
    let program = Program::new(&[&bash, "-c", script]);
    let seen = program.compare();
    assert_eq!(seen.ending, Ending::Exit(5));
    program.options(&["--follow-children"]).compare();
}

const PYTHON: &str = r#"
import subprocess, threading, queue, json, hashlib, zlib, re, sys, os
work, results, lock = queue.Queue(), {}, threading.Lock()
def worker():
    while (item := work.get()) is not None:
        value = hashlib.sha256(str(item).encode() * 100).hexdigest()
        with lock:
            results[item] = value
threads = [threading.Thread(target=worker) for _ in range(4)]
for t in threads: t.start()
for i in range(200): work.put(i)
for t in threads: work.put(None)
for t in threads: t.join()
print(len(results), hashlib.md5(json.dumps(results, sort_keys=True).encode()).hexdigest())
print(subprocess.run(['sh', '-c', 'echo out; echo err >&2; exit 4'], capture_output=True))
print(subprocess.check_output([sys.executable, '-c', 'print(6 * 7)']))
try: subprocess.run(['/no/such/program'])
except FileNotFoundError as error: print(error)
print(zlib.crc32(b'x' * 10000), re.sub(r'(\w+) (\w+)', r'\2 \1', 'hello world'))
open('written', 'w').write('\n'.join(map(str, range(1000))))
timer = threading.Timer(0.01, lambda: print('timer')); timer.start(); timer.join()
print(os.getpid() == threading.get_native_id(), sys.argv)
sys.exit(6)
"#;

#[test]
fn python3_with_threads_and_a_subprocess() {
    tool("python3", "python3");
    let seen = Program::new(&["/usr/bin/python3", "script.py", "argument"])
        .file("script.py", PYTHON)
        .env("PYTHONHASHSEED", "0")
        .compare();
    assert_eq!(seen.ending, Ending::Exit(6));
}

/// The `python3` of the search path may be a script that finds the right version and executes it.
#[test]
fn python3_of_the_search_path() {
    let python = tool("python3", "python3");
    Program::new(&[
        &python,
        "-c",
        "import sys, threading; print(sys.version_info[0], threading.active_count())",
    ])
    .compare();
}

#[test]
fn gcc_with_its_children() {
    let gcc = tool("gcc", "gcc");
    let source = c_source(1000);
    assert!(source.iter().filter(|&&byte| byte == b'\n').count() >= 1000);
    Program::new(&[&gcc, "-O2", "-Wall", "-o", "built", "source.c"])
        .file("source.c", source)
        .options(&["--follow-children"])
        .compare();
    Program::new(&[&gcc, "-c", "wrong.c"])
        .file("wrong.c", "int main( {\n")
        .compare();
}

#[test]
fn cpp_exceptions_in_eight_threads() {
    let compiler = tool("g++", "g++");
    let program = build("exceptions.cpp", &[&compiler, "-O2", "-pthread"]);
    let seen = Program::new(&[text(&program)]).compare();
    assert_eq!(
        seen.ending,
        Ending::Signal(6),
        "an uncaught exception aborts"
    );
}

#[test]
fn rust_threads_and_a_caught_panic() {
    let program = build("threads_and_panic.rs", &["rustc", "-O", "--edition=2024"]);
    let seen = Program::new(&[text(&program)]).compare();
    assert_eq!(seen.ending, Ending::Exit(42));
}

#[test]
fn luajit() {
    let script = r#"
        local t = {}
        for i = 1, 200000 do t[i % 1000] = (t[i % 1000] or 0) + i * 0.5 end
        local sum = 0 for i = 0, 999 do sum = sum + t[i] end
        print(sum, jit and jit.status())
        local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i * i) end end)
        print(co(), co(), co())
        local ffi = require('ffi'); ffi.cdef 'int abs(int);'; print(ffi.C.abs(-5))
        print(pcall(error, 'caught'))
        print(string.format('%.10g', math.sin(1)), ('x'):rep(10):gsub('x', 'yz'))
    "#;
    Program::new(&[&tool("luajit", "luajit"), "-e", script]).compare();
}

#[test]
fn node_with_workers() {
    let script = r#"
        const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
        if (isMainThread) {
            const done = [];
            for (let i = 0; i < 3; i++) {
                const worker = new Worker(__filename, { workerData: i });
                worker.on('message', (value) => done.push(value));
            }
            process.on('exit', () => console.log('hello', done.sort().join(' ')));
        } else {
            let sum = 0;
            for (let i = 0; i < 100000; i++) sum = (sum * 31 + i * workerData) % 1000003;
            parentPort.postMessage(`${workerData}:${sum}`);
        }
    "#;
    Program::new(&[&tool("node", "nodejs"), "hello.js"])
        .file("hello.js", script)
        .compare();
}

#[test]
fn java_with_threads() {
    let source = r#"
        import java.util.concurrent.*;
        public class Hello {
            public static void main(String[] args) throws Exception {
                ExecutorService pool = Executors.newFixedThreadPool(4);
                long sum = 0;
                var futures = new java.util.ArrayList<Future<Long>>();
                for (int i = 0; i < 8; i++) {
                    final int id = i;
                    futures.add(pool.submit(() -> { long s = 0; for (int k = 0; k < 200000; k++) s = s * 31 + k * id; return s; }));
                }
                for (var f : futures) sum += f.get();
                pool.shutdown();
                try { Object o = null; o.hashCode(); } catch (NullPointerException e) { System.out.println("caught"); }
                System.out.println("hello " + sum);
                System.exit(7);
            }
        }
    "#;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Hello.java"), source).unwrap();
    let javac = tool("javac", "default-jdk-headless");
    let built = Command::new(javac)
        .arg("Hello.java")
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(built.success());
    let class = fs::read(folder.path().join("Hello.class")).unwrap();
    let java = tool("java", "default-jdk-headless");
    let seen = Program::new(&[&java, "-XX:-UsePerfData", "Hello"])
        .file("Hello.class", class)
        .compare();
    assert_eq!(seen.ending, Ending::Exit(7));
}
