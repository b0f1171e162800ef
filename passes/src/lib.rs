//! Analyses and passes from TTIR to TTGIR.
//!
//! * [`analysis`] has what is known about values.
//! * [`convert_triton_to_tritongpu`] gives tensors layouts, [`coalesce`] gives
//!   accesses to memory good ones, [`remove_layout_conversions`] lets the rest
//!   of a function follow.
//! * [`loop_unroll`], [`loop_invariant`] and [`loop_aware_cse`] work on loops, with or
//!   without layouts.
//! * [`accelerate_matmul`] chooses matrix instructions; [`matmul`] has the plans.
//!   [`f32_dot_tc`] splits dots of f32, [`optimize_dot_operands`] improves
//!   buffers of operands.
//! * [`triton_combine`], [`reorder_broadcast`] and
//!   [`combine_tensor_select_and_if`] simplify what the front end wrote.
//! * [`rules`] says how layouts of operands and results depend on each other,
//!   [`machine`] which blocked layouts fit the machine.
//! * [`thread_group`] has the warps that run an operation together, [`warp_groups`] gives partitions theirs.
//! * [`optimize_thread_locality`] keeps sums over loops in threads,
//!   [`reduce_data_duplication`], [`arrange_buffers`] and [`reorder_instructions`] say where data is
//!   while it waits for its use.
//! * [`estimate`] counts what a program of a launch asks of the GPU.
//! * [`explain_layouts`] says why layouts are what they are, [`choice`] what was chosen and what else would have cost.
//! * [`plans`] has the plans of operations, for allocation and lowering alike;
//!   [`buffer_plans`] those of buffers in shared memory.
//! * [`shared_memory`] allocates shared memory and puts barriers, [`global_scratch`] allocates
//!   global memory of programs.
//! * [`kernel_decisions`] writes down what lowering and code generation do with whole functions.
//! * [`dots_in_parts`] multiplies a part of a dot at a time where registers are short.
//! * [`invariant_operands`] keeps what a loop with branches multiplies by, and does not change, in shared memory.
//! * [`tma`] makes bulk copies of accesses through tensor descriptors.
//! * [`pipeline`] lists the passes from TTIR to TTGIR in order.

// Whoever finds what cannot be says so by an error with a place (CONTRIBUTING): nothing here ends a compilation by a panic.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented
    )
)]

pub mod accelerate_matmul;
pub mod analysis;
pub mod arrange_buffers;
pub mod async_wait_counts;
pub mod buffer_accesses;
pub mod buffer_plans;
pub mod choice;
pub mod cluster_buffers;
pub mod coalesce;
pub mod combine_tensor_select_and_if;
pub mod convert_triton_to_tritongpu;
pub mod counted_loops;
pub mod dots_in_parts;
pub mod estimate;
mod exchanges;
pub mod explain_layouts;
pub mod f32_dot_tc;
pub mod fence_insertion;
pub mod fuse_reduce_conversions;
pub mod global_scratch;
mod interleaved;
pub mod invariant_operands;
mod ir_util;
pub mod kernel_decisions;
pub mod known_comparisons;
pub mod last_use;
pub mod loads_early;
pub mod loop_aware_cse;
pub mod loop_invariant;
pub mod loop_unroll;
pub mod machine;
pub mod matmul;
pub mod objective;
pub mod optimize_dot_operands;
pub mod optimize_thread_locality;
pub mod order_programs;
pub mod pipeline;
pub mod plain_operations;
pub mod plans;
pub mod reduce_data_duplication;
pub mod relaxed_atomics;
pub mod remove_layout_conversions;
pub mod reorder_broadcast;
pub mod reorder_instructions;
pub mod rewrite_tensor_descriptor_to_pointer;
pub mod rules;
mod same_sides;
pub mod schedule;
pub mod shared_memory;
pub mod sink_loads;
mod small_tensors;
pub mod tensor_moves;
mod test_passes;
#[cfg(test)]
mod testing;
pub mod thread_group;
pub mod tma;
pub mod triton_combine;
pub mod warp_groups;

