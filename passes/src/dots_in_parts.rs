//! Dots one part after the other where registers are short.
//!
//! Products of small numbers are scaled block by block, `sum += dot(a, b) * scale`: a thread holds the sum and the result of the dot at
//! once. For a tile of 128x128 and four warps these are all registers that it has. A warp group multiplies 64 rows at a time, or as
//! many columns as an instruction has, in registers of their own. Where the result is only passed on, element by element, a part of it is multiplied,
//! awaited and added up before the next one begins: then one part takes registers at a time. Meanwhile the matrix units wait, as
//! they do while all of the result is added up, or work for other CTAs.

use crate::analysis::registers::{is_element_by_element, needed_at, registers_of_warps, tensor_words};
use crate::ir_util::splat_constant;
use crate::machine::{Machine, internal};
use crate::matmul::build::splat;
use crate::plans::is_zero;
use crate::schedule::past_registers::part_of;
use linear_layout::Encoding;
use mlir_host::hash::FastSet;
use mlir_host::ir::{Attr, Op, TensorType, Type, Value, Walk};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::rewrite::IrRewriter;
use ttopt_dialect::amdg::ops::ConcatOp;
use ttopt_dialect::tt::ops::FuncOp;
use ttopt_dialect::ttg::attrs::encoding;
use ttopt_dialect::ttg::ops::{MemDescSubsliceOp, WarpSpecializeOp};
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::{WarpGroupDotOp, WarpGroupDotWaitOp};

/// The pass.
pub static DOTS_IN_PARTS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["amdg", "arith", "ttg", "ttng"],
    options: &[PassOption {
        name: "explain",
        description: "report the dots that are taken apart, and why, as remarks",
        kind: OptionKind::Bool(false),
    }],
    ..PassDef::new(
        "tritongpu-dots-in-parts",
        "Multiply, await and add up one part of a dot after the other where a thread has too few registers for all",
        run,
    )
};

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let machine = Machine::of(module)?;
    let Some(target) = machine.target.as_ref().filter(|target| target.primitives.wgmma) else {
        return Ok(());
    };
    // Parts of a cluster's tensors lie in several CTAs.
    if machine.num_ctas > 1 {
        return Ok(());
    }
    let mut functions = Vec::new();
    module.walk(&mut |op| {
        functions.extend(FuncOp::cast(op).map(|function| function.op()));
        Walk::Advance
    });
    let limit = registers_of_warps(machine.num_warps, target);
    functions.into_iter().try_for_each(|function| take_apart(function, limit, options.bool("explain")))
}

/// Takes dots of `function`, of which a thread has `limit` registers, apart where that leaves fewer to spill.
fn take_apart(function: Op<'_>, limit: u64, explains: bool) -> PassResult {
    let mut dots = Vec::new();
    function.walk(&mut |op| {
        dots.extend(WarpGroupDotOp::cast(op).and_then(Dot::of));
        Walk::Advance
    });
    if dots.is_empty() {
        return Ok(());
    }
    let needed = needed_at(function);
    let mut rewriter = IrRewriter::new(function.context());
    for dot in dots {
        // Before the next operation all of the result is there.
        let needed = dot.end.next().and_then(|op| needed.get(&op)).copied().unwrap_or(0);
        let Some(parts) = dot.parts(needed.saturating_sub(limit)) else { continue };
        if explains {
            let (count, what) = (parts.count, if parts.along == 0 { "rows" } else { "columns" });
            dot.dot.op().remark(format!(
                "is multiplied and passed on in {count} parts of its {what}: a thread would need {needed} registers and has {limit}"
            ));
        }
        parts.apply(&mut rewriter)?;
    }
    Ok(())
}

/// A dot that starts from zeros and whose result is only passed on, element by element.
struct Dot<'c> {
    dot: WarpGroupDotOp<'c>,
    /// What waits for it: the dot itself where it is not asynchronous.
    end: Op<'c>,
    result: TensorType<'c>,
    /// An element of what it starts from.
    zero: Attr<'c>,
}

impl<'c> Dot<'c> {
    fn of(dot: WarpGroupDotOp<'c>) -> Option<Self> {
        let op = dot.op();
        // A warp group of a partition has registers of its own.
        let shared = op.ancestor(|op| WarpSpecializeOp::cast(op).is_some()).is_none();
        if !shared || dot.use_c().is_some() || !is_zero(dot.c()) {
            return None;
        }
        let zero = splat_constant(dot.c())?;
        let result = dot.d().ty().as_tensor()?;
        let end = if dot.is_async() { waits_for(op)? } else { op };
        is_passed_on(end.result(0)).then_some(Self { dot, end, result, zero })
    }

