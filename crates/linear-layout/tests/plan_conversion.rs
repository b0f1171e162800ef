//! Conversions: every plan is executed by the checker.

mod plan_layouts;

use linear_layout::LinearLayout;
use linear_layout::checker::check_conversion;
use linear_layout::plan::ConversionPlan;
use linear_layout::target::TargetDesc;
use plan_layouts::*;
use proptest::prelude::*;

fn checked(a: &LinearLayout, b: &LinearLayout, bits: u32, target: &TargetDesc) -> ConversionPlan {
    let plan = ConversionPlan::new(a, b, bits, target).unwrap();
    if let Err(error) = check_conversion(&plan, a, b, target) {
        panic!("{error}\nfrom {a}\nto {b}\n{bits} bits, {target}\n{:#?}", plan.conversion);
    }
    plan
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn distributed_pairs_convert((a, b) in pair(false), width in 2u32..7, target in any_target()) {
        checked(&a, &b, 1 << width, &target);
    }

    #[test]
    fn any_surjective_pair_converts((a, b) in pair(true), width in 2u32..7, target in any_target()) {
        checked(&a, &b, 1 << width, &target);
    }
}
