//! Operations of the dialect `rocdl` that Triton puts into TTGIR: hints for LLVM's scheduler and for the hardware's, which
//! change no values (LLVM, "User Guide for AMDGPU Backend", "LLVM IR Intrinsics"; CDNA3 ISA, `S_SETPRIO`).

use crate::emit::{Lowered, internal};
use crate::lower::{Handler, Lower};
use mlir_host::ir::{Attr, Op};

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("rocdl.s.setprio", |l, op| hint(l, op, "llvm.amdgcn.s.setprio", &[("priority", 16)])),
    ("rocdl.sched.barrier", |l, op| hint(l, op, "llvm.amdgcn.sched.barrier", &[("mask", 32)])),
    ("rocdl.sched.group.barrier", |l, op| {
        let operands = [("mask", 32), ("size", 32), ("groupId", 32)];
        hint(l, op, "llvm.amdgcn.sched.group.barrier", &operands)
    }),
];

/// Calls an intrinsic with these attributes, integers of so many bits.
fn hint<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, name: &str, attrs: &[(&str, u32)]) -> Lowered<()> {
    let mut operands = Vec::new();
    for (attr, bits) in attrs {
        let Some(number) = op.attr(attr).and_then(Attr::as_int) else {
            return internal(format!("has no number '{attr}'"));
        };
        operands.push(l.emit.const_int(*bits, number)?);
    }
    l.emit.intrinsic_void(name, &operands)
}
