//! Puts the log together: which instruction of which thread accessed what, and what that means.

use crate::atomics::AtomicPlaces;
use crate::blocks::{Blocks, Known};
use crate::children::Children;
use crate::closeup::{Looking, Wanted};
use crate::code::{Code, CodeTable};
use crate::descriptors::Descriptors;
use crate::explain::{SyncCounts, SyncRule};
use crate::heap_errors::HeapAccess;
use crate::hooks::{Hook, bytes};
use crate::log::Word;
use crate::looks::Looks;
use crate::meaning::{self, Meaning};
use crate::modules::{Modules, Owner};
use crate::orders::Orders;
use crate::origins::Origins;
use crate::ownership::Ownership;
use crate::runs::Part;
use crate::sifted::{ToldSites, Unfit};
use crate::sites::{Place, SiteInfo, Sites};
use crate::strides::Strides;
use crate::threads::ThreadState;
use crate::watched::Watched;
use rustc_hash::{FxHashMap, FxHashSet};
use verdict_detect::{SuspectBytes, Suspects};
use verdict_events::{Event, EventKind, MemoryOrder, SiteId, SyncId, ThreadId};
use verdict_stream::{BlockInfo, Mapped, Record, SystemCall};
use verdict_translate::{AccessKind, ControlStep, LoggedAccess, Segment};

/// What is known of the run so far.
#[derive(Default, Debug)]
pub(crate) struct Observer {
    pub(crate) blocks: Blocks,
    functions: FxHashMap<u64, (&'static str, Meaning)>,
    pub(crate) looks: Looks,
    pub(crate) modules: Modules,
    pub(crate) code: CodeTable,
    pub(crate) threads: Vec<ThreadState>,
    pub(crate) ownership: Ownership,
    pub(crate) atomics: AtomicPlaces,
    pub(crate) orders: Orders,
    /// The compiler's guard variables: atomic by their symbols.
    guards: FxHashSet<u64>,
    pub(crate) sites: Sites,
    pub(crate) summary: SyncCounts,
    /// What it has started.
    pub(crate) children: Children,
    /// What descriptors lead to.
    pub(crate) opened: Descriptors,
    /// Threads by the address of their descriptor.
    pub(crate) descriptors: FxHashMap<u64, ThreadId>,
    /// Whether a library's function allocates for its caller, by its address.
    pub(crate) makes_for_program: FxHashMap<u64, bool>,
    pub(crate) origins: Origins,
    /// What a closer look has to find out.
    pub(crate) looking: Option<Looking>,
    /// By number, where something is told of a run of which only what is new is.
    pub(crate) told_sites: ToldSites,
    /// What a loop has accessed: kept, since it is needed often.
    pub(crate) parts: Vec<Part>,
    /// Why such a run says too little.
    pub(crate) unfit: Option<Unfit>,
    /// Events that have been made and not been taken.
    pub(crate) events: Vec<Event>,
    pub(crate) strides: Strides,
    /// Nothing is told of plain accesses for now.
    between_parts: bool,
}

const FUTEX: u64 = 202;
const SIGRETURN: u64 = 15;
/// What all threads wait for where a part of a run begins or ends: nothing of the guest's is there.
const BETWEEN_PARTS: SyncId = SyncId(u64::MAX);
/// A frame that the kernel would not let the guest exceed.
const STACK_TOP: u64 = 0x5100_0000_0000;
const STACK_LEN: u64 = 8 << 20;
/// Room for static thread-local variables above a thread's stack, below its descriptor.
const DESCRIPTOR_ROOM: u64 = 4096;

impl Observer {
    pub(crate) fn new() -> Self {
        let mut observer = Observer::default();
        observer.ownership.stack(STACK_TOP - STACK_LEN..STACK_TOP);
        observer
    }

    /// One that only asks which bytes may race.
    pub(crate) fn surveying(suspects: Suspects) -> Self {
        let mut observer = Self::new();
        observer.looks = Looks::Survey(Box::new(suspects));
        observer
    }

    /// One for which plain accesses to other bytes did not happen.
    pub(crate) fn only(suspects: SuspectBytes) -> Self {
        let mut observer = Self::new();
        observer.looks = Looks::Only(Box::new(Watched::new(suspects)));
        observer
    }

