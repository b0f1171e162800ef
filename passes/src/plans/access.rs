//! Accesses to global memory: what is known of their addresses, and the plan that follows.
//!
//! This is the only derivation of address facts. Coalescing, the layout engine, the mark of last uses and lowering
//! all ask here, so that the vectors that are costed are the vectors that are emitted. A vector follows from three
//! facts together: its elements are consecutive, its address is a multiple of its size in bytes, and one mask value
//! holds for all of it.

use super::{layout, word_bits};
use crate::analysis::axis_info::{AxisInfo, AxisInfoAnalysis};
use crate::analysis::ranges;
use crate::buffer_plans;
use crate::ir_util::splat_constant;
use linear_layout::plan::{AccessPlan, AddressFacts, LdsLoadPlan, SECTOR, SharedAccessPlan, VectorPlan};
use linear_layout::target::{HalfSums, TargetDesc};
use linear_layout::{Dim, LinearLayout};
use mlir_host::ir::{FloatKind, Op, Type, Value};
use mlir_host::match_op;
use mlir_host::upstream::{AndIOp, CmpIOp, ConstantOp};
use smallvec::SmallVec;
use ttopt_dialect::tt::enums::RmwOp;
use ttopt_dialect::tt::ops::{
    AddPtrOp, AtomicCasOp, AtomicLoadOp, AtomicPollOp, AtomicRmwOp, AtomicStoreOp, BroadcastOp, ExpandDimsOp,
    FuncOp, LoadOp, SplatOp, StoreOp,
};
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::ops::{AsyncCopyGlobalToLocalOp, ConvertLayoutOp};
use ttopt_dialect::ttg::types::MemDescType;

/// What limits the vector of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The widest instruction.
    Instruction,
    /// Elements further on are not known to be next in memory.
    Contiguity,
    /// The alignment of addresses.
    Alignment,
    /// Elements further on may be masked differently.
    Mask,
    /// The elements that an atomic operation takes together.
    Atomic,
}

/// What the analysis says about an access to memory through a tensor of pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessFacts {
    /// Dimensions, fastest first.
    pub order: SmallVec<[usize; 4]>,
    /// Elements that are contiguous in memory in that order.
    pub contiguous: u64,
    /// Bytes that their first address is a multiple of.
    pub aligned: u64,
    /// Elements that most accesses find next to each other in that order, whether it can be relied on or not.
    pub usual: u64,
    /// Elements that share one mask value in that order.
    pub mask: u64,
    /// Bytes of one element.
    pub bytes: u64,
    /// Bytes between neighbours along the first dimension of `order`; `None` where they are not known.
    pub stride: Option<u64>,
    /// The same in bits, also where several neighbours in turn have one address, as of numbers that are packed in it; 0 where it is
    /// not known.
    pub stride_bits: u64,
    /// For each dimension of `order`, elements in aligned groups of which a load gives the same; empty for stores and
    /// atomic operations, and for loads that may not be left out.
    pub repeats: SmallVec<[u64; 4]>,
    /// For each dimension of the tensor, whether all elements along it are a known distance apart: their offsets are constants, which
    /// instructions hold.
    pub constant_offsets: SmallVec<[bool; 4]>,
    /// Other dimensions than the first of `order` along which neighbours are neighbours in memory no less, as in windows that overlap.
    pub also_first: SmallVec<[usize; 2]>,
}

/// The pointers of an access to global memory, and its mask; `None` for other operations.
fn pointers_and_mask(op: Op<'_>) -> Option<(Value<'_>, Option<Value<'_>>)> {
    if let Some(load) = LoadOp::cast(op) {
        return Some((load.ptr(), load.mask()));
    }
    if let Some(store) = StoreOp::cast(op) {
        return Some((store.ptr(), store.mask()));
    }
    if let Some(rmw) = AtomicRmwOp::cast(op) {
        return Some((rmw.ptr(), rmw.mask()));
    }
    if let Some(cas) = AtomicCasOp::cast(op) {
        return Some((cas.ptr(), None));
    }
    if let Some(load) = AtomicLoadOp::cast(op) {
        return Some((load.ptr(), load.mask()));
    }
    if let Some(store) = AtomicStoreOp::cast(op) {
        return Some((store.ptr(), store.mask()));
    }
    if let Some(poll) = AtomicPollOp::cast(op) {
        return Some((poll.ptr(), None));
    }
    let copy = AsyncCopyGlobalToLocalOp::cast(op)?;
    Some((copy.src(), copy.mask()))
}

