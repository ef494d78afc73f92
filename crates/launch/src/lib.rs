//! The controller's side of a run: starts an executor, watches it, and says how it ended.
//!
//! The controller never runs guest code. The executor is expendable: it may crash, hang, be killed or be scribbled over
//! by its guest, and each of these is an [`Ending`] that the controller lives to tell.
#![forbid(unsafe_code)]

mod channel;
mod ending;
mod explore;
mod signals;
mod spawn;
mod watch;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use verdict_protocol::{ExecutorConfig, FrameError};
use verdict_stream::{RingEnds, RingReader};

pub use ending::Ending;
pub use explore::{Advanced, Copied, Explorer, Request};

/// How an executor is started and watched. The default is right for everything but tests.
#[derive(Clone, Debug)]
pub struct LaunchOptions {
    /// The executor's program.
    pub executor: PathBuf,
    /// Its first arguments; the numbers of three descriptors follow: config, report, status.
    pub executor_arguments: Vec<OsString>,
    /// What the user's signals mean during the run.
    pub signals: SignalPolicy,
    /// What a run in the mode `Record` is recorded into, or one in the mode `Replay` is replayed from. The executor
    /// inherits it, and finds its descriptor in the mode.
    pub recording: Option<Arc<File>>,
    /// The socket that an executor which explores gets its orders from.
    pub orders: Option<Arc<File>>,
    /// What becomes of what the guest writes to the terminal.
    pub output: GuestOutput,
    /// When the guest is asked to end (SIGTERM), and killed if it does not.
    pub deadline: Option<Instant>,
    /// How often the heartbeat is looked at.
    pub tick: Duration,
    /// After how many ticks without a heartbeat the executor is taken for dead.
    pub silent_ticks_max: u32,
}

/// What Ctrl-C and its like mean during a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignalPolicy {
    /// The guest decides, as it would without us: Ctrl-C reaches it from the terminal, SIGTERM is passed on, and the
    /// controller ends when the guest does.
    GuestDecides,
    /// The controller ends at once, and the executor with it.
    ControllerEnds,
}

/// What becomes of what the guest writes to its standard output and error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuestOutput {
    /// It is ours.
    Shown,
    /// Nobody wants to see it again.
    Discarded,
}

/// The hidden subcommand that makes `verdict` an executor.
pub const EXECUTOR_COMMAND: &str = "__executor";

impl Default for LaunchOptions {
    fn default() -> Self {
        Self {
            // This very program, whatever has happened to its file.
            executor: "/proc/self/exe".into(),
            executor_arguments: vec![EXECUTOR_COMMAND.into()],
            signals: SignalPolicy::ControllerEnds,
            recording: None,
            orders: None,
            output: GuestOutput::Shown,
            deadline: None,
            tick: Duration::from_secs(1),
            silent_ticks_max: 30,
        }
    }
}

/// Why there was no run at all.
#[derive(thiserror::Error, Debug)]
pub enum LaunchError {
    /// The files that controller and executor share cannot be made.
    #[error("cannot make the files shared with the executor: {0}")]
    Channel(#[source] io::Error),
    /// The config cannot be handed over.
    #[error("cannot hand the executor its config: {0}")]
    Config(#[source] FrameError),
    /// No process.
    #[error("cannot start the executor: {0}")]
    Spawn(#[source] io::Error),
    /// The executor does not do what it is told.
    #[error("{0}")]
    Order(String),
    /// The process is there but cannot be watched.
    #[error("cannot watch the executor: {0}")]
    Watch(#[source] io::Error),
}

/// Runs one executor to its end.
pub fn run(config: &ExecutorConfig, options: &LaunchOptions) -> Result<Ending, LaunchError> {
    run_with(config, options, None, None)
}

/// Runs one executor to its end while `listener`, on a thread of its own, reads what it tells (see `verdict_stream`). The
/// executor waits for a listener that is slower, so that nothing piles up.
pub fn run_told<T: Send>(
    config: &ExecutorConfig,
    options: &LaunchOptions,
    listener: impl FnOnce(RingReader) -> T + Send,
) -> Result<(Ending, T), LaunchError> {
    run_heard(config, options, listener, None)
}

/// The same, but the executor is ended as soon as the listener has heard enough: how the run would have ended is not known.
pub fn run_until_heard<T: Send>(
    config: &ExecutorConfig,
    options: &LaunchOptions,
    listener: impl FnOnce(RingReader) -> T + Send,
) -> Result<T, LaunchError> {
    let (enough, listens) = UnixStream::pair().map_err(LaunchError::Channel)?;
    let listener = |read| {
        // Closed when this is over, however it is.
        let _listens = listens;
        listener(read)
    };
    let (_, heard) = run_heard(config, options, listener, Some(enough.as_fd()))?;
    Ok(heard)
}

/// `enough` is readable once nobody listens any more, if the executor is to be ended then.
fn run_heard<T: Send>(
    config: &ExecutorConfig,
    options: &LaunchOptions,
    listener: impl FnOnce(RingReader) -> T + Send,
    enough: Option<BorrowedFd<'_>>,
) -> Result<(Ending, T), LaunchError> {
    let (read, write) = verdict_stream::ring().map_err(LaunchError::Channel)?;
    spawn::make_room_for_copies(&write).map_err(LaunchError::Channel)?;
    std::thread::scope(|scope| {
        let listening = scope.spawn(|| listener(read));
        let ending = run_with(config, options, Some(write), enough);
        let heard = listening.join();
        match heard {
            Ok(heard) => ending.map(|ending| (ending, heard)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn run_with(
    config: &ExecutorConfig,
    options: &LaunchOptions,
    told: Option<RingEnds>,
    enough: Option<BorrowedFd<'_>>,
) -> Result<Ending, LaunchError> {
    let channel = channel::Channel::new().map_err(LaunchError::Channel)?;
    // Handlers first: between the start and them, Ctrl-C would end the controller alone.
    let signals = match options.signals {
        SignalPolicy::GuestDecides => {
            Some(signals::GuestDecides::begin().map_err(LaunchError::Watch)?)
        }
        SignalPolicy::ControllerEnds => None,
    };
    let executor = spawn::spawn(config, &channel, told, options)?;
    let watched = watch::Watching {
        channel: &channel,
        signals: signals.as_ref(),
        enough,
        options,
    };
    let end = watch::until_end(executor, &watched).map_err(LaunchError::Watch)?;
    Ok(ending::decide(
        end,
        verdict_protocol::read_report(&channel.report),
    ))
}
