//! Dots with scales: plans for the layouts that passes choose, executed by the checkers, and broken.

use linear_layout::checker::{check_dot, check_scaled_dot};
use linear_layout::plan::{DotTilePlan, DotType, DotTypes, ScaledDot, ScaledDotPlan};
use linear_layout::target::TargetDesc;
use linear_layout::{Encoding, LinearLayout};

fn layout(text: &str, shape: &[u64]) -> LinearLayout {
    text.parse::<Encoding>().unwrap().to_linear_layout(shape).unwrap()
}

struct Case {
    operands: [LinearLayout; 3],
    target: TargetDesc,
    kind: DotType,
}

impl Case {
    fn new(tile: [u64; 3], warps: [u64; 2], transposed: bool, k_width: u64, shape: [u64; 3]) -> Case {
        let parent = format!(
            "#ttg.amd_mfma<{{version = 4, warpsPerCTA = {warps:?}, instrShape = {tile:?}, isTransposed = {transposed}}}>"
        );
        let operand = |i: u32| format!("#ttg.dot_op<{{opIdx = {i}, parent = {parent}, kWidth = {k_width}}}>");
        let [m, n, k] = shape;
        let operands = [layout(&operand(0), &[m, k]), layout(&operand(1), &[k, n]), layout(&parent, &[m, n])];
        Case { operands, target: TargetDesc::parse("hip:gfx950").unwrap(), kind: DotType::F8 }
    }

    /// Of gfx1250, with warps along N first.
    fn wmma(k: u64, warps: [u64; 2], k_width: u64, shape: [u64; 3]) -> Case {
        let bases = |size: u64, unit: &str| {
            (0..size.ilog2()).map(|i| unit.replace('1', &(1 << i).to_string())).collect()
        };
        let warps: Vec<String> = [bases(warps[1], "[0, 1]"), bases(warps[0], "[1, 0]")]
            .into_iter()
            .flat_map(|all: Vec<String>| all)
            .collect();
        let parent = format!(
            "#ttg.amd_wmma<{{version = 3, isTranspose = true, ctaLayout = {{warp = [{}]}}, instrShape = [16, 16, {k}]}}>",
            warps.join(", ")
        );
        let operand = |i: u32| format!("#ttg.dot_op<{{opIdx = {i}, parent = {parent}, kWidth = {k_width}}}>");
        let [m, n, k] = shape;
        let operands = [layout(&operand(0), &[m, k]), layout(&operand(1), &[k, n]), layout(&parent, &[m, n])];
        Case { operands, target: TargetDesc::parse("hip:gfx1250").unwrap(), kind: DotType::F8 }
    }

    /// Of pairs of 4-bit floats.
    fn of_pairs(self) -> Case {
        Case { kind: DotType::F4Pair, ..self }
    }

    fn dot(&self, factor: u32) -> ScaledDot<'_> {
        let [a, b, c] = &self.operands;
        let types = DotTypes::new(self.kind, self.kind, &self.target);
        ScaledDot { a, b, c, types, factor }
    }

    /// The scales; what is multiplied with what is the same with any of them.
    fn check(&self, plan: &ScaledDotPlan, scales: [Option<&LinearLayout>; 2]) -> Result<(), String> {
        let [a, b, _] = &self.operands;
        check_scaled_dot(plan, [a, b], scales, &self.target).map_err(|err| err.to_string())
    }
}

#[test]
fn scales_meet_their_elements() {
    let mut cases = 0;
    for (tile, k_width) in [([32, 32, 64], 16), ([16, 16, 128], 16), ([32, 32, 64], 8)] {
        for warps in [[1, 1], [2, 2]] {
            for transposed in [false, true] {
                for shape in [[64, 32, 128], [32, 64, 128]] {
                    let case = Case::new(tile, warps, transposed, k_width, shape);
                    let dot = case.dot(32);
                    let [left, right] = dot.scale_layouts(&case.target).unwrap();
                    assert_eq!(
                        (
                            left.out_size(linear_layout::Dim::out(0)),
                            right.out_size(linear_layout::Dim::out(1))
                        ),
                        (Some(shape[0]), Some(shape[2] / 32))
                    );
                    let without = dot.plan([None; 2], &case.target).unwrap();
                    let [a, b, c] = &case.operands;
                    check_dot(&without.dot, a, b, c, &case.target).unwrap();
                    for scales in [[Some(&left), Some(&right)], [Some(&left), None], [None, Some(&right)]] {
                        let plan = dot.plan(scales, &case.target).unwrap();
                        assert_eq!(plan.dot, without.dot);
                        case.check(&plan, scales).unwrap();
                        cases += 1;
                    }
                }
            }
        }
    }
    assert_eq!(cases, 72);
}

