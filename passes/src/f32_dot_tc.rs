//! `--tritongpu-F32DotTC`: dots of f32 by tensor cores, in several parts.
//!
//! An operand is split into a sum of numbers of a narrower format, largest
//! first: `a = a0 + a1 (+ a2)`. The product is the sum of the products of parts
//! that matter, smallest first. With two parts of TF32 or three of bf16 that is
//! nearly as precise as f32.
//!
//! Parts of infinite numbers are NaN: `inf - inf`. The sum of the small
//! products is therefore taken as zero where it is NaN; the product of the
//! largest parts then gives infinity or NaN as the whole product would.

use crate::ir_util::convert_before;
use crate::ir_util::operations_in_dominance_order;
use crate::machine::error;
use crate::matmul::build::{cast, generic, splat, with_element};
use crate::matmul::operands::unconverted;
use crate::matmul::plan::Element;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, FloatKind, Op, TensorType, Value};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::rewrite::{IrRewriter, Rewriter};
use ttopt_dialect::tt::enums::InputPrecision;
use ttopt_dialect::tt::ops::{BitcastOp, DotOp};

/// The pass.
pub static TRITONGPU_F32_DOT_TC: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["arith"],
    options: &[PassOption {
        name: "emu-tf32",
        description: "whether the target multiplies TF32: dots with tf32x3 are split (others stay)",
        kind: OptionKind::Bool(false),
    }],
    ..PassDef::new(
        "tritongpu-F32DotTC",
        "Split dots of f32 with inputPrecision tf32x3, bf16x3 or bf16x6 into dots for tensor cores",
        run,
    )
};

const F32: Element = Element::Float(FloatKind::F32);
const BF16: Element = Element::Float(FloatKind::BF16);

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let mut rewriter = IrRewriter::new(module.context());
    let tf32 = options.bool("emu-tf32");
    for dot in operations_in_dominance_order(module).into_iter().filter_map(DotOp::cast) {
        let is_f32 = |value: Value<'_>| Element::of(value.ty().element()) == Some(F32);
        if ![dot.a(), dot.b(), dot.c()].into_iter().all(is_f32) {
            continue;
        }
        let scheme = match dot.input_precision() {
            InputPrecision::Tf32x3 if tf32 => Scheme { part: Part::Tf32, parts: 2 },
            InputPrecision::Bf16x3 => Scheme { part: Part::Bf16, parts: 2 },
            InputPrecision::Bf16x6 => Scheme { part: Part::Bf16, parts: 3 },
            _ => continue,
        };
        split(&mut rewriter, dot, scheme)?;
    }
    Ok(())
}

/// The format of parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// In registers of f32.
    Tf32,
    Bf16,
}

#[derive(Clone, Copy)]
struct Scheme {
    part: Part,
    parts: usize,
}

/// The pairs of parts whose products matter, the smallest first: those whose
/// ranks add up to less than the number of parts.
fn pairs(parts: usize) -> Vec<(usize, usize)> {
    let all = (0..parts).flat_map(|a| (0..parts).map(move |b| (a, b)));
    let mut pairs: Vec<(usize, usize)> = all.filter(|(a, b)| a + b < parts).collect();
    pairs.sort_by_key(|(a, b)| std::cmp::Reverse(a + b));
    pairs
}

