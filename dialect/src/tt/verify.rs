//! Verifiers of operations.

use crate::dot::sizes;
use crate::tt::attrs::CachePolicy;
use crate::tt::enums::{CacheModifier, MemSemantic, ScaleDotElemType};
use crate::tt::infer::is_permutation;
use crate::tt::ops::*;
use crate::tt::types::{TensorDescType, is_pointer, scalar_bits};
use crate::{encoding, ttng};
use linear_layout::{Dim, LinearLayout, standard_out_dims};
use mlir_host::def::{OpDef, VerifyResult};
use mlir_host::ir::{Attr, Block, Op, Region, Symbols, TensorType, Type, Value, Walk};

pub use crate::tt::traits::*;

fn tensor<'c>(value: Value<'c>) -> Result<TensorType<'c>, String> {
    value.ty().as_tensor().ok_or_else(|| format!("expects a ranked tensor, but got '{}'", value.ty()))
}

/// Both or neither of two tensors have an encoding.
fn both_or_neither(a: TensorType<'_>, b: TensorType<'_>) -> VerifyResult {
    if a.encoding().is_some() == b.encoding().is_some() {
        return Ok(());
    }
    Err(format!("requires encodings on all of its tensors or on none, but got '{}' and '{}'", a.ty(), b.ty()))
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// Source and result of a bitcast have the same width; pointers stay pointers.
pub fn bitcast(op: Op<'_>) -> VerifyResult {
    let cast = BitcastOp::of(op);
    let (from, to) = (cast.src().ty().element(), cast.result().ty().element());
    if is_pointer(from) != is_pointer(to) {
        return Err(format!(
            "cannot cast between '{from}' and '{to}': one is a pointer and the other is not"
        ));
    }
    match (scalar_bits(from), scalar_bits(to)) {
        (Some(a), Some(b)) if a != b => {
            Err(format!("cannot cast '{from}', which has {a} bits, to '{to}', which has {b} bits"))
        }
        _ => Ok(()),
    }
}

/// A cast to a narrower format says how it rounds.
pub fn fp_to_fp(op: Op<'_>) -> VerifyResult {
    let cast = FpToFpOp::of(op);
    let (from, to) = (cast.src().ty().element(), cast.result().ty().element());
    if cast.rounding().is_none() && from.bits() > to.bits() {
        return Err(format!("requires a rounding mode to cast '{from}' to the narrower '{to}'"));
    }
    Ok(())
}

/// Elements come in whole packs.
pub fn elementwise_inline_asm(op: Op<'_>) -> VerifyResult {
    let asm = ElementwiseInlineAsmOp::of(op);
    let pack = asm.packed_element();
    if pack < 1 {
        return Err(format!("packed_element must be positive, but is {pack}"));
    }
    if asm.result().is_empty() {
        return Err("expects at least one result".to_owned());
    }
    match op.operands().chain(op.results()).find_map(|value| value.ty().as_tensor()) {
        Some(tensor) if tensor.num_elements() % pack != 0 => Err(format!(
            "the number of elements, {}, must be a multiple of packed_element, {pack}",
            tensor.num_elements()
        )),
        _ => Ok(()),
    }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The kinds of accesses that cache modifiers differ for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Load,
    /// A store.
    Store,
}

/// A cache policy is one that is known, and its modifier fits the access.
pub fn cache_policy(policy: Option<Attr<'_>>, access: Access) -> VerifyResult {
    use CacheModifier::*;
    let Some(policy) = policy else { return Ok(()) };
    let (what, allowed): (&str, &[CacheModifier]) = match access {
        Access::Load => ("loads", &[None, Ca, Cg, Cs, Cv]),
        Access::Store => ("stores", &[None, Wb, Cg, Cs, Wt]),
    };
    match cache_modifier(policy) {
        Option::None => Err(format!("unsupported cache policy attribute {policy}")),
        Some(modifier) if !allowed.contains(&modifier) => Err(format!(
            "invalid cache policy: cache modifier '{}' is not supported for {what}, which take one of: {}",
            modifier.keyword(),
            allowed.iter().map(|modifier| modifier.keyword()).collect::<Vec<_>>().join(", ")
        )),
        Some(_) => Ok(()),
    }
}

/// The cache modifier of a policy of any dialect.
fn cache_modifier(policy: Attr<'_>) -> Option<CacheModifier> {
    let common = CachePolicy::decode(policy).map(|policy| policy.modifier);
    common.or_else(|| ttng::attrs::CachePolicy::decode(policy).map(|policy| policy.modifier))
}

/// A load has a mask where it has another value, and a fitting cache policy.
pub fn load(op: Op<'_>) -> VerifyResult {
    let load = LoadOp::of(op);
    if load.other().is_some() && load.mask().is_none() {
        return Err("expects a mask together with the value where it is false".to_owned());
    }
    cache_policy(load.cache_policy(), Access::Load)
}

/// A store has a fitting cache policy.
pub fn store(op: Op<'_>) -> VerifyResult {
    cache_policy(StoreOp::of(op).cache_policy(), Access::Store)
}

fn semantics(given: MemSemantic, allowed: [MemSemantic; 2]) -> VerifyResult {
    if allowed.contains(&given) {
        return Ok(());
    }
    Err(format!(
        "supports only {} and {} semantics, but got {}",
        allowed[0].keyword(),
        allowed[1].keyword(),
        given.keyword()
    ))
}

/// Atomic accesses are to whole bytes.
fn whole_bytes(value: Value<'_>) -> VerifyResult {
    let element = value.ty().element();
    match scalar_bits(element) {
        Some(bits) if bits < 8 => {
            Err(format!("does not support elements of less than a byte, but got '{element}'"))
        }
        _ => Ok(()),
    }
}

/// An atomic load acquires, if anything.
pub fn atomic_load(op: Op<'_>) -> VerifyResult {
    let load = AtomicLoadOp::of(op);
    semantics(load.sem(), [MemSemantic::Relaxed, MemSemantic::Acquire])?;
    whole_bytes(load.result())
}

/// An atomic store releases, if anything.
pub fn atomic_store(op: Op<'_>) -> VerifyResult {
    let store = AtomicStoreOp::of(op);
    semantics(store.sem(), [MemSemantic::Relaxed, MemSemantic::Release])?;
    whole_bytes(store.value())
}

/// A poll acquires, if anything, and compares integers that can be loaded atomically.
pub fn atomic_poll(op: Op<'_>) -> VerifyResult {
    let poll = AtomicPollOp::of(op);
    semantics(poll.sem(), [MemSemantic::Relaxed, MemSemantic::Acquire])?;
    let element = poll.expected().ty().element();
    match element.int_bits() {
        Some(16 | 32 | 64) => Ok(()),
        _ => Err(format!("supports only integers of 16, 32 or 64 bits, but got '{element}'")),
    }
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// The source of a splat is a scalar.
pub fn splat(op: Op<'_>) -> VerifyResult {
    let src = SplatOp::of(op).src().ty();
    if src.as_tensor().is_some() { Err(format!("expects a scalar operand, but got '{src}'")) } else { Ok(()) }
}

/// The source has one element.
pub fn unsplat(op: Op<'_>) -> VerifyResult {
    let src = tensor(UnsplatOp::of(op).src())?;
    match src.num_elements() {
        1 => Ok(()),
        n => Err(format!("source must have exactly one element, but '{}' has {n}", src.ty())),
    }
}

/// As many elements before and after, at the same places unless they may be reordered.
pub fn reshape(op: Op<'_>) -> VerifyResult {
    let reshape = ReshapeOp::of(op);
    let (src, result) = (tensor(reshape.src())?, tensor(reshape.result())?);
    let (from, to) = (src.num_elements(), result.num_elements());
    if from != to {
        return Err(format!(
            "source and result must have the same number of elements, but have {from} and {to}"
        ));
    }
    both_or_neither(src, result)?;
    let (Some(a), Some(b)) = (src.encoding(), result.encoding()) else { return Ok(()) };
    let before = encoding::layout::to_linear_layout(a, &src.shape())?;
    let after = encoding::layout::to_linear_layout(b, &result.shape())?;
    if reshape.allow_reorder().is_some() && encoding::layout::reorders_in_place(&before, &after) {
        return Ok(());
    }
    let reshaped = reshaped(&before, &result.shape()).map_err(|err| err.to_string())?;
    if reshaped == *after {
        return Ok(());
    }
    Err(format!("would move elements: the source's layout, reshaped, is not the result's layout {b}"))
}

/// The layout after a reshape in which the last dimension stays the fastest.
fn reshaped(layout: &LinearLayout, shape: &[i64]) -> linear_layout::Result<LinearLayout> {
    let reversed: Vec<Dim> = layout.out_dims().rev().collect();
    let sizes: Vec<(Dim, u64)> =
        shape.iter().enumerate().rev().map(|(i, size)| (Dim::out(i), *size as u64)).collect();
    let order: Vec<Dim> = standard_out_dims(shape.len()).collect();
    layout.transpose_outs(&reversed)?.reshape_outs(&sizes)?.transpose_outs(&order)
}

/// Only dimensions of size one grow, and no element moves to another thread.
pub fn broadcast(op: Op<'_>) -> VerifyResult {
    let broadcast = BroadcastOp::of(op);
    let (src, result) = (tensor(broadcast.src())?, tensor(broadcast.result())?);
    let (from, to) = (src.shape(), result.shape());
    if from.len() != to.len() {
        return Err(format!(
            "source and result must have the same rank, but have {} and {}",
            from.len(),
            to.len()
        ));
    }
    for (dim, (from, to)) in from.iter().zip(&to).enumerate() {
        if from != to && *from != 1 {
            return Err(format!("cannot change dimension {dim} from {from} to {to}: only a size of 1 grows"));
        }
    }
    match (src.encoding(), result.encoding()) {
        (Some(a), Some(b)) if !same_up_to_broadcast(a, b, &from, &to)? => Err(format!(
            "requires the same layout of source and result up to repeated registers, but got '{}' and '{}'",
            src.ty(),
            result.ty()
        )),
        _ => Ok(()),
    }
}

/// Whether the layout `b` of shape `to`, seen on shape `from`, is `a`, apart
/// from registers that hold replicas.
fn same_up_to_broadcast(a: Attr<'_>, b: Attr<'_>, from: &[i64], to: &[i64]) -> Result<bool, String> {
    let before = encoding::layout::to_linear_layout(a, from)?;
    let after = encoding::layout::to_linear_layout(b, to)?;
    let coordinates = |layout: &LinearLayout, dim: Dim, project: bool| -> Vec<Vec<u64>> {
        (0..layout.in_bits(dim))
            .filter_map(|bit| layout.basis_coords(dim, bit))
            .map(|basis| {
                let kept = basis.iter().zip(from.iter().zip(to));
                kept.map(|(c, (from, to))| if project && from != to { 0 } else { *c }).collect()
            })
            .collect()
    };
    Ok([Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK].into_iter().all(|dim| {
        let (mut a, mut b) = (coordinates(&before, dim, false), coordinates(&after, dim, true));
        if dim == Dim::REGISTER {
            a.retain(|basis| basis.iter().any(|c| *c != 0));
            b.retain(|basis| basis.iter().any(|c| *c != 0));
        }
        a == b
    }))
}

/// The result has the elements of both operands.
pub fn cat(op: Op<'_>) -> VerifyResult {
    let cat = CatOp::of(op);
    let (lhs, rhs, result) = (tensor(cat.lhs())?, tensor(cat.rhs())?, tensor(cat.result())?);
    let (wanted, got) = (lhs.num_elements() + rhs.num_elements(), result.num_elements());
    if wanted != got {
        return Err(format!("result must have as many elements as both operands, {wanted}, but has {got}"));
    }
    both_or_neither(lhs, result)
}

/// `order` is a permutation of the dimensions. The result type is inferred.
pub fn trans(op: Op<'_>) -> VerifyResult {
    let trans = TransOp::of(op);
    let rank = tensor(trans.src())?.rank();
    let order = trans.order();
    if is_permutation(&order, rank) {
        return Ok(());
    }
    Err(format!("order {order:?} must be a permutation of the {rank} dimension(s) of the source"))
}

/// The result is a vector of `i32` with as many elements as the range.
pub fn make_range(op: Op<'_>) -> VerifyResult {
    let range = MakeRangeOp::of(op);
    let (start, end) = (range.start(), range.end());
    let result = tensor(range.result())?;
    if start >= end {
        return Err(format!("start, {start}, must be less than end, {end}"));
    }
    if result.rank() != 1 {
        return Err(format!("result must have one dimension, but has {}: '{}'", result.rank(), result.ty()));
    }
    if result.dim(0) != end - start {
        return Err(format!(
            "result must have as many elements as the range [{start}, {end}), {}, but has {}",
            end - start,
            result.dim(0)
        ));
    }
    if !result.element().is_int(32) {
        return Err(format!("result must have i32 elements, but has '{}'", result.element()));
    }
    Ok(())
}

/// The indices have the source's shape except along the axis. The result type is inferred.
pub fn gather(op: Op<'_>) -> VerifyResult {
    let gather = GatherOp::of(op);
    let (src, indices) = (tensor(gather.src())?, tensor(gather.indices())?);
    if src.rank() != indices.rank() {
        return Err(format!(
            "source and indices must have the same rank, but have {} and {}",
            src.rank(),
            indices.rank()
        ));
    }
    let axis = gather.axis();
    let axis = usize::try_from(axis)
        .ok()
        .filter(|axis| *axis < src.rank())
        .ok_or_else(|| format!("axis {axis} is out of range: the source has {} dimension(s)", src.rank()))?;
    for dim in (0..src.rank()).filter(|dim| *dim != axis) {
        if src.dim(dim) != indices.dim(dim) {
            return Err(format!(
                "dimension {dim} of source and indices must have the same size, but have {} and {}",
                src.dim(dim),
                indices.dim(dim)
            ));
        }
    }
    Ok(())
}

//===----------------------------------------------------------------------===//
// Dot
//===----------------------------------------------------------------------===//

/// What `#ttg.dot_op` says: operand number, layout of the result, width along K.
fn dot_operand(attr: Attr<'_>) -> Option<(i64, Attr<'_>, i64)> {
    let [index, parent, k_width] = attr.params() else { return None };
    attr.is(&encoding::attrs::DOT_OPERAND)
        .then(|| (index.as_int().unwrap_or(-1), *parent, k_width.as_int().unwrap_or(0)))
}

/// The operands' encodings are those of operands of a dot with the accumulator's encoding.
fn dot_encodings(a: TensorType<'_>, b: TensorType<'_>, c: TensorType<'_>) -> VerifyResult {
    let (Some(a_encoding), Some(b_encoding)) = (a.encoding(), b.encoding()) else {
        return both_or_neither(a, b);
    };
    let Some(c_encoding) = c.encoding() else {
        return Err(format!("requires an encoding of the accumulator, but got '{}'", c.ty()));
    };
    for (wanted, encoding) in [(0, a_encoding), (1, b_encoding)] {
        let name = ["first", "second"][wanted as usize];
        let Some((index, parent, _)) = dot_operand(encoding) else {
            return Err(format!("requires a #ttg.dot_op encoding of the {name} operand, but got {encoding}"));
        };
        if index != wanted {
            return Err(format!("requires opIdx = {wanted} of the {name} operand, but got {encoding}"));
        }
        if parent != c_encoding {
            return Err(format!(
                "requires the accumulator's encoding, {c_encoding}, as the parent of the {name} operand's, but got {parent}"
            ));
        }
    }
    let widths = [a_encoding, b_encoding].map(|encoding| dot_operand(encoding).map(|parts| parts.2));
    if let [Some(a), Some(b)] = widths
        && a != b
    {
        return Err(format!("requires the same kWidth of both operands, but got {a} and {b}"));
    }
    Ok(())
}

/// Shapes, element widths and encodings of a dot.
pub fn dot(op: Op<'_>) -> VerifyResult {
    let dot = DotOp::of(op);
    let (a, b, c) = (tensor(dot.a())?, tensor(dot.b())?, tensor(dot.c())?);
    sizes([a, b, c].map(TensorType::sizes), [[1, 1]; 2])?;
    let bits = [a.element().bits(), b.element().bits()];
    if bits[0] != bits[1] {
        return Err(format!(
            "requires elements of the same width of both operands, but got '{}' and '{}'",
            a.element(),
            b.element()
        ));
    }
    dot_encodings(a, b, c)
}

/// Shapes and scale factors of a scaled dot.
pub fn dot_scaled(op: Op<'_>) -> VerifyResult {
    let dot = DotScaledOp::of(op);
    let (a, b, c) = (tensor(dot.a())?, tensor(dot.b())?, tensor(dot.c())?);
    let packed = |format: ScaleDotElemType| if format == ScaleDotElemType::E2M1 { 2 } else { 1 };
    let (a_pack, b_pack) = (packed(dot.a_elem_type()), packed(dot.b_elem_type()));
    let along_k = |k_pack: bool, pack: i64| if k_pack { [1, pack] } else { [pack, 1] };
    let [m_pack, ka_pack] = along_k(dot.lhs_k_pack(), a_pack);
    let [n_pack, kb_pack] = along_k(dot.rhs_k_pack(), b_pack);
    let sizes = sizes([a, b, c].map(TensorType::sizes), [[m_pack, ka_pack], [kb_pack, n_pack]])?;
    let lhs = scale_factor("first", dot.a_scale(), a, sizes.k, ("M", sizes.m))?;
    let rhs = scale_factor("second", dot.b_scale(), b, sizes.k, ("N", sizes.n))?;
    match (lhs, rhs) {
        (Some(lhs), Some(rhs)) if lhs != rhs => {
            Err(format!("requires as many elements for each scale of both operands, but got {lhs} and {rhs}"))
        }
        _ => both_or_neither(a, b),
    }
}

/// Elements along K for each scale of an operand.
fn scale_factor(
    name: &str,
    scale: Option<Value<'_>>,
    operand: TensorType<'_>,
    k: i64,
    (letter, rows): (&str, i64),
) -> Result<Option<i64>, String> {
    let Some(scale) = scale else { return Ok(None) };
    let scale = tensor(scale)?;
    if scale.rank() != operand.rank() {
        return Err(format!(
            "scales of the {name} operand must have its rank, {}, but have {}",
            operand.rank(),
            scale.rank()
        ));
    }
    let (row, col) = (scale.rank() - 2, scale.rank() - 1);
    if scale.dim(row) != rows {
        return Err(format!(
            "scales of the {name} operand must have as many rows as {letter}, {rows}, but have {}",
            scale.dim(row)
        ));
    }
    let columns = scale.dim(col);
    match k.checked_div(columns) {
        Some(factor @ (16 | 32)) if factor * columns == k => Ok(Some(factor)),
        _ => Err(format!(
            "each scale of the {name} operand must be for 16 or 32 elements, but there are {columns} for {k}"
        )),
    }
}

/// The number of elements along K for each scale: 16 or 32; 32 where there are no scales.
pub fn dot_scale_factor(dot: DotScaledOp<'_>) -> i64 {
    let columns = |scale: Option<Value<'_>>| {
        let ty = scale?.ty().as_tensor()?;
        ty.shape().last().copied()
    };
    let k = |operand: Value<'_>, dim_from_end: usize, format, k_pack: bool| {
        let ty = operand.ty().as_tensor()?;
        let shape = ty.shape();
        let size = *shape.get(shape.len().checked_sub(dim_from_end)?)?;
        let two = format == ScaleDotElemType::E2M1 && k_pack;
        Some(if two { size * 2 } else { size })
    };
    let lhs = || k(dot.a(), 1, dot.a_elem_type(), dot.lhs_k_pack())?.checked_div(columns(dot.a_scale())?);
    let rhs = || k(dot.b(), 2, dot.b_elem_type(), dot.rhs_k_pack())?.checked_div(columns(dot.b_scale())?);
    lhs().or_else(rhs).unwrap_or(32)
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// At least one operand. The result types are inferred.
pub fn reduce(op: Op<'_>) -> VerifyResult {
    if op.num_operands() == 0 { Err("expects at least one operand".to_owned()) } else { Ok(()) }
}

/// As [`reduce`]; the axis exists.
pub fn scan(op: Op<'_>) -> VerifyResult {
    reduce(op)?;
    let axis = ScanOp::of(op).axis();
    let rank = tensor(op.operand(0))?.rank();
    if axis < 0 || axis >= rank as i64 {
        return Err(format!("axis {axis} is out of range: the operand has {rank} dimension(s)"));
    }
    Ok(())
}

/// Types of block arguments or returned values are the wanted ones.
fn expect_types<'c>(what: &str, got: &[Type<'c>], wanted: &[Type<'c>]) -> VerifyResult {
    if got.len() != wanted.len() {
        return Err(format!("{what}: expects {} value(s), but there are {}", wanted.len(), got.len()));
    }
    match got.iter().zip(wanted).position(|(got, wanted)| got != wanted) {
        Some(i) => Err(format!("{what}: expects value #{i} to be '{}', but it is '{}'", wanted[i], got[i])),
        None => Ok(()),
    }
}

