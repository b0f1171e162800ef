//! What a loop of TTGIR is to the scheduler.
//!
//! A loop has a schedule if nothing in it could tell in which order it reads memory: nothing waits for other threads, or has
//! effects that are not known here. Its loads are then copied ahead to rings in shared memory where the target can do that
//! beside the program, or to registers. Stores keep their order, and loads through pointers of the same argument of the
//! kernel keep theirs among them; bulk copies have no place there, so a loop that may store what they read is left alone.

use super::past_registers::Copies;
use super::plan::{Budget, Edge, Kind, LoopGraph, LoopSchedule, Node, Step};
use crate::analysis::advance;
use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::analysis::balance::Balance;
use crate::analysis::pointer_roots::{Arguments, descriptor_roots, may_meet, pointer_roots};
use crate::analysis::registers::{
    RESERVED, ctas_together, ctas_with_copies, knows_ctas, spare_registers, tensor_words,
};
use crate::buffer_plans::BufferLayout;
use crate::ir_util::{
    allocation, constant, depend_on, enclosing_function, fills_constant_buffer, in_block, is_dot, is_loop,
    multiplies, programs_of_tiles, trip_count,
};
use crate::machine::error;
use crate::plans::{self, AccessFacts, scratch_bytes};
use crate::shared_memory::effects::{is_store_by_tma, is_tensor_store};
use crate::tensor_moves;
use linear_layout::encoding::SwizzledShared;
use linear_layout::plan::{SharedAccessPlan, VectorPlan};
use linear_layout::show::timeline::Timeline;
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, Encoding, LinearLayout};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Block, Op, TensorType, Type, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::pass::PassResult;
use mlir_host::traits::Upstream;
use mlir_host::upstream::{DivSIOp, DivUIOp, ForOp, RemSIOp, RemUIOp, XOrIOp};
use smallvec::SmallVec;
use ttopt_dialect::amdg::ops::AsyncTdmWaitOp;
use ttopt_dialect::tt::ops::{AtomicRmwOp, AtomicStoreOp, DescriptorLoadOp, DotOp, FuncOp, LoadOp, StoreOp};
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::attrs::{encoding, encoding_attr, shared_memory};
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::ops::{LocalAllocOp, LocalLoadOp, is_memdesc_view};
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::{AsyncTmaCopyGlobalToLocalOp, BarrierExpectOp, WaitBarrierOp, WarpGroupDotOp};

/// Stages whose iterations ahead, two, cover the latency of memory for most loops (docs/schedules.md, "A third stage").
const COVERING_STAGES: u32 = 3;
/// Registers in which a load may wait for its use in the next iteration without further ado.
const FEW_WORDS: u64 = 4;
/// The same where CTAs hide each other's latency (docs/h200.md, "Operands that threads convert").
const SOME_WORDS: u64 = 16;
/// Registers in which all loads of a recurrence together may wait: more would cost CTAs, which hide latency, too.
const MOST_WORDS_AHEAD: u64 = 32;
/// Accesses of a thread that a load of a recurrence may consist of: each is predicated, and its registers are handed on.
const MOST_ACCESSES_AHEAD: usize = 8;
/// What is turned in registers passes through shared memory so many times: it is copied, read and written.
const PASSES_WHEN_TURNED: f64 = 3.0;
/// What such a load may take of the registers that tensors leave free: other loads want some, too.
const SHARE_OF_SPARE: u64 = 4;

/// What a node of the graph is.
#[derive(Clone, Copy, Debug)]
pub enum Action<'c> {
    /// An operation as it is.
    Op(Op<'c>),
    /// A load, as a copy to a ring.
    Copy(Op<'c>, usize),
    /// What a load gives, read from its ring.
    Read(Op<'c>, usize),
    /// A buffer that is filled in each iteration, as a slot of a ring.
    Fill(Op<'c>, usize),
    /// Bulk copies that share a barrier, by their number in [`Source::bulks`].
    Bulk(usize, usize),
}

/// Bulk copies that one barrier in memory announces.
#[derive(Clone, Debug)]
pub struct Bulk<'c> {
    /// Says how many bytes will come.
    pub expect: Op<'c>,
    /// The copies.
    pub copies: SmallVec<[Op<'c>; 2]>,
    /// Waits for them.
    pub wait: Op<'c>,
    /// The barrier.
    pub barrier: Value<'c>,
    /// What computes the next phase.
    phase: Op<'c>,
}

impl<'c> Bulk<'c> {
    /// The buffers that are copied to.
    fn buffers(&self) -> impl Iterator<Item = Value<'c>> {
        self.wait.operands().skip(2)
    }
    /// The operations in the loop that are replaced.
    fn ops(&self) -> impl Iterator<Item = Op<'c>> {
        let buffers = self.buffers().filter_map(Value::def_op);
        self.copies.iter().copied().chain([self.expect, self.wait, self.phase]).chain(buffers)
    }
    /// The groups of bulk copies in a loop, as the lowering of tensor maps makes them.
    fn all(block: Block<'c>, end: Op<'c>) -> Vec<Self> {
        block.ops().filter_map(|op| Self::of(op, block, end)).collect()
    }
    /// The group that begins with `expect`.
    fn of(expect: Op<'c>, block: Block<'c>, end: Op<'c>) -> Option<Self> {
        let barrier = BarrierExpectOp::cast(expect)?.alloc();
        let is_outside = |value: Value<'c>| value.def_op().is_some_and(|op| op.block() != Some(block));
        let users = || barrier.uses().map(|(user, _)| user).filter(|user| user.block() == Some(block));
        let copies: SmallVec<[Op<'c>; 2]> =
            block.ops().filter(|op| is_bulk_load(*op) && users().any(|user| user == *op)).collect();
        let wait = users().find_map(WaitBarrierOp::cast)?;
        // Nothing else uses the barrier, and its phase is that of a barrier used once an iteration.
        let others = users().filter(|op| *op != expect && *op != wait.op() && !copies.contains(op)).count();
        let phase = wait.phase();
        let arg = phase.index().checked_sub(1).filter(|_| phase.arg_block() == Some(block))?;
        let next = XOrIOp::defining(end.operand(arg))?.op();
        let flips = next.operand(0) == phase && constant(next.operand(1)) == Some(1);
        let starts = constant(block.parent()?.operand(3 + arg)) == Some(0);
        let found = Bulk { expect, copies, wait: wait.op(), barrier, phase: next };
        let fresh = |buffer: Value<'c>| {
            let alloc = buffer.def_op().and_then(LocalAllocOp::cast);
            alloc.is_some_and(|alloc| alloc.src().is_none() && alloc.op().block() == Some(block))
        };
        let all = found.buffers().count() == found.copies.len() && found.buffers().all(fresh);
        let simple = wait.pred().is_none() && all && flips && starts && others == 0 && is_outside(barrier);
        (simple && !found.copies.is_empty()).then_some(found)
    }
}

/// Whether `op` is a bulk copy of a block to shared memory.
fn is_bulk_load(op: Op<'_>) -> bool {
    AsyncTmaCopyGlobalToLocalOp::cast(op).is_some()
}

impl<'c> Action<'c> {
    /// The operations of the source whose operands it uses.
    pub fn ops(self, source: &Source<'c>) -> SmallVec<[Op<'c>; 2]> {
        match self {
            Action::Op(op) | Action::Copy(op, _) | Action::Fill(op, _) => [op].into_iter().collect(),
            Action::Read(..) => SmallVec::new(),
            Action::Bulk(bulk, _) => source.bulks[bulk].copies.clone(),
        }
    }
}

/// A loop and what its schedule is made from.
pub struct Source<'c> {
    /// The `scf.for`.
    pub op: Op<'c>,
    /// The graph.
    pub graph: LoopGraph,
    /// What its nodes are.
    pub actions: Vec<Action<'c>>,
    /// The types of the buffers that a slot of each ring consists of.
    pub slots: Vec<SmallVec<[MemDescType<'c>; 2]>>,
    /// Buffers of the source that are slots of rings: what `ttg.local_alloc` gave, as the ring and the part of a slot.
    pub buffers: FastMap<Value<'c>, (usize, usize)>,
    /// Groups of bulk copies.
    pub bulks: Vec<Bulk<'c>>,
    /// The node that computes a value.
    pub makers: FastMap<Value<'c>, usize>,
    /// What divisors in the loop, and in one around it, are known to be multiples of, a power of two.
    pub divisors: FastMap<Value<'c>, u64>,
    /// Why loads run ahead.
    why: Why,
    /// Whether what each iteration stores depends on what earlier ones loaded.
    recurs: bool,
    /// Whether only some iterations store such a value, the last one of each tile: the loop goes over tiles.
    over_tiles: bool,
    /// Warps of the program.
    pub warps: u64,
}

/// What a loop asks of a multiprocessor, for its [`Budget`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// See [`Budget::busy_alone`].
    pub busy_alone: bool,
    /// See [`Budget::needed_ahead`].
    pub needed_ahead: u64,
    /// See [`Budget::most_ahead`].
    pub most_ahead: u64,
    /// See [`Budget::starts_late`].
    pub starts_late: bool,
    /// See [`Budget::halves`].
    pub halves: bool,
    /// Whether LLVM is to issue accesses between matrix instructions: dots take no less than what else an iteration does, which is
    /// to load, store and read.
    pub spread: bool,
}

