//! Descriptors of shared memory that are sums.
//!
//! A descriptor of `wgmma` is the place of a tile in its lower half and constants in the rest. LLVM makes a disjunction of both, of which
//! ptxas knows the upper half, and writes that anew for each instruction, where the same four registers hold two descriptors
//! already. Of a sum it leaves it there: the loop of an attention with tiles of 64x32 has 208 instructions in place of 221.

use anyhow::{Context as _, Result};
use inkwell::llvm_sys::core::{LLVMGetIsDisjoint, LLVMReplaceAllUsesWith};
use inkwell::module::Module;
use inkwell::values::{AsValueRef, InstructionOpcode, InstructionValue};

/// Has the descriptors in `module` computed as sums, which LLVM leaves alone.
///
/// # Errors
/// When LLVM cannot build an instruction.
pub fn make(module: &Module<'_>) -> Result<()> {
    let blocks = module.get_functions().flat_map(|function| function.get_basic_blocks());
    let found: Vec<_> = blocks
        .flat_map(|block| block.get_instructions())
        .filter_map(|at| descriptor(at).map(|rest| (at, rest)))
        .collect();
    let (context, builder) = (module.get_context(), module.get_context().create_builder());
    let i64_type = context.i64_type();
    let sum = i64_type.fn_type(&[i64_type.into()], false);
    for (at, rest) in found {
        let place = at.get_operand(0).and_then(|it| it.value()).context("a disjunction of nothing")?;
        let text = format!("add.s64 $0, $1, {};", rest as i64);
        let asm = context.create_inline_asm(sum, text, "=l,l".to_owned(), false, false, None, false);
        builder.position_before(&at);
        let made = builder.build_indirect_call(sum, asm, &[place.into()], "")?;
        let made = made.try_as_basic_value().basic().context("inline assembly without result")?;
        // SAFETY: both are numbers of 64 bits, and the sum stands where the disjunction stood.
        unsafe { LLVMReplaceAllUsesWith(at.as_value_ref(), made.as_value_ref()) };
        at.erase_from_basic_block();
    }
    Ok(())
}

/// The constant part of `at`, if it is a disjunction of a place and that: the highest bits say how a tile is swizzled (PTX ISA, "Matrix
/// Descriptor Format"), in which no bit of the place is.
fn descriptor(at: InstructionValue<'_>) -> Option<u64> {
    if at.get_opcode() != InstructionOpcode::Or {
        return None;
    }
    let rest = at.get_operand(1)?.value()?.into_int_value();
    let constant = rest.get_zero_extended_constant().filter(|_| rest.get_type().get_bit_width() == 64)?;
    // SAFETY: it is a disjunction.
    let is_sum = unsafe { LLVMGetIsDisjoint(at.as_value_ref()) } != 0;
    (constant >> SWIZZLE != 0 && is_sum && at.get_first_use().is_some()).then_some(constant)
}

/// Where the bits of the swizzle begin.
const SWIZZLE: u32 = 62;

#[cfg(test)]
mod tests {
    use super::*;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    #[test]
    fn descriptors_are_sums_and_nothing_else_is() {
        let text = "define i64 @k(i32 %x, i64 %y) {\n  %a = zext i32 %x to i64\n  %d = or disjoint i64 %a, 4611686293305360384\n  \
            %e = or disjoint i64 %a, 4294967296\n  %f = or i64 %y, 4611686293305360384\n  %g = xor i64 %d, %e\n  \
            %h = xor i64 %f, %g\n  ret i64 %h\n}\n";
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "test");
        let module = context.create_module_from_ir(buffer).unwrap();
        make(&module).unwrap();
        module.verify().unwrap();
        let made = module.print_to_string().to_string();
        assert_eq!(
            made.matches("call i64 asm \"add.s64 $0, $1, 4611686293305360384;\", \"=l,l\"(i64 %a)").count(),
            1,
            "{made}"
        );
        assert!(
            made.contains("%e = or disjoint i64 %a, 4294967296\n") && made.contains("%f = or i64 %y"),
            "{made}"
        );
    }
}
