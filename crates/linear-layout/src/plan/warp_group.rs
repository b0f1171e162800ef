//! Dots of warp groups: the `wgmma` instructions that compute one, and what each works on.
//!
//! A group of four warps multiplies 64 rows by N columns, N a multiple of 8 up to 256, over 32 bytes of
//! summands (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions"), as the
//! [table of matrix instructions](MatrixInstruction) says. Fragments in registers are those
//! of `mma.m16n8` side by side, with 16 rows in each warp; the right operand, and maybe the left one, is
//! read from shared memory through [matrix descriptors](MatrixDescriptorPlan). Since these name rows,
//! columns and summands by their place in memory, the layouts of fragments have to agree with the
//! instruction up to an order of whole tiles, not of single rows or summands.

use std::fmt;
use std::ops::Range;

use smallvec::SmallVec;

use crate::f2::low_mask;
use crate::plan::dot::{Bit, Operand};
use crate::plan::matrix_instruction::{Fragment, MatrixFamily, Role};
use crate::plan::{
    Count, DotAxis, DotType, DotTypes, MatrixDescriptorPlan, MatrixInstruction, PlanError, PlanResult,
    ThreadBases, Unsupported,
};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// Where an operand is, and how.
#[derive(Clone, Copy, Debug)]
pub enum WarpGroupOperand<'a> {
    /// In registers with this layout.
    Registers(&'a LinearLayout),
    /// In shared memory with this layout, from `offset` in elements.
    Shared(&'a LinearLayout),
}

/// A dot of warp groups.
#[derive(Clone, Copy, Debug)]
pub struct WarpGroupDot<'a> {
    /// Left operand, M×K or, in shared memory, a buffer that holds it.
    pub a: WarpGroupOperand<'a>,
    /// Right operand, K×N or a buffer that holds it, in shared memory.
    pub b: &'a LinearLayout,
    /// Result, M×N.
    pub c: &'a LinearLayout,
    /// Summands of each block.
    pub depth: u64,
    /// Types of elements.
    pub types: DotTypes,
    /// At most so many products of 8-bit floats are summed with less than the result's precision.
    pub max_imprecise: u64,
}

/// One `wgmma`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarpGroupStep {
    /// Registers of the left operand in the order of its fragment; none when it is in shared memory.
    pub a: Vec<u32>,
    /// Number of the tile along K.
    pub k: u64,
}

/// Instructions that add to the same registers, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarpGroupRun {
    /// Numbers of the tiles along M and N, before what the warp adds to them.
    pub tile: [u64; 2],
    /// Registers of the result in the order of its fragment.
    pub c: Vec<u32>,
    /// The instructions.
    pub steps: Vec<WarpGroupStep>,
}

/// How a dot of warp groups is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarpGroupDotPlan {
    /// The row of the table; its columns are the most that there can be.
    pub instruction: &'static MatrixInstruction,
    /// The type of the elements of the operands.
    pub kind: DotType,
    /// Rows, columns and summands of one instruction.
    pub shape: [u64; 3],
    /// Descriptors of the left operand, if it is in shared memory.
    pub a: Option<MatrixDescriptorPlan>,
    /// Descriptors of the right operand.
    pub b: MatrixDescriptorPlan,
    /// What the number of a warp adds, by XOR, to the start addresses of the operands' tiles, in bytes.
    pub starts: [ThreadBases; 2],
    /// The instructions, in order.
    pub runs: Vec<WarpGroupRun>,
    /// Whether each run sums from zero, and its sums are then added to the result with its precision.
    pub promoted: bool,
    /// For each register of the result, the register that is computed and holds the same element.
    pub copies: Vec<u32>,
}

impl WarpGroupDotPlan {
    /// Steps of each run, in parts that follow each other, each with its own fence (PTX ISA, "wgmma.fence"): where other
    /// instructions run `beside` the dot, the second half of a left operand in registers may be computed while the first is
    /// multiplied.
    pub fn parts(&self, beside: bool) -> SmallVec<[Range<usize>; 2]> {
        let steps = self.runs.iter().map(|run| run.steps.len()).max().unwrap_or(0);
        let even = self.runs.iter().all(|run| run.steps.len() == steps);
        match steps / 2 {
            half @ 1.. if beside && even && self.a.is_none() && !self.promoted => {
                SmallVec::from_iter([0..half, half..steps])
            }
            _ => SmallVec::from_iter(std::iter::once(0..steps)),
        }
    }

