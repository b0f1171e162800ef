//! Products of warp groups, executed by the checker.

use linear_layout::checker::check_warp_group_dot;
use linear_layout::plan::{
    DotType, DotTypes, MatrixSwizzle, WarpGroupDot, WarpGroupDotPlan, WarpGroupOperand,
};
use linear_layout::target::TargetDesc;
use linear_layout::{Encoding, LinearLayout};

use DotType::*;

fn layout(text: &str, shape: [u64; 2]) -> LinearLayout {
    text.parse::<Encoding>().unwrap().to_linear_layout(&shape).unwrap()
}

fn shared(swizzle: u32, transposed: bool, bits: u32, shape: [u64; 2]) -> LinearLayout {
    let text = format!(
        "#ttg.nvmma_shared<{{swizzlingByteWidth = {swizzle}, transposed = {transposed}, elementBitWidth = {bits}}}>"
    );
    layout(&text, shape)
}

fn mma(warps: [u32; 2], n: u32, k: u32) -> String {
    let [m_warps, n_warps] = warps;
    format!(
        "#ttg.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = [{m_warps}, {n_warps}], instrShape = [16, {n}, {k}]}}>"
    )
}

/// A product and where its operands are.
struct Case {
    types: DotTypes,
    shape: [u64; 3],
    warps: [u32; 2],
    /// Columns of the instructions that the layout is made for.
    n: u32,
    /// Swizzle and transposition of each operand; the left one in registers without.
    a: Option<(u32, bool)>,
    b: (u32, bool),
    max_imprecise: u64,
}

impl Case {
    fn new(kind: DotType, shape: [u64; 3]) -> Case {
        let sum = if kind == I8 { I32 } else { F32 };
        let types = DotTypes { a: kind, b: kind, c: sum, exact: false };
        let n = (shape[1] as u32).min(256);
        Case { types, shape, warps: [4, 1], n, a: Some((128, false)), b: (128, true), max_imprecise: 1 << 30 }
    }

    /// The plan, checked.
    fn plan(&self) -> Result<WarpGroupDotPlan, String> {
        let target = TargetDesc::parse("cuda:90").unwrap();
        let ([m, n, k], bits) = (self.shape, self.types.a.bits());
        let parent = mma(self.warps, self.n, 256 / bits);
        let (registers, memory);
        let a = match self.a {
            Some((swizzle, transposed)) => {
                memory = shared(swizzle, transposed, bits, [m, k]);
                WarpGroupOperand::Shared(&memory)
            }
            None => {
                let text = format!("#ttg.dot_op<{{opIdx = 0, parent = {parent}, kWidth = {}}}>", 32 / bits);
                registers = layout(&text, [m, k]);
                WarpGroupOperand::Registers(&registers)
            }
        };
        let b = shared(self.b.0, self.b.1, bits, [k, n]);
        let c = layout(&parent, [m, n]);
        let max_imprecise = self.max_imprecise;
        let product = WarpGroupDot { a, b: &b, c: &c, depth: k, types: self.types, max_imprecise };
        let plan = WarpGroupDotPlan::new(&product, &target).map_err(|err| err.to_string())?;
        check_warp_group_dot(&plan, &product).unwrap_or_else(|err| panic!("{err}\n{plan}\n{plan:?}"));
        Ok(plan)
    }
}

#[test]
fn all_types_from_memory_and_from_registers() {
    for kind in [F16, Bf16, F32, F8, I8] {
        let step = 256 / u64::from(kind.bits());
        for a in [Some((128, false)), Some((32, false)), None] {
            let case = Case { a, ..Case::new(kind, [128, 64, 4 * step]) };
            let plan = case.plan().unwrap();
            assert_eq!((plan.shape, plan.count()), ([64, 64, step], 2 * 4), "{kind:?} {a:?}");
            assert_eq!(plan.a.is_some(), a.is_some());
            assert!(!plan.promoted);
        }
    }
}

#[test]
fn operands_of_16_bits_may_be_contiguous_along_rows_and_columns() {
    for (left, right) in [(true, true), (true, false), (false, true), (false, false)] {
        for swizzle in [128, 64, 32] {
            let sides = (Some((swizzle, left)), (swizzle, right));
            let case = Case { a: sides.0, b: sides.1, ..Case::new(F16, [64, 128, 64]) };
            let plan = case.plan().unwrap();
            // The second dimension is contiguous unless transposed: columns for the right operand.
            assert_eq!((plan.a.as_ref().unwrap().transposed, plan.b.transposed), (left, !right));
            assert_eq!(plan.shape[1], 128);
        }
    }
    let bytes = Case { b: (128, false), ..Case::new(I8, [64, 128, 128]) };
    assert!(bytes.plan().unwrap_err().contains("contiguous along K only"));
}

#[test]
fn warps_divide_rows_and_columns() {
    let eight = Case { warps: [8, 1], ..Case::new(F16, [256, 128, 64]) };
    let plan = eight.plan().unwrap();
    assert_eq!(plan.starts[0].warp.len(), 3);
    assert_eq!(plan.starts[0].warp[..2], [0, 0], "a tile is what the four warps of a group have");
    assert_ne!(plan.starts[0].warp[2], 0);
    let columns = Case { warps: [4, 2], n: 64, ..Case::new(F16, [64, 128, 64]) };
    let plan = columns.plan().unwrap();
    assert_eq!((plan.shape[1], plan.starts[0].warp[2]), (64, 0));
    assert_ne!(plan.starts[1].warp[2], 0);
    let registers = Case { a: None, warps: [8, 1], ..Case::new(Bf16, [256, 64, 64]) };
    assert_eq!(registers.plan().unwrap().count(), 2 * 4);
}

