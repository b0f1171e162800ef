//! Execution of reductions: a value is the list of the elements combined into it.

use std::collections::HashMap;

use super::{CheckError, check_conversion};
use crate::plan::{LocalReduction, ReducePlan};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// Threads as packed input words of a layout without its registers.
type Thread = u64;
/// The elements of a value, sorted.
type Value = Vec<u64>;

/// Executes `plan` on a tensor in `layout`: every register of the result must have been combined from
/// every element of its line along the axis exactly once.
///
/// # Errors
/// The first value that is wrong, or what is wrong with a conversion of partial results.
pub fn check_reduce(plan: &ReducePlan, layout: &LinearLayout, target: &TargetDesc) -> Result<(), CheckError> {
    let threads = 1u64 << (layout.total_in_bits() - layout.in_bits(Dim::REGISTER));
    let value = |t: Thread, r: u64| vec![element(layout, r, t)];
    let mut values = combine(&plan.local, layout, threads, &value)?;
    if let Some(exchange) = &plan.exchange {
        for conversion in &exchange.conversions {
            check_conversion(conversion, &exchange.partial, &exchange.gathered, target)?;
        }
        let mut by_label: HashMap<u64, &Value> = HashMap::new();
        for (t, held) in (0..).zip(&values) {
            for (v, value) in (0..).zip(held) {
                let label = element(&exchange.partial, v, t);
                if by_label.insert(label, value).is_some_and(|other| other != value) {
                    return Err(CheckError::Malformed(format!("copies of partial result {label} differ")));
                }
            }
        }
        let gathered = |t: Thread, r: u64| {
            by_label.get(&element(&exchange.gathered, r, t)).map(|v| (*v).clone()).unwrap_or_default()
        };
        values = combine(&exchange.combine, &exchange.gathered, threads, &gathered)?;
    }
    let mut lines: HashMap<u64, Value> = HashMap::new();
    let rest: Vec<Dim> = layout.out_dims().filter(|&d| d != plan.axis).collect();
    for word in 0..1u64 << layout.total_out_bits() {
        let point = layout.unpack_out(word);
        let (mut line, mut shift) = (0, 0);
        for &dim in &rest {
            line |= point.iter().find(|p| p.0 == dim).map_or(0, |p| p.1) << shift;
            shift += layout.out_bits(dim);
        }
        lines.entry(line).or_default().push(word);
    }
    for (t, held) in (0..).zip(&values) {
        for (r, &value) in (0..).zip(&plan.targets) {
            let line = element(&plan.result, r, t);
            let (got, expected) = (held.get(value as usize), lines.get(&line));
            if got != expected || got.is_none() {
                let reason = format!("register {r} of thread {t}: {got:?} instead of line {line}");
                return Err(CheckError::Malformed(reason));
            }
        }
    }
    Ok(())
}

fn element(layout: &LinearLayout, register: u64, thread: Thread) -> u64 {
    // Registers may stand anywhere among the inputs; threads are the other inputs in their order.
    let (mut input, mut rest) = (0u64, thread);
    for (dim, bits) in layout.in_dim_bits() {
        let shift = layout.in_shift(dim).unwrap_or(0);
        if dim == Dim::REGISTER {
            input |= register << shift;
        } else {
            input |= (rest & ((1 << bits) - 1)) << shift;
            rest >>= bits;
        }
    }
    layout.apply_packed(input)
}

fn combine(
    stage: &LocalReduction,
    layout: &LinearLayout,
    threads: u64,
    value: &dyn Fn(Thread, u64) -> Value,
) -> Result<Vec<Vec<Value>>, CheckError> {
    let mut shift = 0;
    for (dim, bits) in layout.in_dim_bits().filter(|d| d.0 != Dim::REGISTER) {
        if dim == Dim::LANE {
            break;
        }
        shift += bits;
    }
    let lane_of = |t: Thread, mask: u64| t ^ mask << shift;
    let join = |mut a: Value, b: &Value| {
        a.extend(b);
        a.sort_unstable();
        a
    };
    let group = |t: Thread, registers: &Vec<u32>| {
        registers.iter().fold(Value::new(), |all, &r| join(all, &value(t, r.into())))
    };
    let mut values: Vec<Vec<Value>> =
        (0..threads).map(|t| stage.registers.iter().map(|g| group(t, g)).collect()).collect();
    if let Some(instruction) = stage.whole_warp {
        let warp = |t: Thread| {
            let all = |i: usize| {
                let lanes = 0..1u64 << layout.in_bits(Dim::LANE);
                let mut all =
                    lanes.fold(Value::new(), |all, l| join(all, &values[lane_of(t, l) as usize][i]));
                if instruction.is_idempotent() {
                    all.dedup();
                }
                all
            };
            (0..stage.registers.len()).map(all).collect()
        };
        return Ok((0..threads).map(warp).collect());
    }
    for step in &stage.shuffles {
        if step.lane >> layout.in_bits(Dim::LANE) != 0 {
            return Err(CheckError::Malformed(format!("no lane ^ {}", step.lane)));
        }
        let with = |t: Thread| {
            let other = &values[lane_of(t, step.lane) as usize];
            let sent = |v: usize| other.get(v ^ step.value as usize);
            let joined = |(v, a): (usize, &Value)| sent(v).map(|b| join(a.clone(), b));
            values[t as usize].iter().enumerate().map(joined).collect::<Option<Vec<Value>>>()
        };
        let missing = || CheckError::Malformed(format!("no value ^ {}", step.value));
        values = (0..threads).map(with).collect::<Option<Vec<_>>>().ok_or_else(missing)?;
    }
    Ok(values)
}