/// Whether an access to global memory writes there, so that the L2 does it: a store, or an atomic operation that may.
pub fn writes(op: Op<'_>) -> bool {
    op.num_results() == 0 || is_atomic(op)
}

/// Whether an access to global memory reads and writes there at once.
pub fn is_atomic(op: Op<'_>) -> bool {
    AtomicRmwOp::cast(op).is_some() || AtomicCasOp::cast(op).is_some()
}

impl AccessFacts {
    /// The facts about an access to elements of `bytes` bytes through pointers
    /// of `shape`.
    pub fn new(shape: &[i64], bytes: u64, pointers: &AxisInfo, mask: Option<&AxisInfo>) -> AccessFacts {
        let order = order_of(shape, pointers);
        let (contiguous, aligned, joined) = contiguous(shape, bytes, pointers, &order);
        let mask = mask.map_or(u64::MAX, |mask| run_of_equal(shape, mask, &order));
        let fast = order.first().copied().filter(|fast| *fast < pointers.rank());
        let stride = fast.and_then(|fast| usual_stride(pointers, fast));
        let stride_bits = fast.and_then(|fast| stride_bits(shape, pointers, fast)).unwrap_or(0);
        let whole = |fast: usize| (shape[fast] as u64).min(1 << pointers.runs[fast].lasts.ilog2());
        let whole = fast.filter(|fast| pointers.usually_contiguous(*fast)).map_or(1, whole);
        let usual = contiguous.max(whole).max(joined);
        // Longer runs that are known come first.
        let run = |d: usize| pointers.contiguity(d);
        let alike = |d: &usize| *d < pointers.rank() && pointers.usually_contiguous(*d);
        let first = fast.filter(alike);
        let also = order
            .iter()
            .skip(1)
            .copied()
            .filter(|d| alike(d) && first.is_some_and(|first| run(first) == run(*d)));
        let also_first = also.collect();
        let repeats = SmallVec::new();
        let apart = |d: usize| pointers.runs.get(d).is_some_and(|run| run.len >= shape[d].max(1) as u64);
        let constant_offsets = (0..shape.len()).map(apart).collect();
        AccessFacts {
            order,
            contiguous,
            aligned,
            usual,
            mask,
            bytes,
            stride,
            stride_bits,
            repeats,
            constant_offsets,
            also_first,
        }
    }

    /// Orders that begin with another dimension along which neighbours are neighbours in memory no less.
    pub fn other_orders(&self) -> impl Iterator<Item = SmallVec<[usize; 4]>> {
        self.also_first.iter().map(|&first| {
            let others = self.order.iter().copied().filter(|d| *d != first);
            std::iter::once(first).chain(others).collect()
        })
    }

    /// What is known about the access `op` to memory through a tensor of
    /// pointers; `None` for other operations.
    pub fn of<'c>(op: Op<'c>, analysis: &AxisInfoAnalysis<'c>) -> Option<AccessFacts> {
        let (pointers, mask) = pointers_and_mask(op)?;
        let shape = pointers.ty().as_tensor()?.shape();
        let bits = word_bits(pointee(pointers.ty().element())?).ok()?;
        let mask = mask.map(|mask| analysis.info(mask));
        let mut facts = Self::new(&shape, u64::from(bits / 8), &analysis.info(pointers), mask.as_ref());
        if let Some(load) = LoadOp::cast(op).filter(|load| !load.is_volatile()) {
            let alike = |d: usize| load.op().operands().map(|value| equal_along(value, d, analysis)).min();
            facts.repeats = facts.order.iter().map(|d| alike(*d).unwrap_or(1)).collect();
        }
        Some(facts)
    }

    /// How many elements share each address that is read, on average; one where that is not known.
    pub fn repeated(&self) -> u64 {
        self.repeats.iter().map(|n| (*n).max(1)).product()
    }

    /// Elements along the first dimension of `order` of which a load gives the same, as numbers that are packed in one; 1 where they
    /// are others or more than that.
    pub fn packed(&self) -> u64 {
        self.repeats.first().copied().filter(|alike| (1..=MOST_PACKED).contains(alike)).unwrap_or(1)
    }

    /// Elements of the widest access, and what limits it.
    pub fn vector(&self, max_bits: u64) -> (u64, Limit) {
        let limits = [
            (max_bits / 8 / self.bytes, Limit::Instruction),
            (self.contiguous, Limit::Contiguity),
            (self.aligned / self.bytes, Limit::Alignment),
            (self.mask, Limit::Mask),
        ];
        let (elements, limit) =
            limits.into_iter().min_by_key(|entry| entry.0).unwrap_or((1, Limit::Contiguity));
        (elements.max(1), limit)
    }

    /// The same for a vector plan, of accesses of at most `most` elements.
    pub fn addresses(&self, most: u64) -> AddressFacts {
        AddressFacts {
            order: self.order.iter().map(|d| Dim::out(*d)).collect(),
            contiguous: self.contiguous.min((self.aligned / self.bytes).max(1)).min(most),
            neighbours: self.usual,
            stride_bits: self.stride_bits,
            mask_constancy: self.mask.min(1 << 62),
            repeats: if self.repeats.iter().all(|n| *n == 1) { Vec::new() } else { self.repeats.to_vec() },
            within: u64::MAX,
        }
    }
}

