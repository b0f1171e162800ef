//! Results and operands of the matrix instructions of AMD GPUs (CDNA3 ISA, "Matrix Arithmetic
//! Instructions"; RDNA3 and RDNA4 ISA, "Wave Matrix Multiply Accumulate").

use super::fit::{Excess, combine, matrix_order};
use super::{AmdMfma, AmdWmma, DotOperand, invalid};
use crate::{Dim, LinearLayout, Result, standard_out_dims};

/// Lanes of a CDNA wave.
const MFMA_LANES: u64 = 64;
/// Lanes of an RDNA wave.
const WMMA_LANES: u64 = 32;
/// Rows or columns that the lanes of a WMMA instruction enumerate.
const WMMA_SIDE: u64 = 16;

impl AmdMfma {
    fn check(&self) -> Result<(u64, u64)> {
        let rank = self.warps_per_cta.len();
        let (m, n) = match self.instr_shape[..] {
            [m, n, _] => (m, n),
            _ => return Err(self.invalid(format!("instrShape {:?} is not [M, N, K]", self.instr_shape))),
        };
        if ![(32, 32), (16, 16), (64, 4), (4, 64)].contains(&(m, n)) {
            return Err(self.invalid(format!("there is no instruction of {m}×{n}")));
        }
        // Triton's parser takes a version that is left out for 0, and asks for it nowhere in a layout.
        if self.version > 4 || ![32, 64].contains(&self.element_bit_width) {
            let (version, bits) = (self.version, self.element_bit_width);
            return Err(self.invalid(format!("version {version} with elements of {bits} bits")));
        }
        if rank < 2 || self.tiles_per_warp.len() != rank {
            let (warps, tiles) = (&self.warps_per_cta, &self.tiles_per_warp);
            return Err(
                self.invalid(format!("warpsPerCTA {warps:?} does not go with tilesPerWarp {tiles:?}"))
            );
        }
        Ok((m, n))
    }

    fn invalid(&self, reason: String) -> crate::Error {
        invalid("amd_mfma", reason)
    }

