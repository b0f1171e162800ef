//! Operations that rearrange, cut and join the dimensions of a layout.

use super::algebra::{fields, move_fields, place};
use super::{DimBits, Dims, LinearLayout, check_dims, log2, names, names_and_sizes};
use crate::f2::{Vectors, low_mask};
use crate::{Dim, Error, Result};

impl LinearLayout {
    /// The part of the map from `ins` to `outs`: the rows and columns of those labels, in the order that
    /// they have in this layout. `L_Reg`, the columns that act on registers, is `sublayout(&[REGISTER], all)`.
    pub fn sublayout(&self, ins: &[Dim], outs: &[Dim]) -> Result<LinearLayout> {
        self.check_known("input", &self.ins, ins)?;
        self.check_known("output", &self.outs, outs)?;
        let new_ins: Dims = self.ins.iter().filter(|d| ins.contains(&d.dim)).copied().collect();
        let new_outs: Dims = self.outs.iter().filter(|d| outs.contains(&d.dim)).copied().collect();
        let gather = fields_into(&self.outs, &new_outs);
        let columns =
            new_ins.iter().flat_map(|d| self.columns_of(d.dim)).map(|&c| move_fields(&gather, c)).collect();
        Ok(LinearLayout { ins: new_ins, outs: new_outs, columns })
    }

    /// Whether `ins` have no influence on `outs`. Names that do not exist count as no influence.
    pub fn sublayout_is_zero(&self, ins: &[Dim], outs: &[Dim]) -> bool {
        let mask = outs.iter().fold(0, |m, &d| m | self.out_mask(d));
        ins.iter().flat_map(|&d| self.columns_of(d)).all(|c| c & mask == 0)
    }

    /// Whether the part of the map from `ins` to `outs` is the identity matrix, bit *i* of the inputs
    /// together going to bit *i* of the outputs together.
    pub fn sublayout_is_identity(&self, ins: &[Dim], outs: &[Dim]) -> bool {
        self.sublayout(ins, outs).is_ok_and(|part| {
            part.total_in_bits() == part.total_out_bits()
                && part.columns.iter().enumerate().all(|(i, &c)| c == 1 << i)
        })
    }

    /// Whether each of `dims` is an input and an output of the same size, maps to itself by the identity,
    /// and neither influences other outputs nor is influenced by other inputs.
    pub fn is_trivial_over(&self, dims: &[Dim]) -> bool {
        dims.iter().all(|&dim| {
            let (Some(shift), mask) = (self.out_shift(dim), self.out_mask(dim)) else { return false };
            self.has_in_dim(dim)
                && self.in_bits(dim) == self.out_bits(dim)
                && self.columns_of(dim).iter().enumerate().all(|(i, &c)| c == 1 << (shift + i as u32))
                && self
                    .in_dims()
                    .filter(|&d| d != dim)
                    .flat_map(|d| self.columns_of(d))
                    .all(|c| c & mask == 0)
        })
    }

    /// The layout without `dims`, if it is [trivial over](Self::is_trivial_over) them: what is left to do
    /// when nothing moves along `dims`.
    pub fn quotient(&self, dims: &[Dim]) -> Option<LinearLayout> {
        if !self.is_trivial_over(dims) {
            return None;
        }
        let ins: Vec<Dim> = self.in_dims().filter(|d| !dims.contains(d)).collect();
        let outs: Vec<Dim> = self.out_dims().filter(|d| !dims.contains(d)).collect();
        self.sublayout(&ins, &outs).ok()
    }

    /// The same map with the input dimensions in another order. `order` names each exactly once.
    pub fn transpose_ins(&self, order: &[Dim]) -> Result<LinearLayout> {
        let ins = self.permuted("transpose_ins", &self.ins, order)?;
        let columns = ins.iter().flat_map(|d| self.columns_of(d.dim)).copied().collect();
        Ok(LinearLayout { ins, outs: self.outs.clone(), columns })
    }

    /// The same map with the output dimensions in another order. `order` names each exactly once.
    pub fn transpose_outs(&self, order: &[Dim]) -> Result<LinearLayout> {
        let outs = self.permuted("transpose_outs", &self.outs, order)?;
        if outs == self.outs {
            return Ok(self.clone());
        }
        let moves = fields(&self.outs, &outs, |_| 0);
        let columns = self.columns.iter().map(|&c| move_fields(&moves, c)).collect();
        Ok(LinearLayout { ins: self.ins.clone(), outs, columns })
    }

    /// The same map with its input bits, from the first dimension's lowest on, dealt out to `dims` of
    /// these sizes. The number of bits must not change.
    pub fn reshape_ins(&self, dims: &[(Dim, u64)]) -> Result<LinearLayout> {
        let ins = reshaped("reshape_ins", "input", &self.ins, dims)?;
        Ok(LinearLayout { ins, outs: self.outs.clone(), columns: self.columns.clone() })
    }