/// Conditions joined by "and" that are looked into, one inside the other.
const MASK_DEPTH: usize = 8;

/// For each dimension of what `op` accesses, coordinates from which on its mask is false; [`u64::MAX`] where it may be true for
/// all. `None` where nothing is known to be masked.
pub fn masked_coordinates<'c>(op: Op<'c>, analysis: &AxisInfoAnalysis<'c>) -> Option<SmallVec<[u64; 4]>> {
    let mask = pointers_and_mask(op)?.1?;
    Some(masked_from(mask, MASK_DEPTH, analysis)).filter(|from| from.iter().any(|from| *from != u64::MAX))
}

/// For each dimension of `mask`, coordinates from which on it is false whatever it is computed from: where something that is not
/// negative and rises along a dimension is compared with a constant that it reaches within the tensor, as with a size of one.
fn masked_from<'c>(mask: Value<'c>, depth: usize, analysis: &AxisInfoAnalysis<'c>) -> SmallVec<[u64; 4]> {
    let shape = |value: Value<'c>| value.ty().as_tensor().map(|ty| ty.shape()).unwrap_or_default();
    let sizes = shape(mask);
    let unknown = || SmallVec::from_elem(u64::MAX, sizes.len());
    let (Some(op), Some(depth)) = (mask.def_op(), depth.checked_sub(1)) else { return unknown() };
    let of = |operand: usize| masked_from(op.operand(operand), depth, analysis);
    match_op!(op, {
        AndIOp => of(0).into_iter().zip(of(1)).map(|(one, other)| one.min(other)).collect(),
        ConvertLayoutOp => of(0),
        BroadcastOp => {
            let (from, of) = (shape(op.operand(0)), of(0));
            let repeats = |d: usize| from.get(d) == Some(&1) && sizes[d] != 1;
            (0..sizes.len()).map(|d| if repeats(d) { u64::MAX } else { of[d] }).collect()
        },
        ExpandDimsOp(expand) => {
            let mut of = of(0);
            of.insert((expand.axis().max(0) as usize).min(of.len()), u64::MAX);
            of
        },
        CmpIOp(test) => {
            let bound = analysis.get(op.operand(1)).and_then(|info| info.constant);
            let bound = match (test.predicate(), bound) {
                // slt, ult
                (Some(2 | 6), Some(bound)) => bound,
                // sle, ule
                (Some(3 | 7), Some(bound)) => bound.saturating_add(1),
                _ => return unknown(),
            };
            let Some(info) = analysis.get(op.operand(0)).filter(|info| info.nonneg && info.rank() == sizes.len()) else {
                return unknown();
            };
            let reached = |d: usize| {
                let run = info.runs[d];
                let rises = run.step > 0 && run.len >= sizes[d].max(1) as u64;
                let from = bound.max(0).unsigned_abs().div_ceil(run.step.unsigned_abs().max(1));
                if rises && from < sizes[d] as u64 { from } else { u64::MAX }
            };
            (0..sizes.len()).map(reached).collect()
        },
        _ => unknown(),
    })
}

/// Elements of `value` along dimension `d` that are equal, a power of two of them in aligned groups.
fn equal_along<'c>(value: Value<'c>, d: usize, analysis: &AxisInfoAnalysis<'c>) -> u64 {
    if splat_constant(value).is_some() || SplatOp::defining(value).is_some() {
        return 1 << 62;
    }
    analysis.get(value).filter(|info| d < info.rank()).map_or(1, |info| info.constancy(d))
}

