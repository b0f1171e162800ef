//! Results and operands of `mma.sync` and `wgmma` (PTX ISA, "Warp Level Matrix Fragment" sections).

use super::distributed::broadcast_nd;
use super::fit::{Excess, combine, identity_nd, matrix_order, product_in_order};
use super::{DotOperand, NvidiaMma, invalid};
use crate::{Dim, LinearLayout, Result};

const MNEMONIC: &str = "nvidia_mma";

impl NvidiaMma {
    fn is_wgmma(&self) -> bool {
        self.version_major == 3
    }

    fn check(&self) -> Result<()> {
        let (rank, entries) = (self.warps_per_cta.len(), self.instr_shape.len());
        let fits = match self.version_major {
            2 => entries == rank,
            3 => entries == 3,
            other => {
                return Err(invalid(MNEMONIC, format!("versionMajor is {other}; 2 and 3 are supported")));
            }
        };
        if !fits || rank < 2 {
            let (shape, warps) = (&self.instr_shape, &self.warps_per_cta);
            return Err(invalid(
                MNEMONIC,
                format!("instrShape {shape:?} does not go with warpsPerCTA {warps:?}"),
            ));
        }
        Ok(())
    }

    pub(super) fn to_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        self.check()?;
        let rank = shape.len();
        let mut tile_shape = vec![1; rank];
        let (m, n) = if self.is_wgmma() {
            (self.instr_shape[0], self.instr_shape[1])
        } else {
            (self.instr_shape[rank - 2], self.instr_shape[rank - 1])
        };
        (tile_shape[rank - 2], tile_shape[rank - 1]) = (m, n);
        let order = matrix_order(rank, true);
        let tile = fragment(&tile_shape, 2, &order)?;
        let warps = identity_nd(Dim::WARP, &self.warps_per_cta, &matrix_order(rank, !self.is_wgmma()))?;
        combine(MNEMONIC, &product_in_order(&tile, &warps)?, &self.cga, shape, Excess::Copy)
    }

    pub(super) fn operand(&self, operand: &DotOperand, shape: &[u64]) -> Result<LinearLayout> {
        self.check()?;
        let rank = shape.len();
        let k_width = operand.k_width;
        if k_width == 0 || (self.is_wgmma() && operand.op_idx == 1) {
            let reason = match k_width {
                0 => "an operand of nvidia_mma needs kWidth",
                _ => "the right operand of version 3 is read from shared memory",
            };
            return Err(invalid("dot_op", reason.into()));
        }
        let is_left = operand.op_idx == 0;
        let mut tile_shape = vec![1; rank];
        // m8n8k4, the product of f64, has a single fragment each; the others two along K and along M.
        let fragments = if !self.is_wgmma() && self.instr_shape[rank - 2] == 8 { 1 } else { 2 };
        tile_shape[operand.k_dim(rank)] = k_width.saturating_mul(4 * fragments);
        tile_shape[operand.non_k_dim(rank)] = if is_left { fragments * 8 } else { 8 };
        // K runs fastest, within a fragment and when fragments repeat over the operand.
        let order = matrix_order(rank, is_left);
        let tile = fragment(&tile_shape, k_width, &order)?;
        let warp_order = matrix_order(rank, !self.is_wgmma());
        let warps = broadcast_nd(Dim::WARP, &self.warps_per_cta, &warp_order, operand.k_dim(rank))?;
        combine("dot_op", &product_in_order(&tile, &warps)?, &operand.cga(), shape, Excess::Copy)
    }
}

/// A fragment of 8 rows of 4 threads, `width` consecutive elements in each, repeated in registers to
/// `tile_shape`. The elements and the 4 threads run along the first dimension of `order`, the 8 rows along
/// the second; the output dimensions come out in that order, in which the tile is later repeated.
fn fragment(tile_shape: &[u64], width: u64, order: &[usize]) -> Result<LinearLayout> {
    let (inner, outer) = (Dim::out(order[0]), Dim::out(order[1]));
    let ones = vec![1; tile_shape.len()];
    let mut tile = identity_nd(Dim::REGISTER, &ones, order)?
        .product(&LinearLayout::identity_1d(width, Dim::REGISTER, inner)?)?
        .product(&LinearLayout::identity_1d(4, Dim::LANE, inner)?)?
        .product(&LinearLayout::identity_1d(8, Dim::LANE, outer)?)?;
    // Within the tile the repetitions go down the rows first (PTX ISA: c0, c1 in row g, c2, c3 in row g+8).
    for d in matrix_order(tile_shape.len(), false) {
        let have = tile.out_size(Dim::out(d)).unwrap_or(1);
        if tile_shape[d] > have {
            tile =
                tile.product(&LinearLayout::identity_1d(tile_shape[d] / have, Dim::REGISTER, Dim::out(d))?)?;
        }
    }
    Ok(tile)
}
