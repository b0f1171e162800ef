//! Reductions along one dimension.

use super::combine::{Combine, Item};
use crate::emit::{Failure, ICmp, Lowered, unsupported};
use crate::lower::{Handler, Lower};
use crate::registers::rename;
use linear_layout::plan::{LocalReduction, ReduceHalving, ThreadMasks, WarpCombine};
use mlir_host::ir::{Op, Value};
use ttopt_passes::plans;

pub(super) const HANDLERS: &[(&str, Handler)] = &[("tt.reduce", reduce)];

fn reduce<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let plan = plans::reduce(op, l.target.desc()).map_err(Failure::Unsupported)?;
    l.remark(op, || plan.to_string());
    let combine = Combine::new(op)?;
    let items = combine.items(l, op)?;
    let mut items = local(l, &combine, Combine::elements, &plan.local, &items)?;
    if let Some(exchange) = &plan.exchange {
        items = combine.convert_all(l, op, &exchange.conversions, &items)?;
        items = local(l, &combine, Combine::tree, &exchange.combine, &items)?;
    }
    for (number, result) in op.results().enumerate() {
        let targets = if result.ty().as_tensor().is_none() {
            plan.targets.iter().take(1).copied().collect::<Vec<_>>()
        } else {
            let layout = l.layout(result.ty())?;
            let registers = rename(&plan.result, &layout, |coords| coords.iter().copied().collect())
                .map_err(|err| Failure::Unsupported(format!("data would move between threads: {err}")))?;
            let target = |register: usize| plan.targets.get(register).copied();
            match registers.into_iter().map(target).collect() {
                Some(targets) => targets,
                None => return unsupported("the plan lacks registers of the result"),
            }
        };
        let value = |target: u32| items.get(target as usize).and_then(|item| item.get(number)).copied();
        match targets.into_iter().map(value).collect::<Option<Vec<Value<'c>>>>() {
            Some(values) => l.set(result, values),
            None => return unsupported("the plan lacks values of the result"),
        }
    }
    Ok(())
}

/// Combines registers, those of each group by `all`, then lanes.
fn local<'c>(
    l: &mut Lower<'_, 'c>,
    combine: &Combine<'c>,
    all: impl Fn(&Combine<'c>, &mut Lower<'_, 'c>, Vec<Item<'c>>) -> Lowered<Item<'c>>,
    plan: &LocalReduction,
    items: &[Item<'c>],
) -> Lowered<Vec<Item<'c>>> {
    let mut left = Vec::with_capacity(plan.registers.len());
    for group in &plan.registers {
        let group: Option<Vec<Item<'c>>> = group.iter().map(|r| items.get(*r as usize).cloned()).collect();
        let Some(group) = group else { return unsupported("the plan reads registers that do not exist") };
        left.push(all(combine, l, group)?);
    }
    if let Some(instruction) = plan.whole_warp {
        return left.iter().map(|item| whole_warp(l, item, instruction)).collect();
    }
    for halving in &plan.halvings {
        left = halve(l, combine, halving, &left)?;
    }
    for shuffle in &plan.shuffles {
        let others = left
            .iter()
            .map(|item| {
                combine.map_words(l, item, |l, word| {
                    l.target.shuffle_xor(&mut l.emit, word, shuffle.lane, shuffle.instruction)
                })
            })
            .collect::<Lowered<Vec<_>>>()?;
        for (value, item) in left.iter_mut().enumerate() {
            match others.get(value ^ shuffle.value as usize) {
                Some(other) => *item = combine.apply(l, item, other)?,
                None => return unsupported("the plan exchanges values that do not exist"),
            }
        }
    }
    Ok(left)
}

/// Half of the values, combined with what another lane has of them, which gets the other half.
fn halve<'c>(
    l: &mut Lower<'_, 'c>,
    combine: &Combine<'c>,
    halving: &ReduceHalving,
    items: &[Item<'c>],
) -> Lowered<Vec<Item<'c>>> {
    let (low, high) = items.split_at(items.len() / 2);
    let upper = l.is_odd(ThreadMasks { lane: 1 << halving.bit, ..ThreadMasks::default() })?;
    let select = |l: &mut Lower<'_, 'c>, yes: &Item<'c>, no: &Item<'c>| {
        yes.iter().zip(no).map(|(yes, no)| l.emit.select(upper, *yes, *no)).collect::<Lowered<Item<'c>>>()
    };
    let mut kept = Vec::with_capacity(low.len());
    for (low, high) in low.iter().zip(high) {
        let (stays, goes) = (select(l, high, low)?, select(l, low, high)?);
        let comes = combine.map_words(l, &goes, |l, word| {
            l.target.shuffle_xor(&mut l.emit, word, halving.lane, halving.instruction)
        })?;
        kept.push((stays, comes));
    }
    kept.into_iter().map(|(stays, comes)| combine.apply(l, &stays, &comes)).collect()
}

