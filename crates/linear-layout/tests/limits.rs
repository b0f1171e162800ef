//! What a layout cannot hold is an error that says so, with the numbers.

use linear_layout::{Dim, Error, LinearLayout};

fn message(result: Result<LinearLayout, Error>) -> String {
    result.expect_err("must be refused").to_string()
}

#[test]
fn sizes_are_powers_of_two() {
    let refused = LinearLayout::identity_1d(48, "lane", "dim0");
    assert_eq!(message(refused), "the size of `lane` is 48, which is not a power of two");
    let refused = LinearLayout::identity_1d(0, "lane", "dim0");
    assert_eq!(message(refused), "the size of `lane` is 0, which is not a power of two");
}

#[test]
fn sixty_four_bits_fit_and_sixty_five_do_not() {
    let half = LinearLayout::identity_1d(1 << 32, "register", "dim0").unwrap();
    let other = LinearLayout::identity_1d(1 << 32, "lane", "dim1").unwrap();
    let full = half.product(&other).unwrap();
    assert_eq!((full.total_in_bits(), full.total_out_bits(), full.rank()), (64, 64, 64));
    assert_eq!(full.invert().unwrap().invert().unwrap(), full);
    assert_eq!(full.out_mask(Dim::out(1)), !0 << 32);
    assert_eq!(
        full.apply(&[(Dim::LANE, u64::from(u32::MAX))]).unwrap()[1],
        (Dim::out(1), u64::from(u32::MAX))
    );
    let more = LinearLayout::identity_1d(2, "warp", "dim2").unwrap();
    assert_eq!(
        message(full.product(&more)),
        "the input dimensions need 65 bits together; a layout holds at most 64"
    );
    // One dimension has at most 63 bits, because its size is a 64-bit number.
    assert!(matches!(full.flatten_outs(), Err(Error::TooManyBits { limit: 63, .. })));
    // Dimensions of size one after the 64th bit are harmless.
    let padded = full.unsqueeze_in(Dim::WARP).unwrap().unsqueeze_out(Dim::out(2)).unwrap();
    assert_eq!(padded.apply_packed(u64::MAX), u64::MAX);
    assert_eq!(padded.invert_and_compose(&padded).unwrap().columns(), full.columns());
    assert_eq!(padded.divide_left(&padded).map(|rest| rest.total_in_bits()), Some(0));
}

#[test]
fn coordinates_stay_inside() {
    let outs = [(Dim::out(0), 4)];
    let refused = LinearLayout::from_bases_sized(&[(Dim::LANE, vec![[4]])], &outs, false);
    assert_eq!(message(refused), "4 is outside dimension `dim0` of size 4");
    let refused = LinearLayout::from_bases_sized(&[(Dim::LANE, vec![[1, 1]])], &outs, false);
    assert_eq!(message(refused), "basis 0 of `lane` has 2 coordinates; the layout has 1 output dimensions");
    let refused = LinearLayout::from_bases(&[(Dim::LANE, vec![[3]])], &[Dim::out(0)]);
    assert_eq!(
        message(refused),
        "the layout reaches 2^1 of the 2^2 output points; it must reach all of them"
    );
    let refused = LinearLayout::from_bases(&[(Dim::LANE, vec![[u64::MAX]])], &[Dim::out(0)]);
    assert!(message(refused).contains("not a power of two"));
    let refused = LinearLayout::from_columns(&[(Dim::LANE, 1)], &[(Dim::out(0), 1)], [2]);
    assert_eq!(message(refused), "the output dimensions need 2 bits together; a layout holds at most 1");
}

#[test]
fn names_are_checked() {
    let l = LinearLayout::identity_1d(4, "lane", "dim0").unwrap();
    assert_eq!(message(l.resize_in(Dim::WARP, 2)), "no input dimension `warp`; there are [lane]");
    assert!(matches!(l.apply(&[(Dim::WARP, 0)]), Err(Error::UnknownDim { .. })));
    assert!(matches!(l.apply(&[(Dim::LANE, 4)]), Err(Error::OutOfRange { value: 4, size: 4, .. })));
    assert!(matches!(l.unsqueeze_in(Dim::LANE), Err(Error::DuplicateDim { side: "input", .. })));
    assert!(matches!(l.concat_ins(&l), Err(Error::DuplicateDim { .. })));
    assert!(matches!(l.squeeze_in(Dim::LANE), Err(Error::DimMismatch { .. })));
    assert!(matches!(l.transpose_ins(&[Dim::LANE, Dim::LANE]), Err(Error::DimMismatch { .. })));
    assert_eq!(message(l.compose(&l)), "compose: expected the dimensions [lane: 4], got [dim0: 4]");
}

#[test]
fn contradictory_orders_have_no_product() {
    let id = |i, o| LinearLayout::identity_1d(2, i, o).unwrap();
    let ab = id("lane", "dim0").product(&id("warp", "dim1")).unwrap();
    let ba = id("warp", "dim0").product(&id("lane", "dim1")).unwrap();
    assert_eq!(
        message(ab.product(&ba)),
        "the orders [lane, warp] and [warp, lane] of the input dimensions contradict each other"
    );
}
