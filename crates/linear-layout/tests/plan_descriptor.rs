//! Operands of `wgmma` in shared memory, read back by the address rules of the PTX ISA.

use linear_layout::checker::check_matrix_descriptor;
use linear_layout::plan::{MatrixDescriptorPlan, MatrixSwizzle, PlanError, Unsupported};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, Encoding, LinearLayout};
use proptest::prelude::*;

fn dims() -> (Dim, Dim) {
    (Dim::out(0), Dim::out(1))
}

fn swapped() -> (Dim, Dim) {
    (Dim::out(1), Dim::out(0))
}

fn layout(text: &str, shape: &[u64]) -> LinearLayout {
    text.parse::<Encoding>().unwrap().to_linear_layout(shape).unwrap()
}

fn nvmma(swizzle: u64, transposed: bool, bits: u32) -> String {
    format!(
        "#ttg.nvmma_shared<{{swizzlingByteWidth = {swizzle}, transposed = {transposed}, elementBitWidth = {bits}}}>"
    )
}

fn planned(
    memory: &LinearLayout,
    dims: (Dim, Dim),
    rows: u64,
    bits: u32,
) -> Result<MatrixDescriptorPlan, PlanError> {
    let plan = MatrixDescriptorPlan::new(memory, dims, rows, bits, &TargetDesc::parse("cuda:90").unwrap())?;
    if let Err(error) = check_matrix_descriptor(&plan, memory, dims, bits) {
        panic!("{error}\n{memory}\n{plan}");
    }
    Ok(plan)
}

fn refused(memory: &LinearLayout, dims: (Dim, Dim), rows: u64, bits: u32) -> String {
    planned(memory, dims, rows, bits).expect_err("must be refused").to_string()
}

#[test]
fn what_bulk_copies_leave_is_read() {
    // Every element width, swizzle, contiguous side, operand and shape that `wgmma` takes.
    let mut plans = 0;
    for (bits, swizzle, transposed) in [8u32, 16, 32]
        .into_iter()
        .flat_map(|b| [32u64, 64, 128].map(|s| (b, s)))
        .flat_map(|(b, s)| [false, true].map(|t| (b, s, t)))
    {
        let row = swizzle * 8 / u64::from(bits);
        for (mn, k) in [64u64, 128, 256].into_iter().flat_map(|m| [16u64, 32, 64, 128].map(|k| (m, k))) {
            // `transposed` makes dimension 0 contiguous; the left operand has K in dimension 1, the right
            // one in dimension 0.
            for (sides, shape) in [(dims(), [mn, k]), (swapped(), [k, mn])] {
                let mn_major = transposed == (sides == dims());
                let contiguous = if mn_major { mn } else { k };
                let depth = 256 / u64::from(bits);
                let fits = contiguous >= row && k >= depth && (!mn_major || bits == 16);
                if contiguous < row || mn * k * u64::from(bits) / 8 > 227 << 10 {
                    continue;
                }
                let memory = layout(&nvmma(swizzle, transposed, bits), &shape);
                for rows in [8u64, 16, 64, 128, 256].into_iter().filter(|&n| n <= mn) {
                    match planned(&memory, sides, rows, bits) {
                        Ok(plan) => {
                            assert!(fits);
                            assert_eq!((plan.transposed, plan.swizzle.row_bytes()), (mn_major, swizzle));
                            assert_eq!(plan.tiles(), [mn / rows, k / depth]);
                            plans += 1;
                        }
                        Err(error) => assert!(!fits, "{error}\n{memory}"),
                    }
                }
            }
        }
    }
    assert_eq!(plans, 912);
}

#[test]
fn strides_are_those_of_the_ptx_isa() {
    // K-major, 128-byte swizzle: eight rows of 128 bytes, and no leading dimension.
    let plan = planned(&layout(&nvmma(128, false, 16), &[128, 128]), dims(), 64, 16).unwrap();
    assert_eq!((plan.leading_bytes, plan.stride_bytes, plan.alignment), (16, 1024, 1024));
    assert_eq!(plan.starts[0].as_slice(), &[8192]);
    assert_eq!(plan.starts[1].as_slice(), &[32, 64, 128 * 128], "within a row, then the next 64 columns");
    assert_eq!(plan.bits(), 1 << 62 | 64 << 32 | 1 << 16);
    // MN-major: the leading dimension leads to the next 64 columns, the stride to the next eight rows of K.
    let plan = planned(&layout(&nvmma(128, false, 16), &[64, 256]), swapped(), 256, 16).unwrap();
    assert_eq!((plan.transposed, plan.leading_bytes, plan.stride_bytes), (true, 64 * 128, 1024));
    assert_eq!(plan.starts[1].as_slice(), &[2048, 4096]);
    assert_eq!(
        plan.to_string(),
        "1×4 wgmma operands of 256×16, MN-major, 128-byte swizzle\n  \
         leading dimension 8192 bytes, stride dimension 1024 bytes\n  \
         start ^= [2048, 4096]·K tile\n  aligned to 1024 bytes\n"
    );
    let plan = planned(&layout(&nvmma(32, false, 8), &[64, 32]), dims(), 64, 8).unwrap();
    assert_eq!((plan.swizzle, plan.stride_bytes, plan.alignment), (MatrixSwizzle::Bytes32, 256, 256));
}

