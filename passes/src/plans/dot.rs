//! Plans of dots.

use super::layout;
use crate::buffer_plans::BufferLayout;
use crate::matmul::plan::Element;
use linear_layout::LinearLayout;
use linear_layout::plan::{
    DotTilePlan, DotType, DotTypes, ScaledDot, ScaledDotPlan, WarpGroupDot, WarpGroupDotPlan,
    WarpGroupOperand,
};
use linear_layout::target::TargetDesc;
use mlir_host::ir::Type;
use ttopt_dialect::tt::enums::{InputPrecision, ScaleDotElemType};
use ttopt_dialect::tt::ops::{DotOp, DotScaledOp};
use ttopt_dialect::tt::verify::dot_scale_factor;
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::WarpGroupDotOp;

/// The type of an element of an operand or result of a dot. 8-bit floats that the target does not
/// multiply are multiplied as 16-bit floats, which hold them all.
///
/// # Errors
/// For types that are not multiplied.
pub fn dot_type(element: Type<'_>, target: &TargetDesc) -> Result<DotType, String> {
    let known = Element::of(element).and_then(|element| element.dot_type(target));
    known.ok_or_else(|| format!("elements of type {element} are not multiplied"))
}

/// How a dot is computed.
///
/// # Errors
/// When there is no plan.
pub fn dot(op: DotOp<'_>, target: &TargetDesc) -> Result<DotTilePlan, String> {
    let (a, b, c) = (op.a().ty(), op.b().ty(), op.d().ty());
    let types = DotTypes {
        a: dot_type(a.element(), target)?,
        b: dot_type(b.element(), target)?,
        c: dot_type(c.element(), target)?,
        exact: op.input_precision() != InputPrecision::Tf32,
    };
    DotTilePlan::new(&*layout(a)?, &*layout(b)?, &*layout(c)?, types, target).map_err(|err| err.to_string())
}

/// Whether both operands are 4-bit floats, two that follow each other along K in each byte.
pub fn has_pairs(op: DotScaledOp<'_>) -> bool {
    [op.a_elem_type(), op.b_elem_type()] == [ScaleDotElemType::E2M1; 2]
        && op.lhs_k_pack()
        && op.rhs_k_pack()
        && [op.a(), op.b()].iter().all(|value| value.ty().element().is_int(8))
}

/// Elements for each scale where all of them are one (OCP Microscaling Formats).
const NO_SCALES: i64 = 32;

/// What `use_it` makes of a dot with scales, from the layouts and types of its operands and result.
fn with_scaled<'c, T>(
    op: DotScaledOp<'c>,
    operands: [Type<'c>; 3],
    target: &TargetDesc,
    use_it: impl FnOnce(&ScaledDot<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let [a, b, c] = operands;
    let pairs = has_pairs(op);
    let narrow = [op.a_elem_type(), op.b_elem_type()];
    if !pairs && narrow.contains(&ScaleDotElemType::E2M1) {
        return Err("4-bit floats are multiplied with each other only, and in pairs along K".to_owned());
    }
    let operand = |ty: Type<'c>| if pairs { Ok(DotType::F4Pair) } else { dot_type(ty.element(), target) };
    let types = DotTypes { a: operand(a)?, b: operand(b)?, c: dot_type(c.element(), target)?, exact: true };
    let scales = || [op.a_scale(), op.b_scale()].into_iter().flatten();
    if let Some(other) = scales().find(|scale| !scale.ty().element().is_int(8)) {
        return Err(format!("scales of type {} are not multiplied", other.ty().element()));
    }
    let factor = if scales().next().is_none() { NO_SCALES } else { dot_scale_factor(op) };
    let factor = if pairs { factor / 2 } else { factor };
    let factor = u32::try_from(factor).map_err(|_| "no factor of scales".to_owned())?;
    let (a, b, c) = (layout(a)?, layout(b)?, layout(c)?);
    use_it(&ScaledDot { a: &a, b: &b, c: &c, types, factor })
}

/// How a dot with scales is computed.
///
/// # Errors
/// When there is no plan.
pub fn scaled_dot(op: DotScaledOp<'_>, target: &TargetDesc) -> Result<ScaledDotPlan, String> {
    let of = |scale: Option<mlir_host::ir::Value<'_>>| scale.map(|scale| layout(scale.ty())).transpose();
    let (left, right) = (of(op.a_scale())?, of(op.b_scale())?);
    with_scaled(op, [op.a().ty(), op.b().ty(), op.d().ty()], target, |dot| {
        dot.plan([left.as_deref(), right.as_deref()], target).map_err(|err| err.to_string())
    })
}

/// Layouts for the scales of a dot whose operands and result get these types.
///
/// # Errors
/// When no instruction computes it.
pub fn scale_layouts<'c>(
    op: DotScaledOp<'c>,
    operands: [Type<'c>; 3],
    target: &TargetDesc,
) -> Result<[LinearLayout; 2], String> {
    with_scaled(op, operands, target, |dot| dot.scale_layouts(target).map_err(|err| err.to_string()))
}

/// How a dot of warp groups is computed.
///
/// # Errors
/// When there is no plan.
pub fn warp_group_dot(op: WarpGroupDotOp<'_>, target: &TargetDesc) -> Result<WarpGroupDotPlan, String> {
    let Some(right) = MemDescType::cast(op.b().ty()) else {
        return Err("the right operand is not in memory".to_owned());
    };
    let (a, element, registers) = match MemDescType::cast(op.a().ty()) {
        Some(left) => (BufferLayout::of(left)?.layout, left.element(), false),
        None => (layout(op.a().ty())?, op.a().ty().element(), true),
    };
    let a = if registers { WarpGroupOperand::Registers(&a) } else { WarpGroupOperand::Shared(&a) };
    let types = DotTypes {
        a: dot_type(element, target)?,
        b: dot_type(right.element(), target)?,
        c: dot_type(op.d().ty().element(), target)?,
        exact: op.input_precision() != InputPrecision::Tf32,
    };
    let depth = match right.shape()[..] {
        [k, _] => u64::try_from(k).map_err(|_| "the right operand has no static shape".to_owned())?,
        _ => return Err(format!("the right operand {} is no matrix", right.ty())),
    };
    let (b, c) = (BufferLayout::of(right)?.layout, layout(op.d().ty())?);
    let max_imprecise =
        u64::try_from(op.max_num_imprecise_acc()).map_err(|_| "maxNumImpreciseAcc is negative".to_owned())?;
    let dot = WarpGroupDot { a, b: &b, c: &c, depth, types, max_imprecise };
    WarpGroupDotPlan::new(&dot, target).map_err(|err| err.to_string())
}
