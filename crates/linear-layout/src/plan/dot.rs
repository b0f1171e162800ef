//! Dots: which registers go into which matrix instruction.
//!
//! An instruction says for every bit of the register and lane numbers of its three fragments along which
//! axis it moves, M, N or K, and which bit of that axis it is. A dot `C += A B` of given layouts can be
//! done by an instruction when each axis bit can be given one vector of the tensors such that all
//! fragments agree: then the layouts are divisible by the instruction's tile up to an order of the rows,
//! columns and summands, which does not change the result. In particular
//!
//! * K need not be in order: wide loads that give a lane more than 32 consecutive bits along K (`kWidth`)
//!   work, as long as both operands have the same order;
//! * a tensor smaller than the tile has zero columns or lacks registers. Along M and N results come out
//!   several times and the copies are dropped; along K the missing summands are zeros, and where *lanes*
//!   hold replicas along K all but one of them must be set to zero, in both operands: zero times infinity
//!   is not zero.
//!
//! Every small and every low-precision case is therefore the general case (paper, Section 6.1, Table 4).

use std::collections::BTreeMap;
use std::fmt;

use smallvec::SmallVec;

use crate::f2::{self, Echelon, Vectors, low_mask};
use crate::plan::matrix_instruction::{DotAxis, MatrixFamily, MatrixInstruction, Role, Roles};
use crate::plan::scan::distinct_registers;
use crate::plan::space::Distributed;
use crate::plan::{PlanError, PlanResult, Unsupported};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// The type of an element of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DotType {
    /// Two 4-bit floats (E2M1) that follow each other along K, the first in the low half of a byte. Dots count such
    /// pairs along K.
    F4Pair,
    /// Any 8-bit float.
    F8,
    /// 16-bit float.
    F16,
    /// 16-bit float with the exponent of 32 bits.
    Bf16,
    /// 32-bit float, rounded to TF32 by tensor cores.
    F32,
    /// 64-bit float.
    F64,
    /// 8-bit integer.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
}

impl DotType {
    /// Bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            DotType::F4Pair | DotType::F8 | DotType::I8 => 8,
            DotType::F16 | DotType::Bf16 | DotType::I16 => 16,
            DotType::F32 | DotType::I32 => 32,
            DotType::F64 | DotType::I64 => 64,
        }
    }

    /// Numbers that an element stands for.
    pub fn numbers(self) -> u32 {
        if self == DotType::F4Pair { 2 } else { 1 }
    }

    fn is_float(self) -> bool {
        matches!(self, DotType::F8 | DotType::F16 | DotType::Bf16 | DotType::F32 | DotType::F64)
    }

    /// The type in which a dot of these operands is computed: the wider float; the float when the other
    /// is an integer, but at least 16 bits; the wider integer. 8-bit floats stay only where the target
    /// multiplies them.
    pub fn common(self, other: DotType, target: &TargetDesc) -> DotType {
        let wider = |a: DotType, b: DotType| if a.bits() >= b.bits() { a } else { b };
        let common = match (self.is_float(), other.is_float()) {
            // Pairs are multiplied with pairs only, and without matrix instructions not at all.
            _ if self == DotType::F4Pair || other == DotType::F4Pair => DotType::F4Pair,
            _ if [(DotType::F16, DotType::Bf16), (DotType::Bf16, DotType::F16)].contains(&(self, other)) => {
                DotType::F32
            }
            (true, true) | (false, false) => wider(self, other),
            (true, false) => wider(self, DotType::F16),
            (false, true) => wider(other, DotType::F16),
        };
        if common == DotType::F8 && target.fp8_dots.is_none() { DotType::F16 } else { common }
    }
}

/// The types of a dot, and how precise it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DotTypes {
    /// Of the left operand.
    pub a: DotType,
    /// Of the right operand.
    pub b: DotType,
    /// Of the result and of the sums on the way.
    pub c: DotType,
    /// Whether 32-bit floats must be multiplied as such.
    pub exact: bool,
}

impl DotTypes {
    /// Types with the sums that tensor cores offer for them, as precise as these are.
    pub fn new(a: DotType, b: DotType, target: &TargetDesc) -> DotTypes {
        let c = match a.common(b, target) {
            DotType::F4Pair | DotType::F8 | DotType::F16 | DotType::Bf16 | DotType::F32 => DotType::F32,
            DotType::F64 => DotType::F64,
            DotType::I8 | DotType::I16 | DotType::I32 => DotType::I32,
            DotType::I64 => DotType::I64,
        };
        DotTypes { a, b, c, exact: false }
    }

