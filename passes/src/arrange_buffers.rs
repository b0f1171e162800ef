//! `--tritongpu-arrange-buffers`: memory that operands of dots wait in is laid out for the layouts that are written and read at last.
//!
//! `--tritongpu-reduce-data-duplication` takes the memory of the plan that a conversion has then. The layout engine, which runs once
//! more behind it, may have what is written in another layout, and that memory then meets in banks: 64 rows of 16 numbers of 32 bits,
//! a row in each thread, took eight wavefronts for each one. Here the conversions from what is written to what is read are planned
//! again, and the memory of the plan with which all accesses take least replaces the other.

use crate::buffer_plans;
use crate::ir_util::{fills_constant_buffer, operations_in_dominance_order};
use crate::machine::Machine;
use crate::objective::weight;
use crate::plans;
use crate::reduce_data_duplication::{ALIGNMENT, is_copied, memdesc, memory_of_copies};
use linear_layout::Encoding;
use linear_layout::encoding::SharedLinear;
use linear_layout::plan::Conversion;
use linear_layout::target::{Direction, TargetDesc};
use mlir_host::ir::{Op, Type};
use mlir_host::pass::{Options, PassDef, PassResult};
use smallvec::SmallVec;
use ttopt_dialect::ttg::attrs::encoding;
use ttopt_dialect::ttg::ops::LocalLoadOp;
use ttopt_dialect::ttg::types::MemDescType;

/// The pass.
pub static TRITONGPU_ARRANGE_BUFFERS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    ..PassDef::new(
        "tritongpu-arrange-buffers",
        "Lay buffers of operands out anew where the layouts of what is written and read have changed",
        run,
    )
};

/// Savings below this share are none.
const LEAST: f64 = 1e-6;

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let machine = Machine::of(module)?;
    let Some(target) = &machine.target else { return Ok(()) };
    let fills = |op: &Op<'_>| fills_constant_buffer(*op);
    operations_in_dominance_order(module).into_iter().filter(fills).try_for_each(|op| arrange(op, target))
}

/// Gives the buffer of `op`, which is only read as a whole, another layout where accesses take less then.
fn arrange<'c>(op: Op<'c>, target: &TargetDesc) -> PassResult {
    let is_linear = |ty: MemDescType<'c>| matches!(encoding(ty.encoding()), Ok(Encoding::SharedLinear(_)));
    let Some(had) = MemDescType::cast(op.result(0).ty()).filter(|ty| is_linear(*ty)) else { return Ok(()) };
    let users: SmallVec<[Op<'c>; 4]> = op.result(0).uses().map(|(user, _)| user).collect();
    if users.is_empty() || !users.iter().all(|user| LocalLoadOp::cast(*user).is_some()) {
        return Ok(());
    }
    let source = op.operand(0).ty();
    let Some(tensor) = source.as_tensor() else { return Ok(()) };
    // What a loop loads a pipeline copies to the buffer past the registers.
    let is_copied = is_copied(op.operand(0), target);
    let takes = |ty: Type<'c>| -> Option<f64> {
        let memory = MemDescType::cast(ty)?;
        let cycles = |tensor: Type<'c>, direction| {
            Some(buffer_plans::access(tensor, memory, direction, target).ok()?.access.cycles(target))
        };
        let filled = if is_copied {
            buffer_plans::filling(tensor, memory, target)
        } else {
            cycles(source, Direction::Store)
        };
        let mut all = weight(op) * filled?;
        for user in &users {
            all += weight(*user) * cycles(user.result(0).ty(), Direction::Load)?;
        }
        Some(all)
    };
    let Some(takes_now) = takes(had.ty()) else { return Ok(()) };
    let mut tried: SmallVec<[Type<'c>; 4]> = SmallVec::from_slice(&[had.ty()]);
    let mut best: Option<(f64, Type<'c>)> = None;
    for user in &users {
        let Ok(plan) = plans::conversion(source, user.result(0).ty(), target) else { continue };
        let Conversion::SharedMemory(plan) = &plan.conversion else { continue };
        if plan.tiles != 1 {
            continue;
        }
        let copied = if is_copied { memory_of_copies(*user, source, plan, target) } else { None };
        let layout = copied.unwrap_or_else(|| plan.layout.clone());
        let memory = SharedLinear { layout, alignment: ALIGNMENT };
        let ty = memdesc(op, tensor, &Encoding::SharedLinear(memory))?;
        if tried.contains(&ty) {
            continue;
        }
        tried.push(ty);
        let least = best.map_or(takes_now * (1.0 - LEAST), |(least, _)| least);
        best = takes(ty).filter(|cycles| *cycles < least).map(|cycles| (cycles, ty)).or(best);
    }
    if let Some((_, ty)) = best {
        op.result(0).set_type(ty);
    }
    Ok(())
}
