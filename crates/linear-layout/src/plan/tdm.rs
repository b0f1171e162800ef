//! Blocks of tensors copied between global and shared memory by AMD's tensor data mover: what a descriptor ("D#") says of the
//! tile that one instruction moves, and which warp moves which tile (LLVM 22, `llvm.amdgcn.tensor.load.to.lds` and MLIR's
//! `amdgpu.make_dma_descriptor`).
//!
//! An instruction moves a tile with its last dimension fastest, to or from consecutive addresses. A load may leave a number of
//! 32-bit words out after every so many; a store reads all of them. So a memory layout fits when its offsets are the elements
//! of the block in row-major order, and its padding comes after a power of two of words. A store takes padding for elements of rows, which are outside
//! of the tensor.
//!
//! All warps move as many elements: warp `w` those from `w` times that number on, in the order of the offsets.

use std::fmt;

use smallvec::SmallVec;

use crate::plan::{PlanError, PlanResult, Unsupported};
use crate::target::{Direction, TargetDesc};
use crate::{Dim, LinearLayout};

/// Dimensions of a tensor.
const MAX_RANK: usize = 5;
/// Elements of a tile along one dimension have 16 bits.
const MAX_TILE: u64 = 0xffff;
/// Words after which padding may come, and words of padding.
const INTERVALS: std::ops::RangeInclusive<u64> = 2..=256;
const PADDINGS: std::ops::RangeInclusive<u64> = 1..=128;
const WORD_BYTES: u64 = 4;
/// Bytes that a warp moves at least where several do: the widest access of a thread.
const LEAST_BYTES: u64 = 16;

/// Padding that a load leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TdmPadding {
    /// 32-bit words between.
    pub interval_words: u64,
    /// 32-bit words of it.
    pub words: u64,
}

/// How a block is moved.
///
/// ```
/// use linear_layout::Encoding;
/// use linear_layout::plan::TdmPlan;
/// use linear_layout::target::{Direction, TargetDesc};
/// let target = TargetDesc::parse("hip:gfx1250")?;
/// let padded: Encoding = "#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>".parse()?;
/// let memory = padded.to_linear_layout(&[64, 64])?;
/// let plan = TdmPlan::new(&memory, &[(64, 8)], 16, 4, Direction::Store, &target)?;
/// // Four warps fill shared memory with 16 rows each, and leave four words out after each row of 32.
/// assert_eq!((&plan.tile[..], &plan.warp_bytes[..]), (&[16, 64][..], &[16 * 144, 32 * 144][..]));
/// assert_eq!(plan.padding.map(|padding| (padding.interval_words, padding.words)), Some((32, 4)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TdmPlan {
    /// Whether shared memory is stored to, from global memory, or loaded from.
    pub direction: Direction,
    /// Elements of the tile of one warp, by dimension of the block, padding left out.
    pub tile: SmallVec<[u64; 5]>,
    /// Bits of an element.
    pub elem_bits: u32,
    /// What a load leaves out.
    pub padding: Option<TdmPadding>,
    /// Elements of padding behind each row of the tile that a store takes for some outside of the tensor.
    pub row_padding: u64,
    /// For each bit of a warp's number that says which tile is its own, where that begins in the block.
    pub warp_starts: Vec<SmallVec<[u64; 5]>>,
    /// The same in shared memory, in bytes.
    pub warp_bytes: Vec<u64>,
    /// Bits of a warp's number that are zero where it moves anything.
    pub idle_warps: u64,
    /// The blocks of a cluster that receive what is loaded, as bits; none where only the own one does.
    pub block_mask: u16,
}

fn unsupported<T>(why: Unsupported, reason: impl Into<String>) -> PlanResult<T> {
    Err(PlanError::unsupported(why, reason))
}

