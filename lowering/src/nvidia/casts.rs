//! Conversions between number formats, of as many values an instruction as the hardware packs.

use super::Nvidia;
use crate::bytes;
use crate::emit::{Emit, Failure, Lowered, number_bits, unsupported};
use crate::floats;
use mlir_host::ir::{FloatKind, Type, Value};

/// Integers of 8 bits as floats of 16 bits, which hold all of them exactly.
///
/// Multiprocessors issue fewer conversions than additions (CUDA programming guide, "Arithmetic Instructions";
/// docs/h200.md has what it gains). Instead a byte becomes the low bits of a float of which it is the
/// mantissa (`0x6400 + b` is 1024 + b in `f16`), two at a time, and what is too much is taken off.
///
/// # Errors
/// When an operation cannot be made.
pub(super) fn from_bytes<'c>(
    e: &mut Emit<'c>,
    values: &[Value<'c>],
    is_signed: bool,
    to: FloatKind,
) -> Lowered<Vec<Value<'c>>> {
    let (i32t, ty) = (e.i32(), e.float(to));
    let pair_ty = e.vector(2, ty)?;
    let mut out: Vec<Option<Value<'c>>> = vec![None; values.len()];
    for four in bytes::in_words(e, values) {
        let Some(mut word) = bytes::word(e, &four.map(|place| values[place]))? else { continue };
        if to == FloatKind::F16 && is_signed {
            let bias = e.const_i32(0x8080_8080_u32.cast_signed().into())?;
            word = e.xor(word, bias)?;
        }
        // Above each byte the upper half of 1024 in f16, or of 128 in bf16.
        let upper = e.const_i32(if to == FloatKind::F16 { 0x6464_6464 } else { 0x4343_4343 })?;
        for (pair, selector) in four.chunks(2).zip([0x4140, 0x4342]) {
            let selector = e.const_i32(selector)?;
            let placed = e.intrinsic("llvm.nvvm.prmt", &[word, upper, selector], i32t)?;
            let floats = match to {
                FloatKind::F16 => {
                    let value = e.bitcast(placed, pair_ty)?;
                    let excess = both(e, if is_signed { 0x6480 } else { 0x6400 }, pair_ty)?;
                    e.same("llvm.fsub", &[value, excess])?
                }
                _ => from_seven_bits(e, placed, is_signed, pair_ty)?,
            };
            for (i, place) in pair.iter().enumerate() {
                out[*place] = Some(e.extract_element(floats, i, ty)?);
            }
        }
    }
    let mut alone = (0..values.len()).filter(|place| out[*place].is_none()).collect::<Vec<_>>();
    // An instruction puts two bytes into one register.
    let odd = if to == FloatKind::F16 && alone.len() % 2 == 1 { alone.pop() } else { None };
    if to == FloatKind::F16 {
        for pair in alone.chunks(2) {
            let floats = apart_to_halves(e, [values[pair[0]], values[pair[1]]], is_signed, pair_ty)?;
            for (i, place) in pair.iter().enumerate() {
                out[*place] = Some(e.extract_element(floats, i, ty)?);
            }
        }
    } else {
        for place in alone {
            out[place] = Some(through_single(e, values[place], is_signed, ty)?);
        }
    }
    if let Some(place) = odd {
        let name = if is_signed { "llvm.sitofp" } else { "llvm.uitofp" };
        out[place] = Some(e.value(name, &[values[place]], ty, &[])?);
    }
    out.into_iter()
        .map(|value| value.ok_or_else(|| Failure::Internal("a byte was not converted".to_owned())))
        .collect()
}

/// Bytes of two registers as `f16`: each as the mantissa of 1024, of which 1024 is taken off, and 128 more where the sign was flipped.
fn apart_to_halves<'c>(
    e: &mut Emit<'c>,
    [low, high]: [Value<'c>; 2],
    is_signed: bool,
    pair: Type<'c>,
) -> Lowered<Value<'c>> {
    let i32t = e.i32();
    let (low, high) = (e.value("llvm.zext", &[low], i32t, &[])?, e.value("llvm.zext", &[high], i32t, &[])?);
    let high = e.shl(high, 16)?;
    let bytes = e.or_disjoint(low, high)?;
    let upper = e.const_i32(if is_signed { 0x6480_6480 } else { 0x6400_6400 })?;
    let placed = e.xor(bytes, upper)?;
    let value = e.bitcast(placed, pair)?;
    let excess = both(e, if is_signed { 0x6480 } else { 0x6400 }, pair)?;
    e.same("llvm.fsub", &[value, excess])
}

