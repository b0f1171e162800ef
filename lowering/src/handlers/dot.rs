//! Matrix products.

use super::arith::computes_in;
use crate::emit::{Failure, Lowered, internal, unsupported};
use crate::lower::{Handler, Lower, Values};
use crate::target::{BlockScales, MatrixTypes};
use linear_layout::plan::{Dot, DotInstruction, DotProducts, DotTilePlan, DotType, MatrixInstruction};
use mlir_host::ir::{FloatKind, Op, Type, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};
use ttopt_dialect::tt::ops::{DotOp, DotScaledOp};
use ttopt_passes::plans;

pub(super) const HANDLERS: &[(&str, Handler)] = &[("tt.dot", dot), ("tt.dot_scaled", scaled_dot)];

/// A scale of one (OCP Microscaling Formats, E8M0).
const ONE: i64 = 127;

fn scaled_dot<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(dot) = DotScaledOp::cast(op) else { return internal("is no product") };
    let plan = plans::scaled_dot(dot, l.target.desc()).map_err(Failure::Unsupported)?;
    l.remark(op, || plan.dot.to_string().trim_end().to_owned());
    let (a, b, c) = (l.get(dot.a())?, l.get(dot.b())?, l.get(dot.c())?);
    let Dot::Matrix { instruction, swapped, executions, zero_lanes } = &plan.dot.dot else {
        return internal("the plan of scales has no matrix instruction");
    };
    let one = l.emit.const_int(8, ONE)?;
    let ones = || BlockScales {
        bytes: SmallVec::from_elem(one, instruction.scales_in_register() as usize),
        in_upper_lanes: false,
    };
    let mut scales: Vec<_> = executions.iter().map(|_| [ones(), ones()]).collect();
    for (side, value) in [dot.a_scale(), dot.b_scale()].into_iter().enumerate() {
        let (Some(value), Some(from)) = (value, &plan.scales[side]) else { continue };
        let values = l.get(value)?;
        for (scales, from) in scales.iter_mut().zip(from) {
            let bytes: Lowered<_> = from.registers.iter().map(|register| at(&values, *register)).collect();
            scales[side] = BlockScales { bytes: bytes?, in_upper_lanes: from.in_upper_lanes };
        }
    }
    let sum = plans::dot_type(dot.d().ty().element(), l.target.desc()).map_err(Failure::Unsupported)?;
    let mut formats = [dot.a(), dot.b()].map(|value| value.ty().element());
    if *swapped {
        formats.reverse();
        scales.iter_mut().for_each(|both| both.reverse());
    }
    let types = MatrixTypes { kind: plan.dot.kind, sum, formats };
    let matrix =
        Matrix { instruction, types, swapped: *swapped, zero_lanes: *zero_lanes, scales: Some(&scales) };
    let sums = matrix.multiply(l, executions, [&a, &b, &c])?;
    let result = copies(&plan.dot, &sums)?;
    l.set(dot.d(), result);
    Ok(())
}

fn dot<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(dot) = DotOp::cast(op) else { return internal("is no product") };
    computes_in(dot.d().ty())?;
    let plan = plans::dot(dot, l.target.desc()).map_err(Failure::Unsupported)?;
    l.remark(op, || plan.to_string().trim_end().to_owned());
    let a = operand(l, dot.a(), plan.kind)?;
    let b = operand(l, dot.b(), plan.kind)?;
    let c = l.get(dot.c())?;
    let sums = match &plan.dot {
        Dot::Fma(steps) => multiply_add(l, steps, [&a, &b, &c])?,
        Dot::Products(steps) => add_products(l, plan.kind, steps, [&a, &b, &c])?,
        Dot::Matrix { instruction, swapped, executions, zero_lanes } => {
            let sum =
                plans::dot_type(dot.d().ty().element(), l.target.desc()).map_err(Failure::Unsupported)?;
            let mut formats = [dot.a(), dot.b()].map(|value| value.ty().element());
            if *swapped {
                formats.reverse();
            }
            let types = MatrixTypes { kind: plan.kind, sum, formats };
            let matrix =
                Matrix { instruction, types, swapped: *swapped, zero_lanes: *zero_lanes, scales: None };
            matrix.multiply(l, executions, [&a, &b, &c])?
        }
    };
    let result = copies(&plan, &sums)?;
    l.set(dot.d(), result);
    Ok(())
}

