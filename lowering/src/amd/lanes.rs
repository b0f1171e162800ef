//! Exchanges between the lanes of a wave: DPP, `permlane`, `ds_swizzle`, `ds_bpermute` (CDNA3 ISA, "Data Parallel
//! Primitives"; RDNA3 ISA, "DPP"; CDNA4 ISA, `V_PERMLANE16_SWAP_B32`).

use crate::emit::{Emit, ICmp, Lowered, unsupported};
use linear_layout::plan::ShuffleInstruction;
use mlir_host::ir::Value;

/// All lanes take part.
const ALL: i64 = 0xf;

/// Controls of DPP.
mod control {
    pub const ROW_ROTATE: i64 = 0x120;
    pub const ROW_MIRROR: i64 = 0x140;
    pub const ROW_HALF_MIRROR: i64 = 0x141;
    pub const ROW_XMASK: i64 = 0x160;

    /// Each lane of four reads the one whose number differs by `mask`.
    pub fn quad_perm(mask: u64) -> i64 {
        (0..4).map(|lane| ((lane ^ mask as i64) & 3) << (2 * lane)).sum()
    }
}

/// The number of this lane.
pub(super) fn number<'c>(e: &mut Emit<'c>, lanes: u32) -> Lowered<Value<'c>> {
    let (i32t, all, zero) = (e.i32(), e.const_i32(-1)?, e.const_i32(0)?);
    let low = e.intrinsic("llvm.amdgcn.mbcnt.lo", &[all, zero], i32t)?;
    if lanes == 32 { Ok(low) } else { e.intrinsic("llvm.amdgcn.mbcnt.hi", &[all, low], i32t) }
}

fn dpp<'c>(e: &mut Emit<'c>, value: Value<'c>, control: i64) -> Lowered<Value<'c>> {
    let i32t = e.i32();
    let old = e.undef(i32t)?;
    let (control, rows, banks) = (e.const_i32(control)?, e.const_i32(ALL)?, e.const_i32(ALL)?);
    let bound = e.const_int(1, 1)?;
    e.intrinsic("llvm.amdgcn.update.dpp", &[old, value, control, rows, banks, bound], i32t)
}

/// Reverses each eight or sixteen lanes: the number XORed with 7 or 15.
fn mirror<'c>(e: &mut Emit<'c>, value: Value<'c>, sixteen: bool) -> Lowered<Value<'c>> {
    dpp(e, value, if sixteen { control::ROW_MIRROR } else { control::ROW_HALF_MIRROR })
}

fn quad<'c>(e: &mut Emit<'c>, value: Value<'c>, mask: u64) -> Lowered<Value<'c>> {
    if mask == 0 { Ok(value) } else { dpp(e, value, control::quad_perm(mask)) }
}

/// `value`, an `i32`, of the lane whose number differs by `mask`.
pub(super) fn exchange<'c>(
    e: &mut Emit<'c>,
    value: Value<'c>,
    mask: u64,
    instruction: ShuffleInstruction,
    lanes: u32,
) -> Lowered<Value<'c>> {
    use ShuffleInstruction as I;
    let i32t = e.i32();
    match instruction {
        I::QuadPerm => quad(e, value, mask),
        I::RowMirror => mirror(e, value, mask == 15),
        I::RowMirrorQuad => {
            let mirrored = mirror(e, value, mask > 7)?;
            quad(e, mirrored, mask ^ if mask > 7 { 15 } else { 7 })
        }
        // Eight lanes further within sixteen is the number XORed with 8.
        I::RowRotate | I::RowRotateQuad => {
            let rotated = dpp(e, value, control::ROW_ROTATE + 8)?;
            quad(e, rotated, mask ^ 8)
        }
        I::RowXmask => dpp(e, value, control::ROW_XMASK + mask as i64),
        I::Permlanex16 => {
            let (old, no) = (e.undef(i32t)?, e.const_int(1, 0)?);
            // Each lane reads the one of the same number in the other row.
            let (low, high) = (e.const_i32(0x7654_3210)?, e.const_i32(0xfedc_ba98_u32.cast_signed().into())?);
            e.intrinsic("llvm.amdgcn.permlanex16", &[old, value, low, high, no, no], i32t)
        }
        I::PermlaneSwap => swap(e, value, mask, lanes),
        I::DsSwizzle => {
            // Bit mask mode: XOR, OR and AND masks of five bits.
            let pattern = e.const_i32((mask as i64) << 10 | 0x1f)?;
            e.intrinsic("llvm.amdgcn.ds.swizzle", &[value, pattern], i32t)
        }
        I::DsBpermute => {
            let (lane, mask) = (number(e, lanes)?, e.const_i32(mask as i64)?);
            let lane = e.xor(lane, mask)?;
            read_lane(e, value, lane)
        }
        I::ShflBfly | I::ShflIdx => unsupported(format!("no instruction {}", instruction.name())),
    }
}

/// `v_permlane16_swap` and `v_permlane32_swap` of a value with itself: the first result has the even groups of 16 or 32
/// lanes twice, the second the odd ones. A lane of an even group wants the second.
fn swap<'c>(e: &mut Emit<'c>, value: Value<'c>, mask: u64, lanes: u32) -> Lowered<Value<'c>> {
    let (i32t, no) = (e.i32(), e.const_int(1, 0)?);
    let pair = e.struct_of(&[i32t, i32t])?;
    let swapped = e.intrinsic(&format!("llvm.amdgcn.permlane{mask}.swap"), &[value, value, no, no], pair)?;
    let (even, odd) = (e.extract_value(swapped, 0, i32t)?, e.extract_value(swapped, 1, i32t)?);
    let (lane, zero) = (number(e, lanes)?, e.const_i32(0)?);
    let bit = e.mask(lane, mask as i64)?;
    let is_even = e.icmp(ICmp::Eq, bit, zero)?;
    e.select(is_even, odd, even)
}

/// `value`, an `i32`, of lane `lane`: `ds_bpermute`, which counts in bytes.
pub(super) fn read_lane<'c>(e: &mut Emit<'c>, value: Value<'c>, lane: Value<'c>) -> Lowered<Value<'c>> {
    let (i32t, byte) = (e.i32(), e.shl(lane, 2)?);
    e.intrinsic("llvm.amdgcn.ds.bpermute", &[byte, value], i32t)
}
