//! Plans of operations on tensors, made from their types.
//!
//! The allocation of shared memory, the layout engine and the lowering ask the
//! same functions, so that what was counted, allocated and emitted agree.

mod access;
mod along;
mod dot;

pub use access::{
    AccessFacts, Limit, access, access_in, async_copy, async_copy_to, copy_accesses, half_sums, half_sums_of,
    is_always_issued, is_atomic, is_zero, lds_load, masked_coordinates, masks_by_zeros, most_elems, writes,
};
pub use along::{
    Fused, LINE_BY_LINE, cost_along, cost_of_sum, fused, gather, histogram, kind_along, more_to,
    operand_bits, reduce, scan, shared_among_lanes,
};
pub use dot::{dot, dot_type, has_pairs, scale_layouts, scaled_dot, warp_group_dot};

use crate::shared_memory::ONCE;
use crate::thread_group::ThreadGroup;
use linear_layout::plan::{ConversionPlan, FragmentWords};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, Encoding, LinearLayout};
use mlir_host::def::OpDef;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Op, TensorType, Type, Value};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;
use ttopt_dialect::tt::ops::{
    AtomicCasOp, AtomicLoadOp, AtomicPollOp, AtomicRmwOp, ElementwiseInlineAsmOp, GatherOp, HistogramOp,
    LoadOp, ReduceOp, ScanOp,
};
use ttopt_dialect::tt::types::is_pointer;
use ttopt_dialect::ttg::attrs::encoding;
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::module_attrs;
use ttopt_dialect::ttg::ops::{ConvertLayoutOp, LocalAtomicScatterRmwOp, WarpSpecializeOp};
use ttopt_dialect::ttng::ops::TensormapCreateOp;

/// The layout of a tensor type.
///
/// # Errors
/// When the type is no tensor, or has no layout.
pub fn layout(ty: Type<'_>) -> Result<Arc<LinearLayout>, String> {
    let Some(tensor) = ty.as_tensor() else { return Err(format!("{ty} is not a tensor")) };
    let Some(encoding) = tensor.encoding() else {
        return Err(format!("{ty} has no layout: run --convert-triton-to-tritongpu first"));
    };
    to_linear_layout(encoding, &tensor.shape())
}

/// Bits that an element of a tensor takes while it moves between threads:
/// `i1` a byte, pointers 64 bits.
///
/// # Errors
/// For types that have no width.
pub fn word_bits(ty: Type<'_>) -> Result<u32, String> {
    let element = ty.element();
    if is_pointer(element) {
        return Ok(64);
    }
    match element.bits() {
        Some(bits @ 1..=64) => Ok(bits.next_power_of_two().max(8)),
        _ => Err(format!("elements of type {element} cannot move between threads")),
    }
}

/// Layouts by [`Attr::global_id`], which never names two things; the shape, the bits of an element, and
/// the [fingerprint](TargetDesc::fingerprint) of the target.
type ConversionKey = ((u64, usize), (u64, usize), SmallVec<[i64; 4]>, u32, u64);

/// Plans that a thread keeps; the table starts anew beyond.
const CAPACITY: usize = 1 << 12;

thread_local! {
    // As for layouts (`ttg::layout`): the engine, allocation, barriers and lowering ask for the same plans.
    static CONVERSIONS: RefCell<FastMap<ConversionKey, Arc<ConversionPlan>>> = RefCell::default();
}

/// How values of type `from` become values of type `to`, another layout of
/// the same tensor.
///
/// # Errors
/// When there is no plan.
pub fn conversion(from: Type<'_>, to: Type<'_>, target: &TargetDesc) -> Result<Arc<ConversionPlan>, String> {
    let destination = to.as_tensor().and_then(TensorType::encoding);
    match (from.as_tensor(), destination) {
        (Some(source), Some(destination)) => conversion_to(source, destination, target),
        _ => Err(format!("{from} does not become {to} by moving data")),
    }
}

