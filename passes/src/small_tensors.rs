//! Offsets from the kernel's arguments, where the tensors that these point to are small.
//!
//! The front end marks a pointer argument `tt.pointer_range = 32` where the memory of its tensor has fewer than two
//! gibibytes. Whatever a thread may access through it then lies at an offset of 31 bits, so that 32 bits of the sum of all
//! that is added to the argument are enough. The same sum is carried through loops beside the pointers that they step
//! through; lanes that access nothing may have any.

use crate::analysis::pointer_roots::pointer_roots;
use crate::ir_util::{emit, remake};
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, Op, Type, Value};
use mlir_host::rewrite::create;
use mlir_host::upstream::ForOp;
use ttopt_dialect::tt::ops::{AddPtrOp, BroadcastOp, ExpandDimsOp, FuncOp, SplatOp};

/// The mark of an argument: bits of the offsets of what it points to, in bytes.
const POINTER_RANGE: &str = "tt.pointer_range";

/// An argument, and the sum of what is added to it, in elements, `i32` or a tensor of it; none is zero.
type Offset<'c> = (Value<'c>, Option<Value<'c>>);

/// The offsets that have been made, by pointers or tensors of them.
#[derive(Default)]
pub struct SmallTensors<'c> {
    made: FastMap<Value<'c>, Offset<'c>>,
}

impl<'c> SmallTensors<'c> {
    /// The argument that the pointers `value` are counted from and their offsets, which are made where the pointers are;
    /// `None` where they are computed in another way than by additions to an argument of a small tensor, or where
    /// nothing is added.
    ///
    /// # Errors
    /// When an operation cannot be made; it is reported.
    pub fn offset(&mut self, value: Value<'c>) -> Result<Option<(Value<'c>, Value<'c>)>, Reported> {
        Ok(self.find(value)?.and_then(|(base, offset)| Some((base, offset?))))
    }

    fn find(&mut self, value: Value<'c>) -> Result<Option<Offset<'c>>, Reported> {
        if let Some(made) = self.made.get(&value) {
            return Ok(Some(*made));
        }
        let found = match (value.def_op(), value.arg_block()) {
            (Some(op), _) => self.computed(op)?,
            (None, Some(block)) => self.argument(value, block)?,
            (None, None) => None,
        };
        self.made.extend(found.map(|found| (value, found)));
        Ok(found)
    }

    fn computed(&mut self, op: Op<'c>) -> Result<Option<Offset<'c>>, Reported> {
        let Some(after) = op.next() else { return Ok(None) };
        if let Some(add) = AddPtrOp::cast(op) {
            let Some((base, offset)) = self.find(add.ptr())? else { return Ok(None) };
            let added = narrow(add.offset(), after)?;
            let sum = match offset {
                Some(offset) => emit(after, "arith.addi", &[offset, added], added.ty())?,
                None => added,
            };
            return Ok(Some((base, Some(sum))));
        }
        if SplatOp::cast(op).is_none() && BroadcastOp::cast(op).is_none() && ExpandDimsOp::cast(op).is_none()
        {
            return Ok(None);
        }
        let Some((base, offset)) = self.find(op.operand(0))? else { return Ok(None) };
        let Some(offset) = offset else { return Ok(Some((base, None))) };
        let Some(ty) = offset_type(op.result(0)) else { return Ok(None) };
        let made = create(op.name(), op.loc(), &[offset], &[ty], &op.attrs(), &[])?;
        made.move_before(after);
        Ok(Some((base, Some(made.result(0)))))
    }

    fn argument(&mut self, value: Value<'c>, block: Block<'c>) -> Result<Option<Offset<'c>>, Reported> {
        let Some(op) = block.parent() else { return Ok(None) };
        if FuncOp::cast(op).is_some() && op.region(0).first_block() == Some(block) {
            return Ok(is_small(op, value.index()).then_some((value, None)));
        }
        let carried = value.index().checked_sub(1).filter(|_| ForOp::cast(op).is_some());
        let (Some(carried), Some(end)) = (carried, block.terminator()) else { return Ok(None) };
        let next = end.operand(carried);
        let first = op.operand(3 + carried);
        if !adds_to(next, value) {
            return Ok(None);
        }
        let Some((base, offset)) = self.find(first)? else { return Ok(None) };
        let Some(ty) = offset_type(value) else { return Ok(None) };
        // The search may have given a loop around this one another form, but not this one.
        let offset = match offset {
            Some(offset) => offset,
            None => zero(op, ty)?,
        };
        let operands: Vec<Value<'c>> = op.operands().chain([offset]).collect();
        let types: Vec<Type<'c>> = op.results().map(Value::ty).chain([ty]).collect();
        let made = remake(op, &operands, &types)?;
        for (new, old) in made.results().zip(op.results()) {
            old.replace_all_uses_with(new);
        }
        op.erase();
        let own = block.add_arg(ty, value.loc());
        self.made.insert(value, (base, Some(own)));
        let next = self.find(next)?.and_then(|(_, offset)| offset).unwrap_or(own);
        let yielded: Vec<Value<'c>> = end.operands().chain([next]).collect();
        end.set_operands(&yielded);
        Ok(Some((base, Some(own))))
    }
}

/// Whether `value` is `from`, with numbers added.
fn adds_to(mut value: Value<'_>, from: Value<'_>) -> bool {
    while value != from {
        let Some(add) = value.def_op().and_then(AddPtrOp::cast) else { return false };
        value = add.ptr();
    }
    true
}

/// Whether an argument of a function is marked.
fn is_small(function: Op<'_>, arg: usize) -> bool {
    let attrs = function.attr("arg_attrs").and_then(Attr::as_array);
    let attr = attrs.and_then(|attrs| attrs.get(arg).copied());
    let range = attr.and_then(|attr| attr.get(POINTER_RANGE)).and_then(Attr::as_int);
    range.is_some_and(|bits| (1..=32).contains(&bits))
}

/// Whether all that `pointers` are computed from are arguments that are marked.
pub fn are_small(pointers: Value<'_>) -> bool {
    let marked = |root: &Value<'_>| {
        let function = root.arg_block().and_then(Block::parent);
        function.is_some_and(|function| is_small(function, root.index()))
    };
    pointer_roots(pointers).is_some_and(|roots| !roots.is_empty() && roots.iter().all(marked))
}

/// The type of the offsets of pointers.
fn offset_type<'c>(pointers: Value<'c>) -> Option<Type<'c>> {
    let word = Type::int(pointers.ty().context(), 32);
    match pointers.ty().as_tensor() {
        Some(ty) => ty.with_element(word).map(|ty| ty.ty()),
        None => Some(word),
    }
}

/// The low 32 bits of integers.
fn narrow<'c>(value: Value<'c>, before: Op<'c>) -> Result<Value<'c>, Reported> {
    let bits = value.ty().element().int_bits().unwrap_or(32);
    let ty = offset_type(value).filter(|_| bits != 32);
    match ty {
        None => Ok(value),
        Some(ty) => emit(before, if bits > 32 { "arith.trunci" } else { "arith.extsi" }, &[value], ty),
    }
}

/// Zeros of type `ty`.
fn zero<'c>(before: Op<'c>, ty: Type<'c>) -> Result<Value<'c>, Reported> {
    let ctx = before.context();
    let number = Attr::int(ctx, 32, 0);
    let made = create("arith.constant", before.loc(), &[], &[Type::int(ctx, 32)], &[("value", number)], &[])?;
    made.move_before(before);
    let scalar = made.result(0);
    if ty == scalar.ty() { Ok(scalar) } else { emit(before, "tt.splat", &[scalar], ty) }
}
