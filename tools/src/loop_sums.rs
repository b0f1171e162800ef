//! Numbers that a loop adds to what it counts.
//!
//! The rows of a tile that a thread holds are `counter + (row + 0)`, `counter + (row + 8)`, …, and what is in brackets does not change
//! in the loop, so that LLVM computes it before the loop and a register of each is kept throughout. Here they become
//! `(counter + row) + 0`, `(counter + row) + 8`, …: as many instructions and one, with one register in place of one for each.

use crate::pointer_steps::{operand, uses};
use anyhow::{Context as _, Result};
use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::core::LLVMGetIsDisjoint;
use inkwell::module::Module;
use inkwell::values::{AsValueRef, FunctionValue, InstructionOpcode, InstructionValue, IntValue};
use std::collections::{HashMap, HashSet};

/// Sums that share a counter and a number: of two, the number and the sum of both take as many registers as are saved.
const LEAST: usize = 3;

/// Has the loops of `module` add constants last.
///
/// # Errors
/// When LLVM cannot build an instruction.
pub fn share(module: &Module<'_>) -> Result<()> {
    for function in module.get_functions() {
        let loops = Loops::of(function);
        if !loops.spans.is_empty() {
            for (sum, members) in sums(function, &loops) {
                rewrite(&sum, &members).context("sums in a loop")?;
            }
        }
    }
    Ok(())
}

/// The loops of a function, as spans of its blocks from where an iteration begins to where it ends.
pub(crate) struct Loops<'c> {
    places: HashMap<BasicBlock<'c>, usize>,
    pub(crate) spans: Vec<(usize, usize)>,
}

impl<'c> Loops<'c> {
    pub(crate) fn of(function: FunctionValue<'c>) -> Self {
        let places: HashMap<_, _> =
            function.get_basic_block_iter().enumerate().map(|(n, it)| (it, n)).collect();
        let mut spans = Vec::new();
        for (block, end) in &places {
            let next =
                block.get_terminator().into_iter().flat_map(|it| it.get_operands().collect::<Vec<_>>());
            let begins =
                next.flatten().filter_map(|operand| operand.block()).filter_map(|it| places.get(&it));
            spans.extend(begins.filter(|begin| *begin <= end).map(|begin| (*begin, *end)));
        }
        Loops { places, spans }
    }

    /// The begin of the innermost loop that a block is in, and its last block.
    pub(crate) fn innermost(&self, block: BasicBlock<'c>) -> Option<(usize, usize)> {
        let place = self.places.get(&block)?;
        let around = self.spans.iter().filter(|(begin, end)| (begin..=end).contains(&place));
        around.min_by_key(|(begin, end)| end - begin).copied()
    }

    /// Whether a loop that `inside` is in computes `changing`, and not `kept`.
    fn changes(&self, inside: BasicBlock<'c>, changing: BasicBlock<'c>, kept: BasicBlock<'c>) -> bool {
        let place = |block| self.places.get(&block).copied();
        let (Some(inside), Some(changing), Some(kept)) = (place(inside), place(changing), place(kept)) else {
            return false;
        };
        self.spans.iter().any(|(begin, end)| {
            let has = |place: usize| (*begin..=*end).contains(&place);
            has(inside) && has(changing) && !has(kept)
        })
    }
}

/// A counter and a number that does not change in its loop, which a block adds to each other, or joins their bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Sum<'c> {
    block: BasicBlock<'c>,
    counter: IntValue<'c>,
    number: IntValue<'c>,
    adds: bool,
}

/// `counter + (number + constant)`.
#[derive(Clone, Copy)]
struct Member<'c> {
    all: InstructionValue<'c>,
    /// The sum of the number and the constant.
    kept: InstructionValue<'c>,
    constant: IntValue<'c>,
}

/// What adds integers.
pub(crate) struct Addition<'c> {
    pub(crate) operands: [IntValue<'c>; 2],
    pub(crate) adds: bool,
    /// Whether adding and joining bits are the same.
    pub(crate) either: bool,
}

/// The addition that an instruction is: an `add`, or an `or`.
pub(crate) fn addition(at: InstructionValue<'_>) -> Option<Addition<'_>> {
    let adds = match at.get_opcode() {
        InstructionOpcode::Add => true,
        InstructionOpcode::Or => false,
        _ => return None,
    };
    // SAFETY: the instruction is an `or`.
    let either = !adds && unsafe { LLVMGetIsDisjoint(at.as_value_ref()) } != 0;
    Some(Addition { operands: operands(at)?, adds, either })
}

/// The first two operands of an instruction, if they are integers.
pub(crate) fn operands(at: InstructionValue<'_>) -> Option<[IntValue<'_>; 2]> {
    Some([operand(at, 0)?, operand(at, 1)?])
}

/// The sums of a function that are worth it, in the order in which it begins to compute them.
fn sums<'c>(function: FunctionValue<'c>, loops: &Loops<'c>) -> Vec<(Sum<'c>, Vec<Member<'c>>)> {
    let mut found: Vec<(Sum<'c>, Vec<Member<'c>>)> = Vec::new();
    let mut places = HashMap::new();
    for block in function.get_basic_block_iter() {
        for at in block.get_instructions() {
            let Some((sum, member)) = member(at, block, loops) else { continue };
            let place = *places.entry(sum).or_insert_with(|| {
                found.push((sum, Vec::new()));
                found.len() - 1
            });
            found[place].1.push(member);
        }
    }
    found.retain(|(_, members)| members.len() >= LEAST);
    let all: HashSet<_> = found.iter().flat_map(|(_, members)| members.iter().map(|it| it.all)).collect();
    // Of sums of sums the inner ones are rewritten.
    let is_rewritten = |value: IntValue<'c>| value.as_instruction().is_some_and(|it| all.contains(&it));
    found.retain(|(sum, _)| !is_rewritten(sum.counter) && !is_rewritten(sum.number));
    // What something else wants as well is kept anyway.
    let all: HashSet<_> = found.iter().flat_map(|(_, members)| members.iter().map(|it| it.all)).collect();
    for (_, members) in &mut found {
        members.retain(|member| uses(member.kept).all(|(user, _)| all.contains(&user)));
    }
    found.retain(|(_, members)| members.len() >= LEAST);
    found
}

