//! stub
use mlir_host::def::VerifyResult;
use mlir_host::ir::Op;
use mlir_host::traits::Trait;
fn ok(_: Op<'_>) -> VerifyResult {
    Ok(())
}
pub const BARRIER: Trait = Trait::Verify("barrier", ok);
pub const MMA: Trait = Trait::Verify("mma", ok);
pub const DOT_SHAPES: Trait = Trait::Verify("dot shapes", ok);
macro_rules! stubs { ($($n:ident)*) => { $(pub fn $n(_: Op<'_>) -> VerifyResult { Ok(()) })* } }
stubs!(packed_arith in_cluster cluster_barrier clc_try_cancel_sync clc_try_cancel clc_load_result init_barrier barrier_expect arrive_barrier async_shared_store tma_load tma_store tma_reduce tma_gather tma_scatter tensormap_create warp_group_dot warp_group_dot_wait tc_gen5_mma tc_gen5_mma_scaled tc_gen5_commit tmem_wait tmem_load tmem_store tmem_alloc tmem_subslice tmem_copy);
