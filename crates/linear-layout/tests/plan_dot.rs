//! Matrix products: Table 4 of the paper, case by case, executed by the checker.

use linear_layout::checker::{check_dot, check_matrix_instruction};
use linear_layout::plan::{Bits, Dot, DotAxis, DotTilePlan, DotType, DotTypes, Fragment, MatrixInstruction};
use linear_layout::target::TargetDesc;
use linear_layout::{Dim, Encoding, LinearLayout};

use DotType::*;

fn layout(text: &str, shape: &[u64]) -> LinearLayout {
    text.parse::<Encoding>().unwrap().to_linear_layout(shape).unwrap()
}

/// The plan for operands of `parent`, or the refusal, checked.
fn product(
    parent: &str,
    k_width: u32,
    shape: [u64; 3],
    (a, b): (DotType, DotType),
    name: &str,
) -> Result<DotTilePlan, String> {
    let types = DotTypes::new(a, b, &TargetDesc::parse(name).unwrap());
    product_of(parent, k_width, &[], shape, types, name)
}

/// The same for a batch of products, of any types.
fn product_of(
    parent: &str,
    k_width: u32,
    batch: &[u64],
    [m, n, k]: [u64; 3],
    types: DotTypes,
    name: &str,
) -> Result<DotTilePlan, String> {
    let target = TargetDesc::parse(name).unwrap();
    let layout = |text: &str, [rows, columns]: [u64; 2]| layout(text, &[batch, &[rows, columns]].concat());
    let operand = |i: u32| match k_width {
        0 => format!("#ttg.dot_op<{{opIdx = {i}, parent = {parent}}}>"),
        w => format!("#ttg.dot_op<{{opIdx = {i}, parent = {parent}, kWidth = {w}}}>"),
    };
    let (a, b, c) = (layout(&operand(0), [m, k]), layout(&operand(1), [k, n]), layout(parent, [m, n]));
    let plan = DotTilePlan::new(&a, &b, &c, types, &target).map_err(|e| e.to_string())?;
    check_dot(&plan, &a, &b, &c, &target).map_err(|e| format!("{e}\n{a}\n{b}\n{c}\n{plan:?}"))?;
    Ok(plan)
}

const MMA: &str =
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>";
const BLOCKED: &str =
    "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], order = [1, 0]}>";

/// Pairs of types with their number of cases in Table 4.
const TABLE_4: [(DotType, DotType, usize); 14] = [
    (I16, F16, 64),
    (I16, F32, 32),
    (I16, F64, 32),
    (I16, F8, 96),
    (I32, F16, 32),
    (I32, F64, 32),
    (I32, F8, 48),
    (I64, F16, 32),
    (I64, F32, 32),
    (I64, F8, 48),
    (I8, F16, 96),
    (I8, F32, 48),
    (I8, F64, 48),
    (I8, F8, 144),
];

#[test]
fn table_4_of_the_paper() {
    assert_eq!(TABLE_4.iter().map(|t| t.2).sum::<usize>(), 784);
    // Small shapes first: tiles that the operands do not fill, along every axis.
    let shapes: Vec<[u64; 3]> = [16, 32, 64, 8]
        .into_iter()
        .flat_map(|m| [8, 16, 64, 32].into_iter().flat_map(move |n| [16, 32, 64, 8, 4, 2].map(|k| [m, n, k])))
        .collect();
    let mut passed = 0;
    for (a, b, cases) in TABLE_4 {
        let mut failures = Vec::new();
        for case in 0..cases {
            let shape = shapes[case % shapes.len()];
            let name = ["cuda:80", "cuda:90"][case / shapes.len() % 2];
            let kind = a.common(b, &TargetDesc::parse(name).unwrap());
            // The narrower operand decides how many consecutive elements a lane is given.
            let k_width = 32 / kind.bits() * (kind.bits() / a.bits().min(b.bits())).max(1);
            let result = if kind == F64 {
                product(BLOCKED, 0, shape, (a, b), name)
            } else {
                product(MMA, k_width, shape, (a, b), name)
            };
            match result {
                Ok(_) => passed += 1,
                Err(error) => failures.push(format!("{a:?}/{b:?} {shape:?} {name}: {error}")),
            }
        }
        assert!(failures.is_empty(), "{} failures, first {}", failures.len(), failures[0]);
    }
    assert_eq!(passed, 784);
}

