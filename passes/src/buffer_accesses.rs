//! `--tritonamdgpu-buffer-accesses`: loads, stores and copies to shared memory that become buffer instructions, where the
//! target has them.
//!
//! A buffer instruction adds an offset of 32 bits a lane to an address that the whole wave has in scalar registers, and
//! checks the offset against a length: a lane that is to do nothing is given one beyond it, so that a mask needs no branch
//! (CDNA3 ISA, "Vector Memory Buffer Instructions"). The offset counts as unsigned. Asynchronous copies of gfx1250 know no buffers, but add
//! such an offset to such an address, too.
//!
//! The pass takes the pointers of a load or store apart: a scalar base, numbers that all threads have alike, which are
//! added to it, and offsets that differ. Where these are known to lie between zero and two gibibytes together, the
//! pointers are computed anew as `addptr(splat(base), offsets)` and the operation is marked `ttg.buffer`. Lowering reads
//! the mark, finds base and offsets there, and decides nothing. As Triton's pass of this kind does, it takes it that sums
//! of offsets do not wrap around. Where they are not known to be small, but the tensor is (see `small_tensors`), all that
//! is added to its argument is the offset.
//!
//! What all lanes of a wave load from one address that they have in scalar registers is marked `ttg.scalar` instead: scalar
//! instructions load it, through a cache that does not see what the kernel writes (CDNA3 ISA, "Scalar Memory Operations"), so
//! that nothing may be written before.

use crate::analysis::ranges::{self, Range};
use crate::ir_util::{emit, is_dot, is_private, loops_around};
use crate::machine::{self, internal};
use crate::remove_layout_conversions::remove_unused;
use crate::small_tensors::{self, SmallTensors};
use linear_layout::Dim;
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::hash::FastSet;
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::match_op;
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::create;
use mlir_host::traits::Upstream;
use mlir_host::upstream::{AddIOp, ConstantOp, Dialect};
use ttopt_dialect::tt::ops::{
    AddPtrOp, BroadcastOp, ExpandDimsOp, FuncOp, GetNumProgramsOp, GetProgramIdOp, LoadOp, MakeRangeOp,
    SplatOp, StoreOp,
};
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::ops::{AsyncCopyGlobalToLocalOp, ConvertLayoutOp, LocalAllocOp, LocalLoadOp};

/// The pass.
pub static TRITONAMDGPU_BUFFER_ACCESSES: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["arith", "tt"],
    ..PassDef::new(
        "tritonamdgpu-buffer-accesses",
        "Mark loads and stores whose offsets are small enough for buffer instructions",
        run,
    )
};

/// The mark.
pub const BUFFER: &str = "ttg.buffer";
/// The mark of a load that all lanes of a wave do alike.
pub const SCALAR: &str = "ttg.scalar";
/// Bits of the narrowest scalar load that all targets have.
const NARROWEST: u32 = 32;
/// Bytes of a buffer: offsets of lanes that do nothing are beyond it.
pub const BUFFER_BYTES: i64 = (1 << 31) - 1;
/// Bytes of the widest access.
const WIDEST: i64 = 16;

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let has = machine::target(module)?.primitives;
    if !has.buffers {
        return Ok(());
    }
    let mut accesses = Vec::new();
    module.walk(&mut |op| {
        let plain = match_op!(op, {
            LoadOp(load) => !load.is_volatile(),
            StoreOp => true,
            AsyncCopyGlobalToLocalOp(copy) => !copy.is_volatile(),
            _ => false,
        });
        // What was marked already is in a buffer by the word of whoever wrote it.
        if plain && op.attr(BUFFER).is_none() && op.operand(0).ty().as_tensor().is_some() {
            accesses.push(op);
        }
        Walk::Advance
    });
    let early = early_loads(module);
    accesses.retain(|op| {
        let is_scalar = early.contains(op) && loads_alike(*op);
        if is_scalar {
            op.set_attr(SCALAR, Attr::unit(op.context()));
        }
        !is_scalar
    });
    let mut small = SmallTensors::default();
    accesses.into_iter().try_for_each(|op| rewrite(op, &mut small))?;
    // Pointers that loops carried.
    remove_unused(module).map(|_| ())
}