    /// The parts in which `beyond` registers fewer are needed, or as many fewer as can be.
    fn parts(&self, beyond: u64) -> Option<Parts<'c, '_>> {
        let Ok(Encoding::NvidiaMma(mma)) = encoding(self.result.encoding()?) else { return None };
        let words = tensor_words(self.dot.d());
        let operands = [self.dot.a(), self.dot.b()];
        (0..2).find_map(|along| {
            let size = self.result.shape()[along].unsigned_abs();
            let most = size / (mma.instr_shape[along] * mma.warps_per_cta[along]);
            let counts =
                std::iter::successors(Some(2), |count| Some(count * 2)).take_while(|count| *count <= most);
            let enough = |count: &u64| words - words / count >= beyond;
            let count = counts.clone().find(enough).or(counts.last()).filter(|_| beyond > 0)?;
            let mut shape = self.result.shape().to_vec();
            shape[along] /= i64::try_from(count).ok()?;
            let whole = MemDescType::cast(operands[along].ty())?;
            let mut part = whole.shape();
            part[along] = shape[along];
            let buffer = part_of(whole, &part)?;
            let result = TensorType::new(&shape, self.result.element(), self.result.encoding())?;
            Some(Parts { of: self, along, count, buffer, result: result.ty() })
        })
    }
}

/// What waits for the asynchronous dot `op`, if that waits for nothing else and no other dot has begun by then.
fn waits_for(op: Op<'_>) -> Option<Op<'_>> {
    let mut uses = op.result(0).uses();
    let (user, _) = uses.next().filter(|_| uses.next().is_none())?;
    let wait = WarpGroupDotWaitOp::cast(user).filter(|wait| wait.pendings() == 0)?;
    let alone = wait.op().num_operands() == 1 && wait.op().block() == op.block();
    let mut between = std::iter::successors(op.next(), |op| op.next()).take_while(|op| *op != user);
    (alone && between.all(|op| WarpGroupDotOp::cast(op).is_none() && op.num_regions() == 0)).then_some(user)
}

/// Whether what is computed from `value` is computed element by element, in its block: a part of it is not needed once it has been used.
fn is_passed_on(value: Value<'_>) -> bool {
    let block = value.def_op().and_then(|op| op.block());
    let terminator = block.and_then(|block| block.terminator());
    let (mut seen, mut open) = (FastSet::default(), vec![value]);
    while let Some(next) = open.pop() {
        for (user, _) in next.uses() {
            let last = Some(user) == terminator && next != value;
            if !last && (user.block() != block || !is_element_by_element(user)) {
                return false;
            }
            if !last && seen.insert(user) {
                open.extend(user.results());
            }
        }
    }
    true
}

/// How a dot is taken apart.
struct Parts<'c, 'd> {
    of: &'d Dot<'c>,
    /// The dimension of the result that is cut: 0 for rows, of which the left operand has as many, 1 for columns.
    along: usize,
    count: u64,
    /// The types of a part of the operand and of the result.
    buffer: MemDescType<'c>,
    result: Type<'c>,
}

impl<'c> Parts<'c, '_> {
    /// Puts the first part where the dot was, and the others where it was waited for.
    fn apply(self, rewriter: &mut IrRewriter<'c>) -> PassResult {
        let (dot, end) = (self.of.dot.op(), self.of.end);
        rewriter.set_before(dot);
        let zeros = splat(rewriter, dot, self.result, self.of.zero)?;
        let size = self.buffer.shape()[self.along];
        let mut done = Vec::new();
        for part in 0..self.count {
            let start = i64::try_from(part).map(|part| part * size).and_then(i32::try_from);
            let start = start.map_err(|_| internal(dot, "a part of a buffer begins beyond all memory"))?;
            let mut offsets = vec![0; self.buffer.shape().len()];
            offsets[self.along] = start;
            let view = MemDescSubsliceOp::build(dot.loc(), dot.operand(self.along), offsets);
            let view = view.results(&[self.buffer.ty()]).insert(rewriter)?.result();
            let made = rewriter.clone_op(dot);
            made.set_operand(self.along, view);
            made.set_operand(2, zeros);
            made.result(0).set_type(self.result);
            let mut value = made.result(0);
            // What comes between the dot and its wait runs beside the first part.
            rewriter.set_before(end);
            if end != dot {
                let wait = WarpGroupDotWaitOp::build(end.loc(), &[value], 0.into());
                value = wait.results(&[self.result]).insert(rewriter)?.op().result(0);
            }
            done.push(value);
        }
        let whole = ConcatOp::build(end.loc(), &done).results(&[self.of.result.ty()]);
        let whole = whole.insert(rewriter)?.result();
        end.result(0).replace_all_uses_with(whole);
        if end != dot {
            end.erase();
        }
        dot.erase();
        Ok(())
    }
}
