//! What is planned for layouts that kernels have, and what it is estimated to take: a table under review.
//!
//! `plan_table.txt` has a line per plan, so that a change of a planner shows which plans it changes, and how. The
//! estimates say what instructions a plan has (that it is right, the checker says; see the other tests), so a plan that
//! takes more is as much of a failure here as one that says so wrongly. Where the changes are wanted,
//!
//! ```sh
//! UPDATE_EXPECT=1 cargo test -p linear-layout --test plan_table
//! ```
//!
//! writes the table anew.

#[path = "plan_layouts/named.rs"]
mod named;
#[path = "plan_layouts/tiles.rs"]
mod tiles;
#[path = "../fuzz/src/uneven.rs"]
mod uneven;

use std::collections::BTreeMap;
use std::fmt::Write;

use linear_layout::plan::{
    ConversionPlan, Cost, FragmentWords, Gather, GatherPlan, HistogramPlan, PlanResult, ReducePlan, ScanPlan,
    SharedAccessPlan,
};
use linear_layout::target::{Direction, TargetDesc};
use linear_layout::{Dim, Encoding, LinearLayout};
use named::{CLUSTER, MEMORY, REGISTERS, is_kept_as, layout};
use tiles::TILES;
use uneven::uneven;

/// Few instructions, most of them, and the other vendor's, few and most.
const TARGETS: &[&str] = &["cuda:80", "cuda:100", "hip:gfx942", "hip:gfx950"];

fn targets() -> impl Iterator<Item = TargetDesc> {
    TARGETS.iter().map(|name| TargetDesc::parse(name).unwrap())
}

/// The layouts of warps as wide as the target's.
fn in_registers(target: &TargetDesc) -> Vec<(&'static str, LinearLayout)> {
    let fit = REGISTERS.iter().filter(|(_, lanes, _)| *lanes == u64::from(target.lanes));
    fit.map(|&(name, _, encoding)| (name, layout(encoding))).collect()
}

/// Those of a CTA, and those of a cluster where the target has any; layouts of one list go together.
fn families(target: &TargetDesc) -> Vec<Vec<(&'static str, LinearLayout)>> {
    let cluster = || CLUSTER.iter().map(|&(name, encoding)| (name, layout(encoding))).collect();
    std::iter::once(in_registers(target)).chain(target.primitives.clusters.then(cluster)).collect()
}

/// What is not nothing of a cost.
fn cost(cost: &Cost) -> String {
    let Cost { cycles, shuffles, selects, permutes, address_ops, .. } = *cost;
    let Cost { stores, loads, barriers, wavefronts, minimum_wavefronts, .. } = *cost;
    let counts = [
        ("shuffles", shuffles),
        ("selects", selects),
        ("permutes", permutes),
        ("address ops", address_ops),
        ("stores", stores),
        ("loads", loads),
        ("barriers", barriers),
        ("wavefronts", wavefronts),
        ("at least", minimum_wavefronts),
    ];
    let mut text = format!("{cycles:.1} cycles");
    for (name, count) in counts.into_iter().filter(|&(_, count)| count > 0) {
        write!(text, ", {count} {name}").unwrap();
    }
    text
}

/// A line of the table: what it is about, and the plan or why there is none.
fn line<T>(table: &mut String, about: &str, plan: PlanResult<T>, says: impl FnOnce(&T) -> String) {
    let says = plan.as_ref().map_or_else(|error| format!("error: {error}"), says);
    writeln!(table, "{about}: {says}").unwrap();
}

fn conversions(table: &mut String) {
    for (target, layouts) in targets().flat_map(|t| families(&t).into_iter().map(move |f| (t.clone(), f))) {
        for (from, source) in &layouts {
            for (to, result) in layouts.iter().filter(|(to, _)| to != from) {
                for bits in [4, 8, 16, 32, 64] {
                    let about = format!("{} convert {bits} bits {from} to {to}", target.name);
                    let plan = ConversionPlan::new(source, result, bits, &target);
                    line(table, &about, plan, |plan| {
                        let instructions = plan.instructions().join(", ");
                        format!("{} [{instructions}] {}", plan.kind(), cost(&plan.cost))
                    });
                }
                for (words, fragment) in fragments() {
                    let about = format!("{} convert 16 bits for {words} words {from} to {to}", target.name);
                    let plan = ConversionPlan::for_fragments(source, result, (16, fragment), &target);
                    line(table, &about, plan, |plan| format!("{} {}", plan.kind(), cost(&plan.cost)));
                }
            }
        }
    }
}

