//! Blocked, slice and linear encodings, and dot operands of blocked ones.

use super::fit::{Excess, check_order, combine, cut_to, divide_among_blocks, identity_nd, repeat_to};
use super::{Blocked, DotOperand, Encoding, Linear, Slice, invalid};
use crate::f2::Vectors;
use crate::layout::log2;
use crate::{Dim, LinearLayout, Result, standard_out_dims};
use smallvec::SmallVec;

/// The bits of one coordinate of what a block holds, in a packed output word.
struct Places {
    /// The place of the lowest.
    shift: u32,
    /// How many are taken.
    used: u32,
    /// How many there are.
    bits: u32,
}

impl Places {
    /// The column of the lowest bit that is not taken, which then is.
    fn next(&mut self) -> Option<u64> {
        let place = self.used;
        self.used += 1;
        (place < self.bits).then(|| 1u64.checked_shl(self.shift + place).unwrap_or(0))
    }
}

impl Blocked {
    pub(super) fn to_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        self.check()?;
        let bits = |size: u64, what: &str| log2(size, || format!("the size of `{what}`"));
        let (blocks, part) = divide_among_blocks("blocked", &self.cga, shape)?;
        // Each input bit is one bit of a coordinate, so the columns can be listed: registers, lanes and warps take the
        // bits of each dimension from the lowest. Registers beyond a block's part do not exist, lanes and warps there hold
        // copies, and registers repeat the tile until it covers the part.
        let mut outs: SmallVec<[(Dim, u32); 4]> = SmallVec::new();
        let mut places: SmallVec<[Places; 4]> = SmallVec::new();
        let mut shift = 0;
        for (d, (&size, &part)) in shape.iter().zip(&part).enumerate() {
            outs.push((Dim::out(d), bits(size, Dim::out(d).name())?));
            places.push(Places { shift, used: 0, bits: bits(part, Dim::out(d).name())? });
            shift += outs[d].1;
        }
        let mut columns: [Vectors; 3] = Default::default();
        let sizes = [&self.size_per_thread, &self.threads_per_warp, &self.warps_per_cta];
        let dims = [Dim::REGISTER, Dim::LANE, Dim::WARP];
        for ((columns, sizes), dim) in columns.iter_mut().zip(sizes).zip(dims) {
            for &d in &self.order {
                for _ in 0..bits(sizes[d], dim.name())? {
                    match places[d].next() {
                        Some(column) => columns.push(column),
                        None if dim == Dim::REGISTER => {}
                        None => columns.push(0),
                    }
                }
            }
        }
        for &d in &self.order {
            columns[0].extend(std::iter::from_fn(|| places[d].next()));
        }
        let of_block = |column: &u64| {
            let fields = blocks.coords(*column).into_iter().zip(&places);
            fields.map(|(field, at)| field.checked_shl(at.shift + at.bits).unwrap_or(0)).sum()
        };
        let lens = dims.iter().zip(&columns).map(|(dim, columns)| (*dim, columns.len() as u32));
        let ins: SmallVec<[(Dim, u32); 4]> = lens.chain(blocks.in_dim_bits()).collect();
        let all = columns.iter().flatten().copied().chain(blocks.columns().iter().map(of_block)).collect();
        LinearLayout::from_parts(ins, outs, all)
    }

    fn check(&self) -> Result<()> {
        let rank = self.order.len();
        check_order("blocked", &self.order)?;
        for (name, list) in [
            ("sizePerThread", &self.size_per_thread),
            ("threadsPerWarp", &self.threads_per_warp),
            ("warpsPerCTA", &self.warps_per_cta),
        ] {
            if list.len() != rank {
                return Err(invalid(
                    "blocked",
                    format!("{name} = {list:?} must have {rank} entries, as order has"),
                ));
            }
        }
        Ok(())
    }

    /// A thread holds all of K, whatever the blocked layout would give it: the operand is spread only
    /// along the dimension that the result has too.
    fn operand(&self, operand: &DotOperand, shape: &[u64]) -> Result<LinearLayout> {
        self.check()?;
        let rank = self.order.len();
        let k = operand.k_dim(rank);
        let mut registers = self.size_per_thread.clone();
        registers[k] = shape[k];
        let tile = identity_nd(Dim::REGISTER, &registers, &self.order)?
            .product(&broadcast_nd(Dim::LANE, &self.threads_per_warp, &self.order, k)?)?
            .product(&broadcast_nd(Dim::WARP, &self.warps_per_cta, &self.order, k)?)?;
        combine("dot_op", &tile, &operand.cga(), shape, Excess::Copy)
    }
}

