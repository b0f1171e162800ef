//! Reductions and scans, executed by the checker, and the counts of the paper's Table 3.

mod plan_layouts;

use linear_layout::checker::{check_reduce, check_reduce_to};
use linear_layout::plan::{Conversion, ConversionPlan, PlanError, ReducePlan, Scope, WarpCombine};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, Encoding, LinearLayout};
use plan_layouts::*;
use proptest::prelude::*;

fn cuda() -> TargetDesc {
    TargetDesc::parse("cuda:90").unwrap()
}

fn reduced(layout: &LinearLayout, axis: usize, bits: &[u32]) -> ReducePlan {
    reduced_on(layout, axis, bits, &cuda())
}

fn reduced_on(layout: &LinearLayout, axis: usize, bits: &[u32], target: &TargetDesc) -> ReducePlan {
    let plan = ReducePlan::new(layout, Dim::out(axis), bits, target).unwrap();
    if let Err(error) = check_reduce(&plan, layout, bits, target) {
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
    let layout = blocked([1, 4], [1, 32], [4, 1], [8, 128]);
    let plan = reduced(&layout, 1, &[32]);
    assert!(plan.exchange.is_none());
    assert_eq!((plan.cost.shuffles, plan.shared_instructions(), plan.shared_bytes()), (2 * 5, 0, 0));
}

/// 32 values of 32 lanes: each exchange leaves a lane half of what it had, 16, 8, 4, 2 and 1 are sent in place of 32 five times.
#[test]
fn many_values_are_shared_among_lanes() {
    let plan = reduced(&blocked([1, 1], [1, 32], [2, 2], [64, 64]), 1, &[32]);
    let lanes: Vec<(u64, u32)> =
        plan.local.halvings.iter().map(|halving| (halving.lane, halving.bit)).collect();
    assert_eq!(lanes, [(16, 4), (8, 3), (4, 2), (2, 1), (1, 0)]);
    assert_eq!((plan.local.values(), plan.cost.shuffles, plan.cost.stores), (1, 31, 1));
    // Fewer values than lanes: the last exchanges combine what is left.
    let plan = reduced(&blocked([1, 1], [1, 32], [4, 1], [32, 32]), 1, &[32]);
    assert_eq!((plan.local.halvings.len(), plan.local.shuffles.len(), plan.local.values()), (3, 2, 1));
    let model = cuda().cost;
    assert!(plan.cost.cycles < 4.0 * 8.0 * 5.0 * (model.shuffle + model.alu) + 5.0 * model.shuffle_latency);
    // The halves of lanes at distance 7 are told apart by bit 2, which no later distance has.
    let target = TargetDesc::parse("hip:gfx942").unwrap();
    let plan = reduced_on(&blocked([1, 1], [1, 64], [4, 1], [128, 64]), 1, &[32], &target);
    let lanes: Vec<(u64, u32)> =
        plan.local.halvings.iter().map(|halving| (halving.lane, halving.bit)).collect();
    assert_eq!(lanes[..4], [(8, 3), (7, 2), (2, 1), (1, 0)]);
}

/// Without the dimension `axis`, the others numbered again.
fn without(layout: &LinearLayout, axis: usize) -> LinearLayout {
    let ins: Vec<Dim> = layout.in_dims().collect();
    let rest: Vec<Dim> = layout.out_dims().filter(|dim| *dim != Dim::out(axis)).collect();
    let rest = layout.sublayout(&ins, &rest).unwrap();
    let ins: Vec<(Dim, u32)> = rest.in_dim_bits().collect();
    let outs: Vec<(Dim, u32)> = (0..).map(Dim::out).zip(rest.out_dim_bits().map(|out| out.1)).collect();
    LinearLayout::from_columns(&ins, &outs, rest.columns().to_vec()).unwrap()
}

fn reduced_to(
    layout: &LinearLayout,
    axis: usize,
    bits: &[u32],
    result: &LinearLayout,
    target: &TargetDesc,
) -> ReducePlan {
    let plan = ReducePlan::to_layout(layout, Dim::out(axis), bits, None, result, target).unwrap();
    if let Err(error) = check_reduce_to(&plan, layout, result, bits, target) {
        panic!(
            "{error}
{layout}
{result}
{plan}"
        );
    }
    plan
}

/// Rows of 64 columns: 32 of them in each warp, which 16 lanes reduce. What each lane is left with is its result.
#[test]
fn results_stay_with_the_lanes_that_combined_them() {
    let layout = blocked([1, 4], [2, 16], [4, 1], [128, 64]);
    let whole = reduced(&layout, 1, &[32]);
    let shared = ReducePlan::shared_among_lanes(&layout, Dim::out(1), &cuda()).unwrap().unwrap();
    assert_eq!((shared.in_bits(Dim::REGISTER), shared.zero_mask(Dim::LANE)), (0, 0));
    let plan = reduced_to(&layout, 1, &[32], &shared, &cuda());
    assert_eq!((plan.cost.shuffles, plan.shared_instructions(), plan.targets.len()), (8 + 4 + 2 + 1, 0, 1));
    assert!(plan.cost.cycles < whole.cost.cycles);
    // One line a lane has nothing to share, and of lines across warps nobody has all.
    let alone = blocked([1, 4], [2, 16], [4, 1], [8, 64]);
    assert_eq!(ReducePlan::shared_among_lanes(&alone, Dim::out(1), &cuda()).unwrap(), None);
    let across = blocked([1, 4], [2, 16], [1, 4], [128, 256]);
    assert_eq!(ReducePlan::shared_among_lanes(&across, Dim::out(1), &cuda()).unwrap(), None);
}

/// Parts of lines that warps have go to where results are wanted at once.
#[test]
fn parts_of_warps_go_where_the_result_is_wanted() {
    let layout = blocked([1, 4], [1, 32], [1, 4], [128, 512]);
    let result = without(&blocked([1, 1], [32, 1], [4, 1], [128, 1]), 1);
    let plan = reduced_to(&layout, 1, &[32], &result, &cuda());
    let (apart, target) = (reduced(&layout, 1, &[32]), cuda());
    let there = ConversionPlan::new(&without(&layout, 1), &result, 32, &target).unwrap();
    assert!(plan.cost.cycles < apart.cost.cycles + there.cost.cycles, "{plan}\n{apart}\n{there}");
    // Another shape is no result of this.
    let other = without(&blocked([1, 1], [32, 1], [4, 1], [64, 1]), 1);
    let error = ReducePlan::to_layout(&layout, Dim::out(1), &[32], None, &other, &cuda()).unwrap_err();
    assert!(matches!(error, PlanError::Internal { .. }), "{error}");
}

/// No lane waits for values of several lines, nor brings what it combined for others to them.
#[test]
fn lines_can_be_reduced_one_by_one() {
    let layout = blocked([1, 1], [1, 32], [4, 1], [64, 32]);
    let shared = reduced(&layout, 1, &[32]);
    let apart = ReducePlan::line_by_line(&layout, Dim::out(1), &[32], None, &cuda()).unwrap();
    assert!(!shared.local.halvings.is_empty() && shared.exchange.is_some());
    assert!(apart.local.halvings.is_empty() && apart.exchange.is_none());
    assert_eq!((apart.local.values(), apart.cost.shuffles), (16, 16 * 5));
}

/// CDNA3 ISA, "Data Parallel Primitives": patterns for distances 1, 2, 7, 8 and 15; 16 goes through the crossbar of the LDS,
/// 32 by the numbers of lanes. RDNA has all within sixteen, where the distances stay as they are.
#[test]
fn lanes_are_combined_at_distances_that_have_instructions() {
    let lanes = |target: &str| {
        let target = TargetDesc::parse(target).unwrap();
        let layout = blocked([1, 1], [1, u64::from(target.lanes)], [4, 1], [4, u64::from(target.lanes)]);
        let plan = reduced_on(&layout, 1, &[32], &target);
        plan.local.shuffles.iter().map(|shuffle| shuffle.lane).collect::<Vec<_>>()
    };
    assert_eq!(lanes("hip:gfx942"), [1, 2, 7, 8, 16, 32]);
    assert_eq!(lanes("hip:gfx1100"), [1, 2, 4, 8, 16]);
    assert_eq!(lanes("cuda:90"), [1, 2, 4, 8, 16]);
}

#[test]
fn every_warp_pays_for_its_shuffles() {
    let cycles =
        |warps: u64| reduced(&blocked([1, 4], [1, 32], [warps, 1], [2 * warps, 128]), 1, &[32]).cost.cycles;
    let latency = 5.0 * cuda().cost.shuffle_latency;
    assert_eq!(cycles(4) - latency, 4.0 * (cycles(1) - latency));
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
    assert_eq!(plan.shared_bytes(), 4 * 4 * 4, "four rows, four warps, four bytes");
    let argmax = reduced(&layout, 1, &[32, 32]);
    assert_eq!(argmax.local, plan.local);
    assert_eq!(argmax.exchange.unwrap().conversions.len(), 2);
}

#[test]
fn warps_with_copies_are_not_counted_twice() {
    let layout = blocked([1, 1], [1, 32], [1, 4], [16, 16]);
    assert_ne!(layout.free_variable_mask(Dim::WARP), 0);
    let plan = reduced(&layout, 1, &[32]);
    let conversions = plan.exchange.iter().flat_map(|exchange| &exchange.conversions);
    let leaves = |plan: &ConversionPlan| matches!(&plan.conversion, Conversion::SharedMemory(shared) if shared.scope != Scope::Warp);
    assert!(!conversions.into_iter().any(leaves), "all four warps hold the whole axis:\n{plan}");
}

const MMA: &str =
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [W0, W1], instrShape = [16, 8]}>";
const WARPS: [[u64; 2]; 5] = [[1, 4], [4, 1], [2, 2], [2, 4], [1, 1]];

