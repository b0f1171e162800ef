//! [`LinearLayout`]: the data, its constructors and its accessors.

mod algebra;
mod display;
mod properties;
mod shape;

use smallvec::SmallVec;

use crate::f2::{self, Vectors, low_mask};
use crate::{Dim, Error, Result};

pub use display::{BasesDisplay, MatrixDisplay, TableDisplay};

/// Most bits that the dimensions of one side of a layout can have together.
pub(crate) const MAX_BITS: u32 = 64;

/// Coordinates with the names of their dimensions.
pub type Point = SmallVec<[(Dim, u64); 4]>;

/// One dimension and how many bits index it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DimBits {
    pub(crate) dim: Dim,
    pub(crate) bits: u32,
}

pub(crate) type Dims = SmallVec<[DimBits; 4]>;

/// A linear map over F2 between labelled spaces of bits (paper, Definition 4.1).
///
/// The inputs are ordered, named dimensions such as `register, lane, warp, block` or `offset, block`; the
/// outputs are ordered, named dimensions such as `dim0, dim1`. Each dimension has a size that is a power
/// of two, possibly one. The map is given by where it sends each input *bit*: its basis vectors. Any other
/// input goes to the XOR of the basis vectors of its set bits.
///
/// Basis vectors are packed: one `u64` holds the bits of all output dimensions side by side, the first
/// output dimension in the lowest bits. In the same way [`apply_packed`](Self::apply_packed) takes one
/// word with the first input dimension in the lowest bits.
///
/// Dimension order matters to equality, reshaping and printing; it does not matter to composition,
/// inversion and division, which match dimensions by name.
///
/// ```
/// use linear_layout::{Dim, LinearLayout};
/// // A row of 8 elements: 2 registers in each of 4 lanes, neighbours in the same lane.
/// let row = &LinearLayout::identity_1d(2, "register", "dim0")?
///     * &LinearLayout::identity_1d(4, "lane", "dim0")?;
/// assert_eq!(row.to_string(), "{register: [[1]], lane: [[2], [4]]} -> [dim0: 8]");
/// let held = row.apply(&[(Dim::REGISTER, 1), (Dim::LANE, 3)])?;
/// assert_eq!(held.as_slice(), &[(Dim::out(0), 7)]);
/// # Ok::<(), linear_layout::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LinearLayout {
    pub(crate) ins: Dims,
    pub(crate) outs: Dims,
    /// All the basis vectors, the input dimensions one after the other.
    pub(crate) columns: Vectors,
}

impl LinearLayout {
    /// The layout with no dimensions: the neutral element of the product.
    pub fn empty() -> LinearLayout {
        LinearLayout { ins: Dims::new(), outs: Dims::new(), columns: Vectors::new() }
    }

    /// `x ↦ x` from `in_dim` to `out_dim`, both of `size` elements.
    pub fn identity_1d(size: u64, in_dim: impl Into<Dim>, out_dim: impl Into<Dim>) -> Result<LinearLayout> {
        Self::strided_1d(size, 1, in_dim, out_dim)
    }

    /// `x ↦ stride · x` from `in_dim` of `size` to `out_dim` of `stride · size`. Not surjective when
    /// `stride` > 1.
    pub fn strided_1d(
        size: u64,
        stride: u64,
        in_dim: impl Into<Dim>,
        out_dim: impl Into<Dim>,
    ) -> Result<LinearLayout> {
        let (in_dim, out_dim) = (in_dim.into(), out_dim.into());
        let bits = log2(size, || format!("the size of `{in_dim}`"))?;
        let skip = log2(stride, || format!("the stride along `{out_dim}`"))?;
        let columns = (0..bits).map(|b| 1u64.checked_shl(b + skip).unwrap_or(0)).collect();
        Self::from_parts([(in_dim, bits)], [(out_dim, bits + skip)], columns)
    }

