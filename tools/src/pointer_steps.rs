//! Pointers that step through memory together.
//!
//! A loop that copies tiles carries a pointer for each row of a tile, and each iteration adds the same to all of them. What
//! is carried here is one offset instead, which is added to where each pointer began. That takes no instruction more, and
//! ptxas needs no copies: a pointer is two registers, each half of which it carries as it likes, but an access wants an
//! aligned pair (a gathered matmul's loop of 141 instructions has 119 then).

use anyhow::{Context as _, Result};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::targets::TargetData;
use inkwell::values::{
    AnyValueEnum, AsValueRef, BasicValue, FunctionValue, InstructionOpcode, InstructionValue, IntValue,
    PhiValue, PointerValue,
};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// Pointers that share a step, from which on they share an offset: of two, the offset costs as much as is saved.
const LEAST: usize = 3;

/// Has all loops of `module` carry one offset in place of the pointers that step by the same number of bytes.
///
/// # Errors
/// When LLVM cannot build an instruction.
pub fn share(module: &Module<'_>, data: &TargetData) -> Result<()> {
    for function in module.get_functions() {
        let groups = groups(function, data);
        if !groups.is_empty() {
            share_in(function, &groups).context("pointers of a loop")?;
        }
    }
    Ok(())
}

/// What a pointer steps by.
#[derive(Clone, Copy, PartialEq)]
enum Step<'c> {
    Bytes(i64),
    /// So many times as many bytes.
    Times(IntValue<'c>, u64),
}

/// A pointer that a loop carries.
#[derive(Clone, Copy)]
struct Pointer<'c> {
    phi: PhiValue<'c>,
    /// Which value of it is the first one.
    first: u32,
    /// What it is next.
    next: InstructionValue<'c>,
}

/// Pointers that step by the same.
struct Group<'c> {
    /// The block before the loop, and that which ends an iteration.
    before: BasicBlock<'c>,
    latch: BasicBlock<'c>,
    step: Step<'c>,
    pointers: Vec<Pointer<'c>>,
}

/// The groups of the loops of `function` that are worth an offset.
fn groups<'c>(function: FunctionValue<'c>, data: &TargetData) -> Vec<Group<'c>> {
    let mut groups = Vec::new();
    let mut predecessors = None;
    for header in function.get_basic_block_iter() {
        let first = groups.len();
        let mut body = None;
        for phi in header.get_instructions().map_while(|instruction| PhiValue::try_from(instruction).ok()) {
            let Some((pointer, before, latch, step)) = carried(phi, data) else { continue };
            if let Step::Times(factor, _) = step {
                let predecessors = predecessors.get_or_insert_with(|| predecessors_in(function));
                let body = body.get_or_insert_with(|| loop_of(header, latch, predecessors));
                // What is computed within the loop may differ between its iterations.
                if factor
                    .as_instruction()
                    .and_then(|it| it.get_parent())
                    .is_some_and(|block| body.contains(&block))
                {
                    continue;
                }
            }
            // All loops of a header have the same latch: it has two predecessors.
            match groups[first..].iter_mut().find(|group: &&mut Group<'_>| group.step == step) {
                Some(group) => group.pointers.push(pointer),
                None => groups.push(Group { before, latch, step, pointers: vec![pointer] }),
            }
        }
    }
    groups.retain(|group| group.pointers.len() >= LEAST);
    groups
}

/// The pointer that `phi` is, the block before its loop, that which ends an iteration, and the step.
fn carried<'c>(
    phi: PhiValue<'c>,
    data: &TargetData,
) -> Option<(Pointer<'c>, BasicBlock<'c>, BasicBlock<'c>, Step<'c>)> {
    if phi.count_incoming() != 2 || !phi.as_basic_value().is_pointer_value() {
        return None;
    }
    [0, 1].into_iter().find_map(|first| {
        let (_, before) = phi.get_incoming(first)?;
        let (next, latch) = phi.get_incoming(1 - first)?;
        let next = next.as_instruction_value()?;
        let operand = |number: u32| next.get_operand(number)?.value();
        let steps = next.get_opcode() == InstructionOpcode::GetElementPtr
            && next.get_num_operands() == 2
            && operand(0)? == phi.as_basic_value();
        if !steps {
            return None;
        }
        let index = operand(1).filter(|index| index.is_int_value())?.into_int_value();
        let bytes = data.get_abi_size(&next.get_gep_source_element_type().ok()?);
        let step = match index.get_sign_extended_constant() {
            Some(constant) => Step::Bytes(constant.checked_mul(i64::try_from(bytes).ok()?)?),
            None => Step::Times(index, bytes),
        };
        Some((Pointer { phi, first, next }, before, latch, step))
    })
}

