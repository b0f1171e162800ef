//! From [`Encoding`] to the attribute syntax, as Triton prints it.

use std::fmt::{self, Display, Formatter};

use super::fit::{identity_nd, matrix_order};
use super::{CgaLayout, Encoding, PaddedShared, SwizzledShared};
use crate::{Dim, LinearLayout, standard_out_dims};

impl Display for Encoding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Encoding::Blocked(e) => {
                write!(f, "#ttg.blocked<{{sizePerThread = {:?}, ", e.size_per_thread)?;
                write!(f, "threadsPerWarp = {:?}, ", e.threads_per_warp)?;
                write!(f, "warpsPerCTA = {:?}, order = {:?}{}}}>", e.warps_per_cta, e.order, Cga(&e.cga))
            }
            Encoding::Slice(e) => write!(f, "#ttg.slice<{{dim = {}, parent = {}}}>", e.dim, e.parent),
            Encoding::DotOperand(e) => {
                write!(f, "#ttg.dot_op<{{opIdx = {}, parent = {}", e.op_idx, e.parent)?;
                if e.k_width != 0 {
                    write!(f, ", kWidth = {}", e.k_width)?;
                }
                f.write_str("}>")
            }
            Encoding::NvidiaMma(e) => {
                write!(f, "#ttg.nvidia_mma<{{versionMajor = {}, ", e.version_major)?;
                write!(f, "versionMinor = {}, warpsPerCTA = {:?}", e.version_minor, e.warps_per_cta)?;
                write!(f, "{}, instrShape = {:?}}}>", Cga(&e.cga), e.instr_shape)
            }
            Encoding::AmdMfma(e) => {
                write!(f, "#ttg.amd_mfma<{{version = {}, warpsPerCTA = {:?}, ", e.version, e.warps_per_cta)?;
                write!(f, "instrShape = {:?}, isTransposed = {}", e.instr_shape, e.is_transposed)?;
                write!(f, "{}", Cga(&e.cga))?;
                if e.tiles_per_warp != vec![1; e.warps_per_cta.len()] {
                    write!(f, ", tilesPerWarp = {:?}", e.tiles_per_warp)?;
                }
                if e.element_bit_width != 32 {
                    write!(f, ", elementBitWidth = {}", e.element_bit_width)?;
                }
                f.write_str("}>")
            }
            Encoding::AmdWmma(e) => {
                write!(f, "#ttg.amd_wmma<{{version = {}, ", e.version)?;
                write!(f, "isTranspose = {}, ctaLayout = {{", e.is_transposed)?;
                let parts = [("register", &e.tile_registers), ("warp", &e.tile_warps)];
                // `warp` is printed even when empty: Triton does not read the attribute without it.
                let parts = parts.iter().filter(|(name, bases)| *name == "warp" || !bases.is_empty());
                let parts: Vec<String> = parts.map(|(name, bases)| format!("{name} = {bases:?}")).collect();
                write!(f, "{}}}{}", parts.join(", "), Cga(&e.cga))?;
                if e.instr_shape != [16, 16, 16] {
                    write!(f, ", instrShape = {:?}", e.instr_shape)?;
                }
                if e.tile_registers.is_empty() && e.tile_warps.is_empty() && e.cga.is_empty() && e.rank != 2 {
                    write!(f, ", rank = {}", e.rank)?;
                }
                f.write_str("}>")
            }
            Encoding::Linear(e) => write!(f, "#ttg.linear<{{{}}}>", Bases(&e.layout, false)),
            Encoding::GenericLinear(e) => write!(f, "#ttg.generic_linear<{{{}}}>", Bases(&e.layout, false)),
            Encoding::SwizzledShared(e) => swizzled(f, "swizzled_shared", e),
            Encoding::AmdRotatingShared(e) => swizzled(f, "amd_rotating_shared", e),
            Encoding::NvmmaShared(e) => {
                write!(f, "#ttg.nvmma_shared<{{swizzlingByteWidth = {}, ", e.swizzling_byte_width)?;
                write!(f, "transposed = {}, elementBitWidth = {}", e.transposed, e.element_bit_width)?;
                if e.fp4_padded {
                    f.write_str(", fp4Padded = true")?;
                }
                write!(f, "{}", Cga(&e.cga))?;
                if e.cga.is_empty() && e.rank != 2 {
                    write!(f, ", rank = {}", e.rank)?;
                }
                f.write_str("}>")
            }
            Encoding::PaddedShared(e) => padded(f, e),
            Encoding::PartitionedShared(e) => {
                write!(f, "#ttg.partitioned_shared<{{numPartitions = {}, ", e.num_partitions)?;
                write!(f, "numGroups = {}, partitionDim = {}, ", e.num_groups, e.partition_dim)?;
                write!(f, "partitionLayout = {}}}>", e.partition_layout)
            }
            Encoding::SharedLinear(e) => {
                let bases = Bases(&e.layout, true);
                write!(f, "#ttg.shared_linear<{{{bases}}}, alignment = {}>", e.alignment)
            }
            Encoding::TensorMemory(e) => {
                write!(f, "#ttng.tensor_memory_encoding<blockM = {}, blockN = {}, ", e.block_m, e.block_n)?;
                write!(f, "colStride = {}{}", e.col_stride, Cga(&e.cga))?;
                if e.two_ctas {
                    f.write_str(", twoCTAs = true")?;
                }
                f.write_str(if e.fp4_padded { ", fp4Padded = true>" } else { ">" })
            }
            Encoding::TensorMemoryScales(e) => {
                let cga = Cga(&e.cga).to_string();
                let order = if e.k_then_mn { ", blockRepOrder = kThenMn" } else { "" };
                let entries = format!("{cga}{order}");
                let entries = entries.strip_prefix(", ").unwrap_or_default();
                write!(f, "#ttng.tensor_memory_scales_encoding<{entries}>")
            }
        }
    }
}

