//! NVIDIA's passes from TTIR to TTGIR.

use super::Entry;
use super::Given::*;
use super::When::*;

/// All of them, in order.
pub(super) const PASSES: &[Entry] = &[
    Entry::new("triton-rewrite-tensor-descriptor-to-pointer").when(NoTensorMaps),
    Entry::with(
        "triton-rewrite-tensor-descriptor-to-pointer",
        &[
            ("target", Target),
            ("explain", Explain),
            ("all-tensor-maps", AllTensorMaps),
            ("num-ctas", NumCtas),
        ],
    )
    .when(TensorMaps),
    Entry::new("triton-counted-loops"),
    Entry::new("triton-known-comparisons"),
    Entry::new("triton-combine"),
    Entry::new("triton-reorder-broadcast"),
    Entry::new("triton-loop-unroll"),
    Entry::with("triton-order-programs", &[("num-ctas", NumCtas), ("explain", Explain)]),
    Entry::with("triton-relax-atomics", &[("explain", Explain)]),
    Entry::CONVERT,
    Entry::with("tritongpu-coalesce", &[("explain", Explain)]),
    Entry::with("tritongpu-F32DotTC", &[("emu-tf32", RoundsSingle)]),
    Entry::with("tritongpu-accelerate-matmul", &[("explain", Explain)]),
    Entry::with(
        "tritongpu-remove-layout-conversions",
        &[("before-sums", True), ("explain", Explain), ("few-replicas", FewReplicas)],
    ),
    Entry::new("tritongpu-optimize-thread-locality"),
    Entry::new("tritongpu-optimize-dot-operands"),
    Entry::new("triton-licm"),
    Entry::new("tritongpu-combine-tensor-select-and-if"),
    Entry::new("triton-loop-aware-cse"),
    Entry::new("tritongpu-reduce-data-duplication"),
    Entry::new("triton-nvidia-optimize-descriptor-encoding").when(TensorMaps),
    Entry::new("triton-nvidia-tma-lowering").when(TensorMaps),
    // Layouts are decided once more on what all others left.
    Entry::new("canonicalize"),
    Entry::new("cse"),
    Entry::with(
        "tritongpu-remove-layout-conversions",
        &[("explain", Explain), ("few-replicas", FewReplicas), ("mark-replicas", MarkReplicas)],
    ),
    Entry::new("tritongpu-arrange-buffers"),
    Entry::new("tritongpu-reorder-instructions"),
    Entry::new("triton-nvidia-store-invariant-operands").when(TensorMaps),
    Entry::with("tritongpu-explain-layouts", &[("table", True)]).when(Explained),
    Entry::with(
        "tritongpu-pipeline",
        &[
            ("num-stages", NumStages),
            ("explain", Explain),
            ("record", RecordSchedules),
            ("ahead-in-registers", AheadInRegisters),
            ("leave-room", LeaveRoom),
            ("add-stage", True),
        ],
    ),
    Entry::with("tritongpu-dots-in-parts", &[("explain", Explain)]),
    Entry::new("tritongpu-fit-shared-memory"),
    Entry::new("triton-nvidia-delay-store-waits").when(TensorMaps),
    Entry::new("tritongpu-cluster-buffers"),
    Entry::new("tritongpu-last-use"),
];
