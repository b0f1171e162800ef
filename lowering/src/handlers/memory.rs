//! Loads and stores of global memory, and other operations with effects.

use super::atomic::share;
use crate::emit::{Failure, Lowered, internal, unsupported};
use crate::lower::{Handler, Lower, Values};
use crate::target::{Access, Assertion, BarrierMemory, BufferAddress, CachePolicy};
use crate::words::{from_word, from_words, to_word};
use linear_layout::plan::{ThreadMasks, VectorPlan};
use mlir_host::ir::{Attr, ElementsAttr, Op, Type, Value};
use mlir_host::match_op;
use mlir_host::upstream::ConstantOp;
use ttopt_dialect::tt::ops::{AssertOp, FuncOp, LoadOp};
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::enums::AddrSpace;
use ttopt_dialect::ttg::ops::{AsyncCopyGlobalToLocalOp, BarrierOp};
use ttopt_passes::buffer_accesses::{BUFFER, SCALAR, buffer_of};
use ttopt_passes::global_scratch;
use ttopt_passes::last_use::LAST_USE;
use ttopt_passes::plans;
use ttopt_passes::schedule::pass::PINNED;
use ttopt_passes::shared_memory::{ALONE, ONCE};

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("tt.load", load),
    ("tt.store", store),
    ("tt.assert", assert),
    ("ttg.barrier", barrier),
    ("ttg.global_scratch_alloc", global_scratch),
];

/// The accesses of an operation on global memory.
pub(super) fn plan<'c>(l: &Lower<'_, 'c>, op: Op<'c>) -> Lowered<VectorPlan> {
    plans::access(op, l.axis_info, l.target.desc()).map_err(Failure::Unsupported)
}

/// That the instructions of one thread, each of which moves so many `bits`, are those that the costs of the plan count.
///
/// # Errors
/// Where they are others: coalescing and the layout engine decided by costs of accesses that are not there.
pub(super) fn as_costed(bits: &[u32], plan: &VectorPlan) -> Lowered<()> {
    as_planned(bits, plan.accesses.len(), plan.access_bits())
}

/// That the instructions of one thread, each of which moves so many `bits`, are `count`, and move `wanted` bits each.
///
/// # Errors
/// Where they are others.
pub(super) fn as_planned(bits: &[u32], count: usize, wanted: u32) -> Lowered<()> {
    if bits.len() == count && bits.iter().all(|bits| *bits == wanted) {
        return Ok(());
    }
    internal(format!(
        "was costed as {count} access(es) of {wanted} bits, but is lowered to accesses of {bits:?} bits"
    ))
}

fn stored_by(duplicates: ThreadMasks) -> String {
    if duplicates.lane == u64::MAX { "one thread".to_owned() } else { duplicates.to_string() }
}

/// What a plan does, in one line.
pub(super) fn describe(plan: &VectorPlan) -> String {
    let (count, bits) = plan.words();
    let copies = plan.copies.iter().enumerate().filter(|(i, copy)| *i != **copy as usize).count();
    let mut text = format!(
        "{} access(es) of {} bits a thread (v{count}.b{bits}, {} elements each)",
        plan.accesses.len(),
        plan.access_bits(),
        plan.vec_elems,
    );
    if copies > 0 {
        text += &format!("; {copies} registers are copies and cost nothing");
    }
    text
}

pub(crate) fn policy(op: Op<'_>) -> Lowered<CachePolicy> {
    let volatile = match_op!(op, {
        LoadOp(load) => load.is_volatile(),
        AsyncCopyGlobalToLocalOp(copy) => copy.is_volatile(),
        _ => false,
    });
    let Some(given) = op.attr("cachePolicy") else {
        return Ok(CachePolicy { volatile, last_use: op.attr(LAST_USE).is_some(), hints: None });
    };
    match ttopt_dialect::tt::attrs::CachePolicy::decode(given) {
        Some(hints) => Ok(CachePolicy { volatile, last_use: false, hints: Some(hints) }),
        None => unsupported(format!("cache policy {given} is not supported")),
    }
}

/// Whether the thread acts for all that hold the same elements; `None` when
/// every thread does.
pub(super) fn acts<'c>(l: &mut Lower<'_, 'c>, duplicates: ThreadMasks) -> Lowered<Option<Value<'c>>> {
    let (threads, lanes) = (l.num_threads(), l.target.desc().lanes);
    // A mask covers at most the bits that indices have.
    let lane = duplicates.lane & u64::from(lanes - 1);
    let warp = duplicates.warp & u64::from(threads / lanes - 1);
    let block = duplicates.block & u64::from(l.num_blocks() - 1);
    l.is_representative(lane, warp, block)
}

