//! What differs between hardware targets.

use crate::emit::{Emit, Lowered};
use linear_layout::plan::{
    DotType, MatrixInstruction, MemoryInstruction, ShuffleInstruction, VectorPlan, WarpCombine,
};
use linear_layout::target::TargetDesc;
use mlir_host::ir::{FloatKind, Type, Value};
use ttopt_dialect::tt::enums::{DescriptorReduceKind, MemSemantic, MemSyncScope, RmwOp};
use ttopt_dialect::ttng::enums::CacheEvictionPriority;

/// How a memory access treats the caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachePolicy {
    /// `.ca`, `.cg`, …
    pub modifier: Option<&'static str>,
    /// `evict_first`, `evict_last`, `no_allocate`.
    pub eviction: Option<&'static str>,
    /// May not be elided, merged or reordered.
    pub volatile: bool,
}

/// One access of a thread: some consecutive elements.
pub struct Access<'a, 'c> {
    /// Address of the first element.
    pub ptr: Value<'c>,
    /// Whether the access is done; always, where absent.
    pub mask: Option<Value<'c>>,
    /// Elements of the access.
    pub elems: usize,
    /// Bits of an element in memory.
    pub elem_bits: u32,
    /// Caches.
    pub policy: CachePolicy,
    /// The plan it belongs to.
    pub plan: &'a VectorPlan,
}

/// What an atomic access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicKind {
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Compares with the first operand and stores the second where equal.
    CompareExchange,
    /// Combines memory with the operand.
    ReadModifyWrite(RmwOp),
}

/// Elements of an atomic access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicElement {
    /// Of so many bits.
    Int(u32),
    /// A float.
    Float(FloatKind),
}

impl AtomicElement {
    /// Bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            AtomicElement::Int(bits) => bits,
            AtomicElement::Float(kind) => kind.bits(),
        }
    }
}

/// One atomic access of a thread.
pub struct AtomicAccess<'a, 'c> {
    /// What it does.
    pub kind: AtomicKind,
    /// Address of the first element.
    pub ptr: Value<'c>,
    /// Whether the access is done; always, where absent.
    pub mask: Option<Value<'c>>,
    /// Words of the elements; for a comparison the expected and the new one.
    pub operands: &'a [Value<'c>],
    /// The elements.
    pub element: AtomicElement,
    /// What it orders.
    pub sem: MemSemantic,
    /// Among which threads.
    pub scope: MemSyncScope,
    /// Whether the old value is wanted.
    pub result: bool,
}

/// What a matrix instruction multiplies and sums.
pub struct MatrixTypes<'c> {
    /// Elements of the operands.
    pub kind: DotType,
    /// Elements of the result.
    pub sum: DotType,
    /// Elements of the left and of the right operand, where formats of a kind differ.
    pub formats: [Type<'c>; 2],
}

/// An operand of an instruction of a warp group.
#[derive(Clone, Copy)]
pub enum WarpGroupFragment<'a, 'c> {
    /// Fragments in registers.
    Registers(&'a [Value<'c>]),
    /// A matrix descriptor, an `i64`, and whether rows or columns, not summands, are contiguous.
    Shared(Value<'c>, bool),
}

/// One instruction of a warp group: rows, columns, summands and operands.
pub struct WarpGroupMultiply<'a, 'c> {
    /// Rows, columns and summands.
    pub shape: [u64; 3],
    /// What is multiplied.
    pub types: &'a MatrixTypes<'c>,
    /// The left operand.
    pub a: WarpGroupFragment<'a, 'c>,
    /// The right operand.
    pub b: WarpGroupFragment<'a, 'c>,
    /// Whether the accumulators are added to, an `i1`; otherwise they are set.
    pub adds: Value<'c>,
}

/// Instructions of warp groups, which run asynchronously.
pub trait WarpGroups {
    /// Orders accesses to registers before the instructions that follow.
    fn fence<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// Starts one instruction on the fragment `c`; returns the fragment of the result.
    fn multiply<'c>(
        &self,
        e: &mut Emit<'c>,
        multiply: &WarpGroupMultiply<'_, 'c>,
        c: &[Value<'c>],
    ) -> Lowered<Vec<Value<'c>>>;
    /// Makes a group of the instructions started since the last one.
    fn commit<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// Waits until at most `pending` groups are not done; returns `values`, to be used after that.
    fn wait<'c>(&self, e: &mut Emit<'c>, pending: u64, values: &[Value<'c>]) -> Lowered<Vec<Value<'c>>>;
}

/// What the coordinates of a bulk copy say (PTX ISA, "cp.async.bulk.tensor", `.load_mode`).
#[derive(Clone, Copy, Debug)]
pub enum TensorCopyMode<'a, 'c> {
    /// Where the box starts.
    Box,
    /// A column and four rows.
    Rows,
    /// Where the bounding box starts; the offsets, `i16`s, are those within it.
    Im2col(&'a [Value<'c>]),
}