pub use ir_util::{is_dot, is_private, multiplies};
use mlir_host::pass::PassDef;

/// All passes of this crate.
pub static PASSES: &[&PassDef] = &[
    &counted_loops::TRITON_COUNTED_LOOPS,
    &known_comparisons::TRITON_KNOWN_COMPARISONS,
    &triton_combine::TRITON_COMBINE,
    &reorder_broadcast::TRITON_REORDER_BROADCAST,
    &loop_unroll::TRITON_LOOP_UNROLL,
    &order_programs::TRITON_ORDER_PROGRAMS,
    &relaxed_atomics::TRITON_RELAX_ATOMICS,
    &loop_invariant::TRITON_LICM,
    &loop_aware_cse::TRITON_LOOP_AWARE_CSE,
    &convert_triton_to_tritongpu::CONVERT_TRITON_TO_TRITONGPU,
    &coalesce::TRITONGPU_COALESCE,
    &f32_dot_tc::TRITONGPU_F32_DOT_TC,
    &accelerate_matmul::TRITONGPU_ACCELERATE_MATMUL,
    &remove_layout_conversions::TRITONGPU_REMOVE_LAYOUT_CONVERSIONS,
    &optimize_thread_locality::TRITONGPU_OPTIMIZE_THREAD_LOCALITY,
    &reduce_data_duplication::TRITONGPU_REDUCE_DATA_DUPLICATION,
    &arrange_buffers::TRITONGPU_ARRANGE_BUFFERS,
    &reorder_instructions::TRITONGPU_REORDER_INSTRUCTIONS,
    &explain_layouts::TRITONGPU_EXPLAIN_LAYOUTS,
    &rewrite_tensor_descriptor_to_pointer::REWRITE_TENSOR_DESCRIPTOR_TO_POINTER,
    &optimize_dot_operands::TRITONGPU_OPTIMIZE_DOT_OPERANDS,
    &fuse_reduce_conversions::TRITONGPU_FUSE_REDUCE_CONVERSIONS,
    &combine_tensor_select_and_if::TRITONGPU_COMBINE_TENSOR_SELECT_AND_IF,
    &shared_memory::fit::TRITONGPU_FIT_SHARED_MEMORY,
    &cluster_buffers::TRITONGPU_CLUSTER_BUFFERS,
    &plain_operations::TRITONAMDGPU_PLAIN_OPERATIONS,
    &buffer_accesses::TRITONAMDGPU_BUFFER_ACCESSES,
    &async_wait_counts::TRITONAMDGPU_UPDATE_ASYNC_WAIT_COUNT,
    &schedule::spread::TRITONAMDGPU_SPREAD_ACCESSES,
    &dots_in_parts::DOTS_IN_PARTS,
    &invariant_operands::STORE_INVARIANT_OPERANDS,
    &schedule::pass::TRITONGPU_PIPELINE,
    &last_use::TRITONGPU_LAST_USE,
    &warp_groups::ALLOCATE_WARP_GROUPS,
    &fence_insertion::FENCE_INSERTION,
    &shared_memory::allocate::ALLOCATE_SHARED_MEMORY,
    &shared_memory::barriers::INSERT_BARRIERS,
    &tma::encoding::OPTIMIZE_DESCRIPTOR_ENCODING,
    &tma::lower::TMA_LOWERING,
    &tma::store_waits::DELAY_STORE_WAITS,
    &tma::proxy_fences::PROXY_FENCE_INSERTION,
    &global_scratch::GLOBAL_SCRATCH_MEMORY_ALLOCATION,
    &kernel_decisions::TRITONGPU_KERNEL_DECISIONS,
    &tensor_moves::STAGE_TENSORS,
    &tensor_moves::MOVE_TENSORS,
    &test_passes::TEST_PRINT_AXIS_INFO,
];
