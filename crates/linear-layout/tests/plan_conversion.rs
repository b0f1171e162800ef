//! Conversions: every plan is executed by the checker.

mod plan_layouts;

use std::cmp::Ordering;

use linear_layout::checker::{CheckError, check_conversion};
use linear_layout::plan::{Conversion, ConversionPlan, PlanError, Scope};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, Encoding, LinearLayout, RegisterAction};
use plan_layouts::*;
use proptest::prelude::*;

fn checked(a: &LinearLayout, b: &LinearLayout, bits: u32, target: &TargetDesc) -> ConversionPlan {
    let plan = ConversionPlan::new(a, b, bits, target).unwrap();
    if let Err(error) = check_conversion(&plan, a, b, target) {
        panic!("{error}\nfrom {a}\nto {b}\n{bits} bits, {target}\n{:#?}", plan.conversion);
    }
    plan
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn distributed_pairs_convert((a, b) in pair(false), width in 2u32..7, target in any_target()) {
        checked(&a, &b, 1 << width, &target);
    }

    #[test]
    fn any_surjective_pair_converts((a, b) in pair(true), width in 2u32..7, target in any_target()) {
        checked(&a, &b, 1 << width, &target);
    }
}

#[test]
fn matrices_of_bytes_serve_where_they_are_cheaper() {
    use proptest::strategy::ValueTree;
    let blackwell = TargetDesc::parse("cuda:100").unwrap();
    let mut without = blackwell.clone();
    without.primitives.matrix_b8 = false;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut used = 0;
    for _ in 0..300 {
        let (a, b) = pair(false).new_tree(&mut runner).unwrap().current();
        for bits in [4, 8] {
            let plan =
                |t: &TargetDesc| ConversionPlan::through_shared(&a, &b, bits, t, t.shared_bytes).unwrap();
            let (with, without) = (plan(&blackwell), plan(&without));
            check_conversion(&with, &a, &b, &blackwell).unwrap_or_else(|e| panic!("{e}\n{a}\n{b}\n{with}"));
            assert!(with.cost.cycles <= without.cost.cycles, "{a}\n{b}\n{with}{without}");
            used += u32::from(with.instructions().iter().any(|i| i.ends_with(".trans.b8")));
        }
    }
    assert!(used > 10, "{used}");
}

fn layout(encoding: &str, shape: &[u64]) -> LinearLayout {
    encoding.parse::<Encoding>().unwrap().to_linear_layout(shape).unwrap()
}

const ROWS: &str =
    "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>";
const COLUMNS: &str =
    "#ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>";
const MMA: &str =
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>";

fn named(from: &str, to: &str, shape: &[u64], bits: u32, target: &str) -> ConversionPlan {
    checked(&layout(from, shape), &layout(to, shape), bits, &TargetDesc::parse(target).unwrap())
}

#[test]
fn the_same_map_under_two_names_is_nothing() {
    let slice = |dim: usize, inner: &str| format!("#ttg.slice<{{dim = {dim}, parent = {inner}}}>");
    let parent = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>";
    let flat = "#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>";
    let plan = named(&slice(0, parent), flat, &[512], 32, "cuda:90");
    assert_eq!((plan.kind(), plan.cost.cycles), ("noop", 0.0));
}

#[test]
fn registers_in_another_order_are_renamed() {
    let a = "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>";
    let a = layout(a, &[64, 8]);
    let swapped = RegisterAction::new(Dim::REGISTER, 2, &[1, 0]).unwrap().apply_to_layout(&a).unwrap();
    let plan = checked(&a, &swapped, 16, &TargetDesc::parse("cuda:90").unwrap());
    assert_eq!(plan.conversion, Conversion::RegisterPermute { sources: vec![0, 2, 1, 3] });
}

#[test]
fn results_become_operands_without_leaving_the_thread() {
    // Flash attention: the result of one mma is the left operand of the next (FlashAttention-2).
    let operand = format!("#ttg.dot_op<{{opIdx = 0, parent = {MMA}, kWidth = 2}}>");
    assert_eq!(named(MMA, &operand, &[128, 64], 16, "cuda:80").kind(), "noop");
}

