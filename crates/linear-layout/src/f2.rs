//! Linear algebra over F2 on machine words.
//!
//! A vector of F2ⁿ, n ≤ 64, is a `u64` whose bit *i* is coordinate *i*; addition is XOR. A matrix is a
//! slice of such words, one per *column*, so that `M · e_j = columns[j]` and a product `M · x` is the
//! XOR of the columns that the set bits of `x` select. A matrix has at most 64 columns, because `x` is a
//! word too: functions whose result names columns ignore any further ones.
//!
//! ```
//! use linear_layout::f2;
//! // The columns (1,1)ᵀ and (0,1)ᵀ, and a third that is their sum.
//! let m = [0b11, 0b10, 0b01];
//! assert_eq!(f2::mul(&m, 0b011), 0b01);
//! assert_eq!(f2::rank(&m), 2);
//! assert_eq!(f2::kernel(&m).as_slice(), &[0b111]);
//! ```

use smallvec::SmallVec;

/// A list of vectors, or the columns of a matrix, without heap allocation up to 24 of them.
pub type Vectors = SmallVec<[u64; 24]>;

/// `M · x`: the XOR of the columns selected by the bits of `x`. Bits of `x` past the last column are ignored.
#[inline]
pub fn mul(columns: &[u64], mut x: u64) -> u64 {
    if columns.len() < 64 {
        x &= (1u64 << columns.len()) - 1;
    }
    let mut y = 0;
    while x != 0 {
        y ^= columns[x.trailing_zeros() as usize];
        x &= x - 1;
    }
    y
}

/// The word with the lowest `bits` bits set.
#[inline]
pub const fn low_mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1u64 << bits) - 1 }
}

/// A set of independent vectors kept in echelon form: every stored vector has a leading bit that no
/// vector stored after it has. Remembers how each one is a combination of the vectors inserted.
#[derive(Clone, Debug)]
pub struct Echelon {
    /// Leading bits in use.
    pivots: u64,
    vectors: [u64; 64],
    /// Which of the inserted vectors add up to `vectors[pivot]`.
    combination: [u64; 64],
    inserted: u32,
}

impl Default for Echelon {
    fn default() -> Self {
        Self::new()
    }
}

impl Echelon {
    /// The empty set, which spans only zero.
    pub fn new() -> Echelon {
        Echelon { pivots: 0, vectors: [0; 64], combination: [0; 64], inserted: 0 }
    }

    /// The span of `vectors`.
    pub fn of(vectors: &[u64]) -> Echelon {
        let mut echelon = Echelon::new();
        for &v in vectors {
            echelon.insert(v);
        }
        echelon
    }

    /// Dimension of the span.
    #[inline]
    pub fn rank(&self) -> u32 {
        self.pivots.count_ones()
    }

    /// The positions of the leading bits.
    pub fn pivots(&self) -> u64 {
        self.pivots
    }

    /// Adds `v` to the span. `true` when it was independent of the vectors already there.
    #[inline]
    pub fn insert(&mut self, v: u64) -> bool {
        let index = self.inserted;
        self.inserted += 1;
        let (rest, combination) = self.reduce(v);
        if rest == 0 {
            return false;
        }
        let pivot = 63 - rest.leading_zeros();
        self.pivots |= 1 << pivot;
        self.vectors[pivot as usize] = rest;
        self.combination[pivot as usize] = if index < 64 { combination | 1 << index } else { combination };
        true
    }

    /// `(rest, x)` where `v = rest + Σ x_i · inserted_i` and `rest` has no leading bit of the set. `rest`
    /// is zero exactly when `v` is in the span.
    #[inline]
    pub fn reduce(&self, v: u64) -> (u64, u64) {
        let (mut rest, mut x) = (v, 0);
        let mut todo = rest & self.pivots;
        while todo != 0 {
            let pivot = 63 - todo.leading_zeros();
            rest ^= self.vectors[pivot as usize];
            x ^= self.combination[pivot as usize];
            todo = rest & self.pivots & low_mask(pivot);
        }
        (rest, x)
    }

    /// Whether `v` is in the span.
    #[inline]
    pub fn contains(&self, v: u64) -> bool {
        self.reduce(v).0 == 0
    }

