use super::*;
use FloatKind::{F8E4M3FN, F8E5M2, F8E5M2FNUZ};
use linear_layout::checker::check_dot;
use linear_layout::plan::{Dot, DotTilePlan, DotTypes};

const E4M3: Element = Element::Float(F8E4M3FN);
const E5M2: Element = Element::Float(F8E5M2);
const I8: Element = Element::Int(8);

fn problem([m, n, k]: [u64; 3], element: Element, result: Element, warps: u64) -> Problem {
    let operand =
        |fastest| Operand { element, narrowest: element.bits(), operations: 0, loaded: true, fastest };
    Problem {
        shape: vec![m, n],
        k,
        operands: [operand(1), operand(1)],
        result,
        precision: InputPrecision::Tf32,
        max_imprecise: 1 << 30,
        chain: Chain::default(),
        warps,
        cga: CgaLayout::new(),
    }
}

fn plan(problem: &Problem, target: &str) -> Option<MatmulPlan> {
    MatmulPlan::new(problem, &TargetDesc::parse(target).unwrap())
}

fn mma_of(problem: &Problem, target: &str) -> (NvidiaMma, MatmulPlan) {
    let plan = plan(problem, target).unwrap();
    match plan.result.clone() {
        Encoding::NvidiaMma(mma) => (mma, plan),
        other => panic!("{other}"),
    }
}

fn k_width(plan: &MatmulPlan) -> u64 {
    match plan.operands[0].place {
        Place::Registers { k_width } => k_width,
        Place::Shared(_) => 0,
    }
}

#[test]
fn warps_read_as_little_as_possible() {
    let free = Chain::default();
    assert_eq!(split_warps(8, &[128, 256], [16, 8], free, [16, 16].map(Price::from)), [2, 4]);
    assert_eq!(split_warps(8, &[512, 64], [16, 8], free, [16, 16].map(Price::from)), [8, 1]);
    // Weights of 4 bits are read by many warps rather than activations of 16.
    assert_eq!(split_warps(8, &[128, 128], [16, 8], free, [16, 4].map(Price::from)), [4, 2]);
    assert_eq!(split_warps(4, &[16, 64], [16, 8], free, [16, 16].map(Price::from)), [1, 4]);
    assert_eq!(split_warps(4, &[4, 32, 32], [16, 8], free, [16, 16].map(Price::from)), [4, 1, 1]);
    assert_eq!(split_warps(4, &[2, 32, 32], [16, 8], free, [16, 16].map(Price::from)), [2, 1, 2]);
}

#[test]
fn what_threads_compute_is_computed_by_few_warps() {
    let mut weights = problem([32, 64, 64], F16, F32, 8);
    let warps = |problem: &Problem| mma_of(problem, "cuda:80").0.warps_per_cta;
    // As it is, or by a conversion alone: all warps read a quarter of it twice.
    assert_eq!(warps(&weights), [2, 4]);
    weights.operands[1] = Operand { narrowest: 8, operations: 1, ..weights.operands[1] };
    assert_eq!(warps(&weights), [2, 4]);
    // By shifts, masks and scales: twice as much of that takes longer than reading the other operand eight times.
    weights.operands[1].operations = 7;
    assert_eq!(warps(&weights), [1, 8]);
    // However much is computed: it could be computed once, and read from shared memory.
    weights.shape = vec![128, 64];
    weights.operands[1].operations = 1000;
    assert_eq!(warps(&weights), [4, 2]);
}

#[test]
fn chained_dots_keep_operands_in_their_warps() {
    let left = Chain { left: true, right: false };
    let right = Chain { left: false, right: true };
    assert_eq!(split_warps(4, &[64, 64], [16, 8], left, [16, 16].map(Price::from)), [4, 1]);
    assert_eq!(split_warps(8, &[128, 128], [16, 8], right, [16, 16].map(Price::from)), [1, 8]);
    // Not where warps would repeat each other's work.
    assert_eq!(split_warps(8, &[64, 64], [16, 8], left, [16, 16].map(Price::from)), [4, 2]);
}

