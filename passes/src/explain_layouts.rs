//! `--tritongpu-explain-layouts`: why tensors have the layouts that they have.
//!
//! Says for each operation that fixes a layout what it fixes and why, and for
//! each conversion how it is done, what that costs and what kept the layout
//! engine from removing it; then, for conversions, stores, regions, reductions, scans and gathers, what they would cost in
//! other ways or layouts, and what each function costs. It changes nothing, so it can stand anywhere in a
//! pipeline, and explains IR made by others as well.

use crate::choice::{Candidate, Choice, Unit, short};
use crate::ir_util::{is_dot, layout_of, operations_in_dominance_order, with_layout};
use crate::machine::{Layouts, Machine};
use crate::objective::{self, Objective, SYNCHRONIZATION, weight, weight_of};
use crate::plans::{self, Fused, conversion_to, cost_along};
use crate::remove_layout_conversions::{Alternative, Planner, Request, regions_that_stay, unconverted};
use crate::rules::{Rule, anchor, is_cheap, rule};
use linear_layout::plan::{Conversion, ConversionPlan};
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Op, TensorType, Value};
use mlir_host::match_op;
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;
use ttopt_dialect::tt::ops::{FuncOp, LoadOp, StoreOp};
use ttopt_dialect::ttg::layout::{equivalent, to_linear_layout};
use ttopt_dialect::ttg::ops::{ConvertLayoutOp, LocalAllocOp, LocalLoadOp};

/// The pass.
pub static TRITONGPU_EXPLAIN_LAYOUTS: PassDef = PassDef {
    anchor: "builtin.module",
    options: &[PassOption {
        name: "table",
        description: "also print all of it as a table to stderr",
        kind: OptionKind::Bool(false),
    }],
    ..PassDef::new(
        "tritongpu-explain-layouts",
        "Report each operation that fixes a layout, and each conversion: its plan, its cost, and why it stayed",
        run,
    )
};

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let report = Report::of(module)?;
    for entry in &report.entries {
        entry.op.remark(entry.remark());
    }
    let layouts = Layouts::new(module.context(), Machine::of(module)?);
    for (op, choice) in choices(module, &layouts) {
        op.remark(choice.to_string());
    }
    let objective = Objective::new(module);
    for op in operations_in_dominance_order(module).into_iter().filter(|op| FuncOp::cast(*op).is_some()) {
        op.remark(cost_of(&objective.terms(op, &layouts)));
    }
    if options.bool("table") {
        eprint!("{report}");
    }
    Ok(())
}

/// How a conversion is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// The layout that it makes.
    pub to: String,
    /// The kind of plan.
    pub kind: String,
    /// Cycles of one block each time.
    pub cycles: f64,
    /// How often it runs, compared with code outside of loops.
    pub times: f64,
}

/// What is said about one operation.
pub struct Entry<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// The type, without layout.
    pub tensor: String,
    /// The layout that is fixed, or converted from.
    pub layout: String,
    /// For conversions, how it is done; none for operations that fix layouts.
    pub way: Option<Way>,
    /// Why it is so.
    pub why: String,
}

/// All that is to be said about a module; prints as a table.
pub struct Report<'c> {
    /// In dominance order.
    pub entries: Vec<Entry<'c>>,
}

impl<'c> Report<'c> {
    /// The report on `module`.
    ///
    /// # Errors
    /// When the module lacks attributes that say how many threads there are.
    pub fn of(module: Op<'c>) -> Result<Report<'c>, Reported> {
        let layouts = Layouts::new(module.context(), Machine::of(module)?);
        let mut planner = Planner::new(module, &layouts);
        let ops = operations_in_dominance_order(module);
        let entries = ops.into_iter().filter_map(|op| match conversion(op) {
            Some((from, to)) => explain_conversion(op, from, to, &mut planner),
            None => explain_anchor(op),
        });
        Ok(Report { entries: entries.collect() })
    }

    /// Conversions, and their cycles weighted by loops.
    pub fn totals(&self) -> (usize, f64) {
        let ways = self.entries.iter().filter_map(|entry| entry.way.as_ref());
        ways.fold((0, 0.0), |(count, cycles), way| (count + 1, cycles + way.cycles * way.times))
    }
}

/// The value that `op` moves to another layout, and where it arrives: by
/// `ttg.convert_layout`, or through memory that was allocated for it.
fn conversion<'c>(op: Op<'c>) -> Option<(Value<'c>, Value<'c>)> {
    match_op!(op, {
        ConvertLayoutOp(convert) => Some((convert.src(), convert.result())),
        LocalLoadOp(load) => Some((LocalAllocOp::defining(load.src())?.src()?, load.result())),
        _ => None,
    })
}