/// Why loads of a loop run ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// Matrices are multiplied in it.
    Multiplies,
    /// It asks for stages.
    Asked,
    /// It is a recurrence: what it stores depends on what was loaded in earlier iterations. There are as few programs as
    /// sequences, which hide little of each other's latency, and each iteration waits for its own loads, since the assembler
    /// moves none past the stores of the iteration before.
    Recurs,
}

/// What of a loop is to run ahead besides loads.
#[derive(Clone, Debug, Default)]
pub struct Ahead<'c> {
    /// What threads store to shared memory for dots, which may be for later iterations.
    pub stores: Stores<'c>,
    /// Reads of operands that the next iteration multiplies.
    pub reads: Vec<Op<'c>>,
}

/// Which buffers that threads fill in an iteration may be filled for a later one.
#[derive(Clone, Debug, Default)]
pub enum Stores<'c> {
    /// None.
    #[default]
    None,
    /// All that threads read.
    All,
    /// These.
    Of(Vec<Op<'c>>),
}

impl<'c> Stores<'c> {
    fn may_have(&self, op: Op<'c>) -> bool {
        match self {
            Stores::None => false,
            Stores::All => true,
            Stores::Of(these) => these.contains(&op),
        }
    }
}

/// Why a loop is left as it is.
pub type Refusal = &'static str;

/// The body of a loop, and what ends it.
pub fn body<'c>(op: Op<'c>) -> Option<(Block<'c>, Op<'c>)> {
    let block = op.region(0).first_block()?;
    Some((block, block.terminator()?))
}

/// Bytes that addresses of bulk copies in shared memory are multiples of (PTX ISA, "Tensor: Copy operations").
const BULK_ALIGNMENT: u64 = 128;

/// Bytes by which loads may move in an iteration to find most of what they read in lines of 128 bytes that the iteration before read.
const NEAR: u64 = 16;

/// Whether loads of the loop `op` hardly move, as those of a window's taps do: then there is little latency for a pipeline to hide, and
/// registers for more CTAs are worth more. `conv3d_dot` (bench/gpu/unseen_kernels) takes 133 us without one, 270 with three stages (H100).
fn is_near(op: Op<'_>) -> bool {
    advance::most_of_loads(op).is_some_and(|bytes| (1..=NEAR).contains(&bytes))
}

/// Whether `op` reads and writes nothing that the order of loads could matter for.
pub fn is_harmless(op: Op<'_>) -> bool {
    let reads = LoadOp::cast(op).is_some_and(|load| !load.is_volatile());
    reads
        || DescriptorLoadOp::cast(op).is_some()
        || is_store(op)
        || is_tensor_store(op)
        || AsyncTdmWaitOp::cast(op).is_some()
        || LocalLoadOp::cast(op).is_some()
        || fills_constant_buffer(op)
        || is_dot(op)
        || op.has_trait(Upstream::RecursiveMemoryEffects)
        || op.is_memory_effect_free()
}

/// Whether `op` loads through what is to become a tensor map: its copy will have a barrier, where tensor operations of AMD's are counted.
fn is_by_tensor_map(op: Op<'_>, target: &TargetDesc) -> bool {
    DescriptorLoadOp::cast(op).is_some() && !target.primitives.tensor_data_mover
}

/// Whether `op` stores to global memory through pointers, and orders no load behind it: nobody can know what an atomic operation
/// met of which no result is used, so that it acquires nothing, and a release holds back no later load.
fn is_store(op: Op<'_>) -> bool {
    StoreOp::cast(op).is_some() || is_atomic_store(op)
}

/// The same with an atomic operation.
pub fn is_atomic_store(op: Op<'_>) -> bool {
    AtomicStoreOp::cast(op).is_some()
        || AtomicRmwOp::cast(op).is_some_and(|atomic| atomic.result().is_unused())
}

/// What the stores of a loop write in global memory.
pub enum Written<'c> {
    /// What pointers of these arguments point to.
    Of(Vec<Value<'c>>),
    /// Pointers that are not computed from arguments write.
    Unknown,
}

impl<'c> Written<'c> {
    /// What `around` stores.
    pub fn of(around: Op<'c>) -> Self {
        let mut written = Written::Of(Vec::new());
        around.walk(&mut |op| {
            let roots = if is_store(op) {
                pointer_roots(op.operand(0))
            } else if is_store_by_tma(op) || is_tensor_store(op) {
                descriptor_roots(op.operand(0))
            } else {
                return Walk::Advance;
            };
            match (&mut written, roots) {
                (Written::Of(all), Some(roots)) => all.extend(roots),
                _ => written = Written::Unknown,
            }
            Walk::Advance
        });
        written
    }

    /// Whether an iteration may have written what `pointer` reads.
    pub fn may_be(&self, pointer: Value<'c>) -> bool {
        match self {
            Written::Of(all) if all.is_empty() => false,
            _ => self.may_be_of(pointer_roots(pointer)),
        }
    }

    /// Whether an iteration may have written what bulk copies read.
    fn may_be_copied(&self, bulk: &Bulk<'c>) -> bool {
        let nothing = matches!(self, Written::Of(all) if all.is_empty());
        !nothing && bulk.copies.iter().any(|copy| self.may_be_of(descriptor_roots(copy.operand(0))))
    }

    /// The same of what is computed from these arguments of the kernel.
    pub fn may_be_of(&self, roots: Option<Arguments<'c>>) -> bool {
        match self {
            Written::Unknown => true,
            Written::Of(all) => !all.is_empty() && may_meet(roots.as_deref(), Some(all)),
        }
    }
}

