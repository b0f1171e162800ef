//! The worklist: facts travel from operands to results, along control flow
//! and from callers to callees.

use super::guards;
use super::lattice::{AxisInfo, MAX_DIV, Run, pow2};
use super::transfer::{Order, wrap};
use crate::ir_util::{enclosing_function, is_private};
use mlir_host::flow::{for_each_edge, incoming, is_region_branch};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::match_op;
use mlir_host::upstream::{
    AddIOp, AndIOp, AssumeOp, CmpIOp, ConstantOp, DivSIOp, DivUIOp, ExtSIOp, ExtUIOp, ForOp, FuncFuncOp,
    IndexCastOp, IndexCastUIOp, LlvmConstantOp, MaxSIOp, MaxUIOp, MinSIOp, MinUIOp, ModuleOp, MulIOp, OrIOp,
    RemSIOp, RemUIOp, SelectOp, ShLIOp, ShRSIOp, ShRUIOp, SubIOp, TruncIOp, XOrIOp,
};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use ttopt_dialect::tt::ops::{
    AddPtrOp, BitcastOp, BroadcastOp, CallOp, CatOp, ExpandDimsOp, FuncOp, GetNumProgramsOp, GetProgramIdOp,
    IntToPtrOp, JoinOp, LoadOp, MakeRangeOp, PtrToIntOp, ReshapeOp, ReturnOp, SplatOp, SplitOp, TransOp,
    UnsplatOp,
};
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::ops::ConvertLayoutOp;

/// Operations through which positions are followed: each may have two operands.
const STEPS: u32 = 10;

/// Whether `value` counts elements or programs from zero: sums and multiples of ranges, numbers of programs and counters of loops.
fn is_position(value: Value<'_>, steps: u32) -> bool {
    let Some(steps) = steps.checked_sub(1) else { return false };
    let Some(op) = value.def_op() else {
        let around = value.arg_block().and_then(|block| block.parent()).and_then(ForOp::cast);
        return around.is_some_and(|around| {
            around.induction_variable() == Some(value) && is_position(around.lower(), steps)
        });
    };
    match_op!(op, {
        MakeRangeOp | GetProgramIdOp => true,
        ConstantOp => constant(op, op.result(0).ty()).is_some_and(|known| known.nonneg),
        SplatOp | BroadcastOp | ExpandDimsOp | ExtSIOp | AddIOp | MulIOp => {
            op.operands().all(|operand| is_position(operand, steps))
        },
        _ => false,
    })
}

/// How often the facts of a block argument may change before they are given
/// up: divisors and lengths could else shrink one power of two at a time.
const CHANGES: u8 = 8;

/// The facts about every integer, pointer and tensor of them in a module.
pub struct AxisInfoAnalysis<'c> {
    infos: Rc<FastMap<Value<'c>, AxisInfo>>,
    /// Values made since, each with one of the same numbers that was there.
    made: RefCell<FastMap<Value<'c>, Value<'c>>>,
}

impl<'c> AxisInfoAnalysis<'c> {
    /// Analyses all functions below `root`.
    pub fn new(root: Op<'c>) -> Self {
        let mut solver = Solver::new(root);
        while let Some(op) = solver.queue.pop_front() {
            solver.queued.remove(&op);
            solver.visit(op);
        }
        Self { infos: Rc::new(solver.infos), made: RefCell::default() }
    }

    /// The facts about a copy of what was analysed, as it was then: `originals` has the value that each value of the copy is
    /// a copy of.
    pub fn of_copy(&self, originals: FastMap<Value<'c>, Value<'c>>) -> Self {
        Self { infos: self.infos.clone(), made: RefCell::new(originals) }
    }

    /// What is known about `value`; `None` for values that no execution
    /// reaches and that are neither integers nor pointers.
    pub fn get(&self, value: Value<'c>) -> Option<&AxisInfo> {
        self.infos.get(&self.analysed(value))
    }

    /// Notes that `made`, which was not there when the analysis was made, has the numbers of `value`: a copy, or its
    /// conversion to another layout.
    pub fn note(&self, made: Value<'c>, value: Value<'c>) {
        let value = self.analysed(value);
        self.made.borrow_mut().insert(made, value);
    }