#[test]
fn whole_tiles_use_the_instruction_once_each() {
    let plan = product(MMA, 2, [64, 64, 32], (F16, F16), "cuda:80").unwrap();
    let Dot::Matrix { instruction, zero_lanes, .. } = &plan.dot else { panic!("{plan}") };
    assert_eq!((instruction.name, *zero_lanes), ("mma.m16n8k16", 0));
    assert!(!plan.to_string().contains("operands zero"), "{plan}");
    assert_eq!(plan.count(), 2 * 4 * 2, "per warp 32×32, by 16×8×16");
    let wide = product(MMA, 8, [64, 64, 32], (F16, F16), "cuda:80").unwrap();
    assert_eq!(wide.count(), plan.count(), "K in another order is the same work");
}

#[test]
fn short_sums_are_filled_with_zeros() {
    let plan = product(MMA, 2, [16, 8, 4], (F16, F16), "cuda:80").unwrap();
    let Dot::Matrix { executions, zero_lanes, .. } = &plan.dot else { panic!("{plan}") };
    assert_eq!(*zero_lanes, 0b10, "four summands: two in a lane, two lanes, and two with replicas");
    assert!(plan.to_string().contains("  operands zero where lane & 0x2 != 0\n"), "{plan}");
    assert!(executions[0].a[7].is_none() && executions[0].b[3].is_none());
}

#[test]
fn amd_instructions() {
    let mfma = |edge: u32, k: u32, version: u32| {
        format!(
            "#ttg.amd_mfma<{{version = {version}, warpsPerCTA = [2, 2], instrShape = [{edge}, {edge}, {k}], isTransposed = false}}>"
        )
    };
    for (edge, k, width) in [(16, 16, 4), (32, 8, 4)] {
        let plan = product(&mfma(edge, k, 3), width, [64, 64, 32], (F16, F16), "hip:gfx942").unwrap();
        let Dot::Matrix { instruction, .. } = &plan.dot else { panic!("{plan}") };
        assert_eq!(instruction.shape, [edge, edge, k]);
    }
    product(&mfma(16, 32, 4), 8, [64, 64, 64], (Bf16, Bf16), "hip:gfx950").unwrap();
    product(&mfma(16, 32, 3), 8, [64, 64, 64], (F8, F8), "hip:gfx942").unwrap();
}

#[test]
fn rows_of_the_table_multiply() {
    let mut rows = 0;
    for row in MatrixInstruction::all() {
        check_matrix_instruction(row).unwrap_or_else(|error| panic!("{row:?}: {error}"));
        rows += 1;
    }
    assert!(rows > 40, "{rows}");
}

#[test]
fn runs_along_k_are_what_the_lowest_registers_hold() {
    let mut longest = 0;
    for row in MatrixInstruction::all() {
        for fragment in [row.a, row.b, row.c] {
            let roles = fragment.register_roles();
            let is_next = |(i, role): &(usize, &_)| **role == Some((DotAxis::K, *i as u32));
            let run = roles.iter().enumerate().take_while(is_next).count() as u32;
            assert_eq!(fragment.k_run(), run, "{row:?}");
            longest = longest.max(run);
        }
    }
    assert!(longest >= 3, "16 bytes of f16");
}

/// The checker finds fragments that are wrong in one bit.
#[test]
fn a_wrong_fragment_does_not_multiply() {
    for row in MatrixInstruction::all() {
        for (which, fragment) in [row.a, row.b, row.c].into_iter().enumerate() {
            let lanes = fragment.lanes;
            for (i, bits) in lanes.iter().enumerate() {
                // The first two bits of a run change places.
                let &Bits::Along(axis, from, to) = bits else { continue };
                if to < from + 2 {
                    continue;
                }
                let mut runs = lanes.to_vec();
                let swapped = [(from + 1, from + 2), (from, from + 1), (from + 2, to)];
                runs.splice(i..=i, swapped.map(|(from, to)| Bits::Along(axis, from, to)));
                let wrong = Fragment { lanes: runs.leak(), ..fragment };
                let mut broken = *row;
                *[&mut broken.a, &mut broken.b, &mut broken.c][which] = wrong;
                assert!(check_matrix_instruction(&broken).is_err(), "{broken:?}");
            }
        }
    }
}

