//! The guest's address space: what is mapped where, what the guest may do there, and which pages are watched
//! because code was translated from them.
//!
//! Every guest mapping is made by us, at an address that only depends on what was mapped before. Guest memory
//! is never executable on the host: a stray jump faults instead of running untranslated code.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use verdict_cpu::layout::{self, PAGE};

/// What the guest may do with a mapping (`PROT_*`).
pub type Prot = i32;

/// One mapping of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address after it.
    pub end: u64,
    /// What the guest asked for.
    pub prot: Prot,
    /// Changes are seen by other processes.
    pub shared: bool,
    /// The file behind it and the offset of its first byte.
    pub file: Option<(PathBuf, u64)>,
}

/// The guest's address space.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    mappings: BTreeMap<u64, Mapping>,
    /// Pages (numbers) kept read-only because translated code depends on them.
    watched: BTreeSet<u64>,
    /// Pages of data that the guest may not write and translated code depends on.
    relied_on: BTreeSet<u64>,
    /// Ranges whose translations are void; the executor takes them before it enters the guest again.
    stale: Vec<Range<u64>>,
    brk_start: u64,
    brk: u64,
    /// Called before the first mapping is made where accesses have no shadows (see [`layout::has_shadow`]).
    pub without_shadow: Option<fn()>,
}

/// Result of a system call: a value or a negative errno.
pub type SysResult = Result<i64, i32>;

impl Memory {
    /// An empty address space.
    pub fn new() -> Self {
        Memory {
            brk_start: layout::BRK_START,
            brk: layout::BRK_START,
            ..Memory::default()
        }
    }

    /// All mappings in order of address.
    pub fn mappings(&self) -> impl Iterator<Item = (u64, &Mapping)> {
        self.mappings
            .iter()
            .map(|(start, mapping)| (*start, mapping))
    }

