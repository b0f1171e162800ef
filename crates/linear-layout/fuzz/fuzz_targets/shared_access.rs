//! Loads and stores between registers and the memory of a conversion, which is any linear memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linear_layout::checker::check_shared_access;
use linear_layout::plan::{Conversion, ConversionPlan, SharedAccessPlan};
use linear_layout::target::Direction;
use linear_layout_fuzz::Case;

fuzz_target!(|case: Case| {
    let Case { a, b, elem_bits, target, .. } = case;
    let Ok(plan) = ConversionPlan::through_shared(&a, &b, elem_bits, &target, target.shared_bytes) else {
        return;
    };
    let Conversion::SharedMemory(shared) = &plan.conversion else { return };
    for (layout, direction) in [(&b, Direction::Load), (&a, Direction::Load), (&a, Direction::Store)] {
        if let Ok(access) = SharedAccessPlan::new(layout, &shared.layout, elem_bits, direction, &target) {
            if access.access.block.is_none() {
                check_shared_access(&access, layout, &shared.layout, &target).expect("a right plan");
            }
        }
    }
});
