//! Every layout attribute of Triton 3.9 as a plain value, its text, and its [`LinearLayout`].
//!
//! [`Encoding`] mirrors the attributes of the `ttg` and `ttng` dialects field by field. Its `FromStr` and
//! `Display` are the attribute syntax; [`Encoding::to_linear_layout`] says which map it denotes for a
//! tensor of a given shape. An encoding describes a *tile*; the shape decides how the tile is repeated
//! (more registers, or more offsets in memory) or cut (copies).
//!
//! ```
//! use linear_layout::{Dim, Encoding};
//! // Layout A of the paper's Figure 1: 2×2 registers, 4×8 threads, 2×1 warps.
//! let a: Encoding = "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], \
//!                    warpsPerCTA = [2, 1], order = [1, 0]}>".parse()?;
//! let layout = a.to_linear_layout(&[16, 16])?;
//! // Register 1 of thread 9 holds (2, 3).
//! let held = layout.apply(&[(Dim::REGISTER, 1), (Dim::LANE, 9)])?;
//! assert_eq!(held.as_slice(), &[(Dim::out(0), 2), (Dim::out(1), 3)]);
//! # Ok::<(), linear_layout::Error>(())
//! ```

mod amd;
mod distributed;
mod fit;
mod nvidia;
mod parse;
mod print;
mod shared;
mod tensor_memory;
mod value;

use crate::layout::log2;
use crate::{Dim, Error, LinearLayout, Result};

/// How the blocks of a cluster (CTAs of a CGA) divide a tensor: one basis vector per bit of the block
/// number, in units of the part of the tensor that one block holds. A zero basis is a copy. Empty for a
/// single block.
pub type CgaLayout = Vec<Vec<u64>>;

/// `#ttg.blocked`: each thread holds a contiguous box, threads tile a warp, warps tile a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Blocked {
    /// Elements of one thread along each dimension.
    pub size_per_thread: Vec<u64>,
    /// Threads of a warp along each dimension.
    pub threads_per_warp: Vec<u64>,
    /// Warps of a block along each dimension.
    pub warps_per_cta: Vec<u64>,
    /// Dimensions, fastest first.
    pub order: Vec<usize>,
    /// Division among blocks.
    pub cga: CgaLayout,
}

/// `#ttg.slice`: the parent with one dimension removed, as the result of a reduction along it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Dimension of the parent that is removed.
    pub dim: usize,
    /// Layout of the tensor that still has the dimension.
    pub parent: Box<Encoding>,
}

/// `#ttg.dot_op`: an operand of a dot whose result has the layout `parent`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DotOperand {
    /// 0 for the left operand (M×K), 1 for the right one (K×N).
    pub op_idx: u32,
    /// Layout of the result.
    pub parent: Box<Encoding>,
    /// Consecutive elements along K in one thread; 0 where the parent does not use it.
    pub k_width: u64,
}

/// `#ttg.nvidia_mma`: the result of `mma` (version 2) or `wgmma` (version 3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NvidiaMma {
    /// 2 for `mma.sync`, 3 for `wgmma`.
    pub version_major: u32,
    /// Variant of the generation; does not change the layout.
    pub version_minor: u32,
    /// Warps of a block along each dimension.
    pub warps_per_cta: Vec<u64>,
    /// Division among blocks.
    pub cga: CgaLayout,
    /// Shape of one instruction: one entry per dimension for version 2, `[M, N, K]` for version 3.
    pub instr_shape: Vec<u64>,
}

/// `#ttg.amd_mfma`: the result of a matrix instruction of CDNA GPUs (64 lanes).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AmdMfma {
    /// 1: gfx908, 2: gfx90a, 3: gfx942, 4: gfx950.
    pub version: u32,
    /// Waves of a block along each dimension.
    pub warps_per_cta: Vec<u64>,
    /// `[M, N, K]` of one instruction.
    pub instr_shape: Vec<u64>,
    /// Whether the result is held transposed, consecutive registers along N.
    pub is_transposed: bool,
    /// Division among blocks.
    pub cga: CgaLayout,
    /// Adjacent instruction tiles of one wave along each dimension.
    pub tiles_per_warp: Vec<u64>,
    /// Bits of a result element: 32 or 64.
    pub element_bit_width: u32,
}

