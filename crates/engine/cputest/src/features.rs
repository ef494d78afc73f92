//! Which of iced's features this CPU has, and user code may use.

use iced_x86::CpuidFeature;
use std::arch::is_x86_feature_detected as detected;
use std::arch::x86_64::{__cpuid, __cpuid_count};

/// True if the host has the feature. Features that this table does not know count as absent.
pub(crate) fn host_has(feature: CpuidFeature) -> bool {
    use CpuidFeature::*;
    let leaf1 = __cpuid(1);
    let leaf7 = __cpuid_count(7, 0);
    let extended = __cpuid(0x8000_0001);
    let extended8 = __cpuid(0x8000_0008);
    match feature {
        INTEL8086 | INTEL186 | INTEL286 | INTEL386 | INTEL486 | X64 | CMOV | CPUID | CX8 | FPU
        | FPU287 | FPU387 | FXSR | MMX | SSE | SSE2 | MULTIBYTENOP | PAUSE | CLFSH | SYSCALL
        | TSC => true,
        ADX => detected!("adx"),
        AES => detected!("aes"),
        AVX => detected!("avx"),
        AVX2 => detected!("avx2"),
        AVX512F => detected!("avx512f"),
        AVX512BW => detected!("avx512bw"),
        AVX512CD => detected!("avx512cd"),
        AVX512DQ => detected!("avx512dq"),
        AVX512VL => detected!("avx512vl"),
        AVX512_BF16 => detected!("avx512bf16"),
        AVX512_BITALG => detected!("avx512bitalg"),
        AVX512_IFMA => detected!("avx512ifma"),
        AVX512_VBMI => detected!("avx512vbmi"),
        AVX512_VBMI2 => detected!("avx512vbmi2"),
        AVX512_VNNI => detected!("avx512vnni"),
        AVX512_VPOPCNTDQ => detected!("avx512vpopcntdq"),
        BMI1 => detected!("bmi1"),
        BMI2 => detected!("bmi2"),
        CLFLUSHOPT => leaf7.ebx & 1 << 23 != 0,
        CLWB => leaf7.ebx & 1 << 24 != 0,
        CLZERO => extended8.ebx & 1 != 0,
        CLDEMOTE => leaf7.ecx & 1 << 25 != 0,
        CMPXCHG16B => detected!("cmpxchg16b"),
        D3NOW => extended.edx & 1 << 31 != 0,
        D3NOWEXT => extended.edx & 1 << 30 != 0,
        F16C => detected!("f16c"),
        FMA => detected!("fma"),
        FMA4 => extended.ecx & 1 << 16 != 0,
        FSGSBASE => leaf7.ebx & 1 != 0,
        GFNI => detected!("gfni"),
        LZCNT => detected!("lzcnt"),
        MOVBE => detected!("movbe"),
        MOVDIR64B => leaf7.ecx & 1 << 28 != 0,
        MOVDIRI => leaf7.ecx & 1 << 27 != 0,
        PCLMULQDQ => detected!("pclmulqdq"),
        POPCNT => detected!("popcnt"),
        PREFETCHW => extended.ecx & 1 << 8 != 0,
        SERIALIZE => leaf7.edx & 1 << 14 != 0,
        SHA => detected!("sha"),
        SSE3 => detected!("sse3"),
        SSE4A => detected!("sse4a"),
        SSE4_1 => detected!("sse4.1"),
        SSE4_2 => detected!("sse4.2"),
        SSSE3 => detected!("ssse3"),
        TBM => detected!("tbm"),
        VAES => detected!("vaes"),
        VPCLMULQDQ => detected!("vpclmulqdq"),
        XOP => extended.ecx & 1 << 11 != 0,
        XSAVE => leaf1.ecx & 1 << 27 != 0,
        XSAVEC => detected!("xsavec"),
        XSAVEOPT => detected!("xsaveopt"),
        AVX_VNNI => __cpuid_count(7, 1).eax & 1 << 4 != 0,
        _ => false,
    }
}