    /// The type that matrix instructions multiply: 8-bit floats are not summed in 16 bits.
    fn kind(&self, target: &TargetDesc) -> DotType {
        match self.a.common(self.b, target) {
            DotType::F8 if self.c == DotType::F16 => DotType::F16,
            kind => kind,
        }
    }
}

/// One execution of a matrix instruction: registers in the order of its fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DotInstruction {
    /// Of the left operand; `None` is zero.
    pub a: Vec<Option<u32>>,
    /// Of the right operand; `None` is zero.
    pub b: Vec<Option<u32>>,
    /// Of the result, which is also the third operand; `None` is zero and its result dropped.
    pub c: Vec<Option<u32>>,
}

/// How a dot is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dot {
    /// By matrix instructions of a warp.
    Matrix {
        /// The instruction.
        instruction: &'static MatrixInstruction,
        /// Whether it computes the transposed dot: its first operand is the right one of the dot, and
        /// its results are the dot's with rows for columns.
        swapped: bool,
        /// Its executions, in order: those that add to the same registers are far apart.
        executions: Vec<DotInstruction>,
        /// Lanes whose number has one of these bits set take zeros for both operands.
        zero_lanes: u64,
    },
    /// By multiplications and additions within threads: `c += a · b` for registers `[c, a, b]`, in order.
    Fma(Vec<[u32; 3]>),
    /// By instructions within threads that add several products to a sum at once (`v_dot2_f32_f16`, `v_dot4_i32_i8`), in order.
    Products(Vec<DotProducts>),
}

/// One sum of a few products within a thread: `c += a[0] · b[0] + a[1] · b[1] + …`, each a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotProducts {
    /// Of the result.
    pub c: u32,
    /// Of the left operand, consecutive along K.
    pub a: Vec<u32>,
    /// Of the right operand.
    pub b: Vec<u32>,
}

/// How many products of elements of `kind` an instruction of the target adds to a sum of `sum` within a thread, if it adds several.
pub fn products_at_once(kind: DotType, sum: DotType, target: &TargetDesc) -> Option<u32> {
    let has = &target.primitives;
    match (kind, sum) {
        (DotType::F16, DotType::F32) if has.dot2_f16 => Some(2),
        (DotType::Bf16, DotType::F32) if has.dot2_bf16 => Some(2),
        (DotType::I8, DotType::I32) if has.dot4_i8 => Some(4),
        _ => None,
    }
}

/// How the dot of two operands in given layouts is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DotTilePlan {
    /// The type that operands are converted to first.
    pub kind: DotType,
    /// How it is computed.
    pub dot: Dot,
    /// For each register of the result, the register that is computed and holds the same element.
    pub copies: Vec<u32>,
}

impl DotTilePlan {
    /// The plan for `a` of M×K, `b` of K×N and `c` of M×N elements, dimensions in that order, after a
    /// first dimension of independent dots if there are three.
    ///
    /// # Errors
    /// Layouts that are not of two or three dimensions or whose shapes do not fit together, and layouts
    /// that neither an instruction of the target nor multiplications within threads can work on.
    pub fn new(
        a: &LinearLayout,
        b: &LinearLayout,
        c: &LinearLayout,
        types: DotTypes,
        target: &TargetDesc,
    ) -> PlanResult<DotTilePlan> {
        let operands = Operands::new(a, b, c, target)?;
        let kind = types.kind(target);
        let copies = operands.c.all.representatives();
        let depth = 1 << operands.a.bits(DotAxis::K);
        // The one that multiplies least in vain, and of these the one that is executed least often: a tile of few rows has zeros in
        // the longer ones of f64.
        let mut best: Option<(u64, Dot)> = None;
        for instruction in MatrixInstruction::of_warp(kind, types.c, types.exact, depth, target) {
            for swapped in [false, true].into_iter().take(1 + usize::from(instruction.is_symmetric())) {
                let Some((dot, _)) = operands.matrix(instruction, swapped) else { continue };
                let work = dot.multiply_adds();
                if best.as_ref().is_none_or(|(least, known)| (work, dot.count()) < (*least, known.count())) {
                    best = Some((work, dot));
                }
            }
        }
        if let Some((_, dot)) = best {
            return Ok(DotTilePlan { kind, dot, copies });
        }
        let several = products_at_once(kind, types.c, target).filter(|count| u64::from(*count) <= depth);
        if let Some(products) = several.and_then(|count| operands.products(count)) {
            return Ok(DotTilePlan { kind, dot: Dot::Products(products), copies });
        }
        let fma = operands.fma().filter(|_| kind != DotType::F4Pair).ok_or_else(|| {
            let (sum, exact) = (types.c, if types.exact { "exactly " } else { "" });
            let reason = format!(
                "no instruction of {target} multiplies {kind:?} {exact}and sums in {sum:?} in these layouts"
            );
            PlanError::unsupported(Unsupported::Types, reason)
        })?;
        Ok(DotTilePlan { kind: types.c, dot: Dot::Fma(fma), copies })
    }

