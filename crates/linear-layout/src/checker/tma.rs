//! Execution of bulk tensor copies: where every element of a block ends up by the rules of the PTX ISA.

use super::{CheckError, count};
use crate::plan::{TmaMap, TmaPlan, TmaRowsPlan};
use crate::{Dim, LinearLayout};

/// A buffer in the memory of a block of a cluster that is being filled.
struct Filled<'a> {
    map: &'a TmaMap,
    memory: &'a LinearLayout,
    block: u64,
    base: u64,
    held: Vec<Option<u64>>,
}

impl<'a> Filled<'a> {
    fn new(map: &'a TmaMap, memory: &'a LinearLayout, block: u64, base: u64) -> Self {
        let size = memory.in_size(Dim::OFFSET).unwrap_or(1);
        Self { map, memory, block, base, held: vec![None; size as usize] }
    }

    /// Instruction `number` writes the element at `at` to the byte `linear`, before swizzling.
    fn put(&mut self, number: u64, linear: u64, at: &[u64]) -> Result<(), CheckError> {
        // Units of 16 bytes within a line of the swizzle are XORed with the number of the 128-byte line.
        let units = match self.map.swizzle_mode() {
            0 => 1,
            mode => 1u64 << mode,
        };
        let linear = linear + self.base;
        let line = linear / 128;
        let unit = (linear / 16 % 8) ^ (line % units);
        let address = line * 128 + unit * 16 + linear % 16;
        let offset = (address - self.base) / u64::from(self.map.elem_bits / 8);
        let size = self.held.len() as u64;
        let Some(slot) = self.held.get_mut(offset as usize) else {
            return Err(CheckError::OutOfBounds { offset, size });
        };
        if let Some(first) = *slot {
            return Err(CheckError::WrittenTwice { block: self.block, offset, first, second: number });
        }
        *slot = Some(number);
        let word = crate::f2::mul(self.memory.columns_of(Dim::OFFSET), offset)
            ^ crate::f2::mul(self.memory.columns_of(Dim::BLOCK), self.block);
        let found = self.memory.coords(word);
        if found.as_slice() != at {
            let reason = format!("element {at:?} lies at offset {offset}, where the layout has {found:?}");
            return Err(CheckError::Malformed(reason));
        }
        Ok(())
    }

    fn check_full(&self) -> Result<(), CheckError> {
        match self.held.iter().position(Option::is_none) {
            Some(offset) => Err(CheckError::Malformed(format!("nothing is copied to offset {offset}"))),
            None => Ok(()),
        }
    }
}

/// What the address of a buffer must be a multiple of: a swizzle begins anew every eight rows of its width, and what
/// is not swizzled starts at a multiple of 128 bytes (PTX ISA, "Tensors", swizzle modes). The box must be one that an
/// instruction copies.
fn check_map(map: &TmaMap, alignment: u64) -> Result<(), CheckError> {
    let (width, aligned) = match map.swizzle_mode() {
        0 => (u64::MAX, 128),
        mode => (16 << mode, 128 << mode),
    };
    count::same("bytes of alignment", aligned, alignment)?;
    let row = map.box_shape.last().copied().unwrap_or(0) * u64::from(map.elem_bits / 8);
    let sizes = map.box_shape.iter().all(|size| (1..=256).contains(size)) && map.box_shape.len() <= 5;
    if sizes && row.is_multiple_of(16) && row <= width {
        return Ok(());
    }
    Err(CheckError::Malformed(format!("a box of {map}")))
}

/// Where the part of a block of a cluster begins.
fn start_of(block: u64, parts: &[smallvec::SmallVec<[u64; 5]>], rank: usize) -> Vec<u64> {
    let chosen = parts.iter().enumerate().filter(|(bit, _)| block >> bit & 1 == 1);
    chosen.fold(vec![0; rank], |sum, (_, part)| sum.iter().zip(part).map(|(a, b)| a ^ b).collect())
}

/// Copies a block as `plan` says to a buffer whose address is as aligned as the plan asks: every element must
/// lie where the layout `memory` has it, and every one must be copied once.
///
/// # Errors
/// The first element that lies elsewhere, outside the buffer, or on top of another one.
pub fn check_tma(plan: &TmaPlan, memory: &LinearLayout) -> Result<(), CheckError> {
    let shape = &plan.map.box_shape;
    check_map(&plan.map, plan.alignment)?;
    for block in 0..memory.in_size(Dim::BLOCK).unwrap_or(1) {
        let mut filled = Filled::new(&plan.map, memory, block, plan.alignment);
        let origin = start_of(block, &plan.parts, shape.len());
        for (number, part) in plan.boxes.iter().enumerate() {
            for i in 0..shape.iter().product::<u64>() {
                let mut rest = i;
                let mut at = origin.clone();
                for (dim, box_size) in shape.iter().enumerate().rev() {
                    at[dim] += part.start[dim] + rest % box_size;
                    rest /= box_size;
                }
                filled.put(number as u64, part.offset_bytes + i * u64::from(plan.map.elem_bits / 8), &at)?;
            }
        }
        filled.check_full()?;
    }
    Ok(())
}

/// Copies rows as `plan` says, each warp those whose numbers it holds by the layout `numbers`: every element
/// must lie where the layout `memory` has it, and every one must be copied once.
///
/// # Errors
/// As [`check_tma`].
pub fn check_tma_rows(
    plan: &TmaRowsPlan,
    memory: &LinearLayout,
    numbers: &LinearLayout,
) -> Result<(), CheckError> {
    check_map(&plan.map, plan.alignment())?;
    let columns = plan.map.box_shape.get(1).copied().unwrap_or(0);
    let elem = u64::from(plan.map.elem_bits / 8);
    for block in 0..memory.in_size(Dim::BLOCK).unwrap_or(1) {
        let mut filled = Filled::new(&plan.map, memory, block, plan.alignment());
        count::same("bytes of a block's part", filled.held.len() as u64 * elem, plan.bytes)?;
        let origin = start_of(block, &plan.parts, 2);
        for warp in (0..numbers.in_size(Dim::WARP).unwrap_or(1)).filter(|warp| warp & plan.idle_warps == 0) {
            let bits = plan.warp_bytes.iter().enumerate().filter(|(bit, _)| warp >> bit & 1 == 1);
            let moved: u64 = bits.map(|(_, bytes)| bytes).sum();
            for copy in &plan.copies {
                if !(copy.offset_bytes + moved).is_multiple_of(128) {
                    return Err(CheckError::Malformed(format!(
                        "a copy to byte {}",
                        copy.offset_bytes + moved
                    )));
                }
                for row in 0..plan.rows {
                    let register = copy.register as u64 + row;
                    let thread = [(Dim::REGISTER, register), (Dim::WARP, warp), (Dim::BLOCK, block)];
                    let word = thread
                        .iter()
                        .fold(0, |sum, (dim, index)| sum ^ crate::f2::mul(numbers.columns_of(*dim), *index));
                    let line = numbers.coords(word)[0];
                    for i in 0..columns {
                        let linear = copy.offset_bytes + moved + (row * columns + i) * elem;
                        filled.put(warp, linear, &[line, origin[1] + copy.column + i])?;
                    }
                }
            }
        }
        filled.check_full()?;
    }
    Ok(())
}
