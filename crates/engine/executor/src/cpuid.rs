//! What the guest is told about its CPU: everything the host has, less what the engine cannot keep
//! deterministic (hardware randomness, transactions, processor numbers) or does not save (AMX, protection keys).

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};

/// Components that are not saved: protection keys, AMX tiles.
const UNSAVED: u64 = 1 << 9 | 1 << 17 | 1 << 18;
const OSXSAVE: u32 = 1 << 27;

/// The host's XSAVE area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorLayout {
    /// Components to save.
    pub(crate) mask: u64,
    /// Size of the area.
    pub(crate) len: usize,
}

pub(crate) fn vector_state() -> Option<VectorLayout> {
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return None;
    }
    Some(VectorLayout {
        mask: xcr0() & !UNSAVED,
        len: __cpuid_count(0xd, 0).ebx as usize,
    })
}

/// XCR0 as the guest sees it.
pub(crate) fn guest_xcr0() -> u64 {
    xcr0() & !UNSAVED
}

fn xcr0() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: OSXSAVE was checked by `vector_state` before an executor exists.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack))
    };
    u64::from(high) << 32 | u64::from(low)
}

/// The host's fs base.
pub(crate) fn fs_base() -> u64 {
    let base: u64;
    // SAFETY: reads a register; FSGSBASE was checked.
    unsafe { asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    base
}

/// AT_HWCAP: cpuid(1).edx.
pub(crate) fn hwcap() -> u64 {
    u64::from(__cpuid(1).edx)
}

/// The answer to `cpuid` as (eax, ebx, ecx, edx).
pub(crate) fn guest_cpuid(leaf: u32, subleaf: u32) -> [u32; 4] {
    let host = __cpuid_count(leaf, subleaf);
    let [mut a, mut b, mut c, mut d] = [host.eax, host.ebx, host.ecx, host.edx];
    match (leaf, subleaf) {
        (1, _) => {
            b &= 0x00ff_ffff; // initial APIC id
            c &= !(1 << 30); // RDRAND
        }
        (7, 0) => {
            b &= !(1 << 4 | 1 << 11 | 1 << 18); // HLE, RTM, RDSEED
            c &= !(1 << 3 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 22); // PKU, OSPKE, WAITPKG, SHSTK, RDPID
            d &= !(1 << 16 | 1 << 20 | 1 << 22 | 1 << 24 | 1 << 25 | 1 << 11 | 1 << 13); // TSX, IBT, AMX
        }
        (0xb | 0x1f, _) => d = 0, // x2APIC id
        (0xd, 0) => {
            a &= guest_xcr0() as u32;
            d &= (guest_xcr0() >> 32) as u32;
        }
        (0xd, component @ 2..64) if guest_xcr0() & 1 << component == 0 => [a, b, c, d] = [0; 4],
        (0x8000_001e, _) => {
            a = 0;
            b &= !0xff;
        }
        _ => {}
    }
    [a, b, c, d]
}
