//! Whole plans for a 128×128 f16 tile of four warps: from the layout of its loads to that of the product.

use std::hint::black_box;

use criterion::Criterion;
use linear_layout::plan::{ConversionPlan, VectorPlan};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, LinearLayout};

fn layout(register: &[[u64; 2]], lane: &[[u64; 2]], warp: &[[u64; 2]]) -> LinearLayout {
    let bases = [
        (Dim::REGISTER, register.to_vec()),
        (Dim::LANE, lane.to_vec()),
        (Dim::WARP, warp.to_vec()),
        (Dim::BLOCK, vec![]),
    ];
    LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).expect("a layout of a 128×128 tensor")
}

fn main() {
    let blocked = layout(
        &[[0, 1], [0, 2], [0, 4], [8, 0], [16, 0], [32, 0], [64, 0]],
        &[[0, 8], [0, 16], [0, 32], [0, 64], [1, 0]],
        &[[2, 0], [4, 0]],
    );
    let mma = layout(
        &[[0, 1], [8, 0], [0, 16], [0, 32], [0, 64], [32, 0], [64, 0]],
        &[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]],
        &[[0, 8], [16, 0]],
    );
    let target = TargetDesc::parse("cuda:90").expect("a known target");
    let mut c = Criterion::default().configure_from_args();
    c.bench_function("plan blocked→mma 128x128 f16", |bench| {
        bench.iter(|| ConversionPlan::new(black_box(&blocked), black_box(&mma), 16, &target));
    });
    c.bench_function("plan mma→blocked 128x128 f32", |bench| {
        bench.iter(|| ConversionPlan::new(black_box(&mma), black_box(&blocked), 32, &target));
    });
    c.bench_function("plan global access 128x128 f16", |bench| {
        bench.iter(|| VectorPlan::for_global(black_box(&blocked), 16, 128, 128, &target));
    });
    c.final_summary();
}
