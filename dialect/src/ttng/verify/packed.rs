//! Packed arithmetic: which formats an instruction combines.

use super::super::enums::PackedArithOpKind;
use super::super::ops::PackedArithOp;
use super::tensor;
use crate::ttg::attrs::is_distributed;
use crate::ttg::infer::fp4_to_fp;
use crate::ttg::layout::{equivalent, to_linear_layout};
use linear_layout::Dim;
use mlir_host::def::VerifyResult;
use mlir_host::ir::{FloatKind, Op, TensorType, Type};

/// The formats that fit together in an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    F32,
    F16,
    Bf16,
    E5m2,
    E4m3,
    /// Two in a byte.
    E2m1,
    /// Powers of two.
    E8m0,
}

use Format::*;

impl Format {
    fn of(ty: Type<'_>) -> Option<Format> {
        if ty.is_int(8) {
            return Some(E2m1);
        }
        Some(match ty.float_kind()? {
            FloatKind::F32 => F32,
            FloatKind::F16 => F16,
            FloatKind::BF16 => Bf16,
            FloatKind::F8E5M2 => E5m2,
            FloatKind::F8E4M3FN => E4m3,
            FloatKind::F8E8M0FNU => E8m0,
            _ => return None,
        })
    }

    fn text(self) -> &'static str {
        match self {
            F32 => "f32x2",
            F16 => "f16x2",
            Bf16 => "bf16x2",
            E5m2 => "e5m2x4",
            E4m3 => "e4m3x4",
            E2m1 => "e2m1x4",
            E8m0 => "ue8m0x4",
        }
    }

    fn is_half(self) -> bool {
        matches!(self, F16 | Bf16)
    }

    /// Elements of one instruction.
    fn lanes(self) -> u64 {
        match self {
            F32 | F16 | Bf16 => 2,
            _ => 4,
        }
    }
}

/// Whether there is an instruction.
fn exists(kind: PackedArithOpKind, result: Format, operands: &[Format]) -> bool {
    use PackedArithOpKind::*;
    let sum = matches!(kind, Add | Sub);
    if matches!(result, E5m2 | E4m3) {
        // Operands of four bits or of eight; what is added has the result's format.
        let narrow = |format: &Format| format.lanes() == 4;
        return match operands {
            [a, b] => (sum && narrow(a) && *b == result) || (kind == Mul && narrow(a) && narrow(b)),
            [a, b, c] => kind == Fma && narrow(a) && narrow(b) && *c == result,
            _ => false,
        };
    }
    if operands.iter().all(|format| *format == result) {
        return result.is_half() || !matches!(kind, Min | Max);
    }
    match (result, operands) {
        // A half added to, or multiplied into, single precision.
        (F32, [a, F32]) => sum && a.is_half(),
        (F32, [a, F32, F32]) => kind == Fma && a.is_half(),
        // Single precision rounded to a half.
        (F16 | Bf16, [F32, F32]) => sum || kind == Mul,
        // One half format scaled by the other.
        (F16 | Bf16, [a, b]) => kind == Mul && *a == result && b.is_half(),
        _ => false,
    }
}

/// The dimension along which packed pairs make an operand half as long.
fn packed_axis(operand: TensorType<'_>, result: TensorType<'_>) -> Option<usize> {
    let (from, to) = (operand.shape(), result.shape());
    if from.len() != to.len() {
        return None;
    }
    let mut differing = (0..from.len()).filter(|i| from[*i] != to[*i]);
    let axis = differing.next()?;
    (differing.next().is_none() && 2 * from[axis] == to[axis]).then_some(axis)
}

/// Verifies formats, shapes and layouts.
pub fn packed_arith(op: Op<'_>) -> VerifyResult {
    let arith = PackedArithOp::of(op);
    let kind = arith.op_kind();
    let operands: Result<Vec<TensorType<'_>>, String> = arith.operands().map(tensor).collect();
    let (operands, result) = (operands?, tensor(arith.result())?);
    let wanted = if kind == PackedArithOpKind::Fma { 3 } else { 2 };
    if operands.len() != wanted {
        return Err(format!("{} takes {wanted} operands, got {}", kind.keyword(), operands.len()));
    }
    let Some(attr) = result.encoding().filter(|attr| is_distributed(*attr)) else {
        return Err(format!("the result must be distributed over threads, got '{}'", result.ty()));
    };
    let formats: Option<Vec<Format>> = operands.iter().map(|operand| Format::of(operand.element())).collect();
    let (Some(formats), Some(format)) = (formats, Format::of(result.element())) else { return Ok(()) };
    if !exists(kind, format, &formats) {
        let given: Vec<&str> = formats.iter().map(|format| format.text()).collect();
        return Err(format!("there is no {} of ({}) to {}", kind.keyword(), given.join(", "), format.text()));
    }
    let shape = result.shape();
    let mut axis = None;
    for (i, operand) in operands.iter().enumerate().filter(|(i, _)| formats[*i] == E2m1) {
        let along = packed_axis(*operand, result).filter(|along| axis.is_none_or(|axis| axis == *along));
        let Some(along) = along else {
            return Err(format!(
                "fp4 operand {i} must have the result's shape {shape:?} with one dimension halved, the same for \
                 all, got {:?}",
                operand.shape()
            ));
        };
        axis = Some(along);
    }
    let layout = to_linear_layout(attr, &shape)?;
    let values = 1u64 << layout.columns_of(Dim::REGISTER).iter().filter(|column| **column != 0).count();
    if !values.is_multiple_of(format.lanes()) {
        return Err(format!(
            "each thread must hold a multiple of {} different elements of the result, but holds {values}",
            format.lanes()
        ));
    }
    for (i, operand) in operands.iter().enumerate() {
        if let (E2m1, Some(axis)) = (formats[i], axis) {
            let unpacked = operand.encoding().filter(|attr| is_distributed(*attr));
            let unpacked = unpacked.and_then(|attr| fp4_to_fp(attr, &operand.shape(), axis).ok());
            if !unpacked.is_some_and(|unpacked| equivalent(unpacked, attr, &shape)) {
                return Err(format!(
                    "fp4 operand {i} must have a layout that unpacks to the result's, {attr}"
                ));
            }
            continue;
        }
        if operand.shape() != shape {
            return Err(format!(
                "operand {i} must have the result's shape {shape:?}, got {:?}",
                operand.shape()
            ));
        }
        if !operand.encoding().is_some_and(|mine| equivalent(mine, attr, &shape)) {
            return Err(format!("operand {i} must have a layout equivalent to the result's, {attr}"));
        }
    }
    Ok(())
}
