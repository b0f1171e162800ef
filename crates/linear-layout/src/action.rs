//! Register actions: the paper's `P_Reg`, a choice and order of the bases of one input dimension.

use smallvec::SmallVec;

use crate::f2::Vectors;
use crate::{Dim, Error, LinearLayout, Result};

/// A selection and permutation of the basis vectors of one input dimension (paper, Section 5.3,
/// "Generalized Vectorization"). Applied to a layout it reorders its columns; applied to the values that a
/// thread holds, one per register, it reorders and drops them to match.
///
/// ```
/// use linear_layout::{Dim, LinearLayout, RegisterAction};
/// // Four registers; the second basis is zero, so registers 2 and 3 repeat 0 and 1.
/// let layout = LinearLayout::from_bases(&[(Dim::REGISTER, vec![[1], [0]])], &[Dim::out(0)])?;
/// let action = RegisterAction::drop_broadcast(&layout);
/// assert_eq!(action.apply_to_layout(&layout)?.columns(), &[1]);
/// assert_eq!(action.apply_to_values(&["a", "b", "a", "b"])?, ["a", "b"]);
/// assert_eq!(action.undo_on_values(&["a", "b"])?, ["a", "b", "a", "b"]);
/// # Ok::<(), linear_layout::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegisterAction {
    dim: Dim,
    in_bits: u32,
    /// `new basis i = old basis kept[i]`.
    kept: SmallVec<[u8; 12]>,
}

impl RegisterAction {
    /// The action on a dimension of `in_bits` bases whose new basis `i` is the old basis `kept[i]`.
    ///
    /// # Errors
    /// A basis that does not exist ([`Error::OutOfRange`]) or is named twice ([`Error::DuplicateDim`]).
    pub fn new(dim: Dim, in_bits: u32, kept: &[u32]) -> Result<RegisterAction> {
        for (i, &k) in kept.iter().enumerate() {
            if k >= in_bits.min(64) {
                return Err(Error::OutOfRange { dim, value: k.into(), size: in_bits.into() });
            }
            if kept[..i].contains(&k) {
                return Err(Error::DuplicateDim { side: "input", dim });
            }
        }
        Ok(RegisterAction { dim, in_bits, kept: kept.iter().map(|&k| k as u8).collect() })
    }

    /// The action that changes nothing on the registers of `layout`.
    pub fn identity(layout: &LinearLayout) -> RegisterAction {
        let in_bits = layout.in_bits(Dim::REGISTER);
        RegisterAction { dim: Dim::REGISTER, in_bits, kept: (0..in_bits as u8).collect() }
    }

    /// The action that drops the register bases whose vector is zero: the copies within a thread.
    pub fn drop_broadcast(layout: &LinearLayout) -> RegisterAction {
        let zero = layout.zero_mask(Dim::REGISTER);
        let in_bits = layout.in_bits(Dim::REGISTER);
        let kept = (0..in_bits as u8).filter(|&i| zero >> i & 1 == 0).collect();
        RegisterAction { dim: Dim::REGISTER, in_bits, kept }
    }

    /// The permutation of the registers of `layout` that makes it divisible on the left by `tile`, when
    /// there is one: the register bases that `tile` asks for come first, the others follow in their order.
    ///
    /// ```
    /// use linear_layout::{Dim, LinearLayout, RegisterAction};
    /// // Register bit 1, not 0, runs along the offset.
    /// let layout = LinearLayout::from_bases(&[(Dim::REGISTER, vec![[2], [1]])], &[Dim::OFFSET])?;
    /// let tile = LinearLayout::identity_1d(2, "register", "offset")?;
    /// assert!(layout.divide_left(&tile).is_none());
    /// let action = RegisterAction::for_division(&layout, &tile).expect("swapping the bits does it");
    /// assert!(action.apply_to_layout(&layout)?.divide_left(&tile).is_some());
    /// # Ok::<(), linear_layout::Error>(())
    /// ```
    pub fn for_division(layout: &LinearLayout, tile: &LinearLayout) -> Option<RegisterAction> {
        let mine = layout.columns_of(Dim::REGISTER);
        let mut kept: SmallVec<[u8; 12]> = SmallVec::new();
        for &wanted in tile.columns_of(Dim::REGISTER) {
            let wanted = layout.pack_out(&tile.unpack_out(wanted)).ok()?;
            let found = (0..mine.len()).find(|&i| mine[i] == wanted && !kept.contains(&(i as u8)))?;
            kept.push(found as u8);
        }
        let others = (0..mine.len() as u8).filter(|i| !kept.contains(i)).collect::<SmallVec<[u8; 12]>>();
        kept.extend(others);
        let action = RegisterAction { dim: Dim::REGISTER, in_bits: mine.len() as u32, kept };
        action.apply_to_layout(layout).ok()?.divide_left(tile).map(|_| action)
    }

    /// The input dimension acted upon.
    pub fn dim(&self) -> Dim {
        self.dim
    }

