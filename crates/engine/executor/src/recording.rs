//! Beginning a recording, or the replay of one.

use crate::cpuid;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use verdict_kernel::{Journal, Recorder, Replayer};
use verdict_loader::{AtHand, LoadPlan, MappingSource};
use verdict_protocol::{Clock, ExecutorConfig, Mode, SchedulePolicy};
use verdict_recording::{
    CpuIdentity, CpuidWord, Entry, FileId, FileIdentity, Header, Reader, Stamped, Started, Writer,
    WriterOptions,
};

/// Questions to `cpuid` by which programs choose their code.
const QUESTIONS: [(u32, u32); 6] = [(1, 0), (7, 0), (7, 1), (0xd, 0), (0xd, 1), (0x8000_0001, 0)];

type Failure = String;

/// A replay's recording, opened before anything is loaded: its header says from where.
pub(crate) fn open(config: &ExecutorConfig) -> Result<Option<Replay>, Failure> {
    let Mode::Replay { fd, replaced, .. } = config.mode else {
        return Ok(None);
    };
    // The program before may have read some of it.
    let mut recording = file(fd);
    recording
        .rewind()
        .map_err(|error| format!("the recording cannot be read from its beginning: {error}"))?;
    let mut reader = Reader::open(recording).map_err(|error| format!("the recording {error}"))?;
    let mut header = reader.header().clone();
    for _ in 0..replaced {
        header = next_program(&mut reader)?;
    }
    if let Some(difference) = header.cpu.difference(&cpu()) {
        return Err(format!(
            "the recording was made on {difference}: programs choose their code by the CPU, so it replays only on one like that"
        ));
    }
    let attached = attached(&mut reader, &header)?;
    enter(&header, &attached)?;
    Ok(Some(Replay {
        reader,
        header,
        attached,
    }))
}

/// Goes to where a program was started.
fn enter(header: &Header, attached: &[File]) -> Result<(), Failure> {
    let entered = std::env::set_current_dir(path(&header.cwd));
    // What brings its files along needs no folder.
    if let (Err(error), true) = (entered, attached.is_empty()) {
        return Err(format!(
            "the recording was made in {}, which cannot be entered: {error}",
            String::from_utf8_lossy(&header.cwd)
        ));
    }
    Ok(())
}

/// A recording that is read up to the program at hand.
pub(crate) struct Replay {
    reader: Reader<File>,
    /// Of that program.
    pub(crate) header: Header,
    /// The program and its interpreter, where the recording has brought them along.
    attached: Vec<File>,
}

/// The program that replaces the current one.
pub(crate) struct NextProgram {
    header: Header,
    attached: Vec<File>,
}

/// Takes the beginning of the next program from a recording that is followed.
pub(crate) fn next(replayer: &mut Replayer, header: Header) -> Result<NextProgram, Failure> {
    let count = if header.files_attached {
        header.files.len()
    } else {
        0
    };
    let attached = replayer
        .take_attached(count)
        .map_err(|error| format!("an attached file cannot be read: {error}"))?;
    Ok(NextProgram { header, attached })
}

impl NextProgram {
    pub(crate) fn ids(&self) -> [u32; 4] {
        self.header.ids
    }

    /// Goes to where it was started, and says by which name.
    pub(crate) fn enter(&self) -> Result<Vec<u8>, Failure> {
        enter(&self.header, &self.attached)?;
        Ok(self.header.program.clone())
    }

    /// See [`Replay::at_hand`].
    pub(crate) fn at_hand(&self) -> Result<Option<AtHand>, Failure> {
        at_hand(&self.header, &self.attached)
    }
}

impl Replay {
    /// The program, if it came with the recording: what is there under its name does not matter then.
    pub(crate) fn at_hand(&self) -> Result<Option<AtHand>, Failure> {
        at_hand(&self.header, &self.attached)
    }
}

