//! Which instruction computes a matrix product, and where its operands are.
//!
//! A [`MatmulPlan`] follows from a [`Problem`] and a target alone. The
//! instruction is the fastest that the element types allow; the warps are
//! placed by cost ([`split_warps`]): first so that none repeats what another
//! one computes, then so that a product that continues another one finds its
//! operand in its own registers, then so that the warps together read the
//! least of the operands, as narrow as they are moved.

use linear_layout::Encoding;
use linear_layout::encoding::{AmdMfma, AmdWmma, CgaLayout, DotOperand, NvidiaMma, NvmmaShared};
use linear_layout::target::{TargetDesc, Vendor};
use mlir_host::ir::{Context, FloatKind, Type};
use ttopt_dialect::tt::enums::InputPrecision;

/// Type of an element of an operand or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// An integer of so many bits.
    Int(u32),
    /// A float.
    Float(FloatKind),
}

impl Element {
    /// The element type `ty`; `None` when it is no number.
    pub fn of(ty: Type<'_>) -> Option<Element> {
        ty.float_kind().map(Element::Float).or_else(|| ty.int_bits().map(Element::Int))
    }

    /// As a type.
    pub fn ty(self, ctx: Context<'_>) -> Type<'_> {
        match self {
            Element::Int(bits) => Type::int(ctx, bits),
            Element::Float(kind) => Type::float(ctx, kind),
        }
    }

    /// Bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            Element::Int(bits) => bits,
            Element::Float(kind) => kind.bits(),
        }
    }

    /// Whether it is one of the float formats of 8 bits that products have.
    pub fn is_fp8(self) -> bool {
        use FloatKind::*;
        matches!(self, Element::Float(F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ))
    }
}

const F16: Element = Element::Float(FloatKind::F16);
const BF16: Element = Element::Float(FloatKind::BF16);
const F32: Element = Element::Float(FloatKind::F32);
const F64: Element = Element::Float(FloatKind::F64);
const I8: Element = Element::Int(8);
const I32: Element = Element::Int(32);

/// What is known about an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its elements.
    pub element: Element,
    /// Bits of the narrowest elements that it is computed from: what is moved.
    pub narrowest: u32,
    /// Whether it comes from memory as it is, rather than from arithmetic.
    pub loaded: bool,
    /// The dimension along which memory or registers hold neighbours.
    pub fastest: usize,
}

/// How a product depends on others through elementwise operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// A left operand: this one's, or the result becomes one.
    pub left: bool,
    /// A right operand.
    pub right: bool,
}

/// A matrix product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Shape of the result: batches, M, N.
    pub shape: Vec<u64>,
    /// Summands.
    pub k: u64,
    /// Left and right operand.
    pub operands: [Operand; 2],
    /// Elements of accumulator and result.
    pub result: Element,
    /// How f32 operands are multiplied.
    pub precision: InputPrecision,
    /// Sums of at most so many products may have less than f32's precision.
    pub max_imprecise: i64,
    /// Products that depend on each other.
    pub chain: Chain,
    /// Warps of a block.
    pub warps: u64,
    /// How the blocks of a cluster divide the result.
    pub cga: CgaLayout,
}

/// Where an instruction takes an operand from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Registers, with so many consecutive elements along K in each thread.
    Registers {
        /// Consecutive elements.
        k_width: u64,
    },
    /// Shared memory.
    Shared(NvmmaShared),
}

/// What one operand becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandPlan {
    /// Elements it is converted to.
    pub element: Element,
    /// Where it goes.
    pub place: Place,
}

/// How a product is computed by matrix instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatmulPlan {
    /// Layout of the result.
    pub result: Encoding,
    /// Elements that are summed up.
    pub accumulator: Element,
    /// Left and right operand.
    pub operands: [OperandPlan; 2],
}

impl MatmulPlan {
    /// The plan for a product; `None` where no matrix instruction of the
    /// target computes it, and multiplications within threads do.
    pub fn new(problem: &Problem, target: &TargetDesc) -> Option<MatmulPlan> {
        if problem.shape.len() < 2 || problem.warps == 0 {
            return None;
        }
        match target.vendor {
            Vendor::Nvidia => wgmma(problem, target).or_else(|| mma(problem, target)),
            Vendor::Amd if target.lanes == 64 => mfma(problem, target),
            Vendor::Amd => wmma(problem, target),
        }
    }

    /// Whether it is an instruction of a warp group with operands in shared memory.
    pub fn is_warp_group(&self) -> bool {
        matches!(&self.result, Encoding::NvidiaMma(mma) if mma.version_major == 3)
    }
}

impl Problem {
    /// The part of the result that one block has.
    fn block_shape(&self) -> Vec<u64> {
        let mut shape = self.shape.clone();
        for basis in &self.cga {
            for (size, step) in shape.iter_mut().zip(basis) {
                if *step != 0 {
                    *size = (*size / 2).max(1);
                }
            }
        }
        shape
    }

