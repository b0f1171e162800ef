//! Functions and their basic blocks.

use super::threads::Numbers;
use super::{Function, Lower};
use crate::emit::{Failure, Lowered, address_space, internal, unsupported};
use crate::lines::Lines;
use crate::target::Launch;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Block, Context, Op, Region, Type, Value, Walk};
use ttopt_dialect::tt::ops::FuncOp;
use ttopt_dialect::tt::types::TENSOR_DESC;
use ttopt_dialect::ttg::ops::AsyncCopyGlobalToLocalOp;
use ttopt_dialect::ttng::types::TENSOR_DESC_IM2COL;
use ttopt_passes::global_scratch;

use ttopt_passes::is_private;
use ttopt_passes::kernel_decisions::{MIN_CTAS, REMATERIALIZE, REMATERIALIZED_BEHIND};
use ttopt_passes::multiplies;
use ttopt_passes::shared_memory;
use ttopt_passes::warp_groups::DISPATCH;

/// The most that LLVM takes.
const MOST_ALIGNMENT: i64 = 1 << 32;

/// What a function takes and returns in LLVM.
struct Signature<'c> {
    ty: Type<'c>,
    /// The types of all arguments; the first `num_args` are those of the function, value by value.
    args: Vec<Type<'c>>,
    num_args: usize,
    is_kernel: bool,
    /// Whether the caller says where the function's shared memory is.
    has_shared: bool,
    /// Whether the caller says where its global scratch memory is.
    has_scratch: bool,
}

