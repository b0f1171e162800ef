//! Attributes of modules: for which machine and how many threads the IR is.

use mlir_host::ir::{Attr, Op};
use mlir_host::upstream::ModuleOp;

/// Warps of a block: `i32`.
pub const NUM_WARPS: &str = "ttg.num-warps";
/// Blocks of a cluster: `i32`.
pub const NUM_CTAS: &str = "ttg.num-ctas";
/// Threads of a warp: `i32`.
pub const THREADS_PER_WARP: &str = "ttg.threads-per-warp";
/// Warps of a block that runs `ttg.warp_specialize`: `i32`.
pub const TOTAL_NUM_WARPS: &str = "ttg.total-num-warps";
/// The machine, as in `cuda:90` and `hip:gfx942`: a string.
pub const TARGET: &str = "ttg.target";
/// Bytes of dynamic shared memory: `i32`.
pub const SHARED: &str = "ttg.shared";
/// Columns of tensor memory: `i32`.
pub const TENSOR_MEMORY_SIZE: &str = "ttg.tensor_memory_size";
/// Registers that a thread may use: `i32`.
pub const MAX_REGISTERS: &str = "ttg.maxnreg";
/// Waves that a SIMD of an AMD GPU is to hold: `i32`.
pub const WAVES_PER_EU: &str = "ttg.waves_per_eu";
/// Bytes of global scratch memory of one program: `i32`.
pub const GLOBAL_SCRATCH_SIZE: &str = "ttg.global_scratch_memory_size";
/// Alignment of the global scratch memory: `i32`.
pub const GLOBAL_SCRATCH_ALIGNMENT: &str = "ttg.global_scratch_memory_alignment";
/// Bytes of scratch memory of one program for profiles: `i32`.
pub const PROFILE_SCRATCH_SIZE: &str = "ttg.profile_scratch_memory_size";
/// Alignment of the scratch memory for profiles: `i32`.
pub const PROFILE_SCRATCH_ALIGNMENT: &str = "ttg.profile_scratch_memory_alignment";

/// The closest module around `op`, which may be the module itself.
pub fn module(op: Op<'_>) -> Option<Op<'_>> {
    let is_module = |op: Op<'_>| ModuleOp::cast(op).is_some();
    if is_module(op) { Some(op) } else { op.ancestor(is_module) }
}

fn get<'c>(op: Op<'c>, name: &str) -> Option<Attr<'c>> {
    module(op)?.discardable_attr(name)
}

fn get_u32(op: Op<'_>, name: &str) -> Option<u32> {
    u32::try_from(get(op, name)?.as_int()?).ok()
}

fn set_u32(op: Op<'_>, name: &str, value: u32) {
    if let Some(module) = module(op) {
        module.set_attr(name, Attr::int(module.context(), 32, value.into()));
    }
}

macro_rules! integers {
    ($( $(#[$doc:meta])* $get:ident, $set:ident: $name:ident; )*) => {
        $(
            $(#[$doc])*
            pub fn $get(op: Op<'_>) -> Option<u32> {
                get_u32(op, $name)
            }
            /// Sets it on the closest module.
            pub fn $set(op: Op<'_>, value: u32) {
                set_u32(op, $name, value)
            }
        )*
    };
}

integers! {
    /// Warps of a block, as the module says. Inside of a partition of
    /// `ttg.warp_specialize` it is another number: [`num_warps`].
    module_num_warps, set_num_warps: NUM_WARPS;
    /// Blocks of a cluster.
    num_ctas, set_num_ctas: NUM_CTAS;
    /// Threads of a warp.
    threads_per_warp, set_threads_per_warp: THREADS_PER_WARP;
    /// Warps of a block, those of partitions included.
    total_num_warps, set_total_num_warps: TOTAL_NUM_WARPS;
    /// Bytes of dynamic shared memory.
    shared, set_shared: SHARED;
    /// Columns of tensor memory.
    tensor_memory_size, set_tensor_memory_size: TENSOR_MEMORY_SIZE;
    /// Registers that a thread may use.
    max_registers, set_max_registers: MAX_REGISTERS;
    /// Waves that a SIMD is to hold.
    waves_per_eu, set_waves_per_eu: WAVES_PER_EU;
    /// Bytes of global scratch memory of one program.
    global_scratch_size, set_global_scratch_size: GLOBAL_SCRATCH_SIZE;
    /// Alignment of the global scratch memory.
    global_scratch_alignment, set_global_scratch_alignment: GLOBAL_SCRATCH_ALIGNMENT;
    /// Bytes of scratch memory for profiles of one program.
    profile_scratch_size, set_profile_scratch_size: PROFILE_SCRATCH_SIZE;
    /// Alignment of the scratch memory for profiles.
    profile_scratch_alignment, set_profile_scratch_alignment: PROFILE_SCRATCH_ALIGNMENT;
}

/// The machine that the module is for.
pub fn target(op: Op<'_>) -> Option<&str> {
    get(op, TARGET)?.as_str()
}

/// Sets the machine of the closest module.
pub fn set_target(op: Op<'_>, target: &str) {
    if let Some(module) = module(op) {
        module.set_attr(TARGET, Attr::string(module.context(), target));
    }
}

/// The number of warps that run `op`: its partition's, else that of an
/// enclosing function or module that says one. `None` where nothing does.
pub fn num_warps(op: Op<'_>) -> Option<u32> {
    let mut op = op;
    loop {
        if let Some(value) = op.discardable_attr(NUM_WARPS).and_then(Attr::as_int) {
            return u32::try_from(value).ok();
        }
        let parent = op.parent()?;
        // By name: encodings know no operations.
        if parent.name() == "ttg.warp_specialize.partitions" {
            let region = op.block()?.parent_region()?.number();
            let warps = parent.parent()?.attr("partitionNumWarps")?.as_i32_array()?;
            return u32::try_from(*warps.get(region)?).ok();
        }
        op = parent;
    }
}