    /// Matrix instructions, or multiplications and sums of products, of one warp.
    pub fn count(&self) -> usize {
        self.dot.count()
    }
}

impl Dot {
    fn count(&self) -> usize {
        match self {
            Dot::Matrix { executions, .. } => executions.len(),
            Dot::Fma(triples) => triples.len(),
            Dot::Products(sums) => sums.len(),
        }
    }

    /// Multiplications and additions of the matrix instructions of a warp, also those of zeros.
    fn multiply_adds(&self) -> u64 {
        match self {
            Dot::Matrix { instruction, executions, .. } => {
                executions.len() as u64 * instruction.multiply_adds()
            }
            Dot::Fma(_) | Dot::Products(_) => 0,
        }
    }
}

impl fmt::Display for DotTilePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.dot {
            Dot::Matrix { instruction, swapped, executions, zero_lanes } => {
                let swapped = if *swapped { ", transposed" } else { "" };
                writeln!(f, "{} × {} in {:?}{swapped}", executions.len(), instruction.name, self.kind)?;
                if *zero_lanes != 0 {
                    writeln!(f, "  operands zero where lane & {zero_lanes:#x} != 0")?;
                }
                Ok(())
            }
            Dot::Fma(triples) => {
                writeln!(f, "{} multiplications and additions in {:?}", triples.len(), self.kind)
            }
            Dot::Products(sums) => {
                let each = sums.first().map_or(0, |sum| sum.a.len());
                writeln!(f, "{} sums of {each} products in {:?}", sums.len(), self.kind)
            }
        }
    }
}

/// One axis of an operand and where its coordinate is in a packed column.
struct Part {
    axis: DotAxis,
    shift: u32,
    bits: u32,
}

/// A layout with each column told apart by axis.
pub(super) struct Operand {
    pub all: Distributed,
    parts: SmallVec<[Part; 3]>,
}

impl Operand {
    pub fn new(layout: &LinearLayout, axes: &[DotAxis], target: &TargetDesc) -> PlanResult<Operand> {
        let dims: SmallVec<[Dim; 3]> = (0..axes.len()).map(Dim::out).collect();
        let mut shift = 0;
        let part = |(&axis, &dim): (&DotAxis, &Dim)| {
            let part = Part { axis, shift, bits: layout.out_bits(dim) };
            shift += part.bits;
            part
        };
        let parts = axes.iter().zip(&dims).map(part).collect();
        Ok(Operand { all: Distributed::new(layout, &dims, target)?, parts })
    }

    /// Bits of a coordinate.
    fn bits(&self, axis: DotAxis) -> u32 {
        self.parts.iter().find(|p| p.axis == axis).map_or(0, |p| p.bits)
    }

    /// The part of a column along an axis.
    pub fn part(&self, column: u64, axis: DotAxis) -> u64 {
        let part = self.parts.iter().find(|p| p.axis == axis);
        part.map_or(0, |p| column >> p.shift & low_mask(p.bits))
    }

    /// The vector of a column along an axis, if it moves along no other. Zero moves along any.
    pub fn along(&self, column: u64, axis: DotAxis) -> Option<u64> {
        let part = self.parts.iter().find(|p| p.axis == axis)?;
        let v = column >> part.shift & low_mask(part.bits);
        (v << part.shift == column).then_some(v)
    }

    /// The column of the element with these coordinates.
    fn column(&self, coordinate: impl Fn(DotAxis) -> u64) -> u64 {
        self.parts.iter().fold(0, |column, p| column | coordinate(p.axis) << p.shift)
    }

