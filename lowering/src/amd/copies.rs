//! Copies from global memory to the LDS beside the program: loads whose lanes write the LDS one after the other (CDNA3 ISA,
//! "Memory Buffer Load to LDS"; LLVM, "User Guide for AMDGPU Backend", `llvm.amdgcn.global.load.lds`), or each where it says (LLVM 22,
//! `llvm.amdgcn.global.load.async.to.lds`).
//!
//! What other accesses to the LDS do is kept apart from them by alias scopes: LLVM would wait for all loads before any
//! of them, and the program's own waits and barriers say when data is there.

use super::memory::{OUTSIDE, buffer_policy, cache_hint, resource};
use super::{lanes, waits};
use crate::emit::{Emit, Failure, ICmp, Lowered, internal, unsupported};
use crate::handlers::memory::{Buffer, both, policy, zeros};
use crate::lower::{Handler, Lower, Values};
use crate::shared;
use crate::target::CachePolicy;
use crate::words::{join_words, to_word};
use linear_layout::plan::{AccessPlan, LaneSources, MemoryAccess};
use mlir_host::ir::{Attr, Op, Type, Value};
use mlir_host::upstream::ConstantOp;
use ttopt_dialect::amdg::ops::AsyncWaitOp;
use ttopt_dialect::tt::ops::SplatOp;
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::ops::AsyncCopyGlobalToLocalOp;
use ttopt_passes::plans::{self, masks_by_zeros, word_bits};

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("ttg.async_copy_global_to_local", async_copy),
    ("ttg.async_commit_group", commit_group),
    ("ttg.async_wait", |_, _| {
        unsupported("waits for groups: run --tritonamdgpu-update-async-wait-count first")
    }),
    ("amdg.async_wait", wait),
];

/// How lanes that are masked off write zero, so that every wave issues the loads whatever the mask says.
#[derive(Clone, Copy)]
enum Masking<'c> {
    /// They are given offsets beyond the buffer.
    Offsets,
    /// They load zeros from here.
    Zeros(Value<'c>),
    /// They load zeros, which lie so far from the base of the buffer.
    Distance(Value<'c>),
    /// All lanes have this mask, and load from here: from the base of the buffer, or zeros.
    Alike(Value<'c>, Value<'c>),
}

/// A copy that is being lowered.
struct Copy<'c> {
    access: AccessPlan,
    /// Where lanes copy what other lanes hold pointers to.
    sources: Option<LaneSources>,
    /// Whether addresses in the LDS are those of lanes, not of the first one.
    anywhere: bool,
    pointers: Values<'c>,
    masks: Option<Values<'c>>,
    /// What is written where the mask is false, unless the hardware writes zero; nothing stands for zero.
    others: Option<Values<'c>>,
    /// Whether `others` are one number.
    is_splat: bool,
    /// How masked lanes write zero without a branch, if they do.
    masking: Option<Masking<'c>>,
    buffer: Option<Buffer<'c>>,
    policy: CachePolicy,
    /// Whether this thread copies anything.
    mine: Option<Value<'c>>,
    element: Type<'c>,
    /// Bits of an element in memory.
    bits: u32,
}

fn async_copy<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let source = AsyncCopyGlobalToLocalOp::of(op);
    let buffer = l.buffer(source.result())?;
    let anywhere = l.target.desc().primitives.async_to_lds;
    let (access, padding, sources) = if anywhere {
        let plan = plans::async_copy(source, l.axis_info, l.target.desc()).map_err(Failure::Unsupported)?;
        l.remark(op, || plan.to_string());
        (plan.access, plan.padding, None)
    } else {
        let plan = plans::lds_load(source, l.axis_info, l.target.desc()).map_err(Failure::Unsupported)?;
        l.remark(op, || plan.to_string());
        (plan.access, plan.padding, plan.sources)
    };
    let Some(element) = pointee(source.src().ty().element()) else {
        return unsupported("copies from no pointers");
    };
    let inactive = access.inactive;
    let in_buffer = Buffer::of(l, op)?;
    let masking = match (source.mask().filter(|_| masks_by_zeros(source)), &in_buffer) {
        (None, _) => None,
        (Some(mask), Some(buffer)) if anywhere => {
            let (zeros, base) = (zeros(l)?, buffer.base());
            Some(match mask.def_op().and_then(SplatOp::cast) {
                Some(splat) => {
                    let mask = l.scalar(splat.src())?;
                    Masking::Alike(mask, l.emit.select(mask, base, zeros)?)
                }
                None => Masking::Distance(distance(&mut l.emit, base, zeros)?),
            })
        }
        (Some(_), Some(_)) => Some(Masking::Offsets),
        (Some(_), None) => Some(Masking::Zeros(zeros(l)?)),
    };
    let copy = Copy {
        pointers: l.get(source.src())?,
        masks: source.mask().map(|mask| l.get(mask)).transpose()?,
        others: source.other().map(|other| l.get(other)).transpose()?,
        is_splat: source.other().is_none_or(|other| ConstantOp::defining(other).is_some_and(is_splat)),
        masking,
        buffer: in_buffer,
        policy: policy(op)?,
        mine: l.is_representative(inactive.lane, inactive.warp, inactive.block)?,
        element,
        bits: word_bits(buffer.ty.element()).map_err(Failure::Unsupported)?,
        access,
        sources,
        anywhere,
    };
    if l.num_threads() <= l.target.desc().lanes {
        // Barriers of a single wave wait for nothing: what it still reads must not be overwritten.
        waits::shared(&mut l.emit, l.target.desc())?;
    }
    let addresses = shared::addresses(l, &copy.access, buffer.memory_of(&padding)?)?;
    for (i, (load, to)) in copy.access.accesses.iter().zip(addresses).enumerate() {
        copy.load(l, i, load, to)?;
    }
    // Tokens order operations that are emitted in order.
    l.set(op.result(0), Vec::new());
    Ok(())
}

