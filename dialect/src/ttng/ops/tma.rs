//! Copies through tensor descriptors (PTX ISA, "cp.async.bulk.tensor").

use super::{reads_shared, writes_shared};
use crate::constraints::*;
use crate::interfaces::{MBARRIER, PREDICATED};
use crate::tt::enums::DescriptorReduceKind;
use crate::tt::ops::{GLOBAL_MEMORY, global};
use crate::tt::types::TENSOR_DESC as TENSOR_DESC_TYPE;
use crate::ttg::ops::MEM_WAIT;
use crate::ttg::types::MEMDESC_TYPE;
use crate::ttg::verify::ON_BUFFERS;
use crate::ttng::canonicalize;
use crate::ttng::types::{I16, TENSOR_DESC_IM2COL};
use crate::ttng::verify::{self, BARRIER};
use mlir_host::attrs::{AnyAttr, BoolAttr, I32Attr, UnitAttr};
use mlir_host::def::{AttrConstraint, AttrKind, Effect, EffectKind, EffectOn, Effects, TypeConstraint};
use mlir_host::ir::{Attr, Context, Type};
use mlir_host::op;
use mlir_host::traits::Trait;

/// A descriptor, tiled or im2col.
static ANY_TENSOR_DESC: TypeConstraint = TypeConstraint::new("a tensor descriptor, tiled or im2col", |ty| {
    ty.is(&TENSOR_DESC_TYPE) || ty.is(&TENSOR_DESC_IM2COL)
});
/// A tensor of row numbers.
static ROWS: TypeConstraint =
    TypeConstraint::new("ranked tensor of 32-bit signless integer values", |ty: Type<'_>| {
        ty.as_tensor().is_some_and(|tensor| tensor.element().is_int(32))
    });

const READS_DESC: Effect = global(EffectKind::Read, EffectOn::Operand("desc"));
const WRITES_DESC: Effect = global(EffectKind::Write, EffectOn::Operand("desc"));

op! {
    /// Copies a block from global to shared memory; a barrier counts the bytes.
    pub struct AsyncTmaCopyGlobalToLocalOp = "ttng.async_tma_copy_global_to_local" {
        operands: [
            desc: ANY_TENSOR_DESC, coord[var]: I32, offsets[var]: I16, barrier: MEMDESC_TYPE, result: MEMDESC_TYPE,
            pred: I1,
        ],
        attrs: [
            multicast[opt]: UnitAttr, cache_policy("cachePolicy")[opt]: AnyAttr,
            is_volatile("isVolatile")[default "false"]: BoolAttr,
        ],
        traits: [BARRIER, ON_BUFFERS],
        format: "$desc `[` $coord `]` (`offsets` `=` `[` $offsets^ `]`)? $result `,` $barrier `,` $pred attr-dict `:` qualified(type($desc)) `,` qualified(type($barrier)) `->` qualified(type($result))",
        with: {
            interfaces: &[MBARRIER, PREDICATED],
            canonicalize: &canonicalize::TMA_LOAD,
            verify: Some(verify::tma_load),
            effects: Effects::List(&[READS_DESC, writes_shared("barrier"), writes_shared("result")]),
        },
    }
}

op! {
    /// Copies a block from shared to global memory.
    pub struct AsyncTmaCopyLocalToGlobalOp = "ttng.async_tma_copy_local_to_global" {
        operands: [desc: TENSOR_DESC, coord[var]: I32, src: MEMDESC_TYPE],
        attrs: [cache_policy("cachePolicy")[opt]: AnyAttr],
        traits: [ON_BUFFERS],
        format: "$desc `[` $coord `]` $src attr-dict `:` qualified(type($desc)) `,` qualified(type($src))",
        with: {
            verify: Some(verify::tma_store),
            effects: Effects::List(&[READS_DESC, WRITES_DESC, reads_shared("src")]),
        },
    }
}

op! {
    /// Combines a block of global memory with one of shared memory, atomically per element.
    pub struct AsyncTmaReduceOp = "ttng.async_tma_reduce" {
        operands: [desc: TENSOR_DESC, coord[var]: I32, src: MEMDESC_TYPE],
        attrs: [kind: DescriptorReduceKind],
        traits: [ON_BUFFERS],
        format: "$kind `,` $desc `[` $coord `]` $src attr-dict `:` qualified(type($desc)) `,` qualified(type($src))",
        with: {
            verify: Some(verify::tma_reduce),
            effects: Effects::List(&[READS_DESC, WRITES_DESC, reads_shared("src")]),
        },
    }
}

