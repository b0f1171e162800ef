//! Bulk tensor copies, executed by the address rules of the PTX ISA.

use linear_layout::Encoding;
use linear_layout::checker::{check_tma, check_tma_rows};
use linear_layout::plan::{MatrixSwizzle, PlanError, TmaPlan, TmaRowsPlan, Unsupported};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, LinearLayout};

fn planned(shape: &[u64], bits: u32) -> Result<TmaPlan, String> {
    planned_in_cluster(shape, bits, &[])
}

fn planned_in_cluster(shape: &[u64], bits: u32, cga: &[Vec<u64>]) -> Result<TmaPlan, String> {
    let target = TargetDesc::parse("cuda:90").unwrap();
    let encoding = TmaPlan::encoding(shape, bits, cga, &target).map_err(|err| err.to_string())?;
    let plan = TmaPlan::new(&encoding, shape, &target).map_err(|err| err.to_string())?;
    let memory = Encoding::NvmmaShared(encoding).to_linear_layout(shape).unwrap();
    if let Err(error) = check_tma(&plan, &memory) {
        panic!("{shape:?} of {bits} bits: {error}\n{memory}\n{plan}");
    }
    Ok(plan)
}

#[test]
fn every_block_lies_as_its_layout_says() {
    let sizes = [1u64, 2, 4, 8, 16, 32, 64, 128, 256, 512];
    let (mut plans, mut boxes) = (0, 0);
    for bits in [8, 16, 32, 64] {
        let row_bytes = |row: u64| row * u64::from(bits) / 8;
        for row in sizes {
            for rows in sizes {
                for shape in [
                    vec![row],
                    vec![rows, row],
                    vec![2, rows, row],
                    vec![4, 1, rows, row],
                    vec![2, 1, 2, rows, row],
                ] {
                    if shape.iter().product::<u64>() > 1 << 15 {
                        continue;
                    }
                    match planned(&shape, bits) {
                        Ok(plan) => {
                            assert!(row_bytes(row) >= 16);
                            assert_eq!(plan.bytes(), shape.iter().product::<u64>() * u64::from(bits) / 8);
                            plans += 1;
                            boxes += plan.boxes.len();
                        }
                        Err(reason) => assert!(row_bytes(row) < 16, "{shape:?} of {bits} bits: {reason}"),
                    }
                }
            }
        }
    }
    assert_eq!((plans, boxes), (1316, 3415));
}

#[test]
fn boxes_are_as_large_as_they_may_be() {
    let plan = planned(&[128, 64], 16).unwrap();
    assert_eq!((plan.map.swizzle, plan.boxes.len(), plan.alignment), (MatrixSwizzle::Bytes128, 1, 1024));
    // Narrow rows have a narrow swizzle, and few rows none.
    assert_eq!(planned(&[64, 32], 16).unwrap().map.swizzle, MatrixSwizzle::Bytes64);
    assert_eq!(planned(&[64, 16], 16).unwrap().map.swizzle, MatrixSwizzle::Bytes32);
    assert_eq!(planned(&[64, 8], 16).unwrap().map.swizzle, MatrixSwizzle::None);
    assert_eq!(planned(&[4, 64], 16).unwrap().map.swizzle, MatrixSwizzle::None);
    // At most 256 elements along each dimension.
    let plan = planned(&[512, 64], 16).unwrap();
    assert_eq!((plan.map.box_shape.as_slice(), plan.boxes.len()), (&[256, 64][..], 2));
    assert_eq!(plan.boxes[1].start.as_slice(), &[256, 0]);
    assert_eq!(plan.to_string(), "2 × 256×64 elements of 16 bits, 128-byte swizzle, aligned to 1024 bytes");
}

#[test]
fn what_no_box_holds_is_refused() {
    assert_eq!(
        planned(&[64, 4], 16).unwrap_err(),
        "TMA copies rows of multiples of 16 bytes, a row of 4 elements of 16 bits has 8"
    );
    assert_eq!(planned(&[2; 6], 64).unwrap_err(), "TMA copies blocks of 1 to 5 dimensions, not 6");
    let ampere = TargetDesc::parse("cuda:80").unwrap();
    let refused = TmaPlan::encoding(&[64, 64], 16, &[], &ampere).unwrap_err();
    assert_eq!(refused.to_string(), "the target cuda:80 has no bulk tensor copies");
    // Memory that is no box: the rows of one instruction are one after the other.
    let transposed = TmaPlan::encoding(&[64, 64], 16, &[], &TargetDesc::parse("cuda:90").unwrap()).unwrap();
    let transposed = linear_layout::encoding::NvmmaShared { transposed: true, ..transposed };
    let refused = TmaPlan::new(&transposed, &[64, 64], &TargetDesc::parse("cuda:90").unwrap()).unwrap_err();
    assert_eq!(refused.to_string(), "TMA writes rows one after the other, not transposed");
    assert!(matches!(refused, PlanError::Unsupported { why: Unsupported::Memory, .. }));
}