fn tensor_text(ty: TensorType<'_>) -> String {
    let sizes: String = ty.shape().iter().map(|size| format!("{size}x")).collect();
    format!("{sizes}{}", ty.element())
}

fn explain_anchor<'c>(op: Op<'c>) -> Option<Entry<'c>> {
    let why = anchor(op)?;
    let value = op.results().find(|result| layout_of(*result).is_some());
    let value = value.or_else(|| op.operands().next().filter(|_| rule(op) == Some(Rule::Memory)))?;
    let ty = value.ty().as_tensor()?;
    let layout = ty.encoding()?.to_string();
    Some(Entry { op, tensor: tensor_text(ty), layout, way: None, why: why.to_owned() })
}

fn kind(plan: &ConversionPlan) -> String {
    match &plan.conversion {
        Conversion::NoOp => "nothing to do".to_owned(),
        Conversion::RegisterPermute { .. } => "registers".to_owned(),
        Conversion::WarpShuffle(plan) => format!("{} shuffles", plan.shuffles()),
        Conversion::SharedMemory(plan) => format!("shared memory, {} bytes", plan.shared_bytes),
        Conversion::Cluster(plan) => format!("shared memory of the cluster, {} bytes", plan.shared_bytes),
    }
}

fn explain_conversion<'c>(
    op: Op<'c>,
    from: Value<'c>,
    to: Value<'c>,
    planner: &mut Planner<'_, 'c>,
) -> Option<Entry<'c>> {
    let (ty, layout) = (from.ty().as_tensor()?, layout_of(to)?);
    let fused = fused(from, planner);
    let plan = plan(ty, layout, planner.layouts());
    let why = why_it_stayed(op, from, layout, planner);
    let times = weight(op);
    let way = match plan {
        _ if fused.is_some() => {
            let kind = "done by the reduction".to_owned();
            Way { to: layout.to_string(), kind, cycles: 0.0, times }
        }
        Ok(plan) => Way { to: layout.to_string(), kind: kind(&plan), cycles: plan.cost.cycles, times },
        Err(reason) => Way { to: layout.to_string(), kind: format!("no plan: {reason}"), cycles: 0.0, times },
    };
    let layout = ty.encoding()?.to_string();
    Some(Entry { op, tensor: tensor_text(ty), layout, way: Some(way), why })
}

/// What a function costs by the objective, in words.
fn cost_of(terms: &[(&'static str, f64)]) -> String {
    let all: f64 = terms.iter().map(|(_, cycles)| cycles).sum();
    let mut terms: Vec<_> = terms.iter().filter(|(_, cycles)| *cycles >= 0.5).collect();
    terms.sort_by(|a, b| b.1.total_cmp(&a.1));
    let terms: Vec<String> = terms.iter().map(|(name, cycles)| format!("{name} {cycles:.0}")).collect();
    format!("takes {all:.0} cycles of a CTA by the objective, which counts no dots: {}", terms.join(", "))
}

/// What is done as it is done, and what else it would cost, in dominance order.
fn choices<'c>(module: Op<'c>, layouts: &Layouts<'c>) -> Vec<(Op<'c>, Choice)> {
    let mut planner = Planner::new(module, layouts);
    let mut all = Vec::new();
    for op in operations_in_dominance_order(module) {
        let ways = [
            conversion(op).and_then(|(from, to)| conversion_choice(from, to, &mut planner)),
            store_choice(op, &planner),
            along_choice(op, layouts),
        ];
        all.extend(ways.into_iter().flatten().map(|choice| (op, choice)));
    }
    all.extend(regions_that_stay(module, layouts));
    all
}

/// A conversion against another computation of its source.
fn conversion_choice<'c>(from: Value<'c>, to: Value<'c>, planner: &mut Planner<'_, 'c>) -> Option<Choice> {
    let (value, layout) = (unconverted(from), layout_of(to)?);
    match planner.alternative(Request { value, layout, moves: true }) {
        Alternative::None => None,
        Alternative::Costs { again, convert, .. } => {
            let chosen = Candidate::new("convert it", convert);
            let subject = format!(
                "how to have {} in {}",
                value.def_op().map_or("an argument", |op| op.name()),
                short(layout)
            );
            let other = Candidate::new("rematerialize it", again);
            Some(Choice::new(subject, Unit::Cycles, chosen).instead(other))
        }
    }
}