    /// The value of the same numbers that the analysis saw.
    fn analysed(&self, value: Value<'c>) -> Value<'c> {
        self.made.borrow().get(&value).copied().unwrap_or(value)
    }

    /// What is known about `value`, which may be nothing.
    pub fn info(&self, value: Value<'c>) -> AxisInfo {
        self.get(value).cloned().unwrap_or_else(|| unknown_of(value.ty()))
    }
}

/// Bits of an integer or `index`.
fn bits_of(ty: Type<'_>) -> u32 {
    ty.element().int_bits().unwrap_or(64)
}

/// Bytes from one element that a pointer type points at to the next; 1 for integers.
pub(super) fn unit_of(ty: Type<'_>) -> i64 {
    pointee(ty.element()).and_then(|ty| ty.bits()).map_or(1, |bits| i64::from(bits.div_ceil(8)))
}

fn shape_of(ty: Type<'_>) -> SmallVec<[i64; 4]> {
    ty.as_tensor().map(|tensor| tensor.shape()).unwrap_or_default()
}

fn unknown_of(ty: Type<'_>) -> AxisInfo {
    let mut info = AxisInfo::unknown(ty.as_tensor().map_or(0, |tensor| tensor.rank()));
    info.unit = unit_of(ty);
    // Values of one bit are 0 or 1.
    info.nonneg = ty.element().is_int(1);
    info
}

fn is_tracked(ty: Type<'_>) -> bool {
    let element = ty.element();
    element.int_bits().is_some() || element.is_index() || pointee(element).is_some()
}

/// More dimensions than tensors have.
const MOST_HINTS: i64 = 32;

/// The integers of a hint: a number, or a dense list of them, one for each dimension. None of a list that says something else.
fn hint_values(attr: Attr<'_>) -> SmallVec<[u64; 4]> {
    let positive = |value: i64| value.max(1) as u64;
    if let Some(value) = attr.as_int() {
        return SmallVec::from_slice(&[positive(value)]);
    }
    let Some(elements) = attr.as_elements().filter(|elements| elements.len() <= MOST_HINTS) else {
        return SmallVec::new();
    };
    if let Some(value) = elements.splat_value().and_then(Attr::as_int) {
        return SmallVec::from_elem(positive(value), elements.len().max(0) as usize);
    }
    // Lists of different numbers are rare: their text says what they are.
    let text = attr.to_string();
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(list, _)| list);
    let numbers = inside.split(',').map(|item| item.trim().parse().ok().map(positive));
    numbers.collect::<Option<_>>().unwrap_or_default()
}

/// Facts that `llvm.intr.assume` gives about a value.
#[derive(Clone, Copy)]
struct Assumed {
    nonneg: bool,
    div: u64,
}

struct Solver<'c> {
    infos: FastMap<Value<'c>, AxisInfo>,
    changes: FastMap<Value<'c>, u8>,
    assumed: FastMap<Value<'c>, Assumed>,
    queue: VecDeque<Op<'c>>,
    queued: FastSet<Op<'c>>,
    functions: FastMap<&'c str, Op<'c>>,
    callers: FastMap<Op<'c>, Vec<Op<'c>>>,
    returns: FastMap<Op<'c>, Vec<AxisInfo>>,
}

