//! Functions of floats: what LLVM makes of its own intrinsics where that is accurate, AMD's library of device functions
//! (ocml) otherwise.

use crate::emit::{Emit, Lowered, unsupported};
use crate::floats;
use crate::target::Declare;
use mlir_host::ir::{FloatKind, Value};

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
        "approx_divf" if single => {
            let reciprocal = e.intrinsic("llvm.amdgcn.rcp", &args[1..], ty)?;
            e.same("llvm.fmul", &[args[0], reciprocal])
        }
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
