//! Operations, grouped by topic.

pub mod barrier;
pub mod cluster;
pub mod mma;
pub mod tensor_memory;
pub mod tma;

pub use barrier::*;
pub use cluster::*;
pub use mma::*;
pub use tensor_memory::*;
pub use tma::*;

use crate::ttg::ops::shared;
use crate::ttg::types::MEMDESC;
use mlir_host::def::{Effect, EffectKind, EffectOn, OpDef, TypeConstraint};

/// The resource of all accesses to tensor memory.
pub const TENSOR_MEMORY: &str = "TensorMemory";

/// Reads shared memory through an operand.
const fn reads_shared(operand: &'static str) -> Effect {
    shared(EffectKind::Read, EffectOn::Operand(operand))
}

/// Writes shared memory through an operand.
const fn writes_shared(operand: &'static str) -> Effect {
    shared(EffectKind::Write, EffectOn::Operand(operand))
}

/// Reads tensor memory through an operand.
const fn reads_tensor_memory(operand: &'static str) -> Effect {
    Effect { kind: EffectKind::Read, resource: TENSOR_MEMORY, on: EffectOn::Operand(operand) }
}

/// Writes tensor memory through an operand.
const fn writes_tensor_memory(operand: &'static str) -> Effect {
    Effect { kind: EffectKind::Write, resource: TENSOR_MEMORY, on: EffectOn::Operand(operand) }
}

/// A tensor or a memory descriptor.
pub static TENSOR_OR_MEMDESC: TypeConstraint =
    TypeConstraint::new("a tensor or a memory descriptor", |ty| ty.as_tensor().is_some() || ty.is(&MEMDESC));

/// All operations.
pub static OPS: &[&OpDef] = &[
    PackedArithOp::DEF,
    FenceAsyncSharedOp::DEF,
    FenceMBarrierInitReleaseClusterOp::DEF,
    ClusterBarrierOp::DEF,
    ClcTryCancelSyncOp::DEF,
    ClcTryCancelOp::DEF,
    ClcLoadResultOp::DEF,
    ClcIsCanceledOp::DEF,
    ClcGetProgramIdOp::DEF,
    WarpGroupDotOp::DEF,
    WarpGroupDotWaitOp::DEF,
    InitBarrierOp::DEF,
    InvalBarrierOp::DEF,
    BarrierExpectOp::DEF,
    WaitBarrierOp::DEF,
    ArriveBarrierOp::DEF,
    AsyncCopyMbarrierArriveOp::DEF,
    AsyncSharedStoreOp::DEF,
    AsyncTmaCopyGlobalToLocalOp::DEF,
    AsyncTmaCopyLocalToGlobalOp::DEF,
    AsyncTmaReduceOp::DEF,
    AsyncTmaGatherOp::DEF,
    AsyncTmaScatterOp::DEF,
    TmaStoreWaitOp::DEF,
    TcGen5MmaOp::DEF,
    TcGen5MmaScaledOp::DEF,
    TcGen5CommitOp::DEF,
    TmemWaitOp::DEF,
    TmemLoadOp::DEF,
    TmemStoreOp::DEF,
    TmemAllocOp::DEF,
    TmemSubSliceOp::DEF,
    TmemCopyOp::DEF,
    ReinterpretTensorDescOp::DEF,
    TensormapCreateOp::DEF,
    TensormapFenceproxyAcquireOp::DEF,
];
