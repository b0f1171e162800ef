//! What one program of a launch asks of the GPU, for predictions of a kernel's time.
//!
//! [`Estimate::of`] counts, on TTGIR whose loops are not pipelined yet, what the [`objective`](crate::objective) counts,
//! and besides the cycles of matrix units, the bytes that are moved from and to global memory, and how often a CTA waits
//! for memory. Loops and branches count as often as the arguments of the [`Launch`] say; where these do not tell, as the
//! objective counts them. `bench/gpu/predicted.py` makes times of it, and compares them with measured ones.

use crate::analysis::balance::Balance;
use crate::ir_util::{cmpi, is_dot, is_loop, loop_predicate, trip_count};
use crate::machine::{Layouts, Machine, error};
use crate::objective::{ITERATIONS, Objective, TERMS, term};
use crate::shared_memory::effects::is_store_by_tma;
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, Op, Region, Type, Value, Walk};
use mlir_host::upstream::{
    AddIOp, AndIOp, CeilDivSIOp, CmpIOp, DivSIOp, DivUIOp, ExtSIOp, ExtUIOp, ForOp, IfOp, IndexCastOp,
    MaxSIOp, MaxUIOp, MinSIOp, MinUIOp, MulIOp, OrIOp, RemSIOp, RemUIOp, SelectOp, ShLIOp, ShRSIOp, ShRUIOp,
    SubIOp, TruncIOp, XOrIOp,
};
use mlir_host::{is_one_of, match_op};
use std::cell::RefCell;
use ttopt_dialect::tt::ops::{FuncOp, GetNumProgramsOp, GetProgramIdOp, LoadOp};
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::types::MemDescType;

/// A launch, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// Programs along the three dimensions of the grid.
    pub grid: Option<[i64; 3]>,
    /// The values of integer arguments, by number.
    pub arguments: Vec<Option<i64>>,
}

/// What a program in the middle of the grid asks for.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Cycles of a multiprocessor by what they are for: the terms of the objective, but for spilled registers.
    pub terms: Vec<(&'static str, f64)>,
    /// Cycles of its matrix units.
    pub dots: f64,
    /// Bytes that are loaded from global memory.
    pub loaded: f64,
    /// Bytes that are stored there.
    pub stored: f64,
    /// How often something waits for what an iteration, or straight-line code, loads.
    pub waits: f64,
}

impl Estimate {
    /// Of the kernel of a module that has layouts.
    ///
    /// # Errors
    /// Where there are no attributes that say how many threads there are.
    pub fn of(module: Op<'_>, launch: &Launch) -> Result<Self, Reported> {
        let layouts = Layouts::new(module.context(), Machine::of(module)?);
        let Some(target) = layouts.machine.target.clone() else {
            return Err(error(module, "needs the module attribute ttg.target with a known GPU"));
        };
        let objective = Objective::new(module);
        let counts = Counts { launch, known: RefCell::default() };
        let mut terms = TERMS.map(|name| (name, 0.0));
        let mut estimate = Estimate::default();
        let mut waits: FastMap<Option<Block<'_>>, f64> = FastMap::default();
        module.walk(&mut |op| {
            let times = counts.times(op);
            if let (Some(cycles), Some(term)) = (objective.cycles(op, &layouts), term(op)) {
                let at = TERMS.iter().position(|name| *name == term).unwrap_or(0);
                terms[at].1 += cycles * times;
            }
            let moved = Balance::of_one(op, layouts.machine.num_warps, objective.analysis(), &target);
            if is_dot(op) {
                estimate.dots += moved.cycles * times;
            }
            if moved.bytes > 0.0 {
                estimate.loaded += moved.bytes * times;
                waits.insert(op.block(), times);
            } else {
                estimate.stored += stored_bytes(op) * times;
            }
            Walk::Advance
        });
        Ok(Estimate { terms: terms.to_vec(), waits: waits.values().sum(), ..estimate })
    }
}

/// Bytes that `op` stores to global memory.
fn stored_bytes(op: Op<'_>) -> f64 {
    let bytes = |ty: Type<'_>, shape: &[i64]| {
        let bits = if pointee(ty).is_some() { 64 } else { ty.bits().unwrap_or(0) };
        shape.iter().map(|size| *size as f64).product::<f64>() * f64::from(bits) / 8.0
    };
    let is_bulk = is_store_by_tma(op);
    if term(op) == Some("stores") || LoadOp::cast(op).is_none() && term(op) == Some("atomics") {
        let value = op.operands().nth(1).and_then(|value| value.ty().as_tensor());
        return value.map_or(0.0, |ty| bytes(ty.element(), &ty.shape()));
    }
    let buffers = op.operands().filter_map(|value| MemDescType::cast(value.ty())).filter(|_| is_bulk);
    buffers.map(|buffer| bytes(buffer.element(), &buffer.shape())).sum()
}

