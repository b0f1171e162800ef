//! stub
use mlir_host::def::{Inputs, TypeConstraint, VerifyResult};
use mlir_host::ir::{Op, Type};
use mlir_host::traits::Trait;
fn ok(_: Op<'_>) -> VerifyResult {
    Ok(())
}
pub const BARRIER: Trait = Trait::Verify("barrier", ok);
pub static I32_TENSOR: TypeConstraint =
    TypeConstraint::new("tensor of 32-bit signless integer values", |ty| {
        ty.as_tensor().is_some_and(|tensor| tensor.element().is_int(32))
    });
pub fn prefetch_offsets<'c>(_: &Inputs<'_, 'c>) -> Result<Vec<Type<'c>>, String> {
    Ok(Vec::new())
}
macro_rules! stubs { ($($n:ident)*) => { $(pub fn $n(_: Op<'_>) -> VerifyResult { Ok(()) })* } }
stubs!(extract_slice concat in_thread_transpose local_load_packed_transposed buffer_load buffer_load_to_local buffer_atomic_rmw buffer_atomic_cas buffer_store async_copy_local_to_global scaled_upcast_fp4 scaled_upcast_fp8 scaled_downcast_fp4 scaled_downcast_fp8 in_cluster init_barrier arrive_barrier tdm_load tdm_store tdm_fused_load tdm_gather tdm_scatter update_tensor_descriptor);
