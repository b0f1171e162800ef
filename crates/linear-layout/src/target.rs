//! What a plan needs to know about a GPU: how wide its warps, banks and vectors are, which instructions
//! move data, and what they cost.
//!
//! Every number is a plain field with its unit in its name or its comment, so that a plan depends on a
//! [`TargetDesc`] and on nothing else about the machine.

use std::fmt;

use smallvec::SmallVec;

/// Who makes the GPU: it decides the families of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// PTX instructions: `ld.shared`, `ldmatrix`, `shfl.sync`.
    Nvidia,
    /// AMDGCN instructions: `ds_read`, `ds_write`, DPP, `ds_bpermute`.
    Amd,
}

/// The instructions that move data between lanes or between registers and shared memory, beyond plain
/// loads, stores and indexed shuffles, which every target has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Primitives {
    /// `ldmatrix.m8n8.{x1,x2,x4}[.trans].b16` (PTX ISA, sm_75 on).
    pub ldmatrix: bool,
    /// `stmatrix.m8n8.{x1,x2,x4}[.trans].b16` (PTX ISA, sm_90 on).
    pub stmatrix: bool,
    /// `ldmatrix.m16n16.trans.b8` and `stmatrix.m16n8.trans.b8` (PTX ISA, sm_100a on).
    pub matrix_b8: bool,
    /// `cp.async` of 4, 8 or 16 bytes (PTX ISA, sm_80 on).
    pub cp_async: bool,
    /// Bulk tensor copies, `cp.async.bulk.tensor` (PTX ISA, sm_90 on).
    pub bulk_copy: bool,
    /// … that take the numbers of four rows, `.tile::gather4` and `.tile::scatter4` (PTX ISA, sm_100 on).
    pub bulk_rows: bool,
    /// `wgmma.mma_async` with operands in shared memory (PTX ISA, sm_90a only).
    pub wgmma: bool,
    /// `redux.sync` of 32-bit integers (PTX ISA, sm_80 on).
    pub redux: bool,
    /// Thread blocks in clusters with distributed shared memory (PTX ISA, sm_90 on).
    pub clusters: bool,
    /// `red.global.add` of vectors of 128 bits of floats, and atomic sums of `bf16` (PTX ISA, sm_90 on).
    pub atomic_vectors: bool,
    /// `ds_read_b96`/`ds_read_b128` and the writes (CDNA and RDNA).
    pub ds_b128: bool,
    /// `ds_read_b64_tr_b16` and `_b8` (CDNA4 ISA): loads transposed within 16 lanes.
    pub ds_read_tr: bool,
    /// `quad_perm` and rotations within rows of 16 lanes as part of a vector instruction (DPP).
    pub dpp: bool,
    /// `row_xmask`: XOR with any mask below 16 by DPP (RDNA).
    pub dpp_row_xmask: bool,
    /// `v_permlanex16`: a lane of the other half of 32 (RDNA).
    pub permlanex16: bool,
    /// `v_permlane16_swap` and `v_permlane32_swap` (CDNA4).
    pub permlane_swap: bool,
    /// `ds_swizzle_b32`: XOR within 32 lanes through the crossbar of the LDS, no address register.
    pub ds_swizzle: bool,
}

/// What instructions cost, in cycles of one multiprocessor (compute unit), for one warp.
///
/// Throughputs are per warp instruction when the pipeline is full; latencies are paid once per dependent
/// step. NVIDIA: CUDA programming guide, "Arithmetic Instructions", results per cycle per multiprocessor
/// (32 for shuffles, 64 for selects and byte permutes), and 128 bytes of shared memory per cycle. AMD: one
/// vector instruction of 64 lanes takes four cycles on one of four SIMDs, and the LDS moves one line per
/// cycle (CDNA3 ISA, "Data Share Operations").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// One select, byte permute or logic instruction.
    pub alu: f64,
    /// One exchange of 32 bits between lanes by index.
    pub shuffle: f64,
    /// One exchange by XOR through a fixed pattern (DPP, permlane) where the target has it.
    pub fixed_shuffle: f64,
    /// One pass of the shared memory over one line of its banks.
    pub wavefront: f64,
    /// Issuing one shared-memory instruction, besides its wavefronts.
    pub issue: f64,
    /// From a shuffle to the use of its result.
    pub shuffle_latency: f64,
    /// From a shared-memory load to the use of its result; a store counts half.
    pub shared_latency: f64,
    /// A barrier of the lanes of a warp.
    pub warp_barrier: f64,
    /// A barrier of the warps of a block.
    pub block_barrier: f64,
    /// A barrier of the blocks of a cluster.
    pub cluster_barrier: f64,
    /// How many times slower the shared memory of another block is.
    pub remote_factor: f64,
}