/// What matrix instructions take from consecutive registers.
fn fragments() -> [(&'static str, FragmentWords); 3] {
    [
        ("2", FragmentWords::pairs(0)),
        ("4", FragmentWords::fours(0, 1)),
        ("4 turned", FragmentWords::fours(1, 0)),
    ]
}

fn accesses(table: &mut String) {
    for target in targets() {
        for (name, registers) in in_registers(&target) {
            for (memory, encoding) in MEMORY {
                let memory_layout = layout(encoding);
                for (bits, direction) in
                    [8, 16, 32].into_iter().flat_map(|b| [Direction::Store, Direction::Load].map(|d| (b, d)))
                {
                    let about = format!("{} {direction:?} {bits} bits {name} in {memory}", target.name);
                    let plan = SharedAccessPlan::new(&registers, &memory_layout, bits, direction, &target);
                    line(table, &about, plan, |plan| access(plan, &target));
                }
                let fragments = fragments().map(|(words, fragment)| (16, words, fragment));
                for (bits, words, fragment) in
                    std::iter::once((8, "2", FragmentWords::pairs(0))).chain(fragments)
                {
                    let about =
                        format!("{} load {bits} bits for {words} words {name} in {memory}", target.name);
                    let load = Direction::Load;
                    let plan = SharedAccessPlan::for_fragments(
                        &registers,
                        &memory_layout,
                        &[],
                        (bits, fragment),
                        load,
                        &target,
                    );
                    line(table, &about, plan, |plan| access(plan, &target));
                }
            }
        }
    }
}

fn access(plan: &SharedAccessPlan, target: &TargetDesc) -> String {
    let a = &plan.access;
    format!(
        "{} x {}, {:.1} cycles, {} wavefronts, at least {}, {} address ops, {} packing, {} moves",
        a.count,
        plan.mnemonic,
        plan.cycles(target),
        a.wavefronts,
        a.minimum,
        a.address_ops,
        a.packing_ops,
        a.fragment_moves
    )
}

fn scan(plan: &ScanPlan) -> String {
    let (steps, detour) = (plan.steps.len(), if plan.detour.is_some() { ", detour" } else { "" });
    let (combinations, selects, combining) = (plan.combinations, plan.selects, plan.combining);
    let cost = cost(&plan.cost);
    format!(
        "{steps} steps, {combinations} combinations, {selects} selects, {combining:.1} combining{detour}, {cost}"
    )
}

fn in_place(plan: &ScanPlan) -> String {
    let rounds = plan.exchanges.iter();
    let rounds = rounds.map(|x| format!("{:?} by {} and {}", x.bits, x.store_elems, x.load_elems));
    format!("rounds [{}], {}", rounds.collect::<Vec<_>>().join(", "), scan(plan))
}

fn gather(plan: &GatherPlan) -> String {
    let way = if matches!(plan.gather, Gather::Shuffle(_)) { "shuffles" } else { "memory" };
    let detour = if plan.detour.is_some() { ", detour" } else { "" };
    format!("{way}{detour}, {}", cost(&plan.cost))
}

fn along_an_axis(table: &mut String) {
    for (target, layouts) in targets().flat_map(|t| families(&t).into_iter().map(move |f| (t.clone(), f))) {
        for (name, registers) in &layouts {
            for axis in 0..2 {
                let dim = Dim::out(axis);
                let about = |what: &str| format!("{} {what} {name} along {axis}", target.name);
                for (what, bits) in [("reduce", &[32][..]), ("reduce a pair", &[32, 16])] {
                    let plan = ReducePlan::new(registers, dim, bits, &target);
                    line(table, &about(what), plan, |plan| {
                        format!("{} combinations, {}", plan.local.combinations(), cost(&plan.cost))
                    });
                }
                for (what, reverse) in [("scan", false), ("scan back", true)] {
                    let plan = ScanPlan::new(registers, dim, &[32], reverse, &target);
                    line(table, &about(what), plan, scan);
                }
                for (indices, like) in layouts.iter().take(4) {
                    let plan = GatherPlan::new(registers, like, dim, 32, &target);
                    line(table, &about(&format!("gather like {indices}")), plan, gather);
                }
            }
        }
    }
}

/// Tensors of one dimension: a line that is scanned and looked up, and histograms.
fn one_dimension(table: &mut String) {
    let one_dimension = |registers: u64, warps: u64, lanes: u64, size: u64| {
        let text = format!(
            "#ttg.blocked<{{sizePerThread = [{registers}], threadsPerWarp = [{lanes}], warpsPerCTA = [{warps}], order = [0]}}>"
        );
        text.parse::<Encoding>().unwrap().to_linear_layout(&[size]).unwrap()
    };
    for target in targets() {
        let (lanes, axis) = (u64::from(target.lanes), Dim::out(0));
        for (registers, warps) in [1, 2, 4, 8].into_iter().flat_map(|r| [(r, 1), (r, 4)]) {
            let size = registers * warps * lanes;
            let whole = one_dimension(registers, warps, lanes, size);
            let about = |what: &str| format!("{} {what} {size} by {registers}", target.name);
            line(table, &about("scan"), ScanPlan::new(&whole, axis, &[32], false, &target), scan);
            line(table, &about("gather in"), GatherPlan::new(&whole, &whole, axis, 32, &target), gather);
        }
        // Several rounds of totals: registers beyond the warps.
        for (beyond, warps) in [2, 8, 64].into_iter().flat_map(|n| [(n, 4), (n, 16)]) {
            let size = 2 * warps * lanes * beyond;
            let whole = one_dimension(2, warps, lanes, size);
            for (reverse, bits) in [(false, &[32][..]), (true, &[8, 64])] {
                let about = format!("{} scan {size} of {bits:?} bits by {warps} warps in place", target.name);
                line(table, &about, ScanPlan::in_place(&whole, axis, bits, reverse, &target), in_place);
            }
        }
        for (size, bins) in [(32, 16), (1024, 2), (1024, 256), (256, 1024)] {
            let source = one_dimension(4, 4, lanes, size);
            let result = one_dimension(1, 4, lanes, bins);
            let about = format!("{} histogram of {size} in {bins} bins", target.name);
            line(table, &about, HistogramPlan::new(&source, &result, 32, &target), |plan| cost(&plan.cost));
        }
    }
}

/// What costs decide, on targets whose costs are all different: the ways of conversions and reductions, the instructions
/// of accesses.
fn with_other_costs(table: &mut String) {
    for target in targets().filter(|target| ["cuda:100", "hip:gfx950"].contains(&target.name)).map(uneven) {
        let layouts = in_registers(&target);
        for (from, source) in &layouts {
            for (to, result) in layouts.iter().filter(|(to, _)| to != from) {
                for bits in [8, 16, 32] {
                    let about =
                        format!("{} with other costs converts {bits} bits {from} to {to}", target.name);
                    let plan = ConversionPlan::new(source, result, bits, &target);
                    line(table, &about, plan, |plan| {
                        format!("{} [{}] {}", plan.kind(), plan.instructions().join(", "), cost(&plan.cost))
                    });
                }
            }
            for (memory, encoding) in MEMORY {
                let about = format!("{} with other costs loads {from} in {memory}", target.name);
                let load = Direction::Load;
                let plan = SharedAccessPlan::new(source, &layout(encoding), 16, load, &target);
                line(table, &about, plan, |plan| access(plan, &target));
            }
            for axis in 0..2 {
                let about = format!("{} with other costs reduces {from} along {axis}", target.name);
                let plan = ReducePlan::new(source, Dim::out(axis), &[32], &target);
                line(table, &about, plan, |plan| cost(&plan.cost));
                let about = format!("{} with other costs scans {from} along {axis}", target.name);
                line(table, &about, ScanPlan::new(source, Dim::out(axis), &[32, 16], false, &target), scan);
            }
        }
    }
}

/// Of layouts that instructions of matrices fit or just do not: how many use which, and what all of them take together.
fn near_tiles(table: &mut String) {
    for (tile, other) in TILES.iter().flat_map(|tile| [(tile, false), (tile, true)]) {
        let target = TargetDesc::parse(tile.target).unwrap();
        let target = if other { uneven(target) } else { target };
        let mut found: BTreeMap<String, (u64, f64, u64)> = BTreeMap::new();
        for layout in tile.variations() {
            let plan = tile.plan(&layout, &target).unwrap();
            let (plans, cycles, addresses) = found.entry(plan.mnemonic.clone()).or_default();
            *plans += 1;
            *cycles += plan.cycles(&target);
            *addresses += plan.access.address_ops;
        }
        for (mnemonic, (plans, cycles, addresses)) in found {
            let (direction, bits) = (tile.direction, tile.elem_bits);
            let costs = if other { " with other costs" } else { "" };
            let about = format!("{} {direction:?} {bits} bits near a tile{costs}", tile.target);
            writeln!(table, "{about}: {plans} by {mnemonic}, {cycles:.1} cycles, {addresses} address ops")
                .unwrap();
        }
    }
}

#[test]
fn plans_are_those_of_the_table() {
    let mut table = String::new();
    for part in [conversions, accesses, along_an_axis, one_dimension, with_other_costs, near_tiles] {
        part(&mut table);
    }
    is_kept_as("plan_table.txt", &table);
}