    /// The distinct register bits; `None` when one moves along several axes.
    pub fn registers(&self) -> Option<Vec<Bit>> {
        let mut span = Echelon::new();
        let fresh = self.all.reg.iter().enumerate().filter(|&(_, &c)| span.insert(c));
        let bit = |(i, &column): (usize, &u64)| {
            let mut axes = self.parts.iter().map(|p| p.axis);
            let axis = axes.find(|&axis| self.along(column, axis).is_some())?;
            Some(Bit { register: 1 << i, axis, vector: self.part(column, axis) })
        };
        fresh.map(bit).collect()
    }
}

/// A bit of a register number that moves along one axis.
pub(super) struct Bit {
    /// The number with this bit alone.
    pub register: u32,
    pub axis: DotAxis,
    pub vector: u64,
}

/// How the dot of two operands with scales is computed: each scale is for a row of the left operand or a column of the right
/// one, and for a block along K.
///
/// K need not be in order within the blocks, and the blocks need not be, but a block of the instruction must be one of the
/// tensors'.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScaledDotPlan {
    /// The dot.
    pub dot: DotTilePlan,
    /// For each execution where the scales of its left operand are, and of its right one; `None` where all of them are one.
    pub scales: [Option<Vec<ScaleRegisters>>; 2],
}

/// Where the scales of one operand of an execution are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleRegisters {
    /// The registers with the scales of blocks that follow each other along K, which become the bytes of one register; one where each
    /// lane has the scale of one block ([`MatrixInstruction::scales_in_register`]).
    pub registers: SmallVec<[u32; 4]>,
    /// Whether the lanes of the upper half of the wave have them, where only half of the lanes do.
    pub in_upper_lanes: bool,
}

/// A dot whose operands may have scales.
#[derive(Clone, Copy, Debug)]
pub struct ScaledDot<'a> {
    /// M×K elements.
    pub a: &'a LinearLayout,
    /// K×N elements.
    pub b: &'a LinearLayout,
    /// M×N elements.
    pub c: &'a LinearLayout,
    /// Their types.
    pub types: DotTypes,
    /// Elements along K for each scale: pairs count as one.
    pub factor: u32,
}

impl ScaledDot<'_> {
    /// The first instruction with scales that computes it, and where lanes, warps and blocks need scales.
    fn choose(&self, target: &TargetDesc) -> PlanResult<(DotTilePlan, [ScaleColumns; 2])> {
        let operands = Operands::new(self.a, self.b, self.c, target)?;
        let kind = self.types.kind(target);
        let copies = operands.c.all.representatives();
        let fits = |row: &&MatrixInstruction| {
            row.scaled == Some(self.factor) && row.multiplies(kind, self.types.c, true)
        };
        for instruction in MatrixInstruction::of(target).filter(fits) {
            for swapped in [false, true].into_iter().take(1 + usize::from(instruction.is_symmetric())) {
                let Some((dot, vectors)) = operands.matrix(instruction, swapped) else { continue };
                let roles = instruction.roles(swapped);
                let columns = [
                    ScaleColumns::new(&operands.a, DotAxis::M, instruction, &roles[0], &vectors),
                    ScaleColumns::new(&operands.b, DotAxis::N, instruction, &roles[1], &vectors),
                ];
                if let [Some(left), Some(right)] = columns {
                    return Ok((DotTilePlan { kind, dot, copies }, [left, right]));
                }
            }
        }
        let factor = self.factor;
        let reason = format!(
            "no instruction of {target} multiplies {kind:?} with scales for {factor} elements in these layouts"
        );
        Err(PlanError::unsupported(Unsupported::Distribution, reason))
    }

    /// Layouts in which scales can be, rows (columns) times blocks along K: one of the left operand's and one of the right
    /// operand's.
    ///
    /// # Errors
    /// Where no instruction with scales computes the dot.
    pub fn scale_layouts(&self, target: &TargetDesc) -> PlanResult<[LinearLayout; 2]> {
        let (_, [left, right]) = self.choose(target)?;
        Ok([left.layout()?, right.layout()?])
    }

    /// The plan for scales in these layouts.
    ///
    /// # Errors
    /// Where no instruction with scales computes the dot, or lanes do not hold the scales that it needs.
    pub fn plan(&self, scales: [Option<&LinearLayout>; 2], target: &TargetDesc) -> PlanResult<ScaledDotPlan> {
        let (dot, columns) = self.choose(target)?;
        let operands = Operands::new(self.a, self.b, self.c, target)?;
        let Dot::Matrix { executions, .. } = &dot.dot else {
            return Err(PlanError::unsupported(Unsupported::Types, "scales without a matrix instruction"));
        };
        let mut made = [None, None];
        for (side, operand) in [&operands.a, &operands.b].into_iter().enumerate() {
            let Some(layout) = scales[side] else { continue };
            let firsts = executions.iter().map(|e| if side == 0 { e.a.first() } else { e.b.first() });
            let registers = columns[side].registers(operand, firsts, layout, target)?;
            let which = if side == 0 { "left" } else { "right" };
            made[side] = Some(registers.ok_or_else(|| {
                PlanError::unsupported(
                    Unsupported::Distribution,
                    format!("lanes do not hold the scales of the {which} operand"),
                )
            })?);
        }
        Ok(ScaledDotPlan { dot, scales: made })
    }
}

