//! Why there is no plan.

use crate::Dim;
use crate::target::UnknownTarget;

/// Why a plan cannot be made. Every message carries the offending numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The layouts themselves do not fit.
    #[error(transparent)]
    Layout(#[from] crate::Error),
    /// The target is not known.
    #[error(transparent)]
    Target(#[from] UnknownTarget),
    /// An element width that no plan handles.
    #[error("elements of {bits} bits; plans handle 1 to 64")]
    ElementWidth {
        /// Bits of an element.
        bits: u32,
    },
    /// The layout has more of something than the target.
    #[error("the layout has {got} {what}, the target {target} has {limit}")]
    TooMany {
        /// `"lanes"`, …
        what: &'static str,
        /// In the layout.
        got: u64,
        /// In the target.
        limit: u64,
        /// Name of the target.
        target: &'static str,
    },
    /// Parts of bytes would have to be read, or written to memory that others write too.
    #[error("an access of {elems} elements of {bits} bits does not fill whole bytes")]
    PartialByte {
        /// Elements of one access.
        elems: u64,
        /// Bits of an element.
        bits: u32,
    },
    /// The budget of shared memory does not hold even the smallest tile.
    #[error("{needed} bytes of shared memory are needed, {budget} are allowed")]
    SharedBudget {
        /// Bytes of the smallest tile.
        needed: u64,
        /// Bytes allowed.
        budget: u64,
    },
    /// Offsets, with padding, that no machine word holds.
    #[error("2^{offset_bits} elements of {bits} bits with padding {padding:?} have no 64-bit addresses")]
    TooLarge {
        /// log2 of the elements.
        offset_bits: u32,
        /// Bits of an element.
        bits: u32,
        /// `(interval, padding)` in elements.
        padding: Vec<(u64, u64)>,
    },
    /// The target has no such instructions.
    #[error("the target {target} has no {what}")]
    NotOnTarget {
        /// `"wgmma"`, …
        what: &'static str,
        /// Name of the target.
        target: &'static str,
    },
    /// A layout from places of another kind than planned for.
    #[error("{what} has no input dimension `{dim}`")]
    ForeignDim {
        /// `"shared memory"` or `"a distributed layout"`.
        what: &'static str,
        /// The dimension.
        dim: Dim,
    },
    /// The hardware, or the plans of this crate, do not do that.
    #[error("{what}")]
    Unsupported {
        /// What does not fit: by this, callers tell such errors apart.
        why: Unsupported,
        /// What, with its numbers, for people.
        what: String,
    },
    /// A fault of the planner: what should always hold does not.
    #[error("{what}")]
    Internal {
        /// What does not hold.
        what: &'static str,
    },
}

/// What of a request does not fit what instructions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unsupported {
    /// Their types: the width of elements, or how exact results are.
    Types,
    /// Shapes: the number of dimensions, or sizes.
    Shape,
    /// Where elements lie in memory: order, swizzle, alignment.
    Memory,
    /// Which registers, lanes, warps or CTAs hold what.
    Distribution,
}

impl PlanError {
    pub(crate) fn unsupported(why: Unsupported, what: impl Into<String>) -> PlanError {
        PlanError::Unsupported { why, what: what.into() }
    }
}

/// `Result` with [`PlanError`].
pub type PlanResult<T> = std::result::Result<T, PlanError>;