fn at_hand(header: &Header, attached: &[File]) -> Result<Option<AtHand>, Failure> {
    let copy = |file: &File| {
        file.try_clone()
            .map_err(|error| format!("an attached file cannot be opened: {error}"))
    };
    let Some(program) = attached.first() else {
        return Ok(None);
    };
    let identities = header.files.iter().map(|file| path(&file.path));
    let mut others = identities.zip(attached).skip(1);
    let interpreter = others
        .next()
        .map(|(path, file)| Ok::<_, Failure>((path.to_owned(), copy(file)?)))
        .transpose()?;
    let started = &header.started;
    Ok(Some(AtHand {
        path: path(&started.path).to_owned(),
        program: copy(program)?,
        interpreter,
        argv: started.argv.clone(),
        execfn: started.execfn.clone(),
    }))
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The files of the header, if the recording has brought all of them along. Their contents come before anything else.
fn attached(reader: &mut Reader<File>, header: &Header) -> Result<Vec<File>, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| format!("an attached file cannot be read: {error}");
    let mut files = Vec::new();
    if !header.files_attached {
        return Ok(files);
    }
    for _ in &header.files {
        files.push(verdict_kernel::attached_file().map_err(|error| failed(&error))?);
    }
    let is_ours = |next: &Stamped| matches!(&next.entry, Entry::Contents { file, .. } if (file.0 as usize) < header.files.len());
    while reader
        .peek()
        .map_err(|error| failed(&error))?
        .is_some_and(is_ours)
    {
        let next = reader.next().map_err(|error| failed(&error))?;
        if let Some(Stamped {
            entry: Entry::Contents { file, bytes, .. },
            ..
        }) = next
        {
            let mut file = &files[file.0 as usize];
            file.write_all(&bytes).map_err(|error| failed(&error))?;
        }
    }
    Ok(files)
}

/// Skips to where the guest replaces its program.
fn next_program(reader: &mut Reader<File>) -> Result<Header, Failure> {
    loop {
        match reader
            .next()
            .map_err(|error| format!("the recording {error}"))?
        {
            Some(Stamped {
                entry: Entry::Exec { header },
                ..
            }) => return Ok(*header),
            Some(_) => {}
            None => return Err("the recording ends before the program is replaced".into()),
        }
    }
}

/// The file behind a descriptor that the controller gave us for good.
fn file(fd: i32) -> File {
    crate::setup::set_close_on_exec(fd, true);
    // SAFETY: nobody else uses the descriptor.
    unsafe { File::from_raw_fd(fd) }
}

/// The journal of a run that is about to begin.
pub(crate) fn journal(
    config: &ExecutorConfig,
    plan: &LoadPlan,
    ids: [u32; 4],
    replay: Option<Replay>,
    retired: u64,
) -> Result<Journal, Failure> {
    match (config.mode, replay) {
        (Mode::Live, _) => Ok(Journal::Live),
        (Mode::Replay { .. }, Some(replay)) => {
            check_files(&replay.header, &files(plan)?)?;
            let shown = config.explore.is_none();
            Ok(Journal::replaying(Replayer::new(replay.reader, shown)))
        }
        (Mode::Replay { .. }, None) => Err("no recording was opened".into()),
        (
            Mode::Record {
                fd,
                attach_files,
                max_size,
                resume,
            },
            _,
        ) => {
            if config.clock == Clock::Real {
                return Err(
                    "a run on the machine's clock cannot be recorded; leave out --clock real"
                        .into(),
                );
            }
            let header = header(config, plan, ids, attach_files)?;
            let options = WriterOptions { max_size };
            let writer = match resume {
                None => {
                    let file = file(fd);
                    // An older recording under this name gives way only now that there is something to record.
                    file.set_len(0)
                        .map_err(|error| format!("the recording cannot be begun: {error}"))?;
                    Writer::new(file, &header, options)
                }
                Some(position) => Writer::resume(file(fd), position, options),
            };
            let writer = writer.map_err(|error| error.to_string())?;
            let mut recorder = Recorder::new(writer, attach_files, max_size);
            if resume.is_some() {
                let header = Box::new(header);
                recorder.push(retired, &Entry::Exec { header });
            }
            if attach_files {
                for (index, (_, file)) in sources(plan).into_iter().enumerate() {
                    recorder
                        .attach(retired, FileId(index as u32), file)
                        .map_err(|error| format!("a file cannot be attached: {error}"))?;
                }
            }
            Ok(Journal::recording(recorder))
        }
    }
}

