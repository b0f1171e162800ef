//! Which tensor descriptors the hardware can have: the one place that decides.
//!
//! Descriptors that control flow may exchange for each other form a web, which is made of tensor maps as a
//! whole or of pointers as a whole. What is asked of a web:
//!
//! * the target copies in bulk, and blocks are such that boxes hold them ([`buffer_plans::tma_encoding`]);
//! * where a descriptor is made, its last stride is 1, the others are multiples of 16 bytes as far as they are
//!   constants, and elements outside of the tensor are NaN only if they are floats. Triton's front end asks the
//!   same of bases and strides that are not known here;
//! * as far as indices are constants, those along the last dimension are multiples of 16 bytes, and none is
//!   negative where the tensor is written: the hardware traps on others (seen on an H200, with Triton's code
//!   too);
//! * the only accesses are loads, stores, reductions that the memory system does, and of rows one by one those
//!   that begin where copies can ([`buffer_plans::tma_rows_encoding`]), and that copies were measured to move
//!   faster than threads ([`TmaRowsPlan::is_worth`]);
//! * a descriptor that is made in a loop is no iter_arg, since the next iteration makes its own in the same
//!   place, and none is returned by a function;
//! * all descriptors among a kernel's arguments are tensor maps or none is: launchers know one form.

use super::has_nan;
use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::buffer_plans;
use crate::ir_util::{constant, enclosing_function, for_each_edge, is_loop, is_private};
use crate::rewrite_tensor_descriptor_to_pointer::atomic_of;
use crate::tensor_moves;
use crate::tma::is_access;
use linear_layout::plan::{RowsFate, TMA_UNIT_BYTES, TmaRowsPlan};
use linear_layout::target::TargetDesc;
use mlir_host::ir::{Op, Type, Value, Walk};
use mlir_host::match_op;
use mlir_host::upstream::{Dialect, SelectOp};
use std::collections::HashMap;
use ttopt_dialect::interfaces::Dot;
use ttopt_dialect::tt::enums::{DescriptorReduceKind, PaddingOption};
use ttopt_dialect::tt::ops::{
    CallOp, DescriptorGatherOp, DescriptorLoadOp, DescriptorReduceOp, DescriptorScatterOp, DescriptorStoreOp,
    FuncOp, MakeTensorDescOp, ReturnOp,
};
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_dialect::ttng::ops::ReinterpretTensorDescOp;
use ttopt_dialect::ttng::verify::reduces_in_memory;

#[derive(Default)]
struct Web {
    /// The first reason not to have a tensor map.
    pointers: Option<String>,
    made: bool,
    made_in_loop: bool,
    /// Whether a loop, or a function that is called, accesses a tensor through it.
    used_again: bool,
    carried: bool,
    is_argument: bool,
    /// Whether something is done through it that pointers cannot do.
    needs_map: bool,
}

/// The descriptors of a module.
pub struct Webs<'c> {
    /// Absent where it has no tensor maps.
    target: Option<TargetDesc>,
    /// Whether also those have tensor maps that are faster with pointers.
    all: bool,
    numbers: HashMap<Value<'c>, usize>,
    /// By number: itself, or a number of the same web.
    parents: Vec<usize>,
    webs: Vec<Web>,
    /// What is known of indices, where tensor operations cannot begin before a tensor.
    signs: Option<AxisInfoAnalysis<'c>>,
}

/// Bytes of a row of a block, and of an element.
fn row_bytes(desc: TensorDescType<'_>) -> Option<(u64, u64)> {
    let bytes = u64::from(desc.element().bits()? / 8);
    Some((u64::try_from(*desc.shape().last()?).ok()? * bytes, bytes))
}