    /// The same, and it looks closely at some events.
    pub(crate) fn looking(suspects: Option<SuspectBytes>, wanted: Wanted) -> Self {
        let mut observer = suspects.map_or_else(Self::new, Self::only);
        observer.looking = Some(Looking::new(wanted));
        observer.look_at_stack(0, STACK_TOP - STACK_LEN, STACK_TOP);
        observer
    }

    /// The next thing that the executor tells.
    pub(crate) fn record(&mut self, record: Record<'_>) {
        match record {
            Record::Block { id, block } => self.block(id, block),
            Record::Log {
                thread,
                fs_base,
                gs_base,
                words,
            } => {
                let index = self.thread(thread);
                self.threads[index].fs_base = fs_base;
                self.threads[index].gs_base = gs_base;
                self.ownership.descriptor(fs_base);
                self.log(index, words);
            }
            Record::Sites { first, sites } => self.sites(first, &sites),
            Record::Run { site, run } => self.told_sites.set_run(site, &run),
            Record::Passed {
                thread,
                fs_base,
                words,
            } => {
                let index = self.thread(thread);
                self.threads[index].fs_base = fs_base;
                self.ownership.descriptor(fs_base);
                self.passed(index, words);
            }
            Record::Mapped(mapped) => self.mapped(&mapped),
            Record::Function { address, name } => {
                if let Some(known) = meaning::of(&name) {
                    self.functions.insert(address, known);
                    self.summary.function(name);
                }
            }
            Record::ThreadCreated {
                parent,
                child,
                fs_base,
                stack,
                ..
            } => self.thread_created(parent, child, fs_base, stack),
            Record::ThreadEnded { thread } => {
                let index = self.thread(thread);
                self.threads[index].ended = true;
                let site = self.blamed_site(index, 0);
                self.order(index, site, EventKind::End, SyncRule::ThreadEnded);
            }
            Record::SystemCall(call) => self.system_call(&call),
            Record::Part { told } => self.part(told),
            Record::Jumped { thread, .. } => self.interrupted(thread),
            Record::Withheld {
                thread,
                block,
                instead,
            } => {
                let index = self.thread(thread);
                self.threads[index].withheld = Some((block, instead));
            }
        }
    }

