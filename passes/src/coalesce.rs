//! `--tritongpu-coalesce`: a layout for each access to memory.
//!
//! For each access the analysis of its pointers says which dimension runs
//! fastest, and how many elements one thread can access at once: as many as
//! are contiguous (over several dimensions where strides fit), aligned, share
//! one mask value, and fit in 128 bits. Accesses of one shape and order that
//! exchange values share a layout, so that nothing between them is converted,
//! with the vector that costs all of them together least: narrow elements want
//! long vectors, but wide ones then leave gaps between the lanes of each
//! instruction, and what dots read is stored to shared memory at its own width. Indices and masks that are computed from
//! positions tie no accesses together. Where values are reduced, scanned or gathered along a
//! dimension, or meet what was loaded for some of the dimensions and is repeated along the others, warps are placed so
//! that this costs least.

mod stencils;

use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::choice::{Candidate, Choice, Unit};
use crate::ir_util::{
    convert_operand, for_each_edge, is_dot, is_loop, layout_of, operations_in_dominance_order, set_layout,
    with_layout,
};
use crate::machine::{Layouts, Machine, error};
use crate::objective::{self, arithmetic, weight};
use crate::plans::{self, AccessFacts, Limit};
use crate::rules::{Rule, rule};
use linear_layout::target::{TargetDesc, Touched};
use linear_layout::{Dim, Encoding, LinearLayout};
use mlir_host::asm::Reported;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Op, TensorType, Value};
use mlir_host::is_one_of;
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::rewrite::{IrRewriter, create};
use mlir_host::upstream::{Dialect, DivSIOp, DivUIOp, RemSIOp, RemUIOp};
use smallvec::SmallVec;
use std::borrow::Cow;
use ttopt_dialect::tt::ops::{
    BroadcastOp, DescriptorLoadOp, ExpandDimsOp, ExternElementwiseOp, GatherOp, LoadOp, ReduceOp, ScanOp,
};
use ttopt_dialect::ttg::attrs::encoding;
use ttopt_dialect::ttg::infer;
use ttopt_dialect::ttg::layout::{equivalent, to_linear_layout};

/// The pass.
pub static TRITONGPU_COALESCE: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    options: &[PassOption {
        name: "explain",
        description: "report for each access to memory what was chosen and why, as a remark",
        kind: OptionKind::Bool(false),
    }],
    ..PassDef::new(
        "tritongpu-coalesce",
        "Choose a layout for each access to memory from contiguity, alignment and element width",
        run,
    )
};

struct Access<'c> {
    op: Op<'c>,
    shape: SmallVec<[i64; 4]>,
    facts: AccessFacts,
    vector: u64,
    limit: Limit,
    /// Coordinates from which on the mask is false, where there are any.
    masked_from: Option<SmallVec<[u64; 4]>>,
    /// Whether the accesses of its loop have addresses of more places than a thread has registers for.
    is_crowded: bool,
    /// Whether single elements that the loads of its loop give, each in a register of its own, take many of a thread's.
    is_scattered: bool,
    /// Whether it is of a stencil, to whose rows the loop moves it.
    is_stencil: bool,
}

impl<'c> Access<'c> {
    /// One without a mask of which nothing is known of others around it.
    fn new(op: Op<'c>, shape: SmallVec<[i64; 4]>, facts: AccessFacts, (vector, limit): (u64, Limit)) -> Self {
        let (is_crowded, is_scattered, is_stencil) = (false, false, false);
        Self { op, shape, facts, vector, limit, masked_from: None, is_crowded, is_scattered, is_stencil }
    }
}

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let layouts = Layouts::new(module.context(), Machine::of(module)?);
    let ops = operations_in_dominance_order(module);
    let analysis = AxisInfoAnalysis::new(module);
    let mut accesses: Vec<Access<'_>> =
        ops.iter().filter_map(|op| access(*op, &analysis, &layouts.machine)).collect();
    find_crowds(&mut accesses, &layouts.machine);
    stencils::find(&mut accesses, &ops, &layouts.machine);
    let (groups, mut work) = groups(&ops, &accesses, layouts.machine.target.as_ref());
    if let Some(target) = &layouts.machine.target {
        find_equal(&accesses, &groups, &mut work, &analysis, target);
    }
    let members = members(&accesses, &groups);
    let vectors: Vec<u64> =
        members.iter().zip(&work).map(|(members, work)| group_vector(members, work, &layouts)).collect();
    let mut rewriter = IrRewriter::new(module.context());
    let mut chosen = vec![None; vectors.len()];
    let explains = options.bool("explain");
    for (access, group) in accesses.iter().zip(&groups) {
        let vector = vectors[*group];
        // Accesses of a group differ in nothing that the layout depends on.
        let layout = match chosen[*group] {
            Some(layout) => layout,
            None => {
                let (members, work) = (&members[*group], &work[*group]);
                if explains {
                    let choices = [
                        vector_choice(members, work, vector, &layouts),
                        warps_choice(access, vector, work, &layouts),
                    ];
                    choices.into_iter().flatten().for_each(|choice| access.op.remark(choice.to_string()));
                }
                layout_for(access, vector, work, &layouts).map_err(|reason| error(access.op, reason))?
            }
        };
        chosen[*group] = Some(layout);
        if explains {
            access.op.remark(explain(access, vector, layout));
        }
        apply(&mut rewriter, access, layout)?;
    }
    let target = layouts.machine.target.as_ref();
    if target.is_some_and(|target| target.primitives.tensor_data_mover) {
        for op in ops.into_iter().filter(|op| DescriptorLoadOp::cast(*op).is_some()) {
            wide_block(&mut rewriter, op, &layouts)?;
        }
    }
    Ok(())
}

/// Gives a block that a tensor operation moves to shared memory the layout in which threads read from there the most at once, along its rows.
fn wide_block<'c>(rewriter: &mut IrRewriter<'c>, load: Op<'c>, layouts: &Layouts<'c>) -> PassResult {
    let Some(tensor) = load.result(0).ty().as_tensor() else { return Ok(()) };
    let shape = tensor.shape();
    let machine = &layouts.machine;
    let row = shape.last().map_or(1, |size| size.unsigned_abs());
    let bits = u64::from(tensor.element().bits().unwrap_or(8).max(8));
    let all: u64 = shape.iter().map(|size| size.unsigned_abs()).product();
    let each = (all / (machine.threads_per_warp * machine.num_warps).max(1)).max(1);
    let mut sizes = vec![1; shape.len()];
    if let Some(last) = sizes.last_mut() {
        *last = (machine.vector_bits() / bits).max(1).min(row).min(each);
    }
    let order: Vec<usize> = (0..shape.len()).rev().collect();
    let layout = layouts.blocked(machine.blocked(&shape, &sizes, &order)).map_err(|why| error(load, why))?;
    if layout_of(load.result(0)).is_none_or(|old| equivalent(old, layout, &shape)) {
        return Ok(());
    }
    lay_out_results(rewriter, load, layout)
}

