//! Tensor descriptors and copies by the tensor data mover of gfx1250 (LLVM 22, `llvm.amdgcn.tensor.load.to.lds`).
//!
//! A descriptor is what it is made of: base, sizes, strides, and a predicate. The words of the hardware's descriptor ("D#"; MLIR,
//! `amdgpu.make_dma_descriptor`) are made where something is copied: there its addresses are known, and what the plan says of
//! tile and padding. Each warp issues one instruction, which moves its own tile; a predicate that is zero lets it move nothing, and it is counted all
//! the same. Dimension 0 of the hardware is the contiguous one.

use super::waits;
use crate::emit::{Emit, Failure, ICmp, Lowered, address_space, internal, unsupported};
use crate::lower::{Handler, Lower};
use linear_layout::plan::{TdmPlan, ThreadBases};
use linear_layout::target::Direction;
use mlir_host::ir::{Attr, Op, Type, Value};
use mlir_host::upstream::ConstantOp;
use ttopt_dialect::amdg::ops::{
    AsyncTdmCopyGlobalToLocalOp, AsyncTdmCopyLocalToGlobalOp, AsyncTdmIntrinsicWaitOp, AsyncTdmWaitOp,
    UpdateTensorDescriptorOp,
};
use ttopt_dialect::tt::enums::{CacheModifier, PaddingOption};
use ttopt_dialect::tt::ops::MakeTensorDescOp;
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_passes::buffer_plans;

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("tt.make_tensor_descriptor", make),
    ("amdg.update_tensor_descriptor", update),
    ("amdg.async_tdm_copy_global_to_local", load),
    ("amdg.async_tdm_copy_local_to_global", store),
    ("amdg.async_tdm_wait", |l, op| wait(l, op, AsyncTdmWaitOp::of(op).num())),
    ("amdg.async_tdm_intrinsic_wait", |l, op| wait(l, op, AsyncTdmIntrinsicWaitOp::of(op).count())),
];

/// Dimensions that two groups of words describe.
const DIMS_OF_TWO_GROUPS: usize = 2;
/// What the last two bits of the first group say: a tensor.
const TYPE: i64 = 2 << 30;
/// Fields of the second group's first word.
const DATA_SIZE: u32 = 16;
const PAD_ENABLE: i64 = 1 << 20;
const PAD_INTERVAL: u32 = 22;
const PAD_AMOUNT: u32 = 25;

/// What the values of a descriptor are.
pub(super) fn types<'c>(e: &Emit<'c>, rank: usize) -> Lowered<Vec<Type<'c>>> {
    let mut types = vec![e.ptr(address_space::GLOBAL)?];
    types.extend(std::iter::repeat_n(e.i32(), rank));
    types.extend(std::iter::repeat_n(e.i64(), rank));
    types.push(e.i32());
    Ok(types)
}

/// A descriptor of a tensor.
struct Descriptor<'c> {
    ty: TensorDescType<'c>,
    /// Where the block begins.
    base: Value<'c>,
    /// Elements from there on, `i32`, by dimension: others are outside.
    shape: Vec<Value<'c>>,
    /// Elements from one index to the next, `i64`.
    strides: Vec<Value<'c>>,
    /// Whether anything is moved, an `i32`.
    active: Value<'c>,
}

impl<'c> Descriptor<'c> {
    fn of(l: &Lower<'_, 'c>, value: Value<'c>) -> Lowered<Self> {
        let Some(ty) = TensorDescType::cast(value.ty()) else {
            return unsupported(format!("{} is no tensor descriptor", value.ty()));
        };
        let rank = ty.shape().len();
        let values = l.get(value)?;
        match &values[..] {
            [base, rest @ .., active] if rest.len() == 2 * rank => {
                let (shape, strides) = rest.split_at(rank);
                Ok(Self {
                    ty,
                    base: *base,
                    shape: shape.to_vec(),
                    strides: strides.to_vec(),
                    active: *active,
                })
            }
            _ => unsupported(format!("{} has no parts", value.ty())),
        }
    }

