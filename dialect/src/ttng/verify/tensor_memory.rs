//! Verifiers of accesses to tensor memory.

use super::super::attrs::{TENSOR_MEMORY, encoding as memory_encoding, matrix, scales};
use super::super::ops::*;
use super::mma::TENSOR_MEMORY_DIMS;
use super::{bits, memdesc, same_contents, tcgen05, tensor, writable};
use crate::ttg::attrs::encoding;
use crate::ttg::infer_memdesc::alignment;
use crate::ttg::layout::to_linear_layout;
use crate::ttg::types::MemDescType;
use linear_layout::{Dim, Encoding, LinearLayout};
use mlir_host::def::VerifyResult;
use mlir_host::ir::{FloatKind, Op, TensorType, Value};

/// Waiting for accesses.
pub fn tmem_wait(op: Op<'_>) -> VerifyResult {
    tcgen05(op)
}

fn in_tensor_memory(what: &str, ty: MemDescType<'_>) -> VerifyResult {
    if ty.space().is(&TENSOR_MEMORY) && memory_encoding(ty.encoding()).is_some() {
        Ok(())
    } else {
        Err(format!("the {what} must be in tensor memory, with a layout of it, got '{}'", ty.ty()))
    }
}

//===----------------------------------------------------------------------===//
// Which registers an access can move
//===----------------------------------------------------------------------===//

/// Where a register, lane or warp bit leads: row and column of tensor memory.
type Step = (u64, u64);

/// What one instruction moves between a warp and its 32 rows (PTX ISA, "tcgen05.ld"), by the steps of its
/// lanes and of the registers that come with it; columns have 32 bits.
struct Atom {
    lanes: [Step; 5],
    registers: &'static [Step],
}

const ATOMS: [Atom; 4] = [
    // 32x32b
    Atom { lanes: [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], registers: &[] },
    // 16x64b
    Atom { lanes: [(8, 0), (0, 1), (1, 0), (2, 0), (4, 0)], registers: &[] },
    // 16x128b
    Atom { lanes: [(0, 1), (0, 2), (1, 0), (2, 0), (4, 0)], registers: &[(8, 0)] },
    // 16x256b
    Atom { lanes: [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)], registers: &[(0, 1), (8, 0)] },
];

/// Steps of the first two warp bits: each warp of a group has its own 32 rows.
const WARPS: [Step; 2] = [(32, 0), (64, 0)];

/// Where the bits of registers, lanes and warps lead.
struct Moves {
    registers: Vec<Step>,
    lanes: Vec<Step>,
    warps: Vec<Step>,
}

impl Moves {
    fn new(layout: &LinearLayout, memory: &LinearLayout) -> Result<Moves, String> {
        let across = [(0, 5), (1, 6)];
        let rows_fit = across.iter().all(|(warp, row)| {
            layout.basis_coords(Dim::WARP, *warp).is_some()
                && layout.basis_coords(Dim::WARP, *warp) == memory.basis_coords(Dim::ROW, *row)
        });
        if !rows_fit {
            return Err("warps 1 and 2 must hold rows 32 and 64 of tensor memory".into());
        }
        let moves = layout.invert_and_compose(memory).map_err(|err| err.to_string())?;
        let steps = |dim: Dim| -> Vec<Step> {
            let along = |bit: u32, out: Dim| moves.basis_along(dim, bit, out).unwrap_or(0);
            (0..moves.in_bits(dim)).map(|bit| (along(bit, Dim::ROW), along(bit, Dim::COL))).collect()
        };
        let mut warps = steps(Dim::WARP);
        warps.iter_mut().zip(WARPS).for_each(|(warp, row)| *warp = row);
        // Copies in registers are not moved.
        let registers = steps(Dim::REGISTER).into_iter().filter(|step| *step != (0, 0)).collect();
        Ok(Moves { registers, lanes: steps(Dim::LANE), warps })
    }

    fn columns(&self) -> u64 {
        [&self.registers, &self.lanes, &self.warps].into_iter().flatten().fold(0, |all, step| all | step.1)
    }

    /// Divides columns by `by`; those below are dropped.
    fn widen(&mut self, by: u64) {
        for steps in [&mut self.registers, &mut self.lanes, &mut self.warps] {
            steps.iter_mut().for_each(|step| step.1 /= by);
        }
    }

