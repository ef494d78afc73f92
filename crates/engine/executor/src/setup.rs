//! From a config to a guest that stands before its first instruction.

use crate::passed::Passed;
use crate::{
    Channel, Executor, access_log::AccessLog, cpuid, events::Events, explore, policy, recording,
};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::time::Instant;
use verdict_cache::CodeCache;
use verdict_cpu::{Context, Gpr, layout};
use verdict_kernel::{
    Action, AfterInput, ClockMode, Input, Kernel, MapRequest, Options, OutputMode, Registers,
    WorldMode, WorldSetup,
};
use verdict_loader::{AtHand, Layout, LoadPlan, Lookup, MappingSource, Request, StackInput};
use verdict_protocol::{
    AccessLog as AccessChoice, Clock, ExecutorConfig, PartTimes, ReportWriter, World,
};
use verdict_reexec::Heartbeat;
use verdict_translate::Instrumentation;

/// Where the engine's own signal descriptor is put.
const SIGNAL_FD: i32 = verdict_kernel::ENGINE_FD_START + 10;
const HWCAP2_FSGSBASE: u64 = 2;
/// The first program header and everything below must leave the first pages unmapped, as Linux does.
const LOWEST_IMAGE: u64 = 0x1_0000;

/// Why an execution cannot begin, in a sentence for the user.
pub(crate) type Refusal = String;

pub(crate) fn executor(channel: Channel) -> Result<Executor, Refusal> {
    let started = Instant::now();
    verdict_reexec::settle().map_err(|error| format!("the executor cannot start: {error}"))?;
    let config = verdict_protocol::read_config(&borrow(channel.config))
        .map_err(|error| format!("the executor's orders: {error}"))?;
    let heartbeat = Heartbeat::map(&borrow(channel.status))
        .map_err(|error| format!("the executor's status page: {error}"))?;
    for fd in [channel.config, channel.report, channel.status] {
        set_close_on_exec(fd, true);
    }
    let vector = cpuid::vector_state()
        .ok_or("this CPU has no XSAVE, which the engine needs to keep vector registers")?;
    // SAFETY: reads the process's own auxiliary vector.
    if unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE == 0 {
        return Err("this kernel does not let programs set segment bases (FSGSBASE): Linux 5.9 or newer is needed".into());
    }
    map_context(&vector)?;
    let guest_mask = block_signals();
    let signal_fd = signal_descriptor()?;
    let replay = recording::open(&config)?;
    let mut config = config;
    if let Some(replay) = &replay {
        // The guest may have said it in words that led there from another folder.
        config.program.clone_from(&replay.header.program);
    }
    let ids = replay
        .as_ref()
        .map_or_else(own_ids, |replay| replay.header.ids);
    let at_hand = match &replay {
        Some(replay) => replay.at_hand()?,
        None => None,
    };
    let plan = plan(&config, at_hand)?;
    let options = Options {
        clock: match config.clock {
            Clock::Virtual => ClockMode::Virtual,
            Clock::Real => ClockMode::Real,
        },
        seed: config.seed,
        follow_children: config.follow_children,
        vector_len: vector.len,
        vector_mask: vector.mask,
        program: plan.program.path.clone(),
        argv: plan.argv.clone(),
        personality: 0,
        world: world(&config),
    };
    let mut kernel = Kernel::new(options, Registers::default(), signal_fd);
    kernel.threads[0].signal_mask = config
        .inherited
        .as_ref()
        .map_or(guest_mask, |inherited| inherited.signal_mask);
    inherit(&mut kernel, &config);
    load(&mut kernel, &plan)?;
    start_stack(&mut kernel, &plan, &config, ids)?;
    kernel.journal = recording::journal(&config, &plan, ids, replay, kernel.retired)?;
    name_thread(&mut kernel, &plan);
    let instrumentation = match config.accesses {
        AccessChoice::Off => Instrumentation::None,
        AccessChoice::Discard | AccessChoice::Hash => Instrumentation::Accesses,
        AccessChoice::Tell => Instrumentation::Everything,
        AccessChoice::Sift => Instrumentation::Sifted,
    };
    let lookup = verdict_cpu::entry_points().lookup;
    let mut cache = CodeCache::new(instrumentation, lookup).map_err(|error| error.to_string())?;
    config.watched.iter().for_each(|pc| cache.watch(*pc));
    let scheduler = policy::Policy::of_config(&config);
    let explore = config.explore.map(|socket| explore::Role::Server {
        socket,
        moment: None,
    });
    let events = begin_to_tell(&config, &kernel, &mut cache)?;
    let sifts = config.accesses == AccessChoice::Sift;
    let passed = sifts.then(|| Passed::new(&mut kernel.memory));
    let logs = config.accesses != AccessChoice::Off && !sifts;
    let log = logs.then(|| AccessLog::new(instrumentation, config.accesses == AccessChoice::Hash));
    Ok(Executor {
        report: ReportWriter::new(borrow(channel.report)),
        turn: config.quantum,
        config,
        channel,
        heartbeat,
        kernel,
        cache,
        scheduler,
        vfork_parent: None,
        explore,
        log,
        passed,
        events,
        alone: false,
        beyond: 0,
        single_step: false,
        last_call: u64::MAX,
        watch: crate::watch::WatchState::default(),
        fault: None,
        in_guest: false,
        switches: 0,
        preemptions: 0,
        approaching: None,
        switches_hash: 0,
        signals: 0,
        loaded: usize::MAX,
        times: PartTimes {
            start_ns: started.elapsed().as_nanos() as u64,
            ..PartTimes::default()
        },
        started,
        deadlock_told: false,
    })
}

