//! Rows of a block that are copied from or to rows of a tensor chosen one by one: who copies which.
//!
//! From sm_100 on an instruction takes the numbers of four rows (PTX ISA, "cp.async.bulk.tensor",
//! `.tile::gather4`, `.tile::scatter4`); before, it copies a box of one row. All lanes of a warp hold the
//! numbers of the warp's rows, and one of them issues the copies.
//!
//! The swizzle is a function of the address in shared memory, so that rows may be copied to where they lie in
//! it, as long as each begins at a multiple of 128 bytes.

use std::fmt;

use smallvec::SmallVec;

use super::tma::{BOX_ALIGNMENT, MAX_BOX, parts, unsupported};
use super::{TmaMap, TmaPlan};
use crate::encoding::NvmmaShared;
use crate::f2::Echelon;
use crate::plan::{PlanError, PlanResult, Unsupported};
use crate::target::TargetDesc;
use crate::{Dim, Encoding, LinearLayout};

/// Rows of one instruction where it takes their numbers.
const ROWS_OF_GATHER: u64 = 4;

/// One instruction of each warp.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowCopy {
    /// The register with the number of the first row; those of the others follow.
    pub register: usize,
    /// The column of the block where the copy starts.
    pub column: u64,
    /// Where it starts in shared memory in the first warp, in bytes from the start of the buffer.
    pub offset_bytes: u64,
}

/// How the rows of a block are copied.
///
/// ```
/// use linear_layout::{Dim, LinearLayout};
/// use linear_layout::plan::TmaRowsPlan;
/// use linear_layout::target::TargetDesc;
/// // 16 rows of 128 f16 by four warps, whose lanes all hold the numbers of four rows.
/// let numbers = LinearLayout::from_bases(
///     &[
///         (Dim::REGISTER, vec![vec![1], vec![2]]),
///         (Dim::LANE, vec![vec![0]; 5]),
///         (Dim::WARP, vec![vec![4], vec![8]]),
///     ],
///     &[Dim::out(0)],
/// )?;
/// let hopper = TargetDesc::parse("cuda:90")?;
/// let encoding = TmaRowsPlan::encoding(128, 16, &[], &hopper)?;
/// let plan = TmaRowsPlan::new(&encoding, &[16, 128], &numbers, &hopper)?;
/// // A row is two copies of 128 bytes, 16 rows apart.
/// assert_eq!((plan.rows, plan.copies.len(), plan.copies[4].offset_bytes), (1, 8, 2048));
/// assert_eq!(plan.warp_bytes, [512, 1024]);
/// let blackwell = TargetDesc::parse("cuda:100")?;
/// assert_eq!(TmaRowsPlan::new(&encoding, &[16, 128], &numbers, &blackwell)?.copies.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TmaRowsPlan {
    /// The box of the tensor map: a part of one row.
    pub map: TmaMap,
    /// Rows of one instruction: one or four.
    pub rows: u64,
    /// The instructions of each warp.
    pub copies: Vec<RowCopy>,
    /// Bytes by which each bit of the warp's number moves the copies in shared memory.
    pub warp_bytes: Vec<u64>,
    /// Bits of the warp's number that must be zero: other warps hold the same rows.
    pub idle_warps: u64,
    /// For each bit of the number of a CTA in its cluster, where its part begins.
    pub parts: Vec<SmallVec<[u64; 5]>>,
    /// Bytes that are copied to or from the memory of each CTA of a cluster.
    pub bytes: u64,
}

/// What becomes of rows that are moved one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsFate {
    /// They are gathered for threads to compute with.
    InRegisters,
    /// They are gathered as an operand of a dot.
    Multiplied,
    /// They are gathered, and stored by another copy.
    Stored,
    /// They are scattered.
    Scattered,
}

/// Bytes that one copy must move to be as fast as threads that load rows.
const WORTHWHILE_BYTES: u64 = 512;