/// Whether shared memory is read or written: some targets serve lanes in different orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Registers to memory.
    Store,
    /// Memory to registers.
    Load,
}

/// One GPU architecture, as far as moving data goes.
///
/// ```
/// use linear_layout::target::{Direction, TargetDesc};
/// let hopper = TargetDesc::parse("cuda:90")?;
/// assert_eq!((hopper.lanes, hopper.banks, hopper.bank_width), (32, 32, 4));
/// assert!(hopper.primitives.stmatrix);
/// // 16-byte accesses are served for eight lanes at a time: 128 bytes, one line.
/// assert_eq!(hopper.phase_lanes(16, Direction::Load).as_slice(), &[1, 2, 4]);
/// let error = TargetDesc::parse("cuda:20").unwrap_err().to_string();
/// assert!(error.contains("cuda:80") && error.contains("hip:gfx942"));
/// # Ok::<(), linear_layout::target::UnknownTarget>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TargetDesc {
    /// The name that [`parse`](Self::parse) takes: `cuda:90`, `hip:gfx942`.
    pub name: &'static str,
    /// Family of instructions.
    pub vendor: Vendor,
    /// Lanes of a warp (wave). A power of two.
    pub lanes: u32,
    /// Banks of shared memory. A power of two.
    pub banks: u32,
    /// Bytes of one bank in one line. A power of two.
    pub bank_width: u32,
    /// Widest access of one lane to shared memory, in bits.
    pub max_vector_bits: u32,
    /// Widest access of one lane to global memory, in bits.
    pub max_global_vector_bits: u32,
    /// Shared memory that one block can have, in bytes.
    pub shared_bytes: u64,
    /// What else there is.
    pub primitives: Primitives,
    /// What it costs.
    pub cost: CostModel,
}

/// A target name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown target `{name}`; known are {}", TargetDesc::NAMES.join(", "))]
pub struct UnknownTarget {
    /// The name given.
    pub name: String,
}

const NVIDIA_COST: CostModel = CostModel {
    alu: 0.5,
    shuffle: 1.0,
    fixed_shuffle: 1.0,
    wavefront: 1.0,
    issue: 0.5,
    shuffle_latency: 24.0,
    shared_latency: 30.0,
    warp_barrier: 4.0,
    block_barrier: 20.0,
    cluster_barrier: 190.0,
    remote_factor: 2.0,
};

const AMD_COST: CostModel = CostModel {
    alu: 1.0,
    shuffle: 2.0,
    fixed_shuffle: 1.0,
    wavefront: 1.0,
    issue: 1.0,
    shuffle_latency: 50.0,
    shared_latency: 64.0,
    warp_barrier: 1.0,
    block_barrier: 24.0,
    cluster_barrier: 24.0,
    remote_factor: 1.0,
};

impl TargetDesc {
    /// The names that [`parse`](Self::parse) knows.
    pub const NAMES: [&'static str; 10] = [
        "cuda:80",
        "cuda:86",
        "cuda:89",
        "cuda:90",
        "cuda:100",
        "hip:gfx90a",
        "hip:gfx942",
        "hip:gfx950",
        "hip:gfx1100",
        "hip:gfx1201",
    ];

    /// The description of a target by name. A trailing feature letter (`cuda:90a`) is ignored.
    ///
    /// # Errors
    /// An unknown name; the message lists the known ones.
    pub fn parse(name: &str) -> Result<TargetDesc, UnknownTarget> {
        let unknown = || UnknownTarget { name: name.to_owned() };
        let base = match name.strip_prefix("cuda:") {
            Some(arch) => format!("cuda:{}", arch.strip_suffix(['a', 'f']).unwrap_or(arch)),
            None => name.to_owned(),
        };
        let known = Self::NAMES.into_iter().find(|&n| n == base).ok_or_else(unknown)?;
        Ok(match known.strip_prefix("cuda:") {
            Some(arch) => nvidia(known, arch),
            None => amd(known, known.trim_start_matches("hip:")),
        })
    }

    /// Every known target.
    pub fn all() -> impl Iterator<Item = TargetDesc> {
        Self::NAMES.into_iter().filter_map(|name| Self::parse(name).ok())
    }

    /// log2 of the lanes of a warp.
    pub fn lane_bits(&self) -> u32 {
        self.lanes.trailing_zeros()
    }

    /// Bytes of one line: all the banks side by side.
    pub fn line_bytes(&self) -> u32 {
        self.banks * self.bank_width
    }

