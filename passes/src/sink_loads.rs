//! Loads from global memory where the registers that they wait in are short.
//!
//! Kernels without loops load all of their tiles first. Those that are wanted last wait in registers for everything that is
//! computed before, and where there are not enough of these, ptxas spills them, and reads them again. Here loads move
//! down across the operations at which a function has too few registers, those that wait longest first: to the last dot before
//! their first use, which hides their latency, or to the use itself, if that leaves fewer registers to spill. A load
//! that neither helps stays.

use crate::analysis::pointer_roots::{Arguments, PointerRoots, may_meet};
use crate::analysis::registers::{Spills, UNSEEN_REGISTERS, spilled_registers, tensor_words};
use crate::ir_util::{in_block, is_dot, is_loop};
use linear_layout::target::{TargetDesc, Vendor};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Block, Op, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::traits::Upstream;
use std::cmp::Reverse;
use std::ops::Range;
use ttopt_dialect::tt::ops::{LoadOp, StoreOp};
use ttopt_dialect::ttg::ops::{LocalAllocOp, LocalLoadOp};

/// Registers that tensors alone have too few of, from which on it is sure that ptxas spills outside of loops.
const SURELY_SPILLED: u64 = 32;
/// Registers below which a load is not worth moving.
const FEW_WORDS: u64 = 8;
/// A load before a dot may leave so many times the registers to spill that a load before its use does.
const FOR_LATENCY: f64 = 1.1;

/// Moves loads of `function`, whose CTAs have `warps` warps, down where that leaves fewer registers to spill. `short` are its operations
/// that are short of registers, one or more.
pub fn sink_loads<'c>(function: Op<'c>, short: Vec<Op<'c>>, warps: u64, target: &'c TargetDesc) {
    let short: FastSet<Op<'c>> = short.into_iter().collect();
    // In a loop, what tensors alone have too few registers for is spilled: addresses that it carries come on top. Elsewhere addresses are
    // computed where they are used, and while it is not sure that ptxas spills, loads that are under way early are worth more.
    let spilled = spilled_registers(function, warps, target);
    let in_loop = spilled.iter().any(|(op, words)| *words > 0 && op.ancestor(is_loop).is_some());
    if !in_loop && spilled.iter().map(|(_, words)| *words).sum::<u64>() < SURELY_SPILLED {
        return;
    }
    let mut between = Between::new(&short);
    let mut moves = Vec::new();
    // LLVM, which allocates AMD's registers, orders an iteration for them itself.
    let stays = |op: Op<'c>| target.vendor == Vendor::Amd && op.ancestor(is_loop).is_some();
    function.walk(&mut |op| {
        moves.extend(Move::of(op, &mut between).filter(|_| !stays(op)));
        Walk::Advance
    });
    if moves.is_empty() {
        return;
    }
    // Those that wait longest first: the others may find registers enough then.
    let mut places = FastMap::default();
    function.walk(&mut |op| {
        places.insert(op, places.len());
        Walk::Advance
    });
    moves.sort_by_key(|one| Reverse(places.get(&one.user).copied()));
    let mut spills = Spills::new(UNSEEN_REGISTERS, function, warps, target);
    for one in moves {
        let before = spills.total() as f64;
        if before == 0.0 {
            return;
        }
        let at_use = spills.with(one.load, one.user) as f64;
        let at_dot = one.dot.map_or(f64::MAX, |dot| spills.with(one.load, dot) as f64);
        if let Some(dot) = one.dot.filter(|_| at_dot < before && at_dot <= at_use * FOR_LATENCY) {
            spills.move_down(one.load, dot);
        } else if at_use < before {
            spills.move_down(one.load, one.user);
        }
    }
}

/// A load that can move.
struct Move<'c> {
    load: Op<'c>,
    /// The last dot before the first use, if there is one on the way.
    dot: Option<Op<'c>>,
    /// The first use, or what has it in its regions.
    user: Op<'c>,
}