/// The cases of one row of Table 3: twenty or ten layouts of square tensors from 16×16 to 128×128 (lines of
/// 16 to 256 elements where the slice of a matrix is meant), by up to eight warps. The paper names neither
/// the shapes nor the warps of its cases; these are ours, so what compares with the paper is that all of
/// them reduce, and the ratio to the legacy way, not the sums.
fn cases(row: &str) -> Vec<LinearLayout> {
    let of = |text: String, shape: &[u64]| {
        text.parse::<Encoding>().unwrap_or_else(|e| panic!("{text}: {e}")).to_linear_layout(shape).unwrap()
    };
    let parent = |[w0, w1]: [u64; 2]| MMA.replace("W0", &w0.to_string()).replace("W1", &w1.to_string());
    let operand = |i: u64, w| format!("#ttg.dot_op<{{opIdx = {i}, parent = {}, kWidth = 2}}>", parent(w));
    let slice = |dim: u64, of: String| format!("#ttg.slice<{{dim = {dim}, parent = {of}}}>");
    let squares = || [16u64, 32, 64, 128].into_iter().flat_map(|n| WARPS.map(|w| (n, w)));
    let lines = || [16u64, 32, 64, 128, 256].into_iter().flat_map(|n| [0u64, 1].map(|dim| (n, dim)));
    match row {
        "Blocked" => squares().map(|(n, w)| blocked([1, 4], [8, 4], w, [n, n])).collect(),
        "MMA" => squares().map(|(n, w)| of(parent(w), &[n, n])).collect(),
        "MMA Input" => {
            lines().map(|(n, i)| of(operand(i, [2, 2]), &if n == 256 { [64, 128] } else { [n, n] })).collect()
        }
        "Sliced<Blocked>" => {
            let text = |[w0, w1]: [u64; 2]| {
                slice(
                    2,
                    format!(
                        "#ttg.blocked<{{sizePerThread = [1, 4, 1], threadsPerWarp = [4, 4, 2], warpsPerCTA = [{w0}, {w1}, 1], order = [1, 0, 2]}}>"
                    ),
                )
            };
            squares().map(|(n, w)| of(text(w), &[n, n])).collect()
        }
        "Sliced<MMA>" => lines().map(|(n, dim)| of(slice(dim, parent([2, 2])), &[n])).collect(),
        "Sliced<MMA Input>" => {
            lines().map(|(n, dim)| of(slice(1 - dim, operand(dim, [2, 2])), &[n])).collect()
        }
        // Rows rotated by lanes and warps: no bit of a lane or warp stays in one dimension.
        "Custom" => {
            let swizzled = |(n, dim): (u64, u64)| {
                let bits = n.min(128).trailing_zeros() as usize;
                let mut all: Vec<[u64; 2]> = (0..bits).map(|b| [1 << b, 1 << b]).collect();
                all.extend((0..bits).map(|b| [0, 1 << b]));
                all.rotate_left(dim as usize * 2);
                let registers = all.len().saturating_sub(7);
                let (reg, threads) = all.split_at(registers);
                let (lane, warp) = threads.split_at(threads.len().min(5));
                let bases = [(Dim::REGISTER, reg), (Dim::LANE, lane), (Dim::WARP, warp)];
                let bases = bases.map(|(d, v)| (d, v.to_vec()));
                LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap()
            };
            lines().map(swizzled).collect()
        }
        _ => unreachable!("{row}"),
    }
}