/// Where the guest's files and connections are to be.
fn world(config: &ExecutorConfig) -> WorldMode {
    match &config.world {
        World::Host => WorldMode::Host,
        World::Private { input } => WorldMode::Private(WorldSetup {
            input: Input::Data {
                bytes: input.clone(),
                after: AfterInput::EndOfFile,
            },
            output: if config.explore.is_some() {
                OutputMode::Capture
            } else {
                OutputMode::Show
            },
            ..WorldSetup::default()
        }),
        World::Followed => WorldMode::Followed(WorldSetup::default()),
    }
}

/// The file behind a descriptor of the channel, which stays open.
fn borrow(fd: i32) -> File {
    // SAFETY: duplicates a descriptor; the copy is owned by the file.
    unsafe {
        File::from_raw_fd(libc::fcntl(
            fd,
            libc::F_DUPFD_CLOEXEC,
            verdict_kernel::ENGINE_FD_START,
        ))
    }
}

/// Tells what there is before the first instruction, if the run is to be told. Children of the guest have nobody who listens.
fn begin_to_tell(
    config: &ExecutorConfig,
    kernel: &Kernel,
    cache: &mut CodeCache,
) -> Result<Option<Events>, Refusal> {
    let is_child = config
        .inherited
        .as_ref()
        .is_some_and(|inherited| inherited.child);
    let Some(through) = config.events.filter(|_| !is_child) else {
        return Ok(None);
    };
    for fd in [through.memory, through.bell] {
        set_close_on_exec(fd, true);
    }
    let mut events = Events::new(through)
        .map_err(|error| format!("the memory through which the run is told: {error}"))?;
    events.begin(&kernel.memory, cache);
    Ok(Some(events))
}

pub(crate) fn set_close_on_exec(fd: i32, on: bool) {
    // SAFETY: plain system call.
    unsafe { libc::fcntl(fd, libc::F_SETFD, if on { libc::FD_CLOEXEC } else { 0 }) };
}