impl TdmPlan {
    /// How `warps` warps move a block of elements of `elem_bits` bits between global memory and shared memory in the layout `memory`, `(interval,
    /// padding)` in elements: with [`Direction::Store`] to shared memory, with [`Direction::Load`] from there.
    ///
    /// # Errors
    /// A target without tensor operations; blocks and layouts that they do not have, with the reason.
    pub fn new(
        memory: &LinearLayout,
        padding: &[(u64, u64)],
        elem_bits: u32,
        warps: u32,
        direction: Direction,
        target: &TargetDesc,
    ) -> PlanResult<TdmPlan> {
        if !target.primitives.tensor_data_mover {
            return Err(PlanError::NotOnTarget { what: "tensor data mover", target: target.name });
        }
        if !matches!(elem_bits, 8 | 16 | 32 | 64) {
            return unsupported(
                Unsupported::Types,
                format!("tensor operations move no elements of {elem_bits} bits"),
            );
        }
        let shape = row_major(memory)?;
        let elem_bytes = u64::from(elem_bits / 8);
        let total: u64 = shape.iter().product();
        let most = (total * elem_bytes / LEAST_BYTES).max(1);
        let moving = u64::from(warps.max(1)).min(most);
        let bits = moving.ilog2();
        let elements = total >> bits;
        let mut plan = TdmPlan {
            direction,
            tile: tile(&shape, elements),
            elem_bits,
            padding: None,
            row_padding: 0,
            warp_starts: (0..bits).map(|bit| coordinates(&shape, elements << bit)).collect(),
            warp_bytes: (0..bits).map(|bit| padded(elements << bit, padding) * elem_bytes).collect(),
            idle_warps: u64::from(warps.max(1)).next_power_of_two() - (1 << bits),
            block_mask: 0,
        };
        if plan.tile.iter().any(|size| *size > MAX_TILE) {
            return unsupported(
                Unsupported::Shape,
                format!("a tile has at most {MAX_TILE} elements along a dimension, not {:?}", plan.tile),
            );
        }
        // Padding behind the last element is nobody's.
        match padding.iter().filter(|(interval, _)| *interval < elements).collect::<Vec<_>>()[..] {
            [] => {}
            [&(interval, pad)] if direction == Direction::Store => {
                plan.padding = Some(left_out(interval * elem_bytes, pad * elem_bytes)?);
            }
            [&(interval, pad)] if plan.tile.last() == Some(&interval) => {
                if interval + pad > MAX_TILE {
                    return unsupported(
                        Unsupported::Shape,
                        format!("rows of {interval} elements with {pad} more are longer than {MAX_TILE}"),
                    );
                }
                plan.row_padding = pad;
            }
            [&(interval, _)] => {
                return unsupported(
                    Unsupported::Memory,
                    format!(
                        "a tensor operation skips padding behind rows, of {} elements, but it comes every {interval}",
                        plan.tile.last().copied().unwrap_or(0)
                    ),
                );
            }
            _ => {
                return unsupported(Unsupported::Memory, "a tensor operation knows padding of one kind");
            }
        }
        Ok(plan)
    }

    /// The number of a data size in a descriptor: the binary logarithm of an element's bytes.
    pub fn data_size(&self) -> u32 {
        (self.elem_bits / 8).ilog2()
    }

    /// Elements of the tile as the descriptor says, the last dimension, with its padding, first.
    pub fn tile_dims(&self) -> SmallVec<[u64; 5]> {
        let mut dims: SmallVec<[u64; 5]> = self.tile.iter().rev().copied().collect();
        if let Some(first) = dims.first_mut() {
            *first += self.row_padding;
        }
        dims
    }

    /// Bytes of a warp's tile, padding left out.
    pub fn tile_bytes(&self) -> u64 {
        self.tile.iter().product::<u64>() * u64::from(self.elem_bits / 8)
    }
}

