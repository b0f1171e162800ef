//! Plans of operations along a dimension: reductions, scans, gathers; and of
//! histograms.

use super::{layout, word_bits};
use crate::ir_util::splat_constant;
use crate::rules::{Rule, is_cheap, is_conversion, rule};
use linear_layout::plan::{GatherPlan, HistogramPlan, Indices, ReducePlan, ScanPlan, WarpCombine};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, LinearLayout};
use mlir_host::hash::FastSet;
use mlir_host::ir::{Attr, Block, Op, TensorType, Type, Value};
use mlir_host::match_op;
use mlir_host::upstream::{AddIOp, AndIOp, MaxSIOp, MaxUIOp, MinSIOp, MinUIOp, OrIOp, XOrIOp};
use smallvec::SmallVec;
use ttopt_dialect::tt::infer::RESULT_LAYOUT;
use ttopt_dialect::tt::ops::{GatherOp, ReduceOp, ScanOp, SplatOp};
use ttopt_dialect::ttg::ops::ConvertLayoutOp;

/// The dimension that `op` works along.
fn axis(op: Op<'_>) -> Result<Dim, String> {
    let axis = match_op!(op, {
        ReduceOp(reduce) => reduce.axis(),
        ScanOp(scan) => scan.axis(),
        GatherOp(gather) => gather.axis(),
        _ => return Err(format!("{} is not along a dimension", op.name())),
    });
    usize::try_from(axis).map(Dim::out).map_err(|_| format!("the axis {axis} is negative"))
}

/// Widths of the operands' elements while they move.
///
/// # Errors
/// For types that have no width.
pub fn operand_bits(op: Op<'_>) -> Result<Vec<u32>, String> {
    op.operands().map(|value| word_bits(value.ty())).collect()
}

/// What a warp does at once of the region of a reduction: one operation on
/// both elements, integers of at most 32 bits or of 64.
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
    if !both || !returned || (bits > 32 && bits != 64) {
        return None;
    }
    match_op!(only, {
        AddIOp => Some(WarpCombine::Add),
        AndIOp => Some(WarpCombine::And),
        OrIOp => Some(WarpCombine::Or),
        XOrIOp => Some(WarpCombine::Xor),
        MinSIOp => Some(WarpCombine::SMin),
        MaxSIOp => Some(WarpCombine::SMax),
        MinUIOp => Some(WarpCombine::UMin),
        MaxUIOp => Some(WarpCombine::UMax),
        _ => None,
    })
}

/// Marks a `tt.reduce` that is done line by line ([`ReducePlan::line_by_line`]).
pub const LINE_BY_LINE: &str = "ttg.line_by_line";

/// How a `tt.reduce` is done.
///
/// # Errors
/// When there is no plan.
pub fn reduce(op: Op<'_>, target: &TargetDesc) -> Result<ReducePlan, String> {
    let source = layout(op.operand(0).ty())?;
    match op.attr(RESULT_LAYOUT) {
        Some(_) => reduce_to(op, &source, &*layout(op.result(0).ty())?, target),
        None => reduce_from(op, &source, target),
    }
}

/// How a `tt.reduce` is done whose operands are in the layout `source`, and whose results are wanted in the layout `result`.
///
/// # Errors
/// When there is no plan.
pub fn reduce_to(
    op: Op<'_>,
    source: &LinearLayout,
    result: &LinearLayout,
    target: &TargetDesc,
) -> Result<ReducePlan, String> {
    ReducePlan::to_layout(source, axis(op)?, &operand_bits(op)?, warp_combine(op), result, target)
        .map_err(|err| err.to_string())
}

/// A reduction that gives its results in the layout that they are converted to.
pub struct Fused<'c> {
    /// The conversions, of one result each, which nothing else uses.
    pub conversions: SmallVec<[Op<'c>; 2]>,
    /// The layout.
    pub layout: Attr<'c>,
    /// How it is done.
    pub plan: ReducePlan,
}

/// How the reduction `op` gives its results in the layout that they are converted to, if that takes fewer cycles than the reduction and
/// the conversions apart, and no more shared memory than these.
pub fn fused<'c>(op: Op<'c>, target: &TargetDesc) -> Option<Fused<'c>> {
    let (conversions, layout) = converted(op)?;
    let source = super::layout(op.operand(0).ty()).ok()?;
    let result = super::layout(conversions.first()?.result(0).ty()).ok()?;
    let plan = reduce_to(op, &source, &result, target).ok()?;
    let apart = reduce_from(op, &source, target).ok()?;
    let (mut cycles, mut bytes) = (apart.cost.cycles, apart.shared_bytes());
    for conversion in &conversions {
        let there = super::conversion(conversion.operand(0).ty(), conversion.result(0).ty(), target).ok()?;
        cycles += there.cost.cycles;
        bytes = bytes.max(there.shared_bytes());
    }
    let pays = plan.cost.cycles < cycles && plan.shared_bytes() <= bytes;
    pays.then_some(Fused { conversions, layout, plan })
}