/// Where scales must be: (row or column, block along K) by bits of the numbers of lanes, warps and blocks.
struct ScaleColumns {
    axis: DotAxis,
    /// log2 of the elements along K for each scale.
    factor: u32,
    /// Bits of rows or columns, and of blocks along K.
    bits: [u32; 2],
    /// `None`: an execution takes the scales of either half of the lanes.
    lane: Vec<Option<[u64; 2]>>,
    /// By bits of the number of a byte, where a register has the scales of several blocks.
    byte: Vec<[u64; 2]>,
    warp: Vec<[u64; 2]>,
    block: Vec<[u64; 2]>,
}

impl ScaleColumns {
    /// `None` where a block of the instruction is none of the tensors'.
    fn new(
        operand: &Operand,
        axis: DotAxis,
        instruction: &MatrixInstruction,
        roles: &Roles,
        vectors: &Vectorised,
    ) -> Option<ScaleColumns> {
        let log = instruction.scaled?.ilog2();
        let bytes = instruction.scales_in_register();
        let along_k = |bit: u32| vectors.get(&(DotAxis::K, bit)).copied().filter(|v| *v != 0);
        if (0..log).any(|bit| along_k(bit).is_none_or(|v| v >> log != 0)) {
            return None;
        }
        let mut lane = Vec::new();
        let mut next = log;
        for role in &roles.lanes {
            lane.push(match role {
                Some((DotAxis::K, _)) if bytes > 1 => None,
                Some((DotAxis::K, _)) => {
                    let v = along_k(next).filter(|v| v & low_mask(log) == 0)?;
                    next += 1;
                    Some([0, v >> log])
                }
                Some(role) => Some([vectors.get(role).copied().unwrap_or(0), 0]),
                None => return None,
            });
        }
        // Where K ends earlier, elements are zero, and have any scale of their row or column.
        let blocks = (log..log + bytes.ilog2()).map(|bit| along_k(bit).unwrap_or(0));
        let byte: Option<Vec<_>> =
            blocks.map(|v| (v & low_mask(log) == 0).then_some([0, v >> log])).collect();
        let rows = |columns: &Vectors| columns.iter().map(|c| [operand.part(*c, axis), 0]).collect();
        Some(ScaleColumns {
            axis,
            factor: log,
            bits: [operand.bits(axis), operand.bits(DotAxis::K).checked_sub(log)?],
            lane,
            byte: byte?,
            warp: rows(&operand.all.warp),
            block: rows(&operand.all.block),
        })
    }

    fn packed(&self, [line, block]: [u64; 2]) -> u64 {
        line | block << self.bits[0]
    }

    /// With registers for all that lanes, warps and blocks leave.
    fn layout(&self) -> PlanResult<LinearLayout> {
        let mut span = Echelon::new();
        let lane: Vec<[u64; 2]> = self.lane.iter().map(|column| column.unwrap_or_default()).collect();
        for column in lane.iter().chain(&self.warp).chain(&self.block) {
            span.insert(self.packed(*column));
        }
        let lines = (0..self.bits[0]).map(|bit| [1 << bit, 0]);
        let blocks = (0..self.bits[1]).map(|bit| [0, 1 << bit]);
        // The bytes of a register first.
        let units = self.byte.iter().copied().chain(lines).chain(blocks);
        let registers: Vec<[u64; 2]> = units.filter(|unit| span.insert(self.packed(*unit))).collect();
        let bases = |columns: &[[u64; 2]]| columns.iter().map(|column| column.to_vec()).collect::<Vec<_>>();
        let ins = [
            (Dim::REGISTER, bases(&registers)),
            (Dim::LANE, bases(&lane)),
            (Dim::WARP, bases(&self.warp)),
            (Dim::BLOCK, bases(&self.block)),
        ];
        Ok(LinearLayout::from_bases(&ins, &[Dim::out(0), Dim::out(1)])?)
    }