    /// `x ↦ 0` from `in_dim` of `size` to `out_dim` of `out_size`: every input holds the same element.
    pub fn zeros_1d(
        size: u64,
        in_dim: impl Into<Dim>,
        out_dim: impl Into<Dim>,
        out_size: u64,
    ) -> Result<LinearLayout> {
        let (in_dim, out_dim) = (in_dim.into(), out_dim.into());
        let bits = log2(size, || format!("the size of `{in_dim}`"))?;
        let out_bits = log2(out_size, || format!("the size of `{out_dim}`"))?;
        Self::from_parts([(in_dim, bits)], [(out_dim, out_bits)], (0..bits).map(|_| 0).collect())
    }

    /// The surjective layout with these basis vectors, each a list of coordinates in the order of
    /// `out_dims`. The size of an output dimension is the smallest power of two above every coordinate.
    ///
    /// # Errors
    /// [`Error::NotSurjective`] when some point of the output so sized is not reached, besides what
    /// [`from_bases_sized`](Self::from_bases_sized) reports.
    ///
    /// ```
    /// use linear_layout::{Dim, LinearLayout};
    /// let swap = LinearLayout::from_bases(
    ///     &[(Dim::LANE, vec![vec![0, 1], vec![1, 0]])],
    ///     &[Dim::out(0), Dim::out(1)],
    /// )?;
    /// assert_eq!(swap.out_size(Dim::out(1)), Some(2));
    /// # Ok::<(), linear_layout::Error>(())
    /// ```
    pub fn from_bases<B: AsRef<[u64]>>(bases: &[(Dim, Vec<B>)], out_dims: &[Dim]) -> Result<LinearLayout> {
        let size = |i: usize| {
            let all = bases.iter().flat_map(|(_, vectors)| vectors);
            let used = all.filter_map(|v| v.as_ref().get(i)).fold(0, |acc, &c| acc | c);
            used.checked_add(1).and_then(u64::checked_next_power_of_two).unwrap_or(u64::MAX)
        };
        let outs: Vec<(Dim, u64)> = out_dims.iter().enumerate().map(|(i, &d)| (d, size(i))).collect();
        Self::from_bases_sized(bases, &outs, true)
    }

    /// The layout with these basis vectors and output sizes.
    ///
    /// # Errors
    /// A basis with the wrong number of coordinates or a coordinate outside its dimension, sizes that are
    /// not powers of two, more than 64 bits on a side, a dimension named twice; and, only when
    /// `require_surjective`, [`Error::NotSurjective`].
    pub fn from_bases_sized<B: AsRef<[u64]>>(
        bases: &[(Dim, Vec<B>)],
        out_dims: &[(Dim, u64)],
        require_surjective: bool,
    ) -> Result<LinearLayout> {
        let outs = dims_of_sizes(out_dims)?;
        let mut columns = Vectors::new();
        for (dim, vectors) in bases {
            for (index, basis) in vectors.iter().enumerate() {
                let basis = basis.as_ref();
                if basis.len() != outs.len() {
                    let (expected, got) = (outs.len(), basis.len());
                    return Err(Error::BasisRank { dim: *dim, index, expected, got });
                }
                columns.push(pack(&outs, basis)?);
            }
        }
        let ins = bases.iter().map(|(d, vectors)| (*d, vectors.len() as u32));
        let layout = Self::from_parts(ins, outs.iter().map(|d| (d.dim, d.bits)), columns)?;
        if require_surjective { layout.require_surjective() } else { Ok(layout) }
    }