/// The sizes of a block whose offsets are its elements in row-major order.
fn row_major(memory: &LinearLayout) -> PlanResult<SmallVec<[u64; 5]>> {
    let dims: Vec<Dim> = memory.out_dims().collect();
    let shape: SmallVec<[u64; 5]> = dims.iter().map(|dim| memory.out_size(*dim).unwrap_or(1)).collect();
    if shape.is_empty() || shape.len() > MAX_RANK {
        return unsupported(
            Unsupported::Shape,
            format!("tensor operations move blocks of 1 to {MAX_RANK} dimensions, not {}", shape.len()),
        );
    }
    if memory.in_dims().any(|dim| dim != Dim::OFFSET && memory.in_bits(dim) > 0) {
        return unsupported(Unsupported::Memory, "tensor operations know no memory in several parts");
    }
    if memory.in_size(Dim::OFFSET) != Some(shape.iter().product()) {
        return unsupported(
            Unsupported::Memory,
            "a tensor operation fills all of a buffer, and nothing twice",
        );
    }
    for bit in 0..memory.in_bits(Dim::OFFSET) {
        let column = memory.columns_of(Dim::OFFSET).get(bit as usize).copied().unwrap_or(0);
        let (at, wanted) = (memory.coords(column), coordinates(&shape, 1 << bit));
        if at[..] != wanted[..] {
            return unsupported(
                Unsupported::Memory,
                format!(
                    "tensor operations write rows one after the other, without swizzle, but offset {} is element {:?}, not {:?}",
                    1u64 << bit,
                    &at[..],
                    &wanted[..]
                ),
            );
        }
    }
    Ok(shape)
}

/// Element number `flat` of a block, in row-major order.
fn coordinates(shape: &[u64], flat: u64) -> SmallVec<[u64; 5]> {
    let mut rest = flat;
    let mut at: SmallVec<[u64; 5]> = shape
        .iter()
        .rev()
        .map(|size| {
            let here = rest % size;
            rest /= size;
            here
        })
        .collect();
    at.reverse();
    at
}

/// The sizes of a tile of so many elements that follow each other.
fn tile(shape: &[u64], elements: u64) -> SmallVec<[u64; 5]> {
    let mut rest = elements;
    let mut sizes: SmallVec<[u64; 5]> = shape
        .iter()
        .rev()
        .map(|size| {
            let here = rest.min(*size);
            rest /= here;
            here
        })
        .collect();
    sizes.reverse();
    sizes
}

fn padded(offset: u64, padding: &[(u64, u64)]) -> u64 {
    padding.iter().fold(offset, |sum, (interval, pad)| sum + offset / interval * pad)
}

fn left_out(interval_bytes: u64, bytes: u64) -> PlanResult<TdmPadding> {
    let made = TdmPadding { interval_words: interval_bytes / WORD_BYTES, words: bytes / WORD_BYTES };
    let whole = interval_bytes.is_multiple_of(WORD_BYTES) && bytes.is_multiple_of(WORD_BYTES);
    let fits = made.interval_words.is_power_of_two()
        && INTERVALS.contains(&made.interval_words)
        && PADDINGS.contains(&made.words);
    if whole && fits {
        return Ok(made);
    }
    unsupported(
        Unsupported::Memory,
        format!(
            "a tensor operation leaves out 1 to 128 words after a power of two of 2 to 256, not {bytes} bytes after {interval_bytes}"
        ),
    )
}

impl fmt::Display for TdmPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.direction {
            Direction::Store => "tensor_load_to_lds",
            Direction::Load => "tensor_store_from_lds",
        };
        write!(
            f,
            "{name} of {:?} elements of {} bits by each of {} warps",
            &self.tile[..],
            self.elem_bits,
            1u64 << self.warp_starts.len()
        )?;
        if let Some(padding) = self.padding {
            write!(f, ", {} words left out after every {}", padding.words, padding.interval_words)?;
        }
        if self.row_padding > 0 {
            write!(f, ", {} elements behind each row outside of the tensor", self.row_padding)?;
        }
        Ok(())
    }
}
