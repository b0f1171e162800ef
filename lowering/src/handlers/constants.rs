//! Constants: one value for all elements, or a table in global memory.

use crate::emit::{Failure, Lowered, internal, unsupported};
use crate::lower::{Handler, Lower};
use crate::words::from_word;
use mlir_host::ir::{Attr, ElementsAttr, FloatKind, Op, Type, Value};
use std::collections::HashMap;

pub(super) const HANDLERS: &[(&str, Handler)] =
    &[("arith.constant", constant), ("llvm.mlir.constant", constant), ("ub.poison", poison)];

/// Bits of a float of a format that registers hold as an integer.
fn small_float_bits(kind: FloatKind, value: f64) -> Lowered<i64> {
    match crate::floats::encode(kind, value) {
        Some(bits) => Ok(bits.into()),
        None => unsupported(format!("{value} is no {kind:?}")),
    }
}

fn constant_value<'c>(l: &mut Lower<'_, 'c>, element: Type<'c>, value: Attr<'c>) -> Lowered<Value<'c>> {
    let ty = l.register_type(element)?;
    if let Some(kind) = element.float_kind()
        && ty != element
    {
        let value =
            value.as_float().ok_or_else(|| Failure::Unsupported("constant is no float".to_owned()))?;
        if kind == FloatKind::TF32 {
            return l.emit.const_float(ty, value);
        }
        let bits = small_float_bits(kind, value)?;
        return l.emit.constant(ty, Attr::int_of(ty, bits));
    }
    if element.is_index() {
        let Some(value) = value.as_int() else { return unsupported("constant is no integer") };
        return l.emit.const_int(64, value);
    }
    l.emit.constant(ty, value)
}

fn constant<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let result = op.result(0);
    let Some(value) = op.attr("value") else { return internal("constant without a value") };
    let n = l.num_values(result.ty())?;
    let element = result.ty().element();
    let splat = match value.as_elements() {
        Some(elements) => match elements.splat_value() {
            Some(splat) => splat,
            None => return table(l, result, elements),
        },
        None => value,
    };
    let made = constant_value(l, element, splat)?;
    l.set(result, vec![made; n]);
    Ok(())
}

/// Elements that differ: each register looks its own up.
fn table<'c>(l: &mut Lower<'_, 'c>, result: Value<'c>, elements: ElementsAttr<'c>) -> Lowered<()> {
    let (Some(words), Some(tensor)) = (elements.as_words(), result.ty().as_tensor()) else {
        return unsupported(format!("constants of type {} are not supported", result.ty()));
    };
    let shape = tensor.shape();
    let layout = l.layout(result.ty())?;
    let element = tensor.element();
    let Some(bits) = words.ty().and_then(|ty| ty.element().bits()) else {
        return internal("a constant of no numbers");
    };
    let base = l.with_module(|e, module| module.table(e, words))?;
    // The number of each register's element, dimensions in row-major order.
    let mut numbers: Option<Vec<Value<'c>>> = None;
    for (dim, size) in shape.iter().enumerate() {
        let along = l.indices(&layout, dim)?;
        numbers = Some(match numbers {
            None => along,
            Some(numbers) => {
                let size = l.emit.const_i32(*size)?;
                let outer = numbers.into_iter().zip(along).map(|(number, index)| {
                    let scaled = l.emit.same("llvm.mul", &[number, size])?;
                    l.emit.add(scaled, index)
                });
                outer.collect::<Lowered<_>>()?
            }
        });
    }
    let Some(numbers) = numbers else { return unsupported("constant without dimensions") };
    let word = l.emit.int(bits);
    let aligned = Attr::int(l.emit.context(), 64, i64::from(bits / 8));
    let mut known: HashMap<Value<'c>, Value<'c>> = HashMap::new();
    let mut values = Vec::with_capacity(numbers.len());
    for number in numbers {
        if let Some(value) = known.get(&number) {
            values.push(*value);
            continue;
        }
        let address = l.emit.gep(base, number, word)?;
        let loaded = l.emit.value("llvm.load", &[address], word, &[("alignment", aligned)])?;
        let value = from_word(l, loaded, element)?;
        known.insert(number, value);
        values.push(value);
    }
    l.set(result, values);
    Ok(())
}

fn poison<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let result = op.result(0);
    let ty = l.register_type(result.ty().element())?;
    let n = l.num_values(result.ty())?;
    let value = l.emit.value("llvm.mlir.poison", &[], ty, &[])?;
    l.set(result, vec![value; n]);
    Ok(())
}
