//! `tt.dot_scaled` in terms of `tt.dot`: operands unpacked and multiplied by
//! their scales through layouts and shape operations (paper, Section 5.2).
//!
//! A scale is for a run of elements along K. It gets a dimension of size one
//! after K, is repeated along it and flattened into K: then each element has
//! its scale at its own place. Layouts go the other way, from the operand to
//! the scale, so that the scale is moved before it is repeated.

use super::build::{cast, generic, splat, with_element};
use super::operands::unconverted;
use super::plan::Element;
use crate::ir_util::convert_before;
use crate::machine::{Layouts, error};
use crate::rules::{Rule, backward};
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, FloatKind, Op, TensorType, Value};
use mlir_host::rewrite::Rewriter;
use ttopt_dialect::tt::enums::ScaleDotElemType;
use ttopt_dialect::tt::ops::{BitcastOp, BroadcastOp, DotOp, DotScaledOp, ExpandDimsOp, ReshapeOp, TransOp};
use ttopt_dialect::tt::verify::dot_scale_factor;
use ttopt_dialect::ttg::infer;
use ttopt_dialect::ttg::ops::Fp4ToFpOp;

const BF16: Element = Element::Float(FloatKind::BF16);
const F16: Element = Element::Float(FloatKind::F16);
const F8: Element = Element::Float(FloatKind::F8E4M3FN);
const F32: Element = Element::Float(FloatKind::F32);

/// One operand of a scaled dot.
struct Side<'c> {
    number: usize,
    value: Value<'c>,
    scale: Option<Value<'c>>,
    format: ScaleDotElemType,
    k_pack: bool,
}

impl Side<'_> {
    /// The dimension that is summed over.
    fn k_dim(&self, rank: usize) -> usize {
        rank - 1 - self.number
    }
}

struct Decompose<'a, 'c> {
    op: Op<'c>,
    layouts: &'a Layouts<'c>,
    rewriter: &'a mut Rewriter<'c>,
    /// Elements that are multiplied.
    compute: Element,
    /// Elements along K for each scale.
    factor: i64,
    fast_math: bool,
}

/// Replaces a scaled dot by a plain one.
///
/// # Errors
/// When a format is not supported, or a layout does not fit; reported at the dot.
pub fn decompose<'c>(
    rewriter: &mut Rewriter<'c>,
    dot: DotScaledOp<'c>,
    layouts: &Layouts<'c>,
) -> Result<(), Reported> {
    let op = dot.op();
    let sides = sides(dot);
    let has = |format| sides.iter().any(|side| side.format == format);
    // bf16 holds all formats of 4 and 8 bits and their scales. Where it meets f16, only f32 holds both.
    let compute = match (has(ScaleDotElemType::Fp16), has(ScaleDotElemType::Bf16)) {
        (true, true) => F32,
        (true, false) => F16,
        _ => BF16,
    };
    let mut this = Decompose::new(dot, layouts, rewriter, compute);
    let mut operands = Vec::new();
    for side in sides {
        let value = this.operand(&side)?;
        operands.push(this.placed(value, &side, dot.d())?);
    }
    rewriter.set_before(op);
    let made =
        DotOp::build(op.loc(), operands[0], operands[1], dot.c()).discardable_of(op).insert(rewriter)?;
    rewriter.replace(op, &[made.d()]);
    Ok(())
}

/// Has `dot` multiply operands of 4 bits as such of 8 (e4m3), which have all of their values, in order along K.
///
/// # Errors
/// When a layout does not fit; reported at the dot.
pub fn widen<'c>(
    rewriter: &mut Rewriter<'c>,
    dot: DotScaledOp<'c>,
    layouts: &Layouts<'c>,
) -> Result<DotScaledOp<'c>, Reported> {
    let op = dot.op();
    let mut this = Decompose::new(dot, layouts, rewriter, F8);
    let (mut operands, mut formats) = (Vec::new(), Vec::new());
    for side in sides(dot) {
        let (value, format) = match side.format {
            ScaleDotElemType::E2M1 => (this.unpacked(&side)?, ScaleDotElemType::E4M3),
            ScaleDotElemType::E5M2 => (this.floats(side.value, FloatKind::F8E5M2)?, side.format),
            _ => (this.floats(side.value, FloatKind::F8E4M3FN)?, side.format),
        };
        operands.push(this.placed(value, &side, dot.d())?);
        formats.push(format);
    }
    rewriter.set_before(op);
    let (a, b, fast_math) = (operands[0], operands[1], dot.fast_math());
    let made = DotScaledOp::build(op.loc(), a, b, dot.c(), formats[0], formats[1], fast_math)
        .a_scale(dot.a_scale())
        .b_scale(dot.b_scale())
        .lhs_k_pack(true)
        .rhs_k_pack(true)
        .discardable_of(op)
        .results(&[dot.d().ty()])
        .insert(rewriter)?;
    rewriter.replace(op, &[made.d()]);
    Ok(made)
}

