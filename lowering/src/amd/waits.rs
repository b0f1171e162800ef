//! `s_waitcnt` of CDNA (CDNA3 ISA, `S_WAITCNT`): four bits and two more of `VMCNT`, three of `EXPCNT`, four of `LGKMCNT`.

use crate::emit::{Emit, Lowered};

const VMCNT: i64 = 0x3f;
const EXPCNT: i64 = 0x7;
const LGKMCNT: i64 = 0xf;

fn waitcnt(e: &mut Emit<'_>, vmcnt: i64, lgkmcnt: i64) -> Lowered<()> {
    let counters = vmcnt & 0xf | EXPCNT << 4 | lgkmcnt << 8 | vmcnt >> 4 << 14;
    let counters = e.const_i32(counters)?;
    e.intrinsic_void("llvm.amdgcn.s.waitcnt", &[counters])
}

/// Waits until at most `left` accesses to global memory are under way.
pub(super) fn loads(e: &mut Emit<'_>, left: u32) -> Lowered<()> {
    waitcnt(e, i64::from(left).min(VMCNT), LGKMCNT)
}

/// Waits for accesses to the LDS.
pub(super) fn shared(e: &mut Emit<'_>) -> Lowered<()> {
    waitcnt(e, VMCNT, 0)
}
