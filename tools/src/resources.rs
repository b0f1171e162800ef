//! What a binary needs of a multiprocessor (compute unit), and how many of its CTAs fit there.

use crate::codegen;
use linear_layout::target::{MatrixUnit, TargetDesc, Vendor};

/// What a binary needs, as `ptxas` or LLVM says, and how many CTAs a multiprocessor therefore holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resources {
    /// Registers of a thread: on AMD GPUs vector registers, accumulation registers among them.
    pub registers: u32,
    /// Bytes that a thread stores to spill registers; on AMD GPUs, where LLVM counts spilled registers, four for each.
    pub spill_stores: u32,
    /// Bytes that a thread loads of what it spilled; on AMD GPUs as many as it stores.
    pub spill_loads: u32,
    /// Bytes of a thread's stack.
    pub stack: u32,
    /// CTAs that a multiprocessor (compute unit) holds at once: as registers, shared memory, warps and CTAs limit them.
    pub ctas: u32,
    /// Warps (waves) of these.
    pub warps: u32,
    /// Warps (waves) that a multiprocessor (compute unit) can hold.
    pub most_warps: u32,
}

/// Shared memory of a multiprocessor that the system takes for each CTA (CUDA programming guide, "Shared Memory").
const RESERVED: u64 = 1 << 10;

/// How many registers of a lane are given out at once.
///
/// CUDA programming guide, "Technical Specifications per Compute Capability"; LLVM's `AMDGPUBaseInfo` (`getVGPRAllocGranule`).
fn register_granule(target: &TargetDesc) -> u32 {
    match target.matrix_unit {
        _ if target.vendor == Vendor::Nvidia => 8,
        MatrixUnit::Rdna3 | MatrixUnit::Rdna4 => 24,
        MatrixUnit::Cdna5 => 16,
        _ => 8,
    }
}

