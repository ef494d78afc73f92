//! The memory of the sieve, at the addresses that translated code has built in.

use crate::CodeCache;
use std::sync::atomic::{AtomicBool, Ordering};
use verdict_cpu::layout::{
    ATOMIC_MARKS, CONTEXT, NO_SHADOW, NO_SHADOW_LEN, SHADOW_BASE, SHADOW_LEN, SHADOW_MASK,
    SHADOW_PARTS, SHADOW_STEP,
};
use verdict_cpu::{Context, HostSignalFrame, forget_stamps};
use verdict_translate::shadow_operand;

/// Maps it, empty.
pub(crate) fn map() -> std::io::Result<()> {
    map_at(ATOMIC_MARKS, NO_SHADOW + NO_SHADOW_LEN - ATOMIC_MARKS)?;
    // Where there is no room for the shadows, the program can be run all the same.
    let missing = parts().find(|part| map_at(*part, SHADOW_LEN).is_err());
    if let Some(missing) = missing {
        do_without(parts().take_while(|part| *part != missing));
    }
    Ok(())
}

fn parts() -> impl Iterator<Item = u64> {
    (0..SHADOW_PARTS).map(|part| part * SHADOW_STEP + SHADOW_BASE)
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

/// Where shadows are to be found from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shadows {
    /// Each byte has its own.
    Own,
    /// All have the same one: nobody needs to know what is accessed.
    Shared,
}

/// Says where shadows are. What is stamped has to be taken back first.
pub fn use_shadows(shadows: Shadows, context: &mut Context) {
    (context.shadow_mask, context.shadow_base) = match shadows {
        Shadows::Own if !has_given_way() => (SHADOW_MASK, SHADOW_BASE),
        _ => (0, NO_SHADOW),
    };
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
fn do_without(mapped: impl Iterator<Item = u64>) {
    GIVEN_WAY.store(true, Ordering::Relaxed);
    // SAFETY: whoever makes a code cache has mapped the context for good, and no translated code runs meanwhile; callers hold no
    // reference to it.
    let context = unsafe { &mut *(CONTEXT as *mut Context) };
    use_shadows(Shadows::Shared, context);
    context.stamped_next = context.stamped;
    for part in mapped {
        // SAFETY: mapped for the sieve; translated code goes elsewhere from now on.
        unsafe { libc::munmap(part as *mut libc::c_void, SHADOW_LEN as usize) };
    }
}

/// The guest has accesses checked for their alignment, and the engine is refused one to a shadow: has it go on with one that serves for
/// all, so that the guest's own access is refused, if it is. From now on, what is told does not say enough. False if it is
/// something else that was refused.
pub fn step_aside(frame: &mut HostSignalFrame<'_>) -> bool {
    let is_check = frame.signal == libc::SIGBUS && frame.trap().0 == ALIGNMENT_CHECK;
    if !is_check || !CodeCache::contains(frame.rip()) {
        return false;
    }
    // SAFETY: the cache can be read, and has more bytes after its last instruction than any instruction is long.
    let code = unsafe { std::slice::from_raw_parts(frame.rip() as *const u8, INSTRUCTION_MAX) };
    let Some((register, _)) = shadow_operand(code).filter(|(register, displacement)| {
        let address = frame.gprs()[*register as usize].wrapping_add(*displacement);
        address / SHADOW_STEP < SHADOW_PARTS && address % SHADOW_STEP >= SHADOW_BASE
    }) else {
        return false;
    };
    frame.set_gpr(register as usize, NO_SHADOW);
    // SAFETY: translated code was running, which has the context; it goes on when this is over.
    use_shadows(Shadows::Shared, unsafe { &mut *(CONTEXT as *mut Context) });
    true
}

/// Number of the exception.
const ALIGNMENT_CHECK: u64 = 17;
const INSTRUCTION_MAX: usize = 15;

/// Forgets all that was told; what is atomic stays so. Epochs begin anew.
pub fn clear_sieve(context: &mut Context) {
    // SAFETY: there is only one context, which lists only shadows; they are mapped unless the mask says that they are not.
    unsafe { forget_stamps(context) };
}