fn split<'c>(rewriter: &mut Rewriter<'c>, dot: DotOp<'c>, scheme: Scheme) -> PassResult {
    let (op, ctx) = (dot.op(), dot.op().context());
    rewriter.set_before(op);
    let left = parts(rewriter, op, dot.a(), scheme)?;
    let right = parts(rewriter, op, dot.b(), scheme)?;
    let ty = dot.d().ty();
    let zero = splat(rewriter, op, ty, Attr::float_of(ty.element(), 0.0))?;
    let mut sum = zero;
    for (a, b) in pairs(scheme.parts) {
        if (a, b) == (0, 0) {
            // Predicate 14: unordered, as a NaN is with itself.
            let flags = tensor(op, dot.d())?;
            let flags = with_element(op, flags, Element::Int(1).ty(ctx))?;
            let attrs = [("predicate", Attr::int(ctx, 64, 14))];
            let nan = generic(rewriter, op, "arith.cmpf", &[sum, sum], flags, &attrs)?;
            sum = generic(rewriter, op, "arith.select", &[nan, zero, sum], ty, &[])?;
        }
        let precision = (scheme.part == Part::Tf32).then_some(InputPrecision::Tf32);
        sum = DotOp::build(op.loc(), left[a], right[b], sum)
            .input_precision(precision)
            .max_num_imprecise_acc(dot.max_num_imprecise_acc())
            .insert(rewriter)?
            .d();
    }
    let total = generic(rewriter, op, "arith.addf", &[sum, dot.c()], ty, &[])?;
    rewriter.replace(op, &[total]);
    Ok(())
}

fn tensor<'c>(op: Op<'c>, value: Value<'c>) -> Result<TensorType<'c>, Reported> {
    value.ty().as_tensor().ok_or_else(|| error(op, "operands must be tensors"))
}

/// The parts of an operand, largest first, in its layout.
fn parts<'c>(
    rewriter: &mut Rewriter<'c>,
    op: Op<'c>,
    operand: Value<'c>,
    scheme: Scheme,
) -> Result<Vec<Value<'c>>, Reported> {
    let layout = tensor(op, operand)?.encoding();
    let mut rest = unconverted(operand);
    let mut parts = Vec::new();
    for number in 0..scheme.parts {
        let last = number + 1 == scheme.parts;
        let part = match scheme.part {
            // What is left of TF32 is rounded by the instruction.
            Part::Tf32 if last => rest,
            Part::Tf32 => to_tf32(rewriter, op, rest)?,
            Part::Bf16 => cast(rewriter, op, rest, BF16)?,
        };
        if !last {
            let wide = cast(rewriter, op, part, F32)?;
            rest = generic(rewriter, op, "arith.subf", &[rest, wide], wide.ty(), &[])?;
        }
        parts.push(part);
    }
    if let Some(layout) = layout {
        for part in &mut parts {
            *part = convert_before(rewriter, op, *part, layout)?;
            rewriter.set_before(op);
        }
    }
    Ok(parts)
}

/// The nearest number of TF32, which has 13 bits less of mantissa than f32;
/// NaN stays what it is, whose bits a carry could run through.
fn to_tf32<'c>(rewriter: &mut Rewriter<'c>, op: Op<'c>, value: Value<'c>) -> Result<Value<'c>, Reported> {
    let ctx = op.context();
    let ty = tensor(op, value)?;
    let ints = with_element(op, ty, Element::Int(32).ty(ctx))?;
    let flags = with_element(op, ty, Element::Int(1).ty(ctx))?;
    let bits = BitcastOp::build(op.loc(), value).results(&[ints]).insert(rewriter)?.result();
    let half = splat(rewriter, op, ints, Attr::int(ctx, 32, 1 << 12))?;
    let mask = splat(rewriter, op, ints, Attr::int(ctx, 32, !0x1fff))?;
    let up = generic(rewriter, op, "arith.addi", &[bits, half], ints, &[])?;
    let cut = generic(rewriter, op, "arith.andi", &[up, mask], ints, &[])?;
    let rounded = BitcastOp::build(op.loc(), cut).results(&[ty.ty()]).insert(rewriter)?.result();
    let attrs = [("predicate", Attr::int(ctx, 64, 14))];
    let nan = generic(rewriter, op, "arith.cmpf", &[value, value], flags, &attrs)?;
    generic(rewriter, op, "arith.select", &[nan, value, rounded], ty.ty(), &[])
}

#[cfg(test)]
mod tests {
    use super::pairs;

    #[test]
    fn small_products_come_first() {
        assert_eq!(pairs(2), [(0, 1), (1, 0), (0, 0)]);
        assert_eq!(pairs(3).len(), 6);
        assert_eq!(pairs(3).last(), Some(&(0, 0)));
    }
}
