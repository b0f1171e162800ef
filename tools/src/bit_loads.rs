//! Loads of vectors of bits.
//!
//! Where only some low bits of loaded words are used, LLVM makes them elements of a load of `<128 x i1>`, and its code
//! generator for GPUs loads a byte for each. Here the words are loaded together again, and the bits taken from them.

use anyhow::{Context as _, Result};
use inkwell::module::Module;
use inkwell::types::{AnyTypeEnum, BasicTypeEnum, IntType};
use inkwell::values::{AnyValueEnum, InstructionOpcode, InstructionValue};

/// Bits of a word.
const WORD: u32 = 32;

/// Has all loads of vectors of elements narrower than a byte in `module` load words.
///
/// # Errors
/// When LLVM cannot build an instruction.
pub fn widen(module: &Module<'_>) -> Result<()> {
    let blocks = module.get_functions().flat_map(|function| function.get_basic_blocks());
    let loads: Vec<_> = blocks.flat_map(|block| block.get_instructions()).filter_map(BitLoad::of).collect();
    loads.into_iter().try_for_each(|load| load.widen(module).context("a load of bits"))
}

/// A load of which single elements are used.
struct BitLoad<'c> {
    load: InstructionValue<'c>,
    element: IntType<'c>,
    words: u32,
    /// What takes elements, and which.
    users: Vec<(InstructionValue<'c>, u32)>,
}

impl<'c> BitLoad<'c> {
    fn of(load: InstructionValue<'c>) -> Option<BitLoad<'c>> {
        if load.get_opcode() != InstructionOpcode::Load || load.get_volatile() != Ok(false) {
            return None;
        }
        let AnyTypeEnum::VectorType(ty) = load.get_type() else { return None };
        let BasicTypeEnum::IntType(element) = ty.get_element_type() else { return None };
        let (bits, all) = (element.get_bit_width(), element.get_bit_width() * ty.get_size());
        if bits >= 8 || !bits.is_power_of_two() || !all.is_multiple_of(WORD) {
            return None;
        }
        let mut users = Vec::new();
        let mut next = load.get_first_use();
        while let Some(at) = next {
            let AnyValueEnum::IntValue(user) = at.get_user() else { return None };
            let user = user.as_instruction()?;
            let element = user.get_operand(1)?.value()?;
            if user.get_opcode() != InstructionOpcode::ExtractElement || !element.is_int_value() {
                return None;
            }
            users.push((user, u32::try_from(element.into_int_value().get_zero_extended_constant()?).ok()?));
            next = at.get_next_use();
        }
        Some(BitLoad { load, element, words: all / WORD, users })
    }

    fn widen(self, module: &Module<'c>) -> Result<()> {
        let context = module.get_context();
        let builder = context.create_builder();
        let word = context.i32_type();
        let pointer =
            self.load.get_operand(0).and_then(|operand| operand.value()).context("has no pointer")?;
        builder.position_before(&self.load);
        let loaded = builder.build_load(word.vec_type(self.words), pointer.into_pointer_value(), "")?;
        let words = loaded.into_vector_value();
        if let Some(load) = words.as_instruction() {
            load.set_alignment(self.load.get_alignment().map_err(anyhow::Error::msg)?)
                .map_err(anyhow::Error::msg)?;
        }
        for (user, number) in self.users {
            builder.position_before(&user);
            let first = u64::from(number * self.element.get_bit_width());
            let at = word.const_int(first / u64::from(WORD), false);
            let whole = builder.build_extract_element(words, at, "")?.into_int_value();
            let shift = word.const_int(first % u64::from(WORD), false);
            let low = builder.build_right_shift(whole, shift, false, "")?;
            let bit = builder.build_int_truncate(low, self.element, "")?;
            if let Some(bit) = bit.as_instruction() {
                user.replace_all_uses_with(&bit);
            }
            user.erase_from_basic_block();
        }
        self.load.erase_from_basic_block();
        Ok(())
    }
}
