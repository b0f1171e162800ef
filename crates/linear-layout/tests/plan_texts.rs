//! What plans say of themselves, and why there are none: texts under review, in `plan_texts.txt`.
//!
//! ```sh
//! UPDATE_EXPECT=1 cargo test -p linear-layout --test plan_texts
//! ```
//!
//! writes them anew.

#[path = "plan_layouts/named.rs"]
mod named;

use std::fmt::{Display, Write};

use linear_layout::encoding::NvmmaShared;
use linear_layout::plan::{
    AddressFacts, ConversionPlan, DotTilePlan, DotType, DotTypes, FragmentWords, GatherPlan, HistogramPlan,
    LdsLoadPlan, MatrixDescriptorPlan, PlanResult, ReducePlan, RowsFate, ScanPlan, SharedAccessPlan, TmaPlan,
    TmaRowsPlan, VectorPlan, WarpCombine, WarpGroupDot, WarpGroupDotPlan, WarpGroupOperand,
};
use linear_layout::target::{Direction, TargetDesc};
use linear_layout::{Dim, Encoding, LinearLayout};
use named::{CLUSTER, MEMORY, REGISTERS, is_kept_as, layout};

fn target(name: &str) -> TargetDesc {
    TargetDesc::parse(name).unwrap()
}

fn cuda() -> TargetDesc {
    target("cuda:90")
}

/// A layout of the tables by its name.
fn registers(name: &str) -> LinearLayout {
    layout(REGISTERS.iter().find(|known| known.0 == name).expect(name).2)
}

fn memory(name: &str) -> LinearLayout {
    layout(MEMORY.iter().find(|known| known.0 == name).expect(name).1)
}

fn cluster(name: &str) -> LinearLayout {
    layout(CLUSTER.iter().find(|known| known.0 == name).expect(name).1)
}

/// Of one dimension.
fn line_of(bases: &[(Dim, &[u64])]) -> LinearLayout {
    let bases: Vec<(Dim, Vec<[u64; 1]>)> =
        bases.iter().map(|(dim, columns)| (*dim, columns.iter().map(|c| [*c]).collect())).collect();
    LinearLayout::from_bases(&bases, &[Dim::out(0)]).unwrap()
}

fn of(encoding: &str, shape: &[u64]) -> LinearLayout {
    encoding.parse::<Encoding>().unwrap().to_linear_layout(shape).unwrap()
}

/// The texts so far.
struct Texts(String);

impl Texts {
    /// A plan, or why there is none.
    fn add<P: Display>(&mut self, about: &str, plan: PlanResult<P>) {
        let text = plan.map_or_else(|error| format!("error: {error}"), |plan| plan.to_string());
        writeln!(self.0, "== {about}\n{}\n", text.trim_end()).unwrap();
    }
}

