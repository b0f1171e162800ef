//! Which dots depend on each other through elementwise operations.

use super::plan::Chain;
use crate::rules::{Rule, rule};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Op, Value};
use ttopt_dialect::tt::ops::DotOp;

/// The chains of all dots of a module.
pub struct Chains<'c> {
    of: FastMap<Op<'c>, Chain>,
}

/// Whether elements stay where they are.
fn passes_on(op: Op<'_>) -> bool {
    matches!(rule(op), Some(Rule::Same | Rule::Convert)) && op.num_operands() > 0
}

fn merge(into: &mut Chain, from: Chain) {
    into.left |= from.left;
    into.right |= from.right;
}

impl<'c> Chains<'c> {
    /// The chains among `ops`, which are in dominance order. Values carried
    /// around loops do not count: each iteration has its own dots.
    ///
    /// Dots whose results meet, element by element or as one's accumulator, have one chain: results in two layouts
    /// would have to be converted where they meet.
    pub fn new(ops: &[Op<'c>]) -> Self {
        let mut webs = Webs::default();
        // Which dot a value comes from.
        let mut from_dot: FastMap<Value<'c>, usize> = FastMap::default();
        let mut own: Vec<(Op<'c>, Chain)> = Vec::new();
        for &op in ops {
            if let Some(dot) = DotOp::cast(op) {
                let (left, right) = (from_dot.contains_key(&dot.a()), from_dot.contains_key(&dot.b()));
                let number = webs.add();
                own.push((op, Chain { left, right }));
                if let Some(before) = from_dot.get(&dot.c()) {
                    webs.join(*before, number);
                }
                from_dot.insert(dot.d(), number);
            } else if passes_on(op) {
                let mut sources = op.operands().filter_map(|value| from_dot.get(&value).copied());
                let Some(first) = sources.next() else { continue };
                sources.for_each(|other| webs.join(first, other));
                from_dot.extend(op.results().map(|result| (result, first)));
            }
        }
        let mut becomes: FastMap<Value<'c>, Chain> = FastMap::default();
        let mut last = own.len();
        for &op in ops.iter().rev() {
            if let Some(dot) = DotOp::cast(op) {
                last -= 1;
                if let Some(uses) = becomes.get(&dot.d()) {
                    merge(&mut own[last].1, *uses);
                }
                becomes.entry(dot.a()).or_default().left = true;
                becomes.entry(dot.b()).or_default().right = true;
            } else if passes_on(op) {
                let mut uses = Chain::default();
                op.results()
                    .filter_map(|result| becomes.get(&result))
                    .for_each(|more| merge(&mut uses, *more));
                if uses != Chain::default() {
                    op.operands().for_each(|value| merge(becomes.entry(value).or_default(), uses));
                }
            }
        }
        let mut of_web = vec![Chain::default(); own.len()];
        for (number, (_, chain)) in own.iter().enumerate() {
            merge(&mut of_web[webs.find(number)], *chain);
        }
        let of = own.iter().enumerate().map(|(number, (op, _))| (*op, of_web[webs.find(number)])).collect();
        Self { of }
    }

    /// The chain of a dot.
    pub fn of(&self, dot: Op<'c>) -> Chain {
        self.of.get(&dot).copied().unwrap_or_default()
    }
}

/// Disjoint sets of dots.
#[derive(Default)]
struct Webs {
    parents: Vec<usize>,
}

impl Webs {
    fn add(&mut self) -> usize {
        self.parents.push(self.parents.len());
        self.parents.len() - 1
    }

    fn find(&mut self, mut number: usize) -> usize {
        while self.parents[number] != number {
            self.parents[number] = self.parents[self.parents[number]];
            number = self.parents[number];
        }
        number
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.parents[one] = other;
    }
}
