//! The walk from TTGIR to the `llvm` dialect.
//!
//! A tensor is the list of its per-thread values in register order; scalars
//! are lists of one. Every operation is lowered once, in order, by the handler
//! its name is registered with; structured control flow becomes basic blocks.

mod functions;
mod memory;
mod module;
mod threads;
mod workers;

pub use functions::reachable;
pub(crate) use module::SHARED_MEMORY;

use crate::emit::{Emit, Failure, Lowered, address_space, internal, unsupported};
use crate::target::{BarrierMemory, Declare, Target};
use linear_layout::plan::Scope;
use linear_layout::{Dim, LinearLayout};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, FloatKind, Op, Type, Value};
use std::rc::Rc;
use std::sync::Arc;
use ttopt_dialect::tt::types::{TENSOR_DESC, TensorDescType};
use ttopt_dialect::ttg::types::{ASYNC_TOKEN, MemDescType};
use ttopt_dialect::ttng::types::TENSOR_DESC_IM2COL;
use ttopt_passes::analysis::axis_info::AxisInfoAnalysis;
use ttopt_passes::buffer_plans::is_part;
use ttopt_passes::kernel_decisions::ISSUING_WARP;
use ttopt_passes::thread_group::ThreadGroup;

/// The values of a thread, in register order.
pub type Values<'c> = Rc<[Value<'c>]>;
/// The operands of an elementwise operation for one register.
pub type Args<'c> = smallvec::SmallVec<[Value<'c>; 4]>;
/// Lowers one kind of operation.
pub type Handler = for<'a, 'c> fn(&mut Lower<'a, 'c>, Op<'c>) -> Lowered<()>;

/// A function being lowered.
struct Function<'c> {
    /// Branches from the prologue to the body: per-thread indices go before it.
    prologue_end: Op<'c>,
    /// What depends on the number of a thread.
    threads: threads::Numbers<'c>,
    /// Operations lowered so far that are to be lowered again behind a loop.
    rematerialized: Vec<Op<'c>>,
    /// The block's shared memory.
    shared: Option<Value<'c>>,
    /// This program's part of global scratch memory.
    global_scratch: Option<Value<'c>>,
    /// Whether `global_scratch` is that of all programs.
    is_scratch_of_all: bool,
    /// The worker warps of a kernel that has some.
    workers: Option<workers::Workers<'c>>,
    /// Places on the stack, by what they hold.
    stack: FastMap<Type<'c>, Value<'c>>,
}

/// The lowering of one module.
pub struct Lower<'a, 'c> {
    /// Where operations go.
    pub emit: Emit<'c>,
    /// The target.
    pub target: &'a dyn Target,
    /// Contiguity, divisibility and constancy of the module's values.
    pub axis_info: &'a AxisInfoAnalysis<'c>,
    module: Op<'c>,
    module_block: Block<'c>,
    handlers: FastMap<usize, Handler>,
    values: FastMap<Value<'c>, Values<'c>>,
    blocks: FastMap<Block<'c>, Block<'c>>,
    layouts: FastMap<Type<'c>, Arc<LinearLayout>>,
    /// Whether something takes bytes of a value together.
    pub(crate) taken_together: FastMap<Value<'c>, bool>,
    element_types: FastMap<Type<'c>, Type<'c>>,
    declared: FastMap<String, Type<'c>>,
    constants: FastMap<Attr<'c>, String>,
    function: Option<Function<'c>>,
    /// The warps that run what is being lowered.
    group: ThreadGroup,
    /// All warps of a CTA.
    cta_warps: u32,
    num_blocks: u32,
    /// Where returns of the region being inlined go.
    inlined_exit: Option<Block<'c>>,
    explain: bool,
    /// The warp of a group of which one lane issues bulk copies.
    pub issuing_warp: u32,
    /// What barriers of [`synchronize`](Self::synchronize) order.
    ordered: BarrierMemory,
    /// The block of the barrier emitted last, the barrier, and what it orders.
    last_barrier: Option<(Block<'c>, Op<'c>, BarrierMemory)>,
}