    /// For each execution, of which the first register of its fragment is given, where `layout` has its scales; `None` where it does
    /// not.
    fn registers<'p>(
        &self,
        operand: &Operand,
        firsts: impl Iterator<Item = Option<&'p Option<u32>>>,
        layout: &LinearLayout,
        target: &TargetDesc,
    ) -> PlanResult<Option<Vec<ScaleRegisters>>> {
        let scales = Distributed::new(layout, &[Dim::out(0), Dim::out(1)], target)?;
        let held = |held: &Vectors, i: usize| held.get(i).copied().unwrap_or(0);
        let same = |all: &Vectors, needed: &[[u64; 2]]| {
            (0..all.len().max(needed.len()))
                .all(|i| held(all, i) == needed.get(i).map_or(0, |column| self.packed(*column)))
        };
        let bits = [Dim::out(0), Dim::out(1)].map(|dim| layout.out_bits(dim));
        let in_lanes = (0..self.lane.len().max(scales.lane.len())).all(|i| match self.lane.get(i) {
            Some(None) => true,
            Some(Some(column)) => held(&scales.lane, i) == self.packed(*column),
            None => held(&scales.lane, i) == 0,
        });
        let fits = in_lanes && same(&scales.warp, &self.warp) && same(&scales.block, &self.block);
        if bits != self.bits || !fits {
            return Ok(None);
        }
        // What the upper half of the lanes has differs by this from what the lower one has.
        let upper = self.lane.iter().position(Option::is_none).map_or(0, |i| held(&scales.lane, i));
        let mut registers = Echelon::of(&scales.reg);
        let is_halved = registers.insert(upper);
        let above = 1 << scales.reg.len();
        let found = |first: Option<&Option<u32>>| {
            let column = f2::mul(&operand.all.reg, u64::from((*first?)?));
            let (line, k) = (operand.part(column, self.axis), operand.part(column, DotAxis::K));
            let aligned = k & low_mask(self.factor) == 0;
            let first = registers.express(self.packed([line, k >> self.factor])).filter(|_| aligned)?;
            let is_above = |found: u64| is_halved && found & above != 0;
            let mut all: SmallVec<[u32; 4]> = SmallVec::new();
            for byte in 0..1u64 << self.byte.len() {
                let columns = self.byte.iter().enumerate().filter(|(bit, _)| byte >> bit & 1 != 0);
                let moved = columns.fold(0, |moved, (_, column)| moved ^ self.packed(*column));
                let found = registers.express(moved)? ^ first;
                if is_above(found) != is_above(first) {
                    return None;
                }
                all.push((found & (above - 1)) as u32);
            }
            Some(ScaleRegisters { registers: all, in_upper_lanes: is_above(first) })
        };
        Ok(firsts.map(found).collect())
    }
}

struct Operands {
    a: Operand,
    b: Operand,
    c: Operand,
}

/// The vectors given to the bits of an axis: `None` while undecided, zero where the tensor ends.
type Vectorised = BTreeMap<(DotAxis, u32), u64>;

impl Operands {
    fn new(
        a: &LinearLayout,
        b: &LinearLayout,
        c: &LinearLayout,
        target: &TargetDesc,
    ) -> PlanResult<Operands> {
        use DotAxis::{Batch, K, M, N};
        let sizes = |l: &LinearLayout| -> SmallVec<[u64; 3]> {
            (0..l.num_out_dims()).map(|i| l.out_size(Dim::out(i)).unwrap_or(0)).collect()
        };
        let (sa, sb, sc) = (sizes(a), sizes(b), sizes(c));
        let fit = match (&sa[..], &sb[..], &sc[..]) {
            ([m, k], [l, n], [p, q]) => k == l && (m, n) == (p, q),
            ([x, m, k], [y, l, n], [z, p, q]) => k == l && (m, n) == (p, q) && x == y && y == z,
            _ => false,
        };
        if !fit {
            let shape = |sizes: &[u64]| sizes.iter().map(u64::to_string).collect::<Vec<_>>().join("×");
            let shapes = format!("{} times {} is not {}", shape(&sa), shape(&sb), shape(&sc));
            return Err(PlanError::unsupported(Unsupported::Shape, shapes));
        }
        let first = 3 - sa.len();
        Ok(Operands {
            a: Operand::new(a, &[Batch, M, K][first..], target)?,
            b: Operand::new(b, &[Batch, K, N][first..], target)?,
            c: Operand::new(c, &[Batch, M, N][first..], target)?,
        })
    }

