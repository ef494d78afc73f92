//! The controller's side of an exploration: one executor that stays at a moment, and copies of it that run on.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use verdict_protocol::{
    Answer, Approach, ExecutorConfig, Exploration, LaterInput, Mode, Moment, Order, OutputPlace,
    Property, RunOrder, RunSchedule, WatchedCall,
};

use crate::channel::Channel;
use crate::watch::Watched;
use crate::{Ending, LaunchError, LaunchOptions, ending, spawn};

/// How often a silent executor is looked at.
const TICK: Duration = Duration::from_millis(200);
const ANSWER_MAX: usize = 64 << 10;

/// What copies that are recorded begin with.
const BEGINNING: &str = "beginning.vrec";

/// An executor that explores.
pub struct Explorer {
    executor: Watched,
    channel: Channel,
    socket: UnixDatagram,
    folder: PathBuf,
    next: u64,
}

/// How a copy is to go on.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who runs.
    pub schedule: RunSchedule,
    /// Watched instructions.
    pub watched: Vec<u64>,
    /// Watched instructions that are calls.
    pub calls: Vec<WatchedCall>,
    /// Functions that free.
    pub freeing: Vec<u64>,
    /// Those after which the block is gone for sure.
    pub releasing: Vec<u64>,
    /// Functions whose first argument is withheld from the allocator that they would give it back to.
    pub withholding: Vec<u64>,
    /// The thread that stands before an update in place has loaded already.
    pub loaded: bool,
    /// A racing call that is let pass is let pass as a whole.
    pub whole_calls: bool,
    /// What a watched call does atomically does not matter.
    pub plain_calls: bool,
    /// Where the execution is recorded, from its very start.
    pub recording: Option<PathBuf>,
    /// Instructions it may have from here on.
    pub instructions_max: Option<u64>,
    /// So many stops at watched instructions are noted.
    pub stops_max: usize,
    /// The byte of output whose writer is asked for.
    pub writer_of: Option<OutputPlace>,
    /// What has to happen before the schedule begins.
    pub approach: Option<Approach>,
    /// At its end it says what it has changed in memory.
    pub compare_memory: bool,
    /// What shall hold.
    pub properties: Vec<Property>,
}

impl Request {
    /// A copy that goes on as it would have, to its end.
    #[must_use]
    pub fn new(schedule: RunSchedule) -> Self {
        Request {
            schedule,
            watched: Vec::new(),
            calls: Vec::new(),
            freeing: Vec::new(),
            releasing: Vec::new(),
            withholding: Vec::new(),
            loaded: false,
            whole_calls: false,
            plain_calls: false,
            recording: None,
            instructions_max: None,
            stops_max: 0,
            writer_of: None,
            approach: None,
            compare_memory: false,
            properties: Vec::new(),
        }
    }
}

/// What came of a copy.
#[derive(Debug)]
pub enum Copied {
    /// It had something to say.
    Explored(Box<Exploration>),
    /// It ended without a word: the guest or the engine broke it.
    Lost {
        /// What is known, as the end of a sentence about the copy.
        how: String,
    },
    /// It ran for longer than it may.
    TimedOut,
}

/// Where an advance came to.
#[derive(Debug)]
pub enum Advanced {
    /// The moment is reached.
    Reached {
        /// Instructions of all threads.
        instructions: u64,
    },
    /// The execution ended before.
    Ended(Box<Ending>),
}

