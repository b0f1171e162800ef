//! `--triton-known-comparisons`: comparisons of integers that have one result whatever runs become constants.
//!
//! Kernels mask columns of tiles that fit exactly, or elements of loops whose bounds are constants. What LLVM finds out of
//! single numbers later is known of tensors here, before layouts, vectors and schedules are chosen: a mask that is true
//! goes, and with it the registers of what stands in for masked elements.

use crate::analysis::ranges::{Range, Ranges};
use crate::ir_util::cmpi;
use mlir_host::ir::{Attr, Op, Walk};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::{IrRewriter, apply_greedily};
use mlir_host::upstream::CmpIOp;
use ttopt_dialect::tt::canonicalize::{ATOMIC_STORE, LOAD, STORE};

/// The pass.
pub static TRITON_KNOWN_COMPARISONS: PassDef = PassDef {
    dependencies: &["arith", "tt"],
    ..PassDef::new("triton-known-comparisons", "Turn comparisons whose result is known into constants", run)
};

fn run(root: Op<'_>, _: &Options) -> PassResult {
    let mut comparisons = Vec::new();
    root.walk(&mut |op| {
        comparisons.extend(CmpIOp::cast(op));
        Walk::Advance
    });
    if comparisons.is_empty() {
        return Ok(());
    }
    let ranges = Ranges::new(root);
    let known = |compare: &CmpIOp<'_>| {
        let op = compare.op();
        result(compare.predicate()?, ranges.of(op.operand(0))?, ranges.of(op.operand(1))?)
    };
    let known: Vec<_> =
        comparisons.into_iter().filter_map(|compare| Some((compare.op(), known(&compare)?))).collect();
    if known.is_empty() {
        return Ok(());
    }
    let mut rewriter = IrRewriter::new(root.context());
    for (op, holds) in known {
        let ty = op.result(0).ty();
        let value = Attr::int(op.context(), 1, i64::from(holds));
        let value = if ty.as_tensor().is_some() { Attr::splat(ty, value) } else { value };
        rewriter.set_before(op);
        let made = rewriter.generic("arith.constant", op.loc(), &[], &[ty], &[("value", value)])?;
        rewriter.replace(op, &[made.result(0)]);
    }
    // What follows from it. Patterns that went on forever would still leave valid IR.
    apply_greedily(root, &[&LOAD[0], &STORE[0], &ATOMIC_STORE[0]]);
    Ok(())
}

/// What a predicate of `arith.cmpi` says of all numbers of two ranges.
fn result(predicate: i64, a: Range, b: Range) -> Option<bool> {
    // Of numbers that are not negative it does not matter whether they are signed.
    if predicate >= cmpi::ULT && (a.0 < 0 || b.0 < 0) {
        return None;
    }
    let apart = a.1 < b.0 || b.1 < a.0;
    if predicate < cmpi::SLT && !apart && (a.0, b.0) != (a.1, b.1) {
        return None;
    }
    // One order of numbers holds the more, the further apart they are.
    let (low, high) = (cmpi::holds(predicate, a.0, b.1), cmpi::holds(predicate, a.1, b.0));
    (low == high).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_decide_what_holds_of_all_their_numbers() {
        let (low, high, one) = ((0, 3), (4, 9), (4, 4));
        for (predicate, of_low_and_high, of_high_and_one, of_one_and_one) in [
            (0, Some(false), None, Some(true)),
            (1, Some(true), None, Some(false)),
            (2, Some(true), Some(false), Some(false)),
            (3, Some(true), None, Some(true)),
            (4, Some(false), None, Some(false)),
            (5, Some(false), Some(true), Some(true)),
        ] {
            assert_eq!(result(predicate, low, high), of_low_and_high, "{predicate}");
            assert_eq!(result(predicate, high, one), of_high_and_one, "{predicate}");
            assert_eq!(result(predicate, one, one), of_one_and_one, "{predicate}");
            if predicate > 1 {
                assert_eq!(result(predicate + 4, low, high), of_low_and_high, "{predicate}");
                assert_eq!(result(predicate + 4, (-1, 3), high), None, "{predicate}");
            }
        }
    }
}
