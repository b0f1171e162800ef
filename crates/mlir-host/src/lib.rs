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
//! * [`flow`] follows values and control through regions, branches and loops.
//! * [`interface`] asks hosted operations what they are, [`upstream`] names MLIR's own.
//! * [`rewrite`] builds and rewrites operations, [`conversion`] converts them to other dialects, with their types.
//! * With the feature `melior`, handles are made from melior's and turn into them (`From`), so that a program written with
//!   melior uses hosted dialects; [`driver::Registry::append_to`] puts them into its context.
//! * [`owned`] has contexts, modules and pass managers of one's own, [`diagnostics`] what MLIR has to say, as values.
//! * [`pass`] hosts passes, [`driver`] runs MLIR's tools, [`bytecode`] checks what they read.
//!
//! Callbacks run on MLIR's worker threads: definitions are immutable statics
//! and functions without captured state. A panic in a callback becomes a
//! diagnostic at the operation concerned, never unwinds into C++, and lets
//! nothing succeed that came after it: see [`poison`].
//!
//! # Unsafe code
//!
//! All of it is in this crate, and of the kinds below. What a function cannot check itself is the caller's to
//! promise, and the function is `unsafe`: `from_raw` of every handle, [`driver::Source::new`], registration.
//!
//! | Kind | Where | Why it is sound |
//! |---|---|---|
//! | Call of MLIR with a handle | [`ir`], [`rewrite`], [`asm`], [`flow`] | A handle is not null, and what it names is valid for `'c`: it came from `from_raw` or from MLIR. What only some kinds have is asked after the kind was; indices are asserted, since MLIR asserts them in debug builds only. |
//! | Handle made of what MLIR returned | the same | Null becomes `None`; other handles are of the context that was asked. |
//! | Slice or text in MLIR's memory | [`ir`] | Shapes, parameters, arrays and strings are uniqued, and live as long as the context, `'c`. |
//! | `&[Value]` as `*const MlirValue` and the like | [`ir`], [`rewrite`] | Handles are transparent pointers, as the C API's are. |
//! | Callback: pointer to a definition | [`dialect`] | It is the static that was registered, and of the type that its callback was registered for. |
//! | Callback: handle, parser, printer, rewriter, symbol tables | [`dialect`], [`asm`] | Valid while the callback runs. Callbacks are `for<'c> fn`, so that nothing with `'c` in its type outlives them; parsed operands, positions and region arguments have it. |
//! | Inherent attribute by slot | [`ir`] | The shim compares the slot with the operation's own number of them, and knows hosted operations from others. |
//! | Freeing an erased operation | `grave` | [`Op::erase`](ir::Op::erase) panics where results are used, and takes the operation out of the IR only; it is freed when the outermost callback returns, outside of callbacks never. |
//! | Changes in a dialect conversion | [`conversion`], [`rewrite`] | MLIR keeps handles to what it may take back, and only asserts that it is used rightly. Operations that were replaced are marked, in the IR, where MLIR takes the mark back with the rest: neither they nor what they hold is replaced again. What would destroy, move or add something by another way than the conversion's rewriter panics until the conversion ends, and so does whatever would erase the operation that is converted. Counts of arguments, values and results are asserted. |
//! | Rules, type converters, patterns | [`conversion`] | Rules outlive the call that they are given to, the rest are statics; the C++ objects made of them are gone when it returns. |
//! | Owner of a C++ object | [`owned`], [`driver`], [`asm`], [`rewrite`] | Freed once, on drop; [`rewrite::NewRegion`] also gives it to one operation at most. |
//! | Diagnostics handler | [`diagnostics`] | Detached before what it calls is freed. MLIR calls it under a lock; a sink that emits is not entered again. |
//! | `Send`, `Sync` | [`dialect`] | Definitions are immutable statics; what the shim keeps of them never moves nor changes. |
//! | Pointer of [`once`](once::Once) | [`once`] | Null or leaked. |
//!
//! Two rules are left to those who write passes. A handle is not used after MLIR itself destroyed what it names: what
//! [`rewrite::apply_greedily`] removes, what a conversion replaced once it succeeded, a block argument behind
//! [`ir::Block::erase_arg`], the former blocks of a region behind [`ir::Region::take_body`]. And between two verifications IR
//! may be invalid, but not so that MLIR, which only asserts, misreads it: types changed in place agree when the pass ends.

// What is left are indices and handles that MLIR or the author of a definition vouches for, each with what should have been there.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::unreachable, clippy::todo, clippy::unimplemented))]

pub mod asm;
pub mod attrs;
pub mod bytecode;
pub mod conversion;
pub mod def;
pub mod diagnostics;
pub mod dialect;
pub mod driver;
mod ffi;
pub mod flow;
pub mod format;
mod grave;
pub mod hash;
pub mod interface;
pub mod ir;
mod macros;
#[cfg(feature = "melior")]
mod melior;
pub mod memo;
pub mod once;
pub mod owned;
pub mod pass;
pub mod poison;
pub mod rewrite;
mod text;
pub mod traits;
pub mod upstream;
mod verify;

pub use dialect::{Alias, DialectDef};