/// `#ttg.amd_wmma`: the result of a matrix instruction of RDNA GPUs (32 lanes).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AmdWmma {
    /// 1: RDNA3, 2: RDNA4, 3: gfx1250.
    pub version: u32,
    /// Basis vectors of the repetitions within one wave, in units of instruction tiles.
    pub tile_registers: Vec<Vec<u64>>,
    /// Basis vectors of the waves of a block, in units of instruction tiles.
    pub tile_warps: Vec<Vec<u64>>,
    /// Number of dimensions of the tensor.
    pub rank: usize,
    /// Whether the result is held transposed.
    pub is_transposed: bool,
    /// Division among blocks.
    pub cga: CgaLayout,
    /// `[M, N, K]` of one instruction.
    pub instr_shape: Vec<u64>,
}

/// `#ttg.linear` and `#ttg.generic_linear`: a distributed layout written out as bases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Linear {
    /// From `register, lane, warp, block` to `dim0, dim1, …`.
    pub layout: LinearLayout,
}

/// `#ttg.swizzled_shared`: rows of shared memory whose groups of `vec` elements are permuted by XOR with
/// the phase of the row (paper, Definition 4.11).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SwizzledShared {
    /// Elements that stay together.
    pub vec: u64,
    /// Consecutive rows with the same phase.
    pub per_phase: u64,
    /// Number of phases.
    pub max_phase: u64,
    /// Dimensions, fastest first.
    pub order: Vec<usize>,
    /// Division among blocks.
    pub cga: CgaLayout,
}

/// `#ttg.nvmma_shared`: the canonical operand layouts of `wgmma` and `tcgen05.mma` (PTX ISA,
/// "Asynchronous Warpgroup Level Matrix Shared Memory Layout").
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NvmmaShared {
    /// Width of the swizzle atom in bytes: 0 (none), 32, 64 or 128.
    pub swizzling_byte_width: u64,
    /// Whether the outermost instead of the last dimension is contiguous.
    pub transposed: bool,
    /// Bits of an element.
    pub element_bit_width: u64,
    /// Whether packed fp4 pairs are spread over 16-byte groups with 8 bytes of padding.
    pub fp4_padded: bool,
    /// Number of dimensions.
    pub rank: usize,
    /// Division among blocks.
    pub cga: CgaLayout,
}

/// `#ttg.padded_shared`: padding inserted at intervals, after a linear reordering.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PaddedShared {
    /// `(interval, padding)`: after every `interval` elements, `padding` unused ones.
    pub intervals: Vec<(u64, u64)>,
    /// From `offset, block` (without padding) to `dim0, dim1, …`.
    pub layout: LinearLayout,
}

/// `#ttg.partitioned_shared`: pieces of a tensor dealt out to separately allocated buffers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionedShared {
    /// Number of buffers.
    pub num_partitions: u64,
    /// Pieces in each buffer.
    pub num_groups: u64,
    /// Dimension that is cut into pieces.
    pub partition_dim: usize,
    /// Layout of one piece.
    pub partition_layout: Box<Encoding>,
}

/// `#ttg.shared_linear`: a shared-memory layout written out as bases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedLinear {
    /// From `offset, block` to `dim0, dim1, …`.
    pub layout: LinearLayout,
    /// Alignment of the buffer in bytes.
    pub alignment: u64,
}

/// `#ttng.tensor_memory_encoding`: blocks of a matrix in the tensor memory of sm_100 (PTX ISA, "Tensor
/// Memory").
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorMemory {
    /// Rows of one block: 64 or 128.
    pub block_m: u64,
    /// Columns of one block.
    pub block_n: u64,
    /// Columns of memory from one element to the next.
    pub col_stride: u64,
    /// Division among blocks of the cluster.
    pub cga: CgaLayout,
    /// Whether two blocks work on one instruction (`cta_group::2`).
    pub two_ctas: bool,
    /// Whether packed fp4 pairs are spread so that every element has a byte.
    pub fp4_padded: bool,
}

/// `#ttng.tensor_memory_scales_encoding`: the scale factors of a block-scaled dot in tensor memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorMemoryScales {
    /// Division among blocks of the cluster.
    pub cga: CgaLayout,
    /// Whether repeated blocks advance along K first (`kThenMn`).
    pub k_then_mn: bool,
}

