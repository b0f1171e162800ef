//! Functions of floats: what LLVM makes of its own intrinsics where that is accurate, AMD's library of device functions
//! (ocml) otherwise.

use crate::emit::{Emit, Lowered, unsupported};
use crate::floats;
use crate::target::Declare;
use mlir_host::ir::{Attr, FloatKind, Type, Value};

/// Calls `__ocml_<name>_f32` or `_f64`.
fn ocml<'c>(
    e: &mut Emit<'c>,
    module: &mut dyn Declare<'c>,
    name: &str,
    args: &[Value<'c>],
) -> Lowered<Value<'c>> {
    let ty = args[0].ty();
    let bits = if ty.float_kind() == Some(FloatKind::F32) { 32 } else { 64 };
    let symbol = format!("__ocml_{name}_f{bits}");
    let types = vec![ty; args.len()];
    module.function(&symbol, &types, Some(ty), true)?;
    Ok(e.call(&symbol, args, &[ty])?[0])
}

/// Emits `name` on scalars of one float type.
pub(super) fn emit<'c>(
    e: &mut Emit<'c>,
    module: &mut dyn Declare<'c>,
    name: &str,
    args: &[Value<'c>],
) -> Lowered<Value<'c>> {
    let ty = args[0].ty();
    match ty.float_kind() {
        Some(FloatKind::F32 | FloatKind::F64) => {}
        Some(FloatKind::F16 | FloatKind::BF16) if matches!(name, "ceil" | "floor") => {}
        Some(FloatKind::F16 | FloatKind::BF16) => {
            let exact = if name == "divf" { "precise_divf" } else { name };
            return floats::through_single(e, args, |e, wide| emit(e, module, exact, wide));
        }
        _ => return unsupported(format!("{name} of {ty} is not supported")),
    }
    let single = ty.float_kind() == Some(FloatKind::F32);
    match name {
        "approx_divf" if single => times_reciprocal(e, args),
        "divf" | "approx_divf" | "precise_divf" => e.same("llvm.fdiv", args),
        "ceil" | "floor" => e.same(&format!("llvm.intr.{name}"), args),
        "sqrt" if single => e.intrinsic("llvm.amdgcn.sqrt", args, ty),
        "sqrt" | "precise_sqrt" => e.same("llvm.intr.sqrt", args),
        "rsqrt" if single => e.intrinsic("llvm.amdgcn.rsq", args, ty),
        "exp2" if single => e.intrinsic("llvm.amdgcn.exp2", args, ty),
        "exp" if single => {
            // exp(x) = 2^(x log2 e), which keeps subnormal results.
            let log2e = e.const_float(ty, std::f64::consts::LOG2_E)?;
            let scaled = e.same("llvm.fmul", &[args[0], log2e])?;
            e.same("llvm.intr.exp2", &[scaled])
        }
        "log" if single => e.same("llvm.intr.log", args),
        "log2" if single => e.same("llvm.intr.log2", args),
        "log10" if single => e.same("llvm.intr.log10", args),
        "remf" => ocml(e, module, "fmod", args),
        "rsqrt" | "exp" | "exp2" | "expm1" | "log" | "log2" | "log10" | "log1p" | "sin" | "cos" | "tan"
        | "tanh" | "sinh" | "cosh" | "asin" | "acos" | "atan" | "atan2" | "asinh" | "acosh" | "atanh"
        | "erf" | "erfc" | "pow" | "cbrt" => ocml(e, module, name, args),
        _ => unsupported(format!("{name} of {ty} is not supported")),
    }
}

/// A function `__triton_hip_<name>`, for which Triton's front end has no name in a library (its `libdevice` for AMD GPUs).
pub(super) fn of_front_end<'c>(
    e: &mut Emit<'c>,
    name: &str,
    args: &[Value<'c>],
    result: Type<'c>,
) -> Lowered<Value<'c>> {
    let takes = if name == "fast_fdividef" { 2 } else { 1 };
    let Some(first) = args.first().copied().filter(|_| args.len() == takes) else {
        return unsupported(format!("'__triton_hip_{name}' takes {takes} operands, not {}", args.len()));
    };
    let ty = first.ty();
    let single = ty.float_kind() == Some(FloatKind::F32);
    let float = single || ty.float_kind() == Some(FloatKind::F64);
    let made = match name {
        "fabs" if float => e.same("llvm.intr.fabs", args)?,
        "rint" if float => e.same("llvm.intr.rint", args)?,
        "llrint" if float && result.is_int(64) => {
            let rounded = e.same("llvm.intr.rint", args)?;
            e.value("llvm.fptosi", &[rounded], result, &[])?
        }
        "iabs" if ty.int_bits().is_some() => {
            let poison = Attr::bool(e.context(), false);
            e.value("llvm.intr.abs", args, ty, &[("is_int_min_poison", poison)])?
        }
        "fast_expf" if single => exp2_of(e, first, std::f64::consts::LOG2_E)?,
        "fast_fdividef" if single => times_reciprocal(e, args)?,
        // 1 - 2 / (exp(2 |x|) + 1), with the sign of x: where the power overflows it is one.
        "fast_tanhf" if single => {
            let size = e.same("llvm.intr.fabs", args)?;
            let power = exp2_of(e, size, 2.0 * std::f64::consts::LOG2_E)?;
            let (one, two) = (e.const_float(ty, 1.0)?, e.const_float(ty, -2.0)?);
            let sum = e.same("llvm.fadd", &[power, one])?;
            let reciprocal = e.intrinsic("llvm.amdgcn.rcp", &[sum], ty)?;
            let less = e.same("llvm.fmul", &[two, reciprocal])?;
            let tanh = e.same("llvm.fadd", &[one, less])?;
            e.same("llvm.intr.copysign", &[tanh, first])?
        }
        "fabs" | "rint" | "llrint" | "iabs" | "fast_expf" | "fast_fdividef" | "fast_tanhf" => {
            return unsupported(format!("'__triton_hip_{name}' of {ty} is not supported"));
        }
        _ => return unsupported(format!("there is no function '__triton_hip_{name}'")),
    };
    if made.ty() != result {
        return unsupported(format!("'__triton_hip_{name}' of {ty} is {}, not {result}", made.ty()));
    }
    Ok(made)
}

/// 2 to the power of `factor` times a float of 32 bits.
fn exp2_of<'c>(e: &mut Emit<'c>, value: Value<'c>, factor: f64) -> Lowered<Value<'c>> {
    let factor = e.const_float(value.ty(), factor)?;
    let scaled = e.same("llvm.fmul", &[value, factor])?;
    e.intrinsic("llvm.amdgcn.exp2", &[scaled], value.ty())
}

/// The first of two floats of 32 bits times the reciprocal of the second.
fn times_reciprocal<'c>(e: &mut Emit<'c>, args: &[Value<'c>]) -> Lowered<Value<'c>> {
    let reciprocal = e.intrinsic("llvm.amdgcn.rcp", &args[1..], args[0].ty())?;
    e.same("llvm.fmul", &[args[0], reciprocal])
}
