//! What other plans for a dot would have cost, for those who ask.

use super::plan::{MatmulPlan, Problem, splits};
use crate::choice::{Candidate, Choice, Unit};
use linear_layout::Encoding;
use linear_layout::plan::MatrixFamily;
use linear_layout::target::TargetDesc;

/// Bits that the shared memory gives in a wavefront.
const WAVEFRONT_BITS: f64 = 1024.0;

/// Cycles that the matrix units of a multiprocessor take for all of a CTA's part of a dot, if nothing is computed twice;
/// `None` where nobody has told how fast they are.
fn matrix_cycles(problem: &Problem, plan: &MatmulPlan, target: &TargetDesc) -> Option<f64> {
    let each = plan.instruction.cycles(target)? / plan.instruction.multiply_adds() as f64;
    Some(problem.block_shape().iter().product::<u64>() as f64 * problem.k as f64 * each)
}

/// How many warps, or groups of warps that compute together, share the rows and the columns of a result.
fn split_of(plan: &MatmulPlan) -> Option<(u64, u64)> {
    let Encoding::NvidiaMma(mma) = &plan.result else { return None };
    let [.., rows, columns] = mma.warps_per_cta[..] else { return None };
    Some((rows / group(plan), columns))
}

/// Warps that compute an instruction together.
fn group(plan: &MatmulPlan) -> u64 {
    1 << plan.instruction.c.warp_roles().len()
}

/// What the instructions that compute a dot take, the chosen one being that of the first of `plans`.
pub fn instruction(problem: &Problem, plans: &[MatmulPlan], target: &TargetDesc) -> Option<Choice> {
    let mut told: Vec<(String, Candidate)> = Vec::new();
    for plan in plans {
        let name = format!("{} of {:?}", plan.instruction.name, plan.instruction.operand);
        let candidate = match matrix_cycles(problem, plan, target) {
            Some(cycles) => Candidate::new(name.clone(), Some(cycles)),
            None => Candidate::unmeasured(name.clone()),
        };
        if told.iter().all(|(other, _)| *other != name) {
            told.push((name, candidate));
        }
    }
    let candidates = told.into_iter().map(|(_, candidate)| candidate).collect();
    Choice::among("instruction, by the time of the matrix units", Unit::Cycles, candidates, 0)
}

/// What a dot takes when warps divide it otherwise than `plan` says.
pub fn warps(problem: &Problem, plan: &MatmulPlan, target: &TargetDesc) -> Option<Choice> {
    // Where nobody has told how fast the units are, only what is read is compared.
    let (chosen, cycles) = (split_of(plan)?, matrix_cycles(problem, plan, target).unwrap_or(0.0));
    let block = problem.block_shape();
    let [batches @ .., m, n] = &block[..] else { return None };
    let row = plan.instruction;
    let is_group = row.family == MatrixFamily::Wgmma;
    let columns = if is_group { row.fewest_columns } else { row.shape[1] };
    let tile = [row.shape[0], columns].map(u64::from);
    let mut candidates = Vec::new();
    let mut at = None;
    for (cost, split) in splits(chosen.0 * chosen.1, [*m, *n], tile, problem.chain, problem.prices()) {
        if is_group && cost.0 > 1 {
            // No instruction computes a part twice.
            continue;
        }
        let read = cost.2 as f64 * problem.k as f64 * batches.iter().product::<u64>() as f64;
        let terms = [
            ("matrix units", cycles * cost.0 as f64),
            ("reading operands", read / WAVEFRONT_BITS * target.cost.wavefront),
        ];
        let across = if cost.1 > 1 { ", with operands of a chained dot in other warps" } else { "" };
        let twice = if cost.0 > 1 { format!(", computed {} times", cost.0) } else { String::new() };
        let name = format!("{}x{} warps{twice}{across}", split.0 * group(plan), split.1);
        at = at.or((split == chosen).then_some(candidates.len()));
        candidates.push(Candidate::of_terms(name, &terms));
    }
    Choice::among("warps along rows and columns of this dot", Unit::Cycles, candidates, at?)
}
