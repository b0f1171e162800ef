//! Which instruction computes a dot, and where its operands are.
//!
//! A [`MatmulPlan`] follows from a [`Problem`] and a target alone. The
//! instruction is the first of the [table](MatrixInstruction) that the element
//! types and the shape allow; the warps are
//! placed by cost ([`split_warps`]): first so that none repeats what another
//! one computes, then so that a dot that continues another one finds its
//! operand in its own registers, then so that the warps together read the
//! least of the operands, as narrow as they are moved.

use linear_layout::Encoding;
use linear_layout::encoding::{AmdMfma, AmdWmma, CgaLayout, DotOperand, NvidiaMma, NvmmaShared};
use linear_layout::plan::{DotType, MatrixFamily, MatrixInstruction, products_at_once};
use linear_layout::target::{Fp8, TargetDesc};
use mlir_host::ir::{Context, FloatKind, Type};
use ttopt_dialect::tt::enums::InputPrecision;

/// Type of an element of an operand or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// An integer of so many bits.
    Int(u32),
    /// A float.
    Float(FloatKind),
    /// Two 4-bit floats in a byte, which follow each other along K.
    F4Pair,
}

impl Element {
    /// The element type `ty`; `None` when it is no number.
    pub fn of(ty: Type<'_>) -> Option<Element> {
        ty.float_kind().map(Element::Float).or_else(|| ty.int_bits().map(Element::Int))
    }

    /// As a type.
    pub fn ty(self, ctx: Context<'_>) -> Type<'_> {
        match self {
            Element::F4Pair => Type::int(ctx, 8),
            Element::Int(bits) => Type::int(ctx, bits),
            Element::Float(kind) => Type::float(ctx, kind),
        }
    }

    /// Bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            Element::F4Pair => 8,
            Element::Int(bits) => bits,
            Element::Float(kind) => kind.bits(),
        }
    }

    /// What matrix instructions of the target see in it: 8-bit floats that they do not multiply are multiplied
    /// as 16-bit floats, which hold them all. `None` where dots have no such elements.
    pub fn dot_type(self, target: &TargetDesc) -> Option<DotType> {
        use FloatKind::{F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ};
        Some(match self {
            F16 => DotType::F16,
            BF16 => DotType::Bf16,
            F32 => DotType::F32,
            F64 => DotType::F64,
            Element::F4Pair => DotType::F4Pair,
            Element::Float(F8E4M3FN | F8E5M2) if target.fp8_dots == Some(Fp8::Ocp) => DotType::F8,
            Element::Float(F8E4M3FNUZ | F8E5M2FNUZ) if target.fp8_dots == Some(Fp8::Fnuz) => DotType::F8,
            element if element.is_float() && element.bits() == 8 => DotType::F16,
            Element::Int(8) => DotType::I8,
            Element::Int(16) => DotType::I16,
            Element::Int(32) => DotType::I32,
            Element::Int(64) => DotType::I64,
            _ => return None,
        })
    }

    /// The element of a sum; `None` for types that nothing is summed in.
    fn of_sum(sum: DotType) -> Option<Element> {
        match sum {
            DotType::F16 => Some(F16),
            DotType::F32 => Some(F32),
            DotType::F64 => Some(F64),
            DotType::I32 => Some(I32),
            _ => None,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Element::Float(_))
    }

    /// Whether it is one of the float formats of 8 bits that dots have.
    pub fn is_fp8(self) -> bool {
        use FloatKind::*;
        matches!(self, Element::Float(F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ))
    }
}

const F16: Element = Element::Float(FloatKind::F16);
const BF16: Element = Element::Float(FloatKind::BF16);
const F32: Element = Element::Float(FloatKind::F32);
const F64: Element = Element::Float(FloatKind::F64);
const I32: Element = Element::Int(32);

/// What is known about an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its elements.
    pub element: Element,
    /// Bits of the narrowest elements that it is computed from: what is moved.
    pub narrowest: u32,
    /// Operations, element by element, by which it is computed from what is moved.
    pub operations: u32,
    /// Whether it comes from memory as it is, rather than from arithmetic.
    pub loaded: bool,
    /// The dimension along which memory or registers hold neighbours.
    pub fastest: usize,
}

