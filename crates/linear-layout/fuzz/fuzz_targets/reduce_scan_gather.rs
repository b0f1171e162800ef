//! Reductions, scans and gathers along each dimension, and histograms: all layouts have plans.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linear_layout::checker::{check_gather, check_histogram, check_reduce, check_scan};
use linear_layout::plan::{GatherPlan, HistogramPlan, ReducePlan, ScanPlan};
use linear_layout_fuzz::Case;

fuzz_target!(|case: Case| {
    let Case { a, b, elem_bits, target, .. } = case;
    for (values, bins) in [(&a, &b), (&b, &a)] {
        let bins = bins.flatten_outs().expect("one dimension");
        let plan = HistogramPlan::new(values, &bins, elem_bits, &target).expect("a histogram");
        check_histogram(&plan, values, &bins, elem_bits, &target).expect("a right histogram");
    }
    for axis in a.out_dims() {
        let plan = ReducePlan::new(&a, axis, &[elem_bits], &target).expect("a reduction");
        check_reduce(&plan, &a, &[elem_bits], &target).expect("a right reduction");
        for reverse in [false, true] {
            let plan = ScanPlan::new(&a, axis, &[elem_bits], reverse, &target).expect("a scan");
            check_scan(&plan, &a, &[elem_bits], &target).expect("a right scan");
        }
        for indices in [&a, &b] {
            let plan = GatherPlan::new(&a, indices, axis, elem_bits, &target).expect("a gather");
            let index = |element: u64| element.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            check_gather(&plan, &a, indices, elem_bits, &target, &index).expect("a right gather");
        }
    }
});
