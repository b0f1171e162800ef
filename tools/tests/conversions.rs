//! Conversions between generated layouts, compiled and run on the simulator:
//! every element must arrive, and shared memory must take no more wavefronts
//! than planned.
//!
//! A part of the cases runs by default; `TTOPT_CONVERSIONS=all` runs all. With
//! `TTOPT_CONVERSIONS_DIR=DIR` the kernels and their plans are also written to
//! DIR, where `bench/gpu/conversions.py` finds them.

use linear_layout::plan::{AccessPlan, Conversion, ConversionPlan, MemoryInstruction};
use linear_layout::target::{TargetDesc, Vendor};
use linear_layout::{Dim, Encoding, LinearLayout};
use simt::counts::Class;
use simt::{Arg, Launch, run};
use std::fmt::Write;
use std::path::Path;
use ttopt_tools::compile::{Options, Stage, compile};

/// Cases of each target when all run.
const ALL: usize = 320;
/// Cases of each target by default.
const SAMPLE: usize = 24;
const TARGETS: [&str; 8] = [
    "cuda:80",
    "cuda:90",
    "cuda:100",
    "hip:gfx90a",
    "hip:gfx942",
    "hip:gfx950",
    "hip:gfx1100",
    "hip:gfx1201",
];
/// Spreads the bits of an index over a word.
const SPREAD: u32 = 0x9E37_79B1;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    warps: u32,
    /// Lanes of a warp, log2.
    lane_bits: u32,
    blocks: u32,
    rows: u64,
    columns: u64,
}

/// A layout of the case's tensor, its dimensions flattened into one.
fn layout(random: &mut Random, case: Case) -> LinearLayout {
    let shape = [case.rows, case.columns];
    let splits: Vec<(u32, u32)> =
        (0..=case.warps.trailing_zeros()).map(|i| (1 << i, case.warps >> i)).collect();
    for _ in 0..16 {
        let &(down, across) = random.pick(&splits);
        let text = match random.below(if case.blocks > 1 { 2 } else { 7 }) {
            0 | 1 => {
                let order = *random.pick(&["[1, 0]", "[0, 1]"]);
                let (r, c) = (1 << random.below(4), 1 << random.below(4));
                let lanes = random.below(case.lane_bits as usize + 1);
                let (lr, lc) = (1 << lanes, 1 << (case.lane_bits as usize - lanes));
                let cga = match (case.blocks, random.below(2)) {
                    (1, _) => String::new(),
                    (_, 0) => ", CGALayout = [[1, 0]]".to_owned(),
                    _ => ", CGALayout = [[0, 1]]".to_owned(),
                };
                format!(
                    "#ttg.blocked<{{sizePerThread = [{r}, {c}], threadsPerWarp = [{lr}, {lc}], \
                     warpsPerCTA = [{down}, {across}], order = {order}{cga}}}>"
                )
            }
            2 => mma(case, down, across),
            3 => {
                let (op, width) = (random.below(2), *random.pick(&[1, 2, 4]));
                format!(
                    "#ttg.dot_op<{{opIdx = {op}, parent = {}, kWidth = {width}}}>",
                    mma(case, down, across)
                )
            }
            _ => return general(random, case),
        };
        let encoding: Encoding = text.parse().unwrap_or_else(|err| panic!("{text}: {err}"));
        if let Ok(layout) = encoding.to_linear_layout(&shape) {
            return layout.flatten_outs().unwrap();
        }
    }
    general(random, case)
}

fn mma(case: Case, down: u32, across: u32) -> String {
    if case.lane_bits == 6 {
        return format!(
            "#ttg.amd_mfma<{{version = 3, warpsPerCTA = [{down}, {across}], instrShape = [16, 16, 16], \
             isTransposed = {}}}>",
            case.rows > case.columns
        );
    }
    format!(
        "#ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = [{down}, {across}], \
         instrShape = [16, 8]}}>"
    )
}

