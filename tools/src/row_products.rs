//! Offsets of rows that are computed from each other.
//!
//! The rows of a tile that a thread holds begin `(row + 0) * stride`, `(row + 1) * stride`, … elements behind the first one, and
//! ptxas computes all of these products before the first load: two registers an address. LLVM's straight-line strength reduction
//! makes each the sum of the one before and of the stride, but takes time with the square of a function's length and is left out of
//! long ones (`codegen.rs`). Here only such products are looked for, in one pass over the code. Code with loops stays as it
//! is: what is computed before a loop lives through it (docs/ptxas.md, "Products of rows").

use crate::loop_sums::{Loops, operands};
use crate::pointer_steps::sum_with_constant;
use anyhow::{Context as _, Result};
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::values::{AnyValue, FunctionValue, InstructionOpcode, InstructionValue, IntValue};
use std::collections::HashMap;

/// Products of a group, from which on they are worth it: fewer take no registers that matter.
const LEAST: usize = 24;

/// How far back a product is that another one is computed from: as many sums are under way at a time.
const BESIDE: usize = 1;

/// Distances between products, each of which is a product with a constant.
const MOST_DISTANCES: usize = 8;

/// Has the functions of `module` without loops compute products of rows from each other.
///
/// # Errors
/// When LLVM cannot build an instruction.
pub fn follow(module: &Module<'_>) -> Result<()> {
    let straight = module.get_functions().filter(|function| Loops::of(*function).spans.is_empty());
    for function in straight {
        for (step, products) in rows(function) {
            rewrite(function, step, &products).context("products of rows")?;
        }
    }
    Ok(())
}

/// `(begin + at) * step`, where `at` is a constant.
struct Product<'c> {
    instruction: InstructionValue<'c>,
    at: i64,
}

/// Products of one block with the same begin and step, in the order of the code, and the step.
fn rows<'c>(function: FunctionValue<'c>) -> Vec<(IntValue<'c>, Vec<Product<'c>>)> {
    let mut groups = Vec::new();
    for block in function.get_basic_block_iter() {
        let mut numbers: HashMap<(IntValue<'c>, IntValue<'c>), usize> = HashMap::new();
        let mut found: Vec<(IntValue<'c>, Vec<Product<'c>>)> = Vec::new();
        for instruction in block.get_instructions().filter(|it| it.get_opcode() == InstructionOpcode::Mul) {
            let Some([a, b]) = operands(instruction).filter(|both| both.iter().all(|it| !it.is_const())) else { continue };
            let sums = [(a, b), (b, a)].map(|(sum, step)| {
                let (begin, at) = sum_with_constant(sum).unwrap_or((sum, 0));
                ((begin, step), at)
            });
            // What has no constant may be the begin of either's rows: the one that is there already, if any.
            let there = sums.iter().find(|(key, _)| numbers.contains_key(key));
            let (key, at) = *there.or(sums.iter().find(|(_, at)| *at != 0)).unwrap_or(&sums[0]);
            let number = *numbers.entry(key).or_insert_with(|| {
                found.push((key.1, Vec::new()));
                found.len() - 1
            });
            found[number].1.push(Product { instruction, at });
        }
        groups.extend(found);
    }
    groups.retain(|(_, products)| products.len() >= LEAST && distances(products).len() <= MOST_DISTANCES);
    groups
}

/// How many steps products are behind those that they are computed from, each number once, in order.
fn distances(products: &[Product<'_>]) -> Vec<i64> {
    let all = (1..products.len()).map(|i| products[i].at.wrapping_sub(products[before(i)].at));
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// From which product of a group that of this number is computed, the first one from none.
fn before(number: usize) -> usize {
    number - number.clamp(1, BESIDE)
}

fn rewrite<'c>(function: FunctionValue<'c>, step: IntValue<'c>, products: &[Product<'c>]) -> Result<()> {
    let builder = function.get_type().get_context().create_builder();
    let first = products[0].instruction.get_next_instruction().context("a block has no end")?;
    builder.position_before(&first);
    let mut steps = HashMap::new();
    for distance in distances(products) {
        steps.insert(distance, times(&builder, step, distance)?);
    }
    let mut values: Vec<IntValue<'c>> = Vec::with_capacity(products.len());
    values.push(products[0].instruction.as_any_value_enum().into_int_value());
    for (i, product) in products.iter().enumerate().skip(1) {
        builder.position_before(&product.instruction);
        let distance = product.at.wrapping_sub(products[before(i)].at);
        let value = builder.build_int_add(values[before(i)], steps[&distance], "")?;
        product.instruction.replace_all_uses_with(&value.as_instruction().context("a product is constant")?);
        product.instruction.erase_from_basic_block();
        values.push(value);
    }
    Ok(())
}

/// So many times a step. All of it wraps around, as products do.
fn times<'c>(builder: &Builder<'c>, step: IntValue<'c>, count: i64) -> Result<IntValue<'c>> {
    let factor = step.get_type().const_int(count as u64, true);
    Ok(if count == 1 { step } else { builder.build_int_mul(step, factor, "")? })
}