#[test]
fn fp8_operands_take_a_few_shuffles() {
    // FlashAttention-3 exchanges fp8 accumulators by byte permutes and shuffles instead of memory.
    let operand = format!("#ttg.dot_op<{{opIdx = 0, parent = {MMA}, kWidth = 4}}>");
    let (a, b) = (layout(MMA, &[64, 32]), layout(&operand, &[64, 32]));
    let target = TargetDesc::parse("cuda:90").unwrap();
    let plan = ConversionPlan::through_shuffles(&a, &b, 8, &target).unwrap().unwrap();
    check_conversion(&plan, &a, &b, &target).unwrap();
    assert!(plan.cost.shuffles <= 8, "16 bytes a thread, two at a time: {plan}");
}

#[test]
fn blocked_to_mma_is_wide_and_free_of_conflicts() {
    for bits in [8, 16, 32] {
        let plan = named(ROWS, MMA, &[128, 128], bits, "cuda:90");
        assert_eq!(plan.kind(), "shared");
        assert_eq!(plan.cost.wavefronts, plan.cost.minimum_wavefronts, "{plan}");
        // 128 bytes a cycle both ways: every wavefront is full.
        assert_eq!(plan.cost.wavefronts, 2 * 128 * 128 * u64::from(bits) / 8 / 128 / 4, "{plan}");
    }
}

#[test]
fn operands_are_loaded_as_matrices() {
    let mma =
        "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>";
    let operand = |i| format!("#ttg.dot_op<{{opIdx = {i}, parent = {mma}, kWidth = 2}}>");
    // K runs across the vectors of the source: other registers would make vectors on both sides, but no words.
    let p = named(COLUMNS, &operand(0), &[128, 64], 16, "cuda:80");
    assert_eq!(
        (p.instructions(), p.cost.permutes),
        (vec!["st.shared.v4.b32".into(), "ldmatrix.x4.trans".into()], 0)
    );
    // K runs along them: vectors of words of four results cost the same, and keep all of these waiting.
    let columns = COLUMNS.replace("[16, 2]", "[8, 4]");
    let p = named(&columns, &operand(1), &[64, 64], 16, "cuda:80");
    assert_eq!(
        (p.instructions(), p.cost.permutes),
        (vec!["st.shared.v4.b32".into(), "ldmatrix.x4".into()], 0)
    );
}

#[test]
fn transposes_use_matrix_instructions() {
    let plan = named(ROWS, COLUMNS, &[128, 128], 16, "cuda:90");
    assert_eq!(plan.instructions(), ["st.shared.v4.b32", "ldmatrix.x4.trans"]);
    assert_eq!(plan.cost.wavefronts, plan.cost.minimum_wavefronts);
    let amd = named(ROWS, COLUMNS, &[128, 128], 16, "hip:gfx950");
    assert!(amd.kind() == "shared" && amd.cost.wavefronts == amd.cost.minimum_wavefronts, "{amd}");
}

#[test]
fn little_memory_means_more_passes() {
    let (a, b) = (layout(ROWS, &[128, 128]), layout(COLUMNS, &[128, 128]));
    let target = TargetDesc::parse("cuda:90").unwrap();
    let plan = ConversionPlan::with_budget(&a, &b, 32, &target, 20 << 10).unwrap();
    check_conversion(&plan, &a, &b, &target).unwrap();
    let Conversion::SharedMemory(shared) = &plan.conversion else { panic!("{plan}") };
    assert_eq!((shared.tiles, shared.shared_bytes), (4, 16 << 10));
    let refused = ConversionPlan::with_budget(&a, &b, 32, &target, 0);
    assert!(matches!(refused, Err(PlanError::SharedBudget { budget: 0, .. })));
}

