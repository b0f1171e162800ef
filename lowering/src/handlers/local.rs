//! Buffers in shared memory: allocation, views, loads and stores, and copies
//! that run beside the program.

use super::memory::as_planned;
use crate::buffers::Buffer;
use crate::emit::{Failure, Lowered, internal, unsupported};
use crate::lower::{Handler, Lower};
use crate::shared;
use crate::target::{AsyncCopies, AsyncCopy, need};
use crate::words::{from_word, to_word};
use linear_layout::plan::{SharedAccessPlan, ThreadBases};
use linear_layout::{Dim, LinearLayout};
use mlir_host::ir::{Attr, Op, Type, Value};
use mlir_host::match_op;
use mlir_host::upstream::ConstantOp;
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::ops::*;
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_passes::buffer_plans::{self, BufferLayout};
use ttopt_passes::kernel_decisions::MASKS_ARE_PREDICATES;
use ttopt_passes::plans::{self, layout, word_bits};

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("ttg.local_alloc", alloc),
    ("ttg.local_dealloc", |_, _| Ok(())),
    ("ttg.local_load", load),
    ("ttg.local_store", store),
    ("ttg.local_gather", gather),
    ("ttg.local_scatter", scatter),
    ("ttg.memdesc_index", index),
    ("ttg.memdesc_subslice", subslice),
    ("ttg.memdesc_trans", same_memory),
    ("ttg.memdesc_reshape", same_memory),
    ("ttg.memdesc_reinterpret", reinterpret),
    ("ttg.async_copy_global_to_local", async_copy),
    ("ttg.async_commit_group", commit_group),
    ("ttg.async_wait", async_wait),
];

fn buffer_type<'c>(value: Value<'c>) -> Lowered<MemDescType<'c>> {
    match MemDescType::cast(value.ty()) {
        Some(ty) => Ok(ty),
        None => unsupported(format!("{} is no memory descriptor", value.ty())),
    }
}

fn alloc<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (base, ty) = (l.scratch(op)?, buffer_type(op.result(0))?);
    l.set(op.result(0), vec![base]);
    if op.num_operands() > 0 {
        let (tensor, values) = (op.operand(0).ty(), l.get(op.operand(0))?);
        let plan = l.store_buffer(&Buffer { ty, base, offset: None }, tensor, &values)?;
        l.remark(op, || plan.to_string());
    }
    Ok(())
}

fn load<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let buffer = l.buffer(op.operand(0))?;
    let (plan, values) = l.load_buffer(&buffer, op.result(0).ty())?;
    l.remark(op, || plan.to_string());
    l.set(op.result(0), values);
    Ok(())
}

fn store<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (src, values) = (op.operand(0).ty(), l.get(op.operand(0))?);
    let buffer = l.buffer(op.operand(1))?;
    let plan = l.store_buffer(&buffer, src, &values)?;
    l.remark(op, || plan.to_string());
    Ok(())
}

/// The buffer number `index` of an allocation of several.
fn nth<'c>(l: &mut Lower<'_, 'c>, buffer: &Buffer<'c>, index: Value<'c>) -> Lowered<Value<'c>> {
    let layout = BufferLayout::of(buffer.ty).map_err(Failure::Unsupported)?;
    let stride = layout.stride_bytes().map_err(Failure::Unsupported)?;
    let stride = l.emit.const_i32(stride as i64)?;
    let bytes = l.emit.same("llvm.mul", &[index, stride])?;
    let byte = l.emit.int(8);
    l.emit.gep(buffer.base, bytes, byte)
}

fn index<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (buffer, number) = (l.buffer(op.operand(0))?, l.scalar(op.operand(1))?);
    let layout = BufferLayout::of(buffer.ty).map_err(Failure::Unsupported)?;
    if buffer.ty.rank() == layout.layout.num_out_dims() {
        return unsupported(format!("{} is one buffer, not several", buffer.ty.ty()));
    }
    let base = nth(l, &buffer, number)?;
    l.set(op.result(0), Buffer { base, ..buffer }.values());
    Ok(())
}

