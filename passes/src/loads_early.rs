//! Loads from global memory that wait for nothing, before operations at which threads wait for each other.
//!
//! Neither LLVM nor ptxas moves a load up across a barrier: what is loaded behind a conversion through shared memory, or
//! behind a reduction across warps, is one more round trip to memory, though its address may have been known all along. Here loads of few
//! registers, and what their addresses and masks are computed from, move up to before the first such operation; unless another load, of
//! more registers, stays behind it in any case.

use crate::analysis::registers::{distinct_elements, tensor_words};
use crate::plans::scratch_bytes;
use linear_layout::target::TargetDesc;
use mlir_host::hash::FastSet;
use mlir_host::ir::{Block, Op, Value, Walk};
use ttopt_dialect::tt::ops::{LoadOp, ReduceOp, ScanOp};

/// Registers of 32 bits, and elements, of each thread that a load may have: as many wait on the way.
const FEW: u64 = 8;
/// Registers that all loads may have which move up to one place.
const MOST: u64 = 16;

/// Moves loads of `function` up, which is nowhere short of registers.
pub fn load_early(function: Op<'_>, target: &TargetDesc) {
    let mut blocks = Vec::new();
    function.walk(&mut |op| {
        // What is combined in pairs is no place of its own.
        if ReduceOp::cast(op).is_some() || ScanOp::cast(op).is_some() {
            return Walk::Skip;
        }
        let loads = |block: &Block<'_>| block.ops().any(|op| LoadOp::cast(op).is_some());
        blocks.extend(op.regions().flat_map(|region| region.blocks()).filter(loads));
        Walk::Advance
    });
    let waits = |op: Op<'_>| scratch_bytes(op, target).is_ok_and(|bytes| bytes > 0);
    blocks.into_iter().for_each(|block| Stretch::default().through(block, &waits));
}

/// Operations of a block behind the first one at which threads wait, up to one that writes memory or may.
#[derive(Default)]
struct Stretch<'c> {
    first: Option<Op<'c>>,
    /// Those that need what is made behind it, or stay for another reason.
    stay: FastSet<Op<'c>>,
    /// Those without effects that do not.
    free: FastSet<Op<'c>>,
    /// Loads that do not, and their registers.
    loads: Vec<Op<'c>>,
    words: u64,
    /// Whether one of these has too many.
    is_large: bool,
}

impl<'c> Stretch<'c> {
    fn through(mut self, block: Block<'c>, waits: &dyn Fn(Op<'c>) -> bool) {
        for op in block.ops().collect::<Vec<_>>() {
            let combines = ReduceOp::cast(op).is_some() || ScanOp::cast(op).is_some();
            let load = LoadOp::cast(op).filter(|load| !load.is_volatile());
            if load.is_none() && !combines && (op.num_regions() > 0 || !op.is_memory_effect_free()) {
                self.end();
                self = Self::default();
                continue;
            }
            let waits = load.is_none() && waits(op);
            if self.first.is_none() {
                self.first = waits.then_some(op);
                self.stay.extend(self.first);
                continue;
            }
            let waits = waits || combines || op.operands().any(|operand| self.needs(operand));
            match load {
                Some(load) if !waits => {
                    self.is_large |= !self.has_room(load.result());
                    self.loads.push(op);
                }
                None if !waits && op.is_pure() => _ = self.free.insert(op),
                _ => _ = self.stay.insert(op),
            }
        }
        self.end();
    }

    /// Moves the loads.
    fn end(&mut self) {
        if let Some(first) = self.first.filter(|_| !self.is_large) {
            for load in std::mem::take(&mut self.loads) {
                self.move_up(load, first);
            }
        }
    }

    fn needs(&self, value: Value<'c>) -> bool {
        value.def_op().is_some_and(|op| self.stay.contains(&op))
    }

    /// Whether a load of `value` is small enough; it is counted then.
    fn has_room(&mut self, value: Value<'c>) -> bool {
        let is_tensor = value.ty().as_tensor().is_some();
        let (words, elements) =
            if is_tensor { (tensor_words(value), distinct_elements(value)) } else { (2, Some(1)) };
        let Some(elements) = elements else { return false };
        let fits = words <= FEW && elements <= FEW && self.words + words <= MOST;
        self.words += if fits { words } else { 0 };
        fits
    }

    /// Moves `op` before `first`, and before it what it needs.
    fn move_up(&mut self, op: Op<'c>, first: Op<'c>) {
        for made in op.operands().filter_map(Value::def_op) {
            if self.free.remove(&made) {
                self.move_up(made, first);
            }
        }
        op.move_before(first);
    }
}
