//! The memory of the sieve, at the addresses that translated code has built in.

use crate::CodeCache;
use std::sync::atomic::{AtomicBool, Ordering};
use verdict_cpu::layout::{
    ATOMIC_MARKS, CONTEXT, NO_SHADOW, NO_SHADOW_LEN, SHADOW_BASE, SHADOW_LEN, SHADOW_PARTS,
    SHADOW_STEP, STACK_SHADOW, STACK_SHADOW_LEN,
};
use verdict_cpu::{Context, HostSignalFrame, forget_stamps, write_gs_base};
use verdict_translate::stamp_look;

/// Maps it, empty.
pub(crate) fn map() -> std::io::Result<()> {
    map_at(ATOMIC_MARKS, NO_SHADOW + NO_SHADOW_LEN - ATOMIC_MARKS)?;
    // Where there is no room for the shadows, the program can be run all the same.
    let missing = parts().find(|(start, len)| map_at(*start, *len).is_err());
    if let Some(missing) = missing {
        do_without(parts().take_while(|part| *part != missing));
    }
    Ok(())
}

/// Where shadows begin, and how many bytes they have there.
fn parts() -> impl Iterator<Item = (u64, u64)> {
    let parts = (0..SHADOW_PARTS).map(|part| (part * SHADOW_STEP + SHADOW_BASE, SHADOW_LEN));
    parts.chain([(STACK_SHADOW, STACK_SHADOW_LEN)])
}

fn map_at(start: u64, len: u64) -> std::io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: nothing that is there is replaced.
    let mapped = unsafe {
        libc::mmap(
            start as *mut libc::c_void,
            len as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            flags | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // A core file would have terabytes to leave out, page by page. Whether this is refused does not matter otherwise.
    // SAFETY: just mapped.
    unsafe { libc::madvise(mapped, len as usize, libc::MADV_DONTDUMP) };
    Ok(())
}

/// Where stamps go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shadows {
    /// To the shadow of each byte.
    Own,
    /// All to the same place: nobody looks at them.
    Shared,
}

/// Says where stamps go. What is stamped has to be taken back first.
pub fn use_shadows(shadows: Shadows, context: &mut Context) {
    (context.shadow_mask, context.shadow_base) = match shadows {
        Shadows::Own => (u64::MAX, SHADOW_BASE),
        Shadows::Shared => (0, NO_SHADOW),
    };
}

/// The base of gs while the guest runs, whose own is given. Translated code looks at shadows through it, unless there are none: then it looks
/// at the guest's own memory instead, and comes to nothing that counts.
pub fn gs_base(own: u64) -> u64 {
    match has_given_way() {
        true => own,
        false => SHADOW_BASE,
    }
}

static GIVEN_WAY: AtomicBool = AtomicBool::new(false);

/// Leaves the addresses of the shadows to the guest: nothing that is told from now on says enough.
pub fn give_way() {
    if !has_given_way() {
        do_without(parts());
    }
}

/// True once the guest has memory where shadows were.
pub fn has_given_way() -> bool {
    GIVEN_WAY.load(Ordering::Relaxed)
}

/// All accesses get the same shadow; those that are mapped are given back.
fn do_without(mapped: impl Iterator<Item = (u64, u64)>) {
    GIVEN_WAY.store(true, Ordering::Relaxed);
    // SAFETY: whoever makes a code cache has mapped the context for good, and no translated code runs meanwhile; callers hold no
    // reference to it.
    let context = unsafe { &mut *(CONTEXT as *mut Context) };
    use_shadows(Shadows::Shared, context);
    context.stamped_next = context.stamped;
    // Whoever gives the guest a base of its own does so after this.
    write_gs_base(gs_base(0));
    for (start, len) in mapped {
        // SAFETY: mapped for the sieve; translated code goes elsewhere from now on.
        unsafe { libc::munmap(start as *mut libc::c_void, len as usize) };
    }
}

/// The CPU has refused the engine a look at stamps: the guest comes by an address that has none, has its accesses checked for their
/// alignment, or there are no shadows any more. Goes on as if nothing were new, so that the guest's own access is refused, if it is.
/// From now on, what is told does not say enough. False if it is something else that was refused.
pub fn step_aside(frame: &mut HostSignalFrame<'_>) -> bool {
    let is_memory = matches!(frame.signal, libc::SIGSEGV | libc::SIGBUS);
    if !is_memory || !CodeCache::contains(frame.rip()) {
        return false;
    }
    // SAFETY: the cache can be read, and has more bytes after its last instruction than any instruction is long.
    let code = unsafe { std::slice::from_raw_parts(frame.rip() as *const u8, INSTRUCTION_MAX) };
    let Some(look) = stamp_look(code) else {
        return false;
    };
    // SAFETY: translated code was running, which has the context; it goes on when this is over.
    let context = unsafe { &mut *(CONTEXT as *mut Context) };
    match look.into {
        Some(register) => frame.set_gpr(register as usize, context.epoch),
        None => frame.set_rflags(frame.rflags() | ZERO_FLAG),
    }
    // Other bytes of the same access may have shadows; where it is stamped as a whole, that must not be refused.
    use_shadows(Shadows::Shared, context);
    frame.set_rip(frame.rip() + look.len as u64);
    true
}

const ZERO_FLAG: u64 = 1 << 6;
const INSTRUCTION_MAX: usize = 15;

/// Forgets all that was told; what is atomic stays so. Epochs begin anew.
pub fn clear_sieve(context: &mut Context) {
    // SAFETY: there is only one context, which lists only shadows; they are mapped unless the mask says that they are not.
    unsafe { forget_stamps(context) };
}
