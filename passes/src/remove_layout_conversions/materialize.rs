//! Copies of values in other layouts than their own.

use super::assign::Assignment;
use super::cost::Costs;
use crate::ir_util::{layout_of, set_result_layout, with_layout};
use crate::machine::{Layouts, error};
use crate::rules::{Rule, backward, rule};
use linear_layout::Encoding;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Op, Value};
use mlir_host::rewrite::IrRewriter;
use smallvec::SmallVec;
use std::collections::HashMap;
use ttopt_dialect::ttg::attrs::{encoding, parent};

/// `parent` where the layout is the slice of it along `axis`.
pub fn sliced_parent(layout: Attr<'_>, axis: usize) -> Option<Attr<'_>> {
    match encoding(layout).ok()? {
        Encoding::Slice(slice) if slice.dim == axis => parent(layout),
        _ => None,
    }
}

/// Whether `op` is a conversion of the input that was replaced.
fn is_dropped(op: Op<'_>) -> bool {
    rule(op) == Some(Rule::Convert) && op.result(0).is_unused()
}

/// How to get a value in a layout.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    /// It is there.
    Have,
    /// Convert it.
    Convert,
    /// Compute it again.
    Copy,
}

/// Chains longer than this are not looked through.
const DEPTH: usize = 64;

/// Gives uses their operands in the layouts that they need.
pub struct Materialize<'a, 'c> {
    layouts: &'a Layouts<'c>,
    rewriter: IrRewriter<'c>,
    costs: Costs<'c>,
    /// For values whose original stays, and for those whose original goes.
    plans: HashMap<(Value<'c>, Attr<'c>, bool), (How, f64)>,
    made: HashMap<(Value<'c>, Attr<'c>), Value<'c>>,
}

impl<'a, 'c> Materialize<'a, 'c> {
    /// Nothing made yet in `module`.
    pub fn new(module: Op<'c>, layouts: &'a Layouts<'c>) -> Self {
        Self {
            layouts,
            rewriter: IrRewriter::new(module.context()),
            costs: Costs::new(module),
            plans: HashMap::new(),
            made: HashMap::new(),
        }
    }

    /// Makes the operands of `op` have the layouts that it needs.
    ///
    /// # Errors
    /// When an operation cannot be made; it is reported.
    pub fn operands(&mut self, op: Op<'c>, assignment: &mut Assignment<'c>) -> Result<(), Reported> {
        if rule(op) == Some(Rule::Convert) {
            return self.drop_conversion(op, assignment);
        }
        for i in 0..op.num_operands() {
            let value = op.operand(i);
            let Some(have) = layout_of(value) else { continue };
            let wanted = assignment.demand(op, i, self.layouts);
            if let Some(layout) = wanted.filter(|layout| *layout != have) {
                let made = self.get(value, layout, op)?;
                assignment.record(made, layout);
                op.set_operand(i, made);
            }
        }
        Ok(())
    }

    /// A conversion of the input becomes its operand in another layout.
    fn drop_conversion(&mut self, op: Op<'c>, assignment: &mut Assignment<'c>) -> Result<(), Reported> {
        let Some(layout) = layout_of(op.result(0)) else { return Ok(()) };
        let value = op.operand(0);
        if layout_of(value).is_none() {
            return Ok(());
        }
        let made = self.get(value, layout, op)?;
        assignment.record(made, layout);
        op.result(0).replace_all_uses_with(made);
        Ok(())
    }

