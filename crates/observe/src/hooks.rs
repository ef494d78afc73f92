//! Calls of noted functions: one event of meaning instead of what their code does.

use crate::explain::SyncRule;
use crate::meaning::{Meaning, Size};
use crate::modules::Owner;
use crate::observer::Observer;
use crate::ownership::Block;
use verdict_events::{Access, Addr, EventKind, LockMode, MemoryOrder, SiteId, SyncId, ThreadId};

/// A call of a noted function that has not returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hook {
    pub(crate) function: Option<(&'static str, Meaning)>,
    pub(crate) arguments: [u64; 5],
    /// The stack of calls is this deep while it runs.
    pub(crate) depth: usize,
    /// Nothing that its code does is told.
    pub(crate) hides: bool,
    pub(crate) site: SiteId,
    /// Memory that it allocates will be the program's.
    pub(crate) for_program: bool,
    /// The program itself called it.
    pub(crate) by_program: bool,
    /// What the last function that it called returned.
    pub(crate) inner_result: u64,
}

/// `EOWNERDEAD`: the lock is taken, though its last owner died.
const OWNER_DIED: u64 = 130;
/// What `setbuf` takes the buffer's length for.
const STREAM_BUFFER: u64 = 8192;
const MAP_FAILED: u64 = u64::MAX;

