//! Which loads are those of stencils: windows that a loop moves over rows, whose neighbours are not aligned.

use super::{Access, MANY_PLACES, is_apart, places};
use crate::ir_util::{is_dot, is_loop, loops_around};
use crate::machine::Machine;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Op, Value};
use mlir_host::is_one_of;
use mlir_host::upstream::{AddIOp, ExtSIOp};
use smallvec::SmallVec;
use ttopt_dialect::tt::ops::{AddPtrOp, BroadcastOp, LoadOp};

/// Notes which accesses are those of stencils: of elements that are apart, at many places, in loops without dots, where each iteration
/// has other rows, which no load gives.
pub(super) fn find<'c>(accesses: &mut [Access<'c>], ops: &[Op<'c>], machine: &Machine) {
    let may_be = |access: &Access<'c>| is_apart(access) && places(access, 1, machine) > MANY_PLACES;
    if !accesses.iter().any(may_be) {
        return;
    }
    let mut with_dots: FastSet<Op<'c>> = FastSet::default();
    for dot in ops.iter().filter(|op| is_dot(**op)) {
        // The loops around one that is known are known.
        loops_around(*dot).take_while(|around| with_dots.insert(*around)).for_each(drop);
    }
    let moves = Moves::of(ops);
    for access in accesses.iter_mut().filter(|access| may_be(access)) {
        let Some(around) = loops_around(access.op).next() else { continue };
        let pointers = access.op.operand(0);
        access.is_stencil = !with_dots.contains(&around)
            && !moves.loaded.contains(&pointers)
            && rows(access).any(|row| moves.with.get(&row) == Some(&around));
    }
}

/// Of what values are computed.
#[derive(Default)]
struct Moves<'c> {
    /// The innermost loop whose iterations they may have other values in.
    with: FastMap<Value<'c>, Op<'c>>,
    /// Tensors that are loaded, and what is computed of them in the same iteration.
    loaded: FastSet<Value<'c>>,
}

impl<'c> Moves<'c> {
    fn of(ops: &[Op<'c>]) -> Self {
        let mut moves = Self::default();
        for op in ops {
            let is_loaded =
                LoadOp::cast(*op).is_some() || op.operands().any(|operand| moves.loaded.contains(&operand));
            let with = op.operands().filter_map(|operand| moves.loop_of(operand)).reduce(inner);
            for result in op.results() {
                if is_loaded && result.ty().as_tensor().is_some() {
                    moves.loaded.insert(result);
                }
                if let Some(with) = with {
                    moves.with.insert(result, with);
                }
            }
        }
        moves
    }

    fn loop_of(&self, value: Value<'c>) -> Option<Op<'c>> {
        let own = value.arg_block().and_then(|block| block.parent()).filter(|op| is_loop(*op));
        own.or_else(|| self.with.get(&value).copied())
    }
}

/// The inner one of two loops around an operation.
fn inner<'c>(a: Op<'c>, b: Op<'c>) -> Op<'c> {
    if loops_around(a).any(|around| around == b) { a } else { b }
}

/// What the pointers of an access are computed of that neighbours have alike: positions of rows.
fn rows<'c>(access: &Access<'c>) -> impl Iterator<Item = Value<'c>> + use<'c> {
    let along = access.facts.order.first().copied().unwrap_or(0);
    let mut open: SmallVec<[Value<'c>; 8]> = [access.op.operand(0)].into_iter().collect();
    let mut seen = FastSet::default();
    std::iter::from_fn(move || {
        while let Some(value) = open.pop() {
            let Some(shape) = value.ty().as_tensor().map(|ty| ty.shape()) else { continue };
            if !seen.insert(value) {
                continue;
            }
            if shape.get(along) == Some(&1) {
                return Some(value);
            }
            let sum = value.def_op().filter(|op| is_one_of!(*op, AddPtrOp | AddIOp | ExtSIOp | BroadcastOp));
            open.extend(sum.into_iter().flat_map(|op| op.operands()));
        }
        None
    })
}
