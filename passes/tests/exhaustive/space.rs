//! The layouts that each value of a function can have, what computing it there takes, and what converting it takes.
//!
//! A layout is a candidate for a value if an anchor implies it: it is the anchor's, or follows from a candidate of an
//! operand or of a result through the operation between them.

use crate::function::{Function, Id, Kind, Ty};
use linear_layout::Encoding;
use mlir_host::ir::{Attr, Op, TensorType, Type, Value, Walk};
use std::cell::RefCell;
use std::collections::HashMap;
use ttopt_dialect::ttg::infer;
use ttopt_dialect::ttg::layout::equivalent;
use ttopt_passes::machine::Layouts;
use ttopt_passes::objective::{Objective, SYNCHRONIZATION, conversion};

/// A layout, by its number in a [`Space`].
pub type LayoutId = usize;

/// More layouts than that of one value are too many to search.
const MOST: usize = 8;

/// One way to compute a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// The layout of its value, or of what it stores.
    pub result: LayoutId,
    /// Those of its operands.
    pub operands: Vec<LayoutId>,
    /// Cycles in all executions.
    pub cycles: f64,
}

/// All that can be chosen.
pub struct Space<'f, 'c> {
    /// The function.
    pub function: &'f Function,
    layouts: &'f Layouts<'c>,
    table: RefCell<Vec<Attr<'c>>>,
    /// The ways to compute each node.
    pub variants: Vec<Vec<Variant>>,
    conversions: RefCell<HashMap<(Id, LayoutId, LayoutId), Option<f64>>>,
}

fn transposed<'c>(attr: Attr<'c>, ty: &Ty) -> Option<Attr<'c>> {
    infer::trans(Some(attr), &ty.shape, &[1, 0]).ok().flatten()
}

fn reshaped<'c>(attr: Attr<'c>, from: &Ty, to: &Ty) -> Option<Attr<'c>> {
    infer::reshape(Some(attr), &from.shape, &to.shape).ok().flatten()
}

fn sliced(attr: Attr<'_>, axis: usize) -> Option<Attr<'_>> {
    infer::reduce(Some(attr), axis).ok().flatten()
}

fn unsliced(attr: Attr<'_>, axis: usize) -> Option<Attr<'_>> {
    infer::expand_dims(Some(attr), axis).ok().flatten()
}

/// The layout of a node's value that follows from that of operand `i`.
fn forward<'c>(function: &Function, id: Id, i: usize, operand: Attr<'c>) -> Option<Attr<'c>> {
    let node = &function.nodes[id];
    let from = &function.nodes[node.operands[i]].ty;
    match node.kind {
        Kind::Reduce { axis, .. } => sliced(operand, axis),
        Kind::ExpandDims(axis) => unsliced(operand, axis),
        Kind::Trans => transposed(operand, from),
        Kind::Reshape => reshaped(operand, from, &node.ty),
        Kind::Dot => None,
        _ => Some(operand),
    }
}

/// The layout of operand `i` that follows from that of the value.
fn backward<'c>(function: &Function, id: Id, i: usize, result: Attr<'c>) -> Option<Attr<'c>> {
    let node = &function.nodes[id];
    let from = &function.nodes[node.operands[i]].ty;
    match node.kind {
        Kind::Reduce { axis, .. } => unsliced(result, axis),
        Kind::ExpandDims(axis) => sliced(result, axis),
        Kind::Trans => transposed(result, &node.ty),
        Kind::Reshape => reshaped(result, &node.ty, from),
        Kind::Dot => None,
        _ => Some(result),
    }
}