impl TmaRowsPlan {
    /// Whether copies of rows, of `row_bytes` with elements of `elem_bytes`, are faster than loads and stores of
    /// threads.
    ///
    /// Measured on an H200 (docs/tma.md), where an instruction copies one row: the number of copies limits short
    /// ones. Scattering is slower in every case, gathering for registers faster from 512 bytes
    /// a copy on, and for dots where a row is one copy. With four rows an instruction copies are used.
    ///
    /// # Errors
    /// Why they are not.
    pub fn is_worth(
        (row_bytes, elem_bytes): (u64, u64),
        fate: RowsFate,
        target: &TargetDesc,
    ) -> Result<(), String> {
        if target.primitives.bulk_rows {
            return Ok(());
        }
        let copy_bytes = row_bytes.min(MAX_BOX * elem_bytes);
        match fate {
            RowsFate::InRegisters if copy_bytes >= WORTHWHILE_BYTES => Ok(()),
            RowsFate::Multiplied if row_bytes == BOX_ALIGNMENT => Ok(()),
            RowsFate::InRegisters => Err(format!(
                "threads load rows faster than copies of {copy_bytes} bytes do; those of {WORTHWHILE_BYTES} are faster"
            )),
            RowsFate::Multiplied => Err(format!(
                "threads load rows of {row_bytes} bytes for a dot faster than copies do; rows of \
                 {BOX_ALIGNMENT} bytes are copied"
            )),
            RowsFate::Stored => {
                Err("threads load rows that are stored again faster than copies do".to_owned())
            }
            RowsFate::Scattered => Err("threads scatter rows faster than copies do".to_owned()),
        }
    }

    /// The memory layout for rows of so many elements.
    ///
    /// # Errors
    /// As [`TmaPlan::encoding`], and rows that do not begin where copies can.
    pub fn encoding(
        columns: u64,
        elem_bits: u32,
        cga: &[Vec<u64>],
        target: &TargetDesc,
    ) -> PlanResult<NvmmaShared> {
        // As many rows as a swizzle needs before it repeats, in each block of a cluster.
        let blocks = 1u64.checked_shl(cga.len() as u32).unwrap_or(1);
        let shape = [8 * blocks, columns];
        let encoding = TmaPlan::encoding(&shape, elem_bits, cga, target)?;
        Self::fits(&encoding, columns, target)?;
        Ok(encoding)
    }