pub(crate) fn header(
    config: &ExecutorConfig,
    plan: &LoadPlan,
    ids: [u32; 4],
    files_attached: bool,
) -> Result<Header, Failure> {
    let cwd = std::env::current_dir()
        .map_err(|error| format!("the working directory cannot be found: {error}"))?;
    Ok(Header {
        writer: env!("CARGO_PKG_VERSION").to_string(),
        program: config.program.clone(),
        started: Started {
            path: plan.program.path.as_os_str().as_bytes().to_vec(),
            argv: plan.argv.clone(),
            execfn: plan.execfn.clone(),
        },
        argv: config.argv.clone(),
        env: config.env.clone(),
        cwd: cwd.as_os_str().as_bytes().to_vec(),
        ids,
        clock: verdict_recording::Clock::Virtual,
        seed: config.seed,
        quantum: config.quantum,
        schedule: match config.schedule {
            SchedulePolicy::RoundRobin => verdict_recording::SchedulePolicy::RoundRobin,
            SchedulePolicy::Random => verdict_recording::SchedulePolicy::Random,
        },
        follow_children: config.follow_children,
        cpu: cpu(),
        files_attached,
        files: files(plan)?,
        documents: Vec::new(),
    })
}

/// The program and its interpreter, in this order.
pub(crate) fn sources(plan: &LoadPlan) -> Vec<(&Path, &File)> {
    let mut found: Vec<(&Path, &File)> = Vec::new();
    let paths = std::iter::once(plan.program.path.as_path())
        .chain(plan.interpreter.iter().map(|image| image.path.as_path()));
    for path in paths {
        let source = plan
            .mappings
            .iter()
            .find_map(|mapping| match &mapping.source {
                MappingSource::File { file, .. } if file.path() == path => Some(file.file()),
                _ => None,
            });
        found.extend(source.map(|file| (path, file)));
    }
    found
}

fn files(plan: &LoadPlan) -> Result<Vec<FileIdentity>, Failure> {
    sources(plan)
        .into_iter()
        .map(|(path, file)| {
            let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
            FileIdentity::of(path.as_os_str().as_bytes(), file)
                .map_err(|error| format!("{} cannot be read: {error}", path.display()))
        })
        .collect()
}

fn check_files(header: &Header, now: &[FileIdentity]) -> Result<(), Failure> {
    if header.files.len() != now.len() {
        return Err(
            "the program has changed since the recording: it asks for another interpreter".into(),
        );
    }
    for (then, now) in header.files.iter().zip(now) {
        if then.hash != now.hash {
            return Err(format!(
                "{} has changed since the recording: it was {then}, and is {now}; build that version again, or record anew (with --attach-files a recording keeps its files)",
                String::from_utf8_lossy(&now.path)
            ));
        }
    }
    Ok(())
}

/// The CPU as the guest sees it.
pub(crate) fn cpu() -> CpuIdentity {
    let [_, b, c, d] = cpuid::guest_cpuid(0, 0);
    let vendor: Vec<u8> = [b, d, c]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    CpuIdentity {
        vendor: String::from_utf8_lossy(&vendor).into_owned(),
        signature: cpuid::guest_cpuid(1, 0)[0],
        features: QUESTIONS
            .iter()
            .map(|(leaf, subleaf)| CpuidWord {
                leaf: *leaf,
                subleaf: *subleaf,
                answer: cpuid::guest_cpuid(*leaf, *subleaf),
            })
            .collect(),
        xsave_mask: cpuid::guest_xcr0(),
    }
}