/// The layouts that anchors imply for each value; `None` where there are too many.
fn candidates<'c>(function: &Function, layouts: &Layouts<'c>) -> Option<Vec<Vec<Attr<'c>>>> {
    let mut found: Vec<Vec<Attr<'c>>> = vec![Vec::new(); function.nodes.len()];
    let attr = |encoding: &Encoding| layouts.attr(encoding).expect("a layout");
    for (id, anchors) in &function.anchors {
        found[*id].push(attr(&anchors[0]));
        if function.nodes[*id].kind == Kind::Dot {
            for (i, anchor) in [1, 2, 0].into_iter().enumerate() {
                found[function.nodes[*id].operands[i]].push(attr(&anchors[anchor]));
            }
        }
    }
    loop {
        let before: usize = found.iter().map(Vec::len).sum();
        for id in (0..function.nodes.len()).chain((0..function.nodes.len()).rev()) {
            for (i, operand) in function.nodes[id].operands.iter().enumerate() {
                let on: Vec<_> =
                    found[*operand].iter().filter_map(|a| forward(function, id, i, *a)).collect();
                let back: Vec<_> = found[id].iter().filter_map(|a| backward(function, id, i, *a)).collect();
                for (at, more) in [(id, on), (*operand, back)] {
                    more.into_iter().for_each(|a| {
                        if !found[at].contains(&a) {
                            found[at].push(a)
                        }
                    });
                }
            }
        }
        if found.iter().any(|found| found.len() > MOST) {
            return None;
        }
        if found.iter().map(Vec::len).sum::<usize>() == before {
            return Some(found);
        }
    }
}

impl<'f, 'c> Space<'f, 'c> {
    /// Of a function; `None` where a value has too many candidates, or one that no node can have.
    pub fn new(function: &'f Function, layouts: &'f Layouts<'c>) -> Option<Self> {
        let candidates = candidates(function, layouts)?;
        let mut space = Space {
            function,
            layouts,
            table: RefCell::default(),
            variants: Vec::new(),
            conversions: RefCell::default(),
        };
        space.variants = (0..function.nodes.len()).map(|id| space.ways(id, &candidates)).collect();
        let has_all = space.variants.iter().all(|ways| !ways.is_empty());
        // The search keeps a bit for each layout.
        (has_all && space.table.borrow().len() < u64::BITS as usize / 2).then_some(space)
    }

    /// The number of a layout.
    pub fn number(&self, attr: Attr<'c>) -> LayoutId {
        let mut table = self.table.borrow_mut();
        table.iter().position(|known| *known == attr).unwrap_or_else(|| {
            table.push(attr);
            table.len() - 1
        })
    }