impl<'a, 'c> Lower<'a, 'c> {
    /// A lowering of `module`, whose attributes give warps and blocks.
    ///
    /// # Errors
    /// When the module's attributes are missing.
    pub fn new(
        module: Op<'c>,
        target: &'a dyn Target,
        axis_info: &'a AxisInfoAnalysis<'c>,
        handlers: FastMap<usize, Handler>,
    ) -> Lowered<Self> {
        let attr = |name: &str| module.attr(name).and_then(Attr::as_int).and_then(|n| u32::try_from(n).ok());
        let group = ThreadGroup::of(module).map_err(Failure::Unsupported)?;
        let lanes = attr("ttg.threads-per-warp").unwrap_or(target.desc().lanes);
        if lanes != target.desc().lanes {
            return unsupported(format!(
                "module has {lanes} threads per warp, the target {} has {}",
                target.desc().name,
                target.desc().lanes
            ));
        }
        let (num_blocks, most) = (attr("ttg.num-ctas").unwrap_or(1), target.launch_limits());
        let cta_warps = attr("ttg.total-num-warps").unwrap_or(group.warps);
        if cta_warps < group.warps {
            return unsupported(format!(
                "\"ttg.total-num-warps\" is {cta_warps}, fewer than the {} of \"ttg.num-warps\"",
                group.warps
            ));
        }
        if u64::from(cta_warps) * u64::from(lanes) > u64::from(most.threads) {
            return unsupported(format!(
                "{cta_warps} warps of {lanes} threads: a block of {} has at most {} threads",
                target.desc().name,
                most.threads
            ));
        }
        if num_blocks > most.blocks {
            return unsupported(format!(
                "programs of {num_blocks} blocks: a cluster of {} has at most {}",
                target.desc().name,
                most.blocks
            ));
        }
        let Some(module_block) =
            (module.num_regions() == 1).then(|| module.region(0).first_block()).flatten()
        else {
            return unsupported("module has no body");
        };
        Ok(Self {
            emit: Emit::new(module_block, module.loc())
                .fusing(module.attr(crate::FP_FUSION).and_then(Attr::as_bool).unwrap_or(true))
                .flushing(crate::flushes_denormals(module))
                .joining(target.keeps_vectors()),
            target,
            axis_info,
            module,
            module_block,
            handlers,
            values: FastMap::default(),
            blocks: FastMap::default(),
            layouts: FastMap::default(),
            taken_together: FastMap::default(),
            element_types: FastMap::default(),
            declared: FastMap::default(),
            constants: FastMap::default(),
            function: None,
            group,
            cta_warps,
            num_blocks,
            inlined_exit: None,
            explain: false,
            issuing_warp: attr(ISSUING_WARP).unwrap_or(0),
            ordered: BarrierMemory::Shared,
            last_barrier: None,
        })
    }

    /// Whether plans are explained as remarks.
    pub fn explain(mut self, explain: bool) -> Self {
        self.explain = explain;
        self
    }
    /// Reports a remark at `op` where explanations are asked for.
    pub fn remark(&self, op: Op<'c>, text: impl FnOnce() -> String) {
        if self.explain {
            op.remark(text());
        }
    }

    /// The warps that run what is being lowered.
    pub fn group(&self) -> ThreadGroup {
        self.group
    }
    /// Threads that run what is being lowered.
    pub fn num_threads(&self) -> u32 {
        self.group.threads(self.target.desc())
    }
    /// Threads of a CTA.
    pub fn cta_threads(&self) -> u32 {
        self.cta_warps * self.target.desc().lanes
    }
    /// CTAs of a cluster, which run one program.
    pub fn num_blocks(&self) -> u32 {
        self.num_blocks
    }

    //===------------------------------------------------------------------===//
    // Types and layouts
    //===------------------------------------------------------------------===//