/// The operands of `dot`.
fn sides<'c>(dot: DotScaledOp<'c>) -> [Side<'c>; 2] {
    let side = |number: usize| {
        let (value, scale, format, k_pack) = if number == 0 {
            (dot.a(), dot.a_scale(), dot.a_elem_type(), dot.lhs_k_pack())
        } else {
            (dot.b(), dot.b_scale(), dot.b_elem_type(), dot.rhs_k_pack())
        };
        Side { number, value: unconverted(value), scale, format, k_pack }
    };
    [side(0), side(1)]
}

impl<'a, 'c> Decompose<'a, 'c> {
    fn new(
        dot: DotScaledOp<'c>,
        layouts: &'a Layouts<'c>,
        rewriter: &'a mut Rewriter<'c>,
        compute: Element,
    ) -> Self {
        rewriter.set_before(dot.op());
        let (factor, fast_math) = (dot_scale_factor(dot), dot.fast_math());
        Decompose { op: dot.op(), layouts, rewriter, compute, factor, fast_math }
    }

    /// `value` in the layout that an operand of the dot has.
    fn placed(
        &mut self,
        value: Value<'c>,
        side: &Side<'c>,
        result: Value<'c>,
    ) -> Result<Value<'c>, Reported> {
        let (op, result) = (self.op, self.layout(result)?);
        let wanted = backward(op, Rule::Dot, side.number, result, self.layouts);
        match wanted.map_err(|reason| error(op, reason))? {
            Some(layout) => convert_before(self.rewriter, op, value, layout),
            None => Ok(value),
        }
    }

    /// `value`, which may be bytes that stand for floats, as those.
    fn floats(&mut self, value: Value<'c>, kind: FloatKind) -> Result<Value<'c>, Reported> {
        let ty = self.tensor(value)?;
        if !ty.element().is_int(8) {
            return Ok(value);
        }
        let float = with_element(self.op, ty, Element::Float(kind).ty(self.op.context()))?;
        Ok(BitcastOp::build(self.op.loc(), value).results(&[float]).insert(self.rewriter)?.result())
    }

    fn tensor(&self, value: Value<'c>) -> Result<TensorType<'c>, Reported> {
        value.ty().as_tensor().ok_or_else(|| error(self.op, "operands must be tensors"))
    }

    fn layout(&self, value: Value<'c>) -> Result<Attr<'c>, Reported> {
        let layout = self.tensor(value)?.encoding();
        layout.ok_or_else(|| error(self.op, "has no layout: run convert-triton-to-tritongpu first"))
    }

    fn ty(&self, shape: &[i64], element: Element, layout: Attr<'c>) -> Result<TensorType<'c>, Reported> {
        let element = element.ty(self.op.context());
        let made = TensorType::new(shape, element, Some(layout));
        made.ok_or_else(|| {
            error(self.op, format!("no tensor {shape:?} of {element} has the layout {layout}"))
        })
    }

    /// An operand times its scales.
    fn operand(&mut self, side: &Side<'c>) -> Result<Value<'c>, Reported> {
        let value = self.unpacked(side)?;
        let Some(scale) = side.scale else { return Ok(value) };
        // Products of bf16 with a power of two are exact; f16 has not the range for all scales.
        let product = if self.compute == BF16 { BF16 } else { F32 };
        let scale = self.scale(side, unconverted(scale), value, product)?;
        let wide = cast(self.rewriter, self.op, value, product)?;
        let scaled = generic(self.rewriter, self.op, "arith.mulf", &[wide, scale], wide.ty(), &[])?;
        cast(self.rewriter, self.op, scaled, self.compute)
    }

    /// The operand's elements as floats that can be multiplied.
    fn unpacked(&mut self, side: &Side<'c>) -> Result<Value<'c>, Reported> {
        let ty = self.tensor(side.value)?;
        let kind = match side.format {
            ScaleDotElemType::E2M1 => {
                let k = side.k_dim(ty.rank());
                let axis = if side.k_pack { k } else { 2 * ty.rank() - 3 - k };
                let layout = self.layout(side.value)?;
                let made = infer::fp4_to_fp(layout, &ty.shape(), axis);
                let made = made.map_err(|reason| error(self.op, reason))?;
                let mut shape = ty.shape();
                shape[axis] *= 2;
                let result = self.ty(&shape, self.compute, made)?;
                let built = Fp4ToFpOp::build(self.op.loc(), side.value, axis as i64).results(&[result.ty()]);
                return Ok(built.insert(self.rewriter)?.result());
            }
            ScaleDotElemType::E4M3 => FloatKind::F8E4M3FN,
            ScaleDotElemType::E5M2 => FloatKind::F8E5M2,
            ScaleDotElemType::Bf16 => FloatKind::BF16,
            ScaleDotElemType::Fp16 => FloatKind::F16,
            ScaleDotElemType::E2M3 | ScaleDotElemType::E3M2 => {
                let format = side.format.keyword();
                return Err(error(self.op, format!("operands of format {format} are not supported")));
            }
        };
        let value = self.floats(side.value, kind)?;
        cast(self.rewriter, self.op, value, self.compute)
    }

    /// The scale of each element of `value`, in its layout.
    fn scale(
        &mut self,
        side: &Side<'c>,
        scale: Value<'c>,
        value: Value<'c>,
        product: Element,
    ) -> Result<Value<'c>, Reported> {
        let fail = |reason: String| error(self.op, reason);
        let (ty, layout) = (self.tensor(value)?, self.layout(value)?);
        let (shape, rank) = (ty.shape(), ty.rank());
        let k = side.k_dim(rank);
        // One dimension more: K is runs of `factor` elements.
        let mut runs = shape.clone();
        runs[k] /= self.factor;
        let mut single = runs.clone();
        single.insert(k + 1, 1);
        runs.insert(k + 1, self.factor);
        let in_runs = infer::reshape(Some(layout), &shape, &runs).map_err(fail)?;
        let in_runs = in_runs.ok_or_else(|| fail("an operand has no layout".to_owned()))?;
        let sliced = self.layouts.slice(k + 1, in_runs).map_err(fail)?;
        let scale = self.along_k(side, scale)?;
        let scale = convert_before(self.rewriter, self.op, scale, sliced)?;
        self.rewriter.set_before(self.op);
        let scale = self.as_float(scale, product)?;
        let expanded = self.ty(&single, product, in_runs)?;
        let loc = self.op.loc();
        let scale = ExpandDimsOp::build(loc, scale, k as i64 + 1).results(&[expanded.ty()]);
        let scale = scale.insert(self.rewriter)?.result();
        let repeated = self.ty(&runs, product, in_runs)?.ty();
        let scale = BroadcastOp::build(loc, scale).results(&[repeated]).insert(self.rewriter)?.result();
        let flat = self.ty(&shape, product, layout)?.ty();
        Ok(ReshapeOp::build(loc, scale).results(&[flat]).insert(self.rewriter)?.result())
    }

    /// Scales come with K last; those of the right operand are turned around.
    fn along_k(&mut self, side: &Side<'c>, scale: Value<'c>) -> Result<Value<'c>, Reported> {
        if side.number == 0 {
            return Ok(scale);
        }
        let rank = self.tensor(scale)?.rank() as i32;
        let mut order: Vec<i32> = (0..rank).collect();
        order.swap(rank as usize - 2, rank as usize - 1);
        Ok(TransOp::build(self.op.loc(), scale, order).insert(self.rewriter)?.result())
    }

    /// Scales as floats. Bytes are exponents (e8m0): `2^(x - 127)`, and NaN where all bits are set.
    fn as_float(&mut self, scale: Value<'c>, product: Element) -> Result<Value<'c>, Reported> {
        let (op, ctx) = (self.op, self.op.context());
        let ty = self.tensor(scale)?;
        if !ty.element().is_int(8) {
            return cast(self.rewriter, op, scale, product);
        }
        let narrow = ty.ty();
        let wide = with_element(op, ty, Element::Int(16).ty(ctx))?;
        let flags = with_element(op, ty, Element::Int(1).ty(ctx))?;
        let constant =
            |this: &mut Self, ty, bits, value| splat(this.rewriter, op, ty, Attr::int(ctx, bits, value));
        let bits = generic(self.rewriter, op, "arith.extui", &[scale], wide, &[])?;
        let seven = constant(self, wide, 16, 7)?;
        let mut bits = generic(self.rewriter, op, "arith.shli", &[bits, seven], wide, &[])?;
        let select = |this: &mut Self, bits: Value<'c>, byte: i64, value: i64| {
            let byte = constant(this, narrow, 8, byte)?;
            // Predicate 0 is equality.
            let equal = [("predicate", Attr::int(ctx, 64, 0))];
            let is = generic(this.rewriter, op, "arith.cmpi", &[scale, byte], flags, &equal)?;
            let value = constant(this, wide, 16, value)?;
            generic(this.rewriter, op, "arith.select", &[is, value, bits], wide, &[])
        };
        // The exponent field 0 is for numbers without a leading one: 2^-127 is half of the least other.
        bits = select(self, bits, 0, 0x0040)?;
        if !self.fast_math {
            bits = select(self, bits, -1, 0x7fff)?;
        }
        let float = with_element(op, ty, BF16.ty(ctx))?;
        let float = BitcastOp::build(op.loc(), bits).results(&[float]).insert(self.rewriter)?;
        cast(self.rewriter, op, float.result(), product)
    }
}