/// Numbers that are packed in one element of memory at most: four bits in a word.
const MOST_PACKED: u64 = 8;

/// Bytes between neighbours along `d` as far as that is known or usual; no fewer than what neighbours read of memory on average
/// where runs are short and each begins in another sector.
fn usual_stride(pointers: &AxisInfo, d: usize) -> Option<u64> {
    let run = pointers.runs.get(d)?;
    let step = run.usual?.unsigned_abs();
    Some(if step == 0 { 0 } else { step.max(SECTOR.div_ceil(run.lasts)) })
}

/// Dimensions by how fast they run: the most contiguous first, then those
/// with the smallest stride that is known or usual, then later ones. A few neighbours that have one address share an element that
/// several numbers are packed in, which others follow; larger groups, as of scales, are apart, and a thread loads them once.
fn order_of(shape: &[i64], pointers: &AxisInfo) -> SmallVec<[usize; 4]> {
    let mut order: SmallVec<[usize; 4]> = (0..shape.len()).rev().collect();
    let equal = |d: usize| usually_packed(shape, pointers, d);
    let stride = |d: usize| {
        let apart = usual_stride(pointers, d).filter(|stride| *stride != 0);
        apart.or_else(|| Some(SECTOR.div_ceil(equal(d)?))).unwrap_or(u64::MAX)
    };
    let contiguity = |d: usize| if d < pointers.rank() { pointers.contiguity(d) } else { 1 };
    let unit = pointers.unit.unsigned_abs();
    order.sort_by_key(|&d| (u64::MAX - contiguity(d), stride(d).max(unit)));
    order
}

/// How many neighbours along `d` usually have one address, where these are so few that they are packed in an element, which others follow.
fn usually_packed(shape: &[i64], pointers: &AxisInfo, d: usize) -> Option<u64> {
    let run = pointers.runs.get(d).filter(|run| run.usual == Some(0))?;
    let alike = if run.len > 1 { run.len } else { run.lasts };
    (alike <= MOST_PACKED && alike < shape[d].max(1) as u64).then_some(alike)
}

/// Bits between neighbours along `d`, as [`usual_stride`]; fewer than an element has where several are packed in it.
fn stride_bits(shape: &[i64], pointers: &AxisInfo, d: usize) -> Option<u64> {
    match usual_stride(pointers, d)? {
        0 => usually_packed(shape, pointers, d).map(|alike| 8 * pointers.unit.unsigned_abs() / alike),
        stride => Some(stride.saturating_mul(8)),
    }
}

/// Contiguous elements in `order`, and the bytes that their first address is a multiple of, whatever the coordinates
/// along dimensions that the run does not span; and contiguous elements wherever they begin.
fn contiguous(shape: &[i64], bytes: u64, pointers: &AxisInfo, order: &[usize]) -> (u64, u64, u64) {
    let Some((&fast, slow)) = order.split_first() else { return (1, pointers.corner, 1) };
    let (single, aligned) = (pointers.contiguity(fast), pointers.divisibility(fast));
    let mut length = single;
    let mut lens: SmallVec<[u64; 4]> = SmallVec::from_elem(1, shape.len());
    lens[fast] = single;
    for &d in slow {
        let run = pointers.runs[d];
        let whole =
            length == order.iter().take_while(|&&e| e != d).map(|&e| shape[e] as u64).product::<u64>();
        if shape[d] == 1 {
            continue;
        }
        if !whole || run.step != (length * bytes) as i64 {
            break;
        }
        lens[d] = run.len;
        length *= run.len;
    }
    // Corners of boxes that span dimensions, or first elements of rows.
    let corner = pointers.corner_at(&lens);
    if length.min(corner / bytes) > single.min(aligned / bytes) {
        (length, corner, length)
    } else {
        (single, aligned, length)
    }
}

/// Elements in `order` that are equal.
fn run_of_equal(shape: &[i64], info: &AxisInfo, order: &[usize]) -> u64 {
    let mut length = 1;
    for &d in order {
        if d >= info.rank() {
            return length;
        }
        length *= info.constancy(d);
        if info.constancy(d) < shape[d] as u64 {
            break;
        }
    }
    length
}

