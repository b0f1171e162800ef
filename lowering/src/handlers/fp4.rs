//! Pairs of 4-bit floats in bytes.

use crate::emit::{Failure, Lowered, unsupported};
use crate::lower::{Handler, Lower};
use crate::registers::rename;
use linear_layout::{Dim, f2};
use mlir_host::ir::{FloatKind, Op, Type, Value};
use std::collections::HashMap;
use ttopt_dialect::ttg::ops::Fp4ToFpOp;

pub(super) const HANDLERS: &[(&str, Handler)] = &[("ttg.fp4_to_fp", fp4_to_fp)];

/// The pairs are neighbours along the axis, the first in the lower half of a byte.
fn fp4_to_fp<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (src, out) = (l.layout(op.operand(0).ty())?, l.layout(op.result(0).ty())?);
    let axis = usize::try_from(Fp4ToFpOp::of(op).axis()).ok();
    let Some(axis) = axis.filter(|axis| *axis < out.num_out_dims()) else {
        return unsupported("unpacks along a dimension that is not there");
    };
    let halved = |coords: &[u64]| {
        coords.iter().enumerate().map(|(i, at)| if i == axis { at >> 1 } else { *at }).collect()
    };
    let sources = rename(&src, &out, halved)
        .map_err(|err| Failure::Unsupported(format!("data would move between threads: {err}")))?;
    let first_bit = 1u64 << out.out_shift(Dim::out(axis)).unwrap_or(0);
    let threads = [Dim::LANE, Dim::WARP, Dim::BLOCK];
    if threads.iter().any(|dim| out.columns_of(*dim).iter().any(|column| column & first_bit != 0)) {
        return unsupported("data would move between threads: the halves of a byte are in several");
    }
    let columns = out.columns_of(Dim::REGISTER);
    let element = op.result(0).ty().element();
    let bytes = l.get(op.operand(0))?;
    // Each byte that is used once, in the order of uses.
    let (mut places, mut used) = (HashMap::new(), Vec::new());
    for source in &sources {
        let Some(byte) = bytes.get(*source) else { return unsupported("a byte is missing") };
        places.entry(*source).or_insert_with(|| {
            used.push(*byte);
            used.len() - 1
        });
    }
    let pairs = unpack_all(l, &used, element)?;
    let mut values = Vec::with_capacity(sources.len());
    for (register, source) in (0u64..).zip(sources) {
        let pair = places.get(&source).and_then(|place| pairs.get(*place));
        let Some(pair) = pair else { return unsupported("a byte is missing") };
        values.push(pair[usize::from(f2::mul(columns, register) & first_bit != 0)]);
    }
    l.set(op.result(0), values);
    Ok(())
}

fn unpack_all<'c>(
    l: &mut Lower<'_, 'c>,
    bytes: &[Value<'c>],
    element: Type<'c>,
) -> Lowered<Vec<[Value<'c>; 2]>> {
    let target = l.target;
    if let Some(kind) = element.float_kind()
        && let Some(pairs) = target.unpack_fp4(&mut l.emit, bytes, kind)?
    {
        return Ok(pairs);
    }
    bytes.iter().map(|byte| unpack(l, *byte, element)).collect()
}

/// The two numbers of a byte. A number of sign, two exponent bits of bias 1 and one bit of mantissa is put
/// to the corresponding bits of a 16-bit float, where it is too small by a power of two.
fn unpack<'c>(l: &mut Lower<'_, 'c>, byte: Value<'c>, element: Type<'c>) -> Lowered<[Value<'c>; 2]> {
    // Where the exponent's lowest bit is, and the difference of biases as a factor.
    let (exponent, factor) = match element.float_kind() {
        Some(FloatKind::BF16) => (7, 2f64.powi(126)),
        Some(FloatKind::F16) => (10, 2f64.powi(14)),
        _ => return unsupported(format!("4-bit floats are unpacked to 16-bit floats, not to {element}")),
    };
    let e = &mut l.emit;
    let i32t = e.i32();
    let byte = e.value("llvm.zext", &[byte], i32t, &[])?;
    let low = e.mask(byte, 0xf)?;
    let high = e.mask(byte, 0xf0)?;
    let high = e.shl(high, 12)?;
    let both = e.or_disjoint(low, high)?;
    let magnitude = e.mask(both, 0x0007_0007)?;
    let magnitude = e.shl(magnitude, exponent - 1)?;
    let sign = e.mask(both, 0x0008_0008)?;
    let sign = e.shl(sign, 12)?;
    let bits = e.or_disjoint(sign, magnitude)?;
    let vector = e.vector(2, element)?;
    let small = e.bitcast(bits, vector)?;
    let factor = e.const_float(element, factor)?;
    let undefined = e.undef(vector)?;
    let factors = e.insert_element(undefined, factor, 0)?;
    let factors = e.insert_element(factors, factor, 1)?;
    let scaled = e.same("llvm.fmul", &[small, factors])?;
    Ok([e.extract_element(scaled, 0, element)?, e.extract_element(scaled, 1, element)?])
}
