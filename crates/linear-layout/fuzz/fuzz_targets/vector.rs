//! Accesses to global memory: aligned runs that hold every element of a thread once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linear_layout::plan::VectorPlan;
use linear_layout_fuzz::Case;

fuzz_target!(|case: Case| {
    let Case { a, elem_bits, budget, target, .. } = case;
    let elem_bits = elem_bits.next_power_of_two().max(8);
    let plan = VectorPlan::for_global(&a, elem_bits, budget, budget, &target).expect("a plan");
    // Memory order: the last dimension fastest.
    let (rows, columns) = (a.out_bits(linear_layout::Dim::out(0)), a.out_bits(linear_layout::Dim::out(1)));
    let registers = a.in_bits(linear_layout::Dim::REGISTER);
    for thread in 0..1u64 << (a.total_in_bits() - registers) {
        let address = |r: u32| {
            let element = a.apply_packed(u64::from(r) | thread << registers);
            (element & ((1 << rows) - 1)) << columns | element >> rows
        };
        for access in &plan.accesses {
            let first = address(access.registers[0]);
            assert_eq!(first % u64::from(plan.vec_elems), 0);
            assert!(access.registers.iter().enumerate().all(|(i, &r)| address(r) == first + i as u64));
        }
        assert!(plan.copies.iter().enumerate().all(|(r, &c)| address(r as u32) == address(c)));
    }
});