#[test]
fn conversions_done_together_have_their_own_memory() {
    let (a, b) = (threads([1, 2, 4, 0]), threads([1, 4, 2, 0]));
    let a = a.sublayout(&[Dim::LANE, Dim::WARP], &[Dim::out(0)]).unwrap();
    let b = b.sublayout(&[Dim::LANE, Dim::WARP], &[Dim::out(0)]).unwrap();
    let target = TargetDesc::parse("cuda:90").unwrap();
    let of = |bits| ConversionPlan::new(&a, &b, bits, &target).unwrap();
    let plans = [of(8), of(64), of(32)];
    assert_eq!(plans.each_ref().map(ConversionPlan::shared_bytes), [8, 64, 32]);
    assert_eq!(ConversionPlan::scratch_offsets(&plans), [0, 16, 80]);
    assert_eq!(ConversionPlan::scratch_bytes(&plans), 112);
}

#[test]
fn other_blocks_are_read_through_the_cluster() {
    let outs = [Dim::out(0)];
    let bases = |reg: u64, block: u64| {
        let lanes = (0..5).map(|i| [1u64 << i]).collect::<Vec<_>>();
        let all = [(Dim::REGISTER, vec![[reg]]), (Dim::LANE, lanes), (Dim::BLOCK, vec![[block]])];
        LinearLayout::from_bases(&all, &outs).unwrap()
    };
    let target = TargetDesc::parse("cuda:90").unwrap();
    let plan = checked(&bases(32, 64), &bases(64, 32), 32, &target);
    assert_eq!(plan.kind(), "cluster");
    assert!(plan.cost.cycles > target.cost.cluster_barrier);
}

#[test]
fn wrong_pairs_are_refused() {
    let target = TargetDesc::parse("cuda:90").unwrap();
    let (a, b) = (layout(ROWS, &[128, 128]), layout(ROWS, &[64, 128]));
    assert!(matches!(ConversionPlan::new(&a, &b, 16, &target), Err(PlanError::Layout(_))));
    assert_eq!(ConversionPlan::new(&a, &a, 0, &target), Err(PlanError::ElementWidth { bits: 0 }));
    let wide = LinearLayout::identity_1d(64, "lane", "dim0").unwrap();
    assert!(matches!(ConversionPlan::new(&wide, &wide, 16, &target), Err(PlanError::TooMany { .. })));
    let partial = LinearLayout::strided_1d(32, 2, "lane", "dim0").unwrap();
    assert!(matches!(ConversionPlan::new(&partial, &partial, 16, &target), Err(PlanError::Layout(_))));
}

#[cfg(feature = "serde")]
#[test]
fn plans_are_stable_json() {
    let json = |plan: &ConversionPlan| serde_json::to_value(plan).unwrap();
    let shared = json(&named(ROWS, COLUMNS, &[128, 128], 16, "cuda:90"));
    assert_eq!(shared["kind"], "shared");
    let store =
        serde_json::json!({"instruction": "st.shared.v4.b32", "count": 16, "wavefronts": 64, "minimum": 64});
    assert_eq!(shared["store"], store);
    assert_eq!(shared["shared_bytes"], 32768);
    let nothing = json(&named(ROWS, ROWS, &[128, 128], 16, "cuda:90"));
    let expected = serde_json::json!({"kind": "noop", "shuffles": 0, "store": null, "load": null, "tiles": 1,
        "shared_bytes": 0, "cycles": 0});
    assert_eq!(nothing, expected);
}

#[test]
fn the_checker_sees_a_wrong_plan() {
    let (a, b) = (layout(ROWS, &[128, 128]), layout(COLUMNS, &[128, 128]));
    let target = TargetDesc::parse("cuda:90").unwrap();
    let plan = ConversionPlan::new(&a, &b, 16, &target).unwrap();
    let broken = |change: &dyn Fn(&mut linear_layout::plan::SharedPlan)| {
        let mut plan = plan.clone();
        if let Conversion::SharedMemory(shared) = &mut plan.conversion {
            change(shared);
        }
        check_conversion(&plan, &a, &b, &target).unwrap_err()
    };
    assert!(matches!(broken(&|p| p.load.accesses[3].registers.swap(0, 1)), CheckError::WrongElement { .. }));
    assert!(matches!(broken(&|p| p.store.wavefronts -= 1), CheckError::Wavefronts { .. }));
    assert!(matches!(broken(&|p| p.store.address.lane[4] = 0), CheckError::WrittenTwice { .. }));
    assert!(matches!(broken(&|p| p.shared_bytes /= 2), CheckError::OutOfBounds { .. }));
    assert!(matches!(broken(&|p| p.store.address.lane[0] ^= 1), CheckError::Misaligned { .. }));
}