/// Results in the layout of the transposed product, which the passes ask for on AMD's GPUs.
#[test]
fn transposed_results_exchange_the_operands() {
    let parents = [
        (
            "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 16], isTransposed = true}>",
            4,
            "hip:gfx942",
        ),
        (
            "#ttg.amd_mfma<{version = 4, warpsPerCTA = [1, 4], instrShape = [32, 32, 16], isTransposed = true}>",
            8,
            "hip:gfx950",
        ),
        (
            "#ttg.amd_wmma<{version = 1, ctaLayout = {register = [], warp = [[0, 1], [1, 0]]}, isTranspose = true, instrShape = [16, 16, 16]}>",
            16,
            "hip:gfx1100",
        ),
        (
            "#ttg.amd_wmma<{version = 2, ctaLayout = {register = [], warp = [[0, 1], [1, 0]]}, isTranspose = true, instrShape = [16, 16, 16]}>",
            8,
            "hip:gfx1201",
        ),
    ];
    for (parent, width, name) in parents {
        for shape in [[64, 64, 32], [128, 32, 64], [16, 64, 16], [64, 16, 8]] {
            let plan = product(parent, width, shape, (F16, F16), name).unwrap();
            let Dot::Matrix { swapped, .. } = plan.dot else { panic!("{plan}") };
            assert!(swapped, "{name} {shape:?}");
        }
    }
}

/// In LLVM's hands instructions stay about where they are: fragments of the longer axis come one after the other.
#[test]
fn the_fewest_fragments_of_amd_operands_are_alive() {
    let plan = |warps: &str| {
        let parent = format!(
            "#ttg.amd_wmma<{{version = 1, ctaLayout = {{warp = [{warps}]}}, isTranspose = true, instrShape = [16, 16, 16]}}>"
        );
        let plan = product(&parent, 16, [128, 128, 32], (F16, F16), "hip:gfx1100").unwrap();
        let Dot::Matrix { executions, .. } = plan.dot else { panic!("{plan}") };
        executions
    };
    // Two tiles of rows and eight of columns for each warp.
    let wide = plan("[1, 0], [2, 0]");
    assert!(wide[0].b == wide[1].b && wide[0].a != wide[1].a && wide[1].b != wide[2].b);
    let tall = plan("[0, 1], [0, 2]");
    assert!(tall[0].a == tall[1].a && tall[0].b != tall[1].b && tall[1].a != tall[2].a);
    let sums: std::collections::BTreeSet<_> = wide[..16].iter().map(|e| &e.c).collect();
    assert_eq!(sums.len(), 16, "those that add to the same registers are far apart");
}

#[test]
fn what_fits_no_instruction_is_multiplied_in_threads() {
    let plan = product(BLOCKED, 0, [32, 32, 16], (F64, F64), "cuda:90").unwrap();
    assert!(matches!(plan.dot, Dot::Fma(_)));
    assert_eq!(plan.count(), 32 * 32 / 128 * 16);
    let error = product(MMA, 2, [64, 64, 32], (I32, I32), "cuda:80").unwrap_err();
    assert!(error.contains("I32"), "{error}");
}

#[test]
fn several_products_are_added_at_once() {
    let blocked = "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [8, 8], warpsPerCTA = [2, 2], order = [1, 0]}>";
    let plan =
        |k: u64, types: DotTypes, name: &str| product_of(blocked, 0, &[], [32, 32, k], types, name).unwrap();
    let types = |operand, sum| DotTypes { a: operand, b: operand, c: sum, exact: false };
    // Four results in each thread, two products or four at once.
    for (operand, sum, count) in [(F16, F32, 4 * 16 / 2), (I8, I32, 4 * 16 / 4)] {
        let plan = plan(16, types(operand, sum), "hip:gfx942");
        assert!(matches!(plan.dot, Dot::Products(_)), "{plan}");
        assert_eq!((plan.kind, plan.count()), (operand, count));
    }
    // What the target or K has no instruction for; sums of 16 bits.
    for (operand, sum, k) in [(Bf16, F32, 16), (I8, I32, 2), (F16, F32, 1), (F16, F16, 16)] {
        let plan = plan(k, types(operand, sum), "hip:gfx942");
        assert!(matches!(plan.dot, Dot::Fma(_)), "{plan}");
        assert_eq!((plan.kind, plan.count()), (sum, 4 * k as usize));
    }
    assert!(matches!(plan(16, types(Bf16, F32), "hip:gfx950").dot, Dot::Products(_)));
}

