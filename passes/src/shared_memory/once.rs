//! Loads of which all threads must get the same.
//!
//! Every thread loads a scalar for itself, and so does every replica of an element. Where the data may change meanwhile, because it is
//! stored here or by other programs, warps may get different values; if such a value decides a branch, or how often a loop runs, in which
//! warps wait for each other, some wait for ever. Each element of such a load is loaded by one thread, which tells the others
//! through shared memory, as for the results of atomic operations; assembly with effects, or that reads registers with a thread's own
//! number, is run by all, and one of them tells the others.
//!
//! What may change are volatile loads, and loads of what may be what the function stores: through pointers of the same
//! argument, or through pointers of unknown origin. A load of a known argument and a store through unknown pointers are taken to
//! be apart: tables of sizes and of pointers are loaded so, and decide about loops. Lanes of a warp load a scalar by one instruction, so it is warps that are told apart.
//!
//! The module is walked backward, from what decides control flow to the loads that it comes from, through calls as well.

use super::callee;
use super::readback::GlobalAccess;
use crate::analysis::pointer_roots::{Arguments, PointerRoots, may_meet};
use crate::plans;
use linear_layout::target::TargetDesc;
use mlir_host::flow::{becomes, incoming, is_region_branch};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Block, Op, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::upstream::ForOp;
use ttopt_dialect::tt::ops::{
    AtomicCasOp, AtomicLoadOp, AtomicPollOp, AtomicRmwOp, ElementwiseInlineAsmOp, FuncOp, LoadOp, ReturnOp,
};
use ttopt_dialect::ttg::module_attrs;
use ttopt_dialect::ttg::ops::BarrierOp;
use ttopt_dialect::ttg::types::MemDescType;

/// Special registers of PTX, and instructions of AMD's, that say something else to each thread or at each time.
const OWN: [&str; 8] =
    ["%tid", "%laneid", "%warpid", "%lanemask", "%clock", "%globaltimer", "v_mbcnt", "s_memtime"];

/// Whether threads may get different results of `op`, assembly, from the same operands.
pub(super) fn is_own(op: Op<'_>) -> bool {
    ElementwiseInlineAsmOp::cast(op)
        .is_some_and(|asm| !asm.pure() || OWN.iter().any(|name| asm.asm_string().contains(name)))
}

/// The mark of a load, or of assembly, of which all threads get what one of them got.
pub const ONCE: &str = "ttg.once";

/// Marks the loads and the assembly of `functions`, callees first, that decide where warps wait for each other.
pub(super) fn mark(functions: &[Op<'_>], target: &TargetDesc) {
    let several = |function: &Op<'_>| module_attrs::num_warps(*function).is_none_or(|warps| warps > 1);
    if !functions.first().is_some_and(several) {
        return;
    }
    let mut module = Module::default();
    for function in functions {
        module.read(*function);
    }
    // Most modules have nothing that may change.
    if module.sources.is_empty() {
        return;
    }
    for function in functions {
        function.walk(&mut |op| {
            if waits(op, target) {
                module.run_together(op);
            }
            Walk::Advance
        });
    }
    for op in module.mark() {
        op.set_attr(ONCE, Attr::unit(op.context()));
    }
}

#[derive(Default)]
struct Module<'c> {
    /// Loads and assembly of which warps may get different values.
    sources: FastSet<Op<'c>>,
    functions: FastMap<&'c str, Function<'c>>,
    /// Operations with something inside at which warps wait for each other.
    around: FastSet<Op<'c>>,
    /// Operations whose conditions are among what was looked at.
    asked: FastSet<Op<'c>>,
    /// What decides control flow there, and where that comes from, as far as nobody has looked yet.
    open: Vec<Value<'c>>,
}

#[derive(Default)]
struct Function<'c> {
    calls: Vec<Op<'c>>,
    returns: Vec<Op<'c>>,
    /// Whether warps wait for each other in it.
    waits: bool,
}

/// Operands that are not passed on by control flow: conditions, bounds.
fn conditions<'c>(op: Op<'c>) -> impl Iterator<Item = Value<'c>> {
    let is_bound = move |i: usize| i < 3 && ForOp::cast(op).is_some();
    let operands = op.operands().enumerate();
    operands.filter(move |(i, _)| is_bound(*i) || becomes(op, *i).is_empty()).map(|(_, value)| value)
}

/// The operations at the ends of the blocks of `op`.
fn ends<'c>(op: Op<'c>) -> impl Iterator<Item = Op<'c>> {
    op.regions().flat_map(|region| region.blocks()).filter_map(Block::terminator)
}

