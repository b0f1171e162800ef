//! Execution of bulk tensor copies: where every element of a block ends up by the rules of the PTX ISA.

use super::CheckError;
use crate::plan::TmaPlan;
use crate::{Dim, LinearLayout};

/// Copies a block as `plan` says to a buffer whose address is as aligned as the plan asks: every element must
/// lie where the layout `memory` has it, and every one must be copied once.
///
/// # Errors
/// The first element that lies elsewhere, outside the buffer, or on top of another one.
pub fn check_tma(plan: &TmaPlan, memory: &LinearLayout) -> Result<(), CheckError> {
    let elem = u64::from(plan.elem_bits / 8);
    let size = memory.in_size(Dim::OFFSET).unwrap_or(1);
    let base = plan.alignment;
    let mut held: Vec<Option<u64>> = vec![None; size as usize];
    // Units of 16 bytes within a line of the swizzle are XORed with the number of the 128-byte line.
    let units = match plan.swizzle_mode() {
        0 => 1,
        mode => 1u64 << mode,
    };
    for (number, part) in plan.boxes.iter().enumerate() {
        for i in 0..plan.box_shape.iter().product::<u64>() {
            let mut rest = i;
            let mut at = vec![0; plan.box_shape.len()];
            for (dim, box_size) in plan.box_shape.iter().enumerate().rev() {
                at[dim] = part.start[dim] + rest % box_size;
                rest /= box_size;
            }
            let linear = base + part.offset_bytes + i * elem;
            let line = linear / 128;
            let unit = (linear / 16 % 8) ^ (line % units);
            let address = line * 128 + unit * 16 + linear % 16;
            let offset = (address - base) / elem;
            let Some(slot) = held.get_mut(offset as usize) else {
                return Err(CheckError::OutOfBounds { offset, size });
            };
            if let Some(first) = *slot {
                return Err(CheckError::WrittenTwice { block: 0, offset, first, second: number as u64 });
            }
            *slot = Some(number as u64);
            let word = crate::f2::mul(memory.columns_of(Dim::OFFSET), offset);
            let found = memory.coords(word);
            if found.as_slice() != at.as_slice() {
                let reason =
                    format!("element {at:?} lies at offset {offset}, where the layout has {found:?}");
                return Err(CheckError::Malformed(reason));
            }
        }
    }
    match held.iter().position(Option::is_none) {
        Some(offset) => Err(CheckError::Malformed(format!("nothing is copied to offset {offset}"))),
        None => Ok(()),
    }
}