    /// `x` with `Σ x_i · inserted_i = v`, using only inserted vectors that were independent of the ones
    /// before them.
    #[inline]
    pub fn express(&self, v: u64) -> Option<u64> {
        let (rest, x) = self.reduce(v);
        (rest == 0).then_some(x)
    }
}

/// Dimension of the span of the columns.
pub fn rank(columns: &[u64]) -> u32 {
    Echelon::of(columns).rank()
}

/// Bit *j* is set when column *j* is independent of the columns before it. The other columns are *free*.
pub fn independent_columns(columns: &[u64]) -> u64 {
    let mut echelon = Echelon::new();
    columns.iter().take(64).enumerate().fold(0, |mask, (j, &c)| mask | u64::from(echelon.insert(c)) << j)
}

/// The basis of the kernel that sets one free variable at a time: each `x` has `M · x = 0`.
pub fn kernel(columns: &[u64]) -> Vectors {
    let mut echelon = Echelon::new();
    let mut kernel = Vectors::new();
    for (j, &c) in columns.iter().take(64).enumerate() {
        if let Some(x) = echelon.express(c) {
            kernel.push(x | 1 << j);
        }
        echelon.insert(c);
    }
    kernel
}

/// `x` with `M · x = v` and every free variable zero, or `None` when `v` is not in the image.
///
/// When the nonzero columns of `M` are distinct unit vectors or repetitions of them, as in a distributed
/// layout (paper, Definition 4.10), this is the solution of minimum norm.
pub fn solve(columns: &[u64], v: u64) -> Option<u64> {
    Echelon::of(columns).express(v)
}

/// `X` with `M · X = R`, column by column as [`solve`] does it.
pub fn solve_all(columns: &[u64], rhs: &[u64]) -> Option<Vectors> {
    let echelon = Echelon::of(columns);
    rhs.iter().map(|&v| echelon.express(v)).collect()
}

/// The inverse of a square matrix of `columns.len()` rows, when there is one.
pub fn inverse(columns: &[u64]) -> Option<Vectors> {
    let echelon = Echelon::of(columns);
    (columns.len() <= 64 && echelon.pivots == low_mask(columns.len() as u32))
        .then(|| (0..columns.len()).filter_map(|i| echelon.express(1 << i)).collect())
}

/// The matrix product `left · right`.
pub fn matmul(left: &[u64], right: &[u64]) -> Vectors {
    right.iter().map(|&c| mul(left, c)).collect()
}

/// The columns of the transpose of a matrix with `rows` rows.
pub fn transpose(columns: &[u64], rows: u32) -> Vectors {
    (0..rows.min(64))
        .map(|r| columns.iter().take(64).enumerate().fold(0, |row, (j, &c)| row | (c >> r & 1) << j))
        .collect()
}

/// An independent subset of `vectors` with the same span, in their order.
pub fn basis(vectors: &[u64]) -> Vectors {
    let mut echelon = Echelon::new();
    vectors.iter().copied().filter(|&v| echelon.insert(v)).collect()
}

/// Unit vectors that complete `vectors` to a basis of F2^`bits`, lowest first.
pub fn complement(vectors: &[u64], bits: u32) -> Vectors {
    complement_within(vectors, &(0..bits.min(64)).map(|i| 1 << i).collect::<Vectors>())
}

/// Those of `candidates` that extend `vectors` to a basis of the span of both, in the order given.
pub fn complement_within(vectors: &[u64], candidates: &[u64]) -> Vectors {
    let mut echelon = Echelon::of(vectors);
    candidates.iter().copied().filter(|&v| echelon.insert(v)).collect()
}

/// A basis of the intersection of two spans.
///
/// A combination of `[a | b]` that is zero has its `a` part equal to its `b` part, so it names an element
/// of both spans; those elements span the intersection (Zassenhaus).
pub fn intersection(a: &[u64], b: &[u64]) -> Vectors {
    let (a, b) = (basis(a), basis(b));
    let mut echelon = Echelon::of(&a);
    let mut common = Vectors::new();
    for &v in &b {
        // What remains of `v` was reduced by vectors of `a` and earlier vectors of `b`.
        let (rest, x) = echelon.reduce(v);
        if rest == 0 {
            common.push(mul(&a, x & low_mask(a.len() as u32)));
        }
        echelon.insert(v);
    }
    common
}

