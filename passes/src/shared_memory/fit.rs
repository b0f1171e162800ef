//! `--tritongpu-fit-shared-memory`: keeps tensors in registers that were to wait in shared memory, where a
//! function needs more of it than a CTA can have.
//!
//! `--tritongpu-reduce-data-duplication` writes what a dot reads to shared memory where it is made, so that
//! other passes can move the write and the read apart. Nobody counts the bytes of all of them together there.
//! Here they are counted, as `--allocate-shared-memory-nv` will. While they are too many, at the operation where
//! most is occupied one buffer gives way: it is written only right before it is first read, or, where it is
//! read already there, its reads become conversions of the tensor, whose scratch memory is free again after them.

use super::allocate::{Placed, place_buffers};
use super::callees_first;
use crate::ir_util::{fills_constant_buffer, in_block};
use crate::machine;
use crate::objective::weight;
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Op};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::IrRewriter;
use ttopt_dialect::ttg::ops::{ConvertLayoutOp, LocalLoadOp};

/// The pass.
pub static TRITONGPU_FIT_SHARED_MEMORY: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    ..PassDef::new(
        "tritongpu-fit-shared-memory",
        "Keep tensors in registers in place of buffers where shared memory would not suffice",
        run,
    )
};

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let Some(target) = machine::Machine::of(module)?.target else { return Ok(()) };
    // Recursion is reported where memory is allocated.
    let Ok(functions) = callees_first(module) else { return Ok(()) };
    let mut rewriter = IrRewriter::new(module.context());
    let mut callees = FastMap::default();
    for function in functions {
        let mut placed = place_buffers(function, &callees, &target)?;
        while placed.needs.bytes > target.shared_bytes {
            if !give_way(&placed, &target, &mut rewriter)? {
                break;
            }
            placed = place_buffers(function, &callees, &target)?;
        }
        if let Some(name) = function.attr("sym_name").and_then(Attr::as_str) {
            callees.insert(name.to_owned(), placed.needs);
        }
    }
    Ok(())
}

/// Lets one buffer give way, of those occupied where most bytes are. Returns whether one could.
fn give_way<'c>(
    placed: &Placed<'c>,
    target: &TargetDesc,
    rewriter: &mut IrRewriter<'c>,
) -> Result<bool, Reported> {
    for crowd in placed.crowds() {
        let bytes: u64 = crowd.iter().map(|buffer| placed.buffers.all[*buffer].needs.bytes).sum();
        let mut candidates: Vec<_> = crowd
            .iter()
            .map(|buffer| placed.buffers.all[*buffer])
            .filter(|buffer| !buffer.is_scratch)
            .filter_map(|buffer| Some((Reads::of(buffer.op)?, buffer.needs.bytes)))
            .collect();
        // The fewest bytes that threads move more often than now; of equal ones the largest.
        let cost = |(reads, bytes): &(Reads<'_>, u64)| reads.times() * *bytes as f64;
        candidates.sort_by(|a, b| cost(a).total_cmp(&cost(b)).then(b.1.cmp(&a.1)));
        // A write later in the block costs nothing but registers.
        if let Some((reads, _)) = candidates.iter().find(|(reads, _)| reads.can_sink()) {
            reads.sink();
            return Ok(true);
        }
        if let Some((reads, _)) = candidates.first() {
            reads.convert(rewriter)?;
            return Ok(true);
        }
        if bytes > target.shared_bytes {
            break;
        }
    }
    Ok(false)
}

/// A buffer that is written once, with a tensor, and only read as a whole.
struct Reads<'c> {
    alloc: Op<'c>,
    loads: Vec<Op<'c>>,
    /// The first operation of the block of `alloc` that reads it.
    first: Op<'c>,
}

impl<'c> Reads<'c> {
    /// Of the buffer that `alloc` makes; `None` where something else happens to it.
    fn of(alloc: Op<'c>) -> Option<Self> {
        if !fills_constant_buffer(alloc) {
            return None;
        }
        let mut loads = Vec::new();
        for (user, _) in alloc.result(0).uses() {
            LocalLoadOp::cast(user).filter(|load| load.token().is_none())?;
            loads.push(user);
        }
        let block = alloc.block()?;
        let mut first = None;
        for load in &loads {
            let op = in_block(*load, block)?;
            if first.is_none_or(|first| op.is_before_in_block(first)) {
                first = Some(op);
            }
        }
        Some(Self { alloc, loads, first: first? })
    }

    /// How often the reads happen for each time that the buffer is written.
    fn times(&self) -> f64 {
        self.loads.iter().map(|load| weight(*load)).sum::<f64>() / weight(self.alloc)
    }

    /// Whether something but other writes stands between the write and the first read.
    fn can_sink(&self) -> bool {
        let mut after = std::iter::successors(self.alloc.next(), |op| op.next());
        after.find(|op| !fills_constant_buffer(*op)).is_some_and(|op| op != self.first)
    }

    fn sink(&self) {
        self.alloc.move_before(self.first);
    }

    /// Makes conversions of the tensor of the reads.
    fn convert(&self, rewriter: &mut IrRewriter<'c>) -> PassResult {
        let tensor = self.alloc.operand(0);
        for load in &self.loads {
            rewriter.set_before(*load);
            let ty = load.result(0).ty();
            let value = if tensor.ty() == ty {
                tensor
            } else {
                ConvertLayoutOp::build(load.loc(), tensor).results(&[ty]).insert(rewriter)?.result()
            };
            load.result(0).replace_all_uses_with(value);
            load.erase();
        }
        self.alloc.erase();
        Ok(())
    }
}
