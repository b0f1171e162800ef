//! Matrix instructions.

use super::{Reg, Src};
use crate::mma::Places;
use std::sync::OnceLock;

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
    E2M1,
    S8,
    U8,
    S4,
    U4,
    S32,
}

impl Elem {
    /// Width in bits in a register.
    pub fn bits(self) -> u32 {
        match self {
            Elem::F64 => 64,
            Elem::F32 | Elem::Tf32 | Elem::S32 => 32,
            Elem::F16 | Elem::BF16 => 16,
            Elem::S4 | Elem::U4 | Elem::E2M1 => 4,
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
    /// Registers with scales of blocks of a and of b along the depth; none where all of them are one.
    pub scales: Box<[Src]>,
    /// Which byte of them; of gfx1250 which half of the wave has them, in all four bytes.
    pub scale_bytes: [u8; 2],
    /// Where elements lie, once that has been computed.
    pub places: OnceLock<Places>,
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
    /// `v_mfma_*_f8f6f4` (CDNA4 ISA, "Matrix Arithmetic Instructions"): 32 elements a lane, those of 8 bits in two runs of 16.
    MfmaNarrow,
    /// `v_wmma_*` of RDNA3 (a and b replicated in both halves of the wave).
    WmmaGfx11,
    /// `v_wmma_*` of RDNA4.
    WmmaGfx12,
    /// `v_wmma_*` of gfx1250.
    WmmaGfx1250,
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

/// The matrices that `ldmatrix` and `stmatrix` move, by their rows in shared memory: 16 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixForm {
    /// `m8n8.b16`, and `m8n16.b8x16`: a lane holds 4 bytes of a row.
    Rows,
    /// `m8n8.trans.b16`.
    Columns,
    /// `ldmatrix.m16n16.trans.b8`: two registers of 4 bytes of a column.
    Columns16,
    /// `stmatrix.m16n8.trans.b8`.
    ByteColumns,
}

impl MatrixForm {
    /// By the parts of a mnemonic; `None` for what does not exist.
    pub fn new(store: bool, parts: &[&str]) -> Option<(MatrixForm, Option<u8>)> {
        let has = |p: &str| parts.contains(&p);
        let packed = match () {
            () if has("b6x16_p32") => Some(6),
            () if has("b4x16_p64") => Some(4),
            () => None,
        };
        let form = match (store, has("trans")) {
            (_, false) if has("m8n8") && has("b16") => MatrixForm::Rows,
            (_, true) if has("m8n8") && has("b16") => MatrixForm::Columns,
            (false, false) if has("m8n16") && has("b8x16") && packed.is_some() => MatrixForm::Rows,
            (false, true) if has("m16n16") && has("b8x16") && packed.is_some() => MatrixForm::Columns16,
            (false, true) if has("m16n16") && has("b8") => MatrixForm::Columns16,
            (true, true) if has("m16n8") && has("b8") => MatrixForm::ByteColumns,
            _ => return None,
        };
        Some((form, packed))
    }

    /// Rows of a matrix: so many lanes give an address.
    pub fn rows(self) -> usize {
        if self == MatrixForm::Columns16 { 16 } else { 8 }
    }

    /// Registers of a matrix in each lane.
    pub fn registers(self) -> usize {
        self.rows() / 8
    }

    /// Row and byte of the row that byte `j` of register `r` of a lane holds (PTX ISA, "ldmatrix" and "stmatrix",
    /// figures of the fragment layouts; for bytes also CUTLASS' `copy_traits_sm100.hpp`).
    pub fn place(self, lane: usize, r: usize, j: usize) -> (usize, usize) {
        let (group, t) = (lane / 4, lane % 4);
        match self {
            MatrixForm::Rows => (group, 4 * t + j),
            MatrixForm::Columns => (2 * t + j / 2, 2 * group + j % 2),
            MatrixForm::Columns16 => (4 * t + j, group + 8 * r),
            MatrixForm::ByteColumns => (2 * t + j % 2, group + 8 * (j / 2)),
        }
    }
}
