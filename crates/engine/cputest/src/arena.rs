//! The guest's memory: the same few pages at the same addresses for every run of a case.

use verdict_cpu::layout::PAGE;

/// Code within reach of the code cache, so that displacements can be patched.
pub(crate) const LOW_CODE: u64 = 0x1800_0000;
/// Code out of reach of the code cache, so that registers must be borrowed.
pub(crate) const HIGH_CODE: u64 = 0x3000_0000_0000;
/// Pages of each code region.
pub(crate) const CODE_LEN: u64 = 4 * PAGE;

/// Data that 32-bit addresses reach. Unmapped pages lie on both sides, as for all regions.
pub(crate) const LOW_DATA: u64 = LOW_CODE + 0x1_0000;
/// Data near the high code.
pub(crate) const HIGH_DATA: u64 = HIGH_CODE + 0x1_0000;
/// The stack.
pub(crate) const STACK: u64 = HIGH_CODE + 0x10_0000;
/// Read-only small numbers: indices for gathers.
pub(crate) const INDICES: u64 = LOW_CODE + 0x2_0000;

/// Pages that instructions can change.
pub(crate) const WRITABLE: [u64; 3] = [LOW_DATA, HIGH_DATA, STACK];
/// Bytes of a [`Contents`].
pub(crate) const CONTENTS_LEN: usize = WRITABLE.len() * PAGE as usize;

/// What the writable pages hold, one after the other.
pub(crate) type Contents = Box<[u8]>;

/// Maps everything, once per process.
pub(crate) fn map() -> std::io::Result<()> {
    for page in WRITABLE {
        map_at(page, PAGE, libc::PROT_READ | libc::PROT_WRITE)?;
    }
    map_at(LOW_CODE, CODE_LEN, libc::PROT_READ)?;
    map_at(HIGH_CODE, CODE_LEN, libc::PROT_READ)?;
    map_at(INDICES, PAGE, libc::PROT_READ | libc::PROT_WRITE)?;
    for index in 0..PAGE / 8 {
        // SAFETY: the page was just mapped writable.
        unsafe { *((INDICES + 8 * index) as *mut u64) = 8 * (index % 13) };
    }
    protect(INDICES, PAGE, libc::PROT_READ)
}

fn map_at(address: u64, len: u64, protection: i32) -> std::io::Result<()> {
    // SAFETY: never replaces a mapping that is there.
    let mapped = unsafe {
        libc::mmap(
            address as *mut libc::c_void,
            len as usize,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

fn protect(address: u64, len: u64, protection: i32) -> std::io::Result<()> {
    // SAFETY: only called for the arena's own pages.
    match unsafe { libc::mprotect(address as *mut libc::c_void, len as usize, protection) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Puts code at an address inside a code region, not executable yet.
pub(crate) fn write_code(address: u64, code: &[u8]) -> std::io::Result<()> {
    let start = region_of(address);
    assert!(address + code.len() as u64 <= start + CODE_LEN);
    protect(start, CODE_LEN, libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: inside the region, which is writable and not referred to by anything in Rust.
    unsafe {
        std::ptr::write_bytes(start as *mut u8, 0xcc, CODE_LEN as usize);
        std::ptr::copy_nonoverlapping(code.as_ptr(), address as *mut u8, code.len());
    }
    protect(start, CODE_LEN, libc::PROT_READ)
}

/// Whether the CPU may execute the code where it is. Under the engine it must not need to.
pub(crate) fn set_executable(address: u64, executable: bool) -> std::io::Result<()> {
    let execute = if executable { libc::PROT_EXEC } else { 0 };
    protect(region_of(address), CODE_LEN, libc::PROT_READ | execute)
}

fn region_of(address: u64) -> u64 {
    if address >= HIGH_CODE {
        HIGH_CODE
    } else {
        LOW_CODE
    }
}

/// Sets the writable pages.
pub(crate) fn restore(contents: &[u8]) {
    for (page, bytes) in WRITABLE.iter().zip(contents.chunks(PAGE as usize)) {
        // SAFETY: mapped writable for good; only guest code refers to it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), *page as *mut u8, bytes.len()) };
    }
}

/// Copies the writable pages.
pub(crate) fn contents() -> Contents {
    let mut copy = vec![0u8; CONTENTS_LEN].into_boxed_slice();
    for (page, bytes) in WRITABLE.iter().zip(copy.chunks_mut(PAGE as usize)) {
        // SAFETY: as in `restore`.
        unsafe {
            std::ptr::copy_nonoverlapping(*page as *const u8, bytes.as_mut_ptr(), bytes.len())
        };
    }
    copy
}

/// True if an access there could reach what belongs to the engine or to this process: nothing that a comparison may
/// depend on, and nothing that may be overwritten.
pub(crate) fn is_off_limits(address: u64, len: u64) -> bool {
    const MARGIN: u64 = 1 << 16;
    let low = verdict_cpu::layout::ENGINE_LOW_START - MARGIN;
    let high = verdict_cpu::layout::ENGINE_LOW_END + MARGIN;
    let end = address.saturating_add(len.max(1));
    let engine = address < high && end > low;
    let process = address < 1 << 47 && end > verdict_cpu::layout::GUEST_END;
    let vsyscall = address >= 0xffff_ffff_0000_0000;
    let shadows = address < 1 << 47 && !verdict_cpu::layout::has_shadow(address, end);
    engine || process || shadows || (vsyscall && address < 0xffff_ffff_ffff_0000)
}

/// Where bytes of the writable pages are in a [`Contents`].
pub(crate) fn place(address: u64, len: u64) -> Option<usize> {
    WRITABLE
        .iter()
        .position(|page| address >= *page && address + len <= page + PAGE)
        .map(|number| number * PAGE as usize + (address % PAGE) as usize)
}