op! {
    /// Copies rows from global to shared memory; a barrier counts the bytes.
    pub struct AsyncTmaGatherOp = "ttng.async_tma_gather" {
        operands: [
            desc: TENSOR_DESC, x_offsets: ROWS, y_offset: I32, barrier: MEMDESC_TYPE, result: MEMDESC_TYPE, pred: I1,
        ],
        attrs: [multicast[opt]: UnitAttr, cache_policy("cachePolicy")[opt]: AnyAttr],
        traits: [BARRIER, ON_BUFFERS],
        format: "$desc `[` $x_offsets `,` $y_offset `]` $result `,` $barrier `,` $pred attr-dict `:` type(operands)",
        with: {
            interfaces: &[MBARRIER, PREDICATED],
            canonicalize: &canonicalize::TMA_GATHER,
            verify: Some(verify::tma_gather),
            effects: Effects::List(&[READS_DESC, writes_shared("barrier"), writes_shared("result")]),
        },
    }
}

op! {
    /// Copies rows from shared to global memory.
    pub struct AsyncTmaScatterOp = "ttng.async_tma_scatter" {
        operands: [desc: TENSOR_DESC, x_offsets: ROWS, y_offset: I32, src: MEMDESC_TYPE],
        attrs: [cache_policy("cachePolicy")[opt]: AnyAttr],
        traits: [ON_BUFFERS],
        format: "$desc `[` $x_offsets `,` $y_offset `]` $src attr-dict `:` type(operands)",
        with: {
            verify: Some(verify::tma_scatter),
            effects: Effects::List(&[READS_DESC, WRITES_DESC, reads_shared("src")]),
        },
    }
}

op! {
    /// Waits until at most so many groups of stores are pending.
    pub struct TmaStoreWaitOp = "ttng.async_tma_store_wait" {
        attrs: [pendings: I32Attr, read_only[opt]: UnitAttr],
        traits: [MEM_WAIT, ON_BUFFERS],
        format: "attr-dict",
    }
}

op! {
    /// A pointer to a descriptor, as a descriptor.
    pub struct ReinterpretTensorDescOp = "ttng.reinterpret_tensor_descriptor" {
        operands: [raw_desc("rawDesc"): PTR],
        results: [result: TENSOR_DESC],
        traits: [Trait::Pure, ON_BUFFERS],
        format: "$rawDesc attr-dict `:` qualified(type($rawDesc)) `to` qualified(type($result))",
    }
}

/// A number from 0 to `MAX`.
pub struct Bounded<const MAX: i64>;
impl<const MAX: i64> AttrKind for Bounded<MAX> {
    type Value<'c> = i64;
    const CONSTRAINT: AttrConstraint = AttrConstraint {
        summary: match MAX {
            1 => "32-bit signless integer attribute whose value is 0 or 1",
            2 => "32-bit signless integer attribute whose value is 0 to 2",
            3 => "32-bit signless integer attribute whose value is 0 to 3",
            15 => "32-bit signless integer attribute whose value is 0 to 15",
            _ => "32-bit signless integer attribute in bounds",
        },
        matches: |attr| {
            attr.ty().is_some_and(|ty| ty.is_int(32))
                && attr.as_int().is_some_and(|value| (0..=MAX).contains(&value))
        },
        syntax: <I32Attr as AttrKind>::CONSTRAINT.syntax,
    };
    fn decode(attr: Attr<'_>) -> Option<i64> {
        attr.as_int()
    }
    fn encode(ctx: Context<'_>, value: i64) -> Option<Attr<'_>> {
        Some(Attr::int(ctx, 32, value))
    }
}

op! {
    /// Writes a descriptor to global memory.
    pub struct TensormapCreateOp = "ttng.tensormap_create" {
        operands: [
            desc_ptr: PTR, global_address: PTR, box_dim[var]: I32, global_dim[var]: I32, global_stride[var]: I64,
            element_stride[var]: I32,
        ],
        attrs: [
            elem_type: Bounded::<15>, interleave_layout: Bounded::<2>, swizzle_mode: Bounded::<3>,
            fill_mode: Bounded::<1>,
        ],
        traits: [ON_BUFFERS],
        format: "$desc_ptr `,` $global_address `,` `[` $box_dim `]` `,` `[` $global_dim `]` `,` `[` $global_stride `]` `,` `[` $element_stride `]` attr-dict `:` functional-type(operands, results)",
        with: {
            verify: Some(verify::tensormap_create),
            effects: Effects::List(&[
                Effect { kind: EffectKind::Read, resource: GLOBAL_MEMORY, on: EffectOn::Nothing },
                Effect { kind: EffectKind::Write, resource: GLOBAL_MEMORY, on: EffectOn::Nothing },
            ]),
        },
    }
}

op! {
    /// Makes a descriptor that was written visible to copies.
    pub struct TensormapFenceproxyAcquireOp = "ttng.tensormap_fenceproxy_acquire" {
        operands: [desc_ptr: PTR],
        traits: [ON_BUFFERS],
        format: "$desc_ptr attr-dict `:` qualified(type($desc_ptr))",
        with: {
            effects: Effects::List(&[Effect {
                kind: EffectKind::Write,
                resource: GLOBAL_MEMORY,
                on: EffectOn::Nothing,
            }]),
        },
    }
}
