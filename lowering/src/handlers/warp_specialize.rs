//! `ttg.warp_specialize`: partitions run on worker warps, which begin with the kernel and wait until there is work
//! ([`crate::lower::workers`]).

use super::control::inline_region;
use crate::emit::{Failure, Lowered, internal};
use crate::lower::{Handler, Lower};
use crate::target::need;
use mlir_host::ir::{FloatKind, Op, Region, Type, Value};
use ttopt_dialect::ttg::ops::WarpSpecializeOp;
use ttopt_passes::thread_group::ThreadGroup;
use ttopt_passes::warp_groups::{CAPTURE_BYTES, Capture, RUNS_ONCE, Registers};

pub(super) const HANDLERS: &[(&str, Handler)] = &[("ttg.warp_specialize", warp_specialize)];

fn warp_specialize<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    need(l.target.warp_groups(), "warp specialization", l.target)?;
    let specialize = WarpSpecializeOp::of(op);
    let Some(partitions) = specialize.partitions() else { return internal("no partitions") };
    if partitions.partition_regions().next().is_none() {
        let results = inline_region(l, specialize.default_region(), &[])?;
        return l.set_flat(op.results(), &results);
    }
    let captures: Vec<(Value<'c>, Capture)> = partitions
        .explicit_captures()
        .map(|value| Ok((value, Capture::of(value).map_err(Failure::Unsupported)?)))
        .collect::<Lowered<_>>()?;
    write_captures(l, op, &captures)?;
    let (work, done) = l.begin_work(op.attr(RUNS_ONCE).is_some())?;
    let kernel = l.emit.block();

    let registers = Registers::of(op).map_err(Failure::Unsupported)?;
    let finished = l.new_block(&[])?;
    l.emit.set_block(work);
    workers_registers(l, registers.as_ref(), true)?;
    for region in specialize.partition_regions() {
        let Some(inside) = region.first_block().and_then(|block| block.first()) else {
            return internal("an empty partition");
        };
        let group = ThreadGroup::of(inside).map_err(Failure::Unsupported)?;
        let (mine, others) = (l.new_block(&[])?, l.new_block(&[])?);
        let is_mine = l.is_worker_of(&group)?;
        l.emit.cond_br(is_mine, (mine, &[]), (others, &[]))?;
        l.emit.set_block(mine);
        l.as_group(group, |l| partition(l, op, region, &captures))?;
        l.emit.br(finished, &[], None)?;
        l.emit.set_block(others);
    }
    l.emit.br(finished, &[], None)?;
    l.emit.set_block(finished);
    workers_registers(l, registers.as_ref(), false)?;
    l.emit.br(done, &[], None)?;

    l.emit.set_block(kernel);
    change_registers(l, registers.as_ref(), registers.as_ref().map(|given| given.own), true)?;
    let results = inline_region(l, specialize.default_region(), &[])?;
    l.emit.set_loc(op.loc());
    change_registers(l, registers.as_ref(), registers.as_ref().map(|given| given.own), false)?;
    l.end_work()?;
    l.set_flat(op.results(), &results)
}

