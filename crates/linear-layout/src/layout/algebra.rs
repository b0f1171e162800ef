//! Composition, product, division and inversion (paper, Section 4.2).

use std::cell::OnceCell;
use std::ops::Mul;

use smallvec::SmallVec;

use super::{DimBits, Dims, LinearLayout, check_dims, names, names_and_sizes, shift_of};
use crate::f2::{self, Echelon, Vectors, low_mask};
use crate::{Dim, Error, Result};

impl LinearLayout {
    /// `outer ∘ self`: first this layout, then `outer` (paper, Definition 4.2).
    ///
    /// # Errors
    /// The output dimensions of this layout must be the input dimensions of `outer`, in any order, and
    /// none may be larger than there.
    ///
    /// ```
    /// use linear_layout::LinearLayout;
    /// let a = LinearLayout::strided_1d(4, 2, "lane", "offset")?;
    /// let b = LinearLayout::strided_1d(8, 4, "offset", "dim0")?;
    /// assert_eq!(a.compose(&b)?.columns(), &[8, 16]);
    /// # Ok::<(), linear_layout::Error>(())
    /// ```
    pub fn compose(&self, outer: &LinearLayout) -> Result<LinearLayout> {
        let columns = if self.outs == outer.ins {
            self.columns.iter().map(|&c| f2::mul(&outer.columns, c)).collect()
        } else {
            let moves = self.out_to_in(outer)?;
            self.columns.iter().map(|&c| f2::mul(&outer.columns, move_fields(&moves, c))).collect()
        };
        Ok(LinearLayout { ins: self.ins.clone(), outs: outer.outs.clone(), columns })
    }

    /// Where each of my output dimensions lies in the packed input of `outer`.
    fn out_to_in(&self, outer: &LinearLayout) -> Result<SmallVec<[Field; 4]>> {
        let mismatch = || Error::DimMismatch {
            what: "compose",
            expected: names_and_sizes(&outer.ins),
            got: names_and_sizes(&self.outs),
        };
        if self.outs.len() != outer.ins.len() {
            return Err(mismatch());
        }
        let mut from = 0;
        let mut moves = SmallVec::new();
        for d in &self.outs {
            let to = outer.in_shift(d.dim).ok_or_else(mismatch)?;
            if d.bits > outer.in_bits(d.dim) {
                return Err(mismatch());
            }
            moves.push(Field { from, to, bits: d.bits });
            from += d.bits;
        }
        Ok(moves)
    }

    /// The product `self × outer` (paper, Definition 4.3), which `*` also computes when the layouts are
    /// known to fit.
    ///
    /// Dimensions of the same name are put together: this layout has the low bits, `outer` the high ones.
    /// The others are kept apart. The order of dimensions is one that agrees with both layouts, mine
    /// first wherever there is a choice.
    ///
    /// # Errors
    /// More than 64 bits on a side, or orders that contradict each other.
    pub fn product(&self, outer: &LinearLayout) -> Result<LinearLayout> {
        let ins = check_dims("input", merge_dims("input", &self.ins, &outer.ins)?)?;
        let outs = check_dims("output", merge_dims("output", &self.outs, &outer.outs)?)?;
        let mine = fields(&self.outs, &outs, |_| 0);
        let theirs = fields(&outer.outs, &outs, |dim| self.out_bits(dim));
        let mut columns = Vectors::new();
        for d in &ins {
            columns.extend(self.columns_of(d.dim).iter().map(|&c| move_fields(&mine, c)));
            columns.extend(outer.columns_of(d.dim).iter().map(|&c| move_fields(&theirs, c)));
        }
        Ok(LinearLayout { ins, outs, columns })
    }

    /// `self /ₗ tile` (paper, Definition 4.4): the layout `rest` with `tile × rest = self`, if this layout
    /// has that block structure label by label. All dimensions of this layout are kept, those that the
    /// tile uses up with size one.
    ///
    /// ```
    /// use linear_layout::LinearLayout;
    /// let layout = LinearLayout::identity_1d(32, "register", "offset")?;
    /// let tile = LinearLayout::identity_1d(4, "register", "offset")?;
    /// let rest = layout.divide_left(&tile).expect("the two lowest bits are the identity");
    /// assert_eq!(rest, LinearLayout::identity_1d(8, "register", "offset")?);
    /// assert_eq!(&tile * &rest, layout);
    /// # Ok::<(), linear_layout::Error>(())
    /// ```
    pub fn divide_left(&self, tile: &LinearLayout) -> Option<LinearLayout> {
        self.divide(tile, true)
    }

