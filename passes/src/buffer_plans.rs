//! Plans of buffers in shared memory, made from their types.

use crate::plans::{fragment, layout, word_bits};
use linear_layout::encoding::NvmmaShared;
use linear_layout::f2::Echelon;
use linear_layout::plan::{
    AddressFacts, FragmentWords, LdsLoadPlan, SharedAccessPlan, TdmPlan, TmaMap, TmaPlan, TmaRowsPlan,
};
use linear_layout::target::{Direction, TargetDesc};
use linear_layout::{Dim, Encoding, LinearLayout};
use mlir_host::ir::{Attr, Op, TensorType, Type, Value};
use mlir_host::match_op;
use std::sync::Arc;
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_dialect::ttg::attrs::{encoding, encoding_attr};
use ttopt_dialect::ttg::infer_memdesc;
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::ops::{LocalAllocOp, LocalStoreOp};
use ttopt_dialect::ttg::types::MemDescType;

/// Bytes to which buffers are aligned that nothing else is known of: the widest access.
const MIN_ALIGNMENT: u64 = 16;
/// No memory has 2 to this power of bytes.
const IMMENSE: u32 = 40;

/// How a buffer lies in the shared memory of a block.
#[derive(Clone, Debug)]
pub struct BufferLayout {
    /// From `offset` in elements, and `block`, to the coordinates of one buffer of the allocation.
    pub layout: Arc<LinearLayout>,
    /// `(interval, padding)` in elements.
    pub padding: Vec<(u64, u64)>,
    /// Buffers that the allocation is made of, one after the other.
    pub count: u64,
    /// Bytes of one element.
    pub elem_bytes: u64,
    /// Bytes to which the allocation is aligned.
    pub alignment: u64,
}

impl BufferLayout {
    /// The layout of the allocation that a view is part of.
    ///
    /// # Errors
    /// When the buffer is not in shared memory, or has no layout.
    pub fn of(buffer: MemDescType<'_>) -> Result<Self, String> {
        if !buffer.is_in_shared_memory() {
            return Err(format!("the buffer {} is not in shared memory", buffer.ty()));
        }
        let value = encoding(buffer.encoding())?;
        let padding = match &value {
            Encoding::PaddedShared(e) => e.intervals.clone(),
            Encoding::PartitionedShared(_) => {
                return Err(format!("buffers in several partitions are not supported: {}", buffer.ty()));
            }
            _ => Vec::new(),
        };
        let alloc = buffer.alloc_shape();
        let rank = value.rank();
        let (outer, inner) = alloc.split_at(alloc.len().saturating_sub(rank));
        let made = Self {
            layout: to_linear_layout(buffer.encoding(), inner)?,
            padding,
            count: outer.iter().fold(1, |count: u64, size| count.saturating_mul(size.unsigned_abs())),
            elem_bytes: u64::from(word_bits(buffer.element())? / 8),
            alignment: infer_memdesc::alignment(&value).max(MIN_ALIGNMENT),
        };
        if made.is_immense() {
            return Err(format!("the allocation of {} is larger than any memory", buffer.ty()));
        }
        Ok(made)
    }

    /// Whether numbers of its bytes might not fit 64 bits.
    fn is_immense(&self) -> bool {
        let bits = self.layout.in_bits(Dim::OFFSET);
        let padding =
            self.padding.iter().map(|(interval, pad)| u128::from(pad / interval.max(&1)) + 1).sum::<u128>();
        bits > IMMENSE || u128::from(self.count).saturating_mul(1 + padding) > (1 << IMMENSE) >> bits
    }

    /// Elements of one buffer in the memory of one block, padding left out.
    pub fn elements(&self) -> u64 {
        1 << self.layout.in_bits(Dim::OFFSET)
    }

    /// Bytes from one buffer of the allocation to the next.
    ///
    /// # Errors
    /// When padding makes these differ.
    pub fn stride_bytes(&self) -> Result<u64, String> {
        let elements = self.elements();
        match self.padding.iter().find(|(interval, _)| !elements.is_multiple_of(*interval)) {
            Some((interval, _)) if self.count > 1 => {
                Err(format!("buffers of {elements} elements are padded after every {interval}"))
            }
            _ => Ok(self.padded(elements) * self.elem_bytes),
        }
    }

    /// Bytes of the allocation in the memory of one block.
    pub fn bytes(&self) -> u64 {
        // Nothing follows the last element.
        (self.padded(self.count * self.elements() - 1) + 1) * self.elem_bytes
    }

