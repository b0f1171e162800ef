//! `--triton-loop-aware-cse`: equal values that loops carry become one.
//!
//! Values that begin equal are assumed to stay equal, and the body is numbered
//! under this assumption; where the next iteration's values then differ, the
//! assumption is dropped, until nothing changes. What is left is true by
//! induction over iterations. The dead values that remain are removed by
//! `--canonicalize`. Common subexpressions are merged first, so that values
//! that begin equal are seen to.
//!
//! Layouts may be spelled in two ways: accumulators of one matrix instruction can be what the next one takes as operand. What takes
//! some work and was computed in both spellings becomes one value, and the other a conversion of it that moves nothing.
//! A few additions for an address or a mask are left: the layout engine would make them again.

use crate::rules::{Rule, is_cheap, is_conversion, rule};
use linear_layout::LinearLayout;
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, Op, Type, Value};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::IrRewriter;
use mlir_host::upstream::{ConstantOp, ForOp};
use smallvec::SmallVec;
use std::sync::Arc;
use ttopt_dialect::ttg::layout::to_linear_layout;

/// The pass.
pub static TRITON_LOOP_AWARE_CSE: PassDef = PassDef::new(
    "triton-loop-aware-cse",
    "Merge common subexpressions, and values carried by scf.for that are equal in every iteration",
    run,
);

fn run(root: Op<'_>, _: &Options) -> PassResult {
    let mut merge = Merge { kinds: Kinds::default(), rewriter: IrRewriter::new(root.context()) };
    // Each round but the last merges a value that a loop carries.
    loop {
        let mut known = Known::default();
        for region in root.regions() {
            for block in region.blocks() {
                merge.block(block, &mut known)?;
            }
        }
        let mut loops = Vec::new();
        root.walk_post(&mut |op| loops.extend(ForOp::cast(op).map(|_| op)));
        let mut merged = false;
        for op in loops {
            merged |= merge.carried(op)?;
        }
        if !merged {
            return Ok(());
        }
    }
}

/// A tensor's element and shape, and where each element is.
type Placed<'c> = (Type<'c>, SmallVec<[i64; 4]>, Arc<LinearLayout>);

/// Operations in a row from which on what was computed in two spellings is computed once.
const WORTH_A_CONVERSION: u32 = 8;

/// Which types and values are the same but for the spelling of layouts.
#[derive(Default)]
struct Kinds<'c> {
    /// Numbers of types: tensors in layouts that have each element in the same place have the same number.
    of_type: FastMap<Type<'c>, usize>,
    of_tensor: FastMap<Placed<'c>, usize>,
    /// Values that are computed again in another spelling, and what they are.
    again: FastMap<Value<'c>, Value<'c>>,
    /// Operations that computing these again takes.
    work: FastMap<Value<'c>, u32>,
}

impl<'c> Kinds<'c> {
    fn of(&mut self, ty: Type<'c>) -> usize {
        if let Some(kind) = self.of_type.get(&ty) {
            return *kind;
        }
        let next = self.of_type.len();
        let tensor = ty.as_tensor().and_then(|tensor| {
            let shape = tensor.shape();
            let layout = to_linear_layout(tensor.encoding()?, &shape).ok()?;
            Some((tensor.element(), shape, layout))
        });
        let kind = tensor.map_or(next, |tensor| *self.of_tensor.entry(tensor).or_insert(next));
        self.of_type.insert(ty, kind);
        kind
    }