fn access<'c>(op: Op<'c>, analysis: &AxisInfoAnalysis<'c>, machine: &Machine) -> Option<Access<'c>> {
    if rule(op) != Some(Rule::Memory) {
        return None;
    }
    let facts = AccessFacts::of(op, analysis)?;
    let shape = op.operand(0).ty().as_tensor()?.shape();
    let (vector, limit) = facts.vector(machine.vector_bits());
    let most = machine.target.as_ref().map_or(1, |target| plans::most_elems(op, target));
    let (vector, limit) = if vector <= most { (vector, limit) } else { (most, Limit::Atomic) };
    let masked_from = plans::masked_coordinates(op, analysis);
    Some(Access { masked_from, ..Access::new(op, shape, facts, (vector, limit)) })
}

/// The layout in which one access, of which `facts` are known, takes the fewest instructions and lines.
///
/// # Errors
/// When there is no such layout.
pub(crate) fn layout_alone<'c>(
    op: Op<'c>,
    facts: AccessFacts,
    layouts: &Layouts<'c>,
) -> Result<Attr<'c>, String> {
    let shape = op.operand(0).ty().as_tensor().map(TensorType::shape).ok_or("accesses no tensor")?;
    let vector = facts.vector(layouts.machine.vector_bits());
    let access = Access::new(op, shape, facts, vector);
    let work = Work::default();
    layout_for(&access, group_vector(&[&access], &work, layouts), &work, layouts)
}

/// Accesses that exchange values have the same number, if they also agree on
/// shape and order; and for each number what else is done with those values.
fn groups<'c>(
    ops: &[Op<'c>],
    accesses: &[Access<'c>],
    target: Option<&TargetDesc>,
) -> (Vec<usize>, Vec<Work<'c>>) {
    let mut sets = Sets::default();
    let indices = indices(ops);
    let flexible = |value: Value<'c>| value.ty().as_tensor().is_none() || indices.contains(&value);
    for &op in ops {
        let rule = rule(op);
        if matches!(rule, Some(Rule::Same | Rule::Scan | Rule::Memory | Rule::Convert)) {
            // Accesses through the same pointers go together, whatever else is made of their indices.
            let pointers = op.operands().next().filter(|_| rule == Some(Rule::Memory));
            let values = op.operands().chain(op.results()).filter(|value| !flexible(*value));
            let mut tensors = pointers.into_iter().chain(values);
            if let Some(first) = tensors.next() {
                tensors.for_each(|other| sets.union(first, other));
            }
        }
        for_each_edge(op, &mut |operand, target| {
            let value = op.operand(operand);
            if !flexible(value) {
                sets.union(value, target);
            }
        });
    }
    let mut numbers = FastMap::default();
    // Values of a set that have one shape, whatever the order of the accesses.
    let mut alike: FastMap<(usize, Shape), Vec<usize>> = FastMap::default();
    let groups: Vec<usize> = accesses
        .iter()
        .map(|access| {
            let key = (sets.find(access.op.operand(0)), access.shape.clone());
            let numbers_of_key = alike.entry(key.clone()).or_default();
            let next = numbers.len();
            let number = *numbers.entry((key, access.facts.order.clone())).or_insert(next);
            if number == next {
                numbers_of_key.push(number);
            }
            number
        })
        .collect();
    let mut work: Vec<Work<'c>> = vec![Work::default(); numbers.len()];
    let vectors: FastMap<Op<'c>, u64> = accesses.iter().map(|access| (access.op, access.vector)).collect();
    let mut seen = FastSet::default();
    for &op in ops {
        // A tensor of fewer dimensions need not be repeated to be met: the dimension that it lacks may have one place.
        let Some(ty) =
            op.results().next().filter(|_| is_one_of!(op, BroadcastOp | ExpandDimsOp)).map(Value::ty)
        else {
            continue;
        };
        let (Some(ty), Some(from)) = (ty.as_tensor(), op.operand(0).ty().as_tensor()) else { continue };
        let Some(numbers) = alike.get(&(sets.find(op.result(0)), ty.shape())) else { continue };
        let from = ExpandDimsOp::cast(op).map_or(from, |_| ty);
        let dims: SmallVec<[usize; 2]> = (0..from.rank()).filter(|d| from.shape()[*d] != 1).collect();
        let (loads, functions) = made_of(op.operand(0));
        if let Some(target) = target {
            for function in functions {
                for &number in numbers.iter().filter(|number| seen.insert((**number, function))) {
                    let cycles = weight(function) * arithmetic::cycles(function, &target.cost);
                    work[number].functions.push((dims.clone(), cycles));
                }
            }
        }
        for load in loads {
            let vector = vectors.get(&load).copied().unwrap_or(1);
            for &number in numbers.iter().filter(|number| seen.insert((**number, load))) {
                work[number].repeated.push(Repeated { dims: dims.clone(), vector, weight: weight(load) });
            }
        }
    }
    for (access, number) in accesses.iter().zip(&groups) {
        let Some(from) = &access.masked_from else { continue };
        let masked = &mut work[*number].masked;
        match masked.iter_mut().find(|known| known.0 == *from) {
            Some(known) => known.1 += weight(access.op),
            None => masked.push((from.clone(), weight(access.op))),
        }
    }
    for (i, value) in ops.iter().filter(|op| is_dot(**op)).flat_map(|op| op.operands().take(2).enumerate()) {
        let Some(ty) = value.ty().as_tensor() else { continue };
        let bytes = u64::from(ty.element().bits().unwrap_or(0).div_ceil(8));
        let Some(depth) = ty.rank().checked_sub(1 + i) else { continue };
        for &number in alike.get(&(sets.find(value), ty.shape())).into_iter().flatten() {
            work[number].operand = work[number].operand.max(bytes);
            // What is multiplied as 16-bit floats may cross shared memory as such.
            let multiplied = target.and_then(|target| plans::dot_type(ty.element(), target).ok());
            let depth = (depth, multiplied.map_or(bytes, |ty| u64::from(ty.bits() / 8)));
            if !work[number].depths.contains(&depth) {
                work[number].depths.push(depth);
            }
        }
    }
    // What is given another shape is worked along in that one.
    let mut views: FastMap<(usize, Shape), SmallVec<[usize; 2]>> = FastMap::default();
    for &op in ops {
        if rule(op) != Some(Rule::Reshape) {
            continue;
        }
        let (from, to) = (op.operand(0), op.result(0));
        for (accessed, other) in [(from, to), (to, from)] {
            let (Some(shape), Some(view)) = (accessed.ty().as_tensor(), other.ty().as_tensor()) else {
                continue;
            };
            let Some(numbers) = alike.get(&(sets.find(accessed), shape.shape())) else { continue };
            let known = views.entry((sets.find(other), view.shape())).or_default();
            for number in numbers {
                if !known.contains(number) {
                    known.push(*number);
                }
            }
        }
    }
    let mut places = FastMap::default();
    for &op in ops {
        if !is_one_of!(op, ReduceOp | ScanOp | GatherOp) {
            continue;
        }
        let Some(ty) = op.operand(0).ty().as_tensor() else { continue };
        let key = (sets.find(op.operand(0)), ty.shape());
        let own = alike.get(&key).into_iter().flatten().map(|number| (*number, false));
        let viewed = views.get(&key).into_iter().flatten().map(|number| (*number, true));
        for (number, viewed) in own.chain(viewed) {
            let along = &mut work[number].along;
            let place = *places.entry((number, viewed, plans::kind_along(op))).or_insert(along.len());
            match along.get_mut(place) {
                Some(along) => along.weight += weight(op),
                None => {
                    let reshaped = viewed.then(|| key.1.clone());
                    along.push(Along { op, weight: weight(op), reshaped });
                }
            }
        }
    }
    (groups, work)
}

/// Pointers, masks and other integers that are computed from positions alone: a copy of them in another layout costs little,
/// so they tie no accesses together. What a loop hands on counts by what it begins with.
fn indices<'c>(ops: &[Op<'c>]) -> FastSet<Value<'c>> {
    let mut indices = FastSet::default();
    let is_float = |value: Value<'_>| value.ty().element().float_kind().is_some();
    for &op in ops {
        let rule = rule(op);
        let from_positions =
            matches!(rule, Some(Rule::Same | Rule::Broadcast | Rule::ExpandDims(_) | Rule::Convert));
        let mut operands = op.operands().filter(|value| value.ty().as_tensor().is_some());
        let is_source = rule == Some(Rule::Source);
        if is_source || from_positions && operands.all(|value| indices.contains(&value)) {
            indices.extend(op.results().filter(|value| is_source || !is_float(*value)));
        }
        for_each_edge(op, &mut |operand, target| {
            if indices.contains(&op.operand(operand)) && !is_float(target) {
                indices.insert(target);
            }
        });
    }
    indices
}

