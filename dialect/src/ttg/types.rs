//! Types: memory descriptors and tokens of asynchronous operations.

use super::attrs::{SHARED_MEMORY, encoding};
use crate::encoding::tensor_memory::TENSOR_MEMORY;
use linear_layout::{Encoding, LinearLayout};
use mlir_host::asm::Punct;
use mlir_host::def::{TypeConstraint, TypeDef, VerifyResult};
use mlir_host::dialect::hosted_type;
use mlir_host::ir::{Attr, Type};

/// `!ttg.async.token`: orders an asynchronous operation before what waits for it.
pub static ASYNC_TOKEN: TypeDef =
    TypeDef { summary: "orders asynchronous operations", ..TypeDef::new("ttg", "async.token") };

/// `!ttg.memdesc<2x128x64xf16, #shared, #smem, mutable, 3x128x64>`: a view of
/// a buffer in shared or tensor memory. The allocation's shape is spelled
/// where it differs from the view's.
pub static MEMDESC: TypeDef = TypeDef {
    summary: "view of a buffer in shared or tensor memory",
    parse: |parser| {
        let ctx = parser.context();
        parser.punct(Punct::Less)?;
        let shape = parser.dims(true)?;
        let element = parser.ty()?;
        parser.punct(Punct::Comma)?;
        let layout = parser.attr(None)?;
        parser.punct(Punct::Comma)?;
        let space = parser.attr(None)?;
        let (mut mutable, mut alloc) = (false, None);
        if parser.opt_punct(Punct::Comma) {
            mutable = parser.opt_keyword("mutable");
            if !mutable || parser.opt_punct(Punct::Comma) {
                alloc = Some(parser.dims(false)?);
            }
        }
        parser.punct(Punct::Greater)?;
        let mut alloc = alloc.unwrap_or_else(|| shape.clone());
        // Triton 3.4 and 3.5 also say how many buffers there are of which the view is one.
        alloc.drain(..alloc.len().saturating_sub(shape.len()));
        Ok(vec![
            Attr::i64_array(ctx, &shape),
            Attr::type_of(element),
            layout,
            space,
            Attr::bool(ctx, mutable),
            Attr::i64_array(ctx, &alloc),
        ])
    },
    print: |params, printer| {
        let [shape, element, layout, space, mutable, alloc] = params else { return };
        printer.text("<");
        for dim in shape.as_i64_array().unwrap_or_default() {
            printer.text(&format!("{dim}x"));
        }
        if let Some(element) = element.as_type() {
            printer.ty(element);
        }
        printer.text(", ");
        printer.attr(*layout);
        printer.text(", ");
        printer.attr(*space);
        if mutable.as_bool() == Some(true) {
            printer.text(", mutable");
        }
        if alloc != shape {
            printer.text(", ");
            printer.join("x", alloc.as_i64_array().unwrap_or_default(), |printer, dim| {
                printer.text(&dim.to_string());
            });
        }
        printer.text(">");
    },
    verify: Some(|_, params| verify_memdesc(params)),
    ..TypeDef::new("ttg", "memdesc")
};

/// All types of this dialect.
pub static TYPES: &[&TypeDef] = &[&ASYNC_TOKEN, &MEMDESC];

/// A memory descriptor.
pub static MEMDESC_TYPE: TypeConstraint =
    TypeConstraint::hosted("memory descriptor", |ty| ty.is(&MEMDESC), &MEMDESC);
/// A token.
pub static TOKEN_TYPE: TypeConstraint = TypeConstraint::only(
    "async token",
    |ty| ty.is(&ASYNC_TOKEN),
    // Only asked for while an operation of this dialect is parsed or built; no verifier takes the other type.
    |ctx| hosted_type(ctx, &ASYNC_TOKEN, &[]).unwrap_or_else(|| Type::none(ctx)),
);

/// A memory descriptor type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemDescType<'c>(Type<'c>);

