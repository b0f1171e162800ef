//! The layout of every value: forward from anchors, then backward from uses.

use super::plan::unconverted;
use super::regions::Move;
use crate::buffer_plans::{self, stored};
use crate::ir_util::{for_each_edge, incoming, is_loop, layout_of, set_layout, set_result_layout};
use crate::machine::Layouts;
use crate::objective::{fills_registers, weight};
use crate::rules::{Rule, anchor, backward, forward, reorders, rule};
use mlir_host::asm::Reported;
use mlir_host::flow::{is_region_branch, twins};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, Op, Value};
use mlir_host::upstream::{ConstantOp, is_structured};
use smallvec::SmallVec;
use ttopt_dialect::tt::ops::{CallOp, FuncOp, HistogramOp, ReturnOp};
use ttopt_dialect::ttg::attrs::{SLICE, sliced_parent};
use ttopt_dialect::ttg::layout::equivalent;

/// Rounds in which layouts travel around nested loops.
const ROUNDS: usize = 4;

/// What becomes of the layouts of loop-carried values and others that control flow passes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// They are decided as those of all others.
    Decided,
    /// They stay as they are.
    Kept,
    /// They stay as they are, and so do results of reductions.
    AndReductionsKept,
}

/// The layout of every tensor.
pub struct Assignment<'c> {
    /// Class of each value: values carried around a loop share one.
    classes: FastMap<Value<'c>, usize>,
    layouts: Vec<Option<Attr<'c>>>,
    /// By class.
    votes: Vec<SmallVec<[(Attr<'c>, f64); 1]>>,
    /// Layouts that operands must have whatever happens around them.
    pinned: FastMap<(Op<'c>, usize), Attr<'c>>,
}

fn tensors<'c>(op: Op<'c>) -> impl Iterator<Item = (usize, Value<'c>)> {
    op.operands().enumerate().filter(|(_, value)| layout_of(*value).is_some())
}

/// Arguments of the blocks of `op`.
fn arguments<'c>(op: Op<'c>) -> impl Iterator<Item = Value<'c>> {
    op.regions().flat_map(|region| region.blocks()).flat_map(|block| block.args())
}

/// Whether operands of `op` may have to keep the layouts that they have.
fn may_pin(op: Op<'_>, rule: Option<Rule>) -> bool {
    match rule {
        None | Some(Rule::Control | Rule::Dot | Rule::DotScaled) => true,
        Some(Rule::Memory) => op.num_results() == 0,
        _ => false,
    }
}