/// Operations along a dimension that cost the same.
#[derive(Clone)]
struct Along<'c> {
    op: Op<'c>,
    /// The sum of their weights.
    weight: f64,
    /// The shape that values are given before, if it is another one, as sorts do.
    reshaped: Option<Shape>,
}

impl Along<'_> {
    /// Cycles of the operations where the values of the group are in `layout`; `None` where they cannot be done.
    fn cost(&self, layout: &LinearLayout, target: &TargetDesc) -> Option<f64> {
        let seen = match &self.reshaped {
            None => Cow::Borrowed(layout),
            Some(shape) => {
                let own: Option<Shape> =
                    layout.out_dims().map(|dim| Some(layout.out_size(dim)? as i64)).collect();
                Cow::Owned(infer::reshape_layout(layout, &own?, shape).ok()?)
            }
        };
        Some(self.weight * plans::cost_along(self.op, &seen, target).ok()?)
    }
}

/// What is done with the values of a group besides accesses.
#[derive(Clone, Default)]
struct Work<'c> {
    /// Operations along a dimension, one for all that cost the same.
    along: Vec<Along<'c>>,
    /// Loads whose results are repeated.
    repeated: Vec<Repeated>,
    /// Special functions of values that are repeated along all other dimensions than these, and cycles of a warp for each element.
    functions: Vec<(SmallVec<[usize; 2]>, f64)>,
    /// Bytes of an element that dots read, which may be wider than what is loaded; none without dots.
    operand: u64,
    /// Dimensions along which dots sum over products of them, and bytes of an element as it is multiplied.
    depths: SmallVec<[(usize, u64); 2]>,
    /// What addresses and masks are computed of that neighbours have alike: how many, and cycles of a warp for each element.
    equal: Vec<(u64, f64)>,
    /// Accesses of which the mask is false from some coordinates on, one for all with the same, with the sum of their weights.
    masked: Vec<(SmallVec<[u64; 4]>, f64)>,
}

impl<'c> Work<'c> {
    /// The reductions of those values.
    fn reductions(&self) -> impl Iterator<Item = &Along<'c>> {
        self.along.iter().filter(|along| ReduceOp::cast(along.op).is_some())
    }

    /// Whether warps are as good along one dimension as along another.
    fn is_nothing(&self) -> bool {
        self.along.is_empty()
            && self.repeated.is_empty()
            && self.functions.is_empty()
            && self.masked.is_empty()
    }

    fn reduces(&self) -> bool {
        self.reductions().next().is_some()
    }

    /// Scans and gathers of those values in their own shape, for which neighbours in a thread save shuffles.
    fn in_order(&self) -> impl Iterator<Item = &Along<'c>> {
        self.along.iter().filter(|along| along.reshaped.is_none() && ReduceOp::cast(along.op).is_none())
    }
}

/// A load whose result is repeated along all other dimensions than `dims`.
#[derive(Clone)]
struct Repeated {
    dims: SmallVec<[usize; 2]>,
    /// Neighbours along the last of them that one access takes at most.
    vector: u64,
    weight: f64,
}

impl Repeated {
    /// Cycles of the load if the values that it meets are in `layout`: what several registers meet alike is loaded once.
    fn cost(&self, layout: &LinearLayout, machine: &Machine, target: &TargetDesc) -> f64 {
        let (elements, together) = distinct(layout, &self.dims);
        let accesses = elements / together.min(self.vector).max(1);
        self.weight * (machine.num_warps * accesses) as f64 * (target.cost.request + 1.0)
    }
}

/// How many different places along `dims` the registers of a thread have in `layout`, and how many of them are neighbours along the
/// last one.
fn distinct(layout: &LinearLayout, dims: &[usize]) -> (u64, u64) {
    let steps = (0..layout.in_bits(Dim::REGISTER)).filter_map(|bit| layout.basis_coords(Dim::REGISTER, bit));
    let (mut elements, mut together) = (1, 1);
    for step in steps {
        let moves = |d: &usize| step.get(*d).is_some_and(|step| *step != 0);
        if dims.iter().any(moves) {
            elements *= 2;
            let last = dims.last().and_then(|d| step.get(*d)).copied();
            together *= if last == Some(together) { 2 } else { 1 };
        }
    }
    (elements, together)
}

