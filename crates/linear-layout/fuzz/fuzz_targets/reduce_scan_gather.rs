//! Reductions, scans and gathers along each dimension, and histograms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linear_layout::checker::{check_gather, check_reduce, check_scan};
use linear_layout::plan::{GatherPlan, ReducePlan, ScanPlan};
use linear_layout_fuzz::Case;

fuzz_target!(|case: Case| {
    let Case { a, b, elem_bits, target, .. } = case;
    for axis in a.out_dims() {
        if let Ok(plan) = ReducePlan::new(&a, axis, &[elem_bits], &target) {
            check_reduce(&plan, &a, &target).expect("a right reduction");
        }
        for reverse in [false, true] {
            if let Ok(plan) = ScanPlan::new(&a, axis, &[elem_bits], reverse, &target) {
                check_scan(&plan, &a, &target).expect("a right scan");
            }
        }
        for indices in [&a, &b] {
            if let Ok(plan) = GatherPlan::new(&a, indices, axis, elem_bits, &target) {
                let index = |element: u64| element.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                check_gather(&plan, &a, indices, &target, &index).expect("a right gather");
            }
        }
    }
});
