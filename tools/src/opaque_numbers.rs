//! Numbers of booleans that strength reduction takes as they are.
//!
//! LLVM's loop strength reduction sees a boolean's number, `zext (and a, b)`, as the smaller of the numbers of `a` and `b`. Where such
//! a number is added to what a loop counts, it may compute the sum in another way, and then has two numbers and a minimum
//! for each `and`: a search for repeated tokens had 105 `selp` and 80 `min` in a loop in place of 40 `selp`.

use anyhow::{Context as _, Result};
use inkwell::llvm_sys::core::{LLVMBuildFreeze, LLVMReplaceAllUsesWith};
use inkwell::module::Module;
use inkwell::values::{AsValueRef, InstructionOpcode, InstructionValue, IntValue};

/// The name of values that hide others.
const NAME: &std::ffi::CStr = c"tt.opaque";

/// Runs `passes` on `module`, to which the numbers of conjunctions and disjunctions are opaque.
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
}