impl<'c> Solver<'c> {
    fn new(root: Op<'c>) -> Self {
        let mut solver = Solver {
            infos: FastMap::default(),
            changes: FastMap::default(),
            assumed: FastMap::default(),
            queue: VecDeque::new(),
            queued: FastSet::default(),
            functions: FastMap::default(),
            callers: FastMap::default(),
            returns: FastMap::default(),
        };
        let mut calls = Vec::new();
        let mut functions = Vec::new();
        let (mut divisors, mut bounds) = (Vec::new(), Vec::new());
        root.walk(&mut |op| {
            match_op!(op, {
                FuncOp | FuncFuncOp => {
                    functions.push(op);
                    if let Some(name) = op.attr("sym_name").and_then(Attr::as_str) {
                        solver.functions.insert(name, op);
                    }
                },
                CallOp(call) => calls.push(call),
                DivSIOp | RemSIOp => {
                    divisors.push(op.operand(1));
                    solver.position(op);
                },
                AssumeOp => solver.assume(op),
                ForOp(around) => {
                    if is_position(around.lower(), STEPS) {
                        bounds.push(around.upper());
                    }
                },
                // slt
                CmpIOp(test) => {
                    if test.predicate() == Some(2) && is_position(op.operand(0), STEPS) {
                        bounds.push(op.operand(1));
                    }
                },
                _ => {},
            });
            solver.enqueue(op);
            Walk::Advance
        });
        // Facts are large: a table that grows moves them.
        solver.infos.reserve(solver.queue.len());
        for call in calls {
            if let Some(callee) = solver.callee(call) {
                solver.callers.entry(callee).or_default().push(call.op());
            }
        }
        solver.sizes(divisors);
        bounds.into_iter().for_each(|bound| solver.bound(bound));
        for function in functions {
            solver.enter(function);
        }
        solver
    }

