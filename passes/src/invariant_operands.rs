//! `--triton-nvidia-store-invariant-operands`: left operands of warp-group dots that a loop does not change, and that its
//! branches would have to keep in registers, wait in shared memory.
//!
//! `wgmma` takes a left operand from registers or from shared memory. ptxas 12.8 and 12.9 make wrong code of one in
//! registers that was computed before a loop with branches, as scaled queries are where a loop masks some of its iterations only:
//! they give its registers to what is computed behind the dot, also though the next iteration multiplies by it. (13.5
//! does not. Without branches none does.) So such an operand is stored once before the loop, where shared memory
//! has room for it beside all other buffers. Where it has none, the lowering moves the operand anew in each iteration.
//!
//! So does one of a loop that loads nothing and whose dots multiply by what the loop computes, as powers of a matrix are computed: each iteration waits
//! for the one before, and only other CTAs fill that time, which the registers of the operand leave room for. Where loops load, as attention
//! does, reading the operand from shared memory again and again costs more than that gains.

use crate::machine::{Layouts, Machine, error};
use crate::matmul::plan::left_in_shared;
use crate::shared_memory::allocate::place_buffers;
use crate::shared_memory::buffers::Needs;
use crate::shared_memory::callees_first;
use linear_layout::Encoding;
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::flow::{is_loop, is_region_branch};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::IrRewriter;
use mlir_host::upstream::Dialect;
use ttopt_dialect::tt::ops::{
    AssertOp, AtomicCasOp, AtomicRmwOp, CallOp, DescriptorGatherOp, DescriptorLoadOp, ExternElementwiseOp,
    LoadOp, PreciseDivFOp, PreciseSqrtOp, PrintOp,
};
use ttopt_dialect::ttg::attrs::{encoding, shared_memory};
use ttopt_dialect::ttg::ops::{AsyncCopyGlobalToLocalOp, LocalAllocOp};
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::{AsyncTmaCopyGlobalToLocalOp, AsyncTmaGatherOp, WarpGroupDotOp};

/// The pass.
pub static STORE_INVARIANT_OPERANDS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg", "ttng"],
    ..PassDef::new(
        "triton-nvidia-store-invariant-operands",
        "Keep left operands of warp-group dots that a branching loop does not change in shared memory",
        run,
    )
};

/// The outermost loop around `op` that `value` is not defined in, if it has branches: `op` finds the value the same in all
/// iterations.
pub fn branching_loop_without<'c>(value: Value<'c>, op: Op<'c>) -> Option<Op<'c>> {
    loops_without(value, op).last().filter(|around| branches_within(*around))
}

/// The loops around `op`, from the innermost, that `value` is not defined in.
fn loops_without<'c>(value: Value<'c>, op: Op<'c>) -> impl Iterator<Item = Op<'c>> {
    let home = match value.def_op() {
        Some(made) => made.parent(),
        None => value.arg_block().and_then(|block| block.parent()),
    };
    std::iter::successors(op.parent(), |around| around.parent())
        .take_while(move |around| Some(*around) != home)
        .filter(|around| is_loop(*around))
}

/// The outermost loop around `dot` that its left operand is not defined in, and that loads nothing, if it computes the right one.
fn computing_loop_without<'c>(dot: WarpGroupDotOp<'c>) -> Option<Op<'c>> {
    let stored = LocalAllocOp::cast(dot.b().def_op()?).filter(|made| made.src().is_some())?;
    let computes = |around: &Op<'c>| {
        stored.op().ancestor(|op| op == *around).is_some()
            && around.walk(&mut |op| if may_load(op) { Walk::Stop } else { Walk::Advance }) != Walk::Stop
    };
    loops_without(dot.a(), dot.op()).take_while(computes).last()
}

/// Whether `op` brings data from global memory, or may.
fn may_load(op: Op<'_>) -> bool {
    is_one_of!(op, LoadOp | DescriptorLoadOp | DescriptorGatherOp | AsyncCopyGlobalToLocalOp)
        || is_one_of!(op, AsyncTmaCopyGlobalToLocalOp | AsyncTmaGatherOp | AtomicRmwOp | AtomicCasOp | CallOp)
}

/// Whether machine code of the body of `around` may branch.
fn branches_within(around: Op<'_>) -> bool {
    let found =
        around.walk(&mut |op| if op != around && may_branch(op) { Walk::Stop } else { Walk::Advance });
    found == Walk::Stop
}

