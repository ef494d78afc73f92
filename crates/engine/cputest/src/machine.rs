//! One process's CPU for tests: enters code with a given state, and catches what it does.
//!
//! The context, the cache and the arena lie at fixed addresses, so a process has one machine.

use crate::arena;
use crate::state::{Fault, STEPPING, State};
use crate::step::Stepper;
use crate::told::Sites;
use crate::vectors::{VectorArea, VectorLayout};
use std::sync::atomic::{AtomicPtr, Ordering};
use verdict_cache::{CodeCache, Shadows, clear_sieve, step_aside, use_shadows};
use verdict_cpu::{
    Context, HostSignalFrame, STAMP_EPOCH, STAMP_HIDDEN, SignalVerdict, install_signal_entry,
    layout, read_gs_base, restore_vector, set_signal_stack, write_gs_base,
};
use verdict_translate::Instrumentation;

static MACHINE: AtomicPtr<Machine> = AtomicPtr::new(std::ptr::null_mut());
const SIGNAL_STACK_LEN: usize = 1 << 20;
/// In the place of a site's number: a run was interrupted.
pub(crate) const LOST: u64 = u32::MAX as u64;
/// Words of the access log.
const LOG_WORDS: usize = 64 << 10;
/// Room for where stamps are: twice what one program can stamp.
const STAMPED: usize = 2 * 4 * LOG_WORDS / 2;

/// What runs now, for the signal handler.
pub(crate) enum Running {
    /// Nothing: a signal is a mistake of the test.
    Nothing,
    /// Guest code as it is, at full speed.
    Native,
    /// Guest code as it is, one instruction at a time.
    Stepped(Stepper),
    /// Translated code.
    Engine,
}

/// A run that the CPU refused to go on with.
#[derive(Clone, Debug)]
pub(crate) struct Faulted {
    pub(crate) fault: Fault,
    /// At the instruction that faulted.
    pub(crate) state: State,
    /// Under the engine: what the budget lacks for exactly the retired instructions to be charged.
    pub(crate) due: i64,
    /// Under the engine: words of the log from before the block that do not count yet.
    pub(crate) carried_words: u16,
    /// Under the engine: the block had logged so many of its instructions' accesses.
    pub(crate) interrupted_log: Option<(u32, u16)>,
}

pub(crate) struct Machine {
    pub(crate) layout: VectorLayout,
    pub(crate) cache: CodeCache,
    pub(crate) instrumentation: Instrumentation,
    pub(crate) running: Running,
    pub(crate) faulted: Option<Faulted>,
    area: VectorArea,
    pub(crate) log: Box<[u64]>,
    /// What passes the sieve.
    pub(crate) passed: Box<[u64]>,
    /// What its records stand for.
    pub(crate) sites: Sites,
    /// A look at stamps was refused, so that not all accesses are told.
    pub(crate) refused: bool,
    /// The program has to do with gs, so that not all accesses are told.
    pub(crate) takes_gs: bool,
    /// The program's base of gs while translated code has another one.
    own_gs_base: u64,
    /// Where stamps are.
    stamped: Box<[u64]>,
    /// The list of noted functions, of which there are none.
    noted: Box<[u64]>,
}