    fn values(self) -> Vec<Value<'c>> {
        let mut values = vec![self.base];
        values.extend(self.shape);
        values.extend(self.strides);
        values.push(self.active);
        values
    }

    /// Moves the base on by `offset` elements along a dimension.
    fn advance(&mut self, l: &mut Lower<'_, 'c>, dim: usize, offset: Value<'c>) -> Lowered<()> {
        let (i64t, element) = (l.emit.i64(), l.register_type(self.ty.signless_element())?);
        let mut offset = l.emit.extend("llvm.sext", offset, i64t)?;
        if dim + 1 < self.strides.len() {
            offset = l.emit.same("llvm.mul", &[offset, self.strides[dim]])?;
        }
        self.base = l.emit.gep(self.base, offset, element)?;
        Ok(())
    }

    /// Leaves `gone` elements along a dimension out from its beginning.
    fn shorten(&mut self, l: &mut Lower<'_, 'c>, dim: usize, gone: Value<'c>) -> Lowered<()> {
        let zero = l.emit.const_i32(0)?;
        let left = l.emit.same("llvm.sub", &[self.shape[dim], gone])?;
        self.shape[dim] = l.emit.same("llvm.intr.smax", &[left, zero])?;
        Ok(())
    }
}

fn need(l: &Lower<'_, '_>) -> Lowered<()> {
    if l.target.desc().primitives.tensor_data_mover {
        return Ok(());
    }
    unsupported(format!("the target {} has no tensor data mover", l.target.desc().name))
}

fn is_one(value: Value<'_>) -> bool {
    ConstantOp::defining(value).and_then(|constant| constant.value()).and_then(Attr::as_int) == Some(1)
}

fn make<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    need(l)?;
    let made = MakeTensorDescOp::of(op);
    if made.padding() != PaddingOption::Zero {
        return unsupported("tensor operations fill what is outside of a tensor with zeros, not with NaN");
    }
    if made.strides().last().is_none_or(|last| !is_one(last)) {
        return unsupported(
            "tensor operations move rows of elements that follow each other: the last stride must be the constant 1",
        );
    }
    let mut values = vec![l.scalar(made.base())?];
    for value in made.shape().chain(made.strides()) {
        values.push(l.scalar(value)?);
    }
    values.push(l.emit.const_i32(1)?);
    l.set(op.result(0), values);
    Ok(())
}

fn update<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    need(l)?;
    let update = UpdateTensorDescriptorOp::of(op);
    let mut desc = Descriptor::of(l, update.desc())?;
    for (dim, offset) in update.add_offsets().enumerate() {
        let offset = l.scalar(offset)?;
        desc.advance(l, dim, offset)?;
        if update.clamp_bounds().is_some() {
            // Nothing of a block that begins before the tensor is inside, in Triton's code, too.
            let zero = l.emit.const_i32(0)?;
            let before = l.emit.icmp(ICmp::Slt, offset, zero)?;
            desc.shorten(l, dim, offset)?;
            desc.shape[dim] = l.emit.select(before, zero, desc.shape[dim])?;
        }
    }
    for (dim, bound) in update.set_bounds().enumerate() {
        desc.shape[dim] = l.scalar(bound)?;
    }
    if let Some(active) = update.pred() {
        desc.active = l.scalar(active)?;
    }
    let values = desc.values();
    l.set(op.result(0), values);
    Ok(())
}

fn load<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let copy = AsyncTdmCopyGlobalToLocalOp::of(op);
    if copy.warp_used_hint().is_some() {
        return unsupported("copies that only some warps issue are not supported");
    }
    let (desc, buffer) = (copy.desc(), copy.result());
    copy_block(l, op, desc, buffer, copy.barrier(), copy.cache(), Direction::Store)
}

fn store<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let copy = AsyncTdmCopyLocalToGlobalOp::of(op);
    let (desc, buffer) = (copy.desc(), copy.src());
    copy_block(l, op, desc, buffer, copy.barrier(), copy.cache(), Direction::Load)
}

