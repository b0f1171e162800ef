//! Verifiers.

mod convert;
mod register;
mod tdm;

pub use convert::*;
pub use register::*;
pub use tdm::*;

use super::ops::*;
use crate::tt::enums::AddressSpace;
use crate::tt::types::{address_space, pointee};
use crate::ttg::module_attrs;
pub use crate::ttng::verify::{BARRIER, in_cluster};
use crate::ttng::verify::{memdesc, positive, tensor};
use mlir_host::def::{TypeConstraint, VerifyResult};
use mlir_host::ir::{Op, Type, Value};

/// A tensor of `i32`.
pub static I32_TENSOR: TypeConstraint =
    TypeConstraint::new("tensor of 32-bit signless integer values", |ty| {
        ty.as_tensor().is_some_and(|tensor| tensor.element().is_int(32))
    });

/// The architecture that the module is for, as in `gfx942`; `None` where it does not say one of AMD.
fn arch(op: Op<'_>) -> Option<&str> {
    module_attrs::target(op)?.strip_prefix("hip:")
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

/// Initialization for a count of arrivals.
pub fn init_barrier(op: Op<'_>) -> VerifyResult {
    positive(InitBarrierOp::of(op).count())
}

/// Arrivals by a count.
pub fn arrive_barrier(op: Op<'_>) -> VerifyResult {
    positive(ArriveBarrierOp::of(op).count())
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// The base points to the elements that are moved.
fn points_to(ptr: Value<'_>, what: &str, element: Type<'_>) -> VerifyResult {
    match pointee(ptr.ty()) {
        Some(ty) if ty == element => Ok(()),
        _ => Err(format!("{what} has elements of '{element}', but the base is a '{}'", ptr.ty())),
    }
}

fn writes_through(ptr: Value<'_>) -> VerifyResult {
    match address_space(ptr.ty()) {
        Some(AddressSpace::Global) => Ok(()),
        _ => Err(format!("only global memory can be written, but the base is a '{}'", ptr.ty())),
    }
}

/// Loads from a base plus offsets.
pub fn buffer_load(op: Op<'_>) -> VerifyResult {
    let load = BufferLoadOp::of(op);
    points_to(load.ptr(), "the result", tensor(load.result())?.element())
}

/// Loads from a base plus offsets into shared memory.
pub fn buffer_load_to_local(op: Op<'_>) -> VerifyResult {
    let load = BufferLoadToLocalOp::of(op);
    points_to(load.ptr(), "the buffer", memdesc(load.dest())?.element())?;
    if let Some(other) = load.other() {
        let wanted = pointee(load.ptr().ty()).and_then(|element| {
            let offsets = load.offsets().ty().as_tensor()?;
            Some(offsets.with_element(element)?.ty())
        });
        if wanted != Some(other.ty()) {
            return Err(format!(
                "`other` must have the shape and layout of the offsets, '{}', and elements that '{}' points \
                 to, but is a '{}'",
                load.offsets().ty(),
                load.ptr().ty(),
                other.ty()
            ));
        }
    }
    match (module_attrs::target(op), arch(op)) {
        (None, _) | (_, Some("gfx942" | "gfx950")) => Ok(()),
        (Some(target), _) => Err(format!(
            "needs loads from buffers into shared memory, which gfx942 and gfx950 have, but the module is for \
             {target}"
        )),
    }
}

/// Stores to a base plus offsets.
pub fn buffer_store(op: Op<'_>) -> VerifyResult {
    let store = BufferStoreOp::of(op);
    points_to(store.ptr(), "the value", tensor(store.value())?.element())?;
    writes_through(store.ptr())
}

/// Read, modify and write at a base plus offsets.
pub fn buffer_atomic_rmw(op: Op<'_>) -> VerifyResult {
    let atomic = BufferAtomicRmwOp::of(op);
    points_to(atomic.ptr(), "the result", tensor(atomic.result())?.element())?;
    writes_through(atomic.ptr())
}

/// Compare and exchange at a base plus offsets.
pub fn buffer_atomic_cas(op: Op<'_>) -> VerifyResult {
    let atomic = BufferAtomicCasOp::of(op);
    points_to(atomic.ptr(), "the result", tensor(atomic.result())?.element())?;
    writes_through(atomic.ptr())
}

/// Copies from shared to global memory.
pub fn async_copy_local_to_global(op: Op<'_>) -> VerifyResult {
    let src = memdesc(AsyncCopyLocalToGlobalOp::of(op).src())?;
    if src.is_in_shared_memory() {
        Ok(())
    } else {
        Err(format!("the source must be in shared memory, got '{}'", src.ty()))
    }
}
