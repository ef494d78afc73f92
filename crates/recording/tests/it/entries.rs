//! Made-up recordings.

use proptest::collection::vec;
use proptest::prelude::*;
use verdict_recording::*;

pub fn header() -> impl Strategy<Value = Header> {
    let bytes = || vec(any::<u8>(), 0..8);
    let first = (
        bytes(),
        vec(bytes(), 0..4),
        vec(bytes(), 0..4),
        any::<(u64, u64, bool, bool)>(),
    );
    let second = (any::<[u32; 4]>(), cpu(), vec(identity(), 0..3), bytes());
    (first, second).prop_map(
        |((program, argv, env, numbers), (ids, cpu, files, cwd))| Header {
            writer: "verdict 0.1.0".into(),
            started: Started {
                path: program.clone(),
                argv: env.clone(),
                execfn: cwd.clone(),
            },
            program,
            argv,
            env,
            cwd,
            ids,
            clock: match numbers.2 {
                true => Clock::Real,
                false => Clock::Virtual,
            },
            seed: numbers.0,
            quantum: numbers.1,
            schedule: match numbers.3 {
                true => SchedulePolicy::Random,
                false => SchedulePolicy::RoundRobin,
            },
            follow_children: numbers.2,
            cpu,
            files_attached: numbers.3,
            files,
            documents: vec![Document {
                name: "findings.json".into(),
                bytes: numbers.0.to_le_bytes().to_vec(),
            }],
        },
    )
}

fn cpu() -> impl Strategy<Value = CpuIdentity> {
    let word = any::<(u32, u32, [u32; 4])>().prop_map(|(leaf, subleaf, answer)| CpuidWord {
        leaf,
        subleaf,
        answer,
    });
    ("[A-Za-z]{12}", any::<(u32, u64)>(), vec(word, 0..3)).prop_map(
        |(vendor, (signature, xsave_mask), features)| CpuIdentity {
            vendor,
            signature,
            features,
            xsave_mask,
        },
    )
}

fn identity() -> impl Strategy<Value = FileIdentity> {
    (vec(any::<u8>(), 0..8), any::<(u64, [u8; 16])>()).prop_map(|(path, (size, hash))| {
        FileIdentity {
            build_id: path.clone(),
            path,
            size,
            hash: ContentHash(hash),
        }
    })
}

pub fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        4 => any::<(u32, bool)>().prop_map(|(thread, preempted)| Entry::Switch { thread: thread % 100, preempted }),
        4 => call(),
        1 => any::<(u32, u32, Option<u64>, u64)>().prop_map(|(number, args_digest, deadline, progress)| Entry::Block { number, args_digest, wait: [WaitKind::Descriptors, WaitKind::Child, WaitKind::Retry][(number % 3) as usize], deadline, progress }),
        1 => any::<u32>().prop_map(|thread| Entry::Wake { thread }),
        1 => any::<(i32, i32, i32, u32, u64, Option<u32>)>().prop_map(
            |(number, code, pid, uid, value, thread)| Entry::Signal { number, code, pid, uid, value, thread }
        ),
        1 => any::<u64>().prop_map(|monotonic_ns| Entry::Clock { monotonic_ns }),
        1 => (any::<u64>(), vec(any::<u8>(), 0..16)).prop_map(|(address, bytes)| Entry::Memory { write: MemoryWrite { address, bytes } }),
        1 => any::<(u64, u64)>().prop_map(|(block, instead)| Entry::Withheld { block, instead }),
        1 => any::<(u32, u64, u64, u64)>().prop_map(|(file, address, offset, len)| Entry::Map {
            file: FileId(file),
            address,
            offset,
            len,
        }),
        1 => (any::<u32>(), identity()).prop_map(|(id, identity)| Entry::File { id: FileId(id), identity }),
        1 => (any::<(u32, u64)>(), vec(any::<u8>(), 0..64)).prop_map(|((file, offset), bytes)| {
            Entry::Contents { file: FileId(file), offset, bytes }
        }),
        1 => header().prop_map(|header| Entry::Exec { header: Box::new(header) }),
    ]
}

