//! Atomic accesses to global memory.
//!
//! Of the threads that hold replicas of an element one acts; what it got reaches
//! the others through shared memory. An access that releases comes after what
//! all threads of the program did before, one that acquires before what they do
//! after: a barrier stands between.
//!
//! The elements of a tensor are not ordered among themselves. Where a thread accesses memory more than once, two fences order
//! all of its accesses, which are relaxed, and none waits for the one before it (PTX ISA, "Release and Acquire Patterns";
//! LLVM, "User Guide for AMDGPU Backend", "Memory Model").

use super::arith::computes;
use super::local;
use super::memory::{acts, as_costed, both, describe, plan, pointee_of};
use crate::emit::{Failure, ICmp, Lowered, internal, unsupported};
use crate::exchange;
use crate::lower::{Handler, Lower};
use crate::target::{AtomicAccess, AtomicElement, AtomicKind, BarrierMemory};
use crate::words::{from_words, to_word};
use linear_layout::Dim;
use linear_layout::plan::Scope;
use mlir_host::ir::{Attr, Op, Type, Value};
use mlir_host::upstream::IfOp;
use std::collections::HashMap;
use ttopt_dialect::tt::enums::{MemSemantic, MemSyncScope, RmwOp};
use ttopt_dialect::tt::ops::{AtomicCasOp, AtomicLoadOp, AtomicPollOp, AtomicRmwOp, AtomicStoreOp, FuncOp};
use ttopt_dialect::ttg::ops::LocalAtomicScatterRmwOp;
use ttopt_passes::is_private;
use ttopt_passes::plans;

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("tt.atomic_rmw", rmw),
    ("tt.atomic_cas", cas),
    ("tt.atomic_load", load),
    ("tt.atomic_store", store),
    ("tt.atomic_poll", poll),
    ("ttg.local_atomic_scatter_rmw", scatter),
];

/// What all atomic operations have.
struct Request<'c> {
    kind: AtomicKind,
    ptr: Value<'c>,
    mask: Option<Value<'c>>,
    operands: Vec<Value<'c>>,
    sem: MemSemantic,
    scope: MemSyncScope,
}

/// Refuses sums and orders of numbers of another kind: of the bits of floating-point numbers they would be something else.
fn computes_with(op: RmwOp, ty: Type<'_>) -> Lowered<()> {
    let element = ty.element();
    match (op, element.float_kind().is_some()) {
        (RmwOp::Fadd, false) => {
            unsupported(format!("'fadd' is for floating-point numbers, not for {element}"))
        }
        (RmwOp::Add | RmwOp::Max | RmwOp::Min | RmwOp::Umax | RmwOp::Umin, true) => {
            unsupported(format!("'{}' is for integers, not for {element}", op.keyword()))
        }
        _ => Ok(()),
    }
}

fn rmw<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let rmw = AtomicRmwOp::of(op);
    computes(op)?;
    computes_with(rmw.atomic_rmw_op(), op.result(0).ty())?;
    let kind = AtomicKind::ReadModifyWrite(rmw.atomic_rmw_op());
    let (sem, scope) = (rmw.sem(), rmw.scope());
    let request = Request { kind, ptr: rmw.ptr(), mask: rmw.mask(), operands: vec![rmw.val()], sem, scope };
    access(l, op, &request)
}

fn cas<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let cas = AtomicCasOp::of(op);
    let (sem, scope) = (cas.sem(), cas.scope());
    let operands = vec![cas.cmp(), cas.val()];
    let kind = AtomicKind::CompareExchange;
    access(l, op, &Request { kind, ptr: cas.ptr(), mask: None, operands, sem, scope })
}

fn load<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let load = AtomicLoadOp::of(op);
    let (sem, scope) = (load.sem(), load.scope());
    let kind = AtomicKind::Load;
    access(l, op, &Request { kind, ptr: load.ptr(), mask: load.mask(), operands: Vec::new(), sem, scope })
}

fn store<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let store = AtomicStoreOp::of(op);
    let (sem, scope) = (store.sem(), store.scope());
    let operands = vec![store.value()];
    access(
        l,
        op,
        &Request { kind: AtomicKind::Store, ptr: store.ptr(), mask: store.mask(), operands, sem, scope },
    )
}

fn acquires(sem: MemSemantic) -> bool {
    matches!(sem, MemSemantic::Acquire | MemSemantic::AcquireRelease)
}
fn releases(sem: MemSemantic) -> bool {
    matches!(sem, MemSemantic::Release | MemSemantic::AcquireRelease)
}

