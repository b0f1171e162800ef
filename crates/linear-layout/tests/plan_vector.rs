//! Accesses to global memory: the paper's Table 2, and what masks, strides and copies do to them.

mod plan_layouts;

use linear_layout::checker::check_vector;
use linear_layout::plan::{AddressFacts, PlanError, VectorPlan};
use linear_layout::target::{TargetDesc, Touched};
use linear_layout::{Dim, LinearLayout};
use plan_layouts::any_target;
use proptest::prelude::*;

fn cuda() -> TargetDesc {
    TargetDesc::parse("cuda:90").unwrap()
}

/// A row-major tensor of `rows × columns`, `per_thread` consecutive elements in each thread of four warps,
/// wrapped around or repeated as needed.
fn consecutive(rows: u64, columns: u64, per_thread: u64) -> LinearLayout {
    let total = (rows * columns).ilog2();
    let bit = |i: u32| {
        let element = if i < total { 1u64 << i } else { 0 };
        vec![element / columns, element % columns]
    };
    let r = per_thread.ilog2();
    let mut register: Vec<Vec<u64>> = (0..r).map(bit).collect();
    register.extend((r + 7..total).map(bit));
    let bases = [
        (Dim::REGISTER, register),
        (Dim::LANE, (r..r + 5).map(bit).collect()),
        (Dim::WARP, (r + 5..r + 7).map(bit).collect()),
    ];
    LinearLayout::from_bases_sized(&bases, &[(Dim::out(0), rows), (Dim::out(1), columns)], true).unwrap()
}

#[test]
fn table_2_of_the_paper() {
    // Columns, element bits, elements a thread, bits per access within one dimension and across both.
    let rows = [
        (1, 8, 4, 32, 32),
        (2, 8, 16, 16, 128),
        (4, 8, 16, 32, 128),
        (8, 8, 16, 64, 128),
        (16, 8, 16, 128, 128),
        (1, 16, 4, 64, 64),
        (2, 16, 8, 32, 128),
        (4, 16, 8, 64, 128),
        (8, 16, 8, 128, 128),
        (16, 16, 8, 128, 128),
    ];
    for (columns, elem_bits, per_thread, one_dim, all_dims) in rows {
        let layout = consecutive(512, columns, per_thread);
        let contiguous = 512 * columns;
        let plan = VectorPlan::for_global(&layout, elem_bits, contiguous, contiguous, &cuda()).unwrap();
        assert_eq!(plan.access_bits(), all_dims, "[512, {columns}] of {elem_bits} bits");
        assert_eq!(plan.words().1, 32);
        if columns > 1 {
            let plan = VectorPlan::for_global(&layout, elem_bits, columns, contiguous, &cuda()).unwrap();
            assert_eq!(plan.access_bits(), one_dim, "[512, {columns}] of {elem_bits} bits, last dimension");
        }
    }
}

#[test]
fn a_mask_limits_the_width() {
    let layout = consecutive(512, 16, 8);
    let plan = VectorPlan::for_global(&layout, 16, 8192, 4, &cuda()).unwrap();
    assert_eq!((plan.vec_elems, plan.words()), (4, (2, 32)));
    let plan = VectorPlan::for_global(&layout, 16, 24, 4096, &cuda()).unwrap();
    assert_eq!(plan.vec_elems, 8, "24 contiguous elements are aligned runs of 8");
}

#[test]
fn registers_are_permuted_into_memory_order() {
    // Register bit 1 runs along memory, register bit 0 down the rows, and bit 2 swaps neighbours too.
    let bases = [(Dim::REGISTER, vec![[1, 0], [0, 1], [2, 1]]), (Dim::LANE, vec![[0, 2], [0, 4]])];
    let layout = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap();
    let plan = VectorPlan::for_global(&layout, 32, 8, 8, &cuda()).unwrap();
    let registers: Vec<_> = plan.accesses.iter().map(|a| a.registers.clone()).collect();
    assert_eq!(registers, [[0, 2], [1, 3], [6, 4], [7, 5]]);
}

