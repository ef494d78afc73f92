//! Config and report as bytes in a file: a header with magic and length, then JSON.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{ExecutorConfig, Exploration, Report};

const CONFIG_MAGIC: [u8; 8] = *b"vdctcfg1";
const REPORT_MAGIC: [u8; 8] = *b"vdctrep1";
const EXPLORATION_MAGIC: [u8; 8] = *b"vdctexp1";
const HEADER: usize = 16;
/// More than any config or report: arguments are limited to 6 MiB, and a byte takes at most four characters.
const PAYLOAD_MAX: u64 = 256 * 1024 * 1024;

/// Why nothing can be read.
#[derive(thiserror::Error, Debug)]
pub enum FrameError {
    /// Nothing was written.
    #[error("nothing was written")]
    Empty,
    /// Something else was written.
    #[error("what was written is damaged ({what})")]
    Damaged {
        /// What is wrong with it.
        what: String,
    },
    /// The file itself failed.
    #[error("cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

/// Writes the config at the beginning of `file`.
pub fn write_config(file: &File, config: &ExecutorConfig) -> Result<(), FrameError> {
    write(file, CONFIG_MAGIC, config)
}

/// Reads the config from the beginning of `file`; as often as one likes.
pub fn read_config(file: &File) -> Result<ExecutorConfig, FrameError> {
    read(file, CONFIG_MAGIC)
}

/// Reads the report from the beginning of `file`.
pub fn read_report(file: &File) -> Result<Report, FrameError> {
    read(file, REPORT_MAGIC)
}

/// Writes what a copy has to say at the beginning of `file`.
pub fn write_exploration(file: &File, exploration: &Exploration) -> Result<(), FrameError> {
    write(file, EXPLORATION_MAGIC, exploration)
}

/// Reads what a copy had to say.
pub fn read_exploration(file: &File) -> Result<Exploration, FrameError> {
    read(file, EXPLORATION_MAGIC)
}

/// The executor's side of the report.
#[derive(Debug)]
pub struct ReportWriter {
    file: File,
    owner_pid: u32,
}

impl ReportWriter {
    /// The process that calls this is the one that reports; children it forks inherit the writer, but say nothing.
    #[must_use]
    pub fn new(file: File) -> Self {
        Self {
            file,
            owner_pid: std::process::id(),
        }
    }

    /// Writes the report. In a forked child, does nothing.
    pub fn write(&self, report: &Report) -> Result<(), FrameError> {
        if std::process::id() != self.owner_pid {
            return Ok(());
        }
        write(&self.file, REPORT_MAGIC, report)
    }

