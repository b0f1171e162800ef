//! Accesses whose elements lie side by side become one.
//!
//! Gates and values, pairs that a rotary embedding turns, or real and imaginary parts, lie in turns in memory: a program loads
//! `p` and `p + 1`, where each `p` is a multiple of two elements, as two tensors of every other element. Threads then access single elements,
//! and each sector twice; half of each if they store. One access of both, with a last dimension of two, has neighbours for vectors as
//! wide as any. Two such accesses, of `p` and of `p + 2`, become one of all four where each `p` is a multiple of four elements, and so on.

use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::analysis::pointer_roots::{Arguments, PointerRoots, may_meet};
use crate::ir_util::is_loop;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Block, Op, TensorType, Type, Value, Walk};
use mlir_host::match_op;
use mlir_host::rewrite::{IrRewriter, Rewriter};
use mlir_host::upstream::{AddIOp, ConstantOp, ExtSIOp, MulIOp, SubIOp};
use std::cell::OnceCell;
use ttopt_dialect::tt::ops::{
    AddPtrOp, BroadcastOp, ExpandDimsOp, JoinOp, LoadOp, MakeRangeOp, SplatOp, SplitOp, StoreOp,
};
use ttopt_dialect::tt::types::pointee;

/// Bits of the widest access of a thread.
const WIDEST: u32 = 128;
/// Operations that are looked into, one inside the other.
const DEPTH: usize = 16;

/// Merges such accesses below `root`.
///
/// # Errors
/// Where an operation cannot be made.
pub(crate) fn merge(root: Op<'_>) -> Result<(), Reported> {
    while merge_once(root)? {}
    Ok(())
}

/// Merges pairs of accesses; says whether there were some.
fn merge_once(root: Op<'_>) -> Result<bool, Reported> {
    let mut blocks = Vec::new();
    root.walk(&mut |op| {
        for region in op.regions() {
            blocks.extend(region.blocks());
        }
        Walk::Advance
    });
    let facts = Facts { root, known: OnceCell::new() };
    let mut roots = PointerRoots::default();
    let pairs: Vec<_> = blocks.into_iter().flat_map(|block| pairs(block, &facts, &mut roots)).collect();
    let mut rewriter = IrRewriter::new(root.context());
    let some = !pairs.is_empty();
    pairs.into_iter().try_for_each(|pair| match pair {
        Pair::Loads(first, second, sides) => merge_loads(first, second, sides, &mut rewriter),
        Pair::Stores(first, second, sides) => merge_stores(first, second, sides, &mut rewriter),
    })?;
    Ok(some)
}

/// Two accesses that can be one.
enum Pair<'c> {
    /// Where the first is.
    Loads(LoadOp<'c>, LoadOp<'c>, Sides),
    /// Where the second is.
    Stores(StoreOp<'c>, StoreOp<'c>, Sides),
}

/// How two accesses lie side by side.
#[derive(Clone, Copy)]
struct Sides {
    /// Whether the first one has the lower addresses.
    below: bool,
    /// Elements that lie next to each other in each of them.
    width: u32,
}

/// What is known of values, found out when it is asked for.
struct Facts<'c> {
    root: Op<'c>,
    known: OnceCell<AxisInfoAnalysis<'c>>,
}

impl<'c> Facts<'c> {
    /// Whether all elements of `value` are multiples of `number`, in bytes for pointers.
    fn are_multiples(&self, value: Value<'c>, number: u64) -> bool {
        let known = self.known.get_or_init(|| AxisInfoAnalysis::new(self.root));
        known.get(value).is_some_and(|info| info.all_divisible_by() >= number)
    }

    /// How much more each element of `b` is than that of `a`, in elements for pointers; `None` where that is not known.
    fn apart(&self, a: Value<'c>, b: Value<'c>, depth: usize) -> Option<i64> {
        if a == b {
            return Some(0);
        }
        let depth = depth.checked_sub(1)?;
        if let (Some(a), Some(b)) = (splat(a), splat(b)) {
            return b.checked_sub(a);
        }
        let ((below, less), (above, more)) = (displaced(a), displaced(b));
        if less != 0 || more != 0 {
            return self.apart(below, above, depth)?.checked_add(more)?.checked_sub(less);
        }
        let (one, other) = (a.def_op()?, b.def_op()?);
        let alike = one.name() == other.name()
            && one.attrs() == other.attrs()
            && one.operands().map(|value| value.ty()).eq(other.operands().map(|value| value.ty()));
        if !alike || a.ty() != b.ty() {
            return None;
        }
        let of = |i: usize, j: usize| self.apart(one.operand(i), other.operand(j), depth);
        let both = |i: usize, j: usize| of(0, i)?.checked_add(of(1, j)?);
        match_op!(one, {
            MakeRangeOp => Some(0),
            SplatOp | ExpandDimsOp | BroadcastOp => of(0, 0),
            ExtSIOp => self.widened(one.operand(0), other.operand(0), of(0, 0)?),
            AddIOp => both(0, 1).or_else(|| both(1, 0)),
            MulIOp => {
                let by = |i: usize| splat(one.operand(i)).filter(|by| splat(other.operand(i)) == Some(*by));
                match (by(0), by(1)) {
                    (_, Some(by)) => of(0, 0)?.checked_mul(by),
                    (Some(by), _) => of(1, 1)?.checked_mul(by),
                    _ => None,
                }
            },
            AddPtrOp => {
                let offsets = of(1, 1)?;
                let offsets = self.widened(one.operand(1), other.operand(1), offsets)?;
                of(0, 0)?.checked_add(offsets)
            },
            _ => None,
        })
    }