fn is_splat(constant: ConstantOp<'_>) -> bool {
    constant.value().is_some_and(|value| value.as_elements().is_none_or(|all| all.splat_value().is_some()))
}

impl<'c> Copy<'c> {
    /// Load number `i`, which writes at `to`, for the first lane or for each.
    fn load(&self, l: &mut Lower<'_, 'c>, i: usize, load: &MemoryAccess, to: Value<'c>) -> Lowered<()> {
        let first = load.registers[0] as usize;
        let lane = match &self.sources {
            Some(sources) => Some(source_lane(l, sources, i)?),
            None => None,
        };
        let mask = self.masks.as_ref().map(|masks| masks[first]);
        let from = match &self.buffer {
            Some(buffer) if self.anywhere => {
                let at = buffer.at(l, first, self.bits)?;
                From::Pointer(match (mask, self.masking) {
                    (Some(mask), Some(Masking::Distance(zeros))) => {
                        displaced_or(&mut l.emit, at.base, at.offset, mask, zeros)?
                    }
                    (Some(_), Some(Masking::Alike(mask, base))) => {
                        let zero = l.emit.const_i32(0)?;
                        let offset = l.emit.select(mask, at.offset, zero)?;
                        displaced(&mut l.emit, base, offset)?
                    }
                    _ => displaced(&mut l.emit, at.base, at.offset)?,
                })
            }
            Some(buffer) => {
                let at = buffer.at(l, first, self.bits)?;
                let mut offset = at.offset;
                if let (Some(mask), Some(Masking::Offsets)) = (mask, self.masking) {
                    let outside = l.emit.const_i32(OUTSIDE)?;
                    offset = l.emit.select(mask, offset, outside)?;
                }
                From::Buffer(at.base, exchange(&mut l.emit, offset, lane)?)
            }
            None => {
                let mut pointer = self.pointers[first];
                if let (Some(mask), Some(Masking::Zeros(zeros))) = (mask, self.masking) {
                    pointer = l.emit.select(mask, pointer, zeros)?;
                }
                From::Pointer(exchange_pointer(&mut l.emit, pointer, lane)?)
            }
        };
        let bytes = load.registers.len() as u32 * self.bits / 8;
        let Some(mask) = mask.filter(|_| self.masking.is_none()) else {
            return self.begin(l, from, to, bytes, self.mine);
        };
        let mask = exchange_condition(&mut l.emit, mask, lane)?;
        let active = both(l, Some(mask), self.mine)?;
        self.begin(l, from, to, bytes, active)?;
        let one = l.emit.const_int(1, 1)?;
        let rest = l.emit.xor(mask, one)?;
        let rest = both(l, Some(rest), self.mine)?;
        self.store_others(l, load, to, lane, rest)
    }

