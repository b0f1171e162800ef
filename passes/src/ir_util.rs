//! Small helpers on the IR that several passes need.

use crate::machine::{error, internal};
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
pub use mlir_host::flow::{for_each_edge, incoming, is_loop};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Block, Loc, Op, Region, TensorType, Type, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::rewrite::{IrRewriter, Rewriter, create, new_region};
use mlir_host::upstream::{ConstantOp, ForOp, WhileOp};
use smallvec::SmallVec;
use std::collections::HashSet;
use ttopt_dialect::interfaces::{Dot, MmaV5};
use ttopt_dialect::tt::ops::{
    AssertOp, AtomicRmwOp, DescriptorGatherOp, DescriptorLoadOp, DescriptorReduceOp, DescriptorScatterOp,
    DescriptorStoreOp, FuncOp, GetNumProgramsOp, GetProgramIdOp, LoadOp, MakeTensorDescOp, PrintOp, StoreOp,
};
use ttopt_dialect::ttg::ops::{ConvertLayoutOp, LocalAllocOp, is_memdesc_view};
use ttopt_dialect::ttg::types::MemDescType;

/// Whether a function is called in its module only; others are kernels.
pub fn is_private(function: Op<'_>) -> bool {
    function.attr("sym_visibility").and_then(Attr::as_str) == Some("private")
}

/// The blocks of a region, each after those that dominate it; blocks that
/// nothing reaches come last.
pub fn blocks_in_dominance_order(region: Region<'_>) -> Vec<Block<'_>> {
    let all: Vec<Block<'_>> = region.blocks().collect();
    if all.len() < 2 {
        return all;
    }
    let mut seen = HashSet::new();
    let mut post = Vec::new();
    // Blocks being visited, with the successors not yet followed.
    let mut stack: Vec<(Block<'_>, Vec<Block<'_>>)> = Vec::new();
    fn follow(block: Block<'_>) -> Vec<Block<'_>> {
        block.terminator().map_or(Vec::new(), |op| op.successors().collect())
    }
    seen.insert(all[0]);
    stack.push((all[0], follow(all[0])));
    while let Some((block, next)) = stack.last_mut() {
        match next.pop() {
            Some(target) if seen.insert(target) => stack.push((target, follow(target))),
            Some(_) => {}
            None => {
                post.push(*block);
                stack.pop();
            }
        }
    }
    post.reverse();
    post.extend(all.into_iter().filter(|block| !seen.contains(block)));
    post
}

/// All operations below `op`, definitions before uses, outer before inner.
pub fn operations_in_dominance_order(op: Op<'_>) -> Vec<Op<'_>> {
    fn visit<'c>(op: Op<'c>, out: &mut Vec<Op<'c>>) {
        for region in op.regions() {
            for block in blocks_in_dominance_order(region) {
                for op in block.ops() {
                    out.push(op);
                    visit(op, out);
                }
            }
        }
    }
    let mut out = Vec::new();
    visit(op, &mut out);
    out
}

/// The function around `op`.
pub fn enclosing_function(op: Op<'_>) -> Option<Op<'_>> {
    op.ancestor(|outer| FuncOp::cast(outer).is_some())
}

/// The layout of a tensor value.
pub fn layout_of(value: Value<'_>) -> Option<Attr<'_>> {
    value.ty().as_tensor()?.encoding()
}

/// The tensor type with another layout.
pub fn with_layout<'c>(ty: TensorType<'c>, layout: Attr<'c>) -> Option<Type<'c>> {
    ty.with_encoding(Some(layout)).map(TensorType::ty)
}

/// Gives a value another layout; values that are no tensors stay as they are.
pub fn set_layout<'c>(value: Value<'c>, layout: Attr<'c>) {
    if let Some(ty) = value.ty().as_tensor().and_then(|ty| with_layout(ty, layout)) {
        value.set_type(ty);
    }
}

/// Sets the layout of all results, and of the value of a constant.
///
/// # Errors
/// When a constant's elements cannot take the type.
pub fn set_result_layout<'c>(op: Op<'c>, layout: Attr<'c>) -> Result<(), Reported> {
    for result in op.results() {
        set_layout(result, layout);
    }
    if ConstantOp::cast(op).is_some() {
        retype_constant(op)?;
    }
    Ok(())
}

/// Makes the value of a constant agree with its type.
fn retype_constant(op: Op<'_>) -> Result<(), Reported> {
    let ty = op.result(0).ty();
    let Some(elements) = op.attr("value").and_then(Attr::as_elements) else { return Ok(()) };
    let value = elements.splat_to(ty).or_else(|| elements.reshape_to(ty));
    op.set_attr(
        "value",
        value.ok_or_else(|| error(op, "the elements of the constant cannot take a layout"))?,
    );
    Ok(())
}

/// `value` in another layout, by an operation before `op`.
///
/// # Errors
/// When the operation cannot be made.
pub fn convert_before<'c>(
    rewriter: &mut Rewriter<'c>,
    op: Op<'c>,
    value: Value<'c>,
    layout: Attr<'c>,
) -> Result<Value<'c>, Reported> {
    let Some(ty) = value.ty().as_tensor() else { return Ok(value) };
    if ty.encoding() == Some(layout) {
        return Ok(value);
    }
    let ty =
        with_layout(ty, layout).ok_or_else(|| error(op, format!("no tensor type with layout {layout}")))?;
    rewriter.set_before(op);
    Ok(ConvertLayoutOp::build(op.loc(), value).results(&[ty]).insert(rewriter)?.result())
}