/// A store behind a conversion against one of the value as it is.
fn store_choice<'c>(op: Op<'c>, planner: &Planner<'_, 'c>) -> Option<Choice> {
    let stored = StoreOp::cast(op).map(|_| op.operand(1))?;
    let value = unconverted(stored);
    let (ty, layout) = (value.ty().as_tensor()?, layout_of(stored)?);
    let (direct, access) = as_it_is(op, value, planner).filter(|_| value != stored)?;
    let converted = objective::conversion(ty, layout, planner.layouts())? + SYNCHRONIZATION;
    let terms = [("access", access), ("conversion", weight_of(stored) * converted)];
    let chosen = Candidate::of_terms(format!("as its addresses ask, {}", short(layout)), &terms);
    let other = Candidate::new(
        format!("as its value is, {}, without addresses", short(ty.encoding()?)),
        Some(direct),
    );
    Some(Choice::new("the layout of this store", Unit::Cycles, chosen).instead(other))
}

/// A reduction, scan or gather in the layout that its operand has, against blocked layouts whose threads go along other
/// dimensions first, to which the operand, and from which the result, is converted.
fn along_choice<'c>(op: Op<'c>, layouts: &Layouts<'c>) -> Option<Choice> {
    let axis = match rule(op)? {
        Rule::Reduce(axis) => Some(axis),
        Rule::Scan | Rule::Gather => None,
        _ => return None,
    };
    let target = layouts.machine.target.as_ref()?;
    let (source, result) = (op.operand(0).ty().as_tensor()?, op.result(0).ty().as_tensor());
    let (shape, has) = (source.shape(), source.encoding()?);
    let machine = layouts.machine.at(op).ok()?;
    let in_layout = |layout: Attr<'c>| -> Option<Candidate> {
        let own = if layout == has && rule(op) == Some(Rule::Gather) {
            plans::gather(op, target).ok()?.cost.cycles
        } else {
            cost_along(op, &*to_linear_layout(layout, &shape).ok()?, target).ok()?
        };
        let there = objective::conversion(source, layout, layouts)?;
        let results = match (axis, result) {
            (Some(axis), Some(_)) => Some(layouts.slice(axis, layout).ok()?),
            (None, Some(_)) => Some(layout),
            (_, None) => None,
        };
        let back = match (results, result) {
            (Some(from), Some(ty)) => {
                objective::conversion(with_layout(ty, from)?.as_tensor()?, ty.encoding()?, layouts)?
            }
            _ => 0.0,
        };
        let moved = [there, back].into_iter().filter(|cycles| *cycles > 0.0);
        let conversions: f64 = moved.map(|cycles| cycles + SYNCHRONIZATION).sum();
        let times = weight(op);
        let terms = [("itself", times * own), ("conversions", times * conversions)];
        Some(Candidate::of_terms(format!("in {}", short(layout)), &terms))
    };
    let mut told = vec![has];
    let mut candidates = vec![in_layout(has)?];
    for turned in 0..shape.len() {
        let mut order: Vec<usize> = (0..shape.len()).rev().collect();
        order.rotate_left(turned);
        let layout = layouts.blocked(machine.blocked(&shape, &vec![1; shape.len()], &order)).ok()?;
        if told.iter().all(|other| !equivalent(*other, layout, &shape)) {
            told.push(layout);
            candidates.extend(in_layout(layout));
        }
    }
    Choice::among(format!("the layout of {}", op.name()), Unit::Cycles, candidates, 0)
}

fn plan(ty: TensorType<'_>, to: Attr<'_>, layouts: &Layouts<'_>) -> Result<Arc<ConversionPlan>, String> {
    let target = layouts.machine.target.as_ref().ok_or("the module does not say what GPU it is for")?;
    conversion_to(ty, to, target)
}