#[test]
fn copies_are_accessed_once() {
    let layout = consecutive(16, 1, 4);
    let plan = VectorPlan::for_global(&layout, 32, 16, 16, &cuda()).unwrap();
    assert_eq!((plan.duplicates.lane, plan.duplicates.warp), (0b11100, 0b11));
    assert_eq!(plan.to_string().lines().nth(2), Some("stores where lane & 0x1c == 0 && warp & 0x3 == 0"));
    let bases = [(Dim::REGISTER, vec![[0], [1]]), (Dim::LANE, vec![[2]])];
    let layout = LinearLayout::from_bases(&bases, &[Dim::out(0)]).unwrap();
    let plan = VectorPlan::for_global(&layout, 32, 4, 4, &cuda()).unwrap();
    assert_eq!(plan.accesses.len(), 1);
    assert_eq!(plan.copies, [0, 0, 2, 2]);
}

#[test]
fn the_order_of_memory_decides() {
    let bases = [(Dim::REGISTER, vec![[1, 0], [2, 0]]), (Dim::LANE, vec![[0, 1], [0, 2]])];
    let layout = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap();
    let row_major = VectorPlan::for_global(&layout, 32, 16, 16, &cuda()).unwrap();
    assert_eq!(row_major.vec_elems, 1);
    let order = vec![Dim::out(0), Dim::out(1)];
    let facts = AddressFacts {
        order,
        contiguous: 16,
        neighbours: 16,
        stride_bits: 0,
        mask_constancy: 16,
        repeats: Vec::new(),
        within: u64::MAX,
    };
    assert_eq!(VectorPlan::for_addresses(&layout, 32, &facts, &cuda()).unwrap().vec_elems, 4);
}

#[test]
fn elements_of_one_address_are_loaded_once() {
    // Eight neighbours in each thread, of which groups of four have one address: two accesses of one element.
    let layout = consecutive(32, 8, 8);
    let facts = AddressFacts { repeats: vec![4, 1], ..AddressFacts::row_major(&layout, 1, 256) };
    let plan = VectorPlan::for_addresses(&layout, 32, &facts, &cuda()).unwrap();
    let registers: Vec<&[u32]> = plan.accesses.iter().map(|access| &access.registers[..]).collect();
    assert_eq!(registers, [&[0][..], &[4]]);
    assert_eq!(plan.copies, [0, 0, 0, 0, 4, 4, 4, 4]);
    check_vector(&plan, &layout, 32, &facts, &cuda()).unwrap();
    // Which the facts must vouch for.
    let fewer = AddressFacts { repeats: vec![2, 1], ..facts.clone() };
    assert!(check_vector(&plan, &layout, 32, &fewer, &cuda()).is_err());
    // Lanes that read one row read the same line.
    let rows = AddressFacts { repeats: vec![8, 32], ..facts.clone() };
    let plan = VectorPlan::for_addresses(&layout, 32, &rows, &cuda()).unwrap();
    assert_eq!((plan.accesses.len(), plan.sectors, plan.lines), (1, 1, 1));
    check_vector(&plan, &layout, 32, &rows, &cuda()).unwrap();
    // Along the slower dimension, what is contiguous along the other one stays wide.
    let slow = AddressFacts { repeats: vec![1, 32], ..AddressFacts::row_major(&layout, 8, 256) };
    let plan = VectorPlan::for_addresses(&layout, 16, &slow, &cuda()).unwrap();
    assert_eq!((plan.vec_elems, plan.accesses.len(), plan.lines), (8, 1, 1));
    check_vector(&plan, &layout, 16, &slow, &cuda()).unwrap();
    // No such group is as long as it says.
    let odd = AddressFacts { repeats: vec![3, 1], ..facts };
    assert!(check_vector(&plan, &layout, 16, &odd, &cuda()).is_err());
}

