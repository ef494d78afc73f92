//! Executable memory, mapped twice: executable and not writable where it runs, writable and not executable
//! where it is filled.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use verdict_cpu::layout::{CACHE_LEN, CACHE_START};

/// The cache could not get its memory.
#[derive(Debug)]
pub struct CacheMemoryError(std::io::Error);

impl std::fmt::Display for CacheMemoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "no memory for the code cache ({} MB at {:#x}): {}; free memory or raise the limit on address space (ulimit -v)",
            CACHE_LEN >> 20,
            CACHE_START,
            self.0
        )
    }
}

impl std::error::Error for CacheMemoryError {}

/// The two views of the code cache.
#[derive(Debug)]
pub(crate) struct CodeMemory {
    /// Writable view; its bytes appear at [`CACHE_START`] for execution.
    writable: *mut u8,
    used: usize,
    /// End of the code that seldom runs, which begins at [`COLD_START`]: what often runs lies close together.
    cold_used: usize,
    /// Bytes written since the writable view was last given back.
    written: usize,
}

/// So many bytes are written before the pages of the writable view are given back: they are there twice otherwise.
const WRITTEN_MAX: usize = 1 << 20;

/// Where the code that seldom runs begins, from the start of the cache.
const COLD_START: usize = CACHE_LEN as usize / 2;

impl CodeMemory {
    pub(crate) fn new() -> Result<Self, CacheMemoryError> {
        let file = new_file().map_err(CacheMemoryError)?;
        let writable = map_views(&file, std::ptr::null_mut()).map_err(CacheMemoryError)?;
        Ok(CodeMemory {
            writable,
            used: 0,
            cold_used: COLD_START,
            written: 0,
        })
    }

    /// Address at which the next code will run.
    pub(crate) fn next(&self) -> u64 {
        CACHE_START + self.used as u64
    }

    /// Address at which the next code will run that seldom does.
    pub(crate) fn next_cold(&self) -> u64 {
        CACHE_START + self.cold_used as u64
    }

    /// Bytes left of each kind.
    pub(crate) fn left(&self) -> usize {
        (COLD_START - self.used).min(CACHE_LEN as usize - self.cold_used)
    }

    /// Appends code that seldom runs; `next_cold()` is where it does.
    pub(crate) fn append_cold(&mut self, code: &[u8]) {
        self.write(self.next_cold(), code);
        self.cold_used += code.len();
    }

    /// Appends code; `next()` is where it runs.
    pub(crate) fn append(&mut self, code: &[u8]) {
        self.write(self.next(), code);
        // Blocks start on 16-byte lines, as compilers align hot code.
        self.used += code.len().next_multiple_of(16);
    }

    /// Overwrites code that is already there.
    pub(crate) fn write(&mut self, address: u64, code: &[u8]) {
        let at = (address - CACHE_START) as usize;
        assert!(
            at + code.len() <= CACHE_LEN as usize,
            "code outside the cache"
        );
        // SAFETY: the writable view has CACHE_LEN bytes, is ours alone, and the range was just checked.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), self.writable.add(at), code.len()) }
        self.written += code.len();
        if self.written > WRITTEN_MAX {
            self.written = 0;
            // SAFETY: the view is shared memory: what was written stays in the file, and is there again when it is touched.
            unsafe {
                libc::madvise(
                    self.writable.cast(),
                    CACHE_LEN as usize,
                    libc::MADV_DONTNEED,
                )
            };
        }
    }

    /// Forgets everything from `address` on, and all code that seldom runs.
    pub(crate) fn truncate(&mut self, address: u64) {
        self.used = (address - CACHE_START) as usize;
        self.cold_used = COLD_START;
    }

    /// Before a fork: a copy for the child. The two views are shared memory, so without it parent and child would
    /// write into each other's code.
    pub(crate) fn copy_for_child(&self) -> Result<CodeCopy, CacheMemoryError> {
        let file = new_file().map_err(CacheMemoryError)?;
        for range in [0..self.used, COLD_START..self.cold_used] {
            // SAFETY: the range of the writable view is mapped and nobody writes it meanwhile.
            let code =
                unsafe { std::slice::from_raw_parts(self.writable.add(range.start), range.len()) };
            std::os::unix::fs::FileExt::write_all_at(&file, code, range.start as u64)
                .map_err(CacheMemoryError)?;
        }
        Ok(CodeCopy(file))
    }

    /// In the child: the copy takes the place of what the parent goes on using.
    pub(crate) fn adopt(&mut self, copy: &CodeCopy) -> Result<(), CacheMemoryError> {
        self.writable = map_views(&copy.0, self.writable).map_err(CacheMemoryError)?;
        Ok(())
    }
}

/// The code of a cache at the moment of a fork.
#[derive(Debug)]
pub struct CodeCopy(File);

/// Memory for both views.
fn new_file() -> std::io::Result<File> {
    // SAFETY: a fresh descriptor, owned by the file from here on.
    let file = unsafe {
        let descriptor = libc::memfd_create(c"verdict-code".as_ptr(), libc::MFD_CLOEXEC);
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error());
        }
        File::from_raw_fd(descriptor)
    };
    file.set_len(CACHE_LEN)?;
    Ok(file)
}

/// Maps a file at [`CACHE_START`] (to execute) and at `writable` or anywhere (to fill).
fn map_views(file: &File, writable: *mut u8) -> std::io::Result<*mut u8> {
    let len = CACHE_LEN as usize;
    let file = file.as_raw_fd();
    // SAFETY: MAP_FIXED only hits addresses that the layout reserves for the cache, or the writable view that this
    // module mapped before.
    unsafe {
        let fixed = if writable.is_null() {
            0
        } else {
            libc::MAP_FIXED
        };
        let filled = libc::mmap(
            writable.cast(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE | fixed,
            file,
            0,
        );
        let run = libc::mmap(
            CACHE_START as *mut libc::c_void,
            len,
            libc::PROT_READ | libc::PROT_EXEC,
            libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED,
            file,
            0,
        );
        if filled == libc::MAP_FAILED || run == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(filled.cast())
    }
}

impl From<std::io::Error> for CacheMemoryError {
    fn from(error: std::io::Error) -> Self {
        CacheMemoryError(error)
    }
}