    /// The mapping that holds an address.
    pub fn find(&self, address: u64) -> Option<(u64, &Mapping)> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address < mapping.end).then_some((*start, mapping))
    }

    /// Bytes from `address` on that the guest may execute, at most `want`.
    pub fn executable_len(&self, address: u64, want: u64) -> u64 {
        let limit = address.saturating_add(want);
        let mut end = address;
        while end < limit {
            match self.find(end) {
                Some((_, mapping)) if mapping.prot & libc::PROT_EXEC != 0 => end = mapping.end,
                _ => break,
            }
        }
        end.min(limit) - address
    }

    /// True if every byte may be accessed as `prot` says.
    pub fn allows(&self, range: Range<u64>, prot: Prot) -> bool {
        let mut at = range.start;
        while at < range.end {
            match self.find(at) {
                Some((_, mapping)) if mapping.prot & prot == prot => at = mapping.end,
                _ => return false,
            }
        }
        true
    }

    /// Ranges whose translations are void since the last call.
    pub fn take_stale(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.stale)
    }

    /// True if [`Memory::take_stale`] would return something.
    pub fn has_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    // ---- watched pages ----

    /// Code was translated from this page: writes to it must be noticed.
    pub fn watch(&mut self, page: u64) {
        let Some((_, mapping)) = self.find(page * PAGE) else {
            return;
        };
        let prot = mapping.prot;
        if prot & (libc::PROT_WRITE | libc::PROT_EXEC) == 0 {
            self.relied_on.insert(page);
        }
        if prot & libc::PROT_WRITE != 0 && self.watched.insert(page) {
            host_protect(page * PAGE, PAGE, prot & !libc::PROT_WRITE);
        }
    }

    /// A word that stays as it is for as long as its mapping does: code that is made from it is told of the end like other
    /// code, if its page is among those watched.
    pub fn constant_u64(&self, address: u64) -> Option<u64> {
        let (_, mapping) = self.find(address)?;
        let constant = mapping.prot & libc::PROT_WRITE == 0 && !mapping.shared;
        if !constant || !address.is_multiple_of(8) {
            return None;
        }
        self.read_u64(address).ok()
    }

    /// Translations that depend on data here are void.
    fn stop_relying_on(&mut self, range: &Range<u64>) {
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        let pages: Vec<u64> = self.relied_on.range(pages).copied().collect();
        for page in pages {
            self.relied_on.remove(&page);
            self.stale.push(page * PAGE..(page + 1) * PAGE);
        }
    }

    /// The guest (or the host on its behalf) is about to write here: translations from watched pages become void.
    /// Returns true if any page was watched.
    pub fn unwatch(&mut self, range: Range<u64>) -> bool {
        self.stop_relying_on(&range);
        self.unwatch_pages(range)
    }

    fn unwatch_pages(&mut self, range: Range<u64>) -> bool {
        let pages: Vec<u64> = self
            .watched
            .range(range.start / PAGE..range.end.div_ceil(PAGE))
            .copied()
            .collect();
        for page in &pages {
            self.watched.remove(page);
            self.stale.push(page * PAGE..(page + 1) * PAGE);
            if let Some((_, mapping)) = self.find(page * PAGE) {
                host_protect(page * PAGE, PAGE, mapping.prot);
            }
        }
        !pages.is_empty()
    }

    /// Unwatches everything (before system calls whose writes cannot be foreseen).
    pub fn unwatch_all(&mut self) -> bool {
        self.unwatch_pages(0..u64::MAX - PAGE)
    }

    // ---- mapping ----

    /// `mmap`. The file's path is only kept for reports.
    pub fn map(&mut self, request: &MapRequest) -> SysResult {
        let len = page_up(request.len)
            .filter(|len| *len > 0)
            .ok_or(if request.len == 0 {
                libc::EINVAL
            } else {
                libc::ENOMEM
            })?;
        let address = self.choose_address(request, len)?;
        self.make_way(address..address + len);
        self.forget(address..address + len);
        let kept =
            request.flags & !(libc::MAP_32BIT | libc::MAP_GROWSDOWN | libc::MAP_FIXED_NOREPLACE);
        // SAFETY: `choose_address` only returns ranges that belong to the guest.
        let mapped = unsafe {
            libc::mmap(
                address as *mut libc::c_void,
                len as usize,
                host_prot(request.prot),
                kept | libc::MAP_FIXED,
                request.fd,
                request.offset as i64,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(errno());
        }
        self.insert(
            address,
            Mapping {
                end: address + len,
                prot: request.prot,
                shared: request.flags & libc::MAP_TYPE == libc::MAP_SHARED
                    || request.flags & libc::MAP_TYPE == libc::MAP_SHARED_VALIDATE,
                file: request.path.clone().map(|path| (path, request.offset)),
            },
        );
        Ok(address as i64)
    }

    /// The guest believes that other processes see changes here.
    /// The guest is about to have memory there.
    fn make_way(&mut self, range: Range<u64>) {
        if !layout::has_shadow(range.start, range.end)
            && let Some(tell) = self.without_shadow.take()
        {
            tell();
        }
    }

    pub(crate) fn mark_shared(&mut self, address: u64, len: u64) {
        let end = address + page_up(len).unwrap_or(0);
        for (start, mut mapping) in self.forget(address..end) {
            mapping.shared = true;
            self.mappings.insert(start, mapping);
        }
    }

    fn choose_address(&self, request: &MapRequest, len: u64) -> Result<u64, i32> {
        let wanted = request.address & !(PAGE - 1);
        if request.flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0 {
            if !request.address.is_multiple_of(PAGE) {
                return Err(libc::EINVAL);
            }
            if !is_guest_range(wanted, len) {
                return Err(libc::ENOMEM);
            }
            if request.flags & libc::MAP_FIXED_NOREPLACE != 0 && !self.is_free(wanted, len) {
                return Err(libc::EEXIST);
            }
            return Ok(wanted);
        }
        if wanted != 0 && is_guest_range(wanted, len) && self.is_free(wanted, len) {
            return Ok(wanted);
        }
        // Images go low, where translated code reaches their data by a displacement.
        let denywrite = libc::MAP_DENYWRITE;
        let image = request.fd >= 0
            && (request.prot & libc::PROT_EXEC != 0 || request.flags & denywrite != 0);
        let low = image || request.flags & libc::MAP_32BIT != 0;
        if low && let Some(address) = self.first_gap(layout::IMAGES_START..layout::IMAGES_END, len)
        {
            return Ok(address);
        }
        if request.flags & libc::MAP_32BIT != 0 {
            return Err(libc::ENOMEM);
        }
        self.first_gap(layout::MMAP_START..layout::MMAP_END, len)
            .ok_or(libc::ENOMEM)
    }

    fn is_free(&self, start: u64, len: u64) -> bool {
        self.overlapping(start..start + len).next().is_none()
    }

    fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Mapping)> {
        let before = self
            .mappings
            .range(..range.start)
            .next_back()
            .filter(|(_, m)| m.end > range.start);
        before
            .into_iter()
            .chain(self.mappings.range(range.start..range.end.max(range.start)))
            .map(|(start, mapping)| (*start, mapping))
    }

    /// The lowest gap of the region that fits, one guard page left free after every mapping.
    fn first_gap(&self, region: Range<u64>, len: u64) -> Option<u64> {
        let mut at = region.start;
        for (start, mapping) in self.overlapping(region.clone()) {
            if start >= at + len {
                break;
            }
            at = at.max(mapping.end);
        }
        (at + len <= region.end).then_some(at)
    }

    fn insert(&mut self, start: u64, mapping: Mapping) {
        // Neighbours that continue each other are one mapping, as the kernel shows them.
        let mut start = start;
        let mut mapping = mapping;
        if let Some((before, previous)) = self.mappings.range(..start).next_back()
            && previous.end == start
            && continues(*before, previous, start, &mapping)
        {
            let before = *before;
            mapping.file = self.mappings[&before].file.clone();
            start = before;
        }
        if let Some(next) = self.mappings.get(&mapping.end)
            && continues(start, &mapping, mapping.end, next)
        {
            let end = mapping.end;
            mapping.end = self.mappings.remove(&end).expect("just found").end;
        }
        self.mappings.insert(start, mapping);
    }

    /// Cuts a range out of the bookkeeping; translations from it become void.
    fn forget(&mut self, range: Range<u64>) -> Vec<(u64, Mapping)> {
        let hit: Vec<u64> = self
            .overlapping(range.clone())
            .map(|(start, _)| start)
            .collect();
        let mut removed = Vec::new();
        for start in hit {
            let whole = self.mappings.remove(&start).expect("just found");
            let (left, inside, right) = split(start, whole, &range);
            for (at, part) in left.into_iter().chain(right) {
                self.mappings.insert(at, part);
            }
            if inside.1.prot & libc::PROT_EXEC != 0 {
                self.stale.push(inside.0..inside.1.end);
            }
            removed.push(inside);
        }
        let pages: Vec<u64> = self
            .watched
            .range(range.start / PAGE..range.end.div_ceil(PAGE))
            .copied()
            .collect();
        for page in pages {
            self.watched.remove(&page);
        }
        self.stop_relying_on(&range);
        removed
    }

    /// `munmap`.
    pub fn unmap(&mut self, address: u64, len: u64) -> SysResult {
        let len = page_up(len).filter(|len| *len > 0).ok_or(libc::EINVAL)?;
        if !address.is_multiple_of(PAGE) || address.checked_add(len).is_none() {
            return Err(libc::EINVAL);
        }
        for (start, mapping) in self.forget(address..address + len) {
            // SAFETY: the range was a mapping of the guest.
            unsafe { libc::munmap(start as *mut libc::c_void, (mapping.end - start) as usize) };
        }
        Ok(0)
    }

    /// `mprotect`.
    pub fn protect(&mut self, address: u64, len: u64, prot: Prot) -> SysResult {
        let len = page_up(len).ok_or(libc::ENOMEM)?;
        if !address.is_multiple_of(PAGE) {
            return Err(libc::EINVAL);
        }
        let range = address..address.checked_add(len).ok_or(libc::ENOMEM)?;
        if len == 0 {
            return Ok(0);
        }
        if !self.allows(range.clone(), 0) {
            return Err(libc::ENOMEM);
        }
        let stale = self.stale.len();
        for (start, mut mapping) in self.forget(range) {
            host_protect(start, mapping.end - start, prot);
            mapping.prot = prot;
            self.insert(start, mapping);
        }
        if prot & libc::PROT_EXEC != 0 && prot & libc::PROT_WRITE == 0 {
            // Executable as before and not writable from now on: translations stay valid.
            self.stale.truncate(stale);
        }
        Ok(0)
    }

    /// `mremap`.
    pub fn remap(
        &mut self,
        old: u64,
        old_len: u64,
        new_len: u64,
        flags: i32,
        new: u64,
    ) -> SysResult {
        let (old_len, new_len) = (
            page_up(old_len).ok_or(libc::EINVAL)?,
            page_up(new_len).ok_or(libc::EINVAL)?,
        );
        if !old.is_multiple_of(PAGE)
            || new_len == 0
            || flags & !(libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) != 0
        {
            return Err(libc::EINVAL);
        }
        let Some((start, mapping)) = self.find(old) else {
            return Err(libc::EFAULT);
        };
        let mut mapping = mapping.clone();
        if old + old_len > mapping.end {
            return Err(libc::EFAULT);
        }
        if let Some((_, offset)) = &mut mapping.file {
            *offset += old - start;
        }
        if flags & libc::MREMAP_FIXED != 0 {
            if flags & libc::MREMAP_MAYMOVE == 0
                || !new.is_multiple_of(PAGE)
                || !is_guest_range(new, new_len)
            {
                return Err(libc::EINVAL);
            }
            return self.move_mapping(old, old_len, new, new_len, mapping);
        }
        if new_len <= old_len {
            if new_len < old_len {
                self.unmap(old + new_len, old_len - new_len)?;
            }
            return Ok(old as i64);
        }
        let grown = old + old_len..old + new_len;
        if is_guest_range(grown.start, new_len - old_len)
            && self.is_free(grown.start, new_len - old_len)
            && old_len > 0
        {
            self.make_way(grown.clone());
            host_remap(old, old_len, new_len, None)?;
            mapping.end = grown.end;
            self.forget(old..old + old_len);
            self.insert(old, mapping);
            return Ok(old as i64);
        }
        if flags & libc::MREMAP_MAYMOVE == 0 {
            return Err(libc::ENOMEM);
        }
        let to = self
            .first_gap(layout::MMAP_START..layout::MMAP_END, new_len)
            .ok_or(libc::ENOMEM)?;
        self.move_mapping(old, old_len, to, new_len, mapping)
    }

    fn move_mapping(
        &mut self,
        old: u64,
        old_len: u64,
        to: u64,
        new_len: u64,
        mut mapping: Mapping,
    ) -> SysResult {
        self.unwatch(old..old + old_len);
        self.make_way(to..to + new_len);
        host_remap(old, old_len, new_len, Some(to))?;
        self.forget(to..to + new_len);
        self.forget(old..old + old_len);
        mapping.end = to + new_len;
        self.insert(to, mapping);
        Ok(to as i64)
    }

    /// `brk`: returns the break as it is afterwards.
    pub fn set_brk(&mut self, wanted: u64) -> SysResult {
        if wanted >= self.brk_start && wanted < layout::MMAP_START {
            let (now, then) = (
                self.brk.next_multiple_of(PAGE),
                wanted.next_multiple_of(PAGE),
            );
            if then > now {
                let request = MapRequest {
                    address: now,
                    len: then - now,
                    prot: libc::PROT_READ | libc::PROT_WRITE,
                    flags: libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                    fd: -1,
                    offset: 0,
                    path: None,
                };
                if self.map(&request).is_err() {
                    return Ok(self.brk as i64);
                }
            } else if then < now {
                self.unmap(then, now - then)?;
            }
            self.brk = wanted;
        }
        Ok(self.brk as i64)
    }

    /// The heap's range, for `/proc/self/maps`.
    pub fn heap(&self) -> Range<u64> {
        self.brk_start..self.brk
    }

    /// Reads guest memory; `EFAULT` where the guest could not.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), i32> {
        if is_guest_range(address, buffer.len() as u64)
            && verdict_cpu::copy_from_guest(address, buffer)
        {
            Ok(())
        } else {
            Err(libc::EFAULT)
        }
    }

    /// Writes guest memory; `EFAULT` where the guest could not.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), i32> {
        if !is_guest_range(address, bytes.len() as u64) {
            return Err(libc::EFAULT);
        }
        self.unwatch(address..address + bytes.len() as u64);
        // SAFETY: the range belongs to the guest.
        if unsafe { verdict_cpu::copy_to_guest(address, bytes) } {
            Ok(())
        } else {
            Err(libc::EFAULT)
        }
    }

    /// Reads a plain value.
    pub fn read_u64(&self, address: u64) -> Result<u64, i32> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads a plain value.
    pub fn read_u32(&self, address: u64) -> Result<u32, i32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Writes a plain value.
    pub fn write_u64(&mut self, address: u64, value: u64) -> Result<(), i32> {
        self.write(address, &value.to_le_bytes())
    }

    /// Writes a plain value.
    pub fn write_u32(&mut self, address: u64, value: u32) -> Result<(), i32> {
        self.write(address, &value.to_le_bytes())
    }

    /// Reads a NUL-terminated string of at most a path's length.
    pub fn read_string(&self, address: u64) -> Result<Vec<u8>, i32> {
        let mut string = Vec::new();
        while string.len() < libc::PATH_MAX as usize {
            // Up to the end of a page at a time: the next one may not be there.
            let at = address + string.len() as u64;
            let mut chunk = vec![0; ((PAGE - at % PAGE) as usize).min(256)];
            self.read(at, &mut chunk)?;
            if let Some(end) = chunk.iter().position(|byte| *byte == 0) {
                string.extend_from_slice(&chunk[..end]);
                return Ok(string);
            }
            string.extend_from_slice(&chunk);
        }
        Err(libc::ENAMETOOLONG)
    }
}

