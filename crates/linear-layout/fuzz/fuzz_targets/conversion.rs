//! Conversions, the cheapest and each way by itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linear_layout::checker::check_conversion;
use linear_layout::plan::{ConversionPlan, PlanError};
use linear_layout_fuzz::Case;

fuzz_target!(|case: Case| {
    let Case { a, b, elem_bits, budget, target } = case;
    let plans = [
        ConversionPlan::with_budget(&a, &b, elem_bits, &target, budget),
        ConversionPlan::through_shared(&a, &b, elem_bits, &target, budget),
    ];
    for plan in plans {
        match plan {
            Ok(plan) => drop(check_conversion(&plan, &a, &b, &target).expect("a right plan")),
            Err(PlanError::SharedBudget { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    if let Some(plan) = ConversionPlan::through_shuffles(&a, &b, elem_bits, &target).expect("two layouts") {
        check_conversion(&plan, &a, &b, &target).expect("a right plan");
    }
});