/// Any surjective matrix, with replicas now and then.
fn general(random: &mut Random, case: Case) -> LinearLayout {
    let bits = (case.rows * case.columns).trailing_zeros();
    let warps = case.warps.trailing_zeros() as usize;
    let lanes = case.lane_bits as usize;
    let n = (bits as usize).max(lanes + warps) + random.below(2);
    let mut columns: Vec<u64> = (0..n as u32).map(|i| if i < bits { 1 << i } else { 0 }).collect();
    for i in (1..n).rev() {
        columns.swap(i, random.below(i + 1));
    }
    if random.below(2) == 0 {
        // Adding columns to others keeps the rank.
        for _ in 0..n {
            let (i, j) = (random.below(n), random.below(n));
            if i != j {
                columns[i] ^= columns[j];
            }
        }
    }
    let ins = [
        (Dim::REGISTER, (n - lanes - warps) as u32),
        (Dim::LANE, case.lane_bits),
        (Dim::WARP, warps as u32),
        (Dim::BLOCK, 0),
    ];
    LinearLayout::from_columns(&ins, &[(Dim::out(0), bits)], columns).unwrap()
}

/// `#ttg.generic_linear<{register = [[1], …], …}>`
fn attribute(layout: &LinearLayout) -> String {
    let bases = |dim| {
        let list: Vec<String> = layout.columns_of(dim).iter().map(|column| format!("[{column}]")).collect();
        format!("[{}]", list.join(", "))
    };
    format!(
        "#ttg.generic_linear<{{register = {}, lane = {}, warp = {}, block = {}}}>",
        bases(Dim::REGISTER),
        bases(Dim::LANE),
        bases(Dim::WARP),
        bases(Dim::BLOCK)
    )
}

/// A kernel that spreads the indices of elements, converts, and stores.
fn kernel(case: Case, target: &str, dtype: &str, a: &str, b: &str) -> String {
    let n = case.rows * case.columns;
    let Case { warps, blocks, .. } = case;
    let mut text = String::new();
    let stored = if dtype == "i1" { "i8" } else { dtype };
    let t = |e: &str, l: &str| format!("tensor<{n}x{e}, {l}>");
    writeln!(
        text,
        "module attributes {{\"ttg.num-ctas\" = {blocks} : i32, \"ttg.num-warps\" = {warps} : i32, \
         ttg.target = \"{target}\", \"ttg.threads-per-warp\" = {lanes} : i32}} {{\n\
         tt.func public @kernel(%out: !tt.ptr<{stored}> {{tt.divisibility = 16 : i32}}) {{\n\
         %i = tt.make_range {{start = 0 : i32, end = {n} : i32}} : {ai}\n\
         %f = arith.constant dense<{factor}> : {ai}\n\
         %s = arith.muli %i, %f : {ai}\n\
         %k = arith.constant dense<16> : {ai}\n\
         %h = arith.shrui %s, %k : {ai}",
        factor = SPREAD as i32,
        lanes = 1 << case.lane_bits,
        ai = t("i32", a)
    )
    .unwrap();
    let word = match dtype {
        "f16" | "bf16" => "i16",
        "f32" => "i32",
        other => other,
    };
    match word {
        "i32" => writeln!(text, "%w = arith.addi %s, %h : {}", t("i32", a)),
        "i64" => writeln!(text, "%w = arith.extui %s : {} to {}", t("i32", a), t("i64", a)),
        _ => writeln!(text, "%w = arith.trunci %h : {} to {}", t("i32", a), t(word, a)),
    }
    .unwrap();
    if word == dtype {
        writeln!(text, "%c = ttg.convert_layout %w : {} -> {}", t(dtype, a), t(dtype, b)).unwrap();
    } else {
        writeln!(
            text,
            "%v = arith.bitcast %w : {} to {}\n%c = ttg.convert_layout %v : {} -> {}",
            t(word, a),
            t(dtype, a),
            t(dtype, a),
            t(dtype, b)
        )
        .unwrap();
    }
    let value = if dtype == "i1" {
        writeln!(text, "%e = arith.extui %c : {} to {}", t("i1", b), t("i8", b)).unwrap();
        "%e"
    } else {
        "%c"
    };
    let ptr = t(&format!("!tt.ptr<{stored}>"), b);
    writeln!(
        text,
        "%o = tt.make_range {{start = 0 : i32, end = {n} : i32}} : {bi}\n\
         %p = tt.splat %out : !tt.ptr<{stored}> -> {ptr}\n\
         %q = tt.addptr %p, %o : {ptr}, {bi}\n\
         tt.store %q, {value} : {ptr}\n\
         tt.return\n}}\n}}",
        bi = t("i32", b)
    )
    .unwrap();
    text
}

