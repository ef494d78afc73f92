//! The x87 and vector state, as XSAVE keeps it.

use crate::random::Random;
use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

const LEGACY_LEN: usize = 512;
const HEADER_LEN: usize = 64;
const MXCSR: usize = 24;
const XMM: usize = 160;
const OSXSAVE: u32 = 1 << 27;
/// x87, SSE, AVX, and the three components of AVX-512.
const COMPARED: u64 = 0b1110_0111;

/// How this CPU lays out its state.
#[derive(Clone, Debug)]
pub(crate) struct VectorLayout {
    /// Components that the kernel has enabled and that are compared.
    pub(crate) mask: u64,
    /// Bytes of the whole area.
    pub(crate) len: usize,
    /// Offset and size of each component from AVX on.
    extended: Vec<(u32, usize, usize)>,
}

impl VectorLayout {
    pub(crate) fn of_host() -> Option<Self> {
        if __cpuid(1).ecx & OSXSAVE == 0 {
            return None;
        }
        #[target_feature(enable = "xsave")]
        fn xcr0() -> u64 {
            // SAFETY: register 0 always exists where XSAVE does.
            unsafe { _xgetbv(0) }
        }
        // SAFETY: OSXSAVE says that the instruction is there.
        let mask = unsafe { xcr0() } & COMPARED;
        let extended = (2..64)
            .filter(|component| mask & 1 << component != 0)
            .map(|component| {
                let leaf = __cpuid_count(0xd, component);
                (component, leaf.ebx as usize, leaf.eax as usize)
            })
            .collect();
        Some(VectorLayout {
            mask,
            len: __cpuid_count(0xd, 0).ebx as usize,
            extended,
        })
    }

    /// A random state in which no exception is pending; `all_present` if no component may be in its initial state.
    pub(crate) fn random(&self, random: &mut Random, all_present: bool) -> Vec<u8> {
        let mut area = vec![0u8; self.len];
        random.fill(&mut area[32..LEGACY_LEN - 96]);
        let control = 0x7f | (random.below(16) as u16) << 8;
        area[0..2].copy_from_slice(&control.to_le_bytes());
        let status = (random.next() as u16) & 0x7f00;
        area[2..4].copy_from_slice(&status.to_le_bytes());
        area[4] = random.next() as u8;
        for register in 0..8 {
            // The six bytes after each 80-bit register are reserved.
            area[32 + 16 * register + 10..32 + 16 * register + 16].fill(0);
        }
        // Rounding, flush to zero, denormals are zero and the sticky bits at random; exceptions masked.
        let mut mxcsr = 0x1f80 | random.next() as u32 & 0xe07f;
        if random.percent(4) {
            // One exception unmasked, none of them recorded.
            mxcsr = (mxcsr & !0x3f) & !(1 << (7 + random.below(6)));
        }
        area[MXCSR..MXCSR + 4].copy_from_slice(&mxcsr.to_le_bytes());
        for (_, offset, len) in &self.extended {
            random.fill(&mut area[*offset..offset + len]);
        }
        // Sometimes a component is in its initial state, as after VZEROUPPER.
        let mut present = self.mask;
        if random.percent(20) && !all_present {
            present &= !(1 << random.below(3));
        }
        area[LEGACY_LEN..LEGACY_LEN + 8].copy_from_slice(&present.to_le_bytes());
        area
    }

    /// What of an area is state: absent components as their initial values, and without the address and opcode of
    /// the last x87 instruction, which are the host's.
    pub(crate) fn normal(&self, area: &[u8]) -> Vec<u8> {
        let present = u64::from_le_bytes(
            area[LEGACY_LEN..LEGACY_LEN + 8]
                .try_into()
                .expect("8 bytes"),
        );
        let mut normal = vec![0u8; self.len];
        normal[0..2].copy_from_slice(&0x37fu16.to_le_bytes());
        if present & 1 != 0 {
            normal[0..6].copy_from_slice(&area[0..6]);
            normal[32..XMM].copy_from_slice(&area[32..XMM]);
        }
        normal[MXCSR..MXCSR + 4].copy_from_slice(&area[MXCSR..MXCSR + 4]);
        if present & 2 != 0 {
            normal[XMM..XMM + 256].copy_from_slice(&area[XMM..XMM + 256]);
        }
        for (component, offset, len) in &self.extended {
            if present & 1 << component != 0 {
                let range = *offset..offset + len;
                normal[range.clone()].copy_from_slice(&area[range]);
            }
        }
        normal
    }

    /// Names the place of a byte of a normal area.
    pub(crate) fn place(&self, at: usize) -> String {
        match at {
            0..2 => "x87 control word".into(),
            2..4 => "x87 status word".into(),
            4 => "x87 tags".into(),
            24..28 => "mxcsr".into(),
            32..160 => format!("st({})", (at - 32) / 16),
            160..416 => format!("xmm{} byte {}", (at - XMM) / 16, (at - XMM) % 16),
            _ => format!(
                "vector state at {at}, after {} bytes of header",
                LEGACY_LEN + HEADER_LEN
            ),
        }
    }
}

/// Memory for XSAVE: 64-byte aligned.
#[derive(Debug)]
pub(crate) struct VectorArea {
    start: *mut u8,
    len: usize,
}

impl VectorArea {
    pub(crate) fn new(len: usize) -> Self {
        let layout = std::alloc::Layout::from_size_align(len, 64).expect("a small area");
        // SAFETY: the size is not 0.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!start.is_null(), "no memory");
        VectorArea { start, len }
    }

    pub(crate) fn address(&self) -> u64 {
        self.start as u64
    }

    pub(crate) fn set(&mut self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.len);
        // SAFETY: allocated in `new` with this length, never freed, and guest code runs only between our accesses.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start, self.len) }
    }

    pub(crate) fn get(&self) -> Vec<u8> {
        // SAFETY: as in `set`.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }.to_vec()
    }
}
