//! Loads and stores through pointers, and what orders them between grids.

use crate::constraints::*;
use crate::tt::legacy::CACHE_HINTS;
use crate::tt::ops::global;
use crate::tt::traits::ON_TENSORS;
use crate::tt::types::{mask_like, pointee_like};
use crate::tt::verify::{LOAD_STORE_ENCODING, LOAD_STORE_SHAPE};
use crate::tt::{canonicalize, verify};
use mlir_host::attrs::{AnyAttr, BoolAttr, UnitAttr};
use mlir_host::def::{Effect, EffectKind, EffectOn, Effects, TypeRule};
use mlir_host::ir::Op;
use mlir_host::op;

/// A volatile load must neither be dropped nor repeated: it counts as a write too.
fn load_effects(op: Op<'_>, push: &mut dyn FnMut(Effect)) {
    push(global(EffectKind::Read, EffectOn::Operand("ptr")));
    if LoadOp::of(op).is_volatile() {
        push(global(EffectKind::Write, EffectOn::Nothing));
    }
}

op! {
    /// Loads through pointers; where the mask is false, gives `other`, or nothing in particular.
    pub struct LoadOp = "tt.load" {
        operands: [ptr: PTR_LIKE, mask[opt]: BOOL_LIKE, other[opt]: ANY],
        results: [result: ANY],
        attrs: [
            cache_policy("cachePolicy")[opt]: AnyAttr,
            is_volatile("isVolatile")[default "false"]: BoolAttr,
        ],
        traits: [LOAD_STORE_SHAPE, LOAD_STORE_ENCODING, ON_TENSORS],
        types: [
            TypeRule::new("result matches ptr type", "ptr", "result", pointee_like),
            TypeRule::new("mask type matches ptr type", "ptr", "mask", mask_like),
            TypeRule::new("other matches ptr type", "ptr", "other", pointee_like),
        ],
        format: "$ptr (`,` $mask^)? (`,` $other^)? legacy<CacheHints> attr-dict `:` type($ptr)",
        with: {
            custom: &[CACHE_HINTS],
            verify: Some(verify::load),
            effects: Effects::Dynamic(load_effects),
            canonicalize: &canonicalize::LOAD,
        },
    }
}

op! {
    /// Stores through pointers, where the mask is true.
    pub struct StoreOp = "tt.store" {
        operands: [ptr: PTR_LIKE, value: ANY, mask[opt]: BOOL_LIKE],
        attrs: [cache_policy("cachePolicy")[opt]: AnyAttr, ignore_cta[opt]: UnitAttr],
        traits: [LOAD_STORE_SHAPE, LOAD_STORE_ENCODING, ON_TENSORS],
        types: [
            TypeRule::new("value type matches ptr type", "ptr", "value", pointee_like),
            TypeRule::new("mask type matches ptr type", "ptr", "mask", mask_like),
        ],
        format: "$ptr `,` $value (`,` $mask^)? legacy<CacheHints> attr-dict `:` type($ptr)",
        with: {
            custom: &[CACHE_HINTS],
            verify: Some(verify::store),
            effects: Effects::List(&[global(EffectKind::Write, EffectOn::Operand("ptr"))]),
            canonicalize: &canonicalize::STORE,
        },
    }
}

op! {
    /// Waits for the grids that this one depends on, and sees what they wrote.
    pub struct GridDependencyWaitOp = "tt.grid_dependency_wait" {
        traits: [ON_TENSORS],
        format: "attr-dict",
        with: {
            effects: Effects::List(&[
                global(EffectKind::Read, EffectOn::Nothing),
                global(EffectKind::Write, EffectOn::Nothing),
            ]),
        },
    }
}

op! {
    /// Lets the grids that depend on this one begin.
    pub struct GridDependencyLaunchDependentsOp = "tt.grid_dependency_launch_dependents" {
        traits: [ON_TENSORS],
        format: "attr-dict",
        with: { effects: Effects::List(&[global(EffectKind::Write, EffectOn::Nothing)]) },
    }
}
