//! Execution of reductions: a value is the list of the elements combined into it.

use std::collections::HashMap;

use super::conversion::check_together;
use super::{CheckError, count, exchange};
use crate::plan::{Cost, LocalReduction, ReducePlan, WarpCombine};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// Threads as packed input words of a layout without its registers.
type Thread = u64;
/// The elements of a value, sorted.
type Value = Vec<u64>;

/// Executes `plan` on a tensor in `layout` of operands of these widths: every register of the result must have been
/// combined from every element of its line along the axis exactly once. Returns the cost that was counted.
///
/// # Errors
/// The first value that is wrong, what is wrong with a conversion of partial results, or a number of the cost other
/// than what the execution takes.
pub fn check_reduce(
    plan: &ReducePlan,
    layout: &LinearLayout,
    elem_bits: &[u32],
    target: &TargetDesc,
) -> Result<Cost, CheckError> {
    check(plan, layout, None, elem_bits, target)
}

/// The same of a plan with its result in the layout `result` ([`ReducePlan::to_layout`]), whose output dimensions are those of `layout`
/// without the axis, in their order.
///
/// # Errors
/// As [`check_reduce`].
pub fn check_reduce_to(
    plan: &ReducePlan,
    layout: &LinearLayout,
    result: &LinearLayout,
    elem_bits: &[u32],
    target: &TargetDesc,
) -> Result<Cost, CheckError> {
    check(plan, layout, Some(result), elem_bits, target)
}

fn check(
    plan: &ReducePlan,
    layout: &LinearLayout,
    result: Option<&LinearLayout>,
    elem_bits: &[u32],
    target: &TargetDesc,
) -> Result<Cost, CheckError> {
    let threads = 1u64 << (layout.total_in_bits() - layout.in_bits(Dim::REGISTER));
    let words = elem_bits.iter().map(|bits| u64::from(bits.div_ceil(32))).sum();
    let warps = layout.in_size(Dim::WARP).unwrap_or(1);
    let mut run = Run { target, words, warps, cost: Cost::default() };
    let value = |t: Thread, r: u64| vec![element(layout, r, t)];
    let mut values = run.combine(&plan.local, layout, threads, &value)?;
    if let Some(exchange) = &plan.exchange {
        let (from, to) = (&exchange.partial, &exchange.gathered);
        count::add(&mut run.cost, &check_together(&exchange.conversions, elem_bits, from, to, target)?);
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
        values = run.combine(&exchange.combine, &exchange.gathered, threads, &gathered)?;
    }
    check_results(plan, layout, result, &values)?;
    count::agree(&run.cost, &plan.cost)?;
    Ok(run.cost)
}