#[test]
fn wide_targets_and_odd_widths() {
    let layout = consecutive(512, 16, 32);
    let blackwell = TargetDesc::parse("cuda:100").unwrap();
    let plan = VectorPlan::for_global(&layout, 8, 8192, 8192, &blackwell).unwrap();
    assert_eq!((plan.access_bits(), plan.words()), (256, (8, 32)));
    let plan = VectorPlan::for_global(&layout, 64, 8192, 8192, &cuda()).unwrap();
    assert_eq!(plan.words(), (2, 64));
    let refused = VectorPlan::for_global(&layout, 4, 1, 1, &cuda());
    assert_eq!(refused, Err(PlanError::PartialByte { elems: 1, bits: 4 }));
    assert_eq!(VectorPlan::for_global(&layout, 65, 1, 1, &cuda()), Err(PlanError::ElementWidth { bits: 65 }));
}

#[test]
fn sectors_count_what_a_warp_touches() {
    let coalesced = consecutive(512, 16, 8);
    let plan = VectorPlan::for_global(&coalesced, 16, 8192, 8192, &cuda()).unwrap();
    assert_eq!((plan.sectors, plan.lines), (16, 4), "32 lanes of 16 bytes");
    let plan = VectorPlan::for_global(&coalesced, 16, 8, 8, &cuda()).unwrap();
    assert_eq!((plan.sectors, plan.lines), (32, 32), "runs of 16 bytes, each perhaps in its own line");
    // Rows of 64 bytes that start anywhere at multiples of 16.
    let facts = AddressFacts { neighbours: 32, ..AddressFacts::row_major(&coalesced, 8, 8192) };
    let plan = VectorPlan::for_addresses(&coalesced, 16, &facts, &cuda()).unwrap();
    assert_eq!((plan.vec_elems, plan.sectors, plan.lines), (8, 16, 8));
    // Two whole sectors of three where a run begins in the middle of one, and else two: both are as likely.
    assert_eq!((plan.runs, plan.run_bytes, plan.run_alignment), (8, 64, 16));
    assert_eq!(plan.usual_sectors(), 8.0 * 2.5);
    // Four lanes side by side in each of eight rows: whole sectors, but each in a line of its own.
    let bases = [
        (Dim::REGISTER, vec![vec![0, 1], vec![0, 2], vec![0, 16], vec![0, 32]]),
        (Dim::LANE, vec![vec![0, 4], vec![0, 8], vec![1, 0], vec![2, 0], vec![4, 0]]),
    ];
    let outs = [(Dim::out(0), 8), (Dim::out(1), 64)];
    let rows = LinearLayout::from_bases_sized(&bases, &outs, true).unwrap();
    let plan = VectorPlan::for_global(&rows, 16, 64, 64, &cuda()).unwrap();
    assert_eq!((plan.vec_elems, plan.sectors, plan.lines), (4, 8, 8));
}

