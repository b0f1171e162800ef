//! Shared-memory encodings: `offset, block → dim0, dim1, …`, offsets in elements.

use super::fit::{Excess, check_order, combine, identity_nd};
use super::{NvmmaShared, PartitionedShared, SwizzledShared, invalid};
use crate::f2::Vectors;
use crate::layout::log2;
use crate::{Dim, Error, LinearLayout, Result, standard_out_dims};

/// Bits of the 16-byte units that hardware swizzling permutes.
const SWIZZLE_UNIT_BITS: u64 = 128;
/// Rows of a swizzle atom.
const ATOM_ROWS: u64 = 8;
/// Most elements along one side of the box of one bulk tensor copy (PTX ISA, "Tensor dimension, size and
/// format": `boxDim`).
const MAX_BOX: u64 = 256;

/// How the phase of a row goes on after `max_phase` phases.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phases {
    /// It starts over.
    Repeat,
    /// It starts over, XORed with the number of rounds so far.
    Rotate,
}

impl SwizzledShared {
    pub(super) fn to_layout(&self, shape: &[u64], phases: Phases) -> Result<LinearLayout> {
        let name = if phases == Phases::Repeat { "swizzled_shared" } else { "amd_rotating_shared" };
        check_order(name, &self.order)?;
        for (what, value) in [("vec", self.vec), ("perPhase", self.per_phase), ("maxPhase", self.max_phase)] {
            log2(value, || format!("{what} of {name}"))?;
        }
        let (_, part) = super::fit::divide_among_blocks(name, &self.cga, shape)?;
        let mut tile = match self.order[..] {
            [only] => LinearLayout::identity_1d(part[only], Dim::OFFSET, Dim::out(only))?,
            [columns, rows, ..] => self.matrix(columns, rows, &part, phases)?,
            [] => return Err(invalid(name, "order is empty".into())),
        };
        if let Some(outer) = self.order.get(2..) {
            tile = tile.product(&identity_nd(Dim::OFFSET, &part, outer)?)?;
        }
        combine(name, &tile, &self.cga, shape, Excess::Copy)
    }

    /// The two fastest dimensions: columns contiguous, and the columns of a row XORed with its phase
    /// (paper, Proposition 4.12: the C block).
    fn matrix(&self, columns: usize, rows: usize, part: &[u64], phases: Phases) -> Result<LinearLayout> {
        let (column_bits, row_bits) = (part[columns].trailing_zeros(), part[rows].trailing_zeros());
        let column = (0..column_bits).map(|b| 1 << b);
        let row = (0..row_bits).map(|b| {
            let row = 1u64 << b;
            let mut phase = row / self.per_phase % self.max_phase;
            if phases == Phases::Rotate {
                phase ^= row / self.per_phase / self.max_phase % self.max_phase;
            }
            let moved = self.vec.saturating_mul(phase) % part[columns];
            moved | row.checked_shl(column_bits).unwrap_or(0)
        });
        let vectors: Vectors = column.chain(row).collect();
        let outs = [(Dim::out(columns), column_bits), (Dim::out(rows), row_bits)];
        LinearLayout::from_parts([(Dim::OFFSET, column_bits + row_bits)], outs, vectors)
    }
}

impl NvmmaShared {
    /// The shape of the part of a tensor of `shape` that each block of a cluster has.
    ///
    /// # Errors
    /// When the tensor cannot be divided so.
    pub fn part(&self, shape: &[u64]) -> Result<Vec<u64>> {
        Ok(super::fit::divide_among_blocks("nvmma_shared", &self.cga, shape)?.1)
    }