/// Lowers a partition for the warps of its own.
fn partition<'c>(
    l: &mut Lower<'_, 'c>,
    op: Op<'c>,
    region: Region<'c>,
    captures: &[(Value<'c>, Capture)],
) -> Lowered<()> {
    let mut args = Vec::new();
    let mut place = 0;
    for (value, capture) in captures {
        match capture {
            Capture::Argument => args.extend(l.get(*value)?.iter()),
            Capture::Again => args.extend(l.lowered_again(*value)?.iter()),
            Capture::Words(_) => {
                for ty in l.flatten([value.ty()])? {
                    let at = l.scratch_part(op, place)?;
                    let word = l.target.load_shared(&mut l.emit, at, 1, 64)?;
                    let [word] = word[..] else { return internal("a word is loaded as several") };
                    args.push(from_word(l, word, ty)?);
                    place += CAPTURE_BYTES;
                }
            }
        }
    }
    inline_region(l, region, &args)?;
    l.emit.set_loc(op.loc());
    Ok(())
}

/// One thread of the default warps writes down what partitions capture.
fn write_captures<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, captures: &[(Value<'c>, Capture)]) -> Lowered<()> {
    let mut place = 0;
    for (value, _) in captures.iter().filter(|(_, capture)| matches!(capture, Capture::Words(_))) {
        for value in l.get(*value)?.iter() {
            let (word, at, writes) = (to_word(l, *value)?, l.scratch_part(op, place)?, l.is_first_thread()?);
            l.target.store_shared(&mut l.emit, at, &[word], Some(writes))?;
            place += CAPTURE_BYTES;
        }
    }
    Ok(())
}

/// A scalar as 64 bits.
fn to_word<'c>(l: &mut Lower<'_, 'c>, value: Value<'c>) -> Lowered<Value<'c>> {
    let (e, ty) = (&mut l.emit, value.ty());
    let i64t = e.i64();
    let bits = match (ty.int_bits(), ty.float_kind()) {
        (Some(64), _) => return Ok(value),
        (Some(_), _) => value,
        (None, Some(kind)) => {
            let int = e.int(kind.bits());
            let bits = e.bitcast(value, int)?;
            if kind == FloatKind::F64 {
                return Ok(bits);
            }
            bits
        }
        (None, None) => return e.value("llvm.ptrtoint", &[value], i64t, &[]),
    };
    e.value("llvm.zext", &[bits], i64t, &[])
}

/// The scalar of type `ty` that [`to_word`] made 64 bits of.
fn from_word<'c>(l: &mut Lower<'_, 'c>, word: Value<'c>, ty: Type<'c>) -> Lowered<Value<'c>> {
    let e = &mut l.emit;
    let bits = match (ty.int_bits(), ty.float_kind()) {
        (Some(bits), _) => bits,
        (None, Some(kind)) => kind.bits(),
        (None, None) => return e.value("llvm.inttoptr", &[word], ty, &[]),
    };
    let int = e.int(bits);
    let narrow = if bits == 64 { word } else { e.value("llvm.trunc", &[word], int, &[])? };
    if ty.int_bits().is_some() { Ok(narrow) } else { e.bitcast(narrow, ty) }
}

/// Gives every warp group of worker warps the registers of its partitions, or back what all began with.
fn workers_registers(l: &mut Lower<'_, '_>, registers: Option<&Registers>, gives: bool) -> Lowered<()> {
    let Some(given) = registers else { return Ok(()) };
    let all_alike = given.workers.windows(2).all(|pair| pair[0].1 == pair[1].1);
    if all_alike {
        return change_registers(l, registers, given.workers.first().map(|(_, number)| *number), gives);
    }
    let after = l.new_block(&[])?;
    for (group, number) in &given.workers {
        let (mine, others) = (l.new_block(&[])?, l.new_block(&[])?);
        let is_mine = l.is_worker_of(group)?;
        l.emit.cond_br(is_mine, (mine, &[]), (others, &[]))?;
        l.emit.set_block(mine);
        change_registers(l, registers, Some(*number), gives)?;
        l.emit.br(after, &[], None)?;
        l.emit.set_block(others);
    }
    l.emit.br(after, &[], None)?;
    l.emit.set_block(after);
    Ok(())
}

/// From the registers that a kernel begins with to `number`, or back.
fn change_registers(
    l: &mut Lower<'_, '_>,
    registers: Option<&Registers>,
    number: Option<u32>,
    gives: bool,
) -> Lowered<()> {
    let (Some(given), Some(number)) = (registers, number) else { return Ok(()) };
    let (from, to) = if gives { (given.at_start, number) } else { (number, given.at_start) };
    if from == to {
        return Ok(());
    }
    need(l.target.warp_groups(), "warp specialization", l.target)?.set_registers(&mut l.emit, to, to > from)
}
