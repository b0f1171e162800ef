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

use std::fmt::Write;
use std::path::Path;

use linear_layout::plan::{
    ConversionPlan, Cost, Gather, GatherPlan, HistogramPlan, PlanResult, ReducePlan, ScanPlan,
    SharedAccessPlan,
};
use linear_layout::target::{Direction, TargetDesc};
use linear_layout::{Dim, Encoding, LinearLayout};

/// Shape of all tensors in registers. Sizes differ, lest one stand for the other.
const SHAPE: [u64; 2] = [64, 128];

/// Layouts of four warps: what tensors are loaded in, computed in, multiplied in. With the lanes of a warp.
const REGISTERS: &[(&str, u64, &str)] = &[
    (
        "rows",
        32,
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>",
    ),
    (
        "columns",
        32,
        "#ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>",
    ),
    (
        "thin",
        32,
        "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>",
    ),
    (
        "row_per_lane",
        32,
        "#ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [2, 2], order = [1, 0]}>",
    ),
    (
        "warp_rows",
        32,
        "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>",
    ),
    (
        "mma",
        32,
        "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>",
    ),
    (
        "wgmma",
        32,
        "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>",
    ),
    (
        "operand_a",
        32,
        "#ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>, kWidth = 2}>",
    ),
    (
        "operand_b",
        32,
        "#ttg.dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>, kWidth = 2}>",
    ),
    (
        "bytes_b",
        32,
        "#ttg.dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>, kWidth = 4}>",
    ),
    (
        "mixed",
        32,
        "#ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [1, 4], [32, 0], [0, 8]], lane = [[0, 16], [0, 32], [0, 64], [2, 1], [4, 0]], warp = [[8, 0], [16, 3]], block = []}>",
    ),
    (
        "with_copies",
        32,
        "#ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [1, 0], [0, 8], [32, 0], [2, 1], [0, 64]], lane = [[0, 16], [0, 0], [0, 32], [4, 0], [8, 0]], warp = [[0, 0], [16, 0]], block = []}>",
    ),
    (
        "wave_rows",
        64,
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>",
    ),
    (
        "wave_thin",
        64,
        "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 64], warpsPerCTA = [4, 1], order = [1, 0]}>",
    ),
    (
        "mfma",
        64,
        "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>",
    ),
    (
        "mfma_a",
        64,
        "#ttg.dot_op<{opIdx = 0, parent = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>, kWidth = 4}>",
    ),
    (
        "mfma_b",
        64,
        "#ttg.dot_op<{opIdx = 1, parent = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>, kWidth = 4}>",
    ),
];

/// Layouts of shared memory.
const MEMORY: &[(&str, &str)] = &[
    ("plain", "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>"),
    ("swizzled", "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"),
    ("bytes", "#ttg.swizzled_shared<{vec = 16, perPhase = 2, maxPhase = 4, order = [1, 0]}>"),
    ("column_major", "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>"),
    ("wgmma_128", "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"),
];

/// Layouts of a cluster of two CTAs of four warps each.
const CLUSTER: &[(&str, &str)] = &[
    (
        "rows_by_rows",
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>",
    ),
    (
        "rows_by_columns",
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 1]]}>",
    ),
    (
        "rows_in_both",
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 0]]}>",
    ),
];

/// Few instructions, most of them, and the other vendor's.
const TARGETS: &[&str] = &["cuda:80", "cuda:100", "hip:gfx942"];

fn layout(encoding: &str) -> LinearLayout {
    let parsed = encoding.parse::<Encoding>().unwrap_or_else(|e| panic!("{encoding}: {e}"));
    parsed.to_linear_layout(&SHAPE).unwrap_or_else(|e| panic!("{encoding}: {e}"))
}

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
                for words in [2, 4] {
                    let about = format!("{} convert 16 bits for {words} words {from} to {to}", target.name);
                    let plan = ConversionPlan::for_fragments(source, result, (16, words), &target);
                    line(table, &about, plan, |plan| format!("{} {}", plan.kind(), cost(&plan.cost)));
                }
            }
        }
    }
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
                for (bits, words) in [(8, 2), (16, 2), (16, 4)] {
                    let about =
                        format!("{} load {bits} bits for {words} words {name} in {memory}", target.name);
                    let load = Direction::Load;
                    let plan = SharedAccessPlan::for_fragments(
                        &registers,
                        &memory_layout,
                        &[],
                        (bits, words),
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
        for (size, bins) in [(32, 16), (1024, 2), (1024, 256), (256, 1024)] {
            let source = one_dimension(4, 4, lanes, size);
            let result = one_dimension(1, 4, lanes, bins);
            let about = format!("{} histogram of {size} in {bins} bins", target.name);
            line(table, &about, HistogramPlan::new(&source, &result, 32, &target), |plan| cost(&plan.cost));
        }
    }
}

#[test]
fn plans_are_those_of_the_table() {
    let mut table = String::new();
    for part in [conversions, accesses, along_an_axis, one_dimension] {
        part(&mut table);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan_table.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &table).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    let differ: Vec<String> = kept
        .lines()
        .zip(table.lines())
        .filter(|(k, t)| k != t)
        .map(|(k, t)| format!("- {k}\n+ {t}"))
        .collect();
    assert!(
        differ.is_empty() && kept.lines().count() == table.lines().count(),
        "{} of {} plans differ; where that is wanted, UPDATE_EXPECT=1 writes the table anew\n{}",
        differ.len(),
        kept.lines().count(),
        differ.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
    );
}
