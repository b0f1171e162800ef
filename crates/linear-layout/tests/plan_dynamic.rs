//! Scans, gathers and histograms, executed by the checker.

mod plan_layouts;

use linear_layout::checker::{check_gather, check_histogram, check_scan};
use linear_layout::plan::{ConversionPlan, Gather, GatherPlan, HistogramPlan, Indices, PlanError, ScanPlan};
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
    scanned_on(layout, axis, reverse, &cuda())
}

fn scanned_on(layout: &LinearLayout, axis: usize, reverse: bool, target: &TargetDesc) -> ScanPlan {
    let plan = ScanPlan::in_place(layout, Dim::out(axis), &[32], reverse, target).unwrap();
    let cheapest = ScanPlan::new(layout, Dim::out(axis), &[32], reverse, target).unwrap();
    for plan in [&plan, &cheapest] {
        if let Err(error) = check_scan(plan, layout, &[32], target) {
            panic!("{error}\n{layout}\n{plan}");
        }
    }
    assert!(cheapest.cycles() <= plan.cycles(), "{cheapest}\n{plan}");
    plan
}

#[test]
fn runs_of_lanes_are_brought_into_registers() {
    // 16 registers of a thread, 32 apart along the axis: five shuffles each where they are, five and one of the lane
    // before once a thread has 16 in a row.
    let rows = blocked([1, 1], [1, 32], [4, 1], [4, 512]);
    let plan = ScanPlan::new(&rows, Dim::out(1), &[32], false, &cuda()).unwrap();
    let between = &plan.detour.as_ref().expect("a detour").layout;
    assert_eq!((scanned(&rows, 1, false).cost.shuffles >= 80, plan.cost.shuffles), (true, 6));
    let bits =
        |dim| (0..between.in_bits(dim)).map(|bit| between.basis_coords(dim, bit).unwrap().to_vec()).collect();
    let registers: Vec<Vec<u64>> = bits(Dim::REGISTER);
    assert_eq!(registers, [[0, 1], [0, 2], [0, 4], [0, 8]]);
    assert_eq!(bits(Dim::WARP), [[1, 0], [2, 0]], "warps keep their rows");
    // Columns of 64 rows in four warps.
    let columns = blocked([1, 8], [16, 2], [4, 1], [64, 64]);
    let plan = ScanPlan::new(&columns, Dim::out(0), &[32], false, &cuda()).unwrap();
    assert!(
        plan.detour.is_some() && plan.cost.shuffles < scanned(&columns, 0, false).cost.shuffles,
        "{plan}"
    );
    let detour = plan.detour.as_ref().unwrap();
    let sides = [&detour.before, &detour.after].map(|side| ConversionPlan::scratch_bytes(side));
    assert_eq!(detour.shared_bytes(), sides[0].max(sides[1]));
    // Results that nobody uses are not brought back, and change nothing else: memory was given to the plan as it was.
    let plan =
        |wanted| ScanPlan::with_combine(&rows, Dim::out(1), &[32, 32], wanted, false, 1.5, &cuda()).unwrap();
    let (all, one, none) = (plan(vec![0, 1]), plan(vec![1]), plan(vec![]));
    let layouts = [&all, &one, &none].map(|plan| plan.detour.as_ref().map(|detour| &detour.layout));
    assert!(layouts[0].is_some() && layouts.iter().all(|layout| *layout == layouts[0]));
    assert_eq!([&all, &one, &none].map(|plan| plan.detour.as_ref().map_or(0, |d| d.after.len())), [2, 1, 0]);
    assert!(one.shared_bytes(&[32, 32]) <= all.shared_bytes(&[32, 32]));
    // What already lies so stays, and its plan, too, knows which results are wanted.
    let lines = blocked([1, 4], [1, 32], [4, 1], [4, 128]);
    assert!(ScanPlan::new(&lines, Dim::out(1), &[32], false, &cuda()).unwrap().detour.is_none());
    let plan = ScanPlan::with_combine(&lines, Dim::out(1), &[32, 32], vec![1], false, 1.5, &cuda()).unwrap();
    assert_eq!((plan.detour.is_none(), &plan.wanted), (true, &vec![1]));
    let dear =
        ScanPlan::with_combine(&lines, Dim::out(1), &[32, 32], vec![1], false, 101.5, &cuda()).unwrap();
    let more = 4.0 * 100.0 * plan.combinations as f64;
    assert_eq!((dear.combinations, dear.combining), (plan.combinations, plan.combining + more));
}