/// A bulk copy of a box of a tensor between global and shared memory.
#[derive(Clone, Copy, Debug)]
pub struct TensorCopy<'a, 'c> {
    /// The tensor map, a generic pointer.
    pub map: Value<'c>,
    /// `i32`s, the contiguous dimension first.
    pub coordinates: &'a [Value<'c>],
    /// What they say.
    pub mode: TensorCopyMode<'a, 'c>,
    /// How long L2 keeps the lines, an `i64` that [`TensorCopies::cache_policy`] made.
    pub policy: Option<Value<'c>>,
    /// The blocks of the cluster that get what is loaded, an `i16` with a bit for each; this one where absent.
    pub blocks: Option<Value<'c>>,
    /// The box in shared memory.
    pub shared: Value<'c>,
    /// Whether this thread copies: one does.
    pub active: Value<'c>,
}

/// The fields of a tensor map, the contiguous dimension first.
pub struct TensorMap<'c> {
    /// The tensor in global memory.
    pub base: Value<'c>,
    /// Elements of a box, `i32`s.
    pub box_dims: Vec<Value<'c>>,
    /// Elements of the tensor, `i32`s.
    pub dims: Vec<Value<'c>>,
    /// Bytes from one element to the next in all dimensions but the first, `i64`s.
    pub strides: Vec<Value<'c>>,
    /// Elements of the tensor from one of the box to the next, `i32`s.
    pub element_strides: Vec<Value<'c>>,
    /// The number of the type of elements.
    pub element: u32,
    /// The number of the interleaved layout.
    pub interleave: u32,
    /// The number of the swizzle mode.
    pub swizzle: u32,
    /// Whether elements outside of the tensor are NaN.
    pub fill: u32,
}

/// When lines leave L2 (PTX ISA, "createpolicy").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct L2Policy {
    /// That of a fraction of the accesses.
    pub primary: CacheEvictionPriority,
    /// That of the others.
    pub secondary: CacheEvictionPriority,
    /// The fraction.
    pub fraction: f64,
}

/// Where a thread arrives, and whether it does.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'c> {
    /// Address of the barrier.
    pub at: Value<'c>,
    /// Whether it may be in the memory of another block of the cluster.
    pub remote: bool,
    /// An `i1`.
    pub active: Value<'c>,
}

