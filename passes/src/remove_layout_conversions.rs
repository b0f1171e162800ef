//! `--tritongpu-remove-layout-conversions`: every value in the layout that its
//! uses want, conversions only where that costs less than anything else.
//!
//! Accesses to memory, dots and whatever else has a layout for a reason are
//! *anchors* (DESIGN.md §6). From them the pass
//!
//! 1. spreads layouts forward, along uses: a value computed from anchored
//!    values has their layout. What is computed from constants, ranges and
//!    scalars alone stays open (`assign`);
//! 2. gives open values the layout that their uses ask for, those in deep
//!    loops first, but what many threads would compute, and is expensive, the
//!    default layout, in which each element is computed once (`once`);
//! 3. has stores write what they store in the layout that it has where that
//!    costs less than converting it (`stores`);
//! 4. moves regions, which compute with each other without conversions, to the
//!    layout of a neighbour where that costs less (`regions`);
//! 5. rematerializes a computation whose values are all wanted in one other
//!    layout in that layout, back to where converting costs least (`rematerialize`);
//! 6. serves each use that still disagrees in the layout that it wants: by
//!    converting the value, by rematerializing it, or by converting something
//!    smaller that it is computed from, whichever costs least (`materialize`);
//! 7. removes what has no uses left, and iter_args whose only use is their own
//!    next value (`dead`).
//!
//! Where matrix instructions are still to be chosen for dots, conversions to the layouts of their operands cost nothing,
//! no region moves, and accesses stay as coalescing left them: all of it is decided again once dots have theirs.
//!
//! Loop-carried values and results of branches share one layout with what they
//! are passed to. Conversions in the input are nothing but hints: the pass
//! removes them all and chooses layouts again, and repeats this while the cost
//! falls that [`objective`](crate::objective) counts. A function is rewritten only if that
//! lowers its cost; if it does not and regions moved, the pass retries without that, and if the cost rises, once with the
//! layouts of loop-carried values fixed. A function that does not become cheaper stays as
//! it is, to the byte: so a second run of the pass does nothing.

mod assign;
mod carry;
mod dead;
mod materialize;
mod once;
mod plan;
mod regions;
mod rematerialize;
mod said;
mod sink;
mod stores;

pub(crate) use plan::{Alternative, Planner, Request, unconverted};

use crate::accelerate_matmul::is_to_be_accelerated;
use crate::choice::{Candidate, Choice, Unit};
use crate::ir_util::{is_dot, layout_of, operations_in_dominance_order};
use crate::machine::{Layouts, Machine, error};
use crate::objective::{Objective, Total, spills};
use crate::rules::{Rule, is_conversion, rule};
use assign::Carried;
use mlir_host::asm::Reported;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Block, Op, Region, Value};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use regions::Told;
use said::Said;
use std::cmp::Ordering;
use std::rc::Rc;
use ttopt_dialect::tt::ops::ReduceOp;

/// On a module: some load is [replicated](Objective::has_replicas), and whether that pays is known when the code is assembled.
pub const HAS_REPLICAS: &str = "ttg.has_replicas";

/// Rounds in which regions move.
const REGION_ROUNDS: usize = 4;

/// The pass.
pub static TRITONGPU_REMOVE_LAYOUT_CONVERSIONS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    options: &[
        PassOption {
            name: "explain",
            description: "report what regions moved, what is rematerialized, and what the alternatives would have cost, as remarks",
            kind: OptionKind::Bool(false),
        },
        PassOption {
            name: "before-sums",
            description: "take it that tritongpu-optimize-thread-locality runs later: of what a loop adds up, threads exchange data once",
            kind: OptionKind::Bool(false),
        },
        PassOption {
            name: "few-replicas",
            description: "loads cost twice of which four lanes or more load the same, and for which a thread accesses memory eight times or more",
            kind: OptionKind::Bool(false),
        },
        PassOption {
            name: "mark-replicas",
            description: "mark modules that have such loads (`ttg.has_replicas`)",
            kind: OptionKind::Bool(false),
        },
    ],
    ..PassDef::new(
        "tritongpu-remove-layout-conversions",
        "Let values take the layouts that their uses want, and convert only where that is the cheapest way",
        run,
    )
};

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let layouts = Layouts::new(module.context(), Machine::of(module)?);
    let objective =
        if options.bool("before-sums") { Objective::before_sums(module) } else { Objective::new(module) };
    let objective = if options.bool("few-replicas") { objective.with_few_replicas() } else { objective };
    improve_and_tell(module, &layouts, objective, options.bool("explain"))?;
    if options.bool("mark-replicas") && Objective::new(module).has_replicas(module, &layouts) {
        module.set_attr(HAS_REPLICAS, Attr::unit(module.context()));
    }
    Ok(())
}