#[test]
fn a_scan_within_a_warp_sends_one_total_per_step() {
    let plan = scanned(&blocked([1, 4], [1, 32], [4, 1], [4, 128]), 1, false);
    // Three steps in registers, five between lanes and one from the lane before, one value each.
    assert_eq!((plan.cost.shuffles, plan.cost.stores, plan.steps.len()), (6, 0, 9));
    assert_eq!(plan.steps[7].lane.apply(0b11010), 0b01111);
    let combined: usize = plan.steps.iter().map(|s| s.pairs.len()).sum();
    assert_eq!(combined, 3 + 5 + 3, "each element twice, but for the totals");
}

/// Register by register where that combines less than a step for each bit.
#[test]
fn a_scan_combines_as_little_as_it_can() {
    let pairs = |layout: LinearLayout| {
        scanned(&layout, 1, false).steps.iter().map(|step| step.pairs.len()).sum::<usize>()
    };
    for registers in [2, 4, 8] {
        let alone = blocked([1, registers], [32, 1], [4, 1], [128, registers]);
        assert_eq!(pairs(alone), registers as usize - 1);
    }
    // Two registers and 16 lanes: each lane its total, four steps, and one for what is below a lane.
    assert_eq!(pairs(blocked([1, 2], [2, 16], [4, 1], [8, 32])), 1 + 4 + 1);
}