    /// How far apart two numbers are with more bits that are `apart` with theirs, where the sum may overflow. From a multiple of a
    /// power of two to less than the next one it does not.
    fn widened(&self, a: Value<'c>, b: Value<'c>, apart: i64) -> Option<i64> {
        let wide = a.ty().element().int_bits() == Some(64);
        let below = if apart < 0 { b } else { a };
        let next = apart.unsigned_abs().checked_add(1)?.checked_next_power_of_two()?;
        (apart == 0 || wide || self.are_multiples(below, next)).then_some(apart)
    }

    /// Whether pointers `a` and `b` to elements of one size are side by side, in pairs that none shares with another.
    fn side_by_side(&self, a: Value<'c>, b: Value<'c>) -> Option<Sides> {
        let bits = pointee(a.ty().element())?.bits().filter(|bits| *bits >= 8)?;
        let apart = self.apart(a, b, DEPTH)?;
        let below = apart > 0;
        let (first, width) = first_of_each(if below { a } else { b }, DEPTH);
        let both = 2 * width * bits;
        let fit = apart.unsigned_abs() == u64::from(width) && both <= WIDEST;
        (fit && self.are_multiples(first, u64::from(both / 8))).then_some(Sides { below, width })
    }

    /// The last access of `open` that `op`, of the same kind, can be merged with: its place there, and how the two lie.
    fn beside<A: Copy>(
        &self,
        open: &[Open<'c, A>],
        op_of: impl Fn(A) -> Op<'c>,
        op: Op<'c>,
        but: &[usize],
    ) -> Option<(usize, Sides)> {
        open.iter().enumerate().rev().find_map(|(place, open)| {
            let first = op_of(open.access);
            let sides =
                self.alike(first, op, but).then(|| self.side_by_side(first.operand(0), op.operand(0)))?;
            Some((place, sides?))
        })
    }

    /// Whether two accesses are the same but for these operands, of the same types, and nothing else is said of them.
    fn alike(&self, one: Op<'c>, other: Op<'c>, but: &[usize]) -> bool {
        let same = |i: usize| {
            let (a, b) = (one.operand(i), other.operand(i));
            if but.contains(&i) { a.ty() == b.ty() } else { self.apart(a, b, DEPTH) == Some(0) }
        };
        one.attrs() == other.attrs()
            && one.num_operands() == other.num_operands()
            && (0..one.num_operands()).all(same)
            && one.discardable_attrs().is_empty()
            && other.discardable_attrs().is_empty()
    }
}

/// The first pointers of neighbours that `pointers` are, as `Doubled::both` made them, and how many neighbours each of them has.
fn first_of_each(pointers: Value<'_>, depth: usize) -> (Value<'_>, u32) {
    let merged = || {
        let sum = AddPtrOp::defining(pointers)?;
        let twice = BroadcastOp::defining(sum.ptr())?;
        let one = ExpandDimsOp::defining(twice.src())?;
        let single = one.src();
        let offsets = BroadcastOp::defining(sum.offset())?.src();
        let shape = twice.result().ty().as_tensor()?.shape();
        let sizes = offsets.ty().as_tensor()?.shape();
        let is_last = shape.last() == Some(&2)
            && sizes.last() == Some(&2)
            && sizes.iter().rev().skip(1).all(|size| *size == 1)
            && usize::try_from(one.axis()).is_ok_and(|axis| axis + 1 == shape.len());
        let (first, width) = first_of_each(single, depth.checked_sub(1)?);
        (is_last && step_of(offsets, depth)? == i64::from(width)).then_some((first, 2 * width))
    };
    merged().unwrap_or((pointers, 1))
}

/// The step of offsets that are a range from zero, or a multiple of one.
fn step_of(offsets: Value<'_>, depth: usize) -> Option<i64> {
    let depth = depth.checked_sub(1)?;
    if let Some(range) = MakeRangeOp::defining(offsets) {
        return (range.start() == 0).then_some(1);
    }
    if let Some(one) = ExpandDimsOp::defining(offsets) {
        return step_of(one.src(), depth);
    }
    let product = MulIOp::defining(offsets)?;
    step_of(product.op().operand(0), depth)?.checked_mul(splat(product.op().operand(1))?)
}

/// The constant that all elements of `value` are.
fn splat(value: Value<'_>) -> Option<i64> {
    let constant = ConstantOp::defining(value)?;
    match constant.value()?.as_elements() {
        Some(elements) => elements.splat_value()?.as_int(),
        None => constant.int(),
    }
}

/// `value` as another one and a constant, in elements for pointers.
fn displaced(value: Value<'_>) -> (Value<'_>, i64) {
    let Some(op) = value.def_op() else { return (value, 0) };
    let by = |i: usize| splat(op.operand(i));
    match_op!(op, {
        AddIOp => match (by(0), by(1)) {
            (_, Some(by)) => (op.operand(0), by),
            (Some(by), _) => (op.operand(1), by),
            _ => (value, 0),
        },
        SubIOp => match by(1).and_then(i64::checked_neg) {
            Some(by) => (op.operand(0), by),
            None => (value, 0),
        },
        AddPtrOp => match by(1) {
            Some(by) => (op.operand(0), by),
            None => (value, 0),
        },
        _ => (value, 0),
    })
}

/// An access that others may be merged with.
struct Open<'c, A> {
    access: A,
    roots: Option<Arguments<'c>>,
}

