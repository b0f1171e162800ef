//! Inference of encodings through shape operations: the encoding under which
//! the operation moves no data. `Ok(None)` stands for "no encoding", which
//! tensors have before conversion to TritonGPU.
//!
//! Where the operand's kind of encoding can describe the result, the result has
//! that kind; otherwise it is written out as bases (`#ttg.linear`).

use super::attrs::{SLICE, encoding, encoding_attr, is_distributed, parent};
use super::layout::to_linear_layout;
use linear_layout::encoding::*;
use linear_layout::{Dim, LinearLayout, standard_out_dims};
use mlir_host::dialect::hosted_attr;
use mlir_host::ir::Attr;
use mlir_host::memo::AttrMemo;
use smallvec::SmallVec;

/// An encoding, or none.
pub type Encoding<'c> = Option<Attr<'c>>;
/// `Err` holds the reason.
pub type Inferred<'c> = Result<Encoding<'c>, String>;

use linear_layout::Encoding as Value;

/// What an operation does to a tensor.
#[derive(PartialEq, Eq, Hash)]
enum Step {
    Reduce(usize),
    Trans(SmallVec<[i32; 4]>),
    Reshape(SmallVec<[i64; 4]>),
    Join,
    Split,
    Unpack(usize),
    Pack(usize),
}

thread_local! {
    // Verification, the layout engine and builders ask for the same again and again.
    static INFERRED: AttrMemo<(Step, SmallVec<[i64; 4]>)> = AttrMemo::default();
}

/// What follows from the encoding of a tensor of `shape`, inferred once.
fn once<'c>(attr: Attr<'c>, step: Step, shape: &[i64], infer: impl FnOnce() -> Inferred<'c>) -> Inferred<'c> {
    INFERRED.with(|memo| memo.get(attr, (step, SmallVec::from_slice(shape)), infer))
}

/// Of the result of reducing dimension `axis`.
pub fn reduce<'c>(operand: Encoding<'c>, axis: usize) -> Inferred<'c> {
    let Some(attr) = operand else { return Ok(None) };
    once(attr, Step::Reduce(axis), &[], || reduced(attr, axis))
}

fn reduced(attr: Attr<'_>, axis: usize) -> Inferred<'_> {
    if !is_distributed(attr) {
        return Err(format!("cannot reduce a tensor with the encoding {attr}"));
    }
    let ctx = attr.context();
    let rank = encoding(attr)?.rank();
    if axis >= rank || rank < 2 {
        return Err(format!(
            "cannot reduce dimension {axis} of a tensor whose encoding has {rank} dimensions"
        ));
    }
    let made = hosted_attr(ctx, &SLICE, &[Attr::int(ctx, 64, axis as i64), attr]);
    made.map(Some).ok_or_else(|| format!("no slice of {attr} along dimension {axis}"))
}

/// Of the result of inserting a dimension of size one at `axis`.
pub fn expand_dims<'c>(operand: Encoding<'c>, axis: usize) -> Inferred<'c> {
    let Some(attr) = operand else { return Ok(None) };
    let (true, [dim, parent]) = (attr.is(&SLICE), attr.params()) else {
        return Err(format!("operand of expand_dims must have a #ttg.slice encoding, got {attr}"));
    };
    match dim.as_int() {
        Some(dim) if dim == axis as i64 => Ok(Some(*parent)),
        _ => Err(format!("axis {axis} is not the dimension that {attr} leaves out")),
    }
}

/// Of the result of permuting dimensions: result dimension `i` is operand dimension `order[i]`.
pub fn trans<'c>(operand: Encoding<'c>, shape: &[i64], order: &[i32]) -> Inferred<'c> {
    let Some(attr) = operand else { return Ok(None) };
    once(attr, Step::Trans(SmallVec::from_slice(order)), shape, || permuted_encoding(attr, shape, order))
}

fn permuted_encoding<'c>(attr: Attr<'c>, shape: &[i64], order: &[i32]) -> Inferred<'c> {
    let order: Vec<usize> = order.iter().map(|dim| *dim as usize).collect();
    let value = encoding(attr)?;
    if order.len() != value.rank() || order.iter().any(|dim| *dim >= order.len()) {
        return Err(format!("order {order:?} does not permute the {} dimensions of {attr}", value.rank()));
    }
    if order.iter().copied().eq(0..order.len()) {
        return Ok(Some(attr));
    }
    let transposed = match transposed(&value, &order) {
        Some(made) => made?,
        None => {
            let layout = to_linear_layout(attr, shape)?;
            let layout =
                map_coordinates(&layout, order.len(), |basis| order.iter().map(|dim| basis[*dim]).collect());
            linear_like(&value, layout?)
        }
    };
    encoding_attr(attr.context(), &transposed).map(Some)
}