/// The loads of kernels before which nothing is written to memory.
fn early_loads(module: Op<'_>) -> FastSet<Op<'_>> {
    let mut early = FastSet::default();
    module.walk(&mut |function| {
        if FuncOp::cast(function).is_none() || is_private(function) {
            return Walk::Advance;
        }
        let mut ops = Vec::new();
        function.walk(&mut |op| {
            ops.push(op);
            Walk::Advance
        });
        let first = ops.iter().skip(1).position(|op| may_write(*op)).map(|place| place + 1);
        // What is around the first write runs again behind it.
        let again: Vec<Op<'_>> = first.map_or_else(Vec::new, |first| loops_around(ops[first]).collect());
        let before = ops.iter().take(first.unwrap_or(ops.len())).copied();
        let loads = before.filter(|op| LoadOp::cast(*op).is_some());
        early.extend(loads.filter(|op| again.iter().all(|around| op.ancestor(|op| op == *around).is_none())));
        Walk::Skip
    });
    early
}

/// Whether `op` may write what a load reads, or wait for who does.
fn may_write(op: Op<'_>) -> bool {
    let harmless = op.is_memory_effect_free()
        || op.has_trait(Upstream::RecursiveMemoryEffects)
        || is_dot(op)
        || is_one_of!(op, LoadOp | LocalAllocOp | LocalLoadOp);
    !harmless
}

/// Whether all lanes of a wave load the same, whatever is computed from positions and scalars of the address and the mask being in
/// scalar registers then.
fn loads_alike(op: Op<'_>) -> bool {
    let Some(load) = LoadOp::cast(op).filter(|load| !load.is_volatile()) else { return false };
    let Some(ty) = load.ptr().ty().as_tensor() else { return false };
    let wide = pointee(ty.element()).and_then(|ty| ty.bits()).is_some_and(|bits| bits >= NARROWEST);
    let alike = || {
        let layout = ty.encoding().and_then(|layout| to_linear_layout(layout, &ty.shape()).ok())?;
        let mut lanes = (0..layout.in_bits(Dim::LANE)).map(|bit| layout.basis_coords(Dim::LANE, bit));
        Some(lanes.all(|basis| basis.is_some_and(|basis| basis.iter().all(|step| *step == 0))))
    };
    let mut left = Steps::new(false);
    let computed = |value: Value<'_>, left: &mut Steps| is_computed(value, left);
    wide && alike() == Some(true)
        && computed(load.ptr(), &mut left)
        && load.mask().is_none_or(|mask| computed(mask, &mut left))
}

/// Whether a tensor is computed from positions and from scalars that are in scalar registers.
fn is_computed(value: Value<'_>, left: &mut Steps) -> bool {
    if value.ty().as_tensor().is_none() {
        return is_scalar(value, left);
    }
    let Some(op) = step(value, left) else { return false };
    let source = is_one_of!(op, MakeRangeOp | ConstantOp);
    let computed = is_one_of!(op, SplatOp | BroadcastOp | ExpandDimsOp | AddPtrOp)
        || Dialect::of(op) == Some(Dialect::Arith);
    source || computed && op.operands().all(|operand| is_computed(operand, left))
}

/// Pointers, or offsets, taken apart.
struct Parts<'c> {
    /// The scalar that pointers are counted from.
    base: Option<Value<'c>>,
    /// Scalars that are added for all threads.
    uniform: Vec<Value<'c>>,
    /// Tensors that are added, and what is known of their elements.
    varying: Vec<(Tensor<'c>, Range)>,
}

/// A tensor that exists, or how it is made of one that does.
enum Tensor<'c> {
    Is(Value<'c>),
    /// As the operation makes its result, but of this.
    Like(Op<'c>, Box<Tensor<'c>>),
}

impl<'c> Tensor<'c> {
    /// Makes it before `at`.
    fn make(&self, at: Op<'c>) -> Result<Value<'c>, Reported> {
        match self {
            Tensor::Is(value) => Ok(*value),
            Tensor::Like(op, of) => {
                let of = of.make(at)?;
                let shape = op.result(0).ty().as_tensor().and_then(|ty| ty.with_element(of.ty().element()));
                let Some(shape) = shape else { return Err(at.error("cannot make the type of an offset")) };
                let made = create(op.name(), at.loc(), &[of], &[shape.ty()], &op.attrs(), &[])?;
                made.move_before(at);
                Ok(made.result(0))
            }
        }
    }
}

impl<'c> Parts<'c> {
    /// As `op` makes its result of what these are parts of.
    fn like(mut self, op: Op<'c>) -> Self {
        let wrap = |(tensor, range)| (Tensor::Like(op, Box::new(tensor)), range);
        self.varying = self.varying.into_iter().map(wrap).collect();
        self
    }

    fn join(mut self, other: Parts<'c>) -> Self {
        self.base = self.base.or(other.base);
        self.uniform.extend(other.uniform);
        self.varying.extend(other.varying);
        self
    }

    /// Whether a buffer has what pointers `ptr` of these parts name.
    fn fit(&self, ptr: Value<'c>) -> bool {
        let bits = pointee(ptr.ty().element()).and_then(|ty| ty.bits());
        let last = self.varying.iter().try_fold(0i64, |sum, (_, range)| sum.checked_add(range.1));
        let end = last.zip(bits).and_then(|(last, bits)| last.checked_mul(bits.div_ceil(8).into()));
        self.base.is_some() && end.is_some_and(|end| end <= BUFFER_BYTES - WIDEST)
    }

    /// Of a tensor of pointers.
    fn of_pointers(value: Value<'c>, left: &mut Steps) -> Option<Self> {
        let op = step(value, left)?;
        if let Some(add) = AddPtrOp::cast(op) {
            return Some(Self::of_pointers(add.ptr(), left)?.join(Self::of_offsets(add.offset(), left)?));
        }
        if SplatOp::cast(op).is_some() {
            let base = Some(op.operand(0)).filter(|base| is_scalar(*base, left));
            return base.map(|base| Parts { base: Some(base), uniform: Vec::new(), varying: Vec::new() });
        }
        let moves = BroadcastOp::cast(op).is_some() || ExpandDimsOp::cast(op).is_some();
        moves.then(|| Self::of_pointers(op.operand(0), left).map(|parts| parts.like(op)))?
    }

    /// Of a tensor of offsets; `None` where its numbers may be too small or too large.
    fn of_offsets(value: Value<'c>, left: &mut Steps) -> Option<Self> {
        let op = step(value, left)?;
        let leaf = |uniform, varying| Parts { base: None, uniform, varying };
        if AddIOp::cast(op).is_some() {
            return Some(Self::of_offsets(op.operand(0), left)?.join(Self::of_offsets(op.operand(1), left)?));
        }
        if SplatOp::cast(op).is_some() {
            return is_scalar(op.operand(0), left).then(|| leaf(vec![op.operand(0)], Vec::new()));
        }
        if BroadcastOp::cast(op).is_some() || ExpandDimsOp::cast(op).is_some() {
            return Self::of_offsets(op.operand(0), left).map(|parts| parts.like(op));
        }
        let range = range(value, left).filter(|range| range.0 >= 0)?;
        Some(leaf(Vec::new(), vec![(Tensor::Is(value), range)]))
    }
}

/// How far an address is followed.
struct Steps {
    /// Through how many operations more.
    left: u32,
    /// Whether through conversions of layouts.
    converts: bool,
}

impl Steps {
    fn new(converts: bool) -> Self {
        Self { left: 256, converts }
    }
}

/// The operation that computes `value`, while there are steps left.
fn step<'c>(mut value: Value<'c>, left: &mut Steps) -> Option<Op<'c>> {
    loop {
        left.left = left.left.checked_sub(1)?;
        let op = value.def_op()?;
        match ConvertLayoutOp::cast(op).filter(|_| left.converts) {
            Some(convert) => value = convert.src(),
            None => return Some(op),
        }
    }
}

