//! Elementwise operations.

use crate::bytes::{self, ByteOp};
use crate::emit::{ICmp, Lowered, Sums, int_bits, internal, number_bits, unsupported};
use crate::lower::{Handler, Lower};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, FloatKind, Op, Type, Value};
use mlir_host::match_op;
use mlir_host::upstream::{
    CeilDivSIOp, CeilDivUIOp, CmpIOp, ExtSIOp, ExtUIOp, FloorDivSIOp, IndexCastOp, IndexCastUIOp, SIToFPOp,
    SelectOp, TruncIOp, UIToFPOp,
};
use ttopt_dialect::tt::enums::{PropagateNan, RoundingMode};
use ttopt_dialect::tt::fold;
use ttopt_dialect::tt::ops::{
    BroadcastOp, ClampFOp, ExpandDimsOp, ExternElementwiseOp, FpToFpOp, JoinOp, MapElementwiseOp, ReshapeOp,
    SplitOp, TransOp,
};
use ttopt_dialect::tt::types::{is_pointer, pointee};

macro_rules! same {
    ($name:literal) => {
        |l, op| {
            computes(op)?;
            l.map(op, |l, args| l.emit.same($name, args))
        }
    };
}
macro_rules! contracted {
    ($name:literal) => {
        |l, op| {
            computes(op)?;
            l.map(op, |l, args| l.emit.contracted($name, args))
        }
    };
}
macro_rules! cast {
    ($name:literal) => {
        |l, op| convert(l, op, $name)
    };
}
macro_rules! math {
    ($name:literal) => {
        |l, op| math(l, op, $name)
    };
}

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("arith.addi", sum),
    ("arith.subi", |l, op| integers(l, op, "llvm.sub")),
    ("arith.muli", same!("llvm.mul")),
    ("arith.divsi", same!("llvm.sdiv")),
    ("arith.divui", same!("llvm.udiv")),
    ("arith.ceildivsi", rounded_division),
    ("arith.ceildivui", rounded_division),
    ("arith.floordivsi", rounded_division),
    ("arith.remsi", same!("llvm.srem")),
    ("arith.remui", same!("llvm.urem")),
    ("arith.andi", |l, op| integers(l, op, "llvm.and")),
    ("arith.ori", |l, op| integers(l, op, "llvm.or")),
    ("arith.xori", |l, op| integers(l, op, "llvm.xor")),
    ("arith.shli", |l, op| integers(l, op, "llvm.shl")),
    ("arith.shrsi", |l, op| integers(l, op, "llvm.ashr")),
    ("arith.shrui", |l, op| integers(l, op, "llvm.lshr")),
    ("arith.maxsi", same!("llvm.intr.smax")),
    ("arith.minsi", same!("llvm.intr.smin")),
    ("arith.maxui", same!("llvm.intr.umax")),
    ("arith.minui", same!("llvm.intr.umin")),
    ("arith.addf", contracted!("llvm.fadd")),
    ("arith.subf", contracted!("llvm.fsub")),
    ("arith.mulf", contracted!("llvm.fmul")),
    ("arith.negf", same!("llvm.fneg")),
    ("arith.remf", math!("remf")),
    ("arith.divf", math!("divf")),
    ("arith.maxnumf", same!("llvm.intr.maxnum")),
    ("arith.minnumf", same!("llvm.intr.minnum")),
    ("arith.maximumf", same!("llvm.intr.maximum")),
    ("arith.minimumf", same!("llvm.intr.minimum")),
    ("arith.cmpi", |l, op| compare(l, op, "llvm.icmp")),
    ("arith.cmpf", |l, op| compare(l, op, "llvm.fcmp")),
    ("arith.select", |l, op| l.map(op, |l, args| l.emit.select(args[0], args[1], args[2]))),
    ("arith.extsi", |l, op| extend(l, op, "llvm.sext")),
    ("arith.extui", |l, op| extend(l, op, "llvm.zext")),
    ("arith.trunci", cast!("llvm.trunc")),
    ("arith.index_cast", index_cast),
    ("arith.index_castui", index_cast),
    ("arith.sitofp", int_to_float),
    ("arith.uitofp", int_to_float),
    ("arith.fptosi", cast!("llvm.fptosi")),
    ("arith.fptoui", cast!("llvm.fptoui")),
    ("arith.extf", |l, op| convert_floats(l, op, false)),
    ("arith.truncf", narrow_floats),
    ("arith.bitcast", bitcast),
    ("arith.mului_extended", |l, op| mul_extended(l, op, "llvm.zext")),
    ("arith.mulsi_extended", |l, op| mul_extended(l, op, "llvm.sext")),
    ("math.absf", absolute),
    ("math.absi", |l, op| {
        l.map(op, |l, args| {
            let poison = Attr::bool(l.emit.context(), false);
            l.emit.value("llvm.intr.abs", args, args[0].ty(), &[("is_int_min_poison", poison)])
        })
    }),
    ("math.ceil", math!("ceil")),
    ("math.floor", math!("floor")),
    ("math.trunc", same!("llvm.intr.trunc")),
    ("math.round", same!("llvm.intr.round")),
    ("math.roundeven", same!("llvm.intr.roundeven")),
    ("math.copysign", same!("llvm.intr.copysign")),
    ("math.fma", same!("llvm.intr.fma")),
    ("math.ctpop", same!("llvm.intr.ctpop")),
    ("math.ctlz", |l, op| count_zeros(l, op, "llvm.intr.ctlz")),
    ("math.cttz", |l, op| count_zeros(l, op, "llvm.intr.cttz")),
    ("math.sqrt", math!("sqrt")),
    ("math.rsqrt", math!("rsqrt")),
    ("math.exp", math!("exp")),
    ("math.exp2", math!("exp2")),
    ("math.expm1", math!("expm1")),
    ("math.log", math!("log")),
    ("math.log2", math!("log2")),
    ("math.log10", math!("log10")),
    ("math.log1p", math!("log1p")),
    ("math.sin", math!("sin")),
    ("math.cos", math!("cos")),
    ("math.tan", math!("tan")),
    ("math.tanh", math!("tanh")),
    ("math.sinh", math!("sinh")),
    ("math.cosh", math!("cosh")),
    ("math.asin", math!("asin")),
    ("math.acos", math!("acos")),
    ("math.atan", math!("atan")),
    ("math.atan2", math!("atan2")),
    ("math.asinh", math!("asinh")),
    ("math.acosh", math!("acosh")),
    ("math.atanh", math!("atanh")),
    ("math.erf", math!("erf")),
    ("math.erfc", math!("erfc")),
    ("math.powf", math!("pow")),
    ("math.cbrt", math!("cbrt")),
    ("tt.precise_divf", math!("precise_divf")),
    ("tt.approx_divf", math!("approx_divf")),
    ("tt.precise_sqrt", math!("precise_sqrt")),
    ("tt.mulhiui", mulhi),
    ("tt.clampf", clamp),
    ("tt.fp_to_fp", fp_to_fp),
    ("tt.bitcast", bitcast),
    ("tt.int_to_ptr", cast!("llvm.inttoptr")),
    ("tt.ptr_to_int", cast!("llvm.ptrtoint")),
    ("tt.addptr", addptr),
    ("tt.extern_elementwise", extern_elementwise),
    ("tt.map_elementwise", map_elementwise),
];

