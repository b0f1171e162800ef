//! `--tritongpu-reduce-data-duplication`: operands of dots wait for
//! their use in shared memory.
//!
//! In the layout of an operand elements are replicated across warps. A
//! conversion to such a layout that goes through shared memory anyway is split
//! into the write, where the data is made, and the read, where it is used:
//! passes that follow can then move the two apart. The memory has the layout
//! that the plan of the conversion found.
//!
//! Further conversions of the same data, to operands or not, read that memory,
//! too, where this costs no more than writing and reading memory of their own.
//!
//! Loads in the layout of an operand of a dot that threads multiply by themselves wait there, too, if loops alone use them
//! and they take more registers than a thread can keep for a loop.

use crate::buffer_plans;
use crate::ir_util::{fills_constant_buffer, layout_of, operations_in_dominance_order, with_layout};
use crate::machine::{Layouts, Machine, error};
use crate::objective::weight;
use crate::plans;
use crate::rules::{Rule, forward, is_conversion};
use linear_layout::encoding::{SharedLinear, SwizzledShared};
use linear_layout::plan::{Conversion, Scope, SharedPlan};
use linear_layout::target::{Direction, TargetDesc};
use linear_layout::{Dim, Encoding, LinearLayout};
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Op, TensorType, Type, Value};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::IrRewriter;
use mlir_host::upstream::ForOp;
use ttopt_dialect::tt::ops::{DotOp, LoadOp, TransOp};
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::attrs::{encoding, encoding_attr};
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::ops::{ConvertLayoutOp, LocalAllocOp, LocalLoadOp};
use ttopt_dialect::ttg::types::MemDescType;

/// The pass.
pub static TRITONGPU_REDUCE_DATA_DUPLICATION: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    ..PassDef::new(
        "tritongpu-reduce-data-duplication",
        "Split conversions to operands of dots into writing to shared memory and reading from it, where the plan of the conversion goes that way",
        run,
    )
};

/// Bytes that the widest access to shared memory must be aligned to.
pub(crate) const ALIGNMENT: u64 = 16;

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let machine = Machine::of(module)?;
    let mut rewriter = IrRewriter::new(module.context());
    let layouts = Layouts::new(module.context(), machine.clone());
    let mut turned = operations_in_dominance_order(module);
    turned.retain(|op| TransOp::cast(*op).is_some());
    for trans in turned {
        convert_last(&mut rewriter, trans, &layouts)?;
    }
    let mut conversions = operations_in_dominance_order(module);
    conversions.retain(|op| is_conversion(*op));
    let Some(target) = &machine.target else { return Ok(()) };
    let mut left = Vec::new();
    for op in conversions {
        let Some(memory) = memory_of(op, &machine) else {
            left.push(op);
            continue;
        };
        match shared_copy(op, target) {
            Some(alloc) => read_from(&mut rewriter, op, alloc)?,
            None => split(&mut rewriter, op, memory)?,
        }
    }
    for op in left {
        if let Some(alloc) = shared_copy(op, target) {
            read_from(&mut rewriter, op, alloc)?;
        }
    }
    let mut loads = operations_in_dominance_order(module);
    loads.retain(|op| machine.num_ctas == 1 && waits_for_loops(*op));
    loads.into_iter().try_for_each(|load| wait_in_memory(&mut rewriter, load))
}

/// Converts behind the transposition `trans` what is converted before it, where that makes an operand of which dots read what they
/// multiply: the conversion is then one to the layout of an operand. In the layout of its own operand a transposition is free, too.
fn convert_last<'c>(rewriter: &mut IrRewriter<'c>, trans: Op<'c>, layouts: &Layouts<'c>) -> PassResult {
    let Some(conversion) = trans.operand(0).def_op().filter(|made| is_conversion(*made)) else {
        return Ok(());
    };
    let (source, wanted) = (conversion.operand(0), trans.result(0).ty());
    // A pipeline copies what a loop loads to memory itself, from where it is read in any layout.
    let is_alone = conversion.result(0).uses().count() == 1 && !is_loaded_in_loop(source);
    if !is_alone || !wanted.as_tensor().is_some_and(is_more_than_kept) {
        return Ok(());
    }
    let made = layout_of(source).and_then(|layout| forward(trans, Rule::Trans, layout, layouts).ok());
    let Some(ty) = made.and_then(|layout| with_layout(wanted.as_tensor()?, layout)) else { return Ok(()) };
    let Some(order) = trans.attr("order").and_then(Attr::as_i32_array) else { return Ok(()) };
    rewriter.set_before(trans);
    let turned = TransOp::build(trans.loc(), source, order).results(&[ty]).insert(rewriter)?;
    let last = ConvertLayoutOp::build(trans.loc(), turned.result()).results(&[wanted]).insert(rewriter)?;
    trans.result(0).replace_all_uses_with(last.result());
    trans.erase();
    conversion.erase();
    Ok(())
}