/// The loads that `value`, a tensor of fewer elements, is computed from element by element, and special functions that it takes.
fn made_of<'c>(value: Value<'c>) -> (Vec<Op<'c>>, Vec<Op<'c>>) {
    let (mut open, mut seen, mut loads) = (vec![value], FastSet::default(), Vec::new());
    let mut functions = Vec::new();
    while let Some(value) = open.pop().filter(|_| seen.len() < MOST_VALUES) {
        let Some(op) = value.def_op().filter(|_| seen.insert(value)) else { continue };
        if LoadOp::cast(op).is_some() {
            loads.push(op);
        } else if matches!(rule(op), Some(Rule::Same | Rule::ExpandDims(_) | Rule::Convert)) {
            let is_function =
                Dialect::of(op) == Some(Dialect::Math) || ExternElementwiseOp::cast(op).is_some();
            functions.extend(Some(op).filter(|_| is_function));
            open.extend(op.operands().filter(|operand| operand.ty().as_tensor().is_some()));
        }
    }
    (loads, functions)
}

/// Values that are looked at for the loads of one broadcast, so that long chains with many broadcasts stay linear.
const MOST_VALUES: usize = 64;

/// Notes what the addresses and masks of each group are computed of that neighbours along its fastest dimension have alike: a thread
/// computes it once for those that it holds (`Lower::equal_registers`).
fn find_equal<'c>(
    accesses: &[Access<'c>],
    groups: &[usize],
    work: &mut [Work<'c>],
    analysis: &AxisInfoAnalysis<'c>,
    target: &TargetDesc,
) {
    let mut seen = FastSet::default();
    for (access, &number) in accesses.iter().zip(groups) {
        let Some(&fastest) = access.facts.order.first() else { continue };
        let tensor = |value: &Value<'c>| value.ty().as_tensor().is_some_and(|ty| ty.shape() == access.shape);
        let (mut open, mut left) = (access.op.operands().filter(tensor).collect::<Vec<_>>(), MOST_VALUES);
        while let Some(value) = open.pop().filter(|_| left > 0) {
            let Some(op) = value.def_op().filter(|op| rule(*op) == Some(Rule::Same)) else { continue };
            if !seen.insert((number, op)) {
                continue;
            }
            left -= 1;
            open.extend(op.operands().filter(tensor));
            let alike = analysis.get(value).map_or(1, |info| info.constancy(fastest));
            if alike > 1 && !has_remainder(op) {
                work[number].equal.push((alike, weight(op) * arithmetic::cycles(op, &target.cost)));
            }
        }
    }
}

/// Whether `op` is a division whose remainder is wanted, too: each element of that one needs its own quotient.
fn has_remainder(op: Op<'_>) -> bool {
    let is_remainder = |user: Op<'_>| is_one_of!(user, RemSIOp | RemUIOp) && user.operand(1) == op.operand(1);
    is_one_of!(op, DivSIOp | DivUIOp) && op.operand(0).uses().any(|(user, _)| is_remainder(user))
}

/// Cycles of what addresses and masks are computed of where threads hold `held` neighbours, as far as some have it alike.
fn equal_cost(members: &[&Access<'_>], work: &Work<'_>, held: u64, machine: &Machine) -> f64 {
    let Some(first) = members.first() else { return 0.0 };
    let each: f64 = work.equal.iter().map(|(alike, cycles)| cycles / held.min(*alike) as f64).sum();
    elements(first, machine) as f64 / machine.threads_per_warp as f64 * each / most_often(members)
}

type Shape = SmallVec<[i64; 4]>;

/// Disjoint sets of values.
#[derive(Default)]
struct Sets<'c> {
    numbers: FastMap<Value<'c>, usize>,
    parents: Vec<usize>,
}

impl<'c> Sets<'c> {
    fn find(&mut self, value: Value<'c>) -> usize {
        let next = self.parents.len();
        let mut at = *self.numbers.entry(value).or_insert(next);
        if at == next {
            self.parents.push(next);
        }
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn union(&mut self, a: Value<'c>, b: Value<'c>) {
        let (a, b) = (self.find(a), self.find(b));
        self.parents[a] = b;
    }
}

/// What an access costs per element when each thread holds `held` neighbours: issuing instructions; and the lines of 128 bytes
/// that loads touch, or the sectors of 32 bytes that stores and atomic operations do. The L2 does the latter, one sector
/// after the other: where nothing is known of their addresses, neighbours of the tensor are as likely neighbours in memory as not.
fn cost_per_element(access: &Access<'_>, held: u64, lanes: u64, target: Option<&TargetDesc>) -> [f64; 2] {
    // Neighbours that are packed in one element are loaded once.
    let vector = access.vector.min(held);
    let served = vector.max(access.facts.packed().min(held));
    let sectors_of_lane = (vector * access.facts.bytes).div_ceil(32);
    // Lanes next to each other share sectors.
    let together = (lanes * held * access.facts.bytes).div_ceil(32);
    let apart = lanes * sectors_of_lane;
    let together = match access.facts.stride {
        _ if access.facts.usual > 1 => together,
        _ if access.facts.packed() > 1 => (lanes * held * access.facts.stride_bits).div_ceil(256),
        Some(stride) => (lanes * held).saturating_mul(stride).div_ceil(32),
        None if plans::writes(access.op) => (together.min(apart) + apart) / 2,
        None => apart,
    };
    let sectors = together.clamp(1, apart);
    let fewest = sectors.div_ceil(4);
    let lines = match access.facts.stride.filter(|_| access.facts.usual == 1) {
        Some(stride) => (lanes * held).saturating_mul(stride).div_ceil(128).clamp(fewest, sectors),
        None => fewest,
    };
    let bytes = lanes * vector * access.facts.bytes;
    // Neighbours that a thread accesses one after the other are in the same sectors.
    let new = together as f64 * served as f64 / held as f64;
    let touched = Touched { bytes, sectors, lines, new: new.min(sectors as f64) };
    let known = access.facts.usual > 1 || access.facts.stride.is_some();
    let moved = target.map_or(fewest as f64, |target| {
        let read = if known { target.cost.loaded(touched) } else { fewest as f64 };
        if plans::writes(access.op) { read.max(target.cost.stored(touched)) } else { read }
    });
    let sums = target.and_then(|target| plans::half_sums(access.op, target));
    let issued = sums.map_or(1.0, |sums| sums.instructions(vector == 1));
    [issued, moved].map(|cost| cost / served as f64)
}

/// Bytes of the widest access of a thread to shared memory.
const WIDEST_SHARED: u64 = 16;

/// What an element costs that is stored to shared memory, for a dot, as `bytes` bytes by threads that hold `held`
/// neighbours each. Where these are several accesses the lanes of one are apart, and meet in the banks if an instruction says how
/// memory is swizzled; else plans find a memory in which they do not.
fn stored_per_element(held: u64, bytes: u64, lanes: u64, swizzle_given: bool) -> f64 {
    let vector = held.min(WIDEST_SHARED / bytes).max(1);
    let rows = (lanes * vector * bytes).div_ceil(128);
    let meet = if swizzle_given { held / vector } else { 1 };
    (1 + rows * meet) as f64 / vector as f64
}

/// The accesses of each group.
fn members<'a, 'c>(accesses: &'a [Access<'c>], groups: &[usize]) -> Vec<Vec<&'a Access<'c>>> {
    let count = groups.iter().max().map_or(0, |last| last + 1);
    let mut members: Vec<Vec<&Access<'_>>> = vec![Vec::new(); count];
    for (access, &group) in accesses.iter().zip(groups) {
        members[group].push(access);
    }
    members
}

/// What an element costs for the accesses of a group when each thread holds `held` neighbours: each as often as it runs for
/// each time that the most frequent one does.
fn access_costs<'a>(
    members: &'a [&Access<'_>],
    held: u64,
    machine: &'a Machine,
) -> impl Iterator<Item = [f64; 2]> + use<'a> {
    let (lanes, target) = (machine.threads_per_warp, machine.target.as_ref());
    let most = most_often(members);
    members.iter().map(move |access| {
        cost_per_element(access, held, lanes, target).map(|cost| cost * weight(access.op) / most)
    })
}

