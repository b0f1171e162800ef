//! Plans of operations along a dimension: reductions, scans, gathers; and of
//! histograms.

use super::{layout, word_bits};
use linear_layout::plan::{GatherPlan, HistogramPlan, ReducePlan, ScanPlan, WarpCombine};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, LinearLayout};
use mlir_host::ir::{Attr, Op, Type, Value};
use smallvec::SmallVec;

/// The dimension that `op` works along.
fn axis(op: Op<'_>) -> Result<Dim, String> {
    let axis = op.attr("axis").and_then(Attr::as_int).and_then(|axis| usize::try_from(axis).ok());
    axis.map(Dim::out).ok_or_else(|| "has no axis".to_owned())
}

/// Widths of the operands' elements while they move.
///
/// # Errors
/// For types that have no width.
pub fn operand_bits(op: Op<'_>) -> Result<Vec<u32>, String> {
    op.operands().map(|value| word_bits(value.ty())).collect()
}

/// What a warp does at once of the region of a reduction: one operation on
/// both elements, integers of at most 32 bits.
fn warp_combine(op: Op<'_>) -> Option<WarpCombine> {
    let block = op.region(0).first_block()?;
    let mut ops = block.ops();
    let (only, end) = (ops.next()?, ops.next()?);
    let args = [block.args().next()?, block.args().nth(1)?];
    let both = block.num_args() == 2
        && only.num_operands() == 2
        && args.iter().all(|arg| only.operands().any(|operand| operand == *arg));
    let returned = end.num_operands() == 1 && end.operand(0).def_op() == Some(only);
    let bits = args[0].ty().int_bits()?;
    if !both || !returned || bits > 32 {
        return None;
    }
    match only.name() {
        "arith.addi" => Some(WarpCombine::Add),
        "arith.andi" => Some(WarpCombine::And),
        "arith.ori" => Some(WarpCombine::Or),
        "arith.xori" => Some(WarpCombine::Xor),
        "arith.minsi" => Some(WarpCombine::SMin),
        "arith.maxsi" => Some(WarpCombine::SMax),
        "arith.minui" => Some(WarpCombine::UMin),
        "arith.maxui" => Some(WarpCombine::UMax),
        _ => None,
    }
}

/// How a `tt.reduce` is done.
///
/// # Errors
/// When there is no plan.
pub fn reduce(op: Op<'_>, target: &TargetDesc) -> Result<ReducePlan, String> {
    reduce_from(op, &*layout(op.operand(0).ty())?, target)
}

fn reduce_from(op: Op<'_>, source: &LinearLayout, target: &TargetDesc) -> Result<ReducePlan, String> {
    ReducePlan::with_combine(source, axis(op)?, &operand_bits(op)?, warp_combine(op), target)
        .map_err(|err| err.to_string())
}

/// How a `tt.scan` is done.
///
/// # Errors
/// When there is no plan.
pub fn scan(op: Op<'_>, target: &TargetDesc) -> Result<ScanPlan, String> {
    scan_from(op, &*layout(op.operand(0).ty())?, target)
}

fn scan_from(op: Op<'_>, source: &LinearLayout, target: &TargetDesc) -> Result<ScanPlan, String> {
    let reverse = op.attr("reverse").and_then(Attr::as_bool).unwrap_or(false);
    ScanPlan::new(source, axis(op)?, &operand_bits(op)?, reverse, target).map_err(|err| err.to_string())
}

/// How a `tt.gather` is done.
///
/// # Errors
/// When there is no plan.
pub fn gather(op: Op<'_>, target: &TargetDesc) -> Result<GatherPlan, String> {
    let (source, indices) = (op.operand(0).ty(), op.operand(1).ty());
    GatherPlan::new(&*layout(source)?, &*layout(indices)?, axis(op)?, word_bits(source)?, target)
        .map_err(|err| err.to_string())
}

/// Cycles of a reduction, scan or gather whose source has this layout; indices of a gather of
/// the source's shape have it, too.
///
/// # Errors
/// When there is no plan.
pub fn cost_along(op: Op<'_>, source: &LinearLayout, target: &TargetDesc) -> Result<f64, String> {
    match op.name() {
        "tt.reduce" => Ok(reduce_from(op, source, target)?.cost.cycles),
        "tt.scan" => Ok(scan_from(op, source, target)?.cost.cycles),
        "tt.gather" => {
            let indices = op.operand(1).ty();
            let alike = indices.as_tensor().map(|ty| ty.shape())
                == op.operand(0).ty().as_tensor().map(|ty| ty.shape());
            let own = layout(indices)?;
            let indices = if alike { source } else { &*own };
            let plan = GatherPlan::new(source, indices, axis(op)?, word_bits(op.operand(0).ty())?, target);
            Ok(plan.map_err(|err| err.to_string())?.cost.cycles)
        }
        name => Err(format!("{name} is not along a dimension")),
    }
}

/// What [`cost_along`] depends on besides the layout.
pub type KindAlong<'c> = (usize, Vec<(&'c str, Attr<'c>)>, SmallVec<[Type<'c>; 2]>, Option<WarpCombine>);

/// Operations of one kind cost the same in the same layout.
pub fn kind_along(op: Op<'_>) -> KindAlong<'_> {
    let combine = if op.name() == "tt.reduce" { warp_combine(op) } else { None };
    (op.name_id(), op.attrs(), op.operands().map(Value::ty).collect(), combine)
}

/// How a `tt.histogram` is done.
///
/// # Errors
/// When there is no plan.
pub fn histogram(op: Op<'_>, target: &TargetDesc) -> Result<HistogramPlan, String> {
    let (source, result) = (op.operand(0).ty(), op.result(0).ty());
    HistogramPlan::new(&*layout(source)?, &*layout(result)?, word_bits(source)?, target)
        .map_err(|err| err.to_string())
}