    /// The LLVM type of one element held in a register.
    pub fn register_type(&mut self, ty: Type<'c>) -> Lowered<Type<'c>> {
        if let Some(found) = self.element_types.get(&ty) {
            return Ok(*found);
        }
        let made = if let Some(bits) = ty.int_bits() {
            self.emit.int(bits)
        } else if ty.is_index() {
            self.emit.i64()
        } else if let Some(kind) = ty.float_kind() {
            match kind {
                FloatKind::F16 | FloatKind::BF16 | FloatKind::F32 | FloatKind::F64 => ty,
                FloatKind::TF32 => self.emit.f32(),
                small => self.emit.int(small.bits()),
            }
        } else if ttopt_dialect::tt::types::is_pointer(ty) {
            let space = ty.params().get(1).and_then(|space| space.as_int());
            let Some(space) = space.and_then(|space| u32::try_from(space).ok()) else {
                return unsupported(format!("{ty} points into no address space"));
            };
            self.emit.ptr(space)?
        } else if ty.is(&TENSOR_DESC) || ty.is(&TENSOR_DESC_IM2COL) {
            self.emit.ptr(address_space::GENERIC)?
        } else {
            return unsupported(format!("values of type {ty} cannot be lowered yet"));
        };
        self.element_types.insert(ty, made);
        Ok(made)
    }

    /// Bits of one element in memory: `i1` takes a byte.
    pub fn memory_bits(&mut self, element: Type<'c>) -> Lowered<u32> {
        if ttopt_dialect::tt::types::is_pointer(element) {
            return Ok(64);
        }
        match element.bits() {
            Some(1) => Ok(8),
            Some(bits @ (8 | 16 | 32 | 64)) => Ok(bits),
            _ => unsupported(format!("elements of type {element} have no address")),
        }
    }

    /// The layout of a tensor type.
    pub fn layout(&mut self, ty: Type<'c>) -> Lowered<Arc<LinearLayout>> {
        if let Some(found) = self.layouts.get(&ty) {
            return Ok(found.clone());
        }
        let layout = ttopt_passes::plans::layout(ty).map_err(Failure::Unsupported)?;
        self.layouts.insert(ty, layout.clone());
        Ok(layout)
    }

    /// Number of values of a thread for something of type `ty`.
    pub fn num_values(&mut self, ty: Type<'c>) -> Lowered<usize> {
        if let Some(buffer) = MemDescType::cast(ty) {
            return Ok(1 + usize::from(is_part(buffer)));
        }
        if ty.is(&ASYNC_TOKEN) {
            return Ok(0);
        }
        if let Some(types) = self.descriptor_types(ty)? {
            return Ok(types.len());
        }
        if ty.as_tensor().is_none() {
            return Ok(1);
        }
        Ok(1 << self.layout(ty)?.in_bits(Dim::REGISTER))
    }

    /// The types of the values that a tensor descriptor is, where these are several.
    pub fn descriptor_types(&mut self, ty: Type<'c>) -> Lowered<Option<Vec<Type<'c>>>> {
        match TensorDescType::cast(ty) {
            Some(desc) => self.target.descriptor_types(&mut self.emit, desc.shape().len()),
            None => Ok(None),
        }
    }

    /// LLVM types of a thread's values.
    pub fn flatten(&mut self, types: impl IntoIterator<Item = Type<'c>>) -> Lowered<Vec<Type<'c>>> {
        let mut flat = Vec::new();
        for ty in types {
            if let Some(buffer) = MemDescType::cast(ty).filter(|ty| ty.is_in_shared_memory()) {
                flat.push(self.emit.ptr(address_space::SHARED)?);
                flat.extend(is_part(buffer).then(|| self.emit.i32()));
                continue;
            }
            if ty.is(&ASYNC_TOKEN) {
                continue;
            }
            if let Some(types) = self.descriptor_types(ty)? {
                flat.extend(types);
                continue;
            }
            let element = self.register_type(ty.element())?;
            flat.extend(std::iter::repeat_n(element, self.num_values(ty)?));
        }
        Ok(flat)
    }

    //===------------------------------------------------------------------===//
    // Values
    //===------------------------------------------------------------------===//

    /// The lowered values of `value`.
    pub fn get(&self, value: Value<'c>) -> Lowered<Values<'c>> {
        match self.values.get(&value) {
            Some(values) => Ok(values.clone()),
            None => internal(format!("value of type {} was not lowered", value.ty())),
        }
    }
    /// The lowered value of a scalar.
    pub fn scalar(&self, value: Value<'c>) -> Lowered<Value<'c>> {
        match &*self.get(value)? {
            [one] => Ok(*one),
            _ => unsupported(format!("expected a scalar, got {}", value.ty())),
        }
    }
    /// Sets the lowered values of `value`.
    pub fn set(&mut self, value: Value<'c>, values: impl Into<Values<'c>>) {
        self.values.insert(value, values.into());
    }
    /// Sets the values of `targets` from a flat list.
    pub fn set_flat(
        &mut self,
        targets: impl IntoIterator<Item = Value<'c>>,
        flat: &[Value<'c>],
    ) -> Lowered<()> {
        let mut rest = flat;
        for target in targets {
            let n = self.num_values(target.ty())?;
            if rest.len() < n {
                return internal("too few values");
            }
            let (mine, others) = rest.split_at(n);
            self.set(target, mine.to_vec());
            rest = others;
        }
        Ok(())
    }
    /// The lowered values of several values, one after the other.
    pub fn get_flat(&self, values: impl IntoIterator<Item = Value<'c>>) -> Lowered<Vec<Value<'c>>> {
        let mut flat = Vec::new();
        for value in values {
            flat.extend(self.get(value)?.iter());
        }
        Ok(flat)
    }

    /// Computes the result of an elementwise operation register by register.
    /// Registers that hold replicas of an element share one value, and so do
    /// those whose elements axis info knows to be equal.
    pub fn map(
        &mut self,
        op: Op<'c>,
        mut each: impl FnMut(&mut Self, &[Value<'c>]) -> Lowered<Value<'c>>,
    ) -> Lowered<()> {
        self.map_all(op, |l, all| all.iter().map(|args| each(l, args)).collect())
    }

    /// As [`map`](Self::map), with the operands of all registers at once, of those that share a value once.
    pub fn map_all(
        &mut self,
        op: Op<'c>,
        compute: impl FnOnce(&mut Self, &[Args<'c>]) -> Lowered<Vec<Value<'c>>>,
    ) -> Lowered<()> {
        let result = op.result(0);
        let n = self.num_values(result.ty())?;
        let operands: Vec<Values<'c>> = op.operands().map(|value| self.get(value)).collect::<Lowered<_>>()?;
        let groups = self.equal_registers(result)?;
        let mut known: FastMap<Args<'c>, usize> = FastMap::default();
        let mut unique: Vec<Args<'c>> = Vec::with_capacity(n);
        let mut places: Vec<usize> = Vec::with_capacity(n);
        for register in 0..n {
            if let Some(place) = groups.get(register).and_then(|first| places.get(*first)) {
                places.push(*place);
                continue;
            }
            // Scalars among tensor operands (a select's condition) are shared.
            let args: Args<'c> = operands
                .iter()
                .map(|values| {
                    values.get(register).or(if values.len() == 1 { values.first() } else { None }).copied()
                })
                .collect::<Option<_>>()
                .ok_or_else(|| Failure::Internal("operands have different layouts".to_owned()))?;
            let place = *known.entry(args).or_insert_with_key(|args| {
                unique.push(args.clone());
                unique.len() - 1
            });
            places.push(place);
        }
        let values = compute(self, &unique)?;
        let out: Option<Vec<Value<'c>>> =
            places.into_iter().map(|place| values.get(place).copied()).collect();
        let Some(out) = out else { return internal("fewer results than operands") };
        self.set(result, out);
        Ok(())
    }

    /// For each register of `value`, the first one whose element is known to
    /// be equal: both lie in one aligned group of equal elements. Empty when
    /// nothing is known.
    fn equal_registers(&mut self, value: Value<'c>) -> Lowered<Vec<usize>> {
        let Some(info) = self.axis_info.get(value) else { return Ok(Vec::new()) };
        if (0..info.rank()).all(|dim| info.constancy(dim) == 1) {
            return Ok(Vec::new());
        }
        let layout = self.layout(value.ty())?;
        // The bits of coordinates that tell the elements of a group apart.
        let inside = (0..info.rank()).map(Dim::out).enumerate().fold(0, |bits, (d, dim)| {
            let low = info.constancy(d).next_power_of_two() - 1;
            bits | ((low << layout.out_shift(dim).unwrap_or(0)) & layout.out_mask(dim))
        });
        let columns = layout.columns_of(Dim::REGISTER);
        let mut first = FastMap::default();
        Ok((0..1usize << columns.len())
            .map(|register| {
                let group = linear_layout::f2::mul(columns, register as u64) & !inside;
                *first.entry(group).or_insert(register)
            })
            .collect())
    }

    //===------------------------------------------------------------------===//
    // Functions and barriers
    //===------------------------------------------------------------------===//

    fn function(&mut self) -> Lowered<&mut Function<'c>> {
        self.function.as_mut().ok_or_else(|| Failure::Unsupported("outside of a function".to_owned()))
    }

    /// Emits in the prologue of the function, which dominates everything.
    fn in_prologue<T>(&mut self, f: impl FnOnce(&mut Self) -> Lowered<T>) -> Lowered<T> {
        let end = self.function()?.prologue_end;
        self.before(end, f)
    }

    fn before<T>(&mut self, end: Op<'c>, f: impl FnOnce(&mut Self) -> Lowered<T>) -> Lowered<T> {
        let saved = self.emit.replace_before(Some(end));
        let result = f(self);
        self.emit.replace_before(saved);
        result
    }

    /// All threads of the group wait for each other. Two barriers with nothing
    /// between them are one.
    pub fn barrier(&mut self, memory: BarrierMemory) -> Lowered<()> {
        // Where nothing happened since the last one, that orders what this one would.
        if let Some((block, op, ordered)) = self.last_barrier
            && block == self.emit.block()
            && (ordered == memory || ordered == BarrierMemory::All)
            && std::iter::successors(op.next(), |op| op.next()).all(Op::is_pure)
        {
            self.last_barrier = block.last().map(|op| (block, op, ordered));
            return Ok(());
        }
        if self.num_threads() > self.target.desc().lanes {
            let alone = self.group.warps == self.cta_warps;
            self.target.barrier(&mut self.emit, &self.group, alone, memory)?;
        } else {
            self.target.warp_barrier(&mut self.emit, memory)?;
        }
        self.last_barrier = self.emit.block().last().map(|op| (self.emit.block(), op, memory));
        Ok(())
    }

    /// The threads of a warp, block or cluster wait for each other; what they
    /// wrote to shared memory is then visible to all of them.
    pub fn synchronize(&mut self, scope: Scope) -> Lowered<()> {
        match scope {
            Scope::Warp => self.target.warp_barrier(&mut self.emit, self.ordered),
            Scope::Block => self.barrier(self.ordered),
            Scope::Cluster => self.cluster_barrier(false),
        }
    }

    /// `f` with barriers that order `memory`.
    pub fn ordering<T>(&mut self, memory: BarrierMemory, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.ordered, memory);
        let result = f(self);
        self.ordered = before;
        result
    }

    /// The module.
    pub fn module(&self) -> Op<'c> {
        self.module
    }

    /// The emitter and the declarations of the module, to be used together.
    pub fn with_module<T>(&mut self, f: impl FnOnce(&mut Emit<'c>, &mut dyn Declare<'c>) -> T) -> T {
        let mut declare = module::Module {
            block: self.module_block,
            declared: &mut self.declared,
            constants: &mut self.constants,
        };
        f(&mut self.emit, &mut declare)
    }
}