    /// The plan for a dot.
    ///
    /// # Errors
    /// Targets without `wgmma`, types that it does not take, and layouts that it does not work on; the
    /// message says what does not fit.
    pub fn new(dot: &WarpGroupDot<'_>, target: &TargetDesc) -> PlanResult<WarpGroupDotPlan> {
        if !target.primitives.wgmma {
            return Err(PlanError::NotOnTarget { what: "wgmma", target: target.name });
        }
        let instruction = instruction(&dot.types, target)?;
        let kind = instruction.operand;
        let bits = kind.bits();
        let [rows_of_one, _, step] = instruction.shape.map(u64::from);
        let mut result = Accumulators::new(dot.c, instruction, target)?;
        let n = result.columns();
        let (first, second) = (Dim::out(0), Dim::out(1));
        let a = match dot.a {
            WarpGroupOperand::Registers(_) => None,
            WarpGroupOperand::Shared(memory) => {
                Some(MatrixDescriptorPlan::new(memory, (first, second), rows_of_one, bits, target)?)
            }
        };
        let (b, n) = widest(dot.b, (second, first), n, bits, target)?;
        let shape = [rows_of_one, n, step];
        if dot.depth == 0 || !dot.depth.is_multiple_of(step) {
            let depth = dot.depth;
            return Err(unsupported(
                Unsupported::Shape,
                format!("{depth} summands are no multiple of the {step} of a wgmma"),
            ));
        }
        let fragment = result.take_fragment(n)?;
        let left = match dot.a {
            WarpGroupOperand::Registers(layout) => Some(Left::new(layout, &result, target)?),
            WarpGroupOperand::Shared(_) => None,
        };
        let starts = [
            result.starts(DotAxis::M, rows_of_one, |tile| a.as_ref().map_or(0, |a| a.start([tile, 0])))?,
            result.starts(DotAxis::N, n, |tile| b.start([tile, 0]))?,
        ];
        // Sums of so many instructions are precise enough.
        let chunk = match kind {
            DotType::F8 if dot.max_imprecise < dot.depth => (dot.max_imprecise / step).max(1),
            _ => dot.depth / step,
        };
        let mut runs = Vec::new();
        for (rows, row_registers) in result.tiles(DotAxis::M) {
            for (columns, column_registers) in result.tiles(DotAxis::N) {
                let base = row_registers | column_registers;
                let c: Vec<u32> = fragment.iter().map(|register| register | base).collect();
                let tile = [rows / rows_of_one, columns / n];
                let tiles: Vec<u64> = (0..dot.depth / step).collect();
                for part in tiles.chunks(chunk as usize) {
                    let step_of = |&k: &u64| -> PlanResult<WarpGroupStep> {
                        let a = match &left {
                            Some(left) => left.registers(rows, k * step)?,
                            None => Vec::new(),
                        };
                        Ok(WarpGroupStep { a, k })
                    };
                    let steps = part.iter().map(step_of).collect::<PlanResult<Vec<_>>>()?;
                    runs.push(WarpGroupRun { tile, c: c.clone(), steps });
                }
            }
        }
        let promoted = chunk * step < dot.depth;
        let copies = result.operand.all.representatives();
        Ok(WarpGroupDotPlan { instruction, kind, shape, a, b, starts, runs, promoted, copies })
    }

    /// Instructions of one warp group.
    pub fn count(&self) -> usize {
        self.runs.iter().map(|run| run.steps.len()).sum()
    }
}

impl fmt::Display for WarpGroupDotPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.shape;
        writeln!(f, "{} × wgmma.m{m}n{n}k{k} in {:?}", self.count(), self.kind)?;
        match &self.a {
            Some(a) => write!(f, "  left: {a}")?,
            None => writeln!(f, "  left operand in registers")?,
        }
        write!(f, "  right: {}", self.b)?;
        if self.promoted {
            let steps = self.runs.iter().map(|run| run.steps.len() as u64).max().unwrap_or(0);
            writeln!(f, "  sums of {} at a time", Count(steps, "instruction"))?;
        }
        Ok(())
    }
}

fn unsupported(why: Unsupported, reason: impl Into<String>) -> PlanError {
    PlanError::unsupported(why, reason)
}