fn permuted<T: Clone>(items: &[T], order: &[usize]) -> Vec<T> {
    order.iter().filter_map(|dim| items.get(*dim).cloned()).collect()
}

/// The encoding of the same kind; `None` when there is none.
fn transposed(value: &Value, order: &[usize]) -> Option<Result<Value, String>> {
    let new_name = |dim: &usize| order.iter().position(|old| old == dim).unwrap_or(0);
    let cga = |bases: &CgaLayout| -> CgaLayout { bases.iter().map(|basis| permuted(basis, order)).collect() };
    Some(Ok(match value {
        Value::Blocked(e) => Value::Blocked(Blocked {
            size_per_thread: permuted(&e.size_per_thread, order),
            threads_per_warp: permuted(&e.threads_per_warp, order),
            warps_per_cta: permuted(&e.warps_per_cta, order),
            order: e.order.iter().map(new_name).collect(),
            cga: cga(&e.cga),
        }),
        Value::SwizzledShared(e) => Value::SwizzledShared(SwizzledShared {
            order: e.order.iter().map(new_name).collect(),
            cga: cga(&e.cga),
            ..e.clone()
        }),
        // There are two ways of storing a matrix; batches can only be written out.
        Value::NvmmaShared(e) if order == [1, 0] => {
            Value::NvmmaShared(NvmmaShared { transposed: !e.transposed, cga: cga(&e.cga), ..e.clone() })
        }
        Value::PaddedShared(e) => match permute_layout(&e.layout, order) {
            Ok(layout) => Value::PaddedShared(PaddedShared { layout, ..e.clone() }),
            Err(reason) => return Some(Err(reason)),
        },
        Value::SharedLinear(e) => match permute_layout(&e.layout, order) {
            Ok(layout) => Value::SharedLinear(SharedLinear { layout, ..e.clone() }),
            Err(reason) => return Some(Err(reason)),
        },
        Value::PartitionedShared(e) => match transposed(&e.partition_layout, order) {
            Some(Ok(inner)) => Value::PartitionedShared(PartitionedShared {
                partition_dim: new_name(&e.partition_dim),
                partition_layout: Box::new(inner),
                ..e.clone()
            }),
            Some(Err(reason)) => return Some(Err(reason)),
            None => return None,
        },
        _ => return None,
    }))
}

fn permute_layout(layout: &LinearLayout, order: &[usize]) -> Result<LinearLayout, String> {
    map_coordinates(layout, order.len(), |basis| order.iter().map(|dim| basis[*dim]).collect())
}

/// The layout with the coordinates of every basis replaced.
fn map_coordinates(
    layout: &LinearLayout,
    rank: usize,
    map: impl Fn(&[u64]) -> Vec<u64>,
) -> Result<LinearLayout, String> {
    let bases: Vec<(Dim, Vec<Vec<u64>>)> = layout
        .in_dims()
        .map(|dim| (dim, layout.columns_of(dim).iter().map(|column| map(&layout.coords(*column))).collect()))
        .collect();
    let outs: Vec<Dim> = standard_out_dims(rank).collect();
    LinearLayout::from_bases(&bases, &outs).map_err(|err| err.to_string())
}

/// Whether bases may move along several dimensions at once.
fn is_generic(value: &Value) -> bool {
    match value {
        Value::GenericLinear(_) => true,
        Value::AmdWmma(e) => {
            let crosses = |basis: &Vec<u64>| basis.iter().filter(|step| **step != 0).count() > 1;
            e.tile_warps.iter().any(crosses) || e.tile_registers.iter().any(crosses)
        }
        Value::Slice(e) => is_generic(&e.parent),
        Value::DotOperand(e) => is_generic(&e.parent),
        _ => false,
    }
}

/// The written-out encoding of a layout that came of `source`.
pub(crate) fn linear_like(source: &Value, layout: LinearLayout) -> Value {
    if source.is_shared() {
        Value::SharedLinear(SharedLinear { layout, alignment: alignment(source) })
    } else if is_generic(source) {
        Value::GenericLinear(Linear { layout })
    } else {
        Value::Linear(Linear { layout })
    }
}