/// All threads of the program wait for each other, those of other blocks of
/// the cluster too.
fn wait_for_program(l: &mut Lower<'_, '_>) -> Lowered<()> {
    if l.num_blocks() > 1 { l.synchronize(Scope::Cluster) } else { l.barrier(BarrierMemory::All) }
}

/// Whether a kernel does nothing after `op` that other threads could see, or that could see what they do.
fn is_last(op: Op<'_>) -> bool {
    // Another block may follow one that ends in a branch.
    let leaves = |op: Op<'_>| !op.is_pure() || op.successors().len() > 0;
    let mut last = op;
    while !std::iter::successors(last.next(), |op| op.next()).any(leaves) {
        match last.parent() {
            Some(parent) if IfOp::cast(parent).is_some() => last = parent,
            parent => return parent.is_some_and(|op| FuncOp::cast(op).is_some() && !is_private(op)),
        }
    }
    false
}

/// What an access orders that nobody waits behind: nothing comes after it that could see what it acquires.
fn without_acquire(sem: MemSemantic) -> MemSemantic {
    if releases(sem) { MemSemantic::Release } else { MemSemantic::Relaxed }
}

/// Whether one of the conditions holds; one that is absent always does.
fn any<'c>(l: &mut Lower<'_, 'c>, conditions: &[Option<Value<'c>>]) -> Lowered<Option<Value<'c>>> {
    let Some(mut values) = conditions.iter().copied().collect::<Option<Vec<_>>>() else { return Ok(None) };
    values.dedup();
    let one = values.into_iter().map(Ok).reduce(|a, b| l.emit.or(a?, b?));
    one.transpose()
}

fn element_of(ty: Type<'_>, bits: u32) -> AtomicElement {
    match ty.float_kind() {
        Some(kind) => AtomicElement::Float(kind),
        None => AtomicElement::Int(bits),
    }
}

fn access<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>, request: &Request<'c>) -> Lowered<()> {
    let element = pointee_of(request.ptr)?;
    let bits = l.memory_bits(element)?;
    let wants = op.num_results() == 1 && !op.result(0).is_unused();
    let plan = plan(l, op)?;
    l.remark(op, || describe(&plan));
    let ptrs = l.get(request.ptr)?;
    let masks = request.mask.map(|mask| l.get(mask)).transpose()?;
    let operands = request.operands.iter().map(|value| l.get(*value)).collect::<Lowered<Vec<_>>>()?;
    let is_unseen = !wants && l.num_blocks() == 1 && is_last(op);
    let sem = if is_unseen { without_acquire(request.sem) } else { request.sem };
    let representative = acts(l, plan.duplicates)?;
    let guards = plan
        .accesses
        .iter()
        .map(|access| {
            let mask = masks.as_ref().map(|masks| masks[access.registers[0] as usize]);
            both(l, mask, representative)
        })
        .collect::<Lowered<Vec<_>>>()?;
    let fences = if guards.len() > 1 { Some(any(l, &guards)?) } else { None };
    if releases(sem) {
        wait_for_program(l)?;
        if let Some(acts) = fences {
            l.target.fence(&mut l.emit, acts, MemSemantic::Release, request.scope)?;
        }
    }
    let mut old: Vec<Option<Value<'c>>> = vec![None; plan.copies.len()];
    for (access, mask) in plan.accesses.iter().zip(guards) {
        let first = access.registers[0] as usize;
        let mut words = Vec::with_capacity(access.registers.len() * operands.len());
        for values in &operands {
            for register in &access.registers {
                words.push(to_word(l, values[*register as usize], element, bits)?);
            }
        }
        let request = AtomicAccess {
            kind: request.kind,
            ptr: ptrs[first],
            mask,
            operands: &words,
            element: element_of(element, bits),
            sem: if fences.is_some() { MemSemantic::Relaxed } else { sem },
            scope: request.scope,
            result: wants,
        };
        let values = match l.target.atomic(&mut l.emit, &request)? {
            Some(values) => values,
            None => by_llvm(l, &request)?,
        };
        for (register, value) in access.registers.iter().zip(values) {
            old[*register as usize] = Some(value);
        }
    }
    as_costed(&l.emit.take_global_accesses(), &plan)?;
    if let Some(acts) = fences.filter(|_| acquires(sem)) {
        // A reduction gives its thread nothing, so that a fence that only acquires does not wait for it.
        let order = if wants { MemSemantic::Acquire } else { MemSemantic::AcquireRelease };
        l.target.fence(&mut l.emit, acts, order, request.scope)?;
    }
    let old = match wants {
        true => plan.copies.iter().map(|register| old.get(*register as usize).copied().flatten()).collect(),
        false => Some(Vec::new()),
    };
    let Some(old) = old else { return internal("the plan leaves registers without a value") };
    let old = share(l, (op, 0), old, acquires(sem))?;
    if op.num_results() == 1 {
        let values = match old.is_empty() {
            // Nobody asks.
            true => {
                let ty = l.register_type(element)?;
                let undef = l.emit.undef(ty)?;
                vec![undef; plan.copies.len()]
            }
            false => from_words(l, &old, element)?,
        };
        l.set(op.result(0), values);
    }
    Ok(())
}