/// # Errors
/// Where elements are floats of 8 bits or less, which instructions only convert.
pub(super) fn computes(op: Op<'_>) -> Lowered<()> {
    op.operands().chain(op.results()).try_for_each(|value| computes_in(value.ty()))
}

/// As [`computes`], for one type.
pub(super) fn computes_in(ty: Type<'_>) -> Lowered<()> {
    let element = ty.element();
    match element.float_kind() {
        Some(kind) if kind.bits() < 16 => {
            unsupported(format!("no instruction computes with {element}: convert it to f16 or f32"))
        }
        _ => Ok(()),
    }
}

/// Whether a format has 8 bits, of which the highest is the sign: not so the exponents of scaled dots.
fn has_sign_of_8_bits(kind: FloatKind) -> bool {
    kind.bits() == 8 && kind != FloatKind::F8E8M0FNU
}

/// Clears the sign. Floats of 8 bits are their bits, and minus zero is what the formats without infinities and with one
/// zero (`FNUZ`) have as NaN.
fn absolute<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(kind) = op.result(0).ty().element().float_kind().filter(|kind| has_sign_of_8_bits(*kind)) else {
        computes(op)?;
        return l.map(op, |l, args| l.emit.same("llvm.intr.fabs", args));
    };
    let one_zero = matches!(kind, FloatKind::F8E4M3FNUZ | FloatKind::F8E5M2FNUZ);
    l.map(op, |l, args| {
        let rest = l.emit.mask(args[0], 0x7f)?;
        if !one_zero {
            return Ok(rest);
        }
        let nan = l.emit.const_int(8, 0x80)?;
        let is_nan = l.emit.icmp(ICmp::Eq, args[0], nan)?;
        l.emit.select(is_nan, nan, rest)
    })
}