    /// The lanes that shared memory serves together when each accesses `bytes`: a basis of a space of lane
    /// numbers. The warp is served one coset of that space after the other, each a *phase*; bank conflicts
    /// happen only within one.
    ///
    /// Lanes of one phase access at most one line together. CDNA serves 16-byte reads in groups of lanes
    /// that are not consecutive: 0–3 with 20–23, 4–7 with 16–19, and so on (AMD, "Avoiding LDS Bank
    /// Conflicts on AMD GPUs Using CK-Tile Framework").
    pub fn phase_lanes(&self, bytes: u32, direction: Direction) -> SmallVec<[u64; 6]> {
        let together = self.line_bytes() / bytes.clamp(self.bank_width, self.line_bytes());
        let bits = together.min(self.lanes).trailing_zeros();
        let scattered = matches!(self.name, "hip:gfx90a" | "hip:gfx942");
        if scattered && bytes == 16 && direction == Direction::Load {
            return SmallVec::from_slice(&[1, 2, 20]);
        }
        (0..bits).map(|i| 1 << i).collect()
    }

    /// How many phases an access of `bytes` per lane takes: the least number of wavefronts of one
    /// instruction.
    pub fn phases(&self, bytes: u32, direction: Direction) -> u32 {
        self.lanes >> self.phase_lanes(bytes, direction).len()
    }
}

impl fmt::Display for TargetDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

fn nvidia(name: &'static str, arch: &str) -> TargetDesc {
    let hopper = matches!(arch, "90" | "100");
    let blackwell = arch == "100";
    TargetDesc {
        name,
        vendor: Vendor::Nvidia,
        lanes: 32,
        banks: 32,
        bank_width: 4,
        max_vector_bits: 128,
        max_global_vector_bits: if blackwell { 256 } else { 128 },
        // CUDA programming guide, "Technical Specifications per Compute Capability": 163, 99 and 227 KiB.
        shared_bytes: match arch {
            "80" => 163 << 10,
            "86" | "89" => 99 << 10,
            _ => 227 << 10,
        },
        primitives: Primitives {
            ldmatrix: true,
            stmatrix: hopper,
            matrix_b8: blackwell,
            cp_async: true,
            redux: true,
            bulk_copy: hopper,
            bulk_rows: blackwell,
            wgmma: arch == "90",
            clusters: hopper,
            atomic_vectors: hopper,
            ..Primitives::default()
        },
        cost: NVIDIA_COST,
    }
}

fn amd(name: &'static str, arch: &str) -> TargetDesc {
    let cdna4 = arch == "gfx950";
    let rdna = matches!(arch, "gfx1100" | "gfx1201");
    TargetDesc {
        name,
        vendor: Vendor::Amd,
        lanes: if rdna { 32 } else { 64 },
        banks: if cdna4 { 64 } else { 32 },
        bank_width: 4,
        max_vector_bits: 128,
        max_global_vector_bits: 128,
        shared_bytes: if cdna4 { 160 << 10 } else { 64 << 10 },
        primitives: Primitives {
            ds_b128: true,
            ds_read_tr: cdna4,
            dpp: true,
            dpp_row_xmask: rdna,
            permlanex16: rdna,
            permlane_swap: cdna4,
            ds_swizzle: true,
            ..Primitives::default()
        },
        cost: if rdna { CostModel { shuffle: 1.0, ..AMD_COST } } else { AMD_COST },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_to_itself() {
        for name in TargetDesc::NAMES {
            assert_eq!(TargetDesc::parse(name).unwrap().name, name);
        }
        assert_eq!(TargetDesc::parse("cuda:90a").unwrap().name, "cuda:90");
        assert!(TargetDesc::parse("hip:gfx9").is_err());
        assert!(TargetDesc::parse("90").is_err());
    }

    #[test]
    fn a_phase_fills_at_most_one_line() {
        for target in TargetDesc::all() {
            for bytes in [1, 2, 4, 8, 16] {
                for direction in [Direction::Load, Direction::Store] {
                    let lanes = target.phase_lanes(bytes, direction);
                    assert!((bytes << lanes.len()) <= target.line_bytes(), "{target} {bytes}");
                    assert_eq!(crate::f2::rank(&lanes) as usize, lanes.len());
                }
            }
        }
    }

    #[test]
    fn cdna3_reads_sixteen_bytes_in_scattered_groups() {
        let target = TargetDesc::parse("hip:gfx942").unwrap();
        let basis = target.phase_lanes(16, Direction::Load);
        let mut first: Vec<u64> = (0..8).map(|i| crate::f2::mul(&basis, i)).collect();
        first.sort();
        assert_eq!(first, [0, 1, 2, 3, 20, 21, 22, 23]);
        assert_eq!(target.phases(16, Direction::Load), 8);
        assert_eq!(target.phase_lanes(16, Direction::Store).as_slice(), &[1, 2, 4]);
    }
}
