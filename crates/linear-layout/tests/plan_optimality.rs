//! Exhaustive search: no memory layout is better than the one that is planned, and no exchange needs fewer
//! shuffles.

mod plan_layouts;

use std::collections::{BTreeMap, BTreeSet};

use linear_layout::checker::{check_conversion, check_shared_access};
use linear_layout::plan::{Conversion, ConversionPlan, SharedAccessPlan};
use linear_layout::target::{Direction, Primitives, TargetDesc};
use linear_layout::{Dim, LinearLayout, f2};
use plan_layouts::pair;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// A machine small enough to try every memory layout: four lanes, four banks.
fn tiny(issue: f64) -> TargetDesc {
    let mut target = TargetDesc::parse("cuda:80").unwrap();
    (target.lanes, target.banks, target.max_vector_bits) = (4, 4, 64);
    target.primitives = Primitives::default();
    (target.cost.issue, target.cost.alu) = (issue, 0.0);
    target
}

/// All invertible matrices of `n` columns.
fn invertible(n: u32) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        let extend = |m: &Vec<u64>| {
            let m = m.clone();
            let independent = move |c: &u64| !f2::Echelon::of(&m).contains(*c);
            (1..1u64 << n).filter(independent).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(|m| extend(m).into_iter().map(|c| [m.clone(), vec![c]].concat())).collect();
    }
    all
}

/// `registers` and 2 lane bits and 1 warp bit, from a list of columns.
fn layout(columns: &[u64], bits: u32) -> LinearLayout {
    let ins = [(Dim::REGISTER, columns.len() as u32 - 3), (Dim::LANE, 2), (Dim::WARP, 1)];
    LinearLayout::from_columns(&ins, &[(Dim::out(0), bits)], columns.iter().copied()).unwrap()
}

