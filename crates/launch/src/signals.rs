//! The user's signals during a run in which the guest decides.
//!
//! The terminal sends Ctrl-C and Ctrl-\ to the executor as well; all that is left to do is to survive them. SIGTERM is
//! sent to one process, ours, and meant for the program that runs: it is passed on.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

pub(crate) struct GuestDecides {
    registered: Vec<SigId>,
    /// Readable when SIGTERM has come.
    termination: UnixStream,
}

impl GuestDecides {
    pub(crate) fn begin() -> io::Result<Self> {
        let (termination, sender) = UnixStream::pair()?;
        termination.set_nonblocking(true)?;
        let mut registered = vec![low_level::pipe::register(SIGTERM, sender)?];
        for signal in [SIGINT, SIGQUIT, SIGHUP] {
            // A handler, not SIG_IGN: the executor would inherit that one.
            registered.push(flag::register(signal, Arc::new(AtomicBool::new(false)))?);
        }
        Ok(Self {
            registered,
            termination,
        })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.termination.as_fd()
    }

    /// Whether SIGTERM has come since the last question.
    pub(crate) fn take_termination(&self) -> bool {
        let mut bytes = [0; 64];
        matches!((&self.termination).read(&mut bytes), Ok(count) if count > 0)
    }
}

impl Drop for GuestDecides {
    fn drop(&mut self) {
        for &id in &self.registered {
            low_level::unregister(id);
        }
    }
}