fn compare<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, name: &str) -> Lowered<()> {
    computes(op)?;
    // The predicates of arith and llvm are numbered alike.
    let Some(predicate) = op.attr("predicate") else { return internal("comparison without a predicate") };
    l.map(op, |l, args| {
        let (a, b) = l.emit.before_extension(args[0], args[1]);
        let i1 = l.emit.i1();
        l.emit.value(name, &[a, b], i1, &[("predicate", predicate)])
    })
}

fn convert<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, name: &str) -> Lowered<()> {
    computes(op)?;
    let ty = l.register_type(op.result(0).ty().element())?;
    l.map(op, |l, args| if args[0].ty() == ty { Ok(args[0]) } else { l.emit.value(name, args, ty, &[]) })
}

fn extend<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, name: &str) -> Lowered<()> {
    let ty = l.register_type(op.result(0).ty().element())?;
    l.map(op, |l, args| if args[0].ty() == ty { Ok(args[0]) } else { l.emit.extend(name, args[0], ty) })
}

fn int_to_float<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let is_signed = SIToFPOp::cast(op).is_some();
    let (from, to) = (op.operand(0).ty().element(), op.result(0).ty().element());
    match to.float_kind() {
        Some(to @ (FloatKind::F16 | FloatKind::BF16)) if from.is_int(8) => {
            convert_all(l, op, |l, values| l.target.convert_bytes(&mut l.emit, values, is_signed, to))
        }
        _ => convert(l, op, if is_signed { "llvm.sitofp" } else { "llvm.uitofp" }),
    }
}

fn index_cast<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let ty = l.register_type(op.result(0).ty().element())?;
    let widen = if IndexCastUIOp::cast(op).is_some() { "llvm.zext" } else { "llvm.sext" };
    l.map(op, |l, args| {
        let (from, to) = (int_bits(args[0])?, number_bits(ty)?);
        match from.cmp(&to) {
            std::cmp::Ordering::Equal => Ok(args[0]),
            std::cmp::Ordering::Less => l.emit.extend(widen, args[0], ty),
            std::cmp::Ordering::Greater => l.emit.value("llvm.trunc", args, ty, &[]),
        }
    })
}

fn bitcast<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (from, to) = (op.operand(0).ty().element(), op.result(0).ty().element());
    let ty = l.register_type(to)?;
    l.map(op, |l, args| match (is_pointer(from), is_pointer(to)) {
        (true, true) if args[0].ty() == ty => Ok(args[0]),
        (true, true) => l.emit.value("llvm.addrspacecast", args, ty, &[]),
        (false, true) => l.emit.value("llvm.inttoptr", args, ty, &[]),
        (true, false) => l.emit.value("llvm.ptrtoint", args, ty, &[]),
        (false, false) => l.emit.bitcast(args[0], ty),
    })
}

fn math<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, name: &str) -> Lowered<()> {
    computes(op)?;
    l.map(op, |l, args| {
        let target = l.target;
        l.with_module(|e, module| target.math(e, module, name, args))
    })
}

/// Constants that elements of a thread are apart come last ([`Emit::sum`]).
///
/// [`Emit::sum`]: crate::emit::Emit::sum
fn sum<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    if op.result(0).ty().element().is_int(8) {
        return integers(l, op, "llvm.add");
    }
    let mut shared = Sums::default();
    l.map(op, |l, args| l.emit.sum(args[0], args[1], &mut shared))
}