fn copy_block<'c>(
    l: &mut Lower<'_, 'c>,
    op: Op<'c>,
    desc: Value<'c>,
    buffer: Value<'c>,
    barrier: Option<Value<'c>>,
    cache: CacheModifier,
    direction: Direction,
) -> Lowered<()> {
    need(l)?;
    if barrier.is_some() {
        return unsupported("tensor operations that arrive at a barrier are not supported");
    }
    if cache != CacheModifier::None {
        return unsupported("tensor operations with a cache modifier are not supported");
    }
    let (mut desc, buffer) = (Descriptor::of(l, desc)?, l.buffer(buffer)?);
    let plan = buffer_plans::tdm(
        desc.ty,
        buffer.ty,
        l.num_threads() / l.target.desc().lanes,
        direction,
        l.target.desc(),
    );
    let plan = plan.map_err(Failure::Unsupported)?;
    l.remark(op, || plan.to_string());
    let shared = own_tile(l, &plan, &mut desc, buffer.base)?;
    if l.num_threads() <= l.target.desc().lanes {
        // Barriers of a single wave wait for nothing: its own accesses come first.
        waits::shared(&mut l.emit, l.target.desc())?;
    }
    let groups = groups(l, &plan, &desc, shared)?;
    let mut attrs = vec![("cachePolicy", Attr::int(op.context(), 32, 0))];
    attrs.extend(super::copies::scopes(&l.emit, true)?);
    let name = match direction {
        Direction::Store => "rocdl.tensor.load.to.lds",
        Direction::Load => "rocdl.tensor.store.from.lds",
    };
    let form = if groups.len() == 2 { ".d2" } else { "" };
    l.emit.op(&format!("{name}{form}"), &groups, &[], &attrs)?;
    // Tokens order operations that are emitted in order.
    l.set(op.result(0), Vec::new());
    Ok(())
}

/// Makes of a block the tile of this warp; returns where it lies in shared memory.
fn own_tile<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &TdmPlan,
    desc: &mut Descriptor<'c>,
    base: Value<'c>,
) -> Lowered<Value<'c>> {
    // A buffer may lack leading dimensions of one element.
    let missing = desc.shape.len() - plan.tile.len();
    for dim in 0..plan.tile.len() {
        let warp: smallvec::SmallVec<[u64; 6]> = plan.warp_starts.iter().map(|start| start[dim]).collect();
        if warp.iter().any(|start| *start != 0) {
            let start = l.thread_number(&ThreadBases { warp, ..ThreadBases::default() }, 1)?;
            desc.advance(l, missing + dim, start)?;
            desc.shorten(l, missing + dim, start)?;
        }
    }
    if let Some(mine) = l.is_representative(0, plan.idle_warps, 0)? {
        let zero = l.emit.const_i32(0)?;
        desc.active = l.emit.select(mine, desc.active, zero)?;
    }
    if plan.row_padding > 0
        && let (Some(row), Some(last)) = (plan.tile.last(), desc.shape.last_mut())
    {
        // Padding is read, and lies outside of the tensor.
        let row = l.emit.const_i32(*row as i64)?;
        *last = l.emit.same("llvm.intr.smin", &[*last, row])?;
    }
    // Padding makes of powers of two other numbers, whose sums are no XOR.
    let (mut at, byte) = (base, l.emit.int(8));
    let first = plan.warp_bytes.first().copied().unwrap_or(0);
    let number = |bits: std::ops::Range<usize>| ThreadBases {
        warp: (0..plan.warp_bytes.len())
            .map(|bit| if bits.contains(&bit) { 1 << (bit - bits.start) } else { 0 })
            .collect(),
        ..ThreadBases::default()
    };
    let doubles = plan.warp_bytes.iter().enumerate().all(|(bit, bytes)| *bytes == first << bit);
    let parts: Vec<(std::ops::Range<usize>, u64)> = if doubles {
        vec![(0..plan.warp_bytes.len(), first)]
    } else {
        plan.warp_bytes.iter().enumerate().map(|(bit, bytes)| (bit..bit + 1, *bytes)).collect()
    };
    for (bits, bytes) in parts.into_iter().filter(|(_, bytes)| *bytes != 0) {
        let number = l.thread_number(&number(bits), 1)?;
        let bytes = l.emit.const_i32(bytes as i64)?;
        let offset = l.emit.same("llvm.mul", &[number, bytes])?;
        at = l.emit.gep(at, offset, byte)?;
    }
    Ok(at)
}