#[test]
fn core_matrices_one_by_one() {
    // No swizzle: K in columns of 16 bytes, each of which runs down all 64 rows.
    let reg = [[0, 1], [0, 2], [0, 4]];
    let rows = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]];
    let bases: Vec<_> = reg.into_iter().chain(rows).chain([[0, 8], [0, 16]]).collect();
    let memory = LinearLayout::from_bases(&[(Dim::OFFSET, bases)], &[Dim::out(0), Dim::out(1)]).unwrap();
    let plan = planned(&memory, dims(), 64, 16).unwrap();
    assert_eq!((plan.swizzle, plan.leading_bytes, plan.stride_bytes), (MatrixSwizzle::None, 1024, 128));
    assert_eq!(plan.alignment, 16);
    // The same memory as the right operand of another product: N contiguous in groups of eight.
    let plan = planned(&memory, swapped(), 32, 16).unwrap();
    assert_eq!((plan.transposed, plan.leading_bytes, plan.stride_bytes), (true, 128, 1024));
}

#[test]
fn swizzled_shared_fits_when_it_is_the_same_map() {
    let same = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    let plan = planned(&layout(same, &[64, 64]), dims(), 64, 16).unwrap();
    assert_eq!(plan.swizzle, MatrixSwizzle::Bytes128);
    let other = "#ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    let message = refused(&layout(other, &[64, 64]), dims(), 64, 16);
    assert_eq!(
        message,
        "no wgmma descriptor; 128-byte swizzle: bit 0 of `dim0` is at byte 152, not 128; \
         64-byte swizzle: bit 0 of `dim0` is at byte 152, not 64; \
         32-byte swizzle: bit 0 of `dim0` is at byte 152, not 32; \
         no swizzle: bit 0 of `dim0` is at byte 136, not 16"
    );
}

#[test]
fn blocks_of_a_cluster_have_their_own_tiles() {
    let text = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>";
    let plan = planned(&layout(text, &[128, 64]), dims(), 64, 16).unwrap();
    assert_eq!(plan.tiles(), [1, 4], "64 rows in each block");
}

