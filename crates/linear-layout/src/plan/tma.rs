//! Blocks of tensors copied between global and shared memory by the tensor memory accelerator: the box of
//! one instruction, and the instructions that together copy a block (PTX ISA, "Tensors",
//! "cp.async.bulk.tensor").
//!
//! An instruction copies a box with its last dimension fastest, to consecutive rows of shared memory, and
//! XORs address bits 7… into bits 4… as the swizzle mode says. So a memory layout fits when, swizzled, every
//! bit of the offset within a box moves along the box in that order, and every box starts where the swizzle
//! leaves addresses as they are.

use std::fmt;

use smallvec::SmallVec;

use crate::encoding::NvmmaShared;
use crate::plan::{MatrixSwizzle, PlanError, PlanResult, Unsupported};
use crate::target::TargetDesc;
use crate::{Dim, Encoding, LinearLayout};

/// Elements of a box along one dimension (PTX ISA, "tensormap.replace", `.box_dim`).
pub(super) const MAX_BOX: u64 = 256;
/// Dimensions of a tensor.
const MAX_RANK: usize = 5;
/// What the bytes of a row of a box, and addresses and strides in global memory, are multiples of.
pub const TMA_UNIT_BYTES: u64 = 16;
/// What the address of a box in shared memory is a multiple of, without swizzle.
pub(super) const BOX_ALIGNMENT: u64 = 128;
/// Rows after which a swizzle repeats, in units of its width for 128 bytes.
const SWIZZLE_PERIOD_ROWS: u64 = 8;

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TmaBox {
    /// Where the box starts in the block, in elements, by dimension.
    pub start: SmallVec<[u64; 5]>,
    /// Where it starts in shared memory, in bytes from the start of the buffer.
    pub offset_bytes: u64,
}

/// What a tensor map says of the blocks that are copied through it: the box of one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TmaMap {
    /// Swizzle mode.
    pub swizzle: MatrixSwizzle,
    /// Elements of a box, by dimension of the block.
    pub box_shape: SmallVec<[u64; 5]>,
    /// Bits of an element.
    pub elem_bits: u32,
}

/// How a block is copied.
///
/// ```
/// use linear_layout::plan::{MatrixSwizzle, TmaPlan};
/// use linear_layout::target::TargetDesc;
/// let target = TargetDesc::parse("cuda:90")?;
/// // 128 × 128 of f16: rows of 256 bytes are two boxes of 128 bytes.
/// let encoding = TmaPlan::encoding(&[128, 128], 16, &[], &target)?;
/// let plan = TmaPlan::new(&encoding, &[128, 128], &target)?;
/// assert_eq!((plan.map.swizzle, plan.map.box_shape.as_slice()), (MatrixSwizzle::Bytes128, &[128, 64][..]));
/// assert_eq!(plan.boxes.len(), 2);
/// assert_eq!((plan.boxes[1].start.as_slice(), plan.boxes[1].offset_bytes), (&[0, 64][..], 16384));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TmaPlan {
    /// The box of one instruction.
    pub map: TmaMap,
    /// The boxes that each block of a cluster has, in the order of their offsets.
    pub boxes: Vec<TmaBox>,
    /// For each bit of the number of a block in its cluster, where its part begins, by XOR; zeros where both
    /// have the same elements.
    pub parts: Vec<SmallVec<[u64; 5]>>,
    /// What the address of the buffer is a multiple of, in bytes.
    pub alignment: u64,
}

pub(super) fn unsupported<T>(why: Unsupported, reason: impl Into<String>) -> PlanResult<T> {
    Err(PlanError::unsupported(why, reason))
}