/// The reduction that gives `value` in the layout that it is converted to, if one does (`tritongpu-fuse-reduce-conversions`).
fn fused<'c>(value: Value<'c>, planner: &Planner<'_, 'c>) -> Option<Fused<'c>> {
    plans::fused(value.def_op()?, planner.layouts().machine.target.as_ref()?)
}

/// What ties the source to its layout, and what the other one is wanted for.
fn why_it_stayed<'c>(op: Op<'c>, from: Value<'c>, to: Attr<'c>, planner: &mut Planner<'_, 'c>) -> String {
    let value = unconverted(from);
    let wanted = wanted_by(op).map(|user| {
        let reason = anchor(user).map(|reason| format!(" ({reason})"));
        (user, format!("{} at {}{}", user.name(), place(user), reason.unwrap_or_default()))
    });
    let same = from
        .ty()
        .as_tensor()
        .is_some_and(|ty| ty.encoding().is_some_and(|have| equivalent(have, to, &ty.shape())));
    if same {
        // Only types have to agree.
        let user = wanted.map_or(String::new(), |(_, user)| format!(", which {user} asks for"));
        return format!("both layouts are one: nothing moves, it only gives the value the type{user}");
    }
    if let Some(fused) = fused(from, planner) {
        let cycles = fused.plan.cost.cycles;
        let user = wanted.map_or(String::new(), |(_, user)| format!("; wanted by {user}"));
        return format!("{} gives its result there, in {cycles:.0} cycles{user}", source(value));
    }
    let mut why = match planner.alternative(Request { value, layout: to, moves: true }) {
        Alternative::None => obstacle(value),
        Alternative::Costs { again, convert, blocker } => {
            let blocker = blocker.filter(|blocker| *blocker != value);
            let again = match again {
                Some(cycles) => format!("doing {} again would cost {cycles:.0} cycles", source(value)),
                None => format!("doing {} again needs what cannot be had", source(value)),
            };
            let mut text = match convert {
                Some(cycles) => format!(
                    "{again}, the conversion costs {cycles:.0} with the time that warps wait for each other"
                ),
                None => format!("{again}, and no plan converts it"),
            };
            if weight_of(value) > 1.0 {
                text += ", both in all iterations of loops";
            }
            if let Some(blocker) = blocker {
                let _ = write!(text, "; {}", obstacle(blocker));
            }
            text
        }
    };
    if let Some((user, text)) = wanted {
        let _ = write!(why, "; wanted by {text}");
        let direct = StoreOp::cast(user).is_some().then(|| as_it_is(user, value, planner)).flatten();
        if let Some((direct, chosen)) = direct {
            let _ =
                write!(why, ", which would take {direct:.0} cycles as the value is, and takes {chosen:.0}");
        }
    }
    why
}

/// Cycles of the accesses of a store of `value` in the value's layout, and in that of its pointers.
fn as_it_is<'c>(store: Op<'c>, value: Value<'c>, planner: &Planner<'_, 'c>) -> Option<(f64, f64)> {
    let stored = store.operand(1);
    let shape = |value: Value<'c>| value.ty().as_tensor().map(|ty| ty.shape());
    let own = layout_of(value).filter(|_| shape(value) == shape(stored))?;
    let times = weight(store);
    let cycles = |layout| planner.storing(store, stored, layout).map(|cycles| times * cycles);
    Some((cycles(own)?, cycles(layout_of(stored)?)?))
}

/// Why what defines `value` is not done in another layout.
fn obstacle(value: Value<'_>) -> String {
    let Some(op) = value.def_op() else {
        return format!("{} has the layout that the signature says", source(value));
    };
    let reason = match rule(op) {
        Some(Rule::Dot | Rule::DotScaled) => "has its result where the instructions of the dot leave it",
        _ if is_dot(op) => "has its result where the instructions of the dot leave it",
        Some(Rule::Reduce(_)) => "has its result in the threads that have its operand",
        Some(Rule::Gather) => "has its result where its indices are, and moves data itself",
        Some(Rule::Memory) if LoadOp::cast(op).is_some() => "is volatile, and must happen once",
        Some(Rule::Memory) => "must happen once",
        Some(Rule::Control) => "has the layout that the signature says",
        Some(Rule::Scan) => "moves data between threads itself",
        Some(Rule::Same) if !is_cheap(op) => "takes too long to be done twice",
        Some(Rule::Cat | Rule::ReshapeAny | Rule::Any) | None => "has its result in a layout of its own",
        Some(_) if op.num_results() > 1 => "has several results, which are computed together",
        Some(_) => "has that layout from no layout of its operand",
    };
    format!("{} {reason}", source(value))
}