/// One integer of each lane, extended to 32 bits so that the result's low bits are right, or of 64 bits.
fn whole_warp<'c>(l: &mut Lower<'_, 'c>, item: &[Value<'c>], instruction: WarpCombine) -> Lowered<Item<'c>> {
    let [value] = item else { return unsupported("a warp combines one value at a time") };
    let (ty, i32t, i64t) = (value.ty(), l.emit.i32(), l.emit.i64());
    if ty == i64t {
        return Ok(vec![whole_warp_of_long(l, *value, instruction)?]);
    }
    let extend = match instruction {
        WarpCombine::SMin | WarpCombine::SMax => "llvm.sext",
        _ => "llvm.zext",
    };
    let wide = if ty == i32t { *value } else { l.emit.value(extend, &[*value], i32t, &[])? };
    let all = l.target.combine_warp(&mut l.emit, wide, instruction)?;
    Ok(vec![if ty == i32t { all } else { l.emit.value("llvm.trunc", &[all], ty, &[])? }])
}

/// Bits of a part of a sum: 32 of them fit in a word.
const PART_OF_SUM: u32 = 27;

/// One integer of 64 bits of each lane, by its parts ([`WarpCombine::instructions`]).
fn whole_warp_of_long<'c>(
    l: &mut Lower<'_, 'c>,
    value: Value<'c>,
    instruction: WarpCombine,
) -> Lowered<Value<'c>> {
    use WarpCombine::{Add, And, Or, SMax, SMin, UMax, UMin, Xor};
    let (i32t, i64t) = (l.emit.i32(), l.emit.i64());
    // The low 32 bits of `value` shifted right.
    let word = |l: &mut Lower<'_, 'c>, from: u32| {
        let shifted = if from == 0 { value } else { l.emit.lshr(value, from)? };
        l.emit.value("llvm.trunc", &[shifted], i32t, &[])
    };
    let placed = |l: &mut Lower<'_, 'c>, word: Value<'c>, at: u32| {
        let wide = l.emit.value("llvm.zext", &[word], i64t, &[])?;
        if at == 0 { Ok(wide) } else { l.emit.shl(wide, at) }
    };
    let all = |l: &mut Lower<'_, 'c>, word: Value<'c>, by: WarpCombine| {
        l.target.combine_warp(&mut l.emit, word, by)
    };
    if instruction == Add {
        let part = |l: &mut Lower<'_, 'c>, from: u32| {
            let part = word(l, from)?;
            let part = l.emit.mask(part, (1 << PART_OF_SUM) - 1)?;
            let part = all(l, part, Add)?;
            placed(l, part, from)
        };
        let (low, middle) = (part(l, 0)?, part(l, PART_OF_SUM)?);
        let sum = l.emit.add(low, middle)?;
        let high = part(l, 2 * PART_OF_SUM)?;
        return l.emit.add(sum, high);
    }
    let (low, high) = (word(l, 0)?, word(l, 32)?);
    let upper = all(l, high, instruction)?;
    let lower = match instruction {
        And | Or | Xor | Add => all(l, low, instruction)?,
        SMin | UMin | SMax | UMax => {
            let is_least = matches!(instruction, SMin | UMin);
            // Lanes with another upper half are none of those that are compared.
            let none = l.emit.const_i32(if is_least { -1 } else { 0 })?;
            let same = l.emit.icmp(ICmp::Eq, high, upper)?;
            let low = l.emit.select(same, low, none)?;
            all(l, low, if is_least { UMin } else { UMax })?
        }
    };
    let (lower, upper) = (placed(l, lower, 0)?, placed(l, upper, 32)?);
    l.emit.or_disjoint(lower, upper)
}