/// How a dot depends on others through elementwise operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// A left operand: this one's, or the result becomes one.
    pub left: bool,
    /// A right operand.
    pub right: bool,
}

/// A dot.
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
    /// Dots that depend on each other.
    pub chain: Chain,
    /// Warps of a block.
    pub warps: u64,
    /// How the CTAs of a cluster divide the result.
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

/// How a dot is computed by matrix instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatmulPlan {
    /// The instruction: a row of the table.
    pub instruction: &'static MatrixInstruction,
    /// Layout of the result.
    pub result: Encoding,
    /// Elements that are summed up.
    pub accumulator: Element,
    /// Left and right operand.
    pub operands: [OperandPlan; 2],
}

impl MatmulPlan {
    /// The plan for a dot; `None` where no matrix instruction of the
    /// target computes it, and multiplications within threads do.
    pub fn new(problem: &Problem, target: &TargetDesc) -> Option<MatmulPlan> {
        Self::all(problem, target).next()
    }

    /// The plans for a dot, one for each instruction that computes it, the best first.
    pub fn all<'a>(
        problem: &'a Problem,
        target: &'a TargetDesc,
    ) -> impl Iterator<Item = MatmulPlan> + use<'a> {
        let is_dot = problem.shape.len() >= 2 && problem.warps > 0;
        let multiplied = if is_dot { problem.multiplied_as(target) } else { Vec::new() };
        multiplied.into_iter().flat_map(|multiplied| multiplied.plans(problem, target))
    }

    /// Cycles that the dot takes by this plan and within threads, whose instructions add several products at once (`v_dot2`, `v_dot4`), where
    /// the latter are fewer: a dot of one or two rows or columns has the matrix instruction multiply zeros. With more, threads would read
    /// more of the operands than the instruction does.
    pub fn slower_than_threads(&self, problem: &Problem, target: &TargetDesc) -> Option<[f64; 2]> {
        let block = problem.block_shape();
        let [batches @ .., m, n] = &block[..] else { return None };
        let [left, right] = problem.operands.map(|operand| operand.element.dot_type(target));
        let kind = left.filter(|kind| Some(*kind) == right)?;
        let several = u64::from(products_at_once(kind, problem.result.dot_type(target)?, target)?);
        if (*m).min(*n) > 2 || problem.k < several || problem.chain != Chain::default() {
            return None;
        }
        let batches: u64 = batches.iter().product();
        let [tile_m, tile_n, tile_k] = self.instruction.shape.map(u64::from);
        let tiles = batches * m.div_ceil(tile_m) * n.div_ceil(tile_n);
        let executions = tiles.max(problem.warps) * problem.k.div_ceil(tile_k);
        let matrix = executions as f64 * self.instruction.cycles(target)?;
        let sums = (batches * m * n).div_ceil(problem.warps * u64::from(target.lanes));
        let instructions = problem.warps * sums * problem.k / several;
        let threads = instructions as f64 * target.cost.alu;
        (threads < matrix).then_some([matrix, threads])
    }

    /// Whether it is an instruction of a warp group with operands in shared memory.
    pub fn is_warp_group(&self) -> bool {
        self.instruction.family == MatrixFamily::Wgmma
    }
}

/// Bits that a multiprocessor reads from shared memory while it issues an instruction for one element: 1,024 a cycle, and 128 elements.
const BITS_OF_OPERATION: u64 = 8;

/// What warps pay to have an element of an operand, in bits that they read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Each warp that has it.
    each: u64,
    /// Once, and each, where it is computed once and comes to the warps through shared memory; `None` where nothing is computed.
    through_shared: Option<[u64; 2]>,
}

impl Price {
    /// Of an operand. Narrower elements than those that are multiplied are read as they are, and converted by each warp that
    /// reads them. What more is computed takes all warps that do it the same time, or is written and read again.
    fn of(operand: &Operand) -> Self {
        let (bits, narrowest) = (u64::from(operand.element.bits()), u64::from(operand.narrowest));
        let operations = u64::from(operand.operations);
        if operations > 1 {
            let each = narrowest + BITS_OF_OPERATION * operations;
            return Self { each, through_shared: Some([each + bits, bits]) };
        }
        let converted = if narrowest < bits { bits } else { 0 };
        Self { each: (narrowest + converted).max(1), through_shared: None }
    }