/// Whether something takes bytes of `value` together: conversions to floats of 16 bits, stores, exchanges, dots. What is extended
/// or compared is taken out of its word first, and an operation before that is one with it.
fn wanted_together<'c>(value: Value<'c>, known: &mut FastMap<Value<'c>, bool>) -> bool {
    if let Some(wanted) = known.get(&value) {
        return *wanted;
    }
    // Values and the number of the one that each was computed from.
    let mut all = vec![(value, usize::MAX)];
    let mut seen = FastSet::from_iter([value]);
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        for (user, _) in all[at].0.uses() {
            let (goes_on, mut takes) = match_op!(user, {
                JoinOp | SplitOp | ReshapeOp | TransOp | ExpandDimsOp | BroadcastOp | SelectOp => (true, false),
                ExtSIOp | ExtUIOp | CmpIOp | TruncIOp | IndexCastOp | IndexCastUIOp => (false, false),
                SIToFPOp | UIToFPOp => (false, is_float_of_16_bits(user.result(0).ty().element())),
                _ => {
                    let computes = ByteOp::of(user.name()).is_some();
                    (computes, !computes)
                },
            });
            for result in user.results().filter(|_| goes_on) {
                takes |= known.get(&result) == Some(&true);
                if !known.contains_key(&result) && seen.insert(result) {
                    open.push(all.len());
                    all.push((result, at));
                }
            }
            if takes {
                // So is all that led here.
                let mut from = at;
                while let Some((value, before)) = all.get(from) {
                    known.insert(*value, true);
                    from = *before;
                }
                return true;
            }
        }
    }
    known.extend(all.into_iter().map(|(value, _)| (value, false)));
    false
}

fn is_float_of_16_bits(ty: Type<'_>) -> bool {
    matches!(ty.float_kind(), Some(FloatKind::F16 | FloatKind::BF16))
}

/// Integers with one instruction, `name`; bytes four at a time where they lie in words ([`bytes`]).
fn integers<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, name: &str) -> Lowered<()> {
    let result = op.result(0);
    let is_wanted = result.ty().element().is_int(8) && wanted_together(result, &mut l.taken_together);
    let operation = if is_wanted { ByteOp::of(op.name()) } else { None };
    let Some(operation) = operation else { return l.map(op, |l, args| l.emit.same(name, args)) };
    l.map_all(op, |l, all| bytes::combine(&mut l.emit, operation, all, |e, pair| e.same(name, pair)))
}

/// Division that rounds up or down: the quotient that rounds towards zero, and
/// one more or less where there is a remainder and the exact quotient's sign
/// asks for it.
fn rounded_division<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (up, signed) = match_op!(op, {
        CeilDivSIOp => (true, true),
        CeilDivUIOp => (true, false),
        FloorDivSIOp => (false, true),
        _ => return internal("is no division that rounds up or down"),
    });
    let (divide, remain) = if signed { ("llvm.sdiv", "llvm.srem") } else { ("llvm.udiv", "llvm.urem") };
    l.map(op, |l, args| {
        let ty = args[0].ty();
        let Some(bits) = ty.int_bits() else { return unsupported(format!("division of {ty}")) };
        let quotient = l.emit.same(divide, args)?;
        let rest = l.emit.same(remain, args)?;
        let zero = l.emit.const_int(bits, 0)?;
        let mut adjust = l.emit.icmp(ICmp::Ne, rest, zero)?;
        if signed {
            // A remainder has the sign of the dividend.
            let signs = l.emit.same("llvm.xor", &[rest, args[1]])?;
            let wanted = l.emit.icmp(if up { ICmp::Sge } else { ICmp::Slt }, signs, zero)?;
            adjust = l.emit.same("llvm.and", &[adjust, wanted])?;
        }
        let one = if bits == 1 { adjust } else { l.emit.value("llvm.zext", &[adjust], ty, &[])? };
        l.emit.same(if up { "llvm.add" } else { "llvm.sub" }, &[quotient, one])
    })
}

