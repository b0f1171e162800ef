//! Plans: every hardware decision as a plain value, made from layouts, an element width and a
//! [`TargetDesc`](crate::target::TargetDesc) and nothing else.
//!
//! A plan can be printed, costed, executed on plain arrays by the [checker](crate::checker), which is
//! written independently, and emitted by a code generator that takes no decisions of its own.

mod error;
mod space;
mod vector;

pub use error::{PlanError, PlanResult};
pub use space::{ThreadMasks, Threads};
pub use vector::{AddressFacts, DimFacts, VectorAccess, VectorPlan};