/// Position in row-major order, which for powers of two is a concatenation of bits.
fn flatten(basis: &[u64], shape: &[i64]) -> u64 {
    basis.iter().zip(shape).fold(0, |flat, (coordinate, size)| flat * *size as u64 + coordinate)
}

fn unflatten(mut flat: u64, shape: &[i64]) -> Vec<u64> {
    let mut basis: Vec<u64> = shape
        .iter()
        .rev()
        .map(|size| {
            let coordinate = flat % *size as u64;
            flat /= *size as u64;
            coordinate
        })
        .collect();
    basis.reverse();
    basis
}

/// The layout of a tensor of shape `from` seen as one of shape `to`.
pub fn reshape_layout(layout: &LinearLayout, from: &[i64], to: &[i64]) -> Result<LinearLayout, String> {
    let powers = from.iter().chain(to).all(|size| *size > 0 && size.count_ones() == 1);
    if !powers || from.iter().product::<i64>() != to.iter().product::<i64>() {
        return Err(format!("cannot reshape {from:?} to {to:?}"));
    }
    map_coordinates(layout, to.len(), |basis| unflatten(flatten(basis, from), to))
}

/// Of the result of reshaping.
pub fn reshape<'c>(operand: Encoding<'c>, from: &[i64], to: &[i64]) -> Inferred<'c> {
    let Some(attr) = operand else { return Ok(None) };
    once(attr, Step::Reshape(SmallVec::from_slice(to)), from, || reshaped(attr, from, to))
}

fn reshaped<'c>(attr: Attr<'c>, from: &[i64], to: &[i64]) -> Inferred<'c> {
    let value = encoding(attr)?;
    if let Some(made) = reshape_blocked(attr, &value, from, to)? {
        return Ok(Some(made));
    }
    let made = linear_like(&value, reshape_layout(&*to_linear_layout(attr, from)?, from, to)?);
    encoding_attr(attr.context(), &made).map(Some)
}

/// The result of reshaping a blocked encoding or a slice of one, where it is
/// again one of these.
fn reshape_blocked<'c>(attr: Attr<'c>, value: &Value, from: &[i64], to: &[i64]) -> Inferred<'c> {
    let mut root = value;
    while let Value::Slice(slice) = root {
        root = &slice.parent;
    }
    let Value::Blocked(_) = root else { return Ok(None) };
    if let Value::Blocked(_) = value
        && from == to
    {
        return Ok(Some(attr));
    }
    // A dimension of size one that goes is sliced off; one that comes back where it was sliced off is put back.
    let without = |sizes: &[i64], dim: usize| {
        let mut sizes = sizes.to_vec();
        sizes.remove(dim);
        sizes
    };
    if from.len() == to.len() + 1
        && from.len() > 1
        && let Some(dim) = (0..from.len()).find(|dim| from[*dim] == 1 && without(from, *dim) == to)
    {
        return reduce(Some(attr), dim);
    }
    if let Value::Slice(slice) = value {
        let inserted = to.len() == from.len() + 1 && to[slice.dim] == 1 && without(to, slice.dim) == from;
        return if inserted { expand_dims(Some(attr), slice.dim) } else { Ok(None) };
    }
    let Value::Blocked(blocked) = value else { return Ok(None) };
    match super::reshape::blocked(blocked, from, to) {
        Some(made) => encoding_attr(attr.context(), &Value::Blocked(made)).map(Some),
        None => Ok(None),
    }
}

/// Of the result of joining two tensors of `shape` in a new last dimension.
pub fn join<'c>(operand: Encoding<'c>, shape: &[i64]) -> Inferred<'c> {
    let Some(attr) = operand else { return Ok(None) };
    once(attr, Step::Join, shape, || joined(attr, shape))
}