    fn callee(&self, call: CallOp<'c>) -> Option<Op<'c>> {
        self.functions.get(call.callee().as_symbol()?).copied()
    }

    fn enqueue(&mut self, op: Op<'c>) {
        if self.queued.insert(op) {
            self.queue.push_back(op);
        }
    }

    fn assume_nonneg(&mut self, value: Value<'c>) {
        self.assumed.entry(value).or_insert(Assumed { nonneg: true, div: 1 }).nonneg = true;
    }

    /// Divisors are sizes, and so are integer arguments that they are computed from: not negative.
    fn sizes(&mut self, mut values: Vec<Value<'c>>) {
        for divisor in values.iter().filter(|divisor| ConstantOp::defining(**divisor).is_none()) {
            self.assume_nonneg(*divisor);
        }
        let mut seen = FastSet::default();
        while let Some(value) = values.pop() {
            if !seen.insert(value) {
                continue;
            }
            match value.def_op() {
                Some(op)
                    if is_one_of!(op, SplatOp | BroadcastOp | ExpandDimsOp | ExtSIOp | MulIOp | AddIOp) =>
                {
                    values.extend(op.operands());
                }
                Some(_) => {}
                None => {
                    let owner = value.arg_block().and_then(|block| block.parent());
                    if owner.is_some_and(|op| FuncOp::cast(op).is_some()) {
                        self.assume_nonneg(value);
                    }
                }
            }
        }
    }

    /// An argument that ends a loop over positions, or that positions are compared with, is a size: not negative. Where it were, the
    /// loop would not run, and nothing would be accessed.
    fn bound(&mut self, mut value: Value<'c>) {
        let by_constant =
            |op: Op<'c>| op.num_operands() == 2 && ConstantOp::defining(op.operand(1)).is_some();
        while let Some(op) = value.def_op().filter(|op| {
            is_one_of!(*op, SplatOp | BroadcastOp | ExpandDimsOp | ExtSIOp)
                || is_one_of!(*op, AddIOp | DivSIOp) && by_constant(*op)
        }) {
            value = op.operand(0);
        }
        let owner = value.arg_block().and_then(|block| block.parent());
        if owner.is_some_and(|op| FuncOp::cast(op).is_some()) {
            self.assume_nonneg(value);
        }
    }

    /// What is divided by a size that is not known is a position along it, which starts at zero: not negative.
    fn position(&mut self, division: Op<'c>) {
        let mut divisor = division.operand(1);
        while let Some(op) = divisor.def_op().filter(|op| is_one_of!(*op, SplatOp | ExtSIOp | BroadcastOp)) {
            divisor = op.operand(0);
        }
        if ConstantOp::defining(divisor).is_none() {
            self.assume_nonneg(division.operand(0));
        }
    }

    /// Facts of assumptions in the entry block, which every execution passes.
    fn assume(&mut self, op: Op<'c>) {
        let at_entry = || {
            let block = op.block()?;
            let function = block.parent()?;
            (FuncOp::cast(function).is_some() && function.region(0).first_block() == Some(block))
                .then_some(())
        };
        if op.num_operands() == 0 || at_entry().is_none() {
            return;
        }
        let mut conditions = vec![op.operand(0)];
        while let Some(condition) = conditions.pop() {
            let Some(test) = condition.def_op() else { continue };
            match_op!(test, {
                AndIOp => conditions.extend(test.operands()),
                CmpIOp(test) => self.assume_comparison(test),
                _ => {},
            });
        }
    }

    fn assume_comparison(&mut self, test: CmpIOp<'c>) {
        let constant = |value: Value<'c>| ConstantOp::defining(value)?.value()?.as_int();
        let (value, bound) = (test.op().operand(0), constant(test.op().operand(1)));
        let (Some(predicate), Some(bound)) = (test.predicate(), bound) else { return };
        let fact = self.assumed.get(&value).copied().unwrap_or(Assumed { nonneg: false, div: 1 });
        match predicate {
            // sgt, sge
            4 if bound >= -1 => _ = self.assumed.insert(value, Assumed { nonneg: true, ..fact }),
            5 if bound >= 0 => _ = self.assumed.insert(value, Assumed { nonneg: true, ..fact }),
            // eq
            0 if bound == 0 => {
                let rem = value.def_op().filter(|op| is_one_of!(op, RemSIOp | RemUIOp));
                let Some((rem, by)) = rem.and_then(|rem| Some((rem, constant(rem.operand(1))?))) else {
                    return;
                };
                let of = rem.operand(0);
                let fact = self.assumed.get(&of).copied().unwrap_or(Assumed { nonneg: false, div: 1 });
                self.assumed.insert(of, Assumed { div: fact.div.max(pow2(by)), ..fact });
            }
            _ => {}
        }
    }

    /// The arguments of a function that is called from outside of the module.
    fn enter(&mut self, function: Op<'c>) {
        let Some(entry) = function.region(0).first_block() else { return };
        if is_private(function) && self.callers.contains_key(&function) {
            return;
        }
        for arg in entry.args() {
            let info = unknown_of(arg.ty());
            self.join_into(arg, info);
        }
    }

    /// The argument attributes of a function that concern `arg`.
    fn argument_hints(&self, arg: Value<'c>, info: &mut AxisInfo) {
        let Some(block) = arg.arg_block() else { return };
        let Some(function) = block.parent().filter(|op| FuncOp::cast(*op).is_some()) else { return };
        if function.region(0).first_block() != Some(block) {
            return;
        }
        let attrs = function.attr("arg_attrs").and_then(Attr::as_array);
        let Some(attrs) = attrs.and_then(|attrs| attrs.get(arg.index()).copied()) else { return };
        apply_hints(info, arg.ty(), |name| attrs.get(name));
    }

    /// Stores facts that replace earlier ones.
    fn set(&mut self, value: Value<'c>, mut info: AxisInfo) {
        if let Some(fact) = self.assumed.get(&value) {
            info.nonneg |= fact.nonneg;
            info.assume(&[], &[fact.div], &[]);
        }
        if self.infos.get(&value) != Some(&info) {
            self.infos.insert(value, info);
            for (user, _) in value.uses() {
                self.enqueue(user);
            }
        }
    }

    /// Merges facts of one more path into those of a value.
    fn join_into(&mut self, value: Value<'c>, mut info: AxisInfo) {
        if !is_tracked(value.ty()) {
            return;
        }
        self.argument_hints(value, &mut info);
        if let Some(fact) = self.assumed.get(&value) {
            info.nonneg |= fact.nonneg;
            info.assume(&[], &[fact.div], &[]);
        }
        let Some(old) = self.infos.get(&value) else {
            return self.set(value, info);
        };
        let mut joined = old.join(&info);
        if joined == *old {
            return;
        }
        let changes = self.changes.entry(value).or_insert(0);
        *changes += 1;
        if *changes > CHANGES {
            joined = unknown_of(value.ty());
            self.argument_hints(value, &mut joined);
        }
        self.set(value, joined);
    }

    fn visit(&mut self, op: Op<'c>) {
        match_op!(op, {
            CallOp(call) => self.visit_call(call),
            ReturnOp => self.visit_return(op),
            FuncOp | FuncFuncOp | ModuleOp => {},
            _ => {
                self.pass_on(op);
                self.count(op);
                if op.num_regions() > 0 {
                    self.forget_blocks(op);
                }
                if op.num_regions() == 0 || !is_region_branch(op) {
                    self.visit_plain(op);
                }
            },
        });
    }

    /// Operands go where control flow takes them.
    fn pass_on(&mut self, op: Op<'c>) {
        for_each_edge(op, &mut |operand, target| {
            if let Some(info) = self.infos.get(&op.operand(operand)).cloned() {
                self.join_into(target, info);
            }
        });
    }

    /// Operands go to `targets`.
    fn pass(&mut self, op: Op<'c>, targets: &[Value<'c>]) {
        for (operand, target) in op.operands().zip(targets) {
            if let Some(info) = self.infos.get(&operand).cloned() {
                self.join_into(*target, info);
            }
        }
    }

