//! `--tritongpu-reorder-instructions`: operations where they keep the fewest
//! registers alive.
//!
//! Conversions to layouts in which a thread holds as much as before, or more,
//! and loads from shared memory that nothing writes again, move down to their
//! first use in the basic block, never into a loop. What writes
//! registers to freshly allocated shared memory moves up to where the registers
//! are made, behind the loads that follow there: these are all under way before
//! the first is waited for. For an iter_arg that is the start of the iteration.
//! Transpositions, which are free, follow what they transpose.
//!
//! Several regions that copy one tensor from outside to shared memory, or convert it to the same layout, share the copy:
//! it is made before the first of them, and the tensor's registers are free from there on.
//!
//! Operands of dots that stay the same throughout a loop are read from
//! shared memory before it. In functions whose tensors take more registers than
//! a thread has they are read again in each iteration instead, and loads from
//! global memory move down to the last dot before their first use. What dots read of other buffers moves down to
//! the dot where a function is short of registers on the way: the assembler reads it in steps as it is multiplied, but
//! takes no read across a barrier. So does what they read before the other operand is converted through shared memory.
//!
//! Loads move down across operations at which a function is short of registers (`sink_loads`).
//!
//! Loads of few registers that wait for nothing move up across operations at which threads wait for each other (`loads_early`).
//!
//! Reductions where tensors take more registers than a thread has are marked to be done line by line
//! (`ttg.line_by_line`): lanes that share the lines among them need elements of all lines at once.

use crate::analysis::registers::{
    REGISTERS, RESERVED, is_element_by_element, is_short_of_registers, short_of_registers,
};
use crate::ir_util::{
    fills_constant_buffer, in_block, is_dot, is_loop, layout_of, operations_in_dominance_order,
};
use crate::loads_early::load_early;
use crate::machine::Machine;
use crate::plans::{LINE_BY_LINE, scratch_bytes};
use crate::rules::is_conversion;
use crate::shared_memory::allocate::needs_of;
use crate::shared_memory::buffers::Needs;
use crate::shared_memory::callees_first;
use crate::sink_loads::sink_loads;
use linear_layout::Dim;
use linear_layout::target::{TargetDesc, Vendor};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Op, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::match_op;
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::IrRewriter;
use ttopt_dialect::tt::ops::{FuncOp, LoadOp, ReduceOp, TransOp};
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::ops::{LocalAllocOp, LocalLoadOp};
use ttopt_dialect::ttg::types::MemDescType;

/// The pass.
pub static TRITONGPU_REORDER_INSTRUCTIONS: PassDef = PassDef {
    anchor: "builtin.module",
    ..PassDef::new(
        "tritongpu-reorder-instructions",
        "Move conversions to their first use, and writes to new shared memory to where the data is made",
        run,
    )
};

fn run(module: Op<'_>, _: &Options) -> PassResult {
    merge_in_regions(&operations_in_dominance_order(module));
    let ops = operations_in_dominance_order(module);
    // Users first, so that chains move down together.
    for op in ops.iter().rev().filter(|op| moves_down(**op)) {
        if let Some(user) = first_user(*op)
            && !is_there(*op, user)
        {
            op.move_before(user);
        }
    }
    for op in ops.iter().filter(|op| TransOp::cast(**op).is_some()) {
        move_after_operand(*op, |made, _| made);
    }
    for op in ops.iter().filter(|op| LocalAllocOp::cast(**op).is_some_and(|alloc| alloc.src().is_some())) {
        move_after_operand(*op, behind_loads);
        move_to_start(*op);
    }
    let machine = Machine::of(module)?;
    if let Some(target) = machine.target {
        let functions: Vec<_> = ops.iter().filter(|op| FuncOp::cast(**op).is_some()).collect();
        read_in_loops(module, machine.num_warps, &target);
        for function in functions {
            read_late(*function, machine.num_warps, &target);
            let short = short_of_registers(*function, machine.num_warps, &target);
            if short.is_empty() {
                load_early(*function, &target);
            } else {
                sink_loads(*function, short, machine.num_warps, &target);
            }
            mark_reductions(*function, machine.num_warps, &target);
        }
    }
    Ok(())
}