/// The conjunction of two conditions that may be absent, which means true.
pub(crate) fn both<'c>(
    l: &mut Lower<'_, 'c>,
    a: Option<Value<'c>>,
    b: Option<Value<'c>>,
) -> Lowered<Option<Value<'c>>> {
    match (a, b) {
        (Some(a), Some(b)) => Ok(Some(l.emit.and(a, b)?)),
        (one, other) => Ok(one.or(other)),
    }
}

pub(super) fn pointee_of<'c>(ptr: Value<'c>) -> Lowered<Type<'c>> {
    match pointee(ptr.ty().element()) {
        Some(ty) => Ok(ty),
        None => unsupported(format!("{} is no pointer", ptr.ty())),
    }
}

/// What accesses of an operation are counted from, as a pass found out.
pub(crate) struct Buffer<'c> {
    base: Value<'c>,
    /// In elements, by register.
    offsets: Values<'c>,
}

impl<'c> Buffer<'c> {
    pub(crate) fn of(l: &Lower<'_, 'c>, op: Op<'c>) -> Lowered<Option<Self>> {
        match buffer_of(op) {
            Some((base, offsets)) => Ok(Some(Buffer { base: l.scalar(base)?, offsets: l.get(offsets)? })),
            None if op.attr(BUFFER).is_some() => internal("is marked to access a buffer that is not there"),
            None => Ok(None),
        }
    }

    /// What offsets are counted from.
    pub(crate) fn base(&self) -> Value<'c> {
        self.base
    }

    /// Where the element of a register lies, of which each has `bits` bits in memory.
    pub(crate) fn at(&self, l: &mut Lower<'_, 'c>, register: usize, bits: u32) -> Lowered<BufferAddress<'c>> {
        let Some(offset) = self.offsets.get(register) else {
            return internal("pointers and offsets have different layouts");
        };
        let shift = (bits / 8).trailing_zeros();
        let offset = if shift == 0 { *offset } else { l.emit.shl(*offset, shift)? };
        Ok(BufferAddress { base: self.base, offset })
    }
}

/// Whether all bits of all elements of a constant are zero.
fn is_zero(value: Value<'_>) -> bool {
    let attr = ConstantOp::defining(value).and_then(|constant| constant.op().attr("value"));
    let number = attr.and_then(|attr| attr.as_elements().map_or(Some(attr), ElementsAttr::splat_value));
    number.is_some_and(|number| {
        number.as_int() == Some(0) || number.as_float().is_some_and(|number| number.to_bits() == 0)
    })
}

/// The address of as many zeros as a lane loads at most.
pub(crate) fn zeros<'c>(l: &mut Lower<'_, 'c>) -> Lowered<Value<'c>> {
    let Some(words) = Attr::parse(l.emit.context(), "dense<0> : tensor<4xi32>") else {
        return internal("cannot make zeros");
    };
    l.with_module(|e, module| module.table(e, words))
}

fn load<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(load) = ttopt_dialect::tt::ops::LoadOp::cast(op) else { return internal("malformed load") };
    let (ptr, mask, other) = (load.ptr(), load.mask(), load.other());
    let element = pointee_of(ptr)?;
    let bits = l.memory_bits(element)?;
    let plan = plan(l, op)?;
    l.remark(op, || describe(&plan));
    let policy = policy(op)?;
    let ptrs = l.get(ptr)?;
    let masks = mask.map(|mask| l.get(mask)).transpose()?;
    let given = l.target.gives_zero_where_masked();
    let others = other.filter(|other| !(given && is_zero(*other))).map(|other| l.get(other)).transpose()?;
    let buffer = Buffer::of(l, op)?;
    // The others are told what it loads, or do not need it.
    let once = op.attr(ONCE).is_some();
    let one = if once || op.attr(ALONE).is_some() { acts(l, plan.duplicates)? } else { None };
    let (mine, needed) = if once { (one, None) } else { (None, one) };
    // Addresses are to stay in scalar registers, without a branch.
    let alike = op.attr(SCALAR).is_some() && one.is_none() && masks.is_some();
    let zeros = if alike { Some(zeros(l)?) } else { None };
    let pinned = op.attr(PINNED).is_some();
    if pinned {
        l.target.keep_order(&mut l.emit, false)?;
    }
    let n = plan.copies.len();
    let mut loaded: Vec<Option<Value<'c>>> = vec![None; n];
    for access in &plan.accesses {
        let first = access.registers[0] as usize;
        let fallback: Option<Vec<Value<'c>>> = match &others {
            Some(others) => Some(
                access
                    .registers
                    .iter()
                    .map(|register| to_word(l, others[*register as usize], element, bits))
                    .collect::<Lowered<_>>()?,
            ),
            None => None,
        };
        let request = Access {
            ptr: ptrs[first],
            mask: both(l, masks.as_ref().map(|masks| masks[first]), mine)?,
            needed,
            elems: access.registers.len(),
            elem_bits: bits,
            policy,
            buffer: buffer.as_ref().map(|buffer| buffer.at(l, first, bits)).transpose()?,
            zeros,
            plan: &plan,
        };
        let values = l.target.load_global(&mut l.emit, &request, fallback.as_deref())?;
        for (register, value) in access.registers.iter().zip(values) {
            loaded[*register as usize] = Some(if once { value } else { from_word(l, value, element)? });
        }
    }
    as_costed(&l.emit.take_global_accesses(), &plan)?;
    if pinned {
        l.target.keep_order(&mut l.emit, true)?;
    }
    let all: Option<Vec<Value<'c>>> =
        plan.copies.iter().map(|register| loaded.get(*register as usize).copied().flatten()).collect();
    let Some(mut values) = all else {
        return internal("the plan of the load leaves registers without a value");
    };
    if once {
        let words = share(l, (op, 0), values, false)?;
        values = from_words(l, &words, element)?;
    }
    l.set(op.result(0), values);
    Ok(())
}