/// Elements of one byte: 2 bits in lanes, 1 in warps and 1 in blocks, as `columns` say.
fn threads(columns: [u64; 4]) -> LinearLayout {
    let [one, two, warp, block] = columns.map(|c| [c]);
    let lanes = vec![one, two, [0], [0], [0]];
    let bases = [(Dim::LANE, lanes), (Dim::WARP, vec![warp]), (Dim::BLOCK, vec![block])];
    LinearLayout::from_bases(&bases, &[Dim::out(0)]).unwrap()
}

#[test]
fn barriers_reach_as_far_as_data_do() {
    let target = TargetDesc::parse("cuda:90").unwrap();
    let from = threads([1, 2, 4, 8]);
    let through = |to: &LinearLayout, budget: u64| {
        let plan = ConversionPlan::through_shared(&from, to, 8, &target, budget).unwrap();
        let report = check_conversion(&plan, &from, to, &target).unwrap();
        (plan, report)
    };
    for (to, budget, scope, tiles, barriers) in [
        (threads([2, 1, 4, 8]), 8, Scope::Warp, 1, 1),
        // Warps store one after the other where the other one has been.
        (threads([2, 1, 4, 8]), 4, Scope::Block, 2, 3),
        (threads([1, 4, 2, 8]), 8, Scope::Block, 1, 1),
        // The blocks wait for each other before one may end.
        (threads([1, 2, 8, 4]), 8, Scope::Cluster, 1, 2),
        (threads([1, 2, 8, 4]), 4, Scope::Cluster, 2, 4),
    ] {
        let (plan, report) = through(&to, budget);
        let (Conversion::SharedMemory(p) | Conversion::Cluster(p)) = &plan.conversion else {
            panic!("{plan}")
        };
        assert_eq!((report.scope, p.scope, p.tiles), (Some(scope), scope, tiles), "{plan}");
        assert_eq!((plan.cost.barriers, p.barriers()), (barriers, barriers), "{plan}");
        for planned in [Scope::Warp, Scope::Block, Scope::Cluster] {
            let mut plan = plan.clone();
            if let Conversion::SharedMemory(p) | Conversion::Cluster(p) = &mut plan.conversion {
                p.scope = planned;
            }
            let checked = check_conversion(&plan, &from, &to, &target).map(|report| report.scope);
            let expected = match planned.cmp(&scope) {
                Ordering::Less => Err(CheckError::NarrowBarrier { planned, needed: scope }),
                Ordering::Equal => Ok(Some(scope)),
                Ordering::Greater => Err(CheckError::WideBarrier { planned, needed: scope }),
            };
            assert_eq!(checked, expected);
        }
    }
}

#[test]
fn one_of_a_kind_is_in_the_singular() {
    let bases = |r: u64, l: u64| [(Dim::REGISTER, vec![[r]]), (Dim::LANE, vec![[l]])];
    let of = |r, l| LinearLayout::from_bases(&bases(r, l), &[Dim::out(0)]).unwrap();
    let target = TargetDesc::parse("cuda:90").unwrap();
    let text = ConversionPlan::new(&of(1, 2), &of(2, 1), 32, &target).unwrap().to_string();
    assert!(text.contains("exchange within each warp: 1 shuffle in 2 rounds"), "{text}");
    assert!(text.contains("for 1 warp on cuda:90; per warp 1 shuffle, "), "{text}");
    assert!(text.contains("payloads of 1 element, 32 bits:"), "{text}");
    // Two elements of 16 bits that travel in one word.
    let pairs = |r: u64, l: u64| [(Dim::REGISTER, vec![[1], [r]]), (Dim::LANE, vec![[l]])];
    let of_pairs = |r, l| LinearLayout::from_bases(&pairs(r, l), &[Dim::out(0)]).unwrap();
    let text = ConversionPlan::new(&of_pairs(2, 4), &of_pairs(4, 2), 16, &target).unwrap().to_string();
    assert!(text.contains("payloads of 2 elements, 32 bits:"), "{text}");
    let layout = |warp: u64, lane: u64| {
        let bases = [(Dim::LANE, vec![[lane]]), (Dim::WARP, vec![[warp]])];
        LinearLayout::from_bases(&bases, &[Dim::out(0)]).unwrap()
    };
    let text = ConversionPlan::new(&layout(1, 2), &layout(2, 1), 32, &target).unwrap().to_string();
    assert!(text.contains("1 × st.shared.b32, 1 wavefront (minimum 1)"), "{text}");
    assert!(text.contains("per warp 1 store, 1 load, 1 barrier"), "{text}");
}