#[test]
fn a_scan_across_warps_goes_through_memory() {
    let plan = scanned(&blocked([1, 4], [1, 32], [1, 4], [1, 1024]), 1, true);
    let [exchange] = &plan.exchanges[..] else { panic!("{plan}") };
    assert_eq!(exchange.bits, 7..10, "two bits of warps and one of registers above them");
    assert!(plan.to_string().contains("bits 7 to 9: "), "{plan}");
    // Operands lie behind each other, aligned to the widest access.
    let bytes = |bits: &[u32]| plan.shared_bytes(bits);
    assert_eq!(plan.scratch_offsets(&[8, 64, 32]), [0, bytes(&[8]), bytes(&[8, 64])]);
    assert_eq!([bytes(&[8]), bytes(&[64]), bytes(&[8, 64, 32])], [16, 64, 16 + 64 + 32]);
    assert_eq!((exchange.lines.len(), exchange.load_elems, plan.cost.loads), (1, 4, 2));
    assert_eq!((plan.cost.barriers, plan.shared_bytes(&[32])), (1, 32));
    assert_eq!(exchange.order(), [7, 6, 5, 4, 3, 2, 1, 0], "the last block comes first");
    let forward = scanned(&blocked([1, 4], [1, 32], [1, 4], [1, 1024]), 1, false);
    assert_eq!(forward.exchanges[0].order(), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn an_exchange_loads_lines_next_to_each_other_at_once() {
    // Columns of 64 rows in four warps, four columns in each thread.
    let plan = scanned(&blocked([1, 4], [4, 8], [4, 1], [16, 32]), 0, false);
    let [exchange] = &plan.exchanges[..] else { panic!("{plan}") };
    assert_eq!((exchange.store_elems, exchange.load_elems), (4, 4));
    assert_eq!((plan.cost.stores, plan.cost.loads, plan.cost.barriers), (1, 4, 1));
}

#[test]
fn many_totals_are_exchanged_in_two_rounds_where_that_is_cheaper() {
    // Eight warps, and 1 to 16 registers beyond them: every thread combines all totals that one round brings.
    let rounds = |columns: u64, target: &TargetDesc| {
        let plan = scanned_on(&blocked([1, 1], [1, 32], [1, 8], [1, columns]), 1, false, target);
        plan.exchanges.iter().map(|x| x.bits.clone()).collect::<Vec<_>>()
    };
    assert_eq!([256, 512, 1024, 4096].map(|n| rounds(n, &cuda()).len()), [1, 1, 2, 2]);
    assert_eq!(rounds(1024, &cuda()), [5..7, 7..10]);
    let mut target = cuda();
    (target.cost.block_barrier, target.cost.shared_latency) = (0.0, 0.0);
    assert_eq!(rounds(256, &target), [5..7, 7..8]);
    target.cost.block_barrier = 1e6;
    assert_eq!(rounds(2048, &target).len(), 1, "64 totals at once");
}

#[test]
fn totals_of_narrow_elements_are_bytes() {
    // 32 totals: two accesses of 16 bytes, not one of 32 places of four bits.
    let layout = blocked([1, 1], [1, 32], [1, 4], [1, 1024]);
    let plan = ScanPlan::in_place(&layout, Dim::out(1), &[4], false, &cuda()).unwrap();
    check_scan(&plan, &layout, &[4], &cuda()).unwrap();
    assert_eq!((plan.exchanges[0].load_elems, plan.cost.loads, plan.shared_bytes(&[4])), (16, 2, 32));
}

#[test]
fn a_scan_over_blocks_takes_a_detour() {
    // Nothing else to divide: both blocks scan the whole line.
    let bases = [(Dim::LANE, vec![[1]]), (Dim::BLOCK, vec![[2]])];
    let layout = LinearLayout::from_bases(&bases, &[Dim::out(0)]).unwrap();
    let plan = scanned(&layout, 0, false);
    let detour = plan.detour.as_ref().unwrap();
    assert_eq!(detour.layout.columns_of(Dim::BLOCK), [0]);
    assert_eq!((detour.before[0].kind(), detour.after.len()), ("cluster", 1));
    assert!(plan.to_string().contains("convert first: through the shared memory of the cluster"), "{plan}");
    // Rows of 128 in two blocks, 16 of them: each block takes eight rows.
    let bases = [
        (Dim::REGISTER, vec![[0, 1], [0, 2], [4, 0], [8, 0]]),
        (Dim::LANE, vec![[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]]),
        (Dim::WARP, vec![[2, 0]]),
        (Dim::BLOCK, vec![[0, 64]]),
    ];
    let layout = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap();
    let plan = scanned(&layout, 1, true);
    let between = &plan.detour.as_ref().unwrap().layout;
    assert_eq!(between.basis_coords(Dim::BLOCK, 0).unwrap().as_slice(), &[8, 0]);
    assert_eq!(between.in_bits(Dim::REGISTER), 4, "no thread has more than before");
    assert!(scanned(&layout, 0, false).detour.is_none(), "columns lie in one block each");
}

#[test]
fn a_scan_of_a_swizzled_layout_takes_a_detour_within_the_block() {
    let bases = [(Dim::LANE, vec![[1, 1], [1, 2], [2, 0], [0, 1]])];
    let layout = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap();
    let plan = scanned(&layout, 1, false);
    let detour = plan.detour.as_ref().unwrap();
    assert_ne!(detour.before[0].kind(), "cluster");
    assert_eq!(detour.layout.in_bits(Dim::REGISTER), 0);
}

fn gathered(source: &LinearLayout, indices: &LinearLayout, axis: usize, bits: u32) -> GatherPlan {
    gathered_on(source, indices, axis, bits, &cuda())
}

fn gathered_on(
    source: &LinearLayout,
    indices: &LinearLayout,
    axis: usize,
    bits: u32,
    target: &TargetDesc,
) -> GatherPlan {
    let dim = Dim::out(axis);
    let shuffles = GatherPlan::by_shuffles(source, indices, dim, bits, target).unwrap();
    let through =
        GatherPlan::through_shared(source, (indices, &Indices::default()), dim, bits, target).unwrap();
    let plan = GatherPlan::new(source, indices, dim, bits, target).unwrap();
    let index = |element: u64| element.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    for p in shuffles.iter().chain([&through, &plan]) {
        if let Err(error) = check_gather(p, source, indices, bits, target, &index) {
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
fn whole_rows_are_looked_up_by_vectors() {
    // Rows of 64 elements of 16 bits: a thread has eight neighbours of each, 16 bytes.
    let layout = blocked([1, 8], [4, 8], [4, 1], [64, 64]);
    let by = |alike: &[usize], in_place: bool| {
        let alike = alike.iter().copied().map(Dim::out).collect();
        let known = Indices { in_place, alike };
        let plan = GatherPlan::through_shared(&layout, (&layout, &known), Dim::out(0), 16, &cuda()).unwrap();
        // The packing has the axis last: a row's number is below it for columns.
        let row = |element: u64| (element >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        check_gather(&plan, &layout, &layout, 16, &cuda(), &row).unwrap();
        let Gather::Shared(shared) = plan.gather else { panic!("no shared memory") };
        (shared.vector, shared.wavefronts, plan.cost.loads)
    };
    let (vector, wavefronts, loads) = by(&[1], false);
    assert_eq!((vector, loads), (8, 4));
    // Four phases of eight lanes; a row has all banks, so lanes of one row never meet.
    assert!((4.0..8.0).contains(&wavefronts), "{wavefronts}");
    assert_eq!(by(&[], false).0, 1);
    // Lines along the axis are no rows.
    assert_eq!(by(&[0], false).0, 1);
}

#[test]
fn lines_shorter_than_those_of_indices_are_looked_up_in_place() {
    let (source, indices) =
        (blocked([1, 1], [32, 1], [4, 1], [32, 1]), blocked([1, 1], [16, 2], [4, 1], [32, 2]));
    let known = Indices { in_place: true, ..Indices::default() };
    let plan = GatherPlan::through_shared(&source, (&indices, &known), Dim::out(1), 32, &cuda()).unwrap();
    check_gather(&plan, &source, &indices, 32, &cuda(), &|_| 0).unwrap();
}

#[test]
fn lanes_that_banks_keep_apart_do_not_meet() {
    // Each lane has a column of its own, in a bank of its own, whatever row it looks up.
    let across = blocked([1, 1], [1, 32], [4, 1], [64, 32]);
    let wavefronts = |layout: &LinearLayout, in_place: bool| {
        let known = Indices { in_place, ..Indices::default() };
        let plan = GatherPlan::through_shared(layout, (layout, &known), Dim::out(0), 32, &cuda()).unwrap();
        let Gather::Shared(shared) = plan.gather else { panic!("no shared memory") };
        shared.wavefronts
    };
    assert_eq!(wavefronts(&across, false), 1.0);
    // Lanes along the axis meet as 32 throws into 32 bins do, and two and two at most where they look up their own elements.
    let along = blocked([1, 1], [32, 1], [1, 4], [1024, 4]);
    assert!((3.0..4.0).contains(&wavefronts(&along, false)), "{}", wavefronts(&along, false));
    // Of a line of 64 words each bank has two.
    assert_eq!(wavefronts(&blocked([1, 1], [32, 1], [1, 4], [64, 32]), false), 2.0);
    assert!(wavefronts(&along, true) <= 2.0, "{}", wavefronts(&along, true));
}

#[test]
fn a_gather_over_blocks_brings_the_lines_first() {
    let bases = [
        (Dim::REGISTER, vec![[0, 1], [0, 2]]),
        (Dim::LANE, vec![[1, 0], [2, 0], [4, 0], [0, 4], [0, 8]]),
        (Dim::BLOCK, vec![[0, 16]]),
    ];
    let source = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap();
    let plan = gathered(&source, &source, 1, 32);
    let detour = plan.detour.as_ref().unwrap();
    assert_eq!(detour.before[0].kind(), "cluster");
    assert_eq!(detour.shared_bytes(), ConversionPlan::scratch_bytes(&detour.before));
    assert!(detour.shared_bytes() > 1 && plan.shared_bytes() >= detour.shared_bytes());
    assert_eq!(detour.layout.columns_of(Dim::BLOCK), [0], "every block has indices for all lines");
    assert!(gathered(&source, &source, 0, 32).detour.is_none());
    // Indices divided the other way than the source.
    let rows = [
        (Dim::REGISTER, vec![[0, 1], [0, 2]]),
        (Dim::LANE, vec![[0, 16], [1, 0], [2, 0], [0, 4], [0, 8]]),
        (Dim::BLOCK, vec![[4, 0]]),
    ];
    let indices = LinearLayout::from_bases(&rows, &[Dim::out(0), Dim::out(1)]).unwrap();
    let plan = gathered(&source, &indices, 1, 32);
    assert_eq!(plan.detour.unwrap().layout.basis_coords(Dim::BLOCK, 0).unwrap().as_slice(), &[4, 0]);
    assert!(gathered(&source, &indices, 0, 32).detour.is_some());
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
fn what_shared_memory_does_not_hold_is_an_error() {
    let wide = blocked([1, 8], [1, 32], [1, 4], [64, 1024]);
    let error = GatherPlan::new(&wide, &wide, Dim::out(1), 32, &cuda()).unwrap_err();
    assert_eq!(error, PlanError::SharedBudget { needed: 256 << 10, budget: 227 << 10 });
    assert_eq!(GatherPlan::new(&wide, &wide, Dim::out(1), 16, &cuda()).unwrap().shared_bytes(), 128 << 10);
    // By shuffles any number of lines is fine.
    let tall = blocked([1, 1], [4, 8], [4, 1], [1 << 14, 8]);
    let plan = GatherPlan::new(&tall, &tall, Dim::out(1), 32, &cuda()).unwrap();
    assert!(matches!(plan.gather, Gather::Shuffle(_)));
    assert_eq!(plan.shared_bytes(), 0);
    let line = "#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>";
    let bins = line.parse::<Encoding>().unwrap().to_linear_layout(&[1 << 16]).unwrap();
    let error = HistogramPlan::new(&wide, &bins, 32, &cuda()).unwrap_err();
    assert_eq!(error, PlanError::SharedBudget { needed: 256 << 10, budget: 227 << 10 });
    let mut large = cuda();
    large.shared_bytes = 256 << 10;
    let plan = HistogramPlan::new(&wide, &bins, 32, &large).unwrap();
    assert_eq!(plan.total_shared_bytes(), 256 << 10);
}

#[test]
fn indices_may_be_more_than_elements() {
    let source = blocked([1, 1], [4, 8], [4, 1], [16, 8]);
    let indices = blocked([1, 4], [4, 8], [4, 1], [16, 64]);
    gathered(&source, &indices, 1, 32);
}

#[test]
fn indices_have_the_shape_of_the_source_but_along_the_axis() {
    let source = blocked([1, 1], [4, 8], [4, 1], [16, 8]);
    let refused = |indices: &LinearLayout| {
        let error = GatherPlan::new(&source, indices, Dim::out(1), 32, &cuda()).unwrap_err();
        assert!(matches!(&error, PlanError::Layout(linear_layout::Error::DimMismatch { .. })), "{error}");
    };
    // As many dimensions, one of another size; all sizes as they should be, and one dimension more.
    refused(&blocked([1, 1], [4, 8], [4, 1], [32, 8]));
    let deeper = "#ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [4, 8, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>";
    refused(&deeper.parse::<Encoding>().unwrap().to_linear_layout(&[16, 8, 2]).unwrap());
}

#[test]
fn memory_of_a_gather_has_the_rows_that_threads_store_in_a_row() {
    let rows = blocked([1, 4], [2, 16], [4, 1], [16, 64]);
    for axis in [0, 1] {
        let plan =
            GatherPlan::through_shared(&rows, (&rows, &Indices::default()), Dim::out(axis), 32, &cuda())
                .unwrap();
        let Gather::Shared(shared) = &plan.gather else { panic!("{plan}") };
        let coords = |bit| shared.memory.basis_coords(Dim::OFFSET, bit).unwrap();
        for bit in 0..10 {
            let along = |dim| shared.memory.basis_along(Dim::OFFSET, bit, Dim::out(dim)).unwrap();
            let expected = if bit < 6 { (0, 1 << bit) } else { (1 << (bit - 6), 0) };
            assert_eq!((along(0), along(1)), expected, "bit {bit} of axis {axis}: {:?}", coords(bit));
        }
    }
}

#[test]
fn a_histogram_counts_copies_once() {
    let source = blocked([1, 4], [1, 32], [4, 1], [2, 128]);
    let bins = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>";
    let result = bins.parse::<Encoding>().unwrap().to_linear_layout(&[64]).unwrap();
    let plan = HistogramPlan::new(&source, &result, 32, &cuda()).unwrap();
    check_histogram(&plan, &source, &result, 32, &cuda()).unwrap();
    assert_eq!((plan.registers.len(), plan.duplicates.warp, plan.shared_bytes), (4, 0b10, 256));
}

#[test]
fn every_block_counts_everything() {
    let bases = [(Dim::REGISTER, vec![[1]]), (Dim::LANE, vec![[2], [4]]), (Dim::BLOCK, vec![[8]])];
    let source = LinearLayout::from_bases(&bases, &[Dim::out(0)]).unwrap();
    let bins = [(Dim::LANE, vec![[1], [2]]), (Dim::BLOCK, vec![[4]])];
    let result = LinearLayout::from_bases(&bins, &[Dim::out(0)]).unwrap();
    let plan = HistogramPlan::new(&source, &result, 32, &cuda()).unwrap();
    check_histogram(&plan, &source, &result, 32, &cuda()).unwrap();
    assert_eq!(plan.detour.as_ref().unwrap().before[0].kind(), "cluster");
    assert_eq!(
        (plan.registers.len(), plan.duplicates.block, plan.shared_bytes),
        (2, 0, 32),
        "eight elements by four of the lanes"
    );
    assert!(plan.to_string().contains("convert the elements first"), "{plan}");
    // Copies in the other block: it counts them into bins of its own.
    let bases = [(Dim::LANE, vec![[1], [2]]), (Dim::BLOCK, vec![[0]])];
    let source = LinearLayout::from_bases(&bases, &[Dim::out(0)]).unwrap();
    let plan = HistogramPlan::new(&source, &result, 32, &cuda()).unwrap();
    check_histogram(&plan, &source, &result, 32, &cuda()).unwrap();
    assert!(plan.detour.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_layout_scans(
        (layout, _) in prop_oneof![pair(false), pair(true)],
        axis in 0usize..2,
        reverse in any::<bool>(),
        target in any_target(),
    ) {
        scanned_on(&layout, axis, reverse, &target);
    }

    #[test]
    fn any_layout_gathers(
        (a, b) in prop_oneof![pair(false), pair(true)],
        same in any::<bool>(),
        axis in 0usize..2,
        width in 3u32..7,
        target in any_target(),
    ) {
        gathered_on(&a, if same { &a } else { &b }, axis, 1 << width, &target);
    }

    #[test]
    fn any_layout_is_counted(
        (layout, _) in prop_oneof![pair(false), pair(true)],
        (bins, _) in prop_oneof![pair(false), pair(true)],
        target in any_target(),
    ) {
        let bins = bins.flatten_outs().unwrap();
        let plan = HistogramPlan::new(&layout, &bins, 16, &target).unwrap();
        let checked = check_histogram(&plan, &layout, &bins, 16, &target);
        prop_assert!(checked.is_ok(), "{:?}\n{}\n{}\n{}", checked, layout, bins, plan);
    }
}
