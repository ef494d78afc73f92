//! Synchronous faults: the CPU refused an instruction of the guest, or of the engine.

use crate::Executor;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use verdict_cache::{CodeCache, give_way, step_aside};
use verdict_cpu::{
    ExitReason, HostSignalFrame, SignalVerdict, install_signal_entry, restore_vector,
    set_signal_stack,
};
use verdict_kernel::{Outcome, SignalInfo, is_guest_range};

/// The executor of this process, for the signal handler.
static EXECUTOR: AtomicPtr<Executor> = AtomicPtr::new(std::ptr::null_mut());
/// A fault is being handled; another one means that the engine itself is broken.
static HANDLING: AtomicBool = AtomicBool::new(false);
const SIGNAL_STACK_LEN: usize = 256 << 10;
const PAGE_FAULT: u64 = 14;
const PAGE_FAULT_WRITE: u64 = 2;
const SEGV_MAPERR: i32 = 1;
const SEGV_ACCERR: i32 = 2;
const FETCH_ERROR: u64 = 0x14;

/// A fault as the host saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostFault {
    pub(crate) signal: i32,
    code: i32,
    address: u64,
    trap: u64,
    error: u64,
}

/// Routes the CPU's faults to the executor, which must not move from now on.
pub(crate) fn install(executor: &mut Executor) {
    EXECUTOR.store(executor, Ordering::Release);
    let stack = Box::leak(vec![0u8; SIGNAL_STACK_LEN].into_boxed_slice());
    let installed = set_signal_stack(stack).and_then(|()| {
        [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGILL,
            libc::SIGTRAP,
        ]
        .into_iter()
        .try_for_each(|signal| install_signal_entry(signal, on_host_signal))
    });
    if let Err(error) = installed {
        executor.engine_fault(&format!("cannot handle faults: {error}"));
    }
}

fn on_host_signal(frame: &mut HostSignalFrame<'_>) -> SignalVerdict {
    // SAFETY: set by `install` to the executor that `main` keeps for good; the interrupted code is either guest
    // code, which holds no reference to it, or engine code, after which only a report is made.
    let executor = unsafe { &mut *EXECUTOR.load(Ordering::Acquire) };
    if HANDLING.swap(true, Ordering::AcqRel) {
        // SAFETY: ends the process at once; nothing can be trusted any more.
        unsafe { libc::_exit(3) };
    }
    let verdict = executor.on_fault(frame);
    HANDLING.store(false, Ordering::Release);
    verdict
}

