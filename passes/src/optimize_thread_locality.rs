//! `--tritongpu-optimize-thread-locality`: sums over loops stay in their threads.
//!
//! A loop that reduces a tensor in each iteration and adds the result to an
//! iter_arg exchanges data between lanes and warps each time. Instead each
//! thread combines only what it holds, the iter_arg becomes these partial results,
//! and threads exchange data once, after the loop. The axis is cut by reshapes
//! into elements of one thread and threads; all layouts follow from that of
//! the tensor; those of what follows the loop are chosen again. The order of
//! additions changes, as it may in reductions.

use crate::ir_util::{layout_of, operations_in_dominance_order, trip_count};
use crate::machine::{Layouts, Machine, error};
use crate::objective::weight;
use crate::remove_layout_conversions::{self, unconverted};
use crate::rules::is_conversion;
use linear_layout::{Dim, LinearLayout};
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Op, TensorType, Type, Value};
use mlir_host::match_op;
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::IrRewriter;
use mlir_host::upstream::{AddFOp, AddIOp, ForOp, MaxNumFOp, MaximumFOp, MinNumFOp, MinimumFOp, YieldOp};
use ttopt_dialect::tt::ops::ReduceOp;
use ttopt_dialect::ttg::infer;
use ttopt_dialect::ttg::layout::to_linear_layout;

/// The pass.
pub static TRITONGPU_OPTIMIZE_THREAD_LOCALITY: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["tt", "ttg", "arith"],
    ..PassDef::new(
        "tritongpu-optimize-thread-locality",
        "Let loops that add up reductions carry what each thread has, and exchange data between threads once, after the loop",
        run,
    )
};

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let layouts = Layouts::new(module.context(), Machine::of(module)?);
    let mut rewriter = IrRewriter::new(module.context());
    let mut changed = false;
    // What is erased on the way is no reduction that is still to come.
    let reductions =
        operations_in_dominance_order(module).into_iter().filter(|op| ReduceOp::cast(*op).is_some());
    for op in reductions.collect::<Vec<_>>() {
        if let Some(sum) = Sum::of(op) {
            sum.keep_in_threads(&mut rewriter, &layouts)?;
            changed = true;
        }
    }
    // What follows a loop now may have better layouts.
    if changed { remove_layout_conversions::improve(module, &layouts) } else { Ok(()) }
}

/// `carried = carried + reduce(source)` in a loop.
struct Sum<'c> {
    reduce: Op<'c>,
    add: Op<'c>,
    axis: usize,
    /// Number among the iter_args of the loop.
    number: usize,
    for_op: Op<'c>,
    /// Sizes of the axis: copies in registers, threads, neighbours in registers.
    cut: [u64; 3],
}

/// The element that changes nothing in `op`, by its bits as text of MLIR.
fn neutral(op: Op<'_>, element: Type<'_>) -> Option<f64> {
    let float = element.is_float();
    match_op!(op, {
        AddFOp if float => Some(-0.0),
        AddIOp if !float => Some(0.0),
        MaximumFOp if float => Some(f64::NEG_INFINITY),
        MinimumFOp if float => Some(f64::INFINITY),
        // The other operand is the result.
        MaxNumFOp | MinNumFOp if float => Some(f64::NAN),
        _ => None,
    })
}

/// The only user of `value`, without conversions of it, and the value as that has it.
fn only_user<'c>(value: Value<'c>) -> Option<(Op<'c>, Value<'c>)> {
    let mut uses = value.uses();
    let (user, _) = uses.next().filter(|_| uses.next().is_none())?;
    if is_conversion(user) { only_user(user.result(0)) } else { Some((user, value)) }
}

