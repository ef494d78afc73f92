//! An executor that follows a recording, and leaves it for what-if runs.
//!
//! The recording knows what came from outside later on, but not from where: its entries have no descriptors. So a copy of
//! the executor follows it to its end first, with a world that keeps step, and tells what it heard.

use crate::Executor;
use crate::explore::Role;
use std::ffi::OsStr;
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use verdict_kernel::{AfterInput, Arrived};
use verdict_protocol::{LaterInput, Outcome};

/// Which process this is after an order to leave.
pub(crate) enum Left {
    /// The one that has left the recording.
    Here,
    /// The copy that follows it to its end.
    Listening,
}

/// Exit status of a copy that has heard everything.
const HEARD: i32 = 0;
/// Exit status of one that was led astray.
const LOST: i32 = 4;

impl Executor {
    /// Leaves the recording: what comes is decided here from now on.
    pub(crate) fn leave(
        &mut self,
        input: LaterInput,
        recording: Option<&[u8]>,
    ) -> Result<Left, String> {
        if !self.kernel.can_leave_recording() {
            return Err("no recording is followed that could be left".into());
        }
        let recorder = recording
            .map(|path| {
                let path = Path::new(OsStr::from_bytes(path));
                let replayer = self.kernel.journal.replayer();
                let replayer = replayer.ok_or("no recording is followed")?;
                replayer
                    .recorder_from_here(path)
                    .map_err(|error| format!("{} cannot be written: {error}", path.display()))
            })
            .transpose()?;
        let (arrived, after) = match input {
            LaterInput::EndOfFile => (Vec::new(), AfterInput::EndOfFile),
            LaterInput::Stop => (Vec::new(), AfterInput::Stop),
            LaterInput::Recorded => match self.hear_the_rest()? {
                Some(arrived) => (arrived, AfterInput::EndOfFile),
                None => return Ok(Left::Listening),
            },
        };
        self.kernel.leave_recording(arrived, after, recorder);
        Ok(Left::Here)
    }

    /// What comes from outside until the recording ends; `None` in the copy that has to find out.
    fn hear_the_rest(&mut self) -> Result<Option<Vec<Arrived>>, String> {
        let failed = |error: std::io::Error| format!("the recording cannot be followed: {error}");
        let mut heard = verdict_kernel::attached_file().map_err(failed)?;
        let code = self
            .cache
            .copy_for_child()
            .map_err(|error| error.to_string())?;
        // SAFETY: the executor has one thread, so the copy is whole.
        match unsafe { libc::fork() } {
            -1 => Err(failed(std::io::Error::last_os_error())),
            0 => {
                // SAFETY: a copy must not outlive the executor it came from.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                if self.cache.adopt(&code).is_err() {
                    exit(LOST);
                }
                self.explore = Some(Role::Listener(heard));
                self.kernel.listen_to_recording();
                Ok(None)
            }
            pid => {
                let mut status = 0;
                // SAFETY: waits for a child of our own.
                unsafe { libc::waitpid(pid, &mut status, 0) };
                if status != HEARD {
                    return Err("the recording cannot be followed to its end from here".into());
                }
                let mut bytes = Vec::new();
                heard.rewind().map_err(failed)?;
                heard.read_to_end(&mut bytes).map_err(failed)?;
                let arrived = Arrived::from_bytes(&bytes);
                arrived
                    .ok_or("what the recording has cannot be read".into())
                    .map(Some)
            }
        }
    }

    /// Ends a copy that was made to listen.
    pub(crate) fn report_heard(&mut self, outcome: &Outcome) {
        let Some(Role::Listener(file)) = &mut self.explore else {
            return;
        };
        if let Outcome::Diverged(_) | Outcome::EngineFault(_) = outcome {
            exit(LOST);
        }
        let heard = self.kernel.heard_in_recording();
        let told = file.write_all(&Arrived::to_bytes(&heard));
        exit(if told.is_ok() { HEARD } else { LOST });
    }
}

fn exit(status: i32) -> ! {
    // SAFETY: ends the process without running anything else.
    unsafe { libc::_exit(status) }
}