    pub(super) fn to_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        let part = self.part(shape)?;
        let rank = part.len();
        let contiguous = if self.transposed { 0 } else { rank - 1 };
        self.check(part[contiguous], rank)?;
        // The tile is what one bulk copy takes; further boxes follow, along dim0 first when swizzled and
        // along the last dimension first when not.
        let mut box_shape: Vec<u64> = part.iter().map(|&size| size.min(MAX_BOX)).collect();
        if self.swizzling_byte_width > 0 {
            box_shape[contiguous] = self.row_elements();
        }
        let mut tile = self.tile(&box_shape, contiguous)?;
        if self.swizzling_byte_width == 0 {
            let order: Vec<Dim> = (0..rank).rev().map(Dim::out).collect();
            tile = tile.transpose_outs(&order)?;
        }
        combine("nvmma_shared", &tile, &self.cga, shape, Excess::Copy)
    }

    fn check(&self, contiguous: u64, rank: usize) -> Result<()> {
        let fail = |reason| Err(invalid("nvmma_shared", reason));
        let (swizzle, bits) = (self.swizzling_byte_width, self.element_bit_width);
        if ![0, 32, 64, 128].contains(&swizzle) || !bits.is_power_of_two() || !(4..=64).contains(&bits) {
            return fail(format!("swizzlingByteWidth {swizzle} with elements of {bits} bits"));
        }
        if self.fp4_padded && (bits != 8 || swizzle != 128) {
            return fail(format!("fp4Padded needs 8-bit elements and 128 bytes, not {bits} and {swizzle}"));
        }
        if swizzle == 0 && self.transposed && rank > 2 {
            return fail(format!("transposed without swizzle has no layout for {rank} dimensions"));
        }
        if swizzle > 0 && (rank < 2 || contiguous < self.row_elements()) {
            let need = self.row_elements();
            return fail(format!(
                "a swizzle of {swizzle} bytes needs rows of {need} elements, not {contiguous}"
            ));
        }
        Ok(())
    }

    /// Elements of one row of the swizzle atom; half as many when each pair is padded to twice its size.
    fn row_elements(&self) -> u64 {
        let elements = self.swizzling_byte_width * 8 / self.element_bit_width;
        if self.fp4_padded { elements / 2 } else { elements }
    }

    /// One box as a matrix: contiguous rows, the first 8 of them swizzled as the pattern for all.
    fn tile(&self, box_shape: &[u64], contiguous: usize) -> Result<LinearLayout> {
        let outs: Vec<(Dim, u32)> =
            box_shape.iter().enumerate().map(|(d, &s)| (Dim::out(d), s.trailing_zeros())).collect();
        let shift = |d: usize| outs[..d].iter().map(|o| o.1).sum::<u32>();
        let column = |c: u64| c.checked_shl(shift(contiguous)).unwrap_or(0);
        let unit = SWIZZLE_UNIT_BITS / self.element_bit_width / if self.fp4_padded { 2 } else { 1 };
        let mut vectors = Vectors::new();
        for bit in (0..outs[contiguous].1).map(|b| 1 << b) {
            if self.fp4_padded && bit == unit {
                vectors.push(0); // 8 bytes of padding after every 8 bytes
            }
            vectors.push(column(bit));
        }
        let per_phase = 128u64.checked_div(self.swizzling_byte_width).unwrap_or(1);
        let max_phase = self.swizzling_byte_width / 16;
        for (i, &row) in self.row_bits(box_shape, contiguous, shift).iter().enumerate() {
            let index = 1u64 << i;
            let phase = if max_phase > 0 && index < ATOM_ROWS { index / per_phase % max_phase } else { 0 };
            vectors.push(row | column(unit * phase));
        }
        let bits = vectors.len() as u32;
        LinearLayout::from_parts([(Dim::OFFSET, bits)], outs, vectors)
    }

    /// The bits of the row number: all dimensions but the contiguous one, the last fastest. In a
    /// transposed tensor of more than two dimensions the last one is the *slowest* instead.
    fn row_bits(&self, part: &[u64], contiguous_dim: usize, shift: impl Fn(usize) -> u32) -> Vectors {
        let outer = (0..part.len()).rev().filter(|&d| d != contiguous_dim);
        let bits = |d: usize| part[d].trailing_zeros();
        let mut rows: Vectors =
            outer.flat_map(|d| (0..bits(d)).map(move |b| (d, b))).map(|(d, b)| 1 << (shift(d) + b)).collect();
        if self.transposed && part.len() > 2 {
            let first: u32 = (1..part.len() - 1).map(bits).sum();
            rows.rotate_left(first as usize);
        }
        rows
    }
}

impl PartitionedShared {
    pub(super) fn to_layout(&self, shape: &[u64]) -> Result<LinearLayout> {
        let name = "partitioned_shared";
        let partition_bits = log2(self.num_partitions, || format!("numPartitions of {name}"))?;
        let group_bits = log2(self.num_groups, || format!("numGroups of {name}"))?;
        let dim = self.partition_dim;
        if !self.partition_layout.is_shared() || dim >= shape.len() {
            let inner = self.partition_layout.mnemonic();
            return Err(invalid(name, format!("dimension {dim} of `{inner}` with shape {shape:?}")));
        }
        let pieces = 1u64.checked_shl(partition_bits + group_bits).filter(|&p| p <= shape[dim]);
        let Some(pieces) = pieces else {
            let (p, g, size) = (self.num_partitions, self.num_groups, shape[dim]);
            return Err(invalid(name, format!("{size} elements do not make {p} × {g} pieces")));
        };
        let mut piece = shape.to_vec();
        piece[dim] /= pieces;
        let out = Dim::out(dim);
        self.partition_layout
            .to_linear_layout(&piece)?
            .product(&LinearLayout::identity_1d(self.num_partitions, Dim::PARTITION, out)?)?
            .product(&LinearLayout::identity_1d(self.num_groups, Dim::OFFSET, out)?)?
            .transpose_ins(&[Dim::OFFSET, Dim::PARTITION, Dim::BLOCK])
    }
}

/// A layout that is written out, for exactly its own shape.
pub(super) fn linear_memory(layout: &LinearLayout, shape: &[u64]) -> Result<LinearLayout> {
    let own = layout.out_dims().map(|d| layout.out_size(d).unwrap_or(1));
    if own.clone().eq(shape.iter().copied()) {
        return layout.transpose_outs(&standard_out_dims(shape.len()).collect::<Vec<_>>());
    }
    Err(Error::DimMismatch {
        what: "shape of a memory layout",
        expected: format!("{:?}", own.collect::<Vec<_>>()),
        got: format!("{shape:?}"),
    })
}