/// How `op` adds floats of 16 bits to global memory, if that is what it does.
pub fn half_sums(op: Op<'_>, target: &TargetDesc) -> Option<HalfSums> {
    let rmw = AtomicRmwOp::cast(op).filter(|rmw| rmw.atomic_rmw_op() == RmwOp::Fadd)?;
    half_sums_of(rmw.val().ty().element().float_kind()?, target)
}

/// How `target` adds such floats to global memory, if they have 16 bits.
pub fn half_sums_of(kind: FloatKind, target: &TargetDesc) -> Option<HalfSums> {
    match kind {
        FloatKind::F16 => Some(target.primitives.f16_sums),
        FloatKind::BF16 => Some(target.primitives.bf16_sums),
        _ => None,
    }
}

/// The most elements that one access of an operation takes together: sums of floats that nobody asks the old value of
/// go in vectors of 128 bits where the target has them, pairs of 16 bits where it has those; other atomic operations take
/// elements one by one; loads and stores know no limit of their own.
pub fn most_elems(op: Op<'_>, target: &TargetDesc) -> u64 {
    if LoadOp::cast(op).is_some() || StoreOp::cast(op).is_some() {
        return u64::MAX;
    }
    let Some(rmw) = AtomicRmwOp::cast(op).filter(|rmw| rmw.atomic_rmw_op() == RmwOp::Fadd) else {
        return 1;
    };
    let reduces = target.primitives.atomic_vectors && op.results().all(|result| result.is_unused());
    match half_sums(op, target) {
        Some(_) if reduces => 8,
        Some(sums) => sums.together(),
        None if reduces && rmw.val().ty().element().float_kind() == Some(FloatKind::F32) => 4,
        None => 1,
    }
}

/// The accesses of `op`, a load, a store or an atomic operation on global memory, in the layout that its pointers
/// have; one access of one element by one thread where it has a scalar pointer.
///
/// # Errors
/// For other operations, pointers without a layout, elements without an address, and where there is no plan.
pub fn access<'c>(
    op: Op<'c>,
    analysis: &AxisInfoAnalysis<'c>,
    target: &TargetDesc,
) -> Result<VectorPlan, String> {
    let Some((pointers, _)) = pointers_and_mask(op) else {
        return Err(format!("{} does not access global memory", op.name()));
    };
    if pointers.ty().as_tensor().is_none() {
        let pointee = pointee(pointers.ty()).ok_or_else(|| format!("{} is no pointer", pointers.ty()))?;
        return Ok(VectorPlan::scalar(word_bits(pointee)?));
    }
    let facts = AccessFacts::of(op, analysis).ok_or_else(|| format!("{} is no pointer", pointers.ty()))?;
    access_in(op, &*layout(pointers.ty())?, &facts, target)
}

/// The accesses of `op` if its pointers, of which `facts` are known, had this layout.
///
/// # Errors
/// Where there is no plan.
pub fn access_in(
    op: Op<'_>,
    layout: &LinearLayout,
    facts: &AccessFacts,
    target: &TargetDesc,
) -> Result<VectorPlan, String> {
    let addresses = facts.addresses(most_elems(op, target));
    VectorPlan::for_addresses(layout, 8 * facts.bytes as u32, &addresses, target)
        .map_err(|err| err.to_string())
}

/// How `copy` writes what its pointers name to its buffer.
///
/// # Errors
/// When the target cannot copy so: no access is as wide as its narrowest copy, for example.
pub fn async_copy<'c>(
    copy: AsyncCopyGlobalToLocalOp<'c>,
    analysis: &AxisInfoAnalysis<'c>,
    target: &TargetDesc,
) -> Result<SharedAccessPlan, String> {
    async_copy_to(copy.op(), destination(copy)?, analysis, target)
}

/// As [`async_copy`], of what `op`, a load or a copy, reads through its pointers, to `buffer`.
///
/// # Errors
/// The same.
pub fn async_copy_to<'c>(
    op: Op<'c>,
    buffer: MemDescType<'c>,
    analysis: &AxisInfoAnalysis<'c>,
    target: &TargetDesc,
) -> Result<SharedAccessPlan, String> {
    let (pointers, addresses) = addresses_of(op, analysis)?;
    buffer_plans::async_copy(pointers, buffer, &addresses, target)
}