    /// The layout with these packed basis vectors: `ins` and `outs` give the bits of each dimension, and
    /// `columns` the basis vectors of all the input dimensions one after the other.
    ///
    /// # Errors
    /// Too many bits, repeated dimensions, or columns that do not fit: [`Error::ActionMismatch`] for their
    /// number and [`Error::TooManyBits`] for their width.
    pub fn from_columns(
        ins: &[(Dim, u32)],
        outs: &[(Dim, u32)],
        columns: impl IntoIterator<Item = u64>,
    ) -> Result<LinearLayout> {
        let columns: Vectors = columns.into_iter().collect();
        let expected: u64 = ins.iter().map(|&(_, bits)| u64::from(bits)).sum();
        if expected != columns.len() as u64 {
            let (expected, got) = (expected as usize, columns.len());
            return Err(Error::ActionMismatch { what: "bases", expected, got });
        }
        let layout = Self::from_parts(ins.iter().copied(), outs.iter().copied(), columns)?;
        let used = layout.columns.iter().fold(0, |acc, c| acc | c);
        if used & !low_mask(layout.total_out_bits()) != 0 {
            let bits = u64::from(64 - used.leading_zeros());
            return Err(Error::TooManyBits { side: "output", bits, limit: layout.total_out_bits() });
        }
        Ok(layout)
    }

    /// Checks the domain limits; `columns` must already fit `ins` and `outs`.
    pub(crate) fn from_parts(
        ins: impl IntoIterator<Item = (Dim, u32)>,
        outs: impl IntoIterator<Item = (Dim, u32)>,
        columns: Vectors,
    ) -> Result<LinearLayout> {
        let ins = check_dims("input", ins.into_iter().map(|(dim, bits)| DimBits { dim, bits }).collect())?;
        let outs = check_dims("output", outs.into_iter().map(|(dim, bits)| DimBits { dim, bits }).collect())?;
        Ok(LinearLayout { ins, outs, columns })
    }

    /// This layout, if it reaches every output point.
    pub fn require_surjective(self) -> Result<LinearLayout> {
        let (rank, bits) = (self.rank(), self.total_out_bits());
        if rank == bits { Ok(self) } else { Err(Error::NotSurjective { rank, bits }) }
    }

    // --- Dimensions -----------------------------------------------------------------------------