/// Accesses that are looked at as the first of a pair: those of a pair are close to each other.
const MOST_OPEN: usize = 16;

/// Elements of a tensor below which a store is one or two instructions of some warps: another layout for the neighbours costs more.
const FEWEST_STORED: i64 = 128;

fn push<A>(open: &mut Vec<A>, access: A) {
    if open.len() == MOST_OPEN {
        open.remove(0);
    }
    open.push(access);
}

/// Accesses of `block` that can be merged.
fn pairs<'c>(block: Block<'c>, facts: &Facts<'c>, roots: &mut PointerRoots<'c>) -> Vec<Pair<'c>> {
    let mut found = Vec::new();
    let (mut loads, mut stores): (Vec<Open<'c, LoadOp<'c>>>, Vec<Open<'c, StoreOp<'c>>>) = Default::default();
    for op in block.ops() {
        if let Some(load) = LoadOp::cast(op) {
            let of = roots.of(load.ptr());
            stores.retain(|store| !may_meet(store.roots.as_deref(), of.as_deref()));
            if load.is_volatile() {
                stores.clear();
                loads.clear();
            } else if is_of_tensors(op) {
                match facts.beside(&loads, LoadOp::op, op, &[0]) {
                    Some((place, sides)) => {
                        let first = loads.remove(place).access;
                        // The lower pointer must be there already.
                        if sides.below || is_before(load.ptr(), first.op()) {
                            found.push(Pair::Loads(first, load, sides));
                        }
                    }
                    None => push(&mut loads, Open { access: load, roots: of }),
                }
            }
        } else if let Some(store) = StoreOp::cast(op) {
            let can_be_merged = is_of_tensors(op) && elements(op) >= FEWEST_STORED;
            let of = roots.of(store.ptr());
            loads.retain(|load| !may_meet(load.roots.as_deref(), of.as_deref()));
            let beside = if can_be_merged { facts.beside(&stores, StoreOp::op, op, &[0, 1]) } else { None };
            let first = beside.map(|(place, sides)| (stores.remove(place).access, sides));
            stores.retain(|store| !may_meet(store.roots.as_deref(), of.as_deref()));
            match first {
                Some((first, sides)) => found.push(Pair::Stores(first, store, sides)),
                None => push(&mut stores, Open { access: store, roots: of }),
            }
        } else {
            let touches_memory = !op.is_memory_effect_free();
            if touches_memory || is_loop(op) {
                loads.clear();
            }
            // What waits to be stored would be held meanwhile.
            if touches_memory || op.regions().next().is_some() {
                stores.clear();
            }
        }
    }
    found
}

/// Elements of the tensor that an access takes.
fn elements(op: Op<'_>) -> i64 {
    op.operand(0).ty().as_tensor().map_or(1, |ty| ty.shape().iter().product())
}

fn is_of_tensors(op: Op<'_>) -> bool {
    op.operand(0).ty().as_tensor().is_some()
}

/// Whether `value` is there where `op` is, in the block of which it is used.
fn is_before<'c>(value: Value<'c>, op: Op<'c>) -> bool {
    value.def_op().is_none_or(|made| made.block() != op.block() || made.is_before_in_block(op))
}

/// Makes values with a last dimension of two.
struct Doubled<'a, 'c> {
    at: Op<'c>,
    rewriter: &'a mut Rewriter<'c>,
}