impl Resources {
    /// As JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "registers": self.registers,
            "spill_stores": self.spill_stores,
            "spill_loads": self.spill_loads,
            "stack": self.stack,
            "ctas": self.ctas,
            "warps": self.warps,
            "most_warps": self.most_warps,
            "occupancy": self.occupancy(),
        })
    }

    /// The share of the warps that a multiprocessor can hold which it does hold.
    pub fn occupancy(&self) -> f64 {
        if self.most_warps == 0 { 0.0 } else { f64::from(self.warps) / f64::from(self.most_warps) }
    }

    /// From what `ptxas -v` prints: "Used 24 registers", "16 bytes stack frame, 8 bytes spill stores, 8 bytes spill
    /// loads".
    pub(crate) fn of_ptxas(log: &str) -> Option<Self> {
        // Remarks may have the words, too: "to allow use of registers defined by GMMA".
        let before = |marker: &str| {
            log.match_indices(marker)
                .find_map(|(at, _)| log[..at].split_whitespace().next_back()?.parse().ok())
        };
        Some(Self {
            registers: before(" registers")?,
            spill_stores: before(" bytes spill stores").unwrap_or(0),
            spill_loads: before(" bytes spill loads").unwrap_or(0),
            stack: before(" bytes stack frame").unwrap_or(0),
            ..Self::default()
        })
    }

    /// From what LLVM writes down of an AMD kernel, in assembly and in object files (AMDGPU usage, "Code Object V3 Metadata").
    pub(crate) fn of_amd(code: &[u8]) -> Option<Self> {
        let number = |key: &[u8]| codegen::number_of(code, key).and_then(|n| u32::try_from(n).ok());
        let spilled = number(b".vgpr_spill_count")?.saturating_mul(4);
        Some(Self {
            registers: number(b".vgpr_count")?,
            spill_stores: spilled,
            spill_loads: spilled,
            stack: number(b".private_segment_fixed_size")?,
            ..Self::default()
        })
    }

    /// With the CTAs of `warps` warps and `shared` bytes of shared memory that fit.
    pub(crate) fn on(mut self, target: &TargetDesc, warps: u32, shared: u64) -> Self {
        let simds = target.resident_threads / target.lanes / target.simd_waves;
        let given = self.registers.max(1).next_multiple_of(register_granule(target));
        let by_registers = target.simd_registers / given;
        self.most_warps = simds * target.simd_waves;
        let reserved = if target.vendor == Vendor::Nvidia { RESERVED } else { 0 };
        let by_shared = (target.shared_bytes + reserved).checked_div(shared + reserved);
        let by_warps = simds * by_registers.min(target.simd_waves) / warps.max(1);
        // A workgroup of one wave needs no barrier, which is what AMD's compute units have so many of.
        let of_one_wave = target.vendor == Vendor::Amd && warps <= 1;
        let by_ctas = if of_one_wave { self.most_warps } else { target.resident_ctas };
        let by_shared = by_shared.and_then(|ctas| u32::try_from(ctas).ok()).unwrap_or(u32::MAX);
        let fit = by_warps.min(by_shared).min(by_ctas);
        // What is too large for one of RDNA's compute units runs on two, a workgroup processor.
        self.ctas = if target.vendor == Vendor::Amd { fit.max(1) } else { fit };
        self.warps = self.ctas * warps;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(target: &str, registers: u32, warps: u32, shared: u64) -> (u32, u32, u32) {
        let target = TargetDesc::parse(target).expect("a target");
        let Resources { ctas, warps, most_warps, .. } =
            Resources { registers, ..Resources::default() }.on(&target, warps, shared);
        (ctas, warps, most_warps)
    }

    #[test]
    fn ctas_are_limited_by_what_there_is_least_of() {
        // Registers: 65,536 hold 32 warps with 64 each, 8 with 255.
        assert_eq!(on("cuda:90", 64, 4, 0), (8, 32, 64));
        assert_eq!(on("cuda:90", 255, 4, 0), (2, 8, 64));
        assert_eq!(on("cuda:90", 255, 8, 0), (1, 8, 64));
        // A SIMD holds 4 warps with 100 registers, which are 104: three CTAs of five warps.
        assert_eq!(on("cuda:90", 100, 5, 0), (3, 15, 64));
        // Warps, then CTAs.
        assert_eq!(on("cuda:90", 16, 4, 0), (16, 64, 64));
        assert_eq!(on("cuda:90", 16, 1, 0), (32, 32, 64));
        // Shared memory: 228 KiB, of which each CTA takes one besides.
        assert_eq!(on("cuda:90", 32, 4, 75 << 10), (3, 12, 64));
        assert_eq!(on("cuda:90", 32, 4, (75 << 10) + 1), (2, 8, 64));
        assert_eq!(on("cuda:90", 168, 8, 227 << 10), (1, 8, 64));
    }

    #[test]
    fn compute_units_have_simds_with_registers_of_their_own() {
        // CDNA: 512 of a lane, 8 at once; four SIMDs with up to eight waves.
        assert_eq!(on("hip:gfx942", 128, 4, 0), (4, 16, 32));
        assert_eq!(on("hip:gfx942", 129, 4, 0), (3, 12, 32));
        assert_eq!(on("hip:gfx942", 24, 4, 33 << 10), (1, 4, 32));
        assert_eq!(on("hip:gfx942", 24, 1, 0), (32, 32, 32));
        assert_eq!(on("hip:gfx942", 24, 2, 0), (16, 32, 32));
        // RDNA: 1536 of a lane, 24 at once; two SIMDs with up to sixteen waves.
        assert_eq!(on("hip:gfx1100", 96, 4, 0), (8, 32, 32));
        assert_eq!(on("hip:gfx1100", 97, 4, 0), (6, 24, 32));
        assert_eq!(on("hip:gfx1250", 1024, 4, 0), (1, 4, 32));
    }

    /// "Occupancy" in the assembly that llc 22 writes of kernels of the corpus: waves of a SIMD.
    #[test]
    fn simds_hold_as_many_waves_as_llvm_says() {
        for (target, registers, waves) in [
            ("hip:gfx90a", 208, 2),
            ("hip:gfx942", 45, 8),
            ("hip:gfx950", 188, 2),
            ("hip:gfx950", 68, 7),
            ("hip:gfx1100", 256, 5),
            ("hip:gfx1100", 233, 6),
            ("hip:gfx1201", 112, 12),
            ("hip:gfx1250", 73, 12),
            ("hip:gfx1250", 160, 6),
        ] {
            let (_, warps, most) = on(target, registers, 1, 0);
            let simds = most / TargetDesc::parse(target).expect("a target").simd_waves;
            assert_eq!(warps, waves * simds, "{target}, {registers} registers");
        }
    }

    #[test]
    fn what_ptxas_and_llvm_say_is_read() {
        let log = "ptxas info : 16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\nUsed 24 registers, 1 barriers";
        let read = Resources::of_ptxas(log).expect("all is there");
        assert_eq!((read.registers, read.spill_stores, read.spill_loads, read.stack), (24, 8, 12, 16));
        let remark = "ptxas info    : (C7517) wgmma.wait_group is injected by compiler to allow use of registers defined by GMMA\n";
        assert_eq!(Resources::of_ptxas(&format!("{remark}{log}")), Some(read));
        assert_eq!(Resources::of_ptxas("nothing"), None);
        assert_eq!(Resources::of_ptxas(remark), None);
        let text =
            b"    .private_segment_fixed_size: 20\n    .vgpr_count:     64\n    .vgpr_spill_count: 3\n";
        let read = Resources::of_amd(text).expect("all is there");
        assert_eq!((read.registers, read.spill_stores, read.spill_loads, read.stack), (64, 12, 12, 20));
        assert_eq!(Resources::of_amd(b".vgpr_count: 64"), None);
        assert_eq!(Resources::default().occupancy(), 0.0);
    }
}