/// A byte as a float of 16 bits by way of `f32`: as the mantissa of 2^23, of which that is taken off, and 128 more where the sign
/// was flipped.
fn through_single<'c>(
    e: &mut Emit<'c>,
    byte: Value<'c>,
    is_signed: bool,
    ty: Type<'c>,
) -> Lowered<Value<'c>> {
    let (i32t, f32t) = (e.i32(), e.f32());
    let byte = e.value("llvm.zext", &[byte], i32t, &[])?;
    let (upper, excess) = if is_signed { (0x4b00_0080, 8_388_736.0) } else { (0x4b00_0000, 8_388_608.0) };
    let upper = e.const_i32(upper)?;
    let placed = e.xor(byte, upper)?;
    let single = e.bitcast(placed, f32t)?;
    let excess = e.const_float(f32t, excess)?;
    let single = e.same("llvm.fsub", &[single, excess])?;
    e.value("llvm.fptrunc", &[single], ty, &[])
}

/// Two equal floats of 16 bits.
fn both<'c>(e: &mut Emit<'c>, bits: u32, pair: Type<'c>) -> Lowered<Value<'c>> {
    let word = e.const_i32((bits << 16 | bits).cast_signed().into())?;
    e.bitcast(word, pair)
}

/// Bytes under `0x43` as `bf16`, whose mantissa has seven bits: the eighth is the lowest of the exponent,
/// which makes 256 of 128. All sums are exact; they are fused ones, since `sm_80` has no other.
fn from_seven_bits<'c>(
    e: &mut Emit<'c>,
    placed: Value<'c>,
    is_signed: bool,
    pair: Type<'c>,
) -> Lowered<Value<'c>> {
    // 128 + the low seven bits, and 128 or 256 after the eighth.
    let low = e.mask(placed, 0xff7f_ff7f_u32.cast_signed().into())?;
    let low = e.bitcast(low, pair)?;
    let top = e.mask(placed, 0xff80_ff80_u32.cast_signed().into())?;
    let top = e.bitcast(top, pair)?;
    let one = both(e, 0x3f80, pair)?;
    if is_signed {
        let minus_one = both(e, 0xbf80, pair)?;
        return e.same("llvm.intr.fma", &[top, minus_one, low]);
    }
    let excess = both(e, 0xc380, pair)?;
    let low = e.same("llvm.intr.fma", &[low, one, excess])?;
    e.same("llvm.intr.fma", &[top, one, low])
}