/// Merges copies to shared memory, and conversions to layouts in which a thread holds no more, that regions behind
/// each other make of one tensor. `ops` are in the order of dominance.
fn merge_in_regions(ops: &[Op<'_>]) {
    let mut copies: FastMap<_, Vec<Op<'_>>> = FastMap::default();
    let mut order = Vec::new();
    for op in ops {
        let shrinks = || is_conversion(*op) && registers(op.result(0)) <= registers(op.operand(0));
        if op.num_operands() != 1 || !fills_constant_buffer(*op) && !shrinks() {
            continue;
        }
        let same = copies.entry((op.name_id(), op.operand(0), op.result(0).ty(), op.attrs())).or_default();
        if same.is_empty() {
            order.push(*op);
        }
        same.push(*op);
    }
    let mut groups: FastMap<Op<'_>, Vec<Op<'_>>> =
        copies.into_values().map(|group| (group[0], group)).collect();
    for first in order {
        let group = groups.remove(&first).unwrap_or_default();
        let source = first.operand(0);
        let Some(block) = source.def_op().and_then(|made| made.block()).or_else(|| source.arg_block()) else {
            continue;
        };
        let mut inside = group.iter().filter_map(|op| in_block(*op, block).filter(|outer| outer != op));
        let Some(before) = inside.next() else { continue };
        if inside.next().is_none_or(|other| other == before) || inside.count() + 2 != group.len() {
            continue;
        }
        first.move_before(before);
        for op in &group[1..] {
            op.result(0).replace_all_uses_with(first.result(0));
            op.erase();
        }
    }
}

/// Reads operands again in each iteration in the functions that are short of registers and have the shared memory for it.
fn read_in_loops(module: Op<'_>, warps: u64, target: &TargetDesc) {
    // Recursion is reported where memory is allocated.
    let Ok(functions) = callees_first(module) else { return };
    let mut callees = FastMap::default();
    let calls = functions.len() > 1;
    for function in functions {
        read_in_loops_of(function, warps, &callees, target);
        if calls
            && let Some(name) = function.attr("sym_name").and_then(Attr::as_str)
            && let Some(needs) = needs_of(function, &callees, target)
        {
            callees.insert(name.to_owned(), needs);
        }
    }
}

/// Reads operands again in each iteration where `function`, whose CTAs have `warps` warps, is short of registers, if no CTA loses
/// its place by it although their buffers then stay throughout the loops. Other loads wait, too.
fn read_in_loops_of(function: Op<'_>, warps: u64, callees: &FastMap<String, Needs>, target: &TargetDesc) {
    let (mut reads, mut loads) = (Vec::new(), Vec::new());
    function.walk(&mut |op| {
        match_op!(op, {
            LocalLoadOp if moves_down(op) => reads.push(op),
            LoadOp => loads.push(op),
            _ => {},
        });
        Walk::Advance
    });
    // What it leaves LLVM to spill is not known well enough on AMD GPUs.
    let is_known = target.vendor == Vendor::Nvidia;
    reads.retain(|read| !loops_around_uses(*read).is_empty());
    if reads.is_empty() || !is_known || !is_short_of_registers(function, warps, target) {
        return;
    }
    let bytes = || needs_of(function, callees, target).map(|needs| needs.bytes);
    let Some(before) = bytes() else { return };
    let mut rewriter = IrRewriter::new(function.context());
    let mut again: Vec<(Op<'_>, Op<'_>)> = Vec::new();
    for read in &reads {
        for around in loops_around_uses(*read) {
            let inside = |user: Op<'_>| user.parent() == Some(around);
            let users: Vec<_> = read.result(0).uses().filter(|(user, _)| inside(*user)).collect();
            let Some(first) = users.iter().map(|(user, _)| *user).reduce(earlier) else { continue };
            rewriter.set_before(first);
            let made = rewriter.clone_op(*read);
            users.into_iter().for_each(|(user, i)| user.set_operand(i, made.result(0)));
            again.push((made, *read));
        }
    }
    // Two CTAs hide each other's latency, as far as registers leave room for both.
    let room = REGISTERS / (256 * warps * u64::from(target.lanes)).max(1);
    let fit = |bytes: u64| {
        let ctas = (target.shared_bytes + RESERVED) / (bytes + RESERVED);
        ctas.min(room).min(2)
    };
    let unused = |read: &&Op<'_>| read.result(0).uses().next().is_none();
    let idle: Vec<Op<'_>> = reads.iter().filter(unused).copied().collect();
    let fits = bytes().is_some_and(|after| after <= target.shared_bytes && fit(after) >= fit(before));
    if !fits {
        for (made, read) in again {
            made.result(0).replace_all_uses_with(read.result(0));
            made.erase();
        }
        return;
    }
    idle.into_iter().for_each(Op::erase);
    loads.into_iter().rev().for_each(move_behind_dots);
}

/// Marks the reductions of `function`, whose CTAs have `warps` warps, that are done line by line.
fn mark_reductions(function: Op<'_>, warps: u64, target: &TargetDesc) {
    let mut reductions = Vec::new();
    function.walk(&mut |op| {
        reductions.extend(finishes_lines(op).then_some(op));
        Walk::Advance
    });
    if reductions.is_empty() {
        return;
    }
    let short: FastSet<_> = short_of_registers(function, warps, target).into_iter().collect();
    for op in reductions.into_iter().filter(|op| short.contains(op)) {
        op.set_attr(LINE_BY_LINE, Attr::unit(op.context()));
    }
}

/// Whether `op` is a reduction whose results are combined with what was computed element by element before it: once a
/// line is reduced its elements are used, and no others wait for them.
fn finishes_lines(op: Op<'_>) -> bool {
    let source = ReduceOp::cast(op).and_then(|_| op.operand(0).ty().as_tensor());
    let Some(source) = source else { return false };
    let is_element = |value: Value<'_>| {
        let made = value.def_op().filter(|made| made.block() == op.block() && is_element_by_element(*made));
        made.is_some_and(|made| made.is_before_in_block(op))
            && value.ty().as_tensor().is_some_and(|ty| ty.shape() == source.shape())
    };
    let (mut open, mut seen): (Vec<_>, FastSet<_>) = (op.results().collect(), FastSet::default());
    while let Some(value) = open.pop() {
        for (user, _) in value.uses() {
            let same = user.block() == op.block() && is_element_by_element(user);
            if !same || !seen.insert(user) {
                continue;
            }
            if user.operands().any(is_element) {
                return true;
            }
            open.extend(user.results());
        }
    }
    false
}

