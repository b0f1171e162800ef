//! `--allocate-shared-memory-nv`: gives everything that needs shared memory a
//! place, so that what is occupied at the same time does not overlap.
//!
//! Buffers are placed one after the other at the lowest offset that is free of
//! all that they exclude; of several orders the one that needs least is taken.
//!
//! A function that is called has its own numbering from 0. A call is an
//! operation that needs as much as the callee; the callee gets its
//! `allocation.offset` as the address of its memory.

use super::buffers::{Buffers, Needs};
use super::liveness::Interference;
use super::{OFFSET, SIZE, callees_first, once};
use crate::analysis::flow_graph::FlowGraph;
use crate::ir_util::is_private;
use crate::machine;
use crate::warp_groups::{DISPATCH, DISPATCH_BYTES, needs_dispatch};
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Op};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use ttopt_dialect::ttg::module_attrs;

/// The pass.
pub static ALLOCATE_SHARED_MEMORY: PassDef = PassDef {
    anchor: "builtin.module",
    options: &[PassOption {
        name: "report",
        description: "Say as remarks what got which bytes",
        kind: OptionKind::Bool(false),
    }],
    ..PassDef::new(
        "allocate-shared-memory-nv",
        "Give buffers and operations their shared memory, as \"allocation.offset\" and \"ttg.shared\"",
        run,
    )
};

/// Offsets of buffers, and the bytes that all of them need together.
struct Placement {
    offsets: Vec<u64>,
    bytes: u64,
}

/// Places buffers in the given order, each at the lowest offset that is free; `None` where the order lacks one.
fn place(order: &[usize], needs: &[Needs], interference: &Interference) -> Option<Placement> {
    let mut offsets = vec![None; needs.len()];
    let mut bytes = 0;
    for &buffer in order {
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for (other, offset) in offsets.iter().enumerate() {
            if let Some(offset) = offset
                && interference.excludes(buffer, other)
            {
                taken.push((*offset, offset + needs[other].bytes));
            }
        }
        taken.sort_unstable();
        let mut offset = 0u64;
        for (start, end) in taken {
            if offset + needs[buffer].bytes <= start {
                break;
            }
            offset = offset.max(end.next_multiple_of(needs[buffer].alignment));
        }
        bytes = bytes.max(offset + needs[buffer].bytes);
        offsets[buffer] = Some(offset);
    }
    Some(Placement { offsets: offsets.into_iter().collect::<Option<_>>()?, bytes })
}

/// The best placement of a few orders: by size, by alignment and size, and as the program has them.
fn best_placement(needs: &[Needs], interference: &Interference) -> Option<Placement> {
    let program: Vec<usize> = (0..needs.len()).collect();
    let mut by_size = program.clone();
    by_size.sort_by_key(|i| std::cmp::Reverse(needs[*i].bytes));
    let mut by_alignment = by_size.clone();
    by_alignment.sort_by_key(|i| std::cmp::Reverse(needs[*i].alignment));
    let mut best = place(&by_size, needs, interference)?;
    for order in [by_alignment, program] {
        let other = place(&order, needs, interference)?;
        if other.bytes < best.bytes {
            best = other;
        }
    }
    Some(best)
}

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let target = machine::target(module)?;
    let functions = callees_first(module).map_err(|call| {
        call.error("calls a function that is being called: recursion needs shared memory without bound")
    })?;
    once::mark(&functions, &target);
    let mut callees = FastMap::default();
    let mut most = 0;
    for function in functions {
        let needs = allocate(function, &callees, &target, options.bool("report"))?;
        most = most.max(needs.bytes);
        if let Some(name) = function.attr("sym_name").and_then(Attr::as_str) {
            callees.insert(name.to_owned(), needs);
        }
    }
    let i32_attr = |value: u64| Attr::int(module.context(), 32, value as i64);
    module.set_attr(module_attrs::SHARED, i32_attr(most));
    Ok(())
}

/// The buffers of a function, and where they are.
pub(crate) struct Placed<'c> {
    /// What occupies shared memory.
    pub buffers: Buffers<'c>,
    /// What the function needs of it.
    pub needs: Needs,
    /// Where the word is that tells worker warps what to run, where they must be told: behind all buffers, in bytes.
    dispatch: Option<u64>,
    offsets: Vec<u64>,
    interference: Interference,
}

impl Placed<'_> {
    /// Buffers that are occupied at the same time, as numbers of buffers; first those with the most bytes.
    pub fn crowds(&self) -> Vec<Vec<usize>> {
        let mut crowds = self.interference.crowds();
        let bytes =
            |crowd: &Vec<usize>| crowd.iter().map(|buffer| self.buffers.all[*buffer].needs.bytes).sum();
        crowds.sort_by_cached_key(|crowd| std::cmp::Reverse::<u64>(bytes(crowd)));
        crowds
    }
}