type Predecessors<'c> = HashMap<BasicBlock<'c>, Vec<BasicBlock<'c>>>;

fn predecessors_in(function: FunctionValue<'_>) -> Predecessors<'_> {
    let mut predecessors = Predecessors::new();
    for block in function.get_basic_block_iter() {
        let Some(terminator) = block.get_terminator() else { continue };
        for next in terminator.get_operands().flatten().filter_map(|operand| operand.block()) {
            predecessors.entry(next).or_default().push(block);
        }
    }
    predecessors
}

/// The blocks from which `latch` is reached without `header`, and both of these.
fn loop_of<'c>(
    header: BasicBlock<'c>,
    latch: BasicBlock<'c>,
    predecessors: &Predecessors<'c>,
) -> HashSet<BasicBlock<'c>> {
    let mut body = HashSet::from([header]);
    let mut open = vec![latch];
    while let Some(block) = open.pop() {
        if body.insert(block) {
            open.extend(predecessors.get(&block).into_iter().flatten());
        }
    }
    body
}

fn share_in<'c>(function: FunctionValue<'c>, groups: &[Group<'c>]) -> Result<()> {
    let context = function.get_type().get_context();
    let (builder, i64_type) = (context.create_builder(), context.i64_type());
    for group in groups {
        let step = match group.step {
            Step::Bytes(bytes) => i64_type.const_int(bytes as u64, true),
            Step::Times(factor, bytes) => {
                builder.position_before(&end(group.before)?);
                let wide = builder.build_int_s_extend_or_bit_cast(factor, i64_type, "")?;
                builder.build_int_mul(wide, i64_type.const_int(bytes, false), "")?
            }
        };
        builder.position_before(&group.pointers[0].phi.as_instruction());
        let phi = builder.build_phi(i64_type, "")?;
        let offset = phi.as_basic_value().into_int_value();
        builder.position_before(&end(group.latch)?);
        let next = builder.build_int_add(offset, step, "")?;
        phi.add_incoming(&[(&i64_type.const_zero(), group.before), (&next, group.latch)]);
        for pointer in &group.pointers {
            replace(&builder, pointer, offset, step)?;
        }
    }
    Ok(())
}

/// Computes what `pointer` was from `offset` wherever it is used.
fn replace<'c>(
    builder: &Builder<'c>,
    pointer: &Pointer<'c>,
    offset: IntValue<'c>,
    step: IntValue<'c>,
) -> Result<()> {
    let Pointer { phi, first, next } = *pointer;
    let base = phi.get_incoming(first).context("a phi has fewer values")?.0.into_pointer_value();
    let phi = phi.as_instruction();
    // In each block it is computed once, so that it lives no longer than that block.
    let mut computed = HashMap::new();
    for (user, number) in uses(phi).filter(|(user, _)| *user != next) {
        let block = user.get_parent().context("an instruction is in no block")?;
        let place = match PhiValue::try_from(user) {
            // What a phi takes is computed where that comes from.
            Ok(user) => end(user.get_incoming(number).context("a phi has fewer values")?.1)?,
            Err(_) => {
                block.get_instructions().find(|it| it.get_opcode() != InstructionOpcode::Phi).unwrap_or(user)
            }
        };
        let value = match computed.entry(place.as_value_ref()) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(none) => {
                builder.position_before(&place);
                *none.insert(sum(builder, base, offset)?)
            }
        };
        user.set_operand(number, value);
    }
    builder.position_before(&next);
    if uses(next).any(|(user, _)| user != phi) {
        let offset = builder.build_int_add(offset, step, "")?;
        let value = sum(builder, base, offset)?.as_instruction().context("an address is constant")?;
        next.replace_all_uses_with(&value);
    }
    // Only each other used them.
    next.set_operand(0, base);
    phi.erase_from_basic_block();
    next.erase_from_basic_block();
    Ok(())
}