    /// The layout `rest` with `rest × tile = self`, if there is one: as
    /// [`divide_left`](Self::divide_left), with the tile in the high bits.
    pub fn divide_right(&self, tile: &LinearLayout) -> Option<LinearLayout> {
        self.divide(tile, false)
    }

    fn divide(&self, tile: &LinearLayout, left: bool) -> Option<LinearLayout> {
        let rest_of = |mine: &Dims, theirs: &Dims| -> Option<Dims> {
            if theirs.iter().any(|t| !mine.iter().any(|d| d.dim == t.dim)) {
                return None;
            }
            let left_over = |d: &DimBits| {
                let used = theirs.iter().find(|t| t.dim == d.dim).map_or(0, |t| t.bits);
                d.bits.checked_sub(used).map(|bits| DimBits { dim: d.dim, bits })
            };
            mine.iter().map(left_over).collect()
        };
        let ins = rest_of(&self.ins, &tile.ins)?;
        let outs = rest_of(&self.outs, &tile.outs)?;
        // Where the fields of the tile and of the rest lie in my packed output.
        let rest_bits = |dim| shift_bits(&outs, dim);
        let tile_fields = fields(&tile.outs, &self.outs, |dim| if left { 0 } else { rest_bits(dim) });
        let rest_fields = fields(&outs, &self.outs, |dim| if left { tile.out_bits(dim) } else { 0 });
        let tile_mask = tile_fields.iter().fold(0, |m, f| m | place(low_mask(f.bits), f.to));
        let rest_mask = low_mask(self.total_out_bits()) & !tile_mask;
        let back: SmallVec<[Field; 4]> =
            rest_fields.iter().map(|f| Field { from: f.to, to: f.from, bits: f.bits }).collect();

        let mut columns = Vectors::new();
        for d in &self.ins {
            let mine = self.columns_of(d.dim);
            let theirs = tile.columns_of(d.dim);
            let (tile_part, rest_part) = if left {
                mine.split_at(theirs.len())
            } else {
                let (rest, tile) = mine.split_at(mine.len() - theirs.len());
                (tile, rest)
            };
            let same = |(&m, &t): (&u64, &u64)| m == move_fields(&tile_fields, t);
            if !tile_part.iter().zip(theirs).all(same) || rest_part.iter().any(|&c| c & !rest_mask != 0) {
                return None;
            }
            columns.extend(rest_part.iter().map(|&c| move_fields(&back, c)));
        }
        Some(LinearLayout { ins, outs, columns })
    }

    /// The inverse of a square layout of full rank: from its output dimensions to its input dimensions.
    pub fn invert(&self) -> Result<LinearLayout> {
        let (in_bits, out_bits) = (self.total_in_bits(), self.total_out_bits());
        let inverse = if in_bits == out_bits { f2::inverse(&self.columns) } else { None };
        match inverse {
            Some(columns) => Ok(LinearLayout { ins: self.outs.clone(), outs: self.ins.clone(), columns }),
            None => Err(Error::NotInvertible { in_bits, out_bits, rank: self.rank() }),
        }
    }

    /// A layout `P` from the outputs to the inputs with `self ∘ P ∘ self = self` and `P ∘ self ∘ P = P`,
    /// for a layout of any rank.
    ///
    /// Free input bits, those whose basis vector depends on earlier ones, stay zero in every output of
    /// `P`, so of several inputs that map to one point `P` finds the one with the lowest bits. When the
    /// layout is surjective this is its right inverse (paper, Definition 4.5); when it is injective, a
    /// left inverse; when both, the inverse.
    pub fn pseudo_invert(&self) -> LinearLayout {
        let echelon = Echelon::of(&self.columns);
        // A unit vector e is e' + (combination of leading vectors): map the non-leading rest e' to zero.
        let columns = (0..self.total_out_bits()).map(|i| echelon.reduce(1 << i).1).collect();
        LinearLayout { ins: self.outs.clone(), outs: self.ins.clone(), columns }
    }

