//! What differs between hardware targets.

use crate::emit::{Emit, Lowered, unsupported};
use crate::lower::Handler;
use linear_layout::plan::{
    DotType, MatrixInstruction, MemoryInstruction, ShuffleInstruction, VectorPlan, WarpCombine,
};
use linear_layout::target::TargetDesc;
use mlir_host::ir::{FloatKind, Type, Value};
use smallvec::SmallVec;
use ttopt_dialect::tt;
use ttopt_dialect::tt::enums::{MemSemantic, MemSyncScope, RmwOp};
use ttopt_passes::thread_group::ThreadGroup;

/// How a memory access treats the caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachePolicy {
    /// What the program says, if it says something.
    pub hints: Option<tt::attrs::CachePolicy>,
    /// Whether nobody comes back to what is read: it need not go to the first level of cache.
    pub last_use: bool,
    /// May not be elided, merged or reordered.
    pub volatile: bool,
}

/// Where an access lies, counted from an address that all threads have alike.
#[derive(Clone, Copy, Debug)]
pub struct BufferAddress<'c> {
    /// The address.
    pub base: Value<'c>,
    /// Bytes from there, an `i32` of at least zero.
    pub offset: Value<'c>,
}

/// One access of a thread: some consecutive elements.
pub struct Access<'a, 'c> {
    /// Address of the first element.
    pub ptr: Value<'c>,
    /// Whether the access is done; always, where absent.
    pub mask: Option<Value<'c>>,
    /// Whether the thread needs what is loaded; all do, where absent. What the others get is never used: they may load or not.
    pub needed: Option<Value<'c>>,
    /// Elements of the access.
    pub elems: usize,
    /// Bits of an element in memory.
    pub elem_bits: u32,
    /// Caches.
    pub policy: CachePolicy,
    /// Where it is from the start of a buffer, where a pass says that it is in one.
    pub buffer: Option<BufferAddress<'c>>,
    /// Where zeros are, for a load that reads them where `mask` is false, without a branch.
    pub zeros: Option<Value<'c>>,
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

/// Scales of an operand of one execution of a matrix instruction.
#[derive(Clone, Debug)]
pub struct BlockScales<'c> {
    /// Bytes, of blocks that follow each other along K.
    pub bytes: SmallVec<[Value<'c>; 4]>,
    /// Whether the lanes of the upper half of the wave have them, where half of the lanes do.
    pub in_upper_lanes: bool,
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

/// A copy from global to shared memory beside the program.
#[derive(Clone, Copy, Debug)]
pub struct AsyncCopy<'c> {
    /// Address in global memory.
    pub from: Value<'c>,
    /// Address in shared memory.
    pub to: Value<'c>,
    /// Consecutive bytes: 4, 8 or 16.
    pub bytes: u32,
    /// Whether what is read stays in the L1, where the target has a choice.
    pub through_l1: bool,
    /// Where it is false zeros are written; copied always, where absent.
    pub mask: Option<Value<'c>>,
    /// Whether the mask is to be a predicate of the instruction, rather than a number of bytes.
    pub predicates: bool,
    /// Where it is false nothing happens.
    pub active: Option<Value<'c>>,
}

/// Dimensions of the grid of programs.
pub const GRID_DIMS: usize = 3;

/// The most that a launch can ask for.
#[derive(Clone, Copy, Debug)]
pub struct LaunchLimits {
    /// Threads of a CTA.
    pub threads: u32,
    /// CTAs of a cluster.
    pub blocks: u32,
}

/// What a target has, or an error that says that it has no such thing.
///
/// # Errors
/// When the target lacks the capability.
pub fn need<T>(capability: Option<T>, what: &str, target: &dyn Target) -> Lowered<T> {
    capability.map_or_else(|| unsupported(format!("the target {} has no {what}", target.desc().name)), Ok)
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
    /// The most registers that a thread may have, where the caller says so.
    pub max_registers: Option<u32>,
    /// The waves that a SIMD is to hold, where the caller says so.
    pub waves_per_eu: Option<u32>,
}

/// The memory that a barrier orders: what threads did to it before is visible to the others behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierMemory {
    /// Shared memory.
    Shared,
    /// All memory.
    All,
}