/// Decides again about all layouts of a module that has some.
///
/// # Errors
/// Where there is no layout for an operation; it is reported.
pub(crate) fn improve<'c>(module: Op<'c>, layouts: &Layouts<'c>) -> PassResult {
    improve_and_tell(module, layouts, Objective::new(module), false)
}

/// The same by the costs of `objective`, which says as remarks what was chosen where somebody `asks`.
fn improve_and_tell<'c>(
    module: Op<'c>,
    layouts: &Layouts<'c>,
    objective: Objective<'c>,
    asks: bool,
) -> PassResult {
    let mut ops = remove_unused(module)?;
    layouts.set_provisional(provisional(&ops, layouts));
    let mut known = Known::of(objective, Said::new(asks));
    // Without conversions every use has the layout that it wants. Those that were removed free values for other
    // layouts.
    while ops.iter().any(|op| is_conversion(*op)) {
        match round(module, &ops, layouts, &mut known)? {
            Some(next) => ops = next,
            None => break,
        }
    }
    Ok(())
}

/// The layouts of operands of dots for which matrix instructions are still to be chosen: loads must not move to them.
fn provisional<'c>(ops: &[Op<'c>], layouts: &Layouts<'c>) -> FastSet<Attr<'c>> {
    let (mut provisional, mut settled) = (FastSet::default(), FastSet::default());
    for op in ops.iter().filter(|op| is_dot(**op)) {
        let operands = op.operands().take(2).filter_map(layout_of);
        if is_to_be_accelerated(*op, layouts) { &mut provisional } else { &mut settled }.extend(operands);
    }
    provisional.retain(|layout| !settled.contains(layout));
    provisional
}

/// Decides again once about a module that has `ops`; the operations that it then has, if that made a function cheaper.
fn round<'c>(
    module: Op<'c>,
    ops: &[Op<'c>],
    layouts: &Layouts<'c>,
    known: &mut Known<'c>,
) -> Result<Option<Vec<Op<'c>>>, Reported> {
    let first = Way { carried: Carried::Decided, regions: true };
    let mut done = attempt(module, ops, first, layouts, known)?;
    if done.cheaper.is_none() && done.moved {
        // What moves of regions save is estimated.
        let ops = operations_in_dominance_order(module);
        done = attempt(module, &ops, Way { regions: false, ..first }, layouts, known)?;
    }
    if !done.costlier || done.cheaper.is_some() {
        return Ok(done.cheaper);
    }
    // The layouts of loop-carried values follow from uses, not from costs: those that they have may be better.
    let ops = operations_in_dominance_order(module);
    let kept = Way { carried: Carried::Kept, regions: false };
    let done = attempt(module, &ops, kept, layouts, known)?;
    if done.cheaper.is_some() || !done.costlier {
        return Ok(done.cheaper);
    }
    // What is reduced from a tile may have one element for many threads, and all of them would compute what follows.
    let ops = operations_in_dominance_order(module);
    let kept = Way { carried: Carried::AndReductionsKept, ..kept };
    let reduces = ops.iter().any(|op| matches!(rule(*op), Some(Rule::Reduce(_))));
    if reduces { attempt(module, &ops, kept, layouts, known).map(|done| done.cheaper) } else { Ok(None) }
}

/// How to decide.
#[derive(Clone, Copy)]
struct Way {
    carried: Carried,
    /// Whether regions move.
    regions: bool,
}

/// What came of deciding again.
struct Attempt<'c> {
    /// The operations that there are then, if a function became cheaper.
    cheaper: Option<Vec<Op<'c>>>,
    /// Whether a function would have become costlier.
    costlier: bool,
    /// Whether regions moved.
    moved: bool,
}

/// What is known of a module as it is, from one attempt to the next.
struct Known<'c> {
    objective: Rc<Objective<'c>>,
    /// What its functions cost, once that was asked.
    totals: Option<Vec<Total>>,
    /// What was chosen.
    said: Rc<Said<'c>>,
}

impl<'c> Known<'c> {
    fn of(objective: Objective<'c>, said: Said<'c>) -> Self {
        Known { objective: Rc::new(objective), totals: None, said: Rc::new(said) }
    }

    /// Nothing of a module that changed.
    fn anew(&mut self, module: Op<'c>) {
        let objective = Rc::new(self.objective.anew(module));
        *self = Known { objective, totals: None, said: self.said.clone() };
    }
}

