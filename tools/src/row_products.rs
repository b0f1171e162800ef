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

impl Product<'_> {
    /// How many steps it is behind another one.
    fn behind(&self, other: &Self) -> i64 {
        self.at.wrapping_sub(other.at)
    }
}

/// Products of one block with the same begin and step, in the order of the code, and the step.
fn rows<'c>(function: FunctionValue<'c>) -> Vec<(IntValue<'c>, Vec<Product<'c>>)> {
    let mut groups = Vec::new();
    for block in function.get_basic_block_iter() {
        let mut numbers: HashMap<(IntValue<'c>, IntValue<'c>), usize> = HashMap::new();
        let mut found: Vec<(IntValue<'c>, Vec<Product<'c>>)> = Vec::new();
        for instruction in block.get_instructions().filter(|it| it.get_opcode() == InstructionOpcode::Mul) {
            let Some([a, b]) = operands(instruction).filter(|both| both.iter().all(|it| !it.is_const()))
            else {
                continue;
            };
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

/// How many steps products are behind the ones before them, each number once, in order.
fn distances(products: &[Product<'_>]) -> Vec<i64> {
    let mut all: Vec<_> = products.windows(2).map(|two| two[1].behind(&two[0])).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn rewrite<'c>(function: FunctionValue<'c>, step: IntValue<'c>, products: &[Product<'c>]) -> Result<()> {
    let builder = function.get_type().get_context().create_builder();
    let first = products[0].instruction.get_next_instruction().context("a block has no end")?;
    builder.position_before(&first);
    let mut steps = HashMap::new();
    for distance in distances(products) {
        steps.insert(distance, times(&builder, step, distance)?);
    }
    let mut last = products[0].instruction.as_any_value_enum().into_int_value();
    for two in products.windows(2) {
        let instruction = two[1].instruction;
        builder.position_before(&instruction);
        last = builder.build_int_add(last, steps[&two[1].behind(&two[0])], "")?;
        instruction.replace_all_uses_with(&last.as_instruction().context("a product is constant")?);
        instruction.erase_from_basic_block();
    }
    Ok(())
}

/// So many times a step. All of it wraps around, as products do.
fn times<'c>(builder: &Builder<'c>, step: IntValue<'c>, count: i64) -> Result<IntValue<'c>> {
    let factor = step.get_type().const_int(count as u64, true);
    Ok(if count == 1 { step } else { builder.build_int_mul(step, factor, "")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointer_steps::tests::changed;

    /// A kernel that stores `(row + at) * stride` of each of `places`, in a loop if asked.
    fn rows_of(places: &[i64], in_a_loop: bool) -> String {
        let product = |(n, at): (usize, &i64)| {
            format!(
                "  %s{n} = add i32 %row, {at}\n  %m{n} = mul i32 %s{n}, %stride\n  \
                 %q{n} = getelementptr i32, ptr %p, i32 {n}\n  store i32 %m{n}, ptr %q{n}\n"
            )
        };
        let body: String = places.iter().enumerate().map(product).collect();
        let end = if in_a_loop { "  br i1 %again, label %l, label %e\ne:\n" } else { "" };
        format!(
            "define void @k(i32 %row, i32 %stride, ptr %p, i1 %again) {{\n  br label %l\nl:\n{body}{end}  ret void\n}}\n"
        )
    }

    #[test]
    fn products_of_rows_become_sums() {
        let even: Vec<i64> = (0..LEAST as i64).collect();
        let text = changed(&rows_of(&even, false), follow);
        assert_eq!(text.matches("mul i32").count(), 1, "{text}");
        assert_eq!(text.matches(", %stride").count(), LEAST, "{text}");
        // Pairs of rows, eight apart.
        let pairs: Vec<i64> = (0..LEAST as i64).map(|n| n / 2 * 8 + n % 2).collect();
        let text = changed(&rows_of(&pairs, false), follow);
        assert!(text.contains("mul i32 %stride, 7"), "{text}");
        assert_eq!(text.matches("mul i32").count(), 2, "{text}");
    }

    #[test]
    fn few_products_those_of_loops_and_those_without_order_stay() {
        let few: Vec<i64> = (0..LEAST as i64 - 1).collect();
        let many: Vec<i64> = (0..LEAST as i64).collect();
        let squares: Vec<i64> = (0..LEAST as i64).map(|n| n * n).collect();
        for (places, in_a_loop) in [(&few, false), (&many, true), (&squares, false)] {
            let text = rows_of(places, in_a_loop);
            assert_eq!(changed(&text, follow).matches("mul i32").count(), places.len(), "{text}");
        }
    }
}