/// The operation that adds what `reduce` gives to an iter_arg, as the region of `reduce` does, and is all that the iter_arg is used
/// for; the loop, and the number of the iter_arg. There may be conversions between them.
fn added_up<'c>(reduce: Op<'c>) -> Option<(Op<'c>, Op<'c>, usize)> {
    ReduceOp::cast(reduce).filter(|_| reduce.num_results() == 1)?;
    // The region is one operation, and the loop adds by the same.
    let combine: Vec<Op<'c>> = reduce.region(0).first_block()?.ops().collect();
    let [combine, _] = combine.as_slice() else { return None };
    if combine.num_operands() != 2 || combine.operand(0) == combine.operand(1) {
        return None;
    }
    neutral(*combine, reduce.operand(0).ty().as_tensor()?.element())?;
    let (add, reduced) = only_user(reduce.result(0)).filter(|(add, _)| add.name_id() == combine.name_id())?;
    let carried = unconverted(add.operands().find(|operand| *operand != reduced)?);
    let (body, (end, sum)) = (carried.arg_block()?, only_user(add.result(0))?);
    let for_op = body.parent().filter(|op| ForOp::cast(*op).is_some())?;
    let number = carried.index().checked_sub(1)?;
    let closes = YieldOp::cast(end).is_some()
        && end.parent() == Some(for_op)
        && end.operands().position(|operand| operand == sum) == Some(number);
    let all = reduce.block() == Some(body) && only_user(carried).is_some_and(|(user, _)| user == add);
    // What runs once gains nothing.
    let repeats = trip_count(for_op).is_none_or(|times| times > 1);
    (closes && all && repeats).then_some((add, for_op, number))
}

/// Whether threads exchange data once after the loop, and not for each iteration, for the sake of `reduce`: the pass makes it so
/// unless a thread has all of it anyway.
pub(crate) fn is_added_up(reduce: Op<'_>) -> bool {
    added_up(reduce).is_some()
}

/// How often a loop runs that adds up what `reduce` gives, where threads would exchange data once after it if `layout` was that of what
/// is reduced. `None` where each iteration reduces as a whole, or a thread has all of it.
pub(crate) fn times_added_up(reduce: Op<'_>, layout: &LinearLayout) -> Option<f64> {
    let axis = usize::try_from(ReduceOp::cast(reduce)?.axis()).ok()?;
    cut(layout, axis).filter(|cut| cut[1] > 1)?;
    let (_, for_op, _) = added_up(reduce)?;
    Some(weight(reduce) / weight(for_op))
}