/// Brings words of a result of `op`, of one thread each, to the threads that hold replicas;
/// `wait` is for the threads to wait for each other.
pub(super) fn share<'c>(
    l: &mut Lower<'_, 'c>,
    (op, result): (Op<'c>, usize),
    words: Vec<Value<'c>>,
    wait: bool,
) -> Lowered<Vec<Value<'c>>> {
    let plan = match words.is_empty() {
        true => None,
        false => plans::shared(op, op.result(result), l.target.desc()).map_err(Failure::Unsupported)?,
    };
    match plan {
        Some(plan) => {
            let scratch = if plan.shared_bytes() > 0 { Some(l.scratch(op)?) } else { None };
            let memory = if wait { BarrierMemory::All } else { BarrierMemory::Shared };
            l.ordering(memory, |l| exchange::convert(l, &plan, &words, scratch))
        }
        None => {
            if wait {
                wait_for_program(l)?;
            }
            Ok(words)
        }
    }
}

/// The number of an operation in MLIR's llvm dialect.
pub(crate) fn llvm_operation(op: RmwOp) -> i64 {
    match op {
        RmwOp::Exchange => 0,
        RmwOp::Add => 1,
        RmwOp::And => 3,
        RmwOp::Or => 5,
        RmwOp::Xor => 6,
        RmwOp::Max => 7,
        RmwOp::Min => 8,
        RmwOp::Umax => 9,
        RmwOp::Umin => 10,
        RmwOp::Fadd => 11,
    }
}

/// The number of an order in MLIR's llvm dialect.
pub(crate) fn llvm_order(sem: MemSemantic) -> i64 {
    match sem {
        MemSemantic::Relaxed => 2,
        MemSemantic::Acquire => 4,
        MemSemantic::Release => 5,
        MemSemantic::AcquireRelease => 6,
    }
}

/// A combination that the target has no instruction for: LLVM makes a loop of
/// comparing exchanges.
fn by_llvm<'c>(l: &mut Lower<'_, 'c>, access: &AtomicAccess<'_, 'c>) -> Lowered<Vec<Value<'c>>> {
    let (AtomicKind::ReadModifyWrite(op), [word]) = (access.kind, access.operands) else {
        return unsupported(format!("atomic access of {} bits", access.element.bits()));
    };
    let ty = match (op, access.element) {
        (RmwOp::Fadd, AtomicElement::Float(kind)) => l.emit.float(kind),
        _ => word.ty(),
    };
    let ctx = l.emit.context();
    let attrs = [
        ("bin_op", Attr::int(ctx, 64, llvm_operation(op))),
        ("ordering", Attr::int(ctx, 64, llvm_order(access.sem))),
        ("syncscope", Attr::string(ctx, l.target.sync_scope(access.scope))),
    ];
    let none = l.emit.undef(word.ty())?;
    l.emit.note_global_access(access.element.bits());
    l.emit.guarded(access.mask, &[none], |e| {
        let operand = e.bitcast(*word, ty)?;
        let old = e.value("llvm.atomicrmw", &[access.ptr, operand], ty, &attrs)?;
        Ok(vec![e.bitcast(old, word.ty())?])
    })
}

