//! The arguments of a kernel that pointers and tensor maps are computed from.

use crate::ir_util::{incoming, is_private};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Op, Value};
use mlir_host::is_one_of;
use mlir_host::upstream::SelectOp;
use smallvec::SmallVec;
use ttopt_dialect::amdg::ops::UpdateTensorDescriptorOp;
use ttopt_dialect::tt::ops::{
    AddPtrOp, BitcastOp, BroadcastOp, ExpandDimsOp, FuncOp, MakeTensorDescOp, ReshapeOp, SplatOp, TransOp,
};
use ttopt_dialect::ttg::ops::ConvertLayoutOp;
use ttopt_dialect::ttng::ops::{ReinterpretTensorDescOp, TensormapCreateOp};

/// Arguments of a kernel.
pub type Arguments<'c> = SmallVec<[Value<'c>; 1]>;

/// The pointer to which `op` adds offsets, or of which it makes a tensor, a tensor of another shape or a descriptor; or the descriptor of which it
/// makes one.
fn base_of(op: Op<'_>) -> Option<Value<'_>> {
    is_one_of!(
        op,
        AddPtrOp
            | BitcastOp
            | SplatOp
            | BroadcastOp
            | ExpandDimsOp
            | ReshapeOp
            | TransOp
            | ConvertLayoutOp
            | MakeTensorDescOp
            | UpdateTensorDescriptorOp
    )
    .then(|| op.operand(0))
}

/// Roots of many pointers, which may be computed from one another: no chain of them is followed twice.
#[derive(Default)]
pub struct PointerRoots<'c>(FastMap<Value<'c>, Option<Arguments<'c>>>);

impl<'c> PointerRoots<'c> {
    /// The same as [`pointer_roots`].
    pub fn of(&mut self, pointer: Value<'c>) -> Option<Arguments<'c>> {
        let (mut end, mut chain) = (pointer, Vec::new());
        let roots = loop {
            if let Some(known) = self.0.get(&end) {
                break known.clone();
            }
            chain.push(end);
            match end.def_op().and_then(base_of) {
                Some(base) => end = base,
                None => break pointer_roots(end),
            }
        };
        self.0.extend(chain.into_iter().map(|value| (value, roots.clone())));
        roots
    }
}

/// The arguments of a kernel from which `pointer`, a pointer or a tensor of pointers, is computed by adding offsets;
/// `None` where it comes from elsewhere: from memory, an integer, or a function that others call.
///
/// Pointers of different arguments are taken to be to different data, or to data of which no iteration of a loop reads what
/// an earlier one wrote: so is a loop in Triton.
pub fn pointer_roots(pointer: Value<'_>) -> Option<Arguments<'_>> {
    let (mut roots, mut seen) = (SmallVec::new(), FastSet::default());
    let mut open: SmallVec<[Value<'_>; 4]> = [pointer].into_iter().collect();
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        if let Some(from) = incoming(value) {
            open.extend(from.iter().map(|(op, i)| op.operand(*i)));
        } else if let Some(op) = value.def_op() {
            if let Some(base) = base_of(op) {
                open.push(base);
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

/// The arguments that a tensor map points to: itself, or what the tensor is made of that it is made for; `None` where that is not
/// known.
pub fn descriptor_roots(descriptor: Value<'_>) -> Option<Arguments<'_>> {
    let Some(made) = descriptor.def_op().and_then(ReinterpretTensorDescOp::cast) else {
        return pointer_roots(descriptor);
    };
    let map = made.op().operand(0);
    let mut addresses = map.uses().filter_map(|(user, _)| TensormapCreateOp::cast(user));
    let only = addresses.next()?;
    let is_only = addresses.next().is_none() && only.desc_ptr() == map;
    pointer_roots(only.global_address()).filter(|_| is_only)
}

/// Whether pointers computed from the arguments `a` and `b` may point to the same data; they may where either are not known.
pub fn may_meet<'c>(a: Option<&[Value<'c>]>, b: Option<&[Value<'c>]>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.iter().any(|root| b.contains(root)),
        _ => true,
    }
}
