//! The budget in the guest's place: what a fault in translated code finds in vector register 15.

use crate::context::VectorSlot;
use std::arch::x86_64::__cpuid_count;
use std::ops::Range;

/// Where the header of a standard XSAVE image says which components are not in their initial state.
const PRESENT: usize = 512;
const XMM15: usize = 160 + 15 * 16;
const LEAF_XSAVE: u32 = 0xd;

/// A part of vector register 15 in a standard XSAVE image.
struct Part {
    component: u32,
    /// All of the component.
    region: Range<usize>,
    /// Our register in it.
    at: usize,
    /// The part of the register.
    bytes: Range<usize>,
}

/// Takes the budget out of the image of a thread that was interrupted in translated code, and puts the guest's own
/// register in its place.
pub fn swap_counter(image: &mut [u8], guest: &VectorSlot, xsave_mask: u64) -> i64 {
    let mut present = word(image, PRESENT);
    let budget = if present & 2 != 0 {
        word(image, XMM15) as i64
    } else {
        0
    };
    for part in parts(xsave_mask) {
        let value = &guest.0[part.bytes];
        if present & 1 << part.component == 0 {
            // All of it is 0, whatever lies in the image.
            if value.iter().all(|byte| *byte == 0) {
                continue;
            }
            image[part.region].fill(0);
            present |= 1 << part.component;
        }
        image[part.at..part.at + value.len()].copy_from_slice(value);
    }
    image[PRESENT..PRESENT + 8].copy_from_slice(&present.to_le_bytes());
    budget
}

fn parts(xsave_mask: u64) -> impl Iterator<Item = Part> {
    let low = Part {
        component: 1,
        region: 160..416,
        at: XMM15,
        bytes: 0..16,
    };
    let upper = [(2, 16..32), (6, 32..64)]
        .into_iter()
        .filter(move |(component, _)| xsave_mask & 1 << component != 0)
        .map(|(component, bytes)| {
            let leaf = __cpuid_count(LEAF_XSAVE, component);
            let start = leaf.ebx as usize;
            Part {
                component,
                region: start..start + leaf.eax as usize,
                at: start + 15 * bytes.len(),
                bytes,
            }
        });
    std::iter::once(low).chain(upper)
}

fn word(image: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(image[at..at + 8].try_into().expect("eight bytes"))
}
