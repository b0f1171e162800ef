//! mbarriers (PTX ISA, "mbarrier"), and barriers of all threads of a cluster.
//!
//! One lane of the first warp makes mbarriers and arrives at them; all threads wait. CTAs of a cluster that
//! share an mbarrier have it in the memory of the first of them: each arrives there, and the first waits.

use crate::emit::{ICmp, Lowered, unsupported};
use crate::lower::{Handler, Lower};
use crate::nvidia::tma::{Arrival, Bulk};
use crate::target::need;
use mlir_host::ir::{Attr, Op, Value};
use ttopt_dialect::ttg::attrs::encoding;
use ttopt_dialect::ttng::ops::*;

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("ttng.init_barrier", init_barrier),
    ("ttng.inval_barrier", inval_barrier),
    ("ttng.barrier_expect", expect),
    ("ttng.arrive_barrier", arrive),
    ("ttng.wait_barrier", wait),
    ("ttng.async_copy_mbarrier_arrive", arrive_after_copies),
    ("ttng.cluster_barrier", cluster_barrier),
    ("ttng.fence_mbarrier_init_release_cluster", |l, _| copies(l)?.publish_barriers(&mut l.emit)),
];

pub(super) fn copies(l: &Lower<'_, '_>) -> Lowered<Bulk> {
    need(l.target.desc().primitives.bulk_copy.then_some(Bulk), "bulk tensor copies", l.target)
}

/// Whether this is the one thread of the CTA that issues copies, further restricted to `condition`.
pub(super) fn issues<'c>(l: &mut Lower<'_, 'c>, condition: Option<Value<'c>>) -> Lowered<Value<'c>> {
    let elected = copies(l)?.elect(&mut l.emit)?;
    let first = first_warp(l)?;
    all_of(l, elected, [first, condition])
}

fn all_of<'c>(
    l: &mut Lower<'_, 'c>,
    start: Value<'c>,
    more: impl IntoIterator<Item = Option<Value<'c>>>,
) -> Lowered<Value<'c>> {
    more.into_iter().flatten().try_fold(start, |all, one| l.emit.and(one, all))
}

/// Whether this is the warp that issues; `None` where there is only one.
fn first_warp<'c>(l: &mut Lower<'_, 'c>) -> Lowered<Option<Value<'c>>> {
    if l.num_threads() <= l.target.desc().lanes {
        return Ok(None);
    }
    let (_, warp, _) = l.thread()?;
    let issuing = l.emit.const_i32(l.issuing_warp.into())?;
    l.emit.icmp(ICmp::Eq, warp, issuing).map(Some)
}

/// Emits `body` for the first warp only.
pub(super) fn in_first_warp<'c>(
    l: &mut Lower<'_, 'c>,
    body: impl FnOnce(&mut Lower<'_, 'c>) -> Lowered<()>,
) -> Lowered<()> {
    let Some(first) = first_warp(l)? else { return body(l) };
    let (inside, after) = (l.new_block(&[])?, l.new_block(&[])?);
    l.emit.cond_br(first, (inside, &[]), (after, &[]))?;
    l.emit.set_block(inside);
    body(l)?;
    l.emit.br(after, &[], None)?;
    l.emit.set_block(after);
    Ok(())
}

/// An mbarrier.
pub(super) struct Barrier<'c> {
    /// Its address in the memory of this CTA.
    pub at: Value<'c>,
    /// Bits of the number of a CTA in its cluster: CTAs that differ only in them share the mbarrier.
    shared_by: u64,
}

pub(super) fn barrier<'c>(l: &mut Lower<'_, 'c>, value: Value<'c>) -> Lowered<Barrier<'c>> {
    let buffer = l.buffer(value)?;
    let at = l.buffer_start(&buffer)?;
    let mut shared_by = 0;
    if l.num_blocks() > 1 {
        let cga = encoding(buffer.ty.encoding()).map_err(crate::emit::Failure::Unsupported)?.cga_layout();
        let bits = cga.iter().enumerate().filter(|(_, basis)| basis.iter().all(|at| *at == 0));
        shared_by = bits.map(|(bit, _)| 1 << bit).sum();
    }
    Ok(Barrier { at, shared_by })
}

pub(super) fn count(op: Op<'_>, name: &str) -> Lowered<u32> {
    match op.attr(name).and_then(Attr::as_int).and_then(|n| u32::try_from(n).ok()) {
        Some(count) => Ok(count),
        None => unsupported(format!("needs '{name}', a number of 32 bits without sign")),
    }
}

/// Arrivals that a barrier counts (PTX ISA, "mbarrier object").
const MOST_ARRIVALS: u32 = (1 << 20) - 1;