impl Executor {
    fn on_fault(&mut self, frame: &mut HostSignalFrame<'_>) -> SignalVerdict {
        if self.passed.is_some() && step_aside(frame) {
            give_way();
            return SignalVerdict::Resume;
        }
        let trapped = frame.signal == libc::SIGTRAP;
        // A breakpoint has been executed when it is reported.
        let host_pc = frame.rip() - u64::from(trapped);
        let site = if self.in_guest && CodeCache::contains(host_pc) {
            self.cache.fault_site(host_pc)
        } else {
            None
        };
        let Some(site) = site else {
            let whose = if self.in_guest {
                "while the guest was running"
            } else {
                "in the engine's own code"
            };
            self.engine_fault(&format!(
                "signal {} at host address {:#x} (accessing {:#x}) {whose}",
                frame.signal,
                frame.rip(),
                address_of(frame)
            ));
        };
        let (trap, error) = frame.trap();
        let rflags = frame.rflags();
        let gprs = frame.gprs();
        let (fs_base, vectors) = (frame.fs_base, frame.xsave_area());
        // A breakpoint with prefixes is longer than one byte.
        let executed = if trapped { frame.rip() - site.host } else { 0 };
        let len = self.kernel.options.vector_len;
        let context = self.context();
        context.gpr = gprs;
        for (slot, register) in site.entry.borrowed.slots() {
            context.gpr[register] = context.borrowed[slot];
        }
        context.rip = site.pc + executed;
        context.rflags = rflags & !0x10100; // TF, RF
        context.guest_fs = fs_base;
        context.exit_reason = ExitReason::Fault as u64;
        let area = context.xsave_area as *mut u8;
        if vectors != 0 {
            // SAFETY: the kernel's frame holds a standard XSAVE image of the same size; the area is the thread's own.
            unsafe { std::ptr::copy_nonoverlapping(vectors as *const u8, area, len) };
            // SAFETY: bytes 464..512 are software-reserved; XRSTOR ignores them, guests must not see the kernel's use.
            unsafe { std::ptr::write_bytes(area.add(464), 0, 48) };
        }
        // SAFETY: the area has `len` bytes and is the current thread's.
        let image = unsafe { std::slice::from_raw_parts_mut(area, len) };
        let (guest, in_place) = (&context.guest_vector, site.entry.in_place);
        if let Some(counters) = restore_vector(image, guest, in_place, context.xsave_mask) {
            context.budget = counters.budget;
            context.log_next = counters.log_next;
        }
        context.log_next += 8 * u64::from(site.carried_words);
        if site.entry.log_words > 0 {
            // The block was interrupted while logging: note how far it came.
            let header = context.log_next as *mut u64;
            // SAFETY: the block has written its header word there.
            unsafe { *header |= (u64::from(site.entry.retired) + 1) << 32 };
            context.log_next += 8 * u64::from(site.entry.log_words);
        }
        if site.is_run {
            let record = context.passed_next as *mut u64;
            // SAFETY: there is room for all that a run tells, and this is less.
            unsafe { *record = verdict_stream::LOST };
            context.passed_next += 8;
        }
        context.budget += site.due - i64::from(trapped);
        self.fault = Some(HostFault {
            signal: frame.signal,
            code: frame.info.si_code,
            address: address_of(frame),
            trap,
            error,
        });
        SignalVerdict::LeaveGuest
    }

    /// What the guest gets to know of the fault that ended its slice.
    pub(crate) fn handle_fault(&mut self) -> Outcome {
        let Some(fault) = self.fault.take() else {
            return Outcome::Continue;
        };
        let written = fault.trap == PAGE_FAULT && fault.error & PAGE_FAULT_WRITE != 0;
        if fault.signal == libc::SIGSEGV
            && written
            && self.kernel.memory.unwatch(fault.address..fault.address + 1)
        {
            self.single_step = true;
            return Outcome::Continue;
        }
        let pc = self.kernel.thread().registers.rip;
        let address = match fault.signal {
            libc::SIGSEGV | libc::SIGBUS => fault.address,
            libc::SIGTRAP => 0,
            _ => pc,
        };
        let code = match fault.signal {
            libc::SIGSEGV
                if fault.trap == PAGE_FAULT && self.kernel.memory.find(address).is_none() =>
            {
                SEGV_MAPERR
            }
            _ => fault.code,
        };
        self.signals += 1;
        self.kernel.deliver(SignalInfo::from_fault(
            fault.signal,
            code,
            address,
            fault.trap,
            fault.error,
        ))
    }

    /// The guest jumped to where nothing can be executed.
    pub(crate) fn fetch_fault(&mut self, address: u64) -> Outcome {
        self.take_answer(address);
        let mapped = is_guest_range(address, 1) && self.kernel.memory.find(address).is_some();
        let code = if mapped { SEGV_ACCERR } else { SEGV_MAPERR };
        self.signals += 1;
        self.kernel.deliver(SignalInfo::from_fault(
            libc::SIGSEGV,
            code,
            address,
            PAGE_FAULT,
            FETCH_ERROR,
        ))
    }
}

fn address_of(frame: &HostSignalFrame<'_>) -> u64 {
    // SAFETY: SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGTRAP carry an address.
    unsafe { frame.info.si_addr() as u64 }
}
