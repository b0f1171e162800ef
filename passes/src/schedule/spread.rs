//! `--tritonamdgpu-spread-accesses`: accesses to memory are issued between the matrix instructions of a loop, evenly.
//!
//! With one wave on a SIMD nobody multiplies while it issues a row of accesses, and where they come all at once their unit is busy for
//! a while and idle for the rest of an iteration. The schedule marks loops ([`Step::Spread`](super::plan::Step::Spread)) that do nothing
//! but load, store, read and multiply. Here an iteration becomes a list of [`Item`]s, with the numbers of instructions of their plans,
//! and [`groups`] says in which order matrix instructions and accesses are issued. That is written behind the iteration for LLVM's
//! scheduler (LLVM, "User Guide for AMDGPU Backend", llvm.amdgcn.sched.group.barrier), which keeps it as far as dependences allow.
//!
//! Order:
//!
//! * reads and stores of shared memory stay in order, and so do loads; between two barriers loads come between reads and stores;
//! * what a dot reads is issued before its first instruction, earlier by the latency of shared memory where there is time, and so
//!   is what a barrier waits for;
//! * within that, as many matrix instructions as possible lie between two accesses: between (0, 0) and (accesses, matrix instructions) of
//!   a part of an iteration the straight line, bent where something is needed sooner.

use super::source::body;
use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::analysis::registers::simds;
use crate::buffer_accesses::{BUFFER, SCALAR};
use crate::buffer_plans;
use crate::machine;
use crate::plans::{self, scratch_bytes};
use crate::schedule::pass::PINNED;
use linear_layout::plan::Dot;
use linear_layout::target::{Direction, TargetDesc};
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::match_op;
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::IrRewriter;
use mlir_host::upstream::ForOp;
use std::collections::VecDeque;
use ttopt_dialect::tt::ops::{DotOp, LoadOp};
use ttopt_dialect::ttg::ops::{
    AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, BarrierOp, LocalAllocOp, LocalLoadOp, LocalStoreOp,
};
use ttopt_dialect::ttg::types::MemDescType;

/// On loops whose accesses to memory are to be spread between their matrix instructions.
pub const SPREAD: &str = "ttg.spread";

/// The pass.
pub static TRITONAMDGPU_SPREAD_ACCESSES: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["rocdl"],
    ..PassDef::new(
        "tritonamdgpu-spread-accesses",
        "Say in which order LLVM is to issue the matrix instructions and accesses to memory of marked loops",
        run,
    )
};

/// Instructions that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Multiply matrices.
    Matrix,
    /// Read shared memory.
    Read,
    /// Write shared memory from registers.
    Store,
    /// Load from global memory, to registers or to shared memory.
    Load,
}

impl Unit {
    /// What LLVM calls it.
    fn mask(self) -> i64 {
        match self {
            Unit::Matrix => 0x8,
            Unit::Load => 0x20,
            Unit::Read => 0x100,
            Unit::Store => 0x200,
        }
    }
}

/// Of `llvm.amdgcn.sched.barrier`: that matrix instructions may cross it.
const MATRIX_MAY_CROSS: i64 = 0x8;

/// Something that an iteration does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A dot of so many instructions, and the items that read its operands in the same iteration.
    Dot(u32, Vec<usize>),
    /// So many accesses.
    Access(Unit, u32),
    /// A barrier: no access crosses it.
    Barrier,
    /// Dots that come before it are issued before what comes behind.
    Issued,
}

/// So many instructions of a unit, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The unit.
    pub unit: Unit,
    /// How many.
    pub count: u32,
}

/// An access, and how many matrix instructions of its part may come before it at most.
#[derive(Clone, Copy)]
struct Access {
    unit: Unit,
    deadline: u64,
}

/// The order in which the instructions of `items` are issued, where a read takes as long as `latency` matrix instructions.
pub fn groups(items: &[Item], latency: u64) -> Vec<Group> {
    let mut order = Order::default();
    let mut part = 0;
    while part < items.len() {
        let issued = |item: &Item| *item == Item::Issued;
        let end = items[part..].iter().position(issued).map_or(items.len(), |at| part + at);
        order.add(items, part..end, latency);
        part = end + 1;
    }
    order.groups
}

#[derive(Default)]
struct Order {
    groups: Vec<Group>,
}