/// As [`async_copy`], on targets whose loads write the lanes of a warp one after the other.
///
/// # Errors
/// When the target cannot copy so.
pub fn lds_load<'c>(
    copy: AsyncCopyGlobalToLocalOp<'c>,
    analysis: &AxisInfoAnalysis<'c>,
    target: &TargetDesc,
) -> Result<LdsLoadPlan, String> {
    let (pointers, addresses) = addresses_of(copy.op(), analysis)?;
    buffer_plans::lds_load(pointers, destination(copy)?, &addresses, target)
}

/// The accesses to shared memory of `copy`, whichever of the two its target has.
///
/// # Errors
/// When the target cannot copy so.
pub fn copy_accesses<'c>(
    copy: AsyncCopyGlobalToLocalOp<'c>,
    analysis: &AxisInfoAnalysis<'c>,
    target: &TargetDesc,
) -> Result<AccessPlan, String> {
    if target.primitives.copies_anywhere() {
        async_copy(copy, analysis, target).map(|plan| plan.access)
    } else {
        lds_load(copy, analysis, target).map(|plan| plan.access)
    }
}

/// The type of the pointers of `op`, its first operand, and what is known of them.
fn addresses_of<'c>(op: Op<'c>, analysis: &AxisInfoAnalysis<'c>) -> Result<(Type<'c>, AddressFacts), String> {
    let pointers = op.operand(0).ty();
    let facts =
        AccessFacts::of(op, analysis).ok_or_else(|| format!("{pointers} is no tensor of pointers"))?;
    let bytes =
        |(least, most): ranges::Range| most.abs_diff(least).saturating_add(1).saturating_mul(facts.bytes);
    let within = span(op.operand(0), ranges::DEPTH).map_or(u64::MAX, bytes);
    Ok((pointers, AddressFacts { within, ..facts.addresses(u64::MAX) }))
}

/// Elements from an argument of the function to what the pointers of a tensor point to: the least and the greatest number, where these are
/// known from `depth` operations in a row. All programs and iterations find the same there.
fn span(pointers: Value<'_>, depth: usize) -> Option<ranges::Range> {
    let (op, depth) = (pointers.def_op()?, depth.checked_sub(1)?);
    match_op!(op, {
        SplatOp => op.operand(0).arg_block()?.parent().filter(|owner| FuncOp::cast(*owner).is_some()).map(|_| (0, 0)),
        BroadcastOp | ExpandDimsOp | ConvertLayoutOp => span(op.operand(0), depth),
        AddPtrOp => {
            let (base, offset) = (span(op.operand(0), depth)?, ranges::of_value(op.operand(1))?);
            Some((base.0.checked_add(offset.0)?, base.1.checked_add(offset.1)?))
        },
        _ => None,
    })
}