/// Words of 32 bits of an operand that a thread may keep for a loop: a quarter of its registers.
const MOST_KEPT: u64 = 64;

/// Whether `op` loads an operand of dots that are multiplied within threads, in loops around these alone, and gives each thread
/// more than it can keep for them: these hold all of K.
fn waits_for_loops(op: Op<'_>) -> bool {
    let Some(ty) = LoadOp::cast(op).and_then(|_| op.result(0).ty().as_tensor()) else { return false };
    let in_loops = |(user, _): (Op<'_>, usize)| DotOp::cast(user).is_some() && weight(user) > weight(op);
    let bits = u64::from(ty.element().bits().unwrap_or(0));
    bits % 8 == 0 && is_more_than_kept(ty) && !op.result(0).is_unused() && op.result(0).uses().all(in_loops)
}

/// Whether `ty` is that of an operand of dots that are multiplied within threads, and gives each thread more than it can keep: all of K.
/// Dots read such operands as they multiply them, if they are in shared memory.
fn is_more_than_kept(ty: TensorType<'_>) -> bool {
    let operand = ty.encoding().and_then(|layout| encoding(layout).ok());
    let within_threads = matches!(
        operand, Some(Encoding::DotOperand(operand)) if matches!(*operand.parent, Encoding::Blocked(_))
    );
    let bits = u64::from(ty.element().bits().unwrap_or(0));
    let words = || {
        let layout = to_linear_layout(ty.encoding()?, &ty.shape()).ok()?;
        Some(layout.in_size(Dim::REGISTER)? * bits / 32)
    };
    within_threads && words().is_some_and(|words| words > MOST_KEPT)
}

/// Writes what `load` gives to shared memory, from where each use reads it.
fn wait_in_memory<'c>(rewriter: &mut IrRewriter<'c>, load: Op<'c>) -> PassResult {
    let Some(ty) = load.result(0).ty().as_tensor() else { return Ok(()) };
    let rows = SwizzledShared {
        vec: 1,
        per_phase: 1,
        max_phase: 1,
        order: (0..ty.rank()).rev().collect(),
        cga: Vec::new(),
    };
    let memory = memdesc(load, ty, &Encoding::SwizzledShared(rows))?;
    let uses: Vec<(Op<'c>, usize)> = load.result(0).uses().collect();
    rewriter.set_after(load);
    let memory = LocalAllocOp::build(load.loc()).src(load.result(0)).results(&[memory]).insert(rewriter)?;
    for (user, operand) in uses {
        rewriter.set_before(user);
        let read = LocalLoadOp::build(load.loc(), memory.result()).results(&[ty.ty()]).insert(rewriter)?;
        user.set_operand(operand, read.result());
    }
    Ok(())
}

/// Reads the result of the conversion `op` from the memory that `alloc` makes.
fn read_from<'c>(rewriter: &mut IrRewriter<'c>, op: Op<'c>, alloc: Op<'c>) -> PassResult {
    if !alloc.is_before_in_block(op) {
        alloc.move_before(op);
    }
    rewriter.set_before(op);
    let ty = op.result(0).ty();
    let read = LocalLoadOp::build(op.loc(), alloc.result(0)).results(&[ty]).insert(rewriter)?;
    op.result(0).replace_all_uses_with(read.result());
    op.erase();
    Ok(())
}

/// What writes the operand of the conversion `op` to memory, in the same block, that its result can be read
/// from as cheaply as by the conversion.
fn shared_copy<'c>(op: Op<'c>, target: &TargetDesc) -> Option<Op<'c>> {
    let plan = plans::conversion(op.operand(0).ty(), op.result(0).ty(), target).ok()?;
    let Conversion::SharedMemory(plan) = &plan.conversion else { return None };
    let cost = plan.store.cycles(target) + plan.load.cycles(target);
    let fits = |alloc: Op<'c>| {
        let memory = MemDescType::cast(alloc.result(0).ty())?;
        let read = buffer_plans::access(op.result(0).ty(), memory, Direction::Load, target).ok()?;
        (read.access.cycles(target) <= cost).then_some(())
    };
    op.operand(0)
        .uses()
        .map(|(user, _)| user)
        .find(|user| fills_constant_buffer(*user) && user.block() == op.block() && fits(*user).is_some())
}

