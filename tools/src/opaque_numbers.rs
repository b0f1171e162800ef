//! Numbers that strength reduction takes as they are.
//!
//! LLVM's loop strength reduction sees a boolean's number, `zext (and a, b)`, as the smaller of the numbers of `a` and `b`. Where such
//! a number is added to what a loop counts, it may compute the sum in another way, and then has two numbers and a minimum
//! for each `and`: a search for repeated tokens had 105 `selp` and 80 `min` in a loop in place of 40 `selp`.
//!
//! Of the product of a row and a stride it makes a number that the loop carries, and adds to in each iteration. That takes as many
//! instructions as the product, and a register for each row that a thread holds: with many rows, products stay.

use crate::loop_sums::{Loops, operands};
use anyhow::{Context as _, Result};
use inkwell::llvm_sys::core::{LLVMBuildFreeze, LLVMReplaceAllUsesWith};
use inkwell::module::Module;
use inkwell::values::{AsValueRef, FunctionValue, InstructionOpcode, InstructionValue, IntValue};
use std::collections::HashMap;

/// Products of rows in a loop up to which they become sums that the loop carries, a register each.
const MOST_CARRIED: usize = 16;

/// The name of values that hide others.
const NAME: &std::ffi::CStr = c"tt.opaque";

/// Runs `passes` on `module`, to which the numbers of conjunctions and disjunctions are opaque, and products of many rows.
///
/// # Errors
/// Those of `passes`, and when LLVM cannot build an instruction.
pub fn behind(module: &Module<'_>, passes: impl FnOnce() -> Result<()>) -> Result<()> {
    hide(module)?;
    let ran = passes();
    show(module)?;
    ran
}

fn instructions<'c>(module: &Module<'c>) -> impl Iterator<Item = InstructionValue<'c>> {
    let blocks = module.get_functions().flat_map(|function| function.get_basic_blocks());
    blocks.flat_map(|block| block.get_instructions().collect::<Vec<_>>())
}

fn hide(module: &Module<'_>) -> Result<()> {
    let builder = module.get_context().create_builder();
    for (product, place) in module.get_functions().flat_map(products_of_many_rows) {
        let row =
            operands(product).map(|both| both[place as usize]).context("a product of what is no number")?;
        builder.position_before(&product);
        // SAFETY: the builder stands before an instruction that uses the row, and the name ends with a zero.
        let hidden = unsafe {
            IntValue::new(LLVMBuildFreeze(builder.as_mut_ptr(), row.as_value_ref(), NAME.as_ptr()))
        };
        product.set_operand(place, hidden);
    }
    for number in instructions(module) {
        if !matches!(number.get_opcode(), InstructionOpcode::ZExt | InstructionOpcode::SExt) {
            continue;
        }
        let operand = number.get_operand(0).and_then(|it| it.value()).filter(|it| it.is_int_value());
        let Some(boolean) = operand.map(|it| it.into_int_value()) else { continue };
        let joins = |at: InstructionValue<'_>| {
            use InstructionOpcode::{And, Or, Select, Xor};
            matches!(at.get_opcode(), And | Or | Select | Xor)
        };
        if boolean.get_type().get_bit_width() != 1 || !boolean.as_instruction().is_some_and(joins) {
            continue;
        }
        builder.position_before(&number);
        // SAFETY: the builder stands before an instruction that uses the boolean, and the name ends with a zero.
        let hidden = unsafe {
            IntValue::new(LLVMBuildFreeze(builder.as_mut_ptr(), boolean.as_value_ref(), NAME.as_ptr()))
        };
        number.set_operand(0, hidden);
    }
    Ok(())
}

/// Products of what a loop counts, with constants added, and a number that it does not change: those of loops that have many,
/// and which operand is the former.
fn products_of_many_rows(function: FunctionValue<'_>) -> Vec<(InstructionValue<'_>, u32)> {
    let loops = Loops::of(function);
    if loops.spans.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut counted: HashMap<(usize, usize), usize> = HashMap::new();
    for block in function.get_basic_block_iter() {
        let Some(around) = loops.innermost(block) else { continue };
        let changes = |value: IntValue<'_>| {
            let computed_in = value.as_instruction().and_then(|at| loops.innermost(at.get_parent()?));
            computed_in.is_some_and(|inner| around.0 <= inner.0 && inner.1 <= around.1)
        };
        for at in block.get_instructions().filter(|at| at.get_opcode() == InstructionOpcode::Mul) {
            let Some(both) = operands(at) else { continue };
            let place = u32::from(!changes(both[0]));
            let (row, stride) = (both[place as usize], both[1 - place as usize]);
            if !stride.is_const() && !changes(stride) && changes(row) && counts(row, &changes, MOST_SUMS) {
                found.push((around, at, place));
                *counted.entry(around).or_default() += 1;
            }
        }
    }
    found.retain(|(around, ..)| counted[around] > MOST_CARRIED);
    found.into_iter().map(|(_, at, place)| (at, place)).collect()
}