    fn begin(
        &self,
        l: &mut Lower<'_, 'c>,
        from: From<'c>,
        to: Value<'c>,
        bytes: u32,
        active: Option<Value<'c>>,
    ) -> Lowered<()> {
        let (desc, policy) = (l.target.desc(), self.policy);
        l.emit.guarded(active, &[], |e| {
            match from {
                From::Pointer(pointer) if self.anywhere => {
                    load_anywhere(e, pointer, to, bytes, cache_hint(policy, desc))?;
                }
                From::Pointer(pointer) => global_load(e, pointer, to, bytes, cache_hint(policy, desc))?,
                From::Buffer(base, offset) => {
                    let resource = resource(e, base, desc)?;
                    let (size, zero) = (e.const_i32(bytes.into())?, e.const_i32(0)?);
                    let hint = buffer_policy(e, policy, desc)?;
                    let operands = [resource, to, size, offset, zero, zero, hint];
                    let attrs = scopes(e, true)?;
                    e.op("rocdl.raw.ptr.buffer.load.lds", &operands, &[], &attrs)?;
                }
            }
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Writes what masked elements are instead where lanes would have written them.
    fn store_others(
        &self,
        l: &mut Lower<'_, 'c>,
        load: &MemoryAccess,
        to: Value<'c>,
        lane: Option<Value<'c>>,
        active: Option<Value<'c>>,
    ) -> Lowered<()> {
        let bits = self.bits;
        let words = match &self.others {
            Some(others) => {
                let words =
                    load.registers.iter().map(|r| to_word(l, others[*r as usize], self.element, bits));
                let words = words.collect::<Lowered<Vec<_>>>()?;
                join_words(l, &words, bits)?
            }
            None => {
                let total = load.registers.len() as u32 * bits;
                let width = bits.max(total.min(32));
                vec![l.emit.const_int(width, 0)?; (total / width) as usize]
            }
        };
        let words: Vec<Value<'c>> = words
            .into_iter()
            .map(|word| if self.is_splat { Ok(word) } else { exchange(&mut l.emit, word, lane) })
            .collect::<Lowered<_>>()?;
        let bytes = load.registers.len() as u32 * bits / 8;
        let mut to = to;
        if !self.anywhere {
            let own = lanes::number(&mut l.emit, l.target.desc().lanes)?;
            let own = l.emit.shl(own, bytes.trailing_zeros())?;
            let byte = l.emit.int(8);
            to = l.emit.gep(to, own, byte)?;
        }
        l.target.store_shared(&mut l.emit, to, &words, active)
    }
}

/// Where lanes load from.
#[derive(Clone, Copy)]
enum From<'c> {
    Pointer(Value<'c>),
    /// A base, and a lane's bytes from there.
    Buffer(Value<'c>, Value<'c>),
}

/// How many bytes it is from `base` to `to`.
fn distance<'c>(e: &mut Emit<'c>, base: Value<'c>, to: Value<'c>) -> Lowered<Value<'c>> {
    let i64t = e.i64();
    let (base, to) =
        (e.value("llvm.ptrtoint", &[base], i64t, &[])?, e.value("llvm.ptrtoint", &[to], i64t, &[])?);
    e.same("llvm.sub", &[to, base])
}

/// `offset` bytes from `base`: an address in scalar registers, to which an instruction adds 32 bits of a lane.
fn displaced<'c>(e: &mut Emit<'c>, base: Value<'c>, offset: Value<'c>) -> Lowered<Value<'c>> {
    let (i64t, byte) = (e.i64(), e.int(8));
    let offset = e.value("llvm.zext", &[offset], i64t, &[])?;
    e.gep(base, offset, byte)
}

/// As [`displaced`], and `other` bytes from there where `mask` is false. That takes 64 bits a lane, but only until the access.
fn displaced_or<'c>(
    e: &mut Emit<'c>,
    base: Value<'c>,
    offset: Value<'c>,
    mask: Value<'c>,
    other: Value<'c>,
) -> Lowered<Value<'c>> {
    let i64t = e.i64();
    let offset = e.value("llvm.zext", &[offset], i64t, &[])?;
    let offset = e.select(mask, offset, other)?;
    // What lies there is no part of what the base points to.
    let start = e.value("llvm.ptrtoint", &[base], i64t, &[])?;
    let address = e.add(start, offset)?;
    e.value("llvm.inttoptr", &[address], base.ty(), &[])
}

fn global_load<'c>(e: &mut Emit<'c>, from: Value<'c>, to: Value<'c>, bytes: u32, hint: i64) -> Lowered<()> {
    let number = |n: i64| Attr::int(e.context(), 32, n);
    let mut attrs = vec![("size", number(bytes.into())), ("offset", number(0)), ("aux", number(hint))];
    attrs.extend(scopes(e, true)?);
    e.op("rocdl.global.load.lds", &[from, to], &[], &attrs)?;
    Ok(())
}

/// As [`global_load`], each lane writing at its own `to`.
fn load_anywhere<'c>(e: &mut Emit<'c>, from: Value<'c>, to: Value<'c>, bytes: u32, hint: i64) -> Lowered<()> {
    let number = |n: i64| Attr::int(e.context(), 32, n);
    let mut attrs = vec![("offset", number(0)), ("aux", number(hint))];
    attrs.extend(scopes(e, true)?);
    e.op(&format!("rocdl.global.load.async.to.lds.b{}", 8 * bytes), &[from, to], &[], &attrs)?;
    Ok(())
}

