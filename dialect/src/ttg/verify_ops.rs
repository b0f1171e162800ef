//! Verifiers of operations.

use super::infer;
use super::infer_memdesc;
use super::layout::{equivalent, to_linear_layout};
use super::ops::*;
use super::types::MemDescType;
use linear_layout::{Dim, Encoding};
use mlir_host::def::VerifyResult;
use mlir_host::ir::{FloatKind, Op, TensorType, Type, Value};

fn memdesc(value: Value<'_>) -> Result<MemDescType<'_>, String> {
    MemDescType::cast(value.ty()).ok_or_else(|| format!("expected a memory descriptor, got '{}'", value.ty()))
}

fn tensor(value: Value<'_>) -> Result<TensorType<'_>, String> {
    value.ty().as_tensor().ok_or_else(|| format!("expected a tensor, got '{}'", value.ty()))
}

fn same_elements(what: &str, tensor: Type<'_>, buffer: Type<'_>) -> VerifyResult {
    if tensor == buffer {
        Ok(())
    } else {
        Err(format!("{what} has elements of '{tensor}', but the buffer has '{buffer}'"))
    }
}

fn same_shape(what: &str, tensor: &[i64], buffer: &[i64]) -> VerifyResult {
    if tensor == buffer {
        Ok(())
    } else {
        Err(format!("{what} has the shape {tensor:?}, but the buffer has {buffer:?}"))
    }
}

fn same_contents(what: &str, tensor: TensorType<'_>, buffer: MemDescType<'_>) -> VerifyResult {
    same_elements(what, tensor.element(), buffer.element())?;
    same_shape(what, &tensor.shape(), &buffer.shape())
}

fn writable(buffer: MemDescType<'_>) -> VerifyResult {
    if buffer.mutable() {
        Ok(())
    } else {
        Err(format!("cannot store to the immutable buffer '{}'", buffer.ty()))
    }
}

fn in_shared_memory(buffer: MemDescType<'_>) -> VerifyResult {
    if buffer.is_in_shared_memory() {
        Ok(())
    } else {
        Err(format!("the buffer must be in shared memory, but is in {}", buffer.space()))
    }
}

pub(super) fn convert_layout(op: Op<'_>) -> VerifyResult {
    let convert = ConvertLayoutOp::of(op);
    let (src, result) = (tensor(convert.src())?, tensor(convert.result())?);
    let (from, to) = match (src.encoding(), result.encoding()) {
        (Some(from), Some(to)) => (from, to),
        // Before layouts are chosen.
        _ => return Ok(()),
    };
    if convert.force_warp_shuffle().is_none() {
        return Ok(());
    }
    // Data that stay in their warp have the same coordinates along warps and blocks on both sides.
    let shape = src.shape();
    let (from, to) = (to_linear_layout(from, &shape)?, to_linear_layout(to, &shape)?);
    match from.invert_and_compose(&to) {
        Ok(moves) if moves.is_trivial_over(&[Dim::WARP, Dim::BLOCK]) => Ok(()),
        _ => Err("force_warp_shuffle asks for a conversion that stays within each warp".to_owned()),
    }
}

pub(super) fn fp4_to_fp(op: Op<'_>) -> VerifyResult {
    let unpack = Fp4ToFpOp::of(op);
    let (src, result) = (tensor(unpack.src())?, tensor(unpack.result())?);
    let (from, to) = (src.shape(), result.shape());
    let axis = unpack.axis();
    if from.len() != to.len() {
        return Err(format!("source has {} dimensions, but the result {}", from.len(), to.len()));
    }
    let in_range = usize::try_from(axis).ok().filter(|axis| *axis < from.len());
    let axis =
        in_range.ok_or_else(|| format!("axis {axis} is out of range for {} dimensions", from.len()))?;
    for (dim, (from, to)) in from.iter().zip(&to).enumerate() {
        let wanted = if dim == axis { 2 * from } else { *from };
        if *to != wanted {
            return Err(format!("dimension {dim} of the result must have {wanted} elements, but has {to}"));
        }
    }
    // Triton's are of 16 bits; e4m3, for instructions that multiply it with scales, is ours.
    let kinds = [FloatKind::F16, FloatKind::BF16, FloatKind::F8E4M3FN];
    if !result.element().float_kind().is_some_and(|kind| kinds.contains(&kind)) {
        return Err(format!("result must have elements of f16 or bf16, but has '{}'", result.element()));
    }
    match (src.encoding(), result.encoding()) {
        (None, None) => Ok(()),
        (Some(from_attr), Some(to_attr)) => {
            let inferred = infer::fp4_to_fp(from_attr, &from, axis)?;
            if equivalent(inferred, to_attr, &to) {
                Ok(())
            } else {
                Err(format!("result must have an encoding equivalent to {inferred}, but has {to_attr}"))
            }
        }
        _ => Err("source and result must both have an encoding, or neither".to_owned()),
    }
}

pub(super) fn inline_asm(op: Op<'_>) -> VerifyResult {
    let asm = InlineAsmOp::of(op);
    if asm.pure() && asm.args().any(|value| MemDescType::cast(value.ty()).is_some()) {
        return Err("assembly that is given memory descriptors cannot be pure".to_owned());
    }
    for ty in op.operands().chain(op.results()).filter_map(|value| value.ty().as_tensor()) {
        if ty.encoding().is_none() {
            return Err(format!("tensors must have an encoding, but '{}' has none", ty.ty()));
        }
    }
    for buffer in asm.args().filter_map(|value| MemDescType::cast(value.ty())) {
        in_shared_memory(buffer)?;
        if matches!(super::attrs::encoding(buffer.encoding()), Ok(Encoding::PartitionedShared(_))) {
            return Err(format!(
                "assembly takes one address for a buffer, but '{}' has several",
                buffer.ty()
            ));
        }
    }
    Ok(())
}

pub(super) fn async_copy(op: Op<'_>) -> VerifyResult {
    let copy = AsyncCopyGlobalToLocalOp::of(op);
    writable(memdesc(copy.result())?)
}

pub(super) fn local_alloc(op: Op<'_>) -> VerifyResult {
    let alloc = LocalAllocOp::of(op);
    let buffer = memdesc(alloc.result())?;
    in_shared_memory(buffer)?;
    if buffer.shape() != buffer.alloc_shape() {
        return Err(format!(
            "result must be a whole allocation: its shape {:?} is not that of the allocation, {:?}",
            buffer.shape(),
            buffer.alloc_shape()
        ));
    }
    let Some(src) = alloc.src() else {
        return if buffer.mutable() {
            Ok(())
        } else {
            Err("a buffer that is not filled when it is made must be mutable".to_owned())
        };
    };
    same_contents("source", tensor(src)?, buffer)
}

pub(super) fn local_load(op: Op<'_>) -> VerifyResult {
    let load = LocalLoadOp::of(op);
    same_contents("result", tensor(load.result())?, memdesc(load.src())?)
}

pub(super) fn local_store(op: Op<'_>) -> VerifyResult {
    let store = LocalStoreOp::of(op);
    let buffer = memdesc(store.dst())?;
    writable(buffer)?;
    same_contents("source", tensor(store.src())?, buffer)
}

/// What gather and scatter have in common: `values` are the elements that `indices` name.
fn indexed<'c>(buffer: MemDescType<'c>, indices: Value<'c>, values: Value<'c>, axis: i64) -> VerifyResult {
    let (indices, values) = (tensor(indices)?, tensor(values)?);
    in_shared_memory(buffer)?;
    let (shape, rank) = (indices.shape(), buffer.rank());
    if shape.len() != rank {
        return Err(format!("indices have {} dimensions, but the buffer has {rank}", shape.len()));
    }
    let in_range = usize::try_from(axis).ok().filter(|axis| *axis < rank);
    let axis = in_range
        .ok_or_else(|| format!("axis {axis} is out of range for the {rank} dimensions of the buffer"))?;
    if values.shape() != shape {
        return Err(format!(
            "values have the shape {:?}, but indices have {:?}",
            values.shape().as_slice(),
            shape.as_slice()
        ));
    }
    for (dim, (index, size)) in shape.iter().zip(buffer.shape()).enumerate() {
        if dim != axis && *index > size {
            return Err(format!(
                "dimension {dim} of the indices has {index} elements, but the buffer has {size}"
            ));
        }
    }
    same_elements("the tensor of values", values.element(), buffer.element())?;
    if values.encoding() != indices.encoding() {
        return Err("values and indices must have the same encoding".to_owned());
    }
    Ok(())
}

pub(super) fn local_gather(op: Op<'_>) -> VerifyResult {
    let gather = LocalGatherOp::of(op);
    indexed(memdesc(gather.src())?, gather.indices(), gather.result(), gather.axis())
}

pub(super) fn local_scatter(op: Op<'_>) -> VerifyResult {
    let scatter = LocalScatterOp::of(op);
    indexed(memdesc(scatter.dst())?, scatter.indices(), scatter.values(), scatter.axis())
}

pub(super) fn local_atomic_scatter_rmw(op: Op<'_>) -> VerifyResult {
    let rmw = LocalAtomicScatterRmwOp::of(op);
    let buffer = memdesc(rmw.dst())?;
    writable(buffer)?;
    indexed(buffer, rmw.indices(), rmw.values(), rmw.axis())
}

/// What views have in common besides their shape.
fn same_buffer(src: MemDescType<'_>, result: MemDescType<'_>) -> VerifyResult {
    if src.element() != result.element() {
        return Err(format!(
            "result has elements of '{}', but the source has '{}'",
            result.element(),
            src.element()
        ));
    }
    if src.space() != result.space() {
        return Err(format!("result is in {}, but the source is in {}", result.space(), src.space()));
    }
    Ok(())
}

fn same_mutability(src: MemDescType<'_>, result: MemDescType<'_>) -> VerifyResult {
    if src.mutable() == result.mutable() {
        Ok(())
    } else {
        Err("source and result must both be mutable, or neither".to_owned())
    }
}

pub(super) fn memdesc_index(op: Op<'_>) -> VerifyResult {
    let index = MemDescIndexOp::of(op);
    let (src, result) = (memdesc(index.src())?, memdesc(index.result())?);
    same_buffer(src, result)?;
    let (from, to) = (src.shape(), result.shape());
    if from.get(1..) != Some(&to[..]) {
        return Err(format!(
            "result must have the shape {:?}, but has {to:?}",
            from.get(1..).unwrap_or_default()
        ));
    }
    if src.encoding() != result.encoding() {
        return Err(format!(
            "result must have the layout {} of the source, but has {}",
            src.encoding(),
            result.encoding()
        ));
    }
    let alloc = src.alloc_shape();
    if result.alloc_shape() != alloc[alloc.len() - to.len()..] {
        return Err(format!(
            "result must be of the allocation {:?}, but is of {:?}",
            &alloc[alloc.len() - to.len()..],
            result.alloc_shape()
        ));
    }
    Ok(())
}

pub(super) fn memdesc_subslice(op: Op<'_>) -> VerifyResult {
    let slice = MemDescSubsliceOp::of(op);
    let (src, result) = (memdesc(slice.src())?, memdesc(slice.result())?);
    same_buffer(src, result)?;
    let (from, to, offsets) = (src.shape(), result.shape(), slice.offsets());
    if offsets.len() != from.len() || to.len() != from.len() {
        return Err(format!(
            "offsets {offsets:?} and result shape {to:?} must have the rank {} of the source",
            from.len()
        ));
    }
    if src.encoding() != result.encoding() {
        return Err(format!(
            "result must have the layout {} of the source, but has {}",
            src.encoding(),
            result.encoding()
        ));
    }
    if src.alloc_shape() != result.alloc_shape() {
        return Err(format!(
            "result must be of the allocation {:?}, but is of {:?}",
            src.alloc_shape(),
            result.alloc_shape()
        ));
    }
    let value = super::attrs::encoding(src.encoding())?;
    let skip = from.len() - value.rank().min(from.len());
    let mut cut = Vec::new();
    for (dim, ((from, to), offset)) in from.iter().zip(&to).zip(&offsets).enumerate() {
        let offset = i64::from(*offset);
        if offset < 0 || offset + to > *from {
            return Err(format!(
                "elements {offset} to {} of dimension {dim} are outside of its {from}",
                offset + to
            ));
        }
        // A number of whole buffers may begin at any one.
        if dim >= skip && offset % to != 0 {
            return Err(format!("offset {offset} of dimension {dim} must be a multiple of its size {to}"));
        }
        if from != to {
            cut.push(dim);
        }
    }
    if cut.is_empty() || !value.is_shared() {
        return Ok(());
    }
    match value {
        Encoding::PaddedShared(_) | Encoding::PartitionedShared(_)
            if skip > 0 && cut.iter().any(|dim| *dim >= skip) =>
        {
            Err(format!("a buffer of buffers with the layout {} cannot be cut inside", src.encoding()))
        }
        _ => unswizzled(src, &to[skip..]),
    }
}

/// Whether parts of `src` of `shape`, along dimensions of its layout, are made of whole tiles of its swizzle.
pub fn is_cut_between_tiles(src: MemDescType<'_>, shape: &[i64]) -> bool {
    unswizzled(src, shape).is_ok()
}

/// A part must be made of whole tiles of the swizzle: the offset of a row in
/// it must not depend on where it was cut off.
fn unswizzled(src: MemDescType<'_>, to: &[i64]) -> VerifyResult {
    let alloc = src.alloc_shape();
    let alloc = &alloc[alloc.len() - to.len()..];
    let layout = to_linear_layout(src.encoding(), alloc)?;
    let Ok(inverse) = layout.invert() else { return Ok(()) };
    // Bases that lead into another part must move nothing within this one.
    for (dim, (size, whole)) in to.iter().zip(alloc).enumerate() {
        let mut step = *size;
        while step < *whole {
            let place = inverse.apply(&[(Dim::out(dim), step as u64)]).map_err(|err| err.to_string())?;
            let offset = place.iter().find(|(dim, _)| *dim == Dim::OFFSET).map_or(0, |(_, value)| *value);
            if offset.count_ones() > 1 {
                return Err(format!(
                    "dimension {dim} is cut to {size} elements, inside of the pattern by which {} is swizzled",
                    src.encoding()
                ));
            }
            step *= 2;
        }
    }
    Ok(())
}

pub(super) fn memdesc_reshape(op: Op<'_>) -> VerifyResult {
    let reshape = MemDescReshapeOp::of(op);
    let (src, result) = (memdesc(reshape.src())?, memdesc(reshape.result())?);
    same_buffer(src, result)?;
    same_mutability(src, result)?;
    let (from, to) = (src.shape(), result.shape());
    if from.iter().product::<i64>() != to.iter().product::<i64>() {
        return Err(format!("source has the shape {from:?}, whose number of elements is not that of {to:?}"));
    }
    if src.alloc_shape() != from {
        return Err(format!("source must be a whole allocation, but is {from:?} of {:?}", src.alloc_shape()));
    }
    if result.alloc_shape() != to {
        return Err(format!(
            "result must be a whole allocation, but is {to:?} of {:?}",
            result.alloc_shape()
        ));
    }
    let inferred = infer_memdesc::reshaped(src, &to)?;
    if infer_memdesc::same_layout(inferred, result) {
        Ok(())
    } else {
        Err(format!(
            "result must have a layout equivalent to {}, but has {}",
            inferred.encoding(),
            result.encoding()
        ))
    }
}

pub(super) fn memdesc_reinterpret(op: Op<'_>) -> VerifyResult {
    let view = MemDescReinterpretOp::of(op);
    let (src, result) = (memdesc(view.src())?, memdesc(view.result())?);
    if src.space() != result.space() {
        return Err(format!("result is in {}, but the source is in {}", result.space(), src.space()));
    }
    same_mutability(src, result)?;
    if result.shape() != result.alloc_shape() {
        return Err(format!(
            "result must not be a part of an allocation, but is of {:?}",
            result.alloc_shape()
        ));
    }
    if !src.is_in_shared_memory() {
        return Ok(());
    }
    let padded = |ty: MemDescType<'_>| -> Result<bool, String> {
        Ok(match super::attrs::encoding(ty.encoding())? {
            Encoding::PaddedShared(_) => true,
            Encoding::PartitionedShared(e) => matches!(*e.partition_layout, Encoding::PaddedShared(_)),
            _ => false,
        })
    };
    if padded(src)? != padded(result)? {
        return Err("source and result must both have a padded layout, or neither".to_owned());
    }
    if padded(src)? && src.shape() != src.alloc_shape() {
        return Err("a part of a padded buffer cannot be reinterpreted".to_owned());
    }
    let bytes = |ty: MemDescType<'_>| {
        let bits = crate::tt::types::scalar_bits(ty.element()).unwrap_or(8);
        ty.shape().iter().product::<i64>().saturating_mul(i64::from(bits)) / 8
    };
    if bytes(result) > bytes(src) {
        return Err(format!("result has {} bytes, but the source has only {}", bytes(result), bytes(src)));
    }
    Ok(())
}

