//! Exhaustive search: no memory layout is better than the one that is planned, and no exchange needs fewer
//! shuffles.

mod plan_layouts;

use std::collections::{BTreeMap, BTreeSet};

use linear_layout::checker::{check_conversion, check_shared_access};
use linear_layout::plan::{Conversion, ConversionPlan, SharedAccessPlan};
use linear_layout::target::{Direction, Primitives, ServiceRule, TargetDesc};
use linear_layout::{Dim, LinearLayout, f2};
use plan_layouts::pair;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// Machines small enough to try every memory layout: four lanes, four banks, and how these serve accesses of a width unless it
/// is lanes in order. The rules of AMD's GPUs are like those of such machines: the widest loads of CDNA3 are served to lanes that
/// do not follow each other, those of CDNA4 from twice as many banks, also to lanes that do not follow each other.
const MACHINES: [(&str, &[ServiceRule]); 5] = [
    ("cuda:80", &[]),
    ("hip:gfx942", &[ServiceRule::plain(8, Direction::Load, 4, &[3])]),
    (
        "hip:gfx942",
        &[ServiceRule::plain(8, Direction::Load, 4, &[2]), ServiceRule::plain(8, Direction::Store, 4, &[1])],
    ),
    ("hip:gfx950", &[ServiceRule::plain(8, Direction::Load, 8, &[3, 1])]),
    (
        "hip:gfx950",
        &[
            ServiceRule::plain(8, Direction::Load, 8, &[1, 2]),
            ServiceRule::plain(4, Direction::Load, 8, &[1, 2]),
        ],
    ),
];