/// How many consecutive registers each fragment has that a matrix instruction leaves of `sum`, where LLVM is to know that they are
/// together (`Emit::joins`) and all fragments are such registers.
pub(super) fn sums_together<'c>(l: &Lower<'_, 'c>, sum: Value<'c>) -> Option<usize> {
    let dot = DotOp::cast(sum.def_op().filter(|_| l.emit.joins())?)?;
    let plan = plans::dot(dot, l.target.desc()).ok()?;
    let Dot::Matrix { executions, .. } = &plan.dot else { return None };
    let together = executions.first()?.c.len();
    let consecutive = |registers: &[Option<u32>]| {
        let first = registers.first().copied().flatten();
        registers.len() == together
            && first.is_some_and(|first| (first as usize).is_multiple_of(together))
            && registers
                .iter()
                .zip(first.unwrap_or(0)..)
                .all(|(register, expected)| *register == Some(expected))
    };
    let in_order = plan.copies.iter().zip(0..).all(|(register, number)| *register == number);
    (together > 1 && in_order && executions.iter().all(|execution| consecutive(&execution.c)))
        .then_some(together)
}

/// The result's registers, those that hold replicas included.
fn copies<'c>(plan: &DotTilePlan, sums: &[Value<'c>]) -> Lowered<Vec<Value<'c>>> {
    plan.copies.iter().map(|register| at(sums, *register)).collect()
}

pub(crate) fn at<'c>(values: &[Value<'c>], register: u32) -> Lowered<Value<'c>> {
    match values.get(register as usize) {
        Some(value) => Ok(*value),
        None => unsupported(format!("the plan uses register {register}, which is missing")),
    }
}

/// The float that elements of a kind are.
fn float_of(kind: DotType) -> Option<FloatKind> {
    match kind {
        DotType::F16 => Some(FloatKind::F16),
        DotType::Bf16 => Some(FloatKind::BF16),
        DotType::F32 => Some(FloatKind::F32),
        DotType::F64 => Some(FloatKind::F64),
        _ => None,
    }
}

/// The values of an operand, converted to `kind`.
fn operand<'c>(l: &mut Lower<'_, 'c>, value: Value<'c>, kind: DotType) -> Lowered<Values<'c>> {
    let values = l.get(value)?;
    let element = value.ty().element();
    let converted = match (element.float_kind(), float_of(kind)) {
        (Some(from), Some(to)) if from != to => {
            l.target.convert_floats(&mut l.emit, &values, from, to, false)?
        }
        (Some(_), _) => return Ok(values),
        (None, to) => {
            let (name, ty) = match to {
                Some(to) => ("llvm.sitofp", l.emit.float(to)),
                None => ("llvm.sext", l.emit.int(kind.bits())),
            };
            if element.bits() == ty.bits() && to.is_none() {
                return Ok(values);
            }
            convert(l, name, &values, ty)?
        }
    };
    Ok(converted.into())
}

fn convert<'c>(
    l: &mut Lower<'_, 'c>,
    name: &str,
    values: &[Value<'c>],
    ty: Type<'c>,
) -> Lowered<Vec<Value<'c>>> {
    values.iter().map(|value| l.emit.value(name, &[*value], ty, &[])).collect()
}

/// Multiplications and additions within the thread, one after the other.
fn multiply_add<'c>(
    l: &mut Lower<'_, 'c>,
    steps: &[[u32; 3]],
    [a, b, c]: [&[Value<'c>]; 3],
) -> Lowered<Vec<Value<'c>>> {
    let mut sums = c.to_vec();
    for &[result, left, right] in steps {
        let (x, y, sum) = (at(a, left)?, at(b, right)?, at(&sums, result)?);
        sums[result as usize] = if sum.ty().is_float() {
            l.emit.same("llvm.intr.fma", &[x, y, sum])?
        } else {
            let product = l.emit.same("llvm.mul", &[x, y])?;
            l.emit.add(sum, product)?
        };
    }
    Ok(sums)
}

/// Sums of several products within the thread, one after the other.
fn add_products<'c>(
    l: &mut Lower<'_, 'c>,
    kind: DotType,
    steps: &[DotProducts],
    [a, b, c]: [&[Value<'c>]; 3],
) -> Lowered<Vec<Value<'c>>> {
    // Fragments are made once.
    let mut left: HashMap<&[u32], Vec<Value<'c>>> = HashMap::new();
    let mut right: HashMap<&[u32], Vec<Value<'c>>> = HashMap::new();
    let mut sums = c.to_vec();
    for step in steps {
        for (made, registers, values) in [(&mut left, &step.a, a), (&mut right, &step.b, b)] {
            if !made.contains_key(&registers[..]) {
                let elements: Lowered<Vec<_>> =
                    registers.iter().map(|register| at(values, *register)).collect();
                made.insert(registers, l.target.matrix_fragment(&mut l.emit, kind, &elements?)?);
            }
        }
        let (Some(x), Some(y)) = (left.get(&step.a[..]), right.get(&step.b[..])) else {
            return internal("a fragment of a sum of products is missing");
        };
        let sum = at(&sums, step.c)?;
        sums[step.c as usize] = l.target.add_products(&mut l.emit, kind, [x, y], sum)?;
    }
    Ok(sums)
}