/// Every register of the result has the whole line of the operand's register with its number, or the line that `wanted` has there.
fn check_results(
    plan: &ReducePlan,
    layout: &LinearLayout,
    wanted: Option<&LinearLayout>,
    values: &[Vec<Value>],
) -> Result<(), CheckError> {
    let rest: Vec<Dim> = layout.out_dims().filter(|&d| d != plan.axis).collect();
    let line_of = |word: u64| {
        let point = layout.unpack_out(word);
        let (mut line, mut shift) = (0, 0);
        for &dim in &rest {
            line |= point.iter().find(|p| p.0 == dim).map_or(0, |p| p.1) << shift;
            shift += layout.out_bits(dim);
        }
        line
    };
    let mut lines: HashMap<u64, Value> = HashMap::new();
    for word in 0..1u64 << layout.total_out_bits() {
        lines.entry(line_of(word)).or_default().push(word);
    }
    let registers = wanted.unwrap_or(layout).in_size(Dim::REGISTER).unwrap_or(1);
    count::same("registers of the result", plan.targets.len() as u64, registers)?;
    for (t, held) in (0..).zip(values) {
        for (r, &value) in (0..).zip(&plan.targets) {
            // The dimensions that stay are packed in their order in both.
            let expected = match wanted {
                Some(wanted) => element(wanted, r, t),
                None => line_of(element(layout, r, t)),
            };
            let line = element(&plan.result, r, t);
            let got = held.get(value as usize);
            if got != lines.get(&line) || got.is_none() || line != expected {
                let reason = format!("register {r} of thread {t}: {got:?} instead of line {expected}");
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

/// What is counted while a reduction is executed.
struct Run<'a> {
    target: &'a TargetDesc,
    /// 32-bit words of a value of each operand, together.
    words: u64,
    warps: u64,
    cost: Cost,
}

impl Run<'_> {
    fn combine(
        &mut self,
        stage: &LocalReduction,
        layout: &LinearLayout,
        threads: u64,
        value: &dyn Fn(Thread, u64) -> Value,
    ) -> Result<Vec<Vec<Value>>, CheckError> {
        let below_lanes = layout.in_dim_bits().filter(|d| d.0 != Dim::REGISTER);
        let shift: u32 = below_lanes.take_while(|d| d.0 != Dim::LANE).map(|d| d.1).sum();
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
        let mut combined: u64 = stage.registers.iter().map(|g| (g.len() as u64).saturating_sub(1)).sum();
        if let Some(instruction) = stage.whole_warp {
            // PTX ISA, "redux.sync": integers of 32 bits. Of 64 bits: the upper half and, where lanes have that, the lower one; both
            // halves of bits; sums of 27 bits, which 32 lanes make 32 bits of.
            use WarpCombine::{Add, And, Or, SMax, SMin, UMax, UMin, Xor};
            let (instructions, in_turn, arithmetic): (u64, u64, u64) = match (self.words, instruction) {
                (1, _) => (1, 1, 0),
                (2, And | Or | Xor) => (2, 1, 0),
                (2, SMin | SMax | UMin | UMax) => (2, 2, 2),
                (2, Add) => (3, 1, 10),
                _ => {
                    return Err(CheckError::Malformed(
                        "no instruction combines so many words of lanes".into(),
                    ));
                }
            };
            if !self.target.primitives.redux {
                return Err(CheckError::Malformed("no instruction combines the lanes of a warp".into()));
            }
            let warp = |t: Thread| {
                let all = |i: usize| {
                    let lanes = 0..1u64 << layout.in_bits(Dim::LANE);
                    let mut all =
                        lanes.fold(Value::new(), |all, l| join(all, &values[lane_of(t, l) as usize][i]));
                    if !matches!(instruction, WarpCombine::Add | WarpCombine::Xor) {
                        all.dedup();
                    }
                    all
                };
                (0..stage.registers.len()).map(all).collect()
            };
            values = (0..threads).map(warp).collect();
            // Each as long as two shuffles.
            let count = stage.registers.len() as u64;
            self.cost.shuffles += count * instructions;
            self.cost.cycles += in_turn as f64 * self.target.cost.shuffle_latency
                + (self.warps * count * instructions) as f64 * 2.0 * self.target.cost.shuffle
                + (self.warps * count * arithmetic) as f64 * self.target.cost.alu;
            self.combined(combined);
            return Ok(values);
        }
        for step in &stage.halvings {
            let held = values.first().map_or(0, Vec::len);
            let lanes = layout.in_bits(Dim::LANE);
            let halves = step.lane >> lanes == 0 && step.bit < lanes && step.lane >> step.bit & 1 == 1;
            if !halves || held < 2 || !exchange::exchanges(step.instruction, step.lane, self.target) {
                let (name, lane, bit) = (step.instruction.name(), step.lane, step.bit);
                let reason = format!("{name} does not share {held} values with lane ^ {lane}, by bit {bit}");
                return Err(CheckError::Malformed(reason));
            }
            let kept = |t: Thread| {
                let first = if t >> shift >> step.bit & 1 == 1 { held / 2 } else { 0 };
                let other = &values[lane_of(t, step.lane) as usize];
                (first..first + held / 2).map(|v| join(values[t as usize][v].clone(), &other[v])).collect()
            };
            values = (0..threads).map(kept).collect();
            let sent = held as u64 / 2;
            let latency = exchange::latency(step.instruction, self.target);
            self.exchanged(sent, exchange::cycles(step.instruction, self.target), latency);
            self.combined(3 * sent);
        }
        let held = stage.registers.len() as u64 >> stage.halvings.len();
        for step in &stage.shuffles {
            if step.lane >> layout.in_bits(Dim::LANE) != 0
                || !exchange::exchanges(step.instruction, step.lane, self.target)
            {
                let reason = format!("{} does not read lane ^ {}", step.instruction.name(), step.lane);
                return Err(CheckError::Malformed(reason));
            }
            let with = |t: Thread| {
                let other = &values[lane_of(t, step.lane) as usize];
                let sent = |v: usize| other.get(v ^ step.value as usize);
                let joined = |(v, a): (usize, &Value)| sent(v).map(|b| join(a.clone(), b));
                values[t as usize].iter().enumerate().map(joined).collect::<Option<Vec<Value>>>()
            };
            let missing = || CheckError::Malformed(format!("no value ^ {}", step.value));
            values = (0..threads).map(with).collect::<Option<Vec<_>>>().ok_or_else(missing)?;
            let latency = exchange::latency(step.instruction, self.target);
            self.exchanged(held, exchange::cycles(step.instruction, self.target), latency);
            combined += held;
        }
        self.combined(combined);
        Ok(values)
    }

    /// One exchange of so many values, each in its words, at so many cycles a word, and until the last is there.
    fn exchanged(&mut self, values: u64, cycles: f64, latency: f64) {
        let words = values * self.words;
        self.cost.shuffles += words;
        self.cost.cycles += latency + (self.warps * words) as f64 * cycles;
    }

    fn combined(&mut self, combinations: u64) {
        self.cost.cycles += (self.warps * combinations * self.words) as f64 * self.target.cost.alu;
    }
}