fn map_context(vector: &cpuid::VectorLayout) -> Result<(), Refusal> {
    // SAFETY: the layout reserves this page for the context.
    let mapped = unsafe {
        libc::mmap(
            layout::CONTEXT as *mut libc::c_void,
            layout::CONTEXT_LEN as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(format!(
            "no memory for the engine's context: {}",
            std::io::Error::last_os_error()
        ));
    }
    // SAFETY: just mapped; all-zero is a valid context.
    let context = unsafe { &mut *(layout::CONTEXT as *mut Context) };
    context.prepare(vector.mask, cpuid::fs_base());
    Ok(())
}

/// Blocks everything asynchronous: the guest's signals come through a descriptor. Returns the mask from before.
fn block_signals() -> u64 {
    let faults = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
    ];
    let mask = faults.iter().fold(u64::MAX, |mask, signal| {
        mask & !verdict_kernel::bit(*signal)
    });
    let mut old = 0u64;
    // SAFETY: the kernel's mask is eight bytes; blocking all signals cannot break a single-threaded process.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            &raw mut old,
            8,
        )
    };
    old
}

fn signal_descriptor() -> Result<i32, Refusal> {
    let faults = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGKILL,
        libc::SIGSTOP,
    ];
    // SAFETY: plain system calls on a set and descriptors of our own.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        faults.iter().for_each(|signal| {
            libc::sigdelset(&mut set, *signal);
        });
        let fd = libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
        let moved = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, SIGNAL_FD);
        libc::close(fd);
        if fd < 0 || moved < 0 {
            return Err(format!(
                "no descriptor for signals: {}",
                std::io::Error::last_os_error()
            ));
        }
        Ok(moved)
    }
}

pub(crate) fn plan(config: &ExecutorConfig, at_hand: Option<AtHand>) -> Result<LoadPlan, Refusal> {
    if let Some(at_hand) = at_hand {
        return verdict_loader::plan_at_hand(at_hand, &image_layout())
            .map_err(|error| error.to_string());
    }
    let lookup = if config.inherited.is_some() {
        Lookup::Exact
    } else {
        Lookup::Search(config.search_path())
    };
    let request = Request {
        program: &config.program,
        lookup,
        argv: &config.argv,
        env: &config.env,
    };
    verdict_loader::plan(&request, &image_layout()).map_err(|error| error.to_string())
}

/// Where images may go.
pub(crate) fn image_layout() -> Layout {
    Layout {
        pie_base: layout::PIE_BASE,
        interp_base: layout::IMAGES_START + (layout::IMAGES_END - layout::IMAGES_START) / 2,
        lowest: LOWEST_IMAGE,
        highest: layout::GUEST_END,
        reserved: std::iter::once(layout::ENGINE_LOW_START..layout::ENGINE_LOW_END).collect(),
        stack_limit: layout::STACK_LEN,
    }
}

/// Ignored signals survive an exec.
pub(crate) fn inherit(kernel: &mut Kernel, config: &ExecutorConfig) {
    let ignored = config
        .inherited
        .as_ref()
        .map_or(0, |inherited| inherited.ignored);
    for (index, action) in kernel.actions.iter_mut().enumerate() {
        if ignored & 1 << index != 0 {
            *action = Action {
                handler: libc::SIG_IGN as u64,
                ..Action::default()
            };
        }
    }
    if let Some(inherited) = &config.inherited {
        kernel.retired = inherited.retired;
        kernel
            .clock
            .resume(inherited.skipped_ns, inherited.started_ns);
    }
    if let Some(inherited) = &config.inherited
        && inherited.child
    {
        kernel.become_child(inherited.pid, verdict_kernel::Role::ForkedChild);
    }
}

