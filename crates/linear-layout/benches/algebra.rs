//! The operations that a compiler does thousands of times, on layouts of a 128×128 f16 tile.

use std::hint::black_box;

use criterion::Criterion;
use linear_layout::{Dim, Encoding, LinearLayout};

const R: Dim = Dim::REGISTER;

fn layout(register: &[[u64; 2]], lane: &[[u64; 2]], warp: &[[u64; 2]]) -> LinearLayout {
    let bases = [
        (R, register.to_vec()),
        (Dim::LANE, lane.to_vec()),
        (Dim::WARP, warp.to_vec()),
        (Dim::BLOCK, vec![]),
    ];
    LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).expect("a layout of a 128×128 tensor")
}

/// 8 consecutive columns a thread, 16 threads a row.
fn blocked() -> LinearLayout {
    layout(
        &[[0, 1], [0, 2], [0, 4], [8, 0], [16, 0], [32, 0], [64, 0]],
        &[[0, 8], [0, 16], [0, 32], [0, 64], [1, 0]],
        &[[2, 0], [4, 0]],
    )
}

/// The accumulator of mma.m16n8 with 2×2 warps (PTX ISA, "Matrix Fragments for mma.m16n8k16").
fn mma() -> LinearLayout {
    layout(
        &[[0, 1], [8, 0], [0, 16], [0, 32], [0, 64], [32, 0], [64, 0]],
        &[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]],
        &[[0, 8], [16, 0]],
    )
}

fn algebra(c: &mut Criterion) {
    let (a, b) = (blocked(), mma());
    let to_tensor = a.invert().expect("a bijection");
    c.bench_function("compose 128x128", |bench| {
        bench.iter(|| black_box(&b).compose(black_box(&to_tensor)));
    });
    c.bench_function("invert_and_compose 128x128", |bench| {
        bench.iter(|| black_box(&b).invert_and_compose(black_box(&a)));
    });
    c.bench_function("invert 128x128", |bench| bench.iter(|| black_box(&a).invert()));
    c.bench_function("product", |bench| {
        let tile = LinearLayout::identity_1d(8, "register", "dim1").expect("8 is a power of two");
        let rest = LinearLayout::identity_1d(16, "lane", "dim1").expect("16 is a power of two");
        bench.iter(|| black_box(&tile).product(black_box(&rest)));
    });
    c.bench_function("divide_left 128x128", |bench| {
        let tile = LinearLayout::identity_1d(8, "register", "dim1").expect("8 is a power of two");
        bench.iter(|| black_box(&a).divide_left(black_box(&tile)));
    });
}

/// From the text of an attribute to its layout, what a compiler does once per attribute and shape.
fn encodings(c: &mut Criterion) {
    let texts = [
        (
            "blocked",
            "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>",
        ),
        (
            "mma operand",
            "#ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>, kWidth = 2}>",
        ),
        (
            "nvmma_shared",
            "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>",
        ),
    ];
    for (name, text) in texts {
        c.bench_function(&format!("parse {name}"), |bench| {
            bench.iter(|| black_box(text).parse::<Encoding>())
        });
        let encoding: Encoding = text.parse().expect("the text of an encoding");
        c.bench_function(&format!("{name} to layout 128x128"), |bench| {
            bench.iter(|| black_box(&encoding).to_linear_layout(&[128, 128]));
        });
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    algebra(&mut criterion);
    encodings(&mut criterion);
    criterion.final_summary();
}
