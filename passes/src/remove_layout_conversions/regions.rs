//! Moves whole regions of a function to the layout of a neighbour.
//!
//! A *region* is what computes with each other without any conversion: arithmetic, reductions, changes of shape, and the
//! loads and stores at its ends. Where regions meet, something is converted. Forward propagation
//! (`assign`) ends a region wherever two anchors meet, and plans for single uses (`plan`) see one value at a time: neither
//! sees that all of a region, its loads and stores with it, costs less in the layout that a neighbour has. Here
//! each region is tried in the layouts of its neighbours: what its operations take there, against what is converted at its
//! border before and after.
//!
//! iter_args and results of branches move with what becomes them. What is computed from constants, ranges and scalars
//! alone, such as pointers and masks, belongs to no region: each use has it in the layout that it wants, as plans say.
//! Results of dots and whatever else cannot move are neighbours with layouts of their own.
//!
//! A region with functions (`sin`, `log`) whose layout has copies of elements in several threads is also tried in one that has none.
//!
//! A region that reduces along many dimensions in turn, as sorts do, is also tried in a layout with these in registers (`in_turn`).
//!
//! A reduction may also leave what it reduces: threads that are along other dimensions may have less to do, for one conversion, or
//! for none where another use has what is reduced in that layout already. Scans are also tried in layouts in which threads hold several
//! elements along their dimension.
//!
//! A round looks at each region a few times for each of at most [`NEIGHBOURS`] layouts, so it is linear in the number of
//! uses.

use super::assign::Assignment;
use super::plan::{Planner, Request, unconverted};
use crate::choice::{Candidate, Choice, Unit, short};
use crate::ir_util::{incoming, layout_of, with_layout};
use crate::machine::Layouts;
use crate::objective::{converting, weight, weight_of};
use crate::optimize_thread_locality::is_added_up;
use crate::rules::{Rule, backward, forward, is_cheap, is_conversion, rule};
use linear_layout::Encoding;
use mlir_host::flow::twins;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Op, Type, Value};
use mlir_host::is_one_of;
use mlir_host::upstream::{Dialect, ForOp, IfOp};
use smallvec::SmallVec;
use std::cell::RefCell;
use ttopt_dialect::tt::ops::{ExternElementwiseOp, LoadOp, ScanOp, StoreOp};
use ttopt_dialect::ttg::attrs::{encoding, sliced_parent};
use ttopt_dialect::ttg::layout::equivalent;

mod in_turn;
mod results;
#[cfg(test)]
mod tests;

/// Layouts in which a region is tried.
const NEIGHBOURS: usize = 6;
/// Cycles of accesses and arithmetic that a move adds count so many times: the estimate says what they take where all
/// parts of a multiprocessor are busy, but what is replicated is also waited for, and takes registers (`docs/objective.md`).
const MORE_WORK: f64 = 1.5;
/// So many times the members of all regions follow reductions that leave what they reduce, at most, so that chains of reductions
/// stay linear.
const MOST_BELOW: usize = 3;
/// Elements along the dimension of a scan that a thread may hold.
const SCANNED: [u64; 5] = [2, 4, 8, 16, 32];
/// Savings below this, in cycles, are none.
const LEAST: f64 = 1e-3;

/// Something that gets another layout.
pub struct Move<'c> {
    /// A store, or what defines or passes on the values.
    pub op: Op<'c>,
    /// What has the layout.
    pub values: Values<'c>,
    /// The layout.
    pub layout: Attr<'c>,
}

/// Values that share a layout.
type Values<'c> = SmallVec<[Value<'c>; 2]>;

/// How many operations, in words.
pub fn operations(count: usize) -> String {
    if count == 1 { "1 operation".to_owned() } else { format!("{count} operations") }
}

/// How far a move goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Through the whole region.
    All,
    /// To the loads and stores that take less there than the conversions that they need where they are.
    Cheaper,
    /// To none of its loads and stores.
    Computed,
    /// To what is computed from its first member, and not to what that is computed from.
    Below,
    /// Up to reductions, which stay, and to the loads and stores that take less there.
    Results,
}

/// A use of a value that has a layout, and the layout that it wants.
#[derive(Clone, Copy)]
struct Use<'c> {
    user: Op<'c>,
    number: usize,
    wants: Attr<'c>,
}

/// Something that can move: an operation, or an iter_arg or result of a branch.
struct Member<'c> {
    op: Op<'c>,
    rule: Rule,
    values: Values<'c>,
    /// What it is made of: users, numbers of operands, and the operands without conversions.
    operands: SmallVec<[(Op<'c>, usize, Value<'c>); 2]>,
    /// The layout of its values, or of what it stores.
    layout: Attr<'c>,
    /// An earlier member of its region, or itself.
    parent: usize,
}