    /// Of an element that so many warps have.
    fn times(&self, warps: u64) -> u64 {
        let shared = self.through_shared.map(|[once, each]| once + warps * each);
        (warps * self.each).min(shared.unwrap_or(u64::MAX))
    }
}

impl From<u64> for Price {
    /// Of what is read as it is.
    fn from(bits: u64) -> Self {
        Self { each: bits, through_shared: None }
    }
}

impl Problem {
    /// The part of the result that one block has.
    pub(super) fn block_shape(&self) -> Vec<u64> {
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

    /// How the warps divide a block's part of the result, by instructions of `tile`.
    fn split_warps(&self, block: &[u64], tile: [u64; 2]) -> Vec<u64> {
        split_warps(self.warps, block, tile, self.chain, self.prices())
    }

    /// What warps pay to have an element of either operand.
    pub(super) fn prices(&self) -> [Price; 2] {
        self.operands.map(|operand| Price::of(&operand))
    }

    /// What instructions could multiply the operands as, the best first: as what they are, and 8-bit floats
    /// as 16-bit floats.
    fn multiplied_as(&self, target: &TargetDesc) -> Vec<Multiplied> {
        let own = self.operands.map(|operand| operand.element);
        let kinds = own.map(|element| element.dot_type(target));
        let mut all = Vec::new();
        match (kinds, own) {
            ([Some(DotType::F8), Some(DotType::F8)], _) => {
                all.push(Multiplied { kind: DotType::F8, elements: own });
            }
            ([Some(kind), _], [a, b]) if a == b && !a.is_fp8() => {
                all.push(Multiplied { kind, elements: own })
            }
            _ => {}
        }
        if own.iter().all(|element| element.is_fp8()) {
            all.push(Multiplied { kind: DotType::F16, elements: [F16, F16] });
        }
        all
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
/// the one that keeps the operands of chained dots in their warps, then
/// the one where the warps together read the fewest bits of operands, of whose
/// elements each has its price.
pub fn split_warps(warps: u64, shape: &[u64], tile: [u64; 2], chain: Chain, prices: [Price; 2]) -> Vec<u64> {
    let mut split = vec![1; shape.len()];
    let mut left = warps;
    let (batches, matrix) = shape.split_at(shape.len() - 2);
    for (ways, size) in split.iter_mut().zip(batches) {
        *ways = left.min(*size);
        left /= *ways;
    }
    let (rows, columns) = best_split(left, [matrix[0], matrix[1]], tile, chain, prices).1;
    split[shape.len() - 2] = rows;
    split[shape.len() - 1] = columns;
    split
}

/// The cost of a split: repeated work, warps across a chained operand, bits read for each summand.
pub(super) type SplitCost = (u64, u64, u64);

fn best_split(
    warps: u64,
    shape: [u64; 2],
    tile: [u64; 2],
    chain: Chain,
    prices: [Price; 2],
) -> (SplitCost, (u64, u64)) {
    // Of those that cost the same, the first.
    let best = splits(warps, shape, tile, chain, prices).min_by_key(|(cost, _)| *cost);
    best.unwrap_or(((u64::MAX, 0, 0), (1, 1)))
}

/// All ways to divide a matrix of results among warps along rows and columns, and their costs.
pub(super) fn splits(
    warps: u64,
    [m, n]: [u64; 2],
    tile: [u64; 2],
    chain: Chain,
    prices: [Price; 2],
) -> impl Iterator<Item = (SplitCost, (u64, u64))> {
    std::iter::successors(Some(1), |rows| Some(rows * 2)).take_while(move |rows| *rows <= warps).map(
        move |rows| {
            let columns = warps / rows;
            let repeated = (rows * tile[0]).div_ceil(m).max(1) * (columns * tile[1]).div_ceil(n).max(1);
            let across = if chain.left {
                columns
            } else if chain.right {
                rows
            } else {
                1
            };
            let read = m * prices[0].times(columns) + n * prices[1].times(rows);
            ((repeated, across, read), (rows, columns))
        },
    )
}

/// Consecutive elements along K that fill 32 bits, counted in the narrowest
/// elements that either operand is moved as: then those move as whole registers.
fn k_width_of_32_bits(problem: &Problem, elements: [Element; 2]) -> u64 {
    let computed = elements[0].bits().max(elements[1].bits());
    let moved = problem.operands.iter().map(|operand| operand.narrowest).min().unwrap_or(computed);
    let own = u64::from((32 / computed).max(1));
    // The instruction has two groups of 4 threads along K: more would be copies.
    u64::from(32 / moved.clamp(1, computed)).min(problem.k / 8).max(own)
}

fn in_registers(elements: [Element; 2], k_width: u64) -> [OperandPlan; 2] {
    elements.map(|element| OperandPlan { element, place: Place::Registers { k_width } })
}

/// Elements that are multiplied, as they are or converted, and what instructions see in them.
struct Multiplied {
    kind: DotType,
    elements: [Element; 2],
}

/// A row of the table for a dot, and what its sums are.
struct Candidate {
    row: &'static MatrixInstruction,
    accumulator: Element,
}

impl Multiplied {
    /// The plans by the instructions that there are, in order.
    fn plans<'a>(
        self,
        problem: &'a Problem,
        target: &'a TargetDesc,
    ) -> impl Iterator<Item = MatmulPlan> + use<'a> {
        let candidates = self.candidates(problem, target);
        candidates.into_iter().filter_map(move |candidate| match candidate.row.family {
            MatrixFamily::Wgmma => self.wgmma(problem, &candidate),
            MatrixFamily::Mma => self.mma(problem, &candidate, target),
            MatrixFamily::Mfma => self.mfma(problem, candidate.accumulator, target),
            MatrixFamily::Wmma => self.wmma(problem, &candidate, target),
        })
    }

    /// The instructions of the target for these elements whose sums hold the result: those whose sums it is first,
    /// otherwise in the table's order.
    fn candidates(&self, problem: &Problem, target: &TargetDesc) -> Vec<Candidate> {
        let exact = problem.precision != InputPrecision::Tf32;
        let candidate = |row: &'static MatrixInstruction| {
            let accumulator = Element::of_sum(row.sum)?;
            let fits = row.multiplies(self.kind, row.sum, exact) && problem.accumulates_in(accumulator);
            fits.then_some(Candidate { row, accumulator })
        };
        let mut all: Vec<Candidate> = MatrixInstruction::of(target).filter_map(candidate).collect();
        all.sort_by_key(|candidate| candidate.accumulator != problem.result);
        all
    }

