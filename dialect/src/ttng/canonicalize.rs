//! Canonicalization patterns.

use super::ops::*;
use crate::interfaces::Predicated;
use crate::ttg::module_attrs;
use mlir_host::ir::{Attr, Op, Value};
use mlir_host::rewrite::{Pattern, Rewriter};
use mlir_host::upstream::ConstantOp;

const fn never(root: &'static str) -> Pattern {
    Pattern { name: "never-executed", root, benefit: 1, apply: drop_where_false }
}

/// Of `ttng.barrier_expect`.
pub(super) static BARRIER_EXPECT: [Pattern; 2] = [
    never("ttng.barrier_expect"),
    Pattern { name: "from-itself", root: "ttng.barrier_expect", benefit: 1, apply: drop_from_cta },
];

/// Of `ttng.wait_barrier`.
pub(super) static WAIT_BARRIER: [Pattern; 1] = [never("ttng.wait_barrier")];

/// Of `ttng.arrive_barrier`.
pub(super) static ARRIVE_BARRIER: [Pattern; 2] = [
    never("ttng.arrive_barrier"),
    Pattern { name: "from-itself", root: "ttng.arrive_barrier", benefit: 1, apply: drop_from_cta },
];

/// Of `ttng.async_tma_copy_global_to_local`.
pub(super) static TMA_LOAD: [Pattern; 1] = [never("ttng.async_tma_copy_global_to_local")];

/// Of `ttng.async_tma_gather`.
pub(super) static TMA_GATHER: [Pattern; 1] = [never("ttng.async_tma_gather")];

/// Of `ttng.tc_gen5_commit`.
pub(super) static COMMIT: [Pattern; 1] = [never("ttng.tc_gen5_commit")];

/// Of `ttng.tmem_store`.
pub(super) static TMEM_STORE: [Pattern; 1] = [never("ttng.tmem_store")];

/// Whether a predicate is the constant `false`.
pub(super) fn is_false(pred: Value<'_>) -> bool {
    ConstantOp::defining(pred).and_then(ConstantOp::value).and_then(Attr::as_int) == Some(0)
}

/// What is never executed goes, unless other operations are ordered by it: through a token, or as the
/// wait that accesses to its dependencies come after.
fn drop_where_false<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> bool {
    let orders =
        op.num_results() != 0 || WaitBarrierOp::cast(op).is_some_and(|wait| wait.deps().next().is_some());
    if orders || !Predicated::predicate(op).is_some_and(is_false) {
        return false;
    }
    rewriter.erase(op);
    true
}

/// Each CTA arrives for itself where `fromCTA` keeps all bits of its number.
fn drop_from_cta<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> bool {
    let all = i64::from(module_attrs::num_ctas(op).unwrap_or(1)) - 1;
    if op.attr("fromCTA").and_then(Attr::as_int) != Some(all) {
        return false;
    }
    rewriter.modify(op, |op| {
        op.remove_attr("fromCTA");
    });
    true
}
