//! Operations, grouped by topic.

pub mod barrier;
pub mod buffer;
pub mod convert;
pub mod register;
pub mod tdm;

pub use barrier::*;
pub use buffer::*;
pub use convert::*;
pub use register::*;
pub use tdm::*;

use crate::ttg::ops::shared;
use mlir_host::def::{Effect, EffectKind, EffectOn, OpDef};

/// The resource of prefetches into the L2 cache.
pub const L2_CACHE: &str = "L2Cache";

/// Reads shared memory through an operand.
const fn reads_shared(operand: &'static str) -> Effect {
    shared(EffectKind::Read, EffectOn::Operand(operand))
}

/// Writes shared memory through an operand.
const fn writes_shared(operand: &'static str) -> Effect {
    shared(EffectKind::Write, EffectOn::Operand(operand))
}

/// All operations.
pub static OPS: &[&OpDef] = &[
    ExtractSliceOp::DEF,
    ConcatOp::DEF,
    InThreadTransposeOp::DEF,
    LocalLoadPackedTransposedOp::DEF,
    BufferLoadOp::DEF,
    BufferLoadToLocalOp::DEF,
    BufferAtomicRmwOp::DEF,
    BufferAtomicCasOp::DEF,
    BufferStoreOp::DEF,
    AsyncCopyLocalToGlobalOp::DEF,
    AsyncWaitOp::DEF,
    MaskedLoadOp::DEF,
    MaskedStoreOp::DEF,
    ScaledUpcastFp4Op::DEF,
    ScaledUpcastFp8Op::DEF,
    ScaledDowncastFp4Op::DEF,
    ScaledDowncastFp8Op::DEF,
    CondBarrierOp::DEF,
    ClusterBarrierArriveOp::DEF,
    ClusterBarrierWaitOp::DEF,
    InitBarrierOp::DEF,
    WaitBarrierOp::DEF,
    ArriveBarrierOp::DEF,
    AsyncCopyMbarrierArriveOp::DEF,
    AsyncTdmCopyGlobalToLocalOp::DEF,
    AsyncTdmCopyLocalToGlobalOp::DEF,
    AsyncTdmFusedCopyGlobalToLocalOp::DEF,
    AsyncTdmGatherOp::DEF,
    AsyncTdmScatterOp::DEF,
    AsyncTdmWaitOp::DEF,
    AsyncTdmIntrinsicWaitOp::DEF,
    TdmPrefetchOp::DEF,
    UpdateTensorDescriptorOp::DEF,
];