#[test]
fn blocks_of_a_cluster_copy_their_parts() {
    for (cga, box_shape) in [
        (vec![vec![1, 0]], [64, 64]),
        (vec![vec![0, 1]], [128, 64]),
        (vec![vec![0, 0]], [128, 64]),
        (vec![vec![1, 0], vec![0, 1]], [64, 64]),
        (vec![vec![1, 0], vec![2, 0], vec![0, 0]], [32, 64]),
    ] {
        let plan = planned_in_cluster(&[128, 128], 16, &cga).unwrap();
        assert_eq!(plan.map.box_shape.as_slice(), &box_shape, "{cga:?}");
        assert_eq!(plan.parts.len(), cga.len());
        let split: u64 = cga.iter().flatten().filter(|at| **at != 0).map(|_| 2).product();
        assert_eq!(plan.bytes(), 128 * 128 * 2 / split);
    }
    let plan = planned_in_cluster(&[128, 128], 16, &[vec![1, 0], vec![0, 1]]).unwrap();
    assert_eq!((plan.parts[0].as_slice(), plan.parts[1].as_slice()), (&[64, 0][..], &[0, 64][..]));
}

/// The numbers of `rows` rows: four in each thread, the same in all lanes, then warps, then more.
fn numbers(rows: u64, warp_bits: u32, blocks: &[u64]) -> LinearLayout {
    let own = rows >> blocks.iter().filter(|row| **row != 0).count();
    let (mut registers, mut warps, mut row) = (vec![vec![1], vec![2]], Vec::new(), 4);
    for _ in 0..warp_bits {
        warps.push(vec![if row < own { row } else { 0 }]);
        row *= 2;
    }
    while row < own {
        registers.push(vec![row]);
        row *= 2;
    }
    let blocks = blocks.iter().map(|row| vec![*row]).collect();
    let ins =
        [(Dim::REGISTER, registers), (Dim::LANE, vec![vec![0]; 5]), (Dim::WARP, warps), (Dim::BLOCK, blocks)];
    LinearLayout::from_bases(&ins, &[Dim::out(0)]).unwrap()
}

#[test]
fn every_row_goes_where_the_layout_has_it() {
    let mut plans = 0;
    for target in ["cuda:90", "cuda:100"].map(|name| TargetDesc::parse(name).unwrap()) {
        for bits in [8, 16, 32] {
            for columns in [16u64, 32, 64, 128, 256, 512, 1024] {
                for cga in [vec![], vec![[1, 0]], vec![[0, 1]], vec![[0, 0]], vec![[0, 1], [1, 0]]] {
                    let lists: Vec<Vec<u64>> = cga.iter().map(|basis| basis.to_vec()).collect();
                    let split = cga.iter().filter(|basis| basis[1] != 0).count();
                    let row_bytes = (columns >> split) * u64::from(bits) / 8;
                    let encoding = match TmaRowsPlan::encoding(columns, bits, &lists, &target) {
                        Ok(encoding) => encoding,
                        Err(error) => {
                            assert!(
                                row_bytes < 128 && (row_bytes < 32 || target.name == "cuda:90"),
                                "{error}"
                            );
                            continue;
                        }
                    };
                    for (rows, warp_bits) in [(8, 2), (16, 0), (32, 2), (64, 3), (256, 2), (512, 2)] {
                        let shape = [rows, columns];
                        let part = encoding.part(&shape).unwrap();
                        if part[0] < 8 || rows * columns > 1 << 15 {
                            continue;
                        }
                        let blocks: Vec<u64> =
                            cga.iter().map(|basis| if basis[0] == 0 { 0 } else { part[0] }).collect();
                        let numbers = numbers(rows, warp_bits, &blocks);
                        let memory =
                            Encoding::NvmmaShared(encoding.clone()).to_linear_layout(&shape).unwrap();
                        let plan = TmaRowsPlan::new(&encoding, &shape, &numbers, &target);
                        let plan =
                            plan.unwrap_or_else(|err| panic!("{shape:?} of {bits} bits, {cga:?}: {err}"));
                        if let Err(error) = check_tma_rows(&plan, &memory, &numbers) {
                            panic!("{shape:?} of {bits} bits, {cga:?}: {error}\n{memory}\n{plan}");
                        }
                        assert_eq!(plan.bytes, part[0] * part[1] * u64::from(bits) / 8);
                        plans += 1;
                    }
                }
            }
        }
    }
    assert_eq!(plans, 687);
}

#[test]
fn rows_that_copies_do_not_have_are_refused() {
    let hopper = TargetDesc::parse("cuda:90").unwrap();
    let refused = TmaRowsPlan::encoding(32, 16, &[], &hopper).unwrap_err();
    assert_eq!(refused.to_string(), "copies to shared memory begin at multiples of 128 bytes, not of 64");
    let encoding = TmaRowsPlan::encoding(64, 16, &[], &hopper).unwrap();
    let plan = |numbers: &LinearLayout| {
        TmaRowsPlan::new(&encoding, &[32, 64], numbers, &hopper).unwrap_err().to_string()
    };
    assert_eq!(plan(&numbers(16, 2, &[])), "16 numbers for 32 of 32 rows");
    let ins = [
        (Dim::REGISTER, vec![vec![1], vec![2]]),
        (Dim::LANE, vec![vec![4], vec![8], vec![16], vec![0], vec![0]]),
        (Dim::WARP, vec![vec![0]; 2]),
    ];
    let in_lanes = LinearLayout::from_bases(&ins, &[Dim::out(0)]).unwrap();
    assert_eq!(plan(&in_lanes), "lanes of a warp hold the numbers of different rows");
}
