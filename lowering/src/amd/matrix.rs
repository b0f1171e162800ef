//! `v_mfma` (CDNA3 and CDNA4 ISA, "Matrix Arithmetic Instructions") and `v_wmma` (RDNA3 and RDNA4 ISA, "Wave Matrix
//! Multiply Accumulate"; of gfx1250, LLVM).

use crate::emit::{Emit, Lowered, unsupported};
use crate::target::{BlockScales, MatrixTypes};
use linear_layout::plan::{DotType, MatrixFamily, MatrixInstruction};
use mlir_host::ir::{FloatKind, Type, Value};

/// Elements of an operand or of sums as one value: floats of 16 bits and more as vectors of them, bytes as integers of
/// 32 bits and vectors of those.
pub(super) fn pack<'c>(e: &mut Emit<'c>, kind: DotType, elements: &[Value<'c>]) -> Lowered<Vec<Value<'c>>> {
    let Some(first) = elements.first() else { return unsupported("a fragment of no elements") };
    if kind.bits() == 8 {
        let i32t = e.i32();
        let words = elements.len() / 4;
        let ty = if words > 1 { e.vector(words, i32t)? } else { i32t };
        return Ok(vec![e.join(elements, ty)?]);
    }
    let ty = if elements.len() > 1 { e.vector(elements.len(), first.ty())? } else { first.ty() };
    Ok(vec![e.join(elements, ty)?])
}

/// The elements of a fragment of sums.
pub(super) fn unpack<'c>(e: &mut Emit<'c>, fragment: &[Value<'c>]) -> Lowered<Vec<Value<'c>>> {
    let [value] = fragment else { return unsupported("a fragment in several parts") };
    let Some((count, element)) = value.ty().as_vector() else { return Ok(vec![*value]) };
    (0..count).map(|i| e.extract_element(*value, i, element)).collect()
}

/// `v_dot2_f32_f16`, `v_dot2_f32_bf16` and `v_dot4_i32_i8`, whose sums wrap (CDNA3 ISA and RDNA3 ISA, "VOP3P").
pub(super) fn add_products<'c>(
    e: &mut Emit<'c>,
    kind: DotType,
    fragments: [&[Value<'c>]; 2],
    sum: Value<'c>,
) -> Lowered<Value<'c>> {
    let [&[left], &[right]] = fragments else { return unsupported("a fragment in several parts") };
    let name = match kind {
        DotType::F16 => "llvm.amdgcn.fdot2",
        DotType::Bf16 => "llvm.amdgcn.fdot2.f32.bf16",
        DotType::I8 => "llvm.amdgcn.sdot4",
        _ => return unsupported(format!("a sum of products of {kind:?}")),
    };
    let clamp = e.const_int(1, 0)?;
    e.intrinsic(name, &[left, right, sum, clamp], sum.ty())
}

/// How LLVM calls 8-bit floats, of either flavour.
fn fp8_name(element: Type<'_>) -> Option<&'static str> {
    match element.float_kind()? {
        FloatKind::F8E4M3FN | FloatKind::F8E4M3FNUZ => Some("fp8"),
        FloatKind::F8E5M2 | FloatKind::F8E5M2FNUZ => Some("bf8"),
        _ => None,
    }
}

/// What `v_mfma_*_f8f6f4` calls formats of operands (CDNA4 ISA, `CBSZ` and `BLGP`).
fn narrow_format(kind: DotType, element: Type<'_>) -> Option<i64> {
    match (kind, fp8_name(element)) {
        (DotType::F4Pair, _) => Some(4),
        (_, Some("fp8")) => Some(0),
        (_, Some(_)) => Some(1),
        _ => None,
    }
}

/// One execution on fragments `[a, b, c]`.
pub(super) fn multiply<'c>(
    e: &mut Emit<'c>,
    instruction: &MatrixInstruction,
    types: &MatrixTypes<'c>,
    fragments: [&[Value<'c>]; 3],
) -> Lowered<Vec<Value<'c>>> {
    let [&[a], &[b], &[c]] = fragments else { return unsupported("a fragment in several parts") };
    let formats = types.formats.map(fp8_name);
    let formats = match (types.kind, formats) {
        (DotType::F8, [Some(left), Some(right)]) => Some([left, right]),
        (DotType::F8, _) => return unsupported(format!("{} in these formats", instruction.name)),
        _ => None,
    };
    let dot = match instruction.family {
        MatrixFamily::Mfma => mfma(e, instruction, types, formats, [a, b, c])?,
        MatrixFamily::Wmma => wmma(e, instruction, types, formats, [a, b, c])?,
        _ => return unsupported(format!("no instruction {}", instruction.name)),
    };
    Ok(vec![dot])
}

fn mfma<'c>(
    e: &mut Emit<'c>,
    instruction: &MatrixInstruction,
    types: &MatrixTypes<'c>,
    formats: Option<[&str; 2]>,
    [a, b, c]: [Value<'c>; 3],
) -> Lowered<Value<'c>> {
    let [m, n, k] = instruction.shape;
    if let (true, [Some(left), Some(right)]) =
        (instruction.scaled.is_some(), types.formats.map(|format| narrow_format(types.kind, format)))
    {
        return mfma_narrow(e, instruction, [left, right], [a, b, c], None);
    }
    let long = a.ty().bits() == Some(128) || a.ty().as_vector().is_some_and(|(count, _)| count == 8);
    let (suffix, operand) = match (types.kind, formats) {
        (_, Some([left, right])) => (format!(".{left}.{right}"), Some(e.i64())),
        (DotType::F16, _) if long => (".f16".to_owned(), None),
        (DotType::F16, _) => ("f16".to_owned(), None),
        (DotType::Bf16, _) if long => (".bf16".to_owned(), None),
        // The first instructions for bf16 take integers.
        (DotType::Bf16, _) => ("bf16.1k".to_owned(), Some(e.vector(4, e.i16())?)),
        (DotType::F32, _) if instruction.rounds => (".xf32".to_owned(), None),
        (DotType::F32, _) => ("f32".to_owned(), None),
        (DotType::F64, _) => ("f64".to_owned(), None),
        // Four, eight or sixteen bytes.
        (DotType::I8, _) => match a.ty().as_vector() {
            None => ("i8".to_owned(), None),
            Some((2, _)) => (".i8".to_owned(), Some(e.i64())),
            Some(_) => (".i8".to_owned(), None),
        },
        (kind, _) => return unsupported(format!("v_mfma of {kind:?}")),
    };
    let sum = match types.sum {
        DotType::F32 => "f32",
        DotType::F64 => "f64",
        DotType::I32 => "i32",
        kind => return unsupported(format!("v_mfma with sums of {kind:?}")),
    };
    let (a, b) = match operand {
        Some(ty) => (e.bitcast(a, ty)?, e.bitcast(b, ty)?),
        None => (a, b),
    };
    // No broadcasts, nothing negated.
    let zero = e.const_i32(0)?;
    let name = format!("llvm.amdgcn.mfma.{sum}.{m}x{n}x{k}{suffix}");
    e.intrinsic(&name, &[a, b, c, zero, zero, zero], c.ty())
}

/// One execution on fragments `[a, b, c]` and the scales of `a` and `b`.
pub(super) fn multiply_scaled<'c>(
    e: &mut Emit<'c>,
    instruction: &MatrixInstruction,
    types: &MatrixTypes<'c>,
    fragments: [&[Value<'c>]; 3],
    scales: [&BlockScales<'c>; 2],
) -> Lowered<Vec<Value<'c>>> {
    let [&[a], &[b], &[c]] = fragments else { return unsupported("a fragment in several parts") };
    let [Some(left), Some(right)] = types.formats.map(|format| narrow_format(types.kind, format)) else {
        return unsupported(format!("{} in these formats", instruction.name));
    };
    let formats = [left, right];
    if instruction.family == MatrixFamily::Wmma {
        return Ok(vec![wmma_scaled(e, instruction, formats, [a, b, c], scales)?]);
    }
    let [&[first], &[second]] = scales.map(|scales| &scales.bytes[..]) else {
        return unsupported("scales of several blocks in one register");
    };
    Ok(vec![mfma_narrow(e, instruction, formats, [a, b, c], Some([first, second]))?])
}

/// `v_wmma_scale_f32_16x16x128_f8f6f4` (LLVM's `IntrinsicsAMDGPU`): operands with their formats, scales of four blocks as the bytes of a
/// register with the half of the wave whose lanes have them.
fn wmma_scaled<'c>(
    e: &mut Emit<'c>,
    instruction: &MatrixInstruction,
    [left, right]: [i64; 2],
    [a, b, c]: [Value<'c>; 3],
    scales: [&BlockScales<'c>; 2],
) -> Lowered<Value<'c>> {
    // Scales of eight bits, as E8M0 has them.
    const E8M0: i64 = 0;
    let [m, n, k] = instruction.shape;
    let k = k * instruction.operand.numbers();
    let (left, right) = (e.const_i32(left)?, e.const_i32(right)?);
    let (no, as_it_is, format) = (e.const_int(1, 0)?, e.const_int(16, 0)?, e.const_i32(E8M0)?);
    let i32t = e.i32();
    let mut registers = Vec::new();
    for scales in scales {
        registers.push((e.const_i32(i64::from(scales.in_upper_lanes))?, e.join(&scales.bytes, i32t)?));
    }
    let [(first_half, first), (second_half, second)] = registers[..] else {
        return unsupported("scales of more than two operands");
    };
    let operands =
        [left, a, right, b, as_it_is, c, first_half, format, first, second_half, format, second, no, no];
    e.intrinsic(&format!("llvm.amdgcn.wmma.scale.f32.{m}x{n}x{k}.f8f6f4"), &operands, c.ty())
}

/// `v_mfma_*_f8f6f4`, without scales where the numbers of bytes and the scales are zero, as LLVM has it.
fn mfma_narrow<'c>(
    e: &mut Emit<'c>,
    instruction: &MatrixInstruction,
    [left, right]: [i64; 2],
    [a, b, c]: [Value<'c>; 3],
    scales: Option<[Value<'c>; 2]>,
) -> Lowered<Value<'c>> {
    let [m, n, k] = instruction.shape;
    let k = k * instruction.operand.numbers();
    let (left, right, zero) = (e.const_i32(left)?, e.const_i32(right)?, e.const_i32(0)?);
    let scales = match scales {
        None => [zero; 4],
        Some([first, second]) => {
            let i32t = e.i32();
            let first = e.value("llvm.zext", &[first], i32t, &[])?;
            let second = e.value("llvm.zext", &[second], i32t, &[])?;
            // The second byte: all would be zero otherwise where LLVM finds out that both scales are.
            [e.const_i32(1)?, e.shl(first, 8)?, zero, second]
        }
    };
    let [first_byte, first, second_byte, second] = scales;
    let operands = [a, b, c, left, right, first_byte, first, second_byte, second];
    e.intrinsic(&format!("llvm.amdgcn.mfma.scale.f32.{m}x{n}x{k}.f8f6f4"), &operands, c.ty())
}

fn wmma<'c>(
    e: &mut Emit<'c>,
    instruction: &MatrixInstruction,
    types: &MatrixTypes<'c>,
    formats: Option<[&str; 2]>,
    [a, b, c]: [Value<'c>; 3],
) -> Lowered<Value<'c>> {
    let [m, n, k] = instruction.shape;
    let shape = format!("{m}x{n}x{k}");
    if k != 16 {
        return wmma_gfx1250(e, &shape, types, formats, [a, b, c]);
    }
    match (types.kind, formats) {
        (_, Some([left, right])) => {
            e.intrinsic(&format!("llvm.amdgcn.wmma.f32.{shape}.{left}.{right}"), &[a, b, c], c.ty())
        }
        (DotType::F16, _) => e.intrinsic(&format!("llvm.amdgcn.wmma.f32.{shape}.f16"), &[a, b, c], c.ty()),
        (DotType::Bf16, _) => {
            let count = a.ty().as_vector().map_or(1, |(count, _)| count);
            let ty = e.vector(count, e.i16())?;
            let (a, b) = (e.bitcast(a, ty)?, e.bitcast(b, ty)?);
            e.intrinsic(&format!("llvm.amdgcn.wmma.f32.{shape}.bf16"), &[a, b, c], c.ty())
        }
        (DotType::I8, _) => {
            // Both operands are signed; sums wrap.
            let (signed, wrap) = (e.const_int(1, 1)?, e.const_int(1, 0)?);
            let name = format!("llvm.amdgcn.wmma.i32.{shape}.iu8");
            e.intrinsic(&name, &[signed, a, signed, b, c, wrap], c.ty())
        }
        (kind, _) => unsupported(format!("v_wmma of {kind:?}")),
    }
}

/// `v_wmma` of gfx1250, with nothing negated and no operand that an instruction behind uses again (LLVM's `IntrinsicsAMDGPU`).
fn wmma_gfx1250<'c>(
    e: &mut Emit<'c>,
    shape: &str,
    types: &MatrixTypes<'c>,
    formats: Option<[&str; 2]>,
    [a, b, c]: [Value<'c>; 3],
) -> Lowered<Value<'c>> {
    let (no, as_it_is) = (e.const_int(1, 0)?, e.const_int(16, 0)?);
    let (name, operands): (_, &[Value<'c>]) = match (types.kind, formats) {
        (_, Some([left, right])) => (format!("f32.{shape}.{left}.{right}"), &[a, b, as_it_is, c, no, no]),
        (DotType::I8, _) => {
            // Both operands are signed; sums wrap.
            let signed = e.const_int(1, 1)?;
            (format!("i32.{shape}.iu8"), &[signed, a, signed, b, c, no, no, no])
        }
        (DotType::F16 | DotType::Bf16 | DotType::F32, _) => {
            let kind = format!("{:?}", types.kind).to_lowercase();
            (format!("f32.{shape}.{kind}"), &[no, a, no, b, as_it_is, c, no, no])
        }
        (kind, _) => return unsupported(format!("v_wmma of {kind:?}")),
    };
    e.intrinsic(&format!("llvm.amdgcn.wmma.{name}"), operands, c.ty())
}
