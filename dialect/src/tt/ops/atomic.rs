//! Atomic accesses to global memory.

use crate::constraints::*;
use crate::tt::enums::{MemSemantic, MemSyncScope, RmwOp};
use crate::tt::ops::global;
use crate::tt::traits::ON_TENSORS;
use crate::tt::types::{bool_like, mask_like, pointee_like, pointer_like, same};
use crate::tt::verify::{LOAD_STORE_ENCODING, LOAD_STORE_SHAPE, SAME_ENCODING};
use crate::tt::{canonicalize, verify};
use mlir_host::def::{EffectKind, EffectOn, Effects, TypeRule};
use mlir_host::op;
use mlir_host::traits::Trait;

/// Others see that an atomic access happened, even if its result is unused.
const READ_AND_WRITE: Effects = Effects::List(&[
    global(EffectKind::Read, EffectOn::Operand("ptr")),
    global(EffectKind::Write, EffectOn::Operand("ptr")),
]);

op! {
    /// Atomically loads each element.
    pub struct AtomicLoadOp = "tt.atomic_load" {
        operands: [ptr: PTR_LIKE, mask[opt]: BOOL_LIKE],
        results: [result: ANY],
        attrs: [sem: MemSemantic, scope: MemSyncScope],
        traits: [LOAD_STORE_SHAPE, LOAD_STORE_ENCODING, ON_TENSORS],
        types: [
            TypeRule::new("result matches ptr type", "ptr", "result", pointee_like),
            TypeRule::new("mask type matches ptr type", "ptr", "mask", mask_like),
        ],
        format: "$sem `,` $scope `,` $ptr (`,` $mask^)? attr-dict `:` functional-type(operands, $result)",
        with: { verify: Some(verify::atomic_load), effects: READ_AND_WRITE },
    }
}

op! {
    /// Atomically stores each element.
    pub struct AtomicStoreOp = "tt.atomic_store" {
        operands: [ptr: PTR_LIKE, value: ANY, mask[opt]: BOOL_LIKE],
        attrs: [sem: MemSemantic, scope: MemSyncScope],
        traits: [LOAD_STORE_SHAPE, LOAD_STORE_ENCODING, ON_TENSORS],
        types: [
            TypeRule::new("value type matches ptr type", "ptr", "value", pointee_like),
            TypeRule::new("mask type matches ptr type", "ptr", "mask", mask_like),
        ],
        format: "$sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr)",
        with: {
            verify: Some(verify::atomic_store),
            effects: Effects::List(&[global(EffectKind::Write, EffectOn::Operand("ptr"))]),
            canonicalize: &canonicalize::ATOMIC_STORE,
        },
    }
}

op! {
    /// Loads each element again and again until it has the expected value or
    /// time is up; gives whether it had.
    pub struct AtomicPollOp = "tt.atomic_poll" {
        operands: [ptr: PTR_LIKE, expected: INT_LIKE, timeout[opt]: I64],
        results: [result: BOOL_LIKE],
        attrs: [sem: MemSemantic, scope: MemSyncScope],
        traits: [SAME_ENCODING, ON_TENSORS],
        types: [
            TypeRule::new("ptr type matches expected type", "expected", "ptr", pointer_like),
            TypeRule::new("result type matches expected shape", "expected", "result", bool_like),
        ],
        format: "$sem `,` $scope `,` $ptr `,` $expected (`timeout` $timeout^)? attr-dict `:` qualified(type($ptr)) `,` type($expected) `->` type($result)",
        with: { verify: Some(verify::atomic_poll), effects: READ_AND_WRITE },
    }
}

op! {
    /// Atomically combines each element with a value; gives what was there before.
    pub struct AtomicRmwOp = "tt.atomic_rmw" {
        operands: [ptr: PTR_LIKE, val: ANY, mask[opt]: BOOL_LIKE],
        results: [result: ANY],
        attrs: [atomic_rmw_op: RmwOp, sem: MemSemantic, scope: MemSyncScope],
        traits: [Trait::SAME_SHAPE, SAME_ENCODING, ON_TENSORS],
        types: [
            TypeRule::new("ptr type matches value type", "val", "ptr", pointer_like),
            TypeRule::new("mask type matches value type", "val", "mask", bool_like),
            TypeRule::new("result type matches value type", "val", "result", same),
        ],
        format: "$atomic_rmw_op `,` $sem `,` $scope `,` $ptr `,` $val (`,` $mask^)? attr-dict `:` functional-type(operands, $result)",
        with: { effects: READ_AND_WRITE },
    }
}

op! {
    /// Atomically stores `val` where the element equals `cmp`; gives what was there before.
    pub struct AtomicCasOp = "tt.atomic_cas" {
        operands: [ptr: PTR_LIKE, cmp: ANY, val: ANY],
        results: [result: ANY],
        attrs: [sem: MemSemantic, scope: MemSyncScope],
        traits: [Trait::SAME_SHAPE, SAME_ENCODING, ON_TENSORS],
        types: [
            TypeRule::new("ptr type matches cmp type", "cmp", "ptr", pointer_like),
            TypeRule::new("ptr type matches value type", "val", "ptr", pointer_like),
            TypeRule::new("result type matches value type", "val", "result", same),
        ],
        format: "$sem `,` $scope `,` $ptr `,` $cmp `,` $val attr-dict `:` functional-type(operands, $result)",
        with: { effects: READ_AND_WRITE },
    }
}
