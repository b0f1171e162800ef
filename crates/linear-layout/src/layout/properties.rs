//! Questions about a layout: rank, broadcasting, contiguity.

use super::LinearLayout;
use crate::f2::{self, low_mask};
use crate::{Dim, standard_out_dims};

impl LinearLayout {
    /// Rank of the matrix: the layout reaches 2^rank points of the output.
    pub fn rank(&self) -> u32 {
        f2::rank(&self.columns)
    }

    /// Whether every output point is reached, so that the layout describes a whole tensor.
    pub fn is_surjective(&self) -> bool {
        self.rank() == self.total_out_bits()
    }

    /// Whether no two inputs reach the same point, so that no element is held twice.
    pub fn is_injective(&self) -> bool {
        self.rank() == self.total_in_bits()
    }

    /// Whether the layout is a bijection.
    pub fn is_invertible(&self) -> bool {
        self.total_in_bits() == self.total_out_bits() && self.is_surjective()
    }

    /// Whether this is a distributed layout in the sense of the paper's Definition 4.10: surjective, each
    /// basis vector zero or a single bit, no single bit twice.
    pub fn is_distributed(&self) -> bool {
        let mut seen = 0;
        self.columns.iter().all(|&c| {
            let fresh = c & seen == 0 && c.count_ones() <= 1;
            seen |= c;
            fresh
        }) && seen == low_mask(self.total_out_bits())
    }

    /// For each input dimension, the bits that can be changed without reaching a new point: those whose
    /// basis vector depends on the ones before it. In a layout where every nonzero basis vector is
    /// independent, these are the zero columns, the broadcast bits (paper, Section 5.1).
    ///
    /// ```
    /// use linear_layout::{Dim, LinearLayout};
    /// let column = [vec![1], vec![0], vec![1], vec![2]];
    /// let layout = LinearLayout::from_bases(&[(Dim::LANE, column.to_vec())], &[Dim::out(0)])?;
    /// assert_eq!(layout.free_variable_mask(Dim::LANE), 0b0110);
    /// # Ok::<(), linear_layout::Error>(())
    /// ```
    pub fn free_variable_masks(&self) -> impl Iterator<Item = (Dim, u64)> + '_ {
        let free = self.free_columns();
        let mut shift = 0;
        self.ins.iter().map(move |d| {
            let mask = free.checked_shr(shift).unwrap_or(0) & low_mask(d.bits);
            shift += d.bits;
            (d.dim, mask)
        })
    }

    /// The entry of [`free_variable_masks`](Self::free_variable_masks) for one dimension; zero when there
    /// is no such dimension.
    pub fn free_variable_mask(&self, in_dim: Dim) -> u64 {
        self.free_variable_masks().find(|&(d, _)| d == in_dim).map_or(0, |(_, mask)| mask)
    }

    /// The free bits of all input dimensions, as a packed input word.
    pub fn free_columns(&self) -> u64 {
        low_mask(self.total_in_bits()) & !f2::independent_columns(&self.columns)
    }

    /// Whether the same places hold replicas of each other here and in `other`, which has the same inputs: then taking
    /// the elements of one layout for those of the other is a permutation.
    ///
    /// ```
    /// use linear_layout::{Dim, LinearLayout};
    /// let layout = |bases: &[u64]| {
    ///     let bases = bases.iter().map(|&b| vec![b]).collect();
    ///     LinearLayout::from_bases(&[(Dim::LANE, bases)], &[Dim::out(0)])
    /// };
    /// assert!(layout(&[1, 2, 0])?.repeats_like(&layout(&[2, 1, 0])?));
    /// assert!(!layout(&[1, 2, 0])?.repeats_like(&layout(&[0, 1, 2])?));
    /// # Ok::<(), linear_layout::Error>(())
    /// ```
    pub fn repeats_like(&self, other: &LinearLayout) -> bool {
        let dims = [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK];
        let columns = |layout: &LinearLayout| -> Vec<u64> {
            dims.iter().flat_map(|&dim| layout.columns_of(dim)).copied().collect()
        };
        let (own, others) = (columns(self), columns(other));
        dims.iter().all(|&dim| self.in_bits(dim) == other.in_bits(dim))
            && f2::rank(&own) == f2::rank(&others)
            && f2::kernel(&own).iter().all(|&x| f2::mul(&others, x) == 0)
    }

    /// The bits of an input dimension whose basis vector is zero: places that hold a plain copy.
    pub fn zero_mask(&self, in_dim: Dim) -> u64 {
        let zero = |(i, &c): (usize, &u64)| u64::from(c == 0) << i;
        self.columns_of(in_dim).iter().enumerate().fold(0, |mask, entry| mask | zero(entry))
    }

    /// The largest power of two `n` such that the first `n` points of the first input dimension map to the
    /// first `n` points of the outputs in order, and no other input bit disturbs that run: the block
    /// structure `[I 0; 0 M]` with the largest identity. The first output dimension is the fastest.
    ///
    /// ```
    /// use linear_layout::{Dim, LinearLayout};
    /// // Four consecutive columns of dim1 in the registers of each lane.
    /// let (r, l) = (Dim::REGISTER, Dim::LANE);
    /// let bases = [(r, vec![[0, 1], [0, 2]]), (l, vec![[0, 4], [1, 0]])];
    /// let layout = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)])?;
    /// assert_eq!(layout.num_consecutive_in_out(), 1);
    /// assert_eq!(layout.transpose_outs(&[Dim::out(1), Dim::out(0)])?.num_consecutive_in_out(), 4);
    /// # Ok::<(), linear_layout::Error>(())
    /// ```
    pub fn num_consecutive_in_out(&self) -> u64 {
        let first = self.ins.first().map_or(0, |d| d.bits as usize);
        let run = self.columns[..first].iter().enumerate().take_while(|&(i, &c)| c == 1 << i).count();
        let lowest = self.columns[run..].iter().map(|c| c.trailing_zeros()).min().unwrap_or(64);
        1 << (run as u32).min(lowest).min(63)
    }

    /// The same map, up to the sizes of the output dimensions: equal input dimensions, equal output names,
    /// equal coordinates of every basis vector.
    pub fn equal_ignoring_out_sizes(&self, other: &LinearLayout) -> bool {
        self.ins == other.ins
            && self.out_dims().eq(other.out_dims())
            && self.columns.iter().zip(&other.columns).all(|(&a, &b)| self.coords(a) == other.coords(b))
    }

    /// The same map, up to the order of the dimensions on both sides.
    pub fn equal_up_to_dim_order(&self, other: &LinearLayout) -> bool {
        let ins: Vec<Dim> = self.in_dims().collect();
        let outs: Vec<Dim> = self.out_dims().collect();
        let reordered = other.transpose_ins(&ins).and_then(|o| o.transpose_outs(&outs));
        reordered.is_ok_and(|o| o == *self)
    }

    /// Whether the output dimensions are `dim0, dim1, ...` in this order.
    pub fn has_standard_out_dims(&self) -> bool {
        self.out_dims().eq(standard_out_dims(self.outs.len()))
    }
}