    /// The input dimensions in order.
    pub fn in_dims(&self) -> impl ExactSizeIterator<Item = Dim> + DoubleEndedIterator + Clone + '_ {
        self.ins.iter().map(|d| d.dim)
    }

    /// The output dimensions in order.
    pub fn out_dims(&self) -> impl ExactSizeIterator<Item = Dim> + DoubleEndedIterator + Clone + '_ {
        self.outs.iter().map(|d| d.dim)
    }

    /// Number of input dimensions.
    pub fn num_in_dims(&self) -> usize {
        self.ins.len()
    }

    /// Number of output dimensions.
    pub fn num_out_dims(&self) -> usize {
        self.outs.len()
    }

    /// Whether there is an input dimension of that name.
    pub fn has_in_dim(&self, dim: Dim) -> bool {
        self.ins.iter().any(|d| d.dim == dim)
    }

    /// Whether there is an output dimension of that name.
    pub fn has_out_dim(&self, dim: Dim) -> bool {
        self.outs.iter().any(|d| d.dim == dim)
    }

    /// Bits that index an input dimension; zero when there is no such dimension.
    pub fn in_bits(&self, dim: Dim) -> u32 {
        self.ins.iter().find(|d| d.dim == dim).map_or(0, |d| d.bits)
    }

    /// Bits that index an output dimension; zero when there is no such dimension.
    pub fn out_bits(&self, dim: Dim) -> u32 {
        self.outs.iter().find(|d| d.dim == dim).map_or(0, |d| d.bits)
    }

    /// Number of points along an input dimension.
    pub fn in_size(&self, dim: Dim) -> Option<u64> {
        self.ins.iter().find(|d| d.dim == dim).map(|d| 1 << d.bits)
    }

    /// Number of points along an output dimension.
    pub fn out_size(&self, dim: Dim) -> Option<u64> {
        self.outs.iter().find(|d| d.dim == dim).map(|d| 1 << d.bits)
    }

    /// Bits of all input dimensions together.
    pub fn total_in_bits(&self) -> u32 {
        self.columns.len() as u32
    }

    /// Bits of all output dimensions together.
    pub fn total_out_bits(&self) -> u32 {
        self.outs.iter().map(|d| d.bits).sum()
    }

    /// `(name, bits)` of every input dimension.
    pub fn in_dim_bits(&self) -> impl ExactSizeIterator<Item = (Dim, u32)> + Clone + '_ {
        self.ins.iter().map(|d| (d.dim, d.bits))
    }

    /// `(name, bits)` of every output dimension.
    pub fn out_dim_bits(&self) -> impl ExactSizeIterator<Item = (Dim, u32)> + Clone + '_ {
        self.outs.iter().map(|d| (d.dim, d.bits))
    }

    /// Position of the lowest bit of an input dimension in a packed input word.
    pub fn in_shift(&self, dim: Dim) -> Option<u32> {
        shift_of(&self.ins, dim)
    }

    /// Position of the lowest bit of an output dimension in a packed output word.
    pub fn out_shift(&self, dim: Dim) -> Option<u32> {
        shift_of(&self.outs, dim)
    }

    /// The bits of an input dimension within a packed input word.
    pub fn in_mask(&self, dim: Dim) -> u64 {
        mask_of(&self.ins, dim)
    }

    /// The bits of an output dimension within a packed output word.
    pub fn out_mask(&self, dim: Dim) -> u64 {
        mask_of(&self.outs, dim)
    }

    // --- Basis vectors --------------------------------------------------------------------------

    /// Every packed basis vector, the input dimensions one after the other.
    pub fn columns(&self) -> &[u64] {
        &self.columns
    }

    /// The packed basis vectors of one input dimension; empty when there is no such dimension.
    pub fn columns_of(&self, dim: Dim) -> &[u64] {
        match self.in_shift(dim) {
            Some(shift) => &self.columns[shift as usize..(shift + self.in_bits(dim)) as usize],
            None => &[],
        }
    }

    /// The packed basis vector of one input bit.
    pub fn basis(&self, in_dim: Dim, bit: u32) -> Option<u64> {
        self.columns_of(in_dim).get(bit as usize).copied()
    }

    /// The coordinates of one basis vector, in the order of the output dimensions.
    pub fn basis_coords(&self, in_dim: Dim, bit: u32) -> Option<SmallVec<[u64; 4]>> {
        self.basis(in_dim, bit).map(|word| self.coords(word))
    }

    /// One coordinate of one basis vector; `None` when the bit or the output dimension does not exist.
    pub fn basis_along(&self, in_dim: Dim, bit: u32, out_dim: Dim) -> Option<u64> {
        let word = self.basis(in_dim, bit)?;
        self.out_shift(out_dim).map(|shift| word >> shift & low_mask(self.out_bits(out_dim)))
    }

    // --- Evaluation -----------------------------------------------------------------------------

    /// The output point of an input point. Dimensions may come in any order; those left out are zero.
    pub fn apply(&self, point: &[(Dim, u64)]) -> Result<Point> {
        Ok(self.unpack_out(self.apply_packed(self.pack_in(point)?)))
    }

    /// The packed output of a packed input: the XOR of the basis vectors that the bits of `input` select.
    #[inline]
    pub fn apply_packed(&self, input: u64) -> u64 {
        f2::mul(&self.columns, input)
    }

    /// The packed word of an input point. Dimensions left out are zero.
    pub fn pack_in(&self, point: &[(Dim, u64)]) -> Result<u64> {
        pack_point("input", &self.ins, point)
    }

    /// The packed word of an output point. Dimensions left out are zero.
    pub fn pack_out(&self, point: &[(Dim, u64)]) -> Result<u64> {
        pack_point("output", &self.outs, point)
    }

    /// The input point of a packed input word.
    pub fn unpack_in(&self, word: u64) -> Point {
        unpack(&self.ins, word)
    }

    /// The output point of a packed output word.
    pub fn unpack_out(&self, word: u64) -> Point {
        unpack(&self.outs, word)
    }

    /// The coordinates of a packed output word, in the order of the output dimensions.
    pub fn coords(&self, word: u64) -> SmallVec<[u64; 4]> {
        unpack(&self.outs, word).iter().map(|&(_, c)| c).collect()
    }
}