fn call() -> impl Strategy<Value = Entry> {
    let write = (any::<u64>(), vec(any::<u8>(), 0..16))
        .prop_map(|(address, bytes)| MemoryWrite { address, bytes });
    let output = any::<Option<(u8, u64, u64)>>().prop_map(|output| {
        output.map(|(stream, len, digest)| Output {
            stream,
            len,
            digest,
        })
    });
    (any::<(u32, u32, i64)>(), vec(write, 0..3), output).prop_map(
        |((number, args_digest, result), writes, output)| Entry::Call {
            number,
            args_digest,
            result,
            writes,
            output,
        },
    )
}

/// Entries with the instructions passed before each.
pub fn journal() -> impl Strategy<Value = Vec<(u64, Entry)>> {
    vec((0..1u64 << 40, entry()), 0..40)
}

pub fn end(at: u64) -> End {
    End {
        outcome: EndOutcome::Exited { code: 3 },
        instructions: at,
        threads: vec![at],
        outputs: [OutputSum { len: 1, digest: 2 }; 3],
    }
}

/// A small recording of a few frames that has every kind of entry.
pub fn sample() -> (Vec<u8>, Vec<Stamped>) {
    let header = Header {
        writer: "verdict 0.1.0".into(),
        program: b"./queue".to_vec(),
        argv: vec![b"./queue".to_vec()],
        files: vec![FileIdentity::default()],
        documents: vec![Document {
            name: "findings.json".into(),
            bytes: b"{}".to_vec(),
        }],
        ..Header::default()
    };
    let entries = [
        Entry::File {
            id: FileId(1),
            identity: FileIdentity::default(),
        },
        Entry::Map {
            file: FileId(1),
            address: 4096,
            offset: 0,
            len: 4096,
        },
        Entry::Contents {
            file: FileId(1),
            offset: 0,
            bytes: b"contents".to_vec(),
        },
        Entry::Switch {
            thread: 1,
            preempted: true,
        },
        Entry::Block {
            number: 0,
            args_digest: 7,
            wait: WaitKind::Descriptors,
            deadline: Some(5),
            progress: 1,
        },
        Entry::Wake { thread: 1 },
        Entry::Call {
            number: 0,
            args_digest: 7,
            result: -11,
            writes: vec![MemoryWrite {
                address: 8,
                bytes: b"answer".to_vec(),
            }],
            output: Some(Output::default()),
        },
        Entry::Signal {
            number: 15,
            code: 0,
            pid: 1,
            uid: 2,
            value: 3,
            thread: Some(1),
        },
        Entry::Clock { monotonic_ns: 5 },
        Entry::Exec {
            header: Box::new(header.clone()),
        },
        Entry::Switch {
            thread: 0,
            preempted: false,
        },
    ];
    let mut writer = Writer::new(Vec::new(), &header, WriterOptions::default()).unwrap();
    let mut journal = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let at = index as u64 * 1000;
        assert_eq!(writer.append(at, &entry).unwrap(), Room::Left);
        if index % 4 == 3 {
            writer.flush().unwrap();
        }
        journal.push(Stamped { at, entry });
    }
    let at = 20_000;
    journal.push(Stamped {
        at,
        entry: Entry::End {
            end: Box::new(end(at)),
        },
    });
    (writer.finish(end(at)).unwrap(), journal)
}

/// All entries up to the end, or up to what cannot be read.
pub fn read(bytes: &[u8]) -> (Vec<Stamped>, Result<Ending, ReadError>) {
    let mut entries = Vec::new();
    let mut reader = match Reader::open(bytes) {
        Ok(reader) => reader,
        Err(error) => return (entries, Err(error)),
    };
    loop {
        match reader.next() {
            Ok(Some(entry)) => entries.push(entry),
            Ok(None) => return (entries, Ok(reader.ending().unwrap().clone())),
            Err(error) => {
                assert!(reader.next().is_err(), "damage does not go away");
                return (entries, Err(error));
            }
        }
    }
}