impl<'c> Known<'c> {
    /// Tells what made `function` cheaper than it was, `old` of a copy of the module.
    fn tell(&self, function: Op<'c>, (old, copy): (Op<'c>, &Objective<'c>), layouts: &Layouts<'c>) {
        if self.said.asks() {
            let now = Candidate::of_terms("as chosen", &self.objective.terms(function, layouts));
            let was = Candidate::of_terms("as they were", &copy.terms(old, layouts));
            let choice = Choice::new("the layouts of this function", Unit::Cycles, now).instead(was);
            function.remark(choice.to_string());
            self.said.tell(function);
        }
    }
}

/// A module as it was.
struct Before<'c> {
    /// A copy, in no block.
    module: Op<'c>,
    /// The value that each value of the copy is a copy of.
    originals: FastMap<Value<'c>, Value<'c>>,
}

impl<'c> Before<'c> {
    fn of(module: Op<'c>) -> Self {
        let copy = module.clone_detached();
        let mut originals = FastMap::default();
        for_each_twin(copy, module, &mut |copied, original| _ = originals.insert(copied, original));
        Before { module: copy, originals }
    }
}

/// Visits the values of `copy`, a copy of `original`, each with the one that it is a copy of.
fn for_each_twin<'c>(copy: Op<'c>, original: Op<'c>, visit: &mut impl FnMut(Value<'c>, Value<'c>)) {
    copy.results().zip(original.results()).for_each(|(copied, original)| visit(copied, original));
    for (copied, original) in copy.regions().zip(original.regions()) {
        for (copied, original) in copied.blocks().zip(original.blocks()) {
            copied.args().zip(original.args()).for_each(|(copied, original)| visit(copied, original));
            copied.ops().zip(original.ops()).for_each(|(copied, op)| for_each_twin(copied, op, visit));
        }
    }
}

/// The operations at the top of a module: its functions.
fn functions<'c>(module: Op<'c>) -> impl Iterator<Item = Op<'c>> {
    module.regions().flat_map(Region::blocks).flat_map(Block::ops)
}

/// How `function` compares with what it was, a function of a copy of the module, and the total of the one that stays.
/// What it was is added up only as far as it takes to know, where that is not known.
fn judge<'c>(
    function: Op<'c>,
    objective: &Objective<'c>,
    (old, copy, was): (Op<'c>, &Objective<'c>, Option<Total>),
    layouts: &Layouts<'c>,
) -> (Ordering, Total) {
    let now = objective.of_function(function, layouts);
    let spilled = spills(function, layouts);
    let with = |total: &Total, spilled| Total { cycles: total.cycles + spilled, ..*total };
    // Where no plan is missing, more than that is enough.
    let enough = if now.unplanned == 0 { now.cycles + spilled } else { f64::INFINITY };
    let was = was.unwrap_or_else(|| copy.of_function_until(old, layouts, enough));
    let order = match with(&now, spilled).compare(&was) {
        Ordering::Greater => with(&now, spilled).compare(&with(&was, spills(old, layouts))),
        order => order,
    };
    (order, if order.is_lt() { now } else { was })
}

/// Decides again. Functions that cost less than before change, others stay.
fn attempt<'c>(
    module: Op<'c>,
    ops: &[Op<'c>],
    way: Way,
    layouts: &Layouts<'c>,
    known: &mut Known<'c>,
) -> Result<Attempt<'c>, Reported> {
    let mut before = None;
    let done = decide(module, ops, way, layouts, known, &mut before).and_then(|moved| match before {
        Some(_) => remove_unused(module).map(|next| (Some(next), moved)),
        None => Ok((None, moved)),
    });
    let Some(Before { module: before, originals }) = before else {
        return done.map(|(_, moved)| Attempt { cheaper: None, costlier: false, moved });
    };
    let done = done.map(|(next, moved)| {
        let totals = known.totals.take();
        let copy = known.objective.of_copy(before, originals);
        known.anew(module);
        let (mut cheaper, mut same, mut costlier) = (false, false, false);
        let mut all = Vec::new();
        for (n, (function, old)) in functions(module).zip(functions(before)).enumerate() {
            let was = totals.as_ref().and_then(|totals| totals.get(n)).copied();
            let (order, total) = judge(function, &known.objective, (old, &copy, was), layouts);
            all.push(total);
            match order {
                Ordering::Less => {
                    cheaper = true;
                    known.tell(function, (old, &copy), layouts);
                }
                order => {
                    (same, costlier) = (true, costlier | order.is_gt());
                    function.regions().zip(old.regions()).for_each(|(now, old)| now.take_body(old));
                }
            }
        }
        if same {
            // The analysis knows values that are gone.
            known.anew(module);
        }
        known.totals = Some(all);
        let next = if same { None } else { next };
        let cheaper = cheaper.then(|| next.unwrap_or_else(|| operations_in_dominance_order(module)));
        Attempt { cheaper, costlier, moved }
    });
    before.erase();
    done
}

