//! Parts of tensors that stay with the threads that hold them.

use crate::emit::{Lowered, internal, unsupported};
use crate::lower::{Handler, Lower};
use linear_layout::{Dim, LinearLayout, f2};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Op, Value};
use ttopt_dialect::amdg::ops::{ConcatOp, ExtractSliceOp};

pub(super) const HANDLERS: &[(&str, Handler)] =
    &[("amdg.extract_slice", extract_slice), ("amdg.concat", concat)];

/// What each register of the first thread holds.
fn held(layout: &LinearLayout) -> Vec<Vec<u64>> {
    let columns = layout.columns_of(Dim::REGISTER);
    (0..1u64 << columns.len()).map(|register| layout.coords(f2::mul(columns, register)).to_vec()).collect()
}

/// The first register with each element of the first thread.
fn registers(layout: &LinearLayout) -> FastMap<Vec<u64>, usize> {
    let mut found = FastMap::default();
    for (register, at) in held(layout).into_iter().enumerate() {
        found.entry(at).or_insert(register);
    }
    found
}

/// For each dimension, a power of two beyond what threads add to the coordinates of the first one.
fn reach(layout: &LinearLayout) -> Vec<u64> {
    let threads = [Dim::LANE, Dim::WARP, Dim::BLOCK];
    let columns = threads.iter().flat_map(|dim| layout.columns_of(*dim));
    let mut reach = vec![0; layout.num_out_dims()];
    for column in columns {
        reach.iter_mut().zip(layout.coords(*column)).for_each(|(reach, at)| *reach |= at);
    }
    reach.into_iter().map(|bits: u64| (bits + 1).next_power_of_two()).collect()
}

fn extract_slice<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let slice = ExtractSliceOp::of(op);
    let (from, to) = (l.layout(slice.source().ty())?, l.layout(slice.result().ty())?);
    let offsets: Vec<u64> = slice.static_offsets().iter().map(|offset| offset.unsigned_abs()).collect();
    // Coordinates of other threads differ by XOR; an offset is added. Both are one where they share no bits.
    if let Some((offset, reach)) = offsets.iter().zip(reach(&to)).find(|(o, reach)| !o.is_multiple_of(*reach))
    {
        return unsupported(format!(
            "begins at {offset}, no multiple of {reach}: data would move between threads"
        ));
    }
    let (values, registers) = (l.get(slice.source())?, registers(&from));
    let find = |at: Vec<u64>| {
        let at: Vec<u64> = at.iter().zip(&offsets).map(|(at, offset)| at + offset).collect();
        registers.get(&at).and_then(|register| values.get(*register)).copied()
    };
    pick(l, op, &to, find)
}

fn concat<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let concat = ConcatOp::of(op);
    let sources: Vec<Value<'c>> = concat.sources().collect();
    let Some(first) = sources.first() else { return internal("is of nothing") };
    let (part, whole) = (l.layout(first.ty())?, l.layout(concat.result().ty())?);
    let size = |layout: &LinearLayout| -> Vec<u64> {
        layout.out_dims().map(|dim| layout.out_size(dim).unwrap_or(1)).collect()
    };
    let (part_size, whole_size) = (size(&part), size(&whole));
    let all = sources.iter().map(|source| l.get(*source)).collect::<Lowered<Vec<_>>>()?;
    let registers = registers(&part);
    // Sources are numbered in row-major order.
    let find = |at: Vec<u64>| {
        let number = at
            .iter()
            .zip(&part_size)
            .zip(&whole_size)
            .fold(0, |number, ((at, part), whole)| number * (whole / part) + at / part);
        let within: Vec<u64> = at.iter().zip(&part_size).map(|(at, part)| at % part).collect();
        let values = all.get(number as usize)?;
        registers.get(&within).and_then(|register| values.get(*register)).copied()
    };
    pick(l, op, &whole, find)
}

/// Gives `op`, of `layout`, registers that there are: for each place that a thread holds the one that `find` names.
fn pick<'c>(
    l: &mut Lower<'_, 'c>,
    op: Op<'c>,
    layout: &LinearLayout,
    find: impl Fn(Vec<u64>) -> Option<Value<'c>>,
) -> Lowered<()> {
    let picked: Option<Vec<Value<'c>>> = held(layout).into_iter().map(find).collect();
    match picked {
        Some(picked) => l.set(op.result(0), picked),
        None => return internal("takes what no register of the thread holds"),
    }
    Ok(())
}