/// What an element of a group costs then that dots read and that is stored to shared memory for them.
fn operand_cost(members: &[&Access<'_>], work: &Work<'_>, held: u64, machine: &Machine) -> f64 {
    let bytes = members.first().map_or(0, |first| first.facts.bytes);
    let operand = (work.operand > bytes).then_some(work.operand);
    let primitives = machine.target.as_ref().map(|target| target.primitives);
    let swizzle_given = primitives.is_none_or(|p| p.wgmma || p.tensor_memory);
    operand.map_or(0.0, |bytes| stored_per_element(held, bytes, machine.threads_per_warp, swizzle_given))
}

/// The vectors that a group can take, but for the size of its tensors. Where its own accesses are of single elements (a table
/// is looked up), loads that it meets may be of several.
fn group_vectors(
    members: &[&Access<'_>],
    work: &Work<'_>,
    machine: &Machine,
) -> impl Iterator<Item = u64> + use<> {
    let apart = |access: &Access<'_>| most_apart(access, !work.reduces(), machine);
    let widest = members.iter().map(|access| access.vector.max(access.facts.packed()).max(apart(access)));
    let widest = widest.max().unwrap_or(1);
    let met = work.repeated.iter().map(|load| load.vector).max().filter(|_| widest == 1);
    powers_up_to(met.unwrap_or(widest))
}

/// Notes which accesses share a loop with so many others of single elements that their addresses would be spilled, or that those take
/// many of a thread's registers.
fn find_crowds<'c>(accesses: &mut [Access<'c>], machine: &Machine) {
    let Some(target) = machine.target.as_ref() else { return };
    // Addresses of 64 bits take two registers, and a quarter of all is left for what is loaded and computed.
    let most = u64::from(target.thread_registers) * 3 / 4 / 2;
    let loop_of = |access: &Access<'c>| access.op.ancestor(is_loop);
    let room = u64::from(target.thread_registers) / 4;
    // Of each loop: places, and single elements.
    let mut counts: FastMap<Op<'c>, (u64, u64)> = FastMap::default();
    for access in accesses.iter() {
        if let Some(around) = loop_of(access) {
            let of_loop = counts.entry(around).or_default();
            of_loop.0 += places(access, 1, machine);
            of_loop.1 += singles(access, machine);
        }
    }
    for access in accesses {
        let Some((places, singles)) = loop_of(access).and_then(|around| counts.get(&around)) else {
            continue;
        };
        (access.is_crowded, access.is_scattered) = (*places > most, *singles > room);
    }
}

/// Registers of a thread in which a load has single elements that are narrower, and are neighbours in memory.
fn singles(access: &Access<'_>, machine: &Machine) -> u64 {
    let facts = &access.facts;
    let is_single = access.vector * facts.bytes < REGISTER && access.vector < facts.contiguous;
    if !is_single || LoadOp::cast(access.op).is_none() {
        return 0;
    }
    elements_each(access, machine)
}

/// Elements that a CTA accesses.
fn elements(access: &Access<'_>, machine: &Machine) -> u64 {
    access.shape.iter().product::<i64>().max(1) as u64 / machine.num_ctas
}

/// How often the most frequent access of a group runs.
fn most_often(members: &[&Access<'_>]) -> f64 {
    members.iter().map(|access| weight(access.op)).fold(1.0, f64::max)
}

/// Elements of a thread where each has its share.
fn elements_each(access: &Access<'_>, machine: &Machine) -> u64 {
    elements(access, machine) / machine.threads()
}

/// Places of which a thread keeps addresses with ease.
const MOST_PLACES: u64 = 32;

/// Places of which a thread computes addresses in each iteration with ease: the addresses of a stencil, whose loads hit the L1, take as
/// long as what is done with the elements.
const MANY_PLACES: u64 = 8;

/// Whether only masks or their alignment keep elements that a load takes apart.
fn is_apart(access: &Access<'_>) -> bool {
    LoadOp::cast(access.op).is_some() && access.vector < access.facts.contiguous
}

/// Neighbours in memory up to which threads may hold more than they access at once, where only masks or their alignment keep elements
/// apart: 16 bytes where threads would have addresses of too many places otherwise, since neighbours have one address, in crowded loops and
/// in stencils whose values `stay` in the threads; those of a register where single elements take too many of these.
fn most_apart(access: &Access<'_>, stay: bool, machine: &Machine) -> u64 {
    let AccessFacts { contiguous, bytes, .. } = &access.facts;
    if !is_apart(access) {
        1
    } else if access.is_crowded && places(access, 1, machine) > MOST_PLACES || access.is_stencil && stay {
        (4 * REGISTER / bytes).clamp(1, *contiguous)
    } else if access.is_scattered && singles(access, machine) > 0 {
        (REGISTER / bytes).clamp(1, *contiguous)
    } else {
        1
    }
}

fn powers_up_to(widest: u64) -> impl Iterator<Item = u64> + use<> {
    std::iter::successors(Some(1), |held| Some(held * 2)).take_while(move |held| *held <= widest)
}

/// Neighbours of a thread up to which scans and gathers gain.
const MOST_IN_ORDER: u64 = 16;

/// The vectors of which a group may take the best: wider ones than its accesses where values are scanned or gathered, which takes
/// fewer shuffles then, and it is known how far apart neighbours are in memory that is read. (Where results are written that a scan gives
/// places, neighbours are near each other.)
fn wide_vectors(
    members: &[&Access<'_>],
    work: &Work<'_>,
    machine: &Machine,
) -> impl Iterator<Item = u64> + use<> {
    let widest = group_vectors(members, work, machine).last().unwrap_or(1);
    let is_known = |access: &&Access<'_>| {
        LoadOp::cast(access.op).is_none() || access.facts.stride.is_some() || access.facts.usual > 1
    };
    let in_order = work.in_order().next().is_some() && members.iter().all(is_known);
    powers_up_to(if in_order { widest.max(MOST_IN_ORDER) } else { widest })
}

/// Neighbours of which there are enough for each thread.
fn most_held(first: &Access<'_>, vector: u64, work: &Work<'_>, machine: &Machine) -> u64 {
    let share = elements_each(first, machine).max(1);
    let row = first.facts.order.first().map_or(1, |&d| first.shape[d] as u64);
    // Vectors of several narrow rows: rather half of the threads idle than narrower accesses (paper, Table 2). What is reduced both
    // halves compute alike, which eight bytes more at once are not worth.
    let is_worth_it = !work.reduces() || share * first.facts.bytes <= NARROW;
    if row > 1 && row < vector && is_worth_it { share * 2 } else { share }
}

/// Bytes of a thread's access that wider ones are worth everything twice for.
const NARROW: u64 = 4;

/// The share of the cycles of reductions that counts beside those of accesses: kernels that reduce what they load mostly wait for
/// memory, and do the rest meanwhile. On an H100 kernels gain by wider vectors where reductions save ten times what accesses
/// lose, and lose where they save 1.4 times that (docs/objective.md).
const REDUCTIONS_BESIDE: f64 = 0.25;

/// Cycles of the reductions of the values of a group whose threads hold `held` neighbours, as far as they count.
fn reductions_cost<'c>(first: &Access<'c>, held: u64, work: &Work<'c>, layouts: &Layouts<'c>) -> f64 {
    let Some(target) = layouts.machine.target.as_ref().filter(|_| work.reduces()) else { return 0.0 };
    let layout = layout_for(first, held, work, layouts).ok();
    let layout = layout.and_then(|layout| to_linear_layout(layout, &first.shape).ok());
    let cycles = layout.and_then(|layout| along_cost(work.reductions(), &layout, target));
    cycles.map_or(f64::INFINITY, |cycles| REDUCTIONS_BESIDE * cycles)
}

