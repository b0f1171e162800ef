//! What operations of all dialects have in common, asked for by those who walk over them.
//!
//! Each names groups of operands of its operation's definition; a test checks that there are such.

use mlir_host::interface::Implementation;
use mlir_host::ir::{Op, OpOperands, Value};

/// The operands of a group, which the definition of `op` has.
fn group<'c>(op: Op<'c>, name: &str) -> Option<OpOperands<'c>> {
    let def = op.def()?;
    let (start, n) = def.operand_group(op, def.operand_index(name)?);
    Some(op.operand_range(start, n))
}

/// Multiplies matrices: `d += a * b`.
#[derive(Debug)]
pub struct Dot {
    /// The groups of both factors and of what is added to their product.
    pub operands: [&'static str; 3],
}

/// [`Dot`] of registers, whose result is the new accumulator.
pub(crate) const DOT: Implementation = &Dot { operands: ["a", "b", "c"] };
/// [`Dot`] with an accumulator in tensor memory.
pub(crate) const DOT_IN_PLACE: Implementation = &Dot { operands: ["a", "b", "d"] };

impl Dot {
    /// Both factors of `op` and what is added to their product, if it is a dot.
    pub fn operands(op: Op<'_>) -> Option<[Value<'_>; 3]> {
        let [a, b, c] = op.interface::<Dot>()?.operands.map(|name| group(op, name)?.next());
        Some([a?, b?, c?])
    }
    /// Whether `value` is a factor of `op`, which is a dot.
    pub fn multiplies(op: Op<'_>, value: Value<'_>) -> bool {
        Dot::operands(op).is_some_and(|[a, b, _]| a == value || b == value)
    }
}

/// Is run by the fifth-generation tensor core, at its own pace: barriers tell when it has read its operands.
#[derive(Debug)]
pub struct MmaV5;

/// [`MmaV5`].
pub(crate) const MMA_V5: Implementation = &MmaV5;

/// Happens only where a condition holds, which may be left out.
#[derive(Debug)]
pub struct Predicated {
    /// The group of the condition.
    pub predicate: &'static str,
}

/// [`Predicated`] by the operand `pred`.
pub(crate) const PREDICATED: Implementation = &Predicated { predicate: "pred" };

impl Predicated {
    /// The condition of `op`, if it has one.
    pub fn predicate(op: Op<'_>) -> Option<Value<'_>> {
        group(op, op.interface::<Predicated>()?.predicate)?.next()
    }
}

/// Uses barriers in shared memory.
#[derive(Debug)]
pub struct MBarrier {
    /// The group of the barriers.
    pub barriers: &'static str,
    /// Whether their life begins or ends; else it arrives at them or waits for them, now or when it is done.
    pub is_life: bool,
}

/// [`MBarrier`] whose life begins or ends.
pub(crate) const MBARRIER_LIFE: Implementation = &MBarrier { barriers: "alloc", is_life: true };
/// [`MBarrier`] that is all that the operation is about.
pub(crate) const MBARRIER_ALLOC: Implementation = &MBarrier { barriers: "alloc", is_life: false };
/// [`MBarrier`] of another operation.
pub(crate) const MBARRIER: Implementation = &MBarrier { barriers: "barrier", is_life: false };
/// The same, by another name.
pub(crate) const MBARRIER_LONG: Implementation = &MBarrier { barriers: "mbarrier", is_life: false };
/// Several [`MBarrier`]s.
pub(crate) const MBARRIERS: Implementation = &MBarrier { barriers: "barriers", is_life: false };

impl MBarrier {
    /// How `op` uses the barriers of a group of its operands, if there are any.
    pub fn of(op: Op<'_>, group: &str) -> Option<&'static MBarrier> {
        op.interface::<MBarrier>().filter(|barrier| barrier.barriers == group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DIALECTS;
    use mlir_host::def::OpDef;

    fn ops() -> impl Iterator<Item = &'static OpDef> {
        DIALECTS.iter().flat_map(|dialect| dialect.ops.iter().copied())
    }

    #[test]
    fn interfaces_name_groups_that_there_are() {
        for def in ops() {
            let dot = def.interface::<Dot>().map(|dot| dot.operands);
            let barrier = def.interface::<MBarrier>().map(|barrier| barrier.barriers);
            let predicate = def.interface::<Predicated>().map(|predicated| predicated.predicate);
            for name in dot.into_iter().flatten().chain(barrier).chain(predicate) {
                assert!(def.operand_index(name).is_some(), "{} has no operand {name}", def.name);
            }
        }
    }

    #[test]
    fn what_has_such_operands_has_the_interface() {
        for def in ops().filter(|def| def.name.starts_with("ttng.")) {
            let has = |name: &str| def.operand_index(name).is_some();
            let barrier = def.has_trait(&crate::ttng::verify::BARRIER);
            assert_eq!(barrier, def.interface::<MBarrier>().is_some(), "{}", def.name);
            assert_eq!(has("pred"), def.interface::<Predicated>().is_some(), "{}", def.name);
            assert_eq!(has("a") && has("b"), def.interface::<Dot>().is_some(), "{}", def.name);
            assert_eq!(def.name.contains("tc_gen5_mma"), def.interface::<MmaV5>().is_some(), "{}", def.name);
        }
    }
}