/// A layout attribute of Triton 3.9.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// `#ttg.blocked`
    Blocked(Blocked),
    /// `#ttg.slice`
    Slice(Slice),
    /// `#ttg.dot_op`
    DotOperand(DotOperand),
    /// `#ttg.nvidia_mma`
    NvidiaMma(NvidiaMma),
    /// `#ttg.amd_mfma`
    AmdMfma(AmdMfma),
    /// `#ttg.amd_wmma`
    AmdWmma(AmdWmma),
    /// `#ttg.linear`
    Linear(Linear),
    /// `#ttg.generic_linear`
    GenericLinear(Linear),
    /// `#ttg.swizzled_shared`
    SwizzledShared(SwizzledShared),
    /// `#ttg.amd_rotating_shared`: as swizzled, and the phase advances by one after every full round.
    AmdRotatingShared(SwizzledShared),
    /// `#ttg.nvmma_shared`
    NvmmaShared(NvmmaShared),
    /// `#ttg.padded_shared`
    PaddedShared(PaddedShared),
    /// `#ttg.partitioned_shared`
    PartitionedShared(PartitionedShared),
    /// `#ttg.shared_linear`
    SharedLinear(SharedLinear),
    /// `#ttng.tensor_memory_encoding`
    TensorMemory(TensorMemory),
    /// `#ttng.tensor_memory_scales_encoding`
    TensorMemoryScales(TensorMemoryScales),
}