impl Order {
    /// A part of an iteration, behind those before it.
    fn add(&mut self, items: &[Item], part: std::ops::Range<usize>, latency: u64) {
        let matrix = |item: &Item| if let Item::Dot(count, _) = item { u64::from(*count) } else { 0 };
        let all: u64 = items[part.clone()].iter().map(matrix).sum();
        // A barrier behind this part waits for what is read.
        let last = if part.end == items.len() { all } else { all.saturating_sub(latency) };
        // Before how many matrix instructions of this part an item comes at the latest.
        let deadline = |at: usize| {
            let mut before = 0u64;
            for item in &items[part.clone()] {
                match item {
                    Item::Dot(_, needs) if needs.contains(&at) => {
                        return before.saturating_sub(latency).min(last);
                    }
                    other => before += matrix(other),
                }
            }
            last
        };
        let (mut accesses, mut local, mut loads) = (Vec::new(), VecDeque::new(), VecDeque::new());
        for at in part.clone() {
            match &items[at] {
                Item::Access(unit, count) => {
                    let access = Access { unit: *unit, deadline: deadline(at) };
                    let queue = if *unit == Unit::Load { &mut loads } else { &mut local };
                    queue.extend(std::iter::repeat_n(access, *count as usize));
                }
                Item::Barrier => mix(&mut accesses, &mut local, &mut loads),
                Item::Dot(..) | Item::Issued => {}
            }
        }
        mix(&mut accesses, &mut local, &mut loads);
        let mut soonest = last;
        for access in accesses.iter_mut().rev() {
            soonest = soonest.min(access.deadline);
            access.deadline = soonest;
        }
        let mut issued = 0;
        for (access, place) in accesses.iter().zip(places(&accesses)) {
            self.push(Unit::Matrix, place - issued);
            issued = place;
            self.push(access.unit, 1);
        }
        self.push(Unit::Matrix, all - issued);
    }

    fn push(&mut self, unit: Unit, count: u64) {
        let count = count as u32;
        match self.groups.last_mut() {
            _ if count == 0 => {}
            Some(last) if last.unit == unit => last.count += count,
            _ => self.groups.push(Group { unit, count }),
        }
    }
}

/// Puts `loads` between the accesses of `local`, evenly, behind `accesses`.
fn mix(accesses: &mut Vec<Access>, local: &mut VecDeque<Access>, loads: &mut VecDeque<Access>) {
    let (all, of_loads) = (local.len() + loads.len(), loads.len());
    let mut taken = 0;
    for i in 0..all {
        // What a load replaces is stored before it.
        let due = (i + 1) * of_loads / all;
        let next = if due > taken { loads.pop_front().inspect(|_| taken += 1) } else { None };
        accesses.extend(next.or_else(|| local.pop_front()));
    }
}