fn arg_types<'c>(block: Block<'c>) -> Vec<Type<'c>> {
    block.args().map(Value::ty).collect()
}

/// The region combines two elements of each operand to one.
fn combines(op: Op<'_>, region: Region<'_>, terminator: &'static OpDef) -> VerifyResult {
    let elements: Vec<Type<'_>> = op.operands().map(|value| value.ty().element()).collect();
    let block = region.first_block().ok_or("expects a region with one block")?;
    let both = [elements.as_slice(), elements.as_slice()].concat();
    expect_types("arguments of the combining region", &arg_types(block), &both)?;
    match block.terminator() {
        Some(last) if last.is(terminator) => {
            let returned: Vec<Type<'_>> = last.operands().map(Value::ty).collect();
            expect_types("results of the combining region", &returned, &elements)
        }
        _ => Err(format!("expects the combining region to end with '{}'", terminator.name)),
    }
}

/// The region combines elements.
pub fn reduce_region(op: Op<'_>) -> VerifyResult {
    combines(op, ReduceOp::of(op).combine_op(), ReduceReturnOp::DEF)
}

/// The region combines elements.
pub fn scan_region(op: Op<'_>) -> VerifyResult {
    combines(op, ScanOp::of(op).combine_op(), ScanReturnOp::DEF)
}

