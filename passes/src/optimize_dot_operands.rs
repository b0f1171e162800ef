//! `--tritongpu-optimize-dot-operands`: operands in shared memory as they were loaded.
//!
//! A buffer filled with a transposed tensor becomes a transposed view of a buffer
//! filled with the tensor itself: registers stay as
//! the load left them, and the load can later be an asynchronous copy straight
//! to the buffer.

use crate::matmul::operands::unconverted;
use mlir_host::ir::{Op, Walk};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::{Pattern, Rewriter, apply_greedily};
use ttopt_dialect::tt::ops::TransOp;
use ttopt_dialect::ttg::infer;
use ttopt_dialect::ttg::infer_memdesc::transposed;
use ttopt_dialect::ttg::ops::{LocalAllocOp, MemDescTransOp};
use ttopt_dialect::ttg::types::MemDescType;

/// The pass.
pub static TRITONGPU_OPTIMIZE_DOT_OPERANDS: PassDef = PassDef {
    dependencies: &["ttg"],
    ..PassDef::new(
        "tritongpu-optimize-dot-operands",
        "Fill buffers with what was loaded, and transpose views of them instead of tensors",
        run,
    )
};

static TRANSPOSED_ALLOC: Pattern = Pattern {
    name: "alloc-of-trans",
    root: LocalAllocOp::NAME,
    benefit: 1,
    apply: |op, rewriter| transpose_view(op, rewriter).is_some(),
};

fn run(root: Op<'_>, _: &Options) -> PassResult {
    let is_alloc = |op: Op<'_>| if LocalAllocOp::cast(op).is_some() { Walk::Stop } else { Walk::Advance };
    if root.walk(&mut |op| is_alloc(op)) != Walk::Stop {
        return Ok(());
    }
    // Patterns that went on forever would still leave valid IR.
    apply_greedily(root, &[&TRANSPOSED_ALLOC]);
    Ok(())
}

/// `local_alloc(trans(x))` is `memdesc_trans(local_alloc(x))`, for buffers that
/// nobody writes.
fn transpose_view<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let alloc = LocalAllocOp::cast(op)?;
    let result = MemDescType::cast(alloc.result().ty()).filter(|ty| !ty.mutable())?;
    let trans = TransOp::defining(unconverted(alloc.src()?))?;
    let source = trans.src().ty().as_tensor()?;
    let order = trans.order();
    let mut inverse = vec![0i32; order.len()];
    for (i, dim) in order.iter().enumerate() {
        *inverse.get_mut(usize::try_from(*dim).ok()?)? = i as i32;
    }
    let layout = infer::trans(Some(result.encoding()), &result.shape(), &inverse).ok()??;
    let inner = MemDescType::new(&source.shape(), source.element(), layout, result.space(), false)?;
    // Some layouts are spelled differently after being transposed twice.
    if transposed(inner, &order).ok()? != result {
        return None;
    }
    rewriter.set_before(op);
    let filled = LocalAllocOp::build(op.loc()).src(trans.src()).alignment(alloc.alignment());
    let filled = filled.results(&[inner.ty()]).insert(rewriter).ok()?.result();
    let view =
        MemDescTransOp::build(op.loc(), filled, order).results(&[result.ty()]).insert(rewriter).ok()?;
    rewriter.replace(op, &[view.result()]);
    Some(())
}