    fn padded(&self, offset: u64) -> u64 {
        self.padding.iter().fold(offset, |sum, (interval, pad)| sum + offset / interval * pad)
    }

    /// The offset in elements of the element at `coordinates` of one buffer.
    ///
    /// # Errors
    /// When the layout holds no such element.
    pub fn offset_of(&self, coordinates: &[u64]) -> Result<u64, String> {
        let inverse = self.layout.pseudo_invert();
        let at: Vec<(Dim, u64)> = coordinates.iter().enumerate().map(|(i, c)| (Dim::out(i), *c)).collect();
        let place = inverse.apply(&at).map_err(|err| err.to_string())?;
        let offset = place.iter().find(|(dim, _)| *dim == Dim::OFFSET);
        offset.map(|(_, offset)| *offset).ok_or_else(|| "the layout of the buffer has no offsets".to_owned())
    }
}

/// Whether a view is only a part of its allocation's buffers. The offset of
/// its first element is then XORed into those of all others.
pub fn is_part(buffer: MemDescType<'_>) -> bool {
    let (shape, alloc) = (buffer.shape(), buffer.alloc_shape());
    let rank = encoding(buffer.encoding()).map_or(shape.len(), |value| value.rank()).min(shape.len());
    shape[shape.len() - rank..] != alloc[alloc.len().saturating_sub(rank)..]
}

/// The offset bits that distinguish parts of an allocation like `buffer`.
///
/// # Errors
/// As [`BufferLayout::of`].
pub fn part_bits(buffer: MemDescType<'_>) -> Result<u64, String> {
    let layout = BufferLayout::of(buffer)?;
    let (shape, alloc) = (buffer.shape(), buffer.alloc_shape());
    let rank = layout.layout.num_out_dims().min(shape.len());
    let (shape, alloc) = (&shape[shape.len() - rank..], &alloc[alloc.len() - rank..]);
    let mut bits = 0;
    for (dim, (size, whole)) in shape.iter().zip(alloc).enumerate() {
        let mut step = *size;
        while step < *whole {
            let mut at = vec![0; rank];
            at[dim] = step as u64;
            bits |= layout.offset_of(&at)?;
            step *= 2;
        }
    }
    Ok(bits)
}

/// The tensor that `op` writes to a buffer in shared memory, operand 0, and that buffer's type.
pub fn stored(op: Op<'_>) -> Option<(Value<'_>, MemDescType<'_>)> {
    let (tensor, buffer) = match_op!(op, {
        LocalAllocOp(alloc) => (alloc.src()?, alloc.result()),
        LocalStoreOp(store) => (store.src(), store.dst()),
        _ => return None,
    });
    let buffer = MemDescType::cast(buffer.ty()).filter(|buffer| buffer.is_in_shared_memory())?;
    Some((tensor, buffer))
}

/// Whether the threads of each block hold those elements of `tensor` that a
/// buffer of its shape has in that block's memory, all of them and no others:
/// then no block writes to another one's memory.
///
/// # Errors
/// As [`BufferLayout::of`], and for tensors without a layout.
pub fn covers(tensor: Type<'_>, buffer: MemDescType<'_>) -> Result<bool, String> {
    let memory = BufferLayout::of(buffer)?;
    let registers = within(tensor, &memory)?;
    if registers.in_bits(Dim::BLOCK) == 0 {
        return Ok(true);
    }
    let order: Vec<Dim> = memory.layout.out_dims().collect();
    let registers = registers.transpose_outs(&order).map_err(|err| err.to_string())?;
    let columns = |layout: &LinearLayout, dims: &[Dim]| -> Vec<u64> {
        dims.iter().flat_map(|dim| layout.columns_of(*dim)).copied().collect()
    };
    let held = Echelon::of(&columns(&registers, &[Dim::REGISTER, Dim::LANE, Dim::WARP]));
    let parts = part_bits(buffer)?;
    let kept = columns(&memory.layout, &[Dim::OFFSET, Dim::PARTITION]);
    // Offsets that tell parts of the buffer apart are outside of a view of one.
    let inside: Vec<u64> =
        kept.iter().enumerate().filter(|(bit, _)| parts >> bit & 1 == 0).map(|(_, column)| *column).collect();
    let own = Echelon::of(&inside);
    // Where the parts of the blocks begin, in registers and in memory.
    let [starts, begins] = [&registers, &memory.layout].map(|layout| columns(layout, &[Dim::BLOCK]));
    let begins = begins.into_iter().chain(std::iter::repeat(0));
    Ok(inside.iter().all(|column| held.contains(*column))
        && columns(&registers, &[Dim::REGISTER, Dim::LANE, Dim::WARP])
            .iter()
            .all(|column| own.contains(*column))
        && starts.iter().zip(begins).all(|(start, begin)| own.contains(start ^ begin)))
}

