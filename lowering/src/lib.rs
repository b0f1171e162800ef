//! TTGIR to the `llvm` dialect and, for NVIDIA GPUs, `nvvm`.
//!
//! [`lower::Lower`] walks a module once; [`handlers`] say what each operation
//! becomes; a [`target::Target`] emits what differs between GPUs. Decisions
//! are plans of `linear-layout`, made from layouts and a target description.

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

pub mod amd;
pub mod buffers;
pub mod bytes;
pub mod emit;
pub mod exchange;
pub mod floats;
pub mod handlers;
pub mod lines;
pub mod lower;
pub mod nvidia;
pub mod registers;
pub mod shared;
pub mod target;
pub mod words;

/// On a module: the most registers that a thread may have.
pub use ttopt_dialect::ttg::module_attrs::{MAX_REGISTERS, WAVES_PER_EU};
/// On a module: `false` where a product and a sum must not become one operation that rounds once.
pub const FP_FUSION: &str = "ttg.enable_fp_fusion";
/// On a module: `false` where the code is to have no lines of the source.
pub const LINE_INFO: &str = "ttg.line_info";
/// On a module for NVIDIA's GPUs: `false` where functions of singles keep denormal numbers, which they take for zero otherwise.
pub const FLUSH_DENORMALS: &str = "ttg.flush_denormals";

/// What [`FLUSH_DENORMALS`] says of `module`.
pub fn flushes_denormals(module: Op<'_>) -> bool {
    module.attr(FLUSH_DENORMALS).and_then(Attr::as_bool).unwrap_or(true)
}

use emit::Failure;
use linear_layout::target::{TargetDesc, Vendor};
use mlir_host::ir::{Attr, Op};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use target::Target;

/// What lowers to a target.
pub fn target(desc: TargetDesc) -> Box<dyn Target> {
    match desc.vendor {
        Vendor::Nvidia => Box::new(nvidia::Nvidia::new(desc)),
        Vendor::Amd => Box::new(amd::Amd::new(desc)),
    }
}

fn lower_to_llvm(module: Op<'_>, options: &Options) -> PassResult {
    let target = target(ttopt_passes::machine::target(module)?);
    let lower = || {
        let axis_info = ttopt_passes::analysis::axis_info::AxisInfoAnalysis::new(module);
        lower::Lower::new(module, &*target, &axis_info, handlers::table(module.context(), &*target))?
            .explain(options.bool("explain"))
            .run()
    };
    lower().map_err(|failure: Failure| failure.report(module))
}

/// `--convert-triton-gpu-to-llvm`
pub static CONVERT_TO_LLVM: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["llvm", "nvvm", "rocdl"],
    options: &[PassOption {
        name: "explain",
        description: "Say as remarks which accesses memory operations became, and why",
        kind: OptionKind::Bool(false),
    }],
    ..PassDef::new(
        "convert-triton-gpu-to-llvm",
        "Lower TTGIR to the llvm and nvvm dialects for the target in the module's \"ttg.target\"",
        lower_to_llvm,
    )
};

/// The passes from TTGIR to the `llvm` dialect, each in the notation of MLIR's
/// textual pipelines and to be run on the module. With `explain`, they say what
/// they chose as remarks.
///
/// ```
/// use linear_layout::target::Vendor;
/// let passes = ttopt_lowering::ttgir_to_llvm(Vendor::Nvidia, false);
/// assert!(passes[4].starts_with("allocate-shared-memory-nv"));
/// ```
pub fn ttgir_to_llvm(vendor: Vendor, explain: bool) -> Vec<String> {
    match vendor {
        Vendor::Nvidia => nvidia::passes(explain),
        Vendor::Amd => amd::passes(explain),
    }
}

/// All passes of this crate.
pub static PASSES: [&PassDef; 1] = [&CONVERT_TO_LLVM];

/// The passes of this crate and of those below it: what every tool registers.
pub fn all_passes() -> impl Iterator<Item = &'static PassDef> {
    ttopt_passes::PASSES.iter().chain(&PASSES).copied()
}