    /// The induction variable of an `scf.for`.
    fn count(&mut self, op: Op<'c>) {
        let Some(around) = ForOp::cast(op) else { return };
        let Some(variable) = around.induction_variable() else { return };
        let bounds = [around.lower(), around.step()].map(|bound| self.infos.get(&bound).cloned());
        if let [Some(lower), Some(step)] = bounds {
            let mut counter = AxisInfo::multiple_of(lower.corner.min(step.corner));
            // Steps of scf.for are positive.
            counter.nonneg = lower.nonneg;
            self.join_into(variable, counter);
        }
    }

    fn visit_call(&mut self, call: CallOp<'c>) {
        let op = call.op();
        let Some(callee) = self.callee(call) else { return self.forget_results(op) };
        match callee.region(0).first_block() {
            Some(entry) => self.pass(op, &entry.args().collect::<Vec<_>>()),
            None => return self.forget_results(op),
        }
        if let Some(infos) = self.returns.get(&callee).cloned() {
            for (result, info) in op.results().zip(infos) {
                self.join_into(result, info);
            }
        }
    }

    fn visit_return(&mut self, op: Op<'c>) {
        let Some(function) = enclosing_function(op) else { return };
        let mut infos = Vec::new();
        for operand in op.operands() {
            match self.infos.get(&operand) {
                Some(info) => infos.push(info.clone()),
                None if is_tracked(operand.ty()) => return,
                None => infos.push(unknown_of(operand.ty())),
            }
        }
        let merged = match self.returns.get(&function) {
            Some(old) => old.iter().zip(&infos).map(|(a, b)| a.join(b)).collect(),
            None => infos,
        };
        if self.returns.get(&function) != Some(&merged) {
            self.returns.insert(function, merged);
            for call in self.callers.get(&function).cloned().unwrap_or_default() {
                self.enqueue(call);
            }
        }
    }

    fn forget_results(&mut self, op: Op<'c>) {
        for result in op.results().filter(|result| is_tracked(result.ty())) {
            self.set(result, unknown_of(result.ty()));
        }
    }

    /// Arguments of blocks that control flow does not carry.
    fn forget_blocks(&mut self, op: Op<'c>) {
        // Its induction variable is known.
        if ForOp::cast(op).is_some() {
            return;
        }
        for block in op.regions().filter_map(|region| region.first_block()) {
            for arg in block.args().filter(|arg| is_tracked(arg.ty()) && incoming(*arg).is_none()) {
                self.set(arg, unknown_of(arg.ty()));
            }
        }
    }

    fn visit_plain(&mut self, op: Op<'c>) {
        if op.num_results() == 0 || !op.results().any(|result| is_tracked(result.ty())) {
            return;
        }
        let mut operands: SmallVec<[AxisInfo; 3]> = SmallVec::new();
        for operand in op.operands() {
            match self.infos.get(&operand) {
                Some(info) => operands.push(info.clone()),
                // Wait until the operand is reached.
                None if is_tracked(operand.ty()) => return,
                None => operands.push(unknown_of(operand.ty())),
            }
        }
        for result in op.results().filter(|result| is_tracked(result.ty())) {
            let ty = result.ty();
            let mut info = transfer(op, result, &operands).unwrap_or_else(|| unknown_of(ty));
            if info.rank() != ty.as_tensor().map_or(0, |tensor| tensor.rank()) {
                info = unknown_of(ty);
            }
            info.unit = unit_of(ty);
            info.nonneg |= guards::is_nonneg(op);
            if op.has_discardable_attrs() {
                apply_hints(&mut info, ty, |name| op.discardable_attr(name));
            }
            self.set(result, info);
        }
    }
}