    /// Whether the threads that these columns tell apart each hold all that their part of the result needs.
    fn hold_all(&self, of: impl Fn(&Distributed) -> &Vectors) -> bool {
        use DotAxis::{Batch, K, M, N};
        let (a, b, c) = (of(&self.a.all), of(&self.b.all), of(&self.c.all));
        (0..a.len().max(b.len()).max(c.len())).all(|i| {
            let at = |v: &Vectors| v.get(i).copied().unwrap_or(0);
            let a = |axis| self.a.part(at(a), axis);
            let b = |axis| self.b.part(at(b), axis);
            let c = |axis| self.c.part(at(c), axis);
            let batches = a(Batch) == b(Batch) && b(Batch) == c(Batch);
            batches && a(M) == c(M) && b(N) == c(N) && a(K) == 0 && b(K) == 0
        })
    }

    /// Whether every warp and block holds all that its part of the result needs.
    fn warps_fit(&self) -> bool {
        self.hold_all(|d| &d.warp) && self.hold_all(|d| &d.block)
    }

    fn matrix(&self, instruction: &'static MatrixInstruction, swapped: bool) -> Option<(Dot, Vectorised)> {
        if !self.warps_fit() {
            return None;
        }
        let roles = instruction.roles(swapped);
        let mut vectors = Vectorised::new();
        for (operand, roles) in [&self.a, &self.b, &self.c].into_iter().zip(&roles) {
            if roles.lanes.len() != operand.all.lane.len() {
                return None;
            }
            for (&role, &column) in roles.lanes.iter().zip(&operand.all.lane) {
                match role {
                    None if column == 0 => {}
                    None => return None,
                    Some(role) => {
                        let v = operand.along(column, role.0)?;
                        if *vectors.entry(role).or_insert(v) != v {
                            return None;
                        }
                    }
                }
            }
        }
        let mut registers = [self.a.registers()?, self.b.registers()?, self.c.registers()?];
        choose_registers(&roles, &registers, &mut vectors);
        // Lanes of both operands that hold replicas along K.
        let is_copy = |role: &Role| match role {
            Some(role @ (DotAxis::K, _)) => vectors.get(role) == Some(&0),
            _ => false,
        };
        // Both operands have the same lanes along K.
        let lanes = roles[0].lanes.iter().enumerate();
        let zero_lanes = lanes.filter(|(_, role)| is_copy(role)).fold(0, |mask, (i, _)| mask | 1u64 << i);
        let mut fragments = Vec::new();
        for (roles, held) in roles.iter().zip(&mut registers) {
            fragments.push(take(&roles.registers, held, &vectors)?);
        }
        // What reorders PTX's instructions counts registers on its own.
        let in_order = matches!(instruction.family, MatrixFamily::Mfma | MatrixFamily::Wmma);
        let executions = repetitions(&registers, &fragments, in_order)?;
        Some((Dot::Matrix { instruction, swapped, executions, zero_lanes }, vectors))
    }

    /// Multiplications within threads, when every thread holds the rows and columns that it needs.
    fn fma(&self) -> Option<Vec<[u32; 3]>> {
        Some(self.products(1)?.iter().map(|one| [one.c, one.a[0], one.b[0]]).collect())
    }

    /// Sums of `count` products within threads, under the same condition.
    fn products(&self, count: u32) -> Option<Vec<DotProducts>> {
        use DotAxis::{Batch, K, M, N};
        if !self.hold_all(|d| &d.lane) || !self.warps_fit() {
            return None;
        }
        let (ra, rb) = (Echelon::of(&self.a.all.reg), Echelon::of(&self.b.all.reg));
        let results = distinct_registers(&self.c.all);
        let mut sums = Vec::new();
        for first in (0..1u64 << self.a.bits(K)).step_by(count as usize) {
            for &c in &results {
                let element = f2::mul(&self.c.all.reg, c.into());
                let (mut a, mut b) = (Vec::new(), Vec::new());
                for k in first..first + u64::from(count) {
                    let coordinate = |axis| match axis {
                        K => k,
                        Batch | M | N => self.c.part(element, axis),
                    };
                    a.push(ra.express(self.a.column(coordinate))? as u32);
                    b.push(rb.express(self.b.column(coordinate))? as u32);
                }
                sums.push(DotProducts { c, a, b });
            }
        }
        Some(sums)
    }
}

