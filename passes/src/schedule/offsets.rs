//! Pointers of copies that advance by the same distance in each iteration, as an offset that the loop carries and pointers
//! that stay.
//!
//! A tensor of pointers takes two registers for each copy that a thread issues. Where a loop adds to all of them, the
//! assembler moves each pair out of the way of the copy that reads it, and waits for that copy before it moves the next:
//! a copy takes tens of cycles to read its address, and the dot of the iteration is not issued before the last one. An
//! address that is the sum of a pointer and an offset is a new value each time, and one offset serves all copies.

use super::source::body;
use crate::machine::internal;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::pass::PassResult;
use mlir_host::rewrite::IrRewriter;
use mlir_host::upstream::ConstantOp;
use ttopt_dialect::tt::ops::{AddPtrOp, SplatOp};
use ttopt_dialect::ttg::ops::AsyncCopyGlobalToLocalOp;

/// Rewrites what advances pointers of copies in `around`, a loop that a schedule was expanded to.
///
/// # Errors
/// When an operation cannot be made; it is reported.
pub fn carry_offsets(around: Op<'_>) -> PassResult {
    let Some((block, end)) = body(around) else { return Ok(()) };
    let mut copied: Vec<Value<'_>> = Vec::new();
    around.walk(&mut |op| {
        copied.extend(AsyncCopyGlobalToLocalOp::cast(op).map(AsyncCopyGlobalToLocalOp::src));
        Walk::Advance
    });
    for number in 0..around.num_results() {
        let arg = block.arg(number + 1);
        let Some(advance) = end.operand(number).def_op().filter(|op| op.block() == Some(block)) else {
            continue;
        };
        let mut users = arg.uses().map(|(user, _)| user);
        let alone = users.next() == Some(advance) && users.next().is_none();
        let Some(add) = AddPtrOp::cast(advance).filter(|add| alone && add.ptr() == arg) else { continue };
        if around.result(number).is_unused()
            && copied.contains(&add.result())
            && let Some(step) = step_of(around, add.offset())?
        {
            carry_offset(around, number, add, step)?;
        }
    }
    Ok(())
}

/// The number, of 64 bits and made before `around`, that all elements of `offset` are.
fn step_of<'c>(around: Op<'c>, offset: Value<'c>) -> Result<Option<Value<'c>>, Reported> {
    let wide = Type::int(around.context(), 64);
    let outside = |op: &Op<'c>| op.ancestor(|outer| outer == around).is_none();
    let Some(made) = offset.def_op().filter(outside) else { return Ok(None) };
    let mut rewriter = IrRewriter::new(around.context());
    rewriter.set_before(around);
    if let Some(number) = ConstantOp::cast(made).and_then(ConstantOp::int) {
        return number_of(&mut rewriter, around, number).map(Some);
    }
    let Some(splat) = SplatOp::cast(made) else { return Ok(None) };
    if splat.src().ty() == wide {
        return Ok(Some(splat.src()));
    }
    Ok(Some(rewriter.generic("arith.extsi", around.loc(), &[splat.src()], &[wide], &[])?.result(0)))
}

fn number_of<'c>(rewriter: &mut IrRewriter<'c>, around: Op<'c>, number: i64) -> Result<Value<'c>, Reported> {
    let wide = Type::int(around.context(), 64);
    let attrs = [("value", Attr::int_of(wide, number))];
    Ok(rewriter.generic("arith.constant", around.loc(), &[], &[wide], &attrs)?.result(0))
}

/// Has iter_arg `number` of `around` carry the sum of the steps so far, in place of the pointers that `add` advances.
fn carry_offset<'c>(around: Op<'c>, number: usize, add: AddPtrOp<'c>, step: Value<'c>) -> PassResult {
    let Some((block, end)) = body(around) else { return Ok(()) };
    let wide = step.ty();
    let (arg, first) = (block.arg(number + 1), around.operand(number + 3));
    let offsets = first.ty().as_tensor().and_then(|ty| ty.with_element(wide));
    let offsets = offsets.ok_or_else(|| internal(around, "copies of pointers that are no tensor"))?;
    let mut rewriter = IrRewriter::new(around.context());
    rewriter.set_before(around);
    let zero = number_of(&mut rewriter, around, 0)?;
    rewriter.set_before(add.op());
    let sum = rewriter.generic("arith.addi", add.op().loc(), &[arg, step], &[wide], &[])?.result(0);
    let all = SplatOp::build(add.op().loc(), sum).results(&[offsets.ty()]).insert(&mut rewriter)?.result();
    let pointers =
        AddPtrOp::build(add.op().loc(), first, all).results(&[first.ty()]).insert(&mut rewriter)?;
    end.set_operand(number, sum);
    add.result().replace_all_uses_with(pointers.result());
    add.op().erase();
    arg.set_type(wide);
    around.result(number).set_type(wide);
    around.set_operand(number + 3, zero);
    Ok(())
}
