//! What can be wrong with a layout or an encoding.

use crate::Dim;

/// Why an operation on layouts or encodings is refused. Every message carries the offending numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Layouts are maps between spaces of bits, so every size is a power of two.
    #[error("{what} is {value}, which is not a power of two")]
    NotPowerOfTwo {
        /// What was measured.
        what: String,
        /// Its value.
        value: u64,
    },
    /// One column is one 64-bit word with all the output dimensions side by side.
    #[error("the {side} dimensions need {bits} bits together; a layout holds at most {limit}")]
    TooManyBits {
        /// `"input"` or `"output"`.
        side: &'static str,
        /// Bits asked for.
        bits: u64,
        /// Bits available.
        limit: u32,
    },
    /// The layout has no dimension of that name on that side.
    #[error("no {side} dimension `{dim}`; there are [{have}]")]
    UnknownDim {
        /// `"input"` or `"output"`.
        side: &'static str,
        /// The name asked for.
        dim: Dim,
        /// The names present.
        have: String,
    },
    /// A dimension is named twice.
    #[error("{side} dimension `{dim}` appears twice")]
    DuplicateDim {
        /// `"input"` or `"output"`.
        side: &'static str,
        /// The repeated name.
        dim: Dim,
    },
    /// Two lists of dimensions that must be the same are not.
    #[error("{what}: expected the dimensions [{expected}], got [{got}]")]
    DimMismatch {
        /// The operation.
        what: &'static str,
        /// Names and sizes wanted.
        expected: String,
        /// Names and sizes given.
        got: String,
    },
    /// Two layouts list their common dimensions in contradictory orders.
    #[error("the orders [{left}] and [{right}] of the {side} dimensions contradict each other")]
    OrderConflict {
        /// `"input"` or `"output"`.
        side: &'static str,
        /// Order of the first layout.
        left: String,
        /// Order of the second layout.
        right: String,
    },
    /// A coordinate lies outside its dimension.
    #[error("{value} is outside dimension `{dim}` of size {size}")]
    OutOfRange {
        /// The dimension.
        dim: Dim,
        /// The coordinate.
        value: u64,
        /// Size of the dimension.
        size: u64,
    },
    /// A basis has more or fewer coordinates than there are output dimensions.
    #[error("basis {index} of `{dim}` has {got} coordinates; the layout has {expected} output dimensions")]
    BasisRank {
        /// The input dimension.
        dim: Dim,
        /// Which basis.
        index: usize,
        /// Output dimensions.
        expected: usize,
        /// Coordinates given.
        got: usize,
    },
    /// Some elements of the output are not reached.
    #[error("the layout reaches 2^{rank} of the 2^{bits} output points; it must reach all of them")]
    NotSurjective {
        /// Rank of the matrix.
        rank: u32,
        /// Output bits.
        bits: u32,
    },
    /// The matrix is not square of full rank.
    #[error("a layout of {in_bits} input bits, {out_bits} output bits and rank {rank} has no inverse")]
    NotInvertible {
        /// Input bits.
        in_bits: u32,
        /// Output bits.
        out_bits: u32,
        /// Rank of the matrix.
        rank: u32,
    },
    /// `B X = A` has no solution.
    #[error("bit {bit} of `{dim}` maps to a point that the other layout does not reach")]
    NoSolution {
        /// Input dimension of the left-hand side.
        dim: Dim,
        /// Bit of that dimension.
        bit: u32,
    },
    /// A register action does not fit the layout or the values it is applied to.
    #[error("the action works on {expected} {what}, but there are {got}")]
    ActionMismatch {
        /// `"bases"` or `"values"`.
        what: &'static str,
        /// Expected count.
        expected: usize,
        /// Count given.
        got: usize,
    },
    /// The parameters of an encoding contradict each other or the shape.
    #[error("{encoding}: {reason}")]
    InvalidEncoding {
        /// Mnemonic of the encoding.
        encoding: &'static str,
        /// What is wrong, with the numbers.
        reason: String,
    },
    /// The text is not an encoding.
    #[error("at byte {position}: {reason}")]
    Parse {
        /// Byte offset into the text.
        position: usize,
        /// What was expected or found.
        reason: String,
    },
}

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
