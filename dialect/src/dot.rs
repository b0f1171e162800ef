//! The shapes of dot-like operations, of all dialects.

/// Elements along M, N and K of `d += a * b`, those of packed operands counted each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of the first operand and of the accumulator.
    pub m: i64,
    /// Columns of the second operand and of the accumulator.
    pub n: i64,
    /// Columns of the first operand, rows of the second.
    pub k: i64,
}

/// The sizes of a dot from the shapes of both operands and the accumulator, in this order: matrices, or as many
/// of them in each. `packed` is how many elements an operand's element stands for along rows and along columns.
///
/// # Errors
/// When the shapes do not fit each other.
pub fn sizes(shapes: [&[i64]; 3], packed: [[i64; 2]; 2]) -> Result<Sizes, String> {
    let ranks = shapes.map(<[i64]>::len);
    let rank = ranks[0];
    if ranks.iter().any(|other| *other != rank) {
        return Err(format!("expects all operands to have the same rank, but they have {ranks:?}"));
    }
    if rank != 2 && rank != 3 {
        return Err(format!("expects operands of 2 or 3 dimensions, but they have {rank}"));
    }
    let [a, b, c] = shapes;
    if rank == 3 && (a[0] != c[0] || b[0] != c[0]) {
        let (a, b, c) = (a[0], b[0], c[0]);
        return Err(format!("expects the same number of matrices in all operands, but got {a}, {b} and {c}"));
    }
    let (row, col) = (rank - 2, rank - 1);
    let unpacked = |shape: &[i64], [rows, columns]: [i64; 2]| {
        [shape[row].saturating_mul(rows), shape[col].saturating_mul(columns)]
    };
    let ([m, k], [other_k, n]) = (unpacked(a, packed[0]), unpacked(b, packed[1]));
    if k != other_k {
        return Err(format!(
            "expects as many columns of the first operand as rows of the second, but got {k} and {other_k}"
        ));
    }
    if [c[row], c[col]] != [m, n] {
        return Err(format!("expects an accumulator of {m}x{n}, but got {}x{}", c[row], c[col]));
    }
    Ok(Sizes { m, n, k })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_that_fit() {
        let plain = sizes([&[16, 32], &[32, 8], &[16, 8]], [[1, 1]; 2]);
        assert_eq!(plain, Ok(Sizes { m: 16, n: 8, k: 32 }));
        let batched = sizes([&[4, 16, 32], &[4, 32, 8], &[4, 16, 8]], [[1, 1]; 2]);
        assert_eq!(batched, Ok(Sizes { m: 16, n: 8, k: 32 }));
        let packed = sizes([&[16, 16], &[32, 4], &[16, 8]], [[1, 2], [1, 2]]);
        assert_eq!(packed, Ok(Sizes { m: 16, n: 8, k: 32 }));
    }

    #[test]
    fn shapes_that_do_not() {
        let refuse = |shapes: [&[i64]; 3]| sizes(shapes, [[1, 1]; 2]).expect_err("they do not fit");
        assert!(refuse([&[16, 32], &[31, 8], &[16, 8]]).contains("got 32 and 31"));
        assert!(refuse([&[16, 32], &[32, 8], &[8, 16]]).contains("an accumulator of 16x8, but got 8x16"));
        assert!(refuse([&[16, 32], &[32, 8], &[1, 16, 8]]).contains("the same rank"));
        assert!(refuse([&[16], &[16], &[16]]).contains("2 or 3 dimensions"));
        assert!(refuse([&[2, 4, 4], &[3, 4, 4], &[2, 4, 4]]).contains("got 2, 3 and 2"));
    }
}