/// What an iter_arg of an `scf.for` is in the first iteration.
fn iter_arg_init(value: Value<'_>) -> Option<Value<'_>> {
    let tiles = ForOp::cast(value.arg_block()?.parent()?)?;
    Some(tiles.op().operand(3 + value.index().checked_sub(1)?))
}

impl<'c> Source<'c> {
    /// What `op`, an `scf.for`, is to the scheduler; with `all`, because it asks for stages.
    ///
    /// # Errors
    /// Why it is left as it is.
    pub fn of(
        op: Op<'c>,
        all: bool,
        ahead: &Ahead<'c>,
        axis: &AxisInfoAnalysis<'c>,
        warps: u64,
        target: &TargetDesc,
    ) -> Result<Self, Refusal> {
        let (block, end) = body(op).ok_or("it has no body")?;
        let bulks = Bulk::all(block, end);
        let absorbed: Vec<Op<'c>> = bulks.iter().flat_map(Bulk::ops).collect();
        let mut reason = None;
        op.walk(&mut |inner| {
            if inner != op && is_loop(inner) {
                reason = Some("it has a loop in it");
            } else if inner != op && !is_harmless(inner) && !absorbed.contains(&inner)
                || is_by_tensor_map(inner, target)
            {
                reason = Some("what is in it writes memory, or waits");
            }
            if reason.is_some() { Walk::Stop } else { Walk::Advance }
        });
        if let Some(reason) = reason {
            return Err(reason);
        }
        let is_slot = |buffer: Value<'c>| {
            let slot = MemDescType::cast(buffer.ty()).and_then(|ty| BufferLayout::of(ty).ok());
            slot.is_some_and(|slot| slot.bytes() % BULK_ALIGNMENT == 0)
        };
        if !bulks.iter().flat_map(Bulk::buffers).all(is_slot) {
            return Err(
                "what a bulk copy writes is no multiple of 128 bytes, which each slot of a ring has to begin at",
            );
        }
        let written = Written::of(op);
        if bulks.iter().any(|bulk| written.may_be_copied(bulk)) {
            return Err("a bulk copy may read what it stores");
        }
        let (carried, stores_state, stores_always) = recurs(block, end);
        let why = match (multiplies(op), all) {
            (true, _) => Why::Multiplies,
            (false, true) => Why::Asked,
            (false, false) if bulks.is_empty() && stores_state => Why::Recurs,
            (false, false) => {
                return Err(
                    "nothing is multiplied in it, it is no recurrence, and it does not ask for stages",
                );
            }
        };
        if why == Why::Multiplies && !all && bulks.is_empty() && target.primitives.cp_async && is_near(op) {
            return Err("what it loads is next to what the iteration before loaded, and in the L1");
        }
        let passes_on =
            |(i, value): (usize, Value<'c>)| value.arg_block() == Some(block) && value.index() != i + 1;
        if end.operands().enumerate().any(passes_on) {
            return Err("it passes on what it was given, as another value");
        }
        let mut source = Source {
            op,
            graph: LoopGraph::default(),
            actions: Vec::new(),
            slots: Vec::new(),
            buffers: FastMap::default(),
            bulks,
            makers: FastMap::default(),
            divisors: divisors(op, axis),
            why,
            recurs: stores_always,
            over_tiles: stores_state && !stores_always,
            warps,
        };
        // In registers loads wait one iteration, for what one iteration hands to the next must have arrived. Who asks for
        // stages wants more than that.
        let in_registers = match why {
            Why::Multiplies => most_in_registers(op, warps, target),
            Why::Asked => 0,
            Why::Recurs => SOME_WORDS,
        };
        let waiting = FastMap::default();
        let starved =
            why == Why::Multiplies && Balance::of(op, warps, axis, target).is_bound_by_memory(target);
        Builder {
            source: &mut source,
            block,
            axis,
            target,
            warps,
            absorbed,
            written,
            in_registers,
            carried: if why == Why::Recurs { carried } else { FastSet::default() },
            dot: block.ops().find(|op| is_dot(*op)),
            addresses: addresses(op, block),
            starved,
            copies_all: false,
            ahead,
            waiting,
        }
        .build(end);
        Ok(source)
    }

    /// The stages of a loop for which `stages` are wanted: those that the program asks for by what runs ahead how far, if
    /// it does. Copies to addresses that are loaded run ahead no less than others: loads of addresses have stages of their own,
    /// and take registers alone. More stages than a loop has iterations would be shared memory for nothing.
    pub fn stages(&self, stages: u32) -> u32 {
        let asked = self.graph.nodes.iter().filter_map(|node| node.asked).max().map(|ahead| ahead + 1);
        let most =
            trip_count(self.op).map_or(u32::MAX, |trips| u32::try_from(trips).unwrap_or(u32::MAX).max(2));
        asked.unwrap_or(match self.why {
            Why::Recurs => stages.min(2),
            Why::Multiplies => stages.min(most).max(self.graph.levels_of_copies() + 1),
            Why::Asked => stages,
        })
    }

    /// Stages that the loop may have where `stages` are wanted: a single iteration ahead does not cover the latency of memory, two do, and are taken
    /// where they cost nothing. Not where the program says of loads how far they run ahead.
    pub fn most_stages(&self, stages: u32) -> u32 {
        let asked = self.graph.nodes.iter().any(|node| node.asked.is_some());
        let is_long = trip_count(self.op).is_none_or(|trips| trips > u64::from(stages));
        if matches!(self.why, Why::Multiplies) && !asked && is_long {
            stages.max(COVERING_STAGES)
        } else {
            stages
        }
    }

    /// Whether this is a recurrence of which `schedule` has all loads run ahead, as nobody asked for.
    pub fn waits_for_nothing(&self, schedule: &LoopSchedule) -> bool {
        if self.why != Why::Recurs || self.graph.nodes.iter().any(|node| node.asked.is_some()) {
            return false;
        }
        let early = (0..self.actions.len()).filter(|n| schedule.ahead(*n) > 0);
        let ahead: FastSet<Op<'c>> = early.flat_map(|n| self.actions[n].ops(self)).collect();
        let mut all = true;
        self.op.walk(&mut |op| {
            all &= LoadOp::cast(op).is_none() || ahead.contains(&op);
            Walk::Advance
        });
        all
    }

    /// Whether it is a recurrence that multiplies: there are as few programs as sequences.
    pub fn multiplies_and_recurs(&self) -> bool {
        self.why == Why::Multiplies && self.recurs
    }

    /// Whether copies of it are from addresses that are computed from what is loaded: the first ones wait for memory twice.
    pub fn loads_addresses(&self) -> bool {
        let addresses = self.actions.iter().filter_map(|action| match action {
            Action::Copy(op, _) => Some(op.operand(0)),
            _ => None,
        });
        depend_on(addresses, &|value| LoadOp::defining(value).is_some(), &iter_arg_init)
    }

    /// What an iteration gives to the next one.
    pub fn yielded(&self) -> Vec<Value<'c>> {
        body(self.op).map_or_else(Vec::new, |(_, end)| end.operands().collect())
    }

    /// What a schedule of at most `stages` stages may take whose rings outlive `within`: the loop itself, or one around it.
    ///
    /// # Errors
    /// Where it is not known how much shared memory an operation of the loop takes.
    pub fn budget(
        &self,
        within: Op<'c>,
        stages: u32,
        warps: u64,
        demand: Demand,
        target: &TargetDesc,
    ) -> Result<Budget, String> {
        let function = enclosing_function(self.op).unwrap_or(self.op);
        let outer = std::iter::successors(self.op.parent(), |op| op.parent());
        // Who takes tile after tile in one loop is launched as often as there are multiprocessors.
        let own = self.over_tiles.then_some(1);
        let programs =
            outer.filter_map(|op| programs_of_tiles(op, target)).chain(own).min().unwrap_or(u64::MAX);
        Ok(Budget {
            stages,
            wanted: stages,
            shared: target.shared_bytes + RESERVED,
            taken: RESERVED + self.other_bytes(within, target)?,
            ctas: ctas_with_copies(self.op, function, warps, target).min(programs),
            may_fit_more: knows_ctas(target) && programs > 1,
            leave_room: false,
            registers: spare_registers(function, warps, target).min(match self.why {
                Why::Recurs => MOST_WORDS_AHEAD,
                _ => u64::MAX,
            }),
            threads: warps * target.lanes as u64,
            needed_ahead: demand.needed_ahead,
            most_ahead: demand.most_ahead,
            starts_late: demand.starts_late,
            busy_alone: demand.busy_alone,
            few_programs: self.multiplies_and_recurs(),
            halves: demand.halves,
        })
    }

    /// Whether an iteration only loads, computes without other threads, and multiplies what copies have left in rings: threads
    /// wait for each other for nothing else. With `stores`, threads may also store operands to buffers.
    pub fn is_plain(&self, stores: bool, target: &TargetDesc) -> bool {
        let Some((block, end)) = body(self.op) else { return false };
        block.ops().filter(|op| *op != end).all(|op| {
            let known = LoadOp::cast(op).is_some() || LocalLoadOp::cast(op).is_some() || op.is_pure();
            let is_slot = op.results().any(|result| self.buffers.contains_key(&result));
            let is_buffer = stores && LocalAllocOp::cast(op).is_some();
            op.num_regions() == 0 && (known || is_slot || is_buffer) && scratch_bytes(op, target) == Ok(0)
        })
    }

    /// Bytes of shared memory that are in use while `within` runs, rings apart.
    fn other_bytes(&self, within: Op<'c>, target: &TargetDesc) -> Result<u64, String> {
        let bytes = |op: Op<'c>| {
            let ty = LocalAllocOp::cast(op).and_then(|alloc| MemDescType::cast(alloc.result().ty()));
            ty.map_or(Ok(0), |ty| BufferLayout::of(ty).map(|layout| layout.bytes()))
        };
        let mut inside = Vec::new();
        within.walk(&mut |inner| {
            inside.push(inner);
            Walk::Advance
        });
        let (numbers, ends) = numbered(&inside);
        let first = numbers.get(&self.op).copied().unwrap_or(0);
        // In the loop operations will change places: what they use may be in use in all of it.
        let in_loop = first..=ends[first];
        let during =
            |i: usize| if in_loop.contains(&i) { (*in_loop.start(), *in_loop.end()) } else { (i, i) };
        let mut occupied = Vec::new();
        for (i, &inner) in inside.iter().enumerate() {
            let (begins, until) = during(i);
            let scratch = scratch_bytes(inner, target)?;
            if scratch > 0 {
                occupied.push(Occupied { begins, ends: until, bytes: scratch, is_scratch: true });
            }
            let is_ring = inner.results().any(|result| self.buffers.contains_key(&result));
            let bytes = if is_ring { 0 } else { bytes(inner)? };
            if bytes > 0 {
                let last = last_use(inner, &numbers, &ends).map_or(inside.len(), |last| during(last).1);
                occupied.push(Occupied { begins, ends: last, bytes, is_scratch: false });
            }
        }
        let mut own = most_occupied(occupied);
        // Buffers from before it that are not only used there, be it in another loop.
        let mut at = within;
        while let (Some(outer), Some(block)) = (at.parent(), at.block()) {
            for op in block.ops().take_while(|op| *op != at) {
                let ends =
                    |user: Op<'c>| in_block(user, block).is_some_and(|user| user.is_before_in_block(at));
                let taken = bytes(op)?;
                if taken > 0 && seen_as(op.result(0)).into_iter().any(|user| !ends(user)) {
                    own += taken;
                }
            }
            at = outer;
        }
        Ok(own)
    }
}