/// log2 of a size, or the error that it is no power of two.
pub(crate) fn log2(value: u64, what: impl FnOnce() -> String) -> Result<u32> {
    if value.is_power_of_two() {
        Ok(value.trailing_zeros())
    } else {
        Err(Error::NotPowerOfTwo { what: what(), value })
    }
}

fn dims_of_sizes(dims: &[(Dim, u64)]) -> Result<Dims> {
    let bits =
        |&(dim, size): &(Dim, u64)| Ok(DimBits { dim, bits: log2(size, || format!("the size of `{dim}`"))? });
    check_dims("output", dims.iter().map(bits).collect::<Result<_>>()?)
}

pub(crate) fn check_dims(side: &'static str, dims: Dims) -> Result<Dims> {
    for (i, d) in dims.iter().enumerate() {
        if dims[..i].iter().any(|e| e.dim == d.dim) {
            return Err(Error::DuplicateDim { side, dim: d.dim });
        }
    }
    let bits = dims.iter().map(|d| u64::from(d.bits)).sum();
    // The size of a dimension is a u64, so one dimension alone has at most 63 bits.
    let limit = if dims.iter().any(|d| d.bits == MAX_BITS) { MAX_BITS - 1 } else { MAX_BITS };
    if bits > u64::from(limit) { Err(Error::TooManyBits { side, bits, limit }) } else { Ok(dims) }
}

pub(crate) fn shift_of(dims: &Dims, dim: Dim) -> Option<u32> {
    let mut shift = 0;
    for d in dims {
        if d.dim == dim {
            return Some(shift);
        }
        shift += d.bits;
    }
    None
}

fn mask_of(dims: &Dims, dim: Dim) -> u64 {
    let mut shift = 0;
    for d in dims {
        if d.dim == dim {
            return low_mask(d.bits).checked_shl(shift).unwrap_or(0);
        }
        shift += d.bits;
    }
    0
}

fn pack(dims: &Dims, coords: &[u64]) -> Result<u64> {
    let (mut word, mut shift) = (0, 0);
    for (d, &value) in dims.iter().zip(coords) {
        if value > low_mask(d.bits) {
            return Err(Error::OutOfRange { dim: d.dim, value, size: 1 << d.bits });
        }
        word |= value.checked_shl(shift).unwrap_or(0);
        shift += d.bits;
    }
    Ok(word)
}

fn pack_point(side: &'static str, dims: &Dims, point: &[(Dim, u64)]) -> Result<u64> {
    let mut word = 0;
    for &(dim, value) in point {
        let shift = shift_of(dims, dim).ok_or_else(|| Error::UnknownDim { side, dim, have: names(dims) })?;
        let bits = dims.iter().find(|d| d.dim == dim).map_or(0, |d| d.bits);
        if value > low_mask(bits) {
            return Err(Error::OutOfRange { dim, value, size: 1 << bits });
        }
        word |= value.checked_shl(shift).unwrap_or(0);
    }
    Ok(word)
}

fn unpack(dims: &Dims, word: u64) -> Point {
    let mut rest = word;
    dims.iter()
        .map(|d| {
            let value = rest & low_mask(d.bits);
            rest = rest.checked_shr(d.bits).unwrap_or(0);
            (d.dim, value)
        })
        .collect()
}

pub(crate) fn names(dims: &Dims) -> String {
    let names: Vec<_> = dims.iter().map(|d| d.dim.name()).collect();
    names.join(", ")
}

pub(crate) fn names_and_sizes(dims: &Dims) -> String {
    let dims: Vec<_> = dims.iter().map(|d| format!("{}: {}", d.dim, 1u64 << d.bits)).collect();
    dims.join(", ")
}
