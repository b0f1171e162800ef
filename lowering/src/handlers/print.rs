//! `tt.print`: each element once, with the program it is of and its indices.

use crate::emit::{Failure, Lowered, unsupported};
use crate::handlers::memory::acts;
use crate::lower::{Handler, Lower};
use linear_layout::Dim;
use linear_layout::plan::ThreadMasks;
use mlir_host::ir::{FloatKind, Op, Type, Value};
use std::fmt::Write;
use ttopt_dialect::tt::ops::PrintOp;
use ttopt_dialect::tt::types::is_pointer;
use ttopt_passes::plans;

pub(super) const HANDLERS: &[(&str, Handler)] = &[("tt.print", print)];

/// `%` stands for itself.
fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}

/// How a value of type `ty` is printed, and as what it is handed over.
fn printed<'c>(
    l: &mut Lower<'_, 'c>,
    value: Value<'c>,
    ty: Type<'c>,
    hex: bool,
    signed: bool,
) -> Lowered<(String, Value<'c>)> {
    if is_pointer(ty) {
        return Ok(("%p".to_owned(), value));
    }
    if let Some(kind) = ty.float_kind() {
        let wide = l.emit.float(FloatKind::F64);
        let target = l.target;
        let converted = target.convert_floats(&mut l.emit, &[value], kind, FloatKind::F32, false);
        let value = match kind {
            FloatKind::F64 => value,
            _ => {
                let Some(single) = converted?.first().copied() else { return unsupported("no value") };
                l.emit.value("llvm.fpext", &[single], wide, &[])?
            }
        };
        return Ok((if hex { "%a" } else { "%f" }.to_owned(), value));
    }
    let Some(bits) = value.ty().int_bits() else {
        return unsupported(format!("values of type {ty} cannot be printed"));
    };
    let (wide, long) = if bits > 32 { (l.emit.i64(), "ll") } else { (l.emit.i32(), "") };
    let extend = if signed && bits > 1 { "llvm.sext" } else { "llvm.zext" };
    let value = if value.ty() == wide { value } else { l.emit.value(extend, &[value], wide, &[])? };
    let format = match (hex, signed) {
        (true, _) => format!("0x%0{}{long}x", bits.div_ceil(4)),
        (false, true) => format!("%{long}i"),
        (false, false) => format!("%{long}u"),
    };
    Ok((format, value))
}

fn digits(size: i64) -> usize {
    (size.max(1) - 1).max(0).to_string().len()
}

fn print<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let print = PrintOp::of(op);
    let (prefix, hex, signed) = (print.prefix(), print.hex(), print.is_signed());
    let (target, blocks) = (l.target, l.num_blocks());
    let mut program = Vec::new();
    for axis in 0..crate::target::GRID_DIMS {
        program.push(target.program_id(&mut l.emit, axis, blocks)?);
    }
    let head = "pid (%u, %u, %u)";
    if op.num_operands() == 0 {
        let everyone = ThreadMasks { lane: u64::MAX, warp: u64::MAX, block: u64::MAX };
        let text = format!("{head}{}\n", escaped(prefix));
        return guarded(l, everyone, |l| emit(l, &text, &program));
    }
    let many = op.num_operands() > 1;
    for (i, operand) in op.operands().enumerate() {
        let signed = signed.get(i).is_some_and(|signed| *signed != 0);
        let label = if many { format!("{}(operand {i}) ", escaped(prefix)) } else { escaped(prefix) };
        let values = l.get(operand)?;
        let layout = plans::layout_at(op, operand.ty(), target.desc()).map_err(Failure::Unsupported)?;
        let shape: Vec<i64> = operand.ty().as_tensor().map_or(Vec::new(), |tensor| tensor.shape().to_vec());
        let mut indices = Vec::new();
        for dim in 0..shape.len() {
            indices.push(l.indices(&layout, dim)?);
        }
        let copies = layout.free_variable_mask(Dim::REGISTER);
        let duplicates = ThreadMasks {
            lane: layout.free_variable_mask(Dim::LANE),
            warp: layout.free_variable_mask(Dim::WARP),
            block: layout.free_variable_mask(Dim::BLOCK),
        };
        let mut places = String::new();
        for (dim, size) in shape.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(places, "{}%{}u", if dim > 0 { ", " } else { "" }, digits(*size));
        }
        guarded(l, duplicates, |l| {
            for (register, value) in values.iter().enumerate().filter(|(r, _)| *r as u64 & copies == 0) {
                let (format, value) = printed(l, *value, operand.ty().element(), hex, signed)?;
                let mut args = program.clone();
                args.extend(indices.iter().filter_map(|along| along.get(register)));
                args.push(value);
                let text = format!("{head} idx ({places}){label}{format}\n");
                emit(l, &text, &args)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn emit<'c>(l: &mut Lower<'_, 'c>, text: &str, args: &[Value<'c>]) -> Lowered<()> {
    let types: Vec<Type<'c>> = args.iter().map(|arg| arg.ty()).collect();
    let ty = l.emit.struct_of(&types)?;
    let (target, slot) = (l.target, l.stack_slot(ty)?);
    l.with_module(|e, module| target.print(e, module, text, args, slot))
}

/// Emits code that only those threads run that act for the others.
fn guarded<'a, 'c>(
    l: &mut Lower<'a, 'c>,
    duplicates: ThreadMasks,
    body: impl FnOnce(&mut Lower<'a, 'c>) -> Lowered<()>,
) -> Lowered<()> {
    let Some(mine) = acts(l, duplicates)? else { return body(l) };
    let (act, done) = (l.new_block(&[])?, l.new_block(&[])?);
    l.emit.cond_br(mine, (act, &[]), (done, &[]))?;
    l.emit.set_block(act);
    body(l)?;
    l.emit.br(done, &[], None)?;
    l.emit.set_block(done);
    Ok(())
}
