//! Execution of matrix products on labels: which summands each element of the result has got.

use std::collections::HashMap;

use super::CheckError;
use super::conversion::Holders;
use crate::plan::{Dot, DotInstruction, DotTilePlan, Threads};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// Row (or summand) and column of a register of a lane in a fragment.
type Position = fn(u64, u64, u64) -> (u64, u64);

/// Where the elements of the three fragments are: functions of lane, register and registers in all.
fn fragments(name: &str) -> Option<[Position; 3]> {
    Some(match name {
        // PTX ISA: group g = lane / 4, thread t = lane % 4; registers of 32 bits, `n / 4` (`n / 2`)
        // elements each.
        "mma.m16n8k8" | "mma.m16n8k16" | "mma.m16n8k32" => [
            |l, i, n| {
                let each = n / 4;
                let (word, e) = (i / each, i % each);
                (l / 4 + 8 * (word % 2), (l % 4) * each + e + 4 * each * (word / 2))
            },
            |l, i, n| {
                let each = n / 2;
                ((l % 4) * each + i % each + 4 * each * (i / each), l / 4)
            },
            |l, i, _| (l / 4 + 8 * (i / 2), 2 * (l % 4) + i % 2),
        ],
        "mma.m8n8k4" => {
            [|l, _, _| (l / 4, l % 4), |l, _, _| (l % 4, l / 4), |l, i, _| (l / 4, 2 * (l % 4) + i)]
        }
        _ if name.starts_with("v_mfma_16x16x") => [
            |l, i, n| (l % 16, l / 16 * n + i),
            |l, i, n| (l / 16 * n + i, l % 16),
            |l, i, _| (l / 16 * 4 + i, l % 16),
        ],
        _ if name.starts_with("v_mfma_32x32x") => [
            |l, i, n| (l % 32, l / 32 * n + i),
            |l, i, n| (l / 32 * n + i, l % 32),
            |l, i, _| (8 * (i / 4) + l / 32 * 4 + i % 4, l % 32),
        ],
        "v_wmma_16x16x16" => [
            // Sixteen elements a lane on RDNA3, where the upper lanes repeat the lower ones; eight on RDNA4.
            |l, i, n| (l % 16, if n == 16 { i } else { l / 16 * n + i }),
            |l, i, n| (if n == 16 { i } else { l / 16 * n + i }, l % 16),
            |l, i, _| (l / 16 * 8 + i, l % 16),
        ],
        _ => return None,
    })
}

/// Batch, row (or summand) and column.
type Element = (u64, u64, u64);

/// The number of the summand that is the product of two elements, which must be one of `result`.
fn product(left: Element, right: Element, result: Element) -> Result<u64, CheckError> {
    let ((x, m, k), (y, l, n)) = (left, right);
    if k == l && x == y && result == (x, m, n) {
        Ok(k)
    } else {
        Err(CheckError::Malformed(format!("{left:?} times {right:?} into {result:?}")))
    }
}