fn source(value: Value<'_>) -> String {
    match value.def_op() {
        Some(op) => format!("{} at {}", op.name(), place(op)),
        None => {
            let at = value.arg_block().and_then(|block| block.parent());
            at.map_or("an argument".to_owned(), |op| format!("an argument of {} at {}", op.name(), place(op)))
        }
    }
}

/// The operation that fixes the layout that `op` makes: the first one along
/// its uses, or the first use.
fn wanted_by<'c>(op: Op<'c>) -> Option<Op<'c>> {
    const STEPS: usize = 64;
    let mut seen = HashSet::new();
    let mut queue = std::collections::VecDeque::from([op]);
    let mut first = None;
    while let Some(at) = queue.pop_front().filter(|_| seen.len() < STEPS) {
        for (user, _) in at.results().flat_map(|result| result.uses()) {
            first = first.or(Some(user));
            if anchor(user).is_some() {
                return Some(user);
            }
            if seen.insert(user) {
                queue.push_back(user);
            }
        }
    }
    first
}

/// Where an operation is, as `file:line:column` where that is known.
fn place(op: Op<'_>) -> String {
    let text = op.loc().to_string();
    let inner = text.strip_prefix("loc(").and_then(|text| text.strip_suffix(')')).unwrap_or(&text);
    inner.replace('"', "")
}

impl Entry<'_> {
    /// In a sentence.
    fn remark(&self) -> String {
        let Entry { op, tensor, layout, way, why } = self;
        match way {
            None => format!("layout fixed: {} of tensor<{tensor}> has {layout}: {why}", op.name()),
            Some(Way { to, kind, cycles, times }) => format!(
                "conversion of tensor<{tensor}> from {layout} to {to}: {kind}; {cycles:.0} cycles, {times:.0} times; it stayed because {why}"
            ),
        }
    }
}

impl std::fmt::Display for Report<'_> {
    /// Rows of fields between bars, then the layouts by the names in the rows.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut names: HashMap<&str, usize> = HashMap::new();
        let mut order: Vec<&str> = Vec::new();
        for entry in &self.entries {
            for layout in [Some(&entry.layout), entry.way.as_ref().map(|way| &way.to)].into_iter().flatten() {
                names.entry(layout).or_insert_with(|| {
                    order.push(layout);
                    order.len() - 1
                });
            }
        }
        let short = |layout: &str| format!("L{}", names.get(layout).copied().unwrap_or(0));
        let mut rows =
            vec![["what", "where", "tensor", "layout", "plan", "cycles", "times", "why"].map(String::from)];
        for entry in &self.entries {
            let (layout, plan, cycles, times) = match &entry.way {
                None => (short(&entry.layout), String::new(), String::new(), String::new()),
                Some(way) => (
                    format!("{} -> {}", short(&entry.layout), short(&way.to)),
                    way.kind.clone(),
                    format!("{:.1}", way.cycles),
                    format!("{:.0}", way.times),
                ),
            };
            let what = entry.op.name().to_owned();
            rows.push([
                what,
                place(entry.op),
                entry.tensor.clone(),
                layout,
                plan,
                cycles,
                times,
                entry.why.clone(),
            ]);
        }
        let widths: Vec<usize> =
            (0..rows[0].len()).map(|i| rows.iter().map(|row| row[i].len()).max().unwrap_or(0)).collect();
        for row in &rows {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            writeln!(f, "{}", cells.join(" | ").trim_end())?;
        }
        let (count, cycles) = self.totals();
        writeln!(f, "conversions: {count}, weighted cycles: {cycles:.1}")?;
        for (i, layout) in order.iter().enumerate() {
            writeln!(f, "L{i} = {layout}")?;
        }
        Ok(())
    }
}