/// Whether two lists span the same space.
pub fn same_span(a: &[u64], b: &[u64]) -> bool {
    let (ea, eb) = (Echelon::of(a), Echelon::of(b));
    a.iter().all(|&v| eb.contains(v)) && b.iter().all(|&v| ea.contains(v))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vectors() -> impl Strategy<Value = Vec<u64>> {
        (1u32..12, 0usize..16).prop_flat_map(|(bits, n)| proptest::collection::vec(0..=low_mask(bits), n..=n))
    }

    #[test]
    fn the_whole_word_is_usable() {
        let unit: Vec<u64> = (0..64).map(|i| 1 << i).collect();
        assert_eq!(rank(&unit), 64);
        assert_eq!(independent_columns(&unit), u64::MAX);
        assert_eq!(mul(&unit, u64::MAX), u64::MAX);
        assert_eq!(inverse(&unit).unwrap().as_slice(), &unit[..]);
        assert!(complement(&unit, 64).is_empty());
        assert_eq!(complement(&[], 64).as_slice(), &unit[..]);
    }

    #[test]
    fn a_singular_matrix_has_no_inverse() {
        assert_eq!(inverse(&[0b01, 0b01]), None);
        assert_eq!(inverse(&[0b001, 0b100]), None);
        assert_eq!(inverse(&[]).unwrap().len(), 0);
    }

    proptest! {
        #[test]
        fn rank_and_nullity_add_up(m in vectors()) {
            let kernel = kernel(&m);
            prop_assert!(kernel.iter().all(|&x| mul(&m, x) == 0));
            prop_assert_eq!(rank(&m) as usize + kernel.len(), m.len());
            prop_assert_eq!(rank(&kernel) as usize, kernel.len());
            prop_assert_eq!(rank(&m), rank(&transpose(&m, 64)));
            prop_assert_eq!(independent_columns(&m).count_ones(), rank(&m));
        }

        #[test]
        fn a_solution_solves_with_independent_columns_only(m in vectors(), x in any::<u64>()) {
            let v = mul(&m, x);
            let solution = solve(&m, v);
            prop_assert_eq!(solution.map(|s| mul(&m, s)), Some(v));
            prop_assert_eq!(solution.unwrap_or(0) & !independent_columns(&m), 0);
        }

        #[test]
        fn no_solution_means_outside_the_span(m in vectors(), v in 0u64..4096) {
            let reached = (0..1u64 << m.len()).any(|x| mul(&m, x) == v);
            prop_assert_eq!(solve(&m, v).is_some(), reached);
        }

        #[test]
        fn an_inverse_undoes(m in vectors()) {
            if let Some(inv) = inverse(&m) {
                let unit: Vectors = (0..m.len()).map(|i| 1 << i).collect();
                prop_assert_eq!(&matmul(&inv, &m), &unit);
                prop_assert_eq!(&matmul(&m, &inv), &unit);
            }
        }

        #[test]
        fn a_complement_completes(m in vectors()) {
            let m = basis(&m);
            let rest = complement(&m, 12);
            prop_assert_eq!(m.len() + rest.len(), 12);
            let all: Vectors = m.iter().chain(&rest).copied().collect();
            prop_assert_eq!(rank(&all), 12);
        }

        #[test]
        fn an_intersection_is_what_both_contain(a in vectors(), b in vectors()) {
            let common = intersection(&a, &b);
            let both: Vectors = a.iter().chain(&b).copied().collect();
            // dim(A ∩ B) = dim A + dim B − dim(A + B)
            prop_assert_eq!(common.len() as u32 + rank(&both), rank(&a) + rank(&b));
            prop_assert_eq!(rank(&common) as usize, common.len());
            let (ea, eb) = (Echelon::of(&a), Echelon::of(&b));
            prop_assert!(common.iter().all(|&v| ea.contains(v) && eb.contains(v)));
        }

        #[test]
        fn transposing_twice_is_nothing(m in vectors()) {
            let back = transpose(&transpose(&m, 64), m.len() as u32);
            prop_assert_eq!(back.as_slice(), &m[..]);
        }
    }
}