/// The words that a matrix instruction takes together of a tensor of `shape` with elements of `bits` bits in this layout (PTX ISA,
/// "Matrix Fragments for mma.m16n8k16"): of the left operand two rows, each at two places along K, of the right one the latter.
/// Where threads hold more than a word along K, more words lie between the rows.
pub(crate) fn fragment(layout: Attr<'_>, shape: &[i64], bits: u32) -> FragmentWords {
    let Ok(Encoding::DotOperand(operand)) = encoding(layout) else { return FragmentWords::ONE };
    if !matches!(*operand.parent, Encoding::NvidiaMma(_)) {
        return FragmentWords::ONE;
    }
    if operand.op_idx != 0 {
        return FragmentWords::pairs(0);
    }
    let Ok(linear) = to_linear_layout(layout, shape) else { return FragmentWords::ONE };
    let row = Dim::out(shape.len().saturating_sub(2));
    let columns = linear.columns_of(Dim::REGISTER).iter().filter(|column| **column != 0);
    let mut words = columns.skip((32 / bits.max(1)).max(1).ilog2() as usize);
    let row = words.position(|column| column & linear.out_mask(row) != 0);
    match row {
        Some(row @ 1..) => FragmentWords::fours(row as u8, 0),
        _ => FragmentWords::fours(0, 1),
    }
}

/// How what a loop loads as `from` gets the layout `to` by way of shared memory that copies fill past the registers. `None` where nothing can be
/// copied so, or its plan is none.
pub fn through_copies(
    from: TensorType<'_>,
    to: TensorType<'_>,
    target: &TargetDesc,
) -> Option<ConversionPlan> {
    let (source, bits, shape) = (layout(from.ty()).ok()?, word_bits(from.ty()).ok()?, from.shape());
    let to = to.encoding()?;
    let destination = to_linear_layout(to, &shape).ok()?;
    let elements = (bits, fragment(to, &shape, bits));
    ConversionPlan::for_copies(&source, &destination, elements, target).ok().flatten()
}

/// How values of type `from` get the layout `to`; planned once.
///
/// # Errors
/// When there is no plan.
pub fn conversion_to(
    from: TensorType<'_>,
    to: Attr<'_>,
    target: &TargetDesc,
) -> Result<Arc<ConversionPlan>, String> {
    let (source, bits, shape) = (layout(from.ty())?, word_bits(from.ty())?, from.shape());
    let key = || {
        let (from, to) = (from.encoding()?.global_id()?, to.global_id()?);
        Some((from, to, shape.clone(), bits, target.fingerprint()))
    };
    let key = key();
    let find = |key: &ConversionKey| CONVERSIONS.with_borrow(|table| table.get(key).cloned());
    if let Some(found) = key.as_ref().and_then(find) {
        return Ok(found);
    }
    let destination = to_linear_layout(to, &shape)?;
    let plan =
        ConversionPlan::for_fragments(&source, &destination, (bits, fragment(to, &shape, bits)), target)
            .map_err(|err| err.to_string())?;
    let plan = Arc::new(plan);
    if let Some(key) = key {
        CONVERSIONS.with_borrow_mut(|table| {
            if table.len() >= CAPACITY {
                table.clear();
            }
            table.insert(key, plan.clone());
        });
    }
    Ok(plan)
}

/// The layout of what a thread holds of `ty`: that of a tensor, or of a scalar,
/// which every thread holds.
///
/// # Errors
/// When a tensor has no layout, or the module around `op` does not say how many
/// threads there are.
pub fn layout_at(op: Op<'_>, ty: Type<'_>, target: &TargetDesc) -> Result<Arc<LinearLayout>, String> {
    if ty.as_tensor().is_some() {
        return layout(ty);
    }
    let group = ThreadGroup::of(op)?;
    let blocks = module_attrs::num_ctas(op).unwrap_or(1);
    let copies = |n: u32| vec![[0]; n.max(1).ilog2() as usize];
    let bases = [
        (Dim::REGISTER, Vec::new()),
        (Dim::LANE, copies(target.lanes)),
        (Dim::WARP, copies(group.warps)),
        (Dim::BLOCK, copies(blocks)),
    ];
    LinearLayout::from_bases(&bases, &[Dim::out(0)]).map(Arc::new).map_err(|err| err.to_string())
}

