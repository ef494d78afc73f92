//! A recording that nobody else sees: made while the program runs for the user, replayed to look again without doing
//! anything to the outside world a second time.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, Mode as Permissions, OFlags, memfd_create, open};
use verdict_launch::{GuestOutput, LaunchOptions};
use verdict_protocol::{ExecutorConfig, Mode, World};

use crate::Run;

/// The run that repeats a recording which a run of this config has made, in whatever world.
///
/// # Errors
/// When the file cannot be opened.
pub fn replay_of(
    config: &ExecutorConfig,
    launch: &LaunchOptions,
    recording: &Path,
) -> io::Result<Run> {
    let config = ExecutorConfig {
        mode: Mode::Replay {
            fd: -1,
            until: None,
            replaced: 0,
        },
        world: World::Host,
        ..config.clone()
    };
    let launch = LaunchOptions {
        recording: Some(Arc::new(File::open(recording)?)),
        output: GuestOutput::Discarded,
        ..launch.clone()
    };
    Ok(Run { config, launch })
}

/// A recording without a name.
#[derive(Clone, Debug)]
pub struct OwnRecording {
    file: Arc<File>,
}

impl OwnRecording {
    /// An empty one, in the folder for temporary files; in memory where that folder has no room for files without
    /// a name.
    ///
    /// # Errors
    /// When neither is possible.
    pub fn new() -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let named_nowhere = open(
            std::env::temp_dir(),
            flags,
            Permissions::RUSR | Permissions::WUSR,
        );
        let file = named_nowhere.or_else(|_| memfd_create("recording", MemfdFlags::CLOEXEC))?;
        Ok(Self {
            file: Arc::new(file.into()),
        })
    }

    /// One that was made earlier, to be repeated only.
    #[must_use]
    pub fn of(file: File) -> Self {
        Self {
            file: Arc::new(file),
        }
    }

    /// For the launcher.
    #[must_use]
    pub fn file(&self) -> Arc<File> {
        self.file.clone()
    }

    /// The mode of the run that is recorded.
    #[must_use]
    pub fn record(&self) -> Mode {
        Mode::Record {
            fd: -1,
            attach_files: false,
            max_size: None,
            resume: None,
        }
    }

    /// The mode of a run that repeats it.
    ///
    /// # Errors
    /// When the file cannot be read from its beginning.
    pub fn replay(&self) -> io::Result<Mode> {
        (&*self.file).seek(SeekFrom::Start(0))?;
        Ok(Mode::Replay {
            fd: -1,
            until: None,
            replaced: 0,
        })
    }
}
