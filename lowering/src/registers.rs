//! Where an operation on shapes finds each of its result registers.
//!
//! Broadcasts, transpositions, reshapes and insertions of dimensions are
//! linear on coordinates: the element at `p` of the result is the element at
//! `M·p` of the operand. When the encodings agree on lanes, warps and blocks,
//! `M·L_out(r, l, w, b) = L_src(s, l, w, b)` gives the operand register `s`
//! for each result register `r`, and no data moves between threads.

use linear_layout::{Dim, LinearLayout, f2};
use smallvec::SmallVec;

/// A coordinate, one number per dimension.
pub type Coords = SmallVec<[u64; 4]>;

/// Why registers cannot be renamed: data would have to move between threads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenameError {
    /// A lane, warp or block holds other elements in the operand.
    #[error(
        "{dim} bit {bit} of the result holds {wanted:?} of the operand, where the operand holds {found:?}"
    )]
    Moves {
        /// `lane`, `warp` or `block`.
        dim: &'static str,
        /// The bit of its index.
        bit: u32,
        /// Coordinates in the operand that the result asks for.
        wanted: Vec<u64>,
        /// Coordinates in the operand that are there.
        found: Vec<u64>,
    },
    /// No register of the thread holds an element.
    #[error(
        "register {register} of the result holds {wanted:?} of the operand, which its thread does not hold"
    )]
    Missing {
        /// The register of the result.
        register: usize,
        /// Coordinates in the operand.
        wanted: Vec<u64>,
    },
}

/// For each register of `out`, the register of `src` that holds its element.
/// `map` takes coordinates of the result to coordinates of the operand and is
/// linear over F2.
///
/// # Errors
/// When data would move between threads.
pub fn rename(
    src: &LinearLayout,
    out: &LinearLayout,
    map: impl Fn(&[u64]) -> Coords,
) -> Result<Vec<usize>, RenameError> {
    let pull = |word: u64| map(&out.coords(word));
    let src_reg: Vec<u64> = src.columns_of(Dim::REGISTER).to_vec();
    let pack = |coords: &[u64]| -> u64 {
        let mut word = 0;
        for (dim, value) in src.out_dims().zip(coords) {
            word |= value << src.out_shift(dim).unwrap_or(0);
        }
        word
    };
    for dim in [Dim::LANE, Dim::WARP, Dim::BLOCK] {
        let columns = out.columns_of(dim);
        let theirs = src.columns_of(dim);
        for (bit, column) in columns.iter().enumerate() {
            let wanted = pull(*column);
            let found = theirs.get(bit).copied().unwrap_or(0);
            if pack(&wanted) != found {
                return Err(RenameError::Moves {
                    dim: dim.name(),
                    bit: bit as u32,
                    wanted: wanted.to_vec(),
                    found: src.coords(found).to_vec(),
                });
            }
        }
    }
    // The first register that holds each element, by its packed coordinates.
    let mut holder = std::collections::HashMap::new();
    for register in 0..1usize << src_reg.len() {
        holder.entry(f2::mul(&src_reg, register as u64)).or_insert(register);
    }
    let out_reg = out.columns_of(Dim::REGISTER);
    (0..1usize << out_reg.len())
        .map(|register| {
            let wanted = pull(f2::mul(out_reg, register as u64));
            holder
                .get(&pack(&wanted))
                .copied()
                .ok_or_else(|| RenameError::Missing { register, wanted: wanted.to_vec() })
        })
        .collect()
}