/// The type of the buffer that `copy` writes.
fn destination(copy: AsyncCopyGlobalToLocalOp<'_>) -> Result<MemDescType<'_>, String> {
    let buffer = copy.result().ty();
    MemDescType::cast(buffer).ok_or_else(|| format!("{buffer} is no buffer"))
}

/// Whether every warp executes the loads of `copy` whatever its mask says: nobody branches around them.
pub fn is_always_issued(copy: AsyncCopyGlobalToLocalOp<'_>, accesses: &AccessPlan) -> bool {
    accesses.inactive.is_empty() && (copy.mask().is_none() || masks_by_zeros(copy))
}

/// Whether masked lanes of `copy` load zeros: from beyond a buffer, or from where zeros are.
pub fn masks_by_zeros(copy: AsyncCopyGlobalToLocalOp<'_>) -> bool {
    copy.other().is_none_or(is_zero)
}

/// Whether all elements of a constant are zero, all of their bits.
pub fn is_zero(value: Value<'_>) -> bool {
    let attr = ConstantOp::defining(value).and_then(ConstantOp::value);
    let number =
        attr.and_then(|attr| attr.as_elements().map_or(Some(attr), |elements| elements.splat_value()));
    number.is_some_and(|number| {
        number.as_int() == Some(0) || number.as_float().is_some_and(|number| number.to_bits() == 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::axis_info::Run;

    /// Pointers to elements of `bytes` bytes, of which those whose coordinates begin all runs are multiples of `corner`.
    fn pointers(runs: &[Run], corner: u64, bytes: i64) -> AxisInfo {
        AxisInfo { runs: SmallVec::from_slice(runs), corner, unit: bytes, ..AxisInfo::unknown(runs.len()) }
    }

    /// Elements in the widest access to a tensor of `shape`, without a mask.
    fn widest(shape: &[i64], runs: &[Run], corner: u64, bytes: i64) -> u64 {
        let facts = AccessFacts::new(shape, bytes as u64, &pointers(runs, corner, bytes), None);
        facts.addresses(u64::MAX).contiguous
    }

    #[test]
    fn dense_rows_go_on_in_the_next_one() {
        // 512 rows of 2 bytes each: all of it, aligned to 16 bytes.
        assert_eq!(widest(&[512, 2], &[Run::new(2, 512, 16), Run::new(1, 2, 2)], 16, 1), 16);
    }

    #[test]
    fn dense_rows_are_neighbours_wherever_they_begin() {
        // Pairs of floats that begin at any pair: accesses take a pair, and lanes next to each other pairs next to each other.
        let runs = [Run::new(4096, 32, 8), Run::new(8, 32, 8), Run::new(4, 2, 8)];
        let facts = AccessFacts::new(&[32, 32, 2], 4, &pointers(&runs, 8, 4), None);
        assert_eq!((facts.vector(128).0, facts.usual), (2, 64));
        let apart = [Run::new(4096, 32, 8), Run::new(16, 32, 8), Run::new(4, 2, 8)];
        assert_eq!(AccessFacts::new(&[32, 32, 2], 4, &pointers(&apart, 8, 4), None).usual, 2);
    }

    #[test]
    fn numbers_packed_in_bytes_run_fastest() {
        // Bytes of numbers of three bits, `3 i >> 3`: neighbours mostly have the same one, two at a time. Rows are far apart.
        let packed = Run { usual: Some(0), lasts: 2, ..Run::new(0, 1, 1) };
        let rows = Run { usual: Some(4096), ..Run::new(0, 1, 1) };
        let facts = AccessFacts::new(&[128, 64], 1, &pointers(&[rows, packed], 1, 1), None);
        assert_eq!((facts.order.as_slice(), facts.stride_bits), ([1, 0].as_slice(), 4));
    }

    #[test]
    fn rows_apart_end_where_they_end() {
        assert_eq!(widest(&[512, 2], &[Run::new(64, 512, 16), Run::new(1, 2, 2)], 16, 1), 2);
    }

    #[test]
    fn alignment_limits_a_run() {
        assert_eq!(widest(&[512], &[Run::new(2, 512, 2)], 2, 2), 1);
        assert_eq!(widest(&[512], &[Run::new(2, 512, 8)], 8, 2), 4);
    }

    #[test]
    fn rows_that_share_elements_begin_anywhere() {
        // Both dimensions are runs of neighbours, and every element begins some row.
        assert_eq!(widest(&[16, 64], &[Run::new(2, 16, 2), Run::new(2, 64, 2)], 16, 2), 1);
    }

    #[test]
    fn the_pitch_of_rows_limits_their_alignment() {
        for (pitch, elements) in [(65, 1), (66, 2), (68, 4), (72, 8), (128, 8)] {
            let rows = Run::new(2 * pitch, 16, 2);
            assert_eq!(widest(&[16, 64], &[rows, Run::new(2, 64, 2)], 16, 2), elements, "rows {pitch} apart");
        }
    }

    #[test]
    fn packed_numbers_come_before_what_nothing_is_known_of() {
        // Rows of bytes, an unknown distance apart, of which each has two neighbours' halves; and scales of 32 neighbours.
        let first = |equal| {
            let runs = [Run::new(0, equal, 1), Run::new(0, 1, 1)];
            AccessFacts::new(&[64, 64], 1, &pointers(&runs, 1, 1), None).order[0]
        };
        assert_eq!((first(2), first(8), first(16), first(64), first(1)), (0, 0, 1, 1, 1));
        // Floats a known distance of eight bytes apart.
        let runs = [Run::new(0, 2, 4), Run::new(8, 64, 4)];
        assert_eq!(AccessFacts::new(&[64, 64], 4, &pointers(&runs, 4, 4), None).order[0], 1);
    }

    #[test]
    fn one_mask_value_holds_for_a_vector() {
        let mask = AxisInfo { runs: SmallVec::from_slice(&[Run::new(0, 4, 1)]), ..AxisInfo::unknown(1) };
        let facts = AccessFacts::new(&[512], 2, &pointers(&[Run::new(2, 512, 16)], 16, 2), Some(&mask));
        assert_eq!(facts.vector(128), (4, Limit::Mask));
    }
}