    /// Makes columns of 32 bits out of columns of `width` bits.
    fn pack(&mut self, mut width: u32) -> VerifyResult {
        while width < 32 {
            let lowest = |moves: &Moves, column: u64| {
                moves.registers.first() == Some(&(0, column))
                    && [&moves.registers[1..], &moves.lanes[..], &moves.warps[..]]
                        .into_iter()
                        .flatten()
                        .all(|step| step.1 % (2 * column) == 0)
            };
            if lowest(self, 1) {
                // Neighbours in registers are neighbours in memory.
                self.registers.remove(0);
                self.widen(2);
                width *= 2;
            } else if width == 16 && self.columns() & 1 == 0 && lowest(self, 2) {
                // Each element has a column of its own, and an instruction packs two of them.
                self.registers.remove(0);
                self.widen(4);
                return Ok(());
            } else if self.columns().is_multiple_of(u64::from(32 / width)) {
                self.widen(u64::from(32 / width));
                return Ok(());
            } else {
                return Err(format!(
                    "elements of {width} bits are neither packed nor each in its own column"
                ));
            }
        }
        Ok(())
    }

    /// Whether the instruction can move everything, repeated as often as needed.
    fn tiled_by(&self, lanes: &[Step], free_lanes: usize, registers: &[Step]) -> bool {
        let n = self.lanes.len();
        if n != lanes.len() + free_lanes || !self.lanes.starts_with(lanes) || !self.warps.starts_with(&WARPS)
        {
            return false;
        }
        let mut rest = self.registers.clone();
        for step in registers {
            let Some(at) = rest.iter().position(|mine| mine == step) else { return false };
            rest.remove(at);
        }
        let used = lanes
            .iter()
            .chain(registers)
            .chain(&WARPS)
            .fold((0, 0), |all, step| (all.0 | step.0, all.1 | step.1));
        let others = rest.iter().chain(&self.lanes[lanes.len()..]).chain(&self.warps[2..]);
        others.into_iter().all(|step| step.0 & used.0 == 0 && step.1 & used.1 == 0)
    }
}

/// Whether loads and stores can move a tensor with this layout.
fn movable(tensor: TensorType<'_>, memory: MemDescType<'_>) -> VerifyResult {
    let Some(attr) = tensor.encoding() else { return Ok(()) };
    let shape = tensor.shape();
    let layout = to_linear_layout(attr, &shape)?;
    let lies = to_linear_layout(memory.encoding(), &memory.shape())?;
    let mut moves = Moves::new(&layout, &lies)?;
    moves.pack(bits(memory.element()).max(1))?;
    if ATOMS.iter().any(|atom| moves.tiled_by(&atom.lanes, 0, atom.registers)) {
        return Ok(());
    }
    // 16x32bx2: two halves, the second one anywhere.
    if moves.tiled_by(&ATOMS[0].lanes[..4], 1, &[]) {
        let apart = moves.lanes.last().is_some_and(|step| *step != (0, 0));
        return if apart || scales(memory.encoding()).is_some() {
            Ok(())
        } else {
            Err("lanes 16 to 31 hold replicas, which only scales in tensor memory can have".into())
        };
    }
    Err("no instruction moves these lanes and registers".into())
}