/// What occupies shared memory from one operation to another, by their numbers.
struct Occupied {
    begins: usize,
    ends: usize,
    bytes: u64,
    is_scratch: bool,
}

/// The numbers of operations, and of the last one in each.
fn numbered<'c>(ops: &[Op<'c>]) -> (FastMap<Op<'c>, usize>, Vec<usize>) {
    let numbers: FastMap<Op<'c>, usize> = ops.iter().enumerate().map(|(i, op)| (*op, i)).collect();
    let mut ends: Vec<usize> = (0..ops.len()).collect();
    for i in (0..ops.len()).rev() {
        if let Some(parent) = ops[i].parent().and_then(|parent| numbers.get(&parent)) {
            ends[*parent] = ends[*parent].max(ends[i]);
        }
    }
    (numbers, ends)
}

/// The number of the last operation that uses the buffer `alloc`; `None` where it is passed on to other blocks.
fn last_use<'c>(alloc: Op<'c>, numbers: &FastMap<Op<'c>, usize>, ends: &[usize]) -> Option<usize> {
    let block = alloc.block()?;
    seen_as(alloc.result(0)).into_iter().try_fold(0, |last, user| {
        let passes_on = user.num_regions() > 0 || user.block().and_then(Block::last) == Some(user);
        let at = in_block(user, block).filter(|_| !passes_on)?;
        Some(last.max(ends[*numbers.get(&at)?]))
    })
}

/// The most bytes of what overlaps in time, directly or by way of others: as many suffice, whatever the order. Scratch memory serves one
/// operation after the other.
fn most_occupied(mut occupied: Vec<Occupied>) -> u64 {
    occupied.sort_by_key(|one| one.begins);
    let (mut most, mut end, mut buffers, mut scratch) = (0, 0, 0, 0);
    for one in occupied {
        if one.begins > end {
            (buffers, scratch) = (0, 0);
        }
        end = end.max(one.ends);
        if one.is_scratch {
            scratch = one.bytes.max(scratch);
        } else {
            buffers += one.bytes;
        }
        most = most.max(buffers + scratch);
    }
    most
}

/// What a loop computes from what earlier iterations loaded, whether it stores such a value, and whether each iteration does: not only
/// the last one of each tile, where a loop goes over tiles.
fn recurs<'c>(block: Block<'c>, end: Op<'c>) -> (FastSet<Value<'c>>, bool, bool) {
    let reached = |from: Vec<Value<'c>>| {
        let (mut seen, mut open) = (FastSet::from_iter(from.iter().copied()), from);
        while let Some(value) = open.pop() {
            for (user, _) in value.uses() {
                let Some(outer) = in_block(user, block).filter(|outer| *outer != end) else { continue };
                let made = user.results().chain(outer.results());
                open.extend(made.filter(|result| seen.insert(*result)));
            }
        }
        seen
    };
    let loads = block.ops().filter(|op| LoadOp::cast(*op).is_some()).map(|op| op.result(0)).collect();
    let loaded = reached(loads);
    let carried = end.operands().enumerate().filter(|(_, value)| loaded.contains(value));
    let carried = reached(carried.map(|(i, _)| block.arg(i + 1)).collect());
    let (mut stores, mut always) = (false, false);
    for op in block.ops() {
        op.walk(&mut |inner| {
            if StoreOp::cast(inner).is_some() && inner.operands().any(|value| carried.contains(&value)) {
                stores = true;
                always |= inner == op;
            }
            Walk::Advance
        });
    }
    (carried, stores, always)
}

/// What the loads of a loop depend on within an iteration, other than through dots.
fn addresses<'c>(around: Op<'c>, block: Block<'c>) -> FastSet<Value<'c>> {
    let (mut seen, mut open) = (FastSet::default(), Vec::new());
    around.walk(&mut |op| {
        if LoadOp::cast(op).is_some() {
            open.extend(op.operands());
        }
        Walk::Advance
    });
    while let Some(value) = open.pop() {
        if seen.insert(value) {
            let made = value.def_op().filter(|op| op.block() == Some(block) && !is_dot(*op));
            open.extend(made.into_iter().flat_map(|op| op.operands()));
        }
    }
    seen
}

/// What uses a buffer, or a view of it.
fn seen_as(buffer: Value<'_>) -> Vec<Op<'_>> {
    let (mut users, mut open) = (Vec::new(), vec![buffer]);
    while let Some(value) = open.pop() {
        for (user, _) in value.uses() {
            if is_memdesc_view(user) {
                open.push(user.result(0));
            }
            users.push(user);
        }
    }
    users
}

/// Whether a buffer that `op` fills once is only read by threads, in the same iteration of the loop with the body `block`.
pub fn is_read_within<'c>(op: Op<'c>, block: Block<'c>) -> bool {
    let reads = |user: Op<'c>| LocalLoadOp::cast(user).is_some() || is_memdesc_view(user);
    fills_constant_buffer(op)
        && seen_as(op.result(0)).into_iter().all(|user| user.block() == Some(block) && reads(user))
}

