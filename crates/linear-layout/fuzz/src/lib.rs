//! What the fuzzers do with a string of bytes: each function makes something out of it, pits a planner against its
//! checker, and panics on the first plan that is wrong.
//!
//! `cargo +nightly fuzz run conversion` from the folder above lets libFuzzer choose the bytes; `tests/fuzz.rs`
//! includes this file and feeds each function some thousand random strings from a fixed seed, on any toolchain.

mod input;
mod uneven;

pub use input::{Case, Input};

use linear_layout::checker::*;
use linear_layout::encoding::NvmmaShared;
use linear_layout::plan::*;
use linear_layout::target::{Direction, TargetDesc};
use linear_layout::{Dim, Encoding, LinearLayout};

/// A fuzzer by name.
pub type Fuzzer = (&'static str, fn(&[u8]));

/// All of them.
pub const ALL: [Fuzzer; 13] = [
    ("encoding", encoding),
    ("conversion", conversion),
    ("copies", copies),
    ("shared_access", shared_access),
    ("vector", vector),
    ("reduce", reduce),
    ("scan", scan),
    ("gather", gather),
    ("histogram", histogram),
    ("dot", dot),
    ("warp_group", warp_group),
    ("descriptor", descriptor),
    ("tma", tma),
];

/// Text of encodings: parsing never panics, what parses prints as text that means the same, and has a layout or an
/// error for any shape.
pub fn encoding(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let text = input.encoding();
    let Ok(encoding) = text.parse::<Encoding>() else { return };
    let printed = encoding.to_string();
    assert_eq!(printed.parse::<Encoding>().as_ref(), Ok(&encoding), "{text}\n{printed}");
    for rank in [encoding.rank(), input.below(5) as usize] {
        let shape: Vec<u64> = (0..rank.min(8)).map(|_| input.size()).collect();
        if let Ok(layout) = encoding.to_linear_layout(&shape) {
            let sizes: Vec<u64> = layout.out_dims().map(|dim| layout.out_size(dim).unwrap_or(0)).collect();
            assert_eq!(sizes, shape, "{text}");
        }
    }
}

/// Words that instructions take together.
fn fragment(input: &mut Input<'_>) -> FragmentWords {
    let [kind, low, high] = [3, 4, 4].map(|n| input.below(n) as u8);
    match kind {
        0 => FragmentWords::ONE,
        1 => FragmentWords::pairs(low),
        _ => FragmentWords::fours(low, if high == low { low + 1 } else { high }),
    }
}

/// Conversions, the cheapest and each way by itself.
pub fn conversion(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let Case { a, b, elem_bits, budget, target } = input.case();
    let plans = [
        ConversionPlan::with_budget(&a, &b, elem_bits, &target, budget),
        ConversionPlan::through_shared(&a, &b, elem_bits, &target, budget),
        ConversionPlan::for_fragments(&a, &b, (elem_bits, fragment(&mut input)), &target),
    ];
    for plan in plans {
        match plan {
            Ok(plan) => drop(right(check_conversion(&plan, &a, &b, &target), &plan)),
            Err(PlanError::SharedBudget { needed, budget }) => assert!(needed > budget),
            Err(error) => panic!("{error}"),
        }
    }
    if let Some(plan) = ConversionPlan::through_shuffles(&a, &b, elem_bits, &target).expect("two layouts") {
        right(check_conversion(&plan, &a, &b, &target), &plan);
    }
}

/// What one thread has reaches all that hold replicas: as if blocks with replicas had other elements that nobody wants.
pub fn copies(bytes: &[u8]) {
    let Case { a, elem_bits, budget, target, .. } = Case::of(bytes);
    let free = a.free_variable_mask(Dim::BLOCK);
    let outs: Vec<(Dim, u32)> =
        a.out_dim_bits().chain([(Dim::out(a.num_out_dims()), free.count_ones())]).collect();
    let ins: Vec<(Dim, u32)> = a.in_dim_bits().collect();
    let before = a.total_in_bits() - a.in_bits(Dim::BLOCK);
    let mut next = a.total_out_bits();
    let apart = a.columns().iter().zip(0u32..).map(|(column, i)| {
        let copy = i >= before && free >> (i - before) & 1 == 1;
        next += u32::from(copy);
        if copy { column | 1 << (next - 1) } else { *column }
    });
    let apart: Vec<u64> = apart.collect();
    let source = LinearLayout::from_columns(&ins, &outs, apart).expect("columns");
    let wanted = LinearLayout::from_columns(&ins, &outs, a.columns().iter().copied()).expect("columns");
    match ConversionPlan::to_copies(&a, elem_bits, &target, budget) {
        Ok(plan) => drop(right(check_conversion(&plan, &source, &wanted, &target), &plan)),
        Err(PlanError::SharedBudget { needed, budget }) => assert!(needed > budget),
        Err(error) => panic!("{error}"),
    }
}

/// Loads and stores between registers and the memory of a conversion, which is any linear memory, with and without
/// padding, and copies past the registers.
pub fn shared_access(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let Case { a, b, elem_bits, target, .. } = input.case();
    let (interval, pad, words) = (1 << input.below(8), input.below(64), fragment(&mut input));
    let Ok(plan) = ConversionPlan::through_shared(&a, &b, elem_bits, &target, target.shared_bytes) else {
        return;
    };
    let Conversion::SharedMemory(shared) = &plan.conversion else { return };
    for (layout, direction) in [(&b, Direction::Load), (&a, Direction::Load), (&a, Direction::Store)] {
        for padding in [&[][..], &[(interval, pad)]] {
            let (memory, elements) = (&shared.layout, (elem_bits, words));
            let access =
                SharedAccessPlan::for_fragments(layout, memory, padding, elements, direction, &target);
            let Ok(access) = access else { continue };
            if access.access.block.is_none() {
                right(check_shared_access(&access, layout, &shared.layout, &target), &access);
            }
        }
    }
    let facts = AddressFacts::row_major(&a, interval, 1 << input.below(8));
    if let Ok(copy) = SharedAccessPlan::async_copy(&a, &shared.layout, elem_bits, &facts, &target) {
        right(check_async_copy(&copy, &a, &shared.layout, &facts, &target), &copy);
    }
    for padding in [&[][..], &[(interval, pad)]] {
        if let Ok(load) = LdsLoadPlan::new(&a, &shared.layout, padding, elem_bits, &facts, &target) {
            right(check_lds_load(&load, &a, &shared.layout, padding, &facts, &target), &load);
        }
    }
}

/// Accesses to global memory.
pub fn vector(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let Case { a, elem_bits, target, .. } = input.case();
    let mut facts = AddressFacts::row_major(&a, input.below(300), 1 << input.below(9));
    facts.neighbours = input.below(300);
    if input.below(2) == 1 {
        facts.order.reverse();
    }
    match VectorPlan::for_addresses(&a, elem_bits, &facts, &target) {
        Ok(plan) => right(check_vector(&plan, &a, elem_bits, &facts, &target), &plan),
        Err(error) => assert!(matches!(error, PlanError::PartialByte { .. }) && !elem_bits.is_multiple_of(8)),
    }
}

/// Reductions along each dimension of up to two operands, and of integers.
pub fn reduce(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let Case { a, elem_bits, target, .. } = input.case();
    let combine = [WarpCombine::Add, WarpCombine::Xor, WarpCombine::UMax][input.below(3) as usize];
    for axis in a.out_dims() {
        for widths in [&[elem_bits][..], &[elem_bits, 32]] {
            let plan = ReducePlan::new(&a, axis, widths, &target).expect("a reduction");
            right(check_reduce(&plan, &a, widths, &target), &plan);
        }
        let plan = ReducePlan::with_combine(&a, axis, &[32], Some(combine), &target).expect("a reduction");
        right(check_reduce(&plan, &a, &[32], &target), &plan);
    }
}

/// Scans along each dimension, both ways, of up to two operands.
pub fn scan(bytes: &[u8]) {
    let Case { a, elem_bits, target, .. } = Case::of(bytes);
    for axis in a.out_dims() {
        for (reverse, widths) in [(false, &[elem_bits][..]), (true, &[elem_bits, 32])] {
            let plan = ScanPlan::new(&a, axis, widths, reverse, &target).expect("a scan");
            right(check_scan(&plan, &a, widths, &target), &plan);
            let plan = ScanPlan::in_place(&a, axis, widths, reverse, &target).expect("a scan");
            right(check_scan(&plan, &a, widths, &target), &plan);
            let last = vec![widths.len() - 1];
            let plan = ScanPlan::with_combine(&a, axis, widths, last, reverse, 4.0, &target).expect("a scan");
            right(check_scan(&plan, &a, widths, &target), &plan);
        }
    }
}

/// Gathers along each dimension, the cheapest and each way by itself.
pub fn gather(bytes: &[u8]) {
    let Case { a, b, elem_bits, target, .. } = Case::of(bytes);
    let index = |element: u64| element.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    for axis in a.out_dims() {
        for indices in [&a, &b] {
            let plans = [
                Some(GatherPlan::new(&a, indices, axis, elem_bits, &target).expect("a gather")),
                Some(
                    GatherPlan::through_shared(&a, (indices, &Indices::default()), axis, elem_bits, &target)
                        .expect("a gather"),
                ),
                GatherPlan::by_shuffles(&a, indices, axis, elem_bits, &target).expect("a gather, or none"),
            ];
            for plan in plans.into_iter().flatten() {
                right(check_gather(&plan, &a, indices, elem_bits, &target, &index), &plan);
            }
        }
    }
}

/// Histograms.
pub fn histogram(bytes: &[u8]) {
    let Case { a, b, elem_bits, target, .. } = Case::of(bytes);
    for (values, bins) in [(&a, &b), (&b, &a)] {
        let bins = bins.flatten_outs().expect("one dimension");
        let plan = HistogramPlan::new(values, &bins, elem_bits, &target).expect("a histogram");
        right(check_histogram(&plan, values, &bins, elem_bits, &target), &plan);
    }
}

/// Dots of operands in layouts made for them, or nearly.
pub fn dot(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let target = input.target();
    let parent = input.dot_parent(&target);
    let [m, n, k] = [0; 3].map(|_| 1u64 << (1 + input.below(5)));
    let k_width = match input.below(6) {
        0 => String::new(),
        w => format!(", kWidth = {}", 1 << (w - 1)),
    };
    let operand = |i: u32| format!("#ttg.dot_op<{{opIdx = {i}, parent = {parent}{k_width}}}>");
    let of = |text: &str, shape: [u64; 2]| text.parse::<Encoding>().ok()?.to_linear_layout(&shape).ok();
    let (Some(a), Some(b), Some(c)) = (of(&operand(0), [m, k]), of(&operand(1), [k, n]), of(&parent, [m, n]))
    else {
        return;
    };
    let [a, b, c] = [a, b, c].map(|layout| input.disturbed(layout));
    let types = input.dot_types(&target);
    if let Ok(plan) = DotTilePlan::new(&a, &b, &c, types, &target) {
        right(check_dot(&plan, &a, &b, &c, &target), &plan);
    }
}

/// Dots of warp groups of operands in layouts made for them, or nearly.
pub fn warp_group(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let target = TargetDesc::parse("cuda:90").expect("a target");
    let types = input.dot_types(&target);
    let bits = types.a.bits();
    let n = 8 << input.below(5);
    let warps = [[4, 1], [8, 1], [4, 2]][input.below(3) as usize];
    let depth = (256 / u64::from(bits)) << input.below(3);
    let [rows, columns] = [64 << input.below(2), 8 << input.below(5)];
    let parent = format!(
        "#ttg.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = {warps:?}, instrShape = [16, {n}, {}]}}>",
        256 / bits
    );
    let of = |text: &str, shape: [u64; 2]| text.parse::<Encoding>().ok()?.to_linear_layout(&shape).ok();
    let memory = |input: &mut Input<'_>| {
        let (swizzle, transposed) = ([32, 64, 128][input.below(3) as usize], input.below(2) == 1);
        format!(
            "#ttg.nvmma_shared<{{swizzlingByteWidth = {swizzle}, transposed = {transposed}, elementBitWidth = {bits}}}>"
        )
    };
    let in_registers = input.below(2) == 1;
    let left = match in_registers {
        true => format!("#ttg.dot_op<{{opIdx = 0, parent = {parent}, kWidth = {}}}>", (32 / bits).max(1)),
        false => memory(&mut input),
    };
    let right_text = memory(&mut input);
    let (Some(a), Some(b), Some(c)) =
        (of(&left, [rows, depth]), of(&right_text, [depth, columns]), of(&parent, [rows, columns]))
    else {
        return;
    };
    let (a, c) = (input.disturbed(a), input.disturbed(c));
    let a = if in_registers { WarpGroupOperand::Registers(&a) } else { WarpGroupOperand::Shared(&a) };
    let product = WarpGroupDot { a, b: &b, c: &c, depth, types, max_imprecise: 32 << input.below(4) };
    if let Ok(plan) = WarpGroupDotPlan::new(&product, &target) {
        right(check_warp_group_dot(&plan, &product), &plan);
    }
}

