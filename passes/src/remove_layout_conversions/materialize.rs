//! Values in other layouts than their own, as the plans say: converted or rematerialized.

use super::assign::Assignment;
use super::plan::{Alternative, How, Planner, Request, unconverted};
use super::said::Said;
use super::sink::{destination, sink};
use crate::choice::{Candidate, Choice, Unit, short};
use crate::ir_util::{is_dot, layout_of, set_result_layout, with_layout};
use crate::machine::{Layouts, error};
use crate::objective::weight_of;
use crate::plans::conversion_to;
use crate::rules::{Rule, rule, wanted_or_equal};
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Op, Value};
use mlir_host::rewrite::IrRewriter;
use smallvec::SmallVec;
use std::rc::Rc;

/// Gives uses their operands in the layouts that they need.
pub struct Materialize<'a, 'c> {
    pub(super) planner: Planner<'a, 'c>,
    pub(super) rewriter: IrRewriter<'c>,
    /// Operations that others took the place of, without uses or regions.
    pub(super) replaced: FastMap<Op<'c>, Op<'c>>,
    /// Operations made, in the order of their making.
    conversions: Vec<Op<'c>>,
    said: Rc<Said<'c>>,
}

/// What operand `i` of `op` is, without conversions, and the layout that it must be had in.
fn wanted<'c>(
    op: Op<'c>,
    rule: Option<Rule>,
    i: usize,
    assignment: &Assignment<'c>,
    layouts: &Layouts<'c>,
) -> Option<Request<'c>> {
    let value = unconverted(op.operand(i));
    let have = layout_of(value)?;
    let layout = assignment.demand(op, i, layouts).unwrap_or(have);
    let layout = rule.map_or(layout, |rule| wanted_or_equal(rule, value, layout));
    Some(Request { value, layout, moves: true })
}

/// Both operands of each dot of `ops`.
pub fn operands_of_dots<'c>(
    ops: &[Op<'c>],
    assignment: &Assignment<'c>,
    layouts: &Layouts<'c>,
) -> impl Iterator<Item = [Request<'c>; 2]> {
    ops.iter().filter(|op| is_dot(**op)).filter_map(move |op| {
        let operand = |i| wanted(*op, rule(*op), i, assignment, layouts);
        Some([operand(0)?, operand(1)?])
    })
}

/// Whether all operands are there as they would be made: by the one conversion of a value to a layout, where it would
/// be, or without any.
pub fn is_settled<'c>(ops: &[Op<'c>], assignment: &Assignment<'c>, planner: &mut Planner<'_, 'c>) -> bool {
    let mut conversions = FastMap::default();
    ops.iter().map(|op| (*op, rule(*op))).filter(|(_, rule)| *rule != Some(Rule::Convert)).all(
        |(op, rule)| {
            op.operands().enumerate().all(|(i, operand)| {
                let Some(request) = wanted(op, rule, i, assignment, planner.layouts()) else { return true };
                let Request { value, layout, .. } = request;
                let is_there = |conversion: Op<'c>| {
                    conversion.operand(0) == value
                        && weight_of(operand) <= weight_of(value)
                        && destination(conversion).is_none()
                };
                match planner.plan(request).0 {
                    How::Have => operand == value,
                    How::Convert => match conversions.insert((value, layout), operand) {
                        Some(first) => first == operand,
                        None => layout_of(operand) == Some(layout) && operand.def_op().is_some_and(is_there),
                    },
                    How::Copy | How::Carry | How::Impossible => false,
                }
            })
        },
    )
}

impl<'a, 'c> Materialize<'a, 'c> {
    /// Nothing made yet in `module`.
    pub fn new(module: Op<'c>, planner: Planner<'a, 'c>, said: Rc<Said<'c>>) -> Self {
        Self {
            planner,
            rewriter: IrRewriter::new(module.context()),
            replaced: FastMap::default(),
            conversions: Vec::new(),
            said,
        }
    }

    /// Makes the operands of `op` have the layouts that it needs.
    ///
    /// # Errors
    /// When an operation cannot be made; it is reported.
    pub fn operands(&mut self, op: Op<'c>, assignment: &mut Assignment<'c>) -> Result<(), Reported> {
        let rule = rule(op);
        if rule == Some(Rule::Convert) {
            return Ok(());
        }
        for i in 0..op.num_operands() {
            // Conversions of the input are not used any more.
            let at = self.latest(op);
            let Some(request) = wanted(at, rule, i, assignment, self.planner.layouts()) else { continue };
            if self.said.asks() {
                self.tell(request, at);
            }
            let made = self.get(request, at, assignment)?;
            // A loop may carry the operation's own results once more by now.
            let at = self.latest(op);
            if made != at.operand(i) {
                at.set_operand(i, made);
            }
        }
        Ok(())
    }