/// Combines with the elements of a buffer in shared memory that indices name.
fn scatter<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let rmw = LocalAtomicScatterRmwOp::of(op);
    computes(op)?;
    computes_with(rmw.atomic_rmw_op(), op.result(0).ty())?;
    let kind = AtomicKind::ReadModifyWrite(rmw.atomic_rmw_op());
    let ty = rmw.values().ty();
    let (element, registers) = (ty.element(), l.layout(ty)?);
    let bits = l.memory_bits(element)?;
    let buffer = l.buffer(rmw.dst())?;
    let addresses = local::indexed(l, &buffer, rmw.indices(), local::axis_of(op)?)?;
    let (values, masks) = (l.get(rmw.values())?, rmw.mask().map(|mask| l.get(mask)).transpose()?);
    let mine = local::representative(l, &registers)?;
    // Registers with replicas of an element share one access.
    let mut done: HashMap<u64, Value<'c>> = HashMap::new();
    let mut old = Vec::with_capacity(addresses.len());
    for (register, address) in addresses.into_iter().enumerate() {
        let element_of_it = linear_layout::f2::mul(registers.columns_of(Dim::REGISTER), register as u64);
        if let Some(known) = done.get(&element_of_it) {
            old.push(*known);
            continue;
        }
        let word = to_word(l, values[register], element, bits)?;
        let access = AtomicAccess {
            kind,
            ptr: address,
            mask: both(l, masks.as_ref().map(|masks| masks[register]), mine)?,
            operands: &[word],
            element: element_of(element, bits),
            sem: MemSemantic::Relaxed,
            scope: MemSyncScope::Cta,
            result: true,
        };
        let [value] = by_llvm(l, &access)?[..] else { return internal("an access without a result") };
        // It was one of shared memory.
        l.emit.take_global_accesses();
        done.insert(element_of_it, value);
        old.push(value);
    }
    if op.result(0).is_unused() {
        let none = l.register_type(element)?;
        let undef = l.emit.undef(none)?;
        l.set(op.result(0), vec![undef; values.len()]);
        return Ok(());
    }
    let old = share(l, (op, 0), old, false)?;
    let values = from_words(l, &old, element)?;
    l.set(op.result(0), values);
    Ok(())
}

/// Loads each element until it has the expected value or time is up.
fn poll<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let poll = AtomicPollOp::of(op);
    let (sem, scope) = (poll.sem(), poll.scope());
    let element = pointee_of(poll.ptr())?;
    let bits = l.memory_bits(element)?;
    let plan = plan(l, op)?;
    let (ptrs, expected) = (l.get(poll.ptr())?, l.get(poll.expected())?);
    let timeout = poll.timeout().map(|timeout| l.scalar(timeout)).transpose()?;
    let i1 = l.emit.i1();
    let begin = match timeout {
        Some(_) => Some(l.target.nanoseconds(&mut l.emit)?),
        None => None,
    };
    let representative = acts(l, plan.duplicates)?;
    let mut found: Vec<Option<Value<'c>>> = vec![None; plan.copies.len()];
    for access in &plan.accesses {
        let register = access.registers[0] as usize;
        let want = to_word(l, expected[register], element, bits)?;
        let (again, late, done) = (l.new_block(&[])?, l.new_block(&[])?, l.new_block(&[i1])?);
        let (yes, no) = (l.emit.const_int(1, 1)?, l.emit.const_int(1, 0)?);
        match representative {
            Some(representative) => l.emit.cond_br(representative, (again, &[]), (done, &[no]))?,
            None => l.emit.br(again, &[], None)?,
        }
        l.emit.set_block(again);
        let load = AtomicAccess {
            kind: AtomicKind::Load,
            ptr: ptrs[register],
            mask: None,
            operands: &[],
            element: element_of(element, bits),
            sem,
            scope,
            result: true,
        };
        let got = match l.target.atomic(&mut l.emit, &load)?.as_deref() {
            Some([one]) => *one,
            _ => return unsupported(format!("atomic load of {bits} bits")),
        };
        let equal = l.emit.icmp(ICmp::Eq, got, want)?;
        l.emit.cond_br(equal, (done, &[yes]), (late, &[]))?;
        l.emit.set_block(late);
        match (begin, timeout) {
            (Some(begin), Some(timeout)) => {
                let now = l.target.nanoseconds(&mut l.emit)?;
                let spent = l.emit.same("llvm.sub", &[now, begin])?;
                let in_time = l.emit.icmp(ICmp::Ult, spent, timeout)?;
                l.emit.cond_br(in_time, (again, &[]), (done, &[no]))?;
            }
            _ => l.emit.br(again, &[], None)?,
        }
        l.emit.set_block(done);
        found[register] = done.args().next();
    }
    as_costed(&l.emit.take_global_accesses(), &plan)?;
    let found: Option<Vec<Value<'c>>> =
        plan.copies.iter().map(|register| found.get(*register as usize).copied().flatten()).collect();
    let Some(found) = found else { return internal("the plan leaves registers without a value") };
    let i1_element = op.result(0).ty().element();
    let words = found.iter().map(|value| to_word(l, *value, i1_element, 8)).collect::<Lowered<Vec<_>>>()?;
    let words = share(l, (op, 0), words, true)?;
    let values = from_words(l, &words, i1_element)?;
    l.set(op.result(0), values);
    Ok(())
}
