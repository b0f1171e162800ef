//! Operations that make, rename and regroup registers.

use crate::emit::internal;
use crate::emit::{Failure, Lowered, unsupported};
use crate::lower::{Handler, Lower};
use crate::registers::{Coords, rename};
use linear_layout::{Dim, LinearLayout, f2};
use mlir_host::ir::{Op, Value};
use mlir_host::match_op;
use ttopt_dialect::tt::ops::{
    ExpandDimsOp, GetNumProgramsOp, GetProgramIdOp, MakeRangeOp, ReshapeOp, TransOp,
};
use ttopt_dialect::ttg::layout::reorders_in_place;

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("tt.make_range", make_range),
    ("tt.splat", splat),
    ("tt.unsplat", unsplat),
    ("tt.expand_dims", expand_dims),
    ("tt.broadcast", broadcast),
    ("tt.trans", trans),
    ("tt.reshape", reshape),
    ("tt.join", join),
    ("tt.split", split),
    ("tt.cat", cat),
    ("tt.get_program_id", |l, op| grid(l, op, false)),
    ("ttg.warp_id", |l, op| {
        let (_, warp, _) = l.thread()?;
        l.set(op.result(0), [warp]);
        Ok(())
    }),
    ("tt.get_num_programs", |l, op| grid(l, op, true)),
];

fn make_range<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let layout = l.layout(op.result(0).ty())?;
    let start = MakeRangeOp::of(op).start();
    let mut values = l.indices(&layout, 0)?;
    if start != 0 {
        let start = l.emit.const_i32(start)?;
        for value in &mut values {
            *value = l.emit.add(*value, start)?;
        }
    }
    l.set(op.result(0), values);
    Ok(())
}

fn splat<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let value = l.scalar(op.operand(0))?;
    let n = l.num_values(op.result(0).ty())?;
    l.set(op.result(0), vec![value; n]);
    Ok(())
}

fn unsplat<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    // A tensor of one element: every register of every thread holds it.
    let values = l.get(op.operand(0))?;
    let Some(value) = values.first().copied() else { return unsupported("tensor without values") };
    l.set(op.result(0), vec![value]);
    Ok(())
}

/// Sets the result from registers of the operand that hold its elements;
/// `map` takes coordinates of the result to coordinates of the operand.
fn renamed<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, map: impl Fn(&[u64]) -> Coords) -> Lowered<()> {
    let (src, out) = (l.layout(op.operand(0).ty())?, l.layout(op.result(0).ty())?);
    let from = rename(&src, &out, map)
        .map_err(|err| Failure::Unsupported(format!("data would move between threads: {err}")))?;
    let values = l.get(op.operand(0))?;
    let picked: Option<Vec<Value<'c>>> =
        from.into_iter().map(|register| values.get(register).copied()).collect();
    let picked = picked.ok_or_else(|| Failure::Unsupported("register out of range".to_owned()))?;
    l.set(op.result(0), picked);
    Ok(())
}

fn shape<'c>(value: Value<'c>) -> Lowered<Vec<u64>> {
    let Some(tensor) = value.ty().as_tensor() else {
        return unsupported(format!("{} is not a tensor", value.ty()));
    };
    tensor
        .shape()
        .iter()
        .map(|size| u64::try_from(*size).map_err(|_| Failure::Unsupported("dynamic shape".to_owned())))
        .collect()
}

fn expand_dims<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Ok(axis) = usize::try_from(ExpandDimsOp::of(op).axis()) else { return internal("a negative axis") };
    renamed(l, op, |coords| coords.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, c)| *c).collect())
}

fn broadcast<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let sizes = shape(op.operand(0))?;
    renamed(l, op, |coords| {
        coords.iter().zip(&sizes).map(|(c, size)| if *size == 1 { 0 } else { *c }).collect()
    })
}

fn trans<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let order = TransOp::of(op).order();
    // Dimension i of the result is dimension order[i] of the operand.
    renamed(l, op, |coords| {
        let mut out = Coords::from_elem(0, coords.len());
        for (i, from) in order.iter().enumerate() {
            if let (Some(slot), Some(coord)) = (out.get_mut(*from as usize), coords.get(i)) {
                *slot = *coord;
            }
        }
        out
    })
}

/// Row-major position of `coords`; sizes are powers of two, so it is linear over F2.
fn flatten(coords: &[u64], sizes: &[u64]) -> u64 {
    coords.iter().zip(sizes).fold(0, |position, (coord, size)| position * size + coord)
}

fn unflatten(mut position: u64, sizes: &[u64]) -> Coords {
    let mut coords = Coords::from_elem(0, sizes.len());
    for (coord, size) in coords.iter_mut().zip(sizes).rev() {
        *coord = position % size;
        position /= size;
    }
    coords
}

