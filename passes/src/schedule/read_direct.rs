//! What waits in a ring is read as it is used.
//!
//! Layouts are chosen while loads still go to registers, where a load has the layout of its addresses, and what wants another one converts.
//! Of a ring threads read in any order. So where what is read is converted, perhaps behind arithmetic on each of its elements, it is read in the
//! layout that is asked for in the end if that takes fewer cycles: of the reads with the best swizzle each, of the arithmetic, and
//! of the conversion, which stores to shared memory, waits and reads once more. Vectors of scales that are spread over rows or columns are
//! converted for it: they are small.

use super::swizzled::Ring;
use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::ir_util::{
    allocation, convert_operand, is_loop, layout_of, set_layout, set_result_layout, splat_constant,
    with_layout,
};
use crate::machine::{Layouts, internal};
use crate::objective::{arithmetic, converting};
use crate::rules::{Rule, rule};
use linear_layout::target::TargetDesc;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::pass::PassResult;
use mlir_host::rewrite::IrRewriter;
use smallvec::SmallVec;
use std::cell::OnceCell;
use ttopt_dialect::tt::ops::{BroadcastOp, ExpandDimsOp};
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::ops::{ConvertLayoutOp, LocalAllocOp, LocalDeallocOp, LocalLoadOp};

/// Operations between a conversion and what is read for it that are looked at.
const MOST_OPS: usize = 32;

/// A conversion by which threads get what they compute from rings.
struct Use<'c> {
    /// The operation whose result is wanted: a conversion, or a read of a buffer that is stored for it alone.
    op: Op<'c>,
    /// The buffer.
    buffer: Option<Op<'c>>,
    /// What is converted.
    value: Value<'c>,
    layout: Attr<'c>,
    reads: Vec<Op<'c>>,
    computes: Vec<Op<'c>>,
    /// Operands that are constants.
    constants: Vec<(Op<'c>, usize)>,
    /// Operands that are vectors, spread over another dimension.
    vectors: Vec<Spread<'c>>,
    /// What is read: nothing else, so that another use's buffer may go.
    rings: Vec<Ring<'c>>,
}

/// A vector that is spread over another dimension: `tt.expand_dims` and `tt.broadcast`.
#[derive(Clone, Copy)]
struct Spread<'c> {
    expand: Op<'c>,
    broadcast: Op<'c>,
}

impl<'c> Spread<'c> {
    /// What gives `value`, where that and what leads to it is used for nothing else.
    fn of(value: Value<'c>) -> Option<Self> {
        let broadcast = BroadcastOp::defining(value)?;
        let expand = ExpandDimsOp::defining(broadcast.src())?;
        let one = Self { expand: expand.op(), broadcast: broadcast.op() };
        (one.expand.result(0).uses().count() == 1).then_some(one)
    }

    /// The vector, before what converts it, and whether that is done for nothing else.
    fn vector(self) -> (Value<'c>, bool) {
        let given = self.expand.operand(0);
        match ConvertLayoutOp::defining(given) {
            Some(conversion) => (conversion.src(), given.uses().count() == 1),
            None => (given, false),
        }
    }

    /// The layout of the vector where it is spread to `layout`.
    fn slice(self, layout: Attr<'c>, layouts: &Layouts<'c>) -> Option<Attr<'c>> {
        layouts.slice(usize::try_from(ExpandDimsOp::of(self.expand).axis()).ok()?, layout).ok()
    }

    /// Cycles of a CTA for conversions of the vector, for `layout` and as it is.
    fn cycles(self, layout: Attr<'c>, layouts: &Layouts<'c>) -> Option<(f64, f64)> {
        let (vector, alone) = self.vector();
        let ty = vector.ty().as_tensor()?;
        let now = if alone { converting(ty, layout_of(self.expand.operand(0))?, layouts)? } else { 0.0 };
        Some((converting(ty, self.slice(layout, layouts)?, layouts)?, now))
    }

    fn apply(self, layout: Attr<'c>, layouts: &Layouts<'c>) -> PassResult {
        let slice = self.slice(layout, layouts);
        let slice = slice.ok_or_else(|| internal(self.expand, "its operand has no layout"))?;
        let (given, (vector, _)) = (self.expand.operand(0), self.vector());
        self.expand.set_operand(0, vector);
        convert_operand(&mut IrRewriter::new(self.expand.context()), self.expand, 0, slice)?;
        set_layout(self.expand.result(0), layout);
        set_layout(self.broadcast.result(0), layout);
        if given != vector && given.uses().next().is_none() {
            given.def_op().into_iter().for_each(Op::erase);
        }
        Ok(())
    }
}