/// Behind how many matrix instructions each access comes. Deadlines ascend, and are kept.
fn places(accesses: &[Access]) -> Vec<u64> {
    let mut places: Vec<u64> = Vec::with_capacity(accesses.len());
    let mut from = 0;
    while places.len() < accesses.len() {
        let done = places.len();
        let count_and_distance =
            |end: usize| ((end + 1 - done) as u64, accesses[end].deadline.saturating_sub(from));
        // For which of them most accesses have to be issued for each matrix instruction; the last one of equals.
        let steeper = |a: (u64, u64), b: (u64, u64)| a.0 * b.1 >= b.0 * a.1;
        let mut end = done;
        for next in done + 1..accesses.len() {
            if steeper(count_and_distance(next), count_and_distance(end)) {
                end = next;
            }
        }
        let (count, distance) = count_and_distance(end);
        places.extend((1..=count).map(|i| from + (i * distance).div_ceil(count)));
        from += distance;
    }
    places
}

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let mut marked = Vec::new();
    module.walk(&mut |op| {
        if ForOp::cast(op).is_some() && op.attr(SPREAD).is_some() {
            marked.push(op);
        }
        Walk::Advance
    });
    if marked.is_empty() {
        return Ok(());
    }
    let target = machine::target(module)?;
    let axis = AxisInfoAnalysis::new(module);
    for op in marked {
        op.remove_attr(SPREAD);
        let Some((block, end)) = body(op) else { continue };
        let inside: Vec<Op<'_>> = block.ops().filter(|other| *other != end).collect();
        let has = |is: fn(&Op<'_>) -> bool| inside.iter().any(is);
        // Waits for copies count loads that are pinned.
        if has(|op| LoadOp::cast(*op).is_some()) && has(|op| AsyncCopyGlobalToLocalOp::cast(*op).is_some()) {
            continue;
        }
        let Some(items) = items(&inside, &axis, &target) else { continue };
        // Loads have their places by groups.
        inside.iter().filter(|op| LoadOp::cast(**op).is_some()).for_each(|op| _ = op.remove_attr(PINNED));
        let mut rewriter = IrRewriter::new(op.context());
        rewriter.set_before(end);
        for Group { unit, count } in groups(&items, latency(&inside, &target)) {
            let number = |value: i64| Attr::int(op.context(), 32, value);
            let attrs =
                [("mask", number(unit.mask())), ("size", number(count.into())), ("groupId", number(0))];
            rewriter.generic("rocdl.sched.group.barrier", op.loc(), &[], &[] as &[Type<'_>], &attrs)?;
        }
    }
    Ok(())
}

/// How many matrix instructions of a SIMD take as long as a read of shared memory.
fn latency(inside: &[Op<'_>], target: &TargetDesc) -> u64 {
    let dot = inside.iter().find_map(|op| plans::dot(DotOp::cast(*op)?, target).ok());
    let cycles = match dot.map(|plan| plan.dot) {
        Some(Dot::Matrix { instruction, .. }) => instruction.cycles(target),
        _ => None,
    };
    cycles.map_or(1, |cycles| {
        (target.cost.shared_latency / (cycles * simds(target) as f64).max(1.0)).ceil() as u64
    })
}

/// What an iteration of `inside` does; `None` where that is not one block of instructions, or not only what there are items for.
fn items<'c>(inside: &[Op<'c>], axis: &AxisInfoAnalysis<'c>, target: &TargetDesc) -> Option<Vec<Item>> {
    let (mut items, mut readers) = (Vec::new(), Vec::new());
    for op in inside.iter().copied() {
        if op.num_regions() > 0 {
            return None;
        }
        let read = |read: LocalLoadOp<'c>| {
            let buffer = MemDescType::cast(read.src().ty())?;
            let plan = buffer_plans::access(read.result().ty(), buffer, Direction::Load, target).ok()?;
            Some(Item::Access(Unit::Read, plan.access.accesses.len() as u32))
        };
        let store = |value: Value<'c>, buffer: Value<'c>| {
            let plan =
                buffer_plans::access(value.ty(), MemDescType::cast(buffer.ty())?, Direction::Store, target);
            Some(Item::Access(Unit::Store, plan.ok()?.access.accesses.len() as u32))
        };
        let item = match_op!(op, {
            DotOp(dot) => {
                let plan = plans::dot(dot, target).ok()?;
                let needs = [dot.a(), dot.b()].into_iter().flat_map(|value| reads_of(value, &readers)).collect();
                match plan.dot {
                    Dot::Matrix { executions, .. } => Item::Dot(executions.len() as u32, needs),
                    _ => return None,
                }
            },
            LocalLoadOp(load) => {
                readers.push((op, items.len()));
                read(load)?
            },
            LocalStoreOp(local) => store(local.src(), local.dst())?,
            LocalAllocOp(alloc) => match alloc.src() {
                Some(value) => store(value, alloc.result())?,
                None => continue,
            },
            LoadOp(load) => {
                if op.attr(SCALAR).is_some() {
                    continue;
                }
                // Others are branches.
                if load.mask().is_some() && op.attr(BUFFER).is_none() {
                    return None;
                }
                Item::Access(Unit::Load, plans::access(op, axis, target).ok()?.accesses.len() as u32)
            },
            AsyncCopyGlobalToLocalOp(copy) => {
                let plan = plans::copy_accesses(copy, axis, target).ok()?;
                if !plans::is_always_issued(copy, &plan) {
                    return None;
                }
                Item::Access(Unit::Load, plan.accesses.len() as u32)
            },
            BarrierOp => Item::Barrier,
            AsyncCommitGroupOp => continue,
            _ => match op.name() {
                "rocdl.sched.barrier" => {
                    let mask = op.attr("mask").and_then(Attr::as_int)?;
                    if mask & MATRIX_MAY_CROSS != 0 {
                        continue;
                    }
                    Item::Issued
                }
                "amdg.async_wait" => Item::Barrier,
                _ if op.is_pure() && scratch_bytes(op, target) == Ok(0) => continue,
                _ => return None,
            },
        });
        items.push(item);
    }
    Some(items)
}

/// The items of `readers` that `value` is computed from in the same iteration.
fn reads_of<'c>(value: Value<'c>, readers: &[(Op<'c>, usize)]) -> Vec<usize> {
    let (mut found, mut open) = (Vec::new(), vec![value]);
    while let Some(value) = open.pop() {
        let Some(op) = value.def_op() else { continue };
        match readers.iter().find(|(reader, _)| *reader == op) {
            Some((_, item)) => found.push(*item),
            None if op.is_pure() && DotOp::cast(op).is_none() => open.extend(op.operands()),
            None => {}
        }
    }
    found
}
