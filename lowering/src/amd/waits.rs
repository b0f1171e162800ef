//! `s_waitcnt` of CDNA (CDNA3 ISA, `S_WAITCNT`): four bits and two more of `VMCNT`, three of `EXPCNT`, four of `LGKMCNT`; and, where
//! asynchronous copies have a counter of their own, gfx12's waits for one counter each (RDNA4 ISA, `S_WAIT_DSCNT`; LLVM 22,
//! `s_wait_asynccnt`).

use crate::emit::{Emit, Lowered};
use linear_layout::target::TargetDesc;
use mlir_host::ir::Attr;

const VMCNT: i64 = 0x3f;
const EXPCNT: i64 = 0x7;
const LGKMCNT: i64 = 0xf;

fn waitcnt(e: &mut Emit<'_>, vmcnt: i64, lgkmcnt: i64) -> Lowered<()> {
    let counters = vmcnt & 0xf | EXPCNT << 4 | lgkmcnt << 8 | vmcnt >> 4 << 14;
    let counters = e.const_i32(counters)?;
    e.intrinsic_void("llvm.amdgcn.s.waitcnt", &[counters])
}

fn wait(e: &mut Emit<'_>, name: &str, left: u32) -> Lowered<()> {
    let count = Attr::int(e.context(), 16, left.into());
    e.op(name, &[], &[], &[("count", count)])?;
    Ok(())
}

/// Waits until at most `left` accesses to global memory are under way: of asynchronous copies, where these are counted apart.
pub(super) fn loads(e: &mut Emit<'_>, left: u32, target: &TargetDesc) -> Lowered<()> {
    if target.primitives.async_to_lds {
        return wait(e, "rocdl.s.wait.asynccnt", left);
    }
    waitcnt(e, i64::from(left).min(VMCNT), LGKMCNT)
}

/// Waits until at most `left` tensor operations are under way.
pub(super) fn tensors(e: &mut Emit<'_>, left: u32) -> Lowered<()> {
    wait(e, "rocdl.s.wait.tensorcnt", left.min(VMCNT as u32))
}

/// Waits for accesses to the LDS.
pub(super) fn shared(e: &mut Emit<'_>, target: &TargetDesc) -> Lowered<()> {
    if target.primitives.async_to_lds {
        return wait(e, "rocdl.s.wait.dscnt", 0);
    }
    waitcnt(e, VMCNT, 0)
}
