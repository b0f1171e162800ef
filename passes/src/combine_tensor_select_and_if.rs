//! `--tritongpu-combine-tensor-select-and-if`: a selection of tensors by the
//! scalar condition of an `scf.if` becomes a result of the branch.
//!
//! Then neither tensor is copied element by element: each side of the branch
//! yields its own.

use crate::ir_util::operations_in_dominance_order;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Block, Op, Type, Value};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::{IrRewriter, create, new_region};
use mlir_host::upstream::{IfOp, SelectOp};

/// The pass.
pub static TRITONGPU_COMBINE_TENSOR_SELECT_AND_IF: PassDef = PassDef {
    dependencies: &["scf"],
    ..PassDef::new(
        "tritongpu-combine-tensor-select-and-if",
        "Make selections of tensors by the condition of an scf.if results of that scf.if",
        run,
    )
};

fn run(root: Op<'_>, _: &Options) -> PassResult {
    let ops = operations_in_dominance_order(root);
    // Selections by condition and block.
    let mut selections: FastMap<(Value<'_>, Block<'_>), Vec<Op<'_>>> = FastMap::default();
    let mut branches: Vec<(Op<'_>, Vec<Op<'_>>)> = Vec::new();
    for op in ops {
        let Some(block) = op.block() else { continue };
        if SelectOp::cast(op).is_some() && op.result(0).ty().as_tensor().is_some() {
            if op.operand(0).ty().is_int(1) {
                selections.entry((op.operand(0), block)).or_default().push(op);
            }
        } else if IfOp::cast(op).is_some() {
            // Each selection goes to the first branch after it that it can go to.
            let Some(open) = selections.get_mut(&(op.operand(0), block)) else { continue };
            let (take, keep): (Vec<_>, Vec<_>) = open.drain(..).partition(|select| used_from(*select, op));
            *open = keep;
            if !take.is_empty() {
                branches.push((op, take));
            }
        }
    }
    let mut rewriter = IrRewriter::new(root.context());
    branches.into_iter().try_for_each(|(branch, selections)| combine(&mut rewriter, branch, &selections))
}

/// Whether `branch` comes before all uses of the selection that are not inside of it.
fn used_from<'c>(select: Op<'c>, branch: Op<'c>) -> bool {
    select.result(0).uses().all(|(user, _)| {
        let mut at = Some(user);
        while let Some(op) = at.filter(|op| op.block() != branch.block()) {
            at = op.parent();
        }
        at.is_some_and(|user| user == branch || branch.is_before_in_block(user))
    })
}

/// The side of `branch` that holds `op`.
fn side_of<'c>(op: Op<'c>, branch: Op<'c>) -> Option<usize> {
    let mut at = op;
    loop {
        let region = at.block()?.parent_region()?;
        let parent = at.parent()?;
        if parent == branch {
            return Some(region.number());
        }
        at = parent;
    }
}

fn combine<'c>(rewriter: &mut IrRewriter<'c>, branch: Op<'c>, selections: &[Op<'c>]) -> PassResult {
    let mut results: Vec<Type<'c>> = branch.results().map(|result| result.ty()).collect();
    results.extend(selections.iter().map(|select| select.result(0).ty()));
    // Inside of a side the condition is known.
    for select in selections {
        let uses: Vec<(Op<'c>, usize)> = select.result(0).uses().collect();
        for (user, number) in uses {
            if let Some(side) = side_of(user, branch) {
                user.set_operand(number, select.operand(1 + side));
            }
        }
    }
    let regions = [new_region(), new_region()];
    let made = create("scf.if", branch.loc(), &[branch.operand(0)], &results, &[], &regions)?;
    rewriter.set_before(branch);
    rewriter.insert(made);
    for (name, attr) in branch.discardable_attrs() {
        made.set_attr(name, attr);
    }
    for side in 0..2 {
        let region = made.region(side);
        if branch.region(side).is_empty() {
            let block = Block::new(&[]);
            region.append(block);
            block.append(create("scf.yield", branch.loc(), &[], &[], &[], &[])?);
        } else {
            region.take_body(branch.region(side));
        }
        let last = region.blocks().last().and_then(Block::terminator);
        let last = last.ok_or_else(|| crate::machine::error(made, "a side has no scf.yield"))?;
        let mut values: Vec<Value<'c>> = last.operands().collect();
        values.extend(selections.iter().map(|select| select.operand(1 + side)));
        last.set_operands(&values);
    }
    let old = branch.num_results();
    for (i, result) in branch.results().enumerate() {
        result.replace_all_uses_with(made.result(i));
    }
    for (i, select) in selections.iter().enumerate() {
        select.result(0).replace_all_uses_with(made.result(old + i));
        select.erase();
    }
    branch.erase();
    Ok(())
}