/// Bulk copies of boxes of tensors, and barriers in shared memory that tell when they are done.
/// Predicates are `i1`s; where one is false nothing happens. What makes and ends barriers and maps in shared
/// memory orders its accesses before copies to the same bytes.
pub trait TensorCopies {
    /// Whether this is the lane that the warp elects; the warp must be converged.
    fn elect<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>>;
    /// Makes a barrier for `count` arrivals.
    fn init_barrier<'c>(
        &self,
        e: &mut Emit<'c>,
        barrier: Value<'c>,
        count: u32,
        active: Value<'c>,
    ) -> Lowered<()>;
    /// Ends the life of a barrier.
    fn inval_barrier<'c>(&self, e: &mut Emit<'c>, barrier: Value<'c>, active: Value<'c>) -> Lowered<()>;
    /// Arrives at a barrier and announces `bytes` to come.
    fn expect<'c>(&self, e: &mut Emit<'c>, arrival: &Arrival<'c>, bytes: u64) -> Lowered<()>;
    /// Arrives `count` times at a barrier.
    fn arrive<'c>(&self, e: &mut Emit<'c>, arrival: &Arrival<'c>, count: u32) -> Lowered<()>;
    /// Each thread arrives when the copies that it began (`cp.async`) are done; with `counted` the barrier was
    /// made for these arrivals.
    fn arrive_after_copies<'c>(&self, e: &mut Emit<'c>, barrier: Value<'c>, counted: bool) -> Lowered<()>;
    /// Lets other blocks of the cluster see the barriers that this thread has made.
    fn publish_barriers<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// A barrier of the cluster that orders no accesses to memory.
    fn relaxed_cluster_barrier<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// Waits until the phase of the parity `phase`, an `i32`, is complete; with `cluster` for what other blocks
    /// did, too.
    fn wait<'c>(
        &self,
        e: &mut Emit<'c>,
        barrier: Value<'c>,
        phase: Value<'c>,
        cluster: bool,
        active: Option<Value<'c>>,
    ) -> Lowered<()>;
    /// How long L2 keeps what is copied.
    fn cache_policy<'c>(&self, e: &mut Emit<'c>, policy: &L2Policy) -> Lowered<Value<'c>>;
    /// Begins a copy to shared memory, which `barrier` counts the bytes of.
    fn load<'c>(&self, e: &mut Emit<'c>, copy: &TensorCopy<'_, 'c>, barrier: Value<'c>) -> Lowered<()>;
    /// Begins a copy from shared memory, which replaces the elements or is combined with them.
    fn store<'c>(
        &self,
        e: &mut Emit<'c>,
        copy: &TensorCopy<'_, 'c>,
        combine: Option<DescriptorReduceKind>,
    ) -> Lowered<()>;
    /// Makes one group of the copies from shared memory that this thread has begun.
    fn commit_stores<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// Waits until at most `left` groups are under way, or with `read_only` read shared memory.
    fn wait_for_stores<'c>(&self, e: &mut Emit<'c>, left: u32, read_only: bool) -> Lowered<()>;
    /// Sets all fields of a tensor map in shared memory whose bytes are zero.
    fn fill_map<'c>(&self, e: &mut Emit<'c>, at: Value<'c>, map: &TensorMap<'c>) -> Lowered<()>;
    /// Copies a tensor map from shared to global memory, for copies to use; all lanes of a warp.
    fn publish_map<'c>(&self, e: &mut Emit<'c>, to: Value<'c>, from: Value<'c>) -> Lowered<()>;
    /// Lets the copies that follow see a tensor map that was published.
    fn acquire_map<'c>(&self, e: &mut Emit<'c>, map: Value<'c>) -> Lowered<()>;
}

/// A copy from global to shared memory beside the program.
#[derive(Clone, Copy, Debug)]
pub struct AsyncCopy<'c> {
    /// Address in global memory.
    pub from: Value<'c>,
    /// Address in shared memory.
    pub to: Value<'c>,
    /// Consecutive bytes: 4, 8 or 16.
    pub bytes: u32,
    /// Where it is false zeros are written; copied always, where absent.
    pub mask: Option<Value<'c>>,
    /// Where it is false nothing happens.
    pub active: Option<Value<'c>>,
}

/// Dimensions of the grid of programs.
pub const GRID_DIMS: usize = 3;

/// The most that a launch can ask for.
#[derive(Clone, Copy, Debug)]
pub struct LaunchLimits {
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of a cluster.
    pub blocks: u32,
}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Threads of a CTA.
    pub threads: u32,
    /// CTAs of a cluster.
    pub cluster: u32,
    /// CTAs that a multiprocessor is to hold at once, at least one.
    pub min_ctas: u32,
}