impl<'c> Use<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        if !is_one_of!(op, ConvertLayoutOp | LocalLoadOp) || op.ancestor(is_loop).is_none() {
            return None;
        }
        let layout = layout_of(op.results().next()?)?;
        let (value, buffer) = if ConvertLayoutOp::cast(op).is_some() {
            (op.operand(0), None)
        } else {
            let buffer = LocalLoadOp::cast(op)?.src().def_op()?;
            let value = LocalAllocOp::cast(buffer)?.src()?;
            let frees = |user: Op<'c>| LocalDeallocOp::cast(user).is_some();
            if !buffer.result(0).uses().all(|(user, _)| user == op || frees(user)) {
                return None;
            }
            (value, Some(buffer))
        };
        let (reads, computes, constants, vectors, rings) = Default::default();
        let mut found = Self { op, buffer, value, layout, reads, computes, constants, vectors, rings };
        if !found.follow(value) || found.reads.is_empty() {
            return None;
        }
        found.rings = rings_of(&found.reads)?;
        Some(found)
    }

    /// Whether `value` is computed for this use alone, element by element from what is read of buffers, and constants.
    fn follow(&mut self, value: Value<'c>) -> bool {
        let Some(op) = value.def_op().filter(|_| self.reads.len() + self.computes.len() < MOST_OPS) else {
            return false;
        };
        let mut uses = value.uses();
        if uses.next().is_none() || uses.next().is_some() {
            return false;
        }
        if LocalLoadOp::cast(op).is_some() {
            self.reads.push(op);
            return true;
        }
        if let Some(vector) = Spread::of(value) {
            self.vectors.push(vector);
            return true;
        }
        if rule(op) != Some(Rule::Same) || op.num_results() != 1 || op.num_regions() > 0 || !op.is_pure() {
            return false;
        }
        self.computes.push(op);
        op.operands().enumerate().all(|(at, operand)| {
            let is_constant = splat_constant(operand).is_some();
            if is_constant {
                self.constants.push((op, at));
            }
            is_constant || operand.ty().as_tensor().is_none() || self.follow(operand)
        })
    }

    /// Cycles of a warp with reads in the layout that is asked for, and as they are.
    fn cycles(
        &self,
        axis: &AxisInfoAnalysis<'c>,
        layouts: &Layouts<'c>,
        target: &TargetDesc,
    ) -> Option<(f64, f64)> {
        let there: FastMap<Op<'c>, Type<'c>> = self
            .reads
            .iter()
            .map(|read| Some((*read, with_layout(read.result(0).ty().as_tensor()?, self.layout)?)))
            .collect::<Option<_>>()?;
        let reads = |types: &dyn Fn(Op<'c>) -> Type<'c>| -> Option<f64> {
            self.rings.iter().map(|ring| ring.least(types, axis, target)).sum()
        };
        let own = |read: Op<'c>| read.result(0).ty();
        let asked = |read: Op<'c>| there.get(&read).copied().unwrap_or_else(|| own(read));
        let computed = |layout: Option<Attr<'c>>| -> Option<f64> {
            let one = |op: &Op<'c>| {
                let ty = op.result(0).ty().as_tensor()?;
                let linear = to_linear_layout(layout.or(ty.encoding())?, &ty.shape()).ok()?;
                Some(arithmetic::cycles_in(*op, &linear, &target.cost))
            };
            self.computes.iter().map(one).sum()
        };
        let ty = self.value.ty().as_tensor()?;
        let (mut there, mut here) = (0.0, converting(ty, self.layout, layouts)?);
        for vector in &self.vectors {
            let (asked, own) = vector.cycles(self.layout, layouts)?;
            (there, here) = (there + asked, here + own);
        }
        let warps = layouts.machine.num_warps as f64;
        Some((
            reads(&asked)? + computed(Some(self.layout))? + there / warps,
            reads(&own)? + computed(None)? + here / warps,
        ))
    }

    /// Has everything computed in the layout that is asked for.
    fn apply(self, layouts: &Layouts<'c>) -> PassResult {
        for vector in &self.vectors {
            vector.apply(self.layout, layouts)?;
        }
        for (op, at) in self.constants {
            let Some(constant) = op.operand(at).def_op() else { continue };
            let copy = constant.clone_detached();
            copy.move_before(op);
            set_result_layout(copy, self.layout)?;
            op.set_operand(at, copy.result(0));
        }
        for op in self.reads.iter().chain(&self.computes) {
            set_layout(op.result(0), self.layout);
        }
        self.op.result(0).replace_all_uses_with(self.value);
        self.op.erase();
        if let Some(buffer) = self.buffer {
            for user in buffer.result(0).uses().map(|(user, _)| user).collect::<Vec<_>>() {
                user.erase();
            }
            buffer.erase();
        }
        Ok(())
    }
}

/// The rings that are read, each once; `None` where something else is.
fn rings_of<'c>(reads: &[Op<'c>]) -> Option<Vec<Ring<'c>>> {
    let mut allocs: SmallVec<[Op<'c>; 4]> = SmallVec::new();
    for read in reads {
        let alloc = allocation(read.operand(0))?;
        if !allocs.contains(&alloc) {
            allocs.push(alloc);
        }
    }
    allocs.into_iter().map(Ring::of).collect()
}

/// Reads rings in the layouts that are asked for in the end.
///
/// # Errors
/// When a constant cannot take a layout.
pub fn read_as_used<'c>(module: Op<'c>, layouts: &Layouts<'c>, target: &TargetDesc) -> PassResult {
    // Asked about the pointers of copies, which stay.
    let axis = OnceCell::new();
    // What one use becomes another one may read; each makes a conversion less.
    loop {
        let mut uses = Vec::new();
        module.walk(&mut |op| {
            uses.extend(Use::of(op));
            Walk::Advance
        });
        let mut better = false;
        for one in uses {
            let axis = axis.get_or_init(|| AxisInfoAnalysis::new(module));
            if one.cycles(axis, layouts, target).is_some_and(|(asked, own)| asked < own) {
                one.apply(layouts)?;
                better = true;
            }
        }
        if !better {
            return Ok(());
        }
    }
}