/// How values that only one of the threads with replicas of an element has reach
/// the others: through shared memory. `None` when no thread holds replicas, or
/// nobody uses the result.
///
/// # Errors
/// When there is no plan.
pub fn shared_result(op: Op<'_>, target: &TargetDesc) -> Result<Option<ConversionPlan>, String> {
    shared(op, op.result(0), target)
}

/// The same for `result`, one of several of `op`.
///
/// # Errors
/// When there is no plan.
pub fn shared(op: Op<'_>, result: Value<'_>, target: &TargetDesc) -> Result<Option<ConversionPlan>, String> {
    if result.is_unused() {
        return Ok(None);
    }
    let layout = layout_at(op, result.ty(), target)?;
    let copies = [Dim::LANE, Dim::WARP, Dim::BLOCK].iter().any(|dim| layout.free_variable_mask(*dim) != 0);
    if !copies {
        return Ok(None);
    }
    let bits = word_bits(result.ty())?;
    let plan = match layout.free_variable_mask(Dim::BLOCK) {
        0 => ConversionPlan::through_shared(&layout, &layout, bits, target, target.shared_bytes),
        // One block of a cluster has it.
        _ => ConversionPlan::to_copies(&layout, bits, target, target.shared_bytes),
    };
    plan.map(Some).map_err(|err| err.to_string())
}

/// Bytes of a tensor map, and of its alignment (PTX ISA, "Tensor-map").
pub const TENSOR_MAP_BYTES: u64 = 128;

/// Shared memory that `op` needs while it runs, in bytes of each block, beside
/// the buffers among its operands. Operations that need some carry the
/// attribute `allocation.offset` when shared memory has been allocated.
///
/// # Errors
/// When an operation has no plan.
pub fn scratch_bytes(op: Op<'_>, target: &TargetDesc) -> Result<u64, String> {
    type Bytes = fn(Op<'_>, &TargetDesc) -> Result<u64, String>;
    let of_result: Bytes = |op, target| Ok(shared_result(op, target)?.map_or(0, |plan| plan.shared_bytes()));
    // Those of which one thread tells the others what it got.
    let once: Bytes = |op, target| {
        let results = op.results().filter(|_| op.attr(ONCE).is_some());
        results
            .map(|result| Ok(shared(op, result, target)?.map_or(0, |plan| plan.shared_bytes())))
            .try_fold(0, |most, bytes: Result<u64, String>| Ok(most.max(bytes?)))
    };
    let scratch: [(&'static OpDef, Bytes); 14] = [
        (LoadOp::DEF, once),
        (ElementwiseInlineAsmOp::DEF, once),
        (ConvertLayoutOp::DEF, |op, target| {
            Ok(conversion(op.operand(0).ty(), op.result(0).ty(), target)?.shared_bytes())
        }),
        (AtomicRmwOp::DEF, of_result),
        (AtomicCasOp::DEF, of_result),
        (AtomicLoadOp::DEF, of_result),
        (AtomicPollOp::DEF, of_result),
        (LocalAtomicScatterRmwOp::DEF, of_result),
        (ReduceOp::DEF, |op, target| Ok(reduce(op, target)?.shared_bytes())),
        (ScanOp::DEF, |op, target| Ok(scan(op, target)?.shared_bytes(&operand_bits(op)?))),
        (GatherOp::DEF, |op, target| Ok(gather(op, target)?.shared_bytes())),
        (TensormapCreateOp::DEF, |_, _| Ok(TENSOR_MAP_BYTES)),
        (HistogramOp::DEF, |op, target| Ok(histogram(op, target)?.total_shared_bytes())),
        (WarpSpecializeOp::DEF, |op, _| crate::warp_groups::capture_bytes(op)),
    ];
    let own = op.def().and_then(|def| scratch.iter().find(|(other, _)| std::ptr::eq(*other, def)));
    own.map_or(Ok(0), |(_, bytes)| bytes(op, target))
}