/// Pairs count as one along K: a scale is for 16 of them, and lanes hold as many.
#[test]
fn scales_meet_their_pairs() {
    for (tile, warps, shape) in [
        ([32, 32, 64], [1, 1], [32, 32, 32]),
        ([32, 32, 64], [2, 2], [64, 128, 128]),
        ([16, 16, 128], [1, 4], [32, 64, 64]),
        ([16, 16, 128], [2, 1], [64, 16, 256]),
    ] {
        for transposed in [false, true] {
            let case = Case::new(tile, warps, transposed, 16, shape).of_pairs();
            let dot = case.dot(16);
            let [left, right] = dot.scale_layouts(&case.target).unwrap();
            for scales in [[Some(&left), Some(&right)], [Some(&left), None], [None, Some(&right)]] {
                let plan = dot.plan(scales, &case.target).unwrap();
                case.check(&plan, scales).unwrap();
            }
            // A scale for 32 pairs is for lanes of two.
            assert!(case.dot(32).scale_layouts(&case.target).is_err());
        }
    }
    // No other elements, no other hardware, and no multiplications within threads.
    let case = Case::new([32, 32, 64], [1, 1], true, 16, [32, 32, 32]).of_pairs();
    let [a, b, c] = &case.operands;
    let types = DotTypes::new(DotType::F4Pair, DotType::F4Pair, &case.target);
    let cdna3 = TargetDesc::parse("hip:gfx942").unwrap();
    assert!(DotTilePlan::new(a, b, c, types, &cdna3).is_err());
    let mixed = DotTypes::new(DotType::F8, DotType::F4Pair, &case.target);
    assert!(ScaledDot { a, b, c, types: mixed, factor: 32 }.scale_layouts(&case.target).is_err());
}

/// Triton's layouts of the scales of a 64×64×64 dot on four warps.
#[test]
fn layouts_of_tritons_are_taken() {
    let case = Case::new([32, 32, 64], [2, 2], true, 16, [64, 64, 64]);
    let scale = |warps: &str| {
        let text = format!(
            "#ttg.linear<{{register = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]], warp = {warps}, block = []}}>"
        );
        layout(&text, &[64, 2])
    };
    let (left, right) = (scale("[[0, 0], [32, 0]]"), scale("[[32, 0], [0, 0]]"));
    let scales = [Some(&left), Some(&right)];
    let plan = case.dot(32).plan(scales, &case.target).unwrap();
    case.check(&plan, scales).unwrap();
    // The other way around lanes lack what they need.
    let error = |scales| case.dot(32).plan(scales, &case.target).unwrap_err().to_string();
    for swapped in [[Some(&right), Some(&left)], [Some(&right), None]] {
        assert!(error(swapped).contains("the left operand"));
    }
    assert!(error([Some(&left), Some(&left)]).contains("the right operand"));
}

/// On gfx1250 scales of four blocks are bytes of one register, in either half of the wave; K may end within an instruction.
#[test]
fn bytes_of_a_register_are_scales_of_blocks() {
    for (pairs, k_width, shape) in [
        (false, 8, [32, 64, 256]),
        (false, 16, [32, 64, 256]),
        (false, 8, [64, 64, 64]),
        (true, 16, [64, 32, 128]),
        (true, 16, [32, 32, 32]),
    ] {
        for warps in [[1, 1], [2, 2], [1, 4]] {
            let case = Case::wmma(if pairs { 64 } else { 128 }, warps, k_width, shape);
            let (case, factor) = if pairs { (case.of_pairs(), 16) } else { (case, 32) };
            let dot = case.dot(factor);
            let [left, right] = dot.scale_layouts(&case.target).unwrap();
            for scales in [[Some(&left), Some(&right)], [Some(&left), None], [None, Some(&right)]] {
                let plan = dot.plan(scales, &case.target).unwrap();
                let [a, b, c] = &case.operands;
                check_dot(&plan.dot, a, b, c, &case.target).unwrap();
                case.check(&plan, scales).unwrap();
                for all in plan.scales.iter().flatten().flatten() {
                    assert_eq!((all.registers.len(), all.in_upper_lanes), (4, false));
                }
            }
            // Of each execution each byte, if what it scales is not zero.
            let scales = [Some(&left), Some(&right)];
            let plan = dot.plan(scales, &case.target).unwrap();
            let blocks = usize::try_from(shape[2] / u64::from(factor)).unwrap().min(4);
            for (side, byte) in (0..2).flat_map(|side| (0..blocks).map(move |byte| (side, byte))) {
                let mut broken = plan.clone();
                broken.scales[side].as_mut().unwrap()[0].registers[byte] ^= 1;
                assert!(case.check(&broken, scales).is_err(), "{side} {byte}");
            }
        }
    }
}