impl Explorer {
    /// Starts an executor that stands before the first instruction. `folder` holds files of the exploration. With
    /// `record`, copies can be recorded.
    pub fn start(
        config: &ExecutorConfig,
        options: &LaunchOptions,
        folder: &Path,
        record: bool,
    ) -> Result<Self, LaunchError> {
        let channel = Channel::new().map_err(LaunchError::Channel)?;
        let (socket, theirs) = UnixDatagram::pair().map_err(LaunchError::Channel)?;
        let mut config = config.clone();
        let mut options = options.clone();
        options.orders = Some(Arc::new(File::from(OwnedFd::from(theirs))));
        config.explore = Some(-1);
        if record {
            let beginning = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(folder.join(BEGINNING))
                .map_err(LaunchError::Channel)?;
            options.recording = Some(Arc::new(beginning));
            config.mode = Mode::Record {
                fd: -1,
                attach_files: false,
                max_size: None,
                resume: None,
            };
        }
        let child = spawn::spawn(&config, &channel, None, &options)?;
        let executor = Watched::new(child).map_err(LaunchError::Watch)?;
        socket
            .set_read_timeout(Some(TICK))
            .map_err(LaunchError::Channel)?;
        let mut explorer = Explorer {
            executor,
            channel,
            socket,
            folder: folder.to_path_buf(),
            next: 0,
        };
        explorer.first_answer()?;
        Ok(explorer)
    }

    /// An executor that can start says so first of all.
    fn first_answer(&mut self) -> Result<(), LaunchError> {
        match self.answer(None)? {
            Some(Answer::Reached { .. }) | None => Ok(()),
            Some(other) => Err(LaunchError::Watch(unexpected(&other))),
        }
    }

    /// Lets the execution itself go on to a moment.
    pub fn advance(&mut self, moment: Moment) -> Result<Advanced, LaunchError> {
        if self.executor.is_over() {
            return self.ended();
        }
        self.send(&Order::Advance(moment))?;
        match self.answer(None)? {
            Some(Answer::Reached { instructions }) => Ok(Advanced::Reached { instructions }),
            Some(other) => Err(LaunchError::Watch(unexpected(&other))),
            None => self.ended(),
        }
    }

    /// Leaves the recording that the execution follows: from here on it goes on by itself, in a private world, with
    /// input as `input` says. With `record`, copies can be recorded from the beginning.
    pub fn leave(&mut self, input: LaterInput, record: bool) -> Result<(), LaunchError> {
        let beginning = self.folder.join(BEGINNING);
        let recording = record.then(|| beginning.as_os_str().as_bytes().to_vec());
        self.send(&Order::Leave { input, recording })?;
        match self.answer(None)? {
            Some(Answer::Left { failure: None }) => Ok(()),
            Some(Answer::Left { failure: Some(why) }) => Err(LaunchError::Order(why)),
            Some(other) => Err(LaunchError::Watch(unexpected(&other))),
            None => Err(LaunchError::Order(
                "the executor ended when it was to leave its recording".into(),
            )),
        }
    }

    fn ended(&mut self) -> Result<Advanced, LaunchError> {
        let end = self.executor.end().map_err(LaunchError::Watch)?;
        let report = verdict_protocol::read_report(&self.channel.report);
        Ok(Advanced::Ended(Box::new(ending::decide(end, report))))
    }

    /// Makes a copy for each request, `jobs` at a time, and hands over what came of each with its index, as they end.
    pub fn run_all(
        &mut self,
        requests: &mut dyn Iterator<Item = Request>,
        jobs: usize,
        time_limit: Option<Duration>,
        each: &mut dyn FnMut(usize, Copied),
    ) -> Result<(), LaunchError> {
        let mut running: Vec<Running> = Vec::new();
        let mut index = 0;
        let mut more = true;
        while more || !running.is_empty() {
            while more && running.len() < jobs.max(1) {
                match requests.next() {
                    Some(request) => {
                        running.push(self.order(index, request)?);
                        index += 1;
                    }
                    None => more = false,
                }
            }
            if running.is_empty() {
                break;
            }
            let Some(answer) = self.answer(Some(&mut |explorer| {
                explorer.end_late(&running, time_limit);
            }))?
            else {
                return Err(LaunchError::Watch(io::Error::other(
                    "the executor ended while copies of it were running",
                )));
            };
            let (id, copied) = match answer {
                Answer::Gone { id, status } => (id, self.read(id, status)),
                Answer::Failed { id, why } => (id, Copied::Lost { how: why }),
                Answer::Reached { .. } | Answer::Left { .. } => continue,
            };
            if let Some(at) = running.iter().position(|run| run.id == id) {
                let run = running.swap_remove(at);
                let late = time_limit.is_some_and(|limit| run.started.elapsed() > limit);
                let copied = match copied {
                    Copied::Lost { .. } if late => Copied::TimedOut,
                    copied => copied,
                };
                each(run.index, copied);
            }
        }
        Ok(())
    }

