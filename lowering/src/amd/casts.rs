//! Conversions between formats of floats (CDNA3 ISA, `V_CVT_PK_FP8_F32` and its neighbours).

use crate::emit::{Emit, Lowered, internal, number_bits, unsupported};
use crate::floats;
use linear_layout::target::Fp8;
use mlir_host::ir::{Attr, FloatKind, Type, Value};

/// Converts values; those of 8-bit formats are integers of their bits. `native` says for which of these the target has
/// instructions.
pub(super) fn convert<'c>(
    e: &mut Emit<'c>,
    values: &[Value<'c>],
    from: FloatKind,
    to: FloatKind,
    towards_zero: bool,
    native: Option<Fp8>,
) -> Lowered<Vec<Value<'c>>> {
    use FloatKind::{BF16, F16, F32, F64, TF32};
    let is_plain = |kind| matches!(kind, F16 | BF16 | F32 | F64 | TF32);
    for kind in [from, to] {
        if !is_plain(kind) && floats::format(kind).is_none() {
            return unsupported(format!("conversions of {kind:?} are not supported"));
        }
    }
    if from == to {
        return Ok(values.to_vec());
    }
    if to == F16 && native_name(from, native).is_none() {
        let halves = values.iter().map(|value| floats::emit_to_f16(e, *value, from));
        if let Some(halves) = halves.collect::<Lowered<Option<Vec<_>>>>()? {
            return Ok(halves);
        }
    }
    if !is_plain(from) {
        let wide = widen(e, values, from, native)?;
        // All of them are numbers of `bf16`, and what is NaN is so by its upper half: nothing is rounded.
        return if to == BF16 {
            let element = e.float(to);
            wide.iter().map(|value| upper_half(e, *value, element)).collect()
        } else {
            convert(e, &wide, F32, to, towards_zero, native)
        };
    }
    if !is_plain(to) {
        let singles =
            values.iter().map(|value| to_f32_for_rounding(e, *value, from)).collect::<Lowered<Vec<_>>>()?;
        return narrow(e, &singles, to, towards_zero, native);
    }
    let ty = if to == TF32 { e.f32() } else { e.float(to) };
    values.iter().map(|value| plain(e, *value, ty, towards_zero)).collect()
}

/// Between `f16`, `bf16`, `f32` and `f64`.
fn plain<'c>(e: &mut Emit<'c>, value: Value<'c>, to: Type<'c>, towards_zero: bool) -> Lowered<Value<'c>> {
    let (from_bits, to_bits) = (number_bits(value.ty())?, number_bits(to)?);
    if value.ty() == to {
        return Ok(value);
    }
    if from_bits < to_bits {
        return e.value("llvm.fpext", &[value], to, &[]);
    }
    if from_bits == to_bits {
        // f16 and bf16: through f32, which holds both exactly.
        let f32t = e.f32();
        let wide = e.value("llvm.fpext", &[value], f32t, &[])?;
        return plain(e, wide, to, towards_zero);
    }
    if !towards_zero {
        return e.value("llvm.fptrunc", &[value], to, &[]);
    }
    match (value.ty().float_kind(), to.float_kind()) {
        (Some(FloatKind::F64), Some(FloatKind::F32)) => single_towards_zero(e, value),
        (Some(FloatKind::F64), _) => {
            let single = single_towards_zero(e, value)?;
            plain(e, single, to, true)
        }
        (_, Some(FloatKind::F16)) => {
            let pair = e.vector(2, to)?;
            let both = e.intrinsic("llvm.amdgcn.cvt.pkrtz", &[value, value], pair)?;
            e.extract_element(both, 0, to)
        }
        (_, Some(FloatKind::BF16)) => half_towards_zero(e, value, to),
        _ => unsupported(format!("conversion from {} to {to} towards zero", value.ty())),
    }
}

/// The upper half of an `f32`, which is a `bf16` rounded towards zero. A NaN must keep a bit of its mantissa.
fn half_towards_zero<'c>(e: &mut Emit<'c>, value: Value<'c>, to: Type<'c>) -> Lowered<Value<'c>> {
    let (i32t, f32t) = (e.i32(), e.f32());
    let bits = e.bitcast(value, i32t)?;
    let is_nan = compare(e, value, value, FCMP_UNO)?;
    let quiet_bit = e.const_i32(1 << 22)?;
    let quiet = e.or(bits, quiet_bit)?;
    let bits = e.select(is_nan, quiet, bits)?;
    let value = e.bitcast(bits, f32t)?;
    upper_half(e, value, to)
}