fn joined<'c>(attr: Attr<'c>, shape: &[i64]) -> Inferred<'c> {
    let value = encoding(attr)?;
    let rank = shape.len();
    // Where the dimension was sliced off before, and each thread has both elements, it is put back.
    if let (Value::Slice(slice), Some(parent)) = (&value, parent(attr))
        && slice.dim == rank
    {
        let joined: Vec<i64> = shape.iter().copied().chain([2]).collect();
        let halves = to_linear_layout(parent, &joined).and_then(|layout| split_layout(&layout));
        if halves.is_ok_and(|half| to_linear_layout(attr, shape).is_ok_and(|layout| *layout == half)) {
            return Ok(Some(parent));
        }
    }
    let made = match &value {
        // The pair is in two neighbouring registers.
        Value::Blocked(e) if e.order.len() == rank => {
            let with = |list: &[u64], last: u64| list.iter().copied().chain([last]).collect::<Vec<u64>>();
            Value::Blocked(Blocked {
                size_per_thread: with(&e.size_per_thread, 2),
                threads_per_warp: with(&e.threads_per_warp, 1),
                warps_per_cta: with(&e.warps_per_cta, 1),
                order: std::iter::once(rank).chain(e.order.iter().copied()).collect(),
                cga: e.cga.iter().map(|basis| with(basis, 0)).collect(),
            })
        }
        _ => linear_like(&value, join_layout(&*to_linear_layout(attr, shape)?)?),
    };
    encoding_attr(attr.context(), &made).map(Some)
}

/// A new first register along a new last dimension.
fn join_layout(layout: &LinearLayout) -> Result<LinearLayout, String> {
    let rank = layout.num_out_dims();
    let bases: Vec<(Dim, Vec<Vec<u64>>)> = layout
        .in_dims()
        .map(|dim| {
            let old = layout.columns_of(dim).iter().map(|column| {
                let mut basis = layout.coords(*column).to_vec();
                basis.push(0);
                basis
            });
            let new = (dim == Dim::REGISTER).then(|| (0..=rank).map(|d| u64::from(d == rank)).collect());
            (dim, new.into_iter().chain(old).collect())
        })
        .collect();
    let outs: Vec<Dim> = standard_out_dims(rank + 1).collect();
    LinearLayout::from_bases(&bases, &outs).map_err(|err| err.to_string())
}

/// Of the results of splitting the last dimension of a tensor of `shape`.
pub fn split<'c>(operand: Encoding<'c>, shape: &[i64]) -> Inferred<'c> {
    let Some(attr) = operand else { return Ok(None) };
    once(attr, Step::Split, shape, || halved(attr, shape))
}

fn halved<'c>(attr: Attr<'c>, shape: &[i64]) -> Inferred<'c> {
    let value = encoding(attr)?;
    let last = shape.len().checked_sub(1).ok_or("cannot split a tensor without dimensions")?;
    if let Value::Blocked(e) = &value
        && e.order.len() == shape.len()
        && (e.size_per_thread[last], e.threads_per_warp[last], e.warps_per_cta[last]) == (2, 1, 1)
        && e.order.len() > 1
        && e.cga.iter().all(|basis| basis[last] == 0)
    {
        let without = |list: &[u64]| list[..last].to_vec();
        let made = Value::Blocked(Blocked {
            size_per_thread: without(&e.size_per_thread),
            threads_per_warp: without(&e.threads_per_warp),
            warps_per_cta: without(&e.warps_per_cta),
            order: e.order.iter().copied().filter(|dim| *dim != last).collect(),
            cga: e.cga.iter().map(|basis| without(basis)).collect(),
        });
        return encoding_attr(attr.context(), &made).map(Some);
    }
    let layout = split_layout(&*to_linear_layout(attr, shape)?)?;
    encoding_attr(attr.context(), &linear_like(&value, layout)).map(Some)
}

/// The layout without its last dimension, of size two, which one register must move along.
fn split_layout(layout: &LinearLayout) -> Result<LinearLayout, String> {
    let rank = layout.num_out_dims();
    let Some(last) = rank.checked_sub(1).filter(|last| *last > 0) else {
        return Err("a tensor of one dimension cannot be split into tensors with an encoding".to_owned());
    };
    let pair: Vec<u64> = (0..rank).map(|dim| u64::from(dim == last)).collect();
    let bases: Vec<(Dim, Vec<Vec<u64>>)> = layout
        .in_dims()
        .map(|dim| {
            (dim, layout.columns_of(dim).iter().map(|column| layout.coords(*column).to_vec()).collect())
        })
        .collect();
    let at = bases
        .iter()
        .find(|(dim, _)| *dim == Dim::REGISTER)
        .and_then(|(_, bases)| bases.iter().position(|basis| *basis == pair))
        .ok_or("both halves must be in each thread: a register must move along the last dimension alone")?;
    let bases: Vec<(Dim, Vec<Vec<u64>>)> = bases
        .into_iter()
        .map(|(dim, mut vectors)| {
            if dim == Dim::REGISTER {
                vectors.remove(at);
            }
            vectors.iter_mut().for_each(|basis| basis.truncate(last));
            (dim, vectors)
        })
        .collect();
    let outs: Vec<Dim> = standard_out_dims(last).collect();
    LinearLayout::from_bases(&bases, &outs).map_err(|err| err.to_string())
}