    /// `X = outer⁻¹ ∘ self`: the layout from my inputs to the inputs of `outer` with `outer ∘ X = self`.
    /// Read as a conversion, `X` says for each place in this layout where in `outer` its element lies.
    ///
    /// Of the many solutions it takes the one of the paper (Section 5.4): an input dimension whose basis
    /// vectors are the same in both layouts maps by the identity, so that nothing moves along it; the
    /// other inputs take the solution in which the free bits of `outer` are zero, so that elements held
    /// in several places are all read from one place. See [`solve_for`](Self::solve_for) for the variant
    /// that compares bit by bit.
    ///
    /// # Errors
    /// The output dimensions must be the same, in any order, and mine no larger; and `outer` must reach
    /// every point that this layout reaches ([`Error::NoSolution`]).
    ///
    /// ```
    /// use linear_layout::{Dim, LinearLayout};
    /// // Two layouts of four elements in two lanes of two registers each.
    /// let (reg, lane) = (Dim::REGISTER, Dim::LANE);
    /// let blocked = LinearLayout::from_bases(&[(reg, vec![[1]]), (lane, vec![[2]])], &[Dim::out(0)])?;
    /// let striped = LinearLayout::from_bases(&[(reg, vec![[2]]), (lane, vec![[1]])], &[Dim::out(0)])?;
    /// let cvt = striped.invert_and_compose(&blocked)?;
    /// // Register 1 of lane 0, when striped, is found in register 0 of lane 1 of the blocked layout.
    /// assert_eq!(cvt.apply(&[(reg, 1)])?.as_slice(), &[(reg, 0), (lane, 1)]);
    /// # Ok::<(), linear_layout::Error>(())
    /// ```
    pub fn invert_and_compose(&self, outer: &LinearLayout) -> Result<LinearLayout> {
        let mine = self.columns_in_space_of(outer)?;
        // Dimensions that agree are left out first: nothing moves along them. A layout that needs them all
        // the same falls back on the whole of `outer`.
        let mut agreeing = 0u64;
        let mut identity: SmallVec<[bool; 4]> = SmallVec::new();
        let mut at = 0;
        for d in &self.ins {
            let part = &mine[at..at + d.bits as usize];
            at += part.len();
            identity.push(outer.has_in_dim(d.dim) && outer.columns_of(d.dim) == part);
            if identity.last() == Some(&true) {
                agreeing |= outer.in_mask(d.dim);
            }
        }
        let reduced = Echelon::of(&masked(&outer.columns, !agreeing));
        let full = OnceCell::new();
        let solve = |column| {
            reduced
                .express(column)
                .or_else(|| full.get_or_init(|| Echelon::of(&outer.columns)).express(column))
        };
        let mut columns = Vectors::new();
        for (d, &identity) in self.ins.iter().zip(&identity) {
            let shift = outer.in_shift(d.dim).unwrap_or(0);
            for bit in 0..d.bits {
                let column = mine[columns.len()];
                let solution = if identity { Some(1 << (shift + bit)) } else { solve(column) };
                columns.push(solution.ok_or(Error::NoSolution { dim: d.dim, bit })?);
            }
        }
        Ok(LinearLayout { ins: self.ins.clone(), outs: outer.ins.clone(), columns })
    }

    /// As [`invert_and_compose`](Self::invert_and_compose), but an input *bit* maps to itself wherever its
    /// basis vector is the same in both layouts, even if others of its dimension differ.
    ///
    /// Elements that several lanes or warps of `outer` hold are then read by each place from its own copy
    /// where it has one.
    pub fn solve_for(&self, outer: &LinearLayout) -> Result<LinearLayout> {
        let mine = self.columns_in_space_of(outer)?;
        let echelon = Echelon::of(&outer.columns);
        let mut columns = Vectors::new();
        let mut at = 0;
        for d in &self.ins {
            let theirs = outer.columns_of(d.dim);
            let shift = outer.in_shift(d.dim).unwrap_or(0);
            for bit in 0..d.bits as usize {
                let column = mine[at + bit];
                let own = theirs.get(bit) == Some(&column);
                let solution = if own { Some(1 << (shift + bit as u32)) } else { echelon.express(column) };
                columns.push(solution.ok_or(Error::NoSolution { dim: d.dim, bit: bit as u32 })?);
            }
            at += d.bits as usize;
        }
        Ok(LinearLayout { ins: self.ins.clone(), outs: outer.ins.clone(), columns })
    }

