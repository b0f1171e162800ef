//! Matrix instructions: what each bit of the register and lane numbers of their fragments means.

use crate::plan::DotType;
use crate::target::{TargetDesc, Vendor};

/// An axis of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DotAxis {
    /// Products that are independent of each other.
    Batch,
    /// Rows of the left operand and of the result.
    M,
    /// Columns of the right operand and of the result.
    N,
    /// What is summed over.
    K,
}

/// What each bit of a register or lane number of a fragment means; `None` for lanes that hold copies.
pub(super) type Roles = Vec<Option<(DotAxis, u32)>>;

/// A matrix instruction and the layouts of its fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixInstruction {
    /// Mnemonic without types: `mma.m16n8k16`, `v_mfma_16x16x16`.
    pub name: String,
    /// Rows, columns and summands.
    pub shape: [u32; 3],
    /// Left operand: register bits, then lane bits.
    pub(super) a: (Roles, Roles),
    /// Right operand.
    pub(super) b: (Roles, Roles),
    /// Result.
    pub(super) c: (Roles, Roles),
}

impl MatrixInstruction {
    /// The instructions of the target that multiply elements of `kind` and sum in type `sum`, the one to
    /// prefer first. NVIDIA's round 32-bit floats: they are no candidates where products must be `exact`.
    pub fn candidates(
        kind: DotType,
        sum: DotType,
        exact: bool,
        target: &TargetDesc,
    ) -> Vec<MatrixInstruction> {
        let nvidia = target.vendor == Vendor::Nvidia;
        let summed = match kind {
            DotType::F16 => sum == DotType::F32 || nvidia && sum == DotType::F16,
            DotType::F32 => sum == DotType::F32 && !(nvidia && exact),
            DotType::Bf16 | DotType::F8 => sum == DotType::F32,
            DotType::F64 => sum == DotType::F64,
            DotType::I8 => sum == DotType::I32,
            DotType::I16 | DotType::I32 | DotType::I64 => false,
        };
        match target.vendor {
            _ if !summed => Vec::new(),
            Vendor::Nvidia => mma(kind).into_iter().collect(),
            Vendor::Amd if target.lanes == 64 => mfma(kind, target),
            Vendor::Amd => wmma(kind, target.name == "hip:gfx1201").into_iter().collect(),
        }
    }
}

fn bits(axis: DotAxis, range: std::ops::Range<u32>) -> Roles {
    range.map(|i| Some((axis, i))).collect()
}

fn roles(parts: &[Roles]) -> Roles {
    parts.concat()
}

/// `mma.sync` (PTX ISA, "Matrix Fragments for mma.m16n8k16" and its neighbours; paper, Proposition 9.2).
fn mma(kind: DotType) -> Option<MatrixInstruction> {
    use DotAxis::{K, M, N};
    if kind == DotType::F64 {
        return Some(MatrixInstruction {
            name: "mma.m8n8k4".into(),
            shape: [8, 8, 4],
            a: (Roles::new(), roles(&[bits(K, 0..2), bits(M, 0..3)])),
            b: (Roles::new(), roles(&[bits(K, 0..2), bits(N, 0..3)])),
            c: (bits(N, 0..1), roles(&[bits(N, 1..3), bits(M, 0..3)])),
        });
    }
    if !matches!(kind, DotType::F8 | DotType::F16 | DotType::Bf16 | DotType::F32 | DotType::I8) {
        return None;
    }
    let low = (32 / kind.bits()).ilog2();
    let k = 8 << low;
    Some(MatrixInstruction {
        name: format!("mma.m16n8k{k}"),
        shape: [16, 8, k],
        a: (
            roles(&[bits(K, 0..low), bits(M, 3..4), bits(K, low + 2..low + 3)]),
            roles(&[bits(K, low..low + 2), bits(M, 0..3)]),
        ),
        b: (
            roles(&[bits(K, 0..low), bits(K, low + 2..low + 3)]),
            roles(&[bits(K, low..low + 2), bits(N, 0..3)]),
        ),
        c: (roles(&[bits(N, 0..1), bits(M, 3..4)]), roles(&[bits(N, 1..3), bits(M, 0..3)])),
    })
}

/// `v_mfma` (CDNA3 and CDNA4 ISA, "Matrix Arithmetic Instructions"): 16×16 and 32×32.
fn mfma(kind: DotType, target: &TargetDesc) -> Vec<MatrixInstruction> {
    use DotAxis::{K, M, N};
    let gfx950 = target.name == "hip:gfx950";
    // log2 of the summands in one lane.
    let own = match kind {
        DotType::F64 | DotType::F32 => 0,
        DotType::F16 | DotType::Bf16 => 2 + u32::from(gfx950),
        DotType::F8 => 3,
        DotType::I8 if target.name == "hip:gfx90a" => 2,
        DotType::I8 => 3 + u32::from(gfx950),
        DotType::I16 | DotType::I32 | DotType::I64 => return Vec::new(),
    };
    let one = |side: u32| {
        let k_lanes = 6 - side;
        let operand = |axis| roles(&[bits(axis, 0..side), bits(K, own..own + k_lanes)]);
        let (rows, lanes) = match (side, kind) {
            (4, DotType::F64) => (bits(M, 2..4), bits(M, 0..2)),
            (4, _) => (bits(M, 0..2), bits(M, 2..4)),
            (_, _) => (roles(&[bits(M, 0..2), bits(M, 3..5)]), bits(M, 2..3)),
        };
        let (edge, k) = (1 << side, 1 << (own + k_lanes));
        MatrixInstruction {
            name: format!("v_mfma_{edge}x{edge}x{k}"),
            shape: [edge, edge, k],
            a: (bits(K, 0..own), operand(M)),
            b: (bits(K, 0..own), operand(N)),
            c: (rows, roles(&[bits(N, 0..side), lanes])),
        }
    };
    if kind == DotType::F64 { vec![one(4)] } else { vec![one(5), one(4)] }
}

/// `v_wmma_16x16x16` (RDNA3 and RDNA4 ISA, "Wave Matrix Multiply Accumulate").
fn wmma(kind: DotType, rdna4: bool) -> Option<MatrixInstruction> {
    use DotAxis::{K, M, N};
    let supported =
        matches!(kind, DotType::F16 | DotType::Bf16 | DotType::I8) || rdna4 && kind == DotType::F8;
    if !supported {
        return None;
    }
    let (own, half): (u32, Roles) = if rdna4 { (3, bits(K, 3..4)) } else { (4, vec![None]) };
    let operand = |axis| roles(&[bits(axis, 0..4), half.clone()]);
    let (rows, upper) = if rdna4 { (bits(M, 0..3), bits(M, 3..4)) } else { (bits(M, 1..4), bits(M, 0..1)) };
    Some(MatrixInstruction {
        name: "v_wmma_16x16x16".into(),
        shape: [16, 16, 16],
        a: (bits(K, 0..own), operand(M)),
        b: (bits(K, 0..own), operand(N)),
        c: (rows, roles(&[bits(N, 0..4), upper])),
    })
}
