//! Reductions and scans, executed by the checker, and the counts of the paper's Table 3.

mod plan_layouts;

use linear_layout::checker::check_reduce;
use linear_layout::plan::{PlanError, ReducePlan};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, Encoding, LinearLayout};
use plan_layouts::*;
use proptest::prelude::*;

fn cuda() -> TargetDesc {
    TargetDesc::parse("cuda:90").unwrap()
}

fn reduced(layout: &LinearLayout, axis: usize, bits: &[u32]) -> ReducePlan {
    let plan = ReducePlan::new(layout, Dim::out(axis), bits, &cuda()).unwrap();
    if let Err(error) = check_reduce(&plan, layout, &cuda()) {
        panic!("{error}\n{layout}\n{plan}");
    }
    plan
}

fn blocked(size: [u64; 2], threads: [u64; 2], warps: [u64; 2], shape: [u64; 2]) -> LinearLayout {
    let [[s0, s1], [t0, t1], [w0, w1]] = [size, threads, warps];
    let text = format!(
        "#ttg.blocked<{{sizePerThread = [{s0}, {s1}], threadsPerWarp = [{t0}, {t1}], warpsPerCTA = [{w0}, {w1}], order = [1, 0]}}>"
    );
    text.parse::<Encoding>().unwrap().to_linear_layout(&shape).unwrap()
}

#[test]
fn an_axis_within_the_warp_needs_no_memory() {
    let layout = blocked([1, 4], [1, 32], [4, 1], [16, 128]);
    let plan = reduced(&layout, 1, &[32]);
    assert!(plan.exchange.is_none());
    assert_eq!((plan.cost.shuffles, plan.shared_instructions()), (4 * 5, 0));
}

#[test]
fn an_axis_across_warps_meets_in_memory_once() {
    let layout = blocked([1, 4], [1, 32], [1, 4], [4, 512]);
    let plan = reduced(&layout, 1, &[32]);
    let exchange = plan.exchange.as_ref().unwrap();
    assert_eq!(exchange.conversions[0].kind(), "shared");
    assert_eq!(plan.cost.barriers, 1);
    // Four values and four warps: one 16-byte store each, at most four loads.
    assert!(plan.shared_instructions() <= 5, "{plan}");
    let argmax = reduced(&layout, 1, &[32, 32]);
    assert_eq!(argmax.local, plan.local);
    assert_eq!(argmax.exchange.unwrap().conversions.len(), 2);
}

#[test]
fn warps_with_copies_are_not_counted_twice() {
    let layout = blocked([1, 1], [1, 32], [1, 4], [16, 16]);
    assert_ne!(layout.free_variable_mask(Dim::WARP), 0);
    let plan = reduced(&layout, 1, &[32]);
    assert!(plan.exchange.is_none(), "all four warps hold the whole axis");
}

#[test]
fn table_3_of_the_paper_for_blocked_layouts() {
    // Twenty reductions of square tensors from 16×16 to 128×128, along both dimensions, by up to eight
    // warps. The legacy way stores and loads every register of every thread by itself, copies and all.
    let (mut ours, mut legacy) = (0, 0);
    for n in [16u64, 32, 64, 128] {
        for warps in [[1, 4], [4, 1], [2, 2], [2, 4], [1, 1]] {
            let layout = blocked([1, 4], [8, 4], warps, [n, n]);
            let plan = reduced(&layout, 1, &[32]);
            ours += plan.shared_instructions();
            let registers = layout.in_size(Dim::REGISTER).unwrap();
            legacy += if warps[1] > 1 || warps[0] > 1 { 2 * registers } else { 0 };
        }
    }
    assert!(ours * 5888 <= legacy * 1388, "{ours} instructions, {legacy} with copies, one by one");
    assert!(ours <= 1388, "{ours}");
}

#[test]
fn operands_and_slices_reduce_too() {
    // Layouts that Table 3 lists as not supported before.
    let mma =
        "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>";
    let operand = format!("#ttg.dot_op<{{opIdx = 0, parent = {mma}, kWidth = 2}}>");
    for text in [mma.to_owned(), operand.clone()] {
        let layout = text.parse::<Encoding>().unwrap().to_linear_layout(&[64, 64]).unwrap();
        reduced(&layout, 0, &[16]);
        reduced(&layout, 1, &[16]);
    }
    let slice = format!("#ttg.slice<{{dim = 1, parent = {operand}}}>");
    let layout = slice.parse::<Encoding>().unwrap().to_linear_layout(&[64]).unwrap();
    let plan = reduced(&layout, 0, &[16]);
    assert_eq!(plan.result.total_out_bits(), 0);
}

#[test]
fn what_cannot_be_reduced_is_said() {
    let layout = blocked([1, 4], [8, 4], [4, 1], [64, 64]);
    assert!(matches!(ReducePlan::new(&layout, Dim::out(2), &[32], &cuda()), Err(PlanError::Layout(_))));
    let bases = [(Dim::LANE, vec![[1, 1], [0, 1]])];
    let diagonal = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap();
    assert!(matches!(
        ReducePlan::new(&diagonal, Dim::out(1), &[32], &cuda()),
        Err(PlanError::Unsupported(_))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_distributed_layout_reduces((layout, _) in pair(false), axis in 0usize..2, width in 3u32..7) {
        reduced(&layout, axis, &[1 << width]);
    }
}