    pub(super) fn to_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        let (m, n) = self.check()?;
        let rank = shape.len();
        let (rows, columns) = (Dim::out(rank - 2), Dim::out(rank - 1));
        // Lanes run along one side of the result, registers along the other: `down` in groups of 4 (1 for
        // 64-bit elements), the remaining lanes, then the remaining groups.
        let (across, down, width, height) =
            if self.is_transposed { (rows, columns, m, n) } else { (columns, rows, n, m) };
        let group = if self.element_bit_width == 64 { 1 } else { 4 };
        let lanes_down = MFMA_LANES / width;
        let groups = height / (group * lanes_down).min(height);
        let tile = LinearLayout::identity_1d(group, Dim::REGISTER, down)?
            .product(&LinearLayout::identity_1d(width, Dim::LANE, across)?)?
            .product(&LinearLayout::identity_1d(lanes_down, Dim::LANE, down)?)?
            .product(&LinearLayout::identity_1d(groups, Dim::REGISTER, down)?)?;
        let order = matrix_order(rank, true);
        self.spread("amd_mfma", tile, &order, None, &self.cga, shape)
    }

    /// Repeats an instruction's tile: along each dimension of `order` in turn first within the wave, then
    /// over the waves; the first dimension of `order` over the whole shape before the others.
    fn spread(
        &self,
        encoding: &'static str,
        tile: LinearLayout,
        order: &[usize],
        k_dim: Option<usize>,
        cga: &super::CgaLayout,
        shape: &[u64],
    ) -> Result<LinearLayout> {
        let mut layout = tile;
        for (i, &d) in order.iter().enumerate() {
            let out = Dim::out(d);
            if k_dim != Some(d) {
                let (tiles, warps) = (self.tiles_per_warp[d], self.warps_per_cta[d]);
                layout = layout
                    .product(&LinearLayout::identity_1d(tiles, Dim::REGISTER, out)?)?
                    .product(&LinearLayout::identity_1d(warps, Dim::WARP, out)?)?;
            }
            let have = layout.out_size(out).unwrap_or(1);
            if i == 0 && shape[d] > have {
                layout = layout.product(&LinearLayout::identity_1d(shape[d] / have, Dim::REGISTER, out)?)?;
            }
        }
        if let Some(k) = k_dim {
            layout = self.with_copies_along(k, &layout)?;
        }
        let outs: Vec<Dim> = order.iter().map(|&d| Dim::out(d)).collect();
        let layout = layout.transpose_ins(&[Dim::REGISTER, Dim::LANE, Dim::WARP])?.transpose_outs(&outs)?;
        combine(encoding, &layout, cga, shape, Excess::Copy)
    }

    /// The layout with the waves numbered as in the result, those along `k` holding copies.
    fn with_copies_along(&self, k: usize, layout: &LinearLayout) -> Result<LinearLayout> {
        let mut own = layout.columns_of(Dim::WARP).iter().copied();
        let mut warps = Vec::new();
        let rank = self.warps_per_cta.len();
        for d in matrix_order(rank, true) {
            let bits = self.warps_per_cta[d].trailing_zeros();
            warps.extend((0..bits).map(|_| if d == k { 0 } else { own.next().unwrap_or(0) }));
        }
        let without: Vec<Dim> = layout.in_dims().filter(|&d| d != Dim::WARP).collect();
        let outs: Vec<(Dim, u32)> = layout.out_dim_bits().collect();
        let warps = LinearLayout::from_columns(&[(Dim::WARP, warps.len() as u32)], &outs, warps)?;
        layout.sublayout(&without, &layout.out_dims().collect::<Vec<_>>())?.concat_ins(&warps)
    }

    pub(super) fn operand(&self, operand: &DotOperand, shape: &[u64]) -> Result<LinearLayout> {
        let (m, n) = self.check()?;
        let rank = shape.len();
        let (k_dim, other) = (operand.k_dim(rank), operand.non_k_dim(rank));
        let side = if operand.op_idx == 0 { m } else { n };
        if operand.k_width == 0 {
            return Err(invalid("dot_op", "an operand of amd_mfma needs kWidth".into()));
        }
        // The other operand of a 64×4 dot has 16 lanes along K; this one holds as much in registers.
        let lanes_along_k = MFMA_LANES / side;
        let more = if side == MFMA_LANES { MFMA_LANES / m.min(n) } else { 1 };
        let tile = LinearLayout::identity_1d(operand.k_width, Dim::REGISTER, Dim::out(k_dim))?
            .product(&LinearLayout::identity_1d(side, Dim::LANE, Dim::out(other))?)?
            .product(&LinearLayout::identity_1d(lanes_along_k, Dim::LANE, Dim::out(k_dim))?)?
            .product(&LinearLayout::identity_1d(more, Dim::REGISTER, Dim::out(k_dim))?)?;
        let mut order = vec![k_dim, other];
        order.extend((0..rank - 2).rev());
        // Triton divides operands of amd_mfma among blocks as the result, K included.
        self.spread("dot_op", tile, &order, Some(k_dim), &self.cga, shape)
    }
}

impl AmdWmma {
    fn check(&self) -> Result<(u64, u64, u64)> {
        let reason = match self.instr_shape[..] {
            _ if !(1..=3).contains(&self.version) => format!("version is {}; 1 to 3 are known", self.version),
            _ if self.rank < 2 => format!("a result has at least 2 dimensions, not {}", self.rank),
            [m, n, k] if m >= WMMA_SIDE && n >= WMMA_SIDE => {
                // An instruction that is not square computes the transposed dot with its sides swapped.
                return Ok(if self.is_transposed { (n, m, k) } else { (m, n, k) });
            }
            _ => format!("instrShape {:?} is not [M, N, K]", self.instr_shape),
        };
        Err(invalid("amd_wmma", reason))
    }

    /// The arrangement of whole tiles: repetitions and waves to tiles, `k_dim` reached by none.
    fn arrangement(&self, k_dim: Option<usize>) -> Result<LinearLayout> {
        let outs: Vec<Dim> = standard_out_dims(self.rank).collect();
        let without_k = |bases: &[Vec<u64>]| -> Vec<Vec<u64>> {
            let masked = |b: &Vec<u64>| {
                b.iter().enumerate().map(|(d, &c)| if Some(d) == k_dim { 0 } else { c }).collect()
            };
            bases.iter().map(masked).collect()
        };
        // A repetition along K alone is not one: the operand has no such registers.
        let mut registers = without_k(&self.tile_registers);
        registers.retain(|b| b.iter().any(|&c| c != 0));
        let warps = without_k(&self.tile_warps);
        LinearLayout::from_bases(&[(Dim::REGISTER, registers), (Dim::WARP, warps)], &outs)
    }