/// The layout of the memory that the conversion goes through, if it makes the
/// operand of a dot of elements that fill bytes and is not done in several passes.
fn memory_of(op: Op<'_>, machine: &Machine) -> Option<SharedLinear> {
    let element = op.result(0).ty().as_tensor()?.element();
    if element.int_bits().is_some_and(|bits| bits % 8 != 0) || pointee(element).is_some() {
        return None;
    }
    if !matches!(encoding(layout_of(op.result(0))?), Ok(Encoding::DotOperand(_))) {
        return None;
    }
    let target = machine.target.as_ref()?;
    let plan = plans::conversion(op.operand(0).ty(), op.result(0).ty(), target).ok()?;
    // A conversion within warps has no barrier, and all of its result at once.
    let is_worth_barriers =
        || is_loaded_in_loop(op.operand(0)) || op.result(0).ty().as_tensor().is_some_and(is_more_than_kept);
    let Conversion::SharedMemory(shared) = &plan.conversion else { return None };
    if shared.tiles != 1 || shared.scope != Scope::Block && !is_worth_barriers() {
        return None;
    }
    let layout = if is_copied(op.operand(0), target) {
        memory_of_copies(op, op.operand(0).ty(), shared, target)
    } else {
        None
    };
    let layout = layout.unwrap_or_else(|| shared.layout.clone());
    Some(SharedLinear { layout, alignment: ALIGNMENT })
}

/// The memory that a pipeline's copies fill with what a loop loads as `from`, and from which the result of `read` is read, if that takes less than
/// by way of the memory of `plan`: a copy moves consecutive elements, so what registers would be stored to best costs several copies each.
pub(crate) fn memory_of_copies<'c>(
    read: Op<'c>,
    from: Type<'c>,
    plan: &SharedPlan,
    target: &TargetDesc,
) -> Option<LinearLayout> {
    let tensor = from.as_tensor()?;
    let other = plans::through_copies(tensor, read.result(0).ty().as_tensor()?, target)?;
    let Conversion::SharedMemory(other) = other.conversion else { return None };
    let takes = |plan: &SharedPlan| {
        let memory = SharedLinear { layout: plan.layout.clone(), alignment: ALIGNMENT };
        let memory = MemDescType::cast(memdesc(read, tensor, &Encoding::SharedLinear(memory)).ok()?)?;
        Some(buffer_plans::filling(tensor, memory, target)? + plan.load.cycles(target))
    };
    (other.tiles == 1 && takes(&other)? < takes(plan)?).then_some(other.layout)
}

/// Whether a loop loads `value`: a pipeline then copies it to this memory itself, and threads need not convert it even
/// where no other warp has what a warp needs.
fn is_loaded_in_loop(value: Value<'_>) -> bool {
    let load = value.def_op().filter(|op| LoadOp::cast(*op).is_some());
    load.is_some_and(|load| load.parent().is_some_and(|parent| ForOp::cast(parent).is_some()))
}

/// Whether a loop loads `value`, and a pipeline may copy it past the registers.
pub(crate) fn is_copied(value: Value<'_>, target: &TargetDesc) -> bool {
    target.primitives.cp_async && is_loaded_in_loop(value)
}

fn split<'c>(rewriter: &mut IrRewriter<'c>, op: Op<'c>, memory: SharedLinear) -> Result<(), Reported> {
    let Some(ty) = op.result(0).ty().as_tensor() else { return Ok(()) };
    let memory = memdesc(op, ty, &Encoding::SharedLinear(memory))?;
    rewriter.set_before(op);
    let memory = LocalAllocOp::build(op.loc()).src(op.operand(0)).results(&[memory]).insert(rewriter)?;
    let read = LocalLoadOp::build(op.loc(), memory.result()).results(&[ty.ty()]).insert(rewriter)?;
    op.result(0).replace_all_uses_with(read.result());
    op.erase();
    Ok(())
}

/// The type of a buffer for a tensor of this type, written once.
pub(crate) fn memdesc<'c>(op: Op<'c>, ty: TensorType<'c>, memory: &Encoding) -> Result<Type<'c>, Reported> {
    let layout = encoding_attr(op.context(), memory).map_err(|err| error(op, err))?;
    let (shape, element) = (ty.shape(), ty.element());
    let sizes: String = shape.iter().map(|size| format!("{size}x")).collect();
    let text = format!("!ttg.memdesc<{sizes}{element}, {layout}, #ttg.shared_memory>");
    Type::parse(op.context(), &text).ok_or_else(|| error(op, format!("no type {text}")))
}