#[test]
fn neighbours_that_are_apart_share_lines() {
    // 16 rows of 128 elements, four rows to a warp, whose lanes are side by side or 16 elements apart.
    let rows = |bits: &[u64]| -> Vec<Vec<u64>> { bits.iter().map(|bit| vec![*bit, 0]).collect() };
    let columns = |bits: &[u64]| -> Vec<Vec<u64>> { bits.iter().map(|bit| vec![0, *bit]).collect() };
    let layout = |register, lane, warp| {
        let bases = [(Dim::REGISTER, register), (Dim::LANE, lane), (Dim::WARP, warp)];
        LinearLayout::from_bases_sized(&bases, &[(Dim::out(0), 16), (Dim::out(1), 128)], true).unwrap()
    };
    let side_by_side = layout(rows(&[1, 2, 4, 8]), columns(&[1, 2, 4, 8, 16]), columns(&[32, 64]));
    let apart =
        layout(columns(&[1, 2, 4, 8]), [columns(&[16, 32, 64]), rows(&[1, 2])].concat(), rows(&[4, 8]));
    let planned = |layout: &LinearLayout, stride_bits: u64| {
        let facts = AddressFacts { stride_bits, ..AddressFacts::row_major(layout, 1, 1) };
        let plan = VectorPlan::for_addresses(layout, 32, &facts, &cuda()).unwrap();
        check_vector(&plan, layout, 32, &facts, &cuda()).unwrap();
        (plan.sectors, plan.lines, plan.all_sectors)
    };
    // 36 bytes apart: a sector each, and four of them in a line, to the nearest power of two.
    assert_eq!(planned(&side_by_side, 8 * 36), (32, 8, 2048));
    assert_eq!(planned(&apart, 8 * 36), (32, 32, 2048));
    // Four of 8 bytes in a sector; the lanes that are apart find the rest of theirs in turn.
    assert_eq!(planned(&side_by_side, 8 * 8), (8, 2, 512));
    assert_eq!(planned(&apart, 8 * 8), (32, 32, 512));
    // Numbers of four bits, eight of which have one address.
    assert_eq!(planned(&side_by_side, 4), (1, 1, 16 * 2));
    // Nothing is known, or they are farther apart than lines are.
    assert_eq!(planned(&side_by_side, 0), (32, 32, 2048));
    assert_eq!(planned(&side_by_side, 8 * 200), (32, 32, 2048));
    assert_eq!(planned(&side_by_side, u64::MAX), (32, 32, 2048));
}

#[test]
fn what_is_touched_in_part_costs_by_its_lines() {
    let cost = cuda().cost;
    let touched = |bytes, sectors, lines, new| Touched { bytes, sectors, lines, new };
    // Four bytes of each of 32 sectors, in 8 lines and in 32 (cycles as bench/gpu/micro/strided.cu measured them on an H200).
    let (near, far) = (touched(128, 32, 8, 32.0), touched(128, 32, 32, 32.0));
    assert!((30.0..36.0).contains(&cost.loaded(near)) && (52.0..60.0).contains(&cost.loaded(far)));
    assert!(cost.stored(far) > 1.5 * cost.stored(near), "{} {}", cost.stored(far), cost.stored(near));
    // Sectors that loads before had: only lines count.
    assert!(cost.loaded(touched(128, 32, 32, 4.0)) < cost.loaded(far));
    assert_eq!(cost.loaded(touched(128, 16, 16, 4.0)), 16.0);
    // Whole lines.
    assert_eq!(
        (cost.loaded(touched(128, 4, 1, 4.0)), cost.stored(touched(128, 4, 1, 4.0))),
        (1.0, 4.0 * 2.1)
    );
}

proptest! {
    /// Whatever the layout, the accesses hold every element of the thread once, in memory order, as wide as can be.
    #[test]
    fn accesses_are_aligned_runs(
        columns in proptest::collection::vec(0u64..256, 9),
        (contiguous, neighbours, mask) in (0u32..9, 0u32..9, 2u32..9),
        width in 2u32..7,
        swapped in any::<bool>(),
        repeats in proptest::collection::vec(0u32..4, 0..3),
        target in any_target(),
    ) {
        let ins = [(Dim::REGISTER, 4), (Dim::LANE, 4), (Dim::WARP, 1)];
        let outs = [(Dim::out(0), 3), (Dim::out(1), 5)];
        let layout = LinearLayout::from_columns(&ins, &outs, columns.iter().copied()).unwrap();
        let mut facts = AddressFacts::row_major(&layout, 1 << contiguous, 1 << mask);
        facts.neighbours = 1 << neighbours;
        facts.repeats = repeats.iter().map(|log| 1 << log).collect();
        if swapped {
            facts.order.reverse();
        }
        match VectorPlan::for_addresses(&layout, 1 << width, &facts, &target) {
            Ok(plan) => {
                let checked = check_vector(&plan, &layout, 1 << width, &facts, &target);
                prop_assert!(checked.is_ok(), "{:?}\n{}\n{:?}\n{:?}", checked, layout, facts, plan);
            }
            Err(error) => prop_assert_eq!(error, PlanError::PartialByte { elems: 1, bits: 4 }),
        }
    }
}
