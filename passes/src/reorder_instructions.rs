//! `--tritongpu-reorder-instructions`: operations where they keep the fewest
//! registers alive.
//!
//! Conversions to layouts in which a thread holds as much as before, or more,
//! and loads from shared memory that nothing writes again, move down to their
//! first use in the block, never into a loop. What writes
//! registers to freshly allocated shared memory moves up to where the registers
//! are made, behind the loads that follow there: these are all under way before
//! the first is waited for. Transpositions, which are free, follow what they
//! transpose.

use crate::ir_util::{fills_constant_buffer, layout_of, operations_in_dominance_order};
use crate::rules::{Rule, rule};
use linear_layout::Dim;
use mlir_host::ir::{Block, Op, Value};
use mlir_host::pass::{Options, PassDef, PassResult};
use ttopt_dialect::ttg::layout::to_linear_layout;

/// The pass.
pub static TRITONGPU_REORDER_INSTRUCTIONS: PassDef = PassDef {
    anchor: "builtin.module",
    ..PassDef::new(
        "tritongpu-reorder-instructions",
        "Move conversions to their first use, and writes to new shared memory to where the data is made",
        run,
    )
};

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let ops = operations_in_dominance_order(module);
    // Users first, so that chains move down together.
    for op in ops.iter().rev().filter(|op| moves_down(**op)) {
        if let Some(user) = first_user(*op)
            && !is_there(*op, user)
        {
            op.move_before(user);
        }
    }
    for op in ops.iter().filter(|op| op.name() == "tt.trans") {
        move_after_operand(*op, |made, _| made);
    }
    for op in ops.iter().filter(|op| op.name() == "ttg.local_alloc" && op.num_operands() == 1) {
        move_after_operand(*op, behind_loads);
    }
    Ok(())
}

/// Whether `op` needs fewer registers the later it comes, or no more.
fn moves_down(op: Op<'_>) -> bool {
    match op.name() {
        "ttg.local_load" => op.operand(0).def_op().is_some_and(fills_constant_buffer),
        _ => rule(op) == Some(Rule::Convert) && registers(op.result(0)) >= registers(op.operand(0)),
    }
}

/// Whether nothing but conversions and what moves down is between `op` and `user`: then the order of those stays.
fn is_there<'c>(op: Op<'c>, user: Op<'c>) -> bool {
    let mut between = std::iter::successors(op.next(), |at| at.next()).take_while(|at| *at != user);
    between.all(|at| rule(at) == Some(Rule::Convert) || moves_down(at))
}

/// Elements that each thread holds.
fn registers(value: Value<'_>) -> Option<u64> {
    let shape = value.ty().as_tensor()?.shape();
    to_linear_layout(layout_of(value)?, &shape).ok()?.in_size(Dim::REGISTER)
}

/// The first operation of the block of `op` that uses its result, or has a use inside.
fn first_user<'c>(op: Op<'c>) -> Option<Op<'c>> {
    let block = op.block()?;
    let users = op.result(0).uses().filter_map(|(user, _)| in_block(user, block));
    users.reduce(|a, b| if b.is_before_in_block(a) { b } else { a })
}

/// The operation of `block` that is `op` or has it inside.
fn in_block<'c>(op: Op<'c>, block: Block<'c>) -> Option<Op<'c>> {
    if op.block() == Some(block) { Some(op) } else { op.ancestor(|op| op.block() == Some(block)) }
}

/// Moves `op` to where its first operand is made, in the same block: behind what `place` names for that and `op`.
fn move_after_operand<'c>(op: Op<'c>, place: impl Fn(Op<'c>, Op<'c>) -> Op<'c>) {
    let Some(made) = op.operand(0).def_op() else { return };
    let others =
        op.operands().skip(1).all(|other| other.def_op().is_none_or(|def| def.block() != op.block()));
    if made.block() == op.block() && others {
        op.move_after(place(made, op));
    }
}

/// The last load, or write to new shared memory, between `made` and `op` that only pure operations are before.
fn behind_loads<'c>(made: Op<'c>, op: Op<'c>) -> Op<'c> {
    let between = std::iter::successors(made.next(), |at| at.next()).take_while(|at| *at != op);
    let mut last = made;
    for at in between {
        match at.name() {
            "tt.load" | "ttg.local_alloc" => last = at,
            _ if !at.is_pure() || rule(at) == Some(Rule::Convert) || at.num_regions() > 0 => break,
            _ => {}
        }
    }
    last
}
