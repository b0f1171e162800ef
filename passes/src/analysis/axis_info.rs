//! Axis info: how the values of integer and pointer tensors run along each
//! dimension, which decides how wide memory accesses can be.
//!
//! Along every dimension a value has a *run* ([`Run`]): aligned groups in
//! which neighbours differ by a constant step, and a power of two that divides
//! the first value of each group. A step of one is *contiguity*, a step of zero
//! *constancy*, and the power of two is *divisibility*, the three facts that
//! Triton's hints speak of. Other steps are the strides that tell when
//! contiguity goes on in the next dimension (paper, Table 2).
//!
//! The analysis is sparse and optimistic: values start as "not reached" and
//! only lose facts, each a bounded number of times, so its cost is linear in
//! the number of operations. It covers a whole module: arguments of private
//! functions get what all callers pass.
//!
//! Quotients and remainders of signed numbers keep runs only where the
//! dividend is not negative, since rounding is towards zero. Program ids,
//! ranges and constants are known not to be, nor a difference where the branch to it says so (`guards`); integer
//! arguments that the kernel divides by, that end loops over positions, or that positions are compared with, are sizes and taken not to
//! be, and neither is what it divides by a size that is not known: a position.

mod flow;
mod guards;
mod lattice;
mod transfer;

pub use flow::AxisInfoAnalysis;
pub use lattice::{AxisInfo, MAX_DIV, Run, pow2};
pub use transfer::{Order, unsigned, wrap};

#[cfg(test)]
mod tests;