#[test]
fn instructions_are_as_wide_as_registers_and_memory_allow() {
    // A layout of narrow instructions is one of wide ones too.
    let narrow = Case { n: 32, ..Case::new(F16, [64, 256, 64]) };
    assert_eq!(narrow.plan().unwrap().shape, [64, 256, 16]);
    let wide = Case { b: (128, false), ..Case::new(F16, [64, 512, 64]) };
    let plan = wide.plan().unwrap();
    assert_eq!((plan.shape, plan.runs.len()), ([64, 256, 16], 2));
    assert_eq!(plan.b.swizzle, MatrixSwizzle::Bytes128);
}

/// Columns that memory does not have one after the other, as registers do, are those of several instructions.
#[test]
fn instructions_end_where_columns_of_memory_are_not_in_a_row() {
    let target = TargetDesc::parse("cuda:90").unwrap();
    let (a, c) = (shared(128, false, 16, [64, 64]), layout(&mma([4, 1], 256, 16), [64, 256]));
    let whole = shared(128, true, 16, [64, 256]);
    // Six bits of summands, then those of columns: three of an atom, one that says how far atoms are apart.
    for (bit, with, n) in [(6, 7, 64), (4, 5, 16), (3, 7, 16), (2, 4, 0)] {
        let mut columns = whole.columns().to_vec();
        columns.swap(6 + bit, 6 + with);
        let (ins, outs): (Vec<_>, Vec<_>) = (whole.in_dim_bits().collect(), whole.out_dim_bits().collect());
        let b = LinearLayout::from_columns(&ins, &outs, columns).unwrap();
        let types = DotTypes { a: F16, b: F16, c: F32, exact: false };
        let a = WarpGroupOperand::Shared(&a);
        let product = WarpGroupDot { a, b: &b, c: &c, depth: 64, types, max_imprecise: 0 };
        let plan = match WarpGroupDotPlan::new(&product, &target) {
            Ok(plan) => plan,
            Err(error) => {
                assert!(n == 0 && error.to_string().contains("bit 2 of `dim1` is at byte"), "{error}");
                continue;
            }
        };
        check_warp_group_dot(&plan, &product).unwrap();
        assert_eq!((plan.shape, plan.runs.len() as u64), ([64, n, 16], 256 / n), "bits {bit} and {with}");
    }
}

#[test]
fn sums_of_fp8_are_promoted_in_time() {
    let promoted = Case { max_imprecise: 64, ..Case::new(F8, [64, 64, 256]) };
    let plan = promoted.plan().unwrap();
    assert!(plan.promoted);
    assert_eq!((plan.runs.len(), plan.runs[0].steps.len()), (4, 2));
    let at_once = Case { max_imprecise: 256, ..Case::new(F8, [64, 64, 256]) };
    assert!(!at_once.plan().unwrap().promoted);
    let other = Case { max_imprecise: 64, ..Case::new(F16, [64, 64, 256]) };
    assert!(!other.plan().unwrap().promoted, "other types are summed precisely");
}

#[test]
fn what_wgmma_does_not_take() {
    let types = |a, b, c, exact| DotTypes { a, b, c, exact };
    let refused = |types, what: &str| {
        let error = Case { types, ..Case::new(F16, [64, 64, 64]) }.plan().unwrap_err();
        assert!(error.contains(what), "{error}");
    };
    refused(types(F16, Bf16, F32, false), "no wgmma multiplies F16 by Bf16");
    refused(types(F64, F64, F64, false), "no wgmma multiplies F64");
    refused(types(Bf16, Bf16, F16, false), "sums in F16");
    refused(types(F32, F32, F32, true), "rounds 32-bit floats");
    let blocked = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>";
    let (a, b, c) =
        (shared(128, false, 16, [64, 64]), shared(128, true, 16, [64, 64]), layout(blocked, [64, 64]));
    let product = WarpGroupDot {
        a: WarpGroupOperand::Shared(&a),
        b: &b,
        c: &c,
        depth: 64,
        types: types(F16, F16, F32, false),
        max_imprecise: 0,
    };
    let short = WarpGroupDot { c: &layout(&mma([4, 1], 64, 16), [64, 64]), depth: 8, ..product };
    let error =
        WarpGroupDotPlan::new(&short, &TargetDesc::parse("cuda:90").unwrap()).unwrap_err().to_string();
    assert!(error.contains("8 summands are no multiple of the 16"), "{error}");
    let plan =
        |name| WarpGroupDotPlan::new(&product, &TargetDesc::parse(name).unwrap()).unwrap_err().to_string();
    assert!(
        plan("cuda:90").contains("lane bit 0 of the result does not move by 2 along N"),
        "{}",
        plan("cuda:90")
    );
    assert!(plan("cuda:80").contains("has no wgmma"));
}