/// Cycles of the scans and gathers of the values of a group whose threads hold `held` neighbours, as far as they count, for each time
/// that the most frequent access runs: in the layout of the group, or with conversions to a layout with other neighbours and back.
fn in_order_cost<'c>(members: &[&Access<'c>], held: u64, work: &Work<'c>, layouts: &Layouts<'c>) -> f64 {
    let machine = &layouts.machine;
    let (Some(first), Some(target)) = (members.first(), machine.target.as_ref()) else { return 0.0 };
    if work.in_order().next().is_none() {
        return 0.0;
    }
    let with = |held: u64| {
        let layout = layout_for(first, held, work, layouts).ok()?;
        Some((layout, to_linear_layout(layout, &first.shape).ok()?))
    };
    let Some((own, linear)) = with(held) else { return f64::INFINITY };
    let others: SmallVec<[_; 5]> = powers_up_to(MOST_IN_ORDER)
        .filter(|other| *other != held && *other <= most_held(first, *other, work, machine))
        .filter_map(with)
        .collect();
    let converted = |op: Op<'c>, other: Attr<'c>| -> Option<f64> {
        let tensor = |value: Value<'c>| value.ty().as_tensor().filter(|ty| ty.shape() == first.shape);
        let there =
            |value| objective::conversion(with_layout(tensor(value)?, own)?.as_tensor()?, other, layouts);
        let back =
            |value| objective::conversion(with_layout(tensor(value)?, other)?.as_tensor()?, own, layouts);
        let all = op.operands().map(there).chain(op.results().map(back));
        all.sum()
    };
    let least = |along: &Along<'c>| {
        let here = along.cost(&linear, target);
        let elsewhere = others.iter().filter_map(|(other, linear)| {
            Some(along.cost(linear, target)? + along.weight * converted(along.op, *other)?)
        });
        here.into_iter().chain(elsewhere).fold(f64::INFINITY, f64::min)
    };
    let most = most_often(members);
    REDUCTIONS_BESIDE * work.in_order().map(least).sum::<f64>() / most
}

/// Cycles of the loads that a group meets, whose threads hold `held` neighbours, where nothing else says how many these should
/// be: its own accesses are of single elements.
fn met_cost<'c>(members: &[&Access<'c>], work: &Work<'c>, held: u64, layouts: &Layouts<'c>) -> f64 {
    let single = !work.repeated.is_empty() && members.iter().all(|access| access.vector == 1);
    let Some(first) = members.first().filter(|_| single) else { return 0.0 };
    let layout = layout_for(first, held, work, layouts).ok();
    let terms = layout.and_then(|layout| work_terms(layout, first, work, layouts));
    terms.map_or(f64::INFINITY, |[_, repeated, ..]| repeated)
}

/// Cycles of the accesses of a group whose threads hold `held` neighbours: to issue them, of lines and sectors, to store what
/// dots read to shared memory, and for offsets.
fn group_cost(members: &[&Access<'_>], work: &Work<'_>, held: u64, machine: &Machine) -> [f64; 4] {
    let Some(first) = members.first() else { return [0.0; 4] };
    // An element of a group is one of each lane.
    let times = elements(first, machine) as f64 / machine.threads_per_warp as f64;
    let sum = |term: usize| times * access_costs(members, held, machine).map(|cost| cost[term]).sum::<f64>();
    let offsets: f64 = members.iter().map(|access| offsets_cost(access, held, machine)).sum();
    [sum(0), sum(1), times * operand_cost(members, work, held, machine), offsets]
}

/// Cycles of a warp for an offset along a dimension that a loop keeps: it takes two registers, which are written to the stack and
/// read again where registers are short.
const OFFSET: f64 = 8.0;

/// What the offsets of an access in a loop cost that has one address for each element: threads keep one for each place along each
/// dimension, so that few places along each dimension take fewer registers than many along one.
fn offsets_cost(access: &Access<'_>, held: u64, machine: &Machine) -> f64 {
    OFFSET * machine.num_warps as f64 * places(access, held, machine) as f64
}

/// Places along all dimensions of which a thread keeps an offset: of an access in a loop with one address for each element. Along a
/// dimension whose elements are a known distance apart there is one.
fn places(access: &Access<'_>, held: u64, machine: &Machine) -> u64 {
    if access.vector > 1 || access.shape.len() < 2 || weight(access.op) <= 1.0 {
        return 0;
    }
    let size = sizes(access, held);
    let blocked = machine.blocked(&access.shape, &size, &access.facts.order);
    let of = |d: usize| {
        if access.facts.constant_offsets.get(d) == Some(&true) {
            return 1;
        }
        let covered = blocked.threads_per_warp[d] * blocked.warps_per_cta[d];
        (access.shape[d].max(1) as u64).div_ceil(covered.max(1))
    };
    (0..access.shape.len()).map(of).sum()
}

/// Elements of each dimension that a thread holds next to each other.
fn sizes(access: &Access<'_>, vector: u64) -> Vec<u64> {
    let mut size = vec![1; access.shape.len()];
    let mut left = vector;
    for &d in &access.facts.order {
        size[d] = left.min(access.shape[d].max(1) as u64);
        left /= size[d];
        // Rows that are not filled do not continue in the next one.
        if size[d] < access.shape[d] as u64 {
            break;
        }
    }
    size
}

/// The vector that a group takes: the one with which its accesses cost least, or a wider one by which reductions gain more.
fn group_vector<'c>(members: &[&Access<'c>], work: &Work<'c>, layouts: &Layouts<'c>) -> u64 {
    let (Some(first), machine) = (members.first(), &layouts.machine) else { return 1 };
    let accesses = |held: u64| {
        group_cost(members, work, held, machine).iter().sum::<f64>() + met_cost(members, work, held, layouts)
    };
    // Of equals the widest.
    let least = |a: &(f64, u64), b: &(f64, u64)| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1));
    let best = group_vectors(members, work, machine).map(|held| (accesses(held), held)).min_by(least);
    let best = best.map_or(1, |(_, held)| held);
    let narrowest = best.min(most_held(first, best, work, machine));
    let wider = wide_vectors(members, work, machine)
        .filter(|held| *held > best && *held <= most_held(first, *held, work, machine));
    let all = std::iter::once(narrowest).chain(wider);
    let beside = |held: u64| {
        reductions_cost(first, held, work, layouts)
            + in_order_cost(members, held, work, layouts)
            + equal_cost(members, work, held, machine)
    };
    let all = all.map(|held| (accesses(held) + beside(held), held));
    all.min_by(least).map_or(narrowest, |(_, held)| held)
}

