//! `tt.print` and `tt.assert` through the printing functions of AMD's library of device functions (ockl), which reach
//! the host.

use crate::emit::{Emit, Lowered};
use crate::target::{Assertion, Declare};
use mlir_host::ir::Value;

/// Arguments of one call of `__ockl_printf_append_args`.
const ARGS: usize = 7;

/// Prints `format` with `args`, each 64 bits wide.
fn send<'c>(
    e: &mut Emit<'c>,
    module: &mut dyn Declare<'c>,
    begin: &str,
    format: &str,
    args: &[Value<'c>],
) -> Lowered<()> {
    let (generic, i32t, i64t) = (e.ptr(0)?, e.i32(), e.i64());
    let (append_string, append_args) = ("__ockl_printf_append_string_n", "__ockl_printf_append_args");
    let first: &[_] = if begin == PRINT { &[i64t] } else { &[] };
    module.function(begin, first, Some(i64t), false)?;
    module.function(append_string, &[i64t, generic, i64t, i32t], Some(i64t), false)?;
    let wide = [vec![i64t, i32t], vec![i64t; ARGS], vec![i32t]].concat();
    module.function(append_args, &wide, Some(i64t), false)?;
    let zero = e.const_int(64, 0)?;
    let begin_args: &[Value<'c>] = if begin == PRINT { &[zero] } else { &[] };
    let mut message = e.call(begin, begin_args, &[i64t])?[0];
    let text = module.string(e, format)?;
    let length = e.const_int(64, format.len() as i64 + 1)?;
    let is_last = e.const_i32(args.is_empty().into())?;
    message = e.call(append_string, &[message, text, length, is_last], &[i64t])?[0];
    let parts = args.len().div_ceil(ARGS);
    for (i, part) in args.chunks(ARGS).enumerate() {
        let count = e.const_i32(part.len() as i64)?;
        let mut operands = vec![message, count];
        for arg in part {
            operands.push(widen(e, *arg)?);
        }
        operands.resize(2 + ARGS, zero);
        operands.push(e.const_i32((i + 1 == parts).into())?);
        message = e.call(append_args, &operands, &[i64t])?[0];
    }
    Ok(())
}

const PRINT: &str = "__ockl_printf_begin";
const PRINT_ERROR: &str = "__ockl_fprintf_stderr_begin";

/// An argument as 64 bits.
fn widen<'c>(e: &mut Emit<'c>, value: Value<'c>) -> Lowered<Value<'c>> {
    let i64t = e.i64();
    match value.ty().int_bits() {
        Some(64) => Ok(value),
        Some(_) => e.value("llvm.zext", &[value], i64t, &[]),
        None if value.ty().is_float() => e.bitcast(value, i64t),
        None => e.value("llvm.ptrtoint", &[value], i64t, &[]),
    }
}

/// Prints `args` in the notation of `printf`.
pub(super) fn print<'c>(
    e: &mut Emit<'c>,
    module: &mut dyn Declare<'c>,
    format: &str,
    args: &[Value<'c>],
) -> Lowered<()> {
    send(e, module, PRINT, format, args)
}

/// Prints a message and stops the program.
pub(super) fn assert<'c>(
    e: &mut Emit<'c>,
    module: &mut dyn Declare<'c>,
    failed: &Assertion<'_>,
) -> Lowered<()> {
    let Assertion { message, file, line, function } = failed;
    let text = format!("{file}:{line}: {function}: Assertion `{message}' failed.\n").replace('%', "%%");
    send(e, module, PRINT_ERROR, &text, &[])?;
    e.op("llvm.intr.trap", &[], &[], &[])?;
    Ok(())
}