/// Whether an access is to be expected to become a buffer instruction, while layouts are still converted.
pub fn may_be_marked(op: Op<'_>, target: &TargetDesc) -> bool {
    if !target.primitives.buffers || op.operand(0).ty().as_tensor().is_none() {
        return false;
    }
    let parts = || Parts::of_pointers(op.operand(0), &mut Steps::new(true));
    small_tensors::are_small(op.operand(0)) || parts().is_some_and(|parts| parts.fit(op.operand(0)))
}

/// What the elements of integers are known to lie between.
fn range(value: Value<'_>, left: &mut Steps) -> Option<Range> {
    ranges::of_result(step(value, left)?, &mut |operand| range(operand, left))
}

/// Whether a scalar is in scalar registers: not what a thread read from memory, or several threads computed.
fn is_scalar(value: Value<'_>, left: &mut Steps) -> bool {
    let Some(op) = step(value, left) else { return value.def_op().is_none() };
    let grid = is_one_of!(op, GetProgramIdOp | GetNumProgramsOp);
    let computed = Dialect::of(op) == Some(Dialect::Arith) || AddPtrOp::cast(op).is_some();
    grid || computed
        && op.operands().all(|operand| operand.ty().as_tensor().is_none() && is_scalar(operand, left))
}

/// Marks `op` if the target's instructions can do it.
fn rewrite<'c>(op: Op<'c>, small: &mut SmallTensors<'c>) -> PassResult {
    let Some(ty) = op.operand(0).ty().as_tensor() else { return Ok(()) };
    let found = match apart(op)? {
        None => small.offset(op.operand(0))?,
        found => found,
    };
    let Some((base, offset)) = found else { return Ok(()) };
    let bases = emit(op, "tt.splat", &[base], ty.ty())?;
    let pointers = emit(op, "tt.addptr", &[bases, offset], ty.ty())?;
    op.set_operand(0, pointers);
    op.set_attr(BUFFER, Attr::unit(op.context()));
    Ok(())
}