fn member<'c>(
    at: InstructionValue<'c>,
    block: BasicBlock<'c>,
    loops: &Loops<'c>,
) -> Option<(Sum<'c>, Member<'c>)> {
    let outer = addition(at)?;
    let [first, second] = outer.operands;
    [(first, second), (second, first)].into_iter().find_map(|(counter, kept)| {
        let kept = kept.as_instruction()?;
        if !loops.changes(block, counter.as_instruction()?.get_parent()?, kept.get_parent()?) {
            return None;
        }
        let inner = addition(kept)?;
        let [number, constant] = inner.operands;
        // An `or` beside an `add` has to be one, too.
        let is_sum = outer.adds == inner.adds || outer.either || inner.either;
        let adds = outer.adds || inner.adds;
        let is_constant = constant.is_const() && !number.is_const();
        (is_sum && is_constant)
            .then_some((Sum { block, counter, number, adds }, Member { all: at, kept, constant }))
    })
}

fn rewrite(sum: &Sum<'_>, members: &[Member<'_>]) -> Result<()> {
    let first = members.first().context("a sum without members")?;
    let builder = sum.block.get_context().create_builder();
    builder.position_before(&first.all);
    let added = |a, b| if sum.adds { builder.build_int_add(a, b, "") } else { builder.build_or(a, b, "") };
    let both = added(sum.counter, sum.number)?;
    for member in members {
        builder.position_before(&member.all);
        let all = added(both, member.constant)?.as_instruction().context("a sum of constants")?;
        member.all.replace_all_uses_with(&all);
        member.all.erase_from_basic_block();
        if member.kept.get_first_use().is_none() {
            member.kept.erase_from_basic_block();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointer_steps::tests::changed;

    /// `text` with shared sums, which LLVM's verifier accepts.
    fn shared(text: &str) -> String {
        changed(text, share)
    }

    /// A loop that stores `join counter, (row + constant)` for three constants, and what else it does.
    fn looped(join: &str, inner: &str, more: &str) -> String {
        let before: String = (1..4).map(|n| format!("  %k{n} = {inner} i32 %row, {}\n", 8 * n)).collect();
        let each: String = (1..4)
            .map(|n| format!("  %s{n} = {join} i32 %i, %k{n}\n  store volatile i32 %s{n}, ptr %p\n"))
            .collect();
        format!(
            "define void @k(i32 %row, ptr %p) {{\nbegin:\n{before}  br label %loop\nloop:\n  \
             %i = phi i32 [ 0, %begin ], [ %next, %loop ]\n{each}{more}  %next = add i32 %i, 64\n  \
             %c = icmp slt i32 %next, 999\n  br i1 %c, label %loop, label %end\nend:\n  ret void\n}}\n"
        )
    }

    #[test]
    fn constants_are_added_last() {
        for (join, inner, result) in [
            ("or disjoint", "or disjoint", "or i32"),
            ("or", "or", "or i32"),
            ("add", "add", "add i32"),
            ("add nsw", "or disjoint", "add i32"),
            ("or disjoint", "add", "add i32"),
        ] {
            let text = shared(&looped(join, inner, ""));
            assert!(text.contains(&format!("= {result} %i, %row\n")), "{join} {inner}: {text}");
            for constant in [8, 16, 24] {
                assert!(text.contains(&format!(", {constant}\n  store")), "{join} {inner}: {text}");
            }
            assert!(!text.contains("%k1"), "{join} {inner}: {text}");
        }
    }

    #[test]
    fn what_is_no_sum_of_both_stays() {
        // Bits that both have would count twice, or once.
        for (join, inner) in [("add", "or"), ("or", "add"), ("sub", "add"), ("add", "mul")] {
            let text = looped(join, inner, "");
            assert_eq!(shared(&text).matches("%k1").count(), 2, "{join} {inner}");
        }
    }

    #[test]
    fn what_is_kept_for_something_else_stays() {
        let text = shared(&looped("add", "add", "  store volatile i32 %k2, ptr %p\n"));
        assert!(text.contains("%k1 =") && text.contains("%i, %k1"), "two are too few: {text}");
        // A sum that another sum is made of.
        let more: String = (1..4)
            .map(|n| format!("  %t{n} = add i32 %s1, %k{n}\n  store volatile i32 %t{n}, ptr %p\n"))
            .collect();
        let text = shared(&looped("add", "add", &more));
        assert!(text.contains("%i, %k1") && text.contains("%s1, %k1"), "{text}");
    }

    #[test]
    fn without_a_loop_nothing_is_kept() {
        let text = looped("add", "add", "");
        assert!(shared(&text).contains("%i, %row"));
        let straight = text.replace("br i1 %c, label %loop, label %end", "br label %end");
        let straight = straight.replace("[ 0, %begin ], [ %next, %loop ]", "[ 0, %begin ]");
        assert_eq!(shared(&straight).matches("%k1").count(), 2);
    }
}