    /// Notes why a value is not converted for `user`.
    fn tell(&mut self, request: Request<'c>, user: Op<'c>) {
        let request = Request { value: self.current(request.value), ..request };
        let Request { value, layout, .. } = request;
        if layout_of(value).is_none_or(|have| have == layout) || self.planner.made(value, layout).is_some() {
            return;
        }
        let how = match self.planner.plan(request).0 {
            How::Copy => "rematerialize it",
            How::Carry => "carry it a second time",
            How::Have | How::Convert | How::Impossible => return,
        };
        let Alternative::Costs { again, convert, .. } = self.planner.alternative(request) else { return };
        let choice = Choice::new(
            format!(
                "how to have {} in {}",
                value.def_op().map_or("an argument", |op| op.name()),
                short(layout)
            ),
            Unit::Cycles,
            Candidate::new(how, again),
        );
        self.said.note_at(user, value.loc(), &choice.instead(Candidate::new("convert it", convert)));
    }

    /// Removes what was replaced, and places conversions where they are needed.
    pub fn finish(self) {
        self.replaced.into_keys().for_each(Op::erase);
        self.conversions.into_iter().for_each(sink);
    }

    /// What took the place of an operation that was rebuilt.
    fn latest(&self, mut op: Op<'c>) -> Op<'c> {
        while let Some(made) = self.replaced.get(&op) {
            op = *made;
        }
        op
    }

    /// What took the place of a value whose operation was rebuilt.
    pub(super) fn current(&self, mut value: Value<'c>) -> Value<'c> {
        while let Some(made) = value.def_op().and_then(|op| self.replaced.get(&op)) {
            value = made.result(value.index());
        }
        value
    }

    /// A value in a layout, usable wherever the value is.
    pub(super) fn get(
        &mut self,
        request: Request<'c>,
        user: Op<'c>,
        assignment: &mut Assignment<'c>,
    ) -> Result<Value<'c>, Reported> {
        let request = Request { value: self.current(request.value), ..request };
        let Request { value, layout, .. } = request;
        if layout_of(value).is_none_or(|have| have == layout) {
            return Ok(value);
        }
        if let Some(made) = self.planner.made(value, layout) {
            return Ok(self.current(made));
        }
        let made = match (self.planner.plan(request).0, value.def_op()) {
            (How::Carry, _) => return self.carry(request, user, assignment),
            (How::Copy, Some(op)) => self.copy(op, request, assignment)?,
            (How::Impossible, _) => return Err(self.impossible(request, user)),
            _ => self.convert(value, layout, user)?,
        };
        assignment.record(made, layout);
        self.planner.note(value, layout, made);
        Ok(made)
    }

    /// Says why a value cannot be had in a layout.
    fn impossible(&self, Request { value, layout, .. }: Request<'c>, user: Op<'c>) -> Reported {
        let planned = match (value.ty().as_tensor(), &self.planner.layouts().machine.target) {
            (Some(ty), Some(target)) => conversion_to(ty, layout, target).map(|_| ()),
            _ => Ok(()),
        };
        let reason = planned.err().unwrap_or_else(|| "it has no plan".to_owned());
        error(
            user,
            format!("needs {} in layout {layout}, and no conversion gives it that: {reason}", value.ty()),
        )
    }

    /// A copy of `op`, which defines the value, with another layout.
    fn copy(
        &mut self,
        op: Op<'c>,
        request: Request<'c>,
        assignment: &mut Assignment<'c>,
    ) -> Result<Value<'c>, Reported> {
        let mut operands: SmallVec<[(usize, Value<'c>); 4]> = SmallVec::new();
        for (i, operand) in self.planner.inputs(request) {
            operands.push((i, self.get(operand, op, assignment)?));
        }
        self.rewriter.set_after(op);
        let copy = self.rewriter.clone_op(op);
        for (i, operand) in operands {
            copy.set_operand(i, self.current(operand));
        }
        set_result_layout(copy, request.layout)?;
        Ok(copy.result(request.value.index()))
    }

    fn convert(&mut self, value: Value<'c>, layout: Attr<'c>, user: Op<'c>) -> Result<Value<'c>, Reported> {
        let ty = value.ty().as_tensor().and_then(|ty| with_layout(ty, layout));
        let ty = ty.ok_or_else(|| error(user, format!("no tensor type with layout {layout}")))?;
        match (value.def_op(), value.arg_block()) {
            (Some(op), _) => self.rewriter.set_after(op),
            (None, Some(block)) => self.rewriter.set_start(block),
            (None, None) => self.rewriter.set_before(user),
        }
        let made = self.rewriter.generic("ttg.convert_layout", value.loc(), &[value], &[ty], &[]);
        let made = made?;
        self.conversions.push(made);
        Ok(made.result(0))
    }
}