/// Converts operand `number` of `op`, if it is a tensor, to a layout.
///
/// # Errors
/// As [`convert_before`].
pub fn convert_operand<'c>(
    rewriter: &mut Rewriter<'c>,
    op: Op<'c>,
    number: usize,
    layout: Attr<'c>,
) -> Result<(), Reported> {
    let value = op.operand(number);
    let converted = convert_before(rewriter, op, value, layout)?;
    if converted != value {
        op.set_operand(number, converted);
    }
    Ok(())
}

/// The one integer that all elements of a constant are.
pub fn constant(value: Value<'_>) -> Option<i64> {
    ConstantOp::defining(value)?.int()
}

/// The predicate of `arith.cmpi`, as it is numbered, by which an `scf.for`
/// compares its induction variable with its upper bound.
pub fn loop_predicate(op: Op<'_>) -> i64 {
    // slt is 2, ult is 6.
    if op.attr("unsignedCmp").is_some() { cmpi::ULT } else { cmpi::SLT }
}

/// How often an `scf.for` runs, where bounds and step are constants.
pub fn trip_count(op: Op<'_>) -> Option<u64> {
    let bits = op.operand(0).ty().int_bits().unwrap_or(64);
    let unsigned = loop_predicate(op) == cmpi::ULT;
    let bound = |i: usize| {
        let value = i128::from(constant(op.operand(i))?);
        Some(if unsigned { value & ((1i128 << bits) - 1) } else { value })
    };
    let (from, to, step) = (bound(0)?, bound(1)?, i128::from(constant(op.operand(2))?));
    if step <= 0 {
        return None;
    }
    u64::try_from(((to - from).max(0) + step - 1) / step).ok()
}

/// How many programs a multiprocessor has, where `op` is a loop over tiles that goes from the number of the program in steps of
/// the number of programs: as many are launched as run at once. `None` for other operations.
pub fn programs_of_tiles(op: Op<'_>, target: &TargetDesc) -> Option<u64> {
    let tiles = ForOp::cast(op)?;
    if takes_turns(tiles) {
        return Some(1);
    }
    GetProgramIdOp::defining(tiles.lower())?;
    let step = tiles.step();
    // A step of one is no step over the tiles of other programs.
    let programs = constant(step).filter(|step| *step > 1)? as f64;
    Some((programs / target.cost.multiprocessors).ceil() as u64)
}

/// Whether a loop goes from the number of the program in steps of the number of programs.
pub fn takes_turns(tiles: ForOp<'_>) -> bool {
    GetProgramIdOp::defining(tiles.lower()).is_some() && GetNumProgramsOp::defining(tiles.step()).is_some()
}

/// Makes arithmetic on integers of one type, where the rewriter is.
pub struct Scalars<'a, 'c> {
    /// Where.
    pub rewriter: &'a mut Rewriter<'c>,
    /// What it is for.
    pub loc: Loc<'c>,
    /// The type.
    pub ty: Type<'c>,
}

