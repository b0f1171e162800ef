//! Linear layouts over F2: algebra, encodings and hardware plans.
//!
//! A GPU does not hold a tensor in one place: its elements are spread over the registers of the threads
//! (*lanes*) of the *warps* of one or more CTAs (thread *blocks*; the dimension `block` of layouts), or over
//! the offsets of a shared memory. A **layout** says which place holds which element. This crate writes every layout as one kind of object,
//! a small matrix of bits, and computes with it: what a thread can load at once, how data must move from
//! one layout to another, where a tensor must lie in shared memory so that no two lanes collide.
//!
//! It follows *Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2* by Zhou et
//! al.; "paper" in these pages means that one.
//!
//! # Bits instead of numbers
//!
//! Everything on a GPU comes in powers of two: 32 lanes, 4 warps, tiles of 16×16. So a place is a string
//! of bits: register 1 of lane 9 of warp 0 is `1`, `01001`, `0`. And an element of a 16×16 tensor is
//! a string of bits too: 4 for the row and 4 for the column.
//!
//! Here is Layout A of the paper's Figure 1. Each thread holds a box of 2×2, 4×8 threads make a warp,
//! and two warps lie one below the other:
//!
//! ```
//! use linear_layout::{Dim, LinearLayout};
//! let (register, lane, warp) = (Dim::REGISTER, Dim::LANE, Dim::WARP);
//! let (i, j) = (Dim::out(0), Dim::out(1));
//!
//! let a = LinearLayout::from_bases(
//!     &[
//!         (register, vec![[0, 1], [1, 0]]),
//!         (lane, vec![[0, 2], [0, 4], [0, 8], [2, 0], [4, 0]]),
//!         (warp, vec![[8, 0]]),
//!     ],
//!     &[i, j],
//! )?;
//!
//! // "r1 of t9 is located at (2, 3)", and r0 of t10 at (2, 4).
//! assert_eq!(a.apply(&[(register, 1), (lane, 9)])?.as_slice(), &[(i, 2), (j, 3)]);
//! assert_eq!(a.apply(&[(register, 0), (lane, 10)])?.as_slice(), &[(i, 2), (j, 4)]);
//! # Ok::<(), linear_layout::Error>(())
//! ```
//!
//! Only eight facts were written down, one for each input *bit*: setting the lowest bit of the register
//! moves one column to the right, `[0, 1]`; the second bit moves one row down, `[1, 0]`; the lowest bit of
//! the lane moves two columns to the right, and so on. These are the **basis vectors**. Every other place
//! follows by the one rule there is:
//!
//! > **Linearity.** The element at a place is the XOR of the basis vectors of the bits that are set.
//!
//! Lane 9 is `01001`, bits 0 and 3; together with bit 0 of the register they give
//! `[0, 1] ⊕ [0, 2] ⊕ [2, 0] = [2, 3]`.
//!
//! # The matrix
//!
//! Put the basis vectors side by side as columns and a layout is a matrix of zeros and ones; applying it
//! is a matrix-vector product in which `+` is XOR and `·` is AND. That arithmetic has a name, F2, the
//! field of two elements, and all of linear algebra holds in it. This is the matrix of Section 4.1:
//!
//! ```
//! # use linear_layout::{Dim, LinearLayout};
//! # let a = LinearLayout::from_bases(&[
//! #     (Dim::REGISTER, vec![[0, 1], [1, 0]]),
//! #     (Dim::LANE, vec![[0, 2], [0, 4], [0, 8], [2, 0], [4, 0]]),
//! #     (Dim::WARP, vec![[8, 0]])], &[Dim::out(0), Dim::out(1)])?;
//! let j_first = a.transpose_outs(&[Dim::out(1), Dim::out(0)])?;
//! assert_eq!(format!("\n{}", j_first.matrix_display()), r"
//!         | register | lane            | warp
//!         |  0  1    |  0  1  2  3  4  |  0
//! dim1[0] |  1  .    |  .  .  .  .  .  |  .
//! dim1[1] |  .  .    |  1  .  .  .  .  |  .
//! dim1[2] |  .  .    |  .  1  .  .  .  |  .
//! dim1[3] |  .  .    |  .  .  1  .  .  |  .
//! dim0[0] |  .  1    |  .  .  .  .  .  |  .
//! dim0[1] |  .  .    |  .  .  .  1  .  |  .
//! dim0[2] |  .  .    |  .  .  .  .  1  |  .
//! dim0[3] |  .  .    |  .  .  .  .  .  |  1
//! ");
//! # Ok::<(), linear_layout::Error>(())
//! ```
//!
//! Questions about layouts become questions about the matrix:
//!
//! | question | answer |
//! |---|---|
//! | Is every element held? | [`is_surjective`](LinearLayout::is_surjective): full row rank |
//! | Is an element replicated? | [`zero_mask`](LinearLayout::zero_mask), [`free_variable_masks`](LinearLayout::free_variable_masks): zero or dependent columns |
//! | Where is element (i, j)? | [`pseudo_invert`](LinearLayout::pseudo_invert) |
//! | What lies next to each other? | [`num_consecutive_in_out`](LinearLayout::num_consecutive_in_out): an identity block |
//! | Can this instruction do it? | [`divide_left`](LinearLayout::divide_left) by the instruction's tile |
//!
//! # Building layouts: the 16×16 tile
//!
//! Nobody writes big matrices by hand. The [product](LinearLayout::product) of two layouts puts one into
//! the low bits and the other into the high bits, which is what "tiles of tiles" means:
//!
//! ```
//! # use linear_layout::{Dim, LinearLayout};
//! let run = |size, from: &str, to: &str| LinearLayout::identity_1d(size, from, to);
//! let thread = &run(2, "register", "dim1")? * &run(2, "register", "dim0")?; // 2×2 elements
//! let warp = &run(8, "lane", "dim1")? * &run(4, "lane", "dim0")?; //           4×8 threads
//! let block = &run(1, "warp", "dim1")? * &run(2, "warp", "dim0")?; //          2×1 warps
//! let tile = &(&thread * &warp) * &block;
//! assert_eq!(tile.out_size(Dim::out(0)), Some(16));
//! assert_eq!(tile.out_size(Dim::out(1)), Some(16));
//!
//! // It is Layout A, and dividing by a factor gives the rest back.
//! let held = tile.apply(&[(Dim::REGISTER, 1), (Dim::LANE, 9)])?;
//! assert_eq!(held.as_slice(), &[(Dim::out(1), 3), (Dim::out(0), 2)]);
//! let rest = tile.divide_left(&thread).expect("a thread holds a 2×2 box");
//! assert_eq!(&thread * &rest, tile);
//! # Ok::<(), linear_layout::Error>(())
//! ```
//!
//! The attributes of Triton, `#ttg.blocked<{…}>`, `#ttg.nvidia_mma<{…}>` and all the others, are
//! [`Encoding`]s. They are parsed from their text and become layouts for a shape:
//!
//! ```
//! # use linear_layout::{Dim, Encoding};
//! let a: Encoding = "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>".parse()?;
//! let small = a.to_linear_layout(&[16, 4])?;
//! // The tensor has fewer columns than the tile: lane bits 1 and 2 lead nowhere new. Lanes 0, 2, 4 and 6
//! // hold the same elements.
//! assert_eq!(small.zero_mask(Dim::LANE), 0b00110);
//! # Ok::<(), linear_layout::Error>(())
//! ```
//!
//! # Memory: the swizzle
//!
//! A layout of shared memory maps *offsets* to elements. Stored row after row, the elements of one column
//! fall into few memory banks, and lanes that read a column wait for each other. Swizzling permutes each
//! row by XORing the column with a number that depends on the row: exactly what a matrix over F2 can say.
//! For a 4×4 tensor with `vec = 1`, `perPhase = 1`, `maxPhase = 4` (paper, Definition 4.11):
//!
//! ```
//! # use linear_layout::{Dim, Encoding};
//! let swizzled: Encoding =
//!     "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 4, order = [1, 0]}>".parse()?;
//! let memory = swizzled.to_linear_layout(&[4, 4])?.transpose_outs(&[Dim::out(1), Dim::out(0)])?;
//! assert_eq!(format!("\n{}", memory.matrix_display()), r"
//!         | offset
//!         |  0  1  2  3
//! dim1[0] |  1  .  1  .
//! dim1[1] |  .  1  .  1
//! dim0[0] |  .  .  1  .
//! dim0[1] |  .  .  .  1
//! ");
//! // Offset 6 is column 2 of row 1, which holds element (1, 2 ⊕ 1).
//! assert_eq!(memory.apply(&[(Dim::OFFSET, 6)])?.as_slice(), &[(Dim::out(1), 3), (Dim::out(0), 1)]);
//! # Ok::<(), linear_layout::Error>(())
//! ```
//!
//! It has the block structure `[I C; 0 I]` of Proposition 4.12. The block `C`, top right, is the whole
//! difference between a swizzled memory and a plain one.
//!
//! # Moving data: the shuffle
//!
//! To convert a tensor from layout `A` to layout `B` every place of `B` must learn where in `A` its element
//! lies: first through `B` to the element, then backwards through `A`. That is one matrix,
//! [`invert_and_compose`](LinearLayout::invert_and_compose). Take eight elements, two registers in each
//! of four lanes, as in the paper's Figure 3:
//!
//! ```
//! # use linear_layout::{Dim, LinearLayout, f2};
//! let (register, lane) = (Dim::REGISTER, Dim::LANE);
//! // A: neighbours share a lane. B: neighbours lie in neighbouring lanes.
//! let a = LinearLayout::from_bases(&[(register, vec![[1]]), (lane, vec![[2], [4]])], &[Dim::out(0)])?;
//! let b = LinearLayout::from_bases(&[(register, vec![[4]]), (lane, vec![[1], [2]])], &[Dim::out(0)])?;
//! let source = b.invert_and_compose(&a)?;
//! // Register 1 of lane 2 shall hold element 4 ⊕ 2 = 6, which A has in register 0 of lane 3.
//! assert_eq!(source.apply(&[(register, 1), (lane, 2)])?.as_slice(), &[(register, 0), (lane, 3)]);
//!
//! // No warp is involved, so shuffles do it. One round moves one element from every lane to every
//! // lane: I, the lane bases that both have, and G, each lane basis of A that B lacks plus one of B that
//! // A lacks (Section 5.4).
//! let i = f2::intersection(a.columns_of(lane), b.columns_of(lane));
//! let (e, f) = (4, 1);
//! let round = [i[0], e ^ f];
//! // What completes them to all eight elements numbers the rounds: here there are 2¹.
//! let r = f2::complement(&round, a.total_out_bits());
//! assert_eq!(1 << r.len(), 2);
//! # Ok::<(), linear_layout::Error>(())
//! ```
//!
//! # What is where
//!
//! * [`LinearLayout`], with its dimensions named by [`Dim`]; [`RegisterAction`] selects and permutes
//!   registers; [`f2`] is the arithmetic on words of bits underneath.
//! * [`encoding`]: every layout attribute of Triton 3.9, its text and its layout.
//! * [`target`]: what there is to know about a GPU; [`plan`]: what it shall do, as plain values with a
//!   cost, which a compiler only has to write down.
//! * `show`, with the feature of that name: layouts and plans as text, JSON and pictures. The program `ttlayout`, a crate of
//!   its own, shows one layout, one conversion, or thousands.
//!
//! Operations that can fail return an [`Error`] that says why with the numbers in it. Sizes are powers of
//! two, and one side of a layout has at most 64 bits.

// What is not supported is an error with a place or with numbers: nothing here ends a program by a panic, but for products by `*`.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented
    )
)]

mod action;
pub mod checker;
mod dim;
pub mod encoding;
mod error;
pub mod f2;
mod layout;
pub mod plan;
#[cfg(feature = "show")]
pub mod show;
pub mod target;

pub use action::RegisterAction;
pub use dim::{Dim, standard_out_dims};
pub use encoding::Encoding;
pub use error::{Error, Result};
pub use layout::{BasesDisplay, LinearLayout, MatrixDisplay, Point, TableDisplay};