    /// What `value` is but for the spelling of its layout.
    fn spelled(&mut self, mut value: Value<'c>) -> Value<'c> {
        loop {
            let conversion = value.def_op().filter(|op| is_conversion(*op) && self.moves_nothing(*op));
            match (conversion, self.again.get(&value)) {
                (Some(conversion), _) => value = conversion.operand(0),
                (None, Some(same)) => value = *same,
                (None, None) => return value,
            }
        }
    }

    /// Operations that computing `op` takes in a spelling in which its operands are computed again.
    fn work(&self, op: Op<'c>) -> u32 {
        let own = match rule(op) {
            Some(Rule::Source | Rule::Broadcast | Rule::ExpandDims(_) | Rule::Trans | Rule::Reshape) => 0,
            _ if is_cheap(op) => 1,
            _ => WORTH_A_CONVERSION,
        };
        let before = op.operands().filter_map(|value| self.work.get(&value));
        before.fold(own, |sum, work| sum.saturating_add(*work))
    }

    /// Forgets the results of an operation that goes.
    fn forget(&mut self, op: Op<'c>) {
        for result in op.results() {
            self.again.remove(&result);
            self.work.remove(&result);
        }
    }

    fn moves_nothing(&mut self, conversion: Op<'c>) -> bool {
        self.of(conversion.operand(0).ty()) == self.of(conversion.result(0).ty())
    }
}

/// What a pure operation computes, from operands of type `V`.
#[derive(PartialEq, Eq, Hash)]
struct Expression<'c, V> {
    name: usize,
    operands: SmallVec<[V; 4]>,
    attrs: Vec<(&'c str, Attr<'c>)>,
    kinds: SmallVec<[usize; 1]>,
}

impl<'c, V> Expression<'c, V> {
    /// `None` for operations with effects, regions or without results.
    fn of(op: Op<'c>, kinds: &mut Kinds<'c>, operands: SmallVec<[V; 4]>) -> Option<Self> {
        if op.num_regions() > 0 || op.num_results() == 0 || !op.is_memory_effect_free() {
            return None;
        }
        // The value of a constant has a type, and with it a spelling.
        let splat = ConstantOp::cast(op).and_then(ConstantOp::value);
        let splat = splat.and_then(|value| value.as_elements()?.splat_value());
        let attrs = splat.map_or_else(|| op.attrs(), |value| vec![("value", value)]);
        let kinds = op.results().map(|result| kinds.of(result.ty())).collect();
        Some(Self { name: op.name_id(), operands, attrs, kinds })
    }
}

/// Expressions that were computed before, in this block or around it.
#[derive(Default)]
struct Known<'c> {
    scopes: Vec<FastMap<Expression<'c, Value<'c>>, Op<'c>>>,
}

impl<'c> Known<'c> {
    fn find(&self, expression: &Expression<'c, Value<'c>>) -> Option<Op<'c>> {
        self.scopes.iter().rev().find_map(|scope| scope.get(expression).copied())
    }
}

struct Merge<'c> {
    kinds: Kinds<'c>,
    rewriter: IrRewriter<'c>,
}

impl<'c> Merge<'c> {
    /// Merges what a block and those within it compute that is `known`.
    fn block(&mut self, block: Block<'c>, known: &mut Known<'c>) -> PassResult {
        known.scopes.push(FastMap::default());
        let mut next = block.first();
        while let Some(op) = next {
            next = op.next();
            let isolated = op.has_trait(mlir_host::traits::Upstream::IsolatedFromAbove);
            let mut inner = Known::default();
            for block in op.regions().flat_map(|region| region.blocks()) {
                self.block(block, if isolated { &mut inner } else { known })?;
            }
            let operands = op.operands().map(|value| self.kinds.spelled(value)).collect();
            let Some(expression) = Expression::of(op, &mut self.kinds, operands) else { continue };
            // What it was in an earlier round may be gone.
            op.results().for_each(|result| _ = self.kinds.again.remove(&result));
            if let Some(same) = known.find(&expression) {
                let spelled_alike = op.results().zip(same.results()).all(|(old, new)| old.ty() == new.ty());
                let work = self.kinds.work(op);
                if !spelled_alike && work < WORTH_A_CONVERSION {
                    self.kinds.again.extend(op.results().zip(same.results()));
                    self.kinds.work.extend(op.results().map(|result| (result, work)));
                    continue;
                }
                self.rewriter.set_before(op);
                for (old, new) in op.results().zip(same.results()) {
                    let new = self.as_type(new, old.ty())?;
                    old.replace_all_uses_with(new);
                    if !spelled_alike {
                        self.kinds.work.insert(new, WORTH_A_CONVERSION);
                    }
                }
                self.kinds.forget(op);
                op.erase();
            } else if let Some(scope) = known.scopes.last_mut() {
                scope.insert(expression, op);
            }
        }
        known.scopes.pop();
        Ok(())
    }