/// The upper half of an `f32` as a `bf16`.
fn upper_half<'c>(e: &mut Emit<'c>, value: Value<'c>, to: Type<'c>) -> Lowered<Value<'c>> {
    let (i32t, i16t) = (e.i32(), e.i16());
    let bits = e.bitcast(value, i32t)?;
    let upper = e.lshr(bits, 16)?;
    let upper = e.value("llvm.trunc", &[upper], i16t, &[])?;
    e.bitcast(upper, to)
}

// Comparisons of floats, as MLIR numbers them.
const FCMP_OGT: i64 = 2;
const FCMP_UNO: i64 = 14;

fn compare<'c>(e: &mut Emit<'c>, a: Value<'c>, b: Value<'c>, predicate: i64) -> Lowered<Value<'c>> {
    let (i1, predicate) = (e.i1(), Attr::int(e.context(), 64, predicate));
    e.value("llvm.fcmp", &[a, b], i1, &[("predicate", predicate)])
}

/// An `f64` as the nearest `f32` that is not larger in magnitude.
fn single_towards_zero<'c>(e: &mut Emit<'c>, value: Value<'c>) -> Lowered<Value<'c>> {
    let (f32t, f64t, i32t) = (e.f32(), e.float(FloatKind::F64), e.i32());
    let nearest = e.value("llvm.fptrunc", &[value], f32t, &[])?;
    let back = e.value("llvm.fpext", &[nearest], f64t, &[])?;
    let (size, exact) = (e.same("llvm.intr.fabs", &[back])?, e.same("llvm.intr.fabs", &[value])?);
    // The next smaller magnitude is the next smaller integer, also of infinity where the value was finite.
    let too_large = compare(e, size, exact, FCMP_OGT)?;
    let step = e.value("llvm.zext", &[too_large], i32t, &[])?;
    let bits = e.bitcast(nearest, i32t)?;
    let bits = e.same("llvm.sub", &[bits, step])?;
    e.bitcast(bits, f32t)
}

/// `value` as an `f32` that rounds to a narrow format like `value` itself: `f64` is rounded to odd, so that rounding
/// twice is rounding once.
fn to_f32_for_rounding<'c>(e: &mut Emit<'c>, value: Value<'c>, from: FloatKind) -> Lowered<Value<'c>> {
    if from != FloatKind::F64 {
        let f32t = e.f32();
        return plain(e, value, f32t, false);
    }
    let truncated = single_towards_zero(e, value)?;
    floats::to_odd(e, value, truncated)
}

/// The name in instructions of an 8-bit format of the target's flavour.
fn native_name(kind: FloatKind, native: Option<Fp8>) -> Option<&'static str> {
    match (native?, kind) {
        (Fp8::Ocp, FloatKind::F8E4M3FN) | (Fp8::Fnuz, FloatKind::F8E4M3FNUZ) => Some("fp8"),
        (Fp8::Ocp, FloatKind::F8E5M2) | (Fp8::Fnuz, FloatKind::F8E5M2FNUZ) => Some("bf8"),
        _ => None,
    }
}

/// 8-bit floats as `f32`, which holds all of them.
fn widen<'c>(
    e: &mut Emit<'c>,
    values: &[Value<'c>],
    from: FloatKind,
    native: Option<Fp8>,
) -> Lowered<Vec<Value<'c>>> {
    let Some(name) = native_name(from, native) else {
        return values.iter().map(|value| floats::emit_to_f32(e, *value, from)).collect();
    };
    let f32t = e.f32();
    let two = e.vector(2, f32t)?;
    let mut out = Vec::with_capacity(values.len());
    for bytes in values.chunks(4) {
        let word = word_of(e, bytes)?;
        for (half, bytes) in bytes.chunks(2).enumerate() {
            let upper = e.const_int(1, half as i64)?;
            let pair = e.intrinsic(&format!("llvm.amdgcn.cvt.pk.f32.{name}"), &[word, upper], two)?;
            for i in 0..bytes.len() {
                out.push(e.extract_element(pair, i, f32t)?);
            }
        }
    }
    Ok(out)
}