fn conversions(texts: &mut Texts) {
    let (lanes, row) = ([4u64, 8, 16, 32, 64], [1u64, 2]);
    let named = |from: &str, to: &str, bits, on: &str| {
        ConversionPlan::new(&registers(from), &registers(to), bits, &target(on))
    };
    texts.add("a conversion to the same", named("rows", "rows", 16, "cuda:90"));
    let swapped = line_of(&[(Dim::REGISTER, &[2, 1]), (Dim::LANE, &lanes)]);
    let plain = line_of(&[(Dim::REGISTER, &row), (Dim::LANE, &lanes)]);
    texts.add("registers renamed", ConversionPlan::new(&plain, &swapped, 32, &cuda()));
    let sixteen = |a: u64, b: u64| line_of(&[(Dim::REGISTER, &[a, b, 4, 8, 16]), (Dim::LANE, &[32, 64])]);
    texts.add("32 registers renamed", ConversionPlan::new(&sixteen(1, 2), &sixteen(2, 1), 32, &cuda()));
    let turned = line_of(&[(Dim::REGISTER, &[4, 8]), (Dim::LANE, &[1, 2, 16, 32, 64])]);
    for (bits, on) in [(8, "cuda:90"), (32, "cuda:90"), (64, "cuda:90"), (32, "hip:gfx942")] {
        let about = format!("an exchange of {bits} bits on {on}");
        texts.add(
            &about,
            ConversionPlan::through_shuffles(&plain, &turned, bits, &target(on)).map(Option::unwrap),
        );
    }
    let mixed = line_of(&[(Dim::REGISTER, &row), (Dim::LANE, &[64, 32, 4, 8 ^ 1, 16])]);
    texts.add("an exchange by index", ConversionPlan::new(&plain, &mixed, 32, &cuda()));
    let two_warps = |lane: &[u64], warp: &[u64]| line_of(&[(Dim::LANE, lane), (Dim::WARP, warp)]);
    let (a, b) = (two_warps(&[1, 2], &[4]), two_warps(&[4, 2], &[1]));
    texts.add("from warp to warp", ConversionPlan::new(&a, &b, 32, &cuda()));
    for (from, to, bits, on) in [
        ("rows", "mma", 16, "cuda:90"),
        ("mma", "rows", 16, "cuda:90"),
        ("rows", "columns", 8, "cuda:100"),
        ("with_copies", "thin", 32, "cuda:80"),
        ("wave_rows", "mfma_wide_b", 16, "hip:gfx950"),
    ] {
        texts.add(&format!("{from} to {to}, {bits} bits on {on}"), named(from, to, bits, on));
    }
    let within = |from: &LinearLayout, to: &LinearLayout, bits, budget| {
        ConversionPlan::with_budget(from, to, bits, &cuda(), budget)
    };
    let (rows, columns) = (registers("rows"), registers("columns"));
    texts.add("in passes", within(&rows, &columns, 32, 1 << 12));
    let (by_rows, by_columns) = (cluster("rows_by_rows"), cluster("rows_by_columns"));
    texts.add("across a cluster", within(&by_rows, &by_columns, 16, 1 << 17));
    texts.add("across a cluster in passes", within(&by_rows, &by_columns, 16, 1 << 11));
    texts.add("to copies", ConversionPlan::to_copies(&cluster("rows_in_both"), 32, &cuda(), 1 << 17));
    let fragments = ConversionPlan::for_fragments(
        &rows,
        &registers("operand_a"),
        (16, FragmentWords::fours(0, 1)),
        &cuda(),
    );
    texts.add("for fragments of four words", fragments);
    // Why there is none.
    texts.add("no memory", within(&rows, &columns, 32, 1));
    texts.add("elements of no bits", within(&rows, &columns, 0, 1 << 17));
    texts.add("elements of 65 bits", within(&rows, &columns, 65, 1 << 17));
    texts.add("another shape", within(&rows, &plain, 32, 1 << 17));
    texts.add("from memory", within(&memory("plain"), &rows, 32, 1 << 17));
    let part =
        LinearLayout::from_bases_sized(&[(Dim::LANE, vec![[1]])], &[(Dim::out(0), 128)], false).unwrap();
    texts.add("from a part", within(&part, &plain, 32, 1 << 17));
    texts.add("to a part", within(&plain, &part, 32, 1 << 17));
    texts.add("64 lanes", ConversionPlan::new(&registers("wave_rows"), &rows, 32, &cuda()));
}

fn accesses(texts: &mut Texts) {
    let access = |name: &str, to: &str, bits, direction, on: &str| {
        SharedAccessPlan::new(&registers(name), &memory(to), bits, direction, &target(on))
    };
    for (name, to, bits, direction, on) in [
        ("operand_a", "swizzled", 16, Direction::Load, "cuda:90"),
        ("operand_b", "column_major", 8, Direction::Load, "cuda:100"),
        ("mma", "swizzled", 16, Direction::Store, "cuda:90"),
        ("columns", "plain", 32, Direction::Store, "cuda:80"),
        ("mfma_b", "swizzled", 16, Direction::Load, "hip:gfx942"),
        ("mfma_wide_b", "swizzled", 16, Direction::Load, "hip:gfx950"),
        ("mfma_bytes_b", "bytes", 8, Direction::Load, "hip:gfx950"),
        ("columns", "plain", 4, Direction::Load, "cuda:80"),
    ] {
        texts.add(&format!("{direction:?} {name} in {to} on {on}"), access(name, to, bits, direction, on));
    }
    for (contiguous, on) in
        [(8, "cuda:80"), (2, "cuda:80"), (1, "cuda:80"), (8, "hip:gfx942"), (8, "hip:gfx950")]
    {
        let rows = registers(if on.starts_with("hip") { "wave_rows" } else { "rows" });
        let facts = AddressFacts::row_major(&rows, contiguous, 64);
        let about = format!("copies of runs of {contiguous} past registers on {on}");
        if on.starts_with("hip") {
            let copy = LdsLoadPlan::new(&rows, &memory("plain"), &[], 16, &facts, &target(on));
            texts.add(&about, copy);
            continue;
        }
        let copy = SharedAccessPlan::async_copy(&rows, &memory("plain"), 16, &facts, &target(on));
        texts.add(&about, copy);
    }
    for (name, bits, contiguous, masks) in [
        ("rows", 16, 64, 64),
        ("rows", 16, 4, 64),
        ("rows", 64, 64, 2),
        ("with_copies", 32, 2, 8),
        ("rows", 4, 1, 1),
    ] {
        let facts = AddressFacts::row_major(&registers(name), contiguous, masks);
        let about = format!("{name} of {bits} bits, runs of {contiguous}, masks of {masks}");
        texts.add(&about, VectorPlan::for_addresses(&registers(name), bits, &facts, &cuda()));
    }
    let mut facts = AddressFacts::row_major(&registers("rows"), 8, 8);
    facts.repeats = vec![2, 4];
    texts.add("repeated loads", VectorPlan::for_addresses(&registers("rows"), 16, &facts, &cuda()));
}