/// How often places run, and numbers of a launch.
struct Counts<'a, 'c> {
    launch: &'a Launch,
    known: RefCell<FastMap<Value<'c>, Option<i64>>>,
}

/// Operations that a number may be computed by, one from the other.
const DEEPEST: usize = 64;

impl<'c> Counts<'_, 'c> {
    /// How often `op` runs in a program.
    fn times(&self, op: Op<'c>) -> f64 {
        let mut times = 1.0;
        let mut at = op;
        while let Some(parent) = at.parent() {
            let region = at.block().and_then(Block::parent_region);
            let first = region.and_then(Region::first_block);
            if is_loop(parent) {
                times *= self.iterations(parent);
            } else if IfOp::cast(parent).is_some() {
                let taken = self
                    .number(parent.operand(0), DEEPEST)
                    .map(|taken| (taken & 1 == 1) == (region == Some(parent.region(0))));
                times *= taken.map_or(0.5, f64::from);
            }
            if at.block() != first && FuncOp::cast(parent).is_some() {
                times /= 2.0;
            }
            at = parent;
        }
        times
    }

    /// Iterations of a loop.
    fn iterations(&self, op: Op<'c>) -> f64 {
        let Some(_) = ForOp::cast(op) else { return ITERATIONS };
        if let Some(count) = trip_count(op) {
            return count as f64;
        }
        let bound = |i: usize| self.number(op.operand(i), DEEPEST);
        match (bound(0), bound(1), bound(2)) {
            (Some(from), Some(to), Some(step)) if step > 0 => {
                let span = to.saturating_sub(from).max(0);
                (span as f64 / step as f64).ceil()
            }
            _ => ITERATIONS,
        }
    }

    /// An integer that does not differ between threads, as far as the launch tells it.
    fn number(&self, value: Value<'c>, deepest: usize) -> Option<i64> {
        if let Some(known) = self.known.borrow().get(&value) {
            return *known;
        }
        let number = deepest.checked_sub(1).and_then(|deepest| self.compute(value, deepest));
        self.known.borrow_mut().insert(value, number);
        number
    }

    fn compute(&self, value: Value<'c>, deepest: usize) -> Option<i64> {
        let Some(op) = value.def_op() else { return self.argument(value, deepest) };
        if let Some(number) = crate::ir_util::constant(value) {
            return Some(number);
        }
        let axis = || op.attr("axis").and_then(Attr::as_int).and_then(|axis| usize::try_from(axis).ok());
        if GetProgramIdOp::cast(op).is_some() {
            return Some(self.launch.grid?.get(axis()?)? / 2);
        }
        if GetNumProgramsOp::cast(op).is_some() {
            return self.launch.grid?.get(axis()?).copied();
        }
        if op.num_regions() > 0 || value.ty().as_tensor().is_some() {
            return None;
        }
        let operand = |i: usize| self.number(op.operands().nth(i)?, deepest);
        if is_one_of!(op, ExtSIOp | ExtUIOp | TruncIOp | IndexCastOp) {
            return operand(0);
        }
        if SelectOp::cast(op).is_some() {
            return operand(if operand(0)? & 1 == 1 { 1 } else { 2 });
        }
        computed(op, operand(0)?, operand(1)?)
    }

    /// An argument of the kernel, or the middle of what a loop counts through.
    fn argument(&self, value: Value<'c>, deepest: usize) -> Option<i64> {
        let op = value.arg_block()?.parent()?;
        if FuncOp::cast(op).is_some() {
            return self.launch.arguments.get(value.index()).copied().flatten();
        }
        if ForOp::cast(op).is_none() || value.index() > 0 || loop_predicate(op) == 6 {
            return None;
        }
        let (from, to) = (self.number(op.operand(0), deepest)?, self.number(op.operand(1), deepest)?);
        Some(from + (to - from).max(0) / 2)
    }
}

/// What `op`, arithmetic on integers, computes of `a` and `b`.
fn computed(op: Op<'_>, a: i64, b: i64) -> Option<i64> {
    match_op!(op, {
        AddIOp => a.checked_add(b),
        SubIOp => a.checked_sub(b),
        MulIOp => a.checked_mul(b),
        DivSIOp | DivUIOp => a.checked_div(b),
        RemSIOp | RemUIOp => a.checked_rem(b),
        CeilDivSIOp => a.checked_add(b)?.checked_sub(1)?.checked_div(b),
        MinSIOp | MinUIOp => Some(a.min(b)),
        MaxSIOp | MaxUIOp => Some(a.max(b)),
        ShLIOp => a.checked_shl(u32::try_from(b).ok()?),
        ShRSIOp | ShRUIOp => a.checked_shr(u32::try_from(b).ok()?),
        AndIOp => Some(a & b),
        OrIOp => Some(a | b),
        XOrIOp => Some(a ^ b),
        CmpIOp => Some(i64::from(cmpi::holds(op.attr("predicate").and_then(Attr::as_int)?, a, b))),
        _ => None,
    })
}
