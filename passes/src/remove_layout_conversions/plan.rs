//! How to get a value in another layout, and what that costs.
//!
//! A plan is made for a pair of a value and a layout. The value is converted,
//! or rematerialized: the operation that defines it is repeated with operands
//! in layouts that follow, for which there are plans in turn. Costs are cycles
//! of one CTA times how often the place runs where the operation will stand:
//! so a conversion moves out of a loop, or to the narrow side of a cast, when
//! that costs less.
//!
//! Loop-carried values and results of branches can be carried in the other
//! layout as well. Plans then depend on themselves: a pair is taken
//! to cost nothing while its own plan is being made, and what was found by that
//! is forgotten should the pair be converted after all.

use crate::ir_util::{incoming, layout_of};
use crate::machine::Layouts;
use crate::objective::{Objective, converting, fills_registers, waiting, weight_of};
use crate::rules::{Rule, backward, is_conversion, rule, wanted_or_equal};
use mlir_host::flow::twins;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Op, Value};
use mlir_host::upstream::can_pass_more;
use smallvec::SmallVec;
use std::rc::Rc;
use ttopt_dialect::tt::ops::{ElementwiseInlineAsmOp, LoadOp};

#[cfg(test)]
mod tests;

/// How to get a value in a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It is there.
    Have,
    /// Convert it.
    Convert,
    /// Compute it again.
    Copy,
    /// Carry it around the loop or out of the branch a second time.
    Carry,
    /// There is no way: no plan converts it, nor can it be computed or carried again.
    Impossible,
}

/// A value, a layout, and whether the use that asks for it is not needed any
/// more in the old layout.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request<'c> {
    /// The value.
    pub value: Value<'c>,
    /// The layout it is wanted in.
    pub layout: Attr<'c>,
    /// Whether the use goes away.
    pub moves: bool,
}

impl Request<'_> {
    /// Whether the value has the layout.
    fn is_had(&self) -> bool {
        self.value.ty().as_tensor().is_none_or(|ty| ty.encoding() == Some(self.layout))
    }
}

/// What a plan needs, with numbers of operands.
pub type Inputs<'c> = SmallVec<[(usize, Request<'c>); 4]>;

/// What could be done instead of a conversion.
#[derive(Clone, Copy, Debug)]
pub enum Alternative<'c> {
    /// Nothing: what defines the value has its layout.
    None,
    /// To compute or carry the value again.
    Costs {
        /// Cycles of that, in all iterations; `None` where what it needs cannot be had.
        again: Option<f64>,
        /// Cycles of the conversion, in all iterations; `None` where no plan does it.
        convert: Option<f64>,
        /// What cannot be computed again and therefore is converted.
        blocker: Option<Value<'c>>,
    },
}

/// A plan in the making.
struct Frame<'c> {
    request: Request<'c>,
    /// Cycles of a conversion; `None` where no plan does it.
    convert: Option<f64>,
    how: How,
    /// Cycles of doing it so, as far as they are added up; `None` where an input cannot be had.
    cost: Option<f64>,
    inputs: Inputs<'c>,
    next: usize,
    /// Plans finished before this one was begun.
    finished: usize,
    /// Whether an input took this plan to cost nothing.
    assumed: bool,
}

impl Frame<'_> {
    /// Whether what is added up so far costs no more than a conversion.
    fn is_candidate(&self) -> bool {
        self.cost.is_some_and(|cost| self.convert.is_none_or(|convert| cost <= convert))
    }
}

/// What is known about a request.
#[derive(Clone, Copy)]
enum Plan {
    /// The cheapest way, and its cost; `None` where there is no way.
    Done(How, Option<f64>),
    /// The place of its frame while the plan is being made.
    Active(usize),
}

/// Makes plans, each once.
pub struct Planner<'a, 'c> {
    layouts: &'a Layouts<'c>,
    costs: Rc<Objective<'c>>,
    plans: FastMap<Request<'c>, Plan>,
    /// Requests in the order in which their plans were finished.
    finished: Vec<Request<'c>>,
    /// Values that exist in further layouts.
    made: FastMap<(Value<'c>, Attr<'c>), Value<'c>>,
    /// Values that will exist in further layouts.
    expected: FastSet<(Value<'c>, Attr<'c>)>,
    /// Conversions that wait together with others, and the cycles that this saves each time.
    together: FastMap<(Value<'c>, Attr<'c>), f64>,
}