    /// `mma.sync` (PTX ISA, "Matrix multiply-accumulate operation using mma instruction").
    fn mma(
        &self,
        problem: &Problem,
        &Candidate { row, accumulator }: &Candidate,
        target: &TargetDesc,
    ) -> Option<MatmulPlan> {
        // 8-bit floats are summed in f32 only: for a narrower result f16 is multiplied, which has sums of f16.
        if self.kind == DotType::F8 && (problem.result != F32 || !target.primitives.mma_fp8) {
            return None;
        }
        let rank = problem.shape.len();
        let tile = [row.shape[0], row.shape[1]].map(u64::from);
        let block = problem.block_shape();
        let warps_per_cta = problem.split_warps(&block, tile);
        // The layout of f64 is that of m8n8k4, of whose tiles longer instructions take several: where a warp has them.
        let encoded = if row.operand == DotType::F64 { [8, 8] } else { tile };
        let fills = |i: usize| warps_per_cta[rank - 2 + i] * tile[i] <= block[rank - 2 + i];
        if encoded != tile && !(fills(0) && fills(1) && u64::from(row.shape[2]) <= problem.k) {
            return None;
        }
        let mut instr_shape = vec![1; rank];
        instr_shape[rank - 2..].copy_from_slice(&encoded);
        // An element of 64 bits is two registers, whatever it was moved as.
        let k_width = if row.operand.bits() > 32 { 1 } else { k_width_of_32_bits(problem, self.elements) };
        Some(MatmulPlan {
            instruction: row,
            result: Encoding::NvidiaMma(NvidiaMma {
                version_major: 2,
                version_minor: 0,
                warps_per_cta,
                cga: problem.cga.clone(),
                instr_shape,
            }),
            accumulator,
            operands: in_registers(self.elements, k_width),
        })
    }