/// Of the result of unpacking pairs along `axis` of a tensor of `shape`.
pub fn fp4_to_fp<'c>(operand: Attr<'c>, shape: &[i64], axis: usize) -> Result<Attr<'c>, String> {
    let made = once(operand, Step::Unpack(axis), shape, || unpacked(operand, shape, axis).map(Some));
    made?.ok_or_else(|| "no encoding follows".to_owned())
}

fn unpacked<'c>(operand: Attr<'c>, shape: &[i64], axis: usize) -> Result<Attr<'c>, String> {
    let value = encoding(operand)?;
    let made = match &value {
        // The condition is Triton's: right for matrices, where it means that the axis is the fastest.
        Value::Blocked(e) if e.order.get(axis) == Some(&0) => {
            let mut made = e.clone();
            made.size_per_thread[axis] *= 2;
            Value::Blocked(made)
        }
        _ => {
            let layout = to_linear_layout(operand, shape)?;
            let rank = layout.num_out_dims();
            let bases: Vec<(Dim, Vec<Vec<u64>>)> = layout
                .in_dims()
                .map(|dim| {
                    let old = layout.columns_of(dim).iter().map(|column| {
                        let mut basis = layout.coords(*column).to_vec();
                        basis[axis] *= 2;
                        basis
                    });
                    let new =
                        (dim == Dim::REGISTER).then(|| (0..rank).map(|d| u64::from(d == axis)).collect());
                    (dim, new.into_iter().chain(old).collect())
                })
                .collect();
            let outs: Vec<Dim> = standard_out_dims(rank).collect();
            linear_like(&value, LinearLayout::from_bases(&bases, &outs).map_err(|err| err.to_string())?)
        }
    };
    encoding_attr(operand.context(), &made)
}

/// Of the pairs along `axis` that unpacking gives a tensor of `shape` with the layout `result`.
///
/// # Errors
/// When no register holds the two elements of each pair.
pub fn fp4_packed<'c>(result: Attr<'c>, shape: &[i64], axis: usize) -> Result<Attr<'c>, String> {
    let made = once(result, Step::Pack(axis), shape, || packed(result, shape, axis).map(Some));
    made?.ok_or_else(|| "no encoding follows".to_owned())
}

fn packed<'c>(result: Attr<'c>, shape: &[i64], axis: usize) -> Result<Attr<'c>, String> {
    let layout = to_linear_layout(result, shape)?;
    let rank = layout.num_out_dims();
    let mut pairs = 0;
    let mut bases: Vec<(Dim, Vec<Vec<u64>>)> = Vec::new();
    for dim in layout.in_dims() {
        let mut halved = Vec::new();
        for column in layout.columns_of(dim) {
            let mut basis = layout.coords(*column).to_vec();
            let step = basis.get_mut(axis).ok_or_else(|| format!("there is no dimension {axis}"))?;
            if *step % 2 == 0 {
                *step /= 2;
                halved.push(basis);
            } else if dim == Dim::REGISTER && basis.iter().sum::<u64>() == 1 {
                pairs += 1;
            } else {
                return Err(format!("{result} does not keep pairs along dimension {axis} in one thread"));
            }
        }
        bases.push((dim, halved));
    }
    if pairs != 1 {
        return Err(format!("{result} does not have pairs along dimension {axis} once"));
    }
    let outs: Vec<Dim> = standard_out_dims(rank).collect();
    let made = LinearLayout::from_bases(&bases, &outs).map_err(|err| err.to_string())?;
    encoding_attr(result.context(), &linear_like(&encoding(result)?, made))
}

/// Bytes to which a buffer with this layout is aligned.
pub fn alignment(value: &linear_layout::Encoding) -> u64 {
    use linear_layout::Encoding;
    match value {
        Encoding::SharedLinear(e) => e.alignment,
        // The swizzle pattern repeats every 8 rows of its width.
        Encoding::NvmmaShared(e) => (8 * e.swizzling_byte_width).max(128),
        Encoding::PartitionedShared(e) => alignment(&e.partition_layout),
        _ => 16,
    }
}