#[test]
fn table_3_of_the_paper() {
    // Row, cases, shared-memory instructions of the paper's cases, and of ours.
    let table = [
        ("Blocked", 20, 1388, 28),
        ("MMA", 20, 3517, 37),
        ("MMA Input", 10, 5884, 43),
        ("Sliced<Blocked>", 20, 4687, 48),
        ("Sliced<MMA>", 10, 320, 18),
        ("Sliced<MMA Input>", 10, 545, 18),
        ("Custom", 10, 913, 109),
    ];
    let mut reached = Vec::new();
    for (row, number, paper, ours) in table {
        let cases = cases(row);
        assert_eq!(cases.len(), number, "{row}");
        let axis = cases[0].num_out_dims() - 1;
        let sum: u64 = cases.iter().map(|l| reduced(l, axis, &[32]).shared_instructions()).sum();
        assert!(sum <= paper, "{row}: {sum} instructions, {paper} in the paper");
        reached.push((row, sum, ours));
    }
    assert!(reached.iter().all(|r| r.1 == r.2), "{reached:?}");
}

#[test]
fn one_by_one_takes_more_than_four_times_as_many() {
    // Without vectors and zero columns every register is stored and loaded by itself, copies and all.
    let ours: u64 = cases("Blocked").iter().map(|l| reduced(l, 1, &[32]).shared_instructions()).sum();
    let warps = |l: &LinearLayout| l.in_size(Dim::WARP).unwrap();
    let legacy: u64 =
        cases("Blocked").iter().filter(|l| warps(l) > 1).map(|l| 2 * l.in_size(Dim::REGISTER).unwrap()).sum();
    assert!(ours * 5888 <= legacy * 1388, "{ours} instructions, {legacy} with replicas, one by one");
}

