//! One access through a descriptor: pointers, masks, and the access itself.

use super::{ALIGNMENT, Parts, before, constant, with_attrs};
use crate::ir_util::cmpi;
use crate::machine::{error, internal};
use crate::tma::moves_rows;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, FloatKind, Op, TensorType, Type, Value};
use mlir_host::match_op;
use mlir_host::upstream::ConstantOp;
use ttopt_dialect::tt::enums::{DescriptorReduceKind, MemSemantic, MemSyncScope, RmwOp};
use ttopt_dialect::tt::ops::{
    AtomicRmwOp, DescriptorGatherOp, DescriptorLoadOp, DescriptorReduceOp, DescriptorScatterOp,
    DescriptorStoreOp, LoadOp, StoreOp,
};
use ttopt_dialect::tt::types::{TensorDescType, pointer_to};

/// That neither is NaN, in the numbers of predicates of `arith.cmpf`.
const ORD: i64 = 7;

/// Indices along one dimension of the block.
struct Along<'c> {
    /// `i32` or `i64`, the block's size in one dimension and one in the others.
    index: Value<'c>,
    /// `i1`, of the same shape: inside of the tensor, or in one chunk with what is.
    inside: Value<'c>,
    /// Where that is more: whether the index is below the tensor's size.
    below: Option<Value<'c>>,
}

/// The elements that an access moves.
struct Elements<'c> {
    pointers: Value<'c>,
    /// Those that may be accessed.
    mask: Value<'c>,
    /// Those of them that are inside of the tensor, where others are not.
    inside: Option<Value<'c>>,
}

pub(super) struct Access<'a, 'c> {
    op: Op<'c>,
    parts: &'a Parts<'c>,
    /// Of the block as the descriptor has it.
    shape: Vec<i64>,
    element: Type<'c>,
    signed: bool,
}

impl<'a, 'c> Access<'a, 'c> {
    pub(super) fn new(op: Op<'c>, parts: &'a Parts<'c>, ty: TensorDescType<'c>) -> Result<Self, Reported> {
        let mut shape = ty.shape();
        if moves_rows(op) {
            // One row of the descriptor for each offset.
            let rows = op.operand(1).ty().as_tensor().map(|rows| rows.dim(0));
            if let (Some(rows), Some(height)) = (rows, shape.first_mut()) {
                *height = rows;
            }
        }
        if parts.shape.len() != shape.len() || shape.is_empty() {
            return Err(error(op, "access of another rank than its tensor descriptor"));
        }
        let element = ty.signless_element();
        Ok(Self { op, parts, shape, element, signed: !ty.element().to_string().starts_with('u') })
    }

