//! Execution of matrix descriptors: the address of every element by the rules of the PTX ISA.

use super::{CheckError, count};
use crate::plan::MatrixDescriptorPlan;
use crate::{Dim, LinearLayout, Point};

/// A shape and strides for each digit of a coordinate, lowest first (CuTe notation in PTX ISA, "Canonical
/// Layouts"). The last digit has no bound.
type Digits = Vec<(u64, u64)>;

fn dot(digits: &Digits, mut coordinate: u64) -> u64 {
    let mut sum = 0;
    for (i, &(size, stride)) in digits.iter().enumerate() {
        let digit = if i + 1 == digits.len() { coordinate } else { coordinate % size };
        coordinate /= size;
        sum += digit * stride;
    }
    sum
}

/// The canonical layout of a descriptor: digits of the coordinate along M or N and of that along K, strides
/// in bytes, and how many bits are swizzled.
fn canonical(descriptor: u64, transposed: bool, elem: u64) -> (Digits, Digits, u32) {
    let decode = |at: u32| (descriptor >> at & 0x3fff) << 4;
    let (lbo, sbo) = (decode(16), decode(32));
    let t = 16 / elem;
    let swizzled = match descriptor >> 62 {
        0 => 0,
        1 => 3,
        2 => 2,
        _ => 1,
    };
    let units = 1 << swizzled;
    let (mn, k) = match (transposed, swizzled) {
        // ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))
        (true, 0) => (vec![(t, elem), (1, 16), (1, sbo)], vec![(8, 16), (1, lbo)]),
        // ((T,n,m),(8,k)):((1,T,LBO),(nT,SBO))
        (true, _) => (vec![(t, elem), (units, 16), (1, lbo)], vec![(8, units * 16), (1, sbo)]),
        // ((8,m),(T,2k)):((1T,SBO),(1,LBO))
        (false, 0) => (vec![(8, 16), (1, sbo)], vec![(t, elem), (1, lbo)]),
        // ((8,m),(T,2k)):((nT,SBO),(1,T))
        (false, _) => (vec![(8, units * 16), (1, sbo)], vec![(t, elem), (1, 16)]),
    };
    (mn, k, swizzled)
}

/// `Swizzle<bits, 4, 3>` of an address.
fn swizzle(address: u64, bits: u32) -> u64 {
    (0..bits).fold(address, |a, i| a ^ (address >> (7 + i) & 1) << (4 + i))
}

/// Where the hardware finds element (i, k), M or N first, of the tile that starts `start` bytes into a buffer
/// as aligned as the plan asks, and the coordinates of what is there.
pub(super) fn element_at(
    plan: &MatrixDescriptorPlan,
    memory: &LinearLayout,
    elem_bits: u32,
    start: u64,
    (i, k): (u64, u64),
) -> Result<(u64, Point), CheckError> {
    let elem = u64::from(elem_bits / 8);
    let buffer = plan.alignment;
    let size = memory.in_size(Dim::OFFSET).unwrap_or(1);
    let shift = memory.in_shift(Dim::OFFSET).unwrap_or(0);
    let address = buffer + start;
    if !address.is_multiple_of(16) || address >> 18 != 0 {
        return Err(CheckError::Malformed(format!("a tile starts at byte {address}")));
    }
    let descriptor = plan.bits() | address >> 4;
    let (along_mn, along_k, bits) = canonical(descriptor, plan.transposed, elem);
    let start = (descriptor & 0x3fff) << 4;
    let at = swizzle(start + dot(&along_mn, i) + dot(&along_k, k), bits);
    let offset = at.wrapping_sub(buffer) / elem;
    if at < buffer || offset >= size {
        return Err(CheckError::OutOfBounds { offset, size });
    }
    Ok((at, memory.unpack_out(memory.apply_packed(offset << shift))))
}

/// Reads every element of every tile of `plan` as the hardware does, from a buffer in the layout `memory`
/// whose address is as aligned as the plan asks: it must be the element of that row and summand.
///
/// # Errors
/// The first element that is another one, or lies outside the buffer.
pub fn check_matrix_descriptor(
    plan: &MatrixDescriptorPlan,
    memory: &LinearLayout,
    dims: (Dim, Dim),
    elem_bits: u32,
) -> Result<(), CheckError> {
    // A swizzle of so many bytes begins anew every eight rows of its width.
    let least = match plan.bits() >> 62 {
        0 => 16,
        1 => 1024,
        2 => 512,
        _ => 256,
    };
    count::same("bytes of alignment", least, plan.alignment)?;
    let [rows, depth] = plan.tile;
    let [tiles_mn, tiles_k] = plan.tiles();
    for (mn, k) in (0..tiles_mn * tiles_k).map(|i| (i % tiles_mn, i / tiles_mn)) {
        for (i, j) in (0..rows * depth).map(|x| (x % rows, x / rows)) {
            let (at, point) = element_at(plan, memory, elem_bits, plan.start([mn, k]), (i, j))?;
            let along = |dim: Dim| point.iter().find(|p| p.0 == dim).map_or(0, |p| p.1);
            let (got, expected) = ((along(dims.0), along(dims.1)), (mn * rows + i, k * depth + j));
            if got != expected {
                let reason = format!("element {got:?} at byte {at} instead of {expected:?}");
                return Err(CheckError::Malformed(reason));
            }
        }
    }
    let covered = tiles_mn * tiles_k * rows * depth;
    let held = 1u64 << memory.sublayout(&[Dim::OFFSET], &[dims.0, dims.1]).map_or(0, |l| l.rank());
    if covered != held {
        return Err(CheckError::Malformed(format!("tiles of {covered} of {held} elements")));
    }
    Ok(())
}