fn reshape<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (from, to) = (shape(op.operand(0))?, shape(op.result(0))?);
    if ReshapeOp::of(op).allow_reorder().is_some() {
        // Any order will do: registers stay where they are, if that keeps each element.
        let (src, result) = (l.layout(op.operand(0).ty())?, l.layout(op.result(0).ty())?);
        if reorders_in_place(&src, &result) {
            let values = l.get(op.operand(0))?;
            l.set(op.result(0), values);
            return Ok(());
        }
    }
    renamed(l, op, |coords| unflatten(flatten(coords, &to), &from))
}

fn join<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (src, out) = (l.layout(op.operand(0).ty())?, l.layout(op.result(0).ty())?);
    let rank = shape(op.operand(0))?.len();
    let from = rename(&src, &out, |coords| coords[..rank].iter().copied().collect())
        .map_err(|err| Failure::Unsupported(format!("data would move between threads: {err}")))?;
    let (left, right) = (l.get(op.operand(0))?, l.get(op.operand(1))?);
    let last = linear_layout::Dim::out(rank);
    let threads = [linear_layout::Dim::LANE, linear_layout::Dim::WARP, linear_layout::Dim::BLOCK];
    if threads.iter().any(|dim| out.columns_of(*dim).iter().any(|column| column & out.out_mask(last) != 0)) {
        return unsupported("data would move between threads: the joined dimension is spread over threads");
    }
    let columns = out.columns_of(linear_layout::Dim::REGISTER);
    let picked: Vec<Value<'c>> = from
        .into_iter()
        .enumerate()
        .map(|(register, source)| {
            let word = linear_layout::f2::mul(columns, register as u64);
            if word & out.out_mask(last) == 0 { left[source] } else { right[source] }
        })
        .collect();
    l.set(op.result(0), picked);
    Ok(())
}

fn split<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (src, out) = (l.layout(op.operand(0).ty())?, l.layout(op.result(0).ty())?);
    let values = l.get(op.operand(0))?;
    for (half, result) in op.results().enumerate() {
        let last = linear_layout::Dim::out(shape(result)?.len());
        let columns = src.columns_of(linear_layout::Dim::REGISTER);
        let Some(bit) = columns.iter().position(|column| column & src.out_mask(last) != 0) else {
            return unsupported(
                "data would move between threads: the split dimension is spread over threads",
            );
        };
        // The registers of one half, as elements of the first half.
        let from = rename(&src, &out, |coords| coords.iter().copied().chain([0]).collect())
            .map_err(|err| Failure::Unsupported(format!("data would move between threads: {err}")))?;
        let flip = if half == 1 { 1usize << bit } else { 0 };
        let picked: Vec<Value<'c>> = from.into_iter().map(|register| values[register ^ flip]).collect();
        l.set(result, picked);
    }
    Ok(())
}

/// The order of the elements is unspecified: registers of the one tensor, then
/// those of the other, wherever that is one element for each of the result.
fn cat<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (half, out) = (l.layout(op.operand(0).ty())?, l.layout(op.result(0).ty())?);
    let threads = [Dim::LANE, Dim::WARP, Dim::BLOCK];
    let inputs = |layout: &LinearLayout, which: Option<u64>| -> Vec<u64> {
        let registers = layout.columns_of(Dim::REGISTER).iter().copied().chain(which);
        registers.chain(threads.iter().flat_map(|dim| layout.columns_of(*dim)).copied()).collect()
    };
    // The element of a thread's register, and which tensor it is of.
    let (from, to) = (inputs(&half, Some(1 << half.total_out_bits())), inputs(&out, None));
    let same_threads = threads.iter().all(|dim| half.in_bits(*dim) == out.in_bits(*dim));
    let agrees = same_threads
        && from.len() == to.len()
        && f2::rank(&from) == f2::rank(&to)
        && f2::kernel(&to).iter().all(|copies| f2::mul(&from, *copies) == 0);
    if !agrees {
        return unsupported(
            "the threads that hold replicas of the result are not those that hold replicas of the operands",
        );
    }
    let values = l.get_flat(op.operands())?;
    l.set(op.result(0), values);
    Ok(())
}

fn grid<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, size: bool) -> Lowered<()> {
    let axis = match_op!(op, {
        GetProgramIdOp(id) => id.axis(),
        GetNumProgramsOp(number) => number.axis(),
        _ => return internal("asks nothing about the grid"),
    }) as usize;
    if axis >= crate::target::GRID_DIMS {
        return unsupported("bad axis");
    }
    let (target, blocks) = (l.target, l.num_blocks());
    let value = if size {
        target.num_programs(&mut l.emit, axis, blocks)?
    } else {
        target.program_id(&mut l.emit, axis, blocks)?
    };
    l.set(op.result(0), vec![value]);
    Ok(())
}
