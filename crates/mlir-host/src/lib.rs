//! MLIR dialects and passes hosted in Rust.
//!
//! A dialect is a set of statics: an [`OpDef`](def::OpDef) per operation, a
//! [`ParamDef`](def::ParamDef) per attribute and type, and one
//! [`DialectDef`] that lists them. Registered, they are
//! dialects like any other: MLIR's parser, printer, verifier, canonicalizer,
//! CSE, inliner and the `mlir-opt` driver work on them, in this process or in
//! a stock tool that loads them as a plugin.
//!
//! * [`op!`] declares an operation with everything that follows from the
//!   declaration: accessors, textual form, verification, interfaces.
//! * [`ir`] has the handles to operations, values, types and attributes.
//! * [`asm`] and [`format`](mod@format) parse and print.
//! * [`rewrite`] builds and rewrites operations.
//! * [`pass`] hosts passes, [`driver`] runs MLIR's tools.
//!
//! Callbacks run on MLIR's worker threads: definitions are immutable statics
//! and functions without captured state. A panic in a callback becomes a
//! diagnostic at the operation concerned and never unwinds into C++.

pub mod asm;
pub mod attrs;
pub mod def;
pub mod dialect;
pub mod driver;
mod ffi;
pub mod format;
pub mod hash;
pub mod ir;
mod macros;
pub mod memo;
pub mod once;
pub mod pass;
pub mod rewrite;
pub mod traits;
mod verify;

pub use dialect::{Alias, DialectDef};