fn subslice<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let mut buffer = l.buffer(op.operand(0))?;
    let ty = buffer_type(op.result(0))?;
    let offsets = MemDescSubsliceOp::of(op).offsets();
    let memory = BufferLayout::of(ty).map_err(Failure::Unsupported)?;
    let skip = offsets.len().saturating_sub(memory.layout.num_out_dims());
    let (outer, inner) = offsets.split_at(skip);
    if let [number] = outer
        && *number != 0
    {
        let number = l.emit.const_i32(i64::from(*number))?;
        buffer.base = nth(l, &buffer, number)?;
    }
    buffer.ty = ty;
    if buffer_plans::is_part(ty) {
        let Ok(at) = inner.iter().map(|offset| u64::try_from(*offset)).collect::<Result<Vec<_>, _>>() else {
            return internal("begins before its buffer");
        };
        let offset = memory.offset_of(&at).map_err(Failure::Unsupported)?;
        let offset = l.emit.const_i32(offset as i64)?;
        buffer.offset = Some(match buffer.offset {
            Some(before) => l.emit.xor(before, offset)?,
            None => offset,
        });
    }
    l.set(op.result(0), buffer.values());
    Ok(())
}

fn same_memory<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let values = l.get(op.operand(0))?;
    l.set(op.result(0), values);
    Ok(())
}

fn reinterpret<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let buffer = l.buffer(op.operand(0))?;
    if buffer.offset.is_some() {
        return unsupported(format!(
            "{} is a part of a buffer, whose bytes do not lie together",
            buffer.ty.ty()
        ));
    }
    same_memory(l, op)
}

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

/// The address in `buffer` of the element that each register of `indices` names along `axis`.
pub(super) fn indexed<'c>(
    l: &mut Lower<'_, 'c>,
    buffer: &Buffer<'c>,
    indices: Value<'c>,
    axis: usize,
) -> Lowered<Vec<Value<'c>>> {
    let memory = BufferLayout::of(buffer.ty).map_err(Failure::Unsupported)?;
    let registers = layout(indices.ty()).map_err(Failure::Unsupported)?;
    if memory.layout.in_bits(Dim::BLOCK) > 0 {
        return unsupported("buffers divided among blocks cannot be indexed by element");
    }
    let rank = memory.layout.num_out_dims();
    // What the coordinates besides the index contribute is linear in the thread and the register.
    let place = |column: u64| -> Lowered<u64> {
        let mut at = registers.coords(column);
        at[axis] = 0;
        memory.offset_of(&at).map_err(Failure::Unsupported)
    };
    let places =
        |dim| registers.columns_of(dim).iter().map(|column| place(*column)).collect::<Lowered<Vec<u64>>>();
    let bases = ThreadBases {
        lane: places(Dim::LANE)?.into_iter().collect(),
        warp: places(Dim::WARP)?.into_iter().collect(),
        block: places(Dim::BLOCK)?.into_iter().collect(),
    };
    let own = places(Dim::REGISTER)?;
    let steps = memory.layout.out_size(Dim::out(axis)).unwrap_or(1).trailing_zeros();
    let along: Vec<u64> = (0..steps)
        .map(|bit| {
            let mut at = vec![0; rank];
            at[axis] = 1 << bit;
            memory.offset_of(&at).map_err(Failure::Unsupported)
        })
        .collect::<Lowered<_>>()?;
    let mut thread = l.thread_number(&bases, 1)?;
    if let Some(offset) = buffer.offset {
        thread = l.emit.xor(thread, offset)?;
    }
    let (i32t, byte) = (l.emit.i32(), l.emit.int(8));
    let mut addresses = Vec::new();
    for (register, index) in l.get(indices)?.iter().enumerate() {
        let index = match index.ty().int_bits() {
            Some(32) => *index,
            Some(bits) if bits > 32 => l.emit.value("llvm.trunc", &[*index], i32t, &[])?,
            _ => l.emit.value("llvm.zext", &[*index], i32t, &[])?,
        };
        let named = l.spread_bits(index, &along)?;
        let constant = linear_layout::f2::mul(&own, register as u64);
        let mut offset = l.emit.xor(thread, named)?;
        if constant != 0 {
            let constant = l.emit.const_i32(constant as i64)?;
            offset = l.emit.xor(offset, constant)?;
        }
        offset = shared::padded(&mut l.emit, offset, &memory.padding)?;
        if memory.elem_bytes > 1 {
            offset = l.emit.shl(offset, memory.elem_bytes.trailing_zeros())?;
        }
        addresses.push(l.emit.gep(buffer.base, offset, byte)?);
    }
    Ok(addresses)
}