/// What the accesses of a group, whose threads hold `vector` neighbours, would cost with other vectors.
fn vector_choice<'c>(
    members: &[&Access<'c>],
    work: &Work<'c>,
    vector: u64,
    layouts: &Layouts<'c>,
) -> Option<Choice> {
    let (first, machine) = (members.first()?, &layouts.machine);
    // What is reduced makes vectors no narrower.
    let least = if work.reduces() { vector } else { 1 };
    let fits: Vec<u64> = wide_vectors(members, work, machine)
        .filter(|held| *held >= least && *held <= vector.max(most_held(first, *held, work, machine)))
        .collect();
    let candidates = fits.iter().map(|held| {
        let [issue, lines, operands, offsets] = group_cost(members, work, *held, machine);
        let terms = [
            ("issue", issue),
            ("lines and sectors", lines),
            ("shared memory of dots", operands),
            ("offsets", offsets),
            ("loads that are met", met_cost(members, work, *held, layouts)),
            ("reductions beside", reductions_cost(first, *held, work, layouts)),
            ("scans and gathers beside", in_order_cost(members, *held, work, layouts)),
            ("positions", equal_cost(members, work, *held, machine)),
        ];
        let neighbours = if *held == 1 { "neighbour" } else { "neighbours" };
        Candidate::of_terms(format!("{held} {neighbours} in each thread"), &terms)
    });
    let subject = match members.len() {
        1 => "vector of this access".to_owned(),
        count => format!("vector of {count} accesses that exchange values"),
    };
    Choice::among(subject, Unit::Cycles, candidates.collect(), fits.iter().position(|held| *held == vector)?)
}

/// Bytes of a register.
const REGISTER: u64 = 4;

/// Where threads bring what they load in order for dots, because no access to shared memory does: the dimension along which dots
/// sum, if memory is not contiguous along it, and how many neighbours along it each thread should hold. They are one vector
/// in shared memory then, and whole registers of a fragment; of places that are apart registers would have to be put together once
/// more. Which places of that dimension a thread accesses is all the same to memory.
fn transposed_places(
    access: &Access<'_>,
    size: &[u64],
    work: &Work<'_>,
    machine: &Machine,
) -> Option<(usize, u64)> {
    let [(depth, bytes)] = work.depths[..] else { return None };
    let primitives = machine.target.as_ref()?.primitives;
    let transposes = match bytes {
        1 => primitives.matrix_b8 || primitives.transposed_reads.is_some(),
        2 => primitives.ldmatrix || primitives.transposed_reads.is_some(),
        _ => bytes >= REGISTER,
    };
    if transposes || access.facts.order.first() == Some(&depth) || size[depth] > 1 {
        return None;
    }
    let held = elements_each(access, machine) / size.iter().product::<u64>();
    let places = held.min(WIDEST_SHARED / bytes).min(access.shape[depth].max(1) as u64);
    (places > 1).then_some((depth, places))
}

/// The layout of an access, with whose values `work` is done.
fn layout_for<'c>(
    access: &Access<'c>,
    vector: u64,
    work: &Work<'c>,
    layouts: &Layouts<'c>,
) -> Result<Attr<'c>, String> {
    // Lanes make accesses dense; warps are as good along any dimension, so they leave those that are worked
    // along where that costs less. Of equals the one that was turned furthest: with warps along the slowest dimension a warp
    // holds what lies together, and what is reduced once more stays within it.
    let mut placements = placements(access, vector, work, layouts);
    let first = placements.next().ok_or("accesses no tensor")??;
    let mut best = (work_in(first, access, work, layouts).unwrap_or(f64::INFINITY), first);
    for layout in placements {
        let layout = layout?;
        if let Some(cost) = work_in(layout, access, work, layouts).filter(|cost| *cost <= best.0) {
            best = (cost, layout);
        }
    }
    Ok(best.1)
}

/// The layouts of an access that only differ in where warps are, and lanes, where neighbours along several dimensions are neighbours in
/// memory: the one that is made for the access alone, and where there is `work`, others.
fn placements<'c>(
    access: &Access<'c>,
    vector: u64,
    work: &Work<'c>,
    layouts: &Layouts<'c>,
) -> impl Iterator<Item = Result<Attr<'c>, String>> {
    let mut size = sizes(access, vector);
    if let Some((depth, places)) = transposed_places(access, &size, work, &layouts.machine) {
        size[depth] = places;
    }
    let alone = work.is_nothing() || layouts.machine.target.is_none();
    let mut orders: SmallVec<[SmallVec<[usize; 4]>; 2]> = SmallVec::from_elem(access.facts.order.clone(), 1);
    if !alone && vector == 1 && work.depths.is_empty() {
        orders.extend(access.facts.other_orders());
    }
    let turns = if alone { 1 } else { access.facts.order.len().max(1) };
    orders.into_iter().flat_map(move |order| {
        let size = size.clone();
        (0..turns).map(move |turned| {
            let mut warp_order = order.clone();
            warp_order.rotate_left(turned);
            layouts.blocked(layouts.machine.blocked_with_warps(&access.shape, &size, &order, &warp_order))
        })
    })
}

/// Cycles of `work` with values in `layout`; `None` where a part of it cannot be done there.
fn work_in<'c>(layout: Attr<'c>, access: &Access<'c>, work: &Work<'c>, layouts: &Layouts<'c>) -> Option<f64> {
    work_terms(layout, access, work, layouts).map(|terms| terms.iter().sum())
}