    fn thread(&mut self, thread: u32) -> usize {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, ThreadState::default);
        }
        index
    }

    fn block(&mut self, id: u32, info: BlockInfo) {
        let code = info
            .pcs
            .iter()
            .map(|pc| self.code.at(*pc, &self.modules))
            .collect();
        self.blocks.insert(id, Known::new(info, code));
    }

    fn mapped(&mut self, mapped: &Mapped) {
        if let Some((path, offset)) = &mapped.file {
            let part = (mapped.start, path.clone(), *offset);
            self.origins.modules.push(part);
        }
        self.heap_renewed(mapped.start, mapped.end);
        if let Some(module) = self.modules.mapped(mapped) {
            let guards = module.guards.clone();
            if module.holds_library {
                self.unfit.get_or_insert(Unfit::StaticLibrary);
            }
            self.code.forget();
            self.ownership.modules_changed();
            for guard in guards {
                self.guards.insert(guard);
                self.add_atomic(guard);
            }
        }
    }

    fn thread_created(&mut self, parent: u32, child: u32, fs_base: u64, stack: (u64, u64)) {
        self.children.was_thread();
        let parent = self.thread(parent);
        self.thread(child);
        let site = self.blamed_site(parent, 0);
        self.thread_begins(parent, child, site);
        if stack.0 < stack.1 {
            let end = match fs_base.checked_sub(stack.1) {
                Some(above) if above < 1 << 20 => fs_base + DESCRIPTOR_ROOM,
                _ => stack.1,
            };
            self.ownership.stack(stack.0..end);
            self.fresh(parent, site, stack.0, end - stack.0);
            self.look_at_stack(child, stack.0, end);
        }
        self.ownership.descriptor(fs_base);
        self.descriptors.insert(fs_base, ThreadId(child));
        let fork = EventKind::Fork(ThreadId(child));
        self.order(parent, site, fork, SyncRule::ThreadCreated);
    }

    fn interrupted(&mut self, thread: u32) {
        self.unfit(Unfit::Signal);
        let index = self.thread(thread);
        let site = SiteId(0);
        let thread = &mut self.threads[index];
        thread.calls.interrupted();
        thread.hooks.push(Hook {
            function: None,
            arguments: [0; 5],
            depth: thread.calls.depth(),
            hides: false,
            site,
            for_program: false,
            by_program: false,
            inner_result: 0,
        });
    }

    fn system_call(&mut self, call: &SystemCall) {
        let index = self.thread(call.thread);
        self.children.called(call);
        if call.number == SIGRETURN {
            let thread = &mut self.threads[index];
            thread.calls.resumed();
            let depth = thread.calls.depth();
            thread.hooks.retain(|hook| hook.depth <= depth);
            return;
        }
        if self.threads[index].is_hidden() {
            return;
        }
        let pc = call.pc.wrapping_sub(2);
        let owner = self.code.at(pc, &self.modules).owner;
        if call.number == FUTEX {
            self.futex(index, pc, call);
            return;
        }
        let orders = self.opened.orders(call);
        if !orders.is_empty() {
            let site = self.blamed_site(index, pc);
            for kind in orders {
                self.order(index, site, kind, SyncRule::Descriptor);
            }
        }
        for part in &call.memory {
            let kind = match part.written {
                true => AccessKind::Write,
                false => AccessKind::Read,
            };
            let (address, size) = (part.address, part.len);
            self.heap_system_call(
                index,
                HeapAccess {
                    pc,
                    address,
                    size,
                    kind,
                },
            );
            let programs = owner == Owner::Program
                || owner == Owner::Library
                    && self.ownership.is_programs(part.address, &self.modules);
            if !programs {
                continue;
            }
            let site = self.blamed_site(index, pc);
            self.threads[index].at = pc;
            let access = bytes(part.address, u32::try_from(part.len).unwrap_or(u32::MAX));
            let kind = if part.written {
                EventKind::Write(access)
            } else {
                EventKind::Read(access)
            };
            self.emit(index, site, kind);
        }
        self.threads[index].at = 0;
    }

    /// Plain accesses are told from here on, or are not. Until then, all threads have waited for each other: of what ordered them
    /// meanwhile, not all is told, and what lies on both sides of this is not to be taken for a race.
    fn part(&mut self, told: bool) {
        self.between_parts = !told;
        for kind in [EventKind::Notify, EventKind::Wait] {
            for index in 0..self.threads.len() {
                if !self.threads[index].ended {
                    self.threads[index].repeats.forget();
                    self.emit(index, SiteId(0), kind(BETWEEN_PARTS));
                }
            }
        }
    }

    fn futex(&mut self, index: usize, pc: u64, call: &SystemCall) {
        const COMMAND: u64 = 0x7f;
        let address = call.args[0];
        if !self.ownership.is_programs(address, &self.modules) {
            return;
        }
        let site = self.blamed_site(index, pc);
        let object = SyncId(address);
        match call.args[1] & COMMAND {
            1 | 3 | 4 | 5 | 10 if call.result > 0 => {
                self.order(index, site, EventKind::Notify(object), SyncRule::Futex);
            }
            0 | 9 if call.result == 0 => {
                self.order(index, site, EventKind::Wait(object), SyncRule::Futex);
            }
            _ => {}
        }
    }

    // ---- what the log says ----

    pub(crate) fn control(&mut self, index: usize, pc: u64, step: &ControlStep, logged: &[Word]) {
        let word = |at: u16| {
            let word = logged.get(usize::from(at));
            word.map_or(0, |word| u64::from_le_bytes(*word))
        };
        match step {
            ControlStep::Call { return_address } => {
                self.threads[index].calls.call(*return_address, pc);
            }
            ControlStep::Return { result } => {
                self.threads[index].calls.returns();
                if !self.threads[index].hooks.is_empty() {
                    self.hook_returns(index, word(*result));
                }
            }
            ControlStep::Entry {
                arguments,
                return_address,
                ..
            } => {
                self.threads[index].calls.enters(word(*return_address));
                if let Some(function) = self.function_at(pc) {
                    self.hook_enters(index, function, arguments.map(word));
                }
            }
        }
    }

    /// The noted function that begins at an address.
    pub(crate) fn function_at(&self, pc: u64) -> Option<(&'static str, Meaning)> {
        self.functions.get(&pc).copied()
    }

    pub(crate) fn access(
        &mut self,
        index: usize,
        pc: u64,
        code: Code,
        access: &LoggedAccess,
        logged: &[Word],
    ) {
        if code.stub || code.owner == Owner::Loader || self.threads[index].is_hidden() {
            return;
        }
        let word = |at: u16| {
            let word = logged.get(usize::from(at));
            word.map_or(0, |word| u64::from_le_bytes(*word))
        };
        let thread = &self.threads[index];
        let base = match access.segment {
            Segment::Flat => 0,
            Segment::Fs => thread.fs_base,
            Segment::Gs => thread.gs_base,
        };
        let address = base.wrapping_add(access.address_by(word));
        let repeat = access.repeat.map_or(1, word);
        let size = u64::from(access.size).saturating_mul(repeat);
        if size == 0 {
            return;
        }
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let heap_access = HeapAccess {
            pc,
            address,
            // Of what is read time after time, only the first is certain to be.
            size: match access.kind {
                AccessKind::Read => u64::from(access.size),
                _ => u64::from(size),
            },
            kind: access.kind,
        };
        if self.heap_access(index, code, heap_access) {
            return;
        }
        if code.owner == Owner::Library
            && (access.segment != Segment::Flat
                || !self.ownership.is_programs(address, &self.modules))
        {
            return;
        }
        let rule = self.atomic_rule(address, code, access);
        if rule.is_some()
            && !access.locked
            && access.kind != AccessKind::Read
            && self.guards.contains(&address)
        {
            self.unfit(Unfit::AtomicStore);
        }
        if rule == Some(SyncRule::LockInstruction) && code.owner == Owner::Program {
            self.add_atomic(address);
        }
        if rule.is_none() && self.is_settled(index, pc, address, size, access.kind) {
            return;
        }
        let site = self.site(index, pc, code);
        let touched = bytes(address, size);
        self.threads[index].at = pc;
        match rule {
            Some(rule) => {
                let locked = rule == SyncRule::LockInstruction;
                let order = |machine| self.orders.of(code, machine);
                let kind = match access.kind {
                    AccessKind::Read => EventKind::AtomicLoad(touched, order(MemoryOrder::Acquire)),
                    AccessKind::Write if !locked => {
                        EventKind::AtomicStore(touched, order(MemoryOrder::Release))
                    }
                    AccessKind::Write | AccessKind::ReadWrite => {
                        EventKind::AtomicRmw(touched, order(MemoryOrder::AcqRel))
                    }
                };
                self.order(index, site, kind, rule);
            }
            None => {
                if access.kind != AccessKind::Write {
                    self.tell(index, site, EventKind::Read(touched));
                }
                if access.kind != AccessKind::Read {
                    self.tell(index, site, EventKind::Write(touched));
                }
            }
        }
        self.threads[index].at = 0;
    }

    /// True if no event is to be made of a plain access.
    fn is_settled(
        &mut self,
        index: usize,
        pc: u64,
        address: u64,
        size: u32,
        kind: AccessKind,
    ) -> bool {
        match &mut self.looks {
            Looks::Survey(suspects) => {
                let thread = ThreadId(index as u32);
                suspects.access_plain(thread, address, size, kind != AccessKind::Read);
                return true;
            }
            Looks::Only(watched) if !watched.is_suspect(address, u64::from(size)) => return true,
            Looks::Heap(_) => return true,
            _ => {}
        }
        self.is_repeated(index, pc, address, size, kind)
    }

    /// An address is atomic from now on.
    pub(crate) fn add_atomic(&mut self, address: u64) {
        if !self.atomics.add(address) {
            return;
        }
        match &mut self.looks {
            Looks::Survey(suspects) => suspects.mark_atomic(address),
            Looks::Only(watched) => watched.add_atomic(address),
            Looks::All | Looks::Heap(_) => {}
        }
    }

    fn atomic_rule(&self, address: u64, code: Code, access: &LoggedAccess) -> Option<SyncRule> {
        if access.locked {
            return Some(SyncRule::LockInstruction);
        }
        if code.owner == Owner::Parallel {
            return Some(SyncRule::ParallelRuntime);
        }
        if code.atomic {
            return Some(SyncRule::AtomicBySource);
        }
        self.atomics
            .contains(address)
            .then_some(SyncRule::AtomicByPlace)
    }

    fn is_repeated(
        &mut self,
        index: usize,
        pc: u64,
        address: u64,
        size: u32,
        kind: AccessKind,
    ) -> bool {
        let what = pc ^ u64::from(size) << 48 ^ (kind as u64) << 62;
        self.threads[index].repeats.seen(address, what)
    }

    // ---- events ----

    /// An event that orders threads.
    pub(crate) fn order(&mut self, index: usize, site: SiteId, kind: EventKind, rule: SyncRule) {
        self.summary.count(rule);
        self.threads[index].repeats.forget();
        self.emit(index, site, kind);
    }

    pub(crate) fn emit(&mut self, index: usize, site: SiteId, kind: EventKind) {
        if matches!(self.looks, Looks::Heap(_)) {
            return;
        }
        if self.between_parts && matches!(kind, EventKind::Read(_) | EventKind::Write(_)) {
            return;
        }
        if let Looks::Only(watched) = &self.looks
            && let EventKind::Read(access) | EventKind::Write(access) = kind
            && !watched.is_suspect(access.addr.0, u64::from(access.size))
        {
            return;
        }
        self.tell(index, site, kind);
    }

    /// The same of an event that is asked for.
    fn tell(&mut self, index: usize, site: SiteId, kind: EventKind) {
        if !std::mem::replace(&mut self.threads[index].begun, true) {
            self.push(index, site, EventKind::Begin);
        }
        self.push(index, site, kind);
    }

    fn push(&mut self, index: usize, site: SiteId, kind: EventKind) {
        let thread = ThreadId(index as u32);
        let event = Event { thread, site, kind };
        if let Looks::Survey(suspects) = &mut self.looks {
            suspects.event(&event);
            return;
        }
        self.look_at(index, site, &kind);
        self.events.push(event);
    }

    // ---- sites ----

    fn site(&mut self, index: usize, pc: u64, code: Code) -> SiteId {
        if code.own_source && !matches!(self.looks, Looks::Survey(_)) {
            return self.site_of(index, pc, pc);
        }
        self.blamed_site(index, pc)
    }

    /// The site that is to blame for what the code at `pc` does: the innermost instruction of the program on the stack
    /// of calls that has a source of its own.
    pub(crate) fn blamed_site(&mut self, index: usize, pc: u64) -> SiteId {
        if matches!(self.looks, Looks::Survey(_)) {
            // Nobody will ask where.
            return SiteId(0);
        }
        let (code, modules) = (&mut self.code, &self.modules);
        let mut own = |pc: u64| {
            let code = code.at(pc, modules);
            code.owner == Owner::Program && code.own_source
        };
        if pc != 0 && own(pc) {
            return self.site_of(index, pc, pc);
        }
        let frames = self.threads[index].calls.innermost_first();
        let blamed = frames
            .flat_map(|frame| [frame.left, frame.call])
            .find(|call| *call != 0 && own(*call));
        let last_own = self.threads[index].last_own;
        let blamed = blamed.unwrap_or(if pc != 0 { pc } else { last_own });
        self.site_of(index, blamed, pc)
    }

    fn site_of(&mut self, index: usize, pc: u64, by: u64) -> SiteId {
        if let Some(known) = self.sites.known(pc) {
            return known;
        }
        const STACK_MAX: usize = 64;
        let calls = self.threads[index].calls.innermost_first();
        let calls: Vec<u64> = calls
            .map(|frame| frame.call)
            .filter(|call| *call != 0)
            .take(STACK_MAX)
            .collect();
        let stack = calls.into_iter().map(|call| self.place(call)).collect();
        let info = SiteInfo {
            place: self.place(pc),
            pc,
            by: self.place(if by == 0 { pc } else { by }),
            thread: ThreadId(index as u32),
            stack,
        };
        self.sites.add(info)
    }

    pub(crate) fn place(&self, pc: u64) -> Place {
        match self.modules.find(pc) {
            Some((module, offset)) => Place {
                module: Some(module.path.clone()),
                offset,
            },
            None => Place {
                module: None,
                offset: pc,
            },
        }
    }
}