/// At least one operand and result; packs of a power of two.
pub fn map_elementwise(op: Op<'_>) -> VerifyResult {
    if op.num_operands() == 0 || op.num_results() == 0 {
        return Err("expects at least one operand and one result".to_owned());
    }
    let pack = MapElementwiseOp::of(op).pack();
    if pack < 1 || pack.count_ones() != 1 {
        return Err(format!("pack must be a power of two, but is {pack}"));
    }
    let elements = tensor(op.operand(0))?.num_elements();
    if elements % pack != 0 {
        return Err(format!("the number of elements, {elements}, must be a multiple of pack, {pack}"));
    }
    Ok(())
}

/// The region takes `pack` elements of each operand, returns as many of each
/// result, and does not store.
pub fn map_elementwise_region(op: Op<'_>) -> VerifyResult {
    let map = MapElementwiseOp::of(op);
    let pack = map.pack() as usize;
    fn packed<'c>(values: impl Iterator<Item = Value<'c>>, pack: usize) -> Vec<Type<'c>> {
        values.flat_map(|value| std::iter::repeat_n(value.ty().element(), pack)).collect()
    }
    let region = map.scalar_op();
    let entry = region.first_block().ok_or("expects a region with at least one block")?;
    expect_types("arguments of the region", &arg_types(entry), &packed(op.operands(), pack))?;
    let wanted = packed(op.results(), pack);
    for block in region.blocks() {
        if let Some(last) = block.terminator().and_then(MapElementwiseReturnOp::cast) {
            let returned: Vec<Type<'_>> = last.result().map(Value::ty).collect();
            expect_types("results of the region", &returned, &wanted)?;
        }
    }
    let mut writer = None;
    op.walk(&mut |inner| {
        if inner != op && inner.writes_memory() {
            writer = Some(inner);
            return Walk::Stop;
        }
        Walk::Advance
    });
    if let Some(writer) = writer {
        let name = writer.name();
        return Err(format!(
            "does not support '{name}' in its region: threads that share an element would repeat it"
        ));
    }
    Ok(())
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The callee is a function of the module and has the call's types.
pub fn call(op: Op<'_>, symbols: Symbols<'_>) -> VerifyResult {
    let call = CallOp::of(op);
    let callee = call.callee();
    let name = callee.as_symbol().unwrap_or_default();
    let Some(function) = op.lookup_symbol(callee, Some(symbols)).and_then(FuncOp::cast) else {
        return Err(format!("'{name}' does not name a function"));
    };
    // The function itself is verified elsewhere.
    let Some(ty) = function.unverified().function_type() else { return Ok(()) };
    let check = |what: &str, got: Vec<Type<'_>>, wanted: Vec<Type<'_>>| -> VerifyResult {
        if got.len() != wanted.len() {
            return Err(format!("has {} {what}(s), but function @{name} has {}", got.len(), wanted.len()));
        }
        match got.iter().zip(&wanted).position(|(got, wanted)| got != wanted) {
            Some(i) => {
                Err(format!("has {what} #{i} of type '{}', but function @{name} has '{}'", got[i], wanted[i]))
            }
            None => Ok(()),
        }
    };
    check("operand", op.operands().map(Value::ty).collect(), ty.inputs())?;
    check("result", op.results().map(Value::ty).collect(), ty.results())
}

