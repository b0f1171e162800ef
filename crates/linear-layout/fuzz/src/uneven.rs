//! Targets that nobody built.

use linear_layout::target::TargetDesc;

/// The target with costs of which none is 1 or like another: what is multiplied, divided or added in the wrong place,
/// or taken for something else, then comes to another sum.
pub fn uneven(mut target: TargetDesc) -> TargetDesc {
    let c = &mut target.cost;
    let costs = [
        &mut c.alu,
        &mut c.shuffle,
        &mut c.fixed_shuffle,
        &mut c.wavefront,
        &mut c.issue,
        &mut c.request,
        &mut c.line,
        &mut c.stored_sector,
        &mut c.stored_part,
        &mut c.shuffle_latency,
        &mut c.fixed_shuffle_latency,
        &mut c.shared_latency,
        &mut c.warp_barrier,
        &mut c.block_barrier,
        &mut c.cluster_barrier,
        &mut c.remote_factor,
        &mut c.missed_line,
        &mut c.stored_line,
    ];
    for (i, cost) in (0u32..).zip(costs) {
        *cost *= 1.0625 + f64::from(i) / 32.0;
    }
    target
}
