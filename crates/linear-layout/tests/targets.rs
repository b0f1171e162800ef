//! Targets are data: plans follow from what a description says, not from what it is called.

use linear_layout::checker::check_conversion;
use linear_layout::plan::{
    Conversion, ConversionPlan, DotTilePlan, DotType, DotTypes, MatrixDescriptorPlan, MemoryInstruction,
};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, Encoding, LinearLayout};
use proptest::prelude::*;

fn layout(encoding: &str, shape: &[u64]) -> LinearLayout {
    encoding.parse::<Encoding>().unwrap().to_linear_layout(shape).unwrap()
}

/// A description that says the same under a name that nobody knows.
fn renamed(target: &TargetDesc) -> TargetDesc {
    target.clone().renamed("some:gpu")
}

/// What is printed of a plan, names apart.
fn unnamed(text: &str, target: &TargetDesc) -> String {
    text.replace(target.name, "some:gpu")
}

#[test]
fn a_new_name_changes_no_conversion() {
    for target in TargetDesc::all() {
        let lanes = target.lanes as u64 / 8;
        let blocked = |size: &str, threads: [u64; 2], order: &str| {
            let [x, y] = threads;
            let text = format!(
                "#ttg.blocked<{{sizePerThread = {size}, threadsPerWarp = [{x}, {y}], warpsPerCTA = [2, 2], order = {order}}}>"
            );
            layout(&text, &[64, 64])
        };
        let a = blocked("[1, 8]", [lanes, 8], "[1, 0]");
        let b = blocked("[8, 1]", [8, lanes], "[0, 1]");
        for bits in [8, 16, 32, 64] {
            let plan = |target: &TargetDesc| ConversionPlan::new(&a, &b, bits, target).unwrap();
            let (one, other) = (plan(&target), plan(&renamed(&target)));
            assert_eq!((one.conversion, one.cost), (other.conversion, other.cost), "{target} {bits}");
        }
    }
}

#[test]
fn a_new_name_changes_no_product() {
    for target in TargetDesc::all() {
        let parents = [
            "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>",
            "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 16], isTransposed = false}>",
            "#ttg.amd_wmma<{version = 1, ctaLayout = {register = [], warp = [[0, 1], [1, 0]]}, isTranspose = false, instrShape = [16, 16, 16]}>",
            "#ttg.amd_wmma<{version = 2, ctaLayout = {register = [], warp = [[0, 1], [1, 0]]}, isTranspose = false, instrShape = [16, 16, 16]}>",
        ];
        for parent in parents {
            for (kind, width) in [(DotType::F8, 8), (DotType::F16, 4), (DotType::I8, 8), (DotType::F32, 1)] {
                let width = if parent.contains("wmma") { 8 } else { width };
                let operand = |i: u32, shape: &[u64]| {
                    layout(
                        &format!("#ttg.dot_op<{{opIdx = {i}, parent = {parent}, kWidth = {width}}}>"),
                        shape,
                    )
                };
                let (a, b, c) = (operand(0, &[64, 64]), operand(1, &[64, 64]), layout(parent, &[64, 64]));
                let plan = |target: &TargetDesc| {
                    let types = DotTypes::new(kind, kind, target);
                    DotTilePlan::new(&a, &b, &c, types, target).map_err(|e| unnamed(&e.to_string(), target))
                };
                assert_eq!(plan(&target), plan(&renamed(&target)), "{target} {kind:?} {parent}");
            }
        }
        let memory = layout(
            "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>",
            &[128, 64],
        );
        let descriptor = |target: &TargetDesc| {
            MatrixDescriptorPlan::new(&memory, (Dim::out(0), Dim::out(1)), 64, 16, target)
                .map_err(|e| unnamed(&e.to_string(), target))
        };
        assert_eq!(descriptor(&target), descriptor(&renamed(&target)), "{target}");
    }
}

/// 1024 words in four registers that are neighbours, 64 lanes and four warps, in any order.
fn words(order: Vec<u64>) -> LinearLayout {
    let columns: Vec<u64> = [1, 2].into_iter().chain(order).collect();
    let ins = [(Dim::REGISTER, 2), (Dim::LANE, 6), (Dim::WARP, 2)];
    LinearLayout::from_columns(&ins, &[(Dim::out(0), 5), (Dim::out(1), 5)], columns).unwrap()
}

fn any_words() -> impl Strategy<Value = LinearLayout> {
    let order: Vec<u64> = (2..10).map(|bit| 1 << bit).collect();
    Just(order).prop_shuffle().prop_map(words)
}

/// The groups of lanes that each CDNA GPU reads 16 bytes for together, of the first 32.
fn groups(target: &str) -> Vec<Vec<u64>> {
    let of = |ranges: &[std::ops::RangeInclusive<u64>]| ranges.iter().cloned().flatten().collect();
    match target {
        "hip:gfx950" => vec![of(&[0..=3, 12..=15, 20..=27]), of(&[4..=11, 16..=19, 28..=31])],
        _ => vec![
            of(&[0..=3, 20..=23]),
            of(&[4..=7, 16..=19]),
            of(&[8..=11, 28..=31]),
            of(&[12..=15, 24..=27]),
        ],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Sixteen bytes each way are free of conflicts, in the groups of lanes that were measured.
    #[test]
    fn cdna_exchanges_words_without_conflicts(a in any_words(), b in any_words()) {
        for name in ["hip:gfx90a", "hip:gfx942", "hip:gfx950"] {
            let target = TargetDesc::parse(name).unwrap();
            let plan = ConversionPlan::through_shared(&a, &b, 32, &target, target.shared_bytes).unwrap();
            check_conversion(&plan, &a, &b, &target).unwrap();
            let Conversion::SharedMemory(shared) = &plan.conversion else { continue };
            prop_assert_eq!(shared.store.wavefronts, shared.store.minimum, "{} stores\n{}", name, plan);
            prop_assert_eq!(shared.load.wavefronts, shared.load.minimum, "{} loads\n{}", name, plan);
            if shared.load.instruction != (MemoryInstruction::Vector { bits: 128 }) {
                continue;
            }
            let banks = if name == "hip:gfx950" { 64 } else { 32 };
            for upper in [0, 32] {
                for group in groups(name) {
                    let mut hit: Vec<u64> = Vec::new();
                    for lane in group {
                        let thread = linear_layout::plan::Threads { lane: lane + upper, ..Default::default() };
                        let word = shared.load.accesses[0].offset ^ shared.load.address.of(thread);
                        hit.extend((0..4).map(|i| (word + i) % banks));
                    }
                    let all = hit.len();
                    hit.sort_unstable();
                    hit.dedup();
                    prop_assert_eq!(hit.len(), all, "{} conflicts\n{}", name, plan);
                }
            }
        }
    }
}
