//! Scans, gathers and histograms, executed by the checker.

mod plan_layouts;

use linear_layout::checker::{check_gather, check_histogram, check_scan};
use linear_layout::plan::{Gather, GatherPlan, HistogramPlan, ScanPlan, Scope};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, Encoding, LinearLayout};
use plan_layouts::*;
use proptest::prelude::*;

fn cuda() -> TargetDesc {
    TargetDesc::parse("cuda:90").unwrap()
}

fn blocked(size: [u64; 2], threads: [u64; 2], warps: [u64; 2], shape: [u64; 2]) -> LinearLayout {
    let [[s0, s1], [t0, t1], [w0, w1]] = [size, threads, warps];
    let text = format!(
        "#ttg.blocked<{{sizePerThread = [{s0}, {s1}], threadsPerWarp = [{t0}, {t1}], warpsPerCTA = [{w0}, {w1}], order = [1, 0]}}>"
    );
    text.parse::<Encoding>().unwrap().to_linear_layout(&shape).unwrap()
}

fn scanned(layout: &LinearLayout, axis: usize, reverse: bool) -> ScanPlan {
    let plan = ScanPlan::new(layout, Dim::out(axis), &[32], reverse, &cuda()).unwrap();
    if let Err(error) = check_scan(&plan, layout, &cuda()) {
        panic!("{error}\n{layout}\n{plan}");
    }
    plan
}

#[test]
fn a_scan_within_a_warp_sends_one_total_per_step() {
    let plan = scanned(&blocked([1, 4], [1, 32], [4, 1], [4, 128]), 1, false);
    // Two steps in registers, then five between lanes, one value each.
    assert_eq!((plan.cost.shuffles, plan.cost.stores, plan.steps.len()), (5, 0, 7));
    assert_eq!(plan.steps[6].lane.apply(0b11010), 0b01111);
}

#[test]
fn a_scan_across_warps_goes_through_memory() {
    let plan = scanned(&blocked([1, 4], [1, 32], [1, 4], [1, 1024]), 1, true);
    let through = plan.steps.iter().filter(|s| s.scope == Some(Scope::Block)).count();
    assert_eq!(through, 3, "two bits of warps and one of registers above them");
    assert!(plan.shared_bytes(&[32]) > 0);
}

#[test]
fn a_scan_over_blocks_is_refused() {
    let bases = [(Dim::LANE, vec![[1]]), (Dim::BLOCK, vec![[2]])];
    let layout = LinearLayout::from_bases(&bases, &[Dim::out(0)]).unwrap();
    assert!(ScanPlan::new(&layout, Dim::out(0), &[32], false, &cuda()).is_err());
}

fn gathered(source: &LinearLayout, indices: &LinearLayout, axis: usize, bits: u32) -> GatherPlan {
    let dim = Dim::out(axis);
    let shuffles = GatherPlan::by_shuffles(source, indices, dim, bits, &cuda()).unwrap();
    let plan = GatherPlan::new(source, indices, dim, bits, &cuda()).unwrap();
    let index = |element: u64| element.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    for p in shuffles.iter().chain([&plan]) {
        if let Err(error) = check_gather(p, source, indices, &cuda(), &index) {
            panic!("{error}\nsource {source}\nindices {indices}\n{p}");
        }
    }
    plan
}

#[test]
fn short_lines_are_gathered_by_shuffles() {
    // Figure 6 of the paper: shuffles win until a line has too many registers.
    let short = blocked([1, 1], [2, 16], [4, 1], [512, 16]);
    let plan = gathered(&short, &short, 1, 32);
    assert!(matches!(plan.gather, Gather::Shuffle(_)), "{plan}");
    let long = blocked([1, 32], [2, 16], [4, 1], [64, 512]);
    let plan = gathered(&long, &long, 1, 32);
    assert!(matches!(plan.gather, Gather::Shared(_)), "{plan}");
}

#[test]
fn lines_across_warps_are_gathered_through_memory() {
    let layout = blocked([1, 1], [1, 32], [1, 4], [4, 128]);
    let plan = gathered(&layout, &layout, 1, 16);
    let Gather::Shared(shared) = &plan.gather else { panic!("{plan}") };
    assert_eq!(shared.shared_bytes, 4 * 128 * 2);
    let down = gathered(&layout, &layout, 0, 16);
    assert!(matches!(down.gather, Gather::Shuffle(_)), "columns lie in the registers of one thread");
}

#[test]
fn indices_may_be_more_than_elements() {
    let source = blocked([1, 1], [4, 8], [4, 1], [16, 8]);
    let indices = blocked([1, 4], [4, 8], [4, 1], [16, 64]);
    gathered(&source, &indices, 1, 32);
}

#[test]
fn a_histogram_counts_copies_once() {
    let source = blocked([1, 4], [1, 32], [4, 1], [2, 128]);
    let bins = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>";
    let result = bins.parse::<Encoding>().unwrap().to_linear_layout(&[64]).unwrap();
    let plan = HistogramPlan::new(&source, &result, &cuda()).unwrap();
    check_histogram(&plan, &source, &result, &cuda()).unwrap();
    assert_eq!((plan.registers.len(), plan.duplicates.warp, plan.shared_bytes), (4, 0b10, 256));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_distributed_layout_scans((layout, _) in pair(false), axis in 0usize..2, reverse in any::<bool>()) {
        let dim = Dim::out(axis);
        if layout.columns_of(Dim::BLOCK).iter().all(|c| c & layout.out_mask(dim) == 0) {
            scanned(&layout, axis, reverse);
        }
    }

    #[test]
    fn any_distributed_layout_gathers((a, b) in pair(false), same in any::<bool>(), axis in 0usize..2) {
        let dim = Dim::out(axis);
        if a.columns_of(Dim::BLOCK).iter().all(|c| c & a.out_mask(dim) == 0) {
            gathered(&a, if same { &a } else { &b }, axis, 32);
        }
    }

    #[test]
    fn any_distributed_layout_is_counted((layout, _) in pair(false), (bins, _) in pair(false)) {
        prop_assume!(layout.columns_of(Dim::BLOCK).iter().all(|&c| c == 0));
        let bins = bins.flatten_outs().unwrap();
        let plan = HistogramPlan::new(&layout, &bins, &cuda()).unwrap();
        check_histogram(&plan, &layout, &bins, &cuda()).unwrap();
    }
}