    /// `wgmma` (PTX ISA, "Asynchronous warpgroup level matrix instructions").
    fn wgmma(&self, problem: &Problem, &Candidate { row, accumulator }: &Candidate) -> Option<MatmulPlan> {
        let group = 1 << row.c.warp_roles().len();
        // What lies in shared memory is multiplied as it is.
        let converted =
            problem.operands.iter().zip(self.elements).any(|(own, element)| own.element != element);
        if converted || !problem.warps.is_multiple_of(group) {
            return None;
        }
        let block = problem.block_shape();
        let &[m, n] = &block[..] else { return None };
        let [tile_m, most_n, k] = row.shape.map(u64::from);
        // Tensor cores of sm_90 sum up products of fp8 with fewer bits than f32 has.
        if self.kind == DotType::F8 && problem.max_imprecise < 32 {
            return None;
        }
        // Rows go to warp groups first: long instructions read the left operand less often.
        let groups = problem.warps / group;
        let rows = groups.min((m / tile_m).max(1));
        let columns = groups / rows;
        let fewest = u64::from(row.fewest_columns);
        if !m.is_multiple_of(tile_m) || !n.is_multiple_of(fewest * columns) || !problem.k.is_multiple_of(k) {
            return None;
        }
        let instr_n = (n / columns).min(most_n);
        let result = Encoding::NvidiaMma(NvidiaMma {
            version_major: 3,
            version_minor: 0,
            warps_per_cta: vec![group * rows, columns],
            cga: problem.cga.clone(),
            instr_shape: vec![tile_m / group, instr_n, k],
        });
        let left = if problem.operands[0].loaded {
            Place::Shared(shared_operand(problem, 0, &result))
        } else {
            Place::Registers { k_width: 1 << row.a.k_run() }
        };
        let right = Place::Shared(shared_operand(problem, 1, &result));
        let [a, b] = self.elements;
        Some(MatmulPlan {
            instruction: row,
            result,
            accumulator,
            operands: [OperandPlan { element: a, place: left }, OperandPlan { element: b, place: right }],
        })
    }

    /// `v_mfma` (CDNA3 and CDNA4 ISA, "Matrix Arithmetic Instructions").
    fn mfma(&self, problem: &Problem, accumulator: Element, target: &TargetDesc) -> Option<MatmulPlan> {
        let exact = problem.precision != InputPrecision::Tf32;
        let sum = accumulator.dot_type(target)?;
        let rows = MatrixInstruction::of_warp(self.kind, sum, exact, problem.k, target);
        let block = problem.block_shape();
        let rank = block.len();
        // The larger instruction reads fewer operands for as many products.
        let matrix = [block[rank - 2], block[rank - 1]];
        let batches: u64 = block[..rank - 2].iter().product();
        let rest = problem.warps / problem.warps.min(batches);
        let best = rows.iter().map(|row| u64::from(row.shape[0])).min_by_key(|&side| {
            let (cost, _) = best_split(rest, matrix, [side, side], problem.chain, problem.prices());
            (cost, std::cmp::Reverse(side))
        });
        let row = rows.into_iter().find(|row| Some(u64::from(row.shape[0])) == best)?;
        let mut instr_shape = row.shape.map(u64::from);
        instr_shape[2] *= u64::from(row.operand.numbers());
        Some(MatmulPlan {
            instruction: row,
            result: Encoding::AmdMfma(AmdMfma {
                version: target.matrix_unit.amd_version()?,
                warps_per_cta: problem.split_warps(&block, [instr_shape[0], instr_shape[1]]),
                instr_shape: instr_shape.to_vec(),
                is_transposed: true,
                cga: problem.cga.clone(),
                tiles_per_warp: vec![1; rank],
                element_bit_width: row.sum.bits(),
            }),
            accumulator,
            operands: in_registers(self.elements, self.k_width(problem, row)),
        })
    }

