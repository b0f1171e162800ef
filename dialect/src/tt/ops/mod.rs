//! Operations, grouped by topic.

pub mod atomic;
pub mod descriptor;
pub mod dot;
pub mod elementwise;
pub mod function;
pub mod memory;
pub mod program;
pub mod region;
pub mod shape;

pub use atomic::*;
pub use descriptor::*;
pub use dot::*;
pub use elementwise::*;
pub use function::*;
pub use memory::*;
pub use program::*;
pub use region::*;
pub use shape::*;

use mlir_host::def::{Effect, EffectKind, EffectOn, OpDef};

/// The resource of all accesses to global memory.
pub const GLOBAL_MEMORY: &str = "GlobalMemory";

/// An effect on global memory.
pub(crate) const fn global(kind: EffectKind, on: EffectOn) -> Effect {
    Effect { kind, resource: GLOBAL_MEMORY, on }
}

/// All operations.
pub static OPS: &[&OpDef] = &[
    IntToPtrOp::DEF,
    PtrToIntOp::DEF,
    BitcastOp::DEF,
    FpToFpOp::DEF,
    ClampFOp::DEF,
    PreciseSqrtOp::DEF,
    PreciseDivFOp::DEF,
    ApproxDivFOp::DEF,
    MulhiUIOp::DEF,
    AddPtrOp::DEF,
    LoadOp::DEF,
    StoreOp::DEF,
    GridDependencyWaitOp::DEF,
    GridDependencyLaunchDependentsOp::DEF,
    AtomicLoadOp::DEF,
    AtomicStoreOp::DEF,
    AtomicPollOp::DEF,
    AtomicRmwOp::DEF,
    AtomicCasOp::DEF,
    SplatOp::DEF,
    UnsplatOp::DEF,
    ExpandDimsOp::DEF,
    ReshapeOp::DEF,
    BroadcastOp::DEF,
    CatOp::DEF,
    JoinOp::DEF,
    SplitOp::DEF,
    TransOp::DEF,
    GetProgramIdOp::DEF,
    GetNumProgramsOp::DEF,
    DotOp::DEF,
    DotScaledOp::DEF,
    ReduceOp::DEF,
    ReduceReturnOp::DEF,
    ScanOp::DEF,
    ScanReturnOp::DEF,
    MapElementwiseOp::DEF,
    MapElementwiseReturnOp::DEF,
    ExternElementwiseOp::DEF,
    MakeRangeOp::DEF,
    ElementwiseInlineAsmOp::DEF,
    HistogramOp::DEF,
    GatherOp::DEF,
    PrintOp::DEF,
    AssertOp::DEF,
    MakeTensorDescOp::DEF,
    CallOp::DEF,
    FuncOp::DEF,
    ReturnOp::DEF,
    DescriptorLoadOp::DEF,
    DescriptorStoreOp::DEF,
    DescriptorReduceOp::DEF,
    DescriptorGatherOp::DEF,
    DescriptorScatterOp::DEF,
];