pub(super) fn axis_of(op: Op<'_>) -> Lowered<usize> {
    let axis = match_op!(op, {
        LocalGatherOp(gather) => gather.axis(),
        LocalScatterOp(scatter) => scatter.axis(),
        LocalAtomicScatterRmwOp(rmw) => rmw.axis(),
        _ => return internal("accesses no buffer by indices"),
    });
    usize::try_from(axis).map_err(|_| Failure::Internal(format!("the axis {axis} is negative")))
}

fn gather<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let gather = LocalGatherOp::of(op);
    let buffer = l.buffer(gather.src())?;
    let element = op.result(0).ty().element();
    let bits = word_bits(op.result(0).ty()).map_err(Failure::Unsupported)?;
    let mut values = Vec::new();
    for address in indexed(l, &buffer, gather.indices(), axis_of(op)?)? {
        let word = l.target.load_shared(&mut l.emit, address, 1, bits)?[0];
        values.push(from_word(l, word, element)?);
    }
    l.set(op.result(0), values);
    Ok(())
}

fn scatter<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let scatter = LocalScatterOp::of(op);
    let buffer = l.buffer(scatter.dst())?;
    let ty = scatter.values().ty();
    let bits = word_bits(ty).map_err(Failure::Unsupported)?;
    let values = l.get(scatter.values())?;
    let registers = layout(ty).map_err(Failure::Unsupported)?;
    // One of the threads with replicas of an element stores it.
    let mine = representative(l, &registers)?;
    let addresses = indexed(l, &buffer, scatter.indices(), axis_of(op)?)?;
    let copies = registers.free_variable_mask(Dim::REGISTER);
    for (register, (address, value)) in addresses.into_iter().zip(values.iter()).enumerate() {
        if register as u64 & copies == 0 {
            let word = to_word(l, *value, ty.element(), bits)?;
            l.target.store_shared(&mut l.emit, address, &[word], mine)?;
        }
    }
    Ok(())
}

/// The condition that this thread is the one of those with replicas that acts.
pub(super) fn representative<'c>(l: &mut Lower<'_, 'c>, layout: &LinearLayout) -> Lowered<Option<Value<'c>>> {
    let copies = |dim| layout.free_variable_mask(dim);
    l.is_representative(copies(Dim::LANE), copies(Dim::WARP), 0)
}

//===----------------------------------------------------------------------===//
// Copies beside the program
//===----------------------------------------------------------------------===//

fn async_copies<'a>(l: &Lower<'a, '_>) -> Lowered<&'a dyn AsyncCopies> {
    need(l.target.async_copies(), "asynchronous copies to shared memory", l.target)
}

fn async_copy<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let copy = AsyncCopyGlobalToLocalOp::of(op);
    let (ptr, mask, other) = (copy.src(), copy.mask(), copy.other());
    let buffer = l.buffer(copy.result())?;
    let Some(tensor) = ptr.ty().as_tensor() else { return unsupported("pointers are no tensor") };
    let bits = word_bits(buffer.ty.element()).map_err(Failure::Unsupported)?;
    let plan = plans::async_copy(copy, l.axis_info, l.target.desc()).map_err(Failure::Unsupported)?;
    l.remark(op, || plan.to_string());
    let Some(element) = pointee(tensor.element()) else { return unsupported("copies from no pointers") };
    let (ptrs, masks) = (l.get(ptr)?, mask.map(|mask| l.get(mask)).transpose()?);
    let others = match other {
        // What is not copied is zero already.
        Some(other) if !is_zero(other) => Some(l.get(other)?),
        _ => None,
    };
    let copies = async_copies(l)?;
    let inactive = plan.access.inactive;
    let mine = l.is_representative(inactive.lane, inactive.warp, inactive.block)?;
    let memory = buffer.memory(&plan)?;
    let addresses = shared::addresses(l, &plan.access, memory)?;
    let mut firsts = plan.access.accesses.iter().map(|access| access.registers[0] as usize);
    // What all copies have they have as a number: one is enough for all.
    let predicates = op.attr(MASKS_ARE_PREDICATES).is_some()
        && masks.as_ref().zip(firsts.next()).is_some_and(|(masks, first)| {
            let mask = masks[first];
            !firsts.all(|other| computes_same(mask, masks[other], MASK_PARTS))
        });
    for (access, to) in plan.access.accesses.iter().zip(addresses) {
        let first = access.registers[0] as usize;
        let bytes = access.registers.len() as u32 * bits / 8;
        let mask = masks.as_ref().map(|masks| masks[first]);
        let through_l1 = plan.through_l1;
        let request = AsyncCopy { from: ptrs[first], to, bytes, through_l1, mask, predicates, active: mine };
        match (&others, mask) {
            (Some(others), Some(mask)) => {
                let active = and(l, Some(mask), mine)?;
                copies.copy(&mut l.emit, &AsyncCopy { mask: None, active, ..request })?;
                let rest = not(l, mask)?;
                let active = and(l, Some(rest), mine)?;
                store_others(l, &plan, access.registers.as_slice(), others, element, to, active)?;
            }
            _ => copies.copy(&mut l.emit, &request)?,
        }
    }
    let elements = plan.access.accesses.first().map_or(0, |access| access.registers.len() as u32);
    as_planned(&l.emit.take_global_accesses(), plan.access.accesses.len(), elements * bits)?;
    // Tokens order operations that are emitted in order.
    l.set(op.result(0), Vec::new());
    Ok(())
}