    /// Consecutive elements along K that a thread holds. Several instructions may multiply them, each with some of K's
    /// elements in an order that both operands share. What memory holds along K comes in vectors, and goes through
    /// the LDS as such where threads need whole vectors; what other dots gave has the order of their results.
    fn k_width(&self, problem: &Problem, row: &MatrixInstruction) -> u64 {
        let own = 1 << row.a.k_run();
        let rank = problem.shape.len();
        let along_k = [rank - 1, rank - 2];
        let comes_in_vectors =
            problem.operands.iter().zip(along_k).any(|(own, k)| own.loaded && own.fastest == k);
        if problem.chain.left || problem.chain.right || !comes_in_vectors {
            return own;
        }
        let wide = own.max(128 / u64::from(row.operand.bits()));
        let lanes = u64::from(row.shape[2]) / own;
        if problem.k.is_multiple_of(wide * lanes) { wide } else { own }
    }

    /// `v_wmma` (RDNA3 and RDNA4 ISA, "Wave Matrix Multiply Accumulate"), also that of gfx1250.
    fn wmma(
        &self,
        problem: &Problem,
        &Candidate { row, accumulator }: &Candidate,
        target: &TargetDesc,
    ) -> Option<MatmulPlan> {
        // Of instructions with as many results the longest one that K fills, else the shortest.
        let is_shorter = |other: &MatrixInstruction| {
            (other.operand, other.sum) == (row.operand, row.sum) && other.shape[2] < row.shape[2]
        };
        if problem.k < u64::from(row.shape[2]) && MatrixInstruction::of(target).any(is_shorter) {
            return None;
        }
        let block = problem.block_shape();
        let rank = block.len();
        let instr_shape = row.shape.map(u64::from);
        let warps = problem.split_warps(&block, [instr_shape[0], instr_shape[1]]);
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
            instruction: row,
            result: Encoding::AmdWmma(AmdWmma {
                version: target.matrix_unit.amd_version()?,
                tile_registers: Vec::new(),
                tile_warps,
                rank,
                is_transposed: true,
                cga: problem.cga.clone(),
                instr_shape: instr_shape.to_vec(),
            }),
            accumulator,
            operands: in_registers(self.elements, 1 << row.a.k_run()),
        })
    }
}

/// The layout of an operand in shared memory. Elements of 16 bits may run
/// along either dimension, as they come; all others run along K.
pub fn shared_operand(problem: &Problem, side: usize, result: &Encoding) -> NvmmaShared {
    let operand = &problem.operands[side];
    let k_dim = 1 - side;
    let bits = u64::from(operand.element.bits());
    let fastest = if bits == 16 { operand.fastest.min(1) } else { k_dim };
    let row = if fastest == k_dim { problem.k } else { problem.block_shape()[side] };
    shared_rows(side, row * bits / 8, bits, fastest == 0, result)
}

/// The layout in shared memory of a left operand that threads have computed: `k` elements of `bits` bits along K, which are
/// neighbours in memory.
pub fn left_in_shared(k: u64, bits: u64, result: &Encoding) -> NvmmaShared {
    shared_rows(0, k * bits / 8, bits, false, result)
}

/// The layout in shared memory of operand `side`, whose rows (columns where `transposed`) of `bytes` bytes are contiguous.
fn shared_rows(side: usize, bytes: u64, bits: u64, transposed: bool, result: &Encoding) -> NvmmaShared {
    let operand = DotOperand { op_idx: side as u32, parent: Box::new(result.clone()), k_width: 0 };
    NvmmaShared {
        swizzling_byte_width: [128, 64, 32]
            .into_iter()
            .find(|width| bytes.is_multiple_of(*width))
            .unwrap_or(0),
        transposed,
        element_bit_width: bits,
        fp4_padded: false,
        rank: 2,
        cga: Encoding::DotOperand(operand).cga_layout(),
    }
}

#[cfg(test)]
mod tests;