impl TmaMap {
    /// The tensor map for blocks of `shape` in buffers with the layout `encoding`.
    ///
    /// # Errors
    /// A target without bulk copies; blocks and layouts that they do not have, with the reason.
    pub fn new(encoding: &NvmmaShared, shape: &[u64], target: &TargetDesc) -> PlanResult<TmaMap> {
        if !target.primitives.bulk_copy {
            return Err(PlanError::NotOnTarget { what: "bulk tensor copies", target: target.name });
        }
        let elem_bits = encoding.element_bit_width as u32;
        if !matches!(elem_bits, 8 | 16 | 32 | 64) {
            return unsupported(Unsupported::Types, format!("TMA copies no elements of {elem_bits} bits"));
        }
        if shape.is_empty() || shape.len() > MAX_RANK {
            return unsupported(
                Unsupported::Shape,
                format!("TMA copies blocks of 1 to {MAX_RANK} dimensions, not {}", shape.len()),
            );
        }
        if encoding.fp4_padded {
            return unsupported(
                Unsupported::Types,
                "TMA pads elements of four bits from sm_100 on, and no plan does so",
            );
        }
        if encoding.transposed {
            return unsupported(Unsupported::Memory, "TMA writes rows one after the other, not transposed");
        }
        let swizzle = match encoding.swizzling_byte_width {
            0 => MatrixSwizzle::None,
            32 => MatrixSwizzle::Bytes32,
            64 => MatrixSwizzle::Bytes64,
            128 => MatrixSwizzle::Bytes128,
            width => return unsupported(Unsupported::Memory, format!("TMA has no swizzle of {width} bytes")),
        };
        let elem_bytes = u64::from(elem_bits / 8);
        let widest = if swizzle == MatrixSwizzle::None { MAX_BOX } else { swizzle.row_bytes() / elem_bytes };
        let map = TmaMap { swizzle, box_shape: box_shape(&encoding.part(shape)?, widest), elem_bits };
        let row = map.box_shape.last().copied().unwrap_or(0);
        let row_bytes = row * elem_bytes;
        if !row_bytes.is_multiple_of(TMA_UNIT_BYTES) {
            let unit = TMA_UNIT_BYTES;
            return unsupported(
                Unsupported::Shape,
                format!(
                    "TMA copies rows of multiples of {unit} bytes, a row of {row} elements of {elem_bits} bits has \
                 {row_bytes}"
                ),
            );
        }
        Ok(map)
    }

    /// Bytes of an element.
    pub fn elem_bytes(&self) -> u64 {
        u64::from(self.elem_bits / 8)
    }

    /// Bytes of a box.
    pub fn box_bytes(&self) -> u64 {
        self.box_shape.iter().product::<u64>() * self.elem_bytes()
    }

    /// The number of the swizzle mode in a tensor map (PTX ISA, "tensormap.replace", `.swizzle_mode`).
    pub fn swizzle_mode(&self) -> u32 {
        match self.swizzle {
            MatrixSwizzle::None => 0,
            MatrixSwizzle::Bytes32 => 1,
            MatrixSwizzle::Bytes64 => 2,
            MatrixSwizzle::Bytes128 => 3,
        }
    }

    /// Where the copy puts what would lie at `address` without swizzle, and the other way round.
    pub(super) fn swizzled(&self, address: u64) -> u64 {
        if self.swizzle == MatrixSwizzle::None { address } else { self.swizzle.apply(address) }
    }

    /// What the address of a buffer is a multiple of, so that the swizzle begins anew.
    pub(super) fn alignment(&self) -> u64 {
        match self.swizzle {
            MatrixSwizzle::None => BOX_ALIGNMENT,
            swizzle => swizzle.row_bytes() * SWIZZLE_PERIOD_ROWS,
        }
    }
}

impl TmaPlan {
    /// The memory layout for blocks of `shape`, divided among the blocks of a cluster as `cga` says: the
    /// widest swizzle that fits, since it has the fewest bank conflicts whichever way the block is read.
    ///
    /// # Errors
    /// A target without bulk copies; blocks that no instructions copy, with the reason.
    pub fn encoding(
        shape: &[u64],
        elem_bits: u32,
        cga: &[Vec<u64>],
        target: &TargetDesc,
    ) -> PlanResult<NvmmaShared> {
        let mut encoding = NvmmaShared {
            swizzling_byte_width: 0,
            transposed: false,
            element_bit_width: u64::from(elem_bits),
            fp4_padded: false,
            rank: shape.len(),
            cga: cga.to_vec(),
        };
        let part = encoding.part(shape)?;
        let Some((&row, outer)) = part.split_last() else {
            return unsupported(Unsupported::Shape, "a block without dimensions cannot be copied by TMA");
        };
        let row_bytes = row * u64::from(elem_bits) / 8;
        let rows: u64 = outer.iter().product();
        let modes =
            [128, 64, 32].into_iter().filter(|width| row_bytes >= *width && rows >= SWIZZLE_PERIOD_ROWS);
        let mut reason = None;
        for width in modes.chain([0]) {
            encoding.swizzling_byte_width = width;
            match TmaPlan::new(&encoding, shape, target) {
                Ok(_) => return Ok(encoding),
                Err(error) => reason = Some(error),
            }
        }
        Err(reason.unwrap_or(PlanError::Internal { what: "no swizzle was tried" }))
    }

