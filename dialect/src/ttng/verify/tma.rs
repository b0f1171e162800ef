//! Verifiers of copies through tensor descriptors.

use super::super::attrs::{CACHE_POLICY, CachePolicy};
use super::super::enums::CacheEvictionPriority;
use super::super::ops::*;
use super::super::types::TensorDescIm2ColType;
use super::{bits, cga_layout, cga_must_be, memdesc, num_ctas, one_per_cta, tensor, writable};
use crate::tt::enums::{CacheModifier, DescriptorReduceKind};
use crate::tt::types::TensorDescType;
use crate::ttg::attrs::encoding;
use crate::ttg::layout::to_linear_layout;
use crate::ttg::module_attrs;
use crate::ttg::types::MemDescType;
use linear_layout::encoding::NvmmaShared;
use linear_layout::{Dim, Encoding};
use mlir_host::def::VerifyResult;
use mlir_host::ir::{Attr, FloatKind, Op, Type, Value};

/// What the verifiers ask a descriptor.
struct Desc<'c> {
    shape: Vec<i64>,
    element: Type<'c>,
    layout: Option<Attr<'c>>,
    im2col: bool,
}

fn signless(ty: Type<'_>) -> Type<'_> {
    ty.int_bits().map_or(ty, |bits| Type::int(ty.context(), bits))
}

fn desc(value: Value<'_>) -> Result<Desc<'_>, String> {
    let ty = value.ty();
    if let Some(desc) = TensorDescType::cast(ty) {
        let (shape, element) = (desc.shape(), desc.element());
        return Ok(Desc { shape, element, layout: desc.layout(), im2col: false });
    }
    match TensorDescIm2ColType::cast(ty) {
        Some(desc) => {
            Ok(Desc { shape: desc.shape(), element: desc.element(), layout: desc.layout(), im2col: true })
        }
        None => Err(format!("expected a tensor descriptor, got '{ty}'")),
    }
}

fn cache_policy(attr: Option<Attr<'_>>) -> VerifyResult {
    let Some(attr) = attr else { return Ok(()) };
    let modifier = if let Some(policy) = crate::tt::attrs::CachePolicy::decode(attr) {
        policy.modifier
    } else if let Some(policy) = CachePolicy::decode(attr) {
        if policy.l1 != CacheEvictionPriority::None {
            return Err(format!(
                "copies through descriptors do not go through L1: l1 has no meaning in {attr}"
            ));
        }
        if policy.l2_prefetch_size.is_some() {
            return Err(format!("copies through descriptors cannot prefetch: l2_prefetch_size in {attr}"));
        }
        policy.modifier
    } else {
        return Err(format!(
            "cachePolicy must be a #tt.cache_policy or #ttng.{}, got {attr}",
            CACHE_POLICY.mnemonic
        ));
    };
    if modifier != CacheModifier::None {
        return Err(format!("copies through descriptors have no cache modifiers, got {attr}"));
    }
    Ok(())
}

fn coordinates(desc: &Desc<'_>, n: usize) -> VerifyResult {
    if desc.im2col {
        return match n {
            3..=5 => Ok(()),
            _ => Err(format!("an im2col descriptor needs 3 to 5 coordinates, got {n}")),
        };
    }
    if n != desc.shape.len() {
        return Err(format!(
            "expected {} coordinates, one for each dimension of the block, got {n}",
            desc.shape.len()
        ));
    }
    if n == 0 || n > 5 {
        return Err(format!("expected 1 to 5 coordinates, got {n}"));
    }
    Ok(())
}

fn im2col_offsets(desc: &Desc<'_>, coordinates: usize, offsets: usize) -> VerifyResult {
    let wanted = if desc.im2col { coordinates.saturating_sub(2) } else { 0 };
    if offsets == wanted {
        return Ok(());
    }
    Err(if desc.im2col {
        format!("an im2col descriptor with {coordinates} coordinates needs {wanted} offsets, got {offsets}")
    } else {
        format!("only im2col descriptors take offsets, got {offsets}")
    })
}

/// The block has the elements of the buffer.
fn same_block(desc: &Desc<'_>, buffer: MemDescType<'_>) -> VerifyResult {
    if signless(desc.element) != buffer.element() {
        return Err(format!(
            "the block has elements of '{}', but the buffer has '{}'",
            signless(desc.element),
            buffer.element()
        ));
    }
    let count = |shape: &[i64]| shape.iter().try_fold(1i64, |n, dim| n.checked_mul(*dim));
    let (block, mine) = (count(&desc.shape), count(&buffer.shape()));
    if block != mine {
        return Err(format!(
            "the block {:?} and the buffer {:?} must have the same number of elements",
            desc.shape,
            buffer.shape()
        ));
    }
    Ok(())
}

/// What the hardware sees of a layout.
fn atom(e: &NvmmaShared) -> (bool, u64, u64, bool) {
    (e.transposed, e.swizzling_byte_width, e.element_bit_width, e.fp4_padded)
}

/// The layout of the buffer is the descriptor's, and one that copies have.
fn same_layout(desc: &Desc<'_>, buffer: MemDescType<'_>) -> Result<NvmmaShared, String> {
    let Encoding::NvmmaShared(mine) = encoding(buffer.encoding())? else {
        return Err(format!("the buffer must have an #ttg.nvmma_shared layout, got {}", buffer.encoding()));
    };
    let theirs = match desc.layout.map(encoding) {
        Some(Ok(Encoding::NvmmaShared(theirs))) => Some(theirs),
        _ => None,
    };
    if theirs.as_ref().map(atom) != Some(atom(&mine)) {
        let given = desc.layout.map_or("none".to_owned(), |layout| layout.to_string());
        return Err(format!(
            "the layout of the descriptor must be that of the buffer, {}, got {given}",
            buffer.encoding()
        ));
    }
    if buffer.rank() != mine.rank {
        return Err(format!(
            "the buffer has {} dimensions, but its layout {} has {}",
            buffer.rank(),
            buffer.encoding(),
            mine.rank
        ));
    }
    if mine.transposed {
        return Err(format!("the layout must not be transposed, got {}", buffer.encoding()));
    }
    Ok(mine)
}

/// A barrier for each CTA, or for each pair where pairs work together.
fn completion_barrier(op: Op<'_>, barrier: MemDescType<'_>) -> VerifyResult {
    let Some(module) = module_attrs::module(op) else { return Ok(()) };
    let Some(pairs) = module.discardable_attr("ttng.two-ctas").and_then(Attr::as_bool) else { return Ok(()) };
    let ctas = num_ctas(op);
    if pairs && ctas >= 2 {
        let mut of_pairs = vec![vec![0]];
        of_pairs.extend(one_per_cta(ctas / 2));
        if cga_layout(barrier.encoding())? == of_pairs {
            return Ok(());
        }
    }
    cga_must_be("the barrier", barrier, &one_per_cta(ctas))
}

fn multicast(requested: bool, buffer: MemDescType<'_>) -> VerifyResult {
    let cga = cga_layout(buffer.encoding())?;
    let copies = cga.iter().any(|basis| basis.iter().all(|coordinate| *coordinate == 0));
    if requested && !copies {
        return Err(format!(
            "multicast needs a layout that gives several CTAs copies, got {}",
            buffer.encoding()
        ));
    }
    Ok(())
}

fn load(
    op: Op<'_>,
    desc: &Desc<'_>,
    barrier: Value<'_>,
    result: MemDescType<'_>,
) -> Result<NvmmaShared, String> {
    completion_barrier(op, memdesc(barrier)?)?;
    writable(result)?;
    same_layout(desc, result)
}

fn store(desc: &Desc<'_>, src: MemDescType<'_>) -> VerifyResult {
    if let Encoding::NvmmaShared(e) = encoding(src.encoding())?
        && e.fp4_padded
    {
        return Err("padded fp4 can be loaded but not stored".into());
    }
    same_layout(desc, src).map(|_| ())
}

/// A block from global to shared memory.
pub fn tma_load(op: Op<'_>) -> VerifyResult {
    let copy = AsyncTmaCopyGlobalToLocalOp::of(op);
    cache_policy(copy.cache_policy())?;
    if copy.is_volatile() {
        return Err("copies through descriptors cannot be volatile".into());
    }
    let (desc, result) = (desc(copy.desc())?, memdesc(copy.result())?);
    let n = copy.coord().count();
    coordinates(&desc, n)?;
    same_block(&desc, result)?;
    load(op, &desc, copy.barrier(), result)?;
    im2col_offsets(&desc, n, copy.offsets().count())?;
    multicast(copy.multicast().is_some(), result)
}

/// A block from shared to global memory.
pub fn tma_store(op: Op<'_>) -> VerifyResult {
    let copy = AsyncTmaCopyLocalToGlobalOp::of(op);
    cache_policy(copy.cache_policy())?;
    let (desc, src) = (desc(copy.desc())?, memdesc(copy.src())?);
    coordinates(&desc, copy.coord().count())?;
    same_block(&desc, src)?;
    store(&desc, src)
}

/// What the memory system can do to elements of a type.
pub fn reduces_in_memory(kind: DescriptorReduceKind, element: Type<'_>) -> bool {
    use DescriptorReduceKind::*;
    let half = matches!(element.float_kind(), Some(FloatKind::F16 | FloatKind::BF16));
    let integer = matches!(element.int_bits(), Some(32 | 64));
    match kind {
        // Of 64 bits there are only unsigned sums.
        Add => {
            half || element.float_kind() == Some(FloatKind::F32) || (integer && element.to_string() != "si64")
        }
        Min | Max => half || integer,
        And | Or | Xor => integer,
        Inc | Dec => false,
    }
}

/// A block combined with global memory.
pub fn tma_reduce(op: Op<'_>) -> VerifyResult {
    let reduce = AsyncTmaReduceOp::of(op);
    let (desc, src) = (desc(reduce.desc())?, memdesc(reduce.src())?);
    coordinates(&desc, reduce.coord().count())?;
    same_block(&desc, src)?;
    store(&desc, src)?;
    if reduces_in_memory(reduce.kind(), desc.element) {
        return Ok(());
    }
    Err(format!("there is no {} of elements of '{}'", reduce.kind().keyword(), desc.element))
}

/// Rows between a descriptor and a buffer.
fn rows(desc: &Desc<'_>, buffer: MemDescType<'_>, indices: Value<'_>) -> VerifyResult {
    let [1, columns] = desc.shape[..] else {
        return Err(format!("the block of the descriptor must be one row, got {:?}", desc.shape));
    };
    let indices = tensor(indices)?;
    let [count] = indices.shape()[..] else {
        return Err(format!("x offsets must be a vector, got '{}'", indices.ty()));
    };
    let [mine, width] = buffer.shape()[..] else {
        return Err(format!("the buffer must be a matrix, got '{}'", buffer.ty()));
    };
    let element = signless(desc.element);
    if buffer.element() != element {
        return Err(format!(
            "the block has elements of '{element}', but the buffer has '{}'",
            buffer.element()
        ));
    }
    let size = i64::from(bits(element));
    if size > 32 {
        return Err(format!("rows can be moved of elements of up to 32 bits, got '{element}'"));
    }
    if mine < 8 {
        return Err(format!("the buffer must have at least 8 rows, got {mine}"));
    }
    let least = 32 / size.max(1) * 8;
    if width < least {
        return Err(format!("rows of '{element}' must have at least {least} columns, got {width}"));
    }
    if mine != count {
        return Err(format!("the buffer must have one row for each of {count} x offsets, got {mine}"));
    }
    if width != columns {
        return Err(format!("the buffer must have the {columns} columns of the block, got {width}"));
    }
    let Some(attr) = indices.encoding() else { return Ok(()) };
    let layout = to_linear_layout(attr, &[count])?;
    if layout.columns_of(Dim::REGISTER).get(..2) != Some(&[1, 2]) {
        return Err("each thread must hold 4 consecutive x offsets: an instruction takes as many".into());
    }
    if layout.columns_of(Dim::LANE).iter().any(|column| *column != 0) {
        return Err("all threads of a warp must hold the same x offsets".into());
    }
    let of_rows: Vec<Vec<u64>> =
        cga_layout(buffer.encoding())?.iter().map(|basis| basis[..1.min(basis.len())].to_vec()).collect();
    let given = cga_layout(attr)?;
    if given != of_rows {
        return Err(format!("x offsets must be divided among CTAs as the rows, {of_rows:?}, got {given:?}"));
    }
    Ok(())
}

/// Rows from global to shared memory.
pub fn tma_gather(op: Op<'_>) -> VerifyResult {
    let gather = AsyncTmaGatherOp::of(op);
    cache_policy(gather.cache_policy())?;
    let (desc, result) = (desc(gather.desc())?, memdesc(gather.result())?);
    if load(op, &desc, gather.barrier(), result)?.fp4_padded {
        return Err("rows of padded fp4 cannot be gathered".into());
    }
    multicast(gather.multicast().is_some(), result)?;
    rows(&desc, result, gather.x_offsets())
}

/// Rows from shared to global memory.
pub fn tma_scatter(op: Op<'_>) -> VerifyResult {
    let scatter = AsyncTmaScatterOp::of(op);
    cache_policy(scatter.cache_policy())?;
    let (desc, src) = (desc(scatter.desc())?, memdesc(scatter.src())?);
    store(&desc, src)?;
    rows(&desc, src, scatter.x_offsets())
}

/// Sizes of a descriptor that is made.
pub fn tensormap_create(op: Op<'_>) -> VerifyResult {
    let create = TensormapCreateOp::of(op);
    let rank = create.box_dim().count();
    if rank == 0 {
        return Err("a box must have at least one dimension".into());
    }
    let check = |what: &str, n: usize, wanted: usize| {
        if n == wanted {
            Ok(())
        } else {
            Err(format!("a box of {rank} dimensions needs {wanted} {what}, got {n}"))
        }
    };
    check("global dimensions", create.global_dim().count(), rank)?;
    check("global strides", create.global_stride().count(), rank - 1)?;
    check("element strides", create.element_stride().count(), rank)
}
