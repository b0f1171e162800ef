//! Execution of matrix products on labels: which summands each element of the result has got.

use std::collections::HashMap;

use super::CheckError;
use super::conversion::Holders;
use crate::plan::{
    Dot, DotAxis, DotProducts, DotTilePlan, DotType, Fragment, MatrixFamily, MatrixInstruction,
    OperandSource, ScaledDotPlan, Threads,
};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// Row (or summand) and column of a register of a lane in a fragment.
type Position = fn(u64, u64, u64) -> (u64, u64);

/// Where the elements of the three fragments are, as the ISA manuals have it: functions of lane, register and
/// registers in all. `elements` are those of the left operand in a lane.
fn fragments(instruction: &MatrixInstruction, elements: usize) -> Option<[Position; 3]> {
    Some(match instruction.name {
        // PTX ISA: group g = lane / 4, thread t = lane % 4.
        "mma.m16n8k4" | "mma.m16n8k8" | "mma.m16n8k16" if instruction.operand == DotType::F64 => [
            |l, i, _| (l / 4 + 8 * (i % 2), l % 4 + 4 * (i / 2)),
            |l, i, _| (l % 4 + 4 * i, l / 4),
            |l, i, _| (l / 4 + 8 * (i / 2), 2 * (l % 4) + i % 2),
        ],
        // Registers of 32 bits, `n / 4` (`n / 2`) elements each.
        "mma.m16n8k8" | "mma.m16n8k16" | "mma.m16n8k32" => [
            left_by_words,
            |l, i, n| {
                let each = n / 2;
                ((l % 4) * each + i % each + 4 * each * (i / each), l / 4)
            },
            |l, i, _| (l / 4 + 8 * (i / 2), 2 * (l % 4) + i % 2),
        ],
        "mma.m8n8k4" => {
            [|l, _, _| (l / 4, l % 4), |l, _, _| (l % 4, l / 4), |l, i, _| (l / 4, 2 * (l % 4) + i)]
        }
        // PTX ISA, "Register Fragments for wgmma.mma_async": of the 16 rows of a warp.
        "wgmma.m64n256k8" | "wgmma.m64n256k16" | "wgmma.m64n256k32" => [
            left_by_words,
            |_, _, _| (0, 0),
            |l, i, _| (l / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (l % 4) + i % 2),
        ],
        // CDNA3 ISA: 64-bit results have row 4 · register + lane / 16.
        "v_mfma_16x16x4" if instruction.operand == DotType::F64 => [
            |l, i, n| (l % 16, l / 16 * n + i),
            |l, i, n| (l / 16 * n + i, l % 16),
            |l, i, _| (4 * i + l / 16, l % 16),
        ],
        // CDNA4 ISA: 32 elements of 8 bits in two runs of 16.
        "v_mfma_16x16x128" if instruction.operand == DotType::F8 => [
            |l, i, _| (l % 16, narrow_depth(l / 16, i, 16)),
            |l, i, _| (narrow_depth(l / 16, i, 16), l % 16),
            |l, i, _| (l / 16 * 4 + i, l % 16),
        ],
        "v_mfma_32x32x64" if instruction.operand == DotType::F8 => [
            |l, i, _| (l % 32, narrow_depth(l / 32, i, 32)),
            |l, i, _| (narrow_depth(l / 32, i, 32), l % 32),
            |l, i, _| (8 * (i / 4) + l / 32 * 4 + i % 4, l % 32),
        ],
        name if name.starts_with("v_mfma_16x16x") => [
            |l, i, n| (l % 16, l / 16 * n + i),
            |l, i, n| (l / 16 * n + i, l % 16),
            |l, i, _| (l / 16 * 4 + i, l % 16),
        ],
        name if name.starts_with("v_mfma_32x32x") => [
            |l, i, n| (l % 32, l / 32 * n + i),
            |l, i, n| (l / 32 * n + i, l % 32),
            |l, i, _| (8 * (i / 4) + l / 32 * 4 + i % 4, l % 32),
        ],
        // RDNA3 ISA: sixteen elements in a lane, the upper lanes repeat the lower ones; results have row
        // 2 · register + lane / 16.
        "v_wmma_16x16x16" if elements == 16 => {
            [|l, i, _| (l % 16, i), |l, i, _| (i, l % 16), |l, i, _| (2 * i + l / 16, l % 16)]
        }
        // RDNA4 ISA: eight elements in a lane.
        "v_wmma_16x16x16" => [
            |l, i, n| (l % 16, l / 16 * n + i),
            |l, i, n| (l / 16 * n + i, l % 16),
            |l, i, _| (l / 16 * 8 + i, l % 16),
        ],
        // gfx1250, by Triton 3.9's layouts: runs of two elements of 32 bits, and of eight of others, in either half of the wave in turn.
        "v_wmma_16x16x4" => [
            |l, i, _| (l % 16, l / 16 * 2 + i),
            |l, i, _| (l / 16 * 2 + i, l % 16),
            |l, i, _| (l / 16 * 8 + i, l % 16),
        ],
        // … of sixteen pairs.
        "v_wmma_16x16x128" if instruction.operand == DotType::F4Pair => [
            |l, i, _| (l % 16, 32 * (i / 16) + l / 16 * 16 + i % 16),
            |l, i, _| (32 * (i / 16) + l / 16 * 16 + i % 16, l % 16),
            |l, i, _| (l / 16 * 8 + i, l % 16),
        ],
        "v_wmma_16x16x32" | "v_wmma_16x16x64" | "v_wmma_16x16x128" => [
            |l, i, _| (l % 16, 16 * (i / 8) + l / 16 * 8 + i % 8),
            |l, i, _| (16 * (i / 8) + l / 16 * 8 + i % 8, l % 16),
            |l, i, _| (l / 16 * 8 + i, l % 16),
        ],
        _ => return None,
    })
}

