//! Operations, grouped by topic.

pub mod async_copy;
pub mod convert;
pub mod local;
pub mod memdesc;
pub mod program;
pub mod warp_specialize;

pub use async_copy::*;
pub use convert::*;
pub use local::*;
pub use memdesc::*;
pub use program::*;
pub use warp_specialize::*;

use mlir_host::def::{Effect, EffectKind, EffectOn, OpDef};
use mlir_host::ir::Op;
use mlir_host::traits::Trait;

/// The resource of all accesses to shared memory.
pub const SHARED_MEMORY: &str = "SharedMemory";

/// An effect on shared memory.
pub(crate) const fn shared(kind: EffectKind, on: EffectOn) -> Effect {
    Effect { kind, resource: SHARED_MEMORY, on }
}

/// A view of a memory descriptor: moves no data.
pub const MEMDESC_VIEW: Trait = Trait::Mark("memdesc view");
/// A load from shared memory to registers.
pub const LOCAL_LOAD: Trait = Trait::Mark("local load");
/// Waits for memory operations that run beside the program.
pub const MEM_WAIT: Trait = Trait::Mark("mem wait");
/// Copies from global to shared memory, beside the program.
pub const GLOBAL_TO_LOCAL_COPY: Trait = Trait::Mark("global to local copy");
/// Regions run at the same time on different warps.
pub const ASYNC_REGIONS: Trait = Trait::Mark("async regions");

/// Whether the operation is a view of a memory descriptor.
pub fn is_memdesc_view(op: Op<'_>) -> bool {
    op.def().is_some_and(|def| def.has_trait(&MEMDESC_VIEW))
}

/// All operations.
pub static OPS: &[&OpDef] = &[
    InlineAsmOp::DEF,
    ConvertLayoutOp::DEF,
    AsyncWaitOp::DEF,
    AsyncCommitGroupOp::DEF,
    AsyncCopyGlobalToLocalOp::DEF,
    LocalAllocOp::DEF,
    LocalDeallocOp::DEF,
    MemDescIndexOp::DEF,
    MemDescSubsliceOp::DEF,
    MemDescSubviewOp::DEF,
    MemDescTransOp::DEF,
    MemDescReshapeOp::DEF,
    MemDescReinterpretOp::DEF,
    LocalLoadOp::DEF,
    LocalStoreOp::DEF,
    LocalGatherOp::DEF,
    LocalScatterOp::DEF,
    LocalAtomicScatterRmwOp::DEF,
    PredicateStageOp::DEF,
    MaskOp::DEF,
    MaskReturnOp::DEF,
    Fp4ToFpOp::DEF,
    GlobalScratchAllocOp::DEF,
    WarpSpecializeOp::DEF,
    WarpSpecializePartitionsOp::DEF,
    WarpYieldOp::DEF,
    WarpReturnOp::DEF,
    BarrierOp::DEF,
    WarpIdOp::DEF,
];
