//! Interfaces of one's own: what walkers ask operations instead of their names.
//!
//! An interface is a type; what an operation answers is a static of that type, listed in its definition. MLIR knows
//! nothing of them.
//!
//! ```
//! use mlir_host::ir::{Op, Value};
//!
//! /// What happens only where a condition holds.
//! pub struct Predicated {
//!     pub predicate: for<'c> fn(Op<'c>) -> Option<Value<'c>>,
//! }
//!
//! mlir_host::op! {
//!     /// Rings, if at all.
//!     pub struct Ring = "example.ring" {
//!         operands: [condition: mlir_host::def::ANY_TYPE],
//!         with: { interfaces: &[&Predicated { predicate: |op| Some(Ring::of(op).condition()) }] },
//!     }
//! }
//!
//! fn is_conditional(op: Op<'_>) -> bool {
//!     op.interface::<Predicated>().is_some()
//! }
//! # assert_eq!(Ring::DEF.interfaces.len(), 1);
//! ```

use crate::def::OpDef;
use crate::ir::Op;
use std::any::Any;

/// What an operation answers to an interface.
pub type Implementation = &'static (dyn Any + Send + Sync);

impl OpDef {
    /// What operations of this definition answer to an interface, if they have it.
    pub fn interface<T: Any>(&self) -> Option<&'static T> {
        let all: &'static [Implementation] = self.interfaces;
        all.iter().find_map(|one| one.downcast_ref::<T>())
    }
}

impl Op<'_> {
    /// What the operation answers to an interface, if it is hosted and has it.
    pub fn interface<T: Any>(self) -> Option<&'static T> {
        self.def()?.interface::<T>()
    }
}