#[test]
fn integers_of_a_whole_warp_take_one_instruction() {
    let combined = |layout: &LinearLayout, axis, combine| {
        let plan = ReducePlan::with_combine(layout, Dim::out(axis), &[32], Some(combine), &cuda()).unwrap();
        check_reduce(&plan, layout, &[32], &cuda()).unwrap();
        plan
    };
    let rows = blocked([1, 4], [1, 32], [4, 1], [16, 128]);
    let plan_of_rows = combined(&rows, 1, WarpCombine::Add);
    let plan = &plan_of_rows;
    assert_eq!((plan.local.whole_warp, plan.cost.shuffles), (Some(WarpCombine::Add), 4));
    // Four lanes of eight hold the same: adding them would count them twice.
    let half = blocked([1, 1], [1, 32], [4, 1], [4, 8]);
    assert_eq!(combined(&half, 1, WarpCombine::Add).local.whole_warp, None);
    assert_eq!(combined(&half, 1, WarpCombine::UMax).local.whole_warp, Some(WarpCombine::UMax));
    // One exchange is cheaper than the instruction, which takes as long as two.
    let pair = blocked([1, 1], [1, 32], [4, 1], [4, 2]);
    let plan = combined(&pair, 1, WarpCombine::UMax);
    assert_eq!((plan.local.whole_warp, plan.cost.shuffles), (None, 1));
    let mut slow = cuda();
    slow.cost.shuffle *= 3.0;
    let slower = ReducePlan::with_combine(&rows, Dim::out(1), &[32], Some(WarpCombine::Add), &slow).unwrap();
    let more = slower.cost.cycles - plan_of_rows.cost.cycles;
    assert!((more - 4.0 * 4.0 * 2.0 * (slow.cost.shuffle - cuda().cost.shuffle)).abs() < 1e-9, "{more}");
    // Lanes that hold other rows must not be mixed.
    let two_rows = blocked([1, 1], [2, 16], [4, 1], [8, 16]);
    assert_eq!(combined(&two_rows, 1, WarpCombine::And).local.whole_warp, None);
}

