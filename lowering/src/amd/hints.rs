//! Operations that Triton puts into TTGIR for schedules of its own: hints for LLVM's scheduler and for the hardware's, which
//! change no values (LLVM, "User Guide for AMDGPU Backend", "LLVM IR Intrinsics"; CDNA3 ISA, `S_SETPRIO`), and barriers
//! by which halves of the warps run one behind the other.

use crate::emit::{ICmp, Lowered, internal};
use crate::lower::{Handler, Lower};
use mlir_host::ir::{Attr, Op};

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("rocdl.s.setprio", |l, op| hint(l, op, "llvm.amdgcn.s.setprio", &[("priority", 16)])),
    ("rocdl.sched.barrier", |l, op| hint(l, op, "llvm.amdgcn.sched.barrier", &[("mask", 32)])),
    ("rocdl.sched.group.barrier", |l, op| {
        let operands = [("mask", 32), ("size", 32), ("groupId", 32)];
        hint(l, op, "llvm.amdgcn.sched.group.barrier", &operands)
    }),
    // It orders no accesses to memory: barriers that do are put elsewhere.
    ("rocdl.s.barrier", |l, _| l.emit.intrinsic_void("llvm.amdgcn.s.barrier", &[])),
    ("amdg.cond_barrier", cond_barrier),
    ("rocdl.workitem.id.x", |l, op| {
        let threads = l.cta_threads();
        let id = l.target.thread_id(&mut l.emit, threads)?;
        l.set(op.result(0), vec![id]);
        Ok(())
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

/// A barrier of those warps whose condition is true. All of their lanes have it alike.
fn cond_barrier<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let condition = l.scalar(op.operand(0))?;
    let (i32t, zero) = (l.emit.i32(), l.emit.const_i32(0)?);
    let number = l.emit.value("llvm.zext", &[condition], i32t, &[])?;
    let number = l.target.uniform(&mut l.emit, number)?;
    let waits = l.emit.icmp(ICmp::Ne, number, zero)?;
    l.emit.guarded(Some(waits), &[], |e| {
        e.intrinsic_void("llvm.amdgcn.s.barrier", &[])?;
        Ok(Vec::new())
    })?;
    Ok(())
}
