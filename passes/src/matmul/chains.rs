//! Which dots depend on each other through elementwise operations.

use super::plan::Chain;
use crate::rules::{Rule, rule};
use mlir_host::hash::{FastMap, FastSet};
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

impl<'c> Chains<'c> {
    /// The chains among `ops`, which are in dominance order. Values carried
    /// around loops do not count: each iteration has its own dots.
    pub fn new(ops: &[Op<'c>]) -> Self {
        let mut of: FastMap<Op<'c>, Chain> = FastMap::default();
        let mut from_dot: FastSet<Value<'c>> = FastSet::default();
        for &op in ops {
            if let Some(dot) = DotOp::cast(op) {
                let chain = of.entry(op).or_default();
                chain.left |= from_dot.contains(&dot.a());
                chain.right |= from_dot.contains(&dot.b());
                from_dot.insert(dot.d());
            } else if passes_on(op) && op.operands().any(|value| from_dot.contains(&value)) {
                from_dot.extend(op.results());
            }
        }
        let mut becomes: FastMap<Value<'c>, Chain> = FastMap::default();
        let merge = |into: &mut Chain, from: Chain| {
            into.left |= from.left;
            into.right |= from.right;
        };
        for &op in ops.iter().rev() {
            if let Some(dot) = DotOp::cast(op) {
                if let Some(uses) = becomes.get(&dot.d()) {
                    merge(of.entry(op).or_default(), *uses);
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
        Self { of }
    }

    /// The chain of a dot.
    pub fn of(&self, dot: Op<'c>) -> Chain {
        self.of.get(&dot).copied().unwrap_or_default()
    }
}
