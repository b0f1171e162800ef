//! Execution of tensor operations of AMD's tensor data mover, element by element.

use super::{CheckError, count};
use crate::plan::TdmPlan;
use crate::target::Direction;
use crate::{Dim, LinearLayout};

/// Moves a block as `plan` says with `warps` warps, between global memory and shared memory in the layout `memory` with padding as the caller has it: a
/// load writes a tile's elements one after the other, and leaves words out as its descriptor says; a store reads them so, and those outside
/// of the tensor are not written. Every element must lie where it belongs, and be moved once.
///
/// # Errors
/// The first thing found wrong.
pub fn check_tdm(
    plan: &TdmPlan,
    memory: &LinearLayout,
    padding: &[(u64, u64)],
    warps: u64,
) -> Result<(), CheckError> {
    let malformed = |reason: String| Err(CheckError::Malformed(reason));
    let bytes = 1u64 << plan.data_size();
    count::same("bits of an element", 8 * bytes, plan.elem_bits.into())?;
    let loads = plan.direction == Direction::Store;
    let (every, gap) = match plan.padding {
        Some(_) if !loads => return malformed("a store leaves nothing out".to_owned()),
        Some(p) => (4 * p.interval_words, 4 * p.words),
        None => (u64::MAX, 0),
    };
    if plan.padding.is_some()
        && !(every.is_power_of_two() && (8..=1024).contains(&every) && (4..=512).contains(&gap))
    {
        return malformed(format!("{gap} bytes cannot be left out after every {every}"));
    }
    if plan.block_mask != 0
        || plan.warp_starts.len() != plan.warp_bytes.len()
        || loads && plan.row_padding > 0
    {
        return malformed(format!("no such operation: {plan}"));
    }
    let sizes: Vec<u64> = memory.out_dims().map(|dim| memory.out_size(dim).unwrap_or(1)).collect();
    let dims = plan.tile_dims();
    if dims.len() != sizes.len() || dims.len() > 5 || dims.iter().any(|size| *size == 0 || *size >= 1 << 16) {
        return malformed(format!("a tile of {dims:?} in a block of {sizes:?}"));
    }
    let elements = memory.in_size(Dim::OFFSET).unwrap_or(1);
    let mut moved = vec![None; elements as usize];
    // Where each byte of the buffer belongs.
    let place = |o: u64| o + padding.iter().map(|(interval, pad)| o / interval * pad).sum::<u64>();
    let at_byte: std::collections::HashMap<u64, u64> =
        (0..elements).map(|offset| (place(offset) * bytes, offset)).collect();
    for warp in (0..warps).filter(|warp| warp & plan.idle_warps == 0) {
        let mut base = 0;
        let mut start = vec![0; sizes.len()];
        for (bit, (more, begins)) in plan.warp_bytes.iter().zip(&plan.warp_starts).enumerate() {
            if warp >> bit & 1 == 1 {
                base += more;
                start.iter_mut().zip(begins).for_each(|(at, begin)| *at += begin);
            }
        }
        for number in 0..dims.iter().product::<u64>() {
            let mut rest = number;
            let mut at = start.clone();
            // Of a descriptor the first dimension is the contiguous one.
            for (i, size) in dims.iter().enumerate() {
                at[sizes.len() - 1 - i] += rest % size;
                rest /= size;
            }
            let linear = number * bytes;
            let address = base + linear + linear / every * gap;
            let row = at.last().copied().unwrap_or(0) - start.last().copied().unwrap_or(0);
            if row >= plan.tile.last().copied().unwrap_or(0) {
                continue;
            }
            let Some(offset) = at_byte.get(&address).copied() else {
                return malformed(format!("warp {warp} moves {at:?} at byte {address}, where no element is"));
            };
            if let Some(first) = moved[offset as usize].replace(warp) {
                return Err(CheckError::WrittenTwice { block: 0, offset, first, second: warp });
            }
            let found = memory.coords(memory.apply_packed(offset));
            if found[..] != at[..] {
                return malformed(format!(
                    "element {at:?} lies at offset {offset}, where the layout has {found:?}"
                ));
            }
        }
    }
    match moved.iter().position(Option::is_none) {
        Some(offset) => malformed(format!("nothing is moved at offset {offset}")),
        None => Ok(()),
    }
}
