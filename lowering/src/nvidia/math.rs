//! Functions of floats: PTX instructions where they are accurate enough for
//! the operation, libdevice otherwise.

use crate::emit::{Emit, Lowered, unsupported};
use crate::floats;
use crate::target::Declare;
use mlir_host::ir::{FloatKind, Value};

/// Calls `__nv_<name>`, with `f` appended for singles.
fn libdevice<'c>(
    e: &mut Emit<'c>,
    module: &mut dyn Declare<'c>,
    name: &str,
    args: &[Value<'c>],
) -> Lowered<Value<'c>> {
    let ty = args[0].ty();
    let suffix = if ty.float_kind() == Some(FloatKind::F32) { "f" } else { "" };
    let symbol = format!("__nv_{name}{suffix}");
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
    let flushed = if e.flushes() { ".ftz" } else { "" };
    match name {
        "ceil" | "floor" if single && e.flushes() => {
            e.intrinsic(&format!("llvm.nvvm.{name}.ftz.f"), args, ty)
        }
        "ceil" | "floor" => e.same(&format!("llvm.intr.{name}"), args),
        "divf" if single => e.intrinsic("llvm.nvvm.div.full", args, ty),
        "approx_divf" if single => e.intrinsic("llvm.nvvm.div.approx.f", args, ty),
        "divf" | "approx_divf" | "precise_divf" => e.same("llvm.fdiv", args),
        "sqrt" if single => e.intrinsic(&format!("llvm.nvvm.sqrt.approx{flushed}.f"), args, ty),
        "sqrt" | "precise_sqrt" => e.same("llvm.intr.sqrt", args),
        "rsqrt" if single => e.intrinsic(&format!("llvm.nvvm.rsqrt.approx{flushed}.f"), args, ty),
        // Powers below the least normal number become zero: to keep them takes twice the multiplications.
        "exp2" if single => e.intrinsic("llvm.nvvm.ex2.approx.ftz", args, ty),
        "exp" if single => {
            // exp(x) = 2^(x log2 e)
            let log2e = e.const_float(ty, std::f64::consts::LOG2_E)?;
            let scaled = e.same("llvm.fmul", &[args[0], log2e])?;
            e.intrinsic("llvm.nvvm.ex2.approx", &[scaled], ty)
        }
        "remf" => libdevice(e, module, "fmod", args),
        "rsqrt" | "exp" | "exp2" | "expm1" | "log" | "log2" | "log10" | "log1p" | "sin" | "cos" | "tan"
        | "tanh" | "sinh" | "cosh" | "asin" | "acos" | "atan" | "atan2" | "asinh" | "acosh" | "atanh"
        | "erf" | "erfc" | "pow" | "cbrt" => libdevice(e, module, name, args),
        _ => unsupported(format!("{name} of {ty} is not supported")),
    }
}