/// Executes `plan`: in the end every element of the result must have got each of its summands once, and
/// nothing else.
///
/// # Errors
/// Products of elements that do not belong together, or summands missing or repeated.
pub fn check_dot(
    plan: &DotTilePlan,
    a: &LinearLayout,
    b: &LinearLayout,
    c: &LinearLayout,
    target: &TargetDesc,
) -> Result<(), CheckError> {
    let rank = c.num_out_dims();
    // Row and column, and the batch for which products are independent.
    let order: Vec<Dim> = [rank - 2, rank - 1].into_iter().chain(0..rank - 2).map(Dim::out).collect();
    let holders = |layout| Holders { layout, order: order.clone() };
    let (ha, hb, hc) = (holders(a), holders(b), holders(c));
    let coordinates = |h: &Holders<'_>, r: u32, t: Threads| -> Result<Element, CheckError> {
        let size = |i: usize| h.layout.out_size(order[i]).unwrap_or(1);
        let element = h.element(r.into(), t)?;
        Ok((element / (size(0) * size(1)), element % size(0), element / size(0) % size(1)))
    };
    let size = |dim| c.in_size(dim).unwrap_or(1);
    let summands = a.out_size(order[1]).unwrap_or(1);
    let bad = CheckError::Malformed;
    for block in 0..size(Dim::BLOCK) {
        for warp in 0..size(Dim::WARP) {
            let thread = |lane| Threads { lane, warp, block };
            let mut sums: HashMap<(u64, u32), Vec<u64>> = HashMap::new();
            match &plan.dot {
                Dot::Fma(triples) => {
                    for lane in 0..u64::from(target.lanes) {
                        for &[z, x, y] in triples {
                            let left = coordinates(&ha, x, thread(lane))?;
                            let right = coordinates(&hb, y, thread(lane))?;
                            let k = product(left, right, coordinates(&hc, z, thread(lane))?)?;
                            sums.entry((lane, z)).or_default().push(k);
                        }
                    }
                }
                Dot::Matrix { instruction, executions, zero_lanes } => {
                    let of = fragments(&instruction.name);
                    let of = of.ok_or_else(|| bad(format!("unknown instruction {}", instruction.name)))?;
                    // RDNA3 and 64-bit CDNA results interleave lanes.
                    let of = special(of, plan, executions);
                    for e in executions {
                        let operand =
                            |h: &Holders<'_>, registers: &[Option<u32>], at: Position, zero: u64| {
                                let mut matrix = HashMap::new();
                                for lane in (0..u64::from(target.lanes)).filter(|l| l & zero == 0) {
                                    for (i, r) in (0..).zip(registers) {
                                        if let Some(r) = *r {
                                            let here = coordinates(h, r, thread(lane))?;
                                            let there =
                                                matrix.insert(at(lane, i, registers.len() as u64), here);
                                            if there.is_some_and(|other| other != here) {
                                                return Err(bad(format!(
                                                    "register {r} of lane {lane} differs from its copy"
                                                )));
                                            }
                                        }
                                    }
                                }
                                Ok(matrix)
                            };
                        let left = operand(&ha, &e.a, of[0], *zero_lanes)?;
                        let right = operand(&hb, &e.b, of[1], *zero_lanes)?;
                        let used = |row, column| {
                            left.keys().any(|k| k.0 == row) && right.keys().any(|k| k.1 == column)
                        };
                        for lane in 0..u64::from(target.lanes) {
                            for (i, r) in (0..).zip(&e.c) {
                                let Some(r) = *r else { continue };
                                let (row, column) = of[2](lane, i, e.c.len() as u64);
                                let result = coordinates(&hc, r, thread(lane))?;
                                let sum = sums.entry((lane, r)).or_default();
                                for k in 0..u64::from(instruction.shape[2]) {
                                    let pair = (left.get(&(row, k)), right.get(&(k, column)));
                                    match pair {
                                        (Some(&left), Some(&right)) => {
                                            sum.push(product(left, right, result)?)
                                        }
                                        // What is zero is zero on both sides: the other may be infinite.
                                        (None, None) => {}
                                        _ if !used(row, column) => {}
                                        _ => {
                                            let what =
                                                format!("({row}, {k}, {column}) of the tile: {pair:?}");
                                            return Err(bad(format!("zero times a number at {what}")));
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            for lane in 0..u64::from(target.lanes) {
                for (r, &from) in (0u32..).zip(&plan.copies) {
                    let mut sum = sums.get(&(lane, from)).cloned().unwrap_or_default();
                    sum.sort_unstable();
                    if !sum.iter().copied().eq(0..summands) {
                        return Err(bad(format!("register {r} of lane {lane} sums over {sum:?}")));
                    }
                    if coordinates(&hc, r, thread(lane))? != coordinates(&hc, from, thread(lane))? {
                        return Err(bad(format!("register {r} is no copy of {from}")));
                    }
                }
            }
        }
    }
    Ok(())
}

/// The position of results that are laid out differently for some types of one instruction.
fn special(of: [Position; 3], plan: &DotTilePlan, executions: &[DotInstruction]) -> [Position; 3] {
    let Dot::Matrix { instruction, .. } = &plan.dot else { return of };
    let operands = executions.first().map_or(0, |e| e.a.len());
    match instruction.name.as_str() {
        // CDNA3 ISA: 64-bit results have row 4 · register + lane / 16.
        "v_mfma_16x16x4" if plan.kind == crate::plan::DotType::F64 => {
            [of[0], of[1], |l, i, _| (4 * i + l / 16, l % 16)]
        }
        // RDNA3 ISA: row 2 · register + lane / 16.
        "v_wmma_16x16x16" if operands == 16 => [of[0], of[1], |l, i, _| (2 * i + l / 16, l % 16)],
        _ => of,
    }
}