    fn order(&mut self, index: usize, request: Request) -> Result<Running, LaunchError> {
        let id = self.next;
        self.next += 1;
        let bytes = |path: PathBuf| path.as_os_str().as_bytes().to_vec();
        self.send(&Order::Run(Box::new(RunOrder {
            id,
            report: bytes(self.report_path(id)),
            recording: request.recording.map(bytes),
            schedule: request.schedule,
            watched: request.watched,
            calls: request.calls,
            freeing: request.freeing,
            releasing: request.releasing,
            withholding: request.withholding,
            loaded: request.loaded,
            whole_calls: request.whole_calls,
            plain_calls: request.plain_calls,
            instructions_max: request.instructions_max,
            stops_max: request.stops_max,
            writer_of: request.writer_of,
            approach: request.approach,
            compare_memory: request.compare_memory,
            properties: request.properties,
        })))?;
        Ok(Running {
            id,
            index,
            started: Instant::now(),
        })
    }

    fn report_path(&self, id: u64) -> PathBuf {
        self.folder.join(format!("copy-{id}"))
    }

    fn read(&self, id: u64, status: i32) -> Copied {
        let path = self.report_path(id);
        let read = File::open(&path)
            .map_err(verdict_protocol::FrameError::Io)
            .and_then(|file| verdict_protocol::read_exploration(&file));
        let _ = fs::remove_file(&path);
        match read {
            Ok(exploration) => Copied::Explored(Box::new(exploration)),
            Err(error) => Copied::Lost {
                how: format!("ended with status {status:#x}, and of its report {error}"),
            },
        }
    }

    /// Kills what has run for too long.
    fn end_late(&mut self, running: &[Running], time_limit: Option<Duration>) {
        let Some(limit) = time_limit else { return };
        for run in running {
            if run.started.elapsed() > limit {
                let _ = self.send(&Order::Kill { id: run.id });
            }
        }
    }

    fn send(&self, order: &Order) -> Result<(), LaunchError> {
        let bytes = serde_json::to_vec(order).map_err(|e| LaunchError::Watch(e.into()))?;
        self.socket.send(&bytes).map_err(LaunchError::Watch)?;
        Ok(())
    }

    /// The next answer; `None` if the executor has ended.
    fn answer(
        &mut self,
        mut tick: Option<&mut dyn FnMut(&mut Self)>,
    ) -> Result<Option<Answer>, LaunchError> {
        let mut bytes = vec![0; ANSWER_MAX];
        loop {
            match self.socket.recv(&mut bytes) {
                Ok(len) => {
                    let answer = serde_json::from_slice(&bytes[..len]);
                    return Ok(Some(answer.map_err(|e| LaunchError::Watch(e.into()))?));
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::TimedOut
                            | io::ErrorKind::Interrupted
                    ) =>
                {
                    if self.executor.has_ended().map_err(LaunchError::Watch)? {
                        return Ok(None);
                    }
                    if let Some(tick) = &mut tick {
                        tick(self);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    self.executor.end().map_err(LaunchError::Watch)?;
                    return Ok(None);
                }
                Err(error) => return Err(LaunchError::Watch(error)),
            }
        }
    }
}

impl Drop for Explorer {
    /// Every recording of a copy has its own beginning: this one is of use to nobody any more.
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join(BEGINNING));
    }
}

/// A copy that has not ended.
struct Running {
    id: u64,
    index: usize,
    started: Instant,
}

fn unexpected(answer: &Answer) -> io::Error {
    io::Error::other(format!("an answer that nobody asked for: {answer:?}"))
}
