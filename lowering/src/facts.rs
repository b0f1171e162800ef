//! From axis info to what a vector plan wants to know about addresses.

use linear_layout::Dim;
use linear_layout::plan::{AddressFacts, DimFacts};
use ttopt_passes::analysis::axis_info::AxisInfo;

/// The facts for an access to `shape` through pointers of which `ptr` is
/// known, under a mask of which `mask` is known; `None` stands for no mask.
pub fn address_facts(shape: &[i64], ptr: &AxisInfo, mask: Option<&AxisInfo>, elem_bits: u32) -> AddressFacts {
    let unit = ptr.unit.max(1);
    // Fastest first: contiguous dimensions, then by stride, then the last one.
    let mut order: Vec<usize> = (0..shape.len()).collect();
    order.sort_by_key(|&d| {
        let run = ptr.runs[d];
        let stride = if run.len > 1 && run.step > 0 { run.step } else { i64::MAX };
        (stride, std::cmp::Reverse(d))
    });
    let size = |d: usize| u64::try_from(shape[d]).unwrap_or(1);
    let facts: Vec<DimFacts> = order
        .iter()
        .map(|&d| {
            let run = ptr.runs[d];
            let whole = run.step % unit == 0;
            DimFacts {
                dim: Dim::out(d),
                size: size(d),
                contiguous: if run.step == unit { run.len } else { 1 },
                stride: whole.then(|| u64::try_from(run.step / unit).unwrap_or(0)),
                mask_constancy: mask.map_or(size(d), |mask| mask.constancy(d)),
            }
        })
        .collect();
    // Runs of a dimension after the fastest count when their stride says that
    // they follow the run so far.
    let mut facts = facts;
    let mut lens = vec![1u64; shape.len()];
    let mut length = 1u64;
    for (i, fact) in facts.iter_mut().enumerate() {
        let run = ptr.runs[order[i]];
        if i > 0 && fact.stride == Some(length) {
            fact.contiguous = run.len;
        }
        lens[order[i]] = fact.contiguous.min(fact.size).max(1);
        length *= lens[order[i]];
        if fact.contiguous < fact.size {
            break;
        }
    }
    AddressFacts::from_dims(&facts, ptr.corner_at(&lens), elem_bits)
}