    /// My basis vectors packed in the order and sizes of `outer`'s output dimensions.
    fn columns_in_space_of(&self, outer: &LinearLayout) -> Result<Vectors> {
        if self.outs == outer.outs {
            return Ok(self.columns.clone());
        }
        let fits = |d: &DimBits| outer.has_out_dim(d.dim) && d.bits <= outer.out_bits(d.dim);
        if self.outs.len() != outer.outs.len() || !self.outs.iter().all(fits) {
            return Err(Error::DimMismatch {
                what: "invert_and_compose",
                expected: names_and_sizes(&outer.outs),
                got: names_and_sizes(&self.outs),
            });
        }
        let moves = fields(&self.outs, &outer.outs, |_| 0);
        Ok(self.columns.iter().map(|&c| move_fields(&moves, c)).collect())
    }
}

/// The product, for layouts that are known to fit.
///
/// # Panics
/// When [`LinearLayout::product`] is an error; use that where the operands come from outside.
impl Mul for &LinearLayout {
    type Output = LinearLayout;

    fn mul(self, outer: &LinearLayout) -> LinearLayout {
        match self.product(outer) {
            Ok(layout) => layout,
            #[expect(clippy::panic, reason = "operators have no errors; `product` has")]
            Err(error) => panic!("{error}"),
        }
    }
}

/// A run of `bits` bits to be moved from one place in a word to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bits: u32,
}

pub(super) fn place(value: u64, shift: u32) -> u64 {
    value.checked_shl(shift).unwrap_or(0)
}

#[inline]
pub(super) fn move_fields(fields: &[Field], word: u64) -> u64 {
    let taken = |f: &Field| place(word.checked_shr(f.from).unwrap_or(0) & low_mask(f.bits), f.to);
    fields.iter().fold(0, |acc, f| acc | taken(f))
}

/// How to move words packed as `from` to words packed as `to`, each dimension `above(dim)` bits higher
/// than its place there.
pub(super) fn fields(from: &Dims, to: &Dims, above: impl Fn(Dim) -> u32) -> SmallVec<[Field; 4]> {
    let mut shift = 0;
    from.iter()
        .map(|d| {
            let field =
                Field { from: shift, to: shift_of(to, d.dim).unwrap_or(0) + above(d.dim), bits: d.bits };
            shift += d.bits;
            field
        })
        .collect()
}

fn shift_bits(dims: &Dims, dim: Dim) -> u32 {
    dims.iter().find(|d| d.dim == dim).map_or(0, |d| d.bits)
}

/// The columns whose position is in `keep`; the others become zero, which no solution uses.
fn masked(columns: &[u64], keep: u64) -> Vectors {
    columns.iter().enumerate().map(|(j, &c)| if keep >> j & 1 == 1 { c } else { 0 }).collect()
}

/// The shortest list that contains `left` and `right` in their orders, with the bits of common dimensions
/// added, and `left` first wherever there is a choice.
fn merge_dims(side: &'static str, left: &Dims, right: &Dims) -> Result<Dims> {
    let mut merged = Dims::new();
    let (mut l, mut r) = (left.iter().peekable(), right.iter().peekable());
    let bits_in = |dims: &Dims, dim| dims.iter().find(|d| d.dim == dim).map(|d| d.bits);
    loop {
        match (l.peek(), r.peek()) {
            (Some(a), Some(b)) if a.dim == b.dim => {
                merged.push(DimBits { dim: a.dim, bits: a.bits + b.bits });
                l.next();
                r.next();
            }
            (Some(a), _) if bits_in(right, a.dim).is_none() => merged.extend(l.next().copied()),
            (_, Some(b)) if bits_in(left, b.dim).is_none() => merged.extend(r.next().copied()),
            (None, None) => return Ok(merged),
            _ => return Err(Error::OrderConflict { side, left: names(left), right: names(right) }),
        }
    }
}