    /// `value` in `layout`, usable wherever `value` is.
    fn get(&mut self, value: Value<'c>, layout: Attr<'c>, user: Op<'c>) -> Result<Value<'c>, Reported> {
        if layout_of(value) == Some(layout) || layout_of(value).is_none() {
            return Ok(value);
        }
        if let Some(made) = self.made.get(&(value, layout)) {
            return Ok(*made);
        }
        let how = self.plan(value, layout, 0, true).0;
        let made = match (how, value.def_op()) {
            (How::Copy, Some(op)) => self.copy(op, value, layout)?,
            _ => self.convert(value, layout, user)?,
        };
        self.made.insert((value, layout), made);
        Ok(made)
    }

    /// The cheapest way to get `value` in `layout`, and what it costs. `moves`:
    /// whether the use that asks is not needed any more in the old layout.
    fn plan(&mut self, value: Value<'c>, layout: Attr<'c>, depth: usize, moves: bool) -> (How, f64) {
        let Some(ty) = value.ty().as_tensor() else { return (How::Have, 0.0) };
        if ty.encoding() == Some(layout) || self.made.contains_key(&(value, layout)) {
            return (How::Have, 0.0);
        }
        if let Some(plan) = self.plans.get(&(value, layout, moves)) {
            return *plan;
        }
        // Conversions move data of every warp and synchronize: they weigh more
        // than the same cycles of arithmetic that other warps can fill.
        let convert = (How::Convert, self.costs.conversion(ty, layout, self.layouts) + 8.0);
        let copied = if depth < DEPTH { self.plan_copy(value, layout, depth, moves) } else { None };
        let plan = match copied {
            Some(cost) if cost <= convert.1 => (How::Copy, cost),
            _ => convert,
        };
        if depth < DEPTH / 2 {
            self.plans.insert((value, layout, moves), plan);
        }
        plan
    }

    fn plan_copy(&mut self, value: Value<'c>, layout: Attr<'c>, depth: usize, moves: bool) -> Option<f64> {
        let op = value.def_op()?;
        let rule = rule(op)?;
        if op.num_regions() > 0 || op.num_results() != 1 {
            return None;
        }
        if !matches!(
            rule,
            Rule::Source
                | Rule::Same
                | Rule::Memory
                | Rule::Broadcast
                | Rule::ExpandDims(_)
                | Rule::Trans
                | Rule::Reshape
        ) {
            return None;
        }
        let ty = value.ty().as_tensor()?;
        let moves = moves && value.uses().filter(|(user, _)| !is_dropped(*user)).nth(1).is_none();
        let mut cost = self.costs.copy(op, ty, layout, self.layouts)?;
        if moves {
            // Nobody else uses the original: it goes.
            cost -= self.costs.copy(op, ty, ty.encoding()?, self.layouts).unwrap_or(0.0);
        }
        for i in 0..op.num_operands() {
            let operand = op.operand(i);
            if layout_of(operand).is_none() {
                continue;
            }
            let wanted = backward(op, rule, i, layout, self.layouts).ok()??;
            cost += self.plan(operand, wanted, depth + 1, moves).1;
        }
        Some(cost)
    }

    /// A copy of `op`, which defines `value`, with another layout.
    fn copy(&mut self, op: Op<'c>, value: Value<'c>, layout: Attr<'c>) -> Result<Value<'c>, Reported> {
        let Some(rule) = rule(op) else { return Err(error(op, "cannot be copied")) };
        let mut operands: SmallVec<[Value<'c>; 4]> = SmallVec::new();
        for i in 0..op.num_operands() {
            let operand = op.operand(i);
            let wanted = match layout_of(operand) {
                Some(_) => backward(op, rule, i, layout, self.layouts).map_err(|reason| error(op, reason))?,
                None => None,
            };
            operands.push(match wanted {
                Some(wanted) => self.get(operand, wanted, op)?,
                None => operand,
            });
        }
        self.rewriter.set_after(op);
        let copy = self.rewriter.clone_op(op);
        copy.set_operands(&operands);
        set_result_layout(copy, layout)?;
        Ok(copy.result(value.index()))
    }

    fn convert(&mut self, value: Value<'c>, layout: Attr<'c>, user: Op<'c>) -> Result<Value<'c>, Reported> {
        let ty = value.ty().as_tensor().and_then(|ty| with_layout(ty, layout));
        let ty = ty.ok_or_else(|| error(user, format!("no tensor type with layout {layout}")))?;
        match (value.def_op(), value.arg_block()) {
            (Some(op), _) => self.rewriter.set_after(op),
            (None, Some(block)) => self.rewriter.set_start(block),
            (None, None) => self.rewriter.set_before(user),
        }
        let made = self.rewriter.generic("ttg.convert_layout", value.loc(), &[value], &[ty], &[]);
        Ok(made.ok_or(Reported)?.result(0))
    }
}