fn tiny((name, services): (&str, &'static [ServiceRule]), issue: f64) -> TargetDesc {
    let mut target = TargetDesc::parse(name).unwrap();
    target.services = services;
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
fn arrangements() -> Vec<Vec<u64>> {
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
    all
}

fn per_warp(plan: &ConversionPlan, target: &TargetDesc) -> f64 {
    let (Conversion::SharedMemory(p) | Conversion::Cluster(p)) = &plan.conversion else { panic!("{plan}") };
    p.store.cycles(target) + p.load.cycles(target)
}

/// A side of a transfer as one memory layout has it: the offsets, in elements, that each bit of register, lane and warp
/// numbers moves by. Counts by enumeration, knowing only that a line of four banks of four bytes serves as many
/// consecutive lanes as have room in it, unless a rule says which lanes are served together, and by how many banks.
struct Side {
    rules: &'static [ServiceRule],
    registers: Vec<u64>,
    lanes: [u64; 2],
    warp: u64,
    store: bool,
}

impl Side {
    /// Sums of a list of offsets.
    fn span(of: &[u64]) -> Vec<u64> {
        let sum =
            |x: usize| of.iter().enumerate().filter(|(i, _)| x >> i & 1 == 1).fold(0, |a, (_, o)| a ^ o);
        let mut all: Vec<u64> = (0..1usize << of.len()).map(sum).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The least of wavefronts plus `issue` for each instruction, over the widths of accesses, in half cycles.
    fn half_cycles(&self, bits: u64, issue: u16) -> u16 {
        let held = Side::span(&self.registers);
        let others = Side::span(&[self.lanes[0], self.lanes[1], self.warp]);
        let mut least = u16::MAX;
        for elems in [1u64, 2, 4, 8].into_iter().take_while(|n| n * bits <= 64) {
            // Runs in every thread, at places that are the same in all threads.
            let runs = others.iter().all(|o| o & (elems - 1) == 0)
                && held.iter().all(|h| (0..elems).all(|i| held.contains(&(h & !(elems - 1) | i))));
            if runs {
                let starts = held.iter().filter(|&h| h & (elems - 1) == 0);
                let (mut wavefronts, mut count) = (0, 0);
                for start in starts {
                    count += 1;
                    wavefronts += self.wavefronts(*start, bits, elems);
                }
                least = least.min(2 * wavefronts + issue * count);
            }
        }
        least
    }

    /// Wavefronts of one access of the first warp.
    fn wavefronts(&self, start: u64, bits: u64, elems: u64) -> u16 {
        let bytes = bits * elems / 8;
        let together = (16 / bytes.max(4)).min(4);
        let of = |rule: &&ServiceRule| {
            let width = u64::from(rule.bytes) == bytes;
            width && self.store == matches!(rule.direction, Direction::Store)
        };
        let (count, basis) = match self.rules.iter().find(of) {
            Some(rule) => (u64::from(rule.banks), rule.lanes.to_vec()),
            None => (4, [1u64, 2].into_iter().filter(|lane| *lane < together).collect()),
        };
        let (first, mut sum) = (Side::span(&basis), 0);
        let mut left: Vec<u64> = (0..4).collect();
        while let Some(&lane) = left.first() {
            let phase: Vec<u64> = first.iter().map(|other| lane ^ other).collect();
            left.retain(|lane| !phase.contains(lane));
            // By bank, the words that are wanted of it: 16 elements of 8 bytes are 32 words.
            let mut banks = [0u32; 8];
            for lane in phase {
                // Of lanes with the same elements one stores.
                let copy = |bit: usize| self.store && self.lanes[bit] == 0 && lane >> bit & 1 == 1;
                if !copy(0) && !copy(1) {
                    let offset = start ^ ((lane & 1) * self.lanes[0]) ^ ((lane >> 1) * self.lanes[1]);
                    let first = offset * bits / 8;
                    (first / 4..=(first + bytes - 1) / 4).for_each(|w| banks[(w % count) as usize] |= 1 << w);
                }
            }
            sum += banks.iter().map(|words| words.count_ones() as u16).max().unwrap_or(0);
        }
        sum
    }
}

/// The half cycles of one side under every memory layout, each counted once by the offsets that it comes to.
struct Costs {
    rules: &'static [ServiceRule],
    store: bool,
    bits: u64,
    issue: u16,
    /// By the five offsets of four bits, 0 where it is not yet known.
    known: Vec<u16>,
}

impl Costs {
    fn new(rules: &'static [ServiceRule], store: bool, bits: u64, issue: f64) -> Costs {
        Costs { rules, store, bits, issue: (2.0 * issue) as u16, known: vec![0; 1 << 20] }
    }

    /// `inverses` take elements to offsets.
    fn of(&mut self, layout: &[u64], inverses: &[[u64; 4]]) -> Vec<u16> {
        let places: Vec<Option<usize>> =
            layout.iter().map(|&c| (c != 0).then(|| c.trailing_zeros() as usize)).collect();
        let one = |inverse: &[u64; 4]| {
            let at = |i: usize| places[i].map_or(0, |bit| inverse[bit]);
            let key = (0..5).fold(0, |key, i| key << 4 | at(i)) as usize;
            if self.known[key] == 0 {
                let (registers, store, rules) = (vec![at(0), at(1)], self.store, self.rules);
                let side = Side { rules, registers, lanes: [at(2), at(3)], warp: at(4), store };
                self.known[key] = side.half_cycles(self.bits, self.issue);
            }
            self.known[key]
        };
        inverses.iter().map(one).collect()
    }
}

#[test]
fn no_memory_layout_is_better_than_the_planned_one() {
    // Every linear memory by where it has the elements: all invertible matrices, which are their inverses too.
    let inverses: Vec<[u64; 4]> = invertible(4).into_iter().map(|m| m.try_into().unwrap()).collect();
    assert_eq!(inverses.len(), 20160);
    let layouts = arrangements();
    assert_eq!(layouts.len(), 120);
    // Renaming the bits of elements changes nothing: one source for each place of its zero column stands for all.
    let sources: Vec<&Vec<u64>> =
        layouts.iter().filter(|c| c.iter().filter(|c| **c != 0).is_sorted()).collect();
    assert_eq!(sources.len(), 5);
    let mut checked = 0;
    let of_machine = |machine| {
        let of = move |bits| [0.5, 100.0].map(|issue| (machine, bits, issue));
        [8, 16, 32, 64].into_iter().flat_map(of)
    };
    for (machine, bits, issue) in MACHINES.into_iter().flat_map(of_machine) {
        let target = tiny(machine, issue);
        let [mut stores, mut loads] =
            [true, false].map(|store| Costs::new(machine.1, store, bits.into(), issue));
        let stores: Vec<Vec<u16>> = sources.iter().map(|c| stores.of(c, &inverses)).collect();
        for to in &layouts {
            let loads = loads.of(to, &inverses);
            for (from, stores) in sources.iter().zip(&stores) {
                let (a, b) = (layout(from, 4), layout(to, 4));
                let plan = ConversionPlan::through_shared(&a, &b, bits, &target, 1 << 20).unwrap();
                check_conversion(&plan, &a, &b, &target).unwrap();
                let least = stores.iter().zip(&loads).map(|(s, l)| s + l).min().unwrap();
                assert_eq!(
                    2.0 * per_warp(&plan, &target),
                    f64::from(least),
                    "{machine:?}, {bits} bits\n{a}\n{b}\n{plan}"
                );
                checked += 1;
            }
        }
    }
    assert_eq!(checked, MACHINES.len() * 5 * 120 * 8);
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

/// The same with sums of columns for columns of the second one: several lanes of it may read one lane.
fn one_warp_of_sums() -> impl Strategy<Value = (LinearLayout, LinearLayout)> {
    let sums = proptest::collection::vec(any::<(usize, usize)>(), 0..8);
    (one_warp(), sums).prop_map(|((a, b), sums)| {
        let mut columns = b.columns().to_vec();
        for (i, j) in sums {
            let (i, j) = (i % columns.len(), j % columns.len());
            columns[i] ^= if i == j { 0 } else { columns[j] };
        }
        let (ins, outs): (Vec<_>, Vec<_>) = (b.in_dim_bits().collect(), b.out_dim_bits().collect());
        (a, LinearLayout::from_columns(&ins, &outs, columns).unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Elements of a word or two go alone, so that it does not matter where in a payload they are.
    #[test]
    fn no_exchange_of_words_needs_fewer_shuffles((a, b) in one_warp_of_sums(), width in 5u32..7) {
        let target = TargetDesc::parse("cuda:90").unwrap();
        let plan = ConversionPlan::through_shuffles(&a, &b, 1 << width, &target).unwrap();
        let plan = plan.expect("nothing leaves the warp");
        check_conversion(&plan, &a, &b, &target).unwrap();
        prop_assert_eq!(plan.cost.shuffles, shuffles_needed(&a, &b, 1 << width), "{}\n{}\n{}", a, b, plan);
    }

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
/// elements' bits: latency and selects of the second step cost more than they save. Where some exchanges are much faster
/// than others (DPP on AMD GPUs), a fast one and a slow one can be cheaper than the slow ones of a single step; plans do
/// not look for that.
#[test]
fn no_two_exchanges_are_cheaper_than_the_plan() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut searched = 0;
    let alike = |target: &TargetDesc| target.cost.fixed_shuffle_latency == target.cost.shuffle_latency;
    for target in TargetDesc::all().filter(alike) {
        let lanes = target.lane_bits() as usize;
        for _ in 0..48 {
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