    fn i32t(&self) -> Type<'c> {
        Type::int(self.op.context(), 32)
    }
    fn i64t(&self) -> Type<'c> {
        Type::int(self.op.context(), 64)
    }
    fn i1(&self) -> Type<'c> {
        Type::int(self.op.context(), 1)
    }
    fn tensor(&self, shape: &[i64], element: Type<'c>) -> Result<Type<'c>, Reported> {
        let made = TensorType::new(shape, element, None);
        made.map(TensorType::ty).ok_or_else(|| error(self.op, format!("no tensor of {element}")))
    }
    fn before(&self, name: &str, operands: &[Value<'c>], result: Type<'c>) -> Result<Value<'c>, Reported> {
        before(self.op, name, operands, result)
    }
    fn splat(&self, value: Value<'c>, like: Type<'c>) -> Result<Value<'c>, Reported> {
        let ty = like.as_tensor().and_then(|ty| ty.with_element(value.ty()));
        let ty = ty.ok_or_else(|| error(self.op, "no tensor to splat to"))?;
        self.before("tt.splat", &[value], ty.ty())
    }
    fn widened(&self, value: Value<'c>) -> Result<Value<'c>, Reported> {
        if value.ty().element().is_int(64) {
            return Ok(value);
        }
        let wide = match value.ty().as_tensor() {
            Some(tensor) => tensor.with_element(self.i64t()).map(TensorType::ty),
            None => Some(self.i64t()),
        };
        let wide = wide.ok_or_else(|| error(self.op, "no wide type"))?;
        self.before("arith.extsi", &[value], wide)
    }
    fn compare(&self, predicate: i64, a: Value<'c>, b: Value<'c>) -> Result<Value<'c>, Reported> {
        let ty = a.ty().as_tensor().and_then(|ty| ty.with_element(self.i1()));
        let ty = ty.ok_or_else(|| error(self.op, "no tensor to compare"))?;
        let predicate = Attr::int(self.op.context(), 64, predicate);
        with_attrs(self.op, "arith.cmpi", &[a, b], ty.ty(), &[("predicate", predicate)])
    }

    /// A vector along `dim`, as a tensor with one element in all other dimensions.
    fn expanded(&self, vector: Value<'c>, dim: usize) -> Result<Value<'c>, Reported> {
        let mut value = vector;
        let element = vector.ty().element();
        let mut shape = vec![self.shape[dim]];
        for axis in (0..self.shape.len()).filter(|axis| *axis != dim) {
            let at = axis.min(shape.len());
            shape.insert(at, 1);
            let ty = self.tensor(&shape, element)?;
            let axis = Attr::int_of(self.i32t(), at as i64);
            value = with_attrs(self.op, "tt.expand_dims", &[value], ty, &[("axis", axis)])?;
        }
        Ok(value)
    }

    /// The elements of a row that share [`ALIGNMENT`] bytes, where they may all be loaded when the first of them is inside of the
    /// tensor. What is loaded lies within 16 aligned bytes with an element of the tensor, so it exists. Nobody says of which numbers
    /// the sizes are multiples: without this, elements would have a mask each, and be loaded one by one.
    fn chunk(&self) -> Option<i64> {
        let chunk = 8 * ALIGNMENT / i64::from(self.element.bits()?);
        (self.parts.passed && chunk > 1 && self.shape.len() > 1).then_some(chunk)
    }

    /// The indices along `dim`, which begin at `first`, or are `rows`; inside of the tensor with the first index of their chunk, where
    /// there are such.
    fn along(&self, dim: usize, first: Value<'c>, chunk: Option<i64>) -> Result<Along<'c>, Reported> {
        let vector = match first.ty().as_tensor() {
            Some(_) => first,
            None => {
                let ty = self.tensor(&[self.shape[dim]], self.i32t())?;
                let number = |n: i64| Attr::int_of(self.i32t(), n);
                let attrs = [("start", number(0)), ("end", number(self.shape[dim]))];
                let range = with_attrs(self.op, "tt.make_range", &[], ty, &attrs)?;
                let first = self.splat(first, ty)?;
                self.before("arith.addi", &[first, range], ty)?
            }
        };
        let mut index = self.expanded(vector, dim)?;
        let size = self.parts.shape[dim];
        if size.ty() == self.i64t() {
            index = self.widened(index)?;
        }
        let element = index.ty().element();
        let zero = constant(self.op, element, Attr::int_of(element, 0))?;
        let (zero, size) = (self.splat(zero, index.ty())?, self.splat(size, index.ty())?);
        let (above, below) = (self.compare(cmpi::SGE, index, zero)?, self.compare(cmpi::SLT, index, size)?);
        let of_chunk = match chunk {
            Some(chunk) => {
                let rounding = constant(self.op, element, Attr::int_of(element, -chunk))?;
                let rounding = self.splat(rounding, index.ty())?;
                let start = self.before("arith.andi", &[index, rounding], index.ty())?;
                Some(self.compare(cmpi::SLT, start, size)?)
            }
            None => None,
        };
        let inside = self.before("arith.andi", &[above, of_chunk.unwrap_or(below)], above.ty())?;
        Ok(Along { index, inside, below: of_chunk.map(|_| below) })
    }

    fn broadcast(&self, value: Value<'c>) -> Result<Value<'c>, Reported> {
        let ty = self.tensor(&self.shape, value.ty().element())?;
        if value.ty() == ty { Ok(value) } else { self.before("tt.broadcast", &[value], ty) }
    }

    /// Pointers to the elements of the block, and which of them are inside of the tensor.
    fn pointers(&self, firsts: &[Value<'c>]) -> Result<(Value<'c>, Value<'c>), Reported> {
        let Elements { pointers, mask, .. } = self.elements(firsts, None)?;
        Ok((pointers, mask))
    }

    /// The elements of the block, and which of them are in chunks that are inside of the tensor.
    fn elements(&self, firsts: &[Value<'c>], chunk: Option<i64>) -> Result<Elements<'c>, Reported> {
        if firsts.len() != self.shape.len() {
            return Err(error(self.op, "has another number of indices than its tensor descriptor"));
        }
        let (mut offsets, mut inside): (Option<Value<'c>>, Option<Value<'c>>) = (None, None);
        let mut below = None;
        for (dim, first) in firsts.iter().enumerate() {
            let along = self.along(dim, *first, chunk.filter(|_| dim + 1 == firsts.len()))?;
            below = along.below;
            let index = self.widened(along.index)?;
            let offset = if dim + 1 == firsts.len() && self.parts.passed {
                index
            } else {
                let stride = self.splat(self.parts.strides[dim], index.ty())?;
                self.before("arith.muli", &[index, stride], index.ty())?
            };
            let (offset, valid) = (self.broadcast(offset)?, self.broadcast(along.inside)?);
            offsets = Some(match offsets {
                Some(sum) => self.before("arith.addi", &[sum, offset], sum.ty())?,
                None => offset,
            });
            inside = Some(match inside {
                Some(all) => self.before("arith.andi", &[all, valid], all.ty())?,
                None => valid,
            });
        }
        let (Some(offsets), Some(mask)) = (offsets, inside) else {
            return Err(internal(self.op, "a descriptor without dimensions"));
        };
        let base = self.splat(self.parts.base, offsets.ty())?;
        let pointers = self.before("tt.addptr", &[base, offsets], base.ty())?;
        let inside = below.map(|below| self.broadcast(below)).transpose()?;
        Ok(Elements { pointers, mask, inside })
    }

    /// The same elements in row-major order, in another shape.
    fn reshaped(&self, value: Value<'c>, ty: Type<'c>) -> Result<Value<'c>, Reported> {
        if value.ty() == ty { Ok(value) } else { self.before("tt.reshape", &[value], ty) }
    }

    /// What elements outside of the tensor are.
    fn padding(&self, ty: Type<'c>) -> Result<Value<'c>, Reported> {
        let fill = |value: Attr<'c>| constant(self.op, ty, Attr::splat(ty, value));
        if !self.element.is_float() {
            return fill(Attr::int_of(self.element, 0));
        }
        match flag(self.parts.nan) {
            Some(true) => fill(Attr::float_of(self.element, f64::NAN)),
            Some(false) => fill(Attr::float_of(self.element, 0.0)),
            None => {
                let nan = fill(Attr::float_of(self.element, f64::NAN))?;
                let zero = fill(Attr::float_of(self.element, 0.0))?;
                self.before("arith.select", &[self.parts.nan, nan, zero], ty)
            }
        }
    }

    /// `f32` rounded to the 10 bits of mantissa of `tf32`, to nearest even, where the descriptor says so.
    fn rounded(&self, value: Value<'c>) -> Result<Value<'c>, Reported> {
        let f32_elements = self.element.float_kind() == Some(FloatKind::F32);
        if !f32_elements || flag(self.parts.round) == Some(false) {
            return Ok(value);
        }
        let ty = self.tensor(&self.shape, self.i32t())?;
        let number = |n: i64| constant(self.op, ty, Attr::splat(ty, Attr::int_of(self.i32t(), n)));
        let bits = self.before("tt.bitcast", &[value], ty)?;
        let exponent = number(0x7F80_0000)?;
        let exponent_bits = self.before("arith.andi", &[bits, exponent], ty)?;
        let special = {
            let ty = self.tensor(&self.shape, self.i1())?;
            let equal = Attr::int(self.op.context(), 64, 0);
            with_attrs(self.op, "arith.cmpi", &[exponent_bits, exponent], ty, &[("predicate", equal)])?
        };
        let shifted = self.before("arith.shrui", &[bits, number(13)?], ty)?;
        let even = self.before("arith.andi", &[shifted, number(1)?], ty)?;
        let half = self.before("arith.addi", &[even, number(0xFFF)?], ty)?;
        let sum = self.before("arith.addi", &[bits, half], ty)?;
        let cut = self.before("arith.andi", &[sum, number(-0x2000)?], ty)?;
        let kept = self.before("arith.select", &[special, bits, cut], ty)?;
        let kept = self.before("tt.bitcast", &[kept], value.ty())?;
        self.before("arith.select", &[self.parts.round, kept, value], value.ty())
    }

    fn load(&self, firsts: &[Value<'c>]) -> Result<(), Reported> {
        let Elements { pointers, mask, inside } = self.elements(firsts, self.chunk())?;
        let ty = self.tensor(&self.shape, self.element)?;
        let other = self.padding(ty)?;
        let policy = DescriptorLoadOp::cast(self.op).and_then(DescriptorLoadOp::cache_policy);
        let loaded = LoadOp::build(self.op.loc(), pointers).mask(mask).other(other).cache_policy(policy);
        let loaded = loaded.results(&[ty]).detached()?;
        loaded.op().move_before(self.op);
        let loaded = match inside {
            Some(inside) => self.before("arith.select", &[inside, loaded.result(), other], ty)?,
            None => loaded.result(),
        };
        let loaded = self.rounded(loaded)?;
        let result = self.op.result(0);
        result.replace_all_uses_with(self.reshaped(loaded, result.ty())?);
        Ok(())
    }

    fn store(&self, source: Value<'c>, firsts: &[Value<'c>]) -> Result<(), Reported> {
        let (pointers, inside) = self.pointers(firsts)?;
        let source = self.reshaped(source, self.tensor(&self.shape, self.element)?)?;
        let store = StoreOp::build(self.op.loc(), pointers, source).mask(inside).detached()?;
        store.op().move_before(self.op);
        Ok(())
    }

    fn reduce(&self, reduce: DescriptorReduceOp<'c>, firsts: &[Value<'c>]) -> Result<(), Reported> {
        let kind = reduce.kind();
        let atomic = atomic_of(kind, self.element, self.signed);
        let extremum = extremum_of(kind, self.element);
        if atomic.is_none() && extremum.is_none() {
            let what = format!("'{}' of '{}' cannot be done through pointers", kind.keyword(), self.element);
            return Err(error(self.op, what));
        }
        let (pointers, inside) = self.pointers(firsts)?;
        let source = self.reshaped(reduce.src(), self.tensor(&self.shape, self.element)?)?;
        atomic.map_or(Ok(()), |op| self.atomic(op, pointers, source, inside))?;
        extremum.map_or(Ok(()), |extremum| self.extremum(&extremum, pointers, source, inside))
    }

    fn atomic(&self, op: RmwOp, at: Value<'c>, source: Value<'c>, mask: Value<'c>) -> Result<(), Reported> {
        let (sem, scope) = (MemSemantic::Relaxed, MemSyncScope::Gpu);
        let atomic = AtomicRmwOp::build(self.op.loc(), at, source, op, sem, scope).mask(mask);
        atomic.results(&[source.ty()]).detached()?.op().move_before(self.op);
        Ok(())
    }

    /// The minimum or maximum of floats, by integers of the same bits. A NaN in the tensor leaves memory as it is.
    fn extremum(
        &self,
        how: &Extremum,
        at: Value<'c>,
        source: Value<'c>,
        inside: Value<'c>,
    ) -> Result<(), Reported> {
        let int = Type::int(self.op.context(), how.bits);
        let (ints, flags) = (self.tensor(&self.shape, int)?, self.tensor(&self.shape, self.i1())?);
        let pointer = pointer_to(int).ok_or_else(|| internal(self.op, "no pointer to integers"))?;
        let at = self.before("tt.bitcast", &[at], self.tensor(&self.shape, pointer)?)?;
        let bits = self.before("tt.bitcast", &[source], ints)?;
        let zero = constant(self.op, ints, Attr::splat(ints, Attr::int_of(int, 0)))?;
        let ordered = Attr::int(self.op.context(), 64, ORD);
        let number = with_attrs(self.op, "arith.cmpf", &[source, source], flags, &[("predicate", ordered)])?;
        let inside = self.before("arith.andi", &[inside, number], flags)?;
        for (predicate, op) in [(cmpi::SGE, how.without_sign), (cmpi::SLT, how.with_sign)] {
            let ours = self.compare(predicate, bits, zero)?;
            let mask = self.before("arith.andi", &[inside, ours], flags)?;
            self.atomic(op, at, bits, mask)?;
        }
        Ok(())
    }

    /// Puts the access through pointers before the one through the descriptor.
    pub(super) fn rewrite(&self) -> Result<(), Reported> {
        let operands: Vec<Value<'c>> = self.op.operands().collect();
        let operands = operands.as_slice();
        match_op!(self.op, {
            DescriptorLoadOp | DescriptorGatherOp => self.load(&operands[1..]),
            DescriptorStoreOp(store) => self.store(store.src(), &operands[2..]),
            DescriptorReduceOp(reduce) => self.reduce(reduce, &operands[2..]),
            DescriptorScatterOp(scatter) => self.store(scatter.src(), &[scatter.x_offsets(), scatter.y_offset()]),
            _ => Err(error(self.op, "is no access through a tensor descriptor")),
        })
    }
}

/// How minima or maxima of floats are found as integers: bits of floats are in order as signed integers while their sign is
/// clear, and in the opposite order as unsigned ones where it is set.
struct Extremum {
    bits: u32,
    without_sign: RmwOp,
    with_sign: RmwOp,
}

fn extremum_of(kind: DescriptorReduceKind, element: Type<'_>) -> Option<Extremum> {
    let bits = element.bits().filter(|bits| element.is_float() && matches!(bits, 16 | 32 | 64))?;
    let (without_sign, with_sign) = match kind {
        DescriptorReduceKind::Min => (RmwOp::Min, RmwOp::Umax),
        DescriptorReduceKind::Max => (RmwOp::Max, RmwOp::Umin),
        _ => return None,
    };
    Some(Extremum { bits, without_sign, with_sign })
}

/// The atomic operation that reduces elements in memory through pointers; `None` where there is none. Minima and maxima of
/// floats take two, and are better left to bulk copies.
pub(crate) fn atomic_of(kind: DescriptorReduceKind, element: Type<'_>, signed: bool) -> Option<RmwOp> {
    use DescriptorReduceKind as Kind;
    Some(match (kind, element.is_float()) {
        (Kind::Add, true) => RmwOp::Fadd,
        (_, true) => return None,
        (Kind::Add, _) => RmwOp::Add,
        (Kind::And, _) => RmwOp::And,
        (Kind::Or, _) => RmwOp::Or,
        (Kind::Xor, _) => RmwOp::Xor,
        (Kind::Min, _) if signed => RmwOp::Min,
        (Kind::Min, _) => RmwOp::Umin,
        (Kind::Max, _) if signed => RmwOp::Max,
        (Kind::Max, _) => RmwOp::Umax,
        (Kind::Inc | Kind::Dec, _) => return None,
    })
}

/// A flag that is known.
fn flag(value: Value<'_>) -> Option<bool> {
    let constant = ConstantOp::defining(value)?.op();
    constant.attr("value")?.as_bool()
}
