//! Accesses to global memory: a base and offsets, beside the program, masked.

use super::{reads_shared, writes_shared};
use crate::amdg::verify::{self, I32_TENSOR};
use crate::constraints::*;
use crate::tt::enums::{CacheModifier, MemSemantic, MemSyncScope, RmwOp};
use crate::tt::ops::global;
use crate::tt::types::{bool_like, same};
use crate::tt::verify::{LOAD_STORE_ENCODING, SAME_OPERANDS_ENCODING};
use crate::ttg::ops::{GLOBAL_TO_LOCAL_COPY, MEM_WAIT};
use crate::ttg::types::{MEMDESC_TYPE, TOKEN_TYPE};
use mlir_host::attrs::{AnyAttr, BoolAttr, I32Attr};
use mlir_host::def::{Effect, EffectKind, EffectOn, Effects, TypeConstraint, TypeRule};
use mlir_host::ir::Type;
use mlir_host::op;

/// `i32`, or a tensor of it with the shape and encoding of `ty`.
fn i32_like(ty: Type<'_>) -> Option<Type<'_>> {
    let i32 = Type::int(ty.context(), 32);
    match ty.as_tensor() {
        Some(tensor) => Some(tensor.with_element(i32)?.ty()),
        None => Some(i32),
    }
}

const READS: Effect = global(EffectKind::Read, EffectOn::Operand("ptr"));
const WRITES: Effect = global(EffectKind::Write, EffectOn::Operand("ptr"));

op! {
    /// Loads from a base plus offsets.
    pub struct BufferLoadOp = "amdg.buffer_load" {
        operands: [ptr: PTR, offsets: I32_TENSOR, stride[opt]: I32, mask[opt]: BOOL_TENSOR, other[opt]: TENSOR],
        results: [result: TENSOR],
        attrs: [cache_policy("cachePolicy")[opt]: AnyAttr, contiguity[default "1 : i32"]: I32Attr],
        traits: [LOAD_STORE_ENCODING],
        types: [
            TypeRule::new("result and offsets have the same shape", "result", "offsets", i32_like),
            TypeRule::new("result and mask have the same shape", "result", "mask", bool_like),
            TypeRule::new("result and other have the same type", "result", "other", same),
        ],
        format: "$ptr `[` $offsets `]` (`,` $mask^)? (`,` $other^)? (`stride` `=` $stride^)? attr-dict `:` qualified(type($ptr)) `->` type($result)",
        with: {
            verify: Some(verify::buffer_load),
            effects: Effects::List(&[READS]),
        },
    }
}

op! {
    /// Loads from a base plus offsets into shared memory, beside the program.
    pub struct BufferLoadToLocalOp = "amdg.buffer_load_to_local" {
        operands: [
            dest: MEMDESC_TYPE, ptr: PTR, offsets: I32_TENSOR, mask[opt]: BOOL_TENSOR, other[opt]: TENSOR,
            stride[opt]: I32,
        ],
        results: [token: TOKEN_TYPE],
        attrs: [cache_policy("cachePolicy")[opt]: AnyAttr, contiguity[default "1 : i32"]: I32Attr],
        traits: [GLOBAL_TO_LOCAL_COPY],
        types: [TypeRule::new("infer mask shape from offsets", "offsets", "mask", bool_like)],
        format: "$ptr `[` $offsets `]` (`mask` `=` $mask^)? (`other` `=` $other^)? (`stride` `=` $stride^)? (`cachePolicy` `=` $cachePolicy^)? `into` $dest attr-dict `:` qualified(type($ptr)) `[` type($offsets) `]` type($other) `->` type($dest)",
        with: {
            verify: Some(verify::buffer_load_to_local),
            effects: Effects::List(&[writes_shared("dest"), READS]),
        },
    }
}

op! {
    /// Reads, modifies and writes at a base plus offsets; gives the old values.
    pub struct BufferAtomicRmwOp = "amdg.buffer_atomic_rmw" {
        operands: [ptr: PTR, offsets: I32_TENSOR, value: TENSOR, stride[opt]: I32, mask[opt]: BOOL_TENSOR],
        results: [result: TENSOR],
        attrs: [atomic_rmw_op: RmwOp, sem: MemSemantic, scope: MemSyncScope],
        traits: [LOAD_STORE_ENCODING],
        types: [
            TypeRule::new("result element type matches the value type", "result", "value", same),
            TypeRule::new("result and offsets have the same shape", "result", "offsets", i32_like),
            TypeRule::new("result and mask have the same shape", "result", "mask", bool_like),
        ],
        format: "$atomic_rmw_op `,` $sem `,` $scope `,` $value `,` $ptr `[` $offsets `]` (`,` $mask^)? (`stride` `=` $stride^)? attr-dict `:` qualified(type($ptr)) `->` type($result)",
        with: {
            verify: Some(verify::buffer_atomic_rmw),
            effects: Effects::List(&[READS, WRITES]),
        },
    }
}

op! {
    /// Compares and exchanges at a base plus offsets; gives the old values.
    pub struct BufferAtomicCasOp = "amdg.buffer_atomic_cas" {
        operands: [ptr: PTR, offsets: I32_TENSOR, cmp: TENSOR, val: TENSOR, stride[opt]: I32],
        results: [result: TENSOR],
        attrs: [sem: MemSemantic, scope: MemSyncScope],
        traits: [LOAD_STORE_ENCODING],
        types: [
            TypeRule::new("result element type matches the val type", "result", "val", same),
            TypeRule::new("result element type matches the cmp type", "result", "cmp", same),
            TypeRule::new("result and offsets have the same shape", "result", "offsets", i32_like),
        ],
        format: "$sem `,` $scope `,` $cmp `,` $val `,` $ptr `[` $offsets `]` (`stride` `=` $stride^)? attr-dict `:` qualified(type($ptr)) `->` type($result)",
        with: {
            verify: Some(verify::buffer_atomic_cas),
            effects: Effects::List(&[READS, WRITES]),
        },
    }
}

op! {
    /// Stores to a base plus offsets.
    pub struct BufferStoreOp = "amdg.buffer_store" {
        operands: [value: TENSOR, ptr: PTR, offsets: I32_TENSOR, stride[opt]: I32, mask[opt]: BOOL_TENSOR],
        attrs: [cache_policy("cachePolicy")[opt]: AnyAttr, contiguity[default "1 : i32"]: I32Attr],
        traits: [SAME_OPERANDS_ENCODING],
        types: [
            TypeRule::new("value and offsets have the same shape", "value", "offsets", i32_like),
            TypeRule::new("value and mask have the same shape", "value", "mask", bool_like),
        ],
        format: "$value `,` $ptr `[` $offsets `]` (`,` $mask^)? (`stride` `=` $stride^)? attr-dict `:` qualified(type($ptr)) `->` type($value)",
        with: {
            verify: Some(verify::buffer_store),
            effects: Effects::List(&[WRITES]),
        },
    }
}

op! {
    /// Copies from shared to global memory, beside the program.
    pub struct AsyncCopyLocalToGlobalOp = "amdg.async_copy_local_to_global" {
        operands: [src: MEMDESC_TYPE, dst: PTR_TENSOR, mask[opt]: BOOL_TENSOR],
        results: [token: TOKEN_TYPE],
        attrs: [cache_policy("cachePolicy")[opt]: AnyAttr, contiguity[default "1 : i32"]: I32Attr],
        types: [TypeRule::new("infer mask type from dst type", "dst", "mask", bool_like)],
        format: "$src `,` $dst (`mask` $mask^)? (`cachePolicy` `=` $cachePolicy^)? attr-dict `:` qualified(type($src)) `->` type($dst)",
        with: {
            verify: Some(verify::async_copy_local_to_global),
            effects: Effects::List(&[
                reads_shared("src"),
                global(EffectKind::Write, EffectOn::Operand("dst")),
            ]),
        },
    }
}

op! {
    /// Waits until at most so many asynchronous instructions are pending.
    pub struct AsyncWaitOp = "amdg.async_wait" {
        operands: [async_token("asyncToken")[var]: TOKEN_TYPE],
        results: [ret_token("retToken"): TOKEN_TYPE],
        attrs: [num_inst: I32Attr],
        traits: [MEM_WAIT],
        format: "($asyncToken^)? attr-dict",
    }
}

/// Whether `ty` is a pointer of the llvm dialect.
fn is_llvm_pointer(ty: Type<'_>) -> bool {
    ty.def().is_none() && ty.to_string().starts_with("!llvm.ptr")
}

static LLVM_POINTER: TypeConstraint = TypeConstraint::new("LLVM pointer type", is_llvm_pointer);
/// What the llvm dialect takes: its own types, numbers that LLVM has, vectors of one dimension.
fn is_llvm_type(ty: Type<'_>) -> bool {
    if ty.is_float() {
        return ty.bits().is_some_and(|bits| bits >= 16) && !ty.to_string().starts_with("tf");
    }
    let text = if ty.def().is_some() { String::new() } else { ty.to_string() };
    let one_dim = |text: &str| {
        let element = text.trim_start_matches(|c: char| c.is_ascii_digit() || "[]".contains(c));
        element.strip_prefix('x').is_some_and(|element| {
            element.starts_with("!llvm.")
                || element.starts_with(|c: char| c.is_ascii_alphabetic()) && !element.starts_with("f8")
        })
    };
    ty.is_signless() || text.starts_with("!llvm.") || text.strip_prefix("vector<").is_some_and(one_dim)
}

static LLVM_TYPE: TypeConstraint = TypeConstraint::new("LLVM dialect-compatible type", is_llvm_type);

op! {
    /// Loads one value, or gives another one where the mask is false.
    pub struct MaskedLoadOp = "amdg.masked_load" {
        operands: [ptr: LLVM_POINTER, mask: I1, false_val("falseVal"): LLVM_TYPE, multicast_mask("multicastMask")[opt]: I32],
        results: [result: LLVM_TYPE],
        attrs: [
            cache[default "1 : i32"]: CacheModifier, is_volatile("isVolatile")[default "false"]: BoolAttr,
            force_no_alias("forceNoAlias")[default "false"]: BoolAttr,
        ],
        format: "$ptr `,` $mask `,` $falseVal (`,` $multicastMask^)? oilist(`cacheModifier` `=` $cache) (`volatile` $isVolatile^)? (`forceNoAlias` $forceNoAlias^)? attr-dict `:` functional-type(operands, results)",
    }
}

op! {
    /// Stores one value where the mask is true.
    pub struct MaskedStoreOp = "amdg.masked_store" {
        operands: [ptr: LLVM_POINTER, value: LLVM_TYPE, mask: I1],
        attrs: [
            cache[default "1 : i32"]: CacheModifier, force_no_alias("forceNoAlias")[default "false"]: BoolAttr,
        ],
        format: "$ptr `,` $value `,` $mask oilist(`cacheModifier` `=` $cache) (`forceNoAlias` $forceNoAlias^)? attr-dict `:` type(operands)",
    }
}
