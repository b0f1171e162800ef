//! Barriers: of parts of a workgroup, of a cluster, and in shared memory.

use super::{reads_shared, writes_shared};
use crate::amdg::verify::{self, BARRIER};
use crate::constraints::*;
use crate::interfaces::MBARRIER;
use crate::ttg::types::MEMDESC_TYPE;
use mlir_host::attrs::I32Attr;
use mlir_host::def::Effects;
use mlir_host::op;

op! {
    /// A barrier for those warps whose predicate is true.
    pub struct CondBarrierOp = "amdg.cond_barrier" {
        operands: [pred: I1],
        format: "$pred attr-dict",
    }
}

op! {
    /// Arrives at the barrier of the cluster.
    pub struct ClusterBarrierArriveOp = "amdg.cluster_barrier_arrive" {
        format: "attr-dict",
        with: { verify: Some(verify::in_cluster) },
    }
}

op! {
    /// Waits until the whole cluster has arrived at its barrier.
    pub struct ClusterBarrierWaitOp = "amdg.cluster_barrier_wait" {
        format: "attr-dict",
        with: { verify: Some(verify::in_cluster) },
    }
}

op! {
    /// Initializes a barrier for a number of arrivals.
    pub struct InitBarrierOp = "amdg.init_barrier" {
        operands: [alloc: MEMDESC_TYPE],
        attrs: [count: I32Attr],
        traits: [BARRIER],
        format: "$alloc `,` $count attr-dict `:` qualified(type($alloc))",
        with: {
            verify: Some(verify::init_barrier),
            effects: Effects::List(&[writes_shared("alloc")]),
        },
    }
}

op! {
    /// Waits until a phase of a barrier completes.
    pub struct WaitBarrierOp = "amdg.wait_barrier" {
        operands: [alloc: MEMDESC_TYPE, phase: I32],
        traits: [BARRIER],
        format: "$alloc `,` $phase attr-dict `:` qualified(type($alloc))",
        with: { effects: Effects::List(&[reads_shared("alloc"), writes_shared("alloc")]) },
    }
}

op! {
    /// Arrives at a barrier; gives the parity of its phase before.
    pub struct ArriveBarrierOp = "amdg.arrive_barrier" {
        operands: [alloc: MEMDESC_TYPE],
        results: [result: I32],
        attrs: [count: I32Attr],
        traits: [BARRIER],
        format: "$alloc `,` $count attr-dict `:` qualified(type($alloc)) `->` type($result)",
        with: {
            verify: Some(verify::arrive_barrier),
            effects: Effects::List(&[reads_shared("alloc"), writes_shared("alloc")]),
        },
    }
}

op! {
    /// Arrives at a barrier when the copies that were issued are complete.
    pub struct AsyncCopyMbarrierArriveOp = "amdg.async_copy_mbarrier_arrive" {
        operands: [barrier: MEMDESC_TYPE],
        traits: [BARRIER],
        format: "$barrier attr-dict `:` qualified(type($barrier))",
        with: { interfaces: &[MBARRIER], effects: Effects::List(&[reads_shared("barrier"), writes_shared("barrier")]) },
    }
}