    /// What a warp pays to have an element of either operand, in bits that it reads: narrower elements than those that
    /// are multiplied are read as they are, and converted by each warp that reads them.
    fn read_bits(&self) -> [u64; 2] {
        self.operands.map(|operand| {
            let bits = operand.element.bits();
            let converted = if operand.narrowest < bits { bits } else { 0 };
            u64::from((operand.narrowest + converted).max(1))
        })
    }

    fn elements(&self) -> (Element, Element) {
        (self.operands[0].element, self.operands[1].element)
    }

    /// Whether results can be summed up as `accumulator` without losing anything.
    fn accumulates_in(&self, accumulator: Element) -> bool {
        match (self.result, accumulator) {
            (Element::Float(result), Element::Float(sum)) => result.bits() <= sum.bits(),
            (result, sum) => result == sum,
        }
    }
}

/// How `warps` divide a result of `shape` (batches, rows, columns), of which
/// an instruction computes `tile` at a time. Batches go to warps first.
///
/// Of all ways, the one where warps repeat least of each other's work, then
/// the one that keeps the operands of chained products in their warps, then
/// the one where the warps together read the fewest bits of operands, of whose
/// elements each counts `bits`.
pub fn split_warps(warps: u64, shape: &[u64], tile: [u64; 2], chain: Chain, bits: [u64; 2]) -> Vec<u64> {
    let mut split = vec![1; shape.len()];
    let mut left = warps;
    let (batches, matrix) = shape.split_at(shape.len() - 2);
    for (ways, size) in split.iter_mut().zip(batches) {
        *ways = left.min(*size);
        left /= *ways;
    }
    let (rows, columns) = best_split(left, [matrix[0], matrix[1]], tile, chain, bits).1;
    split[shape.len() - 2] = rows;
    split[shape.len() - 1] = columns;
    split
}

/// The cost of a split: repeated work, warps across a chained operand, bits read.
type SplitCost = (u64, u64, u64);

fn best_split(
    warps: u64,
    [m, n]: [u64; 2],
    tile: [u64; 2],
    chain: Chain,
    bits: [u64; 2],
) -> (SplitCost, (u64, u64)) {
    let mut best: Option<(SplitCost, (u64, u64))> = None;
    let mut rows = 1;
    while rows <= warps {
        let columns = warps / rows;
        let repeated = (rows * tile[0]).div_ceil(m).max(1) * (columns * tile[1]).div_ceil(n).max(1);
        let across = if chain.left {
            columns
        } else if chain.right {
            rows
        } else {
            1
        };
        let cost = (repeated, across, columns * m * bits[0] + rows * n * bits[1]);
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, (rows, columns)));
        }
        rows *= 2;
    }
    best.unwrap_or(((u64::MAX, 0, 0), (1, 1)))
}

/// Consecutive elements along K that fill 32 bits, counted in the narrowest
/// elements that either operand is moved as: then those move as whole registers.
fn k_width_of_32_bits(problem: &Problem, elements: (Element, Element)) -> u64 {
    let computed = elements.0.bits().max(elements.1.bits());
    let moved = problem.operands.iter().map(|operand| operand.narrowest).min().unwrap_or(computed);
    let own = u64::from((32 / computed).max(1));
    // The instruction has two groups of 4 threads along K: more would be copies.
    u64::from(32 / moved.clamp(1, computed)).min(problem.k / 8).max(own)
}

fn in_registers(elements: (Element, Element), k_width: u64) -> [OperandPlan; 2] {
    [elements.0, elements.1].map(|element| OperandPlan { element, place: Place::Registers { k_width } })
}

/// Whether the target multiplies OCP's 8-bit floats by `mma.sync`.
fn has_mma_fp8(target: &TargetDesc) -> bool {
    !matches!(target.name, "cuda:80" | "cuda:86")
}