/// Matrix descriptors of memory in any layout.
pub fn descriptor(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let target = TargetDesc::parse("cuda:90").expect("a target");
    let bits = 8u32 << input.below(3);
    let (swizzle, transposed) = ([0, 32, 64, 128][input.below(4) as usize], input.below(2) == 1);
    let text = format!(
        "#ttg.nvmma_shared<{{swizzlingByteWidth = {swizzle}, transposed = {transposed}, elementBitWidth = {bits}}}>"
    );
    let shape = [8 << input.below(5), 8 << input.below(5)];
    let Some(memory) = text.parse::<Encoding>().ok().and_then(|e| e.to_linear_layout(&shape).ok()) else {
        return;
    };
    let memory = input.disturbed(memory);
    let rows = 8 << input.below(6);
    for dims in [(Dim::out(0), Dim::out(1)), (Dim::out(1), Dim::out(0))] {
        if let Ok(plan) = MatrixDescriptorPlan::new(&memory, dims, rows, bits, &target) {
            right(check_matrix_descriptor(&plan, &memory, dims, bits), &plan);
        }
    }
}

/// Bulk copies of blocks, and of rows one by one.
pub fn tma(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let target = input.target();
    let bits = 8u32 << input.below(4);
    let rank = 1 + input.below(3) as usize;
    let shape: Vec<u64> = (0..rank).map(|_| 1 << input.below(10 / rank as u64)).collect();
    let cga: Vec<Vec<u64>> =
        (0..input.below(3)).map(|_| (0..rank).map(|_| input.below(2) << input.below(2)).collect()).collect();
    let encoding = NvmmaShared {
        swizzling_byte_width: [0, 32, 64, 128][input.below(4) as usize],
        transposed: input.below(8) == 0,
        element_bit_width: bits.into(),
        fp4_padded: input.below(8) == 0,
        rank,
        cga: cga.clone(),
    };
    for encoding in
        [Some(encoding), TmaPlan::encoding(&shape, bits, &cga, &target).ok()].into_iter().flatten()
    {
        let Ok(memory) = Encoding::NvmmaShared(encoding.clone()).to_linear_layout(&shape) else { continue };
        if let Ok(plan) = TmaPlan::new(&encoding, &shape, &target) {
            right(check_tma(&plan, &memory), &plan);
        }
        let numbers = input.row_numbers(shape[0]);
        if let Ok(plan) = TmaRowsPlan::new(&encoding, &shape, &numbers, &target) {
            right(check_tma_rows(&plan, &memory, &numbers), &plan);
        }
    }
}

/// The checker agrees.
fn right<R>(checked: Result<R, CheckError>, plan: &impl std::fmt::Debug) -> R {
    checked.unwrap_or_else(|error| panic!("{error}\n{plan:#?}"))
}