/// The groups of words of a descriptor: two, or four for more than two dimensions.
fn groups<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &TdmPlan,
    desc: &Descriptor<'c>,
    shared: Value<'c>,
) -> Lowered<Vec<Value<'c>>> {
    let rank = desc.shape.len();
    let e = &mut l.emit;
    let (i32t, i64t) = (e.i32(), e.i64());
    let zero = e.const_i32(0)?;
    let mut tile = plan.tile_dims();
    tile.resize(rank, 1);
    let tile = |dim: usize| tile.get(dim).map_or(0, |size| *size as i64);
    let size = |dim: usize| if dim < rank { desc.shape[rank - 1 - dim] } else { zero };
    let mut strides = Vec::new();
    for dim in 1..rank.max(2) {
        let stride = if dim < rank { desc.strides[rank - 1 - dim] } else { e.const_int(64, 0)? };
        let low = e.value("llvm.trunc", &[stride], i32t, &[])?;
        let high = e.lshr(stride, 32)?;
        strides.push([low, e.value("llvm.trunc", &[high], i32t, &[])?]);
    }
    strides.resize(4, [zero; 2]);
    // A number of 16 bits in the upper half of a word whose lower half is `low`.
    let beside = |e: &mut Emit<'c>, low: Value<'c>, high: i64| {
        let high = e.const_i32(high << 16)?;
        e.or(low, high)
    };
    let joined = |e: &mut Emit<'c>, low: Value<'c>, high: Value<'c>| {
        let high = e.shl(high, 16)?;
        e.or(low, high)
    };
    let address = e.value("llvm.ptrtoint", &[shared], i32t, &[])?;
    let global = e.value("llvm.ptrtoint", &[desc.base], i64t, &[])?;
    let low = e.value("llvm.trunc", &[global], i32t, &[])?;
    let high = e.lshr(global, 32)?;
    let high = e.value("llvm.trunc", &[high], i32t, &[])?;
    let tensor = e.const_i32(TYPE as u32 as i32 as i64)?;
    let high = e.or(high, tensor)?;
    let first = vec![desc.active, address, low, high];

    let flags = e.const_i32(flags(plan))?;
    let mut second = vec![flags, e.shl(size(0), 16)?];
    let upper = e.lshr(size(0), 16)?;
    second.push(joined(e, upper, size(1))?);
    let upper = e.lshr(size(1), 16)?;
    second.push(beside(e, upper, tile(0))?);
    second.push(e.const_i32(tile(1) | tile(2) << 16)?);
    second.push(strides[0][0]);
    let upper = e.mask(strides[0][1], 0xffff)?;
    second.push(joined(e, upper, strides[1][0])?);
    // 48 bits of a stride: what the word before has, and what is left.
    let (low, high) = (e.lshr(strides[1][0], 16)?, e.shl(strides[1][1], 16)?);
    second.push(e.or(low, high)?);

    let mut all = vec![first, second];
    if rank > DIMS_OF_TWO_GROUPS {
        let upper = e.mask(strides[2][1], 0xffff)?;
        all.push(vec![size(2), size(3), strides[2][0], beside(e, upper, tile(3))?]);
        let upper = e.mask(strides[3][1], 0xffff)?;
        let middle = joined(e, upper, size(4))?;
        let upper = e.lshr(size(4), 16)?;
        all.push(vec![strides[3][0], middle, beside(e, upper, tile(4))?, zero]);
    }
    all.iter()
        .map(|words| {
            let ty = e.vector(words.len(), i32t)?;
            e.join(words, ty)
        })
        .collect()
}

/// The first word of the second group: what does not depend on addresses.
fn flags(plan: &TdmPlan) -> i64 {
    let mut flags = i64::from(plan.block_mask) | i64::from(plan.data_size()) << DATA_SIZE;
    if let Some(padding) = plan.padding {
        let interval = i64::from(padding.interval_words.ilog2()) - 1;
        flags |= PAD_ENABLE | interval << PAD_INTERVAL | (padding.words as i64 - 1) << PAD_AMOUNT;
    }
    i64::from(flags as u32 as i32)
}

fn wait<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, left: i64) -> Lowered<()> {
    need(l)?;
    let Ok(left) = u32::try_from(left) else {
        return unsupported("waits for a negative number of copies");
    };
    // A copy is one instruction.
    waits::tensors(&mut l.emit, left)?;
    if op.num_results() != 1 {
        return internal("a wait without a token");
    }
    l.set(op.result(0), Vec::new());
    Ok(())
}