    /// The file it writes to, for those who have to keep the guest away from it.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

fn write(file: &File, magic: [u8; 8], value: &impl Serialize) -> Result<(), FrameError> {
    let payload = serde_json::to_vec(value).map_err(|e| damaged(&e))?;
    // The header last: until it is there, nothing was written.
    file.write_all_at(&payload, HEADER as u64)?;
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&magic);
    header[8..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    file.write_all_at(&header, 0)?;
    Ok(())
}

fn read<T: DeserializeOwned>(file: &File, magic: [u8; 8]) -> Result<T, FrameError> {
    let size = file.metadata()?.len();
    let mut header = [0; HEADER];
    if size < HEADER as u64 {
        return Err(FrameError::Empty);
    }
    file.read_exact_at(&mut header, 0)?;
    if header == [0; HEADER] {
        return Err(FrameError::Empty);
    }
    let (found, length) = header.split_at(8);
    if found != magic {
        return Err(damaged(&"it does not begin as it should"));
    }
    let length = u64::from_le_bytes(length.try_into().expect("the half of 16 bytes"));
    if length > PAYLOAD_MAX || length > size - HEADER as u64 {
        return Err(damaged(&format_args!("it claims {length} bytes of {size}")));
    }
    let mut payload = vec![0; usize::try_from(length).expect("at most PAYLOAD_MAX")];
    file.read_exact_at(&mut payload, HEADER as u64)?;
    serde_json::from_slice(&payload).map_err(|e| damaged(&e))
}

fn damaged(what: &dyn std::fmt::Display) -> FrameError {
    FrameError::Damaged {
        what: what.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AccessLog, AccessStats, CallStack, Clock, Divergence, EngineFault, GuestFault,
        MappedModule, Mode, Outcome, PartTimes, Refusal, Registers, ReplayStop, SchedulePolicy,
        Stats, ThreadStats, Until,
    };
    use proptest::prelude::*;

    fn config() -> ExecutorConfig {
        ExecutorConfig {
            clock: Clock::Real,
            seed: u64::MAX,
            schedule: SchedulePolicy::Random,
            accesses: AccessLog::Hash,
            mode: Mode::Replay {
                fd: 7,
                until: Some(Until {
                    thread: 1,
                    instructions: u64::MAX,
                }),
                replaced: 2,
            },
            ..ExecutorConfig::new(
                b"p\xff".to_vec(),
                vec![vec![0xfe], Vec::new()],
                vec![b"A=\x80".to_vec()],
            )
        }
    }

    fn reports() -> Vec<Report> {
        let place = CallStack {
            registers: Registers {
                general: [u64::MAX; 16],
                rip: 1,
                rflags: 2,
            },
            stack: vec![0, 255],
            modules: vec![MappedModule {
                start: 1,
                end: u64::MAX,
                file_offset: 3,
                path: b"/m\xff".to_vec(),
            }],
        };
        let fault = Box::new(GuestFault {
            signal: 11,
            code: 1,
            address: Some(u64::MAX - 1),
            thread: 2,
            instructions: 3,
            place: place.clone(),
        });
        let stats = Stats {
            instructions: u64::MAX,
            threads: vec![ThreadStats {
                tid: 1,
                instructions: 2,
            }],
            syscalls: [("read".to_owned(), 4)].into(),
            accesses: Some(AccessStats {
                logged: 1,
                hash: Some(2),
            }),
            times: Some(PartTimes {
                start_ns: 1,
                ..PartTimes::default()
            }),
            ..Stats::default()
        };
        let outcomes = [
            Outcome::Exited { code: 7 },
            Outcome::Signalled {
                signal: 11,
                fault: Some(fault.clone()),
            },
            Outcome::Refused(Refusal {
                message: "m".into(),
                call: Some("ptrace".into()),
                place: Some(Box::new(place)),
            }),
            Outcome::EngineFault(EngineFault {
                message: "m".into(),
                guest: Some(fault),
            }),
            Outcome::ReplayStopped {
                why: ReplayStop::RecordingEnds,
                instructions: 1,
            },
            Outcome::Diverged(Box::new(Divergence {
                instructions: 1,
                thread: 2,
                recorded: "r".into(),
                replayed: "p".into(),
                place: None,
            })),
        ];
        outcomes
            .map(|outcome| Report {
                outcome,
                stats: stats.clone(),
            })
            .into()
    }

    #[test]
    fn what_is_written_is_read() {
        let file = tempfile::tempfile().unwrap();
        write_config(&file, &config()).unwrap();
        assert_eq!(read_config(&file).unwrap(), config());
        assert_eq!(read_config(&file).unwrap(), config());
        for report in reports() {
            let file = tempfile::tempfile().unwrap();
            ReportWriter::new(file.try_clone().unwrap())
                .write(&report)
                .unwrap();
            assert_eq!(read_report(&file).unwrap(), report);
        }
    }

    #[test]
    fn nothing_is_told_from_something_else() {
        let file = tempfile::tempfile().unwrap();
        assert!(matches!(read_report(&file), Err(FrameError::Empty)));
        file.set_len(4096).unwrap();
        assert!(matches!(read_report(&file), Err(FrameError::Empty)));
        write_config(&file, &config()).unwrap();
        assert!(matches!(
            read_report(&file),
            Err(FrameError::Damaged { .. })
        ));
    }

    #[test]
    fn a_child_says_nothing() {
        let file = tempfile::tempfile().unwrap();
        let writer = ReportWriter {
            file: file.try_clone().unwrap(),
            owner_pid: 1,
        };
        writer.write(&reports()[0]).unwrap();
        assert!(matches!(read_report(&file), Err(FrameError::Empty)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            length in any::<u64>(),
            framed in any::<bool>(),
        ) {
            let file = tempfile::tempfile().unwrap();
            if framed {
                file.write_all_at(&REPORT_MAGIC, 0).unwrap();
                file.write_all_at(&(length % 80).to_le_bytes(), 8).unwrap();
                file.write_all_at(&bytes, 16).unwrap();
            } else {
                file.write_all_at(&bytes, 0).unwrap();
            }
            prop_assert!(read_report(&file).is_err());
        }
    }
}
