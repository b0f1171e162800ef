//! Operands of `wgmma` in shared memory: whether a memory layout is one that a matrix descriptor can
//! express, and the descriptor of every instruction tile.
//!
//! The hardware computes the address of an element of a tile from its row *i* along M or N and its summand
//! *k* in two steps (PTX ISA, "Asynchronous warpgroup level matrix shared memory layout", canonical
//! layouts): it adds strides to the start address, one per bit of *i* and *k*, then XORs address bits 7…
//! into bits 4… according to the swizzle mode. The second step is linear over F2 and undoes itself, so a
//! memory layout fits when, swizzled, each bit of *i* and *k* moves by the stride that the mode has for it,
//! and no carry occurs:
//!
//! | major | swizzle of *S* bytes | bits of *i* | bits of *k*, *T* bytes an element |
//! |---|---|---|---|
//! | K | 32, 64, 128 | *S* for 8 rows, then SBO | *T*, 2*T*, … |
//! | K | none | 16 for 8 rows, then SBO | *T*, … within 16 bytes, then LBO |
//! | MN | 32, 64, 128 | *T*, … within *S* bytes, then LBO | *S* for 8, then SBO |
//! | MN | none | *T*, … within 16 bytes, then SBO | 16 for 8, then LBO |

use std::fmt;

use smallvec::SmallVec;

use crate::f2::{self, Echelon, Vectors};
use crate::plan::display::Count;
use crate::plan::{PlanError, PlanResult, Unsupported};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// Bytes of K that one `wgmma` takes, whatever the type.
const K_BYTES: u64 = 32;
/// log2 of the rows, or summands, of a swizzle atom.
const ATOM_BITS: u32 = 3;
/// Addresses in a descriptor have 18 bits.
const ADDRESS_SPACE: u64 = 1 << 18;

/// Which units of 16 bytes of a row are permuted by the number of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixSwizzle {
    /// None: rows are 16 bytes.
    None,
    /// The two units of a row of 32 bytes.
    Bytes32,
    /// The four units of a row of 64 bytes.
    Bytes64,
    /// The eight units of a row of 128 bytes.
    Bytes128,
}

impl MatrixSwizzle {
    const ALL: [MatrixSwizzle; 4] =
        [MatrixSwizzle::Bytes128, MatrixSwizzle::Bytes64, MatrixSwizzle::Bytes32, MatrixSwizzle::None];

    /// Bytes of a row of the swizzle atom.
    pub fn row_bytes(self) -> u64 {
        match self {
            MatrixSwizzle::None => 16,
            MatrixSwizzle::Bytes32 => 32,
            MatrixSwizzle::Bytes64 => 64,
            MatrixSwizzle::Bytes128 => 128,
        }
    }

    /// The mode's number in bits 62 and 63 of a descriptor.
    pub fn mode(self) -> u64 {
        match self {
            MatrixSwizzle::None => 0,
            MatrixSwizzle::Bytes32 => 3,
            MatrixSwizzle::Bytes64 => 2,
            MatrixSwizzle::Bytes128 => 1,
        }
    }

    /// The address of what would lie at `address` without swizzle, and the other way round.
    pub fn apply(self, address: u64) -> u64 {
        address ^ (address >> 7 & (self.row_bytes() / 16 - 1)) << 4
    }
}

impl fmt::Display for MatrixSwizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatrixSwizzle::None => f.write_str("no swizzle"),
            swizzle => write!(f, "{}-byte swizzle", swizzle.row_bytes()),
        }
    }
}

/// How `wgmma` reads an operand that lies in shared memory: one descriptor for every instruction tile.
///
/// ```
/// use linear_layout::{Dim, Encoding};
/// use linear_layout::plan::{MatrixDescriptorPlan, MatrixSwizzle};
/// use linear_layout::target::TargetDesc;
/// // The left operand, 128 × 64 of f16, as a bulk copy with 128-byte swizzle leaves it.
/// let memory: Encoding =
///     "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>".parse()?;
/// let memory = memory.to_linear_layout(&[128, 64])?;
/// let target = TargetDesc::parse("cuda:90")?;
/// let plan = MatrixDescriptorPlan::new(&memory, (Dim::out(0), Dim::out(1)), 64, 16, &target)?;
/// assert_eq!((plan.swizzle, plan.transposed), (MatrixSwizzle::Bytes128, false));
/// assert_eq!((plan.stride_bytes, plan.tiles(), plan.start([1, 2])), (1024, [2, 4], 8192 + 64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatrixDescriptorPlan {
    /// Rows along M or N, and summands, of one instruction, in elements.
    pub tile: [u64; 2],
    /// Swizzle mode.
    pub swizzle: MatrixSwizzle,
    /// Whether M or N is contiguous instead of K: the instruction's `imm-trans` argument.
    pub transposed: bool,
    /// Leading dimension byte offset; 16 where the mode, or so small a tile, does not use it.
    pub leading_bytes: u64,
    /// Stride dimension byte offset; 16 where so small a tile does not use it.
    pub stride_bytes: u64,
    /// What each bit of the number of a tile along M or N, and of one along K, adds to its start address,
    /// in bytes: swizzling has yet to be applied, as the hardware does.
    pub starts: [SmallVec<[u64; 8]>; 2],
    /// What the address of the buffer is a multiple of, in bytes, so that the base offset is zero.
    pub alignment: u64,
}