/// Sums of sums that are looked through.
const MOST_SUMS: usize = 8;

/// Whether `value` is what a loop counts and numbers that it does not change added to each other.
fn counts<'c>(value: IntValue<'c>, changes: &impl Fn(IntValue<'c>) -> bool, most: usize) -> bool {
    if !changes(value) {
        return true;
    }
    let Some(at) = value.as_instruction().filter(|_| most > 0) else { return false };
    match at.get_opcode() {
        InstructionOpcode::Phi => true,
        InstructionOpcode::Add | InstructionOpcode::Sub | InstructionOpcode::Or | InstructionOpcode::Xor => {
            operands(at).is_some_and(|both| both.into_iter().all(|it| counts(it, changes, most - 1)))
        }
        InstructionOpcode::Shl => {
            operands(at).is_some_and(|[it, by]| by.is_const() && counts(it, changes, most - 1))
        }
        InstructionOpcode::SExt | InstructionOpcode::ZExt => {
            let operand = at.get_operand(0).and_then(|it| it.value()).filter(|it| it.is_int_value());
            operand.is_some_and(|it| counts(it.into_int_value(), changes, most - 1))
        }
        _ => false,
    }
}

fn show(module: &Module<'_>) -> Result<()> {
    for at in instructions(module) {
        let is_ours = || at.get_name().is_some_and(|name| name.to_bytes().starts_with(NAME.to_bytes()));
        if at.get_opcode() != InstructionOpcode::Freeze || !is_ours() {
            continue;
        }
        let hidden = at.get_operand(0).and_then(|it| it.value()).context("a freeze has no operand")?;
        // SAFETY: both are booleans, and what is hidden is computed before what hides it.
        unsafe { LLVMReplaceAllUsesWith(at.as_value_ref(), hidden.as_value_ref()) };
        at.erase_from_basic_block();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    const TEXT: &str = "define void @k(i1 %a, i1 %b, ptr %p) {\n  %c = and i1 %a, %b\n  %f = freeze i1 %a\n  \
        %n = zext i1 %c to i32\n  %m = zext i1 %f to i32\n  %s = add i32 %n, %m\n  store i32 %s, ptr %p\n  ret void\n}\n";

    #[test]
    fn passes_see_freezes_and_nobody_else_does() {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(TEXT.as_bytes(), "test");
        let module = context.create_module_from_ir(buffer).unwrap();
        let before = module.print_to_string().to_string();
        let mut seen = String::new();
        behind(&module, || {
            seen = module.print_to_string().to_string();
            Ok(())
        })
        .unwrap();
        assert_eq!(seen.matches("= freeze i1").count(), 2, "{seen}");
        assert!(seen.contains("freeze i1 %c\n"), "{seen}");
        assert_eq!(module.print_to_string().to_string(), before);
    }

    /// A loop that stores so many products of `counter + row` and a stride.
    fn rows(count: usize, stride: &str) -> String {
        let each: String = (0..count)
            .map(|n| {
                format!(
                    "  %r{n} = or disjoint i32 %i, {n}\n  %p{n} = mul i32 %r{n}, {stride}\n  \
                     store volatile i32 %p{n}, ptr %p\n"
                )
            })
            .collect();
        format!(
            "define void @k(i32 %stride, ptr %p) {{\nbegin:\n  br label %loop\nloop:\n  \
             %i = phi i32 [ 0, %begin ], [ %next, %loop ]\n  %other = load volatile i32, ptr %p\n{each}  \
             %next = add i32 %i, 64\n  %c = icmp slt i32 %next, 9984\n  br i1 %c, label %loop, label %end\n\
             end:\n  ret void\n}}\n"
        )
    }

    /// Freezes that passes see in `text`, which is the same behind them.
    fn frozen(text: &str) -> usize {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "test");
        let module = context.create_module_from_ir(buffer).unwrap();
        let before = module.print_to_string().to_string();
        let mut count = 0;
        behind(&module, || {
            count = module.print_to_string().to_string().matches("= freeze i32 %r").count();
            Ok(())
        })
        .unwrap();
        assert_eq!(module.print_to_string().to_string(), before);
        count
    }

    #[test]
    fn products_of_many_rows_are_left() {
        assert_eq!(frozen(&rows(MOST_CARRIED + 1, "%stride")), MOST_CARRIED + 1);
        assert_eq!(frozen(&rows(MOST_CARRIED, "%stride")), 0, "few take few registers");
        assert_eq!(frozen(&rows(MOST_CARRIED + 1, "77")), 0, "sums of constants take none");
        assert_eq!(frozen(&rows(MOST_CARRIED + 1, "%other")), 0, "no number that stays the same");
    }
}