#[test]
fn batches() {
    let mma = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1, 1], instrShape = [1, 16, 8]}>";
    let types = DotTypes::new(F16, F16, &TargetDesc::parse("cuda:80").unwrap());
    // Fewer products than warps: copies; as many; several for each warp.
    for (batch, each) in [(2, 1), (4, 1), (8, 2)] {
        let plan = product_of(mma, 2, &[batch], [32, 32, 32], types, "cuda:80").unwrap();
        assert!(matches!(plan.dot, Dot::Matrix { .. }));
        assert_eq!(plan.count(), 2 * 4 * 2 * each, "{batch}");
    }
    let blocked = "#ttg.blocked<{sizePerThread = [1, 2, 2], threadsPerWarp = [2, 4, 4], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>";
    let plan = product_of(blocked, 0, &[4], [16, 16, 8], types, "cuda:80").unwrap();
    assert_eq!((plan.kind, plan.count()), (F32, 4 * 16 * 16 / 128 * 8));
}

#[test]
fn precision_and_sums_decide_the_instruction() {
    let types = |a, b, c, exact| DotTypes { a, b, c, exact };
    let shape = [64, 64, 32];
    let f16 = product_of(MMA, 2, &[], shape, types(F16, F16, F16, false), "cuda:80").unwrap();
    assert_eq!(f16.kind, F16);
    // 8-bit floats are summed in 32 bits only; in 16 bits they are multiplied as 16-bit floats.
    let f8 = product_of(MMA, 4, &[], shape, types(F8, F8, F32, false), "cuda:89").unwrap();
    assert_eq!(f8.kind, F8);
    let wide = product_of(MMA, 4, &[], shape, types(F8, F8, F16, false), "cuda:89").unwrap();
    assert_eq!(wide.kind, F16);
    for (what, types) in
        [("F32 exactly", types(F32, F32, F32, true)), ("Bf16", types(Bf16, Bf16, Bf16, false))]
    {
        let error = product_of(MMA, 1, &[], shape, types, "cuda:80").unwrap_err();
        assert!(error.contains(what), "{error}");
    }
    let exact = product_of(BLOCKED, 0, &[], shape, types(F32, F32, F32, true), "cuda:80").unwrap();
    assert_eq!(exact.kind, F32);
    let Dot::Fma(triples) = &exact.dot else { panic!("{exact}") };
    let [first, next] = [triples[0], triples[1]];
    assert_ne!(first[0], next[0], "all results get their first summand before any gets its second");
    let mixed = product_of(MMA, 2, &[], shape, types(F16, Bf16, F32, false), "cuda:80").unwrap();
    assert_eq!(mixed.kind, F32, "no 16-bit float holds both");
}

#[test]
fn shapes_that_do_not_fit() {
    let (a, b) = (layout(BLOCKED, &[32, 16]), layout(BLOCKED, &[32, 64]));
    let target = TargetDesc::parse("cuda:80").unwrap();
    let types = DotTypes::new(F16, F16, &target);
    let error = DotTilePlan::new(&a, &b, &b, types, &target).unwrap_err().to_string();
    assert!(error.contains("32×16 times 32×64 is not 32×64"), "{error}");
}

/// A layout of columns, of registers first.
fn of_columns(registers: usize, columns: &[u64], outs: [u32; 2]) -> Option<LinearLayout> {
    let ins = [(Dim::REGISTER, registers as u32), (Dim::LANE, (columns.len() - registers) as u32)];
    let outs = [(Dim::out(0), outs[0]), (Dim::out(1), outs[1])];
    let layout = LinearLayout::from_columns(&ins, &outs, columns.iter().copied()).ok()?;
    (layout.rank() == layout.total_out_bits()).then_some(layout)
}

