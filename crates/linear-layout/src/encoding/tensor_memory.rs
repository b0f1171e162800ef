//! Tensor memory of sm_100: `row, col, block → dim0, dim1` (PTX ISA, "Tensor Memory").

use super::fit::{Excess, cut_to, divide_among_blocks};
use super::{TensorMemory, TensorMemoryScales, invalid};
use crate::layout::log2;
use crate::{Dim, LinearLayout, Result};

/// Rows of tensor memory.
const ROWS: u64 = 128;
/// Rows that one warp can reach.
const WARP_ROWS: u64 = 32;

fn id(size: u64, from: Dim, to: usize) -> Result<LinearLayout> {
    LinearLayout::identity_1d(size, from, Dim::out(to))
}

fn zeros(size: u64, from: Dim) -> Result<LinearLayout> {
    LinearLayout::zeros_1d(size, from, Dim::out(0), 1)
}

impl TensorMemory {
    pub(super) fn to_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        let name = "tensor_memory_encoding";
        let (blocks, part) = divide_among_blocks(name, &self.cga, shape)?;
        for (what, value) in
            [("blockM", self.block_m), ("blockN", self.block_n), ("colStride", self.col_stride)]
        {
            log2(value, || format!("{what} of {name}"))?;
        }
        if ![64, 128].contains(&self.block_m) {
            return Err(invalid(name, format!("blockM is {}; blocks have 64 or 128 rows", self.block_m)));
        }
        let [m, n] = [part[0], part[1]];
        let (block_m, block_n) = (self.block_m.min(m), self.block_n.min(n));
        let stride = self.col_stride.saturating_mul(if self.fp4_padded { 2 } else { 1 });
        let mut layout = zeros(stride, Dim::COL)?;
        let (mut m_done, mut n_done) = (block_m, block_n);
        if self.block_m == 64 && self.two_ctas {
            // Two blocks of 64 rows side by side: the upper rows hold the other half of the columns.
            layout = layout
                .product(&id(block_n / 2, Dim::COL, 1)?)?
                .product(&id(64.min(m), Dim::ROW, 0)?)?
                .product(&id(2, Dim::ROW, 1)?)?;
        } else if self.block_m == 64 {
            // A block occupies 16 of every 32 rows; the other 16 hold the next block, along M if there is
            // one, else along N, else nothing new.
            let low = id(16, Dim::ROW, 0)?;
            let high = id(4, Dim::ROW, 0)?;
            layout = layout.product(&id(block_n, Dim::COL, 1)?)?;
            layout = if m > 64 {
                m_done *= 2;
                let next = LinearLayout::from_columns(
                    &[(Dim::ROW, 7)],
                    &[(Dim::out(0), 7)],
                    [1, 2, 4, 8, 64, 16, 32],
                )?;
                layout.product(&next)?
            } else {
                let next = if n > block_n {
                    n_done *= 2;
                    id(2, Dim::ROW, 1)?
                } else {
                    zeros(2, Dim::ROW)?
                };
                layout.product(&low)?.product(&next)?.product(&high)?
            };
        } else {
            layout = layout.product(&id(block_n, Dim::COL, 1)?)?.product(&id(block_m, Dim::ROW, 0)?)?;
        }
        let more_m = id((m / m_done).max(1), Dim::COL, 0)?;
        let more_n = id((n / n_done).max(1), Dim::COL, 1)?;
        finish(&layout.product(&more_m)?.product(&more_n)?, &blocks, &part)
    }
}

impl TensorMemoryScales {
    /// A block of 64×4 scales lies in 32 rows and 8 columns of bytes, and every warp has a copy.
    pub(super) fn to_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        let (blocks, part) = divide_among_blocks("tensor_memory_scales_encoding", &self.cga, shape)?;
        let tile = id(WARP_ROWS, Dim::ROW, 0)?
            .product(&zeros(ROWS / WARP_ROWS, Dim::ROW)?)?
            .product(&id(4, Dim::COL, 1)?)?
            .product(&id(2, Dim::COL, 0)?)?;
        let more_m = id((part[0] / (2 * WARP_ROWS)).max(1), Dim::COL, 0)?;
        let more_k = id((part[1] / 4).max(1), Dim::COL, 1)?;
        let (first, second) = if self.k_then_mn { (more_k, more_m) } else { (more_m, more_k) };
        finish(&tile.product(&first)?.product(&second)?, &blocks, &part)
    }
}

/// Standard order of dimensions, cut to the block's part, times the division among blocks.
fn finish(tile: &LinearLayout, blocks: &LinearLayout, part: &[u64]) -> Result<LinearLayout> {
    let tile = tile.transpose_ins(&[Dim::ROW, Dim::COL])?.transpose_outs(&[Dim::out(0), Dim::out(1)])?;
    cut_to(&tile, part, Excess::Copy)?.product(blocks)
}