/// Whether `op` is a conversion of the input that was replaced.
fn is_dropped(op: Op<'_>) -> bool {
    is_conversion(op) && op.result(0).is_unused()
}

/// Whether all `values` together have one use at most.
fn has_one_use(values: &[Value<'_>]) -> bool {
    let users = values.iter().flat_map(|value| value.uses());
    users.filter(|(user, _)| !is_dropped(*user)).nth(1).is_none()
}

/// What conversions made `value` from.
pub fn unconverted(mut value: Value<'_>) -> Value<'_> {
    while let Some(op) = value.def_op().filter(|op| is_conversion(*op)) {
        value = op.operand(0);
    }
    value
}

impl<'a, 'c> Planner<'a, 'c> {
    /// No plans yet for the values of `module`.
    pub fn new(module: Op<'c>, layouts: &'a Layouts<'c>) -> Self {
        Self::with(Rc::new(Objective::new(module)), layouts)
    }

    /// As [`Planner::new`], for the module of `objective`, whose analysis is shared.
    pub fn with(objective: Rc<Objective<'c>>, layouts: &'a Layouts<'c>) -> Self {
        Self {
            layouts,
            costs: objective,
            plans: FastMap::default(),
            finished: Vec::new(),
            made: FastMap::default(),
            expected: FastSet::default(),
            together: FastMap::default(),
        }
    }

    /// Forgets all plans, since values got other layouts.
    pub fn forget(&mut self) {
        self.together.clear();
        self.plans.clear();
        self.expected.clear();
        self.finished.clear();
    }

    /// Notes what the operands of dots, given in pairs, save where both are converted: they are stored, waited for once, and
    /// loaded. Where one is converted in any case, the other one's conversion costs only what it adds.
    pub fn wait_together(&mut self, pairs: impl Iterator<Item = [Request<'c>; 2]>) {
        for [left, right] in pairs {
            let waits = |Request { value, layout, .. }: Request<'c>| {
                Some((value.def_op()?.block(), waiting(value.ty().as_tensor()?, layout, self.layouts)))
            };
            let Some(((block, one), (other_block, other))) = waits(left).zip(waits(right)) else { continue };
            let saved = one.min(other);
            if saved <= 0.0 || block != other_block {
                continue;
            }
            let converted = [left, right].map(|request| self.plan(request).0 == How::Convert);
            let request = match converted {
                [true, false] => right,
                [false, true] => left,
                _ => continue,
            };
            // What is computed from a load may convert something smaller; a load is what narrow accesses would replace.
            if request.value.def_op().and_then(LoadOp::cast).is_none() {
                continue;
            }
            self.together.insert((request.value, request.layout), saved);
            for moves in [false, true] {
                self.plans.remove(&Request { moves, ..request });
            }
        }
    }

    /// `value` in `layout`, where it exists.
    pub fn made(&self, value: Value<'c>, layout: Attr<'c>) -> Option<Value<'c>> {
        self.made.get(&(value, layout)).copied()
    }

    /// Whether `value` has been made in `layout`, or will be.
    fn is_there(&self, value: Value<'c>, layout: Attr<'c>) -> bool {
        self.made.contains_key(&(value, layout)) || self.expected.contains(&(value, layout))
    }

    /// Notes that `made` is `value` in `layout`.
    pub fn note(&mut self, value: Value<'c>, layout: Attr<'c>, made: Value<'c>) {
        self.costs.note(made, value);
        self.made.insert((value, layout), made);
        self.cheapen_users(value, layout);
    }

    /// Notes that `made`, a result of an operation that took the place of another, is what `value` was.
    pub fn renew(&self, value: Value<'c>, made: Value<'c>) {
        self.costs.note(made, value);
    }

    /// Takes all that the plan for a request makes to be there for other plans: they share it.
    pub fn expect(&mut self, request: Request<'c>) {
        let mut requests = vec![request];
        while let Some(request) = requests.pop() {
            let how = self.plan(request).0;
            if matches!(how, How::Have | How::Impossible)
                || !self.expected.insert((request.value, request.layout))
            {
                continue;
            }
            if how != How::Convert {
                requests.extend(self.inputs(request).iter().map(|(_, input)| *input));
            }
            for moves in [false, true] {
                self.plans.insert(Request { moves, ..request }, Plan::Done(How::Have, Some(0.0)));
            }
            self.cheapen_users(request.value, request.layout);
        }
    }

    /// What is computed from a value that exists in a layout may be had for less there.
    fn cheapen_users(&mut self, value: Value<'c>, layout: Attr<'c>) {
        for result in value.uses().flat_map(|(user, _)| user.results()) {
            for moves in [false, true] {
                self.plans.remove(&Request { value: result, layout, moves });
            }
        }
    }

    /// Cycles of computing `op` in a layout instead of its own; `None` where it stays.
    pub fn moving(&self, op: Op<'c>, layout: Attr<'c>) -> Option<f64> {
        // Assembly without effects is computed once either way, as is what only names registers anew.
        let pure = ElementwiseInlineAsmOp::cast(op).is_some_and(|asm| asm.pure());
        if pure || rule(op) == Some(Rule::Split) {
            return self.working(op, layout);
        }
        self.costs.computing(op, op.result(0).ty().as_tensor()?, layout, self.layouts)
    }

    /// Cycles of `op` in a layout, where nothing needs it in another one; `None` where no plan does it.
    pub fn working(&self, op: Op<'c>, layout: Attr<'c>) -> Option<f64> {
        self.costs.cycles_in(op, layout, self.layouts)
    }

    /// Cycles of a store of `value` by `op` in a layout; `None` where it cannot be told.
    pub fn storing(&self, op: Op<'c>, value: Value<'c>, layout: Attr<'c>) -> Option<f64> {
        self.costs.access(op, value.ty().as_tensor()?, layout, self.layouts)
    }

    /// The layouts of the machine.
    pub fn layouts(&self) -> &'a Layouts<'c> {
        self.layouts
    }

    /// The cheapest way to get a value in a layout, and what it costs; `None` where there is no way.
    pub fn plan(&mut self, request: Request<'c>) -> (How, Option<f64>) {
        if request.is_had() {
            return (How::Have, Some(0.0));
        }
        let mut stack: SmallVec<[Frame<'c>; 1]> = SmallVec::new();
        let mut wanted = Some(request);
        loop {
            if let Some(request) = wanted.take() {
                match self.plans.get(&request) {
                    Some(Plan::Done(how, cost)) if stack.is_empty() => return (*how, *cost),
                    Some(Plan::Done(..)) => {}
                    Some(Plan::Active(at)) => stack[*at].assumed = true,
                    None => {
                        self.plans.insert(request, Plan::Active(stack.len()));
                        stack.push(self.begin(request));
                    }
                }
            }
            let Some(frame) = stack.last_mut() else { return (How::Impossible, None) };
            // Inputs that are being planned themselves count nothing, nor do those that are there.
            if let Some(last) = frame.next.checked_sub(1)
                && let Some(Plan::Done(_, cost)) = self.plans.get(&frame.inputs[last].1)
            {
                frame.cost = frame.cost.zip(*cost).map(|(sum, cost)| sum + cost);
            }
            if frame.next < frame.inputs.len() && frame.is_candidate() {
                let input = frame.inputs[frame.next].1;
                frame.next += 1;
                wanted = Some(input).filter(|input| !input.is_had());
                continue;
            }
            let Some(frame) = stack.pop() else { continue };
            let plan = self.finish(&frame);
            if stack.is_empty() {
                return plan;
            }
        }
    }

    fn finish(&mut self, frame: &Frame<'c>) -> (How, Option<f64>) {
        let plan = match frame.convert {
            _ if frame.is_candidate() => (frame.how, frame.cost),
            Some(cycles) => (How::Convert, Some(cycles)),
            None => (How::Impossible, None),
        };
        if frame.assumed && matches!(plan.0, How::Convert | How::Impossible) {
            for request in self.finished.drain(frame.finished..) {
                self.plans.remove(&request);
            }
        }
        self.plans.insert(frame.request, Plan::Done(plan.0, plan.1));
        self.finished.push(frame.request);
        plan
    }

    fn begin(&mut self, request: Request<'c>) -> Frame<'c> {
        let mut frame = Frame {
            request,
            convert: Some(0.0),
            how: How::Have,
            cost: Some(0.0),
            inputs: SmallVec::new(),
            next: 0,
            finished: self.finished.len(),
            assumed: false,
        };
        let Request { value, layout, .. } = request;
        let Some(ty) = value.ty().as_tensor() else { return frame };
        if ty.encoding() == Some(layout) || self.is_there(value, layout) {
            return frame;
        }
        let times = weight_of(value);
        let saved = self.together.get(&(value, layout)).copied().unwrap_or(0.0);
        frame.convert = converting(ty, layout, self.layouts).map(|cycles| times * (cycles - saved));
        if self.layouts.is_provisional(layout) {
            (frame.how, frame.cost) = (How::Convert, frame.convert);
            return frame;
        }
        match self.again(request) {
            Some((how, cost, inputs)) => {
                (frame.how, frame.cost, frame.inputs) = (how, Some(times * cost), inputs);
            }
            None => (frame.how, frame.cost) = (How::Convert, frame.convert),
        }
        frame
    }

    /// How else than by a conversion, what that costs where the value is
    /// defined, and what it needs.
    fn again(&self, request: Request<'c>) -> Option<(How, f64, Inputs<'c>)> {
        let Request { value, layout, moves } = request;
        if let Some(incoming) = incoming(value) {
            if !can_pass_more(value) || fills_registers(value, layout, self.layouts) {
                return None;
            }
            // Where nobody else uses what is carried, it is not carried any more as it was.
            let moves = moves && has_one_use(&twins(value));
            let inputs = incoming
                .iter()
                .enumerate()
                .map(|(n, (op, i))| (n, Request { value: unconverted(op.operand(*i)), layout, moves }));
            return Some((How::Carry, 0.0, inputs.collect()));
        }
        let op = value.def_op()?;
        let rule = rule(op)?;
        if op.num_regions() > 0 || op.num_results() != 1 || !can_be_copied(rule) {
            return None;
        }
        let ty = value.ty().as_tensor()?;
        let moves = moves && has_one_use(&[value]);
        let cost = if moves {
            // Nobody else uses the original: it goes.
            let had = self.costs.computing(op, ty, ty.encoding()?, self.layouts);
            self.costs.computing(op, ty, layout, self.layouts)? - had.unwrap_or(0.0)
        } else {
            self.costs.copy(op, ty, layout, self.layouts)?
        };
        let mut inputs = SmallVec::new();
        for (i, operand) in op.operands().enumerate().filter(|(_, operand)| layout_of(*operand).is_some()) {
            let layout = backward(op, rule, i, layout, self.layouts).ok()??;
            let value = unconverted(operand);
            inputs.push((i, Request { value, layout: wanted_or_equal(rule, value, layout), moves }));
        }
        Some((How::Copy, cost, inputs))
    }

    /// What else than a conversion could give the value its layout.
    pub fn alternative(&mut self, request: Request<'c>) -> Alternative<'c> {
        let convert = self.begin(request).convert;
        let Some((_, cost, inputs)) = self.again(request) else { return Alternative::None };
        let inputs: Vec<_> = inputs.iter().map(|(_, input)| (*input, self.plan(*input))).collect();
        let inputs_cost: Option<f64> = inputs.iter().map(|(_, plan)| plan.1).sum();
        let again = inputs_cost.map(|inputs| weight_of(request.value) * cost + inputs);
        // From operand to operand, to the one that has to be converted.
        let mut blocker = inputs.iter().find(|(_, plan)| plan.0 == How::Convert).map(|(input, _)| *input);
        while let Some(at) = blocker {
            let Some((_, _, inputs)) = self.again(at) else { break };
            let next = inputs.iter().find(|(_, input)| self.plan(*input).0 == How::Convert);
            let Some((_, next)) = next.filter(|(_, next)| next.value.def_op().is_some()) else {
                blocker = None;
                break;
            };
            blocker = Some(*next);
        }
        Alternative::Costs { again, convert, blocker: blocker.map(|request| request.value) }
    }

    /// The operands that a copy or a carried value needs, by number: of the
    /// operation that defines the value, or among those that come in.
    pub fn inputs(&self, request: Request<'c>) -> Inputs<'c> {
        self.again(request).map_or(Inputs::new(), |(_, _, inputs)| inputs)
    }
}

/// Whether the operands' layouts follow from that of the only result.
pub(super) fn can_be_copied(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::Source
            | Rule::Same
            | Rule::Scan
            | Rule::Memory
            | Rule::Broadcast
            | Rule::ExpandDims(_)
            | Rule::Trans
            | Rule::Reshape
            | Rule::Join
            | Rule::Unpack(_)
    )
}