#[test]
fn what_wgmma_does_not_take_is_said() {
    let memory = layout(&nvmma(128, false, 16), &[64, 64]);
    let ampere = TargetDesc::parse("cuda:80").unwrap();
    let error = MatrixDescriptorPlan::new(&memory, dims(), 64, 16, &ampere).unwrap_err();
    assert_eq!(error.to_string(), "the target cuda:80 has no wgmma");
    let blackwell = TargetDesc::parse("cuda:100").unwrap();
    let error = MatrixDescriptorPlan::new(&memory, dims(), 64, 16, &blackwell).unwrap_err();
    assert_eq!(error.to_string(), "the target cuda:100 has no wgmma; descriptors of tcgen05 are not planned");
    assert_eq!(refused(&memory, dims(), 64, 4), "wgmma takes no elements of 4 bits");
    let why = |rows, bits| match planned(&memory, dims(), rows, bits) {
        Err(PlanError::Unsupported { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!((why(64, 4), why(24, 16)), (Unsupported::Types, Unsupported::Shape));
    assert_eq!(refused(&memory, dims(), 64, 64), "wgmma takes no elements of 64 bits");
    assert!(refused(&memory, dims(), 24, 16).contains("a wgmma tile of 24 rows"));
    assert_eq!(refused(&memory, dims(), 128, 16), "a block has 64×64 elements, a wgmma tile 128×16");
    assert_eq!(
        refused(&memory, (Dim::out(0), Dim::out(0)), 64, 16),
        "`dim1` is neither along M or N, nor along K"
    );
    let bytes = layout(&nvmma(128, true, 8), &[128, 64]);
    assert_eq!(refused(&bytes, dims(), 64, 8), "wgmma takes elements of 8 bits contiguous along K only");
    let strided = LinearLayout::identity_1d(1 << 12, Dim::OFFSET, Dim::out(0)).unwrap();
    let strided = strided.reshape_outs(&[(Dim::out(2), 2), (Dim::out(0), 64), (Dim::out(1), 32)]).unwrap();
    assert_eq!(refused(&strided, dims(), 64, 16), "`dim2` is neither along M or N, nor along K");
    let bases = [(Dim::OFFSET, vec![[0, 1], [1, 2]]), (Dim::BLOCK, vec![[1, 0]])];
    let sheared = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap();
    assert_eq!(refused(&sheared, dims(), 8, 16), "a block has no contiguous part of `dim0` and `dim1`");
    let huge = layout(&nvmma(128, false, 16), &[4096, 64]);
    let error = planned(&huge, dims(), 64, 16).unwrap_err();
    assert_eq!(error, PlanError::SharedBudget { needed: 512 << 10, budget: 227 << 10 });
}

/// A memory of 32 × 16 elements of 16 bits, 1024 bytes, made as descriptors have it: the contiguous side
/// fills a row, the other one chooses among eight, the rest lies in any order; then swizzled.
fn one_tile(mode: u32, mn_major: bool, order: &[u64], noise: Option<(usize, u64)>) -> LinearLayout {
    let coordinate = |mn_side: bool, bit: usize| 1u64 << if mn_side { bit } else { 5 + bit };
    let side = |mn_side: bool| (0..if mn_side { 5 } else { 4 }).map(move |bit| coordinate(mn_side, bit));
    let (mut contiguous, mut across) =
        (side(mn_major).collect::<Vec<_>>(), side(!mn_major).collect::<Vec<_>>());
    let row = 3 + mode as usize;
    let mut rest = contiguous.split_off(row.min(contiguous.len()));
    rest.extend(across.split_off(3));
    for i in (1..rest.len()).rev() {
        rest.swap(i, (order[i] % (i as u64 + 1)) as usize);
    }
    contiguous.resize_with(row.min(6), || rest.pop().unwrap());
    let plain: Vec<u64> = contiguous.into_iter().chain(across).chain(rest).collect();
    let mut columns: Vec<u64> = (0..9)
        .map(|bit| {
            let address = 2u64 << bit;
            let moved = (address ^ (address >> 7 & ((1 << mode) - 1)) << 4) >> 1;
            (0..9).filter(|i| moved >> i & 1 == 1).fold(0, |c, i| c ^ plain[i])
        })
        .collect();
    if let Some((i, bits)) = noise {
        columns[i % 9] ^= bits % (1 << 9);
    }
    let outs = [(Dim::out(0), 5), (Dim::out(1), 4)];
    LinearLayout::from_columns(&[(Dim::OFFSET, 9)], &outs, columns).unwrap()
}

/// Whether any descriptor at all reads the tile, by trying all of them.
fn some_descriptor_reads(memory: &LinearLayout) -> bool {
    let modes =
        [MatrixSwizzle::None, MatrixSwizzle::Bytes32, MatrixSwizzle::Bytes64, MatrixSwizzle::Bytes128];
    let text = nvmma(32, false, 16);
    let any = planned(&layout(&text, &[32, 16]), dims(), 32, 16).unwrap();
    let trials = modes.into_iter().flat_map(|s| [(s, false), (s, true)]).flat_map(|(swizzle, transposed)| {
        let any = any.clone();
        (0..64 * 64).map(move |i| {
            let mut plan = any.clone();
            (plan.swizzle, plan.transposed) = (swizzle, transposed);
            (plan.leading_bytes, plan.stride_bytes) = (16 * (i % 64), 16 * (i / 64));
            plan.alignment = if swizzle == MatrixSwizzle::None { 16 } else { 8 * swizzle.row_bytes() };
            plan
        })
    });
    trials.into_iter().any(|plan| check_matrix_descriptor(&plan, memory, dims(), 16).is_ok())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_tile_is_planned_exactly_when_a_descriptor_exists(
        mode in 0u32..4,
        mn_major in any::<bool>(),
        order in proptest::collection::vec(any::<u64>(), 9),
        noise in proptest::option::of((any::<usize>(), any::<u64>())),
    ) {
        let memory = one_tile(mode, mn_major, &order, noise);
        let plan = planned(&memory, dims(), 32, 16);
        prop_assert_eq!(plan.is_ok(), some_descriptor_reads(&memory), "{:?}\n{}", plan, memory);
        for rows in [8, 16] {
            drop(planned(&memory, dims(), rows, 16));
        }
    }
}
