//! What the lanes of a warp do together, and registers that the hardware sets.

use super::{Reg, Src};

/// A warp shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Shfl {
    Up,
    Down,
    Bfly,
    Idx,
}

/// A reduction or vote over the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Vote {
    All,
    Any,
    Uni,
    Ballot,
    Add,
    SMin,
    SMax,
    UMin,
    UMax,
    And,
    Or,
    Xor,
}

/// What a barrier makes of the predicates of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BarReduce {
    Popc,
    And,
    Or,
}

/// A register that the hardware sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Special {
    /// Thread index along x, y, z.
    Tid(u8),
    NTid(u8),
    Ctaid(u8),
    NCtaid(u8),
    LaneId,
    WarpId,
    LaneMaskLt,
    LaneMaskLe,
    LaneMaskGt,
    LaneMaskGe,
    ActiveMask,
    Clock,
    /// The program's place in its cluster, along x, y, z.
    ClusterCtaid(u8),
    /// Programs of a cluster along x, y, z.
    ClusterNCtaid(u8),
    /// The cluster's place in the grid along x, y, z.
    ClusterId(u8),
    /// Clusters of the grid along x, y, z.
    NClusterId(u8),
    ClusterRank,
    ClusterSize,
    /// Warps of a program.
    NWarpId,
    /// Address of the kernel's implicit arguments (AMD code object version 5).
    ImplicitArgs,
    Zero,
}

/// A warp-level permutation of AMD hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Permute {
    /// `ds_bpermute_b32`: read from the lane given (address / 4).
    Backward,
    /// `ds_permute_b32`: write to the lane given.
    Forward,
    /// `ds_swizzle_b32` with its immediate.
    Swizzle(u16),
    /// `v_permlane16_b32` / `v_permlanex16_b32` with the two selector words.
    PermLane16 { x: bool },
    /// `v_permlane32_swap` / `v_permlane16_swap`: swaps rows between the two operands.
    Swap(u8),
    /// `ds_read_b64_tr_*` of units of so many bits, after its read: the 8 bytes of 16 lanes, one after the other, are rows
    /// of 16 units, of which each lane receives a column (CDNA4 ISA).
    Transpose(u8),
    /// `ds_load_tr16_b128`, after its read: the 16 bytes of eight lanes are rows of a square, of which each lane receives a
    /// column. The upper halves are the second operand and result (layouts of Triton 3.9; there is no manual).
    Square,
    /// `ds_load_tr8_b64`, after its read: the 8 bytes of lanes 0–3 and 8–11 of sixteen are rows of a square for the first eight
    /// lanes, those of the others one for the last eight (layouts of Triton 3.9; there is no manual).
    Squares,
}

/// A data-parallel-primitive move.
#[derive(Clone, Copy, Debug)]
pub struct Dpp {
    /// Result.
    pub d: Reg,
    /// Value of lanes that receive nothing.
    pub old: Src,
    /// Source.
    pub v: Src,
    /// `dpp_ctrl`.
    pub ctrl: u16,
    /// Rows that are written.
    pub row_mask: u8,
    /// Banks that are written.
    pub bank_mask: u8,
    /// Lanes with an invalid source receive zero instead of keeping `old`.
    pub bound_ctrl: bool,
}