/// Every way to deal out four unit vectors and one zero column to two registers, two lanes and one warp.
fn arrangements() -> Vec<LinearLayout> {
    let mut all: Vec<Vec<u64>> = vec![Vec::new()];
    for _ in 0..5 {
        let next = |m: Vec<u64>| {
            [0, 1, 2, 4, 8]
                .into_iter()
                .filter(|c| !m.contains(c))
                .map(|c| [m.clone(), vec![c]].concat())
                .collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(next).collect();
    }
    all.iter().map(|c| layout(c, 4)).collect()
}

fn per_warp(plan: &ConversionPlan, target: &TargetDesc) -> f64 {
    let (Conversion::SharedMemory(p) | Conversion::Cluster(p)) = &plan.conversion else { panic!("{plan}") };
    p.store.cycles(target) + p.load.cycles(target)
}

/// The least cycles of a store and a load over every memory layout.
fn exhaustive(
    a: &LinearLayout,
    b: &LinearLayout,
    bits: u32,
    memories: &[LinearLayout],
    target: &TargetDesc,
) -> f64 {
    let one = |memory: &LinearLayout| {
        let side = |layout, direction| {
            SharedAccessPlan::new(layout, memory, bits, direction, target).unwrap().cycles(target)
        };
        side(a, Direction::Store) + side(b, Direction::Load)
    };
    memories.iter().map(one).fold(f64::INFINITY, f64::min)
}

#[test]
fn no_memory_layout_is_better_than_the_planned_one() {
    let memories: Vec<LinearLayout> = invertible(4)
        .into_iter()
        .map(|c| LinearLayout::from_columns(&[(Dim::OFFSET, 4)], &[(Dim::out(0), 4)], c).unwrap())
        .collect();
    assert_eq!(memories.len(), 20160);
    let layouts = arrangements();
    assert_eq!(layouts.len(), 120);
    // A stride that is prime to the number of pairs visits different pairs for every width.
    let pairs = layouts.len() * layouts.len();
    let (mut at, mut checked) = (0, 0);
    for bits in [8, 16, 32, 64] {
        for issue in [0.5, 100.0] {
            for _ in 0..3 {
                at = (at + 6151) % pairs;
                let (a, b) = (&layouts[at / layouts.len()], &layouts[at % layouts.len()]);
                let target = tiny(issue);
                let plan = ConversionPlan::through_shared(a, b, bits, &target, 1 << 20).unwrap();
                check_conversion(&plan, a, b, &target).unwrap();
                let best = exhaustive(a, b, bits, &memories, &target);
                assert_eq!(per_warp(&plan, &target), best, "{bits} bits\n{a}\n{b}\n{plan}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 24);
}

#[test]
fn with_equal_widths_nothing_ever_conflicts() {
    // The claim behind the search: of all layouts with the widest vectors on both sides, the planned one
    // takes one wavefront per phase. Checked bank by bank on the real machines.
    for target in TargetDesc::all() {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        for _ in 0..60 {
            let (a, b) = pair(false).new_tree(&mut runner).unwrap().current();
            for bits in [32, 64] {
                let mut target = target.clone();
                // Wide vectors at any price.
                target.cost.issue = 1000.0;
                let plan = ConversionPlan::through_shared(&a, &b, bits, &target, 1 << 20).unwrap();
                check_conversion(&plan, &a, &b, &target).unwrap();
                let (Conversion::SharedMemory(p) | Conversion::Cluster(p)) = &plan.conversion else {
                    panic!()
                };
                let same = p.store.instruction.bits_per_lane() == p.load.instruction.bits_per_lane();
                if same {
                    assert_eq!(plan.cost.wavefronts, plan.cost.minimum_wavefronts, "{a}\n{b}\n{plan}");
                }
            }
        }
    }
}

/// What one thread must receive from each other lane of its warp, at most 32 bits at a time.
fn shuffles_needed(a: &LinearLayout, b: &LinearLayout, bits: u64) -> u64 {
    let at = |l: &LinearLayout, r: u64, t: u64, w: u64| {
        let shift = |d| l.in_shift(d).unwrap();
        l.apply_packed(r | t << shift(Dim::LANE) | w)
    };
    let mut most = 0;
    let others = a.total_in_bits() - a.in_bits(Dim::REGISTER) - 5;
    for rest in 0..1u64 << others {
        let rest = rest << (a.in_bits(Dim::REGISTER) + 5);
        let mut home = BTreeMap::new();
        for t in 0..32 {
            for r in 0..a.in_size(Dim::REGISTER).unwrap() {
                home.insert(at(a, r, t, rest), t);
            }
        }
        let rest_b = rest >> (a.in_bits(Dim::REGISTER) + 5) << (b.in_bits(Dim::REGISTER) + 5);
        for t in 0..32 {
            let wanted: BTreeSet<u64> =
                (0..b.in_size(Dim::REGISTER).unwrap()).map(|r| at(b, r, t, rest_b)).collect();
            let mut from: BTreeMap<u64, u64> = BTreeMap::new();
            for element in wanted {
                if home[&element] != t {
                    *from.entry(home[&element]).or_default() += 1;
                }
            }
            most = most.max(from.values().map(|n| (n * bits).div_ceil(32)).sum());
        }
    }
    most
}

/// A layout without copies and one with up to two zero columns, of one warp.
fn one_warp() -> impl Strategy<Value = (LinearLayout, LinearLayout)> {
    (0usize..5, 0usize..3)
        .prop_flat_map(|(k, zeros)| {
            let unit: Vec<u64> = (0..k + 5).map(|i| 1 << i).collect();
            let padded: Vec<u64> = unit.iter().copied().chain(vec![0; zeros]).collect();
            (Just(unit).prop_shuffle(), Just(padded).prop_shuffle())
        })
        .prop_map(|(a, b)| {
            let of = |c: &[u64]| {
                let ins = [(Dim::REGISTER, c.len() as u32 - 5), (Dim::LANE, 5)];
                LinearLayout::from_columns(&ins, &[(Dim::out(0), a.len() as u32)], c.iter().copied()).unwrap()
            };
            (of(&a), of(&b))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Without copies in the source, the shuffles are as few as one thread's needs allow.
    #[test]
    fn no_exchange_needs_fewer_shuffles((a, b) in one_warp(), width in 2u32..7) {
        let target = TargetDesc::parse("cuda:90").unwrap();
        let plan = ConversionPlan::through_shuffles(&a, &b, 1 << width, &target).unwrap();
        let plan = plan.expect("nothing leaves the warp");
        check_conversion(&plan, &a, &b, &target).unwrap();
        prop_assert_eq!(plan.cost.shuffles, shuffles_needed(&a, &b, 1 << width), "{}\n{}\n{}", a, b, plan);
    }
}

/// Exchanges in two steps, each with fuller payloads, through any layout in between whose registers are some of the
/// elements' bits: latency and selects of the second step cost more than they save.
#[test]
fn no_two_exchanges_are_cheaper_than_the_plan() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut searched = 0;
    for target in TargetDesc::all() {
        let lanes = target.lane_bits() as usize;
        for _ in 0..24 {
            let (registers, warps, bits) =
                (1usize..5, 0u32..4, 2u32..6).new_tree(&mut runner).unwrap().current();
            let n = registers + lanes;
            let unit: Vec<u64> = (0..n).map(|i| 1 << i).collect();
            let order = || Just(unit.clone()).prop_shuffle();
            let (a, b) = (order(), order()).new_tree(&mut runner).unwrap().current();
            let of = |columns: &[u64]| {
                let warp = (0..warps).map(|i| 1u64 << (n as u32 + i));
                let ins = [(Dim::REGISTER, registers as u32), (Dim::LANE, lanes as u32), (Dim::WARP, warps)];
                let outs = [(Dim::out(0), n as u32 + warps)];
                LinearLayout::from_columns(&ins, &outs, columns.iter().copied().chain(warp)).unwrap()
            };
            let exchange = |from: &LinearLayout, to: &LinearLayout| {
                let plan = ConversionPlan::through_shuffles(from, to, 1 << bits, &target).unwrap();
                plan.map_or(f64::INFINITY, |p| p.cost.cycles)
            };
            let (from, to) = (of(&a), of(&b));
            let plan = ConversionPlan::new(&from, &to, 1 << bits, &target).unwrap();
            if plan.cost.cycles <= 2.0 * target.cost.shuffle_latency {
                continue;
            }
            searched += 1;
            for set in (0..1u64 << n).filter(|set| set.count_ones() as usize == registers) {
                // Lanes stay as they are on one side where they can.
                for side in [&a, &b] {
                    let own: Vec<u64> = unit.iter().copied().filter(|c| set & c != 0).collect();
                    let mut free =
                        unit.iter().copied().filter(|c| set & c == 0 && !side[registers..].contains(c));
                    let lane = side[registers..]
                        .iter()
                        .map(|c| if set & c == 0 { *c } else { free.next().unwrap() });
                    let between = of(&own.iter().copied().chain(lane).collect::<Vec<_>>());
                    let first = exchange(&from, &between);
                    if first < plan.cost.cycles {
                        let both = first + exchange(&between, &to);
                        assert!(
                            both >= plan.cost.cycles,
                            "{target}, {} bits\n{from}\n{to}\n{between}",
                            1 << bits
                        );
                    }
                }
            }
        }
    }
    assert!(searched > 50, "{searched}");
}

/// The same for transposes between registers and lanes, which random layouts seldom are.
#[test]
fn transposes_keep_what_stays() {
    let target = TargetDesc::parse("cuda:90").unwrap();
    for k in 0..=5u32 {
        for bits in [8, 16, 32, 64] {
            let n = 5 + k;
            let unit = |i: u32| 1u64 << i;
            let a: Vec<u64> = (0..n).map(unit).collect();
            let b: Vec<u64> = (5..n).chain(k..5).chain(0..k).map(unit).collect();
            let of = |c: Vec<u64>| {
                let ins = [(Dim::REGISTER, k), (Dim::LANE, 5)];
                LinearLayout::from_columns(&ins, &[(Dim::out(0), n)], c).unwrap()
            };
            let (a, b) = (of(a), of(b));
            let plan = ConversionPlan::through_shuffles(&a, &b, bits, &target).unwrap().unwrap();
            check_conversion(&plan, &a, &b, &target).unwrap();
            // Every lane keeps one of its 2^k registers.
            assert_eq!(plan.cost.shuffles, ((1 << k) - 1) * u64::from(bits.div_ceil(32)), "{plan}");
            assert_eq!(plan.cost.shuffles, shuffles_needed(&a, &b, bits.into()));
            let memory = LinearLayout::identity_1d(1 << n, "offset", "dim0").unwrap();
            let access = SharedAccessPlan::new(&b, &memory, bits, Direction::Load, &target).unwrap();
            check_shared_access(&access, &b, &memory, &target).unwrap();
        }
    }
}
