//! Matrix instructions.

use super::{Reg, Src};

/// Element type of a matrix operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Elem {
    F64,
    F32,
    Tf32,
    F16,
    BF16,
    E4M3,
    E5M2,
    E4M3Fnuz,
    E5M2Fnuz,
    S8,
    U8,
    S32,
}

impl Elem {
    /// Width in bits in a register.
    pub fn bits(self) -> u32 {
        match self {
            Elem::F64 => 64,
            Elem::F32 | Elem::Tf32 | Elem::S32 => 32,
            Elem::F16 | Elem::BF16 => 16,
            _ => 8,
        }
    }
}

/// A matrix multiply-accumulate of one warp with all operands in registers.
#[derive(Clone, Debug)]
pub struct Mma {
    /// Which hardware's fragment layout.
    pub layout: MmaLayout,
    /// Rows, columns, depth.
    pub shape: (u32, u32, u32),
    /// Element types of a, b.
    pub ab: (Elem, Elem),
    /// Element type of c and d.
    pub cd: Elem,
    /// Result registers.
    pub d: Box<[Reg]>,
    /// Operands.
    pub a: Box<[Src]>,
    /// Operands.
    pub b: Box<[Src]>,
    /// Operands.
    pub c: Box<[Src]>,
    /// Clamp integer sums.
    pub saturate: bool,
}

/// The family of fragment layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmaLayout {
    /// `mma.sync` (PTX ISA, "Matrix Fragments for mma").
    Ptx,
    /// `v_mfma_*` (CDNA3 ISA, "Matrix Arithmetic Instructions"), with the number of independent blocks.
    Mfma {
        /// Independent matrices multiplied by one instruction.
        blocks: u32,
    },
    /// `v_wmma_*` of RDNA3 (a and b replicated in both halves of the wave).
    WmmaGfx11,
    /// `v_wmma_*` of RDNA4.
    WmmaGfx12,
}

/// `wgmma.mma_async`: the part of one warp.
#[derive(Clone, Debug)]
pub struct Wgmma {
    /// Columns.
    pub n: u32,
    /// Depth.
    pub k: u32,
    /// Element types of a, b.
    pub ab: (Elem, Elem),
    /// Element type of the accumulator.
    pub cd: Elem,
    /// Accumulators, read and written.
    pub d: Box<[Reg]>,
    /// Initial accumulators; empty when the accumulators are `d` themselves.
    pub c: Box<[Src]>,
    /// A descriptor (one register) or A fragments (four registers).
    pub a: Box<[Src]>,
    /// B descriptor.
    pub b: Src,
    /// False clears the accumulators first.
    pub scale_d: Src,
    /// Negate a, b.
    pub neg: (bool, bool),
    /// A, B transposed in shared memory.
    pub trans: (bool, bool),
    /// Clamp integer sums.
    pub saturate: bool,
}
