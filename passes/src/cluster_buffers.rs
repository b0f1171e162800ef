//! `--tritongpu-cluster-buffers`: every CTA of a cluster stores all that its
//! part of a buffer holds.
//!
//! A CTA stores to its own shared memory. Where CTAs share a tensor in another
//! way than a buffer, such as the operand of a dot that all CTAs read in full,
//! the tensor is first converted.

use crate::buffer_plans;
use crate::ir_util::convert_before;
use crate::machine::{Layouts, Machine, error};
use linear_layout::Encoding;
use mlir_host::asm::Reported;
use mlir_host::ir::{Op, Walk};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::IrRewriter;
use ttopt_dialect::ttg::attrs::encoding;
use ttopt_dialect::ttg::types::MemDescType;

/// The pass.
pub static TRITONGPU_CLUSTER_BUFFERS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    ..PassDef::new(
        "tritongpu-cluster-buffers",
        "Convert tensors so that each block of a cluster stores all that its part of a buffer holds",
        run,
    )
};

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let machine = Machine::of(module)?;
    if machine.num_ctas == 1 {
        return Ok(());
    }
    let layouts = Layouts::new(module.context(), machine);
    let mut stores = Vec::new();
    module.walk(&mut |op| {
        stores.extend(buffer_plans::stored(op).map(|(_, buffer)| (op, buffer)));
        Walk::Advance
    });
    stores.into_iter().try_for_each(|(op, buffer)| cover(&layouts, op, buffer))
}

/// Converts what `op` stores if that is not all that `buffer` holds in each block.
fn cover<'c>(layouts: &Layouts<'c>, op: Op<'c>, buffer: MemDescType<'c>) -> Result<(), Reported> {
    let fail = |reason: String| error(op, reason);
    let value = op.operand(0);
    if buffer_plans::covers(value.ty(), buffer).map_err(fail)? {
        return Ok(());
    }
    let Some(tensor) = value.ty().as_tensor() else { return Err(fail("stores no tensor".to_owned())) };
    let given = tensor.encoding().ok_or_else(|| fail("stores a tensor without a layout".to_owned()))?;
    let mut blocked = match encoding(given).map_err(fail)? {
        Encoding::Blocked(blocked) => blocked,
        _ => layouts.machine.default_blocked(&tensor.shape()),
    };
    blocked.cga = encoding(buffer.encoding()).map_err(fail)?.cga_layout();
    let layout = layouts.blocked(blocked).map_err(fail)?;
    let mut rewriter = IrRewriter::new(op.context());
    let converted = convert_before(&mut rewriter, op, value, layout)?;
    op.set_operand(0, converted);
    Ok(())
}