/// The summand that element `i` of the lanes of a group is, of groups of so many lanes.
fn narrow_depth(group: u64, i: u64, lanes: u64) -> u64 {
    16 * (64 / lanes) * (i / 16) + 16 * group + i % 16
}

/// Executes the scales of `plan`, which [`check_dot`] has found to multiply what belongs together: each element must get the
/// scale of its own row or column and block of summands. The lane that has the scale of row (column) `r` and of the
/// summands from `32 b` on is `b` times the rows (columns), plus `r` (CDNA4 ISA). On gfx1250 it is byte `b` of lane `r`, or of the one 16
/// lanes above (LLVM's `v_wmma_scale`, and Triton 3.9's layouts).
///
/// # Errors
/// The first element that gets another scale.
pub fn check_scaled_dot(
    plan: &ScaledDotPlan,
    operands: [&LinearLayout; 2],
    scales: [Option<&LinearLayout>; 2],
    target: &TargetDesc,
) -> Result<(), CheckError> {
    // OCP Microscaling Formats: a scale for 32 numbers, which are 16 pairs. A lane holds as many.
    let in_block = if plan.dot.kind == DotType::F4Pair { 16 } else { 32 };
    let bad = CheckError::Malformed;
    let Dot::Matrix { instruction, swapped, executions, .. } = &plan.dot.dot else {
        return Err(bad("scales without a matrix instruction".into()));
    };
    let in_bytes = instruction.family == MatrixFamily::Wmma;
    let of = fragments(instruction, 0).ok_or_else(|| bad(format!("unknown {}", instruction.name)))?;
    for side in 0..2 {
        let (Some(layout), Some(registers)) = (scales[side], &plan.scales[side]) else {
            if scales[side].is_some() || plan.scales[side].is_some() {
                return Err(bad(format!("scales of operand {side} are not where the plan has them")));
            }
            continue;
        };
        if registers.len() != executions.len() {
            return Err(bad(format!("{} scales for {} executions", registers.len(), executions.len())));
        }
        // The left operand has its summands along the second dimension.
        let k_dim = 1 - side;
        let order: Vec<Dim> = [1 - k_dim, k_dim].into_iter().map(Dim::out).collect();
        let operand = Holders { layout: operands[side], order: order.clone() };
        let scale = Holders { layout, order: vec![Dim::out(0), Dim::out(1)] };
        let lines = operands[side].out_size(order[0]).unwrap_or(1);
        let first = (side == 0) != *swapped;
        let tile = u64::from(instruction.shape[usize::from(!first)]);
        let size = |dim| operands[side].in_size(dim).unwrap_or(1);
        for (block, warp) in pairs(size(Dim::BLOCK), size(Dim::WARP)) {
            for (execution, from) in executions.iter().zip(registers) {
                let held = if side == 0 { &execution.a } else { &execution.b };
                if from.registers.len() != if in_bytes { 4 } else { 1 } || from.in_upper_lanes && !in_bytes {
                    return Err(bad(format!("scales of operand {side} are in {from:?}")));
                }
                for lane in 0..u64::from(target.lanes) {
                    for (i, held) in (0..).zip(held) {
                        let Some(held) = held else { continue };
                        let element = operand.element((*held).into(), Threads { lane, warp, block })?;
                        let (line, k) = (element % lines, element / lines);
                        let (x, y) = if first { of[0](lane, i, in_block) } else { of[1](lane, i, in_block) };
                        let (row, depth) = if first { (x, y) } else { (y, x) };
                        let (block_of_k, upper) = (depth / in_block, u64::from(from.in_upper_lanes));
                        let (lane, byte) = if in_bytes {
                            (16 * upper + row, block_of_k as usize)
                        } else {
                            (block_of_k * tile + row, 0)
                        };
                        let register = u64::from(from.registers[byte]);
                        let got = scale.element(register, Threads { lane, warp, block })?;
                        let rows = layout.out_size(Dim::out(0)).unwrap_or(1);
                        let got = (got % rows, got / rows);
                        if got != (line, k / in_block) {
                            return Err(bad(format!(
                                "element {k} of line {line} of operand {side} gets the scale {got:?}"
                            )));
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// The left operand of `mma.sync` and `wgmma`: four words in a lane, rows 8 apart first.
fn left_by_words(lane: u64, i: u64, n: u64) -> (u64, u64) {
    let each = n / 4;
    let (word, e) = (i / each, i % each);
    (lane / 4 + 8 * (word % 2), (lane % 4) * each + e + 4 * each * (word / 2))
}

/// A matrix of small integers by row and column.
type Matrix = HashMap<(u64, u64), i64>;

/// Two coordinates from the bits of the numbers of a register, a lane and a warp.
fn coordinates_of(fragment: &Fragment, axes: [DotAxis; 2], numbers: [u64; 3]) -> (u64, u64) {
    let roles = [fragment.register_roles(), fragment.lane_roles(), fragment.warp_roles()];
    let along = |axis: DotAxis| {
        let bits = roles.iter().zip(numbers).flat_map(|(roles, number)| {
            roles.iter().enumerate().filter(move |(i, _)| number >> i & 1 == 1).filter_map(|(_, role)| *role)
        });
        bits.filter(|role| role.0 == axis).map(|role| 1 << role.1).sum()
    };
    (along(axes[0]), along(axes[1]))
}

/// Multiplies matrices of small integers by the instruction of a row of the table, once for each number of
/// columns that it can have: operands are put into registers as the row's fragments say, multiplied where the
/// ISA manuals say that they are, and the result is read as the row's fragments say. It must be the product.
///
/// # Errors
/// The first element that differs, is missing, or differs between its copies.
pub fn check_matrix_instruction(instruction: &MatrixInstruction) -> Result<(), CheckError> {
    let [m, most, k] = instruction.shape.map(u64::from);
    let mut n = u64::from(instruction.fewest_columns);
    while n <= most {
        check_columns(instruction, [m, n, k])?;
        n *= 2;
    }
    Ok(())
}

fn check_columns(row: &MatrixInstruction, [m, n, k]: [u64; 3]) -> Result<(), CheckError> {
    use DotAxis::{K, M, N};
    let bad = |what: String| CheckError::Malformed(format!("{} of {:?}: {what}", row.name, row.operand));
    let size = |roles: Vec<_>| 1u64 << roles.len();
    let (lanes, warps) = (size(row.c.lane_roles()), size(row.c.warp_roles()));
    let positions = fragments(row, size(row.a.register_roles()) as usize);
    let [left_at, right_at, result_at] = positions.ok_or_else(|| bad("unknown".into()))?;
    // Any numbers that tell elements apart, small enough that no sum is rounded.
    let small = |x: u64, y: u64, seed: u64| {
        let mixed = (x * 37 + y * 101 + seed) * 2_654_435_761;
        (mixed >> 16 & 15) as i64 - 7
    };
    let a: Matrix = pairs(m, k).map(|(x, y)| ((x, y), small(x, y, 1))).collect();
    let b: Matrix = pairs(k, n).map(|(x, y)| ((x, y), small(x, y, 1000))).collect();
    let threads = || (0..warps).flat_map(move |warp| (0..lanes).map(move |lane| (warp, lane)));
    // What the hardware takes an operand to be, its registers filled as the fragment says.
    let seen = |matrix: &Matrix, fragment: &Fragment, axes: [DotAxis; 2], at: Position| {
        let registers = size(fragment.register_roles());
        let mut seen = Matrix::new();
        for (warp, lane) in threads() {
            for i in 0..registers {
                let value = matrix.get(&coordinates_of(fragment, axes, [i, lane, warp]));
                let value = *value.ok_or_else(|| bad(format!("register {i} is outside")))?;
                let (x, y) = at(lane, i, registers);
                let place = if axes[0] == M { (x + m / warps * warp, y) } else { (x, y) };
                if seen.insert(place, value).is_some_and(|other| other != value) {
                    return Err(bad(format!("{place:?} differs between copies")));
                }
            }
        }
        Ok(seen)
    };
    let left = seen(&a, &row.a, [M, K], left_at)?;
    let right = match row.sources[1] {
        OperandSource::Shared => b.clone(),
        _ => seen(&b, &row.b, [K, N], right_at)?,
    };
    let multiply = |a: &Matrix, b: &Matrix, x: u64, y: u64| -> Option<i64> {
        (0..k).try_fold(0, |sum, z| Some(sum + a.get(&(x, z))? * b.get(&(z, y))?))
    };
    let mut found = 0;
    let registers = m * n / (lanes * warps);
    for (warp, lane) in threads() {
        for i in 0..registers {
            let (x, y) = result_at(lane, i, registers);
            let got = multiply(&left, &right, x + m / warps * warp, y);
            let place = coordinates_of(&row.c, [M, N], [i, lane, warp]);
            let expected = multiply(&a, &b, place.0, place.1);
            if got.is_none() || got != expected {
                return Err(bad(format!("{place:?} is {got:?}, not {expected:?}")));
            }
            found += 1;
        }
    }
    if found == m * n { Ok(()) } else { Err(bad(format!("{found} results of {m}×{n}"))) }
}

fn pairs(rows: u64, columns: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..rows).flat_map(move |x| (0..columns).map(move |y| (x, y)))
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
                Dot::Products(all) => {
                    for lane in 0..u64::from(target.lanes) {
                        for DotProducts { c, a, b } in all {
                            if a.len() != b.len() {
                                return Err(bad(format!("{} elements times {}", a.len(), b.len())));
                            }
                            for (&x, &y) in a.iter().zip(b) {
                                let left = coordinates(&ha, x, thread(lane))?;
                                let right = coordinates(&hb, y, thread(lane))?;
                                let k = product(left, right, coordinates(&hc, *c, thread(lane))?)?;
                                sums.entry((lane, *c)).or_default().push(k);
                            }
                        }
                    }
                }
                Dot::Matrix { instruction, swapped, executions, zero_lanes } => {
                    let elements = executions.first().map_or(0, |e| e.a.len());
                    let of = fragments(instruction, elements);
                    let of = of.ok_or_else(|| bad(format!("unknown instruction {}", instruction.name)))?;
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
                        // The instruction's first operand is the right one of a transposed product.
                        let (first, second) =
                            if *swapped { ((&hb, &e.b), (&ha, &e.a)) } else { ((&ha, &e.a), (&hb, &e.b)) };
                        let left = operand(first.0, first.1, of[0], *zero_lanes)?;
                        let right = operand(second.0, second.1, of[1], *zero_lanes)?;
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
                                        (Some(&first), Some(&second)) if *swapped => {
                                            sum.push(product(second, first, result)?)
                                        }
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
