//! Starting the executor: nothing in its environment, our files out of the guest's way.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::Mutex;

use rustix::io::FdFlags;
use rustix::process::{Resource, getrlimit};

use crate::LaunchOptions;
use crate::channel::Channel;

/// Our descriptors start here: the guest must find 3 free, and have room.
const FIRST_DESCRIPTOR: u64 = 1000;
/// Room that is left above, where the limit of open files is lower than that.
const ROOM_ABOVE: u64 = 16;

/// Held while descriptors are inheritable, so that no other thread's executor inherits them.
static INHERITABLE: Mutex<()> = Mutex::new(());

pub(crate) fn spawn(channel: &Channel, options: &LaunchOptions) -> io::Result<Child> {
    let _guard = INHERITABLE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let descriptors = inheritable_copies(channel)?;
    Command::new(&options.executor)
        .args(&options.executor_arguments)
        .args(descriptors.iter().map(|d| d.as_raw_fd().to_string()))
        // Variables would change the guest's stack and with it its run; its own travel in the config.
        .env_clear()
        .spawn()
}

fn inheritable_copies(channel: &Channel) -> io::Result<Vec<OwnedFd>> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let first = i32::try_from(FIRST_DESCRIPTOR.min(limit.saturating_sub(ROOM_ABOVE)))
        .expect("at most 1000");
    let copy = |file| -> io::Result<OwnedFd> {
        let descriptor = rustix::io::fcntl_dupfd_cloexec(file, first)?;
        rustix::io::fcntl_setfd(&descriptor, FdFlags::empty())?;
        Ok(descriptor)
    };
    channel.files().into_iter().map(copy).collect()
}