impl MatrixDescriptorPlan {
    /// The plan for an operand in the layout `memory`, from `offset` in elements (and `block`). `dims` are
    /// its dimensions along M or N, and along K; an instruction takes `rows` along the first: 64 for the
    /// left operand, its N for the right one.
    ///
    /// Tiles are those of the part of the tensor that each block has. For a view of a part of the buffer,
    /// give the layout of the whole and start at the tile where the view starts.
    ///
    /// # Errors
    /// A target without `wgmma`, element widths that it does not take from there, blocks smaller than a
    /// tile, and layouts that no descriptor expresses; the message says for each swizzle mode what does not
    /// fit.
    pub fn new(
        memory: &LinearLayout,
        dims: (Dim, Dim),
        rows: u64,
        elem_bits: u32,
        target: &TargetDesc,
    ) -> PlanResult<MatrixDescriptorPlan> {
        if !target.primitives.wgmma {
            let tcgen05 = target.primitives.tensor_memory;
            let what = if tcgen05 { "wgmma; descriptors of tcgen05 are not planned" } else { "wgmma" };
            return Err(PlanError::NotOnTarget { what, target: target.name });
        }
        if ![8, 16, 32].contains(&elem_bits) {
            return Err(PlanError::unsupported(
                Unsupported::Types,
                format!("wgmma takes no elements of {elem_bits} bits"),
            ));
        }
        if !rows.is_power_of_two() || !(8..=256).contains(&rows) {
            let reason = format!("a wgmma tile of {rows} rows; planned are powers of two from 8 to 256");
            return Err(PlanError::unsupported(Unsupported::Shape, reason));
        }
        let tile = [rows, K_BYTES * 8 / u64::from(elem_bits)];
        let block = Block::new(memory, dims, elem_bits, target)?;
        let extents = [block.bits[0].len(), block.bits[1].len()].map(|bits| 1u64 << bits);
        if extents[0] < tile[0] || extents[1] < tile[1] {
            let ([m, k], [rows, depth]) = (extents, tile);
            let reason = format!("a block has {m}×{k} elements, a wgmma tile {rows}×{depth}");
            return Err(PlanError::unsupported(Unsupported::Shape, reason));
        }
        let elem = u64::from(elem_bits / 8);
        let transposed = match (block.bits[0].first(), block.bits[1].first()) {
            (_, Some(&k)) if k == elem => false,
            (Some(&mn), _) if mn == elem => true,
            _ => {
                let reason = format!("neither `{}` nor `{}` is contiguous in memory", dims.0, dims.1);
                return Err(PlanError::unsupported(Unsupported::Memory, reason));
            }
        };
        if transposed && elem_bits != 16 {
            let reason = format!("wgmma takes elements of {elem_bits} bits contiguous along K only");
            return Err(PlanError::unsupported(Unsupported::Types, reason));
        }
        let mut reasons = Vec::new();
        for swizzle in MatrixSwizzle::ALL {
            match block.fit(tile, elem, swizzle, transposed) {
                Ok(plan) => return Ok(plan),
                Err(reason) => reasons.push(format!("{swizzle}: {reason}")),
            }
        }
        Err(PlanError::unsupported(
            Unsupported::Memory,
            format!("no wgmma descriptor; {}", reasons.join("; ")),
        ))
    }

    /// Number of tiles along M or N, and along K, in one block.
    pub fn tiles(&self) -> [u64; 2] {
        [1 << self.starts[0].len(), 1 << self.starts[1].len()]
    }

    /// Where a tile starts, in bytes from the buffer, given its numbers along M or N and along K.
    pub fn start(&self, tile: [u64; 2]) -> u64 {
        f2::mul(&self.starts[0], tile[0]) ^ f2::mul(&self.starts[1], tile[1])
    }

    /// The descriptor of a tile at address zero: all of its 64 bits but the lowest 14, which are bits 4 to
    /// 17 of the start address (PTX ISA, "Matrix Descriptor Format").
    pub fn bits(&self) -> u64 {
        (self.leading_bytes >> 4) << 16 | (self.stride_bytes >> 4) << 32 | self.swizzle.mode() << 62
    }
}

impl fmt::Display for MatrixDescriptorPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([rows, k], [m, n]) = (self.tile, self.tiles());
        let major = if self.transposed { "MN" } else { "K" };
        writeln!(f, "{m}×{n} wgmma operands of {rows}×{k}, {major}-major, {}", self.swizzle)?;
        let (leading, stride) = (Count(self.leading_bytes, "byte"), Count(self.stride_bytes, "byte"));
        writeln!(f, "  leading dimension {leading}, stride dimension {stride}")?;
        for (name, bases) in ["MN", "K"].iter().zip(&self.starts).filter(|(_, bases)| !bases.is_empty()) {
            writeln!(f, "  start ^= {bases:?}·{name} tile")?;
        }
        writeln!(f, "  aligned to {} bytes", self.alignment)
    }
}

