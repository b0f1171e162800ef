//! Results of reductions in layouts of their own.
//!
//! Lanes that combine many lines share them among themselves, so that each is left with a part of the results, which then has to reach
//! all lanes that want it. What is computed from the results alone need not be computed by each of these: it is tried in the layout in
//! which lanes are left with them. And a conversion that nothing else comes between is one with the reduction
//! (`tritongpu-fuse-reduce-conversions`).

use super::Regions;
use crate::ir_util::layout_of;
use crate::objective::weight;
use crate::optimize_thread_locality::is_added_up;
use crate::plans;
use crate::rules::Rule;
use linear_layout::Encoding;
use linear_layout::encoding::Linear;
use mlir_host::hash::FastSet;
use mlir_host::ir::{Attr, Op, Value};
use ttopt_dialect::tt::ops::ReduceOp;
use ttopt_dialect::ttg::attrs::sliced_parent;
use ttopt_dialect::ttg::layout::to_linear_layout;

/// A conversion of what a reduction gives: the reduction, the layout of its result, and that which is wanted.
pub(super) type Given<'c> = (Op<'c>, Attr<'c>, Attr<'c>);

impl<'c> Regions<'_, '_, 'c> {
    /// Users of reductions, each with the layout that it has where the results stay in the lanes that combined them.
    pub(super) fn with_shared_results(&self) -> Vec<(usize, Attr<'c>)> {
        let (mut all, mut seen) = (Vec::new(), FastSet::default());
        for member in &self.members {
            let Rule::Reduce(axis) = member.rule else { continue };
            let [value] = member.values[..] else { continue };
            if is_added_up(member.op) {
                continue;
            }
            let Some(layout) = self.shared_result(member.op, axis, value) else { continue };
            for of in self.uses.get(&value).into_iter().flatten() {
                let user = self.users.get(&(of.user, of.number));
                let follows = user.and_then(|user| Some((*user, self.follows(*user, layout)?)));
                all.extend(follows.filter(|follows| seen.insert(*follows)));
            }
        }
        all
    }

    /// The layout in which lanes have `value`, which `op` reduces along `axis`, when they share it among them.
    fn shared_result(&self, op: Op<'c>, axis: usize, value: Value<'c>) -> Option<Attr<'c>> {
        let layouts = self.planner.layouts();
        let target = layouts.machine.target.as_ref()?;
        let shape = op.operand(0).ty().as_tensor()?.shape();
        let source = to_linear_layout(sliced_parent(layout_of(value)?, axis)?, &shape).ok()?;
        let layout = plans::shared_among_lanes(op, &source, target).ok()??;
        layouts.attr(&Encoding::Linear(Linear { layout })).ok()
    }

    /// Cycles more in all iterations where a reduction gives `value`, which has the layout `have`, in the layout `wants` at once;
    /// `None` where `value` is not all that a reduction gives, or that is impossible.
    pub(super) fn giving(&self, value: Value<'c>, have: Attr<'c>, wants: Attr<'c>) -> Option<f64> {
        let reduce = ReduceOp::defining(value)?;
        let op = reduce.op();
        // What is added up over a loop takes nothing in it, as long as nothing is converted between.
        if !self.fuses || op.num_results() != 1 || is_added_up(op) {
            return None;
        }
        let known = self.given.borrow().get(&(op, have, wants)).copied();
        known.unwrap_or_else(|| {
            let cycles = self.give(op, reduce.axis(), have, wants);
            self.given.borrow_mut().insert((op, have, wants), cycles);
            cycles
        })
    }

    fn give(&self, op: Op<'c>, axis: i64, have: Attr<'c>, wants: Attr<'c>) -> Option<f64> {
        let target = self.planner.layouts().machine.target.as_ref()?;
        let (source, result) = (op.operand(0).ty().as_tensor()?, op.result(0).ty().as_tensor()?);
        let parent = sliced_parent(have, usize::try_from(axis).ok()?)?;
        let source = to_linear_layout(parent, &source.shape()).ok()?;
        let result = to_linear_layout(wants, &result.shape()).ok()?;
        Some(weight(op) * plans::more_to(op, &source, &result, target).ok()?)
    }
}