impl<'c> Module<'c> {
    /// Finds the sources of a function, its calls, and where it returns.
    fn read(&mut self, function: Op<'c>) {
        let mut roots = PointerRoots::default();
        let (mut stored, mut anything): (Vec<Arguments<'c>>, bool) = (Vec::new(), false);
        let (mut loads, mut returns) = (Vec::new(), Vec::new());
        function.walk(&mut |op| {
            if let Some(name) = callee(op) {
                self.functions.entry(name).or_default().calls.push(op);
                anything = true;
            } else if ReturnOp::cast(op).is_some() {
                returns.push(op);
            } else if is_own(op) {
                self.sources.insert(op);
            } else if let Some(access) = GlobalAccess::of(op, &mut roots) {
                match access.roots() {
                    Some(roots) if access.writes => stored.push(roots.clone()),
                    None if access.writes => anything = true,
                    roots => loads.extend(LoadOp::cast(op).map(|load| (load, roots.cloned()))),
                }
            }
            Walk::Advance
        });
        for (load, roots) in loads {
            let changes = match &roots {
                Some(roots) => stored.iter().any(|stored| may_meet(Some(stored), Some(roots))),
                None => anything || !stored.is_empty(),
            };
            if changes || load.is_volatile() {
                self.sources.insert(load.op());
            }
        }
        self.functions.entry(FuncOp::of(function).sym_name()).or_default().returns = returns;
    }

    /// Has the conditions of operations among what is looked up, once.
    fn ask(&mut self, ops: impl Iterator<Item = Op<'c>>) {
        for op in ops {
            if self.asked.insert(op) {
                self.open.extend(conditions(op));
            }
        }
    }

    /// All warps must come to `op` equally often: looks up what decides that.
    fn run_together(&mut self, op: Op<'c>) {
        let mut inner = op;
        while let Some(outer) = inner.parent() {
            if !self.around.insert(outer) {
                return;
            }
            self.ask(ends(outer).filter(|end| end.successors().len() > 1));
            if let Some(function) = FuncOp::cast(outer) {
                let known = self.functions.entry(function.sym_name()).or_default();
                if !std::mem::replace(&mut known.waits, true) {
                    known.calls.clone().into_iter().for_each(|call| self.run_together(call));
                }
                return;
            }
            self.ask(ends(outer).chain([outer]));
            inner = outer;
        }
    }

    /// The sources from which comes what decides. One thread tells the others what it got there, so they wait for each other.
    fn mark(mut self) -> FastSet<Op<'c>> {
        let (mut seen, mut found) = (FastSet::default(), FastSet::default());
        while let Some(value) = self.open.pop() {
            if !seen.insert(value) {
                continue;
            }
            if let Some(op) = self.come_from(value)
                && found.insert(op)
            {
                self.run_together(op);
            }
        }
        found
    }

    /// Looks up what a value is computed from, and what decides which of several values it is; says where it is a source.
    fn come_from(&mut self, value: Value<'c>) -> Option<Op<'c>> {
        if let Some(from) = incoming(value) {
            self.open.extend(from.iter().map(|(op, operand)| op.operand(*operand)));
            self.ask(from.iter().map(|(op, _)| *op));
            let around = value.def_op().or_else(|| value.arg_block()?.parent());
            if let Some(around) = around.filter(|op| is_region_branch(*op)) {
                self.ask(ends(around).chain([around]));
            }
            return None;
        }
        let Some(op) = value.def_op() else {
            self.passed(value);
            return None;
        };
        if let Some(called) = callee(op).and_then(|name| self.functions.get(name)) {
            let returned = called.returns.iter().filter_map(|end| end.operands().nth(value.index()));
            self.open.extend(returned);
            let function = called.returns.first().and_then(|end| end.parent());
            self.ask(function.into_iter().flat_map(ends).filter(|end| end.successors().len() > 1));
            return None;
        }
        if self.sources.contains(&op) {
            return Some(op);
        }
        // One thread tells the others what these got.
        if !is_one_of!(op, AtomicRmwOp | AtomicCasOp | AtomicLoadOp | AtomicPollOp) {
            self.open.extend(op.operands());
        }
        None
    }

    /// What callers pass for an argument of a function.
    fn passed(&mut self, argument: Value<'c>) {
        let function = argument.arg_block().and_then(|block| block.parent()).and_then(FuncOp::cast);
        let called = function.and_then(|function| self.functions.get(function.sym_name()));
        for call in called.into_iter().flat_map(|called| &called.calls) {
            self.open.extend(call.operands().nth(argument.index()));
        }
    }
}

/// Whether warps wait for each other in `op` itself, but for calls.
fn waits(op: Op<'_>, target: &TargetDesc) -> bool {
    let is_buffer = |value: Value<'_>| MemDescType::cast(value.ty()).is_some();
    op.operands().any(is_buffer)
        || op.results().any(is_buffer)
        || BarrierOp::cast(op).is_some()
        || GlobalAccess::of(op, &mut PointerRoots::default())
            .is_some_and(|access| access.waits_before || access.waits_after)
        // What has no plan is an error later.
        || plans::scratch_bytes(op, target).is_ok_and(|bytes| bytes > 0)
}