impl Encoding {
    /// The map that this encoding denotes for a tensor of `shape`, its last dimension fastest.
    ///
    /// Distributed encodings give `register, lane, warp, block → dim0, dim1, …`, shared ones
    /// `offset, block → …` (`offset, partition, block` when partitioned), tensor memory `row, col, block →
    /// …`. Offsets and columns count elements; the padding of `padded_shared` is not part of the map.
    ///
    /// # Errors
    /// Sizes that are not powers of two, a shape of another rank than the encoding, or parameters that
    /// contradict each other.
    pub fn to_linear_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        for (i, &size) in shape.iter().enumerate() {
            log2(size, || format!("the size of dimension {i} of the shape"))?;
        }
        let rank = self.rank();
        if shape.len() != rank || shape.is_empty() {
            return Err(self.invalid(format!("it has {rank} dimensions, the shape has {}", shape.len())));
        }
        match self {
            Encoding::Blocked(e) => e.to_layout(shape),
            Encoding::Slice(e) => e.to_layout(shape),
            Encoding::DotOperand(e) => e.to_layout(shape),
            Encoding::NvidiaMma(e) => e.to_layout(shape),
            Encoding::AmdMfma(e) => e.to_layout(shape),
            Encoding::AmdWmma(e) => e.to_layout(shape),
            Encoding::Linear(e) | Encoding::GenericLinear(e) => e.to_layout(shape),
            Encoding::SwizzledShared(e) => e.to_layout(shape, shared::Phases::Repeat),
            Encoding::AmdRotatingShared(e) => e.to_layout(shape, shared::Phases::Rotate),
            Encoding::NvmmaShared(e) => e.to_layout(shape),
            Encoding::PaddedShared(e) => shared::linear_memory(&e.layout, shape),
            Encoding::PartitionedShared(e) => e.to_layout(shape),
            Encoding::SharedLinear(e) => shared::linear_memory(&e.layout, shape),
            Encoding::TensorMemory(e) => e.to_layout(shape),
            Encoding::TensorMemoryScales(e) => e.to_layout(shape),
        }
    }

    /// Number of dimensions of the tensors it describes.
    pub fn rank(&self) -> usize {
        match self {
            Encoding::Blocked(e) => e.order.len(),
            Encoding::Slice(e) => e.parent.rank().saturating_sub(1),
            Encoding::DotOperand(e) => e.parent.rank(),
            Encoding::NvidiaMma(e) => e.warps_per_cta.len(),
            Encoding::AmdMfma(e) => e.warps_per_cta.len(),
            Encoding::AmdWmma(e) => e.rank,
            Encoding::Linear(e) | Encoding::GenericLinear(e) => e.layout.num_out_dims(),
            Encoding::SwizzledShared(e) | Encoding::AmdRotatingShared(e) => e.order.len(),
            Encoding::NvmmaShared(e) => e.rank,
            Encoding::PaddedShared(e) => e.layout.num_out_dims(),
            Encoding::PartitionedShared(e) => e.partition_layout.rank(),
            Encoding::SharedLinear(e) => e.layout.num_out_dims(),
            Encoding::TensorMemory(_) | Encoding::TensorMemoryScales(_) => 2,
        }
    }

    /// The attribute's name, without dialect.
    pub fn mnemonic(&self) -> &'static str {
        match self {
            Encoding::Blocked(_) => "blocked",
            Encoding::Slice(_) => "slice",
            Encoding::DotOperand(_) => "dot_op",
            Encoding::NvidiaMma(_) => "nvidia_mma",
            Encoding::AmdMfma(_) => "amd_mfma",
            Encoding::AmdWmma(_) => "amd_wmma",
            Encoding::Linear(_) => "linear",
            Encoding::GenericLinear(_) => "generic_linear",
            Encoding::SwizzledShared(_) => "swizzled_shared",
            Encoding::AmdRotatingShared(_) => "amd_rotating_shared",
            Encoding::NvmmaShared(_) => "nvmma_shared",
            Encoding::PaddedShared(_) => "padded_shared",
            Encoding::PartitionedShared(_) => "partitioned_shared",
            Encoding::SharedLinear(_) => "shared_linear",
            Encoding::TensorMemory(_) => "tensor_memory_encoding",
            Encoding::TensorMemoryScales(_) => "tensor_memory_scales_encoding",
        }
    }

    /// Whether it distributes a tensor over registers, lanes and warps.
    pub fn is_distributed(&self) -> bool {
        use Encoding::*;
        matches!(
            self,
            Blocked(_)
                | Slice(_)
                | DotOperand(_)
                | NvidiaMma(_)
                | AmdMfma(_)
                | AmdWmma(_)
                | Linear(_)
                | GenericLinear(_)
        )
    }

    /// Whether it lays a tensor out in shared memory.
    pub fn is_shared(&self) -> bool {
        !self.is_distributed() && !matches!(self, Encoding::TensorMemory(_) | Encoding::TensorMemoryScales(_))
    }

    /// The division among the blocks of a cluster, with one coordinate per dimension of this encoding: the
    /// parent's without the removed dimension for a slice, and with K undivided for a dot operand.
    pub fn cga_layout(&self) -> CgaLayout {
        match self {
            Encoding::Blocked(e) => e.cga.clone(),
            Encoding::NvidiaMma(e) => e.cga.clone(),
            Encoding::AmdMfma(e) => e.cga.clone(),
            Encoding::AmdWmma(e) => e.cga.clone(),
            Encoding::SwizzledShared(e) | Encoding::AmdRotatingShared(e) => e.cga.clone(),
            Encoding::NvmmaShared(e) => e.cga.clone(),
            Encoding::TensorMemory(e) => e.cga.clone(),
            Encoding::TensorMemoryScales(e) => e.cga.clone(),
            Encoding::Slice(e) => {
                let mut bases = e.parent.cga_layout();
                for basis in bases.iter_mut().filter(|b| e.dim < b.len()) {
                    basis.remove(e.dim);
                }
                bases
            }
            Encoding::DotOperand(e) => {
                let mut bases = e.parent.cga_layout();
                for basis in &mut bases {
                    let k = e.k_dim(basis.len());
                    if let Some(coordinate) = basis.get_mut(k) {
                        *coordinate = 0;
                    }
                }
                bases
            }
            Encoding::PartitionedShared(e) => e.partition_layout.cga_layout(),
            Encoding::Linear(_)
            | Encoding::GenericLinear(_)
            | Encoding::PaddedShared(_)
            | Encoding::SharedLinear(_) => self.block_bases_in_tiles(),
        }
    }

    /// The block bases of an encoding that is written out, in units of what one block holds.
    fn block_bases_in_tiles(&self) -> CgaLayout {
        let layout = match self {
            Encoding::Linear(e) | Encoding::GenericLinear(e) => &e.layout,
            Encoding::PaddedShared(e) => &e.layout,
            Encoding::SharedLinear(e) => &e.layout,
            _ => return Vec::new(),
        };
        let bases: Vec<_> = layout.columns_of(Dim::BLOCK).iter().map(|&c| layout.coords(c)).collect();
        let smallest = |d: usize| bases.iter().map(|b| b[d]).filter(|&c| c > 0).min().unwrap_or(1);
        let rank = layout.num_out_dims();
        bases.iter().map(|b| (0..rank).map(|d| b[d] / smallest(d)).collect()).collect()
    }

    pub(crate) fn invalid(&self, reason: String) -> Error {
        Error::InvalidEncoding { encoding: self.mnemonic(), reason }
    }
}

fn invalid(encoding: &'static str, reason: String) -> Error {
    Error::InvalidEncoding { encoding, reason }
}