impl<'c> Assignment<'c> {
    /// Assigns layouts to all values that `ops`, in dominance order, define.
    ///
    /// # Errors
    /// At operations for which there is no layout.
    pub fn new(ops: &[Op<'c>], carried: Carried, layouts: &Layouts<'c>) -> Result<Self, (Op<'c>, String)> {
        let mut this = Assignment {
            classes: FastMap::with_capacity_and_hasher(ops.len(), Default::default()),
            layouts: Vec::new(),
            votes: Vec::new(),
            pinned: FastMap::default(),
        };
        // What an operation takes is registered before it.
        for &op in ops {
            this.register(op, layouts);
            if carried != Carried::Decided {
                this.keep(op, carried == Carried::AndReductionsKept);
            }
            this.forward(op, layouts, false);
        }
        if this.open() == 0 {
            return Ok(this);
        }
        let open: Vec<Op<'c>> = ops.iter().copied().filter(|op| this.has_open(*op)).collect();
        open.iter().for_each(|op| this.forward(*op, layouts, true));
        for _ in 0..ROUNDS {
            let left = this.open();
            open.iter().rev().for_each(|op| this.backward(*op, layouts));
            if this.open() == left {
                break;
            }
        }
        for op in open {
            this.settle(op, layouts)?;
        }
        Ok(this)
    }

    /// Whether a value that `op` takes or makes has no layout yet.
    fn has_open(&self, op: Op<'c>) -> bool {
        let is_open = |value: Value<'c>| layout_of(value).is_some() && self.get(value).is_none();
        op.operands().chain(op.results()).any(is_open) || arguments(op).any(is_open)
    }

    /// How many classes have no layout yet.
    fn open(&self) -> usize {
        self.layouts.iter().filter(|layout| layout.is_none()).count()
    }

    fn class(&mut self, value: Value<'c>) -> usize {
        let next = self.layouts.len();
        let class = *self.classes.entry(value).or_insert(next);
        if class == next {
            self.layouts.push(None);
            self.votes.push(SmallVec::new());
        }
        class
    }

    /// The layout assigned so far.
    fn get(&self, value: Value<'c>) -> Option<Attr<'c>> {
        self.layouts[*self.classes.get(&value)?]
    }

    fn set(&mut self, value: Value<'c>, layout: Attr<'c>) {
        let class = self.class(value);
        self.layouts[class].get_or_insert(layout);
    }

    /// Notes the layout of a value made since.
    pub fn record(&mut self, value: Value<'c>, layout: Attr<'c>) {
        self.set(value, layout);
    }

    /// Gives the result of a computation another layout than was assigned.
    pub fn reassign(&mut self, value: Value<'c>, layout: Attr<'c>) {
        let class = self.class(value);
        self.layouts[class] = Some(layout);
        set_layout(value, layout);
    }

    /// Classes of all values, and layouts of anchors.
    fn register(&mut self, op: Op<'c>, layouts: &Layouts<'c>) {
        for value in arguments(op).chain(op.results()) {
            if layout_of(value).is_some() {
                self.class(value);
            }
        }
        let join = |this: &mut Self, a: Value<'c>, b: Value<'c>| {
            if layout_of(a).is_some() {
                let class = this.class(a);
                this.classes.insert(b, class);
            }
        };
        if is_region_branch(op) {
            for result in op.results() {
                twins(result).into_iter().skip(1).for_each(|twin| join(self, result, twin));
            }
        }
        // The signature stays.
        let entry = FuncOp::cast(op).and_then(|function| function.body().first_block());
        for arg in entry.into_iter().flat_map(Block::args) {
            if let Some(layout) = layout_of(arg) {
                self.set(arg, layout);
            }
        }
        // What partitions capture keeps the layout that it is captured in.
        if is_region_branch(op) && !is_structured(op) {
            for arg in arguments(op) {
                if let Some(layout) = layout_of(arg) {
                    self.set(arg, layout);
                }
            }
        }
        self.pin(op, layouts);
        if anchor(op).is_some() {
            for result in op.results() {
                if let Some(layout) = layout_of(result) {
                    self.set(result, layout);
                }
            }
        }
    }

    /// Has loop-carried values, and others that control flow passes on, keep their layouts, and those of `reductions`.
    fn keep(&mut self, op: Op<'c>, reductions: bool) {
        let keeps = match rule(op) {
            Some(Rule::Control) => true,
            Some(Rule::Reduce(_)) => reductions,
            _ => false,
        };
        let results = op.results().filter(|_| keeps);
        for value in arguments(op).chain(results) {
            if let Some(layout) = layout_of(value) {
                self.set(value, layout);
            }
        }
    }

    /// Notes what operands must be: pointers of accesses without results have
    /// the layout that coalescing chose, calls and returns keep signatures, and
    /// CTAs of a cluster store what was made for their parts of a buffer.
    fn pin(&mut self, op: Op<'c>, layouts: &Layouts<'c>) {
        if let Some((value, buffer)) = stored(op).filter(|_| layouts.machine.num_ctas > 1)
            && let Some(layout) = layout_of(value)
            && buffer_plans::covers(unconverted(value).ty(), buffer) == Ok(false)
        {
            self.pinned.insert((op, 0), layout);
        }
        let rule = rule(op);
        if !may_pin(op, rule) {
            return;
        }
        let own = CallOp::cast(op).is_some() || ReturnOp::cast(op).is_some() || rule.is_none();
        let store = rule == Some(Rule::Memory) && op.num_results() == 0;
        let dot = matches!(rule, Some(Rule::Dot | Rule::DotScaled));
        for (i, value) in tensors(op) {
            let layout = if store { layout_of(op.operand(0)) } else { layout_of(value) };
            if let Some(layout) = layout.filter(|_| own || store || (dot && i != 2)) {
                self.pinned.insert((op, i), layout);
            }
        }
    }

    /// Has `op`, which has no results, take all its tensors in `layout`.
    pub fn repin(&mut self, op: Op<'c>, layout: Attr<'c>) {
        for (i, _) in tensors(op) {
            self.pinned.insert((op, i), layout);
        }
    }

    /// Gives values, or a store, another layout than was assigned.
    pub fn relocate(&mut self, to: &Move<'c>) {
        if to.values.is_empty() {
            self.repin(to.op, to.layout);
        }
        to.values.iter().for_each(|value| self.reassign(*value, to.layout));
    }

    /// Layouts of results from those of operands. Values that enter a loop
    /// count only where nothing inside of it decides (`late`).
    fn forward(&mut self, op: Op<'c>, layouts: &Layouts<'c>, late: bool) {
        let Some(rule) = rule(op) else { return };
        if rule == Rule::Control {
            if is_loop(op) && !late {
                return;
            }
            for_each_edge(op, &mut |operand, target| {
                if let Some(layout) = self.get(op.operand(operand))
                    && layout_of(target).is_some()
                {
                    self.set(target, layout);
                }
            });
            return;
        }
        if op.results().all(|result| layout_of(result).is_none() || self.get(result).is_some()) {
            return;
        }
        let operand = match rule {
            Rule::Gather => self.get(op.operand(1)),
            _ => self.preferred_operand(op, matches!(rule, Rule::Same | Rule::Scan)),
        };
        let Some(operand) = operand else { return };
        if let Ok(layout) =
            forward(op, if rule == Rule::Convert { Rule::Same } else { rule }, operand, layouts)
        {
            for result in op.results().filter(|result| layout_of(*result).is_some()) {
                self.set(result, layout);
            }
        }
    }

    /// The layout that most operands have; the first of those. With `strong`,
    /// operands that repeat something smaller do not count: that is cheap to move.
    fn preferred_operand(&self, op: Op<'c>, strong: bool) -> Option<Attr<'c>> {
        let repeats = |value: Value<'c>| value.def_op().and_then(rule) == Some(Rule::Broadcast);
        let mut counts: Vec<(Attr<'c>, usize)> = Vec::new();
        let counted = tensors(op).filter(|(_, value)| !strong || !repeats(*value));
        for layout in counted.filter_map(|(_, value)| self.get(value)) {
            match counts.iter_mut().find(|entry| entry.0 == layout) {
                Some(entry) => entry.1 += 1,
                None => counts.push((layout, 1)),
            }
        }
        let most = counts.iter().map(|entry| entry.1).max()?;
        counts.into_iter().find(|entry| entry.1 == most).map(|entry| entry.0)
    }

    /// Layouts of open operands from those of results.
    fn backward(&mut self, op: Op<'c>, layouts: &Layouts<'c>) {
        for result in op.results() {
            self.elect(op, result, layouts);
        }
        for arg in arguments(op) {
            self.elect_plain(arg);
        }
        let mut wanted: Vec<(Value<'c>, Attr<'c>)> = Vec::new();
        for (i, value) in tensors(op).filter(|(_, value)| self.get(*value).is_none()) {
            let layout = self.demand(op, i, layouts);
            let is_held =
                |layout: &Attr<'c>| incoming(value).is_some() && fills_registers(value, *layout, layouts);
            if let Some(layout) = layout.filter(|layout| !is_held(layout)) {
                wanted.push((value, layout));
            }
        }
        if wanted.is_empty() {
            return;
        }
        let weight = weight(op);
        for (value, layout) in wanted {
            let class = self.class(value);
            let votes = &mut self.votes[class];
            match votes.iter_mut().find(|vote| vote.0 == layout) {
                Some(vote) => vote.1 += weight,
                None => votes.push((layout, weight)),
            }
        }
    }

    /// The layout with most votes. Where several have as many, the order of the uses must not decide, or the choice
    /// would change when operations change places: reductions can make slices alone, so these go first.
    fn winner(&self, value: Value<'c>) -> Option<Attr<'c>> {
        let votes = &self.votes[*self.classes.get(&value)?];
        let most = votes.iter().map(|vote| vote.1).reduce(f64::max)?;
        let mut ties = votes.iter().filter(|vote| vote.1 == most).map(|vote| vote.0);
        let first = ties.next()?;
        Some(ties.fold(first, |best, layout| {
            let key = |layout: Attr<'c>| (!layout.is(&SLICE), layout.to_string());
            if key(layout) < key(best) { layout } else { best }
        }))
    }

    fn elect_plain(&mut self, value: Value<'c>) {
        if self.get(value).is_none()
            && let Some(layout) = self.winner(value)
        {
            self.set(value, layout);
        }
    }

    /// Gives a result the layout that most of its uses want, if the operation
    /// can have it.
    fn elect(&mut self, op: Op<'c>, result: Value<'c>, layouts: &Layouts<'c>) {
        if layout_of(result).is_none() || self.get(result).is_some() {
            return;
        }
        let Some(layout) = self.winner(result) else { return };
        let Some(rule) = rule(op) else { return };
        let possible = match rule {
            Rule::Reduce(axis) => sliced_parent(layout, axis).is_some(),
            Rule::Cat => false,
            Rule::ReshapeAny => self.get(op.operand(0)).is_some_and(|have| reorders(op, have, layout)),
            Rule::Trans
            | Rule::Reshape
            | Rule::Join
            | Rule::Split
            | Rule::Unpack(_)
            | Rule::Scan
            | Rule::ExpandDims(_) => backward(op, rule, 0, layout, layouts).is_ok(),
            _ => true,
        };
        if possible {
            for result in op.results().filter(|result| layout_of(*result).is_some()) {
                if rule != Rule::Control || self.winner(result) == Some(layout) {
                    self.set(result, layout);
                }
            }
        }
    }

    /// The layout that `op` needs its operand `i` to have; `None` where any
    /// will do, or where it is not decided yet.
    pub fn demand(&self, op: Op<'c>, i: usize, layouts: &Layouts<'c>) -> Option<Attr<'c>> {
        let rule = rule(op);
        if may_pin(op, rule)
            && let Some(layout) = self.pinned.get(&(op, i))
        {
            return Some(*layout);
        }
        let result = op.results().find_map(|result| self.get(result));
        match rule {
            Some(Rule::Control) => {
                let mut wanted = None;
                for_each_edge(op, &mut |operand, target| {
                    if operand == i {
                        wanted = wanted.or(self.get(target));
                    }
                });
                wanted
            }
            Some(Rule::Convert) => result,
            Some(Rule::Reduce(axis)) => {
                let parent = result.and_then(|layout| sliced_parent(layout, axis));
                parent.or_else(|| tensors(op).find_map(|(_, value)| self.get(value)))
            }
            Some(Rule::Any) if HistogramOp::cast(op).is_some() && i == 1 => self.get(op.operand(0)),
            Some(Rule::ReshapeAny) => {
                let (result, operand) = (result?, unconverted(op.operand(0)));
                let keeps = self.get(operand).is_none_or(|have| reorders(op, have, result));
                if keeps { None } else { backward(op, Rule::Reshape, 0, result, layouts).ok().flatten() }
            }
            Some(Rule::Any) => self.pinned.get(&(op, i)).copied(),
            Some(Rule::Cat) => tensors(op).find_map(|(_, value)| self.get(value)),
            Some(Rule::Join) => {
                let result = result?;
                let half = backward(op, Rule::Join, i, result, layouts).ok().flatten()?;
                // Both operands have one layout, which may be spelled as that of one of them is.
                let shape = op.operand(i).ty().as_tensor()?.shape();
                let spelled = |layout: &Attr<'c>| equivalent(*layout, half, &shape);
                tensors(op).filter_map(|(_, value)| self.get(value)).find(spelled).or(Some(half))
            }
            Some(rule) => backward(op, rule, i, result?, layouts).ok().flatten(),
            None => None,
        }
    }

    /// What is still open keeps the layout that it has; results follow.
    fn settle(&mut self, op: Op<'c>, layouts: &Layouts<'c>) -> Result<(), (Op<'c>, String)> {
        let Some(rule) = rule(op) else { return Ok(()) };
        for arg in arguments(op) {
            if let Some(layout) = layout_of(arg) {
                self.set(arg, layout);
            }
        }
        if op.results().all(|result| layout_of(result).is_none() || self.get(result).is_some()) {
            return Ok(());
        }
        let original = op.results().find_map(layout_of);
        let layout =
            match (rule, self.preferred_operand(op, true).or_else(|| self.preferred_operand(op, false))) {
                // Where nothing follows from the operand, it is the operand that moves.
                (
                    Rule::Scan | Rule::Trans | Rule::Reshape | Rule::Join | Rule::Split | Rule::Unpack(_),
                    Some(operand),
                ) => forward(op, rule, operand, layouts).ok().or(original),
                // Elements may go anywhere: they stay in their threads.
                (Rule::ReshapeAny, Some(operand)) => original
                    .filter(|layout| reorders(op, operand, *layout))
                    .or_else(|| forward(op, Rule::Reshape, operand, layouts).ok())
                    .or(original),
                (Rule::Reduce(_) | Rule::Cat, Some(operand)) => {
                    Some(forward(op, rule, operand, layouts).map_err(|reason| (op, reason))?)
                }
                (Rule::Same | Rule::Convert, Some(operand)) => Some(operand),
                _ => original,
            };
        let Some(layout) = layout else { return Ok(()) };
        for result in op.results().filter(|result| layout_of(*result).is_some()) {
            let layout = if rule == Rule::Control { layout_of(result).unwrap_or(layout) } else { layout };
            self.set(result, layout);
        }
        Ok(())
    }

    /// Whether a value that `ops` define has another layout than was assigned. Results of
    /// conversions do not count: they will be replaced.
    pub fn changes(&self, ops: &[Op<'c>]) -> bool {
        let differs =
            |value: Value<'c>| self.get(value).is_some_and(|layout| layout_of(value) != Some(layout));
        let kept = |op: &&Op<'c>| rule(**op) != Some(Rule::Convert);
        ops.iter().filter(kept).any(|op| arguments(*op).any(differs) || op.results().any(differs))
    }

    /// Puts the layouts into the types.
    ///
    /// # Errors
    /// When a constant cannot take its type.
    pub fn apply(&self, ops: &[Op<'c>]) -> Result<(), Reported> {
        for &op in ops {
            for value in arguments(op).chain(op.results()) {
                self.retype(value);
            }
            if ConstantOp::cast(op).is_some()
                && let Some(layout) = layout_of(op.result(0))
            {
                set_result_layout(op, layout)?;
            }
        }
        Ok(())
    }

    fn retype(&self, value: Value<'c>) {
        if let Some(layout) = self.get(value).filter(|layout| layout_of(value) != Some(*layout)) {
            set_layout(value, layout);
        }
    }
}
