//! Where everything lies in the executor's address space.
//!
//! Translated code reaches guest images, code cache and context by 32-bit displacements and immediates, so
//! all of them live below 2 GB. The guest's heap, mappings and stacks live high, far from the host's own.

/// Guest PIE images, interpreters and shared libraries.
pub const IMAGES_START: u64 = 0x1000_0000;
/// End of the images' region (exclusive).
pub const IMAGES_END: u64 = 0x4000_0000;
/// Where a position-independent program is placed.
pub const PIE_BASE: u64 = IMAGES_START;

/// Code cache as it is executed.
pub const CACHE_START: u64 = 0x4000_0000;
/// Where the cache's first code lies: the way out of a block through a link that does not lead to a block yet.
pub const CACHE_LINK_EXIT: u64 = CACHE_START;
/// Where every way in begins: puts the budget into its register and goes on at [`crate::Context::resume`].
pub const CACHE_ENTER: u64 = CACHE_START + 0x80;
/// Two words, of which the first has only its sign set.
pub const CACHE_SIGN: u64 = CACHE_START + 0xc0;
/// What is added to the budget: pairs of an amount and 0, from -[`CHARGE_MAX`] to [`GIVEN_BACK_MAX`]. They lie where the guest
/// cannot write: with other amounts it would never come back.
pub const CACHE_CHARGES: u64 = CACHE_START + 0x100;
/// Largest amount that is taken off the budget at once.
pub const CHARGE_MAX: i32 = 128;
/// Largest amount that is added to it at once where a one-off block is left early.
pub const GIVEN_BACK_MAX: i32 = 48;
/// The same for paths that log: pairs of an amount and how many bytes the log grows by. For each number of words, from 0 to
/// [`LOGGED_MAX`], the amounts from 0 to -[`CHARGE_MAX`].
pub const CACHE_LOGGED_CHARGES: u64 = CACHE_START + 0x1000;
/// Most words of the log that are counted at once.
pub const LOGGED_MAX: u64 = 63;
/// What is credited to those who arrive at a block that carries something: pairs of an amount and how many bytes the log shrinks
/// by. For each number of words, from 0 to [`CARRIED_WORDS_MAX`], the amounts from 0 to [`CARRIED_MAX`].
pub const CACHE_CREDITS: u64 =
    CACHE_LOGGED_CHARGES + 16 * (LOGGED_MAX + 1) * (CHARGE_MAX as u64 + 1);
/// Most instructions that are credited.
pub const CARRIED_MAX: u64 = 80;
/// Most words of the log that are taken back.
pub const CARRIED_WORDS_MAX: u64 = 24;
/// Where every way out of translated code ends: takes the budget out of its register and leaves.
pub const CACHE_LEAVE: u64 = CACHE_START + 0xd00;
/// Where the code that differs from run to run begins.
pub const CACHE_FREE: u64 = CACHE_CREDITS + 16 * (CARRIED_WORDS_MAX + 1) * (CARRIED_MAX + 1);
/// Bytes reserved for the code cache.
pub const CACHE_LEN: u64 = 0x1000_0000;

/// First-level table of indirect branches: 64 K pointers, indexed by the low 16 bits of the target.
pub const TABLE1: u64 = 0x6000_0000;
/// Entries in the first-level table.
pub const TABLE1_ENTRIES: u64 = 1 << 16;
/// Second-level table: pairs of guest address and pad.
pub const TABLE2: u64 = 0x6100_0000;
/// Entries in the second-level table.
pub const TABLE2_ENTRIES: u64 = 1 << 18;

/// A byte for each eight bytes of memory that may hold something atomic; what is far apart shares bytes.
pub const ATOMIC_MARKS: u64 = 0x6800_0000;
/// How many of these bytes there are, a power of two.
pub const ATOMIC_MARKS_LEN: u64 = 1 << 20;
/// What stands for all shadows once the guest has mapped memory where they were.
pub const NO_SHADOW: u64 = ATOMIC_MARKS + ATOMIC_MARKS_LEN;
/// Bytes of that.
pub const NO_SHADOW_LEN: u64 = PAGE;
const _: () = assert!(NO_SHADOW + NO_SHADOW_LEN <= CONTEXT);