/// The conversions of the results of the reduction `op` beside it, where nothing else uses these and all go to one layout.
fn converted<'c>(op: Op<'c>) -> Option<(SmallVec<[Op<'c>; 2]>, Attr<'c>)> {
    ReduceOp::cast(op)?;
    if op.attr(LINE_BY_LINE).is_some() || op.attr(RESULT_LAYOUT).is_some() {
        return None;
    }
    let mut conversions: SmallVec<[Op<'c>; 2]> = SmallVec::new();
    for result in op.results().filter(|result| !result.is_unused()) {
        let mut uses = result.uses();
        let (user, _) = uses.next()?;
        let is_beside = ConvertLayoutOp::cast(user).is_some() && user.block() == op.block();
        if !is_beside || uses.next().is_some() {
            return None;
        }
        conversions.push(user);
    }
    let layout =
        |op: &Op<'c>| -> Option<Attr<'c>> { op.result(0).ty().as_tensor().and_then(TensorType::encoding) };
    let first = layout(conversions.first()?)?;
    conversions.iter().all(|op| layout(op) == Some(first)).then_some((conversions, first))
}

/// Cycles that a reduction of operands in the layout `source` takes more where it gives its results in the layout `result`; fewer
/// where that is less than zero.
///
/// # Errors
/// When there is no plan.
pub fn more_to(
    op: Op<'_>,
    source: &LinearLayout,
    result: &LinearLayout,
    target: &TargetDesc,
) -> Result<f64, String> {
    let there = reduce_to(op, source, result, target)?.cost.cycles;
    Ok(there - reduce_from(op, source, target)?.cost.cycles)
}

/// The layout in which lanes have the results of a reduction of operands in the layout `source` if each has its part of them.
///
/// # Errors
/// When there is no plan.
pub fn shared_among_lanes(
    op: Op<'_>,
    source: &LinearLayout,
    target: &TargetDesc,
) -> Result<Option<LinearLayout>, String> {
    ReducePlan::shared_among_lanes(source, axis(op)?, target).map_err(|err| err.to_string())
}

fn reduce_from(op: Op<'_>, source: &LinearLayout, target: &TargetDesc) -> Result<ReducePlan, String> {
    let plan =
        if op.attr(LINE_BY_LINE).is_some() { ReducePlan::line_by_line } else { ReducePlan::with_combine };
    plan(source, axis(op)?, &operand_bits(op)?, warp_combine(op), target).map_err(|err| err.to_string())
}

/// How a `tt.scan` is done.
///
/// # Errors
/// When there is no plan.
pub fn scan(op: Op<'_>, target: &TargetDesc) -> Result<ScanPlan, String> {
    scan_from(op, &*layout(op.operand(0).ty())?, target)
}

fn scan_from(op: Op<'_>, source: &LinearLayout, target: &TargetDesc) -> Result<ScanPlan, String> {
    let scan = ScanOp::cast(op).ok_or_else(|| format!("{} is no scan", op.name()))?;
    let (bits, combine) = (operand_bits(op)?, combining(op) as f64 * target.cost.alu);
    ScanPlan::with_combine(source, axis(op)?, &bits, wanted(op).collect(), scan.reverse(), combine, target)
        .map_err(|err| err.to_string())
}

/// Numbers of the results of `op` that anybody uses.
fn wanted(op: Op<'_>) -> impl Iterator<Item = usize> {
    (0..op.num_results()).filter(move |&result| !op.result(result).is_unused())
}

/// Instructions of the region of `op`, all of which are taken to be plain arithmetic: two for an element of 64 bits.
fn combining(op: Op<'_>) -> u64 {
    let ops = op.region(0).first_block().into_iter().flat_map(Block::ops);
    let instructions = |op: Op<'_>| 1 + u64::from(word_bits(op.result(0).ty()).is_ok_and(|bits| bits > 32));
    ops.filter(|op| op.num_results() > 0).map(instructions).sum()
}

/// Values that are looked at to find out what an index is computed from.
const MOST_VALUES: usize = 64;

/// Whether `value` is computed from positions and scalars alone.
fn from_positions(value: Value<'_>) -> bool {
    let (mut open, mut seen) = (vec![value], FastSet::default());
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        let Some(op) = value.def_op().filter(|op| is_cheap(*op) || is_conversion(*op)) else { return false };
        if seen.len() > MOST_VALUES {
            return false;
        }
        open.extend(op.operands().filter(|operand| operand.ty().as_tensor().is_some()));
    }
    true
}

/// The dimensions along which all elements of `value` are equal, by what it is broadcast from.
fn alike(value: Value<'_>) -> SmallVec<[Dim; 4]> {
    let dims = alike_dims(value, &mut 0);
    (0..64).filter(|dim| dims >> dim & 1 == 1).map(Dim::out).collect()
}

/// The same as bits. `seen` counts the values that have been looked at; a dimension beyond the bits is not told.
fn alike_dims(value: Value<'_>, seen: &mut usize) -> u64 {
    let (Some(ty), Some(op)) = (value.ty().as_tensor(), value.def_op()) else { return 0 };
    *seen += 1;
    let shape = ty.shape();
    if shape.len() >= u64::BITS as usize {
        return 0;
    }
    let ones = (0..).zip(&shape).fold(0u64, |ones, (dim, size)| ones | u64::from(*size == 1) << dim);
    let all = (1u64 << shape.len()) - 1;
    let Some(rule) = rule(op).filter(|_| *seen <= MOST_VALUES) else { return ones };
    let mut of = |number: usize| alike_dims(op.operand(number), seen);
    let own = match rule {
        Rule::Source if SplatOp::cast(op).is_some() || splat_constant(value).is_some() => all,
        Rule::Broadcast => {
            let from = op.operand(0).ty().as_tensor().map(|ty| ty.shape()).unwrap_or_default();
            let repeated = (0..).zip(&from).zip(&shape).filter(|((_, from), to)| **from == 1 && **to > 1);
            of(0) | repeated.fold(0, |dims, ((dim, _), _)| dims | 1 << dim)
        }
        Rule::ExpandDims(axis) => {
            let (below, inner) = ((1u64 << axis) - 1, of(0));
            inner & below | (inner & !below) << 1 | 1 << axis
        }
        Rule::Convert => of(0),
        Rule::Same if is_cheap(op) => {
            let tensors = (0..op.num_operands()).filter(|i| op.operand(*i).ty().as_tensor().is_some());
            tensors.fold(all, |dims, number| dims & of(number))
        }
        _ => 0,
    };
    (own | ones) & all
}

/// What is known of the indices of a gather.
fn known_indices(op: Op<'_>) -> Indices {
    Indices { in_place: from_positions(op.operand(1)), alike: alike(op.operand(1)) }
}

/// How a `tt.gather` is done.
///
/// # Errors
/// When there is no plan.
pub fn gather(op: Op<'_>, target: &TargetDesc) -> Result<GatherPlan, String> {
    gather_between(op, &*layout(op.operand(0).ty())?, &*layout(op.operand(1).ty())?, target)
}

/// The same where its source and its indices have these layouts.
fn gather_between(
    op: Op<'_>,
    source: &LinearLayout,
    indices: &LinearLayout,
    target: &TargetDesc,
) -> Result<GatherPlan, String> {
    GatherPlan::of(source, (indices, &known_indices(op)), axis(op)?, word_bits(op.operand(0).ty())?, target)
        .map_err(|err| err.to_string())
}

/// Cycles of a reduction, scan or gather whose source has this layout; indices of a gather of
/// the source's shape have it, too.
///
/// # Errors
/// When there is no plan.
pub fn cost_along(op: Op<'_>, source: &LinearLayout, target: &TargetDesc) -> Result<f64, String> {
    match_op!(op, {
        ReduceOp => Ok(reduce_from(op, source, target)?.cost.cycles),
        ScanOp => Ok(scan_from(op, source, target)?.cycles()),
        GatherOp => {
            let indices = op.operand(1).ty();
            let alike = indices.as_tensor().map(|ty| ty.shape())
                == op.operand(0).ty().as_tensor().map(|ty| ty.shape());
            let own = layout(indices)?;
            let indices = if alike { source } else { &*own };
            Ok(gather_between(op, source, indices, target)?.cost.cycles)
        },
        _ => Err(format!("{} is not along a dimension", op.name())),
    })
}

/// Cycles of a reduction, for each iteration of a loop that runs `times` times, where threads combine what they have in it and
/// exchange data once after it.
///
/// # Errors
/// When there is no plan.
pub fn cost_of_sum(
    op: Op<'_>,
    source: &LinearLayout,
    times: f64,
    target: &TargetDesc,
) -> Result<f64, String> {
    let plan = reduce_from(op, source, target)?;
    let words: u32 = operand_bits(op)?.iter().map(|bits| bits.div_ceil(32)).sum();
    let combined = plan.local.own_combinations() as f64;
    let warps = (1u64 << source.in_bits(Dim::WARP)) as f64;
    let own = (combined * f64::from(words) * warps * target.cost.alu).min(plan.cost.cycles);
    Ok(own + (plan.cost.cycles - own) / times.max(1.0))
}

/// What [`cost_along`] depends on besides the layout.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KindAlong<'c> {
    name: usize,
    attrs: Vec<(&'c str, Attr<'c>)>,
    operands: SmallVec<[Type<'c>; 2]>,
    warp_combine: Option<WarpCombine>,
    /// Instructions that combine two elements, and the results that are used, where that counts.
    combining: Option<(u64, SmallVec<[usize; 2]>)>,
    indices: Option<Indices>,
}

/// Operations of one kind cost the same in the same layout.
pub fn kind_along(op: Op<'_>) -> KindAlong<'_> {
    let warp_combine = if ReduceOp::cast(op).is_some() { warp_combine(op) } else { None };
    let combining = ScanOp::cast(op).map(|_| (combining(op), wanted(op).collect()));
    let indices = GatherOp::cast(op).map(|_| known_indices(op));
    let operands = op.operands().map(Value::ty).collect();
    KindAlong { name: op.name_id(), attrs: op.attrs(), operands, warp_combine, combining, indices }
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