fn along_an_axis(texts: &mut Texts) {
    let (first, second) = (Dim::out(0), Dim::out(1));
    for (name, axis, bits, on) in [
        ("rows", first, &[32][..], "cuda:90"),
        ("rows", second, &[16, 64], "cuda:90"),
        ("columns", second, &[32], "cuda:90"),
        ("mixed", second, &[32], "cuda:90"),
        ("with_copies", second, &[32], "cuda:90"),
        ("wave_thin", second, &[32], "hip:gfx942"),
        ("mfma", first, &[32], "hip:gfx950"),
    ] {
        let layout = registers(name);
        texts.add(
            &format!("reduce {name} along {axis} on {on}"),
            ReducePlan::new(&layout, axis, bits, &target(on)),
        );
        texts.add(
            &format!("scan {name} along {axis} on {on}"),
            ScanPlan::new(&layout, axis, bits, true, &target(on)),
        );
        let in_place = ScanPlan::in_place(&layout, axis, bits, false, &target(on));
        texts.add(&format!("scan {name} along {axis} on {on} in place"), in_place);
        texts.add(
            &format!("gather from {name} along {axis} on {on}"),
            GatherPlan::new(&layout, &layout, axis, bits[0], &target(on)),
        );
    }
    for combine in [WarpCombine::Add, WarpCombine::UMax] {
        let plan = ReducePlan::with_combine(&registers("thin"), second, &[32], Some(combine), &cuda());
        texts.add(&format!("reduce thin by {}", combine.name()), plan);
    }
    texts.add(
        "reduce line by line",
        ReducePlan::line_by_line(&registers("rows"), second, &[32], None, &cuda()),
    );
    let divided = cluster("rows_by_columns");
    texts.add("reduce across a cluster", ReducePlan::new(&divided, second, &[32], &cuda()));
    texts.add("scan across a cluster", ScanPlan::new(&divided, second, &[32], false, &cuda()));
    texts.add("gather across a cluster", GatherPlan::new(&divided, &divided, second, 32, &cuda()));
    let rows = registers("rows");
    texts.add("reduce along nothing", ReducePlan::new(&rows, Dim::out(2), &[32], &cuda()));
    texts.add("scan along nothing", ScanPlan::new(&rows, Dim::out(2), &[32], false, &cuda()));
    texts.add("gather along nothing", GatherPlan::new(&rows, &rows, Dim::out(2), 32, &cuda()));
    let bins = line_of(&[(Dim::LANE, &[1, 2, 4, 8, 16])]);
    texts.add("histogram", HistogramPlan::new(&registers("with_copies"), &bins, 32, &cuda()));
    texts.add("histogram of two dimensions", HistogramPlan::new(&rows, &rows, 32, &cuda()));
    texts.add("histogram across a cluster", HistogramPlan::new(&divided, &bins, 32, &cuda()));
}