/// Triton 3.9's layouts of the scales of a 64×64×256 dot on four warps of gfx1250: the halves of a wave have rows that are 32 apart.
#[test]
fn layouts_of_tritons_have_rows_in_both_halves() {
    let case = Case::wmma(128, [2, 2], 16, [64, 64, 256]);
    let scale = |warps: &str| {
        let text = format!(
            "#ttg.linear<{{register = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [32, 0]], warp = {warps}, block = []}}>"
        );
        layout(&text, &[64, 8])
    };
    let (left, right) = (scale("[[0, 0], [16, 0]]"), scale("[[16, 0], [0, 0]]"));
    let scales = [Some(&left), Some(&right)];
    let plan = case.dot(32).plan(scales, &case.target).unwrap();
    case.check(&plan, scales).unwrap();
    let halves = |side: usize| plan.scales[side].iter().flatten().filter(|all| all.in_upper_lanes).count();
    let count = plan.scales[0].as_ref().unwrap().len();
    assert_eq!([halves(0), halves(1)], [count / 2; 2]);
    let mut broken = plan.clone();
    broken.scales[1].as_mut().unwrap()[0].in_upper_lanes ^= true;
    assert!(case.check(&broken, scales).is_err());
    let error = case.dot(32).plan([Some(&right), None], &case.target).unwrap_err().to_string();
    assert!(error.contains("the left operand"), "{error}");
}

#[test]
fn what_no_instruction_does_is_refused() {
    let case = Case::new([32, 32, 64], [1, 1], true, 16, [32, 32, 64]);
    assert!(case.dot(16).scale_layouts(&case.target).is_err());
    // 32 elements at a time: a block of the instruction's would have halves of two.
    let case = Case::new([32, 32, 64], [1, 1], true, 32, [32, 32, 64]);
    assert!(case.dot(32).scale_layouts(&case.target).is_err());
    let mut case = Case::new([32, 32, 16], [1, 1], true, 16, [32, 32, 64]);
    case.target = TargetDesc::parse("hip:gfx942").unwrap();
    assert!(case.dot(32).scale_layouts(&case.target).is_err());
}

#[test]
fn broken_plans_are_caught() {
    let case = Case::new([16, 16, 128], [1, 1], true, 16, [32, 32, 256]);
    let [left, right] = case.dot(32).scale_layouts(&case.target).unwrap();
    let scales = [Some(&left), Some(&right)];
    let plan = case.dot(32).plan(scales, &case.target).unwrap();
    case.check(&plan, scales).unwrap();
    for side in 0..2 {
        let count = plan.scales[side].as_ref().unwrap().len();
        for execution in 0..count {
            let mut broken = plan.clone();
            broken.scales[side].as_mut().unwrap()[execution].registers[0] ^= 1;
            assert!(case.check(&broken, scales).is_err(), "{side} {execution}");
            let mut broken = plan.clone();
            broken.scales[side].as_mut().unwrap()[execution].in_upper_lanes ^= true;
            assert!(case.check(&broken, scales).is_err(), "{side} {execution} in the other half");
        }
        let mut broken = plan.clone();
        broken.scales[side] = None;
        assert!(case.check(&broken, scales).is_err(), "{side} without");
        let mut broken = plan.clone();
        broken.scales[side].as_mut().unwrap().pop();
        assert!(case.check(&broken, scales).is_err(), "{side} too few");
    }
    let mut broken = plan;
    broken.scales.swap(0, 1);
    assert!(case.check(&broken, scales).is_err() || broken.scales[0] == broken.scales[1]);
}