#[test]
fn what_one_block_has_reaches_the_others() {
    let target = TargetDesc::parse("cuda:90").unwrap();
    let zeros = |n| vec![[0]; n];
    let ins = |block| [(Dim::LANE, zeros(5)), (Dim::WARP, zeros(2)), (Dim::BLOCK, block)];
    // One element, of which all threads of both blocks have replicas.
    let layout = LinearLayout::from_bases(&ins(zeros(1)), &[Dim::out(0)]).unwrap();
    let plan = ConversionPlan::to_copies(&layout, 32, &target, target.shared_bytes).unwrap();
    assert_eq!(plan.kind(), "cluster");
    // The same as if the second block had another element, and nobody wanted that.
    let outs = [(Dim::out(0), 0), (Dim::out(1), 1)];
    let bits = [(Dim::LANE, 5), (Dim::WARP, 2), (Dim::BLOCK, 1)];
    let source = LinearLayout::from_columns(&bits, &outs, [0, 0, 0, 0, 0, 0, 0, 1]).unwrap();
    let wanted = LinearLayout::from_columns(&bits, &outs, [0; 8]).unwrap();
    check_conversion(&plan, &source, &wanted, &target).unwrap();
    assert!(check_conversion(&plan, &source, &source, &target).is_err());
    // Of four blocks the first two have different elements, and the others copies of these.
    let ins = [(Dim::LANE, zeros(5)), (Dim::WARP, zeros(2)), (Dim::BLOCK, vec![[1], [0]])];
    let layout = LinearLayout::from_bases(&ins, &[Dim::out(0)]).unwrap();
    let plan = ConversionPlan::to_copies(&layout, 32, &target, target.shared_bytes).unwrap();
    let outs = [(Dim::out(0), 1), (Dim::out(1), 1)];
    let bits = [(Dim::LANE, 5), (Dim::WARP, 2), (Dim::BLOCK, 2)];
    let with = |blocks: [u64; 2]| {
        LinearLayout::from_columns(&bits, &outs, [0; 7].into_iter().chain(blocks)).unwrap()
    };
    check_conversion(&plan, &with([1, 2]), &with([1, 0]), &target).unwrap();
}

#[test]
fn those_wait_together_that_go_through_memory_once_and_alike() {
    let target = TargetDesc::parse("cuda:90").unwrap();
    let from = threads([1, 2, 4, 8]);
    let through = |to: [u64; 4], budget: u64| {
        ConversionPlan::through_shared(&from, &threads(to), 8, &target, budget).unwrap()
    };
    let (warp, block) = (through([2, 1, 4, 8], 8), through([1, 4, 2, 8], 8));
    let (passes, cluster) = (through([1, 4, 2, 8], 4), through([1, 2, 8, 4], 8));
    let still = ConversionPlan::new(&from, &from, 8, &target).unwrap();
    for (plans, together) in [
        (vec![&block], None),
        (vec![&still, &still], None),
        (vec![&block, &block], Some((Scope::Block, 2))),
        (vec![&warp, &still, &warp, &warp], Some((Scope::Warp, 3))),
        (vec![&block, &warp], None),
        (vec![&block, &passes], None),
        (vec![&passes, &block, &block], None),
        (vec![&block, &cluster, &block], None),
        (vec![&cluster, &cluster], None),
    ] {
        let plans: Vec<ConversionPlan> = plans.into_iter().cloned().collect();
        assert_eq!(ConversionPlan::one_wait(&plans), together, "{plans:?}");
    }
}
