//! Rematerializes computations whose values all uses want in one other layout.
//!
//! The planner decides for each use by itself, so it cannot see that a value that several uses want in the same other
//! layout need not be computed in its own layout at all: what the halves of a split number share, or both nibbles of a
//! byte. Here such computations are gathered backward from the values that are used elsewhere. The cheapest place to
//! convert is then found: at those values, at the values that the computation begins with, or in between.

use super::assign::Assignment;
use super::plan::{Planner, Request, can_be_copied, unconverted};
use super::regions::operations;
use super::said::Said;
use crate::choice::{self, Choice, Unit, short};
use crate::ir_util::layout_of;
use crate::machine::Layouts;
use crate::objective::weight;
use crate::rules::{Rule, backward, is_conversion, rule, wanted_or_equal};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Op, Value};
use ttopt_dialect::ttg::layout::equivalent;

#[cfg(test)]
mod tests;

/// A computation that could give its result in another layout.
struct Candidate<'c> {
    op: Op<'c>,
    to: Attr<'c>,
    /// Whether an operation that is no candidate uses the result.
    ends: bool,
    /// An earlier candidate of the same computation, or itself.
    parent: usize,
}

/// Candidates, users before what they use.
#[derive(Default)]
struct Candidates<'c> {
    list: Vec<Candidate<'c>>,
    of: FastMap<Op<'c>, usize>,
}

/// Savings below this, in cycles, are none.
const LEAST: f64 = 1e-3;

/// The values among what `ops`, in dominance order, compute for which another
/// layout than the assigned one leaves less to convert, and those layouts.
pub fn rematerialize<'c>(
    ops: &[Op<'c>],
    assignment: &Assignment<'c>,
    planner: &mut Planner<'_, 'c>,
    said: &Said<'c>,
) -> Vec<(Value<'c>, Attr<'c>)> {
    let layouts = planner.layouts();
    let mut candidates = Candidates::default();
    for &op in ops.iter().rev() {
        candidates.consider(op, assignment, layouts);
    }
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); candidates.list.len()];
    for i in 0..candidates.list.len() {
        parts[candidates.root(i)].push(i);
    }
    let mut moved = Vec::new();
    let mut wanting = FastMap::default();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let mut changes = said.asks().then(Vec::new);
        let best = candidates.best(part, assignment, planner, &mut wanting, changes.as_mut());
        let taken = best.unwrap_or(0);
        if let Some(changes) = changes.filter(|_| taken > 0) {
            let first = &candidates.list[part[0]];
            said.note(first.op, &told(first.to, &changes, taken));
        }
        let taken = part[..taken].iter().map(|i| &candidates.list[*i]);
        moved.extend(taken.flat_map(|candidate| tensors(candidate.op).map(|result| (result, candidate.to))));
    }
    moved
}

/// The choice to compute `taken` operations in layout `to`; `changes` has the cycles more for each number of them.
fn told(to: Attr<'_>, changes: &[f64], taken: usize) -> Choice {
    let candidate = |n: usize, cycles: f64| match n {
        0 => choice::Candidate::new("convert what the computation gives", Some(cycles)),
        n => {
            choice::Candidate::new(format!("rematerialize {} in {}", operations(n), short(to)), Some(cycles))
        }
    };
    let chosen = candidate(taken, changes.get(taken - 1).copied().unwrap_or(0.0));
    let others = std::iter::once(0.0).chain(changes.iter().copied()).enumerate().filter(|(n, _)| *n != taken);
    others.fold(Choice::new("where a computation is converted", Unit::More, chosen), |choice, (n, cycles)| {
        choice.instead(candidate(n, cycles))
    })
}

/// The results of `op` that have a layout: all the same one.
fn tensors<'c>(op: Op<'c>) -> impl Iterator<Item = Value<'c>> {
    op.results().filter(|result| layout_of(*result).is_some())
}

/// Uses of a value, also behind conversions of the input.
fn uses<'c>(value: Value<'c>, out: &mut Vec<(Op<'c>, usize)>) {
    for (user, i) in value.uses() {
        if is_conversion(user) {
            uses(user.result(0), out);
        } else {
            out.push((user, i));
        }
    }
}

/// The layout that a use wants its operand in, where that is not the one it has.
fn demand<'c>(
    user: Op<'c>,
    i: usize,
    operand: Value<'c>,
    assignment: &Assignment<'c>,
    layouts: &Layouts<'c>,
) -> Option<Attr<'c>> {
    let wanted = assignment.demand(user, i, layouts)?;
    let wanted = rule(user).map_or(wanted, |rule| wanted_or_equal(rule, operand, wanted));
    Some(wanted).filter(|wanted| layout_of(operand) != Some(*wanted))
}

impl<'c> Candidates<'c> {
    fn root(&mut self, mut i: usize) -> usize {
        while self.list[i].parent != i {
            self.list[i].parent = self.list[self.list[i].parent].parent;
            i = self.list[i].parent;
        }
        i
    }