pub(crate) fn load(kernel: &mut Kernel, plan: &LoadPlan) -> Result<(), Refusal> {
    for mapping in &plan.mappings {
        let protection = &mapping.protection;
        let prot = [
            (protection.read, libc::PROT_READ),
            (protection.write, libc::PROT_WRITE),
            (protection.execute, libc::PROT_EXEC),
        ]
        .iter()
        .fold(0, |prot, (on, bit)| if *on { prot | bit } else { prot });
        let (fd, offset, path, flags) = match &mapping.source {
            MappingSource::File { file, offset } => (
                file.file().as_raw_fd(),
                *offset,
                Some(file.path().to_path_buf()),
                0,
            ),
            MappingSource::Zero => (-1, 0, None, libc::MAP_ANONYMOUS),
        };
        let request = MapRequest {
            address: mapping.guest_addr,
            len: mapping.len,
            prot,
            flags: libc::MAP_PRIVATE | libc::MAP_FIXED | flags,
            fd,
            offset,
            path: path.map(absolute),
        };
        let failed = |errno| {
            format!(
                "cannot map {} at {:#x}: {}",
                plan.program.path.display(),
                mapping.guest_addr,
                std::io::Error::from_raw_os_error(errno)
            )
        };
        kernel.memory.map(&request).map_err(failed)?;
        if let Some(from) = mapping.zero_from {
            let end = mapping.guest_addr + mapping.len;
            kernel
                .memory
                .write(from, &vec![0; (end - from) as usize])
                .map_err(failed)?;
        }
    }
    Ok(())
}

fn absolute(path: PathBuf) -> PathBuf {
    std::fs::canonicalize(&path).unwrap_or(path)
}

/// User and group, real and effective.
pub(crate) fn own_ids() -> [u32; 4] {
    // SAFETY: these cannot fail.
    unsafe {
        [
            libc::getuid(),
            libc::geteuid(),
            libc::getgid(),
            libc::getegid(),
        ]
    }
}

pub(crate) fn start_stack(
    kernel: &mut Kernel,
    plan: &LoadPlan,
    config: &ExecutorConfig,
    [uid, euid, gid, egid]: [u32; 4],
) -> Result<(), Refusal> {
    let failed = |errno| {
        format!(
            "no memory for the guest's stack: {}",
            std::io::Error::from_raw_os_error(errno)
        )
    };
    let request = MapRequest {
        address: layout::STACK_TOP - layout::STACK_LEN,
        len: layout::STACK_LEN,
        prot: libc::PROT_READ | libc::PROT_WRITE,
        flags: libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
        fd: -1,
        offset: 0,
        path: None,
    };
    kernel.memory.map(&request).map_err(failed)?;
    let mut random = [0; 16];
    random[..8].copy_from_slice(&kernel.random_u64().to_le_bytes());
    random[8..].copy_from_slice(&kernel.random_u64().to_le_bytes());
    let image = verdict_loader::build_stack(
        plan,
        &StackInput {
            argv: &plan.argv,
            env: &config.env,
            execfn: &plan.execfn,
            random,
            platform: b"x86_64",
            hwcap: cpuid::hwcap(),
            hwcap2: HWCAP2_FSGSBASE,
            min_signal_stack: Some(kernel.options.vector_len as u64 + 1024),
            page_size: layout::PAGE,
            clock_ticks: 100,
            uid,
            euid,
            gid,
            egid,
            stack_top: layout::STACK_TOP,
        },
    );
    kernel
        .memory
        .write(image.sp, &image.bytes)
        .map_err(failed)?;
    kernel.environment = image.environment;
    let registers = &mut kernel.threads[0].registers;
    registers.rip = plan.entry;
    registers.rflags = 0x202;
    registers.set(Gpr::Rsp, image.sp);
    Ok(())
}

pub(crate) fn name_thread(kernel: &mut Kernel, plan: &LoadPlan) {
    use std::os::unix::ffi::OsStrExt;
    let name = plan
        .program
        .path
        .file_name()
        .map(|name| name.as_bytes().to_vec())
        .unwrap_or_default();
    let len = name.len().min(15);
    kernel.threads[0].name[..len].copy_from_slice(&name[..len]);
}
