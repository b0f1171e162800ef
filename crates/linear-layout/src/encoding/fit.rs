//! From the layout of a tile to the layout of a tensor: repeating, cutting and dividing among blocks.

use super::{CgaLayout, invalid};
use crate::f2::{Vectors, low_mask};
use crate::layout::log2;
use crate::{Dim, LinearLayout, Result, standard_out_dims};

/// The identity from `in_dim` to a box of `sizes`, the dimensions of `order` from fastest to slowest.
pub(super) fn identity_nd(in_dim: Dim, sizes: &[u64], order: &[usize]) -> Result<LinearLayout> {
    let mut layout = LinearLayout::empty();
    for &d in order {
        layout = layout.product(&LinearLayout::identity_1d(sizes[d], in_dim, Dim::out(d))?)?;
    }
    Ok(layout)
}

/// The product of two layouts whose output dimensions may be listed in different orders: the first one's
/// order stays.
pub(super) fn product_in_order(tile: &LinearLayout, outer: &LinearLayout) -> Result<LinearLayout> {
    tile.product(&outer.transpose_outs(&tile.out_dims().collect::<Vec<_>>())?)
}

/// Checks that `order` lists `0..rank`, each once, in some order.
pub(super) fn check_order(encoding: &'static str, order: &[usize]) -> Result<()> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted.iter().copied().eq(0..order.len()) {
        Ok(())
    } else {
        Err(invalid(
            encoding,
            format!("order {order:?} does not list each of its {} dimensions once", order.len()),
        ))
    }
}

/// `[rank-1, …, 0]`, or with the two last dimensions swapped: the order of a matrix in row-major or
/// column-major, batches outermost.
pub(super) fn matrix_order(rank: usize, row_major: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).rev().collect();
    if !row_major && rank >= 2 {
        order.swap(0, 1);
    }
    order
}

/// The layout repeated along its first input dimension until it covers `shape`, output dimensions in
/// their order.
pub(super) fn repeat_to(layout: &LinearLayout, shape: &[u64]) -> Result<LinearLayout> {
    let Some(first) = layout.in_dims().next() else { return Ok(layout.clone()) };
    let mut repeated = layout.clone();
    for (dim, bits) in layout.out_dim_bits() {
        let wanted = log2(size_of(shape, dim), || format!("the size of `{dim}`"))?;
        if wanted > bits {
            let more = LinearLayout::identity_1d(1 << (wanted - bits), first, dim)?;
            repeated = repeated.product(&more)?;
        }
    }
    Ok(repeated)
}

/// What happens to the register bases that point outside the shape.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// They become zero: the registers are copies.
    Copy,
    /// They are dropped: the registers do not exist.
    Drop,
}

/// The layout cut down to `shape`. Bases that point outside become copies, from the one furthest out.
pub(super) fn cut_to(layout: &LinearLayout, shape: &[u64], registers: Excess) -> Result<LinearLayout> {
    let mut columns: Vectors = layout.columns().iter().copied().collect();
    let registers_end = layout.in_shift(Dim::REGISTER).map(|s| s..s + layout.in_bits(Dim::REGISTER));
    let mut dropped = 0u64;
    for (dim, bits) in layout.out_dim_bits() {
        let wanted = log2(size_of(shape, dim), || format!("the size of `{dim}`"))?;
        let Some(shift) = layout.out_shift(dim) else { continue };
        let coordinate = |c: u64| c.checked_shr(shift).unwrap_or(0) & low_mask(bits);
        let mut outside: Vec<usize> = (0..columns.len()).filter(|&i| coordinate(columns[i]) != 0).collect();
        outside.sort_by_key(|&i| std::cmp::Reverse(coordinate(columns[i])));
        for &i in outside.iter().take(bits.saturating_sub(wanted) as usize) {
            columns[i] &= !layout.out_mask(dim);
            let is_register = registers_end.as_ref().is_some_and(|r| r.contains(&(i as u32)));
            if is_register && registers == Excess::Drop {
                dropped |= 1 << i;
            }
        }
    }
    let left = |(dim, bits): (Dim, u32)| {
        let shift = layout.in_shift(dim).unwrap_or(0);
        let gone = dropped.checked_shr(shift).unwrap_or(0) & low_mask(bits);
        (dim, bits - gone.count_ones())
    };
    let kept = columns.iter().enumerate().filter(|&(i, _)| dropped >> i & 1 == 0).map(|(_, &c)| c).collect();
    let mut cut = LinearLayout::from_parts(layout.in_dim_bits().map(left), layout.out_dim_bits(), kept)?;
    for (dim, bits) in layout.out_dim_bits() {
        let wanted = size_of(shape, dim);
        if wanted < 1 << bits {
            cut = cut.resize_out(dim, wanted)?;
        }
    }
    Ok(cut)
}

/// The layout of a tensor of `shape` from the layout of what one block holds of it, before it is fitted
/// to the shape: repeated or cut to the block's part, then multiplied by the division among blocks. The
/// outputs come out as `dim0, dim1, …`.
pub(super) fn combine(
    encoding: &'static str,
    tile: &LinearLayout,
    cga: &CgaLayout,
    shape: &[u64],
    registers: Excess,
) -> Result<LinearLayout> {
    let (blocks, part) = divide_among_blocks(encoding, cga, shape)?;
    let tile = cut_to(&repeat_to(tile, &part)?, &part, registers)?;
    let outs: Vec<Dim> = standard_out_dims(shape.len()).collect();
    tile.transpose_outs(&outs)?.product(&blocks)
}

/// The layout `block → dim0, dim1, …` of the division, in units of a block's part, and the shape of that
/// part.
pub(super) fn divide_among_blocks(
    encoding: &'static str,
    cga: &CgaLayout,
    shape: &[u64],
) -> Result<(LinearLayout, Vec<u64>)> {
    let rank = shape.len();
    if let Some(basis) = cga.iter().find(|b| b.len() != rank) {
        return Err(invalid(encoding, format!("CGALayout basis {basis:?} must have {rank} coordinates")));
    }
    if cga.is_empty() {
        let outs = standard_out_dims(rank).map(|dim| (dim, 0));
        return Ok((LinearLayout::from_parts([(Dim::BLOCK, 0)], outs, Vectors::new())?, shape.to_vec()));
    }
    let outs: Vec<Dim> = standard_out_dims(rank).collect();
    let blocks = LinearLayout::from_bases(&[(Dim::BLOCK, cga.clone())], &outs)?;
    let blocks = cut_to(&blocks, shape, Excess::Copy)?;
    let part = (0..rank).map(|d| shape[d] / blocks.out_size(Dim::out(d)).unwrap_or(1)).collect();
    Ok((blocks, part))
}

/// The size of `dim` in a shape; one for dimensions beyond its rank.
pub(super) fn size_of(shape: &[u64], dim: Dim) -> u64 {
    dim.out_index().and_then(|i| shape.get(i)).copied().unwrap_or(1)
}