    /// `value` as a value of type `ty`, which has each element where that of `value` has it.
    fn as_type(&mut self, value: Value<'c>, ty: Type<'c>) -> Result<Value<'c>, Reported> {
        if value.ty() == ty {
            return Ok(value);
        }
        Ok(self.rewriter.generic("ttg.convert_layout", value.loc(), &[value], &[ty], &[])?.result(0))
    }

    /// Merges iter_args; returns whether there was something to merge.
    fn carried(&mut self, op: Op<'c>) -> Result<bool, Reported> {
        let Some(block) = op.region(0).first_block() else { return Ok(false) };
        let Some(last) = block.terminator() else { return Ok(false) };
        let n = op.num_results();
        if block.num_args() != n + 1 || last.num_operands() != n {
            return Ok(false);
        }
        // Dead values that an earlier round left are no news.
        let dead = |i: usize| op.result(i).is_unused() && last.operand(i) == block.arg(i + 1);
        let mut class = classes((0..n).map(|i| {
            let first = op.operand(3 + i);
            (self.kinds.spelled(first), self.kinds.of(first.ty()), dead(i).then_some(i))
        }));
        while count(&class) < n {
            let numbers = number(block, &class, &mut self.kinds);
            let refined = classes((0..n).map(|i| (class[i], numbers[&self.kinds.spelled(last.operand(i))])));
            if refined == class {
                break;
            }
            class = refined;
        }
        if count(&class) == n {
            return Ok(false);
        }
        let mut merged = false;
        for i in 0..n {
            let Some(first) = class[..i].iter().position(|other| *other == class[i]) else { continue };
            let (argument, same) = (block.arg(i + 1), block.arg(first + 1));
            if argument.ty() != same.ty() {
                merged |= self.kinds.again.insert(argument, same).is_none();
                self.kinds.again.insert(op.result(i), op.result(first));
                continue;
            }
            argument.replace_all_uses_with(same);
            op.result(i).replace_all_uses_with(op.result(first));
            last.set_operand(i, argument);
            merged = true;
        }
        Ok(merged)
    }
}

/// The class of each iter_arg of the loop, classes being numbered in
/// the order of their first members.
fn classes<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> Vec<usize> {
    let mut numbers = FastMap::default();
    keys.map(|key| {
        let next = numbers.len();
        *numbers.entry(key).or_insert(next)
    })
    .collect()
}

fn count(classes: &[usize]) -> usize {
    classes.iter().max().map_or(0, |last| last + 1)
}

/// Numbers the values that the body uses: equal numbers, equal values, if
/// arguments of one class are equal.
fn number<'c>(block: Block<'c>, class: &[usize], kinds: &mut Kinds<'c>) -> FastMap<Value<'c>, usize> {
    let mut numbers: FastMap<Value<'c>, usize> = block.args().skip(1).zip(class.iter().copied()).collect();
    let mut fresh = count(class);
    let mut seen: FastMap<Expression<'c, usize>, Op<'c>> = FastMap::default();
    fn of<'c>(numbers: &mut FastMap<Value<'c>, usize>, fresh: &mut usize, value: Value<'c>) -> usize {
        *numbers.entry(value).or_insert_with(|| {
            *fresh += 1;
            *fresh
        })
    }
    for op in block.ops() {
        // Operands of terminators are looked up later.
        let spelled = op.operands().map(|value| kinds.spelled(value)).collect::<SmallVec<[_; 4]>>();
        let operands = spelled.into_iter().map(|value| of(&mut numbers, &mut fresh, value)).collect();
        let Some(expression) = Expression::of(op, kinds, operands) else { continue };
        match seen.get(&expression) {
            Some(same) => {
                for (value, known) in op.results().zip(same.results()) {
                    let known = of(&mut numbers, &mut fresh, known);
                    numbers.insert(value, known);
                }
            }
            None => {
                op.results().for_each(|value| _ = of(&mut numbers, &mut fresh, value));
                seen.insert(expression, op);
            }
        }
    }
    numbers
}