/// How the tensor type `tensor` is read from, or written to, a buffer.
///
/// # Errors
/// When there is no plan.
pub fn access(
    tensor: Type<'_>,
    buffer: MemDescType<'_>,
    direction: Direction,
    target: &TargetDesc,
) -> Result<SharedAccessPlan, String> {
    let memory = BufferLayout::of(buffer)?;
    let registers = within(tensor, &memory)?;
    if direction == Direction::Store && !covers(tensor, buffer)? {
        return Err(format!(
            "blocks share {tensor} in another way than the buffer {}: run --tritongpu-cluster-buffers first",
            buffer.ty()
        ));
    }
    let bits = word_bits(tensor)?;
    let tensor = tensor.as_tensor();
    let of = |ty: TensorType<'_>| Some(fragment(ty.encoding()?, &ty.shape(), bits));
    let elements = (bits, tensor.and_then(of).unwrap_or(FragmentWords::ONE));
    SharedAccessPlan::for_fragments(&registers, &memory.layout, &memory.padding, elements, direction, target)
        .map_err(|err| err.to_string())
}

/// How elements that the pointers of type `pointers` name are copied to a
/// buffer beside the program; `facts` are what is known of the addresses.
///
/// # Errors
/// When there is no plan.
pub fn async_copy(
    pointers: Type<'_>,
    buffer: MemDescType<'_>,
    facts: &AddressFacts,
    target: &TargetDesc,
) -> Result<SharedAccessPlan, String> {
    let memory = BufferLayout::of(buffer)?;
    if !memory.padding.is_empty() && !target.primitives.async_to_lds {
        return Err(format!("copies beside the program know no padding: {}", buffer.ty()));
    }
    let registers = within(pointers, &memory)?;
    let bits = word_bits(buffer.element())?;
    SharedAccessPlan::async_copy_padded(&registers, &memory.layout, &memory.padding, bits, facts, target)
        .map_err(|err| err.to_string())
}

/// Bytes of a lane's widest copy past the registers (PTX ISA, "cp.async").
pub(crate) const COPY_BYTES: u64 = 16;

/// Cycles of a warp in which a pipeline fills `buffer` with what a loop loads as `tensor`, whose threads hold what is consecutive in memory in
/// consecutive registers, as coalescing leaves them: by copies past the registers, or where none is 4 bytes long by such copies to rows, which
/// threads read and store behind a barrier. `None` where neither has a plan.
pub fn filling(tensor: TensorType<'_>, buffer: MemDescType<'_>, target: &TargetDesc) -> Option<f64> {
    let layout = layout(tensor.ty()).ok()?;
    let all = 1 << layout.total_out_bits().min(63);
    let mut facts = AddressFacts::row_major(&layout, all, all);
    let first = layout.columns_of(Dim::REGISTER).iter().copied().find(|column| *column != 0).unwrap_or(0);
    facts.order.sort_by_key(|dim| first & layout.out_mask(*dim) == 0);
    if let Ok(plan) = async_copy(tensor.ty(), buffer, &facts, target) {
        return Some(plan.access.cycles(target) + plan.access.count as f64 * target.cost.copy);
    }
    let stores = access(tensor.ty(), buffer, Direction::Store, target).ok()?.access.cycles(target);
    let warps = layout.in_size(Dim::WARP).unwrap_or(1);
    let at_once = u64::from(target.lanes) * COPY_BYTES;
    let pieces = (all / warps * u64::from(word_bits(tensor.ty()).ok()?) / 8).div_ceil(at_once);
    let (cost, line) = (&target.cost, u64::from(target.banks * target.bank_width));
    let rows = pieces as f64 * ((at_once / line) as f64 * cost.wavefront + cost.issue);
    Some(2.0 * rows + pieces as f64 * cost.copy + stores + cost.block_barrier / warps as f64)
}