/// Gives a vector to every axis bit that is a register in both of its fragments, in the order of the first one's registers:
/// where the other one lacks any of them, there is no plan.
fn choose_registers(roles: &[Roles; 3], registers: &[Vec<Bit>; 3], vectors: &mut Vectorised) {
    let [a, b, _] = registers;
    let axes = [
        (DotAxis::K, &roles[0].registers, a),
        (DotAxis::M, &roles[0].registers, a),
        (DotAxis::N, &roles[1].registers, b),
    ];
    for (axis, roles, held) in axes {
        for &role in roles.iter().flatten().filter(|r| r.0 == axis) {
            if vectors.contains_key(&role) {
                continue;
            }
            let used = |v: u64| vectors.iter().any(|(k, &x)| k.0 == axis && x == v);
            let free = |bit: &&Bit| bit.axis == axis && !used(bit.vector);
            let v = held.iter().find(free).map_or(0, |bit| bit.vector);
            vectors.insert(role, v);
        }
    }
}

/// The register bits of a fragment, `None` where the tensor ends; they are taken out of `held`.
fn take(roles: &[Role], held: &mut Vec<Bit>, vectors: &Vectorised) -> Option<Vec<Option<u32>>> {
    let one = |role: &Role| match *role {
        None => Some(None),
        Some(role) => match vectors.get(&role).copied().unwrap_or(0) {
            0 => Some(None),
            v => {
                let i = held.iter().position(|bit| bit.axis == role.0 && bit.vector == v)?;
                Some(Some(held.remove(i).register))
            }
        },
    };
    roles.iter().map(one).collect()
}

/// All executions: the registers that no fragment took count them, the same in the fragments of an axis.
///
/// The fragments of the axis that counts fastest are alive all at once, one of the other axis beside them. Columns count
/// fastest; `in_order`, if instructions stay in the order that they have here, those of the two axes whose fragments take fewer registers.
fn repetitions(
    left: &[Vec<Bit>; 3],
    fragments: &[Vec<Option<u32>>],
    in_order: bool,
) -> Option<Vec<DotInstruction>> {
    // For each bit that counts along an axis, its register in each of the three fragments.
    let matched = |axis: DotAxis, sides: &[usize]| -> Option<Vec<[u32; 3]>> {
        let along = |side: usize| left[side].iter().filter(move |bit| bit.axis == axis);
        let mut bits: Vec<&Bit> = along(sides[0]).collect();
        bits.sort_by_key(|bit| bit.vector);
        if sides.iter().any(|&side| along(side).count() != bits.len()) {
            return None;
        }
        let everywhere = |bit: &&Bit| {
            let mut registers = [0; 3];
            for &side in sides {
                registers[side] = along(side).find(|other| other.vector == bit.vector)?.register;
            }
            Some(registers)
        };
        bits.iter().map(everywhere).collect()
    };
    let [mut inner, mut outer] = [matched(DotAxis::N, &[1, 2])?, matched(DotAxis::M, &[0, 2])?];
    if in_order && outer.len() + fragments[0].len() < inner.len() + fragments[1].len() {
        std::mem::swap(&mut inner, &mut outer);
    }
    let rest = [inner, outer, matched(DotAxis::Batch, &[0, 1, 2])?, matched(DotAxis::K, &[0, 1])?].concat();
    let fragment = |bits: &[Option<u32>], base: u32| -> Vec<Option<u32>> {
        let at = |x: u32| {
            bits.iter().enumerate().try_fold(base, |r, (i, bit)| match (x >> i & 1, bit) {
                (0, _) => Some(r),
                (_, Some(b)) => Some(r | b),
                (_, None) => None,
            })
        };
        (0..1u32 << bits.len()).map(at).collect()
    };
    let execution = |i: u64| {
        let base = |side: usize| {
            rest.iter().enumerate().fold(0, |r, (bit, registers)| match i >> bit & 1 {
                0 => r,
                _ => r | registers[side],
            })
        };
        DotInstruction {
            a: fragment(&fragments[0], base(0)),
            b: fragment(&fragments[1], base(1)),
            c: fragment(&fragments[2], base(2)),
        }
    };
    Some((0..1u64 << rest.len()).map(execution).collect())
}