/// What becomes of the rows that `op` moves one by one.
fn fate(op: Op<'_>) -> RowsFate {
    let Some(rows) = op.results().next() else { return RowsFate::Scattered };
    let mut users = rows.uses().peekable();
    let is_factor = |(user, _): (Op<'_>, usize)| Dot::multiplies(user, rows);
    if rows.uses().any(|(user, _)| is_access(user)) {
        RowsFate::Stored
    } else if users.peek().is_some() && users.all(is_factor) {
        RowsFate::Multiplied
    } else {
        RowsFate::InRegisters
    }
}

/// Whether `op` may run more often than the kernel.
fn is_repeated(op: Op<'_>) -> bool {
    enclosing_function(op).is_some_and(is_private) || op.ancestor(is_loop).is_some()
}

fn is_descriptor(value: Value<'_>) -> bool {
    TensorDescType::cast(value.ty()).is_some()
}

impl<'c> Webs<'c> {
    /// The webs of `module`; without a `target` all are made of pointers. With `all` they have tensor maps also
    /// where pointers are faster, which differs where `several_blocks` work on a program.
    pub fn new(module: Op<'c>, target: Option<&TargetDesc>, all: bool, several_blocks: bool) -> Self {
        let several_blocks = several_blocks && !all;
        let mut this = Self {
            target: target.cloned(),
            all,
            numbers: HashMap::new(),
            parents: Vec::new(),
            webs: Vec::new(),
            signs: None,
        };
        if target.is_none() {
            return this;
        }
        let mut ops = Vec::new();
        module.walk(&mut |op| {
            ops.push(op);
            Walk::Advance
        });
        for op in &ops {
            let args = op.regions().flat_map(|region| region.blocks()).flat_map(|block| block.args());
            for value in args.chain(op.results()).filter(|value| is_descriptor(*value)) {
                this.register(value);
            }
        }
        if this.has_mover() && !this.webs.is_empty() {
            this.signs = Some(AxisInfoAnalysis::new(module));
        }
        for op in ops {
            if op.operands().chain(op.results()).any(is_descriptor) || FuncOp::cast(op).is_some() {
                this.visit(module, op);
            }
        }
        this.compress();
        let mover = this.has_mover();
        for web in &mut this.webs {
            // Measured on an H200 (docs/tma.md): each block makes the map for its own part.
            if several_blocks && web.made && !web.used_again && !web.needs_map {
                let reason = "each block of a cluster would make a tensor map for copies outside of loops";
                web.pointers.get_or_insert_with(|| reason.to_owned());
            }
            if web.made_in_loop && web.carried && !mover {
                let reason = "a loop makes it and carries it on, while there is one place for a tensor map";
                web.pointers.get_or_insert_with(|| reason.to_owned());
            }
        }
        if this.webs.iter().any(|web| web.is_argument && web.pointers.is_some()) {
            let reason = "another descriptor among the kernel's arguments has none";
            for web in this.webs.iter_mut().filter(|web| web.is_argument) {
                web.pointers.get_or_insert_with(|| reason.to_owned());
            }
        }
        this
    }

    /// Whether tensor operations by descriptors of AMD's are what descriptors are for.
    fn has_mover(&self) -> bool {
        self.target.as_ref().is_some_and(|target| target.primitives.tensor_data_mover)
    }

    /// What tensor operations of AMD's cannot do, or what launchers do not pass.
    fn visit_by_mover(&mut self, op: Op<'c>, descriptors: &[Value<'c>]) {
        let refuse = |this: &mut Self, reason: &str| {
            descriptors.iter().for_each(|value| this.refuse(*value, reason));
        };
        match_op!(op, {
            FuncOp => {
                let args: Vec<Value<'c>> =
                    op.region(0).first_block().into_iter().flat_map(|block| block.args()).collect();
                for arg in args.into_iter().filter(|arg| is_descriptor(*arg)) {
                    self.refuse(arg, "a launcher passes its parts");
                }
            },
            MakeTensorDescOp(make) => {
                let result = op.result(0);
                if make.padding() == PaddingOption::Nan {
                    self.refuse(result, "tensor operations fill what is outside of a tensor with zeros");
                }
                let mut strides: Vec<Value<'c>> = make.strides().collect();
                if strides.pop().and_then(constant) != Some(1) {
                    self.refuse(result, "its last stride is not the constant 1");
                }
                if strides.into_iter().filter_map(constant).any(|stride| stride < 0) {
                    self.refuse(result, "one of its strides is negative");
                }
            },
            DescriptorLoadOp(load) => self.is_inside(load.desc(), load.indices().collect()),
            DescriptorStoreOp(store) => self.is_inside(store.desc(), store.indices().collect()),
            DescriptorReduceOp => refuse(self, "there are no reductions by tensor operations"),
            DescriptorGatherOp | DescriptorScatterOp => refuse(self, "its rows are moved one by one"),
            SelectOp => refuse(self, "a select chooses it"),
            CallOp | ReturnOp => refuse(self, "it is passed between functions"),
            _ => self.visit_other(op, descriptors),
        });
    }

    /// A tensor operation that begins before the tensor moves nothing.
    fn is_inside(&mut self, desc: Value<'c>, indices: Vec<Value<'c>>) {
        let known = |index: &Value<'c>| {
            self.signs.as_ref().and_then(|signs| signs.get(*index)).is_some_and(|info| info.nonneg)
        };
        if !indices.iter().all(known) {
            self.refuse(desc, "an index may be negative, and a tensor operation that begins before the tensor moves nothing");
        }
    }

    /// Why a descriptor has no tensor map; `None` when it has one.
    pub fn reason(&self, value: Value<'c>) -> Option<&str> {
        match self.numbers.get(&value) {
            Some(number) => self.webs[self.root(*number)].pointers.as_deref(),
            None => Some("the target has none"),
        }
    }

    /// The number of the web of a descriptor.
    pub fn web_of(&self, value: Value<'c>) -> Option<usize> {
        self.numbers.get(&value).map(|number| self.root(*number))
    }

    /// The root of a number, once all webs are made: [`compress`](Self::compress) has made it its parent.
    fn root(&self, number: usize) -> usize {
        self.parents[number]
    }

    /// The root of a number; halves the way there.
    fn find(&mut self, mut number: usize) -> usize {
        while self.parents[number] != number {
            self.parents[number] = self.parents[self.parents[number]];
            number = self.parents[number];
        }
        number
    }

    fn compress(&mut self) {
        (0..self.parents.len()).for_each(|number| self.parents[number] = self.find(number));
    }

    fn register(&mut self, value: Value<'c>) {
        let number = self.parents.len();
        self.numbers.insert(value, number);
        self.parents.push(number);
        let reason =
            TensorDescType::cast(value.ty()).zip(self.target.as_ref()).and_then(
                |(desc, target)| match target.primitives.tensor_data_mover {
                    true => tensor_moves::refusal(desc, target),
                    false => buffer_plans::tma_encoding(desc, &[], target).err(),
                },
            );
        self.webs.push(Web { pointers: reason, ..Web::default() });
    }

    fn web(&mut self, value: Value<'c>) -> Option<&mut Web> {
        let number = *self.numbers.get(&value)?;
        let root = self.find(number);
        self.webs.get_mut(root)
    }

    fn refuse(&mut self, value: Value<'c>, reason: impl Into<String>) {
        if let Some(web) = self.web(value) {
            web.pointers.get_or_insert_with(|| reason.into());
        }
    }

    fn unite(&mut self, a: Value<'c>, b: Value<'c>) {
        let (Some(&a), Some(&b)) = (self.numbers.get(&a), self.numbers.get(&b)) else { return };
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return;
        }
        self.parents[b] = a;
        let other = std::mem::take(&mut self.webs[b]);
        let web = &mut self.webs[a];
        web.made |= other.made;
        web.made_in_loop |= other.made_in_loop;
        web.used_again |= other.used_again;
        web.carried |= other.carried;
        web.is_argument |= other.is_argument;
        web.needs_map |= other.needs_map;
        if web.pointers.is_none() {
            web.pointers = other.pointers;
        }
    }

    fn visit(&mut self, module: Op<'c>, op: Op<'c>) {
        let descriptors: Vec<Value<'c>> =
            op.operands().chain(op.results()).filter(|value| is_descriptor(*value)).collect();
        if is_access(op)
            && is_repeated(op)
            && let Some(web) = self.web(op.operand(0))
        {
            web.used_again = true;
        }
        if self.has_mover() {
            return self.visit_by_mover(op, &descriptors);
        }
        match_op!(op, {
            FuncOp => {
                let entry = op.region(0).first_block().filter(|_| !is_private(op));
                for arg in entry.into_iter().flat_map(|block| block.args()) {
                    if let Some(web) = self.web(arg) {
                        web.is_argument = true;
                    }
                }
            },
            MakeTensorDescOp => self.make(op),
            DescriptorLoadOp(load) => {
                self.starts_at(load.desc(), &load.indices().collect::<Vec<_>>(), false);
            },
            DescriptorStoreOp(store) => {
                self.starts_at(store.desc(), &store.indices().collect::<Vec<_>>(), true);
            },
            DescriptorReduceOp(reduce) => {
                self.starts_at(reduce.desc(), &reduce.indices().collect::<Vec<_>>(), true);
                let kind = reduce.kind();
                let element = TensorDescType::cast(op.operand(0).ty()).map(|desc| desc.element());
                // Sums of 64 bits are unsigned, and comparisons take integers without sign to be signed.
                let compares = matches!(kind, DescriptorReduceKind::Min | DescriptorReduceKind::Max);
                if let Some(element) = element
                    && atomic_of(kind, element, true).is_none()
                    && let Some(web) = self.web(op.operand(0))
                {
                    web.needs_map = true;
                }
                let unsure = |element: Type<'c>| compares && element.is_signless() && element.is_int(64);
                if let Some(element) = element
                    && (!reduces_in_memory(kind, element) || unsure(element))
                {
                    self.refuse(op.operand(0), format!("TMA has no '{}' of '{element}'", kind.keyword()));
                }
            },
            DescriptorGatherOp | DescriptorScatterOp => {
                let (desc, column) = (op.operand(0), op.operand(2));
                let ty = TensorDescType::cast(desc.ty());
                let reason = ty.zip(self.target.as_ref()).and_then(|(ty, target)| {
                    let possible = buffer_plans::tma_rows_encoding(ty, &[], target).err();
                    let slow = || TmaRowsPlan::is_worth(row_bytes(ty)?, fate(op), target).err();
                    possible.or_else(|| if self.all { None } else { slow() })
                });
                if let Some(reason) = reason {
                    self.refuse(desc, reason);
                }
                self.starts_at(desc, &[column], DescriptorScatterOp::cast(op).is_some());
            },
            // Its address is all that is known.
            ReinterpretTensorDescOp => {},
            SelectOp => {
                self.unite(op.result(0), op.operand(1));
                self.unite(op.result(0), op.operand(2));
            },
            CallOp(call) => self.call(module, call),
            ReturnOp => {
                descriptors.iter().for_each(|value| self.refuse(*value, "a function returns it"));
            },
            _ => self.visit_other(op, &descriptors),
        });
    }

    /// Control flow passes descriptors on; nothing else knows what to do with them.
    fn visit_other(&mut self, op: Op<'c>, descriptors: &[Value<'c>]) {
        let Some(dialect @ (Dialect::Scf | Dialect::Cf)) = Dialect::of(op) else {
            let reason = format!("'{}' does not work on tensor maps", op.name());
            descriptors.iter().for_each(|value| self.refuse(*value, reason.clone()));
            return;
        };
        let mut edges = Vec::new();
        for_each_edge(op, &mut |operand, target| edges.push((op.operand(operand), target)));
        let loops = is_loop(op) || op.parent().is_some_and(is_loop) || dialect == Dialect::Cf;
        for (from, to) in edges {
            self.unite(from, to);
            if let Some(web) = self.web(to) {
                web.carried |= loops;
            }
        }
    }

    /// A copy begins at a multiple of 16 bytes along the last dimension, and one to a tensor not before its
    /// start: constants may say otherwise.
    fn starts_at(&mut self, desc: Value<'c>, indices: &[Value<'c>], writes: bool) {
        // Others are refused where they are made.
        let bits = TensorDescType::cast(desc.ty()).and_then(|desc| desc.element().bits());
        let Some(bytes) = bits.map(|bits| bits / 8) else { return };
        if let Some(index) = indices.last().copied().and_then(constant)
            && index.wrapping_mul(bytes.into()) % TMA_UNIT_BYTES as i64 != 0
        {
            let what = format!("no multiple of {TMA_UNIT_BYTES} bytes");
            self.refuse(desc, format!("the index {index} along its last dimension is {what}"));
        }
        let mut known = indices.iter().copied().filter_map(constant);
        if let Some(index) = known.find(|index| writes && *index < 0) {
            self.refuse(desc, format!("TMA writes no tensor from the index {index} on"));
        }
    }

    fn call(&mut self, module: Op<'c>, call: CallOp<'c>) {
        let (op, symbol) = (call.op(), call.callee().as_symbol());
        let body = module.region(0).first_block();
        let callee = body.into_iter().flat_map(|block| block.ops()).find(|function| {
            FuncOp::cast(*function).is_some_and(|function| Some(function.sym_name()) == symbol)
        });
        let entry = callee.and_then(|function| function.region(0).first_block());
        for (operand, arg) in op.operands().zip(entry.into_iter().flat_map(|block| block.args())) {
            self.unite(operand, arg);
        }
        op.results().for_each(|result| self.refuse(result, "a function returns it"));
    }

    fn make(&mut self, op: Op<'c>) {
        let make = MakeTensorDescOp::of(op);
        let result = op.result(0);
        let Some(desc) = TensorDescType::cast(result.ty()) else { return };
        if op.ancestor(is_loop).is_some()
            && let Some(web) = self.web(result)
        {
            web.made_in_loop = true;
        }
        if let Some(web) = self.web(result) {
            web.made = true;
        }
        let element = desc.element();
        if make.padding() == PaddingOption::Nan && !has_nan(element) {
            self.refuse(result, format!("elements of type {element} outside of the tensor cannot be NaN"));
        }
        let mut strides: Vec<Value<'c>> = make.strides().collect();
        if let Some(last) = strides.pop()
            && constant(last) != Some(1)
        {
            self.refuse(result, "its last stride is not the constant 1");
        }
        let Some(bytes) = element.bits().map(|bits| i64::from(bits / 8)) else {
            return self.refuse(result, format!("elements of type {element} have no size"));
        };
        for stride in strides.into_iter().filter_map(constant) {
            let all = stride.checked_mul(bytes).filter(|all| *all > 0);
            if all.is_none_or(|all| all % TMA_UNIT_BYTES as i64 != 0) {
                let reason = format!(
                    "a stride of {stride} elements is no positive multiple of {TMA_UNIT_BYTES} bytes"
                );
                self.refuse(result, reason);
            }
        }
        for size in make.shape().filter_map(constant).filter(|size| *size < 1) {
            self.refuse(result, format!("a tensor map has no dimension of {size} elements"));
        }
    }
}