/// A buffer of `shape` like `like`, that is written.
fn slot_type<'c>(ty: MemDescType<'c>) -> Option<MemDescType<'c>> {
    MemDescType::new(&ty.shape(), ty.element(), ty.encoding(), ty.space(), true)
}

/// Registers in which a load that threads compute with may wait for its use. Through shared memory it is written and read
/// once more, which buys a distance of several iterations: a CTA that is alone on its multiprocessor needs it, several hide
/// each other's latency, and one iteration is enough.
fn most_in_registers(op: Op<'_>, warps: u64, target: &TargetDesc) -> u64 {
    let function = enclosing_function(op).unwrap_or(op);
    if ctas_together(function, warps, 0, target) < 2 {
        return FEW_WORDS;
    }
    (spare_registers(function, warps, target) / SHARE_OF_SPARE).clamp(FEW_WORDS, SOME_WORDS)
}

struct Builder<'a, 'c> {
    source: &'a mut Source<'c>,
    block: Block<'c>,
    axis: &'a AxisInfoAnalysis<'c>,
    target: &'a TargetDesc,
    warps: u64,
    /// Operations that are parts of groups of bulk copies.
    absorbed: Vec<Op<'c>>,
    /// What the loop writes in global memory.
    written: Written<'c>,
    /// Registers in which a load that threads compute with may wait.
    in_registers: u64,
    /// Of a recurrence, what is computed from what earlier iterations loaded.
    carried: FastSet<Value<'c>>,
    /// The first dot of an iteration.
    dot: Option<Op<'c>>,
    /// What loads of an iteration depend on.
    addresses: FastSet<Value<'c>>,
    /// Whether an iteration waits for memory longer than it computes: one iteration ahead is not enough.
    starved: bool,
    /// Whether no load of a tensor has to wait in registers.
    copies_all: bool,
    /// What runs ahead besides loads.
    ahead: &'a Ahead<'c>,
    /// Loads whose results are read from a ring, until something uses them.
    waiting: FastMap<Value<'c>, (Op<'c>, usize)>,
}