fn dots(texts: &mut Texts) {
    const BLOCKED: &str = "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], order = [1, 0]}>";
    const MMA: &str =
        "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>";
    let mfma = |transposed: bool| {
        format!(
            "#ttg.amd_mfma<{{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = {transposed}}}>"
        )
    };
    let (plain, transposed) = (mfma(false), mfma(true));
    for (parent, width, kind, exact, shape, on) in [
        (MMA, ", kWidth = 2", DotType::F16, false, [64, 64, 32], "cuda:80"),
        (MMA, ", kWidth = 4", DotType::I8, false, [64, 64, 32], "cuda:80"),
        (MMA, ", kWidth = 2", DotType::F16, false, [64, 64, 4], "cuda:80"),
        (MMA, ", kWidth = 1", DotType::F32, false, [64, 64, 32], "cuda:80"),
        (MMA, ", kWidth = 1", DotType::F32, true, [64, 64, 32], "cuda:80"),
        (BLOCKED, "", DotType::F32, true, [32, 32, 8], "cuda:80"),
        (BLOCKED, "", DotType::F8, false, [32, 32, 8], "cuda:80"),
        (&plain, ", kWidth = 4", DotType::F16, false, [64, 64, 32], "hip:gfx942"),
        (&transposed, ", kWidth = 4", DotType::F16, false, [64, 64, 32], "hip:gfx942"),
    ] {
        let [m, n, k] = shape;
        let operand = |i: u32| format!("#ttg.dot_op<{{opIdx = {i}, parent = {parent}{width}}}>");
        let (a, b, c) = (of(&operand(0), &[m, k]), of(&operand(1), &[k, n]), of(parent, &[m, n]));
        let types = DotTypes { exact, ..DotTypes::new(kind, kind, &target(on)) };
        let about = format!("{m}×{n}×{k} of {kind:?}{} on {on}", if exact { ", exactly" } else { "" });
        texts.add(&about, DotTilePlan::new(&a, &b, &c, types, &target(on)));
    }
    let (rows, types) = (registers("rows"), DotTypes::new(DotType::F16, DotType::F16, &cuda()));
    texts.add("a dot of shapes that do not fit", DotTilePlan::new(&rows, &rows, &rows, types, &cuda()));
}

fn of_warp_groups(texts: &mut Texts) {
    let swizzled = |swizzle: u64, transposed: bool, bits: u32, shape: [u64; 2]| {
        let text = format!(
            "#ttg.nvmma_shared<{{swizzlingByteWidth = {swizzle}, transposed = {transposed}, elementBitWidth = {bits}}}>"
        );
        of(&text, &shape)
    };
    let (first, second) = (Dim::out(0), Dim::out(1));
    for (swizzle, transposed, bits, rows) in
        [(128, false, 16, 64), (64, true, 16, 64), (32, false, 8, 128), (0, false, 32, 8), (128, true, 8, 64)]
    {
        let about = format!(
            "a descriptor of {rows} rows of {bits} bits, swizzled by {swizzle}, transposed: {transposed}"
        );
        let memory = swizzled(swizzle, transposed, bits, [128, 64]);
        texts.add(&about, MatrixDescriptorPlan::new(&memory, (first, second), rows, bits, &cuda()));
    }
    let memory = swizzled(128, false, 16, [128, 64]);
    for (about, dims, rows, bits, on) in [
        ("of too many rows", (first, second), 512, 16, "cuda:90"),
        ("of too few rows", (first, second), 4, 16, "cuda:90"),
        ("of more rows than there are", (first, second), 256, 16, "cuda:90"),
        ("of 64 bits", (first, second), 64, 64, "cuda:90"),
        ("along one dimension", (first, first), 64, 16, "cuda:90"),
        ("on Ampere", (first, second), 64, 16, "cuda:80"),
        ("on Blackwell", (first, second), 64, 16, "cuda:100"),
    ] {
        texts.add(
            &format!("a descriptor {about}"),
            MatrixDescriptorPlan::new(&memory, dims, rows, bits, &target(on)),
        );
    }
    let plain = layout(MEMORY[0].1);
    texts.add(
        "a descriptor of rows as they are",
        MatrixDescriptorPlan::new(&plain, (first, second), 64, 16, &cuda()),
    );
    let parent = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>";
    let c = of(parent, &[128, 128]);
    let types = |kind| DotTypes { a: kind, b: kind, c: DotType::F32, exact: false };
    let in_registers = of(&format!("#ttg.dot_op<{{opIdx = 0, parent = {parent}, kWidth = 2}}>"), &[128, 64]);
    for (kind, bits, max_imprecise) in [(DotType::F16, 16, 0), (DotType::F8, 8, 32)] {
        let (a, b) = (swizzled(64, false, bits, [128, 64]), swizzled(64, true, bits, [64, 128]));
        for (from, a) in [
            ("memory", WarpGroupOperand::Shared(&a)),
            ("registers", WarpGroupOperand::Registers(&in_registers)),
        ] {
            let dot = WarpGroupDot { a, b: &b, c: &c, depth: 64, types: types(kind), max_imprecise };
            texts.add(&format!("a dot of {kind:?} from {from}"), WarpGroupDotPlan::new(&dot, &cuda()));
        }
    }
    let (a, b) = (swizzled(128, false, 16, [128, 64]), swizzled(128, true, 16, [64, 128]));
    let dot = WarpGroupDot {
        a: WarpGroupOperand::Shared(&a),
        b: &b,
        c: &c,
        depth: 64,
        types: types(DotType::F16),
        max_imprecise: 0,
    };
    let flat = of(
        "#ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>}>",
        &[128],
    );
    let rows = registers("rows");
    for (about, dot) in [
        ("of no summands", WarpGroupDot { depth: 0, ..dot }),
        ("of eight summands", WarpGroupDot { depth: 8, ..dot }),
        ("into one dimension", WarpGroupDot { c: &flat, ..dot }),
        ("into rows", WarpGroupDot { c: &rows, ..dot }),
        ("with rows in registers", WarpGroupDot { a: WarpGroupOperand::Registers(&rows), ..dot }),
        (
            "with more summands than registers",
            WarpGroupDot { a: WarpGroupOperand::Registers(&in_registers), depth: 128, ..dot },
        ),
    ] {
        texts.add(&format!("a dot of warp groups {about}"), WarpGroupDotPlan::new(&dot, &cuda()));
    }
}

