//! `mma.sync` (PTX ISA, "Warp-level matrix instructions").

use crate::emit::{Emit, Lowered, unsupported};
use crate::target::MatrixTypes;
use linear_layout::plan::{DotType, MatrixInstruction};
use mlir_host::ir::{FloatKind, Type, Value};

/// Elements as registers: pairs of 16-bit floats are vectors, other narrow elements integers of 32 bits.
pub(super) fn pack<'c>(e: &mut Emit<'c>, kind: DotType, elements: &[Value<'c>]) -> Lowered<Vec<Value<'c>>> {
    let each = (32 / kind.bits().min(32)) as usize;
    let mut registers = Vec::with_capacity(elements.len() / each);
    for elements in elements.chunks(each) {
        let [first, rest @ ..] = elements else { continue };
        if each == 1 {
            registers.push(*first);
            continue;
        }
        let vector = e.vector(each, first.ty())?;
        let mut joined = e.undef(vector)?;
        joined = e.insert_element(joined, *first, 0)?;
        for (i, element) in (1..).zip(rest) {
            joined = e.insert_element(joined, *element, i)?;
        }
        let i32t = e.i32();
        registers.push(if kind == DotType::F16 { joined } else { e.bitcast(joined, i32t)? });
    }
    Ok(registers)
}

/// The elements of the registers of a result.
pub(super) fn unpack<'c>(
    e: &mut Emit<'c>,
    kind: DotType,
    registers: &[Value<'c>],
) -> Lowered<Vec<Value<'c>>> {
    if kind != DotType::F16 {
        return Ok(registers.to_vec());
    }
    let f16t = e.float(FloatKind::F16);
    let mut elements = Vec::with_capacity(2 * registers.len());
    for register in registers {
        for i in 0..2 {
            elements.push(e.extract_element(*register, i, f16t)?);
        }
    }
    Ok(elements)
}

/// The name in PTX of the type of an operand.
pub(super) fn format_name(kind: DotType, element: Type<'_>) -> Option<&'static str> {
    Some(match (kind, element.float_kind()) {
        (DotType::F16, _) => "f16",
        (DotType::Bf16, _) => "bf16",
        (DotType::F32, _) => "tf32",
        (DotType::F64, _) => "f64",
        (DotType::I8, _) => "s8",
        (DotType::F8, Some(FloatKind::F8E4M3FN)) => "e4m3",
        (DotType::F8, Some(FloatKind::F8E5M2)) => "e5m2",
        _ => return None,
    })
}

/// One `mma.sync`.
pub(super) fn multiply<'c>(
    e: &mut Emit<'c>,
    instruction: &MatrixInstruction,
    types: &MatrixTypes<'c>,
    [a, b, c]: [&[Value<'c>]; 3],
) -> Lowered<Vec<Value<'c>>> {
    let [left, right] = types.formats.map(|element| format_name(types.kind, element));
    let (Some(left), Some(right), Some(first)) = (left, right, c.first()) else {
        return unsupported(format!("no mma.sync multiplies {:?} in these formats", types.kind));
    };
    let sum = if types.sum == DotType::F16 { "f16" } else { "f32" };
    // How the variants of an instruction are told apart: by sums, by operands, or by all.
    let variant = match types.kind {
        DotType::F16 => format!("{sum}.{sum}"),
        DotType::F8 => format!("{sum}.{left}.{right}.{sum}"),
        _ => left.to_owned(),
    };
    let [m, n, k] = instruction.shape;
    let name = format!("llvm.nvvm.mma.m{m}n{n}k{k}.row.col.{variant}");
    let mut operands = Vec::with_capacity(a.len() + b.len() + c.len());
    let i32t = e.i32();
    for register in a.iter().chain(b) {
        // TF32 operands are the bits of 32-bit floats.
        operands.push(if types.kind == DotType::F32 { e.bitcast(*register, i32t)? } else { *register });
    }
    operands.extend_from_slice(c);
    let ty = first.ty();
    let result = e.struct_of(&vec![ty; c.len()])?;
    let result = e.intrinsic(&name, &operands, result)?;
    (0..c.len()).map(|i| e.extract_value(result, i, ty)).collect()
}
