//! The passes from TTIR to TTGIR: each vendor's list is data, in a file of its own.

mod amd;
mod nvidia;

use linear_layout::plan::{DotType, MatrixInstruction};
use linear_layout::target::{TargetDesc, Vendor};
use std::fmt::Write;

/// What to compile for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The GPU, as in `cuda:90`.
    pub target: String,
    /// Warps of a CTA.
    pub num_warps: u32,
    /// Stages of software pipelining.
    pub num_stages: u32,
    /// CTAs of a cluster.
    pub num_ctas: u32,
    /// Whether passes report what they chose and why, as remarks.
    pub explain: bool,
    /// Whether the schedules of loops are written to the module ([`SCHEDULES`](crate::schedule::pass::SCHEDULES)).
    pub record_schedules: bool,
    /// Whether loads may run ahead where all of them only wait in registers, or one stage is asked for
    /// ([`AHEAD_IN_REGISTERS`](crate::schedule::pass::AHEAD_IN_REGISTERS)).
    pub ahead_in_registers: bool,
    /// Whether rings leave shared memory for one more CTA where that costs nothing else
    /// ([`COULD_LEAVE_ROOM`](crate::schedule::pass::COULD_LEAVE_ROOM)).
    pub leave_room: bool,
    /// Whether layouts are to have few threads load the same; without it a module in which many do is marked
    /// ([`HAS_REPLICAS`](crate::remove_layout_conversions::HAS_REPLICAS)).
    pub few_replicas: bool,
    /// Whether descriptors have tensor maps also where pointers were measured to be faster.
    pub all_tensor_maps: bool,
}

impl Options {
    /// The default ones for a target; fields are there to be set.
    pub fn for_target(target: impl Into<String>) -> Self {
        Self { target: target.into(), ..Self::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            target: "cuda:90".to_owned(),
            num_warps: 4,
            num_stages: 3,
            num_ctas: 1,
            explain: false,
            record_schedules: false,
            ahead_in_registers: true,
            leave_room: false,
            few_replicas: false,
            all_tensor_maps: false,
        }
    }
}

/// What an option of a pass is given.
#[derive(Clone, Copy)]
enum Given {
    Target,
    NumWarps,
    ThreadsPerWarp,
    NumCtas,
    NumStages,
    Explain,
    RecordSchedules,
    AheadInRegisters,
    LeaveRoom,
    FewReplicas,
    MarkReplicas,
    AllTensorMaps,
    /// Whether the matrix instructions of the target multiply f32 only rounded to TF32.
    RoundsSingle,
    True,
}

/// When a pass runs.
#[derive(Clone, Copy)]
enum When {
    Always,
    /// When passes are to report what they chose.
    Explained,
    /// On targets with bulk tensor copies.
    TensorMaps,
    /// On others.
    NoTensorMaps,
    /// On targets with tensor operations by descriptors.
    TensorMoves,
    /// On others.
    NoTensorMoves,
}

/// A pass in a vendor's list.
struct Entry {
    pass: &'static str,
    options: &'static [(&'static str, Given)],
    when: When,
}