    fn fit(
        &self,
        encoding: &'static str,
        tile: &LinearLayout,
        order: &[usize],
        k_dim: Option<usize>,
        cga: &super::CgaLayout,
        shape: &[u64],
    ) -> Result<LinearLayout> {
        let outs: Vec<Dim> = order.iter().map(|&d| Dim::out(d)).collect();
        let mut full = tile.clone();
        for d in (0..shape.len()).map(Dim::out).filter(|&d| !tile.has_out_dim(d)) {
            full = full.unsqueeze_out(d)?;
        }
        let full = full.transpose_outs(&outs)?;
        let arrangement = self.arrangement(k_dim)?.transpose_outs(&outs)?;
        combine(encoding, &full.product(&arrangement)?, cga, shape, Excess::Copy)
    }

    pub(super) fn to_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        let (m, n, _) = self.check()?;
        let rank = shape.len();
        let (rows, columns) = (Dim::out(rank - 2), Dim::out(rank - 1));
        let (across, down, width, height) =
            if self.is_transposed { (rows, columns, m, n) } else { (columns, rows, n, m) };
        let registers = |size| LinearLayout::identity_1d(size, Dim::REGISTER, down);
        let lanes = |size, dim| LinearLayout::identity_1d(size, Dim::LANE, dim);
        let half = WMMA_LANES / WMMA_SIDE;
        // RDNA3 interleaves the rows of the two half-waves; later ones give each half 8 consecutive rows.
        let tile = if self.version == 1 {
            lanes(WMMA_SIDE, across)?.product(&lanes(half, down)?)?.product(&registers(WMMA_SIDE / half)?)?
        } else {
            registers(WMMA_SIDE / half)?.product(&lanes(WMMA_SIDE, across)?)?.product(&lanes(half, down)?)?
        };
        let tile = tile
            .transpose_ins(&[Dim::REGISTER, Dim::LANE])?
            .product(&registers(height / WMMA_SIDE)?)?
            .product(&LinearLayout::identity_1d(width / WMMA_SIDE, Dim::REGISTER, across)?)?;
        self.fit("amd_wmma", &tile, &matrix_order(rank, true), None, &self.cga, shape)
    }

    pub(super) fn operand(&self, operand: &DotOperand, shape: &[u64]) -> Result<LinearLayout> {
        let (m, n, k) = self.check()?;
        let rank = shape.len();
        let (k_dim, other) = (operand.k_dim(rank), operand.non_k_dim(rank));
        let side = if operand.op_idx == 0 { m } else { n };
        if operand.k_width == 0 {
            return Err(invalid("dot_op", "an operand of amd_wmma needs kWidth".into()));
        }
        let (k_out, side_out) = (Dim::out(k_dim), Dim::out(other));
        let half = WMMA_LANES / WMMA_SIDE;
        let tile = LinearLayout::identity_1d(operand.k_width, Dim::REGISTER, k_out)?
            .product(&LinearLayout::identity_1d(WMMA_SIDE, Dim::LANE, side_out)?)?;
        // On RDNA3 both half-waves hold the same elements; later ones split K between them.
        let tile = if self.version == 1 {
            tile.product(&LinearLayout::zeros_1d(half, Dim::LANE, k_out, 1)?)?
        } else {
            tile.product(&LinearLayout::identity_1d(half, Dim::LANE, k_out)?)?
        };
        let have = tile.out_size(k_out).unwrap_or(1);
        let tile = tile
            .product(&LinearLayout::identity_1d((k / have).max(1), Dim::REGISTER, k_out)?)?
            .product(&LinearLayout::identity_1d(side / WMMA_SIDE, Dim::REGISTER, side_out)?)?;
        let mut order = vec![k_dim, other];
        order.extend((0..rank - 2).rev());
        self.fit("dot_op", &tile, &order, Some(k_dim), &operand.cga(), shape)
    }
}