impl<'c> Scalars<'_, 'c> {
    /// An operation of `arith` or `math` without attributes.
    ///
    /// # Errors
    /// When it cannot be made; it is reported. So it is below.
    pub fn op(&mut self, name: &str, operands: &[Value<'c>]) -> Result<Value<'c>, Reported> {
        Ok(self.rewriter.generic(name, self.loc, operands, &[self.ty], &[])?.result(0))
    }

    /// A constant.
    ///
    /// # Errors
    /// As above.
    pub fn number(&mut self, value: i64) -> Result<Value<'c>, Reported> {
        let attrs = [("value", Attr::int_of(self.ty, value))];
        Ok(self.rewriter.generic("arith.constant", self.loc, &[], &[self.ty], &attrs)?.result(0))
    }

    /// `value * n`, folded where `value` is a constant.
    ///
    /// # Errors
    /// As above.
    pub fn times(&mut self, value: Value<'c>, n: i64) -> Result<Value<'c>, Reported> {
        match constant(value).and_then(|value| value.checked_mul(n)) {
            _ if n == 1 => Ok(value),
            Some(product) => self.number(product),
            None => {
                let n = self.number(n)?;
                self.op("arith.muli", &[value, n])
            }
        }
    }
}

/// Makes an operation of one result, without attributes, before `at`.
///
/// # Errors
/// When it cannot be made; it is reported.
pub fn emit<'c>(
    at: Op<'c>,
    name: &str,
    operands: &[Value<'c>],
    result: Type<'c>,
) -> Result<Value<'c>, Reported> {
    let made = create(name, at.loc(), operands, &[result], &[], &[])?;
    made.move_before(at);
    Ok(made.result(0))
}

/// Compares two integers by a predicate of `arith.cmpi` ([`cmpi`]).
///
/// # Errors
/// When the operation cannot be made; it is reported.
pub fn compare<'c>(
    rewriter: &mut Rewriter<'c>,
    loc: Loc<'c>,
    predicate: i64,
    a: Value<'c>,
    b: Value<'c>,
) -> Result<Value<'c>, Reported> {
    let ctx = rewriter.context();
    let attrs = [("predicate", Attr::int(ctx, 64, predicate))];
    Ok(rewriter.generic("arith.cmpi", loc, &[a, b], &[Type::int(ctx, 1)], &attrs)?.result(0))
}

/// Predicates of `arith.cmpi`.
pub mod cmpi {
    /// Less, of signed numbers.
    pub const SLT: i64 = 2;
    /// Not greater, of signed numbers.
    pub const SLE: i64 = 3;
    /// Greater, of signed numbers.
    pub const SGT: i64 = 4;
    /// Not less, of signed numbers.
    pub const SGE: i64 = 5;
    /// Less, of unsigned numbers.
    pub const ULT: i64 = 6;
    /// Not greater, of unsigned numbers.
    pub const ULE: i64 = 7;
    /// Greater, of unsigned numbers.
    pub const UGT: i64 = 8;
    /// Not less, of unsigned numbers.
    pub const UGE: i64 = 9;

    /// Whether the predicate holds of `a` and `b`; unsigned ones of numbers that are not negative.
    pub fn holds(predicate: i64, a: i64, b: i64) -> bool {
        match predicate {
            0 => a == b,
            1 => a != b,
            2 | 6 => a < b,
            3 | 7 => a <= b,
            4 | 8 => a > b,
            _ => a >= b,
        }
    }
}

/// The operands of `op` and of what is in it, each as often as it is one.
pub fn operands_within(op: Op<'_>) -> Vec<Value<'_>> {
    let mut all = Vec::new();
    op.walk(&mut |nested| {
        all.extend(nested.operands());
        Walk::Advance
    });
    all
}

/// Replaces operands of `op`, and of what is in it.
pub fn substitute<'c>(op: Op<'c>, map: &FastMap<Value<'c>, Value<'c>>) {
    op.walk_post(&mut |nested| {
        for (i, operand) in nested.operands().enumerate() {
            if let Some(new) = map.get(&operand) {
                nested.set_operand(i, *new);
            }
        }
    });
}

/// `value`, computed again where the rewriter is, with what it needs of operations that are `again`; `known` has what values are
/// there already, and gets those that are made.
///
/// # Errors
/// When an operation cannot be made; it is reported.
pub fn compute_again<'c>(
    rewriter: &mut IrRewriter<'c>,
    value: Value<'c>,
    known: &mut FastMap<Value<'c>, Value<'c>>,
    again: &impl Fn(Op<'c>) -> bool,
) -> Result<Value<'c>, Reported> {
    if let Some(known) = known.get(&value) {
        return Ok(*known);
    }
    let Some(op) = value.def_op().filter(|op| again(*op)) else { return Ok(value) };
    for value in operands_within(op) {
        let new = compute_again(rewriter, value, known, again)?;
        known.insert(value, new);
    }
    let made = rewriter.clone_op(op);
    substitute(made, known);
    known.extend(op.results().zip(made.results()));
    known.get(&value).copied().ok_or_else(|| internal(op, "lost a result"))
}

