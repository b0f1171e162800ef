//! `wgmma.mma_async`: shared-memory descriptors and the part of one warp.
//!
//! A warp group of four warps multiplies 64 × k by k × n; warp *w* of it has rows 16·w to 16·w + 15. The
//! accumulators are laid out as those of `mma.m16n8` side by side, A in registers as for `mma` (PTX ISA,
//! "Register Fragments and Shared Memory Matrix Layouts" of wgmma).
//!
//! # Descriptors
//!
//! | bits | field |
//! | --- | --- |
//! | 0–13 | start address / 16 |
//! | 16–29 | leading dimension byte offset (LBO) / 16 |
//! | 32–45 | stride dimension byte offset (SBO) / 16 |
//! | 49–51 | base offset |
//! | 62–63 | swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes |
//!
//! With *i* the row of A or column of B, *k* the depth, both in elements of *T* bytes, and *S* the swizzle
//! width, the byte offset before swizzling is
//!
//! * K-major, swizzled: SBO·(i / 8) + S·(i mod 8) + T·k
//! * K-major, not swizzled: SBO·(i / 8) + 16·(i mod 8) + LBO·(T·k / 16) + T·k mod 16
//! * MN-major, swizzled, *c* = S / T: LBO·(i / c) + T·(i mod c) + S·(k mod 8) + SBO·(k / 8)
//! * MN-major, not swizzled, *c* = 16 / T: SBO·(i / c) + T·(i mod c) + 16·(k mod 8) + LBO·(k / 8)
//!
//! and swizzling XORs address bits 7… into bits 4… (three, two or one of them).

use crate::bytecode::{Elem, Wgmma};

/// Whether this form exists.
pub fn supported(w: &Wgmma) -> bool {
    let depth = match w.ab.0 {
        Elem::F16 | Elem::BF16 => 16,
        Elem::Tf32 => 8,
        Elem::E4M3 | Elem::E5M2 | Elem::S8 | Elem::U8 => 32,
        _ => return false,
    };
    let words = match w.cd {
        Elem::F32 => w.n / 2,
        Elem::S32 if matches!(w.ab.0, Elem::S8 | Elem::U8) => w.n / 2,
        Elem::F16 => w.n / 4,
        _ => return false,
    };
    let narrow = !matches!(w.ab.0, Elem::F16 | Elem::BF16);
    w.k == depth
        && w.n.is_multiple_of(8)
        && (8..=256).contains(&w.n)
        && w.d.len() == words as usize
        && w.c.len() == w.d.len()
        && matches!(w.a.len(), 1 | 4)
        && !(narrow && (w.trans.0 || w.trans.1))
}

/// A decoded descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    start: u32,
    lbo: u32,
    sbo: u32,
    /// Swizzle width in bytes; 16 without swizzle.
    swizzle: u32,
    /// Whether the base offset is zero, which is all that is supported.
    pub plain: bool,
}

impl Descriptor {
    /// Decodes the 64 bits.
    pub fn new(bits: u64) -> Descriptor {
        let field = |at: u32| ((bits >> at) as u32 & 0x3fff) << 4;
        let swizzle = match bits >> 62 {
            0 => 16,
            1 => 128,
            2 => 64,
            _ => 32,
        };
        Descriptor { start: field(0), lbo: field(16), sbo: field(32), swizzle, plain: bits >> 49 & 7 == 0 }
    }

    /// The address of element (i, k) of `t` bytes; `mn` for MN-major.
    pub fn address(&self, i: u32, k: u32, t: u32, mn: bool) -> u32 {
        let s = self.swizzle;
        let linear = match (mn, s) {
            (false, 16) => self.sbo * (i / 8) + 16 * (i % 8) + self.lbo * (t * k / 16) + t * k % 16,
            (false, _) => self.sbo * (i / 8) + s * (i % 8) + t * k,
            (true, 16) => {
                let c = 16 / t;
                self.sbo * (i / c) + t * (i % c) + 16 * (k % 8) + self.lbo * (k / 8)
            }
            (true, _) => {
                let c = s / t;
                self.lbo * (i / c) + t * (i % c) + s * (k % 8) + self.sbo * (k / 8)
            }
        };
        swizzled(self.start + linear, s)
    }
}

/// Applies a swizzle of the given width to an address.
pub fn swizzled(address: u32, width: u32) -> u32 {
    let mask = width / 16 - 1;
    address ^ ((address >> 7 & mask) << 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_of_a_swizzled_k_major_tile() {
        // Start 0x2000, SBO 1024, 128-byte swizzle.
        let d = Descriptor::new(0x4000_0040_0000_0200);
        assert_eq!(d, Descriptor { start: 0x2000, lbo: 0, sbo: 1024, swizzle: 128, plain: true });
        assert_eq!(d.address(0, 0, 2, false), 0x2000);
        assert_eq!(d.address(1, 0, 2, false), 0x2090);
        assert_eq!(d.address(9, 8, 2, false), 0x2480);
    }

    #[test]
    fn every_mode_maps_distinct_elements_to_distinct_addresses() {
        for (mode, lbo, sbo) in [(0u64, 128u64, 256u64), (1, 0, 1024), (2, 0, 512), (3, 0, 256)] {
            let d = Descriptor::new(mode << 62 | (sbo / 16) << 32 | (lbo / 16) << 16);
            let mut all: Vec<u32> = (0..64)
                .flat_map(|i| (0..16).map(move |k| (i, k)))
                .map(|(i, k)| d.address(i, k, 2, false))
                .collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 1024, "mode {mode}");
        }
        for (mode, lbo, sbo) in [(1u64, 2048u64, 1024u64), (2, 2048, 512), (3, 1024, 256), (0, 128, 256)] {
            let d = Descriptor::new(mode << 62 | (sbo / 16) << 32 | (lbo / 16) << 16);
            let mut all: Vec<u32> = (0..64)
                .flat_map(|i| (0..16).map(move |k| (i, k)))
                .map(|(i, k)| d.address(i, k, 2, true))
                .collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 1024, "MN mode {mode}");
        }
    }
}
