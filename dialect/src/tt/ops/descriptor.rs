//! Descriptors of tensors in global memory, and accesses through them.

use crate::constraints::*;
use crate::tt::enums::{DescriptorReduceKind, PaddingOption};
use crate::tt::legacy::CACHE_HINTS;
use crate::tt::ops::global;
use crate::tt::traits::ON_TENSORS;
use crate::tt::verify;
use mlir_host::attrs::AnyAttr;
use mlir_host::def::{EffectKind, EffectOn, Effects};
use mlir_host::op;
use mlir_host::traits::Trait;

const READ: Effects = Effects::List(&[global(EffectKind::Read, EffectOn::Operand("desc"))]);
const READ_AND_WRITE: Effects = Effects::List(&[
    global(EffectKind::Read, EffectOn::Operand("desc")),
    global(EffectKind::Write, EffectOn::Operand("desc")),
]);

op! {
    /// Describes a tensor in global memory by its shape and strides.
    pub struct MakeTensorDescOp = "tt.make_tensor_descriptor" {
        operands: [base: PTR, shape[var]: I32, strides[var]: I64],
        results: [result: TENSOR_DESC],
        attrs: [padding[default "1 : i32"]: PaddingOption],
        traits: [Trait::Pure, Trait::SameVariadicOperandSize, ON_TENSORS],
        format: "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` type($base) `,` type($result)",
        with: { verify: Some(verify::make_tensor_descriptor) },
    }
}

op! {
    /// Loads the block at the given indices.
    pub struct DescriptorLoadOp = "tt.descriptor_load" {
        operands: [desc: TENSOR_DESC, indices[var]: I32],
        results: [result: TENSOR],
        attrs: [cache_policy("cachePolicy")[opt]: AnyAttr],
        traits: [ON_TENSORS],
        format: "$desc `[` $indices `]` legacy<CacheHints> attr-dict `:` qualified(type($desc)) `->` type($result)",
        with: { custom: &[CACHE_HINTS], verify: Some(verify::descriptor_load), effects: READ },
    }
}

op! {
    /// Stores a block at the given indices.
    pub struct DescriptorStoreOp = "tt.descriptor_store" {
        operands: [desc: TENSOR_DESC, src: TENSOR, indices[var]: I32],
        traits: [ON_TENSORS],
        format: "$desc `[` $indices `]` `,` $src attr-dict `:` qualified(type($desc)) `,` type($src)",
        with: { verify: Some(verify::descriptor_store), effects: READ_AND_WRITE },
    }
}

op! {
    /// Atomically combines a block with what is at the given indices.
    pub struct DescriptorReduceOp = "tt.descriptor_reduce" {
        operands: [desc: TENSOR_DESC, src: TENSOR, indices[var]: I32],
        attrs: [kind: DescriptorReduceKind],
        traits: [ON_TENSORS],
        format: "$kind `,` $desc `[` $indices `]` `,` $src attr-dict `:` qualified(type($desc)) `,` type($src)",
        with: { verify: Some(verify::descriptor_reduce), effects: READ_AND_WRITE },
    }
}

op! {
    /// Loads rows, each at its own index.
    pub struct DescriptorGatherOp = "tt.descriptor_gather" {
        operands: [desc: TENSOR_DESC, x_offsets: ROW_OFFSETS, y_offset: I32],
        results: [result: TENSOR],
        traits: [ON_TENSORS],
        format: "$desc `[` $x_offsets `,` $y_offset `]` attr-dict `:` functional-type(operands, results)",
        with: { verify: Some(verify::descriptor_gather), effects: READ },
    }
}

op! {
    /// Stores rows, each at its own index.
    pub struct DescriptorScatterOp = "tt.descriptor_scatter" {
        operands: [desc: TENSOR_DESC, x_offsets: ROW_OFFSETS, y_offset: I32, src: TENSOR],
        traits: [ON_TENSORS],
        format: "$desc `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict `:` type(operands)",
        with: { verify: Some(verify::descriptor_scatter), effects: READ_AND_WRITE },
    }
}
