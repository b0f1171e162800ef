//! Scalars that one thread needs.
//!
//! Every thread loads a scalar for itself, and one of them stores it. Where nothing but such stores comes of what is
//! loaded, as of counts that a loop adds up in place, no other thread needs it: what the one that stores loads is in order with
//! its stores without barriers, and what others load does not matter.

use super::once::ONCE;
use crate::analysis::pointer_roots::{Arguments, PointerRoots, may_meet};
use mlir_host::flow::{becomes, is_region_branch};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Op, Value};
use mlir_host::is_one_of;
use mlir_host::upstream::{DivSIOp, DivUIOp, RemSIOp, RemUIOp, is_structured};
use ttopt_dialect::tt::ops::{LoadOp, StoreOp};

/// The mark of a load whose result only the thread needs which stores scalars.
pub const ALONE: &str = "ttg.alone";

/// Whether `op` accesses a scalar by the one thread that stores scalars, as far as anybody needs what it does.
pub fn is_by_one_thread(op: Op<'_>) -> bool {
    let scalar = || op.operand(0).ty().as_tensor().is_none();
    (StoreOp::cast(op).is_some() || op.attr(ONCE).is_some()) && scalar() || op.attr(ALONE).is_some()
}

/// Marks the loads among `ops`, all of a function, that only the storing thread needs, where scalars are stored to the same
/// data: others are loaded as well by all.
pub fn mark<'c>(ops: &[Op<'c>], roots: &mut PointerRoots<'c>) {
    // Partitions have a first thread each.
    if ops.iter().any(|op| is_region_branch(*op) && !is_structured(*op)) {
        return;
    }
    let scalar = |op: &Op<'c>| op.operand(0).ty().as_tensor().is_none();
    let stores = ops.iter().filter(|op| StoreOp::cast(**op).is_some() && scalar(op));
    let stored: FastSet<Option<Arguments<'c>>> = stores.map(|op| roots.of(op.operand(0))).collect();
    if stored.is_empty() {
        return;
    }
    // The last first: of earlier ones later ones may come.
    let mut known = FastMap::default();
    for op in ops.iter().rev() {
        let Some(load) =
            LoadOp::cast(*op).filter(|load| scalar(op) && !load.is_volatile() && op.attr(ONCE).is_none())
        else {
            continue;
        };
        let loaded = roots.of(load.ptr());
        let meets = stored.iter().any(|stored| may_meet(stored.as_deref(), loaded.as_deref()));
        if meets && is_only_stored(op.result(0), &mut known) {
            op.set_attr(ALONE, Attr::unit(op.context()));
        }
    }
}

/// Whether all that comes of a scalar are scalars that are stored, by way of arithmetic and of values that loops carry; `known`
/// are values of which that was found out before.
fn is_only_stored<'c>(value: Value<'c>, known: &mut FastMap<Value<'c>, bool>) -> bool {
    let (mut seen, mut stored) = (FastSet::default(), false);
    let only = walk(value, known, &mut seen, &mut stored) && stored;
    if only {
        known.extend(seen.into_iter().map(|value| (value, true)));
    } else {
        known.insert(value, false);
    }
    only
}

/// Visits what comes of a scalar, as far as that is not `known`; says whether no thread needs it but for stores.
fn walk<'c>(
    value: Value<'c>,
    known: &FastMap<Value<'c>, bool>,
    seen: &mut FastSet<Value<'c>>,
    stored: &mut bool,
) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match known.get(&value) {
            Some(true) => {
                *stored = true;
                continue;
            }
            Some(false) => return false,
            None => {}
        }
        if !seen.insert(value) {
            continue;
        }
        if value.ty().as_tensor().is_some() {
            return false;
        }
        for (user, operand) in value.uses() {
            if StoreOp::cast(user).is_some() {
                *stored = true;
                continue;
            }
            let carried = becomes(user, operand);
            if !carried.is_empty() {
                open.extend(carried);
                continue;
            }
            // Bounds and conditions are control flow's: all threads need them. What the others have may be no divisor.
            let divides = is_one_of!(user, DivSIOp | DivUIOp | RemSIOp | RemUIOp);
            if divides || !user.is_pure() || user.num_regions() > 0 || user.num_results() == 0 {
                return false;
            }
            open.extend(user.results());
        }
    }
    true
}