/// The shadow of a byte of the guest (see the translator's `sieve`) is so far beyond it. Shadows lie in the upper half of each 16 TB, and
/// in a little more: those of a last byte must not reach beyond it.
pub const SHADOW_BASE: u64 = (1 << 43) - SHADOW_SLACK;
const SHADOW_SLACK: u64 = 1 << 16;
/// From one part of the shadows to the next.
pub const SHADOW_STEP: u64 = 1 << 44;
/// Parts of the shadows.
pub const SHADOW_PARTS: u64 = 4;
/// Bytes of each.
pub const SHADOW_LEN: u64 = SHADOW_STEP - SHADOW_BASE;
/// Where the shadows of the first thread's stack begin, which is in none of these parts.
pub const STACK_SHADOW: u64 = STACK_TOP - STACK_LEN + SHADOW_BASE;
/// Bytes of them, and of what an access at the top of the stack reaches.
pub const STACK_SHADOW_LEN: u64 = STACK_LEN + SHADOW_SLACK;
/// Up to here, the shadows of addresses are also those of offsets from the thread's fs base with the same lower 32 bits: nearly all of
/// these are a little less than 0.
const LOCALS_END: u64 = 1 << 32;
/// And from here on.
const LOCALS_START: u64 = LOCALS_END - (1 << 30);

/// True if the guest's memory at these addresses has shadows of its own, and is nobody's shadow.
pub const fn has_shadow(start: u64, end: u64) -> bool {
    let is_stack = start >= STACK_TOP - STACK_LEN && end <= STACK_TOP;
    let in_one = start / SHADOW_STEP == (end - 1) / SHADOW_STEP;
    let is_locals = start < LOCALS_END && end > LOCALS_START;
    is_stack
        || start / SHADOW_STEP < SHADOW_PARTS
            && in_one
            && (end - 1) % SHADOW_STEP < SHADOW_BASE
            && !is_locals
}

/// The page of the [`crate::Context`].
///
/// AMD's processors find a line in the first-level cache by a hash of address bits 12 to 27 (bit 12 with bit 27, 13 with
/// 26, 14 with 25, 15 to 19 with 20 to 24), and of two lines of one set with the same hash only one is found at a time.
/// The first pages of the heap and of the mappings and the top of the stack have hash 0; this page has the opposite.
pub const CONTEXT: u64 = 0x7ff0_0000;
/// Bytes of the context mapping.
pub const CONTEXT_LEN: u64 = 0x1000;

/// Everything from here to [`ENGINE_LOW_END`] belongs to the engine, not to the guest.
pub const ENGINE_LOW_START: u64 = CACHE_START;
/// End of the engine's part of the low 2 GB.
pub const ENGINE_LOW_END: u64 = 0x8000_0000;

/// The guest's brk heap, which may grow up to [`MMAP_START`].
pub const BRK_START: u64 = 0x1000_0000_0000;
/// Guest mappings without an address of their own choosing grow upwards from here.
pub const MMAP_START: u64 = 0x2000_0000_0000;
/// End of the region of guest mappings.
pub const MMAP_END: u64 = 0x5000_0000_0000;
/// Top of the first thread's stack.
pub const STACK_TOP: u64 = 0x5100_0000_0000;
/// Largest size of the first thread's stack.
pub const STACK_LEN: u64 = 8 << 20;
/// No guest mapping may reach past this address: host code and host heap lie above.
pub const GUEST_END: u64 = 0x5200_0000_0000;

/// Page size of x86-64.
pub const PAGE: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_shadows_of_its_own_shares_them_with_nothing_else_that_has() {
        let ranges = [
            (0x40_0000, 0x50_0000),
            (IMAGES_START, IMAGES_END),
            (BRK_START, BRK_START + (1 << 39)),
            (MMAP_START, MMAP_START + (1 << 42)),
            (STACK_TOP - STACK_LEN, STACK_TOP),
        ];
        let mut shadows = ranges.map(|(start, end)| {
            assert!(has_shadow(start, end), "{start:#x}");
            let shadow = start + SHADOW_BASE;
            assert!(!has_shadow(shadow, shadow + PAGE), "{start:#x}");
            (shadow, shadow + (end - start))
        });
        shadows.sort_unstable();
        assert!(shadows.is_sorted_by(|before, after| before.1 <= after.0));
    }

    #[test]
    fn what_would_share_them_has_none() {
        for start in [
            LOCALS_START,
            LOCALS_END - PAGE,
            MMAP_END - PAGE,
            SHADOW_BASE,
            SHADOW_STEP - PAGE,
        ] {
            assert!(!has_shadow(start, start + PAGE), "{start:#x}");
        }
        assert!(!has_shadow(BRK_START, MMAP_START + PAGE));
    }
}