/// The operands are what the function returns.
pub fn return_(op: Op<'_>) -> VerifyResult {
    let Some(function) = op.parent().and_then(FuncOp::cast) else { return Ok(()) };
    let Some(ty) = function.unverified().function_type() else { return Ok(()) };
    let name = function.unverified().sym_name().unwrap_or_default();
    let wanted = ty.results();
    if wanted.len() != op.num_operands() {
        return Err(format!(
            "has {} operand(s), but function @{name} returns {}",
            op.num_operands(),
            wanted.len()
        ));
    }
    match op.operands().zip(&wanted).position(|(got, wanted)| got.ty() != *wanted) {
        Some(i) => Err(format!(
            "has operand #{i} of type '{}', but function @{name} returns '{}'",
            op.operand(i).ty(),
            wanted[i]
        )),
        None => Ok(()),
    }
}

/// A hint about the values of a tensor: one number for each dimension.
fn is_hint(name: &str) -> bool {
    matches!(name, "tt.contiguity" | "tt.divisibility" | "tt.constancy")
}

/// Hints of function arguments are positive integers.
pub fn arg_attr(_function: Op<'_>, arg: usize, name: &str, attr: Attr<'_>) -> VerifyResult {
    let positive = attr.as_int().is_some_and(|value| value > 0);
    if is_hint(name) && !positive && attr.as_elements().is_none() {
        return Err(format!(
            "requires attribute '{name}' of argument #{arg} to be a positive integer, but got {attr}"
        ));
    }
    Ok(())
}

