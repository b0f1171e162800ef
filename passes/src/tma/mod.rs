//! Tensor descriptors that the hardware knows (PTX ISA, "Tensor-map"): accesses through them are bulk copies
//! between global and shared memory.
//!
//! * `webs` decides which descriptors these can be; the others become pointers.
//! * `encoding` gives descriptors the layouts of their blocks in shared memory.
//! * `groups` says which loads wait together, and which need no registers.
//! * `lower` makes copies, barriers and tensor maps of accesses and descriptors.
//! * `store_waits` leaves stores under way while a loop goes on.
//! * `proxy_fences` orders ordinary accesses to shared memory before those of copies.

pub mod encoding;
mod groups;
pub mod lower;
pub mod proxy_fences;
pub mod store_waits;
pub mod webs;

use mlir_host::ir::{FloatKind, Op, Type};
use mlir_host::is_one_of;
use ttopt_dialect::tt::ops::{
    DescriptorGatherOp, DescriptorLoadOp, DescriptorReduceOp, DescriptorScatterOp, DescriptorStoreOp,
};

/// Whether `op` loads through a tensor descriptor: a block, or rows of it one by one.
pub fn is_load(op: Op<'_>) -> bool {
    DescriptorLoadOp::cast(op).is_some() || DescriptorGatherOp::cast(op).is_some()
}

/// Whether `op` accesses memory through a tensor descriptor.
pub fn is_access(op: Op<'_>) -> bool {
    is_load(op) || is_one_of!(op, DescriptorStoreOp | DescriptorReduceOp | DescriptorScatterOp)
}

/// Whether `op` moves rows of a block one by one.
pub fn moves_rows(op: Op<'_>) -> bool {
    DescriptorGatherOp::cast(op).is_some() || DescriptorScatterOp::cast(op).is_some()
}

/// The number of an element type in a tensor map (PTX ISA, "tensormap.replace", `.elemtype`).
pub fn element_type(element: Type<'_>) -> u32 {
    let text = element.to_string();
    match (element.float_kind(), element.bits()) {
        (Some(FloatKind::F16), _) => 6,
        (Some(FloatKind::F32), _) => 7,
        (Some(FloatKind::F64), _) => 9,
        (Some(FloatKind::BF16), _) => 10,
        (None, Some(64)) => 4 + u32::from(text.starts_with("si")),
        (None, Some(32)) => 2 + u32::from(!text.starts_with("ui")),
        (None, Some(16)) => 1,
        // The formats of 8-bit floats are bytes.
        _ => 0,
    }
}

/// Whether copies can fill elements outside of the tensor with NaN.
pub fn has_nan(element: Type<'_>) -> bool {
    matches!(element.float_kind(), Some(FloatKind::F16 | FloatKind::BF16 | FloatKind::F32))
}