/// The instruction for these types; both operands have one.
fn instruction(types: &DotTypes, target: &TargetDesc) -> PlanResult<&'static MatrixInstruction> {
    let (a, b, c) = (types.a, types.b, types.c);
    let known = MatrixInstruction::of(target)
        .find(|row| row.family == MatrixFamily::Wgmma && a == b && row.multiplies(a, c, false));
    let Some(row) = known else {
        return Err(unsupported(
            Unsupported::Types,
            format!("no wgmma multiplies {a:?} by {b:?} and sums in {c:?}"),
        ));
    };
    if !row.multiplies(a, c, types.exact) {
        return Err(unsupported(
            Unsupported::Types,
            "wgmma rounds 32-bit floats to TF32, which the dot does not allow",
        ));
    }
    Ok(row)
}

/// Descriptors of the right operand for as many columns an instruction as possible.
fn widest(
    memory: &LinearLayout,
    dims: (Dim, Dim),
    columns: u64,
    bits: u32,
    target: &TargetDesc,
) -> PlanResult<(MatrixDescriptorPlan, u64)> {
    let mut n = columns;
    loop {
        match MatrixDescriptorPlan::new(memory, dims, n, bits, target) {
            Ok(plan) => return Ok((plan, n)),
            Err(_) if n > 8 => n /= 2,
            Err(error) => return Err(error),
        }
    }
}

/// Takes the register bit that moves by `vector` along `axis` out of `bits`.
fn take(bits: &mut Vec<Bit>, axis: DotAxis, vector: u64, what: &str) -> PlanResult<u32> {
    match bits.iter().position(|bit| bit.axis == axis && bit.vector == vector) {
        Some(i) => Ok(bits.remove(i).register),
        None => Err(unsupported(
            Unsupported::Distribution,
            format!("{what} has no register bit for {vector} along {axis:?}"),
        )),
    }
}

/// Registers of all combinations of register bits, in the order of the bits.
fn combinations(bits: &[u32]) -> Vec<u32> {
    bits.iter().fold(vec![0], |all, bit| {
        let upper: Vec<u32> = all.iter().map(|register| register | bit).collect();
        [all, upper].concat()
    })
}

/// Whether lanes and the warps of a group move as in a fragment.
fn check_threads(operand: &Operand, fragment: &Fragment, what: &str) -> PlanResult<()> {
    let all = &operand.all;
    let kinds = [("lane", fragment.lane_roles(), &all.lane), ("warp", fragment.warp_roles(), &all.warp)];
    for (kind, roles, columns) in kinds {
        for (i, (axis, vector)) in vectors(&roles).enumerate() {
            let column = columns.get(i).copied().unwrap_or(0);
            if operand.along(column, axis) != Some(vector) {
                return Err(unsupported(
                    Unsupported::Distribution,
                    format!("{kind} bit {i} of {what} does not move by {vector} along {axis:?}"),
                ));
            }
        }
    }
    Ok(())
}

/// Axis and vector of each bit of a fragment without copies.
fn vectors(roles: &[Role]) -> impl Iterator<Item = (DotAxis, u64)> + '_ {
    roles.iter().flatten().map(|&(axis, i)| (axis, 1 << i))
}

/// The result, and what of its registers no fragment has taken.
struct Accumulators {
    instruction: &'static MatrixInstruction,
    operand: Operand,
    bits: Vec<Bit>,
}

impl Accumulators {
    fn new(
        layout: &LinearLayout,
        instruction: &'static MatrixInstruction,
        target: &TargetDesc,
    ) -> PlanResult<Accumulators> {
        use DotAxis::{M, N};
        if layout.num_out_dims() != 2 {
            return Err(unsupported(
                Unsupported::Shape,
                format!("a result of {} dimensions", layout.num_out_dims()),
            ));
        }
        let operand = Operand::new(layout, &[M, N], target)?;
        check_threads(&operand, &instruction.c, "the result")?;
        let Some(bits) = operand.registers() else {
            return Err(unsupported(
                Unsupported::Distribution,
                "a register bit of the result moves along rows and columns",
            ));
        };
        Ok(Accumulators { instruction, operand, bits })
    }

