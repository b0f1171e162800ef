//! The walk from TTGIR to the `llvm` dialect.
//!
//! A tensor is the list of its per-thread values in register order; scalars
//! are lists of one. Every operation is lowered once, in order, by the handler
//! its name is registered with; structured control flow becomes blocks.

mod module;
mod threads;

use crate::emit::{Emit, Failure, Lowered, address_space, unsupported};
use crate::target::{Declare, GRID_DIMS, Target};
use linear_layout::plan::{Scope, ThreadMasks};
use linear_layout::{Dim, LinearLayout};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Block, FloatKind, Loc, Op, Region, Type, Value, Walk};
use std::rc::Rc;
use std::sync::Arc;
use ttopt_dialect::tt::types::TENSOR_DESC;
use ttopt_dialect::ttg::module_attrs;
use ttopt_dialect::ttg::types::{ASYNC_TOKEN, MemDescType};
use ttopt_dialect::ttng::types::TENSOR_DESC_IM2COL;
use ttopt_passes::analysis::axis_info::AxisInfoAnalysis;
use ttopt_passes::analysis::registers::blocks_together;
use ttopt_passes::buffer_plans::is_part;
use ttopt_passes::global_scratch;
use ttopt_passes::plans::TENSOR_MAP_BYTES;

/// Alignment in bytes of a tensor map among the arguments of a kernel (CUDA driver API, `CUtensorMap`).
const MAP_ALIGNMENT: i64 = 64;