fn store<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(store) = ttopt_dialect::tt::ops::StoreOp::cast(op) else {
        return internal("malformed store");
    };
    let (ptr, value, mask) = (store.ptr(), store.value(), store.mask());
    let element = pointee_of(ptr)?;
    let bits = l.memory_bits(element)?;
    let plan = plan(l, op)?;
    l.remark(op, || format!("{}; stored by {}", describe(&plan), stored_by(plan.duplicates)));
    let policy = policy(op)?;
    let ptrs = l.get(ptr)?;
    let values = l.get(value)?;
    let masks = mask.map(|mask| l.get(mask)).transpose()?;
    let representative = acts(l, plan.duplicates)?;
    let buffer = Buffer::of(l, op)?;
    for access in &plan.accesses {
        let first = access.registers[0] as usize;
        let mine = both(l, masks.as_ref().map(|masks| masks[first]), representative)?;
        let words: Vec<Value<'c>> = access
            .registers
            .iter()
            .map(|register| to_word(l, values[*register as usize], element, bits))
            .collect::<Lowered<_>>()?;
        let request = Access {
            ptr: ptrs[first],
            mask: mine,
            needed: None,
            elems: access.registers.len(),
            elem_bits: bits,
            policy,
            buffer: buffer.as_ref().map(|buffer| buffer.at(l, first, bits)).transpose()?,
            zeros: None,
            plan: &plan,
        };
        l.target.store_global(&mut l.emit, &request, &words)?;
    }
    as_costed(&l.emit.take_global_accesses(), &plan)
}

fn barrier<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let spaces = BarrierOp::of(op).addr_space();
    let shared_only = spaces == AddrSpace::NONE || spaces == AddrSpace::LOCAL;
    l.barrier(if shared_only { BarrierMemory::Shared } else { BarrierMemory::All })
}

fn assert<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let message = AssertOp::of(op).message();
    let values = l.get(op.operand(0))?;
    let mut all: Option<Value<'c>> = None;
    for value in values.iter() {
        all = Some(match all {
            None => *value,
            Some(all) if all == *value => all,
            Some(all) => l.emit.and(all, *value)?,
        });
    }
    let Some(holds) = all else { return Ok(()) };
    let fail = l.new_block(&[])?;
    let go_on = l.new_block(&[])?;
    l.emit.cond_br(holds, (go_on, &[]), (fail, &[]))?;
    l.emit.set_block(fail);
    let target = l.target;
    let place = op.loc().position();
    let (file, line) = place.as_ref().map_or(("unknown", 0), |(file, line, _)| (file.as_str(), *line));
    let function = op.ancestor(|outer| FuncOp::cast(outer).is_some());
    let function = function.and_then(|function| function.attr("sym_name")).and_then(Attr::as_str);
    let failed = Assertion { message, file, line, function: function.unwrap_or("unknown") };
    l.with_module(|e, module| target.assert(e, module, &failed))?;
    l.emit.br(go_on, &[], None)?;
    l.emit.set_block(go_on);
    Ok(())
}

fn global_scratch<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(offset) = op.attr(global_scratch::OFFSET).and_then(Attr::as_int) else {
        return unsupported(
            "has no global scratch memory: run --tritongpu-global-scratch-memory-allocation first",
        );
    };
    let pointer = l.global_scratch_at(offset)?;
    l.set(op.result(0), vec![pointer]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_accesses_than_were_costed_are_a_bug() {
        let mut plan = VectorPlan::scalar(32);
        plan.vec_elems = 4;
        plan.accesses = vec![plan.accesses[0].clone(); 2];
        assert!(as_costed(&[128, 128], &plan).is_ok());
        for other in [&[128][..], &[128; 3], &[128, 64], &[64; 4], &[]] {
            let Err(Failure::Internal(said)) = as_costed(other, &plan) else { panic!("{other:?}") };
            assert!(said.contains("was costed as 2 access(es) of 128 bits"), "{said}");
        }
    }
}