/// Whether machine code of `op` alone may branch: control flow, calls, and what takes a subroutine or a loop of retries.
fn may_branch(op: Op<'_>) -> bool {
    let straight = ["math.exp", "math.exp2", "math.log2", "math.fma", "math.absf", "math.sqrt", "math.rsqrt"];
    is_region_branch(op)
        || is_one_of!(op, CallOp | PreciseDivFOp | PreciseSqrtOp | ExternElementwiseOp | AssertOp | PrintOp)
        || is_one_of!(op, AtomicRmwOp | AtomicCasOp)
        || Dialect::of(op) == Some(Dialect::Math) && !straight.contains(&op.name())
}

/// A left operand in registers, and the loop that does not change it.
struct Candidate<'c> {
    dot: WarpGroupDotOp<'c>,
    before: Op<'c>,
    memory: MemDescType<'c>,
}

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let machine = Machine::of(module)?;
    let Some(target) = machine.target.clone().filter(|target| target.primitives.wgmma) else {
        return Ok(());
    };
    // Recursion is reported where memory is allocated.
    let Ok(functions) = callees_first(module) else { return Ok(()) };
    let layouts = Layouts::new(module.context(), machine);
    let mut callees = FastMap::default();
    let calls = functions.len() > 1;
    for function in functions {
        let candidates = candidates(function, &layouts)?;
        if !candidates.is_empty() {
            store(function, &candidates, &callees, &target)?;
        }
        if calls && let Some(name) = function.attr("sym_name").and_then(Attr::as_str) {
            callees.insert(name.to_owned(), place_buffers(function, &callees, &target)?.needs);
        }
    }
    Ok(())
}

fn candidates<'c>(function: Op<'c>, layouts: &Layouts<'c>) -> Result<Vec<Candidate<'c>>, Reported> {
    let mut dots = Vec::new();
    function.walk(&mut |op| {
        dots.extend(WarpGroupDotOp::cast(op));
        Walk::Advance
    });
    let mut found = Vec::new();
    for dot in dots {
        let Some(ty) = dot.a().ty().as_tensor() else { continue };
        let before = branching_loop_without(dot.a(), dot.op()).or_else(|| computing_loop_without(dot));
        let Some(before) = before else { continue };
        let result = dot.d().ty().as_tensor().and_then(|ty| encoding(ty.encoding()?).ok());
        let shape = ty.shape();
        let (Some(result), Some(k), Some(bits)) = (result, shape.last(), ty.element().bits()) else {
            continue;
        };
        let rows = left_in_shared((*k).max(1) as u64, u64::from(bits), &result);
        let layout = layouts.attr(&Encoding::NvmmaShared(rows)).map_err(|reason| error(dot.op(), reason))?;
        let memory = shared_memory(function.context())
            .and_then(|space| MemDescType::new(&shape, ty.element(), layout, space, false))
            .ok_or_else(|| error(dot.op(), format!("no buffer holds {}", ty.ty())))?;
        found.push(Candidate { dot, before, memory });
    }
    Ok(found)
}

/// Stores what fits beside the buffers that the function has.
fn store<'c>(
    function: Op<'c>,
    candidates: &[Candidate<'c>],
    callees: &FastMap<String, Needs>,
    target: &TargetDesc,
) -> PassResult {
    let mut bytes = place_buffers(function, callees, target)?.needs.bytes;
    let mut stored: FastMap<(Value<'c>, Op<'c>, Type<'c>), Value<'c>> = FastMap::default();
    let mut rewriter = IrRewriter::new(function.context());
    for Candidate { dot, before, memory } in candidates {
        let key = (dot.a(), *before, memory.ty());
        let buffer = match stored.get(&key) {
            Some(buffer) => *buffer,
            None => {
                let elements: i64 = memory.shape().iter().product();
                let more = elements.unsigned_abs() * u64::from(memory.element().bits().unwrap_or(0)) / 8;
                if bytes + more > target.shared_bytes {
                    continue;
                }
                bytes += more;
                rewriter.set_before(*before);
                let made = LocalAllocOp::build(dot.op().loc()).src(dot.a()).results(&[memory.ty()]);
                let buffer = made.insert(&mut rewriter)?.result();
                stored.insert(key, buffer);
                buffer
            }
        };
        dot.op().set_operand(0, buffer);
    }
    Ok(())
}
