//! What the checks must keep track of in a kernel, so that others do not pay for it.

use std::collections::HashSet;

use crate::bytecode::*;
use crate::visit;

/// See the fields of [`Program`] with these names.
pub(super) struct Needs {
    pub acquires: bool,
    pub exact: bool,
    pub wgmma: bool,
}

/// Of a kernel; `full` says whether a mask is known to name all lanes.
pub(super) fn of(code: &[Op], full: impl Fn(Src) -> bool) -> Needs {
    let fences = code.iter().any(|op| matches!(op, Op::Fence { order, .. } if order.acquire));
    let mut used = HashSet::new();
    for op in code {
        visit::visit(&mut op.clone(), &mut |_| {}, &mut |s| {
            used.insert(s.0);
        });
    }
    // What nobody looks at tells nothing of what was read, so nothing can rely on it.
    let read = |d: &[Reg]| d.iter().any(|r| used.contains(&Src::reg(*r).0));
    let acquires = code.iter().any(|op| match op {
        Op::Ld { d, at } | Op::Atom { d, at, .. } => {
            (at.order.acquire || (at.order.strong && fences)) && read(d)
        }
        _ => false,
    });
    let parts = code.iter().any(|op| match op {
        Op::WarpSync { mask } => !full(*mask),
        Op::MbarTry { .. } => true,
        _ => false,
    });
    let wgmma = code.iter().any(|op| matches!(op, Op::Wgmma(_)));
    Needs { acquires, exact: parts || acquires, wgmma }
}