/// A matrix instruction and what it works on.
struct Matrix<'p, 'c> {
    instruction: &'p MatrixInstruction,
    types: MatrixTypes<'c>,
    /// Whether it computes the transposed product, of which the right operand is the first.
    swapped: bool,
    zero_lanes: u64,
    /// For each execution, those of the instruction's first operand and of its second.
    scales: Option<&'p [[BlockScales<'c>; 2]]>,
}

impl<'c> Matrix<'_, 'c> {
    /// Executes the instruction on registers of the operands `[a, b, c]`.
    fn multiply(
        &self,
        l: &mut Lower<'_, 'c>,
        executions: &[DotInstruction],
        [a, b, c]: [&[Value<'c>]; 3],
    ) -> Lowered<Vec<Value<'c>>> {
        // Fragments are made once, and results taken apart at the end.
        let mut left: HashMap<&[Option<u32>], Vec<Value<'c>>> = HashMap::new();
        let mut right: HashMap<&[Option<u32>], Vec<Value<'c>>> = HashMap::new();
        let mut sums: BTreeMap<&[Option<u32>], Vec<Value<'c>>> = BTreeMap::new();
        for (number, execution) in executions.iter().enumerate() {
            for (made, registers, values) in [(&mut left, &execution.a, a), (&mut right, &execution.b, b)] {
                if !made.contains_key(&registers[..]) {
                    let fragment = fragment(l, self.types.kind, registers, values)?;
                    made.insert(registers, self.without_copies(l, fragment)?);
                }
            }
            if !sums.contains_key(&execution.c[..]) {
                sums.insert(&execution.c, fragment(l, self.types.sum, &execution.c, c)?);
            }
            let (Some(x), Some(y)) = (left.get(&execution.a[..]), right.get(&execution.b[..])) else {
                continue;
            };
            let Some(sum) = sums.get_mut(&execution.c[..]) else { continue };
            let fragments =
                if self.swapped { [&y[..], &x[..], &sum[..]] } else { [&x[..], &y[..], &sum[..]] };
            *sum = match self.scales.and_then(|scales| scales.get(number)) {
                None => l.target.multiply_matrices(&mut l.emit, self.instruction, &self.types, fragments)?,
                Some(scales) => l.target.multiply_scaled(
                    &mut l.emit,
                    self.instruction,
                    &self.types,
                    fragments,
                    scales.each_ref(),
                )?,
            };
        }
        let mut results = c.to_vec();
        for (registers, fragment) in sums {
            let elements = l.target.matrix_elements(&mut l.emit, self.types.sum, &fragment)?;
            for (register, element) in registers.iter().zip(elements) {
                if let Some(result) = register.and_then(|register| results.get_mut(register as usize)) {
                    *result = element;
                }
            }
        }
        Ok(results)
    }

    /// A fragment with zeros in the lanes that hold replicas of summands.
    fn without_copies(&self, l: &mut Lower<'_, 'c>, fragment: Vec<Value<'c>>) -> Lowered<Vec<Value<'c>>> {
        let Some(counts) = l.is_representative(self.zero_lanes, 0, 0)? else { return Ok(fragment) };
        let zeroed = |value: &Value<'c>| {
            let zero = l.emit.value("llvm.mlir.zero", &[], value.ty(), &[])?;
            l.emit.select(counts, *value, zero)
        };
        fragment.iter().map(zeroed).collect()
    }
}

/// The fragment of a matrix instruction that is made of these registers, zero where there is none.
pub(crate) fn fragment<'c>(
    l: &mut Lower<'_, 'c>,
    kind: DotType,
    registers: &[Option<u32>],
    values: &[Value<'c>],
) -> Lowered<Vec<Value<'c>>> {
    let Some(first) = values.first() else { return unsupported("a product without elements") };
    let ty = first.ty();
    let mut elements = Vec::with_capacity(registers.len());
    for register in registers {
        elements.push(match register {
            Some(register) => at(values, *register)?,
            None => l.emit.value("llvm.mlir.zero", &[], ty, &[])?,
        });
    }
    l.target.matrix_fragment(&mut l.emit, kind, &elements)
}