/// Hints of operations are constant vectors; what loops say to the pipeliner is an integer.
pub fn op_attr(_op: Op<'_>, name: &str, attr: Attr<'_>) -> VerifyResult {
    if is_hint(name) && attr.as_elements().is_none() && attr.as_int().is_none() {
        return Err(format!("requires attribute '{name}' to be dense integers, but got {attr}"));
    }
    if matches!(name, "tt.num_stages" | "tt.latency" | "tt.self_latency") && attr.as_int().is_none() {
        return Err(format!("requires attribute '{name}' to be an integer, but got {attr}"));
    }
    Ok(())
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

/// The tensor described has the rank of its blocks.
pub fn make_tensor_descriptor(op: Op<'_>) -> VerifyResult {
    let make = MakeTensorDescOp::of(op);
    let block = descriptor(make.result())?;
    let (rank, given) = (block.shape().len(), make.shape().len());
    if rank != given {
        return Err(format!(
            "has {given} size(s) and stride(s), but the descriptor '{}' has {rank}",
            block.ty()
        ));
    }
    Ok(())
}

fn descriptor<'c>(value: Value<'c>) -> Result<TensorDescType<'c>, String> {
    TensorDescType::cast(value.ty())
        .ok_or_else(|| format!("expects a tensor descriptor, but got '{}'", value.ty()))
}

