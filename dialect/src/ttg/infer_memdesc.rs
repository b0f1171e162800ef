//! Result types of views of memory descriptors.

use super::infer;
pub use super::infer::alignment;
use super::layout::equivalent;
use super::types::MemDescType;
use mlir_host::def::Inputs;
use mlir_host::ir::Type;

/// Whether an inferred type may stand for the given one: the layouts may be
/// spelled differently.
pub fn compatible(inferred: Type<'_>, given: Type<'_>) -> bool {
    let (Some(a), Some(b)) = (MemDescType::cast(inferred), MemDescType::cast(given)) else {
        return inferred == given;
    };
    a.shape() == b.shape()
        && a.element() == b.element()
        && a.space() == b.space()
        && a.mutable() == b.mutable()
        && a.alloc_shape() == b.alloc_shape()
        && same_layout(a, b)
}

/// Whether two descriptors of one shape lay it out alike.
pub fn same_layout(a: MemDescType<'_>, b: MemDescType<'_>) -> bool {
    if a.encoding() == b.encoding() {
        return true;
    }
    // The leading dimension of a buffer of buffers is not laid out.
    let Ok(value) = super::attrs::encoding(a.encoding()) else { return false };
    let alloc = a.alloc_shape();
    let Some(skip) = alloc.len().checked_sub(value.rank()) else { return false };
    equivalent(a.encoding(), b.encoding(), &alloc[skip..])
}

/// The operand's type with its dimensions permuted.
pub fn trans<'c>(inputs: &Inputs<'_, 'c>) -> Result<Vec<Type<'c>>, String> {
    let operand = inputs.operands.first().ok_or("expects one operand")?;
    let src = MemDescType::cast(operand.ty()).ok_or("operand must be a memory descriptor")?;
    let order =
        (inputs.attr)("order").and_then(|order| order.as_i32_array()).ok_or("requires attribute 'order'")?;
    Ok(vec![transposed(src, &order)?.ty()])
}

/// The descriptor with its dimensions permuted: result dimension `i` is operand dimension `order[i]`.
pub fn transposed<'c>(src: MemDescType<'c>, order: &[i32]) -> Result<MemDescType<'c>, String> {
    let shape = src.shape();
    if !crate::tt::infer::is_permutation(order, shape.len()) {
        return Err(format!("order {order:?} must be a permutation of the {} dimension(s)", shape.len()));
    }
    let permute = |sizes: &[i64]| -> Vec<i64> { order.iter().map(|dim| sizes[*dim as usize]).collect() };
    let alloc = src.alloc_shape();
    let (outer, inner) = alloc.split_at(alloc.len() - shape.len());
    let encoding = infer::trans(Some(src.encoding()), inner, order)?.ok_or("a buffer needs a layout")?;
    let alloc: Vec<i64> = outer.iter().copied().chain(permute(inner)).collect();
    MemDescType::view(&permute(&shape), src.element(), encoding, src.space(), src.mutable(), &alloc)
        .ok_or_else(|| format!("no descriptor is {} with its dimensions permuted by {order:?}", src.ty()))
}

/// The descriptor with another shape of as many elements.
pub fn reshaped<'c>(src: MemDescType<'c>, shape: &[i64]) -> Result<MemDescType<'c>, String> {
    use linear_layout::Encoding;
    use linear_layout::encoding::{PaddedShared, SharedLinear};
    let from = src.shape();
    let ctx = src.element().context();
    let value = super::attrs::encoding(src.encoding())?;
    let layout =
        infer::reshape_layout(&*super::layout::to_linear_layout(src.encoding(), &from)?, &from, shape)?;
    let made = match value {
        Encoding::PaddedShared(e) => Encoding::PaddedShared(PaddedShared { layout, ..e }),
        _ => Encoding::SharedLinear(SharedLinear { layout, alignment: alignment(&value) }),
    };
    let encoding = super::attrs::encoding_attr(ctx, &made)?;
    MemDescType::new(shape, src.element(), encoding, src.space(), src.mutable())
        .ok_or_else(|| format!("no descriptor is {} with the shape {shape:?}", src.ty()))
}