/// Copies from global to shared memory beside the program, in groups that a thread waits for.
pub trait AsyncCopies {
    /// Begins a copy.
    fn copy<'c>(&self, e: &mut Emit<'c>, copy: &AsyncCopy<'c>) -> Lowered<()>;
    /// Makes one group of the copies that this thread has begun.
    fn commit<'c>(&self, e: &mut Emit<'c>) -> Lowered<()>;
    /// Waits until at most `left` groups of this thread's copies are under way.
    fn wait<'c>(&self, e: &mut Emit<'c>, left: u32) -> Lowered<()>;
}

/// CTAs that work on one program together and reach each other's shared memory.
pub trait Clusters {
    /// The number of the CTA in its cluster, an `i32`.
    fn cta_id<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>>;
    /// The address of `ptr`, in this CTA's shared memory, in the memory of CTA `rank` of the cluster.
    fn remote_shared<'c>(&self, e: &mut Emit<'c>, ptr: Value<'c>, rank: Value<'c>) -> Lowered<Value<'c>>;
    /// All threads of the CTAs of a cluster wait for each other; a `relaxed` barrier orders no accesses to memory.
    fn barrier<'c>(&self, e: &mut Emit<'c>, relaxed: bool) -> Lowered<()>;
}

/// Warps of a CTA that run different code.
pub trait WarpGroups {
    /// Changes the registers that each thread of the warp group may use to `registers`, which are `more` than before or
    /// fewer. Every warp of the group does this. More are waited for until others have given them away.
    fn set_registers<'c>(&self, e: &mut Emit<'c>, registers: u32, more: bool) -> Lowered<()>;
}

/// Handlers by the names of the operations that they lower.
pub type Handlers = &'static [(&'static str, Handler)];

/// An assertion that does not hold.
pub struct Assertion<'a> {
    /// What its author says.
    pub message: &'a str,
    /// The file that it is in; `unknown` where nobody knows.
    pub file: &'a str,
    /// Its line, or 0.
    pub line: u32,
    /// The function that it is lowered into.
    pub function: &'a str,
}

/// What a target's inline assembly may have as operands, by the letters of LLVM's constraints.
#[derive(Debug)]
pub struct AsmRegisters {
    /// Registers with a number for each lane.
    pub of_lanes: &'static [&'static str],
    /// Registers with one number for all lanes of a warp.
    pub one_for_all: &'static [&'static str],
    /// The narrowest number that a register is given.
    pub least_bits: u32,
    /// Numbers in the text, besides those that all targets have.
    pub numbers: &'static [&'static str],
    /// The registers, for errors.
    pub about: &'static str,
}