/// A base and offsets that are known to be small.
fn apart<'c>(op: Op<'c>) -> Result<Option<(Value<'c>, Value<'c>)>, Reported> {
    let ptr = op.operand(0);
    let parts = Parts::of_pointers(ptr, &mut Steps::new(false)).filter(|parts| parts.fit(ptr));
    let (Some(parts), Some(ty)) = (parts, ptr.ty().as_tensor()) else { return Ok(None) };
    let Parts { base: Some(base), uniform, varying } = parts else { return Ok(None) };
    let mut start = base;
    for number in uniform {
        start = emit(op, "tt.addptr", &[start, number], start.ty())?;
    }
    let i32t = Type::int(op.context(), 32);
    let Some(offset_type) = ty.with_element(i32t) else { return Ok(None) };
    let mut offset: Option<Value<'_>> = None;
    for (tensor, _) in &varying {
        let mut own = tensor.make(op)?;
        let bits = own.ty().element().int_bits();
        let bits = bits.ok_or_else(|| internal(op, "has an offset that is no integer"))?;
        if bits != 32 {
            let name = if bits > 32 { "arith.trunci" } else { "arith.extui" };
            own = emit(op, name, &[own], offset_type.ty())?;
        }
        offset = Some(match offset {
            None => own,
            Some(sum) => emit(op, "arith.addi", &[sum, own], offset_type.ty())?,
        });
    }
    Ok(offset.map(|offset| (start, offset)))
}

/// The base and the offsets, in elements, of a marked operation.
pub fn buffer_of<'c>(op: Op<'c>) -> Option<(Value<'c>, Value<'c>)> {
    op.attr(BUFFER)?;
    let add = AddPtrOp::cast(op.operand(0).def_op()?)?;
    let splat = add.ptr().def_op().filter(|op| SplatOp::cast(*op).is_some())?;
    Some((splat.operand(0), add.offset()))
}
