//! How an executor begins. Its first act is [`settle`]; then it maps its [`Heartbeat`].
//!
//! Addresses must be the same in every run, so randomisation has to be off before the process exists; the kernel takes
//! the wish at `execve` only. A controller has it before it starts an executor ([`FixedAddresses`]), which spares the executor a
//! second start; one that was started without it starts, asks, and starts again.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::Signal;
use verdict_protocol::{STATUS_BYTES, Status};

/// Asks what the persona is without changing it.
const PERSONALITY_QUERY: libc::c_ulong = 0xffff_ffff;

/// Makes sure that this process has no address-space randomisation, by re-executing it with the arguments it was
/// started with if it has. Also makes it die with its controller. Returns in the process that is settled.
pub fn settle() -> io::Result<()> {
    // Before the second start as well as after: the wish survives `execve`, and there is no moment without it.
    die_with_parent()?;
    let persona = personality(PERSONALITY_QUERY)?;
    if persona & libc::ADDR_NO_RANDOMIZE != 0 {
        return Ok(());
    }
    personality(number(persona | libc::ADDR_NO_RANDOMIZE))?;
    if personality(PERSONALITY_QUERY)? & libc::ADDR_NO_RANDOMIZE == 0 {
        // Re-executing for ever would be worse than a clear end.
        return Err(io::Error::other(
            "the kernel does not switch address-space randomisation off",
        ));
    }
    match start_again() {
        Err(error) => Err(error),
    }
}

/// While it lives, what this thread starts has no address-space randomisation. The thread's own process is as it was.
#[derive(Debug)]
pub struct FixedAddresses {
    before: Option<libc::c_int>,
}

impl FixedAddresses {
    /// Where the kernel does not allow it, what is started finds out by itself ([`settle`]).
    #[must_use]
    pub fn for_children() -> Self {
        let before = personality(PERSONALITY_QUERY).ok();
        let wanted = before.map(|persona| persona | libc::ADDR_NO_RANDOMIZE);
        let set = wanted.and_then(|wanted| personality(number(wanted)).ok());
        FixedAddresses {
            before: set.and(before),
        }
    }
}

impl Drop for FixedAddresses {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // It was allowed to change it: it is allowed to change it back.
            let _ = personality(number(before));
        }
    }
}

fn number(persona: libc::c_int) -> libc::c_ulong {
    libc::c_ulong::from(persona.cast_unsigned())
}

/// Switches randomisation on again for what this process executes next. For programs that leave the engine: they should
/// find what they would find without it.
pub fn restore_randomisation() -> io::Result<()> {
    let persona = personality(PERSONALITY_QUERY)?;
    personality(number(persona & !libc::ADDR_NO_RANDOMIZE))?;
    Ok(())
}

fn start_again() -> io::Result<Infallible> {
    let mut arguments = std::env::args_os();
    let name = arguments
        .next()
        .unwrap_or_else(|| OsString::from("verdict"));
    // Not the path we were started by: the file may have been replaced meanwhile.
    Err(Command::new("/proc/self/exe")
        .arg0(name)
        .args(arguments)
        .exec())
}

fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

fn personality(persona: libc::c_ulong) -> io::Result<libc::c_int> {
    // SAFETY: personality takes a number and touches no memory of ours.
    match unsafe { libc::personality(persona) } {
        -1 => Err(io::Error::last_os_error()),
        before => Ok(before),
    }
}

/// The status page, shared with the controller.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeat {
    words: &'static [AtomicU64; Status::LEN / 8],
}

impl Heartbeat {
    /// Maps the status file, for the rest of the process's life.
    pub fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() < STATUS_BYTES {
            return Err(io::Error::other("the status file is too small"));
        }
        let length = usize::try_from(STATUS_BYTES).expect("a page");
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping of a whole page at an address of the kernel's choice replaces nothing.
        let page = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )?
        };
        // SAFETY: the page is mapped, aligned, large enough, never unmapped, and only ever accessed as atomics; the file
        // is at least a page long and its owner, the controller, does not shrink it.
        let words = unsafe { &*page.cast::<[AtomicU64; Status::LEN / 8]>() };
        Ok(Self { words })
    }

    /// Where the page is, for those who have to keep the guest away from it.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.words.as_ptr().addr() as u64
    }

    /// Says: still alive.
    pub fn beat(&self) {
        // Only this process writes; no read-modify-write of the bus is needed.
        let word = &self.words[Status::HEARTBEAT_AT / 8];
        word.store(
            word.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }

    /// Says whether the executor waits for the outside world.
    pub fn set_blocked(&self, blocked: bool) {
        self.words[Status::BLOCKED_AT / 8].store(blocked.into(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// The persona that a child finds.
    fn of_child() -> u32 {
        let output = Command::new("cat").arg("/proc/self/personality").output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        u32::from_str_radix(text.trim(), 16).unwrap()
    }

    #[test]
    fn children_have_fixed_addresses_while_it_is_asked_for() {
        let off = libc::ADDR_NO_RANDOMIZE.cast_unsigned();
        let (own, childs) = (personality(PERSONALITY_QUERY).unwrap(), of_child());
        let fixed = FixedAddresses::for_children();
        assert_eq!(of_child(), childs | off);
        drop(fixed);
        assert_eq!(of_child(), childs);
        assert_eq!(personality(PERSONALITY_QUERY).unwrap(), own);
    }

    fn status(file: &File) -> Status {
        let mut bytes = [0; Status::LEN];
        file.read_exact_at(&mut bytes, 0).unwrap();
        Status::from_bytes(bytes)
    }

    #[test]
    fn the_controller_reads_what_the_executor_stores() {
        let file = tempfile::tempfile().unwrap();
        assert!(Heartbeat::map(&file).is_err());
        file.set_len(STATUS_BYTES).unwrap();
        let heartbeat = Heartbeat::map(&file).unwrap();
        assert_eq!(status(&file), Status::default());
        heartbeat.beat();
        heartbeat.beat();
        heartbeat.set_blocked(true);
        assert_eq!(
            status(&file),
            Status {
                heartbeat: 2,
                blocked: true
            }
        );
        heartbeat.set_blocked(false);
        assert!(!status(&file).blocked);
    }
}
