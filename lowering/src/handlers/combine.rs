//! The regions of reductions and scans, put where two elements are combined.

use crate::emit::{Lowered, internal, unsupported};
use crate::exchange;
use crate::lower::{Handler, Lower};
use crate::words::{from_word, from_words, to_word, to_words};
use linear_layout::plan::ConversionPlan;
use mlir_host::ir::{Block, Op, Type, Value};
use mlir_host::match_op;
use mlir_host::upstream::{AddFOp, AddIOp, MulFOp, MulIOp};
use ttopt_passes::plans::word_bits;

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    // Terminators: who combines reads their operands.
    ("tt.reduce.return", |_, _| Ok(())),
    ("tt.scan.return", |_, _| Ok(())),
];

/// One element: a value for each operand of the operation.
pub(super) type Item<'c> = Vec<Value<'c>>;

/// The elements of all registers, whose parts are these columns.
fn by_register<'c>(columns: &[&[Value<'c>]]) -> Lowered<Vec<Item<'c>>> {
    let n = columns.first().map_or(0, |values| values.len());
    if columns.iter().any(|values| values.len() != n) {
        return internal("threads hold different numbers of elements of the operands");
    }
    Ok((0..n).map(|register| columns.iter().map(|values| values[register]).collect()).collect())
}

/// How many products are added one after the other before a second chain is worth the addition that joins them.
const CHAIN_ELEMENTS: usize = 8;
/// Chains that hide the latency of a fused multiplication and addition, four cycles, where a warp has a scheduler for itself.
const MOST_CHAINS: usize = 4;

/// Whether `op` adds up by `block` what a multiplication made, and nothing else uses the products.
fn adds_products(op: Op<'_>, block: Block<'_>) -> bool {
    let mut ops = block.ops();
    let (Some(combine), Some(_), None) = (ops.next(), ops.next(), ops.next()) else { return false };
    let value = op.operand(0);
    let Some(product) = value.def_op().filter(|_| op.num_operands() == 1 && value.uses().nth(1).is_none())
    else {
        return false;
    };
    let adds = combine.operands().eq([block.arg(0), block.arg(1)]);
    adds && match_op!(combine, {
        AddFOp => MulFOp::cast(product).is_some(),
        AddIOp => MulIOp::cast(product).is_some(),
        _ => false,
    })
}

/// How elements are combined.
pub(super) struct Combine<'c> {
    op: Op<'c>,
    block: Block<'c>,
    /// Types of the operands' elements.
    pub types: Vec<Type<'c>>,
}

impl<'c> Combine<'c> {
    pub fn new(op: Op<'c>) -> Lowered<Self> {
        let Some(block) = op.region(0).first_block() else { return unsupported("has no region") };
        let types = op.operands().map(|value| value.ty().element()).collect();
        Ok(Self { op, block, types })
    }