impl Machine {
    /// Maps everything and takes over the CPU's faults.
    pub(crate) fn new(instrumentation: Instrumentation) -> Result<&'static mut Machine, String> {
        let layout = VectorLayout::of_host().ok_or("this CPU has no XSAVE")?;
        map_context(&layout).map_err(|error| format!("the context: {error}"))?;
        arena::map().map_err(|error| format!("the arena: {error}"))?;
        let cache = CodeCache::new(instrumentation, verdict_cpu::entry_points().lookup)
            .map_err(|error| error.to_string())?;
        let machine = Box::leak(Box::new(Machine {
            area: VectorArea::new(layout.len),
            layout,
            cache,
            instrumentation,
            running: Running::Nothing,
            faulted: None,
            log: vec![0; LOG_WORDS].into(),
            passed: vec![0; LOG_WORDS].into(),
            sites: Sites::default(),
            refused: false,
            takes_gs: false,
            own_gs_base: 0,
            stamped: vec![0; STAMPED].into(),
            noted: vec![1; 2].into(),
        }));
        MACHINE.store(machine, Ordering::Release);
        take_signals().map_err(|error| format!("signals: {error}"))?;
        Ok(machine)
    }

    /// The context.
    pub(crate) fn context(&mut self) -> &'static mut Context {
        // SAFETY: mapped by `new` for good; one reference at a time, as each use ends before guest code runs.
        unsafe { &mut *(layout::CONTEXT as *mut Context) }
    }

    /// Makes a state the one that code will be entered with.
    pub(crate) fn load(&mut self, state: &State) {
        arena::restore(&state.memory);
        self.area.set(&state.vectors);
        let context = self.context();
        context.gpr = state.gpr;
        context.rip = state.rip;
        context.rflags = state.rflags;
        context.guest_fs = state.fs_base;
        context.xsave_area = self.area.address();
        context.log_next = self.log.as_ptr() as u64;
        self.reset_sieve();
        self.refused = false;
        self.own_gs_base = state.gs_base;
        write_gs_base(state.gs_base);
        self.faulted = None;
    }

    /// Room for what passes the sieve, and a thread in an epoch of its own.
    fn reset_sieve(&mut self) {
        let (passed, noted) = (self.passed.as_ptr() as u64, self.noted.as_ptr() as u64);
        let stamped = self.stamped.as_ptr() as u64;
        let takes_gs = self.takes_gs;
        let context = self.context();
        context.passed_next = passed;
        (context.passed_step, context.runtime_step) = (16, 16);
        let shadows = match takes_gs {
            true => Shadows::Shared,
            false => Shadows::Own,
        };
        use_shadows(shadows, context);
        context.epoch_step = STAMP_EPOCH;
        context.epochs += STAMP_EPOCH;
        context.epoch = context.epochs;
        if context.stamped == 0 {
            (context.stamped, context.stamped_next) = (stamped, stamped);
        }
        let is_full = (context.stamped_next - stamped) / 8 > (STAMPED / 2) as u64;
        if context.epochs == STAMP_HIDDEN || is_full {
            clear_sieve(context);
        }
        context.noted_top = noted;
        context.noted_end = noted + size_of_val(&*self.noted) as u64;
    }

    /// The state that the last run left in the context, but for rip.
    pub(crate) fn store(&mut self, rip: u64) -> State {
        let context = self.context();
        State {
            gpr: context.gpr,
            rip,
            rflags: context.rflags,
            fs_base: context.guest_fs,
            gs_base: read_gs_base(),
            vectors: self.area.get(),
            memory: arena::contents(),
        }
    }

    /// Enters code, native or translated.
    pub(crate) fn enter(&mut self, host: u64, running: Running) {
        self.running = running;
        if self.looks_through_gs() {
            write_gs_base(layout::SHADOW_BASE);
        }
        // SAFETY: the context is complete; `host` is a block of the cache or guest code that ends in a jump to the
        // exit routine; the guest's accesses to anything but the arena are ruled out by the stepper beforehand.
        unsafe {
            match self.running {
                Running::Engine => verdict_cpu::enter_translated(host),
                _ => verdict_cpu::enter(host),
            }
        }
        if self.looks_through_gs() {
            write_gs_base(self.own_gs_base);
        }
        if !matches!(self.running, Running::Stepped(_)) {
            self.running = Running::Nothing;
        }
    }

    /// A block was made: if it has to do with gs, there are no shadows for the rest of the program.
    pub(crate) fn see_to_gs(&mut self) {
        if self.cache.takes_gs() {
            self.takes_gs = true;
            use_shadows(Shadows::Shared, self.context());
        }
    }

    /// Whether the base of gs is not the program's while it runs.
    fn looks_through_gs(&self) -> bool {
        let sifts = self.instrumentation == Instrumentation::Sifted;
        sifts && !self.takes_gs && matches!(self.running, Running::Engine)
    }

    fn on_signal(&mut self, frame: &mut HostSignalFrame<'_>) -> SignalVerdict {
        match &self.running {
            Running::Nothing => {
                eprintln!(
                    "error: signal {} at {:#x} (accessing {:#x}) outside any guest code",
                    frame.signal,
                    frame.rip(),
                    address_of(frame)
                );
                // SAFETY: ends the process at once.
                unsafe { libc::_exit(3) }
            }
            Running::Stepped(_) => {
                let state = self.interrupted(frame);
                let fault = fault_of(frame);
                let Running::Stepped(stepper) = &mut self.running else {
                    unreachable!("just matched");
                };
                stepper.on_signal(frame, fault, state)
            }
            Running::Native => {
                let state = self.interrupted(frame);
                self.faulted = Some(Faulted {
                    fault: fault_of(frame),
                    state,
                    carried_words: 0,
                    due: 0,
                    interrupted_log: None,
                });
                SignalVerdict::LeaveGuest
            }
            Running::Engine
                if self.instrumentation == Instrumentation::Sifted && step_aside(frame) =>
            {
                self.refused = true;
                SignalVerdict::Resume
            }
            Running::Engine => {
                self.engine_fault(frame);
                SignalVerdict::LeaveGuest
            }
        }
    }

    /// The state at a signal in guest code.
    fn interrupted(&self, frame: &HostSignalFrame<'_>) -> State {
        let mut vectors = vec![0u8; self.layout.len];
        // SAFETY: the kernel's frame holds a standard XSAVE image of this size.
        unsafe {
            std::ptr::copy_nonoverlapping(
                frame.xsave_area() as *const u8,
                vectors.as_mut_ptr(),
                vectors.len(),
            );
        }
        State {
            gpr: frame.gprs(),
            rip: frame.rip(),
            rflags: frame.rflags() & !STEPPING,
            fs_base: frame.fs_base,
            gs_base: match self.looks_through_gs() {
                true => self.own_gs_base,
                false => read_gs_base(),
            },
            vectors,
            memory: arena::contents(),
        }
    }

    /// A fault in translated code, led back to the guest as the executor does it.
    fn engine_fault(&mut self, frame: &HostSignalFrame<'_>) {
        let trapped = frame.signal == libc::SIGTRAP;
        let host = frame.rip() - u64::from(trapped);
        let site = if CodeCache::contains(host) {
            self.cache.fault_site(host)
        } else {
            None
        };
        let Some(site) = site else {
            eprintln!(
                "error: signal {} at host address {:#x} (accessing {:#x}), which no block claims; guest block {:#x}",
                frame.signal,
                frame.rip(),
                address_of(frame),
                self.context().rip
            );
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(3) }
        };
        let mut state = self.interrupted(frame);
        let context = self.context();
        for (slot, register) in site.entry.borrowed.slots() {
            state.gpr[register] = context.borrowed[slot];
        }
        let (guest, in_place) = (&context.guest_vector, site.entry.in_place);
        let mask = context.xsave_mask;
        if let Some(counters) = restore_vector(&mut state.vectors, guest, in_place, mask) {
            context.budget = counters.budget;
            context.log_next = counters.log_next;
        }
        if site.is_run {
            let record = context.passed_next as *mut u64;
            // SAFETY: there is room for all that a run tells, and this is less.
            unsafe { *record = LOST };
            context.passed_next += 8;
        }
        // A breakpoint has been executed when it is told.
        let executed = if trapped { frame.rip() - site.host } else { 0 };
        state.rip = site.pc + executed;
        self.faulted = Some(Faulted {
            fault: fault_of(frame),
            state,
            carried_words: site.carried_words,
            due: site.due - i64::from(trapped),
            interrupted_log: (site.entry.log_words > 0)
                .then_some((u32::from(site.entry.retired), site.entry.log_words)),
        });
    }
}