fn swizzled(f: &mut Formatter<'_>, name: &str, e: &SwizzledShared) -> fmt::Result {
    write!(f, "#ttg.{name}<{{vec = {}, perPhase = {}, ", e.vec, e.per_phase)?;
    write!(f, "maxPhase = {}, order = {:?}{}}}>", e.max_phase, e.order, Cga(&e.cga))
}

fn padded(f: &mut Formatter<'_>, e: &PaddedShared) -> fmt::Result {
    let pads: Vec<String> = e.intervals.iter().map(|(i, p)| format!("{i}:+{p}")).collect();
    write!(f, "#ttg.padded_shared<[{}] {{", pads.join(", "))?;
    match identity_order(&e.layout) {
        Some((order, shape)) => write!(f, "order = {order:?}, shape = {shape:?}")?,
        None => write!(f, "{}", Bases(&e.layout, false))?,
    }
    f.write_str("}>")
}

/// The order and shape for which a layout without blocks is the identity, if there are such.
fn identity_order(layout: &LinearLayout) -> Option<(Vec<usize>, Vec<u64>)> {
    if layout.in_bits(Dim::BLOCK) > 0 {
        return None;
    }
    let shape: Vec<u64> = layout.out_dims().map(|d| layout.out_size(d).unwrap_or(1)).collect();
    let rank = shape.len();
    let outs: Vec<Dim> = standard_out_dims(rank).collect();
    // The order is read off the bases; dimensions of size one go where row-major has them.
    let mut order = super::distributed::order_of(layout, Dim::OFFSET);
    if order.iter().all(|&d| shape[d] == 1) {
        order = matrix_order(rank, true);
    }
    let identity = identity_nd(Dim::OFFSET, &shape, &order).ok()?.transpose_outs(&outs).ok()?;
    (identity.columns() == layout.columns()).then_some((order, shape))
}

/// `, CGALayout = […]`, or nothing for a single block.
struct Cga<'a>(&'a CgaLayout);

impl Display for Cga<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ", CGALayout = {:?}", self.0) }
    }
}

/// `register = [[…]], lane = …`; without empty blocks when told so.
struct Bases<'a>(&'a LinearLayout, bool);

impl Display for Bases<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let dims = self.0.in_dims().filter(|&d| !self.1 || d != Dim::BLOCK || self.0.in_bits(d) > 0);
        for (i, dim) in dims.enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            let bases: Vec<_> = self.0.columns_of(dim).iter().map(|&c| self.0.coords(c).to_vec()).collect();
            write!(f, "{separator}{dim} = {bases:?}")?;
        }
        Ok(())
    }
}