/// The same, what is done along a dimension, loads that are repeated, accesses with masked coordinates, and functions of what is repeated
/// apart.
fn work_terms<'c>(
    layout: Attr<'c>,
    access: &Access<'c>,
    work: &Work<'c>,
    layouts: &Layouts<'c>,
) -> Option<[f64; 4]> {
    if work.is_nothing() {
        return Some([0.0; 4]);
    }
    let target = layouts.machine.target.as_ref()?;
    let layout = to_linear_layout(layout, &access.shape).ok()?;
    let along = along_cost(work.along.iter(), &layout, target)?;
    let repeated = work.repeated.iter().map(|load| load.cost(&layout, &layouts.machine, target));
    let masked = work.masked.iter().map(|(from, weight)| weight * masked_cost(from, &layout, target));
    let warps = layouts.machine.num_warps as f64;
    let functions =
        work.functions.iter().map(|(dims, cycles)| warps * distinct(&layout, dims).0 as f64 * cycles);
    Some([along, repeated.sum::<f64>(), masked.sum::<f64>(), functions.sum::<f64>()])
}

/// Cycles of an access whose mask is false from the coordinates `from` on, if the warp that accesses most sets the pace: what is
/// masked in all lanes of a warp is not accessed.
fn masked_cost(from: &[u64], layout: &LinearLayout, target: &TargetDesc) -> f64 {
    let steps = (0..layout.in_bits(Dim::REGISTER)).filter_map(|bit| layout.basis_coords(Dim::REGISTER, bit));
    let reaches = |step: &[u64]| {
        step.iter().any(|step| *step != 0) && step.iter().zip(from).all(|(step, from)| step < from)
    };
    let registers = steps.filter(|step| reaches(step)).count();
    let warps = layout.in_size(Dim::WARP).unwrap_or(1);
    (warps << registers) as f64 * target.cost.request
}

/// Cycles of operations along a dimension with values in `layout`, as often as they run; `None` where one of them cannot be done
/// there.
fn along_cost<'a, 'c: 'a>(
    mut along: impl Iterator<Item = &'a Along<'c>>,
    layout: &LinearLayout,
    target: &TargetDesc,
) -> Option<f64> {
    along.try_fold(0.0, |sum, along| Some(sum + along.cost(layout, target)?))
}

/// What the work with the values of an access would cost with warps elsewhere.
fn warps_choice<'c>(
    access: &Access<'c>,
    vector: u64,
    work: &Work<'c>,
    layouts: &Layouts<'c>,
) -> Option<Choice> {
    let chosen = layout_for(access, vector, work, layouts).ok()?;
    let mut told: Vec<Attr<'c>> = Vec::new();
    for layout in placements(access, vector, work, layouts).flatten() {
        if !told.contains(&layout) {
            told.push(layout);
        }
    }
    let candidates = told.iter().map(|layout| {
        let name = format!("warps {}", warps_of(*layout));
        match work_terms(*layout, access, work, layouts) {
            Some([along, repeated, masked, functions]) => {
                let terms = [
                    ("reductions, scans and gathers", along),
                    ("repeated loads", repeated),
                    ("accesses that are not masked", masked),
                    ("functions of what is repeated", functions),
                ];
                Candidate::of_terms(name, &terms)
            }
            None => Candidate::new(name, None),
        }
    });
    let chosen = told.iter().position(|layout| *layout == chosen)?;
    Choice::among("warps for what is done with these values", Unit::Cycles, candidates.collect(), chosen)
}

/// How many warps a blocked layout has along each dimension.
fn warps_of(layout: Attr<'_>) -> String {
    match encoding(layout) {
        Ok(Encoding::Blocked(blocked)) => format!("{:?}", blocked.warps_per_cta),
        _ => layout.to_string(),
    }
}

/// Runs the access in `layout`: operands are converted to it, results back.
fn apply<'c>(rewriter: &mut IrRewriter<'c>, access: &Access<'c>, layout: Attr<'c>) -> Result<(), Reported> {
    let op = access.op;
    let Some(old) = layout_of(op.operand(0)) else {
        return Err(error(
            op,
            "accesses memory through tensors without a layout: run convert-triton-to-tritongpu first",
        ));
    };
    if equivalent(old, layout, &access.shape) {
        return Ok(());
    }
    for i in 0..op.num_operands() {
        convert_operand(rewriter, op, i, layout)?;
    }
    lay_out_results(rewriter, op, layout)
}

/// Gives the results of `op` another layout, from which their uses convert them.
fn lay_out_results<'c>(rewriter: &mut IrRewriter<'c>, op: Op<'c>, layout: Attr<'c>) -> Result<(), Reported> {
    for result in op.results().filter(|result| result.ty().as_tensor().is_some()) {
        let before = result.ty();
        set_layout(result, layout);
        if result.is_unused() {
            continue;
        }
        // Uses move to the conversion, which then is the only use of the result.
        let back = create("ttg.convert_layout", op.loc(), &[result], &[before], &[], &[])?;
        result.replace_all_uses_with(back.result(0));
        back.set_operand(0, result);
        rewriter.set_after(op);
        rewriter.insert(back);
    }
    Ok(())
}

/// The choice in words.
fn explain(access: &Access<'_>, vector: u64, layout: Attr<'_>) -> String {
    let facts = &access.facts;
    let dim = facts.order.first().copied().unwrap_or(0);
    let mine = vector.min(access.vector);
    let count = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let mut text = format!(
        "each thread accesses {} of {} bits at once ({} bits): along dimension {dim}, {} contiguous",
        count(mine, "element"),
        facts.bytes * 8,
        mine * facts.bytes * 8,
        if facts.contiguous == 1 {
            "no elements are known to be".into()
        } else {
            format!("{} elements are", facts.contiguous)
        },
    );
    text += &format!(", their address is a multiple of {}", count(facts.aligned.min(1 << 20), "byte"));
    if facts.mask != u64::MAX {
        text += &format!(
            ", and {} one mask value",
            if facts.mask == 1 { "each has".into() } else { format!("{} share", facts.mask) }
        );
    }
    text += match access.limit {
        _ if mine < access.vector => {
            "; the tensor is too small for more, or what it exchanges values with limits it"
        }
        Limit::Instruction => "; this is the widest access there is",
        Limit::Contiguity => "; contiguity is the limit",
        Limit::Alignment => "; alignment is the limit",
        Limit::Mask => "; the mask is the limit",
        Limit::Atomic => "; more cannot be accessed atomically at once",
    };
    if vector > mine {
        text += &format!(
            "; it takes {} such accesses for the {vector} neighbours that each thread holds",
            vector / mine
        );
    }
    format!("{text}; layout {layout}")
}
