//! Carries a value through a loop, a branch or a basic block in a second layout: one more iter_arg, result or block
//! argument.

use super::assign::Assignment;
use super::materialize::Materialize;
use super::plan::Request;
use crate::ir_util::{incoming, layout_of, remake, with_layout};
use crate::machine::error;
use mlir_host::asm::Reported;
use mlir_host::flow::twins;
use mlir_host::ir::{Attr, Block, Op, Type, Value};
use mlir_host::upstream::CondBranchOp;
use smallvec::SmallVec;

#[cfg(test)]
mod tests;

impl<'c> Materialize<'_, 'c> {
    /// A loop-carried value, or another that control flow passes on, in another layout.
    pub(super) fn carry(
        &mut self,
        request: Request<'c>,
        user: Op<'c>,
        assignment: &mut Assignment<'c>,
    ) -> Result<Value<'c>, Reported> {
        let Request { value, layout, .. } = request;
        let fail = || error(user, format!("cannot have a loop-carried value in layout {layout}"));
        let at = carrier(value).ok_or_else(fail)?;
        let ty = value.ty().as_tensor().and_then(|ty| with_layout(ty, layout)).ok_or_else(fail)?;
        let from = incoming(value).ok_or_else(fail)?;
        let inputs = self.planner.inputs(request);
        // What the operation itself passes in comes first: it is rebuilt with that.
        let mut initial: SmallVec<[Value<'c>; 1]> = SmallVec::new();
        if let Some(n) = from.iter().position(|(op, _)| *op == at) {
            initial.push(self.get(inputs[n].1, at, assignment)?);
            // A loop around this one may have asked for the value meanwhile.
            if let Some(made) = self.planner.made(value, layout) {
                return Ok(self.current(made));
            }
        }
        // Or for another that the same operation carries: then it was rebuilt.
        let value = self.current(value);
        let at = carrier(value).ok_or_else(fail)?;
        let from = incoming(value).ok_or_else(fail)?;
        let twins = twins(value);
        let added = self.add(at, &twins, &initial, ty, assignment)?;
        for (twin, new) in &added {
            assignment.record(*new, layout);
            self.planner.note(*twin, layout, *new);
        }
        // The value itself is the first of its twins.
        let made = added.first().ok_or_else(fail)?.1;
        // The rest may need the new value: it is its own placeholder until they are there.
        let rest = from.iter().zip(&inputs).filter(|((op, _), _)| *op != at);
        for ((op, i), _) in rest.clone() {
            pass_on(*op, *i, made);
        }
        for ((op, _), (_, input)) in rest {
            let input = self.get(*input, *op, assignment)?;
            let placeholder = self.current(made);
            if let Some(place) = op.operands().position(|operand| operand == placeholder) {
                op.set_operand(place, input);
            }
        }
        Ok(self.current(made))
    }

    /// Gives `at`, or the block of an argument, another value of type `ty` for
    /// each of `twins`; says which is for which.
    fn add(
        &mut self,
        at: Op<'c>,
        twins: &[Value<'c>],
        initial: &[Value<'c>],
        ty: Type<'c>,
        assignment: &mut Assignment<'c>,
    ) -> Result<SmallVec<[(Value<'c>, Value<'c>); 2]>, Reported> {
        let result = twins.iter().find(|twin| twin.def_op().is_some()).map(|twin| twin.index());
        let mut made = at;
        if result.is_some() || !initial.is_empty() {
            made = self.grow(at, initial, result.map(|_| ty), assignment)?;
        }
        let new = |twin: &Value<'c>| match twin.arg_block() {
            Some(block) => Some((*twin, block.add_arg(ty, twin.loc()))),
            None => Some((made.result(twin.index()), made.results().next_back()?)),
        };
        twins.iter().map(|twin| new(twin).ok_or_else(|| error(at, "lost a result"))).collect()
    }

    /// `op` with further operands and results, in its place.
    fn grow(
        &mut self,
        op: Op<'c>,
        operands: &[Value<'c>],
        result: Option<Type<'c>>,
        assignment: &mut Assignment<'c>,
    ) -> Result<Op<'c>, Reported> {
        let operands: Vec<Value<'c>> = op.operands().chain(operands.iter().copied()).collect();
        let types: Vec<Type<'c>> = op.results().map(Value::ty).chain(result).collect();
        let made = remake(op, &operands, &types)?;
        for (new, old) in made.results().zip(op.results()) {
            if let Some(layout) = layout_of(new) {
                assignment.record(new, layout);
            }
            self.planner.renew(old, new);
            old.replace_all_uses_with(new);
        }
        self.replaced.insert(op, made);
        Ok(made)
    }
}

/// The operation that passes `value` on: which defines it, or has the basic block of which it is an argument.
fn carrier(value: Value<'_>) -> Option<Op<'_>> {
    value.def_op().or_else(|| value.arg_block().and_then(Block::parent))
}

/// Appends `value` to those that `op` passes to where operand `number` goes.
fn pass_on<'c>(op: Op<'c>, number: usize, value: Value<'c>) {
    let mut operands: Vec<Value<'c>> = op.operands().collect();
    let sizes = op.attr("operandSegmentSizes").and_then(Attr::as_i32_array);
    let Some(mut sizes) = sizes.filter(|sizes| CondBranchOp::cast(op).is_some() && sizes.len() == 3) else {
        operands.push(value);
        op.set_operands(&operands);
        return;
    };
    let taken = 1 + sizes[1] as usize;
    let successor = if number < taken { 1 } else { 2 };
    let place = if successor == 1 { taken } else { operands.len() };
    operands.insert(place, value);
    sizes[successor] += 1;
    op.set_operands(&operands);
    op.set_attr("operandSegmentSizes", Attr::i32_array(op.context(), &sizes));
}
