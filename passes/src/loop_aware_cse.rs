//! `--triton-loop-aware-cse`: equal values that loops carry become one.
//!
//! Values that begin equal are assumed to stay equal, and the body is numbered
//! under this assumption; where the next iteration's values then differ, the
//! assumption is dropped, until nothing changes. What is left is true by
//! induction over iterations. The dead values that remain are removed by
//! `--canonicalize`. Common subexpressions are merged first, so that values
//! that begin equal are seen to.

use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, Op, Type, Value};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::upstream::ForOp;
use smallvec::SmallVec;

/// The pass.
pub static TRITON_LOOP_AWARE_CSE: PassDef = PassDef::new(
    "triton-loop-aware-cse",
    "Merge common subexpressions, and values carried by scf.for that are equal in every iteration",
    run,
);

fn run(root: Op<'_>, _: &Options) -> PassResult {
    // Each round but the last merges a value that a loop carries.
    loop {
        let mut known = Known::default();
        for region in root.regions() {
            for block in region.blocks() {
                known.merge_block(block);
            }
        }
        let mut merged = false;
        root.walk_post(&mut |op| {
            if ForOp::cast(op).is_some() {
                merged |= merge_carried(op);
            }
        });
        if !merged {
            return Ok(());
        }
    }
}

/// What a pure operation computes, from operands of type `V`.
#[derive(PartialEq, Eq, Hash)]
struct Expression<'c, V> {
    name: usize,
    operands: SmallVec<[V; 4]>,
    attrs: Vec<(&'c str, Attr<'c>)>,
    types: SmallVec<[Type<'c>; 1]>,
}

impl<'c, V> Expression<'c, V> {
    /// `None` for operations with effects, regions or without results.
    fn of(op: Op<'c>, operand: impl FnMut(Value<'c>) -> V) -> Option<Self> {
        if op.num_regions() > 0 || op.num_results() == 0 || !op.is_memory_effect_free() {
            return None;
        }
        Some(Self {
            name: op.name_id(),
            operands: op.operands().map(operand).collect(),
            attrs: op.attrs(),
            types: op.results().map(Value::ty).collect(),
        })
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

    fn merge_block(&mut self, block: Block<'c>) {
        self.scopes.push(FastMap::default());
        let mut next = block.first();
        while let Some(op) = next {
            next = op.next();
            if op.has_trait(mlir_host::traits::Upstream::IsolatedFromAbove) {
                let mut inner = Known::default();
                op.regions().flat_map(|region| region.blocks()).for_each(|block| inner.merge_block(block));
                continue;
            }
            op.regions().flat_map(|region| region.blocks()).for_each(|block| self.merge_block(block));
            let Some(expression) = Expression::of(op, |value| value) else { continue };
            if let Some(same) = self.find(&expression) {
                for (old, new) in op.results().zip(same.results()) {
                    old.replace_all_uses_with(new);
                }
                op.erase();
            } else if let Some(scope) = self.scopes.last_mut() {
                scope.insert(expression, op);
            }
        }
        self.scopes.pop();
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

/// Merges iter_args; returns whether there was something to merge.
fn merge_carried(op: Op<'_>) -> bool {
    let Some(block) = op.region(0).first_block() else { return false };
    let Some(last) = block.terminator() else { return false };
    let n = op.num_results();
    if block.num_args() != n + 1 || last.num_operands() != n {
        return false;
    }
    // Dead values that an earlier round left are no news.
    let dead = |i: usize| op.result(i).is_unused() && last.operand(i) == block.arg(i + 1);
    let mut class = classes((0..n).map(|i| (op.operand(3 + i), dead(i).then_some(i))));
    while count(&class) < n {
        let numbers = number(block, &class);
        let refined = classes((0..n).map(|i| (class[i], numbers[&last.operand(i)])));
        if refined == class {
            break;
        }
        class = refined;
    }
    if count(&class) == n {
        return false;
    }
    for i in 0..n {
        let Some(first) = class[..i].iter().position(|other| *other == class[i]) else { continue };
        let argument = block.arg(i + 1);
        argument.replace_all_uses_with(block.arg(first + 1));
        op.result(i).replace_all_uses_with(op.result(first));
        last.set_operand(i, argument);
    }
    true
}

/// Numbers the values that the body uses: equal numbers, equal values, if
/// arguments of one class are equal.
fn number<'c>(block: Block<'c>, class: &[usize]) -> FastMap<Value<'c>, usize> {
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
        let expression = Expression::of(op, |value| of(&mut numbers, &mut fresh, value));
        let Some(expression) = expression else {
            // Operands of terminators are looked up later.
            op.operands().for_each(|value| _ = of(&mut numbers, &mut fresh, value));
            continue;
        };
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
