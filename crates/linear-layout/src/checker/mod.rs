//! Checkers: they execute plans on labelled elements and report what is wrong.
//!
//! A checker knows what the *instructions* do (PTX ISA, AMD ISA) and what the *layouts* mean, and nothing of
//! how a plan was found: it shares no code with the planners but the types of the plans and
//! [`LinearLayout::apply_packed`](crate::LinearLayout::apply_packed). Every register of every thread starts
//! with the label of the element that the source layout says it holds; the plan is executed thread by
//! thread; in the end every register must hold the label that the destination layout says. Shared memory is
//! simulated element by element, and its cost bank by bank: a wavefront serves each bank one word.

mod conversion;
mod count;
mod descriptor;
mod dot;

mod exchange;
mod gather;
mod lds_load;
mod memory;
mod reduce;
mod scan;
mod shared;
mod tdm;
mod tma;
mod vector;
mod warp_group;

pub use conversion::{Report, check_conversion};
pub use descriptor::check_matrix_descriptor;
pub use dot::{check_dot, check_matrix_instruction, check_scaled_dot};
pub use gather::{check_gather, check_histogram};
pub use lds_load::check_lds_load;
pub use memory::{Memory, MemoryReport, execute};
pub use reduce::{check_reduce, check_reduce_to};
pub use scan::check_scan;
pub use shared::check_shared_access;
pub use tdm::check_tdm;
pub use tma::{check_tma, check_tma_rows};
pub use vector::{check_async_copy, check_vector};
pub use warp_group::check_warp_group_dot;

use crate::plan::{Scope, ThreadBases, ThreadMasks, Threads};

/// What a plan does wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// A register ends up with the wrong element.
    #[error("register {register} of {thread:?} holds {got:?}, it should hold element {expected}")]
    WrongElement {
        /// The register.
        register: u64,
        /// Its thread.
        thread: Threads,
        /// What it holds; `None` when nothing was ever put there.
        got: Option<u64>,
        /// The element of the destination layout.
        expected: u64,
    },
    /// Two stores to one place.
    #[error("offset {offset} of block {block} is written twice, with elements {first} and {second}")]
    WrittenTwice {
        /// Block whose memory it is.
        block: u64,
        /// Offset in elements.
        offset: u64,
        /// Already there.
        first: u64,
        /// Written over it.
        second: u64,
    },
    /// An address outside the buffer.
    #[error("offset {offset} is outside the buffer of {size} elements")]
    OutOfBounds {
        /// Offset in elements.
        offset: u64,
        /// Elements of the buffer.
        size: u64,
    },
    /// An address that the instruction does not accept.
    #[error("offset {offset} is not a multiple of the {elems} elements of the access")]
    Misaligned {
        /// Offset in elements.
        offset: u64,
        /// Elements of the access.
        elems: u64,
    },
    /// The plan claims another number of wavefronts than it takes.
    #[error("{what} of warp {warp}: {got} wavefronts, the plan says {expected}")]
    Wavefronts {
        /// `"store"` or `"load"`.
        what: &'static str,
        /// The warp.
        warp: u64,
        /// Counted.
        got: u64,
        /// Planned.
        expected: u64,
    },
    /// The plan claims another number of something than its execution takes.
    #[error("{got} {what}, the plan says {expected}")]
    Count {
        /// What is counted.
        what: &'static str,
        /// Counted.
        got: u64,
        /// Planned.
        expected: u64,
    },
    /// Barriers that do not reach all the threads that exchange data.
    #[error("barriers of a {planned:?} where data cross a {needed:?}")]
    NarrowBarrier {
        /// In the plan.
        planned: Scope,
        /// Found by execution.
        needed: Scope,
    },
    /// Barriers that reach further than any data: right, but not minimal.
    #[error("not minimal: barriers of a {planned:?} where data stay in a {needed:?}")]
    WideBarrier {
        /// In the plan.
        planned: Scope,
        /// Found by execution.
        needed: Scope,
    },
    /// An exchange with a lane that does not exist.
    #[error("{thread:?} reads lane {lane} of {lanes}")]
    NoSuchLane {
        /// The reader.
        thread: Threads,
        /// The lane it reads.
        lane: u64,
        /// Lanes of a warp.
        lanes: u64,
    },
    /// The plan is not well formed.
    #[error("malformed plan: {0}")]
    Malformed(String),
}

/// The number that the bases give a thread.
fn number(bases: &ThreadBases, t: Threads) -> u64 {
    let parts = [(&bases.lane, t.lane), (&bases.warp, t.warp), (&bases.block, t.block)];
    let set = parts.into_iter().flat_map(|(bases, number)| {
        bases.iter().enumerate().filter(move |(bit, _)| number >> bit & 1 == 1).map(|(_, base)| *base)
    });
    set.fold(0, |sum, base| sum ^ base)
}

/// Whether a thread has none of the bits.
fn is_clear(masks: &ThreadMasks, t: Threads) -> bool {
    t.lane & masks.lane | t.warp & masks.warp | t.block & masks.block == 0
}
