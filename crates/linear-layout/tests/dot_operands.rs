//! What products within threads need of their operands, and in which type they are computed.

use linear_layout::checker::check_dot;
use linear_layout::plan::{Dot, DotTilePlan, DotType, DotTypes};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, LinearLayout};

use DotType::*;

/// Registers and one bit of warps, all lanes the same.
fn layout(registers: &[[u64; 2]], warp: [u64; 2], shape: [u64; 2]) -> LinearLayout {
    let ins = [(Dim::REGISTER, registers.to_vec()), (Dim::LANE, vec![[0, 0]; 5]), (Dim::WARP, vec![warp])];
    let outs = [(Dim::out(0), shape[0]), (Dim::out(1), shape[1])];
    LinearLayout::from_bases_sized(&ins, &outs, true).unwrap()
}

#[test]
fn every_warp_holds_what_its_part_of_the_result_needs() {
    let target = TargetDesc::parse("cuda:80").unwrap();
    let types = DotTypes { exact: true, ..DotTypes::new(F32, F32, &target) };
    let plan = |a: &LinearLayout, b: &LinearLayout, c: &LinearLayout| {
        let plan = DotTilePlan::new(a, b, c, types, &target).ok()?;
        check_dot(&plan, a, b, c, &target).unwrap();
        assert!(matches!(plan.dot, Dot::Fma(_)));
        Some(plan.count())
    };
    // 4×2 times 2×4. The warp has two of the rows, or two of the columns, or everything, or one of the summands.
    let a_rows = layout(&[[1, 0], [0, 1]], [2, 0], [4, 2]);
    let a_all = layout(&[[1, 0], [2, 0], [0, 1]], [0, 0], [4, 2]);
    let a_summand = layout(&[[1, 0], [2, 0]], [0, 1], [4, 2]);
    let b_columns = layout(&[[1, 0], [0, 1]], [0, 2], [2, 4]);
    let b_all = layout(&[[1, 0], [0, 1], [0, 2]], [0, 0], [2, 4]);
    let b_summand = layout(&[[0, 1], [0, 2]], [1, 0], [2, 4]);
    let c_rows = layout(&[[1, 0], [0, 1], [0, 2]], [2, 0], [4, 4]);
    let c_columns = layout(&[[1, 0], [2, 0], [0, 1]], [0, 2], [4, 4]);
    let c_all = layout(&[[1, 0], [2, 0], [0, 1], [0, 2]], [0, 0], [4, 4]);
    let mut found = Vec::new();
    for (i, a) in [&a_rows, &a_all, &a_summand].into_iter().enumerate() {
        for (j, b) in [&b_columns, &b_all, &b_summand].into_iter().enumerate() {
            for (k, c) in [&c_rows, &c_columns, &c_all].into_iter().enumerate() {
                found.extend(plan(a, b, c).map(|count| ([i, j, k], count)));
            }
        }
    }
    assert_eq!(found, [([0, 1, 0], 16), ([1, 0, 1], 16), ([1, 1, 2], 32)]);
}

#[test]
fn products_are_computed_in_the_wider_type() {
    let (ampere, hopper) = (TargetDesc::parse("cuda:80").unwrap(), TargetDesc::parse("cuda:90").unwrap());
    for (a, b, common, sum) in [
        (F16, F16, F16, F32),
        (F16, F32, F32, F32),
        (F64, F32, F64, F64),
        (F16, Bf16, F32, F32),
        (I8, I32, I32, I32),
        (I64, I16, I64, I64),
        (I8, F32, F32, F32),
        (I8, F8, F16, F32),
        (F64, I64, F64, F64),
    ] {
        for target in [&ampere, &hopper] {
            assert_eq!((a.common(b, target), b.common(a, target)), (common, common), "{a:?} {b:?}");
            assert_eq!(DotTypes::new(a, b, target).c, sum);
        }
    }
    assert_eq!((F8.common(F8, &hopper), F8.common(F8, &ampere)), (F8, F16));
    assert_eq!([F8, I16, F32, I64].map(DotType::bits), [8, 16, 32, 64]);
}