#[test]
fn instructions_by_element_type() {
    let version = |element, result, target| mma_of(&problem([64, 64, 64], element, result, 4), target).0;
    for element in [F16, BF16, F32, E4M3, E5M2] {
        assert_eq!(version(element, F32, "cuda:90").version_major, 3, "{element:?}");
        assert_eq!(version(element, F32, "cuda:80").version_major, 2, "{element:?}");
    }
    assert_eq!(version(I8, I32, "cuda:90").instr_shape, [16, 64, 32]);
    assert_eq!(version(F64, F64, "cuda:90").instr_shape, [8, 8]);
    // The layout is that of m8n8k4; what multiplies depends on the tiles of a warp.
    let of_f64 =
        |shape, warps, target| plan(&problem(shape, F64, F64, warps), target).unwrap().instruction.shape;
    assert_eq!(of_f64([64, 64, 64], 4, "cuda:90"), [16, 8, 16]);
    assert_eq!(of_f64([64, 64, 4], 4, "cuda:90"), [16, 8, 4]);
    assert_eq!(of_f64([16, 16, 16], 4, "cuda:90"), [8, 8, 4]);
    assert_eq!(of_f64([64, 64, 64], 4, "cuda:80"), [8, 8, 4]);
    assert_eq!(version(F16, F16, "cuda:90").instr_shape, [16, 64, 16]);
    // Integers of other sizes, and sums in another type than the instruction has.
    assert_eq!(plan(&problem([64, 64, 64], Element::Int(16), I32, 4), "cuda:90"), None);
    assert_eq!(plan(&problem([64, 64, 64], F16, F64, 4), "cuda:90"), None);
    let ieee = Problem { precision: InputPrecision::Ieee, ..problem([64, 64, 64], F32, F32, 4) };
    assert_eq!(plan(&ieee, "cuda:90"), None);
    assert!(plan(&ieee, "hip:gfx942").is_some());
}

#[test]
fn warp_groups_need_64_rows_and_4_warps() {
    let version = |shape, warps| mma_of(&problem(shape, F16, F32, warps), "cuda:90").0.version_major;
    assert_eq!(version([64, 8, 16], 4), 3);
    assert_eq!(version([32, 64, 64], 4), 2);
    assert_eq!(version([64, 64, 64], 2), 2);
    assert_eq!(version([64, 64, 8], 4), 2);
    // Two groups cannot share 8 columns.
    assert_eq!(version([64, 8, 16], 8), 2);
    let wide = mma_of(&problem([64, 64, 64], F16, F32, 8), "cuda:90").0;
    assert_eq!((wide.warps_per_cta, wide.instr_shape), (vec![4, 2], vec![16, 32, 16]));
    let long = mma_of(&problem([128, 512, 64], F16, F32, 8), "cuda:90").0;
    assert_eq!((long.warps_per_cta, long.instr_shape), (vec![8, 1], vec![16, 256, 16]));
}

#[test]
fn fp8_that_must_be_precise_avoids_warp_groups() {
    let precise = Problem { max_imprecise: 0, ..problem([64, 64, 64], E4M3, F32, 4) };
    assert_eq!(mma_of(&precise, "cuda:90").0.version_major, 2);
}

#[test]
fn fp8_is_multiplied_as_f16_where_nothing_else_is() {
    let of = |target| mma_of(&problem([64, 64, 64], E5M2, F32, 4), target).1;
    assert_eq!(of("cuda:80").operands[0].element, F16);
    // Moved in bytes, 4 of which fill a register.
    assert_eq!(k_width(&of("cuda:80")), 4);
    assert_eq!(of("cuda:89").operands[0].element, E5M2);
    let amd =
        |element, target| plan(&problem([64, 64, 64], element, F32, 4), target).unwrap().operands[0].element;
    assert_eq!(amd(E5M2, "hip:gfx942"), F16);
    assert_eq!(amd(E5M2, "hip:gfx950"), E5M2);
    assert_eq!(amd(Element::Float(F8E5M2FNUZ), "hip:gfx942"), Element::Float(F8E5M2FNUZ));
    assert_eq!(amd(E4M3, "hip:gfx1100"), F16);
    assert_eq!(amd(E4M3, "hip:gfx1201"), E4M3);
}

#[test]
fn operands_of_warp_groups() {
    let shared = |problem: &Problem| {
        plan(problem, "cuda:90").unwrap().operands.map(|operand| match operand.place {
            Place::Shared(e) => Some((e.transposed, e.swizzling_byte_width)),
            Place::Registers { .. } => None,
        })
    };
    assert_eq!(shared(&problem([64, 64, 32], F16, F32, 4)), [Some((false, 64)), Some((false, 128))]);
    // Only elements of 16 bits may run along M or N.
    assert_eq!(shared(&problem([64, 64, 32], F32, F32, 4)), [Some((false, 128)), Some((true, 128))]);
    assert_eq!(shared(&problem([64, 64, 32], E4M3, F32, 4)), [Some((false, 32)), Some((true, 32))]);
    assert_eq!(shared(&problem([64, 8, 16], F16, F32, 4)), [Some((false, 32)), Some((false, 0))]);
    let mut computed = problem([64, 64, 32], F16, F32, 4);
    computed.operands[0].loaded = false;
    computed.operands[1].fastest = 0;
    assert_eq!(shared(&computed), [None, Some((true, 64))]);
}