/// A hardware target: emits what plans decided. What only some targets have is a capability of its own, which
/// operations that need it ask for by [`need`].
pub trait Target {
    /// The description plans are made for.
    fn desc(&self) -> &TargetDesc;
    /// Handlers of operations that only this target has.
    fn handlers(&self) -> &'static [Handlers];
    /// Copies from global to shared memory beside the program, if there are any.
    fn async_copies(&self) -> Option<&dyn AsyncCopies>;
    /// Clusters of CTAs, if there are any.
    fn clusters(&self) -> Option<&dyn Clusters>;
    /// Warps with barriers of their own, if they can have them.
    fn warp_groups(&self) -> Option<&dyn WarpGroups> {
        None
    }
    /// The largest CTAs and clusters.
    fn launch_limits(&self) -> LaunchLimits;
    /// Whether values that are put together again stay whole in LLVM IR: where LLVM allocates registers. ptxas does so itself.
    fn keeps_vectors(&self) -> bool {
        false
    }
    /// LLVM's target triple.
    fn triple(&self) -> &'static str;
    /// The registers that inline assembly may ask for.
    fn asm_registers(&self) -> &'static AsmRegisters;
    /// The operation that reads the thread's number in its CTA, an `i32`.
    fn thread_id<'c>(&self, e: &mut Emit<'c>, threads: u32) -> Lowered<Value<'c>>;
    /// The thread's number in its warp, read by itself: nobody knows that it is a part of [`thread_id`](Self::thread_id).
    fn lane_id<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>>;
    /// `value`, an `i32` that all lanes of a warp have alike, told so to LLVM where it asks.
    fn uniform<'c>(&self, e: &mut Emit<'c>, value: Value<'c>) -> Lowered<Value<'c>>;
    /// The program's number along `axis`, an `i32`. Programs of several `blocks`
    /// are numbered as clusters.
    fn program_id<'c>(&self, e: &mut Emit<'c>, axis: usize, blocks: u32) -> Lowered<Value<'c>>;
    /// The number of programs along `axis`, an `i32`.
    fn num_programs<'c>(&self, e: &mut Emit<'c>, axis: usize, blocks: u32) -> Lowered<Value<'c>>;
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
    /// absent or true, with no other thread of the CTA in between.
    fn count_shared<'c>(&self, e: &mut Emit<'c>, ptr: Value<'c>, mask: Option<Value<'c>>) -> Lowered<()>;
    /// `value`, an `i32`, of the lane whose number differs by `mask`.
    fn shuffle_xor<'c>(
        &self,
        e: &mut Emit<'c>,
        value: Value<'c>,
        mask: u64,
        instruction: ShuffleInstruction,
    ) -> Lowered<Value<'c>>;
    /// Whether an instruction puts a word together of any bytes of two words, which each lane chooses.
    fn picks_bytes(&self) -> bool {
        false
    }
    /// The word of those bytes of two words that the bytes of `places` number, beginning with the first word's.
    fn pick_bytes<'c>(
        &self,
        _: &mut Emit<'c>,
        words: [Value<'c>; 2],
        places: Value<'c>,
    ) -> Lowered<Value<'c>> {
        unsupported(format!("picks no bytes of {} and {} by {}", words[0].ty(), words[1].ty(), places.ty()))
    }
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
    /// The same with the scales of the first and of the second operand.
    fn multiply_scaled<'c>(
        &self,
        _: &mut Emit<'c>,
        instruction: &MatrixInstruction,
        _: &MatrixTypes<'c>,
        _: [&[Value<'c>]; 3],
        _: [&BlockScales<'c>; 2],
    ) -> Lowered<Vec<Value<'c>>> {
        unsupported(format!("{} multiplies no scales", instruction.name))
    }
    /// `sum` and the products of two fragments, of a few elements of `kind` each, in one instruction of a thread.
    fn add_products<'c>(
        &self,
        _: &mut Emit<'c>,
        kind: DotType,
        _: [&[Value<'c>]; 2],
        _: Value<'c>,
    ) -> Lowered<Value<'c>> {
        unsupported(format!("the target {} adds no products of {kind:?} at once", self.desc().name))
    }
    /// A function of the `math` dialect (`exp`, `sin`, …) or a division
    /// (`divf`, `precise_divf`, `approx_divf`, `precise_sqrt`) on scalars.
    fn math<'c>(
        &self,
        e: &mut Emit<'c>,
        module: &mut dyn Declare<'c>,
        name: &str,
        args: &[Value<'c>],
    ) -> Lowered<Value<'c>>;
    /// `value`, a float of 32 bits, or `bound`, which is positive, with the sign of `value`, whichever has the lesser magnitude, in
    /// one instruction; `None` where the target has none that takes fewer than two bounds do. Where `value` is NaN it is NaN if
    /// `propagates`, and else `bound` with a sign.
    fn bound_magnitude<'c>(
        &self,
        _: &mut Emit<'c>,
        _value: Value<'c>,
        _bound: Value<'c>,
        _propagates: bool,
    ) -> Lowered<Option<Value<'c>>> {
        Ok(None)
    }
    /// A function that programs call by `symbol` and the target makes itself; `None` where it is in a library, or the program's.
    ///
    /// # Errors
    /// Where it is one of another target's library.
    fn external<'c>(
        &self,
        e: &mut Emit<'c>,
        symbol: &str,
        args: &[Value<'c>],
        result: Type<'c>,
    ) -> Lowered<Option<Value<'c>>>;
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
    /// The two 4-bit floats (e2m1) of each byte as `to`; `None` where the target has nothing better than arithmetic on each byte.
    ///
    /// # Errors
    /// When an operation cannot be made.
    fn unpack_fp4<'c>(
        &self,
        _: &mut Emit<'c>,
        _bytes: &[Value<'c>],
        _to: FloatKind,
    ) -> Lowered<Option<Vec<[Value<'c>; 2]>>> {
        Ok(None)
    }
    /// Stops the program with a message.
    fn assert<'c>(
        &self,
        e: &mut Emit<'c>,
        module: &mut dyn Declare<'c>,
        failed: &Assertion<'_>,
    ) -> Lowered<()>;
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
    /// All threads of a group wait for each other; `alone` says that the CTA has no others.
    fn barrier<'c>(
        &self,
        e: &mut Emit<'c>,
        group: &ThreadGroup,
        alone: bool,
        memory: BarrierMemory,
    ) -> Lowered<()>;
    /// Whether loads give zero to lanes that their mask excludes, if nothing else is asked for.
    fn gives_zero_where_masked(&self) -> bool {
        false
    }
    /// Keeps what follows behind what came before: accesses to global memory behind writes to shared memory, or, the
    /// other way round with `issued`, matrix instructions behind accesses to global memory. Nothing to do where LLVM does
    /// not schedule.
    fn keep_order<'c>(&self, _: &mut Emit<'c>, _issued: bool) -> Lowered<()> {
        Ok(())
    }
    /// All threads of the warp wait for each other.
    fn warp_barrier<'c>(&self, e: &mut Emit<'c>, memory: BarrierMemory) -> Lowered<()>;
    /// Emits an atomic access to global memory; words of the elements' width
    /// come back if `access.result`. `None` when there is no such instruction.
    fn atomic<'c>(&self, e: &mut Emit<'c>, access: &AtomicAccess<'_, 'c>) -> Lowered<Option<Vec<Value<'c>>>>;
    /// Orders a thread's accesses to memory before it and after it among the threads of `scope`, where `acts` holds; always,
    /// if it is absent.
    ///
    /// # Errors
    /// When the operation cannot be made.
    fn fence<'c>(
        &self,
        e: &mut Emit<'c>,
        acts: Option<Value<'c>>,
        order: MemSemantic,
        scope: MemSyncScope,
    ) -> Lowered<()> {
        let scope = self.sync_scope(scope);
        e.guarded(acts, &[], |e| e.fence(order, scope, &[]).map(|()| Vec::new()))?;
        Ok(())
    }
    /// The clock that atomic polls measure their timeout by, in nanoseconds, an `i64`.
    fn nanoseconds<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>>;
    /// LLVM's name of a scope of synchronization.
    fn sync_scope(&self, scope: MemSyncScope) -> &'static str;
    /// Why a function cannot have this name; `None` when it can. Kernels are known outside of the module.
    fn refuses_name(&self, name: &str, is_kernel: bool) -> Option<String>;
    /// Why assembly of the target cannot name a function of another module so.
    fn refuses_symbol(&self, name: &str) -> Option<String>;
    /// The values that a tensor descriptor of so many dimensions is, where it is not one pointer.
    ///
    /// # Errors
    /// When a type cannot be made.
    fn descriptor_types<'c>(&self, _: &mut Emit<'c>, _: usize) -> Lowered<Option<Vec<Type<'c>>>> {
        Ok(None)
    }
    /// Attributes of a kernel's argument that is a tensor descriptor, made by the launcher: name and MLIR syntax.
    fn descriptor_attrs(&self) -> Vec<(&'static str, String)>;
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