impl<'c> Move<'c> {
    /// How `op` can move down across one of the operations that are short of registers.
    fn of(op: Op<'c>, between: &mut Between<'c, '_>) -> Option<Self> {
        let load = LoadOp::cast(op).filter(|load| !load.is_volatile())?;
        if tensor_words(load.result()) < FEW_WORDS {
            return None;
        }
        let block = op.block()?;
        let users: Option<Vec<Op<'c>>> =
            load.result().uses().map(|(user, _)| in_block(user, block)).collect();
        let user = users?.into_iter().reduce(|a, b| if b.is_before_in_block(a) { b } else { a })?;
        // What the next iteration uses was loaded early on purpose.
        if Some(user) == block.terminator() {
            return None;
        }
        let way = between.way(block, op, user)?;
        if !between.crosses_short(block, &way) || between.writes(block, &way, load.ptr()) {
            return None;
        }
        Some(Self { load: op, dot: between.last_dot(block, &way), user })
    }
}

/// What is between the operations of blocks, each of which is looked through once.
struct Between<'c, 's> {
    /// The operations that are short of registers.
    short: &'s FastSet<Op<'c>>,
    blocks: FastMap<Block<'c>, Line<'c>>,
    roots: PointerRoots<'c>,
}

/// The operations of a block, by their places in it; what operations in their regions do counts as theirs.
#[derive(Default)]
struct Line<'c> {
    places: FastMap<Op<'c>, usize>,
    /// In order: those that are short of registers, dots, and writes: by the arguments that are written through.
    short: Vec<usize>,
    dots: Vec<(usize, Op<'c>)>,
    writes: FastMap<Option<Arguments<'c>>, Vec<usize>>,
}

impl<'c, 's> Between<'c, 's> {
    fn new(short: &'s FastSet<Op<'c>>) -> Self {
        Self { short, blocks: FastMap::default(), roots: PointerRoots::default() }
    }

    /// The places of `block` behind `op` and before `user`.
    fn way(&mut self, block: Block<'c>, op: Op<'c>, user: Op<'c>) -> Option<Range<usize>> {
        if !self.blocks.contains_key(&block) {
            let line = self.line(block);
            self.blocks.insert(block, line);
        }
        let places = &self.blocks.get(&block)?.places;
        Some(places.get(&op)? + 1..*places.get(&user)?)
    }

    fn line(&mut self, block: Block<'c>) -> Line<'c> {
        let mut line = Line::default();
        for (place, op) in block.ops().enumerate() {
            line.places.insert(op, place);
            if is_dot(op) {
                line.dots.push((place, op));
            }
            op.walk(&mut |inner| {
                if self.short.contains(&inner) {
                    line.short.push(place);
                }
                if let Some(roots) = self.written(inner) {
                    line.writes.entry(roots).or_default().push(place);
                }
                Walk::Advance
            });
        }
        line
    }

    /// The arguments through whose pointers `op` may write, `None` in place of them where it may write anything or make it
    /// visible; `None` for what writes nothing.
    fn written(&mut self, op: Op<'c>) -> Option<Option<Arguments<'c>>> {
        if StoreOp::cast(op).is_some() {
            return Some(self.roots.of(op.operand(0)));
        }
        let harmless = op.is_memory_effect_free()
            || op.has_trait(Upstream::RecursiveMemoryEffects)
            || is_dot(op)
            || is_one_of!(op, LoadOp | LocalAllocOp | LocalLoadOp);
        (!harmless).then_some(None)
    }

    /// Whether something on `way` is short of registers.
    fn crosses_short(&self, block: Block<'c>, way: &Range<usize>) -> bool {
        self.blocks.get(&block).is_some_and(|line| any_in(&line.short, way))
    }

    /// Whether something on `way` may write what is loaded through `pointer`, or make it visible.
    fn writes(&mut self, block: Block<'c>, way: &Range<usize>, pointer: Value<'c>) -> bool {
        let roots = self.roots.of(pointer);
        self.blocks.get(&block).is_none_or(|line| {
            let mut writes = line.writes.iter();
            writes.any(|(written, places)| {
                any_in(places, way) && may_meet(roots.as_deref(), written.as_deref())
            })
        })
    }

    fn last_dot(&self, block: Block<'c>, way: &Range<usize>) -> Option<Op<'c>> {
        let dots = &self.blocks.get(&block)?.dots;
        let behind = dots.partition_point(|(place, _)| *place < way.end);
        let (place, dot) = dots[..behind].last()?;
        (*place >= way.start).then_some(*dot)
    }
}

/// Whether one of `places`, which are in order, is in `way`.
fn any_in(places: &[usize], way: &Range<usize>) -> bool {
    places.get(places.partition_point(|place| *place < way.start)).is_some_and(|place| *place < way.end)
}