trait HasDiscardable {
    fn has_discardable_attrs(&self) -> bool;
}
impl HasDiscardable for Op<'_> {
    fn has_discardable_attrs(&self) -> bool {
        !self.discardable_attrs().is_empty()
    }
}

fn apply_hints<'c>(info: &mut AxisInfo, ty: Type<'c>, attr: impl Fn(&str) -> Option<Attr<'c>>) {
    let get = |name: &str| attr(name).map(hint_values).unwrap_or_default();
    let (mut contiguity, divisibility, mut constancy) =
        (get("tt.contiguity"), get("tt.divisibility"), get("tt.constancy"));
    if contiguity.is_empty() && divisibility.is_empty() && constancy.is_empty() {
        return;
    }
    // A run cannot be longer than its dimension.
    for (d, size) in shape_of(ty).iter().enumerate() {
        let size = *size as u64;
        for list in [&mut contiguity, &mut constancy] {
            if let Some(len) = list.get_mut(d) {
                *len = (*len).min(size);
            }
        }
    }
    info.assume(&contiguity, &divisibility, &constancy);
}

/// The facts about a result, `None` where the operation says nothing.
fn transfer<'c>(op: Op<'c>, result: Value<'c>, operands: &[AxisInfo]) -> Option<AxisInfo> {
    let ty = result.ty();
    let bits = bits_of(ty);
    let a = operands.first();
    let b = operands.get(1);
    Some(match_op!(op, {
        ConstantOp | LlvmConstantOp => constant(op, ty)?,
        MakeRangeOp(range) => AxisInfo::range(range.start(), ty.as_tensor()?.dim(0)),
        GetProgramIdOp | GetNumProgramsOp => AxisInfo { nonneg: true, ..AxisInfo::unknown(0) },
        AddIOp => a?.add(b?, bits),
        SubIOp => a?.sub(b?, bits),
        MulIOp => a?.mul(b?, bits),
        DivSIOp => a?.div(b?, true, bits),
        DivUIOp => a?.div(b?, false, bits),
        RemSIOp => a?.rem(b?, true, bits),
        RemUIOp => a?.rem(b?, false, bits),
        ShLIOp => a?.shl(b?, bits),
        ShRSIOp => a?.shr(b?, true, bits),
        ShRUIOp => a?.shr(b?, false, bits),
        AndIOp => a?.and(b?, bits),
        OrIOp => a?.or(b?, false, bits),
        XOrIOp => a?.or(b?, true, bits),
        MaxSIOp => a?.extremum(b?, true, true, bits),
        MinSIOp => a?.extremum(b?, false, true, bits),
        MaxUIOp => a?.extremum(b?, true, false, bits),
        MinUIOp => a?.extremum(b?, false, false, bits),
        SelectOp => a?.select(b?, operands.get(2)?),
        CmpIOp(test) => compare(test, a?, b?)?,
        ExtSIOp => a?.resize(bits_of(op.operand(0).ty()), bits, true),
        ExtUIOp => a?.resize(bits_of(op.operand(0).ty()), bits, false),
        TruncIOp => a?.resize(bits_of(op.operand(0).ty()), bits, false),
        IndexCastOp => a?.resize(bits_of(op.operand(0).ty()), bits, true),
        IndexCastUIOp => a?.resize(bits_of(op.operand(0).ty()), bits, false),
        AddPtrOp => {
            let offset = b?.scale(unit_of(ty));
            AxisInfo { constant: None, ..a?.add(&offset, 64) }
        },
        // Addresses count bytes, whatever they point at.
        BitcastOp if unit_known(op.operand(0).ty(), ty) => a?.clone(),
        IntToPtrOp | PtrToIntOp => AxisInfo { constant: None, ..a?.clone() },
        SplatOp => a?.splat(&shape_of(ty)),
        UnsplatOp => AxisInfo { corner: a?.all_divisible_by(), runs: SmallVec::new(), ..a?.clone() },
        BroadcastOp => a?.broadcast(&shape_of(op.operand(0).ty()), &shape_of(ty)),
        ExpandDimsOp(expand) => a?.expand_dims(usize::try_from(expand.axis()).ok()?),
        TransOp(trans) => a?.transpose(&trans.order()),
        // The order of elements may be any.
        ReshapeOp(reshape) if reshape.allow_reorder().is_some() => any_order(a?, ty),
        ReshapeOp => a?.reshape(&shape_of(op.operand(0).ty()), &shape_of(ty)),
        CatOp => any_order(&a?.join(b?), ty),
        JoinOp => join_pair(a?, b?),
        SplitOp => split_pair(a?),
        ConvertLayoutOp => a?.clone(),
        LoadOp(load) if !load.is_volatile() => equal_together(operands)?,
        _ => return None,
    }))
}