/// Arguments of `mmap`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct MapRequest {
    pub address: u64,
    pub len: u64,
    pub prot: Prot,
    pub flags: i32,
    pub fd: i32,
    pub offset: u64,
    pub path: Option<PathBuf>,
}

/// True if the guest may have mappings in all of the range.
pub fn is_guest_range(start: u64, len: u64) -> bool {
    let Some(end) = start.checked_add(len) else {
        return false;
    };
    let engine = layout::ENGINE_LOW_START..layout::ENGINE_LOW_END;
    end <= layout::GUEST_END && (end <= engine.start || start >= engine.end)
}

fn continues(start: u64, first: &Mapping, second_start: u64, second: &Mapping) -> bool {
    let files = match (&first.file, &second.file) {
        (None, None) => true,
        (Some((a, offset)), Some((b, next))) => a == b && offset + (second_start - start) == *next,
        _ => false,
    };
    files && first.prot == second.prot && first.shared == second.shared && !first.shared
}

type Part = (u64, Mapping);

/// Splits a mapping into what lies before, inside and after a range that overlaps it.
fn split(start: u64, mapping: Mapping, range: &Range<u64>) -> (Option<Part>, Part, Option<Part>) {
    let part = |from: u64, to: u64| {
        let mut part = mapping.clone();
        part.end = to;
        if let Some((_, offset)) = &mut part.file {
            *offset += from - start;
        }
        (from, part)
    };
    let left = (start < range.start).then(|| part(start, range.start));
    let right = (mapping.end > range.end).then(|| part(range.end, mapping.end));
    (
        left,
        part(start.max(range.start), mapping.end.min(range.end)),
        right,
    )
}

fn page_up(len: u64) -> Option<u64> {
    len.checked_next_multiple_of(PAGE)
}

/// Host protection for a guest mapping: never executable, readable where the guest may execute.
fn host_prot(prot: Prot) -> Prot {
    let readable = if prot & libc::PROT_EXEC != 0 {
        libc::PROT_READ
    } else {
        0
    };
    prot & !libc::PROT_EXEC | readable
}

fn host_protect(address: u64, len: u64, prot: Prot) {
    // SAFETY: callers pass ranges of guest mappings.
    unsafe { libc::mprotect(address as *mut libc::c_void, len as usize, host_prot(prot)) };
}

fn host_remap(old: u64, old_len: u64, new_len: u64, to: Option<u64>) -> Result<(), i32> {
    let flags = to.map_or(0, |_| libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
    // SAFETY: source and destination belong to the guest.
    let moved = unsafe {
        libc::mremap(
            old as *mut libc::c_void,
            old_len as usize,
            new_len as usize,
            flags,
            to.unwrap_or(0) as *mut libc::c_void,
        )
    };
    if moved == libc::MAP_FAILED {
        Err(errno())
    } else {
        Ok(())
    }
}

pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}
