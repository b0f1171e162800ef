//! The arguments of a kernel that pointers are computed from.

use crate::ir_util::{incoming, is_private};
use mlir_host::hash::FastSet;
use mlir_host::ir::Value;
use mlir_host::upstream::SelectOp;
use smallvec::SmallVec;
use ttopt_dialect::tt::ops::{
    AddPtrOp, BitcastOp, BroadcastOp, ExpandDimsOp, FuncOp, ReshapeOp, SplatOp, TransOp,
};
use ttopt_dialect::ttg::ops::ConvertLayoutOp;

/// The arguments of a kernel from which `pointer`, a pointer or a tensor of pointers, is computed by adding offsets;
/// `None` where it comes from elsewhere: from memory, an integer, or a function that others call.
///
/// Pointers of different arguments are taken to be to different data, or to data of which no iteration of a loop reads what
/// an earlier one wrote: so is a loop in Triton.
pub fn pointer_roots(pointer: Value<'_>) -> Option<SmallVec<[Value<'_>; 1]>> {
    let (mut roots, mut seen) = (SmallVec::new(), FastSet::default());
    let mut open: SmallVec<[Value<'_>; 4]> = [pointer].into_iter().collect();
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        if let Some(from) = incoming(value) {
            open.extend(from.iter().map(|(op, i)| op.operand(*i)));
        } else if let Some(op) = value.def_op() {
            let steps = AddPtrOp::cast(op).is_some()
                || BitcastOp::cast(op).is_some()
                || SplatOp::cast(op).is_some()
                || BroadcastOp::cast(op).is_some()
                || ExpandDimsOp::cast(op).is_some()
                || ReshapeOp::cast(op).is_some()
                || TransOp::cast(op).is_some()
                || ConvertLayoutOp::cast(op).is_some();
            if steps {
                open.push(op.operand(0));
            } else if SelectOp::cast(op).is_some() {
                open.extend([op.operand(1), op.operand(2)]);
            } else {
                return None;
            }
        } else {
            let function = value.arg_block()?.parent()?;
            let entry = function.region(0).first_block();
            if FuncOp::cast(function).is_none() || is_private(function) || entry != value.arg_block() {
                return None;
            }
            if !roots.contains(&value) {
                roots.push(value);
            }
        }
    }
    Some(roots)
}

/// Whether pointers computed from the arguments `a` and `b` may point to the same data; they may where either are not known.
pub fn may_meet<'c>(a: Option<&[Value<'c>]>, b: Option<&[Value<'c>]>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.iter().any(|root| b.contains(root)),
        _ => true,
    }
}