/// Moves a load down to the last of several dots before its first use, where nothing between writes memory
/// that it could read: that dot hides its latency.
fn move_behind_dots(load: Op<'_>) {
    let Some(user) = first_user(load) else { return };
    let between = || std::iter::successors(load.next(), |at| at.next()).take_while(|at| *at != user);
    let Some(dot) = between().filter(|op| is_dot(*op)).last() else { return };
    let passes =
        |op: Op<'_>| op.is_memory_effect_free() || is_one_of!(op, LoadOp | LocalAllocOp | LocalLoadOp);
    let keeps_order = |load: LoadOp<'_>| load.is_volatile();
    let crossed = || between().take_while(|at| *at != dot);
    if LoadOp::cast(load).is_some_and(|load| !keeps_order(load))
        && crossed().any(is_dot)
        && crossed().all(passes)
    {
        load.move_before(dot);
    }
}

/// The loops behind `read`, in its block, in whose body the only uses of its result are operands of dots
/// that run in each iteration.
fn loops_around_uses<'c>(read: Op<'c>) -> Vec<Op<'c>> {
    let mut loops: Vec<Op<'c>> = Vec::new();
    let mut others = Vec::new();
    for (user, _) in read.result(0).uses() {
        let Some(around) = user.parent().filter(|op| is_loop(*op) && op.block() == read.block()) else {
            others.extend(read.block().and_then(|block| in_block(user, block)));
            continue;
        };
        if !is_dot(user) {
            others.push(around);
        } else if !loops.contains(&around) {
            loops.push(around);
        }
    }
    loops.retain(|op| !others.contains(op));
    loops
}

/// Which of two operations of a block comes first.
fn earlier<'c>(a: Op<'c>, b: Op<'c>) -> Op<'c> {
    if b.is_before_in_block(a) { b } else { a }
}

/// Whether `op` needs fewer registers the later it comes, or no more.
fn moves_down(op: Op<'_>) -> bool {
    match LocalLoadOp::cast(op) {
        Some(load) => load.src().def_op().is_some_and(fills_constant_buffer),
        None => is_conversion(op) && registers(op.result(0)) >= registers(op.operand(0)),
    }
}

/// Whether nothing but conversions and what moves down is between `op` and `user`: then the order of those stays.
fn is_there<'c>(op: Op<'c>, user: Op<'c>) -> bool {
    let mut between = std::iter::successors(op.next(), |at| at.next()).take_while(|at| *at != user);
    between.all(|at| is_conversion(at) || moves_down(at))
}

/// Elements that each thread holds.
fn registers(value: Value<'_>) -> Option<u64> {
    let shape = value.ty().as_tensor()?.shape();
    to_linear_layout(layout_of(value)?, &shape).ok()?.in_size(Dim::REGISTER)
}

