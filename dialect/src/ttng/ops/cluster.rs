//! Fences, clusters and their launch, packed arithmetic.

use super::{reads_shared, writes_shared};
use crate::constraints::*;
use crate::interfaces::MBARRIER_LONG;
use crate::tt::enums::ProgramDim;
use crate::ttg::types::MEMDESC_TYPE;
use crate::ttg::verify::ON_BUFFERS;
use crate::ttng::enums::PackedArithOpKind;
use crate::ttng::types::I128;
use crate::ttng::verify::{self, BARRIER};
use mlir_host::attrs::BoolAttr;
use mlir_host::def::{Effects, TypeConstraint};
use mlir_host::ir::{FloatKind, Type};
use mlir_host::op;
use mlir_host::traits::Trait;

fn is_float(ty: Type<'_>, kinds: &[FloatKind]) -> bool {
    ty.float_kind().is_some_and(|kind| kinds.contains(&kind))
}

const RESULTS: [FloatKind; 5] =
    [FloatKind::F8E4M3FN, FloatKind::F8E5M2, FloatKind::F16, FloatKind::BF16, FloatKind::F32];

static PACKED_OPERAND: TypeConstraint =
    TypeConstraint::new("ranked tensor of packed arithmetic operand element values", |ty| {
        ty.as_tensor().is_some_and(|tensor| {
            let element = tensor.element();
            element.is_int(8) || is_float(element, &RESULTS) || is_float(element, &[FloatKind::F8E8M0FNU])
        })
    });
static PACKED_RESULT: TypeConstraint =
    TypeConstraint::new("ranked tensor of packed arithmetic result element values", |ty| {
        ty.as_tensor().is_some_and(|tensor| is_float(tensor.element(), &RESULTS))
    });

op! {
    /// Elementwise arithmetic on two or four elements per instruction.
    pub struct PackedArithOp = "ttng.packed_arith" {
        operands: [operands[var]: PACKED_OPERAND],
        results: [result: PACKED_RESULT],
        attrs: [op_kind: PackedArithOpKind],
        traits: [Trait::Pure, ON_BUFFERS],
        format: "$op_kind $operands attr-dict `:` functional-type($operands, $result)",
        with: {
            verify: Some(verify::packed_arith),
        },
    }
}

op! {
    /// Orders accesses to shared memory before those of asynchronous units.
    pub struct FenceAsyncSharedOp = "ttng.fence_async_shared" {
        attrs: [cluster("bCluster"): BoolAttr],
        traits: [ON_BUFFERS],
        format: "attr-dict",
    }
}

op! {
    /// Makes initialized barriers visible to the other CTAs of the cluster.
    pub struct FenceMBarrierInitReleaseClusterOp = "ttng.fence_mbarrier_init_release_cluster" {
        traits: [ON_BUFFERS],
        format: "attr-dict",
        with: { verify: Some(verify::in_cluster) },
    }
}

op! {
    /// Synchronizes all warps of the cluster.
    pub struct ClusterBarrierOp = "ttng.cluster_barrier" {
        attrs: [relaxed[default "false"]: BoolAttr],
        traits: [ON_BUFFERS],
        format: "attr-dict",
        with: { verify: Some(verify::cluster_barrier) },
    }
}

op! {
    /// Asks for a pending cluster in place of its launch, and waits for the response.
    pub struct ClcTryCancelSyncOp = "ttng.clc_try_cancel_sync" {
        results: [response: TENSOR],
        traits: [ON_BUFFERS],
        format: "attr-dict `:` type($response)",
        with: { verify: Some(verify::clc_try_cancel_sync) },
    }
}

op! {
    /// Asks for a pending cluster in place of its launch; the response arrives in shared memory.
    pub struct ClcTryCancelOp = "ttng.clc_try_cancel" {
        operands: [result: MEMDESC_TYPE, mbarrier: MEMDESC_TYPE],
        traits: [BARRIER, ON_BUFFERS],
        format: "$result `,` $mbarrier attr-dict `:` qualified(type($result)) `,` qualified(type($mbarrier))",
        with: {
            interfaces: &[MBARRIER_LONG],
            verify: Some(verify::clc_try_cancel),
            effects: Effects::List(&[writes_shared("result"), writes_shared("mbarrier")]),
        },
    }
}

op! {
    /// Loads the response to a request for a cluster.
    pub struct ClcLoadResultOp = "ttng.clc_load_result" {
        operands: [src: MEMDESC_TYPE],
        results: [clc_result("clcResult"): I128],
        traits: [ON_BUFFERS],
        format: "$src attr-dict `:` qualified(type($src)) `->` type($clcResult)",
        with: {
            verify: Some(verify::clc_load_result),
            effects: Effects::List(&[reads_shared("src")]),
        },
    }
}

op! {
    /// Whether a cluster was had.
    pub struct ClcIsCanceledOp = "ttng.clc_is_canceled" {
        operands: [clc_result("clcResult"): I128],
        results: [is_canceled: I1],
        traits: [Trait::Pure, ON_BUFFERS],
        format: "$clcResult attr-dict `:` type($clcResult) `->` type($is_canceled)",
    }
}

op! {
    /// A coordinate of the cluster that was had.
    pub struct ClcGetProgramIdOp = "ttng.clc_get_program_id" {
        operands: [clc_result("clcResult"): I128],
        results: [result: I32],
        attrs: [dim: ProgramDim],
        traits: [Trait::Pure, ON_BUFFERS],
        format: "$clcResult `,` $dim attr-dict `:` type($clcResult) `->` type($result)",
    }
}