impl<'c> Doubled<'_, 'c> {
    fn ty(&self, shape: &[i64], element: Type<'c>) -> Result<Type<'c>, Reported> {
        let ty = TensorType::new(shape, element, None).map(TensorType::ty);
        ty.ok_or_else(|| self.at.error(format!("internal error: no tensor of {element}")))
    }

    /// Each element of `value` twice.
    fn twice(&mut self, value: Value<'c>) -> Result<Value<'c>, Reported> {
        let mut shape = value.ty().as_tensor().map(|ty| ty.shape()).unwrap_or_default();
        let (loc, axis, element) = (self.at.loc(), shape.len() as i64, value.ty().element());
        shape.push(1);
        let one = self.ty(&shape, element)?;
        let one = ExpandDimsOp::build(loc, value, axis).results(&[one]).insert(self.rewriter)?.result();
        shape[axis as usize] = 2;
        let two = self.ty(&shape, element)?;
        Ok(BroadcastOp::build(loc, one).results(&[two]).insert(self.rewriter)?.result())
    }

    /// Each of `pointers`, and the element that is `width` further on.
    fn both(&mut self, pointers: Value<'c>, width: u32) -> Result<Value<'c>, Reported> {
        let pointers = self.twice(pointers)?;
        let shape = pointers.ty().as_tensor().map(|ty| ty.shape()).unwrap_or_default();
        let (loc, i32t) = (self.at.loc(), Type::int(self.at.context(), 32));
        let mut sizes = vec![2];
        let range = self.ty(&sizes, i32t)?;
        let mut range = MakeRangeOp::build(loc, 0, 2).results(&[range]).insert(self.rewriter)?.result();
        if width > 1 {
            let by = [("value", Attr::splat(range.ty(), Attr::int(self.at.context(), 32, width.into())))];
            let by = self.rewriter.generic("arith.constant", loc, &[], &[range.ty()], &by)?.result(0);
            range = self.rewriter.generic("arith.muli", loc, &[range, by], &[range.ty()], &[])?.result(0);
        }
        while sizes.len() < shape.len() {
            sizes.insert(0, 1);
            let more = self.ty(&sizes, i32t)?;
            range = ExpandDimsOp::build(loc, range, 0).results(&[more]).insert(self.rewriter)?.result();
        }
        let all = self.ty(&shape, i32t)?;
        let range = BroadcastOp::build(loc, range).results(&[all]).insert(self.rewriter)?.result();
        Ok(AddPtrOp::build(loc, pointers, range).results(&[pointers.ty()]).insert(self.rewriter)?.result())
    }
}

fn merge_loads<'c>(
    first: LoadOp<'c>,
    second: LoadOp<'c>,
    sides: Sides,
    rewriter: &mut Rewriter<'c>,
) -> Result<(), Reported> {
    let at = first.op();
    rewriter.set_before(at);
    let mut make = Doubled { at, rewriter };
    let pointers = make.both(if sides.below { first.ptr() } else { second.ptr() }, sides.width)?;
    let mask = first.mask().map(|mask| make.twice(mask)).transpose()?;
    let other = first.other().map(|other| make.twice(other)).transpose()?;
    let shape = pointers.ty().as_tensor().map(|ty| ty.shape()).unwrap_or_default();
    let ty = make.ty(&shape, first.result().ty().element())?;
    let load = LoadOp::build(at.loc(), pointers).mask(mask).other(other).cache_policy(first.cache_policy());
    let loaded = load.results(&[ty]).insert(rewriter)?.result();
    let single = first.result().ty();
    let split = SplitOp::build(at.loc(), loaded).results(&[single, single]).insert(rewriter)?.op();
    let (own, others) = if sides.below { (0, 1) } else { (1, 0) };
    rewriter.replace(second.op(), &[split.result(others)]);
    rewriter.replace(at, &[split.result(own)]);
    Ok(())
}

fn merge_stores<'c>(
    first: StoreOp<'c>,
    second: StoreOp<'c>,
    sides: Sides,
    rewriter: &mut Rewriter<'c>,
) -> Result<(), Reported> {
    let at = second.op();
    rewriter.set_before(at);
    let (low, high) = if sides.below { (first, second) } else { (second, first) };
    let mut make = Doubled { at, rewriter };
    let pointers = make.both(low.ptr(), sides.width)?;
    let mask = first.mask().map(|mask| make.twice(mask)).transpose()?;
    let shape = pointers.ty().as_tensor().map(|ty| ty.shape()).unwrap_or_default();
    let ty = make.ty(&shape, low.value().ty().element())?;
    let joined = JoinOp::build(at.loc(), low.value(), high.value()).results(&[ty]).insert(rewriter)?.result();
    StoreOp::build(at.loc(), pointers, joined)
        .mask(mask)
        .cache_policy(first.cache_policy())
        .insert(rewriter)?;
    rewriter.erase(first.op());
    rewriter.erase(at);
    Ok(())
}