    /// For each new basis, the old basis that it is.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.kept.iter().map(|&k| k.into())
    }

    /// Whether nothing is dropped or moved.
    pub fn is_identity(&self) -> bool {
        self.kept.len() as u32 == self.in_bits && self.kept.iter().enumerate().all(|(i, &k)| i == k as usize)
    }

    /// Whether every basis is kept, so that the action can be undone without knowing about copies.
    pub fn is_permutation(&self) -> bool {
        self.kept.len() as u32 == self.in_bits
    }

    /// The action that undoes a permutation.
    pub fn inverse(&self) -> Option<RegisterAction> {
        if !self.is_permutation() {
            return None;
        }
        let mut kept: SmallVec<[u8; 12]> = SmallVec::from_elem(0, self.kept.len());
        for (i, &k) in self.kept.iter().enumerate() {
            kept[k as usize] = i as u8;
        }
        Some(RegisterAction { dim: self.dim, in_bits: self.in_bits, kept })
    }

    /// First this action, then `next`.
    pub fn then(&self, next: &RegisterAction) -> Result<RegisterAction> {
        if next.in_bits as usize != self.kept.len() || next.dim != self.dim {
            let (expected, got) = (next.in_bits as usize, self.kept.len());
            return Err(Error::ActionMismatch { what: "bases", expected, got });
        }
        let kept = next.kept.iter().map(|&k| self.kept[k as usize]).collect();
        Ok(RegisterAction { dim: self.dim, in_bits: self.in_bits, kept })
    }

    /// The layout with its columns selected and permuted.
    pub fn apply_to_layout(&self, layout: &LinearLayout) -> Result<LinearLayout> {
        let mine = layout.columns_of(self.dim);
        if mine.len() as u32 != self.in_bits {
            let (expected, got) = (self.in_bits as usize, mine.len());
            return Err(Error::ActionMismatch { what: "bases", expected, got });
        }
        let mut columns = Vectors::new();
        for dim in layout.in_dims() {
            if dim == self.dim {
                columns.extend(self.kept.iter().map(|&k| mine[k as usize]));
            } else {
                columns.extend_from_slice(layout.columns_of(dim));
            }
        }
        let bits = |(d, bits)| (d, if d == self.dim { self.kept.len() as u32 } else { bits });
        LinearLayout::from_parts(layout.in_dim_bits().map(bits), layout.out_dim_bits(), columns)
    }

    /// The values, one per old register, as one per new register.
    pub fn apply_to_values<T: Clone>(&self, values: &[T]) -> Result<Vec<T>> {
        self.check_values(values.len(), self.in_bits)?;
        Ok((0..1usize << self.kept.len()).map(|i| values[self.old_index(i)].clone()).collect())
    }

    /// The values, one per new register, as one per old register. Registers of dropped bases get the value
    /// that they are copies of.
    pub fn undo_on_values<T: Clone>(&self, values: &[T]) -> Result<Vec<T>> {
        self.check_values(values.len(), self.kept.len() as u32)?;
        Ok((0..1usize << self.in_bits).map(|i| values[self.new_index(i)].clone()).collect())
    }

    /// The old register that new register `index` is.
    pub fn old_index(&self, index: usize) -> usize {
        self.kept.iter().enumerate().fold(0, |old, (i, &k)| old | (index >> i & 1) << k)
    }

    /// The new register that holds what old register `index` held, when dropped bases are copies.
    pub fn new_index(&self, index: usize) -> usize {
        self.kept.iter().enumerate().fold(0, |new, (i, &k)| new | (index >> k & 1) << i)
    }

    fn check_values(&self, got: usize, bits: u32) -> Result<()> {
        let expected = 1usize.checked_shl(bits).unwrap_or(usize::MAX);
        if got == expected { Ok(()) } else { Err(Error::ActionMismatch { what: "values", expected, got }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn action() -> impl Strategy<Value = RegisterAction> {
        (0u32..6)
            .prop_flat_map(|n| (Just(n), Just((0..n).collect::<Vec<_>>()).prop_shuffle(), 0..=n))
            .prop_map(|(n, order, keep)| {
                RegisterAction::new(Dim::REGISTER, n, &order[..keep as usize]).unwrap()
            })
    }

    proptest! {
        #[test]
        fn layout_and_values_move_together(action in action(), columns in proptest::collection::vec(0u64..64, 6)) {
            let n = action.in_bits as usize;
            let layout = LinearLayout::from_columns(
                &[(Dim::REGISTER, n as u32)], &[(Dim::out(0), 6)], columns[..n].iter().copied()).unwrap();
            let values: Vec<u64> = (0..1u64 << n).map(|r| layout.apply_packed(r)).collect();
            let moved = action.apply_to_layout(&layout).unwrap();
            let expected: Vec<u64> = (0..1u64 << moved.total_in_bits()).map(|r| moved.apply_packed(r)).collect();
            prop_assert_eq!(action.apply_to_values(&values).unwrap(), expected);
        }

        #[test]
        fn a_permutation_has_an_inverse(action in action()) {
            match action.inverse() {
                Some(inverse) => prop_assert!(action.then(&inverse).unwrap().is_identity()),
                None => prop_assert!(!action.is_permutation()),
            }
        }
    }

    #[test]
    fn wrong_sizes_are_errors() {
        let action = RegisterAction::new(Dim::REGISTER, 2, &[1]).unwrap();
        assert_eq!(
            action.apply_to_values(&[0; 3]),
            Err(Error::ActionMismatch { what: "values", expected: 4, got: 3 })
        );
        assert!(RegisterAction::new(Dim::REGISTER, 2, &[2]).is_err());
        assert!(RegisterAction::new(Dim::REGISTER, 2, &[1, 1]).is_err());
    }
}