impl Entry {
    /// The pass that makes TTGIR of TTIR.
    const CONVERT: Entry = Entry::with(
        "convert-triton-to-tritongpu",
        &[
            ("target", Given::Target),
            ("num-warps", Given::NumWarps),
            ("threads-per-warp", Given::ThreadsPerWarp),
            ("num-ctas", Given::NumCtas),
        ],
    );
    const fn new(pass: &'static str) -> Self {
        Self::with(pass, &[])
    }
    const fn with(pass: &'static str, options: &'static [(&'static str, Given)]) -> Self {
        Self { pass, options, when: When::Always }
    }
    const fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    fn runs(&self, options: &Options, target: Option<&TargetDesc>) -> bool {
        let maps = target.is_some_and(|target| target.primitives.bulk_copy);
        let moves = target.is_some_and(|target| target.primitives.tensor_data_mover);
        match self.when {
            When::TensorMoves => moves,
            When::NoTensorMoves => !moves,
            When::Always => true,
            When::Explained => options.explain,
            When::TensorMaps => maps,
            When::NoTensorMaps => !maps,
        }
    }

    /// In the notation of MLIR's textual pipelines.
    fn text(&self, options: &Options, target: Option<&TargetDesc>) -> String {
        let value = |given: Given| match given {
            Given::Target => options.target.clone(),
            Given::NumWarps => options.num_warps.to_string(),
            Given::ThreadsPerWarp => target.map_or(32, |target| target.lanes).to_string(),
            Given::NumCtas => options.num_ctas.to_string(),
            Given::NumStages => options.num_stages.to_string(),
            Given::Explain => options.explain.to_string(),
            Given::RecordSchedules => options.record_schedules.to_string(),
            Given::AheadInRegisters => options.ahead_in_registers.to_string(),
            Given::LeaveRoom => options.leave_room.to_string(),
            Given::FewReplicas => options.few_replicas.to_string(),
            Given::MarkReplicas => (!options.few_replicas).to_string(),
            Given::AllTensorMaps => options.all_tensor_maps.to_string(),
            Given::RoundsSingle => target.is_some_and(rounds_single).to_string(),
            Given::True => true.to_string(),
        };
        let given: Vec<String> =
            self.options.iter().map(|(name, given)| format!("{name}={}", value(*given))).collect();
        if given.is_empty() { self.pass.to_owned() } else { format!("{}{{{}}}", self.pass, given.join(" ")) }
    }
}

/// The passes that turn TTIR into TTGIR, each in the notation of MLIR's textual
/// pipelines and to be run on the module: the list of the target's vendor. For a
/// target that is not known it is the pass that says so.
///
/// ```
/// use ttopt_passes::pipeline::{Options, ttir_to_ttgir};
/// let mut options = Options::for_target("cuda:90");
/// options.num_warps = 8;
/// let passes = ttir_to_ttgir(&options);
/// assert!(passes.iter().any(|pass| pass.starts_with("convert-triton-to-tritongpu{target=cuda:90 num-warps=8 ")));
/// let passes = ttir_to_ttgir(&Options::for_target("hip:gfx942"));
/// assert!(passes.iter().any(|pass| pass.contains(" threads-per-warp=64 ")) && !passes.iter().any(|pass| pass.contains("nvidia")));
/// ```
pub fn ttir_to_ttgir(options: &Options) -> Vec<String> {
    let target = TargetDesc::parse(&options.target).ok();
    let list = match target.as_ref().map(|target| target.vendor) {
        Some(Vendor::Nvidia) => nvidia::PASSES,
        Some(Vendor::Amd) => amd::PASSES,
        None => const { &[Entry::CONVERT] },
    };
    let target = target.as_ref();
    list.iter().filter(|entry| entry.runs(options, target)).map(|entry| entry.text(options, target)).collect()
}

/// Whether the target's matrix instructions multiply f32 only rounded to TF32.
fn rounds_single(target: &TargetDesc) -> bool {
    let mut rows = MatrixInstruction::of(target).filter(|row| row.operand == DotType::F32).peekable();
    rows.peek().is_some() && rows.all(|row| row.rounds)
}

/// [`ttir_to_ttgir`] as one pipeline that MLIR's pass managers parse.
///
/// ```
/// use ttopt_passes::pipeline::{Options, pipeline};
/// let text = pipeline(&Options::default());
/// assert!(text.starts_with("builtin.module(triton-rewrite-") && text.ends_with(",tritongpu-cluster-buffers,tritongpu-last-use)"));
/// ```
pub fn pipeline(options: &Options) -> String {
    let mut text = String::from("builtin.module(");
    for (i, pass) in ttir_to_ttgir(options).iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{pass}");
    }
    text.push(')');
    text
}