fn fault_of(frame: &HostSignalFrame<'_>) -> Fault {
    let (trap, error) = frame.trap();
    Fault {
        signal: frame.signal,
        code: frame.info.si_code,
        address: match frame.signal {
            libc::SIGSEGV | libc::SIGBUS => address_of(frame),
            _ => 0,
        },
        trap,
        error,
    }
}

fn address_of(frame: &HostSignalFrame<'_>) -> u64 {
    // SAFETY: the signals that are handled here carry an address.
    unsafe { frame.info.si_addr() as u64 }
}

fn on_host_signal(frame: &mut HostSignalFrame<'_>) -> SignalVerdict {
    // SAFETY: set by `Machine::new` to the leaked machine; the interrupted code is guest code, which holds no
    // reference to it (and if it is not, the process ends).
    unsafe { &mut *MACHINE.load(Ordering::Acquire) }.on_signal(frame)
}

fn take_signals() -> std::io::Result<()> {
    set_signal_stack(Box::leak(vec![0u8; SIGNAL_STACK_LEN].into_boxed_slice()))?;
    [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
    ]
    .into_iter()
    .try_for_each(|signal| install_signal_entry(signal, on_host_signal))
}

fn map_context(vectors: &VectorLayout) -> std::io::Result<()> {
    // SAFETY: the layout reserves this page for the context; nothing that is there is replaced.
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
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: just mapped; all-zero is a valid context.
    let context = unsafe { &mut *(layout::CONTEXT as *mut Context) };
    context.prepare(vectors.mask, fs_base()?);
    Ok(())
}

/// The fs base of this thread, which Rust code needs.
fn fs_base() -> std::io::Result<u64> {
    const ARCH_GET_FS: i32 = 0x1003;
    let mut base = 0u64;
    // SAFETY: the kernel writes eight bytes to a variable of eight bytes.
    match unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_FS, &raw mut base) } {
        0 => Ok(base),
        _ => Err(std::io::Error::last_os_error()),
    }
}