fn bulk_copies(texts: &mut Texts) {
    for (shape, bits) in
        [(&[128, 128][..], 16), (&[64], 32), (&[4, 16, 64], 8), (&[512, 32], 8), (&[8, 4], 8), (&[], 8)]
    {
        let encoding = TmaPlan::encoding(shape, bits, &[], &cuda());
        let plan = encoding.and_then(|encoding| TmaPlan::new(&encoding, shape, &cuda()));
        texts.add(&format!("bulk copies of {shape:?} of {bits} bits"), plan);
    }
    let plain = NvmmaShared {
        swizzling_byte_width: 128,
        transposed: false,
        element_bit_width: 16,
        fp4_padded: false,
        rank: 2,
        cga: vec![],
    };
    for (about, encoding, shape) in [
        ("as they are", plain.clone(), &[64u64, 64][..]),
        ("transposed", NvmmaShared { transposed: true, ..plain.clone() }, &[64, 64]),
        ("padded", NvmmaShared { fp4_padded: true, ..plain.clone() }, &[64, 64]),
        ("of four bits", NvmmaShared { element_bit_width: 4, ..plain.clone() }, &[64, 64]),
        ("swizzled by 16", NvmmaShared { swizzling_byte_width: 16, ..plain.clone() }, &[64, 64]),
        ("of six dimensions", NvmmaShared { rank: 6, ..plain.clone() }, &[1, 1, 1, 1, 64, 64]),
        ("with short rows", plain.clone(), &[64, 4]),
    ] {
        texts.add(&format!("blocks {about}"), TmaPlan::new(&encoding, shape, &cuda()));
    }
    texts.add("blocks on Ampere", TmaPlan::new(&plain, &[64, 64], &target("cuda:80")));
    let numbers = line_of(&[(Dim::REGISTER, &[1, 2]), (Dim::LANE, &[0; 5]), (Dim::WARP, &[4, 8])]);
    for (on, columns) in [("cuda:90", 128), ("cuda:100", 128), ("cuda:90", 512), ("cuda:80", 128)] {
        let encoding = TmaRowsPlan::encoding(columns, 16, &[], &target(on));
        let plan = encoding.and_then(|e| TmaRowsPlan::new(&e, &[16, columns], &numbers, &target(on)));
        texts.add(&format!("rows of {columns} one by one on {on}"), plan);
    }
    for (fate, bytes) in [
        (RowsFate::InRegisters, 256),
        (RowsFate::Multiplied, 256),
        (RowsFate::Stored, 512),
        (RowsFate::Scattered, 512),
    ] {
        let why = TmaRowsPlan::is_worth((bytes, 2), fate, &cuda()).unwrap_err();
        writeln!(texts.0, "== rows of {bytes} bytes: {fate:?}\n{why}\n").unwrap();
    }
}

#[test]
fn plans_say_what_is_kept() {
    let mut texts = Texts(String::new());
    for part in [conversions, accesses, along_an_axis, dots, of_warp_groups, bulk_copies] {
        part(&mut texts);
    }
    is_kept_as("plan_texts.txt", &texts.0);
}