impl<'c> MemDescType<'c> {
    /// `ty` as a memory descriptor.
    pub fn cast(ty: Type<'c>) -> Option<Self> {
        (ty.is(&MEMDESC) && ty.params().len() == 6).then_some(Self(ty))
    }
    /// A view of a whole allocation; `None` when the verifier refuses it,
    /// which is reported at an unknown location.
    pub fn new(
        shape: &[i64],
        element: Type<'c>,
        encoding: Attr<'c>,
        space: Attr<'c>,
        mutable: bool,
    ) -> Option<Self> {
        Self::view(shape, element, encoding, space, mutable, shape)
    }
    /// A view of a part of an allocation; `None` as for [`MemDescType::new`].
    pub fn view(
        shape: &[i64],
        element: Type<'c>,
        encoding: Attr<'c>,
        space: Attr<'c>,
        mutable: bool,
        alloc: &[i64],
    ) -> Option<Self> {
        let ctx = element.context();
        let params = [
            Attr::i64_array(ctx, shape),
            Attr::type_of(element),
            encoding,
            space,
            Attr::bool(ctx, mutable),
            Attr::i64_array(ctx, alloc),
        ];
        hosted_type(ctx, &MEMDESC, &params).map(Self)
    }
    /// The type.
    pub fn ty(self) -> Type<'c> {
        self.0
    }
    /// Shape of the view.
    pub fn shape(self) -> Vec<i64> {
        self.0.params()[0].as_i64_array().unwrap_or_default()
    }
    /// Number of dimensions of the view.
    pub fn rank(self) -> usize {
        self.shape().len()
    }
    /// Element type.
    pub fn element(self) -> Type<'c> {
        self.0.params()[1].as_type().unwrap_or(self.0)
    }
    /// Layout of the buffer.
    pub fn encoding(self) -> Attr<'c> {
        self.0.params()[2]
    }
    /// Where the buffer is.
    pub fn space(self) -> Attr<'c> {
        self.0.params()[3]
    }
    /// Whether the buffer may be written after it was made.
    pub fn mutable(self) -> bool {
        self.0.params()[4].as_bool() == Some(true)
    }
    /// Shape of the allocation.
    pub fn alloc_shape(self) -> Vec<i64> {
        self.0.params()[5].as_i64_array().unwrap_or_default()
    }
    /// Whether the buffer is in shared memory.
    pub fn is_in_shared_memory(self) -> bool {
        self.space().is(&SHARED_MEMORY)
    }
    /// The same view of another element type and layout of the same shape.
    pub fn with_encoding(self, encoding: Attr<'c>) -> Option<Self> {
        Self::view(&self.shape(), self.element(), encoding, self.space(), self.mutable(), &self.alloc_shape())
    }
}