    /// The layout of a number.
    pub fn layout(&self, id: LayoutId) -> Attr<'c> {
        self.table.borrow()[id]
    }

    /// How a value is written in a layout.
    pub fn type_text(&self, id: Id, layout: LayoutId) -> String {
        self.function.nodes[id].ty.text(&self.layout(layout).to_string())
    }

    /// All ways to compute a node, without what they cost.
    fn ways(&self, id: Id, candidates: &[Vec<Attr<'c>>]) -> Vec<Variant> {
        let node = &self.function.nodes[id];
        let make = |result: Attr<'c>, operands: &[Attr<'c>]| Variant {
            result: self.number(result),
            operands: operands.iter().map(|attr| self.number(*attr)).collect(),
            cycles: 0.0,
        };
        let own = candidates[id].iter().copied();
        match node.kind {
            Kind::Dot => {
                let attrs =
                    self.function.anchors[&id].iter().map(|e| self.layouts.attr(e).expect("a layout"));
                let attrs: Vec<_> = attrs.collect();
                vec![make(attrs[0], &[attrs[1], attrs[2], attrs[0]])]
            }
            Kind::Reduce { axis, .. } => {
                let from = candidates[node.operands[0]].iter().copied();
                from.filter_map(|from| Some(make(sliced(from, axis)?, &[from]))).collect()
            }
            Kind::ExpandDims(axis) => own.filter_map(|to| Some(make(to, &[sliced(to, axis)?]))).collect(),
            Kind::Trans | Kind::Reshape => {
                // The two sides may name one map differently.
                let fits = |from: Attr<'c>, to: Attr<'c>| {
                    forward(self.function, id, 0, from)
                        .is_some_and(|made| equivalent(made, to, &node.ty.shape))
                };
                let from = || candidates[node.operands[0]].iter().copied();
                own.flat_map(|to| from().filter(move |from| fits(*from, to)).map(move |from| (from, to)))
                    .map(|(from, to)| make(to, &[from]))
                    .collect()
            }
            _ => own.map(|to| make(to, &vec![to; node.operands.len()])).collect(),
        }
    }

    /// The way to compute a node in the layout that conversion to TritonGPU gives all values.
    pub fn default_way(&self, id: Id) -> Variant {
        let node = &self.function.nodes[id];
        let default = |ty: &Ty| self.layouts.default(&ty.shape).expect("a layout");
        if matches!(node.kind, Kind::Load | Kind::Store | Kind::Dot) {
            let anchor = self.layouts.attr(&self.function.anchors[&id][0]).expect("a layout");
            let anchor = self.number(anchor);
            let way = self.variants[id].iter().find(|way| way.result == anchor);
            return way.expect("the anchor's own layout").clone();
        }
        let (result, operand) = match node.kind {
            Kind::Reduce { axis, .. } => {
                let from = default(&self.function.nodes[node.operands[0]].ty);
                (sliced(from, axis), Some(from))
            }
            _ => {
                let to = default(&node.ty);
                (Some(to), if node.operands.is_empty() { None } else { backward(self.function, id, 0, to) })
            }
        };
        let result = self.number(result.expect("a layout follows"));
        let operands = operand.map_or(Vec::new(), |operand| vec![self.number(operand); node.operands.len()]);
        Variant { result, operands, cycles: 0.0 }
    }

    fn tensor(&self, id: Id, layout: LayoutId) -> TensorType<'c> {
        let context = self.layout(layout).context();
        let ty = Type::parse(context, &self.type_text(id, layout)).and_then(Type::as_tensor);
        ty.expect("a tensor type")
    }

    /// Cycles of one conversion of a value; `None` where no plan does it.
    pub fn conversion(&self, id: Id, from: LayoutId, to: LayoutId) -> Option<f64> {
        *self.conversions.borrow_mut().entry((id, from, to)).or_insert_with(|| {
            let cycles = conversion(self.tensor(id, from), self.layout(to), self.layouts)?;
            Some(cycles + SYNCHRONIZATION)
        })
    }

    /// Asks the objective what each way to compute each node takes: `ops` are the operations of each node in some IR of
    /// the function, which have other layouts for as long as that takes.
    pub fn measure(&mut self, ops: &[Vec<Op<'c>>], objective: &Objective<'c>) {
        for (id, ops) in ops.iter().enumerate() {
            let times = self.function.times(self.function.nodes[id].block);
            for n in 0..self.variants[id].len() {
                let way = &self.variants[id][n];
                let (to, from) =
                    (self.layout(way.result), way.operands.last().map(|from| self.layout(*from)));
                let cycles: Option<f64> = ops
                    .iter()
                    .map(|op| in_layout(*op, to, from, || objective.cycles(*op, self.layouts)))
                    .sum();
                self.variants[id][n].cycles = times * cycles.unwrap_or(f64::INFINITY);
            }
            self.variants[id].retain(|way| way.cycles.is_finite());
        }
    }
}

/// Calls `f` while the result of `op` has the layout `to`, and its tensors, where these decide, the layout `from`.
fn in_layout<'c, T>(op: Op<'c>, to: Attr<'c>, from: Option<Attr<'c>>, f: impl FnOnce() -> T) -> T {
    let mut changed: Vec<(Value<'c>, Attr<'c>)> = op.results().map(|result| (result, to)).collect();
    match (op.name(), from) {
        ("tt.reduce", Some(from)) => changed = vec![(op.operand(0), from)],
        ("tt.store", _) => changed.push((op.operand(1), to)),
        _ => {}
    }
    let mut old = Vec::new();
    for (value, layout) in changed {
        if let Some(ty) = value.ty().as_tensor().and_then(|ty| ty.with_encoding(Some(layout))) {
            old.push((value, value.ty()));
            value.set_type(ty.ty());
        }
    }
    let answer = f();
    old.into_iter().rev().for_each(|(value, ty)| value.set_type(ty));
    answer
}

/// The operations of each node, which stand in lines of their own.
pub fn operations<'c>(module: Op<'c>, lines: &[Option<Id>], nodes: usize) -> Vec<Vec<Op<'c>>> {
    let mut found = vec![Vec::new(); nodes];
    module.walk(&mut |op| {
        let line = op.loc().position().map_or(0, |(_, line, _)| line as usize);
        if let Some(id) = line.checked_sub(1).and_then(|line| *lines.get(line)?) {
            found[id].push(op);
        }
        Walk::Advance
    });
    found
}