/// Operands and results of an instruction, and what differs from them in one place: columns exchanged, one added to
/// another, or a copy that holds something else.
#[test]
fn what_nearly_fits_an_instruction_is_multiplied_right() {
    use DotAxis::{K, M, N};
    let mut known = std::collections::HashSet::new();
    let [mut fits, mut differs, mut refused] = [0, 0, 0];
    for target in TargetDesc::all() {
        for row in MatrixInstruction::of(&target) {
            if !row.c.warps.is_empty() || row.multiply_adds() > 4096 || !known.insert((row.name, row.operand))
            {
                continue;
            }
            let size = |axis| row.shape[[M, N, K].iter().position(|a| *a == axis).unwrap()].ilog2();
            let fragments = [(&row.a, [M, K]), (&row.b, [K, N]), (&row.c, [M, N])];
            let columns = fragments.map(|(fragment, axes)| {
                let column = |role: Option<(DotAxis, u32)>| match role {
                    Some((axis, bit)) if axis == axes[0] => 1u64 << bit,
                    Some((_, bit)) => 1 << (size(axes[0]) + bit),
                    None => 0,
                };
                let registers = fragment.register_roles();
                let all = registers.iter().copied().chain(fragment.lane_roles()).map(column);
                (registers.len(), all.collect::<Vec<_>>(), axes.map(size))
            });
            let of = |(registers, columns, outs): &(usize, Vec<u64>, [u32; 2])| {
                of_columns(*registers, columns, *outs)
            };
            let whole = columns.each_ref().map(|one| of(one).unwrap());
            let types = DotTypes { a: row.operand, b: row.operand, c: row.sum, exact: false };
            let multiplies = |[a, b, c]: [&LinearLayout; 3]| {
                let Ok(plan) = DotTilePlan::new(a, b, c, types, &target) else { return false };
                if let Err(error) = check_dot(&plan, a, b, c, &target) {
                    panic!("{error}\n{target} {}\n{a}\n{b}\n{c}\n{plan:?}", row.name);
                }
                true
            };
            assert!(multiplies(whole.each_ref()), "{target} {}", row.name);
            fits += 1;
            for side in 0..3 {
                let n = columns[side].1.len();
                for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| i != j) {
                    for exchanged in [true, false] {
                        let mut one = columns[side].clone();
                        if exchanged {
                            one.1.swap(i, j);
                        } else {
                            one.1[i] ^= columns[side].1[j];
                        }
                        let Some(changed) = of(&one).filter(|_| !exchanged || i < j) else { continue };
                        let mut operands = whole.each_ref();
                        operands[side] = &changed;
                        *(if multiplies(operands) { &mut differs } else { &mut refused }) += 1;
                    }
                }
            }
        }
    }
    assert!(fits >= 10 && differs > 50 && refused > 1000, "{fits} {differs} {refused}");
}

/// Results of a batch that operands do not follow.
#[test]
fn warps_hold_the_same_dots_of_a_batch() {
    let target = TargetDesc::parse("cuda:80").unwrap();
    let types = DotTypes { a: F32, b: F32, c: F32, exact: true };
    // Two dots of two summands each, in registers or in warps.
    let of = |unit: [[u64; 3]; 2], in_warps: bool| {
        let [batch, other] = unit;
        let registers = if in_warps { vec![other] } else { vec![other, batch] };
        let warps = if in_warps { vec![batch] } else { vec![[0; 3]] };
        let bases = [(Dim::REGISTER, registers), (Dim::LANE, vec![[0; 3]; 5]), (Dim::WARP, warps)];
        LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1), Dim::out(2)]).unwrap()
    };
    let batch = [1, 0, 0];
    for places in 0..8u32 {
        let in_warps = |i: u32| places >> i & 1 == 1;
        let a = of([batch, [0, 0, 1]], in_warps(0));
        let b = of([batch, [0, 1, 0]], in_warps(1));
        let c = of([batch, [0, 0, 0]], in_warps(2));
        let plan = DotTilePlan::new(&a, &b, &c, types, &target);
        assert_eq!(plan.is_ok(), places == 0 || places == 7, "{places} {plan:?}");
    }
}

/// A byte may stand for two numbers of 4 bits; such operands are multiplied with their like, whatever the other is.
#[test]
fn pairs_are_two_numbers_and_stay_pairs() {
    let numbers = [F4Pair, F8, I8, F16, Bf16, F32, F64].map(DotType::numbers);
    assert_eq!(numbers, [2, 1, 1, 1, 1, 1, 1]);
    let target = TargetDesc::parse("cuda:90").unwrap();
    for other in [F4Pair, F8, I8, F16, F32] {
        assert_eq!([F4Pair.common(other, &target), other.common(F4Pair, &target)], [F4Pair, F4Pair]);
    }
}
