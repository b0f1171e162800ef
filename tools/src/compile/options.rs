//! What a compilation is asked for.

use crate::companions::Companions;
use crate::overrides::Override;
use anyhow::{Context as _, Result, anyhow};
use linear_layout::target::Vendor;
use std::path::PathBuf;
use ttopt_passes::estimate::Launch;

/// What to stop at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// The input, parsed and verified.
    Ttir,
    /// With layouts.
    Ttgir,
    /// The `llvm` dialect.
    Llvm,
    /// Optimized LLVM IR.
    Llvmir,
    /// The target's assembly: PTX or AMDGCN.
    Asm,
    /// Assembly for NVIDIA GPUs.
    Ptx,
    /// Assembly for AMD GPUs.
    Amdgcn,
    /// A binary for the target: a cubin or an hsaco.
    Bin,
    /// A binary for NVIDIA GPUs.
    Cubin,
    /// A binary for AMD GPUs: a code object.
    Hsaco,
    /// The machine code of a cubin as text, with lines of the source.
    Sass,
}

impl Stage {
    /// All of them, in the order of a compilation, with their names and what each is.
    pub const ALL: [(Stage, &str, &str); 11] = [
        (Stage::Ttir, "ttir", "The input, parsed and verified"),
        (Stage::Ttgir, "ttgir", "With layouts"),
        (Stage::Llvm, "llvm", "The `llvm` dialect"),
        (Stage::Llvmir, "llvmir", "Optimized LLVM IR"),
        (Stage::Asm, "asm", "The target's assembly: PTX or AMDGCN"),
        (Stage::Ptx, "ptx", "Assembly for NVIDIA GPUs"),
        (Stage::Amdgcn, "amdgcn", "Assembly for AMD GPUs"),
        (Stage::Bin, "bin", "A binary for the target: a cubin or an hsaco"),
        (Stage::Cubin, "cubin", "A binary for NVIDIA GPUs"),
        (Stage::Hsaco, "hsaco", "A binary for AMD GPUs: a code object"),
        (Stage::Sass, "sass", "The machine code of a cubin as text, with lines of the source"),
    ];

    /// The stage of a name; `llir` is `llvmir`.
    pub fn of_name(name: &str) -> Option<Stage> {
        let name = if name == "llir" { "llvmir" } else { name };
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(stage, ..)| *stage)
    }

    /// Whose GPUs have it; all have the others.
    pub(super) fn vendor(self) -> Option<Vendor> {
        match self {
            Stage::Ptx | Stage::Cubin | Stage::Sass => Some(Vendor::Nvidia),
            Stage::Amdgcn | Stage::Hsaco => Some(Vendor::Amd),
            _ => None,
        }
    }

    /// Whether it is assembly.
    pub fn is_assembly(self) -> bool {
        matches!(self, Stage::Asm | Stage::Ptx | Stage::Amdgcn)
    }
}

/// What to compile for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// As in `ttg.target`: `cuda:80`; without one the module's, or `cuda:90`.
    pub target: Option<String>,
    /// Warps of a program, those of partitions included.
    pub num_warps: u32,
    /// Stages of software pipelines.
    pub num_stages: u32,
    /// CTAs of a cluster that run one program.
    pub num_ctas: u32,
    /// What to stop at.
    pub emit: Stage,
    /// Stages or passes after which the IR is printed to stderr; `all` for all.
    pub print_after: Vec<String>,
    /// Whether passes explain their choices as remarks.
    pub explain: bool,
    /// Whether the schedules of loops are wanted.
    pub schedules: bool,
    /// The launch for which it is wanted what a program asks of the GPU.
    pub estimate: Option<Launch>,
    /// Whether the IR is verified after each pass, not only after each stage.
    pub verify_each: bool,
    /// Whether all descriptors that can have a tensor map have one, also where pointers were measured to be
    /// faster.
    pub all_tensor_maps: bool,
    /// Whether the artifacts of all stages on the way are kept.
    pub keep: bool,
    /// Where each stage is written as soon as it is made, also when a later one fails: `KERNEL.ttir`, `.ttgir`, `.llir`, and so
    /// on.
    pub dump: Option<PathBuf>,
    /// Whether TTIR, TTGIR and the `llvm` dialect are printed with locations and with the names of values.
    pub locations: bool,
    /// Whether the code has lines of the source, for debuggers and profilers.
    pub line_info: bool,
    /// The most registers that a thread may have (`.maxnreg`); how many CTAs a multiprocessor should hold is left open
    /// then.
    pub max_registers: Option<u32>,
    /// The waves that a SIMD of an AMD GPU is to hold, by which registers are given out; where it is open LLVM decides.
    pub waves_per_eu: Option<u32>,
    /// Whether a product and a sum may become one operation that rounds once.
    pub fp_fusion: bool,
    /// Whether libdevice's functions of singles, square roots and roundings to whole numbers take denormal numbers for zero, as
    /// Triton's `enable_reflect_ftz` lets them by default; NVIDIA's GPUs only.
    pub flush_denormals: bool,
    /// Whether PTX that may do better with the registers that `ptxas` has for it is made beside the one asked for
    /// ([`Compiled::second`](super::Compiled::second)): for those who assemble it themselves. Binaries are made of the better one in any case.
    pub second: bool,
    /// What `ptxas` is told beyond what it needs to know.
    pub ptxas_options: Vec<String>,
    /// Stages that take the place of what would be made.
    pub overrides: Vec<Override>,
    /// Where assemblers, linkers and libraries are.
    pub companions: Companions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            target: None,
            num_warps: 4,
            num_stages: 3,
            num_ctas: 1,
            emit: Stage::Asm,
            print_after: Vec::new(),
            explain: false,
            schedules: false,
            estimate: None,
            verify_each: cfg!(debug_assertions),
            all_tensor_maps: false,
            keep: false,
            dump: None,
            locations: false,
            line_info: true,
            max_registers: None,
            waves_per_eu: None,
            fp_fusion: true,
            flush_denormals: true,
            second: false,
            ptxas_options: Vec::new(),
            overrides: Vec::new(),
            companions: Companions::default(),
        }
    }
}

impl Options {
    /// The default ones, but for the stage to stop at; fields are there to be set.
    pub fn new(emit: Stage) -> Self {
        Self { emit, ..Self::default() }
    }

    /// The same for a target.
    pub fn for_target(target: impl Into<String>, emit: Stage) -> Self {
        Self { target: Some(target.into()), ..Self::new(emit) }
    }
}

/// A launch for [`Options::estimate`]: `{"grid": [1, 1, 1], "args": [{"value": 7}, …]}`, as far as it is known.
///
/// # Errors
/// What is wrong with it.
pub fn launch_of_json(text: &str) -> Result<Launch> {
    let json: serde_json::Value = serde_json::from_str(text).context("the launch is not JSON")?;
    let mut launch = Launch::default();
    if let Some(grid) = json.get("grid") {
        let sizes: Vec<i64> =
            grid.as_array().into_iter().flatten().filter_map(serde_json::Value::as_i64).collect();
        launch.grid =
            Some(sizes.try_into().map_err(|_| anyhow!("`grid` of the launch must be three numbers"))?);
    }
    let arguments = json.get("args").and_then(|args| args.as_array());
    let value = |argument: &serde_json::Value| argument.get("value").and_then(serde_json::Value::as_i64);
    launch.arguments = arguments.into_iter().flatten().map(value).collect();
    Ok(launch)
}
