//! `--tritongpu-fuse-reduce-conversions`: reductions give their results in the layout that these are converted to.
//!
//! What brings partial results of several warps together, or those that lanes have shared among them, brings them to the threads
//! that want them: one exchange between threads in place of two, or none. The result of such a `tt.reduce` has the layout that its
//! attribute `ttg.result_layout` says, which Triton's verifier knows nothing of: this is the first of the passes to LLVM.

use crate::ir_util::{operations_in_dominance_order, set_layout};
use crate::machine::Machine;
use crate::plans;
use mlir_host::ir::Op;
use mlir_host::pass::{Options, PassDef, PassResult};
use ttopt_dialect::tt::infer::RESULT_LAYOUT;
use ttopt_dialect::tt::ops::ReduceOp;

/// The pass.
pub static TRITONGPU_FUSE_REDUCE_CONVERSIONS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    ..PassDef::new(
        "tritongpu-fuse-reduce-conversions",
        "Let reductions give their results in the layout that these are converted to",
        run,
    )
};

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let machine = Machine::of(module)?;
    let Some(target) = &machine.target else { return Ok(()) };
    let mut reductions = operations_in_dominance_order(module);
    reductions.retain(|op| ReduceOp::cast(*op).is_some());
    for op in reductions {
        let Some(fused) = plans::fused(op, target) else { continue };
        op.set_attr(RESULT_LAYOUT, fused.layout);
        op.results().for_each(|result| set_layout(result, fused.layout));
        for conversion in fused.conversions {
            conversion.result(0).replace_all_uses_with(conversion.operand(0));
            conversion.erase();
        }
    }
    Ok(())
}
