//! Barriers in shared memory (PTX ISA, "mbarrier").

use super::{reads_shared, writes_shared};
use crate::constraints::*;
use crate::interfaces::{MBARRIER, MBARRIER_ALLOC, MBARRIER_LIFE, MBARRIER_LONG, PREDICATED};
use crate::ttg::types::MEMDESC_TYPE;
use crate::ttg::verify::ON_BUFFERS;
use crate::ttng::canonicalize;
use crate::ttng::verify::{self, BARRIER};
use mlir_host::attrs::{I32Attr, UnitAttr};
use mlir_host::def::Effects;
use mlir_host::op;

op! {
    /// Initializes a barrier for a number of arrivals.
    pub struct InitBarrierOp = "ttng.init_barrier" {
        operands: [alloc: MEMDESC_TYPE],
        attrs: [count: I32Attr],
        traits: [BARRIER, ON_BUFFERS],
        format: "$alloc `,` $count attr-dict `:` qualified(type($alloc))",
        with: {
            interfaces: &[MBARRIER_LIFE],
            verify: Some(verify::init_barrier),
            effects: Effects::List(&[writes_shared("alloc")]),
        },
    }
}

op! {
    /// Ends the life of a barrier, so that its memory can be used again.
    pub struct InvalBarrierOp = "ttng.inval_barrier" {
        operands: [alloc: MEMDESC_TYPE],
        traits: [BARRIER, ON_BUFFERS],
        format: "$alloc attr-dict `:` qualified(type($alloc))",
        with: { interfaces: &[MBARRIER_LIFE], effects: Effects::List(&[writes_shared("alloc")]) },
    }
}

op! {
    /// Arrives at a barrier and announces bytes that will be copied.
    pub struct BarrierExpectOp = "ttng.barrier_expect" {
        operands: [alloc: MEMDESC_TYPE, pred: I1],
        attrs: [size: I32Attr, from_cta("fromCTA")[opt]: I32Attr],
        traits: [BARRIER, ON_BUFFERS],
        format: "$alloc `,` $size attr-dict `,` $pred `:` qualified(type($alloc))",
        with: {
            interfaces: &[MBARRIER_ALLOC, PREDICATED],
            canonicalize: &canonicalize::BARRIER_EXPECT,
            verify: Some(verify::barrier_expect),
            effects: Effects::List(&[writes_shared("alloc")]),
        },
    }
}

op! {
    /// Waits until a phase of a barrier completes; until then the dependencies may be accessed.
    pub struct WaitBarrierOp = "ttng.wait_barrier" {
        operands: [alloc: MEMDESC_TYPE, phase: I32, pred[opt]: I1, deps[var]: MEMDESC_TYPE],
        traits: [BARRIER, ON_BUFFERS],
        format: "$alloc `,` $phase (`,` $pred^)? (`deps` $deps^)? attr-dict `:` qualified(type($alloc)) (`,` type($deps)^)?",
        with: {
            interfaces: &[MBARRIER_ALLOC, PREDICATED],
            canonicalize: &canonicalize::WAIT_BARRIER,
            effects: Effects::List(&[reads_shared("alloc"), writes_shared("alloc")]),
        },
    }
}

op! {
    /// Arrives at a barrier.
    pub struct ArriveBarrierOp = "ttng.arrive_barrier" {
        operands: [alloc: MEMDESC_TYPE, pred[opt]: I1],
        attrs: [
            count: I32Attr, from_cta("fromCTA")[opt]: I32Attr,
            multicast_cta("multicastCTA")[optdefault "0 : i32"]: I32Attr,
        ],
        traits: [BARRIER, ON_BUFFERS],
        format: "$alloc `,` $count (`,` $pred^)? attr-dict `:` qualified(type($alloc))",
        with: {
            interfaces: &[MBARRIER_ALLOC, PREDICATED],
            canonicalize: &canonicalize::ARRIVE_BARRIER,
            verify: Some(verify::arrive_barrier),
            effects: Effects::List(&[reads_shared("alloc"), writes_shared("alloc")]),
        },
    }
}

op! {
    /// Arrives at a barrier when the copies that were issued are complete.
    pub struct AsyncCopyMbarrierArriveOp = "ttng.async_copy_mbarrier_arrive" {
        operands: [barrier: MEMDESC_TYPE],
        attrs: [no_increment("noIncrement")[opt]: UnitAttr],
        traits: [BARRIER, ON_BUFFERS],
        format: "$barrier attr-dict `:` qualified(type($barrier))",
        with: { interfaces: &[MBARRIER], effects: Effects::List(&[writes_shared("barrier")]) },
    }
}

op! {
    /// Stores a tensor to shared memory of the cluster; a barrier counts the bytes.
    pub struct AsyncSharedStoreOp = "ttng.async_shared_store" {
        operands: [src: TENSOR, dst: MEMDESC_TYPE, mbarrier: MEMDESC_TYPE],
        traits: [BARRIER, ON_BUFFERS],
        format: "$src `,` $dst `,` $mbarrier attr-dict `:` type($src) `->` qualified(type($dst)) `,` qualified(type($mbarrier))",
        with: {
            interfaces: &[MBARRIER_LONG],
            verify: Some(verify::async_shared_store),
            effects: Effects::List(&[writes_shared("dst"), writes_shared("mbarrier")]),
        },
    }
}