#[test]
fn long_integers_of_a_whole_warp_take_an_instruction_for_each_part() {
    let combined = |layout: &LinearLayout, combine| {
        let plan = ReducePlan::with_combine(layout, Dim::out(1), &[64], Some(combine), &cuda()).unwrap();
        check_reduce(&plan, layout, &[64], &cuda()).unwrap();
        (plan.local.whole_warp, plan.cost.shuffles)
    };
    let row = blocked([1, 4], [1, 32], [4, 1], [4, 128]);
    for (combine, instructions) in
        [(WarpCombine::SMax, 2), (WarpCombine::UMin, 2), (WarpCombine::Or, 2), (WarpCombine::Add, 3)]
    {
        assert_eq!(combined(&row, combine), (Some(combine), instructions));
    }
    // Two exchanges of two words are as long as two instructions, and one is shorter; a sum would count copies.
    let four = blocked([1, 1], [1, 32], [4, 1], [4, 4]);
    assert_eq!(combined(&four, WarpCombine::UMax), (Some(WarpCombine::UMax), 2));
    assert_eq!(combined(&four, WarpCombine::Add), (None, 4));
    assert_eq!(combined(&blocked([1, 1], [1, 32], [4, 1], [4, 2]), WarpCombine::UMax), (None, 2));
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
fn swizzled_layouts_reduce_where_they_are() {
    // Both lane bits and the register move along both dimensions; the lines are told apart by the sum.
    let bases = [(Dim::REGISTER, vec![[1, 1]]), (Dim::LANE, vec![[1, 2], [2, 0]])];
    let outs = [(Dim::out(0), 4), (Dim::out(1), 4)];
    assert!(LinearLayout::from_bases_sized(&bases, &outs, true).is_err(), "three bits are not four");
    let bases = [(Dim::REGISTER, vec![[1, 1]]), (Dim::LANE, vec![[1, 2], [2, 0], [0, 1]])];
    let layout = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap();
    let plan = reduced(&layout, 1, &[32]);
    assert!(plan.exchange.is_none());
    let steps: Vec<(u64, u32)> = plan.local.shuffles.iter().map(|s| (s.lane, s.value)).collect();
    assert_eq!(steps, [(1, 1), (4, 0)], "the other value of the neighbour, then the same of lane ^ 4");
    assert!(plan.to_string().contains("combine with value ^ 1 of lane ^ 1 by"), "{plan}");
    // Two lanes that differ in both bits hold the two elements of one line.
    let bases = [(Dim::LANE, vec![[1, 1], [1, 0]])];
    let diagonal = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap();
    let plan = reduced(&diagonal, 1, &[32]);
    assert_eq!(plan.local.shuffles.iter().map(|s| s.lane).collect::<Vec<_>>(), [0b11]);
    // A warp that moves along both.
    let bases = [(Dim::LANE, vec![[1, 0], [2, 0]]), (Dim::WARP, vec![[1, 1]])];
    let across = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap();
    assert!(reduced(&across, 1, &[32]).exchange.is_some());
}

#[test]
fn what_cannot_be_reduced_is_said() {
    let layout = blocked([1, 4], [8, 4], [4, 1], [64, 64]);
    assert!(matches!(ReducePlan::new(&layout, Dim::out(2), &[32], &cuda()), Err(PlanError::Layout(_))));
    let outs = [(Dim::out(0), 2), (Dim::out(1), 4)];
    let partly = LinearLayout::from_bases_sized(&[(Dim::LANE, vec![[1, 1]])], &outs, false).unwrap();
    let error = ReducePlan::new(&partly, Dim::out(1), &[32], &cuda()).unwrap_err();
    assert!(matches!(error, PlanError::Layout(linear_layout::Error::NotSurjective { rank: 1, bits: 3 })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_distributed_layout_reduces((layout, _) in pair(false), axis in 0usize..2, width in 3u32..7) {
        reduced(&layout, axis, &[1 << width]);
        for combine in [WarpCombine::Xor, WarpCombine::SMin] {
            let plan = ReducePlan::with_combine(&layout, Dim::out(axis), &[32], Some(combine), &cuda()).unwrap();
            prop_assert!(check_reduce(&plan, &layout, &[32], &cuda()).is_ok(), "{plan}");
        }
    }

    #[test]
    fn any_layout_reduces_to_any_other(
        (layout, other) in pair(true),
        axis in 0usize..2,
        width in 3u32..7,
        target in any_target(),
    ) {
        reduced_to(&layout, axis, &[1 << width], &without(&other, axis), &target);
        if let Some(shared) = ReducePlan::shared_among_lanes(&layout, Dim::out(axis), &target).unwrap() {
            let plan = reduced_to(&layout, axis, &[1 << width], &shared, &target);
            prop_assert_eq!(plan.shared_instructions(), 0);
        }
    }

    #[test]
    fn any_layout_at_all_reduces(
        (layout, _) in pair(true),
        axis in 0usize..2,
        width in 3u32..7,
        target in any_target(),
    ) {
        reduced_on(&layout, axis, &[1 << width], &target);
    }
}