    /// The columns that each thread's registers have without a gap, as far as the instruction goes.
    fn columns(&self) -> u64 {
        let has = |v: u64| self.bits.iter().any(|bit| bit.axis == DotAxis::N && bit.vector == v);
        let mut n = u64::from(self.instruction.fewest_columns);
        while n < u64::from(self.instruction.shape[1]) && has(n) {
            n *= 2;
        }
        n
    }

    /// The registers of the first fragment of `n` columns.
    fn take_fragment(&mut self, n: u64) -> PlanResult<Vec<u32>> {
        let bits = &mut self.bits;
        let roles = self.instruction.c.register_roles();
        let there = vectors(&roles).filter(|&(axis, v)| axis != DotAxis::N || v < n);
        let taken = there.map(|(axis, v)| take(bits, axis, v, "the result"));
        Ok(combinations(&taken.collect::<PlanResult<Vec<_>>>()?))
    }

    /// Coordinates and registers of the tiles along an axis that a warp has, in order.
    fn tiles(&self, axis: DotAxis) -> Vec<(u64, u32)> {
        let mut tiles = vec![(0, 0)];
        for bit in self.bits.iter().filter(|bit| bit.axis == axis) {
            let upper: Vec<_> = tiles.iter().map(|&(at, r)| (at ^ bit.vector, r | bit.register)).collect();
            tiles.extend(upper);
        }
        tiles.sort_unstable();
        tiles
    }

    /// What the bits of a warp's number add to the start of tiles along `axis`, `size` long each.
    fn starts(&self, axis: DotAxis, size: u64, start: impl Fn(u64) -> u64) -> PlanResult<ThreadBases> {
        let mut bases = ThreadBases { lane: SmallVec::new(), warp: SmallVec::new(), block: SmallVec::new() };
        for (i, &column) in self.operand.all.warp.iter().enumerate() {
            let own = i < self.instruction.c.warp_roles().len();
            let at = if own { 0 } else { self.operand.part(column, axis) };
            if at & (size - 1) != 0 {
                let reason = format!("warp bit {i} moves by {at} along {axis:?}, within a tile of {size}");
                return Err(unsupported(Unsupported::Distribution, reason));
            }
            bases.warp.push(start(at / size));
        }
        Ok(bases)
    }
}

/// The left operand in registers.
struct Left {
    fragment: Vec<u32>,
    bits: Vec<Bit>,
}

impl Left {
    fn new(layout: &LinearLayout, result: &Accumulators, target: &TargetDesc) -> PlanResult<Left> {
        use DotAxis::{K, M};
        let what = "the left operand";
        let operand = Operand::new(layout, &[M, K], target)?;
        let fragment = &result.instruction.a;
        check_threads(&operand, fragment, what)?;
        for (i, &column) in result.operand.all.warp.iter().enumerate() {
            let own = operand.all.warp.get(i).copied().unwrap_or(0);
            if operand.along(own, M) != Some(result.operand.part(column, M)) {
                return Err(unsupported(
                    Unsupported::Distribution,
                    format!("warp bit {i} of {what} does not move as the result does"),
                ));
            }
        }
        let Some(mut bits) = operand.registers() else {
            return Err(unsupported(
                Unsupported::Distribution,
                format!("a register bit of {what} moves along rows and summands"),
            ));
        };
        let roles = fragment.register_roles();
        let taken = vectors(&roles).map(|(axis, v)| take(&mut bits, axis, v, what));
        let fragment = combinations(&taken.collect::<PlanResult<Vec<_>>>()?);
        Ok(Left { fragment, bits })
    }

    /// The registers of the fragment at a row and a summand, before what the warp adds to the row.
    fn registers(&self, row: u64, summand: u64) -> PlanResult<Vec<u32>> {
        let mut base = 0;
        for (axis, coordinate) in [(DotAxis::M, row), (DotAxis::K, summand)] {
            let mut left = coordinate;
            while left != 0 {
                let vector = left & left.wrapping_neg();
                left &= !low_mask(vector.trailing_zeros() + 1);
                let bit = self.bits.iter().find(|bit| bit.axis == axis && bit.vector == vector);
                base |= match bit {
                    Some(bit) => bit.register,
                    None => {
                        let reason =
                            format!("the left operand has no register bit for {vector} along {axis:?}");
                        return Err(unsupported(Unsupported::Distribution, reason));
                    }
                };
            }
        }
        Ok(self.fragment.iter().map(|register| register | base).collect())
    }
}