/// A tensor that is moved to or from tensor memory.
fn operand(what: &str, tensor: TensorType<'_>, memory: MemDescType<'_>) -> VerifyResult {
    if tensor.rank() != 2 {
        return Err(format!("{what} must be a matrix, got '{}'", tensor.ty()));
    }
    same_contents(what, tensor, memory)?;
    movable(tensor, memory).map_err(|reason| {
        let layout = tensor.encoding().map_or_else(String::new, |attr| attr.to_string());
        format!(
            "{what} has the layout {layout}, which does not fit tensor memory with {}: {reason}",
            memory.encoding()
        )
    })
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// A load, maybe with a reduction of each row.
pub fn tmem_load(op: Op<'_>) -> VerifyResult {
    tcgen05(op)?;
    let load = TmemLoadOp::of(op);
    let (src, result) = (memdesc(load.src())?, tensor(load.result())?);
    in_tensor_memory("source", src)?;
    if matrix(src.encoding()).is_none() {
        return Err(format!("scales cannot be loaded back, got {}", src.encoding()));
    }
    operand("the result", result, src)?;
    let reduces = load.red_op().is_some();
    if reduces != load.red().is_some() {
        return Err(if reduces {
            "redOp needs a second result for the reduced rows".into()
        } else {
            "a second result needs redOp".into()
        });
    }
    let f32 = src.element().float_kind() == Some(FloatKind::F32);
    for (name, set) in [("abs", load.abs()), ("NaN", load.nan())] {
        if set == Some(true) && !reduces {
            return Err(format!("{name} needs redOp"));
        }
        if set == Some(true) && !f32 {
            return Err(format!("{name} needs elements of 'f32', got '{}'", src.element()));
        }
    }
    if reduces { whole_rows(result, src) } else { Ok(()) }
}

/// Each thread holds one whole row.
fn whole_rows(result: TensorType<'_>, src: MemDescType<'_>) -> VerifyResult {
    let Some(attr) = result.encoding() else { return Ok(()) };
    if matrix(src.encoding()).is_some_and(|e| e.col_stride != 1) {
        return Err("rows can only be reduced where elements are packed (colStride = 1)".into());
    }
    let layout = to_linear_layout(attr, &result.shape())?;
    let moves_along = |dim: Dim, out: usize| {
        (0..layout.in_bits(dim)).any(|bit| layout.basis_along(dim, bit, Dim::out(out)).unwrap_or(0) != 0)
    };
    if moves_along(Dim::REGISTER, 0) {
        return Err(format!(
            "rows can only be reduced where a thread holds one, but {attr} gives it several"
        ));
    }
    if [Dim::LANE, Dim::WARP, Dim::BLOCK].into_iter().any(|dim| moves_along(dim, 1)) {
        return Err(format!(
            "rows can only be reduced where a thread holds a whole one, but {attr} divides them"
        ));
    }
    Ok(())
}

/// A store.
pub fn tmem_store(op: Op<'_>) -> VerifyResult {
    tcgen05(op)?;
    let store = TmemStoreOp::of(op);
    let (src, dst) = (tensor(store.src())?, memdesc(store.dst())?);
    in_tensor_memory("destination", dst)?;
    writable(dst)?;
    operand("the source", src, dst)
}

/// An allocation.
pub fn tmem_alloc(op: Op<'_>) -> VerifyResult {
    tcgen05(op)?;
    let alloc = TmemAllocOp::of(op);
    let result = memdesc(alloc.result())?;
    in_tensor_memory("result", result)?;
    if result.shape() != result.alloc_shape() {
        return Err(format!(
            "the result must be a whole allocation: its shape {:?} is not that of the allocation, {:?}",
            result.shape(),
            result.alloc_shape()
        ));
    }
    match alloc.src() {
        Some(src) => operand("the source", tensor(src)?, result),
        None if result.mutable() => Ok(()),
        None => Err(format!("an allocation without a source must be mutable, got '{}'", result.ty())),
    }
}

/// A part of an allocation.
pub fn tmem_subslice(op: Op<'_>) -> VerifyResult {
    tcgen05(op)?;
    let slice = TmemSubSliceOp::of(op);
    let (src, result) = (memdesc(slice.src())?, memdesc(slice.result())?);
    in_tensor_memory("source", src)?;
    in_tensor_memory("result", result)?;
    for (what, same) in [
        ("element type", src.element() == result.element()),
        ("layout", src.encoding() == result.encoding()),
        ("shape of the allocation", src.alloc_shape() == result.alloc_shape()),
    ] {
        if !same {
            return Err(format!(
                "source and result must have the same {what}, got '{}' and '{}'",
                src.ty(),
                result.ty()
            ));
        }
    }
    let (from, to) = (src.shape(), result.shape());
    if from.len() != to.len() || !matches!(from.len(), 2 | 3) {
        return Err(format!(
            "source and result must both have 2 or 3 dimensions, got {} and {}",
            from.len(),
            to.len()
        ));
    }
    let (offset, dim) = (slice.offset(), slice.dim());
    let Some(axis) = usize::try_from(dim).ok().filter(|axis| *axis < from.len()) else {
        return Err(format!("dim = {dim} must be one of {} dimensions", from.len()));
    };
    if let Some(other) = (0..from.len()).find(|i| *i != axis && from[*i] != to[*i]) {
        return Err(format!(
            "only dimension {axis} is sliced, but dimension {other} has {} instead of {} elements",
            to[other], from[other]
        ));
    }
    if offset < 0 || to[axis] > from[axis] || offset > from[axis] - to[axis] {
        return Err(format!(
            "{} elements from offset {offset} on do not fit {} elements",
            to[axis], from[axis]
        ));
    }
    // A leading dimension counts whole buffers.
    let Some(axis) = axis.checked_sub(from.len() - 2) else { return Ok(()) };
    within_cta(src, axis, offset, to[axis + from.len() - 2])
}

/// A slice stays in each CTA and begins at a whole column.
fn within_cta(src: MemDescType<'_>, axis: usize, offset: i64, size: i64) -> VerifyResult {
    let shape = src.shape();
    let layout = to_linear_layout(src.encoding(), &shape[shape.len() - 2..])?;
    let (offset, size) = (u64::try_from(offset).unwrap_or(0), u64::try_from(size).unwrap_or(0));
    let out = Dim::out(axis);
    let crosses = (0..layout.in_bits(Dim::BLOCK))
        .any(|bit| layout.basis_along(Dim::BLOCK, bit, out).unwrap_or(0) >= size);
    if crosses && size < layout.out_size(out).unwrap_or(size) {
        return Err("a slice cannot be of some CTAs only".into());
    }
    // Where one more bit of the coordinate leads.
    let step = |along: u64| -> Option<(Dim, u64)> {
        TENSOR_MEMORY_DIMS.into_iter().find_map(|dim| {
            (0..layout.in_bits(dim))
                .find(|bit| layout.basis_along(dim, *bit, out) == Some(along))
                .map(|bit| (dim, 1 << bit))
        })
    };
    let width = 32 / u64::from(bits(src.element()).clamp(1, 32));
    let bits_of =
        |from: u64, to: u64| (0..63).map(|bit| 1u64 << bit).filter(move |bit| (from..=to).contains(bit));
    for bit in bits_of(1, offset).filter(|bit| offset & bit != 0) {
        if matches!(step(bit), Some((Dim::COL, at)) if at < width) {
            return Err(format!("offset {offset} is not at a whole column of 32 bits"));
        }
    }
    // A descriptor says where the slice begins; from there on it goes as from the beginning of the buffer only
    // if it begins at a multiple of its size, or if all that is carried goes to the next column.
    let unaligned = offset & size.saturating_sub(1);
    if unaligned == 0 {
        return Ok(());
    }
    let lowest = 1 << unaligned.trailing_zeros();
    let mut next = None;
    for bit in bits_of(lowest, offset + size - 1) {
        next = match step(bit) {
            Some((Dim::COL, at)) if next.is_none_or(|next| at == next) => Some(2 * at),
            _ => {
                return Err(format!(
                    "{size} elements from offset {offset} on do not lie as those from offset 0 on do"
                ));
            }
        };
    }
    Ok(())
}

/// A copy from shared memory.
pub fn tmem_copy(op: Op<'_>) -> VerifyResult {
    tcgen05(op)?;
    let copy = TmemCopyOp::of(op);
    let (src, dst): (MemDescType<'_>, MemDescType<'_>) = (memdesc(copy.src())?, memdesc(copy.dst())?);
    if !src.is_in_shared_memory() {
        return Err(format!("the source must be in shared memory, got '{}'", src.ty()));
    }
    if src.shape() != dst.shape() {
        return Err(format!(
            "the source has the shape {:?}, but the destination {:?}",
            src.shape(),
            dst.shape()
        ));
    }
    writable(dst)?;
    let from = encoding(src.encoding())?;
    let aligned = alignment(&from);
    if aligned < 16 {
        return Err(format!("the source must be aligned to 16 bytes, its layout gives {aligned}"));
    }
    same_division(src, dst)?;
    if let Encoding::NvmmaShared(e) = &from
        && (e.transposed || e.fp4_padded)
    {
        return Err(format!("the source must be neither transposed nor padded, got {}", src.encoding()));
    }
    let swizzled = |e: &Encoding| matches!(e, Encoding::NvmmaShared(e) if e.swizzling_byte_width != 0);
    if scales(dst.encoding()).is_some() {
        return if swizzled(&from) {
            Err(format!("the source of scales must not be swizzled, got {}", src.encoding()))
        } else {
            Ok(())
        };
    }
    let Some(e) = matrix(dst.encoding()) else {
        return Err(format!(
            "the destination must be in tensor memory, with a layout of it, got '{}'",
            dst.ty()
        ));
    };
    if e.block_m != 128 {
        return Err(format!("the destination must have blocks of 128 rows, got blockM = {}", e.block_m));
    }
    if matches!(from, Encoding::NvmmaShared(_)) && !swizzled(&from) {
        return Err(format!("the source must be swizzled, got {}", src.encoding()));
    }
    if bits(src.element()) != 32 {
        return Err(format!("elements must have 32 bits, got '{}'", src.element()));
    }
    let shape = dst.shape();
    let layout = to_linear_layout(dst.encoding(), &shape[shape.len() - 2..])?;
    let contiguous = layout.columns_of(Dim::COL).iter().take_while(|column| **column != 0).count();
    if contiguous < 2 {
        return Err(format!(
            "a row of the destination must have at least 128 contiguous bits, got {}",
            32 << contiguous
        ));
    }
    Ok(())
}

/// Every CTA copies its own part.
fn same_division(src: MemDescType<'_>, dst: MemDescType<'_>) -> VerifyResult {
    let [from, to] = [super::cga_layout(src.encoding())?, super::cga_layout(dst.encoding())?];
    if from == to || (from.is_empty() && to.iter().flatten().all(|value| *value == 0)) {
        Ok(())
    } else {
        Err(format!("source and destination must be divided among CTAs alike, got {from:?} and {to:?}"))
    }
}

/// Whether a value is a tensor whose layout loads and stores of the given memory can move.
pub fn is_movable(tensor: Value<'_>, memory: Value<'_>) -> bool {
    match (tensor.ty().as_tensor(), MemDescType::cast(memory.ty())) {
        (Some(tensor), Some(memory)) => movable(tensor, memory).is_ok(),
        _ => false,
    }
}