/// What a move of a region, or of a part of it, changes.
struct Change<'c> {
    /// Members, and their layouts then.
    layouts: FastMap<usize, Attr<'c>>,
    /// Cycles more.
    cycles: f64,
}

/// Who is told of regions.
#[derive(Clone, Copy)]
pub struct Told<'t, 'c> {
    /// Takes the operation that a region begins with, and the choice.
    pub tell: &'t dyn Fn(Op<'c>, &Choice),
    /// Whether moves are made, and only they are told; else all regions stay, and are told.
    pub moves: bool,
}

/// A move that was considered.
struct Tried<'c> {
    layout: Attr<'c>,
    reach: Reach,
    members: usize,
    /// Cycles more, and those of them for what members do; `None` where it is impossible.
    cycles: Option<(f64, f64)>,
}

impl Tried<'_> {
    fn candidate(&self) -> Candidate {
        let accesses = match self.reach {
            Reach::All => "",
            Reach::Cheaper => " with the accesses that gain",
            Reach::Computed => " without its accesses",
            Reach::Below => " apart from what is reduced",
            Reach::Results => " behind reductions",
        };
        let name = format!("move {}{accesses} to {}", operations(self.members), short(self.layout));
        match self.cycles {
            None => Candidate::new(name, None),
            Some((all, work)) => Candidate::of_terms(name, &[("work", work), ("conversions", all - work)]),
        }
    }
}

/// The regions of a module.
struct Regions<'a, 'p, 'c> {
    planner: &'a mut Planner<'p, 'c>,
    assignment: &'a Assignment<'c>,
    members: Vec<Member<'c>>,
    /// The members that values are of.
    of: FastMap<Value<'c>, usize>,
    /// The members that operands belong to.
    users: FastMap<(Op<'c>, usize), usize>,
    /// What is computed from constants, ranges and scalars alone.
    free: FastSet<Op<'c>>,
    /// Uses of each value that say what they want.
    uses: FastMap<Value<'c>, Vec<Use<'c>>>,
    /// What each operand wants, by number.
    wants: FastMap<(Op<'c>, usize), Attr<'c>>,
    /// How many uses want a value in a layout.
    counts: FastMap<(Value<'c>, Attr<'c>), i32>,
    /// What members take in layouts, as far as that was asked.
    works: RefCell<FastMap<(usize, Attr<'c>), Option<f64>>>,
    /// What reductions take more where they give their results in other layouts, as far as that was asked.
    given: RefCell<FastMap<results::Given<'c>, Option<f64>>>,
    /// Whether they may do so.
    fuses: bool,
    /// Members of moves that were tried, each as often as it was.
    gone: usize,
}

/// Cycles of work more or less, as moves count them.
fn weighed(more: f64) -> f64 {
    if more > 0.0 { more * MORE_WORK } else { more }
}

/// The tensors that `op` takes, without conversions, by number.
fn tensors<'c>(op: Op<'c>) -> impl Iterator<Item = (usize, Value<'c>)> {
    let values = op.operands().map(unconverted).enumerate();
    values.filter(|(_, value)| layout_of(*value).is_some())
}

/// The rule of `op` if its layout, that of its result or of what it stores, may change with those of its operands.
fn movable(op: Op<'_>) -> Option<Rule> {
    let rule = rule(op)?;
    let moves = match rule {
        Rule::Memory => {
            StoreOp::cast(op).is_some() || LoadOp::cast(op).is_some_and(|load| !load.is_volatile())
        }
        Rule::Same => op.is_pure() && op.num_regions() == 0,
        Rule::Reduce(_)
        | Rule::Scan
        | Rule::Broadcast
        | Rule::ExpandDims(_)
        | Rule::Trans
        | Rule::Reshape
        | Rule::Unpack(_) => true,
        _ => false,
    };
    // What is reduced together has one layout, and so has what becomes of it. (So has what is scanned together; but what scans of
    // several operands cost is not known that well: of products of quaternions a region took a layout of 0.46 of the speed.)
    let share_layout = op.num_results() <= 1 || matches!(rule, Rule::Reduce(_));
    (moves && share_layout).then_some(rule)
}

/// The layout that operand `number` of `op` has when `op` has `layout`.
fn wanted<'c>(
    op: Op<'c>,
    rule: Rule,
    number: usize,
    layout: Attr<'c>,
    planner: &Planner<'_, 'c>,
) -> Option<Attr<'c>> {
    match rule {
        Rule::Control => Some(layout),
        Rule::Reduce(axis) => sliced_parent(layout, axis),
        _ => backward(op, rule, number, layout, planner.layouts()).ok()?,
    }
}

/// `wanted`, or `have` where `rule` cannot tell the two apart.
fn or_equal<'c>(rule: Option<Rule>, shape: &[i64], have: Attr<'c>, wanted: Attr<'c>) -> Attr<'c> {
    let by_matrix = matches!(rule, Some(Rule::Broadcast | Rule::Trans | Rule::Reshape));
    if by_matrix && equivalent(have, wanted, shape) { have } else { wanted }
}