/// `mma.sync` (PTX ISA, "Matrix multiply-accumulate operation using mma instruction").
fn mma(problem: &Problem, target: &TargetDesc) -> Option<MatmulPlan> {
    use FloatKind::{F8E4M3FN, F8E5M2};
    let half = |_| if problem.result == F16 { F16 } else { F32 };
    let ocp = |element| matches!(element, Element::Float(F8E4M3FN | F8E5M2));
    let (a, b, accumulator) = match problem.elements() {
        (F16, F16) => (F16, F16, half(())),
        (BF16, BF16) => (BF16, BF16, F32),
        (F32, F32) if problem.precision == InputPrecision::Tf32 => (F32, F32, F32),
        (F64, F64) => (F64, F64, F64),
        (I8, I8) => (I8, I8, I32),
        // The native instruction sums up in f32.
        (a, b) if ocp(a) && ocp(b) && has_mma_fp8(target) && problem.result == F32 => (a, b, F32),
        (a, b) if ocp(a) && ocp(b) => (F16, F16, half(())),
        _ => return None,
    };
    if !problem.accumulates_in(accumulator) {
        return None;
    }
    let rank = problem.shape.len();
    let tile = if a == F64 { [8, 8] } else { [16, 8] };
    let mut instr_shape = vec![1; rank];
    instr_shape[rank - 2..].copy_from_slice(&tile);
    let k_width = if a == F64 { 1 } else { k_width_of_32_bits(problem, (a, b)) };
    Some(MatmulPlan {
        result: Encoding::NvidiaMma(NvidiaMma {
            version_major: 2,
            version_minor: 0,
            warps_per_cta: split_warps(
                problem.warps,
                &problem.block_shape(),
                tile,
                problem.chain,
                problem.read_bits(),
            ),
            cga: problem.cga.clone(),
            instr_shape,
        }),
        accumulator,
        operands: in_registers((a, b), k_width),
    })
}

/// `wgmma` (PTX ISA, "Asynchronous warpgroup level matrix instructions").
fn wgmma(problem: &Problem, target: &TargetDesc) -> Option<MatmulPlan> {
    use FloatKind::{F8E4M3FN, F8E5M2};
    if target.name != "cuda:90" || !problem.warps.is_multiple_of(4) {
        return None;
    }
    let block = problem.block_shape();
    let &[m, n] = &block[..] else { return None };
    let ocp = |element| matches!(element, Element::Float(F8E4M3FN | F8E5M2));
    let (a, b) = problem.elements();
    let accumulator = match (a, b) {
        (F16, F16) if problem.result == F16 => F16,
        (F16, F16) | (BF16, BF16) => F32,
        (F32, F32) if problem.precision == InputPrecision::Tf32 => F32,
        (I8, I8) => I32,
        // Tensor cores of sm_90 sum up products of fp8 with fewer bits than f32 has.
        (a, b) if ocp(a) && ocp(b) && problem.max_imprecise >= 32 => F32,
        _ => return None,
    };
    if !problem.accumulates_in(accumulator) {
        return None;
    }
    let k = u64::from(256 / a.bits());
    // Rows go to warp groups first: long instructions read the left operand less often.
    let groups = problem.warps / 4;
    let rows = groups.min((m / 64).max(1));
    let columns = groups / rows;
    if !m.is_multiple_of(64) || !n.is_multiple_of(8 * columns) || !problem.k.is_multiple_of(k) {
        return None;
    }
    let instr_n = (n / columns).min(256);
    let result = Encoding::NvidiaMma(NvidiaMma {
        version_major: 3,
        version_minor: 0,
        warps_per_cta: vec![4 * rows, columns],
        cga: problem.cga.clone(),
        instr_shape: vec![16, instr_n, k],
    });
    let left = if problem.operands[0].loaded {
        Place::Shared(shared_operand(problem, 0, &result))
    } else {
        Place::Registers { k_width: u64::from(32 / a.bits()) }
    };
    let right = Place::Shared(shared_operand(problem, 1, &result));
    Some(MatmulPlan {
        result,
        accumulator,
        operands: [OperandPlan { element: a, place: left }, OperandPlan { element: b, place: right }],
    })
}

/// The layout of an operand in shared memory. Elements of 16 bits may run
/// along either dimension, as they come; all others run along K.
fn shared_operand(problem: &Problem, side: usize, result: &Encoding) -> NvmmaShared {
    let operand = &problem.operands[side];
    let k_dim = 1 - side;
    let fastest = if operand.element.bits() == 16 { operand.fastest.min(1) } else { k_dim };
    let cga = Encoding::DotOperand(DotOperand {
        op_idx: side as u32,
        parent: Box::new(result.clone()),
        k_width: 0,
    })
    .cga_layout();
    let size = if fastest == k_dim { problem.k } else { problem.block_shape()[side] };
    let bytes = size * u64::from(operand.element.bits()) / 8;
    NvmmaShared {
        swizzling_byte_width: [128, 64, 32].into_iter().find(|width| bytes % width == 0).unwrap_or(0),
        transposed: fastest == 0,
        element_bit_width: u64::from(operand.element.bits()),
        fp4_padded: false,
        rank: 2,
        cga,
    }
}

/// K of a matrix instruction, and consecutive elements along K in one thread.
type KOfInstruction = (u64, u64);