fn bytes_of(dtype: &str) -> usize {
    match dtype {
        "i1" | "i8" => 1,
        "f16" | "bf16" | "i16" => 2,
        "i64" => 8,
        _ => 4,
    }
}

/// What element `i` is, in memory.
fn element(i: u64, dtype: &str) -> u64 {
    let s = (i as u32).wrapping_mul(SPREAD);
    match dtype {
        "i1" => u64::from(s >> 16 & 1),
        "i8" => u64::from(s >> 16 & 0xff),
        "f16" | "bf16" | "i16" => u64::from(s >> 16),
        "i64" => u64::from(s),
        _ => u64::from(s.wrapping_add(s >> 16)),
    }
}

/// Instructions and wavefronts that warps and blocks together take, as planned.
fn planned(plan: &AccessPlan, case: Case) -> (u64, u64) {
    let warps = u64::from(case.warps);
    let storing = (0..warps).filter(|warp| warp & plan.inactive.warp == 0).count() as u64;
    let times = storing * u64::from(case.blocks);
    (plan.count * times, plan.wavefronts * times)
}

/// Writes the PTX of a kernel to `dir`; what a GPU's counters are compared with.
fn record(
    dir: &Path,
    name: &str,
    text: &str,
    options: &Options,
    (case, dtype): (Case, &str),
    plan: &ConversionPlan,
) -> Result<String, String> {
    let mut options = options.clone();
    options.emit = Stage::Ptx;
    let compiled = compile(text, "conversion.mlir", &options).map_err(|err| err.to_string())?;
    std::fs::write(dir.join(format!("{name}.ptx")), &compiled.output).map_err(|err| err.to_string())?;
    let wavefronts = match &plan.conversion {
        Conversion::SharedMemory(shared) => {
            let [store, load] = [&shared.store, &shared.load].map(|access| planned(access, case).1);
            format!("[{store}, {load}]")
        }
        Conversion::Cluster(_) => "null".to_owned(),
        _ => "[0, 0]".to_owned(),
    };
    Ok(format!(
        "{{\"name\": \"{name}\", \"kind\": \"{}\", \"dtype\": \"{dtype}\", \"elements\": {}, \"warps\": {}, \
         \"blocks\": {}, \"shared\": {}, \"wavefronts\": {wavefronts}}}",
        plan.kind(),
        case.rows * case.columns,
        case.warps,
        case.blocks,
        compiled.metadata.map_or(0, |metadata| metadata.shared),
    ))
}