fn init_barrier<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (barrier, count) = (barrier(l, op.operand(0))?, count(op, "count")?);
    let blocks = 1u64 << barrier.shared_by.count_ones();
    let all = u32::try_from(u64::from(count) * blocks).ok().filter(|all| *all <= MOST_ARRIVALS);
    let Some(count) = all else {
        return unsupported(format!(
            "a barrier for {count} arrivals of each of {blocks} blocks, the most is {MOST_ARRIVALS} of all"
        ));
    };
    let leads = l.is_representative(0, 0, barrier.shared_by)?;
    let active = issues(l, leads)?;
    copies(l)?.init_barrier(&mut l.emit, barrier.at, count, active)
}

fn inval_barrier<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let barrier = barrier(l, op.operand(0))?;
    let leads = l.is_representative(0, 0, barrier.shared_by)?;
    let active = issues(l, leads)?;
    copies(l)?.inval_barrier(&mut l.emit, barrier.at, active)
}

/// Numbers that differ from `block` in `bits`, one for each of the first lanes of the first warp: the number
/// for this lane, and whether it has one.
fn one_each<'c>(l: &mut Lower<'_, 'c>, block: Value<'c>, bits: u64) -> Lowered<(Value<'c>, Value<'c>)> {
    let (lane, _, _) = l.thread()?;
    let columns: Vec<u64> = (0..64).map(|bit| 1 << bit).filter(|bit| bits & bit != 0).collect();
    let spread = l.spread_bits(lane, &columns)?;
    let (number, most) = (l.emit.xor(block, spread)?, l.emit.const_i32(1 << columns.len())?);
    let has = l.emit.icmp(ICmp::Ult, lane, most)?;
    let first = first_warp(l)?;
    Ok((number, all_of(l, has, [first])?))
}

/// Who arrives where: `from` selects the bits of a block's number that the one which arrives for it keeps,
/// `to` those in which the blocks that this one arrives at differ.
fn arrival<'c>(
    l: &mut Lower<'_, 'c>,
    barrier: &Barrier<'c>,
    from: Option<i64>,
    to: i64,
    condition: Option<Value<'c>>,
) -> Lowered<Arrival<'c>> {
    let (_, _, block) = l.thread()?;
    let all = u64::from(l.num_blocks()) - 1;
    let routed = from.map_or(0, |from| all & !(from as u64));
    let several = (routed | to as u64) & all;
    if several == 0 && barrier.shared_by == 0 {
        return Ok(Arrival { at: barrier.at, remote: false, active: issues(l, condition)? });
    }
    let (number, active) = if several == 0 {
        // The first of those that share it.
        (l.emit.mask(block, (all & !barrier.shared_by) as i64)?, issues(l, condition)?)
    } else {
        let (number, has) = one_each(l, block, several)?;
        let sends = l.is_representative(0, 0, routed)?;
        (number, all_of(l, has, [sends, condition])?)
    };
    let at =
        need(l.target.clusters(), "clusters", l.target)?.remote_shared(&mut l.emit, barrier.at, number)?;
    Ok(Arrival { at, remote: true, active })
}

fn expect<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (barrier, bytes) = (barrier(l, op.operand(0))?, count(op, "size")?);
    let expect = BarrierExpectOp::of(op);
    let condition = l.scalar(expect.pred())?;
    let arrival = arrival(l, &barrier, expect.from_cta(), 0, Some(condition))?;
    copies(l)?.expect(&mut l.emit, &arrival, bytes.into())
}

fn arrive<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (barrier, count) = (barrier(l, op.operand(0))?, count(op, "count")?);
    let arrive = ArriveBarrierOp::of(op);
    let condition = arrive.pred().map(|pred| l.scalar(pred)).transpose()?;
    // Without one it arrives at its own.
    let to = arrive.multicast_cta().unwrap_or(0);
    let arrival = arrival(l, &barrier, arrive.from_cta(), to, condition)?;
    copies(l)?.arrive(&mut l.emit, &arrival, count)
}

fn wait<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let wait = WaitBarrierOp::of(op);
    let (barrier, phase) = (barrier(l, op.operand(0))?, l.scalar(wait.phase())?);
    let condition = wait.pred().map(|pred| l.scalar(pred)).transpose()?;
    let active = match (l.is_representative(0, 0, barrier.shared_by)?, condition) {
        (Some(leads), Some(condition)) => Some(l.emit.and(leads, condition)?),
        (leads, condition) => leads.or(condition),
    };
    let cluster = l.num_blocks() > 1;
    copies(l)?.wait(&mut l.emit, barrier.at, phase, cluster, active)
}

fn arrive_after_copies<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let barrier = barrier(l, op.operand(0))?;
    if barrier.shared_by != 0 {
        return unsupported("copies of several blocks that complete at one barrier are not supported yet");
    }
    let counted = AsyncCopyMbarrierArriveOp::of(op).no_increment().is_some();
    copies(l)?.arrive_after_copies(&mut l.emit, barrier.at, counted)
}

fn cluster_barrier<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    l.cluster_barrier(ClusterBarrierOp::of(op).relaxed())
}