fn verify_memdesc(params: &[Attr<'_>]) -> VerifyResult {
    let [shape, element, layout, space, mutable, alloc] = params else {
        return Err(format!("a memory descriptor has 6 parameters, got {}", params.len()));
    };
    let (Some(shape), Some(element), Some(_), Some(alloc)) =
        (shape.as_i64_array(), element.as_type(), mutable.as_bool(), alloc.as_i64_array())
    else {
        return Err("a parameter of the memory descriptor is of the wrong kind".to_owned());
    };
    if shape.is_empty() {
        return Err("a memory descriptor must have at least one dimension".to_owned());
    }
    if alloc.len() < shape.len() {
        return Err(format!("the allocation {alloc:?} must have at least the rank of the shape {shape:?}"));
    }
    let outside = alloc[alloc.len() - shape.len()..].iter().zip(&shape).any(|(alloc, size)| size > alloc);
    if outside || shape.iter().chain(&alloc).any(|size| *size <= 0) {
        return Err(format!("the shape {shape:?} must not be empty, and within the allocation {alloc:?}"));
    }
    let Ok(value) = encoding(*layout) else {
        return Err(format!("{layout} does not lay out a buffer"));
    };
    let rank = value.rank();
    if shape.len() != rank && shape.len() != rank + 1 {
        // A buffer may be one of several: the leading dimension counts them and is not laid out.
        return Err(format!(
            "the shape {shape:?} must have the rank {rank} of its layout, or one dimension more"
        ));
    }
    let laid_out = &alloc[alloc.len() - rank..];
    powers_of_two("shape", &shape[shape.len() - rank..], &shape)?;
    powers_of_two("allocation", laid_out, &alloc)?;
    if value.is_shared() {
        if !space.is(&SHARED_MEMORY) {
            return Err(format!("a layout of shared memory needs the space #ttg.shared_memory, got {space}"));
        }
        let bits = crate::tt::types::scalar_bits(element)
            .ok_or_else(|| format!("elements must be numbers or pointers, got '{element}'"))?;
        if bits % 8 != 0 {
            return Err(format!("elements in shared memory must fill whole bytes, got {bits} bits"));
        }
        return fits(&value, laid_out);
    }
    if value.is_distributed() {
        return Err(format!("{layout} does not lay out a buffer"));
    }
    verify_tensor_memory(&value, &shape, element, *space)
}

/// Whether a layout of shared memory is for an allocation of this shape.
fn fits(value: &Encoding, alloc: &[i64]) -> VerifyResult {
    match value {
        Encoding::NvmmaShared(e) if e.swizzling_byte_width > 0 => {
            let contiguous = if e.transposed { 0 } else { alloc.len().saturating_sub(1) };
            let size = alloc.get(contiguous).copied().unwrap_or(1);
            // Packed fp4 pairs take twice their size.
            let bits = if e.fp4_padded { 2 * e.element_bit_width } else { e.element_bit_width };
            let needed = 8 * e.swizzling_byte_width / bits.max(1);
            let blocks = linear_layout_blocks(value, contiguous);
            if (size as u64 / blocks) < needed {
                return Err(format!(
                    "dimension {contiguous} of the allocation {alloc:?} must have at least {needed} elements \
                     in a block to swizzle {} bytes",
                    e.swizzling_byte_width
                ));
            }
            Ok(())
        }
        Encoding::SharedLinear(e) => covers(&e.layout, alloc),
        Encoding::PaddedShared(e) => covers(&e.layout, alloc),
        _ => Ok(()),
    }
}

/// Blocks among which dimension `dim` is divided.
fn linear_layout_blocks(value: &Encoding, dim: usize) -> u64 {
    1 << value
        .cga_layout()
        .iter()
        .filter(|basis| basis.get(dim).is_some_and(|step| *step != 0))
        .count()
        .min(32)
}

fn covers(layout: &LinearLayout, alloc: &[i64]) -> VerifyResult {
    let sizes: Vec<u64> = layout.out_dims().filter_map(|dim| layout.out_size(dim)).collect();
    if sizes.iter().copied().eq(alloc.iter().map(|size| *size as u64)) {
        Ok(())
    } else {
        Err(format!("the allocation {alloc:?} must have the shape {sizes:?} of its layout"))
    }
}

fn powers_of_two(what: &str, sizes: &[i64], shape: &[i64]) -> VerifyResult {
    match sizes.iter().find(|size| size.count_ones() != 1) {
        Some(size) => {
            Err(format!("the {what} {shape:?} must have powers of two where it is laid out, got {size}"))
        }
        None => Ok(()),
    }
}

fn verify_tensor_memory(value: &Encoding, shape: &[i64], element: Type<'_>, space: Attr<'_>) -> VerifyResult {
    if !space.is(&TENSOR_MEMORY) {
        return Err(format!("a layout of tensor memory needs the space #ttng.tensor_memory, got {space}"));
    }
    let bits = element.bits().ok_or_else(|| format!("elements must be numbers, got '{element}'"))?;
    match value {
        Encoding::TensorMemory(e) => {
            let width = u64::from(bits) * e.col_stride;
            if bits < 8 || width > 32 {
                return Err(format!(
                    "elements in tensor memory have from 8 bits to 32 / colStride = {}, got {bits}",
                    32 / e.col_stride.max(1)
                ));
            }
            let rows = shape[shape.len() - 2] as u64 / linear_layout_blocks(value, 0);
            if rows < e.block_m {
                return Err(format!(
                    "the shape {shape:?} must have at least blockM = {} rows, got {rows}",
                    e.block_m
                ));
            }
            // Where CTAs divide columns, each has a whole block.
            let (parts, columns) = (linear_layout_blocks(value, 1), shape[shape.len() - 1] as u64);
            if parts > 1 && columns / parts < e.block_n.min(columns) {
                return Err(format!(
                    "the shape {shape:?} must give each of {parts} CTAs at least blockN = {} columns, got {}",
                    e.block_n.min(columns),
                    columns / parts
                ));
            }
            Ok(())
        }
        Encoding::TensorMemoryScales(_) => {
            if shape.len() != 2 {
                return Err(format!("scales in tensor memory must have 2 dimensions, got {shape:?}"));
            }
            if bits != 8 {
                return Err(format!("scales in tensor memory must have 8 bits, got {bits}"));
            }
            Ok(())
        }
        other => Err(format!("#ttg.{} does not lay out a buffer", other.mnemonic())),
    }
}