fn sum<'c>(builder: &Builder<'c>, base: PointerValue<'c>, offset: IntValue<'c>) -> Result<PointerValue<'c>> {
    let byte = base.get_type().get_context().i8_type();
    // SAFETY: an address is computed, not said to be in bounds, which every offset has; the one index of bytes is all that
    // a pointer takes.
    Ok(unsafe { builder.build_gep(byte, base, &[offset], "")? })
}

fn end(block: BasicBlock<'_>) -> Result<InstructionValue<'_>> {
    block.get_terminator().context("a block has no end")
}

/// The instructions that use `value`, and as which operand.
fn uses(value: InstructionValue<'_>) -> impl Iterator<Item = (InstructionValue<'_>, u32)> {
    let each = std::iter::successors(value.get_first_use(), |at| at.get_next_use());
    let mut users: Vec<_> = each.filter_map(|at| instruction(at.get_user())).collect();
    let mut seen = HashSet::new();
    users.retain(|user| seen.insert(user.as_value_ref()));
    users.into_iter().flat_map(move |user| {
        let is_it = move |number: &u32| {
            let operand = user.get_operand(*number).and_then(|operand| operand.value());
            operand.is_some_and(|operand| operand.as_value_ref() == value.as_value_ref())
        };
        (0..user.get_num_operands()).filter(is_it).map(move |number| (user, number))
    })
}

/// What uses an instruction is one, whatever its type.
fn instruction(user: AnyValueEnum<'_>) -> Option<InstructionValue<'_>> {
    match user {
        AnyValueEnum::ArrayValue(value) => value.as_instruction(),
        AnyValueEnum::IntValue(value) => value.as_instruction(),
        AnyValueEnum::FloatValue(value) => value.as_instruction(),
        AnyValueEnum::PhiValue(value) => Some(value.as_instruction()),
        AnyValueEnum::PointerValue(value) => value.as_instruction(),
        AnyValueEnum::StructValue(value) => value.as_instruction(),
        AnyValueEnum::VectorValue(value) => value.as_instruction(),
        AnyValueEnum::ScalableVectorValue(value) => value.as_instruction(),
        AnyValueEnum::InstructionValue(value) => Some(value),
        AnyValueEnum::FunctionValue(_) | AnyValueEnum::MetadataValue(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    use inkwell::targets::TargetData;

    /// `text` with shared offsets, which LLVM's verifier accepts.
    fn shared(text: &str) -> String {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "test");
        let module = context.create_module_from_ir(buffer).unwrap();
        share(&module, &TargetData::create("e-i64:64-n16:32:64")).unwrap();
        module.verify().unwrap();
        module.print_to_string().to_string()
    }

    /// A loop of three pointers that step by `step` elements of `T`, which stores `sum` to each.
    fn three(kind: &str, step: &str, body: &str) -> String {
        let phis: String = (0..3)
            .map(|i| format!("  %p{i} = phi ptr addrspace(1) [ %b{i}, %entry ], [ %q{i}, %loop ]\n"))
            .collect();
        let steps: String = (0..3)
            .map(|i| format!("  %q{i} = getelementptr {kind}, ptr addrspace(1) %p{i}, i64 {step}\n"))
            .collect();
        let stores: String = (0..3).map(|i| format!("  store i32 %i, ptr addrspace(1) %p{i}\n")).collect();
        format!(
            "define void @k(ptr addrspace(1) %b0, ptr addrspace(1) %b1, ptr addrspace(1) %b2, i64 %s, i32 %n) {{\n\
             entry:\n  br label %loop\n\
             loop:\n{phis}  %i = phi i32 [ 0, %entry ], [ %j, %loop ]\n{body}{stores}{steps}  %j = add i32 %i, 1\n  \
             %c = icmp slt i32 %j, %n\n  br i1 %c, label %loop, label %end\nend:\n  ret void\n}}\n"
        )
    }

    fn carries(text: &str, what: &str) -> usize {
        text.lines().filter(|line| line.contains(&format!(" = phi {what}"))).count()
    }

    #[test]
    fn one_offset_is_carried() {
        let text = shared(&three("half", "64", ""));
        assert_eq!((carries(&text, "ptr"), carries(&text, "i64")), (0, 1), "{text}");
        assert!(text.contains(", 128\n"), "64 elements of two bytes: {text}");
        assert_eq!(text.matches("getelementptr i8").count(), 3, "{text}");
    }

    #[test]
    fn what_steps_backwards_has_a_negative_offset() {
        let text = shared(&three("float", "-2", ""));
        assert!(text.contains(", -8\n"), "{text}");
    }

    #[test]
    fn an_argument_is_the_same_in_each_iteration() {
        let text = shared(&three("half", "%s", ""));
        assert_eq!((carries(&text, "ptr"), carries(&text, "i64")), (0, 1), "{text}");
        let (before, _) = text.split_once("loop:").unwrap();
        assert!(before.contains("= mul i64 %s, 2\n"), "{text}");
    }

    #[test]
    fn what_an_iteration_computes_is_no_step() {
        let text = shared(&three("half", "%t", "  %t = sext i32 %i to i64\n"));
        assert_eq!((carries(&text, "ptr"), carries(&text, "i64")), (3, 0), "{text}");
    }

    #[test]
    fn two_are_too_few() {
        let text = three("half", "64", "").replace("%q2 = getelementptr half", "%q2 = getelementptr float");
        let text = shared(&text);
        assert_eq!((carries(&text, "ptr"), carries(&text, "i64")), (3, 0), "{text}");
    }

    /// The inner loop goes on where the outer one is, and the outer one goes on after it; what both were at last is used.
    #[test]
    fn loops_around_loops_and_uses_after_them() {
        let phis = |name: &str, first: &str, before: &str, next: &str, latch: &str| -> String {
            let phi = |i| {
                format!(
                    "  %{name}{i} = phi ptr addrspace(1) [ %{first}{i}, %{before} ], [ %{next}{i}, %{latch} ]\n"
                )
            };
            (0..3).map(phi).collect()
        };
        let steps = |to: &str, from: &str, by: &str| -> String {
            (0..3)
                .map(|i| format!("  %{to}{i} = getelementptr i8, ptr addrspace(1) %{from}{i}, i64 {by}\n"))
                .collect()
        };
        let stores = |to: &str| -> String {
            (0..3).map(|i| format!("  store i32 0, ptr addrspace(1) %{to}{i}\n")).collect()
        };
        let text = format!(
            "define void @k(ptr addrspace(1) %b0, ptr addrspace(1) %b1, ptr addrspace(1) %b2, i1 %c, i1 %d) {{\n\
             entry:\n  br label %outer\n\
             outer:\n{}  br label %inner\n\
             inner:\n{}  br i1 %c, label %then, label %latch\n\
             then:\n{}  br label %latch\n\
             latch:\n{}{}  br i1 %d, label %inner, label %next\n\
             next:\n  %last = phi ptr addrspace(1) [ %r0, %latch ]\n{}  store i32 1, ptr addrspace(1) %last\n  \
             br i1 %c, label %outer, label %end\nend:\n{}  ret void\n}}\n",
            phis("p", "b", "entry", "q", "next"),
            phis("r", "p", "outer", "s", "latch"),
            stores("r"),
            steps("s", "r", "16"),
            stores("s"),
            steps("q", "p", "4096"),
            stores("q"),
        );
        let text = shared(&text);
        // The one that is left is what was used after the loop.
        assert_eq!((carries(&text, "ptr"), carries(&text, "i64")), (1, 2), "{text}");
        let (_, then) = text.split_once("then:").unwrap();
        let (then, _) = then.split_once("latch:").unwrap();
        assert_eq!(then.matches("getelementptr i8").count(), 3, "computed where it is used: {text}");
    }
}