/// The alias scopes of accesses to the LDS in functions with copies: of copies, or of all others.
pub(super) fn scopes<'c>(e: &Emit<'c>, copies: bool) -> Lowered<Vec<(&'static str, Attr<'c>)>> {
    const DOMAIN: &str = "domain = <id = \"ttopt.shared\">";
    let ctx = e.context();
    let scope = |name: &str| match Attr::parse(ctx, &format!("#llvm.alias_scope<id = \"{name}\", {DOMAIN}>"))
    {
        Some(scope) => Ok(Attr::array(ctx, &[scope])),
        None => internal("cannot make an alias scope"),
    };
    let under_way = scope("ttopt.copies")?;
    if copies {
        return Ok(vec![("alias_scopes", under_way)]);
    }
    Ok(vec![("alias_scopes", scope("ttopt.threads")?), ("noalias_scopes", under_way)])
}

fn source_lane<'c>(l: &mut Lower<'_, 'c>, sources: &LaneSources, load: usize) -> Lowered<Value<'c>> {
    let own = l.thread_number(&sources.thread, 1)?;
    match sources.loads.get(load) {
        Some(0) => Ok(own),
        Some(shift) => {
            let shift = l.emit.const_i32(*shift as i64)?;
            l.emit.xor(own, shift)
        }
        None => internal("a load without sources"),
    }
}

/// `value`, an integer of 32 or 64 bits, of another lane where one is named.
fn exchange<'c>(e: &mut Emit<'c>, value: Value<'c>, lane: Option<Value<'c>>) -> Lowered<Value<'c>> {
    let Some(lane) = lane else { return Ok(value) };
    let (i32t, i64t) = (e.i32(), e.i64());
    match value.ty().int_bits() {
        Some(32) => lanes::read_lane(e, value, lane),
        Some(64) => {
            let low = e.value("llvm.trunc", &[value], i32t, &[])?;
            let high = e.lshr(value, 32)?;
            let high = e.value("llvm.trunc", &[high], i32t, &[])?;
            let halves = [low, high].map(|half| lanes::read_lane(e, half, lane));
            let [low, high] = halves;
            let low = e.value("llvm.zext", &[low?], i64t, &[])?;
            let high = e.value("llvm.zext", &[high?], i64t, &[])?;
            let high = e.shl(high, 32)?;
            e.or(low, high)
        }
        _ => unsupported(format!("lanes exchange no values of type {}", value.ty())),
    }
}

fn exchange_pointer<'c>(e: &mut Emit<'c>, pointer: Value<'c>, lane: Option<Value<'c>>) -> Lowered<Value<'c>> {
    if lane.is_none() {
        return Ok(pointer);
    }
    let i64t = e.i64();
    let number = e.value("llvm.ptrtoint", &[pointer], i64t, &[])?;
    let number = exchange(e, number, lane)?;
    e.value("llvm.inttoptr", &[number], pointer.ty(), &[])
}

fn exchange_condition<'c>(
    e: &mut Emit<'c>,
    condition: Value<'c>,
    lane: Option<Value<'c>>,
) -> Lowered<Value<'c>> {
    if lane.is_none() {
        return Ok(condition);
    }
    let (i32t, zero) = (e.i32(), e.const_i32(0)?);
    let number = e.value("llvm.zext", &[condition], i32t, &[])?;
    let number = exchange(e, number, lane)?;
    e.icmp(ICmp::Ne, number, zero)
}

fn commit_group<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    // Loads are counted in the order of groups: all but accesses to global memory may cross (LLVM, "User Guide for AMDGPU
    // Backend", llvm.amdgcn.sched.barrier).
    const ALL_BUT_GLOBAL: i64 = 0x1 | 0x2 | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400;
    let mask = l.emit.const_i32(ALL_BUT_GLOBAL)?;
    l.emit.intrinsic_void("llvm.amdgcn.sched.barrier", &[mask])?;
    l.set(op.result(0), Vec::new());
    Ok(())
}

fn wait<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Ok(left) = u32::try_from(AsyncWaitOp::of(op).num_inst()) else {
        return unsupported("waits for a negative number of instructions");
    };
    let has = l.target.desc().primitives;
    if !has.lds_loads && !has.async_to_lds {
        return unsupported(format!("the target {} has no loads to shared memory", l.target.desc().name));
    }
    waits::loads(&mut l.emit, left, l.target.desc())?;
    l.set(op.result(0), Vec::new());
    Ok(())
}