/// Operations in a row that parts of a mask are put together by, of which masks are compared.
const MASK_PARTS: u32 = 4;

/// Whether two values are computed from the same ones in the same way, by `depth` operations in a row at most.
fn computes_same(one: Value<'_>, other: Value<'_>, depth: u32) -> bool {
    if one == other {
        return true;
    }
    let (Some(a), Some(b)) = (one.def_op(), other.def_op()) else { return false };
    depth > 0
        && a.is_pure()
        && a.name() == b.name()
        && a.attrs() == b.attrs()
        && a.num_operands() == b.num_operands()
        && a.num_operands() > 0
        && a.num_results() == 1
        && a.operands().zip(b.operands()).all(|(a, b)| computes_same(a, b, depth - 1))
}

/// Stores what masked elements are instead.
fn store_others<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &SharedAccessPlan,
    registers: &[u32],
    others: &[Value<'c>],
    element: Type<'c>,
    to: Value<'c>,
    active: Option<Value<'c>>,
) -> Lowered<()> {
    let bits = plan.access.storage_bits;
    let words: Vec<Value<'c>> = registers
        .iter()
        .map(|register| to_word(l, others[*register as usize], element, bits))
        .collect::<Lowered<_>>()?;
    let words = crate::words::join_words(l, &words, bits)?;
    l.target.store_shared(&mut l.emit, to, &words, active)
}

fn and<'c>(l: &mut Lower<'_, 'c>, a: Option<Value<'c>>, b: Option<Value<'c>>) -> Lowered<Option<Value<'c>>> {
    match (a, b) {
        (Some(a), Some(b)) => l.emit.and(a, b).map(Some),
        (one, None) | (None, one) => Ok(one),
    }
}

fn not<'c>(l: &mut Lower<'_, 'c>, value: Value<'c>) -> Lowered<Value<'c>> {
    let one = l.emit.const_int(1, 1)?;
    l.emit.xor(value, one)
}

/// Whether all elements are zero.
fn is_zero(value: Value<'_>) -> bool {
    let constant = ConstantOp::defining(value).and_then(ConstantOp::value);
    let splat = constant.and_then(Attr::as_elements).and_then(|elements| elements.splat_value());
    match splat {
        Some(splat) => {
            splat.as_int() == Some(0) || splat.as_float().is_some_and(|x| x == 0.0 && x.is_sign_positive())
        }
        None => false,
    }
}

fn commit_group<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    async_copies(l)?.commit(&mut l.emit)?;
    l.set(op.result(0), Vec::new());
    Ok(())
}

fn async_wait<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Ok(left) = u32::try_from(AsyncWaitOp::of(op).num()) else {
        return unsupported("waits for a negative number of groups");
    };
    async_copies(l)?.wait(&mut l.emit, left)?;
    l.set(op.result(0), Vec::new());
    Ok(())
}
