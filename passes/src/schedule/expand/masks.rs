//! Masks of loads in iterations that may not exist.
//!
//! That an iteration exists is one bit, and a mask is often made of smaller ones: of rows and of columns. The bit goes
//! into the part of which a thread holds the fewest elements, so that the rest of the mask stays what it was before, in
//! many loops the same in all iterations.

use super::{Expansion, Made};
use crate::analysis::registers::distinct_elements;
use crate::machine::error;
use mlir_host::hash::FastSet;
use mlir_host::ir::{Op, Value};
use mlir_host::is_one_of;
use mlir_host::upstream::AndIOp;
use ttopt_dialect::tt::ops::BroadcastOp;

/// Operations between a mask and the part of it that is looked for.
const DEPTH: usize = 6;

/// The operand through which `part` of a mask leads to fewer elements, and how many these are.
fn narrower<'c>(part: Value<'c>, depth: usize) -> Option<(Op<'c>, usize)> {
    let op = part.def_op().filter(|op| depth > 0 && is_one_of!(op, AndIOp | BroadcastOp))?;
    let (fewest, i) = (0..op.num_operands()).map(|i| (elements(op.operand(i), depth - 1), i)).min()?;
    (fewest < distinct_elements(part)?).then_some((op, i))
}

/// How many elements the part has that the bit would go into.
fn elements(part: Value<'_>, depth: usize) -> u64 {
    match narrower(part, depth) {
        Some((op, i)) => elements(op.operand(i), depth - 1),
        None => distinct_elements(part).unwrap_or(u64::MAX),
    }
}

impl<'c> Expansion<'_, 'c> {
    /// What of a mask holds in an iteration that exists.
    pub(super) fn mask(
        &mut self,
        pointer: Value<'c>,
        mask: Option<Value<'c>>,
        exists: Option<Value<'c>>,
    ) -> Made<Option<Value<'c>>> {
        match (exists, mask) {
            (None, _) => Ok(mask),
            (Some(exists), Some(mask)) => self.also(mask, exists, DEPTH).map(Some),
            (Some(exists), None) => self.everywhere(exists, pointer).map(Some),
        }
    }

    /// `part` of a mask where there also is the iteration.
    fn also(&mut self, part: Value<'c>, exists: Value<'c>, depth: usize) -> Made<Value<'c>> {
        let Some((op, i)) = narrower(part, depth) else {
            let all = self.everywhere(exists, part)?;
            return self.emit("arith.andi", &[all, part], all.ty());
        };
        self.replaced.push(op);
        let narrow = self.also(op.operand(i), exists, depth - 1)?;
        let made = self.rewriter.clone_op(op);
        made.set_operand(i, narrow);
        Ok(made.result(0))
    }

    /// Erases parts of masks that nothing uses any more.
    pub(super) fn forget_masks(&mut self) {
        let all = std::mem::take(&mut self.replaced);
        let mut open: FastSet<Op<'c>> = all.iter().copied().collect();
        // An operation may be in several masks: it goes with the last of them.
        for op in all {
            let is_unused = || op.results().all(|result| result.uses().next().is_none());
            if open.contains(&op) && is_unused() {
                open.remove(&op);
                op.erase();
            }
        }
    }

    /// `exists` for each element of a tensor like `of`.
    fn everywhere(&mut self, exists: Value<'c>, of: Value<'c>) -> Made<Value<'c>> {
        let Some(tensor) = of.ty().as_tensor() else { return Ok(exists) };
        let ty = tensor.with_element(exists.ty()).ok_or_else(|| error(self.op, "no type for a mask"))?;
        self.emit("tt.splat", &[exists], ty.ty())
    }
}