    /// Notes `op` if all uses of its results want them in one other layout, which they can have.
    fn consider(&mut self, op: Op<'c>, assignment: &Assignment<'c>, layouts: &Layouts<'c>) {
        let moves = |rule: &Rule| can_be_copied(*rule) || *rule == Rule::Split;
        let Some(rule) = rule(op).filter(moves) else { return };
        if matches!(rule, Rule::Source | Rule::Memory) || op.num_regions() > 0 {
            return;
        }
        let Some(to) = self.common_demand(op, assignment, layouts) else { return };
        let operands = op.operands().enumerate().filter(|(_, operand)| layout_of(*operand).is_some());
        if !operands
            .map(|(i, _)| backward(op, rule, i, to, layouts))
            .all(|layout| matches!(layout, Ok(Some(_))))
        {
            return;
        }
        let (mut users, next) = (Vec::new(), self.list.len());
        tensors(op).for_each(|value| uses(value, &mut users));
        let ends = users.iter().any(|(user, _)| !self.of.contains_key(user));
        self.list.push(Candidate { op, to, ends, parent: next });
        self.of.insert(op, next);
        for (user, _) in users {
            if let Some(&user) = self.of.get(&user) {
                let root = self.root(user);
                let own = self.root(next);
                self.list[own.max(root)].parent = own.min(root);
            }
        }
    }

    /// The layout that all uses of results want, if it is not the one that they have.
    fn common_demand(
        &self,
        op: Op<'c>,
        assignment: &Assignment<'c>,
        layouts: &Layouts<'c>,
    ) -> Option<Attr<'c>> {
        let ty = tensors(op).next()?.ty().as_tensor()?;
        let mut common: Option<Attr<'c>> = None;
        for value in tensors(op) {
            if layout_of(value) != ty.encoding() || value.ty().as_tensor()?.shape() != ty.shape() {
                return None;
            }
            let mut users = Vec::new();
            uses(value, &mut users);
            for (user, i) in users {
                let rule = rule(user);
                let wanted = match (self.of.get(&user), rule) {
                    (Some(&user), Some(rule)) => {
                        backward(self.list[user].op, rule, i, self.list[user].to, layouts).ok()??
                    }
                    _ => assignment.demand(user, i, layouts)?,
                };
                let wanted = rule.map_or(wanted, |rule| wanted_or_equal(rule, value, wanted));
                if wanted == ty.encoding()? {
                    return None;
                }
                let first = *common.get_or_insert(wanted);
                if !equivalent(first, wanted, &ty.shape()) {
                    return None;
                }
            }
        }
        common.filter(|to| !ty.encoding().is_some_and(|have| equivalent(have, *to, &ty.shape())))
    }

    /// How many candidates of a part, from its ends on, are best in the other layout; `None` where one of the layouts
    /// that are compared cannot be had. `wanting` keeps for all parts how many uses want a value in a layout; `changes`, where
    /// they are wanted, are the cycles more for one candidate, two and so on.
    fn best(
        &self,
        part: &[usize],
        assignment: &Assignment<'c>,
        planner: &mut Planner<'_, 'c>,
        wanting: &mut FastMap<(Value<'c>, Attr<'c>), usize>,
        mut changes: Option<&mut Vec<f64>>,
    ) -> Option<usize> {
        let layouts = planner.layouts();
        // What has to be had in another layout at this point, and what that costs.
        let mut crossing: FastMap<(Value<'c>, Attr<'c>), f64> = FastMap::default();
        for candidate in part.iter().map(|i| &self.list[*i]).filter(|candidate| candidate.ends) {
            let used_elsewhere = |value: &Value<'c>| {
                let mut users = Vec::new();
                uses(*value, &mut users);
                users.iter().any(|(user, _)| !self.of.contains_key(user))
            };
            for value in tensors(candidate.op).filter(used_elsewhere) {
                let request = Request { value, layout: candidate.to, moves: true };
                crossing.insert((value, candidate.to), planner.plan(request).1?);
            }
        }
        // How many more uses want what has to be converted when nothing changes.
        let mut converted: FastMap<(Value<'c>, Attr<'c>), usize> = FastMap::default();
        let (mut change, mut best) = (0.0, (-LEAST, 0));
        for (n, candidate) in part.iter().map(|i| &self.list[*i]).enumerate() {
            let (op, to) = (candidate.op, candidate.to);
            let (had, rule) = (tensors(op).find_map(layout_of)?, rule(op)?);
            change -= tensors(op).filter_map(|value| crossing.remove(&(value, to))).sum::<f64>();
            let own = planner.moving(op, to)? - planner.moving(op, had)?;
            change += weight(op) * own;
            for (i, operand) in op.operands().enumerate().filter(|(_, operand)| layout_of(*operand).is_some())
            {
                let operand = unconverted(operand);
                if let Some(layout) = demand(op, i, operand, assignment, layouts) {
                    let count = || {
                        let mut users = Vec::new();
                        uses(operand, &mut users);
                        let same = |(user, i): &&(Op<'c>, usize)| {
                            demand(*user, *i, operand, assignment, layouts) == Some(layout)
                        };
                        users.iter().filter(same).count()
                    };
                    let key = (operand, layout);
                    let left =
                        converted.entry(key).or_insert_with(|| *wanting.entry(key).or_insert_with(count));
                    *left = left.saturating_sub(1);
                    if *left == 0 {
                        change -= planner.plan(Request { value: operand, layout, moves: true }).1?;
                    }
                }
                let wanted = backward(op, rule, i, to, layouts).ok()??;
                let wanted = wanted_or_equal(rule, operand, wanted);
                if layout_of(operand) == Some(wanted) || crossing.contains_key(&(operand, wanted)) {
                    continue;
                }
                let moves = operand.def_op().is_some_and(|op| self.of.contains_key(&op));
                let cost = planner.plan(Request { value: operand, layout: wanted, moves }).1?;
                crossing.insert((operand, wanted), cost);
                change += cost;
            }
            if let Some(changes) = changes.as_deref_mut() {
                changes.push(change);
            }
            if change < best.0 {
                best = (change, n + 1);
            }
        }
        Some(best.1)
    }
}