/// The layouts that loads and stores of `ops` have.
pub fn homes<'c>(
    ops: &[Op<'c>],
    assignment: &Assignment<'c>,
    layouts: &Layouts<'c>,
) -> Vec<(Op<'c>, Attr<'c>)> {
    let accesses = ops.iter().copied().filter(|op| is_access(*op));
    accesses.filter_map(|op| Some((op, layout_now(op, assignment, layouts)?))).collect()
}

fn is_access(op: Op<'_>) -> bool {
    is_one_of!(op, LoadOp | StoreOp)
}

/// The layout of the result of `op`, or of what it stores.
fn layout_now<'c>(op: Op<'c>, assignment: &Assignment<'c>, layouts: &Layouts<'c>) -> Option<Attr<'c>> {
    match op.results().next() {
        Some(result) => layout_of(result),
        None => assignment.demand(op, 1, layouts),
    }
}

/// The moves of one round that make the module of `ops`, in dominance order, cheaper; they are to be made together.
/// Regions are also tried in the layouts that their loads and stores have at `homes`. With `fuses`, reductions may give their
/// results in the layouts that these are wanted in (`results`).
pub fn moves<'c>(
    ops: &[Op<'c>],
    assignment: &Assignment<'c>,
    homes: &[(Op<'c>, Attr<'c>)],
    planner: &mut Planner<'_, 'c>,
    (fuses, told): (bool, Option<Told<'_, 'c>>),
) -> Vec<Move<'c>> {
    let mut regions = Regions::of(ops, assignment, planner, fuses);
    let mut borders = Vec::new();
    for &op in ops.iter().filter(|op| !is_conversion(**op)) {
        regions.connect(op, &mut borders);
    }
    for (op, layout) in homes {
        let operand = || regions.users.get(&(*op, 0)).copied();
        let member = op.results().next().map_or_else(operand, |result| regions.of.get(&result).copied());
        borders.extend(member.map(|member| (member, *layout)));
    }
    borders.retain(|(member, layout)| regions.members[*member].layout != *layout);
    regions.spread_functions(&mut borders);
    let in_turn = regions.reduced_in_turn();
    borders.splice(0..0, in_turn);
    let reductions = regions.reductions();
    let shared = if fuses { regions.with_shared_results() } else { Vec::new() };
    if borders.is_empty() && reductions.is_empty() && shared.is_empty() {
        return Vec::new();
    }
    let mut seeds: Vec<SmallVec<[(usize, Attr<'c>); 4]>> = vec![SmallVec::new(); regions.members.len()];
    for (member, layout) in borders {
        seeds[regions.root(member)].push((member, layout));
    }
    let mut changes: Vec<(usize, Change<'c>)> = Vec::new();
    let mut considered: Vec<(usize, Vec<Tried<'c>>)> = Vec::new();
    for (root, seeds) in seeds.iter().enumerate() {
        let mut tried = told.map(|_| Vec::new());
        changes.extend(
            regions
                .best(seeds, &[Reach::All, Reach::Cheaper, Reach::Computed], tried.as_mut())
                .map(|change| (root, change)),
        );
        considered.extend(tried.filter(|tried| !tried.is_empty()).map(|tried| (root, tried)));
    }
    let mut left = MOST_BELOW * regions.members.len();
    let reductions = reductions.into_iter().map(|(member, others)| {
        // What is scanned may move with the scan.
        let is_scan = matches!(regions.members[member].rule, Rule::Scan);
        let reaches: &[Reach] = if is_scan { &[Reach::Below, Reach::Computed] } else { &[Reach::Below] };
        (member, others, reaches)
    });
    let shared = shared.into_iter().map(|(member, layout)| {
        let results: &[Reach] = &[Reach::Results];
        (member, SmallVec::from_slice(&[layout]), results)
    });
    for (member, others, reaches) in shared.chain(reductions).collect::<Vec<_>>() {
        if left == 0 {
            break;
        }
        let mut tried = told.map(|_| Vec::new());
        let seeds: SmallVec<[_; 4]> = others.into_iter().map(|layout| (member, layout)).collect();
        let gone = regions.gone;
        let change = regions.best(&seeds, reaches, tried.as_mut());
        left = left.saturating_sub(regions.gone - gone);
        changes.extend(change.map(|change| (member, change)));
        considered.extend(tried.filter(|tried| !tried.is_empty()).map(|tried| (member, tried)));
    }
    // Errors of rounding must not decide.
    changes.sort_by_key(|(root, change)| ((change.cycles / LEAST).round() as i64, *root));
    // Of neighbours only one moves: what the other saves was counted with this one where it was.
    let mut moved = FastSet::default();
    let mut all = Vec::new();
    let mut taken: FastMap<usize, f64> = FastMap::default();
    for (root, change) in changes {
        let touched = regions.touched(&change);
        if touched.iter().all(|root| !moved.contains(root)) {
            moved.extend(touched);
            taken.insert(root, change.cycles);
            let mut members: Vec<_> = change.layouts.into_iter().collect();
            members.sort_unstable_by_key(|(member, _)| *member);
            all.extend(members.into_iter().map(|(member, layout)| {
                let Member { op, values, .. } = &regions.members[member];
                Move { op: *op, values: values.clone(), layout }
            }));
        }
    }
    for (root, tried) in considered {
        let (first, taken) = (&regions.members[root], taken.get(&root).copied());
        if let Some(told) = told.filter(|told| !told.moves || taken.is_some()) {
            let choice = choice(first.layout, &tried, taken.filter(|_| told.moves));
            choice.iter().for_each(|choice| (told.tell)(first.op, choice));
        }
    }
    all
}

/// The choice for a region whose first operation is in layout `had`, of which `tried` was considered and the move that takes
/// `taken` cycles more was made, if any.
fn choice<'c>(had: Attr<'c>, tried: &[Tried<'c>], taken: Option<f64>) -> Option<Choice> {
    let stay = Candidate::new(format!("stay in {}", short(had)), Some(0.0));
    let is_taken = |tried: &Tried<'_>| taken.is_some() && tried.cycles.map(|(cycles, _)| cycles) == taken;
    let chosen = tried.iter().position(is_taken).map_or(0, |n| n + 1);
    let candidates = std::iter::once(stay).chain(tried.iter().map(Tried::candidate));
    Choice::among("the layout of a region", Unit::More, candidates.collect(), chosen)
}

impl<'a, 'p, 'c> Regions<'a, 'p, 'c> {
    /// All that can move, each in a region of its own.
    fn of(
        ops: &[Op<'c>],
        assignment: &'a Assignment<'c>,
        planner: &'a mut Planner<'p, 'c>,
        fuses: bool,
    ) -> Self {
        let mut regions = Regions {
            planner,
            assignment,
            members: Vec::new(),
            of: FastMap::default(),
            users: FastMap::default(),
            free: FastSet::default(),
            uses: FastMap::default(),
            wants: FastMap::default(),
            counts: FastMap::default(),
            works: RefCell::default(),
            given: RefCell::default(),
            fuses,
            gone: 0,
        };
        ops.iter().for_each(|op| regions.register(*op));
        regions
    }

    /// Notes what `op` is.
    fn register(&mut self, op: Op<'c>) {
        if is_one_of!(op, ForOp | IfOp) {
            op.results().for_each(|result| self.register_carried(op, result));
            return;
        }
        let is_free = |value: Value<'c>| value.def_op().is_some_and(|op| self.free.contains(&op));
        if is_cheap(op) && tensors(op).all(|(_, value)| is_free(value)) {
            self.free.insert(op);
            return;
        }
        let Some(rule) = movable(op) else { return };
        let Some(layout) = layout_now(op, self.assignment, self.planner.layouts()) else { return };
        let operands = tensors(op).map(|(number, value)| (op, number, value)).collect();
        self.add(op, rule, op.results().collect(), operands, layout);
    }

    /// Notes `result` of a loop or a branch, and the iter_arg with it.
    fn register_carried(&mut self, op: Op<'c>, result: Value<'c>) {
        let (Some(layout), Some(from)) = (layout_of(result), incoming(result)) else { return };
        let operands = from.into_iter().map(|(op, i)| (op, i, unconverted(op.operand(i)))).collect();
        self.add(op, Rule::Control, twins(result), operands, layout);
    }

    fn add(
        &mut self,
        op: Op<'c>,
        rule: Rule,
        values: Values<'c>,
        operands: SmallVec<[(Op<'c>, usize, Value<'c>); 2]>,
        layout: Attr<'c>,
    ) {
        let parent = self.members.len();
        self.of.extend(values.iter().map(|value| (*value, parent)));
        self.users.extend(operands.iter().map(|(user, number, _)| ((*user, *number), parent)));
        self.members.push(Member { op, rule, values, operands, layout, parent });
    }

    fn root(&mut self, mut i: usize) -> usize {
        while self.members[i].parent != i {
            self.members[i].parent = self.members[self.members[i].parent].parent;
            i = self.members[i].parent;
        }
        i
    }

    /// Notes what `op` wants of its operands: those that are there so are of one region, others at the border of two.
    /// What lies on one side is tried in the layout of the other.
    fn connect(&mut self, op: Op<'c>, borders: &mut Vec<(usize, Attr<'c>)>) {
        let rule = rule(op);
        for (number, value) in tensors(op) {
            let (Some(ty), Some(have)) = (value.ty().as_tensor(), layout_of(value)) else { continue };
            let Some(wants) = self.assignment.demand(op, number, self.planner.layouts()) else { continue };
            let wants = or_equal(rule, &ty.shape(), have, wants);
            self.uses.entry(value).or_default().push(Use { user: op, number, wants });
            self.wants.insert((op, number), wants);
            *self.counts.entry((value, wants)).or_default() += 1;
            let maker = self.of.get(&value).copied();
            let user = self.users.get(&(op, number)).copied();
            match (maker, user) {
                (Some(maker), Some(user)) if wants == have => {
                    let (a, b) = (self.root(maker), self.root(user));
                    self.members[a.max(b)].parent = a.min(b);
                }
                _ if wants == have || self.is_free(value) => {}
                _ => {
                    borders.extend(maker.map(|maker| (maker, wants)));
                    if let Some(user) = user
                        && let Some(layout) = self.follows(user, have)
                    {
                        borders.push((user, layout));
                    }
                }
            }
        }
    }

    fn is_free(&self, value: Value<'c>) -> bool {
        value.def_op().is_some_and(|op| self.free.contains(&op))
    }

    /// The layout of a member one of whose operands has `operand`.
    fn follows(&self, member: usize, operand: Attr<'c>) -> Option<Attr<'c>> {
        let Member { op, rule, .. } = self.members[member];
        match rule {
            Rule::Memory | Rule::Control => Some(operand),
            _ => forward(op, rule, operand, self.planner.layouts()).ok(),
        }
    }

    /// What a member takes in all iterations in a layout.
    fn working(&self, member: usize, layout: Attr<'c>) -> Option<f64> {
        let known = self.works.borrow().get(&(member, layout)).copied();
        known.unwrap_or_else(|| {
            let Member { op, rule, .. } = self.members[member];
            let decides = match rule {
                Rule::Reduce(axis) => sliced_parent(layout, axis),
                _ => Some(layout),
            };
            let cycles = decides.and_then(|decides| Some(weight(op) * self.planner.working(op, decides)?));
            self.works.borrow_mut().insert((member, layout), cycles);
            cycles
        })
    }

    /// Of each region the function that takes most beyond what it would without replication, in the layout that has none. Neighbours
    /// may all want what is computed with copies in several warps, as operands of dots are.
    fn spread_functions(&mut self, borders: &mut Vec<(usize, Attr<'c>)>) {
        let mut found: FastMap<usize, (f64, usize, Attr<'c>)> = FastMap::default();
        for member in 0..self.members.len() {
            let Some((saved, layout)) = self.without_copies(member) else { continue };
            let most = found.entry(self.root(member)).or_insert((saved, member, layout));
            if saved > most.0 {
                *most = (saved, member, layout);
            }
        }
        let mut all: Vec<_> = found.into_values().map(|(_, member, layout)| (member, layout)).collect();
        all.sort_unstable_by_key(|(member, _)| *member);
        borders.extend(all);
    }

    /// What a function saves in a layout without replication, which takes at most half as long; and the layout.
    fn without_copies(&self, member: usize) -> Option<(f64, Attr<'c>)> {
        let Member { op, ref values, layout: had, .. } = self.members[member];
        if Dialect::of(op) != Some(Dialect::Math) && !is_one_of!(op, ExternElementwiseOp) {
            return None;
        }
        let (layouts, ty) = (self.planner.layouts(), values.first()?.ty().as_tensor()?);
        let blocked = layouts.machine.at(op).ok()?.default_blocked(&ty.shape());
        let layout = layouts.blocked(blocked).ok()?;
        let (takes, there) = (self.working(member, had)?, self.working(member, layout)?);
        (2.0 * there <= takes && takes > LEAST).then_some((takes - there, layout))
    }

    /// Reductions that take less in other layouts than in those of what they reduce, those that save most first, and these layouts,
    /// as their results have them: those in which other uses want what is reduced, and blocked ones whose threads go along the other
    /// dimensions first, with one element each or as many as they hold along them, or along the first one, as rows that are sorted want it in all
    /// steps. What is added up over a loop costs
    /// nothing in it once threads exchange data behind it.
    fn reductions(&self) -> Vec<(usize, SmallVec<[Attr<'c>; 4]>)> {
        let mut found: Vec<_> = (0..self.members.len()).filter_map(|member| self.apart(member)).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.into_iter().map(|(_, member, layouts)| (member, layouts)).collect()
    }

    /// Cycles that a reduction saves at most, itself, and the layouts; `None` where there are none.
    fn apart(&self, member: usize) -> Option<(f64, usize, SmallVec<[Attr<'c>; 4]>)> {
        let Member { op, rule, ref operands, layout: had, .. } = self.members[member];
        let axis = match rule {
            Rule::Reduce(axis) => axis,
            Rule::Scan => return self.scanned(member),
            _ => return None,
        };
        let [(_, number, value)] = operands[..] else { return None };
        let (ty, layouts) = (value.ty().as_tensor()?, self.planner.layouts());
        if self.wants.get(&(op, number)).copied() != ty.encoding() || is_added_up(op) {
            return None;
        }
        let (shape, machine) = (ty.shape(), layouts.machine.at(op).ok()?);
        if shape.len() < 2 {
            return None;
        }
        let others = (0..shape.len()).rev().filter(|d| *d != axis);
        let apart: Vec<usize> = others.chain([axis]).collect();
        let rows: Vec<usize> = [0].into_iter().chain((1..shape.len()).rev()).collect();
        let ones = vec![1; shape.len()];
        let held = ty.encoding().and_then(|layout| held_along(layout, axis));
        let held = held.map(|sizes| (sizes, apart.clone()));
        let along = [Some((ones.clone(), apart)), Some((ones, rows)).filter(|_| axis > 0), held];
        let blocked = along
            .into_iter()
            .flatten()
            .filter_map(|(sizes, order)| layouts.blocked(machine.blocked(&shape, &sizes, &order)).ok());
        let uses = self.uses.get(&value).into_iter().flatten().map(|of| of.wants).take(NEIGHBOURS);
        let takes = self.working(member, had)?;
        let (mut least, mut found) = (takes, SmallVec::new());
        for layout in blocked.chain(uses).filter_map(|layout| layouts.slice(axis, layout).ok()) {
            if layout == had || found.contains(&layout) {
                continue;
            }
            if let Some(there) = self.working(member, layout).filter(|there| *there < takes) {
                least = least.min(there);
                found.push(layout);
            }
        }
        (!found.is_empty()).then_some((takes - least, member, found))
    }

    /// The same of a scan: blocked layouts in which threads hold several elements along its dimension, and lanes go along that
    /// one first. Where threads hold whole lines a plan goes by itself, if it gains.
    fn scanned(&self, member: usize) -> Option<(f64, usize, SmallVec<[Attr<'c>; 4]>)> {
        let Member { op, layout: had, .. } = self.members[member];
        let (shape, layouts) = (op.operand(0).ty().as_tensor()?.shape(), self.planner.layouts());
        let axis = ScanOp::cast(op)?.axis() as usize;
        let (machine, size) = (layouts.machine.at(op).ok()?, *shape.get(axis)? as u64);
        let others = (0..shape.len()).rev().filter(|d| *d != axis);
        let order: Vec<usize> = [axis].into_iter().chain(others).collect();
        let takes = self.working(member, had)?;
        let mut found: SmallVec<[(f64, Attr<'c>); 5]> = SmallVec::new();
        for held in SCANNED.iter().copied().filter(|held| *held <= size) {
            let mut sizes = vec![1; shape.len()];
            sizes[axis] = held;
            let Ok(layout) = layouts.blocked(machine.blocked(&shape, &sizes, &order)) else { continue };
            let there = self.working(member, layout).filter(|there| *there < takes && layout != had);
            found.extend(there.map(|there| (there, layout)));
        }
        // Those that take least come first: not all are tried.
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let least = found.first()?.0;
        Some((takes - least, member, found.into_iter().map(|(_, layout)| layout).collect()))
    }

    /// The cheapest of the moves that begin with one member of a region in another layout, if one costs less
    /// than none, and reach as far as one of `reaches`. Where they are wanted, those that were tried are added to `considered`.
    fn best(
        &mut self,
        seeds: &[(usize, Attr<'c>)],
        reaches: &[Reach],
        mut considered: Option<&mut Vec<Tried<'c>>>,
    ) -> Option<Change<'c>> {
        let mut best: Option<Change<'c>> = None;
        let mut begun: SmallVec<[(usize, Attr<'c>); 8]> = SmallVec::new();
        // Seeds may lead to the same.
        let mut tried: SmallVec<[(usize, usize, Attr<'c>); 8]> = SmallVec::new();
        for seed in seeds {
            if begun.len() == NEIGHBOURS {
                break;
            }
            if begun.contains(seed) {
                continue;
            }
            begun.push(*seed);
            for &reach in reaches {
                let layouts = self.spread(*seed, reach);
                self.gone += layouts.len();
                let Some(first) = layouts.iter().min_by_key(|(member, _)| **member) else { continue };
                let key = (layouts.len(), *first.0, *first.1);
                if tried.contains(&key) {
                    continue;
                }
                tried.push(key);
                let more = self.more(&layouts);
                if let Some(considered) = considered.as_deref_mut() {
                    let work = self.more_work(&layouts);
                    let cycles = more.zip(work);
                    considered.push(Tried { layout: seed.1, reach, members: layouts.len(), cycles });
                }
                if let Some(cycles) = more.filter(|cycles| *cycles < -LEAST)
                    && best.as_ref().is_none_or(|best| cycles < best.cycles - LEAST)
                {
                    best = Some(Change { layouts, cycles });
                }
            }
        }
        best
    }

    /// Whether a member can have a layout.
    fn can_have(&self, member: usize, layout: Attr<'c>) -> bool {
        let Member { op, rule, ref operands, .. } = self.members[member];
        let fits = |number| wanted(op, rule, number, layout, self.planner).is_some();
        operands.iter().all(|(_, number, _)| fits(*number)) && self.working(member, layout).is_some()
    }

    /// Whether a move that reaches so far gives a member another layout.
    fn reaches(&self, member: usize, layout: Attr<'c>, reach: Reach) -> bool {
        match reach {
            Reach::All => true,
            Reach::Cheaper | Reach::Results => {
                !is_access(self.members[member].op) || self.is_cheaper(member, layout)
            }
            Reach::Computed | Reach::Below => !is_access(self.members[member].op),
        }
    }

    /// Whether a load or store takes less in a layout than where it is, what is loaded or stored being converted then.
    fn is_cheaper(&self, member: usize, layout: Attr<'c>) -> bool {
        let Member { op, layout: had, .. } = self.members[member];
        let value = op.results().next().unwrap_or_else(|| op.operand(1));
        let (from, to) = if StoreOp::cast(op).is_some() { (layout, had) } else { (had, layout) };
        let ty = value.ty().as_tensor().and_then(|ty| with_layout(ty, from)).and_then(Type::as_tensor);
        let Some(converted) = ty.and_then(|ty| converting(ty, to, self.planner.layouts())) else {
            return true;
        };
        let working = self.working(member, layout).zip(self.working(member, had));
        working.is_some_and(|(there, here)| there < here + weight(op) * converted)
    }

    /// The layouts of a region's members when one of them is wanted in another layout: the others follow, as far as they
    /// can.
    fn spread(&self, seed: (usize, Attr<'c>), reach: Reach) -> FastMap<usize, Attr<'c>> {
        let (mut layouts, mut stays) = (FastMap::default(), FastSet::default());
        let mut open = vec![seed];
        while let Some((at, layout)) = open.pop() {
            let Member { op, rule, layout: had, ref values, ref operands, .. } = self.members[at];
            if layout == had || layouts.contains_key(&at) || stays.contains(&at) {
                continue;
            }
            let moves = self.can_have(at, layout) && self.reaches(at, layout, reach);
            if moves {
                layouts.insert(at, layout);
            } else if is_access(op) {
                // What is loaded is converted for all uses.
                stays.insert(at);
            } else {
                continue;
            }
            let above = moves && !(reach == Reach::Below && at == seed.0);
            for (user, number, value) in operands.iter().filter(|_| above) {
                if let Some(maker) = self.of.get(value)
                    && !(reach == Reach::Results && matches!(self.members[*maker].rule, Rule::Reduce(_)))
                    && self.wants.get(&(*user, *number)).copied() == layout_of(*value)
                    && let Some(wants) = wanted(op, rule, *number, layout, self.planner)
                {
                    open.push((*maker, wants));
                }
            }
            for of in values.iter().filter_map(|value| self.uses.get(value)).flatten() {
                if of.wants == had
                    && let Some(user) = self.users.get(&(of.user, of.number))
                    && let Some(follows) = self.follows(*user, layout)
                {
                    open.push((*user, follows));
                }
            }
        }
        layouts
    }

    /// The layout of a value when members have other `layouts`.
    fn layout_then(&self, value: Value<'c>, layouts: &FastMap<usize, Attr<'c>>) -> Option<Attr<'c>> {
        let moved = self.of.get(&value).and_then(|member| layouts.get(member).copied());
        moved.or_else(|| layout_of(value))
    }

    /// What a use wants when members have other `layouts`.
    fn wants_then(
        &self,
        of: &Use<'c>,
        value: Value<'c>,
        layouts: &FastMap<usize, Attr<'c>>,
    ) -> Option<Attr<'c>> {
        let user = self.users.get(&(of.user, of.number));
        let wants = match user.and_then(|user| Some((*user, *layouts.get(user)?))) {
            Some((user, layout)) => {
                let Member { op, rule, .. } = self.members[user];
                wanted(op, rule, of.number, layout, self.planner)?
            }
            None => of.wants,
        };
        Some(or_equal(
            rule(of.user),
            &value.ty().as_tensor()?.shape(),
            self.layout_then(value, layouts)?,
            wants,
        ))
    }

    /// Cycles more when members have other `layouts`; `None` where something is impossible then.
    fn more(&mut self, layouts: &FastMap<usize, Attr<'c>>) -> Option<f64> {
        let mut cycles = 0.0;
        let mut changed: FastMap<(Value<'c>, Attr<'c>), i32> = FastMap::default();
        for (member, layout) in layouts {
            let had = self.members[*member].layout;
            cycles += weighed(self.working(*member, *layout)? - self.working(*member, had)?);
            for value in self.members[*member].values.clone() {
                cycles += self.used(value, layouts)?;
            }
            for (user, number, value) in &self.members[*member].operands {
                if self.of.get(value).is_some_and(|member| layouts.contains_key(member)) {
                    continue;
                }
                let Some(wants) = self.wants.get(&(*user, *number)).copied() else { continue };
                let of = Use { user: *user, number: *number, wants };
                *changed.entry((*value, wants)).or_default() -= 1;
                *changed.entry((*value, self.wants_then(&of, *value, layouts)?)).or_default() += 1;
            }
        }
        for ((value, wants), more) in changed {
            let before = self.counts.get(&(value, wants)).copied().unwrap_or(0);
            let all = self.uses.get(&value).map_or(0, Vec::len) as i32;
            match (before, before + more) {
                (before, after) if before > 0 && after > 0 && (before == all) != (after == all) => {
                    cycles += self.had_by(value, wants, after == all)?;
                    cycles -= self.had_by(value, wants, before == all).unwrap_or(0.0);
                }
                (..=0, after @ 1..) => cycles += self.had_by(value, wants, after == all)?,
                (before @ 1.., ..=0) => {
                    cycles -= self.had_by(value, wants, before == all).unwrap_or(0.0);
                }
                _ => {}
            }
        }
        Some(cycles)
    }

    /// Cycles of having a value, which stays where it is, in a layout that all of its uses want, or some.
    fn had_by(&mut self, value: Value<'c>, layout: Attr<'c>, all: bool) -> Option<f64> {
        let had = self.had(value, layout);
        match layout_of(value).filter(|have| all && *have != layout) {
            Some(have) => fewer(had, self.giving(value, have, layout)),
            None => had,
        }
    }

    /// The part of that for what members do themselves.
    fn more_work(&self, layouts: &FastMap<usize, Attr<'c>>) -> Option<f64> {
        let more = layouts.iter().map(|(member, layout)| {
            Some(weighed(
                self.working(*member, *layout)? - self.working(*member, self.members[*member].layout)?,
            ))
        });
        more.sum()
    }

    /// Cycles of having a value, which stays where it is, in a layout.
    fn had(&mut self, value: Value<'c>, layout: Attr<'c>) -> Option<f64> {
        self.planner.plan(Request { value, layout, moves: true }).1
    }

    /// Cycles more for the uses of a value of a member that moves.
    fn used(&mut self, value: Value<'c>, layouts: &FastMap<usize, Attr<'c>>) -> Option<f64> {
        let ty = value.ty().as_tensor()?;
        let then = self.layout_then(value, layouts)?;
        let (mut before, mut after): (SmallVec<[Attr<'c>; 4]>, SmallVec<[Attr<'c>; 4]>) = Default::default();
        // Whether a use wants it where it is, or several want it in different layouts.
        let mut stays = false;
        for of in self.uses.get(&value).into_iter().flatten() {
            let wants = self.wants_then(of, value, layouts)?;
            stays |= Some(of.wants) == ty.encoding() || before.iter().any(|other| *other != of.wants);
            if Some(of.wants) != ty.encoding() && !before.contains(&of.wants) {
                before.push(of.wants);
            }
            if wants != then && !after.contains(&wants) {
                after.push(wants);
            }
        }
        let mut cycles = 0.0;
        for wants in before {
            cycles -= self.had_by(value, wants, !stays).unwrap_or(0.0);
        }
        let ty = with_layout(ty, then)?.as_tensor()?;
        for wants in after {
            cycles += weight_of(value) * converting(ty, wants, self.planner.layouts())?;
        }
        Some(cycles)
    }

    /// The regions that a change is about: those that move, and those that they border on.
    fn touched(&mut self, change: &Change<'c>) -> Vec<usize> {
        let mut members: Vec<usize> = Vec::new();
        for member in change.layouts.keys() {
            let Member { values, operands, .. } = &self.members[*member];
            members.push(*member);
            members.extend(operands.iter().filter_map(|(_, _, value)| self.of.get(value)));
            let uses = values.iter().filter_map(|value| self.uses.get(value)).flatten();
            members.extend(uses.filter_map(|of| self.users.get(&(of.user, of.number))));
        }
        members.into_iter().map(|member| self.root(member)).collect()
    }
}

/// The smaller of two numbers of cycles, of those that are possible.
fn fewer(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The elements that a thread holds along each dimension in a blocked layout, one along `axis`; `None` where there is one along all.
fn held_along(layout: Attr<'_>, axis: usize) -> Option<Vec<u64>> {
    let Ok(Encoding::Blocked(blocked)) = encoding(layout) else { return None };
    let mut sizes = blocked.size_per_thread;
    *sizes.get_mut(axis)? = 1;
    sizes.iter().any(|size| *size > 1).then_some(sizes)
}
