//! What an execution counted, against what the plan says that it costs.

use super::CheckError;
use crate::plan::{AccessPlan, Cost, Scope};
use crate::target::TargetDesc;

/// Compares every number of two costs, cycles to a millionth.
///
/// # Errors
/// [`CheckError::Count`] with the first that differs.
pub(super) fn agree(counted: &Cost, planned: &Cost) -> Result<(), CheckError> {
    let of = |c: &Cost| {
        [
            ("shuffles", c.shuffles),
            ("selects", c.selects),
            ("byte permutes", c.permutes),
            ("address computations", c.address_ops),
            ("stores", c.stores),
            ("loads", c.loads),
            ("barriers", c.barriers),
            ("wavefronts", c.wavefronts),
            ("wavefronts at least", c.minimum_wavefronts),
        ]
    };
    for ((what, got), (_, expected)) in of(counted).into_iter().zip(of(planned)) {
        same(what, got, expected)?;
    }
    if (counted.cycles - planned.cycles).abs() <= 1e-6 * counted.cycles.abs().max(1.0) {
        return Ok(());
    }
    let thousandths = |cycles: f64| (cycles * 1000.0).round() as u64;
    let (got, expected) = (thousandths(counted.cycles), thousandths(planned.cycles));
    Err(CheckError::Count { what: "thousandths of a cycle", got, expected })
}

/// # Errors
/// [`CheckError::Count`] when the numbers differ.
pub(super) fn same(what: &'static str, got: u64, expected: u64) -> Result<(), CheckError> {
    if got == expected { Ok(()) } else { Err(CheckError::Count { what, got, expected }) }
}

/// Adds what comes after.
pub(super) fn add(sum: &mut Cost, next: &Cost) {
    *sum = Cost {
        cycles: sum.cycles + next.cycles,
        shuffles: sum.shuffles + next.shuffles,
        selects: sum.selects + next.selects,
        permutes: sum.permutes + next.permutes,
        address_ops: sum.address_ops + next.address_ops,
        stores: sum.stores + next.stores,
        loads: sum.loads + next.loads,
        barriers: sum.barriers + next.barriers,
        wavefronts: sum.wavefronts + next.wavefronts,
        minimum_wavefronts: sum.minimum_wavefronts + next.minimum_wavefronts,
    };
}

/// Cycles of one barrier.
pub(super) fn barrier(scope: Scope, target: &TargetDesc) -> f64 {
    match scope {
        Scope::Warp => target.cost.warp_barrier,
        Scope::Block => target.cost.block_barrier,
        Scope::Cluster => target.cost.cluster_barrier,
    }
}

/// Cycles of one warp for the numbers of an access that were counted, and for the words that it moves, latencies left out.
pub(super) fn access_cycles(access: &AccessPlan, counted: &Cost, target: &TargetDesc) -> f64 {
    let cost = &target.cost;
    let slower = if access.block.is_some() { cost.remote_factor } else { 1.0 };
    counted.wavefronts as f64 * cost.wavefront * slower
        + (counted.stores + counted.loads) as f64 * cost.issue
        + (counted.permutes + counted.address_ops + access.fragment_moves) as f64 * cost.alu
}

/// Cycles of one warp for an access whose numbers have been checked, latencies left out.
pub(super) fn checked_cycles(access: &AccessPlan, target: &TargetDesc) -> f64 {
    let checked = Cost {
        stores: access.count,
        wavefronts: access.wavefronts,
        permutes: access.packing_ops,
        address_ops: access.address_ops,
        ..Cost::default()
    };
    access_cycles(access, &checked, target)
}
