//! See `linear_layout_fuzz::reduce`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| linear_layout_fuzz::reduce(bytes));