impl Slice {
    pub(super) fn to_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        let rank = self.parent.rank();
        if !self.parent.is_distributed() || self.dim >= rank {
            let reason =
                format!("dim {} of `{}`, which has {rank} dimensions", self.dim, self.parent.mnemonic());
            return Err(invalid("slice", reason));
        }
        let mut parent_shape = shape.to_vec();
        parent_shape.insert(self.dim, 1);
        let parent = self.parent.to_linear_layout(&parent_shape)?;
        let mut layout = parent.squeeze_out(Dim::out(self.dim))?;
        for d in self.dim + 1..rank {
            layout = layout.rename_out(Dim::out(d), Dim::out(d - 1))?;
        }
        layout.remove_zero_bases(Dim::REGISTER)
    }
}

impl Linear {
    pub(super) fn to_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        // Repetitions are added in the order in which the registers already run.
        let order = order_of(&self.layout, Dim::REGISTER);
        let outs: Vec<Dim> = order.iter().map(|&d| Dim::out(d)).collect();
        let layout = repeat_to(&self.layout.transpose_outs(&outs)?, shape)?;
        let standard: Vec<Dim> = standard_out_dims(shape.len()).collect();
        cut_to(&layout, shape, Excess::Drop)?.transpose_outs(&standard)
    }
}

/// The output dimensions in the order in which the bases of `dim` first move along them, then the rest,
/// last dimension first.
pub(super) fn order_of(layout: &LinearLayout, dim: Dim) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    for &column in layout.columns_of(dim) {
        let moved = layout.coords(column).iter().position(|&c| c != 0);
        order.extend(moved.filter(|d| !order.contains(d)));
    }
    let rest: Vec<usize> = (0..layout.num_out_dims()).rev().filter(|d| !order.contains(d)).collect();
    order.extend(rest);
    order
}

impl DotOperand {
    /// The dimension summed over, of `rank`: the last for the left operand, the one before for the right.
    pub fn k_dim(&self, rank: usize) -> usize {
        if self.op_idx == 0 { rank.saturating_sub(1) } else { rank.saturating_sub(2) }
    }

    /// The dimension that the result has too: M for the left operand, N for the right.
    pub fn non_k_dim(&self, rank: usize) -> usize {
        if self.op_idx == 0 { rank.saturating_sub(2) } else { rank.saturating_sub(1) }
    }

    pub(super) fn cga(&self) -> super::CgaLayout {
        Encoding::DotOperand(self.clone()).cga_layout()
    }

    pub(super) fn to_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        if self.op_idx > 1 {
            return Err(invalid("dot_op", format!("opIdx is {}, it must be 0 or 1", self.op_idx)));
        }
        if shape.len() < 2 {
            return Err(invalid(
                "dot_op",
                format!("an operand has at least 2 dimensions, not {}", shape.len()),
            ));
        }
        match &*self.parent {
            Encoding::Blocked(parent) => parent.operand(self, shape),
            Encoding::NvidiaMma(parent) => parent.operand(self, shape),
            Encoding::AmdMfma(parent) => parent.operand(self, shape),
            Encoding::AmdWmma(parent) => parent.operand(self, shape),
            other => Err(invalid("dot_op", format!("`{}` is not the layout of a dot", other.mnemonic()))),
        }
    }
}

/// As [`identity_nd`], with replicas instead of places along `broadcast`.
pub(super) fn broadcast_nd(
    in_dim: Dim,
    sizes: &[u64],
    order: &[usize],
    broadcast: usize,
) -> Result<LinearLayout> {
    let mut layout = LinearLayout::empty();
    for &d in order {
        let (size, out) = (sizes[d], Dim::out(d));
        let part = if d == broadcast {
            LinearLayout::zeros_1d(size, in_dim, out, 1)?
        } else {
            LinearLayout::identity_1d(size, in_dim, out)?
        };
        layout = layout.product(&part)?;
    }
    Ok(layout)
}