/// Leading or trailing zeros; those of zero are all of its bits.
fn count_zeros<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, name: &str) -> Lowered<()> {
    l.map(op, |l, args| {
        let poison = Attr::bool(l.emit.context(), false);
        l.emit.value(name, args, args[0].ty(), &[("is_zero_poison", poison)])
    })
}

fn mulhi<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    l.map(op, |l, args| {
        let (_, high) = wide_product(l, args[0], args[1], "llvm.zext")?;
        Ok(high)
    })
}

/// Low and high halves of a product.
fn wide_product<'c>(
    l: &mut Lower<'_, 'c>,
    a: Value<'c>,
    b: Value<'c>,
    extend: &str,
) -> Lowered<(Value<'c>, Value<'c>)> {
    let narrow = a.ty();
    let Some(bits) = narrow.int_bits() else { return unsupported("product of no integers") };
    let wide = l.emit.int(2 * bits);
    let a = l.emit.value(extend, &[a], wide, &[])?;
    let b = l.emit.value(extend, &[b], wide, &[])?;
    let product = l.emit.same("llvm.mul", &[a, b])?;
    let low = l.emit.value("llvm.trunc", &[product], narrow, &[])?;
    let shifted = l.emit.lshr(product, bits)?;
    let high = l.emit.value("llvm.trunc", &[shifted], narrow, &[])?;
    Ok((low, high))
}

fn mul_extended<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, extend: &str) -> Lowered<()> {
    let (a, b) = (l.get(op.operand(0))?, l.get(op.operand(1))?);
    let mut lows = Vec::new();
    let mut highs = Vec::new();
    for (a, b) in a.iter().zip(b.iter()) {
        let (low, high) = wide_product(l, *a, *b, extend)?;
        lows.push(low);
        highs.push(high);
    }
    l.set(op.result(0), lows);
    l.set(op.result(1), highs);
    Ok(())
}

/// Whether an operation clamps floats of 32 bits to a constant and what is as far below zero.
fn bounds_magnitude(clamp: Op<'_>) -> bool {
    let bound = |i| fold::splat_value(fold::constant(clamp.operand(i))?)?.as_float();
    let (Some(low), Some(high)) = (bound(1), bound(2)) else { return false };
    clamp.result(0).ty().element().float_kind() == Some(FloatKind::F32) && high > 0.0 && low == -high
}

fn clamp<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    computes(op)?;
    // `all` (0xffff) propagates NaN from any operand.
    let propagate = ClampFOp::of(op).propagate_nan() == PropagateNan::All;
    let (max, min) = if propagate {
        ("llvm.intr.maximum", "llvm.intr.minimum")
    } else {
        ("llvm.intr.maxnum", "llvm.intr.minnum")
    };
    let symmetric = bounds_magnitude(op);
    l.map(op, |l, args| {
        if symmetric
            && let Some(bounded) = l.target.bound_magnitude(&mut l.emit, args[0], args[2], propagate)?
        {
            return Ok(bounded);
        }
        let low = l.emit.same(max, &[args[0], args[1]])?;
        l.emit.same(min, &[low, args[2]])
    })
}

/// Converts all values of a thread together; registers that share a value are converted once.
fn convert_all<'c>(
    l: &mut Lower<'_, 'c>,
    op: Op<'c>,
    convert: impl FnOnce(&mut Lower<'_, 'c>, &[Value<'c>]) -> Lowered<Vec<Value<'c>>>,
) -> Lowered<()> {
    let values = l.get(op.operand(0))?;
    let mut known: FastMap<Value<'c>, usize> = FastMap::default();
    let mut unique: Vec<Value<'c>> = Vec::new();
    let index: Vec<usize> = values
        .iter()
        .map(|value| {
            *known.entry(*value).or_insert_with(|| {
                unique.push(*value);
                unique.len() - 1
            })
        })
        .collect();
    let converted = convert(l, &unique)?;
    let out: Vec<Value<'c>> = index.into_iter().map(|i| converted[i]).collect();
    l.set(op.result(0), out);
    Ok(())
}

fn convert_floats<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, towards_zero: bool) -> Lowered<()> {
    let (from, to) = (op.operand(0).ty().element(), op.result(0).ty().element());
    let (Some(from), Some(to)) = (from.float_kind(), to.float_kind()) else {
        return unsupported(format!("conversion from {from} to {to}"));
    };
    convert_all(l, op, |l, values| l.target.convert_floats(&mut l.emit, values, from, to, towards_zero))
}