/// Finds places for all buffers of `function`. `callees` has what functions that are called need, by symbol.
pub(crate) fn place_buffers<'c>(
    function: Op<'c>,
    callees: &FastMap<String, Needs>,
    target: &TargetDesc,
) -> Result<Placed<'c>, Reported> {
    find_places(function, callees, target).map_err(|(op, message)| op.error(message))
}

/// What all buffers of `function` need; `None` where there are no places for them, which is reported where memory is allocated.
pub(crate) fn needs_of(
    function: Op<'_>,
    callees: &FastMap<String, Needs>,
    target: &TargetDesc,
) -> Option<Needs> {
    find_places(function, callees, target).ok().map(|placed| placed.needs)
}

fn find_places<'c>(
    function: Op<'c>,
    callees: &FastMap<String, Needs>,
    target: &TargetDesc,
) -> Result<Placed<'c>, (Op<'c>, String)> {
    let graph = FlowGraph::new(function);
    let buffers = Buffers::new(&graph, callees, target)?;
    let needs: Vec<Needs> = buffers.all.iter().map(|buffer| buffer.needs).collect();
    let interference = Interference::new(&graph, &buffers);
    let placement = best_placement(&needs, &interference);
    let Placement { offsets, mut bytes } =
        placement.ok_or_else(|| (function, "internal error: a buffer is left without a place".to_owned()))?;
    let alignment = needs.iter().map(|needs| needs.alignment).max().unwrap_or(1);
    let dispatch = needs_dispatch(function).then(|| bytes.next_multiple_of(DISPATCH_BYTES));
    bytes = dispatch.map_or(bytes, |offset| offset + DISPATCH_BYTES);
    Ok(Placed { buffers, needs: Needs { bytes, alignment }, dispatch, offsets, interference })
}

/// Allocates the shared memory of one function.
fn allocate(
    function: Op<'_>,
    callees: &FastMap<String, Needs>,
    target: &TargetDesc,
    report: bool,
) -> Result<Needs, Reported> {
    let placed = place_buffers(function, callees, target)?;
    let Placed { buffers, needs, offsets, dispatch, .. } = &placed;
    if needs.bytes > target.shared_bytes {
        return Err(too_much(function, &placed, target));
    }
    let ctx = function.context();
    let number = |value: u64| Attr::int(ctx, 32, value as i64);
    match dispatch {
        Some(offset) => function.set_attr(DISPATCH, number(*offset)),
        None => _ = function.remove_attr(DISPATCH),
    }
    for (buffer, offset) in buffers.all.iter().zip(offsets) {
        buffer.op.set_attr(OFFSET, number(*offset));
        if buffer.is_scratch {
            buffer.op.set_attr(SIZE, number(buffer.needs.bytes));
        }
        if report {
            let Needs { bytes, alignment } = buffer.needs;
            let end = offset + bytes;
            let what = if buffer.is_scratch { "scratch" } else { "buffer" };
            buffer.op.remark(format!("{what} of {bytes} bytes at {offset} to {end}, aligned to {alignment}"));
        }
    }
    if report {
        let sum: u64 = buffers.all.iter().map(|buffer| buffer.needs.bytes).sum();
        let (bytes, count, all) = (needs.bytes, buffers.all.len(), target.shared_bytes);
        function.remark(format!(
            "{bytes} bytes of shared memory for {count} buffers of {sum} bytes together; {target} has {all}"
        ));
    }
    let is_called = is_private(function);
    if is_called && needs.bytes > 0 {
        function.set_attr(SIZE, number(needs.bytes));
    }
    Ok(*needs)
}

/// Reports that shared memory is too small, with what needs most of it.
fn too_much(function: Op<'_>, placed: &Placed<'_>, target: &TargetDesc) -> Reported {
    let Placed { buffers, needs, offsets, .. } = placed;
    let mut largest: Vec<usize> = (0..buffers.all.len()).collect();
    largest.sort_by_key(|i| std::cmp::Reverse(buffers.all[*i].needs.bytes));
    let notes: Vec<_> = largest
        .into_iter()
        .take(3)
        .map(|i| {
            let buffer = &buffers.all[i];
            let (name, bytes) = (buffer.op.name(), buffer.needs.bytes);
            (buffer.op.loc(), format!("{name} needs {bytes} bytes, at {}", offsets[i]))
        })
        .collect();
    let message = format!(
        "needs {} bytes of shared memory, {target} has {} in a block",
        needs.bytes, target.shared_bytes
    );
    function.error_with_notes(message, &notes)
}
