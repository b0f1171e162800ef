//! Triton's `tt`, `ttg`, `ttng` and `amdg` dialects, in Triton 3.9's textual syntax.
//!
//! One module per dialect; in each, `types` and `attrs` define the hosted
//! types and attributes, `ops` the operations, and `verify`, `fold` and
//! `canonicalize` hold the code that definitions refer to. [`interfaces`] has what several of them have in common.

// Whoever finds what cannot be says so by an error with a place (CONTRIBUTING): nothing here ends a compilation by a panic.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented
    )
)]

pub mod amdg;
pub mod constraints;
pub mod dot;
pub mod encoding;
pub mod interfaces;
pub mod legacy;
pub mod tt;
pub mod ttg;
pub mod ttng;

use mlir_host::DialectDef;

/// All dialects of this crate.
pub static DIALECTS: [&DialectDef; 4] = [&tt::DIALECT, &ttg::DIALECT, &ttng::DIALECT, &amdg::DIALECT];