impl<'c> Builder<'_, 'c> {
    fn build(mut self, end: Op<'c>) {
        self.copies_all = self.source.why == Why::Multiplies
            && self.target.primitives.cp_async
            && self.block.ops().all(|op| !self.needs_registers(op));
        for bulk in 0..self.source.bulks.len() {
            let buffers: SmallVec<[Value<'c>; 2]> = self.source.bulks[bulk].buffers().collect();
            let types = buffers.iter().filter_map(|buffer| MemDescType::cast(buffer.ty())).collect();
            if let Some(ring) = self.ring(types) {
                let parts = buffers.into_iter().enumerate();
                self.source.buffers.extend(parts.map(|(part, buffer)| (buffer, (ring, part))));
            }
        }
        for op in self.block.ops().filter(|op| *op != end) {
            self.read_operands(op);
            self.add(op);
        }
        self.read_operands(end);
        self.edges(end);
    }

    fn push(&mut self, action: Action<'c>, mut node: Node) -> usize {
        // Addresses and the like come with what needs them.
        if node.kind != Kind::Pure || node.heavy {
            node.cluster = action.ops(self.source).first().and_then(|op| number(*op, CLUSTER));
        }
        self.source.actions.push(action);
        self.source.graph.nodes.push(node);
        self.source.actions.len() - 1
    }

    /// Reads what `op` uses from rings, where that has not been done.
    fn read_operands(&mut self, op: Op<'c>) {
        let mut used: SmallVec<[(Op<'c>, usize); 2]> = SmallVec::new();
        op.walk(&mut |nested| {
            used.extend(nested.operands().filter_map(|value| self.waiting.get(&value).copied()));
            Walk::Advance
        });
        if op.results().any(|result| self.source.buffers.contains_key(&result)) {
            return;
        }
        for (load, ring) in used {
            if self.waiting.remove(&load.result(0)).is_some() {
                let words = tensor_words(load.result(0));
                let node = Node { reads: [ring].into_iter().collect(), words, ..Node::new(Kind::Pure) };
                let number = self.push(Action::Read(load, ring), node);
                self.source.makers.insert(load.result(0), number);
            }
        }
    }

    fn add(&mut self, op: Op<'c>) {
        if let Some(bulk) = self.source.bulks.iter().position(|bulk| bulk.wait == op) {
            let buffer = self.source.bulks[bulk].buffers().next();
            if let Some((ring, _)) = buffer.and_then(|buffer| self.source.buffers.get(&buffer)).copied() {
                let node = Node { early: true, writes: Some(ring), ..Node::new(Kind::BulkCopy) };
                self.push(Action::Bulk(bulk, ring), node);
            }
            return;
        }
        if self.absorbed.contains(&op) {
            return;
        }
        if op.results().any(|result| self.source.buffers.contains_key(&result)) {
            return;
        }
        if let Some(load) = LoadOp::cast(op).filter(|_| !self.written.may_be(op.operand(0))) {
            return self.load(op, load);
        }
        if self.source.why != Why::Recurs
            && self.target.primitives.tensor_data_mover
            && let Some((alloc, slot)) = tensor_moves::slot(op)
            && !self.written.may_be_of(descriptor_roots(op.operand(0)))
            && let Some(ring) = self.ring([slot].into_iter().collect())
        {
            self.source.buffers.insert(alloc.result(0), (ring, 0));
            let node = Node { early: true, asked: asked(op), writes: Some(ring), ..Node::new(Kind::Copy) };
            self.push(Action::Copy(op, ring), node);
            return;
        }
        let ahead = self.ahead.stores.may_have(op) && is_read_within(op, self.block);
        if let Some(alloc) = LocalAllocOp::cast(op)
            && (ahead || self.is_for_dots_beside(op))
            && let Some(ty) = MemDescType::cast(alloc.result().ty()).and_then(slot_type)
            && let Some(ring) = self.ring([ty].into_iter().collect())
        {
            self.source.buffers.insert(alloc.result(), (ring, 0));
            let node = Node { early: ahead, near: ahead, writes: Some(ring), ..Node::new(Kind::Fill) };
            self.push(Action::Fill(op, ring), node);
            return;
        }
        let node = self.node(op);
        let number = self.push(Action::Op(op), node);
        self.source.makers.extend(op.results().map(|result| (result, number)));
    }

    /// A new ring, whose slots are buffers of these types.
    fn ring(&mut self, types: SmallVec<[MemDescType<'c>; 2]>) -> Option<usize> {
        let mut bytes = 0;
        for ty in &types {
            let layout = BufferLayout::of(*ty).ok()?;
            bytes += layout.bytes().next_multiple_of(layout.alignment.max(1));
        }
        self.source.slots.push(types);
        self.source.graph.rings.push(bytes);
        Some(self.source.slots.len() - 1)
    }

    fn node(&self, op: Op<'c>) -> Node {
        let mut node = Node::new(if op.is_pure() {
            Kind::Pure
        } else if is_division(op) || divides_within(op) {
            Kind::Guarded
        } else {
            Kind::Fixed
        });
        op.walk(&mut |nested| {
            for value in nested.operands() {
                let ring = allocation(value).and_then(|op| self.source.buffers.get(&op.result(0)));
                let ring = ring.filter(|(ring, _)| !node.reads.contains(ring) && !is_memdesc_view(op));
                if let Some((ring, _)) = ring {
                    node.reads.push(*ring);
                }
            }
            Walk::Advance
        });
        if self.ahead.reads.contains(&op) {
            (node.kind, node.early, node.fetches) = (Kind::Pure, true, true);
        }
        node.heavy = is_dot(op);
        node.divisible = DotOp::cast(op).is_some_and(|dot| parts_along_k(dot, 2).is_some());
        let counts = |result: &Value<'c>| node.fetches || !is_index(result.ty());
        node.words = op.results().filter(counts).map(tensor_words).sum();
        if let Some(dot) = WarpGroupDotOp::cast(op)
            && !plans::warp_group_dot(dot, self.target).is_ok_and(|plan| plan.promoted)
        {
            node.kind = Kind::Dot;
            let in_registers = dot.a().ty().as_tensor().is_some() && self.is_rewritten(dot.a());
            let elsewhere = [dot.a(), dot.b()].into_iter().filter_map(allocation).any(|root| {
                root.block() == Some(self.block) && !self.source.buffers.contains_key(&root.result(0))
            });
            node.blocking = in_registers || elsewhere;
        }
        node
    }

    /// Whether the registers of `value`, which a dot reads beside the program, may be written in the next iteration
    /// before that dot is done. They are not where they are outside of the loop, or computed from a dot, which is
    /// waited for first and ends later.
    fn is_rewritten(&self, value: Value<'c>) -> bool {
        let mut open: SmallVec<[Value<'c>; 8]> = [value].into_iter().collect();
        let mut seen: FastMap<Value<'c>, ()> = FastMap::default();
        let mut inside = false;
        while let Some(value) = open.pop() {
            if seen.insert(value, ()).is_some() {
                continue;
            }
            let Some(op) = value.def_op().filter(|op| op.block() == Some(self.block)) else {
                inside |= value.arg_block() == Some(self.block);
                continue;
            };
            inside = true;
            if WarpGroupDotOp::cast(op).is_some() {
                return false;
            }
            open.extend(op.operands());
        }
        inside
    }

    /// Whether all that reads a buffer is dots that run beside the program.
    fn is_for_dots_beside(&self, op: Op<'c>) -> bool {
        let mut open: SmallVec<[Value<'c>; 4]> = op.results().collect();
        let mut any = false;
        while let Some(value) = open.pop() {
            for (user, _) in value.uses() {
                if is_memdesc_view(user) {
                    open.push(user.result(0));
                } else if WarpGroupDotOp::cast(user).is_none() || user.block() != Some(self.block) {
                    return false;
                }
                any = true;
            }
        }
        any && fills_constant_buffer(op)
    }

    fn load(&mut self, op: Op<'c>, load: LoadOp<'c>) {
        let result = load.result();
        if let Some((ring, all)) = self.ring_of(op, load) {
            let node = Node { early: true, asked: asked(op), writes: Some(ring), ..Node::new(Kind::Copy) };
            self.push(Action::Copy(op, ring), node);
            if !all {
                self.waiting.insert(result, (op, ring));
            }
            return;
        }
        let words = self.loaded_words(op, result).max(1);
        let recurs = self.source.why == Why::Recurs;
        let few = words <= self.in_registers && self.accesses(op) <= MOST_ACCESSES_AHEAD;
        // Where that depends on the state, an iteration would have to be computed ahead for it.
        let known = !op.operands().any(|value| self.carried.contains(&value));
        let early = known && (few || !recurs && !self.is_scattered(op));
        // Further than to the next iteration it would be handed on by moves, which wait until it has arrived. What is
        // loaded from there must have come before, though.
        let near = words > FEW_WORDS || recurs || !self.addresses.contains(&result);
        let node = Node { early, asked: asked(op), near, words, ..Node::new(Kind::Guarded) };
        let number = self.push(Action::Op(op), node);
        self.source.makers.insert(result, number);
    }

    /// Accesses of a thread that a load consists of.
    fn accesses(&self, op: Op<'c>) -> usize {
        if op.operand(0).ty().as_tensor().is_none() {
            return 1;
        }
        self.plan(op).map_or(usize::MAX, |plan| plan.accesses.len())
    }

    /// Registers of 32 bits that hold what `op` loads: elements of one address are loaded once, and each access to registers
    /// of its own.
    fn loaded_words(&self, op: Op<'c>, result: Value<'c>) -> u64 {
        let loaded =
            |plan: VectorPlan| plan.accesses.len() as u64 * u64::from(plan.access_bits().div_ceil(32));
        self.plan(op).map_or_else(|| tensor_words(result), loaded)
    }

    fn plan(&self, op: Op<'c>) -> Option<VectorPlan> {
        plans::access(op, self.axis, self.target).ok()
    }

    /// The ring that a load can be copied to, and whether nothing else uses what it gives.
    fn ring_of(&mut self, op: Op<'c>, load: LoadOp<'c>) -> Option<(usize, bool)> {
        let result = load.result();
        if self.source.why == Why::Recurs {
            return None;
        }
        result.ty().as_tensor()?;
        if !self.target.primitives.cp_async {
            return self.ring_past_registers(load);
        }
        let users: SmallVec<[Op<'c>; 4]> = result.uses().map(|(user, _)| user).collect();
        let mut allocs: SmallVec<[(Value<'c>, MemDescType<'c>); 2]> = SmallVec::new();
        for user in &users {
            let Some(ty) = self.copied_to(op, *user) else { continue };
            if self.is_cheaper_turned(op, *user, ty) {
                let ty = self.staging(op, result)?;
                return Some((self.ring([ty].into_iter().collect())?, false));
            }
            allocs.push((user.result(0), ty));
        }
        if let Some((_, first)) = allocs.first().copied() {
            let ring = self.ring([slot_type(first)?].into_iter().collect())?;
            let same: SmallVec<[Value<'c>; 2]> =
                allocs.iter().filter(|(_, ty)| *ty == first).map(|(value, _)| *value).collect();
            self.source.buffers.extend(same.iter().map(|value| (*value, (ring, 0))));
            return Some((ring, same.len() == users.len()));
        }
        // What other loads need is there sooner in registers; and what many elements share is read once by a load, and would be
        // copied for each of them.
        let words = self.loaded_words(op, result);
        if self.is_repeated(op) || self.is_scattered(op) {
            return None;
        }
        let deep = self.starved && (words > FEW_WORDS || self.is_wanted_before_dots(result));
        // A load to registers raises one of six counters of its warp until it is there, and what waits for another load that has
        // the same one waits for both: where copies can do all of them, they do.
        let few = !deep && words <= self.in_registers && !self.copies_all;
        if few || self.addresses.contains(&result) {
            return None;
        }
        let ty = self.staging(op, result)?;
        Some((self.ring([ty].into_iter().collect())?, false))
    }

    /// Whether `op` loads what cannot wait for its use in a ring, or had better not; a scalar counts where it is an address.
    fn needs_registers(&self, op: Op<'c>) -> bool {
        if LoadOp::cast(op).is_none() {
            return false;
        }
        if self.written.may_be(op.operand(0)) {
            return true;
        }
        let result = op.result(0);
        if result.ty().as_tensor().is_none() {
            return self.addresses.contains(&result);
        }
        let copied = |(user, _): (Op<'c>, usize)| self.copied_to(op, user).is_some();
        !result.uses().any(copied)
            && (self.addresses.contains(&result)
                || self.is_repeated(op)
                || self.is_scattered(op)
                || self.staging(op, result).is_none())
    }

    /// Whether several elements that `op` loads lie at one address, and a thread reads them by fewer loads than it would copy them by:
    /// else only threads beside each other have the same ones.
    fn is_repeated(&self, op: Op<'c>) -> bool {
        let repeated = AccessFacts::of(op, self.axis).is_some_and(|facts| facts.repeated() > 1);
        let copies = || {
            let plan = self.copy(op, self.staging(op, op.result(0))?)?;
            Some(plan.access.accesses.len())
        };
        repeated && copies().is_none_or(|copies| copies > self.accesses(op))
    }

    /// Whether nothing says where the elements lie that `op` loads for threads to compute with, beside a dot: a copy moves them one by
    /// one, while a load finds many in the lines and addresses of others.
    fn is_scattered(&self, op: Op<'c>) -> bool {
        let facts = AccessFacts::of(op, self.axis);
        let nowhere = facts.is_some_and(|facts| facts.usual == 1 && facts.stride.is_none());
        let copied = || op.result(0).uses().any(|(user, _)| LocalAllocOp::cast(user).is_some());
        self.source.why == Why::Multiplies && nowhere && !copied() && self.staging(op, op.result(0)).is_some()
    }

    /// Whether an iteration uses `value` before it multiplies, so that it is waited for with the factors of dots.
    fn is_wanted_before_dots(&self, value: Value<'c>) -> bool {
        let Some(dot) = self.dot else { return false };
        let before = |op: Op<'c>| op.block() == Some(self.block) && op.is_before_in_block(dot);
        value.uses().any(|(user, _)| in_block(user, self.block).is_some_and(before))
    }

    /// A buffer to which what `op` loads can be copied as it lies in memory.
    fn staging(&self, op: Op<'c>, result: Value<'c>) -> Option<MemDescType<'c>> {
        let tensor = result.ty().as_tensor()?;
        let facts = AccessFacts::of(op, self.axis)?;
        let layout = SwizzledShared {
            vec: 1,
            per_phase: 1,
            max_phase: 1,
            order: facts.order.to_vec(),
            cga: encoding(tensor.encoding()?).ok()?.cga_layout(),
        };
        let layout = encoding_attr(op.context(), &Encoding::SwizzledShared(layout)).ok()?;
        let space: Attr<'c> = shared_memory(op.context())?;
        let ty = MemDescType::new(&tensor.shape(), tensor.element(), layout, space, true)?;
        self.can_copy(op, ty).then_some(ty)
    }

    /// Whether what `op` loads to the buffer `alloc`, which dots beside the program read, is copied element by element, across the
    /// rows in which it lies in memory, so that a copy in rows, a read and a write (`staged`) are cheaper.
    fn is_cheaper_turned(&self, op: Op<'c>, alloc: Op<'c>, ty: MemDescType<'c>) -> bool {
        let cycles = |ty| Some(self.copy(op, ty)?.access.cycles(self.target));
        let rows = || self.staging(op, op.result(0)).and_then(cycles);
        let turned = || Some(PASSES_WHEN_TURNED * rows()? < cycles(ty)?);
        self.is_for_dots_beside(alloc) && turned().unwrap_or(false)
    }

    /// The type of the buffer that `user` fills with what `op` loads, where copies can do that.
    fn copied_to(&self, op: Op<'c>, user: Op<'c>) -> Option<MemDescType<'c>> {
        let alloc = LocalAllocOp::cast(user)
            .filter(|_| fills_constant_buffer(user) && user.block() == Some(self.block))?;
        MemDescType::cast(alloc.result().ty()).filter(|ty| self.can_copy(op, *ty))
    }

    fn can_copy(&self, op: Op<'c>, ty: MemDescType<'c>) -> bool {
        self.copy(op, ty).is_some()
    }

    /// The ring to which `load` is copied past the registers in place of the buffer that its only user fills.
    fn ring_past_registers(&mut self, load: LoadOp<'c>) -> Option<(usize, bool)> {
        let copies = Copies { axis: self.axis, warps: self.warps, target: self.target };
        let mut users = load.result().uses().map(|(user, _)| user);
        let (Some(user), None) = (users.next(), users.next()) else { return None };
        let alloc = LocalAllocOp::cast(user).filter(|_| user.block() == Some(self.block))?;
        let slot = copies.buffer(load, alloc)?;
        let ring = self.ring([slot].into_iter().collect())?;
        self.source.buffers.insert(alloc.result(), (ring, 0));
        Some((ring, true))
    }

    /// How `op` can be copied to a buffer beside the program.
    fn copy(&self, op: Op<'c>, ty: MemDescType<'c>) -> Option<SharedAccessPlan> {
        let plan = plans::async_copy_to(op, ty, self.axis, self.target).ok();
        plan.filter(|_| self.target.primitives.cp_async)
    }

    //===------------------------------------------------------------------===//
    // Edges
    //===------------------------------------------------------------------===//

    fn edges(&mut self, end: Op<'c>) {
        let yielded: Vec<Value<'c>> = end.operands().collect();
        for n in 0..self.source.actions.len() {
            let ops = self.source.actions[n].ops(self.source);
            let mut found: SmallVec<[Edge; 8]> = SmallVec::new();
            for op in ops {
                op.walk(&mut |nested| {
                    for (i, value) in nested.operands().enumerate() {
                        found.extend(self.edge(n, i, value, &yielded));
                    }
                    Walk::Advance
                });
            }
            self.source.graph.edges.extend(found);
        }
    }

    /// That node `n` uses `value` as operand `i`.
    fn edge(&self, n: usize, i: usize, value: Value<'c>, yielded: &[Value<'c>]) -> Option<Edge> {
        let (value, distance) = match value.arg_block() {
            Some(block) if block == self.block && value.index() > 0 => (yielded[value.index() - 1], 1),
            _ => (value, 0),
        };
        let from = *self.source.makers.get(&value)?;
        let is_dot = |n: usize| self.source.graph.nodes[n].kind == Kind::Dot;
        Some(Edge { from, to: n, distance, accumulates: is_dot(from) && is_dot(n) && i == 2 })
    }
}

/// The types of `parts` equal parts of the operands of `dot` along K, a power of two, where each thread holds as much of each part:
/// `None` where it does not.
pub fn parts_along_k<'c>(dot: DotOp<'c>, parts: i64) -> Option<[Type<'c>; 2]> {
    let part = |value: Value<'c>, from_last: usize| {
        let whole = value.ty().as_tensor()?;
        let along = whole.rank().checked_sub(from_last)?;
        let mut shape = whole.shape();
        shape[along] = Some(shape[along] / parts).filter(|size| size * parts == shape[along] && *size > 0)?;
        let layout = |shape: &[i64]| to_linear_layout(whole.encoding()?, shape).ok();
        let (of_whole, of_part) = (layout(&whole.shape())?, layout(&shape)?);
        let moves = |layout: &LinearLayout, dim| -> Vec<Vec<u64>> {
            layout.columns_of(dim).iter().map(|column| layout.coords(*column).to_vec()).collect()
        };
        // Beyond the registers of a part there are the bits of its number.
        let mut others = moves(&of_whole, Dim::REGISTER);
        for basis in moves(&of_part, Dim::REGISTER) {
            others.remove(others.iter().position(|found| *found == basis)?);
        }
        let steps = |basis: &Vec<u64>, by: u64| {
            (0..whole.rank()).all(|i| basis[i] == if i == along { by } else { 0 })
        };
        let mut numbers = (0..parts.trailing_zeros()).map(|bit| (shape[along] as u64) << bit);
        let same = [Dim::LANE, Dim::WARP].iter().all(|dim| moves(&of_whole, *dim) == moves(&of_part, *dim));
        let fits = same
            && others.len() == parts.trailing_zeros() as usize
            && numbers.all(|by| others.iter().any(|basis| steps(basis, by)));
        TensorType::new(&shape, whole.element(), whole.encoding()).filter(|_| fits).map(TensorType::ty)
    };
    Some([part(dot.a(), 1)?, part(dot.b(), 2)?])
}

/// The attributes of Triton's scheduler: by how many iterations an operation runs ahead; the stage of an operation, and
/// the last one that there is.
const LATENCY: &str = "tt.latency";
const STAGE: &str = "loop.stage";
const LAST_STAGE: &str = "tt.scheduled_max_stage";
/// Where in an iteration an operation comes.
const CLUSTER: &str = "loop.cluster";

/// An attribute that is a number and not negative.
fn number(op: Op<'_>, name: &str) -> Option<u32> {
    op.attr(name).and_then(Attr::as_int).and_then(|n| u32::try_from(n).ok())
}

/// Refuses attributes of Triton's scheduler that mean nothing.
///
/// # Errors
/// Which one; it is reported.
pub fn check_attributes(around: Op<'_>) -> PassResult {
    let last = around.attr(LAST_STAGE);
    let mut wrong = None;
    let mut check = |op: Op<'_>, names: &[&str]| {
        for name in names {
            if op.attr(name).is_some() && number(op, name).is_none() {
                wrong = Some(error(op, format!("expects an integer that is not negative as \"{name}\"")));
            }
        }
        let (stage, last) = (number(op, STAGE), last.and_then(Attr::as_int));
        if let (Some(stage), Some(last)) = (stage, last.filter(|_| op != around))
            && i64::from(stage) > last
        {
            wrong = Some(error(op, format!("has stage {stage} of a loop whose last stage is {last}")));
        }
    };
    check(around, &[LAST_STAGE]);
    for op in body(around).into_iter().flat_map(|(block, _)| block.ops()) {
        check(op, &[LATENCY, STAGE, CLUSTER]);
    }
    wrong.map_or(Ok(()), Err)
}

/// Whether a scheduler ran on this loop: a program that has a schedule asks for stages.
pub fn is_scheduled(around: Op<'_>) -> bool {
    around.attr(LAST_STAGE).is_some()
}

/// The stage from the last that the program asks for, of an operation that has one.
fn asked_stage(op: Op<'_>) -> Option<u32> {
    number(op.parent()?, LAST_STAGE)?.checked_sub(number(op, STAGE)?)
}

/// By how many iterations the program asks that a load runs ahead.
fn asked(op: Op<'_>) -> Option<u32> {
    number(op, LATENCY).or_else(|| asked_stage(op))
}

/// Whether a tensor of this type has indices, addresses or masks, most of which are constants apart and stay in instructions.
fn is_index(ty: Type<'_>) -> bool {
    ty.as_tensor().is_some_and(|ty| {
        let element = ty.element();
        pointee(element).is_some() || element.int_bits().is_some_and(|bits| bits == 1 || bits >= 32)
    })
}

/// Whether `op` may trap because of its divisor only.
pub fn is_division(op: Op<'_>) -> bool {
    is_one_of!(op, DivSIOp | DivUIOp | RemSIOp | RemUIOp)
}

/// The divisions in `op`, itself included.
pub fn divisions(op: Op<'_>) -> Vec<Op<'_>> {
    let mut found = Vec::new();
    op.walk(&mut |inner| {
        found.extend(is_division(inner).then_some(inner));
        Walk::Advance
    });
    found
}

/// What divisors in `op`, and in a loop around it, are known to be multiples of.
fn divisors<'c>(op: Op<'c>, axis: &AxisInfoAnalysis<'c>) -> FastMap<Value<'c>, u64> {
    let around = op.parent().filter(|parent| FuncOp::cast(*parent).is_none());
    let known = |division: Op<'c>| {
        let divisor = division.operand(1);
        (divisor, axis.info(divisor).all_divisible_by())
    };
    divisions(around.unwrap_or(op)).into_iter().map(known).filter(|(_, multiple)| *multiple > 1).collect()
}

/// Whether `op` has regions in which nothing but divisors may trap, and nothing is read or written: where the next tile is, computed
/// where a tile ends.
fn divides_within(op: Op<'_>) -> bool {
    let known = |inner: Op<'_>| inner.num_regions() > 0 || is_division(inner) || inner.is_pure();
    op.num_regions() > 0
        && op.is_memory_effect_free()
        && op.walk(&mut |inner| if known(inner) { Walk::Advance } else { Walk::Stop }) != Walk::Stop
        && !divisions(op).is_empty()
}

impl Source<'_> {
    /// The schedule as a table of operations by stages.
    pub fn describe(&self, schedule: &LoopSchedule) -> String {
        let reads =
            if schedule.reads_ahead(&self.graph) { ", of which one reads operands ahead" } else { "" };
        let unrolled = match schedule.unroll {
            1 => String::new(),
            unroll => {
                format!(", unrolled {unroll} times, so that each iteration loads to registers of its own")
            }
        };
        let mut text = format!("has a software pipeline of {} stages{reads}{unrolled}:", schedule.stages);
        for step in &schedule.kernel {
            text.push_str("\n  ");
            match step {
                Step::Run(n) => {
                    let column = "| ".repeat(schedule.stage[*n] as usize);
                    let rest = "  ".repeat((schedule.stages - schedule.stage[*n]) as usize);
                    let what = self.what(*n);
                    text.push_str(&format!("{column}*{rest}{what}"));
                }
                Step::RunHalf(n, second) => {
                    let column = "| ".repeat(schedule.stage[*n] as usize);
                    let rest = "  ".repeat((schedule.stages - schedule.stage[*n]) as usize);
                    let half = if *second { "second" } else { "first" };
                    text.push_str(&format!("{column}*{rest}{}, {half} half", self.what(*n)));
                }
                other => text.push_str(&other.to_string()),
            }
        }
        for (ring, depth) in schedule.depths.iter().enumerate() {
            text.push_str(&format!("\n  ring {ring}: {depth} slots of {} bytes", self.graph.rings[ring]));
        }
        text
    }

    /// What of stages and clusters that the program asks for `schedule` does not keep.
    pub fn not_kept(&self, schedule: &LoopSchedule) -> Vec<String> {
        let mut all = Vec::new();
        for (n, node) in self.graph.nodes.iter().enumerate() {
            let Some(op) = self.actions[n].ops(self).first().copied() else { continue };
            let asked = asked_stage(op).filter(|_| node.kind != Kind::Pure || node.heavy);
            if let Some(asked) = asked.filter(|asked| *asked != schedule.ahead(n)) {
                let ahead = schedule.ahead(n);
                all.push(format!(
                    "operation {n}, {}, runs {ahead} iterations ahead, not {asked}",
                    self.what(n)
                ));
            }
        }
        if let Some((n, other)) = schedule.misplaced(&self.graph) {
            let (first, second) = (self.what(n), self.what(other));
            all.push(format!(
                "operation {n}, {first}, comes behind operation {other}, {second}, not before it"
            ));
        }
        all
    }

    /// What a node is, for people.
    fn what(&self, node: usize) -> String {
        match self.actions[node] {
            Action::Op(op) => op.name().to_owned(),
            Action::Copy(_, ring) => format!("copy to ring {ring}"),
            Action::Read(_, ring) => format!("read of ring {ring}"),
            Action::Fill(_, ring) => format!("store to ring {ring}"),
            Action::Bulk(_, ring) => format!("bulk copy to ring {ring}"),
        }
    }

    /// The schedule as data, added to what is known of the loop.
    pub fn timeline(&self, schedule: &LoopSchedule, mut timeline: Timeline) -> Timeline {
        timeline.unroll = Some(schedule.unroll).filter(|unroll| *unroll > 1);
        for step in &schedule.kernel {
            match step {
                Step::Run(n) => {
                    let ops = self.actions[*n].ops(self);
                    let line = ops.first().and_then(|op| op.loc().position()).map(|(_, line, _)| line);
                    timeline.operation(self.what(*n), *n as u32, schedule.stage[*n], line);
                }
                // The second half is drawn as what it is part of.
                Step::RunHalf(n, true) => {
                    timeline.operation(self.what(*n), *n as u32, schedule.stage[*n], None);
                }
                other => timeline.wait(other.to_string()),
            }
        }
        for (ring, slots) in schedule.depths.iter().enumerate() {
            let writers = (0..self.graph.nodes.len()).filter(|n| self.graph.nodes[*n].writes == Some(ring));
            let stage = writers.map(|n| schedule.stage[n]).min().unwrap_or(0);
            timeline.ring(*slots, self.graph.rings[ring], stage);
        }
        timeline
    }
}
