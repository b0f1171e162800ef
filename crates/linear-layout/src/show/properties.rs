//! What is worth knowing about a layout at a glance.

use crate::plan::VectorPlan;
use crate::{Dim, LinearLayout};

use super::request::Subject;

/// Lines of `(name, value)`.
pub fn of(subject: &Subject) -> Vec<(&'static str, String)> {
    let layout = &subject.layout;
    let sizes = |dims: Vec<(Dim, u32)>| {
        let sizes: Vec<String> = dims.iter().map(|(d, bits)| format!("{d} {}", 1u64 << bits)).collect();
        sizes.join(" × ")
    };
    let mut lines = vec![
        ("inputs", sizes(layout.in_dim_bits().collect())),
        ("outputs", sizes(layout.out_dim_bits().collect())),
        ("broadcast", broadcast(layout)),
    ];
    let run = contiguous(layout);
    lines.push((
        "contiguous",
        format!("{run} element{} along {}", if run == 1 { "" } else { "s" }, last_dim(layout)),
    ));
    lines.push((
        "vector",
        format!("{} bits of {} on {}", vector_bits(subject), subject.dtype, subject.target),
    ));
    let kind = match (layout.is_surjective(), layout.is_injective()) {
        (true, true) => "bijective: every element is held once",
        (true, false) => "surjective: every element is held, some more than once",
        (false, true) => "injective: no element is held twice, some by nobody",
        (false, false) => "neither surjective nor injective",
    };
    lines.push(("map", kind.into()));
    lines
}

/// Bits of the widest access of one thread: to global memory for a distributed layout, to the memory
/// itself for one of memory. The tensor is taken to be row-major and aligned.
pub fn vector_bits(subject: &Subject) -> u64 {
    let global = VectorPlan::for_global(&subject.layout, subject.bits, 1 << 20, 1 << 20, &subject.target);
    match global {
        Ok(plan) if subject.encoding.is_distributed() => plan.access_bits().into(),
        _ => {
            (contiguous(&subject.layout) * u64::from(subject.bits)).min(subject.target.max_vector_bits.into())
        }
    }
}

fn last_dim(layout: &LinearLayout) -> &'static str {
    layout.out_dims().next_back().map_or("nothing", Dim::name)
}

fn broadcast(layout: &LinearLayout) -> String {
    let masks = layout.free_variable_masks().filter(|&(_, mask)| mask != 0);
    let parts: Vec<String> = masks.map(|(d, mask)| format!("{d} bits {mask:#b}")).collect();
    if parts.is_empty() {
        return "none".into();
    }
    let copies = layout.total_in_bits() - layout.rank();
    format!("{} ({} copies of every element)", parts.join(", "), 1u64 << copies)
}

/// The longest run of elements, the last dimension fastest, that one thread (or one stretch of memory)
/// holds: the largest identity block between the first input dimension, its bits in any order, and the
/// flattened tensor (paper, Section 5.1).
pub fn contiguous(layout: &LinearLayout) -> u64 {
    let order: Vec<Dim> = layout.out_dims().rev().collect();
    let Ok(flat) = layout.transpose_outs(&order) else { return 1 };
    let Some(first) = flat.in_dims().next() else { return 1 };
    let registers = flat.columns_of(first);
    let is_memory = first != Dim::REGISTER;
    let mut run = 0;
    while run < flat.total_out_bits().min(63) {
        let unit = 1 << run;
        let at = registers.iter().position(|&c| c == unit);
        // Registers can be renamed, memory offsets cannot.
        let found = at.is_some_and(|at| !is_memory || at == run as usize);
        let disturbed = flat.columns().iter().filter(|&&c| c & unit != 0).count() > 1;
        if !found || disturbed {
            break;
        }
        run += 1;
    }
    1 << run
}