/// Elements of a result that follow from elements of operands that are equal are equal, and others are not, for all that is known.
fn equal_together(operands: &[AxisInfo]) -> Option<AxisInfo> {
    let rank = operands.first()?.rank();
    let mut out = AxisInfo::unknown(rank);
    for (d, run) in out.runs.iter_mut().enumerate() {
        let len = operands.iter().map(|info| if d < info.rank() { info.constancy(d) } else { 1 }).min()?;
        let lasts = if len > 1 { len } else { u64::MAX };
        *run = Run { lasts, ..Run::new(0, len, 1) };
    }
    Some(out)
}

/// Whether a bitcast keeps addresses or integers of one width as they are.
fn unit_known(from: Type<'_>, to: Type<'_>) -> bool {
    let pointers = pointee(from.element()).is_some() && pointee(to.element()).is_some();
    let ints = from.element().int_bits().is_some() && from.element().int_bits() == to.element().int_bits();
    pointers || ints
}

fn constant(op: Op<'_>, ty: Type<'_>) -> Option<AxisInfo> {
    let value = op.attr("value")?;
    let value = match value.as_elements() {
        Some(elements) => elements.splat_value()?.as_int()?,
        None => value.as_int()?,
    };
    Some(AxisInfo::constant(wrap(value, bits_of(ty)), &shape_of(ty)))
}

fn compare(test: CmpIOp<'_>, a: &AxisInfo, b: &AxisInfo) -> Option<AxisInfo> {
    // eq ne slt sle sgt sge ult ule ugt uge
    let order = match test.predicate()? {
        0 | 1 => Order::Equal,
        2 | 5 | 6 | 9 => Order::Less,
        3 | 4 | 7 | 8 => Order::Greater,
        _ => return None,
    };
    Some(a.compare(b, order))
}

/// Facts about all elements together survive any reordering.
fn any_order(info: &AxisInfo, ty: Type<'_>) -> AxisInfo {
    let all = AxisInfo { nonneg: info.nonneg, ..AxisInfo::multiple_of(info.all_divisible_by().min(MAX_DIV)) };
    let mut out = all.splat(&shape_of(ty));
    if info.constant.is_some() {
        out.constant = info.constant;
        return out;
    }
    out.runs.iter_mut().for_each(|run| run.len = 1);
    out
}

/// Two values side by side in a new last dimension.
fn join_pair(a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    if a.constant.is_some() && a.constant == b.constant {
        let mut out = a.expand_dims(a.rank());
        if let Some(run) = out.runs.last_mut() {
            run.len = 2;
        }
        return out;
    }
    let both = a.join(b);
    both.expand_dims(both.rank())
}

/// One half of the last dimension.
fn split_pair(a: &AxisInfo) -> AxisInfo {
    let mut out = a.clone();
    out.runs.pop();
    let runs = out.runs.iter().map(|run| run.div).max();
    out.corner = runs.unwrap_or_else(|| a.all_divisible_by());
    out
}
