//! Bulk tensor copies, executed by the address rules of the PTX ISA.

use linear_layout::Encoding;
use linear_layout::checker::check_tma;
use linear_layout::plan::{MatrixSwizzle, TmaPlan};
use linear_layout::target::TargetDesc;

fn planned(shape: &[u64], bits: u32) -> Result<TmaPlan, String> {
    let target = TargetDesc::parse("cuda:90").unwrap();
    let encoding = TmaPlan::encoding(shape, bits, &target).map_err(|err| err.to_string())?;
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
    assert_eq!((plan.swizzle, plan.boxes.len(), plan.alignment), (MatrixSwizzle::Bytes128, 1, 1024));
    // Narrow rows have a narrow swizzle, and few rows none.
    assert_eq!(planned(&[64, 32], 16).unwrap().swizzle, MatrixSwizzle::Bytes64);
    assert_eq!(planned(&[64, 16], 16).unwrap().swizzle, MatrixSwizzle::Bytes32);
    assert_eq!(planned(&[64, 8], 16).unwrap().swizzle, MatrixSwizzle::None);
    assert_eq!(planned(&[4, 64], 16).unwrap().swizzle, MatrixSwizzle::None);
    // At most 256 elements along each dimension.
    let plan = planned(&[512, 64], 16).unwrap();
    assert_eq!((plan.box_shape.as_slice(), plan.boxes.len()), (&[256, 64][..], 2));
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
    let refused = TmaPlan::encoding(&[64, 64], 16, &ampere).unwrap_err();
    assert_eq!(refused.to_string(), "the target cuda:80 has no bulk tensor copies");
    // Memory that is no box: the rows of one instruction are one after the other.
    let transposed = TmaPlan::encoding(&[64, 64], 16, &TargetDesc::parse("cuda:90").unwrap()).unwrap();
    let transposed = linear_layout::encoding::NvmmaShared { transposed: true, ..transposed };
    let refused = TmaPlan::new(&transposed, &[64, 64], &TargetDesc::parse("cuda:90").unwrap()).unwrap_err();
    assert_eq!(refused.to_string(), "TMA writes rows one after the other, not transposed or padded");
}