#[test]
fn width_along_k_follows_what_is_moved() {
    let mut mixed = problem([64, 64, 64], F16, F32, 4);
    mixed.operands[1].narrowest = 8;
    assert_eq!(k_width(&mma_of(&mixed, "cuda:80").1), 4);
    // But not beyond K.
    mixed.k = 16;
    assert_eq!(k_width(&mma_of(&mixed, "cuda:80").1), 2);
}

#[test]
fn blocks_of_a_cluster_divide_the_result_first() {
    let cluster = Problem { cga: vec![vec![1, 0]], ..problem([128, 64, 64], F16, F32, 8) };
    assert_eq!(mma_of(&cluster, "cuda:90").0.warps_per_cta, [4, 2]);
}

/// Layouts that plans ask for are those that the instructions multiply, and the plan of registers has the same row
/// of the table.
#[test]
fn instructions_multiply_what_plans_ask_for() {
    for target in TargetDesc::all() {
        for element in [F16, BF16, F32, F64, I8, E4M3, E5M2, Element::Float(F8E5M2FNUZ)] {
            for shape in [[16, 16, 16], [16, 8, 32], [64, 32, 16], [1, 32, 32], [128, 8, 64], [32, 64, 128]] {
                for (warps, precision) in
                    [(1, InputPrecision::Tf32), (2, InputPrecision::Ieee), (8, InputPrecision::Tf32)]
                {
                    let result = match element {
                        I8 => I32,
                        F64 => F64,
                        _ => F32,
                    };
                    let problem = Problem { precision, ..problem(shape, element, result, warps) };
                    let what = format!("{target} {element:?} {shape:?} {warps} warps {precision:?}");
                    let Some(plan) = MatmulPlan::new(&problem, &target) else {
                        let kind = element.dot_type(&target).unwrap();
                        let exact = precision != InputPrecision::Tf32;
                        let mut rows = MatrixInstruction::of(&target);
                        assert!(rows.all(|row| !row.multiplies(kind, row.sum, exact)), "{what}");
                        continue;
                    };
                    if plan.is_warp_group() {
                        continue;
                    }
                    let [m, n, k] = shape;
                    let operand = |side: u32, shape: [u64; 2]| {
                        let parent = Box::new(plan.result.clone());
                        let value = DotOperand { op_idx: side, parent, k_width: k_width(&plan) };
                        Encoding::DotOperand(value).to_linear_layout(&shape).unwrap()
                    };
                    let (a, b) = (operand(0, [m, k]), operand(1, [k, n]));
                    let c = plan.result.to_linear_layout(&[m, n]).unwrap();
                    let kind = plan.operands[0].element.dot_type(&target).unwrap();
                    let exact = precision != InputPrecision::Tf32;
                    let types = DotTypes { exact, ..DotTypes::new(kind, kind, &target) };
                    let tiles = DotTilePlan::new(&a, &b, &c, types, &target);
                    let tiles = tiles.unwrap_or_else(|err| panic!("{what}: {err}"));
                    // Slow for large ones.
                    if warps <= 2 && m * n * k <= 1 << 14 {
                        check_dot(&tiles, &a, &b, &c, &target).unwrap_or_else(|err| panic!("{what}: {err}"));
                    }
                    let Dot::Matrix { instruction, .. } = tiles.dot else { panic!("{what}: {tiles}") };
                    assert_eq!(instruction, plan.instruction, "{what}");
                }
            }
        }
    }
}

/// The row decides, not what the target is called.
#[test]
fn a_new_name_changes_no_plan() {
    for target in TargetDesc::all() {
        let renamed = target.clone().renamed("some:gpu");
        for element in [F16, BF16, F32, F64, I8, E4M3, E5M2, Element::Float(F8E5M2FNUZ)] {
            let result = if element == I8 { I32 } else { F32 };
            for shape in [[16, 16, 16], [64, 64, 64], [128, 256, 64]] {
                let problem = problem(shape, element, result, 4);
                let plan = |target| MatmulPlan::new(&problem, target);
                assert_eq!(plan(&target), plan(&renamed), "{target} {element:?} {shape:?}");
            }
        }
    }
}