/// As [`async_copy`], where loads write the lanes of a warp one after the other.
///
/// # Errors
/// When there is no plan.
pub fn lds_load(
    pointers: Type<'_>,
    buffer: MemDescType<'_>,
    facts: &AddressFacts,
    target: &TargetDesc,
) -> Result<LdsLoadPlan, String> {
    let memory = BufferLayout::of(buffer)?;
    let registers = within(pointers, &memory)?;
    let bits = word_bits(buffer.element())?;
    let plan = LdsLoadPlan::new(&registers, &memory.layout, &memory.padding, bits, facts, target)
        .map_err(|err| err.to_string())?;
    // A part of a buffer begins where a load can.
    let lanes = 64 - u64::from(target.lanes - 1).leading_zeros();
    let elements = plan.access.accesses.first().map_or(1, |load| load.registers.len());
    let within_a_load = (1u64 << (lanes + elements.ilog2())) - 1;
    if is_part(buffer) && part_bits(buffer)? & within_a_load != 0 {
        return Err(format!("a load writes more of memory at once than {} has", buffer.ty()));
    }
    Ok(plan)
}

/// The layout that buffers for the blocks of a descriptor should have, divided among the CTAs of a cluster
/// as `cga` says.
///
/// # Errors
/// Why bulk copies cannot move such blocks.
pub fn tma_encoding(
    desc: TensorDescType<'_>,
    cga: &[Vec<u64>],
    target: &TargetDesc,
) -> Result<NvmmaShared, String> {
    let bits = tma_element_bits(desc)?;
    TmaPlan::encoding(&block_shape(desc)?, bits, cga, target).map_err(|err| err.to_string())
}

/// Elements of a row of a descriptor's blocks.
fn columns(desc: TensorDescType<'_>) -> Result<u64, String> {
    block_shape(desc)?
        .last()
        .copied()
        .ok_or_else(|| format!("{} describes blocks without dimensions", desc.ty()))
}

/// As [`tma_encoding`], for a descriptor whose rows are only gathered and scattered.
///
/// # Errors
/// Why bulk copies cannot move such rows.
pub fn tma_rows_encoding(
    desc: TensorDescType<'_>,
    cga: &[Vec<u64>],
    target: &TargetDesc,
) -> Result<NvmmaShared, String> {
    let bits = tma_element_bits(desc)?;
    TmaRowsPlan::encoding(columns(desc)?, bits, cga, target).map_err(|err| err.to_string())
}

/// Whether rows of the blocks of a descriptor can be copied one by one from and to buffers with this layout.
///
/// # Errors
/// Why they cannot.
pub fn tma_rows_fit(
    desc: TensorDescType<'_>,
    layout: &NvmmaShared,
    target: &TargetDesc,
) -> Result<(), String> {
    TmaRowsPlan::fits(layout, columns(desc)?, target).map_err(|err| err.to_string())
}

/// Whether tensors of `shape` hold blocks of `desc` as they are: leading dimensions of one element may be missing.
pub fn holds_block(desc: TensorDescType<'_>, shape: &[i64]) -> bool {
    let block = desc.shape();
    let more = block.len().checked_sub(shape.len()).map(|missing| block.split_at(missing));
    more.is_some_and(|(missing, rest)| rest == shape && missing.iter().all(|size| *size == 1))
}

/// The layout of buffers of `rank` dimensions that hold blocks of `desc`: that of the descriptor, without the leading
/// dimensions of one element that buffers lack.
///
/// # Errors
/// When the descriptor has no layout, or another than those of bulk copies.
pub fn tma_buffer_layout<'c>(desc: TensorDescType<'c>, rank: usize) -> Result<Attr<'c>, String> {
    let layout = desc.layout().ok_or_else(|| format!("the descriptor {} has no layout", desc.ty()))?;
    let missing = desc.shape().len().saturating_sub(rank);
    if missing == 0 {
        return Ok(layout);
    }
    let mut layout = tma_layout(desc, layout)?;
    layout.rank -= missing;
    layout.cga.iter_mut().for_each(|basis| _ = basis.drain(..missing));
    encoding_attr(desc.ty().context(), &Encoding::NvmmaShared(layout))
}

/// How a block of a descriptor is copied from or to a buffer with the layout `layout`, which may lack leading dimensions
/// of one element ([`tma_buffer_layout`]).
///
/// # Errors
/// As [`tma_encoding`], and other layouts than those of bulk copies.
pub fn tma(desc: TensorDescType<'_>, layout: Attr<'_>, target: &TargetDesc) -> Result<TmaPlan, String> {
    let mut layout = tma_layout(desc, layout)?;
    let missing = desc.shape().len().saturating_sub(layout.rank);
    layout.rank += missing;
    layout.cga.iter_mut().for_each(|basis| _ = basis.splice(0..0, std::iter::repeat_n(0, missing)));
    TmaPlan::new(&layout, &block_shape(desc)?, target).map_err(|err| err.to_string())
}

