//! What is known about the operands of dots.

use super::plan::{Element, Operand};
use crate::ir_util::incoming;
use crate::rules::{Rule, rule};
use crate::tma;
use linear_layout::Dim;
use mlir_host::ir::{TensorType, Value};
use mlir_host::upstream::{ForOp, IfOp};
use std::collections::HashSet;
use ttopt_dialect::tt::ops::{LoadOp, TransOp};
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::ops::{ConvertLayoutOp, Fp4ToFpOp};

/// The value before conversions of its layout.
pub fn unconverted(value: Value<'_>) -> Value<'_> {
    let mut value = value;
    while let Some(convert) = ConvertLayoutOp::defining(value) {
        value = convert.src();
    }
    value
}

/// The facts about `value`, an operand without its conversions; `None` when
/// its elements are no numbers.
pub fn describe(value: Value<'_>) -> Option<Operand> {
    let ty = value.ty().as_tensor()?;
    let element = Element::of(ty.element())?;
    let Computed { narrowest, operations } = computed(value);
    Some(Operand {
        element,
        narrowest: narrowest.unwrap_or(element.bits()).min(element.bits()),
        operations,
        loaded: is_loaded(value),
        fastest: fastest(value),
    })
}

/// The dimension along which neighbours of `value` are neighbours in memory, as
/// far as loads and their layouts say so.
fn fastest(value: Value<'_>) -> usize {
    let mut value = value;
    // How dimensions were permuted between here and there.
    let mut orders: Vec<Vec<i32>> = Vec::new();
    for _ in 0..MOST {
        if let Some(handed_on) = handed_on(value) {
            value = handed_on;
            continue;
        }
        let Some(op) = value.def_op() else { break };
        if let Some(trans) = TransOp::cast(op) {
            orders.push(trans.order());
        } else if !matches!(rule(op), Some(Rule::Same | Rule::Convert)) {
            break;
        }
        let carries = |operand: &Value<'_>| {
            let small = operand.def_op().and_then(rule);
            operand.ty().as_tensor().is_some() && !matches!(small, Some(Rule::Source | Rule::Broadcast))
        };
        match op.operands().find(carries) {
            Some(operand) => value = operand,
            None => break,
        }
    }
    let Some(ty) = value.ty().as_tensor() else { return 0 };
    // Copies through a descriptor fill the buffer, whatever layout the tensor has: its rows are contiguous.
    let last = ty.rank().saturating_sub(1);
    let mut dim = if value.def_op().is_some_and(tma::is_load) { last } else { fastest_in_layout(ty) };
    for order in orders.iter().rev() {
        dim = order.iter().position(|from| usize::try_from(*from) == Ok(dim)).unwrap_or(dim);
    }
    dim
}

/// What a branch gives as `value`, or the iteration of a loop before gave; of two sides the first one.
fn handed_on(value: Value<'_>) -> Option<Value<'_>> {
    let around = value.def_op().or_else(|| value.arg_block()?.parent())?;
    if IfOp::cast(around).is_none() && ForOp::cast(around).is_none() {
        return None;
    }
    // What a loop begins with is an operand of its own.
    let (end, operand) = incoming(value)?.into_iter().find(|(op, _)| *op != around)?;
    Some(end.operand(operand)).filter(|next| *next != value)
}

/// The dimension along which registers, or else lanes, hold neighbours: those are stored together.
fn fastest_in_layout(ty: TensorType<'_>) -> usize {
    let last = ty.rank().saturating_sub(1);
    let layout = ty.encoding().map(|layout| to_linear_layout(layout, &ty.shape()));
    let Some(Ok(layout)) = layout else { return last };
    for dim in [Dim::REGISTER, Dim::LANE] {
        let along = (0..layout.in_bits(dim))
            .filter_map(|bit| layout.basis_coords(dim, bit))
            .find_map(|coords| coords.iter().position(|step| *step == 1));
        if let Some(along) = along {
            return along;
        }
    }
    last
}

/// Whether the value comes from memory, or from outside of a loop or branch,
/// without arithmetic.
fn is_loaded(value: Value<'_>) -> bool {
    let mut value = value;
    loop {
        let Some(op) = value.def_op() else { return true };
        if IfOp::cast(op).is_some()
            && let Some(side) = handed_on(value)
        {
            value = side;
        } else if let Some(convert) = ConvertLayoutOp::cast(op) {
            value = convert.src();
        } else if let Some(trans) = TransOp::cast(op) {
            value = trans.src();
        } else {
            return LoadOp::cast(op).is_some() || tma::is_load(op);
        }
    }
}

/// Operations that are looked at on the way to loads.
const MOST: usize = 64;

/// How an operand is computed, element by element, from loads or values of outside.
struct Computed {
    /// Bits of the narrowest elements that it is computed from; `None` where there are none.
    narrowest: Option<u32>,
    /// Operations on as many elements as it has; none where it is computed from anything else, which has a layout of its own.
    operations: u32,
}

fn computed(value: Value<'_>) -> Computed {
    let elements = |value: Value<'_>| value.ty().as_tensor().map(|ty| ty.shape().iter().product::<i64>());
    let all = elements(value);
    let (mut operations, mut elsewhere) = (0, false);
    let mut seen = HashSet::new();
    let mut open = vec![value];
    let mut least: Option<u32> = None;
    while let Some(value) = open.pop() {
        if seen.len() >= MOST || !seen.insert(value) {
            continue;
        }
        let bits = value.ty().element().bits();
        let Some(op) = value.def_op() else {
            least = least.into_iter().chain(bits).min();
            continue;
        };
        match rule(op) {
            _ if Fp4ToFpOp::cast(op).is_some() => least = Some(4),
            Some(Rule::Memory) if LoadOp::cast(op).is_some() => least = least.into_iter().chain(bits).min(),
            Some(Rule::Any) if tma::is_load(op) => {
                least = least.into_iter().chain(bits).min();
            }
            Some(kind @ (Rule::Same | Rule::Convert | Rule::Trans | Rule::Reshape | Rule::Join)) => {
                operations += u32::from(kind == Rule::Same && elements(value) == all);
                // Masks say nothing about what is moved.
                open.extend(
                    op.operands().filter(|operand| operand.ty().element().bits().is_some_and(|b| b > 1)),
                );
            }
            // Of rows or columns, or the same in all elements.
            Some(Rule::Source | Rule::Broadcast | Rule::ExpandDims(_)) => {}
            _ => elsewhere = true,
        }
    }
    Computed { narrowest: least, operations: if elsewhere { 0 } else { operations } }
}
