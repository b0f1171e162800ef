//! How far what a loop loads moves from one iteration to the next.

use crate::ir_util::constant;
use crate::rules::{Rule, rule};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Block, Op, Value, Walk};
use mlir_host::upstream::{AddIOp, DivSIOp, DivUIOp, ExtSIOp, MulIOp, RemSIOp, RemUIOp, SubIOp};
use ttopt_dialect::tt::ops::{AddPtrOp, LoadOp, SplatOp};
use ttopt_dialect::tt::types::pointee;

/// Values that are looked at for one loop, and operations between one of them and what it is computed from.
const MOST_VALUES: usize = 512;
const MOST_DEPTH: usize = 64;

/// The most that addresses of tensors of loads in `around`, an `scf.for`, move in most iterations, in bytes; `None` where that is not known of
/// one of them, or there is none.
pub fn most_of_loads(around: Op<'_>) -> Option<u64> {
    let mut advance = Advance { around, block: around.region(0).first_block()?, known: FastMap::default() };
    let (mut most, mut all) = (None, true);
    around.walk(&mut |op| {
        if let Some(load) = LoadOp::cast(op).filter(|load| load.ptr().ty().as_tensor().is_some()) {
            match advance.of(load.ptr(), 0) {
                Some(bytes) => most = most.max(Some(bytes.unsigned_abs())),
                None => all = false,
            }
        }
        if all { Walk::Advance } else { Walk::Stop }
    });
    most.filter(|_| all)
}

struct Advance<'c> {
    around: Op<'c>,
    block: Block<'c>,
    known: FastMap<Value<'c>, Option<i64>>,
}

impl<'c> Advance<'c> {
    /// By how much all elements of `value` grow in most iterations: units of integers, bytes of pointers.
    fn of(&mut self, value: Value<'c>, depth: usize) -> Option<i64> {
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        if self.known.len() >= MOST_VALUES || depth >= MOST_DEPTH {
            return None;
        }
        // What depends on itself, as a carried value does, is not known until it is.
        self.known.insert(value, None);
        let found = self.computed(value, depth + 1);
        self.known.insert(value, found);
        found
    }

    fn computed(&mut self, value: Value<'c>, depth: usize) -> Option<i64> {
        if value.arg_block() == Some(self.block) {
            return if value.index() == 0 { constant(self.around.operand(2)) } else { self.carried(value) };
        }
        let Some(op) = value.def_op().filter(|op| op.ancestor(|outer| outer == self.around).is_some()) else {
            // Made before the loop; what is given to a block inside of it is not looked into.
            let outside = value.arg_block().is_none_or(|block| {
                block.parent().is_none_or(|op| op.ancestor(|outer| outer == self.around).is_none())
            });
            return outside.then_some(0);
        };
        let mut of = |i: usize| self.of(op.operand(i), depth);
        if let Some(add) = AddPtrOp::cast(op) {
            let bytes = i64::from(pointee(add.ptr().ty().element())?.bits()?.div_ceil(8));
            return of(0)?.checked_add(of(1)?.checked_mul(bytes)?);
        }
        if AddIOp::cast(op).is_some() {
            return of(0)?.checked_add(of(1)?);
        }
        if SubIOp::cast(op).is_some() {
            return of(0)?.checked_sub(of(1)?);
        }
        if MulIOp::cast(op).is_some() {
            let (a, b) = (of(0)?, of(1)?);
            return match (a, b) {
                (0, 0) => Some(0),
                (a, 0) => a.checked_mul(constant(op.operand(1))?),
                (0, b) => b.checked_mul(constant(op.operand(0))?),
                _ => None,
            };
        }
        // The number of a tap is split into a row and a column of its window.
        let divides = DivSIOp::cast(op).is_some() || DivUIOp::cast(op).is_some();
        if divides || RemSIOp::cast(op).is_some() || RemUIOp::cast(op).is_some() {
            let step = of(0)?;
            if step != 0 {
                let stays =
                    constant(op.operand(1)).is_some_and(|by| step.unsigned_abs() <= by.unsigned_abs() / 2);
                return stays.then_some(if divides { 0 } else { step });
            }
        }
        let moves_data = SplatOp::cast(op).is_some() || ExtSIOp::cast(op).is_some();
        if moves_data || matches!(rule(op), Some(Rule::Broadcast | Rule::ExpandDims(_))) {
            return of(0);
        }
        // A function of what stays stays.
        let is_pure = matches!(rule(op), Some(Rule::Same | Rule::Source)) && op.num_regions() == 0;
        (is_pure && (0..op.num_operands()).all(|i| of(i) == Some(0))).then_some(0)
    }

    /// Of what the loop hands from an iteration to the next, if it adds a constant to it.
    fn carried(&mut self, value: Value<'c>) -> Option<i64> {
        let next = self.block.terminator()?.operand(value.index().checked_sub(1)?);
        if next == value {
            return Some(0);
        }
        let op = next.def_op().filter(|op| op.num_operands() == 2 && op.operand(0) == value)?;
        let step = constant(op.operand(1))?;
        if AddIOp::cast(op).is_some() {
            return Some(step);
        }
        let bytes = i64::from(pointee(AddPtrOp::cast(op)?.ptr().ty().element())?.bits()?.div_ceil(8));
        step.checked_mul(bytes)
    }
}
