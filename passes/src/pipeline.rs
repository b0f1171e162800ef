//! The passes from TTIR to TTGIR, in order.

use linear_layout::plan::{DotType, MatrixInstruction};
use linear_layout::target::TargetDesc;
use std::fmt::Write;

/// What to compile for.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Whether descriptors have tensor maps also where pointers were measured to be faster.
    pub all_tensor_maps: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            target: "cuda:90".to_owned(),
            num_warps: 4,
            num_stages: 3,
            num_ctas: 1,
            explain: false,
            all_tensor_maps: false,
        }
    }
}

/// The passes that turn TTIR into TTGIR, each in the notation of MLIR's textual
/// pipelines and to be run on the module.
///
/// ```
/// use ttopt_passes::pipeline::{Options, ttir_to_ttgir};
/// let passes = ttir_to_ttgir(&Options { num_warps: 8, ..Options::default() });
/// assert!(passes[4].starts_with("convert-triton-to-tritongpu{target=cuda:90 num-warps=8 "));
/// ```
pub fn ttir_to_ttgir(options: &Options) -> Vec<String> {
    let target = TargetDesc::parse(&options.target).ok();
    let threads = target.as_ref().map_or(32, |target| target.lanes);
    let maps = target.as_ref().is_some_and(|target| target.primitives.bulk_copy);
    let convert = format!(
        "convert-triton-to-tritongpu{{target={} num-warps={} threads-per-warp={threads} num-ctas={}}}",
        options.target, options.num_warps, options.num_ctas,
    );
    let coalesce = format!("tritongpu-coalesce{{explain={}}}", options.explain);
    let accelerate = format!("tritongpu-accelerate-matmul{{explain={}}}", options.explain);
    let tf32 = target.is_some_and(|target| rounds_single(&target));
    let split = format!("tritongpu-F32DotTC{{emu-tf32={tf32}}}");
    let mut rewrite = "triton-rewrite-tensor-descriptor-to-pointer".to_owned();
    if maps {
        let Options { target, explain, all_tensor_maps, num_ctas, .. } = options;
        rewrite += &format!(
            "{{target={target} explain={explain} all-tensor-maps={all_tensor_maps} num-ctas={num_ctas}}}"
        );
    }
    let first = ["triton-combine", "triton-reorder-broadcast", "triton-loop-unroll"];
    let last = [
        "tritongpu-remove-layout-conversions",
        "tritongpu-optimize-thread-locality",
        "tritongpu-optimize-dot-operands",
        "triton-licm",
        "tritongpu-combine-tensor-select-and-if",
        "triton-loop-aware-cse",
        "tritongpu-reduce-data-duplication",
    ];
    let tma = ["triton-nvidia-optimize-descriptor-encoding", "triton-nvidia-tma-lowering"];
    let tma = tma.map(str::to_owned).into_iter().filter(|_| maps);
    let explain = options.explain.then(|| "tritongpu-explain-layouts{table=true}".to_owned());
    let chosen = [convert, coalesce, split, accelerate];
    // Layouts are decided once more on what all others left.
    let clean =
        ["canonicalize", "cse", "tritongpu-remove-layout-conversions", "tritongpu-reorder-instructions"]
            .map(str::to_owned);
    let schedule =
        format!("tritongpu-pipeline{{num-stages={} explain={}}}", options.num_stages, options.explain);
    let end = [schedule, "tritongpu-cluster-buffers".to_owned(), "tritongpu-last-use".to_owned()];
    let first = std::iter::once(rewrite).chain(first.map(str::to_owned));
    first
        .chain(chosen)
        .chain(last.map(str::to_owned))
        .chain(tma)
        .chain(clean)
        .chain(explain)
        .chain(end)
        .collect()
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