fn narrow_floats<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    // arith's numbering: to the nearest even, downward, upward, toward zero, to the nearest away.
    match op.attr("roundingmode").and_then(Attr::as_int) {
        None | Some(0) => convert_floats(l, op, false),
        Some(3) => convert_floats(l, op, true),
        _ => unsupported("rounds neither to the nearest even nor toward zero"),
    }
}

fn fp_to_fp<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    convert_floats(l, op, FpToFpOp::of(op).rounding() == Some(RoundingMode::TowardsZero))
}

/// The type that pointer arithmetic counts in.
pub(super) fn stride_type<'c>(l: &mut Lower<'_, 'c>, pointee: Type<'c>) -> Lowered<Type<'c>> {
    if pointee.is_int(1) {
        return Ok(l.emit.i8());
    }
    l.register_type(pointee)
}

fn addptr<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(pointee) = pointee(op.result(0).ty().element()) else {
        return unsupported("addptr of no pointer");
    };
    let stride = stride_type(l, pointee)?;
    l.map(op, |l, args| l.emit.gep(args[0], args[1], stride))
}

fn extern_elementwise<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let function = ExternElementwiseOp::of(op);
    let (symbol, pure_function) = (function.symbol(), function.pure());
    let result = l.register_type(op.result(0).ty().element())?;
    l.map(op, |l, args| {
        let types: Vec<Type<'c>> = args.iter().map(|arg| arg.ty()).collect();
        if let Some(made) = l.target.external(&mut l.emit, symbol, args, result)? {
            return Ok(made);
        }
        // LLVM knows its intrinsics by names that assembly cannot have.
        if let Some(reason) = l.target.refuses_symbol(symbol).filter(|_| !symbol.starts_with("llvm.")) {
            return unsupported(reason);
        }
        l.with_module(|e, module| {
            module.function(symbol, &types, Some(result), pure_function)?;
            Ok(e.call(symbol, args, &[result])?[0])
        })
    })
}

/// The scalar region is lowered once for each group of `pack` registers.
fn map_elementwise<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(pack) = usize::try_from(MapElementwiseOp::of(op).pack()).ok().filter(|pack| *pack > 0) else {
        return internal("takes no elements at a time");
    };
    let results: Vec<Value<'c>> = op.results().collect();
    let Some(first) = op.operands().next() else { return unsupported("no operands") };
    let n = l.num_values(first.ty())?;
    if n % pack != 0 {
        return unsupported(format!("{n} registers are not a multiple of pack = {pack}"));
    }
    let operands: Vec<_> = op.operands().map(|value| l.get(value)).collect::<Lowered<Vec<_>>>()?;
    let mut out: Vec<Vec<Value<'c>>> = vec![Vec::new(); results.len()];
    for start in (0..n).step_by(pack) {
        let args: Vec<Value<'c>> =
            operands.iter().flat_map(|values| (start..start + pack).map(|i| values[i])).collect();
        let made = super::control::inline_region(l, op.region(0), &args)?;
        for (result, values) in out.iter_mut().zip(made.chunks(pack)) {
            result.extend_from_slice(values);
        }
    }
    for (result, values) in results.into_iter().zip(out) {
        l.set(result, values);
    }
    Ok(())
}

/// `condition != 0` for a value that may be wider than one bit.
pub(crate) fn truth<'c>(l: &mut Lower<'_, 'c>, value: Value<'c>) -> Lowered<Value<'c>> {
    match value.ty().int_bits() {
        Some(1) => Ok(value),
        Some(bits) => {
            let zero = l.emit.const_int(bits, 0)?;
            l.emit.icmp(ICmp::Ne, value, zero)
        }
        None => unsupported(format!("{} is no condition", value.ty())),
    }
}
