//! Verification derived from definitions, in the order and words of MLIR's own.

use crate::def::{Arity, Blocks, Inputs, OpDef, Presence, ValueDef, VerifyResult};
use crate::ir::{Op, Region, Type, Value};
use crate::traits::Trait;
use smallvec::SmallVec;

fn verify_values<'c>(
    what: &str,
    groups: &[ValueDef],
    total: usize,
    sizes: Option<&[usize]>,
    value: impl Fn(usize) -> Value<'c>,
) -> VerifyResult {
    let fixed = groups.iter().filter(|group| group.arity == Arity::One).count();
    let variable = groups.len() - fixed;
    if variable == 0 && total != fixed {
        return Err(format!(
            "requires {} {what}{}, but found {total}",
            fixed,
            if fixed == 1 { "" } else { "s" }
        ));
    }
    if total < fixed {
        return Err(format!("expected {fixed} or more {what}s, but found {total}"));
    }
    let Some(sizes) = sizes else {
        return Err(format!("{what} group sizes are missing or malformed"));
    };
    if sizes.len() != groups.len() || sizes.iter().sum::<usize>() != total {
        return Err(format!(
            "{what} count ({total}) does not match the sizes of its {} groups",
            groups.len()
        ));
    }
    let mut index = 0;
    for (group, size) in groups.iter().zip(sizes) {
        match group.arity {
            Arity::One if *size != 1 => {
                return Err(format!(
                    "{what} group '{}' requires exactly one value, but has {size}",
                    group.name
                ));
            }
            Arity::Optional if *size > 1 => {
                return Err(format!(
                    "{what} group starting at #{index} requires 0 or 1 element, but found {size}"
                ));
            }
            _ => {}
        }
        for _ in 0..*size {
            let ty = value(index).ty();
            if !(group.constraint.matches)(ty) {
                return Err(format!("{what} #{index} must be {}, but got '{ty}'", describe(group)));
            }
            index += 1;
        }
    }
    Ok(())
}

fn describe(group: &ValueDef) -> String {
    match group.arity {
        Arity::Variadic => format!("variadic of {}", group.constraint.summary),
        _ => group.constraint.summary.to_owned(),
    }
}

/// Types of an operand or result group; `None` when the name is unknown.
fn group_types<'c>(def: &OpDef, op: Op<'c>, name: &str) -> Option<SmallVec<[Type<'c>; 4]>> {
    if let Some(i) = def.operand_index(name) {
        let (start, n) = def.operand_group(op, i);
        return Some(op.operand_range(start, n).map(Value::ty).collect());
    }
    let (start, n) = def.result_group(op, def.result_index(name)?);
    Some(op.results().skip(start).take(n).map(Value::ty).collect())
}

fn verify_attrs(def: &OpDef, op: Op<'_>) -> VerifyResult {
    for (slot, field) in def.attrs.iter().enumerate() {
        match op.slot(slot) {
            Some(attr) if !(field.constraint.matches)(attr) => {
                return Err(format!(
                    "attribute '{}' failed to satisfy constraint: {}",
                    field.name, field.constraint.summary
                ));
            }
            None if matches!(field.presence, Presence::Required) => {
                return Err(format!("requires attribute '{}'", field.name));
            }
            _ => {}
        }
    }
    Ok(())
}

fn verify_region_shapes(def: &OpDef, op: Op<'_>) -> VerifyResult {
    let variadic = def.regions.iter().any(|region| region.arity != Arity::One);
    let n = op.num_regions();
    if (!variadic && n != def.regions.len()) || (variadic && n + 1 < def.regions.len()) {
        return Err(format!("requires {} region(s), but found {n}", def.regions.len()));
    }
    for (i, region) in op.regions().enumerate() {
        let Some(of) = def.regions.get(i).or(def.regions.last()) else { break };
        let blocks = region.blocks().count();
        let wanted = match of.blocks {
            Blocks::Exactly(wanted) if blocks != wanted => format!("region with {wanted} blocks"),
            Blocks::AtLeast(wanted) if blocks < wanted => format!("region with at least {wanted} blocks"),
            _ => continue,
        };
        return Err(format!("region #{i} ('{}') failed to verify constraint: {wanted}", of.name));
    }
    Ok(())
}

fn verify_types(def: &OpDef, op: Op<'_>) -> VerifyResult {
    for rule in def.types {
        let (Some(from), Some(to)) = (group_types(def, op, rule.from), group_types(def, op, rule.to)) else {
            continue;
        };
        let Some(from) = from.first() else { continue };
        let wanted = (rule.with)(*from);
        if to.iter().any(|ty| Some(*ty) != wanted) {
            return Err(format!("failed to verify that {}", rule.summary));
        }
    }
    Ok(())
}

fn join(types: &[Type<'_>]) -> String {
    types.iter().map(|ty| format!("'{ty}'")).collect::<Vec<_>>().join(", ")
}

fn verify_inferred(def: &OpDef, op: Op<'_>) -> VerifyResult {
    let Some(infer) = def.infer else { return Ok(()) };
    let operands: SmallVec<[Value<'_>; 4]> = op.operands().collect();
    let regions: Vec<Region<'_>> = op.regions().collect();
    let attr = |name: &str| match def.slot(name) {
        Some(slot) => op.slot(slot),
        None => op.attr(name),
    };
    let inputs = Inputs { ctx: op.context(), operands: &operands, attr: &attr, regions: &regions };
    let inferred = infer(&inputs)?;
    let actual: SmallVec<[Type<'_>; 2]> = op.results().map(Value::ty).collect();
    let same = |(a, b): (&Type<'_>, &Type<'_>)| {
        a == b || def.compatible.is_some_and(|compatible| compatible(*a, *b))
    };
    if inferred.len() != actual.len() || !inferred.iter().zip(&actual).all(same) {
        return Err(format!(
            "inferred type(s) {} are incompatible with return type(s) of operation {}",
            join(&inferred),
            join(&actual)
        ));
    }
    Ok(())
}

/// Verifies an operation without its nested ones. `Err(None)` when MLIR has
/// reported the error already.
pub(crate) fn verify(def: &OpDef, op: Op<'_>) -> Result<(), Option<String>> {
    let operand_sizes = def.operand_sizes(op);
    verify_values("operand", def.operands, op.num_operands(), operand_sizes.as_deref(), |i| op.operand(i))?;
    let result_sizes = def.result_sizes(op);
    verify_values("result", def.results, op.num_results(), result_sizes.as_deref(), |i| op.result(i))?;
    verify_attrs(def, op)?;
    verify_region_shapes(def, op)?;
    def.try_each_trait(|which| {
        let verdict = which.verify(op).unwrap_or(Err(String::new()));
        verdict.map_err(|message| if message.is_empty() { None } else { Some(message) })
    })?;
    if op.num_regions() > 0
        && def.has_trait(&Trait::SINGLE_BLOCK)
        && op.regions().any(|region| region.blocks().count() > 1)
    {
        return Err(Some("expects a region with 0 or 1 blocks".to_owned()));
    }
    verify_types(def, op)?;
    verify_inferred(def, op)?;
    // SAFETY: the operation is valid, and has the interface by its definition.
    if def.destinations.is_some() && unsafe { crate::ffi::mhVerifyDestinations(op.raw()) } == 0 {
        return Err(None);
    }
    if let Some(verify) = def.verify {
        verify(op)?;
    }
    Ok(())
}