    /// How a block of `shape` is copied from or to a buffer with the layout `encoding`.
    ///
    /// # Errors
    /// As [`encoding`](Self::encoding), and layouts that bulk copies do not have.
    pub fn new(encoding: &NvmmaShared, shape: &[u64], target: &TargetDesc) -> PlanResult<TmaPlan> {
        let map = TmaMap::new(encoding, shape, target)?;
        let memory = Encoding::NvmmaShared(encoding.clone()).to_linear_layout(shape)?;
        let plan = TmaPlan {
            boxes: boxes(&memory, &map.box_shape, map.elem_bytes())?,
            parts: parts(&memory),
            alignment: map.alignment(),
            map,
        };
        plan.check_box(&memory)?;
        Ok(plan)
    }

    /// Bytes that the copy moves to or from the memory of each block of a cluster.
    pub fn bytes(&self) -> u64 {
        self.boxes.len() as u64 * self.map.box_bytes()
    }

    /// Every bit of the offset in a box moves along it with the last dimension fastest, and boxes start
    /// where the swizzle begins anew.
    fn check_box(&self, memory: &LinearLayout) -> PlanResult<()> {
        let elem_bytes = self.map.elem_bytes();
        let columns = memory.columns_of(Dim::OFFSET);
        for bit in 0..self.map.box_bytes().trailing_zeros() - elem_bytes.trailing_zeros() {
            let mut rest = self.map.swizzled(elem_bytes << bit) / elem_bytes;
            let mut wanted: SmallVec<[u64; 5]> = SmallVec::new();
            for size in self.map.box_shape.iter().rev() {
                wanted.insert(0, rest % size);
                rest /= size;
            }
            let found = columns.get(bit as usize).map(|column| memory.coords(*column));
            if found.as_deref() != Some(&*wanted) {
                return unsupported(
                    Unsupported::Memory,
                    format!(
                        "TMA leaves element {wanted:?} of a box at offset {}, where the layout has {:?}",
                        1u64 << bit,
                        found.unwrap_or_default()
                    ),
                );
            }
        }
        match self.boxes.iter().find(|part| !part.offset_bytes.is_multiple_of(self.alignment)) {
            Some(part) => unsupported(
                Unsupported::Memory,
                format!(
                    "a box would start at byte {}, which is no multiple of {}",
                    part.offset_bytes, self.alignment
                ),
            ),
            None => Ok(()),
        }
    }
}

/// Where the parts of the blocks of a cluster begin, by bit of their number.
pub(super) fn parts(memory: &LinearLayout) -> Vec<SmallVec<[u64; 5]>> {
    let blocks = memory.columns_of(Dim::BLOCK);
    blocks.iter().map(|column| memory.coords(*column).iter().copied().collect()).collect()
}

/// The largest box: as much as is allowed along the last dimension, and along the others as long as those
/// after them are whole.
fn box_shape(shape: &[u64], widest: u64) -> SmallVec<[u64; 5]> {
    let last = shape.len() - 1;
    let mut sizes: SmallVec<[u64; 5]> = SmallVec::new();
    let mut whole = true;
    for (dim, &size) in shape.iter().enumerate().rev() {
        let most = if dim == last { widest } else { MAX_BOX };
        let part = if whole { size.min(most) } else { 1 };
        // A row that is cut leaves the rows of a box one after the other all the same.
        whole &= part == size || dim == last;
        sizes.insert(0, part);
    }
    sizes
}

/// Where boxes start, in the order of their offsets.
fn boxes(memory: &LinearLayout, box_shape: &[u64], elem_bytes: u64) -> PlanResult<Vec<TmaBox>> {
    let elements: u64 = box_shape.iter().product();
    let count = memory.in_size(Dim::OFFSET).unwrap_or(0) / elements.max(1);
    let mut boxes = Vec::new();
    for number in 0..count {
        let offset = number * elements;
        let start = memory.coords(crate::f2::mul(memory.columns_of(Dim::OFFSET), offset));
        if start.iter().zip(box_shape).any(|(at, size)| at % size != 0) {
            return unsupported(
                Unsupported::Memory,
                format!("the layout has {start:?} at offset {offset}, where a box starts"),
            );
        }
        boxes.push(TmaBox { start: start.iter().copied().collect(), offset_bytes: offset * elem_bytes });
    }
    Ok(boxes)
}

impl fmt::Display for TmaPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}, aligned to {} bytes", self.boxes.len(), self.map, self.alignment)
    }
}

impl fmt::Display for TmaMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.box_shape.iter().map(u64::to_string).collect();
        write!(f, "{} elements of {} bits, {}", sizes.join("×"), self.elem_bits, self.swizzle)
    }
}