    /// The same map with its output bits, from the first dimension's lowest on, dealt out to `dims` of
    /// these sizes. The number of bits must not change.
    ///
    /// Tensors are stored with the *last* dimension fastest, so a `tt.reshape` transposes the outputs to
    /// descending order before and back after.
    pub fn reshape_outs(&self, dims: &[(Dim, u64)]) -> Result<LinearLayout> {
        let outs = reshaped("reshape_outs", "output", &self.outs, dims)?;
        Ok(LinearLayout { ins: self.ins.clone(), outs, columns: self.columns.clone() })
    }

    /// All input dimensions as one, named as the first (or `register` when there is none).
    pub fn flatten_ins(&self) -> Result<LinearLayout> {
        let dim = self.ins.first().map_or(Dim::REGISTER, |d| d.dim);
        let ins = [(dim, self.total_in_bits())];
        Self::from_parts(ins, self.out_dim_bits(), self.columns.clone())
    }

    /// All output dimensions as one, named as the first (or `dim0` when there is none). Packed basis
    /// vectors do not change.
    pub fn flatten_outs(&self) -> Result<LinearLayout> {
        let dim = self.outs.first().map_or(Dim::out(0), |d| d.dim);
        let outs = [(dim, self.total_out_bits())];
        Self::from_parts(self.in_dim_bits(), outs, self.columns.clone())
    }

    /// The same map with an input dimension renamed.
    pub fn rename_in(&self, from: Dim, to: Dim) -> Result<LinearLayout> {
        let ins = renamed("input", &self.ins, from, to)?;
        Ok(LinearLayout { ins, outs: self.outs.clone(), columns: self.columns.clone() })
    }

    /// The same map with an output dimension renamed.
    pub fn rename_out(&self, from: Dim, to: Dim) -> Result<LinearLayout> {
        let outs = renamed("output", &self.outs, from, to)?;
        Ok(LinearLayout { ins: self.ins.clone(), outs, columns: self.columns.clone() })
    }

    /// The same map without an input dimension of size one.
    pub fn squeeze_in(&self, dim: Dim) -> Result<LinearLayout> {
        let ins = squeezed("squeeze_in", "input", &self.ins, dim)?;
        Ok(LinearLayout { ins, outs: self.outs.clone(), columns: self.columns.clone() })
    }

    /// The same map without an output dimension of size one.
    pub fn squeeze_out(&self, dim: Dim) -> Result<LinearLayout> {
        let outs = squeezed("squeeze_out", "output", &self.outs, dim)?;
        Ok(LinearLayout { ins: self.ins.clone(), outs, columns: self.columns.clone() })
    }

    /// The same map with a new last input dimension of size one.
    pub fn unsqueeze_in(&self, dim: Dim) -> Result<LinearLayout> {
        let ins = self.in_dim_bits().chain([(dim, 0)]);
        Self::from_parts(ins, self.out_dim_bits(), self.columns.clone())
    }

    /// The same map with a new last output dimension of size one.
    pub fn unsqueeze_out(&self, dim: Dim) -> Result<LinearLayout> {
        let outs = self.out_dim_bits().chain([(dim, 0)]);
        Self::from_parts(self.in_dim_bits(), outs, self.columns.clone())
    }

    /// The map on both sets of inputs, `(x, y) ↦ self(x) ⊕ other(y)`. The output dimensions must be the
    /// same; the input dimensions must differ.
    pub fn concat_ins(&self, other: &LinearLayout) -> Result<LinearLayout> {
        if self.outs != other.outs {
            return Err(mismatch("concat_ins", &self.outs, &other.outs));
        }
        let columns = self.columns.iter().chain(&other.columns).copied().collect();
        Self::from_parts(self.in_dim_bits().chain(other.in_dim_bits()), self.out_dim_bits(), columns)
    }

    /// The map to both sets of outputs, `x ↦ (self(x), other(x))`. The input dimensions must be the same;
    /// the output dimensions must differ.
    pub fn concat_outs(&self, other: &LinearLayout) -> Result<LinearLayout> {
        if self.ins != other.ins {
            return Err(mismatch("concat_outs", &self.ins, &other.ins));
        }
        let outs = self.out_dim_bits().chain(other.out_dim_bits());
        let mut joined = Self::from_parts(self.in_dim_bits(), outs, Vectors::new())?;
        let above = self.total_out_bits();
        let pairs = self.columns.iter().zip(&other.columns);
        joined.columns = pairs.map(|(&low, &high)| low | place(high, above)).collect();
        Ok(joined)
    }

    /// The layout with an input dimension of another size: the last basis vectors are dropped, or zero
    /// basis vectors (copies of the same elements) are added.
    pub fn resize_in(&self, dim: Dim, size: u64) -> Result<LinearLayout> {
        self.check_known("input", &self.ins, &[dim])?;
        let bits = log2(size, || format!("the size of `{dim}`"))?;
        let resized = |d: DimBits| (d.dim, if d.dim == dim { bits } else { d.bits });
        let mut columns = Vectors::new();
        for (d, new_bits) in self.ins.iter().map(|&d| resized(d)) {
            let mine = self.columns_of(d);
            columns.extend((0..new_bits as usize).map(|i| mine.get(i).copied().unwrap_or(0)));
        }
        Self::from_parts(self.ins.iter().map(|&d| resized(d)), self.out_dim_bits(), columns)
    }

