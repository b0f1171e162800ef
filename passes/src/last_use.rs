//! `--tritongpu-last-use`: loads after which a program does not come back to
//! what they read.
//!
//! Kernels that go over their rows several times, once in each of several loops,
//! find them in the first level of cache as long as nothing drives them out.
//! What the last loop reads need not go there: it would drive out what other
//! programs of the same multiprocessor still want. A load is marked
//! `ttg.last_use` when
//! * an earlier loop loads from the same base address, and no later operation does;
//! * its addresses differ in each iteration of every loop around it;
//! * they depend on the number of the program, so that others do not read the same, and the function has no dots, whose
//!   operands other programs multiply by, too;
//! * each access of a warp takes whole sectors, since what is left of one is lost: runs of 128 bytes or more, so that those
//!   at both ends, which neighbours read the rest of, are few.

use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::ir_util::{self, loops_around, multiplies};
use crate::machine;
use crate::plans::{self, AccessFacts, layout};
use linear_layout::plan::SECTOR;
use linear_layout::target::TargetDesc;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Op, Value, Walk};
use mlir_host::match_op;
use mlir_host::pass::{Options, PassDef, PassResult};
use ttopt_dialect::tt::ops::{
    AddPtrOp, BroadcastOp, ExpandDimsOp, FuncOp, GetProgramIdOp, LoadOp, ReshapeOp, SplatOp, TransOp,
};
use ttopt_dialect::ttg::ops::ConvertLayoutOp;

/// The pass.
pub static TRITONGPU_LAST_USE: PassDef = PassDef {
    anchor: "builtin.module",
    ..PassDef::new(
        "tritongpu-last-use",
        "Mark loads after which a program does not come back to what they read",
        run,
    )
};

/// The mark.
pub const LAST_USE: &str = "ttg.last_use";
/// Marks a module that has a kernel whose programs come back to what they read in an earlier loop, whatever sectors they take.
pub const COMES_BACK: &str = "ttg.comes_back";
/// Bytes of a run in memory from which on the sectors at its ends do not count. Measured: rows of 40 and 64 bytes lose
/// a tenth to a fifth by it, rows of kilobytes gain as much (`docs/objective.md`).
const LEAST_RUN: u64 = 128;

/// A load in a loop that is in no other.
struct Visit<'c> {
    load: LoadOp<'c>,
    outermost: Op<'c>,
}

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let mut functions = Vec::new();
    module.walk(&mut |op| {
        if FuncOp::cast(op).is_some() && op.region(0).blocks().count() == 1 {
            functions.push(op);
        }
        Walk::Advance
    });
    let mut marked: Vec<Op<'_>> = functions.into_iter().flat_map(last_visits).collect();
    if marked.is_empty() {
        return Ok(());
    }
    module.set_attr(COMES_BACK, Attr::unit(module.context()));
    let (target, analysis) = (machine::target(module)?, AxisInfoAnalysis::new(module));
    marked.retain(|op| takes_whole_sectors(*op, &analysis, &target));
    for op in marked {
        op.set_attr(LAST_USE, Attr::unit(op.context()));
    }
    Ok(())
}

/// Loads of a function that come back to data for the last time.
fn last_visits(function: Op<'_>) -> Vec<Op<'_>> {
    // By base address: visits in order, and whether anything else loads from there.
    let mut visits: FastMap<Value<'_>, Vec<Visit<'_>>> = FastMap::default();
    let mut elsewhere = FastSet::default();
    let mut bases = Bases::default();
    if multiplies(function) {
        return Vec::new();
    }
    function.walk(&mut |op| {
        if let Some(load) = LoadOp::cast(op)
            && let Some(base) = bases.of(load.ptr())
        {
            match loops_around(op).last() {
                Some(outermost) => visits.entry(base).or_default().push(Visit { load, outermost }),
                None => _ = elsewhere.insert(base),
            }
        }
        Walk::Advance
    });
    let last = visits.into_iter().filter_map(|(base, visits)| {
        let (last, before) = visits.split_last()?;
        let comes_back = !before.is_empty() && before.iter().all(|visit| visit.outermost != last.outermost);
        let op = last.load.op();
        let plain = last.load.cache_policy().is_none() && !last.load.is_volatile();
        let right = comes_back && plain && !elsewhere.contains(&base) && moves_on(last) && is_own(last);
        right.then_some(op)
    });
    last.collect()
}

/// The scalars that the addresses of tensors of pointers are counted from, each found once: pointers of straight-line
/// code may each begin where the one before is.
#[derive(Default)]
struct Bases<'c>(FastMap<Value<'c>, Option<Value<'c>>>);

impl<'c> Bases<'c> {
    fn of(&mut self, ptr: Value<'c>) -> Option<Value<'c>> {
        let (mut at, mut on_the_way) = (ptr, Vec::new());
        let base = loop {
            if let Some(known) = self.0.get(&at) {
                break *known;
            }
            on_the_way.push(at);
            let Some(op) = at.def_op() else { break None };
            match_op!(op, {
                SplatOp(splat) => break Some(splat.src()),
                AddPtrOp | BroadcastOp | ExpandDimsOp | ReshapeOp | TransOp | ConvertLayoutOp
                    if at.ty().as_tensor().is_some() => at = op.operand(0),
                _ => break None,
            });
        };
        self.0.extend(on_the_way.into_iter().map(|value| (value, base)));
        base
    }
}

/// Whether each iteration of every loop around a load has other addresses.
fn moves_on(visit: &Visit<'_>) -> bool {
    loops_around(visit.load.op()).all(|op| {
        depends_on(visit.load.ptr(), &|value| value.arg_block().and_then(|block| block.parent()) == Some(op))
    })
}

/// Whether the addresses of a load depend on the number of the program.
fn is_own(visit: &Visit<'_>) -> bool {
    depends_on(visit.load.ptr(), &|value| GetProgramIdOp::defining(value).is_some())
}

/// Whether `value` is computed from a value like this, without regard to loops.
fn depends_on<'c>(value: Value<'c>, found: &dyn Fn(Value<'c>) -> bool) -> bool {
    ir_util::depend_on([value], found, &|_| None)
}

/// Whether every access of a warp takes all bytes of the sectors that it touches,
/// but for the first and the last of a run.
fn takes_whole_sectors<'c>(op: Op<'c>, analysis: &AxisInfoAnalysis<'c>, target: &TargetDesc) -> bool {
    let Some(facts) = AccessFacts::of(op, analysis) else { return false };
    let Ok(layout) = layout(op.operand(0).ty()) else { return false };
    // Where a run begins does not matter, as long as accesses are as wide as if it began at a sector.
    let in_runs = AccessFacts { aligned: facts.contiguous * facts.bytes, ..facts.clone() };
    let plan = |facts| plans::access_in(op, &layout, facts, target).ok();
    let (Some(real), Some(plan)) = (plan(&facts), plan(&in_runs)) else { return false };
    let lanes = u64::from(target.lanes >> plan.duplicates.lane.count_ones());
    let long = facts.contiguous * facts.bytes >= LEAST_RUN;
    long && real.vec_elems == plan.vec_elems
        && plan.sectors * SECTOR <= lanes * u64::from(plan.access_bits() / 8)
}
