//! Attributes.

use mlir_host::def::AttrDef;

/// `#amdg.amdgcn.set.fp8.clamping`: conversions to fp8 clamp to the largest finite value.
pub static SET_FP8_CLAMPING: AttrDef = AttrDef {
    summary: "conversions to fp8 clamp to the largest finite value",
    ..AttrDef::new("amdg", "amdgcn.set.fp8.clamping")
};

/// All attributes of this dialect.
pub static ATTRS: &[&AttrDef] = &[&SET_FP8_CLAMPING];