/// A block that moves through a descriptor has its element type and number of elements.
fn moves_block(desc: Value<'_>, block: Value<'_>, indices: usize) -> VerifyResult {
    let (desc, block) = (descriptor(desc)?, tensor(block)?);
    if desc.signless_element() != block.element() {
        return Err(format!(
            "descriptor and tensor must have the same element type, but have '{}' and '{}'",
            desc.element(),
            block.element()
        ));
    }
    let elements = desc.shape().iter().try_fold(1i64, |product, dim| product.checked_mul(*dim));
    if elements != Some(block.num_elements()) {
        return Err(format!(
            "descriptor and tensor must have the same number of elements, but got '{}' and '{}'",
            desc.ty(),
            block.ty()
        ));
    }
    if indices != desc.shape().len() {
        return Err(format!(
            "has {indices} index(es), but the descriptor '{}' has {}",
            desc.ty(),
            desc.shape().len()
        ));
    }
    Ok(())
}

/// A block is loaded.
pub fn descriptor_load(op: Op<'_>) -> VerifyResult {
    let load = DescriptorLoadOp::of(op);
    match load.cache_policy() {
        Some(policy) if cache_modifier(policy).is_none() => {
            return Err(format!("unsupported cache policy attribute {policy}"));
        }
        _ => {}
    }
    moves_block(load.desc(), load.result(), load.indices().len())
}

