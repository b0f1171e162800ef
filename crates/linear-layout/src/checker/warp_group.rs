//! Execution of dots of warp groups on labels, operands in shared memory read by the rules of the PTX
//! ISA.

use std::collections::HashMap;

use super::CheckError;
use super::conversion::Holders;
use super::descriptor::element_at;
use crate::plan::{DotType, MatrixDescriptorPlan, Threads, WarpGroupDot, WarpGroupDotPlan, WarpGroupOperand};
use crate::{Dim, LinearLayout};

/// Two coordinates of an element.
type Element = (u64, u64);

/// The element at a row and summand of a tile that starts at byte `start`, M or N first.
fn in_memory(
    plan: &MatrixDescriptorPlan,
    memory: &LinearLayout,
    dims: (Dim, Dim),
    elem_bits: u32,
    start: u64,
    at: Element,
) -> Result<Element, CheckError> {
    let (_, point) = element_at(plan, memory, elem_bits, start, at)?;
    let along = |dim: Dim| point.iter().find(|p| p.0 == dim).map_or(0, |p| p.1);
    Ok((along(dims.0), along(dims.1)))
}

/// Sums of 8-bit floats that are kept with less than the result's precision must not be longer than allowed; no others
/// need be summed in parts.
fn check_precision(plan: &WarpGroupDotPlan, dot: &WarpGroupDot<'_>) -> Result<(), CheckError> {
    let [_, _, depth] = plan.shape;
    let needed = plan.kind == DotType::F8 && dot.max_imprecise < dot.depth;
    let longest = plan.runs.iter().map(|run| run.steps.len() as u64 * depth).max().unwrap_or(0);
    // One instruction cannot be divided.
    let fits = !needed || longest <= dot.max_imprecise.max(depth);
    // All summands in one run are in parts no more.
    let parts = needed && depth < dot.depth;
    if fits && plan.promoted == parts {
        return Ok(());
    }
    Err(CheckError::Malformed(format!("sums of {longest} of at most {}", dot.max_imprecise)))
}

/// Executes `plan`, warp by warp: in the end every element of the result must have got each of its summands
/// once, and nothing else.
///
/// # Errors
/// Dots of elements that do not belong together, or summands missing or repeated.
pub fn check_warp_group_dot(plan: &WarpGroupDotPlan, dot: &WarpGroupDot<'_>) -> Result<(), CheckError> {
    let bad = CheckError::Malformed;
    let (first, second) = (Dim::out(0), Dim::out(1));
    let holders = |layout| Holders { layout, order: vec![first, second] };
    let coordinates = |h: &Holders<'_>, register: u32, t: Threads| -> Result<Element, CheckError> {
        let (label, rows) = (h.element(register.into(), t)?, h.layout.out_size(first).unwrap_or(1));
        Ok((label % rows, label / rows))
    };
    let result = holders(dot.c);
    let bits = plan.kind.bits();
    let [_, columns, depth] = plan.shape;
    check_precision(plan, dot)?;
    for warp in 0..dot.c.in_size(Dim::WARP).unwrap_or(1) {
        let thread = |lane| Threads { lane, warp, block: 0 };
        let mut sums: HashMap<(u64, u32), Vec<u64>> = HashMap::new();
        for run in &plan.runs {
            // The columns of the right operand, and the rows of this warp of the left one.
            for step in &run.steps {
                let within = |operand: &MatrixDescriptorPlan, tile: u64| {
                    tile < operand.tiles()[0] && step.k < operand.tiles()[1]
                };
                if !within(&plan.b, run.tile[1]) || plan.a.as_ref().is_some_and(|a| !within(a, run.tile[0])) {
                    return Err(bad(format!("no tile {:?}, {} in memory", run.tile, step.k)));
                }
                let start = plan.b.start([run.tile[1], step.k]) ^ plan.starts[1].of(thread(0));
                let right = |column: u64, k: u64| {
                    in_memory(&plan.b, dot.b, (second, first), bits, start, (column, k))
                };
                // PTX ISA, wgmma register fragments: row l / 4, and 8 more for odd words.
                let each = 32 / u64::from(bits);
                let mut left = HashMap::new();
                for row in 0..16 {
                    for k in 0..depth {
                        let element = match (&plan.a, dot.a) {
                            (Some(a), WarpGroupOperand::Shared(memory)) => {
                                let start = a.start([run.tile[0], step.k]) ^ plan.starts[0].of(thread(0));
                                let at = (16 * (warp % 4) + row, k);
                                in_memory(a, memory, (first, second), bits, start, at)?
                            }
                            (None, WarpGroupOperand::Registers(layout)) => {
                                let lane = row % 8 * 4 + k / each % 4;
                                let word = row / 8 + 2 * (k / each / 4);
                                let register = step.a.get((word * each + k % each) as usize).copied();
                                let register = register.ok_or_else(|| bad("a short fragment".into()))?;
                                coordinates(&holders(layout), register, thread(lane))?
                            }
                            _ => return Err(bad("the left operand is elsewhere".into())),
                        };
                        left.insert((row, k), element);
                    }
                }
                let mut columns_read = HashMap::new();
                for column in 0..columns {
                    for k in 0..depth {
                        columns_read.insert((column, k), right(column, k)?);
                    }
                }
                for lane in 0..32u64 {
                    for (i, &register) in (0u64..).zip(&run.c) {
                        let (row, column) =
                            (lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2);
                        let (m, n) = coordinates(&result, register, thread(lane))?;
                        for k in 0..depth {
                            let (Some(&(x, p)), Some(&(y, q))) =
                                (left.get(&(row, k)), columns_read.get(&(column, k)))
                            else {
                                return Err(bad(format!("no element ({row}, {k}, {column}) in the tile")));
                            };
                            if (x, y) != (m, n) || p != q {
                                return Err(bad(format!("({x}, {p}) times ({q}, {y}) into ({m}, {n})")));
                            }
                            sums.entry((lane, register)).or_default().push(p);
                        }
                    }
                }
            }
        }
        for lane in 0..32 {
            for (register, &from) in (0u32..).zip(&plan.copies) {
                let mut sum = sums.get(&(lane, from)).cloned().unwrap_or_default();
                sum.sort_unstable();
                if !sum.iter().copied().eq(0..dot.depth) {
                    return Err(bad(format!("register {register} of lane {lane} sums over {sum:?}")));
                }
                if coordinates(&result, register, thread(lane))? != coordinates(&result, from, thread(lane))?
                {
                    return Err(bad(format!("register {register} is no copy of {from}")));
                }
            }
        }
    }
    Ok(())
}