    /// Whether rows of so many elements can be copied from and to buffers with the layout `encoding`.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn fits(encoding: &NvmmaShared, columns: u64, target: &TargetDesc) -> PlanResult<()> {
        let map = TmaMap::new(encoding, &[1, columns], target)?;
        check_row(&map, rows_of_instruction(target))
    }

    /// How the rows of a block of `shape` are copied from or to a buffer with the layout `encoding`; `numbers`
    /// is the layout of the vector of row numbers.
    ///
    /// # Errors
    /// As [`encoding`](Self::encoding), and numbers that not all lanes of a warp hold.
    pub fn new(
        encoding: &NvmmaShared,
        shape: &[u64],
        numbers: &LinearLayout,
        target: &TargetDesc,
    ) -> PlanResult<TmaRowsPlan> {
        let &[height, width] = shape else {
            return unsupported(Unsupported::Shape, format!("rows of a block of {} dimensions", shape.len()));
        };
        let map = TmaMap::new(encoding, &[1, width], target)?;
        let rows = rows_of_instruction(target);
        check_row(&map, rows)?;
        let memory = Encoding::NvmmaShared(encoding.clone()).to_linear_layout(shape)?;
        let place = Places { inverse: memory.pseudo_invert(), map: &map };
        let registers = numbers.columns_of(Dim::REGISTER);
        if numbers.columns_of(Dim::LANE).iter().any(|row| *row != 0) {
            return unsupported(
                Unsupported::Distribution,
                "lanes of a warp hold the numbers of different rows",
            );
        }
        for bit in 0..rows.trailing_zeros() {
            if registers.get(bit as usize) != Some(&(1 << bit)) {
                return unsupported(
                    Unsupported::Distribution,
                    format!("a thread must hold the numbers of {rows} consecutive rows"),
                );
            }
        }
        // Elements of a row lie along it as a box of one row does, and rows of an instruction follow each other.
        let column = map.box_shape.last().copied().unwrap_or(1);
        for bit in 0..column.trailing_zeros() {
            let (wanted, found) = (map.elem_bytes() << bit, place.of(0, 1 << bit)?);
            if found != wanted {
                return unsupported(
                    Unsupported::Memory,
                    format!("column {} of a row lies at byte {found}, not {wanted}", 1u64 << bit),
                );
            }
        }
        for bit in 0..rows.trailing_zeros() {
            let (wanted, found) = (map.box_bytes() << bit, place.of(1 << bit, 0)?);
            if found != wanted {
                return unsupported(
                    Unsupported::Memory,
                    format!("row {} of a copy lies at byte {found}, not {wanted}", 1u64 << bit),
                );
            }
        }
        let warps = numbers.columns_of(Dim::WARP);
        let idle_warps =
            warps.iter().enumerate().filter(|(_, row)| **row == 0).map(|(bit, _)| 1 << bit).sum();
        let warp_bytes = warps.iter().map(|row| place.of(*row, 0)).collect::<PlanResult<Vec<_>>>()?;
        let copied =
            |register: usize| (0..registers.len()).all(|bit| registers[bit] != 0 || register >> bit & 1 == 0);
        let own_width = encoding.part(shape)?[1];
        let mut copies = Vec::new();
        let mut bits = 0;
        for start in (0..own_width).step_by(column as usize) {
            for register in (0..1usize << registers.len()).step_by(rows as usize).filter(|r| copied(*r)) {
                let row = crate::f2::mul(registers, register as u64);
                let offset_bytes = place.of(row, start)?;
                bits |= offset_bytes;
                copies.push(RowCopy { register, column: start, offset_bytes });
            }
        }
        let mut seen = Echelon::new();
        let wanted = registers.iter().chain(warps).filter(|row| **row != 0);
        if !wanted.clone().all(|row| seen.insert(*row)) {
            return unsupported(Unsupported::Distribution, "rows are numbered twice");
        }
        let all = [warp_bytes.as_slice(), &[bits]].concat();
        let apart = all.iter().try_fold(0, |sum, bytes| (sum & bytes == 0).then_some(sum | bytes));
        if apart.is_none() || all.iter().any(|bytes| !bytes.is_multiple_of(BOX_ALIGNMENT)) {
            return unsupported(Unsupported::Memory, "rows of a warp do not begin at a place of their own");
        }
        let parts = parts(&memory);
        let of_blocks = numbers.columns_of(Dim::BLOCK);
        if of_blocks.len() != parts.len() || of_blocks.iter().zip(&parts).any(|(row, part)| *row != part[0]) {
            return unsupported(
                Unsupported::Distribution,
                "blocks of a cluster hold the numbers of other rows than the buffer",
            );
        }
        let own_rows = encoding.part(shape)?[0];
        if 1 << seen.rank() != own_rows {
            return unsupported(
                Unsupported::Distribution,
                format!("{} numbers for {own_rows} of {height} rows", 1u64 << seen.rank()),
            );
        }
        Ok(TmaRowsPlan {
            rows,
            copies,
            warp_bytes,
            idle_warps,
            parts,
            bytes: own_rows * own_width * map.elem_bytes(),
            map,
        })
    }

    /// What the address of the buffer is a multiple of, in bytes.
    pub fn alignment(&self) -> u64 {
        self.map.alignment()
    }
}

fn rows_of_instruction(target: &TargetDesc) -> u64 {
    if target.primitives.bulk_rows { ROWS_OF_GATHER } else { 1 }
}

/// What is copied must begin at a multiple of 128 bytes.
fn check_row(map: &TmaMap, rows: u64) -> PlanResult<()> {
    let bytes = map.box_bytes() * rows;
    if bytes.is_multiple_of(BOX_ALIGNMENT) {
        return Ok(());
    }
    unsupported(
        Unsupported::Memory,
        format!("copies to shared memory begin at multiples of {BOX_ALIGNMENT} bytes, not of {bytes}"),
    )
}

/// Where elements lie in shared memory, in bytes, as copies count: without swizzle.
struct Places<'a> {
    inverse: LinearLayout,
    map: &'a TmaMap,
}

impl Places<'_> {
    fn of(&self, row: u64, column: u64) -> PlanResult<u64> {
        let place =
            self.inverse.apply(&[(Dim::out(0), row), (Dim::out(1), column)]).map_err(PlanError::Layout)?;
        let offset = place.iter().find(|(dim, _)| *dim == Dim::OFFSET).map_or(0, |(_, offset)| *offset);
        Ok(self.map.swizzled(offset * self.map.elem_bytes()))
    }
}

impl fmt::Display for TmaRowsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {} of {}, in each warp", self.copies.len(), self.rows, self.map)
    }
}