impl Observer {
    /// A noted function begins.
    pub(crate) fn hook_enters(
        &mut self,
        index: usize,
        function: (&'static str, Meaning),
        mut arguments: [u64; 5],
    ) {
        // As far as the program knows, the block that is withheld is freed here.
        let withheld = self.threads[index].withheld.take();
        if let Some((block, _)) = withheld.filter(|(_, instead)| *instead == arguments[0]) {
            arguments[0] = block;
        }
        if self.threads[index].is_hidden() {
            return;
        }
        self.summary.count_call(function.0);
        let hook = Hook {
            function: Some(function),
            arguments,
            depth: self.threads[index].calls.depth(),
            hides: !function.1.calls_back(),
            site: self.blamed_site(index, 0),
            for_program: function.1.allocates() && self.is_for_program(index),
            by_program: function.1.maps() && self.called_by_program(index),
            inner_result: 0,
        };
        self.heap_hook(index, function.1, arguments[0]);
        self.before(index, &hook, function);
        self.threads[index].hooks.push(hook);
    }

    /// A function has returned with this result: perhaps a noted one.
    pub(crate) fn hook_returns(&mut self, index: usize, result: u64) {
        let thread = &mut self.threads[index];
        let depth = thread.calls.depth();
        while let Some(hook) = thread.hooks.last_mut() {
            if hook.depth <= depth {
                if hook.depth == depth {
                    hook.inner_result = result;
                }
                return;
            }
            let hook = thread.hooks.pop().expect("just seen");
            if hook.depth == depth + 1
                && let Some(function) = hook.function
            {
                self.after(index, &hook, function, result);
                return;
            }
        }
    }

    /// What a function does before others may notice that it was called.
    fn before(&mut self, index: usize, hook: &Hook, (name, meaning): (&'static str, Meaning)) {
        let (site, arguments) = (hook.site, &hook.arguments);
        let object = SyncId(arguments[0]);
        let rule = SyncRule::Function(name);
        match meaning {
            Meaning::Unlock => self.unlock(index, site, arguments[0], rule),
            Meaning::ConditionWait => self.unlock(index, site, arguments[1], rule),
            Meaning::ConditionNotify => self.order(index, site, EventKind::Notify(object), rule),
            Meaning::BarrierWait => self.order(index, site, EventKind::BarrierEnter(object), rule),
            Meaning::SemaphorePost => {
                self.order(index, site, EventKind::SemaphorePost(object), rule);
            }
            Meaning::Once | Meaning::GuardAcquire => self.add_atomic(arguments[0]),
            Meaning::GuardRelease => {
                let store = EventKind::AtomicStore(bytes(arguments[0], 1), MemoryOrder::Release);
                self.order(index, site, store, rule);
            }
            Meaning::ThreadCreate => {
                // `thrd_create` has no attributes before the function.
                let function = if name == "thrd_create" { 1 } else { 2 };
                self.threads[index].starting = Some(arguments[function]);
                self.write(index, site, arguments[0], 8);
            }
            Meaning::StreamBuffer(len) => {
                let len = len.map_or(STREAM_BUFFER, |at| arguments[at]);
                if arguments[1] != 0 {
                    let end = arguments[1].saturating_add(len);
                    self.ownership.given(arguments[1]..end);
                }
            }
            Meaning::Free | Meaning::Reallocate(_) => {
                self.heap_freed(index, site, arguments[0]);
                self.free(index, site, arguments[0]);
            }
            Meaning::Unmap | Meaning::Remap if hook.by_program => {
                self.unmap(index, site, arguments[0], arguments[1]);
            }
            _ => {}
        }
    }

    /// What a function has done when it returns.
    fn after(
        &mut self,
        index: usize,
        hook: &Hook,
        (name, meaning): (&'static str, Meaning),
        result: u64,
    ) {
        let (site, arguments) = (hook.site, &hook.arguments);
        let object = SyncId(arguments[0]);
        let rule = SyncRule::Function(name);
        // Results are ints: what is above is whatever was in the register.
        let code = result & 0xffff_ffff;
        let succeeded = code == 0;
        match meaning {
            Meaning::Lock(mode) if succeeded || code == OWNER_DIED => {
                self.lock(index, site, arguments[0], mode, rule);
            }
            Meaning::LockAlways => {
                self.lock(index, site, arguments[0], LockMode::Exclusive, rule);
            }
            Meaning::ConditionWait => {
                if succeeded {
                    self.order(index, site, EventKind::Wait(object), rule.clone());
                }
                self.lock(index, site, arguments[1], LockMode::Exclusive, rule);
            }
            Meaning::BarrierWait => self.order(index, site, EventKind::BarrierLeave(object), rule),
            Meaning::SemaphoreWait if succeeded => {
                self.order(index, site, EventKind::SemaphoreWait(object), rule);
            }
            Meaning::GuardAcquire => {
                let load = EventKind::AtomicLoad(bytes(arguments[0], 1), MemoryOrder::Acquire);
                self.order(index, site, load, rule);
            }
            Meaning::ThreadJoin if succeeded => {
                if let Some(child) = self.thread_of_descriptor(arguments[0]) {
                    self.order(index, site, EventKind::Join(child), rule);
                }
                if arguments[1] != 0 && name != "thrd_join" {
                    self.write(index, site, arguments[1], 8);
                }
            }
            Meaning::Allocate(size) | Meaning::Reallocate(size) if result != 0 => {
                self.allocate(index, hook, result, size.of(arguments));
            }
            Meaning::UsableSize => self.heap_grown(arguments[0], result),
            // With nothing to allocate, `realloc` frees.
            Meaning::Reallocate(size) if size.of(arguments) != 0 => {
                self.heap_not_freed(arguments[0]);
            }
            Meaning::AllocateIndirectly if succeeded => {
                let address = hook.inner_result;
                if address != 0 && arguments[1] != 0 && address.is_multiple_of(arguments[1]) {
                    self.allocate(index, hook, address, Size::Argument(2).of(arguments));
                }
                self.write(index, site, arguments[0], 8);
            }
            Meaning::Map if result != MAP_FAILED && hook.by_program => {
                self.allocate(index, hook, result, arguments[1]);
            }
            Meaning::Remap if result != MAP_FAILED && hook.by_program => {
                self.allocate(index, hook, result, arguments[2]);
            }
            _ => {}
        }
    }

    fn lock(&mut self, index: usize, site: SiteId, lock: u64, mode: LockMode, rule: SyncRule) {
        let held = self.threads[index].held.entry(lock).or_insert((mode, 0));
        held.1 += 1;
        // A lock that is taken again by its owner orders nothing, and must not be given up before the last time.
        if held.1 == 1 {
            held.0 = mode;
            self.look_at_lock(index, site, lock);
            self.order(index, site, EventKind::Acquire(SyncId(lock), mode), rule);
        }
    }

    fn unlock(&mut self, index: usize, site: SiteId, lock: u64, rule: SyncRule) {
        let held = &mut self.threads[index].held;
        let mode = match held.get_mut(&lock) {
            Some((_, count)) if *count > 1 => {
                *count -= 1;
                return;
            }
            Some((mode, _)) => *mode,
            // Taken by another thread, or before anybody looked.
            None => LockMode::Exclusive,
        };
        held.remove(&lock);
        self.order(index, site, EventKind::Release(SyncId(lock), mode), rule);
    }

    fn allocate(&mut self, index: usize, hook: &Hook, address: u64, size: u64) {
        let block = Block {
            len: size.max(1),
            of_program: hook.for_program,
        };
        self.ownership.allocated(address, block);
        self.look_at_block(index, hook.site, address, block.len);
        self.fresh(index, hook.site, address, block.len);
        let maps = hook.function.is_some_and(|(_, meaning)| meaning.maps());
        if !maps {
            self.heap_allocated(index, hook.site, address, block.len);
        }
    }

    /// Memory becomes new: what is remembered of it no longer matters.
    pub(crate) fn fresh(&mut self, index: usize, site: SiteId, address: u64, size: u64) {
        self.atomics.forget(address, address.saturating_add(size));
        self.heap_renewed(address, address.saturating_add(size));
        self.threads[index].repeats.forget();
        let addr = Addr(address);
        self.emit(index, site, EventKind::Allocate { addr, size });
    }

    fn free(&mut self, index: usize, site: SiteId, address: u64) {
        let Some(block) = self.ownership.freed(address) else {
            return;
        };
        if block.of_program {
            self.give_back(index, site, address, block.len);
        }
    }

    fn unmap(&mut self, index: usize, site: SiteId, address: u64, len: u64) {
        self.ownership.freed(address);
        self.give_back(index, site, address, len);
    }

    fn give_back(&mut self, index: usize, site: SiteId, address: u64, size: u64) {
        self.threads[index].repeats.forget();
        let addr = Addr(address);
        self.emit(index, site, EventKind::Free { addr, size });
    }

    fn write(&mut self, index: usize, site: SiteId, address: u64, size: u32) {
        if address != 0 {
            self.emit(index, site, EventKind::Write(bytes(address, size)));
        }
    }

    /// True if the noted function was called by the program itself.
    pub(crate) fn called_by_program(&mut self, index: usize) -> bool {
        let call = self.threads[index]
            .calls
            .top()
            .map_or(0, |frame| frame.blamed());
        call != 0 && self.code.at(call, &self.modules).owner == Owner::Program
    }

    /// True if memory that is allocated now will be the program's: it asked for it, or a library did for what it
    /// hands to the program.
    fn is_for_program(&mut self, index: usize) -> bool {
        let entered = self.threads[index]
            .calls
            .innermost_first()
            .find(|frame| frame.left != 0)
            .map_or(0, |frame| frame.entered);
        if entered == 0 {
            return true;
        }
        if let Some(known) = self.makes_for_program.get(&entered) {
            return *known;
        }
        let module = self.modules.find(entered).map(|(module, _)| module);
        let name = module.and_then(|module| module.function(entered));
        let answer = name.is_none_or(hands_out_memory);
        self.makes_for_program.insert(entered, answer);
        answer
    }

    /// The thread whose descriptor is at an address.
    fn thread_of_descriptor(&self, descriptor: u64) -> Option<ThreadId> {
        self.descriptors.get(&descriptor).copied()
    }
}

pub(crate) fn bytes(address: u64, size: u32) -> Access {
    Access {
        addr: Addr(address),
        size,
        value: None,
    }
}

/// Functions of libraries whose memory becomes the caller's.
fn hands_out_memory(function: &str) -> bool {
    const WHOLE: &[&str] = &[
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "memalign",
        "posix_memalign",
        "aligned_alloc",
        "valloc",
        "pvalloc",
        "strdup",
        "strndup",
        "wcsdup",
        "asprintf",
        "vasprintf",
        "getline",
        "getdelim",
        "realpath",
        "getcwd",
        "get_current_dir_name",
        "mmap",
        "mremap",
    ];
    let unversioned = function.split('@').next().unwrap_or(function);
    let bare = unversioned.trim_start_matches('_');
    let bare = bare.strip_prefix("libc_").unwrap_or(bare);
    let bare = bare.trim_end_matches("64");
    WHOLE.contains(&bare)
        // operator new, operator new[]
        || function.starts_with("_Znw")
        || function.starts_with("_Zna")
        || function.contains("basic_string")
        || function.starts_with("_ZNSs")
}