    /// `lhs` and `rhs` combined, in this order.
    pub fn apply(&self, l: &mut Lower<'_, 'c>, lhs: &[Value<'c>], rhs: &[Value<'c>]) -> Lowered<Item<'c>> {
        let args = [lhs, rhs].concat();
        let result = super::control::enter(l, self.block, &args)?;
        l.emit.set_loc(self.op.loc());
        Ok(result)
    }

    /// All of `elements` of a thread, which may not be empty, combined: products in few chains, where a multiplication and an
    /// addition are one instruction; all else as a balanced tree, whose first additions would be of two products each.
    pub fn elements(&self, l: &mut Lower<'_, 'c>, elements: Vec<Item<'c>>) -> Lowered<Item<'c>> {
        if !adds_products(self.op, self.block) {
            return self.tree(l, elements);
        }
        let chains = (elements.len() / CHAIN_ELEMENTS).clamp(1, MOST_CHAINS);
        let mut sums: Vec<Item<'c>> = Vec::with_capacity(chains);
        for (number, element) in elements.into_iter().enumerate() {
            match sums.get_mut(number % chains) {
                Some(sum) => *sum = self.apply(l, sum, &element)?,
                None => sums.push(element),
            }
        }
        self.tree(l, sums)
    }

    /// All of `items`, which may not be empty, combined as a balanced tree. Each half is done before the next is begun,
    /// so that few registers wait: one for each level of the tree.
    pub fn tree(&self, l: &mut Lower<'_, 'c>, items: Vec<Item<'c>>) -> Lowered<Item<'c>> {
        // Trees that are done, each with the number of its levels, which fall from the first to the last.
        let mut done: Vec<(u32, Item<'c>)> = Vec::new();
        for mut item in items {
            let mut levels = 0;
            while let Some((_, before)) = done.pop_if(|(others, _)| *others == levels) {
                item = self.apply(l, &before, &item)?;
                levels += 1;
            }
            done.push((levels, item));
        }
        let mut rest = done.into_iter().rev().map(|(_, item)| item);
        let Some(mut all) = rest.next() else { return unsupported("the plan combines no registers") };
        for before in rest {
            all = self.apply(l, &before, &all)?;
        }
        Ok(all)
    }

    /// The elements of each register of the operands of `op`.
    pub fn items(&self, l: &Lower<'_, 'c>, op: Op<'c>) -> Lowered<Vec<Item<'c>>> {
        let operands = op.operands().map(|value| l.get(value)).collect::<Lowered<Vec<_>>>()?;
        by_register(&operands.iter().map(|values| &values[..]).collect::<Vec<_>>())
    }

    /// The elements' parts with these numbers, each as one plan of `plans` converts it, done together: by part, the
    /// values of all registers. The plans have their scratch memory side by side in that of `op`.
    pub fn convert(
        &self,
        l: &mut Lower<'_, 'c>,
        op: Op<'c>,
        plans: &[ConversionPlan],
        numbers: &[usize],
        items: &[Item<'c>],
    ) -> Lowered<Vec<Vec<Value<'c>>>> {
        let mut parts = Vec::with_capacity(plans.len());
        for ((plan, number), offset) in plans.iter().zip(numbers).zip(ConversionPlan::scratch_offsets(plans))
        {
            let scratch = if plan.shared_bytes() > 0 { Some(l.scratch_part(op, offset)?) } else { None };
            let values: Vec<Value<'c>> = items.iter().filter_map(|item| item.get(*number).copied()).collect();
            let words = to_words(l, &values, self.types[*number], plan.elem_bits)?;
            parts.push(exchange::Part { plan, words, scratch });
        }
        let converted = exchange::convert_together(l, plans, &parts)?;
        converted
            .iter()
            .zip(numbers)
            .map(|(words, number)| from_words(l, words, self.types[*number]))
            .collect()
    }

    /// All parts of the elements, converted.
    pub fn convert_all(
        &self,
        l: &mut Lower<'_, 'c>,
        op: Op<'c>,
        plans: &[ConversionPlan],
        items: &[Item<'c>],
    ) -> Lowered<Vec<Item<'c>>> {
        let numbers: Vec<usize> = (0..plans.len()).collect();
        let columns = self.convert(l, op, plans, &numbers, items)?;
        by_register(&columns.iter().map(|values| &values[..]).collect::<Vec<_>>())
    }

    /// `item` with `f` done on every 32-bit word of it.
    pub fn map_words(
        &self,
        l: &mut Lower<'_, 'c>,
        item: &[Value<'c>],
        mut f: impl FnMut(&mut Lower<'_, 'c>, Value<'c>) -> Lowered<Value<'c>>,
    ) -> Lowered<Item<'c>> {
        item.iter().zip(&self.types).map(|(value, ty)| map_words(l, *value, *ty, &mut f)).collect()
    }
}

/// Values of elements of type `ty` converted by a plan that has its scratch
/// memory `offset` bytes into that of `op`.
pub(super) fn convert<'c>(
    l: &mut Lower<'_, 'c>,
    op: Op<'c>,
    plan: &ConversionPlan,
    values: &[Value<'c>],
    ty: Type<'c>,
    offset: u64,
) -> Lowered<Vec<Value<'c>>> {
    let scratch = if plan.shared_bytes() > 0 { Some(l.scratch_part(op, offset)?) } else { None };
    let words = to_words(l, values, ty, plan.elem_bits)?;
    let words = exchange::convert(l, plan, &words, scratch)?;
    from_words(l, &words, ty)
}

/// An element of type `element` with `f` done on each of its 32-bit words, `i32`s.
pub(super) fn map_words<'c>(
    l: &mut Lower<'_, 'c>,
    value: Value<'c>,
    element: Type<'c>,
    f: &mut impl FnMut(&mut Lower<'_, 'c>, Value<'c>) -> Lowered<Value<'c>>,
) -> Lowered<Value<'c>> {
    let bits = word_bits(element).map_err(crate::emit::Failure::Unsupported)?;
    let (narrow, i32t) = (l.emit.int(bits), l.emit.i32());
    let word = to_word(l, value, element, bits)?;
    let word = match bits {
        64 => {
            let pair = l.emit.vector(2, i32t)?;
            let halves = l.emit.bitcast(word, pair)?;
            let mut out = l.emit.undef(pair)?;
            for i in 0..2 {
                let half = l.emit.extract_element(halves, i, i32t)?;
                let half = f(l, half)?;
                out = l.emit.insert_element(out, half, i)?;
            }
            l.emit.bitcast(out, narrow)?
        }
        32 => f(l, word)?,
        _ => {
            let wide = l.emit.value("llvm.zext", &[word], i32t, &[])?;
            let wide = f(l, wide)?;
            l.emit.value("llvm.trunc", &[wide], narrow, &[])?
        }
    };
    from_word(l, word, element)
}