impl Nvidia {
    /// Between `f16`, `bf16`, `f32` and `f64`.
    pub(super) fn convert_native<'c>(
        &self,
        e: &mut Emit<'c>,
        value: Value<'c>,
        to: Type<'c>,
        towards_zero: bool,
    ) -> Lowered<Value<'c>> {
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
            return self.convert_native(e, wide, to, towards_zero);
        }
        if !towards_zero {
            return e.value("llvm.fptrunc", &[value], to, &[]);
        }
        let (i16t, f32t) = (e.i16(), e.f32());
        match (value.ty().float_kind(), to.float_kind()) {
            (Some(FloatKind::F64), Some(FloatKind::F32)) => e.intrinsic("llvm.nvvm.d2f.rz", &[value], f32t),
            (Some(FloatKind::F64), _) => {
                let single = e.intrinsic("llvm.nvvm.d2f.rz", &[value], f32t)?;
                self.convert_native(e, single, to, true)
            }
            (_, Some(FloatKind::F16)) => {
                let bits = e.inline_asm("cvt.rz.f16.f32 $0, $1;", "=h,f", &[value], &[i16t], false)?[0];
                e.bitcast(bits, to)
            }
            (_, Some(FloatKind::BF16)) => e.intrinsic("llvm.nvvm.f2bf16.rz", &[value], to),
            _ => unsupported(format!("conversion from {} to {to} towards zero", value.ty())),
        }
    }

    /// `value` as an `f32` that rounds to a narrow format like `value` itself:
    /// `f64` is rounded to odd, so that rounding twice is rounding once.
    pub(super) fn to_f32_for_rounding<'c>(
        &self,
        e: &mut Emit<'c>,
        value: Value<'c>,
        from: FloatKind,
    ) -> Lowered<Value<'c>> {
        let f32t = e.f32();
        if from != FloatKind::F64 {
            return self.convert_native(e, value, f32t, false);
        }
        let truncated = e.intrinsic("llvm.nvvm.d2f.rz", &[value], f32t)?;
        floats::to_odd(e, value, truncated)
    }

    pub(super) fn widen_fp8<'c>(
        &self,
        e: &mut Emit<'c>,
        values: &[Value<'c>],
        from: FloatKind,
    ) -> Lowered<Vec<Value<'c>>> {
        let intrinsic = match from {
            FloatKind::F8E4M3FN => "llvm.nvvm.e4m3x2.to.f16x2.rn",
            FloatKind::F8E5M2 => "llvm.nvvm.e5m2x2.to.f16x2.rn",
            _ => "",
        };
        if !self.has_fp8_conversions() || intrinsic.is_empty() {
            return values.iter().map(|value| floats::emit_to_f32(e, *value, from)).collect();
        }
        let (i16t, f16t, f32t) = (e.i16(), e.float(FloatKind::F16), e.f32());
        let pair_ty = e.vector(2, f16t)?;
        let i8t = e.i8();
        let bytes_ty = e.vector(2, i8t)?;
        let mut out = Vec::with_capacity(values.len());
        for pair in values.chunks(2) {
            let mut bytes = e.undef(bytes_ty)?;
            for i in 0..2 {
                bytes = e.insert_element(bytes, pair.get(i).copied().unwrap_or(pair[0]), i)?;
            }
            let packed = e.bitcast(bytes, i16t)?;
            let halves = e.intrinsic(intrinsic, &[packed], pair_ty)?;
            for i in 0..pair.len() {
                let half = e.extract_element(halves, i, f16t)?;
                out.push(e.value("llvm.fpext", &[half], f32t, &[])?);
            }
        }
        Ok(out)
    }

    pub(super) fn narrow_fp8<'c>(
        &self,
        e: &mut Emit<'c>,
        values: &[Value<'c>],
        to: FloatKind,
        towards_zero: bool,
    ) -> Lowered<Vec<Value<'c>>> {
        let format = match to {
            FloatKind::F8E4M3FN => "e4m3x2",
            FloatKind::F8E5M2 => "e5m2x2",
            _ => "",
        };
        if !self.has_fp8_conversions() || format.is_empty() || towards_zero {
            return values.iter().map(|value| floats::emit_from_f32(e, *value, to, towards_zero)).collect();
        }
        let (i8t, i16t, i32t) = (e.i8(), e.i16(), e.i32());
        let bytes_ty = e.vector(4, i8t)?;
        let mut out = Vec::with_capacity(values.len());
        for four in values.chunks(4) {
            // The halves that the conversions make are used by nothing but the register that they are packed in: ptxas 12.8
            // makes a half and `mov.b32 r, {half, _}` one instruction, and forgets uses of the half that stand before. The
            // first operand goes to the upper byte.
            let of = |i: usize| four.get(i).copied().unwrap_or(four[0]);
            let convert = format!("cvt.rn.satfinite.{format}.f32");
            let whole = if four.len() > 2 {
                let asm = format!("{convert} $1, $4, $3; {convert} $2, $6, $5; mov.b32 $0, {{$1, $2}};");
                let operands = [of(0), of(1), of(2), of(3)];
                e.inline_asm(&asm, "=r,=h,=h,f,f,f,f", &operands, &[i32t, i16t, i16t], false)?[0]
            } else {
                let asm = format!("{convert} $1, $3, $2; cvt.u32.u16 $0, $1;");
                e.inline_asm(&asm, "=r,=h,f,f", &[of(0), of(1)], &[i32t, i16t], false)?[0]
            };
            let bytes = e.bitcast(whole, bytes_ty)?;
            for i in 0..four.len() {
                out.push(e.extract_element(bytes, i, i8t)?);
            }
        }
        Ok(out)
    }
}
