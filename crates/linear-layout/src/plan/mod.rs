//! Plans: every hardware decision as a plain value, made from layouts, an element width and a
//! [`TargetDesc`](crate::target::TargetDesc) and nothing else.
//!
//! A plan can be printed, costed, executed on plain arrays by the [checker](crate::checker), which is
//! written independently, and emitted by a code generator that takes no decisions of its own.
//!
//! | what | plan | optimum |
//! |---|---|---|
//! | load and store global memory | [`VectorPlan`] | the widest run that registers hold (paper, Table 2) |
//! | move a tensor to another layout | [`ConversionPlan`] | fewest cycles; fewest shuffles; no bank conflicts |
//! | read and write given shared memory | [`SharedAccessPlan`] | the cheapest instruction that fits |
//! | copy global to shared memory, lanes in order | [`LdsLoadPlan`] | the widest load that lanes can do |
//! | reduce along a dimension | [`ReducePlan`] | no copy combined or stored (paper, Table 3) |
//! | scan along a dimension | [`ScanPlan`] | one total per aligned run and step |
//! | gather, count | [`GatherPlan`], [`HistogramPlan`] | shuffles while lines are short (paper, Figure 6) |
//! | multiply matrices | [`DotTilePlan`] | any tile that agrees up to an order (paper, Table 4) |
//! | … by warp groups | [`WarpGroupDotPlan`] | the widest instructions that memory allows |
//! | … that lie in shared memory | [`MatrixDescriptorPlan`] | whatever a descriptor can express |
//! | copy blocks of tensors in bulk | [`TmaPlan`] | the widest swizzle, the fewest boxes |
//! | … and rows chosen one by one | [`TmaRowsPlan`] | the fewest instructions, spread over warps |

mod access;
mod convert;
mod descriptor;
mod detour;
mod display;
mod dot;
mod error;
mod gather;
#[cfg(feature = "serde")]
mod json;
mod lds_load;
mod matrix_instruction;
mod reduce;
mod scan;
mod scan_exchange;
mod shared;
mod shuffle;
mod space;
mod swizzle;
mod tdm;
mod tma;
mod tma_rows;
mod vector;
mod warp_group;
mod wavefront;

pub use access::{AccessPlan, FragmentWords, MemoryAccess, MemoryInstruction, ThreadBases};
pub use convert::{Conversion, ConversionPlan, Cost, Scope, SharedPlan};
pub use descriptor::{MatrixDescriptorPlan, MatrixSwizzle};
pub use detour::Detour;
pub use display::Count;
pub use dot::{
    Dot, DotInstruction, DotProducts, DotTilePlan, DotType, DotTypes, ScaleRegisters, ScaledDot,
    ScaledDotPlan, products_at_once,
};
pub use error::{PlanError, PlanResult, Unsupported};
pub use gather::{Gather, GatherPlan, GatherShared, GatherShuffle, HistogramPlan, Indices};
pub use lds_load::{LaneSources, LdsLoadPlan};
pub use matrix_instruction::{
    Bits, DotAxis, Fragment, MatrixFamily, MatrixInstruction, OperandSource, REGISTERS_OF_LONG_F64, Rate,
    Role,
};
pub use reduce::{LocalReduction, ReduceExchange, ReduceHalving, ReducePlan, ReduceShuffle, WarpCombine};
pub use scan::{Replace, ScanPlan, ScanStep};
pub use scan_exchange::{ScanExchange, ScanLine};
pub use shared::SharedAccessPlan;
pub use shuffle::{Exchange, SelectStage, ShuffleInstruction, ShufflePlan, ShuffleRound};
pub use space::{ThreadMasks, Threads};
pub use tdm::{TdmPadding, TdmPlan};
pub use tma::{TMA_UNIT_BYTES, TmaBox, TmaMap, TmaPlan};
pub use tma_rows::{RowCopy, RowsFate, TmaRowsPlan};
pub use vector::{AddressFacts, SECTOR, VectorAccess, VectorPlan};
pub use warp_group::{WarpGroupDot, WarpGroupDotPlan, WarpGroupOperand, WarpGroupRun, WarpGroupStep};
pub use wavefront::Served;

/// Bits that the narrowest copy past the registers moves (PTX ISA, "cp.async": 4 bytes).
pub(crate) const NARROWEST_COPY: u32 = 32;

/// Of those that take the fewest cycles the first.
pub(crate) fn fewest<T>(all: impl IntoIterator<Item = T>, cycles: impl Fn(&T) -> f64) -> Option<T> {
    all.into_iter().min_by(|x, y| cycles(x).total_cmp(&cycles(y)))
}