/// A hardware target: emits what plans decided.
pub trait Target {
    /// The description plans are made for.
    fn desc(&self) -> &TargetDesc;
    /// The largest blocks and clusters.
    fn launch_limits(&self) -> LaunchLimits;
    /// LLVM's target triple.
    fn triple(&self) -> &'static str;
    /// The operation that reads the thread's number in its block, an `i32`.
    fn thread_id<'c>(&self, e: &mut Emit<'c>, threads: u32) -> Lowered<Value<'c>>;
    /// The thread's number in its warp, read by itself: nobody knows that it is a part of [`thread_id`](Self::thread_id).
    fn lane_id<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>>;
    /// The program's number along `axis`, an `i32`. Programs of several `blocks`
    /// are numbered as clusters.
    fn program_id<'c>(&self, e: &mut Emit<'c>, axis: usize, blocks: u32) -> Lowered<Value<'c>>;
    /// The number of programs along `axis`, an `i32`.
    fn num_programs<'c>(&self, e: &mut Emit<'c>, axis: usize, blocks: u32) -> Lowered<Value<'c>>;
    /// The number of the block in its cluster, an `i32`.
    fn block_id<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>>;
    /// Loads the elements of an access from global memory. `other` has the
    /// values of masked elements, integers of `elem_bits` bits; undefined
    /// where absent. The results are such integers.
    fn load_global<'c>(
        &self,
        e: &mut Emit<'c>,
        access: &Access<'_, 'c>,
        other: Option<&[Value<'c>]>,
    ) -> Lowered<Vec<Value<'c>>>;
    /// Stores elements, integers of `elem_bits` bits, to global memory.
    fn store_global<'c>(
        &self,
        e: &mut Emit<'c>,
        access: &Access<'_, 'c>,
        values: &[Value<'c>],
    ) -> Lowered<()>;
    /// Loads `count` words of `bits` bits each from shared memory, `count * bits`
    /// at most 128; the address is a multiple of their size.
    fn load_shared<'c>(
        &self,
        e: &mut Emit<'c>,
        ptr: Value<'c>,
        count: usize,
        bits: u32,
    ) -> Lowered<Vec<Value<'c>>>;
    /// Stores words, integers of one width, to consecutive places of shared
    /// memory, where `mask` is absent or true.
    fn store_shared<'c>(
        &self,
        e: &mut Emit<'c>,
        ptr: Value<'c>,
        words: &[Value<'c>],
        mask: Option<Value<'c>>,
    ) -> Lowered<()>;
    /// Adds one to the 32-bit integer at `ptr` in shared memory, where `mask` is
    /// absent or true, with no other thread of the block in between.
    fn count_shared<'c>(&self, e: &mut Emit<'c>, ptr: Value<'c>, mask: Option<Value<'c>>) -> Lowered<()>;
    /// `value`, an `i32`, of the lane whose number differs by `mask`.
    fn shuffle_xor<'c>(
        &self,
        e: &mut Emit<'c>,
        value: Value<'c>,
        mask: u64,
        instruction: ShuffleInstruction,
    ) -> Lowered<Value<'c>>;
    /// `value`, an `i32`, of lane `lane`, an `i32`.
    fn shuffle_index<'c>(&self, e: &mut Emit<'c>, value: Value<'c>, lane: Value<'c>) -> Lowered<Value<'c>>;
    /// The values, `i32`s, of all lanes combined.
    fn combine_warp<'c>(
        &self,
        e: &mut Emit<'c>,
        value: Value<'c>,
        combine: WarpCombine,
    ) -> Lowered<Value<'c>>;
    /// `ldmatrix` in the form of the instruction, words of 32 bits; `ptr` is the row of the lane.
    fn load_matrix<'c>(
        &self,
        e: &mut Emit<'c>,
        ptr: Value<'c>,
        instruction: MemoryInstruction,
    ) -> Lowered<Vec<Value<'c>>>;
    /// `stmatrix` of words of 32 bits; `ptr` is the row of the lane.
    fn store_matrix<'c>(
        &self,
        e: &mut Emit<'c>,
        ptr: Value<'c>,
        words: &[Value<'c>],
        instruction: MemoryInstruction,
    ) -> Lowered<()>;
    /// A fragment of a matrix instruction, from its elements: what the instruction takes.
    fn matrix_fragment<'c>(
        &self,
        e: &mut Emit<'c>,
        kind: DotType,
        elements: &[Value<'c>],
    ) -> Lowered<Vec<Value<'c>>>;
    /// The elements of a fragment of a result.
    fn matrix_elements<'c>(
        &self,
        e: &mut Emit<'c>,
        kind: DotType,
        fragment: &[Value<'c>],
    ) -> Lowered<Vec<Value<'c>>>;
    /// One execution of a matrix instruction on fragments `[a, b, c]`; returns the fragment of the result.
    fn multiply_matrices<'c>(
        &self,
        e: &mut Emit<'c>,
        instruction: &MatrixInstruction,
        types: &MatrixTypes<'c>,
        fragments: [&[Value<'c>]; 3],
    ) -> Lowered<Vec<Value<'c>>>;
    /// Instructions of warp groups, if there are any.
    fn warp_groups(&self) -> Option<&dyn WarpGroups>;
    /// Bulk copies of tensors, if there are any.
    fn tensor_copies(&self) -> Option<&dyn TensorCopies>;
    /// Orders this thread's writes to shared memory, of the `cluster` or of the block, before asynchronous
    /// reads by others.
    fn fence_async_shared<'c>(&self, e: &mut Emit<'c>, cluster: bool) -> Lowered<()>;
    /// A function of the `math` dialect (`exp`, `sin`, …) or a division
    /// (`divf`, `precise_divf`, `approx_divf`, `precise_sqrt`) on scalars.
    fn math<'c>(
        &self,
        e: &mut Emit<'c>,
        module: &mut dyn Declare<'c>,
        name: &str,
        args: &[Value<'c>],
    ) -> Lowered<Value<'c>>;
    /// Converts floats. Values of 8-bit and smaller formats are integers of
    /// their bits. Works on all of a thread's values, since hardware packs them.
    fn convert_floats<'c>(
        &self,
        e: &mut Emit<'c>,
        values: &[Value<'c>],
        from: FloatKind,
        to: FloatKind,
        towards_zero: bool,
    ) -> Lowered<Vec<Value<'c>>>;
    /// Converts integers of 8 bits to `f16` or `bf16`. Works on all of a thread's values, as [`Target::convert_floats`].
    ///
    /// # Errors
    /// When an operation cannot be made.
    fn convert_bytes<'c>(
        &self,
        e: &mut Emit<'c>,
        values: &[Value<'c>],
        is_signed: bool,
        to: FloatKind,
    ) -> Lowered<Vec<Value<'c>>>;
    /// Stops the program with a message when `failed` is true.
    fn assert<'c>(&self, e: &mut Emit<'c>, module: &mut dyn Declare<'c>, message: &str) -> Lowered<()>;
    /// Prints `args`, which are `i32`s, `i64`s, `f64`s and pointers, in the notation of `printf`;
    /// `slot` is a place on the stack for all of them.
    fn print<'c>(
        &self,
        e: &mut Emit<'c>,
        module: &mut dyn Declare<'c>,
        format: &str,
        args: &[Value<'c>],
        slot: Value<'c>,
    ) -> Lowered<()>;
    /// Waits for the grids this one depends on.
    fn grid_dependency_wait<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// Lets the grids that depend on this one begin.
    fn grid_dependency_launch<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// The address of `ptr`, in this block's shared memory, in the memory of block
    /// `rank` of the cluster.
    fn remote_shared<'c>(&self, e: &mut Emit<'c>, ptr: Value<'c>, rank: Value<'c>) -> Lowered<Value<'c>>;
    /// The blocks of a cluster wait for each other.
    fn cluster_barrier<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// Begins a copy from global to shared memory.
    fn copy_async<'c>(&self, e: &mut Emit<'c>, copy: &AsyncCopy<'c>) -> Lowered<()>;
    /// Makes one group of the copies that this thread has begun.
    fn commit_copies<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// Waits until at most `left` groups of this thread's copies are under way.
    fn wait_for_copies<'c>(&self, e: &mut Emit<'c>, left: u32) -> Lowered<()>;
    /// All threads of the block wait for each other.
    fn barrier<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// All threads of the warp wait for each other.
    fn warp_barrier<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// Emits an atomic access to global memory; words of the elements' width
    /// come back if `access.result`. `None` when there is no such instruction.
    fn atomic<'c>(&self, e: &mut Emit<'c>, access: &AtomicAccess<'_, 'c>) -> Lowered<Option<Vec<Value<'c>>>>;
    /// The clock that atomic polls measure their timeout by, in nanoseconds, an `i64`.
    fn nanoseconds<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>>;
    /// LLVM's name of a scope of synchronization.
    fn sync_scope(&self, scope: MemSyncScope) -> &'static str;
    /// Why a function cannot have this name; `None` when it can. Kernels are known outside of the module.
    fn refuses_name(&self, name: &str, is_kernel: bool) -> Option<String>;
    /// Discardable attributes of a kernel's function: name and MLIR syntax.
    fn kernel_attrs(&self, launch: &Launch) -> Vec<(&'static str, String)>;
}

/// Declares symbols in the module being made.
pub trait Declare<'c> {
    /// Declares a function once.
    ///
    /// # Errors
    /// When the name is declared with another type already.
    fn function(
        &mut self,
        name: &str,
        args: &[mlir_host::ir::Type<'c>],
        result: Option<mlir_host::ir::Type<'c>>,
        pure_function: bool,
    ) -> Lowered<()>;
    /// Declares the block's dynamic shared memory once.
    fn shared_memory(&mut self, e: &mut Emit<'c>) -> Lowered<()>;
    /// A global string, zero-terminated; returns its address in generic memory.
    fn string(&mut self, e: &mut Emit<'c>, text: &str) -> Lowered<Value<'c>>;
    /// Constant integers in global memory, one after the other; returns their address.
    fn table(&mut self, e: &mut Emit<'c>, words: mlir_host::ir::Attr<'c>) -> Lowered<Value<'c>>;
}