/// `v_mfma` (CDNA3 and CDNA4 ISA, "Matrix Arithmetic Instructions").
fn mfma(problem: &Problem, target: &TargetDesc) -> Option<MatmulPlan> {
    use FloatKind::{F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ};
    let version = match target.name {
        "hip:gfx90a" => 2,
        "hip:gfx942" => 3,
        _ => 4,
    };
    let (a, b) = problem.elements();
    let native = |element| match element {
        Element::Float(F8E4M3FNUZ | F8E5M2FNUZ) => version == 3,
        Element::Float(F8E4M3FN | F8E5M2) => version == 4,
        _ => false,
    };
    let (a, b, accumulator) = match (a, b) {
        (F16, F16) | (BF16, BF16) | (F32, F32) => (a, b, F32),
        (F64, F64) => (F64, F64, F64),
        (I8, I8) => (I8, I8, I32),
        (a, b) if native(a) && native(b) => (a, b, F32),
        (a, b) if a.is_fp8() && b.is_fp8() => (F16, F16, F32),
        _ => return None,
    };
    if !problem.accumulates_in(accumulator) {
        return None;
    }
    let block = problem.block_shape();
    let rank = block.len();
    // The larger instruction reads fewer operands for as many products.
    let sides: &[u64] = if a == F64 { &[16] } else { &[32, 16] };
    let matrix = [block[rank - 2], block[rank - 1]];
    let batches: u64 = block[..rank - 2].iter().product();
    let rest = problem.warps / problem.warps.min(batches);
    let side = sides.iter().copied().min_by_key(|&side| {
        let (cost, _) = best_split(rest, matrix, [side, side], problem.chain, problem.read_bits());
        (cost, std::cmp::Reverse(side))
    })?;
    let (k, k_width) = mfma_k(a, side, problem, version);
    Some(MatmulPlan {
        result: Encoding::AmdMfma(AmdMfma {
            version,
            warps_per_cta: split_warps(
                problem.warps,
                &block,
                [side, side],
                problem.chain,
                problem.read_bits(),
            ),
            instr_shape: vec![side, side, k],
            is_transposed: true,
            cga: problem.cga.clone(),
            tiles_per_warp: vec![1; rank],
            element_bit_width: if a == F64 { 64 } else { 32 },
        }),
        accumulator,
        operands: in_registers((a, b), k_width),
    })
}

/// The longest instruction that K fills.
fn mfma_k(element: Element, side: u64, problem: &Problem, version: u32) -> KOfInstruction {
    // 64 lanes, of which `side` run along M or N, each with as many elements along K.
    let lanes = 64 / side;
    let xf32 = version == 3 && problem.precision == InputPrecision::Tf32;
    let widths: &[u64] = match (element, version) {
        (F64, _) => &[1],
        (F32, _) if xf32 => &[2],
        (F32, _) => &[1],
        (F16 | BF16, 4) => &[8, 4],
        (F16 | BF16, _) => &[4],
        (I8, 4) => &[16, 8],
        (I8, 3) => &[8],
        (I8, _) => &[4],
        _ => &[8],
    };
    let fitting = widths.iter().copied().find(|width| lanes * width <= problem.k);
    let width = fitting.or(widths.last().copied()).unwrap_or(1);
    (lanes * width, width)
}

/// `v_wmma` (RDNA3 and RDNA4 ISA, "Wave Matrix Multiply Accumulate").
fn wmma(problem: &Problem, target: &TargetDesc) -> Option<MatmulPlan> {
    use FloatKind::{F8E4M3FN, F8E5M2};
    let version = if target.name == "hip:gfx1100" { 1 } else { 2 };
    let ocp = |element| matches!(element, Element::Float(F8E4M3FN | F8E5M2));
    let (a, b) = problem.elements();
    let (a, b, accumulator) = match (a, b) {
        (F16, F16) | (BF16, BF16) => (a, b, F32),
        (I8, I8) => (I8, I8, I32),
        (a, b) if ocp(a) && ocp(b) && version == 2 => (a, b, F32),
        (a, b) if a.is_fp8() && b.is_fp8() => (F16, F16, F32),
        _ => return None,
    };
    if !problem.accumulates_in(accumulator) {
        return None;
    }
    let block = problem.block_shape();
    let rank = block.len();
    let warps = split_warps(problem.warps, &block, [16, 16], problem.chain, problem.read_bits());
    let mut tile_warps = Vec::new();
    for dim in (0..rank).rev() {
        let mut step = 1;
        while step < warps[dim] {
            let mut basis = vec![0; rank];
            basis[dim] = step;
            tile_warps.push(basis);
            step *= 2;
        }
    }
    Some(MatmulPlan {
        result: Encoding::AmdWmma(AmdWmma {
            version,
            tile_registers: Vec::new(),
            tile_warps,
            rank,
            is_transposed: true,
            cga: problem.cga.clone(),
            instr_shape: vec![16, 16, 16],
        }),
        accumulator,
        operands: in_registers((a, b), if version == 1 { 16 } else { 8 }),
    })
}

#[cfg(test)]
mod tests;