/// The value of all elements of a constant tensor.
pub fn splat_constant(value: Value<'_>) -> Option<Attr<'_>> {
    ConstantOp::defining(value)?.value()?.as_elements()?.splat_value()
}

/// What allocates the buffer that `value` is, or is a view of; `None` where it is no buffer.
pub fn allocation(value: Value<'_>) -> Option<Op<'_>> {
    MemDescType::cast(value.ty())?;
    viewed(value).def_op()
}

/// The buffer that `value` is a view of, or is itself.
pub fn viewed(mut value: Value<'_>) -> Value<'_> {
    while let Some(view) = value.def_op().filter(|op| is_memdesc_view(*op)) {
        value = view.operand(0);
    }
    value
}

/// Whether any of `values` is, or is computed from, a value that is `found`. `before` says what an argument of a block is looked for in.
pub fn depend_on<'c>(
    values: impl IntoIterator<Item = Value<'c>>,
    found: &dyn Fn(Value<'c>) -> bool,
    before: &dyn Fn(Value<'c>) -> Option<Value<'c>>,
) -> bool {
    let mut open: Vec<Value<'c>> = values.into_iter().collect();
    let mut seen: FastSet<Value<'c>> = open.iter().copied().collect();
    while let Some(value) = open.pop() {
        if found(value) {
            return true;
        }
        let from: SmallVec<[Value<'c>; 4]> =
            value.def_op().map_or_else(|| before(value).into_iter().collect(), |op| op.operands().collect());
        open.extend(from.into_iter().filter(|value| seen.insert(*value)));
    }
    false
}

/// Whether `value` comes from outside of `block`, the body of a loop.
pub fn is_outside<'c>(value: Value<'c>, block: Block<'c>) -> bool {
    value.arg_block() != Some(block) && value.def_op().is_none_or(|op| op.block() != Some(block))
}

/// The operation of `block` that is `op`, or has it in its regions.
pub fn in_block<'c>(op: Op<'c>, block: Block<'c>) -> Option<Op<'c>> {
    std::iter::successors(Some(op), |op| op.parent()).find(|op| op.block() == Some(block))
}

/// Structured control flow like `op` in front of it, with other operands and results, which took its regions.
///
/// # Errors
/// When it cannot be made; it is reported.
pub fn remake<'c>(op: Op<'c>, operands: &[Value<'c>], results: &[Type<'c>]) -> Result<Op<'c>, Reported> {
    let mut attrs = op.discardable_attrs();
    attrs.extend(op.attr("unsignedCmp").map(|attr| ("unsignedCmp", attr)));
    let regions: SmallVec<[_; 2]> = op.regions().map(|_| new_region()).collect();
    let made = create(op.name(), op.loc(), operands, results, &attrs, &regions)?;
    made.move_before(op);
    for (new, old) in made.regions().zip(op.regions()) {
        new.take_body(old);
    }
    Ok(made)
}

/// Whether `op` is a dot whose result threads hold in registers.
pub fn is_dot(op: Op<'_>) -> bool {
    op.interface::<Dot>().is_some() && op.interface::<MmaV5>().is_none()
}

/// Whether `op` is a dot, or has one inside.
pub fn multiplies(op: Op<'_>) -> bool {
    op.walk(&mut |inner| if is_dot(inner) { Walk::Stop } else { Walk::Advance }) == Walk::Stop
}

/// Whether `op` fills a new buffer in shared memory, which nothing writes afterwards.
pub fn fills_constant_buffer(op: Op<'_>) -> bool {
    LocalAllocOp::cast(op).is_some_and(|alloc| {
        alloc.src().is_some() && MemDescType::cast(alloc.result().ty()).is_some_and(|ty| !ty.mutable())
    })
}

/// The loops around `op`, from within.
pub fn loops_around(op: Op<'_>) -> impl Iterator<Item = Op<'_>> {
    std::iter::successors(op.ancestor(is_loop), |around| around.ancestor(is_loop))
}

/// Whether `op` cannot let programs know of each other's order.
pub fn is_alone(op: Op<'_>) -> bool {
    if WhileOp::cast(op).is_some() {
        return false;
    }
    if let Some(load) = LoadOp::cast(op) {
        return !load.is_volatile();
    }
    if AtomicRmwOp::cast(op).is_some() {
        return op.results().all(Value::is_unused);
    }
    let accesses = is_one_of!(
        op,
        StoreOp
            | MakeTensorDescOp
            | DescriptorLoadOp
            | DescriptorGatherOp
            | DescriptorStoreOp
            | DescriptorScatterOp
            | DescriptorReduceOp
            | PrintOp
            | AssertOp
    );
    accesses || is_quiet(op)
}

/// Whether `op` itself does nothing to memory: control flow, whatever is in it, or arithmetic.
pub fn is_quiet(op: Op<'_>) -> bool {
    op.num_regions() > 0 || op.is_memory_effect_free() || op.next().is_none()
}