pub(super) fn warp_specialize(op: Op<'_>) -> VerifyResult {
    let ws = WarpSpecializeOp::of(op);
    let warps = ws.partition_num_warps();
    let Some(partitions) = ws.partitions() else {
        return Err("expected `ttg.warp_specialize.partitions` in its second region".to_owned());
    };
    let regions = partitions.partition_regions().count();
    if regions != warps.len() {
        return Err(format!("has {regions} partitions, but `partitionNumWarps` has {} entries", warps.len()));
    }
    for (i, warps) in warps.iter().enumerate() {
        if *warps <= 0 || warps.count_ones() != 1 {
            return Err(format!("partition #{i} must have a power of two of warps, but has {warps}"));
        }
    }
    if let Some(ids) = ws.warp_group_start_ids()
        && ids.len() != warps.len()
    {
        return Err(format!("`warpGroupStartIds` has {} entries for {} partitions", ids.len(), warps.len()));
    }
    if op.ancestor(|outer| outer.is(WarpSpecializeOp::DEF)).is_some() {
        return Err("cannot be inside of another `ttg.warp_specialize`".to_owned());
    }
    Ok(())
}

pub(super) fn warp_specialize_partitions(op: Op<'_>) -> VerifyResult {
    let partitions = WarpSpecializePartitionsOp::of(op);
    let captures: Vec<Type<'_>> = partitions.explicit_captures().map(Value::ty).collect();
    for (i, region) in partitions.partition_regions().enumerate() {
        let Some(block) = region.first_block() else { continue };
        if block.num_args() != captures.len() {
            return Err(format!(
                "partition #{i} has {} arguments, but {} values are captured",
                block.num_args(),
                captures.len()
            ));
        }
        for (k, (arg, capture)) in block.args().zip(&captures).enumerate() {
            if arg.ty() != *capture {
                return Err(format!(
                    "argument #{k} of partition #{i} has the type '{}', but what is captured has '{capture}'",
                    arg.ty()
                ));
            }
        }
    }
    Ok(())
}

pub(super) fn warp_yield(op: Op<'_>) -> VerifyResult {
    let Some(ws) = op.parent().and_then(WarpSpecializeOp::cast) else {
        return Err("must end the default region of `ttg.warp_specialize`".to_owned());
    };
    let results: Vec<Type<'_>> = ws.op().results().map(Value::ty).collect();
    if results.len() != op.num_operands() {
        return Err(format!("has {} operands, but there are {} results", op.num_operands(), results.len()));
    }
    for (i, (operand, result)) in op.operands().zip(results).enumerate() {
        if operand.ty() != result {
            return Err(format!(
                "operand #{i} has the type '{}', but the result has '{result}'",
                operand.ty()
            ));
        }
    }
    Ok(())
}