/// Runs one case; what is wrong about it, if anything.
fn check(
    case: Case,
    target: &TargetDesc,
    dtype: &str,
    (a, b): (&LinearLayout, &LinearLayout),
    written: Option<(&Path, &str, &mut Vec<String>)>,
) -> Result<&'static str, String> {
    let text = kernel(case, target.name, dtype, &attribute(a), &attribute(b));
    let mut options = Options::for_target(target.name, Stage::Llvmir);
    (options.num_warps, options.num_stages, options.num_ctas) = (case.warps, 1, case.blocks);
    options.verify_each = true;
    options.companions = ttopt_tools::companions::Companions::find();
    let fail = |what: &dyn std::fmt::Display| format!("{what}\n{text}");
    let compiled = compile(&text, "conversion.mlir", &options).map_err(|err| fail(&err))?;
    let module = simt::read::parse("conversion", &compiled.output).map_err(|err| fail(&err))?;
    let program = simt::decode(&module, None).map_err(|err| fail(&err))?;
    let size = bytes_of(dtype);
    let n = case.rows * case.columns;
    let data = vec![0xA5; n as usize * size];
    let launch = Launch {
        args: vec![Arg::Buffer { name: "out".to_owned(), data }],
        grid: [case.blocks, 1, 1],
        jobs: 1,
        shared: compiled.metadata.and_then(|m| u32::try_from(m.shared).ok()),
        ..Launch::default()
    };
    let outcome = run(&program, &launch).map_err(|err| fail(&err))?;
    if let Some(finding) = outcome.findings.first() {
        return Err(fail(finding));
    }
    for (i, bytes) in outcome.buffers[0].chunks(size).enumerate() {
        let got = bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        let expected = element(i as u64, dtype);
        if got != expected {
            return Err(fail(&format!("element {i} is {got:#x}, it should be {expected:#x}")));
        }
    }
    let bits = (8 * size) as u32;
    let plan = ConversionPlan::new(a, b, bits, target).map_err(|err| fail(&err))?;
    if let Some((dir, name, records)) = written {
        records.push(record(dir, name, &text, &options, (case, dtype), &plan).map_err(|err| fail(&err))?);
    }
    // Wavefronts between blocks are not compared: simulator and plan count them differently.
    let Conversion::SharedMemory(shared) = &plan.conversion else { return Ok(plan.kind()) };
    for (class, access) in [(Class::SharedStore, &shared.store), (Class::SharedLoad, &shared.load)] {
        let counted = outcome.counts.by_class.get(&class).copied().unwrap_or_default();
        let (instructions, wavefronts) = planned(access, case);
        // Wider accesses of equal addresses are served better than planned for,
        // and neighbouring accesses are merged.
        // Where lanes hold replicas, one of them stores, and LLVM reads for it alone where stores have branches.
        let alone = target.vendor == Vendor::Amd && b.free_variable_mask(Dim::LANE) != 0;
        let exact = counted.instructions == instructions
            && !alone
            && match access.instruction {
                MemoryInstruction::Vector { bits } => bits <= 32,
                _ => true,
            };
        if counted.wavefronts > wavefronts || (exact && counted.wavefronts != wavefronts) {
            return Err(fail(&format!(
                "{} takes {} wavefronts in {} instructions, planned are {wavefronts} in {instructions}\n{plan}",
                class.name(),
                counted.wavefronts,
                counted.instructions
            )));
        }
    }
    let bytes = |access: &AccessPlan| matches!(access.instruction, MemoryInstruction::MatrixBytes { .. });
    Ok(if bytes(&shared.store) || bytes(&shared.load) { "matrices of bytes" } else { plan.kind() })
}

#[test]
fn generated_conversions_are_right() {
    let all = std::env::var("TTOPT_CONVERSIONS").is_ok_and(|value| value == "all");
    let count = if all { ALL } else { SAMPLE };
    let mut kinds = std::collections::BTreeMap::new();
    let mut wrong = Vec::new();
    let dir = std::env::var("TTOPT_CONVERSIONS_DIR").ok();
    let mut records = Vec::new();
    for name in TARGETS {
        let target = TargetDesc::parse(name).unwrap();
        for number in 0..count {
            let mut random = Random(number as u64);
            let blocks = if target.primitives.clusters && number % 8 == 7 { 2 } else { 1 };
            let case = Case {
                warps: 1 << random.below(4),
                lane_bits: target.lane_bits(),
                blocks,
                rows: 16 << random.below(3),
                columns: 16 << random.below(3),
            };
            let (a, b) = (layout(&mut random, case), layout(&mut random, case));
            // What sm_100 adds is for bytes.
            let dtypes: &[&str] = match target.primitives.matrix_b8 {
                true => &["i1", "i8"],
                false => &["i1", "i8", "f16", "bf16", "i16", "f32", "i32", "i64"],
            };
            let dtype = *random.pick(dtypes);
            let file = format!("{}-{number}", name.replace(':', ""));
            // What an H200 runs.
            let is_run = target.vendor == Vendor::Nvidia && !target.primitives.matrix_b8;
            let written = dir.as_ref().filter(|_| is_run);
            let written = written.map(|dir| (Path::new(dir), file.as_str(), &mut records));
            match check(case, &target, dtype, (&a, &b), written) {
                Ok(kind) => *kinds.entry(kind).or_insert(0) += 1,
                Err(text) => wrong.push(format!("{name}, case {number}: {text}")),
            }
        }
    }
    if let Some(dir) = dir {
        std::fs::write(Path::new(&dir).join("cases.json"), format!("[{}]\n", records.join(",\n"))).unwrap();
    }
    println!("{kinds:?}");
    assert!(wrong.is_empty(), "{} wrong; the first:\n{}", wrong.len(), wrong[0]);
    let all = ["shared", "shuffle", "matrices of bytes"].iter().all(|kind| kinds.contains_key(kind));
    assert!(all, "{kinds:?}");
}