/// A block is stored.
pub fn descriptor_store(op: Op<'_>) -> VerifyResult {
    let store = DescriptorStoreOp::of(op);
    moves_block(store.desc(), store.src(), store.indices().len())
}

/// A block is combined.
pub fn descriptor_reduce(op: Op<'_>) -> VerifyResult {
    let reduce = DescriptorReduceOp::of(op);
    moves_block(reduce.desc(), reduce.src(), reduce.indices().len())
}

/// The least number of rows the hardware gathers or scatters at once.
const MIN_ROWS: i64 = 8;
/// The least number of bits of a row that it gathers or scatters.
const MIN_ROW_BITS: i64 = 256;

/// Rows of a matrix move, each at its own index.
pub fn moves_rows(desc: TensorDescType<'_>, x_offsets: TensorType<'_>, rows: TensorType<'_>) -> VerifyResult {
    let block = desc.shape();
    let [height, width] = block[..] else {
        return Err(format!("expects a descriptor of 2 dimensions, but got '{}'", desc.ty()));
    };
    if height != 1 {
        return Err(format!("expects a descriptor of one row, but '{}' has {height}", desc.ty()));
    }
    if x_offsets.rank() != 1 {
        return Err(format!("expects row offsets of one dimension, but got '{}'", x_offsets.ty()));
    }
    if rows.rank() != 2 {
        return Err(format!("expects a tensor of 2 dimensions, but got '{}'", rows.ty()));
    }
    if x_offsets.dim(0) < MIN_ROWS {
        return Err(format!("expects at least {MIN_ROWS} rows, but got {}", x_offsets.dim(0)));
    }
    let element = desc.signless_element();
    let bits = i64::from(element.bits().unwrap_or(0));
    if !(1..=32).contains(&bits) {
        return Err(format!("supports only elements of up to 32 bits, but got '{element}'"));
    }
    let min_columns = MIN_ROW_BITS / bits;
    if width < min_columns {
        return Err(format!("expects at least {min_columns} columns of '{element}', but got {width}"));
    }
    if rows.dim(0) != x_offsets.dim(0) {
        return Err(format!(
            "expects as many rows as offsets, {}, but got '{}'",
            x_offsets.dim(0),
            rows.ty()
        ));
    }
    if rows.dim(1) != width {
        return Err(format!("expects as many columns as the descriptor, {width}, but got '{}'", rows.ty()));
    }
    if rows.element() != element {
        return Err(format!("expects the descriptor's element type, '{element}', but got '{}'", rows.ty()));
    }
    Ok(())
}

/// Rows are loaded.
pub fn descriptor_gather(op: Op<'_>) -> VerifyResult {
    let gather = DescriptorGatherOp::of(op);
    moves_rows(descriptor(gather.desc())?, tensor(gather.x_offsets())?, tensor(gather.result())?)
}

/// Rows are stored.
pub fn descriptor_scatter(op: Op<'_>) -> VerifyResult {
    let scatter = DescriptorScatterOp::of(op);
    moves_rows(descriptor(scatter.desc())?, tensor(scatter.x_offsets())?, tensor(scatter.src())?)
}