/// Decides again, with the module as it was in `before` where anything changes; whether regions moved.
fn decide<'c>(
    module: Op<'c>,
    ops: &[Op<'c>],
    way: Way,
    layouts: &Layouts<'c>,
    known: &Known<'c>,
    before: &mut Option<Before<'c>>,
) -> Result<bool, Reported> {
    known.said.forget();
    let mut assignment =
        assign::Assignment::new(ops, way.carried, layouts).map_err(|(op, reason)| error(op, reason))?;
    if assignment.changes(ops) {
        before.get_or_insert_with(|| Before::of(module));
        assignment.apply(ops)?;
    }
    let mut planner = Planner::with(known.objective.clone(), layouts);
    let once = once::compute_once(ops, &mut planner, &known.said);
    if !once.is_empty() {
        before.get_or_insert_with(|| Before::of(module));
        once.into_iter().for_each(|(value, layout)| assignment.reassign(value, layout));
    }
    // Until dots have their layouts, accesses stay where coalescing put them.
    let way = Way { regions: way.regions && !layouts.awaits_instructions(), ..way };
    let homes = if way.regions { regions::homes(ops, &assignment, layouts) } else { Vec::new() };
    if !layouts.awaits_instructions() {
        stores::place(ops, &mut assignment, &mut planner, &known.said);
    }
    let mut moved = false;
    // What reductions give in other layouts comes last: a region that could leave what is reduced in part may first move as a whole.
    let reduces = ops.iter().any(|op| ReduceOp::cast(*op).is_some_and(|_| layout_of(op.result(0)).is_some()));
    for fuses in [false, true].into_iter().filter(|fuses| way.regions && (reduces || !fuses)) {
        for _ in 0..REGION_ROUNDS {
            let tell = |op, choice: &Choice| known.said.note(op, choice);
            let told = known.said.asks().then_some(Told { tell: &tell, moves: true });
            let moves = regions::moves(ops, &assignment, &homes, &mut planner, (fuses, told));
            if moves.is_empty() {
                break;
            }
            moved = true;
            before.get_or_insert_with(|| Before::of(module));
            moves.into_iter().for_each(|to| assignment.relocate(&to));
            planner.forget();
        }
    }
    planner.wait_together(materialize::operands_of_dots(ops, &assignment, layouts));
    let rematerialized = rematerialize::rematerialize(ops, &assignment, &mut planner, &known.said);
    if before.is_none()
        && rematerialized.is_empty()
        && materialize::is_settled(ops, &assignment, &mut planner)
    {
        return Ok(false);
    }
    before.get_or_insert_with(|| Before::of(module));
    for (value, layout) in rematerialized {
        assignment.reassign(value, layout);
    }
    planner.forget();
    planner.wait_together(materialize::operands_of_dots(ops, &assignment, layouts));
    known.objective.analysis();
    let mut pass = materialize::Materialize::new(module, planner, known.said.clone());
    for &op in ops {
        pass.operands(op, &mut assignment)?;
    }
    pass.finish();
    Ok(moved)
}

/// The regions of a module that has layouts which stay where they are, and what moving them would cost: the operation that
/// each begins with, and the choice.
pub(crate) fn regions_that_stay<'c>(module: Op<'c>, layouts: &Layouts<'c>) -> Vec<(Op<'c>, Choice)> {
    let ops = operations_in_dominance_order(module);
    let Ok(assignment) = assign::Assignment::new(&ops, Carried::Decided, layouts) else { return Vec::new() };
    if assignment.changes(&ops) {
        // It was not this engine that chose the layouts.
        return Vec::new();
    }
    let homes = regions::homes(&ops, &assignment, layouts);
    let stay = std::cell::RefCell::new(Vec::new());
    let tell = |op, choice: &Choice| stay.borrow_mut().push((op, choice.clone()));
    let mut planner = Planner::new(module, layouts);
    regions::moves(&ops, &assignment, &homes, &mut planner, (true, Some(Told { tell: &tell, moves: false })));
    stay.into_inner()
}

/// Erases operations that only make values nobody uses, and control flow's values that nobody uses; those that stay,
/// in dominance order.
pub(crate) fn remove_unused(module: Op<'_>) -> Result<Vec<Op<'_>>, Reported> {
    let mut ops = operations_in_dominance_order(module);
    // From the last, for what an unused operation uses may be unused then.
    ops.reverse();
    ops.retain(|op| {
        let unused = op.num_results() > 0 && op.results().all(|result| result.is_unused());
        let goes = unused && op.num_regions() == 0 && dead::is_removable(*op);
        if goes {
            op.erase();
        }
        !goes
    });
    ops.reverse();
    if dead::remove_dead_carried(module, &ops)? { Ok(operations_in_dominance_order(module)) } else { Ok(ops) }
}