impl<'c> Sum<'c> {
    fn of(reduce: Op<'c>) -> Option<Sum<'c>> {
        let axis = usize::try_from(ReduceOp::cast(reduce)?.axis()).ok()?;
        let (add, for_op, number) = added_up(reduce)?;
        let converts = |value: Value<'c>| value.uses().any(|(user, _)| is_conversion(user));
        let converted = add.operands().any(|operand| operand.def_op().is_some_and(is_conversion));
        if converted || converts(add.result(0)) {
            return None;
        }
        // Nor does what is in one thread already.
        let source = reduce.operand(0);
        let shape = source.ty().as_tensor()?.shape();
        let cut = cut(&*to_linear_layout(layout_of(source)?, &shape).ok()?, axis)?;
        (cut[1] > 1).then_some(Sum { reduce, add, axis, number, for_op, cut })
    }

    fn keep_in_threads(self, rewriter: &mut IrRewriter<'c>, layouts: &Layouts<'c>) -> Result<(), Reported> {
        let Sum { reduce, add, axis, number, for_op, cut } = self;
        let fail = |reason: String| error(reduce, reason);
        // Cut the axis in three, and combine what is in one thread.
        rewriter.set_before(reduce);
        let source = reduce.operand(0);
        let Some(ty) = source.ty().as_tensor() else { return Ok(()) };
        let mut shape: Vec<i64> = ty.shape().to_vec();
        shape.splice(axis..=axis, cut.map(|size| size as i64));
        let layout = infer::reshape(ty.encoding(), &ty.shape(), &shape).map_err(fail)?;
        let cut_ty = typed(reduce, TensorType::new(&shape, ty.element(), layout))?;
        let pieces = make(rewriter, reduce, "tt.reshape", &[source], cut_ty, &[])?;
        let inner = reduce_along(rewriter, reduce, pieces, axis + 2, layouts)?;
        let partial = reduce_along(rewriter, reduce, inner, axis, layouts)?;
        // The loop carries that, from neutral elements on.
        let Some(partial_ty) = partial.ty().as_tensor() else { return Ok(()) };
        let init = for_op.operand(3 + number);
        let value = neutral(add, ty.element())
            .map(|value| {
                if ty.element().is_float() {
                    Attr::float_of(ty.element(), value)
                } else {
                    Attr::int_of(ty.element(), value as i64)
                }
            })
            .ok_or_else(|| fail("has no neutral element".to_owned()))?;
        rewriter.set_before(for_op);
        let splat = [("value", Attr::splat(partial_ty.ty(), value))];
        let start = make(rewriter, for_op, "arith.constant", &[], partial_ty.ty(), &splat)?;
        let Some(body) = for_op.region(0).first_block() else { return Ok(()) };
        let (carried, result) = (body.arg(1 + number), for_op.result(number));
        for_op.set_operand(3 + number, start);
        carried.set_type(partial_ty.ty());
        let before = result.ty();
        result.set_type(partial_ty.ty());
        rewriter.set_before(add);
        let add_name = add.name();
        let sum = make(rewriter, add, add_name, &[carried, partial], partial_ty.ty(), &[])?;
        add.result(0).replace_all_uses_with(sum);
        add.erase();
        // After the loop, what threads exchange, and the initial value.
        let users: Vec<(Op<'c>, usize)> = result.uses().collect();
        rewriter.set_after(for_op);
        let whole = reduce_along(rewriter, reduce, result, axis, layouts)?;
        let whole = convert(rewriter, for_op, whole, before)?;
        let total = make(rewriter, for_op, add_name, &[init, whole], before, &[])?;
        users.into_iter().for_each(|(user, i)| user.set_operand(i, total));
        reduce.erase();
        Ok(())
    }
}

/// The sizes of an axis cut into copies in registers, threads, and neighbours
/// in registers; `None` where it is not made in that order.
fn cut(layout: &LinearLayout, axis: usize) -> Option<[u64; 3]> {
    let (mut registers, mut threads) = (0u64, 0u64);
    for dim in layout.in_dims() {
        for bit in 0..layout.in_bits(dim) {
            let basis = layout.basis_coords(dim, bit)?;
            let along = basis[axis];
            let others = basis.iter().enumerate().any(|(d, c)| d != axis && *c != 0);
            match (along, dim == Dim::REGISTER) {
                (0, _) => {}
                _ if others || !along.is_power_of_two() => return None,
                (_, true) => registers |= along,
                (_, false) => threads |= along,
            }
        }
    }
    let neighbours = registers.trailing_ones();
    let shared = (threads >> neighbours).trailing_ones();
    let size = layout.out_size(Dim::out(axis))?;
    let copies = size >> (neighbours + shared);
    let whole = registers & threads == 0
        && (registers | threads) + 1 == size
        && threads == ((1 << shared) - 1) << neighbours;
    whole.then_some([copies, 1 << shared, 1 << neighbours])
}

fn typed<'c>(op: Op<'c>, ty: Option<TensorType<'c>>) -> Result<Type<'c>, Reported> {
    ty.map(TensorType::ty).ok_or_else(|| error(op, "no type for a part of this sum"))
}

fn make<'c>(
    rewriter: &mut IrRewriter<'c>,
    op: Op<'c>,
    name: &str,
    operands: &[Value<'c>],
    ty: Type<'c>,
    attrs: &[(&str, Attr<'c>)],
) -> Result<Value<'c>, Reported> {
    Ok(rewriter.generic(name, op.loc(), operands, &[ty], attrs)?.result(0))
}

/// `value` reduced along an axis as `reduce` does.
fn reduce_along<'c>(
    rewriter: &mut IrRewriter<'c>,
    reduce: Op<'c>,
    value: Value<'c>,
    axis: usize,
    layouts: &Layouts<'c>,
) -> Result<Value<'c>, Reported> {
    let ty = value.ty().as_tensor().and_then(|ty| Some((ty, ty.encoding()?)));
    let (ty, layout) = ty.ok_or_else(|| error(reduce, "reduces something without a layout"))?;
    let mut shape = ty.shape().to_vec();
    shape.remove(axis);
    let made = if shape.is_empty() {
        ty.element()
    } else {
        let layout = layouts.slice(axis, layout).map_err(|reason| error(reduce, reason))?;
        typed(reduce, TensorType::new(&shape, ty.element(), Some(layout)))?
    };
    let copy = rewriter.clone_op(reduce);
    copy.set_operand(0, value);
    copy.set_attr("axis", Attr::int(reduce.context(), 32, axis as i64));
    copy.result(0).set_type(made);
    rewriter.set_after(copy);
    Ok(copy.result(0))
}

/// `value` as `ty`, which differs in the layout only.
fn convert<'c>(
    rewriter: &mut IrRewriter<'c>,
    op: Op<'c>,
    value: Value<'c>,
    ty: Type<'c>,
) -> Result<Value<'c>, Reported> {
    if value.ty() == ty {
        return Ok(value);
    }
    make(rewriter, op, "ttg.convert_layout", &[value], ty, &[])
}