    /// The layout with an output dimension of another size: coordinates are taken modulo `size` when it
    /// shrinks, so that what lay beyond wraps around; when it grows, the new points are not reached.
    pub fn resize_out(&self, dim: Dim, size: u64) -> Result<LinearLayout> {
        self.check_known("output", &self.outs, &[dim])?;
        let bits = log2(size, || format!("the size of `{dim}`"))?;
        let resized = |d: &DimBits| DimBits { dim: d.dim, bits: if d.dim == dim { bits } else { d.bits } };
        let outs = check_dims("output", self.outs.iter().map(resized).collect())?;
        let mut moves = fields(&self.outs, &outs, |_| 0);
        for (field, d) in moves.iter_mut().zip(&outs) {
            field.bits = field.bits.min(d.bits);
        }
        let columns = self.columns.iter().map(|&c| move_fields(&moves, c)).collect();
        Ok(LinearLayout { ins: self.ins.clone(), outs, columns })
    }

    /// The layout without the zero basis vectors of `in_dim`: without the copies along it.
    pub fn remove_zero_bases(&self, in_dim: Dim) -> Result<LinearLayout> {
        self.check_known("input", &self.ins, &[in_dim])?;
        let mut ins = self.ins.clone();
        let mut columns = Vectors::new();
        for d in &mut ins {
            let dim = d.dim;
            let before = columns.len();
            columns.extend(self.columns_of(dim).iter().copied().filter(|&c| dim != in_dim || c != 0));
            d.bits = (columns.len() - before) as u32;
        }
        Ok(LinearLayout { ins, outs: self.outs.clone(), columns })
    }

    /// Fails on the first of the dimensions `wanted` that is not among `dims`.
    pub(crate) fn check_known(&self, side: &'static str, dims: &Dims, wanted: &[Dim]) -> Result<()> {
        match wanted.iter().find(|&&w| !dims.iter().any(|d| d.dim == w)) {
            Some(&dim) => Err(Error::UnknownDim { side, dim, have: names(dims) }),
            None => Ok(()),
        }
    }

    fn permuted(&self, what: &'static str, dims: &Dims, order: &[Dim]) -> Result<Dims> {
        let find = |dim: &Dim| dims.iter().find(|d| d.dim == *dim).copied();
        let permuted: Option<Dims> = order.iter().map(find).collect();
        let repeated = order.iter().enumerate().any(|(i, d)| order[..i].contains(d));
        match permuted {
            Some(permuted) if permuted.len() == dims.len() && !repeated => Ok(permuted),
            _ => {
                let got: Vec<_> = order.iter().map(|d| d.name()).collect();
                Err(Error::DimMismatch { what, expected: names(dims), got: got.join(", ") })
            }
        }
    }
}

/// The moves that gather the fields that `to` keeps out of words packed as `from`.
fn fields_into(from: &Dims, to: &Dims) -> smallvec::SmallVec<[super::algebra::Field; 4]> {
    let mut back = fields(to, from, |_| 0);
    for field in &mut back {
        std::mem::swap(&mut field.from, &mut field.to);
    }
    back
}

fn reshaped(what: &'static str, side: &'static str, old: &Dims, dims: &[(Dim, u64)]) -> Result<Dims> {
    let bits =
        |&(dim, size): &(Dim, u64)| Ok(DimBits { dim, bits: log2(size, || format!("the size of `{dim}`"))? });
    let new = check_dims(side, dims.iter().map(bits).collect::<Result<_>>()?)?;
    let total = |dims: &Dims| dims.iter().map(|d| d.bits).sum::<u32>();
    if total(&new) == total(old) { Ok(new) } else { Err(mismatch(what, old, &new)) }
}

fn renamed(side: &'static str, dims: &Dims, from: Dim, to: Dim) -> Result<Dims> {
    if !dims.iter().any(|d| d.dim == from) {
        return Err(Error::UnknownDim { side, dim: from, have: names(dims) });
    }
    let rename = |d: &DimBits| DimBits { dim: if d.dim == from { to } else { d.dim }, bits: d.bits };
    check_dims(side, dims.iter().map(rename).collect())
}

fn squeezed(what: &'static str, side: &'static str, dims: &Dims, dim: Dim) -> Result<Dims> {
    match dims.iter().find(|d| d.dim == dim) {
        None => Err(Error::UnknownDim { side, dim, have: names(dims) }),
        Some(d) if d.bits > 0 => {
            let (expected, got) =
                (format!("{dim}: 1"), format!("{dim}: {}", low_mask(d.bits).wrapping_add(1)));
            Err(Error::DimMismatch { what, expected, got })
        }
        Some(_) => Ok(dims.iter().filter(|d| d.dim != dim).copied().collect()),
    }
}

fn mismatch(what: &'static str, expected: &Dims, got: &Dims) -> Error {
    Error::DimMismatch { what, expected: names_and_sizes(expected), got: names_and_sizes(got) }
}