/// The tensor map of a descriptor.
///
/// # Errors
/// When it has no layout, or one that bulk copies do not have.
pub fn tma_map(desc: TensorDescType<'_>, target: &TargetDesc) -> Result<TmaMap, String> {
    let layout = desc.layout().ok_or_else(|| format!("the descriptor {} has no layout", desc.ty()))?;
    TmaMap::new(&tma_layout(desc, layout)?, &block_shape(desc)?, target).map_err(|err| err.to_string())
}

/// How the rows of `buffer` are copied from or to rows of a tensor, whose numbers have the type `numbers`.
///
/// # Errors
/// When bulk copies cannot, or threads hold other numbers than they need.
pub fn tma_rows(
    desc: TensorDescType<'_>,
    buffer: MemDescType<'_>,
    numbers: Type<'_>,
    target: &TargetDesc,
) -> Result<TmaRowsPlan, String> {
    let encoding = tma_layout(desc, buffer.encoding())?;
    let shape: Vec<u64> = buffer.shape().iter().map(|size| *size as u64).collect();
    TmaRowsPlan::new(&encoding, &shape, &*layout(numbers)?, target).map_err(|err| err.to_string())
}

/// How a block of a descriptor is copied by the tensor data mover between global memory and `buffer`, which may lack leading dimensions of one element; with
/// [`Direction::Store`] to the buffer.
///
/// # Errors
/// When it cannot be.
pub fn tdm(
    desc: TensorDescType<'_>,
    buffer: MemDescType<'_>,
    warps: u32,
    direction: Direction,
    target: &TargetDesc,
) -> Result<TdmPlan, String> {
    if is_part(buffer) {
        let ty = buffer.ty();
        return Err(format!("{ty} is a part of a buffer, whose bytes do not lie together"));
    }
    if !holds_block(desc, &buffer.shape()) {
        let (block, shape) = (desc.shape(), buffer.shape());
        return Err(format!("blocks of {block:?} in a buffer of {shape:?} are not supported"));
    }
    let memory = BufferLayout::of(buffer)?;
    let bits = word_bits(desc.signless_element())?;
    TdmPlan::new(&memory.layout, &memory.padding, bits, warps, direction, target)
        .map_err(|err| err.to_string())
}

fn tma_layout(desc: TensorDescType<'_>, layout: Attr<'_>) -> Result<NvmmaShared, String> {
    let Encoding::NvmmaShared(layout) = encoding(layout)? else {
        return Err(format!("bulk tensor copies need an #ttg.nvmma_shared layout, not {layout}"));
    };
    let (bits, wanted) = (layout.element_bit_width, tma_element_bits(desc)?);
    if bits != u64::from(wanted) {
        return Err(format!("the layout has elements of {bits} bits, not {}", desc.ty()));
    }
    Ok(layout)
}

fn block_shape(desc: TensorDescType<'_>) -> Result<Vec<u64>, String> {
    let sizes = desc.shape().into_iter().map(u64::try_from).collect::<Result<_, _>>();
    sizes.map_err(|_| format!("{} describes blocks of no static shape", desc.ty()))
}

/// Bits of an element: what takes less than a byte in registers has no size in memory.
fn tma_element_bits(desc: TensorDescType<'_>) -> Result<u32, String> {
    let element = desc.element();
    match element.bits() {
        Some(bits @ (8 | 16 | 32 | 64)) => Ok(bits),
        _ => Err(format!("TMA copies no elements of type {element}")),
    }
}

/// The layout of a tensor as large as a part of a buffer, in the coordinates of the whole.
fn within(tensor: Type<'_>, memory: &BufferLayout) -> Result<LinearLayout, String> {
    let mut registers = (*layout(tensor)?).clone();
    // A part of a buffer: its coordinates are the low bits of those of the whole.
    for dim in memory.layout.out_dims() {
        let (Some(size), Some(whole)) = (registers.out_size(dim), memory.layout.out_size(dim)) else {
            return Err(format!("{tensor} lacks dimensions of the buffer"));
        };
        if size < whole {
            registers = registers.resize_out(dim, whole).map_err(|err| err.to_string())?;
        }
    }
    Ok(registers)
}
