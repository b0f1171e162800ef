//! Pairs of `bf16` that are packed and used by themselves.
//!
//! ptxas rounds two numbers to `bf16` by one instruction where they are packed at once. A number that is also used by itself, as by who
//! splits numbers of 32 bits into sums of `bf16` for matrix units, LLVM rounds alone: that takes an instruction for each,
//! of which a multiprocessor does a quarter as many (`F2F`, 16 a cycle). Here such pairs are rounded together, and taken apart.

use anyhow::{Context as _, Result};
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{AnyTypeEnum, BasicTypeEnum};
use inkwell::values::{BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue};
use std::collections::HashMap;

/// Rounds two `f32`, the upper one first (LLVM, "User Guide for NVPTX Back-end").
const ROUND: &str = "llvm.nvvm.ff2bf16x2.rn";

/// Two roundings whose results are packed, the lower one first.
struct Pair<'c> {
    rounded: [InstructionValue<'c>; 2],
    packed: InstructionValue<'c>,
    before: InstructionValue<'c>,
}

/// Has all pairs of `module` that are also used singly be rounded together.
///
/// # Errors
/// When LLVM cannot build an instruction.
pub fn round_together(module: &Module<'_>) -> Result<()> {
    let mut pairs = Vec::new();
    for block in module.get_functions().flat_map(|function| function.get_basic_blocks()) {
        let instructions: Vec<_> = block.get_instructions().collect();
        if !instructions.iter().any(|at| at.get_opcode() == InstructionOpcode::FPTrunc) {
            continue;
        }
        let places: HashMap<_, _> = instructions.iter().enumerate().map(|(n, at)| (*at, n)).collect();
        pairs.extend(instructions.iter().filter_map(|packed| Pair::of(*packed, &places)));
    }
    if pairs.is_empty() {
        return Ok(());
    }
    let round = Intrinsic::find(ROUND).and_then(|round| round.get_declaration(module, &[]));
    let round = round.context("LLVM does not know llvm.nvvm.ff2bf16x2.rn")?;
    let context = module.get_context();
    let builder = context.create_builder();
    let mut unused = Vec::new();
    for Pair { rounded, packed, before } in pairs {
        // A number that two pairs share is rounded in the first one.
        if rounded.iter().any(|at| at.get_first_use().is_none()) {
            continue;
        }
        let [low, high] = rounded.map(|at| source(at).context("a rounding without a number"));
        builder.position_before(&before);
        let both = builder.build_call(round, &[high?.into(), low?.into()], "")?;
        let both =
            both.try_as_basic_value().basic().context("a rounding without a result")?.into_vector_value();
        for (number, single) in rounded.into_iter().enumerate() {
            let place = context.i32_type().const_int(number as u64, false);
            let part = builder.build_extract_element(both, place, "")?;
            let part = part.as_instruction_value().context("a part that is no instruction")?;
            single.replace_all_uses_with(&part);
        }
        let whole = both.as_instruction().context("a pair that is no instruction")?;
        packed.replace_all_uses_with(&whole);
        packed.erase_from_basic_block();
        unused.extend(rounded);
    }
    // Pairs that follow may share a number: it goes once all have been looked at.
    unused.into_iter().for_each(InstructionValue::erase_from_basic_block);
    Ok(())
}

impl<'c> Pair<'c> {
    /// The pair that `packed`, which has a place in its block as all others do, makes, if one of its numbers is also used by itself.
    fn of(packed: InstructionValue<'c>, places: &HashMap<InstructionValue<'c>, usize>) -> Option<Self> {
        let (first, high) = inserted(packed, 1)?;
        let first = first?;
        let (None, low) = inserted(first, 0)? else { return None };
        let rounded = [low, high];
        let [at_low, at_high] = rounded.map(|at| places.get(&at).copied());
        let before = if at_low? < at_high? { low } else { high };
        let last = if at_low? < at_high? { high } else { low };
        // Both numbers must be there where the first of them is rounded.
        let known = source(last)?.as_instruction_value().and_then(|at| places.get(&at));
        let known = known.is_none_or(|at| *at < places[&before]);
        let twice =
            |at: InstructionValue<'c>| at.get_first_use().is_some_and(|at| at.get_next_use().is_some());
        (low != high && known && rounded.into_iter().any(twice)).then_some(Self { rounded, packed, before })
    }
}

/// What `at` inserts a rounding to `bf16` into, as element `number` of two: nothing or what another instruction made; and the rounding.
fn inserted<'c>(
    at: InstructionValue<'c>,
    number: u64,
) -> Option<(Option<InstructionValue<'c>>, InstructionValue<'c>)> {
    let AnyTypeEnum::VectorType(ty) = at.get_type() else { return None };
    if at.get_opcode() != InstructionOpcode::InsertElement || ty.get_size() != 2 {
        return None;
    }
    let operand = |n| at.get_operand(n).and_then(|operand| operand.value());
    let place = operand(2).filter(|it| it.is_int_value())?.into_int_value();
    let BasicValueEnum::VectorValue(into) = operand(0)? else { return None };
    let rounded = operand(1)?.as_instruction_value().filter(|at| source(*at).is_some())?;
    let into = into.as_instruction();
    (place.get_zero_extended_constant() == Some(number)).then_some((into, rounded))
}

/// The `f32` that `at` rounds to `bf16`.
fn source(at: InstructionValue<'_>) -> Option<BasicValueEnum<'_>> {
    let AnyTypeEnum::FloatType(to) = at.get_type() else { return None };
    if at.get_opcode() != InstructionOpcode::FPTrunc || to != to.get_context().bf16_type() {
        return None;
    }
    let from = at.get_operand(0).and_then(|operand| operand.value())?;
    let is_single =
        matches!(from.get_type(), BasicTypeEnum::FloatType(ty) if ty == ty.get_context().f32_type());
    is_single.then_some(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    #[test]
    fn a_number_of_two_pairs_is_rounded_in_one() {
        const TEXT: &str = "define void @k(float %x, float %y, float %z, ptr %p, ptr %q) {\n  %a = fptrunc float %x to bfloat\n  \
            %b = fptrunc float %y to bfloat\n  %c = fptrunc float %z to bfloat\n  \
            %f = insertelement <2 x bfloat> poison, bfloat %a, i64 0\n  %ab = insertelement <2 x bfloat> %f, bfloat %b, i64 1\n  \
            %ac = insertelement <2 x bfloat> %f, bfloat %c, i64 1\n  %g = insertelement <2 x bfloat> poison, bfloat %c, i64 0\n  \
            %ca = insertelement <2 x bfloat> %g, bfloat %a, i64 1\n  store <2 x bfloat> %ab, ptr %p\n  \
            store <2 x bfloat> %ac, ptr %q\n  store bfloat %b, ptr %p\n  store bfloat %c, ptr %q\n  \
            store <2 x bfloat> %ca, ptr %q\n  ret void\n}\n";
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(TEXT.as_bytes(), "test");
        let module = context.create_module_from_ir(buffer).unwrap();
        round_together(&module).unwrap();
        module.verify().unwrap();
        let text = module.print_to_string().to_string();
        assert_eq!(text.matches("call <2 x bfloat>").count(), 1, "{text}");
        assert_eq!(text.matches("fptrunc").count(), 1, "{text}");
    }
}
