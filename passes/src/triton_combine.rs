//! `--triton-combine`: neighbouring operations that are one.
//!
//! * `dot(a, b, 0) + c` is `dot(a, b, c)`;
//! * an offset of an offset is one offset, where their sum cannot overflow;
//! * `select(m, load(p, m, _), x)` is `load(p, m, x)`: what stands for masked
//!   elements comes from the load itself;
//! * sides of an `scf.if` that do the same are one (`same_sides`);
//! * exchanges of neighbours that undo each other are none (`exchanges`);
//! * accesses whose elements lie side by side are one (`interleaved`).

use crate::ir_util::constant;
use mlir_host::ir::{Attr, Op, Value};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::{Pattern, Rewriter, apply_greedily};
use ttopt_dialect::tt::canonicalize::{DOT_ADD_FLOAT, DOT_ADD_INT};
use ttopt_dialect::tt::ops::{AddPtrOp, LoadOp, SplatOp};

/// The pass.
pub static TRITON_COMBINE: PassDef = PassDef {
    dependencies: &["arith", "tt"],
    ..PassDef::new(
        "triton-combine",
        "Combine sums with products, offsets of pointers, selections with masked loads, and equal sides of branches",
        run,
    )
};

static ADD_PTR: Pattern = Pattern {
    name: "offset-of-offset",
    root: AddPtrOp::NAME,
    benefit: 1,
    apply: |op, rewriter| combine_offsets(op, rewriter).is_some(),
};

static SELECT: Pattern = Pattern {
    name: "select-of-masked-load",
    root: "arith.select",
    benefit: 1,
    apply: |op, rewriter| combine_select(op, rewriter).is_some(),
};

fn run(root: Op<'_>, _: &Options) -> PassResult {
    crate::same_sides::combine_all(root);
    crate::exchanges::undo(root);
    // Patterns that went on forever would still leave valid IR.
    apply_greedily(root, &[&DOT_ADD_FLOAT, &DOT_ADD_INT, &ADD_PTR, &SELECT]);
    crate::interleaved::merge(root)
}

/// Whether the sum of two offsets is what adding one after the other gives:
/// offsets are signed numbers of their width, pointers have 64 bits.
fn sum_is_exact(inner: Value<'_>, outer: Value<'_>) -> bool {
    let Some(bits) = inner.ty().element().int_bits() else { return false };
    if bits == 64 {
        return true;
    }
    let sum = constant(inner).zip(constant(outer)).and_then(|(a, b)| a.checked_add(b));
    bits < 64 && sum.is_some_and(|sum| (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&sum))
}

fn combine_offsets<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let outer = AddPtrOp::cast(op)?;
    let inner = AddPtrOp::defining(outer.ptr())?;
    // What is said of one of the two pointers does not hold for offsets.
    let hinted = !op.discardable_attrs().is_empty() || !inner.op().discardable_attrs().is_empty();
    let ty = inner.offset().ty();
    if hinted || ty != outer.offset().ty() || !sum_is_exact(inner.offset(), outer.offset()) {
        return None;
    }
    rewriter.set_before(op);
    let sum = rewriter.generic("arith.addi", op.loc(), &[inner.offset(), outer.offset()], &[ty], &[]).ok()?;
    let (ptr, offset) = (inner.ptr(), sum.result(0));
    rewriter.modify(op, |op| op.set_operands(&[ptr, offset]));
    Some(())
}

fn combine_select<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let (condition, masked) = (op.operand(0), op.operand(2));
    let load = LoadOp::defining(op.operand(1))?;
    let mask = load.mask()?;
    let splat = |value: Value<'c>| SplatOp::defining(value).map(|splat| splat.src());
    let same = mask == condition || splat(mask).is_some_and(|scalar| scalar == condition);
    if !same || load.result().uses().nth(1).is_some() || load.is_volatile() {
        return None;
    }
    // The value for masked elements must be there already when the load runs.
    let block = load.op().block();
    let late = masked.def_op().is_some_and(|def| def.block() == block && !def.is_before_in_block(load.op()));
    if late || op.block() != block {
        return None;
    }
    let ptr = load.ptr();
    let sizes = Attr::i32_array(op.context(), &[1, 1, 1]);
    rewriter.modify(load.op(), |load| {
        load.set_operands(&[ptr, mask, masked]);
        load.set_attr("operandSegmentSizes", sizes);
    });
    rewriter.replace(op, &[load.result()]);
    Some(())
}
