//! Budget and log in the guest's place: what a fault in translated code finds in vector register 15.

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

/// What of the guest's vector register 15 is where it belongs while translated code runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InPlace {
    /// Nothing: budget and log are there, and the guest's own is in [`crate::Context::guest_vector`].
    #[default]
    Nothing,
    /// Its low 16 bytes; the others are in [`crate::Context::guest_vector`], budget and log in the context.
    Low,
    /// All of it; budget and log are in the context.
    Whole,
}

/// What is in vector register 15 while translated code runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counters {
    /// See [`crate::Context::budget`].
    pub budget: i64,
    /// See [`crate::Context::log_next`].
    pub log_next: u64,
}

/// Puts the guest's own register into the image of a thread that was interrupted in translated code. Returns what was
/// in its place.
pub fn restore_vector(
    image: &mut [u8],
    guest: &VectorSlot,
    in_place: InPlace,
    xsave_mask: u64,
) -> Option<Counters> {
    let mut present = word(image, PRESENT);
    let counter = |at| if present & 2 != 0 { word(image, at) } else { 0 };
    let counters = match in_place {
        InPlace::Nothing => Some(Counters {
            budget: counter(XMM15) as i64,
            log_next: counter(XMM15 + 8),
        }),
        InPlace::Low => None,
        InPlace::Whole => return None,
    };
    let low_is_there = usize::from(in_place == InPlace::Low);
    for part in parts(xsave_mask).skip(low_is_there) {
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
    counters
}

/// The parts of the register, the lowest first.
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