/// The values of a thread, in register order.
pub type Values<'c> = Rc<[Value<'c>]>;
/// Lowers one kind of operation.
pub type Handler = for<'a, 'c> fn(&mut Lower<'a, 'c>, Op<'c>) -> Lowered<()>;

/// A function being lowered.
struct Function<'c> {
    /// Branches from the prologue to the body: per-thread indices go before it.
    prologue_end: Op<'c>,
    region: Region<'c>,
    lane: Option<Value<'c>>,
    warp: Option<Value<'c>>,
    block: Option<Value<'c>>,
    /// The block's shared memory.
    shared: Option<Value<'c>>,
    /// This program's part of global scratch memory.
    global_scratch: Option<Value<'c>>,
    /// Whether `global_scratch` is that of all programs.
    is_scratch_of_all: bool,
    /// Places on the stack, by what they hold.
    stack: FastMap<Type<'c>, Value<'c>>,
    /// Index bases by layout.
    bases: FastMap<usize, Rc<[Value<'c>]>>,
    /// Numbers of the thread by their columns.
    numbers: FastMap<threads::Key, Value<'c>>,
    /// Parities of bits of the thread's numbers.
    parities: FastMap<ThreadMasks, Value<'c>>,
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
    element_types: FastMap<Type<'c>, Type<'c>>,
    declared: FastMap<String, Type<'c>>,
    constants: FastMap<Attr<'c>, String>,
    function: Option<Function<'c>>,
    num_warps: u32,
    num_blocks: u32,
    /// Where returns of the region being inlined go.
    inlined_exit: Option<Block<'c>>,
    explain: bool,
    /// Whether rows are copied one by one, by all warps.
    pub copies_rows: bool,
    /// The barrier emitted last, and its block.
    last_barrier: Option<(Block<'c>, Op<'c>)>,
}

fn copies_rows(module: Op<'_>) -> bool {
    let mut found = false;
    module.walk(&mut |op| {
        found |= matches!(op.name(), "ttng.async_tma_gather" | "ttng.async_tma_scatter");
        if found { Walk::Stop } else { Walk::Advance }
    });
    found
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
        let Some(num_warps) = attr("ttg.num-warps") else {
            return unsupported("module has no \"ttg.num-warps\": run --convert-triton-to-tritongpu first");
        };
        let lanes = attr("ttg.threads-per-warp").unwrap_or(target.desc().lanes);
        if lanes != target.desc().lanes {
            return unsupported(format!(
                "module has {lanes} threads per warp, the target {} has {}",
                target.desc().name,
                target.desc().lanes
            ));
        }
        let (num_blocks, most) = (attr("ttg.num-ctas").unwrap_or(1), target.launch_limits());
        if u64::from(num_warps) * u64::from(lanes) > u64::from(most.threads) {
            return unsupported(format!(
                "{num_warps} warps of {lanes} threads: a block of {} has at most {} threads",
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
            emit: Emit::new(module_block, module.loc()),
            target,
            axis_info,
            module,
            module_block,
            handlers,
            values: FastMap::default(),
            blocks: FastMap::default(),
            layouts: FastMap::default(),
            element_types: FastMap::default(),
            declared: FastMap::default(),
            constants: FastMap::default(),
            function: None,
            num_warps,
            num_blocks,
            inlined_exit: None,
            explain: false,
            copies_rows: copies_rows(module),
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

    /// Threads of a block.
    pub fn num_threads(&self) -> u32 {
        self.num_warps * self.target.desc().lanes
    }
    /// Blocks of a cluster, which work on one program.
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
            let space = ty.params().get(1).and_then(|space| space.as_int()).unwrap_or(1);
            self.emit.ptr(u32::try_from(space).unwrap_or(address_space::GLOBAL))?
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
        if ty.as_tensor().is_none() {
            return Ok(1);
        }
        Ok(1 << self.layout(ty)?.in_bits(Dim::REGISTER))
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
            None => unsupported(format!("value of type {} was not lowered", value.ty())),
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
                return unsupported("too few values");
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
    /// Registers that hold copies of an element share one value, and so do
    /// those whose elements axis info knows to be equal.
    pub fn map(
        &mut self,
        op: Op<'c>,
        mut each: impl FnMut(&mut Self, &[Value<'c>]) -> Lowered<Value<'c>>,
    ) -> Lowered<()> {
        let result = op.result(0);
        let n = self.num_values(result.ty())?;
        let operands: Vec<Values<'c>> = op.operands().map(|value| self.get(value)).collect::<Lowered<_>>()?;
        let groups = self.equal_registers(result)?;
        let mut done: FastMap<smallvec::SmallVec<[Value<'c>; 4]>, Value<'c>> = FastMap::default();
        let mut out: Vec<Value<'c>> = Vec::with_capacity(n);
        for register in 0..n {
            if let Some(known) = groups.get(register).and_then(|first| out.get(*first)) {
                out.push(*known);
                continue;
            }
            // Scalars among tensor operands (a select's condition) are shared.
            let args: smallvec::SmallVec<[Value<'c>; 4]> = operands
                .iter()
                .map(|values| {
                    values.get(register).or(if values.len() == 1 { values.first() } else { None }).copied()
                })
                .collect::<Option<_>>()
                .ok_or_else(|| Failure::Unsupported("operands have different layouts".to_owned()))?;
            let value = match done.get(&args) {
                Some(value) => *value,
                None => {
                    let value = each(self, &args)?;
                    done.insert(args, value);
                    value
                }
            };
            out.push(value);
        }
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
    // Thread indices
    //===------------------------------------------------------------------===//

    fn function(&mut self) -> Lowered<&mut Function<'c>> {
        self.function.as_mut().ok_or_else(|| Failure::Unsupported("outside of a function".to_owned()))
    }

    /// Emits in the prologue of the function, which dominates everything.
    fn in_prologue<T>(&mut self, f: impl FnOnce(&mut Self) -> Lowered<T>) -> Lowered<T> {
        let end = self.function()?.prologue_end;
        let saved = self.emit.replace_before(Some(end));
        let result = f(self);
        self.emit.replace_before(saved);
        result
    }

    /// The shared memory that an operation was given for as long as it runs,
    /// where allocation put it: `allocation.offset` bytes from the start.
    ///
    /// # Errors
    /// When shared memory has not been allocated.
    pub fn scratch(&mut self, op: Op<'c>) -> Lowered<Value<'c>> {
        let Some(offset) = op.attr("allocation.offset").and_then(Attr::as_int) else {
            return unsupported("has no shared memory: run --allocate-shared-memory-nv first");
        };
        self.shared_at(offset)
    }

    /// Byte `at` of the shared memory of an operation.
    ///
    /// # Errors
    /// As [`scratch`](Self::scratch).
    pub fn scratch_part(&mut self, op: Op<'c>, at: u64) -> Lowered<Value<'c>> {
        let start = self.scratch(op)?;
        if at == 0 {
            return Ok(start);
        }
        let (byte, at) = (self.emit.int(8), self.emit.const_i32(at as i64)?);
        self.emit.gep(start, at, byte)
    }

    /// The address of byte `offset` of the block's shared memory.
    pub fn shared_at(&mut self, offset: i64) -> Lowered<Value<'c>> {
        let base = self.shared_base()?;
        if offset == 0 {
            return Ok(base);
        }
        let byte = self.emit.int(8);
        let offset = self.emit.const_i32(offset)?;
        self.emit.gep(base, offset, byte)
    }

    /// The start of the block's shared memory: the symbol that launchers size.
    fn shared_base(&mut self) -> Lowered<Value<'c>> {
        if let Some(found) = self.function()?.shared {
            return Ok(found);
        }
        self.with_module(|e, module| module.shared_memory(e))?;
        let base = self.in_prologue(|this| {
            let e = &mut this.emit;
            let symbol = Attr::symbol(e.context(), module::SHARED_MEMORY);
            let ty = e.ptr(address_space::SHARED)?;
            e.value("llvm.mlir.addressof", &[], ty, &[("global_name", symbol)])
        })?;
        self.function()?.shared = Some(base);
        Ok(base)
    }

    /// The address of byte `offset` of the global scratch memory of this function.
    ///
    /// # Errors
    /// When it has none.
    pub fn global_scratch_at(&mut self, offset: i64) -> Lowered<Value<'c>> {
        let Some(mut base) = self.function()?.global_scratch else {
            return unsupported("is in a function without global scratch memory");
        };
        if self.function()?.is_scratch_of_all {
            base = self.in_prologue(|this| this.scratch_of_program(base))?;
            let function = self.function()?;
            (function.global_scratch, function.is_scratch_of_all) = (Some(base), false);
        }
        if offset == 0 {
            return Ok(base);
        }
        let (byte, offset) = (self.emit.int(8), self.emit.const_int(64, offset)?);
        self.emit.gep(base, offset, byte)
    }

    /// The part of this program: programs are numbered along x first, then y and z.
    fn scratch_of_program(&mut self, all: Value<'c>) -> Lowered<Value<'c>> {
        let (blocks, e, i64t) = (self.num_blocks, &mut self.emit, Type::int(all.context(), 64));
        let mut number: Option<Value<'c>> = None;
        for axis in (0..GRID_DIMS).rev() {
            let id = self.target.program_id(e, axis, blocks)?;
            let id = e.value("llvm.zext", &[id], i64t, &[])?;
            number = Some(match number {
                None => id,
                Some(outer) => {
                    let count = self.target.num_programs(e, axis, blocks)?;
                    let count = e.value("llvm.zext", &[count], i64t, &[])?;
                    let outer = e.same("llvm.mul", &[outer, count])?;
                    e.add(outer, id)?
                }
            });
        }
        let Some(mut number) = number else { return Ok(all) };
        if blocks > 1 {
            // Each block of a program has its own.
            let (_, _, block) = self.thread()?;
            let e = &mut self.emit;
            let (block, count) =
                (e.value("llvm.zext", &[block], i64t, &[])?, e.const_int(64, blocks.into())?);
            let first = e.same("llvm.mul", &[number, count])?;
            number = e.add(first, block)?;
        }
        let e = &mut self.emit;
        let size = module_attrs::global_scratch_size(self.module).unwrap_or(0);
        let size = e.const_int(64, size.into())?;
        let (offset, byte) = (e.same("llvm.mul", &[number, size])?, e.int(8));
        e.gep(all, offset, byte)
    }

    /// A place on the stack for a value of type `ty`, the same at every call.
    pub fn stack_slot(&mut self, ty: Type<'c>) -> Lowered<Value<'c>> {
        if let Some(found) = self.function()?.stack.get(&ty) {
            return Ok(*found);
        }
        let slot = self.in_prologue(|this| {
            let e = &mut this.emit;
            let (one, generic) = (e.const_i32(1)?, e.ptr(0)?);
            e.value("llvm.alloca", &[one], generic, &[("elem_type", Attr::type_of(ty))])
        })?;
        self.function()?.stack.insert(ty, slot);
        Ok(slot)
    }

    /// All threads of the block wait for each other. Two barriers with nothing
    /// between them are one.
    pub fn barrier(&mut self) -> Lowered<()> {
        let here = (self.emit.block(), self.emit.block().last());
        if self.last_barrier.is_some() && self.last_barrier == here.1.map(|op| (here.0, op)) {
            return Ok(());
        }
        if self.num_threads() > self.target.desc().lanes {
            self.target.barrier(&mut self.emit)?;
        } else {
            self.target.warp_barrier(&mut self.emit)?;
        }
        self.last_barrier = self.emit.block().last().map(|op| (self.emit.block(), op));
        Ok(())
    }

    /// The threads of a warp, block or cluster wait for each other; what they
    /// wrote to shared memory is then visible to all of them.
    pub fn synchronize(&mut self, scope: Scope) -> Lowered<()> {
        match scope {
            Scope::Warp => self.target.warp_barrier(&mut self.emit),
            Scope::Block => self.barrier(),
            Scope::Cluster => self.target.cluster_barrier(&mut self.emit),
        }
    }

    //===------------------------------------------------------------------===//
    // Functions and blocks
    //===------------------------------------------------------------------===//

    /// Lowers all functions; the originals are erased.
    ///
    /// # Errors
    /// The first thing that is not supported, reported at its operation.
    pub fn run(mut self) -> Lowered<()> {
        let functions: Vec<Op<'c>> = self.module_block.ops().filter(|op| op.name() == "tt.func").collect();
        for op in self.module_block.ops().filter(|op| op.name() != "tt.func") {
            if !op.name().starts_with("llvm.") {
                op.error("cannot be lowered at module level");
                return Err(Failure::Reported);
            }
        }
        for function in &functions {
            self.lower_function(*function)?;
        }
        for function in functions {
            function.erase();
        }
        Ok(())
    }

    fn lower_function(&mut self, op: Op<'c>) -> Lowered<()> {
        match self.try_function(op) {
            Err(Failure::Unsupported(message)) => {
                op.error(message);
                Err(Failure::Reported)
            }
            other => other,
        }
    }

    fn try_function(&mut self, op: Op<'c>) -> Lowered<()> {
        let ctx = op.context();
        let Some(name) = op.attr("sym_name").and_then(Attr::as_str) else {
            return unsupported("function without a name");
        };
        let Some(ty) = op.attr("function_type").and_then(Attr::as_type).and_then(Type::as_function) else {
            return unsupported("function without a type");
        };
        let is_private = op.attr("sym_visibility").and_then(Attr::as_str) == Some("private");
        let is_kernel = !is_private;
        if is_kernel && !ty.results().is_empty() {
            return unsupported("a kernel returns nothing");
        }
        let body = op.region(0);
        let Some(entry_src) = body.first_block() else {
            return self.declare(name, ty.inputs(), ty.results());
        };
        let mut args = self.flatten(ty.inputs())?;
        let num_args = args.len();
        if is_kernel {
            // The kernel ABI: global scratch and profile scratch come last.
            let global = self.emit.ptr(address_space::GLOBAL)?;
            args.extend([global, global]);
        }
        let has_shared = !is_kernel && op.attr("allocation.size").is_some();
        if has_shared {
            // The caller says where: see `ttopt_passes::shared_memory::allocate`.
            args.push(self.emit.ptr(address_space::SHARED)?);
        }
        let has_scratch = !is_kernel && op.attr(global_scratch::SIZE).is_some();
        if has_scratch {
            args.push(self.emit.ptr(address_space::GLOBAL)?);
        }
        let results = self.flatten(ty.results())?;
        let result = match results.as_slice() {
            [] => "void".to_owned(),
            [one] => one.to_string(),
            many => self.emit.struct_of(many)?.to_string(),
        };
        let inputs: Vec<String> = args.iter().map(|ty| ty.to_string()).collect();
        let llvm_ty = self.emit.parse_type(&format!("!llvm.func<{result} ({})>", inputs.join(", ")))?;
        let mut attrs =
            vec![("sym_name", Attr::string(ctx, name)), ("function_type", Attr::type_of(llvm_ty))];
        let parse = |text: &str| {
            Attr::parse(ctx, text)
                .ok_or_else(|| Failure::Unsupported(format!("cannot make the attribute {text}")))
        };
        attrs.push(("CConv", parse("#llvm.cconv<ccc>")?));
        attrs.push((
            "linkage",
            parse(if is_kernel { "#llvm.linkage<external>" } else { "#llvm.linkage<internal>" })?,
        ));
        attrs.push(("visibility_", Attr::int(ctx, 64, 0)));
        if is_kernel {
            let shared = self.module.attr("ttg.shared").and_then(Attr::as_int).unwrap_or(0);
            let shared = u64::try_from(shared).unwrap_or(0);
            let together = blocks_together(op, self.num_warps.into(), shared, self.target.desc());
            for (key, text) in self.target.kernel_attrs(self.num_threads(), self.num_blocks, together) {
                attrs.push((key, parse(&text)?));
            }
            attrs.push(("arg_attrs", self.argument_attrs(op, num_args, args.len())?));
        } else {
            // `noinline` callees stay calls, which is what their author asked for.
            attrs.push(("passthrough", Attr::array(ctx, &[Attr::string(ctx, "noinline")])));
        }
        let region = mlir_host::rewrite::new_region();
        let scope = debug_scope(op, name);
        let llvm_func = mlir_host::rewrite::create("llvm.func", scope, &[], &[], &attrs, &[region]);
        let Some(llvm_func) = llvm_func else { return unsupported("cannot make the function") };
        llvm_func.move_before(op);
        let region = llvm_func.region(0);
        let loc = op.loc();
        let entry = Block::new(&args.iter().map(|ty| (*ty, loc)).collect::<Vec<_>>());
        region.append(entry);
        self.emit.set_loc(loc);
        // Predeclare all blocks: branches may go forward.
        let first = self.new_block_in(region, &[], loc)?;
        self.blocks.insert(entry_src, first);
        let order = reachable(body);
        for block in order.iter().copied().skip(1) {
            let types: Vec<Type<'c>> = block.args().map(|arg| arg.ty()).collect();
            let flat = self.flatten(types)?;
            let made = self.new_block_in(region, &flat, loc)?;
            self.blocks.insert(block, made);
            let args: Vec<Value<'c>> = made.args().collect();
            self.set_flat(block.args(), &args)?;
        }
        self.emit.set_block(entry);
        self.emit.br(first, &[], None)?;
        let Some(prologue_end) = entry.last() else { return unsupported("empty prologue") };
        self.function = Some(Function {
            prologue_end,
            region,
            lane: None,
            warp: None,
            block: None,
            shared: if has_shared { entry.args().nth(num_args) } else { None },
            global_scratch: if is_kernel {
                entry.args().nth(num_args)
            } else {
                entry.args().last().filter(|_| has_scratch)
            },
            is_scratch_of_all: is_kernel,
            stack: FastMap::default(),
            bases: FastMap::default(),
            numbers: FastMap::default(),
            parities: FastMap::default(),
        });
        let entry_args: Vec<Value<'c>> = entry.args().take(num_args).collect();
        self.set_flat(entry_src.args(), &entry_args)?;
        for block in order {
            let Some(made) = self.blocks.get(&block).copied() else { return unsupported("unknown block") };
            self.emit.set_block(made);
            self.lower_block(block)?;
        }
        self.function = None;
        Ok(())
    }

    /// Declares a function that another module defines, such as a device library.
    fn declare(&mut self, name: &str, inputs: Vec<Type<'c>>, results: Vec<Type<'c>>) -> Lowered<()> {
        if let Some(ty) = inputs.iter().chain(&results).find(|ty| ty.as_tensor().is_some()) {
            return unsupported(format!("how threads hold {ty} is not known outside of the module"));
        }
        let (inputs, results) = (self.flatten(inputs)?, self.flatten(results)?);
        let result = match results.as_slice() {
            [] | [_] => results.first().copied(),
            many => Some(self.emit.struct_of(many)?),
        };
        self.with_module(|_, module| module.function(name, &inputs, result, false))
    }

    /// `llvm.align` for pointers whose divisibility is known.
    fn argument_attrs(&mut self, op: Op<'c>, num_args: usize, total: usize) -> Lowered<Attr<'c>> {
        let ctx = op.context();
        let given = op.attr("arg_attrs").and_then(Attr::as_array).unwrap_or_default();
        let mut out = Vec::new();
        for i in 0..total {
            let mut entries = vec![];
            let divisibility =
                given.get(i).and_then(|dict| dict.get("tt.divisibility")).and_then(Attr::as_int);
            let ty =
                op.region(0).first_block().filter(|_| i < num_args).and_then(|block| block.args().nth(i));
            let ty = ty.map(|arg| arg.ty());
            if ty.is_some_and(|ty| ty.is(&TENSOR_DESC) || ty.is(&TENSOR_DESC_IM2COL)) {
                // The launcher passes the tensor map itself.
                let bytes = TENSOR_MAP_BYTES;
                let map = self.emit.parse_type(&format!("!llvm.array<{bytes} x i8>"))?;
                entries.push(("llvm.byval", Attr::type_of(map)));
                entries.push(("llvm.align", Attr::int(ctx, 64, MAP_ALIGNMENT)));
                entries.push(("nvvm.grid_constant", Attr::unit(ctx)));
            }
            let is_ptr = ty.is_some_and(ttopt_dialect::tt::types::is_pointer);
            if let (true, Some(align)) = (is_ptr, divisibility)
                && u64::try_from(align).is_ok_and(u64::is_power_of_two)
            {
                entries.push(("llvm.align", Attr::int(ctx, 64, align)));
            }
            out.push(Attr::dict(ctx, &entries));
        }
        Ok(Attr::array(ctx, &out))
    }

    fn new_block_in(&mut self, region: Region<'c>, types: &[Type<'c>], loc: Loc<'c>) -> Lowered<Block<'c>> {
        let block = Block::new(&types.iter().map(|ty| (*ty, loc)).collect::<Vec<_>>());
        region.append(block);
        Ok(block)
    }

    /// A new block of the function with arguments of LLVM types.
    pub fn new_block(&mut self, types: &[Type<'c>]) -> Lowered<Block<'c>> {
        let region = self.function()?.region;
        let loc = self.emit.loc();
        self.new_block_in(region, types, loc)
    }

    /// Where returns of the region being inlined go.
    pub fn inlined_exit(&self) -> Option<Block<'c>> {
        self.inlined_exit
    }
    /// Sets where returns of the region being inlined go; returns what was set.
    pub fn set_inlined_exit(&mut self, exit: Option<Block<'c>>) -> Option<Block<'c>> {
        std::mem::replace(&mut self.inlined_exit, exit)
    }
    /// Says what a block of the source becomes.
    pub fn map_block(&mut self, block: Block<'c>, made: Block<'c>) {
        self.blocks.insert(block, made);
    }

    /// The block that a block of the source became.
    pub fn block_of(&self, block: Block<'c>) -> Lowered<Block<'c>> {
        self.blocks
            .get(&block)
            .copied()
            .ok_or_else(|| Failure::Unsupported("branch to an unknown block".to_owned()))
    }

    /// Lowers the operations of a block at the insertion point.
    ///
    /// # Errors
    /// The first failure, reported at its operation.
    pub fn lower_block(&mut self, block: Block<'c>) -> Lowered<()> {
        for op in block.ops() {
            self.emit.set_loc(op.loc());
            let result = match self.handlers.get(&op.name_id()).copied() {
                Some(handler) => handler(self, op),
                None => unsupported("cannot be lowered to LLVM yet"),
            };
            if let Err(Failure::Unsupported(message)) = result {
                op.error(message);
                return Err(Failure::Reported);
            }
            result?;
        }
        Ok(())
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

/// The blocks of a region that control reaches, in reverse postorder: each
/// after the blocks that dominate it, whatever their order in the text.
pub fn reachable<'c>(region: Region<'c>) -> Vec<Block<'c>> {
    let successors = |block: Block<'c>| -> Vec<Block<'c>> {
        block.terminator().map(|op| op.successors().collect()).unwrap_or_default()
    };
    let Some(entry) = region.first_block() else { return Vec::new() };
    let mut seen = FastSet::from_iter([entry]);
    let mut postorder = Vec::new();
    let mut open = vec![(entry, successors(entry))];
    while let Some((block, rest)) = open.last_mut() {
        // The last successor first, so that blocks come in the order of the
        // successors after the reversal.
        match rest.pop() {
            Some(next) if seen.insert(next) => open.push((next, successors(next))),
            Some(_) => {}
            None => {
                postorder.push(*block);
                open.pop();
            }
        }
    }
    postorder.reverse();
    postorder
}

/// The location of a function with the scope that debuggers and profilers know
/// its lines by; just its location when that says nothing.
fn debug_scope<'c>(op: Op<'c>, name: &str) -> Loc<'c> {
    let loc = op.loc();
    let Some((path, line, _)) = loc.position() else { return loc };
    let ctx = op.context();
    let quoted = |text: &str| Attr::string(ctx, text).to_string();
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
    let file = format!("#llvm.di_file<{} in {}>", quoted(file), quoted(folder));
    let unit = format!(
        "#llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, file = {file}, \
         producer = \"ttopt\", isOptimized = true, emissionKind = DebugDirectivesOnly>"
    );
    let name = quoted(name);
    let text = format!(
        "#llvm.di_subprogram<id = distinct[1]<>, compileUnit = {unit}, scope = {file}, name = {name}, \
         linkageName = {name}, file = {file}, line = {line}, scopeLine = {line}, \
         subprogramFlags = \"Definition|Optimized\", \
         type = #llvm.di_subroutine_type<callingConvention = DW_CC_normal>>"
    );
    Attr::parse(ctx, &text).map_or(loc, |scope| loc.fused(scope))
}