/// Up to four bytes as a word.
fn word_of<'c>(e: &mut Emit<'c>, bytes: &[Value<'c>]) -> Lowered<Value<'c>> {
    let (i8t, i32t) = (e.i8(), e.i32());
    let four = e.vector(4, i8t)?;
    let mut word = e.undef(four)?;
    for i in 0..4 {
        word = e.insert_element(word, bytes.get(i).copied().unwrap_or(bytes[0]), i)?;
    }
    e.bitcast(word, i32t)
}

/// The two 4-bit floats of each byte: as 8-bit ones by tables, as 16-bit ones by instructions where there are `conversions`.
pub(super) fn unpack_fp4<'c>(
    e: &mut Emit<'c>,
    bytes: &[Value<'c>],
    to: FloatKind,
    conversions: bool,
) -> Lowered<Option<Vec<[Value<'c>; 2]>>> {
    let name = match to {
        FloatKind::F8E4M3FN => return fp4_to_fp8(e, bytes).map(Some),
        FloatKind::F16 if conversions => "f16",
        FloatKind::BF16 if conversions => "bf16",
        _ => return Ok(None),
    };
    let (element, f32t) = (e.float(to), e.f32());
    let (two, scale) = (e.vector(2, element)?, e.const_float(f32t, 1.0)?);
    let mut out = Vec::with_capacity(bytes.len());
    for bytes in bytes.chunks(4) {
        let word = word_of(e, bytes)?;
        for byte in 0..bytes.len() {
            // CDNA4 ISA, V_CVT_SCALEF32_PK_F16_FP4: the numbers of one byte, times the scale.
            let byte = e.const_i32(byte as i64)?;
            let name = format!("llvm.amdgcn.cvt.scalef32.pk.{name}.fp4");
            let pair = e.intrinsic(&name, &[word, scale, byte], two)?;
            out.push([e.extract_element(pair, 0, element)?, e.extract_element(pair, 1, element)?]);
        }
    }
    Ok(Some(out))
}

/// The codes in e4m3 of 0, 0.5, 1 and 1.5, and of 2, 3, 4 and 6: what e2m1 has, in order.
const FP4_AS_FP8: [i64; 2] = [0x3c38_3000, 0x4c48_4440];

/// The two 4-bit floats of each byte as e4m3, which has all of their values: four at a time looked up by `v_perm_b32`.
fn fp4_to_fp8<'c>(e: &mut Emit<'c>, bytes: &[Value<'c>]) -> Lowered<Vec<[Value<'c>; 2]>> {
    let (i8t, i32t) = (e.i8(), e.i32());
    let four = e.vector(4, i8t)?;
    let (small, large) = (e.const_i32(FP4_AS_FP8[0])?, e.const_i32(FP4_AS_FP8[1])?);
    let mut out = Vec::with_capacity(bytes.len());
    for bytes in bytes.chunks(4) {
        let word = word_of(e, bytes)?;
        let mut halves = [word, e.lshr(word, 4)?];
        for half in &mut halves {
            let numbers = e.mask(*half, 0x0707_0707)?;
            let codes = e.intrinsic("llvm.amdgcn.perm", &[large, small, numbers], i32t)?;
            let signs = e.mask(*half, 0x0808_0808)?;
            let signs = e.shl(signs, 4)?;
            let codes = e.or_disjoint(codes, signs)?;
            *half = e.bitcast(codes, four)?;
        }
        for byte in 0..bytes.len() {
            out.push([e.extract_element(halves[0], byte, i8t)?, e.extract_element(halves[1], byte, i8t)?]);
        }
    }
    Ok(out)
}

/// `f32` as 8-bit floats. What is too large for a format becomes its largest number where it has no infinity, as in
/// PTX's `.satfinite`; the instruction would make NaN of it.
fn narrow<'c>(
    e: &mut Emit<'c>,
    values: &[Value<'c>],
    to: FloatKind,
    towards_zero: bool,
    native: Option<Fp8>,
) -> Lowered<Vec<Value<'c>>> {
    let name = native_name(to, native).filter(|_| !towards_zero);
    let Some(name) = name else {
        return values.iter().map(|value| floats::emit_from_f32(e, *value, to, towards_zero)).collect();
    };
    let Some(format) = floats::format(to) else { return internal("no format of 8 bits") };
    let most = format.value(format.max_finite());
    let (i8t, i32t, f32t) = (e.i8(), e.i32(), e.f32());
    let four = e.vector(4, i8t)?;
    let (low, high) = (e.const_float(f32t, -most)?, e.const_float(f32t, most)?);
    let mut out = Vec::with_capacity(values.len());
    for singles in values.chunks(4) {
        let mut word = e.undef(i32t)?;
        let mut clamped = Vec::with_capacity(4);
        for single in singles {
            // The median of a NaN and two numbers is a number: NaN stays aside.
            let inside = e.intrinsic("llvm.amdgcn.fmed3", &[*single, low, high], f32t)?;
            let is_nan = compare(e, *single, *single, FCMP_UNO)?;
            clamped.push(e.select(is_nan, *single, inside)?);
        }
        for (half, pair) in clamped.chunks(2).enumerate() {
            let upper = e.const_int(1, half as i64)?;
            let second = pair.get(1).copied().unwrap_or(pair[0]);
            let operands = [pair[0], second, word, upper];
            word = e.intrinsic(&format!("llvm.amdgcn.cvt.pk.{name}.f32"), &operands, i32t)?;
        }
        let bytes = e.bitcast(word, four)?;
        for i in 0..singles.len() {
            out.push(e.extract_element(bytes, i, i8t)?);
        }
    }
    Ok(out)
}