/// The first operation of the block of `op` that uses its result, or has a use inside.
pub fn first_user<'c>(op: Op<'c>) -> Option<Op<'c>> {
    let block = op.block()?;
    let users = op.result(0).uses().filter_map(|(user, _)| in_block(user, block));
    users.reduce(earlier)
}

/// Moves `op` to where its first operand is made, in the same block: behind what `place` names for that and `op`.
fn move_after_operand<'c>(op: Op<'c>, place: impl Fn(Op<'c>, Op<'c>) -> Op<'c>) {
    let Some(made) = op.operand(0).def_op() else { return };
    let others =
        op.operands().skip(1).all(|other| other.def_op().is_none_or(|def| def.block() != op.block()));
    if made.block() == op.block() && others {
        op.move_after(place(made, op));
    }
}

/// Moves `op`, which writes an iter_arg to new shared memory, to the start of the iteration, behind the loads there.
fn move_to_start(op: Op<'_>) {
    let Some(block) = op.block().filter(|block| op.operand(0).arg_block() == Some(*block)) else { return };
    if op.num_operands() != 1 || !block.parent().is_some_and(is_loop) {
        return;
    }
    if let Some(last) = loads_before(block.first(), op) {
        op.move_after(last);
    } else if let Some(first) = block.first().filter(|first| *first != op) {
        op.move_before(first);
    }
}

/// Moves what dots of `function` read of buffers that nobody uses any more down to the dots, across operations at which it is
/// short of registers. Its CTAs have `warps` warps.
fn read_late(function: Op<'_>, warps: u64, target: &TargetDesc) {
    let mut reads = Vec::new();
    function.walk(&mut |op| {
        reads.extend(LocalLoadOp::cast(op).map(|read| (op, read.src())));
        Walk::Advance
    });
    reads.retain(|(read, buffer)| {
        let made = LocalAllocOp::defining(*buffer).and_then(|_| buffer.def_op());
        let multiplied = |(user, i): (Op<'_>, usize)| is_dot(user) && i < 2 && user.block() == read.block();
        made.is_some_and(|made| made.block() == read.block())
            && is_last_use(*buffer, *read)
            && read.result(0).uses().all(multiplied)
    });
    if reads.is_empty() {
        return;
    }
    let short: FastSet<Op<'_>> = short_of_registers(function, warps, target).into_iter().collect();
    for (read, _) in reads {
        let Some(dot) = first_user(read) else { continue };
        let way = || std::iter::successors(read.next(), |at| at.next()).take_while(|at| *at != dot);
        // Whoever arrives at a barrier may mean that all is read.
        let passes =
            |at: Op<'_>| at.is_memory_effect_free() || is_one_of!(at, LoadOp | LocalAllocOp | LocalLoadOp);
        // What moves down is there but for what is converted behind it, and needs its registers across barriers alone.
        let has_barriers =
            |at: Op<'_>| is_conversion(at) && scratch_bytes(at, target).is_ok_and(|bytes| bytes > 0);
        let is_late = moves_down(read) && !way().any(has_barriers);
        if !is_late && way().any(|at| short.contains(&at)) && way().all(passes) {
            read.move_before(dot);
        }
    }
}

/// Whether nobody uses `buffer`, or a part of it, behind `read`.
fn is_last_use(buffer: Value<'_>, read: Op<'_>) -> bool {
    buffer.uses().all(|(user, _)| {
        let before = user.block() == read.block() && user.is_before_in_block(read);
        let unused = |part: Value<'_>| MemDescType::cast(part.ty()).is_none() || is_last_use(part, read);
        user == read || before && user.results().all(unused)
    })
}

/// The last load, or write to new shared memory, between `made` and `op` that only pure operations are before; `made`, if there is none.
fn behind_loads<'c>(made: Op<'c>, op: Op<'c>) -> Op<'c> {
    loads_before(made.next(), op).unwrap_or(made)
}

/// The last load, or write to new shared memory, from `first` to `op` that only pure operations are before.
fn loads_before<'c>(first: Option<Op<'c>>, op: Op<'c>) -> Option<Op<'c>> {
    let mut last = None;
    for at in std::iter::successors(first, |at| at.next()).take_while(|at| *at != op) {
        if is_one_of!(at, LoadOp | LocalAllocOp) {
            last = Some(at);
        } else if !at.is_pure() || is_conversion(at) || at.num_regions() > 0 {
            break;
        }
    }
    last
}
