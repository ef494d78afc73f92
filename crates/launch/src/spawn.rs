//! Starting the executor: nothing in its environment, our files out of the guest's way.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use rustix::io::FdFlags;
use rustix::process::{Resource, getrlimit};

use verdict_protocol::{ExecutorConfig, Mode, Telling};
use verdict_reexec::FixedAddresses;
use verdict_stream::RingEnds;

use crate::channel::Channel;
use crate::{GuestOutput, LaunchError, LaunchOptions};

/// Our descriptors start here: the guest must find 3 free, and have room.
const FIRST_DESCRIPTOR: u64 = 1000;
/// Room that is left above, where the limit of open files is lower than that.
const ROOM_ABOVE: u64 = 16;

/// Held while descriptors are inheritable, so that no other thread's executor inherits them.
static INHERITABLE: Mutex<()> = Mutex::new(());

pub(crate) fn spawn(
    config: &ExecutorConfig,
    channel: &Channel,
    told: Option<RingEnds>,
    options: &LaunchOptions,
) -> Result<Child, LaunchError> {
    let _guard = INHERITABLE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let (Mode::Replay { .. }, Some(recording)) = (&config.mode, options.recording.as_deref()) {
        // Several executors may follow one file, one after the other.
        (&*recording)
            .seek(SeekFrom::Start(0))
            .map_err(LaunchError::Spawn)?;
    }
    let mut files = channel.files().to_vec();
    files.extend(options.recording.as_deref());
    files.extend(options.orders.as_deref());
    files.extend(told.iter().flat_map(|told| [&told.memory, &told.bell]));
    let descriptors = inheritable_copies(&files).map_err(LaunchError::Spawn)?;
    let (channel_descriptors, mut others) = descriptors.split_at(channel.files().len());
    let mut config = config.clone();
    if let (Some(_), [rest @ .., memory, bell]) = (&told, others) {
        config.events = Some(Telling {
            memory: memory.as_raw_fd(),
            bell: bell.as_raw_fd(),
        });
        others = rest;
    }
    let config = with_descriptors(&config, options, others);
    verdict_protocol::write_config(&channel.config, &config).map_err(LaunchError::Config)?;
    let mut command = Command::new(&options.executor);
    if options.output == GuestOutput::Discarded {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    let _fixed = FixedAddresses::for_children();
    command
        .args(&options.executor_arguments)
        .args(
            channel_descriptors
                .iter()
                .map(|d| d.as_raw_fd().to_string()),
        )
        // Variables would change the guest's stack and with it its run; its own travel in the config.
        .env_clear()
        .spawn()
        .map_err(LaunchError::Spawn)
}

/// The config with the descriptors of recording and orders in it.
fn with_descriptors(
    config: &ExecutorConfig,
    options: &LaunchOptions,
    descriptors: &[OwnedFd],
) -> ExecutorConfig {
    let mut config = config.clone();
    let mut numbers = descriptors.iter().map(AsRawFd::as_raw_fd);
    if options.recording.is_some()
        && let (Some(fd), Some(number)) = (config.mode.descriptor_mut(), numbers.next())
    {
        *fd = number;
    }
    if options.orders.is_some() {
        config.explore = numbers.next();
    }
    config
}

/// Has the kernel enlarge the table of descriptors now. Once there are other threads, it waits for all of them to take note of that,
/// which takes longer than to start an executor.
pub(crate) fn make_room_for_copies(told: &RingEnds) -> io::Result<()> {
    inheritable_copies(&[&told.memory]).map(drop)
}

fn inheritable_copies(files: &[&File]) -> io::Result<Vec<OwnedFd>> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let first = i32::try_from(FIRST_DESCRIPTOR.min(limit.saturating_sub(ROOM_ABOVE)))
        .expect("at most 1000");
    let copy = |file: &&File| -> io::Result<OwnedFd> {
        let descriptor = rustix::io::fcntl_dupfd_cloexec(file, first)?;
        rustix::io::fcntl_setfd(&descriptor, FdFlags::empty())?;
        Ok(descriptor)
    };
    files.iter().map(copy).collect()
}
