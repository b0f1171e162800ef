//! Runs lowered GPU kernels on the CPU, checks them and counts what they cost.
//!
//! The input is the LLVM IR of one kernel, with the intrinsics and the inline PTX of NVIDIA or the intrinsics
//! of AMD: the module that would become machine code. It goes through these steps:
//!
//! 1. [`read`]: LLVM's module becomes the owned model of [`ir`] (text of a newer LLVM through [`text`]);
//! 2. `decode`: one flat list of operations over scalar registers ([`bytecode`]); inline assembly is parsed
//!    by [`ptx`] and lowered to the same operations;
//! 3. `exec`: every program of the grid is run; warps in lockstep with a stack of active masks, shared memory
//!    with a race-detecting shadow ([`shared`]), device memory with bounds ([`mem`]);
//! 4. results: buffers, [`check::Finding`]s, and [`counts::Summary`].
//!
//! ```
//! let ir = br#"
//! define ptx_kernel void @double(ptr addrspace(1) %x) "nvvm.reqntid"="32" {
//!   %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
//!   %p = getelementptr float, ptr addrspace(1) %x, i32 %i
//!   %v = load float, ptr addrspace(1) %p
//!   %w = fadd float %v, %v
//!   store float %w, ptr addrspace(1) %p
//!   ret void
//! }
//! declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
//! "#;
//! let module = simt::read::parse("double.ll", ir)?;
//! let program = simt::decode(&module, None)?;
//! let data: Vec<u8> = (0..32).flat_map(|i| (i as f32).to_le_bytes()).collect();
//! let args = vec![simt::Arg::Buffer { name: "x".into(), data }];
//! let out = simt::run(&program, &simt::Launch { args, ..Default::default() })?;
//! assert!(out.findings.is_empty());
//! assert_eq!(out.buffers[0][4 * 5..4 * 6], 10f32.to_le_bytes());
//! assert_eq!(out.counts.total.sectors, 8);
//! # Ok::<(), simt::Error>(())
//! ```
//!
//! # What is exact and what is not
//!
//! Integer arithmetic, conversions, f16/bf16/f32/f64 arithmetic with its rounding modes and fused
//! multiply-adds are bit-exact. Approximate hardware functions are computed to full precision instead
//! ([`alu`]); matrix instructions sum in f64 and round once ([`mma`]). Asynchronous operations happen as late
//! as the programming model allows, so a missing wait is never hidden by luck.

// What is not supported is an error with a place or with numbers: nothing here ends a program by a panic.
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

pub mod alu;
pub mod banks;
pub mod bytecode;
mod cfg;
pub mod check;
pub mod counts;
mod decode;
mod double;
mod exec;
pub mod gpu;
pub mod input;
pub mod ir;
mod launch;
pub mod mem;
mod merge;
pub mod mma;
pub mod num;
pub mod ptx;
pub mod read;
mod report;
pub mod shared;
pub mod tdm;
pub mod text;
pub mod tma;
mod visit;
pub mod wgmma;

pub use decode::decode;
pub use exec::Trace;
pub use launch::{Arg, Control, Launch, Outcome, run, run_with};
pub use report::report;

/// What can go wrong before a kernel runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// LLVM does not read the module.
    #[error("{file}: {message}")]
    Parse {
        /// File.
        file: String,
        /// LLVM's message.
        message: String,
    },
    /// The simulator does not know something.
    #[error("unsupported: {what} (in {place})")]
    Unsupported {
        /// What.
        what: String,
        /// Where.
        place: String,
    },
    /// The launch does not fit the kernel.
    #[error("{0}")]
    Launch(String),
    /// A file with data is malformed.
    #[error("{0}")]
    Data(String),
}