impl<'c> Lower<'_, 'c> {
    /// Lowers all functions; the originals are erased.
    ///
    /// # Errors
    /// The first thing that is not supported, reported at its operation.
    pub fn run(mut self) -> Lowered<()> {
        let functions: Vec<Op<'c>> =
            self.module_block.ops().filter(|op| FuncOp::cast(*op).is_some()).collect();
        for op in self.module_block.ops().filter(|op| FuncOp::cast(*op).is_none()) {
            if !op.name().starts_with("llvm.") {
                return Err(op.error("cannot be lowered at module level").into());
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
        self.try_function(op).map_err(|failure| failure.report(op).into())
    }

    fn try_function(&mut self, op: Op<'c>) -> Lowered<()> {
        let (name, ty) = (FuncOp::of(op).sym_name(), FuncOp::of(op).function_type());
        let is_kernel = !is_private(op);
        if is_kernel && !ty.results().is_empty() {
            return unsupported("a kernel returns nothing");
        }
        let body = op.region(0);
        let Some(entry_src) = body.first_block() else {
            return self.declare(name, ty.inputs(), ty.results());
        };
        if let Some(reason) = self.target.refuses_name(name, is_kernel) {
            return unsupported(reason);
        }
        let signature = self.signature(op, is_kernel)?;
        let attrs = self.function_attrs(op, name, &signature)?;
        let Signature { args, num_args, has_shared, has_scratch, .. } = signature;
        let region = mlir_host::rewrite::new_region();
        let wants_lines = self.module.attr(crate::LINE_INFO).and_then(Attr::as_bool).unwrap_or(true);
        let (lines, scope) =
            if wants_lines { Lines::of_function(op, name) } else { (Lines::default(), op.loc()) };
        self.emit.set_lines(lines);
        let llvm_func = mlir_host::rewrite::create("llvm.func", scope, &[], &[], &attrs, &[region])?;
        llvm_func.move_before(op);
        let region = llvm_func.region(0);
        let loc = op.loc();
        let entry = Block::new(&args.iter().map(|ty| (*ty, loc)).collect::<Vec<_>>());
        region.append(entry);
        self.emit.set_block(entry);
        self.emit.set_loc(loc);
        self.emit.set_has_copies(has_copies(op));
        self.emit.set_adds_constants_last(!multiplies(op));
        let first = self.new_block(&[])?;
        let order = self.declare_blocks(body, entry_src, first)?;
        let (prologue_end, numbers_end, workers) = if is_kernel && self.cta_warps > self.group.warps {
            let dispatch = op.attr(DISPATCH).and_then(Attr::as_int);
            let (all, own, workers) = self.part_workers(first, dispatch)?;
            (all, own, Some(workers))
        } else {
            self.emit.br(first, &[], None)?;
            let Some(end) = entry.last() else { return internal("empty prologue") };
            (end, end, None)
        };
        self.function = Some(Function {
            prologue_end,
            threads: Numbers::new(numbers_end),
            workers,
            rematerialized: Vec::new(),
            shared: if has_shared { entry.args().nth(num_args) } else { None },
            global_scratch: if is_kernel {
                entry.args().nth(num_args)
            } else {
                entry.args().last().filter(|_| has_scratch)
            },
            is_scratch_of_all: is_kernel,
            stack: FastMap::default(),
        });
        let entry_args: Vec<Value<'c>> = entry.args().take(num_args).collect();
        self.set_flat(entry_src.args(), &entry_args)?;
        for block in order {
            let Some(made) = self.blocks.get(&block).copied() else { return internal("unknown block") };
            self.emit.set_block(made);
            self.lower_block(block)?;
        }
        self.emit.set_loc(loc);
        self.finish_workers()?;
        self.function = None;
        Ok(())
    }

    /// What a function takes and returns in LLVM.
    fn signature(&mut self, op: Op<'c>, is_kernel: bool) -> Lowered<Signature<'c>> {
        let ty = FuncOp::of(op).function_type();
        let mut args = self.flatten(ty.inputs())?;
        let num_args = args.len();
        if is_kernel {
            for input in ty.inputs() {
                if self.descriptor_types(input)?.is_some() {
                    let target = self.target.desc().name;
                    return unsupported(format!(
                        "on {target} a launcher passes no {input} to a kernel: its parts are arguments"
                    ));
                }
            }
            let is_odd = |bits: &u32| !matches!(bits, 1 | 8 | 16 | 32 | 64 | 128);
            if let Some(bits) = args.iter().filter_map(|ty| ty.int_bits()).find(is_odd) {
                return unsupported(format!("a launcher passes no numbers of {bits} bits to a kernel"));
            }
            // The kernel ABI: global scratch and profile scratch come last.
            let global = self.emit.ptr(address_space::GLOBAL)?;
            args.extend([global, global]);
        }
        let has_shared = !is_kernel && op.attr(shared_memory::SIZE).is_some();
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
        let ty = self.emit.parse_type(&format!("!llvm.func<{result} ({})>", inputs.join(", ")))?;
        Ok(Signature { ty, args, num_args, is_kernel, has_shared, has_scratch })
    }

    /// The attributes of the `llvm.func` that `op` becomes.
    fn function_attrs(
        &mut self,
        op: Op<'c>,
        name: &str,
        signature: &Signature<'c>,
    ) -> Lowered<Vec<(&'static str, Attr<'c>)>> {
        let ctx = op.context();
        let parse = |text: &str| parse_attr(ctx, text);
        let linkage = if signature.is_kernel { "#llvm.linkage<external>" } else { "#llvm.linkage<internal>" };
        let mut attrs = vec![
            ("sym_name", Attr::string(ctx, name)),
            ("function_type", Attr::type_of(signature.ty)),
            ("CConv", parse("#llvm.cconv<ccc>")?),
            ("linkage", parse(linkage)?),
            ("visibility_", Attr::int(ctx, 64, 0)),
        ];
        if !signature.is_kernel {
            if op.attr("noinline").and_then(Attr::as_bool) == Some(true) {
                // Their author asked for calls. Others are still functions where they return in several places, which a loop
                // of structured control flow cannot; LLVM inlines them.
                attrs.push(("passthrough", Attr::array(ctx, &[Attr::string(ctx, "noinline")])));
            }
            return Ok(attrs);
        }
        let number = |attr: Option<Attr<'c>>| attr.and_then(Attr::as_int).and_then(|n| u32::try_from(n).ok());
        let launch = Launch {
            threads: self.cta_threads(),
            cluster: self.num_blocks,
            min_ctas: number(op.attr(MIN_CTAS)).unwrap_or(1).max(1),
            max_registers: number(self.module.attr(crate::MAX_REGISTERS)),
            waves_per_eu: number(self.module.attr(crate::WAVES_PER_EU)),
        };
        for (key, text) in self.target.kernel_attrs(&launch) {
            attrs.retain(|(name, _)| *name != key);
            attrs.push((key, parse(&text)?));
        }
        attrs.push(("arg_attrs", self.argument_attrs(op, signature.num_args, signature.args.len())?));
        Ok(attrs)
    }

    /// Makes blocks for all that can be reached, since branches may go forward; `first` for the entry. In the order in which
    /// they are lowered.
    fn declare_blocks(
        &mut self,
        body: Region<'c>,
        entry: Block<'c>,
        first: Block<'c>,
    ) -> Lowered<Vec<Block<'c>>> {
        self.blocks.insert(entry, first);
        let order = reachable(body);
        for block in order.iter().copied().skip(1) {
            let types: Vec<Type<'c>> = block.args().map(|arg| arg.ty()).collect();
            let flat = self.flatten(types)?;
            let made = self.new_block(&flat)?;
            self.blocks.insert(block, made);
            let args: Vec<Value<'c>> = made.args().collect();
            self.set_flat(block.args(), &args)?;
        }
        Ok(order)
    }

    /// Declares a function that another module defines, such as a device library.
    fn declare(&mut self, name: &str, inputs: Vec<Type<'c>>, results: Vec<Type<'c>>) -> Lowered<()> {
        if let Some(ty) = inputs.iter().chain(&results).find(|ty| ty.as_tensor().is_some()) {
            return unsupported(format!("how threads hold {ty} is not known outside of the module"));
        }
        if let Some(reason) = self.target.refuses_symbol(name) {
            return unsupported(reason);
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
        let given = FuncOp::of(op).arg_attrs().unwrap_or_default();
        let mut out = Vec::new();
        for i in 0..total {
            let mut entries = vec![];
            let divisibility =
                given.get(i).and_then(|dict| dict.get("tt.divisibility")).and_then(Attr::as_int);
            let ty =
                op.region(0).first_block().filter(|_| i < num_args).and_then(|block| block.args().nth(i));
            let ty = ty.map(|arg| arg.ty());
            if ty.is_some_and(|ty| ty.is(&TENSOR_DESC) || ty.is(&TENSOR_DESC_IM2COL)) {
                for (key, text) in self.target.descriptor_attrs() {
                    entries.push((key, parse_attr(ctx, &text)?));
                }
            }
            let is_ptr = ty.is_some_and(ttopt_dialect::tt::types::is_pointer);
            if let (true, Some(align)) = (is_ptr, divisibility)
                && u64::try_from(align).is_ok_and(u64::is_power_of_two)
            {
                entries.push(("llvm.align", Attr::int(ctx, 64, align.min(MOST_ALIGNMENT))));
            }
            out.push(Attr::dict(ctx, &entries));
        }
        Ok(Attr::array(ctx, &out))
    }

    /// A new block of the function with arguments of LLVM types.
    pub fn new_block(&mut self, types: &[Type<'c>]) -> Lowered<Block<'c>> {
        self.emit.new_block(types)
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
            .ok_or_else(|| Failure::Internal("branch to an unknown block".to_owned()))
    }

    /// Lowers the operations of a block at the insertion point.
    ///
    /// # Errors
    /// The first failure, reported at its operation.
    pub fn lower_block(&mut self, block: Block<'c>) -> Lowered<()> {
        for op in block.ops() {
            self.lower_op(op)?;
            if op.attr(REMATERIALIZE).is_some() {
                self.function()?.rematerialized.push(op);
            }
            if op.attr(REMATERIALIZED_BEHIND).is_some() {
                let again = std::mem::take(&mut self.function()?.rematerialized);
                self.number_threads_again()?;
                again.into_iter().try_for_each(|op| self.lower_op(op))?;
            }
        }
        Ok(())
    }

    pub(super) fn lower_op(&mut self, op: Op<'c>) -> Lowered<()> {
        self.emit.set_loc(op.loc());
        let result = match self.handlers.get(&op.name_id()).copied() {
            Some(handler) => handler(self, op),
            None => unsupported("cannot be lowered to LLVM yet"),
        };
        result.map_err(|failure| failure.report(op).into())
    }
}

/// Whether a function copies to shared memory beside the program.
fn has_copies(function: Op<'_>) -> bool {
    let begins = |op: Op<'_>| AsyncCopyGlobalToLocalOp::cast(op).is_some();
    function.walk(&mut |op| if begins(op) { Walk::Stop } else { Walk::Advance }) == Walk::Stop
}

fn parse_attr<'c>(ctx: Context<'c>, text: &str) -> Lowered<Attr<'c>> {
    Attr::parse(ctx, text).ok_or_else(|| Failure::Internal(format!("cannot make the attribute {text}")))
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