/// What one block has of a tensor.
struct Block {
    dims: [Dim; 2],
    /// Byte offset of each bit of a coordinate along M or N, and along K.
    bits: [Vectors; 2],
}

impl Block {
    fn new(
        memory: &LinearLayout,
        dims: (Dim, Dim),
        elem_bits: u32,
        target: &TargetDesc,
    ) -> PlanResult<Block> {
        let dims = [dims.0, dims.1];
        for dim in memory.in_dims() {
            if ![Dim::OFFSET, Dim::BLOCK].contains(&dim) && memory.in_bits(dim) > 0 {
                return Err(PlanError::ForeignDim { what: "shared memory", dim });
            }
        }
        for dim in memory.out_dims() {
            if !dims.contains(&dim) && memory.out_bits(dim) > 0 {
                let reason = format!("`{dim}` is neither along M or N, nor along K");
                return Err(PlanError::unsupported(Unsupported::Shape, reason));
            }
        }
        let needed =
            1u64.checked_shl(memory.in_bits(Dim::OFFSET)).and_then(|n| n.checked_mul(elem_bits.into()));
        let (needed, budget) = (needed.unwrap_or(u64::MAX) / 8, target.shared_bytes.min(ADDRESS_SPACE));
        if needed > budget {
            return Err(PlanError::SharedBudget { needed, budget });
        }
        let own = Echelon::of(memory.columns_of(Dim::OFFSET));
        // A block has the low coordinates; the higher bits tell blocks apart.
        let along = |dim: Dim| -> Vectors {
            let shift = memory.out_shift(dim).unwrap_or(0);
            let offset = |bit| own.express(1u64 << (shift + bit)).map(|o| o * u64::from(elem_bits) / 8);
            (0..memory.out_bits(dim)).map_while(offset).collect()
        };
        let bits = dims.map(along);
        if bits[0].len() + bits[1].len() != own.rank() as usize || dims[0] == dims[1] {
            let reason = format!("a block has no contiguous part of `{}` and `{}`", dims[0], dims[1]);
            return Err(PlanError::unsupported(Unsupported::Memory, reason));
        }
        Ok(Block { dims, bits })
    }

    /// The plan in one mode, or what does not fit.
    fn fit(
        &self,
        tile: [u64; 2],
        elem: u64,
        swizzle: MatrixSwizzle,
        transposed: bool,
    ) -> Result<MatrixDescriptorPlan, String> {
        let row = swizzle.row_bytes();
        let plain = swizzle == MatrixSwizzle::None;
        let tile_bits = tile.map(u64::trailing_zeros);
        let in_row = (row / elem).trailing_zeros();
        // Bits that continue a row, then bits that choose the row, each with their stride beyond.
        let (contiguous, across) = if transposed { (0, 1) } else { (1, 0) };
        let linear = |axis: usize, bit: u32| swizzle.apply(self.bits[axis][bit as usize]);
        let mut strides = [None; 2];
        for (axis, bits) in [(contiguous, in_row), (across, ATOM_BITS)] {
            let first = if axis == contiguous { elem } else { row };
            for bit in 0..tile_bits[axis] {
                let got = linear(axis, bit);
                let expected = match bit.checked_sub(bits) {
                    None => first << bit,
                    Some(beyond) => *strides[axis].get_or_insert(got) << beyond,
                };
                if got != expected {
                    let dim = self.dims[axis];
                    return Err(format!("bit {bit} of `{dim}` is at byte {got}, not {expected}"));
                }
            }
        }
        // Strides are added, what tiles start with too: nothing may carry.
        let mut used = 0u64;
        for (axis, &bits) in tile_bits.iter().enumerate() {
            for bit in 0..bits {
                let column = linear(axis, bit);
                if used & column != 0 {
                    return Err(format!("bit {bit} of `{}` overlaps others", self.dims[axis]));
                }
                used |= column;
            }
        }
        let start = |axis: usize| -> Result<SmallVec<[u64; 8]>, String> {
            let outside = tile_bits[axis]..self.bits[axis].len() as u32;
            let one = |bit| match linear(axis, bit) {
                c if c & used == 0 && c % 16 == 0 => Ok(c),
                c => Err(format!("bit {bit} of `{}`, at byte {c}, is within a tile", self.dims[axis])),
            };
            outside.map(one).collect()
        };
        let starts = [start(0)?, start(1)?];
        // Which stride leads: the one beyond the row, but along M or N without swizzle.
        let [beyond_row, beyond_atom] = [strides[contiguous], strides[across]];
        let (leading, stride) =
            if transposed && plain { (beyond_atom, beyond_row) } else { (beyond_row, beyond_atom) };
        for bytes in [leading, stride].into_iter().flatten() {
            if bytes % 16 != 0 {
                return Err(format!("a stride of {bytes} bytes is no multiple of 16"));
            }
        }
        Ok(MatrixDescriptorPlan {
            tile,
            swizzle,
            transposed,
            leading_bytes: leading.unwrap_or(16),
            stride_bytes: stride.unwrap_or(16),
            starts,
            alignment: if plain { 16 } else { 8 * row },
        })
    }
}
